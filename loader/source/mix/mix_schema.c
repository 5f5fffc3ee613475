/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the inputs of a mix have in common. Features of one name must be of one dtype, encoding and
 * number of dimensions; a dimension in which they differ is unknown in the mix. Nothing is known of
 * the features of foreign records before they are read, so these are not compared.
 */
#include <stdlib.h>

#include <presto/numbers.h>

#include "mix_internal.h"

/* Two inputs that are compared. */
typedef struct input_pair {
    const presto__mixed_source *first, *second;
} input_pair;

static bool is_wanted(const presto__mix_request *request, const char *name) {
    const char *main = request->inputs[0].source->main_feature;
    for (size_t i = 0; i < request->feature_count; i++)
        if (strcmp(request->features[i], name) == 0)
            return true;
    return request->feature_count == 0 || (main != NULL && strcmp(main, name) == 0);
}

/* The features of an input, by name. */
typedef struct feature_index {
    const presto_feature_spec **list;
    bool *are_in_mix; /* by their number in the input */
} feature_index;

static int compare(const void *a, const void *b) {
    const presto_feature_spec *const *left = a, *const *right = b;
    return strcmp((*left)->name, (*right)->name);
}

static presto_status make_index(const presto_source *source, feature_index *index_out,
                                presto_error *err) {
    size_t count = source->feature_count;
    feature_index index = {.list = calloc(count + 1, sizeof *index.list),
                           .are_in_mix = calloc(count + 1, sizeof *index.are_in_mix)};
    *index_out = index;
    if (index.list == NULL || index.are_in_mix == NULL)
        return presto_fail_memory(err, (count + 1) * sizeof *index.list);
    for (size_t i = 0; i < count; i++)
        index.list[i] = &source->features[i];
    if (count > 1)
        qsort((void *)index.list, count, sizeof *index.list, compare);
    return PRESTO_OK;
}

static void index_done(feature_index *index) {
    free((void *)index->list);
    free(index->are_in_mix);
}

/* NULL: the input lacks it. */
static const presto_feature_spec *find(const feature_index *index, const presto_source *source,
                                       const presto_feature_spec *wanted) {
    const presto_feature_spec **at = NULL;
    if (source->feature_count > 0)
        at = bsearch((const void *)&wanted, (const void *)index->list, source->feature_count,
                     sizeof *index->list, compare);
    return at != NULL ? *at : NULL;
}

static bool ranks_agree(const presto_tensor_spec *a, const presto_tensor_spec *b) {
    return a->rank < 0 || b->rank < 0 || a->rank == b->rank;
}

static bool dtypes_agree(const presto_tensor_spec *a, const presto_tensor_spec *b) {
    return a->dtype == b->dtype || a->dtype == PRESTO_DTYPE_UNKNOWN ||
           b->dtype == PRESTO_DTYPE_UNKNOWN;
}

static presto_status fail_feature(const presto_feature_spec *first,
                                  const presto_feature_spec *second, const input_pair *pair,
                                  presto_error *err) {
    char text[2][PRESTO_SPEC_TEXT_BYTES];
    presto_spec_format(&first->spec, text[0], sizeof text[0]);
    presto_spec_format(&second->spec, text[1], sizeof text[1]);
    bool same_text = strcmp(text[0], text[1]) == 0; /* then the encodings differ */
    return presto_fail(err, PRESTO_ERR_ARGUMENT, PRESTO_NO_OFFSET,
                       "cannot be mixed: feature '%s' is %s%s%s in %s and %s%s%s in %s",
                       first->name, text[0], same_text ? ", stored as " : "",
                       same_text ? presto_encoding_name(first->encoding) : "", pair->first->name,
                       text[1], same_text ? ", stored as " : "",
                       same_text ? presto_encoding_name(second->encoding) : "", pair->second->name);
}

static presto_status fail_absent(const char *name, const presto__mixed_source *has,
                                 const presto__mixed_source *lacks, presto_error *err) {
    return presto_fail(err, PRESTO_ERR_ARGUMENT, PRESTO_NO_OFFSET,
                       "cannot be mixed: %s has the feature '%s', which %s lacks; choose the "
                       "features that both have",
                       has->name, name, lacks->name);
}

/* What both specs say. */
static void merge_spec(presto_tensor_spec *into, const presto_tensor_spec *other) {
    if (into->dtype == PRESTO_DTYPE_UNKNOWN || other->dtype == PRESTO_DTYPE_UNKNOWN)
        into->dtype = PRESTO_DTYPE_UNKNOWN;
    if (into->rank < 0 || other->rank < 0)
        into->rank = -1;
    for (int i = 0; i < into->rank; i++)
        if (into->dims[i] != other->dims[i])
            into->dims[i] = -1;
}

/* Feature i of the mix, which is that of all inputs before this one, becomes that of this one as
 * well. */
static presto_status merge_feature(presto_source *mix, size_t i, const input_pair *pair,
                                   const feature_index *index, presto_error *err) {
    presto_feature_spec *feature = &mix->features[i];
    const presto_source *source = pair->second->source;
    const presto_feature_spec *other = find(index, source, feature);
    if (other == NULL)
        return source->declares_all ? fail_absent(feature->name, pair->first, pair->second, err)
                                    : PRESTO_OK;
    index->are_in_mix[other - source->features] = true;
    if (feature->encoding != other->encoding || !ranks_agree(&feature->spec, &other->spec) ||
        !dtypes_agree(&feature->spec, &other->spec))
        return fail_feature(feature, other, pair, err);
    merge_spec(&feature->spec, &other->spec);
    return PRESTO_OK;
}

/* What nobody has asked for is forgotten if the inputs do not agree. */
static presto_status merge_features(presto_source *mix, const presto__mix_request *request,
                                    const input_pair *pair, const feature_index *index,
                                    presto_error *err) {
    size_t count = mix->feature_count, kept = 0, i = 0;
    presto_status status = PRESTO_OK;
    for (; i < count; i++) {
        status = merge_feature(mix, i, pair, index, err);
        if (status < 0 && is_wanted(request, mix->features[i].name))
            break;
        if (status == PRESTO_OK) {
            mix->features[kept++] = mix->features[i];
            continue;
        }
        free(mix->features[i].name);
        mix->declares_all = false;
        status = PRESTO_OK;
    }
    for (; i < count; i++) /* it has failed: they are freed with the mix */
        mix->features[kept++] = mix->features[i];
    mix->feature_count = kept;
    return status;
}

static presto_status merge_input(presto_source *mix, const presto__mix_request *request,
                                 const presto__mixed_source *input, presto_error *err) {
    const input_pair pair = {&request->inputs[0], input};
    const presto_source *source = input->source;
    bool declared_all = mix->declares_all; /* until this input */
    feature_index index;
    presto_status status = make_index(source, &index, err);
    if (status == PRESTO_OK)
        status = merge_features(mix, request, &pair, &index, err);
    for (size_t i = 0; i < source->feature_count && status == PRESTO_OK; i++) {
        const presto_feature_spec *other = &source->features[i];
        if (index.are_in_mix[i] || !is_wanted(request, other->name))
            continue;
        status = declared_all
                     ? fail_absent(other->name, input, pair.first, err)
                     : presto__source_declare(mix, other->name, other->encoding, &other->spec, err);
    }
    index_done(&index);
    return status;
}

static presto_status copy_labels(presto_source *mix, const presto_source *source,
                                 presto_error *err) {
    mix->label_names = calloc(source->label_count + 1, sizeof *mix->label_names);
    if (mix->label_names == NULL)
        return presto_fail_memory(err, source->label_count * sizeof *mix->label_names);
    for (; mix->label_count < source->label_count; mix->label_count++) {
        mix->label_names[mix->label_count] = strdup(source->label_names[mix->label_count]);
        if (mix->label_names[mix->label_count] == NULL)
            return presto_fail_memory(err, strlen(source->label_names[mix->label_count]) + 1);
    }
    return PRESTO_OK;
}

/* Inputs that name their labels must give the same names to the same numbers. */
static presto_status merge_labels(presto_source *mix, const presto__mixed_source *first,
                                  const presto__mixed_source *input, presto_error *err) {
    const presto_source *source = input->source;
    if (source->label_count == 0)
        return PRESTO_OK;
    if (mix->label_count == 0)
        return copy_labels(mix, source, err);
    for (size_t i = 0; i < mix->label_count && i < source->label_count; i++)
        if (strcmp(mix->label_names[i], source->label_names[i]) != 0)
            return presto_fail(err, PRESTO_ERR_ARGUMENT, PRESTO_NO_OFFSET,
                               "cannot be mixed: label %zu is '%s' in %s and '%s' in %s", i,
                               mix->label_names[i], first->name, source->label_names[i],
                               input->name);
    if (mix->label_count == source->label_count)
        return PRESTO_OK;
    return presto_fail(err, PRESTO_ERR_ARGUMENT, PRESTO_NO_OFFSET,
                       "cannot be mixed: %s has %zu label%s and %s has %zu", first->name,
                       mix->label_count, presto_plural(mix->label_count), input->name,
                       source->label_count);
}

static presto_status merge_main(presto_source *mix, const presto__mixed_source *first,
                                const presto__mixed_source *input, presto_error *err) {
    const char *main = input->source->main_feature;
    if (main == NULL)
        return PRESTO_OK;
    if (mix->main_feature != NULL)
        return strcmp(mix->main_feature, main) == 0
                   ? PRESTO_OK
                   : presto_fail(err, PRESTO_ERR_ARGUMENT, PRESTO_NO_OFFSET,
                                 "cannot be mixed: the main feature is '%s' in %s and '%s' in %s",
                                 mix->main_feature, first->name, main, input->name);
    mix->main_feature = strdup(main);
    return mix->main_feature != NULL ? PRESTO_OK : presto_fail_memory(err, strlen(main) + 1);
}

presto_status presto__mix_schema(presto_source *mix, const presto__mix_request *request,
                                 presto_error *err) {
    const presto_source *first = request->inputs[0].source;
    mix->declares_all = first->declares_all;
    for (size_t i = 0; i < first->feature_count; i++) {
        const presto_feature_spec *feature = &first->features[i];
        PRESTO_TRY(
            presto__source_declare(mix, feature->name, feature->encoding, &feature->spec, err));
    }
    for (size_t k = 0; k < request->count; k++) {
        const presto__mixed_source *input = &request->inputs[k];
        PRESTO_TRY(merge_main(mix, &request->inputs[0], input, err));
        if (k > 0)
            PRESTO_TRY(merge_input(mix, request, input, err));
        PRESTO_TRY(merge_labels(mix, &request->inputs[0], input, err));
        mix->declares_all = mix->declares_all && input->source->declares_all;
    }
    return PRESTO_OK;
}
