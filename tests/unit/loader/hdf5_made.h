/* SPDX-License-Identifier: Apache-2.0 */
/* Files that libhdf5 writes on the spot, opened as the source `hdf5`. */
#ifndef HDF5_MADE_H
#define HDF5_MADE_H

#include <stdio.h>
#include <unistd.h>

#include "../../../loader/loader_internal.h"
#include "../../../steps/pipelines_internal.h"
#include "folder_check.h"
#include "loader_check.h"

#include "source/core/source_internal.h"

#include <hdf5.h>

#include "source/hdf5/hdf5_internal.h"

/* libhdf5 forgets to free some memory of some damaged files. */
__attribute__((visibility("default"))) const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void) {
    return "leak:libhdf5\n";
}

#define WINDOW ((size_t)100)
#define VALUES ((hsize_t)1037) /* ten windows and a rest */
#define WINDOWS ((size_t)10)

/* How a dataset is written. */
typedef struct layout {
    hid_t type;         /* in the file; 0: H5T_IEEE_F64LE */
    hsize_t chunk;      /* 0: contiguous */
    hsize_t columns;    /* 0: one dimension */
    bool is_latest;     /* newest version of the format */
    const int *filters; /* ends with 0; 1 gzip, 2 shuffle, 3 fletcher32 */
    hsize_t values;     /* 0: VALUES */
    bool is_last_raw;
} layout;

static char *dir;
static presto_source *source;
static presto_pipeline *pipeline;
static presto_error err;

/* Whole numbers of up to 7 bits, so that every type holds them. */
static inline double value_of(int row, uint64_t i) {
    return (double)((i * 37 + (uint64_t)row * 11 + i / 100) % 127);
}

static inline void write_dataset(hid_t file, const char *name, int row, const layout *how) {
    hsize_t count = how->values == 0 ? VALUES : how->values;
    const hsize_t dims[2] = {count, how->columns}, chunk[2] = {how->chunk, how->columns};
    int rank = how->columns == 0 ? 1 : 2;
    hid_t list = H5Pcreate(H5P_DATASET_CREATE);
    if (how->chunk > 0)
        H5Pset_chunk(list, rank, chunk);
    if (how->is_last_raw)
        H5Pset_chunk_opts(list, H5D_CHUNK_DONT_FILTER_PARTIAL_CHUNKS);
    for (const int *filter = how->filters; filter != NULL && *filter != 0; filter++) {
        if (*filter == 1)
            H5Pset_deflate(list, 4);
        else if (*filter == 2)
            H5Pset_shuffle(list);
        else
            H5Pset_fletcher32(list);
    }
    const hsize_t most[2] = {H5S_UNLIMITED, how->columns}; /* a chunk may be larger than that */
    hid_t space = H5Screate_simple(rank, dims, how->chunk > count ? most : NULL);
    hid_t set = H5Dcreate2(file, name, how->type == 0 ? H5T_IEEE_F64LE : how->type, space,
                           H5P_DEFAULT, list, H5P_DEFAULT);
    ck_assert_int_ge(set, 0);
    double *values = malloc((count + 1) * (how->columns + 1) * sizeof *values);
    for (hsize_t i = 0; i < count * (how->columns == 0 ? 1 : how->columns); i++)
        values[i] = value_of(row, i);
    ck_assert_int_ge(H5Dwrite(set, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, values), 0);
    free(values);
    H5Dclose(set);
    H5Sclose(space);
    H5Pclose(list);
}

static inline hid_t make_file(const char *name, bool is_latest) {
    hid_t access = H5Pcreate(H5P_FILE_ACCESS);
    if (is_latest)
        H5Pset_libver_bounds(access, H5F_LIBVER_LATEST, H5F_LIBVER_LATEST);
    hid_t file = H5Fcreate(path_in(dir, name), H5F_ACC_TRUNC, H5P_DEFAULT, access);
    ck_assert_int_ge(file, 0);
    H5Pclose(access);
    return file;
}

static inline void write_file(const char *name, const layout *voltage, const layout *current) {
    hid_t file = make_file(name, voltage->is_latest);
    write_dataset(file, "voltage", 0, voltage);
    write_dataset(file, "current", 1, current);
    H5Fclose(file);
}

static const int gzip[] = {1, 0}, shuffle_gzip[] = {2, 1, 0}, all[] = {2, 1, 3, 0},
                 sum_gzip[] = {3, 1, 0}, only_sum[] = {3, 0}, only_shuffle[] = {2, 0};
static const layout contiguous = {0};
static const layout small_chunks = {.chunk = 33, .filters = shuffle_gzip};

static inline presto_status open_source(const char *options) {
    char yaml[400];
    snprintf(yaml, sizeof yaml, "{name: p, source: {type: hdf5, samples: %zu%s}, steps: []}",
             WINDOW, options);
    ck_assert_ok(presto__pipeline_parse(presto_span_of_text(yaml), "p", NULL, &pipeline, &err),
                 &err);
    return presto__source_open_raw(pipeline, (const char *const *)&dir, 1, &source, &err);
}

static inline void set_up(void) {
    dir = presto_check_temp_dir();
    source = NULL;
}

static inline void close_source(void) {
    presto__source_free(source);
    presto_pipeline_free(pipeline);
    source = NULL;
    pipeline = NULL;
}

static inline void tear_down(void) {
    close_source();
    presto_check_remove_tree(dir);
    free(dir);
}

#endif
