/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who was near enough to the best to be measured again, and what the rounds say about them.
 *
 * A rival is shown to be worse if it is worse by more than PRESTO__SAME for sure, and equal if the
 * two differ by less for sure. Of those that are not worse, the one that needs least is
 * recommended. The choice is decided if nothing that is not known yet could change it: neither more
 * rounds, nor a run of what is only predicted. So two sweeps that both call it decided recommend
 * the same, but with the probability PRESTO__ERROR.
 */
#include "sure_internal.h"

#include <math.h>
#include <string.h>

/* Strategies may be the best if their fastest run is at most this much slower than the leader's
 * slowest one. One or two runs tell less than three. */
#define NEAR 0.15
#define NEAR_OF_FEW 0.25
#define FEW_RUNS 3
/* Intervals of the sample and of the start are of 95 %; over several comparisons, they are so many times
 * as wide. */
#define UNSURE_MORE 1.5
/* An epoch is long that lasts this part of the wanted time, or has this part of all samples. */
#define LONG_ENOUGH 0.75
#define WHOLE_PART 0.999
/* Of those beyond PRESTO__CONTENDERS_MOST, only the nearer ones cast doubt on the choice. */
#define VERY_NEAR 0.05

/* Logarithm of the smallest ratio that counts as equal. */
static double same(void) {
    return -log(1 - PRESTO__SAME);
}

/* ---- what a rate is worth ---- */

/*
 * By several weights, a strategy is worth the rate that would give its score by itself: its own
 * rate and a part for preparation and storage, which does not vary between runs.
 */
static void find_worth(presto_sweep *sweep, const presto__contest *contest, const double *scores,
                       presto__matter matter) {
    bool by_score = matter == PRESTO__BY_SCORE && contest->weights.throughput > 0;
    double least = INFINITY, most = 0;
    for (size_t i = 0; i < contest->count; i++) {
        if (!contest->merits[i].counts)
            continue;
        least = fmin(least, contest->merits[i].samples_per_s.median);
        most = fmax(most, contest->merits[i].samples_per_s.median);
    }
    for (size_t i = 0; i < contest->count; i++) {
        const presto__merit *merit = &contest->merits[i];
        double added = 0;
        if (by_score && merit->counts)
            added = scores[i] * (most - least) / contest->weights.throughput -
                    (merit->samples_per_s.median - least);
        sweep->trials[i].rate_added = fmax(added, 0);
    }
    sweep->matter = matter;
}

/* The logarithm of what strategy i is worth at some rate. */
static double worth(const presto_sweep *sweep, size_t i, double rate) {
    const presto__trial *trial = &sweep->trials[i];
    switch (sweep->matter) {
    case PRESTO__BY_COST: {
        presto__bill bill = presto__bill_at(sweep, &trial->result, rate);
        return -log(fmax(bill.storage + bill.preparation + bill.training, 1e-300));
    }
    case PRESTO__BY_TARGET:
        return log(fmax(rate, 1e-9) / presto__goal(&sweep->limits));
    case PRESTO__BY_RATE:
    case PRESTO__BY_SCORE:
        break;
    }
    return log(fmax(rate + trial->rate_added, 1e-9));
}

/* ---- comparing by rounds ---- */

static size_t differences(const presto_sweep *sweep, size_t a, size_t b,
                          double values_out[PRESTO__VALUES_MOST]) {
    const presto__trial *one = &sweep->trials[a];
    const presto__trial *other = b == SIZE_MAX ? NULL : &sweep->trials[b];
    size_t count = 0, k = 0;
    for (size_t i = 0; i < one->lap_count && count < PRESTO__VALUES_MOST; i++) {
        double value = worth(sweep, a, one->laps[i].samples_per_s);
        while (other != NULL && k < other->lap_count && other->laps[k].round < one->laps[i].round)
            k++;
        if (other == NULL)
            values_out[count++] = value;
        else if (k < other->lap_count && other->laps[k].round == one->laps[i].round)
            values_out[count++] = value - worth(sweep, b, other->laps[k].samples_per_s);
    }
    return count;
}

/* ---- what the sample does not tell of the whole ---- */

/* Half of the 95 % interval of a mean record, relative, in which the sample may be off. A rate follows
 * the bytes at most as much. */
static double sample_error(const presto_sweep *sweep, size_t i) {
    const presto__trial *trial = &sweep->trials[i];
    bool stores = trial->result.strategy.codec != NULL;
    const presto__moments *sizes = stores ? &trial->record_bytes : &sweep->files.moments;
    if (sizes->count < 2 || sweep->facts.samples >= sweep->facts.source_samples)
        return 0;
    uint64_t all =
        presto__population_of(sizes->count, sweep->facts.samples, sweep->facts.source_samples);
    presto__estimate sum = presto__estimate_sum(sizes, all);
    return sum.error > 0 && sum.total > 0 ? sum.error / sum.total : 0;
}

/* Do both read the same records? Then the sample is off for both alike. */
static bool are_alike(const presto_strategy *a, const presto_strategy *b) {
    if ((a->codec == NULL) != (b->codec == NULL) || strcmp(a->stored, b->stored) != 0)
        return false;
    return a->codec == NULL || strcmp(a->codec, b->codec) == 0;
}

static const presto__epochs *longest_of(const presto__trial *trial) {
    const presto__epochs *longest = NULL;
    for (size_t i = 0; i < trial->cold_count; i++)
        if (longest == NULL || presto__epochs_longest_samples(&trial->cold[i]) >
                                   presto__epochs_longest_samples(longest))
            longest = &trial->cold[i];
    return longest;
}

static double whole_of(const presto_sweep *sweep, size_t i) {
    return presto__epoch_samples(sweep, &sweep->trials[i].result);
}

/* Half of the 95 % interval in which the rate of the whole may be off, relative, as what starts an
 * epoch is not known better. */
static double start_error(const presto_sweep *sweep, size_t i) {
    const presto__epochs *run = longest_of(&sweep->trials[i]);
    presto__start start = presto__trial_start(&sweep->trials[i]);
    if (run == NULL || !(start.error_s > 0 || start.files_error_s > 0))
        return 0;
    double whole = whole_of(sweep, i), longest = presto__epochs_longest_samples(run);
    double all_s = whole / fmax(presto__epochs_whole_rate(run, start, whole), 1e-9);
    return whole > longest
               ? presto__joint_error(start.error_s * (whole / longest - 1), start.files_error_s) /
                     all_s
               : 0;
}

double presto__whole_error(const presto_sweep *sweep, size_t a, size_t b) {
    double starts = start_error(sweep, a), sample = sample_error(sweep, a);
    if (b != SIZE_MAX) {
        starts = presto__joint_error(starts, start_error(sweep, b));
        sample = are_alike(&sweep->trials[a].result.strategy, &sweep->trials[b].result.strategy)
                     ? 0
                     : presto__joint_error(sample, sample_error(sweep, b));
    }
    return UNSURE_MORE * presto__joint_error(starts, sample);
}

/* Errors that are independent, on each side of the middle. */
static void widen(presto__interval *interval, double error) {
    interval->least =
        interval->middle - presto__joint_error(interval->middle - interval->least, error);
    interval->most =
        interval->middle + presto__joint_error(interval->most - interval->middle, error);
}

/* How much of the longest epoch its start took. 0: it did not matter: the epoch was long enough, or as
 * long as one of the whole. NaN: it mattered, and is not known. */
static double start_part(const presto_sweep *sweep, size_t i) {
    const presto__epochs *run = longest_of(&sweep->trials[i]);
    if (run == NULL)
        return 0; /* predictions have an uncertainty of their own */
    double longest_s = presto__epochs_longest_s(run);
    double whole = whole_of(sweep, i), wanted_s = presto__long_epoch_s(sweep->run_s);
    presto__start start = presto__trial_start(&sweep->trials[i]);
    if (presto__epochs_longest_samples(run) >= WHOLE_PART * whole ||
        (wanted_s > 0 && longest_s >= LONG_ENOUGH * wanted_s && isfinite(start.seconds)))
        return 0;
    return isfinite(start.seconds) ? start.seconds / longest_s : NAN;
}

/* Of those that the choice is between, the largest. */
static double find_start_part(const presto_sweep *sweep) {
    const presto_sweep_confidence *confidence = &sweep->confidence;
    double most = start_part(sweep, sweep->best);
    for (size_t r = 0; r < confidence->rival_count; r++) {
        double part = start_part(sweep, sweep->rivals[r].result);
        most = isnan(part) || isnan(most) ? NAN : fmax(most, part);
    }
    return most;
}

presto__interval presto__compare(const presto_sweep *sweep, size_t a, size_t b) {
    double values[PRESTO__VALUES_MOST];
    size_t count = differences(sweep, a, b, values);
    /* Any of the contenders may turn out to lead: all pairs are compared. */
    size_t contenders = sweep->confidence.rival_count + (sweep->confidence.leader != SIZE_MAX);
    size_t comparisons = b == SIZE_MAX ? contenders : contenders * (contenders - 1) / 2;
    presto__interval interval =
        presto__interval_of(values, count, presto__error_share(comparisons));
    if (isfinite(interval.least))
        widen(&interval, presto__whole_error(sweep, a, b));
    return interval;
}

/* ---- who contends ---- */

/* Predictions are not measured again. */
static bool was_run(const presto__merit *merit) {
    return merit->samples_per_s.runs > 0;
}

static double near_to(const presto__merit *merit) {
    return log(1 - (merit->samples_per_s.runs < FEW_RUNS ? NEAR_OF_FEW : NEAR));
}

static double median_worth(const presto_sweep *sweep, size_t i) {
    return worth(sweep, i, sweep->trials[i].result.cold.samples_per_s.median);
}

static void begin(presto_sweep *sweep, size_t leader) {
    sweep->confidence = (presto_sweep_confidence){.same = PRESTO__SAME,
                                                  .error = PRESTO__ERROR,
                                                  .leader = leader,
                                                  .not_run = SIZE_MAX,
                                                  .rivals = sweep->rivals,
                                                  .rounds = sweep->rounds,
                                                  .spent_s = sweep->race_s};
}

static void add_rival(presto_sweep *sweep, size_t i) {
    sweep->rivals[sweep->confidence.rival_count++] =
        (presto_sweep_rival){.result = i, .ratio = NAN, .ratio_least = NAN, .ratio_most = NAN};
}

/* Takes the one with the best median out of the open ones; SIZE_MAX: there is none. */
static size_t take_next(const presto_sweep *sweep, size_t count, bool *is_open) {
    size_t next = SIZE_MAX;
    for (size_t i = 0; i < count; i++)
        if (is_open[i] && (next == SIZE_MAX || median_worth(sweep, i) > median_worth(sweep, next)))
            next = i;
    if (next != SIZE_MAX)
        is_open[next] = false;
    return next;
}

/* The best of those that were run, if the best of all was not. SIZE_MAX: none was. */
static size_t find_lead(const presto_sweep *sweep, const presto__contest *contest, size_t first) {
    size_t lead = SIZE_MAX;
    if (was_run(&contest->merits[first]))
        return first;
    for (size_t i = 0; i < contest->count; i++)
        if (presto__may_win(&contest->merits[i]) && was_run(&contest->merits[i]) &&
            (lead == SIZE_MAX || median_worth(sweep, i) > median_worth(sweep, lead)))
            lead = i;
    return lead;
}

/* Of those whose fastest run comes near the leader's slowest, the ones with the best medians. */
static void find_rivals(presto_sweep *sweep, const presto__contest *contest, size_t leader,
                        bool *is_open) {
    presto_sweep_confidence *confidence = &sweep->confidence;
    double lead = median_worth(sweep, leader);
    double slowest = worth(sweep, leader, contest->merits[leader].samples_per_s.least);
    for (size_t i = 0; i < contest->count; i++) {
        const presto__merit *merit = &contest->merits[i];
        is_open[i] = presto__contends(merit) && was_run(merit) && i != leader &&
                     worth(sweep, i, merit->samples_per_s.most) >=
                         slowest + near_to(merit) - presto__whole_error(sweep, i, leader);
    }
    for (size_t next; (next = take_next(sweep, contest->count, is_open)) != SIZE_MAX;) {
        if (confidence->rival_count + 1 < PRESTO__CONTENDERS_MOST) /* the leader is one, too */
            add_rival(sweep, next);
        else if (median_worth(sweep, next) > lead + log(1 - VERY_NEAR))
            confidence->left_out++;
    }
}

/* Of those that may reach the target, the ones that need least, up to one that reaches it clearly.
 */
static void find_reaching(presto_sweep *sweep, const presto__contest *contest, bool *is_open) {
    presto_sweep_confidence *confidence = &sweep->confidence;
    size_t left = 0;
    begin(sweep, SIZE_MAX);
    for (size_t i = 0; i < contest->count; i++) {
        const presto__merit *merit = &contest->merits[i];
        is_open[i] = presto__contends(merit) && was_run(merit) &&
                     worth(sweep, i, merit->samples_per_s.most) >= near_to(merit);
        left += is_open[i];
    }
    for (; left > 0; left--) {
        size_t next = presto__least_of(contest, is_open);
        const presto__merit *merit = &contest->merits[next];
        if (worth(sweep, next, presto__merit_slowest_rate(merit)) > -near_to(merit))
            return;
        is_open[next] = false;
        if (confidence->rival_count < PRESTO__CONTENDERS_MOST)
            add_rival(sweep, next);
        else
            confidence->left_out++;
    }
}

/* ---- what the rounds have shown ---- */

static void stand(presto_sweep *sweep, presto_sweep_rival *rival) {
    size_t leader = sweep->confidence.leader;
    presto__interval ratio = presto__compare(sweep, rival->result, leader);
    rival->rounds = ratio.count;
    if (ratio.count == 0)
        return;
    rival->ratio = exp(ratio.middle);
    if (!isfinite(ratio.least))
        return;
    rival->ratio_least = exp(ratio.least);
    rival->ratio_most = exp(ratio.most);
    if (leader == SIZE_MAX)
        rival->standing = ratio.least >= 0 ? PRESTO_SWEEP_REACHES
                          : ratio.most < 0 ? PRESTO_SWEEP_WORSE
                                           : PRESTO_SWEEP_UNKNOWN;
    else
        rival->standing = ratio.most < -same()                           ? PRESTO_SWEEP_WORSE
                          : ratio.least > -same() && ratio.most < same() ? PRESTO_SWEEP_EQUAL
                                                                         : PRESTO_SWEEP_UNKNOWN;
}

/* The contender with the best runs of the rounds leads. */
static void find_leader(presto_sweep *sweep) {
    size_t first = sweep->confidence.leader;
    presto_sweep_rival *ahead = NULL;
    double most = 0;
    for (size_t r = 0; r < sweep->confidence.rival_count; r++) {
        presto__interval over = presto__compare(sweep, sweep->rivals[r].result, first);
        if (isfinite(over.least) && over.middle > most) {
            ahead = &sweep->rivals[r];
            most = over.middle;
        }
    }
    if (ahead == NULL)
        return;
    sweep->confidence.leader = ahead->result;
    ahead->result = first;
}

/* No more rounds could change the choice. */
static bool is_settled(const presto_sweep *sweep, size_t best) {
    const presto_sweep_confidence *confidence = &sweep->confidence;
    bool settled = confidence->left_out == 0;
    bool contends = best == confidence->leader || confidence->rival_count == 0;
    for (size_t r = 0; r < confidence->rival_count; r++) {
        const presto_sweep_rival *rival = &sweep->rivals[r];
        contends = contends || rival->result == best;
        settled = settled && (rival->result == best ? rival->standing == PRESTO_SWEEP_EQUAL
                                                    : log(rival->ratio_most) <= same());
    }
    return settled && contends;
}

/* ---- what was not run ---- */

/* Would strategy i be the best if it reached the target? */
static bool would_win(const presto__contest *contest, presto__ballot *ballot, size_t i) {
    bool before = ballot->is_equal[i];
    ballot->is_equal[i] = true;
    bool wins = presto__least_of(contest, ballot->is_equal) == i;
    ballot->is_equal[i] = before;
    return wins;
}

/* Would a run of strategy i change the choice, if it were as fast as the prediction allows? */
static bool may_change(const presto_sweep *sweep, const presto__contest *contest,
                       presto__ballot *ballot, size_t i) {
    size_t best = ballot->choice.best;
    const presto__merit *merit = &contest->merits[i];
    double most = merit->samples_per_s.most, goal = presto__goal(&sweep->limits);
    if (!presto__contends(merit) || was_run(merit))
        return false;
    if (i == best)
        return true;
    if (sweep->matter == PRESTO__BY_TARGET)
        return most >= goal && would_win(contest, ballot, i);
    if (sweep->matter == PRESTO__BY_RATE && most >= goal)
        return true;
    if (sweep->matter == PRESTO__BY_SCORE && !(contest->weights.throughput > 0))
        return false; /* its rate does not matter */
    double ahead = worth(sweep, i, most) - median_worth(sweep, sweep->confidence.leader);
    bool needs_less = presto__needs_less(merit, &contest->merits[best]);
    return ahead > same() || (needs_less && ahead > -same());
}

double presto__most_ahead(const presto_sweep *sweep, size_t i) {
    return worth(sweep, i, sweep->trials[i].result.cold.samples_per_s.most) -
           median_worth(sweep, sweep->best);
}

size_t presto__next_not_run(const presto_sweep *sweep, bool is_anywhere) {
    size_t next = SIZE_MAX;
    for (size_t i = 0; i < sweep->trial_count; i++) {
        const presto__trial *trial = &sweep->trials[i];
        if (trial->may_change && (is_anywhere || !trial->result.prediction.is_elsewhere) &&
            (next == SIZE_MAX || presto__most_ahead(sweep, i) > presto__most_ahead(sweep, next)))
            next = i;
    }
    return next;
}

bool presto__lacks_some(const presto_sweep *sweep) {
    for (size_t i = 0; i < sweep->trial_count; i++)
        if (sweep->trials[i].result.failed &&
            sweep->trials[i].result.failure.status == PRESTO_ERR_STOPPED)
            return true;
    return false;
}

/* Decided is what neither more rounds could change nor runs of others. */
static void conclude(presto_sweep *sweep, const presto__contest *contest, presto__ballot *ballot,
                     bool settled) {
    presto_sweep_confidence *confidence = &sweep->confidence;
    sweep->best = ballot->choice.best;
    for (size_t i = 0; i < contest->count; i++) {
        sweep->trials[i].may_change = may_change(sweep, contest, ballot, i);
        confidence->not_run_count += sweep->trials[i].may_change;
    }
    confidence->not_run =
        sweep->trials[sweep->best].may_change ? sweep->best : presto__next_not_run(sweep, true);
    sweep->is_settled = settled;
    confidence->start_part = find_start_part(sweep);
    confidence->is_decided = settled && confidence->not_run_count == 0 &&
                             confidence->start_part == 0 && !presto__lacks_some(sweep);
}

/* ---- the choice ---- */

/* Before the rounds, ranges of the runs tell what is equal; then the rounds do. */
static void settle_by_worth(presto_sweep *sweep, const presto__contest *contest,
                            presto__ballot *ballot) {
    presto__choice *choice = &ballot->choice;
    size_t lead = find_lead(sweep, contest, choice->first);
    bool has_run = was_run(&contest->merits[choice->best]);
    begin(sweep, has_run ? lead : choice->first);
    if (has_run) /* else rounds of others tell nothing of the best */
        find_rivals(sweep, contest, lead, ballot->scratch);
    find_leader(sweep);
    bool has_rounds = false;
    for (size_t r = 0; r < sweep->confidence.rival_count; r++) {
        stand(sweep, &sweep->rivals[r]);
        has_rounds = has_rounds || sweep->rivals[r].rounds > 0;
    }
    if (has_rounds) {
        choice->first = sweep->confidence.leader;
        for (size_t i = 0; i < contest->count; i++)
            ballot->scratch[i] = i == choice->first;
        for (size_t r = 0; r < sweep->confidence.rival_count; r++) {
            const presto_sweep_rival *rival = &sweep->rivals[r];
            ballot->scratch[rival->result] =
                rival->standing == PRESTO_SWEEP_UNKNOWN && isnan(rival->ratio_least)
                    ? ballot->is_equal[rival->result]
                    : rival->standing != PRESTO_SWEEP_WORSE;
        }
        for (size_t i = 0; i < contest->count; i++)
            ballot->is_equal[i] = ballot->scratch[i];
        choice->best = presto__score_cheapest(contest, ballot->is_equal);
    }
    conclude(sweep, contest, ballot, is_settled(sweep, choice->best));
}

/* A contender of which it is not known whether it reaches the target, and that would be the best if
 * it did. */
static bool may_still_win(const presto__contest *contest, const presto_sweep_rival *rival,
                          presto__ballot *ballot) {
    return rival->standing == PRESTO_SWEEP_UNKNOWN && would_win(contest, ballot, rival->result);
}

/* True: that is all to say. False: no strategy reaches it, and the fastest is to be found. */
static bool settle_by_target(presto_sweep *sweep, const presto__contest *contest,
                             presto__ballot *ballot) {
    size_t reaching = 0, unknown = 0;
    for (size_t i = 0; i < contest->count; i++)
        ballot->is_equal[i] =
            presto__may_win(&contest->merits[i]) &&
            presto__merit_slowest_rate(&contest->merits[i]) >= presto__goal(&sweep->limits);
    find_reaching(sweep, contest, ballot->scratch);
    for (size_t r = 0; r < sweep->confidence.rival_count; r++) {
        presto_sweep_rival *rival = &sweep->rivals[r];
        stand(sweep, rival);
        if (rival->standing != PRESTO_SWEEP_UNKNOWN)
            ballot->is_equal[rival->result] = rival->standing == PRESTO_SWEEP_REACHES;
        unknown += rival->standing == PRESTO_SWEEP_UNKNOWN;
    }
    for (size_t i = 0; i < contest->count; i++)
        reaching += ballot->is_equal[i];
    if (reaching > 0) {
        ballot->choice.best = presto__least_of(contest, ballot->is_equal);
        ballot->choice.verdict =
            presto__verdict_of(&contest->merits[ballot->choice.best], true, &sweep->limits);
        bool settled = sweep->confidence.left_out == 0;
        for (size_t r = 0; r < sweep->confidence.rival_count; r++)
            settled = settled && !may_still_win(contest, &sweep->rivals[r], ballot);
        conclude(sweep, contest, ballot, settled);
        return true;
    }
    ballot->choice = presto__choose_fastest(contest, ballot->scores, ballot->scratch);
    ballot->choice.verdict = PRESTO_SWEEP_MISSES;
    conclude(sweep, contest, ballot, false);
    for (size_t i = 0; i < contest->count; i++)
        ballot->is_equal[i] = ballot->scratch[i];
    return unknown > 0;
}

void presto__judge(presto_sweep *sweep, const presto__contest *contest, presto__ballot *ballot) {
    bool has_target = sweep->limits.target_samples_per_s > 0;
    bool by_cost = contest->by_cost && !has_target;
    if (has_target) {
        find_worth(sweep, contest, ballot->scores, PRESTO__BY_TARGET);
        if (settle_by_target(sweep, contest, ballot))
            return;
    }
    bool by_score = !by_cost && !has_target;
    find_worth(sweep, contest, ballot->scores,
               by_cost    ? PRESTO__BY_COST
               : by_score ? PRESTO__BY_SCORE
                          : PRESTO__BY_RATE);
    if (by_score && !(contest->weights.throughput > 0)) {
        begin(sweep, ballot->choice.first); /* nothing that rounds could tell */
        conclude(sweep, contest, ballot, !(contest->weights.preparation > 0));
        return;
    }
    settle_by_worth(sweep, contest, ballot);
}
