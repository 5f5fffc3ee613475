/* SPDX-License-Identifier: Apache-2.0 */
/* What pipeline.c makes and plan.c reads. */
#ifndef PRESTO_STEPS_PIPELINE_INTERNAL_H
#define PRESTO_STEPS_PIPELINE_INTERNAL_H

#include "steps_internal.h"

#define PRESTO__PIPELINE_MAX_STEPS 1000

/* One step of a pipeline. */
typedef struct presto__pipeline_step {
    const presto_step_type *type;
    const char *yields; /* NULL if it names no representation */
    const presto_option *options;
    void *state; /* of create(); NULL as well where the build lacks the step */
    size_t line;
} presto__pipeline_step;

struct presto_pipeline {
    presto_arena arena; /* all texts, options and arrays */
    const char *file;
    const char *name;
    char *json;
    const presto_source_type *source;
    const presto_option *source_options;
    presto__pipeline_step *steps;
    size_t step_count;
    size_t *representations; /* number r > 0 is yielded by step representations[r] */
    size_t representation_count;
};

/** One JSON object on one line; malloc'ed. NULL: no memory. */
char *presto__pipeline_to_json(const presto_pipeline *pipeline);
/** The steps [first, last) as a JSON array, without the names of representations; malloc'ed. NULL:
 * no memory. */
char *presto__steps_to_json(const presto_pipeline *pipeline, size_t first, size_t last);

#endif
