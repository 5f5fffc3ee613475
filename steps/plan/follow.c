/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What follows the image of a geometric step: masks, boxes and points among the other features of
 * the sample. They move after the stage of the step has run, by what the step has told
 * (presto__step_moved), so that they share its draw, fused or not.
 */
#include <ctype.h>
#include <stdio.h>
#include <strings.h>

#include "../pipelines_internal.h"
#include "plan_internal.h"

static bool stays(const presto__geometry *g) {
    const presto_window *w = &g->window;
    return !g->turn.is_transposed && !g->turn.flips_y && !g->turn.flips_x && w->y == 0 &&
           w->x == 0 && w->height == g->in_height && w->width == g->in_width &&
           g->height == g->in_height && g->width == g->in_width;
}

static presto_status name_feature(presto__plan_worker *worker, size_t i, const char *name,
                                  presto_status status, presto_error *err) {
    char prefix[96];
    snprintf(prefix, sizeof prefix, "feature \"%.64s\"", name);
    presto__error_prefix(err, prefix);
    return presto__plan_fail(worker, i, status, err);
}

/* Position of a feature that has a value; SIZE_MAX: the sample lacks it, and may. */
static presto_status find(presto__plan_worker *worker, size_t i, const char *name, size_t *at_out,
                          presto_error *err) {
    const presto__follow *follow = presto__plan_step(worker->plan, i)->follow;
    *at_out = presto__plan_find_feature(&worker->sample, name, 0);
    if (*at_out != SIZE_MAX && worker->sample.features[*at_out].encoding == PRESTO_ENCODE_NONE)
        *at_out = SIZE_MAX; /* a list without values: there are no boxes */
    else if (*at_out == SIZE_MAX && !follow->may_lack) {
        (void)presto_fail(err, PRESTO_ERR_TYPE, PRESTO_NO_OFFSET,
                          "the sample has no feature \"%.64s\", which is to move with the image; "
                          "say 'also-missing: keep' if some samples have none",
                          name);
        return presto__plan_fail(worker, i, PRESTO_ERR_TYPE, err);
    }
    return PRESTO_OK;
}

/* A list stays a list. */
static presto_status put(presto__plan_worker *worker, size_t at, const presto_tensor *value,
                         presto_error *err) {
    presto_encoding before = worker->sample.features[at].encoding;
    bool is_list = value->spec.rank <= 1 &&
                   ((before == PRESTO_ENCODE_FLOAT && value->spec.dtype == PRESTO_FLOAT32) ||
                    (before == PRESTO_ENCODE_INT64 && value->spec.dtype == PRESTO_INT64));
    PRESTO_TRY(presto__plan_put_feature(worker, at, NULL, value, err));
    if (is_list)
        worker->features[at].encoding = before;
    return PRESTO_OK;
}

/* Run the step itself on another image, with the draw that it had. */
static presto_status run_again(presto__plan_worker *worker, size_t i, const presto_tensor *in,
                               presto_tensor *out, presto_error *err) {
    const presto__pipeline_step *step = presto__plan_step(worker->plan, i);
    presto_step_context *context = &worker->contexts[i];
    const presto__geometry *g = &context->geometry;
    if (in->spec.rank < 2 || in->spec.dims[0] != g->in_height || in->spec.dims[1] != g->in_width)
        return presto_fail(err, PRESTO_ERR_TYPE, PRESTO_NO_OFFSET,
                           "has another size than the image (%jd x %jd, height x width)",
                           (intmax_t)g->in_height, (intmax_t)g->in_width);
    context->rng_ready = false;
    return step->type->run(step->state, context, in, out, err);
}

static presto_status move_pictures(presto__plan_worker *worker, size_t i,
                                   const presto__moving *moving, presto_error *err) {
    const presto__pipeline_step *step = presto__plan_step(worker->plan, i);
    const presto__geometry *g = moving->geometry;
    bool resizes = g->window.height != g->height || g->window.width != g->width;
    for (size_t k = 0; k < moving->follow->also_count; k++) {
        const presto__also *also = &moving->follow->also[k];
        size_t at;
        presto_tensor out;
        PRESTO_TRY(find(worker, i, also->name, &at, err));
        if (at == SIZE_MAX)
            continue;
        const presto_tensor in = worker->sample.features[at].tensor;
        presto_status status;
        if (step->type == &presto__step_decode_image)
            status = presto__decode_also(step->state, moving, &in, &out, err);
        else if (also->method == PRESTO__ALSO_BILINEAR && resizes)
            status = run_again(worker, i, &in, &out, err);
        else
            status = presto__move_picture(moving, also, &in, &out, err);
        if (status >= 0)
            status = put(worker, at, &out, err);
        if (status < 0)
            return name_feature(worker, i, also->name, status, err);
    }
    return PRESTO_OK;
}

/* Take the rows of boxes that are dropped out of the features that belong to them. */
static presto_status drop_rows(presto__plan_worker *worker, size_t i,
                               const presto__moved_boxes *boxes, presto_error *err) {
    const presto__pipeline_step *step = presto__plan_step(worker->plan, i);
    const presto__follow *follow = step->follow;
    for (size_t at = 0; at < worker->sample.feature_count; at++) {
        const presto_feature *feature = &worker->sample.features[at];
        bool belongs = false;
        for (size_t k = 0; k < follow->box_feature_count && !belongs; k++)
            belongs = presto__follow_matches(follow->box_features[k], feature->name);
        for (size_t k = 0; k < follow->boxes.name_count; k++)
            belongs = belongs && !presto_span_is(feature->name, follow->boxes.names[k]);
        if (!belongs || feature->encoding == PRESTO_ENCODE_NONE)
            continue;
        char name[65];
        snprintf(name, sizeof name, "%.*s", (int)feature->name.bytes,
                 (const char *)feature->name.data);
        const presto_tensor in = feature->tensor;
        presto_tensor out;
        presto_status status = presto__keep_rows(boxes, &worker->contexts[i], &in, &out, err);
        if (status >= 0)
            status = put(worker, at, &out, err);
        if (status < 0)
            return name_feature(worker, i, name, status, err);
    }
    return PRESTO_OK;
}

static presto_status move_boxes(presto__plan_worker *worker, size_t i, const presto__moving *moving,
                                presto_error *err) {
    const presto__coordinates *names = &moving->follow->boxes;
    presto__moved_boxes boxes = {.count = 0};
    size_t at[4] = {0};
    for (size_t k = 0; k < names->name_count; k++) {
        PRESTO_TRY(find(worker, i, names->names[k], &at[k], err));
        if (at[k] == SIZE_MAX)
            return PRESTO_OK;
        boxes.in[k] = worker->sample.features[at[k]].tensor;
    }
    presto_status status = presto__move_boxes(moving, &boxes, err);
    for (size_t k = 0; k < names->name_count && status >= 0; k++) {
        presto_tensor out = boxes.out[k];
        if (boxes.kept != NULL)
            status = presto__keep_rows(&boxes, moving->context, &boxes.out[k], &out, err);
        if (status >= 0)
            status = put(worker, at[k], &out, err);
    }
    if (status < 0)
        return name_feature(worker, i, names->given, status, err);
    return boxes.kept == NULL ? PRESTO_OK : drop_rows(worker, i, &boxes, err);
}

static presto_status move_points(presto__plan_worker *worker, size_t i,
                                 const presto__moving *moving, presto_error *err) {
    const presto__coordinates *names = &moving->follow->points;
    presto_tensor points[2];
    size_t at[2] = {0};
    for (size_t k = 0; k < names->name_count; k++) {
        PRESTO_TRY(find(worker, i, names->names[k], &at[k], err));
        if (at[k] == SIZE_MAX)
            return PRESTO_OK;
        points[k] = worker->sample.features[at[k]].tensor;
    }
    presto_status status = presto__move_points(moving, points, err);
    for (size_t k = 0; k < names->name_count && status >= 0; k++)
        status = put(worker, at[k], &points[k], err);
    return status < 0 ? name_feature(worker, i, names->given, status, err) : PRESTO_OK;
}

presto_status presto__plan_follow(presto__plan_worker *worker, size_t i, presto_error *err) {
    const presto__pipeline_step *step = presto__plan_step(worker->plan, i);
    presto_step_context *context = &worker->contexts[i];
    if (step->follow == NULL || !context->has_moved)
        return PRESTO_OK;
    const presto__geometry geometry = context->geometry; /* run_again() sets it anew */
    const presto__moving moving = {&geometry, step->follow, context};
    bool is_decoding = step->type == &presto__step_decode_image;
    if (!stays(&geometry) || is_decoding)
        PRESTO_TRY(move_pictures(worker, i, &moving, err));
    if (!stays(&geometry) && step->follow->boxes.given != NULL)
        PRESTO_TRY(move_boxes(worker, i, &moving, err));
    if (!stays(&geometry) && step->follow->points.given != NULL)
        PRESTO_TRY(move_points(worker, i, &moving, err));
    presto__timing_mark(worker, i);
    return PRESTO_OK;
}

/* ---- before there is any sample ---- */

static bool is_named(const presto__coordinates *coordinates, const char *name) {
    for (size_t k = 0; k < coordinates->name_count; k++)
        if (strcmp(coordinates->names[k], name) == 0)
            return true;
    return false;
}

static bool is_also(const presto__follow *follow, const char *name) {
    for (size_t k = 0; k < follow->also_count; k++)
        if (strcmp(follow->also[k].name, name) == 0)
            return true;
    return false;
}

/* What step i makes of a picture of spec *io beside its image. */
static void move_spec(const presto_plan *plan, size_t i, presto_tensor_spec *io) {
    const presto__pipeline_step *step = presto__plan_step(plan, i);
    const presto_tensor_spec *before = &plan->inputs[i], *image = &plan->outputs[i];
    if (step->type == &presto__step_decode_image) {
        int64_t channels = step->follow->also_channels;
        *io = (presto_tensor_spec){PRESTO_UINT8, 3, {-1, -1, channels == 0 ? -1 : channels}};
        if (channels == 1 && step->follow->also_wide)
            io->dtype = PRESTO_UINT16;
        return;
    }
    bool has_size = image->rank >= 2;
    int first = io->rank == 4 ? 1 : 0;
    if (io->rank < 2)
        return;
    if (io->rank == 3 && before->rank == 3 && io->dims[0] != before->dims[0] &&
        io->dims[1] == before->dims[0] && io->dims[2] == before->dims[1])
        first = 1; /* [n, height, width] */
    io->dims[first] = has_size ? image->dims[0] : -1;
    io->dims[first + 1] = has_size ? image->dims[1] : -1;
    if (io->rank == 3 && io->dims[2] == -1)
        io->dims[0] = io->dims[1] = -1; /* [n, height, width], or the number of channels varies */
}

void presto_plan_feature(const presto_plan *plan, const char *name, presto_tensor_spec *spec_io) {
    for (size_t i = 0; i < plan->step_count; i++) {
        const presto__pipeline_step *step = presto__plan_step(plan, i);
        const presto__follow *follow = step->follow;
        const char *target = step->writes != NULL ? step->writes : step->reads;
        if (target != NULL && strcmp(target, name) == 0)
            *spec_io = plan->outputs[i];
        if (follow == NULL)
            continue;
        if (is_also(follow, name))
            move_spec(plan, i, spec_io);
        bool is_box = is_named(&follow->boxes, name);
        for (size_t k = 0; k < follow->box_feature_count && !is_box; k++)
            is_box = presto__follow_matches(follow->box_features[k], presto_span_of_text(name));
        if (is_box && follow->box_outside == PRESTO__BOX_DROP && spec_io->rank >= 0) {
            spec_io->rank += spec_io->rank == 0;
            spec_io->dims[0] = -1;
        }
    }
}

const char *presto__plan_step_also(const presto_plan *plan, size_t i, size_t k) {
    const presto__follow *follow = i < plan->step_count ? presto__plan_step(plan, i)->follow : NULL;
    if (follow == NULL)
        return NULL;
    if (k < follow->also_count)
        return follow->also[k].name;
    k -= follow->also_count;
    if (k < follow->boxes.name_count)
        return follow->boxes.names[k];
    k -= follow->boxes.name_count;
    if (k < follow->points.name_count)
        return follow->points.names[k];
    k -= follow->points.name_count;
    return k < follow->box_feature_count ? follow->box_features[k] : NULL;
}

/* ---- what is left behind ---- */

typedef enum likeness { LIKE_NOTHING, LIKE_MASK, LIKE_COORDINATES } likeness;

/* Is one of the words of the name, which stand between other characters than letters, this one? */
static bool has_word(const char *name, const char *const *words) {
    while (*name != '\0') {
        size_t bytes = 0;
        while (isalpha((unsigned char)name[bytes]))
            bytes++;
        for (size_t i = 0; words[i] != NULL; i++)
            if (bytes > 0 && strlen(words[i]) == bytes && strncasecmp(name, words[i], bytes) == 0)
                return true;
        name += bytes;
        while (*name != '\0' && !isalpha((unsigned char)*name))
            name++;
    }
    return false;
}

/* By its name or its shape. Numbers and texts about a mask are none. */
static likeness likeness_of(const char *name, const presto_tensor_spec *spec,
                            const presto_tensor_spec *image) {
    static const char *const masks[] = {"mask",     "masks",    "seg",      "segmentation",
                                        "semantic", "panoptic", "labelmap", NULL};
    static const char *const coordinates[] = {
        "bbox", "bboxes", "box", "boxes", "keypoint", "keypoints", "landmark", "landmarks", NULL};
    static const char *const others[] = {"format", "text",  "name",   "id",   "ids",  "height",
                                         "width",  "label", "labels", "size", "json", NULL};
    if (has_word(name, others))
        return LIKE_NOTHING;
    bool is_numeric = spec->dtype != PRESTO_STRING;
    bool has_size = image->rank == 3 && image->dims[0] > 1 && image->dims[1] > 1;
    if (is_numeric && spec->rank >= 2 && has_size && spec->dims[0] == image->dims[0] &&
        spec->dims[1] == image->dims[1])
        return LIKE_MASK;
    if (has_word(name, masks) && (spec->rank != 0 || !is_numeric))
        return LIKE_MASK;
    if (is_numeric && (has_word(name, coordinates) ||
                       (spec->rank == 2 && spec->dims[0] == -1 && spec->dims[1] == 4)))
        return LIKE_COORDINATES;
    return LIKE_NOTHING;
}

/* Are the coordinates normalized, so that resizing leaves them right? */
static bool is_normalized(const presto_plan *plan, const char *name) {
    for (size_t i = 0; i < plan->step_count; i++) {
        const presto__follow *follow = presto__plan_step(plan, i)->follow;
        if (follow != NULL && ((follow->boxes_are_normalized && is_named(&follow->boxes, name)) ||
                               (follow->points_are_normalized && is_named(&follow->points, name))))
            return true;
    }
    return false;
}

bool presto__plan_leaves(const presto_plan *plan, size_t i, const presto_feature_spec *feature) {
    if (i >= plan->step_count)
        return false;
    const presto__pipeline_step *step = presto__plan_step(plan, i);
    const presto__follow *follow = step->follow;
    const presto_step_type *type = step->type;
    likeness like = likeness_of(feature->name, &feature->spec, &plan->inputs[i]);
    if ((step->flags & PRESTO_STEP_MOVES) == 0 || step->reads != NULL || step->writes != NULL ||
        like == LIKE_NOTHING)
        return false;
    if (follow != NULL &&
        (is_also(follow, feature->name) || is_named(&follow->boxes, feature->name) ||
         is_named(&follow->points, feature->name)))
        return false;
    for (size_t k = 0; follow != NULL && k < follow->box_feature_count; k++)
        if (presto__follow_matches(follow->box_features[k], presto_span_of_text(feature->name)))
            return false;
    for (size_t k = 0; k < type->option_count && type == &presto__step_decode_image; k++)
        if (strcmp(type->options[k].name, "orient") == 0)
            return step->options[k].choice != 0;
    return type != &presto__step_resize_image || like != LIKE_COORDINATES ||
           !is_normalized(plan, feature->name);
}
