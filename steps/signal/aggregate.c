/* SPDX-License-Identifier: Apache-2.0 */
/*
 * aggregate: what appliances show in a house's mains, period by period: active power, the mean of
 * voltage times current; the RMS of the current; and the cumulative sum of that RMS minus its mean
 * over the window, which jumps where an appliance is switched. As NumPy computes it, to the bit.
 */
#include <math.h>
#include <stdlib.h>

#include "sums_internal.h"

enum { PERIOD, OPTION_COUNT };

static const presto_option_type options[OPTION_COUNT] = {
    [PERIOD] = {.name = "period",
                .kind = PRESTO_OPTION_INT,
                .default_text = "128",
                .minimum = 1,
                .maximum = 1073741824,
                .unit = "values",
                .help = "length of a period of the mains; the signal must be a whole number of "
                        "them"},
};

typedef struct aggregate_state {
    int64_t period;
} aggregate_state;

/* ---- the sums ---- */

/* Half of the lanes: what AVX2 adds at once; and the same at any address. */
typedef double half_lanes __attribute__((vector_size(32)));
typedef double loose_lanes __attribute__((vector_size(32), aligned(1), may_alias));

/* first: the sum of a * b; second: of b * b. */
static inline __attribute__((always_inline)) presto__sums power_body(const uint8_t *a,
                                                                     const uint8_t *b,
                                                                     size_t count) {
    size_t i = 0;
    presto__sums sums = {0, 0};
    if (count >= PRESTO__SUMS_LANES) {
        half_lanes powers[2] = {{0}}, squares[2] = {{0}};
        for (; i + PRESTO__SUMS_LANES <= count; i += PRESTO__SUMS_LANES) {
            const loose_lanes *volts = (const void *)(a + i * sizeof(double));
            const loose_lanes *amperes = (const void *)(b + i * sizeof(double));
            half_lanes low = amperes[0], high = amperes[1];
            powers[0] += volts[0] * low;
            powers[1] += volts[1] * high;
            squares[0] += low * low;
            squares[1] += high * high;
        }
        double lanes[PRESTO__SUMS_LANES];
        memcpy(lanes, powers, sizeof lanes);
        sums.first = presto__sums_join(lanes);
        memcpy(lanes, squares, sizeof lanes);
        sums.second = presto__sums_join(lanes);
    }
    for (; i < count; i++) {
        double volts, amperes;
        memcpy(&volts, a + i * sizeof volts, sizeof volts);
        memcpy(&amperes, b + i * sizeof amperes, sizeof amperes);
        sums.first += volts * amperes;
        sums.second += amperes * amperes;
    }
    return sums;
}

/* second: the sum of b. */
static presto__sums plain_sum(const uint8_t *a, const uint8_t *b, size_t count) {
    (void)a;
    size_t i = 0;
    presto__sums sums = {0, 0};
    double value, lanes[PRESTO__SUMS_LANES] = {0};
    for (; i + PRESTO__SUMS_LANES <= count; i += PRESTO__SUMS_LANES)
        for (size_t k = 0; k < PRESTO__SUMS_LANES; k++) {
            memcpy(&value, b + (i + k) * sizeof value, sizeof value);
            lanes[k] += value;
        }
    sums.second = presto__sums_join(lanes);
    for (; i < count; i++) {
        memcpy(&value, b + i * sizeof value, sizeof value);
        sums.second += value;
    }
    return sums;
}

static presto__sums power_portable(const uint8_t *a, const uint8_t *b, size_t count) {
    return power_body(a, b, count);
}

#if defined(__x86_64__)
__attribute__((target("avx2"))) static presto__sums power_avx2(const uint8_t *a, const uint8_t *b,
                                                               size_t count) {
    return power_body(a, b, count);
}
#define POWER_FASTEST power_avx2
#else
#define POWER_FASTEST power_portable
#endif

static const presto__sums_fn portable = power_portable, fastest = POWER_FASTEST;

static presto_status open_worker(const void *state, const void *model, void **worker_out,
                                 presto_error *err) {
    (void)state, (void)model, (void)err;
    const presto__sums_fn *chosen = presto__use_avx2() ? &fastest : &portable;
    *worker_out = (void *)(uintptr_t)chosen;
    return PRESTO_OK;
}

/* ---- the step ---- */

static presto_status create(const presto_option *values, void **state_out, presto_error *err) {
    aggregate_state *state = malloc(sizeof *state);
    if (state == NULL)
        return presto_fail_memory(err, sizeof *state);
    state->period = values[PERIOD].integer;
    *state_out = state;
    return PRESTO_OK;
}

static presto_status infer(const void *opaque, const presto_tensor_spec *in,
                           presto_tensor_spec *out_out, presto_error *err) {
    static const presto_tensor_spec wanted = {PRESTO_FLOAT64, 2, {2, -1}};
    const aggregate_state *state = opaque;
    PRESTO_TRY(presto__spec_expect(in, &wanted, err));
    int64_t values = in->rank == 2 ? in->dims[1] : -1;
    if (values != -1)
        PRESTO_TRY(presto__periods_expect(in, values, state->period, err));
    *out_out =
        (presto_tensor_spec){PRESTO_FLOAT64, 2, {3, values == -1 ? -1 : values / state->period}};
    return PRESTO_OK;
}

static presto_status run(const void *opaque, presto_step_context *context, const presto_tensor *in,
                         presto_tensor *out_out, presto_error *err) {
    const aggregate_state *state = opaque;
    presto_tensor_spec spec;
    void *data;
    PRESTO_TRY(infer(state, &in->spec, &spec, err));
    PRESTO_TRY(presto_step_output(context, &spec, &data, err));
    presto__sums_fn power = *(const presto__sums_fn *)presto_step_worker(context);
    size_t periods = (size_t)spec.dims[1];
    size_t period = (size_t)state->period;
    size_t period_bytes = period * sizeof(double);
    const uint8_t *volts = in->data;
    const uint8_t *amperes = volts + periods * period_bytes;
    double *powers = data, *rms = powers + periods, *jumps = rms + periods;
    for (size_t p = 0; p < periods; p++) {
        presto__sums sums = presto__sums_of(power, volts + p * period_bytes,
                                            amperes + p * period_bytes, sizeof(double), period);
        powers[p] = sums.first / (double)period;
        rms[p] = sqrt(sums.second / (double)period);
    }
    const uint8_t *all = (const uint8_t *)rms;
    double mean =
        presto__sums_of(plain_sum, all, all, sizeof(double), periods).second / (double)periods;
    double sum = 0;
    for (size_t p = 0; p < periods; p++)
        jumps[p] = sum += rms[p] - mean;
    out_out->spec = spec;
    out_out->data = data;
    return PRESTO_OK;
}

const presto_step_type presto__step_aggregate = {
    .abi = PRESTO_STEP_ABI,
    .name = "aggregate",
    .summary = "Voltage and current, float64[2, n], to float64[3, n / period]: for each period the "
               "mean of voltage times current (active power), the RMS of the current, and the "
               "cumulative sum of that RMS minus its mean.",
    .options = options,
    .option_count = OPTION_COUNT,
    .create = create,
    .destroy = free,
    .infer = infer,
    .open_worker = open_worker,
    .run = run,
};
