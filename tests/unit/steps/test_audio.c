/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The audio steps: the sounds of tests/golden/audio against libsndfile and TensorFlow, spectrograms
 * against a plain transform in double, and inputs that do not fit.
 */
#include <jansson.h>
#include <math.h>
#include <presto/rng.h>
#include <unistd.h>
#include <zlib.h>

#include "steps_check.h"

#define GOLDEN(path) PRESTO_GOLDEN_DIR "/audio/" path
/* In log space. Bands far below the loudest of their frame have less precision in float32, here and
 * in TensorFlow. */
#define MEL_TOLERANCE 1e-4

/* ---- running the steps ---- */

typedef struct stage {
    presto_pipeline *pipeline;
    presto_plan *plan;
    presto_plan_worker *worker;
    presto_arena arena;
    presto_feature features[3];
    presto_sample sample;
} stage;

/* `steps` behind read-file: those from `first` on are run, on an input of spec `in`. */
static presto_status stage_open(stage *s, const char *steps, size_t first,
                                const presto_tensor_spec *in, presto_error *err) {
    char yaml[512];
    *s = (stage){0};
    snprintf(yaml, sizeof yaml, "{name: t, source: {type: files}, steps: [{step: read-file}, %s]}",
             steps);
    PRESTO_TRY(presto_pipeline_parse(presto_span_of_text(yaml), "t", NULL, &s->pipeline, err));
    PRESTO_TRY(
        plan_of(s->pipeline, first, presto_pipeline_step_count(s->pipeline), in, &s->plan, err));
    presto_plan_worker_options options = {.struct_bytes = sizeof options, .arena = &s->arena};
    return presto_plan_worker_new(s->plan, &options, &s->worker, err);
}

static void stage_close(stage *s) {
    presto_plan_worker_free(s->worker);
    presto_plan_free(s->plan);
    presto_pipeline_free(s->pipeline);
    presto_arena_done(&s->arena);
}

/* `rate` 0: the sample has no such feature. */
static presto_status stage_run(stage *s, const presto_tensor *in, int64_t rate, presto_error *err) {
    presto_plan_run_options run = {.struct_bytes = sizeof run};
    s->features[0] = (presto_feature){.name = presto_span_of_text("audio"), .tensor = *in};
    s->features[1] = (presto_feature){.name = presto_span_of_text("rate"),
                                      .encoding = PRESTO_ENCODE_INT64,
                                      .tensor = {.spec = {.dtype = PRESTO_INT64}, .data = &rate}};
    s->sample = (presto_sample){s->features, rate == 0 ? 1 : 2, 0};
    presto_arena_reset(&s->arena);
    return presto_plan_run(s->worker, &run, &s->sample, err);
}

static const presto_tensor *stage_output(const stage *s) {
    return &s->sample.features[0].tensor;
}

static presto_status decode(stage *s, const char *steps, presto_span bytes, presto_error *err) {
    ck_assert_ok(stage_open(s, steps, 1, &string_spec, err), err);
    presto_tensor in = {.spec = string_spec, .strings = &bytes};
    return stage_run(s, &in, 0, err);
}

static int64_t rate_of(const stage *s) {
    size_t at = presto_sample_find(&s->sample, presto_span_of_text("rate"));
    ck_assert_uint_ne(at, SIZE_MAX);
    const presto_feature *feature = &s->sample.features[at];
    ck_assert_int_eq(feature->encoding, PRESTO_ENCODE_INT64);
    ck_assert_int_eq(feature->tensor.spec.dtype, PRESTO_INT64);
    ck_assert_int_eq(feature->tensor.spec.rank, 0);
    int64_t rate;
    memcpy(&rate, feature->tensor.data, sizeof rate);
    return rate;
}

static presto_rng test_rng(uint64_t stream) {
    presto_rng rng;
    presto_rng_key key = {presto_check_seed(), 0, 0, stream};
    presto_rng_init(&rng, &key);
    return rng;
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
    ck_assert_uint_ge(compared, 17);
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
    ck_assert_uint_ge(compared, 16);
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
            size_t cut = presto_rng_below(&rng, (uint64_t)bytes);
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

/* ---- mel-spectrogram against a plain transform ---- */

typedef struct mel_case {
    int64_t rate;
    double window_ms, stride_ms;
    size_t fft, bands;
    double lower, upper, offset;
    size_t samples;
} mel_case;

static double mel_of(double hertz) {
    return 1127 * log1p(hertz / 700);
}

/* Amplitudes of all bins, term by term. */
static void plain_transform(const float *frame, size_t window, size_t fft, double *out) {
    const double pi = acos(-1.0);
    for (size_t k = 0; k <= fft / 2; k++) {
        double re = 0, im = 0;
        for (size_t n = 0; n < window; n++) {
            double turn = 0.5 - 0.5 * cos(2 * pi * (double)n / (double)(window - window % 2));
            double angle = 2 * pi * (double)(k * n % fft) / (double)fft;
            re += (double)frame[n] * turn * cos(angle);
            im -= (double)frame[n] * turn * sin(angle);
        }
        out[k] = sqrt(re * re + im * im);
    }
}

static double plain_band(const mel_case *c, const double *amplitude, size_t band) {
    double step = (mel_of(c->upper) - mel_of(c->lower)) / (double)(c->bands + 1);
    double lower = mel_of(c->lower) + (double)band * step;
    double sum = 0;
    for (size_t k = 1; k <= c->fft / 2; k++) {
        double mel = mel_of((double)k * (double)c->rate / (double)c->fft);
        double weight = fmin((mel - lower) / step, (lower + 2 * step - mel) / step);
        sum += fmax(0, weight) * amplitude[k];
    }
    return log(sum + c->offset);
}

static void check_case(const mel_case *c, const float *samples) {
    char step[256];
    stage s;
    presto_error err;
    presto_tensor in = {.spec = {PRESTO_FLOAT32, 1, {(int64_t)c->samples}}, .data = samples};
    snprintf(step, sizeof step,
             "{step: decode-audio}, {step: mel-spectrogram, window: %g, stride: %g, fft-length: "
             "%zu, bands: %zu, lower-edge: %g, upper-edge: %g, log-offset: %g}",
             c->window_ms, c->stride_ms, c->fft, c->bands, c->lower, c->upper, c->offset);
    ck_assert_ok(stage_open(&s, step, 2, &in.spec, &err), &err);
    ck_assert_ok(stage_run(&s, &in, c->rate, &err), &err);
    const presto_tensor *got = stage_output(&s);
    size_t window = (size_t)floor(c->window_ms * (double)c->rate / 1000 + 1e-6);
    size_t stride = (size_t)floor(c->stride_ms * (double)c->rate / 1000 + 1e-6);
    size_t frames = c->samples < window ? 0 : 1 + (c->samples - window) / stride;
    ck_assert_int_eq(got->spec.dims[0], (int64_t)frames);
    ck_assert_int_eq(got->spec.dims[1], (int64_t)c->bands);
    double *amplitude = calloc(c->fft / 2 + 1, sizeof *amplitude);
    for (size_t i = 0; i < frames; i++) {
        plain_transform(samples + i * stride, window, c->fft, amplitude);
        for (size_t b = 0; b < c->bands; b++) {
            double want = plain_band(c, amplitude, b);
            double value = ((const float *)got->data)[i * c->bands + b];
            ck_assert_msg(fabs(want - value) < 1e-3,
                          "fft %zu, frame %zu of %zu, band %zu: %g, not %g", c->fft, i, frames, b,
                          value, want);
        }
    }
    free(amplitude);
    stage_close(&s);
}

START_TEST(spectrograms_of_all_shapes_equal_a_plain_transform) {
    static const mel_case cases[] = {
        {16000, 20, 10, 1024, 80, 125, 3800, 1e-8, 320 + 9 * 160 + 3},
        {16000, 20, 10, 320, 20, 0, 8000, 1e-3, 320 + 7 * 160},
        {16000, 25, 10, 512, 40, 20, 7600, 1e-6, 400 + 8 * 160},
        {8000, 32, 8, 256, 13, 100, 4000, 1e-6, 256 + 64 * 15},
        {8000, 5, 2.5, 50, 3, 300, 4000, 1e-2, 40 + 20 * 3},
        {22050, 23, 11, 600, 33, 50, 11025, 1e-6, 507 + 242},
        {16000, 1, 0.5, 24, 2, 1000, 8000, 1e-2, 16 + 8 * 17},
        {1000, 8, 1, 8, 1, 100, 500, 1, 8},
        {48000, 20, 10, 1024, 64, 300, 20000, 1e-6, 959},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        presto_rng rng = test_rng(100 + i);
        float *samples = calloc(cases[i].samples, sizeof *samples);
        for (size_t k = 0; k < cases[i].samples; k++)
            samples[k] = (float)presto_rng_below(&rng, 65536) / 32768.0f - 1.0f;
        check_case(&cases[i], samples);
        free(samples);
    }
}
END_TEST

static uint8_t *mel_of_noise(size_t count, bool is_int16, size_t *bytes_out) {
    static const char *steps =
        "{step: decode-audio}, {step: mel-spectrogram, rate: 16000, bands: 41}";
    presto_rng rng = test_rng(7);
    /* One byte off, so that nothing is aligned. */
    uint8_t *memory = malloc(count * sizeof(float) + 1);
    for (size_t i = 0; i < count; i++) {
        int16_t value = (int16_t)((int)presto_rng_below(&rng, 65536) - 32768);
        float number = (float)value / 32768.0f;
        if (is_int16)
            memcpy(memory + 1 + i * sizeof value, &value, sizeof value);
        else
            memcpy(memory + 1 + i * sizeof number, &number, sizeof number);
    }
    stage s;
    presto_error err;
    presto_tensor in = {.spec = {is_int16 ? PRESTO_INT16 : PRESTO_FLOAT32, 1, {(int64_t)count}},
                        .data = memory + 1};
    ck_assert_ok(stage_open(&s, steps, 2, &in.spec, &err), &err);
    ck_assert_ok(stage_run(&s, &in, 0, &err), &err);
    uint8_t *out = rig_copy(stage_output(&s));
    *bytes_out = presto_tensor_bytes(stage_output(&s));
    stage_close(&s);
    free(memory);
    return out;
}

START_TEST(all_kernels_and_both_dtypes_give_the_same_bits) {
    for (size_t count = 320; count < 320 + 20 * 160; count += 531) {
        uint8_t *out[4];
        size_t bytes[4];
        for (int i = 0; i < 4; i++) {
            ck_assert_int_eq(setenv("PRESTO_PORTABLE", i < 2 ? "1" : "0", 1), 0);
            out[i] = mel_of_noise(count, i % 2 == 0, &bytes[i]);
        }
        for (int i = 1; i < 4; i++) {
            ck_assert_uint_eq(bytes[i], bytes[0]);
            ck_assert(memcmp(out[i], out[0], bytes[0]) == 0);
        }
        for (int i = 0; i < 4; i++)
            free(out[i]);
    }
}
END_TEST

/* ---- inputs that do not fit ---- */

START_TEST(rates_come_with_the_sample_or_from_the_option) {
    const presto_tensor_spec spec = {PRESTO_INT16, 1, {9600}};
    int16_t *silence = calloc(9600, sizeof *silence);
    presto_tensor in = {.spec = spec, .data = silence};
    presto_error err;
    stage s;
    ck_assert_ok(stage_open(&s, "{step: decode-audio}, {step: mel-spectrogram}", 2, &spec, &err),
                 &err);
    ck_assert_status(stage_run(&s, &in, 0, &err), PRESTO_ERR_TYPE, &err);
    ck_assert_ptr_nonnull(strstr(err.message, "no feature 'rate'"));
    /* More rates than a worker keeps ready, and back to the first. */
    static const int64_t rates[] = {8000, 16000, 22050, 24000, 32000, 44100, 48000, 8000, 16000};
    for (size_t i = 0; i < sizeof rates / sizeof rates[0]; i++) {
        ck_assert_ok(stage_run(&s, &in, rates[i], &err), &err);
        int64_t window = rates[i] / 50;
        ck_assert_int_eq(stage_output(&s)->spec.dims[0], 1 + (9600 - window) / (rates[i] / 100));
        const float *values = stage_output(&s)->data;
        for (uint64_t k = 0; k < presto_spec_elements(&stage_output(&s)->spec); k++)
            ck_assert_float_eq_tol(values[k], -18.420681f, 1e-5f);
    }
    ck_assert_status(stage_run(&s, &in, 96000, &err), PRESTO_ERR_TYPE, &err);
    ck_assert_ptr_nonnull(strstr(err.message, "fft-length is 1024"));
    ck_assert_status(stage_run(&s, &in, 6000, &err), PRESTO_ERR_TYPE, &err);
    ck_assert_ptr_nonnull(strstr(err.message, "upper-edge is 3800 Hz"));
    ck_assert_status(stage_run(&s, &in, -1, &err), PRESTO_ERR_TYPE, &err);
    ck_assert_ok(stage_run(&s, &in, 16000, &err), &err);
    stage_close(&s);
    free(silence);
}
END_TEST

START_TEST(samples_that_are_no_numbers_are_errors_and_named) {
    static const float strange[] = {NAN, INFINITY, -INFINITY, 2e9f};
    const presto_tensor_spec spec = {PRESTO_FLOAT32, 1, {4000}};
    float *samples = calloc(4000, sizeof *samples);
    presto_tensor in = {.spec = spec, .data = samples};
    presto_error err;
    stage s;
    ck_assert_ok(stage_open(&s, "{step: decode-audio}, {step: mel-spectrogram}", 2, &spec, &err),
                 &err);
    for (size_t i = 0; i < 4; i++) {
        samples[2345] = strange[i];
        ck_assert_status(stage_run(&s, &in, 16000, &err), PRESTO_ERR_CORRUPT, &err);
        ck_assert_ptr_nonnull(strstr(err.message, "sample 2345 is "));
        samples[2345] = 1e9f;
        ck_assert_ok(stage_run(&s, &in, 16000, &err), &err);
        const float *values = stage_output(&s)->data;
        for (uint64_t k = 0; k < presto_spec_elements(&stage_output(&s)->spec); k++)
            ck_assert_msg(isfinite(values[k]), "value %ju", (uintmax_t)k);
    }
    stage_close(&s);
    free(samples);
}
END_TEST

START_TEST(options_that_cannot_be_are_refused_at_once) {
    static const char *const bad[] = {
        "fft-length: 1022", "fft-length: 1025", "fft-length: 14",  "lower-edge: 3800",
        "bands: 0",         "log-offset: 0",    "log-offset: nan", "window: 0",
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        char step[128];
        stage s;
        presto_error err;
        snprintf(step, sizeof step, "{step: decode-audio}, {step: mel-spectrogram, %s}", bad[i]);
        presto_status status = stage_open(&s, step, 1, &string_spec, &err);
        ck_assert_msg(status < 0, "%s is taken", bad[i]);
        stage_close(&s);
    }
    stage s;
    presto_error err;
    const presto_tensor_spec image = {PRESTO_UINT8, 3, {-1, -1, 3}};
    ck_assert_status(
        stage_open(&s, "{step: decode-audio}, {step: mel-spectrogram}", 2, &image, &err),
        PRESTO_ERR_TYPE, &err);
    stage_close(&s);
}
END_TEST

int main(void) {
    const TTest *const tests[] = {
        sounds_are_those_of_libsndfile_and_spectrograms_those_of_tensorflow,
        bad_sounds_are_refused_with_a_reason,
        every_cut_of_a_sound_is_an_error,
        without_the_encoders_note_all_frames_are_decoded,
        mp3_in_a_wav_is_the_same_sound,
        damaged_mp3_prints_nothing,
        a_channel_is_chosen_or_the_mean_is_taken,
        resampling_keeps_a_tone_and_its_length,
        decoded_size_is_limited,
        spectrograms_of_all_shapes_equal_a_plain_transform,
        all_kernels_and_both_dtypes_give_the_same_bits,
        rates_come_with_the_sample_or_from_the_option,
        samples_that_are_no_numbers_are_errors_and_named,
        options_that_cannot_be_are_refused_at_once,
    };
    return presto_check_main("audio", tests, sizeof tests / sizeof tests[0], 120);
}
