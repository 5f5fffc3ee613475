/* SPDX-License-Identifier: Apache-2.0 */
/* What is known of features before there is any row: which are ragged by declaration, and which
 * are padded. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "../../steps/pipelines_internal.h"
#include "columns_internal.h"

void presto__rules_done(presto__rules *rules) {
    for (size_t i = 0; i < rules->count; i++)
        free(rules->list[i].name);
    free(rules->list);
    *rules = (presto__rules){0};
}

static int compare(const void *a, const void *b) {
    const presto__rule *left = a, *right = b;
    return strcmp(left->name, right->name);
}

const presto__rule *presto__rules_find(const presto__rules *rules, presto_span name) {
    size_t low = 0, high = rules->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = presto__compare_names(name, presto_span_of_text(rules->list[middle].name));
        if (order == 0)
            return &rules->list[middle];
        if (order > 0)
            low = middle + 1;
        else
            high = middle;
    }
    return NULL;
}

presto_status presto__rule_check(const presto__rule *rule, const presto_feature *feature,
                                 presto_error *err) {
    const presto_tensor *tensor = &feature->tensor;
    int rank = tensor->spec.rank;
    if (rank < 0 || rank >= PRESTO_MAX_RANK)
        return presto_fail(err, PRESTO_ERR_LIMIT, PRESTO_NO_OFFSET,
                           "a feature of rank %d cannot be batched (at most %d)", rank,
                           PRESTO_MAX_RANK - 1);
    if (rule == NULL || !rule->is_padded || rule->pad_length == 0)
        return PRESTO_OK;
    uint64_t length = rank > 0 ? (uint64_t)tensor->spec.dims[0] : 1;
    if (tensor->spec.dtype == PRESTO_STRING) {
        if (presto_spec_elements(&tensor->spec) != 1)
            return PRESTO_OK; /* cannot be padded: presto__batch_pad reports it */
        length = tensor->strings[0].bytes;
    }
    if (length <= rule->pad_length)
        return PRESTO_OK;
    return presto_fail(err, PRESTO_ERR_LIMIT, PRESTO_NO_OFFSET,
                       "feature \"%.100s\" has a length of %" PRIu64 ", more than the %" PRIu64
                       " that it is to be padded to",
                       rule->name, length, rule->pad_length);
}

/* Add a rule. There is room. */
static presto_status add(presto__rules *rules, const char *name, presto__rule **rule_out,
                         presto_error *err) {
    char *copy = strdup(name);
    if (copy == NULL)
        return presto_fail_memory(err, strlen(name) + 1);
    *rule_out = &rules->list[rules->count++];
    **rule_out = (presto__rule){.name = copy};
    return PRESTO_OK;
}

static bool has_unknown_dims(const presto_tensor_spec *spec) {
    for (int i = 0; i < spec->rank; i++)
        if (spec->dims[i] < 0)
            return true;
    return spec->rank < 0;
}

static bool is_wanted(const presto_loader_options *options, const char *name) {
    bool is_found = options->feature_count == 0;
    for (size_t i = 0; i < options->feature_count && !is_found; i++)
        is_found = strcmp(options->features[i], name) == 0 ||
                   presto__is_lengths_of(name, options->features[i]);
    return is_found;
}

/* Rules for what the source declares with unknown dims. Its names differ. */
static presto_status add_declared(presto__rules *rules, const presto_source *source,
                                  const presto_plan *plan, const presto_loader_options *options,
                                  presto_error *err) {
    const presto_plan *cached = options->cache.plan;
    bool is_whole = plan == NULL || presto_plan_step_count(plan) == 0; /* steps may take some out */
    for (size_t i = 0; i < source->feature_count; i++) {
        const presto_feature_spec *feature = &source->features[i];
        bool is_main = plan != NULL && rules->main_feature != NULL &&
                       strcmp(feature->name, rules->main_feature) == 0;
        presto_tensor_spec spec = feature->spec;
        if (cached != NULL && cached != plan)
            presto_plan_feature(cached, feature->name, &spec);
        if (plan != NULL)
            presto_plan_feature(plan, feature->name, &spec);
        if (is_main || !has_unknown_dims(&spec))
            continue;
        presto__rule *rule;
        PRESTO_TRY(add(rules, feature->name, &rule, err));
        rule->is_ragged = true;
        if (is_whole && is_wanted(options, feature->name))
            rule->declared = feature;
        rules->has_declared = rules->has_declared || rule->declared != NULL;
    }
    return PRESTO_OK;
}

static void sort(presto__rules *rules) {
    if (rules->count > 1)
        qsort(rules->list, rules->count, sizeof *rules->list, compare);
}

/* The rule of this name: one of the first `known`, which are by name, or of those added since, of
 * which there are few. */
static presto_status get(presto__rules *rules, size_t known, const char *name,
                         presto__rule **rule_out, presto_error *err) {
    const presto__rules first = {.list = rules->list, .count = known};
    const presto__rule *found = presto__rules_find(&first, presto_span_of_text(name));
    for (size_t i = known; found == NULL && i < rules->count; i++)
        if (strcmp(rules->list[i].name, name) == 0)
            found = &rules->list[i];
    if (found == NULL)
        return add(rules, name, rule_out, err);
    *rule_out = &rules->list[found - rules->list];
    return PRESTO_OK;
}

static presto_status add_pad(presto__rules *rules, size_t known, const presto_pad *pad,
                             presto_error *err) {
    presto__rule *rule;
    if (!isfinite(pad->value))
        return presto_fail(err, PRESTO_ERR_ARGUMENT, PRESTO_NO_OFFSET,
                           "feature \"%s\" cannot be padded with %g", pad->feature, pad->value);
    PRESTO_TRY(get(rules, known, pad->feature, &rule, err));
    rule->is_padded = true;
    rule->pad_value = pad->value;
    rule->pad_length = pad->length;
    rules->has_pads = true;
    return PRESTO_OK;
}

static presto_status fill(presto__rules *rules, const presto_source *source,
                          const presto_plan *plan, const presto_loader_options *options,
                          presto_error *err) {
    PRESTO_TRY(add_declared(rules, source, plan, options, err));
    sort(rules);
    size_t known = rules->count;
    if (plan != NULL && rules->main_feature != NULL &&
        has_unknown_dims(presto__plan_output(plan))) {
        presto__rule *rule;
        PRESTO_TRY(get(rules, known, rules->main_feature, &rule, err));
        rule->is_ragged = true;
    }
    for (size_t i = 0; i < options->pad_count; i++)
        PRESTO_TRY(add_pad(rules, known, &options->pads[i], err));
    sort(rules);
    return PRESTO_OK;
}

presto_status presto__rules_make(presto__rules *rules_out, const presto_source *source,
                                 const presto_plan *plan, const presto_loader_options *options,
                                 presto_error *err) {
    size_t most = source->feature_count + options->pad_count + 1;
    presto__rules rules = {.list = calloc(most, sizeof *rules.list),
                           .main_feature = source->main_feature};
    if (rules.list == NULL)
        return presto_fail_memory(err, most * sizeof *rules.list);
    presto_status status = fill(&rules, source, plan, options, err);
    if (status < 0)
        presto__rules_done(&rules);
    else
        *rules_out = rules;
    return status;
}

const char *presto_layout_name(presto_layout layout) {
    static const char *const names[] = {"dense", "ragged", "bytes"};
    return (size_t)layout < sizeof names / sizeof names[0] ? names[layout] : "unknown";
}
