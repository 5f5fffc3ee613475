/* SPDX-License-Identifier: Apache-2.0 */
/* Steps that compute each pixel from the same pixel of their input, uint8 or float32. */
#ifndef PRESTO_STEPS_PIXELWISE_INTERNAL_H
#define PRESTO_STEPS_PIXELWISE_INTERNAL_H

#include "../steps_internal.h"

/** `count` values or pixels, whichever the step counts in; `in` need not be aligned. What
 * `parameters` are is the step's. */
typedef void (*presto__pixelwise_fn)(const uint8_t *in, void *out, size_t count,
                                     const void *parameters);

typedef struct presto__pixelwise_kernels {
    presto__pixelwise_fn bytes, floats; /* by the dtype of the input */
} presto__pixelwise_kernels;

#define PRESTO__PIXELWISE_BODY static inline __attribute__((always_inline)) void

/* Functions PREFIX_bytes and PREFIX_floats, of the target given, out of the two bodies. */
#define PRESTO__PIXELWISE_PAIR(prefix, suffix, target)                                             \
    target static void prefix##_bytes##suffix(const uint8_t *in, void *out, size_t count,          \
                                              const void *parameters) {                            \
        prefix##_bytes_body(in, out, count, parameters);                                           \
    }                                                                                              \
    target static void prefix##_floats##suffix(const uint8_t *in, void *out, size_t count,         \
                                               const void *parameters) {                           \
        prefix##_floats_body(in, out, count, parameters);                                          \
    }                                                                                              \
    static const presto__pixelwise_kernels prefix##_kernels##suffix = {prefix##_bytes##suffix,     \
                                                                       prefix##_floats##suffix}

/*
 * The step's open_worker, and the kernels from which it chooses: the bodies PREFIX_bytes_body and
 * PREFIX_floats_body, compiled for the baseline and for AVX2. The compiler vectorizes both.
 */
#if defined(__x86_64__)
#define PRESTO__PIXELWISE_KERNELS(prefix)                                                          \
    PRESTO__PIXELWISE_PAIR(prefix, _portable, );                                                   \
    PRESTO__PIXELWISE_PAIR(prefix, _avx2, __attribute__((target("avx2"))));                        \
    static presto_status open_worker(const void *state, const void *model, void **worker_out,      \
                                     presto_error *err) {                                          \
        (void)state, (void)model, (void)err;                                                       \
        bool is_portable = !presto__use_avx2();                                                    \
        const presto__pixelwise_kernels *chosen =                                                  \
            is_portable ? &prefix##_kernels_portable : &prefix##_kernels_avx2;                     \
        *worker_out = (void *)(uintptr_t)chosen;                                                   \
        return PRESTO_OK;                                                                          \
    }                                                                                              \
    struct presto__swallow_semicolon
#else
#define PRESTO__PIXELWISE_KERNELS(prefix)                                                          \
    PRESTO__PIXELWISE_PAIR(prefix, _portable, );                                                   \
    static presto_status open_worker(const void *state, const void *model, void **worker_out,      \
                                     presto_error *err) {                                          \
        (void)state, (void)model, (void)err;                                                       \
        *worker_out = (void *)(uintptr_t)&prefix##_kernels_portable;                               \
        return PRESTO_OK;                                                                          \
    }                                                                                              \
    struct presto__swallow_semicolon
#endif

static inline presto__pixelwise_fn presto__pixelwise_kernel(presto_step_context *context,
                                                            presto_dtype dtype) {
    const presto__pixelwise_kernels *chosen = presto_step_worker(context);
    return dtype == PRESTO_UINT8 ? chosen->bytes : chosen->floats;
}

/** What is done with a row: `count` values or pixels become `out_bytes` bytes. */
typedef struct presto__pixelwise_row {
    presto__pixelwise_fn kernel;
    size_t count, out_bytes;
    const void *parameters;
} presto__pixelwise_row;

/** Do so with the rows of the window `wanted` of the part `in`, which contains it. */
static inline void presto__pixelwise_rows(const presto_part *in, const presto_window *wanted,
                                          const presto__pixelwise_row *row, void *out) {
    size_t pixel_bytes = presto__pixel_bytes(&in->whole);
    size_t in_row = (size_t)in->window.width * pixel_bytes;
    const uint8_t *from = (const uint8_t *)in->tensor.data +
                          (size_t)(wanted->y - in->window.y) * in_row +
                          (size_t)(wanted->x - in->window.x) * pixel_bytes;
    uint8_t *to = out;
    for (int64_t y = 0; y < wanted->height; y++) {
        row->kernel(from, to, row->count, row->parameters);
        from += in_row;
        to += row->out_bytes;
    }
}

#endif
