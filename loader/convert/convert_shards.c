/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes the shards of a conversion, then gives them their names.
 */
#include <stdio.h>
#include <stdlib.h>

#include "../../base/file_internal.h"
#include "../../storage/fan_out_internal.h"
#include "../../storage/outlet_internal.h"
#include "convert_internal.h"

/* ---- giving shards their names ---- */

/* Rename a file, unless an earlier run has done so. */
static presto_status rename_file(const presto__conversion *job, const char *from, const char *to,
                                 const char *suffix, presto_error *err) {
    char names[2][PRESTO__SHARD_NAME_BYTES + 8];
    snprintf(names[0], sizeof names[0], "%s%s", from, suffix);
    snprintf(names[1], sizeof names[1], "%s%s", to, suffix);
    char *paths[2] = {presto__join_path(job->dir, names[0]), presto__join_path(job->dir, names[1])};
    presto_status status =
        paths[0] == NULL || paths[1] == NULL ? presto_fail_memory(err, 1) : PRESTO_OK;
    presto__object_info info;
    presto_error why;
    if (status == PRESTO_OK)
        status = presto__object_rename(paths[0], paths[1], &why);
    if (status == PRESTO_ERR_NOT_FOUND && presto__object_find(paths[1], &info, NULL) == PRESTO_OK)
        status = PRESTO_OK;
    else if (status < 0 && err != NULL && paths[0] != NULL && paths[1] != NULL)
        *err = why;
    free(paths[0]);
    free(paths[1]);
    return status;
}

/* A presto__job_fn: of one shard, by number. */
static presto_status name_shard(void *user, size_t i, presto_error *err) {
    presto__conversion *job = user;
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
    return PRESTO_OK;
}

presto_status presto__conversion_name_shards(presto__conversion *job, presto_error *err) {
    if (!presto__conversion_by_size(job))
        return PRESTO_OK;
    /* From here on, shards are found by the progress file. */
    PRESTO_TRY(presto__conversion_catch_up(job, err));
    if (presto__path_is_remote(job->dir)) { /* each is copied, which takes the storage a while */
        PRESTO_TRY(presto__conversion_check_folder(job, err));
        return presto__fan_out(job->shard_count, name_shard, job, err);
    }
    if (job->options->sync)
        PRESTO_TRY(presto__sync_folder(job->dir, err)); /* the progress file must be on the disk
                                                         * first */
    for (size_t i = 0; i < job->shard_count; i++)
        PRESTO_TRY(name_shard(job, i, err));
    return job->options->sync ? presto__sync_folder(job->dir, err) : PRESTO_OK;
}

presto_status presto__conversion_write_shards(presto__conversion *job, presto_error *err) {
    PRESTO_TRY(presto__conversion_regroups(job) ? presto__conversion_run_regroup(job, err)
                                                : presto__conversion_run_loop(job, err));
    return presto__conversion_name_shards(job, err);
}
