/* SPDX-License-Identifier: Apache-2.0 */
/* What a sweep has found, for those who ask it. */
#include "../profile_internal.h"

#include <math.h>

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
