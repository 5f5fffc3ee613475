/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A plugin with one step: "invert" turns bright pixels dark. presto/step.h documents all that a
 * step can do.
 */
#include <presto/step.h>

static const presto_option_type options[] = {
    {.name = "white",
     .kind = PRESTO_OPTION_INT,
     .default_text = "255",
     .minimum = 1,
     .maximum = 255,
     .help = "the value that becomes 0; brighter ones, too"},
};

static presto_status create(const presto_option *values, void **state_out, presto_error *err) {
    (void)err;
    *state_out = (void *)(uintptr_t)values[0].integer;
    return PRESTO_OK;
}

static presto_status infer(const void *state, const presto_tensor_spec *in,
                           presto_tensor_spec *out_out, presto_error *err) {
    (void)state;
    if (in->dtype != PRESTO_UINT8 && in->dtype != PRESTO_DTYPE_UNKNOWN)
        return presto_fail(err, PRESTO_ERR_TYPE, PRESTO_NO_OFFSET, "needs uint8, gets %s",
                           presto_dtype_name(in->dtype));
    *out_out = *in;
    return PRESTO_OK;
}

static presto_status run(const void *state, presto_step_context *context, const presto_tensor *in,
                         presto_tensor *out_out, presto_error *err) {
    unsigned white = (unsigned)(uintptr_t)state;
    void *data;
    if (in->spec.dtype != PRESTO_UINT8)
        return presto_fail(err, PRESTO_ERR_TYPE, PRESTO_NO_OFFSET, "needs uint8, gets %s",
                           presto_dtype_name(in->spec.dtype));
    PRESTO_TRY(presto_step_output(context, &in->spec, &data, err));
    const uint8_t *from = (const uint8_t *)in->data;
    uint8_t *to = (uint8_t *)data;
    for (size_t i = 0; i < presto_tensor_bytes(in); i++)
        to[i] = from[i] < white ? (uint8_t)(white - from[i]) : 0;
    *out_out = (presto_tensor){.spec = in->spec, .data = data};
    return PRESTO_OK;
}

static const presto_step_type invert = {.abi = PRESTO_STEP_ABI,
                                        .name = "invert",
                                        .summary = "Bright pixels become dark, dark ones bright.",
                                        .options = options,
                                        .option_count = 1,
                                        .create = create,
                                        .infer = infer,
                                        .run = run};

static const presto_step_type *const steps[] = {&invert};
PRESTO_PLUGIN(steps);
