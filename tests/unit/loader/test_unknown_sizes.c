/* SPDX-License-Identifier: Apache-2.0 */
/* Samples of which only the stored size is known: all workers soon have something to do, and what
 * grows by the steps keeps to the limit. */
#include <presto/convert.h>
#include <presto/stream.h>

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "../../../loader/loader_internal.h"
#include "made_source.h"

#define FILES 64
#define GROWN_BYTES ((int64_t)2 << 20)
#define LIMIT_BYTES ((size_t)32 << 20)
#define TAKEN_BYTES ((size_t)48 << 20)   /* by a large sample while it is made */
#define OVERRUN_BYTES ((size_t)40 << 20) /* of one batch, while the consumer holds another one */

static char *dir;
static atomic_int calls, first_calls, inside, most_inside;

static presto_status infer_bytes(const void *state, const presto_tensor_spec *in,
                                 presto_tensor_spec *out_out, presto_error *err) {
    (void)state, (void)in, (void)err;
    *out_out = (presto_tensor_spec){.dtype = PRESTO_UINT8, .rank = 1, .dims = {-1}};
    return PRESTO_OK;
}

static presto_status fill(presto_step_context *context, int64_t bytes, presto_tensor *out_out,
                          presto_error *err) {
    const presto_tensor_spec spec = {.dtype = PRESTO_UINT8, .rank = 1, .dims = {bytes}};
    void *data;
    PRESTO_TRY(presto_step_output(context, &spec, &data, err));
    memset(data, 1, (size_t)bytes);
    *out_out = (presto_tensor){.spec = spec, .data = data};
    return PRESTO_OK;
}

/* But for those of the first batch, calls wait until another one is inside, too; ten seconds at
 * most. */
static presto_status meet(const void *state, presto_step_context *context, const presto_tensor *in,
                          presto_tensor *out_out, presto_error *err) {
    (void)state, (void)in;
    if (atomic_fetch_add(&calls, 1) >= atomic_load(&first_calls)) {
        int now = atomic_fetch_add(&inside, 1) + 1, most = atomic_load(&most_inside);
        while (now > most && !atomic_compare_exchange_weak(&most_inside, &most, now)) {}
        for (int i = 0; i < 10000 && atomic_load(&most_inside) < 2; i++)
            nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
        atomic_fetch_sub(&inside, 1);
    }
    return fill(context, 8, out_out, err);
}

static presto_status meet_large(const void *state, presto_step_context *context,
                                const presto_tensor *in, presto_tensor *out_out,
                                presto_error *err) {
    for (int i = 0; i < 2; i++)
        if (presto_step_scratch(context, TAKEN_BYTES / 2) == NULL)
            return presto_fail_memory(err, TAKEN_BYTES);
    return meet(state, context, in, out_out, err);
}

static presto_status grow(const void *state, presto_step_context *context, const presto_tensor *in,
                          presto_tensor *out_out, presto_error *err) {
    (void)state, (void)in;
    return fill(context, GROWN_BYTES, out_out, err);
}

static const presto_step_type step_meet = {.abi = PRESTO_STEP_ABI,
                                           .name = "meet",
                                           .summary = "Waits for another worker.",
                                           .infer = infer_bytes,
                                           .run = meet};
static const presto_step_type step_meet_large = {.abi = PRESTO_STEP_ABI,
                                                 .name = "meet-large",
                                                 .summary = "Waits, and takes much memory.",
                                                 .infer = infer_bytes,
                                                 .run = meet_large};
static const presto_step_type step_grow = {.abi = PRESTO_STEP_ABI,
                                           .name = "grow",
                                           .summary = "Makes much of little.",
                                           .infer = infer_bytes,
                                           .run = grow};
static const presto_step_type *const own[] = {&step_meet, &step_meet_large, &step_grow};
static const presto_pipeline_options reading = {
    .struct_bytes = sizeof(presto_pipeline_options), .steps = own, .step_count = 3};

static void write_file(const char *name, const char *text) {
    char path[512];
    snprintf(path, sizeof path, "%s/%s", dir, name);
    FILE *file = fopen(path, "wb");
    ck_assert_ptr_nonnull(file);
    fputs(text, file);
    ck_assert_int_eq(fclose(file), 0);
}

static void set_up(const char *step) {
    char name[32], text[256];
    dir = presto_check_temp_dir();
    for (int i = 0; i < FILES; i++) {
        snprintf(name, sizeof name, "%02d.t", i);
        write_file(name, "small");
    }
    snprintf(text, sizeof text,
             "name: sizes\nsource: {type: files, match: ['*.t'], feature: text}\n"
             "steps:\n  - {step: read-file}\n  - {step: %s, yields: made}\n",
             step);
    write_file("sizes.yaml", text);
}

/* Runs the pipeline to its end. All samples must come, in order. */
static presto_loader_stats run(const presto_loader_options *loader_options) {
    char pipeline[512];
    snprintf(pipeline, sizeof pipeline, "%s/sizes.yaml", dir);
    const char *paths[] = {dir};
    presto_error err;
    presto_stream stream;
    presto_stream_options options;
    presto_stream_options_defaults(&options);
    options.pipeline = pipeline;
    options.pipeline_options = &reading;
    options.loader = loader_options;
    ck_assert_ok(presto_stream_open(paths, 1, &options, &stream, &err), &err);
    presto_loader *loader;
    presto_batch *batch;
    presto_status status;
    uint64_t next = 0;
    ck_assert_ok(presto__loader_open(stream.source, stream.plan, loader_options, &loader, &err),
                 &err);
    while ((status = presto_loader_next(loader, &batch, &err)) == PRESTO_OK) {
        ck_assert_uint_eq(batch->rows, loader_options->batch_samples);
        for (size_t i = 0; i < batch->rows; i++)
            ck_assert_uint_eq(batch->sample_numbers[i], next++ % FILES);
        presto_batch_release(batch);
    }
    ck_assert_status(status, PRESTO_END, &err);
    ck_assert_uint_eq(next, FILES * loader_options->range.epochs);
    presto_loader_stats stats;
    presto_loader_get_stats(loader, &stats);
    presto_loader_free(loader);
    presto_stream_close(&stream);
    return stats;
}

/* Together, the files are far smaller than what a worker takes at a time. */
START_TEST(several_workers_share_a_few_small_samples) {
    set_up("meet");
    for (size_t batch = 1; batch <= 8; batch *= 8) {
        atomic_store(&calls, 0);
        atomic_store(&first_calls, (int)batch);
        atomic_store(&most_inside, 0);
        presto_loader_options options;
        presto_loader_options_defaults(&options);
        options.threads = 2;
        options.batch_samples = batch;
        (void)run(&options);
        ck_assert_int_eq(atomic_load(&most_inside), 2);
    }
    presto_check_remove_tree(dir);
    free(dir);
}
END_TEST

/* A conversion bounds the records that wait for the disk, not what its threads need to make them. */
START_TEST(several_threads_of_a_conversion_make_large_samples) {
    char pipeline[512], stored[512];
    presto_convert_options options;
    presto_convert_result result;
    presto_pipeline *own_pipeline;
    presto_error err;
    set_up("meet-large");
    const char *paths[] = {dir};
    snprintf(pipeline, sizeof pipeline, "%s/sizes.yaml", dir);
    snprintf(stored, sizeof stored, "%s/stored", dir);
    atomic_store(&calls, 0);
    atomic_store(&first_calls, 1);
    atomic_store(&most_inside, 0);
    ck_assert_ok(presto_pipeline_load(pipeline, &reading, &own_pipeline, &err), &err);
    presto_convert_options_defaults(&options);
    options.pipeline = own_pipeline;
    options.dir = stored;
    options.threads = 2;
    options.sync = false;
    ck_assert_ok(presto_convert(paths, 1, &options, &result, &err), &err);
    ck_assert_int_eq(atomic_load(&most_inside), 2);
    presto_pipeline_free(own_pipeline);
    presto_check_remove_tree(dir);
    free(dir);
}
END_TEST

START_TEST(samples_that_grow_keep_to_the_limit) {
    set_up("grow");
    for (unsigned threads = 1; threads <= 4; threads++)
        for (size_t batch = 1; batch <= 4; batch *= 4) {
            presto_loader_options options;
            presto_loader_options_defaults(&options);
            options.threads = threads;
            options.batch_samples = batch;
            options.range.epochs = 2;
            options.memory.prefetch_bytes = LIMIT_BYTES;
            presto_loader_stats stats = run(&options);
            ck_assert_uint_gt(stats.peak_queued_bytes, 0);
            ck_assert_uint_le(stats.peak_queued_bytes, LIMIT_BYTES + OVERRUN_BYTES);
        }
    presto_check_remove_tree(dir);
    free(dir);
}
END_TEST

int main(void) {
    const TTest *const tests[] = {
        several_workers_share_a_few_small_samples,
        several_threads_of_a_conversion_make_large_samples,
        samples_that_grow_keep_to_the_limit,
    };
    return presto_check_main("unknown sizes", tests, sizeof tests / sizeof tests[0], 120);
}
