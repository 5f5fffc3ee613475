/* SPDX-License-Identifier: Apache-2.0 */
/* A folder of files, and a trial of it that is prepared, as a sweep would. */
#ifndef TRIAL_CHECK_H
#define TRIAL_CHECK_H

#include <stdio.h>
#include <sys/stat.h>

#include "../../../steps/pipelines_internal.h"
#include "folder_check.h"
#include "trial/trial_internal.h"

typedef struct place {
    char *dir;
    char source[600], work[600];
    const char *paths[1];
    presto_pipeline *pipeline;
    presto_sweep_options options;
    presto__runner runner;
    presto__trial trial;
} place;

/* What the trial is of. */
typedef struct place_files {
    int count;
    size_t bytes; /* of each: its number, again and again */
} place_files;

static inline void write_source(place *at, place_files files) {
    uint8_t *content = malloc(files.bytes);
    snprintf(at->source, sizeof at->source, "%s/source", at->dir);
    ck_assert_int_eq(mkdir(at->source, 0777), 0);
    for (int i = 0; i < files.count; i++) {
        char path[700];
        snprintf(path, sizeof path, "%s/%02d.bin", at->source, i);
        memset(content, i, files.bytes);
        presto_check_write_file(path, presto_span_of(content, files.bytes));
    }
    free(content);
}

/* `samples`, `run_s`: of the options; 0: their defaults. `codec` NULL: nothing is stored. */
static inline void set_up_place(place *at, place_files files, const char *codec, uint64_t samples,
                                double run_s) {
    static const char yaml[] = "name: bytes\n"
                               "source: {type: files, match: ['*.bin']}\n"
                               "steps:\n"
                               "  - {step: read-file, yields: concatenated}\n";
    presto_error err;
    *at = (place){.dir = presto_check_temp_dir()};
    write_source(at, files);
    snprintf(at->work, sizeof at->work, "%s/work", at->dir);
    ck_assert_ok(
        presto__pipeline_parse(presto_span_of_text(yaml), "bytes", NULL, &at->pipeline, &err),
        &err);
    presto_sweep_options_defaults(&at->options);
    at->options.pipeline = at->pipeline;
    at->options.work_dir = at->work;
    at->options.samples = samples > 0 ? samples : at->options.samples;
    at->options.run_s = run_s > 0 ? run_s : at->options.run_s;
    at->paths[0] = at->source;
    ck_assert_ok(presto__runner_init(&at->runner, at->paths, 1, &at->options, &err), &err);
    at->runner.trials = &at->trial;
    at->runner.trial_count = 1;
    at->trial.result.strategy =
        (presto_strategy){.stored = codec != NULL ? "concatenated" : PRESTO_UNPROCESSED,
                          .codec = codec,
                          .threads = 2,
                          .shards = codec != NULL ? 2 : 0};
    at->trial.preparations = calloc(1, sizeof *at->trial.preparations);
    at->trial.cold = calloc(1, sizeof *at->trial.cold);
    at->trial.cached = calloc(1, sizeof *at->trial.cached);
    ck_assert_ok(presto__trial_prepare(&at->runner, &at->trial, &err), &err);
}

static inline void tear_down_place(place *at) {
    presto__trial_done(&at->trial);
    presto__runner_done(&at->runner);
    presto_pipeline_free(at->pipeline);
    presto_check_remove_tree(at->dir);
    free(at->dir);
}

#endif
