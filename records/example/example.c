/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tf.train.Example -> sample: one walk over the wire. Values are views wherever the bytes allow it.
 *
 *     Example  { Features features = 1; }
 *     Features { map<string, Feature> feature = 1; }
 *     Feature  { oneof kind { BytesList bytes_list = 1; FloatList float_list = 2;
 *                             Int64List int64_list = 3; } }
 *
 * A list is { repeated value = 1; }, numbers packed or not. A map entry is { key = 1; value = 2; }.
 */
#include <presto/example.h>

#include "../../base/checked_internal.h"
#include "example_internal.h"

enum { BYTES_LIST = 1, FLOAT_LIST = 2, INT64_LIST = 3 };

/* Up to this many names are searched one by one. */
#define FEW_FEATURES 32

typedef struct example_parser {
    presto_span in; /* the whole, for offsets */
    const presto_feature_spec *specs;
    size_t spec_count;
    size_t spec_next;               /* tried first: features mostly come in the specs' order */
    size_t specs_passed_over;       /* specs compared without a match */
    presto__name_table *spec_names; /* table, once many were compared; else NULL */
    bool only_specs;                /* features without a spec are ignored */
    presto_arena *arena;
    presto_feature *features; /* room for `most` features */
    size_t most, count;
    bool unsorted;             /* the names are not in rising order */
    presto__name_table *names; /* table of the features' names, if there are many; else NULL */
    presto_error *err;
} example_parser;

static presto_status corrupt(const example_parser *parser, const uint8_t *at, const char *what) {
    uint64_t offset = at != NULL ? (uint64_t)(at - parser->in.data) : PRESTO_NO_OFFSET;
    return presto_fail(parser->err, PRESTO_ERR_CORRUPT, offset, "bad Example: %s", what);
}

static void *take(example_parser *parser, size_t count, size_t bytes) {
    size_t whole;
    return presto__size_multiply(count, bytes, &whole) ? presto_arena_alloc(parser->arena, whole, 8)
                                                       : NULL;
}

/* Names may hold NUL bytes and are short: compare byte by byte, up to the shorter one's end. */
static bool name_is(presto_span name, const char *text) {
    for (size_t i = 0; i < name.bytes; i++)
        if (text[i] == '\0' || (uint8_t)text[i] != name.data[i])
            return false;
    return text[name.bytes] == '\0';
}

/* A table for `most` names; NULL: no memory. */
static presto__name_table *new_table(example_parser *parser, size_t most) {
    presto__name_table *table = take(parser, 1, sizeof *table);
    if (table == NULL || presto__name_table_make(table, most, parser->arena, parser->err) < 0)
        return NULL;
    return table;
}

/* From here on, specs are found by hash; without memory for the table, one by one as before. */
static void make_spec_names(example_parser *parser) {
    parser->spec_names = new_table(parser, parser->spec_count);
    for (size_t i = 0; parser->spec_names != NULL && i < parser->spec_count; i++) {
        presto_span name = presto_span_of_text(parser->specs[i].name);
        presto__name *slot = presto__name_table_find(parser->spec_names, name);
        if (slot->number_plus == 0)
            *slot = (presto__name){name, i + 1};
    }
}

static const presto_feature_spec *search_spec(example_parser *parser, presto_span name) {
    if (parser->spec_names != NULL) {
        const presto__name *slot = presto__name_table_find(parser->spec_names, name);
        return slot->number_plus == 0 ? NULL : &parser->specs[slot->number_plus - 1];
    }
    const presto_feature_spec *found = NULL;
    for (size_t i = 0; i < parser->spec_count && found == NULL; i++, parser->specs_passed_over++) {
        size_t at = parser->spec_next + i;
        if (at >= parser->spec_count)
            at -= parser->spec_count;
        if (name_is(name, parser->specs[at].name)) {
            parser->spec_next = at + 1;
            found = &parser->specs[at];
        }
    }
    if (parser->spec_count > FEW_FEATURES && parser->specs_passed_over > 4 * parser->spec_count)
        make_spec_names(parser);
    return found;
}

static const presto_feature_spec *find_spec(example_parser *parser, presto_span name) {
    size_t at = parser->spec_next < parser->spec_count ? parser->spec_next : 0;
    if (parser->spec_count == 0)
        return NULL;
    if (!name_is(name, parser->specs[at].name))
        return search_spec(parser, name);
    parser->spec_next = at + 1;
    return &parser->specs[at];
}

/* Is the feature ignored? If not, the caller looks up its spec again at once. */
static bool is_unwanted(example_parser *parser, presto_span name) {
    if (!parser->only_specs)
        return false;
    const presto_feature_spec *spec = find_spec(parser, name);
    if (spec != NULL)
        parser->spec_next = (size_t)(spec - parser->specs);
    return spec == NULL;
}

/* ---- values ---- */

static void set_shape(presto_tensor *tensor, presto_dtype dtype, size_t count,
                      const presto_feature_spec *spec) {
    tensor->spec.dtype = dtype;
    tensor->spec.rank = count == 1 && (spec == NULL || spec->spec.rank != 1) ? 0 : 1;
    tensor->spec.dims[0] = (int64_t)count;
}

/*
 * The values of one list; `list` is the message's bytes. Each of these three runs twice, first to
 * count. protobuf merges several messages of one kind in a Feature: with `more`, the count
 * continues.
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

static presto_status parse_tensor(example_parser *parser, presto_span in, presto_tensor *tensor) {
    presto_error *err = parser->err;
    presto_status status = presto_tensor_proto_parse(in, parser->arena, tensor, err);
    if (status < 0 && err != NULL && err->offset != PRESTO_NO_OFFSET)
        err->offset += (uint64_t)(in.data - parser->in.data);
    return status;
}

static presto_status take_list(example_parser *parser, presto__wire start, uint32_t kind,
                               presto_feature *feature, const presto_feature_spec *spec) {
    list_values values = {0};
    presto_tensor *tensor = &feature->tensor;
    if (!lists_run(start, kind, &values))
        return corrupt(parser, start.at, "values of a feature");
    size_t count = values.count;
    if (kind == FLOAT_LIST && values.view.bytes == count * 4) {
        tensor->data = values.view.data;
    } else {
        size_t width = kind == BYTES_LIST ? sizeof(presto_span) : kind == FLOAT_LIST ? 4 : 8;
        void *memory = take(parser, count, width);
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
                return corrupt(parser, start.at, "a tensor's feature has not exactly one value");
            feature->encoding = PRESTO_ENCODE_TENSOR;
            return parse_tensor(parser, tensor->strings[0], tensor);
        }
        set_shape(tensor, PRESTO_STRING, count, spec);
        break;
    case FLOAT_LIST:
        feature->encoding = PRESTO_ENCODE_FLOAT;
        set_shape(tensor, PRESTO_FLOAT32, count, spec);
        break;
    default:
        feature->encoding = PRESTO_ENCODE_INT64;
        set_shape(tensor, PRESTO_INT64, count, spec);
        break;
    }
    return PRESTO_OK;
}

/* The common feature: one list with one value, which is a tensor or encoded bytes. */
static presto_status take_single_bytes(example_parser *parser, presto_span value,
                                       presto_feature *feature, const presto_feature_spec *spec) {
    if (spec != NULL && spec->encoding == PRESTO_ENCODE_TENSOR) {
        feature->encoding = PRESTO_ENCODE_TENSOR;
        return parse_tensor(parser, value, &feature->tensor);
    }
    presto_span *string = take(parser, 1, sizeof *string);
    if (string == NULL)
        return presto_fail_memory(parser->err, sizeof *string);
    *string = value;
    feature->encoding = PRESTO_ENCODE_BYTES;
    feature->tensor.strings = string;
    set_shape(&feature->tensor, PRESTO_STRING, 1, spec);
    return PRESTO_OK;
}

/* A oneof: the last kind counts, with all its lists since the last change of kind. */
static presto_status parse_value(example_parser *parser, presto_span value,
                                 presto_feature *feature) {
    const presto_feature_spec *spec = find_spec(parser, feature->name);
    presto__wire wire = presto__wire_of(value);
    presto__wire start = wire;
    uint32_t kind = 0;
    while (wire.at != wire.end) {
        presto__wire_field field;
        const uint8_t *at = wire.at;
        if (!presto__wire_next(&wire, &field))
            return corrupt(parser, at, "feature");
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

presto_status presto__feature_check(presto_span in, presto_span feature, presto_arena *arena,
                                    presto_error *err) {
    example_parser parser = {.in = in, .arena = arena, .err = err};
    presto_feature parsed = {.name = {NULL, 0}};
    return parse_value(&parser, feature, &parsed);
}

/* ---- the map ---- */

static bool name_less(presto_span a, presto_span b) {
    size_t least = a.bytes < b.bytes ? a.bytes : b.bytes;
    if (least > 0 && a.data[0] != b.data[0])
        return a.data[0] < b.data[0];
    int order = memcmp(a.data, b.data, least);
    return order != 0 ? order < 0 : a.bytes < b.bytes;
}

/* The names are not sorted: from here on, find equal names with a table. */
static presto_status make_names(example_parser *parser) {
    parser->names = new_table(parser, parser->most);
    if (parser->names == NULL)
        return presto_fail_memory(parser->err, parser->most * sizeof(presto__name));
    for (size_t i = 0; i < parser->count; i++) {
        presto_span name = parser->features[i].name;
        *presto__name_table_find(parser->names, name) = (presto__name){name, i + 1};
    }
    return PRESTO_OK;
}

/* The position of the feature called `name`; SIZE_MAX if there is none, then it is the next one. */
static presto_status find_namesake(example_parser *parser, presto_span name, size_t *found_out) {
    presto_feature *features = parser->features;
    size_t count = parser->count;
    *found_out = SIZE_MAX;
    if (!parser->unsorted) {
        if (count == 0 || name_less(features[count - 1].name, name))
            return PRESTO_OK;
        parser->unsorted = true;
        if (parser->most > FEW_FEATURES)
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

static presto_status parse_entry(example_parser *parser, presto_span entry) {
    presto_span name = presto_span_of(entry.data, 0), value = presto_span_of(entry.data, 0);
    presto__wire wire = presto__wire_of(entry);
    while (wire.at != wire.end) {
        presto__wire_field field;
        const uint8_t *at = wire.at;
        if (!presto__wire_next(&wire, &field))
            return corrupt(parser, at, "map entry");
        if (field.type != PRESTO__WIRE_BYTES)
            continue;
        if (field.number == 1)
            name = field.bytes;
        else if (field.number == 2)
            value = field.bytes;
    }
    size_t at;
    if (is_unwanted(parser, name))
        return PRESTO_OK;
    PRESTO_TRY(find_namesake(parser, name, &at));
    presto_feature *feature = &parser->features[at != SIZE_MAX ? at : parser->count];
    feature->name = name;
    if (at == SIZE_MAX)
        parser->count++;
    return parse_value(parser, value, feature);
}

static bool count_entries(presto_span features, size_t *count) {
    presto__wire wire = presto__wire_of(features);
    while (wire.at != wire.end) {
        presto__wire_field field;
        if (!presto__wire_next(&wire, &field))
            return false;
        *count += field.number == 1 && field.type == PRESTO__WIRE_BYTES;
    }
    return true;
}

static presto_status parse_features(example_parser *parser, presto_span features) {
    presto__wire wire = presto__wire_of(features);
    while (wire.at != wire.end) {
        presto__wire_field field;
        if (!presto__wire_next(&wire, &field)) /* verified when they were counted */
            break;
        if (field.number == 1 && field.type == PRESTO__WIRE_BYTES)
            PRESTO_TRY(parse_entry(parser, field.bytes));
    }
    return PRESTO_OK;
}

/* ---- the usual Example ---- */

/* Room for a feature, and for its value if that is one string or number. */
typedef struct scalar_slot {
    union {
        presto_span string;
        int64_t number;
    };
} scalar_slot;

/* One packed int64, or several in one run. False: the general parser must look. */
static bool usual_int64(example_parser *parser, presto_span packed, presto_feature *feature,
                        scalar_slot *slot, const presto_feature_spec *spec) {
    if (packed.bytes == 1 && packed.data[0] < 0x80) {
        slot->number = packed.data[0];
        feature->tensor.data = &slot->number;
        feature->encoding = PRESTO_ENCODE_INT64;
        set_shape(&feature->tensor, PRESTO_INT64, 1, spec);
        return true;
    }
    list_values values = {0};
    if (!int64_packed(packed, &values) || values.count == 0)
        return false;
    void *memory = values.count == 1 ? (void *)&slot->number : take(parser, values.count, 8);
    if (memory == NULL)
        return false; /* the general parser fails, too, and reports it */
    size_t count = values.count;
    values = (list_values){.numbers = memory, .filling = true};
    int64_packed(packed, &values);
    feature->tensor.data = memory;
    feature->encoding = PRESTO_ENCODE_INT64;
    set_shape(&feature->tensor, PRESTO_INT64, count, spec);
    return true;
}

/* A Feature that is one list with one run or one value, and nothing else. */
static presto_status usual_value(example_parser *parser, presto_span value, presto_feature *feature,
                                 scalar_slot *slot) {
    const uint8_t *at = value.data, *end = at + value.bytes;
    size_t bytes, inner;
    uint8_t tag = value.bytes > 0 ? at[0] : 0;
    if (!presto__wire_expect(&at, end, tag, &bytes) || at + bytes != end ||
        !presto__wire_expect(&at, end, 0x0a, &inner) || at + inner != end)
        return parse_value(parser, value, feature);
    const presto_feature_spec *spec = find_spec(parser, feature->name);
    presto_span content = presto_span_of(at, inner);
    if (tag == 0x0a && spec != NULL && spec->encoding == PRESTO_ENCODE_TENSOR) {
        feature->encoding = PRESTO_ENCODE_TENSOR;
        if (presto__tensor_proto_usual(content, &feature->tensor))
            return PRESTO_OK;
        return parse_tensor(parser, content, &feature->tensor);
    }
    if (tag == 0x0a) {
        slot->string = content;
        feature->encoding = PRESTO_ENCODE_BYTES;
        feature->tensor.strings = &slot->string;
        set_shape(&feature->tensor, PRESTO_STRING, 1, spec);
        return PRESTO_OK;
    }
    if (tag == 0x12 && inner % 4 == 0) {
        feature->encoding = PRESTO_ENCODE_FLOAT;
        feature->tensor.data = at;
        set_shape(&feature->tensor, PRESTO_FLOAT32, inner / 4, spec);
        return PRESTO_OK;
    }
    if (tag == 0x1a && usual_int64(parser, content, feature, slot, spec))
        return PRESTO_OK;
    return parse_value(parser, value, feature);
}

/*
 * Room for the features of a map whose entries [at, end) are not parsed yet: at first for as many
 * as there are specs, then for the counted number.
 */
static presto_status usual_room(example_parser *parser, const uint8_t *at, const uint8_t *end,
                                scalar_slot **slots_out) {
    size_t bytes, room = parser->spec_count;
    if (parser->features != NULL || room == 0)
        for (room = parser->count; at != end; at += bytes, room++)
            if (!presto__wire_expect(&at, end, 0x0a, &bytes))
                return PRESTO_END;
    uint8_t *memory = take(parser, room, sizeof(presto_feature) + sizeof(scalar_slot));
    if (memory == NULL)
        return presto_fail_memory(parser->err, room * sizeof(presto_feature));
    presto_feature *features = (presto_feature *)(void *)memory;
    for (size_t i = 0; i < parser->count; i++)
        features[i] = parser->features[i];
    parser->features = features;
    parser->most = room;
    *slots_out = (scalar_slot *)(void *)(memory + room * sizeof *features);
    return PRESTO_OK;
}

/*
 * One map with key before value in each entry, and rising keys, as most writers leave it.
 * PRESTO_END: it is not so, use the general parser.
 */
static presto_status parse_usual(example_parser *parser) {
    const uint8_t *at = parser->in.data, *end = at + parser->in.bytes;
    size_t bytes;
    if (!presto__wire_expect(&at, end, 0x0a, &bytes) || at + bytes != end)
        return PRESTO_END;
    scalar_slot *slots;
    presto_status status = usual_room(parser, at, end, &slots);
    while (at != end && status == PRESTO_OK) {
        const uint8_t *entry = at;
        size_t count = parser->count;
        if (!presto__wire_expect(&at, end, 0x0a, &bytes))
            return PRESTO_END;
        const uint8_t *entry_end = at + bytes;
        if (!presto__wire_expect(&at, entry_end, 0x0a, &bytes))
            return PRESTO_END;
        presto_span name = presto_span_of(at, bytes);
        at += bytes;
        if (!presto__wire_expect(&at, entry_end, 0x12, &bytes) || at + bytes != entry_end)
            return PRESTO_END;
        if (is_unwanted(parser, name)) {
            at = entry_end;
            continue;
        }
        if (count > 0 && !name_less(parser->features[count - 1].name, name))
            return PRESTO_END;
        if (count == parser->most)
            status = usual_room(parser, entry, end, &slots);
        if (status != PRESTO_OK)
            return status;
        presto_feature *feature = &parser->features[count];
        feature->name = name;
        status = usual_value(parser, presto_span_of(at, bytes), feature, &slots[count]);
        at = entry_end;
        parser->count++;
    }
    return status;
}

static presto_status parse_any(example_parser *parser) {
    presto_span in = parser->in;
    presto__wire wire = presto__wire_of(in);
    parser->count = 0;
    parser->most = 0;
    parser->spec_next = 0;
    while (wire.at != wire.end) {
        presto__wire_field field;
        const uint8_t *at = wire.at;
        if (!presto__wire_next(&wire, &field))
            return corrupt(parser, at, "not the wire format");
        if (field.number == 1 && field.type == PRESTO__WIRE_BYTES &&
            !count_entries(field.bytes, &parser->most))
            return corrupt(parser, field.bytes.data, "features");
    }
    parser->features = take(parser, parser->most, sizeof *parser->features);
    if (parser->features == NULL)
        return presto_fail_memory(parser->err, parser->most * sizeof *parser->features);
    wire = presto__wire_of(in);
    while (wire.at != wire.end) {
        presto__wire_field field;
        if (!presto__wire_next(&wire, &field)) /* verified a moment ago */
            break;
        if (field.number == 1 && field.type == PRESTO__WIRE_BYTES)
            PRESTO_TRY(parse_features(parser, field.bytes));
    }
    return PRESTO_OK;
}

static presto_status parse(example_parser *parser, presto_sample *sample_out) {
    presto_status status = parse_usual(parser);
    if (status == PRESTO_END)
        status = parse_any(parser);
    PRESTO_TRY(status);
    *sample_out = (presto_sample){.features = parser->features, .feature_count = parser->count};
    return PRESTO_OK;
}

presto_status presto_example_parse(presto_span in, const presto_feature_spec *specs,
                                   size_t spec_count, presto_arena *arena,
                                   presto_sample *sample_out, presto_error *err) {
    example_parser parser = {
        .in = in, .specs = specs, .spec_count = spec_count, .arena = arena, .err = err};
    return parse(&parser, sample_out);
}

presto_status presto_example_parse_some(presto_span in, const presto_feature_spec *specs,
                                        size_t spec_count, presto_arena *arena,
                                        presto_sample *sample_out, presto_error *err) {
    example_parser parser = {.in = in,
                             .specs = specs,
                             .spec_count = spec_count,
                             .only_specs = true,
                             .arena = arena,
                             .err = err};
    return parse(&parser, sample_out);
}
