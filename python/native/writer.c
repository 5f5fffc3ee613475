/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writer: samples of a program become a dataset. Any number of threads may add at once. A writer
 * that is closed while others are inside is freed by the last of them.
 */
#include "writing_internal.h"

typedef struct native_writer {
    PyObject_HEAD presto_writer *writer; /* NULL: closed. Asks this object, which frees it first */
    unsigned generation;
    size_t inside; /* calls under way */
    bool closes;
    volatile int stops; /* those inside are to come back; atomic access */
} native_writer;

PyTypeObject *native_writer_type;

/* ---- open ---- */

#define FIELD(name, kind)                                                                          \
    { #name, kind, offsetof(presto_writer_options, name), 0 }

static const native_field fields[] = {
    FIELD(dir, NATIVE_TEXT),
    FIELD(codec, NATIVE_TEXT),
    FIELD(shard_bytes, NATIVE_U64),
    FIELD(shards, NATIVE_SIZE),
    FIELD(samples, NATIVE_U64),
    FIELD(threads, NATIVE_UNSIGNED),
    FIELD(prefetch_bytes, NATIVE_SIZE),
    FIELD(main_feature, NATIVE_TEXT),
    {"label_names", NATIVE_TEXTS, offsetof(presto_writer_options, label_names),
     offsetof(presto_writer_options, label_count)},
    FIELD(resume, NATIVE_FLAG),
    FIELD(sync, NATIVE_FLAG),
    {"file_compression", NATIVE_UNSIGNED, offsetof(presto_writer_options, file_compression), 0},
    {NULL, NATIVE_U64, 0, 0},
};
static const native_table table = {fields, NULL};

bool native_writer_stops(void *user) {
    native_writer *self = user;
    native_visit visit;
    if (__atomic_load_n(&self->stops, __ATOMIC_RELAXED) != 0 || !native_enter(&visit))
        return true;
    bool is_raised = PyErr_Occurred() != NULL || PyErr_CheckSignals() < 0;
    native_exit(&visit);
    return is_raised;
}

static bool open_writer(native_writer *self, PyObject *dict) {
    presto_writer_options options;
    native_lists lists = {0};
    presto_error err;
    presto_writer_options_defaults(&options);
    bool done = native_fields_read(dict, &table, &options, &lists);
    options.should_stop = native_writer_stops;
    options.should_stop_user = self;
    native_away away;
    done = done && native_leave(&away);
    if (done) {
        presto_status status = presto_writer_open(&options, &self->writer, &err);
        native_return(&away);
        if (status < 0 && !PyErr_Occurred())
            native_raise(&err);
        done = !PyErr_Occurred();
    }
    native_lists_done(&lists);
    return done;
}

static PyObject *writer_new(PyTypeObject *type, PyObject *args, PyObject *keywords) {
    static char *names[] = {"options", NULL};
    PyObject *options;
    if (!PyArg_ParseTupleAndKeywords(args, keywords, "O!", names, &PyDict_Type, &options))
        return NULL;
    native_writer *self = (native_writer *)PyType_GenericAlloc(type, 0);
    if (self == NULL)
        return NULL;
    self->generation = native_generation();
    if (!open_writer(self, options)) {
        Py_DECREF((PyObject *)self);
        return NULL;
    }
    return (PyObject *)self;
}

static void free_writer(native_writer *self) {
    presto_writer *writer = self->writer;
    self->writer = NULL;
    if (writer == NULL || self->generation != native_generation())
        return;
    native_away away;
    native_leave_to_free(&away);
    presto_writer_free(writer);
    native_return(&away);
}

static void writer_dealloc(PyObject *object) {
    PyTypeObject *type = Py_TYPE(object);
    PyObject *raised[3];
    PyErr_Fetch(&raised[0], &raised[1], &raised[2]);
    free_writer((native_writer *)object);
    PyErr_Restore(raised[0], raised[1], raised[2]);
    PyObject_Free(object);
    Py_DECREF(type);
}

/* ---- calls ---- */

presto_writer *native_writer_enter(PyObject *object) {
    native_writer *self = (native_writer *)object;
    const char *why = self->generation != native_generation()
                          ? "the writer was opened before a fork"
                      : self->writer == NULL || self->closes ? "the writer is closed"
                                                             : NULL;
    if (why != NULL)
        return (presto_writer *)native_fail(PRESTO_ERR_STOPPED, why);
    self->inside++;
    Py_INCREF((PyObject *)self);
    return self->writer;
}

bool native_writer_leave(PyObject *object, presto_status status, const presto_error *err) {
    native_writer *self = (native_writer *)object;
    if (status < 0 && !PyErr_Occurred())
        native_raise(err);
    self->inside--;
    if (self->closes && self->inside == 0) {
        PyObject *raised[3];
        PyErr_Fetch(&raised[0], &raised[1], &raised[2]);
        free_writer(self);
        PyErr_Restore(raised[0], raised[1], raised[2]);
    }
    Py_DECREF((PyObject *)self);
    return status >= 0;
}

static PyObject *writer_add(PyObject *object, PyObject *dict) {
    native_sample sample;
    presto_error err;
    if (!PyDict_Check(dict)) {
        PyErr_SetString(PyExc_TypeError, "a sample is a dict");
        return NULL;
    }
    presto_writer *writer = native_writer_enter(object);
    if (writer == NULL)
        return NULL;
    presto_status status = PRESTO_OK;
    bool is_made = native_sample_make(dict, presto_writer_samples(writer), &sample);
    if (is_made) {
        native_away away;
        is_made = native_leave(&away);
        if (is_made) {
            status = presto_writer_add(writer, &sample.sample, &err);
            native_return(&away);
        }
        native_sample_done(&sample);
    }
    if (!native_writer_leave(object, status, &err) || !is_made)
        return NULL;
    Py_RETURN_NONE;
}

static PyObject *writer_finish(PyObject *object, PyObject *unused) {
    (void)unused;
    presto_convert_result result;
    presto_error err;
    presto_writer *writer = native_writer_enter(object);
    if (writer == NULL)
        return NULL;
    native_away away;
    presto_status status = PRESTO_ERR_STOPPED;
    if (native_leave(&away)) {
        status = presto_writer_finish(writer, &result, &err);
        native_return(&away);
    }
    return native_writer_leave(object, status, &err) ? native_convert_figures(&result) : NULL;
}

static PyObject *writer_close(PyObject *object, PyObject *unused) {
    (void)unused;
    native_writer *self = (native_writer *)object;
    if (self->generation != native_generation())
        Py_RETURN_NONE;
    self->closes = true;
    __atomic_store_n(&self->stops, 1, __ATOMIC_RELAXED);
    if (self->inside == 0)
        free_writer(self);
    Py_RETURN_NONE;
}

static PyObject *get_samples(PyObject *object, void *unused) {
    (void)unused;
    presto_writer *writer = native_writer_enter(object);
    if (writer == NULL)
        return NULL;
    uint64_t samples = presto_writer_samples(writer);
    native_writer_leave(object, PRESTO_OK, NULL);
    return PyLong_FromUnsignedLongLong(samples);
}

static PyMethodDef methods[] = {
    {"add", writer_add, METH_O, "Add a sample: a dict."},
    {"add_arrow", native_writer_add_arrow, METH_VARARGS, "Add rows of Arrow's arrays."},
    {"finish", writer_finish, METH_NOARGS, "Complete the dataset; figures."},
    {"close", writer_close, METH_NOARGS, "Give up what is not finished."},
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef properties[] = {
    {"samples", get_samples, NULL, "Samples so far.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_new, NATIVE_SLOT(writer_new)},
    {Py_tp_dealloc, NATIVE_SLOT(writer_dealloc)},
    {Py_tp_methods, methods},
    {Py_tp_getset, properties},
    {Py_tp_doc, "The library's writer."},
    {0, NULL},
};

PyType_Spec native_writer_spec = {
    .name = "presto._native.Writer",
    .basicsize = sizeof(native_writer),
    .flags = Py_TPFLAGS_DEFAULT,
    .slots = slots,
};
