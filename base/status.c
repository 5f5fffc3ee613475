/* SPDX-License-Identifier: Apache-2.0 */
/* Status texts, and the error record: functions add to it from the inside out, the top formats
 * it once. */
#include <presto/status.h>

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <presto/text.h>

#include "paths_internal.h"

const char *presto_status_name(presto_status status) {
    switch (status) {
#define PRESTO_STATUS_NAME(name, value, text)                                                      \
    case name:                                                                                     \
        return #name;
        PRESTO_STATUS_LIST(PRESTO_STATUS_NAME)
#undef PRESTO_STATUS_NAME
    }
    return "PRESTO_ERR_?";
}

static void error_init(presto_error *err, presto_status status, uint64_t offset) {
    err->status = status;
    err->sys_errno = 0;
    err->offset = offset;
    err->record = PRESTO_NO_RECORD;
    err->file[0] = '\0';
    err->message[0] = '\0';
}

/* Messages quote names from outside, so they are stored in printable form. */
static void set_message(presto_error *err, const char *format, va_list args) PRESTO_PRINTF(2, 0);

static void set_message(presto_error *err, const char *format, va_list args) {
    char text[sizeof err->message];
    int wanted = vsnprintf(text, sizeof text, format, args);
    presto_span rest = presto_span_of_text(text);
    /* Drop the beginning of a character that was cut. */
    if (wanted >= (int)sizeof text)
        for (size_t tail = 1; tail <= 3 && tail <= rest.bytes; tail++)
            if (rest.data[rest.bytes - tail] >= 0xc0 &&
                presto_utf8_bytes(presto_span_of(rest.data + rest.bytes - tail, tail)) == 0)
                rest.bytes -= tail;
    presto_text_show(rest, err->message, sizeof err->message);
}

void presto_error_set(presto_error *err, presto_status status, uint64_t offset, const char *format,
                      ...) {
    if (err == NULL)
        return;
    error_init(err, status, offset);
    va_list args;
    va_start(args, format);
    set_message(err, format, args);
    va_end(args);
}

void presto_error_set_errno(presto_error *err, int sys_errno, const char *file, const char *format,
                            ...) {
    if (err == NULL)
        return;
    int errno_before = errno;
    error_init(err, presto_status_of_errno(sys_errno), PRESTO_NO_OFFSET);
    err->sys_errno = sys_errno;
    presto_error_set_file(err, file);
    va_list args;
    va_start(args, format);
    set_message(err, format, args);
    va_end(args);
    size_t used = strlen(err->message);
    char text[128];
    if (strerror_r(sys_errno, text, sizeof text) != 0)
        snprintf(text, sizeof text, "error %d", sys_errno);
    const char *hint = file != NULL && (sys_errno == ENOENT || sys_errno == ENOTDIR)
                           ? presto__path_hint(file)
                           : NULL;
    snprintf(err->message + used, sizeof err->message - used, ": %s%s%s", text,
             hint == NULL ? "" : "; ", hint == NULL ? "" : hint);
    errno = errno_before;
}

void presto_error_set_file(presto_error *err, const char *file) {
    if (err == NULL || file == NULL || err->file[0] != '\0')
        return;
    snprintf(err->file, sizeof err->file, "%s", file);
}

void presto_error_set_record(presto_error *err, uint64_t record) {
    if (err != NULL && err->record == PRESTO_NO_RECORD)
        err->record = record;
}

void presto_error_format(const presto_error *err, char *text_out, uint64_t bytes) {
    if (bytes == 0)
        return;
    size_t room = (size_t)bytes;
    char file[PRESTO_ERROR_FILE_BYTES];
    char record[40] = "";
    char offset[40] = "";
    if (err->record != PRESTO_NO_RECORD)
        snprintf(record, sizeof record, "record %ju: ", (uintmax_t)err->record);
    if (err->offset != PRESTO_NO_OFFSET)
        snprintf(offset, sizeof offset, " (at byte %ju)", (uintmax_t)err->offset);
    presto_text_show(presto_span_of_text(err->file), file, sizeof file);
    snprintf(text_out, room, "%s%s%s%s%s", file, file[0] != '\0' ? ": " : "", record, err->message,
             offset);
}
