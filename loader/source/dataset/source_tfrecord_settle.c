/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Decides what the samples of the source `tfrecord` are: which feature the steps work on, which one
 * is the label, which others come along, and what is known of each. What the pipeline says counts
 * first, then what dataset.json says, then what the first records show. Where none of them tells,
 * the message says which option to give.
 */
#include <stdio.h>
#include <stdlib.h>

#include <presto/numbers.h>

#include "../../../steps/pipelines_internal.h"
#include "source_dataset_internal.h"

#define LIST_BYTES 320

/* What there is to decide with. */
typedef struct settling {
    presto__tfrecord_source *source;
    presto_source *base; /* the same */
    const presto_pipeline *pipeline;
    presto__seen seen;
    const char *label;           /* of the options; NULL: none */
    const presto_option *chosen; /* the option `features` */
    const char *main;            /* borrowed from the options or from `seen` */
    presto_error *err;
} settling;

/* ---- declared features ---- */

static presto_feature_spec *declared(const presto_source *base, const char *name) {
    for (size_t i = 0; i < base->feature_count; i++)
        if (strcmp(base->features[i].name, name) == 0)
            return &base->features[i];
    return NULL;
}

static void forget(presto_source *base, const presto_feature_spec *feature) {
    size_t at = (size_t)(feature - base->features);
    free(feature->name);
    base->feature_count--;
    memmove(base->features + at, base->features + at + 1,
            (base->feature_count - at) * sizeof *base->features);
}

/* ---- messages ---- */

/* Nothing is known of the records' features, because none could be read. */
static bool knows_nothing(const settling *s) {
    return s->seen.records == 0 && s->base->feature_count == 0;
}

static void list_features(const settling *s, char *text_out, size_t bytes) {
    size_t used = 0;
    if (s->seen.count > 0) {
        presto__seen_list(&s->seen, text_out, bytes);
        return;
    }
    text_out[0] = '\0';
    for (size_t i = 0; i < s->base->feature_count && used < bytes; i++)
        used += (size_t)snprintf(text_out + used, bytes - used, "%s%s", i == 0 ? "" : ", ",
                                 s->base->features[i].name);
}

static presto_status fail_missing(const settling *s, const char *name, const char *option) {
    char list[LIST_BYTES];
    list_features(s, list, sizeof list);
    presto_status status = presto_fail(s->err, PRESTO_ERR_ARGUMENT, PRESTO_NO_OFFSET,
                                       "there is no feature '%.64s' for %s; the records have: %s",
                                       name, option, list[0] == '\0' ? "none" : list);
    presto_error_set_file(s->err, presto_dataset_shard_path(s->source->records.dataset, 0));
    return status;
}

static presto_status fail_unknown(const settling *s) {
    char list[LIST_BYTES];
    if (s->seen.damage.status < 0) {
        if (s->err != NULL)
            *s->err = s->seen.damage;
        return s->seen.damage.status;
    }
    list_features(s, list, sizeof list);
    presto_status status =
        presto_fail(s->err, PRESTO_ERR_ARGUMENT, PRESTO_NO_OFFSET,
                    "which feature do the steps work on? Give --feature NAME, or the source's "
                    "option 'feature' in the pipeline; the records have: %s",
                    list[0] == '\0' ? "none" : list);
    presto_error_set_file(s->err, presto_dataset_shard_path(s->source->records.dataset, 0));
    return status;
}

static bool has(const settling *s, const char *name) {
    return declared(s->base, name) != NULL || presto__seen_find(&s->seen, name) != NULL;
}

/* ---- the main feature ---- */

/* The only one beside the label; NULL: there are others. */
static const char *only_feature(const settling *s) {
    const char *found = NULL;
    for (size_t i = 0; i < s->seen.count; i++) {
        const char *name = s->seen.features[i].name;
        if (s->label != NULL && strcmp(name, s->label) == 0)
            continue;
        if (found != NULL)
            return NULL;
        found = name;
    }
    return found;
}

static presto_status find_main(settling *s) {
    const presto_option *option = presto__pipeline_source_option(s->pipeline, "feature");
    const char *usual = presto__pipeline_usual_feature(s->pipeline);
    if (option->is_set)
        s->main = option->text;
    else if (s->base->main_feature != NULL)
        s->main = s->base->main_feature;
    else if (usual != NULL && (knows_nothing(s) || has(s, usual)))
        s->main = usual;
    else
        s->main = only_feature(s);
    if (s->main == NULL && s->base->count == 0)
        return PRESTO_OK; /* there is nothing to work on */
    if (s->main == NULL)
        return fail_unknown(s);
    if (!knows_nothing(s) && !has(s, s->main))
        return fail_missing(s, s->main, "the steps to work on");
    return PRESTO_OK;
}

/* Of numbers or texts: what records show, one value being a scalar or a list. */
static presto_status main_spec(const settling *s, const presto__seen_feature *seen,
                               presto_encoding *encoding_out, presto_tensor_spec *spec_out) {
    PRESTO_TRY(presto__seen_describe(&s->seen, seen, encoding_out, spec_out, s->err));
    if (seen->is_single)
        spec_out->rank = -1;
    else if (spec_out->rank == 1)
        spec_out->dims[0] = -1;
    return PRESTO_OK;
}

/* `said`: what the steps that are behind the records give, as far as it is known. */
static presto_status choose_main_spec(const settling *s, const presto_tensor_spec *said,
                                      presto_encoding *encoding_out, presto_tensor_spec *spec_out) {
    static const presto_tensor_spec text = {.dtype = PRESTO_STRING};
    const presto__seen_feature *seen = presto__seen_find(&s->seen, s->main);
    bool is_number = said->dtype != PRESTO_STRING && said->dtype != PRESTO_DTYPE_UNKNOWN;
    bool is_told = seen != NULL && seen->encoding != PRESTO_ENCODE_NONE;
    if (is_told && seen->encoding != PRESTO_ENCODE_BYTES) {
        return main_spec(s, seen, encoding_out, spec_out);
    } else if (is_number && is_told && !seen->is_tensor) {
        char need[PRESTO_SPEC_TEXT_BYTES];
        return presto_fail(s->err, PRESTO_ERR_TYPE, PRESTO_NO_OFFSET,
                           "the feature '%.64s' holds other bytes than a TensorProto of %s, which "
                           "the steps need: name another feature (--feature) or representation "
                           "(--from)",
                           s->main, presto_spec_format(said, need, sizeof need));
    } else if (is_number) {
        *encoding_out = PRESTO_ENCODE_TENSOR;
        *spec_out = *said;
    } else if (said->dtype == PRESTO_DTYPE_UNKNOWN && is_told && seen->is_tensor) {
        *encoding_out = PRESTO_ENCODE_TENSOR;
        *spec_out = (presto_tensor_spec){.dtype = seen->dtype, .rank = -1};
    } else {
        *encoding_out = PRESTO_ENCODE_BYTES;
        *spec_out = text;
        if (is_told && !seen->is_single)
            return main_spec(s, seen, encoding_out, spec_out);
    }
    return PRESTO_OK;
}

static presto_status declare_main(settling *s) {
    presto_encoding encoding;
    presto_tensor_spec spec;
    if (s->main == NULL)
        return PRESTO_OK;
    char *copy = strdup(s->main);
    if (copy == NULL)
        return presto_fail_memory(s->err, strlen(s->main) + 1);
    free(s->base->main_feature); /* s->main may be this one */
    s->base->main_feature = copy;
    s->main = copy;
    if (declared(s->base, s->main) != NULL)
        return PRESTO_OK; /* dataset.json has it */
    PRESTO_TRY(choose_main_spec(s, presto__pipeline_source_output(s->pipeline), &encoding, &spec));
    return presto__source_declare(s->base, s->main, encoding, &spec, s->err);
}

/* ---- the label ---- */

static presto_status declare_label(settling *s) {
    presto_source *base = s->base;
    if (s->label == NULL || strcmp(s->label, "label") == 0)
        return PRESTO_OK;
    if (!knows_nothing(s) && !has(s, s->label))
        return fail_missing(s, s->label, "the label");
    s->source->label = strdup(s->label);
    if (s->source->label == NULL)
        return presto_fail_memory(s->err, strlen(s->label) + 1);
    const presto_feature_spec *other = declared(base, "label");
    if (other != NULL)
        forget(base, other);
    for (size_t i = 0; i < base->label_count; i++) /* they are those of the other label */
        free(base->label_names[i]);
    base->label_count = 0;
    presto_feature_spec *own = declared(base, s->label);
    if (own != NULL) {
        const presto_feature_spec was = *own;
        PRESTO_TRY(presto__source_declare(base, "label", was.encoding, &was.spec, s->err));
        forget(base, declared(base, s->label));
        return PRESTO_OK;
    }
    const presto__seen_feature *seen = presto__seen_find(&s->seen, s->label);
    if (seen == NULL || seen->encoding == PRESTO_ENCODE_NONE)
        return PRESTO_OK; /* nothing is known of it */
    presto_tensor_spec spec = {.dtype = seen->dtype};
    if (seen->encoding == PRESTO_ENCODE_BYTES)
        spec.dtype = PRESTO_STRING;
    if (!seen->is_single)
        spec = (presto_tensor_spec){.dtype = spec.dtype, .rank = 1, .dims = {-1}};
    return presto__source_declare(base, "label", seen->encoding, &spec, s->err);
}

/* ---- those that come along ---- */

static bool is_chosen(const settling *s, const char *name) {
    if (!s->chosen->is_set || (s->main != NULL && strcmp(name, s->main) == 0))
        return true;
    for (size_t i = 0; i < s->chosen->text_count; i++)
        if (strcmp(s->chosen->texts[i], name) == 0)
            return true;
    return strcmp(name, "label") == 0 && s->label != NULL;
}

/* Which of them may have any number of values is declared: then one value is a list, too. */
static presto_status declare_seen(settling *s, const presto__seen_feature *seen) {
    presto_tensor_spec spec;
    presto_encoding encoding;
    bool is_label = s->source->label != NULL &&
                    (strcmp(seen->name, s->label) == 0 || strcmp(seen->name, "label") == 0);
    if (is_label || seen->encoding == PRESTO_ENCODE_NONE || declared(s->base, seen->name) != NULL ||
        !is_chosen(s, seen->name))
        return PRESTO_OK;
    if (presto__seen_is_tensor(seen))
        return presto__source_declare(s->base, seen->name, PRESTO_ENCODE_TENSOR, &seen->spec,
                                      s->err);
    PRESTO_TRY(presto__seen_describe(&s->seen, seen, &encoding, &spec, s->err));
    if (seen->is_single && !s->chosen->is_set)
        return presto__source_saw(s->base, seen->name, &spec, s->err);
    if (spec.rank == 1)
        spec.dims[0] = -1;
    return presto__source_declare(s->base, seen->name, encoding, &spec, s->err);
}

/* A chosen feature that no record has shown may still come. */
static presto_status declare_chosen(settling *s, const char *name) {
    static const presto_tensor_spec unknown = {.rank = -1};
    char note[LIST_BYTES];
    bool is_label = s->label != NULL && (strcmp(name, s->label) == 0 || strcmp(name, "label") == 0);
    if (is_label || declared(s->base, name) != NULL)
        return PRESTO_OK;
    if (s->seen.records > 0) {
        snprintf(note, sizeof note, "no feature '%.100s' in the first %zu record%s", name,
                 s->seen.records, presto_plural(s->seen.records));
        PRESTO_TRY(presto__source_note(s->base, note, s->err));
    }
    return presto__source_declare(s->base, name, PRESTO_ENCODE_NONE, &unknown, s->err);
}

static presto_status declare_others(settling *s) {
    presto_source *base = s->base;
    for (size_t i = base->feature_count; i-- > 0;)
        if (!is_chosen(s, base->features[i].name))
            forget(base, &base->features[i]);
    for (size_t i = 0; i < s->seen.count; i++)
        PRESTO_TRY(declare_seen(s, &s->seen.features[i]));
    for (size_t i = 0; i < s->chosen->text_count; i++)
        PRESTO_TRY(declare_chosen(s, s->chosen->texts[i]));
    s->source->is_chosen = s->chosen->is_set;
    base->declares_all = base->declares_all || s->chosen->is_set;
    return PRESTO_OK;
}

/* ---- what the pipeline says of its own source ---- */

/* Where the records have a feature `label`, nobody misses the label. */
static presto_status note_unused(const settling *s) {
    char list[LIST_BYTES] = "", note[2 * LIST_BYTES];
    const char *name;
    size_t used = 0, count = 0;
    for (size_t i = 0; (name = presto__pipeline_unused_option(s->pipeline, i)) != NULL; i++) {
        bool is_there = strcmp(name, "label") == 0 && has(s, "label");
        if (!is_there && used < sizeof list)
            used += (size_t)snprintf(list + used, sizeof list - used, "%s%s",
                                     count++ == 0 ? "" : ", ", name);
    }
    if (count == 0)
        return PRESTO_OK;
    snprintf(note, sizeof note,
             "records take the place of the pipeline's source (--from): its option%s %s %s not "
             "used; --set source.OPTION=VALUE gives an option of the records",
             presto_plural(count), list, count == 1 ? "is" : "are");
    return presto__source_note(s->base, note, s->err);
}

/* ---- all ---- */

/* Does dataset.json say all that the pipeline asks for? */
static bool needs_no_look(const settling *s) {
    const presto_source *base = s->base;
    const presto_option *feature = presto__pipeline_source_option(s->pipeline, "feature");
    const char *main = feature->is_set ? feature->text : base->main_feature;
    return presto_dataset_is_ours(s->source->records.dataset) && main != NULL &&
           declared(base, main) != NULL && (s->label == NULL || declared(base, s->label) != NULL);
}

/* A text is the name of a class, and becomes its number: of `spec`, the label's. */
static presto_status take_texts(const settling *s, presto_feature_spec *spec) {
    if (spec->encoding == PRESTO_ENCODE_INT64 || spec->encoding == PRESTO_ENCODE_NONE)
        return PRESTO_OK;
    if (spec->encoding != PRESTO_ENCODE_BYTES || spec->spec.rank != 0)
        return presto_fail(s->err, PRESTO_ERR_TYPE, PRESTO_NO_OFFSET,
                           "source.classes names the numbers of the label, but that holds neither "
                           "whole numbers nor a text");
    spec->encoding = PRESTO_ENCODE_INT64;
    spec->spec = (presto_tensor_spec){.dtype = PRESTO_INT64};
    return PRESTO_OK;
}

/* The names of the label's numbers. */
static presto_status name_classes(settling *s) {
    presto__classes *classes = &s->source->classes;
    presto_status status = PRESTO_OK;
    presto_feature_spec *label = declared(s->base, "label");
    PRESTO_TRY(presto__classes_read(presto__pipeline_source_option(s->pipeline, "classes"), classes,
                                    s->err));
    if (classes->count == 0)
        return PRESTO_OK;
    if (s->label == NULL && s->base->count != 0)
        status = presto_fail(s->err, PRESTO_ERR_ARGUMENT, PRESTO_NO_OFFSET,
                             "source.classes is given, but not which feature is the label: "
                             "source.label names it");
    if (status >= 0 && label != NULL)
        status = take_texts(s, label);
    s->source->has_names = s->base->label_count > 0;
    if (status >= 0)
        status = presto__classes_check(classes, s->base, s->err);
    if (status < 0)
        presto_error_set_file(s->err, presto_dataset_shard_path(s->source->records.dataset, 0));
    return status;
}

static presto_status settle(settling *s) {
    if (!needs_no_look(s))
        PRESTO_TRY(presto__seen_look(s->base, s->source->inner, &s->seen, s->err));
    PRESTO_TRY(find_main(s));
    PRESTO_TRY(declare_main(s));
    PRESTO_TRY(declare_label(s));
    PRESTO_TRY(name_classes(s));
    PRESTO_TRY(note_unused(s));
    return declare_others(s);
}

presto_status presto__tfrecord_settle(presto__tfrecord_source *source,
                                      const presto_pipeline *pipeline, presto_error *err) {
    const char *label = presto__pipeline_source_option(pipeline, "label")->text;
    settling s = {.source = source,
                  .base = &source->records.base,
                  .pipeline = pipeline,
                  .label = strcmp(label, "none") == 0 ? NULL : label,
                  .chosen = presto__pipeline_source_option(pipeline, "features"),
                  .err = err};
    /* A dataset's own label stays the label. */
    if (s.label == NULL && declared(s.base, "label") != NULL)
        s.label = "label";
    presto_status status = settle(&s);
    presto__seen_done(&s.seen);
    return status;
}
