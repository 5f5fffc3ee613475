/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Batches of one row, made straight from the sample: they show its own values or copies. Mostly
 * each sample is like the one before, so names and shapes are kept, and only the values are filled
 * in.
 */
#include <stdlib.h>

#include "columns_internal.h"

#define SMALL_BYTES 4096 /* copying this much costs less than aligning it in place */
#define MOST_HINT_BYTES ((size_t)1 << 20)

/* What is kept of a feature of the last batch. */
typedef struct presto__view {
    presto_batch_feature shown; /* without the values */
    presto_tensor_spec row;
    size_t row_bytes; /* of the last value */
    size_t name_bytes;
    size_t at; /* position in the batch, whose features are sorted */
    const presto__rule *rule;
    bool is_main;
} presto__view;

/* Strings need no alignment. */
static bool is_aligned(const presto_feature *feature) {
    return feature->tensor.spec.dtype == PRESTO_STRING ||
           ((uintptr_t)feature->tensor.data & (PRESTO__BATCH_ALIGN - 1)) == 0;
}

bool presto__batch_may_view(const presto_sample *sample) {
    for (size_t i = 0; i < sample->feature_count; i++) {
        const presto_feature *feature = &sample->features[i];
        if (presto__feature_has_value(feature) && !is_aligned(feature) &&
            presto_tensor_bytes(&feature->tensor) > SMALL_BYTES)
            return false;
    }
    return true;
}

/* ---- what stays ---- */

static bool is_named(const presto__view *view, presto_span name) {
    return view->name_bytes == name.bytes &&
           (name.bytes == 0 || memcmp(view->shown.name, name.data, name.bytes) == 0);
}

/* Do its features have the names of the last batch? */
static bool is_like(const presto__packet_part *part, const presto_sample *sample) {
    size_t found = 0;
    for (size_t i = 0; i < sample->feature_count; i++) {
        const presto_feature *feature = &sample->features[i];
        if (!presto__feature_has_value(feature))
            continue;
        if (found == part->view_count || !is_named(&part->views[found], feature->name))
            return false;
        found++;
    }
    return found == part->view_count;
}

static int compare(const void *a, const void *b) {
    const presto__view *left = *(presto__view *const *)a, *right = *(presto__view *const *)b;
    return presto__compare_names(presto_span_of(left->shown.name, left->name_bytes),
                                 presto_span_of(right->shown.name, right->name_bytes));
}

static presto_status set_places(presto__packet_part *part, presto__view *views, size_t count,
                                presto_error *err) {
    presto__view **sorted = presto__part_take(part, count, sizeof *sorted);
    if (sorted == NULL)
        return presto_fail_memory(err, count * sizeof *sorted);
    bool is_sorted = true;
    for (size_t i = 0; i < count; i++) {
        sorted[i] = &views[i];
        is_sorted = is_sorted && (i == 0 || compare(&sorted[i - 1], &sorted[i]) < 0);
    }
    if (!is_sorted)
        qsort(sorted, count, sizeof *sorted, compare);
    for (size_t i = 0; i < count; i++)
        sorted[i]->at = i;
    return PRESTO_OK;
}

/* The name as text. Taken from the last batch, if it is there at *at_io, or one further because this
 * sample lacks a feature; then *at_io is behind it. */
static const char *name_of(presto__packet_part *part, presto_span name, size_t *at_io) {
    for (size_t at = *at_io; at < part->view_count && at < *at_io + 2; at++) {
        const presto__view *view = &part->views[at];
        if (is_named(view, name)) {
            *at_io = at + 1;
            return view->shown.name;
        }
    }
    char *copy = presto_arena_alloc(&part->memory, name.bytes + 1, 1);
    if (copy == NULL)
        return NULL;
    if (name.bytes > 0)
        memcpy(copy, name.data, name.bytes);
    copy[name.bytes] = '\0';
    return copy;
}

/* Views of features with these names. They are described when values come. */
static presto_status make_views(const presto__place *place, const presto_sample *sample,
                                presto_error *err) {
    presto__packet_part *part = place->part;
    const presto__rules *rules = place->batch->packet->rules;
    presto__view *views = presto__part_take(part, sample->feature_count, sizeof *views);
    if (views == NULL)
        return presto_fail_memory(err, sample->feature_count * sizeof *views);
    size_t count = 0, at = 0;
    for (size_t i = 0; i < sample->feature_count; i++) {
        presto_span name = sample->features[i].name;
        if (!presto__feature_has_value(&sample->features[i]))
            continue;
        const char *text = name_of(part, name, &at);
        if (text == NULL)
            return presto_fail_memory(err, name.bytes + 1);
        views[count++] = (presto__view){.shown.name = text,
                                        .name_bytes = name.bytes,
                                        .rule = presto__rules_find(rules, name),
                                        .is_main = rules->main_feature != NULL &&
                                                   strcmp(text, rules->main_feature) == 0};
    }
    PRESTO_TRY(set_places(part, views, count, err));
    part->views = views;
    part->view_count = count;
    return PRESTO_OK;
}

static presto_status describe(presto__view *view, const presto_feature *feature,
                              presto_error *err) {
    const presto_tensor_spec *row = &feature->tensor.spec;
    presto_tensor_spec *spec = &view->shown.tensor.spec;
    bool is_bytes = row->dtype == PRESTO_STRING;
    size_t bytes = 0;
    if (!is_bytes)
        PRESTO_TRY(presto_spec_bytes(row, &bytes, err));
    view->row = *row;
    view->row_bytes = bytes;
    view->shown.encoding = feature->encoding;
    view->shown.layout = is_bytes ? PRESTO_LAYOUT_BYTES : PRESTO_LAYOUT_DENSE;
    if (is_bytes) {
        *spec = (presto_tensor_spec){.dtype = PRESTO_UINT8, .rank = 1};
        return PRESTO_OK;
    }
    *spec = (presto_tensor_spec){.dtype = row->dtype, .rank = row->rank + 1, .dims = {1}};
    for (int i = 0; i < row->rank; i++)
        spec->dims[i + 1] = row->dims[i];
    return PRESTO_OK;
}

/* ---- values ---- */

/* What this batch and the later ones will take of the slab, as far as is known. */
static size_t slab_hint(const presto__packet_batch *batch, size_t bytes) {
    const presto__packet *packet = batch->packet;
    size_t batches_left = packet->batch_count - (size_t)(batch - packet->batches);
    size_t total;
    if (!presto__size_multiply(bytes + PRESTO__BATCH_ALIGN, batches_left, &total) ||
        total > MOST_HINT_BYTES)
        total = MOST_HINT_BYTES;
    return total;
}

static void *take(const presto__packet_batch *batch, size_t bytes) {
    return presto__slab_alloc(&batch->packet->slab, bytes, slab_hint(batch, bytes));
}

/* Any number of strings, back to back. */
static presto_status copy_strings(const presto__place *place, const presto_tensor *tensor,
                                  presto_batch_feature *feature, presto_error *err) {
    size_t count = (size_t)presto_spec_elements(&tensor->spec), bytes = 0;
    int64_t *ends = presto__part_take(place->part, count + 1, sizeof *ends);
    if (ends == NULL)
        return presto_fail_memory(err, (count + 1) * sizeof *ends);
    ends[0] = 0;
    for (size_t i = 0; i < count; i++) {
        if (!presto__size_add(bytes, tensor->strings[i].bytes, &bytes))
            return presto_fail_memory(err, UINT64_MAX);
        ends[i + 1] = (int64_t)bytes;
    }
    uint8_t *data = take(place->batch, bytes + 1);
    if (data == NULL)
        return presto_fail_memory(err, bytes + 1);
    for (size_t i = 0; i < count; i++)
        if (tensor->strings[i].bytes > 0)
            memcpy(data + ends[i], tensor->strings[i].data, tensor->strings[i].bytes);
    feature->tensor.data = data;
    feature->tensor.spec.dims[0] = (int64_t)bytes;
    feature->offsets = ends;
    return PRESTO_OK;
}

/* Set which strings the row has, and its shape. */
static presto_status shape_strings(const presto__place *place, const presto_tensor_spec *row,
                                   presto_batch_feature *feature, presto_error *err) {
    int64_t *numbers = presto__part_take(place->part, 2 + PRESTO_MAX_RANK, sizeof *numbers);
    if (numbers == NULL)
        return presto_fail_memory(err, (2 + PRESTO_MAX_RANK) * sizeof *numbers);
    numbers[0] = 0;
    numbers[1] = (int64_t)presto_spec_elements(row);
    if (numbers[1] != 1)
        feature->row_offsets = numbers;
    if (row->rank < 2)
        return PRESTO_OK;
    feature->shape_rank = (size_t)row->rank;
    feature->shapes = numbers + 2;
    memcpy(numbers + 2, row->dims, feature->shape_rank * sizeof *numbers);
    return PRESTO_OK;
}

static presto_status show_strings(const presto__place *place, const presto_tensor *tensor,
                                  presto__view_mode mode, presto_batch_feature *feature,
                                  presto_error *err) {
    bool is_one = tensor->spec.rank < 2 && presto_spec_elements(&tensor->spec) == 1;
    if (!is_one || mode == PRESTO__VIEW_COPY) {
        PRESTO_TRY(copy_strings(place, tensor, feature, err));
        return is_one ? PRESTO_OK : shape_strings(place, &tensor->spec, feature, err);
    }
    int64_t *ends = presto__part_take(place->part, 2, sizeof *ends);
    if (ends == NULL)
        return presto_fail_memory(err, 2 * sizeof *ends);
    ends[0] = 0;
    ends[1] = (int64_t)tensor->strings[0].bytes;
    feature->tensor.data = tensor->strings[0].data;
    feature->tensor.spec.dims[0] = ends[1];
    feature->offsets = ends;
    return PRESTO_OK;
}

/* Strings that are declared as a list are one also where it has a single string. */
static presto_status show_list(const presto__place *place, const presto_tensor *tensor,
                               presto_batch_feature *feature, presto_error *err) {
    PRESTO_TRY(copy_strings(place, tensor, feature, err));
    PRESTO_TRY(shape_strings(place, &tensor->spec, feature, err));
    if (feature->row_offsets != NULL)
        return PRESTO_OK;
    int64_t *ends = presto__part_take(place->part, 2, sizeof *ends);
    if (ends == NULL)
        return presto_fail_memory(err, 2 * sizeof *ends);
    ends[0] = 0;
    ends[1] = 1;
    feature->row_offsets = ends;
    return PRESTO_OK;
}

static presto_status copy_numbers(const presto__place *place, size_t bytes,
                                  presto_batch_feature *feature, presto_error *err) {
    void *copy = take(place->batch, bytes);
    if (copy == NULL)
        return presto_fail_memory(err, bytes);
    if (bytes > 0)
        memcpy(copy, feature->tensor.data, bytes);
    feature->tensor.data = copy;
    return PRESTO_OK;
}

/* Show one value, described by `view`. */
static presto_status show(const presto__place *place, presto__view *view,
                          const presto_feature *feature, presto__view_mode mode,
                          presto_error *err) {
    const presto_tensor *tensor = &feature->tensor;
    presto_batch_feature *shown = &place->batch->features[view->at];
    *shown = view->shown;
    if (tensor->spec.dtype == PRESTO_STRING) {
        bool is_list = view->rule != NULL && view->rule->is_ragged;
        PRESTO_TRY(is_list ? show_list(place, tensor, shown, err)
                           : show_strings(place, tensor, mode, shown, err));
        view->row_bytes = (size_t)shown->tensor.spec.dims[0];
        return PRESTO_OK;
    }
    shown->tensor.data = tensor->data;
    bool stays =
        mode == PRESTO__VIEW_UNALIGNED || (mode == PRESTO__VIEW_ALIGNED && is_aligned(feature));
    return stays ? PRESTO_OK : copy_numbers(place, view->row_bytes, shown, err);
}

/* ---- views ---- */

presto_status presto__fill_view(const presto__place *place, const presto_sample *sample,
                                presto__view_mode mode, presto_error *err) {
    presto__packet_batch *batch = place->batch;
    presto__packet_part *part = place->part;
    size_t bytes;
    if (!is_like(part, sample))
        PRESTO_TRY(make_views(place, sample, err));
    if (!presto__size_multiply(part->view_count, sizeof *batch->features, &bytes))
        return presto_fail_memory(err, UINT64_MAX);
    batch->features = take(batch, bytes);
    if (batch->features == NULL)
        return presto_fail_memory(err, bytes);
    presto__view *view = part->views;
    uint64_t delivered = 0;
    for (size_t i = 0; i < sample->feature_count; i++) {
        const presto_feature *feature = &sample->features[i];
        if (!presto__feature_has_value(feature))
            continue;
        PRESTO_TRY(presto__rule_check(view->rule, feature, err));
        if (view->shown.encoding != feature->encoding ||
            !presto_spec_equal(&view->row, &feature->tensor.spec))
            PRESTO_TRY(describe(view, feature, err));
        PRESTO_TRY(show(place, view, feature, mode, err));
        if (view->is_main)
            batch->shown.main_feature = view->at;
        delivered += view->row_bytes;
        view++;
    }
    part->delivered_bytes += delivered;
    batch->feature_count = part->view_count;
    batch->is_view = true;
    batch->fill.rows = 1;
    return PRESTO_OK;
}
