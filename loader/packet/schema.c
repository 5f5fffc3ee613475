/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The features of samples: names, encodings, shapes; of one sample, or widened until all samples
 * fit. Widening is commutative and idempotent, so the result does not depend on the order in which
 * threads see samples.
 */
#include <stdlib.h>

#include <presto/dataset.h>

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

/* By name; of equal ones in the order of the sample, whose specs are in one array. */
static int compare_seen(const void *a, const void *b) {
    const seen *left = a, *right = b;
    int order = presto__compare_names(left->name, right->name);
    return order != 0 ? order : (left->spec > right->spec) - (left->spec < right->spec);
}

static presto_status reserve(presto__schema *schema, size_t more, presto_error *err) {
    size_t capacity = schema->capacity * 2;
    if (schema->capacity - schema->count >= more)
        return PRESTO_OK;
    if (capacity < schema->count + more)
        capacity = schema->count + more;
    presto_feature_spec *features = realloc(schema->features, capacity * sizeof *features);
    if (features == NULL)
        return presto_fail_memory(err, capacity * sizeof *features);
    schema->features = features;
    schema->capacity = capacity;
    return PRESTO_OK;
}

static presto_status copy_name(const seen *feature, char **copy_out, presto_error *err) {
    presto_span name = feature->name;
    if (name.bytes > 0 && memchr(name.data, '\0', name.bytes) != NULL)
        return presto_fail(err, PRESTO_ERR_TYPE, PRESTO_NO_OFFSET,
                           "a feature's name holds a zero byte");
    *copy_out = presto_span_to_text(name);
    return *copy_out != NULL ? PRESTO_OK : presto_fail_memory(err, name.bytes + 1);
}

/* Make specs of the features, which are by name. Of equal names the first one counts. */
static presto_status make_specs(const seen *list, size_t count, presto_feature_spec *specs_out,
                                size_t *count_out, presto_error *err) {
    *count_out = 0;
    for (size_t i = 0; i < count; i++) {
        presto_feature_spec spec = {.encoding = list[i].encoding, .spec = *list[i].spec};
        if (i > 0 && presto_span_equal(list[i - 1].name, list[i].name))
            continue;
        PRESTO_TRY(copy_name(&list[i], &spec.name, err));
        specs_out[(*count_out)++] = spec;
    }
    return PRESTO_OK;
}

/* Insert specs that are by name and not there, from the last one on: each of the others moves once.
 * There is room. */
static void insert(presto__schema *schema, const presto_feature_spec *specs, size_t count) {
    presto_feature_spec *features = schema->features;
    size_t end = schema->count;
    presto__schema rest = *schema;
    for (size_t k = count; k > 0; k--) {
        size_t at;
        rest.count = end;
        (void)presto__schema_find(&rest, presto_span_of_text(specs[k - 1].name), &at);
        memmove(features + at + k, features + at, (end - at) * sizeof *features);
        features[at + k - 1] = specs[k - 1];
        end = at;
    }
    schema->count += count;
}

/* Any number of values: where some samples have none, or some one and others a list. */
static void make_list(presto_tensor_spec *spec) {
    if (spec->rank < 0)
        return;
    spec->rank += spec->rank == 0;
    spec->dims[0] = -1;
}

static void widen_spec(presto_tensor_spec *known, const presto_tensor_spec *spec) {
    if (presto_spec_equal(known, spec))
        return;
    if (known->dtype != spec->dtype)
        known->dtype = PRESTO_DTYPE_UNKNOWN;
    if (known->rank + spec->rank == 1 && known->rank >= 0 && spec->rank >= 0)
        make_list(known);
    else if (known->rank != spec->rank)
        known->rank = -1;
    for (int i = 0; i < known->rank && i < spec->rank; i++)
        if (known->dims[i] != spec->dims[i])
            known->dims[i] = -1;
}

static void widen(presto_feature_spec *feature, const seen *other) {
    bool lacked = feature->encoding == PRESTO_ENCODE_NONE;
    bool lacks = other->encoding == PRESTO_ENCODE_NONE;
    if (lacked) {
        feature->encoding = other->encoding;
        feature->spec = *other->spec;
    }
    if (lacked != lacks)
        make_list(&feature->spec);
    else if (!lacks)
        widen_spec(&feature->spec, other->spec);
}

/* Features of a sample, or of a schema. */
typedef struct seen_list {
    bool is_sample;
    const presto_feature *values;     /* of a sample */
    const presto_feature_spec *specs; /* of a schema */
    size_t count;
} seen_list;

static seen seen_at(const seen_list *list, size_t i) {
    if (list->is_sample)
        return (seen){list->values[i].name, list->values[i].encoding, &list->values[i].tensor.spec};
    const presto_feature_spec *spec = &list->specs[i];
    return (seen){presto_span_of_text(spec->name), spec->encoding, &spec->spec};
}

/* Widen the schema by the features that it has, and count the others. Mostly the list is in the
 * order of the schema. */
static size_t widen_known(presto__schema *schema, const seen_list *list) {
    size_t lacking = 0, at = 0;
    for (size_t i = 0; i < list->count; i++) {
        const seen feature = seen_at(list, i);
        bool is_next =
            at < schema->count && presto_span_is(feature.name, schema->features[at].name);
        if (is_next || presto__schema_find(schema, feature.name, &at))
            widen(&schema->features[at++], &feature);
        else
            lacking++;
    }
    return lacking;
}

/* Add the `count` features that the schema lacks. */
static presto_status add_lacking(presto__schema *schema, const seen_list *list, size_t count,
                                 presto_error *err) {
    size_t found = 0, made = 0, at;
    presto_status status = reserve(schema, count, err);
    seen *lacking = malloc(count * sizeof *lacking);
    presto_feature_spec *specs = malloc(count * sizeof *specs);
    if (status == PRESTO_OK && (lacking == NULL || specs == NULL))
        status = presto_fail_memory(err, count * sizeof *specs);
    for (size_t i = 0; status == PRESTO_OK && found < count; i++) {
        lacking[found] = seen_at(list, i);
        found += !presto__schema_find(schema, lacking[found].name, &at);
    }
    if (status == PRESTO_OK) {
        qsort(lacking, count, sizeof *lacking, compare_seen);
        status = make_specs(lacking, count, specs, &made, err);
    }
    if (status == PRESTO_OK && made > PRESTO_MAX_FEATURES - schema->count)
        status = presto_fail(err, PRESTO_ERR_LIMIT, PRESTO_NO_OFFSET,
                             "the samples have more than %d different features, which is the most "
                             "that a dataset may have",
                             PRESTO_MAX_FEATURES);
    if (status == PRESTO_OK)
        insert(schema, specs, made);
    for (size_t i = 0; status < 0 && i < made; i++)
        free(specs[i].name);
    free(specs);
    free(lacking);
    return status;
}

static presto_status merge(presto__schema *schema, const seen_list *list, presto_error *err) {
    size_t lacking = widen_known(schema, list);
    if (lacking == 0)
        return PRESTO_OK;
    PRESTO_TRY(add_lacking(schema, list, lacking, err));
    (void)widen_known(schema, list); /* where a name is there twice, the second one counts too */
    return PRESTO_OK;
}

presto_status presto__schema_merge_sample(presto__schema *schema, const presto_sample *sample,
                                          presto_error *err) {
    return merge(schema, &(seen_list){true, sample->features, NULL, sample->feature_count}, err);
}

presto_status presto__schema_merge(presto__schema *schema, const presto__schema *other,
                                   presto_error *err) {
    return merge(schema, &(seen_list){false, NULL, other->features, other->count}, err);
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
