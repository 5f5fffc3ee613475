/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What all of steps/ shares: the descriptors for the registry's table, the built-in pipelines, and
 * small checks for several steps.
 * May see: base. No state, no lock.
 */
#ifndef PRESTO_STEPS_INTERNAL_H
#define PRESTO_STEPS_INTERNAL_H

#include <presto/pipeline.h>

/* The largest output of a single step: 4 GiB. */
#define PRESTO__STEP_MAX_OUTPUT_BYTES ((uint64_t)4 << 30)

extern const presto_step_type presto__step_read_file;
extern const presto_step_type presto__step_index_jpeg;
extern const presto_step_type presto__step_decode_image;
extern const presto_step_type presto__step_resize_image;
extern const presto_step_type presto__step_center_pixels;
extern const presto_step_type presto__step_random_crop;
extern const presto_step_type presto__step_random_resized_crop;
extern const presto_step_type presto__step_color_jitter;
extern const presto_step_type presto__step_greyscale;
extern const presto_step_type presto__step_horizontal_flip;
extern const presto_step_type presto__step_crop_or_pad;
extern const presto_step_type presto__step_pad;
extern const presto_step_type presto__step_normalize;
extern const presto_step_type presto__step_to_layout;
extern const presto_step_type presto__step_cast;
extern const presto_step_type presto__step_filter;
extern const presto_step_type presto__step_decode_npy;
extern const presto_step_type presto__step_pack;
extern const presto_step_type presto__step_extract_text;
extern const presto_step_type presto__step_bpe_encode;
extern const presto_step_type presto__step_aggregate;
extern const presto_step_type presto__step_rms;
extern const presto_step_type presto__step_embed;
extern const presto_step_type presto__step_decode_audio;
extern const presto_step_type presto__step_mel_spectrogram;
extern const presto_step_type presto__step_command;

/* A built-in pipeline: the text of pipelines/NAME.yaml; the table ends with a NULL name. */
typedef struct presto__builtin {
    const char *name;
    const unsigned char *text;
    size_t bytes;
} presto__builtin;
extern const presto__builtin presto__builtins[];

/** Nothing is known of it. */
static inline presto_tensor_spec presto__spec_unknown(void) {
    return (presto_tensor_spec){.dtype = PRESTO_DTYPE_UNKNOWN, .rank = -1};
}

/** Could a value of spec `in`, which may have unknown parts, be one that `want` allows? */
bool presto__spec_could_fit(const presto_tensor_spec *in, const presto_tensor_spec *want);

/** One text, or the bytes of a file. */
extern const presto_tensor_spec presto__text_spec;
/** infer() of steps that turn a text into a text. */
presto_status presto__infer_text(const void *state, const presto_tensor_spec *in,
                                 presto_tensor_spec *out_out, presto_error *err);

/** PRESTO_OK if `in` could fit `want`; else PRESTO_ERR_TYPE "needs WANT, gets IN". */
presto_status presto__spec_expect(const presto_tensor_spec *in, const presto_tensor_spec *want,
                                  presto_error *err);

/**
 * PRESTO_OK if `in` could be [height, width, channels] of uint8 or float32; else PRESTO_ERR_TYPE.
 */
presto_status presto__image_expect(const presto_tensor_spec *in, presto_error *err);

/**
 * PRESTO_OK if `in` could be numbers [height, width, channels] of any dtype, and *spec_out is what
 * is known of them, of rank 3; else PRESTO_ERR_TYPE. For steps that move pixels as they are.
 */
presto_status presto__pixels_expect(const presto_tensor_spec *in, presto_tensor_spec *spec_out,
                                    presto_error *err);

/**
 * A library that the step calls is about to allocate `bytes`: wait until they may be had.
 * PRESTO_ERR_MEMORY: they may not. Once they are freed, presto__step_return() gives them back.
 */
presto_status presto__step_borrow(presto_step_context *context, size_t bytes, presto_error *err);
void presto__step_return(presto_step_context *context, size_t bytes);

/** Is everything known, dtype and all dims? */
bool presto__spec_complete(const presto_tensor_spec *spec);

/** The text of an option, malloc'd, for the state of a step, which outlives its options. One that is
 * not set leaves *text_out. PRESTO_ERR_MEMORY. */
presto_status presto__option_copy(const presto_option *option, char **text_out, presto_error *err);

/** Put "PREFIX: " before the message. */
void presto__error_prefix(presto_error *err, const char *prefix);
/** Put more behind the message, as far as there is room. */
void presto__error_append(presto_error *err, const char *more);

/** An image may be decoded in reduced size if it keeps as much. Both 0: in full size only. */
typedef struct presto__least {
    int64_t side;   /* of the shorter side, in pixels */
    int64_t pixels; /* of the image */
} presto__least;

/** An encoded image, and how it is wanted. */
typedef struct presto__encoded_image {
    presto_span bytes;                  /* borrowed until the decoder is closed */
    int channels;                       /* 0: as stored */
    uint64_t max_bytes;                 /* of its pixels in full size */
    presto__least least;                /* for JPEG */
    bool is_accurate;                   /* for JPEG: JDCT_ISLOW, not JDCT_IFAST */
    const presto_step_context *context; /* asked whether the step is cancelled, until the decoder is
                                           closed; NULL: nobody is */
} presto__encoded_image;

/** Bytes of one pixel, i.e. of the dims after the first two. `spec` is complete, rank >= 2. */
size_t presto__pixel_bytes(const presto_tensor_spec *spec);

/** The image as a part: the whole of it. */
presto_part presto__part_of_whole(const presto_tensor *image);

/** `whole` with height and width of the window. */
presto_tensor_spec presto__window_spec(const presto_tensor_spec *whole,
                                       const presto_window *window);

/** Copy `wanted` out of `in`, which contains it, to rows without gaps at `out`. */
void presto__window_copy(const presto_part *in, const presto_window *wanted, void *out);

/**
 * May kernels for one kind of processor be used? Not with PRESTO_PORTABLE=1 in the environment, which
 * lets tests reach the portable ones. Asked once per worker.
 */
bool presto__use_vectors(void);

/** Are the AVX2 kernels used? Not if the CPU or the build lacks AVX2, nor as above. */
bool presto__use_avx2(void);

/* ---- text_input.c: what steps that take text have in common ---- */

/** Of the option `content`. */
enum { PRESTO__INPUT_TEXT = 0, PRESTO__INPUT_ANY = 1 };
extern const char *const presto__input_contents[];

#define PRESTO__INPUT_HELP                                                                         \
    "text refuses samples whose bytes are another format (JPEG, gzip, Parquet, JSON Lines, ...) "  \
    "or no "                                                                                       \
    "text; any takes all bytes as they are"

/** What a step takes. */
typedef struct presto__input_rules {
    const char *step;        /* its name, for the message */
    const char *needed;      /* "text" */
    bool refuses_json;       /* a JSON object, too */
    bool has_known_encoding; /* so that control characters are no sign */
} presto__input_rules;

/** PRESTO_OK: it may be text. PRESTO_ERR_CORRUPT: what it is instead, and what to do. */
presto_status presto__input_check(presto_span bytes, const presto__input_rules *rules,
                                  presto_error *err);

/**
 * UTF-16 behind a byte order mark as UTF-8, in `buffer`, without the mark; other bytes as they are.
 * A surrogate without its other half becomes U+FFFD. PRESTO_ERR_MEMORY.
 */
presto_status presto__input_utf8(presto_span bytes, presto_buffer *buffer, presto_span *text_out,
                                 presto_error *err);

#endif
