/* SPDX-License-Identifier: Apache-2.0 */
/* The reference of sources and steps, in Markdown, from the tables that parse the options. */
#include <stdio.h>

#include "../pipelines_internal.h"
#include "pipeline_internal.h"

static presto_status put(presto_buffer *out, presto_error *err, const char *text) {
    return presto_buffer_append(out, presto_span_of_text(text), err);
}

static presto_status put_kind(presto_buffer *out, const presto_option_type *option,
                              presto_error *err) {
    char bounds[PRESTO__BOUNDS_BYTES];
    if (option->kind != PRESTO_OPTION_CHOICE)
        PRESTO_TRY(put(out, err, presto__option_kind_text(option->kind)));
    for (size_t i = 0; option->kind == PRESTO_OPTION_CHOICE && option->choices[i] != NULL; i++) {
        PRESTO_TRY(put(out, err, i == 0 ? "`" : " or `"));
        PRESTO_TRY(put(out, err, option->choices[i]));
        PRESTO_TRY(put(out, err, "`"));
    }
    bool is_bounded = option->minimum != 0 || option->maximum != 0;
    if (is_bounded && option->kind != PRESTO_OPTION_SIZE) {
        PRESTO_TRY(put(out, err, " "));
        PRESTO_TRY(put(out, err, presto__option_bounds(option, bounds)));
    }
    if (option->unit != NULL) {
        PRESTO_TRY(put(out, err, ", in "));
        PRESTO_TRY(put(out, err, option->unit));
    }
    return PRESTO_OK;
}

static presto_status put_option(presto_buffer *out, const presto_option_type *option,
                                presto_error *err) {
    PRESTO_TRY(put(out, err, "- `"));
    PRESTO_TRY(put(out, err, option->name));
    PRESTO_TRY(put(out, err, "`: "));
    PRESTO_TRY(put_kind(out, option, err));
    if (option->required)
        PRESTO_TRY(put(out, err, " (required)"));
    if (option->default_text != NULL) {
        PRESTO_TRY(put(out, err, " (default `"));
        PRESTO_TRY(put(out, err, option->default_text));
        PRESTO_TRY(put(out, err, "`)"));
    }
    PRESTO_TRY(put(out, err, ".\n  "));
    PRESTO_TRY(put(out, err, option->help));
    return put(out, err, "\n");
}

static presto_status put_options(presto_buffer *out, const presto_option_type *options,
                                 size_t count, presto_error *err) {
    if (count > 0)
        PRESTO_TRY(put(out, err, "\n"));
    for (size_t i = 0; i < count; i++)
        PRESTO_TRY(put_option(out, &options[i], err));
    return PRESTO_OK;
}

static presto_status put_heading(presto_buffer *out, const char *name, const char *summary,
                                 presto_error *err) {
    PRESTO_TRY(put(out, err, "\n### "));
    PRESTO_TRY(put(out, err, name));
    PRESTO_TRY(put(out, err, "\n\n"));
    PRESTO_TRY(put(out, err, summary));
    return put(out, err, "\n");
}

static presto_status put_step(presto_buffer *out, const presto_step_type *step, presto_error *err) {
    PRESTO_TRY(put_heading(out, step->name, step->summary, err));
    if ((step->flags & PRESTO_STEP_RANDOM) != 0)
        PRESTO_TRY(put(out, err, "\nRandom: runs online only, its output is never stored.\n"));
    if ((step->flags & PRESTO_STEP_DROPS) != 0)
        PRESTO_TRY(put(out, err, "\nMay leave samples out; they are counted.\n"));
    if ((step->flags & PRESTO_STEP_REGROUPS) != 0)
        PRESTO_TRY(
            put(out, err,
                "\nMakes other samples of these: only presto-write runs it, as the last step "
                "that it stores.\n"));
    if ((step->flags & PRESTO_STEP_SERIAL) != 0)
        PRESTO_TRY(put(out, err, "\nSerial: one thread at a time runs it.\n"));
    if (step->unsupported != NULL) {
        PRESTO_TRY(put(out, err, "\nNot in this build: "));
        PRESTO_TRY(put(out, err, step->unsupported));
        PRESTO_TRY(put(out, err, ".\n"));
    }
    bool moves = (step->flags & PRESTO_STEP_MOVES) != 0;
    PRESTO_TRY(put_options(out, step->options,
                           step->option_count - (moves ? PRESTO__FOLLOW_COUNT : 0), err));
    if (!moves)
        return PRESTO_OK;
    return put(out, err,
               "\nAlso takes `also`, `boxes`, `keypoints` and the options that go with them: see "
               "Masks, boxes and\nkeypoints, below.\n");
}

static presto_status put_follow(presto_buffer *out, presto_error *err) {
    static const presto_option_type options[] = {PRESTO__FOLLOW_OPTIONS};
    PRESTO_TRY(put(out, err,
                   "\n## Masks, boxes and keypoints\n\n"
                   "Other features can move as the image of a step does, with the same draw. These "
                   "are options of\n"));
    const char *before = "";
    for (size_t i = 0; presto__step_at(i) != NULL; i++) {
        if ((presto__step_at(i)->flags & PRESTO_STEP_MOVES) == 0)
            continue;
        PRESTO_TRY(put(out, err, before));
        PRESTO_TRY(put(out, err, presto__step_at(i)->name));
        before = ", ";
    }
    PRESTO_TRY(put(out, err, ".\n"));
    return put_options(out, options, PRESTO__FOLLOW_COUNT, err);
}

presto_status presto_steps_help(presto_buffer *text_out, presto_error *err) {
    PRESTO_TRY(put(text_out, err,
                   "# Sources and steps\n\n"
                   "What a pipeline file may name; how such a file is written stands in "
                   "pipelines.md.\n\n## Sources\n"));
    for (size_t i = 0; presto__source_type_at(i) != NULL; i++) {
        const presto_source_type *type = presto__source_type_at(i);
        PRESTO_TRY(put_heading(text_out, type->name, type->summary, err));
        if (type->yields != NULL) {
            PRESTO_TRY(put(text_out, err,
                           "\nIts samples are values that can be stored as the "
                           "representation `"));
            PRESTO_TRY(put(text_out, err, type->yields));
            PRESTO_TRY(put(text_out, err, "`; `yields: NAME` gives it another name.\n"));
        }
        PRESTO_TRY(put_options(text_out, type->options, type->option_count, err));
    }
    PRESTO_TRY(put(text_out, err,
                   "\n## Steps\n\n"
                   "Every step also takes `yields: NAME`, which names the representation that it "
                   "gives,\nand `reads: NAME` and `writes: NAME`, the features that it works on: "
                   "without them the\nmain one.\n"));
    for (size_t i = 0; presto__step_at(i) != NULL; i++)
        PRESTO_TRY(put_step(text_out, presto__step_at(i), err));
    return put_follow(text_out, err);
}
