/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The dictionary of codec +dict: trained once on samples of the source, and kept in the folder, where a
 * resumed conversion finds it.
 */
#include <stdlib.h>

#include <presto/storage.h>

#include "../../base/clock_internal.h"
#include "../../base/file_internal.h"
#include "../../records/records_internal.h"
#include "convert_internal.h"

#define DICTIONARY_SAMPLES 1000
#define DICTIONARY_SAMPLE_BYTES ((size_t)16 << 20)
#define ASK_NS 100000000

typedef struct training {
    presto_buffer samples;
    size_t *sample_bytes;
    size_t count, capacity;
} training;

static presto_status add_training(training *set, const presto_batch *batch, presto_error *err) {
    if (set->count + batch->rows > set->capacity) {
        size_t capacity = (set->count + batch->rows) * 2;
        size_t *sizes = realloc(set->sample_bytes, capacity * sizeof *sizes);
        if (sizes == NULL)
            return presto_fail_memory(err, capacity * sizeof *sizes);
        set->sample_bytes = sizes;
        set->capacity = capacity;
    }
    const uint8_t *frame = batch->frames.data;
    for (size_t i = 0; i < batch->rows; i++) {
        size_t bytes = batch->frame_bytes[i] - PRESTO_FRAME_OVERHEAD_BYTES;
        PRESTO_TRY(presto_buffer_append(
            &set->samples, presto_span_of(frame + PRESTO_FRAME_HEADER_BYTES, bytes), err));
        set->sample_bytes[set->count++] = bytes;
        frame += batch->frame_bytes[i];
    }
    return PRESTO_OK;
}

/* A presto_stop_fn: there is no progress yet, but a request to stop is noticed. */
static bool should_stop(void *user) {
    presto__conversion *job = user;
    const presto_convert_options *options = job->options;
    uint64_t now = presto__clock_ns();
    if (options->on_progress == NULL || now - job->told_ns < ASK_NS)
        return false;
    job->told_ns = now;
    presto_progress progress = {.samples_total = presto__conversion_samples(job),
                                .elapsed_ns = now - job->started_ns};
    return !options->on_progress(options->on_progress_user, &progress);
}

/* Serialized samples from all over the source, or the first ones if they can only be read in order:
 * the same ones every time. */
static presto_status collect_training(presto__conversion *job, training *set, presto_error *err) {
    presto_loader_options options;
    presto_loader_options_defaults(&options);
    options.threads = job->options->threads;
    options.output = PRESTO_OUTPUT_RECORDS;
    options.batch_samples = 16;
    options.range.limit_samples = DICTIONARY_SAMPLES;
    if (options.range.limit_samples > job->sample_count)
        options.range.limit_samples = job->sample_count;
    options.memory.prefetch_bytes = job->prefetch_bytes;
    options.errors.policy = PRESTO_ON_ERROR_SKIP; /* the conversion itself reports them */
    options.should_stop = should_stop;
    options.should_stop_user = job;
    if (presto__conversion_picks(job))
        options.order.shuffle = PRESTO_SHUFFLE_FULL;
    presto_loader *loader;
    const presto__loader_input input = {.source = job->source, .plan = job->plan, .regroups = true};
    PRESTO_TRY(presto__loader_open_input(&input, &options, &loader, err));
    presto_status status = PRESTO_OK;
    while (status == PRESTO_OK && set->samples.bytes < DICTIONARY_SAMPLE_BYTES) {
        presto_batch *batch;
        status = presto_loader_next(loader, &batch, err);
        if (status != PRESTO_OK)
            break;
        status = add_training(set, batch, err);
        presto_batch_release(batch);
    }
    presto_loader_free(loader);
    return status < 0 ? status : PRESTO_OK;
}

presto_status presto__conversion_make_dictionary(presto__conversion *job, presto_error *err) {
    if (!job->codec.wants_dictionary)
        return PRESTO_OK;
    char *path = presto__join_path(job->dir, PRESTO__DICTIONARY_FILE);
    if (path == NULL)
        return presto_fail_memory(err, 1);
    presto_status status =
        presto_file_read(path, PRESTO_CODEC_MAX_DICTIONARY_BYTES, &job->dictionary, err);
    free(path);
    if (status == PRESTO_ERR_NOT_FOUND) {
        training set = {0};
        status = collect_training(job, &set, err);
        if (status == PRESTO_OK)
            status = presto__codec_train(&job->codec,
                                         &(presto__codec_samples){presto_buffer_span(&set.samples),
                                                                  set.sample_bytes, set.count},
                                         0, &job->dictionary, err);
        if (status == PRESTO_OK)
            status =
                presto__replace_file(job->dir, PRESTO__DICTIONARY_FILE,
                                     presto_buffer_span(&job->dictionary), job->options->sync, err);
        presto_buffer_done(&set.samples);
        free(set.sample_bytes);
    }
    job->codec.dictionary = presto_buffer_span(&job->dictionary);
    return status;
}
