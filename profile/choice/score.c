/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The score: P * p + S * s + T * t over preparation time, storage and throughput. Each is
 * normalized to [0, 1] between its least and its most among the strategies (Isenko et al., SIGMOD
 * 2022; the weights say what matters to the user). Time and storage are inverted, so 1 is always
 * best.
 *
 * Rates vary from run to run, and so do scores. If the ranges of two scores overlap, the runs have
 * not shown that one strategy is better. Of the strategies equal to the best, the cheapest is
 * recommended.
 */
#include "../profile_internal.h"

#include <limits.h>
#include <math.h>

/* A run counts as at most this far from the median: a run in a slow phase of the machine must
 * not make its strategy equal to much slower ones. */
#define SPREAD_MOST 0.1
/* Needs that differ by less than this count as equal: no codec is worth its time for a few percent
 * of storage, and the time of one conversion, which is often measured once, varies. */
#define SAME_STORAGE 0.05
#define SAME_PREPARATION 0.33

presto_status presto__weights_check(const presto_weights *weights, presto_error *err) {
    const double values[] = {weights->preparation, weights->storage, weights->throughput};
    double sum = 0;
    for (size_t i = 0; i < 3; i++) {
        if (!isfinite(values[i]) || values[i] < 0)
            return presto_fail(err, PRESTO_ERR_ARGUMENT, PRESTO_NO_OFFSET,
                               "weight %g: weights are numbers of 0 or more", values[i]);
        sum += values[i];
    }
    if (!isfinite(sum) || sum <= 0)
        return presto_fail(err, PRESTO_ERR_ARGUMENT, PRESTO_NO_OFFSET,
                           "the weights of preparation, storage and throughput must not all be 0");
    return PRESTO_OK;
}

typedef struct range {
    double least, most;
} range;

static void widen(range *over, double value) {
    over->least = fmin(over->least, value);
    over->most = fmax(over->most, value);
}

/* 1 for the most, 0 for the least. If all are equal, none is worse: 1. */
static double normalize(double value, range over) {
    return over.most > over.least ? (value - over.least) / (over.most - over.least) : 1;
}

static double normalize_inverted(double value, range over) {
    return over.most > over.least ? (over.most - value) / (over.most - over.least) : 1;
}

/* Is a, with score x, better than b, with score y, which comes before it? */
static bool better(const presto__merit *a, double x, const presto__merit *b, double y) {
    if (x != y)
        return x > y;
    if (a->samples_per_s.median != b->samples_per_s.median)
        return a->samples_per_s.median > b->samples_per_s.median;
    if (a->stored_bytes != b->stored_bytes)
        return a->stored_bytes < b->stored_bytes;
    return a->preparation_s < b->preparation_s;
}

presto__merit presto__merit_of(const presto_strategy_result *result) {
    return (presto__merit){!result->failed,
                           result->total_preparation_s,
                           result->total_stored_bytes,
                           result->cold.samples_per_s,
                           result->strategy.threads,
                           {NAN, NAN, NAN, 0},
                           false,
                           result->strategy.codec == NULL,
                           NULL,
                           false};
}

static bool is_plain(const presto_strategy *strategy) {
    return strategy->codec != NULL && strcmp(strategy->codec, "none") == 0;
}

void presto__merits_link(const presto_sweep *sweep, presto__merit *merits) {
    for (size_t i = 0; i < sweep->trial_count; i++) {
        const presto_strategy *coded = &sweep->trials[i].result.strategy;
        for (size_t k = 0; k < sweep->trial_count && coded->codec != NULL && !is_plain(coded);
             k++) {
            const presto_strategy *plain = &sweep->trials[k].result.strategy;
            if (is_plain(plain) && plain->threads == coded->threads &&
                plain->shards == coded->shards && strcmp(plain->stored, coded->stored) == 0)
                merits[i].plain = &merits[k];
        }
    }
}

static range throughput_of(const presto__merit *merits, size_t count) {
    range throughput = {INFINITY, -INFINITY};
    for (size_t i = 0; i < count; i++)
        if (merits[i].counts)
            widen(&throughput, merits[i].samples_per_s.median);
    return throughput;
}

size_t presto__score(const presto__contest *contest, double *scores_out) {
    const presto__merit *merits = contest->merits;
    const presto_weights *weights = &contest->weights;
    size_t count = contest->count;
    range preparation = {INFINITY, -INFINITY};
    range storage = preparation;
    range throughput = throughput_of(merits, count);
    for (size_t i = 0; i < count; i++) {
        if (!merits[i].counts)
            continue;
        widen(&preparation, merits[i].preparation_s);
        widen(&storage, merits[i].stored_bytes);
    }
    size_t best = SIZE_MAX;
    for (size_t i = 0; i < count; i++) {
        scores_out[i] = NAN;
        if (!merits[i].counts)
            continue;
        scores_out[i] =
            weights->preparation * normalize_inverted(merits[i].preparation_s, preparation) +
            weights->storage * normalize_inverted(merits[i].stored_bytes, storage) +
            weights->throughput * normalize(merits[i].samples_per_s.median, throughput);
        if (presto__may_win(&merits[i]) &&
            (best == SIZE_MAX ||
             better(&merits[i], scores_out[i], &merits[best], scores_out[best])))
            best = i;
    }
    return best;
}

/* ---- equal scores ---- */

static double slowest_that_counts(presto_spread rate) {
    return fmax(rate.least, rate.median * (1 - SPREAD_MOST));
}

double presto__merit_slowest_rate(const presto__merit *merit) {
    bool is_predicted = merit->samples_per_s.runs == 0;
    return is_predicted ? merit->samples_per_s.least : slowest_that_counts(merit->samples_per_s);
}

/* From the score with the slowest run's rate to that with the fastest run's. */
static range score_range(const presto__merit *merit, double score, double score_per_rate) {
    presto_spread rate = merit->samples_per_s;
    double slowest = slowest_that_counts(rate);
    double fastest = fmin(rate.most, rate.median * (1 + SPREAD_MOST));
    return (range){score - (rate.median - slowest) * score_per_rate,
                   score + (fastest - rate.median) * score_per_rate};
}

/* Beside the source, which is there anyway. */
static double bytes_beside(const presto__merit *merit) {
    return merit->is_source ? 0 : merit->stored_bytes;
}

presto__saving presto__merit_saving(const presto__merit *a, const presto__merit *b) {
    if (bytes_beside(a) < bytes_beside(b) * (1 - SAME_STORAGE))
        return PRESTO__SAVES_STORAGE;
    if (a->threads < b->threads)
        return PRESTO__SAVES_THREADS;
    if (a->preparation_s < b->preparation_s * (1 - SAME_PREPARATION))
        return PRESTO__SAVES_PREPARATION;
    return PRESTO__SAVES_NOTHING;
}

bool presto__needs_less(const presto__merit *a, const presto__merit *b) {
    presto__saving mine = presto__merit_saving(a, b), others = presto__merit_saving(b, a);
    return mine != PRESTO__SAVES_NOTHING && (others == PRESTO__SAVES_NOTHING || mine < others);
}

void presto__score_equals(const presto__contest *contest, const double *scores, size_t first,
                          bool *is_equal_out) {
    const presto__merit *merits = contest->merits;
    const presto_weights *weights = &contest->weights;
    size_t count = contest->count;
    range throughput = throughput_of(merits, count);
    double span = throughput.most - throughput.least;
    double score_per_rate = span > 0 ? weights->throughput / span : 0;
    double least = score_range(&merits[first], scores[first], score_per_rate).least;
    for (size_t i = 0; i < count; i++)
        is_equal_out[i] =
            i == first || (presto__may_win(&merits[i]) && weights->throughput > 0 &&
                           score_range(&merits[i], scores[i], score_per_rate).most >= least);
}

/* The candidates left: at most this much of each. */
typedef struct needs {
    double stored_bytes;
    unsigned threads;
    double preparation_s;
} needs;

static bool fits(const presto__merit *merit, bool is_equal, const needs *most) {
    return is_equal && bytes_beside(merit) <= most->stored_bytes &&
           merit->threads <= most->threads && merit->preparation_s <= most->preparation_s;
}

size_t presto__score_cheapest(const presto__contest *contest, const bool *is_equal) {
    const presto__merit *merits = contest->merits;
    size_t count = contest->count;
    needs most = {INFINITY, UINT_MAX, INFINITY};
    needs least = most;
    for (size_t i = 0; i < count; i++)
        if (fits(&merits[i], is_equal[i], &most))
            least.stored_bytes = fmin(least.stored_bytes, bytes_beside(&merits[i]));
    most.stored_bytes = least.stored_bytes / (1 - SAME_STORAGE);
    for (size_t i = 0; i < count; i++)
        if (fits(&merits[i], is_equal[i], &most) && merits[i].threads < least.threads)
            least.threads = merits[i].threads;
    most.threads = least.threads;
    for (size_t i = 0; i < count; i++)
        if (fits(&merits[i], is_equal[i], &most))
            least.preparation_s = fmin(least.preparation_s, merits[i].preparation_s);
    most.preparation_s = least.preparation_s / (1 - SAME_PREPARATION);
    size_t chosen = 0;
    while (chosen + 1 < count && !fits(&merits[chosen], is_equal[chosen], &most))
        chosen++;
    return chosen;
}
