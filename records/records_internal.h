/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of records/ share: little-endian numbers and the one place that compares CRCs. */
#ifndef PRESTO_RECORDS_INTERNAL_H
#define PRESTO_RECORDS_INTERNAL_H

#include <presto/crc32c.h>
#include <presto/shard.h>

static inline uint32_t presto__load_u32(const uint8_t *at) {
    return (uint32_t)at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24;
}

static inline uint64_t presto__load_u64(const uint8_t *at) {
    return (uint64_t)presto__load_u32(at) | (uint64_t)presto__load_u32(at + 4) << 32;
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

/*
 * Does the stored CRC fit the computed one? Every check of a CRC ends here, so that a
 * fuzzer, which cannot guess CRCs, gets past them.
 */
static inline bool presto__crc_matches(uint32_t stored, uint32_t computed) {
#ifdef FUZZING_BUILD_MODE_UNSAFE_FOR_PRODUCTION
    (void)stored;
    (void)computed;
    return true;
#else
    return stored == computed;
#endif
}

/* The limit that a caller sets, but so low that a frame's size, added to any offset in a file, does
 * not wrap around. */
static inline uint64_t presto__payload_limit(uint64_t max_payload_bytes) {
    uint64_t most = (uint64_t)INT64_MAX / 2;
    return max_payload_bytes < most ? max_payload_bytes : most;
}

/**
 * The plain case, fast: frames that stand at offsets[i] - offsets[0] in `data` and fill their
 * places exactly. Fills records[] for the leading ones that hold and returns how many they are;
 * says nothing about the one it stops at.
 */
size_t presto__frames_check(const uint8_t *data, const uint64_t *offsets, size_t count,
                            const presto_shard_options *options, presto_record *records);

/** The portable CRC-32C, whatever the processor: what presto_crc32c is tested against. */
uint32_t presto__crc32c_portable(uint32_t crc, const void *data, size_t bytes);

#endif
