/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What moves with a picture. A geometric step (PRESTO_STEP_MOVES) says with presto__step_moved()
 * how it has moved its image; masks, boxes and points of the same picture are then moved alike.
 *
 * The values are those of torchvision's transforms v2 on its tv_tensors: coordinates of boxes count
 * the edges of pixels, from 0 to the width; coordinates of points count pixels, from 0 to the width
 * minus 1. They differ where an image is mirrored.
 */
#ifndef PRESTO_STEPS_GEOMETRY_INTERNAL_H
#define PRESTO_STEPS_GEOMETRY_INTERNAL_H

#include <presto/pipeline.h>

/**
 * How an upright pixel is found in the stored image: rows and columns are exchanged first, if
 * is_transposed; then each counts from the stored image's other end, if it is flipped.
 */
typedef struct presto__turn {
    bool is_transposed;
    bool flips_y, flips_x; /* of the stored image */
} presto__turn;

/** From the picture before a step to the picture after it: turned, then cut, then resized. */
typedef struct presto__geometry {
    int64_t in_height, in_width; /* of the picture before */
    presto__turn turn;
    presto_window window;  /* of the turned picture; it may hang over */
    int64_t height, width; /* of the picture after, which the window is resized to */
    bool cuts;             /* the window is not the whole: things may have left the picture */
} presto__geometry;

/** An image of this spec that stays as it is; a step changes what it moves. */
static inline presto__geometry presto__geometry_of(const presto_tensor_spec *in) {
    return (presto__geometry){.in_height = in->dims[0],
                              .in_width = in->dims[1],
                              .window = {0, 0, in->dims[0], in->dims[1]},
                              .height = in->dims[0],
                              .width = in->dims[1]};
}

/** The step has moved its image like this. Borrowed during the call; the last call of a sample
 * counts. A step that leaves its image as it is need not call it. */
void presto__step_moved(presto_step_context *context, const presto__geometry *geometry);

/** The step has cut this window out of its image, and resized it to height x width. */
static inline void presto__step_cut(presto_step_context *context, const presto_tensor_spec *in,
                                    const presto_window *window, int64_t height, int64_t width) {
    presto__geometry moved = presto__geometry_of(in);
    moved.window = *window;
    moved.height = height;
    moved.width = width;
    moved.cuts = true;
    presto__step_moved(context, &moved);
}

/* ---- what a step is told to move ---- */

typedef enum presto__also_method {
    PRESTO__ALSO_NEAREST,       /* pixel floor(i * scale), as torch's "nearest" */
    PRESTO__ALSO_NEAREST_EXACT, /* pixel floor((i + 0.5) * scale) */
    PRESTO__ALSO_BILINEAR       /* as the step resizes its image */
} presto__also_method;

typedef struct presto__also {
    const char *name;
    presto__also_method method;
    double fill; /* of what is added around it */
} presto__also;

typedef enum presto__box_format {
    PRESTO__BOX_XYXY,
    PRESTO__BOX_XYWH,
    PRESTO__BOX_CXCYWH,
    PRESTO__BOX_YXYX
} presto__box_format;

typedef enum presto__outside {
    PRESTO__BOX_CLIP,
    PRESTO__BOX_DROP,
    PRESTO__BOX_KEEP
} presto__outside;

/** The names of a feature: one, or one for each coordinate. */
typedef struct presto__coordinates {
    const char *given; /* as the pipeline says; NULL: there are none */
    const char *names[4];
    size_t name_count; /* 1: all coordinates are in one feature */
} presto__coordinates;

/** Of a step; belongs to the arena of its pipeline. */
typedef struct presto__follow {
    const presto__also *also;
    size_t also_count;
    int64_t also_channels; /* of decode-image */
    bool also_wide;        /* of decode-image: uint16, not uint8 */
    bool also_turns;       /* of decode-image: as the image is turned */
    bool may_lack;         /* a sample need not have the features */

    presto__coordinates boxes; /* xmin, ymin, xmax, ymax, if they are apart */
    presto__box_format box_format;
    bool boxes_are_normalized;
    bool checks_boxes; /* the units are not given by the pipeline, and no step before has moved the
                          boxes: do their values agree? */
    presto__outside box_outside;
    double box_min_side;             /* in pixels of the picture after; for DROP */
    const char *const *box_features; /* with a row for each box; "x*" is all that begin with x */
    size_t box_feature_count;

    presto__coordinates points; /* x, y, if they are apart */
    bool points_begin_with_y;
    bool points_have_visibility;
    bool points_are_normalized;
    bool hides_points;    /* those that leave the picture become invisible */
    const int64_t *swaps; /* pairs of points that are exchanged in a mirrored picture */
    size_t swap_count;    /* numbers, two a pair */
} presto__follow;

enum {
    PRESTO__FOLLOW_ALSO,
    PRESTO__FOLLOW_ALSO_METHOD,
    PRESTO__FOLLOW_ALSO_FILL,
    PRESTO__FOLLOW_MISSING,
    PRESTO__FOLLOW_BOXES,
    PRESTO__FOLLOW_BOX_FORMAT,
    PRESTO__FOLLOW_BOX_UNITS,
    PRESTO__FOLLOW_BOX_OUTSIDE,
    PRESTO__FOLLOW_BOX_MIN_SIDE,
    PRESTO__FOLLOW_BOX_FEATURES,
    PRESTO__FOLLOW_POINTS,
    PRESTO__FOLLOW_POINT_FORMAT,
    PRESTO__FOLLOW_POINT_UNITS,
    PRESTO__FOLLOW_POINT_OUTSIDE,
    PRESTO__FOLLOW_POINT_SWAP,
    PRESTO__FOLLOW_COUNT
};

extern const char *const presto__also_missing[];
extern const char *const presto__box_formats[];
extern const char *const presto__units[];
extern const char *const presto__box_outsides[];
extern const char *const presto__point_formats[];
extern const char *const presto__point_outsides[];

/*
 * The last options of every geometric step, in the order of the enum above. None has a default that
 * is written out, so that the definition of a pipeline without them stays what it was.
 */
#define PRESTO__FOLLOW_OPTIONS                                                                     \
    {.name = "also",                                                                               \
     .kind = PRESTO_OPTION_TEXT_LIST,                                                              \
     .help = "features that are pictures of the same height and width, such as masks: they move "  \
             "as the image does, with the same draw"},                                             \
        {.name = "also-method",                                                                    \
         .kind = PRESTO_OPTION_TEXT_LIST,                                                          \
         .help = "how they are resized, one for all or one for each: nearest (as torchvision "     \
                 "resizes masks), nearest-exact, or bilinear (as the image). Not set: nearest"},   \
        {.name = "also-fill",                                                                      \
         .kind = PRESTO_OPTION_FLOAT_LIST,                                                         \
         .help = "value of what is added around them, one for all or one for each. Not set: 0"},   \
        {.name = "also-missing",                                                                   \
         .kind = PRESTO_OPTION_CHOICE,                                                             \
         .choices = presto__also_missing,                                                          \
         .help = "keep passes samples on that lack one of the features named here. Not set: "      \
                 "they are errors"},                                                               \
        {.name = "boxes",                                                                          \
         .kind = PRESTO_OPTION_TEXT,                                                               \
         .help = "the feature with boxes of things in the image, [n, 4]; NAME/* stands for four "  \
                 "features NAME/xmin, NAME/ymin, NAME/xmax and NAME/ymax"},                        \
        {.name = "box-format",                                                                     \
         .kind = PRESTO_OPTION_CHOICE,                                                             \
         .choices = presto__box_formats,                                                           \
         .help =                                                                                   \
             "what the four numbers are: corners, corner and size, centre and size, or (tfds) "    \
             "corners with y first. Not set: xyxy"},                                               \
        {.name = "box-units",                                                                      \
         .kind = PRESTO_OPTION_CHOICE,                                                             \
         .choices = presto__units,                                                                 \
         .help = "pixels, or normalized: from 0 to 1. Not set: normalized for yxyx and NAME/*, "   \
                 "else pixels; boxes that cannot be so are errors"},                               \
        {.name = "box-outside",                                                                    \
         .kind = PRESTO_OPTION_CHOICE,                                                             \
         .choices = presto__box_outsides,                                                          \
         .help = "what becomes of a box that is cut off: clip leaves the part in the picture, "    \
                 "which may be empty; drop takes such a box out if its part is too small, with "   \
                 "its row of box-features. Not set: clip"},                                        \
        {.name = "box-min-side",                                                                   \
         .kind = PRESTO_OPTION_FLOAT,                                                              \
         .minimum = 0,                                                                             \
         .maximum = 65535,                                                                         \
         .unit = "pixels",                                                                         \
         .help = "drop takes out boxes with a shorter side. Not set: 1"},                          \
        {.name = "box-features",                                                                   \
         .kind = PRESTO_OPTION_TEXT_LIST,                                                          \
         .help = "features with one value, or one row, for each box, such as labels: drop takes "  \
                 "the rows of dropped boxes out of them. PREFIX* is all that begin so; [none] is " \
                 "none"},                                                                          \
        {.name = "keypoints",                                                                      \
         .kind = PRESTO_OPTION_TEXT,                                                               \
         .help = "the feature with points in the image, [..., 2]; NAME/* stands for NAME/x and "   \
                 "NAME/y"},                                                                        \
        {.name = "keypoint-format",                                                                \
         .kind = PRESTO_OPTION_CHOICE,                                                             \
         .choices = presto__point_formats,                                                         \
         .help = "what the numbers are; v is 0 where a point is not given (COCO), and such a "     \
                 "point stays as it is. Not set: xy"},                                             \
        {.name = "keypoint-units",                                                                 \
         .kind = PRESTO_OPTION_CHOICE,                                                             \
         .choices = presto__units,                                                                 \
         .help = "pixels, or normalized: from 0 to 1. Not set: normalized for NAME/*, else "       \
                 "pixels"},                                                                        \
        {.name = "keypoint-outside",                                                               \
         .kind = PRESTO_OPTION_CHOICE,                                                             \
         .choices = presto__point_outsides,                                                        \
         .help = "hide sets x, y and v of points that leave the picture to 0. Not set: keep"},     \
    {                                                                                              \
        .name = "keypoint-swap", .kind = PRESTO_OPTION_FLOAT_LIST, .minimum = 0, .maximum = 65535, \
        .help = "positions of points that change places in a mirrored picture, two and two, such " \
                "as left and right eye: [1, 2, 3, 4]. Not set: none"                               \
    }

/** Read these options. *follow_out is NULL if nothing is to be moved. PRESTO_ERR_ARGUMENT names
 * what does not go together. */
presto_status presto__follow_parse(const presto_step_type *type, const presto_option *options,
                                   presto_arena *arena, const presto__follow **follow_out,
                                   presto_error *err);

/** Is the feature one of those that this entry of box-features stands for? */
bool presto__follow_matches(const char *entry, presto_span name);

/* ---- moving, one value at a time ---- */

/* All take memory of the context's arena. Errors are PRESTO_ERR_TYPE, without the feature's name. */

typedef struct presto__moving {
    const presto__geometry *geometry;
    const presto__follow *follow;
    presto_step_context *context;
} presto__moving;

/** A picture [h, w, ...], or pictures [n, h, w, ...], of any dtype; nearest. */
presto_status presto__move_picture(const presto__moving *moving, const presto__also *also,
                                   const presto_tensor *in, presto_tensor *out_out,
                                   presto_error *err);

/**
 * Decode a picture of the same size as the image of moving->geometry, upright as that, with the
 * decoders of the step decode-image, whose state this is.
 */
presto_status presto__decode_also(const void *state, const presto__moving *moving,
                                  const presto_tensor *in, presto_tensor *out_out,
                                  presto_error *err);

/** Boxes as they are moved: one tensor, or four. */
typedef struct presto__moved_boxes {
    presto_tensor in[4];
    presto_tensor out[4]; /* with the boxes that are dropped */
    size_t count;         /* boxes */
    bool *kept;           /* one a box; NULL: all */
    size_t kept_count;
} presto__moved_boxes;

/** From `in` to the rest. */
presto_status presto__move_boxes(const presto__moving *moving, presto__moved_boxes *boxes_io,
                                 presto_error *err);

/** Points, in place of *io: one tensor, or two. */
presto_status presto__move_points(const presto__moving *moving, presto_tensor *io,
                                  presto_error *err);

/** The rows of `in`, or groups of numbers of its single dimension, whose box is kept. */
presto_status presto__keep_rows(const presto__moved_boxes *boxes, presto_step_context *context,
                                const presto_tensor *in, presto_tensor *out_out, presto_error *err);

#endif
