/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Are samples alike? The first one says which features there are; the first value of each says its
 * encoding, dtype and rank. Sizes may differ.
 *
 * Most programs give features in the same order each time: a feature is looked for where it was in
 * the sample before.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "writer_internal.h"

#define NAME_SHOWN 200
#define MOST_RANK (PRESTO_MAX_RANK - 1) /* a batch has one dimension more */
#define ANY_LIST (-1) /* rank of a list of an earlier run, of which scalars may have become one */

void presto__alike_done(presto__alike *alike) {
    presto__schema_done(&alike->schema);
    free(alike->order);
    free(alike->touched);
    free(alike->ranks);
    *alike = (presto__alike){0};
}

/* Lists may differ in size, or be scalars that some samples lack. */
static bool is_list(const presto_feature_spec *known) {
    return known->spec.rank == 1 && known->spec.dims[0] == -1;
}

presto_status presto__alike_reserve(presto__alike *alike, presto_error *err) {
    size_t count = alike->schema.count;
    alike->order = calloc(count, sizeof *alike->order);
    alike->touched = calloc(count, sizeof *alike->touched);
    alike->ranks = calloc(count, sizeof *alike->ranks);
    if (alike->order == NULL || alike->touched == NULL || alike->ranks == NULL)
        return presto_fail_memory(err, count * sizeof *alike->touched);
    for (size_t i = 0; i < count; i++) {
        const presto_feature_spec *known = &alike->schema.features[i];
        alike->order[i] = (uint32_t)i;
        alike->ranks[i] = is_list(known) ? ANY_LIST : known->spec.rank;
    }
    return PRESTO_OK;
}

/* A failure that says which sample, and which feature. */
#define fail_feature(err, number, name, ...)                                                       \
    (name_feature((err), (number), (name), __VA_ARGS__), presto_status_pass(PRESTO_ERR_TYPE))

static void name_feature(presto_error *err, uint64_t number, presto_span name, const char *what,
                         const char *more) {
    int bytes = name.bytes < NAME_SHOWN ? (int)name.bytes : NAME_SHOWN;
    presto_error_set(err, PRESTO_ERR_TYPE, PRESTO_NO_OFFSET,
                     "sample %" PRIu64 ": feature '%.*s' %s%s", number, bytes,
                     (const char *)name.data, what, more);
}

static presto_status check_spec(const presto_feature *feature, uint64_t number, presto_error *err) {
    const presto_tensor_spec *spec = &feature->tensor.spec;
    if (feature->encoding == PRESTO_ENCODE_NONE)
        return PRESTO_OK;
    if (spec->rank > MOST_RANK) {
        char excess[64];
        snprintf(excess, sizeof excess, "has %d dimensions, more than %d", spec->rank, MOST_RANK);
        return fail_feature(err, number, feature->name, excess, "");
    }
    bool holds = spec->rank >= 0;
    for (int i = 0; holds && i < spec->rank; i++)
        holds = spec->dims[i] >= 0;
    return holds ? PRESTO_OK : fail_feature(err, number, feature->name, "has no whole shape", "");
}

static const char *shown(const presto_tensor_spec *spec, presto_encoding encoding, char *text,
                         size_t bytes) {
    char dtype[PRESTO_SPEC_TEXT_BYTES];
    snprintf(text, bytes, "%s of encoding %s", presto_spec_format(spec, dtype, sizeof dtype),
             presto_encoding_name(encoding));
    return text;
}

static presto_status fail_kind(const presto_feature *feature, const presto_feature_spec *known,
                               int rank, uint64_t number, presto_error *err) {
    char is[PRESTO_SPEC_TEXT_BYTES + 32], was[PRESTO_SPEC_TEXT_BYTES + 64];
    presto_tensor_spec spec = known->spec;
    spec.rank = rank == 0 ? 0 : spec.rank;
    shown(&feature->tensor.spec, feature->encoding, is, sizeof is);
    snprintf(was, sizeof was, ", but in samples before it is ");
    size_t used = strlen(was);
    shown(&spec, known->encoding, was + used, sizeof was - used);
    char both[sizeof is + sizeof was];
    snprintf(both, sizeof both, "%s%s", is, was);
    return fail_feature(err, number, feature->name, "is ", both);
}

/* Is the value of the kind that is known? `rank`: of those before. */
static presto_status check_kind(const presto_feature *feature, const presto_feature_spec *known,
                                int rank, uint64_t number, presto_error *err) {
    const presto_tensor_spec *spec = &feature->tensor.spec;
    if (feature->encoding == PRESTO_ENCODE_NONE || known->encoding == PRESTO_ENCODE_NONE)
        return PRESTO_OK;
    bool fits = rank == ANY_LIST ? spec->rank == 0 || spec->rank == 1 : spec->rank == rank;
    return fits && feature->encoding == known->encoding && spec->dtype == known->spec.dtype
               ? PRESTO_OK
               : fail_kind(feature, known, rank, number, err);
}

/* Does the value, which is of the kind that is known, say more? */
static bool is_news(const presto_feature *feature, const presto_feature_spec *known) {
    const presto_tensor_spec *spec = &feature->tensor.spec;
    if (known->encoding == PRESTO_ENCODE_NONE)
        return feature->encoding != PRESTO_ENCODE_NONE;
    if (feature->encoding == PRESTO_ENCODE_NONE)
        return known->spec.rank == 0 || known->spec.dims[0] != -1;
    for (int i = 0; i < spec->rank; i++)
        if (known->spec.dims[i] != spec->dims[i] && known->spec.dims[i] != -1)
            return true;
    return false;
}

/* The first feature that the sample, which has no others, lacks. */
static presto_status fail_lacking(const presto__alike *alike, uint64_t number, presto_error *err) {
    size_t i = 0;
    while (i + 1 < alike->schema.count && alike->touched[i] == alike->checks)
        i++;
    return fail_feature(err, number, presto_span_of_text(alike->schema.features[i].name),
                        "is missing: all samples have the same features", "");
}

/* The first feature whose name another one has had. */
static presto_status fail_twice(const presto__schema *names, const presto_sample *sample,
                                uint64_t number, presto_error *err) {
    size_t i = 0, at;
    bool *found = calloc(names->count + 1, sizeof *found);
    if (found == NULL)
        return presto_fail_memory(err, names->count + 1);
    while (presto__schema_find(names, sample->features[i].name, &at) && !found[at]) {
        found[at] = true;
        i++;
    }
    free(found);
    return fail_feature(err, number, sample->features[i].name, "is there twice", "");
}

/* The first sample: nothing is known, and its names differ. */
static presto_status check_first(const presto_sample *sample, uint64_t number, presto_error *err) {
    presto__schema names = {0};
    if (sample->feature_count == 0)
        return presto_fail(err, PRESTO_ERR_TYPE, PRESTO_NO_OFFSET,
                           "sample %" PRIu64 " has no features", number);
    if (sample->feature_count > PRESTO_MAX_FEATURES)
        return presto_fail(err, PRESTO_ERR_LIMIT, PRESTO_NO_OFFSET,
                           "sample %" PRIu64 ": %zu features, more than %d", number,
                           sample->feature_count, PRESTO_MAX_FEATURES);
    for (size_t i = 0; i < sample->feature_count; i++)
        PRESTO_TRY(check_spec(&sample->features[i], number, err));
    presto_status status = presto__schema_merge_sample(&names, sample, err);
    if (status == PRESTO_OK && names.count < sample->feature_count)
        status = fail_twice(&names, sample, number, err);
    presto__schema_done(&names);
    return status;
}

presto_status presto__alike_check(presto__alike *alike, const presto_sample *sample,
                                  uint64_t number, bool *news_out, presto_error *err) {
    const presto__schema *schema = &alike->schema;
    *news_out = schema->count == 0;
    if (schema->count == 0)
        return check_first(sample, number, err);
    alike->checks++;
    for (size_t i = 0; i < sample->feature_count; i++) {
        const presto_feature *feature = &sample->features[i];
        size_t at = i < schema->count ? alike->order[i] : 0;
        if (!presto_span_is(feature->name, schema->features[at].name) &&
            !presto__schema_find(schema, feature->name, &at))
            return fail_feature(err, number, feature->name,
                                "is new: all samples have the features of the first one", "");
        if (alike->touched[at] == alike->checks)
            return fail_feature(err, number, feature->name, "is there twice", "");
        alike->touched[at] = alike->checks;
        alike->order[i] = (uint32_t)at;
        PRESTO_TRY(check_spec(feature, number, err));
        const presto_feature_spec *known = &schema->features[at];
        PRESTO_TRY(check_kind(feature, known, alike->ranks[at], number, err));
        *news_out = *news_out || is_news(feature, known);
        if (known->encoding == PRESTO_ENCODE_NONE) /* if it is not added, the next value says it */
            alike->ranks[at] = feature->tensor.spec.rank;
    }
    return sample->feature_count == schema->count ? PRESTO_OK : fail_lacking(alike, number, err);
}
