/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The file driver that libhdf5 reads through. It opens no file: it shows one that is open. A name
 * other than that file's, which a link to another file would bring, is refused. The library finds a
 * chunk of values in its index and asks the driver for the bytes: the driver notes where they are
 * and reads nothing, if it was told to. This is the fast way to all places: the library's own list
 * of chunks is searched from its start for each of them.
 */
#include <stdlib.h>
#include <string.h>

#include "../../../storage/storage_internal.h"
#include "hdf5_symbols_internal.h"

typedef struct shown_file {
    H5FD_t base; /* the library's part */
    presto__hdf5_view *view;
    haddr_t end; /* of what the library takes as allocated */
} shown_file;

/* The library passes no errno on. */
static void keep_failure(presto__hdf5_view *view, const presto_error *why) {
    if (view->failure.status >= 0)
        view->failure = *why;
}

static H5FD_t *driver_open(const char *name, unsigned flags, hid_t access, haddr_t most) {
    (void)most;
    const presto__hdf5_driver_info *info = H5(Pget_driver_info)(access);
    if (info == NULL || strcmp(name, info->view->name) != 0 ||
        (flags & (H5F_ACC_RDWR | H5F_ACC_TRUNC | H5F_ACC_CREAT)) != 0)
        return NULL;
    shown_file *file = calloc(1, sizeof *file);
    if (file == NULL) {
        presto_error why;
        (void)presto_fail_memory(&why, sizeof *file);
        keep_failure(info->view, &why);
        return NULL;
    }
    file->view = info->view;
    return &file->base;
}

static herr_t driver_close(H5FD_t *file) {
    free(file);
    return 0;
}

static int driver_compare(const H5FD_t *a, const H5FD_t *b) {
    const presto__hdf5_view *left = ((const shown_file *)a)->view;
    const presto__hdf5_view *right = ((const shown_file *)b)->view;
    return left < right ? -1 : left > right;
}

static herr_t driver_query(const H5FD_t *file, unsigned long *flags_out) {
    (void)file;
    *flags_out = 0;
    return 0;
}

static haddr_t driver_get_eoa(const H5FD_t *file, H5FD_mem_t kind) {
    (void)kind;
    return ((const shown_file *)file)->end;
}

static herr_t driver_set_eoa(H5FD_t *file, H5FD_mem_t kind, haddr_t end) {
    (void)kind;
    ((shown_file *)file)->end = end;
    return 0;
}

static haddr_t driver_get_eof(const H5FD_t *file, H5FD_mem_t kind) {
    (void)kind;
    return ((const shown_file *)file)->view->bytes;
}

/* Up to `bytes` bytes from `at` on; none if they cannot be read. */
static size_t read_at(presto__hdf5_view *view, uint64_t at, void *data, size_t bytes) {
    const presto__object_place place = {view->object, view->name, at};
    size_t got = 0;
    presto_error why;
    if (presto__read_at(place, data, bytes, &got, &why) >= 0)
        return got;
    keep_failure(view, &why);
    return 0;
}

void presto__hdf5_view_load(presto__hdf5_view *view, uint64_t at) {
    view->window_at = at;
    view->window_bytes = read_at(view, at, view->window, sizeof view->window);
}

static bool is_in_window(const presto__hdf5_view *view, haddr_t at, size_t bytes) {
    return at >= view->window_at && at - view->window_at <= view->window_bytes &&
           bytes <= view->window_bytes - (at - view->window_at);
}

/* Bytes of the file, which are there. */
static herr_t read_bytes(presto__hdf5_view *view, haddr_t at, size_t bytes, void *data) {
    if (bytes > sizeof view->window)
        return read_at(view, at, data, bytes) < bytes ? -1 : 0;
    if (!is_in_window(view, at, bytes) && view->left_windows > 0) {
        view->left_windows--;
        presto__hdf5_view_load(view, at);
    }
    if (!is_in_window(view, at, bytes))
        return -1;
    memcpy(data, view->window + (at - view->window_at), bytes);
    return 0;
}

static herr_t driver_read(H5FD_t *file, H5FD_mem_t kind, hid_t transfer, haddr_t at, size_t bytes,
                          void *data) {
    (void)transfer;
    presto__hdf5_view *view = ((shown_file *)file)->view;
    if (at > view->bytes || bytes > view->bytes - at)
        return -1;
    if (kind == H5FD_MEM_DRAW && view->notes_values) {
        view->has_seen = true;
        view->seen_offset = at;
        view->seen_bytes = bytes;
        return 0;
    }
    if (bytes > view->left_bytes)
        return -1;
    view->left_bytes -= bytes;
    return read_bytes(view, at, bytes, data);
}

static herr_t driver_write(H5FD_t *file, H5FD_mem_t kind, hid_t transfer, haddr_t at, size_t bytes,
                           const void *data) {
    (void)file, (void)kind, (void)transfer, (void)at, (void)bytes, (void)data;
    return -1;
}

const H5FD_class_t presto__hdf5_driver = {
#ifdef H5FD_CLASS_VERSION
    .version = H5FD_CLASS_VERSION,
    .value = (H5FD_class_value_t)600, /* from 512 on: not registered with the library's makers */
#endif
    .name = "presto",
    .maxaddr = INT64_MAX,
    .fc_degree = H5F_CLOSE_STRONG,
    .fapl_size = sizeof(presto__hdf5_driver_info),
    .open = driver_open,
    .close = driver_close,
    .cmp = driver_compare,
    .query = driver_query,
    .get_eoa = driver_get_eoa,
    .set_eoa = driver_set_eoa,
    .get_eof = driver_get_eof,
    .read = driver_read,
    .write = driver_write,
    .fl_map = H5FD_FLMAP_DICHOTOMY,
};
