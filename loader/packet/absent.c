/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Features that a dataset declares as lists, and that all rows of a batch lack: an empty list has
 * no value in a record. The batch has them nevertheless, with rows of no values.
 */
#include "columns_internal.h"

/* The next declared feature that the batch lacks, from rule *rule_io and feature *at_io on; both are
 * by name. *at_io: before which feature it belongs. NULL: there is none. */
static const presto_feature_spec *next_absent(const presto__packet_batch *batch, size_t *rule_io,
                                              size_t *at_io) {
    const presto__rules *rules = batch->packet->rules;
    for (; *rule_io < rules->count; ++*rule_io) {
        const presto__rule *rule = &rules->list[*rule_io];
        int order = 1;
        if (rule->declared == NULL)
            continue;
        while (*at_io < batch->feature_count &&
               (order = strcmp(batch->features[*at_io].name, rule->name)) < 0)
            ++*at_io;
        if (*at_io == batch->feature_count || order != 0)
            return rules->list[(*rule_io)++].declared;
    }
    return NULL;
}

static size_t count_absent(const presto__packet_batch *batch) {
    size_t rule = 0, at = 0, absent = 0;
    while (next_absent(batch, &rule, &at) != NULL)
        absent++;
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
    size_t absent = count_absent(batch), bytes;
    if (absent == 0)
        return PRESTO_OK;
    if (!presto__size_multiply(batch->feature_count + absent, sizeof *batch->features, &bytes))
        return presto_fail_memory(err, UINT64_MAX);
    presto_batch_feature *features = take_zeros(batch, bytes);
    if (features == NULL)
        return presto_fail_memory(err, bytes);
    size_t rule = 0, at = 0, taken = 0, count = 0;
    const presto_feature_spec *declared;
    do {
        declared = next_absent(batch, &rule, &at);
        for (size_t end = declared != NULL ? at : batch->feature_count; taken < end; taken++)
            features[count++] = batch->features[taken];
        if (declared != NULL)
            PRESTO_TRY(describe(batch, declared, &features[count++], err));
    } while (declared != NULL);
    batch->features = features;
    batch->feature_count = count;
    return PRESTO_OK;
}
