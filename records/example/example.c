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
 * A SequenceExample has its context in the place of the features; sequence.c reads its lists.
 */
#include <presto/example.h>

#include "example_parse_internal.h"

/* ---- the map ---- */

static presto_status parse_entry(presto__example_parser *parser, presto_span entry) {
    presto_span name = presto_span_of(entry.data, 0), value = presto_span_of(entry.data, 0);
    presto__wire wire = presto__wire_of(entry);
    while (wire.at != wire.end) {
        presto__wire_field field;
        const uint8_t *at = wire.at;
        if (!presto__wire_next(&wire, &field))
            return presto__example_corrupt(parser, at, "map entry");
        if (field.type != PRESTO__WIRE_BYTES)
            continue;
        if (field.number == 1)
            name = field.bytes;
        else if (field.number == 2)
            value = field.bytes;
    }
    presto_feature *feature;
    bool is_new;
    if (presto__example_ignores(parser, name))
        return PRESTO_OK;
    PRESTO_TRY(presto__example_place(parser, name, &feature, &is_new));
    return presto__example_feature(parser, value, feature);
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

static presto_status parse_features(presto__example_parser *parser, presto_span features) {
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

/* As presto__example_feature, faster if the Feature is one list with one run or one value, and
 * nothing else. */
static inline presto_status usual_feature(presto__example_parser *parser, presto_span value,
                                          presto_feature *feature, presto__scalar_slot *slot) {
    const uint8_t *at = value.data, *end = at + value.bytes;
    size_t bytes, inner;
    uint8_t tag = value.bytes > 0 ? at[0] : 0;
    if (!presto__wire_expect(&at, end, tag, &bytes) || at + bytes != end ||
        !presto__wire_expect(&at, end, 0x0a, &inner) || at + inner != end)
        return presto__example_feature(parser, value, feature);
    const presto_feature_spec *spec = presto__example_find_spec(parser, feature->name);
    presto_span content = presto_span_of(at, inner);
    if (tag == 0x0a && spec != NULL && spec->encoding == PRESTO_ENCODE_TENSOR) {
        feature->encoding = PRESTO_ENCODE_TENSOR;
        if (presto__tensor_proto_usual(content, &feature->tensor))
            return PRESTO_OK;
        return presto__example_tensor(parser, content, &feature->tensor);
    }
    if (tag == 0x0a) {
        slot->string = content;
        feature->encoding = PRESTO_ENCODE_BYTES;
        feature->tensor.strings = &slot->string;
        presto__example_set_shape(&feature->tensor, PRESTO_STRING, 1, spec);
        return PRESTO_OK;
    }
    if (tag == 0x12 && inner % 4 == 0) {
        feature->encoding = PRESTO_ENCODE_FLOAT;
        feature->tensor.data = at;
        presto__example_set_shape(&feature->tensor, PRESTO_FLOAT32, inner / 4, spec);
        return PRESTO_OK;
    }
    if (tag == 0x1a && presto__example_int64s(parser, content, feature, slot, spec))
        return PRESTO_OK;
    return presto__example_feature(parser, value, feature);
}

/* Without specs, room for so many features is taken before any are counted. */
enum { FIRST_ROOM = 2 };

/*
 * Room for the features of a map whose entries [at, end) are not parsed yet: at first for as many
 * as there are specs, then for the counted number.
 */
static presto_status usual_room(presto__example_parser *parser, const uint8_t *at,
                                const uint8_t *end, presto__scalar_slot **slots_out) {
    size_t bytes, room = parser->spec_count > 0 ? parser->spec_count : FIRST_ROOM;
    if (parser->features != NULL)
        for (room = parser->count; at != end; at += bytes, room++)
            if (!presto__wire_expect(&at, end, 0x0a, &bytes))
                return PRESTO_END;
    uint8_t *memory =
        presto__example_take(parser, room, sizeof(presto_feature) + sizeof(presto__scalar_slot));
    if (memory == NULL)
        return presto_fail_memory(parser->err, room * sizeof(presto_feature));
    presto_feature *features = (presto_feature *)(void *)memory;
    if (parser->features != NULL)
        memcpy(features, parser->features, parser->count * sizeof *features);
    parser->features = features;
    parser->most = room;
    *slots_out = (presto__scalar_slot *)(void *)(memory + room * sizeof *features);
    return PRESTO_OK;
}

/*
 * One map with key before value in each entry, and rising keys, as most writers leave it.
 * PRESTO_END: it is not so, use the general parser.
 */
static presto_status parse_usual(presto__example_parser *parser) {
    const uint8_t *at = parser->in.data, *end = at + parser->in.bytes;
    size_t bytes;
    if (!presto__wire_expect(&at, end, 0x0a, &bytes) || at + bytes != end)
        return PRESTO_END;
    presto__scalar_slot *slots;
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
        if (presto__example_ignores(parser, name)) {
            at = entry_end;
            continue;
        }
        if (count > 0 && !presto__name_less(parser->features[count - 1].name, name))
            return PRESTO_END;
        if (count == parser->most)
            status = usual_room(parser, entry, end, &slots);
        if (status != PRESTO_OK)
            return status;
        presto_feature *feature = &parser->features[count];
        feature->name = name;
        status = usual_feature(parser, presto_span_of(at, bytes), feature, &slots[count]);
        at = entry_end;
        parser->count++;
    }
    return status;
}

static presto_status parse_any(presto__example_parser *parser) {
    presto_span in = parser->in;
    presto__wire wire = presto__wire_of(in);
    bool has_lists = false;
    parser->count = 0;
    parser->most = 0;
    parser->spec_next = 0;
    while (wire.at != wire.end) {
        presto__wire_field field;
        const uint8_t *at = wire.at;
        if (!presto__wire_next(&wire, &field))
            return presto__example_corrupt(parser, at, "not the wire format");
        if (field.number == 1 && field.type == PRESTO__WIRE_BYTES &&
            !count_entries(field.bytes, &parser->most))
            return presto__example_corrupt(parser, field.bytes.data, "features");
        has_lists |= field.number == 2 && field.type == PRESTO__WIRE_BYTES;
    }
    if (has_lists)
        PRESTO_TRY(presto__sequence_room(parser, &parser->most));
    parser->features = presto__example_take(parser, parser->most, sizeof *parser->features);
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
    return has_lists ? presto__sequence_lists(parser) : PRESTO_OK;
}

static presto_status parse(presto__example_parser *parser, presto_sample *sample_out) {
    presto_status status = parse_usual(parser);
    if (status == PRESTO_END)
        status = parse_any(parser);
    PRESTO_TRY(status);
    *sample_out = (presto_sample){.features = parser->features, .feature_count = parser->count};
    return PRESTO_OK;
}

presto_status presto_example_parse(presto_span in, const presto_example_specs *specs,
                                   presto_arena *arena, presto_sample *sample_out,
                                   presto_error *err) {
    presto__example_parser parser = {.in = in, .arena = arena, .err = err};
    if (specs != NULL) {
        parser.specs = specs->list;
        parser.spec_count = specs->count;
        parser.only_specs = specs->only_these;
    }
    return parse(&parser, sample_out);
}
