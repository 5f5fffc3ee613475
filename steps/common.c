/* SPDX-License-Identifier: Apache-2.0 */
/* Checks and copies that several steps need. */
#include "steps_internal.h"

#include <stdlib.h>

const presto_tensor_spec presto__text_spec = {PRESTO_STRING, 0, {0}};

presto_status presto__infer_text(const void *state, const presto_tensor_spec *in,
                                 presto_tensor_spec *out_out, presto_error *err) {
    (void)state;
    PRESTO_TRY(presto__spec_expect(in, &presto__text_spec, err));
    *out_out = presto__text_spec;
    return PRESTO_OK;
}

bool presto__spec_could_fit(const presto_tensor_spec *in, const presto_tensor_spec *want) {
    if (in->dtype != PRESTO_DTYPE_UNKNOWN && want->dtype != PRESTO_DTYPE_UNKNOWN &&
        in->dtype != want->dtype)
        return false;
    if (in->rank < 0 || want->rank < 0)
        return true;
    if (in->rank != want->rank)
        return false;
    for (int i = 0; i < in->rank; i++)
        if (in->dims[i] != -1 && want->dims[i] != -1 && in->dims[i] != want->dims[i])
            return false;
    return true;
}

presto_status presto__spec_expect(const presto_tensor_spec *in, const presto_tensor_spec *want,
                                  presto_error *err) {
    if (presto__spec_could_fit(in, want))
        return PRESTO_OK;
    char need[PRESTO_SPEC_TEXT_BYTES];
    char got[PRESTO_SPEC_TEXT_BYTES];
    return presto_fail(err, PRESTO_ERR_TYPE, PRESTO_NO_OFFSET, "needs %s, gets %s",
                       presto_spec_format(want, need, sizeof need),
                       presto_spec_format(in, got, sizeof got));
}

presto_status presto__image_expect(const presto_tensor_spec *in, presto_error *err) {
    static const presto_tensor_spec bytes = {PRESTO_UINT8, 3, {-1, -1, -1}};
    static const presto_tensor_spec floats = {PRESTO_FLOAT32, 3, {-1, -1, -1}};
    if (presto__spec_could_fit(in, &bytes) || presto__spec_could_fit(in, &floats))
        return PRESTO_OK;
    char got[PRESTO_SPEC_TEXT_BYTES];
    return presto_fail(err, PRESTO_ERR_TYPE, PRESTO_NO_OFFSET,
                       "needs uint8[?,?,?] or float32[?,?,?], gets %s",
                       presto_spec_format(in, got, sizeof got));
}

presto_status presto__pixels_expect(const presto_tensor_spec *in, presto_tensor_spec *spec_out,
                                    presto_error *err) {
    char text[PRESTO_SPEC_TEXT_BYTES];
    if (in->dtype == PRESTO_STRING || (in->rank >= 0 && in->rank != 3))
        return presto_fail(err, PRESTO_ERR_TYPE, PRESTO_NO_OFFSET,
                           "needs an image of shape [?,?,?], gets %s",
                           presto_spec_format(in, text, sizeof text));
    *spec_out = in->rank == 3 ? *in : (presto_tensor_spec){in->dtype, 3, {-1, -1, -1}};
    return PRESTO_OK;
}

bool presto__spec_complete(const presto_tensor_spec *spec) {
    if (spec->dtype == PRESTO_DTYPE_UNKNOWN || spec->rank < 0)
        return false;
    for (int i = 0; i < spec->rank; i++)
        if (spec->dims[i] < 0)
            return false;
    return true;
}

presto_status presto__option_copy(const presto_option *option, char **text_out, presto_error *err) {
    if (!option->is_set)
        return PRESTO_OK;
    *text_out = presto_span_to_text(presto_span_of_text(option->text));
    return *text_out != NULL ? PRESTO_OK : presto_fail_memory(err, strlen(option->text) + 1);
}

void presto__error_prefix(presto_error *err, const char *prefix) {
    if (err == NULL)
        return;
    size_t room = sizeof err->message - 1;
    size_t used = strlen(prefix);
    if (used > room - 2)
        used = room - 2;
    size_t kept = strlen(err->message);
    if (kept > room - used - 2)
        kept = room - used - 2;
    memmove(err->message + used + 2, err->message, kept);
    memcpy(err->message, prefix, used);
    memcpy(err->message + used, ": ", 2);
    err->message[used + 2 + kept] = '\0';
}

void presto__error_append(presto_error *err, const char *more) {
    if (err == NULL)
        return;
    size_t used = strlen(err->message);
    size_t bytes = strlen(more), room = sizeof err->message - 1 - used;
    bytes = bytes < room ? bytes : room;
    memcpy(err->message + used, more, bytes);
    err->message[used + bytes] = '\0';
}

size_t presto__pixel_bytes(const presto_tensor_spec *spec) {
    size_t bytes = presto_dtype_bytes(spec->dtype);
    for (int i = 2; i < spec->rank; i++)
        bytes *= (size_t)spec->dims[i];
    return bytes;
}

presto_part presto__part_of_whole(const presto_tensor *image) {
    return (presto_part){.tensor = *image,
                         .whole = image->spec,
                         .window = {0, 0, image->spec.dims[0], image->spec.dims[1]}};
}

presto_tensor_spec presto__window_spec(const presto_tensor_spec *whole,
                                       const presto_window *window) {
    presto_tensor_spec spec = *whole;
    spec.dims[0] = window->height;
    spec.dims[1] = window->width;
    return spec;
}

void presto__window_copy(const presto_part *in, const presto_window *wanted, void *out) {
    size_t pixel_bytes = presto__pixel_bytes(&in->whole);
    size_t in_row = (size_t)in->window.width * pixel_bytes;
    size_t out_row = (size_t)wanted->width * pixel_bytes;
    const uint8_t *from = (const uint8_t *)in->tensor.data +
                          (size_t)(wanted->y - in->window.y) * in_row +
                          (size_t)(wanted->x - in->window.x) * pixel_bytes;
    uint8_t *to = out;
    if (in_row == out_row) {
        if (out_row > 0)
            memcpy(to, from, out_row * (size_t)wanted->height);
        return;
    }
    for (int64_t y = 0; y < wanted->height; y++) {
        memcpy(to, from, out_row);
        from += in_row;
        to += out_row;
    }
}

bool presto__use_vectors(void) {
    const char *portable = getenv("PRESTO_PORTABLE");
    return portable == NULL || portable[0] == '\0' || strcmp(portable, "0") == 0 ||
           strcmp(portable, "avx2") == 0;
}

bool presto__use_avx2(void) {
#if defined(__x86_64__)
    return presto__use_vectors() && __builtin_cpu_supports("avx2") != 0;
#else
    return false;
#endif
}
