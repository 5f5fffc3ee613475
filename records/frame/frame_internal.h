/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Room frame: the frames of TFRecord files, in memory, with their CRCs.
 * May see: base. Must not know: files, what a payload holds.
 * No state, no lock. Every comparison of a CRC is here.
 */
#ifndef PRESTO_FRAME_INTERNAL_H
#define PRESTO_FRAME_INTERNAL_H

#include <presto/crc32c.h>
#include <presto/shard.h>

#include "../../base/bytes_internal.h"
#include "../../base/crc32c_internal.h"
#include "../records_internal.h"

/*
 * Does the stored CRC equal the computed one? All comparisons of CRCs are made here: a fuzzer
 * cannot guess CRCs, so its build accepts any.
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

/* The caller's limit, reduced so that a frame's size plus any offset in a file does not wrap
 * around. */
static inline uint64_t presto__payload_limit(uint64_t max_payload_bytes) {
    uint64_t most = (uint64_t)INT64_MAX / 2;
    return max_payload_bytes < most ? max_payload_bytes : most;
}

/** presto__frame_parse, if presto__frame_parse_header has accepted the header: the rest. */
presto_status presto__frame_parse_payload(presto_span in, uint64_t offset,
                                          const presto__frame_rules *rules,
                                          presto_span *payload_out, presto_error *err);

/**
 * The plain case, fast: frames at offsets[i] - offsets[0] in `data` that fill their places exactly.
 * Fills records[] for the leading correct frames and returns their number. It does not say what is
 * wrong with the next one.
 */
size_t presto__frames_check(const uint8_t *data, const uint64_t *offsets, size_t count,
                            const presto_shard_options *options, presto_record *records);

/** Where to look for frames that follow one another, and for how many. */
typedef struct presto__frames_wanted {
    presto_span in;
    uint64_t max_payload_bytes;
    size_t count;
} presto__frames_wanted;

/**
 * The plain case, fast: frames from the start of `in` that end in it and whose headers hold.
 * offsets_out gets where each of them starts, plus `offset`. Returns how many; *bytes_out is where
 * they end. It does not say what is wrong with the next one.
 */
size_t presto__frames_hop(const presto__frames_wanted *wanted, uint64_t offset,
                          uint64_t *offsets_out, size_t *bytes_out);

#endif
