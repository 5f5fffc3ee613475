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

/**
 * Tell the format by content, and look for an early end and lost parts as far as the container
 * shows them: decoders pass over much of that in silence. FLAC is told by the decoder.
 * *sound_out is what to decode of `in`: an MP3 without tags and what else is around its frames,
 * where its decoder would look for more, and print what it thinks of it.
 * Cost: linear, and only headers are looked at in a whole file.
 * Returns: PRESTO_OK; PRESTO_ERR_CORRUPT (no such format, or an MP3 with a hole);
 *          PRESTO_ERR_TRUNCATED (the container promises more than there is).
 */
presto_status presto__audio_check(presto_span in, presto_span *sound_out, presto_error *err);

/* An open sound in memory. Zero-initialise; closing it may be done twice. */
typedef struct presto__sound {
    presto_span bytes; /* borrowed */
    int64_t rate;      /* Hz */
    int channels;
    uint64_t frames; /* samples a channel; UINT64_MAX: only the end will tell */
    size_t at;       /* of the reader in `bytes` */
    void *file;      /* the library's handle */
    bool is_float;   /* the file holds floats */
} presto__sound;

/**
 * Open what presto__audio_check has passed.
 * Returns: PRESTO_OK; PRESTO_ERR_CORRUPT (the library cannot read it; a rate outside the limits);
 *          PRESTO_ERR_MEMORY; PRESTO_ERR_UNSUPPORTED (not in this build).
 */
presto_status presto__sound_open(presto__sound *sound, presto_span bytes, presto_error *err);

/**
 * The next `frames` frames, interleaved. *got_out is less only at the end. Loud floats are clipped.
 * Returns: PRESTO_OK; PRESTO_ERR_CORRUPT (damage that the library noticed).
 */
presto_status presto__sound_read(presto__sound *sound, int16_t *out, size_t frames, size_t *got_out,
                                 presto_error *err);

void presto__sound_close(presto__sound *sound);

#endif
