/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rms: the root of the mean square of each period, as NumPy computes it in float64, rounded to
 * float32.
 */
#include <math.h>
#include <stdlib.h>

#include "sums_internal.h"

enum { PERIOD, OPTION_COUNT };

static const presto_option_type options[OPTION_COUNT] = {
    [PERIOD] = {.name = "period",
                .kind = PRESTO_OPTION_INT,
                .default_text = "500",
                .minimum = 1,
                .maximum = 1073741824,
                .unit = "values",
                .help = "length of a period; the signal must be a whole number of them"},
};

typedef struct rms_state {
    int64_t period;
} rms_state;

/* ---- the sums ---- */

/* So many squares of bytes fit 31 bits. */
#define MOST_BYTES 32768

/* The sum of the squares of at most MOST_BYTES bytes. */
typedef int32_t bytes_fn(const uint8_t *in, size_t count);

static inline __attribute__((always_inline)) int32_t bytes_body(const uint8_t *in, size_t count) {
    int32_t sum = 0;
    for (size_t i = 0; i < count; i++) {
        int16_t value = in[i]; /* 16 bits and a sign: what processors multiply and add in one */
        sum += (int32_t)value * value;
    }
    return sum;
}

/* Half of the lanes: what AVX2 adds at once; and the floats for them, at any address. */
typedef double half_lanes __attribute__((vector_size(32)));
typedef float loose_floats __attribute__((vector_size(16), aligned(1), may_alias));

/* presto__sums_join for lanes in registers. */
static inline __attribute__((always_inline)) double join(const half_lanes lanes[2]) {
    half_lanes low = lanes[0], high = lanes[1];
    half_lanes pairs = __builtin_shufflevector(low, high, 0, 4, 2, 6) +
                       __builtin_shufflevector(low, high, 1, 5, 3, 7);
    return (pairs[0] + pairs[2]) + (pairs[1] + pairs[3]);
}

/* The sum of the squares of at most PRESTO__SUMS_MOST floats. */
static inline __attribute__((always_inline)) double floats_body(const uint8_t *in, size_t count) {
    size_t i = 0;
    double sum = 0;
    if (count >= PRESTO__SUMS_LANES) {
        half_lanes squares[2] = {{0}};
        for (; i + PRESTO__SUMS_LANES <= count; i += PRESTO__SUMS_LANES) {
            const loose_floats *values = (const void *)(in + i * sizeof(float));
            half_lanes low = __builtin_convertvector(values[0], half_lanes);
            half_lanes high = __builtin_convertvector(values[1], half_lanes);
            squares[0] += low * low;
            squares[1] += high * high;
        }
        sum = join(squares);
    }
    for (; i < count; i++) {
        float value;
        memcpy(&value, in + i * sizeof value, sizeof value);
        sum += (double)value * (double)value;
    }
    return sum;
}

/* The sum of the squares of any number of floats, in the order of presto__sums_of. */
typedef double floats_fn(const uint8_t *in, size_t count);

typedef struct rms_kernels {
    bytes_fn *bytes;
    floats_fn *floats;
} rms_kernels;

#define KERNELS(name, target)                                                                      \
    target static int32_t name##_bytes(const uint8_t *in, size_t count) {                          \
        return bytes_body(in, count);                                                              \
    }                                                                                              \
    target static double name##_floats(const uint8_t *in, size_t count) {                          \
        if (count <= PRESTO__SUMS_MOST)                                                            \
            return floats_body(in, count);                                                         \
        size_t half = presto__sums_half(count);                                                    \
        return name##_floats(in, half) + name##_floats(in + half * sizeof(float), count - half);   \
    }                                                                                              \
    static const rms_kernels name = {name##_bytes, name##_floats}

KERNELS(portable, );
#if defined(__x86_64__)
KERNELS(avx2, __attribute__((target("avx2"))));
#define FASTEST avx2
#else
#define FASTEST portable
#endif

static presto_status open_worker(const void *state, const void *model, void **worker_out,
                                 presto_error *err) {
    (void)state, (void)model, (void)err;
    const rms_kernels *chosen = presto__use_avx2() ? &FASTEST : &portable;
    *worker_out = (void *)(uintptr_t)chosen;
    return PRESTO_OK;
}

/* A sum of whole numbers below 2^53 is exact in any order. */
static double sum_of_bytes(bytes_fn *sum, const uint8_t *in, size_t count) {
    double total = 0;
    for (; count > MOST_BYTES; count -= MOST_BYTES, in += MOST_BYTES)
        total += (double)sum(in, MOST_BYTES);
    return total + (double)sum(in, count);
}

/* ---- the step ---- */

static presto_status create(const presto_option *values, void **state_out, presto_error *err) {
    rms_state *state = malloc(sizeof *state);
    if (state == NULL)
        return presto_fail_memory(err, sizeof *state);
    state->period = values[PERIOD].integer;
    *state_out = state;
    return PRESTO_OK;
}

static presto_status infer(const void *opaque, const presto_tensor_spec *in,
                           presto_tensor_spec *out_out, presto_error *err) {
    static const presto_tensor_spec bytes = {PRESTO_UINT8, 1, {-1}};
    static const presto_tensor_spec floats = {PRESTO_FLOAT32, 1, {-1}};
    const rms_state *state = opaque;
    char text[PRESTO_SPEC_TEXT_BYTES];
    if (!presto__spec_could_fit(in, &bytes) && !presto__spec_could_fit(in, &floats))
        return presto_fail(err, PRESTO_ERR_TYPE, PRESTO_NO_OFFSET,
                           "needs uint8[?] or float32[?], gets %s",
                           presto_spec_format(in, text, sizeof text));
    int64_t values = in->rank == 1 ? in->dims[0] : -1;
    if (values != -1)
        PRESTO_TRY(presto__periods_expect(in, values, state->period, err));
    *out_out =
        (presto_tensor_spec){PRESTO_FLOAT32, 1, {values == -1 ? -1 : values / state->period}};
    return PRESTO_OK;
}

static presto_status run(const void *opaque, presto_step_context *context, const presto_tensor *in,
                         presto_tensor *out_out, presto_error *err) {
    const rms_state *state = opaque;
    const rms_kernels *kernels = presto_step_worker(context);
    presto_tensor_spec spec;
    void *data;
    PRESTO_TRY(infer(state, &in->spec, &spec, err));
    PRESTO_TRY(presto_step_output(context, &spec, &data, err));
    bool is_bytes = in->spec.dtype == PRESTO_UINT8;
    size_t value_bytes = presto_dtype_bytes(in->spec.dtype);
    size_t period = (size_t)state->period;
    size_t periods = (size_t)spec.dims[0];
    const uint8_t *at = in->data;
    float *rms = data;
    for (size_t p = 0; p < periods; p++, at += period * value_bytes) {
        double squares =
            is_bytes ? sum_of_bytes(kernels->bytes, at, period) : kernels->floats(at, period);
        rms[p] = (float)sqrt(squares / (double)period);
    }
    out_out->spec = spec;
    out_out->data = data;
    return PRESTO_OK;
}

const presto_step_type presto__step_rms = {
    .abi = PRESTO_STEP_ABI,
    .name = "rms",
    .summary = "A signal, uint8[n] or float32[n], to float32[n / period]: the root of the mean "
               "square of each period.",
    .options = options,
    .option_count = OPTION_COUNT,
    .create = create,
    .destroy = free,
    .infer = infer,
    .open_worker = open_worker,
    .run = run,
};
