/* SPDX-License-Identifier: Apache-2.0 */
/* The formats, and which features are written, in which order. */
#include "sink_parts.h"

#include <stdlib.h>
#include <string.h>

const sink_type *const sink_types[] = {&sink_tfrecord, &sink_npy, &sink_raw, &sink_null,
                                       &sink_arrow,    &sink_shm, NULL};

presto_status sink_new(const sink_options *options, sink **sink_out, presto_error *err) {
    sink *self = calloc(1, sizeof *self);
    if (self == NULL)
        return presto_fail_memory(err, sizeof *self);
    self->type = options->type;
    self->wanted = options->features;
    self->wanted_count = options->feature_count;
    self->skip = options->skip;
    self->declared = options->declared;
    presto_status status = pieces_init(&self->out, options->fd, err);
    if (status >= 0 && self->type->open != NULL)
        status = self->type->open(self, options, err);
    if (status >= 0)
        *sink_out = self;
    else
        sink_free(self);
    return status;
}

void sink_free(sink *self) {
    if (self == NULL)
        return;
    for (size_t i = 0; i < self->count; i++)
        free(self->columns[i].name);
    free(self->columns);
    free(self->sorted);
    free((void *)self->features);
    presto_buffer_done(&self->message);
    presto_buffer_done(&self->zeros);
    arrow_stream_free(self->arrow);
    presto_ring_writer_free(self->ring);
    free(self->ringed);
    pieces_done(&self->out);
    free(self);
}

presto_status sink_write(sink *self, const presto_batch *batch, presto_error *err) {
    if (self->type->write == NULL || batch->rows == 0)
        return PRESTO_OK;
    presto_status status = self->type->write(self, batch, err);
    self->samples += batch->rows;
    self->batches++;
    return status;
}

presto_status sink_end(sink *self, presto_error *err) {
    return self->type->end == NULL ? PRESTO_OK : self->type->end(self, err);
}

uint64_t sink_bytes(const sink *self) {
    return self->ring != NULL ? presto_ring_writer_bytes(self->ring) : self->out.bytes;
}

void sink_fail(sink *self, const presto_error *why) {
    if (self->ring != NULL)
        presto_ring_writer_fail(self->ring, why);
}

/* ---- which features, in which order ---- */

/* The features of a batch are by name. */
const presto_batch_feature *sink_find_feature(const presto_batch *batch, const char *name) {
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

static presto_status grow(sink *self, presto_error *err) {
    size_t capacity = self->capacity * 2 + 8;
    sink_column *columns = realloc(self->columns, capacity * sizeof *columns);
    if (columns == NULL)
        return presto_fail_memory(err, capacity * sizeof *columns);
    self->columns = columns;
    sink_place *sorted = realloc(self->sorted, capacity * sizeof *sorted);
    if (sorted == NULL)
        return presto_fail_memory(err, capacity * sizeof *sorted);
    self->sorted = sorted;
    void *features = realloc((void *)self->features, capacity * sizeof *self->features);
    if (features == NULL)
        return presto_fail_memory(err, capacity * sizeof *self->features);
    self->features = features;
    presto_batch_feature *ringed = realloc(self->ringed, capacity * sizeof *ringed);
    if (ringed == NULL)
        return presto_fail_memory(err, capacity * sizeof *ringed);
    self->ringed = ringed;
    self->capacity = capacity;
    return PRESTO_OK;
}

/* Add a column for a feature that has none. */
static presto_status add_column(sink *self, const presto_batch_feature *feature,
                                presto_error *err) {
    if (feature->encoding == PRESTO_ENCODE_NONE)
        return PRESTO_OK;
    if (self->count == self->capacity)
        PRESTO_TRY(grow(self, err));
    char *name = strdup(feature->name);
    if (name == NULL)
        return presto_fail_memory(err, strlen(feature->name) + 1);
    self->columns[self->count] = (sink_column){.name = name, .feature = feature};
    self->sorted[self->count] = (sink_place){name, self->count};
    self->count++;
    return PRESTO_OK;
}

presto_status sink_fail_missing(const presto_batch *batch, const char *name, presto_error *err) {
    return presto_fail(err, PRESTO_ERR_NOT_FOUND, PRESTO_NO_OFFSET,
                       "no feature '%s' in samples %ju to %ju; presto-inspect lists what they have",
                       name, (uintmax_t)batch->first, (uintmax_t)(batch->first + batch->rows - 1));
}

static presto_status choose_wanted(sink *self, const presto_batch *batch, presto_error *err) {
    for (size_t i = 0; i < self->wanted_count; i++) {
        const presto_batch_feature *feature = sink_find_feature(batch, self->wanted[i]);
        if (feature == NULL || feature->encoding == PRESTO_ENCODE_NONE)
            return sink_fail_missing(batch, self->wanted[i], err);
        PRESTO_TRY(add_column(self, feature, err));
    }
    return PRESTO_OK;
}

/* The columns that come first. */
static presto_status choose_first(sink *self, const presto_batch *batch, presto_error *err) {
    bool has_main = batch->main_feature < batch->feature_count;
    if (has_main)
        PRESTO_TRY(add_column(self, &batch->features[batch->main_feature], err));
    if (self->type->takes_main_only)
        return has_main ? PRESTO_OK
                        : presto_fail(err, PRESTO_ERR_ARGUMENT, PRESTO_NO_OFFSET,
                                      "no main feature is known: say which with --features");
    const presto_batch_feature *label = sink_find_feature(batch, "label");
    if (label == NULL || (has_main && label == &batch->features[batch->main_feature]))
        return PRESTO_OK;
    return add_column(self, label, err);
}

static int compare_places(const void *a, const void *b) {
    return strcmp(((const sink_place *)a)->name, ((const sink_place *)b)->name);
}

static void sort_columns(sink *self) {
    if (self->count > 1)
        qsort(self->sorted, self->count, sizeof *self->sorted, compare_places);
}

/* Is the feature before it called alike? A zero byte ends a name here. */
static bool is_again(const presto_batch *batch, size_t i) {
    return i > 0 && strcmp(batch->features[i - 1].name, batch->features[i].name) == 0;
}

/* Find the feature of each column, and add columns for new features. Both are by name. */
static presto_status match_columns(sink *self, const presto_batch *batch, presto_error *err) {
    bool takes_new = self->wanted_count == 0 && !self->type->takes_main_only;
    size_t known = self->count, at = 0;
    for (size_t i = 0; i < batch->feature_count; i++) {
        const presto_batch_feature *feature = &batch->features[i];
        int order = 1;
        while (at < known && (order = strcmp(self->sorted[at].name, feature->name)) < 0)
            self->columns[self->sorted[at++].column].feature = NULL;
        if (at < known && order == 0)
            self->columns[self->sorted[at++].column].feature = feature;
        else if (takes_new && !is_again(batch, i))
            PRESTO_TRY(add_column(self, feature, err));
    }
    while (at < known)
        self->columns[self->sorted[at++].column].feature = NULL;
    if (self->count > known)
        sort_columns(self);
    return PRESTO_OK;
}

/* Find the features of the batch; new ones are appended. */
presto_status sink_find_features(sink *self, const presto_batch *batch, presto_error *err) {
    if (self->batches == 0) {
        PRESTO_TRY(self->wanted_count > 0 ? choose_wanted(self, batch, err)
                                          : choose_first(self, batch, err));
        sort_columns(self);
    }
    PRESTO_TRY(match_columns(self, batch, err));
    for (size_t i = 0; i < self->count; i++)
        self->features[i] = self->columns[i].feature;
    return PRESTO_OK;
}
