/* SPDX-License-Identifier: Apache-2.0 */
/* A plugin whose step never comes back with a sample of the size that `stuck` names, and does not ask whether it is cancelled. */
#include <presto/step.h>

#include <unistd.h>

static const presto_option_type options[] = {
    {.name = "stuck",
     .kind = PRESTO_OPTION_INT,
     .default_text = "0",
     .maximum = 1e9,
     .help = "bytes"},
};

static presto_status create(const presto_option *values, void **state_out, presto_error *err) {
    (void)err;
    *state_out = (void *)(uintptr_t)values[0].integer;
    return PRESTO_OK;
}

static presto_status infer(const void *state, const presto_tensor_spec *in,
                           presto_tensor_spec *out_out, presto_error *err) {
    (void)state, (void)err;
    *out_out = *in;
    return PRESTO_OK;
}

static presto_status run(const void *state, presto_step_context *context, const presto_tensor *in,
                         presto_tensor *out_out, presto_error *err) {
    (void)context, (void)err;
    while (in->strings->bytes == (uintptr_t)state)
        (void)pause();
    *out_out = *in;
    return PRESTO_OK;
}

static const presto_step_type stuck = {.abi = PRESTO_STEP_ABI,
                                       .name = "stuck",
                                       .summary = "Passes texts on, but for one.",
                                       .options = options,
                                       .option_count = 1,
                                       .create = create,
                                       .infer = infer,
                                       .run = run};

static const presto_step_type *const steps[] = {&stuck};
PRESTO_PLUGIN(steps);
