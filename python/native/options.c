/* SPDX-License-Identifier: Apache-2.0 */
/* A loader's options from a dict that the package has checked: numbers, flags, bytes. */
#include "native_internal.h"

/* ---- values ---- */

/* What is missing keeps its default; so does None. */
static PyObject *find(PyObject *dict, const char *key) {
    PyObject *value = PyDict_GetItemString(dict, key);
    return value == Py_None ? NULL : value;
}

static void read_u64(PyObject *dict, const char *key, uint64_t *out) {
    PyObject *value = PyErr_Occurred() ? NULL : find(dict, key);
    if (value == NULL)
        return;
    unsigned long long number = PyLong_AsUnsignedLongLong(value);
    if (!PyErr_Occurred())
        *out = number;
}

static void read_size(PyObject *dict, const char *key, size_t *out) {
    uint64_t number = *out;
    read_u64(dict, key, &number);
    *out = number > SIZE_MAX ? SIZE_MAX : (size_t)number;
}

static void read_flag(PyObject *dict, const char *key, bool *out) {
    PyObject *value = PyErr_Occurred() ? NULL : find(dict, key);
    if (value != NULL)
        *out = PyObject_IsTrue(value) == 1;
}

static void read_fraction(PyObject *dict, const char *key, double *out) {
    PyObject *value = PyErr_Occurred() ? NULL : find(dict, key);
    if (value != NULL)
        *out = PyFloat_AsDouble(value);
}

static const char *bytes_of(PyObject *object, size_t *bytes_out) {
    char *text;
    Py_ssize_t bytes;
    if (PyBytes_AsStringAndSize(object, &text, &bytes) < 0)
        return NULL;
    *bytes_out = (size_t)bytes;
    return text;
}

/* ---- lists ---- */

static void read_features(PyObject *dict, native_options *options) {
    PyObject *names = PyErr_Occurred() ? NULL : find(dict, "features");
    if (names == NULL)
        return;
    Py_ssize_t count = PyTuple_Size(names);
    if (count < 0)
        return;
    options->features = PyMem_Calloc((size_t)count + 1, sizeof *options->features);
    if (options->features == NULL) {
        PyErr_NoMemory();
        return;
    }
    for (Py_ssize_t i = 0; i < count; i++) {
        options->features[i] = PyBytes_AsString(PyTuple_GetItem(names, i));
        if (options->features[i] == NULL)
            return;
    }
    options->loader.features = options->features;
    options->loader.feature_count = (size_t)count;
}

/* ((name, value, length), ...) */
static void read_pads(PyObject *dict, native_options *options) {
    PyObject *pads = PyErr_Occurred() ? NULL : find(dict, "pads");
    if (pads == NULL)
        return;
    Py_ssize_t count = PyTuple_Size(pads);
    if (count < 0)
        return;
    options->pads = PyMem_Calloc((size_t)count + 1, sizeof *options->pads);
    if (options->pads == NULL) {
        PyErr_NoMemory();
        return;
    }
    for (Py_ssize_t i = 0; i < count; i++) {
        unsigned long long length;
        presto_pad *pad = &options->pads[i];
        if (!PyArg_ParseTuple(PyTuple_GetItem(pads, i), "ydK", &pad->feature, &pad->value, &length))
            return;
        pad->length = length;
    }
    options->loader.pads = options->pads;
    options->loader.pad_count = (size_t)count;
}

/* ---- groups ---- */

static void read_order(PyObject *dict, presto_loader_order *order) {
    uint64_t shuffle = order->shuffle;
    read_u64(dict, "seed", &order->seed);
    read_u64(dict, "shuffle", &shuffle);
    order->shuffle = (presto_shuffle_kind)shuffle;
    read_u64(dict, "window", &order->shuffle_window);
    read_flag(dict, "completion", &order->completion);
}

static void read_range(PyObject *dict, presto_loader_range *range) {
    read_u64(dict, "epochs", &range->epochs);
    read_u64(dict, "first_epoch", &range->first_epoch);
    read_u64(dict, "first_sample", &range->first_sample);
    read_u64(dict, "rank", &range->rank);
    read_u64(dict, "world", &range->world);
    read_flag(dict, "drop_last", &range->drop_last);
    PyObject *state = PyErr_Occurred() ? NULL : find(dict, "state");
    size_t bytes = 0;
    const char *text = state == NULL ? NULL : bytes_of(state, &bytes);
    range->state = presto_span_of((const uint8_t *)text, bytes);
}

static void read_errors(PyObject *dict, presto_loader_errors *errors) {
    bool skips = false;
    read_flag(dict, "skip", &skips);
    errors->policy = skips ? PRESTO_ON_ERROR_SKIP : PRESTO_ON_ERROR_FAIL;
    read_u64(dict, "skip_limit", &errors->skip_limit);
    read_fraction(dict, "skip_fraction", &errors->skip_fraction);
}

bool native_options_read(PyObject *dict, native_options *options_out) {
    *options_out = (native_options){.hold_bytes = UINT64_MAX};
    presto_loader_options *loader = &options_out->loader;
    presto_loader_options_defaults(loader);
    uint64_t threads = loader->threads;
    size_t dir_bytes;
    read_u64(dict, "threads", &threads);
    loader->threads = threads > UINT_MAX ? UINT_MAX : (unsigned)threads;
    read_flag(dict, "auto_threads", &loader->auto_threads);
    read_size(dict, "batch", &loader->batch_samples);
    read_order(dict, &loader->order);
    read_range(dict, &loader->range);
    read_errors(dict, &loader->errors);
    read_size(dict, "prefetch_bytes", &loader->memory.prefetch_bytes);
    read_size(dict, "cache_bytes", &loader->cache.bytes);
    PyObject *dir = PyErr_Occurred() ? NULL : find(dict, "cache_dir");
    if (dir != NULL)
        loader->cache.dir = bytes_of(dir, &dir_bytes);
    read_u64(dict, "hold_bytes", &options_out->hold_bytes);
    read_features(dict, options_out);
    read_pads(dict, options_out);
    options_out->on_skip = PyErr_Occurred() ? NULL : find(dict, "on_skip");
    if (!PyErr_Occurred())
        return true;
    native_options_done(options_out);
    return false;
}

void native_options_done(native_options *options) {
    PyMem_Free((void *)options->features);
    PyMem_Free(options->pads);
}
