/* SPDX-License-Identifier: Apache-2.0 */
/* Mixes over random datasets, weights, orders, ranks and stops: proportions are exact, each input
 * comes as it would alone, and the rest of a stream is always exact. */
#define _XOPEN_SOURCE 700
#include <math.h>

#include <sys/stat.h>

#include "loader_check.h"

#include <presto/file.h>
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

static uint64_t pick(uint64_t least, uint64_t most) {
    return least + presto_rng_below(&rng, most - least + 1);
}

static void start_random(void) {
    presto_rng_key key = {.seed = presto_check_seed()};
    presto_rng_init(&rng, &key);
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

static void make_input(mixed *m, const made *how, double weight) {
    char *dir = m->dirs[m->count];
    snprintf(dir, sizeof m->dirs[0], "%s/in-%zu", m->base, m->count);
    ck_assert_int_eq(mkdir(dir, 0777), 0);
    make_dataset(dir, how);
    m->inputs[m->count++] = (presto_mix_input){.path = dir, .weight = weight};
}

static mixed start(presto_mix_epoch epoch) {
    return (mixed){.base = presto_check_temp_dir(), .epoch = epoch};
}

static presto_status open_mix(mixed *m, const presto_stream_options *stream) {
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

static void finish(mixed *m) {
    presto_stream_close(&m->stream);
    presto_check_remove_tree(m->base);
    free(m->base);
}

/* An epoch of the mix has at most about 2000 samples. */
static mixed random_mix(void) {
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

static void choose_work(presto_loader_options *options) {
    options->threads = (unsigned)pick(0, 4);
    options->memory.block_samples = (size_t)pick(1, 60);
    options->memory.prefetch_bytes = (size_t)pick(1, 1 << 20);
    options->cache.bytes = options->output == PRESTO_OUTPUT_BATCHES ? pick(0, 1) << 16 : 0;
}

static presto_loader_options random_options(void) {
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
static presto_status take(presto_source *source, const presto_loader_options *options, size_t most,
                          rows *to, presto_buffer *state) {
    presto_loader *loader;
    presto_batch *batch;
    presto_status status = PRESTO_OK;
    ck_assert_ok(presto_loader_open(source, NULL, options, &loader, &err), &err);
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

static size_t part_of(const mixed *m, uint64_t number) {
    size_t k = m->count - 1;
    while (number < m->parts[k].first_sample)
        k--;
    uint64_t end = k + 1 < m->count ? m->parts[k + 1].first_sample : UINT64_MAX;
    ck_assert_uint_lt(number, end);
    return k;
}

static rows whole, other;

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
            ck_assert_ok(presto_source_choose(alone.source, &m.partition, &err), &err);
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
    presto_shard_writer *writer;
    presto_shard_writer_options options;
    presto_shard_writer_options_defaults(&options);
    options.sync = false;
    ck_assert_ok(presto_shard_writer_open(path, &options, &writer, &err), &err);
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
        ck_assert_ok(presto_shard_writer_append(writer, presto_buffer_span(&raw), &err), &err);
    }
    presto_buffer_done(&raw);
    ck_assert_ok(presto_shard_writer_finish(writer, NULL, &err), &err);
    presto_shard_writer_free(writer);
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

/* ---- threads, ranks, stops ---- */

START_TEST(the_stream_is_the_same_for_any_threads_and_memory) {
    start_random();
    for (size_t round = 0; round < ROUNDS; round++) {
        mixed m = random_mix();
        presto_loader_options options = random_options();
        options.output = PRESTO_OUTPUT_BATCHES;
        uint32_t wanted = digest_stream(m.stream.source, NULL, &options, NULL, PRESTO_END, &err);
        for (size_t i = 0; i < 4; i++) {
            choose_work(&options);
            ck_assert_uint_eq(
                digest_stream(m.stream.source, NULL, &options, NULL, PRESTO_END, &err), wanted);
        }
        finish(&m);
    }
}
END_TEST

START_TEST(ranks_share_the_order_of_one) {
    start_random();
    for (size_t round = 0; round < ROUNDS; round++) {
        mixed m = random_mix();
        presto_loader_options options = random_options();
        whole.count = 0;
        take(m.stream.source, &options, SIZE_MAX, &whole, NULL);
        uint64_t world = pick(1, 100), each = (m.epoch_samples + world - 1) / world;
        for (uint64_t rank = 0; rank < world; rank++) {
            options.range.world = world;
            options.range.rank = rank;
            choose_work(&options);
            other.count = 0;
            take(m.stream.source, &options, SIZE_MAX, &other, NULL);
            ck_assert_uint_eq(other.count, options.range.epochs * each);
            for (size_t i = 0; i < other.count; i++) {
                uint64_t position = (other.positions[i] * world + rank) % m.epoch_samples;
                uint64_t at = other.epochs[i] * m.epoch_samples + position;
                ck_assert_uint_eq(other.numbers[i], whole.numbers[at]);
            }
        }
        finish(&m);
    }
}
END_TEST

/* With two inputs in turn, rank 0 of 2 would get the first one only. */
START_TEST(every_rank_gets_every_input_in_proportion) {
    mixed m = start(PRESTO_MIX_LONGEST);
    make_input(&m, &(made){.samples = 1000, .shards = 1, .values = 1, .odd = UINT64_MAX}, 1);
    make_input(&m, &(made){.samples = 1000, .shards = 1, .values = 1, .odd = UINT64_MAX}, 1);
    ck_assert_ok(open_mix(&m, NULL), &err);
    for (uint64_t world = 2; world <= 128; world *= 2) {
        presto_loader_options options;
        presto_loader_options_defaults(&options);
        options.range.world = world;
        options.range.epochs = world;
        options.output = PRESTO_OUTPUT_COUNT;
        options.batch_samples = 64;
        other.count = 0;
        take(m.stream.source, &options, SIZE_MAX, &other, NULL);
        double first = 0;
        for (size_t i = 0; i < other.count; i++)
            first += other.numbers[i] < 1000;
        /* Over six standard deviations of a fair coin. */
        double fair = (double)other.count / 2;
        ck_assert_msg(fabs(first - fair) < 3.2 * sqrt((double)other.count), "%g of %g", first,
                      fair);
    }
    finish(&m);
}
END_TEST

START_TEST(any_chain_of_stops_gives_the_stream_of_one_run) {
    start_random();
    for (size_t round = 0; round < ROUNDS; round++) {
        mixed m = random_mix();
        presto_loader_options options = random_options();
        options.range.world = pick(1, 5);
        options.range.rank = pick(0, options.range.world - 1);
        whole.count = other.count = 0;
        take(m.stream.source, &options, SIZE_MAX, &whole, NULL);
        presto_loader_options piece = options;
        presto_buffer state = {0};
        for (;;) {
            take(m.stream.source, &piece, (size_t)pick(0, 12), &other, &state);
            piece = options;
            choose_work(&piece);
            presto_status status =
                presto_loader_load_state(presto_buffer_span(&state), m.stream.source, &piece, &err);
            ck_assert_msg(status >= 0, "%s", err.message);
            if (status == PRESTO_END)
                break;
            if (other.count == whole.count) {
                take(m.stream.source, &piece, SIZE_MAX, &other, NULL);
                break;
            }
        }
        ck_assert_uint_eq(other.count, whole.count);
        ck_assert_mem_eq(other.numbers, whole.numbers, whole.count * sizeof whole.numbers[0]);
        presto_buffer_done(&state);
        finish(&m);
    }
}
END_TEST

/* ---- states that belong to something else ---- */

static mixed two_inputs(double weight) {
    mixed m = start(PRESTO_MIX_LONGEST);
    make_input(&m, &(made){.samples = 90, .shards = 1, .values = 1, .odd = UINT64_MAX}, weight);
    make_input(&m, &(made){.samples = 40, .shards = 1, .values = 1, .odd = UINT64_MAX}, 1);
    ck_assert_ok(open_mix(&m, NULL), &err);
    return m;
}

static presto_status load(presto_span state, const mixed *m, const char *message) {
    presto_loader_options options;
    presto_loader_options_defaults(&options);
    options.range.epochs = 3;
    presto_status status = presto_loader_load_state(state, m->stream.source, &options, &err);
    if (status < 0 && message != NULL)
        ck_assert_msg(strstr(err.message, message) != NULL, "%s", err.message);
    return status;
}

static void save(const mixed *m, size_t batches, presto_buffer *state) {
    presto_loader_options options;
    presto_loader_options_defaults(&options);
    options.range.epochs = 3;
    options.batch_samples = 7;
    other.count = 0;
    take(m->stream.source, &options, batches, &other, state);
}

START_TEST(a_state_of_another_mix_is_refused) {
    mixed m = two_inputs(2), heavier = two_inputs(3), larger = start(PRESTO_MIX_LONGEST);
    presto_buffer state = {0}, alone = {0};
    make_input(&larger, &(made){.samples = 90, .shards = 1, .values = 1, .odd = UINT64_MAX}, 2);
    make_input(&larger, &(made){.samples = 40, .shards = 1, .values = 2, .odd = UINT64_MAX}, 1);
    ck_assert_ok(open_mix(&larger, NULL), &err);
    save(&m, 9, &state);
    presto_span text = presto_buffer_span(&state);
    ck_assert_int_eq(load(text, &m, NULL), PRESTO_OK);
    ck_assert_int_eq(load(text, &heavier, "other weights"), PRESTO_ERR_ARGUMENT);
    ck_assert_int_eq(load(text, &larger, larger.dirs[1]), PRESTO_ERR_ARGUMENT);
    larger.count = 1;
    presto_stream_close(&larger.stream);
    ck_assert_ok(open_mix(&larger, NULL), &err);
    ck_assert_int_eq(load(text, &larger, "of 2 mixed inputs, not 1"), PRESTO_ERR_ARGUMENT);
    opened data = open_made(m.dirs[0], false);
    presto_loader_options options;
    presto_loader_options_defaults(&options);
    ck_assert_status(presto_loader_load_state(text, data.source, &options, &err),
                     PRESTO_ERR_ARGUMENT, &err);
    take(data.source, &options, 3, &other, &alone);
    ck_assert_int_eq(load(presto_buffer_span(&alone), &m, "mixed"), PRESTO_ERR_ARGUMENT);
    close_made(&data);
    presto_buffer_done(&state);
    presto_buffer_done(&alone);
    finish(&m);
    finish(&heavier);
    finish(&larger);
}
END_TEST

/* Every digit of a state changed, every cut: refused, or a position that the stream has. */
START_TEST(states_of_an_enemy_are_refused_or_harmless) {
    mixed m = two_inputs(2);
    presto_buffer state = {0};
    save(&m, 9, &state);
    ck_assert_ok(presto_buffer_append(&state, presto_span_of("", 1), &err), &err);
    state.bytes--; /* a text that ends */
    uint8_t *text = state.data;
    for (size_t bytes = 0; bytes + 2 < state.bytes; bytes++) {
        uint8_t *cut = presto_check_copy(presto_span_of(text, bytes));
        ck_assert_int_eq(load(presto_span_of(cut, bytes), &m, NULL), PRESTO_ERR_CORRUPT);
        free(cut);
    }
    size_t mix = (size_t)(strstr((const char *)text, "\"mix\"") - (const char *)text);
    for (size_t i = mix; i < state.bytes; i++) {
        uint8_t was = text[i];
        if (was < '0' || was > '9')
            continue;
        text[i] = was == '9' ? '1' : (uint8_t)(was + 1);
        ck_assert_msg(load(presto_buffer_span(&state), &m, NULL) < 0, "byte %zu", i);
        text[i] = was;
    }
    static const char *const tails[] = {
        "}",
        "\"mix\": 1}",
        "\"mix\": []}",
        "\"mix\": [1, 2]}",
        "\"mix\": [{}, {}]}",
        "\"mix\": [{\"source\": 1}, {}]}",
        "\"epoch\": 9223372036854775807}",
        "\"epoch\": 9223372036854775807, \"next\": 9223372036854775807}",
        "\"next\": -1}",
    };
    for (size_t i = 0; i < sizeof tails / sizeof tails[0]; i++) {
        char changed[2048];
        /* The last of several equal keys counts; "}" alone leaves the mix out. */
        size_t kept = tails[i][1] == 'm' || tails[i][1] == '\0' ? mix : state.bytes - 2;
        snprintf(changed, sizeof changed, "%.*s%s%s", (int)(kept == mix ? mix - 2 : kept), text,
                 tails[i][1] == '\0' ? "" : ", ", tails[i]);
        ck_assert_msg(load(presto_span_of_text(changed), &m, NULL) < 0, "%s", changed);
    }
    presto_buffer_done(&state);
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
    ck_assert_ok(presto_dataset_info_read(dir, &info, &err), &err);
    if (name != NULL) {
        free(info.features[i].name);
        info.features[i].name = strdup(name);
    }
    info.features[i].spec.dtype = dtype;
    info.features[i].spec.rank = rank;
    info.features[i].spec.dims[1] = 1;
    ck_assert_ok(presto_dataset_info_write(dir, &info, false, &err), &err);
    presto_dataset_info_done(&info);
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
    presto_tensor_spec spec = presto_source_main_spec(m.stream.source);
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
    presto_source_truncate(m.stream.source, 1);
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
        batches_hold_the_samples_of_all_inputs,
        rows_of_tables_are_the_same_with_and_without_samples_between,
        samples_are_picked_from_all_inputs,
        the_stream_is_the_same_for_any_threads_and_memory,
        ranks_share_the_order_of_one,
        every_rank_gets_every_input_in_proportion,
        any_chain_of_stops_gives_the_stream_of_one_run,
        a_state_of_another_mix_is_refused,
        states_of_an_enemy_are_refused_or_harmless,
        inputs_whose_features_differ_are_refused_by_name,
        dimensions_may_differ_and_are_unknown_then,
        wrong_mixes_are_refused,
        damage_is_reported_with_the_file_of_its_input,
    };
    return presto_check_main("mix", tests, sizeof tests / sizeof tests[0], 120);
}
