/* SPDX-License-Identifier: Apache-2.0 */
/* Where the paths of a manifest start, and what they become. */
#define _XOPEN_SOURCE 700 /* realpath */
#include <stdlib.h>

#include "../../../base/file_internal.h"
#include "../table/source_tables_internal.h"

presto_status presto__manifest_root_find(const char *file, const char *folder,
                                         presto__manifest_root *root_out, presto_error *err) {
    const char *slash = strrchr(file, '/');
    char *named = folder != NULL  ? presto__join_path(folder, "")
                  : slash == NULL ? strdup("")
                                  : strndup(file, (size_t)(slash - file) + 1);
    if (named == NULL)
        return presto_fail_memory(err, strlen(file));
    char *real = realpath(named[0] == '\0' ? "." : named, NULL);
    *root_out = (presto__manifest_root){.named = named,
                                        .real = real == NULL ? NULL : presto__join_path(real, "")};
    free(real);
    return PRESTO_OK;
}

void presto__manifest_root_done(presto__manifest_root *root) {
    free(root->named);
    free(root->real);
    *root = (presto__manifest_root){NULL, NULL};
}

/* Of absolute names only: others lead on from the root, also those that begin as it is named. */
static bool starts_with(const char *name, const char *folder) {
    return name[0] == '/' && folder != NULL && folder[0] != '\0' &&
           strncmp(name, folder, strlen(folder)) == 0;
}

presto_status presto__manifest_path(const presto__manifest_root *root, const char *name,
                                    char **path_out, presto_error *err) {
    size_t root_bytes = strlen(root->named);
    if (starts_with(name, root->named))
        name += root_bytes;
    else if (starts_with(name, root->real))
        name += strlen(root->real);
    while (strncmp(name, "./", 2) == 0)
        name += 2;
    if (!presto__name_stays_below(presto_span_of_text(name)))
        return PRESTO_ERR_NOT_FOUND;
    char *path = malloc(root_bytes + strlen(name) + 1);
    if (path == NULL)
        return presto_fail_memory(err, root_bytes + strlen(name) + 1);
    memcpy(path, root->named, root_bytes);
    memcpy(path + root_bytes, name, strlen(name) + 1);
    *path_out = path;
    return PRESTO_OK;
}
