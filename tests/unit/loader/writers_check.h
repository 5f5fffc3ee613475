/* SPDX-License-Identifier: Apache-2.0 */
/* Conversions of photos, named by their numbers, into several shards at once. */
#ifndef WRITERS_CHECK_H
#define WRITERS_CHECK_H

#include "loader_check.h"

#include <dirent.h>
#include <unistd.h>

#include "convert/convert_internal.h"
#include "folder_check.h"

#define PHOTOS 30
#define SHARDS 6 /* of five photos each, where nothing else is said */
/* Too little for packets of more than one photo, so that shards take turns photo by photo. */
#define TINY_PREFETCH_BYTES ((size_t)50000)

static char *dir;
static presto_pipeline *pipeline;
static presto_error err;
static presto_convert_result result;

static inline char *at(const char *name) {
    return path_in(dir, name);
}

static inline char *photo(int number) {
    char name[64];
    snprintf(name, sizeof name, "photos/%02d.jpg", number);
    return at(name);
}

/* Photos named 00.jpg, 01.jpg, ... */
static inline void set_up(void) {
    dir = presto_check_temp_dir();
    ck_assert_ok(presto_pipeline_load("cv", NULL, &pipeline, &err), &err);
    char command[1200];
    snprintf(command, sizeof command,
             "%s -n %d -c 1 --width 40 --height 30 -j 0 -o %s/made >/dev/null 2>&1 && "
             "mkdir %s/photos && i=0 && for f in $(find %s/made -name '*.jpg' | sort); do "
             "mv $f %s/photos/$(printf '%%02d' $i).jpg; i=$((i+1)); done",
             PRESTO_CORPUS_PROGRAM, PHOTOS, dir, dir, dir, dir);
    ck_assert_int_eq(system(command), 0);
}

static inline void tear_down(void) {
    presto_pipeline_free(pipeline);
    presto_check_remove_tree(dir);
    free(dir);
}

static inline presto_convert_options defaults(presto_file_compression compression, size_t shards,
                                              unsigned threads) {
    presto_convert_options options;
    presto_convert_options_defaults(&options);
    options.up_to = "decoded";
    options.file_compression = compression;
    options.shards = shards;
    options.threads = threads;
    options.sync = false;
    return options;
}

static inline presto_status convert(const char *from, const char *to,
                                    const presto_convert_options *options) {
    const char *paths[] = {at(from)};
    presto_convert_options with = *options;
    with.pipeline = pipeline;
    with.dir = at(to);
    return presto_convert(paths, 1, &with, &result, &err);
}

static inline uint32_t digest_folder(const char *name) {
    return digest_of_folder(at(name));
}

static inline const char *ending(const presto_convert_options *options) {
    return options->file_compression == PRESTO_FILE_GZIP ? ".gz" : "";
}

static inline char *shard_at(const char *folder, int shard, const presto_convert_options *options,
                             const char *suffix) {
    char name[100];
    snprintf(name, sizeof name, "%s/data-%05d-of-%05d.tfrecord%s%s", folder, shard, SHARDS,
             ending(options), suffix);
    return at(name);
}

static inline bool stands(int shard, const presto_convert_options *options) {
    return access(shard_at("out", shard, options, ""), F_OK) == 0;
}

static inline size_t count_partial(const char *folder) {
    struct dirent **entries;
    int count = scandir(folder, &entries, NULL, alphasort);
    size_t partial = 0;
    for (int i = 0; i < count; i++) {
        partial += strstr(entries[i]->d_name, ".partial") != NULL;
        free(entries[i]);
    }
    free(entries);
    return partial;
}

static inline bool stop_at_the_end(void *user, const presto_progress *progress) {
    (void)user;
    return progress->samples_done < progress->samples_total;
}

/* All shards are whole and noted, dataset.json is missing. */
static inline void leave_unfinished(presto_convert_options options) {
    options.threads = 0;
    options.resume = false;
    options.on_progress = stop_at_the_end;
    ck_assert_status(convert("photos", "out", &options), PRESTO_ERR_STOPPED, &err);
    for (int i = 0; i < SHARDS; i++)
        ck_assert(stands(i, &options));
}

/* Shard and index are missing, or the progress file does not list them. */
static inline void lose(int shard, const presto_convert_options *options, bool is_forgotten) {
    if (!is_forgotten) {
        ck_assert_int_eq(unlink(shard_at("out", shard, options, "")), 0);
        ck_assert_int_eq(unlink(shard_at("out", shard, options, ".index")), 0);
        return;
    }
    presto__progress_file progress = {0};
    ck_assert_ok(presto__progress_file_read(at("out"), &progress, &err), &err);
    size_t i = 0;
    while (progress.shards[i].number != (size_t)shard)
        i++;
    free(progress.shards[i].described.file);
    for (progress.shard_count--; i < progress.shard_count; i++)
        progress.shards[i] = progress.shards[i + 1];
    ck_assert_ok(presto__progress_file_write(at("out"), &progress, false, &err), &err);
    presto__progress_file_done(&progress);
}

#endif
