/* SPDX-License-Identifier: Apache-2.0 */
/* How long an epoch by itself takes before it is under way: from opening a loader to the end of one
 * that delivers a single sample, with the page cache filled. */
#include "../../base/clock_internal.h"
#include "../../loader/loader_internal.h"
#include "../../steps/pipelines_internal.h"
#include "predict_internal.h"

#include <math.h>

#define TIMES 5

static presto_status time_one(presto_source *source, const presto_plan *plan,
                              const presto_loader_options *options, double *seconds_out,
                              presto_error *err) {
    presto_loader *loader = NULL;
    uint64_t start = presto__clock_ns();
    PRESTO_TRY(presto__loader_open(source, plan, options, &loader, err));
    presto_batch *batch = NULL;
    presto_status status = presto_loader_next(loader, &batch, err);
    presto_batch_release(status == PRESTO_OK ? batch : NULL);
    *seconds_out = presto__seconds(presto__clock_ns() - start);
    presto_loader_free(loader);
    return status < 0 ? status : PRESTO_OK;
}

static presto_status time_start(presto_source *source, const presto_plan *plan,
                                const presto_loader_options *options, double *seconds_out,
                                presto_error *err) {
    double least = INFINITY;
    for (int i = 0; i < TIMES; i++) {
        double seconds = 0;
        PRESTO_TRY(time_one(source, plan, options, &seconds, err));
        least = fmin(least, seconds);
    }
    *seconds_out = least;
    return PRESTO_OK;
}

presto_status presto__probe_start(const presto__runner *runner, const presto__trial *trial,
                                  double *seconds_out, presto_error *err) {
    presto_loader_options loading;
    presto_loader_options_defaults(&loading);
    loading.threads = trial->result.strategy.threads;
    loading.batch_samples = 1;
    loading.range.limit_samples = 1;
    loading.errors = presto__trial_errors(runner);
    loading.should_stop = presto__runner_stops;
    loading.should_stop_user = (void *)(uintptr_t)runner;
    if (trial->result.strategy.codec == NULL)
        return time_start(runner->source, runner->plan, &loading, seconds_out, err);
    presto_stream stream = {0};
    PRESTO_TRY(presto__trial_stream_open(runner, trial->dir, &stream, err));
    presto_status status = time_start(stream.source, stream.plan, &loading, seconds_out, err);
    presto_stream_close(&stream);
    return status;
}
