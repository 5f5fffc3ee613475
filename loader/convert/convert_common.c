/* SPDX-License-Identifier: Apache-2.0 */
/* What the loops of a conversion share: positions of rows, progress, the options of their loader,
 * the figures. */
#include <inttypes.h>

#include <presto/numbers.h>
#include <presto/processors.h>

#include "../../base/clock_internal.h"
#include "../../base/options_internal.h"
#include "convert_internal.h"

#define PROGRESS_INTERVAL_NS 100000000

/* Is the next position left out? */
static bool is_gap(const presto__row_walk *walk) {
    const presto__packet *packet = walk->packet;
    return walk->part < packet->part_count && packet->parts[walk->part].gaps[walk->gap] == walk->at;
}

/* Go on to a part that has more of them. */
static void settle(presto__row_walk *walk) {
    const presto__packet *packet = walk->packet;
    while (walk->part < packet->part_count && walk->gap == packet->parts[walk->part].gap_count) {
        walk->part++;
        walk->gap = 0;
    }
}

static void pass_gap(presto__row_walk *walk) {
    walk->gap++;
    settle(walk);
}

presto__row_walk presto__row_walk_begin(const presto_batch *batch) {
    const presto__packet_batch *inner = (const presto__packet_batch *)(const void *)batch;
    const presto__packet *packet = inner->packet;
    presto__row_walk walk = {.packet = packet, .at = inner->first};
    settle(&walk);
    while (walk.part < packet->part_count && packet->parts[walk.part].gaps[walk.gap] < walk.at)
        pass_gap(&walk);
    return walk;
}

uint64_t presto__row_walk_pass(presto__row_walk *walk, size_t rows) {
    for (;; walk->at++) {
        if (is_gap(walk))
            pass_gap(walk);
        else if (rows-- == 0)
            return walk->packet->first + walk->at;
    }
}

presto_status presto__conversion_report(presto__conversion *job, uint64_t done, presto_error *err) {
    uint64_t now = presto__clock_ns();
    if (job->options->on_progress == NULL ||
        (now - job->told_ns < PROGRESS_INTERVAL_NS && done < presto__conversion_samples(job)))
        return PRESTO_OK;
    job->told_ns = now;
    if (job->loader != NULL)
        presto_loader_get_stats(job->loader, &job->stats);
    presto_progress progress = {.samples_done = done,
                                .samples_total = presto__conversion_samples(job),
                                .bytes_read = job->stats.read_bytes,
                                .bytes_written = job->stats.delivered_bytes,
                                .skipped = job->skipped_before + job->stats.skipped,
                                .elapsed_ns = now - job->started_ns};
    if (job->options->on_progress(job->options->on_progress_user, &progress))
        return PRESTO_OK;
    return presto_fail(err, PRESTO_ERR_STOPPED, PRESTO_NO_OFFSET, "stopped");
}

void presto__conversion_take_notes(const presto__conversion *job) {
    presto_loader_note note;
    const presto_convert_options *options = job->options;
    for (size_t i = 0; options->on_note != NULL && job->loader != NULL &&
                       presto_loader_get_note(job->loader, i, &note);
         i++)
        options->on_note(options->on_note_user, note.text);
}

/* A presto_skip_fn. */
static void keep_skip(void *user, uint64_t epoch, uint64_t sample, const presto_error *why) {
    presto__conversion *job = user;
    const presto_loader_errors *errors = &job->options->errors;
    if (job->skips_status >= 0)
        job->skips_status =
            presto_buffer_append(&job->skips, presto_span_of(&sample, sizeof sample), NULL);
    if (errors->on_skip != NULL)
        errors->on_skip(errors->on_skip_user, epoch, sample, why);
}

presto_status presto__conversion_take_skips(presto__conversion *job, uint64_t end,
                                            uint64_t *skipped_out, presto_error *err) {
    const uint64_t *numbers = (const uint64_t *)(const void *)job->skips.data;
    size_t count = job->skips.bytes / sizeof *numbers, at = job->skips_noted;
    if (job->skips_status < 0)
        return presto_fail_memory(err, job->skips.bytes);
    uint64_t next = at < count ? presto__conversion_number(job, end) : 0;
    while (at < count && numbers[at] < next)
        at++;
    *skipped_out = at - job->skips_noted;
    job->skips_noted = at;
    if (at == count)
        job->skips.bytes = job->skips_noted = 0;
    return PRESTO_OK;
}

presto_status presto__conversion_check_skipped(presto__conversion *job, presto_error *err) {
    double part = job->options->errors.skip_fraction;
    presto_loader_get_stats(job->loader, &job->stats);
    uint64_t skipped = job->skipped_before + job->stats.skipped;
    if (skipped == 0 || (double)skipped <= part * (double)job->sample_count)
        return PRESTO_OK;
    return presto_fail(err, PRESTO_ERR_CORRUPT, PRESTO_NO_OFFSET,
                       "%" PRIu64 " of %" PRIu64
                       " sample%s had to be left out, which is more than the %g %% allowed",
                       skipped, job->sample_count, presto_plural(job->sample_count), part * 100);
}

void presto__conversion_loader_options(presto__conversion *job,
                                       presto_loader_options *options_out) {
    const presto_convert_options *options = job->options;
    presto_loader_options loader;
    presto_loader_options_defaults(&loader);
    loader.threads = options->threads;
    loader.auto_threads = options->auto_threads;
    if (options->auto_threads && loader.threads < presto_auto_threads())
        loader.threads = presto_auto_threads(); /* `threads` of them compute and write shards */
    loader.output = PRESTO_OUTPUT_RECORDS;
    loader.batch_samples = 0;
    loader.order.seed = options->seed;
    loader.memory.prefetch_bytes = job->prefetch_bytes;
    loader.errors = options->errors;
    uint64_t limit = options->errors.skip_limit;
    if (limit != UINT64_MAX)
        loader.errors.skip_limit -= job->skipped_before < limit ? job->skipped_before : limit;
    loader.errors.skip_fraction = 1; /* see presto__conversion_check_skipped */
    loader.errors.on_skip = keep_skip;
    loader.errors.on_skip_user = job;
    loader.codec = &job->codec;
    *options_out = loader;
}

void presto__conversion_fill_result(const presto__conversion *job,
                                    presto_convert_result *result_out) {
    presto_convert_result result = {.skipped = presto__progress_file_left_out(&job->progress),
                                    .source_bytes = job->stats.read_bytes,
                                    .wall_ns = presto__clock_ns() - job->started_ns,
                                    .cpu_ns = presto__clock_process_cpu_ns() - job->cpu_started_ns,
                                    .shards = job->progress.shard_count,
                                    .stored = job->pipeline != NULL ? job->stored : NULL,
                                    .packed_documents = job->regrouped.documents,
                                    .packed_tokens = job->regrouped.tokens,
                                    .dropped_tokens = job->dropped_tokens,
                                    .padded_tokens = job->padded_tokens,
                                    .threads = job->folder == PRESTO__FOLDER_WHOLE || job->is_fed
                                                   ? job->options->threads
                                                   : job->stats.threads};
    presto__sent sent = presto__sent_count();
    if (presto__path_is_remote(job->dir)) {
        result.sent_requests = sent.requests - job->sent_before.requests;
        result.sent_retries = sent.retries - job->sent_before.retries;
        result.sent_bytes = sent.bytes - job->sent_before.bytes;
    }
    /* What is whole does not say why samples are not in it. */
    if (job->folder != PRESTO__FOLDER_WHOLE)
        result.dropped = result.skipped - presto__progress_file_skipped(&job->progress);
    for (size_t i = 0; i < job->progress.shard_count; i++) {
        const presto_dataset_shard *shard = &job->progress.shards[i].described;
        result.samples += shard->records;
        result.stored_bytes += shard->stored_bytes;
        result.raw_bytes += shard->raw_bytes;
    }
    presto__result_give(result_out, &result, sizeof result);
}
