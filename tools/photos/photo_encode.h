/* SPDX-License-Identifier: Apache-2.0 */
/* Files of the pictures of photo_scene.h, for presto-make-photos. */
#ifndef PRESTO_TOOLS_PHOTO_ENCODE_H
#define PRESTO_TOOLS_PHOTO_ENCODE_H

#include <stdbool.h>
#include <stdio.h>

#include "photo_scene.h"

enum { PHOTO_MESSAGE_BYTES = 256 };

typedef struct photo_format {
    int width, height;
    bool is_png16; /* RGB of 16 bits each, else a JPEG */
    int quality;   /* of a JPEG, 1 to 100 */
} photo_format;

/** "jpg" or "png". */
const char *photo_ending(const photo_format *format);

/** Was this program built with libspng? */
bool photo_has_png(void);

/**
 * Write the composed picture, which is of the format's size. On failure: false; the reason is in
 * `message_out` (PHOTO_MESSAGE_BYTES), unless errno tells it.
 */
bool photo_encode(scene *picture, const photo_format *format, FILE *out, char *message_out);

#endif
