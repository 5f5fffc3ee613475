/* SPDX-License-Identifier: Apache-2.0 */
/* What formats share: the bytes that are to be written, and which features, in which order. */
#include <stdlib.h>
#include <string.h>

#include "out_internal.h"

/* ---- pieces ---- */

presto_status presto__out_flush(presto_out *out, presto_error *err) {
    uint64_t written = 0;
    size_t count = out->piece_count;
    out->piece_count = 0;
    if (count == 0)
        return PRESTO_OK;
    presto_status status = out->write(out->write_user, out->pieces, count, &written, err);
    out->bytes += written;
    return status;
}

presto_status presto__out_add(presto_out *out, const void *data, size_t bytes, presto_error *err) {
    if (out->piece_count == PRESTO__OUT_MOST_PIECES) {
        presto_status status = presto__out_flush(out, err);
        if (status != PRESTO_OK)
            return status;
    }
    out->pieces[out->piece_count++] = presto_span_of(data, bytes);
    return PRESTO_OK;
}

/* ---- which features, in which order ---- */

/* The features of a batch are by name. */
const presto_batch_feature *presto__out_find_feature(const presto_batch *batch, const char *name) {
    size_t low = 0, high = batch->feature_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (strcmp(batch->features[middle].name, name) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    bool is_found = low < batch->feature_count && strcmp(batch->features[low].name, name) == 0;
    return is_found ? &batch->features[low] : NULL;
}

/* Add a column for a feature that has none. */
static presto_status add_column(presto_out *out, const presto_batch_feature *feature,
                                presto_error *err) {
    if (feature->encoding == PRESTO_ENCODE_NONE)
        return PRESTO_OK;
    if (out->count == out->capacity) {
        size_t capacity = out->capacity * 2 + 8;
        presto__out_column *columns = realloc(out->columns, capacity * sizeof *columns);
        if (columns == NULL)
            return presto_fail_memory(err, capacity * sizeof *columns);
        out->columns = columns;
        presto__out_place *sorted = realloc(out->sorted, capacity * sizeof *sorted);
        if (sorted == NULL)
            return presto_fail_memory(err, capacity * sizeof *sorted);
        out->sorted = sorted;
        out->capacity = capacity;
    }
    char *name = strdup(feature->name);
    if (name == NULL)
        return presto_fail_memory(err, strlen(feature->name) + 1);
    out->columns[out->count] = (presto__out_column){name, feature};
    out->sorted[out->count] = (presto__out_place){name, out->count};
    out->count++;
    return PRESTO_OK;
}

presto_status presto__out_fail_missing(const presto_batch *batch, const char *name,
                                       presto_error *err) {
    return presto_fail(err, PRESTO_ERR_NOT_FOUND, PRESTO_NO_OFFSET,
                       "no feature '%s' in samples %ju to %ju; presto-inspect lists what they have",
                       name, (uintmax_t)batch->first, (uintmax_t)(batch->first + batch->rows - 1));
}

static presto_status choose_wanted(presto_out *out, const presto_batch *batch, presto_error *err) {
    for (size_t i = 0; i < out->wanted_count; i++) {
        const presto_batch_feature *feature = presto__out_find_feature(batch, out->wanted[i]);
        if (feature == NULL || feature->encoding == PRESTO_ENCODE_NONE)
            return presto__out_fail_missing(batch, out->wanted[i], err);
        PRESTO_TRY(add_column(out, feature, err));
    }
    return PRESTO_OK;
}

/* The columns that come first. */
static presto_status choose_first(presto_out *out, const presto_batch *batch, presto_error *err) {
    bool has_main = batch->main_feature < batch->feature_count;
    if (has_main)
        PRESTO_TRY(add_column(out, &batch->features[batch->main_feature], err));
    if (out->type->about.takes_main_only)
        return has_main ? PRESTO_OK
                        : presto_fail(err, PRESTO_ERR_ARGUMENT, PRESTO_NO_OFFSET,
                                      "no main feature is known: say which with --features");
    const presto_batch_feature *label = presto__out_find_feature(batch, "label");
    if (label == NULL || (has_main && label == &batch->features[batch->main_feature]))
        return PRESTO_OK;
    return add_column(out, label, err);
}

static int compare_places(const void *a, const void *b) {
    return strcmp(((const presto__out_place *)a)->name, ((const presto__out_place *)b)->name);
}

static void sort_columns(presto_out *out) {
    if (out->count > 1)
        qsort(out->sorted, out->count, sizeof *out->sorted, compare_places);
}

/* Is the feature before it called alike? A zero byte ends a name here. */
static bool is_again(const presto_batch *batch, size_t i) {
    return i > 0 && strcmp(batch->features[i - 1].name, batch->features[i].name) == 0;
}

/* Find the feature of each column, and add columns for new features. Both are by name. */
static presto_status match_columns(presto_out *out, const presto_batch *batch, presto_error *err) {
    bool takes_new = out->wanted_count == 0 && !out->type->about.takes_main_only;
    size_t known = out->count, at = 0;
    for (size_t i = 0; i < batch->feature_count; i++) {
        const presto_batch_feature *feature = &batch->features[i];
        int order = 1;
        while (at < known && (order = strcmp(out->sorted[at].name, feature->name)) < 0)
            out->columns[out->sorted[at++].column].feature = NULL;
        if (at < known && order == 0)
            out->columns[out->sorted[at++].column].feature = feature;
        else if (takes_new && !is_again(batch, i))
            PRESTO_TRY(add_column(out, feature, err));
    }
    while (at < known)
        out->columns[out->sorted[at++].column].feature = NULL;
    if (out->count > known)
        sort_columns(out);
    return PRESTO_OK;
}

/* Find the features of the batch; new ones are appended. */
presto_status presto__out_find_features(presto_out *out, const presto_batch *batch,
                                        presto_error *err) {
    if (out->batches == 0) {
        PRESTO_TRY(out->wanted_count > 0 ? choose_wanted(out, batch, err)
                                         : choose_first(out, batch, err));
        sort_columns(out);
    }
    return match_columns(out, batch, err);
}
