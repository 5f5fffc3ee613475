/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The audio steps on the sounds of tests/golden/audio, against libsndfile and TensorFlow; MP3 in
 * every wrapping; damage; decode-audio's options.
 */
#include <jansson.h>
#include <math.h>
#include <presto/rng.h>
#include <unistd.h>
#include <zlib.h>

#include "../../../base/tensor_internal.h"
#include "audio_check.h"

#define GOLDEN(path) PRESTO_GOLDEN_DIR "/audio/" path
/* In log space. Bands far below the loudest of their frame have less precision in float32, here and
 * in TensorFlow. */
#define MEL_TOLERANCE 1e-4

/* ---- running the steps ---- */

static presto_status decode(stage *s, const char *steps, presto_span bytes, presto_error *err) {
    ck_assert_ok(stage_open(s, steps, 1, &string_spec, err), err);
    presto_tensor in = {.spec = string_spec, .strings = &bytes};
    return stage_run(s, &in, 0, err);
}

static int64_t rate_of(const stage *s) {
    size_t at = presto__sample_find(&s->sample, presto_span_of_text("rate"));
    ck_assert_uint_ne(at, SIZE_MAX);
    const presto_feature *feature = &s->sample.features[at];
    ck_assert_int_eq(feature->encoding, PRESTO_ENCODE_INT64);
    ck_assert_int_eq(feature->tensor.spec.dtype, PRESTO_INT64);
    ck_assert_int_eq(feature->tensor.spec.rank, 0);
    int64_t rate;
    memcpy(&rate, feature->tensor.data, sizeof rate);
    return rate;
}

/* ---- golden sounds ---- */

static json_t *read_manifest(void) {
    json_error_t json_err;
    json_t *manifest = json_load_file(GOLDEN("manifest.json"), 0, &json_err);
    ck_assert_msg(manifest != NULL, "%s", json_err.text);
    return manifest;
}

static uint8_t *read_golden(const char *name, size_t *bytes) {
    char path[600];
    snprintf(path, sizeof path, GOLDEN("%s"), name);
    return presto_check_read_file(path, bytes);
}

/* A .npy array in a zlib stream: its data. */
static uint8_t *read_array(json_t *entry, const presto_tensor *got) {
    size_t packed_bytes;
    size_t want_bytes = presto_tensor_bytes(got);
    json_t *shape = json_object_get(entry, "shape");
    const char *name = json_string_value(json_object_get(entry, "file"));
    ck_assert_int_eq(got->spec.rank, (int)json_array_size(shape));
    for (int i = 0; i < got->spec.rank; i++)
        ck_assert_msg(got->spec.dims[i] == json_integer_value(json_array_get(shape, (size_t)i)),
                      "%s: dim %d is %jd", name, i, (intmax_t)got->spec.dims[i]);
    uint8_t *packed = read_golden(name, &packed_bytes);
    uLongf bytes = (uLongf)want_bytes + 4096;
    uint8_t *array = malloc(bytes);
    ck_assert_int_eq(uncompress(array, &bytes, packed, packed_bytes), Z_OK);
    free(packed);
    size_t header = 10 + (size_t)array[8] + ((size_t)array[9] << 8);
    ck_assert_uint_eq(bytes, header + want_bytes);
    memmove(array, array + header, want_bytes);
    return array;
}

static void check_samples(json_t *sound, presto_span bytes) {
    const char *name = json_string_value(json_object_get(sound, "file"));
    stage s;
    presto_error err;
    ck_assert_ok(decode(&s, "{step: decode-audio}", bytes, &err), &err);
    const presto_tensor *got = stage_output(&s);
    uint8_t *want = read_array(json_object_get(sound, "decoded"), got);
    ck_assert_int_eq(rate_of(&s), json_integer_value(json_object_get(sound, "rate")));
    int most = (int)json_integer_value(json_object_get(sound, "most"));
    for (uint64_t i = 0; i < presto_spec_elements(&got->spec); i++) {
        int16_t a, b;
        memcpy(&a, (const uint8_t *)got->data + 2 * i, 2);
        memcpy(&b, want + 2 * i, 2);
        ck_assert_msg(abs(a - b) <= most, "%s: sample %ju is %d, not %d", name, (uintmax_t)i, a, b);
    }
    free(want);
    stage_close(&s);
}

static void check_spectrogram(json_t *sound, presto_span bytes) {
    const char *name = json_string_value(json_object_get(sound, "file"));
    stage s;
    presto_error err;
    ck_assert_ok(decode(&s, "{step: decode-audio}, {step: mel-spectrogram}", bytes, &err), &err);
    const presto_tensor *got = stage_output(&s);
    uint8_t *want = read_array(json_object_get(sound, "spectrogram"), got);
    double worst = 0;
    for (uint64_t i = 0; i < presto_spec_elements(&got->spec); i++) {
        float a, b;
        memcpy(&a, (const uint8_t *)got->data + 4 * i, 4);
        memcpy(&b, want + 4 * i, 4);
        double d = fabs((double)a - (double)b);
        worst = d <= worst ? worst : d;
    }
    printf("%s: the spectrogram differs by %g\n", name, worst);
    ck_assert_msg(worst <= MEL_TOLERANCE, "%s differs by %g", name, worst);
    free(want);
    stage_close(&s);
}

START_TEST(sounds_are_those_of_libsndfile_and_spectrograms_those_of_tensorflow) {
    json_t *manifest = read_manifest();
    size_t index, compared = 0;
    json_t *sound;
    json_array_foreach(json_object_get(manifest, "sounds"), index, sound) {
        if (json_object_get(sound, "error") != NULL)
            continue;
        size_t bytes;
        uint8_t *content = read_golden(json_string_value(json_object_get(sound, "file")), &bytes);
        check_samples(sound, presto_span_of(content, bytes));
        if (json_object_get(sound, "spectrogram") != NULL)
            check_spectrogram(sound, presto_span_of(content, bytes));
        free(content);
        compared++;
    }
    ck_assert_uint_ge(compared, 29);
    json_decref(manifest);
}
END_TEST

START_TEST(bad_sounds_are_refused_with_a_reason) {
    json_t *manifest = read_manifest();
    size_t index, compared = 0;
    json_t *sound;
    json_array_foreach(json_object_get(manifest, "sounds"), index, sound) {
        const char *want = json_string_value(json_object_get(sound, "error"));
        if (want == NULL)
            continue;
        size_t bytes;
        const char *name = json_string_value(json_object_get(sound, "file"));
        uint8_t *content = read_golden(name, &bytes);
        stage s;
        presto_error err;
        presto_status status =
            decode(&s, "{step: decode-audio}", presto_span_of(content, bytes), &err);
        ck_assert_msg(strcmp(presto_status_name(status), want) == 0, "%s: %s: %s", name,
                      presto_status_name(status), err.message);
        ck_assert_msg(strncmp(err.message, "decode-audio: ", 14) == 0, "%s", err.message);
        stage_close(&s);
        free(content);
        compared++;
    }
    ck_assert_uint_ge(compared, 17);
    json_decref(manifest);
}
END_TEST

START_TEST(every_cut_of_a_sound_is_an_error) {
    static const char *const names[] = {"pcm16-8k.wav",    "pcm16-16k.flac", "cbr-48k.mp3",
                                        "vbr-id3-22k.mp3", "vorbis-16k.ogg", "opus-48k.ogg"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        size_t bytes;
        uint8_t *whole = read_golden(names[i], &bytes);
        presto_rng rng = test_rng(i);
        for (int round = 0; round < 150; round++) {
            /* Of an MP3, decoders leave out a last frame that does not end, and so do we. */
            size_t last_frame = strstr(names[i], ".mp3") != NULL ? 1500 : 0;
            size_t cut = presto_rng_below(&rng, (uint64_t)(bytes - last_frame));
            uint8_t *part = presto_check_copy(presto_span_of(whole, cut));
            stage s;
            presto_error err;
            presto_status status =
                decode(&s, "{step: decode-audio}", presto_span_of(part, cut), &err);
            ck_assert_msg(status == PRESTO_ERR_TRUNCATED || status == PRESTO_ERR_CORRUPT,
                          "%s cut at %zu: %s", names[i], cut, presto_status_name(status));
            stage_close(&s);
            free(part);
        }
        free(whole);
    }
}
END_TEST

/* ---- Vorbis ---- */

/* libsndfile loses memory on what it cannot read of them, so it must not get them. */
START_TEST(damaged_headers_of_vorbis_never_reach_libsndfile) {
    enum { HEADERS_BYTES = 3446, CHECKSUM_AT = 22, CHANNELS_AT = 39, ROUNDS = 100 };
    static const uint8_t checksum[4] = {0x05, 0x90, 0x5c,
                                        0x5c}; /* of the first page, without channels */
    presto_rng rng = test_rng(78);
    size_t bytes;
    uint8_t *content = read_golden("vorbis-16k.ogg", &bytes);
    uint8_t *damaged = presto_check_copy(presto_span_of(content, bytes));
    for (int round = 0; round <= ROUNDS; round++) {
        size_t at = (size_t)presto_rng_below(&rng, HEADERS_BYTES);
        memcpy(damaged, content, bytes);
        if (round < ROUNDS) {
            damaged[at] ^= (uint8_t)(1U << presto_rng_below(&rng, 8));
        } else {
            damaged[CHANNELS_AT] = 0;
            memcpy(damaged + CHECKSUM_AT, checksum, sizeof checksum);
        }
        stage s;
        presto_error err;
        presto_status status =
            decode(&s, "{step: decode-audio}", presto_span_of(damaged, bytes), &err);
        ck_assert_msg(status == PRESTO_ERR_TRUNCATED || status == PRESTO_ERR_CORRUPT,
                      "a bit at %zu: %s", at, presto_status_name(status));
        ck_assert_msg(strstr(err.message, "libsndfile") == NULL, "a bit at %zu: %s", at,
                      err.message);
        stage_close(&s);
    }
    free(damaged);
    free(content);
}
END_TEST

/* ---- MP3 ---- */

/* The samples of `file`; `count_out` of them. */
static int16_t *decode_copy(presto_span file, size_t *count_out) {
    stage s;
    presto_error err;
    ck_assert_ok(decode(&s, "{step: decode-audio}", file, &err), &err);
    int16_t *samples = (int16_t *)(void *)rig_copy(stage_output(&s));
    *count_out = (size_t)stage_output(&s)->spec.dims[0];
    stage_close(&s);
    return samples;
}

static size_t find_text(presto_span in, const char *text) {
    for (size_t at = 0; at + strlen(text) <= in.bytes; at++)
        if (memcmp(in.data + at, text, strlen(text)) == 0)
            return at;
    ck_abort_msg("no %s", text);
}

START_TEST(without_the_encoders_note_all_frames_are_decoded) {
    enum { SAMPLES_A_FRAME = 576, HEADER_BYTES = 13, DELAY_AT = 141, DECODER_DELAY = 529 };
    size_t bytes, count, bare_count;
    uint8_t *content = read_golden("vbr-id3-22k.mp3", &bytes);
    presto_span file = presto_span_of(content, bytes);
    size_t note = find_text(file, "Xing");
    size_t first = note - HEADER_BYTES;
    size_t second = note;
    while (content[second] != 0xff || content[second + 1] != content[first + 1])
        second++;
    size_t frames = (size_t)content[note + 10] << 8 | content[note + 11];
    size_t delay = (size_t)content[note + DELAY_AT] << 4 | content[note + DELAY_AT + 1] >> 4;
    int16_t *whole = decode_copy(file, &count);
    int16_t *bare = decode_copy(presto_span_of(content + second, bytes - second), &bare_count);
    ck_assert_uint_eq(bare_count, frames * SAMPLES_A_FRAME);
    size_t skipped = delay + DECODER_DELAY;
    ck_assert_uint_le(skipped + count, bare_count);
    ck_assert_mem_eq(bare + skipped, whole, count * sizeof *whole);
    free(bare);
    free(whole);
    free(content);
}
END_TEST

static void put_le32(uint8_t *at, size_t value) {
    for (int i = 0; i < 4; i++)
        at[i] = (uint8_t)(value >> 8 * i);
}

/* The bytes as the data of a WAV, and a chunk behind them. */
static uint8_t *wrap_in_wav(presto_span mp3, size_t *bytes_out) {
    static const uint8_t head[] =
        "RIFF\0\0\0\0WAVEfmt \x1e\0\0\0\x55\0\x01\0\x80\xbb\0\0\x40\x1f\0\0"
        "\1\0\0\0\x0c\0\1\0\2\0\0\0\xc0\0\1\0\0\0data";
    static const uint8_t tail[] = "LIST\4\0\0\0INFO";
    size_t padded = mp3.bytes + mp3.bytes % 2;
    size_t head_bytes = sizeof head - 1;
    *bytes_out = head_bytes + 4 + padded + sizeof tail - 1;
    uint8_t *wav = calloc(*bytes_out, 1);
    memcpy(wav, head, head_bytes);
    put_le32(wav + 4, *bytes_out - 8);
    put_le32(wav + head_bytes, mp3.bytes);
    memcpy(wav + head_bytes + 4, mp3.data, mp3.bytes);
    memcpy(wav + head_bytes + 4 + padded, tail, sizeof tail - 1);
    return wav;
}

START_TEST(mp3_in_a_wav_is_the_same_sound) {
    size_t bytes, wav_bytes, count, wav_count;
    uint8_t *content = read_golden("cbr-48k.mp3", &bytes);
    uint8_t *wav = wrap_in_wav(presto_span_of(content, bytes), &wav_bytes);
    int16_t *samples = decode_copy(presto_span_of(content, bytes), &count);
    int16_t *wav_samples = decode_copy(presto_span_of(wav, wav_bytes), &wav_count);
    ck_assert_uint_eq(wav_count, count);
    ck_assert_mem_eq(wav_samples, samples, count * sizeof *samples);
    free(wav_samples);
    free(samples);
    stage s;
    presto_error err;
    ck_assert_status(decode(&s, "{step: decode-audio}", presto_span_of(wav, wav_bytes - 20), &err),
                     PRESTO_ERR_TRUNCATED, &err);
    stage_close(&s);
    free(wav);
    free(content);
}
END_TEST

/* ---- WAV ---- */

/* What stands before the data of `kind`: sizes of the whole and of the data, and of a chunk ds64. */
typedef struct wav_head {
    const char *kind;
    uint32_t riff, data;
    uint64_t large; /* 0: no ds64, unless has_large */
    bool has_large;
} wav_head;

enum { WAV_SAMPLES = 300 };

static int16_t wav_sample(size_t i) {
    return (int16_t)((int)(i * 37 % 2001) - 1000);
}

/* WAV_SAMPLES samples of 16 bits at 8 kHz, and `tail` behind them. */
static uint8_t *make_wav(const wav_head *head, const char *tail, size_t tail_bytes,
                         size_t *bytes_out) {
    static const uint8_t format[] = "fmt \x10\0\0\0\1\0\1\0\x40\x1f\0\0\x80\x3e\0\0\2\0\x10\0data";
    uint8_t *wav = calloc(1, 2000), *at = wav + 12;
    memcpy(wav, head->kind, 4);
    put_le32(wav + 4, head->riff);
    memcpy(wav + 8, "WAVE", 4);
    if (head->has_large) {
        memcpy(at, "ds64\x1c", 5);
        put_le32(at + 16, (size_t)(head->large & UINT32_MAX));
        put_le32(at + 20, (size_t)(head->large >> 32));
        at += 36;
    }
    memcpy(at, format, sizeof format - 1);
    at += sizeof format - 1;
    put_le32(at, head->data);
    at += 4;
    for (size_t i = 0; i < WAV_SAMPLES; i++, at += 2) {
        uint16_t value = (uint16_t)wav_sample(i);
        at[0] = (uint8_t)value;
        at[1] = (uint8_t)(value >> 8);
    }
    memcpy(at, tail, tail_bytes);
    *bytes_out = (size_t)(at - wav) + tail_bytes;
    return wav;
}

static void check_whole_wav(const wav_head *head) {
    size_t bytes, count;
    uint8_t *made = make_wav(head, "", 0, &bytes);
    uint8_t *wav = presto_check_copy(presto_span_of(made, bytes));
    int16_t *samples = decode_copy(presto_span_of(wav, bytes), &count);
    ck_assert_msg(count == WAV_SAMPLES, "%s of size %x: %zu samples", head->kind, head->data,
                  count);
    for (size_t i = 0; i < count; i++)
        ck_assert_int_eq(samples[i], wav_sample(i));
    free(samples);
    free(wav);
    free(made);
}

/* ffmpeg, sox, espeak, lame, opusdec, oggdec, mpg123, arecord, and what is rounded to frames. */
START_TEST(a_wav_that_does_not_know_its_size_goes_to_the_end) {
    static const uint32_t sizes[] = {0,          0xffffffff, 0xfffffffe, 0xffffffdb,
                                     0xffffffdc, 0xffffffba, 0x7ffff000, 0x7fffffff,
                                     0x7ffffffe, 0x7fffffd3, 0x7fffffdb, 0x7fffff00,
                                     0x7ffffff8, 0x80000000, 0x7fff0000, 0xffff0000};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        check_whole_wav(&(wav_head){.kind = "RIFF", .riff = sizes[i] + 36, .data = sizes[i]});
        check_whole_wav(&(wav_head){.kind = "RIFF", .riff = 0, .data = sizes[i]});
        check_whole_wav(&(wav_head){.kind = "RIFF", .riff = UINT32_MAX, .data = sizes[i]});
    }
    static const char *const kinds[] = {"RF64", "BW64"};
    static const uint64_t large[] = {
        0, (uint64_t)2 * WAV_SAMPLES, UINT64_MAX, INT64_MAX, 0x7ffff000, 0xffffffff};
    for (size_t k = 0; k < 2; k++) {
        for (size_t i = 0; i < sizeof large / sizeof large[0]; i++)
            check_whole_wav(&(wav_head){kinds[k], UINT32_MAX, UINT32_MAX, large[i], true});
        check_whole_wav(&(wav_head){.kind = kinds[k], .riff = UINT32_MAX, .data = UINT32_MAX});
        check_whole_wav(&(wav_head){.kind = kinds[k], .riff = 0, .data = 2 * WAV_SAMPLES});
    }
}
END_TEST

START_TEST(a_wav_that_knows_its_size_is_held_to_it) {
    static const char list[] = "LIST\x0c\0\0\0INFOIART\0\0\0\0";
    size_t bytes, count;
    presto_error err;
    stage s;
    wav_head head = {.kind = "RIFF", .data = 2 * WAV_SAMPLES};
    uint8_t *wav = make_wav(&head, list, sizeof list - 1, &bytes);
    free(decode_copy(presto_span_of(wav, bytes), &count));
    ck_assert_uint_eq(count, WAV_SAMPLES); /* what follows is no sound */
    put_le32(wav + 40, 0);
    memcpy(wav + 44, list, sizeof list - 1);
    free(decode_copy(presto_span_of(wav, 44 + sizeof list - 1), &count));
    ck_assert_uint_eq(count, 0);
    free(decode_copy(presto_span_of(wav, 44), &count));
    ck_assert_uint_eq(count, 0);
    free(wav);
    static const uint32_t sizes[] = {2 * WAV_SAMPLES + 1, 100000, 0x40000000, 0x70000000,
                                     0xf0000000};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        head.data = sizes[i];
        wav = make_wav(&head, "", 0, &bytes);
        ck_assert_status(decode(&s, "{step: decode-audio}", presto_span_of(wav, bytes), &err),
                         PRESTO_ERR_TRUNCATED, &err);
        stage_close(&s);
        free(wav);
    }
}
END_TEST

/* ---- damage ---- */

/* Change a few bytes, or bits, behind the first frame. */
static void damage(uint8_t *content, size_t bytes, presto_rng *rng) {
    for (uint64_t changes = 1 + presto_rng_below(rng, 20); changes > 0; changes--) {
        size_t at = 400 + (size_t)presto_rng_below(rng, bytes - 400);
        content[at] ^= (uint8_t)(1U << presto_rng_below(rng, 8));
    }
}

START_TEST(damaged_mp3_prints_nothing) {
    static const char *const names[] = {"cbr-48k.mp3", "vbr-id3-22k.mp3", "joint-48k.mp3"};
    FILE *printed = tmpfile();
    ck_assert_ptr_nonnull(printed);
    int kept = dup(STDERR_FILENO);
    ck_assert_int_ge(dup2(fileno(printed), STDERR_FILENO), 0);
    presto_rng rng = test_rng(77);
    for (size_t round = 0; round < 150; round++) {
        size_t bytes, wav_bytes;
        uint8_t *content = read_golden(names[round % 3], &bytes);
        damage(content, bytes, &rng);
        uint8_t *wav = wrap_in_wav(presto_span_of(content, bytes), &wav_bytes);
        const presto_span files[] = {presto_span_of(content, bytes),
                                     presto_span_of(wav, wav_bytes)};
        for (size_t i = 0; i < 2; i++) {
            stage s;
            presto_error err;
            presto_status status = decode(&s, "{step: decode-audio}", files[i], &err);
            ck_assert(status == PRESTO_OK || status == PRESTO_ERR_CORRUPT ||
                      status == PRESTO_ERR_TRUNCATED);
            stage_close(&s);
        }
        free(wav);
        free(content);
    }
    ck_assert_int_ge(dup2(kept, STDERR_FILENO), 0);
    close(kept);
    ck_assert_int_eq(fseek(printed, 0, SEEK_END), 0);
    ck_assert_int_eq(ftell(printed), 0);
    fclose(printed);
}
END_TEST

/* ---- decode-audio's options ---- */

START_TEST(a_channel_is_chosen_or_the_mean_is_taken) {
    size_t bytes;
    uint8_t *content = read_golden("pcm16-stereo-16k.wav", &bytes);
    presto_span file = presto_span_of(content, bytes);
    int16_t *channel[3] = {0};
    size_t count = 0;
    presto_error err;
    stage s;
    for (int i = 0; i < 3; i++) {
        char step[64];
        snprintf(step, sizeof step, "{step: decode-audio, channel: %d}", i);
        ck_assert_ok(decode(&s, step, file, &err), &err);
        channel[i] = (int16_t *)(void *)rig_copy(stage_output(&s));
        count = (size_t)stage_output(&s)->spec.dims[0];
        stage_close(&s);
    }
    ck_assert_uint_eq(count, 4800);
    for (size_t i = 0; i < count; i++) {
        int16_t stored[2];
        memcpy(stored, content + 44 + 4 * i, sizeof stored);
        ck_assert_int_eq(channel[1][i], stored[0]);
        ck_assert_int_eq(channel[2][i], stored[1]);
        ck_assert_int_eq(channel[0][i], (int)floor((stored[0] + stored[1]) / 2.0 + 0.5));
    }
    ck_assert_status(decode(&s, "{step: decode-audio, channel: 3}", file, &err), PRESTO_ERR_TYPE,
                     &err);
    stage_close(&s);
    for (int i = 0; i < 3; i++)
        free(channel[i]);
    free(content);
}
END_TEST

START_TEST(resampling_keeps_a_tone_and_its_length) {
    size_t bytes;
    uint8_t *content = read_golden("pcm16-16k.flac", &bytes);
    presto_span file = presto_span_of(content, bytes);
    static const int64_t rates[] = {8000, 16000, 22050, 48000};
    for (size_t i = 0; i < 4; i++) {
        char step[64];
        stage s;
        presto_error err;
        snprintf(step, sizeof step, "{step: decode-audio, rate: %d}", (int)rates[i]);
        ck_assert_ok(decode(&s, step, file, &err), &err);
        ck_assert_int_eq(stage_output(&s)->spec.dims[0], (4800 * rates[i] + 15999) / 16000);
        ck_assert_int_eq(rate_of(&s), rates[i]);
        double power = 0;
        const int16_t *samples = stage_output(&s)->data;
        for (int64_t k = 0; k < stage_output(&s)->spec.dims[0]; k++)
            power += (double)samples[k] * samples[k];
        power = sqrt(power / (double)stage_output(&s)->spec.dims[0]);
        ck_assert_msg(power > 3000 && power < 12000, "%d Hz: RMS %g", (int)rates[i], power);
        stage_close(&s);
    }
    free(content);
}
END_TEST

START_TEST(decoded_size_is_limited) {
    static const struct {
        const char *name;
        size_t samples;
    } cases[] = {{"pcm16-16k.flac", 4800}, {"streamed-16k.flac", 4800}, {"pcm16-8k.wav", 2400}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        size_t bytes;
        uint8_t *content = read_golden(cases[i].name, &bytes);
        for (int less = 0; less < 2; less++) {
            char step[64];
            stage s;
            presto_error err;
            snprintf(step, sizeof step, "{step: decode-audio, max-bytes: %zu}",
                     2 * cases[i].samples - (size_t)less);
            ck_assert_status(decode(&s, step, presto_span_of(content, bytes), &err),
                             less ? PRESTO_ERR_LIMIT : PRESTO_OK, &err);
            stage_close(&s);
        }
        free(content);
    }
}
END_TEST

int main(void) {
    const TTest *const tests[] = {
        sounds_are_those_of_libsndfile_and_spectrograms_those_of_tensorflow,
        bad_sounds_are_refused_with_a_reason,
        every_cut_of_a_sound_is_an_error,
        without_the_encoders_note_all_frames_are_decoded,
        mp3_in_a_wav_is_the_same_sound,
        a_wav_that_does_not_know_its_size_goes_to_the_end,
        a_wav_that_knows_its_size_is_held_to_it,
        damaged_headers_of_vorbis_never_reach_libsndfile,
        damaged_mp3_prints_nothing,
        a_channel_is_chosen_or_the_mean_is_taken,
        resampling_keeps_a_tone_and_its_length,
        decoded_size_is_limited,
    };
    return presto_check_main("decode-audio", tests, sizeof tests / sizeof tests[0], 120);
}
