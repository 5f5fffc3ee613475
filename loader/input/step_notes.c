/* SPDX-License-Identifier: Apache-2.0 */
/* Notes on features that the steps may be meant to work on, and do not. */
#include <stdio.h>
#include <string.h>

#include <presto/dataset.h>

#include "../../base/paths_internal.h"
#include "../../steps/pipelines_internal.h"
#include "../loader_internal.h"
#include "../source/core/source_internal.h"
#include "input_internal.h"

#define MOST_NAMES 4

/* The first step that leaves the feature behind; NULL: none does. */
static const char *step_that_leaves(const presto_plan *plan, const presto_feature_spec *feature) {
    for (size_t i = 0; plan != NULL && i < presto_plan_step_count(plan); i++)
        if (presto__plan_leaves(plan, i, feature))
            return presto__plan_step_name(plan, i);
    return NULL;
}

/* Masks, boxes and points that stay where they are while the image moves. */
static presto_status note_left(presto_source *source, const presto_plan *const *plans,
                               presto_error *err) {
    char names[256] = "", text[512];
    const char *first = NULL;
    size_t found = 0, used = 0;
    size_t count = source->feature_count + source->seen_count;
    for (size_t f = 0; f < count; f++) {
        const presto_feature_spec *feature = f < source->feature_count
                                                 ? &source->features[f]
                                                 : &source->seen[f - source->feature_count];
        const char *step = NULL, *name = feature->name;
        if (source->main_feature != NULL && strcmp(name, source->main_feature) == 0)
            continue;
        for (size_t p = 0; p < 2 && step == NULL; p++)
            step = step_that_leaves(plans[p], feature);
        /* Four features are one set of boxes. */
        if (step == NULL || presto__ends_with(name, "/ymin") || presto__ends_with(name, "/xmax") ||
            presto__ends_with(name, "/ymax"))
            continue;
        bool are_apart = presto__ends_with(name, "/xmin");
        if (found++ < MOST_NAMES && used < sizeof names)
            used += (size_t)snprintf(
                names + used, sizeof names - used, "%s%.*s%s", found == 1 ? "" : ", ",
                (int)(strlen(name) - (are_apart ? 4 : 0)), name, are_apart ? "*" : "");
        first = first == NULL ? step : first;
    }
    if (found == 0)
        return PRESTO_OK;
    snprintf(text, sizeof text,
             "%s moves the image, but not %s%s: if they belong to it, name them in its 'also' "
             "(masks), 'boxes' or 'keypoints'",
             first, names, found > MOST_NAMES ? ", ..." : "");
    return presto__source_note(source, text, err);
}

/* Values that look as if their channels came first, taken as [height, width, channels]. */
static presto_status note_layout(presto_source *source, const presto_plan *const *plans,
                                 presto_error *err) {
    const presto_tensor_spec spec = presto__source_main_spec(source);
    char shape[PRESTO_SPEC_TEXT_BYTES], text[512];
    bool is_suspect = spec.dtype != PRESTO_STRING && spec.rank == 3 &&
                      (spec.dims[0] == 1 || spec.dims[0] == 3 || spec.dims[0] == 4) &&
                      spec.dims[1] > 4 && spec.dims[2] > 4;
    for (size_t p = 0; p < 2 && is_suspect; p++)
        for (size_t i = 0; plans[p] != NULL && i < presto_plan_step_count(plans[p]); i++) {
            const char *name = presto__plan_step_name(plans[p], i);
            if (presto__plan_step_reads(plans[p], i) != NULL)
                continue;
            if (strcmp(name, "to-layout") == 0)
                return PRESTO_OK;
            if ((presto_plan_step_flags(plans[p], i) & PRESTO_STEP_HWC) == 0)
                continue;
            snprintf(text, sizeof text,
                     "%.64s is %s, which looks like [channels, height, width], but %s takes it as "
                     "[height, width, channels]: put {step: to-layout, layout: hwc} before it",
                     source->main_feature != NULL ? source->main_feature : "the main feature",
                     presto_spec_format(&spec, shape, sizeof shape), name);
            return presto__source_note(source, text, err);
        }
    return PRESTO_OK;
}

presto_status presto__note_steps(presto_source *source, const presto_plan *before,
                                 const presto_plan *after, presto_error *err) {
    const presto_plan *const plans[2] = {before, after};
    PRESTO_TRY(note_left(source, plans, err));
    return note_layout(source, plans, err);
}
