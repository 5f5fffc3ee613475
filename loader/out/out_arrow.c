/* SPDX-License-Identifier: Apache-2.0 */
/*
 * arrow: an Arrow IPC stream: a schema, a record batch for each batch, an end. All batches have the
 * schema of the first one.
 *
 * A record batch is a message with the sizes of all buffers, then the buffers, each padded to 64
 * bytes. Columns go from the batch to the writer without a copy. The first word of each message is
 * written with the message before it: a stream that breaks off, wherever that is, then ends within
 * a message, and every reader notices.
 *
 * Source: Arrow's "Columnar Format", section on serialization and IPC; format/Schema.fbs and
 * format/Message.fbs; "Canonical Extension Types"; "FlatBuffer Internals" of the FlatBuffers
 * documentation.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../base/arrow_types_internal.h"
#include "out_internal.h"

enum { DEFAULT_BATCH = 64, ALIGNMENT = 64, HEADER_SCHEMA = 1, HEADER_BATCH = 3 };
enum { METADATA_V5 = 4 };

/*
 * ---- FlatBuffers, front to back ----
 * What Arrow's messages need, and no schema compiler. A table is written before what it points to;
 * the offset is set when the target has its place. After a lack of memory all calls do nothing, and
 * `status` says so.
 */

/* Zero-initialise; presto_buffer_done(&bytes) frees. */
typedef struct flat {
    presto_buffer bytes;
    presto_status status;
    presto_error *err; /* borrowed; filled on failure */
} flat;

/* A field of a table: a number of so many bytes, 0 if the field is absent. */
typedef struct flat_field {
    size_t bytes;
    int64_t value;
} flat_field;

/* A field that points: flat_point sets it. */
#define FLAT_OFFSET ((flat_field){4, 0})
#define FLAT_ABSENT ((flat_field){0, 0})

/* Where the offset in field `field` of a table is, or in item `item` of a vector. */
static size_t flat_in_table(size_t table, size_t field) {
    return table + 4 + 8 * field;
}
static size_t flat_in_vector(size_t vector, size_t item) {
    return vector + 4 + 4 * item;
}

/* Append `bytes` zeros, so that the first one's position plus `before` is a multiple of
 * `alignment`. Returns the position. */
static size_t flat_room(flat *self, size_t bytes, size_t alignment, size_t before) {
    size_t start = self->bytes.bytes;
    size_t gap = (alignment - (start + before) % alignment) % alignment;
    if (self->status >= 0)
        self->status = presto_buffer_reserve(&self->bytes, gap + bytes, self->err);
    if (self->status < 0)
        return 0;
    memset(self->bytes.data + start, 0, gap + bytes);
    self->bytes.bytes = start + gap + bytes;
    return start + gap;
}

/* Write a number of 1 to 8 bytes at a position that there is. */
static void flat_set(flat *self, size_t position, int64_t value, size_t bytes) {
    uint64_t rest = (uint64_t)value;
    for (size_t i = 0; i < bytes && self->status >= 0; i++, rest >>= 8)
        self->bytes.data[position + i] = (uint8_t)rest;
}

/* A table with these fields, at most 8. Returns its position, as do those below.
 * Every field has eight bytes, so that each is aligned whatever its width. */
static size_t flat_table(flat *self, const flat_field *fields, size_t count) {
    size_t vtable_bytes = 4 + 2 * count, table_bytes = 4 + 8 * count;
    size_t vtable = flat_room(self, vtable_bytes, 2, 0);
    size_t table = flat_room(self, table_bytes, 8, 4);
    flat_set(self, vtable, (int64_t)vtable_bytes, 2);
    flat_set(self, vtable + 2, (int64_t)table_bytes, 2);
    flat_set(self, table, (int64_t)(table - vtable), 4);
    for (size_t i = 0; i < count; i++) {
        if (fields[i].bytes == 0)
            continue;
        flat_set(self, vtable + 4 + 2 * i, (int64_t)(4 + 8 * i), 2);
        flat_set(self, flat_in_table(table, i), fields[i].value, fields[i].bytes);
    }
    return table;
}

static size_t flat_string(flat *self, const char *text) {
    size_t bytes = strlen(text);
    size_t at = flat_room(self, 4 + bytes + 1, 4, 0);
    flat_set(self, at, (int64_t)bytes, 4);
    if (self->status >= 0)
        memcpy(self->bytes.data + at + 4, text, bytes);
    return at;
}

/* A vector of `count` offsets, which flat_point sets. */
static size_t flat_offsets(flat *self, size_t count) {
    size_t at = flat_room(self, 4 + 4 * count, 4, 0);
    flat_set(self, at, (int64_t)count, 4);
    return at;
}

/* A vector of structs of `width` int64 each. */
static size_t flat_structs(flat *self, const int64_t *numbers, size_t width, size_t count) {
    size_t at = flat_room(self, 4 + 8 * width * count, 8, 4);
    flat_set(self, at, (int64_t)count, 4);
    for (size_t i = 0; i < width * count; i++)
        flat_set(self, at + 4 + 8 * i, numbers[i], 8);
    return at;
}

/* Set an offset to its target, which stands behind it. */
static void flat_point(flat *self, size_t at, size_t target) {
    flat_set(self, at, (int64_t)(target - at), 4);
}

/* ---- columns: which Arrow type a feature has ---- */

/* Offsets of lists and strings are int64, as in batches: all are Arrow's "large" types. */
typedef enum arrow_kind {
    ARROW_NUMBER = 0, /* one number a row */
    ARROW_TENSOR = 1, /* arrow.fixed_shape_tensor */
    ARROW_LIST = 2,   /* a list of numbers a row */
    ARROW_STRING = 3, /* one string a row: binary, or utf8 */
    ARROW_STRINGS = 4 /* a list of strings a row */
} arrow_kind;

/* A feature as all batches of the stream have it. */
typedef struct arrow_column {
    char *name;       /* owned */
    char *shape_name; /* owned; of the second column, or NULL */
    arrow_kind kind;
    presto_tensor_spec row; /* dtype of the values; ARROW_TENSOR: the shape of a row */
    size_t shape_rank;      /* ARROW_LIST: rows have up to so many dimensions, which a second column
                               has; 0: they have one, and there is no such column */
    bool is_text;           /* utf8 */
} arrow_column;

/* What the user wants of a feature's type. */
typedef struct arrow_wish {
    bool is_list; /* a list although the rows of the first batch have one shape */
    bool is_text; /* utf8, and an error if it is not */
} arrow_wish;

/* Members of the union Type. */
enum {
    TYPE_NONE = 0,
    TYPE_INT = 2,
    TYPE_FLOAT = 3,
    TYPE_FIXED_SIZE_LIST = 16,
    TYPE_LARGE_BINARY = 19,
    TYPE_LARGE_UTF8 = 20,
    TYPE_LARGE_LIST = 21
};

/* A type with its parameters, which are fields of its table. */
typedef struct arrow_type {
    int64_t id;
    flat_field parameters[2];
    size_t parameter_count;
} arrow_type;

typedef struct arrow_field {
    const char *name;
    arrow_type type;
    const char *tensor_metadata;     /* of arrow.fixed_shape_tensor, or NULL */
    const struct arrow_field *child; /* NULL: none */
} arrow_field;

/* ---- types ---- */

static arrow_type type_plain(int64_t id) {
    return (arrow_type){.id = id};
}

/* TYPE_NONE: Arrow has none. */
static arrow_type type_of(presto_dtype dtype) {
    const presto__arrow_number *number = presto__arrow_number_of(dtype);
    if (number == NULL)
        return type_plain(TYPE_NONE);
    if (number->is_float)
        return (arrow_type){TYPE_FLOAT, {{2, number->precision}, FLAT_ABSENT}, 1};
    return (arrow_type){
        TYPE_INT, {{4, (int64_t)presto_dtype_bytes(dtype) * 8}, {1, number->is_signed}}, 2};
}

/* ---- columns ---- */

static presto_status check_column(const presto_batch_feature *feature, const arrow_wish *wish,
                                  presto_error *err) {
    bool is_string = feature->layout == PRESTO_LAYOUT_BYTES;
    const char *dtype = presto_dtype_name(feature->tensor.spec.dtype);
    if (!is_string && type_of(feature->tensor.spec.dtype).id == TYPE_NONE)
        return presto_fail(err, PRESTO_ERR_TYPE, PRESTO_NO_OFFSET,
                           "feature '%s': Arrow has no type for %s; choose others with --features",
                           feature->name, dtype);
    if (wish != NULL && wish->is_text && !is_string)
        return presto_fail(err, PRESTO_ERR_TYPE, PRESTO_NO_OFFSET,
                           "--arrow-type: feature '%s' is %s, no text", feature->name, dtype);
    const presto_tensor_spec *spec = &feature->tensor.spec; /* the batch has rows */
    if (feature->layout == PRESTO_LAYOUT_DENSE &&
        presto_spec_elements(spec) / (uint64_t)spec->dims[0] > INT32_MAX)
        return presto_fail(err, PRESTO_ERR_LIMIT, PRESTO_NO_OFFSET,
                           "feature '%s': a row has more values than a list of Arrow's can have",
                           feature->name);
    if (!presto__arrow_is_utf8(presto_span_of_text(feature->name)))
        return presto_fail(err, PRESTO_ERR_TYPE, PRESTO_NO_OFFSET,
                           "a feature's name is not UTF-8, as Arrow has them: choose others with "
                           "--features");
    return PRESTO_OK;
}

static arrow_kind kind_of(const presto_batch_feature *feature, bool wants_list) {
    if (feature->layout == PRESTO_LAYOUT_BYTES)
        return feature->row_offsets == NULL && !wants_list ? ARROW_STRING : ARROW_STRINGS;
    if (feature->layout == PRESTO_LAYOUT_RAGGED || wants_list)
        return ARROW_LIST;
    return feature->tensor.spec.rank > 1 ? ARROW_TENSOR : ARROW_NUMBER;
}

static void arrow_column_done(arrow_column *column) {
    free(column->name);
    free(column->shape_name);
}

static presto_status arrow_column_of(const presto_batch_feature *feature, const arrow_wish *wish,
                                     arrow_column *column_out, presto_error *err) {
    PRESTO_TRY(check_column(feature, wish, err));
    const presto_tensor_spec *spec = &feature->tensor.spec;
    arrow_column column = {.name = strdup(feature->name),
                           .kind = kind_of(feature, wish != NULL && wish->is_list),
                           .row = {.dtype = spec->dtype},
                           .is_text = wish != NULL && wish->is_text};
    if (column.name == NULL)
        return presto_fail_memory(err, strlen(feature->name) + 1);
    if (column.kind == ARROW_TENSOR)
        for (int i = 1; i < spec->rank; i++)
            column.row.dims[column.row.rank++] = spec->dims[i];
    if (column.kind == ARROW_LIST && feature->layout == PRESTO_LAYOUT_DENSE)
        column.shape_rank = spec->rank > 2 ? (size_t)spec->rank - 1 : 0;
    else if (column.kind == ARROW_LIST && feature->shapes != NULL)
        column.shape_rank = feature->shape_rank;
    if (column.shape_rank > 0) {
        static const char suffix[] = ".shape";
        size_t room = strlen(column.name) + sizeof suffix;
        column.shape_name = malloc(room);
        if (column.shape_name == NULL) {
            arrow_column_done(&column);
            return presto_fail_memory(err, room);
        }
        snprintf(column.shape_name, room, "%s%s", column.name, suffix);
    }
    *column_out = column;
    return PRESTO_OK;
}

/* ---- messages ---- */

static size_t arrow_message_begin(flat *out, int header_type, int64_t body_bytes) {
    out->bytes.bytes = 0;
    flat_room(out, 12, 8, 0); /* two words of the stream, and the offset of the root */
    const flat_field fields[] = {{2, METADATA_V5}, {1, header_type}, FLAT_OFFSET, {8, body_bytes}};
    size_t message = flat_table(out, fields, 4);
    flat_point(out, 8, message);
    return flat_in_table(message, 2);
}

static void arrow_message_end(flat *out) {
    flat_room(out, 0, ALIGNMENT, 0);
    flat_set(out, 0, -1, 4);
    flat_set(out, 4, (int64_t)out->bytes.bytes - 8, 4);
}

static size_t put_pair(flat *out, const char *key, const char *value) {
    const flat_field fields[] = {FLAT_OFFSET, FLAT_OFFSET};
    size_t pair = flat_table(out, fields, 2);
    flat_point(out, flat_in_table(pair, 0), flat_string(out, key));
    flat_point(out, flat_in_table(pair, 1), flat_string(out, value));
    return pair;
}

static size_t put_metadata(flat *out, const char *tensor_metadata) {
    size_t pairs = flat_offsets(out, 2);
    flat_point(out, flat_in_vector(pairs, 0),
               put_pair(out, "ARROW:extension:name", "arrow.fixed_shape_tensor"));
    flat_point(out, flat_in_vector(pairs, 1),
               put_pair(out, "ARROW:extension:metadata", tensor_metadata));
    return pairs;
}

/* All fields are nullable, although nothing is missing: such are the types that libraries make. */
static size_t put_field_alone(flat *out, const arrow_field *field, size_t *children_out) {
    const flat_field fields[] = {FLAT_OFFSET,
                                 {1, true},
                                 {1, field->type.id},
                                 FLAT_OFFSET,
                                 FLAT_ABSENT,
                                 FLAT_OFFSET,
                                 field->tensor_metadata == NULL ? FLAT_ABSENT : FLAT_OFFSET};
    size_t table = flat_table(out, fields, 7);
    flat_point(out, flat_in_table(table, 0), flat_string(out, field->name));
    flat_point(out, flat_in_table(table, 3),
               flat_table(out, field->type.parameters, field->type.parameter_count));
    *children_out = flat_offsets(out, field->child != NULL);
    flat_point(out, flat_in_table(table, 5), *children_out);
    if (field->tensor_metadata != NULL)
        flat_point(out, flat_in_table(table, 6), put_metadata(out, field->tensor_metadata));
    return table;
}

static size_t put_field(flat *out, const arrow_field *field) {
    size_t children, unused;
    size_t table = put_field_alone(out, field, &children);
    if (field->child != NULL)
        flat_point(out, flat_in_vector(children, 0), put_field_alone(out, field->child, &unused));
    return table;
}

static arrow_type type_list(int64_t items) {
    return (arrow_type){TYPE_FIXED_SIZE_LIST, {{4, items}, FLAT_ABSENT}, 1};
}

/* {"shape":[224,224,3]} */
static void format_shape(const presto_tensor_spec *row, char *text, size_t room) {
    size_t used = (size_t)snprintf(text, room, "{\"shape\":[");
    for (int i = 0; i < row->rank; i++)
        used += (size_t)snprintf(text + used, room - used, "%s%jd", i > 0 ? "," : "",
                                 (intmax_t)row->dims[i]);
    snprintf(text + used, room - used, "]}");
}

static size_t put_column(flat *out, const arrow_column *column) {
    char shape[32 * PRESTO_MAX_RANK + 16];
    const arrow_field numbers = {.name = "item", .type = type_of(column->row.dtype)};
    const arrow_type string = type_plain(column->is_text ? TYPE_LARGE_UTF8 : TYPE_LARGE_BINARY);
    const arrow_field strings = {.name = "item", .type = string};
    arrow_field field = {.name = column->name};
    switch (column->kind) {
    case ARROW_NUMBER:
        field.type = numbers.type;
        break;
    case ARROW_TENSOR:
        format_shape(&column->row, shape, sizeof shape);
        field.type = type_list((int64_t)presto_spec_elements(&column->row));
        field.tensor_metadata = shape;
        field.child = &numbers;
        break;
    case ARROW_LIST:
        field.type = type_plain(TYPE_LARGE_LIST);
        field.child = &numbers;
        break;
    case ARROW_STRING:
        field.type = string;
        break;
    case ARROW_STRINGS:
        field.type = type_plain(TYPE_LARGE_LIST);
        field.child = &strings;
        break;
    }
    return put_field(out, &field);
}

/* The column NAME.shape. */
static size_t put_shape_column(flat *out, const arrow_column *column) {
    const arrow_field dims = {.name = "item", .type = type_of(PRESTO_INT64)};
    const arrow_field field = {
        .name = column->shape_name, .type = type_list((int64_t)column->shape_rank), .child = &dims};
    return put_field(out, &field);
}

static presto_status arrow_schema_message(const arrow_column *columns, size_t count, flat *out) {
    size_t fields = 0, next = 0;
    for (size_t i = 0; i < count; i++)
        fields += columns[i].shape_rank > 0 ? 2 : 1;
    size_t header = arrow_message_begin(out, HEADER_SCHEMA, 0);
    size_t schema = flat_table(out, (const flat_field[]){{2, 0}, FLAT_OFFSET}, 2);
    flat_point(out, header, schema);
    size_t list = flat_offsets(out, fields);
    flat_point(out, flat_in_table(schema, 1), list);
    for (size_t i = 0; i < count; i++) {
        flat_point(out, flat_in_vector(list, next++), put_column(out, &columns[i]));
        if (columns[i].shape_rank > 0)
            flat_point(out, flat_in_vector(list, next++), put_shape_column(out, &columns[i]));
    }
    arrow_message_end(out);
    return out->status;
}

/* ---- the stream ---- */

/* Of a column, with that of its shapes. */
enum { MOST_NODES = 4, MOST_BUFFERS = 7 };

static const uint8_t zeros[ALIGNMENT];
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

typedef struct arrow_stream {
    const presto_arrow_type *types; /* of the options, borrowed, as is the schema */
    size_t type_count;
    const presto_batch *schema;
    bool is_begun;         /* the schema has been written */
    arrow_column *columns; /* and three arrays of as many: */
    extra *extras;
    body *bodies;
    int64_t *numbers; /* nodes, then buffers, as pairs */
    size_t count;
    flat message;
} arrow_stream;

/* ---- the schema ---- */

static presto_status check_wishes(const arrow_stream *self, const presto_out *out,
                                  presto_error *err) {
    for (size_t i = 0; i < self->type_count; i++) {
        size_t at = 0;
        while (at < out->count && strcmp(out->columns[at].name, self->types[i].feature) != 0)
            at++;
        if (at == out->count)
            return presto_fail(err, PRESTO_ERR_NOT_FOUND, PRESTO_NO_OFFSET,
                               "--arrow-type: the stream has no feature '%s'",
                               self->types[i].feature);
    }
    return PRESTO_OK;
}

/* All that the user wants of a feature. */
static arrow_wish wish_of(const arrow_stream *self, const char *name) {
    arrow_wish all = {0};
    for (size_t i = 0; i < self->type_count; i++) {
        if (strcmp(self->types[i].feature, name) != 0)
            continue;
        all.is_list = all.is_list || self->types[i].as == PRESTO_ARROW_LIST;
        all.is_text = all.is_text || self->types[i].as == PRESTO_ARROW_UTF8;
    }
    return all;
}

static presto_status make_columns(arrow_stream *self, const presto_out *out, presto_error *err) {
    size_t room = out->count + 1;
    PRESTO_TRY(check_wishes(self, out, err));
    self->columns = calloc(room, sizeof *self->columns);
    self->extras = calloc(room, sizeof *self->extras);
    self->bodies = calloc(room, sizeof *self->bodies);
    self->numbers = calloc(room * (MOST_NODES + MOST_BUFFERS) * 2, sizeof *self->numbers);
    if (self->columns == NULL || self->extras == NULL || self->bodies == NULL ||
        self->numbers == NULL)
        return presto_fail_memory(err, room * sizeof *self->bodies);
    for (; self->count < out->count; self->count++) {
        const presto_batch_feature *feature = out->columns[self->count].feature;
        arrow_wish wish = wish_of(self, feature->name);
        PRESTO_TRY(arrow_column_of(feature, &wish, &self->columns[self->count], err));
    }
    return PRESTO_OK;
}

/* The message that has been made: without its first word, which is there unless it is the first
 * one. */
static presto_status add_message(presto_out *out, presto_error *err) {
    const arrow_stream *self = out->state;
    const presto_buffer *bytes = &self->message.bytes;
    size_t there = self->is_begun ? sizeof first_word : 0;
    return presto__out_add(out, bytes->data + there, bytes->bytes - there, err);
}

static presto_status write_schema(presto_out *out, presto_error *err) {
    arrow_stream *self = out->state;
    self->message.err = err;
    PRESTO_TRY(arrow_schema_message(self->columns, self->count, &self->message));
    presto_status status = add_message(out, err);
    if (status == PRESTO_OK)
        status = presto__out_add(out, first_word, sizeof first_word, err);
    if (status == PRESTO_OK)
        status = presto__out_flush(out, err); /* the message will be another one */
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
            if (!presto__arrow_is_utf8(presto_batch_string(feature, string)))
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
    return (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
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
    size_t header = arrow_message_begin(message, HEADER_BATCH, at);
    const flat_field fields[] = {{8, rows}, FLAT_OFFSET, FLAT_OFFSET};
    size_t batch = flat_table(message, fields, 3);
    flat_point(message, header, batch);
    flat_point(message, flat_in_table(batch, 1), flat_structs(message, self->numbers, 2, nodes));
    flat_point(message, flat_in_table(batch, 2), flat_structs(message, places, 2, buffers));
    arrow_message_end(message);
    return message->status;
}

static presto_status add_body(presto_out *out, const body *of, presto_error *err) {
    presto_status status = PRESTO_OK;
    for (size_t i = 0; i < of->count && status == PRESTO_OK; i++) {
        int64_t bytes = of->bytes[i];
        if (bytes == 0)
            continue;
        status = presto__out_add(out, of->data[i], (size_t)bytes, err);
        if (status == PRESTO_OK && padded(bytes) > bytes)
            status = presto__out_add(out, zeros, (size_t)(padded(bytes) - bytes), err);
    }
    return status;
}

static presto_status write_batch(presto_out *out, int64_t rows, presto_error *err) {
    arrow_stream *self = out->state;
    PRESTO_TRY(make_message(self, rows, err));
    presto_status status = add_message(out, err);
    for (size_t i = 0; i < self->count && status == PRESTO_OK; i++)
        status = add_body(out, &self->bodies[i], err);
    if (status == PRESTO_OK)
        status = presto__out_add(out, first_word, sizeof first_word, err);
    return status;
}

/* The schema, unless it has been written: of the columns as a batch with rows has them. */
static presto_status begin_stream(presto_out *out, presto_error *err) {
    arrow_stream *self = out->state;
    if (self->is_begun)
        return PRESTO_OK;
    PRESTO_TRY(make_columns(self, out, err));
    return write_schema(out, err);
}

static presto_status encode_arrow(presto_out *out, const presto_batch *batch, presto_error *err) {
    arrow_stream *self = out->state;
    PRESTO_TRY(presto__out_find_features(out, batch, err));
    presto_status status = begin_stream(out, err);
    if (status != PRESTO_OK)
        return status;
    for (size_t i = self->count; i < out->count; i++)
        if (out->columns[i].feature != NULL)
            return presto_fail(err, PRESTO_ERR_RAGGED, PRESTO_NO_OFFSET,
                               "feature '%s' is in samples %ju to %ju and not in the first batch, "
                               "and an Arrow stream has one schema: say what to write with "
                               "--features",
                               out->columns[i].name, (uintmax_t)batch->first,
                               (uintmax_t)(batch->first + batch->rows - 1));
    for (size_t i = 0; i < self->count; i++)
        PRESTO_TRY(add_column(self, i, batch, out->columns[i].feature, err));
    return write_batch(out, (int64_t)batch->rows, err);
}

/* The schema of a stream without samples. Nothing may declare a feature that is asked for, or its
 * dtype: then the schema has no columns. */
static presto_status declare(presto_out *out, const presto_batch *schema, presto_error *err) {
    for (size_t i = 0; i < out->wanted_count; i++)
        if (presto__out_find_feature(schema, out->wanted[i]) == NULL)
            return PRESTO_OK;
    PRESTO_TRY(presto__out_find_features(out, schema, err));
    for (size_t i = 0; i < out->count; i++)
        if (out->columns[i].feature->tensor.spec.dtype == PRESTO_DTYPE_UNKNOWN)
            return PRESTO_OK;
    return begin_stream(out, err);
}

static presto_status end_arrow(presto_out *out, presto_error *err) {
    arrow_stream *self = out->state;
    presto_status status = PRESTO_OK;
    if (out->batches == 0 && self->schema != NULL && self->schema->feature_count > 0)
        status = declare(out, self->schema, err);
    if (status == PRESTO_OK && !self->is_begun)
        status = write_schema(out, err);
    return status == PRESTO_OK ? presto__out_add(out, zeros, sizeof first_word, err) : status;
}

/* ---- life ---- */

static presto_status begin_arrow(presto_out *out, const presto_out_options *options,
                                 presto_error *err) {
    arrow_stream *self = out->state;
    (void)err;
    self->types = options->arrow_types;
    self->type_count = options->arrow_type_count;
    self->schema = options->schema;
    return PRESTO_OK;
}

static void done_arrow(presto_out *out) {
    arrow_stream *self = out->state;
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
}

const presto__out_type presto__out_arrow = {
    .about = {.name = "arrow",
              .help = "an Arrow IPC stream: a record batch for each batch",
              .default_batch = DEFAULT_BATCH,
              .takes_features = true,
              .takes_raw_records = true,
              .takes_arrow_types = true,
              .wants_schema = true},
    .state_bytes = sizeof(arrow_stream),
    .begin = begin_arrow,
    .encode = encode_arrow,
    .end = end_arrow,
    .done = done_arrow};
