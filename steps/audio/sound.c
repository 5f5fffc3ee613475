/* SPDX-License-Identifier: Apache-2.0 */
/* A sound of any kind, within limits. */
#include "audio_internal.h"

static presto_status check_sound(const presto__sound *sound, presto_error *err) {
    if (sound->rate < PRESTO__AUDIO_LEAST_RATE || sound->rate > PRESTO__AUDIO_MOST_RATE)
        return presto_fail(err, PRESTO_ERR_CORRUPT, PRESTO_NO_OFFSET,
                           "a sampling rate of %jd Hz, must be %d to %d", (intmax_t)sound->rate,
                           PRESTO__AUDIO_LEAST_RATE, PRESTO__AUDIO_MOST_RATE);
    if (sound->channels < 1 || sound->channels > PRESTO__AUDIO_MOST_CHANNELS)
        return presto_fail(err, PRESTO_ERR_CORRUPT, PRESTO_NO_OFFSET, "%d channels",
                           sound->channels);
    return PRESTO_OK;
}

presto_status presto__sound_open(presto__sound *sound, presto_error *err) {
    presto_status status = sound->kind == PRESTO__SOUND_MP3 ? presto__sound_mp3_open(sound, err)
                           : sound->kind == PRESTO__SOUND_FLAC
                               ? presto__sound_flac_open(sound, err)
                               : presto__sound_file_open(sound, err);
    if (status == PRESTO_OK)
        status = check_sound(sound, err);
    if (status < 0)
        presto__sound_close(sound);
    return status;
}

presto_status presto__sound_read(presto__sound *sound, int16_t *out, size_t frames, size_t *got_out,
                                 presto_error *err) {
    if (sound->kind == PRESTO__SOUND_MP3)
        return presto__sound_mp3_read(sound, out, frames, got_out, err);
    if (sound->kind == PRESTO__SOUND_FLAC)
        return presto__sound_flac_read(sound, out, frames, got_out, err);
    return presto__sound_file_read(sound, out, frames, got_out, err);
}

void presto__sound_close(presto__sound *sound) {
    if (sound->kind == PRESTO__SOUND_MP3)
        presto__sound_mp3_close(sound);
    else if (sound->kind == PRESTO__SOUND_FLAC)
        presto__sound_flac_close(sound);
    else
        presto__sound_file_close(sound);
}
