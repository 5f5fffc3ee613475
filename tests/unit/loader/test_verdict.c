/* SPDX-License-Identifier: Apache-2.0 */
/* The sentence about what limits a stream: each of the three is slowed down in turn. */
#define _XOPEN_SOURCE 700
#include "../../../loader/loader_internal.h"
#include "../../../steps/pipelines_internal.h"
#include "../base/clock_internal.h"
#include "made_source.h"

#include <time.h>

static void pause_ms(long ms) {
    const struct timespec time = {.tv_nsec = ms * 1000000};
    nanosleep(&time, NULL);
}

/* ---- a source of small pictures that can be slow ---- */

#define SIDE 40

static long fetch_ms; /* what it takes to read some samples */

static presto_status fetch(presto__reader *base, const uint64_t *numbers, size_t count,
                           presto__blocks *blocks, presto_error *err) {
    (void)blocks, (void)err;
    uint64_t start = presto__clock_ns();
    ((made_reader *)base)->numbers = numbers;
    if (fetch_ms > 0)
        pause_ms(fetch_ms);
    base->stats.read_bytes += count * SIDE * SIDE * 3;
    base->stats.read_ns += presto__clock_ns() - start;
    return PRESTO_OK;
}

static presto_source *slow_source(uint64_t count) {
    static const uint8_t picture[SIDE * SIDE * 3];
    made_source how = {.name = "image",
                       .spec = {.dtype = PRESTO_UINT8, .rank = 3, .dims = {SIDE, SIDE, 3}},
                       .data = picture};
    return make_source(&how, count, sizeof picture, fetch, NULL);
}

static const char pipeline_text[] = "name: t\nsource: {type: files, match: ['*']}\nsteps:\n"
                                    "  - {step: read-file, yields: concatenated}\n"
                                    "  - {step: decode-image, yields: decoded, channels: 3}\n"
                                    "  - {step: greyscale}\n"
                                    "  - {step: resize-image, height: %d, width: %d}\n";

/* ---- */

/* Stream all; the consumer takes `consume_ms` a batch. */
static presto_verdict stream(int side, long consume_ms, unsigned threads) {
    char text[600];
    presto_error err;
    presto_pipeline *pipeline;
    presto_plan *plan;
    snprintf(text, sizeof text, pipeline_text, side, side);
    ck_assert_ok(presto__pipeline_parse(presto_span_of_text(text), "test", NULL, &pipeline, &err),
                 &err);
    presto_tensor_spec spec = {.dtype = PRESTO_UINT8, .rank = 3, .dims = {SIDE, SIDE, 3}};
    presto__plan_options planning = {
        .struct_bytes = sizeof planning, .first_step = 2, .last_step = 4, .in = &spec};
    ck_assert_ok(presto__plan_new(pipeline, &planning, &plan, &err), &err);
    presto_source *source = slow_source(200);
    presto_loader_options options;
    presto_loader_options_defaults(&options);
    options.threads = threads;
    options.batch_samples = 10;
    options.memory.block_samples = 10;
    presto_loader *loader;
    presto_batch *batch;
    presto_status status;
    ck_assert_ok(presto__loader_open(source, plan, &options, &loader, &err), &err);
    while ((status = presto_loader_next(loader, &batch, &err)) == PRESTO_OK) {
        if (consume_ms > 0)
            pause_ms(consume_ms);
        presto_batch_release(batch);
        presto_loader_stats stats;
        presto_loader_get_stats(loader, &stats);
        ck_assert(stats.queue_fill >= 0 && stats.queue_fill <= 1);
    }
    ck_assert_status(status, PRESTO_END, &err);
    presto_verdict verdict;
    presto_loader_verdict(loader, &verdict);
    ck_assert_uint_eq(presto_loader_step_count(loader), 2);
    ck_assert_str_eq(presto_loader_step_name(loader, 0), "greyscale");
    ck_assert_ptr_null(presto_loader_step_name(loader, 2));
    presto_loader_free(loader);
    presto__source_free(source);
    if (verdict.step_name != NULL) /* the plan's own */
        verdict.step_name = strcmp(verdict.step_name, "resize-image") == 0 ? "resize-image" : "?";
    presto__plan_free(plan);
    presto_pipeline_free(pipeline);
    return verdict;
}

static void check_text(const presto_verdict *verdict, const char *start) {
    ck_assert_msg(strncmp(verdict->text, start, strlen(start)) == 0, "%s", verdict->text);
    ck_assert(verdict->share > 0.5 && verdict->share <= 1);
}

START_TEST(each_of_the_three_is_named_when_it_is_the_slow_one) {
    for (unsigned threads = 0; threads <= 2; threads++) {
        fetch_ms = 20;
        presto_verdict verdict = stream(20, 0, threads);
        ck_assert_int_eq(verdict.stage, PRESTO_STAGE_READ);
        ck_assert_uint_eq(verdict.step, SIZE_MAX);
        ck_assert_ptr_null(verdict.step_name);
        check_text(&verdict, "reading (");

        fetch_ms = 0;
        verdict = stream(700, 0, threads);
        ck_assert_int_eq(verdict.stage, PRESTO_STAGE_STEP);
        ck_assert_uint_eq(verdict.step, 1);
        ck_assert_str_eq(verdict.step_name, "resize-image");
        check_text(&verdict, "step resize-image (");

        verdict = stream(20, 20, threads);
        ck_assert_int_eq(verdict.stage, PRESTO_STAGE_CONSUMER);
        check_text(&verdict, "the consumer (busy ");
    }
}
END_TEST

START_TEST(stages_have_names) {
    ck_assert_str_eq(presto_stage_name(PRESTO_STAGE_READ), "read");
    ck_assert_str_eq(presto_stage_name(PRESTO_STAGE_CONSUMER), "consumer");
    ck_assert_str_eq(presto_stage_name((presto_stage)99), "?");
}
END_TEST

int main(void) {
    const TTest *const tests[] = {
        each_of_the_three_is_named_when_it_is_the_slow_one,
        stages_have_names,
    };
    return presto_check_main("verdict", tests, sizeof tests / sizeof tests[0], 120);
}
