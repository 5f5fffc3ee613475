/* SPDX-License-Identifier: Apache-2.0 */
/* A plugin whose step has the name of a built-in one. */
#include <presto/step.h>

static presto_status infer(const void *state, const presto_tensor_spec *in,
                           presto_tensor_spec *out_out, presto_error *err) {
    (void)state, (void)err;
    *out_out = *in;
    return PRESTO_OK;
}

static presto_status run(const void *state, presto_step_context *context, const presto_tensor *in,
                         presto_tensor *out_out, presto_error *err) {
    (void)state, (void)context, (void)err;
    *out_out = *in;
    return PRESTO_OK;
}

static const presto_step_type crop = {.abi = PRESTO_STEP_ABI,
                                      .name = "random-crop",
                                      .summary = "Another crop.",
                                      .infer = infer,
                                      .run = run};
static const presto_step_type *const steps[] = {&crop};
PRESTO_PLUGIN(steps);
