/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CRC-32C with ISA-L, which selects a kernel for the processor at the first call. ISA-L works on
 * the bare register; the standard's inversion before and after is done here.
 */
#include "crc32c_internal.h"

#include <isa-l/crc.h>

#include <presto/crc32c.h>

/* ISA-L's length is an int. */
#define PIECE_BYTES ((size_t)1 << 30)

typedef unsigned int crc_kernel(unsigned char *data, int bytes, unsigned int state);

static uint32_t run(crc_kernel *kernel, uint32_t crc, const void *data, size_t bytes) {
    /* ISA-L's parameter lacks const, but it does not write. */
    unsigned char *at = (unsigned char *)(uintptr_t)data;
    uint32_t state = ~crc;
    while (bytes > PIECE_BYTES) {
        state = kernel(at, (int)PIECE_BYTES, state);
        at += PIECE_BYTES;
        bytes -= PIECE_BYTES;
    }
    if (bytes > 0)
        state = kernel(at, (int)bytes, state);
    return ~state;
}

#if PRESTO__CRC_SHORT
PRESTO__CRC_TARGET static uint32_t run_short(uint32_t crc, const void *data, size_t bytes) {
    return presto__crc_short(crc, data, bytes);
}
#endif

uint32_t presto_crc32c(uint32_t crc, const void *data, size_t bytes) {
#if PRESTO__CRC_SHORT
    if (bytes <= PRESTO__CRC_SHORT_BYTES && presto__crc_short_works())
        return run_short(crc, data, bytes);
#endif
    return run(crc32_iscsi, crc, data, bytes);
}

uint32_t presto__crc32c_portable(uint32_t crc, const void *data, size_t bytes) {
    return run(crc32_iscsi_base, crc, data, bytes);
}
