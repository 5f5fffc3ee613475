/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which anchors need no more runs. What is stored as an anchor has it, in a codec or not, may be as
 * fast as the anchors are from the page cache, where no byte is waited for, and hardly faster. If
 * that is far behind what another strategy has shown, it is not the fastest, however far off its only
 * run may be. It may be the cheapest, if that is asked for: then it gets the runs that it lacks.
 */
#include "predict_internal.h"

#include <math.h>

/* So many times as fast as all that may be: more than a run is ever off in the middle of others, and
 * than a codec gains. */
#define FAR_BEHIND 3.0

/* With a target, it is enough to reach that. */
static double rate_to_reach(const presto_sweep *sweep, const presto__runner *runner) {
    double most = 0;
    for (size_t i = 0; i < sweep->trial_count; i++)
        if (presto__trial_is_alive(&sweep->trials[i]))
            most = fmax(most, presto__trial_whole_rate(runner, &sweep->trials[i]));
    bool has_target = sweep->limits.target_samples_per_s > 0;
    return has_target ? fmin(most, presto__goal(&sweep->limits)) : most;
}

/* Of its runs, cold or cached, the fastest; infinite if it has none. */
static double most_of(const presto__runner *runner, const presto__trial *trial) {
    if (trial->cold_count == 0)
        return presto__trial_is_alive(trial) ? INFINITY : 0;
    double most = presto__trial_whole_rate(runner, trial);
    for (size_t i = 0; i < trial->cold_count; i++)
        most = fmax(most, fmax(presto__epochs_rate(&trial->cold[i]),
                               presto__epochs_rate(&trial->cached[i])));
    return most;
}

/* Threads beyond this machine's processors are expected to do as much as these. */
static double machines(const presto_sweep *sweep) {
    double most = 1;
    for (size_t i = 0; i < sweep->space.thread_count; i++)
        most = fmax(most, (double)sweep->space.threads[i] / sweep->model->cores);
    return most;
}

bool presto__anchor_has_enough(const presto_sweep *sweep, const presto__runner *runner, size_t i) {
    double least = rate_to_reach(sweep, runner);
    for (size_t s = 0; s < sweep->space.split_count; s++) {
        const size_t *at = sweep->anchors[s].at;
        if (at[0] != i && at[1] != i)
            continue;
        double most =
            fmax(most_of(runner, &sweep->trials[at[0]]), most_of(runner, &sweep->trials[at[1]]));
        if (most * machines(sweep) * FAR_BEHIND >= least)
            return false;
    }
    return true;
}
