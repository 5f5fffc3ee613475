/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Plans: checks before any data, the explanation, output hooks, random draws, statistics, errors.
 */

#include <pthread.h>

#include "../../../steps/pipelines_internal.h"
#include "../base/clock_internal.h"
#include "steps_check.h"

static const presto_tensor_spec photo = {PRESTO_UINT8, 3, {40, 60, 3}};

static const uint8_t *photo_pixels(void) {
    static uint8_t pixels[40 * 60 * 3];
    for (size_t i = 0; i < sizeof pixels; i++)
        pixels[i] = (uint8_t)(i * 31 + i / 180 * 7);
    return pixels;
}

static presto_pipeline *load_cv(void) {
    presto_pipeline *pipeline;
    presto_error err;
    ck_assert_ok(presto_pipeline_load("cv", NULL, &pipeline, &err), &err);
    return pipeline;
}

START_TEST(a_plan_knows_what_comes_out) {
    presto_pipeline *cv = load_cv();
    presto_plan *plan;
    presto_error err;
    char text[PRESTO_SPEC_TEXT_BYTES];
    const char *want[] = {"string",       "string",         "uint8[?,?,3]",
                          "uint8[?,?,3]", "float32[?,?,3]", "float32[224,224,3]"};
    for (size_t last = 0; last <= 5; last++) {
        ck_assert_ok(plan_of(cv, 0, last, &string_spec, &plan, &err), &err);
        ck_assert_str_eq(presto_spec_format(presto__plan_output(plan), text, sizeof text),
                         want[last]);
        ck_assert_uint_eq(presto_plan_step_count(plan), last);
        ck_assert(((presto__plan_flags(plan) & PRESTO_STEP_RANDOM) != 0) == (last == 5));
        ck_assert_ptr_null(presto__plan_step_name(plan, last));
        presto__plan_free(plan);
    }
    presto_tensor_spec in = {PRESTO_UINT8, 3, {375, 500, 3}};
    ck_assert_ok(plan_of(cv, 2, 3, &in, &plan, &err), &err);
    ck_assert_str_eq(presto_spec_format(presto__plan_output(plan), text, sizeof text),
                     "uint8[256,341,3]");
    ck_assert_str_eq(presto__plan_step_name(plan, 0), "resize-image");
    presto__plan_free(plan);
    presto_pipeline_free(cv);
}
END_TEST

START_TEST(the_explanation_names_steps_shapes_and_what_is_fused) {
    presto_pipeline *cv = load_cv();
    presto_plan *plan;
    presto_error err;
    ck_assert_ok(plan_of(cv, 0, 5, &string_spec, &plan, &err), &err);
    const char *text = presto_plan_explain(plan);
    printf("%s", text);
    ck_assert_ptr_nonnull(strstr(text, "decode-image     -> uint8[?,?,3], yields decoded [fused"));
    ck_assert_ptr_nonnull(
        strstr(text, "random-crop      -> float32[224,224,3] (602 kB), random [fused"));
    size_t lines = 0;
    for (const char *c = text; *c != '\0'; c++)
        lines += *c == '\n';
    ck_assert_uint_eq(lines, 7);
    presto__plan_free(plan);
    ck_assert_ok(plan_of(cv, 0, 4, &string_spec, &plan, &err), &err);
    ck_assert_ptr_null(strstr(presto_plan_explain(plan), "fused"));
    presto__plan_free(plan);
    presto_pipeline_free(cv);
}
END_TEST

START_TEST(an_input_that_does_not_fit_is_refused_with_step_and_line) {
    presto_pipeline *cv = load_cv();
    presto_plan *plan = NULL;
    presto_error err;
    presto_tensor_spec in = {PRESTO_FLOAT32, 1, {500}};
    ck_assert_status(plan_of(cv, 2, 5, &in, &plan, &err), PRESTO_ERR_TYPE, &err);
    ck_assert_ptr_nonnull(strstr(err.message, "line 8: step resize-image: needs"));
    ck_assert_str_eq(err.file, "pipeline cv");
    presto_tensor_spec small = {PRESTO_FLOAT32, 3, {100, 300, 3}};
    ck_assert_status(plan_of(cv, 4, 5, &small, &plan, &err), PRESTO_ERR_TYPE, &err);
    ck_assert_ptr_nonnull(strstr(err.message, "smaller than the crop"));
    ck_assert_status(plan_of(cv, 3, 2, &in, &plan, &err), PRESTO_ERR_ARGUMENT, &err);
    ck_assert_status(plan_of(cv, 0, 6, &in, &plan, &err), PRESTO_ERR_ARGUMENT, &err);
    ck_assert_ptr_null(plan);
    presto_pipeline_free(cv);
}
END_TEST

typedef struct hook {
    int calls;
    presto_tensor_spec spec;
    uint8_t *memory;
    presto_status answer;
} hook;

static presto_status take_row(void *user, const presto_output_request *request, void **data_out,
                              presto_error *err) {
    hook *h = user;
    h->calls++;
    h->spec = *request->spec;
    if (h->answer < 0)
        return presto_fail(err, h->answer, PRESTO_NO_OFFSET, "no row");
    *data_out = h->memory;
    return PRESTO_OK;
}

/* The last step writes where the hook says, whether or not it is fused. */
static void check_hook(const char *steps, bool no_fusion) {
    rig r;
    presto_error err;
    ck_assert_ok(rig_open(&r, steps, &photo, no_fusion, &err), &err);
    presto_tensor a = {.spec = photo, .data = photo_pixels()};
    rig_options options = {.seed = 3, .sample = 9};
    ck_assert_ok(rig_run(&r, &options, &a, &err), &err);
    size_t bytes = presto_tensor_bytes(&a);
    uint8_t *want = rig_copy(&a);
    hook h = {.memory = malloc(bytes)};
    options.output = take_row;
    options.output_user = &h;
    presto_tensor b = {.spec = photo, .data = photo_pixels()};
    ck_assert_ok(rig_run(&r, &options, &b, &err), &err);
    ck_assert_int_eq(h.calls, 1);
    ck_assert(presto_spec_equal(&h.spec, &a.spec));
    ck_assert_ptr_eq(b.data, h.memory);
    ck_assert_int_eq(memcmp(h.memory, want, bytes), 0);
    h.answer = PRESTO_ERR_RAGGED;
    presto_tensor c = {.spec = photo, .data = photo_pixels()};
    ck_assert_status(rig_run(&r, &options, &c, &err), PRESTO_ERR_RAGGED, &err);
    ck_assert_ptr_eq(c.data, photo_pixels());
    free(want);
    free(h.memory);
    rig_close(&r);
}

START_TEST(the_last_step_writes_into_the_hooks_memory) {
    const char *steps[] = {
        "{step: center-pixels}",
        "{step: greyscale}",
        "{step: resize-image, min-side: 20}",
        "{step: resize-image, height: 40, width: 60}",
        "{step: random-crop, height: 20, width: 30}",
        "{step: center-pixels}, {step: random-crop, height: 20, width: 30}",
        "{step: center-pixels}, {step: random-crop, height: 40, width: 60}",
        "{step: random-crop, height: 20, width: 30}, {step: center-pixels}",
        "{step: resize-image, min-side: 50}, {step: random-crop, height: 20, width: 30}",
    };
    for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++) {
        check_hook(steps[i], false);
        check_hook(steps[i], true);
    }
}
END_TEST

START_TEST(a_plan_of_no_steps_leaves_everything_alone) {
    presto_pipeline *cv = load_cv();
    presto_plan *plan;
    presto__plan_worker *worker;
    presto_error err;
    presto_arena arena = {0};
    ck_assert_ok(plan_of(cv, 3, 3, &photo, &plan, &err), &err);
    ck_assert_ok(presto__plan_worker_new(
                     plan,
                     &(presto__plan_worker_options){
                         .struct_bytes = sizeof(presto__plan_worker_options), .arena = &arena},
                     &worker, &err),
                 &err);
    hook h = {.answer = PRESTO_ERR_MEMORY};
    rig_options options = {.output = take_row, .output_user = &h};
    presto_tensor tensor = {.spec = photo, .data = photo_pixels()};
    ck_assert_ok(run_one(worker, &options, &tensor, &err), &err);
    ck_assert_int_eq(h.calls, 0);
    ck_assert_ptr_eq(tensor.data, photo_pixels());
    ck_assert_str_ne(presto_plan_explain(plan), "");
    presto__plan_worker_free(worker);
    presto__plan_free(plan);
    presto_pipeline_free(cv);
    presto_arena_done(&arena);
}
END_TEST

/* Crops of `count` samples, one after the other, as one buffer. */
static uint8_t *crops(uint64_t seed, uint64_t epoch, size_t count, size_t *bytes_out) {
    rig r;
    presto_error err;
    presto_buffer all = {0};
    ck_assert_ok(rig_open(&r, "{step: random-crop, height: 5, width: 7}", &photo, false, &err),
                 &err);
    for (size_t i = 0; i < count; i++) {
        rig_options options = {.seed = seed, .epoch = epoch, .sample = i};
        presto_tensor tensor = {.spec = photo, .data = photo_pixels()};
        ck_assert_ok(rig_run(&r, &options, &tensor, &err), &err);
        ck_assert_ok(presto_buffer_append(
                         &all, presto_span_of(tensor.data, presto_tensor_bytes(&tensor)), &err),
                     &err);
    }
    rig_close(&r);
    *bytes_out = all.bytes;
    return all.data;
}

START_TEST(the_same_seed_and_epoch_draw_the_same_crops) {
    size_t bytes, other_bytes;
    uint8_t *a = crops(1, 2, 50, &bytes);
    uint8_t *b = crops(1, 2, 50, &other_bytes);
    ck_assert_uint_eq(bytes, other_bytes);
    ck_assert_int_eq(memcmp(a, b, bytes), 0);
    free(b);
    b = crops(2, 2, 50, &other_bytes);
    ck_assert_int_ne(memcmp(a, b, bytes), 0);
    free(b);
    b = crops(1, 3, 50, &other_bytes);
    ck_assert_int_ne(memcmp(a, b, bytes), 0);
    free(b);
    free(a);
}
END_TEST

START_TEST(the_order_of_samples_does_not_change_their_draws) {
    rig r;
    presto_error err;
    uint8_t *want[20];
    ck_assert_ok(rig_open(&r, "{step: random-crop, height: 5, width: 7}", &photo, false, &err),
                 &err);
    for (int round = 0; round < 2; round++) {
        for (size_t i = 0; i < 20; i++) {
            size_t sample = round == 0 ? i : 19 - i;
            rig_options options = {.sample = sample};
            presto_tensor tensor = {.spec = photo, .data = photo_pixels()};
            ck_assert_ok(rig_run(&r, &options, &tensor, &err), &err);
            if (round == 0)
                want[sample] = rig_copy(&tensor);
            else
                ck_assert_int_eq(memcmp(want[sample], tensor.data, presto_tensor_bytes(&tensor)),
                                 0);
        }
    }
    for (size_t i = 0; i < 20; i++)
        free(want[i]);
    rig_close(&r);
}
END_TEST

START_TEST(every_place_of_a_crop_is_drawn) {
    presto_tensor_spec in = {PRESTO_UINT8, 3, {4, 5, 1}};
    uint8_t pixels[20];
    for (size_t i = 0; i < 20; i++)
        pixels[i] = (uint8_t)i;
    rig r;
    presto_error err;
    unsigned seen[20] = {0};
    ck_assert_ok(rig_open(&r, "{step: random-crop, height: 2, width: 2}", &in, false, &err), &err);
    for (uint64_t i = 0; i < 2400; i++) {
        rig_options options = {.sample = i};
        presto_tensor tensor = {.spec = in, .data = pixels};
        ck_assert_ok(rig_run(&r, &options, &tensor, &err), &err);
        const uint8_t *crop = tensor.data;
        ck_assert(crop[1] == crop[0] + 1 && crop[2] == crop[0] + 5 && crop[3] == crop[0] + 6);
        seen[crop[0]]++;
    }
    /* 3 x 4 places, 200 times each on average; the draws are fixed, so this cannot flicker. */
    for (unsigned y = 0; y < 3; y++)
        for (unsigned x = 0; x < 4; x++)
            ck_assert_msg(seen[5 * y + x] > 140 && seen[5 * y + x] < 260, "%u", seen[5 * y + x]);
    rig_close(&r);
}
END_TEST

START_TEST(statistics_count_every_sample_and_scale_the_time) {
    rig r;
    presto_error err;
    ck_assert_ok(rig_open(&r, "{step: center-pixels}, {step: greyscale}", &photo, false, &err),
                 &err);
    uint64_t start = presto__clock_ns();
    for (uint64_t i = 0; i < 2000; i++) {
        rig_options options = {.sample = i};
        presto_tensor tensor = {.spec = photo, .data = photo_pixels()};
        ck_assert_ok(rig_run(&r, &options, &tensor, &err), &err);
    }
    uint64_t wall = presto__clock_ns() - start;
    presto_step_stats center = presto__plan_worker_stats(r.worker, 0);
    presto_step_stats grey = presto__plan_worker_stats(r.worker, 1);
    ck_assert_uint_eq(center.samples, 2000);
    ck_assert_uint_eq(grey.samples, 2000);
    ck_assert_uint_eq(center.out_bytes, UINT64_C(2000) * 40 * 60 * 3 * 4);
    ck_assert_uint_eq(grey.out_bytes, UINT64_C(2000) * 40 * 60 * 4);
    ck_assert_uint_gt(center.busy_ns, 0);
    /* Scaled samples are an estimate: of the right size, not exact. */
    ck_assert_uint_lt(center.busy_ns + grey.busy_ns, 20 * wall);
    ck_assert_uint_eq(presto__plan_worker_stats(r.worker, 2).samples, 0);
    rig_close(&r);
}
END_TEST

static presto_status read_from_table(void *user, presto_span path, presto_arena *arena,
                                     presto_span *bytes_out, presto_error *err) {
    (void)arena;
    if (presto_span_is(path, "missing.jpg")) {
        presto_status status = presto_fail(err, PRESTO_ERR_IO, 7, "cannot open");
        presto_error_set_file(err, "missing.jpg");
        return status;
    }
    *bytes_out = *(presto_span *)user;
    return PRESTO_OK;
}

START_TEST(files_are_read_through_the_callers_function) {
    presto_pipeline *cv = load_cv();
    presto_plan *plan;
    presto__plan_worker *worker;
    presto_error err;
    presto_arena arena = {0};
    presto_span content = presto_span_of_text("not an image");
    presto_span path = presto_span_of_text("a.jpg");
    rig_options options = {0};
    presto_tensor tensor = {.spec = string_spec, .strings = &path};
    ck_assert_ok(plan_of(cv, 0, 2, &string_spec, &plan, &err), &err);
    ck_assert_ok(presto__plan_worker_new(plan,
                                         &(presto__plan_worker_options){
                                             .struct_bytes = sizeof(presto__plan_worker_options),
                                             .arena = &arena,
                                             .read_file = read_from_table,
                                             .read_file_user = &content},
                                         &worker, &err),
                 &err);
    ck_assert_status(run_one(worker, &options, &tensor, &err), PRESTO_ERR_CORRUPT, &err);
    ck_assert_str_eq(err.message, "decode-image: a text file, but a JPEG or PNG is needed: has its "
                                  "download failed, or is the path another one?");
    path = presto_span_of_text("missing.jpg");
    ck_assert_status(run_one(worker, &options, &tensor, &err), PRESTO_ERR_IO, &err);
    ck_assert_str_eq(err.message, "read-file: cannot open");
    ck_assert_str_eq(err.file, "missing.jpg");
    ck_assert_uint_eq(err.offset, 7);
    presto__plan_worker_free(worker);
    ck_assert_ok(presto__plan_worker_new(
                     plan,
                     &(presto__plan_worker_options){
                         .struct_bytes = sizeof(presto__plan_worker_options), .arena = &arena},
                     &worker, &err),
                 &err);
    ck_assert_status(run_one(worker, &options, &tensor, &err), PRESTO_ERR_ARGUMENT, &err);
    presto__plan_worker_free(worker);
    presto__plan_free(plan);
    presto_pipeline_free(cv);
    presto_arena_done(&arena);
}
END_TEST

START_TEST(values_that_do_not_fit_at_run_time_are_refused) {
    presto_tensor_spec unknown = {PRESTO_DTYPE_UNKNOWN, -1, {0}};
    const char *steps[] = {"{step: center-pixels}", "{step: greyscale}",
                           "{step: resize-image, min-side: 9}",
                           "{step: random-crop, height: 41, width: 5}"};
    presto_tensor_spec wrong[] = {{PRESTO_INT64, 1, {3}},
                                  {PRESTO_UINT8, 3, {4, 4, 4}},
                                  {PRESTO_UINT8, 2, {4, 4}},
                                  {PRESTO_UINT8, 3, {40, 60, 3}}};
    static const uint8_t data[40 * 60 * 3];
    for (size_t i = 0; i < 4; i++) {
        rig r;
        presto_error err;
        ck_assert_ok(rig_open(&r, steps[i], &unknown, false, &err), &err);
        presto_tensor tensor = {.spec = wrong[i], .data = data};
        rig_options options = {0};
        ck_assert_status(rig_run(&r, &options, &tensor, &err), PRESTO_ERR_TYPE, &err);
        rig_close(&r);
    }
}
END_TEST

START_TEST(an_output_beyond_the_limit_is_refused) {
    rig r;
    presto_error err;
    presto_tensor_spec thin = {PRESTO_UINT8, 3, {1, 65535, 3}};
    static const uint8_t data[65535 * 3];
    ck_assert_ok(rig_open(&r, "{step: resize-image, min-side: 65535}", &thin, false, &err), &err);
    presto_tensor tensor = {.spec = thin, .data = data};
    rig_options options = {0};
    ck_assert_status(rig_run(&r, &options, &tensor, &err), PRESTO_ERR_LIMIT, &err);
    rig_close(&r);
}
END_TEST

typedef struct shared_run {
    const presto_plan *plan;
    presto__plan_worker *worker;
    presto_arena arena;
    presto_span image;
    uint8_t *last; /* the output of sample 7 */
} shared_run;

static void *run_samples(void *user) {
    shared_run *run = user;
    for (uint64_t i = 0; i < 8; i++) {
        presto_error err;
        rig_options options = {.sample = i};
        presto_tensor tensor = {.spec = string_spec, .strings = &run->image};
        presto_arena_reset(&run->arena);
        ck_assert_ok(run_one(run->worker, &options, &tensor, &err), &err);
        if (i == 7)
            run->last = rig_copy(&tensor);
    }
    return NULL;
}

START_TEST(threads_share_a_plan_and_statistics_are_read_meanwhile) {
    presto_pipeline *cv = load_cv();
    presto_plan *plan;
    presto_error err;
    size_t bytes;
    uint8_t *image =
        presto_check_read_file(PRESTO_GOLDEN_DIR "/images/jpeg-420-640x427.jpg", &bytes);
    ck_assert_ok(plan_of(cv, 1, 5, &string_spec, &plan, &err), &err);
    shared_run runs[4] = {0};
    pthread_t threads[4];
    for (size_t i = 0; i < 4; i++) {
        runs[i] = (shared_run){.plan = plan, .image = presto_span_of(image, bytes)};
        ck_assert_ok(
            presto__plan_worker_new(
                plan,
                &(presto__plan_worker_options){.struct_bytes = sizeof(presto__plan_worker_options),
                                               .arena = &runs[i].arena},
                &runs[i].worker, &err),
            &err);
    }
    for (size_t i = 0; i < 4; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, run_samples, &runs[i]), 0);
    uint64_t samples = 0;
    while (samples < 32) {
        samples = 0;
        for (size_t i = 0; i < 4; i++)
            samples += presto__plan_worker_stats(runs[i].worker, 3).samples;
    }
    for (size_t i = 0; i < 4; i++) {
        ck_assert_int_eq(pthread_join(threads[i], NULL), 0);
        ck_assert_int_eq(memcmp(runs[0].last, runs[i].last, (size_t)224 * 224 * 3 * 4), 0);
    }
    for (size_t i = 0; i < 4; i++) {
        free(runs[i].last);
        presto__plan_worker_free(runs[i].worker);
        presto_arena_done(&runs[i].arena);
    }
    presto__plan_free(plan);
    presto_pipeline_free(cv);
    free(image);
}
END_TEST

int main(void) {
    const TTest *const tests[] = {
        a_plan_knows_what_comes_out,
        the_explanation_names_steps_shapes_and_what_is_fused,
        an_input_that_does_not_fit_is_refused_with_step_and_line,
        the_last_step_writes_into_the_hooks_memory,
        a_plan_of_no_steps_leaves_everything_alone,
        the_same_seed_and_epoch_draw_the_same_crops,
        the_order_of_samples_does_not_change_their_draws,
        every_place_of_a_crop_is_drawn,
        statistics_count_every_sample_and_scale_the_time,
        files_are_read_through_the_callers_function,
        values_that_do_not_fit_at_run_time_are_refused,
        an_output_beyond_the_limit_is_refused,
        threads_share_a_plan_and_statistics_are_read_meanwhile,
    };
    return presto_check_main("plan", tests, sizeof tests / sizeof tests[0], 60);
}
