/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Filesystem: a file system of Python's, as functions of the library (presto/filesystem.h). They call
 * the methods of an object (presto/_filesystem.py) from any thread, with the GIL. What these raise is
 * put into words there.
 *
 * What the library does with a name that a list tells may wait for other threads, so that is done
 * without the GIL.
 */
#include "native_internal.h"

#include <stdlib.h>
#include <string.h>

typedef struct native_filesystem {
    PyObject_HEAD char *name; /* NULL: none was added */
} native_filesystem;

PyTypeObject *native_filesystem_type;

/* ---- a visit, and what it fails with ---- */

typedef struct fs_visit {
    native_visit visit;
    PyObject *raised[3]; /* before: another call of this thread has raised it */
} fs_visit;

static presto_status enter(fs_visit *visit, presto_error *err) {
    if (!native_enter(&visit->visit))
        return presto_fail(err, PRESTO_ERR_STOPPED, PRESTO_NO_OFFSET, "the interpreter ends");
    PyErr_Fetch(&visit->raised[0], &visit->raised[1], &visit->raised[2]);
    return PRESTO_OK;
}

static void leave(fs_visit *visit) {
    PyErr_Restore(visit->raised[0], visit->raised[1], visit->raised[2]);
    native_exit(&visit->visit);
}

/* The exception that is set, in words. What ends the program, such as Ctrl-C, is raised again where the
 * library's call comes back. */
static presto_status fail(presto_error *err) {
    PyObject *type, *value, *trace;
    int status = PRESTO_ERR_IO, sys_errno = 0;
    const char *text = NULL;
    PyErr_Fetch(&type, &value, &trace);
    PyErr_NormalizeException(&type, &value, &trace);
    bool is_interrupt =
        type != NULL && PyErr_GivenExceptionMatches(type, PyExc_KeyboardInterrupt) != 0;
    PyObject *module = PyImport_ImportModule("presto._filesystem");
    PyObject *words =
        module == NULL || value == NULL ? NULL : PyObject_CallMethod(module, "failure", "O", value);
    if (words == NULL || !PyArg_ParseTuple(words, "iiy", &status, &sys_errno, &text)) {
        PyErr_Clear();
        text = "the file system has failed, and does not say how";
    }
    presto_error_set(err, (presto_status)status, PRESTO_NO_OFFSET, "%s", text);
    err->sys_errno = sys_errno;
    Py_XDECREF(words);
    Py_XDECREF(module);
    Py_XDECREF(type);
    Py_XDECREF(value);
    Py_XDECREF(trace);
    if (is_interrupt)
        PyErr_SetInterrupt();
    return err->status;
}

/* ---- what the methods give ---- */

/* (type, bytes, time in ns, version). False: an exception is set. */
static bool entry_of(PyObject *facts, presto_filesystem_entry *entry_out) {
    int type;
    unsigned long long bytes;
    long long mtime_ns;
    const char *version;
    *entry_out = (presto_filesystem_entry){.bytes = 0};
    if (!PyTuple_Check(facts)) {
        PyErr_SetString(PyExc_TypeError, "facts of a file are a tuple");
        return false;
    }
    if (!PyArg_ParseTuple(facts, "iKLs", &type, &bytes, &mtime_ns, &version))
        return false;
    entry_out->type = (presto_filesystem_type)type;
    entry_out->bytes = bytes;
    entry_out->mtime_ns = mtime_ns;
    strncpy(entry_out->version, version, sizeof entry_out->version - 1);
    return true;
}

static presto_status fs_find(void *user, const char *path, presto_filesystem_entry *entry_out,
                             presto_error *err) {
    fs_visit visit;
    PRESTO_TRY(enter(&visit, err));
    PyObject *facts = PyObject_CallMethod(user, "find", "N", native_text(path));
    bool is_there = facts != NULL && entry_of(facts, entry_out);
    presto_status status = is_there ? PRESTO_OK : fail(err);
    Py_XDECREF(facts);
    leave(&visit);
    return status;
}

static presto_status fs_open(void *user, const char *path, void **file_out,
                             presto_filesystem_entry *entry_out, presto_error *err) {
    fs_visit visit;
    PyObject *file = NULL, *facts = NULL;
    PRESTO_TRY(enter(&visit, err));
    PyObject *both = PyObject_CallMethod(user, "open", "N", native_text(path));
    bool is_open =
        both != NULL && PyArg_ParseTuple(both, "OO", &file, &facts) && entry_of(facts, entry_out);
    if (is_open)
        *file_out = Py_NewRef(file);
    presto_status status = is_open ? PRESTO_OK : fail(err);
    Py_XDECREF(both);
    leave(&visit);
    return status;
}

static presto_status fs_read(void *user, void *file, uint64_t offset, void *data, size_t bytes,
                             size_t *got_out, presto_error *err) {
    fs_visit visit;
    char *found;
    Py_ssize_t count;
    PRESTO_TRY(enter(&visit, err));
    PyObject *read = PyObject_CallMethod(user, "read", "OKn", (PyObject *)file,
                                         (unsigned long long)offset, (Py_ssize_t)bytes);
    presto_status status = PRESTO_OK;
    if (read == NULL || PyBytes_AsStringAndSize(read, &found, &count) < 0) {
        status = fail(err);
    } else if ((size_t)count > bytes) {
        status = presto_fail(err, PRESTO_ERR_IO, offset,
                             "the file system gives %zu bytes where %zu were asked for",
                             (size_t)count, bytes);
    } else {
        memcpy(data, found, (size_t)count);
        *got_out = (size_t)count;
    }
    Py_XDECREF(read);
    leave(&visit);
    return status;
}

/* What fails here has been read already. */
static void fs_close(void *user, void *file) {
    fs_visit visit;
    presto_error why;
    if (enter(&visit, &why) < 0)
        return;
    PyObject *done = PyObject_CallMethod(user, "close", "O", (PyObject *)file);
    if (done == NULL)
        (void)fail(&why);
    Py_XDECREF(done);
    Py_DECREF((PyObject *)file);
    leave(&visit);
}

/* ---- lists ---- */

typedef struct fs_listed {
    char *name;
    presto_filesystem_entry entry;
} fs_listed;

/* [(name, facts), ...] as an array. False: an exception is set. */
static bool take_names(PyObject *list, fs_listed **items_out, size_t *count_out) {
    if (!PyList_Check(list)) {
        PyErr_SetString(PyExc_TypeError, "what is in a folder is a list");
        return false;
    }
    size_t count = (size_t)PyList_Size(list);
    fs_listed *items = calloc(count + 1, sizeof *items);
    if (items == NULL) {
        PyErr_NoMemory();
        return false;
    }
    *items_out = items;
    *count_out = count;
    for (size_t i = 0; i < count; i++) {
        const char *name;
        PyObject *facts;
        PyObject *item = PyList_GetItem(list, (Py_ssize_t)i);
        if (item == NULL || !PyTuple_Check(item) || !PyArg_ParseTuple(item, "yO", &name, &facts)) {
            if (!PyErr_Occurred())
                PyErr_SetString(PyExc_TypeError, "what is in a folder are pairs");
            return false;
        }
        items[i].name = strdup(name);
        if (items[i].name == NULL) {
            PyErr_NoMemory();
            return false;
        }
        if (!entry_of(facts, &items[i].entry))
            return false;
    }
    return true;
}

static presto_status fs_list(void *user, const char *path, presto_filesystem_tell_fn tell,
                             void *tell_user, presto_error *err) {
    fs_visit visit;
    fs_listed *items = NULL;
    size_t count = 0;
    PRESTO_TRY(enter(&visit, err));
    PyObject *list = PyObject_CallMethod(user, "list", "N", native_text(path));
    bool is_there = list != NULL && take_names(list, &items, &count);
    presto_status status = is_there ? PRESTO_OK : fail(err);
    Py_XDECREF(list);
    leave(&visit);
    for (size_t i = 0; i < count && status >= 0; i++)
        status = tell(tell_user, items[i].name, &items[i].entry, err);
    for (size_t i = 0; i < count; i++)
        free(items[i].name);
    free(items);
    return status < 0 ? status : PRESTO_OK;
}

static void fs_done(void *user) {
    fs_visit visit;
    presto_error why;
    if (enter(&visit, &why) < 0)
        return;
    Py_DECREF((PyObject *)user);
    leave(&visit);
}

/* ---- the type ---- */

static PyObject *filesystem_new(PyTypeObject *type, PyObject *args, PyObject *keywords) {
    static char *names[] = {"name", "calls", NULL};
    const char *name;
    PyObject *calls;
    if (!PyArg_ParseTupleAndKeywords(args, keywords, "sO", names, &name, &calls))
        return NULL;
    native_filesystem *self = (native_filesystem *)PyType_GenericAlloc(type, 0);
    if (self == NULL)
        return NULL;
    const presto_filesystem functions = {.struct_bytes = sizeof functions,
                                         .user = calls,
                                         .find = fs_find,
                                         .open = fs_open,
                                         .read = fs_read,
                                         .close = fs_close,
                                         .list = fs_list,
                                         .done = fs_done};
    presto_error err;
    self->name = strdup(name);
    presto_status status =
        self->name == NULL ? presto_fail_memory(&err, strlen(name) + 1) : PRESTO_OK;
    if (status == PRESTO_OK)
        status = presto_filesystem_add(name, &functions, &err);
    if (status < 0) {
        free(self->name);
        self->name = NULL;
        Py_DECREF((PyObject *)self);
        return native_raise(&err);
    }
    Py_INCREF(calls); /* until it is done */
    return (PyObject *)self;
}

/* In a child of fork, too: nothing of the library's threads is in it. */
static void filesystem_dealloc(PyObject *object) {
    native_filesystem *self = (native_filesystem *)object;
    PyTypeObject *type = Py_TYPE(object);
    if (self->name != NULL)
        presto_filesystem_remove(self->name);
    free(self->name);
    PyObject_Free(self);
    Py_DECREF(type);
}

static PyType_Slot slots[] = {
    {Py_tp_new, NATIVE_SLOT(filesystem_new)},
    {Py_tp_dealloc, NATIVE_SLOT(filesystem_dealloc)},
    {Py_tp_doc, "A file system of Python's, which the library finds by its name while this lives."},
    {0, NULL},
};

PyType_Spec native_filesystem_spec = {
    .name = "presto._native.Filesystem",
    .basicsize = sizeof(native_filesystem),
    .flags = Py_TPFLAGS_DEFAULT,
    .slots = slots,
};
