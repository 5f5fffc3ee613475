/* SPDX-License-Identifier: Apache-2.0 */
/* Two sides measured by round, by the clock and by processor time, and their line of a table. */
#include "records.h"

#include <stdio.h>
#include <time.h>

#include "base/clock_internal.h"

records_spent records_now(void) {
    struct timespec cpu;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &cpu);
    return (records_spent){presto__clock_ns(),
                           (uint64_t)cpu.tv_sec * 1000000000 + (uint64_t)cpu.tv_nsec};
}

void records_count_since(records_spent *sum, records_spent start) {
    records_spent end = records_now();
    sum->clock_ns += end.clock_ns - start.clock_ns;
    sum->cpu_ns += end.cpu_ns - start.cpu_ns;
}

void records_add(records_series *s, records_spent time, double units) {
    s->clock[s->count] = (double)(time.clock_ns > 0 ? time.clock_ns : 1) / units;
    s->cpu[s->count] = (double)(time.cpu_ns > 0 ? time.cpu_ns : 1) / units;
    s->count++;
}

double records_median(const double *values, unsigned count) {
    return bench_figure_of(values, count).median;
}

double records_least(const double *values, unsigned count) {
    double found = values[0];
    for (unsigned i = 1; i < count; i++)
        found = values[i] < found ? values[i] : found;
    return found;
}

bench_figure records_faster(const double *ours, const double *theirs, unsigned count) {
    double ratios[BENCH_MAX_ROUNDS] = {0};
    for (unsigned i = 0; i < count; i++)
        ratios[i] = theirs[i] / ours[i];
    return bench_figure_of(ratios, count);
}

/* The table of docs/bench.md to which records_print() adds a row; NULL: none. */
static const char *table;

bench_figure records_speed(const records_series *s, double scale) {
    bench_figure time = bench_figure_of(s->clock, s->count);
    return (bench_figure){scale / time.median, time.spread};
}

void records_print(const char *name, const records_series *ours, const records_series *theirs,
                   double scale, const char *unit) {
    unsigned count = ours->count;
    bench_figure clock = records_faster(ours->clock, theirs->clock, count);
    bench_figure cpu = records_faster(ours->cpu, theirs->cpu, count);
    double best = records_least(ours->clock, count),
           their_best = records_least(theirs->clock, count);
    if (table != NULL) {
        char ours_in[64], theirs_in[64];
        snprintf(ours_in, sizeof ours_in, "Presto, %s", unit);
        snprintf(theirs_in, sizeof theirs_in, "by hand, %s", unit);
        bench_note(table, name, ours_in, records_speed(ours, scale));
        bench_note(table, name, theirs_in, records_speed(theirs, scale));
        bench_note(table, name, "ratio by the clock", clock);
        bench_note(table, name, "by processor time", cpu);
    }
    printf("%-30s %8.2f (%8.2f) %8.2f (%8.2f) %-5s %5.2f +-%3.0f%% %5.2f +-%3.0f%% %5.2f\n", name,
           scale / records_median(ours->clock, count), scale / best,
           scale / records_median(theirs->clock, count), scale / their_best, unit, clock.median,
           100 * clock.spread, cpu.median, 100 * cpu.spread, their_best / best);
    fflush(stdout);
}

void records_print_head(const char *into, const char *title, const char *theirs) {
    table = into;
    printf("\n%s\n%-30s %-19s %-19s %-5s %-11s %-11s %5s\n", title, "", "presto median(best)",
           theirs, "", "ratio", "by CPU", "best");
}
