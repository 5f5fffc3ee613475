/* SPDX-License-Identifier: Apache-2.0 */
/* Mixes over random datasets and weights: proportions are exact, each input comes as it would
 * alone, and what cannot be mixed is refused. */
#define _XOPEN_SOURCE 700
#include <math.h>

#include <presto/mix.h>

#include "../../../loader/loader_internal.h"
#include "../../../records/records_internal.h"
#include "order/order_internal.h"

#include "mix_check.h"

static size_t part_of(const mixed *m, uint64_t number) {
    size_t k = m->count - 1;
    while (number < m->parts[k].first_sample)
        k--;
    uint64_t end = k + 1 < m->count ? m->parts[k + 1].first_sample : UINT64_MAX;
    ck_assert_uint_lt(number, end);
    return k;
}

/* ---- proportions ---- */

/* What the header promises of an epoch. */
static void check_shares(const mixed *m) {
    double rate = 0;
    for (size_t k = 0; k < m->count; k++) {
        double length = (double)m->parts[k].samples / m->parts[k].weight;
        if (k == 0 || (m->epoch == PRESTO_MIX_SHORTEST ? length < rate : length > rate))
            rate = length;
    }
    bool is_exact = m->epoch == PRESTO_MIX_WEIGHTS;
    for (size_t k = 0; k < m->count; k++) {
        const presto_source_part *part = &m->parts[k];
        double wanted =
            part->weight * (m->epoch == PRESTO_MIX_WEIGHTS ? (double)part->samples : rate);
        ck_assert(fabs((double)part->epoch_samples - wanted) <= 0.5 + 1e-9 ||
                  part->epoch_samples == 1);
        if (m->epoch == PRESTO_MIX_LONGEST)
            ck_assert_uint_ge(part->epoch_samples, part->samples);
        if (m->epoch == PRESTO_MIX_SHORTEST)
            ck_assert_uint_le(part->epoch_samples, part->samples);
        is_exact = is_exact || part->epoch_samples == part->samples;
    }
    ck_assert(is_exact);
}

START_TEST(every_epoch_has_the_same_share_of_each_input_evenly_spread) {
    start_random();
    for (size_t round = 0; round < ROUNDS; round++) {
        mixed m = random_mix();
        presto_loader_options options = random_options();
        check_shares(&m);
        whole.count = 0;
        take(m.stream.source, &options, SIZE_MAX, &whole, NULL);
        ck_assert_uint_eq(whole.count, options.range.epochs * m.epoch_samples);
        uint64_t counts[MOST] = {0};
        for (size_t i = 0; i < whole.count; i++) {
            uint64_t position = i % m.epoch_samples;
            ck_assert_uint_eq(whole.epochs[i], i / m.epoch_samples);
            counts[part_of(&m, whole.numbers[i])]++;
            bool is_edge = (position + 1) % 64 == 0;
            for (size_t k = 0; is_edge && k < m.count; k++) {
                double fair = (double)(position + 1) * (double)m.parts[k].epoch_samples /
                              (double)m.epoch_samples;
                ck_assert_msg(fabs((double)counts[k] - fair) <= 2, "%ju of %g",
                              (uintmax_t)counts[k], fair);
            }
            for (size_t k = 0; position + 1 == m.epoch_samples && k < m.count; k++) {
                ck_assert_uint_eq(counts[k], m.parts[k].epoch_samples);
                counts[k] = 0;
            }
        }
        finish(&m);
    }
}
END_TEST

/* Shares that no test could stream: 2^55 samples of one part, 3 of another. */
START_TEST(shares_are_spread_evenly_in_epochs_of_any_length) {
    const presto_source_part parts[] = {
        {.samples = 10, .epoch_samples = (uint64_t)1 << 55},
        {.first_sample = 10, .samples = 3, .epoch_samples = 3},
        {.first_sample = 13, .samples = 7, .epoch_samples = ((uint64_t)1 << 54) + 1},
    };
    presto__order_options order = {.parts = parts, .part_count = 3, .world = 1};
    uint64_t counts[3], before[3] = {0}, total = 0;
    for (size_t k = 0; k < 3; k++)
        order.count += parts[k].epoch_samples;
    start_random();
    for (size_t i = 0; i <= 1000; i++) {
        uint64_t position = i == 1000 ? order.count : order.count / 1000 * i + pick(0, 1000);
        presto__mix_passed(&order, 5, position, counts);
        total = 0;
        for (size_t k = 0; k < 3; k++) {
            double fair = (double)position * ((double)parts[k].epoch_samples / (double)order.count);
            total += counts[k];
            ck_assert(fabs((double)counts[k] - fair) <= 64 + fair * 1e-12);
            ck_assert_uint_ge(counts[k], before[k]);
            before[k] = counts[k];
        }
        ck_assert_uint_eq(total, position);
    }
    for (size_t k = 0; k < 3; k++)
        ck_assert_uint_eq(counts[k], parts[k].epoch_samples);
}
END_TEST

/* ---- each input ---- */

START_TEST(each_input_comes_as_it_would_alone) {
    start_random();
    for (size_t round = 0; round < ROUNDS; round++) {
        mixed m = random_mix();
        presto_loader_options options = random_options();
        whole.count = 0;
        take(m.stream.source, &options, SIZE_MAX, &whole, NULL);
        for (size_t k = 0; k < m.count; k++) {
            opened alone = open_made(m.dirs[k], false);
            ck_assert_ok(presto__source_choose(alone.source, &m.partition, &err), &err);
            presto_loader_options mine = options;
            uint64_t total = options.range.epochs * m.parts[k].epoch_samples;
            mine.range.epochs = total / m.parts[k].samples + 1;
            mine.range.limit_samples = total;
            other.count = 0;
            take(alone.source, &mine, SIZE_MAX, &other, NULL);
            size_t at = 0;
            for (size_t i = 0; i < whole.count; i++)
                if (part_of(&m, whole.numbers[i]) == k)
                    ck_assert_uint_eq(whole.numbers[i] - m.parts[k].first_sample,
                                      other.numbers[at++]);
            ck_assert_uint_eq(at, other.count);
            close_made(&alone);
        }
        finish(&m);
    }
}
END_TEST

START_TEST(an_epoch_of_one_sample_is_shuffled_as_any_other) {
    mixed m = start(PRESTO_MIX_WEIGHTS);
    make_input(&m, &(made){.samples = 5, .shards = 1, .values = 1, .odd = UINT64_MAX}, 0.2);
    ck_assert_ok(open_mix(&m, NULL), &err);
    ck_assert_uint_eq(m.epoch_samples, 1);
    presto_loader_options options, alone_options;
    presto_loader_options_defaults(&options);
    options.order.shuffle = PRESTO_SHUFFLE_FULL;
    options.order.seed = 3;
    alone_options = options;
    options.range.epochs = 10;
    alone_options.range.epochs = 2;
    opened alone = open_made(m.dirs[0], false);
    whole.count = other.count = 0;
    take(m.stream.source, &options, SIZE_MAX, &whole, NULL);
    take(alone.source, &alone_options, SIZE_MAX, &other, NULL);
    ck_assert_uint_eq(whole.count, 10);
    ck_assert_mem_eq(whole.numbers, other.numbers, 10 * sizeof *whole.numbers);
    close_made(&alone);
    finish(&m);
}
END_TEST

/* A batch has what the inputs hold, whatever the codec of each. */
START_TEST(batches_hold_the_samples_of_all_inputs) {
    mixed m = start(PRESTO_MIX_LONGEST);
    make_input(&m, &(made){.samples = 50, .shards = 2, .values = 5, .odd = UINT64_MAX}, 1);
    make_input(&m, &(made){20, 1, 5, UINT64_MAX, "zstd", PRESTO_FILE_PLAIN}, 1);
    make_input(&m, &(made){30, 1, 5, UINT64_MAX, NULL, PRESTO_FILE_GZIP}, 1);
    ck_assert_ok(open_mix(&m, NULL), &err);
    presto_loader_options options;
    presto_loader_options_defaults(&options);
    options.batch_samples = 16;
    options.threads = 3;
    presto_loader *loader;
    presto_batch *batch;
    uint64_t seen = 0;
    ck_assert_ok(presto_loader_open_stream(&m.stream, &options, &loader, &err), &err);
    while (presto_loader_next(loader, &batch, &err) == PRESTO_OK) {
        ck_assert_uint_eq(batch->feature_count, 3);
        const float *x = batch->features[2].tensor.data;
        const int64_t *label = batch->features[1].tensor.data;
        for (size_t row = 0; row < batch->rows; row++, seen++) {
            uint64_t number = batch->sample_numbers[row];
            uint64_t sample = number - m.parts[part_of(&m, number)].first_sample;
            ck_assert_int_eq(label[row], (int64_t)(sample % 7));
            for (size_t i = 0; i < 5; i++)
                ck_assert(x[row * 5 + i] == made_value(sample, i));
        }
        presto_batch_release(batch);
    }
    ck_assert_uint_eq(seen, m.epoch_samples);
    ck_assert_uint_eq(seen, 150);
    presto_loader_free(loader);
    finish(&m);
}
END_TEST

/* A file of Examples with the same three features, in another order and with other lengths. */
static void make_table(mixed *m, size_t samples, size_t first, size_t numbers) {
    char *path = m->dirs[m->count];
    snprintf(path, sizeof m->dirs[0], "%s/%zu.tfrecord", m->base, m->count);
    presto__shard_writer *writer;
    presto__shard_writer_options options;
    presto__shard_writer_options_defaults(&options);
    options.sync = false;
    ck_assert_ok(presto__shard_writer_open(path, &options, &writer, &err), &err);
    presto_buffer raw = {0};
    for (size_t row = 0; row < samples; row++) {
        float x[2] = {(float)pick(0, 99), (float)pick(0, 99)};
        int64_t n[4] = {(int64_t)pick(0, 999), -1, (int64_t)row, (int64_t)1 << 60};
        presto_span text = presto_span_of("some text", pick(0, 9));
        presto_feature all[3] = {
            {.name = presto_span_of_text("x"), .encoding = PRESTO_ENCODE_FLOAT},
            {.name = presto_span_of_text("n"), .encoding = PRESTO_ENCODE_INT64},
            {.name = presto_span_of_text("t"), .encoding = PRESTO_ENCODE_BYTES},
        };
        all[0].tensor.spec = (presto_tensor_spec){PRESTO_FLOAT32, 1, {2}};
        all[0].tensor.data = x;
        all[1].tensor.spec = (presto_tensor_spec){PRESTO_INT64, 1, {(int64_t)numbers}};
        all[1].tensor.data = n;
        all[2].tensor.spec = (presto_tensor_spec){.dtype = PRESTO_STRING};
        all[2].tensor.strings = &text;
        presto_feature turned[3];
        for (size_t i = 0; i < 3; i++)
            turned[i] = all[(first + i) % 3];
        const presto_sample sample = {.features = turned, .feature_count = 3};
        raw.bytes = 0;
        ck_assert_ok(presto_example_append(&raw, &sample, &err), &err);
        ck_assert_ok(presto__shard_writer_append(writer, presto_buffer_span(&raw), &err), &err);
    }
    presto_buffer_done(&raw);
    ck_assert_ok(presto__shard_writer_finish(writer, NULL, &err), &err);
    presto__shard_writer_free(writer);
    m->inputs[m->count++] = (presto_mix_input){.path = path, .weight = 1};
}

/* Without a cache, rows go from records into columns without a sample between them. */
START_TEST(rows_of_tables_are_the_same_with_and_without_samples_between) {
    start_random();
    for (size_t round = 0; round < ROUNDS / 4; round++) {
        mixed m = start(PRESTO_MIX_LONGEST);
        for (size_t k = 0; k < 3; k++)
            make_table(&m, 200, k, (round + k / 2) % 4 + 1);
        ck_assert_ok(open_mix(&m, NULL), &err);
        presto_loader_options options;
        presto_loader_options_defaults(&options);
        options.batch_samples = 32;
        options.order.shuffle = round % 2 == 0 ? PRESTO_SHUFFLE_FULL : PRESTO_SHUFFLE_NONE;
        options.threads = 3;
        options.cache.bytes = 4 << 20;
        uint32_t wanted = digest_stream(m.stream.source, NULL, &options, NULL, PRESTO_END, &err);
        options.cache.bytes = 0;
        ck_assert_uint_eq(digest_stream(m.stream.source, NULL, &options, NULL, PRESTO_END, &err),
                          wanted);
        finish(&m);
    }
}
END_TEST

START_TEST(samples_are_picked_from_all_inputs) {
    mixed m = start(PRESTO_MIX_LONGEST);
    make_input(&m, &(made){.samples = 50, .shards = 2, .values = 5, .odd = UINT64_MAX}, 1);
    make_input(&m, &(made){20, 1, 5, UINT64_MAX, "zstd", PRESTO_FILE_PLAIN}, 1);
    ck_assert_ok(open_mix(&m, NULL), &err);
    presto_loader_options options;
    presto_loader_options_defaults(&options);
    options.threads = 0;
    presto_loader *loader;
    ck_assert_ok(presto_loader_open_stream(&m.stream, &options, &loader, &err), &err);
    uint64_t numbers[3000];
    start_random();
    for (size_t count = 1; count < 3000; count = count * 3 + 1) {
        presto_batch *batch;
        for (size_t i = 0; i < count; i++)
            numbers[i] = pick(0, 69);
        ck_assert_ok(presto_loader_pick(loader, numbers, count, &batch, &err), &err);
        ck_assert_uint_eq(batch->rows, count);
        const float *x = batch->features[2].tensor.data;
        for (size_t i = 0; i < count; i++)
            ck_assert(x[i * 5] == made_value(numbers[i] % 50, 0));
        presto_batch_release(batch);
    }
    presto_loader_free(loader);
    finish(&m);
}
END_TEST

/* ---- what cannot be mixed ---- */

static void expect_refused(mixed *m, const presto_stream_options *stream, const char *first,
                           const char *second) {
    ck_assert_status(open_mix(m, stream), PRESTO_ERR_ARGUMENT, &err);
    ck_assert_msg(strstr(err.message, first) != NULL && strstr(err.message, second) != NULL, "%s",
                  err.message);
}

/* Change what dataset.json says of feature `i`. */
static void redeclare(const char *dir, size_t i, const char *name, presto_dtype dtype, int rank) {
    presto_dataset_info info = {0};
    ck_assert_ok(presto__dataset_info_read(dir, &info, &err), &err);
    if (name != NULL) {
        free(info.features[i].name);
        info.features[i].name = strdup(name);
    }
    info.features[i].spec.dtype = dtype;
    info.features[i].spec.rank = rank;
    info.features[i].spec.dims[1] = 1;
    ck_assert_ok(presto__dataset_info_write(dir, &info, false, &err), &err);
    presto__dataset_info_free(&info);
}

START_TEST(inputs_whose_features_differ_are_refused_by_name) {
    const made how = {.samples = 9, .shards = 1, .values = 4, .odd = UINT64_MAX};
    mixed m = start(PRESTO_MIX_LONGEST);
    make_input(&m, &how, 1);
    make_input(&m, &how, 1);
    make_input(&m, &how, 1);
    redeclare(m.dirs[2], 2, NULL, PRESTO_FLOAT64, 1);
    expect_refused(&m, NULL, "feature 'x' is float32[4] in", "float64[4] in");
    ck_assert_ptr_nonnull(strstr(err.message, m.dirs[0]));
    ck_assert_ptr_nonnull(strstr(err.message, m.dirs[2]));
    redeclare(m.dirs[2], 2, NULL, PRESTO_FLOAT32, 2);
    expect_refused(&m, NULL, "feature 'x' is float32[4] in", "float32[4,1] in");
    redeclare(m.dirs[2], 2, NULL, PRESTO_FLOAT32, 1);
    redeclare(m.dirs[2], 1, "class", PRESTO_INT64, 0);
    expect_refused(&m, NULL, "has the feature 'label'", "lacks");
    /* If only other features are asked for, it does not matter. */
    presto_loader_options loader;
    presto_stream_options stream;
    const char *const key = "key";
    presto_loader_options_defaults(&loader);
    presto_stream_options_defaults(&stream);
    stream.loader = &loader;
    loader.features = &key;
    loader.feature_count = 1;
    ck_assert_ok(open_mix(&m, &stream), &err);
    ck_assert_uint_eq(digest_stream(m.stream.source, NULL, &loader, NULL, PRESTO_END, &err),
                      digest_stream(m.stream.source, NULL, &loader, NULL, PRESTO_END, &err));
    finish(&m);
}
END_TEST

START_TEST(dimensions_may_differ_and_are_unknown_then) {
    mixed m = start(PRESTO_MIX_LONGEST);
    make_input(&m, &(made){.samples = 9, .shards = 1, .values = 4, .odd = UINT64_MAX}, 1);
    make_input(&m, &(made){.samples = 9, .shards = 1, .values = 5, .odd = UINT64_MAX}, 1);
    ck_assert_ok(open_mix(&m, NULL), &err);
    presto_tensor_spec spec = presto__source_main_spec(m.stream.source);
    ck_assert_int_eq(spec.rank, 1);
    ck_assert_int_eq(spec.dims[0], -1);
    presto_loader_options options;
    presto_loader_options_defaults(&options);
    options.batch_samples = 18;
    presto_loader *loader;
    presto_batch *batch;
    ck_assert_ok(presto_loader_open_stream(&m.stream, &options, &loader, &err), &err);
    ck_assert_ok(presto_loader_next(loader, &batch, &err), &err);
    ck_assert_int_eq(batch->features[2].layout, PRESTO_LAYOUT_RAGGED);
    ck_assert_int_eq(batch->features[2].tensor.spec.dims[0], 9 * 4 + 9 * 5);
    presto_batch_release(batch);
    presto_loader_free(loader);
    finish(&m);
}
END_TEST

START_TEST(wrong_mixes_are_refused) {
    const made how = {.samples = 5, .shards = 1, .values = 1, .odd = UINT64_MAX};
    mixed m = start(PRESTO_MIX_LONGEST);
    expect_refused(&m, NULL, "a mix has 1 to 64 inputs", "not 0");
    make_input(&m, &how, 1);
    static const double weights[] = {0, -1, NAN, INFINITY, 1e10};
    for (size_t i = 0; i < sizeof weights / sizeof weights[0]; i++) {
        m.inputs[0].weight = weights[i];
        expect_refused(&m, NULL, "the weight of", m.dirs[0]);
    }
    m.inputs[0].weight = 1e9;
    make_input(&m, &(made){.samples = 0, .shards = 1, .values = 1, .odd = UINT64_MAX}, 1);
    expect_refused(&m, NULL, "has no samples", m.dirs[1]);
    make_input(&m, &how, 1e-300);
    m.inputs[1] = m.inputs[2];
    m.count = 2;
    expect_refused(&m, NULL, "the weights differ too much", m.dirs[0]);
    m.inputs[1].weight = 1;
    m.inputs[1].path = "/nonexistent";
    ck_assert_status(open_mix(&m, NULL), PRESTO_ERR_NOT_FOUND, &err);
    m.inputs[1].reserved[0] = 1;
    ck_assert_status(open_mix(&m, NULL), PRESTO_ERR_UNSUPPORTED, &err);
    m.count = 1;
    ck_assert_ok(open_mix(&m, NULL), &err);
    presto_loader_options options;
    presto_loader *loader;
    presto_loader_options_defaults(&options);
    options.order.shuffle = PRESTO_SHUFFLE_BUFFER;
    options.order.shuffle_window = 3;
    ck_assert_status(presto_loader_open_stream(&m.stream, &options, &loader, &err),
                     PRESTO_ERR_ARGUMENT, &err);
    presto__source_truncate(m.stream.source, 1);
    ck_assert_uint_eq(presto_source_count(m.stream.source), 5);
    finish(&m);
}
END_TEST

/* ---- damage ---- */

static uint64_t skipped;
static char skipped_file[1024];

static void on_skip(void *user, uint64_t epoch, uint64_t sample, const presto_error *error) {
    (void)user, (void)epoch, (void)sample;
    skipped++;
    snprintf(skipped_file, sizeof skipped_file, "%s", error->file);
}

START_TEST(damage_is_reported_with_the_file_of_its_input) {
    mixed m = two_inputs(1);
    char path[200];
    size_t bytes;
    snprintf(path, sizeof path, "%s/data-00000-of-00001.tfrecord", m.dirs[1]);
    uint8_t *content = presto_check_read_file(path, &bytes);
    content[bytes / 2] ^= 0x40;
    presto_check_write_file(path, presto_span_of(content, bytes));
    free(content);
    presto_loader_options options;
    presto_loader_options_defaults(&options);
    for (unsigned threads = 0; threads < 4; threads++) {
        options.threads = threads;
        options.errors.policy = PRESTO_ON_ERROR_FAIL;
        digest_stream(m.stream.source, NULL, &options, NULL, PRESTO_ERR_CORRUPT, &err);
        ck_assert_str_eq(err.file, path);
        options.errors.policy = PRESTO_ON_ERROR_SKIP;
        options.errors.on_skip = on_skip;
        skipped = 0;
        uint64_t samples;
        digest_stream(m.stream.source, NULL, &options, &samples, PRESTO_END, &err);
        ck_assert_str_eq(skipped_file, path);
        ck_assert_uint_ge(skipped, 1);
        ck_assert_uint_eq(samples + skipped, m.epoch_samples);
    }
    finish(&m);
}
END_TEST

int main(void) {
    const TTest *const tests[] = {
        every_epoch_has_the_same_share_of_each_input_evenly_spread,
        shares_are_spread_evenly_in_epochs_of_any_length,
        each_input_comes_as_it_would_alone,
        an_epoch_of_one_sample_is_shuffled_as_any_other,
        batches_hold_the_samples_of_all_inputs,
        rows_of_tables_are_the_same_with_and_without_samples_between,
        samples_are_picked_from_all_inputs,
        inputs_whose_features_differ_are_refused_by_name,
        dimensions_may_differ_and_are_unknown_then,
        wrong_mixes_are_refused,
        damage_is_reported_with_the_file_of_its_input,
    };
    return presto_check_main("mix", tests, sizeof tests / sizeof tests[0], 120);
}
