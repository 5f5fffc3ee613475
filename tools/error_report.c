/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Each line goes out at once and by one write() in append mode: what was said stays said if the
 * program is killed, lines of several ranks sharing the file do not mix, and a run that resumes
 * another adds to its report.
 */
#include "error_report.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli.h"

enum { MOST_TOLD = 20 }; /* on the terminal */

int error_report_open(error_report *report, const char *path) {
    *report = (error_report){.path = path, .fd = -1};
    if (path == NULL)
        return CLI_DONE;
    report->fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    if (report->fd >= 0)
        return CLI_DONE;
    cli_message("%s: cannot open: %s", path, strerror(errno));
    return CLI_FAILED;
}

static json_t *number_json(uint64_t number, uint64_t none) {
    return number == none ? json_null() : json_integer((json_int_t)number);
}

/* The line with its newline, on the heap; NULL without memory. */
static char *format_line(uint64_t epoch, uint64_t sample, const presto_error *err,
                         size_t *bytes_out) {
    json_t *object =
        json_pack("{s:o, s:o, s:o, s:o, s:o, s:s, s:o}", "file",
                  err->file[0] == '\0' ? json_null() : cli_json_text(err->file), "record",
                  number_json(err->record, PRESTO_NO_RECORD), "byte",
                  number_json(err->offset, PRESTO_NO_OFFSET), "sample",
                  json_integer((json_int_t)sample), "epoch", json_integer((json_int_t)epoch),
                  "status", presto_status_name(err->status), "reason", cli_json_text(err->message));
    char *text = object == NULL ? NULL : cli_json_dump(object, JSON_COMPACT);
    json_decref(object);
    if (text == NULL)
        return NULL;
    *bytes_out = strlen(text) + 1;
    text[*bytes_out - 1] = '\n'; /* in place of the end */
    return text;
}

void error_report_add(void *user, uint64_t epoch, uint64_t sample, const presto_error *err) {
    error_report *report = user;
    if (report->path == NULL) {
        if (report->told++ >= MOST_TOLD) {
            if (report->told == MOST_TOLD + 1)
                cli_message("more are skipped; --error-report FILE lists them all");
            return;
        }
        char text[PRESTO_ERROR_FILE_BYTES + PRESTO_ERROR_MESSAGE_BYTES + 96];
        presto_error_format(err, text, sizeof text);
        cli_message("skipped sample %ju: %s", (uintmax_t)sample, text);
        return;
    }
    size_t bytes = 0;
    char *line = format_line(epoch, sample, err, &bytes);
    if (line == NULL && report->reason == 0)
        report->reason = ENOMEM;
    for (size_t done = 0; line != NULL && done < bytes;) {
        ssize_t wrote = write(report->fd, line + done, bytes - done);
        if (wrote < 0 && errno == EINTR)
            continue;
        if (wrote < 0) {
            report->reason = report->reason == 0 ? errno : report->reason;
            break;
        }
        done += (size_t)wrote;
    }
    free(line);
}

int error_report_close(error_report *report, int code) {
    if (report->fd >= 0 && close(report->fd) != 0 && report->reason == 0)
        report->reason = errno;
    report->fd = -1;
    if (report->reason == 0)
        return code;
    cli_message("%s: cannot write: %s", report->path, strerror(report->reason));
    return code == CLI_DONE ? CLI_FAILED : code;
}
