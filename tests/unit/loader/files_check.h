/* SPDX-License-Identifier: Apache-2.0 */
/* Folders of files, opened as the source `files`. */
#ifndef FILES_CHECK_H
#define FILES_CHECK_H

#include "../../../steps/pipelines_internal.h"
#include "folder_check.h"

#include <stdio.h>
#include <sys/stat.h>

#include "source/files/source_files_internal.h"

static char *dir;

static inline void set_up(void) {
    dir = presto_check_temp_dir();
}

static inline void tear_down(void) {
    presto_check_remove_tree(dir);
    free(dir);
}

static inline char *at(const char *name) {
    return path_in(dir, name);
}

static inline void make_file(const char *name) {
    char *path = at(name);
    for (char *slash = path + strlen(dir) + 1; (slash = strchr(slash, '/')) != NULL; slash++) {
        *slash = '\0';
        mkdir(path, 0777);
        *slash = '/';
    }
    presto_check_write_file(path, presto_span_of_text(name));
}

static inline presto_pipeline *pipeline_of(const char *label) {
    char text[1200];
    snprintf(text, sizeof text,
             "name: t\nsource: {type: files, match: ['*.a', '*.b'], label: '%s', feature: body}\n"
             "steps:\n  - {step: read-file, yields: concatenated}\n",
             label);
    presto_pipeline *pipeline;
    presto_error err;
    ck_assert_ok(presto__pipeline_parse(presto_span_of_text(text), "test", NULL, &pipeline, &err),
                 &err);
    return pipeline;
}

#endif
