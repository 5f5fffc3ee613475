/* SPDX-License-Identifier: Apache-2.0 */
/* Which strategy is the best for given weights, why, and how sure that is. */
#include "sure_internal.h"

#include <math.h>
#include <stdlib.h>

static void take_choice(presto_sweep *sweep, const presto__ballot *ballot) {
    sweep->first = ballot->choice.first;
    sweep->best = ballot->choice.best;
    sweep->verdict = ballot->choice.verdict;
    for (size_t i = 0; i < sweep->trial_count; i++) {
        sweep->trials[i].result.score = ballot->scores[i];
        sweep->trials[i].result.is_equal = ballot->is_equal[i];
    }
}

/* Where only what was run may be recommended, predictions of the others are put aside, unless there
 * is nothing else. Returns how many are left to choose from. */
static size_t take_merits(presto_sweep *sweep, presto__merit *merits) {
    size_t left = 0, aside = 0;
    for (size_t i = 0; i < sweep->trial_count; i++) {
        presto_strategy_result *result = &sweep->trials[i].result;
        merits[i] = presto__merit_of(result);
        merits[i].cost = presto__cost_of(sweep, result);
        result->cost = merits[i].cost.median;
        merits[i].is_aside = sweep->only_measured && merits[i].counts && result->is_predicted &&
                             !result->prediction.is_elsewhere;
        left += presto__may_win(&merits[i]);
        aside += merits[i].is_aside;
    }
    presto__merits_link(sweep, merits);
    for (size_t i = 0; i < sweep->trial_count && left == 0; i++)
        merits[i].is_aside = false;
    return left > 0 ? left : aside;
}

presto_status presto__decide(presto_sweep *sweep, presto_error *err) {
    size_t count = sweep->trial_count;
    presto__merit *merits = calloc(count, sizeof *merits);
    presto__ballot ballot = {.scores = calloc(count, sizeof *ballot.scores),
                             .is_equal = calloc(2 * count, sizeof *ballot.is_equal)};
    presto_status status = PRESTO_OK;
    if (merits == NULL || ballot.scores == NULL || ballot.is_equal == NULL) {
        status = presto_fail_memory(err, count * sizeof *merits);
        goto out;
    }
    ballot.scratch = ballot.is_equal + count;
    if (take_merits(sweep, merits) == 0)
        goto out; /* all have failed */
    const presto__contest contest = {merits, count, sweep->weights,
                                     presto__prices_given(&sweep->prices)};
    ballot.choice =
        presto__choose(merits, &contest, &sweep->limits, ballot.scores, ballot.is_equal);
    presto__judge(sweep, &contest, &ballot);
    take_choice(sweep, &ballot);
out:
    free(ballot.is_equal);
    free(ballot.scores);
    free(merits);
    return status;
}

presto_status presto_sweep_score(presto_sweep *sweep, const presto_weights *weights,
                                 presto_error *err) {
    PRESTO_TRY(presto__weights_check(weights, err));
    sweep->weights = *weights;
    PRESTO_TRY(presto__decide(sweep, err));
    sweep->reason.bytes = sweep->write_command.bytes = sweep->load_command.bytes = 0;
    PRESTO_TRY(presto__reason(sweep, &sweep->reason, err));
    PRESTO_TRY(presto__find_what_ifs(sweep, err));
    PRESTO_TRY(presto__write_command(sweep, &sweep->write_command, err));
    return presto__load_command(sweep, &sweep->load_command, err);
}
