/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Room codec: compression of single records. One const descriptor and one file a codec.
 * May see: base, room frame. Must not know: files, what a record holds.
 * To add a codec, write a file with its descriptor and add a line to codec.c's table.
 */
#ifndef PRESTO_CODEC_INTERNAL_H
#define PRESTO_CODEC_INTERNAL_H

#include <presto/codec.h>
#include <presto/numbers.h>

#include "../records_internal.h"

struct presto_codec {
    presto_codec_spec spec;
    void *state;           /* the codec's contexts, made by open */
    presto_buffer scratch; /* for decoders that learn the size at the end; kept if small */
    /* The caller's, during a call to decompress: where the output goes, and how much at most. */
    presto_arena *arena;
    uint64_t max_bytes;
    size_t last_bytes;      /* size of the last record decoded into scratch, and ... */
    bool steady;            /* ... whether the one before it had the same size */
    presto_buffer filtered; /* for delta: the differences to be compressed */
};

struct presto_codec_type {
    const char *name;
    const char *unsupported;                 /* not NULL: known, but not in this build, for this
                                              * reason */
    int level_min, level_max, level_default; /* all 0: the codec has no levels */
    bool takes_bitshuffle, takes_dictionary, takes_delta;
    bool is_tensorflow; /* every TensorFlow 2 decodes it (tf.io.decode_compressed) */
    uint64_t max_input_bytes;

    /* Make codec->state from codec->spec; NULL if there is none. close accepts a half-built state.
     */
    presto_status (*open)(presto_codec *codec, presto_error *err);
    void (*close)(presto_codec *codec);

    /* Most bytes that compress() writes for `bytes` of input. */
    size_t (*bound)(const presto_codec *codec, size_t bytes);
    /* Compress into out[0, *bytes_io), which has room for bound() bytes. Sets *bytes_io to what was
     * written. */
    presto_status (*compress)(presto_codec *codec, presto_span in, uint8_t *out, size_t *bytes_io,
                              presto_error *err);
    /* As presto_codec_decompress, with codec->arena and codec->max_bytes. */
    presto_status (*decompress)(presto_codec *codec, presto_span in, presto_span *out_out,
                                presto_error *err);
    /* As presto__codec_train; NULL unless takes_dictionary. */
    presto_status (*train)(const presto__codec_samples *samples, size_t max_bytes,
                           presto_buffer *dictionary_out, presto_error *err);
};

extern const presto_codec_type presto__codec_none;
extern const presto_codec_type presto__codec_zlib;
extern const presto_codec_type presto__codec_gzip;
extern const presto_codec_type presto__codec_zstd;
extern const presto_codec_type presto__codec_lz4;
extern const presto_codec_type presto__codec_lz4hc;
extern const presto_codec_type presto__codec_snappy;
extern const presto_codec_type presto__codec_blosc_lz4;
extern const presto_codec_type presto__codec_blosc_zstd;

/* A frame claims to hold `bytes`: check that against the caller's limit, and allocate it. */
presto_status presto__codec_output(presto_codec *codec, uint64_t bytes, uint8_t **out_out,
                                   presto_error *err);

/* Zeroed memory of `bytes` as codec->state. */
presto_status presto__codec_make_state(presto_codec *codec, size_t bytes, presto_error *err);

/* Make room for `bytes` more in codec->scratch, within the limit of codec->arena's owner. */
presto_status presto__codec_reserve_scratch(presto_codec *codec, size_t bytes, presto_error *err);
/* Return a copy of codec->scratch. */
presto_status presto__codec_take_scratch(presto_codec *codec, presto_span *out_out,
                                         presto_error *err);

/*
 * One step of a library's streaming decoder. It moves in->data forward by what it read, sets
 * *room_io to what it wrote to `out`, and *end_out if the frame is complete. Returns NULL, or what
 * is wrong.
 */
typedef const char *presto__codec_step(presto_codec *codec, presto_span *in, uint8_t *out,
                                       size_t *room_io, bool *end_out);

/* Decode a frame of unknown size: call `step` until its end, collect the output in
 * codec->scratch, and return a copy. */
presto_status presto__codec_decode_stream(presto_codec *codec, presto__codec_step *step,
                                          presto_span in, presto_span *out_out, presto_error *err);

/* PRESTO_ERR_CORRUPT with the codec's name. */
presto_status presto__codec_corrupt(const presto_codec *codec, const char *why, presto_error *err);

/* Delta: out[i] = in[i] - in[i - distance], and its inverse in place. */
void presto__delta_encode(const uint8_t *in, size_t bytes, size_t distance, uint8_t *out);
void presto__delta_decode(uint8_t *data, size_t bytes, size_t distance);

#endif
