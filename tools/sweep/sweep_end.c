/* SPDX-License-Identifier: Apache-2.0 */
#define _XOPEN_SOURCE 700 /* statvfs */
#include "sweep_end.h"

#include <errno.h>
#include <sys/statvfs.h>
#include <unistd.h>

static bool is_disk_full(const presto_error *err) {
    return err->sys_errno == ENOSPC || err->sys_errno == EDQUOT;
}

/* "12.3 MB are free in FOLDER now", once the trials are removed. */
static const char *format_free(const char *output, char *text_out, size_t bytes) {
    char size[PRESTO_TEXT_BYTES] = "an unknown size";
    struct statvfs info;
    if (statvfs(output, &info) == 0)
        presto_format_bytes((double)info.f_bavail * (double)info.f_frsize, size);
    snprintf(text_out, bytes, "%s free in %s now", size, output);
    return text_out;
}

#define ROOM_BYTES (PRESTO_ERROR_FILE_BYTES + 96)

int sweep_end_failed(const presto_error *err, const char *output) {
    char text[PRESTO_ERROR_FILE_BYTES + PRESTO_ERROR_MESSAGE_BYTES + 96], room[ROOM_BYTES];
    presto_error_format(err, text, sizeof text);
    if (is_disk_full(err)) /* whatever stands in the journal is not measured again */
        cli_message("%s; %s; with room, the same command with --resume goes on", text,
                    format_free(output, room, sizeof room));
    else
        cli_message("%s", text);
    return cli_exit_code(err->status);
}

/* Stopped before it had results; but there may be conversions and probes. */
static bool can_go_on(const sweep_end *end) {
    return end->sweep != NULL || access(end->journal, F_OK) == 0;
}

int sweep_end_early(const sweep_end *end, const presto_error *err) {
    if (err->status == PRESTO_ERR_STOPPED && can_go_on(end)) {
        cli_message("%s: stopped; the same command with --resume goes on from here", end->output);
        return CLI_FAILED;
    }
    int code = sweep_end_failed(err, end->output);
    bool is_sample = err->status == PRESTO_ERR_CORRUPT || err->status == PRESTO_ERR_TRUNCATED ||
                     err->status == PRESTO_ERR_TYPE || err->status == PRESTO_ERR_UNSUPPORTED;
    if (is_sample && end->policy == PRESTO_ON_ERROR_FAIL && err->file[0] != '\0')
        cli_message("--on-error skip leaves out samples that cannot be processed");
    if (end->sweep != NULL)
        cli_message("%s: the same command with --resume goes on from here", end->output);
    return code;
}

int sweep_end_whole(const sweep_end *end) {
    size_t count = presto_sweep_result_count(end->sweep), without = 0;
    char room[ROOM_BYTES];
    for (size_t i = 0; i < count; i++)
        without += is_disk_full(&presto_sweep_result(end->sweep, i)->failure);
    if (without == 0)
        return CLI_DONE;
    cli_message("the disk was too full for %zu of %zu strategies; %s. With room, the same command "
                "with --resume measures the rest",
                without, count, format_free(end->output, room, sizeof room));
    return CLI_FAILED;
}
