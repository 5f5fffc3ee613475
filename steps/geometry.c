/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Moves masks, boxes and points as a step has moved its image. Pictures are moved by two tables:
 * which row, and which column, of the picture before is each of the picture after. Coordinates are
 * computed in double and rounded to their dtype at the end; a ratio of sizes is a float32 and
 * integers are truncated, as in torchvision.
 */
#include "geometry_internal.h"

#include <math.h>
#include <stdlib.h>

#include "steps_internal.h"

#define OUTSIDE (-1)

static presto_status fail_spec(const presto_tensor *in, const char *needs, presto_error *err) {
    char text[PRESTO_SPEC_TEXT_BYTES];
    return presto_fail(err, PRESTO_ERR_TYPE, PRESTO_NO_OFFSET, "needs %s, gets %s", needs,
                       presto_spec_format(&in->spec, text, sizeof text));
}

/* ---- numbers of any dtype ---- */

typedef enum number_kind {
    NUMBER_NONE,
    NUMBER_FLOAT32,
    NUMBER_FLOAT64,
    NUMBER_INTEGER
} number_kind;

static number_kind kind_of(presto_dtype dtype) {
    if (dtype == PRESTO_FLOAT32)
        return NUMBER_FLOAT32;
    if (dtype == PRESTO_FLOAT64)
        return NUMBER_FLOAT64;
    bool is_integer = dtype == PRESTO_UINT8 || dtype == PRESTO_INT8 || dtype == PRESTO_UINT16 ||
                      dtype == PRESTO_INT16 || dtype == PRESTO_UINT32 || dtype == PRESTO_INT32 ||
                      dtype == PRESTO_INT64;
    return is_integer ? NUMBER_INTEGER : NUMBER_NONE;
}

static bool is_signed(presto_dtype dtype) {
    return dtype == PRESTO_INT8 || dtype == PRESTO_INT16 || dtype == PRESTO_INT32 ||
           dtype == PRESTO_INT64;
}

static double read_number(const void *data, presto_dtype dtype, size_t i) {
    size_t bytes = presto_dtype_bytes(dtype);
    const uint8_t *from = (const uint8_t *)data + i * bytes;
    float single;
    double value;
    if (dtype == PRESTO_FLOAT32) {
        memcpy(&single, from, sizeof single);
        return (double)single;
    }
    if (dtype == PRESTO_FLOAT64) {
        memcpy(&value, from, sizeof value);
        return value;
    }
    bool is_negative = is_signed(dtype) && (from[bytes - 1] & 0x80) != 0;
    uint64_t number = is_negative ? UINT64_MAX : 0; /* little-endian */
    memcpy(&number, from, bytes);
    return is_negative ? (double)(int64_t)number : (double)number;
}

/* Integers are truncated, and kept within the bounds of their type. NaN is 0. */
static void write_number(void *data, presto_dtype dtype, size_t i, double value) {
    size_t bytes = presto_dtype_bytes(dtype);
    uint8_t *to = (uint8_t *)data + i * bytes;
    float single = (float)value;
    if (dtype == PRESTO_FLOAT32) {
        memcpy(to, &single, sizeof single);
        return;
    }
    if (dtype == PRESTO_FLOAT64) {
        memcpy(to, &value, sizeof value);
        return;
    }
    int bits = (int)(8 * bytes) - (is_signed(dtype) ? 1 : 0);
    double most = ldexp(1, bits) - 1, least = is_signed(dtype) ? -ldexp(1, bits) : 0;
    double whole = trunc((double)single); /* 6.9999999 means 7 */
    int64_t number = 0;
    if (whole >= 9223372036854775807.0)
        number = INT64_MAX;
    else if (whole == whole)
        number = (int64_t)(whole < least ? least : whole > most ? most : whole);
    memcpy(to, &number, bytes);
}

static presto_status take_memory(presto_step_context *context, size_t bytes, void **data_out,
                                 presto_error *err) {
    *data_out = presto_step_scratch(context, bytes > 0 ? bytes : 1);
    return *data_out != NULL ? PRESTO_OK : presto_fail_memory(err, bytes);
}

/* Memory for a tensor of the spec of *io, in place of its data. */
static presto_status take_tensor(presto_step_context *context, presto_tensor *io,
                                 presto_error *err) {
    size_t bytes;
    void *data;
    PRESTO_TRY(presto_spec_bytes(&io->spec, &bytes, err));
    if (bytes > PRESTO__STEP_MAX_OUTPUT_BYTES)
        return presto_fail(err, PRESTO_ERR_LIMIT, PRESTO_NO_OFFSET, "would take %zu bytes", bytes);
    PRESTO_TRY(take_memory(context, bytes, &data, err));
    io->data = data;
    return PRESTO_OK;
}

/* ---- pictures ---- */

/* For each of `count` rows (or columns) of the picture after, the one of the picture before, which
 * has `length`; OUTSIDE: none. */
typedef struct axis {
    int64_t start, extent; /* of the window */
    int64_t count, length;
    bool flips;
} axis;

static void fill_axis(const axis *a, presto__also_method method, int64_t *map_out) {
    float scale = (float)a->extent / (float)a->count;
    float shift = method == PRESTO__ALSO_NEAREST_EXACT ? 0.5f : 0.0f;
    for (int64_t i = 0; i < a->count; i++) {
        int64_t at = a->extent == a->count ? i : (int64_t)floorf(((float)i + shift) * scale);
        at = a->start + (at < a->extent ? at : a->extent - 1);
        if (at < 0 || at >= a->length)
            at = OUTSIDE;
        else if (a->flips)
            at = a->length - 1 - at;
        map_out[i] = at;
    }
}

/* The picture as rows of pixels; several ones of `planes` stand one behind the other. */
typedef struct picture {
    size_t planes, pixel_bytes;
    int first; /* dimension of the height */
} picture;

static presto_status find_picture(const presto__geometry *g, const presto_tensor *in,
                                  picture *picture_out, presto_error *err) {
    const presto_tensor_spec *spec = &in->spec;
    char text[PRESTO_SPEC_TEXT_BYTES];
    if (spec->dtype == PRESTO_STRING)
        return presto_fail(err, PRESTO_ERR_TYPE, PRESTO_NO_OFFSET,
                           "holds encoded bytes: name it in 'also' of decode-image, too");
    int first = -1;
    for (int i = 0; i < 2 && first < 0; i++)
        if (spec->rank >= i + 2 && spec->dims[i] == g->in_height &&
            spec->dims[i + 1] == g->in_width)
            first = i;
    if (first < 0)
        return presto_fail(err, PRESTO_ERR_TYPE, PRESTO_NO_OFFSET,
                           "is %s, but the image has %jd x %jd pixels (height x width)",
                           presto_spec_format(spec, text, sizeof text), (intmax_t)g->in_height,
                           (intmax_t)g->in_width);
    *picture_out = (picture){.planes = first == 1 ? (size_t)spec->dims[0] : 1,
                             .pixel_bytes = presto_dtype_bytes(spec->dtype),
                             .first = first};
    for (int i = first + 2; i < spec->rank; i++)
        picture_out->pixel_bytes *= (size_t)spec->dims[i];
    return PRESTO_OK;
}

typedef struct copying {
    const uint8_t *from;
    uint8_t *to;
    const int64_t *rows, *columns;
    int64_t height, width;          /* of the picture after */
    size_t row_bytes, column_bytes; /* of the picture before: from a row, or column, to the next */
    const uint8_t *fill;            /* a pixel */
} copying;

/* Inlined with a constant size, so that the copy of a pixel is a move. */
static inline __attribute__((always_inline)) void copy_pixels(const copying *c, size_t bytes) {
    uint8_t *to = c->to;
    for (int64_t y = 0; y < c->height; y++) {
        const uint8_t *row =
            c->rows[y] == OUTSIDE ? NULL : c->from + (size_t)c->rows[y] * c->row_bytes;
        for (int64_t x = 0; x < c->width; x++, to += bytes) {
            int64_t column = c->columns[x];
            memcpy(to,
                   row == NULL || column == OUTSIDE ? c->fill
                                                    : row + (size_t)column * c->column_bytes,
                   bytes);
        }
    }
}

static void copy_picture(const copying *c, size_t pixel_bytes) {
    switch (pixel_bytes) {
    case 1:
        copy_pixels(c, 1);
        break;
    case 3:
        copy_pixels(c, 3);
        break;
    case 4:
        copy_pixels(c, 4);
        break;
    default:
        copy_pixels(c, pixel_bytes);
    }
}

/* A pixel of the fill value. */
static presto_status make_fill(const presto__also *also, presto_step_context *context,
                               const presto_tensor *in, size_t pixel_bytes, void **fill_out,
                               presto_error *err) {
    presto_dtype dtype = in->spec.dtype;
    size_t value_bytes = presto_dtype_bytes(dtype);
    PRESTO_TRY(take_memory(context, pixel_bytes, fill_out, err));
    memset(*fill_out, 0, pixel_bytes);
    if (also->fill == 0)
        return PRESTO_OK;
    for (size_t i = 0; i < pixel_bytes / value_bytes && kind_of(dtype) != NUMBER_NONE; i++)
        write_number(*fill_out, dtype, i, also->fill);
    if (kind_of(dtype) == NUMBER_NONE || (kind_of(dtype) == NUMBER_INTEGER && pixel_bytes > 0 &&
                                          read_number(*fill_out, dtype, 0) != also->fill))
        return presto_fail(err, PRESTO_ERR_TYPE, PRESTO_NO_OFFSET,
                           "is filled with %g ('also-fill'), which is no %s", also->fill,
                           presto_dtype_name(dtype));
    return PRESTO_OK;
}

presto_status presto__move_picture(const presto__moving *moving, const presto__also *also,
                                   const presto_tensor *in, presto_tensor *out_out,
                                   presto_error *err) {
    const presto__geometry *g = moving->geometry;
    picture p;
    void *maps, *fill;
    PRESTO_TRY(find_picture(g, in, &p, err));
    presto_tensor out = {.spec = in->spec};
    out.spec.dims[p.first] = g->height;
    out.spec.dims[p.first + 1] = g->width;
    PRESTO_TRY(take_tensor(moving->context, &out, err));
    PRESTO_TRY(
        take_memory(moving->context, (size_t)(g->height + g->width) * sizeof(int64_t), &maps, err));
    PRESTO_TRY(make_fill(also, moving->context, in, p.pixel_bytes, &fill, err));
    const presto__turn *turn = &g->turn;
    int64_t in_height = g->in_height, in_width = g->in_width;
    const axis rows = {g->window.y, g->window.height, g->height,
                       turn->is_transposed ? in_width : in_height,
                       turn->is_transposed ? turn->flips_x : turn->flips_y};
    const axis columns = {g->window.x, g->window.width, g->width,
                          turn->is_transposed ? in_height : in_width,
                          turn->is_transposed ? turn->flips_y : turn->flips_x};
    int64_t *row_map = maps, *column_map = row_map + g->height;
    fill_axis(&rows, also->method, row_map);
    fill_axis(&columns, also->method, column_map);
    size_t line = (size_t)in_width * p.pixel_bytes;
    copying c = {.from = in->data,
                 .to = (uint8_t *)(uintptr_t)out.data,
                 .rows = row_map,
                 .columns = column_map,
                 .height = g->height,
                 .width = g->width,
                 .row_bytes = turn->is_transposed ? p.pixel_bytes : line,
                 .column_bytes = turn->is_transposed ? line : p.pixel_bytes,
                 .fill = fill};
    for (size_t i = 0; i < p.planes; i++) {
        copy_picture(&c, p.pixel_bytes);
        c.from += (size_t)in_height * line;
        c.to += (size_t)(g->height * g->width) * p.pixel_bytes;
    }
    *out_out = out;
    return PRESTO_OK;
}

/* ---- coordinates ---- */

/* One coordinate after the turn, of an axis of the picture before that has `length`. `mirror` is
 * what its two ends sum to. */
static double turned(double value, bool flips, double mirror) {
    return flips ? mirror - value : value;
}

static double ratio_of(int64_t after, int64_t before) {
    return after == before || before == 0 ? 1 : (double)(float)((double)after / (double)before);
}

typedef struct box {
    double x1, y1, x2, y2;
} box;

static box box_from(const double v[4], presto__box_format format) {
    switch (format) {
    case PRESTO__BOX_XYWH:
        return (box){v[0], v[1], v[0] + v[2], v[1] + v[3]};
    case PRESTO__BOX_CXCYWH:
        return (box){v[0] - v[2] / 2, v[1] - v[3] / 2, v[0] + v[2] / 2, v[1] + v[3] / 2};
    case PRESTO__BOX_YXYX:
        return (box){v[1], v[0], v[3], v[2]};
    case PRESTO__BOX_XYXY:
        break;
    }
    return (box){v[0], v[1], v[2], v[3]};
}

static void box_to(const box *b, presto__box_format format, double v[4]) {
    double width = b->x2 - b->x1, height = b->y2 - b->y1;
    box out = *b;
    if (format == PRESTO__BOX_XYWH)
        out = (box){b->x1, b->y1, width, height};
    else if (format == PRESTO__BOX_CXCYWH)
        out = (box){b->x1 + width / 2, b->y1 + height / 2, width, height};
    else if (format == PRESTO__BOX_YXYX)
        out = (box){b->y1, b->x1, b->y2, b->x2};
    v[0] = out.x1;
    v[1] = out.y1;
    v[2] = out.x2;
    v[3] = out.y2;
}

/* NaN stays. */
static double clamped(double value, double most) {
    return value < 0 ? 0 : value > most ? most : value;
}

/* False: it is to be dropped. */
static bool move_box(const presto__geometry *g, const presto__follow *follow, box *b) {
    double in_height = (double)g->in_height, in_width = (double)g->in_width;
    if (follow->boxes_are_normalized)
        *b = (box){b->x1 * in_width, b->y1 * in_height, b->x2 * in_width, b->y2 * in_height};
    if (g->turn.flips_x)
        *b = (box){in_width - b->x2, b->y1, in_width - b->x1, b->y2};
    if (g->turn.flips_y)
        *b = (box){b->x1, in_height - b->y2, b->x2, in_height - b->y1};
    if (g->turn.is_transposed)
        *b = (box){b->y1, b->x1, b->y2, b->x2};
    double x = (double)g->window.x, y = (double)g->window.y;
    *b = (box){b->x1 - x, b->y1 - y, b->x2 - x, b->y2 - y};
    if (g->cuts && follow->box_outside != PRESTO__BOX_KEEP) {
        double height = (double)g->window.height, width = (double)g->window.width;
        *b = (box){clamped(b->x1, width), clamped(b->y1, height), clamped(b->x2, width),
                   clamped(b->y2, height)};
    }
    double across = ratio_of(g->width, g->window.width);
    double down = ratio_of(g->height, g->window.height);
    *b = (box){b->x1 * across, b->y1 * down, b->x2 * across, b->y2 * down};
    bool is_kept = !g->cuts || follow->box_outside != PRESTO__BOX_DROP ||
                   (b->x2 - b->x1 >= follow->box_min_side && b->y2 - b->y1 >= follow->box_min_side);
    if (follow->boxes_are_normalized) {
        double height = (double)g->height, width = (double)g->width;
        *b = (box){b->x1 / width, b->y1 / height, b->x2 / width, b->y2 / height};
    }
    return is_kept;
}

/* How many boxes these are, and whether that is what they should look like. */
static presto_status count_boxes(const presto__follow *follow, presto__moved_boxes *boxes,
                                 presto_error *err) {
    size_t parts = follow->boxes.name_count;
    for (size_t k = 0; k < parts; k++) {
        const presto_tensor *in = &boxes->in[k];
        const presto_tensor_spec *spec = &in->spec;
        size_t count = (size_t)presto_spec_elements(spec);
        if (kind_of(spec->dtype) == NUMBER_NONE)
            return fail_spec(in, "numbers", err);
        if (parts > 1 && spec->rank > 1)
            return fail_spec(in, "one number for each box", err);
        if (parts == 1 && spec->rank == 2 && spec->dims[0] == 0)
            count = 0;
        else if (parts == 1 && (spec->rank < 1 || spec->rank > 2 || count % 4 != 0 ||
                                (spec->rank == 2 && spec->dims[1] != 4)))
            return fail_spec(in, "boxes [n, 4]", err);
        count = parts == 1 ? count / 4 : count;
        if (k > 0 && count != boxes->count)
            return presto_fail(err, PRESTO_ERR_TYPE, PRESTO_NO_OFFSET,
                               "has %zu numbers in '%s' and %zu in '%s'", boxes->count,
                               follow->boxes.names[0], count, follow->boxes.names[k]);
        boxes->count = count;
    }
    return PRESTO_OK;
}

static void read_box(const presto__moved_boxes *boxes, size_t parts, size_t i, double v[4]) {
    for (size_t k = 0; k < 4; k++) {
        const presto_tensor *in = &boxes->in[parts == 1 ? 0 : k];
        v[k] = read_number(in->data, in->spec.dtype, parts == 1 ? 4 * i + k : i);
    }
}

/* Values that cannot be of these units: normalized ones far above 1; pixels that are all fractions
 * below 1. */
static presto_status check_units(const presto__moving *moving, const presto__moved_boxes *boxes,
                                 presto_error *err) {
    const presto__follow *follow = moving->follow;
    bool are_small = boxes->count > 0, has_fraction = false;
    double most = 0, v[4];
    for (size_t i = 0; i < boxes->count; i++) {
        read_box(boxes, follow->boxes.name_count, i, v);
        for (size_t k = 0; k < 4; k++) {
            are_small = are_small && v[k] >= 0 && v[k] <= 1;
            has_fraction = has_fraction || v[k] != floor(v[k]);
            most = v[k] > most ? v[k] : most;
        }
    }
    if (follow->boxes_are_normalized && most > 2)
        return presto_fail(
            err, PRESTO_ERR_TYPE, PRESTO_NO_OFFSET,
            "holds %g, but is taken as normalized, from 0 to 1: say box-units: pixels", most);
    if (!follow->boxes_are_normalized && are_small && has_fraction)
        return presto_fail(err, PRESTO_ERR_TYPE, PRESTO_NO_OFFSET,
                           "holds numbers from 0 to 1 only, but is taken as pixels: say box-units: "
                           "normalized, or pixels if it is so");
    return PRESTO_OK;
}

presto_status presto__move_boxes(const presto__moving *moving, presto__moved_boxes *io,
                                 presto_error *err) {
    const presto__follow *follow = moving->follow;
    size_t parts = follow->boxes.name_count;
    void *kept;
    PRESTO_TRY(count_boxes(follow, io, err));
    if (follow->checks_boxes)
        PRESTO_TRY(check_units(moving, io, err));
    for (size_t k = 0; k < parts; k++) {
        io->out[k] = io->in[k];
        PRESTO_TRY(take_tensor(moving->context, &io->out[k], err));
    }
    PRESTO_TRY(take_memory(moving->context, io->count * sizeof *io->kept, &kept, err));
    io->kept = kept;
    io->kept_count = 0;
    for (size_t i = 0; i < io->count; i++) {
        double v[4];
        read_box(io, parts, i, v);
        box b = box_from(v, follow->box_format);
        io->kept[i] = move_box(moving->geometry, follow, &b);
        io->kept_count += io->kept[i];
        box_to(&b, follow->box_format, v);
        for (size_t k = 0; k < 4; k++) {
            presto_tensor *out = &io->out[parts == 1 ? 0 : k];
            write_number((void *)(uintptr_t)out->data, out->spec.dtype, parts == 1 ? 4 * i + k : i,
                         v[k]);
        }
    }
    if (io->kept_count == io->count)
        io->kept = NULL;
    return PRESTO_OK;
}

/* ---- points ---- */

/* False: it has left the picture. */
static bool move_point(const presto__geometry *g, bool is_normalized, double *x, double *y) {
    double in_height = (double)g->in_height, in_width = (double)g->in_width;
    double least = is_normalized ? 0 : 1; /* the last pixel is at width - 1 */
    if (is_normalized) {
        *x *= in_width;
        *y *= in_height;
    }
    *x = turned(*x, g->turn.flips_x, in_width - least);
    *y = turned(*y, g->turn.flips_y, in_height - least);
    if (g->turn.is_transposed) {
        double other = *x;
        *x = *y;
        *y = other;
    }
    *x = (*x - (double)g->window.x) * ratio_of(g->width, g->window.width);
    *y = (*y - (double)g->window.y) * ratio_of(g->height, g->window.height);
    bool is_inside = *x >= 0 && *y >= 0 && *x < (double)g->width && *y < (double)g->height;
    if (is_normalized) {
        *x /= (double)g->width;
        *y /= (double)g->height;
    }
    return is_inside;
}

static bool is_mirrored(const presto__turn *turn) {
    return turn->is_transposed ^ turn->flips_x ^ turn->flips_y;
}

/* Left becomes right: exchange the points of each pair, in each group of `most` points. */
static presto_status swap_points(const presto__follow *follow, presto_tensor *io, size_t most,
                                 size_t point_bytes, presto_error *err) {
    size_t groups = most == 0 ? 0
                              : (size_t)presto_spec_elements(&io->spec) *
                                    presto_dtype_bytes(io->spec.dtype) / (most * point_bytes);
    uint8_t *data = (uint8_t *)(uintptr_t)io->data;
    for (size_t i = 0; i < follow->swap_count; i++)
        if ((size_t)follow->swaps[i] >= most)
            return presto_fail(err, PRESTO_ERR_TYPE, PRESTO_NO_OFFSET,
                               "has %zu points, but 'keypoint-swap' names number %jd (from 0)",
                               most, (intmax_t)follow->swaps[i]);
    for (size_t g = 0; g < groups; g++, data += most * point_bytes)
        for (size_t i = 0; i + 1 < follow->swap_count; i += 2) {
            uint8_t *a = data + (size_t)follow->swaps[i] * point_bytes;
            uint8_t *b = data + (size_t)follow->swaps[i + 1] * point_bytes;
            for (size_t k = 0; k < point_bytes; k++) {
                uint8_t other = a[k];
                a[k] = b[k];
                b[k] = other;
            }
        }
    return PRESTO_OK;
}

presto_status presto__move_points(const presto__moving *moving, presto_tensor *io,
                                  presto_error *err) {
    const presto__follow *follow = moving->follow;
    size_t parts = follow->points.name_count;
    size_t numbers = follow->points_have_visibility ? 3 : 2;
    presto_tensor in[2] = {io[0], io[parts - 1]};
    const presto_tensor_spec *spec = &in[0].spec;
    size_t elements = (size_t)presto_spec_elements(spec);
    for (size_t k = 0; k < parts; k++)
        if (kind_of(in[k].spec.dtype) == NUMBER_NONE)
            return fail_spec(&in[k], "numbers", err);
    if (parts == 1 && elements > 0 &&
        (spec->rank < 1 || elements % numbers != 0 ||
         (spec->rank > 1 && (size_t)spec->dims[spec->rank - 1] != numbers)))
        return fail_spec(&in[0],
                         numbers == 3
                             ? "points [..., 3]"
                             : "points [..., 2] ('keypoint-format: xyv' has three numbers)",
                         err);
    if (parts == 2 && elements != (size_t)presto_spec_elements(&in[1].spec))
        return presto_fail(err, PRESTO_ERR_TYPE, PRESTO_NO_OFFSET, "has not as many x as y");
    for (size_t k = 0; k < parts; k++)
        PRESTO_TRY(take_tensor(moving->context, &io[k], err));
    size_t count = parts == 1 ? elements / numbers : elements;
    size_t y_place = parts == 1 && follow->points_begin_with_y ? 0 : 1;
    for (size_t i = 0; i < count; i++) {
        size_t at_x = parts == 1 ? numbers * i + 1 - y_place : i;
        size_t at_y = parts == 1 ? numbers * i + y_place : i;
        double x = read_number(in[0].data, in[0].spec.dtype, at_x);
        double y = read_number(in[parts - 1].data, in[parts - 1].spec.dtype, at_y);
        double visible = 1;
        if (numbers == 3 && parts == 1)
            visible = read_number(in[0].data, in[0].spec.dtype, numbers * i + 2);
        if (visible != 0 && !move_point(moving->geometry, follow->points_are_normalized, &x, &y) &&
            follow->hides_points)
            x = y = visible = 0;
        write_number((void *)(uintptr_t)io[0].data, io[0].spec.dtype, at_x, x);
        write_number((void *)(uintptr_t)io[parts - 1].data, io[parts - 1].spec.dtype, at_y, y);
        if (numbers == 3 && parts == 1)
            write_number((void *)(uintptr_t)io[0].data, io[0].spec.dtype, numbers * i + 2, visible);
    }
    if (follow->swap_count == 0 || count == 0 || !is_mirrored(&moving->geometry->turn))
        return PRESTO_OK;
    size_t most = spec->rank > 1 ? (size_t)spec->dims[spec->rank - 2] : count;
    return swap_points(follow, io, most, numbers * presto_dtype_bytes(spec->dtype), err);
}

/* ---- what belongs to boxes ---- */

presto_status presto__keep_rows(const presto__moved_boxes *boxes, presto_step_context *context,
                                const presto_tensor *in, presto_tensor *out_out,
                                presto_error *err) {
    const presto_tensor_spec *spec = &in->spec;
    int64_t length = spec->rank == 0 ? 1 : spec->dims[0];
    char text[PRESTO_SPEC_TEXT_BYTES];
    if (boxes->count == 0 || length < 0 || (size_t)length % boxes->count != 0 ||
        (spec->rank != 1 && (size_t)length != boxes->count))
        return presto_fail(err, PRESTO_ERR_TYPE, PRESTO_NO_OFFSET,
                           "is %s, but there are %zu boxes, and it is one of 'box-features'",
                           presto_spec_format(spec, text, sizeof text), boxes->count);
    size_t each = (size_t)length / boxes->count; /* numbers of a box in a list without rows */
    presto_tensor out = {.spec = *spec};
    out.spec.rank = spec->rank == 0 ? 1 : spec->rank;
    out.spec.dims[0] = (int64_t)(boxes->kept_count * each);
    bool is_string = spec->dtype == PRESTO_STRING;
    size_t row_bytes = each * (is_string ? sizeof(presto_span) : presto_dtype_bytes(spec->dtype));
    for (int i = 1; i < spec->rank; i++)
        row_bytes *= (size_t)spec->dims[i];
    void *data;
    PRESTO_TRY(take_memory(context, boxes->kept_count * row_bytes, &data, err));
    uint8_t *to = data;
    const uint8_t *from = is_string ? (const uint8_t *)in->strings : in->data;
    for (size_t i = 0; i < boxes->count; i++) {
        if (!boxes->kept[i])
            continue;
        if (row_bytes > 0)
            memcpy(to, from + i * row_bytes, row_bytes);
        to += row_bytes;
    }
    if (is_string)
        out.strings = data;
    else
        out.data = data;
    *out_out = out;
    return PRESTO_OK;
}
