/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Features that a dataset declares as lists, and that all rows of a batch lack: an empty list has
 * no value in a record. The batch has them nevertheless, with rows of no values.
 */
#include "columns_internal.h"

static const presto_batch_feature *find(const presto__packet_batch *batch, const char *name) {
    for (size_t i = 0; i < batch->feature_count; i++)
        if (strcmp(batch->features[i].name, name) == 0)
            return &batch->features[i];
    return NULL;
}

static size_t count_absent(const presto__packet_batch *batch) {
    const presto__rules *rules = batch->packet->rules;
    size_t absent = 0;
    for (size_t i = 0; i < rules->count; i++)
        absent += rules->list[i].declared != NULL && find(batch, rules->list[i].name) == NULL;
    return absent;
}

/* Zeros: no value, and rows that end where they begin. */
static void *take_zeros(presto__packet_batch *batch, size_t bytes) {
    void *zeros = presto__slab_alloc(&batch->packet->slab, bytes, bytes);
    return zeros != NULL ? memset(zeros, 0, bytes) : NULL;
}

/* As rows with values would be: an array where a batch is one row, else lists. */
static presto_status describe(presto__packet_batch *batch, const presto_feature_spec *declared,
                              presto_batch_feature *feature, presto_error *err) {
    size_t name_bytes = strlen(declared->name) + 1;
    size_t ends_bytes = (batch->shown.rows + 1) * sizeof(int64_t);
    int64_t *ends = take_zeros(batch, ends_bytes);
    void *values = take_zeros(batch, PRESTO__BATCH_ALIGN); /* none of them is a value */
    char *name = take_zeros(batch, name_bytes);            /* outlives the source */
    if (ends == NULL || values == NULL || name == NULL)
        return presto_fail_memory(err, ends_bytes);
    memcpy(name, declared->name, name_bytes);
    bool is_bytes = declared->spec.dtype == PRESTO_STRING;
    bool is_row = batch->packet->batch_rows == 1;
    *feature = (presto_batch_feature){
        .name = name,
        .encoding = declared->encoding,
        .layout = is_bytes ? PRESTO_LAYOUT_BYTES
                  : is_row ? PRESTO_LAYOUT_DENSE
                           : PRESTO_LAYOUT_RAGGED,
        .tensor = {.spec = {.dtype = is_bytes ? PRESTO_UINT8 : declared->spec.dtype, .rank = 1},
                   .data = values},
        .offsets = is_bytes || !is_row ? ends : NULL,
        .row_offsets = is_bytes ? ends : NULL};
    if (is_row && !is_bytes) {
        feature->tensor.spec.rank = 2;
        feature->tensor.spec.dims[0] = 1;
    }
    return PRESTO_OK;
}

presto_status presto__batch_add_absent(presto__packet_batch *batch, presto_error *err) {
    const presto__rules *rules = batch->packet->rules;
    size_t absent = count_absent(batch), count = batch->feature_count, bytes;
    if (absent == 0)
        return PRESTO_OK;
    if (!presto__size_multiply(count + absent, sizeof *batch->features, &bytes))
        return presto_fail_memory(err, UINT64_MAX);
    presto_batch_feature *features = take_zeros(batch, bytes);
    if (features == NULL)
        return presto_fail_memory(err, bytes);
    if (count > 0)
        memcpy(features, batch->features, count * sizeof *features);
    for (size_t i = 0; i < rules->count; i++) {
        const presto_feature_spec *declared = rules->list[i].declared;
        if (declared == NULL || find(batch, declared->name) != NULL)
            continue;
        size_t at = 0; /* by name, bytewise */
        while (at < count && strcmp(features[at].name, declared->name) < 0)
            at++;
        memmove(features + at + 1, features + at, (count - at) * sizeof *features);
        PRESTO_TRY(describe(batch, declared, &features[at], err));
        count++;
        if (batch->shown.main_feature != SIZE_MAX && batch->shown.main_feature >= at)
            batch->shown.main_feature++;
    }
    batch->features = features;
    batch->feature_count = count;
    return PRESTO_OK;
}
