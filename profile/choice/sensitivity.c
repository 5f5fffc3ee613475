/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What would change the answer: the choice is made again with other targets, limits, prices and
 * lengths of the training, all from the figures that were measured; and on other storage and more
 * or fewer processors, where there is a model that tells by how much rates would change.
 */
#include "../../storage/play_internal.h"
#include "../predict/predict_internal.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

/* What is asked: the sweep with one thing changed. */
typedef struct asked {
    presto_sweep *sweep; /* where answers go */
    presto_sweep variant;
    double epochs; /* more than 0: time counts, that of preparing and of so many epochs */
    const presto__conditions *conditions; /* of the model; NULL: as they are */
    presto__merit *merits;
    presto__ballot ballot;
} asked;

static void start(asked *a) {
    a->variant = *a->sweep;
    a->epochs = 0;
    a->conditions = NULL;
}

/* The result as it would be under other conditions: its rate times what the model says. */
static presto_strategy_result under_conditions(const asked *a,
                                               const presto_strategy_result *result) {
    presto_strategy_result other = *result;
    presto__rates before, then;
    const presto__model *model = a->sweep->model;
    if (a->conditions == NULL || result->failed ||
        !presto__model_rates(model, &result->strategy, NULL, &before) ||
        !presto__model_rates(model, &result->strategy, a->conditions, &then) ||
        !(before.cold_samples_per_s > 0) || !isfinite(then.cold_samples_per_s))
        return other;
    double factor = then.cold_samples_per_s / before.cold_samples_per_s;
    presto_spread *rate = &other.cold.samples_per_s;
    *rate = (presto_spread){rate->least * factor, rate->median * factor, rate->most * factor,
                            rate->runs};
    return other;
}

static presto_spread time_of(const asked *a, const presto_strategy_result *result) {
    presto_spread rate = result->cold.samples_per_s;
    double samples = a->epochs * presto__epoch_samples(a->sweep, result);
    double before_s = result->strategy.codec != NULL ? result->total_preparation_s : 0;
    return (presto_spread){before_s + samples / fmax(rate.most, 1e-9),
                           before_s + samples / fmax(rate.median, 1e-9),
                           before_s + samples / fmax(rate.least, 1e-9), rate.runs};
}

/* Strategies that the question leaves equal to the recommended one are no other answer. */
static bool is_other(const asked *a, const presto__choice *choice) {
    size_t best = a->sweep->best;
    presto__merit mine = presto__merit_of(&a->sweep->trials[best].result);
    presto__merit other = presto__merit_of(&a->sweep->trials[choice->best].result);
    if (choice->best == best)
        return false;
    return !a->ballot.is_equal[best] ||
           presto__merit_saving(&other, &mine) != PRESTO__SAVES_NOTHING;
}

static bool asks_limit(const asked *a) {
    return a->variant.limits.most_stored_bytes != a->sweep->limits.most_stored_bytes;
}

/* Limits that nothing keeps are put aside; only where they are asked about, that is an answer. */
static bool is_missed(const asked *a, const presto__choice *choice) {
    return choice->verdict == PRESTO_SWEEP_MISSES ||
           (choice->verdict == PRESTO_SWEEP_EXCEEDS &&
            (asks_limit(a) || !presto__limits_are_aside(a->sweep)));
}

static void PRESTO_PRINTF(2, 3) ask(asked *a, const char *format, ...) {
    presto_sweep *variant = &a->variant;
    presto_sweep *sweep = a->sweep;
    if (sweep->what_if_count == PRESTO__WHAT_IFS_MOST)
        return;
    for (size_t i = 0; i < variant->trial_count; i++) {
        const presto_strategy_result result = under_conditions(a, &variant->trials[i].result);
        a->merits[i] = presto__merit_of(&result);
        a->merits[i].cost = a->epochs > 0 ? time_of(a, &result) : presto__cost_of(variant, &result);
    }
    presto__merits_link(variant, a->merits);
    const presto__contest contest = {a->merits, variant->trial_count, variant->weights,
                                     a->epochs > 0 || presto__prices_given(&variant->prices)};
    const presto__choice choice =
        presto__choose(a->merits, &contest, &variant->limits, a->ballot.scores, a->ballot.is_equal);
    presto__what_if *at = &sweep->what_ifs[sweep->what_if_count++];
    va_list args;
    va_start(args, format);
    vsnprintf(at->text, sizeof at->text, format, args);
    va_end(args);
    at->what_if = (presto_sweep_what_if){.condition = at->text,
                                         .result = choice.best,
                                         .is_other = is_other(a, &choice),
                                         .is_missed = is_missed(a, &choice)};
    /* What is the best without the limit that was asked about is not near to it. */
    if (asks_limit(a) && !presto__keeps_limits(&a->merits[choice.best], &variant->limits))
        at->what_if.is_other = false;
}

/* ---- the questions ---- */

static void ask_about_target(asked *a) {
    double target = a->sweep->limits.target_samples_per_s;
    char rate[PRESTO_TEXT_BYTES], headroom[PRESTO_TEXT_BYTES] = "";
    if (a->sweep->limits.headroom > 0)
        snprintf(headroom, sizeof headroom, " and %.0f %% more in each run",
                 100 * a->sweep->limits.headroom);
    start(a);
    a->variant.limits.target_samples_per_s = target * 2;
    ask(a, "with twice the target, %s samples/s%s", presto_format_number(target * 2, rate),
        headroom);
    a->variant.limits.target_samples_per_s = target / 2;
    ask(a, "with half the target, %s samples/s%s", presto_format_number(target / 2, rate),
        headroom);
}

/* Without a target, the fastest was asked for. What if less is enough? */
static void ask_about_less(asked *a) {
    static const struct {
        double part;
        const char *text;
    } parts[] = {{0.5, "half of its speed"}, {0.1, "a tenth of its speed"}};
    double best = a->sweep->trials[a->sweep->best].result.cold.samples_per_s.median;
    char rate[PRESTO_TEXT_BYTES];
    start(a);
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        a->variant.limits.target_samples_per_s = best * parts[i].part;
        ask(a, "if %s is enough, %s samples/s", parts[i].text,
            presto_format_number(best * parts[i].part, rate));
    }
}

static void ask_about_storage(asked *a) {
    const presto_strategy_result *best = &a->sweep->trials[a->sweep->best].result;
    double stored = best->total_stored_bytes, limit = (double)a->sweep->limits.most_stored_bytes;
    char size[PRESTO_TEXT_BYTES];
    start(a);
    if (best->strategy.codec != NULL) {
        a->variant.limits.most_stored_bytes = (uint64_t)(stored / 2);
        ask(a, "with half the storage, %s at most", presto_format_bytes(stored / 2, size));
    }
    if (limit > 0) {
        a->variant.limits.most_stored_bytes = (uint64_t)fmin(limit * 2, 9e18);
        ask(a, "with twice the limit of storage, %s", presto_format_bytes(limit * 2, size));
    }
}

static void ask_about_prices(asked *a) {
    const presto_sweep_prices *given = &a->sweep->prices;
    char epochs[PRESTO_TEXT_BYTES];
    double counts[] = {given->epochs * 10, fmax(round(given->epochs / 10), 1)};
    start(a);
    for (size_t i = 0; i < 2; i++) {
        a->variant.prices.epochs = counts[i];
        if (counts[i] != given->epochs)
            ask(a, "with %s instead of %.0f",
                presto_format_things((uint64_t)counts[i], "epoch", epochs), given->epochs);
    }
    const struct {
        size_t offset;
        const char *name;
    } prices[] = {{offsetof(presto_sweep_prices, storage_gb_month), "storage"},
                  {offsetof(presto_sweep_prices, cpu_h), "a CPU"},
                  {offsetof(presto_sweep_prices, accelerator_h), "the accelerator"}};
    for (size_t i = 0; i < sizeof prices / sizeof *prices; i++) {
        start(a);
        double *price = (double *)(void *)((char *)&a->variant.prices + prices[i].offset);
        if (!(*price > 0))
            continue;
        *price *= 10;
        ask(a, "if %s cost ten times as much", prices[i].name);
        *price /= 100;
        ask(a, "if %s cost a tenth", prices[i].name);
    }
}

static void ask_about_epochs(asked *a) {
    static const double counts[] = {1, 10, 100};
    char epochs[PRESTO_TEXT_BYTES];
    start(a);
    a->variant.limits.target_samples_per_s = 0;
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        a->epochs = counts[i];
        ask(a, "if preparation and %s are to end soonest",
            presto_format_things((uint64_t)counts[i], "epoch", epochs));
    }
}

static void scale_storage(presto_storage *storage, double factor) {
    storage->bytes_per_s *= factor;
    storage->bytes_per_s_per_thread *= factor;
    storage->reads_per_s *= factor;
    storage->latency_s /= factor;
    storage->open_s /= factor;
}

static void ask_about_machine(asked *a) {
    presto__conditions conditions = presto__model_conditions(a->sweep->model);
    unsigned cores = a->sweep->facts.cpus, more = 2 * cores;
    char count[PRESTO_TEXT_BYTES];
    start(a);
    a->conditions = &conditions;
    if (presto__storage_is_set(&conditions.storage)) {
        scale_storage(&conditions.storage, 0.5);
        ask(a, "if storage were half as fast");
        scale_storage(&conditions.storage, 4);
        ask(a, "if storage were twice as fast");
    }
    conditions = presto__model_conditions(a->sweep->model);
    conditions.cores = more;
    ask(a, "with twice the processors, %s", presto_format_count(more, count));
    conditions.cores = cores / 2;
    if (cores >= 2)
        ask(a, "with half the processors, %s", presto_format_count(cores / 2, count));
    a->conditions = NULL;
}

presto_status presto__find_what_ifs(presto_sweep *sweep, presto_error *err) {
    size_t count = sweep->trial_count;
    asked a = {.sweep = sweep,
               .merits = calloc(count, sizeof *a.merits),
               .ballot = {.scores = calloc(count, sizeof *a.ballot.scores),
                          .is_equal = calloc(count, sizeof *a.ballot.is_equal)}};
    presto_status status = PRESTO_OK;
    sweep->what_if_count = 0;
    if (a.merits == NULL || a.ballot.scores == NULL || a.ballot.is_equal == NULL)
        status = presto_fail_memory(err, count * sizeof *a.merits);
    bool by_cost = presto__prices_given(&sweep->prices);
    if (status == PRESTO_OK) {
        if (by_cost)
            ask_about_prices(&a);
        if (sweep->limits.target_samples_per_s > 0)
            ask_about_target(&a);
        else if (!by_cost)
            ask_about_less(&a);
        ask_about_storage(&a);
        if (sweep->model != NULL)
            ask_about_machine(&a);
        if (!by_cost)
            ask_about_epochs(&a);
    }
    free(a.merits);
    free(a.ballot.scores);
    free(a.ballot.is_equal);
    return status;
}
