/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ring: batches of another process, out of shared memory. One thread at a time is inside of it,
 * without the GIL, which it takes again now and then to let Python handle signals.
 */
#include "native_internal.h"

#include <fcntl.h>

typedef struct native_ring {
    PyObject_HEAD presto_ring_reader *reader; /* NULL: closed. It is freed before this object */
    native_account *account;
    unsigned generation;
    bool is_inside, closes; /* as in native_loader */
    PyObject *exception[3]; /* raised by a signal handler */
    volatile int stops;     /* atomic access */
} native_ring;

/* Called by the thread inside, without the GIL, ten times a second. */
static bool should_stop(void *user) {
    native_ring *self = user;
    if (__atomic_load_n(&self->stops, __ATOMIC_RELAXED) != 0)
        return true;
    native_visit visit;
    if (!native_enter(&visit))
        return true;
    if (PyErr_CheckSignals() < 0) {
        if (self->exception[0] == NULL)
            PyErr_Fetch(&self->exception[0], &self->exception[1], &self->exception[2]);
        else
            PyErr_Clear();
    }
    bool stops = self->exception[0] != NULL;
    native_exit(&visit);
    return stops || __atomic_load_n(&self->stops, __ATOMIC_RELAXED) != 0;
}

static void free_reader(native_ring *self) {
    presto_ring_reader *reader = self->reader;
    self->reader = NULL;
    if (self->generation == native_generation())
        presto_ring_reader_free(reader);
}

/* After a call: None, or NULL with what a signal handler raised, or `err`. */
static PyObject *leave(native_ring *self, presto_status status, const presto_error *err) {
    self->is_inside = false;
    if (self->exception[0] != NULL) {
        PyErr_Restore(self->exception[0], self->exception[1], self->exception[2]);
        self->exception[0] = self->exception[1] = self->exception[2] = NULL;
        return NULL;
    }
    return status < 0 ? native_raise(err) : Py_NewRef(Py_None);
}

static PyObject *ring_new(PyTypeObject *type, PyObject *args, PyObject *keywords) {
    static char *names[] = {"path", "fd", "wait_s", NULL};
    PyObject *path;
    int fd;
    double wait_s;
    if (!PyArg_ParseTupleAndKeywords(args, keywords, "Oid", names, &path, &fd, &wait_s))
        return NULL;
    native_ring *self = (native_ring *)PyType_GenericAlloc(type, 0);
    if (self == NULL)
        return NULL;
    self->generation = native_generation();
    self->account = PyMem_Calloc(1, sizeof *self->account);
    if (self->account == NULL) {
        Py_DECREF((PyObject *)self);
        return PyErr_NoMemory();
    }
    self->account->refs = 1;
    presto_ring_options options;
    presto_ring_options_defaults(&options);
    options.path = path == Py_None ? NULL : PyBytes_AsString(path);
    if (PyErr_Occurred()) {
        Py_DECREF((PyObject *)self);
        return NULL;
    }
    options.fd = fd < 0 ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, 0); /* the reader closes its own */
    options.wait_ns = wait_s > 0 ? (uint64_t)(wait_s < 1e9 ? wait_s * 1e9 : 1e18) : 0;
    options.should_stop = should_stop;
    options.should_stop_user = self;
    presto_error err;
    native_away away;
    self->is_inside = true;
    if (!native_leave(&away)) {
        Py_DECREF((PyObject *)self);
        return NULL;
    }
    presto_status status = presto_ring_reader_open(&options, &self->reader, &err);
    native_return(&away);
    PyObject *done = leave(self, status, &err);
    if (done == NULL)
        Py_CLEAR(self);
    Py_XDECREF(done);
    return (PyObject *)self;
}

static void ring_dealloc(PyObject *object) {
    native_ring *self = (native_ring *)object;
    PyTypeObject *type = Py_TYPE(object);
    free_reader(self);
    native_account_release(self->account);
    PyObject_Free(self);
    Py_DECREF(type);
}

static PyObject *ring_next(PyObject *object, PyObject *unused) {
    (void)unused;
    native_ring *self = (native_ring *)object;
    presto_error err;
    presto_batch *batch = NULL;
    if (self->reader == NULL || self->generation != native_generation())
        return native_fail(PRESTO_ERR_STOPPED, "the ring is closed, or of before a fork");
    if (self->is_inside) {
        PyErr_SetString(PyExc_RuntimeError, "the ring is in use by another call");
        return NULL;
    }
    native_away away;
    Py_INCREF(object);
    self->is_inside = true;
    if (!native_leave(&away)) {
        self->is_inside = false;
        Py_DECREF(object);
        return NULL;
    }
    presto_status status = presto_ring_reader_next(self->reader, &batch, &err);
    native_return(&away);
    PyObject *result = leave(self, status, &err);
    if (result == NULL) {
        presto_ring_batch_release(batch);
    } else if (batch != NULL) {
        Py_DECREF(result);
        result = native_batch_new(batch, presto_ring_batch_release, self->account);
    }
    if (self->closes)
        free_reader(self);
    Py_DECREF(object);
    return result;
}

static PyObject *ring_close(PyObject *object, PyObject *unused) {
    (void)unused;
    native_ring *self = (native_ring *)object;
    if (self->is_inside && self->generation == native_generation()) {
        __atomic_store_n(&self->stops, 1, __ATOMIC_RELAXED);
        self->closes = true;
    } else {
        free_reader(self);
    }
    Py_RETURN_NONE;
}

static PyObject *get_held(PyObject *object, void *unused) {
    (void)unused;
    const native_account *account = ((native_ring *)object)->account;
    return Py_BuildValue("(nK)", (Py_ssize_t)account->batches, account->bytes);
}

static PyMethodDef methods[] = {
    {"next", ring_next, METH_NOARGS, "The next batch, or None at the end."},
    {"close", ring_close, METH_NOARGS, "Hang up. Batches that are held stay valid."},
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef properties[] = {
    {"held", get_held, NULL, "(batches, bytes) that somebody holds.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_new, NATIVE_SLOT(ring_new)},
    {Py_tp_dealloc, NATIVE_SLOT(ring_dealloc)},
    {Py_tp_methods, methods},
    {Py_tp_getset, properties},
    {Py_tp_doc, "The reader of a ring in shared memory."},
    {0, NULL},
};

PyType_Spec native_ring_spec = {
    .name = "presto._native.Ring",
    .basicsize = sizeof(native_ring),
    .flags = Py_TPFLAGS_DEFAULT,
    .slots = slots,
};
