/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Checking many small frames in a row, and hopping over them. Their CRCs do not depend on each
 * other. So the processor computes several at once, as long as only the CRC instruction itself
 * limits it.
 */
#include "frame_internal.h"

#include "../../base/crc32c_internal.h"

#define HEADER PRESTO_FRAME_HEADER_BYTES
#define OVERHEAD PRESTO_FRAME_OVERHEAD_BYTES

#if PRESTO__CRC_SHORT

PRESTO__CRC_TARGET static size_t check_short(const uint8_t *data, const uint64_t *offsets,
                                             size_t count, const presto_shard_options *options,
                                             presto_record *records) {
    const presto_checks verify = options->verify;
    const uint64_t max_bytes = options->max_payload_bytes;
    for (size_t i = 0; i < count; i++) {
        const uint8_t *frame = data + (offsets[i] - offsets[0]);
        const uint8_t *payload = frame + HEADER;
        size_t bytes = (size_t)(offsets[i + 1] - offsets[i]) - OVERHEAD;
        if (presto__load_u64(frame) != bytes || bytes > max_bytes)
            return i;
        if (verify != PRESTO_CHECK_NONE &&
            !presto__crc_matches(presto__load_u32(frame + 8),
                                 presto_crc32c_mask(presto__crc_short(0, frame, 8))))
            return i;
        if (verify == PRESTO_CHECK_FULL) {
            uint32_t crc = bytes <= PRESTO__CRC_SHORT_BYTES ? presto__crc_short(0, payload, bytes)
                                                            : presto_crc32c(0, payload, bytes);
            if (!presto__crc_matches(presto__load_u32(payload + bytes), presto_crc32c_mask(crc)))
                return i;
        }
        records[i].payload = presto_span_of(payload, bytes);
        records[i].offset = offsets[i];
        records[i].status = PRESTO_OK;
    }
    return count;
}

PRESTO__CRC_TARGET static size_t hop_short(const presto__frames_wanted *wanted, uint64_t offset,
                                           uint64_t *offsets, size_t *bytes_out) {
    const uint8_t *data = wanted->in.data;
    size_t at = 0, left = wanted->in.bytes, count = 0;
    for (; count < wanted->count && left >= OVERHEAD; count++) {
        const uint8_t *frame = data + at;
        uint64_t bytes = presto__load_u64(frame);
        if (bytes > left - OVERHEAD || bytes > wanted->max_payload_bytes ||
            !presto__crc_matches(presto__load_u32(frame + 8),
                                 presto_crc32c_mask(presto__crc_short(0, frame, 8))))
            break;
        offsets[count] = offset + at;
        at += (size_t)bytes + OVERHEAD;
        left -= (size_t)bytes + OVERHEAD;
    }
    *bytes_out = at;
    return count;
}

size_t presto__frames_hop(const presto__frames_wanted *wanted, uint64_t offset,
                          uint64_t *offsets_out, size_t *bytes_out) {
    *bytes_out = 0;
    return presto__crc_short_works() ? hop_short(wanted, offset, offsets_out, bytes_out) : 0;
}

size_t presto__frames_check(const uint8_t *data, const uint64_t *offsets, size_t count,
                            const presto_shard_options *options, presto_record *records) {
    return presto__crc_short_works() ? check_short(data, offsets, count, options, records) : 0;
}

#else

size_t presto__frames_hop(const presto__frames_wanted *wanted, uint64_t offset,
                          uint64_t *offsets_out, size_t *bytes_out) {
    (void)wanted;
    (void)offset;
    (void)offsets_out;
    *bytes_out = 0;
    return 0; /* one by one, then */
}

size_t presto__frames_check(const uint8_t *data, const uint64_t *offsets, size_t count,
                            const presto_shard_options *options, presto_record *records) {
    (void)data;
    (void)offsets;
    (void)count;
    (void)options;
    (void)records;
    return 0; /* one by one, then */
}

#endif
