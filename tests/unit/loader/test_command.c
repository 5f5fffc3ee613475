/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A step of another program in a stream: with `cat`, which changes nothing, the stream is the one
 * without it, for any number of threads and processes, stopped and resumed at random, by ranks.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>

#include "../../../base/rng_internal.h"
#include "../../../loader/loader_internal.h"
#include "../../../steps/pipelines_internal.h"
#include "loader_check.h"

#include <presto/pipeline.h>
#include <presto/rng.h>

#define SAMPLES 90

typedef struct stream {
    presto_pipeline *pipeline;
    presto_source *source;
    presto_plan *plan;
} stream;

/* Samples of 2 KB or 200 KB, through the step. */
static stream open_text(const char *step, size_t sample_bytes) {
    char yaml[512];
    presto_error err;
    stream s = {0};
    snprintf(yaml, sizeof yaml,
             "name: t\nsource: {type: synthetic, count: %d, size: %zu}\nsteps: [%s]\n", SAMPLES,
             sample_bytes, step);
    const presto_pipeline_options reading = {.struct_bytes = sizeof reading,
                                             .code = PRESTO_CODE_ALWAYS};
    ck_assert_ok(
        presto__pipeline_parse(presto_span_of_text(yaml), "t", &reading, &s.pipeline, &err), &err);
    ck_assert_ok(presto__source_open_raw(s.pipeline, NULL, 0, &s.source, &err), &err);
    ck_assert_ok(presto__plan_new(s.pipeline, NULL, &s.plan, &err), &err);
    return s;
}

static void close_all(stream *s) {
    presto__plan_free(s->plan);
    presto__source_free(s->source);
    presto_pipeline_free(s->pipeline);
    /* No process is left, not even a dead one. */
    ck_assert_int_eq(waitpid(-1, NULL, WNOHANG), -1);
    ck_assert_int_eq(errno, ECHILD);
}

/* A digest of the stream's next `most` batches; is there more? */
static bool run(const stream *s, const presto_loader_options *options, size_t most,
                uint32_t *digest_io, presto_buffer *state) {
    presto_loader *loader;
    presto_batch *batch;
    presto_error err;
    presto_status status = PRESTO_OK;
    ck_assert_ok(presto__loader_open(s->source, s->plan, options, &loader, &err), &err);
    for (size_t i = 0; i < most && status == PRESTO_OK; i++) {
        status = presto_loader_next(loader, &batch, &err);
        if (status != PRESTO_OK)
            break;
        *digest_io = digest_batch(*digest_io, batch);
        presto_batch_release(batch);
    }
    ck_assert_msg(status >= 0, "%s", err.message);
    if (state != NULL) {
        state->bytes = 0;
        ck_assert_ok(presto_loader_save_state(loader, state, &err), &err);
    }
    presto_loader_free(loader);
    return status == PRESTO_OK;
}

static presto_loader_options shuffled(unsigned threads) {
    presto_loader_options options;
    presto_loader_options_defaults(&options);
    options.threads = threads;
    options.batch_samples = 7;
    options.order.shuffle = PRESTO_SHUFFLE_FULL;
    options.order.seed = 5;
    options.range.epochs = 2;
    return options;
}

START_TEST(the_stream_is_that_without_the_step_for_any_threads_and_processes) {
    static const size_t sizes[] = {2000, 200000};
    static const char *const workers[] = {"", ", workers: 1", ", workers: 3"};
    for (size_t size = 0; size < 2; size++) {
        stream plain = open_text("", sizes[size]);
        presto_loader_options options = shuffled(1);
        uint32_t wanted = 0;
        run(&plain, &options, SIZE_MAX, &wanted, NULL);
        close_all(&plain);
        for (size_t step = 0; step < 3; step++) {
            char text[128];
            snprintf(text, sizeof text, "{step: command, run: [cat], output: \"uint8[%zu]\"%s}",
                     sizes[size], workers[step]);
            stream s = open_text(text, sizes[size]);
            for (unsigned threads = 0; threads <= 8; threads = threads == 0 ? 1 : threads * 2) {
                uint32_t got = 0;
                options = shuffled(threads);
                run(&s, &options, SIZE_MAX, &got, NULL);
                ck_assert_uint_eq(got, wanted);
            }
            close_all(&s);
        }
    }
}
END_TEST

START_TEST(any_chain_of_stops_gives_the_stream_of_one_run) {
    presto_rng rng;
    presto__rng_key key = {.seed = presto_check_seed()};
    presto__rng_init(&rng, &key);
    stream s = open_text("{step: command, run: [cat], output: \"uint8[?]\", workers: 2}", 2000);
    presto_loader_options options = shuffled(2);
    uint32_t wanted = 0, got = 0;
    run(&s, &options, SIZE_MAX, &wanted, NULL);
    presto_buffer state = {0};
    presto_loader_options piece = options;
    for (presto_status status = PRESTO_OK; status == PRESTO_OK;) {
        presto_error err;
        piece.threads = (unsigned)presto_rng_below(&rng, 4);
        run(&s, &piece, (size_t)presto_rng_below(&rng, 12), &got, &state);
        piece = options;
        status = presto_loader_load_state(presto_buffer_span(&state), s.source, &piece, &err);
        ck_assert_msg(status >= 0, "%s", err.message);
    }
    ck_assert_uint_eq(got, wanted);
    presto_buffer_done(&state);
    close_all(&s);
}
END_TEST

START_TEST(ranks_have_each_sample_once) {
    stream s = open_text("{step: command, run: [cat], output: \"uint8[?]\", workers: 2}", 2000);
    unsigned seen[SAMPLES] = {0};
    for (uint64_t rank = 0; rank < 3; rank++) {
        presto_loader_options options = shuffled(2);
        presto_loader *loader;
        presto_batch *batch;
        presto_error err;
        options.range.epochs = 1;
        options.range.rank = rank;
        options.range.world = 3;
        ck_assert_ok(presto__loader_open(s.source, s.plan, &options, &loader, &err), &err);
        while (presto_loader_next(loader, &batch, &err) == PRESTO_OK) {
            for (size_t row = 0; row < batch->rows; row++)
                seen[batch->sample_numbers[row]]++;
            presto_batch_release(batch);
        }
        presto_loader_free(loader);
    }
    for (size_t i = 0; i < SAMPLES; i++)
        ck_assert_uint_eq(seen[i], 1);
    close_all(&s);
}
END_TEST

/* However many samples may be left out, a worker that fails ends the job. */
START_TEST(a_worker_that_dies_ends_the_job_under_any_policy) {
    stream s = open_text("{step: command, run: [sh, -c, \"dd bs=1 count=20000 status=none; echo no "
                         "more >&2\"], output: \"uint8[?]\"}",
                         2000);
    for (unsigned threads = 0; threads < 5; threads++) {
        presto_loader_options options = shuffled(threads);
        presto_loader *loader;
        presto_batch *batch;
        presto_error err;
        options.errors.policy = PRESTO_ON_ERROR_SKIP;
        options.errors.skip_limit = UINT64_MAX;
        options.errors.skip_fraction = 1;
        ck_assert_ok(presto__loader_open(s.source, s.plan, &options, &loader, &err), &err);
        presto_status status;
        while ((status = presto_loader_next(loader, &batch, &err)) == PRESTO_OK)
            presto_batch_release(batch);
        ck_assert_status(status, PRESTO_ERR_IO, &err);
        ck_assert_msg(strstr(err.message, "command: ") != NULL &&
                          strstr(err.message, "its last lines: no more") != NULL,
                      "%s", err.message);
        presto_loader_free(loader);
    }
    close_all(&s);
}
END_TEST

static bool stops_at_once(void *asked) {
    return ++*(int *)asked > 3;
}

START_TEST(a_stream_of_processes_that_hang_can_be_stopped) {
    stream s = open_text(
        "{step: command, run: [sleep, \"1000\"], output: \"uint8[?]\", timeout: 1h, workers: 2}",
        2000);
    for (unsigned threads = 0; threads < 5; threads += 4) {
        presto_loader_options options = shuffled(threads);
        presto_loader *loader;
        presto_batch *batch;
        presto_error err;
        int asked = 0;
        options.should_stop = stops_at_once;
        options.should_stop_user = &asked;
        ck_assert_ok(presto__loader_open(s.source, s.plan, &options, &loader, &err), &err);
        ck_assert_status(presto_loader_next(loader, &batch, &err), PRESTO_ERR_STOPPED, &err);
        presto_loader_free(loader);
    }
    close_all(&s);
}
END_TEST

int main(void) {
    const TTest *tests[] = {
        the_stream_is_that_without_the_step_for_any_threads_and_processes,
        any_chain_of_stops_gives_the_stream_of_one_run,
        ranks_have_each_sample_once,
        a_worker_that_dies_ends_the_job_under_any_policy,
        a_stream_of_processes_that_hang_can_be_stopped,
    };
    return presto_check_main("command", tests, sizeof tests / sizeof tests[0], 300);
}
