/* SPDX-License-Identifier: Apache-2.0 */
/* Why not one step further, or one less: the best of the representations on both sides of the one
 * that is recommended. */
#include "../choice/sure_internal.h"

#include <math.h>

static const presto_strategy_result *result_at(const presto_sweep *sweep, size_t i) {
    return &sweep->trials[i].result;
}

static bool is_of(const presto_sweep *sweep, size_t i, const char *split) {
    return strcmp(result_at(sweep, i)->strategy.stored, split) == 0;
}

/* The split before or after that of the best. Trials are in the order of the pipeline's splits.
 * NULL: there is none that stores something. */
static const char *find_split(const presto_sweep *sweep, bool after) {
    const char *own = result_at(sweep, sweep->best)->strategy.stored, *before = NULL;
    bool is_passed = false;
    for (size_t i = 0; i < sweep->trial_count; i++) {
        const presto_strategy *strategy = &result_at(sweep, i)->strategy;
        bool is_own = is_of(sweep, i, own);
        is_passed = is_passed || is_own;
        if (is_own || strategy->codec == NULL)
            continue;
        if (is_passed)
            return after ? strategy->stored : before;
        before = strategy->stored;
    }
    return after ? NULL : before;
}

bool presto__scores_better(const presto_strategy_result *one, const presto_strategy_result *other) {
    if (isnan(one->score) != isnan(other->score))
        return isnan(other->score);
    return isnan(one->score) ? one->cold.samples_per_s.median > other->cold.samples_per_s.median
                             : one->score > other->score;
}

/* Of those that store `split`; SIZE_MAX: all have failed. */
static size_t find_best_of(const presto_sweep *sweep, const char *split) {
    size_t found = SIZE_MAX;
    for (size_t i = 0; i < sweep->trial_count; i++)
        if (!result_at(sweep, i)->failed && is_of(sweep, i, split) &&
            (found == SIZE_MAX ||
             presto__scores_better(result_at(sweep, i), result_at(sweep, found))))
            found = i;
    return found;
}

static presto_status add_other(const presto_sweep *sweep, size_t i, const char *where,
                               presto_buffer *text, presto_error *err) {
    const presto_strategy_result *result = result_at(sweep, i);
    char name[PRESTO__STRATEGY_TEXT_BYTES], rate[PRESTO_TEXT_BYTES], stored[PRESTO_TEXT_BYTES];
    return presto__text_add(text, err, "%s (%s) gives %s samples/s%s and takes %s%s", where,
                            presto__strategy_format(&result->strategy, name, sizeof name),
                            presto_format_number(result->cold.samples_per_s.median, rate),
                            result->is_predicted ? " (predicted)" : "",
                            presto_format_bytes(result->total_stored_bytes, stored),
                            isnan(result->score) ? ", beyond the limits" : "");
}

presto_status presto__reason_further(const presto_sweep *sweep, presto_buffer *text_out,
                                     presto_error *err) {
    const char *after = find_split(sweep, true), *before = find_split(sweep, false);
    size_t further = after == NULL ? SIZE_MAX : find_best_of(sweep, after);
    size_t less = before == NULL ? SIZE_MAX : find_best_of(sweep, before);
    if (further != SIZE_MAX)
        PRESTO_TRY(add_other(sweep, further, " One step further", text_out, err));
    if (less != SIZE_MAX)
        PRESTO_TRY(add_other(sweep, less,
                             further != SIZE_MAX ? "; one step less" : " One step less", text_out,
                             err));
    return further == SIZE_MAX && less == SIZE_MAX ? PRESTO_OK
                                                   : presto__text_add(text_out, err, ".");
}
