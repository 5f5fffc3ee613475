/* SPDX-License-Identifier: Apache-2.0 */
/* Foreign files with random records, and all that is seen of a stream over them. */
#ifndef WALK_CHECK_H
#define WALK_CHECK_H

#include "../../../base/rng_internal.h"
#include "../../../loader/loader_internal.h"
#include "loader_check.h"

#include <presto/rng.h>

#include "engine/workers_internal.h"

#define MOST_FILES 5
#define MOST_EVENTS 8192

static presto_rng rng;

static inline uint64_t pick(uint64_t least, uint64_t most) {
    return least + presto_rng_below(&rng, most - least + 1);
}

static inline uint64_t start_random(void) {
    uint64_t seed = presto_check_seed();
    presto__rng_key key = {.seed = seed};
    presto__rng_init(&rng, &key);
    return seed;
}

/* ---- files ---- */

typedef struct files {
    char *dir;
    char paths[MOST_FILES][300];
    const char *list[MOST_FILES];
    size_t count;
} files;

static inline void remove_files(files *set) {
    presto_check_remove_tree(set->dir);
    free(set->dir);
}

/* Record i holds its number. */
static inline void write_numbers(const char *path, uint64_t records) {
    presto__shard_writer *writer;
    presto__shard_writer_options options;
    presto_error err;
    presto__shard_writer_options_defaults(&options);
    options.sync = options.write_index = false;
    ck_assert_ok(presto__shard_writer_open(path, &options, &writer, &err), &err);
    for (uint64_t i = 0; i < records; i++)
        ck_assert_ok(presto__shard_writer_append(writer, presto_span_of(&i, sizeof i), &err), &err);
    ck_assert_ok(presto__shard_writer_finish(writer, NULL, &err), &err);
    presto__shard_writer_free(writer);
}

/* ---- what a stream is ---- */

/* The samples of a stream, and those left out, each in their order. */
typedef struct events {
    uint32_t digests[MOST_EVENTS];
    size_t count;
    uint32_t skipped[MOST_EVENTS];
    size_t skipped_count;
    presto_error end;
} events;

static inline void add_event(events *to, uint32_t digest) {
    ck_assert_uint_lt(to->count, MOST_EVENTS);
    to->digests[to->count++] = digest;
}

static inline uint32_t digest_error(const presto_error *err) {
    uint32_t digest = digest_text(digest_text(0, err->message), err->file);
    digest = presto_crc32c(digest, &err->status, sizeof err->status);
    digest = presto_crc32c(digest, &err->record, sizeof err->record);
    return presto_crc32c(digest, &err->offset, sizeof err->offset);
}

static inline void note_skipped(void *user, uint64_t epoch, uint64_t sample,
                                const presto_error *err) {
    events *to = user;
    uint64_t place[] = {epoch, sample};
    ck_assert_uint_lt(to->skipped_count, MOST_EVENTS);
    to->skipped[to->skipped_count++] = presto_crc32c(digest_error(err), place, sizeof place);
}

static inline void note_batch(events *to, const presto_batch *batch) {
    const uint8_t *at = batch->frames.data;
    const presto_batch_feature *feature = batch->features;
    for (size_t i = 0; i < batch->rows; i++) {
        uint64_t place[] = {batch->epoch, batch->sample_numbers[i]};
        uint32_t digest = presto_crc32c(0, place, sizeof place);
        if (batch->frames.bytes > 0) {
            digest = presto_crc32c(digest, at, batch->frame_bytes[i]);
            at += batch->frame_bytes[i];
        } else if (batch->feature_count > 0) {
            presto_span text = presto_batch_string(feature, i);
            uint64_t shape[] = {batch->first, batch->rows, batch->skipped};
            digest = presto_crc32c(digest, text.data, text.bytes);
            digest = presto_crc32c(digest, shape, sizeof shape);
        }
        add_event(to, digest);
    }
}

typedef struct opened_files {
    presto_dataset *dataset;
    presto_source *source;
} opened_files;

static inline presto_status open_files(const files *set, bool tolerate, bool count_later,
                                       opened_files *out, presto_error *err) {
    presto_shard_options options;
    presto_shard_options_defaults(&options);
    options.tolerate = tolerate;
    options.count_later = count_later;
    char kept[320];
    snprintf(kept, sizeof kept, "%s/kept", set->dir);
    if (count_later && pick(0, 2) == 0) {
        options.keep_index = PRESTO_KEEP_INDEX_APART;
        options.index_dir = kept;
    }
    *out = (opened_files){0};
    PRESTO_TRY(presto_dataset_open(set->list, set->count, &options, &out->dataset, err));
    return presto__source_open_records(out->dataset, &out->source, err);
}

static inline void close_files(opened_files *data) {
    presto__source_free(data->source);
    presto_dataset_free(data->dataset);
}

/* Run up to `most` batches; false: there are no more. */
static inline bool run(const opened_files *data, presto_loader_options options, size_t most,
                       events *to, presto_buffer *state) {
    presto_loader *loader;
    presto_batch *batch;
    presto_error err = {.status = PRESTO_OK};
    options.errors.on_skip = note_skipped;
    options.errors.on_skip_user = to;
    to->end = (presto_error){.status = PRESTO_OK};
    presto_status status = presto__loader_open(data->source, NULL, &options, &loader, &err);
    if (status < 0) {
        to->end = err;
        return false;
    }
    for (size_t i = 0; i < most; i++) {
        status = presto_loader_next(loader, &batch, &err);
        if (status != PRESTO_OK)
            break;
        note_batch(to, batch);
        presto_batch_release(batch);
    }
    if (status < 0)
        to->end = err;
    if (state != NULL) {
        state->bytes = 0;
        ck_assert_ok(presto_loader_save_state(loader, state, &err), &err);
    }
    presto_loader_free(loader);
    return status == PRESTO_OK;
}

static inline void assert_same(const events *got, const events *wanted, uint64_t seed,
                               size_t round) {
    ck_assert_msg(got->end.status == wanted->end.status &&
                      strcmp(got->end.message, wanted->end.message) == 0 &&
                      got->end.record == wanted->end.record,
                  "seed %ju, round %zu: ends with \"%s\" (record %ju) instead of \"%s\" (%ju)",
                  (uintmax_t)seed, round, got->end.message, (uintmax_t)got->end.record,
                  wanted->end.message, (uintmax_t)wanted->end.record);
    ck_assert_msg(got->count == wanted->count &&
                      memcmp(got->digests, wanted->digests, got->count * sizeof(uint32_t)) == 0,
                  "seed %ju, round %zu: %zu events instead of %zu", (uintmax_t)seed, round,
                  got->count, wanted->count);
    ck_assert_msg(
        got->skipped_count == wanted->skipped_count &&
            memcmp(got->skipped, wanted->skipped, got->skipped_count * sizeof(uint32_t)) == 0,
        "seed %ju, round %zu: %zu left out instead of %zu", (uintmax_t)seed, round,
        got->skipped_count, wanted->skipped_count);
}

#endif
