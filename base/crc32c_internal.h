/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CRC-32C of a few bytes with the processor's instruction. For a record's header, a call into a
 * library costs several times the work itself. Only for functions compiled for PRESTO__CRC_TARGET.
 */
#ifndef PRESTO_CRC32C_INTERNAL_H
#define PRESTO_CRC32C_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#if defined(__x86_64__)

#include <nmmintrin.h>

#define PRESTO__CRC_SHORT 1
#define PRESTO__CRC_TARGET __attribute__((target("sse4.2")))
/* Up to this size one stream of the instruction is as fast as ISA-L's interleaved ones
 * (measured). */
#define PRESTO__CRC_SHORT_BYTES 128

static inline bool presto__crc_short_works(void) {
    return __builtin_cpu_supports("sse4.2") != 0;
}

PRESTO__CRC_TARGET static inline uint32_t presto__crc_short(uint32_t crc, const uint8_t *data,
                                                            size_t bytes) {
    uint64_t state = ~crc;
    for (; bytes >= 8; data += 8, bytes -= 8) {
        uint64_t word;
        memcpy(&word, data, 8);
        state = _mm_crc32_u64(state, word);
    }
    uint32_t rest = (uint32_t)state;
    if ((bytes & 4) != 0) {
        uint32_t word;
        memcpy(&word, data, 4);
        rest = _mm_crc32_u32(rest, word);
        data += 4;
    }
    if ((bytes & 2) != 0) {
        uint16_t word;
        memcpy(&word, data, 2);
        rest = _mm_crc32_u16(rest, word);
        data += 2;
    }
    if ((bytes & 1) != 0)
        rest = _mm_crc32_u8(rest, *data);
    return ~rest;
}

#else
#define PRESTO__CRC_SHORT 0
#endif

/** The portable CRC-32C, on any processor: the reference for tests of presto_crc32c. */
uint32_t presto__crc32c_portable(uint32_t crc, const void *data, size_t bytes);

#endif
