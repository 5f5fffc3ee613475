/* SPDX-License-Identifier: Apache-2.0 */
/*
 * index-jpeg: JPEG bytes -> JPEG bytes of the same image, of which a part can be decoded by itself.
 *
 * The coefficients stay as they are; only their codes are written anew, with a restart marker every
 * few MCUs. An APP9 segment (jpeg_index_internal.h) holds the sizes of the pieces between them. Any
 * decoder reads the file, and passes over that segment.
 *
 * Tables of their own make a file smaller, but a decoder has to prepare them for each file, which
 * takes as long as decoding some KB. So a file gets them only if they save more.
 *
 * What cannot be indexed passes as it is: PNGs, damaged files, and JPEGs that the decoder of
 * jpeg_fast_internal.h would leave to libjpeg-turbo anyway.
 */
#include <stdlib.h>

#include "../pipelines_internal.h"
#include "jpeg_index_internal.h"
#include "jpeg_internal.h"

enum { OPTION_EVERY, OPTION_METADATA, OPTION_COUNT };

static const char *const metadata_choices[] = {"keep", "drop", NULL};
enum { METADATA_DROP = 1 };

static const presto_option_type options[] = {
    [OPTION_EVERY] = {.name = "every",
                      .kind = PRESTO_OPTION_INT,
                      .default_text = "4",
                      .minimum = 1,
                      .maximum = 65535,
                      .unit = "MCUs",
                      .help = "restart markers stand this far apart; an MCU is a block of 16 x 16 "
                              "pixels in most photos. Fewer make files larger and windows faster. "
                              "Very large images have fewer markers"},
    [OPTION_METADATA] = {.name = "metadata",
                         .kind = PRESTO_OPTION_CHOICE,
                         .default_text = "keep",
                         .choices = metadata_choices,
                         .help = "drop leaves out EXIF, color profiles and comments. decode-image "
                                 "needs EXIF for its orient only"},
};

/* Behind SOI and, if there is one, the JFIF header. */
static size_t place_of_index(presto_span jpeg) {
    bool has_header = jpeg.bytes >= 6 && jpeg.data[2] == 0xff && jpeg.data[3] == 0xe0;
    return has_header ? 4 + ((size_t)jpeg.data[4] << 8 | jpeg.data[5]) : 2;
}

bool presto__jpeg_has_index(presto_span bytes) {
    if (!presto__jpeg_probe(bytes))
        return false;
    size_t at = place_of_index(bytes) + 4;
    return bytes.bytes > at + PRESTO__JPEG_INDEX_NAME_BYTES &&
           presto__jpeg_is_index(bytes.data[at - 3],
                                 presto_span_of(bytes.data + at, bytes.bytes - at));
}

#if PRESTO_HAVE_JPEG
#include <setjmp.h>
#include <stdio.h>

#include <jpeglib.h>

/* Tables of its own must save as much. */
#define LEAST_SAVED_BYTES 8192
/* Of an image's pixels. Its coefficients, which libjpeg keeps meanwhile, take twice as much. */
#define MOST_PIXEL_BYTES ((uint64_t)128 << 20)

typedef struct transcoder {
    struct jpeg_decompress_struct in;
    struct jpeg_compress_struct out;
    struct jpeg_error_mgr errors;
    jmp_buf escape;
    unsigned char *data; /* malloc'ed by libjpeg */
    unsigned long bytes;
} transcoder;

typedef struct index_state {
    unsigned every;
    bool keeps_metadata;
} index_state;

typedef struct index_worker {
    presto__jpeg_fast *fast;
    transcoder transcoder;
    uint8_t index[PRESTO__JPEG_INDEX_MOST_BYTES];
} index_worker;

/* Any warning gives the file up, too. */
_Noreturn static void give_up(j_common_ptr cinfo) {
    transcoder *t = cinfo->client_data;
    longjmp(t->escape, 1);
}

static void on_message(j_common_ptr cinfo, int level) {
    if (level < 0)
        give_up(cinfo);
}

static void close_transcoder(transcoder *t) {
    jpeg_destroy_compress(&t->out);
    jpeg_destroy_decompress(&t->in);
}

static void copy_metadata(transcoder *t) {
    for (jpeg_saved_marker_ptr m = t->in.marker_list; m != NULL; m = m->next) {
        bool is_written = (t->out.write_JFIF_header && m->marker == JPEG_APP0 &&
                           m->data_length >= 5 && memcmp(m->data, "JFIF", 5) == 0) ||
                          (t->out.write_Adobe_marker && m->marker == JPEG_APP0 + 14 &&
                           m->data_length >= 5 && memcmp(m->data, "Adobe", 5) == 0) ||
                          presto__jpeg_is_index(m->marker, presto_span_of(m->data, m->data_length));
        if (!is_written)
            jpeg_write_marker(&t->out, m->marker, m->data, m->data_length);
    }
}

/* `every` MCUs, or more: as many pieces as the index has room for. */
static unsigned interval_of(const struct jpeg_decompress_struct *in, unsigned every) {
    enum { MOST_PIECES = (UINT16_MAX - 2 - PRESTO__JPEG_INDEX_NAME_BYTES) / 2 };
    bool is_grey = in->num_components == 1;
    unsigned width = DCTSIZE * (is_grey ? 1 : (unsigned)in->max_h_samp_factor);
    unsigned height = DCTSIZE * (is_grey ? 1 : (unsigned)in->max_v_samp_factor);
    uint64_t mcus = (uint64_t)((in->image_width + width - 1) / width) *
                    ((in->image_height + height - 1) / height);
    while (every <= UINT16_MAX / 2 && (mcus + every - 1) / every > MOST_PIECES)
        every *= 2;
    return every;
}

/* Leaves the file in t->data. */
static bool transcode(transcoder *t, presto_span in, const index_state *state, bool optimizes) {
    memset(&t->in, 0, sizeof t->in);
    memset(&t->out, 0, sizeof t->out);
    t->data = NULL;
    t->bytes = 0;
    t->in.err = t->out.err = jpeg_std_error(&t->errors);
    t->errors.error_exit = give_up;
    t->errors.emit_message = on_message;
    t->in.client_data = t->out.client_data = t;
    if (setjmp(t->escape)) {
        close_transcoder(t);
        free(t->data);
        t->data = NULL;
        return false;
    }
    jpeg_create_decompress(&t->in);
    jpeg_create_compress(&t->out);
    jpeg_mem_src(&t->in, in.data, in.bytes);
    for (int i = 0; state->keeps_metadata && i < 16; i++)
        jpeg_save_markers(&t->in, JPEG_APP0 + i, 0xffff);
    if (state->keeps_metadata)
        jpeg_save_markers(&t->in, JPEG_COM, 0xffff);
    jpeg_read_header(&t->in, TRUE);
    jvirt_barray_ptr *coefficients = jpeg_read_coefficients(&t->in);
    jpeg_copy_critical_parameters(&t->in, &t->out);
    t->out.optimize_coding = optimizes;
    t->out.restart_interval = interval_of(&t->in, state->every);
    jpeg_mem_dest(&t->out, &t->data, &t->bytes);
    jpeg_write_coefficients(&t->out, coefficients);
    copy_metadata(t);
    jpeg_finish_compress(&t->out);
    jpeg_finish_decompress(&t->in);
    close_transcoder(t);
    return true;
}

/* Does the fast decoder take it? */
static bool is_usual(index_worker *worker, presto_span in, presto_tensor_spec *spec_out) {
    const presto__encoded_image image = {.bytes = in, .max_bytes = MOST_PIXEL_BYTES};
    return presto__jpeg_fast_open(worker->fast, &image, spec_out);
}

/* The smaller one, if it is smaller by enough. */
static bool transcode_best(transcoder *t, presto_span in, const index_state *state) {
    if (!transcode(t, in, state, true))
        return false;
    unsigned char *optimized = t->data;
    unsigned long bytes = t->bytes;
    if (transcode(t, in, state, false) && t->bytes < bytes + LEAST_SAVED_BYTES) {
        free(optimized);
        return true;
    }
    free(t->data);
    t->data = optimized;
    t->bytes = bytes;
    return true;
}

/* Puts the index into the new file, which is at t->data. */
static presto_status add_index(presto_step_context *context, presto_span made,
                               presto_span *bytes_io, presto_error *err) {
    index_worker *worker = presto_step_worker(context);
    presto_tensor_spec unused;
    if (!is_usual(worker, made, &unused))
        return PRESTO_OK;
    size_t index_bytes = presto__jpeg_index_write(worker->fast, worker->index);
    if (index_bytes == 0)
        return PRESTO_OK;
    uint8_t *out = presto_step_scratch(context, made.bytes + index_bytes);
    if (out == NULL)
        return presto_fail_memory(err, made.bytes + index_bytes);
    size_t place = place_of_index(made);
    memcpy(out, made.data, place);
    memcpy(out + place, worker->index, index_bytes);
    memcpy(out + place + index_bytes, made.data + place, made.bytes - place);
    *bytes_io = presto_span_of(out, made.bytes + index_bytes);
    return PRESTO_OK;
}

static presto_status index_jpeg(const index_state *state, presto_step_context *context,
                                presto_span *bytes_io, presto_error *err) {
    index_worker *worker = presto_step_worker(context);
    transcoder *t = &worker->transcoder;
    presto_tensor_spec spec;
    if (!presto__jpeg_probe(*bytes_io) || !is_usual(worker, *bytes_io, &spec))
        return PRESTO_OK;
    size_t coefficients = (size_t)(spec.dims[0] * spec.dims[1] * spec.dims[2]) * sizeof(JCOEF);
    PRESTO_TRY(presto__step_borrow(context, coefficients, err));
    bool is_made = transcode_best(t, *bytes_io, state);
    presto__step_return(context, coefficients);
    if (!is_made)
        return PRESTO_OK;
    presto_status status = add_index(context, presto_span_of(t->data, t->bytes), bytes_io, err);
    free(t->data);
    t->data = NULL;
    return status;
}

static presto_status open_worker(const void *state, const void *model, void **worker_out,
                                 presto_error *err) {
    (void)state, (void)model;
    index_worker *worker = calloc(1, sizeof *worker);
    if (worker == NULL)
        return presto_fail_memory(err, sizeof *worker);
    worker->fast = presto__jpeg_fast_new(PRESTO__JPEG_PORTABLE);
    if (worker->fast == NULL) {
        free(worker);
        return presto_fail_memory(err, 0);
    }
    *worker_out = worker;
    return PRESTO_OK;
}

static void close_worker(void *worker) {
    index_worker *w = worker;
    if (w == NULL)
        return;
    presto__jpeg_fast_free(w->fast);
    free(w);
}

static presto_status create(const presto_option *values, void **state_out, presto_error *err) {
    index_state *state = malloc(sizeof *state);
    if (state == NULL)
        return presto_fail_memory(err, sizeof *state);
    *state = (index_state){.every = (unsigned)values[OPTION_EVERY].integer,
                           .keeps_metadata = values[OPTION_METADATA].choice != METADATA_DROP};
    *state_out = state;
    return PRESTO_OK;
}
#endif

static presto_status run(const void *state, presto_step_context *context, const presto_tensor *in,
                         presto_tensor *out_out, presto_error *err) {
    PRESTO_TRY(presto__spec_expect(&in->spec, &presto__text_spec, err));
    presto_span *content = presto_step_scratch(context, sizeof *content);
    if (content == NULL)
        return presto_fail_memory(err, sizeof *content);
    *content = in->strings[0];
#if PRESTO_HAVE_JPEG
    PRESTO_TRY(index_jpeg(state, context, content, err));
#else
    (void)state;
#endif
    out_out->spec = presto__text_spec;
    out_out->strings = content;
    return PRESTO_OK;
}

const presto_step_type presto__step_index_jpeg = {
    .abi = PRESTO_STEP_ABI,
    .name = "index-jpeg",
    .summary = "JPEG bytes, written anew without loss, so that a later crop (random-resized-crop, "
               "random-crop, crop-or-pad) decodes little more than its window. Anything else "
               "passes as it is. It is not run where decode-image follows at once: it is to be "
               "stored. --set seekable=true adds it to a pipeline, where it yields seekable.",
#if PRESTO_HAVE_JPEG
    .create = create,
    .destroy = free,
    .open_worker = open_worker,
    .close_worker = close_worker,
#else
    .unsupported = "built without libjpeg-turbo",
#endif
    .options = options,
    .option_count = OPTION_COUNT,
    .infer = presto__infer_text,
    .run = run,
};
