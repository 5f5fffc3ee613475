/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pictures that behave like photos, for presto-make-photos: composed as a scene, exposed row by
 * row.
 */
#ifndef PRESTO_TOOLS_PHOTO_SCENE_H
#define PRESTO_TOOLS_PHOTO_SCENE_H

#include <stdint.h>

/* Y, Cb, Cr: as JPEG stores them, so that no conversion rounds. */
enum { SCENE_CHANNELS = 3 };

/* The memory for making a picture, reused for the next one of that size. Threads: one at a time. */
typedef struct scene scene;

/** Width and height in pixels, from 1 to 65535. NULL when memory ran out. Owner: caller,
 * scene_free. */
scene *scene_new(int width, int height);
void scene_free(scene *s);

/** Compose picture `number` of those of this seed; class_number is in [0, classes). */
void scene_compose(scene *s, int seed, int number, int class_number, int classes);

/**
 * Row `y` of the picture as the camera sees it: uint8 [width, SCENE_CHANNELS], valid until the next
 * call. The rows are taken once each, from the first to the last: their noise is drawn in that
 * order.
 */
uint8_t *scene_expose_row(scene *s, int y);

/**
 * The same row as a sensor of 9 bits delivers it: R, G, B of 16 bits each [width, SCENE_CHANNELS],
 * the low seven of them 0. In place of scene_expose_row, under the same rules.
 */
uint16_t *scene_expose_row16(scene *s, int y);

#endif
