/* SPDX-License-Identifier: Apache-2.0 */
/* The rules of presto/presto.h, which is all of Presto that this file includes: NULL options are
 * the defaults, and ends take NULL. */
#define _XOPEN_SOURCE 700
#include <presto/presto.h>

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "../../../loader/loader_internal.h"
#include "../../../records/records_internal.h"
#include "../../../steps/pipelines_internal.h"
#include "presto_check.h"

static char *dir;
static char photos[700], dataset_dir[700], shard_path[700];
static presto_pipeline *pipeline;

static void set_up(void) {
    presto_error err;
    char command[2200];
    dir = presto_check_temp_dir();
    snprintf(photos, sizeof photos, "%s/photos", dir);
    snprintf(dataset_dir, sizeof dataset_dir, "%s/dataset", dir);
    snprintf(shard_path, sizeof shard_path, "%s/own.tfrecord", dir);
    snprintf(command, sizeof command,
             "'%s' -n 12 -c 2 --width 60 --height 50 -j 1 -o '%s' >'%s.log' 2>&1",
             PRESTO_CORPUS_PROGRAM, photos, photos);
    ck_assert_msg(system(command) == 0, "cannot run %s", command);
    ck_assert_ok(presto_pipeline_load("cv", NULL, &pipeline, &err), &err);
}

static void tear_down(void) {
    presto_pipeline_free(pipeline);
    presto_check_remove_tree(dir);
    free(dir);
}

static void convert(presto_convert_result *result) {
    presto_error err;
    const char *paths[] = {photos};
    presto_convert_options options;
    presto_convert_options_defaults(&options);
    options.pipeline = pipeline;
    options.dir = dataset_dir;
    ck_assert_ok(presto_convert(paths, 1, &options, result, &err), &err);
}

START_TEST(version_macros_are_those_of_the_library) {
    char text[32];
    snprintf(text, sizeof text, "%d.%d.%d", PRESTO_VERSION_MAJOR, PRESTO_VERSION_MINOR,
             PRESTO_VERSION_PATCH);
    ck_assert_str_eq(PRESTO_VERSION_TEXT, text);
    ck_assert_str_eq(presto_version(), text);
}
END_TEST

/* From raw files to batches, and not one option set. */
START_TEST(streams_take_null_options) {
    presto_error err;
    presto_convert_result result;
    set_up();
    convert(&result);
    ck_assert_uint_eq(result.samples, 12);
    ck_assert_uint_eq(result.shards, 1);

    const char *paths[] = {dataset_dir};
    presto_stream stream;
    presto_loader *loader;
    presto_batch *batch;
    uint64_t rows = 0;
    presto_status status;
    ck_assert_ok(presto_stream_open(paths, 1, NULL, &stream, &err), &err);
    ck_assert_ok(presto__loader_open(stream.source, stream.plan, NULL, &loader, &err), &err);
    for (; (status = presto_loader_next(loader, &batch, &err)) == PRESTO_OK; rows += batch->rows) {
        ck_assert_uint_eq(batch->rows, 1);
        ck_assert_uint_eq(batch->sample_numbers[0], rows);
        presto_batch_release(batch);
    }
    ck_assert_status(status, PRESTO_END, &err);
    ck_assert_uint_eq(rows, 12);
    presto_loader_free(loader);
    presto_stream_close(&stream);
    ck_assert_ptr_null(stream.source);
    presto_stream_close(&stream);
    tear_down();
}
END_TEST

/* Raw files, and nothing but a pipeline's name. */
static presto_stream_options input_of(const char *name, const presto_loader_options *loader) {
    presto_stream_options input;
    presto_stream_options_defaults(&input);
    input.pipeline = name;
    input.loader = loader;
    return input;
}

static presto_loader *open_paths(const char *path, const presto_stream_options *input) {
    const char *paths[] = {path};
    presto_loader *loader = NULL;
    presto_error err;
    ck_assert_ok(presto_loader_open_paths(paths, 1, input, &loader, &err), &err);
    return loader;
}

/* Takes up to `most` batches; the sum of all sample numbers plus one, weighted by their place. */
static uint64_t take(presto_loader *loader, uint64_t place, uint64_t most) {
    uint64_t sum = 0;
    presto_batch *batch;
    presto_error err;
    for (uint64_t i = 0; i < most && presto_loader_next(loader, &batch, &err) == PRESTO_OK; i++) {
        for (size_t row = 0; row < batch->rows; row++)
            sum += ++place * (batch->sample_numbers[row] + 1);
        presto_batch_release(batch);
    }
    return sum;
}

START_TEST(one_call_opens_a_stream_and_its_state) {
    presto_error err;
    presto_convert_result result;
    presto_buffer state = {0};
    presto_loader_options options;
    set_up();
    convert(&result);
    presto_loader_options_defaults(&options);
    options.order.shuffle = PRESTO_SHUFFLE_FULL;
    options.batch_samples = 3;
    presto_stream_options input = input_of(NULL, &options);

    presto_loader *loader = open_paths(dataset_dir, &input);
    ck_assert_uint_eq(presto_source_count(presto__loader_source(loader)), 12);
    uint64_t whole = take(loader, 0, UINT64_MAX);
    presto_loader_free(loader);

    loader = open_paths(dataset_dir, &input);
    uint64_t first = take(loader, 0, 2);
    ck_assert_ok(presto_loader_save_state(loader, &state, &err), &err);
    presto_loader_free(loader);
    options.range.state = presto_buffer_span(&state);
    loader = open_paths(dataset_dir, &input);
    ck_assert_uint_eq(first + take(loader, 6, UINT64_MAX), whole);

    /* At the end nothing remains, and that is no failure. */
    presto_buffer_done(&state);
    ck_assert_ok(presto_loader_save_state(loader, &state, &err), &err);
    presto_loader_free(loader);
    options.range.state = presto_buffer_span(&state);
    loader = open_paths(dataset_dir, &input);
    ck_assert_uint_eq(take(loader, 0, UINT64_MAX), 0);
    presto_loader_free(loader);

    /* Another seed is another stream. */
    const char *paths[] = {dataset_dir};
    options.order.seed = 1;
    ck_assert_status(presto_loader_open_paths(paths, 1, &input, &loader, &err), PRESTO_ERR_ARGUMENT,
                     &err);
    presto_buffer_done(&state);
    tear_down();
}
END_TEST

/* What the loader may skip is skipped, and what it caches is split, without repeating the
 * options. */
START_TEST(one_call_derives_what_the_loader_needs) {
    presto_error err;
    presto_convert_result result;
    presto_loader_options options;
    presto_loader_stats stats;
    char shard[1400];
    set_up();
    presto_loader_options_defaults(&options);
    options.cache.bytes = 64 << 20;
    options.range.epochs = 2;
    presto_stream_options input = input_of("cv", &options);
    presto_loader *loader = open_paths(photos, &input);
    (void)take(loader, 0, UINT64_MAX);
    presto_loader_get_stats(loader, &stats);
    ck_assert_uint_eq(stats.cached_samples, 12);
    ck_assert_uint_eq(presto_loader_step_stats(loader, 0).samples, 12); /* once, not twice */
    presto_loader_free(loader);

    /* A length that is damaged: without tolerance the file cannot be opened. */
    convert(&result);
    snprintf(shard, sizeof shard, "%s/data-00000-of-00001.tfrecord", dataset_dir);
    size_t bytes;
    uint8_t *content = presto_check_read_file(shard, &bytes);
    content[2] ^= 0x40;
    presto_check_write_file(shard, presto_span_of(content, bytes));
    free(content);
    presto_loader_options_defaults(&options);
    options.errors.policy = PRESTO_ON_ERROR_SKIP;
    options.output = PRESTO_OUTPUT_BATCHES;
    input = input_of(NULL, &options);
    loader = open_paths(dataset_dir, &input);
    (void)take(loader, 0, UINT64_MAX);
    presto_loader_get_stats(loader, &stats);
    ck_assert_uint_eq(stats.skipped, 1);
    ck_assert_uint_eq(stats.samples, 11);
    presto_loader_free(loader);

    const char *paths[] = {dataset_dir};
    presto_batch *batch;
    ck_assert_ok(presto_loader_open_paths(paths, 1, NULL, &loader, &err), &err);
    ck_assert_status(presto_loader_next(loader, &batch, &err), PRESTO_ERR_CORRUPT, &err);
    presto_loader_free(loader);
    tear_down();
}
END_TEST

/* A batch outlives the loader and what that owned. */
START_TEST(batches_outlive_what_one_call_opened) {
    presto_error err;
    presto_batch *batch;
    set_up();
    presto_stream_options input = input_of("cv", NULL);
    presto_loader *loader = open_paths(photos, &input);
    ck_assert_ok(presto_loader_next(loader, &batch, &err), &err);
    presto_loader_free(loader);
    ck_assert_uint_eq(batch->rows, 1);
    ck_assert_str_eq(batch->features[batch->main_feature].name, "image");
    presto_batch_release(batch);
    tear_down();
}
END_TEST

START_TEST(records_take_null_options) {
    presto_error err;
    presto__shard_writer *writer;
    presto__shard_summary summary;
    presto_shard *shard;
    presto_dataset *dataset;
    set_up();
    ck_assert_ok(presto__shard_writer_open(shard_path, NULL, &writer, &err), &err);
    ck_assert_ok(presto__shard_writer_append(writer, presto_span_of_text("hello"), &err), &err);
    ck_assert_ok(presto__shard_writer_finish(writer, &summary, &err), &err);
    presto__shard_writer_free(writer);
    ck_assert_uint_eq(summary.records, 1);

    const char *paths[] = {shard_path};
    ck_assert_ok(presto_shard_open(shard_path, NULL, &shard, &err), &err);
    presto_shard_free(shard);
    ck_assert_ok(presto_dataset_open(paths, 1, NULL, &dataset, &err), &err);
    ck_assert_uint_eq(presto_dataset_records(dataset), 1);
    presto_dataset_free(dataset);
    tear_down();
}
END_TEST

START_TEST(inspection_takes_null_options) {
    presto_error err;
    presto_convert_result result;
    presto_verify_result verified = {0};
    presto_repair_result repaired;
    presto_info info;
    char shard[1400];
    set_up();
    convert(&result);
    const char *paths[] = {dataset_dir};
    snprintf(shard, sizeof shard, "%s/data-00000-of-00001.tfrecord", dataset_dir);
    ck_assert_ok(presto_info_collect(paths, 1, NULL, &info, &err), &err);
    ck_assert_uint_eq(info.records, 12);
    presto_info_done(&info);
    ck_assert_ok(presto_verify_paths(paths, 1, NULL, &verified, &err), &err);
    ck_assert_ok(presto_verify_paths(&(const char *){shard}, 1, NULL, &verified, &err), &err);
    ck_assert_uint_eq(verified.records, 24);
    ck_assert_uint_eq(verified.faults, 0);
    ck_assert_ok(presto_repair_file(shard, shard_path, NULL, &repaired, &err), &err);
    ck_assert_uint_eq(repaired.records, 12);
    tear_down();
}
END_TEST

/* Required arguments are refused if they are NULL. */
START_TEST(sweep_takes_null_options) {
    presto_error err;
    presto_sweep *sweep = NULL;
    presto_sweep_options options;
    set_up();
    ck_assert_status(presto_sweep_run(NULL, 0, NULL, &sweep, &err), PRESTO_ERR_ARGUMENT, &err);
    ck_assert_ptr_nonnull(strstr(err.message, "needs a pipeline"));
    presto_sweep_options_defaults(&options);
    options.pipeline = pipeline;
    const char *paths[] = {photos};
    ck_assert_status(presto_sweep_run(paths, 1, &options, &sweep, &err), PRESTO_ERR_ARGUMENT, &err);
    ck_assert_ptr_nonnull(strstr(err.message, "work folder"));
    ck_assert_ptr_null(sweep);
    tear_down();
}
END_TEST

static presto_status halve(const void *state, presto_step_context *context, const presto_tensor *in,
                           presto_tensor *out_out, presto_error *err) {
    (void)state;
    float *value;
    PRESTO_TRY(presto_step_output(context, &in->spec, (void **)&value, err));
    memcpy(value, in->data, sizeof *value);
    *value /= 2;
    *out_out = (presto_tensor){.spec = in->spec, .data = value};
    return PRESTO_OK;
}

static presto_status keep_spec(const void *state, const presto_tensor_spec *in,
                               presto_tensor_spec *out_out, presto_error *err) {
    (void)state, (void)err;
    *out_out = *in;
    return PRESTO_OK;
}

static const presto_step_type halve_step = {
    .abi = PRESTO_STEP_ABI, .name = "halve", .infer = keep_spec, .run = halve};

/* All steps, from the source's samples, in the worker's own memory. */
START_TEST(plans_take_null_options) {
    static const char yaml[] = "name: halved\n"
                               "source: {type: files, match: ['*']}\n"
                               "steps: [{step: halve}, {step: halve}]\n";
    const presto_step_type *const own[] = {&halve_step};
    presto_pipeline_options reading = {
        .struct_bytes = sizeof reading, .steps = own, .step_count = 1};
    presto_pipeline *halved;
    presto_plan *plan;
    presto__plan_worker *worker;
    presto_error err;
    ck_assert_ok(
        presto__pipeline_parse(presto_span_of_text(yaml), "halved", &reading, &halved, &err), &err);
    ck_assert_ok(presto__plan_new(halved, NULL, &plan, &err), &err);
    ck_assert_uint_eq(presto_plan_step_count(plan), 2);
    ck_assert_ok(presto__plan_worker_new(plan, NULL, &worker, &err), &err);
    for (int i = 0; i < 1000; i++) {
        float value = (float)i;
        presto_feature feature = {.name = presto_span_of_text("x"),
                                  .tensor = {.spec = {.dtype = PRESTO_FLOAT32}, .data = &value}};
        presto_sample sample = {.features = &feature, .feature_count = 1};
        float result;
        ck_assert_ok(presto__plan_run(worker, NULL, &sample, &err), &err);
        memcpy(&result, sample.features[0].tensor.data, sizeof result);
        ck_assert_float_eq(result, value / 4);
    }
    presto__plan_worker_free(worker);
    presto__plan_free(plan);
    presto_pipeline_free(halved);
}
END_TEST

START_TEST(ends_take_null) {
    presto_arena_done(NULL);
    presto_batch_release(NULL);
    presto_block_done(NULL);
    presto_buffer_done(NULL);
    presto_codec_free(NULL);
    presto_dataset_free(NULL);
    presto_info_done(NULL);
    presto_loader_free(NULL);
    presto_loader_give_back(NULL, NULL);
    presto_pipeline_free(NULL);
    presto__plan_free(NULL);
    presto__plan_worker_free(NULL);
    presto_shard_free(NULL);
    presto__shard_writer_free(NULL);
    presto__source_free(NULL);
    presto_strategy_file_done(NULL);
    presto_stream_close(NULL);
    presto_sweep_free(NULL);
}
END_TEST

int main(void) {
    const TTest *const tests[] = {
        version_macros_are_those_of_the_library,
        streams_take_null_options,
        one_call_opens_a_stream_and_its_state,
        one_call_derives_what_the_loader_needs,
        batches_outlive_what_one_call_opened,
        records_take_null_options,
        inspection_takes_null_options,
        sweep_takes_null_options,
        plans_take_null_options,
        ends_take_null,
    };
    return presto_check_main("front_door", tests, sizeof tests / sizeof tests[0], 120);
}
