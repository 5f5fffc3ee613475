/* SPDX-License-Identifier: Apache-2.0 */
/* The journal of a sweep: what is taken from it fits the sweep, and can be summed up. */
#include "fuzz.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "predict/predict_internal.h"

#define TRIALS 3
#define RUNS 2

static void make(presto__trial *trial, const char *codec) {
    trial->result.strategy = (presto_strategy){.stored = "resized", .codec = codec, .threads = 1};
    trial->preparations = calloc(RUNS, sizeof *trial->preparations);
    trial->cold = calloc(RUNS, sizeof *trial->cold);
    trial->cached = calloc(RUNS, sizeof *trial->cached);
    if (trial->preparations == NULL || trial->cold == NULL || trial->cached == NULL)
        abort();
}

static void check(const presto__trial *trial) {
    FUZZ_HOLDS(trial->cold_count <= RUNS && trial->cold_count == trial->cached_count);
    FUZZ_HOLDS(trial->preparation_count <= (trial->result.strategy.codec != NULL ? RUNS : 0));
    for (size_t i = 1; i < trial->lap_count; i++)
        FUZZ_HOLDS(trial->laps[i].round > trial->laps[i - 1].round);
    for (size_t i = 0; i < trial->cold_count; i++) {
        FUZZ_HOLDS(trial->cold[i].epochs > 0 && trial->cold[i].samples > 0);
        FUZZ_HOLDS(trial->cold[i].measure.wall_s >= 0);
        for (size_t k = 0; k < trial->cold[i].cost_count; k++)
            FUZZ_HOLDS(memchr(trial->cold[i].costs[k].name, '\0', 64) != NULL);
    }
}

/* What they tell is taken over by a model, or refused. */
static void check_probes(json_t *const probes[2]) {
    presto__model_codec codecs[2] = {{.is_known = false}};
    presto__model_split split = {.codecs = codecs};
    presto__model model = {.splits = &split, .split_count = 1, .codec_count = 2};
    presto_error err;
    if (probes[0] != NULL && presto__machine_recall(&model, probes[0], &err) == PRESTO_OK)
        FUZZ_HOLDS(!(model.memory_bytes_per_s.one < 0));
    for (size_t i = 0; i < model.step_count; i++)
        FUZZ_HOLDS(memchr(model.steps[i].name, '\0', sizeof model.steps[i].name) != NULL);
    if (probes[1] != NULL && presto__split_recall(&model, 0, probes[1], &err) == PRESTO_OK)
        FUZZ_HOLDS(!(codecs[0].stored_bytes < 0) && !(split.start_s.all < 0));
    free(model.steps);
    json_decref(probes[0]);
    json_decref(probes[1]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes) {
    presto__trial trials[TRIALS] = {{.dir = NULL}};
    const presto__runner runner = {.source_samples = 10, .samples = 5, .source_bytes = 1000};
    json_t *probes[2] = {NULL, NULL};
    const presto__journal_request request = {.path = "trials.jsonl",
                                             .sweep = "s",
                                             .trials = trials,
                                             .trial_count = TRIALS,
                                             .probes = probes,
                                             .probe_count = 2,
                                             .runs = RUNS,
                                             .preparation_runs = RUNS};
    presto_error err;
    size_t whole = 0;
    for (size_t i = 0; i < TRIALS; i++)
        make(&trials[i], i == 0 ? NULL : "zstd:1");
    presto_status status =
        presto__journal_read(&request, presto_span_of(data, bytes), &whole, &err);
    FUZZ_HOLDS(whole <= bytes);
    for (size_t i = 0; i < TRIALS; i++) {
        check(&trials[i]);
        bool is_whole = trials[i].cold_count > 0 && (i == 0 || trials[i].preparation_count > 0);
        if (status == PRESTO_OK && is_whole)
            (void)presto__trial_summarize(&runner, &trials[i], &err);
        presto__trial_done(&trials[i]);
    }
    check_probes(probes);
    return 0;
}
