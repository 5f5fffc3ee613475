/* SPDX-License-Identifier: Apache-2.0 */
/* WAV, FLAC and Ogg by libsndfile, out of memory. */
#include "audio_internal.h"

#if PRESTO_HAVE_SNDFILE
#include <sndfile.h>

#define BLOCK_VALUES PRESTO__AUDIO_MOST_CHANNELS

/* ---- the bytes as a file ---- */

static sf_count_t file_length(void *user) {
    return (sf_count_t)((const presto__sound *)user)->bytes.bytes;
}

static sf_count_t file_seek(sf_count_t offset, int whence, void *user) {
    return presto__sound_bytes_seek(user, offset, whence);
}

static sf_count_t file_read(void *out, sf_count_t count, void *user) {
    return count < 0 ? 0 : (sf_count_t)presto__sound_bytes_read(user, out, (size_t)count);
}

static sf_count_t file_write(const void *data, sf_count_t count, void *user) {
    (void)data, (void)count, (void)user;
    return 0;
}

static sf_count_t file_tell(void *user) {
    return (sf_count_t)((const presto__sound *)user)->at;
}

/* ---- sounds ---- */

static bool is_ogg(presto_span bytes) {
    return bytes.bytes >= 4 && memcmp(bytes.data, "OggS", 4) == 0;
}

presto_status presto__sound_file_open(presto__sound *sound, presto_error *err) {
    static SF_VIRTUAL_IO calls = {file_length, file_seek, file_read, file_write, file_tell};
    SF_INFO info = {0};
    if (is_ogg(sound->bytes))
        PRESTO_TRY(presto__sound_vorbis_check(sound->bytes, err));
    /* Why it fails, libsndfile tells through a variable that all threads share. */
    sound->handle = sf_open_virtual(&calls, SFM_READ, &info, sound);
    if (sound->handle == NULL)
        return presto_fail(err, PRESTO_ERR_CORRUPT, PRESTO_NO_OFFSET,
                           "damaged, or of a kind that libsndfile cannot decode");
    int encoding = info.format & SF_FORMAT_SUBMASK;
    sf_command(sound->handle, SFC_SET_CLIPPING, NULL, SF_TRUE);
    sound->is_float = encoding == SF_FORMAT_FLOAT || encoding == SF_FORMAT_DOUBLE;
    sound->rate = info.samplerate;
    sound->channels = info.channels;
    sound->frames =
        info.frames < 0 || info.frames == SF_COUNT_MAX ? UINT64_MAX : (uint64_t)info.frames;
    return PRESTO_OK;
}

/* libsndfile reads floats as integers without scaling them. */
static sf_count_t read_floats(presto__sound *sound, int16_t *out, sf_count_t frames) {
    float block[BLOCK_VALUES];
    sf_count_t done = 0;
    sf_count_t most = BLOCK_VALUES / sound->channels;
    sf_count_t got = most;
    while (done < frames && got == most) {
        most = frames - done < most ? frames - done : most;
        got = sf_readf_float(sound->handle, block, most);
        presto__sound_from_floats(out + done * sound->channels, block,
                                  (size_t)(got * sound->channels));
        done += got;
    }
    return done;
}

presto_status presto__sound_file_read(presto__sound *sound, int16_t *out, size_t frames,
                                      size_t *got_out, presto_error *err) {
    sf_count_t got = sound->is_float ? read_floats(sound, out, (sf_count_t)frames)
                                     : sf_readf_short(sound->handle, out, (sf_count_t)frames);
    int code = sf_error(sound->handle);
    if (code != SF_ERR_NO_ERROR || got < 0)
        return presto_fail(err, PRESTO_ERR_CORRUPT, sound->at, "damaged sound: %s",
                           sf_error_number(code));
    *got_out = (size_t)got;
    return PRESTO_OK;
}

void presto__sound_file_close(presto__sound *sound) {
    if (sound->handle != NULL)
        sf_close(sound->handle);
    sound->handle = NULL;
}

#else

presto_status presto__sound_file_open(presto__sound *sound, presto_error *err) {
    (void)sound;
    return presto_fail(err, PRESTO_ERR_UNSUPPORTED, PRESTO_NO_OFFSET,
                       "this program was built without libsndfile");
}

presto_status presto__sound_file_read(presto__sound *sound, int16_t *out, size_t frames,
                                      size_t *got_out, presto_error *err) {
    (void)sound, (void)out, (void)frames, (void)got_out;
    return presto_fail(err, PRESTO_ERR_UNSUPPORTED, PRESTO_NO_OFFSET, "sound");
}

void presto__sound_file_close(presto__sound *sound) {
    (void)sound;
}

#endif
