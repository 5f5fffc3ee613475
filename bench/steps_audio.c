/* SPDX-License-Identifier: Apache-2.0 */
/* The audio steps: decode-audio beside libsndfile, mel-spectrogram beside its FFT. */
#include "steps.h"

#include <math.h>
#include <sndfile.h>
#include <stdio.h>
#include <stdlib.h>

#include "steps/audio/mel_internal.h"

/* ---- decode-audio ---- */

typedef struct decoder {
    const steps_files *clips;
    presto_buffer samples;
    presto_span file; /* at hand */
    sf_count_t at;
} decoder;

static void *decoder_open(const void *user) {
    decoder *d = calloc(1, sizeof *d);
    if (d == NULL)
        bench_die("out of memory");
    d->clips = user;
    return d;
}

static void decoder_close(void *user) {
    decoder *d = user;
    presto_buffer_done(&d->samples);
    free(d);
}

static sf_count_t file_length(void *user) {
    return (sf_count_t)((const decoder *)user)->file.bytes;
}

static sf_count_t file_seek(sf_count_t offset, int whence, void *user) {
    decoder *d = user;
    d->at = offset + (whence == SEEK_CUR ? d->at : whence == SEEK_END ? file_length(user) : 0);
    return d->at;
}

static sf_count_t file_read(void *out, sf_count_t count, void *user) {
    decoder *d = user;
    sf_count_t left = file_length(user) - d->at;
    count = count < left ? count : left;
    memcpy(out, d->file.data + d->at, (size_t)count);
    d->at += count;
    return count;
}

static sf_count_t file_write(const void *data, sf_count_t count, void *user) {
    (void)data, (void)count, (void)user;
    return 0;
}

static sf_count_t file_tell(void *user) {
    return ((const decoder *)user)->at;
}

static void bare_decode(void *user, size_t number) {
    static SF_VIRTUAL_IO calls = {file_length, file_seek, file_read, file_write, file_tell};
    decoder *d = user;
    SF_INFO info = {0};
    d->file = d->clips->files[number];
    d->at = 0;
    SNDFILE *file = sf_open_virtual(&calls, SFM_READ, &info, d);
    if (file == NULL)
        bench_die("libsndfile: %s", sf_strerror(NULL));
    d->samples.bytes = 0;
    bench_need(presto_buffer_reserve(&d->samples, (size_t)info.frames * sizeof(short), NULL), NULL,
               "memory");
    sf_readf_short(file, (short *)(void *)d->samples.data, info.frames);
    sf_close(file);
}

static void decode_row(const steps_settings *set, const char *row, const char *corpus,
                       const char *ending) {
    char folder[STEPS_PATH_BYTES];
    steps_files clips;
    if (!steps_wanted(set, row))
        return;
    steps_corpus(set, corpus, "--scale 0.2", folder);
    steps_read_files(folder, ending, 60, &clips);
    steps_plan *plan = steps_plan_new("{name: b, source: {type: files}, steps: [{step: read-file}, "
                                      "{step: decode-audio}]}",
                                      1, 2, &steps_string_spec, clips.samples);
    steps_side step = steps_plan_side(plan);
    steps_side bare = {decoder_open, bare_decode, decoder_close, &clips};
    steps_measure(set, row, clips.count, &step, &bare);
    steps_plan_free(plan);
    steps_free_files(&clips);
}

/* ---- mel-spectrogram ---- */

enum { FFT_LENGTH = 1024, BANDS = 80 };

typedef struct clip {
    presto_tensor tensor;
    size_t frames;
} clip;

typedef struct transformer {
    const clip *of;
    const presto__fft_kernel *kernel;
    void *plan;
    float *in, *out;
    uint8_t *samples;
    float *spectrogram;
} transformer;

static void *lanes_new(size_t rows) {
    void *memory = aligned_alloc(64, rows * PRESTO__FFT_LANES * sizeof(float));
    if (memory == NULL)
        bench_die("out of memory");
    memset(memory, 0, rows * PRESTO__FFT_LANES * sizeof(float));
    return memory;
}

static void *transformer_open(const void *user) {
    transformer *t = calloc(1, sizeof *t);
    if (t == NULL)
        bench_die("out of memory");
    t->of = user;
    t->kernel = presto__mel_kernel_choose()->fft;
    t->plan = t->kernel->plan_new(FFT_LENGTH / 2);
    t->in = lanes_new(FFT_LENGTH);
    t->out = lanes_new(FFT_LENGTH);
    t->samples = malloc(presto_tensor_bytes(&t->of->tensor));
    t->spectrogram = malloc(t->of->frames * BANDS * sizeof(float));
    if (t->plan == NULL || t->samples == NULL || t->spectrogram == NULL)
        bench_die("out of memory");
    return t;
}

/* The transforms, samples read and values written once. */
static void bare_transform(void *user, size_t number) {
    transformer *t = user;
    (void)number;
    memcpy(t->samples, t->of->tensor.data, presto_tensor_bytes(&t->of->tensor));
    for (size_t i = 0; i < t->of->frames; i += PRESTO__FFT_LANES)
        t->kernel->run(t->plan, t->in, t->out);
    memset(t->spectrogram, 0, t->of->frames * BANDS * sizeof(float));
}

static void transformer_close(void *user) {
    transformer *t = user;
    t->kernel->plan_free(t->plan);
    free(t->in);
    free(t->out);
    free(t->samples);
    free(t->spectrogram);
    free(t);
}

static void mel_row(const steps_settings *set, const char *row, int rate) {
    char yaml[256];
    if (!steps_wanted(set, row))
        return;
    size_t count = (size_t)rate * (set->quick ? 1 : 12);
    int16_t *samples = malloc(count * sizeof *samples);
    if (samples == NULL)
        bench_die("out of memory");
    for (size_t i = 0; i < count; i++)
        samples[i] = (int16_t)(9000 * sin((double)i * 0.03) + 3000 * sin((double)(i % 977)));
    clip one = {.tensor = {.spec = {PRESTO_INT16, 1, {(int64_t)count}}, .data = samples},
                .frames = 1 + (count - (size_t)rate / 50) / ((size_t)rate / 100)};
    snprintf(yaml, sizeof yaml,
             "{name: b, source: {type: files}, steps: [{step: read-file}, {step: decode-audio}, "
             "{step: mel-spectrogram, rate: %d}]}",
             rate);
    steps_plan *plan = steps_plan_new(yaml, 2, 3, &one.tensor.spec, &one.tensor);
    steps_side step = steps_plan_side(plan);
    steps_side bare = {transformer_open, bare_transform, transformer_close, &one};
    steps_measure(set, row, 1, &step, &bare);
    steps_plan_free(plan);
    free(samples);
}

void steps_audio(const steps_settings *set) {
    decode_row(set, "decode-audio, MP3, 5 s at 48 kHz", "mp3", ".mp3");
    decode_row(set, "decode-audio, FLAC, 12 s at 16 kHz", "flac", ".flac");
    mel_row(set, "mel-spectrogram, 12 s at 16 kHz", 16000);
    mel_row(set, "mel-spectrogram, 12 s at 48 kHz", 48000);
}
