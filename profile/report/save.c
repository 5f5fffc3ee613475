/* SPDX-License-Identifier: Apache-2.0 */
/* A sweep's results as files of a folder. */
#include "../profile_internal.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <presto/file.h>

#include "../../base/file_internal.h"
#include "../../base/folder_internal.h"

static presto_status write_file(const char *dir, const char *name, presto_span content,
                                presto_error *err) {
    char *path = presto__join_path(dir, name);
    if (path == NULL)
        return presto_fail_memory(err, strlen(dir) + strlen(name) + 2);
    presto_status status = presto_file_replace(path, &content, 1, true, err);
    free(path);
    return status;
}

static presto_status refuse_results(const char *dir, presto_error *err) {
    static const char *const results[] = {"results.json", "trials.jsonl"};
    for (size_t i = 0; i < sizeof results / sizeof *results; i++) {
        char *path = presto__join_path(dir, results[i]);
        if (path == NULL)
            return presto_fail_memory(err, strlen(dir) + strlen(results[i]) + 2);
        bool is_there = access(path, F_OK) == 0;
        free(path);
        if (!is_there)
            continue;
        presto_status status = presto_fail(err, PRESTO_ERR_ARGUMENT, PRESTO_NO_OFFSET,
                                           "holds the results of an earlier sweep");
        presto_error_set_file(err, dir);
        return status;
    }
    return PRESTO_OK;
}

presto_status presto_sweep_claim(const char *dir, bool may_replace, presto_folder_lock **lock_out,
                                 presto_error *err) {
    PRESTO_TRY(presto__folder_make(dir, err));
    presto_folder_lock *lock;
    PRESTO_TRY(presto__folder_lock_take(dir, &lock, err));
    presto_status status = may_replace ? PRESTO_OK : refuse_results(dir, err);
    if (status < 0)
        presto_folder_lock_release(lock);
    else
        *lock_out = lock;
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
    presto_status first = PRESTO_OK;
    for (size_t i = 0; i < count; i++) { /* where one has no room, a smaller one may have it */
        presto_buffer text = {0};
        presto_error *why = first == PRESTO_OK ? err : NULL;
        presto_status status = files[i].make(sweep, &text, why);
        if (status == PRESTO_OK)
            status = write_file(dir, files[i].name, presto_buffer_span(&text), why);
        presto_buffer_done(&text);
        first = first == PRESTO_OK ? status : first;
    }
    return first == PRESTO_OK ? presto__sync_folder(dir, err) : first;
}
