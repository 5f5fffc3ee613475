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

#ifdef __cplusplus
}
#endif

#endif
