/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which features are parsed, and which of them batches have. Batches have what the options ask for;
 * steps may need others, which are parsed and then left out.
 */
#include <stdlib.h>
#include <string.h>

#include "../../steps/pipelines_internal.h"
#include "workers_internal.h"

/* Append the names of the features that steps read or move beside the main one, or only count them
 * (`names` NULL); false: it may be any feature. */
static bool list_reads(const presto_plan *plan, const char **names, size_t *count_io) {
    for (size_t i = 0; plan != NULL && i < presto_plan_step_count(plan); i++) {
        if ((presto_plan_step_flags(plan, i) & PRESTO_STEP_READS_FEATURES) != 0)
            return false;
        size_t k = 0;
        const char *reads = presto__plan_step_reads(plan, i);
        for (const char *name = reads != NULL ? reads : presto__plan_step_also(plan, i, k++);
             name != NULL; name = presto__plan_step_also(plan, i, k++)) {
            if (name[0] != '\0' && name[strlen(name) - 1] == '*')
                return false;
            if (names != NULL)
                names[*count_io] = name;
            (*count_io)++;
        }
    }
    return true;
}

/* What is asked for, and what the steps work on. */
static presto_status select_parsed(presto_loader *loader, presto_error *err) {
    const presto_loader_options *options = &loader->options;
    const char *main = loader->source->main_feature;
    size_t count = options->feature_count, most = count + 1;
    (void)list_reads(loader->cache_plan, NULL, &most);
    (void)list_reads(loader->plan, NULL, &most);
    const char **names = calloc(most, sizeof *names);
    if (names == NULL)
        return presto_fail_memory(err, most * sizeof *names);
    for (size_t i = 0; i < count; i++)
        names[i] = options->features[i];
    if (loader->step_count > 0 && main != NULL && count > 0)
        names[count++] = main;
    if (count > 0 &&
        !(list_reads(loader->cache_plan, names, &count) && list_reads(loader->plan, names, &count)))
        count = 0;
    presto_status status =
        presto__selection_make(&loader->selection, loader->source, names, count, err);
    free((void *)names);
    return status;
}

/* A batch has each feature once: who asks for one twice has mistyped another. */
static presto_status check_once(const presto_loader_options *options, presto_error *err) {
    for (size_t i = 1; i < options->feature_count; i++)
        for (size_t j = 0; j < i; j++)
            if (strcmp(options->features[i], options->features[j]) == 0)
                return presto_fail(err, PRESTO_ERR_ARGUMENT, PRESTO_NO_OFFSET,
                                   "feature '%s' is asked for twice", options->features[i]);
    return PRESTO_OK;
}

presto_status presto__loader_open_features(presto_loader *loader, presto_error *err) {
    presto_loader_options *options = &loader->options;
    const presto_plan *last = loader->plan != NULL ? loader->plan : loader->cache_plan;
    PRESTO_TRY(check_once(options, err));
    PRESTO_TRY(presto__selection_make(&loader->shown, loader->source, options->features,
                                      options->feature_count, err));
    PRESTO_TRY(select_parsed(loader, err));
    PRESTO_TRY(presto__rules_make(&loader->rules, loader->source, last, options, err));
    options->features = NULL; /* the caller's, like the pads, and no longer needed */
    options->feature_count = 0;
    options->pads = NULL;
    options->pad_count = 0;
    return PRESTO_OK;
}
