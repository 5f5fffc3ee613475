/* SPDX-License-Identifier: Apache-2.0 */
/* Conversions of a small corpus of photos. */
#ifndef CONVERT_CHECK_H
#define CONVERT_CHECK_H

#include "loader_check.h"

#include "folder_check.h"

#define PHOTOS 40

static char *dir;
static presto_pipeline *pipeline;

static inline char *at(const char *name) {
    return path_in(dir, name);
}

static inline void set_up(void) {
    presto_error err;
    dir = presto_check_temp_dir();
    char command[1200];
    snprintf(command, sizeof command,
             "%s -n %d --width 90 --height 70 -o %s/photos >/dev/null 2>&1", PRESTO_CORPUS_PROGRAM,
             PHOTOS, dir);
    ck_assert_int_eq(system(command), 0);
    ck_assert_ok(presto_pipeline_load("cv", NULL, &pipeline, &err), &err);
}

static inline void tear_down(void) {
    presto_pipeline_free(pipeline);
    presto_check_remove_tree(dir);
    free(dir);
}

static inline presto_convert_options defaults(const char *split, const char *codec, size_t shards,
                                              unsigned threads) {
    presto_convert_options options;
    presto_convert_options_defaults(&options);
    options.up_to = split;
    options.codec = codec;
    options.shards = shards;
    options.threads = threads;
    options.sync = false;
    return options;
}

static inline presto_status convert(const char *from, const char *to,
                                    const presto_convert_options *options,
                                    presto_convert_result *result, presto_error *err) {
    const char *paths[] = {at(from)};
    presto_convert_options with = *options;
    with.pipeline = pipeline;
    with.dir = at(to);
    return presto_convert(paths, 1, &with, result, err);
}

static inline uint32_t digest_folder(const char *name) {
    return digest_of_folder(at(name));
}

#endif
