/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Room dataset: many shards as one: dataset.json, or the TFRecord files that a user's paths mean.
 * May see: base, storage, rooms frame, codec, example and shard.
 * An open dataset never changes, except that its shards are opened at first use. Lock: of the list
 * of shards, in dataset.c.
 */
#ifndef PRESTO_DATASET_INTERNAL_H
#define PRESTO_DATASET_INTERNAL_H

#include <jansson.h>

#include <presto/dataset.h>

#define PRESTO__DATASET_FORMAT "presto-dataset"

/**
 * Of dataset.json and .progress.json: bytes of text, and values (a list or an object counts 8).
 * 99,999 shards with 65,536 features of rank 8 stay below it.
 */
#define PRESTO__JSON_MAX_BYTES ((uint64_t)64 << 20)
#define PRESTO__JSON_MAX_WEIGHT ((size_t)4 << 20)

/** Did json_load* fail because memory ran out? Then jansson's error is empty or says so. */
static inline bool presto__json_ran_out(const json_error_t *where) {
    return where->text[0] == '\0' || json_error_code(where) == json_error_out_of_memory;
}

/**
 * The text of a dataset.json, malloc'd. `share`: what part.json says beside it (docs/format.md);
 * NULL: nothing. Fills info->id. PRESTO_ERR_LIMIT: nobody could read it.
 */
presto_status presto__dataset_info_text(presto_dataset_info *info, json_t *share, char **text_out,
                                        presto_error *err);
/** Write `dir`/dataset.json, as presto__dataset_info_write. */
presto_status presto__dataset_text_write(const char *dir, const char *text, bool sync,
                                         presto_error *err);

/** Sorts the names. Returns one that occurs twice, or NULL. */
const char *presto__find_double(const char **names, size_t count);

/* ---- the TFRecord files that paths mean ---- */

/** Paths, in order. Zero-initialise, but for the caller's hook. */
typedef struct presto__listing {
    presto_stop_fn should_stop; /* asked for each name; NULL: never */
    void *should_stop_user;
    bool takes_splits; /* files of train and test may be read as one */
    char **paths;
    size_t count;
    size_t capacity;
    /* Files that hold no records and whose names say nothing either. */
    size_t others;
    char *other;               /* the first of them by name */
    const char *other_content; /* "a WAV file"; NULL: unknown */
} presto__listing;

/**
 * Add the files among `paths`, and for each folder the TFRecord files below it, sorted. Each folder
 * below it is entered once (presto__object_list). An index whose file is among `paths`, as where a
 * shell's pattern named both, is passed over.
 * Returns: PRESTO_ERR_NOT_FOUND (no such path, no TFRecord file in it); PRESTO_ERR_BUSY (a folder
 *          in it is an unfinished dataset of ours); PRESTO_ERR_ARGUMENT (one is a dataset with a
 *          dataset.json of its own); PRESTO_ERR_IO; PRESTO_ERR_MEMORY; PRESTO_ERR_STOPPED.
 */
presto_status presto__listing_of(const char *const *paths, size_t path_count,
                                 presto__listing *listing, presto_error *err);
void presto__listing_done(presto__listing *listing);

/** Is there a folder at `path`? A server that does not say is an error: its URL may mean either. */
presto_status presto__dataset_look_for_folder(const char *path, bool *is_folder_out,
                                              presto_error *err);

/**
 * Are the paths one dataset of ours, or shards of one? PRESTO_OK: *dir_out is its folder (owner:
 * caller), and *info, zero before, describes it, with the given shards only. PRESTO_END: no.
 */
presto_status presto__dataset_find_ours(const char *const *paths, size_t path_count,
                                        presto_dataset_info *info, char **dir_out,
                                        presto_error *err);

/** So many datasets are read together: of the files that one may open, this one takes its part. */
void presto__dataset_share(presto_dataset *dataset, size_t datasets);

/** As presto_dataset_open, but PRESTO_END if the paths are no dataset of ours. Opens no shard. */
presto_status presto__dataset_open_ours(const char *const *paths, size_t path_count,
                                        presto_dataset **dataset_out, presto_error *err);

#endif
