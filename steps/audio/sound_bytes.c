/* SPDX-License-Identifier: Apache-2.0 */
/* The bytes of a sound as a file, for the libraries. */
#include <stdio.h>

#include "audio_internal.h"

/* `bytes` of `out` were read from `at` on. */
static void apply(const presto__sound_patch *patch, size_t at, uint8_t *out, size_t bytes) {
    for (size_t i = 0; i < 4; i++)
        if (patch->at + i >= at && patch->at + i - at < bytes)
            out[patch->at + i - at] = patch->bytes[i];
}

size_t presto__sound_bytes_read(presto__sound *sound, void *out, size_t bytes) {
    size_t left = sound->bytes.bytes - sound->at;
    bytes = bytes < left ? bytes : left;
    if (bytes > 0)
        memcpy(out, sound->bytes.data + sound->at, bytes);
    for (size_t i = 0; i < sound->patch_count; i++)
        apply(&sound->patches[i], sound->at, out, bytes);
    sound->at += bytes;
    return bytes;
}

int64_t presto__sound_bytes_seek(presto__sound *sound, int64_t offset, int whence) {
    int64_t length = (int64_t)sound->bytes.bytes;
    int64_t base = whence == SEEK_CUR ? (int64_t)sound->at : whence == SEEK_END ? length : 0;
    if (offset < -base || offset > length - base)
        return -1;
    sound->at = (size_t)(base + offset);
    return base + offset;
}
