/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One feature of a tf.train.Example: its spec, and its values as a tensor. The messages are listed
 * in example.c.
 */
#include "example_parse_internal.h"

enum { BYTES_LIST = 1, FLOAT_LIST = 2, INT64_LIST = 3 };

presto_status presto__example_corrupt(const presto__example_parser *parser, const uint8_t *at,
                                      const char *what) {
    uint64_t offset = at != NULL ? (uint64_t)(at - parser->in.data) : PRESTO_NO_OFFSET;
    return presto_fail(parser->err, PRESTO_ERR_CORRUPT, offset, "bad Example: %s", what);
}

presto__name_table *presto__example_name_table(presto__example_parser *parser, size_t most) {
    presto__name_table *table = presto__example_take(parser, 1, sizeof *table);
    if (table == NULL || presto__name_table_make(table, most, parser->arena, parser->err) < 0)
        return NULL;
    return table;
}

/* From here on, specs are found by hash; without memory for the table, one by one as before. */
static void make_spec_names(presto__example_parser *parser) {
    parser->spec_names = presto__example_name_table(parser, parser->spec_count);
    for (size_t i = 0; parser->spec_names != NULL && i < parser->spec_count; i++) {
        presto_span name = presto_span_of_text(parser->specs[i].name);
        presto__name *slot = presto__name_table_find(parser->spec_names, name);
        if (slot->number_plus == 0)
            *slot = (presto__name){name, i + 1};
    }
}

const presto_feature_spec *presto__example_search_spec(presto__example_parser *parser,
                                                       presto_span name) {
    if (parser->spec_names != NULL) {
        const presto__name *slot = presto__name_table_find(parser->spec_names, name);
        return slot->number_plus == 0 ? NULL : &parser->specs[slot->number_plus - 1];
    }
    const presto_feature_spec *found = NULL;
    for (size_t i = 0; i < parser->spec_count && found == NULL; i++, parser->specs_passed_over++) {
        size_t at = parser->spec_next + i;
        if (at >= parser->spec_count)
            at -= parser->spec_count;
        if (presto__example_name_is(name, parser->specs[at].name)) {
            parser->spec_next = at + 1;
            found = &parser->specs[at];
        }
    }
    if (parser->spec_count > PRESTO__FEW_NAMES &&
        parser->specs_passed_over > 4 * parser->spec_count)
        make_spec_names(parser);
    return found;
}

/* ---- names ---- */

/* The names are not sorted: from here on, find equal names with a table. */
static presto_status make_names(presto__example_parser *parser) {
    parser->names = presto__example_name_table(parser, parser->most);
    if (parser->names == NULL)
        return presto_fail_memory(parser->err, parser->most * sizeof(presto__name));
    for (size_t i = 0; i < parser->count; i++) {
        presto_span name = parser->features[i].name;
        *presto__name_table_find(parser->names, name) = (presto__name){name, i + 1};
    }
    return PRESTO_OK;
}

/* The position of the feature called `name`; SIZE_MAX if there is none, then it is the next one. */
static presto_status find_namesake(presto__example_parser *parser, presto_span name,
                                   size_t *found_out) {
    presto_feature *features = parser->features;
    size_t count = parser->count;
    *found_out = SIZE_MAX;
    if (!parser->unsorted) {
        if (count == 0 || presto__name_less(features[count - 1].name, name))
            return PRESTO_OK;
        parser->unsorted = true;
        if (parser->most > PRESTO__FEW_NAMES)
            PRESTO_TRY(make_names(parser));
    }
    if (parser->names != NULL) {
        presto__name *slot = presto__name_table_find(parser->names, name);
        if (slot->number_plus != 0)
            *found_out = slot->number_plus - 1;
        else
            *slot = (presto__name){name, count + 1};
        return PRESTO_OK;
    }
    for (size_t i = 0; i < count; i++)
        if (presto_span_equal(features[i].name, name))
            *found_out = i;
    return PRESTO_OK;
}

presto_status presto__example_place(presto__example_parser *parser, presto_span name,
                                    presto_feature **feature_out, bool *is_new_out) {
    size_t at;
    PRESTO_TRY(find_namesake(parser, name, &at));
    *is_new_out = at == SIZE_MAX;
    *feature_out = &parser->features[*is_new_out ? parser->count++ : at];
    (*feature_out)->name = name;
    return PRESTO_OK;
}

/* ---- values ---- */

/*
 * The values of one list; `list` is the message's bytes. Each of these three runs twice, first to
 * count. protobuf merges several messages of one kind in a Feature: the count continues from one to
 * the next.
 */
typedef struct list_values {
    size_t count;
    union {
        presto_span *strings;
        uint8_t *numbers; /* int64 or float32 */
    };
    presto_span view; /* float: the only packed run, which can be returned as it is */
    bool filling;
} list_values;

static bool bytes_values(presto_span list, list_values *values) {
    presto__wire wire = presto__wire_of(list);
    while (wire.at != wire.end) {
        presto__wire_field field;
        if (!presto__wire_next(&wire, &field))
            return false;
        if (field.number != 1 || field.type != PRESTO__WIRE_BYTES)
            continue;
        if (values->filling)
            values->strings[values->count] = field.bytes;
        values->count++;
    }
    return true;
}

static bool float_values(presto_span list, list_values *values) {
    presto__wire wire = presto__wire_of(list);
    while (wire.at != wire.end) {
        presto__wire_field field;
        if (!presto__wire_next(&wire, &field))
            return false;
        if (field.number != 1 ||
            (field.type != PRESTO__WIRE_BYTES && field.type != PRESTO__WIRE_FIXED32))
            continue;
        if (field.bytes.bytes % 4 != 0)
            return false;
        if (values->filling && field.bytes.bytes > 0)
            memcpy(values->numbers + values->count * 4, field.bytes.data, field.bytes.bytes);
        if (values->count == 0)
            values->view = field.bytes;
        values->count += field.bytes.bytes / 4;
    }
    return true;
}

static bool int64_packed(presto_span packed, list_values *values) {
    presto__wire wire = presto__wire_of(packed);
    while (wire.at != wire.end) {
        uint64_t value;
        if (!presto__wire_varint(&wire, &value))
            return false;
        if (values->filling)
            memcpy(values->numbers + values->count * 8, &value, 8);
        values->count++;
    }
    return true;
}

static bool int64_values(presto_span list, list_values *values) {
    presto__wire wire = presto__wire_of(list);
    while (wire.at != wire.end) {
        presto__wire_field field;
        if (!presto__wire_next(&wire, &field))
            return false;
        if (field.number != 1)
            continue;
        if (field.type == PRESTO__WIRE_BYTES) {
            if (!int64_packed(field.bytes, values))
                return false;
        } else if (field.type == PRESTO__WIRE_VARINT) {
            if (values->filling)
                memcpy(values->numbers + values->count * 8, &field.value, 8);
            values->count++;
        }
    }
    return true;
}

static bool list_run(uint32_t kind, presto_span list, list_values *values) {
    switch (kind) {
    case BYTES_LIST:
        return bytes_values(list, values);
    case FLOAT_LIST:
        return float_values(list, values);
    default:
        return int64_values(list, values);
    }
}

/* Count or fill in the lists of `kind` in the feature, from `start` on. */
static bool lists_run(presto__wire start, uint32_t kind, list_values *values) {
    while (start.at != start.end) {
        presto__wire_field field;
        if (!presto__wire_next(&start, &field))
            return false;
        if (field.number == kind && field.type == PRESTO__WIRE_BYTES &&
            !list_run(kind, field.bytes, values))
            return false;
    }
    return true;
}

presto_status presto__example_tensor(presto__example_parser *parser, presto_span in,
                                     presto_tensor *tensor) {
    presto_error *err = parser->err;
    presto_status status = presto_tensor_proto_parse(in, parser->arena, tensor, err);
    if (status < 0 && err != NULL && err->offset != PRESTO_NO_OFFSET)
        err->offset += (uint64_t)(in.data - parser->in.data);
    return status;
}

static presto_status take_list(presto__example_parser *parser, presto__wire start, uint32_t kind,
                               presto_feature *feature, const presto_feature_spec *spec) {
    list_values values = {0};
    presto_tensor *tensor = &feature->tensor;
    if (!lists_run(start, kind, &values))
        return presto__example_corrupt(parser, start.at, "values of a feature");
    size_t count = values.count;
    if (kind == FLOAT_LIST && values.view.bytes == count * 4) {
        tensor->data = values.view.data;
    } else {
        size_t width = kind == BYTES_LIST ? sizeof(presto_span) : kind == FLOAT_LIST ? 4 : 8;
        void *memory = presto__example_take(parser, count, width);
        if (memory == NULL)
            return presto_fail_memory(parser->err, count * width);
        values = (list_values){.numbers = memory, .filling = true};
        lists_run(start, kind, &values);
        tensor->data = memory;
    }
    switch (kind) {
    case BYTES_LIST:
        feature->encoding = PRESTO_ENCODE_BYTES;
        if (spec != NULL && spec->encoding == PRESTO_ENCODE_TENSOR) {
            if (count != 1)
                return presto__example_corrupt(parser, start.at,
                                               "a tensor's feature has not exactly one value");
            feature->encoding = PRESTO_ENCODE_TENSOR;
            return presto__example_tensor(parser, tensor->strings[0], tensor);
        }
        presto__example_set_shape(tensor, PRESTO_STRING, count, spec);
        break;
    case FLOAT_LIST:
        feature->encoding = PRESTO_ENCODE_FLOAT;
        presto__example_set_shape(tensor, PRESTO_FLOAT32, count, spec);
        break;
    default:
        feature->encoding = PRESTO_ENCODE_INT64;
        presto__example_set_shape(tensor, PRESTO_INT64, count, spec);
        break;
    }
    return PRESTO_OK;
}

/* The common feature: one list with one value, which is a tensor or encoded bytes. */
static presto_status take_single_bytes(presto__example_parser *parser, presto_span value,
                                       presto_feature *feature, const presto_feature_spec *spec) {
    if (spec != NULL && spec->encoding == PRESTO_ENCODE_TENSOR) {
        feature->encoding = PRESTO_ENCODE_TENSOR;
        return presto__example_tensor(parser, value, &feature->tensor);
    }
    presto_span *string = presto__example_take(parser, 1, sizeof *string);
    if (string == NULL)
        return presto_fail_memory(parser->err, sizeof *string);
    *string = value;
    feature->encoding = PRESTO_ENCODE_BYTES;
    feature->tensor.strings = string;
    presto__example_set_shape(&feature->tensor, PRESTO_STRING, 1, spec);
    return PRESTO_OK;
}

/* A oneof: the last kind counts, with all its lists since the last change of kind. */
presto_status presto__example_feature(presto__example_parser *parser, presto_span value,
                                      presto_feature *feature) {
    const presto_feature_spec *spec = presto__example_find_spec(parser, feature->name);
    presto__wire wire = presto__wire_of(value);
    presto__wire start = wire;
    uint32_t kind = 0;
    while (wire.at != wire.end) {
        presto__wire_field field;
        const uint8_t *at = wire.at;
        if (!presto__wire_next(&wire, &field))
            return presto__example_corrupt(parser, at, "feature");
        if (field.number > INT64_LIST || field.type != PRESTO__WIRE_BYTES)
            continue;
        if (kind == 0 && field.number == BYTES_LIST && wire.at == wire.end) {
            presto__wire list = presto__wire_of(field.bytes);
            presto__wire_field only;
            if (list.at != list.end && presto__wire_next(&list, &only) && only.number == 1 &&
                only.type == PRESTO__WIRE_BYTES && list.at == list.end)
                return take_single_bytes(parser, only.bytes, feature, spec);
        }
        if (field.number != kind) {
            kind = field.number;
            start.at = at;
        }
    }
    if (kind == 0) {
        feature->encoding = PRESTO_ENCODE_NONE;
        feature->tensor = (presto_tensor){.spec = {.rank = 0}};
        return PRESTO_OK;
    }
    return take_list(parser, start, kind, feature, spec);
}

/* ---- the values alone ---- */

/* As in presto__example_feature: the last kind, and where its lists start. False: not the wire
 * format. */
static bool find_kind(presto_span value, uint32_t *kind_out, presto__wire *start_out) {
    presto__wire wire = presto__wire_of(value);
    *start_out = wire;
    *kind_out = 0;
    while (wire.at != wire.end) {
        presto__wire_field field;
        const uint8_t *at = wire.at;
        if (!presto__wire_next(&wire, &field))
            return false;
        if (field.number > INT64_LIST || field.type != PRESTO__WIRE_BYTES)
            continue;
        if (field.number != *kind_out) {
            *kind_out = field.number;
            start_out->at = at;
        }
    }
    return true;
}

presto_status presto__example_count_values(presto__example_parser *parser, presto_span value,
                                           uint32_t *kind_out, size_t *count_out) {
    presto__wire start;
    list_values values = {0};
    if (!find_kind(value, kind_out, &start))
        return presto__example_corrupt(parser, value.data, "feature");
    if (*kind_out != 0 && !lists_run(start, *kind_out, &values))
        return presto__example_corrupt(parser, start.at, "values of a feature");
    *count_out = values.count;
    return PRESTO_OK;
}

size_t presto__example_fill_values(presto__example_parser *parser, presto_span value, uint32_t kind,
                                   void *memory, size_t at) {
    presto__wire start;
    uint32_t found = 0;
    list_values values = {.numbers = memory, .count = at, .filling = true};
    (void)parser;
    if (find_kind(value, &found, &start) && found == kind && kind != 0)
        (void)lists_run(start, kind, &values);
    return values.count - at;
}

/* ---- the usual feature ---- */

bool presto__example_any_int64s(presto__example_parser *parser, presto_span packed,
                                presto_feature *feature, presto__scalar_slot *slot,
                                const presto_feature_spec *spec) {
    list_values values = {0};
    if (!int64_packed(packed, &values) || values.count == 0)
        return false;
    void *memory =
        values.count == 1 ? (void *)&slot->number : presto__example_take(parser, values.count, 8);
    if (memory == NULL)
        return false; /* the general parser fails, too, and reports it */
    size_t count = values.count;
    values = (list_values){.numbers = memory, .filling = true};
    int64_packed(packed, &values);
    feature->tensor.data = memory;
    feature->encoding = PRESTO_ENCODE_INT64;
    presto__example_set_shape(&feature->tensor, PRESTO_INT64, count, spec);
    return true;
}
