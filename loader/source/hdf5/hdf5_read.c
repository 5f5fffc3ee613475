/* SPDX-License-Identifier: Apache-2.0 */
/* Values of an HDF5 dataset as float64, read without the library: contiguous ones by one pread,
 * those in chunks chunk by chunk. */
#include <inttypes.h>
#include <stdlib.h>

#include "../../../base/clock_internal.h"
#include "../../../storage/storage_internal.h"
#include "hdf5_internal.h"

void presto__hdf5_dataset_done(presto__hdf5_dataset *dataset) {
    free(dataset->chunks);
    *dataset = (presto__hdf5_dataset){0};
}

void presto__hdf5_cursor_done(presto__hdf5_cursor *cursor) {
    presto_codec_free(cursor->inflate);
    presto_arena_done(&cursor->arena);
    *cursor = (presto__hdf5_cursor){0};
}

static presto_status read_bytes(presto__object_place place, void *data, size_t bytes,
                                presto__read_stats *stats, presto_error *err) {
    size_t got = 0;
    uint64_t start = presto__clock_ns();
    PRESTO_TRY(presto__read_at(place, data, bytes, &got, err));
    stats->read_ns += presto__clock_ns() - start;
    stats->read_bytes += got;
    if (got == bytes)
        return PRESTO_OK;
    presto_status status = presto_fail(err, PRESTO_ERR_TRUNCATED, place.offset + got,
                                       "ends within the values of a dataset");
    presto_error_set_file(err, place.path);
    return status;
}

static presto_status read_contiguous(presto__hdf5_cursor *cursor, const presto__hdf5_range *range,
                                     double *out, presto__read_stats *stats, presto_error *err) {
    const presto__hdf5_number *number = &range->dataset->number;
    size_t value_bytes = presto_dtype_bytes(number->dtype);
    size_t bytes = (size_t)range->count * value_bytes;
    void *data = out;
    bool is_same = number->dtype == PRESTO_FLOAT64 && !number->is_big_endian;
    if (!is_same) {
        cursor->dataset = NULL;
        presto_arena_reset(&cursor->arena);
        data = presto_arena_alloc(&cursor->arena, bytes, 64);
        if (data == NULL)
            return presto_fail_memory(err, bytes);
    }
    const presto__object_place place = {range->object, range->path,
                                        range->dataset->offset + range->first * value_bytes};
    PRESTO_TRY(read_bytes(place, data, bytes, stats, err));
    if (!is_same)
        presto__hdf5_widen(number, data, (size_t)range->count, out);
    return PRESTO_OK;
}

/* Make chunk `i`, which was written, the cursor's. */
static presto_status load_chunk(presto__hdf5_cursor *cursor, const presto__hdf5_range *range,
                                uint64_t i, presto__read_stats *stats, presto_error *err) {
    const presto__hdf5_chunk *chunk = &range->dataset->chunks[i];
    if (cursor->dataset == range->dataset && cursor->chunk == i)
        return PRESTO_OK;
    cursor->dataset = NULL;
    presto_arena_reset(&cursor->arena);
    uint8_t *data = presto_arena_alloc(&cursor->arena, chunk->bytes, 64);
    if (data == NULL)
        return presto_fail_memory(err, chunk->bytes);
    const presto__object_place place = {range->object, range->path, chunk->offset};
    PRESTO_TRY(read_bytes(place, data, chunk->bytes, stats, err));
    const presto__hdf5_stored stored = {range->dataset, i, presto_span_of(data, chunk->bytes)};
    uint64_t start = presto__clock_ns();
    presto_status status = presto__hdf5_unfilter(cursor, &stored, &cursor->values, err);
    stats->decompress_ns += presto__clock_ns() - start;
    if (status < 0) {
        if (err != NULL)
            err->offset = chunk->offset;
        presto_error_set_file(err, range->path);
        return status;
    }
    cursor->dataset = range->dataset;
    cursor->chunk = i;
    return PRESTO_OK;
}

static presto_status read_chunks(presto__hdf5_cursor *cursor, const presto__hdf5_range *range,
                                 double *out, presto__read_stats *stats, presto_error *err) {
    const presto__hdf5_dataset *dataset = range->dataset;
    size_t value_bytes = presto_dtype_bytes(dataset->number.dtype);
    uint64_t end = range->first + range->count;
    for (uint64_t at = range->first; at < end;) {
        uint64_t i = at / dataset->chunk_values;
        uint64_t within = at % dataset->chunk_values;
        uint64_t count = dataset->chunk_values - within;
        if (count > end - at)
            count = end - at;
        if (dataset->chunks[i].offset == PRESTO__HDF5_NO_CHUNK) {
            for (uint64_t k = 0; k < count; k++)
                out[k] = dataset->fill;
        } else {
            PRESTO_TRY(load_chunk(cursor, range, i, stats, err));
            presto__hdf5_widen(&dataset->number, cursor->values.data + within * value_bytes,
                               (size_t)count, out);
        }
        out += count;
        at += count;
    }
    return PRESTO_OK;
}

presto_status presto__hdf5_read(presto__hdf5_cursor *cursor, const presto__hdf5_range *range,
                                double *out, presto__read_stats *stats, presto_error *err) {
    return range->dataset->chunk_values == 0 ? read_contiguous(cursor, range, out, stats, err)
                                             : read_chunks(cursor, range, out, stats, err);
}
