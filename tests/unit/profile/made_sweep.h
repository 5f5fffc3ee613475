/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A sweep made by hand, so that scores, texts and files can be checked against known figures: three
 * strategies, the third of which can be made to fail.
 */
#ifndef MADE_SWEEP_H
#define MADE_SWEEP_H

#include <math.h>
#include <stdio.h>

#include "presto_check.h"
#include "profile_internal.h"

static inline char *made_text(const char *text) {
    char *copy = strdup(text);
    ck_assert_ptr_nonnull(copy);
    return copy;
}

static inline void made_cost(presto__epochs *run, const char *name, bool is_step, double busy_ms) {
    presto__cost *cost = &run->costs[run->cost_count++];
    snprintf(cost->name, sizeof cost->name, "%s", name);
    cost->is_step = is_step;
    cost->busy_s_per_sample = busy_ms / 1e3;
}

/* decode_ms 0: that step was done offline. */
static inline presto__epochs made_run(double wall_s, uint64_t samples, double decode_ms,
                                      double center_ms) {
    presto__epochs run = {.epochs = 1, .samples = samples, .read_bytes = 1000 * samples};
    run.delivered_bytes = 600 * samples;
    run.measure = (presto__measure){.wall_s = wall_s, .disk_read_bytes = NAN};
    /* A second epoch is of the whole source. Without a start, it tells the same. */
    run.second_samples = 10 * (double)samples;
    run.second_s = 10 * wall_s;
    run.costs = calloc(3, sizeof *run.costs);
    ck_assert_ptr_nonnull(run.costs);
    made_cost(&run, "reading", false, 0.1);
    if (decode_ms > 0)
        made_cost(&run, "decode-image", true, decode_ms);
    made_cost(&run, "center-pixels", true, center_ms);
    return run;
}

static inline void made_trial(presto__trial *trial, const char *split, const char *codec,
                              double preparation_s, double stored_bytes, double samples_per_s) {
    presto_strategy_result *result = &trial->result;
    result->strategy = (presto_strategy){
        .stored = split, .codec = codec, .threads = 2, .shards = codec != NULL ? 2 : 0};
    result->samples = 100;
    result->stored_bytes = (uint64_t)stored_bytes / 10;
    result->total_preparation_s = preparation_s;
    result->total_stored_bytes = stored_bytes;
    result->total_stored_error_bytes = codec != NULL ? 1e6 : 0;
    result->preparation_s =
        (presto_spread){preparation_s / 10, preparation_s / 10, preparation_s / 10, 1};
    result->cold.samples_per_s =
        (presto_spread){samples_per_s * 0.99, samples_per_s, samples_per_s * 1.01, 3};
    result->cold.disk_read_bytes = NAN;
    result->cached.samples_per_s = result->cold.samples_per_s;
    trial->cold = calloc(1, sizeof *trial->cold);
    trial->cached = calloc(1, sizeof *trial->cached);
    trial->preparations = calloc(1, sizeof *trial->preparations);
    ck_assert(trial->cold != NULL && trial->cached != NULL && trial->preparations != NULL);
    trial->cold[0] =
        made_run(100 / samples_per_s, 100, codec == NULL ? 2.4 : 0, codec == NULL ? 4 : 0.1);
    trial->cached[0] =
        made_run(100 / samples_per_s, 100, codec == NULL ? 2.4 : 0, codec == NULL ? 4 : 0.1);
    trial->cold_count = trial->cached_count = 1;
    trial->preparation_count = codec != NULL;
}

/* unprocessed 800/s, 0.11 GB; decoded gzip 400/s, 0.44 GB; resized zstd:1 4,000/s, 0.22 GB. */
static inline presto_sweep *made_sweep(bool with_failure) {
    presto_sweep *sweep = calloc(1, sizeof *sweep);
    ck_assert_ptr_nonnull(sweep);
    sweep->trial_count = sweep->trial_total = 3;
    sweep->trials = calloc(3, sizeof *sweep->trials);
    ck_assert_ptr_nonnull(sweep->trials);
    made_trial(&sweep->trials[0], PRESTO_UNPROCESSED, NULL, 0, 110e6, 800);
    made_trial(&sweep->trials[1], "decoded", "gzip", 40, 440e6, 400);
    made_trial(&sweep->trials[2], "resized", "zstd:1", 20, 220e6, 4000);
    if (with_failure) {
        sweep->trials[1].result.failed = true;
        presto_fail(&sweep->trials[1].result.failure, PRESTO_ERR_IO, PRESTO_NO_OFFSET,
                    "it said \"no\", twice");
    }
    sweep->pipeline = made_text("cv");
    sweep->pipeline_name = made_text("cv");
    sweep->pipeline_json = made_text("{\"name\": \"cv\"}");
    sweep->work_dir = made_text("work");
    sweep->paths = calloc(2, sizeof *sweep->paths);
    ck_assert_ptr_nonnull(sweep->paths);
    sweep->paths[0] = made_text("my photos");
    sweep->paths[1] = made_text("plain");
    sweep->path_count = 2;
    sweep->runs = sweep->preparation_runs = 1;
    sweep->facts.samples = 100;
    sweep->facts.source_samples = 1000;
    sweep->facts.source_bytes = 110000000;
    sweep->facts.batch_samples = 32;
    const presto_weights weights = {0, 0, 1};
    presto_error err;
    ck_assert_ok(presto_sweep_score(sweep, &weights, &err), &err);
    return sweep;
}

/** Scores the sweep anew. The reason lives until the next score. */
static inline const char *reason_for(presto_sweep *sweep) {
    presto_error err;
    ck_assert_ok(presto_sweep_score(sweep, &sweep->weights, &err), &err);
    return presto_sweep_reason(sweep);
}

static inline void assert_says(const char *reason, const char *part) {
    ck_assert_msg(strstr(reason, part) != NULL, "'%s' lacks '%s'", reason, part);
}

#endif
