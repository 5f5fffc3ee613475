/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The raw source `tfrecord`: records that others wrote, or a dataset of ours, as the input of a
 * pipeline. Where the records are, how they are read and what their damage is called is the concern
 * of source_dataset*.c. Here, a sample gets the features that the pipeline asks for.
 * source_tfrecord_look.c looks into the first records; source_tfrecord_settle.c decides.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "../../../base/tensor_internal.h"
#include "../../../steps/pipelines_internal.h"
#include "source_dataset_internal.h"

/* A feature with a list of any length. */
typedef struct list_feature {
    const presto_feature_spec *spec;
    uint64_t record; /* that it was found in last */
    size_t at;       /* where */
} list_feature;

/* What one reader delivers. */
typedef struct record_view {
    const char *label;   /* as in the source; NULL: not renamed, or not wanted */
    list_feature *lists; /* by name; behind the specs */
    size_t list_count;
    uint64_t records; /* so far */
    size_t spec_count;
    presto_feature_spec specs[]; /* by the names in the records, which are borrowed */
} record_view;

static const presto__tfrecord_source *source_of(const presto__reader *reader) {
    return (const presto__tfrecord_source *)(const void *)reader->source;
}

/* ---- samples ---- */

/* Rename the label. A feature of the record that is called so itself is left out. */
static presto_status name_label(const record_view *view, presto_sample *sample, presto_error *err) {
    bool found = false;
    size_t kept = 0;
    for (size_t i = 0; i < sample->feature_count; i++) {
        presto_feature *feature = &sample->features[i];
        if (presto_span_is(feature->name, view->label)) {
            feature->name = presto_span_of_text("label");
            found = presto__feature_has_value(feature);
        } else if (presto_span_is(feature->name, "label")) {
            continue;
        }
        sample->features[kept++] = *feature;
    }
    sample->feature_count = kept;
    if (found)
        return PRESTO_OK;
    return presto_fail(err, PRESTO_ERR_TYPE, PRESTO_NO_OFFSET,
                       "the record has no value of \"%.100s\", which the label is to be",
                       view->label);
}

/* A text names a class; so does a number, if classes are called by numbers. */
static presto_status class_of(const presto__tfrecord_source *source, const presto_feature *label,
                              int64_t *number_out, presto_error *err) {
    const presto__classes *classes = &source->classes;
    char digits[32];
    if (label->encoding == PRESTO_ENCODE_BYTES)
        return presto__classes_number(classes, label->tensor.strings[0], number_out, err);
    memcpy(number_out, label->tensor.data, sizeof *number_out);
    if (source->has_names || !classes->are_numeric)
        return presto__classes_check_number(classes, *number_out, err);
    snprintf(digits, sizeof digits, "%" PRId64, *number_out);
    return presto__classes_number(classes, presto_span_of_text(digits), number_out, err);
}

/* Without any value the label is missing, which is not told here. */
static presto_status number_label(const presto__tfrecord_source *source, presto_arena *arena,
                                  presto_sample *sample, presto_error *err) {
    presto_error why;
    size_t at = presto__sample_find(sample, presto_span_of_text("label"));
    presto_feature *feature = at == SIZE_MAX ? NULL : &sample->features[at];
    if (feature == NULL || !presto__feature_has_value(feature))
        return PRESTO_OK;
    bool is_told =
        feature->encoding == PRESTO_ENCODE_BYTES || feature->encoding == PRESTO_ENCODE_INT64;
    if (!is_told || feature->tensor.spec.rank != 0)
        return presto_fail(err, PRESTO_ERR_TYPE, PRESTO_NO_OFFSET,
                           "the label is neither a whole number nor a text, which source.classes "
                           "needs");
    int64_t *number = presto_arena_alloc(arena, sizeof *number, _Alignof(int64_t));
    if (number == NULL)
        return presto_fail_memory(err, sizeof *number);
    if (class_of(source, feature, number, &why) < 0) /* as of what stands in the members of tars */
        return presto_fail(err, PRESTO_ERR_CORRUPT, PRESTO_NO_OFFSET, "%s", why.message);
    feature->encoding = PRESTO_ENCODE_INT64;
    feature->tensor = (presto_tensor){.spec = {.dtype = PRESTO_INT64}, .data = number};
    return PRESTO_OK;
}

static list_feature *find_list(const record_view *view, presto_span name) {
    size_t low = 0, high = view->list_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        list_feature *list = &view->lists[middle];
        int order = presto__compare_names(name, presto_span_of_text(list->spec->name));
        if (order == 0)
            return list;
        if (order > 0)
            low = middle + 1;
        else
            high = middle;
    }
    return NULL;
}

static presto_feature empty_list(const presto_feature_spec *spec) {
    return (presto_feature){.name = presto_span_of_text(spec->name),
                            .encoding = spec->encoding,
                            .tensor = {.spec = {.dtype = spec->spec.dtype, .rank = 1}}};
}

/* Where it has no value, the list is empty. */
static void take_list(const record_view *view, list_feature *list, presto_feature *feature) {
    list->record = view->records;
    if (!presto__feature_has_value(feature))
        *feature = empty_list(list->spec);
}

/* Returns how many lists the sample has. They are mostly where they were in the record before. */
static size_t find_lists(record_view *view, presto_sample *sample) {
    size_t found = 0;
    view->records++;
    for (size_t i = 0; i < view->list_count; i++) {
        list_feature *list = &view->lists[i];
        if (list->at >= sample->feature_count ||
            !presto_span_is(sample->features[list->at].name, list->spec->name))
            continue;
        take_list(view, list, &sample->features[list->at]);
        found++;
    }
    for (size_t i = 0; found < view->list_count && i < sample->feature_count; i++) {
        list_feature *list = find_list(view, sample->features[i].name);
        if (list == NULL || list->record == view->records)
            continue;
        list->at = i;
        take_list(view, list, &sample->features[i]);
        found++;
    }
    return found;
}

/* Lists of any length: where a record has none, the list is empty. */
static presto_status add_empty_lists(record_view *view, presto_arena *arena, presto_sample *sample,
                                     presto_error *err) {
    size_t count = sample->feature_count;
    size_t lacking = view->list_count - find_lists(view, sample);
    if (lacking == 0)
        return PRESTO_OK;
    size_t bytes = (count + lacking) * sizeof *sample->features;
    presto_feature *features = presto_arena_alloc(arena, bytes, _Alignof(presto_feature));
    if (features == NULL)
        return presto_fail_memory(err, bytes);
    if (count > 0)
        memcpy(features, sample->features, count * sizeof *features);
    for (size_t i = 0; i < view->list_count; i++)
        if (view->lists[i].record != view->records)
            features[count++] = empty_list(view->lists[i].spec);
    sample->features = features;
    sample->feature_count = count;
    return PRESTO_OK;
}

static presto_status tfrecord_sample(presto__reader *reader, size_t i, presto_arena *arena,
                                     presto_sample *sample_out, presto_error *err) {
    record_view *view = reader->own;
    PRESTO_TRY(source_of(reader)->inner->sample(reader, i, arena, sample_out, err));
    PRESTO_TRY(add_empty_lists(view, arena, sample_out, err));
    if (view->label != NULL)
        PRESTO_TRY(name_label(view, sample_out, err));
    const presto__tfrecord_source *source = source_of(reader);
    return source->classes.count > 0 ? number_label(source, arena, sample_out, err) : PRESTO_OK;
}

/* ---- readers ---- */

static bool declares(const presto_source *source, const char *name) {
    for (size_t i = 0; i < source->feature_count; i++)
        if (strcmp(source->features[i].name, name) == 0)
            return true;
    return false;
}

/* A label must be there. */
static bool is_list(const record_view *view, const presto_feature_spec *spec) {
    return spec->spec.rank == 1 && spec->spec.dims[0] == -1 && spec->name != view->label &&
           spec->encoding != PRESTO_ENCODE_TENSOR && spec->encoding != PRESTO_ENCODE_NONE;
}

static int compare_lists(const void *a, const void *b) {
    const list_feature *left = a, *right = b;
    return strcmp(left->spec->name, right->spec->name);
}

static void sort_lists(record_view *view) {
    for (size_t i = 0; i < view->spec_count; i++)
        if (is_list(view, &view->specs[i]))
            view->lists[view->list_count++] = (list_feature){&view->specs[i], 0, 0};
    if (view->list_count > 1)
        qsort(view->lists, view->list_count, sizeof *view->lists, compare_lists);
}

/* The specs of the features that are wanted, as the records call them. */
static presto_status make_view(const presto__tfrecord_source *source,
                               const presto__reader_options *options, record_view **view_out,
                               presto_error *err) {
    size_t each = sizeof(presto_feature_spec) + sizeof(list_feature);
    size_t bytes = sizeof(record_view) + options->feature_count * each;
    record_view *view = calloc(1, bytes);
    if (view == NULL)
        return presto_fail_memory(err, bytes);
    view->lists = (list_feature *)(void *)(view->specs + options->feature_count);
    view->label = options->only ? NULL : source->label;
    for (size_t i = 0; i < options->feature_count; i++) {
        presto_feature_spec spec = options->features[i];
        if (source->is_chosen && !declares(&source->records.base, spec.name))
            continue;
        if (source->label != NULL && strcmp(spec.name, "label") == 0) {
            spec.name = source->label;
            view->label = source->label;
        }
        view->specs[view->spec_count++] = spec;
    }
    sort_lists(view);
    *view_out = view;
    return PRESTO_OK;
}

static presto_status tfrecord_reader_new(presto_source *base, const presto__reader_options *options,
                                         presto__reader **reader_out, presto_error *err) {
    const presto__tfrecord_source *source = (const presto__tfrecord_source *)(const void *)base;
    record_view *view = NULL;
    PRESTO_TRY(make_view(source, options, &view, err));
    presto__reader_options mine = *options;
    mine.features = view->specs;
    mine.feature_count = view->spec_count;
    mine.only = options->only || source->is_chosen;
    presto_status status = source->inner->reader_new(base, &mine, reader_out, err);
    if (status < 0)
        free(view);
    else
        (*reader_out)->own = view;
    return status;
}

static void tfrecord_reader_free(presto__reader *reader) {
    void *view = reader->own;
    source_of(reader)->inner->reader_free(reader);
    free(view);
}

/* ---- the source ---- */

static void tfrecord_free(presto_source *base) {
    presto__tfrecord_source *source = (presto__tfrecord_source *)(void *)base;
    presto__source_done(base);
    presto_dataset_free(source->owned);
    free(source->label);
    presto__classes_done(&source->classes);
    free(source);
}

static const presto_codec_spec *tfrecord_codec(const presto_source *base) {
    return &((const presto__tfrecord_source *)(const void *)base)->codec;
}

/* Declared features and the main one are part of every key. */
static presto_status tfrecord_identify(const presto_source *base, bool as_named,
                                       presto__digest *digest, presto_error *err) {
    const presto__tfrecord_source *source = (const presto__tfrecord_source *)(const void *)base;
    const char *label = source->label == NULL ? "" : source->label;
    char codec[PRESTO_CODEC_TEXT_BYTES];
    presto__codec_format(&source->codec, codec);
    presto__digest_add(digest, &source->is_chosen, sizeof source->is_chosen);
    presto__digest_add(digest, label, strlen(label) + 1);
    presto__digest_add(digest, codec, strlen(codec) + 1);
    for (size_t i = 0; i < source->classes.count; i++)
        presto__digest_add(digest, source->classes.names[i], strlen(source->classes.names[i]) + 1);
    return source->inner->identify(base, as_named, digest, err);
}

/* Take over what the dataset's source holds, and its hooks. */
static presto_status take_records(presto__tfrecord_source *source, presto_dataset *dataset,
                                  presto_error *err) {
    presto_source *records = NULL;
    PRESTO_TRY(presto__dataset_open_source(dataset, &records, err));
    source->inner = records->ops;
    source->records = *(presto__dataset_source *)(void *)records;
    free(records); /* what it held has moved */
    source->ops = *source->inner;
    source->ops.free = tfrecord_free;
    source->ops.codec = tfrecord_codec;
    source->ops.reader_new = tfrecord_reader_new;
    source->ops.reader_free = tfrecord_reader_free;
    source->ops.sample = tfrecord_sample;
    source->ops.record = NULL; /* the stored record has other features than the sample */
    source->ops.run = NULL;
    source->ops.values = NULL;
    source->ops.identify = tfrecord_identify;
    source->records.base.ops = &source->ops;
    source->codec = *presto_dataset_codec(dataset);
    return PRESTO_OK;
}

static presto_status set_codec(presto__tfrecord_source *source, const char *text,
                               presto_error *err) {
    presto_error why;
    if (presto_dataset_is_ours(source->records.dataset))
        return presto_fail(
            err, PRESTO_ERR_ARGUMENT, PRESTO_NO_OFFSET,
            "the source's option 'codec' is '%.64s', but dataset.json says how these "
            "records are compressed",
            text);
    presto_status status = presto_codec_parse(text, &source->codec, &why);
    if (status == PRESTO_OK && source->codec.wants_dictionary)
        return presto_fail(err, PRESTO_ERR_ARGUMENT, PRESTO_NO_OFFSET,
                           "the source's option 'codec' is '%.64s', but there is no dictionary",
                           text);
    return status == PRESTO_OK ? PRESTO_OK
                               : presto_fail(err, status, PRESTO_NO_OFFSET,
                                             "the source's option 'codec': %.400s", why.message);
}

presto_status presto__tfrecord_open(const presto_pipeline *pipeline, presto_dataset *dataset,
                                    presto_source **source_out, presto_error *err) {
    const presto_option *codec = presto__pipeline_source_option(pipeline, "codec");
    presto__tfrecord_source *source = calloc(1, sizeof *source);
    if (source == NULL)
        return presto_fail_memory(err, sizeof *source);
    presto_status status = take_records(source, dataset, err);
    if (status < 0) {
        free(source);
        return status;
    }
    if (codec->is_set)
        status = set_codec(source, codec->text, err);
    if (status >= 0)
        status = presto__tfrecord_settle(source, pipeline, err);
    if (status < 0) {
        tfrecord_free(&source->records.base);
        return status;
    }
    *source_out = &source->records.base;
    return PRESTO_OK;
}

static presto_status open_paths(const presto_pipeline *pipeline, const char *const *paths,
                                size_t path_count, presto_source **source_out, presto_error *err) {
    presto_shard_options options;
    presto_dataset *dataset = NULL;
    presto_shard_options_defaults(&options);
    PRESTO_TRY(presto_dataset_open(paths, path_count, &options, &dataset, err));
    presto_status status = presto__tfrecord_open(pipeline, dataset, source_out, err);
    if (status < 0)
        presto_dataset_free(dataset);
    else
        ((presto__tfrecord_source *)(void *)*source_out)->owned = dataset;
    return status;
}

const presto__source_kind presto__source_tfrecord = {.name = "tfrecord", .open = open_paths};
