/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `scale: auto` of decode-image: what later steps need of the image becomes its options least-side
 * and least-pixels. So the decoded image is a function of the step's own options: the same at every
 * split, in a dataset's definition, and in the key of a cache.
 */
#include <math.h>

#include "pipeline_internal.h"

#define MOST_PIXELS 1e10 /* of the option's bounds; no JPEG has as many */

static const presto_option *option_of(const presto__pipeline_step *step, const char *name) {
    for (size_t i = 0; i < step->type->option_count; i++)
        if (strcmp(step->type->options[i].name, name) == 0)
            return &step->options[i];
    return NULL;
}

static int64_t number_of(const presto__pipeline_step *step, const char *name) {
    const presto_option *option = option_of(step, name);
    return option != NULL && option->is_set ? option->integer : 0;
}

static int64_t larger(int64_t a, int64_t b) {
    return a > b ? a : b;
}

/* The shorter side must be as long as the one that comes out, or as the longer one of them. */
static presto__least needed_by_resize(const presto__pipeline_step *step) {
    int64_t side = number_of(step, "min-side");
    return (presto__least){
        .side = side > 0 ? side : larger(number_of(step, "height"), number_of(step, "width"))};
}

/* As many pixels that also the smallest window is no smaller than the output:
 * scale * pixels * ratio >= width^2, and scale * pixels / ratio >= height^2. */
static presto__least needed_by_crop(const presto__pipeline_step *step) {
    double size = (double)number_of(step, "size");
    double height = size > 0 ? size : (double)number_of(step, "height");
    double width = size > 0 ? size : (double)number_of(step, "width");
    double scale = option_of(step, "scale")->numbers[0];
    const double *ratio = option_of(step, "ratio")->numbers;
    double pixels = ceil(fmax(width * width / ratio[0], height * height * ratio[1]) / scale);
    return (presto__least){.pixels = (int64_t)fmin(pixels, MOST_PIXELS)};
}

/* Steps after which an image is as large as before, and no pixel has moved by a fixed distance. */
static bool keeps_size(const presto_step_type *type) {
    return type == &presto__step_center_pixels || type == &presto__step_greyscale ||
           type == &presto__step_normalize || type == &presto__step_cast ||
           type == &presto__step_color_jitter || type == &presto__step_horizontal_flip;
}

/* What the steps from `first` on need of an image; nothing is known: 0 and 0. */
static presto__least needed_from(const presto_pipeline *pipeline, size_t first) {
    for (size_t i = first; i < pipeline->step_count; i++) {
        const presto__pipeline_step *step = &pipeline->steps[i];
        if (step->reads != NULL || step->writes != NULL)
            break;
        if (step->type == &presto__step_resize_image)
            return needed_by_resize(step);
        if (step->type == &presto__step_random_resized_crop)
            return needed_by_crop(step);
        if (!keeps_size(step->type))
            break;
    }
    return (presto__least){0, 0};
}

static void raise_option(presto_option *option, int64_t least) {
    if (least == 0 || (option->is_set && option->integer >= least))
        return;
    option->is_set = true;
    option->integer = least;
}

/* Gives the step its options anew, with what is needed. */
static presto_status set_least(presto_pipeline *pipeline, presto__pipeline_step *step,
                               const presto__least *least, presto_error *err) {
    const presto_step_type *type = step->type;
    size_t bytes = type->option_count * sizeof *step->options;
    presto_option *options = presto_arena_alloc(&pipeline->arena, bytes, _Alignof(presto_option));
    if (options == NULL)
        return presto_fail_memory(err, bytes);
    memcpy(options, step->options, bytes);
    raise_option(&options[option_of(step, "least-side") - step->options], least->side);
    raise_option(&options[option_of(step, "least-pixels") - step->options], least->pixels);
    void *state = NULL;
    if (type->unsupported == NULL)
        PRESTO_TRY(type->create(options, &state, err));
    type->destroy(step->state);
    step->state = state;
    step->options = options;
    return PRESTO_OK;
}

bool presto__step_reduces(const presto__pipeline_step *step) {
    return step->type == &presto__step_decode_image &&
           (number_of(step, "least-side") > 0 || number_of(step, "least-pixels") > 0);
}

/* Masks, and coordinates in pixels, are those of the photo in full size. */
static const presto__pipeline_step *bound_to_size(const presto_pipeline *pipeline) {
    for (size_t i = 0; i < pipeline->step_count; i++) {
        const presto__follow *follow = pipeline->steps[i].follow;
        if (follow != NULL && (follow->also_count > 0 ||
                               (follow->boxes.given != NULL && !follow->boxes_are_normalized) ||
                               (follow->points.given != NULL && !follow->points_are_normalized)))
            return &pipeline->steps[i];
    }
    return NULL;
}

presto_status presto__pipeline_look_ahead(presto_pipeline *pipeline, presto_error *err) {
    for (size_t i = 0; i < pipeline->step_count; i++) {
        presto__pipeline_step *step = &pipeline->steps[i];
        if (step->type != &presto__step_decode_image || step->reads != NULL ||
            step->writes != NULL || strcmp(option_of(step, "scale")->text, "auto") != 0)
            continue;
        const presto__pipeline_step *bound = bound_to_size(pipeline);
        if (bound != NULL && presto__step_reduces(step))
            return presto_fail(err, PRESTO_ERR_SYNTAX, PRESTO_NO_OFFSET,
                               "line %zu: step decode-image: 'least-side' and 'least-pixels' make "
                               "photos smaller, but the masks, boxes or points of step %s (line "
                               "%zu) are those of the full size",
                               step->line, bound->type->name, bound->line);
        if (bound != NULL)
            continue; /* auto: in full */
        const presto__least least = needed_from(pipeline, i + 1);
        PRESTO_TRY(set_least(pipeline, step, &least, err));
    }
    return PRESTO_OK;
}
