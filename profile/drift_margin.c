/* SPDX-License-Identifier: Apache-2.0 */
/* By how much the samples may change until a sweep may recommend another strategy. */
#include "drift_internal.h"

#include <math.h>

/* Smaller margins are within what sweeps call equal. */
#define LEAST_MARGIN 0.02
/* Where another than the fastest was recommended, or there was no other: as without a sweep. */
#define ANY_MARGIN 0.1

static double number_of(const json_t *object, const char *name) {
    const json_t *value = json_object_get(object, name);
    return json_is_number(value) ? json_number_value(value) : NAN;
}

static double rate_of(const json_t *result) {
    double measured = number_of(result, "cold_samples_per_s");
    return isfinite(measured) ? measured : number_of(result, "predicted_samples_per_s");
}

/* By how much the recommended strategy costs less than the next or, without prices, is faster. NaN:
 * the file does not say. */
static double ahead_of(const json_t *root, const json_t *best_at, const json_t *next_at) {
    const json_t *results = json_object_get(root, "results");
    const json_t *best = json_array_get(results, (size_t)json_integer_value(best_at));
    const json_t *next = json_array_get(results, (size_t)json_integer_value(next_at));
    double cost = number_of(best, "cost");
    if (cost <= 0)
        return ANY_MARGIN; /* no ratio of costs */
    return (isfinite(cost) ? number_of(next, "cost") / cost : rate_of(best) / rate_of(next)) - 1;
}

/* How much slower the samples may become until another strategy may be recommended. False: the file
 * does not say. */
static bool margin_of(const json_t *root, double *margin_out) {
    const json_t *chosen = json_object_get(root, "recommendation");
    const json_t *best = json_object_get(chosen, "result");
    const json_t *runners_up = json_object_get(chosen, "runners_up");
    const json_t *next = json_array_get(runners_up, 0);
    double target = number_of(json_object_get(root, "options"), "target_samples_per_s");
    double ahead = NAN;
    if (target > 0)
        ahead = number_of(chosen, "slowest_samples_per_s") / target - 1;
    else if (json_is_array(runners_up) && next == NULL)
        ahead = ANY_MARGIN;
    else if (json_is_integer(best) && json_is_integer(next))
        ahead = ahead_of(root, best, next);
    if (!isfinite(ahead))
        return false;
    bool is_behind = ahead < 0 && !(target > 0);
    *margin_out = is_behind ? ANY_MARGIN : fmax(ahead, LEAST_MARGIN);
    return true;
}

presto_status presto_drift_margin(const char *results_path, double *margin_out, presto_error *err) {
    json_t *root = NULL;
    PRESTO_TRY(presto__drift_results(results_path, &root, err));
    bool is_known = margin_of(root, margin_out);
    json_decref(root);
    if (is_known)
        return PRESTO_OK;
    presto_status status =
        presto_fail(err, PRESTO_ERR_SYNTAX, PRESTO_NO_OFFSET,
                    "does not say which strategy is next to the recommended one");
    presto_error_set_file(err, results_path);
    return status;
}
