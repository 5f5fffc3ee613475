/* SPDX-License-Identifier: Apache-2.0 */
/* A file of known records, written in every way, and compared. */
#ifndef SHARD_CHECK_H
#define SHARD_CHECK_H

#include "../../../base/rng_internal.h"
#include "../../../records/records_internal.h"
#include "presto_check.h"

#include <stdio.h>

#include <presto/rng.h>
#include <presto/shard.h>

#include "shard/shard_internal.h"

static presto_error err;

/* ---- a file of known records ---- */

typedef struct made_file {
    char *dir;
    char path[600];
    presto_buffer bytes; /* payloads back to back */
    size_t *sizes;
    size_t *starts;
    size_t count;
} made_file;

static inline presto_span payload(const made_file *file, size_t i) {
    return presto_span_of(file->bytes.data + file->starts[i], file->sizes[i]);
}

static inline void make_payloads(made_file *file, size_t count, size_t most, uint64_t seed) {
    presto_rng rng;
    presto__rng_init(&rng, &(presto__rng_key){.seed = seed});
    file->count = count;
    file->sizes = calloc(count + 1, sizeof(size_t));
    file->starts = calloc(count + 1, sizeof(size_t));
    for (size_t i = 0; i < count; i++) {
        size_t bytes = presto_rng_below(&rng, 10) == 0 ? 0 : presto_rng_below(&rng, most);
        file->starts[i] = file->bytes.bytes;
        file->sizes[i] = bytes;
        ck_assert_ok(presto_buffer_reserve(&file->bytes, bytes, &err), &err);
        for (size_t k = 0; k < bytes; k++)
            file->bytes.data[file->bytes.bytes + k] = (uint8_t)(presto_rng_next(&rng) & 0x1f);
        file->bytes.bytes += bytes;
    }
}

static inline presto__shard_summary write_file(made_file *file,
                                               const presto__shard_writer_options *options) {
    presto__shard_writer *writer;
    presto__shard_summary summary;
    ck_assert_ok(presto__shard_writer_open(file->path, options, &writer, &err), &err);
    for (size_t i = 0; i < file->count; i++)
        ck_assert_ok(presto__shard_writer_append(writer, payload(file, i), &err), &err);
    ck_assert_ok(presto__shard_writer_finish(writer, &summary, &err), &err);
    presto__shard_writer_free(writer);
    return summary;
}

static inline made_file make_file(const char *name, size_t count, size_t most,
                                  const presto__shard_writer_options *options) {
    made_file file = {.dir = presto_check_temp_dir()};
    snprintf(file.path, sizeof file.path, "%s/%s", file.dir, name);
    make_payloads(&file, count, most, 42);
    write_file(&file, options);
    return file;
}

static inline void drop_file(made_file *file) {
    presto_check_remove_tree(file->dir);
    free(file->dir);
    free(file->sizes);
    free(file->starts);
    presto_buffer_done(&file->bytes);
}

static inline char *index_path(const made_file *file, char *text, size_t bytes) {
    snprintf(text, bytes, "%s.index", file->path);
    return text;
}

static inline presto_shard *open_shard(const char *path, bool map, bool ignore_index) {
    presto_shard *shard;
    presto_shard_options options;
    presto_shard_options_defaults(&options);
    options.map = map;
    options.ignore_index = ignore_index;
    ck_assert_ok(presto_shard_open(path, &options, &shard, &err), &err);
    return shard;
}

static inline uint64_t offset_of(presto_shard *shard, uint64_t record) {
    const uint64_t *offset;
    ck_assert_ok(presto__shard_offsets(shard, record, 0, &offset, &err), &err);
    return *offset;
}

static inline void check_range(presto_shard *shard, const made_file *file, size_t first,
                               size_t count, presto_block *block) {
    ck_assert_ok(presto_shard_fetch(shard, first, count, block, &err), &err);
    ck_assert_uint_eq(block->record_count, count);
    for (size_t i = 0; i < count; i++) {
        ck_assert_int_eq(block->records[i].status, PRESTO_OK);
        ck_assert(presto_span_equal(block->records[i].payload, payload(file, first + i)));
        ck_assert_uint_eq(block->records[i].offset, offset_of(shard, first + i));
    }
}

static inline void check_all(const made_file *file, bool map, bool ignore_index) {
    presto_shard *shard = open_shard(file->path, map, ignore_index);
    presto_block block = {0};
    ck_assert_ok(presto_shard_index(shard, false, NULL, &err), &err);
    ck_assert_uint_eq(presto_shard_records(shard), file->count);
    ck_assert_int_eq(presto__shard_has_index_file(shard), !ignore_index);
    check_range(shard, file, 0, file->count, &block);
    for (size_t step = 1; step < 40; step = step * 2 + 1)
        for (size_t first = 0; first < file->count; first += step)
            check_range(shard, file, first, step < file->count - first ? step : file->count - first,
                        &block);
    check_range(shard, file, file->count, 0, &block);
    presto_block_done(&block);
    presto_shard_free(shard);
}

#endif
