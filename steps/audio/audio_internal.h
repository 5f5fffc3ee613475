/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Room audio: encoded sound -> samples -> spectrograms. One file a step.
 * May see: base, and of steps/ what is above the rooms. Must not know: files, plans, pipelines.
 * No state but each worker's, no lock.
 */
#ifndef PRESTO_STEPS_AUDIO_INTERNAL_H
#define PRESTO_STEPS_AUDIO_INTERNAL_H

#include "../steps_internal.h"

/* The feature that carries the sampling rate in Hz, an int64 scalar: decode-audio sets it,
 * mel-spectrogram reads it. */
#define PRESTO__AUDIO_RATE "rate"

/* Rates outside are taken for damage. */
#define PRESTO__AUDIO_LEAST_RATE 100
#define PRESTO__AUDIO_MOST_RATE 1000000
#define PRESTO__AUDIO_MOST_CHANNELS 4096

typedef enum presto__sound_kind {
    PRESTO__SOUND_FILE, /* WAV, Ogg: libsndfile */
    PRESTO__SOUND_FLAC, /* also in Ogg: libFLAC */
    PRESTO__SOUND_MP3   /* bare frames: libmpg123 */
} presto__sound_kind;

/* What the encoder of an MP3 noted of its length. */
typedef enum presto__mp3_length {
    PRESTO__MP3_UNNOTED, /* nothing */
    PRESTO__MP3_NOTED,   /* it is right */
    PRESTO__MP3_SHORT    /* it is right, but for a frame at the end that is not there */
} presto__mp3_length;

/* Four bytes that a library reads in place of those that are there. */
typedef struct presto__sound_patch {
    size_t at;
    uint8_t bytes[4];
} presto__sound_patch;

/* A sound in memory. Zero-initialise; closing it may be done twice. */
typedef struct presto__sound {
    /* Set by presto__audio_check. */
    presto_span bytes; /* what to decode; borrowed */
    presto__sound_kind kind;
    presto__sound_patch patches[2];
    size_t patch_count;
    presto__mp3_length length; /* MP3 only */
    /* Set by presto__sound_open. */
    int64_t rate; /* Hz */
    int channels;
    uint64_t frames; /* samples a channel; UINT64_MAX: only the end will tell */
    bool is_float;   /* the file holds floats */
    /* Of the reader. */
    size_t at;            /* in `bytes` */
    uint64_t frames_left; /* MP3: still to be read */
    void *handle;         /* the library's */
} presto__sound;

/**
 * Tell the format by content, and look for an early end and lost parts as far as the container
 * shows them: decoders pass over much of that in silence. FLAC is told by the decoder.
 * sound_out->bytes is what to decode of `in`: tags in front are left out, and of an MP3, also in a
 * WAV, all but its frames, because its decoder would look for more around them.
 * Cost: linear, and only headers are looked at in a whole file.
 * Returns: PRESTO_OK; PRESTO_ERR_CORRUPT (no such format, or an MP3 with a hole);
 *          PRESTO_ERR_TRUNCATED (the container promises more than there is).
 */
presto_status presto__audio_check(presto_span in, presto__sound *sound_out, presto_error *err);

/**
 * Open what presto__audio_check has passed.
 * Returns: PRESTO_OK; PRESTO_ERR_CORRUPT (the library cannot read it; a rate outside the limits);
 *          PRESTO_ERR_MEMORY; PRESTO_ERR_UNSUPPORTED (not in this build).
 */
presto_status presto__sound_open(presto__sound *sound, presto_error *err);

/** The sound's bytes as a file, for a library: reads as fread, by bytes; seeks as fseeko, and tells
 * the new place, or -1 outside. */
size_t presto__sound_bytes_read(presto__sound *sound, void *out, size_t bytes);
int64_t presto__sound_bytes_seek(presto__sound *sound, int64_t offset, int whence);

/**
 * The next `frames` frames, interleaved. *got_out is less only at the end. Loud floats are clipped.
 * Returns: PRESTO_OK; PRESTO_ERR_CORRUPT (damage that the library noticed).
 */
presto_status presto__sound_read(presto__sound *sound, int16_t *out, size_t frames, size_t *got_out,
                                 presto_error *err);

void presto__sound_close(presto__sound *sound);

/* The three above for each kind. Opening sets rate, channels, frames and handle; what has failed to
 * open is closed by the caller. */
presto_status presto__sound_file_open(presto__sound *sound, presto_error *err);
presto_status presto__sound_file_read(presto__sound *sound, int16_t *out, size_t frames,
                                      size_t *got_out, presto_error *err);
void presto__sound_file_close(presto__sound *sound);

/**
 * Can the headers of an Ogg be read? Of Ogg that holds no Vorbis, only the first page is looked at.
 * Returns: PRESTO_OK, also if this build cannot tell; PRESTO_ERR_CORRUPT; PRESTO_ERR_MEMORY.
 */
presto_status presto__sound_vorbis_check(presto_span ogg, presto_error *err);

/** FLAC by its first bytes, bare or in Ogg; in Ogg only. */
bool presto__sound_is_flac(presto_span in);
bool presto__sound_is_ogg_flac(presto_span in);

/* Opening and reading may also be PRESTO_ERR_UNSUPPORTED: rate, channels or depth change midway, or
 * another stream follows. */
presto_status presto__sound_flac_open(presto__sound *sound, presto_error *err);
presto_status presto__sound_flac_read(presto__sound *sound, int16_t *out, size_t frames,
                                      size_t *got_out, presto_error *err);
void presto__sound_flac_close(presto__sound *sound);

presto_status presto__sound_mp3_open(presto__sound *sound, presto_error *err);
presto_status presto__sound_mp3_read(presto__sound *sound, int16_t *out, size_t frames,
                                     size_t *got_out, presto_error *err);
void presto__sound_mp3_close(presto__sound *sound);

/* Samples of floats in [-1, 1): rounded to the nearest, clipped; NaN becomes 0. */
void presto__sound_from_floats(int16_t *out, const float *values, size_t count);

#endif
