/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The index of a JPEG with restart markers, in an APP9 segment:
 *
 *     "PRESTO", 0, version 1 | for each piece of the scan its bytes, u16 big-endian
 *
 * Pieces are what lies between restart markers, as it stands in the file. The index is not trusted:
 * each piece must be followed by the marker that is due, and the last one by the end of the image.
 */
#ifndef PRESTO_STEPS_JPEG_INDEX_INTERNAL_H
#define PRESTO_STEPS_JPEG_INDEX_INTERNAL_H

#include "jpeg_fast_internal.h"

enum {
    PRESTO__JPEG_INDEX_MARKER = 0xe9, /* APP9 */
    PRESTO__JPEG_INDEX_NAME_BYTES = 8,
    PRESTO__JPEG_INDEX_MOST_BYTES = 2 + 65535
};

/** Is the content of the segment `marker` an index? */
static inline bool presto__jpeg_is_index(int marker, presto_span content) {
    return marker == PRESTO__JPEG_INDEX_MARKER && content.bytes >= PRESTO__JPEG_INDEX_NAME_BYTES &&
           memcmp(content.data, "PRESTO\0\1", PRESTO__JPEG_INDEX_NAME_BYTES) == 0;
}

/**
 * The segment, marker and all, for the image that is open, to `out`, which has
 * PRESTO__JPEG_INDEX_MOST_BYTES. Returns its bytes; 0: it has no restart markers, or too many, or
 * they are too far apart.
 */
size_t presto__jpeg_index_write(const presto__jpeg_fast *fast, uint8_t *out);

#endif
