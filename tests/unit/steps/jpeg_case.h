/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A JPEG and what libjpeg-turbo makes of it, on the way from the program that makes them to one that
 * may run on a processor of another kind. Both have the order of bytes and the layout of structs.
 */
#ifndef PRESTO_TESTS_JPEG_CASE_H
#define PRESTO_TESTS_JPEG_CASE_H

#include <stdint.h>

/* Followed by the file's bytes, and by the pixels if is_clean. The last one has no bytes. */
typedef struct jpeg_case {
    uint32_t number, bytes;
    uint32_t channels, by, is_accurate; /* what is asked for */
    uint32_t is_clean;                  /* libjpeg decodes it, and does not warn */
    uint32_t may_wrap;      /* libjpeg's `fast` may make something else on x86 and ARM */
    uint32_t height, width; /* of what it decodes to */
    uint32_t y, x, window_height, window_width;
} jpeg_case;

#endif
