/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The shards of a conversion: which samples stand in which, and the loop from the loader's encoded
 * records into their files.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <presto/clock.h>

#include "conversion_internal.h"

#define PROGRESS_INTERVAL_NS 100000000

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
    char *path = presto__path_join(job->dir, name, err);
    if (path == NULL)
        return PRESTO_ERR_MEMORY;
    presto_status status = presto_shard_writer_open(path, &options, writer_out, err);
    free(path);
    return status;
}

static presto_status open_shard(presto__conversion *job, presto_error *err) {
    size_t shard = job->progress.shard_count;
    if (shard >= PRESTO_MAX_SHARDS && presto__conversion_by_size(job))
        return presto_fail(err, PRESTO_ERR_LIMIT, PRESTO_NO_OFFSET,
                           "more than %d shards of %ju bytes", PRESTO_MAX_SHARDS,
                           (uintmax_t)job->options->shard_bytes);
    job->shard_records = job->shard_frame_bytes = job->shard_raw_bytes = 0;
    return presto__conversion_open_writer(job, shard, &job->writer, err);
}

static presto_status note_progress(presto__conversion *job, presto_error *err) {
    PRESTO_TRY(presto__loader_schema_into(job->loader, &job->progress.schema, err));
    return presto__conversion_note(job, err);
}

/* The open shard has all of its samples, those before `end`. */
static presto_status finish_shard(presto__conversion *job, uint64_t end, presto_error *err) {
    if (job->writer == NULL)
        PRESTO_TRY(open_shard(job, err));
    presto_shard_summary summary;
    presto_status status = presto_shard_writer_finish(job->writer, &summary, err);
    presto_shard_writer_free(job->writer);
    job->writer = NULL;
    PRESTO_TRY(status);
    char name[PRESTO__SHARD_NAME_BYTES];
    presto__conversion_working_name(job, job->progress.shard_count, name);
    presto__whole_shard shard = {.described = {.records = summary.records,
                                               .stored_bytes = summary.stored_bytes,
                                               .raw_bytes = job->shard_raw_bytes,
                                               .crc32c = summary.crc32c},
                                 .end = end};
    PRESTO_TRY(presto__progress_add(&job->progress, name, &shard, err));
    return note_progress(job, err);
}

/* May the row be appended to the open shard? */
static bool belongs(const presto__conversion *job, const presto_batch *batch, size_t row) {
    if (!presto__conversion_by_size(job))
        return batch->sample_numbers[row] < presto__conversion_end(job, job->progress.shard_count);
    uint64_t most = job->options->shard_bytes, used = job->shard_frame_bytes;
    return job->shard_records == 0 || (used <= most && batch->frame_bytes[row] <= most - used);
}

/* Where the open shard ends, now that the next sample that is not left out is none of its. */
static uint64_t end_before(const presto__conversion *job, uint64_t next) {
    return presto__conversion_by_size(job) ? next
                                           : presto__conversion_end(job, job->progress.shard_count);
}

/* Rows of a batch into the shards that they belong to. */
static presto_status write_batch(presto__conversion *job, const presto_batch *batch,
                                 presto_error *err) {
    const presto__batch *inner = (const presto__batch *)(const void *)batch;
    const uint32_t *raw_bytes = inner->packet->raw_bytes + inner->first;
    const uint8_t *at = batch->frames.data;
    for (size_t row = 0; row < batch->rows;) {
        if (job->writer == NULL)
            PRESTO_TRY(open_shard(job, err));
        size_t first = row, bytes = 0;
        for (; row < batch->rows && belongs(job, batch, row); row++) {
            bytes += batch->frame_bytes[row];
            job->shard_records++;
            job->shard_frame_bytes += batch->frame_bytes[row];
            job->shard_raw_bytes += raw_bytes[row];
        }
        PRESTO_TRY(presto_shard_writer_append_frames(job->writer, presto_span_of(at, bytes),
                                                     batch->frame_bytes + first, row - first, err));
        at += bytes;
        if (row < batch->rows)
            PRESTO_TRY(finish_shard(job, end_before(job, batch->sample_numbers[row]), err));
    }
    return PRESTO_OK;
}

/* After the last sample. By number, shards that nothing came for are empty; by size, there is one
 * at least. */
static presto_status finish_last(presto__conversion *job, presto_error *err) {
    if (!presto__conversion_by_size(job)) {
        while (job->progress.shard_count < job->shard_count)
            PRESTO_TRY(
                finish_shard(job, presto__conversion_end(job, job->progress.shard_count), err));
        return PRESTO_OK;
    }
    presto__progress *progress = &job->progress;
    if (job->writer != NULL || progress->shard_count == 0) {
        PRESTO_TRY(finish_shard(job, job->sample_count, err));
    } else if (presto__progress_next(progress) <
               job->sample_count) { /* all that came was left out */
        progress->shards[progress->shard_count - 1].end = job->sample_count;
        PRESTO_TRY(note_progress(job, err));
    }
    job->shard_count = progress->shard_count;
    return PRESTO_OK;
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

/* ---- the loop ---- */

presto_status presto__conversion_tell(presto__conversion *job, uint64_t done, presto_error *err) {
    uint64_t now = presto_clock_ns();
    if (job->options->on_progress == NULL ||
        (now - job->told_ns < PROGRESS_INTERVAL_NS && done < job->sample_count))
        return PRESTO_OK;
    job->told_ns = now;
    if (job->loader != NULL)
        presto_loader_get_stats(job->loader, &job->stats);
    presto_progress progress = {.samples_done = done,
                                .samples_total = job->sample_count,
                                .bytes_read = job->stats.read_bytes,
                                .bytes_written = job->stats.delivered_bytes,
                                .skipped = job->skipped_before + job->stats.skipped,
                                .elapsed_ns = now - job->started_ns};
    if (job->options->on_progress(job->options->on_progress_user, &progress))
        return PRESTO_OK;
    return presto_fail(err, PRESTO_ERR_STOPPED, PRESTO_NO_OFFSET, "stopped");
}

void presto__conversion_loader_options(const presto__conversion *job,
                                       presto_loader_options *loader_out) {
    const presto_convert_options *options = job->options;
    presto_loader_options loader;
    presto_loader_options_defaults(&loader);
    loader.threads = options->threads;
    loader.auto_threads = options->auto_threads;
    loader.output = PRESTO_OUTPUT_RECORDS;
    loader.batch_samples = 0;
    loader.seed = options->seed;
    loader.prefetch_bytes = options->prefetch_bytes;
    loader.on_error = options->on_error;
    loader.skip_limit = options->skip_limit;
    if (loader.skip_limit != UINT64_MAX)
        loader.skip_limit -=
            job->skipped_before < loader.skip_limit ? job->skipped_before : loader.skip_limit;
    loader.skip_fraction = options->skip_fraction;
    loader.on_skip = options->on_skip;
    loader.on_skip_user = options->on_skip_user;
    loader.codec = job->codec;
    loader.first_sample = presto__progress_next(&job->progress);
    *loader_out = loader;
}

static presto_status write_in_order(presto__conversion *job, presto_error *err) {
    presto_loader_options loader;
    presto__conversion_loader_options(job, &loader);
    PRESTO_TRY(presto_loader_open(job->source, job->plan, &loader, &job->loader, err));
    for (;;) {
        presto_batch *batch;
        presto_status status = presto_loader_next(job->loader, &batch, err);
        if (status == PRESTO_END)
            break;
        PRESTO_TRY(status);
        uint64_t done = batch->sample_numbers[batch->rows - 1] + 1;
        status = write_batch(job, batch, err);
        presto_batch_release(batch);
        PRESTO_TRY(status);
        PRESTO_TRY(presto__conversion_tell(job, done, err));
    }
    PRESTO_TRY(finish_last(job, err));
    presto_loader_get_stats(job->loader, &job->stats);
    return PRESTO_OK;
}

presto_status presto__conversion_write_shards(presto__conversion *job, presto_error *err) {
    size_t lanes = presto__conversion_lanes(job);
    if (lanes > 1)
        return presto__conversion_write_lanes(job, lanes, err);
    PRESTO_TRY(write_in_order(job, err));
    return name_shards(job, err);
}
