/* SPDX-License-Identifier: Apache-2.0 */
/*
 * DLPack: an array handed to another library without a copy. The structs are the ABI of DLPack 1.0,
 * and of the one before it, which knows no read-only arrays: whoever asks for that must not write.
 * Source: dlpack.h of DLPack; the capsule's names and ownership are in its Python specification.
 */
#include "native_internal.h"

#include <stdlib.h>

enum {
    DEVICE_CPU = 1,
    CODE_INT = 0,
    CODE_UINT = 1,
    CODE_FLOAT = 2,
    CODE_BFLOAT = 4,
    CODE_COMPLEX = 5,
    CODE_BOOL = 6,
    FLAG_READ_ONLY = 1,
};

typedef struct dl_tensor {
    void *data;
    struct {
        int32_t type, id;
    } device;
    int32_t rank;
    struct {
        uint8_t code, bits;
        uint16_t lanes;
    } dtype;
    int64_t *shape, *strides;
    uint64_t byte_offset;
} dl_tensor;

typedef struct dl_managed {
    dl_tensor tensor;
    void *context;
    void (*deleter)(struct dl_managed *self);
} dl_managed;

typedef struct dl_versioned {
    struct {
        uint32_t major, minor;
    } version;
    void *context;
    void (*deleter)(struct dl_versioned *self);
    uint64_t flags;
    dl_tensor tensor;
} dl_versioned;

/* Both kinds, with room for the shape. */
typedef struct exported {
    union {
        dl_managed plain;
        dl_versioned versioned;
    };
    int64_t shape[PRESTO_MAX_RANK], strides[PRESTO_MAX_RANK];
} exported;

static void drop(void *context, void *memory) {
    native_visit visit;
    if (native_enter(&visit)) { /* else the process ends, and its memory with it */
        Py_DECREF((PyObject *)context);
        native_exit(&visit);
    }
    free(memory);
}

static void drop_plain(dl_managed *self) {
    drop(self->context, self);
}

static void drop_versioned(dl_versioned *self) {
    drop(self->context, self);
}

static uint8_t code_of(presto_dtype dtype) {
    const char *name = presto_dtype_name(dtype);
    switch (name[0]) {
    case 'f':
        return CODE_FLOAT;
    case 'c':
        return CODE_COMPLEX;
    case 'u':
        return CODE_UINT;
    case 'b':
        return dtype == PRESTO_BOOL ? CODE_BOOL : CODE_BFLOAT;
    default:
        return CODE_INT;
    }
}

static void describe(const native_buffer *self, exported *memory, dl_tensor *out) {
    int64_t stride = 1;
    *out = (dl_tensor){.data = (void *)(uintptr_t)self->data,
                       .device = {DEVICE_CPU, 0},
                       .rank = self->spec.rank,
                       .dtype = {code_of(self->spec.dtype), (uint8_t)(self->item_bytes * 8), 1},
                       .shape = memory->shape,
                       .strides = memory->strides};
    for (int i = self->spec.rank - 1; i >= 0; i--) {
        memory->shape[i] = self->spec.dims[i];
        memory->strides[i] = stride;
        stride *= self->spec.dims[i];
    }
}

/* Nobody took it: a capsule that was taken has another name. */
static void drop_capsule(PyObject *capsule) {
    if (PyCapsule_IsValid(capsule, "dltensor")) {
        dl_managed *managed = PyCapsule_GetPointer(capsule, "dltensor");
        managed->deleter(managed);
    } else if (PyCapsule_IsValid(capsule, "dltensor_versioned")) {
        dl_versioned *managed = PyCapsule_GetPointer(capsule, "dltensor_versioned");
        managed->deleter(managed);
    }
}

static PyObject *export(native_buffer *self, bool is_versioned) {
    exported *memory = calloc(1, sizeof *memory);
    if (memory == NULL)
        return PyErr_NoMemory();
    if (is_versioned) {
        memory->versioned = (dl_versioned){
            .version = {1, 0}, .context = self, .deleter = drop_versioned, .flags = FLAG_READ_ONLY};
        describe(self, memory, &memory->versioned.tensor);
    } else {
        memory->plain = (dl_managed){.context = self, .deleter = drop_plain};
        describe(self, memory, &memory->plain.tensor);
    }
    PyObject *capsule =
        PyCapsule_New(memory, is_versioned ? "dltensor_versioned" : "dltensor", drop_capsule);
    if (capsule == NULL)
        free(memory);
    else
        Py_INCREF((PyObject *)self);
    return capsule;
}

/* A pair of numbers, as the format says; None leaves them as they are. */
static bool read_pair(PyObject *pair, const char *format, void *first, void *second) {
    if (pair == Py_None)
        return true;
    if (PyTuple_Check(pair))
        return PyArg_ParseTuple(pair, format, first, second);
    PyErr_SetString(PyExc_TypeError, "max_version and dl_device are tuples of two numbers");
    return false;
}

PyObject *native_dlpack(PyObject *self, PyObject *args, PyObject *keywords) {
    static char *names[] = {"stream", "max_version", "dl_device", "copy", NULL};
    PyObject *stream = Py_None, *version = Py_None, *device = Py_None, *copy = Py_None;
    if (!PyArg_ParseTupleAndKeywords(args, keywords, "|$OOOO", names, &stream, &version, &device,
                                     &copy))
        return NULL;
    unsigned major = 0, minor = 0;
    int type = DEVICE_CPU, id = 0;
    if (!read_pair(version, "II", &major, &minor) || !read_pair(device, "ii", &type, &id))
        return NULL;
    if (type != DEVICE_CPU || copy == Py_True) {
        PyErr_SetString(PyExc_BufferError, "a batch is shown as it is, in memory of the CPU");
        return NULL;
    }
    return export((native_buffer *)self, major >= 1);
}

PyObject *native_dlpack_device(PyObject *self, PyObject *unused) {
    (void)self, (void)unused;
    return Py_BuildValue("(ii)", DEVICE_CPU, 0);
}
