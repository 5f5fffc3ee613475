/* SPDX-License-Identifier: Apache-2.0 */
/* The options `also`, `boxes` and `keypoints` of geometric steps, and those that belong to them. */
#include "geometry_internal.h"

#include <stdio.h>

#include "steps_internal.h"

const char *const presto__also_missing[] = {"fail", "keep", NULL};
const char *const presto__box_formats[] = {"xyxy", "xywh", "cxcywh", "yxyx", NULL};
const char *const presto__units[] = {"pixels", "normalized", NULL};
const char *const presto__box_outsides[] = {"clip", "drop", "keep", NULL};
const char *const presto__point_formats[] = {"xy", "xyv", "yx", "yxv", NULL};
const char *const presto__point_outsides[] = {"keep", "hide", NULL};

/* Each option, and the one without which it means nothing. */
static const struct {
    int option, needs;
} companions[] = {
    {PRESTO__FOLLOW_ALSO_METHOD, PRESTO__FOLLOW_ALSO},
    {PRESTO__FOLLOW_ALSO_FILL, PRESTO__FOLLOW_ALSO},
    {PRESTO__FOLLOW_BOX_FORMAT, PRESTO__FOLLOW_BOXES},
    {PRESTO__FOLLOW_BOX_UNITS, PRESTO__FOLLOW_BOXES},
    {PRESTO__FOLLOW_BOX_OUTSIDE, PRESTO__FOLLOW_BOXES},
    {PRESTO__FOLLOW_BOX_MIN_SIDE, PRESTO__FOLLOW_BOXES},
    {PRESTO__FOLLOW_BOX_FEATURES, PRESTO__FOLLOW_BOXES},
    {PRESTO__FOLLOW_POINT_FORMAT, PRESTO__FOLLOW_POINTS},
    {PRESTO__FOLLOW_POINT_UNITS, PRESTO__FOLLOW_POINTS},
    {PRESTO__FOLLOW_POINT_OUTSIDE, PRESTO__FOLLOW_POINTS},
    {PRESTO__FOLLOW_POINT_SWAP, PRESTO__FOLLOW_POINTS},
};

#define FAIL(...) presto_fail(err, PRESTO_ERR_ARGUMENT, PRESTO_NO_OFFSET, __VA_ARGS__)

static presto_status take_also(const presto_option *values, presto_arena *arena,
                               presto__follow *follow, presto_error *err) {
    const presto_option *names = &values[PRESTO__FOLLOW_ALSO];
    const presto_option *methods = &values[PRESTO__FOLLOW_ALSO_METHOD];
    const presto_option *fills = &values[PRESTO__FOLLOW_ALSO_FILL];
    size_t count = names->is_set ? names->text_count : 0;
    size_t bytes = (count + 1) * sizeof(presto__also);
    if (methods->is_set && methods->text_count != 1 && methods->text_count != count)
        return FAIL("'also-method' has %zu values, needs 1 or %zu: one for each of 'also'",
                    methods->text_count, count);
    if (fills->is_set && fills->number_count != 1 && fills->number_count != count)
        return FAIL("'also-fill' has %zu values, needs 1 or %zu: one for each of 'also'",
                    fills->number_count, count);
    presto__also *also = presto_arena_alloc(arena, bytes, _Alignof(presto__also));
    if (also == NULL)
        return presto_fail_memory(err, bytes);
    for (size_t i = 0; i < count; i++) {
        static const char *const known[] = {"nearest", "nearest-exact", "bilinear"};
        also[i] = (presto__also){.name = names->texts[i]};
        if (fills->is_set)
            also[i].fill = fills->numbers[fills->number_count == 1 ? 0 : i];
        if (!methods->is_set)
            continue;
        const char *method = methods->texts[methods->text_count == 1 ? 0 : i];
        size_t k = 0;
        while (k < 3 && strcmp(method, known[k]) != 0)
            k++;
        if (k == 3)
            return FAIL(
                "'also-method' is '%.64s', must be one of: nearest, nearest-exact, bilinear",
                method);
        also[i].method = (presto__also_method)k;
    }
    follow->also = also;
    follow->also_count = count;
    return PRESTO_OK;
}

/* One name, or, of "NAME/" and a star, one for each of `ends`. */
static presto_status take_names(const char *given, const char *const *ends, size_t end_count,
                                presto_arena *arena, presto__coordinates *out, presto_error *err) {
    size_t bytes = strlen(given);
    out->given = given;
    if (given[0] == '\0')
        return FAIL("a feature's name is empty");
    if (given[bytes - 1] != '*') {
        out->names[0] = given;
        out->name_count = 1;
        return PRESTO_OK;
    }
    for (size_t i = 0; i < end_count; i++) {
        char *name = presto_arena_alloc(arena, bytes + 8, 1);
        if (name == NULL)
            return presto_fail_memory(err, bytes + 8);
        snprintf(name, bytes + 8, "%.*s%s", (int)(bytes - 1), given, ends[i]);
        out->names[i] = name;
    }
    out->name_count = end_count;
    return PRESTO_OK;
}

static presto_status take_boxes(const presto_option *values, presto_arena *arena,
                                presto__follow *follow, presto_error *err) {
    static const char *const ends[] = {"xmin", "ymin", "xmax", "ymax"};
    const presto_option *format = &values[PRESTO__FOLLOW_BOX_FORMAT];
    const presto_option *units = &values[PRESTO__FOLLOW_BOX_UNITS];
    const presto_option *features = &values[PRESTO__FOLLOW_BOX_FEATURES];
    const presto_option *side = &values[PRESTO__FOLLOW_BOX_MIN_SIDE];
    if (!values[PRESTO__FOLLOW_BOXES].is_set)
        return PRESTO_OK;
    PRESTO_TRY(take_names(values[PRESTO__FOLLOW_BOXES].text, ends, 4, arena, &follow->boxes, err));
    bool is_apart = follow->boxes.name_count > 1;
    if (is_apart && format->is_set && format->choice != PRESTO__BOX_XYXY)
        return FAIL("'box-format' is for boxes in one feature: those of '%s' are corners",
                    follow->boxes.given);
    follow->box_format = format->is_set ? (presto__box_format)format->choice : PRESTO__BOX_XYXY;
    follow->boxes_are_normalized =
        units->is_set ? units->choice == 1 : is_apart || follow->box_format == PRESTO__BOX_YXYX;
    follow->checks_boxes = !units->is_set;
    follow->box_outside = (presto__outside)values[PRESTO__FOLLOW_BOX_OUTSIDE].choice;
    bool drops = follow->box_outside == PRESTO__BOX_DROP;
    if (!drops && (side->is_set || features->is_set))
        return FAIL("'%s' belongs to 'box-outside: drop'",
                    side->is_set ? "box-min-side" : "box-features");
    if (drops && !features->is_set)
        return FAIL(
            "'box-outside: drop' needs 'box-features': the features with one value for each "
            "box, such as [label]; [none] if there are none");
    follow->box_min_side = side->is_set ? side->number : 1;
    follow->box_features = features->texts;
    follow->box_feature_count = features->text_count;
    if (features->text_count == 1 && strcmp(features->texts[0], "none") == 0)
        follow->box_feature_count = 0;
    return PRESTO_OK;
}

static presto_status take_points(const presto_option *values, presto_arena *arena,
                                 presto__follow *follow, presto_error *err) {
    static const char *const ends[] = {"x", "y"};
    const presto_option *units = &values[PRESTO__FOLLOW_POINT_UNITS];
    const presto_option *swap = &values[PRESTO__FOLLOW_POINT_SWAP];
    int format = values[PRESTO__FOLLOW_POINT_FORMAT].choice; /* 0 if it is not set */
    if (!values[PRESTO__FOLLOW_POINTS].is_set)
        return PRESTO_OK;
    PRESTO_TRY(
        take_names(values[PRESTO__FOLLOW_POINTS].text, ends, 2, arena, &follow->points, err));
    bool is_apart = follow->points.name_count > 1;
    follow->points_have_visibility = format == 1 || format == 3;
    follow->points_begin_with_y = format >= 2;
    follow->points_are_normalized = units->is_set ? units->choice == 1 : is_apart;
    follow->hides_points = values[PRESTO__FOLLOW_POINT_OUTSIDE].choice == 1;
    if (is_apart && format != 0)
        return FAIL("'keypoint-format' is for points in one feature: those of '%s' are x and y",
                    follow->points.given);
    if (follow->hides_points && !follow->points_have_visibility)
        return FAIL("'keypoint-outside: hide' needs 'keypoint-format: xyv' or 'yxv'");
    if (!swap->is_set)
        return PRESTO_OK;
    if (is_apart || swap->number_count % 2 != 0)
        return FAIL(is_apart ? "'keypoint-swap' is for points in one feature"
                             : "'keypoint-swap' needs two positions for each pair");
    size_t bytes = swap->number_count * sizeof(int64_t);
    int64_t *swaps = presto_arena_alloc(arena, bytes, _Alignof(int64_t));
    if (swaps == NULL)
        return presto_fail_memory(err, bytes);
    for (size_t i = 0; i < swap->number_count; i++) {
        swaps[i] = (int64_t)swap->numbers[i];
        for (size_t k = 0; k <= i; k++)
            if ((double)swaps[i] != swap->numbers[i] || (k < i && swaps[k] == swaps[i]))
                return FAIL("'keypoint-swap' needs whole numbers, each once; %g is not",
                            swap->numbers[i]);
    }
    follow->swaps = swaps;
    follow->swap_count = swap->number_count;
    return PRESTO_OK;
}

/* decode-image: how the pictures of `also` are decoded. */
static void take_decoding(const presto_step_type *type, const presto_option *options,
                          presto__follow *follow) {
    for (size_t i = 0; i < type->option_count; i++) {
        const char *name = type->options[i].name;
        if (strcmp(name, "also-channels") == 0)
            follow->also_channels = options[i].is_set ? options[i].integer : 1;
        else if (strcmp(name, "also-bits") == 0)
            follow->also_wide = options[i].is_set && options[i].choice == 1;
        else if (strcmp(name, "also-orient") == 0)
            follow->also_turns = !options[i].is_set || options[i].choice == 0;
    }
}

presto_status presto__follow_parse(const presto_step_type *type, const presto_option *options,
                                   presto_arena *arena, const presto__follow **follow_out,
                                   presto_error *err) {
    const presto_option_type *table = type->options + type->option_count - PRESTO__FOLLOW_COUNT;
    const presto_option *values = options + type->option_count - PRESTO__FOLLOW_COUNT;
    *follow_out = NULL;
    for (size_t i = 0; i < sizeof companions / sizeof companions[0]; i++)
        if (values[companions[i].option].is_set && !values[companions[i].needs].is_set)
            return FAIL("'%s' belongs to '%s', which is not set", table[companions[i].option].name,
                        table[companions[i].needs].name);
    bool moves = values[PRESTO__FOLLOW_ALSO].is_set || values[PRESTO__FOLLOW_BOXES].is_set ||
                 values[PRESTO__FOLLOW_POINTS].is_set;
    if (!moves && values[PRESTO__FOLLOW_MISSING].is_set)
        return FAIL("'also-missing' belongs to 'also', 'boxes' and 'keypoints'");
    if (!moves)
        return PRESTO_OK;
    presto__follow *follow = presto_arena_alloc(arena, sizeof *follow, _Alignof(presto__follow));
    if (follow == NULL)
        return presto_fail_memory(err, sizeof *follow);
    *follow = (presto__follow){.may_lack = values[PRESTO__FOLLOW_MISSING].choice == 1};
    PRESTO_TRY(take_also(values, arena, follow, err));
    PRESTO_TRY(take_boxes(values, arena, follow, err));
    PRESTO_TRY(take_points(values, arena, follow, err));
    take_decoding(type, options, follow);
    *follow_out = follow;
    return PRESTO_OK;
}

bool presto__follow_matches(const char *entry, presto_span name) {
    size_t bytes = strlen(entry);
    if (bytes == 0 || entry[bytes - 1] != '*')
        return presto_span_is(name, entry);
    return name.bytes >= bytes - 1 && memcmp(name.data, entry, bytes - 1) == 0;
}
