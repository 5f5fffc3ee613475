/* SPDX-License-Identifier: Apache-2.0 */
/* Lists of paths. */
#include <stdlib.h>
#include <string.h>

#include "storage_internal.h"

void presto__paths_done(presto__paths *paths) {
    for (size_t i = 0; i < paths->count; i++)
        free(paths->items[i]);
    free(paths->items);
    *paths = (presto__paths){0};
}

presto_status presto__paths_add(presto__paths *paths, const char *path, presto_error *err) {
    if (paths->count == paths->capacity) {
        size_t capacity = paths->capacity * 2 + 8;
        char **items = realloc(paths->items, capacity * sizeof *items);
        if (items == NULL)
            return presto_fail_memory(err, capacity * sizeof *items);
        paths->items = items;
        paths->capacity = capacity;
    }
    paths->items[paths->count] = strdup(path);
    if (paths->items[paths->count] == NULL)
        return presto_fail_memory(err, strlen(path) + 1);
    paths->count++;
    return PRESTO_OK;
}
