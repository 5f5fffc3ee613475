/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The raw source `synthetic`: samples that are made, not read, about as fast as memory takes them.
 *
 * The values of a sample depend on the seed and its number only: a counter-based generator keyed by
 * both (presto_rng) gives 32 words, from which 32 generators start (Marsaglia, "Xorshift RNGs",
 * 2003: 13, 17, 5). In each round each of them gives a word: four uint8, little-endian, or one
 * float32, its upper 24 bits / 2^24.
 */
#include <stdlib.h>

#include <presto/rng.h>

#include "../../base/clock_internal.h"
#include "../../base/memory_internal.h"
#include "../../base/rng_internal.h"
#include "../../steps/pipelines_internal.h"
#include "core/source_internal.h"

#define LANES 32

typedef struct synthetic_source {
    presto_source base;
    uint64_t seed;
    size_t sample_bytes;
    presto_tensor_spec spec;
} synthetic_source;

typedef struct synthetic_reader {
    presto__reader base;
    const uint64_t *numbers; /* of the block: borrowed from the caller of fetch */
} synthetic_reader;

static const synthetic_source *source_of(const presto_source *base) {
    return (const synthetic_source *)base;
}

/* ---- values ---- */

static void start_lanes(uint64_t seed, uint64_t number, uint32_t lanes[LANES]) {
    presto_rng rng;
    const presto__rng_key key = {.seed = seed, .sample = number};
    presto__rng_init(&rng, &key);
    for (size_t i = 0; i < LANES; i += 2) {
        uint64_t word = presto_rng_next(&rng);
        lanes[i] = (uint32_t)word | ((uint32_t)word == 0); /* 0 would stay 0 */
        lanes[i + 1] = (uint32_t)(word >> 32) | (word >> 32 == 0);
    }
}

static inline void next_round(uint32_t lanes[LANES]) {
    for (size_t i = 0; i < LANES; i++) {
        uint32_t word = lanes[i];
        word ^= word << 13;
        word ^= word >> 17;
        lanes[i] = word ^ word << 5;
    }
}

static void make_bytes(uint32_t lanes[LANES], uint8_t *out, size_t bytes) {
    uint32_t round[LANES];
    for (; bytes >= sizeof round; bytes -= sizeof round, out += sizeof round) {
        next_round(lanes);
        memcpy(out, lanes, sizeof round);
    }
    next_round(lanes);
    memcpy(out, lanes, bytes);
}

static void make_floats(uint32_t lanes[LANES], uint8_t *out, size_t bytes) {
    float round[LANES];
    while (bytes > 0) {
        size_t taken = bytes < sizeof round ? bytes : sizeof round;
        next_round(lanes);
        for (size_t i = 0; i < LANES; i++)
            round[i] = (float)(int32_t)(lanes[i] >> 8) * 0x1p-24f;
        memcpy(out, round, taken);
        bytes -= taken;
        out += taken;
    }
}

/* ---- reading ---- */

static presto_status synthetic_reader_new(presto_source *source,
                                          const presto__reader_options *options,
                                          presto__reader **reader_out, presto_error *err) {
    (void)options;
    synthetic_reader *reader = presto__memory_apart(1, sizeof *reader);
    if (reader == NULL)
        return presto_fail_memory(err, sizeof *reader);
    reader->base.source = source;
    *reader_out = &reader->base;
    return PRESTO_OK;
}

static void synthetic_reader_free(presto__reader *reader) {
    free(reader);
}

static presto_status synthetic_fetch(presto__reader *base, const uint64_t *numbers, size_t count,
                                     presto__blocks *blocks, presto_error *err) {
    (void)count, (void)blocks, (void)err;
    ((synthetic_reader *)base)->numbers = numbers;
    return PRESTO_OK;
}

static presto_status synthetic_sample(presto__reader *base, size_t i, presto_arena *arena,
                                      presto_sample *sample_out, presto_error *err) {
    const synthetic_source *source = source_of(base->source);
    uint64_t number = ((const synthetic_reader *)base)->numbers[i];
    uint32_t lanes[LANES];
    presto_feature *feature = presto_arena_alloc(arena, sizeof *feature, _Alignof(max_align_t));
    uint8_t *data = presto_arena_alloc(arena, source->sample_bytes, 64);
    if (feature == NULL || data == NULL)
        return presto_fail_memory(err, source->sample_bytes);
    uint64_t start = presto__clock_ns();
    start_lanes(source->seed, number, lanes);
    if (source->spec.dtype == PRESTO_UINT8)
        make_bytes(lanes, data, source->sample_bytes);
    else
        make_floats(lanes, data, source->sample_bytes);
    base->stats.read_ns += presto__clock_ns() - start;
    base->stats.read_bytes += source->sample_bytes;
    *feature = (presto_feature){.name = presto_span_of_text(base->source->main_feature),
                                .encoding = PRESTO_ENCODE_TENSOR,
                                .tensor = {.spec = source->spec, .data = data}};
    *sample_out = (presto_sample){.features = feature, .feature_count = 1, .number = number};
    return PRESTO_OK;
}

static void synthetic_locate(const presto_source *base, uint64_t number, presto_error *err) {
    (void)base;
    presto_error_set_record(err, number);
}

static void synthetic_place(presto__reader *base, size_t i, presto_error *err) {
    synthetic_locate(base->source, ((const synthetic_reader *)base)->numbers[i], err);
}

/* ---- the source ---- */

static void synthetic_free(presto_source *base) {
    presto__source_done(base);
    free(base);
}

static presto_status synthetic_drop_cache(presto_source *base, presto_error *err) {
    (void)base, (void)err;
    return PRESTO_OK;
}

static presto_status synthetic_identify(const presto_source *base, bool as_named,
                                        presto__digest *digest, presto_error *err) {
    (void)as_named, (void)err;
    const synthetic_source *source = source_of(base);
    const uint64_t facts[] = {source->seed, source->sample_bytes, (uint64_t)source->spec.dtype};
    presto__digest_add(digest, facts, sizeof facts);
    return PRESTO_OK;
}

static uint64_t synthetic_digest(const presto_source *base) {
    presto__digest digest = {{0}};
    (void)synthetic_identify(base, false, &digest, NULL);
    return presto__fnv_mix(digest.state[0], base->count);
}

static const presto__source_ops synthetic_ops = {
    .free = synthetic_free,
    .drop_cache = synthetic_drop_cache,
    .reader_new = synthetic_reader_new,
    .reader_free = synthetic_reader_free,
    .fetch = synthetic_fetch,
    .sample = synthetic_sample,
    .place = synthetic_place,
    .locate = synthetic_locate,
    .digest = synthetic_digest,
    .identify = synthetic_identify,
};

static uint64_t number_of(const presto_pipeline *pipeline, const char *option) {
    return (uint64_t)presto__pipeline_source_option(pipeline, option)->integer;
}

static presto_status synthetic_open(const presto_pipeline *pipeline, const char *const *paths,
                                    size_t path_count, presto_source **source_out,
                                    presto_error *err) {
    (void)paths, (void)path_count;
    const char *feature = presto__pipeline_source_option(pipeline, "feature")->text;
    synthetic_source *source = calloc(1, sizeof *source);
    if (source == NULL)
        return presto_fail_memory(err, sizeof *source);
    presto_source *base = &source->base;
    base->ops = &synthetic_ops;
    base->declares_all = true;
    base->count = base->full_count = number_of(pipeline, "count");
    source->seed = number_of(pipeline, "seed");
    source->sample_bytes = (size_t)number_of(pipeline, "size");
    source->spec = *presto__pipeline_source_output(pipeline);
    base->full_bytes = base->count * source->sample_bytes;
    presto_status status = presto__source_set_main(base, feature, &source->spec, err);
    if (status < 0) {
        synthetic_free(base);
        return status;
    }
    *source_out = base;
    return PRESTO_OK;
}

const presto__source_kind presto__source_synthetic = {.name = "synthetic", .open = synthetic_open};
