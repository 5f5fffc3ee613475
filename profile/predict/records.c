/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Records of a split to try codecs on: up to RECORD_BYTES of them, evenly spread.
 *
 * Few large records say little of all: one photo is compressed twice as well as another. So there
 * are parts of many more records, too. What a codec makes of all parts, against those of the
 * records that it is tried on, tells whether these are easier or harder than the others.
 */
#include "predict_internal.h"

#include <stdlib.h>
#include <string.h>

#define RECORD_BYTES ((double)(48 << 20))
#define RECORDS_LEAST 4
/* Parts are at least so long: a codec finds nothing in shorter ones. */
#define PARTS_BYTES ((double)(8 << 20))
#define PART_BYTES ((size_t)32 << 10)
#define LOOKS_MOST (PARTS_BYTES / PART_BYTES)
/* Parts are taken if so many times as many records are looked at as are tried; no more than these
 * bytes are read for them. */
#define LOOKS_LEAST 2.0
#define LOOK_READ_BYTES ((double)(1 << 30))

/* ---- parts ---- */

/* Parts of it, evenly spread, or all of it if it is not longer. */
static presto_status take_parts(presto__records *all, presto_span record, size_t most_bytes,
                                presto_error *err) {
    size_t before = all->parts.bytes, count = most_bytes / PART_BYTES;
    if (record.bytes <= most_bytes) {
        PRESTO_TRY(presto_buffer_append(&all->parts, record, err));
        count = 0;
    }
    size_t left = record.bytes - (count > 0 ? PART_BYTES : record.bytes);
    for (size_t i = 0; i < count; i++) {
        size_t at = count > 1 ? left / (count - 1) * i : left / 2;
        PRESTO_TRY(
            presto_buffer_append(&all->parts, presto_span_of(record.data + at, PART_BYTES), err));
    }
    size_t taken = all->parts.bytes - before;
    all->part_ends[all->look_count] = all->parts.bytes;
    all->weights[all->look_count++] = taken > 0 ? (double)record.bytes / (double)taken : 1;
    return PRESTO_OK;
}

/* ---- reading ---- */

typedef struct reading {
    presto__records *all;
    uint64_t stride;   /* every so many records, one is kept */
    bool takes_parts;  /* of every look_stride-th one */
    size_t part_bytes; /* of a record, at most */
    uint64_t next;     /* number of the record in the dataset */
} reading;

static bool has_look(const reading *at) {
    return at->takes_parts && at->next % at->all->look_stride == 0;
}

static presto_status take_record(const reading *at, presto_span record, presto_error *err) {
    presto__records *all = at->all;
    if (has_look(at))
        PRESTO_TRY(take_parts(all, record, at->part_bytes, err));
    if (at->next % at->stride != 0)
        return PRESTO_OK;
    all->starts[all->count] = all->bytes.bytes;
    all->numbers[all->count] = at->next;
    all->sizes[all->count++] = record.bytes;
    return presto_buffer_append(&all->bytes, record, err);
}

static presto_status read_shard(presto_shard *shard, reading *at, presto_error *err) {
    presto_block block = {0};
    presto_status status = PRESTO_OK;
    for (uint64_t r = 0; r < presto_shard_records(shard) && status == PRESTO_OK; r++, at->next++) {
        if (at->next % at->stride != 0 && !has_look(at))
            continue;
        status = presto_shard_fetch(shard, r, 1, &block, err);
        if (status == PRESTO_OK)
            status = take_record(at, block.records[0].payload, err);
    }
    presto_block_done(&block);
    return status;
}

static presto_status read_dataset(presto_dataset *dataset, reading *at, presto_error *err) {
    for (size_t i = 0; i < presto_dataset_shard_count(dataset); i++) {
        presto_shard *shard = NULL;
        PRESTO_TRY(presto_dataset_shard_at(dataset, i, &shard, err));
        PRESTO_TRY(presto_shard_index(shard, false, NULL, err));
        PRESTO_TRY(read_shard(shard, at, err));
    }
    return PRESTO_OK;
}

static size_t common_divisor(size_t a, size_t b) {
    while (b > 0) {
        size_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

/* About the golden section of them, so that any number of steps is spread evenly; it meets all. */
static size_t spreading_step(size_t count) {
    size_t step = (size_t)((double)count * 0.618) + 1;
    while (common_divisor(step, count) > 1)
        step++;
    return step;
}

static uint64_t stride_for(uint64_t total, double wanted) {
    double stride = (double)total / (wanted < 1 ? 1 : wanted);
    uint64_t whole = (uint64_t)stride;
    return whole < 1 ? 1 : whole + ((double)whole < stride);
}

static presto_status make_room(const reading *at, uint64_t total, presto_error *err) {
    presto__records *all = at->all;
    size_t kept = total / at->stride + 1;
    size_t looks = at->takes_parts ? total / all->look_stride + 1 : 1;
    all->sizes = calloc(kept, sizeof *all->sizes);
    all->starts = calloc(kept, sizeof *all->starts);
    all->numbers = calloc(kept, sizeof *all->numbers);
    all->part_ends = calloc(looks, sizeof *all->part_ends);
    all->weights = calloc(looks, sizeof *all->weights);
    if (all->sizes == NULL || all->starts == NULL || all->numbers == NULL ||
        all->part_ends == NULL || all->weights == NULL)
        return presto_fail_memory(err, (kept + looks) * sizeof *all->weights);
    return PRESTO_OK;
}

static double least_of(double a, double b) {
    return a < b ? a : b;
}

/* Which records are kept, and which are looked at. */
static void choose(reading *at, uint64_t total, double each) {
    double wanted = RECORD_BYTES / each, looks = least_of(LOOKS_MOST, LOOK_READ_BYTES / each);
    at->stride = stride_for(total, wanted < RECORDS_LEAST ? RECORDS_LEAST : wanted);
    at->takes_parts =
        least_of((double)total, looks) > LOOKS_LEAST * (double)total / (double)at->stride;
    if (!at->takes_parts)
        return;
    uint64_t stride = stride_for(total, looks);
    at->all->look_stride = stride;
    at->stride = stride_for(at->stride, (double)stride) * stride; /* those kept are looked at */
    at->part_bytes = (size_t)(PARTS_BYTES / ((double)total / (double)stride));
    at->part_bytes = at->part_bytes < PART_BYTES ? PART_BYTES : at->part_bytes;
}

presto_status presto__records_read(const char *dir, double mean_bytes, presto__records *all_out,
                                   presto_error *err) {
    presto_dataset *dataset = NULL;
    presto_shard_options options;
    presto_shard_options_defaults(&options);
    *all_out = (presto__records){.look_stride = 1};
    PRESTO_TRY(presto_dataset_open(&dir, 1, &options, &dataset, err));
    uint64_t total = presto_dataset_records(dataset);
    reading at = {.all = all_out};
    choose(&at, total, mean_bytes < 1 ? 1 : mean_bytes);
    presto_status status = make_room(&at, total, err);
    if (status == PRESTO_OK)
        status = read_dataset(dataset, &at, err);
    presto_dataset_free(dataset);
    all_out->step = spreading_step(all_out->count);
    return status;
}

void presto__records_done(presto__records *all) {
    presto_buffer_done(&all->bytes);
    presto_buffer_done(&all->parts);
    free(all->sizes);
    free(all->starts);
    free(all->numbers);
    free(all->part_ends);
    free(all->weights);
    *all = (presto__records){0};
}
