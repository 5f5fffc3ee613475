/* SPDX-License-Identifier: Apache-2.0 */
/* Anchors that need no more runs than one: when that is so, and what a sweep then has. */
#define _GNU_SOURCE /* sched_setaffinity */
#include <sched.h>
#include <stdio.h>
#include <sys/stat.h>
#include <time.h>

#include "../../../steps/pipelines_internal.h"
#include "made_sweep.h"

#include "predict/predict_internal.h"

/* ---- on made-up figures ---- */

enum { SPLITS = 3 };

typedef struct made {
    presto_sweep *sweep;
    presto__runner runner;
} made;

/* Each strategy is both anchors of its representation: 800, 400 and 4,000 samples/s. */
static made set_up(void) {
    made m = {.sweep = made_sweep(false), .runner = {.samples = 100, .source_samples = 1000}};
    presto_sweep *sweep = m.sweep;
    sweep->anchors = calloc(SPLITS, sizeof *sweep->anchors);
    sweep->model = calloc(1, sizeof *sweep->model);
    sweep->space.threads = calloc(1, sizeof *sweep->space.threads);
    ck_assert(sweep->anchors != NULL && sweep->model != NULL && sweep->space.threads != NULL);
    for (size_t s = 0; s < SPLITS; s++)
        sweep->anchors[s] = (presto__anchors){{s, s}};
    sweep->space.split_count = SPLITS;
    sweep->space.thread_count = 1;
    sweep->space.threads[0] = 2;
    sweep->model->cores = 2;
    return m;
}

static void tear_down(made *m) {
    m->sweep->space.split_count = 0; /* it has no names */
    presto_sweep_free(m->sweep);
}

static bool has_enough(const made *m, size_t i) {
    return presto__anchor_has_enough(m->sweep, &m->runner, i);
}

static void set_rates(made *m, size_t i, double cold, double cached) {
    presto__trial *trial = &m->sweep->trials[i];
    trial->cold[0].measure.wall_s = (double)trial->cold[0].samples / cold;
    trial->cold[0].second_s = trial->cold[0].second_samples / cold;
    trial->cached[0].measure.wall_s = (double)trial->cached[0].samples / cached;
}

START_TEST(what_is_three_times_slower_needs_no_more_runs) {
    made m = set_up();
    ck_assert(has_enough(&m, 0) && has_enough(&m, 1) && !has_enough(&m, 2));
    set_rates(&m, 0, 1400, 1400);
    ck_assert(!has_enough(&m, 0));
    set_rates(&m, 0, 100, 1400); /* a codec, or faster storage, may bring it there */
    ck_assert(!has_enough(&m, 0));
    set_rates(&m, 0, 1300, 1300);
    ck_assert(has_enough(&m, 0));
    tear_down(&m);
}
END_TEST

START_TEST(both_anchors_of_a_representation_have_enough_or_none) {
    made m = set_up();
    m.sweep->anchors[0].at[1] = 2; /* it is as fast as the best on all processors */
    ck_assert(!has_enough(&m, 0) && has_enough(&m, 1));
    m.sweep->anchors[0].at[1] = 1;
    ck_assert(has_enough(&m, 0) && has_enough(&m, 1));
    size_t count = m.sweep->trials[1].cold_count;
    m.sweep->trials[1].cold_count = 0; /* nothing is known of it yet */
    ck_assert(!has_enough(&m, 0));
    m.sweep->trials[1].result.failed = true; /* nothing will be */
    ck_assert(has_enough(&m, 0));
    m.sweep->trials[1].result.failed = false;
    m.sweep->trials[1].cold_count = count;
    tear_down(&m);
}
END_TEST

START_TEST(threads_beyond_the_processors_may_bring_as_much_more) {
    made m = set_up();
    m.sweep->space.threads[0] = 8; /* 4 * 3 * 800 */
    ck_assert(!has_enough(&m, 0) && !has_enough(&m, 1));
    set_rates(&m, 2, 9700, 9700);
    ck_assert(has_enough(&m, 0) && has_enough(&m, 1));
    tear_down(&m);
}
END_TEST

/* What nearly reaches it may be all that is wanted. */
START_TEST(with_a_target_that_is_what_counts) {
    made m = set_up();
    m.sweep->limits.headroom = 0.1;
    m.sweep->limits.target_samples_per_s = 2000;
    ck_assert(!has_enough(&m, 0)); /* 3 * 800 > 2,200 */
    ck_assert(has_enough(&m, 1));
    m.sweep->limits.target_samples_per_s = 1e6; /* nothing reaches it: the fastest is wanted */
    ck_assert(has_enough(&m, 0) && has_enough(&m, 1) && !has_enough(&m, 2));
    tear_down(&m);
}
END_TEST

/* ---- in a sweep ---- */

enum { FILES = 6 };
#define NAP_NS 60000000L

static presto_status infer(const void *state, const presto_tensor_spec *in,
                           presto_tensor_spec *out_out, presto_error *err) {
    (void)state, (void)err;
    *out_out = *in;
    return PRESTO_OK;
}

static presto_status nap(const void *state, presto_step_context *context, const presto_tensor *in,
                         presto_tensor *out_out, presto_error *err) {
    (void)state, (void)context, (void)err;
    (void)nanosleep(&(struct timespec){.tv_nsec = NAP_NS}, NULL);
    *out_out = *in;
    return PRESTO_OK;
}

static const presto_step_type napping = {.abi = PRESTO_STEP_ABI,
                                         .name = "nap",
                                         .summary = "Passes values on after a nap.",
                                         .infer = infer,
                                         .run = nap};

static presto_pipeline *sleepy_pipeline(void) {
    static const char yaml[] = "name: sleepy\n"
                               "source: {type: files, match: ['*.bin']}\n"
                               "steps:\n"
                               "  - {step: read-file, yields: concatenated}\n"
                               "  - {step: nap, yields: rested}\n";
    const presto_step_type *const steps[] = {&napping};
    const presto_pipeline_options options = {
        .struct_bytes = sizeof options, .steps = steps, .step_count = 1};
    presto_pipeline *pipeline = NULL;
    presto_error err;
    ck_assert_ok(
        presto__pipeline_parse(presto_span_of_text(yaml), "sleepy", &options, &pipeline, &err),
        &err);
    return pipeline;
}

/* Threads that sleep would do more on many processors. */
static void use_one_processor(void) {
    cpu_set_t one;
    ck_assert_int_eq(sched_getaffinity(0, sizeof one, &one), 0);
    size_t first = 0;
    while (!CPU_ISSET(first, &one))
        first++;
    CPU_ZERO(&one);
    CPU_SET(first, &one);
    ck_assert_int_eq(sched_setaffinity(0, sizeof one, &one), 0);
}

static size_t runs_of(const presto_sweep *sweep, const char *stored) {
    for (size_t i = 0; i < presto_sweep_result_count(sweep); i++) {
        const presto_strategy_result *result = presto_sweep_result(sweep, i);
        if (strcmp(result->strategy.stored, stored) == 0) {
            ck_assert_uint_eq(result->cold.samples_per_s.runs, result->cached.samples_per_s.runs);
            return result->cold.samples_per_s.runs;
        }
    }
    ck_abort_msg("nothing is stored %s", stored);
    return 0;
}

/* But what is recommended has all its runs. */
START_TEST(a_sweep_has_one_run_of_what_is_far_behind) {
    static const char *const codecs[] = {"none"};
    static const unsigned threads[] = {1};
    char *dir = presto_check_temp_dir(), source[600], work[600];
    snprintf(source, sizeof source, "%s/source", dir);
    snprintf(work, sizeof work, "%s/work", dir);
    ck_assert_int_eq(mkdir(source, 0777), 0);
    for (int i = 0; i < FILES; i++) {
        char path[700];
        snprintf(path, sizeof path, "%s/%d.bin", source, i);
        presto_check_write_file(path, presto_span_of_text("rest well"));
    }
    use_one_processor();
    presto_pipeline *pipeline = sleepy_pipeline();
    for (int for_speed = 0; for_speed < 2; for_speed++) {
        presto_sweep_options options;
        presto_sweep_options_defaults(&options);
        options.pipeline = pipeline;
        options.work_dir = work;
        options.codecs = codecs;
        options.codec_count = 1;
        options.threads = threads;
        options.thread_count = 1;
        options.runs = 2;
        options.run_s = 0;
        options.decide_s = 0;
        if (!for_speed)
            options.weights = (presto_weights){1, 0, 0}; /* what needs no preparation */
        const char *paths[] = {source};
        presto_sweep *sweep = NULL;
        presto_error err;
        ck_assert_ok(presto_sweep_run(paths, 1, &options, &sweep, &err), &err);
        ck_assert_uint_eq(runs_of(sweep, "rested"), 2);
        ck_assert_uint_eq(runs_of(sweep, "concatenated"), 1);
        ck_assert_uint_eq(runs_of(sweep, PRESTO_UNPROCESSED), for_speed ? 1 : 2);
        const presto_strategy_result *best = presto_sweep_result(sweep, presto_sweep_best(sweep));
        ck_assert_str_eq(best->strategy.stored, for_speed ? "rested" : PRESTO_UNPROCESSED);
        presto_sweep_free(sweep);
    }
    presto_pipeline_free(pipeline);
    presto_check_remove_tree(dir);
    free(dir);
}
END_TEST

int main(void) {
    const TTest *const tests[] = {
        what_is_three_times_slower_needs_no_more_runs,
        both_anchors_of_a_representation_have_enough_or_none,
        threads_beyond_the_processors_may_bring_as_much_more,
        with_a_target_that_is_what_counts,
        a_sweep_has_one_run_of_what_is_far_behind,
    };
    return presto_check_main("profile/spare", tests, sizeof tests / sizeof *tests, 120);
}
