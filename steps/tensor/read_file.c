/* SPDX-License-Identifier: Apache-2.0 */
/* read-file: the bytes of the file whose path is the input. The loader decides how files are
 * read. */
#include "../steps_internal.h"

static presto_status run(const void *state, presto_step_context *context, const presto_tensor *in,
                         presto_tensor *out_out, presto_error *err) {
    (void)state;
    PRESTO_TRY(presto__spec_expect(&in->spec, &presto__text_spec, err));
    presto_span *content = presto_step_scratch(context, sizeof *content);
    if (content == NULL)
        return presto_fail_memory(err, sizeof *content);
    PRESTO_TRY(presto_step_read_file(context, in->strings[0], content, err));
    out_out->spec = presto__text_spec;
    out_out->strings = content;
    return PRESTO_OK;
}

const presto_step_type presto__step_read_file = {
    .abi = PRESTO_STEP_ABI,
    .name = "read-file",
    .summary = "The bytes of the source file whose path comes in.",
    .flags = PRESTO_STEP_READS_FILE,
    .infer = presto__infer_text,
    .run = run,
};
