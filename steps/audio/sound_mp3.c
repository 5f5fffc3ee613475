/* SPDX-License-Identifier: Apache-2.0 */
/*
 * MP3 by libmpg123, out of memory. libsndfile decodes it with the same library, but lets it print
 * what it thinks of damage. All other settings are those of libsndfile, and so are the samples.
 */
#include "audio_internal.h"

#if PRESTO_HAVE_MPG123
#include <mpg123.h>

#if MPG123_API_VERSION < 46
#error "libmpg123 1.27 or newer is needed: older ones have to be initialized"
#endif

#define BLOCK_VALUES 2048

/* ---- the bytes as a file ---- */

static ssize_t file_read(void *user, void *out, size_t bytes) {
    return (ssize_t)presto__sound_bytes_read(user, out, bytes);
}

static off_t file_seek(void *user, off_t offset, int whence) {
    return (off_t)presto__sound_bytes_seek(user, offset, whence);
}

/* ---- sounds ---- */

static presto_status fail_damaged(const presto__sound *sound, int code, presto_error *err) {
    const char *why = code == MPG123_NEW_FORMAT ? "the number of channels changes"
                      : code == MPG123_ERR      ? mpg123_strerror(sound->handle)
                                                : mpg123_plain_strerror(code);
    if (code == MPG123_OUT_OF_MEM)
        return presto_fail(err, PRESTO_ERR_MEMORY, PRESTO_NO_OFFSET, "libmpg123: out of memory");
    return presto_fail(err, PRESTO_ERR_CORRUPT, sound->at, "damaged MP3: %s", why);
}

static int set_up(mpg123_handle *handle, presto__sound *sound) {
    const long flags = MPG123_QUIET | MPG123_FORCE_FLOAT | MPG123_GAPLESS | MPG123_NO_FRANKENSTEIN;
    int code = mpg123_param(handle, MPG123_REMOVE_FLAGS, MPG123_AUTO_RESAMPLE, 0);
    if (code == MPG123_OK)
        code = mpg123_param(handle, MPG123_ADD_FLAGS, flags, 0);
    if (code == MPG123_OK)
        code = mpg123_replace_reader_handle(handle, file_read, file_seek, NULL);
    return code == MPG123_OK ? mpg123_open_handle(handle, sound) : code;
}

presto_status presto__sound_mp3_open(presto__sound *sound, presto_error *err) {
    long rate = 0;
    int encoding, code;
    mpg123_handle *handle = mpg123_new(NULL, &code);
    if (handle == NULL)
        return presto_fail(err, PRESTO_ERR_MEMORY, PRESTO_NO_OFFSET, "libmpg123: %s",
                           mpg123_plain_strerror(code));
    sound->handle = handle;
    code = set_up(handle, sound);
    if (code == MPG123_OK)
        code = mpg123_getformat(handle, &rate, &sound->channels, &encoding);
    /* Where the encoder did not note it, the length would be guessed from the first frame. */
    if (code == MPG123_OK && sound->length == PRESTO__MP3_UNNOTED)
        code = mpg123_scan(handle);
    if (code != MPG123_OK)
        return fail_damaged(sound, code, err);
    if (encoding != MPG123_ENC_FLOAT_32)
        return presto_fail(err, PRESTO_ERR_UNSUPPORTED, PRESTO_NO_OFFSET,
                           "this libmpg123 does not decode to float32");
    off_t length = mpg123_length(handle);
    sound->rate = rate;
    sound->frames =
        length < 0 || sound->length == PRESTO__MP3_SHORT ? UINT64_MAX : (uint64_t)length;
    sound->frames_left = sound->frames;
    return PRESTO_OK;
}

presto_status presto__sound_mp3_read(presto__sound *sound, int16_t *out, size_t frames,
                                     size_t *got_out, presto_error *err) {
    float block[BLOCK_VALUES];
    size_t channels = (size_t)sound->channels;
    size_t wanted = (frames < sound->frames_left ? frames : (size_t)sound->frames_left) * channels;
    size_t done = 0;
    int code = MPG123_OK;
    while (done < wanted && code == MPG123_OK) {
        size_t most = wanted - done < BLOCK_VALUES ? wanted - done : BLOCK_VALUES;
        size_t bytes = 0;
        code = mpg123_read(sound->handle, block, most * sizeof *block, &bytes);
        if (code != MPG123_OK && code != MPG123_DONE)
            return fail_damaged(sound, code, err);
        presto__sound_from_floats(out + done, block, bytes / sizeof *block);
        done += bytes / sizeof *block;
    }
    *got_out = done / channels;
    sound->frames_left -= *got_out;
    return PRESTO_OK;
}

void presto__sound_mp3_close(presto__sound *sound) {
    mpg123_delete(sound->handle); /* closes; NULL is fine */
    sound->handle = NULL;
}

#else

presto_status presto__sound_mp3_open(presto__sound *sound, presto_error *err) {
    (void)sound;
    return presto_fail(err, PRESTO_ERR_UNSUPPORTED, PRESTO_NO_OFFSET,
                       "MP3: this program was built without libmpg123");
}

presto_status presto__sound_mp3_read(presto__sound *sound, int16_t *out, size_t frames,
                                     size_t *got_out, presto_error *err) {
    (void)sound, (void)out, (void)frames, (void)got_out;
    return presto_fail(err, PRESTO_ERR_UNSUPPORTED, PRESTO_NO_OFFSET, "MP3");
}

void presto__sound_mp3_close(presto__sound *sound) {
    (void)sound;
}

#endif
