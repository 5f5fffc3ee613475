/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What every benchmark stands on. Cases that are to be compared run interleaved, round after round,
 * because a core of a shared machine may drop to 0.6 of its speed for seconds: what matters is the
 * ratio within a round. The median over the rounds, the best and the spread are reported, never a
 * single run.
 */
#ifndef PRESTO_BENCH_HARNESS_H
#define PRESTO_BENCH_HARNESS_H

#include <stddef.h>
#include <stdint.h>

#define BENCH_MAX_ROUNDS 64

/** One thing to be timed. run() does a fixed piece of work and returns how many units (samples,
 * bytes) it did. */
typedef struct bench_case {
    const char *name;
    double (*run)(void *user);
    void *user;
    /* Filled by bench_run: units per second, sorted ascending. */
    double rates[BENCH_MAX_ROUNDS];
    double ratios[BENCH_MAX_ROUNDS];    /* to case 0 in the same round, sorted ascending */
    double in_turn[BENCH_MAX_ROUNDS];   /* units per second, by round */
    double per_cpu[BENCH_MAX_ROUNDS];   /* units per second of processor time, by round */
    double switches[BENCH_MAX_ROUNDS];  /* context switches a second, by round: given up, */
    double preempted[BENCH_MAX_ROUNDS]; /* and taken away */
    unsigned rounds;
} bench_case;

/** Called from within run(): what was done so far was preparation, time starts now. */
void bench_restart(void);
/** Called from within run(): what follows is cleaning up and does not count. */
void bench_stop(void);

/** Run all cases once as warm-up, then `rounds` times in turn (the order rotates from round to
 * round). */
void bench_run(bench_case *cases, size_t count, unsigned rounds);

double bench_median(const bench_case *c);
double bench_best(const bench_case *c);
/** Half the distance between the quartiles over the median: 0.03 = 3 %. */
double bench_spread(const bench_case *c);
/** Median over the rounds of this case's rate over case 0's rate of the same round. */
double bench_ratio(const bench_case *c);

/** A median and its spread, as bench_spread counts it. */
typedef struct bench_figure {
    double median;
    double spread;
} bench_figure;

/** The figure of `count` values, in any order. */
bench_figure bench_figure_of(const double *values, unsigned count);
/** How `over` compares with `under`, round by round: by the clock, or by processor time, which is
 * what remains comparable while others use the machine. */
bench_figure bench_compare(const bench_case *over, const bench_case *under);
bench_figure bench_compare_cpu(const bench_case *over, const bench_case *under);

/** Append every figure noted from here on to the file `path`, one line of JSON each, for
 * bench/run. */
void bench_figures_to(const char *path);
/** Note a figure of one table of docs/bench.md: its cell in the row and column of these names,
 * which hold neither quotes nor backslashes. Nothing happens unless bench_figures_to() was
 * called. */
void bench_note(const char *table, const char *row, const char *column, bench_figure figure);

/** A line a case: name, median, best, spread, ratio to the first by the clock and by processor
 * time. `scale` divides the rates (1e9 for GB/s), `unit` names the result. */
void bench_print(const char *title, const bench_case *cases, size_t count, double scale,
                 const char *unit);

/** Run fn(user, thread) on `threads` threads at once and wait; for 1 thread in this one. */
void bench_on_threads(unsigned threads, void (*fn)(void *user, unsigned thread), void *user);

/** End the benchmark with a message. */
_Noreturn void bench_die(const char *format, ...) __attribute__((format(printf, 1, 2)));

/** Make a folder and those above it that are missing, or die. */
void bench_make_folder(const char *path);

/** Like open/mmap/read errors: a presto_status that must be OK. `err` may be NULL. */
void bench_need(int status, const void *err, const char *what);

#endif
