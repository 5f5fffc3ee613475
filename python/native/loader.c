/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Loader: the library's loader. One thread at a time is inside of it. That thread has released the
 * GIL, and takes it again now and then to let Python handle signals.
 */
#include "writing_internal.h"

#include <time.h>

#define ASK_NS 50000000 /* signals are looked at so often */

static uint64_t now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

presto_loader *native_loader_get(const native_loader *self) {
    if (self->generation != native_generation())
        return native_fail(PRESTO_ERR_STOPPED, "the loader was opened before a fork"), NULL;
    if (self->loader == NULL)
        return native_fail(PRESTO_ERR_STOPPED, "the loader is closed"), NULL;
    return self->loader;
}

/* ---- callbacks, called by the thread inside, without the GIL ---- */

/* The first exception counts. The GIL is held. */
static void keep_exception(native_loader *self) {
    if (self->exception[0] == NULL)
        PyErr_Fetch(&self->exception[0], &self->exception[1], &self->exception[2]);
    else
        PyErr_Clear();
}

static void raise_kept(native_loader *self) {
    PyErr_Restore(self->exception[0], self->exception[1], self->exception[2]);
    self->exception[0] = self->exception[1] = self->exception[2] = NULL;
}

static bool should_stop(void *user) {
    native_loader *self = user;
    if (__atomic_load_n(&self->stops, __ATOMIC_RELAXED) != 0)
        return true;
    uint64_t now = now_ns();
    native_visit visit;
    if (now - self->asked_ns < ASK_NS)
        return self->exception[0] != NULL || native_is_ending();
    if (!native_enter(&visit))
        return true;
    if (PyErr_CheckSignals() < 0)
        keep_exception(self);
    self->asked_ns = now_ns();
    bool stops = self->exception[0] != NULL;
    native_exit(&visit);
    return stops;
}

static void tell_skip(void *user, uint64_t epoch, uint64_t sample, const presto_error *err) {
    native_loader *self = user;
    native_visit visit;
    if (!native_enter(&visit))
        return;
    native_raise(err);
    PyObject *type, *value, *trace, *done = NULL;
    PyErr_Fetch(&type, &value, &trace);
    PyErr_NormalizeException(&type, &value, &trace);
    if (self->exception[0] == NULL && value != NULL && self->on_skip != NULL)
        done = PyObject_CallFunction(self->on_skip, "KKO", epoch, sample, value);
    if (done == NULL && PyErr_Occurred())
        keep_exception(self);
    Py_XDECREF(done);
    Py_XDECREF(type);
    Py_XDECREF(value);
    Py_XDECREF(trace);
    native_exit(&visit);
}

static void note_warning(void *user, const presto_error *warning) {
    native_loader *self = user;
    char text[PRESTO_ERROR_FILE_BYTES + PRESTO_ERROR_MESSAGE_BYTES + 128];
    native_visit visit;
    presto_error_format(warning, text, sizeof text);
    if (!native_enter(&visit))
        return;
    PyObject *line = native_text(text);
    if (line == NULL || PyList_Append(self->warnings, line) < 0)
        PyErr_Clear(); /* no memory to tell that there is a problem */
    Py_XDECREF(line);
    native_exit(&visit);
}

/* ---- open and close ---- */

static bool open_loader(native_loader *self, PyObject *dict) {
    native_options options;
    presto_error err;
    if (!native_options_read(dict, &options))
        return false;
    presto_loader_options *loader = &options.loader;
    loader->should_stop = should_stop;
    loader->should_stop_user = self;
    loader->errors.on_warning = note_warning;
    loader->errors.on_warning_user = self;
    loader->errors.on_skip = options.on_skip == NULL ? NULL : tell_skip;
    loader->errors.on_skip_user = self;
    self->on_skip = Py_XNewRef(options.on_skip);
    self->hold_bytes = options.hold_bytes;
    native_away away;
    bool is_open = native_leave(&away);
    if (is_open) {
        presto_status status =
            presto_loader_open_stream(&self->stream->opened, loader, &self->loader, &err);
        native_return(&away);
        is_open = status >= 0 && self->exception[0] == NULL;
        if (self->exception[0] != NULL)
            raise_kept(self);
        else if (status < 0)
            native_raise(&err);
    }
    native_options_done(&options);
    return is_open;
}

static PyObject *loader_new(PyTypeObject *type, PyObject *args, PyObject *keywords) {
    static char *names[] = {"stream", "options", NULL};
    PyObject *stream, *options;
    if (!PyArg_ParseTupleAndKeywords(args, keywords, "O!O!", names, native_stream_type, &stream,
                                     &PyDict_Type, &options))
        return NULL;
    if (((native_stream *)stream)->generation != native_generation())
        return native_fail(PRESTO_ERR_STOPPED, "the input was opened before a fork");
    native_loader *self = (native_loader *)PyType_GenericAlloc(type, 0);
    if (self == NULL)
        return NULL;
    self->generation = native_generation();
    self->stream = (native_stream *)(void *)Py_NewRef(stream);
    self->warnings = PyList_New(0);
    self->account = PyMem_Calloc(1, sizeof *self->account);
    if (self->account == NULL)
        PyErr_NoMemory();
    else
        self->account->refs = 1;
    if (self->warnings == NULL || self->account == NULL || !open_loader(self, options)) {
        Py_DECREF((PyObject *)self);
        return NULL;
    }
    return (PyObject *)self;
}

/* Workers are joined without the GIL. */
static void free_loader(native_loader *self) {
    presto_loader *loader = self->loader;
    self->loader = NULL;
    if (loader == NULL || self->generation != native_generation())
        return;
    native_away away;
    native_leave_to_free(&away);
    presto_loader_free(loader);
    native_return(&away);
}

static void loader_dealloc(PyObject *object) {
    native_loader *self = (native_loader *)object;
    PyTypeObject *type = Py_TYPE(object);
    PyObject *raised[3];
    PyObject_GC_UnTrack(object);
    PyErr_Fetch(&raised[0], &raised[1], &raised[2]);
    free_loader(self);
    native_account_release(self->account);
    for (size_t i = 0; i < 3; i++)
        Py_XDECREF(self->exception[i]);
    Py_XDECREF(self->warnings);
    Py_XDECREF(self->on_skip);
    Py_XDECREF((PyObject *)self->stream);
    PyErr_Restore(raised[0], raised[1], raised[2]);
    PyObject_GC_Del(self);
    Py_DECREF(type);
}

/* on_skip may be a method of what keeps the loader: the collector of garbage must see it. */
static int loader_traverse(PyObject *object, visitproc visit, void *arg) {
    native_loader *self = (native_loader *)object;
    Py_VISIT(Py_TYPE(object));
    for (size_t i = 0; i < 3; i++)
        Py_VISIT(self->exception[i]);
    Py_VISIT(self->warnings);
    Py_VISIT(self->on_skip);
    return 0;
}

/* The loader is garbage: no thread is inside, as that one would hold it. Workers never call on_skip. */
static int loader_clear(PyObject *object) {
    native_loader *self = (native_loader *)object;
    Py_CLEAR(self->on_skip);
    return 0;
}

static PyObject *loader_close(PyObject *object, PyObject *unused) {
    (void)unused;
    native_loader *self = (native_loader *)object;
    if (self->is_inside && self->generation == native_generation()) {
        __atomic_store_n(&self->stops, 1, __ATOMIC_RELAXED);
        self->closes = true;
    } else {
        free_loader(self);
    }
    Py_RETURN_NONE;
}

/* ---- going inside ---- */

static presto_loader *enter(native_loader *self) {
    presto_loader *loader = native_loader_get(self);
    if (loader == NULL)
        return NULL;
    if (self->is_inside) {
        PyErr_SetString(PyExc_RuntimeError, "the loader is in use by another call");
        return NULL;
    }
    if (self->account->bytes > self->hold_bytes) {
        PyObject *module = PyImport_ImportModule("presto._errors");
        PyObject *done = module == NULL ? NULL
                                        : PyObject_CallMethod(module, "raise_held", "nK",
                                                              (Py_ssize_t)self->account->batches,
                                                              self->account->bytes);
        Py_XDECREF(done);
        Py_XDECREF(module);
        return NULL;
    }
    Py_INCREF((PyObject *)self);
    self->is_inside = true;
    self->asked_ns = now_ns();
    return loader;
}

/* Back, with the GIL. A batch with an exception was not taken: the state is the one before it. */
static PyObject *leave(native_loader *self, presto_status status, presto_batch *batch,
                       const presto_error *err) {
    PyObject *result = NULL;
    self->is_inside = false;
    if (self->exception[0] != NULL) {
        if (status == PRESTO_OK)
            presto_loader_give_back(self->loader, batch);
        raise_kept(self);
    } else if (status == PRESTO_OK) {
        result = native_batch_new(batch, presto_batch_release, self->account);
    } else if (status == PRESTO_END) {
        result = Py_NewRef(Py_None);
    } else if (status == PRESTO_DROP) {
        native_fail(PRESTO_DROP, "the samples were left out by a step");
    } else {
        native_raise(err);
    }
    if (self->closes) {
        PyObject *raised[3];
        PyErr_Fetch(&raised[0], &raised[1], &raised[2]);
        free_loader(self);
        PyErr_Restore(raised[0], raised[1], raised[2]);
    }
    Py_DECREF((PyObject *)self);
    return result;
}

/* With an exception set: the library was not called. */
static PyObject *leave_unused(native_loader *self) {
    self->is_inside = false;
    Py_DECREF((PyObject *)self);
    return NULL;
}

static PyObject *loader_next(PyObject *object, PyObject *unused) {
    (void)unused;
    native_loader *self = (native_loader *)object;
    presto_loader *loader = enter(self);
    if (loader == NULL)
        return NULL;
    presto_error err;
    presto_batch *batch = NULL;
    native_away away;
    if (!native_leave(&away))
        return leave_unused(self);
    presto_status status = presto_loader_next(loader, &batch, &err);
    native_return(&away);
    return leave(self, status, batch, &err);
}

/* Into the list by this call itself: what a signal handler raises in Python comes when it is there. */
static PyObject *loader_take(PyObject *object, PyObject *list) {
    if (!PyList_Check(list)) {
        PyErr_SetString(PyExc_TypeError, "a batch is taken into a list");
        return NULL;
    }
    PyObject *batch = loader_next(object, NULL);
    if (batch == NULL)
        return NULL;
    bool has_come = batch != Py_None;
    int failed = has_come ? PyList_Append(list, batch) : 0;
    Py_DECREF(batch);
    return failed < 0 ? NULL : PyBool_FromLong(has_come);
}

static PyObject *loader_pick(PyObject *object, PyObject *args) {
    native_loader *self = (native_loader *)object;
    const char *data;
    Py_ssize_t bytes;
    if (!PyArg_ParseTuple(args, "y#", &data, &bytes))
        return NULL;
    presto_loader *loader = enter(self);
    if (loader == NULL)
        return NULL;
    presto_error err;
    presto_batch *batch = NULL;
    native_away away;
    if (!native_leave(&away))
        return leave_unused(self);
    presto_status status = presto_loader_pick(loader, (const uint64_t *)(const void *)data,
                                              (size_t)bytes / sizeof(uint64_t), &batch, &err);
    native_return(&away);
    return leave(self, status, batch, &err);
}

static PyObject *loader_redraw(PyObject *object, PyObject *args) {
    native_loader *self = (native_loader *)object;
    unsigned long long seed, epoch;
    if (!PyArg_ParseTuple(args, "KK", &seed, &epoch))
        return NULL;
    presto_loader *loader = native_loader_get(self);
    if (loader == NULL)
        return NULL;
    presto_loader_redraw(loader, seed, epoch);
    Py_RETURN_NONE;
}

static PyObject *loader_stop(PyObject *object, PyObject *unused) {
    (void)unused;
    __atomic_store_n(&((native_loader *)object)->stops, 1, __ATOMIC_RELAXED);
    Py_RETURN_NONE;
}

static PyObject *loader_state(PyObject *object, PyObject *unused) {
    (void)unused;
    native_loader *self = (native_loader *)object;
    /* Also in a child process, where the position is still that of the fork. */
    if (self->loader == NULL)
        return native_fail(PRESTO_ERR_STOPPED, "the loader is closed");
    presto_buffer json = {0};
    presto_error err;
    if (presto_loader_save_state(self->loader, &json, &err) < 0)
        return native_raise(&err);
    presto_span text = presto_buffer_span(&json);
    PyObject *state = PyBytes_FromStringAndSize((const char *)text.data, (Py_ssize_t)text.bytes);
    presto_buffer_done(&json);
    return state;
}

/* ---- the type ---- */

static PyObject *get_held(PyObject *object, void *unused) {
    (void)unused;
    const native_account *account = ((native_loader *)object)->account;
    return Py_BuildValue("(nK)", (Py_ssize_t)account->batches, account->bytes);
}

static PyObject *get_epoch_samples(PyObject *object, void *unused) {
    (void)unused;
    const presto_loader *loader = native_loader_get((native_loader *)object);
    return loader == NULL ? NULL : PyLong_FromUnsignedLongLong(presto_loader_epoch_samples(loader));
}

static PyObject *get_is_current(PyObject *object, void *unused) {
    (void)unused;
    const native_loader *self = (native_loader *)object;
    return PyBool_FromLong(self->loader != NULL && self->generation == native_generation());
}

static PyObject *get_warnings(PyObject *object, void *unused) {
    (void)unused;
    native_loader *self = (native_loader *)object;
    PyObject *fresh = PyList_New(0);
    if (fresh == NULL)
        return NULL;
    PyObject *warnings = self->warnings;
    self->warnings = fresh;
    return warnings;
}

static PyMethodDef methods[] = {
    {"next", loader_next, METH_NOARGS, "The next Batch; None at the end."},
    {"take", loader_take, METH_O, "Append the next Batch to a list; False at the end."},
    {"pick", loader_pick, METH_VARARGS, "The samples of these numbers (uint64, packed)."},
    {"redraw", loader_redraw, METH_VARARGS, "redraw(seed, epoch): of random steps, when picked."},
    {"stop", loader_stop, METH_NOARGS, "Make the call under way in another thread fail."},
    {"close", loader_close, METH_NOARGS, "Stop the workers; the call under way does it."},
    {"state", loader_state, METH_NOARGS, "Where the stream is, as JSON."},
    {"stats", native_loader_stats, METH_NOARGS, "Figures so far."},
    {"notes", native_loader_notes, METH_NOARGS, "What steps told of samples: (kind, text)."},
    {"verdict", native_loader_verdict, METH_NOARGS, "What limits the stream."},
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef properties[] = {
    {"held", get_held, NULL, "(batches, bytes) that somebody holds.", NULL},
    {"epoch_samples", get_epoch_samples, NULL, "Samples of this rank in an epoch.", NULL},
    {"is_current", get_is_current, NULL, "Open, and made by this process.", NULL},
    {"warnings", get_warnings, NULL, "What was noticed since the last look.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_new, NATIVE_SLOT(loader_new)},
    {Py_tp_dealloc, NATIVE_SLOT(loader_dealloc)},
    {Py_tp_traverse, NATIVE_SLOT(loader_traverse)},
    {Py_tp_clear, NATIVE_SLOT(loader_clear)},
    {Py_tp_methods, methods},
    {Py_tp_getset, properties},
    {Py_tp_doc, "The library's loader."},
    {0, NULL},
};

PyType_Spec native_loader_spec = {
    .name = "presto._native.Loader",
    .basicsize = sizeof(native_loader),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
    .slots = slots,
};
