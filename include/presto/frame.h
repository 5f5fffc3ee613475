/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The TFRecord frame: u64 length | u32 masked CRC of the length | payload | u32 masked CRC of the
 * payload, all little-endian. No magic, no version, no footer: files may be concatenated.
 */
#ifndef PRESTO_FRAME_H
#define PRESTO_FRAME_H

#include <presto/span.h>

#ifdef __cplusplus
extern "C" {
#endif

#define PRESTO_FRAME_HEADER_BYTES 12
#define PRESTO_FRAME_FOOTER_BYTES 4
#define PRESTO_FRAME_OVERHEAD_BYTES 16
/* Largest payload accepted by default: protobuf and Hadoop readers stop at 2 GiB - 1. */
#define PRESTO_FRAME_MAX_PAYLOAD_BYTES ((uint64_t)INT32_MAX)

/** How much of what a frame promises is checked. */
typedef enum presto_checks {
    PRESTO_CHECK_FULL = 0,   /* both CRCs (default) */
    PRESTO_CHECK_HEADER = 1, /* the length's CRC only */
    PRESTO_CHECK_NONE = 2    /* neither; lengths are still bounded by the input */
} presto_checks;

/** What a frame must keep to. */
typedef struct presto_frame_rules {
    uint64_t max_payload_bytes; /* a larger payload is PRESTO_ERR_LIMIT */
    presto_checks verify;
} presto_frame_rules;

/**
 * Parse one frame at the start of `in`.
 *
 * Shape:   in starts with a frame; more may follow it.
 * Units:   all sizes in bytes; offset is where `in` starts in the file (for the error).
 * Owner:   *payload_out borrows from `in`; the frame's size is payload_out->bytes + 16.
 * Returns: PRESTO_OK; PRESTO_END if in.bytes == 0; PRESTO_ERR_TRUNCATED (in ends inside the frame),
 *          PRESTO_ERR_CORRUPT (a CRC differs), PRESTO_ERR_LIMIT (the length
 *          is larger than the rules allow).
 * Threads: any; no shared state.
 * Source:  TensorFlow record_writer.h (layout), RFC 3720 B.4 (CRC-32C).
 */
PRESTO_API presto_status presto_frame_parse(presto_span in, uint64_t offset,
                                            const presto_frame_rules *rules,
                                            presto_span *payload_out, presto_error *err);

/**
 * Check a header alone: the payload's length out of the first 12 bytes.
 * Returns: as presto_frame_parse, without looking at the payload.
 */
PRESTO_API presto_status presto_frame_parse_header(presto_span in, uint64_t offset,
                                                   const presto_frame_rules *rules,
                                                   uint64_t *payload_bytes_out, presto_error *err);

/** Write the 12 header bytes for a payload of `payload_bytes`. */
PRESTO_API void presto_frame_write_header(uint64_t payload_bytes,
                                          uint8_t header_out[PRESTO_FRAME_HEADER_BYTES]);

/** Write the 4 footer bytes for `payload`. */
PRESTO_API void presto_frame_write_footer(presto_span payload,
                                          uint8_t footer_out[PRESTO_FRAME_FOOTER_BYTES]);

/** Append a whole frame around `payload` to `out`. */
PRESTO_API presto_status presto_frame_append(presto_buffer *out, presto_span payload,
                                             presto_error *err);

#ifdef __cplusplus
}
#endif

#endif
