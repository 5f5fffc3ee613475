/* SPDX-License-Identifier: Apache-2.0 */
/*
 * All calls of libhdf5: where the values of a file's datasets stand. The library prints its errors
 * and loads plugins by itself: both are off while it runs, and as they were afterwards, for others
 * in the process may use it too.
 */
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include <presto/numbers.h>

#include "../../../base/content_internal.h"
#include "hdf5_symbols_internal.h"

#define WORDS_BYTES 200
#define NAMES_BYTES 160
/* Metadata is read again when it has left the library's cache; no whole file needs more. Nor does
 * one jump about in them more often than there are chunks of so many bytes. */
#define METADATA_FACTOR 16
#define METADATA_LEAST (1 << 20)
#define BYTES_PER_WINDOW 256
#define WINDOWS_LEAST 4096
/* The least that a file spends on naming a chunk, and then some. */
#define LEAST_BYTES_PER_CHUNK 8
/* Data that cannot be compressed grows, but not by much. */
#define STORED_SLACK 4096

/* The library's state is the process's. */
static pthread_mutex_t library_lock = PTHREAD_MUTEX_INITIALIZER;

typedef struct session {
    const presto__hdf5_request *request;
    presto__hdf5_view view;
    hid_t file;
    /* What was set before. */
    H5E_auto2_t print;
    void *print_data;
    unsigned plugins;
    bool had_print, had_plugins;
} session;

/* A dataset that is open. */
typedef struct open_dataset {
    session *s;
    const char *name;
    hid_t set, type, space;
    hid_t how; /* it is stored: the list of properties */
    presto__hdf5_dataset *out;
} open_dataset;

/* ---- messages ---- */

static herr_t take_innermost(unsigned n, const H5E_error2_t *entry, void *user) {
    char *words = user;
    if (n == 0 && entry->desc != NULL)
        snprintf(words, WORDS_BYTES, "%s", entry->desc);
    return 0;
}

static herr_t find_memory(unsigned n, const H5E_error2_t *entry, void *user) {
    bool *is_memory = user;
    (void)n;
    *is_memory = *is_memory || entry->maj_num == H5_VALUE(E_RESOURCE) ||
                 entry->min_num == H5_VALUE(E_NOSPACE) || entry->min_num == H5_VALUE(E_CANTALLOC);
    return 0;
}

/* Did the last call fail because memory ran out? That is no fault of the file. */
static bool lacks_memory(void) {
    bool is_memory = false;
    (void)H5(Ewalk2)(H5E_DEFAULT, H5E_WALK_UPWARD, find_memory, &is_memory);
    return is_memory;
}

static herr_t find_any(unsigned n, const H5E_error2_t *entry, void *user) {
    (void)n, (void)entry;
    *(bool *)user = true;
    return 0;
}

/* Does the library say anything of its last failure? Of damage it does. Without memory for the
 * beginning, it fails for good, and in silence. */
static bool has_reason(void) {
    bool is_any = false;
    (void)H5(Ewalk2)(H5E_DEFAULT, H5E_WALK_UPWARD, find_any, &is_any);
    return is_any;
}

static presto_status fail_memory(presto_error *err) {
    return presto_fail(err, PRESTO_ERR_MEMORY, PRESTO_NO_OFFSET, "libhdf5 is out of memory");
}

/* What the library says of its last failure. */
static const char *library_words(char words[WORDS_BYTES]) {
    snprintf(words, WORDS_BYTES, "damaged");
    (void)H5(Ewalk2)(H5E_DEFAULT, H5E_WALK_UPWARD, take_innermost, words);
    return words;
}

#define fail_dataset(d, err, status, format, ...)                                                  \
    presto_fail(err, status, PRESTO_NO_OFFSET, "dataset '%.64s' " format, (d)->name, __VA_ARGS__)

static presto_status fail_damaged(const open_dataset *d, presto_error *err) {
    char words[WORDS_BYTES];
    if (lacks_memory())
        return fail_memory(err);
    return fail_dataset(d, err, PRESTO_ERR_CORRUPT, "cannot be read: %s", library_words(words));
}

static herr_t add_name(hid_t group, const char *name, const H5L_info_t *info, void *user) {
    (void)group, (void)info;
    char *names = user;
    size_t used = strlen(names);
    snprintf(names + used, NAMES_BYTES - used, "%s%s", used > 0 ? ", " : "", name);
    return used + strlen(name) + 3 >= NAMES_BYTES; /* 1: enough */
}

static presto_status fail_missing(const session *s, const char *name, presto_error *err) {
    char words[WORDS_BYTES];
    char names[NAMES_BYTES] = "";
    hsize_t at = 0;
    if (lacks_memory())
        return fail_memory(err);
    library_words(words);
    (void)H5(PRESTO__HDF5_ITERATE)(s->file, H5_INDEX_NAME, H5_ITER_INC, &at, add_name, names);
    return presto_fail(err, PRESTO_ERR_NOT_FOUND, PRESTO_NO_OFFSET,
                       "dataset '%.64s' cannot be opened: %s (there is: %s)", name, words,
                       names[0] == '\0' ? "nothing" : names);
}

/* ---- what the values are ---- */

static const char *name_of_class(H5T_class_t class) {
    static const char *const names[] = {
        [H5T_INTEGER] = "integers", [H5T_FLOAT] = "floats",         [H5T_TIME] = "times",
        [H5T_STRING] = "strings",   [H5T_BITFIELD] = "bit fields",  [H5T_OPAQUE] = "opaque data",
        [H5T_COMPOUND] = "records", [H5T_REFERENCE] = "references", [H5T_ENUM] = "enumerations",
        [H5T_VLEN] = "lists",       [H5T_ARRAY] = "arrays",
    };
    size_t count = sizeof names / sizeof names[0];
    return (int)class >= 0 && (size_t) class < count && names[class] != NULL ? names[class]
                                                                             : "values";
}

/* Why numbers of a size that is read are not read. */
static presto_status fail_layout(const open_dataset *d, H5T_class_t class, size_t bytes,
                                 presto_error *err) {
    size_t sign = 0, exponent_at = 0, exponent = 0, mantissa_at = 0, mantissa = 0;
    const char *name = name_of_class(class);
    H5T_order_t order = H5(Tget_order)(d->type);
    size_t bits = H5(Tget_precision)(d->type);
    int offset = H5(Tget_offset)(d->type);
    if (order != H5T_ORDER_LE && order != H5T_ORDER_BE && bytes > 1)
        return fail_dataset(
            d, err, PRESTO_ERR_UNSUPPORTED,
            "holds %s in a byte order that is not read (VAX): save little-endian ones", name);
    if (bits != bytes * 8)
        return fail_dataset(d, err, PRESTO_ERR_UNSUPPORTED,
                            "holds %s with a precision of %zu bits at bit %d of %zu byte%s, which "
                            "is not read: save %s that fill their bytes",
                            name, bits, offset, bytes, presto_plural(bytes), name);
    if (class == H5T_FLOAT &&
        H5(Tget_fields)(d->type, &sign, &exponent_at, &exponent, &mantissa_at, &mantissa) >= 0)
        return fail_dataset(
            d, err, PRESTO_ERR_UNSUPPORTED,
            "holds floats of %zu bytes that are not those of IEEE 754 (exponent of "
            "%zu bits, mantissa of %zu), which is not read: save float32 or float64",
            bytes, exponent, mantissa);
    return fail_dataset(d, err, PRESTO_ERR_UNSUPPORTED, "holds %s of a layout that is not read",
                        name);
}

static presto_status fail_number(const open_dataset *d, presto_error *err) {
    H5T_class_t class = H5(Tget_class)(d->type);
    size_t bytes = H5(Tget_size)(d->type);
    if ((class == H5T_FLOAT && (bytes == 4 || bytes == 8)) ||
        (class == H5T_INTEGER && (bytes == 1 || bytes == 2 || bytes == 4)))
        return fail_layout(d, class, bytes, err);
    return fail_dataset(d, err, PRESTO_ERR_TYPE,
                        "holds %s of %zu bytes each, needs floats of 4 or 8 bytes or integers of "
                        "1, 2 or 4",
                        name_of_class(class), bytes);
}

static presto_status find_number(const open_dataset *d, presto_error *err) {
    const struct {
        hid_t type;
        presto__hdf5_number number;
    } known[] = {
        {H5_VALUE(T_IEEE_F64LE), {PRESTO_FLOAT64, false}},
        {H5_VALUE(T_IEEE_F64BE), {PRESTO_FLOAT64, true}},
        {H5_VALUE(T_IEEE_F32LE), {PRESTO_FLOAT32, false}},
        {H5_VALUE(T_IEEE_F32BE), {PRESTO_FLOAT32, true}},
        {H5_VALUE(T_STD_I32LE), {PRESTO_INT32, false}},
        {H5_VALUE(T_STD_I32BE), {PRESTO_INT32, true}},
        {H5_VALUE(T_STD_U32LE), {PRESTO_UINT32, false}},
        {H5_VALUE(T_STD_U32BE), {PRESTO_UINT32, true}},
        {H5_VALUE(T_STD_I16LE), {PRESTO_INT16, false}},
        {H5_VALUE(T_STD_I16BE), {PRESTO_INT16, true}},
        {H5_VALUE(T_STD_U16LE), {PRESTO_UINT16, false}},
        {H5_VALUE(T_STD_U16BE), {PRESTO_UINT16, true}},
        {H5_VALUE(T_STD_I8LE), {PRESTO_INT8, false}},
        {H5_VALUE(T_STD_I8BE), {PRESTO_INT8, false}},
        {H5_VALUE(T_STD_U8LE), {PRESTO_UINT8, false}},
        {H5_VALUE(T_STD_U8BE), {PRESTO_UINT8, false}},
    };
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        if (H5(Tequal)(d->type, known[i].type) > 0) {
            d->out->number = known[i].number;
            return PRESTO_OK;
        }
    }
    return fail_number(d, err);
}

static presto_status find_length(const open_dataset *d, presto_error *err) {
    hsize_t dims[H5S_MAX_RANK] = {0};
    int rank = H5(Sget_simple_extent_ndims)(d->space);
    if (H5(Sget_simple_extent_type)(d->space) == H5S_SIMPLE && (rank == 1 || rank == 2) &&
        H5(Sget_simple_extent_dims)(d->space, dims, NULL) == rank && (rank == 1 || dims[1] == 1)) {
        d->out->values = dims[0];
        return PRESTO_OK;
    }
    if (rank != 2)
        return fail_dataset(d, err, PRESTO_ERR_TYPE, "has %d dimensions, needs [n] or [n,1]",
                            rank < 0 ? 0 : rank);
    return fail_dataset(d, err, PRESTO_ERR_TYPE,
                        "has the shape [%" PRIu64 ",%" PRIu64 "], needs [n] or [n,1]",
                        (uint64_t)dims[0], (uint64_t)dims[1]);
}

/* ---- how they are stored ---- */

static presto_status add_filter(const open_dataset *d, unsigned at, presto_error *err) {
    unsigned flags, config, values[1] = {0};
    size_t value_count = 1;
    char name[64] = "";
    H5Z_filter_t id =
        H5(Pget_filter2)(d->how, at, &flags, &value_count, values, sizeof name, name, &config);
    presto__hdf5_filter *filter = &d->out->filters[d->out->filter_count++];
    switch (id) {
    case H5Z_FILTER_DEFLATE:
        filter->kind = PRESTO__HDF5_DEFLATE;
        return PRESTO_OK;
    case H5Z_FILTER_SHUFFLE:
        filter->kind = PRESTO__HDF5_SHUFFLE;
        filter->item_bytes = value_count > 0 && values[0] > 0 ? values[0] : 1;
        return PRESTO_OK;
    case H5Z_FILTER_FLETCHER32:
        filter->kind = PRESTO__HDF5_FLETCHER32;
        return PRESTO_OK;
    default:
        break;
    }
    if (id < 0)
        return fail_damaged(d, err);
    return fail_dataset(d, err, PRESTO_ERR_UNSUPPORTED,
                        "is stored with the filter %s (number %d), which is not read: gzip, "
                        "shuffle and fletcher32 are",
                        name[0] != '\0' ? name : "without a name", id);
}

static presto_status find_filters(const open_dataset *d, presto_error *err) {
    int count = H5(Pget_nfilters)(d->how);
    if (count < 0)
        return fail_damaged(d, err);
    if (count > PRESTO__HDF5_MAX_FILTERS)
        return fail_dataset(d, err, PRESTO_ERR_LIMIT, "has %d filters, at most %d are read", count,
                            PRESTO__HDF5_MAX_FILTERS);
    for (unsigned i = 0; i < (unsigned)count; i++)
        PRESTO_TRY(add_filter(d, i, err));
    unsigned options = 0;
    if (H5(Pget_chunk_opts)(d->how, &options) < 0)
        return fail_damaged(d, err);
    d->out->is_last_raw = (options & H5D_CHUNK_DONT_FILTER_PARTIAL_CHUNKS) != 0;
    return PRESTO_OK;
}

/* The value of what was never written. Only asked for where it is needed: libhdf5 1.10 crashes on
 * that of some damaged files. */
static presto_status find_fill(const open_dataset *d, presto_error *err) {
    H5D_fill_value_t kind = H5D_FILL_VALUE_ERROR;
    if (H5(Pfill_value_defined)(d->how, &kind) < 0)
        return fail_damaged(d, err);
    if (kind == H5D_FILL_VALUE_USER_DEFINED &&
        H5(Pget_fill_value)(d->how, H5_VALUE(T_NATIVE_DOUBLE), &d->out->fill) < 0)
        return fail_damaged(d, err);
    return PRESTO_OK;
}

/* Chunk i of the dataset. Asking for a chunk that was never written fails, like asking a damaged
 * index: find_chunks tells them apart. */
static presto_status find_chunk(const open_dataset *d, uint64_t i, presto_error *err) {
    presto__hdf5_view *view = &d->s->view;
    presto__hdf5_chunk *chunk = &d->out->chunks[i];
    const hsize_t at[2] = {i * d->out->chunk_values, 0};
    uint8_t unused[8] = {0};
    uint64_t raw = d->out->chunk_values * presto_dtype_bytes(d->out->number.dtype);
    *chunk = (presto__hdf5_chunk){.offset = PRESTO__HDF5_NO_CHUNK};
    view->has_seen = false;
    view->notes_values = true;
    herr_t failed = H5(Dread_chunk)(d->set, H5P_DEFAULT, at, &chunk->skipped_filters, unused);
    view->notes_values = false;
    if (failed < 0 && lacks_memory())
        return presto_fail(err, PRESTO_ERR_MEMORY, PRESTO_NO_OFFSET, "libhdf5 is out of memory");
    if (failed < 0 || !view->has_seen)
        return PRESTO_OK;
    if (view->seen_bytes > raw + raw / 8 + STORED_SLACK)
        return presto_fail(err, PRESTO_ERR_CORRUPT, view->seen_offset,
                           "dataset '%.64s': chunk %" PRIu64 " has %" PRIu64 " byte%s for %" PRIu64
                           " of values",
                           d->name, i, view->seen_bytes, presto_plural(view->seen_bytes), raw);
    chunk->offset = view->seen_offset;
    chunk->bytes = (uint32_t)view->seen_bytes;
    return PRESTO_OK;
}

/* Room for all chunks, `chunk_values` each; an absurd number of them is refused. */
static presto_status make_chunks(const open_dataset *d, uint64_t chunk_values, presto_error *err) {
    presto__hdf5_dataset *out = d->out;
    uint64_t file_bytes = d->s->request->bytes;
    uint64_t count = out->values / chunk_values + (out->values % chunk_values != 0);
    if (count > file_bytes / LEAST_BYTES_PER_CHUNK)
        return fail_dataset(d, err, PRESTO_ERR_LIMIT,
                            "has %" PRIu64 " value%s in %" PRIu64 " chunk%s, more than its file of "
                            "%" PRIu64 " bytes can name",
                            out->values, presto_plural(out->values), count, presto_plural(count),
                            file_bytes);
    out->chunks = calloc((size_t)count + 1, sizeof *out->chunks);
    if (out->chunks == NULL)
        return presto_fail_memory(err, (count + 1) * sizeof *out->chunks);
    out->chunk_values = chunk_values;
    out->chunk_count = count;
    return PRESTO_OK;
}

static presto_status find_chunks(const open_dataset *d, presto_error *err) {
    presto__hdf5_dataset *out = d->out;
    hsize_t dims[2] = {0, 1};
    int rank = H5(Pget_chunk)(d->how, 2, dims);
    if (rank < 1 || dims[0] == 0)
        return fail_damaged(d, err);
    if (rank > 2 || dims[1] != 1)
        return fail_dataset(d, err, PRESTO_ERR_TYPE, "has chunks of %" PRIu64 " columns, needs 1",
                            (uint64_t)dims[1]);
    uint64_t most = d->s->request->max_chunk_bytes;
    if (dims[0] > most / presto_dtype_bytes(out->number.dtype))
        return fail_dataset(d, err, PRESTO_ERR_LIMIT,
                            "has chunks of %" PRIu64 " value%s, more than the source's "
                            "max-chunk-bytes (%" PRIu64 ")",
                            (uint64_t)dims[0], presto_plural(dims[0]), most);
    PRESTO_TRY(find_filters(d, err));
    PRESTO_TRY(make_chunks(d, dims[0], err));
    hsize_t written = 0;
    uint64_t found = 0;
    if (H5(Dget_num_chunks)(d->set, d->space, &written) < 0)
        return fail_damaged(d, err);
    if (written == 0 && out->values > 0)
        return fail_dataset(d, err, PRESTO_ERR_CORRUPT, "%s", "was never written");
    for (uint64_t i = 0; i < out->chunk_count; i++) {
        PRESTO_TRY(find_chunk(d, i, err));
        found += out->chunks[i].offset != PRESTO__HDF5_NO_CHUNK;
    }
    if (found != written)
        return fail_dataset(d, err, PRESTO_ERR_CORRUPT,
                            "has %" PRIu64 " chunk%s, of which only %" PRIu64 " can be found",
                            (uint64_t)written, presto_plural(written), found);
    return found < out->chunk_count ? find_fill(d, err) : PRESTO_OK;
}

static presto_status find_contiguous(const open_dataset *d, presto_error *err) {
    presto__hdf5_dataset *out = d->out;
    size_t value_bytes = presto_dtype_bytes(out->number.dtype);
    uint64_t file_bytes = d->s->request->bytes;
    if (H5(Pget_external_count)(d->how) != 0)
        return fail_dataset(d, err, PRESTO_ERR_UNSUPPORTED, "%s",
                            "has its values in other files, which are not read");
    if (out->values == 0)
        return PRESTO_OK;
    haddr_t offset = H5(Dget_offset)(d->set);
    if (offset == HADDR_UNDEF)
        return fail_dataset(d, err, PRESTO_ERR_CORRUPT, "%s", "was never written");
    if (offset > file_bytes || out->values > (file_bytes - offset) / value_bytes)
        return fail_dataset(d, err, PRESTO_ERR_TRUNCATED,
                            "has %" PRIu64 " value%s from byte %" PRIu64
                            " on, but the file ends at "
                            "%" PRIu64,
                            out->values, presto_plural(out->values), (uint64_t)offset, file_bytes);
    out->offset = offset;
    return PRESTO_OK;
}

static presto_status find_storage(const open_dataset *d, presto_error *err) {
    switch (H5(Pget_layout)(d->how)) {
    case H5D_CONTIGUOUS:
        return find_contiguous(d, err);
    case H5D_CHUNKED:
        return find_chunks(d, err);
    case H5D_COMPACT:
        return fail_dataset(d, err, PRESTO_ERR_UNSUPPORTED, "%s",
                            "is stored within its header (compact), which is not read");
    case H5D_VIRTUAL:
        return fail_dataset(d, err, PRESTO_ERR_UNSUPPORTED, "%s",
                            "is virtual: its values are in other files, which are not read");
    case H5D_LAYOUT_ERROR:
    case H5D_NLAYOUTS:
        break;
    }
    return fail_damaged(d, err);
}

/* ---- a dataset ---- */

static presto_status look_up_open(open_dataset *d, presto_error *err) {
    d->how = H5(Dget_create_plist)(d->set);
    if (d->how < 0)
        return fail_damaged(d, err);
    if (H5(Pget_layout)(d->how) == H5D_VIRTUAL)
        return find_storage(d, err); /* asking for more would open its files */
    d->type = H5(Dget_type)(d->set);
    d->space = H5(Dget_space)(d->set);
    if (d->type < 0 || d->space < 0)
        return fail_damaged(d, err);
    PRESTO_TRY(find_number(d, err));
    PRESTO_TRY(find_length(d, err));
    return find_storage(d, err);
}

static presto_status look_up_one(session *s, const char *name, presto__hdf5_dataset *out,
                                 presto_error *err) {
    open_dataset d = {.s = s, .name = name, .type = -1, .space = -1, .how = -1, .out = out};
    d.set = H5(Dopen2)(s->file, name, H5P_DEFAULT);
    if (d.set < 0)
        return fail_missing(s, name, err);
    presto_status status = look_up_open(&d, err);
    if (d.space >= 0)
        (void)H5(Sclose)(d.space);
    if (d.type >= 0)
        (void)H5(Tclose)(d.type);
    if (d.how >= 0)
        (void)H5(Pclose)(d.how);
    (void)H5(Dclose)(d.set);
    return status;
}

/* ---- the file ---- */

static presto_status look_up_all(session *s, presto__hdf5_dataset *datasets, presto_error *err) {
    const presto__hdf5_request *request = s->request;
    for (size_t i = 0; i < request->count; i++) {
        PRESTO_TRY(look_up_one(s, request->names[i], &datasets[i], err));
        if (datasets[i].values != datasets[0].values)
            return presto_fail(err, PRESTO_ERR_TYPE, PRESTO_NO_OFFSET,
                               "dataset '%.64s' has %" PRIu64 " value%s, '%.64s' has %" PRIu64,
                               request->names[0], datasets[0].values,
                               presto_plural(datasets[0].values), request->names[i],
                               datasets[i].values);
    }
    return PRESTO_OK;
}

/* The file's start tells whether it is something else. */
static presto_status fail_open(session *s, presto_error *err) {
    char words[WORDS_BYTES];
    library_words(words);
    presto__hdf5_view_load(&s->view, 0);
    const presto__content *content =
        presto__content_of(presto_span_of(s->view.window, s->view.window_bytes));
    if (content == NULL || strcmp(content->name, "hdf5") == 0)
        return presto_fail(err, PRESTO_ERR_CORRUPT, PRESTO_NO_OFFSET, "cannot be read as HDF5: %s",
                           words);
    return presto__content_refuse(content, PRESTO__CONTENT_ARRAYS, "an HDF5 file", err);
}

static presto_status look_up_file(session *s, presto__hdf5_dataset *datasets, presto_error *err) {
    const presto__hdf5_driver_info info = {&s->view};
    hid_t access = H5(Pcreate)(H5_VALUE(P_CLS_FILE_ACCESS_ID));
    hid_t driver = H5(FDregister)(&presto__hdf5_driver);
    presto_status status = PRESTO_OK;
    s->file = H5I_INVALID_HID;
    bool is_ready = access >= 0 && driver >= 0 && H5(Pset_driver)(access, driver, &info) >= 0;
    if (is_ready)
        s->file = H5(Fopen)(s->view.name, H5F_ACC_RDONLY, access);
    if (s->file < 0 && (!is_ready || lacks_memory() || !has_reason()))
        status = fail_memory(err);
    else if (s->file < 0)
        status = fail_open(s, err);
    else
        status = look_up_all(s, datasets, err);
    if (s->file >= 0)
        (void)H5(Fclose)(s->file);
    if (access >= 0)
        (void)H5(Pclose)(access);
    if (driver >= 0)
        (void)H5(FDunregister)(driver);
    return status;
}

/* False: the library cannot begin. */
static bool enter(session *s) {
    (void)H5(dont_atexit)(); /* it would print what damaged files left open */
    bool is_open = H5(open)() >= 0;
    s->had_print = H5(Eget_auto2)(H5E_DEFAULT, &s->print, &s->print_data) >= 0;
    s->had_plugins = H5(PLget_loading_state)(&s->plugins) >= 0;
    (void)H5(Eset_auto2)(H5E_DEFAULT, NULL, NULL);
    (void)H5(PLset_loading_state)(0);
    return is_open;
}

static void leave(session *s) {
    (void)H5(Eclear2)(H5E_DEFAULT);
    if (s->had_plugins)
        (void)H5(PLset_loading_state)(s->plugins);
    if (s->had_print)
        (void)H5(Eset_auto2)(H5E_DEFAULT, s->print, s->print_data);
}

presto_status presto__hdf5_begin(presto_error *err) {
    (void)pthread_mutex_lock(&library_lock);
    presto_status status = presto__hdf5_load(err);
    (void)pthread_mutex_unlock(&library_lock);
    return status;
}

static presto_status look_up(const presto__hdf5_request *request, presto__hdf5_dataset *datasets,
                             presto_error *err) {
    session s = {.request = request,
                 .view = {.object = request->object,
                          .bytes = request->bytes,
                          .name = request->path,
                          .left_bytes = request->bytes * METADATA_FACTOR + METADATA_LEAST,
                          .left_windows = request->bytes / BYTES_PER_WINDOW + WINDOWS_LEAST}};
    memset(datasets, 0, request->count * sizeof *datasets);
    /* Whoever waits for a disk or a file server does so without the lock: most of the time, all
     * metadata are at the front. */
    presto__hdf5_view_load(&s.view, 0);
    (void)pthread_mutex_lock(&library_lock);
    presto_status status = presto__hdf5_load(err);
    if (status >= 0) {
        status = enter(&s) ? look_up_file(&s, datasets, err) : fail_memory(err);
        leave(&s);
    }
    (void)pthread_mutex_unlock(&library_lock);
    if (s.view.failure.status < 0) { /* the library takes it for damage */
        status = s.view.failure.status;
        if (err != NULL)
            *err = s.view.failure;
    }
    for (size_t i = 0; i < request->count && status < 0; i++)
        presto__hdf5_dataset_done(&datasets[i]);
    return status;
}

presto_status presto__hdf5_look_up(const presto__hdf5_request *request,
                                   presto__hdf5_dataset *datasets_out, presto_error *err) {
    presto__hdf5_dataset *datasets = calloc(request->count, sizeof *datasets);
    if (datasets == NULL)
        return presto_fail_memory(err, request->count * sizeof *datasets);
    presto_status status = look_up(request, datasets, err);
    /* In many places the library does not say that memory has run out, and calls the file damaged.
     * One that is damaged is so a second time. */
    if (status < 0 && status != PRESTO_ERR_MEMORY && status != PRESTO_ERR_IO)
        status = look_up(request, datasets, err);
    if (status >= 0)
        memcpy(datasets_out, datasets, request->count * sizeof *datasets);
    else
        presto_error_set_file(err, request->path);
    free(datasets);
    return status;
}
