/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers as bytes: little-endian, and of variable length. */
#ifndef PRESTO_BASE_BYTES_INTERNAL_H
#define PRESTO_BASE_BYTES_INTERNAL_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

/* One load each: written byte by byte, compilers see that only if no byte is used by itself. */
static inline uint32_t presto__load_u32(const uint8_t *at) {
    uint32_t value;
    memcpy(&value, at, sizeof value);
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    value = __builtin_bswap32(value);
#endif
    return value;
}

static inline uint64_t presto__load_u64(const uint8_t *at) {
    uint64_t value;
    memcpy(&value, at, sizeof value);
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    value = __builtin_bswap64(value);
#endif
    return value;
}

static inline void presto__store_u32(uint8_t *at, uint32_t value) {
    at[0] = (uint8_t)value;
    at[1] = (uint8_t)(value >> 8);
    at[2] = (uint8_t)(value >> 16);
    at[3] = (uint8_t)(value >> 24);
}

static inline void presto__store_u64(uint8_t *at, uint64_t value) {
    presto__store_u32(at, (uint32_t)value);
    presto__store_u32(at + 4, (uint32_t)(value >> 32));
}

/** A number in protobuf's variable-length form, of at most ten bytes, at *at_io. Returns: false
 * if it is cut off or longer. */
static inline bool presto__varint_read(const uint8_t **at_io, const uint8_t *end,
                                       uint64_t *value_out) {
    uint64_t value = 0;
    const uint8_t *at = *at_io;
    for (unsigned shift = 0; shift < 70; shift += 7) {
        if (at == end)
            return false;
        uint8_t byte = *at++;
        value |= (uint64_t)(byte & 0x7f) << shift; /* bits beyond 64 fall off, as in protobuf */
        if (byte < 0x80) {
            *at_io = at;
            *value_out = value;
            return true;
        }
    }
    return false;
}

#endif
