/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The source `tfrecord`: records of others, and datasets of ours, through a pipeline. Each sample
 * once, in every order, from every kind of file; a saved state; damage.
 */
#define _XOPEN_SOURCE 700
#include "../../../loader/loader_internal.h"
#include "../../../records/records_internal.h"
#include "../../../steps/pipelines_internal.h"
#include "source/core/source_internal.h"

#include "tfrecord_check.h"

/* Row i holds what append_made wrote for this sample. */
static void check_row(const presto_batch *batch, size_t i) {
    const presto_batch_feature *key = feature_of(batch, "key");
    const presto_batch_feature *label = feature_of(batch, "label");
    const presto_batch_feature *x = feature_of(batch, "x");
    char wanted[32];
    int64_t number;
    float value;
    snprintf(wanted, sizeof wanted, "sample-%" PRIu64, batch->sample_numbers[i]);
    ck_assert(presto_span_is(presto_batch_string(key, i), wanted));
    memcpy(&number, (const int64_t *)label->tensor.data + i, sizeof number);
    ck_assert_int_eq(number, (int64_t)(batch->sample_numbers[i] % 7));
    memcpy(&value, (const float *)x->tensor.data + i * plain.values + 4, sizeof value);
    ck_assert(value == made_value(batch->sample_numbers[i], 4));
}

static void count_stream(const presto_loader_options *options, unsigned seen[SAMPLES]) {
    presto_loader *loader;
    presto_batch *batch;
    presto_status status;
    ck_assert_ok(presto__loader_open(source, NULL, options, &loader, &err), &err);
    while ((status = presto_loader_next(loader, &batch, &err)) == PRESTO_OK) {
        for (size_t i = 0; i < batch->rows; i++) {
            check_row(batch, i);
            seen[batch->sample_numbers[i]]++;
        }
        presto_batch_release(batch);
    }
    ck_assert_status(status, PRESTO_END, &err);
    presto_loader_free(loader);
}

/* ---- every sample, in every order ---- */

static void check_orders(bool is_whole_file) {
    static const unsigned threads[] = {0, 1, 4};
    for (int o = PRESTO_SHUFFLE_NONE; o <= PRESTO_SHUFFLE_BLOCKS; o++) {
        bool is_random = o == PRESTO_SHUFFLE_FULL || o == PRESTO_SHUFFLE_BLOCKS;
        if (is_whole_file && is_random)
            continue;
        uint32_t digests[3];
        for (size_t t = 0; t < 3; t++) {
            unsigned seen[SAMPLES] = {0};
            presto_loader_options options = defaults(threads[t], 7);
            options.order.shuffle = (presto_shuffle_kind)o;
            options.order.shuffle_window = 20;
            options.range.epochs = 2;
            count_stream(&options, seen);
            for (size_t i = 0; i < SAMPLES; i++)
                ck_assert_msg(seen[i] == 2, "sample %zu came %u times", i, seen[i]);
            digests[t] = digest_stream(source, NULL, &options, NULL, PRESTO_END, &err);
        }
        ck_assert_uint_eq(digests[0], digests[1]);
        ck_assert_uint_eq(digests[0], digests[2]);
        unsigned seen[SAMPLES] = {0};
        for (uint64_t rank = 0; rank < 3; rank++) {
            presto_loader_options options = defaults(2, 5);
            options.order.shuffle = (presto_shuffle_kind)o;
            options.order.shuffle_window = 20;
            options.range.rank = rank;
            options.range.world = 3;
            count_stream(&options, seen);
        }
        for (size_t i = 0; i < SAMPLES; i++)
            ck_assert_msg(seen[i] == 1, "sample %zu came to %u ranks", i, seen[i]);
    }
}

START_TEST(records_of_others_are_samples_in_every_order) {
    set_up(&plain, false);
    ck_assert_ok(open_as("feature: x"), &err);
    ck_assert_uint_eq(presto_source_count(source), SAMPLES);
    ck_assert_str_eq(presto_source_main_feature(source), "x");
    ck_assert_int_eq(presto__source_main_spec(source).dtype, PRESTO_FLOAT32);
    check_orders(false);
    tear_down();
}
END_TEST

START_TEST(files_compressed_as_a_whole_are_read_too) {
    for (int kind = PRESTO_FILE_GZIP; kind <= PRESTO_FILE_ZLIB; kind++) {
        made how = plain;
        how.file_compression = (presto_file_compression)kind;
        set_up(&how, false);
        ck_assert_ok(open_as("feature: x"), &err);
        check_orders(true);
        tear_down();
    }
}
END_TEST

START_TEST(records_in_a_codec_are_read_if_the_pipeline_says_which) {
    static const char *const codecs[] = {"zlib:1", "gzip:1", "zstd:1", "lz4", "snappy"};
    for (size_t i = 0; i < sizeof codecs / sizeof codecs[0]; i++) {
        made how = plain;
        how.codec = codecs[i];
        set_up(&how, false);
        char options[64];
        ck_assert_int_lt(open_as(""), 0); /* they are no Examples */
        close_all();
        snprintf(options, sizeof options, "feature: x, codec: \"%s\"", codecs[i]);
        ck_assert_ok(open_as(options), &err);
        check_orders(false);
        tear_down();
    }
}
END_TEST

START_TEST(a_dataset_of_ours_is_the_same_stream_as_by_itself) {
    static const char *const codecs[] = {"none", "zstd:1"};
    for (size_t i = 0; i < 2; i++) {
        made how = plain;
        how.codec = codecs[i];
        set_up(&how, true);
        ck_assert_ok(open_as(""), &err);
        opened data = open_made(dir, false);
        presto_loader_options options = defaults(2, 16);
        options.order.shuffle = PRESTO_SHUFFLE_FULL;
        ck_assert_uint_eq(digest_stream(source, NULL, &options, NULL, PRESTO_END, &err),
                          digest_stream(data.source, NULL, &options, NULL, PRESTO_END, &err));
        close_made(&data);
        close_all();
        ck_assert_status(open_as("codec: lz4"), PRESTO_ERR_ARGUMENT, &err);
        ck_assert_ptr_nonnull(strstr(err.message, "dataset.json says"));
        tear_down();
    }
}
END_TEST

START_TEST(a_saved_state_gives_the_rest) {
    set_up(&plain, false);
    ck_assert_ok(open_as("feature: x, label: label, features: [key]"), &err);
    for (size_t skip = 1; skip < 40; skip += 6) {
        presto_loader_options options = defaults(3, 10);
        options.order.shuffle = PRESTO_SHUFFLE_FULL;
        options.range.epochs = 2;
        presto_buffer state = {0};
        presto_loader *loader;
        presto_batch *batch;
        uint32_t wanted = 0;
        ck_assert_ok(presto__loader_open(source, NULL, &options, &loader, &err), &err);
        for (size_t i = 0;; i++) {
            if (i == skip)
                ck_assert_ok(presto_loader_save_state(loader, &state, &err), &err);
            if (presto_loader_next(loader, &batch, &err) != PRESTO_OK)
                break;
            if (i >= skip)
                wanted = digest_batch(wanted, batch);
            presto_batch_release(batch);
        }
        presto_loader_free(loader);
        close_all();
        ck_assert_ok(open_as("feature: x, label: label, features: [key]"), &err);
        ck_assert_ok(presto_loader_load_state(presto_buffer_span(&state), source, &options, &err),
                     &err);
        options.threads = 1;
        ck_assert_uint_eq(digest_stream(source, NULL, &options, NULL, PRESTO_END, &err), wanted);
        presto_buffer_done(&state);
    }
    tear_down();
}
END_TEST

/* ---- damage ---- */

/* Flips a bit in the middle of record `number` of the first file. */
static uint64_t damage(uint64_t number, char path_out[700]) {
    snprintf(path_out, 700, "%s/data-00000-of-00003.tfrecord", dir);
    presto_shard *shard;
    const uint64_t *offsets;
    presto_shard_options options;
    presto_shard_options_defaults(&options);
    ck_assert_ok(presto_shard_open(path_out, &options, &shard, &err), &err);
    ck_assert_ok(presto_shard_index(shard, false, NULL, &err), &err);
    ck_assert_ok(presto__shard_offsets(shard, number, 1, &offsets, &err), &err);
    uint64_t offset = offsets[0];
    presto_shard_free(shard);
    size_t bytes;
    uint8_t *content = presto_check_read_file(path_out, &bytes);
    content[offset + 40] ^= 4;
    presto_check_write_file(path_out, presto_span_of(content, bytes));
    free(content);
    return offset;
}

static void check_damage(uint64_t number) {
    char path[700];
    set_up(&plain, false);
    uint64_t offset = damage(number, path);
    ck_assert_ok(open_as("feature: x"), &err); /* the records beside it tell enough */
    for (unsigned threads = 0; threads < 3; threads++) {
        skips noted;
        unsigned seen[SAMPLES] = {0};
        presto_loader_options options = defaults(threads, 7);
        skip_and_note(&options, UINT64_MAX, &noted);
        count_stream(&options, seen);
        ck_assert_uint_eq(noted.count, 1);
        ck_assert_str_eq(noted.last.file, path);
        ck_assert_uint_eq(noted.last.record, number);
        ck_assert_uint_eq(noted.last.offset, offset);
        for (size_t i = 0; i < SAMPLES; i++)
            ck_assert_uint_eq(seen[i], i != number);
        options = defaults(threads, 7);
        uint64_t samples;
        digest_stream(source, NULL, &options, &samples, PRESTO_ERR_CORRUPT, &err);
        ck_assert_uint_eq(samples, number);
        ck_assert_str_eq(err.file, path);
        ck_assert_uint_eq(err.record, number);
        ck_assert_uint_eq(err.offset, offset);
    }
    tear_down();
}

START_TEST(a_damaged_record_is_left_out_alone_and_named) {
    check_damage(70);
    check_damage(0);
}
END_TEST

START_TEST(where_all_is_damaged_the_first_damage_is_told) {
    char path[700];
    made how = plain;
    how.samples = SHARDS; /* one record a file, the first of which is damaged */
    set_up(&how, false);
    damage(0, path);
    const char *only = path;
    ck_assert_int_lt(open_as(""), 0);
    close_all();
    ck_assert_int_lt(open_as("feature: y"), 0);
    close_all();
    static const char text[] = "{name: a, source: {type: tfrecord}, steps: []}";
    ck_assert_ok(presto__pipeline_parse(presto_span_of_text(text), "a", NULL, &pipeline, &err),
                 &err);
    ck_assert_status(presto__source_open_raw(pipeline, &only, 1, &source, &err), PRESTO_ERR_CORRUPT,
                     &err);
    ck_assert_str_eq(err.file, path);
    ck_assert_uint_eq(err.record, 0);
    source = NULL;
    tear_down();
}
END_TEST

/* ---- from= ---- */

START_TEST(records_take_the_place_of_the_source_and_the_first_steps) {
    static const char text[] = "name: p\n"
                               "source: {type: files, feature: x}\n"
                               "steps:\n"
                               "  - {step: read-file, yields: read}\n"
                               "  - {step: decode-image, yields: decoded}\n"
                               "  - {step: resize-image, yields: small, min-side: 20}\n"
                               "  - {step: random-crop, height: 8, width: 8}\n";
    const char *const set[] = {"resize-image.min-side=16", "from=decoded",
                               "decode-image.channels=1", "source.label=key"};
    presto_pipeline_options options;
    presto_pipeline_options_defaults(&options);
    options.set = set;
    options.set_count = 4;
    presto_pipeline *cut, *again, *bad;
    ck_assert_ok(presto__pipeline_parse(presto_span_of_text(text), "p", &options, &cut, &err),
                 &err);
    ck_assert_str_eq(presto_pipeline_source(cut)->name, "tfrecord");
    ck_assert_str_eq(presto__pipeline_usual_feature(cut), "x");
    ck_assert_uint_eq(presto_pipeline_step_count(cut), 2);
    ck_assert_uint_eq(presto_pipeline_representation_count(cut), 3);
    ck_assert_str_eq(presto_pipeline_representation_name(cut, 1), "decoded");
    ck_assert_uint_eq(presto_pipeline_representation_steps(cut, 1), 0);
    ck_assert_uint_eq(presto_pipeline_representation_steps(cut, 2), 1);
    const presto_tensor_spec *spec = presto__pipeline_source_output(cut);
    ck_assert_int_eq(spec->dtype, PRESTO_UINT8);
    ck_assert_int_eq(spec->rank, 3);
    ck_assert_int_eq(spec->dims[2], 1);
    const char *json = presto_pipeline_json(cut);
    ck_assert_ptr_nonnull(strstr(json, "\"steps-behind\": 2"));
    ck_assert_ptr_nonnull(strstr(json, "\"min-side\": 16"));
    ck_assert_ptr_nonnull(strstr(json, "\"label\": \"key\""));
    ck_assert_ok(presto__pipeline_parse(presto_span_of_text(json), "p", NULL, &again, &err), &err);
    ck_assert_str_eq(presto_pipeline_json(again), json);
    presto_pipeline_free(again);
    presto_pipeline_free(cut);
    const char *const wrong[] = {"from=resized"};
    options.set = wrong;
    options.set_count = 1;
    ck_assert_status(presto__pipeline_parse(presto_span_of_text(text), "p", &options, &bad, &err),
                     PRESTO_ERR_NOT_FOUND, &err);
    ck_assert_ptr_nonnull(strstr(err.message, "there is unprocessed, read, decoded, small"));
    const char *const whole[] = {"from=unprocessed"};
    options.set = whole;
    ck_assert_ok(presto__pipeline_parse(presto_span_of_text(text), "p", &options, &cut, &err),
                 &err);
    ck_assert_uint_eq(presto_pipeline_step_count(cut), 4);
    presto_pipeline_free(cut);
}
END_TEST

int main(void) {
    const TTest *const tests[] = {
        records_of_others_are_samples_in_every_order,
        files_compressed_as_a_whole_are_read_too,
        records_in_a_codec_are_read_if_the_pipeline_says_which,
        a_dataset_of_ours_is_the_same_stream_as_by_itself,
        a_saved_state_gives_the_rest,
        a_damaged_record_is_left_out_alone_and_named,
        where_all_is_damaged_the_first_damage_is_told,
        records_take_the_place_of_the_source_and_the_first_steps,
    };
    return presto_check_main("source_tfrecord", tests, sizeof tests / sizeof tests[0], 120);
}
