/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The recommendation in words: its rate compared with reading the files as they are, its costs, the
 * work that it saves, how it stands to the target, and which strategies are as good within the
 * spread of the runs.
 */
#include "../choice/sure_internal.h"

#include <math.h>
#include <stdio.h>

/* Errors below so many percent are not told. */
#define LEAST_ERROR 0.5
/* A step with at least so much of what is saved stands for all of it. */
#define ALL_PART 0.95

static const presto_strategy_result *result_at(const presto_sweep *sweep, size_t i) {
    return &sweep->trials[i].result;
}

/* What the recommendation is compared with: the raw files on the same threads, or else the
 * fastest run on raw files. SIZE_MAX: not measured. */
static size_t find_unprocessed(const presto_sweep *sweep) {
    size_t found = SIZE_MAX;
    for (size_t i = 0; i < sweep->trial_count; i++) {
        const presto_strategy_result *result = result_at(sweep, i);
        if (result->failed || result->strategy.codec != NULL)
            continue;
        if (result->strategy.threads == result_at(sweep, sweep->best)->strategy.threads)
            return i;
        if (found == SIZE_MAX ||
            result->cold.samples_per_s.median > result_at(sweep, found)->cold.samples_per_s.median)
            found = i;
    }
    return found;
}

/* The best-scored strategy that stores something, or the slowest of all. SIZE_MAX: none. */
static size_t find_other(const presto_sweep *sweep, bool slowest) {
    size_t found = SIZE_MAX;
    for (size_t i = 0; i < sweep->trial_count; i++) {
        const presto_strategy_result *result = result_at(sweep, i);
        if (result->failed || i == sweep->best || (!slowest && result->strategy.codec == NULL))
            continue;
        bool wins =
            found == SIZE_MAX || (slowest ? result->cold.samples_per_s.median <
                                                result_at(sweep, found)->cold.samples_per_s.median
                                          : presto__scores_better(result, result_at(sweep, found)));
        found = wins ? i : found;
    }
    return found;
}

static const presto__epochs *typical_cold(const presto__trial *trial) {
    const presto__epochs *best = NULL;
    double wanted = trial->result.cold.samples_per_s.median;
    double least = INFINITY;
    for (size_t i = 0; i < trial->cold_count; i++) {
        double rate = presto__epochs_rate(&trial->cold[i]);
        if (best == NULL || fabs(rate - wanted) < least) {
            least = fabs(rate - wanted);
            best = &trial->cold[i];
        }
    }
    return best;
}

static size_t step_count(const presto__epochs *epochs) {
    size_t steps = 0;
    for (size_t i = 0; i < epochs->cost_count; i++)
        steps += epochs->costs[i].is_step;
    return steps;
}

/* What is stored saves the first steps of the pipeline. If others cost less online, that is due to
 * the planner, not to the storage. */
typedef struct saving {
    const presto__cost *largest; /* the most costly of these steps; NULL: none */
    double steps_s, work_s;      /* all of these steps, and all work of the unprocessed files */
} saving;

static saving find_saving(const presto__epochs *best, const presto__epochs *raw) {
    saving found = {NULL, 0, 0};
    size_t stored = step_count(raw) - step_count(best);
    for (size_t i = 0; i < raw->cost_count; i++) {
        const presto__cost *cost = &raw->costs[i];
        found.work_s += cost->busy_s_per_sample;
        if (!cost->is_step || stored == 0)
            continue;
        if (found.largest == NULL || cost->busy_s_per_sample > found.largest->busy_s_per_sample)
            found.largest = cost;
        found.steps_s += cost->busy_s_per_sample;
        stored--;
    }
    return found;
}

/* "; decode-image is what it saves: 3.9 of 5.4 ms of work a sample", if one step dominates; "is most
 * of what it saves: 3.9 of 4.9 ms a sample", if there are others. */
static presto_status add_saving(const presto__trial *best, const presto__trial *raw,
                                presto_buffer *text, presto_error *err) {
    const presto__epochs *without = typical_cold(raw), *with = typical_cold(best);
    if (without == NULL || with == NULL)
        return PRESTO_OK; /* predicted */
    saving found = find_saving(with, without);
    if (found.largest == NULL || found.largest->busy_s_per_sample < found.work_s / 4)
        return PRESTO_OK;
    double part = found.largest->busy_s_per_sample / found.steps_s;
    bool is_all = part >= ALL_PART;
    const char *how_much = is_all ? "what" : part > 0.5 ? "most of what" : "part of what";
    char saved_ms[PRESTO_TEXT_BYTES];
    char work_ms[PRESTO_TEXT_BYTES];
    return presto__text_add(
        text, err, "; %s is %s it saves: %s of %s ms %sa sample", found.largest->name, how_much,
        presto_format_number(found.largest->busy_s_per_sample * 1e3, saved_ms),
        presto_format_number((is_all ? found.work_s : found.steps_s) * 1e3, work_ms),
        is_all ? "of work " : "");
}

static presto_status add_comparison(const presto_sweep *sweep, presto_buffer *text,
                                    presto_error *err) {
    const presto_strategy_result *best = result_at(sweep, sweep->best);
    size_t raw = find_unprocessed(sweep);
    size_t other = raw != SIZE_MAX ? raw : find_other(sweep, true);
    if (other == SIZE_MAX)
        return PRESTO_OK;
    double ratio = best->cold.samples_per_s.median /
                   fmax(result_at(sweep, other)->cold.samples_per_s.median, 1e-9);
    char factor[PRESTO_TEXT_BYTES];
    char name[PRESTO__STRATEGY_TEXT_BYTES];
    presto_format_number(ratio, factor);
    presto__strategy_format(&result_at(sweep, other)->strategy, name, sizeof name);
    if (raw == SIZE_MAX && ratio >= 1)
        return presto__text_add(text, err, ", %s times as many as the slowest (%s)", factor, name);
    return presto__text_add(text, err, ", %s times as many as %s", factor, name);
}

/* Users who read the shards with TensorFlow must know this before an hour of writing. */
static presto_status add_tensorflow(const presto_strategy *best, presto_buffer *text,
                                    presto_error *err) {
    presto_codec_spec spec;
    presto_error why;
    if (best->codec == NULL)
        return PRESTO_OK;
    PRESTO_TRY(presto_codec_parse(best->codec, &spec, err));
    if (presto_codec_check_tensorflow(&spec, &why) == PRESTO_OK)
        return PRESTO_OK;
    return presto__text_add(text, err, " Mind that %s (--tensorflow-readable).", why.message);
}

/* " An epoch of all 9,600 samples takes 1.4 s: 0.02 s to start, then 6,940 samples/s." */
static presto_status add_epoch(const presto_sweep *sweep, presto_buffer *text, presto_error *err) {
    const presto_strategy_result *best = result_at(sweep, sweep->best);
    const presto_epoch_result *cold = &best->cold;
    double samples = presto__epoch_samples(sweep, best);
    char count[PRESTO_TEXT_BYTES], epoch[PRESTO_TEXT_BYTES], start[PRESTO_TEXT_BYTES];
    char rate[PRESTO_TEXT_BYTES];
    if (!(cold->steady_samples_per_s > 0) || !(cold->samples_per_s.median > 0))
        return PRESTO_OK;
    return presto__text_add(text, err,
                            " An epoch of all %s samples takes %s: %s to start, then %s samples/s.",
                            presto_format_count((uint64_t)samples, count),
                            presto_format_seconds(samples / cold->samples_per_s.median, epoch),
                            presto_format_seconds(cold->start_s, start),
                            presto_format_number(cold->steady_samples_per_s, rate));
}

static presto_status describe_stored(const presto_sweep *sweep, presto_buffer *text,
                                     presto_error *err) {
    const presto__trial *best = &sweep->trials[sweep->best];
    const presto_strategy_result *result = &best->result;
    char rate[PRESTO_TEXT_BYTES];
    char stored[PRESTO_TEXT_BYTES];
    char factor[PRESTO_TEXT_BYTES];
    char time[PRESTO_TEXT_BYTES];
    char name[PRESTO__STRATEGY_TEXT_BYTES];
    PRESTO_TRY(presto__text_add(text, err, "%s delivers %s samples/s cold",
                                presto__strategy_format(&result->strategy, name, sizeof name),
                                presto_format_number(result->cold.samples_per_s.median, rate)));
    PRESTO_TRY(add_comparison(sweep, text, err));
    double source_bytes = fmax((double)sweep->facts.source_bytes, 1);
    char stored_error[40] = "", time_error[40] = "", most[PRESTO_TEXT_BYTES];
    double stored_part = 100 * result->total_stored_error_bytes / result->total_stored_bytes;
    double time_part = 100 * result->total_preparation_error_s / result->total_preparation_s;
    if (stored_part >= LEAST_ERROR)
        snprintf(stored_error, sizeof stored_error, "+-%.0f %%, ", stored_part);
    if (time_part >= 100) /* "+-136 %" would include less than nothing */
        snprintf(time_error, sizeof time_error, " (%s at most)",
                 presto_format_seconds(
                     result->total_preparation_s + result->total_preparation_error_s, most));
    else if (time_part >= LEAST_ERROR)
        snprintf(time_error, sizeof time_error, " (+-%.0f %%)", time_part);
    PRESTO_TRY(presto__text_add(
        text, err, ", for %s stored (%s%s times the source) and %s of preparation%s",
        presto_format_bytes(result->total_stored_bytes, stored), stored_error,
        presto_format_number(result->total_stored_bytes / source_bytes, factor),
        presto_format_seconds(result->total_preparation_s, time), time_error));
    size_t raw = find_unprocessed(sweep);
    if (raw != SIZE_MAX)
        PRESTO_TRY(add_saving(best, &sweep->trials[raw], text, err));
    PRESTO_TRY(presto__text_add(text, err, "."));
    return add_epoch(sweep, text, err);
}

static presto_status describe_unprocessed(const presto_sweep *sweep, presto_buffer *text,
                                          presto_error *err) {
    const presto_strategy_result *best = result_at(sweep, sweep->best);
    char rate[PRESTO_TEXT_BYTES];
    char name[PRESTO__STRATEGY_TEXT_BYTES];
    PRESTO_TRY(
        presto__text_add(text, err,
                         "Reading %s delivers %s samples/s cold and needs neither storage nor "
                         "preparation",
                         presto__strategy_format(&best->strategy, name, sizeof name),
                         presto_format_number(best->cold.samples_per_s.median, rate)));
    size_t other = find_other(sweep, false);
    if (other == SIZE_MAX) {
        PRESTO_TRY(presto__text_add(text, err, "."));
        return add_epoch(sweep, text, err);
    }
    const presto_strategy_result *next = result_at(sweep, other);
    char stored[PRESTO_TEXT_BYTES];
    PRESTO_TRY(presto__text_add(
        text, err, "; the best that stores something, %s, delivers %s samples/s for %s.",
        presto__strategy_format(&next->strategy, name, sizeof name),
        presto_format_number(next->cold.samples_per_s.median, rate),
        presto_format_bytes(next->total_stored_bytes, stored)));
    return add_epoch(sweep, text, err);
}

/* The best-scored of those that equal the recommended one; SIZE_MAX: there is none. */
static size_t find_equal(const presto_sweep *sweep, size_t *count_out) {
    size_t found = SIZE_MAX;
    *count_out = 0;
    for (size_t i = 0; i < sweep->trial_count; i++) {
        if (i == sweep->best || !result_at(sweep, i)->is_equal)
            continue;
        ++*count_out;
        if (found == SIZE_MAX || i == sweep->first ||
            (found != sweep->first && result_at(sweep, i)->score > result_at(sweep, found)->score))
            found = i;
    }
    return found;
}

/* " 3 others equal it within the spread of the runs, first of them ... (4,100 samples/s); this one
 * stores 45 % less." */
static presto_status add_equals(const presto_sweep *sweep, presto_buffer *text, presto_error *err) {
    size_t count;
    size_t found = find_equal(sweep, &count);
    if (found == SIZE_MAX)
        return PRESTO_OK;
    const presto_strategy_result *best = result_at(sweep, sweep->best);
    const presto_strategy_result *other = result_at(sweep, found);
    char name[PRESTO__STRATEGY_TEXT_BYTES], less[PRESTO__SAVING_BYTES];
    char rate[PRESTO_TEXT_BYTES];
    presto__strategy_format(&other->strategy, name, sizeof name);
    presto_format_number(other->cold.samples_per_s.median, rate);
    const char *within = best->is_predicted || other->is_predicted
                             ? "as far as predictions tell"
                             : "within the spread of the runs";
    if (count == 1)
        PRESTO_TRY(
            presto__text_add(text, err, " %s (%s samples/s) equals it %s", name, rate, within));
    else
        PRESTO_TRY(presto__text_add(text, err,
                                    " %zu others equal it %s, first of them %s (%s samples/s)",
                                    count, within, name, rate));
    presto__merit mine = presto__merit_of(best);
    presto__merit others = presto__merit_of(other);
    switch (presto__merit_saving(&mine, &others)) {
    case PRESTO__SAVES_STORAGE:
        return presto__text_add(text, err, "; the recommended one %s.",
                                presto__saving_format(&mine, &others, less));
    case PRESTO__SAVES_THREADS:
        return presto__text_add(text, err, "; the recommended one needs fewer threads.");
    case PRESTO__SAVES_PREPARATION:
        return presto__text_add(text, err, "; the recommended one is prepared sooner.");
    case PRESTO__SAVES_NOTHING:
        break;
    }
    return presto__text_add(text, err, ", and none needs less.");
}

/* ---- when it pays ---- */

/* After how many epochs what they save is as long as this preparation. */
static uint64_t epochs_to_win(double preparation_s, double saved_s) {
    return (uint64_t)fmax(ceil(preparation_s / saved_s), 1);
}

/* " The time of preparing it is won back after 18 to 22 epochs.": the time that it takes, with its
 * error, and that each epoch saves. */
static presto_status add_payoff(const presto_sweep *sweep, presto_buffer *text, presto_error *err) {
    const presto_strategy_result *best = result_at(sweep, sweep->best);
    size_t raw = find_unprocessed(sweep);
    if (raw == SIZE_MAX || best->strategy.codec == NULL)
        return PRESTO_OK;
    double samples = presto__epoch_samples(sweep, best);
    double saved_s = samples / fmax(result_at(sweep, raw)->cold.samples_per_s.median, 1e-9) -
                     samples / fmax(best->cold.samples_per_s.median, 1e-9);
    double took_s = best->total_preparation_s, error_s = best->total_preparation_error_s;
    if (saved_s <= 0 || took_s / saved_s > 1e6)
        return PRESTO_OK;
    char epochs[PRESTO_TEXT_BYTES], range[PRESTO_TEXT_BYTES + 8] = "", number[PRESTO_TEXT_BYTES];
    uint64_t least = epochs_to_win(took_s, saved_s), most = least;
    if (100 * error_s / took_s >= LEAST_ERROR) {
        least = epochs_to_win(took_s - error_s, saved_s);
        most = epochs_to_win(took_s + error_s, saved_s);
    }
    if (least < most)
        snprintf(range, sizeof range, "%s to ", presto_format_count(least, number));
    return presto__text_add(text, err, " The time of preparing it is won back after %s%s.", range,
                            presto_format_things(most, "epoch", epochs));
}

static bool has_target(const presto_sweep *sweep) {
    return sweep->limits.target_samples_per_s > 0;
}

/* The next after the best by cost, of those within the limits that reach the target; SIZE_MAX:
 * none. */
static size_t find_next_cost(const presto_sweep *sweep) {
    size_t found = SIZE_MAX;
    for (size_t i = 0; i < sweep->trial_count; i++) {
        double cost = result_at(sweep, i)->cost;
        if (i != sweep->best && isfinite(cost) && isfinite(result_at(sweep, i)->score) &&
            (result_at(sweep, i)->is_equal || !has_target(sweep)) &&
            (found == SIZE_MAX || cost < result_at(sweep, found)->cost))
            found = i;
    }
    return found;
}

static presto_status add_costs(const presto_sweep *sweep, presto_buffer *text, presto_error *err) {
    const presto_strategy_result *best = result_at(sweep, sweep->best);
    presto__bill bill = presto__bill_at(sweep, best, best->cold.samples_per_s.median);
    char epochs[PRESTO_TEXT_BYTES], name[PRESTO__STRATEGY_TEXT_BYTES];
    size_t next = find_next_cost(sweep);
    bool is_least =
        !has_target(sweep) && (next == SIZE_MAX || best->cost <= result_at(sweep, next)->cost);
    PRESTO_TRY(presto__text_add(
        text, err,
        " It costs %s%.4g for %s, of it %.3g to store, %.3g to prepare and %.3g to train",
        is_least ? "least: " : "", best->cost,
        presto_format_things((uint64_t)sweep->prices.epochs, "epoch", epochs), bill.storage,
        bill.preparation, bill.training));
    if (next == SIZE_MAX || sweep->verdict == PRESTO_SWEEP_MISSES)
        return presto__text_add(text, err, ".");
    presto__strategy_format(&result_at(sweep, next)->strategy, name, sizeof name);
    double cost = result_at(sweep, next)->cost;
    if (has_target(sweep))
        return presto__text_add(text, err, "; next of those that reach the target is %s with %.4g.",
                                name, cost);
    return presto__text_add(
        text, err, "; next is %s with %.4g%s.", name, cost,
        result_at(sweep, next)->is_equal ? ", which is equal as far as the runs tell" : "");
}

/* ---- targets and limits ---- */

static size_t count_equal(const presto_sweep *sweep) {
    size_t count = 0;
    for (size_t i = 0; i < sweep->trial_count; i++)
        count += result_at(sweep, i)->is_equal;
    return count;
}

/* " Its slowest run is 26 % above the target of 800 samples/s": the rate in results.json, which the
 * report's tile is made of, too. */
static presto_status add_distance(const presto_sweep *sweep, presto_buffer *text,
                                  presto_error *err) {
    const presto_strategy_result *best = result_at(sweep, sweep->best);
    presto__merit merit = presto__merit_of(best);
    char rate[PRESTO_TEXT_BYTES];
    presto_format_number(sweep->limits.target_samples_per_s, rate);
    double counted = presto__merit_slowest_rate(&merit);
    double ratio = counted / sweep->limits.target_samples_per_s;
    const char *whose = best->is_predicted ? " By its prediction less the uncertainty, it is"
                        : counted > merit.samples_per_s.least
                            ? " Its slowest run, counted as a tenth below the median at most, is"
                            : " Its slowest run is";
    if (ratio < 3)
        return presto__text_add(text, err, "%s %.0f %% %s the target of %s samples/s", whose,
                                100 * fabs(ratio - 1), ratio < 1 ? "below" : "above", rate);
    return presto__text_add(text, err, "%s %.0f times the target of %s samples/s", whose, ratio,
                            rate);
}

static presto_status add_reached(const presto_sweep *sweep, presto_buffer *text,
                                 presto_error *err) {
    PRESTO_TRY(add_distance(sweep, text, err));
    if (result_at(sweep, sweep->best)->prediction.cold_bound == PRESTO_BOUND_CONSUMER)
        PRESTO_TRY(presto__text_add(text, err, ", so that the training itself is the limit"));
    size_t reaching = count_equal(sweep);
    if (reaching == 1)
        return presto__text_add(text, err, "; no other strategy reaches it.");
    return presto__text_add(text, err, "; of %zu strategies that reach it, it %s least.", reaching,
                            presto__prices_given(&sweep->prices) ? "costs" : "needs");
}

/* As the model tells it; "": it does not. */
static const char *bound_text(presto_sweep_bound bound) {
    switch (bound) {
    case PRESTO_BOUND_CORES:
        return "its processors";
    case PRESTO_BOUND_STORAGE:
        return "the bandwidth of storage";
    case PRESTO_BOUND_STORAGE_READS:
        return "the reads per second of storage";
    case PRESTO_BOUND_MEMORY:
        return "the bandwidth of memory";
    case PRESTO_BOUND_HANDOVER:
        return "handing batches over";
    case PRESTO_BOUND_UNKNOWN:
    case PRESTO_BOUND_CONSUMER:
        break;
    }
    return "";
}

static presto_status add_predicted_bound(const presto_sweep *sweep, presto_buffer *text,
                                         presto_error *err) {
    const char *bound = bound_text(result_at(sweep, sweep->best)->prediction.cold_bound);
    return bound[0] != '\0' ? presto__text_add(text, err, ", limited by %s (predicted).", bound)
                            : presto__text_add(text, err, ".");
}

/* What most of the workers' time goes into; of what was not run, what the model says. */
static presto_status add_bound(const presto_sweep *sweep, presto_buffer *text, presto_error *err) {
    const presto__epochs *run = typical_cold(&sweep->trials[sweep->best]);
    const presto__cost *largest = NULL;
    double total_s = 0;
    for (size_t i = 0; run != NULL && i < run->cost_count; i++) {
        total_s += run->costs[i].busy_s_per_sample;
        if (largest == NULL || run->costs[i].busy_s_per_sample > largest->busy_s_per_sample)
            largest = &run->costs[i];
    }
    if (largest == NULL || total_s <= 0)
        return add_predicted_bound(sweep, text, err);
    return presto__text_add(text, err, ", limited by %s%s (%.0f %% of the work).",
                            largest->is_step ? "step " : "", largest->name,
                            100 * largest->busy_s_per_sample / total_s);
}

/* What no strategy reaches, the loader's cache may. */
static presto_status add_cache(const presto_sweep *sweep, presto_buffer *text, presto_error *err) {
    size_t at = presto__cache_that_reaches(sweep);
    if (at == SIZE_MAX)
        return PRESTO_OK;
    const presto_strategy_result *result = result_at(sweep, at);
    char rate[PRESTO_TEXT_BYTES], bytes[PRESTO_TEXT_BYTES], threads[PRESTO_TEXT_BYTES];
    return presto__text_add(
        text, err,
        " With a cache in memory, epochs after the first are predicted to reach it: %s samples/s "
        "on %s (presto-load --cache memory:SIZE; %s for the whole source).",
        presto_format_number(result->prediction.memory_samples_per_s, rate),
        presto_format_things(result->strategy.threads, "thread", threads),
        presto_format_bytes(result->prediction.memory_bytes, bytes));
}

static presto_status add_missed(const presto_sweep *sweep, presto_buffer *text, presto_error *err) {
    char rate[PRESTO_TEXT_BYTES];
    presto_format_number(sweep->limits.target_samples_per_s, rate);
    bool are_kept = presto__has_limits(&sweep->limits) && !presto__limits_are_aside(sweep);
    PRESTO_TRY(presto__text_add(
        text, err, " No strategy%s reaches the target of %s samples/s: this is the nearest",
        are_kept ? " within the limits" : "", rate));
    PRESTO_TRY(add_bound(sweep, text, err));
    PRESTO_TRY(add_distance(sweep, text, err));
    presto__merit merit = presto__merit_of(result_at(sweep, sweep->best));
    double slowest = presto__merit_slowest_rate(&merit);
    if (slowest < sweep->limits.target_samples_per_s || slowest >= presto__goal(&sweep->limits))
        PRESTO_TRY(presto__text_add(text, err, "."));
    else
        PRESTO_TRY(presto__text_add(text, err, ", less than its headroom of %.0f %%.",
                                    100 * sweep->limits.headroom));
    return add_cache(sweep, text, err);
}

static presto_status add_verdict(const presto_sweep *sweep, presto_buffer *text,
                                 presto_error *err) {
    if (presto__limits_are_aside(sweep))
        PRESTO_TRY(presto__text_add(text, err,
                                    " No strategy keeps the limits of storage and preparation: "
                                    "they were left aside."));
    if (sweep->verdict == PRESTO_SWEEP_MISSES)
        return add_missed(sweep, text, err);
    if (has_target(sweep))
        return add_reached(sweep, text, err);
    if (sweep->verdict == PRESTO_SWEEP_KEEPS)
        return presto__text_add(text, err, " It keeps the limits of storage and preparation.");
    return PRESTO_OK;
}

presto_status presto__reason(const presto_sweep *sweep, presto_buffer *text_out,
                             presto_error *err) {
    const presto_strategy_result *best = result_at(sweep, sweep->best);
    if (best->strategy.codec == NULL) {
        PRESTO_TRY(describe_unprocessed(sweep, text_out, err));
    } else {
        PRESTO_TRY(describe_stored(sweep, text_out, err));
        PRESTO_TRY(presto__reason_further(sweep, text_out, err));
    }
    PRESTO_TRY(add_payoff(sweep, text_out, err));
    bool by_cost = presto__prices_given(&sweep->prices);
    if (by_cost)
        PRESTO_TRY(add_costs(sweep, text_out, err));
    PRESTO_TRY(add_verdict(sweep, text_out, err));
    const presto_weights *weights = &sweep->weights;
    bool by_score = !has_target(sweep) && !by_cost;
    if (by_score && (weights->preparation > 0 || weights->storage > 0))
        PRESTO_TRY(presto__text_add(
            text_out, err,
            " It scores %.3f of %g with the weights %g for preparation, %g for "
            "storage and %g for throughput.",
            best->score, weights->preparation + weights->storage + weights->throughput,
            weights->preparation, weights->storage, weights->throughput));
    /* What was not run, and may be as good, is told with how sure that is. */
    size_t not_run = sweep->confidence.not_run;
    if (by_score && !presto__has_rounds(sweep) && (not_run == SIZE_MAX || not_run == sweep->best))
        PRESTO_TRY(add_equals(sweep, text_out, err));
    PRESTO_TRY(presto__reason_sure(sweep, text_out, err));
    return add_tensorflow(&best->strategy, text_out, err);
}
