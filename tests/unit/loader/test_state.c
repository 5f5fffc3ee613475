/* SPDX-License-Identifier: Apache-2.0 */
/* Resuming over random datasets, orders, batches, ranks and stops: the rest is always exact. */
#define _XOPEN_SOURCE 700
#include <pthread.h>

#include "../../../base/rng_internal.h"
#include "../../../loader/loader_internal.h"
#include "loader_check.h"

#include <presto/rng.h>

static presto_rng rng;

static uint64_t pick(uint64_t least, uint64_t most) {
    return least + presto_rng_below(&rng, most - least + 1);
}

static uint64_t start_random(void) {
    uint64_t seed = presto_check_seed();
    presto__rng_key key = {.seed = seed};
    presto__rng_init(&rng, &key);
    return seed;
}

/* A random dataset in a folder of its own. */
static opened random_dataset(char **dir_out) {
    static const char *const codecs[] = {"none", "zlib:1", "lz4"};
    made how = {.samples = pick(1, 250),
                .values = pick(1, 30),
                .odd = UINT64_MAX,
                .codec = codecs[pick(0, 2)]};
    how.shards = pick(1, how.samples < 5 ? how.samples : 5);
    *dir_out = presto_check_temp_dir();
    make_dataset(*dir_out, &how);
    return open_made(*dir_out, pick(0, 1) == 1);
}

static void close_dataset(opened *data, char *dir) {
    close_made(data);
    presto_check_remove_tree(dir);
    free(dir);
}

/* Options that change no byte. */
static void choose_work(presto_loader_options *options) {
    options->threads = (unsigned)pick(0, 5);
    options->memory.block_samples = (size_t)pick(1, 60);
    options->memory.prefetch_bytes = (size_t)pick(1, 1 << 20);
}

static presto_loader_options random_options(void) {
    presto_loader_options options;
    presto_loader_options_defaults(&options);
    options.output = (presto_output_kind)pick(0, PRESTO_OUTPUT_COUNT);
    options.batch_samples = (size_t)pick(1, 40);
    options.order.shuffle = (presto_shuffle_kind)pick(PRESTO_SHUFFLE_NONE, PRESTO_SHUFFLE_BLOCKS);
    options.order.shuffle_window = pick(1, 300);
    options.range.epochs = pick(1, 4);
    options.range.first_epoch = pick(0, 1) * pick(0, 1000);
    options.order.seed = pick(0, UINT64_MAX - 1);
    options.range.world = pick(0, 1) == 0 ? 1 : pick(1, 7);
    options.range.rank = pick(0, options.range.world - 1);
    options.range.drop_last = options.output != PRESTO_OUTPUT_RECORDS && pick(0, 3) == 0;
    choose_work(&options);
    return options;
}

/* A stream: a digest for each batch, or for each record or sample counted, whose batches are no more than how many
 * came together. */
typedef struct trace {
    uint32_t digests[4096];
    size_t count;
} trace;

static void note(trace *to, const presto_batch *batch) {
    ck_assert_uint_lt(to->count + batch->rows, 4096);
    if (batch->feature_count > 0)
        to->digests[to->count++] = digest_batch(0, batch);
    const uint8_t *at = batch->frames.data;
    for (size_t i = 0; batch->feature_count == 0 && i < batch->rows; i++) {
        uint64_t place[] = {batch->epoch, batch->first + i, batch->sample_numbers[i]};
        size_t bytes = batch->frames.bytes > 0 ? batch->frame_bytes[i] : 0;
        to->digests[to->count++] = presto_crc32c(presto_crc32c(0, place, sizeof place), at, bytes);
        at += bytes;
    }
}

/* Take up to `most` batches, note them, save the state. Is there more? */
static bool run(const opened *data, const presto_loader_options *options, size_t most, trace *to,
                presto_buffer *state) {
    presto_loader *loader;
    presto_batch *batch;
    presto_error err;
    presto_status status = PRESTO_OK;
    ck_assert_ok(presto__loader_open(data->source, NULL, options, &loader, &err), &err);
    for (size_t i = 0; i < most; i++) {
        status = presto_loader_next(loader, &batch, &err);
        if (status != PRESTO_OK)
            break;
        note(to, batch);
        presto_batch_release(batch);
    }
    ck_assert_int_ge(status, 0);
    if (state != NULL) {
        state->bytes = 0;
        ck_assert_ok(presto_loader_save_state(loader, state, &err), &err);
    }
    presto_loader_free(loader);
    return status == PRESTO_OK;
}

START_TEST(any_chain_of_stops_gives_the_stream_of_one_run) {
    uint64_t seed = start_random();
    for (size_t round = 0; round < 120; round++) {
        char *dir;
        opened data = random_dataset(&dir);
        presto_loader_options options = random_options();
        trace whole = {.count = 0}, pieces = {.count = 0};
        presto_buffer state = {0};
        run(&data, &options, SIZE_MAX, &whole, NULL);
        presto_loader_options piece = options;
        for (size_t stops = 0;; stops++) {
            ck_assert_uint_lt(stops, 6000);
            run(&data, &piece, (size_t)pick(0, whole.count / 3 + 2), &pieces, &state);
            piece = options;
            choose_work(&piece);
            presto_error err;
            presto_status status =
                presto_loader_load_state(presto_buffer_span(&state), data.source, &piece, &err);
            if (status == PRESTO_END)
                break;
            ck_assert_ok(status, &err);
            /* At the end nothing may remain; then the state says so as well. */
            if (pieces.count == whole.count) {
                ck_assert(!run(&data, &piece, SIZE_MAX, &pieces, NULL));
                break;
            }
        }
        ck_assert_msg(
            pieces.count == whole.count &&
                memcmp(pieces.digests, whole.digests, whole.count * sizeof whole.digests[0]) == 0,
            "seed %ju, round %zu: %zu batches, %zu wanted", (uintmax_t)seed, round, pieces.count,
            whole.count);
        presto_buffer_done(&state);
        close_dataset(&data, dir);
    }
}
END_TEST

/* The numbers of all ranks of one epoch, in the global order. */
static void epoch_numbers(const opened *data, presto_loader_options options,
                          const presto_buffer *state, uint64_t world, uint64_t epoch,
                          uint64_t *numbers_out) {
    for (uint64_t rank = 0; rank < world; rank++) {
        presto_loader_options mine = options;
        mine.range.world = world;
        mine.range.rank = rank;
        choose_work(&mine);
        presto_error err;
        if (state != NULL)
            ck_assert_ok(
                presto_loader_load_state(presto_buffer_span(state), data->source, &mine, &err),
                &err);
        presto_loader *loader;
        presto_batch *batch;
        ck_assert_ok(presto__loader_open(data->source, NULL, &mine, &loader, &err), &err);
        while (presto_loader_next(loader, &batch, &err) == PRESTO_OK) {
            for (size_t row = 0; batch->epoch == epoch && row < batch->rows; row++) {
                uint64_t position = (batch->first + row) * world + rank;
                if (position < presto_source_count(data->source))
                    numbers_out[position] = batch->sample_numbers[row];
            }
            presto_batch_release(batch);
        }
        presto_loader_free(loader);
    }
}

START_TEST(another_world_goes_on_with_the_next_epoch) {
    start_random();
    for (size_t round = 0; round < 40; round++) {
        char *dir;
        opened data = random_dataset(&dir);
        presto_loader_options options = random_options();
        options.range.drop_last = false;
        if (options.output == PRESTO_OUTPUT_COUNT) /* how many come together is chance */
            options.output = PRESTO_OUTPUT_BATCHES;
        options.range.epochs = 3;
        uint64_t count = presto_source_count(data.source);
        uint64_t each = (count + options.range.world - 1) / options.range.world;
        size_t batches = (size_t)((each + options.batch_samples - 1) / options.batch_samples);
        if (options.output == PRESTO_OUTPUT_RECORDS)
            options.batch_samples = 1, batches = (size_t)each;
        presto_buffer state = {0};
        trace ignored = {.count = 0};
        run(&data, &options, batches, &ignored, &state); /* exactly the first epoch */
        uint64_t *wanted = calloc(count, sizeof *wanted), *got = calloc(count, sizeof *got);
        for (uint64_t epoch = options.range.first_epoch + 1; epoch < options.range.first_epoch + 3;
             epoch++) {
            epoch_numbers(&data, options, NULL, options.range.world, epoch, wanted);
            memset(got, 0xff, count * sizeof *got);
            epoch_numbers(&data, options, &state, pick(1, 9), epoch, got);
            ck_assert_mem_eq(got, wanted, count * sizeof *got);
            /* Each sample once. */
            for (uint64_t i = 0; i < count; i++)
                wanted[got[i]] = UINT64_MAX;
            for (uint64_t i = 0; i < count; i++)
                ck_assert_uint_eq(wanted[i], UINT64_MAX);
        }
        free(wanted);
        free(got);
        presto_buffer_done(&state);
        close_dataset(&data, dir);
    }
}
END_TEST

/* ---- passing over samples ---- */

typedef struct sample_at {
    uint64_t epoch, position, number;
} sample_at;

/* All samples of a stream, in order. */
static size_t list_samples(const opened *data, const presto_loader_options *options,
                           sample_at *samples_out) {
    presto_loader *loader;
    presto_batch *batch;
    presto_error err;
    size_t count = 0;
    ck_assert_ok(presto__loader_open(data->source, NULL, options, &loader, &err), &err);
    while (presto_loader_next(loader, &batch, &err) == PRESTO_OK) {
        for (size_t row = 0; row < batch->rows; row++)
            samples_out[count++] =
                (sample_at){batch->epoch, batch->first + row, batch->sample_numbers[row]};
        presto_batch_release(batch);
    }
    presto_loader_free(loader);
    return count;
}

/* Of `all`, what remains behind `skip` of them: with drop_last the epoch's last batch must be full.
 */
static size_t without_first(const presto_loader_options *options, const sample_at *all,
                            size_t count, size_t skip, sample_at *rest_out) {
    size_t rest = 0, same = 0;
    while (skip + same < count && all[skip + same].epoch == all[skip].epoch)
        same++;
    size_t kept = options->range.drop_last ? same - same % options->batch_samples : same;
    for (size_t i = skip; i < count; i++)
        if (i - skip < kept || i - skip >= same)
            rest_out[rest++] = all[i];
    return rest;
}

START_TEST(any_number_of_samples_can_be_passed_over) {
    uint64_t seed = start_random();
    for (size_t round = 0; round < 120; round++) {
        char *dir;
        opened data = random_dataset(&dir);
        presto_loader_options options = random_options();
        size_t room = (size_t)(4 * (presto_source_count(data.source) + 7));
        sample_at *all = calloc(room, sizeof *all), *wanted = calloc(room, sizeof *wanted);
        sample_at *got = calloc(room, sizeof *got);
        size_t count = list_samples(&data, &options, all);
        for (size_t i = 0; i < 6; i++) {
            presto_loader_options later = options;
            choose_work(&later);
            later.range.skip_samples = i == 0 ? count : pick(0, count);
            size_t left =
                without_first(&options, all, count, (size_t)later.range.skip_samples, wanted);
            if (i == 1) {
                later.range.skip_samples = UINT64_MAX;
                left = 0;
            }
            ck_assert_msg(list_samples(&data, &later, got) == left &&
                              memcmp(got, wanted, left * sizeof *got) == 0,
                          "seed %ju, round %zu: %ju of %zu passed over", (uintmax_t)seed, round,
                          (uintmax_t)later.range.skip_samples, count);
        }
        presto_loader *loader;
        presto_error err;
        options.range.skip_samples = count + 1;
        ck_assert_status(presto__loader_open(data.source, NULL, &options, &loader, &err),
                         PRESTO_ERR_ARGUMENT, &err);
        free(all);
        free(wanted);
        free(got);
        close_dataset(&data, dir);
    }
}
END_TEST

START_TEST(a_batch_given_back_comes_again_after_the_state) {
    start_random();
    for (size_t round = 0; round < 40; round++) {
        char *dir;
        opened data = random_dataset(&dir);
        presto_loader_options options = random_options();
        presto_loader *loader;
        presto_batch *batch = NULL;
        presto_error err;
        presto_buffer state = {0};
        ck_assert_ok(presto__loader_open(data.source, NULL, &options, &loader, &err), &err);
        for (uint64_t skip = pick(0, 5); skip > 0; skip--)
            if (presto_loader_next(loader, &batch, &err) == PRESTO_OK)
                presto_batch_release(batch);
        if (presto_loader_next(loader, &batch, &err) == PRESTO_OK) {
            const sample_at wanted = {batch->epoch, batch->first, batch->sample_numbers[0]};
            presto_loader_give_back(loader, batch);
            ck_assert_ok(presto_loader_save_state(loader, &state, &err), &err);
            presto_loader_options later = options;
            ck_assert_ok(
                presto_loader_load_state(presto_buffer_span(&state), data.source, &later, &err),
                &err);
            presto_loader *second;
            ck_assert_ok(presto__loader_open(data.source, NULL, &later, &second, &err), &err);
            ck_assert_ok(presto_loader_next(second, &batch, &err), &err);
            ck_assert_uint_eq(batch->epoch, wanted.epoch);
            ck_assert_uint_eq(batch->first, wanted.position);
            ck_assert_uint_eq(batch->sample_numbers[0], wanted.number);
            presto_batch_release(batch);
            presto_loader_free(second);
        }
        presto_loader_free(loader);
        presto_buffer_done(&state);
        close_dataset(&data, dir);
    }
}
END_TEST

/* ---- stopping ---- */

typedef struct stopper {
    pthread_t consumer;
    unsigned asked, answer_from;
} stopper;

static bool stop_later(void *user) {
    stopper *s = user;
    ck_assert(pthread_equal(pthread_self(), s->consumer));
    return ++s->asked >= s->answer_from;
}

START_TEST(a_stream_stops_when_asked_to_and_stays_stopped) {
    start_random();
    for (size_t round = 0; round < 60; round++) {
        char *dir;
        opened data = random_dataset(&dir);
        presto_loader_options options = random_options();
        stopper s = {.consumer = pthread_self(), .answer_from = (unsigned)pick(1, 12)};
        options.range.epochs = UINT64_MAX;
        options.range.drop_last = false;
        options.should_stop = stop_later;
        options.should_stop_user = &s;
        presto_loader *loader;
        presto_batch *batch;
        presto_error err;
        presto_status status;
        ck_assert_ok(presto__loader_open(data.source, NULL, &options, &loader, &err), &err);
        while ((status = presto_loader_next(loader, &batch, &err)) == PRESTO_OK)
            presto_batch_release(batch);
        ck_assert_status(status, PRESTO_ERR_STOPPED, &err);
        ck_assert_status(presto_loader_next(loader, &batch, &err), PRESTO_ERR_STOPPED, &err);
        ck_assert_uint_eq(s.asked, s.answer_from);
        presto_loader_free(loader);
        close_dataset(&data, dir);
    }
}
END_TEST

int main(void) {
    const TTest *const tests[] = {
        any_chain_of_stops_gives_the_stream_of_one_run,
        another_world_goes_on_with_the_next_epoch,
        any_number_of_samples_can_be_passed_over,
        a_batch_given_back_comes_again_after_the_state,
        a_stream_stops_when_asked_to_and_stays_stopped,
    };
    return presto_check_main("state", tests, sizeof tests / sizeof tests[0], 240);
}
