/* SPDX-License-Identifier: Apache-2.0 */
/* Mixes of random datasets, weights and orders, and what comes out of them. */
#ifndef MIX_CHECK_H
#define MIX_CHECK_H

#include <sys/stat.h>

#include "../../../base/rng_internal.h"
#include "../../../loader/loader_internal.h"
#include "loader_check.h"

#include <presto/mix.h>
#include <presto/rng.h>

#include "order/order_internal.h"

#define MOST 6
#define MOST_ROWS 60000

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define ROUNDS 12
#else
#define ROUNDS 40
#endif

static presto_rng rng;
static presto_error err;

static inline uint64_t pick(uint64_t least, uint64_t most) {
    return least + presto_rng_below(&rng, most - least + 1);
}

static inline void start_random(void) {
    presto__rng_key key = {.seed = presto_check_seed()};
    presto__rng_init(&rng, &key);
}

/* Datasets in folders of their own, and their mix. */
typedef struct mixed {
    char *base;
    char dirs[MOST][64];
    presto_mix_input inputs[MOST];
    size_t count;
    presto_mix_epoch epoch;
    presto_partition partition; /* of each input */
    presto_stream stream;
    const presto_source_part *parts;
    uint64_t epoch_samples;
} mixed;

static inline void make_input(mixed *m, const made *how, double weight) {
    char *dir = m->dirs[m->count];
    snprintf(dir, sizeof m->dirs[0], "%s/in-%zu", m->base, m->count);
    ck_assert_int_eq(mkdir(dir, 0777), 0);
    make_dataset(dir, how);
    m->inputs[m->count++] = (presto_mix_input){.path = dir, .weight = weight};
}

static inline mixed start(presto_mix_epoch epoch) {
    return (mixed){.base = presto_check_temp_dir(), .epoch = epoch};
}

static inline presto_status open_mix(mixed *m, const presto_stream_options *stream) {
    presto_mix_options options;
    presto_mix_options_defaults(&options);
    options.inputs = m->inputs;
    options.input_count = m->count;
    options.epoch = m->epoch;
    options.stream = stream;
    presto_status status = presto_stream_open_mix(&options, &m->stream, &err);
    if (status < 0)
        return status;
    size_t count;
    m->parts = presto_source_parts(m->stream.source, &count);
    ck_assert_uint_eq(count, m->count);
    m->epoch_samples = 0;
    for (size_t k = 0; k < count; k++)
        m->epoch_samples += m->parts[k].epoch_samples;
    return status;
}

static inline void finish(mixed *m) {
    presto_stream_close(&m->stream);
    presto_check_remove_tree(m->base);
    free(m->base);
}

/* An epoch of the mix has at most about 2000 samples. */
static inline mixed random_mix(void) {
    static const char *const codecs[] = {"none", "zlib:1", "lz4"};
    mixed m = start((presto_mix_epoch)pick(0, 2));
    size_t count = (size_t)pick(1, MOST);
    for (size_t k = 0; k < count; k++) {
        made how = {
            .samples = pick(1, 120), .values = 3, .odd = UINT64_MAX, .codec = codecs[pick(0, 2)]};
        how.shards = pick(1, how.samples < 3 ? how.samples : 3);
        double most = m.epoch == PRESTO_MIX_WEIGHTS ? 2000 : 400;
        make_input(&m, &how, (double)pick(40, (uint64_t)most) / 400);
    }
    presto_stream_options stream;
    presto_stream_options_defaults(&stream);
    stream.partition = (presto_partition){
        .ratio = "3/1", .part = pick(0, 1) == 0 ? "train" : "eval", .seed = pick(0, 9)};
    if (pick(0, 1) == 0 && open_mix(&m, &stream) == PRESTO_OK) /* there may be none in the part */
        m.partition = stream.partition;
    else
        ck_assert_ok(open_mix(&m, NULL), &err);
    return m;
}

static inline void choose_work(presto_loader_options *options) {
    options->threads = (unsigned)pick(0, 4);
    options->memory.block_samples = (size_t)pick(1, 60);
    options->memory.prefetch_bytes = (size_t)pick(1, 1 << 20);
    options->cache.bytes = options->output == PRESTO_OUTPUT_BATCHES ? pick(0, 1) << 16 : 0;
}

static inline presto_loader_options random_options(void) {
    static const presto_shuffle_kind shuffles[] = {PRESTO_SHUFFLE_NONE, PRESTO_SHUFFLE_FULL,
                                                   PRESTO_SHUFFLE_BLOCKS};
    presto_loader_options options;
    presto_loader_options_defaults(&options);
    options.output = (presto_output_kind)pick(0, 1);
    options.batch_samples = (size_t)pick(1, 40);
    options.order.shuffle = shuffles[pick(0, 2)];
    options.order.shuffle_window = pick(1, 50);
    options.order.seed = pick(0, UINT64_MAX - 1);
    options.range.epochs = pick(1, 3);
    choose_work(&options);
    return options;
}

/* The rows of a stream. */
typedef struct rows {
    uint64_t numbers[MOST_ROWS], epochs[MOST_ROWS], positions[MOST_ROWS];
    size_t count;
} rows;

/* Take up to `most` batches; PRESTO_END: that was all. */
static inline presto_status take(presto_source *source, const presto_loader_options *options,
                                 size_t most, rows *to, presto_buffer *state) {
    presto_loader *loader;
    presto_batch *batch;
    presto_status status = PRESTO_OK;
    ck_assert_ok(presto__loader_open(source, NULL, options, &loader, &err), &err);
    for (size_t i = 0; i < most; i++) {
        status = presto_loader_next(loader, &batch, &err);
        if (status != PRESTO_OK)
            break;
        ck_assert_uint_lt(to->count + batch->rows, MOST_ROWS);
        for (size_t row = 0; row < batch->rows; row++) {
            to->numbers[to->count] = batch->sample_numbers[row];
            to->epochs[to->count] = batch->epoch;
            to->positions[to->count++] = batch->first + row;
        }
        presto_batch_release(batch);
    }
    ck_assert_msg(status >= 0, "%s", err.message);
    if (state != NULL) {
        state->bytes = 0;
        ck_assert_ok(presto_loader_save_state(loader, state, &err), &err);
    }
    presto_loader_free(loader);
    return status;
}

static rows whole, other;

/* ---- states that belong to something else ---- */

static inline mixed two_inputs(double weight) {
    mixed m = start(PRESTO_MIX_LONGEST);
    make_input(&m, &(made){.samples = 90, .shards = 1, .values = 1, .odd = UINT64_MAX}, weight);
    make_input(&m, &(made){.samples = 40, .shards = 1, .values = 1, .odd = UINT64_MAX}, 1);
    ck_assert_ok(open_mix(&m, NULL), &err);
    return m;
}

#endif
