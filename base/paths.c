/* SPDX-License-Identifier: Apache-2.0 */
#include "paths_internal.h"

#include <stdbool.h>
#include <string.h>
#include <strings.h>

presto_status presto__fail_no_path(const char *path, presto_error *err) {
    const char *hint = presto__path_hint(path);
    presto_status status =
        presto_fail(err, PRESTO_ERR_NOT_FOUND, PRESTO_NO_OFFSET, "no such file or folder%s%s",
                    hint == NULL ? "" : "; ", hint == NULL ? "" : hint);
    presto_error_set_file(err, path);
    return status;
}

/* Where the ending would be; NULL: `text` is shorter. */
static const char *last_of(const char *text, const char *ending) {
    size_t bytes = strlen(text), tail = strlen(ending);
    return bytes >= tail ? text + bytes - tail : NULL;
}

bool presto__ends_with(const char *text, const char *ending) {
    const char *last = last_of(text, ending);
    return last != NULL && strcmp(last, ending) == 0;
}

bool presto__ends_alike(const char *text, const char *ending) {
    const char *last = last_of(text, ending);
    return last != NULL && strcasecmp(last, ending) == 0;
}
