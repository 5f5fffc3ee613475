/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A codec in the loader: a few of the records that an anchor has stored are stored again in the
 * codec, and loaded with the page cache filled, on one thread and on all processors. A codec alone
 * does not tell what it costs there, where other data fill the caches.
 */
#include "../../base/file_internal.h"
#include "../../base/folder_internal.h"
#include "predict_internal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Compressing them takes about this long, but there are at least so many. */
#define COMPRESS_S 0.3
#define RECORDS_LEAST 8

static bool on_progress(void *user, const presto_progress *progress) {
    (void)progress;
    presto__runner *runner = user;
    const presto_strategy strategy = {.split = PRESTO_UNPROCESSED};
    return presto__runner_report(runner, &strategy, NULL, NULL) == PRESTO_OK;
}

static presto_status store_again(const presto__online *what, presto__trial *trial,
                                 presto_error *err) {
    presto_convert_options options;
    presto_convert_options_defaults(&options);
    options.dir = trial->dir;
    options.codec = what->strategy.codec;
    options.shards = 1;
    options.threads = what->model->cores;
    options.limit_samples = trial->result.samples;
    options.sync = false;
    options.on_progress = on_progress;
    options.on_progress_user = what->runner;
    presto_convert_result result;
    return presto_convert(&what->dir, 1, &options, &result, err);
}

presto_status presto__probe_online(const presto__online *what, presto__model_codec *codec,
                                   presto_error *err) {
    unsigned cores = what->model->cores;
    double rates[2] = {0, 0};
    presto__trial trial = {.result.strategy = what->strategy};
    double wanted = COMPRESS_S * cores / fmax(codec->compress_s.all, 1e-9);
    wanted = fmin(fmax(wanted, RECORDS_LEAST), (double)what->model->samples);
    trial.result.samples = (uint64_t)wanted;
    trial.dir = presto__join_path(what->runner->work_dir, "codec");
    if (trial.dir == NULL)
        return presto_fail_memory(err, strlen(what->runner->work_dir) + 8);
    presto_status status = store_again(what, &trial, err);
    for (size_t i = 0; i < 2 && status == PRESTO_OK; i++) {
        trial.result.strategy.threads = i == 0 ? 1 : cores;
        status = presto__trial_look(what->runner, &trial, &rates[i], err);
    }
    presto__trial_remove(&trial);
    if (status == PRESTO_OK)
        codec->cached_s = (presto__pair){1 / rates[0], cores / rates[1]};
    return status;
}
