/* SPDX-License-Identifier: Apache-2.0 */
/*
 * decode-audio: WAV, FLAC, Ogg or MP3 bytes -> int16 [samples], one channel. The content decides
 * the format, never the name. The sampling rate goes into the feature `rate`, so that it is stored
 * with the samples and later steps know it.
 */
#include <stdlib.h>

#include <presto/numbers.h>

#include "audio_internal.h"

#if PRESTO_HAVE_SOXR
#include <soxr.h>
#endif

enum { OPTION_RATE, OPTION_CHANNEL, OPTION_MAX_BYTES, OPTION_COUNT };

static const presto_option_type options[] = {
    [OPTION_RATE] = {.name = "rate",
                     .kind = PRESTO_OPTION_INT,
                     .minimum = PRESTO__AUDIO_LEAST_RATE,
                     .maximum = PRESTO__AUDIO_MOST_RATE,
                     .unit = "Hz",
                     .help = "resample to this rate (libsoxr, high quality); without it, each file "
                             "keeps its own"},
    [OPTION_CHANNEL] = {.name = "channel",
                        .kind = PRESTO_OPTION_INT,
                        .default_text = "0",
                        .minimum = 0,
                        .maximum = 1024,
                        .help = "0 is the mean of all channels, rounded; 1 is the first (left) "
                                "one, 2 the second"},
    [OPTION_MAX_BYTES] = {.name = "max-bytes",
                          .kind = PRESTO_OPTION_SIZE,
                          .default_text = "512MiB",
                          .minimum = 1,
                          .maximum = 4294967296.0,
                          .help = "sounds that would be larger when decoded (2 bytes a sample) are "
                                  "errors"},
};

/* Frames of several channels that are read at once, before they become one channel. */
#define BLOCK_VALUES 16384
/* Samples by which an output of unknown length grows. */
#define GROWTH_SAMPLES 65536
/* A byte of a file hardly makes more samples than this: what a header claims beyond is not
 * believed before it is decoded. */
#define MOST_SAMPLES_A_BYTE 8192

typedef struct decode_state {
    int64_t rate; /* 0: the file's */
    int channel;
    uint64_t max_samples;
} decode_state;

/* One file that is being decoded. */
typedef struct decoding {
    const decode_state *state;
    presto_step_context *context;
    presto__sound sound;
    int16_t *block; /* BLOCK_VALUES; only with several channels */
} decoding;

static presto_status create(const presto_option *values, void **state_out, presto_error *err) {
    decode_state *state = malloc(sizeof *state);
    if (state == NULL)
        return presto_fail_memory(err, sizeof *state);
    state->rate = values[OPTION_RATE].is_set ? values[OPTION_RATE].integer : 0;
    state->channel = (int)values[OPTION_CHANNEL].integer;
    state->max_samples = (uint64_t)values[OPTION_MAX_BYTES].integer / sizeof(int16_t);
#if !PRESTO_HAVE_SOXR
    if (state->rate != 0) {
        free(state);
        return presto_fail(err, PRESTO_ERR_UNSUPPORTED, PRESTO_NO_OFFSET,
                           "option 'rate': this program was built without libsoxr");
    }
#endif
    *state_out = state;
    return PRESTO_OK;
}

static presto_status infer(const void *state, const presto_tensor_spec *in,
                           presto_tensor_spec *out_out, presto_error *err) {
    (void)state;
    PRESTO_TRY(presto__spec_expect(in, &presto__text_spec, err));
    *out_out = (presto_tensor_spec){PRESTO_INT16, 1, {-1}};
    return PRESTO_OK;
}

/* ---- one channel ---- */

static int16_t mean_of(const int16_t *values, int count) {
    int64_t sum = 0;
    for (int i = 0; i < count; i++)
        sum += values[i];
    /* rounded to nearest, halves upwards; shifted, because C divides towards 0 */
    int64_t shifted = 2 * (sum + (int64_t)count * 32768) + count;
    return (int16_t)(shifted / (2 * (int64_t)count) - 32768);
}

static void mix(const decoding *d, int16_t *out, size_t frames) {
    int channels = d->sound.channels;
    int channel = d->state->channel;
    for (size_t i = 0; i < frames; i++) {
        const int16_t *frame = d->block + i * (size_t)channels;
        out[i] = channel > 0 ? frame[channel - 1] : mean_of(frame, channels);
    }
}

/* The next `wanted` samples of one channel; less only at the end. */
static presto_status read_samples(decoding *d, int16_t *out, size_t wanted, size_t *got_out,
                                  presto_error *err) {
    if (d->sound.channels == 1)
        return presto__sound_read(&d->sound, out, wanted, got_out, err);
    size_t most = BLOCK_VALUES / (size_t)d->sound.channels;
    size_t done = 0;
    size_t got = most;
    while (done < wanted && got == most) {
        most = wanted - done < most ? wanted - done : most;
        PRESTO_TRY(presto__sound_read(&d->sound, d->block, most, &got, err));
        mix(d, out + done, got);
        done += got;
    }
    *got_out = done;
    return PRESTO_OK;
}

/* ---- all samples ---- */

static presto_status fail_long(const decoding *d, presto_error *err) {
    return presto_fail(err, PRESTO_ERR_LIMIT, PRESTO_NO_OFFSET,
                       "sound of more than %ju sample%s (max-bytes)",
                       (uintmax_t)d->state->max_samples, presto_plural(d->state->max_samples));
}

/* As many as the header says, into the output itself. */
static presto_status read_known(decoding *d, presto_tensor *out, presto_error *err) {
    size_t count = (size_t)d->sound.frames;
    size_t got = 0;
    void *data;
    out->spec = (presto_tensor_spec){PRESTO_INT16, 1, {(int64_t)count}};
    PRESTO_TRY(presto_step_output(d->context, &out->spec, &data, err));
    out->data = data;
    PRESTO_TRY(read_samples(d, data, count, &got, err));
    if (got < count)
        return presto_fail(err, PRESTO_ERR_TRUNCATED, d->sound.bytes.bytes,
                           "truncated: sample %zu of %zu is the last one", got, count);
    return PRESTO_OK;
}

/* As many as there are. */
static presto_status read_all(decoding *d, presto_tensor *out, presto_error *err) {
    presto_buffer *buffer = presto_step_buffer(d->context);
    size_t most = GROWTH_SAMPLES;
    size_t got = most;
    while (got == most) {
        PRESTO_TRY(presto_buffer_reserve(buffer, most * sizeof(int16_t), err));
        int16_t *end = (int16_t *)(void *)(buffer->data + buffer->bytes);
        PRESTO_TRY(read_samples(d, end, most, &got, err));
        buffer->bytes += got * sizeof(int16_t);
        if (buffer->bytes / sizeof(int16_t) > d->state->max_samples)
            return fail_long(d, err);
        if (presto_step_is_cancelled(d->context))
            return presto_fail(err, PRESTO_ERR_STOPPED, PRESTO_NO_OFFSET, "stopped");
    }
    int64_t count = (int64_t)(buffer->bytes / sizeof(int16_t));
    out->spec = (presto_tensor_spec){PRESTO_INT16, 1, {count}};
    out->data = buffer->data;
    return PRESTO_OK;
}

/* ---- resampling ---- */

#if PRESTO_HAVE_SOXR
static presto_status resample(const decoding *d, presto_tensor *tensor, presto_error *err) {
    const soxr_io_spec_t io = {SOXR_INT16_I, SOXR_INT16_I, 1.0, NULL, SOXR_NO_DITHER};
    const soxr_quality_spec_t quality = soxr_quality_spec(SOXR_HQ, 0);
    const soxr_runtime_spec_t runtime = soxr_runtime_spec(1);
    uint64_t from = (uint64_t)d->sound.rate;
    uint64_t to = (uint64_t)d->state->rate;
    uint64_t count = presto_spec_elements(&tensor->spec);
    uint64_t wanted = (count * to + from - 1) / from;
    if (wanted > d->state->max_samples)
        return fail_long(d, err);
    presto_tensor_spec spec = {PRESTO_INT16, 1, {(int64_t)wanted}};
    void *data;
    PRESTO_TRY(presto_step_output(d->context, &spec, &data, err));
    size_t got = 0;
    soxr_error_t failure =
        wanted == 0 ? NULL
                    : soxr_oneshot((double)from, (double)to, 1, tensor->data, (size_t)count, NULL,
                                   data, (size_t)wanted, &got, &io, &quality, &runtime);
    if (failure != NULL)
        return presto_fail(err, PRESTO_ERR_MEMORY, PRESTO_NO_OFFSET, "libsoxr: %s", failure);
    if (got < wanted) /* the last one may be missing, by rounding */
        memset((int16_t *)data + got, 0, (size_t)(wanted - got) * sizeof(int16_t));
    *tensor = (presto_tensor){.spec = spec, .data = data};
    return PRESTO_OK;
}
#else
static presto_status resample(const decoding *d, presto_tensor *tensor, presto_error *err) {
    (void)d, (void)tensor;
    return presto_fail(err, PRESTO_ERR_UNSUPPORTED, PRESTO_NO_OFFSET, "rate");
}
#endif

/* ---- the step ---- */

static presto_status set_rate(const decoding *d, int64_t rate, presto_error *err) {
    int64_t *value = presto_step_scratch(d->context, sizeof *value);
    if (value == NULL)
        return presto_fail_memory(err, sizeof *value);
    *value = rate;
    presto_tensor tensor = {.spec = {.dtype = PRESTO_INT64}, .data = value};
    return presto_step_set_feature(d->context, PRESTO__AUDIO_RATE, &tensor, err);
}

static presto_status decode(decoding *d, presto_tensor *out, presto_error *err) {
    const presto__sound *sound = &d->sound;
    bool resamples = d->state->rate != 0 && d->state->rate != sound->rate;
    if (d->state->channel > sound->channels)
        return presto_fail(err, PRESTO_ERR_TYPE, PRESTO_NO_OFFSET,
                           "has %d channel%s, option 'channel' is %d", sound->channels,
                           sound->channels == 1 ? "" : "s", d->state->channel);
    if (sound->channels > 1) {
        d->block = presto_step_scratch(d->context, BLOCK_VALUES * sizeof *d->block);
        if (d->block == NULL)
            return presto_fail_memory(err, BLOCK_VALUES * sizeof *d->block);
    }
    bool is_known = sound->frames <= (uint64_t)sound->bytes.bytes * MOST_SAMPLES_A_BYTE;
    if (is_known && sound->frames > d->state->max_samples)
        return fail_long(d, err);
    PRESTO_TRY(is_known && !resamples ? read_known(d, out, err) : read_all(d, out, err));
    if (sound->frames != UINT64_MAX && presto_spec_elements(&out->spec) < sound->frames)
        return presto_fail(err, PRESTO_ERR_TRUNCATED, sound->bytes.bytes,
                           "truncated: it has %ju of %ju sample%s",
                           (uintmax_t)presto_spec_elements(&out->spec), (uintmax_t)sound->frames,
                           presto_plural(sound->frames));
    if (resamples)
        PRESTO_TRY(resample(d, out, err));
    return set_rate(d, resamples ? d->state->rate : sound->rate, err);
}

static presto_status run(const void *state, presto_step_context *context, const presto_tensor *in,
                         presto_tensor *out_out, presto_error *err) {
    decoding d = {.state = state, .context = context};
    presto_tensor_spec unused;
    presto_span file = in->strings[0];
    PRESTO_TRY(infer(state, &in->spec, &unused, err));
    PRESTO_TRY(presto__audio_check(file, &d.sound, err));
    presto_tensor out;
    presto_status status = presto__sound_open(&d.sound, err);
    if (status == PRESTO_OK)
        status = decode(&d, &out, err);
    presto__sound_close(&d.sound);
    if (status == PRESTO_OK)
        *out_out = out;
    else if (err != NULL && err->offset != PRESTO_NO_OFFSET)
        err->offset += (uint64_t)(d.sound.bytes.data - file.data);
    return status;
}

const presto_step_type presto__step_decode_audio = {
    .abi = PRESTO_STEP_ABI,
    .name = "decode-audio",
    .summary = "WAV, FLAC, Ogg or MP3 (told by content) to int16 [samples] of one channel, the "
               "samples of libsndfile; an MP3 that does not say how long it is, to its end. The "
               "feature `rate` (int64) is the sampling rate in Hz.",
#if !PRESTO_HAVE_SNDFILE
    .unsupported = "built without libsndfile",
#endif
    .flags = PRESTO_STEP_SETS_FEATURES,
    .options = options,
    .option_count = OPTION_COUNT,
    .create = create,
    .destroy = free,
    .infer = infer,
    .run = run,
};
