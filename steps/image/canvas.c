/* SPDX-License-Identifier: Apache-2.0 */
#include "canvas_internal.h"

presto_status presto__canvas_expect(const presto_tensor_spec *in, double fill, presto_error *err) {
    PRESTO_TRY(presto__image_expect(in, err));
    bool is_byte = fill >= 0 && fill <= UINT8_MAX && fill == (double)(uint8_t)fill;
    if (in->dtype == PRESTO_UINT8 && !is_byte)
        return presto_fail(err, PRESTO_ERR_TYPE, PRESTO_NO_OFFSET,
                           "fills with %g, which is no uint8 as the image has", fill);
    return PRESTO_OK;
}

static void fill_values(void *data, const presto_tensor_spec *spec, double fill) {
    size_t values = (size_t)presto_spec_elements(spec);
    if (spec->dtype == PRESTO_UINT8) {
        if (values > 0)
            memset(data, (uint8_t)fill, values);
        return;
    }
    float value = (float)fill;
    for (size_t i = 0; i < values; i++)
        memcpy((uint8_t *)data + i * sizeof value, &value, sizeof value);
}

/* Of `length` pixels laid at `at`: how many come before the canvas, and how many are on it. */
static int64_t hidden(int64_t at) {
    return at < 0 ? -at : 0;
}

static int64_t shown(int64_t at, int64_t length, int64_t canvas) {
    int64_t end = at + length < canvas ? at + length : canvas;
    int64_t count = end - (at > 0 ? at : 0);
    return count > 0 ? count : 0;
}

presto_status presto__canvas_run(const presto__canvas *canvas, presto_step_context *context,
                                 const presto_tensor *in, presto_tensor *out_out,
                                 presto_error *err) {
    presto_tensor_spec spec = in->spec;
    spec.dims[0] = canvas->height;
    spec.dims[1] = canvas->width;
    void *data;
    PRESTO_TRY(presto_step_output(context, &spec, &data, err));
    const presto_window window = {-canvas->y, -canvas->x, canvas->height, canvas->width};
    presto__step_cut(context, &in->spec, &window, canvas->height, canvas->width);
    int64_t rows = shown(canvas->y, in->spec.dims[0], canvas->height);
    int64_t columns = shown(canvas->x, in->spec.dims[1], canvas->width);
    if (rows != canvas->height || columns != canvas->width)
        fill_values(data, &spec, canvas->fill);
    size_t pixel_bytes = presto__pixel_bytes(&spec);
    size_t in_row = (size_t)in->spec.dims[1] * pixel_bytes;
    size_t out_row = (size_t)canvas->width * pixel_bytes;
    for (int64_t y = 0; y < rows && columns > 0; y++)
        memcpy((uint8_t *)data + (size_t)(y + (canvas->y > 0 ? canvas->y : 0)) * out_row +
                   (size_t)(canvas->x > 0 ? canvas->x : 0) * pixel_bytes,
               (const uint8_t *)in->data + (size_t)(y + hidden(canvas->y)) * in_row +
                   (size_t)hidden(canvas->x) * pixel_bytes,
               (size_t)columns * pixel_bytes);
    out_out->spec = spec;
    out_out->data = data;
    return PRESTO_OK;
}
