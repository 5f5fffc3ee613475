/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Messages of a ring's writer: whatever they say, a batch that is handed out is within the memory.
 * Input: how many blocks of 64 bytes the memory has, 1 for a failure instead of a batch, the
 * message, the memory.
 */
#include "fuzz.h"

#include <string.h>

#include "ring/ring_internal.h"

static unsigned read_all(const void *data, size_t bytes) {
    unsigned sum = 0;
    for (size_t i = 0; i < bytes; i++)
        sum += ((const uint8_t *)data)[i];
    return sum;
}

static unsigned read_strings(const presto_batch_feature *feature, size_t rows) {
    unsigned sum = 0;
    size_t strings = feature->row_offsets == NULL ? rows : (size_t)feature->row_offsets[rows];
    for (size_t i = 0; i < strings; i++) {
        presto_span string = presto_batch_string(feature, i);
        sum += read_all(string.data, string.bytes);
    }
    return sum;
}

static unsigned read_ragged(const presto_batch_feature *feature, size_t rows) {
    size_t bytes = presto_dtype_bytes(feature->tensor.spec.dtype);
    const uint8_t *values = feature->tensor.data;
    unsigned sum = 0;
    for (size_t row = 0; row < rows; row++) {
        size_t items = 1, at = (size_t)feature->offsets[row];
        if (feature->shapes == NULL)
            items = (size_t)feature->offsets[row + 1] - at;
        for (size_t i = 0; feature->shapes != NULL && i < feature->shape_rank; i++) {
            int64_t dim = feature->shapes[row * feature->shape_rank + i];
            if (dim < 0)
                break;
            items *= (size_t)dim;
        }
        sum += read_all(values + at * bytes, items * bytes);
    }
    return sum;
}

static unsigned check_batch(const presto_batch *batch) {
    unsigned sum = read_all(batch->sample_numbers, batch->rows * sizeof(uint64_t));
    for (size_t i = 0; i < batch->feature_count; i++) {
        const presto_batch_feature *feature = &batch->features[i];
        sum += (unsigned)strlen(feature->name);
        sum += read_all(feature->tensor.data, presto_tensor_bytes(&feature->tensor));
        FUZZ_HOLDS((uintptr_t)feature->tensor.data % PRESTO__RING_ALIGNMENT == 0);
        if (feature->layout == PRESTO_LAYOUT_BYTES)
            sum += read_strings(feature, batch->rows);
        else if (feature->layout == PRESTO_LAYOUT_RAGGED)
            sum += read_ragged(feature, batch->rows);
        else
            FUZZ_HOLDS((size_t)feature->tensor.spec.dims[0] == batch->rows);
    }
    return sum;
}

extern volatile unsigned fuzz_kept;
volatile unsigned fuzz_kept; /* so that what is read is not left out */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes) {
    presto_error err;
    if (bytes < 2 || (size_t)data[0] * PRESTO__RING_ALIGNMENT > bytes - 2)
        return 0;
    size_t memory_bytes = (size_t)data[0] * PRESTO__RING_ALIGNMENT;
    presto_span message = presto_span_of(data + 2, bytes - 2 - memory_bytes);
    if (data[1] == 1) {
        FUZZ_HOLDS(presto__ring_parse_error(message, &err) < 0 && err.status < 0);
        fuzz_kept += (unsigned)(strlen(err.file) + strlen(err.message));
        return 0;
    }
    uint8_t *memory = aligned_alloc(PRESTO__RING_ALIGNMENT, memory_bytes > 0 ? memory_bytes : 64);
    if (memory == NULL)
        return 0;
    memcpy(memory, data + bytes - memory_bytes, memory_bytes);
    presto__ring_item *item = NULL;
    presto_status status = presto__ring_parse(message, memory, memory_bytes, &item, &err);
    FUZZ_HOLDS(status == PRESTO_OK || status == PRESTO_ERR_CORRUPT);
    if (status == PRESTO_OK) {
        fuzz_kept += check_batch(&item->shown);
        presto__ring_item_free(item);
    }
    free(memory);
    return 0;
}
