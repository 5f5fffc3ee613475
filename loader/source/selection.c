/* SPDX-License-Identifier: Apache-2.0 */
/* Which features of a sample are wanted. */
#include <stdlib.h>

#include "source_internal.h"

void presto__selection_done(presto__selection *selection) {
    for (size_t i = 0; i < selection->count; i++)
        free(selection->features[i].name);
    free(selection->features);
    *selection = (presto__selection){0};
}

/* A name is added once, however often it was asked for. */
static presto_status add(presto__selection *selection, const presto_source *source,
                         const char *name, presto_error *err) {
    presto_feature_spec *feature = &selection->features[selection->count];
    *feature = (presto_feature_spec){.encoding = PRESTO_ENCODE_NONE, .spec = {.rank = -1}};
    for (size_t i = 0; i < selection->count; i++)
        if (strcmp(selection->features[i].name, name) == 0)
            return PRESTO_OK;
    for (size_t i = 0; i < source->feature_count; i++)
        if (strcmp(source->features[i].name, name) == 0)
            *feature = source->features[i];
    feature->name = strdup(name);
    if (feature->name == NULL)
        return presto_fail_memory(err, strlen(name) + 1);
    selection->count++;
    return PRESTO_OK;
}

static int compare(const void *a, const void *b) {
    const presto_feature_spec *left = a, *right = b;
    return strcmp(left->name, right->name);
}

static bool includes_all(const presto__selection *selection, const presto_source *source) {
    size_t found = 0;
    for (size_t i = 0; i < source->feature_count; i++)
        for (size_t j = 0; j < selection->count; j++)
            found += strcmp(source->features[i].name, selection->features[j].name) == 0;
    return found >= source->feature_count;
}

presto_status presto__selection_make(presto__selection *selection_out, const presto_source *source,
                                     const char *const *names, size_t name_count,
                                     presto_error *err) {
    if (name_count == 0) {
        *selection_out = (presto__selection){.is_all = true};
        return PRESTO_OK;
    }
    presto__selection selection = {.features = calloc(name_count, sizeof *selection.features)};
    if (selection.features == NULL)
        return presto_fail_memory(err, name_count * sizeof *selection.features);
    presto_status status = PRESTO_OK;
    for (size_t i = 0; i < name_count && status == PRESTO_OK; i++)
        status = add(&selection, source, names[i], err);
    if (status < 0) {
        presto__selection_done(&selection);
        return status;
    }
    if (source->declares_all && includes_all(&selection, source)) {
        presto__selection_done(&selection);
        selection.is_all = true; /* all features: the key of a disk cache stays the same */
    }
    if (selection.count > 0)
        qsort(selection.features, selection.count, sizeof *selection.features, compare);
    *selection_out = selection;
    return PRESTO_OK;
}

bool presto__selection_has(const presto__selection *selection, presto_span name) {
    for (size_t i = 0; i < selection->count; i++)
        if (presto_span_is(name, selection->features[i].name))
            return true;
    return selection->is_all;
}

void presto__selection_pick(const presto__selection *selection, presto_sample *sample) {
    size_t kept = 0;
    for (size_t i = 0; i < sample->feature_count; i++)
        if (presto__selection_has(selection, sample->features[i].name))
            sample->features[kept++] = sample->features[i];
    sample->feature_count = kept;
}
