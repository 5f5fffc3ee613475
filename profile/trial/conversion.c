/* SPDX-License-Identifier: Apache-2.0 */
/* The datasets of trials: each is written by presto_convert, as presto-write does, by the clock. */
#include "../../base/clock_internal.h"
#include "../../loader/loader_internal.h"
#include "../../records/records_internal.h"
#include "../stats/tails_internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../base/file_internal.h"
#include "../../base/folder_internal.h"

/* How often on_trial is called during a conversion. */
#define REPORT_EVERY_NS UINT64_C(200000000)
/* Storage stalls for a part of a second at times. The stall would not be longer if more were
 * converted, but the time of a conversion is multiplied by all samples of the source. */
#define STALL_S_MOST 1

/* Collects presto_convert's progress. */
typedef struct conversion {
    presto__runner *runner;
    const presto_strategy *strategy;
    presto__marks marks;
    bool has_listed;
    uint64_t listed_ns; /* since the start, when the source had been listed */
    uint64_t last_report_ns;
} conversion;

static bool on_progress(void *user, const presto_progress *progress) {
    conversion *job = user;
    if (!job->has_listed)
        job->listed_ns = progress->elapsed_ns;
    job->has_listed = true;
    presto__marks_add(&job->marks, progress->samples_done, progress->elapsed_ns - job->listed_ns);
    uint64_t now_ns = presto__clock_ns();
    if (now_ns - job->last_report_ns < REPORT_EVERY_NS)
        return true;
    job->last_report_ns = now_ns;
    return presto__runner_report(job->runner, job->strategy, NULL, NULL) == PRESTO_OK;
}

/* Sizes of the records of a dataset, framing included. */
static presto_status measure_records(const char *dir, presto__size_tail *tail, presto_error *err) {
    presto_dataset *dataset = NULL;
    presto_shard_options options;
    presto_shard_options_defaults(&options);
    PRESTO_TRY(presto_dataset_open(&dir, 1, &options, &dataset, err));
    presto_status status = PRESTO_OK;
    for (size_t i = 0; status == PRESTO_OK && i < presto_dataset_shard_count(dataset); i++) {
        presto_shard *shard = NULL;
        status = presto_dataset_shard_at(dataset, i, &shard, err);
        if (status == PRESTO_OK)
            status = presto_shard_index(shard, false, NULL, err);
        uint64_t records = status == PRESTO_OK ? presto_shard_records(shard) : 0;
        const uint64_t *offsets = NULL;
        if (status == PRESTO_OK)
            status = presto__shard_offsets(shard, 0, records, &offsets, err);
        for (uint64_t r = 0; status == PRESTO_OK && r < records; r++)
            presto__tail_add(tail, (double)(offsets[r + 1] - offsets[r]));
    }
    presto_dataset_free(dataset);
    return status;
}

static presto_status convert(presto__runner *runner, presto__trial *trial,
                             presto__preparation *preparation_out, presto_error *err) {
    conversion job = {.runner = runner, .strategy = &trial->result.strategy};
    presto_convert_options options;
    presto_convert_options_defaults(&options);
    options.up_to = trial->result.strategy.stored;
    options.codec = trial->result.strategy.codec;
    options.shards = trial->result.strategy.shards;
    options.threads = trial->result.strategy.threads;
    options.limit_samples = runner->samples;
    options.partition = runner->picked;
    options.seed = runner->options->seed;
    options.on_progress = on_progress;
    options.on_progress_user = &job;
    options.pipeline = runner->pipeline;
    options.dir = trial->dir;
    options.errors = presto__trial_errors(runner);
    presto_convert_result result;
    PRESTO_TRY(presto__source_drop_cache(runner->source, err));
    uint64_t start_ns = presto__clock_ns();
    uint64_t start_cpu_ns = presto__clock_process_cpu_ns();
    PRESTO_TRY(presto_convert(runner->paths, runner->path_count, &options, &result, err));
    preparation_out->wall_s = presto__seconds(presto__clock_ns() - start_ns);
    preparation_out->cpu_s = presto__seconds(presto__clock_process_cpu_ns() - start_cpu_ns);
    bool lists_all = runner->sample_paths == NULL;
    preparation_out->list_s = lists_all ? presto__seconds(job.listed_ns) : 0;
    preparation_out->error_s_per_sample = presto__marks_error_s(&job.marks);
    trial->result.samples = result.samples;
    trial->result.stored_bytes = result.stored_bytes;
    trial->result.raw_bytes = result.raw_bytes;
    trial->dir_bytes = result.stored_bytes;
    return PRESTO_OK;
}

static presto_status make_dataset(presto__runner *runner, presto__trial *trial,
                                  presto__preparation *preparation_out, presto_error *err) {
    presto__trial_remove(trial);
    char name[32];
    snprintf(name, sizeof name, "%zu", runner->next_dir++);
    trial->dir = presto__join_path(runner->work_dir, name);
    if (trial->dir == NULL)
        return presto_fail_memory(err, strlen(runner->work_dir) + sizeof name);
    PRESTO_TRY(convert(runner, trial, preparation_out, err));
    return presto__settle(trial->dir, err);
}

/* It was short, and waited longer than it computed. */
static bool may_have_met_a_stall(const presto__trial *trial,
                                 const presto__preparation *preparation) {
    unsigned threads = trial->result.strategy.threads;
    double computed_s = preparation->cpu_s / (threads > 0 ? threads : 1);
    return preparation->wall_s < STALL_S_MOST && preparation->wall_s > 2 * computed_s;
}

/* Of two conversions the shorter one counts. */
static presto_status prepare(presto__runner *runner, presto__trial *trial, presto_error *err) {
    presto__preparation preparation, again;
    PRESTO_TRY(make_dataset(runner, trial, &preparation, err));
    if (trial->preparation_count >= runner->options->preparation_runs)
        return PRESTO_OK;
    if (may_have_met_a_stall(trial, &preparation)) {
        PRESTO_TRY(make_dataset(runner, trial, &again, err));
        if (again.wall_s < preparation.wall_s)
            preparation = again;
    }
    trial->preparations[trial->preparation_count++] = preparation;
    return PRESTO_OK;
}

presto_status presto__trial_prepare(presto__runner *runner, presto__trial *trial,
                                    presto_error *err) {
    if (trial->result.strategy.codec == NULL) {
        trial->result.samples = runner->samples;
        trial->result.stored_bytes = runner->sample_bytes;
        trial->result.raw_bytes = runner->sample_bytes;
        return PRESTO_OK;
    }
    PRESTO_TRY(prepare(runner, trial, err));
    if (trial->record_bytes.count > 0)
        return PRESTO_OK;
    presto__size_tail tail = {.held = 0};
    PRESTO_TRY(measure_records(trial->dir, &tail, err));
    trial->record_bytes = tail.moments;
    trial->record_half = presto__tail_half(&tail);
    return PRESTO_OK;
}
