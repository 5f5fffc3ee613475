/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The choice: by score, among the strategies that keep the limits of storage and preparation; with
 * a target, what needs least of those that reach it; with prices, what costs least.
 */
#include "../profile_internal.h"

#include <math.h>

#define HEADROOM_MOST 10
/* A codec that saves a smaller part of the storage is never better than none. */
#define LEAST_SAVING 0.02
/* A cache that takes more of this machine's memory is not proposed. */
#define MEMORY_PART 0.75

double presto__goal(const presto_sweep_limits *limits) {
    return limits->target_samples_per_s * (1 + limits->headroom);
}

presto_status presto__limits_check(const presto_sweep_limits *limits, presto_error *err) {
    if (!(limits->target_samples_per_s >= 0) || !isfinite(limits->target_samples_per_s))
        return presto_fail(err, PRESTO_ERR_ARGUMENT, PRESTO_NO_OFFSET,
                           "a target of %g samples/s: 0 or more are possible",
                           limits->target_samples_per_s);
    if (!(limits->headroom >= 0 && limits->headroom <= HEADROOM_MOST))
        return presto_fail(err, PRESTO_ERR_ARGUMENT, PRESTO_NO_OFFSET,
                           "a headroom of %g: 0 to %d are possible", limits->headroom,
                           HEADROOM_MOST);
    if (!(limits->most_preparation_s >= 0))
        return presto_fail(err, PRESTO_ERR_ARGUMENT, PRESTO_NO_OFFSET,
                           "at most %g s of preparation: 0 or more are possible",
                           limits->most_preparation_s);
    return PRESTO_OK;
}

bool presto__has_limits(const presto_sweep_limits *limits) {
    return limits->most_stored_bytes > 0 || limits->most_preparation_s > 0;
}

bool presto__keeps_limits(const presto__merit *merit, const presto_sweep_limits *limits) {
    return (limits->most_stored_bytes == 0 || merit->is_source ||
            merit->stored_bytes <= (double)limits->most_stored_bytes) &&
           (limits->most_preparation_s <= 0 || merit->preparation_s <= limits->most_preparation_s);
}

presto_sweep_verdict presto__verdict_of(const presto__merit *best, bool reaches,
                                        const presto_sweep_limits *limits) {
    bool has_target = limits->target_samples_per_s > 0;
    if (has_target && !reaches)
        return PRESTO_SWEEP_MISSES;
    if (!presto__keeps_limits(best, limits))
        return PRESTO_SWEEP_EXCEEDS;
    return has_target || presto__has_limits(limits) ? PRESTO_SWEEP_KEEPS : PRESTO_SWEEP_FREE;
}

bool presto__limits_are_aside(const presto_sweep *sweep) {
    const presto__merit best = presto__merit_of(&sweep->trials[sweep->best].result);
    return !presto__keeps_limits(&best, &sweep->limits);
}

/* Leaves out what exceeds the limits, unless that is all. */
static void apply_limits(presto__merit *merits, size_t count, const presto_sweep_limits *limits) {
    size_t left = 0;
    for (size_t i = 0; i < count; i++)
        left += merits[i].counts && !merits[i].is_aside && presto__keeps_limits(&merits[i], limits);
    for (size_t i = 0; i < count && left > 0; i++)
        merits[i].counts = merits[i].counts && presto__keeps_limits(&merits[i], limits);
}

/* Where the same strategy without a codec may be chosen, a codec that saves next to nothing may
 * not: what it seems to gain is chance. */
static void leave_pointless(presto__merit *merits, size_t count) {
    for (size_t i = 0; i < count; i++) {
        presto__merit *merit = &merits[i];
        merit->is_pointless = merit->plain != NULL && presto__may_win(merit->plain) &&
                              merit->stored_bytes > (1 - LEAST_SAVING) * merit->plain->stored_bytes;
    }
}

size_t presto__cache_that_reaches(const presto_sweep *sweep) {
    double most_bytes = (double)sweep->facts.memory_bytes * MEMORY_PART;
    size_t found = SIZE_MAX;
    for (size_t i = 0; i < sweep->trial_count && sweep->limits.target_samples_per_s > 0; i++) {
        const presto_strategy_result *result = &sweep->trials[i].result;
        const presto_sweep_prediction *prediction = &result->prediction;
        bool reaches = !result->failed && !prediction->is_elsewhere &&
                       prediction->memory_samples_per_s >= presto__goal(&sweep->limits) &&
                       prediction->memory_bytes <= most_bytes;
        if (reaches && (found == SIZE_MAX ||
                        result->strategy.threads < sweep->trials[found].result.strategy.threads))
            found = i;
    }
    return found;
}

static size_t mark_reaching(const presto__contest *contest, double target, bool *reaches_out) {
    size_t count = 0;
    for (size_t i = 0; i < contest->count; i++) {
        const presto__merit *merit = &contest->merits[i];
        reaches_out[i] = presto__may_win(merit) && presto__merit_slowest_rate(merit) >= target;
        count += reaches_out[i];
    }
    return count;
}

/* The one that costs least, and those that may cost no more. */
static size_t choose_by_cost(const presto__contest *contest, bool *is_equal_out) {
    const presto__merit *merits = contest->merits;
    size_t best = SIZE_MAX;
    for (size_t i = 0; i < contest->count; i++)
        if (presto__may_win(&merits[i]) &&
            (best == SIZE_MAX || merits[i].cost.median < merits[best].cost.median))
            best = i;
    for (size_t i = 0; i < contest->count; i++)
        is_equal_out[i] =
            presto__may_win(&merits[i]) && merits[i].cost.least <= merits[best].cost.most;
    return best;
}

size_t presto__least_of(const presto__contest *contest, const bool *reaches) {
    const presto__merit *merits = contest->merits;
    size_t least = SIZE_MAX;
    if (!contest->by_cost)
        return presto__score_cheapest(contest, reaches);
    for (size_t i = 0; i < contest->count; i++) {
        if (!reaches[i])
            continue;
        double over = least == SIZE_MAX ? -1 : merits[i].cost.least - merits[least].cost.least;
        if (over < 0 || (over <= 0 && presto__needs_less(&merits[i], &merits[least])))
            least = i;
    }
    return least;
}

presto__choice presto__choose_fastest(const presto__contest *contest, double *scores_out,
                                      bool *is_equal_out) {
    presto__contest fastest = *contest;
    fastest.weights = (presto_weights){0, 0, 1};
    presto__choice choice = {.first = presto__score(&fastest, scores_out)};
    presto__score_equals(&fastest, scores_out, choice.first, is_equal_out);
    choice.best = presto__score_cheapest(&fastest, is_equal_out);
    return choice;
}

presto__choice presto__choose(presto__merit *merits, const presto__contest *contest,
                              const presto_sweep_limits *limits, double *scores_out,
                              bool *is_equal_out) {
    double goal = presto__goal(limits);
    apply_limits(merits, contest->count, limits);
    leave_pointless(merits, contest->count);
    presto__choice choice = {.first = presto__score(contest, scores_out)};
    bool reaches = goal > 0 && mark_reaching(contest, goal, is_equal_out) > 0;
    if (reaches) {
        choice.best = presto__least_of(contest, is_equal_out);
    } else if (goal > 0) {
        choice = presto__choose_fastest(contest, scores_out, is_equal_out);
    } else if (contest->by_cost) {
        choice.first = choice.best = choose_by_cost(contest, is_equal_out);
    } else {
        presto__score_equals(contest, scores_out, choice.first, is_equal_out);
        choice.best = presto__score_cheapest(contest, is_equal_out);
    }
    choice.verdict = presto__verdict_of(&merits[choice.best], reaches, limits);
    return choice;
}
