/* SPDX-License-Identifier: Apache-2.0 */
/* Mixes over any threads, ranks and stops: the rest of a stream is always exact, and states that
 * belong to something else are refused. */
#define _XOPEN_SOURCE 700
#include <math.h>

#include <presto/mix.h>

#include "order/order_internal.h"

#include "mix_check.h"

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

int main(void) {
    const TTest *const tests[] = {
        the_stream_is_the_same_for_any_threads_and_memory,
        ranks_share_the_order_of_one,
        every_rank_gets_every_input_in_proportion,
        any_chain_of_stops_gives_the_stream_of_one_run,
        a_state_of_another_mix_is_refused,
        states_of_an_enemy_are_refused_or_harmless,
    };
    return presto_check_main("mix_rest", tests, sizeof tests / sizeof tests[0], 120);
}
