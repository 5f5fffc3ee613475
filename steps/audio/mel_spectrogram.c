/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mel-spectrogram: int16 or float32 [samples] -> float32 [frames, bands]: the logarithm of the mel
 * bands of a short-time Fourier transform's magnitudes, as tf.signal computes them with
 * pad_end=False. The sampling rate comes with each sample.
 */
#include <math.h>
#include <stdlib.h>

#include "mel_internal.h"

/* Squares of larger samples might not fit float32 in the end. */
#define MOST_LOUD 1e9f
/* Sampling rates that a worker keeps ready. */
#define SHAPES 4

enum {
    OPTION_WINDOW,
    OPTION_STRIDE,
    OPTION_FFT_LENGTH,
    OPTION_BANDS,
    OPTION_LOWER_EDGE,
    OPTION_UPPER_EDGE,
    OPTION_LOG_OFFSET,
    OPTION_RATE,
    OPTION_COUNT
};

static const presto_option_type options[] = {
    [OPTION_WINDOW] = {.name = "window",
                       .kind = PRESTO_OPTION_FLOAT,
                       .default_text = "20",
                       .minimum = 0.01,
                       .maximum = 10000,
                       .unit = "milliseconds",
                       .help = "length of a frame, under a Hann window"},
    [OPTION_STRIDE] = {.name = "stride",
                       .kind = PRESTO_OPTION_FLOAT,
                       .default_text = "10",
                       .minimum = 0.01,
                       .maximum = 10000,
                       .unit = "milliseconds",
                       .help = "from the start of a frame to that of the next one"},
    [OPTION_FFT_LENGTH] = {.name = "fft-length",
                           .kind = PRESTO_OPTION_INT,
                           .default_text = "1024",
                           .minimum = 8,
                           .maximum = 65536,
                           .unit = "samples",
                           .help = "length of the transform, at least that of the window, which is "
                                   "filled up with zeros; even, and without prime factors above 5"},
    [OPTION_BANDS] = {.name = "bands",
                      .kind = PRESTO_OPTION_INT,
                      .default_text = "80",
                      .minimum = 1,
                      .maximum = 4096,
                      .help = "number of mel bands (HTK's scale)"},
    [OPTION_LOWER_EDGE] = {.name = "lower-edge",
                           .kind = PRESTO_OPTION_FLOAT,
                           .default_text = "125",
                           .minimum = 0,
                           .maximum = PRESTO__AUDIO_MOST_RATE,
                           .unit = "Hz",
                           .help = "where the lowest band begins"},
    [OPTION_UPPER_EDGE] = {.name = "upper-edge",
                           .kind = PRESTO_OPTION_FLOAT,
                           .default_text = "3800",
                           .minimum = 1,
                           .maximum = PRESTO__AUDIO_MOST_RATE,
                           .unit = "Hz",
                           .help = "where the highest band ends"},
    [OPTION_LOG_OFFSET] = {.name = "log-offset",
                           .kind = PRESTO_OPTION_FLOAT,
                           .default_text = "1e-8",
                           .minimum = 1e-12,
                           .maximum = 1e6,
                           .help = "added to each band before its natural logarithm is taken"},
    [OPTION_RATE] = {.name = "rate",
                     .kind = PRESTO_OPTION_INT,
                     .minimum = PRESTO__AUDIO_LEAST_RATE,
                     .maximum = PRESTO__AUDIO_MOST_RATE,
                     .unit = "Hz",
                     .help = "sampling rate of samples that have no feature `rate`, which "
                             "decode-audio sets"},
};

typedef struct mel_worker {
    const presto__mel_kernel *kernel;
    presto__mel_memory memory;
    float *signal; /* what eight frames cover */
    size_t signal_capacity;
    presto__mel_shape shapes[SHAPES]; /* rate 0: unused */
    size_t next;                      /* to be replaced */
    const presto__mel_shape *shape;   /* of the sample that is run */
    size_t dirty;                     /* rows of memory.in that may not be 0 */
} mel_worker;

/* ---- state and worker ---- */

static presto_status check_options(const presto__mel_options *mel, presto_error *err) {
    size_t rest = mel->fft_length;
    for (size_t factor = 2; factor <= 5; factor++)
        while (rest % factor == 0)
            rest /= factor;
    if (mel->fft_length % 2 != 0 || rest != 1)
        return presto_fail(err, PRESTO_ERR_ARGUMENT, PRESTO_NO_OFFSET,
                           "option 'fft-length' is %zu, must be even and without prime factors "
                           "above 5",
                           mel->fft_length);
    if (mel->lower_hz >= mel->upper_hz)
        return presto_fail(err, PRESTO_ERR_ARGUMENT, PRESTO_NO_OFFSET,
                           "option 'lower-edge' is %g, must be less than 'upper-edge', %g",
                           mel->lower_hz, mel->upper_hz);
    return PRESTO_OK;
}

static presto_status create(const presto_option *values, void **state_out, presto_error *err) {
    const presto__mel_options mel = {
        .window_ms = values[OPTION_WINDOW].number,
        .stride_ms = values[OPTION_STRIDE].number,
        .fft_length = (size_t)values[OPTION_FFT_LENGTH].integer,
        .bands = (size_t)values[OPTION_BANDS].integer,
        .lower_hz = values[OPTION_LOWER_EDGE].number,
        .upper_hz = values[OPTION_UPPER_EDGE].number,
        .log_offset = (float)values[OPTION_LOG_OFFSET].number,
        .rate = values[OPTION_RATE].is_set ? values[OPTION_RATE].integer : 0,
    };
    PRESTO_TRY(check_options(&mel, err));
    presto__mel_options *state = malloc(sizeof *state);
    if (state == NULL)
        return presto_fail_memory(err, sizeof *state);
    *state = mel;
    *state_out = state;
    return PRESTO_OK;
}

static presto_status infer(const void *state, const presto_tensor_spec *in,
                           presto_tensor_spec *out_out, presto_error *err) {
    const presto__mel_options *mel = state;
    char text[PRESTO_SPEC_TEXT_BYTES];
    bool is_number = in->dtype == PRESTO_DTYPE_UNKNOWN || in->dtype == PRESTO_INT16 ||
                     in->dtype == PRESTO_FLOAT32;
    if (!is_number || (in->rank >= 0 && in->rank != 1))
        return presto_fail(err, PRESTO_ERR_TYPE, PRESTO_NO_OFFSET,
                           "needs int16[?] or float32[?], gets %s",
                           presto_spec_format(in, text, sizeof text));
    *out_out = (presto_tensor_spec){PRESTO_FLOAT32, 2, {-1, (int64_t)mel->bands}};
    return PRESTO_OK;
}

static void close_worker(void *worker) {
    mel_worker *mel = worker;
    if (mel == NULL)
        return;
    mel->kernel->fft->plan_free(mel->memory.plan);
    free(mel->memory.in);
    free(mel->memory.out);
    free(mel->memory.amplitude);
    free(mel->memory.bands);
    free(mel->signal);
    for (size_t i = 0; i < SHAPES; i++)
        presto__mel_shape_done(&mel->shapes[i]);
    free(mel);
}

static float *rows_new(size_t count) {
    size_t bytes = count * PRESTO__FFT_LANES * sizeof(float);
    float *rows = aligned_alloc(PRESTO__FFT_ALIGNMENT, bytes);
    if (rows != NULL)
        memset(rows, 0, bytes);
    return rows;
}

static presto_status open_worker(const void *state, const void *model, void **worker_out,
                                 presto_error *err) {
    const presto__mel_options *options_of = state;
    const presto__mel_kernel *kernel = presto__mel_kernel_choose();
    (void)model;
    if (kernel == NULL)
        return presto_fail(err, PRESTO_ERR_UNSUPPORTED, PRESTO_NO_OFFSET, "built without Eigen");
    mel_worker *mel = calloc(1, sizeof *mel);
    if (mel == NULL)
        return presto_fail_memory(err, sizeof *mel);
    size_t length = options_of->fft_length;
    presto__mel_memory *memory = &mel->memory;
    mel->kernel = kernel;
    memory->plan = mel->kernel->fft->plan_new(length / 2);
    memory->in = rows_new(length + 4);
    memory->out = rows_new(length);
    memory->amplitude = rows_new(length / 2 + 1);
    memory->bands = rows_new(options_of->bands);
    if (memory->plan == NULL || memory->in == NULL || memory->out == NULL ||
        memory->amplitude == NULL || memory->bands == NULL) {
        close_worker(mel);
        return presto_fail_memory(err, length * 4 * PRESTO__FFT_LANES * sizeof(float));
    }
    *worker_out = mel;
    return PRESTO_OK;
}

/* ---- the sampling rate ---- */

static presto_status find_rate(const presto__mel_options *mel, presto_step_context *context,
                               int64_t *rate_out, presto_error *err) {
    const presto_feature *feature = presto_step_feature(context, PRESTO__AUDIO_RATE);
    int64_t rate = mel->rate;
    if (feature != NULL) {
        const presto_tensor *value = &feature->tensor;
        if (value->spec.dtype != PRESTO_INT64 || presto_spec_elements(&value->spec) != 1)
            return presto_fail(err, PRESTO_ERR_TYPE, PRESTO_NO_OFFSET,
                               "the feature '" PRESTO__AUDIO_RATE "' must be one int64");
        memcpy(&rate, value->data, sizeof rate);
    } else if (rate == 0) {
        return presto_fail(err, PRESTO_ERR_TYPE, PRESTO_NO_OFFSET,
                           "the sample has no feature '" PRESTO__AUDIO_RATE
                           "', which decode-audio sets; or give the option 'rate'");
    }
    if (rate < PRESTO__AUDIO_LEAST_RATE || rate > PRESTO__AUDIO_MOST_RATE)
        return presto_fail(err, PRESTO_ERR_TYPE, PRESTO_NO_OFFSET,
                           "a sampling rate of %jd Hz, must be %d to %d", (intmax_t)rate,
                           PRESTO__AUDIO_LEAST_RATE, PRESTO__AUDIO_MOST_RATE);
    *rate_out = rate;
    return PRESTO_OK;
}

static presto_status find_shape(const presto__mel_options *mel, mel_worker *worker, int64_t rate,
                                presto_error *err) {
    for (size_t i = 0; i < SHAPES; i++)
        if (worker->shapes[i].rate == rate) {
            worker->shape = &worker->shapes[i];
            return PRESTO_OK;
        }
    presto__mel_shape *shape = &worker->shapes[worker->next];
    presto__mel_shape_done(shape);
    PRESTO_TRY(presto__mel_shape_init(shape, mel, rate, err));
    worker->next = (worker->next + 1) % SHAPES;
    worker->shape = shape;
    return PRESTO_OK;
}

/* ---- frames ---- */

/* Memory for the samples of eight frames and 3 more, and rows of zeros behind the window. */
static presto_status prepare(mel_worker *worker, presto_error *err) {
    const presto__mel_shape *shape = worker->shape;
    size_t wanted = (PRESTO__FFT_LANES - 1) * shape->stride + shape->window + 3;
    if (wanted > worker->signal_capacity) {
        free(worker->signal);
        worker->signal_capacity = 0;
        worker->signal = calloc(wanted, sizeof *worker->signal);
        if (worker->signal == NULL)
            return presto_fail_memory(err, wanted * sizeof *worker->signal);
        worker->signal_capacity = wanted;
    }
    if (worker->dirty > shape->window)
        memset(worker->memory.in + shape->window * PRESTO__FFT_LANES, 0,
               (worker->dirty - shape->window) * PRESTO__FFT_LANES * sizeof(float));
    worker->dirty = shape->window;
    return PRESTO_OK;
}

/* Samples from `first` on as floats, the input need not be aligned. */
static presto_status load_samples(const presto_tensor *in, size_t first, size_t count, float *out,
                                  presto_error *err) {
    if (in->spec.dtype == PRESTO_INT16) {
        const uint8_t *from = (const uint8_t *)in->data + first * sizeof(int16_t);
        for (size_t i = 0; i < count; i++) {
            int16_t value;
            memcpy(&value, from + i * sizeof value, sizeof value);
            out[i] = (float)value * (1.0f / 32768);
        }
        return PRESTO_OK;
    }
    int strange = 0;
    memcpy(out, (const uint8_t *)in->data + first * sizeof(float), count * sizeof(float));
    for (size_t i = 0; i < count; i++)
        strange |= !(fabsf(out[i]) <= MOST_LOUD);
    for (size_t i = 0; strange != 0 && i < count; i++)
        if (!(fabsf(out[i]) <= MOST_LOUD))
            return presto_fail(err, PRESTO_ERR_CORRUPT, PRESTO_NO_OFFSET,
                               "sample %zu is %g: not a number from -1e9 to 1e9", first + i,
                               (double)out[i]);
    return PRESTO_OK;
}

static presto_status run_frames(mel_worker *worker, const presto_tensor *in, size_t frames,
                                float *out, presto_error *err) {
    const presto__mel_shape *shape = worker->shape;
    for (size_t i = 0; i < frames; i += PRESTO__FFT_LANES) {
        size_t count = frames - i < PRESTO__FFT_LANES ? frames - i : PRESTO__FFT_LANES;
        size_t samples = (count - 1) * shape->stride + shape->window;
        PRESTO_TRY(load_samples(in, i * shape->stride, samples, worker->signal, err));
        memset(worker->signal + samples, 0, 3 * sizeof *worker->signal);
        worker->kernel->frames(shape, &worker->memory, worker->signal, count,
                               out + i * shape->band_count);
    }
    return PRESTO_OK;
}

static presto_status run(const void *state, presto_step_context *context, const presto_tensor *in,
                         presto_tensor *out_out, presto_error *err) {
    const presto__mel_options *mel = state;
    mel_worker *worker = presto_step_worker(context);
    presto_tensor_spec spec;
    int64_t rate = 0;
    void *data;
    PRESTO_TRY(infer(state, &in->spec, &spec, err));
    PRESTO_TRY(find_rate(mel, context, &rate, err));
    PRESTO_TRY(find_shape(mel, worker, rate, err));
    PRESTO_TRY(prepare(worker, err));
    const presto__mel_shape *shape = worker->shape;
    size_t samples = (size_t)in->spec.dims[0];
    size_t frames = samples < shape->window ? 0 : 1 + (samples - shape->window) / shape->stride;
    spec.dims[0] = (int64_t)frames;
    PRESTO_TRY(presto_step_output(context, &spec, &data, err));
    PRESTO_TRY(run_frames(worker, in, frames, data, err));
    *out_out = (presto_tensor){.spec = spec, .data = data};
    return PRESTO_OK;
}

const presto_step_type presto__step_mel_spectrogram = {
    .abi = PRESTO_STEP_ABI,
    .name = "mel-spectrogram",
    .summary = "int16 (divided by 32768) or float32 [samples] to float32 [frames, bands]: "
               "logarithms of mel bands of the magnitudes of tf.signal.stft (pad_end=False), with "
               "the weights of tf.signal.linear_to_mel_weight_matrix. "
               "Within 1e-4 of TensorFlow, but where a band is 60 dB below the loudest of its "
               "frame: float32 does not resolve that, there or here.",
#if !PRESTO_HAVE_EIGEN
    .unsupported = "built without Eigen or a C++ compiler",
#endif
    .flags = PRESTO_STEP_READS_FEATURES,
    .options = options,
    .option_count = OPTION_COUNT,
    .create = create,
    .destroy = free,
    .infer = infer,
    .open_worker = open_worker,
    .close_worker = close_worker,
    .run = run,
};
