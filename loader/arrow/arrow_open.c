/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The schema of a record batch to columns. All fields are looked at before anything fails, so that
 * one message names all that cannot be stored.
 *
 * Source: Arrow's "The Arrow C data interface", format strings and metadata; "Canonical Extension
 * Types", fixed shape tensor.
 */
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>

#include <presto/dataset.h>
#include <presto/numbers.h>
#include <presto/text.h>

#include "../../base/arrow_types_internal.h"
#include "../../base/json_limit_internal.h"
#include "../../base/options_internal.h"
#include "../../base/tensor_internal.h"
#include "arrow_internal.h"

#define MOST_DEPTH 64                   /* structs in structs */
#define MOST_RANK (PRESTO_MAX_RANK - 1) /* a batch has one dimension more */
#define MOST_SCALE 76                   /* digits of the largest decimal */
#define WHY_BYTES 256
#define MOST_METADATA ((size_t)1 << 16)

void presto_arrow_options_init(presto_arrow_options *options, size_t struct_bytes) {
    const presto_arrow_options defaults = {0};
    presto__options_give(options, struct_bytes, &defaults, sizeof defaults);
}

/* ---- words ---- */

/* Types that need a conversion, or have no feature. */
typedef struct named_type {
    const char *format; /* it begins so */
    const char *name;
    const char *unit; /* of what `convert` makes int64; NULL: it is refused */
    size_t bytes;
} named_type;

#define EXTENSION_NAME "ARROW:extension:name"
#define FIXED_TENSOR "arrow.fixed_shape_tensor"
#define SINCE " since 1970-01-01"
static const named_type types[] = {
    {"tdD", "date32", "days" SINCE, 4},
    {"tdm", "date64", "milliseconds" SINCE, 8},
    {"tts", "time32[s]", "seconds of a day", 4},
    {"ttm", "time32[ms]", "milliseconds of a day", 4},
    {"ttu", "time64[us]", "microseconds of a day", 8},
    {"ttn", "time64[ns]", "nanoseconds of a day", 8},
    {"tss:", "timestamp[s]", "seconds" SINCE, 8},
    {"tsm:", "timestamp[ms]", "milliseconds" SINCE, 8},
    {"tsu:", "timestamp[us]", "microseconds" SINCE, 8},
    {"tsn:", "timestamp[ns]", "nanoseconds" SINCE, 8},
    {"tDs", "duration[s]", "seconds", 8},
    {"tDm", "duration[ms]", "milliseconds", 8},
    {"tDu", "duration[us]", "microseconds", 8},
    {"tDn", "duration[ns]", "nanoseconds", 8},
    {"ti", "interval", NULL, 0},
    {"+m", "map", NULL, 0},
    {"+u", "union", NULL, 0},
    {"+r", "run-end encoded", NULL, 0},
    {"+v", "list view", NULL, 0},
};

static const named_type *find_type(const char *format) {
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++)
        if (strncmp(format, types[i].format, strlen(types[i].format)) == 0)
            return &types[i];
    return NULL;
}

/* ---- the schema being read ---- */

typedef struct schema_reading {
    const presto_arrow_options *options;
    presto_arrow *arrow;
    size_t capacity; /* of arrow->columns */
    bool *used;      /* options that were used: those of convert, then those of tensors */
    size_t refused;
    size_t listed;                            /* of those, in the message */
    char message[PRESTO_ERROR_MESSAGE_BYTES]; /* of what is refused */
    presto_error *err;
} schema_reading;

/* A field of the schema, with the way to it. */
typedef struct schema_field {
    const struct ArrowSchema *schema;
    const char *name; /* of the feature */
    presto__arrow_step path[MOST_DEPTH];
    size_t depth;
} schema_field;

static void note(const schema_reading *self, presto_arrow_note kind, const char *column,
                 const char *text) {
    if (self->options->on_note != NULL)
        self->options->on_note(self->options->on_note_user, kind, column, text);
}

/* The message has room for what comes behind the list. */
static void refuse(schema_reading *self, const char *column, const char *why) {
    char item[PRESTO_ERROR_MESSAGE_BYTES];
    size_t used = strlen(self->message), room = sizeof self->message - 96;
    int bytes = snprintf(item, sizeof item, "%s%s (%s)", used > 0 ? ", " : "", column, why);
    note(self, PRESTO_ARROW_REFUSED, column, why);
    self->refused++;
    if (self->listed + 1 != self->refused || bytes < 0 || used + (size_t)bytes >= room)
        return;
    memcpy(self->message + used, item, (size_t)bytes + 1);
    self->listed++;
}

/* The value of option "COLUMN=VALUE" of a column; NULL: there is none. */
static const char *option_of(schema_reading *self, const char *const *list, size_t count,
                             const char *column) {
    bool *used = self->used + (list == self->options->convert ? 0 : self->options->convert_count);
    for (size_t i = 0; i < count; i++) {
        const char *end = strrchr(list[i], '=');
        if ((size_t)(end - list[i]) != strlen(column) ||
            memcmp(list[i], column, strlen(column)) != 0)
            continue;
        used[i] = true;
        return end + 1;
    }
    return NULL;
}

/* ---- metadata ---- */

/* The value of a key, which ends with no NUL; empty: there is none. Metadata is a number of pairs,
 * then texts, each behind its length; how long it is in all, nobody says. */
static presto_span metadata_of(const char *metadata, const char *key) {
    int32_t pairs, bytes[2];
    if (metadata == NULL)
        return (presto_span){0};
    memcpy(&pairs, metadata, sizeof pairs);
    for (const char *at = metadata + sizeof pairs; pairs > 0; pairs--) {
        const char *text[2];
        for (int i = 0; i < 2; i++) {
            memcpy(&bytes[i], at, sizeof bytes[i]);
            if (bytes[i] < 0)
                return (presto_span){0};
            text[i] = at + sizeof bytes[i];
            at = text[i] + bytes[i];
        }
        if (presto_span_is(presto_span_of(text[0], (size_t)bytes[0]), key))
            return presto_span_of(text[1], (size_t)bytes[1]);
    }
    return (presto_span){0};
}

static bool read_shape(const json_t *shape, presto_tensor_spec *spec) {
    if (!json_is_array(shape) || json_array_size(shape) > MOST_RANK)
        return false;
    spec->rank = (int)json_array_size(shape);
    for (int i = 0; i < spec->rank; i++) {
        const json_t *dim = json_array_get(shape, (size_t)i);
        if (!json_is_integer(dim) || json_integer_value(dim) < 0)
            return false;
        spec->dims[i] = json_integer_value(dim);
    }
    return true;
}

/* Does a permutation leave all where it is? */
static bool is_identity(const json_t *permutation, int rank) {
    if (permutation == NULL || json_is_null(permutation))
        return true;
    if (!json_is_array(permutation) || json_array_size(permutation) != (size_t)rank)
        return false;
    for (int i = 0; i < rank; i++)
        if (json_integer_value(json_array_get(permutation, (size_t)i)) != i)
            return false;
    return true;
}

/* NULL: it is a tensor of a shape. Else why not. */
static const char *take_extension(presto__arrow_column *column, presto_span metadata) {
    if (presto__json_check(metadata, MOST_METADATA, 1024, NULL) < 0)
        return "its shape is too long";
    json_t *root = json_loadb((const char *)metadata.data, metadata.bytes, 0, NULL);
    const char *why = NULL;
    size_t bytes;
    column->tensor.dtype = column->values.dtype;
    if (!read_shape(json_object_get(root, "shape"), &column->tensor))
        why = "a tensor without a shape of 0 to 7 dimensions";
    else if (presto_spec_bytes(&column->tensor, &bytes, NULL) < 0)
        why = "a tensor of an impossible size";
    else if (!is_identity(json_object_get(root, "permutation"), column->tensor.rank))
        why = "a tensor whose dimensions are permuted";
    json_decref(root);
    column->is_tensor = true;
    return why;
}

/* ---- types ---- */

/* A decimal: "d:19,10" or "d:19,10,256". NULL: it is taken. Else why not. */
static const char *take_decimal(presto__arrow_values *values, const char *format,
                                const char *convert) {
    int precision, scale, bits = 128, end = 0;
    int count = sscanf(format, "d:%d,%d%n,%d%n", &precision, &scale, &end, &bits, &end);
    if (count < 2 || format[end] != '\0' || precision < 1 || precision > MOST_SCALE ||
        (bits != 32 && bits != 64 && bits != 128 && bits != 256))
        return "a decimal of unknown form";
    if (scale > MOST_SCALE || scale < -MOST_SCALE)
        return "a decimal with more than 76 digits behind its point";
    if (convert == NULL)
        return "decimal: convert it to string or float64";
    bool is_text = strcmp(convert, "string") == 0;
    if (!is_text && strcmp(convert, "float64") != 0)
        return "decimal: it can be converted to string or float64";
    values->reading = is_text ? PRESTO__ARROW_DECIMAL_TEXT : PRESTO__ARROW_DECIMAL_FLOAT;
    values->dtype = is_text ? PRESTO_STRING : PRESTO_FLOAT64;
    values->item_bytes = (size_t)bits / 8;
    values->scale = scale;
    return NULL;
}

static bool take_plain(presto__arrow_values *values, const char *format) {
    static const struct {
        const char *format;
        presto__arrow_reading reading;
        size_t item_bytes;
    } readings[] = {{"u", PRESTO__ARROW_BYTES, 0}, {"z", PRESTO__ARROW_BYTES, 0},
                    {"U", PRESTO__ARROW_LARGE, 0}, {"Z", PRESTO__ARROW_LARGE, 0},
                    {"vu", PRESTO__ARROW_VIEW, 0}, {"vz", PRESTO__ARROW_VIEW, 0}};
    values->dtype = presto__arrow_dtype(format);
    if (values->dtype != PRESTO_DTYPE_UNKNOWN) {
        values->reading = PRESTO__ARROW_NUMBER;
        values->item_bytes = presto_dtype_bytes(values->dtype);
        return true;
    }
    if (strcmp(format, "b") == 0) {
        values->reading = PRESTO__ARROW_BIT;
        values->dtype = PRESTO_BOOL;
        return true;
    }
    values->dtype = PRESTO_STRING;
    for (size_t i = 0; i < sizeof readings / sizeof readings[0]; i++)
        if (strcmp(format, readings[i].format) == 0) {
            values->reading = readings[i].reading;
            return true;
        }
    return false;
}

/* A number behind a prefix, as "w:16" has it. -1: it has none. */
static int64_t number_behind(const char *format, const char *prefix) {
    char *end;
    size_t bytes = strlen(prefix);
    if (strncmp(format, prefix, bytes) != 0 || format[bytes] < '0' || format[bytes] > '9')
        return -1;
    errno = 0;
    long long number = strtoll(format + bytes, &end, 10);
    return *end == '\0' && errno == 0 && number <= INT32_MAX ? number : -1;
}

/* What ends a path. NULL: it is taken; *is_converted_out: otherwise than as it is. Else why not,
 * which may stand in `text`. */
static const char *take_values(presto__arrow_values *values, const char *format,
                               const char *convert, char text[WHY_BYTES], bool *is_converted_out) {
    *is_converted_out = false;
    if (take_plain(values, format))
        return NULL;
    int64_t width = number_behind(format, "w:");
    if (width >= 0) {
        values->reading = PRESTO__ARROW_FIXED;
        values->item_bytes = (size_t)width;
        return NULL;
    }
    if (strcmp(format, "n") == 0) {
        values->reading = PRESTO__ARROW_ABSENT;
        values->dtype = PRESTO_DTYPE_UNKNOWN;
        return NULL;
    }
    if (strncmp(format, "d:", 2) == 0) {
        const char *why = take_decimal(values, format, convert);
        *is_converted_out = why == NULL;
        return why;
    }
    const named_type *type = find_type(format);
    if (type == NULL || type->unit == NULL) {
        snprintf(text, WHY_BYTES, "%s", type == NULL ? "a type that is not known" : type->name);
        return text;
    }
    if (convert == NULL || strcmp(convert, "int64") != 0) {
        snprintf(text, WHY_BYTES,
                 convert == NULL ? "%s: convert it to int64, %s"
                                 : "%s: it can be converted to int64, %s",
                 type->name, type->unit);
        return text;
    }
    values->reading = type->bytes == 4 ? PRESTO__ARROW_WIDENED : PRESTO__ARROW_NUMBER;
    values->dtype = PRESTO_INT64;
    values->item_bytes = type->bytes;
    *is_converted_out = true;
    return NULL;
}

/* A dictionary's index. */
static const char *take_index(presto__arrow_values *values, const char *format) {
    presto_dtype dtype = presto__arrow_dtype(format);
    bool is_float = dtype == PRESTO_FLOAT16 || dtype == PRESTO_FLOAT32 || dtype == PRESTO_FLOAT64;
    if (dtype == PRESTO_DTYPE_UNKNOWN || is_float)
        return "a dictionary whose index is no integer";
    values->index_bytes = presto_dtype_bytes(dtype);
    values->index_is_signed = format[0] >= 'a';
    return NULL;
}

/* Into lists: the schema of what is in them. NULL with *why_out: they cannot be taken. */
static const struct ArrowSchema *take_lists(presto__arrow_column *column,
                                            const struct ArrowSchema *schema,
                                            const char **why_out) {
    while (true) {
        int64_t items = number_behind(schema->format, "+w:");
        bool is_small = strcmp(schema->format, "+l") == 0;
        bool is_large = strcmp(schema->format, "+L") == 0;
        if (!is_small && !is_large && items < 0)
            return schema;
        if (column->list_count == MOST_RANK || schema->dictionary != NULL) {
            *why_out = schema->dictionary != NULL ? "a dictionary of lists"
                                                  : "lists of more than 7 levels";
            return NULL;
        }
        if (schema->n_children != 1 || schema->children == NULL || schema->children[0] == NULL ||
            schema->children[0]->format == NULL) {
            *why_out = "a list that does not say of what";
            return NULL;
        }
        column->lists[column->list_count++] = (presto__arrow_list){.offset_bytes = is_small   ? 4U
                                                                                   : is_large ? 8U
                                                                                              : 0U,
                                                                   .items = items};
        schema = schema->children[0];
    }
}

/* How values become a feature. NULL, or why they do not. */
static const char *choose_encoding(presto__arrow_column *column) {
    presto_dtype dtype = column->values.dtype;
    bool is_string = dtype == PRESTO_STRING;
    column->tensor.dtype = dtype;
    if (!column->is_tensor)
        column->tensor.rank = column->list_count;
    if (column->values.reading == PRESTO__ARROW_ABSENT) {
        column->encoding = PRESTO_ENCODE_NONE;
        column->tensor = (presto_tensor_spec){0};
        return column->list_count > 0 ? "lists of nothing" : NULL;
    }
    if (is_string && (column->is_tensor || column->list_count > 1))
        return column->is_tensor ? "a tensor of texts" : "lists of lists of texts";
    bool is_listed = !column->is_tensor && column->list_count < 2;
    column->encoding = is_string                              ? PRESTO_ENCODE_BYTES
                       : is_listed && dtype == PRESTO_INT64   ? PRESTO_ENCODE_INT64
                       : is_listed && dtype == PRESTO_FLOAT32 ? PRESTO_ENCODE_FLOAT
                                                              : PRESTO_ENCODE_TENSOR;
    return NULL;
}

/* A shape that the user gives. NULL, or why it does not go with the column. */
static const char *take_tensor(presto__arrow_column *column, const char *shape,
                               char text[WHY_BYTES]) {
    presto_tensor_spec spec;
    (void)presto__spec_parse(shape, &spec); /* check_options did */
    if (column->list_count == 0)
        return "tensors are made of lists alone";
    if (column->values.dtype != spec.dtype) {
        snprintf(text, WHY_BYTES, "its values are %s, not %s",
                 presto_dtype_name(column->values.dtype), presto_dtype_name(spec.dtype));
        return text;
    }
    column->is_tensor = true;
    column->tensor = spec;
    return NULL;
}

/* Lists of one size must be as long as the tensor that they are. */
static bool has_other_size(const presto__arrow_column *column) {
    int64_t items = 1;
    for (int i = 0; i < column->list_count; i++)
        if (column->lists[i].offset_bytes != 0 ||
            __builtin_mul_overflow(items, column->lists[i].items, &items))
            return false;
    return column->is_tensor && items != (int64_t)presto_spec_elements(&column->tensor);
}

/* ---- columns ---- */

static void column_done(presto__arrow_column *column) {
    free(column->name);
    free(column->path);
    free(column->masks);
    presto_buffer_done(&column->list);
    presto_buffer_done(&column->texts);
}

static presto_status keep_column(schema_reading *self, const schema_field *field,
                                 presto__arrow_column *column) {
    presto_arrow *arrow = self->arrow;
    if (arrow->count == PRESTO_MAX_FEATURES)
        return presto_fail(self->err, PRESTO_ERR_LIMIT, PRESTO_NO_OFFSET,
                           "the schema has more than %d columns, which is the most that a dataset "
                           "may have",
                           PRESTO_MAX_FEATURES);
    if (arrow->count == self->capacity) {
        size_t capacity = 2 * self->capacity + 16;
        presto__arrow_column *columns = realloc(arrow->columns, capacity * sizeof *arrow->columns);
        if (columns == NULL)
            return presto_fail_memory(self->err, capacity * sizeof *columns);
        arrow->columns = columns;
        self->capacity = capacity;
    }
    column->name = strdup(field->name);
    column->depth = field->depth;
    column->path = malloc(field->depth * sizeof *column->path);
    column->masks = calloc(field->depth + 1, sizeof *column->masks);
    if (column->name == NULL || column->path == NULL || column->masks == NULL) {
        column_done(column);
        return presto_fail_memory(self->err, field->depth * sizeof *column->path);
    }
    memcpy(column->path, field->path, field->depth * sizeof *column->path);
    arrow->columns[arrow->count++] = *column;
    return PRESTO_OK;
}

/* Told once: what is stored is not what the type says. */
static void tell_conversion(const schema_reading *self, const schema_field *field,
                            const char *format, const presto__arrow_values *values) {
    char text[WHY_BYTES];
    const named_type *type = find_type(format);
    const char *zone = strncmp(format, "ts", 2) == 0 ? strchr(format, ':') + 1 : NULL;
    if (type == NULL)
        snprintf(text, sizeof text, "a decimal, is stored as %s",
                 values->dtype == PRESTO_STRING ? "text" : "float64, which may round it");
    else
        snprintf(text, sizeof text, "%s, is stored as int64: %s%s", type->name, type->unit,
                 zone == NULL      ? ""
                 : zone[0] == '\0' ? ", of no time zone"
                                   : " in UTC");
    note(self, PRESTO_ARROW_CONVERTED, field->name, text);
}

/* Told once: what is in the column's lists, or its dictionary, is an extension type, of which only
 * the values are stored. That of the column itself is told by take_field. */
static void tell_extension_within(const schema_reading *self, const schema_field *field) {
    char text[WHY_BYTES];
    presto_span extension = {0};
    for (const struct ArrowSchema *at = field->schema; extension.bytes == 0;) {
        bool is_list = at->format[0] == '+';
        if (!is_list && at->dictionary == NULL)
            return;
        at = is_list ? at->children[0] : at->dictionary;
        extension = metadata_of(at->metadata, EXTENSION_NAME);
    }
    snprintf(text, sizeof text, "of extension %.*s, is stored as what that is made of",
             extension.bytes < 100 ? (int)extension.bytes : 100, (const char *)extension.data);
    note(self, PRESTO_ARROW_CONVERTED, field->name, text);
}

/* A field that is no struct. NULL: it is kept, or *status_out says why not. Else why it is
 * refused. */
static const char *take_column(schema_reading *self, const schema_field *field,
                               char text[WHY_BYTES], presto_status *status_out) {
    const presto_arrow_options *options = self->options;
    const char *convert = option_of(self, options->convert, options->convert_count, field->name);
    const char *shape = option_of(self, options->tensors, options->tensor_count, field->name);
    presto__arrow_column column = {0};
    presto_span extension = metadata_of(field->schema->metadata, EXTENSION_NAME);
    const char *why = NULL;
    bool is_converted = false;
    const struct ArrowSchema *leaf = take_lists(&column, field->schema, &why);
    if (leaf != NULL && leaf->dictionary != NULL) {
        why = take_index(&column.values, leaf->format);
        leaf = leaf->dictionary;
        if (why == NULL && leaf->format == NULL)
            why = "a dictionary that does not say of what";
        if (why == NULL && leaf->dictionary != NULL)
            why = "a dictionary of dictionaries";
    }
    if (why != NULL || leaf == NULL)
        return why;
    if (leaf->format[0] == '+' && leaf != field->schema)
        why = strcmp(leaf->format, "+s") == 0 ? "lists or a dictionary of structs"
                                              : "lists or a dictionary of what cannot be stored";
    if (why == NULL)
        why = take_values(&column.values, leaf->format, convert, text, &is_converted);
    if (why == NULL && convert != NULL && !is_converted)
        why = "it needs no conversion: leave it out of convert";
    if (why == NULL && shape != NULL)
        why = take_tensor(&column, shape, text);
    else if (why == NULL && presto_span_is(extension, FIXED_TENSOR) && column.list_count == 1)
        why = take_extension(&column,
                             metadata_of(field->schema->metadata, "ARROW:extension:metadata"));
    if (why == NULL)
        why = choose_encoding(&column);
    if (why == NULL && has_other_size(&column))
        why = "its lists are not as long as the tensor";
    if (why != NULL)
        return why;
    if (is_converted)
        tell_conversion(self, field, leaf->format, &column.values);
    tell_extension_within(self, field);
    *status_out = keep_column(self, field, &column);
    return NULL;
}

static presto_status take_field(schema_reading *self, schema_field *field);

/* The fields of a struct: their names behind its own. */
static presto_status take_fields(schema_reading *self, schema_field *field) {
    const struct ArrowSchema *schema = field->schema;
    const char *name = field->name;
    if (schema->n_children < 0 || (schema->n_children > 0 && schema->children == NULL))
        return presto_fail(self->err, PRESTO_ERR_CORRUPT, PRESTO_NO_OFFSET,
                           "the schema's number of columns is impossible");
    if (field->depth == MOST_DEPTH)
        return presto_fail(self->err, PRESTO_ERR_LIMIT, PRESTO_NO_OFFSET,
                           "structs in structs, more than %d deep", MOST_DEPTH);
    presto_status status = PRESTO_OK;
    for (int64_t i = 0; i < schema->n_children && status == PRESTO_OK; i++) {
        const struct ArrowSchema *child = schema->children[i];
        if (child == NULL || child->format == NULL)
            return presto_fail(self->err, PRESTO_ERR_CORRUPT, PRESTO_NO_OFFSET,
                               "column %" PRId64 " of the schema is missing", i);
        const char *own = child->name == NULL ? "" : child->name;
        size_t room = strlen(name) + strlen(own) + 2;
        char *full = malloc(room);
        if (full == NULL)
            return presto_fail_memory(self->err, room);
        snprintf(full, room, "%s%s%s", name, field->depth > 0 ? "." : "", own);
        field->path[field->depth++] = (presto__arrow_step){(size_t)i, (size_t)schema->n_children};
        field->schema = child;
        field->name = full;
        status = take_field(self, field);
        field->schema = schema;
        field->name = name;
        field->depth--;
        free(full);
    }
    return status;
}

static presto_status take_field(schema_reading *self, schema_field *field) {
    char text[WHY_BYTES];
    presto_status status = PRESTO_OK;
    const struct ArrowSchema *schema = field->schema;
    presto_span extension = metadata_of(schema->metadata, EXTENSION_NAME);
    if (presto_span_is(extension, "arrow.variable_shape_tensor")) {
        refuse(self, field->name, "tensors whose shapes differ");
        return PRESTO_OK;
    }
    if (extension.bytes > 0 && !presto_span_is(extension, FIXED_TENSOR)) {
        snprintf(text, sizeof text, "extension %.*s, is stored as what it is made of",
                 extension.bytes < 100 ? (int)extension.bytes : 100, (const char *)extension.data);
        note(self, PRESTO_ARROW_CONVERTED, field->name, text);
    }
    if (strcmp(schema->format, "+s") == 0 && schema->dictionary == NULL) {
        if (schema->n_children == 0)
            refuse(self, field->name, "a struct without fields");
        return take_fields(self, field);
    }
    const char *why = take_column(self, field, text, &status);
    if (why != NULL)
        refuse(self, field->name, why);
    return status;
}

/* ---- open ---- */

static presto_status check_options(const presto_arrow_options *options, presto_error *err) {
    presto_tensor_spec spec;
    for (size_t i = 0; i < options->convert_count; i++) {
        const char *to = strrchr(options->convert[i], '=');
        if (to == NULL || (strcmp(to, "=int64") != 0 && strcmp(to, "=string") != 0 &&
                           strcmp(to, "=float64") != 0))
            return presto_fail(err, PRESTO_ERR_ARGUMENT, PRESTO_NO_OFFSET,
                               "convert: '%s' is no COLUMN=int64, COLUMN=string or COLUMN=float64",
                               options->convert[i]);
    }
    for (size_t i = 0; i < options->tensor_count; i++) {
        const char *to = strrchr(options->tensors[i], '=');
        bool holds = to != NULL && presto__spec_parse(to + 1, &spec) && spec.rank >= 0 &&
                     spec.rank <= MOST_RANK && spec.dtype != PRESTO_STRING;
        for (int k = 0; holds && k < spec.rank; k++)
            holds = spec.dims[k] >= 0;
        size_t bytes;
        if (!holds || presto_spec_bytes(&spec, &bytes, NULL) < 0)
            return presto_fail(err, PRESTO_ERR_ARGUMENT, PRESTO_NO_OFFSET,
                               "tensors: '%s' is no COLUMN=DTYPE[DIMS], such as v=float32[3,224]",
                               options->tensors[i]);
    }
    return PRESTO_OK;
}

static int compare_columns(const void *a, const void *b) {
    return strcmp(((const presto__arrow_column *)a)->name, ((const presto__arrow_column *)b)->name);
}

/* Options must name columns; names must differ. */
static presto_status check_columns(schema_reading *self) {
    const presto_arrow_options *options = self->options;
    presto_arrow *arrow = self->arrow;
    for (size_t i = 0; i < options->convert_count + options->tensor_count; i++)
        if (!self->used[i])
            return presto_fail(self->err, PRESTO_ERR_ARGUMENT, PRESTO_NO_OFFSET,
                               "'%s' names no column of the schema",
                               i < options->convert_count
                                   ? options->convert[i]
                                   : options->tensors[i - options->convert_count]);
    if (arrow->count > 0)
        qsort(arrow->columns, arrow->count, sizeof *arrow->columns, compare_columns);
    for (size_t i = 1; i < arrow->count; i++)
        if (strcmp(arrow->columns[i - 1].name, arrow->columns[i].name) == 0 &&
            (i == 1 || strcmp(arrow->columns[i - 2].name, arrow->columns[i].name) != 0))
            refuse(self, arrow->columns[i].name, "there twice");
    if (self->refused == 0 && arrow->count > 0)
        return PRESTO_OK;
    if (self->refused == 0)
        return presto_fail(self->err, PRESTO_ERR_TYPE, PRESTO_NO_OFFSET,
                           "the schema has no columns");
    char more[64] = "";
    if (self->listed < self->refused)
        snprintf(more, sizeof more, "%s%zu more", self->listed > 0 ? ", and " : "",
                 self->refused - self->listed);
    return presto_fail(self->err, PRESTO_ERR_TYPE, PRESTO_NO_OFFSET,
                       "%zu column%s cannot be stored: %s%s", self->refused,
                       presto_plural(self->refused), self->message, more);
}

static presto_status make_features(presto_arrow *arrow, presto_error *err) {
    arrow->features = calloc(arrow->count, sizeof *arrow->features);
    arrow->names = calloc(arrow->count, sizeof *arrow->names);
    if (arrow->features == NULL || arrow->names == NULL)
        return presto_fail_memory(err, arrow->count * sizeof *arrow->features);
    for (size_t i = 0; i < arrow->count; i++) {
        const presto__arrow_column *column = &arrow->columns[i];
        arrow->names[i] = presto_span_of_text(column->name);
        arrow->features[i] = (presto_feature){
            arrow->names[i], column->encoding, {.spec = column->tensor, {.data = NULL}}};
    }
    return PRESTO_OK;
}

static presto_status open_arrow(presto_arrow *arrow, const struct ArrowSchema *schema,
                                const presto_arrow_options *options, presto_error *err) {
    schema_reading self = {.options = options, .arrow = arrow, .err = err};
    schema_field field = {.schema = schema, .name = ""};
    self.used = calloc(options->convert_count + options->tensor_count + 1, sizeof *self.used);
    if (self.used == NULL)
        return presto_fail_memory(err, options->convert_count + options->tensor_count + 1);
    arrow->children = (size_t)schema->n_children;
    arrow->refuses_nulls = options->refuses_nulls;
    arrow->on_note = options->on_note;
    arrow->on_note_user = options->on_note_user;
    presto_status status = take_fields(&self, &field);
    if (status == PRESTO_OK)
        status = check_columns(&self);
    if (status == PRESTO_OK)
        status = make_features(arrow, err);
    free(self.used);
    return status;
}

presto_status presto_arrow_open(const struct ArrowSchema *schema,
                                const presto_arrow_options *options, presto_arrow **arrow_out,
                                presto_error *err) {
    presto_arrow_options taken;
    presto_arrow_options_defaults(&taken);
    PRESTO_TRY(presto__options_take(&taken, sizeof taken, options, err));
    PRESTO_TRY(check_options(&taken, err));
    if (schema == NULL || schema->release == NULL || schema->format == NULL)
        return presto_fail(err, PRESTO_ERR_CORRUPT, PRESTO_NO_OFFSET,
                           "the schema is released already");
    if (strcmp(schema->format, "+s") != 0 || schema->dictionary != NULL)
        return presto_fail(err, PRESTO_ERR_TYPE, PRESTO_NO_OFFSET,
                           "columns are wanted: a record batch, a table or an array of structs");
    presto_arrow *arrow = calloc(1, sizeof *arrow);
    if (arrow == NULL)
        return presto_fail_memory(err, sizeof *arrow);
    presto_status status = open_arrow(arrow, schema, &taken, err);
    if (status < 0) {
        presto_arrow_free(arrow);
        return status;
    }
    *arrow_out = arrow;
    return PRESTO_OK;
}

void presto_arrow_free(presto_arrow *arrow) {
    if (arrow == NULL)
        return;
    for (size_t i = 0; i < arrow->count; i++)
        column_done(&arrow->columns[i]);
    free(arrow->columns);
    free(arrow->features);
    free(arrow->names);
    free(arrow);
}
