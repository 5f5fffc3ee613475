/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The shards of a conversion: which samples stand in which, how they are called and when.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "../base/file_internal.h"
#include "conversion_internal.h"

/* ---- which samples, which names ---- */

bool presto__conversion_by_size(const presto__conversion *job) {
    return job->options->shard_bytes > 0;
}

uint64_t presto__conversion_end(const presto__conversion *job, size_t shard) {
    /* (shard + 1) * n / shards without overflow. */
    uint64_t each = job->sample_count / job->shard_count;
    uint64_t rest = job->sample_count % job->shard_count;
    return each * (shard + 1) + rest * (shard + 1) / job->shard_count;
}

uint64_t presto__conversion_first(const presto__conversion *job, size_t shard) {
    return shard == 0 ? 0 : presto__conversion_end(job, shard - 1);
}

static const char *ending(const presto__conversion *job) {
    static const char *const endings[] = {
        [PRESTO_FILE_PLAIN] = "", [PRESTO_FILE_GZIP] = ".gz", [PRESTO_FILE_ZLIB] = ".deflate"};
    return endings[job->options->file_compression];
}

void presto__conversion_shard_name(const presto__conversion *job, size_t shard,
                                   char name_out[PRESTO__SHARD_NAME_BYTES]) {
    snprintf(name_out, PRESTO__SHARD_NAME_BYTES, "data-%05zu-of-%05zu.tfrecord%s", shard,
             job->shard_count, ending(job));
}

void presto__conversion_working_name(const presto__conversion *job, size_t shard,
                                     char name_out[PRESTO__SHARD_NAME_BYTES]) {
    if (presto__conversion_by_size(job))
        snprintf(name_out, PRESTO__SHARD_NAME_BYTES, ".data-%05zu.tfrecord%s", shard, ending(job));
    else
        presto__conversion_shard_name(job, shard, name_out);
}

/* ---- writing ---- */

presto_status presto__conversion_open_writer(const presto__conversion *job, size_t shard,
                                             presto_shard_writer **writer_out, presto_error *err) {
    presto_shard_writer_options options;
    presto_shard_writer_options_defaults(&options);
    options.compression = job->options->file_compression;
    options.sync = job->options->sync;
    char name[PRESTO__SHARD_NAME_BYTES];
    presto__conversion_working_name(job, shard, name);
    PRESTO_TRY(presto__conversion_check_folder(job, err));
    char *path = presto__path_join(job->dir, name, err);
    if (path == NULL)
        return PRESTO_ERR_MEMORY;
    presto_status status = presto_shard_writer_open(path, &options, writer_out, err);
    free(path);
    return status;
}

/* ---- giving shards their names ---- */

/* From `from` to `to`, unless an earlier run has done so. */
static presto_status rename_file(const presto__conversion *job, const char *from, const char *to,
                                 const char *suffix, presto_error *err) {
    char names[2][PRESTO__SHARD_NAME_BYTES + 8];
    snprintf(names[0], sizeof names[0], "%s%s", from, suffix);
    snprintf(names[1], sizeof names[1], "%s%s", to, suffix);
    char *paths[2] = {presto__path_join(job->dir, names[0], err), NULL};
    if (paths[0] != NULL)
        paths[1] = presto__path_join(job->dir, names[1], err);
    presto_status status = paths[1] == NULL ? PRESTO_ERR_MEMORY : PRESTO_OK;
    if (status == PRESTO_OK && rename(paths[0], paths[1]) != 0) {
        int code = errno;
        if (code != ENOENT || access(paths[1], F_OK) != 0)
            status = presto_fail_errno(err, code, paths[1], "cannot rename to");
    }
    free(paths[0]);
    free(paths[1]);
    return status;
}

static presto_status name_shards(presto__conversion *job, presto_error *err) {
    if (!presto__conversion_by_size(job))
        return PRESTO_OK;
    /* From here on shards are found by what the progress file says. */
    PRESTO_TRY(presto__conversion_catch_up(job, err));
    if (job->options->sync)
        PRESTO_TRY(presto__sync_folder(job->dir, err)); /* the progress file must not fall behind */
    for (size_t i = 0; i < job->shard_count; i++) {
        presto_dataset_shard *shard = &job->progress.shards[i].described;
        char name[PRESTO__SHARD_NAME_BYTES];
        presto__conversion_shard_name(job, i, name);
        PRESTO_TRY(rename_file(job, shard->file, name, ".index", err));
        PRESTO_TRY(rename_file(job, shard->file, name, "", err));
        char *copy = strdup(name);
        if (copy == NULL)
            return presto_fail_memory(err, strlen(name) + 1);
        free(shard->file);
        shard->file = copy;
    }
    return job->options->sync ? presto__sync_folder(job->dir, err) : PRESTO_OK;
}

presto_status presto__conversion_write_shards(presto__conversion *job, presto_error *err) {
    PRESTO_TRY(presto__conversion_run_loop(job, err));
    return name_shards(job, err);
}
