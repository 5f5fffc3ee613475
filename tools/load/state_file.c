/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The loader makes the state (presto_loader_save_state); here is the file for it.
 */
#include <presto/storage.h>

#include "state_file.h"

#include "../cli/cli.h"
#include "report.h"

enum { MAX_STATE_BYTES = 1 << 16 };

presto_status state_file_read(const char *path, const presto_source *source,
                              presto_loader_options *options, presto_error *err) {
    presto_buffer text = {0};
    presto_status status = presto_file_read(path, MAX_STATE_BYTES, &text, err);
    if (status == PRESTO_OK)
        status = presto_loader_load_state(presto_buffer_span(&text), source, options, err);
    else if (status == PRESTO_ERR_NOT_FOUND)
        status = PRESTO_OK;
    else if (status == PRESTO_ERR_LIMIT)
        status = presto_fail(err, PRESTO_ERR_CORRUPT, PRESTO_NO_OFFSET,
                             "no state of a stream: more than %d bytes", MAX_STATE_BYTES);
    presto_buffer_done(&text);
    if (status < 0)
        presto_error_set_file(err, path);
    return status;
}

presto_status state_file_check(const char *path, const presto_source *source,
                               const presto_loader_options *options, presto_error *err) {
    presto_loader_options any = *options;
    any.range.first_epoch = 0;
    any.range.epochs = UINT64_MAX;
    any.range.rank = 0;
    any.range.world = 1;
    presto_status status = state_file_read(path, source, &any, err);
    return status < 0 ? status : PRESTO_OK;
}

void state_file_keep(state_keeper *keeper, const presto_loader *loader) {
    uint64_t now_ns = cli_now_ns();
    if (keeper->path != NULL && keeper->runs_steps) {
        cli_hold_end();
        keeper->kept.bytes = 0;
        if (presto_loader_save_state(loader, &keeper->kept, NULL) < 0)
            keeper->kept.bytes = 0;
        cli_release_end();
    }
    if (keeper->path == NULL || now_ns - keeper->written_ns < keeper->interval_ns)
        return;
    (void)state_file_write(loader, keeper->path);
    keeper->written_ns = cli_now_ns();
}

static int write_text(const presto_buffer *text, const char *path) {
    return report_replace(json_loadb((const char *)text->data, text->bytes, 0, NULL), path);
}

void state_file_end_late(void *user) {
    const state_keeper *keeper = user;
    if (keeper->kept.bytes > 0)
        (void)write_text(&keeper->kept, keeper->path);
}

int state_file_write(const presto_loader *loader, const char *path) {
    presto_error err;
    presto_buffer text = {0};
    int code = CLI_DONE;
    if (presto_loader_save_state(loader, &text, &err) < 0)
        code = cli_error(&err);
    else
        code = write_text(&text, path);
    presto_buffer_done(&text);
    return code;
}
