/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of strategies on the terminal. It fits 80 columns: long names are cut, numbers are
 * rounded to three digits.
 */
#include "table.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../cli/cli.h"
#include "../cli/terminal.h"

/* Fixed: mark, threads, storage, offline time, two rates with their spread, score, and the gaps. */
enum {
    LEAST_COLUMNS = 80,
    FIXED_COLUMNS = 56,
    FILES_COLUMNS = 6,
    LEAST_SPLIT = 14,
    LEAST_SPLIT_BESIDE_FILES = 11, /* so that 7 are left for the codec */
    LEAST_CODEC = 5,
    FAILURE_BYTES = PRESTO_ERROR_FILE_BYTES + PRESTO_ERROR_MESSAGE_BYTES + 96
};
/* Of predicted strategies that were not run, and of those that failed alike, so many are shown. */
enum { SHOWN_PREDICTED = 12, SHOWN_FAILED = 6 };

/* At most 12 characters. */
static char *format_rate(const presto_spread *rate, char text[PRESTO_TEXT_BYTES]) {
    char number[PRESTO_TEXT_BYTES];
    presto_format_number(rate->median, number);
    double half = rate->median > 0 ? (rate->most - rate->least) / 2 / rate->median : NAN;
    if (rate->runs > 1 && isfinite(half))
        snprintf(text, PRESTO_TEXT_BYTES, "%.30s +-%.0f%%", number, fmin(half * 100, 99));
    else
        snprintf(text, PRESTO_TEXT_BYTES, "%.30s", number);
    return text;
}

/* At most 7 characters: "0.42 s", "12.3 s", "3m20s", "2h05m". */
static char *format_time(double seconds, char text[PRESTO_TEXT_BYTES]) {
    if (!isfinite(seconds) || seconds < 0 || seconds > 3.6e7)
        snprintf(text, PRESTO_TEXT_BYTES, "-");
    else if (seconds < 99.5)
        return presto_format_seconds(seconds, text);
    else if (seconds < 3570)
        snprintf(text, PRESTO_TEXT_BYTES, "%dm%02ds", (int)(lround(seconds) / 60),
                 (int)(lround(seconds) % 60));
    else
        snprintf(text, PRESTO_TEXT_BYTES, "%dh%02dm", (int)(lround(seconds / 60) / 60),
                 (int)(lround(seconds / 60) % 60));
    return text;
}

static const char *codec_of(const presto_strategy *strategy) {
    return strategy->codec != NULL ? strategy->codec : "-";
}

typedef struct widths {
    size_t split, codec;
    bool has_predictions; /* the sweep predicts */
    bool has_files;       /* datasets have not as many shards as threads */
} widths;

static widths find_widths(const presto_sweep *sweep) {
    bool has_files = table_has_own_files(sweep);
    size_t least_split = has_files ? LEAST_SPLIT_BESIDE_FILES : LEAST_SPLIT;
    widths w = {least_split, LEAST_CODEC, false, has_files};
    for (size_t i = 0; i < presto_sweep_result_count(sweep); i++) {
        const presto_strategy_result *result = presto_sweep_result(sweep, i);
        w.has_predictions = w.has_predictions || isfinite(result->prediction.cold_samples_per_s);
        const presto_strategy *strategy = &presto_sweep_result(sweep, i)->strategy;
        size_t split = strlen(strategy->stored);
        size_t codec = strlen(codec_of(strategy));
        w.split = split > w.split ? split : w.split;
        w.codec = codec > w.codec ? codec : w.codec;
    }
    unsigned columns = cli_terminal_columns(stdout);
    size_t room = (columns > LEAST_COLUMNS ? columns : LEAST_COLUMNS) - FIXED_COLUMNS -
                  (w.has_files ? FILES_COLUMNS : 0);
    if (w.split + w.codec > room) {
        size_t least = w.split < least_split ? w.split : least_split;
        w.codec = w.codec < room - least ? w.codec : room - least;
        w.split = room - w.codec;
    }
    return w;
}

static void print_name(const char *name, size_t width) {
    size_t length = strlen(name);
    if (length > width)
        cli_put("%.*s~ ", (int)width - 1, name);
    else
        cli_put("%-*s ", (int)width, name);
}

/* Predicted, measured, and the error of the prediction: 26 characters. */
static void print_prediction(const presto_strategy_result *result) {
    char predicted[PRESTO_TEXT_BYTES], measured[PRESTO_TEXT_BYTES], error[PRESTO_TEXT_BYTES];
    const presto_sweep_prediction *said = &result->prediction;
    if (isfinite(said->cold_samples_per_s))
        presto_format_number(said->cold_samples_per_s, predicted);
    else
        snprintf(predicted, sizeof predicted, "-");
    if (result->is_predicted)
        snprintf(measured, sizeof measured, "-");
    else
        format_rate(&result->cold.samples_per_s, measured);
    if (isfinite(said->cold_error))
        snprintf(error, sizeof error, "%+.0f%%", fmin(said->cold_error * 100, 999));
    else
        snprintf(error, sizeof error, "-");
    printf("%7s %12s %5s ", predicted, measured, error);
}

static void print_files(const presto_strategy *strategy) {
    if (strategy->codec != NULL)
        printf("%5zu ", strategy->shards);
    else
        printf("%5s ", "-");
}

static void print_row(const presto_strategy_result *result, bool best, const widths *w) {
    char storage[PRESTO_TEXT_BYTES], time[PRESTO_TEXT_BYTES], cold[PRESTO_TEXT_BYTES];
    char cached[PRESTO_TEXT_BYTES];
    fputs(best ? "* " : result->is_equal ? "= " : "  ", stdout);
    print_name(result->strategy.stored, w->split);
    print_name(codec_of(&result->strategy), w->codec);
    bool stored = result->strategy.codec != NULL;
    if (w->has_files)
        print_files(&result->strategy);
    printf("%3u %7s %7s ", result->strategy.threads,
           presto_format_bytes(result->total_stored_bytes, storage),
           stored ? format_time(result->total_preparation_s, time) : "-");
    if (w->has_predictions)
        print_prediction(result);
    else
        printf("%12s %12s ", format_rate(&result->cold.samples_per_s, cold),
               format_rate(&result->cached.samples_per_s, cached));
    if (isnan(result->score))
        puts("    -"); /* exceeds a limit */
    else if (isfinite(result->cost))
        printf("%5.3g\n", result->cost);
    else
        printf("%5.2f\n", result->score);
}

typedef struct ranked {
    double score;
    size_t i;
    bool best; /* is listed first among equals */
} ranked;

static int by_score(const void *left, const void *right) {
    const ranked *a = left;
    const ranked *b = right;
    if (a->best != b->best)
        return a->best ? -1 : 1;
    if (a->score < b->score || a->score > b->score)
        return a->score > b->score ? -1 : 1;
    return a->i < b->i ? -1 : 1;
}

/* A sweep that ended early has strategies that it did not come to. */
static bool has_failed(const presto_strategy_result *result) {
    return result->failed && result->failure.status != PRESTO_ERR_STOPPED;
}

/* The next failed strategy from `i` on; the number of results if there is none. */
static size_t next_failed(const presto_sweep *sweep, size_t i) {
    while (i < presto_sweep_result_count(sweep) && !has_failed(presto_sweep_result(sweep, i)))
        i++;
    return i;
}

/* Prints the names of strategies that failed alike, one after the other. Returns the next one. */
static size_t print_failed_alike(const presto_sweep *sweep, size_t i, const char *why) {
    bool has_files = table_has_own_files(sweep);
    for (size_t shown = 0, count = presto_sweep_result_count(sweep);;) {
        char text[FAILURE_BYTES] = "", name[TABLE_NAME_BYTES];
        size_t next = next_failed(sweep, i + 1);
        if (next < count)
            presto_error_format(&presto_sweep_result(sweep, next)->failure, text, sizeof text);
        bool is_last = strcmp(text, why) != 0;
        const presto_strategy *strategy = &presto_sweep_result(sweep, i)->strategy;
        if (shown++ < SHOWN_FAILED)
            cli_put("  %s%s\n", table_strategy(strategy, has_files, name), is_last ? ":" : ",");
        else if (is_last)
            printf("  and %zu more:\n", shown - SHOWN_FAILED);
        if (is_last)
            return next;
        i = next;
    }
}

static void print_failures(const presto_sweep *sweep) {
    size_t count = presto_sweep_result_count(sweep), i = next_failed(sweep, 0);
    if (i < count)
        puts("\nFailed:");
    while (i < count) {
        char why[FAILURE_BYTES];
        presto_error_format(&presto_sweep_result(sweep, i)->failure, why, sizeof why);
        i = print_failed_alike(sweep, i, why);
        fputs("    ", stdout);
        cli_print_wrapped(why, 4, 4);
    }
}

static const char *legend(const presto_sweep *sweep, unsigned runs) {
    bool reaches = presto_sweep_get_verdict(sweep) != PRESTO_SWEEP_MISSES &&
                   presto_sweep_get_limits(sweep)->target_samples_per_s > 0;
    if (runs == 1)
        return reaches ? "; one run tells nothing of the spread; =: reaches the target."
                       : "; one run tells nothing of the spread.";
    if (reaches)
        return "; +- is half the spread of the runs; =: reaches the target.";
    return "; +- is half the spread of the runs; =: equal to the best as far as the runs tell.";
}

typedef struct tally {
    size_t measured, predicted, failed, open;
} tally;

static tally count_results(const presto_sweep *sweep) {
    tally counts = {0, 0, 0, 0};
    for (size_t i = 0; i < presto_sweep_result_count(sweep); i++) {
        const presto_strategy_result *result = presto_sweep_result(sweep, i);
        counts.failed += has_failed(result);
        counts.open += result->failed && !has_failed(result);
        counts.predicted += !result->failed && result->is_predicted;
        counts.measured += !result->failed && !result->is_predicted;
    }
    return counts;
}

/* " (52 predicted, 2 failed)" */
static char *format_others(const tally *counts, char text[96]) {
    const struct {
        size_t count;
        const char *what;
    } others[] = {{counts->predicted, "predicted"},
                  {counts->failed, "failed"},
                  {counts->open, "not looked at"}};
    size_t used = 0;
    text[0] = '\0';
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        if (others[i].count == 0)
            continue;
        int more = snprintf(text + used, 96 - used, "%s%zu %s", used > 0 ? ", " : " (",
                            others[i].count, others[i].what);
        used += more > 0 ? (size_t)more : 0;
    }
    if (used > 0)
        snprintf(text + used, 96 - used, ")");
    return text;
}

static void print_heading(const presto_sweep *sweep, unsigned runs, const widths *w) {
    const presto_sweep_facts *facts = presto_sweep_get_facts(sweep);
    char text[512], samples[PRESTO_TEXT_BYTES], all[PRESTO_TEXT_BYTES], time[PRESTO_TEXT_BYTES];
    char each[PRESTO_TEXT_BYTES];
    size_t count = presto_sweep_result_count(sweep);
    const tally counts = count_results(sweep);
    char others[96];
    snprintf(text, sizeof text,
             "%zu of %zu %s measured%s on %s of %s, up to %s each, in %s. Storage and offline time "
             "are for all samples%s",
             counts.measured, count, count == 1 ? "strategy" : "strategies",
             format_others(&counts, others), presto_format_count(facts->samples, samples),
             presto_format_things(facts->source_samples, "sample", all),
             presto_format_things(runs, "run", each), presto_format_seconds(facts->elapsed_s, time),
             legend(sweep, runs));
    cli_print_wrapped(text, 0, 0);
    printf("\n%*s %s\n", (int)(w->split + w->codec + (w->has_files ? FILES_COLUMNS : 0) + 29), "",
           w->has_predictions ? "cold samples per second" : "samples per second");
    fputs("  ", stdout);
    print_name("stored", w->split);
    print_name("codec", w->codec);
    bool by_cost = presto_sweep_get_prices(sweep)->epochs > 0;
    if (w->has_files)
        printf("%5s ", "files");
    printf("%3s %7s %7s ", "thr", "storage", "offline");
    if (w->has_predictions)
        printf("%7s %12s %5s ", "predict", "measured", "error");
    else
        printf("%12s %12s ", "cold", "cached");
    printf("%5s\n", by_cost ? "cost" : "score");
}

/* ---- errors of predictions ---- */

static int by_value(const void *left, const void *right) {
    const double *a = left, *b = right;
    return (*a > *b) - (*a < *b);
}

/* "half are off by 3 % or less, the worst by 9 %"; sorts the errors. */
static char *format_errors(double *errors, size_t count, char text[96]) {
    qsort(errors, count, sizeof *errors, by_value);
    double median = (errors[(count - 1) / 2] + errors[count / 2]) / 2;
    snprintf(text, 96, "half are off by %.0f %% or less, the worst by %.0f %%",
             fmin(100 * median, 999), fmin(100 * errors[count - 1], 999));
    return text;
}

/* What was predicted before it was run. */
static void print_errors(const presto_sweep *sweep) {
    size_t count = presto_sweep_result_count(sweep), cold = 0, cached = 0;
    double *errors = calloc(count + 1, 2 * sizeof *errors);
    if (errors == NULL)
        return; /* the table has the errors */
    double *others = errors + count;
    for (size_t i = 0; i < count; i++) {
        const presto_strategy_result *result = presto_sweep_result(sweep, i);
        if (result->failed || result->is_predicted)
            continue;
        if (isfinite(result->prediction.cold_error))
            errors[cold++] = fabs(result->prediction.cold_error);
        if (isfinite(result->prediction.cached_error))
            others[cached++] = fabs(result->prediction.cached_error);
    }
    char line[256], text[2][96];
    if (cold > 0 && cached > 0) {
        snprintf(line, sizeof line, "%zu predicted, then run. Cold, %s; cached, %s.", cold,
                 format_errors(errors, cold, text[0]), format_errors(others, cached, text[1]));
        cli_print_wrapped(line, 0, 0);
    }
    free(errors);
}

void table_print(const presto_sweep *sweep, unsigned runs) {
    size_t count = presto_sweep_result_count(sweep);
    size_t best = presto_sweep_best(sweep);
    widths w = find_widths(sweep);
    ranked *order = calloc(count > 0 ? count : 1, sizeof *order);
    if (order == NULL) {
        cli_message("out of memory");
        return;
    }
    size_t measured = 0;
    for (size_t i = 0; i < count; i++) {
        const presto_strategy_result *result = presto_sweep_result(sweep, i);
        double score = isfinite(result->cost) ? -result->cost : result->score;
        ranked entry = {isnan(result->score) ? -INFINITY : score, i, i == best};
        if (!result->failed)
            order[measured++] = entry;
    }
    qsort(order, measured, sizeof *order, by_score);
    print_heading(sweep, runs, &w);
    size_t guesses = 0;
    for (size_t i = 0; i < measured; i++) {
        const presto_strategy_result *result = presto_sweep_result(sweep, order[i].i);
        guesses += result->is_predicted;
        if (!result->is_predicted || guesses <= SHOWN_PREDICTED || order[i].best)
            print_row(result, order[i].best, &w);
    }
    free(order);
    if (guesses > SHOWN_PREDICTED)
        printf("  ... and %zu more that were only predicted\n", guesses - SHOWN_PREDICTED);
    print_errors(sweep);
    print_failures(sweep);
}
