/* SPDX-License-Identifier: Apache-2.0 */
/* Paths in a test's folder, and a dataset's folder as one number. */
#ifndef FOLDER_CHECK_H
#define FOLDER_CHECK_H

#include "presto_check.h"

#include <dirent.h>
#include <stdio.h>
#include <string.h>

#include <presto/crc32c.h>

/** folder/name, in one of eight buffers that are used in turn. */
static inline char *path_in(const char *folder, const char *name) {
    static char paths[8][700];
    static size_t next;
    char *path = paths[next++ % 8];
    snprintf(path, sizeof paths[0], "%s/%s", folder, name);
    return path;
}

/** A hash of names and contents. Of hidden files and indexes (which hold the time of their
 * shard's last change), only the names count. */
static inline uint32_t digest_of_folder(const char *folder) {
    struct dirent **entries;
    int count = scandir(folder, &entries, NULL, alphasort);
    uint32_t digest = 0;
    ck_assert_int_ge(count, 0);
    for (int i = 0; i < count; i++) {
        const char *name = entries[i]->d_name;
        digest = presto_crc32c(digest, name, strlen(name) + 1);
        if (name[0] != '.' && strstr(name, ".index") == NULL) {
            char path[1400];
            size_t bytes;
            snprintf(path, sizeof path, "%s/%s", folder, name);
            uint8_t *content = presto_check_read_file(path, &bytes);
            digest = presto_crc32c(digest, content, bytes);
            free(content);
        }
        free(entries[i]);
    }
    free(entries);
    return digest;
}

#endif
