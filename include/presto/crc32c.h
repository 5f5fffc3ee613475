/* SPDX-License-Identifier: Apache-2.0 */
/* CRC-32C (Castagnoli), and the masking that TFRecord applies to it. */
#ifndef PRESTO_CRC32C_H
#define PRESTO_CRC32C_H

#include <presto/span.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * CRC-32C of `bytes` bytes at `data`, continuing from `crc` (0 to start): crc(ab) ==
 * presto_crc32c(presto_crc32c(0, a), b). presto_crc32c(0, "123456789", 9) == 0xe3069283.
 * Threads: any.
 * Source:  RFC 3720 B.4.
 */
PRESTO_API uint32_t presto_crc32c(uint32_t crc, const void *data, size_t bytes);

/** TFRecord's masking: rotate right by 15, add 0xa282ead8 (TensorFlow crc32c.h). */
static inline uint32_t presto_crc32c_mask(uint32_t crc) {
    return ((crc >> 15) | (crc << 17)) + UINT32_C(0xa282ead8);
}

static inline uint32_t presto_crc32c_unmask(uint32_t masked) {
    uint32_t rotated = masked - UINT32_C(0xa282ead8);
    return (rotated >> 17) | (rotated << 15);
}

#ifdef __cplusplus
}
#endif

#endif
