/* SPDX-License-Identifier: Apache-2.0 */
/* JPEGs at random, and what is asked of them. */
#ifndef PRESTO_TESTS_JPEG_DESIGN_H
#define PRESTO_TESTS_JPEG_DESIGN_H

#include "jpeg_check.h"
#include "jpeg_made.h"

enum { JPEG_MAX_SIDE = 200 };

typedef enum jpeg_content {
    JPEG_SMOOTH,
    JPEG_NOISE,
    JPEG_EXTREMES,
    JPEG_PLAIN,
    JPEG_CONTENTS
} jpeg_content;

typedef struct jpeg_design {
    unsigned width, height;
    int h, v; /* sampling factors of the first component */
    int quality;
    bool is_grey, is_rgb, is_optimized, is_baseline, has_jfif, has_adobe;
    unsigned restart;
    jpeg_content content;
    unsigned coarse; /* quantization is multiplied by it */
} jpeg_design;

static inline jpeg_design jpeg_draw_design(presto_rng *rng, unsigned max_side) {
    static const int samplings[][2] = {{2, 2}, {2, 2}, {2, 1}, {1, 1}, {1, 2}};
    const int *sampling = samplings[jpeg_below(rng, 5)];
    jpeg_design d = {.width = 1 + jpeg_below(rng, max_side),
                     .height = 1 + jpeg_below(rng, max_side),
                     .h = sampling[0],
                     .v = sampling[1],
                     .quality = 1 + (int)jpeg_below(rng, 100),
                     .is_grey = jpeg_below(rng, 8) == 0,
                     .is_optimized = jpeg_below(rng, 2) == 0,
                     .is_baseline = jpeg_below(rng, 2) == 0,
                     .has_jfif = jpeg_below(rng, 4) != 0,
                     .has_adobe = jpeg_below(rng, 4) == 0,
                     .restart = jpeg_below(rng, 3) == 0 ? 1 + jpeg_below(rng, 20) : 0,
                     .content = (jpeg_content)jpeg_below(rng, JPEG_CONTENTS),
                     .coarse = jpeg_below(rng, 6) == 0 ? 1 + jpeg_below(rng, 40) : 1};
    d.is_rgb = !d.is_grey && jpeg_below(rng, 10) == 0;
    return d;
}

static inline void jpeg_draw_row(const jpeg_design *d, presto_rng *rng, unsigned y, unsigned values,
                                 uint8_t *row) {
    for (unsigned i = 0; i < values; i++) {
        unsigned smooth = (i / 23 * 77 + y / 9 * 53) % 200 + jpeg_below(rng, 20);
        switch (d->content) {
        case JPEG_SMOOTH:
            row[i] = (uint8_t)smooth;
            break;
        case JPEG_NOISE:
            row[i] = (uint8_t)jpeg_below(rng, 256);
            break;
        case JPEG_EXTREMES:
            row[i] = (uint8_t)((i / 7 + y / 5) % 2 == 0 ? 0 : 255);
            break;
        case JPEG_PLAIN:
        case JPEG_CONTENTS:
        default:
            row[i] = 77;
            break;
        }
    }
}

/* malloc'ed by libjpeg */
static inline presto_span jpeg_encode(const jpeg_design *d, presto_rng *rng) {
    jpeg_made made;
    struct jpeg_compress_struct *cinfo = &made.cinfo;
    jpeg_made_begin(&made, d->width, d->height, d->is_grey ? 1 : 3);
    if (d->is_rgb)
        jpeg_set_colorspace(cinfo, JCS_RGB);
    jpeg_set_quality(cinfo, d->quality, d->is_baseline);
    for (int i = 0; d->coarse > 1 && i < 2; i++)
        for (int k = 0; cinfo->quant_tbl_ptrs[i] != NULL && k < DCTSIZE2; k++)
            cinfo->quant_tbl_ptrs[i]->quantval[k] =
                (UINT16)(cinfo->quant_tbl_ptrs[i]->quantval[k] * d->coarse % 65535 + 1);
    if (!d->is_rgb && !d->is_grey) {
        cinfo->comp_info[0].h_samp_factor = d->h;
        cinfo->comp_info[0].v_samp_factor = d->v;
    }
    cinfo->write_JFIF_header = d->has_jfif;
    cinfo->write_Adobe_marker = d->has_adobe;
    cinfo->optimize_coding = d->is_optimized;
    cinfo->restart_interval = d->restart;
    jpeg_start_compress(cinfo, TRUE);
    uint8_t row[JPEG_MAX_SIDE * 3];
    JSAMPROW rows[] = {row};
    for (unsigned y = 0; y < d->height; y++) {
        jpeg_draw_row(d, rng, y, d->width * (unsigned)cinfo->input_components, row);
        jpeg_write_scanlines(cinfo, rows, 1);
    }
    return jpeg_made_end(&made);
}

static inline void jpeg_describe(const jpeg_design *d, const jpeg_request *request, char *text,
                                 size_t bytes) {
    snprintf(text, bytes,
             "%u x %u, %d x %d, quality %d, restart %u, content %d, coarse %u, grey %d, rgb %d: "
             "%d channels, by %u, accurate %d",
             d->width, d->height, d->h, d->v, d->quality, d->restart, (int)d->content, d->coarse,
             d->is_grey, d->is_rgb, request->channels, request->by, request->is_accurate);
}

static inline presto_window jpeg_draw_window(presto_rng *rng, const jpeg_result *of) {
    presto_window window = {.y = jpeg_below(rng, (unsigned)of->height),
                            .x = jpeg_below(rng, (unsigned)of->width)};
    window.height = 1 + jpeg_below(rng, (unsigned)(of->height - (size_t)window.y));
    window.width = 1 + jpeg_below(rng, (unsigned)(of->width - (size_t)window.x));
    return window;
}

static inline jpeg_request jpeg_draw_request(presto_rng *rng, const jpeg_design *d) {
    static const unsigned reductions[] = {1, 1, 1, 2, 4, 8};
    return (jpeg_request){.channels = !d->is_rgb && jpeg_below(rng, 6) == 0 ? 1 : 3,
                          .by = jpeg_reduction(d->width, d->height, reductions[jpeg_below(rng, 6)]),
                          .is_accurate = jpeg_below(rng, 2) == 0};
}

#endif
