/* SPDX-License-Identifier: Apache-2.0 */
/* Random access: the samples that were asked for, in that order, whatever came before. */
#include "../../../base/rng_internal.h"
#include "../../../loader/loader_internal.h"
#include "loader_check.h"

#include <presto/rng.h>

#define SAMPLES 90
#define VALUES 5

static char *dir;
static opened data;

static void set_up(const made *how) {
    dir = presto_check_temp_dir();
    make_dataset(dir, how);
    data = open_made(dir, false);
}

static void tear_down(presto_loader *loader) {
    presto_loader_free(loader);
    close_made(&data);
    presto_check_remove_tree(dir);
    free(dir);
}

static presto_loader *open_loader(size_t batch_samples, presto_shuffle_kind shuffle) {
    presto_loader_options options;
    presto_loader *loader;
    presto_error err;
    presto_loader_options_defaults(&options);
    options.threads = 0;
    options.batch_samples = batch_samples;
    options.order.shuffle = shuffle;
    options.order.shuffle_window = 10;
    options.range.drop_last = true;
    ck_assert_ok(presto__loader_open(data.source, NULL, &options, &loader, &err), &err);
    return loader;
}

static const presto_batch_feature *find(const presto_batch *batch, const char *name) {
    for (size_t i = 0; i < batch->feature_count; i++)
        if (strcmp(batch->features[i].name, name) == 0)
            return &batch->features[i];
    ck_abort_msg("no feature %s", name);
    return NULL;
}

static void check_batch(const presto_batch *batch, const uint64_t *numbers, size_t count) {
    ck_assert_uint_eq(batch->rows, count);
    const presto_batch_feature *x = find(batch, "x"), *key = find(batch, "key");
    ck_assert_int_eq(x->layout, PRESTO_LAYOUT_DENSE);
    const float *values = x->tensor.data;
    for (size_t row = 0; row < count; row++) {
        char text[32];
        ck_assert_uint_eq(batch->sample_numbers[row], numbers[row]);
        snprintf(text, sizeof text, "sample-%" PRIu64, numbers[row]);
        ck_assert(presto_span_equal(presto_batch_string(key, row), presto_span_of_text(text)));
        for (size_t i = 0; i < VALUES; i++)
            ck_assert_float_eq(values[row * VALUES + i], made_value(numbers[row], i));
    }
}

static const made plain = {
    .samples = SAMPLES, .shards = 4, .values = VALUES, .odd = UINT64_MAX, .codec = "lz4"};

static void pick_at_random(presto_loader *loader, presto_rng *rng) {
    for (unsigned round = 0; round < 40; round++) {
        uint64_t numbers[200] = {0};
        size_t count = round % 3 == 0 ? 1 : 1 + (size_t)presto_rng_below(rng, 200);
        for (size_t i = 0; i < count; i++)
            numbers[i] = presto_rng_below(rng, SAMPLES);
        presto_batch *batch;
        presto_error err;
        ck_assert_ok(presto_loader_pick(loader, numbers, count, &batch, &err), &err);
        check_batch(batch, numbers, count);
        presto_batch_release(batch);
    }
}

START_TEST(any_numbers_in_any_order_come_as_asked_for) {
    presto_rng rng;
    presto__rng_init(&rng, &(presto__rng_key){.seed = presto_check_seed()});
    for (unsigned kind = 0; kind < 3; kind++) {
        set_up(&plain);
        presto_loader *loader =
            open_loader(kind == 0 ? 1 : 7, kind == 2 ? PRESTO_SHUFFLE_BUFFER : PRESTO_SHUFFLE_NONE);
        pick_at_random(loader, &rng);
        tear_down(loader);
    }
}
END_TEST

START_TEST(picks_may_follow_a_stream_which_then_has_ended) {
    set_up(&plain);
    presto_loader *loader = open_loader(8, PRESTO_SHUFFLE_FULL);
    presto_batch *first, *picked;
    presto_error err;
    const uint64_t numbers[] = {17, 3, 3};
    ck_assert_ok(presto_loader_next(loader, &first, &err), &err);
    ck_assert_ok(presto_loader_pick(loader, numbers, 3, &picked, &err), &err);
    ck_assert_uint_eq(first->rows, 8); /* still held */
    check_batch(picked, numbers, 3);
    presto_batch_release(first);
    ck_assert_status(presto_loader_next(loader, &first, &err), PRESTO_END, &err);
    tear_down(loader);
    presto_batch_release(picked); /* after the loader */
}
END_TEST

START_TEST(wrong_numbers_and_loaders_with_threads_are_refused) {
    set_up(&plain);
    presto_loader *loader = open_loader(1, PRESTO_SHUFFLE_NONE);
    presto_batch *batch = NULL;
    presto_error err;
    const uint64_t numbers[] = {SAMPLES - 1, SAMPLES};
    ck_assert_status(presto_loader_pick(loader, numbers, 2, &batch, &err), PRESTO_ERR_ARGUMENT,
                     &err);
    ck_assert_ptr_nonnull(strstr(err.message, "90"));
    ck_assert_status(presto_loader_pick(loader, numbers, 0, &batch, &err), PRESTO_ERR_ARGUMENT,
                     &err);
    ck_assert_ok(presto_loader_pick(loader, numbers, 1, &batch, &err), &err);
    check_batch(batch, numbers, 1);
    presto_batch_release(batch);
    presto_loader_free(loader);
    presto_loader_options options;
    presto_loader_options_defaults(&options);
    ck_assert_ok(presto__loader_open(data.source, NULL, &options, &loader, &err), &err);
    ck_assert_status(presto_loader_pick(loader, numbers, 1, &batch, &err), PRESTO_ERR_ARGUMENT,
                     &err);
    tear_down(loader);
}
END_TEST

START_TEST(files_compressed_as_a_whole_have_no_random_access) {
    made how = plain;
    how.file_compression = PRESTO_FILE_GZIP;
    set_up(&how);
    presto_loader *loader = open_loader(1, PRESTO_SHUFFLE_NONE);
    presto_batch *batch = NULL;
    presto_error err;
    const uint64_t number = 5;
    ck_assert_int_lt(presto_loader_pick(loader, &number, 1, &batch, &err), 0);
    tear_down(loader);
}
END_TEST

START_TEST(damage_fails_where_it_is_asked_for_and_harms_no_later_call) {
    made how = plain;
    how.shards = 1;
    how.codec = "none";
    set_up(&how);
    presto_error err;
    char path[700];
    snprintf(path, sizeof path, "%s/data-00000-of-00001.tfrecord", dir);
    size_t bytes;
    uint8_t *file = presto_check_read_file(path, &bytes);
    file[bytes - 20] ^= 1; /* in the last record */
    presto_check_write_file(path, presto_span_of(file, bytes));
    free(file);
    presto_loader *loader = open_loader(1, PRESTO_SHUFFLE_NONE);
    presto_batch *batch = NULL;
    const uint64_t numbers[] = {4, SAMPLES - 1, 5};
    for (unsigned round = 0; round < 3; round++) {
        ck_assert_status(presto_loader_pick(loader, numbers, 3, &batch, &err), PRESTO_ERR_CORRUPT,
                         &err);
        ck_assert_uint_eq(err.record, SAMPLES - 1);
        ck_assert_ok(presto_loader_pick(loader, numbers, 1, &batch, &err), &err);
        check_batch(batch, numbers, 1);
        presto_batch_release(batch);
    }
    tear_down(loader);
}
END_TEST

int main(void) {
    const TTest *const tests[] = {any_numbers_in_any_order_come_as_asked_for,
                                  picks_may_follow_a_stream_which_then_has_ended,
                                  wrong_numbers_and_loaders_with_threads_are_refused,
                                  files_compressed_as_a_whole_have_no_random_access,
                                  damage_fails_where_it_is_asked_for_and_harms_no_later_call};
    return presto_check_main("pick", tests, sizeof tests / sizeof *tests, 60);
}
