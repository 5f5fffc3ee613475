/* SPDX-License-Identifier: Apache-2.0 */
#include "arrow_schema.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <presto/text.h>

enum { METADATA_V5 = 4, HALF = 0, SINGLE = 1, DOUBLE = 2 };

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

static arrow_type type_int(int64_t bits, bool is_signed) {
    return (arrow_type){TYPE_INT, {{4, bits}, {1, is_signed}}, 2};
}

static arrow_type type_float(int64_t precision) {
    return (arrow_type){TYPE_FLOAT, {{2, precision}, FLAT_ABSENT}, 1};
}

static arrow_type type_plain(int64_t id) {
    return (arrow_type){.id = id};
}

/* TYPE_NONE: Arrow has none. Booleans are bits there, and bytes here; bfloat16 is shown as its
 * bits. */
static arrow_type type_of(presto_dtype dtype) {
    switch (dtype) {
    case PRESTO_FLOAT16:
        return type_float(HALF);
    case PRESTO_FLOAT32:
        return type_float(SINGLE);
    case PRESTO_FLOAT64:
        return type_float(DOUBLE);
    case PRESTO_INT8:
    case PRESTO_INT16:
    case PRESTO_INT32:
    case PRESTO_INT64:
        return type_int((int64_t)presto_dtype_bytes(dtype) * 8, true);
    case PRESTO_UINT8:
    case PRESTO_UINT16:
    case PRESTO_UINT32:
    case PRESTO_UINT64:
    case PRESTO_BOOL:
    case PRESTO_BFLOAT16:
        return type_int((int64_t)presto_dtype_bytes(dtype) * 8, false);
    case PRESTO_STRING:
    case PRESTO_COMPLEX64:
    case PRESTO_COMPLEX128:
    case PRESTO_DTYPE_UNKNOWN:
        break;
    }
    return type_plain(TYPE_NONE);
}

/* ---- columns ---- */

bool arrow_is_utf8(presto_span text) {
    while (text.bytes > 0) {
        uint64_t eight;
        if (text.bytes >= sizeof eight) {
            memcpy(&eight, text.data, sizeof eight);
            if ((eight & UINT64_C(0x8080808080808080)) == 0) {
                text = presto_span_of(text.data + sizeof eight, text.bytes - sizeof eight);
                continue;
            }
        }
        size_t bytes = presto_utf8_bytes(text);
        if (bytes == 0)
            return false;
        text = presto_span_of(text.data + bytes, text.bytes - bytes);
    }
    return true;
}

/* Values of a row of a dense feature, whose batch has rows. */
static uint64_t row_items(const presto_tensor_spec *spec) {
    return presto_spec_elements(spec) / (uint64_t)spec->dims[0];
}

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
    if (feature->layout == PRESTO_LAYOUT_DENSE && row_items(&feature->tensor.spec) > INT32_MAX)
        return presto_fail(err, PRESTO_ERR_LIMIT, PRESTO_NO_OFFSET,
                           "feature '%s': a row has more values than a list of Arrow's can have",
                           feature->name);
    if (!arrow_is_utf8(presto_span_of_text(feature->name)))
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

static presto_status name_shapes(arrow_column *column, presto_error *err) {
    static const char suffix[] = ".shape";
    size_t room = strlen(column->name) + sizeof suffix;
    if (column->shape_rank == 0)
        return PRESTO_OK;
    column->shape_name = malloc(room);
    if (column->shape_name == NULL)
        return presto_fail_memory(err, room);
    snprintf(column->shape_name, room, "%s%s", column->name, suffix);
    return PRESTO_OK;
}

presto_status arrow_column_of(const presto_batch_feature *feature, const arrow_wish *wish,
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
    presto_status status = name_shapes(&column, err);
    if (status >= 0)
        *column_out = column;
    else
        arrow_column_done(&column);
    return status;
}

void arrow_column_done(arrow_column *column) {
    free(column->name);
    free(column->shape_name);
}

/* ---- messages ---- */

size_t arrow_message_begin(flat *out, int header_type, int64_t body_bytes) {
    out->bytes.bytes = 0;
    flat_room(out, 12, 8, 0); /* two words of the stream, and the offset of the root */
    const flat_field fields[] = {{2, METADATA_V5}, {1, header_type}, FLAT_OFFSET, {8, body_bytes}};
    size_t message = flat_table(out, fields, 4);
    flat_point(out, 8, message);
    return flat_in_table(message, 2);
}

void arrow_message_end(flat *out) {
    flat_room(out, 0, ARROW_ALIGNMENT, 0);
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
    const arrow_field dims = {.name = "item", .type = type_int(64, true)};
    const arrow_field field = {
        .name = column->shape_name, .type = type_list((int64_t)column->shape_rank), .child = &dims};
    return put_field(out, &field);
}

presto_status arrow_schema_message(const arrow_column *columns, size_t count, flat *out) {
    size_t fields = 0, next = 0;
    for (size_t i = 0; i < count; i++)
        fields += columns[i].shape_rank > 0 ? 2 : 1;
    size_t header = arrow_message_begin(out, ARROW_HEADER_SCHEMA, 0);
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
