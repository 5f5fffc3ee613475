/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The extension module presto._native: presto.h as a few Python types. It is small on purpose:
 * checking of arguments, defaults, iteration and all that is pleasant stand in the package's Python
 * files. It uses the stable ABI of CPython 3.11, so that one file serves every later version.
 *
 * May see: public headers. Lock: the GIL guards all fields, unless a comment says otherwise. It is
 * released while the library works or waits: by native_leave, never by CPython's macros, as the
 * interpreter may end meanwhile.
 *
 * Fork: threads and locks of the library do not live on in a child process. What was made before
 * the fork has another generation than the process, and is left alone there: never used, never
 * freed.
 */
#ifndef PRESTO_NATIVE_INTERNAL_H
#define PRESTO_NATIVE_INTERNAL_H

#ifndef Py_LIMITED_API
#define Py_LIMITED_API 0x030B0000
#endif
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <presto/presto.h>

/* A function in a slot: CPython wants it as a void pointer, which ISO C does not convert. */
#define NATIVE_SLOT(function) ((void *)(uintptr_t)(function))

/* ---- module.c ---- */

/** How often the process has forked since the module was loaded. */
unsigned native_generation(void);
/** Set the exception for a failure of the library: presto._errors.make(). Returns NULL. */
PyObject *native_raise(const presto_error *error);
/** As native_raise for a failure that the module finds itself. */
PyObject *native_fail(presto_status status, const char *message);
/** Text from outside; bytes that are not UTF-8 become surrogates. */
PyObject *native_text(const char *text);

/* ---- gate.c ---- */

/** A call of the library, of the thread whose stack it is on. */
typedef struct native_away {
    PyThreadState *thread;
    unsigned generation;
} native_away;

/** Let the GIL go. False: the interpreter ends; a SystemExit is set, and the GIL is still held. */
bool native_leave(native_away *away);
/** The same for what must be done in any case. */
void native_leave_to_free(native_away *away);
/** Take the GIL again. Does not return if the interpreter is gone. */
void native_return(native_away *away);

/** A callback into Python. */
typedef struct native_visit {
    PyGILState_STATE state;
    unsigned generation;
    bool is_counted;
} native_visit;

/** Any thread: take the GIL, if the thread has not got it. False: the interpreter ends, nothing of
 * Python may be touched; a call under way is to stop. */
bool native_enter(native_visit *visit_out);
/** Undo native_enter that was true. */
void native_exit(const native_visit *visit);
/** Any thread, without the GIL: is the interpreter ending, by another thread? */
bool native_is_ending(void);
/** end(seconds): the interpreter ends. True: nobody is inside of the library any more. */
PyObject *native_end(PyObject *module, PyObject *most_s);
/** In a child process: what was inside is not there. */
void native_gate_forked(void);

/* ---- stream.c ---- */

typedef struct native_stream {
    PyObject_HEAD presto_stream opened; /* read-only once open */
    unsigned generation;
} native_stream;

extern PyType_Spec native_stream_spec;
/** The type, made by the module. Likewise below. */
extern PyTypeObject *native_stream_type;
/** (dtype, shape): shape is a tuple with None for unknown dims, or None. */
PyObject *native_spec(const presto_tensor_spec *spec);

/* ---- batch.c ---- */

/** The batches of a loader that are held; freed with the last of them and the loader. */
typedef struct native_account {
    size_t refs;
    size_t batches;
    uint64_t bytes;
} native_account;

typedef struct native_batch {
    PyObject_HEAD presto_batch *batch; /* keeps its memory, also when its loader is gone */
    void (*release)(presto_batch *batch);
    native_account *account;
    uint64_t bytes;
    unsigned generation;
} native_batch;

/** Bytes that are shown through the buffer protocol and DLPack; they keep their batch. */
typedef struct native_buffer {
    PyObject_HEAD native_batch *owner;
    const void *data;
    presto_tensor_spec spec;
    size_t item_bytes;
    Py_ssize_t shape[PRESTO_MAX_RANK], strides[PRESTO_MAX_RANK];
} native_buffer;

extern PyType_Spec native_batch_spec, native_buffer_spec;
extern PyTypeObject *native_batch_type, *native_buffer_type;

void native_account_release(native_account *account);
/** Takes the batch over, also on failure: `release` gives it back. */
PyObject *native_batch_new(presto_batch *batch, void (*release)(presto_batch *batch),
                           native_account *account);

/* ---- dlpack.c ---- */

/** Buffer.__dlpack__ and Buffer.__dlpack_device__. */
PyObject *native_dlpack(PyObject *self, PyObject *args, PyObject *keywords);
PyObject *native_dlpack_device(PyObject *self, PyObject *unused);

/* ---- arrow.c ---- */

/**
 * arrow_stream(next, declared): a capsule with an Arrow C stream of the batches that next() gives,
 * until it gives None. What is declared of the features is the schema of a stream without batches:
 * (name, layout, has_rows, dtype, dims) of each.
 */
PyObject *native_arrow_stream(PyObject *module, PyObject *args);

/* ---- ring.c ---- */

extern PyType_Spec native_ring_spec;
extern PyTypeObject *native_ring_type;

/* ---- loader.c, figures.c ---- */

typedef struct native_loader {
    PyObject_HEAD native_stream *stream; /* a reference: its source and plan outlive the loader */
    presto_loader *loader; /* NULL: closed. Calls back this object, which frees it before it goes */
    native_account *account;
    uint64_t hold_bytes;
    unsigned generation;
    bool is_inside; /* a thread is in the library */
    bool closes;    /* that thread closes the loader when it comes back */
    /* Of the thread inside, without the GIL: */
    uint64_t asked_ns;      /* when signals were looked at last */
    PyObject *on_skip;      /* NULL: none */
    PyObject *exception[3]; /* raised by a signal handler or on_skip; reported by the call */
    PyObject *warnings;     /* list */
    volatile int stops;     /* another thread asks the one inside to come back; atomic access */
} native_loader;

extern PyType_Spec native_loader_spec;
extern PyTypeObject *native_loader_type;

/** The library's loader. NULL with an exception set: closed, or of before a fork. */
presto_loader *native_loader_get(const native_loader *self);
PyObject *native_loader_stats(PyObject *self, PyObject *unused);
PyObject *native_loader_notes(PyObject *self, PyObject *unused);
PyObject *native_loader_verdict(PyObject *self, PyObject *unused);

/* ---- filesystem.c ---- */

extern PyType_Spec native_filesystem_spec;
extern PyTypeObject *native_filesystem_type;

/* ---- arrow_schema.c, arrow_array.c ---- */

/** The schema of a batch: a struct of its features. False: `why_out` is static text, or NULL for a
 * lack of memory. */
bool arrow_schema_of(const presto_batch *batch, struct ArrowSchema *schema_out,
                     const char **why_out);
/** False: no memory. */
bool arrow_schema_copy(const struct ArrowSchema *schema, struct ArrowSchema *copy_out);
bool arrow_schema_same(const struct ArrowSchema *a, const struct ArrowSchema *b);
/** The batch as a struct array on its memory. It keeps the batch. False: no memory. Needs the
 * GIL. */
bool arrow_array_of(native_batch *batch, struct ArrowArray *array_out);
/** Batch.arrow_array(): capsules of its schema and its array. */
PyObject *native_batch_arrow(PyObject *batch, PyObject *unused);

#endif
