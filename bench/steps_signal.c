/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Steps on signals beside plain loops that compute the same; windows of HDF5 files, read without
 * libhdf5, beside its H5Dread, which h5py calls, under a lock as there.
 */
#include "steps.h"

#include <fcntl.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { WINDOW = 64000, LINE = 128, PERIOD = 500, SIGNALS = 8 };

static void *need_memory(size_t bytes) {
    void *memory = aligned_alloc(64, (bytes + 63) / 64 * 64);
    if (memory == NULL)
        bench_die("out of memory");
    return memory;
}

/* ---- plain loops: a state is the memory for their output ---- */

typedef struct loop {
    const presto_tensor *inputs;
    float *floats;
    double *doubles;
} loop;

static void *loop_open(const void *user) {
    loop *l = need_memory(sizeof *l);
    *l = (loop){user, need_memory(WINDOW * sizeof(float)),
                need_memory(sizeof(double) * 3 * (WINDOW / LINE))};
    return l;
}

static void loop_close(void *user) {
    loop *l = user;
    free(l->floats);
    free(l->doubles);
    free(l);
}

static void bare_aggregate(void *user, size_t number) {
    loop *l = user;
    const double *volts = l->inputs[number].data, *amperes = volts + WINDOW;
    double *out = l->doubles, mean = 0, sum = 0;
    size_t periods = WINDOW / LINE;
    for (size_t p = 0; p < periods; p++) {
        double power[8] = {0}, square[8] = {0};
        for (size_t i = p * LINE; i < (p + 1) * LINE; i += 8)
            for (size_t k = 0; k < 8; k++) {
                power[k] += volts[i + k] * amperes[i + k];
                square[k] += amperes[i + k] * amperes[i + k];
            }
        for (size_t k = 1; k < 8; k++) {
            power[0] += power[k];
            square[0] += square[k];
        }
        out[p] = power[0] / LINE;
        out[periods + p] = sqrt(square[0] / LINE);
        mean += out[periods + p];
    }
    mean /= (double)periods;
    for (size_t p = 0; p < periods; p++)
        out[2 * periods + p] = sum += out[periods + p] - mean;
}

static void bare_rms_bytes(void *user, size_t number) {
    loop *l = user;
    const uint8_t *in = l->inputs[number].data;
    size_t periods = (size_t)l->inputs[number].spec.dims[0] / PERIOD;
    for (size_t p = 0; p < periods; p++, in += PERIOD) {
        uint32_t sum = 0;
        for (size_t i = 0; i < PERIOD; i++)
            sum += (uint32_t)in[i] * in[i];
        l->floats[p] = (float)sqrt((double)sum / PERIOD);
    }
}

/* In the order in which NumPy adds, for the same result to the bit. */
static double squares(const float *in, size_t count) {
    if (count > 128) {
        size_t half = count / 2 - count / 2 % 8;
        return squares(in, half) + squares(in + half, count - half);
    }
    double lanes[8] = {0};
    size_t i = 0;
    for (; i + 8 <= count; i += 8)
        for (size_t k = 0; k < 8; k++)
            lanes[k] += (double)in[i + k] * (double)in[i + k];
    double sum = ((lanes[0] + lanes[1]) + (lanes[2] + lanes[3])) +
                 ((lanes[4] + lanes[5]) + (lanes[6] + lanes[7]));
    for (; i < count; i++)
        sum += (double)in[i] * (double)in[i];
    return sum;
}

static void bare_rms_floats(void *user, size_t number) {
    loop *l = user;
    const float *in = l->inputs[number].data;
    size_t periods = (size_t)l->inputs[number].spec.dims[0] / PERIOD;
    for (size_t p = 0; p < periods; p++, in += PERIOD)
        l->floats[p] = (float)sqrt(squares(in, PERIOD) / PERIOD);
}

/* A row whose samples are `spec`: numbers below 128, whatever the dtype. */
static void signal_row(const steps_settings *set, const char *row, const char *yaml,
                       const presto_tensor_spec *spec, void (*bare_run)(void *, size_t)) {
    presto_tensor inputs[SIGNALS];
    if (!steps_wanted(set, row))
        return;
    size_t values = (size_t)presto_spec_elements(spec);
    for (size_t s = 0; s < SIGNALS; s++) {
        uint8_t *data = need_memory(values * sizeof(double));
        for (size_t i = 0; i < values; i++) {
            double value = (double)((i * 37 + s) % 128);
            if (spec->dtype == PRESTO_UINT8)
                data[i] = (uint8_t)value;
            else if (spec->dtype == PRESTO_FLOAT32)
                ((float *)(void *)data)[i] = (float)value;
            else
                ((double *)(void *)data)[i] = value;
        }
        inputs[s] = (presto_tensor){.spec = *spec, .data = data};
    }
    steps_plan *plan = steps_plan_new(yaml, 0, 1, spec, inputs);
    steps_side step = steps_plan_side(plan);
    steps_side bare = {loop_open, bare_run, loop_close, inputs};
    steps_measure(set, row, SIGNALS, &step, &bare);
    steps_plan_free(plan);
    for (size_t s = 0; s < SIGNALS; s++)
        free((void *)(uintptr_t)inputs[s].data);
}

/* ---- windows of HDF5 ---- */

#if PRESTO_HAVE_HDF5
#include <hdf5.h>

#include "loader/source/hdf5/hdf5_internal.h"

static const char *const names[] = {"voltage", "current"};
static pthread_mutex_t library_turn = PTHREAD_MUTEX_INITIALIZER;

typedef struct recording {
    char path[STEPS_PATH_BYTES];
    int fd;
    presto__hdf5_dataset datasets[2];
} recording;

typedef struct reader {
    const recording *of;
    presto__hdf5_cursor cursors[2];
    hid_t file, sets[2], space;
    double *window;
} reader;

static void *reader_open(const void *user) {
    const hsize_t values = WINDOW;
    reader *r = need_memory(sizeof *r);
    *r = (reader){.of = user, .window = need_memory(sizeof(double) * 2 * WINDOW)};
    pthread_mutex_lock(&library_turn);
    r->file = H5Fopen(r->of->path, H5F_ACC_RDONLY, H5P_DEFAULT);
    for (size_t i = 0; i < 2; i++)
        r->sets[i] = H5Dopen2(r->file, names[i], H5P_DEFAULT);
    r->space = H5Screate_simple(1, &values, NULL);
    pthread_mutex_unlock(&library_turn);
    if (r->file < 0 || r->sets[0] < 0 || r->sets[1] < 0)
        bench_die("%s: libhdf5 cannot open it", r->of->path);
    return r;
}

static void reader_close(void *user) {
    reader *r = user;
    pthread_mutex_lock(&library_turn);
    H5Sclose(r->space);
    for (size_t i = 0; i < 2; i++)
        H5Dclose(r->sets[i]);
    H5Fclose(r->file);
    pthread_mutex_unlock(&library_turn);
    for (size_t i = 0; i < 2; i++)
        presto__hdf5_cursor_done(&r->cursors[i]);
    free(r->window);
    free(r);
}

static void read_without_library(void *user, size_t number) {
    reader *r = user;
    presto__read_stats stats = {0};
    presto_error err;
    for (size_t i = 0; i < 2; i++) {
        const presto__hdf5_range range = {.object = presto__object_of_file(r->of->fd),
                                          .path = r->of->path,
                                          .dataset = &r->of->datasets[i],
                                          .first = number * WINDOW,
                                          .count = WINDOW};
        r->cursors[i].dataset = NULL; /* the slices begin anew: what they had counts for neither */
        bench_need(presto__hdf5_read(&r->cursors[i], &range, r->window + i * WINDOW, &stats, &err),
                   &err, r->of->path);
    }
}

static void read_with_library(void *user, size_t number) {
    reader *r = user;
    const hsize_t first = number * WINDOW, count = WINDOW;
    pthread_mutex_lock(&library_turn);
    for (size_t i = 0; i < 2; i++) {
        hid_t from = H5Dget_space(r->sets[i]);
        H5Sselect_hyperslab(from, H5S_SELECT_SET, &first, NULL, &count, NULL);
        if (H5Dread(r->sets[i], H5T_NATIVE_DOUBLE, r->space, from, H5P_DEFAULT,
                    r->window + i * WINDOW) < 0)
            bench_die("%s: H5Dread", r->of->path);
        H5Sclose(from);
    }
    pthread_mutex_unlock(&library_turn);
}

/* The first file of the corpus. */
static void find_recording(const steps_settings *set, recording *of) {
    char folder[STEPS_PATH_BYTES];
    char command[STEPS_PATH_BYTES + 64];
    steps_corpus(set, "nilm", "--scale 0.1", folder);
    snprintf(command, sizeof command, "find \"%s\" -name '*.h5' | LC_ALL=C sort", folder);
    FILE *list = popen(command, "r");
    if (list == NULL || fgets(of->path, sizeof of->path, list) == NULL)
        bench_die("%s: no file *.h5", folder);
    pclose(list);
    of->path[strcspn(of->path, "\n")] = '\0';
    of->fd = open(of->path, O_RDONLY | O_CLOEXEC);
    if (of->fd < 0)
        bench_die("%s: cannot open", of->path);
}

static void hdf5_row(const steps_settings *set, const char *row) {
    presto_error err;
    recording of = {.fd = -1};
    struct stat info;
    if (!steps_wanted(set, row))
        return;
    find_recording(set, &of);
    if (fstat(of.fd, &info) != 0)
        bench_die("%s: cannot stat", of.path);
    const presto__hdf5_request request = {.object = presto__object_of_file(of.fd),
                                          .bytes = (uint64_t)info.st_size,
                                          .path = of.path,
                                          .names = names,
                                          .count = 2,
                                          .max_chunk_bytes = 1 << 28};
    bench_need(presto__hdf5_look_up(&request, of.datasets, &err), &err, of.path);
    size_t windows = (size_t)(of.datasets[0].values / WINDOW);
    if (windows == 0)
        bench_die("%s: shorter than a window", of.path);
    steps_side step = {reader_open, read_without_library, reader_close, &of};
    steps_side bare = {reader_open, read_with_library, reader_close, &of};
    steps_measure(set, row, windows, &step, &bare);
    for (size_t i = 0; i < 2; i++)
        presto__hdf5_dataset_done(&of.datasets[i]);
    close(of.fd);
}
#endif

void steps_signal(const steps_settings *set) {
    const presto_tensor_spec mains = {PRESTO_FLOAT64, 2, {2, WINDOW}};
    const presto_tensor_spec bytes = {PRESTO_UINT8, 1, {(int64_t)2000 * PERIOD}};
    const presto_tensor_spec floats = {PRESTO_FLOAT32, 1, {(int64_t)500 * PERIOD}};
    signal_row(set, "aggregate, windows of 2 x 64,000",
               "{name: b, source: {type: hdf5}, steps: [{step: aggregate}]}", &mains,
               bare_aggregate);
    signal_row(set, "rms, 1 MB of uint8",
               "{name: b, source: {type: synthetic}, steps: [{step: rms}]}", &bytes,
               bare_rms_bytes);
    signal_row(set, "rms, 1 MB of float32",
               "{name: b, source: {type: synthetic, dtype: float32}, steps: [{step: rms}]}",
               &floats, bare_rms_floats);
#if PRESTO_HAVE_HDF5
    hdf5_row(set, "source hdf5 beside H5Dread, gzip and shuffle");
#endif
}
