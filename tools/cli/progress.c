/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The progress line: one line on the terminal behind stderr, redrawn in place, at most ten times a
 * second, never wider than the terminal. Without a terminal, or with --quiet, nothing is printed.
 */
#define _DEFAULT_SOURCE /* struct winsize */

#include "cli.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <presto/text.h>

#include "terminal.h"

enum { REDRAW_NS = 100000000, LINE_BYTES = 512, BAR_CELLS = 20 };

static bool line_is_drawn;

unsigned cli_terminal_columns(FILE *stream) {
    struct winsize size;
    if (ioctl(fileno(stream), TIOCGWINSZ, &size) != 0 || size.ws_col == 0)
        return 80;
    return size.ws_col;
}

void cli_progress_hide(void) {
    if (!line_is_drawn)
        return;
    fputs("\r\033[K", stderr);
    line_is_drawn = false;
}

void cli_progress_start(cli_progress *progress, bool quiet) {
    memset(progress, 0, sizeof *progress);
    progress->shown = !quiet && isatty(STDERR_FILENO);
    progress->started_ns = cli_now_ns();
    progress->seen_ns = progress->started_ns;
}

/* Exponential smoothing over about three seconds, so that the ETA follows but does not jump. */
static void update_rate(cli_progress *progress, uint64_t done, uint64_t now_ns) {
    double passed_s = (double)(now_ns - progress->seen_ns) / 1e9;
    if (passed_s <= 0)
        return;
    double rate = done >= progress->seen ? (double)(done - progress->seen) / passed_s : 0;
    double weight = progress->seen == 0 ? 1 : 1 - exp(-passed_s / 3);
    progress->rate += weight * (rate - progress->rate);
    progress->seen = done;
    progress->seen_ns = now_ns;
}

static void format_eta(double seconds, char text[PRESTO_TEXT_BYTES]) {
    if (!isfinite(seconds) || seconds > 359999) {
        snprintf(text, PRESTO_TEXT_BYTES, "-:--");
        return;
    }
    unsigned whole = (unsigned)lround(seconds);
    if (whole >= 3600)
        snprintf(text, PRESTO_TEXT_BYTES, "%u:%02u:%02u", whole / 3600, whole / 60 % 60,
                 whole % 60);
    else
        snprintf(text, PRESTO_TEXT_BYTES, "%u:%02u", whole / 60, whole % 60);
}

static void format_bar(const cli_progress_state *state, char text[BAR_CELLS + 16]) {
    double part = (double)state->done / (double)state->total;
    part = part > 1 ? 1 : part;
    size_t filled = (size_t)(part * BAR_CELLS);
    text[0] = '[';
    memset(text + 1, '#', filled);
    memset(text + 1 + filled, '.', BAR_CELLS - filled);
    snprintf(text + 1 + BAR_CELLS, 15, "] %3d %%  ", (int)(part * 100));
}

bool cli_progress_is_due(const cli_progress *progress) {
    return progress->shown && cli_now_ns() - progress->drawn_ns >= REDRAW_NS;
}

static void format_line(const cli_progress_state *state, double rate, double elapsed_s,
                        char line[LINE_BYTES]) {
    char count[PRESTO_TEXT_BYTES], speed[PRESTO_TEXT_BYTES], bytes[PRESTO_TEXT_BYTES],
        time[PRESTO_TEXT_BYTES], total[PRESTO_TEXT_BYTES], bar[BAR_CELLS + 16] = "";
    presto_format_count(state->done, count);
    presto_format_number(rate, speed);
    presto_format_bytes((double)state->bytes, bytes);
    if (state->bytes == 0)
        bytes[0] = '\0'; /* work that has no bytes to speak of */
    const char *gap = state->bytes == 0 ? "" : "  ";
    const char *note = state->note != NULL ? state->note : "";
    presto_format_count(state->total, total);
    if (state->total > 0)
        format_bar(state, bar);
    double left = state->total > state->done ? (double)(state->total - state->done) : 0;
    format_eta(state->total > 0 && !state->is_uneven ? left / rate : elapsed_s, time);
    if (state->is_uneven && state->total == 0)
        snprintf(line, LINE_BYTES, "%s  %s", time, note);
    else if (state->is_uneven)
        snprintf(line, LINE_BYTES, "%s%s/%s %s  %s  %s", bar, count, total, state->unit, time,
                 note);
    else if (state->total > 0)
        snprintf(line, LINE_BYTES, "%s%s/%s %s  %s/s  ETA %s%s%s  %s", bar, count, total,
                 state->unit, speed, time, gap, bytes, note);
    else
        snprintf(line, LINE_BYTES, "%s %s  %s/s%s%s  %s  %s", count, state->unit, speed, gap, bytes,
                 time, note);
}

void cli_progress_show(cli_progress *progress, const cli_progress_state *state) {
    uint64_t now_ns = cli_now_ns();
    if (!cli_progress_is_due(progress))
        return;
    progress->drawn_ns = now_ns;
    update_rate(progress, state->done, now_ns);
    char line[LINE_BYTES], shown[LINE_BYTES * PRESTO_SHOWN_BYTES];
    format_line(state, progress->rate, (double)(now_ns - progress->started_ns) / 1e9, line);
    /* One column less than there are: a full last column wraps on some terminals. */
    size_t columns = cli_terminal_columns(stderr) - 1;
    if (columns < sizeof line)
        line[columns] = '\0';
    presto_text_show(presto_span_of_text(line), shown, sizeof shown);
    fprintf(stderr, "\r%s\033[K", shown);
    line_is_drawn = true;
}

void cli_progress_end(cli_progress *progress) {
    if (progress->shown)
        cli_progress_hide();
}
