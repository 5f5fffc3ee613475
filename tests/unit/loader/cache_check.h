/* SPDX-License-Identifier: Apache-2.0 */
/* A folder of the disk cache beside one of data. */
#ifndef CACHE_CHECK_H
#define CACHE_CHECK_H

#include <dirent.h>
#include <sys/stat.h>

#include "loader_check.h"

static char *dir;
static char cache_dir[600], data_dir[600];

static inline void set_up(void) {
    dir = presto_check_temp_dir();
    snprintf(cache_dir, sizeof cache_dir, "%s/cache", dir);
    snprintf(data_dir, sizeof data_dir, "%s/data", dir);
    ck_assert_int_eq(mkdir(data_dir, 0777), 0);
}

static inline void tear_down(void) {
    presto_check_remove_tree(dir);
    free(dir);
}

/* Calls `visit` for every file of the cache's folder; how many they are. */
static inline size_t each_file(void (*visit)(const char *path, void *user), void *user) {
    DIR *folder = opendir(cache_dir);
    size_t count = 0;
    if (folder == NULL)
        return 0;
    const struct dirent *entry;
    while ((entry = readdir(folder)) != NULL) {
        char path[1200];
        struct stat info;
        snprintf(path, sizeof path, "%s/%s", cache_dir, entry->d_name);
        if (stat(path, &info) != 0 || !S_ISREG(info.st_mode))
            continue;
        if (visit != NULL)
            visit(path, user);
        count++;
    }
    closedir(folder);
    return count;
}

#endif
