/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The time that each step takes, and the bytes that it puts out. Reading the clock for every sample
 * may cost 1 / OVERHEAD_DIVISOR of the time. If it would cost more, only every n-th sample is
 * timed, and counts for n.
 */

#include "../../base/clock_internal.h"
#include "../../base/options_internal.h"
#include "../pipelines_internal.h"
#include "plan_internal.h"

#define OVERHEAD_DIVISOR 50
#define CLOCK_NS 30
#define MAX_INTERVAL 64

void presto__count(_Atomic uint64_t *counter, uint64_t amount) {
    /* There is one writer: no read-modify-write is needed. */
    atomic_store_explicit(counter, atomic_load_explicit(counter, memory_order_relaxed) + amount,
                          memory_order_relaxed);
}

void presto__timing_start(presto__plan_worker *worker) {
    worker->is_timed = worker->countdown == 0;
    if (worker->is_timed)
        worker->start_ns = worker->last_ns = presto__clock_ns();
    else
        worker->countdown--;
}

void presto__timing_mark(presto__plan_worker *worker, size_t i) {
    if (!worker->is_timed)
        return;
    uint64_t now = presto__clock_ns();
    presto__count(&worker->counters[i].busy_ns, (now - worker->last_ns) * worker->interval);
    worker->last_ns = now;
}

void presto__timing_finish(presto__plan_worker *worker) {
    if (!worker->is_timed)
        return;
    uint64_t cost_ns = (worker->plan->step_count + 1) * CLOCK_NS * OVERHEAD_DIVISOR;
    uint64_t took_ns = worker->last_ns - worker->start_ns;
    uint64_t interval = took_ns > 0 ? cost_ns / took_ns + 1 : MAX_INTERVAL;
    worker->interval = interval < MAX_INTERVAL ? interval : MAX_INTERVAL;
    worker->countdown = worker->interval - 1;
}

static uint64_t volume(const presto_tensor *tensor) {
    if (tensor->spec.dtype != PRESTO_STRING)
        return presto_tensor_bytes(tensor);
    uint64_t bytes = 0;
    uint64_t count = presto_spec_elements(&tensor->spec);
    for (uint64_t i = 0; i < count; i++)
        bytes += tensor->strings[i].bytes;
    return bytes;
}

void presto__count_output(presto__plan_worker *worker, size_t i, const presto_tensor *out) {
    presto__count(&worker->counters[i].samples, 1);
    presto__count(&worker->counters[i].out_bytes, volume(out));
}

static uint64_t read_counter(const _Atomic uint64_t *counter) {
    return atomic_load_explicit(counter, memory_order_relaxed);
}

void presto__plan_worker_stats_sized(const presto__plan_worker *worker, size_t i,
                                     presto_step_stats *stats_out) {
    static const presto__step_counters none;
    presto_step_stats stats = {0};
    const presto__step_counters *counters =
        i < worker->plan->step_count ? &worker->counters[i] : &none;
    stats.samples = read_counter(&counters->samples);
    stats.busy_ns = read_counter(&counters->busy_ns);
    stats.out_bytes = read_counter(&counters->out_bytes);
    stats.dropped = read_counter(&counters->dropped);
    stats.unfused = read_counter(&counters->unfused);
    presto__result_give(stats_out, &stats, sizeof stats);
}
