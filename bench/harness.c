/* SPDX-License-Identifier: Apache-2.0 */
#include "harness.h"
#include "../base/clock_internal.h"

#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <presto/status.h>

void bench_die(const char *format, ...) {
    va_list args;
    va_start(args, format);
    fputs("bench: ", stderr);
    vfprintf(stderr, format, args);
    fputc('\n', stderr);
    va_end(args);
    exit(1);
}

void bench_make_folder(const char *path) {
    char *part = strdup(path);
    if (part == NULL)
        bench_die("out of memory");
    for (char *slash = strchr(part + 1, '/'); slash != NULL; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        (void)mkdir(part, 0777); /* what matters is whether the last one can be made */
        *slash = '/';
    }
    if (mkdir(part, 0777) != 0 && errno != EEXIST)
        bench_die("%s: cannot make folder: %s", path, strerror(errno));
    free(part);
}

void bench_need(int status, const void *err, const char *what) {
    if (status >= 0)
        return;
    char text[2048] = "";
    if (err != NULL)
        presto_error_format(err, text, sizeof text);
    bench_die("%s: %s: %s", what, presto_status_name((presto_status)status), text);
}

static int compare_doubles(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double cpu_seconds(const struct rusage *usage) {
    return (double)(usage->ru_utime.tv_sec + usage->ru_stime.tv_sec) +
           (double)(usage->ru_utime.tv_usec + usage->ru_stime.tv_usec) / 1e6;
}

/* Of the run under way: when it began, and when it ended if it says so itself. */
static struct rusage before, after;
static uint64_t start, stop;

void bench_restart(void) {
    getrusage(RUSAGE_SELF, &before);
    start = presto__clock_ns();
}

void bench_stop(void) {
    stop = presto__clock_ns();
    getrusage(RUSAGE_SELF, &after);
}

static void run_once(bench_case *c, unsigned round) {
    stop = 0;
    bench_restart();
    double units = c->run(c->user);
    if (stop == 0)
        bench_stop();
    uint64_t took = stop - start;
    double seconds = (double)(took > 0 ? took : 1) / 1e9;
    double cpu = cpu_seconds(&after) - cpu_seconds(&before);
    c->in_turn[round] = c->rates[round] = units / seconds;
    c->per_cpu[round] = units / (cpu > 0 ? cpu : 1e-6);
    c->switches[round] = (double)(after.ru_nvcsw - before.ru_nvcsw) / seconds;
    c->preempted[round] = (double)(after.ru_nivcsw - before.ru_nivcsw) / seconds;
}

void bench_run(bench_case *cases, size_t count, unsigned rounds) {
    if (rounds == 0 || rounds > BENCH_MAX_ROUNDS)
        bench_die("between 1 and %d rounds, not %u", BENCH_MAX_ROUNDS, rounds);
    for (size_t i = 0; i < count; i++)
        run_once(&cases[i], 0);
    for (unsigned round = 0; round < rounds; round++) {
        for (size_t k = 0; k < count; k++)
            run_once(&cases[(k + round) % count], round);
        for (size_t i = 0; i < count; i++)
            cases[i].ratios[round] = cases[i].rates[round] / cases[0].rates[round];
    }
    for (size_t i = 0; i < count; i++) {
        cases[i].rounds = rounds;
        qsort(cases[i].rates, rounds, sizeof(double), compare_doubles);
        qsort(cases[i].ratios, rounds, sizeof(double), compare_doubles);
    }
}

static double quantile(const double *sorted, unsigned count, double q) {
    double at = q * (double)(count - 1);
    unsigned low = (unsigned)at;
    unsigned high = low + 1 < count ? low + 1 : low;
    return sorted[low] + (sorted[high] - sorted[low]) * (at - (double)low);
}

double bench_median(const bench_case *c) {
    return quantile(c->rates, c->rounds, 0.5);
}

double bench_best(const bench_case *c) {
    return c->rates[c->rounds - 1];
}

double bench_spread(const bench_case *c) {
    double middle = bench_median(c);
    return (quantile(c->rates, c->rounds, 0.75) - quantile(c->rates, c->rounds, 0.25)) / 2 / middle;
}

double bench_ratio(const bench_case *c) {
    return quantile(c->ratios, c->rounds, 0.5);
}

bench_figure bench_figure_of(const double *values, unsigned count) {
    double sorted[BENCH_MAX_ROUNDS];
    memcpy(sorted, values, count * sizeof *sorted);
    qsort(sorted, count, sizeof *sorted, compare_doubles);
    double middle = quantile(sorted, count, 0.5);
    double half = (quantile(sorted, count, 0.75) - quantile(sorted, count, 0.25)) / 2;
    return (bench_figure){middle, middle > 0 ? half / middle : 0};
}

static bench_figure compare(const double *over, const double *under, unsigned rounds) {
    double ratios[BENCH_MAX_ROUNDS];
    for (unsigned i = 0; i < rounds; i++)
        ratios[i] = over[i] / under[i];
    return bench_figure_of(ratios, rounds);
}

bench_figure bench_compare(const bench_case *over, const bench_case *under) {
    return compare(over->in_turn, under->in_turn, over->rounds);
}

bench_figure bench_compare_cpu(const bench_case *over, const bench_case *under) {
    return compare(over->per_cpu, under->per_cpu, over->rounds);
}

static FILE *figures;

void bench_figures_to(const char *path) {
    figures = fopen(path, "a");
    if (figures == NULL)
        bench_die("%s: cannot write: %s", path, strerror(errno));
}

void bench_note(const char *table, const char *row, const char *column, bench_figure figure) {
    if (figures == NULL)
        return;
    if (!isfinite(figure.median) || !isfinite(figure.spread))
        bench_die("%s, %s, %s: no work was done: take more of it", table, row, column);
    if (fprintf(figures,
                "{\"table\": \"%s\", \"row\": \"%s\", \"column\": \"%s\", \"median\": %.6g, "
                "\"spread\": %.4f}\n",
                table, row, column, figure.median, figure.spread) < 0 ||
        fflush(figures) != 0)
        bench_die("cannot write the figures: %s", strerror(errno));
}

void bench_print(const char *title, const bench_case *cases, size_t count, double scale,
                 const char *unit) {
    printf("%s\n  %-40s %10s %10s %7s %6s %7s\n", title, unit, "median", "best", "spread", "ratio",
           "by CPU");
    for (size_t i = 0; i < count; i++)
        printf("  %-40s %10.3f %10.3f %6.1f%% %6.2f %7.2f\n", cases[i].name,
               bench_median(&cases[i]) / scale, bench_best(&cases[i]) / scale,
               bench_spread(&cases[i]) * 100, bench_ratio(&cases[i]),
               bench_compare_cpu(&cases[i], &cases[0]).median);
    fflush(stdout);
}

typedef struct thread_call {
    void (*fn)(void *user, unsigned thread);
    void *user;
    unsigned thread;
} thread_call;

static void *thread_main(void *argument) {
    const thread_call *call = argument;
    call->fn(call->user, call->thread);
    return NULL;
}

void bench_on_threads(unsigned threads, void (*fn)(void *user, unsigned thread), void *user) {
    enum { most = 64 };
    pthread_t ids[most];
    thread_call calls[most];
    if (threads == 0 || threads > most)
        bench_die("between 1 and %d threads, not %u", most, threads);
    for (unsigned i = 1; i < threads; i++) {
        calls[i] = (thread_call){fn, user, i};
        if (pthread_create(&ids[i], NULL, thread_main, &calls[i]) != 0)
            bench_die("cannot start a thread");
    }
    fn(user, 0);
    for (unsigned i = 1; i < threads; i++)
        pthread_join(ids[i], NULL);
}
