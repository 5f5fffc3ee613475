/* SPDX-License-Identifier: Apache-2.0 */
/* A source whose samples all have the same tensor, kept in memory. The test decides how long a
 * fetch takes and what it records. */
#ifndef MADE_SOURCE_H
#define MADE_SOURCE_H

#include "loader_check.h"

#include "source/core/source_internal.h"

typedef struct made_source {
    presto_source base;
    presto__source_ops ops;
    const char *name; /* of the feature */
    presto_tensor_spec spec;
    const void *data; /* borrowed */
} made_source;

typedef struct made_reader {
    presto__reader base;
    const uint64_t *numbers; /* fetched last; set by the test's fetch */
} made_reader;

static inline void made_source_free(presto_source *source) {
    presto__source_done(source);
    free(source);
}

static inline presto_status made_reader_new(presto_source *source,
                                            const presto__reader_options *options,
                                            presto__reader **reader_out, presto_error *err) {
    (void)options, (void)err;
    made_reader *reader = calloc(1, sizeof *reader);
    reader->base.source = source;
    *reader_out = &reader->base;
    return PRESTO_OK;
}

static inline void made_reader_free(presto__reader *reader) {
    free(reader);
}

static inline presto_status made_sample(presto__reader *reader, size_t i, presto_arena *arena,
                                        presto_sample *sample_out, presto_error *err) {
    (void)err;
    const made_source *source = (const made_source *)(const void *)reader->source;
    presto_feature *feature = presto_arena_alloc(arena, sizeof *feature, _Alignof(max_align_t));
    *feature = (presto_feature){
        .name = presto_span_of_text(source->name),
        .encoding = PRESTO_ENCODE_TENSOR,
        .tensor = {.spec = source->spec, .data = source->data},
    };
    *sample_out = (presto_sample){
        .features = feature, .feature_count = 1, .number = ((made_reader *)reader)->numbers[i]};
    return PRESTO_OK;
}

static inline void made_place(presto__reader *reader, size_t i, presto_error *err) {
    (void)reader, (void)i, (void)err;
}

static inline void made_locate(const presto_source *source, uint64_t number, presto_error *err) {
    (void)source, (void)number, (void)err;
}

static inline uint64_t made_digest(const presto_source *source) {
    return source->count;
}

/** `count` samples that claim to be `sample_bytes` each on disk; the rest of `how` but base and ops
 * is copied. presto__source_free frees it. */
static inline presto_source *make_source(
    const made_source *how, uint64_t count, uint64_t sample_bytes,
    presto_status (*fetch)(presto__reader *, const uint64_t *, size_t, presto__blocks *,
                           presto_error *),
    void (*will_read)(presto__reader *, const uint64_t *, size_t)) {
    made_source *source = calloc(1, sizeof *source);
    *source = *how;
    source->ops = (presto__source_ops){.free = made_source_free,
                                       .reader_new = made_reader_new,
                                       .reader_free = made_reader_free,
                                       .fetch = fetch,
                                       .will_read = will_read,
                                       .sample = made_sample,
                                       .place = made_place,
                                       .locate = made_locate,
                                       .digest = made_digest};
    source->base = (presto_source){.ops = &source->ops,
                                   .count = count,
                                   .full_count = count,
                                   .full_bytes = count * sample_bytes,
                                   .main_feature = strdup(how->name)};
    return &source->base;
}

#endif
