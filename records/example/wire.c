/* SPDX-License-Identifier: Apache-2.0 */
/* The less common parts of protobuf's wire format: long varints, fixed numbers, skipped groups. */
#include "example_internal.h"

/* Groups are long out of use. A deeper nesting is an attack. */
#define GROUP_DEPTH 64

static bool read_tag(presto__wire *wire, uint32_t *number_out, presto__wire_type *type_out) {
    uint64_t tag;
    if (!presto__wire_varint(wire, &tag) || tag > UINT32_MAX || tag >> 3 == 0 || (tag & 7) > 5)
        return false;
    *number_out = (uint32_t)(tag >> 3);
    *type_out = (presto__wire_type)(tag & 7);
    return true;
}

static bool take(presto__wire *wire, uint64_t bytes, presto_span *out) {
    if (bytes > (uint64_t)(wire->end - wire->at))
        return false;
    *out = presto_span_of(wire->at, (size_t)bytes);
    wire->at += bytes;
    return true;
}

static bool read_value(presto__wire *wire, presto__wire_field *field) {
    switch (field->type) {
    case PRESTO__WIRE_VARINT:
        return presto__wire_varint(wire, &field->value);
    case PRESTO__WIRE_FIXED64:
        if (!take(wire, 8, &field->bytes))
            return false;
        field->value = presto__load_u64(field->bytes.data);
        return true;
    case PRESTO__WIRE_FIXED32:
        if (!take(wire, 4, &field->bytes))
            return false;
        field->value = presto__load_u32(field->bytes.data);
        return true;
    case PRESTO__WIRE_BYTES:
        return presto__wire_varint(wire, &field->value) && take(wire, field->value, &field->bytes);
    case PRESTO__WIRE_GROUP:
    case PRESTO__WIRE_GROUP_END:
        break;
    }
    return false;
}

/* Skip to the end of the group `number`, whose start has been read. */
static bool skip_group(presto__wire *wire, uint32_t number) {
    uint32_t open[GROUP_DEPTH] = {number};
    unsigned depth = 1;
    while (depth > 0) {
        presto__wire_field field;
        if (!read_tag(wire, &field.number, &field.type))
            return false;
        if (field.type == PRESTO__WIRE_GROUP) {
            if (depth == GROUP_DEPTH)
                return false;
            open[depth++] = field.number;
        } else if (field.type == PRESTO__WIRE_GROUP_END) {
            if (open[--depth] != field.number)
                return false;
        } else if (!read_value(wire, &field)) {
            return false;
        }
    }
    return true;
}

bool presto__wire_next_slow(presto__wire *wire, presto__wire_field *field_out) {
    presto__wire_field field = {0};
    if (!read_tag(wire, &field.number, &field.type))
        return false;
    if (field.type == PRESTO__WIRE_GROUP) {
        const uint8_t *start = wire->at;
        if (!skip_group(wire, field.number))
            return false;
        field.bytes = presto_span_of(start, (size_t)(wire->at - start));
    } else if (!read_value(wire, &field)) {
        return false;
    }
    *field_out = field;
    return true;
}
