/* SPDX-License-Identifier: Apache-2.0 */
/* The plan as text for --explain: one line per step, with its output's spec and the effect of
 * fusion. */
#include <stdio.h>
#include <string.h>

#include <presto/numbers.h>
#include <presto/text.h>

#include "plan_internal.h"

static presto_status append_text(presto_buffer *out, const char *text, presto_error *err) {
    return presto_buffer_append(out, presto_span_of_text(text), err);
}

static presto_status append_named(presto_buffer *out, const char *what, const char *name,
                                  presto_error *err) {
    if (name == NULL)
        return PRESTO_OK;
    PRESTO_TRY(append_text(out, what, err));
    for (presto_span rest = presto_span_of_text(name); rest.bytes > 0;) {
        char shown[PRESTO_SHOWN_BYTES];
        size_t bytes = presto_text_next(&rest, shown);
        PRESTO_TRY(presto_buffer_append(out, presto_span_of(shown, bytes), err));
    }
    return PRESTO_OK;
}

/* "float32[224,224,3] (602 kB)"; of a shape that varies, the bytes are not known before the
 * data. */
static presto_status append_spec(presto_buffer *out, const presto_tensor_spec *spec,
                                 presto_error *err) {
    char shape[PRESTO_SPEC_TEXT_BYTES];
    char size[PRESTO_TEXT_BYTES];
    size_t bytes;
    PRESTO_TRY(append_text(out, presto_spec_format(spec, shape, sizeof shape), err));
    if (!presto__spec_complete(spec) || spec->dtype == PRESTO_STRING ||
        presto_spec_bytes(spec, &bytes, NULL) < 0)
        return PRESTO_OK;
    PRESTO_TRY(append_text(out, " (", err));
    PRESTO_TRY(append_text(out, presto_format_bytes((double)bytes, size), err));
    return append_text(out, ")", err);
}

/* Of the column of names: as wide as the longest, and at least as this. */
enum { LEAST_WIDTH = 16, MOST_WIDTH = 40 };

static int name_width(const presto_plan *plan) {
    size_t width = LEAST_WIDTH;
    for (size_t i = 0; i < plan->step_count; i++) {
        size_t bytes = strlen(presto__plan_step(plan, i)->type->name);
        width = bytes > width ? bytes : width;
    }
    return (int)(width < MOST_WIDTH ? width : MOST_WIDTH);
}

/* "rms              -> float32[2000] (8.00 kB), yields rms" */
presto_status presto__plan_describe_step(const presto_plan *plan, size_t i,
                                         const presto_tensor_spec *spec, presto_buffer *lines,
                                         presto_error *err) {
    const presto__pipeline_step *step = presto__plan_step(plan, i);
    unsigned flags = step->flags;
    char name[64];
    snprintf(name, sizeof name, "%-*s -> ", name_width(plan), step->type->name);
    PRESTO_TRY(append_text(lines, name, err));
    PRESTO_TRY(append_spec(lines, spec, err));
    if ((flags & PRESTO_STEP_RANDOM) != 0)
        PRESTO_TRY(append_text(lines, ", random", err));
    if ((flags & PRESTO_STEP_SERIAL) != 0)
        PRESTO_TRY(append_text(lines, ", one thread at a time", err));
    if ((flags & PRESTO_STEP_DROPS) != 0)
        PRESTO_TRY(append_text(lines, ", may leave samples out", err));
    if ((flags & PRESTO_STEP_RUNS_PROGRAM) != 0)
        PRESTO_TRY(append_text(lines, ", runs a program", err));
    if (presto__step_reduces(step))
        PRESTO_TRY(append_text(lines, ", large JPEGs reduced (24 to 43 dB PSNR)", err));
    PRESTO_TRY(append_named(lines, ", reads ", step->reads, err));
    PRESTO_TRY(append_named(lines, ", writes ", step->writes, err));
    return append_named(lines, ", yields ", step->yields, err);
}

/* When run_stage() in run.c runs the steps of a fused stage one by one. */
static const char fallback[] =
    "[fused steps run one by one on an image that is damaged or smaller than the crop; --stats "
    "counts such samples as unfused]\n";

/* Of a step that is in no stage: presto__plan_group() in windows.c. */
static const char left_out[] = " [not run: nothing stores what it gives]\n";

/* The lines of one stage, each with what fusion does to its step. */
static presto_status explain_stage(const presto_plan *plan, const presto__plan_stage *group,
                                   const presto_buffer *lines, const size_t *line_ends,
                                   presto_buffer *out) {
    size_t last = group->first + group->count - 1;
    for (size_t i = group->first; i <= last; i++) {
        size_t start = i == 0 ? 0 : line_ends[i - 1];
        presto_span line = presto_span_of(lines->data + start, line_ends[i] - start);
        PRESTO_TRY(presto_buffer_append(out, line, NULL));
        if (group->count > 1 && i == last) {
            PRESTO_TRY(append_text(out, " [fused: draws its window first]", NULL));
        } else if (group->count > 1) {
            const char *crop = presto__plan_step(plan, last)->type->name;
            PRESTO_TRY(append_text(out, " [fused: only what ", NULL));
            PRESTO_TRY(append_text(out, crop, NULL));
            PRESTO_TRY(append_text(out, " keeps]", NULL));
        }
        PRESTO_TRY(append_text(out, "\n", NULL));
    }
    return PRESTO_OK;
}

static presto_status explain(const presto_plan *plan, const presto_tensor_spec *in,
                             const presto_buffer *lines, const size_t *line_ends,
                             presto_buffer *out) {
    char input[64];
    snprintf(input, sizeof input, "%-*s    ", name_width(plan), "input");
    PRESTO_TRY(append_text(out, input, NULL));
    PRESTO_TRY(append_spec(out, in, NULL));
    if (plan->first_step == 0)
        PRESTO_TRY(append_named(out, ", yields ", plan->pipeline->source_yields, NULL));
    PRESTO_TRY(append_text(out, "\n", NULL));
    bool has_fused = false;
    size_t next = 0; /* step */
    for (size_t s = 0; s < plan->stage_count; s++) {
        for (; next < plan->stages[s].first; next++) {
            size_t start = next == 0 ? 0 : line_ends[next - 1];
            presto_span line = presto_span_of(lines->data + start, line_ends[next] - start);
            PRESTO_TRY(presto_buffer_append(out, line, NULL));
            PRESTO_TRY(append_text(out, left_out, NULL));
        }
        next = plan->stages[s].first + plan->stages[s].count;
        PRESTO_TRY(explain_stage(plan, &plan->stages[s], lines, line_ends, out));
        has_fused = has_fused || plan->stages[s].count > 1;
    }
    if (has_fused)
        PRESTO_TRY(append_text(out, fallback, NULL));
    return presto_buffer_append(out, presto_span_of("", 1), NULL);
}

presto_status presto__plan_explain(presto_plan *plan, const presto_tensor_spec *in,
                                   const presto_buffer *lines, const size_t *line_ends,
                                   presto_error *err) {
    presto_buffer text = {0};
    presto_status status = explain(plan, in, lines, line_ends, &text);
    if (status < 0) {
        size_t bytes = text.bytes;
        presto_buffer_done(&text);
        return presto_fail_memory(err, bytes);
    }
    plan->explain = (char *)text.data;
    return PRESTO_OK;
}
