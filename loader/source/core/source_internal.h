/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Room core: what a source is: a numbered sequence of samples, read in blocks.
 * May see: base, storage, records, steps. Must not know: order, caches, batches.
 * The kinds of source are in rooms beside this one, behind presto__source_ops; ../kinds.c lists
 * those that a pipeline may name. Once open, only a source's count may change, and each thread's reader. No lock.
 */
#ifndef PRESTO_LOADER_SOURCE_INTERNAL_H
#define PRESTO_LOADER_SOURCE_INTERNAL_H

#include <string.h>

#include <presto/example.h>
#include <presto/loader.h>

#include "../../../base/digest_internal.h"
#include "../../../base/subset_internal.h"
#include "../../../records/records_internal.h"

/** The blocks that were read: an array of record blocks, reused by each fetch. Zero-initialise. */
typedef struct presto__blocks {
    presto_block *items;
    size_t count; /* in use */
    size_t capacity;
} presto__blocks;

void presto__blocks_done(presto__blocks *blocks);
size_t presto__blocks_memory(const presto__blocks *blocks);
/** Room for `count` blocks in all. */
presto_status presto__blocks_reserve(presto__blocks *blocks, size_t count, presto_error *err);

/** What reading cost, summed by a reader. Stages timed on every n-th sample are scaled up. */
typedef struct presto__read_stats {
    uint64_t read_bytes;
    uint64_t read_ns;
    uint64_t decompress_ns;
    uint64_t parse_ns;
} presto__read_stats;

typedef struct presto__reader_options {
    uint64_t max_record_bytes;
    /* What is known of features; with `only`, others need not be in the samples. Borrowed until the
     * reader is freed. */
    const presto_feature_spec *features;
    size_t feature_count;
    bool only;
} presto__reader_options;

/** One thread's reading state; kinds of source embed it as their first member. */
typedef struct presto__reader {
    const presto_source *source; /* the loader's, which frees its readers first */
    presto__read_stats stats;
    uint64_t time_scale; /* 0: do not time this sample; else: multiply its times by this */
    bool lost_shard;     /* set by the kind: the failure is not only of this sample */
    bool is_selective;   /* set by the kind: samples have only what was asked for */
    bool aligns;         /* set by the worker: tensors are to be aligned in the blocks read */
    size_t align_at;     /* where in a record the largest tensor starts, as seen so far */
    const presto_arena *grower; /* the worker's, which lives as long; asked before blocks grow */
    void *own;                  /* of a kind that reads by the hooks of another one */
} presto__reader;

/** A record as it stands in the file, and the serialized Example that it holds. */
typedef struct presto__stored_record {
    presto_span stored;
    presto_span raw; /* without the codec */
} presto__stored_record;

/** A kind of source. Everything but `source` calls is per thread. */
typedef struct presto__source_ops {
    void (*free)(presto_source *source);
    presto_status (*drop_cache)(presto_source *source, presto_error *err);
    /** As presto_dataset_take_warning; NULL: there are none. */
    bool (*take_warning)(presto_source *source, presto_error *warning_out);
    /** Before anything is read: how indexes of what is found are kept (keep_index, index_dir,
     * ignore_index). NULL: nothing is. */
    presto_status (*keep_as)(presto_source *source, const presto_shard_options *options,
                             presto_error *err);
    /** PRESTO_ERR_ARGUMENT if the source cannot be read out of order; NULL: any order is fine. */
    presto_status (*check_random_access)(presto_source *source, presto_error *err);
    presto_status (*reader_new)(presto_source *source, const presto__reader_options *options,
                                presto__reader **reader_out, presto_error *err);
    void (*reader_free)(presto__reader *reader);
    /**
     * Read the samples `numbers` into `blocks`, after those in use there. The calls below take
     * positions in `numbers`, and report damage, per sample. This call fails only without memory.
     */
    presto_status (*fetch)(presto__reader *reader, const uint64_t *numbers, size_t count,
                           presto__blocks *blocks, presto_error *err);
    /** Sample i as features. Borrows from `blocks`, `arena` and the source. */
    presto_status (*sample)(presto__reader *reader, size_t i, presto_arena *arena,
                            presto_sample *sample_out, presto_error *err);
    /**
     * The values of sample i without a sample, borrowed as `sample` does and until the next call.
     * PRESTO_END: its record is not like those before; ask for `sample`, which may be asked in any
     * case. NULL: never so.
     */
    presto_status (*values)(presto__reader *reader, size_t i, presto_arena *arena,
                            presto__example_values *values_out, presto_error *err);
    /** Sample i as the record that it is stored as. Borrows as `sample`. NULL: not a source of
     * records. */
    presto_status (*record)(presto__reader *reader, size_t i, presto_arena *arena,
                            presto__stored_record *record_out, presto_error *err);
    /** Of a source whose samples may not be counted yet. NULL: they are. */
    const struct presto__source_walk *walk;
    /**
     * The samples from i on, up to `count`, as far as they are whole records that stand next to
     * each other in memory as in the file, frames and all, without a codec. Returns how many; 0:
     * ask `record`. Borrows from `blocks`. NULL: never.
     */
    size_t (*run)(presto__reader *reader, size_t i, size_t count,
                  const presto_record **records_out);
    /** Add the file and place of sample i to a failure of a later stage (a step, the batch). */
    void (*place)(presto__reader *reader, size_t i, presto_error *err);
    /** As place, for a sample that was not fetched. */
    void (*locate)(const presto_source *source, uint64_t number, presto_error *err);
    /** These will be read soon: start reading, without waiting. Only a hint. NULL: nothing can
     * be started. */
    void (*will_read)(presto__reader *reader, const uint64_t *numbers, size_t count);
    /** What must be opened to read these will be soon: as will_read, of a source that is remote.
     * Returns how many of them, from the first on; fewer: there is no room for more now. NULL:
     * nothing has to be opened. */
    size_t (*will_open)(presto__reader *reader, const uint64_t *numbers, size_t count);
    /** For the step read-file; NULL: there are no files. user is the reader. */
    presto_read_file_fn read_file;
    /** Is the payload of sample i in `blocks`, and not in a mapping of the shard? NULL: no. */
    bool (*owned)(const presto__reader *reader, size_t i);
    const presto_codec_spec *(*codec)(const presto_source *source); /* NULL: none */
    /** Add what names the sample among all samples that there may be; NULL: its number. */
    void (*name)(const presto_source *source, uint64_t number, presto__digest *digest);
    uint64_t (*digest)(const presto_source *source); /* of presto__source_digest */
    /** Add what samples depend on: names, sizes and times of all files, and how they are read.
     * `as_named`: also the paths as the user wrote them. */
    presto_status (*identify)(const presto_source *source, bool as_named, presto__digest *digest,
                              presto_error *err);
} presto__source_ops;

struct presto_source {
    const presto__source_ops *ops;
    uint64_t count;      /* after truncation; PRESTO_COUNT_UNKNOWN: ask ops->walk */
    uint64_t full_count; /* before */
    uint64_t mean_bytes; /* of a sample, as a guess; set if the count is unknown */
    uint64_t full_bytes; /* on disk, before truncation */
    presto_feature_spec *features;
    size_t feature_count;
    bool declares_all;         /* samples have no other features */
    presto_feature_spec *seen; /* in the first samples, but not declared: for notes only */
    size_t seen_count;
    bool is_remote;  /* some of it comes over a network */
    bool is_raw;     /* of raw records */
    bool is_checked; /* the frames of a run were checked in full */
    char *main_feature;
    char **label_names;
    size_t label_count;
    char **notes; /* of presto_source_notes */
    presto_note_kind *note_kinds;
    size_t note_count;
    presto_source_part *parts; /* a mix: its inputs. NULL: it is none */
    size_t part_count;
    presto__subset *subset; /* the samples that come; NULL: all. `count` is of all */
    uint64_t subset_digest;
};

/**
 * A kind of source that a pipeline may name. To add one: a file with its descriptor, a line in the
 * table below, and its options in steps/pipeline/source_types.c.
 */
typedef struct presto__source_kind {
    const char *name; /* as in the pipeline's `source: {type: ...}` */
    /**
     * Find the samples below `paths` (at least one; none if the type takes none), as the
     * pipeline's source options say (presto__pipeline_source_option). A sample is anything with a
     * number below `count`: a file, or one of many in a file. All are known after this call.
     * Errors name the file. Owner: caller (presto__source_free); on failure nothing is held.
     */
    presto_status (*open)(const presto_pipeline *pipeline, const char *const *paths,
                          size_t path_count, presto_source **source_out, presto_error *err);
} presto__source_kind;

/** The table of kinds: X(files) is presto__source_files, which its file defines. */
#define PRESTO__SOURCE_KINDS(X)                                                                    \
    X(files)                                                                                       \
    X(hdf5)                                                                                        \
    X(synthetic)                                                                                   \
    X(common_voice)                                                                                \
    X(librispeech)                                                                                 \
    X(tar)                                                                                         \
    X(tfrecord)                                                                                    \
    X(manifest)                                                                                    \
    X(lines)                                                                                       \
    X(jsonl)                                                                                       \
    X(csv)

#define PRESTO__SOURCE_KIND(name) extern const presto__source_kind presto__source_##name;
PRESTO__SOURCE_KINDS(PRESTO__SOURCE_KIND)
#undef PRESTO__SOURCE_KIND

/** NULL: there is no such kind. */
const presto__source_kind *presto__source_kind_find(const char *name);

/** As presto__source_kind.open for types that take records, over a dataset that is open:
 * borrowed. */
presto_status presto__tfrecord_open(const presto_pipeline *pipeline, presto_dataset *dataset,
                                    presto_source **source_out, presto_error *err);

/** Frees what the base struct owns. */
void presto__source_done(presto_source *source);
/** Keep what the user should know about this source: a line of text. It is a caution. */
presto_status presto__source_note(presto_source *source, const char *text, presto_error *err);
presto_status presto__source_note_of(presto_source *source, presto_note_kind kind, const char *text,
                                     presto_error *err);
/** Declare one more feature. */
presto_status presto__source_declare(presto_source *source, const char *name,
                                     presto_encoding encoding, const presto_tensor_spec *spec,
                                     presto_error *err);
/** Serialized tensors stay bytes, but for the main feature, which steps may work on. Before any
 * reader is made. */
void presto__source_keep_bytes(presto_source *source, bool has_steps);
/** The first samples have this feature, others may lack it. */
presto_status presto__source_saw(presto_source *source, const char *name,
                                 const presto_tensor_spec *spec, presto_error *err);
/**
 * Foreign records do not say which feature the steps work on, nor whether its bytes are a
 * TensorProto: set both, before any reader is made.
 */
presto_status presto__source_set_main(presto_source *source, const char *name,
                                      const presto_tensor_spec *spec, presto_error *err);

/** Numbers of samples are below it: as presto_source_count, but for a part of a source. */
uint64_t presto__source_all(const presto_source *source);
/** Count the samples, if they are not counted yet. */
presto_status presto__source_settle(const presto_source *source, presto_error *err);

/** A digest of the names and sizes of the source's files, not of their content. Changes when
 * files come or go. The count is known. */
uint64_t presto__source_digest(const presto_source *source);
/** That of input `part` of a mix. */
uint64_t presto__source_part_digest(const presto_source *mix, size_t part);
/** Positions of one epoch, over all ranks: for a mix, the shares of all its inputs. */
uint64_t presto__source_positions(const presto_source *source);

/* ---- which features of a sample are wanted ---- */

/** Behind the name of a feature list whose steps have different numbers of values: how many each
 * has. */
#define PRESTO__LENGTHS_SUFFIX "/row_lengths"
/** Is `name` that of the lengths of `list`? */
bool presto__is_lengths_of(const char *name, const char *list);

/** Which features are wanted. `features` are owned, by name. */
typedef struct presto__selection {
    presto_feature_spec *features;
    size_t count;
    bool is_all;
} presto__selection;

/** Of features called `names`; no names: all features. */
presto_status presto__selection_make(presto__selection *selection_out, const presto_source *source,
                                     const char *const *names, size_t name_count,
                                     presto_error *err);
void presto__selection_done(presto__selection *selection);
bool presto__selection_has(const presto__selection *selection, presto_span name);
/** Leave out of the sample what is not among the features of the selection. */
void presto__selection_pick(const presto__selection *selection, presto_sample *sample);

/** Leave out of the sample what is not selected. */
static inline void presto__selection_apply(const presto__selection *selection,
                                           presto_sample *sample) {
    if (!selection->is_all)
        presto__selection_pick(selection, sample);
}

/** Is it a value that batches carry? (A feature with no kind set is not.) */
static inline bool presto__feature_has_value(const presto_feature *feature) {
    return feature->encoding != PRESTO_ENCODE_NONE;
}

/**
 * Which of `count` parts (files, inputs) has sample `number`: parts stand `stride` bytes apart, in
 * order, and each says in the uint64_t at `first` which sample is its first.
 */
size_t presto__part_of(const uint64_t *first, size_t stride, size_t count, uint64_t number);

/* ---- the classes that the source option `classes` gives ---- */

/** Names by number. Zero: none are given. */
typedef struct presto__classes {
    char **names;
    size_t count;
    size_t *sorted;   /* their numbers, by name */
    char *from;       /* the path where they stand; NULL: in the option itself */
    bool are_numeric; /* a name is a whole number: labels that are numbers are names, too */
} presto__classes;

/**
 * Read what the option says: a list, a file with a name a line, a dataset that presto-write made, or
 * a folder of folders. `option` NULL or not set: none.
 * Returns: PRESTO_OK; PRESTO_ERR_NOT_FOUND (no such path, no names there); PRESTO_ERR_SYNTAX (a name
 *          twice); PRESTO_ERR_IO; PRESTO_ERR_LIMIT; PRESTO_ERR_MEMORY.
 * Owner:   caller, presto__classes_done.
 */
presto_status presto__classes_read(const presto_option *option, presto__classes *classes_out,
                                   presto_error *err);
void presto__classes_done(presto__classes *classes);

/** The number of a class; SIZE_MAX: there is none of this name. */
size_t presto__classes_find(const presto__classes *classes, const char *name);

/**
 * The number of the class that a text names: digits are a number, unless classes are called by
 * numbers. White space behind it does not count.
 * Returns: PRESTO_OK; PRESTO_ERR_SYNTAX (as presto__classes_fail and _check_number).
 */
presto_status presto__classes_number(const presto__classes *classes, presto_span text,
                                     int64_t *number_out, presto_error *err);
/** A whole number with white space around it; false: the text is none of int64. */
bool presto__take_integer(presto_span text, int64_t *number_out);

/** PRESTO_ERR_SYNTAX: "class 'bee' is not among the 2 of source.classes (ant, cat)". */
presto_status presto__classes_fail(const presto__classes *classes, const char *name,
                                   presto_error *err);
/** Is `label` the number of a class? Else PRESTO_ERR_SYNTAX. */
presto_status presto__classes_check_number(const presto__classes *classes, int64_t label,
                                           presto_error *err);

/** They become the names of the source's labels, which has none yet. */
presto_status presto__classes_name(const presto__classes *classes, presto_source *source,
                                   presto_error *err);

/** Note the classes without a sample: counts[i] is of class i. */
presto_status presto__classes_note_empty(const presto__classes *classes, const uint64_t *counts,
                                         presto_source *source, presto_error *err);

/**
 * The labels of a source whose names are known must have the names and numbers of `classes`, of
 * which it may lack the last ones. PRESTO_ERR_TYPE names the first that differs.
 */
presto_status presto__classes_check(const presto__classes *classes, presto_source *source,
                                    presto_error *err);

/* ---- labels ---- */

typedef struct presto__label_row {
    char *path;     /* without "./" */
    char *text;     /* the label as written */
    int64_t label;  /* its number */
    float fraction; /* or this, if are_fractions */
    uint64_t line;  /* 1-based, where the row starts */
    bool used;
} presto__label_row;

/** The rows of a label file, sorted by path, and the names if the labels are not numbers. */
typedef struct presto__labels {
    presto__label_row *rows;
    size_t count;
    char **names; /* sorted; NULL if the labels are numbers */
    size_t name_count;
    bool are_fractions; /* numbers, not all of them whole */
    uint64_t odd_quote; /* quotes are text because of this line; 0: no such one */
} presto__labels;

/** are_classes: number the texts, whatever they are. */
presto_status presto__labels_parse(presto_span csv, const char *file, bool are_classes,
                                   presto__labels *labels_out, presto_error *err);
void presto__labels_done(presto__labels *labels);
presto__label_row *presto__labels_find(presto__labels *labels, const char *path);

/* ---- names of features ---- */

/** Bytewise: < 0, 0 or > 0, as strcmp. Names may hold anything. */
static inline int presto__compare_names(presto_span a, presto_span b) {
    size_t common = a.bytes < b.bytes ? a.bytes : b.bytes;
    int order = common == 0 ? 0 : memcmp(a.data, b.data, common);
    return order != 0 ? order : (a.bytes > b.bytes) - (a.bytes < b.bytes);
}

/** Sort by strcmp and free duplicates, in place. Returns the new count. */
size_t presto__names_distinct(char **names, size_t count);
/** Position of `name` among sorted names; SIZE_MAX if it is not there. */
size_t presto__names_find(char *const *names, size_t count, const char *name);

/* ---- sources whose samples are not counted when they are opened ---- */

/** What a worker wants to walk over. */
typedef struct presto__walk_wish {
    size_t count; /* samples */
    size_t bytes; /* about so many, and at least a sample */
} presto__walk_wish;

/** What such a source can do. */
typedef struct presto__source_walk {
    /** How many samples there are, as far as is known now. Any thread. */
    uint64_t (*count)(const presto_source *source);
    /** Count them. Any thread. */
    presto_status (*settle)(const presto_source *source, presto_error *err);
    /** As digest, without counts. */
    uint64_t (*digest)(const presto_source *source);
    /** Samples will be walked over from `number` on, until `end`. PRESTO_END: they are counted,
     * there is no need to. */
    presto_status (*begin)(presto_source *source, uint64_t number, presto_error *err);
    void (*end)(presto_source *source);
    /** A walk that does not read: find samples until `number` of them are known. All but the last
     * one may be fetched. *known_out: how many are known, also on failure; nothing can be found
     * after that. One thread at a time. */
    presto_status (*pass)(const presto_source *source, uint64_t number, uint64_t *known_out,
                          presto_error *err);
    /**
     * Find the next samples, and read them into `blocks`; the reader's next fetch is for them and
     * uses that. Fewer than wished for: the source ends, there are too many bytes, or the last one
     * cannot be read. One thread at a time. Fails only without memory.
     */
    presto_status (*step)(presto__reader *reader, const presto__walk_wish *wish,
                          presto__blocks *blocks, size_t *found_out, presto_error *err);
} presto__source_walk;

#endif
