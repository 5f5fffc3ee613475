/* SPDX-License-Identifier: Apache-2.0 */
/* Below the table: what is recommended and why, what else there is, and what to run next. */
#include "table.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <unistd.h>

#include "../cli/cli.h"

bool table_has_own_files(const presto_sweep *sweep) {
    for (size_t i = 0; i < presto_sweep_result_count(sweep); i++) {
        const presto_strategy *a = &presto_sweep_result(sweep, i)->strategy;
        if (a->codec != NULL && a->shards != (a->threads > 0 ? a->threads : 1))
            return true;
    }
    return false;
}

char *table_strategy(const presto_strategy *strategy, bool has_files, char text[TABLE_NAME_BYTES]) {
    char files[PRESTO_TEXT_BYTES] = "", threads[PRESTO_TEXT_BYTES];
    if (has_files && strategy->codec != NULL)
        presto_format_things(strategy->shards, "file", files);
    snprintf(text, TABLE_NAME_BYTES, "%.140s, %.60s, %.16s%s%.16s", strategy->stored,
             strategy->codec != NULL ? strategy->codec : "-", files, files[0] != '\0' ? ", " : "",
             presto_format_things(strategy->threads, "thread", threads));
    return text;
}

/* What a ratio is called: above 1, below it, and about it. */
typedef struct phrases {
    const char *more, *less, *same;
} phrases;

/* "36 % slower", "2.15 times as much", "as much". */
static char *format_ratio(double ratio, phrases called, char text[PRESTO_TEXT_BYTES]) {
    char factor[PRESTO_TEXT_BYTES];
    double percent = fabs(100 * (ratio - 1));
    if (!isfinite(ratio) || percent < 0.5)
        snprintf(text, PRESTO_TEXT_BYTES, "%.24s", called.same);
    else if (ratio >= 2)
        snprintf(text, PRESTO_TEXT_BYTES, "%.12s times %.16s", presto_format_number(ratio, factor),
                 called.same);
    else
        snprintf(text, PRESTO_TEXT_BYTES, "%.0f %% %.16s", percent,
                 ratio > 1 ? called.more : called.less);
    return text;
}

static const phrases sizes = {"more", "less", "as much"};

/* "nothing", "12 % more", "3.5 MB": the source is there anyway. */
static char *format_storage(const presto_strategy_result *next, const presto_strategy_result *best,
                            char text[PRESTO_TEXT_BYTES]) {
    double bytes = next->total_stored_bytes;
    if (next->strategy.codec == NULL)
        snprintf(text, PRESTO_TEXT_BYTES, "nothing");
    else if (best->strategy.codec == NULL)
        presto_format_bytes(bytes, text);
    else
        format_ratio(bytes / best->total_stored_bytes, sizes, text);
    return text;
}

/* ", costs 12 % more"; "" without prices. */
static char *format_cost(double cost, double best, char text[64]) {
    char ratio[PRESTO_TEXT_BYTES];
    text[0] = '\0';
    if (isfinite(cost) && best > 0)
        snprintf(text, 64, ", costs %s", format_ratio(cost / best, sizes, ratio));
    else if (isfinite(cost) && cost > 0)
        snprintf(text, 64, ", costs %.3g instead of nothing", cost);
    else if (isfinite(cost))
        snprintf(text, 64, ", costs nothing either");
    return text;
}

/* What else there is, and what would be gained and lost by it. */
static void print_runners_up(const presto_sweep *sweep) {
    static const phrases rates = {"faster", "slower", "as fast"};
    bool has_files = table_has_own_files(sweep);
    const presto_strategy_result *best = presto_sweep_result(sweep, presto_sweep_best(sweep));
    for (size_t i = 0, at; i < 3 && (at = presto_sweep_runner_up(sweep, i)) != SIZE_MAX; i++) {
        const presto_strategy_result *next = presto_sweep_result(sweep, at);
        double faster = next->cold.samples_per_s.median / best->cold.samples_per_s.median;
        char line[512], name[TABLE_NAME_BYTES], rate[PRESTO_TEXT_BYTES];
        char size[PRESTO_TEXT_BYTES], cost[64];
        snprintf(line, sizeof line, "%s: %s, stores %s%s",
                 table_strategy(&next->strategy, has_files, name),
                 format_ratio(faster, rates, rate), format_storage(next, best, size),
                 format_cost(next->cost, best->cost, cost));
        if (i == 0)
            puts("\nRunners-up:");
        fputs("  ", stdout);
        cli_print_wrapped(line, 2, 2);
    }
}

/* Is all to be said of it that no strategy can? That the nearest one is another is of interest only
 * where there is no miss without the question. */
static bool is_only_missed(const presto_sweep *sweep, const presto_sweep_what_if *what_if) {
    return what_if->is_missed &&
           (!what_if->is_other || presto_sweep_get_verdict(sweep) == PRESTO_SWEEP_MISSES);
}

/* All that no strategy can, in one line. Returns the bytes of the line; 0: there is nothing. */
static size_t join_missed(const presto_sweep *sweep, char *line, size_t room) {
    static const size_t named_most = 3;
    const presto_sweep_what_if *what_if;
    size_t used = 0, count = 0;
    for (size_t i = 0; (what_if = presto_sweep_get_what_if(sweep, i)) != NULL; i++) {
        if (!is_only_missed(sweep, what_if) || ++count > named_most)
            continue;
        int bytes =
            snprintf(line + used, room - used, "%s%s", used > 0 ? "; " : "", what_if->condition);
        used += (size_t)bytes < room - used ? (size_t)bytes : room - used - 1;
    }
    if (count > named_most)
        used += (size_t)snprintf(line + used, room - used, "; and %zu more", count - named_most);
    if (count > 0)
        used += (size_t)snprintf(line + used, room - used, ": no strategy can");
    return used;
}

/* What would change the answer; what changes nothing is in results.json. */
static void print_what_ifs(const presto_sweep *sweep) {
    const presto_sweep_what_if *what_if;
    bool first = true, has_files = table_has_own_files(sweep);
    char line[1024];
    for (size_t i = 0; (what_if = presto_sweep_get_what_if(sweep, i)) != NULL; i++) {
        const presto_strategy *other = &presto_sweep_result(sweep, what_if->result)->strategy;
        char name[TABLE_NAME_BYTES];
        if (!what_if->is_other || is_only_missed(sweep, what_if))
            continue;
        snprintf(line, sizeof line, "%s: %s%s", what_if->condition,
                 what_if->is_missed ? "no strategy can, the nearest is " : "",
                 table_strategy(other, has_files, name));
        if (first)
            puts("\nWhat would change it:");
        first = false;
        fputs("  ", stdout);
        cli_print_wrapped(line, 2, 2);
    }
    if (join_missed(sweep, line, sizeof line) == 0)
        return;
    if (first)
        puts("\nWhat would not change it:");
    fputs("  ", stdout);
    cli_print_wrapped(line, 2, 2);
}

void table_print_recommendation(const presto_sweep *sweep, const char *results_dir) {
    const presto_strategy *best = &presto_sweep_result(sweep, presto_sweep_best(sweep))->strategy;
    char text[PRESTO_TEXT_BYTES];
    printf("\n* Recommended: ");
    if (best->codec == NULL)
        fputs("read the source as it is", stdout);
    else
        cli_put("store %s, codec %s, %s", best->stored, best->codec,
                presto_format_things(best->shards, "shard", text));
    printf(", %s\n", presto_format_things(best->threads, "thread", text));
    fputs("  ", stdout);
    cli_print_wrapped(presto_sweep_reason(sweep), 2, 2);
    for (size_t i = 0; presto_sweep_note(sweep, i) != NULL; i++) {
        fputs("  Note:", stdout);
        cli_print_wrapped(presto_sweep_note(sweep, i), 7, 2);
    }
    print_runners_up(sweep);
    print_what_ifs(sweep);
    puts("\nNext:");
    if (presto_sweep_write_command(sweep) != NULL)
        cli_put("  %s\n", presto_sweep_write_command(sweep));
    cli_put("  %s\n", presto_sweep_load_command(sweep));
    puts("\nTo train on it, --format npy instead, on a pipe into the trainer.");
    if (results_dir == NULL)
        return;
    char report[PATH_MAX]; /* not every build makes one */
    snprintf(report, sizeof report, "%s/report.html", results_dir);
    putchar('\n');
    cli_put("In %s: %sresults.csv, results.json, strategy.yaml\n", results_dir,
            access(report, F_OK) == 0 ? "report.html, " : "");
}
