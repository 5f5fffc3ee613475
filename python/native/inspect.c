/* SPDX-License-Identifier: Apache-2.0 */
/* inspect() and verify(): what presto-inspect knows, as dicts and lists. */
#include "writing_internal.h"

static PyObject *text_or_none(const char *text) {
    return text == NULL ? Py_NewRef(Py_None) : native_text(text);
}

/* A list of what `make` gives for each element; NULL with an exception. */
static PyObject *list_of(size_t count, PyObject *(*make)(const void *list, size_t i),
                         const void *list) {
    PyObject *out = PyList_New((Py_ssize_t)count);
    for (size_t i = 0; out != NULL && i < count; i++) {
        PyObject *item = make(list, i);
        if (item == NULL || PyList_SetItem(out, (Py_ssize_t)i, item) < 0)
            Py_CLEAR(out);
    }
    return out;
}

static PyObject *make_file(const void *list, size_t i) {
    const presto_file_info *file = (const presto_file_info *)list + i;
    return Py_BuildValue("{sNsssOsOsKsKsK}", "path", PyUnicode_DecodeFSDefault(file->path),
                         "compression", presto_file_compression_name(file->compression),
                         "name_disagrees", file->name_disagrees ? Py_True : Py_False, "indexed",
                         file->indexed ? Py_True : Py_False, "bytes", file->file_bytes, "records",
                         file->records, "lost_ranges", file->lost_ranges);
}

static PyObject *make_feature(const void *list, size_t i) {
    const presto_feature_info *feature = (const presto_feature_info *)list + i;
    return Py_BuildValue("{sNsssNsKsKsKsN}", "name", native_text(feature->name), "encoding",
                         presto_encoding_name(feature->encoding), "spec",
                         native_spec(&feature->spec), "seen", feature->seen, "least_bytes",
                         feature->least_bytes, "most_bytes", feature->most_bytes, "content",
                         text_or_none(feature->content));
}

PyObject *native_inspect(PyObject *module, PyObject *args) {
    (void)module;
    PyObject *tuple;
    Py_ssize_t sampled;
    native_lists lists = {0};
    native_paths paths;
    presto_info info = {0};
    presto_info_options options;
    presto_error err;
    presto_status status = PRESTO_OK;
    if (!PyArg_ParseTuple(args, "O!n", &PyTuple_Type, &tuple, &sampled))
        return NULL;
    presto_info_options_defaults(&options);
    options.sample_records = sampled < 0 ? 0 : (size_t)sampled;
    if (native_paths_read(tuple, &paths, &lists)) {
        native_watch watch = {.progress = NULL};
        native_away away;
        options.should_stop = native_watch_stops;
        options.should_stop_user = &watch;
        if (native_leave(&away)) {
            status = presto_info_collect(paths.list, paths.count, &options, &info, &err);
            native_return(&away);
        }
        if (status < 0 && !PyErr_Occurred())
            native_raise(&err);
    }
    native_lists_done(&lists);
    if (PyErr_Occurred()) {
        presto_info_done(&info);
        return NULL;
    }
    PyObject *found = Py_BuildValue(
        "{sNsKsKsKsOsKsKsKsKsNsOsssNsK}", "files", list_of(info.file_count, make_file, info.files),
        "records", info.records, "stored_bytes", info.stored_bytes, "raw_bytes", info.raw_bytes,
        "raw_bytes_exact", info.raw_bytes_exact ? Py_True : Py_False, "payload_bytes",
        info.payload_bytes, "least_bytes", info.least_bytes, "median_bytes", info.median_bytes,
        "most_bytes", info.most_bytes, "codec", native_text(info.codec), "codec_guessed",
        info.codec_guessed ? Py_True : Py_False, "record_kind", info.record_kind, "features",
        list_of(info.feature_count, make_feature, info.features), "sampled", info.sampled);
    presto_info_done(&info);
    return found;
}

/* ---- damage ---- */

typedef struct faults {
    PyObject *list;
    Py_ssize_t most; /* that are listed */
} faults;

static PyObject *number_or_none(uint64_t number, uint64_t none) {
    return number == none ? Py_NewRef(Py_None) : PyLong_FromUnsignedLongLong(number);
}

static bool on_fault(void *user, const presto_fault *fault) {
    const faults *found = user;
    native_visit visit;
    if (!native_enter(&visit))
        return false;
    if (PyList_Size(found->list) < found->most) {
        PyObject *item =
            Py_BuildValue("{sssNsNsNsKsN}", "kind", presto_fault_name(fault->kind), "file",
                          PyUnicode_DecodeFSDefault(fault->file), "record",
                          number_or_none(fault->record, PRESTO_NO_RECORD), "offset",
                          number_or_none(fault->offset, PRESTO_NO_OFFSET), "lost_bytes",
                          fault->lost_bytes, "message", native_text(fault->message));
        if (item != NULL)
            PyList_Append(found->list, item);
        Py_XDECREF(item);
    }
    bool goes_on = !PyErr_Occurred();
    native_exit(&visit);
    return goes_on;
}

static presto_status verify(const native_paths *paths, faults *found, bool examples,
                            presto_verify_result *result, presto_error *err) {
    presto_verify_options options;
    presto_verify_options_defaults(&options);
    options.check_examples = examples;
    options.on_fault = on_fault;
    options.user = found;
    native_watch watch = {.progress = NULL};
    native_away away;
    options.should_stop = native_watch_stops;
    options.should_stop_user = &watch;
    if (!native_leave(&away))
        return PRESTO_ERR_STOPPED;
    presto_status status = presto_verify_paths(paths->list, paths->count, &options, result, err);
    native_return(&away);
    return status;
}

PyObject *native_verify(PyObject *module, PyObject *args) {
    (void)module;
    PyObject *tuple;
    int examples;
    faults found = {0};
    native_lists lists = {0};
    native_paths paths;
    presto_verify_result result = {0};
    presto_error err;
    if (!PyArg_ParseTuple(args, "O!pn", &PyTuple_Type, &tuple, &examples, &found.most))
        return NULL;
    found.list = PyList_New(0);
    if (found.list != NULL && native_paths_read(tuple, &paths, &lists) &&
        verify(&paths, &found, examples != 0, &result, &err) < 0 && !PyErr_Occurred())
        native_raise(&err);
    native_lists_done(&lists);
    if (PyErr_Occurred()) {
        Py_XDECREF(found.list);
        return NULL;
    }
    return Py_BuildValue("{sKsKsKsKsKsKsN}", "files", result.files, "records", result.records,
                         "bytes", result.bytes, "payload_bytes", result.payload_bytes, "faults",
                         result.faults, "lost_bytes", result.lost_bytes, "damage", found.list);
}
