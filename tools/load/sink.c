/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Chooses features and writes batches. All arrays are written from the loader's memory.
 * docs/streams.md describes the npy stream.
 */
#include "sink.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../cli/cli.h"
#include "pieces.h"

/* A feature as it is written. */
typedef struct column {
    char *name;
    presto_tensor_spec row;              /* raw: the spec that each sample must have */
    npy_feature described;               /* npy: as in the last description */
    char headers[4][NPY_HEADER_BYTES];   /* npy; reused from batch to batch */
    presto_batch_feature lacking;        /* npy: in a batch that lacks it */
    const presto_batch_feature *feature; /* of the batch being written */
} column;

/* Where a column stands. */
typedef struct place {
    const char *name; /* the column's */
    size_t column;
} place;

struct sink {
    sink_format format;
    pieces out;
    const char *const *wanted; /* --features, borrowed */
    size_t wanted_count;
    uint64_t skip;
    column *columns; /* in the order of writing; npy, arrow: those of later batches are added */
    place *sorted;   /* of the columns, by name */
    const presto_batch_feature **features; /* arrow: of all columns */
    size_t count, capacity;
    presto_buffer message;        /* npy: the description, or the end */
    presto_buffer zeros;          /* npy: offsets of a feature that the batch lacks */
    arrow_stream *arrow;          /* NULL: another format */
    const presto_batch *declared; /* of the options */
    presto_ring_writer *ring;
    presto_batch_feature *ringed; /* shm: of all columns that the batch has */
    uint64_t samples, batches;
};

presto_status sink_new(const sink_options *options, sink **sink_out, presto_error *err) {
    sink *self = calloc(1, sizeof *self);
    if (self == NULL)
        return presto_fail_memory(err, sizeof *self);
    self->format = options->format;
    self->wanted = options->features;
    self->wanted_count = options->feature_count;
    self->skip = options->skip;
    self->declared = options->declared;
    presto_status status = pieces_init(&self->out, options->fd, err);
    if (status >= 0 && options->format == SINK_ARROW)
        status =
            arrow_stream_new(&self->out, options->wishes, options->wish_count, &self->arrow, err);
    if (status >= 0 && options->format == SINK_SHM)
        status = presto_ring_writer_open(options->ring, &self->ring, err);
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

uint64_t sink_bytes(const sink *self) {
    return self->ring != NULL ? presto_ring_writer_bytes(self->ring) : self->out.bytes;
}

void sink_fail(sink *self, const presto_error *why) {
    if (self->ring != NULL)
        presto_ring_writer_fail(self->ring, why);
}

/* ---- which features, in which order ---- */

/* The features of a batch are by name. */
static const presto_batch_feature *find_feature(const presto_batch *batch, const char *name) {
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
    column *columns = realloc(self->columns, capacity * sizeof *columns);
    if (columns == NULL)
        return presto_fail_memory(err, capacity * sizeof *columns);
    self->columns = columns;
    place *sorted = realloc(self->sorted, capacity * sizeof *sorted);
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
    self->columns[self->count] = (column){.name = name, .feature = feature};
    self->sorted[self->count] = (place){name, self->count};
    self->count++;
    return PRESTO_OK;
}

static presto_status fail_missing(const presto_batch *batch, const char *name, presto_error *err) {
    return presto_fail(err, PRESTO_ERR_NOT_FOUND, PRESTO_NO_OFFSET,
                       "no feature '%s' in samples %ju to %ju; presto-inspect lists what they have",
                       name, (uintmax_t)batch->first, (uintmax_t)(batch->first + batch->rows - 1));
}

static presto_status choose_wanted(sink *self, const presto_batch *batch, presto_error *err) {
    for (size_t i = 0; i < self->wanted_count; i++) {
        const presto_batch_feature *feature = find_feature(batch, self->wanted[i]);
        if (feature == NULL || feature->encoding == PRESTO_ENCODE_NONE)
            return fail_missing(batch, self->wanted[i], err);
        PRESTO_TRY(add_column(self, feature, err));
    }
    return PRESTO_OK;
}

/* The columns that come first. */
static presto_status choose_first(sink *self, const presto_batch *batch, presto_error *err) {
    bool has_main = batch->main_feature < batch->feature_count;
    if (has_main)
        PRESTO_TRY(add_column(self, &batch->features[batch->main_feature], err));
    if (self->format == SINK_RAW)
        return has_main ? PRESTO_OK
                        : presto_fail(err, PRESTO_ERR_ARGUMENT, PRESTO_NO_OFFSET,
                                      "no main feature is known: say which with --features");
    const presto_batch_feature *label = find_feature(batch, "label");
    if (label == NULL || (has_main && label == &batch->features[batch->main_feature]))
        return PRESTO_OK;
    return add_column(self, label, err);
}

static int compare_places(const void *a, const void *b) {
    return strcmp(((const place *)a)->name, ((const place *)b)->name);
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
    bool takes_new = self->wanted_count == 0 && self->format != SINK_RAW;
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
static presto_status find_features(sink *self, const presto_batch *batch, presto_error *err) {
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

/* ---- npy ---- */

/* The batch lacks a feature of earlier batches: all its rows are without a value. */
static presto_status show_lacking(sink *self, column *one, const presto_batch *batch,
                                  presto_error *err) {
    size_t bytes = (batch->rows + 1) * sizeof(int64_t);
    self->zeros.bytes = 0;
    PRESTO_TRY(presto_buffer_reserve(&self->zeros, bytes, err));
    memset(self->zeros.data, 0, bytes);
    const int64_t *zeros = (const int64_t *)(const void *)self->zeros.data;
    bool is_bytes = one->described.layout == PRESTO_LAYOUT_BYTES;
    one->lacking = (presto_batch_feature){
        .name = one->name,
        .layout = is_bytes ? PRESTO_LAYOUT_BYTES : PRESTO_LAYOUT_RAGGED,
        .tensor = {.spec = {.dtype = one->described.dtype, .rank = 1}, .data = zeros},
        .offsets = zeros,
        .row_offsets = is_bytes ? zeros : NULL};
    one->feature = &one->lacking;
    return PRESTO_OK;
}

/* Takes ownership of `json`. */
static presto_status add_message(sink *self, json_t *json, presto_error *err) {
    if (self->skip > 0 && json != NULL)
        json_object_set_new(json, "skip", json_integer((json_int_t)self->skip));
    PRESTO_TRY(npy_message(json, &self->message, err));
    char *header = (char *)self->message.data;
    return pieces_add(&self->out, header, self->message.bytes, err);
}

/* Write a description if it differs from the last one. */
static presto_status describe(sink *self, presto_error *err) {
    bool is_new = self->batches == 0;
    for (size_t i = 0; i < self->count; i++) {
        column *one = &self->columns[i];
        npy_feature now = {.name = one->name,
                           .layout = one->feature->layout,
                           .dtype = one->feature->tensor.spec.dtype,
                           .has_rows = one->feature->row_offsets != NULL,
                           .has_shapes = one->feature->shapes != NULL};
        const npy_feature *said = &one->described;
        is_new = is_new || said->name == NULL || said->layout != now.layout ||
                 said->dtype != now.dtype || said->has_rows != now.has_rows ||
                 said->has_shapes != now.has_shapes;
        one->described = now;
    }
    if (!is_new)
        return PRESTO_OK;
    json_t *features = json_array();
    for (size_t i = 0; i < self->count; i++)
        json_array_append_new(features, npy_describe(&self->columns[i].described));
    return add_message(
        self, json_pack("{s:s,s:i,s:o}", "presto", "npy", "version", 1, "features", features), err);
}

static presto_status add_array(sink *self, column *one, size_t slot, const presto_tensor *tensor,
                               presto_error *err) {
    size_t header_bytes = npy_format_header(&tensor->spec, 0, one->headers[slot]);
    if (header_bytes == 0)
        return presto_fail(err, PRESTO_ERR_TYPE, PRESTO_NO_OFFSET,
                           "feature '%s': dtype %s has no NumPy counterpart", one->name,
                           presto_dtype_name(tensor->spec.dtype));
    presto_status status = pieces_add(&self->out, one->headers[slot], header_bytes, err);
    return status == PRESTO_OK
               ? pieces_add(&self->out, tensor->data, presto_tensor_bytes(tensor), err)
               : status;
}

static presto_tensor list_of(const int64_t *numbers, int64_t count) {
    return (presto_tensor){.spec = {PRESTO_INT64, 1, {count}}, .data = numbers};
}

/* The arrays of the feature: values, offsets, rows, shapes, as far as it has them. */
static presto_status add_feature(sink *self, column *one, size_t rows, presto_error *err) {
    const presto_batch_feature *feature = one->feature;
    int64_t count = (int64_t)rows;
    int64_t items = feature->row_offsets == NULL ? count : feature->row_offsets[rows];
    presto_tensor shapes = list_of(feature->shapes, count);
    shapes.spec.rank = 2;
    shapes.spec.dims[1] = (int64_t)feature->shape_rank;
    const presto_tensor arrays[] = {feature->tensor, list_of(feature->offsets, items + 1),
                                    list_of(feature->row_offsets, count + 1), shapes};
    presto_status status = add_array(self, one, 0, &arrays[0], err);
    for (size_t slot = 1; slot < sizeof arrays / sizeof arrays[0] && status == PRESTO_OK; slot++)
        if (arrays[slot].data != NULL)
            status = add_array(self, one, slot, &arrays[slot], err);
    return status;
}

static presto_status write_npy(sink *self, const presto_batch *batch, presto_error *err) {
    PRESTO_TRY(find_features(self, batch, err));
    for (size_t i = 0; i < self->count; i++)
        if (self->columns[i].feature == NULL)
            PRESTO_TRY(show_lacking(self, &self->columns[i], batch, err));
    presto_status status = describe(self, err);
    for (size_t i = 0; i < self->count && status == PRESTO_OK; i++)
        status = add_feature(self, &self->columns[i], batch->rows, err);
    return status == PRESTO_OK ? pieces_flush(&self->out, err) : status;
}

/* The schema of a stream without samples. Nothing may declare a feature that is asked for, or its
 * dtype: then the schema has no columns. */
static presto_status declare_arrow(sink *self, presto_error *err) {
    for (size_t i = 0; i < self->wanted_count; i++)
        if (find_feature(self->declared, self->wanted[i]) == NULL)
            return PRESTO_OK;
    PRESTO_TRY(find_features(self, self->declared, err));
    for (size_t i = 0; i < self->count; i++)
        if (self->features[i]->tensor.spec.dtype == PRESTO_DTYPE_UNKNOWN)
            return PRESTO_OK;
    return arrow_stream_begin(self->arrow, self->features, self->count, err);
}

static presto_status end_arrow(sink *self, presto_error *err) {
    bool is_known = self->declared != NULL && self->declared->feature_count > 0;
    presto_status status = PRESTO_OK;
    if (self->batches == 0 && is_known)
        status = declare_arrow(self, err);
    return status == PRESTO_OK ? arrow_stream_end(self->arrow, err) : status;
}

presto_status sink_end(sink *self, presto_error *err) {
    if (self->format == SINK_ARROW)
        return end_arrow(self, err);
    if (self->format == SINK_SHM)
        return presto_ring_writer_end(self->ring, err);
    if (self->format != SINK_NPY)
        return PRESTO_OK;
    presto_status status =
        add_message(self,
                    json_pack("{s:s,s:b,s:I,s:I}", "presto", "npy", "end", 1, "samples",
                              (json_int_t)self->samples, "batches", (json_int_t)self->batches),
                    err);
    return status == PRESTO_OK ? pieces_flush(&self->out, err) : status;
}

static presto_status write_arrow(sink *self, const presto_batch *batch, presto_error *err) {
    PRESTO_TRY(find_features(self, batch, err));
    return arrow_stream_write(self->arrow, batch, self->features, self->count, err);
}

/* The features in their order, as far as the batch has them. */
static presto_status write_ring(sink *self, const presto_batch *batch, presto_error *err) {
    presto_batch chosen = *batch;
    PRESTO_TRY(find_features(self, batch, err));
    chosen.features = self->ringed;
    chosen.feature_count = 0;
    chosen.main_feature = SIZE_MAX;
    for (size_t i = 0; i < self->count; i++) {
        const presto_batch_feature *feature = self->features[i];
        if (feature == NULL)
            continue;
        if (batch->main_feature < batch->feature_count &&
            feature == &batch->features[batch->main_feature])
            chosen.main_feature = chosen.feature_count;
        self->ringed[chosen.feature_count++] = *feature;
    }
    return presto_ring_writer_put(self->ring, &chosen, err);
}

/* ---- raw ---- */

/* The shape of row `row` for raw: a list of one value is a scalar. */
static presto_tensor_spec row_spec(const presto_batch_feature *feature, size_t row) {
    const presto_tensor_spec *spec = &feature->tensor.spec;
    presto_tensor_spec own = {.dtype = spec->dtype};
    if (feature->layout == PRESTO_LAYOUT_DENSE) {
        for (int i = 1; i < spec->rank; i++)
            own.dims[own.rank++] = spec->dims[i];
    } else if (feature->shapes != NULL) {
        const int64_t *dims = feature->shapes + row * feature->shape_rank;
        for (size_t i = 0; i < feature->shape_rank && dims[i] >= 0; i++)
            own.dims[own.rank++] = dims[i];
    } else {
        own.dims[own.rank++] = feature->offsets[row + 1] - feature->offsets[row];
    }
    if (own.rank == 1 && own.dims[0] == 1)
        own = (presto_tensor_spec){.dtype = spec->dtype};
    return own;
}

/* A raw stream does not mark where a sample ends, so all samples have the shape of the first. */
static presto_status check_raw(column *one, const presto_batch *batch, presto_error *err) {
    if (one->feature->layout == PRESTO_LAYOUT_BYTES)
        return presto_fail(err, PRESTO_ERR_TYPE, PRESTO_NO_OFFSET,
                           "feature '%s' is text: --format raw writes tensors of one size only; "
                           "use npy, or --pad",
                           one->name);
    size_t rows = one->feature->layout == PRESTO_LAYOUT_DENSE ? 1 : batch->rows;
    for (size_t row = 0; row < rows; row++) {
        presto_tensor_spec own = row_spec(one->feature, row);
        if (one->row.dtype == PRESTO_DTYPE_UNKNOWN)
            one->row = own;
        if (presto_spec_equal(&one->row, &own))
            continue;
        char got[PRESTO_SPEC_TEXT_BYTES], want[PRESTO_SPEC_TEXT_BYTES];
        return presto_fail(err, PRESTO_ERR_RAGGED, PRESTO_NO_OFFSET,
                           "sample %ju: feature '%s' is %s, those before it are %s: --format raw "
                           "writes tensors of one size only; use npy, or --pad with a length",
                           (uintmax_t)batch->sample_numbers[row], one->name,
                           presto_spec_format(&own, got, sizeof got),
                           presto_spec_format(&one->row, want, sizeof want));
    }
    return PRESTO_OK;
}

static presto_status write_raw(sink *self, const presto_batch *batch, presto_error *err) {
    PRESTO_TRY(find_features(self, batch, err));
    for (size_t i = 0; i < self->count; i++) {
        if (self->columns[i].feature == NULL)
            return fail_missing(batch, self->columns[i].name, err);
        PRESTO_TRY(check_raw(&self->columns[i], batch, err));
    }
    presto_status status = PRESTO_OK;
    if (self->count == 1) {
        const presto_tensor *only = &self->columns[0].feature->tensor;
        status = pieces_add(&self->out, only->data, presto_tensor_bytes(only), err);
        return status == PRESTO_OK ? pieces_flush(&self->out, err) : status;
    }
    for (size_t row = 0; row < batch->rows && status == PRESTO_OK; row++) {
        for (size_t i = 0; i < self->count && status == PRESTO_OK; i++) {
            const presto_tensor *tensor = &self->columns[i].feature->tensor;
            size_t bytes = presto_tensor_bytes(tensor) / batch->rows;
            status = pieces_add(&self->out, (const char *)tensor->data + row * bytes, bytes, err);
        }
    }
    return status == PRESTO_OK ? pieces_flush(&self->out, err) : status;
}

presto_status sink_write(sink *self, const presto_batch *batch, presto_error *err) {
    presto_status status = PRESTO_OK;
    if (self->format == SINK_NULL || batch->rows == 0)
        return PRESTO_OK;
    if (self->format == SINK_TFRECORD) {
        status = pieces_add(&self->out, batch->frames.data, batch->frames.bytes, err);
        return status == PRESTO_OK ? pieces_flush(&self->out, err) : status;
    }
    if (self->format == SINK_NPY)
        status = write_npy(self, batch, err);
    else if (self->format == SINK_ARROW)
        status = write_arrow(self, batch, err);
    else if (self->format == SINK_SHM)
        status = write_ring(self, batch, err);
    else
        status = write_raw(self, batch, err);
    self->samples += batch->rows;
    self->batches++;
    return status;
}
