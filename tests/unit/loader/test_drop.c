/* SPDX-License-Identifier: Apache-2.0 */
/* Samples that a step does not want: left out of every output, counted, no error. */
#include <presto/convert.h>
#include <presto/stream.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../../loader/loader_internal.h"
#include "../../../steps/pipelines_internal.h"
#include "made_source.h"

#define FILES 60
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define MANY UINT64_C(100000)
#else
#define MANY UINT64_C(1000000)
#endif

static char *dir;
static bool wanted[FILES];
static size_t wanted_count;

static presto_status infer_same(const void *state, const presto_tensor_spec *in,
                                presto_tensor_spec *out_out, presto_error *err) {
    (void)state, (void)err;
    *out_out = *in;
    return PRESTO_OK;
}

/* Files that start with 'k' are kept, with 'd' dropped, with 'x' damaged. */
static presto_status keep(const void *state, presto_step_context *context, const presto_tensor *in,
                          presto_tensor *out_out, presto_error *err) {
    (void)state, (void)context;
    if (in->strings[0].data[0] == 'd')
        return PRESTO_DROP;
    if (in->strings[0].data[0] == 'x')
        return presto_fail(err, PRESTO_ERR_CORRUPT, 0, "an x");
    *out_out = *in;
    return PRESTO_OK;
}

static const presto_step_type step_keep = {.abi = PRESTO_STEP_ABI,
                                           .name = "keep",
                                           .summary = "Keeps what starts with k.",
                                           .flags = PRESTO_STEP_DROPS,
                                           .infer = infer_same,
                                           .run = keep};
static const presto_step_type *const own[] = {&step_keep};
static const presto_pipeline_options reading = {
    .struct_bytes = sizeof(presto_pipeline_options), .steps = own, .step_count = 1};

static void path_of(char *path, size_t bytes, const char *name) {
    snprintf(path, bytes, "%s/%s", dir, name);
}

static void write_file(const char *name, const char *text) {
    char path[512];
    path_of(path, sizeof path, name);
    FILE *file = fopen(path, "wb");
    ck_assert_ptr_nonnull(file);
    fputs(text, file);
    ck_assert_int_eq(fclose(file), 0);
}

/* About half of the files, all of the last twenty but one; file 3 is damaged if `damage`. */
static void set_up(bool damage) {
    dir = presto_check_temp_dir();
    uint64_t seed = presto_check_seed();
    wanted_count = 0;
    for (size_t i = 0; i < FILES; i++) {
        char name[32], text[32];
        wanted[i] = i >= 40 ? i == 50 : ((seed >> i) & 1) != 0;
        bool is_damaged = damage && i == 3;
        wanted[i] = wanted[i] && !is_damaged;
        wanted_count += wanted[i];
        snprintf(name, sizeof name, "%02zu.t", i);
        snprintf(text, sizeof text, "%c%zu", is_damaged ? 'x' : wanted[i] ? 'k' : 'd', i);
        write_file(name, text);
    }
    write_file("keep.yaml", "name: keep\nsource: {type: files, match: ['*.t'], feature: text}\n"
                            "steps:\n  - {step: read-file}\n  - {step: keep, yields: kept}\n");
}

static void tear_down(void) {
    presto_check_remove_tree(dir);
    free(dir);
}

static void open_files(presto_stream *stream, bool cache) {
    char pipeline[512];
    path_of(pipeline, sizeof pipeline, "keep.yaml");
    const char *paths[] = {dir};
    presto_error err;
    presto_stream_options options;
    presto_stream_options_defaults(&options);
    options.pipeline = pipeline;
    options.pipeline_options = &reading;
    presto_loader_options loader;
    presto_loader_options_defaults(&loader);
    loader.cache.bytes = cache ? (size_t)1 << 20 : 0;
    options.loader = &loader;
    ck_assert_ok(presto_stream_open(paths, 1, &options, stream, &err), &err);
}

static presto_loader_options with(unsigned threads) {
    presto_loader_options options;
    presto_loader_options_defaults(&options);
    options.threads = threads;
    options.batch_samples = 7;
    options.range.epochs = 2;
    options.memory.block_samples = 16;
    return options;
}

/* Runs a loader to its end: digest of what it delivers, which must be the wanted samples. */
static uint64_t deliver(const presto_stream *stream, const presto_loader_options *options,
                        presto_loader_stats *stats_out) {
    presto_error err;
    presto_loader *loader;
    presto_batch *batch;
    presto_status status;
    uint64_t digest = 1469598103934665603u, rows = 0, left_out = 0;
    ck_assert_ok(presto__loader_open(stream->source, stream->plan, options, &loader, &err), &err);
    while ((status = presto_loader_next(loader, &batch, &err)) == PRESTO_OK) {
        for (size_t i = 0; i < batch->rows; i++) {
            ck_assert(wanted[batch->sample_numbers[i]]);
            digest = (digest ^ batch->sample_numbers[i]) * 1099511628211u;
        }
        rows += batch->rows;
        left_out += batch->skipped;
        presto_batch_release(batch);
    }
    ck_assert_status(status, PRESTO_END, &err);
    presto_loader_get_stats(loader, stats_out);
    ck_assert_uint_eq(rows, 2 * wanted_count);
    ck_assert_uint_le(left_out, 2 * (FILES - wanted_count));
    presto_loader_free(loader);
    return digest;
}

START_TEST(dropped_samples_are_in_no_output_and_no_error) {
    presto_stream stream;
    set_up(false);
    for (int cache = 0; cache < 2; cache++) {
        open_files(&stream, cache != 0);
        for (int output = 0; output < 3; output++)
            for (int shuffle = 0; shuffle < 2; shuffle++) {
                static const unsigned threads[] = {0, 1, 2, 8};
                uint64_t first = 0;
                if (cache != 0 && output == PRESTO_OUTPUT_RECORDS)
                    continue;
                for (size_t t = 0; t < 4; t++) {
                    presto_loader_stats stats;
                    presto_loader_options options = with(threads[t]);
                    options.output = (presto_output_kind)output;
                    options.order.shuffle =
                        shuffle != 0 ? PRESTO_SHUFFLE_FULL : PRESTO_SHUFFLE_NONE;
                    options.cache.bytes = cache != 0 ? (size_t)1 << 20 : 0;
                    options.cache.plan = stream.cache_plan;
                    uint64_t digest = deliver(&stream, &options, &stats);
                    first = t == 0 ? digest : first;
                    ck_assert_uint_eq(digest, first);
                    ck_assert_uint_eq(stats.dropped, 2 * (FILES - wanted_count));
                    ck_assert_uint_eq(stats.skipped, 0);
                    ck_assert_uint_eq(stats.samples, 2 * wanted_count);
                }
            }
        presto_stream_close(&stream);
    }
    tear_down();
}
END_TEST

START_TEST(dropped_samples_are_in_no_budget) {
    presto_stream stream;
    presto_error err;
    presto_loader *loader;
    presto_batch *batch;
    presto_status status;
    set_up(true);
    open_files(&stream, false);
    presto_loader_options options = with(2);
    ck_assert_ok(presto__loader_open(stream.source, stream.plan, &options, &loader, &err), &err);
    while ((status = presto_loader_next(loader, &batch, &err)) == PRESTO_OK)
        presto_batch_release(batch);
    ck_assert_status(status, PRESTO_ERR_CORRUPT, &err); /* dropping forgives no damage */
    presto_loader_free(loader);
    options.errors.policy = PRESTO_ON_ERROR_SKIP;
    options.errors.skip_limit = 1; /* the one damaged file, in each of both epochs */
    presto_loader_stats stats;
    (void)deliver(&stream, &options, &stats);
    ck_assert_uint_eq(stats.skipped, 2);
    ck_assert_uint_eq(stats.dropped, 2 * (FILES - wanted_count) - 2);
    presto_stream_close(&stream);
    tear_down();
}
END_TEST

START_TEST(a_conversion_stores_what_is_left) {
    char pipeline_path[512], out[512];
    presto_error err;
    presto_pipeline *pipeline;
    set_up(false);
    path_of(pipeline_path, sizeof pipeline_path, "keep.yaml");
    ck_assert_ok(presto_pipeline_load(pipeline_path, &reading, &pipeline, &err), &err);
    for (unsigned threads = 0; threads < 4; threads++) {
        char name[32];
        snprintf(name, sizeof name, "out-%u", threads);
        path_of(out, sizeof out, name);
        presto_convert_options options;
        presto_convert_result result;
        presto_convert_options_defaults(&options);
        options.threads = threads;
        options.shards = 3;
        options.sync = false;
        options.pipeline = pipeline;
        options.dir = out;
        const char *paths[] = {dir};
        ck_assert_ok(presto_convert(paths, 1, &options, &result, &err), &err);
        ck_assert_uint_eq(result.samples, wanted_count);
        const char *datasets[] = {out};
        presto_dataset *dataset;
        presto_shard_options shard;
        presto_shard_options_defaults(&shard);
        ck_assert_ok(presto_dataset_open(datasets, 1, &shard, &dataset, &err), &err);
        ck_assert_uint_eq(presto_dataset_records(dataset), wanted_count);
        presto_dataset_free(dataset);
    }
    presto_pipeline_free(pipeline);
    tear_down();
}
END_TEST

/* ---- many samples ---- */

/* One sample in ten is kept, or all; the output is asked for before that is known. */
static presto_status draw(const void *state, presto_step_context *context, const presto_tensor *in,
                          presto_tensor *out_out, presto_error *err) {
    void *data;
    (void)state;
    PRESTO_TRY(presto_step_output(context, &in->spec, &data, err));
    memcpy(data, in->data, presto_tensor_bytes(in));
    *out_out = (presto_tensor){.spec = in->spec, .data = data};
    return presto_rng_below(presto_step_rng(context), 10) == 0 ? PRESTO_OK : PRESTO_DROP;
}

static presto_status copy(const void *state, presto_step_context *context, const presto_tensor *in,
                          presto_tensor *out_out, presto_error *err) {
    presto_status status = draw(state, context, in, out_out, err);
    return status == PRESTO_DROP ? PRESTO_OK : status;
}

static const presto_step_type step_draw = {.abi = PRESTO_STEP_ABI,
                                           .name = "draw",
                                           .summary = "Keeps one sample in ten.",
                                           .flags = PRESTO_STEP_DROPS | PRESTO_STEP_RANDOM,
                                           .infer = infer_same,
                                           .run = draw};
static presto_status draw_none(const void *state, presto_step_context *context,
                               const presto_tensor *in, presto_tensor *out_out, presto_error *err) {
    presto_status status = draw(state, context, in, out_out, err);
    return status == PRESTO_OK ? PRESTO_DROP : status;
}

static const presto_step_type step_draw_none = {.abi = PRESTO_STEP_ABI,
                                                .name = "draw-none",
                                                .summary = "Keeps no sample.",
                                                .flags = PRESTO_STEP_DROPS,
                                                .infer = infer_same,
                                                .run = draw_none};
static const presto_step_type step_copy = {.abi = PRESTO_STEP_ABI,
                                           .name = "copy",
                                           .summary = "Keeps all samples.",
                                           .flags = PRESTO_STEP_RANDOM,
                                           .infer = infer_same,
                                           .run = copy};

static presto_status fetch_made(presto__reader *reader, const uint64_t *numbers, size_t count,
                                presto__blocks *blocks, presto_error *err) {
    (void)count, (void)blocks, (void)err;
    ((made_reader *)(void *)reader)->numbers = numbers;
    return PRESTO_OK;
}

/* With a feature whose length differs from sample to sample. */
static presto_status sample_varying(presto__reader *reader, size_t i, presto_arena *arena,
                                    presto_sample *sample_out, presto_error *err) {
    static const int64_t numbers[50];
    presto_feature *features =
        presto_arena_alloc(arena, 2 * sizeof *features, _Alignof(max_align_t));
    PRESTO_TRY(made_sample(reader, i, arena, sample_out, err));
    features[0] = sample_out->features[0];
    features[1] =
        (presto_feature){.name = presto_span_of_text("tail"), .encoding = PRESTO_ENCODE_INT64};
    features[1].tensor.spec = (presto_tensor_spec){
        .dtype = PRESTO_INT64, .rank = 1, .dims = {(int64_t)(sample_out->number % 50 + 1)}};
    features[1].tensor.data = numbers;
    sample_out->features = features;
    sample_out->feature_count = 2;
    return PRESTO_OK;
}

/* A stream of `count` samples of 64 bytes and more, from one step. */
typedef struct many {
    const char *step;
    uint64_t count;
    unsigned threads;
    uint64_t epochs; /* 0: one */
    bool completion;
    presto_status end; /* 0: PRESTO_END */
    presto_error *err; /* filled, if not NULL */
} many;

/* The digest of the numbers of the samples that it delivers. */
static uint64_t run_many(const many *job, presto_loader_stats *stats_out) {
    static const float values[16];
    const presto_step_type *const steps[] = {&step_draw, &step_draw_none, &step_copy};
    const presto_pipeline_options all = {
        .struct_bytes = sizeof all, .steps = steps, .step_count = 3};
    const made_source how = {
        .name = "x", .spec = {.dtype = PRESTO_FLOAT32, .rank = 1, .dims = {16}}, .data = values};
    char yaml[200];
    snprintf(yaml, sizeof yaml,
             "name: p\nsource: {type: files, match: ['*'], feature: x}\nsteps: [{step: %s}]\n",
             job->step);
    presto_error err;
    presto_pipeline *pipeline;
    presto_plan *plan;
    presto__plan_options planning;
    presto__plan_options_defaults(&planning);
    planning.in = &how.spec;
    ck_assert_ok(presto__pipeline_parse(presto_span_of_text(yaml), "p", &all, &pipeline, &err),
                 &err);
    ck_assert_ok(presto__plan_new(pipeline, &planning, &plan, &err), &err);
    presto_source *source = make_source(&how, job->count, sizeof values, fetch_made, NULL);
    ((made_source *)(void *)source)->ops.sample = sample_varying;
    presto_loader_options options;
    presto_loader_options_defaults(&options);
    options.threads = job->threads;
    options.batch_samples = 64;
    options.order.completion = job->completion;
    options.range.epochs = job->epochs == 0 ? 1 : job->epochs;
    presto_loader *loader;
    presto_batch *batch;
    presto_status status;
    uint64_t digest = 1469598103934665603u;
    ck_assert_ok(presto__loader_open(source, plan, &options, &loader, &err), &err);
    while ((status = presto_loader_next(loader, &batch, &err)) == PRESTO_OK) {
        for (size_t i = 0; i < batch->rows; i++)
            digest = (digest ^ batch->sample_numbers[i]) * 1099511628211u;
        presto_batch_release(batch);
    }
    ck_assert_status(status, job->end == PRESTO_OK ? PRESTO_END : job->end, &err);
    if (job->err != NULL)
        *job->err = err;
    presto_loader_get_stats(loader, stats_out);
    presto_loader_free(loader);
    presto__source_free(source);
    presto__plan_free(plan);
    presto_pipeline_free(pipeline);
    return digest;
}

START_TEST(a_dropped_sample_costs_a_few_bytes) {
    presto_loader_stats all, few, threaded;
    (void)run_many(&(many){.step = "copy", .count = MANY / 10}, &all);
    uint64_t digest = run_many(&(many){.step = "draw", .count = MANY}, &few);
    ck_assert_uint_eq(all.samples, MANY / 10);
    ck_assert_uint_eq(few.samples + few.dropped, MANY);
    ck_assert_uint_gt(few.dropped, MANY / 100 * 89);
    ck_assert_uint_lt(few.dropped, MANY / 100 * 91);
    /* Without threads, one packet of 1024 samples is in flight. */
    ck_assert_uint_le(few.peak_queued_bytes, all.peak_queued_bytes + (size_t)1024 * 16);
    const many in_threads = {.step = "draw", .count = MANY, .threads = 2};
    ck_assert_uint_eq(run_many(&in_threads, &threaded), digest);
    ck_assert_uint_eq(threaded.dropped, few.dropped);
}
END_TEST

/* It would wait for its first batch forever. Each epoch may give nothing where they have an end. */
START_TEST(an_endless_stream_without_samples_fails) {
    presto_loader_stats stats;
    presto_error err;
    many job = {.step = "draw-none", .count = 1000, .epochs = 5};
    (void)run_many(&job, &stats);
    ck_assert_uint_eq(stats.dropped, 5000);
    job.epochs = PRESTO_EPOCHS_ENDLESS;
    job.end = PRESTO_ERR_ARGUMENT;
    job.err = &err;
    for (int completion = 0; completion < 2; completion++)
        for (job.threads = 0; job.threads < 4; job.threads++) {
            job.completion = completion == 1;
            (void)run_many(&job, &stats);
            ck_assert_ptr_nonnull(strstr(err.message, "delivered no batch"));
            ck_assert_uint_eq(stats.samples, 0);
        }
}
END_TEST

int main(void) {
    const TTest *const tests[] = {
        dropped_samples_are_in_no_output_and_no_error,
        dropped_samples_are_in_no_budget,
        a_conversion_stores_what_is_left,
        a_dropped_sample_costs_a_few_bytes,
        an_endless_stream_without_samples_fails,
    };
    return presto_check_main("drop", tests, sizeof tests / sizeof tests[0], 120);
}
