/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The features of samples: names, encodings, shapes; of one sample, or widened until all samples
 * fit. Widening is commutative and idempotent, so the result does not depend on the order in which
 * threads see samples.
 */
#include <stdlib.h>

#include "columns_internal.h"

void presto__schema_done(presto__schema *schema) {
    for (size_t i = 0; i < schema->count; i++)
        free(schema->features[i].name);
    free(schema->features);
    *schema = (presto__schema){0};
}

bool presto__schema_find(const presto__schema *schema, presto_span name, size_t *at_out) {
    size_t low = 0, high = schema->count;
    bool is_found = false;
    while (low < high && !is_found) {
        size_t middle = low + (high - low) / 2;
        int order = presto__compare_names(name, presto_span_of_text(schema->features[middle].name));
        is_found = order == 0;
        if (order > 0)
            low = middle + 1;
        else
            high = middle;
    }
    *at_out = is_found ? high : low;
    return is_found;
}

/* What is known of one feature. */
typedef struct seen {
    presto_span name;
    presto_encoding encoding;
    const presto_tensor_spec *spec;
} seen;

static presto_status insert(presto__schema *schema, size_t at, const seen *feature,
                            presto_error *err) {
    presto_span name = feature->name;
    if (name.bytes > 0 && memchr(name.data, '\0', name.bytes) != NULL)
        return presto_fail(err, PRESTO_ERR_TYPE, PRESTO_NO_OFFSET,
                           "a feature's name holds a zero byte");
    if (schema->count == schema->capacity) {
        size_t capacity = schema->capacity == 0 ? 4 : schema->capacity * 2;
        presto_feature_spec *features = realloc(schema->features, capacity * sizeof *features);
        if (features == NULL)
            return presto_fail_memory(err, capacity * sizeof *features);
        schema->features = features;
        schema->capacity = capacity;
    }
    char *copy = presto_span_to_text(name);
    if (copy == NULL)
        return presto_fail_memory(err, name.bytes + 1);
    memmove(schema->features + at + 1, schema->features + at,
            (schema->count - at) * sizeof *schema->features);
    schema->features[at] =
        (presto_feature_spec){.name = copy, .encoding = feature->encoding, .spec = *feature->spec};
    schema->count++;
    return PRESTO_OK;
}

static void widen(presto_feature_spec *feature, const seen *other) {
    const presto_tensor_spec *spec = other->spec;
    if (feature->encoding == PRESTO_ENCODE_NONE) {
        feature->encoding = other->encoding;
        feature->spec = *spec;
        return;
    }
    if (other->encoding == PRESTO_ENCODE_NONE || presto_spec_equal(&feature->spec, spec))
        return;
    if (feature->spec.dtype != spec->dtype)
        feature->spec.dtype = PRESTO_DTYPE_UNKNOWN;
    if (feature->spec.rank != spec->rank)
        feature->spec.rank = -1;
    for (int i = 0; i < feature->spec.rank; i++)
        if (feature->spec.dims[i] != spec->dims[i])
            feature->spec.dims[i] = -1;
}

static presto_status merge(presto__schema *schema, const seen *feature, presto_error *err) {
    size_t at;
    if (!presto__schema_find(schema, feature->name, &at))
        return insert(schema, at, feature, err);
    widen(&schema->features[at], feature);
    return PRESTO_OK;
}

presto_status presto__schema_merge_sample(presto__schema *schema, const presto_sample *sample,
                                          presto_error *err) {
    for (size_t i = 0; i < sample->feature_count; i++) {
        const presto_feature *feature = &sample->features[i];
        PRESTO_TRY(
            merge(schema, &(seen){feature->name, feature->encoding, &feature->tensor.spec}, err));
    }
    return PRESTO_OK;
}

presto_status presto__schema_merge(presto__schema *schema, const presto__schema *other,
                                   presto_error *err) {
    for (size_t i = 0; i < other->count; i++) {
        const presto_feature_spec *feature = &other->features[i];
        presto_span name = presto_span_of_text(feature->name);
        PRESTO_TRY(merge(schema, &(seen){name, feature->encoding, &feature->spec}, err));
    }
    return PRESTO_OK;
}

bool presto__schema_equal(const presto__schema *a, const presto__schema *b) {
    if (a->count != b->count)
        return false;
    for (size_t i = 0; i < a->count; i++)
        if (a->features[i].encoding != b->features[i].encoding ||
            strcmp(a->features[i].name, b->features[i].name) != 0 ||
            !presto_spec_equal(&a->features[i].spec, &b->features[i].spec))
            return false;
    return true;
}
