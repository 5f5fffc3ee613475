/* SPDX-License-Identifier: Apache-2.0 */
/* Steps that lay an image onto a canvas of another size: what hangs over is cut off, the rest of
 * the canvas is filled with a value. */
#ifndef PRESTO_STEPS_CANVAS_INTERNAL_H
#define PRESTO_STEPS_CANVAS_INTERNAL_H

#include "../geometry_internal.h"
#include "../steps_internal.h"

typedef struct presto__canvas {
    int64_t height, width;
    int64_t y, x; /* where the image's first pixel goes; may be negative */
    double fill;
} presto__canvas;

/** Is `in` an image of uint8 or float32, and `fill` a value of its dtype? PRESTO_ERR_TYPE. */
presto_status presto__canvas_expect(const presto_tensor_spec *in, double fill, presto_error *err);

/** The canvas with the image on it, as the step's output. */
presto_status presto__canvas_run(const presto__canvas *canvas, presto_step_context *context,
                                 const presto_tensor *in, presto_tensor *out_out,
                                 presto_error *err);

#endif
