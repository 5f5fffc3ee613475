/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A record batch is a message with the sizes of all buffers, then the buffers, each padded to 64
 * bytes. The first word of each message is written with the message before it: a stream that
 * breaks off, wherever that is, then ends within a message, and every reader notices.
 */
#include "arrow_stream.h"

#include <stdlib.h>
#include <string.h>

/* Of a column, with that of its shapes. */
enum { MOST_NODES = 4, MOST_BUFFERS = 7 };

static const uint8_t zeros[ARROW_ALIGNMENT];
static const uint8_t first_word[4] = {0xff, 0xff, 0xff, 0xff};

/* What a column needs beside its batch. */
typedef struct extra {
    presto_buffer offsets, shapes;
} extra;

typedef struct body {
    const void *data[MOST_BUFFERS];
    int64_t bytes[MOST_BUFFERS];
    size_t count;
} body;

struct arrow_stream {
    pieces *out;
    const arrow_wish *wishes;
    size_t wish_count;
    bool is_begun;         /* the schema has been written */
    arrow_column *columns; /* and three arrays of as many: */
    extra *extras;
    body *bodies;
    int64_t *numbers; /* nodes, then buffers, as pairs */
    size_t count;
    flat message;
};

presto_status arrow_stream_new(pieces *out, const arrow_wish *wishes, size_t wish_count,
                               arrow_stream **stream_out, presto_error *err) {
    arrow_stream *self = calloc(1, sizeof *self);
    if (self == NULL)
        return presto_fail_memory(err, sizeof *self);
    self->out = out;
    self->wishes = wishes;
    self->wish_count = wish_count;
    *stream_out = self;
    return PRESTO_OK;
}

void arrow_stream_free(arrow_stream *self) {
    if (self == NULL)
        return;
    for (size_t i = 0; i < self->count; i++) {
        arrow_column_done(&self->columns[i]);
        presto_buffer_done(&self->extras[i].offsets);
        presto_buffer_done(&self->extras[i].shapes);
    }
    free(self->columns);
    free(self->extras);
    free(self->bodies);
    free(self->numbers);
    presto_buffer_done(&self->message.bytes);
    free(self);
}

/* ---- the schema ---- */

static presto_status check_wishes(const arrow_stream *self,
                                  const presto_batch_feature *const *features, size_t count,
                                  presto_error *err) {
    for (size_t i = 0; i < self->wish_count; i++) {
        size_t at = 0;
        while (at < count && strcmp(features[at]->name, self->wishes[i].name) != 0)
            at++;
        if (at == count)
            return presto_fail(err, PRESTO_ERR_NOT_FOUND, PRESTO_NO_OFFSET,
                               "--arrow-type: the stream has no feature '%s'",
                               self->wishes[i].name);
    }
    return PRESTO_OK;
}

/* All that the user wants of a feature. */
static arrow_wish wish_of(const arrow_stream *self, const char *name) {
    arrow_wish all = {.name = name};
    for (size_t i = 0; i < self->wish_count; i++) {
        if (strcmp(self->wishes[i].name, name) != 0)
            continue;
        all.is_list = all.is_list || self->wishes[i].is_list;
        all.is_text = all.is_text || self->wishes[i].is_text;
    }
    return all;
}

static presto_status make_columns(arrow_stream *self, const presto_batch_feature *const *features,
                                  size_t count, presto_error *err) {
    size_t room = count + 1;
    PRESTO_TRY(check_wishes(self, features, count, err));
    self->columns = calloc(room, sizeof *self->columns);
    self->extras = calloc(room, sizeof *self->extras);
    self->bodies = calloc(room, sizeof *self->bodies);
    self->numbers = calloc(room * (MOST_NODES + MOST_BUFFERS) * 2, sizeof *self->numbers);
    if (self->columns == NULL || self->extras == NULL || self->bodies == NULL ||
        self->numbers == NULL)
        return presto_fail_memory(err, room * sizeof *self->bodies);
    for (; self->count < count; self->count++) {
        arrow_wish wish = wish_of(self, features[self->count]->name);
        PRESTO_TRY(arrow_column_of(features[self->count], &wish, &self->columns[self->count], err));
    }
    return PRESTO_OK;
}

/* The message that has been made: without its first word, which is there unless it is the first
 * one. */
static presto_status add_message(arrow_stream *self, presto_error *err) {
    const presto_buffer *bytes = &self->message.bytes;
    size_t there = self->is_begun ? sizeof first_word : 0;
    return pieces_add(self->out, bytes->data + there, bytes->bytes - there, err);
}

static presto_status write_schema(arrow_stream *self, presto_error *err) {
    self->message.err = err;
    PRESTO_TRY(arrow_schema_message(self->columns, self->count, &self->message));
    presto_status status = add_message(self, err);
    if (status == PRESTO_OK)
        status = pieces_add(self->out, first_word, sizeof first_word, err);
    if (status == PRESTO_OK)
        status = pieces_flush(self->out, err);
    self->is_begun = true;
    return status;
}

/* ---- a batch: does it fit ---- */

static bool fits_tensor(const arrow_column *column, const presto_tensor_spec *spec) {
    if (spec->rank != column->row.rank + 1)
        return false;
    for (int i = 1; i < spec->rank; i++)
        if (spec->dims[i] != column->row.dims[i - 1])
            return false;
    return true;
}

/* Dimensions of a row, as far as NAME.shape must tell them. */
static size_t row_rank(const presto_batch_feature *feature) {
    if (feature->layout == PRESTO_LAYOUT_DENSE)
        return feature->tensor.spec.rank > 2 ? (size_t)feature->tensor.spec.rank - 1 : 0;
    return feature->shapes == NULL ? 0 : feature->shape_rank;
}

static bool fits(const arrow_column *column, const presto_batch_feature *feature) {
    if (feature == NULL)
        return column->kind == ARROW_LIST || column->kind == ARROW_STRINGS;
    bool is_dense = feature->layout == PRESTO_LAYOUT_DENSE;
    bool is_string = feature->layout == PRESTO_LAYOUT_BYTES;
    if (column->kind == ARROW_STRINGS || column->kind == ARROW_STRING)
        return is_string && (column->kind == ARROW_STRINGS || feature->row_offsets == NULL);
    if (is_string || feature->tensor.spec.dtype != column->row.dtype)
        return false;
    if (column->kind == ARROW_LIST)
        return row_rank(feature) <= column->shape_rank;
    return is_dense && fits_tensor(column, &feature->tensor.spec);
}

static presto_status fail_schema(const arrow_column *column, const presto_batch *batch,
                                 presto_error *err) {
    return presto_fail(
        err, PRESTO_ERR_RAGGED, PRESTO_NO_OFFSET,
        "feature '%s' has another type, shape or layout in samples %ju to %ju than in the first "
        "batch, and an Arrow stream has one schema: use a larger --batch, --arrow-type NAME=list, "
        "--pad with a length, or choose others with --features",
        column->name, (uintmax_t)batch->first, (uintmax_t)(batch->first + batch->rows - 1));
}

static presto_status check_text(const presto_batch_feature *feature, const presto_batch *batch,
                                presto_error *err) {
    const int64_t *rows = feature->row_offsets;
    for (size_t row = 0; row < batch->rows; row++) {
        size_t string = rows == NULL ? row : (size_t)rows[row];
        size_t end = rows == NULL ? row + 1 : (size_t)rows[row + 1];
        for (; string < end; string++)
            if (!arrow_is_utf8(presto_batch_string(feature, string)))
                return presto_fail(err, PRESTO_ERR_TYPE, PRESTO_NO_OFFSET,
                                   "sample %ju: feature '%s' is not UTF-8: leave it binary",
                                   (uintmax_t)batch->sample_numbers[row], feature->name);
    }
    return PRESTO_OK;
}

/* ---- a batch: its buffers ---- */

static void add_buffer(body *to, const void *data, int64_t bytes) {
    to->data[to->count] = data;
    to->bytes[to->count++] = bytes;
}

/* No bitmap: all values are there. */
static void add_validity(body *to) {
    add_buffer(to, NULL, 0);
}

static presto_status make_offsets(extra *own, size_t rows, int64_t step, presto_error *err) {
    own->offsets.bytes = 0;
    PRESTO_TRY(presto_buffer_reserve(&own->offsets, (rows + 1) * sizeof(int64_t), err));
    int64_t *offsets = (int64_t *)(void *)own->offsets.data;
    for (size_t row = 0; row <= rows; row++)
        offsets[row] = (int64_t)row * step;
    return PRESTO_OK;
}

static presto_status make_shapes(extra *own, const arrow_column *column,
                                 const presto_batch_feature *feature, size_t rows,
                                 presto_error *err) {
    size_t rank = column->shape_rank, bytes = rows * rank * sizeof(int64_t);
    own->shapes.bytes = 0;
    PRESTO_TRY(presto_buffer_reserve(&own->shapes, bytes, err));
    memset(own->shapes.data, 0xff, bytes); /* -1: no such dimension */
    int64_t *shapes = (int64_t *)(void *)own->shapes.data;
    for (size_t row = 0; row < rows; row++, shapes += rank) {
        if (feature == NULL)
            shapes[0] = 0;
        else if (feature->shapes != NULL)
            memcpy(shapes, feature->shapes + row * feature->shape_rank,
                   feature->shape_rank * sizeof *shapes);
        else if (feature->layout == PRESTO_LAYOUT_RAGGED)
            shapes[0] = feature->offsets[row + 1] - feature->offsets[row];
        else if (feature->tensor.spec.rank == 1)
            shapes[0] = 1;
        else
            memcpy(shapes, feature->tensor.spec.dims + 1,
                   (size_t)(feature->tensor.spec.rank - 1) * sizeof *shapes);
    }
    return PRESTO_OK;
}

/* Numbers of each row as a list. */
static presto_status add_list(arrow_stream *self, size_t at, const presto_batch_feature *feature,
                              size_t rows, presto_error *err) {
    const arrow_column *column = &self->columns[at];
    extra *own = &self->extras[at];
    body *to = &self->bodies[at];
    int64_t items = feature == NULL ? 0 : (int64_t)presto_spec_elements(&feature->tensor.spec);
    const void *offsets = feature == NULL ? NULL : feature->offsets;
    if (offsets == NULL) {
        PRESTO_TRY(make_offsets(own, rows, items / (int64_t)rows, err));
        offsets = own->offsets.data;
    }
    add_validity(to);
    add_buffer(to, offsets, (int64_t)((rows + 1) * sizeof(int64_t)));
    add_validity(to);
    add_buffer(to, feature == NULL ? NULL : feature->tensor.data,
               items * (int64_t)presto_dtype_bytes(column->row.dtype));
    if (column->shape_rank == 0)
        return PRESTO_OK;
    PRESTO_TRY(make_shapes(own, column, feature, rows, err));
    add_validity(to);
    add_validity(to);
    add_buffer(to, own->shapes.data, (int64_t)(rows * column->shape_rank * sizeof(int64_t)));
    return PRESTO_OK;
}

static presto_status add_strings(arrow_stream *self, size_t at, const presto_batch_feature *feature,
                                 size_t rows, presto_error *err) {
    static const int64_t none[1] = {0};
    extra *own = &self->extras[at];
    body *to = &self->bodies[at];
    const int64_t *row_offsets = feature == NULL ? NULL : feature->row_offsets;
    size_t strings = row_offsets == NULL ? rows : (size_t)row_offsets[rows];
    if (self->columns[at].kind == ARROW_STRINGS) {
        if (row_offsets == NULL) {
            PRESTO_TRY(make_offsets(own, rows, feature != NULL, err));
            row_offsets = (const int64_t *)(const void *)own->offsets.data;
        }
        add_validity(to);
        add_buffer(to, row_offsets, (int64_t)((rows + 1) * sizeof(int64_t)));
    }
    const int64_t *offsets = feature == NULL ? none : feature->offsets;
    strings = feature == NULL ? 0 : strings;
    add_validity(to);
    add_buffer(to, offsets, (int64_t)((strings + 1) * sizeof(int64_t)));
    add_buffer(to, feature == NULL ? NULL : feature->tensor.data, offsets[strings]);
    return PRESTO_OK;
}

static presto_status add_column(arrow_stream *self, size_t at, const presto_batch *batch,
                                const presto_batch_feature *feature, presto_error *err) {
    const arrow_column *column = &self->columns[at];
    body *to = &self->bodies[at];
    to->count = 0;
    if (!fits(column, feature))
        return fail_schema(column, batch, err);
    if (column->is_text && feature != NULL)
        PRESTO_TRY(check_text(feature, batch, err));
    if (column->kind == ARROW_STRING || column->kind == ARROW_STRINGS)
        return add_strings(self, at, feature, batch->rows, err);
    if (column->kind == ARROW_LIST)
        return add_list(self, at, feature, batch->rows, err);
    if (column->kind == ARROW_TENSOR)
        add_validity(to);
    add_validity(to);
    add_buffer(to, feature->tensor.data, (int64_t)presto_tensor_bytes(&feature->tensor));
    return PRESTO_OK;
}

/* ---- a batch: its message ---- */

/* Lengths of the column's arrays, as pairs with the number of nulls. Returns how many. */
static size_t put_nodes(const arrow_column *column, const body *of, int64_t rows, int64_t *nodes) {
    const int64_t width = (int64_t)presto_dtype_bytes(column->row.dtype);
    size_t count = 1;
    nodes[0] = rows;
    if (column->kind == ARROW_TENSOR)
        nodes[2 * count++] = of->bytes[2] / width;
    else if (column->kind == ARROW_LIST)
        nodes[2 * count++] = of->bytes[3] / width;
    else if (column->kind == ARROW_STRINGS)
        nodes[2 * count++] = of->bytes[3] / (int64_t)sizeof(int64_t) - 1;
    if (column->shape_rank > 0) {
        nodes[2 * count++] = rows;
        nodes[2 * count++] = rows * (int64_t)column->shape_rank;
    }
    for (size_t i = 0; i < count; i++)
        nodes[2 * i + 1] = 0;
    return count;
}

static int64_t padded(int64_t bytes) {
    return (bytes + ARROW_ALIGNMENT - 1) / ARROW_ALIGNMENT * ARROW_ALIGNMENT;
}

/* Make the message, whose numbers stand in self->numbers: nodes, and behind them buffers. */
static presto_status make_message(arrow_stream *self, int64_t rows, presto_error *err) {
    size_t nodes = 0, buffers = 0;
    int64_t at = 0;
    for (size_t i = 0; i < self->count; i++)
        nodes += put_nodes(&self->columns[i], &self->bodies[i], rows, self->numbers + 2 * nodes);
    int64_t *places = self->numbers + 2 * nodes;
    for (size_t i = 0; i < self->count; i++)
        for (size_t j = 0; j < self->bodies[i].count; j++, buffers++) {
            places[2 * buffers] = at;
            places[2 * buffers + 1] = self->bodies[i].bytes[j];
            at += padded(self->bodies[i].bytes[j]);
        }
    flat *message = &self->message;
    message->err = err;
    size_t header = arrow_message_begin(message, ARROW_HEADER_BATCH, at);
    const flat_field fields[] = {{8, rows}, FLAT_OFFSET, FLAT_OFFSET};
    size_t batch = flat_table(message, fields, 3);
    flat_point(message, header, batch);
    flat_point(message, flat_in_table(batch, 1), flat_structs(message, self->numbers, 2, nodes));
    flat_point(message, flat_in_table(batch, 2), flat_structs(message, places, 2, buffers));
    arrow_message_end(message);
    return message->status;
}

static presto_status add_body(arrow_stream *self, const body *of, presto_error *err) {
    presto_status status = PRESTO_OK;
    for (size_t i = 0; i < of->count && status == PRESTO_OK; i++) {
        int64_t bytes = of->bytes[i];
        if (bytes == 0)
            continue;
        status = pieces_add(self->out, of->data[i], (size_t)bytes, err);
        if (status == PRESTO_OK && padded(bytes) > bytes)
            status = pieces_add(self->out, zeros, (size_t)(padded(bytes) - bytes), err);
    }
    return status;
}

static presto_status write_batch(arrow_stream *self, int64_t rows, presto_error *err) {
    PRESTO_TRY(make_message(self, rows, err));
    presto_status status = add_message(self, err);
    for (size_t i = 0; i < self->count && status == PRESTO_OK; i++)
        status = add_body(self, &self->bodies[i], err);
    if (status == PRESTO_OK)
        status = pieces_add(self->out, first_word, sizeof first_word, err);
    return status == PRESTO_OK ? pieces_flush(self->out, err) : status;
}

presto_status arrow_stream_begin(arrow_stream *self, const presto_batch_feature *const *features,
                                 size_t count, presto_error *err) {
    if (self->is_begun)
        return PRESTO_OK;
    PRESTO_TRY(make_columns(self, features, count, err));
    return write_schema(self, err);
}

presto_status arrow_stream_write(arrow_stream *self, const presto_batch *batch,
                                 const presto_batch_feature *const *features, size_t count,
                                 presto_error *err) {
    presto_status status = arrow_stream_begin(self, features, count, err);
    if (status != PRESTO_OK)
        return status;
    for (size_t i = self->count; i < count; i++)
        if (features[i] != NULL)
            return presto_fail(err, PRESTO_ERR_RAGGED, PRESTO_NO_OFFSET,
                               "feature '%s' is in samples %ju to %ju and not in the first batch, "
                               "and an Arrow stream has one schema: say what to write with "
                               "--features",
                               features[i]->name, (uintmax_t)batch->first,
                               (uintmax_t)(batch->first + batch->rows - 1));
    for (size_t i = 0; i < self->count; i++)
        PRESTO_TRY(add_column(self, i, batch, features[i], err));
    return write_batch(self, (int64_t)batch->rows, err);
}

presto_status arrow_stream_end(arrow_stream *self, presto_error *err) {
    presto_status status = PRESTO_OK;
    if (!self->is_begun)
        status = write_schema(self, err);
    if (status == PRESTO_OK)
        status = pieces_add(self->out, zeros, sizeof first_word, err);
    return status == PRESTO_OK ? pieces_flush(self->out, err) : status;
}
