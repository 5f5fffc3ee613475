/* SPDX-License-Identifier: Apache-2.0 */
/* A loader's options from a dict that the package has checked. */
#include "writing_internal.h"

#define FIELD(name, kind, member)                                                                  \
    { name, kind, offsetof(native_options, member), 0 }

/* A new option of presto_loader_options is a line here. */
static const native_field fields[] = {
    FIELD("threads", NATIVE_UNSIGNED, loader.threads),
    FIELD("auto_threads", NATIVE_FLAG, loader.auto_threads),
    FIELD("batch", NATIVE_SIZE, loader.batch_samples),
    FIELD("seed", NATIVE_U64, loader.order.seed),
    FIELD("shuffle", NATIVE_UNSIGNED, loader.order.shuffle),
    FIELD("window", NATIVE_U64, loader.order.shuffle_window),
    FIELD("completion", NATIVE_FLAG, loader.order.completion),
    FIELD("epochs", NATIVE_U64, loader.range.epochs),
    FIELD("first_epoch", NATIVE_U64, loader.range.first_epoch),
    FIELD("first_sample", NATIVE_U64, loader.range.first_sample),
    FIELD("rank", NATIVE_U64, loader.range.rank),
    FIELD("world", NATIVE_U64, loader.range.world),
    FIELD("drop_last", NATIVE_FLAG, loader.range.drop_last),
    FIELD("skip", NATIVE_UNSIGNED, loader.errors.policy),
    FIELD("skip_limit", NATIVE_U64, loader.errors.skip_limit),
    FIELD("skip_fraction", NATIVE_DOUBLE, loader.errors.skip_fraction),
    FIELD("prefetch_bytes", NATIVE_SIZE, loader.memory.prefetch_bytes),
    FIELD("cache_bytes", NATIVE_SIZE, loader.cache.bytes),
    FIELD("cache_dir", NATIVE_TEXT, loader.cache.dir),
    FIELD("hold_bytes", NATIVE_U64, hold_bytes),
    {"features", NATIVE_TEXTS, offsetof(native_options, loader.features),
     offsetof(native_options, loader.feature_count)},
    {NULL, NATIVE_U64, 0, 0},
};
static const char *const others[] = {"state", "pads", "on_skip", NULL};
static const native_table table = {fields, others};

/* NULL: there is none, or an exception is set. */
static PyObject *find(PyObject *dict, const char *key) {
    PyObject *value = PyErr_Occurred() ? NULL : PyDict_GetItemString(dict, key);
    return value == Py_None ? NULL : value;
}

/* Bytes, zeros among them. */
static void read_state(PyObject *state, presto_span *out) {
    char *text;
    Py_ssize_t bytes;
    if (state != NULL && PyBytes_AsStringAndSize(state, &text, &bytes) == 0)
        *out = presto_span_of((const uint8_t *)text, (size_t)bytes);
}

/* ((name, value, length), ...) */
static void read_pads(PyObject *tuple, native_options *options) {
    Py_ssize_t count = tuple == NULL ? 0 : PyTuple_Size(tuple);
    presto_pad *pads =
        count > 0 ? native_lists_keep(&options->lists, (size_t)count, sizeof *pads) : NULL;
    if (pads == NULL)
        return;
    for (Py_ssize_t i = 0; i < count; i++) {
        unsigned long long length;
        if (!PyArg_ParseTuple(PyTuple_GetItem(tuple, i), "ydK", &pads[i].feature, &pads[i].value,
                              &length))
            return;
        pads[i].length = length;
    }
    options->loader.pads = pads;
    options->loader.pad_count = (size_t)count;
}

bool native_options_read(PyObject *dict, native_options *options_out) {
    *options_out = (native_options){.hold_bytes = UINT64_MAX};
    presto_loader_options_defaults(&options_out->loader);
    if (native_fields_read(dict, &table, options_out, &options_out->lists)) {
        read_state(find(dict, "state"), &options_out->loader.range.state);
        read_pads(find(dict, "pads"), options_out);
        options_out->on_skip = find(dict, "on_skip");
    }
    if (!PyErr_Occurred())
        return true;
    native_options_done(options_out);
    return false;
}

void native_options_done(native_options *options) {
    native_lists_done(&options->lists);
}
