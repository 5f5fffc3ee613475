/* SPDX-License-Identifier: Apache-2.0 */
/* The results of a sweep, and which strategy is the best for given weights. */
#include "profile_internal.h"

#include <stdlib.h>

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

presto_status presto_sweep_score(presto_sweep *sweep, const presto_weights *weights,
                                 presto_error *err) {
    PRESTO_TRY(presto__weights_check(weights, err));
    size_t count = sweep->trial_count;
    presto__merit *merits = calloc(count, sizeof *merits);
    double *scores = calloc(count, sizeof *scores);
    bool *is_equal = calloc(count, sizeof *is_equal);
    presto_status status = PRESTO_OK;
    if (merits == NULL || scores == NULL || is_equal == NULL) {
        status = presto_fail_memory(err, count * sizeof *merits);
        goto out;
    }
    for (size_t i = 0; i < count; i++) {
        merits[i] = presto__merit_of(&sweep->trials[i].result);
        merits[i].cost = presto__cost_of(sweep, &sweep->trials[i].result);
        sweep->trials[i].result.cost = merits[i].cost.median;
    }
    const presto__contest contest = {merits, count, *weights, presto__prices_given(&sweep->prices)};
    presto__choice choice = presto__choose(merits, &contest, &sweep->limits, scores, is_equal);
    sweep->first = choice.first;
    sweep->best = choice.best;
    sweep->verdict = choice.verdict;
    sweep->weights = *weights;
    for (size_t i = 0; i < count; i++) {
        sweep->trials[i].result.score = scores[i];
        sweep->trials[i].result.is_equal = is_equal[i];
    }
    sweep->reason.bytes = sweep->write_command.bytes = sweep->load_command.bytes = 0;
    status = presto__reason(sweep, &sweep->reason, err);
    if (status == PRESTO_OK)
        status = presto__write_command(sweep, &sweep->write_command, err);
    if (status == PRESTO_OK)
        status = presto__load_command(sweep, &sweep->load_command, err);
out:
    free(is_equal);
    free(scores);
    free(merits);
    return status;
}
