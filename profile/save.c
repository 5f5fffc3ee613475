/* SPDX-License-Identifier: Apache-2.0 */
/* A sweep's results as files of a folder. */
#include "profile_internal.h"

#include <stdlib.h>
#include <string.h>

#include <presto/file.h>

#include "../base/file_internal.h"
#include "../base/folder_internal.h"

static presto_status write_file(const char *dir, const char *name, presto_span content,
                                presto_error *err) {
    char *path = presto__join_path(dir, name);
    if (path == NULL)
        return presto_fail_memory(err, strlen(dir) + strlen(name) + 2);
    presto_status status = presto_file_replace(path, &content, 1, true, err);
    free(path);
    return status;
}

presto_status presto_sweep_write(const presto_sweep *sweep, const char *dir, presto_error *err) {
    static const struct {
        const char *name;
        presto_status (*make)(const presto_sweep *, presto_buffer *, presto_error *);
    } files[] = {{"results.csv", presto__results_csv},
                 {"results.json", presto__results_json},
                 {"strategy.yaml", presto__strategy_yaml},
                 {"report.html", presto__report_html}};
    PRESTO_TRY(presto__folder_make(dir, err));
    size_t count = sizeof files / sizeof *files - (presto__report_is_built() ? 0 : 1);
    for (size_t i = 0; i < count; i++) {
        presto_buffer text = {0};
        presto_status status = files[i].make(sweep, &text, err);
        if (status == PRESTO_OK)
            status = write_file(dir, files[i].name, presto_buffer_span(&text), err);
        presto_buffer_done(&text);
        PRESTO_TRY(status);
    }
    return presto__sync_folder(dir, err);
}
