/* SPDX-License-Identifier: Apache-2.0 */
/* A pipeline without its first steps, for inputs that these have behind them already. */
#include "pipeline_internal.h"

/* What enters the step after the first `count`. Parsing has shown that these steps fit. */
static presto_tensor_spec infer_up_to(const presto_pipeline *pipeline, size_t count) {
    presto_tensor_spec spec = pipeline->source_output;
    for (size_t i = 0; i < count; i++) {
        const presto__pipeline_step *step = &pipeline->steps[i];
        if (step->reads != NULL || step->writes != NULL)
            continue;
        presto_tensor_spec out = presto__spec_unknown();
        if (step->type->unsupported == NULL)
            (void)step->type->infer(step->state, &spec, &out, NULL);
        spec = out;
    }
    return spec;
}

presto_status presto__pipeline_cut(presto_pipeline *pipeline, const char *from, presto_error *err) {
    size_t r = 0;
    PRESTO_TRY(presto_pipeline_representation_named(pipeline, from, false, &r, err));
    size_t first = presto_pipeline_representation_steps(pipeline, r);
    pipeline->source_output = infer_up_to(pipeline, first);
    for (size_t i = 0; i < first; i++)
        if (pipeline->steps[i].type->destroy != NULL)
            pipeline->steps[i].type->destroy(pipeline->steps[i].state);
    pipeline->steps_behind = presto__pipeline_position(pipeline, first);
    pipeline->step_count -= first;
    memmove(pipeline->steps, pipeline->steps + first,
            pipeline->step_count * sizeof *pipeline->steps);
    pipeline->representation_count -= r - 1;
    memmove(pipeline->representations, pipeline->representations + r - 1,
            (pipeline->representation_count - 1) * sizeof *pipeline->representations);
    for (size_t i = 0; i + 1 < pipeline->representation_count; i++)
        pipeline->representations[i].steps -= first;
    return PRESTO_OK;
}
