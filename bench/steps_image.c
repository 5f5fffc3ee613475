/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Image steps beside libjpeg-turbo and libspng, each with the settings that give the same pixels,
 * and beside the kernels of resizing and centering without a plan around them.
 */
#include "steps.h"
#include "steps/pipelines_internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if PRESTO_HAVE_SPNG
#include <spng.h>
#endif

#include "bare_jpeg.h"
#include "steps/image/resize_internal.h"

enum { MIN_SIDE = 256 };

/* ---- decode-image beside the codec's library ---- */

typedef struct decoder {
    const steps_files *photos;
    presto_buffer pixels;
} decoder;

static void *decoder_open(const void *user) {
    decoder *d = calloc(1, sizeof *d);
    if (d == NULL)
        bench_die("out of memory");
    d->photos = user;
    return d;
}

static void decoder_close(void *user) {
    decoder *d = user;
    presto_buffer_done(&d->pixels);
    free(d);
}

static uint8_t *room(decoder *d, size_t bytes) {
    d->pixels.bytes = 0;
    bench_need(presto_buffer_reserve(&d->pixels, bytes, NULL), NULL, "memory");
    return d->pixels.data;
}

static void bare_whole(void *user, size_t number) {
    decoder *d = user;
    bare_jpeg jpeg;
    bare_jpeg_start(&jpeg, d->photos->files[number]);
    size_t stride = (size_t)jpeg.cinfo.output_width * 3, rows = jpeg.cinfo.output_height;
    bare_jpeg_rows(&jpeg, room(d, stride * rows), stride, rows);
    bare_jpeg_end(&jpeg);
}

static void measure_decoding(const steps_settings *set, const char *row, const steps_files *photos,
                             void (*bare_run)(void *state, size_t sample)) {
    steps_plan *plan = steps_plan_new("{name: b, source: {type: files}, steps: [{step: read-file}, "
                                      "{step: decode-image, channels: 3}]}",
                                      1, 2, &steps_string_spec, photos->samples);
    steps_side step = steps_plan_side(plan);
    steps_side bare = {decoder_open, bare_run, decoder_close, photos};
    steps_measure(set, row, photos->count, &step, &bare);
    steps_plan_free(plan);
}

static void jpeg_row(const steps_settings *set, const char *row, size_t count,
                     const char *options) {
    steps_files photos;
    if (!steps_wanted(set, row))
        return;
    steps_make_photos(set, set->quick ? 2 : count, options, &photos);
    measure_decoding(set, row, &photos, bare_whole);
    steps_free_files(&photos);
}

/* ---- windows of JPEGs beside libjpeg-turbo's skip_scanlines and crop_scanline ---- */

/* In the middle, of 43 % of the area: as large as the mean window of random-resized-crop. */
static unsigned window_side(unsigned photo_side) {
    return photo_side * 656 / 1000;
}

static void bare_window(void *user, size_t number) {
    decoder *d = user;
    bare_jpeg jpeg;
    bare_jpeg_start(&jpeg, d->photos->files[number]);
    struct jpeg_decompress_struct *cinfo = &jpeg.cinfo;
    JDIMENSION width = window_side(cinfo->output_width), x = (cinfo->output_width - width) / 2;
    JDIMENSION height = window_side(cinfo->output_height);
    jpeg_crop_scanline(cinfo, &x, &width); /* in whole MCUs */
    jpeg_skip_scanlines(cinfo, (cinfo->output_height - height) / 2);
    size_t stride = (size_t)width * 3;
    bare_jpeg_rows(&jpeg, room(d, stride * height), stride, height);
    bare_jpeg_end(&jpeg);
}

/* The photos as index-jpeg makes them. */
static void index_photos(const steps_files *photos, steps_files *indexed_out) {
    static const char yaml[] = "{name: b, source: {type: files}, steps: [{step: read-file}, "
                               "{step: index-jpeg}]}";
    presto_error err;
    presto_pipeline *pipeline = NULL;
    presto_plan *plan = NULL;
    presto__plan_worker *worker = NULL;
    presto__plan_options options;
    presto__plan_options_defaults(&options);
    options.first_step = 1;
    options.in = &steps_string_spec;
    bench_need(presto__pipeline_parse(presto_span_of_text(yaml), "bench", NULL, &pipeline, &err),
               &err, "pipeline");
    bench_need(presto__plan_new(pipeline, &options, &plan, &err), &err, "plan");
    bench_need(presto__plan_worker_new(plan, NULL, &worker, &err), &err, "worker");
    *indexed_out = (steps_files){.files = calloc(photos->count, sizeof(presto_span)),
                                 .samples = calloc(photos->count, sizeof(presto_tensor)),
                                 .count = photos->count};
    if (indexed_out->files == NULL || indexed_out->samples == NULL)
        bench_die("out of memory");
    for (size_t i = 0; i < photos->count; i++) {
        presto_feature feature = {.name = presto_span_of_text("image"),
                                  .tensor = photos->samples[i]};
        presto_sample sample = {.features = &feature, .feature_count = 1};
        bench_need(presto__plan_run(worker, NULL, &sample, &err), &err, "index-jpeg");
        presto_span made = sample.features[0].tensor.strings[0];
        uint8_t *copy = malloc(made.bytes);
        if (copy == NULL)
            bench_die("out of memory");
        memcpy(copy, made.data, made.bytes);
        indexed_out->files[i] = presto_span_of(copy, made.bytes);
        indexed_out->samples[i] =
            (presto_tensor){.spec = steps_string_spec, .strings = &indexed_out->files[i]};
    }
    presto__plan_worker_free(worker);
    presto__plan_free(plan);
    presto_pipeline_free(pipeline);
}

/* `stored` are what the step reads; libjpeg-turbo reads the photos. */
static void measure_window(const steps_settings *set, const char *row, const steps_files *stored,
                           const steps_files *photos) {
    char yaml[256];
    snprintf(yaml, sizeof yaml,
             "{name: b, source: {type: files}, steps: [{step: read-file}, {step: decode-image, "
             "channels: 3}, {step: crop-or-pad, height: %u, width: %u}]}",
             window_side(set->quick ? 48 : 375), window_side(set->quick ? 64 : 500));
    steps_plan *plan = steps_plan_new(yaml, 1, 3, &steps_string_spec, stored->samples);
    steps_side step = steps_plan_side(plan);
    steps_side bare = {decoder_open, bare_window, decoder_close, photos};
    steps_measure(set, row, photos->count, &step, &bare);
    steps_plan_free(plan);
}

static void window_rows(const steps_settings *set) {
    const char *usual = "decode-image, a window of 43 %, JPEG, 500 x 375";
    const char *seekable = "decode-image, a window of 43 %, indexed JPEG, 500 x 375";
    steps_files photos, indexed;
    if (!steps_wanted(set, usual) && !steps_wanted(set, seekable))
        return;
    steps_make_photos(set, set->quick ? 2 : 24, "", &photos);
    index_photos(&photos, &indexed);
    if (steps_wanted(set, usual))
        measure_window(set, usual, &photos, &photos);
    if (steps_wanted(set, seekable))
        measure_window(set, seekable, &indexed, &photos);
    steps_free_files(&indexed);
    steps_free_files(&photos);
}

#if PRESTO_HAVE_SPNG
static void need_spng(int code, const char *what) {
    if (code != SPNG_OK)
        bench_die("%s: %s", what, spng_strerror(code));
}

static void bare_png(void *user, size_t number) {
    decoder *d = user;
    presto_span file = d->photos->files[number];
    spng_ctx *context = spng_ctx_new(0);
    size_t bytes;
    need_spng(spng_set_png_buffer(context, file.data, file.bytes), "PNG");
    need_spng(spng_decoded_image_size(context, SPNG_FMT_RGB8, &bytes), "PNG");
    need_spng(spng_decode_image(context, room(d, bytes), bytes, SPNG_FMT_RGB8, 0), "PNG");
    spng_ctx_free(context);
}

static presto_span encode_png8(const uint8_t *pixels, const struct spng_ihdr *header) {
    spng_ctx *context = spng_ctx_new(SPNG_CTX_ENCODER);
    size_t bytes;
    int code;
    need_spng(spng_set_option(context, SPNG_ENCODE_TO_BUFFER, 1), "PNG");
    need_spng(spng_set_ihdr(context, (struct spng_ihdr *)(uintptr_t)header), "PNG");
    need_spng(spng_encode_image(context, pixels, (size_t)header->width * header->height * 3,
                                SPNG_FMT_PNG, SPNG_ENCODE_FINALIZE),
              "PNG");
    void *data = spng_get_png_buffer(context, &bytes, &code);
    need_spng(code, "PNG");
    spng_ctx_free(context);
    return presto_span_of(data, bytes);
}

/* The same pictures with 8 bits a channel. */
static void turn_to_8_bits(steps_files *photos) {
    for (size_t i = 0; i < photos->count; i++) {
        decoder *d = decoder_open(photos);
        struct spng_ihdr header;
        bare_png(d, i);
        spng_ctx *context = spng_ctx_new(0);
        need_spng(spng_set_png_buffer(context, photos->files[i].data, photos->files[i].bytes),
                  "PNG");
        need_spng(spng_get_ihdr(context, &header), "PNG");
        spng_ctx_free(context);
        header.bit_depth = 8;
        free((void *)(uintptr_t)photos->files[i].data);
        photos->files[i] = encode_png8(d->pixels.data, &header);
        decoder_close(d);
    }
}

static void png_rows(const steps_settings *set) {
    const char *deep = "decode-image, PNG of 16 bits, 2592 x 1728";
    const char *flat = "decode-image, PNG of 8 bits, 2592 x 1728";
    steps_files photos;
    if (!steps_wanted(set, deep) && !steps_wanted(set, flat))
        return;
    steps_make_photos(set, 2, "--width 2592 --height 1728 --format png16", &photos);
    if (steps_wanted(set, deep))
        measure_decoding(set, deep, &photos, bare_png);
    turn_to_8_bits(&photos);
    if (steps_wanted(set, flat))
        measure_decoding(set, flat, &photos, bare_png);
    steps_free_files(&photos);
}
#endif

/* ---- resize-image and center-pixels beside their kernels ---- */

typedef struct pixel_set {
    presto_tensor image;   /* uint8 [height, width, 3] */
    int64_t height, width; /* after resizing */
} pixel_set;

typedef struct kernel {
    const pixel_set *pixels;
    presto__resizer resizer;
    uint8_t *out;
} kernel;

static void *kernel_open(const void *user) {
    kernel *k = calloc(1, sizeof *k);
    if (k == NULL)
        bench_die("out of memory");
    k->pixels = user;
    k->resizer.use_avx2 = presto__use_avx2();
    k->out = malloc((size_t)(k->pixels->height * k->pixels->width) * 3);
    if (k->out == NULL)
        bench_die("out of memory");
    return k;
}

static void kernel_close(void *user) {
    kernel *k = user;
    presto__resizer_done(&k->resizer);
    free(k->out);
    free(k);
}

static void bare_resize(void *user, size_t number) {
    kernel *k = user;
    (void)number;
    presto_part in = presto__part_of_whole(&k->pixels->image);
    int64_t height = k->pixels->height, width = k->pixels->width;
    const presto__resized whole = {height, width, {0, 0, height, width}};
    bench_need(presto__resize(&k->resizer, &in, &whole, k->out, NULL), NULL, "resize");
}

static void resize_row(const steps_settings *set, const char *row, int64_t width, int64_t height) {
    if (!steps_wanted(set, row))
        return;
    int64_t least = width < height ? width : height;
    pixel_set pixels = {.image.spec = {PRESTO_UINT8, 3, {height, width, 3}},
                        .height = height * MIN_SIDE / least,
                        .width = width * MIN_SIDE / least};
    size_t bytes = presto_tensor_bytes(&pixels.image);
    uint8_t *data = malloc(bytes);
    if (data == NULL)
        bench_die("out of memory");
    for (size_t i = 0; i < bytes; i++)
        data[i] = (uint8_t)(i * 2654435761u >> 13);
    pixels.image.data = data;
    steps_plan *plan = steps_plan_new("{name: b, source: {type: files}, steps: [{step: read-file}, "
                                      "{step: decode-image}, {step: resize-image, min-side: 256}]}",
                                      2, 3, &pixels.image.spec, &pixels.image);
    steps_side step = steps_plan_side(plan);
    steps_side bare = {kernel_open, bare_resize, kernel_close, &pixels};
    steps_measure(set, row, 1, &step, &bare);
    steps_plan_free(plan);
    free(data);
}

void steps_image(const steps_settings *set) {
    jpeg_row(set, "decode-image, JPEG, 500 x 375", 24, "");
    jpeg_row(set, "decode-image, JPEG, 2592 x 1728", 4, "--width 2592 --height 1728 --quality 25");
    window_rows(set);
#if PRESTO_HAVE_SPNG
    png_rows(set);
#endif
    resize_row(set, "resize-image, 500 x 375 to 341 x 256", 500, 375);
    resize_row(set, "resize-image, 2592 x 1728 to 384 x 256", 2592, 1728);
}
