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

static int compare(const void *a, const void *b) {
    const presto_feature_spec *left = a, *right = b;
    return strcmp(left->name, right->name);
}

/* SIZE_MAX: it is not there. */
static size_t find(const presto__selection *selection, presto_span name) {
    size_t low = 0, high = selection->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        presto_span text = presto_span_of_text(selection->features[middle].name);
        int order = presto__compare_names(name, text);
        if (order == 0)
            return middle;
        if (order > 0)
            low = middle + 1;
        else
            high = middle;
    }
    return SIZE_MAX;
}

static presto_status add_name(presto__selection *selection, const char *name, presto_error *err) {
    presto_feature_spec feature = {.encoding = PRESTO_ENCODE_NONE, .spec = {.rank = -1}};
    feature.name = strdup(name);
    if (feature.name == NULL)
        return presto_fail_memory(err, strlen(name) + 1);
    selection->features[selection->count++] = feature;
    return PRESTO_OK;
}

bool presto__is_lengths_of(const char *name, const char *list) {
    size_t bytes = strlen(list);
    return strncmp(name, list, bytes) == 0 && strcmp(name + bytes, PRESTO__LENGTHS_SUFFIX) == 0;
}

/* The steps of some lists end where their lengths say: one comes with the other. */
static presto_status copy_names(presto__selection *selection, const presto_source *source,
                                const char *const *names, size_t count, presto_error *err) {
    for (size_t i = 0; i < count; i++) {
        PRESTO_TRY(add_name(selection, names[i], err));
        for (size_t j = 0; j < source->feature_count; j++) {
            const char *name = source->features[j].name;
            if (presto__is_lengths_of(name, names[i]))
                PRESTO_TRY(add_name(selection, name, err));
        }
    }
    return PRESTO_OK;
}

/* By name; a name stays once, however often it was asked for. */
static void sort(presto__selection *selection) {
    presto_feature_spec *features = selection->features;
    size_t kept = 0;
    qsort(features, selection->count, sizeof *features, compare);
    for (size_t i = 0; i < selection->count; i++) {
        if (kept > 0 && strcmp(features[kept - 1].name, features[i].name) == 0)
            free(features[i].name);
        else
            features[kept++] = features[i];
    }
    selection->count = kept;
}

/* Take over what the source declares. True: its features are all among them. */
static bool take_specs(presto__selection *selection, const presto_source *source) {
    size_t found = 0;
    for (size_t i = 0; i < source->feature_count; i++) {
        const presto_feature_spec *declared = &source->features[i];
        size_t at = find(selection, presto_span_of_text(declared->name));
        if (at == SIZE_MAX)
            continue;
        selection->features[at].encoding = declared->encoding;
        selection->features[at].spec = declared->spec;
        found++;
    }
    return found >= source->feature_count;
}

presto_status presto__selection_make(presto__selection *selection_out, const presto_source *source,
                                     const char *const *names, size_t name_count,
                                     presto_error *err) {
    if (name_count == 0) {
        *selection_out = (presto__selection){.is_all = true};
        return PRESTO_OK;
    }
    presto__selection selection = {.features = calloc(2 * name_count, sizeof *selection.features)};
    if (selection.features == NULL)
        return presto_fail_memory(err, 2 * name_count * sizeof *selection.features);
    presto_status status = copy_names(&selection, source, names, name_count, err);
    if (status < 0) {
        presto__selection_done(&selection);
        return status;
    }
    sort(&selection);
    if (take_specs(&selection, source) && source->declares_all) {
        presto__selection_done(&selection);
        selection.is_all = true; /* all features: the key of a disk cache stays the same */
    }
    *selection_out = selection;
    return PRESTO_OK;
}

bool presto__selection_has(const presto__selection *selection, presto_span name) {
    return selection->is_all || find(selection, name) != SIZE_MAX;
}

void presto__selection_pick(const presto__selection *selection, presto_sample *sample) {
    size_t kept = 0, next = 0;
    for (size_t i = 0; i < sample->feature_count; i++) {
        presto_span name = sample->features[i].name;
        size_t at = next; /* mostly these, too, are by name */
        if (at >= selection->count || !presto_span_is(name, selection->features[at].name))
            at = find(selection, name);
        if (at == SIZE_MAX)
            continue;
        sample->features[kept++] = sample->features[i];
        next = at + 1;
    }
    sample->feature_count = kept;
}
