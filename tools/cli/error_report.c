/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Each line is written at once, by one write() in append mode. So lines survive if the program is
 * killed, lines of several ranks that share the file do not mix, and a run that resumes another one
 * adds to its report.
 *
 * A shard that was cut is one line where its samples follow each other, but a line a sample if they
 * are shuffled. So the lines have a limit; what comes behind it is counted.
 */
#include "error_report.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli.h"
#include "named_output.h"

enum {
    MOST_TOLD = 20,    /* lines on the terminal */
    MOST_LINES = 10000 /* in the file, before the rest is counted */
};

#define NO_SAMPLE UINT64_MAX

int error_report_open(error_report *report, const char *path) {
    *report = (error_report){.path = path, .fd = -1};
    if (path == NULL)
        return CLI_DONE;
    report->fd = output_open(path, O_CREAT | O_APPEND);
    return report->fd >= 0 ? CLI_DONE : CLI_FAILED;
}

static json_t *number_json(uint64_t number, uint64_t none) {
    return number == none ? json_null() : json_integer((json_int_t)number);
}

/* The line for those samples of `run` that were not reported yet, with its newline, on the heap;
 * NULL without memory. */
static char *format_line(const error_run *run, size_t *bytes_out) {
    const presto_error *err = &run->error;
    uint64_t record = err->record == PRESTO_NO_RECORD ? err->record : err->record + run->told;
    uint64_t first = run->first + run->told, count = run->count - run->told;
    json_t *object = json_pack(
        "{s:o, s:o, s:o, s:o, s:o, s:o, s:s, s:o}", "file",
        err->file[0] == '\0' ? json_null() : cli_json_text(err->file), "record",
        number_json(record, PRESTO_NO_RECORD), "byte", number_json(err->offset, PRESTO_NO_OFFSET),
        "sample", number_json(first, NO_SAMPLE), "samples", json_integer((json_int_t)count),
        "epoch", json_integer((json_int_t)run->epoch), "status", presto_status_name(err->status),
        "reason", cli_json_text(err->message));
    char *text = object == NULL ? NULL : cli_json_dump(object, JSON_COMPACT);
    json_decref(object);
    if (text == NULL)
        return NULL;
    *bytes_out = strlen(text) + 1;
    text[*bytes_out - 1] = '\n'; /* in place of the end */
    return text;
}

static void tell_people(error_report *report) {
    const error_run *run = &report->run;
    char text[PRESTO_ERROR_FILE_BYTES + PRESTO_ERROR_MESSAGE_BYTES + 96];
    if (report->told++ >= MOST_TOLD) {
        if (report->told == MOST_TOLD + 1)
            cli_message("more are skipped; --error-report FILE lists them all");
        return;
    }
    uint64_t first = run->first + run->told, count = run->count - run->told;
    presto_error error = run->error;
    if (error.record != PRESTO_NO_RECORD)
        error.record += run->told;
    presto_error_format(&error, text, sizeof text);
    if (count == 1)
        cli_message("skipped sample %ju: %s", (uintmax_t)first, text);
    else
        cli_message("skipped samples %ju to %ju, alike: %s", (uintmax_t)first,
                    (uintmax_t)(first + count - 1), text);
}

static void write_line(error_report *report, char *line, size_t bytes) {
    int reason = line == NULL ? ENOMEM : output_write(report->fd, presto_span_of(line, bytes));
    if (report->reason == 0)
        report->reason = reason;
    free(line);
}

static void count_on(error_report *report) {
    uint64_t count = report->unlisted - report->unlisted_told;
    size_t bytes = 0;
    if (count == 0)
        return;
    error_run rest = {.epoch = report->run.epoch, .first = NO_SAMPLE, .count = count};
    (void)presto_fail(&rest.error, report->run.error.status, PRESTO_NO_OFFSET,
                      "not listed: there are more than %d lines", MOST_LINES);
    char *line = format_line(&rest, &bytes);
    write_line(report, line, bytes);
    report->unlisted_told = report->unlisted;
}

/* Tell what of the run was not told yet. */
static void tell_run(error_report *report) {
    error_run *run = &report->run;
    size_t bytes = 0;
    if (run->told == run->count)
        return;
    if (report->path == NULL) {
        tell_people(report);
    } else if (report->lines < MOST_LINES) {
        char *line = format_line(run, &bytes);
        write_line(report, line, bytes);
        report->lines++;
    } else {
        report->unlisted += run->count - run->told;
        if (report->unlisted - report->unlisted_told >= report->unlisted_told)
            count_on(report);
    }
    run->told = run->count;
}

void error_report_flush(error_report *report) {
    tell_run(report);
    count_on(report);
}

/* Does it continue the run, for the same reason? */
static bool continues(const error_run *run, uint64_t epoch, uint64_t sample,
                      const presto_error *err) {
    const presto_error *same = &run->error;
    uint64_t record =
        same->record == PRESTO_NO_RECORD ? PRESTO_NO_RECORD : same->record + run->count;
    return run->count > 0 && run->epoch == epoch && sample == run->first + run->count &&
           err->status == same->status && err->offset == same->offset && err->record == record &&
           strcmp(err->message, same->message) == 0 && strcmp(err->file, same->file) == 0;
}

void error_report_add(void *user, uint64_t epoch, uint64_t sample, const presto_error *err) {
    error_report *report = user;
    error_run *run = &report->run;
    if (continues(run, epoch, sample, err)) {
        run->count++;
    } else {
        tell_run(report);
        *run = (error_run){.epoch = epoch, .first = sample, .count = 1, .error = *err};
    }
    /* The first one at once, then as many as before: a run of a billion samples gives thirty
     * lines. */
    if (run->count - run->told >= run->told)
        tell_run(report);
}

int error_report_close(error_report *report, int code) {
    error_report_flush(report);
    if (report->fd >= 0 && close(report->fd) != 0 && report->reason == 0)
        report->reason = errno;
    report->fd = -1;
    if (report->reason == 0)
        return code;
    cli_message("%s: cannot write: %s", report->path, strerror(report->reason));
    return code == CLI_DONE ? CLI_FAILED : code;
}
