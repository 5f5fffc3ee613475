/* SPDX-License-Identifier: Apache-2.0 */
/* Foreign files whose records are not counted yet: what a reader finds, before it fetches it. */
#include <stdlib.h>

#include "../../../base/clock_internal.h"
#include "../../../base/retry_internal.h"
#include "../../../records/records_internal.h"
#include "source_dataset_internal.h"

static presto_status reserve_walked(presto__dataset_reader *reader, presto_error *err) {
    if (reader->walked_count < reader->walked_capacity)
        return PRESTO_OK;
    size_t capacity = reader->walked_capacity * 2 + 2;
    presto__walked_stretch *walked = realloc(reader->walked, capacity * sizeof *walked);
    if (walked == NULL)
        return presto_fail_memory(err, capacity * sizeof *walked);
    memset(walked + reader->walked_capacity, 0,
           (capacity - reader->walked_capacity) * sizeof *walked);
    reader->walked = walked;
    reader->walked_capacity = capacity;
    return PRESTO_OK;
}

/* What the stretch takes in its block. */
static size_t stretch_bytes(const presto__stretch *stretch) {
    const uint64_t *offsets = (const uint64_t *)(const void *)stretch->offsets_.data;
    return (size_t)(offsets[stretch->count] - offsets[0]);
}

/* One step, which adds to *bytes_io what its block takes. What cannot be read is a record with that
 * fault, and nothing comes after it. */
static presto_status walk_once(presto__dataset_reader *reader, const presto__walk_limits *limits,
                               presto__blocks *blocks, size_t *bytes_io, presto_error *err) {
    unsigned tries = 0;
    presto_error why;
    presto_status status;
    PRESTO_TRY(reserve_walked(reader, err));
    PRESTO_TRY(presto__blocks_reserve(blocks, blocks->count + 1, err));
    presto__walked_stretch *walked = &reader->walked[reader->walked_count];
    presto_block *block = &blocks->items[blocks->count];
    do
        status = presto__dataset_walk_step(reader->dataset, limits, block, &walked->found, &why);
    while (status < 0 && presto__retry_pause(why.sys_errno, &tries));
    if (presto__dataset_is_fatal(status))
        return presto_fail_memory(err, 0);
    if (status == PRESTO_END)
        return PRESTO_END;
    if (status < 0) {
        walked->found.count = 1;
        walked->found.is_last = true;
        walked->found.fault = why;
    }
    bool has_block = walked->found.fault.status >= 0 && walked->found.is_read;
    walked->block = has_block ? blocks->count++ : SIZE_MAX;
    reader->base.stats.read_bytes += has_block ? block->file_bytes_read : 0;
    *bytes_io += has_block ? stretch_bytes(&walked->found) : 0;
    reader->walked_count++;
    return PRESTO_OK;
}

presto_status presto__dataset_walk(presto__reader *base, const presto__walk_wish *wish,
                                   presto__blocks *blocks, size_t *found_out, presto_error *err) {
    presto__dataset_reader *reader = (presto__dataset_reader *)base;
    uint64_t start = presto__clock_ns();
    size_t found = 0, bytes = 0;
    bool goes_on = true;
    reader->walked_count = 0;
    while (goes_on && found < wish->count) {
        if (found > 0 && bytes >= wish->bytes)
            break;
        const presto__walk_limits limits = {wish->count - found, wish->bytes - bytes, base->grower};
        presto_status status = walk_once(reader, &limits, blocks, &bytes, err);
        if (status < 0)
            return status;
        if (status == PRESTO_END)
            break;
        const presto__stretch *last = &reader->walked[reader->walked_count - 1].found;
        found += last->count;
        goes_on = !last->is_last;
    }
    base->stats.read_ns += presto__clock_ns() - start;
    *found_out = found;
    return PRESTO_OK;
}
