/* SPDX-License-Identifier: Apache-2.0 */
/* The results of a sweep, and which strategy is the best for given weights. */
#include "sure_internal.h"

#include <math.h>
#include <stdlib.h>

#define RUNNERS_UP_MOST 10

size_t presto_sweep_result_count(const presto_sweep *sweep) {
    return sweep->trial_count;
}

const presto_strategy_result *presto_sweep_result(const presto_sweep *sweep, size_t i) {
    return &sweep->trials[i].result;
}

size_t presto_sweep_best(const presto_sweep *sweep) {
    return sweep->best;
}

const presto_sweep_prices *presto_sweep_get_prices(const presto_sweep *sweep) {
    return &sweep->prices;
}

const presto_sweep_limits *presto_sweep_get_limits(const presto_sweep *sweep) {
    return &sweep->limits;
}

presto_sweep_verdict presto_sweep_get_verdict(const presto_sweep *sweep) {
    return sweep->verdict;
}

const char *presto_sweep_reason(const presto_sweep *sweep) {
    return (const char *)sweep->reason.data;
}

const char *presto_sweep_note(const presto_sweep *sweep, size_t i) {
    return i < sweep->note_count ? sweep->notes[i] : NULL;
}

const presto_sweep_facts *presto_sweep_get_facts(const presto_sweep *sweep) {
    return &sweep->facts;
}

const char *presto_sweep_write_command(const presto_sweep *sweep) {
    return sweep->write_command.bytes > 0 ? (const char *)sweep->write_command.data : NULL;
}

const char *presto_sweep_load_command(const presto_sweep *sweep) {
    return (const char *)sweep->load_command.data;
}

const presto_sweep_confidence *presto_sweep_get_confidence(const presto_sweep *sweep) {
    return &sweep->confidence;
}

const presto_sweep_what_if *presto_sweep_get_what_if(const presto_sweep *sweep, size_t i) {
    return i < sweep->what_if_count ? &sweep->what_ifs[i].what_if : NULL;
}

/* Is a before b in the order of scores, or of costs? What reaches the target is before what does
 * not; if nothing does, what is fast is near. */
static bool precedes(const presto_sweep *sweep, size_t a, size_t b) {
    const presto_strategy_result *one = &sweep->trials[a].result;
    const presto_strategy_result *other = &sweep->trials[b].result;
    bool has_target = sweep->limits.target_samples_per_s > 0;
    if (has_target && one->is_equal != other->is_equal)
        return one->is_equal;
    bool by_cost = isfinite(one->cost) && sweep->verdict != PRESTO_SWEEP_MISSES;
    if (by_cost && one->cost != other->cost)
        return one->cost < other->cost;
    if (one->score != other->score)
        return one->score > other->score;
    return a < b;
}

size_t presto_sweep_runner_up(const presto_sweep *sweep, size_t i) {
    size_t last = SIZE_MAX;
    if (i >= RUNNERS_UP_MOST)
        return SIZE_MAX;
    for (size_t n = 0; n <= i; n++) {
        size_t next = SIZE_MAX;
        for (size_t k = 0; k < sweep->trial_count; k++) {
            if (k == sweep->best || isnan(sweep->trials[k].result.score) ||
                (last != SIZE_MAX && !precedes(sweep, last, k)))
                continue;
            if (next == SIZE_MAX || precedes(sweep, k, next))
                next = k;
        }
        if (next == SIZE_MAX)
            return SIZE_MAX;
        last = next;
    }
    return last;
}

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
