/* SPDX-License-Identifier: Apache-2.0 */
/*
 * decode-image: JPEG or PNG bytes -> uint8 [height, width, channels]. The content decides the
 * format, never the name. The result is that of tf.io.decode_image. If a later step crops, the plan
 * asks for a window only.
 */
#include <stdlib.h>

#include "../../base/content_internal.h"
#include "../geometry_internal.h"
#include "jpeg_internal.h"
#include "orientation_internal.h"
#include "png_internal.h"

enum {
    OPTION_CHANNELS,
    OPTION_ORIENT,
    OPTION_SCALE,
    OPTION_LEAST_SIDE,
    OPTION_LEAST_PIXELS,
    OPTION_DCT,
    OPTION_MAX_BYTES,
    OPTION_ALSO_CHANNELS,
    OPTION_ALSO_BITS,
    OPTION_ALSO_ORIENT,
    OPTION_FOLLOW,
    OPTION_COUNT = OPTION_FOLLOW + PRESTO__FOLLOW_COUNT
};

static const char *const orients[] = {"stored", "exif", NULL};
static const char *const scales[] = {"full", "auto", NULL};
static const char *const dcts[] = {"fast", "accurate", NULL};
static const char *const bits[] = {"8", "16", NULL};
static const char *const also_orients[] = {"image", "stored", NULL};
enum { ORIENT_EXIF = 1, SCALE_AUTO = 1, DCT_ACCURATE = 1 };

static const presto_option_type options[] = {
    [OPTION_CHANNELS] = {.name = "channels",
                         .kind = PRESTO_OPTION_INT,
                         .default_text = "3",
                         .minimum = 0,
                         .maximum = 4,
                         .help = "1 is grey, 3 is RGB, 4 is RGB and alpha (PNG only), 0 is as "
                                 "stored; 2 is none of them"},
    [OPTION_ORIENT] = {.name = "orient",
                       .kind = PRESTO_OPTION_CHOICE,
                       .default_text = "stored",
                       .choices = orients,
                       .help =
                           "exif rotates and mirrors the image upright, as its EXIF orientation "
                           "says (1 to 8, of JPEG and PNG); stored, and damaged EXIF, leave it "
                           "as it is"},
    [OPTION_SCALE] = {.name = "scale",
                      .kind = PRESTO_OPTION_CHOICE,
                      .default_text = "full",
                      .choices = scales,
                      .help = "auto decodes a large JPEG at a half, quarter or eighth of its size "
                              "where a later resize-image or random-resized-crop shrinks it "
                              "anyway. Pixels then differ from those of a full decode: by 43 dB "
                              "(PSNR) behind random-resized-crop, by 24 dB behind resize-image, "
                              "which has no antialias; see docs/pipelines.md"},
    [OPTION_LEAST_SIDE] = {.name = "least-side",
                           .kind = PRESTO_OPTION_INT,
                           .minimum = 1,
                           .maximum = 65535,
                           .unit = "pixels",
                           .help = "for auto: the shorter side stays at least as long; auto sets "
                                   "it for resize-image"},
    [OPTION_LEAST_PIXELS] = {.name = "least-pixels",
                             .kind = PRESTO_OPTION_INT,
                             .minimum = 1,
                             .maximum = 1e10,
                             .unit = "pixels",
                             .help = "for auto: the image keeps at least as many; auto sets it for "
                                     "random-resized-crop"},
    [OPTION_DCT] = {.name = "dct",
                    .kind = PRESTO_OPTION_CHOICE,
                    .default_text = "fast",
                    .choices = dcts,
                    .help = "for JPEG: fast gives the pixels of tf.io.decode_image, accurate those "
                            "of Pillow, torchvision and OpenCV; both take the same time"},
    [OPTION_MAX_BYTES] = {.name = "max-bytes",
                          .kind = PRESTO_OPTION_SIZE,
                          .default_text = "512MiB",
                          .minimum = 1,
                          .maximum = 4294967296.0,
                          .help = "images that would be larger when decoded are errors; while it "
                                  "is decoded, a progressive JPEG takes three times its size"},
    [OPTION_ALSO_CHANNELS] = {.name = "also-channels",
                              .kind = PRESTO_OPTION_INT,
                              .maximum = 4,
                              .help = "of the encoded pictures that 'also' names: 1 takes masks "
                                      "with one value a pixel as they are, grey or a position in "
                                      "a palette; 3, 4 and 0 are as for channels. Not set: 1"},
    [OPTION_ALSO_BITS] = {.name = "also-bits",
                          .kind = PRESTO_OPTION_CHOICE,
                          .choices = bits,
                          .help = "16 gives the masks of one channel as uint16, with all bits of "
                                  "16-bit PNGs. Not set: 8, which refuses those"},
    [OPTION_ALSO_ORIENT] = {.name = "also-orient",
                            .kind = PRESTO_OPTION_CHOICE,
                            .choices = also_orients,
                            .help = "with orient: exif, masks of the stored photo turn as the "
                                    "photo does (image), or stay (stored). Not set: image"},
    [OPTION_FOLLOW] = PRESTO__FOLLOW_OPTIONS,
};

typedef struct decode_state {
    int channels;
    bool orients;
    presto__least least;
    bool is_accurate;
    uint64_t max_bytes;
} decode_state;

typedef enum format { FORMAT_NONE, FORMAT_JPEG, FORMAT_PNG } format;

typedef struct decode_worker {
    presto__jpeg *jpeg;
    presto__png png;
    format open;             /* which of them has an image open */
    presto_tensor_spec spec; /* of the open image, as stored */
    presto__turn turn;       /* makes it upright */
} decode_worker;

static presto_status create(const presto_option *values, void **state_out, presto_error *err) {
    if (values[OPTION_CHANNELS].integer == 2)
        return presto_fail(err, PRESTO_ERR_ARGUMENT, PRESTO_NO_OFFSET,
                           "option 'channels' is 2, must be 0, 1, 3 or 4");
    if (values[OPTION_ALSO_CHANNELS].is_set && values[OPTION_ALSO_CHANNELS].integer == 2)
        return presto_fail(err, PRESTO_ERR_ARGUMENT, PRESTO_NO_OFFSET,
                           "option 'also-channels' is 2, must be 0, 1, 3 or 4");
    if (!values[OPTION_FOLLOW + PRESTO__FOLLOW_ALSO].is_set &&
        (values[OPTION_ALSO_CHANNELS].is_set || values[OPTION_ALSO_BITS].is_set ||
         values[OPTION_ALSO_ORIENT].is_set))
        return presto_fail(err, PRESTO_ERR_ARGUMENT, PRESTO_NO_OFFSET,
                           "'also-channels', 'also-bits' and 'also-orient' belong to 'also', which "
                           "is not set");
    bool scales_down = values[OPTION_SCALE].choice == SCALE_AUTO;
    if (!scales_down && (values[OPTION_LEAST_SIDE].is_set || values[OPTION_LEAST_PIXELS].is_set))
        return presto_fail(err, PRESTO_ERR_ARGUMENT, PRESTO_NO_OFFSET,
                           "'least-side' and 'least-pixels' belong to 'scale: auto'");
    decode_state *state = malloc(sizeof *state);
    if (state == NULL)
        return presto_fail_memory(err, sizeof *state);
    *state = (decode_state){.channels = (int)values[OPTION_CHANNELS].integer,
                            .orients = values[OPTION_ORIENT].choice == ORIENT_EXIF,
                            .is_accurate = values[OPTION_DCT].choice == DCT_ACCURATE,
                            .max_bytes = (uint64_t)values[OPTION_MAX_BYTES].integer};
    if (values[OPTION_LEAST_SIDE].is_set)
        state->least.side = values[OPTION_LEAST_SIDE].integer;
    if (values[OPTION_LEAST_PIXELS].is_set)
        state->least.pixels = values[OPTION_LEAST_PIXELS].integer;
    *state_out = state;
    return PRESTO_OK;
}

static presto_status infer(const void *state, const presto_tensor_spec *in,
                           presto_tensor_spec *out_out, presto_error *err) {
    const decode_state *decode = state;
    PRESTO_TRY(presto__spec_expect(in, &presto__text_spec, err));
    int64_t channels = decode->channels == 0 ? -1 : decode->channels;
    *out_out = (presto_tensor_spec){PRESTO_UINT8, 3, {-1, -1, channels}};
    return PRESTO_OK;
}

static presto_status open_worker(const void *state, const void *model, void **worker_out,
                                 presto_error *err) {
    (void)state, (void)model;
    decode_worker *worker = calloc(1, sizeof *worker);
    if (worker == NULL)
        return presto_fail_memory(err, sizeof *worker);
    worker->jpeg = presto__jpeg_new();
    if (worker->jpeg == NULL) {
        free(worker);
        return presto_fail_memory(err, 0);
    }
    worker->png.use_simd = presto__use_avx2();
    *worker_out = worker;
    return PRESTO_OK;
}

static void close_worker(void *worker) {
    decode_worker *decode = worker;
    if (decode == NULL)
        return;
    presto__jpeg_free(decode->jpeg);
    presto__png_close(&decode->png);
    free(decode);
}

static presto_status fail_other(presto_span in, presto_error *err) {
    const presto__content *content = presto__content_of(in);
    if (in.bytes == 0)
        return presto_fail(err, PRESTO_ERR_TRUNCATED, 0, "the file is empty");
    if (content == NULL)
        return presto_fail(err, PRESTO_ERR_CORRUPT, 0, "neither a JPEG nor a PNG");
    return presto__content_refuse(content, PRESTO__CONTENT_IMAGE, "a JPEG or PNG", err);
}

static presto_status open_image(const decode_state *state, presto_step_context *context,
                                presto_span in, presto_error *err) {
    decode_worker *worker = presto_step_worker(context);
    const presto__encoded_image image = {.bytes = in,
                                         .channels = state->channels,
                                         .max_bytes = state->max_bytes,
                                         .least = state->least,
                                         .is_accurate = state->is_accurate,
                                         .context = context};
    worker->open = FORMAT_NONE;
    worker->turn = presto__turn_of(state->orients ? presto__exif_orientation(in) : 1);
    if (presto__jpeg_probe(in)) {
        if (state->channels == 4)
            return presto_fail(err, PRESTO_ERR_TYPE, PRESTO_NO_OFFSET,
                               "a JPEG has no alpha: 4 channels are for PNG only");
        PRESTO_TRY(presto__jpeg_open(worker->jpeg, &image, &worker->spec, err));
        worker->open = FORMAT_JPEG;
        return PRESTO_OK;
    }
    if (presto__png_probe(in)) {
        PRESTO_TRY(presto__png_open(&worker->png, &image, &worker->spec, err));
        worker->open = FORMAT_PNG;
        return PRESTO_OK;
    }
    return fail_other(in, err);
}

static presto_status take_scratch(presto_step_context *context, size_t bytes, void **data_out,
                                  presto_error *err) {
    *data_out = presto_step_scratch(context, bytes);
    return *data_out != NULL ? PRESTO_OK : presto_fail_memory(err, bytes);
}

/* Memory for decoded pixels: the step's output, unless they are turned into that afterwards. */
static presto_status take_pixels(const decode_worker *worker, presto_step_context *context,
                                 const presto_tensor_spec *spec, void **data_out,
                                 presto_error *err) {
    size_t bytes;
    if (presto__turn_is_none(&worker->turn))
        return presto_step_output(context, spec, data_out, err);
    PRESTO_TRY(presto_spec_bytes(spec, &bytes, err));
    return take_scratch(context, bytes, data_out, err);
}

/* *part is the window of the stored image that has been decoded: `wanted`, or a larger one. */
static presto_status read_window(decode_worker *worker, presto_step_context *context,
                                 const presto_window *wanted, presto_part *part,
                                 presto_error *err) {
    PRESTO_TRY(presto__jpeg_aim(worker->jpeg, wanted, &part->window, err));
    part->tensor.spec = presto__window_spec(&worker->spec, &part->window);
    void *data, *scratch;
    PRESTO_TRY(take_pixels(worker, context, &part->tensor.spec, &data, err));
    PRESTO_TRY(take_scratch(context, presto__jpeg_scratch_bytes(worker->jpeg), &scratch, err));
    part->tensor.data = data;
    return presto__jpeg_read(worker->jpeg, data, scratch, err);
}

static presto_status read_jpeg(decode_worker *worker, presto_step_context *context,
                               const presto_window *wanted, presto_part *part, presto_error *err) {
    size_t coefficients = presto__jpeg_coefficient_bytes(worker->jpeg);
    PRESTO_TRY(presto__step_borrow(context, coefficients, err));
    presto_status status = read_window(worker, context, wanted, part, err);
    presto__jpeg_close(worker->jpeg);
    presto__step_return(context, coefficients);
    return status;
}

/* Rows of a PNG depend on the rows before them, and its checksum covers all: it is always
 * decoded whole. */
static presto_status read_png(decode_worker *worker, presto_step_context *context,
                              presto_part *part, presto_error *err) {
    part->window = (presto_window){0, 0, worker->spec.dims[0], worker->spec.dims[1]};
    part->tensor.spec = worker->spec;
    void *data, *scratch = NULL;
    PRESTO_TRY(take_pixels(worker, context, &worker->spec, &data, err));
    size_t scratch_bytes = presto__png_scratch_bytes(&worker->png);
    if (scratch_bytes > 0)
        PRESTO_TRY(take_scratch(context, scratch_bytes, &scratch, err));
    part->tensor.data = data;
    return presto__png_read(&worker->png, data, scratch, err);
}

/* Closes the image in every case. */
static presto_status read_stored(decode_worker *worker, presto_step_context *context,
                                 const presto_window *wanted, presto_part *part,
                                 presto_error *err) {
    format open = worker->open;
    worker->open = FORMAT_NONE;
    part->whole = worker->spec;
    presto_status status = open == FORMAT_JPEG ? read_jpeg(worker, context, wanted, part, err)
                                               : read_png(worker, context, part, err);
    presto__jpeg_close(worker->jpeg);
    presto__png_close(&worker->png);
    return status;
}

/* `wanted` is a window of the upright image. */
static presto_status read_image(decode_worker *worker, presto_step_context *context,
                                const presto_window *wanted, presto_part *out, presto_error *err) {
    const presto__turn turn = worker->turn;
    if (presto__turn_is_none(&turn))
        return read_stored(worker, context, wanted, out, err);
    const presto_window needed = presto__turn_window(&turn, &worker->spec, wanted);
    presto_part stored = {0};
    PRESTO_TRY(read_stored(worker, context, &needed, &stored, err));
    out->whole = presto__turn_spec(&turn, &stored.whole);
    out->window = *wanted;
    out->tensor.spec = presto__window_spec(&out->whole, wanted);
    void *data;
    PRESTO_TRY(presto_step_output(context, &out->tensor.spec, &data, err));
    presto__turn_copy(&turn, &stored, wanted, data);
    out->tensor.data = data;
    return PRESTO_OK;
}

static presto_status measure(const void *state, presto_step_context *context,
                             const presto_tensor *in, presto_tensor_spec *out_out,
                             presto_error *err) {
    decode_worker *worker = presto_step_worker(context);
    presto_tensor_spec unused;
    PRESTO_TRY(infer(state, &in->spec, &unused, err));
    PRESTO_TRY(open_image(state, context, in->strings[0], err));
    *out_out = presto__turn_spec(&worker->turn, &worker->spec);
    presto__geometry moved = presto__geometry_of(&worker->spec);
    moved.turn = worker->turn;
    moved.window = (presto_window){0, 0, out_out->dims[0], out_out->dims[1]};
    moved.height = out_out->dims[0];
    moved.width = out_out->dims[1];
    presto__step_moved(context, &moved);
    return PRESTO_OK;
}

static presto_status run(const void *state, presto_step_context *context, const presto_tensor *in,
                         presto_tensor *out_out, presto_error *err) {
    presto_tensor_spec spec;
    PRESTO_TRY(measure(state, context, in, &spec, err));
    presto_window whole = {0, 0, spec.dims[0], spec.dims[1]};
    presto_part part = {0};
    PRESTO_TRY(read_image(presto_step_worker(context), context, &whole, &part, err));
    *out_out = part.tensor;
    return PRESTO_OK;
}

static presto_status run_window(const void *state, presto_step_context *context,
                                const presto_part *in, presto_part *out_io, presto_error *err) {
    (void)state, (void)in;
    const presto_window wanted = out_io->window;
    return read_image(presto_step_worker(context), context, &wanted, out_io, err);
}

/* ---- pictures beside the image ---- */

static presto_status decode_plain(decode_worker *worker, presto_step_context *context,
                                  presto_tensor *out_out, presto_error *err) {
    presto_window whole = {0, 0, worker->spec.dims[0], worker->spec.dims[1]};
    presto_part part = {0};
    PRESTO_TRY(read_stored(worker, context, &whole, &part, err));
    *out_out = part.tensor;
    return PRESTO_OK;
}

/* A PNG whose values are classes, not brightness: they are not scaled. */
static presto_status decode_values(decode_worker *worker, bool is_wide,
                                   presto_step_context *context, presto_tensor *out_out,
                                   presto_error *err) {
    presto_tensor_spec spec = worker->spec;
    size_t bytes, packed = presto__png_values_bytes(&worker->png);
    void *data, *scratch;
    spec.dtype = is_wide ? PRESTO_UINT16 : PRESTO_UINT8;
    spec.dims[2] = 1;
    PRESTO_TRY(presto_spec_bytes(&spec, &bytes, err));
    PRESTO_TRY(take_scratch(context, bytes > 0 ? bytes : 1, &data, err));
    PRESTO_TRY(take_scratch(context, packed > 0 ? packed : 1, &scratch, err));
    worker->open = FORMAT_NONE;
    PRESTO_TRY(presto__png_read_values(&worker->png, is_wide, data, scratch, err));
    out_out->spec = spec;
    out_out->data = data;
    return PRESTO_OK;
}

static presto_status widen(presto_step_context *context, presto_tensor *io, presto_error *err) {
    size_t count = (size_t)presto_spec_elements(&io->spec);
    const uint8_t *narrow = io->data;
    void *wide;
    PRESTO_TRY(take_scratch(context, count > 0 ? count * 2 : 1, &wide, err));
    for (size_t i = 0; i < count; i++) {
        uint16_t value = narrow[i];
        memcpy((uint8_t *)wide + 2 * i, &value, 2);
    }
    io->spec.dtype = PRESTO_UINT16;
    io->data = wide;
    return PRESTO_OK;
}

/* One value a pixel. */
static presto_status decode_mask(const presto__follow *follow, decode_worker *worker,
                                 presto_step_context *context, presto_span bytes,
                                 presto_tensor *out_out, presto_error *err) {
    bool is_png = worker->open == FORMAT_PNG;
    presto__png_kind kind = presto__png_kind_of(bytes);
    if (is_png ? !kind.is_palette && !kind.is_grey : worker->spec.dims[2] != 1)
        return presto_fail(err, PRESTO_ERR_TYPE, PRESTO_NO_OFFSET,
                           "has colours, not one value a pixel: say also-channels: 3");
    if (is_png && kind.bits == 16 && !follow->also_wide)
        return presto_fail(err, PRESTO_ERR_TYPE, PRESTO_NO_OFFSET,
                           "has 16 bits a pixel: say also-bits: 16");
    if (is_png && (kind.is_palette || kind.bits == 16))
        return decode_values(worker, follow->also_wide, context, out_out, err);
    PRESTO_TRY(decode_plain(worker, context, out_out, err));
    return follow->also_wide ? widen(context, out_out, err) : PRESTO_OK;
}

presto_status presto__decode_also(const void *state, const presto__moving *moving,
                                  const presto_tensor *in, presto_tensor *out_out,
                                  presto_error *err) {
    const presto__geometry *g = moving->geometry;
    const presto__follow *follow = moving->follow;
    decode_worker *worker = presto_step_worker(moving->context);
    decode_state decode = *(const decode_state *)state;
    decode.channels = (int)follow->also_channels;
    decode.orients = false;
    decode.least = (presto__least){0, 0};
    presto_tensor picture;
    if (in->spec.dtype != PRESTO_STRING || presto_spec_elements(&in->spec) != 1)
        return presto_fail(err, PRESTO_ERR_TYPE, PRESTO_NO_OFFSET,
                           "is no encoded picture: leave it out here, and name it in 'also' of the "
                           "steps behind");
    if (decode.channels == 1) /* as stored: colours are found out */
        decode.channels = presto__png_probe(in->strings[0]) ? 1 : 0;
    PRESTO_TRY(open_image(&decode, moving->context, in->strings[0], err));
    /* Its memory is never the row of the batch: the plan sees to it. */
    presto_status status =
        follow->also_channels == 1
            ? decode_mask(follow, worker, moving->context, in->strings[0], &picture, err)
            : decode_plain(worker, moving->context, &picture, err);
    presto__jpeg_close(worker->jpeg);
    presto__png_close(&worker->png);
    worker->open = FORMAT_NONE;
    if (status < 0)
        return status;
    bool is_stored = picture.spec.dims[0] == g->in_height && picture.spec.dims[1] == g->in_width;
    bool is_upright = picture.spec.dims[0] == g->height && picture.spec.dims[1] == g->width;
    if (!is_stored && !is_upright)
        return presto_fail(err, PRESTO_ERR_TYPE, PRESTO_NO_OFFSET,
                           "has %jd x %jd pixels, but the image has %jd x %jd (height x width)",
                           (intmax_t)picture.spec.dims[0], (intmax_t)picture.spec.dims[1],
                           (intmax_t)g->height, (intmax_t)g->width);
    *out_out = picture;
    if (presto__turn_is_none(&g->turn) || !follow->also_turns || !is_stored) {
        if (is_upright)
            return PRESTO_OK;
        return presto_fail(err, PRESTO_ERR_TYPE, PRESTO_NO_OFFSET,
                           "is not upright as the image: leave out also-orient: stored");
    }
    const presto__also also = {.method = PRESTO__ALSO_NEAREST};
    return presto__move_picture(moving, &also, &picture, out_out, err);
}

static const presto_step_windows windows = {.measure = measure, .run_window = run_window};

const presto_step_type presto__step_decode_image = {
    .abi = PRESTO_STEP_ABI,
    .name = "decode-image",
    .summary =
        "JPEG or PNG (told by content) to uint8 [height, width, channels], the pixels of "
        "tf.io.decode_image: 16-bit PNG is cut to 8 bits, EXIF orientation is ignored unless "
        "asked for.",
#if !PRESTO_HAVE_JPEG && !PRESTO_HAVE_SPNG
    .unsupported = "built without libjpeg-turbo and libspng",
#endif
    .flags = PRESTO_STEP_MOVES,
    .options = options,
    .option_count = OPTION_COUNT,
    .create = create,
    .destroy = free,
    .infer = infer,
    .open_worker = open_worker,
    .close_worker = close_worker,
    .run = run,
    .windows = &windows,
};
