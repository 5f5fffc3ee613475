/* SPDX-License-Identifier: Apache-2.0 */
/* Changes of an image's colors, each equal to the function of that name in torchvision. */
#ifndef PRESTO_STEPS_COLOR_INTERNAL_H
#define PRESTO_STEPS_COLOR_INTERNAL_H

#include "../steps_internal.h"

/* The options of color-jitter are in this order, too. */
typedef enum presto__color {
    PRESTO__COLOR_BRIGHTNESS,
    PRESTO__COLOR_CONTRAST,
    PRESTO__COLOR_SATURATION,
    PRESTO__COLOR_HUE,
    PRESTO__COLOR_CHANGES /* how many */
} presto__color;

typedef struct presto__color_kernels presto__color_kernels;

/** Those for this processor. */
const presto__color_kernels *presto__color_kernels_of_cpu(void);

/** One change, by torchvision's adjust_brightness, _contrast, _saturation or _hue. */
typedef struct presto__color_change {
    presto__color kind;
    double factor;
} presto__color_change;

typedef struct presto__color_image {
    const presto__color_kernels *kernels;
    const void *in;                 /* need not be aligned */
    void *out;                      /* as large */
    const presto_tensor_spec *spec; /* uint8 or float32 [height, width, 1 or 3], complete */
} presto__color_image;

/** Apply the changes in their order, contrast at most once. Of one channel, saturation and hue
 * change nothing. */
void presto__color_apply(const presto__color_image *image, const presto__color_change *changes,
                         size_t count);

#endif
