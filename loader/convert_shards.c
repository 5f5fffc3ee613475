/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The shards of a conversion: which samples stand in which, and the loop from the loader's encoded
 * records into their files.
 */
#include <stdio.h>
#include <stdlib.h>

#include <presto/clock.h>

#include "conversion_internal.h"

#define PROGRESS_INTERVAL_NS 100000000

/* ---- names ---- */

uint64_t presto__conversion_first(const presto__conversion *job, size_t shard) {
    /* shard * n / shards without overflow. */
    uint64_t each = job->sample_count / job->shard_count;
    uint64_t rest = job->sample_count % job->shard_count;
    return each * shard + rest * shard / job->shard_count;
}

void presto__conversion_shard_name(const presto__conversion *job, size_t shard,
                                   char name_out[PRESTO__SHARD_NAME_BYTES]) {
    static const char *const endings[] = {
        [PRESTO_FILE_PLAIN] = "", [PRESTO_FILE_GZIP] = ".gz", [PRESTO_FILE_ZLIB] = ".deflate"};
    snprintf(name_out, PRESTO__SHARD_NAME_BYTES, "data-%05zu-of-%05zu.tfrecord%s", shard,
             job->shard_count, endings[job->options->file_compression]);
}

/* ---- writing ---- */

static presto_status open_shard(presto__conversion *job, presto_error *err) {
    presto_shard_writer_options options;
    presto_shard_writer_options_defaults(&options);
    options.compression = job->options->file_compression;
    options.sync = job->options->sync;
    char name[PRESTO__SHARD_NAME_BYTES];
    presto__conversion_shard_name(job, job->progress.shard_count, name);
    char *path = presto__path_join(job->dir, name, err);
    if (path == NULL)
        return PRESTO_ERR_MEMORY;
    presto_status status = presto_shard_writer_open(path, &options, &job->writer, err);
    free(path);
    job->shard_raw_bytes = 0;
    return status;
}

static presto_status finish_shard(presto__conversion *job, presto_error *err) {
    if (job->writer == NULL)
        PRESTO_TRY(open_shard(job, err));
    presto_shard_summary summary;
    presto_status status = presto_shard_writer_finish(job->writer, &summary, err);
    presto_shard_writer_free(job->writer);
    job->writer = NULL;
    PRESTO_TRY(status);
    char name[PRESTO__SHARD_NAME_BYTES];
    presto__conversion_shard_name(job, job->progress.shard_count, name);
    presto_dataset_shard shard = {.records = summary.records,
                                  .stored_bytes = summary.stored_bytes,
                                  .raw_bytes = job->shard_raw_bytes,
                                  .crc32c = summary.crc32c};
    PRESTO_TRY(presto__progress_add(&job->progress, name, &shard, err));
    presto_loader_get_stats(job->loader, &job->stats);
    job->progress.skipped = job->skipped_before + job->stats.skipped;
    PRESTO_TRY(presto__loader_schema_into(job->loader, &job->progress.schema, err));
    return presto__progress_write(job->dir, &job->progress, job->options->sync, err);
}

/* Rows of a batch into the shards that they belong to. */
static presto_status write_batch(presto__conversion *job, const presto_batch *batch,
                                 presto_error *err) {
    const presto__batch *inner = (const presto__batch *)(const void *)batch;
    const uint32_t *raw_bytes = inner->packet->raw_bytes + inner->first;
    const uint8_t *at = batch->frames.data;
    for (size_t row = 0; row < batch->rows;) {
        uint64_t number = batch->sample_numbers[row];
        while (number >= presto__conversion_first(job, job->progress.shard_count + 1))
            PRESTO_TRY(finish_shard(job, err));
        uint64_t end = presto__conversion_first(job, job->progress.shard_count + 1);
        if (job->writer == NULL)
            PRESTO_TRY(open_shard(job, err));
        size_t count = 0, bytes = 0;
        for (; row + count < batch->rows && batch->sample_numbers[row + count] < end; count++) {
            bytes += batch->frame_bytes[row + count];
            job->shard_raw_bytes += raw_bytes[row + count];
        }
        PRESTO_TRY(presto_shard_writer_append_frames(job->writer, presto_span_of(at, bytes),
                                                     batch->frame_bytes + row, count, err));
        at += bytes;
        row += count;
    }
    return PRESTO_OK;
}

static presto_status tell_progress(presto__conversion *job, uint64_t done, presto_error *err) {
    uint64_t now = presto_clock_ns();
    if (job->options->on_progress == NULL ||
        (now - job->told_ns < PROGRESS_INTERVAL_NS && done < job->sample_count))
        return PRESTO_OK;
    job->told_ns = now;
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

static presto_status open_loader(presto__conversion *job, presto_error *err) {
    const presto_convert_options *options = job->options;
    presto_loader_options loader;
    presto_loader_options_defaults(&loader);
    loader.threads = options->threads;
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
    loader.first_sample = presto__conversion_first(job, job->progress.shard_count);
    return presto_loader_open(job->source, job->plan, &loader, &job->loader, err);
}

presto_status presto__conversion_write_shards(presto__conversion *job, presto_error *err) {
    PRESTO_TRY(open_loader(job, err));
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
        PRESTO_TRY(tell_progress(job, done, err));
    }
    while (job->progress.shard_count < job->shard_count)
        PRESTO_TRY(finish_shard(job, err));
    presto_loader_get_stats(job->loader, &job->stats);
    return PRESTO_OK;
}
