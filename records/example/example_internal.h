/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Room example: tf.train.Example and TensorProto to samples and back, in protobuf's wire format.
 * May see: base, room frame. Must not know: files, codecs.
 * Parsed values are views of the bytes. No byte is trusted. Memory comes from the caller's arena
 * only. No lock.
 */
#ifndef PRESTO_EXAMPLE_INTERNAL_H
#define PRESTO_EXAMPLE_INTERNAL_H

#include <presto/example.h>
#include <presto/frame.h>

#include "../../base/bytes_internal.h"
#include "../../base/digest_internal.h"

/* ---- the wire format: fields one after another out of a span, each checked against its end ----
 */

typedef enum presto__wire_type {
    PRESTO__WIRE_VARINT = 0,
    PRESTO__WIRE_FIXED64 = 1,
    PRESTO__WIRE_BYTES = 2,
    PRESTO__WIRE_GROUP = 3,
    PRESTO__WIRE_GROUP_END = 4,
    PRESTO__WIRE_FIXED32 = 5
} presto__wire_type;

/** What is left of a message. */
typedef struct presto__wire {
    const uint8_t *at;
    const uint8_t *end;
} presto__wire;

/** One field: `number` and `type`, and its value where that type has one. */
typedef struct presto__wire_field {
    uint32_t number;
    presto__wire_type type;
    uint64_t value;    /* VARINT, FIXED64, FIXED32 */
    presto_span bytes; /* BYTES; FIXED64 and FIXED32 as they stand */
} presto__wire_field;

static inline presto__wire presto__wire_of(presto_span in) {
    presto__wire wire = {in.data, in.data + in.bytes};
    return wire;
}

/* Returns false if it is cut off or longer than ten bytes. */
static inline bool presto__wire_varint(presto__wire *wire, uint64_t *value_out) {
    if (wire->at != wire->end && *wire->at < 0x80) {
        *value_out = *wire->at++;
        return true;
    }
    return presto__varint_read(&wire->at, wire->end, value_out);
}

bool presto__wire_next_slow(presto__wire *wire, presto__wire_field *field_out);

/* The next field; call only while at != end. False: not the wire format. Groups are skipped as a
 * whole. */
static inline bool presto__wire_next(presto__wire *wire, presto__wire_field *field_out) {
    /* Nearly all fields here are a short tag and a length that fits. */
    const uint8_t *at = wire->at;
    if (wire->end - at >= 2 && (at[0] & 0x87) == PRESTO__WIRE_BYTES && at[0] >= 8) {
        size_t bytes = at[1];
        const uint8_t *data = at + 2;
        if (bytes >= 0x80) {
            if (wire->end - at < 3 || at[2] >= 0x80)
                return presto__wire_next_slow(wire, field_out);
            bytes = (bytes & 0x7f) | (size_t)at[2] << 7;
            data++;
        }
        if (bytes > (size_t)(wire->end - data))
            return false;
        field_out->number = at[0] >> 3;
        field_out->type = PRESTO__WIRE_BYTES;
        field_out->bytes = presto_span_of(data, bytes);
        wire->at = data + bytes;
        return true;
    }
    return presto__wire_next_slow(wire, field_out);
}

/* The third byte of a length and the bytes after it. */
static inline bool presto__wire_long_length(const uint8_t **at_io, const uint8_t *end,
                                            size_t *bytes_io) {
    const uint8_t *at = *at_io;
    for (unsigned shift = 14; shift <= 28; shift += 7) {
        if (at == end)
            return false;
        uint8_t byte = *at++;
        *bytes_io |= (size_t)(byte & 0x7f) << shift;
        if (byte < 0x80) {
            *at_io = at;
            return true;
        }
    }
    return false;
}

/*
 * For the usual form of a message: is the next field length-delimited with this tag byte? Then
 * *at_io is set to its bytes and *bytes_out to their number, within `end`. False means only that
 * the general parser must look.
 */
static inline __attribute__((always_inline)) bool presto__wire_expect(const uint8_t **at_io,
                                                                      const uint8_t *end,
                                                                      uint8_t tag,
                                                                      size_t *bytes_out) {
    const uint8_t *at = *at_io;
    if (end - at < 2 || at[0] != tag)
        return false;
    size_t bytes = at[1];
    at += 2;
    if (bytes >= 0x80) {
        if (at == end)
            return false;
        bytes = (bytes & 0x7f) | (size_t)(*at & 0x7f) << 7;
        if (*at++ >= 0x80 && !presto__wire_long_length(&at, end, &bytes))
            return false;
    }
    if (bytes > (size_t)(end - at))
        return false;
    *at_io = at;
    *bytes_out = bytes;
    return true;
}

/*
 * One varint of one to eight bytes, which must all be its own: a value of
 * presto__example_layout_match. At least eight bytes of the entry's head stand before it: one load,
 * and no loop over a length that differs from record to record.
 */
static inline bool presto__example_short_int64(presto_span in, int64_t *number_out) {
    unsigned drop = 64 - 8 * (unsigned)in.bytes;
    uint64_t word = presto__load_u64(in.data + in.bytes - 8) >> drop;
    if ((word & 0x8080808080808080) != UINT64_C(0x0080808080808080) >> drop)
        return false;
    word &= 0x7f7f7f7f7f7f7f7f;
    word = (word & 0x007f007f007f007f) | (word & 0x7f007f007f007f00) >> 1;
    word = (word & 0x00003fff00003fff) | (word & 0x3fff00003fff0000) >> 2;
    *number_out = (int64_t)((word & 0x0fffffff) | (word & 0x0fffffff00000000) >> 4);
    return true;
}

/* ---- writing ---- */

static inline size_t presto__varint_bytes(uint64_t value) {
    unsigned bits = 64 - (unsigned)__builtin_clzll(value | 1);
    return (bits * 9 + 64) / 64; /* a seventh, rounded up: the same for up to 64 bits */
}

/* Of packed int64 values; `data` need not be aligned. */
static inline uint64_t presto__packed_bytes(const uint8_t *data, uint64_t count) {
    uint64_t bytes = 0;
    for (uint64_t i = 0; i < count; i++)
        bytes += presto__varint_bytes(presto__load_u64(data + i * 8));
    return bytes;
}

static inline uint8_t *presto__varint_put(uint8_t *at, uint64_t value) {
    while (value >= 0x80) {
        *at++ = (uint8_t)(value | 0x80);
        value >>= 7;
    }
    *at++ = (uint8_t)value;
    return at;
}

/* Tag of a field with number < 16. */
static inline uint8_t presto__wire_tag(unsigned number, presto__wire_type type) {
    return (uint8_t)(number << 3 | (unsigned)type);
}

/* Bytes of a length-delimited field with a one-byte tag. */
static inline uint64_t presto__wire_bytes_size(uint64_t payload) {
    return 1 + presto__varint_bytes(payload) + payload;
}

static inline uint8_t *presto__wire_put_head(uint8_t *at, unsigned number, uint64_t payload) {
    *at++ = presto__wire_tag(number, PRESTO__WIRE_BYTES);
    return presto__varint_put(at, payload);
}

/* ---- TensorProtos: read without detour, written in two passes ---- */

/**
 * Parse a TensorProto of the usual form: dtype, shape and content, each once, in this order, and
 * consistent. False means only that the general parser must look; *tensor_out may be overwritten.
 */
bool presto__tensor_proto_usual(presto_span in, presto_tensor *tensor_out);

/** Can the tensor be written at all? */
presto_status presto__tensor_proto_check(const presto_tensor *tensor, presto_error *err);

/** Bytes that presto__tensor_proto_put will write. */
uint64_t presto__tensor_proto_size(const presto_tensor *tensor);

/** Write it at `at`; returns the end. */
uint8_t *presto__tensor_proto_put(uint8_t *at, const presto_tensor *tensor);

/* ---- names ---- */

/** Bytewise order; a name comes before those that it begins. */
static inline bool presto__name_less(presto_span a, presto_span b) {
    size_t least = a.bytes < b.bytes ? a.bytes : b.bytes;
    if (least > 0 && a.data[0] != b.data[0])
        return a.data[0] < b.data[0];
    int order = least > 0 ? memcmp(a.data, b.data, least) : 0;
    return order != 0 ? order < 0 : a.bytes < b.bytes;
}

/* A table of numbers by names that come from outside. Finding a name takes the same time whatever
 * names an attacker chooses, because the hash is keyed. Lives in an arena. */

typedef struct presto__name {
    presto_span name;   /* borrowed */
    size_t number_plus; /* the number plus one; 0: no name is here */
} presto__name;

/** Zero-initialise: slots is NULL until presto__name_table_make. */
typedef struct presto__name_table {
    presto__name *slots;
    size_t mask;
    presto__hash_key key;
} presto__name_table;

/** Make room for `most` names; after that presto__name_table_find may be called. */
presto_status presto__name_table_make(presto__name_table *table, size_t most, presto_arena *arena,
                                      presto_error *err);

/** The slot of the name, or the slot where it is to be filled in. */
presto__name *presto__name_table_find(const presto__name_table *table, presto_span name);

/* ---- SequenceExamples ---- */

/** Has the record feature lists? Then it is no Example. */
bool presto__is_sequence(presto_span record);

#endif
