/* SPDX-License-Identifier: Apache-2.0 */
/* Tar archives made on the spot. */
#ifndef TAR_MADE_H
#define TAR_MADE_H

#include "presto_check.h"

#include <stdio.h>
#include <string.h>

#include <presto/span.h>

static inline void tar_put(presto_buffer *tar, const void *data, size_t bytes) {
    presto_error err;
    ck_assert_ok(presto_buffer_append(tar, presto_span_of(data, bytes), &err), &err);
}

/** Content, padded to whole blocks. */
static inline void tar_put_padded(presto_buffer *tar, presto_span content) {
    static const uint8_t zeros[512];
    tar_put(tar, content.data, content.bytes);
    tar_put(tar, zeros, (512 - content.bytes % 512) % 512);
}

/** Write the checksum of a header. */
static inline void tar_sign(uint8_t *block) {
    unsigned sum = 0;
    memset(block + 148, ' ', 8);
    for (size_t i = 0; i < 512; i++)
        sum += block[i];
    snprintf((char *)block + 148, 8, "%06o", sum);
}

/** A header in the format ustar; `bytes` is the size that it says. */
static inline void tar_put_header(presto_buffer *tar, const char *name, char type, uint64_t bytes) {
    uint8_t block[512] = {0};
    size_t length = strlen(name);
    memcpy(block, name, length < 100 ? length : 100);
    memcpy(block + 100, "0000644", 7);
    for (size_t i = 11; i-- > 0; bytes /= 8)
        block[124 + i] = (uint8_t)('0' + bytes % 8);
    memcpy(block + 136, "00000000000", 11);
    block[156] = (uint8_t)type;
    memcpy(block + 257,
           "ustar\0"
           "00",
           8);
    tar_sign(block);
    tar_put(tar, block, sizeof block);
}

static inline void tar_put_member(presto_buffer *tar, const char *name, presto_span content) {
    tar_put_header(tar, name, '0', content.bytes);
    tar_put_padded(tar, content);
}

static inline void tar_put_text(presto_buffer *tar, const char *name, const char *text) {
    tar_put_member(tar, name, presto_span_of_text(text));
}

/** An extended header of this type, with this content, in front of the next member. */
static inline void tar_put_extended(presto_buffer *tar, char type, presto_span content) {
    tar_put_header(tar, "././@extended", type, content.bytes);
    tar_put_padded(tar, content);
}

static inline void tar_put_end(presto_buffer *tar) {
    static const uint8_t zeros[1024];
    tar_put(tar, zeros, sizeof zeros);
}

#endif
