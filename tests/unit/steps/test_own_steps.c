/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The step interface as a user's own steps see it: features by name, models, outputs of unknown
 * length, dropped samples, serial steps, cancelling.
 */
#include <pthread.h>
#include <sched.h>

#include "../../../steps/pipelines_internal.h"
#include "own_steps.h"

/* ---- running them ---- */

static void open_own(rig *r, const char *steps) {
    presto_error err;
    *r = (rig){0};
    ck_assert_ok(parse_set(steps, NULL, 0, &r->pipeline, &err), &err);
    ck_assert_ok(plan_of(r->pipeline, 1, presto_pipeline_step_count(r->pipeline), &string_spec,
                         &r->plan, &err),
                 &err);
    presto__plan_worker_options worker = {.struct_bytes = sizeof worker, .arena = &r->arena};
    ck_assert_ok(presto__plan_worker_new(r->plan, &worker, &r->worker, &err), &err);
}

typedef struct words {
    presto_span main, note;
    int64_t numbers[3];
    presto_feature features[3];
    presto_sample sample;
} words;

/* A sample of "main", "note" (texts) and "numbers"; the main one is the second. */
static void make_words(words *w, const char *main_text, const char *note) {
    *w = (words){.main = presto_span_of_text(main_text),
                 .note = presto_span_of_text(note),
                 .numbers = {1, 2, 3}};
    w->features[0] = (presto_feature){.name = presto_span_of_text("note"),
                                      .tensor = {.spec = string_spec, .strings = &w->note}};
    w->features[1] = (presto_feature){.name = presto_span_of_text("main"),
                                      .tensor = {.spec = string_spec, .strings = &w->main}};
    w->features[2] =
        (presto_feature){.name = presto_span_of_text("numbers"),
                         .encoding = PRESTO_ENCODE_INT64,
                         .tensor = {.spec = {PRESTO_INT64, 1, {3}}, .data = w->numbers}};
    w->sample = (presto_sample){w->features, 3, 7};
}

static presto_status run_words(rig *r, words *w, presto_error *err) {
    presto__plan_run_options options = {.struct_bytes = sizeof options, .main = 1};
    presto_arena_reset(&r->arena);
    return presto__plan_run(r->worker, &options, &w->sample, err);
}

START_TEST(outputs_of_unknown_length_keep_their_memory) {
    rig r;
    presto_error err;
    words w;
    open_own(&r, "  - {step: split-words}\n");
    make_words(&w, "a bb  ccc", "");
    ck_assert_ok(run_words(&r, &w, &err), &err);
    const presto_tensor *out = &w.sample.features[1].tensor;
    ck_assert_int_eq(out->spec.dims[0], 3);
    ck_assert_int_eq(memcmp(out->data, (int32_t[]){1, 2, 3}, 12), 0);
    ck_assert_int_eq(w.sample.features[1].encoding, PRESTO_ENCODE_TENSOR);
    const void *memory = out->data;
    ck_assert_uint_gt(presto__plan_worker_memory(r.worker), 0);
    make_words(&w, "four", "");
    ck_assert_ok(run_words(&r, &w, &err), &err);
    ck_assert_ptr_eq(w.sample.features[1].tensor.data, memory);
    ck_assert_int_eq(w.sample.features[1].tensor.spec.dims[0], 1);
    rig_close(&r);
}
END_TEST

START_TEST(a_step_reads_and_writes_the_features_that_the_pipeline_names) {
    rig r;
    presto_error err;
    words w;
    open_own(&r, "  - {step: split-words, reads: note, writes: lengths}\n"
                 "  - {step: scale, reads: numbers}\n");
    make_words(&w, "main text", "x yy");
    ck_assert_ok(run_words(&r, &w, &err), &err);
    ck_assert_uint_eq(w.sample.feature_count, 4);
    ck_assert(presto_span_is(w.sample.features[3].name, "lengths"));
    ck_assert_int_eq(w.sample.features[3].tensor.spec.dims[0], 2);
    ck_assert(presto_span_is(*w.sample.features[1].tensor.strings, "main text"));
    ck_assert_int_eq(((const int64_t *)w.sample.features[2].tensor.data)[2], 6);
    ck_assert_int_eq(w.numbers[2], 3);
    const char *text = presto_plan_explain(r.plan);
    ck_assert_ptr_nonnull(strstr(text, "reads note, writes lengths"));
    ck_assert_ptr_nonnull(strstr(text, "one thread at a time"));
    rig_close(&r);
    open_own(&r, "  - {step: scale, reads: nothing}\n");
    make_words(&w, "main text", "x yy");
    ck_assert_status(run_words(&r, &w, &err), PRESTO_ERR_TYPE, &err);
    ck_assert_str_eq(err.message, "scale: the sample has no feature \"nothing\"");
    ck_assert_ptr_eq(w.sample.features, w.features);
    rig_close(&r);
}
END_TEST

START_TEST(a_step_may_drop_a_sample_and_set_other_features) {
    rig r;
    presto_error err;
    words w;
    open_own(&r, "  - {step: first-word}\n");
    make_words(&w, "one two", "");
    ck_assert_ok(run_words(&r, &w, &err), &err);
    ck_assert(presto_span_is(*w.sample.features[1].tensor.strings, "one"));
    ck_assert(presto_span_is(w.sample.features[3].name, "rest"));
    ck_assert(presto_span_is(*w.sample.features[3].tensor.strings, " two"));
    make_words(&w, "", "");
    ck_assert_int_eq(run_words(&r, &w, &err), PRESTO_DROP);
    ck_assert_uint_eq(w.sample.feature_count, 3);
    presto_step_stats stats = presto__plan_worker_stats(r.worker, 0);
    ck_assert_uint_eq(stats.samples, 2);
    ck_assert_uint_eq(stats.dropped, 1);
    ck_assert_uint_eq(presto__plan_flags(r.plan), PRESTO_STEP_DROPS | PRESTO_STEP_SETS_FEATURES);
    rig_close(&r);
}
END_TEST

START_TEST(models_are_loaded_once_a_plan_and_freed_with_it) {
    rig r;
    presto_error err;
    loads = unloads = creates = 0;
    open_own(&r, "  - {step: scale, reads: numbers, table: tables/a.bin}\n");
    ck_assert_int_eq(creates, 1);
    ck_assert_int_eq(loads, 1);
    ck_assert_ptr_nonnull(strstr(presto_plan_explain(r.plan), "int64[3]"));
    presto__plan_worker_options options = {.struct_bytes = sizeof options, .arena = &r.arena};
    presto__plan_worker *second;
    ck_assert_ok(presto__plan_worker_new(r.plan, &options, &second, &err), &err);
    ck_assert_int_eq(loads, 1);
    presto__plan_worker_free(second);
    ck_assert_ptr_nonnull(
        strstr(presto_pipeline_json(r.pipeline), "\"table\": \"/some/folder/tables/a.bin\""));
    rig_close(&r);
    ck_assert_int_eq(unloads, 1);
    presto_plan *plan = NULL;
    ck_assert_ok(parse_set("  - {step: scale}\n  - {step: scale, table: /missing}\n", NULL, 0,
                           &r.pipeline, &err),
                 &err);
    ck_assert_status(plan_of(r.pipeline, 1, 3, &string_spec, &plan, &err), PRESTO_ERR_IO, &err);
    ck_assert_ptr_nonnull(strstr(err.message, "step scale: cannot open"));
    ck_assert_int_eq(loads, unloads);
    presto_pipeline_free(r.pipeline);
}
END_TEST

static void *scale_much(void *user) {
    rig *r = user;
    presto_arena arena = {0};
    presto__plan_worker_options options = {.struct_bytes = sizeof options, .arena = &arena};
    presto__plan_worker *worker;
    presto_error err;
    ck_assert_ok(presto__plan_worker_new(r->plan, &options, &worker, &err), &err);
    for (int i = 0; i < 2000; i++) {
        words w;
        make_words(&w, "", "");
        presto__plan_run_options run = {.struct_bytes = sizeof run, .main = 1};
        presto_arena_reset(&arena);
        ck_assert_ok(presto__plan_run(worker, &run, &w.sample, &err), &err);
    }
    presto__plan_worker_free(worker);
    presto_arena_done(&arena);
    return NULL;
}

START_TEST(threads_take_turns_in_a_serial_step) {
    rig r;
    pthread_t threads[4];
    open_own(&r, "  - {step: scale, reads: numbers}\n");
    most_inside = 0;
    for (size_t i = 0; i < 4; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, scale_much, &r), 0);
    for (size_t i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    ck_assert_int_eq(most_inside, 1);
    rig_close(&r);
}
END_TEST

static void *cancel_when_waiting(void *user) {
    while (!waiting)
        sched_yield();
    presto__plan_worker_cancel(user);
    return NULL;
}

START_TEST(a_step_that_waits_can_be_cancelled) {
    rig r;
    presto_error err;
    words w;
    pthread_t thread;
    open_own(&r, "  - {step: wait}\n");
    make_words(&w, "", "");
    waiting = 0;
    ck_assert_int_eq(pthread_create(&thread, NULL, cancel_when_waiting, r.worker), 0);
    ck_assert_status(run_words(&r, &w, &err), PRESTO_ERR_STOPPED, &err);
    pthread_join(thread, NULL);
    rig_close(&r);
}
END_TEST

START_TEST(own_steps_of_another_version_or_with_a_taken_name_are_refused) {
    presto_error err;
    presto_pipeline *pipeline = NULL;
    presto_step_type old = step_split;
    old.abi = 1;
    const presto_step_type *types[] = {&old};
    presto_pipeline_options options = {
        .struct_bytes = sizeof options, .steps = types, .step_count = 1};
    ck_assert_status(presto_pipeline_load("cv", &options, &pipeline, &err), PRESTO_ERR_ARGUMENT,
                     &err);
    old.abi = PRESTO_STEP_ABI;
    old.name = "greyscale";
    ck_assert_status(presto_pipeline_load("cv", &options, &pipeline, &err), PRESTO_ERR_ARGUMENT,
                     &err);
    ck_assert_ptr_nonnull(strstr(err.message, "greyscale"));
    ck_assert_ptr_null(pipeline);
}
END_TEST

int main(void) {
    const TTest *const tests[] = {
        outputs_of_unknown_length_keep_their_memory,
        a_step_reads_and_writes_the_features_that_the_pipeline_names,
        a_step_may_drop_a_sample_and_set_other_features,
        models_are_loaded_once_a_plan_and_freed_with_it,
        threads_take_turns_in_a_serial_step,
        a_step_that_waits_can_be_cancelled,
        own_steps_of_another_version_or_with_a_taken_name_are_refused,
    };
    return presto_check_main("own-steps", tests, sizeof tests / sizeof tests[0], 60);
}
