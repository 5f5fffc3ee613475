/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A loop over a loader as an Arrow stream. The consumer calls from any thread, with or without the
 * GIL. All batches of a stream have one schema: that of the first one, which is taken when the
 * schema is asked for. A stream without batches has the schema that is declared.
 */
#include "native_internal.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

typedef struct reader {
    PyObject *next;            /* gives the next Batch, or None */
    PyObject *declared;        /* of the features, for a stream without a batch: a tuple */
    PyObject *first;           /* the first one, while nobody has it; None: there is none */
    struct ArrowSchema schema; /* of the first one; empty until it is known */
    char error[1024];
} reader;

/* "OSError: No space left on device". */
static PyObject *shown(PyObject *type, PyObject *value) {
    PyObject *name = PyObject_GetAttrString(type, "__name__");
    PyObject *text = name == NULL ? NULL : PyObject_Str(value);
    PyObject *both = NULL;
    if (text != NULL)
        both = PyUnicode_FromFormat(PyUnicode_GetLength(text) > 0 ? "%U: %U" : "%U", name, text);
    Py_XDECREF(name);
    Py_XDECREF(text);
    return both;
}

static int raise_again(void *value) {
    PyErr_SetObject((PyObject *)Py_TYPE(value), value);
    Py_DECREF((PyObject *)value);
    return -1;
}

/* The exception as text: an Arrow stream knows no other. What is no error, as Ctrl-C, comes again as
 * itself as soon as the main thread runs Python. */
static int fail_raised(reader *self) {
    PyObject *type, *value, *trace;
    PyErr_Fetch(&type, &value, &trace);
    PyErr_NormalizeException(&type, &value, &trace);
    bool is_error = PyErr_GivenExceptionMatches(type, PyExc_Exception);
    PyObject *text = shown(type, value);
    PyObject *utf8 = text == NULL ? NULL : PyUnicode_AsEncodedString(text, "utf-8", "replace");
    snprintf(self->error, sizeof self->error, "%s",
             utf8 == NULL ? "failed" : PyBytes_AsString(utf8));
    PyErr_Clear();
    if (!is_error && Py_AddPendingCall(raise_again, Py_NewRef(value)) < 0)
        Py_DECREF(value);
    Py_XDECREF(utf8);
    Py_XDECREF(text);
    Py_XDECREF(type);
    Py_XDECREF(value);
    Py_XDECREF(trace);
    return is_error ? EIO : ECANCELED;
}

static int fail(reader *self, int code, const char *why) {
    snprintf(self->error, sizeof self->error, "%s", why);
    return code;
}

static int make_schema(reader *self, const presto_batch *batch, struct ArrowSchema *out) {
    const char *why;
    if (arrow_schema_of(batch, out, &why))
        return 0;
    return why == NULL ? fail(self, ENOMEM, "no memory") : fail(self, EINVAL, why);
}

/* ---- a stream without a batch ---- */

/* (name, layout, whether rows have any number of strings, dtype, dims of a row). False: an
 * exception is set. */
static bool read_declared(PyObject *item, presto_batch_feature *out) {
    static const int64_t none[1];
    const char *name, *dtype;
    int layout, has_rows;
    PyObject *dims;
    if (!PyArg_ParseTuple(item, "yipsO!", &name, &layout, &has_rows, &dtype, &PyTuple_Type, &dims))
        return false;
    Py_ssize_t rank = PyTuple_Size(dims);
    if (rank >= PRESTO_MAX_RANK) {
        PyErr_SetString(PyExc_ValueError, "a feature has too many dimensions");
        return false;
    }
    *out = (presto_batch_feature){
        .name = name, .layout = (presto_layout)layout, .row_offsets = has_rows ? none : NULL};
    out->tensor.spec.dtype = presto_dtype_by_name(dtype);
    out->tensor.spec.rank = (int)rank + 1;
    for (Py_ssize_t i = 0; i < rank; i++)
        out->tensor.spec.dims[i + 1] = PyLong_AsLongLong(PyTuple_GetItem(dims, i));
    return PyErr_Occurred() == NULL;
}

static int declared_schema(reader *self) {
    Py_ssize_t count = PyTuple_Size(self->declared);
    presto_batch_feature *features =
        count < 0 ? NULL : PyMem_Calloc((size_t)count + 1, sizeof *features);
    bool is_read = features != NULL;
    for (Py_ssize_t i = 0; i < count && is_read; i++)
        is_read = read_declared(PyTuple_GetItem(self->declared, i), &features[i]);
    const presto_batch empty = {.features = features, .feature_count = (size_t)count};
    int code = is_read ? make_schema(self, &empty, &self->schema) : fail_raised(self);
    PyMem_Free(features);
    return code;
}

static const native_batch *batch_of(const reader *self) {
    return self->first == Py_None ? NULL : (const native_batch *)(const void *)self->first;
}

/* Take the first batch, for its schema. */
static int begin(reader *self) {
    if (self->schema.release != NULL)
        return 0;
    if (self->first == NULL)
        self->first = PyObject_CallNoArgs(self->next);
    if (self->first == NULL)
        return fail_raised(self);
    const native_batch *first = batch_of(self);
    return first == NULL ? declared_schema(self) : make_schema(self, first->batch, &self->schema);
}

static int get_schema(struct ArrowArrayStream *stream, struct ArrowSchema *out) {
    reader *self = stream->private_data;
    native_visit visit;
    if (!native_enter(&visit))
        return fail(self, ECANCELED, "the interpreter ends");
    int code = begin(self);
    if (code == 0 && !arrow_schema_copy(&self->schema, out))
        code = fail(self, ENOMEM, "no memory");
    native_exit(&visit);
    return code;
}

static int give(reader *self, native_batch *batch, struct ArrowArray *out) {
    struct ArrowSchema schema;
    int code = make_schema(self, batch->batch, &schema);
    if (code != 0)
        return code;
    bool fits = arrow_schema_same(&schema, &self->schema);
    schema.release(&schema);
    if (!fits)
        return fail(self, EINVAL,
                    "a feature has another shape or layout than in the first batch: choose "
                    "features, or pad them");
    return arrow_array_of(batch, out) ? 0 : fail(self, ENOMEM, "no memory");
}

static int next_locked(reader *self, struct ArrowArray *out) {
    int code = begin(self);
    if (code != 0)
        return code;
    PyObject *batch = self->first;
    self->first = NULL;
    if (batch == NULL)
        batch = PyObject_CallNoArgs(self->next);
    if (batch == NULL)
        return fail_raised(self);
    if (batch == Py_None)
        *out = (struct ArrowArray){0}; /* the end */
    else
        code = give(self, (native_batch *)(void *)batch, out);
    Py_DECREF(batch);
    return code;
}

static int get_next(struct ArrowArrayStream *stream, struct ArrowArray *out) {
    native_visit visit;
    if (!native_enter(&visit))
        return fail(stream->private_data, ECANCELED, "the interpreter ends");
    int code = next_locked(stream->private_data, out);
    native_exit(&visit);
    return code;
}

static const char *get_last_error(struct ArrowArrayStream *stream) {
    return ((reader *)stream->private_data)->error;
}

static void stream_release(struct ArrowArrayStream *stream) {
    reader *self = stream->private_data;
    native_visit visit;
    if (native_enter(&visit)) {
        Py_XDECREF(self->next);
        Py_XDECREF(self->declared);
        Py_XDECREF(self->first);
        native_exit(&visit);
    }
    if (self->schema.release != NULL)
        self->schema.release(&self->schema);
    free(self);
    stream->release = NULL;
}

static void drop_capsule(PyObject *capsule) {
    struct ArrowArrayStream *stream = PyCapsule_GetPointer(capsule, "arrow_array_stream");
    if (stream != NULL && stream->release != NULL)
        stream->release(stream);
    free(stream);
}

PyObject *native_arrow_stream(PyObject *module, PyObject *args) {
    PyObject *next, *declared;
    (void)module;
    if (!PyArg_ParseTuple(args, "OO!", &next, &PyTuple_Type, &declared))
        return NULL;
    struct ArrowArrayStream *stream = calloc(1, sizeof *stream);
    reader *self = calloc(1, sizeof *self);
    PyObject *capsule = stream == NULL || self == NULL
                            ? NULL
                            : PyCapsule_New(stream, "arrow_array_stream", drop_capsule);
    if (capsule == NULL) {
        free(stream);
        free(self);
        return PyErr_Occurred() ? NULL : PyErr_NoMemory();
    }
    self->next = Py_NewRef(next);
    self->declared = Py_NewRef(declared);
    *stream = (struct ArrowArrayStream){.get_schema = get_schema,
                                        .get_next = get_next,
                                        .get_last_error = get_last_error,
                                        .release = stream_release,
                                        .private_data = self};
    return capsule;
}
