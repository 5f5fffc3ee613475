/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Copies records of any content from shards to the sink, block by block. Knows nothing of samples:
 * no steps, no shuffling, no threads.
 */
#include "raw_records.h"

#include <presto/dataset.h>

#include "cli.h"

enum { BLOCK_RECORDS = 1024, BLOCK_BYTES = 1 << 20 };

typedef struct pass {
    const presto_loader_options *options;
    sink *out;
    presto_dataset *dataset;
    uint64_t epoch;
    presto_block block;
    presto_buffer frames;
    raw_records_result result;
} pass;

/* The number of records from `first` on that make about a block, at least one. */
static presto_status block_count(presto_shard *shard, uint64_t first, uint64_t left,
                                 size_t *count_out, presto_error *err) {
    const uint64_t *offsets;
    uint64_t most = presto_shard_records(shard) - first;
    most = most < left ? most : left;
    most = most < BLOCK_RECORDS ? most : BLOCK_RECORDS;
    PRESTO_TRY(presto_shard_offsets(shard, first, most, &offsets, err));
    size_t count = 1;
    while (count < most && offsets[count + 1] - offsets[0] <= BLOCK_BYTES)
        count++;
    *count_out = count;
    return PRESTO_OK;
}

/* Describes the fault of the record. `first_fault` has the details if it is about this one. */
static presto_error describe(const presto_record *record, const presto_shard *shard, uint64_t at,
                             const presto_error *first_fault) {
    presto_error why;
    if (first_fault->status < 0 && first_fault->record == at)
        return *first_fault;
    (void)presto_fail(&why, record->status, record->offset, "%s",
                      presto_status_text(record->status));
    presto_error_set_record(&why, at);
    presto_error_set_file(&why, presto_shard_path(shard));
    return why;
}

static presto_status skip_record(pass *p, uint64_t number, presto_error why, presto_error *err) {
    if (p->options->errors.policy == PRESTO_ON_ERROR_FAIL ||
        p->result.skipped >= p->options->errors.skip_limit) {
        *err = why;
        return why.status;
    }
    p->result.skipped++;
    if (p->options->errors.on_skip != NULL)
        p->options->errors.on_skip(p->options->errors.on_skip_user, p->epoch, number, &why);
    return PRESTO_OK;
}

static presto_status write_block(pass *p, presto_error *err) {
    presto_batch batch = {0};
    batch.frames = presto_buffer_span(&p->frames);
    batch.rows = p->block.record_count;
    return sink_write(p->out, &batch, err);
}

static presto_status pass_shard(pass *p, size_t i, presto_error *err) {
    presto_shard *shard = NULL;
    uint64_t limit =
        p->options->range.limit_samples != 0 ? p->options->range.limit_samples : UINT64_MAX;
    PRESTO_TRY(presto_dataset_shard_at(p->dataset, i, &shard, err));
    uint64_t records = presto_shard_records(shard);
    for (uint64_t first = 0; first < records && p->result.records < limit;) {
        if (cli_interrupted())
            return presto_fail(err, PRESTO_ERR_STOPPED, PRESTO_NO_OFFSET, "stopped by a signal");
        size_t count;
        PRESTO_TRY(block_count(shard, first, limit - p->result.records, &count, err));
        presto_error first_fault = {.status = PRESTO_OK};
        presto_status status = presto_shard_fetch(shard, first, count, &p->block, &first_fault);
        if (status < 0) {
            *err = first_fault;
            return status;
        }
        p->frames.bytes = 0;
        for (size_t r = 0; r < p->block.record_count; r++) {
            const presto_record *record = &p->block.records[r];
            uint64_t number = presto_dataset_shard_first(p->dataset, i) + first + r;
            if (record->status < 0) {
                presto_error why = describe(record, shard, first + r, &first_fault);
                PRESTO_TRY(skip_record(p, number, why, err));
                continue;
            }
            PRESTO_TRY(presto_frame_append(&p->frames, record->payload, err));
            p->result.records++;
        }
        status = write_block(p, err);
        if (status != PRESTO_OK)
            return status;
        first += count;
    }
    return PRESTO_OK;
}

static presto_status check_fraction(const pass *p, presto_error *err) {
    double seen = (double)(p->result.records + p->result.skipped);
    if (p->options->errors.policy == PRESTO_ON_ERROR_FAIL ||
        (double)p->result.skipped <= p->options->errors.skip_fraction * seen)
        return PRESTO_OK;
    return presto_fail(err, PRESTO_ERR_CORRUPT, PRESTO_NO_OFFSET,
                       "%ju of %.0f record%s skipped, more than --on-error allows",
                       (uintmax_t)p->result.skipped, seen,
                       presto_plural(p->result.records + p->result.skipped));
}

static presto_status pass_all(pass *p, presto_error *err) {
    presto_status status = PRESTO_OK;
    size_t shards = presto_dataset_shard_count(p->dataset);
    for (p->epoch = 0; p->epoch < p->options->range.epochs && status == PRESTO_OK; p->epoch++) {
        for (size_t i = 0; i < shards && status == PRESTO_OK; i++)
            status = pass_shard(p, i, err);
        if (status == PRESTO_OK)
            status = check_fraction(p, err);
        if (presto_dataset_records(p->dataset) == 0)
            break;
    }
    return status;
}

presto_status raw_records_run(const char *const *paths, size_t path_count,
                              const presto_stream_options *input, sink *out,
                              raw_records_result *result_out, presto_error *err) {
    const presto_loader_options *options = input->loader;
    pass p = {.options = options, .out = out};
    presto_shard_options shards;
    presto_shard_options_defaults(&shards);
    shards.verify = input->verify;
    shards.tolerate = options->errors.policy == PRESTO_ON_ERROR_SKIP;
    presto_status status = presto_dataset_open(paths, path_count, &shards, &p.dataset, err);
    cli_catch_signals(); /* nothing to clean up until here */
    if (status >= 0)
        status = pass_all(&p, err);
    if (status >= 0)
        *result_out = p.result;
    presto_error warning;
    while (p.dataset != NULL && options->errors.on_warning != NULL &&
           presto_dataset_take_warning(p.dataset, &warning))
        options->errors.on_warning(options->errors.on_warning_user, &warning);
    presto_block_done(&p.block);
    presto_buffer_done(&p.frames);
    presto_dataset_free(p.dataset);
    return status;
}
