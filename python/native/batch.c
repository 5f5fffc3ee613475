/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Batches, and the bytes in them. A Batch goes back to the loader's pool when nobody holds it or a
 * buffer of it any more. NumPy's arrays hold the buffer that they are made from.
 */
#include "native_internal.h"

/* What an empty array points to. */
static const _Alignas(64) uint8_t nothing[64];

/* ---- account ---- */

void native_account_release(native_account *account) {
    if (account != NULL && --account->refs == 0)
        PyMem_Free(account);
}

/* ---- batch ---- */

static uint64_t bytes_of(const presto_batch *batch) {
    uint64_t bytes = 0;
    for (size_t i = 0; i < batch->feature_count; i++)
        bytes += presto_tensor_bytes(&batch->features[i].tensor);
    return bytes;
}

PyObject *native_batch_new(presto_batch *batch, void (*release)(presto_batch *batch),
                           native_account *account) {
    native_batch *self = (native_batch *)PyType_GenericAlloc(native_batch_type, 0);
    if (self == NULL) {
        release(batch);
        return NULL;
    }
    self->batch = batch;
    self->release = release;
    self->generation = native_generation();
    self->bytes = bytes_of(batch);
    self->account = account;
    account->refs++;
    account->batches++;
    account->bytes += self->bytes;
    return (PyObject *)self;
}

static void batch_dealloc(PyObject *object) {
    native_batch *self = (native_batch *)object;
    PyTypeObject *type = Py_TYPE(object);
    self->account->batches--;
    self->account->bytes -= self->bytes;
    native_account_release(self->account);
    if (self->generation == native_generation())
        self->release(self->batch);
    PyObject_Free(self);
    Py_DECREF(type);
}

/* ---- buffers ---- */

static PyObject *buffer_new(native_batch *owner, const void *data, const presto_tensor_spec *spec) {
    native_buffer *self = (native_buffer *)PyType_GenericAlloc(native_buffer_type, 0);
    if (self == NULL)
        return NULL;
    self->owner = owner;
    Py_INCREF((PyObject *)owner);
    self->spec = *spec;
    self->item_bytes = presto_dtype_bytes(spec->dtype);
    self->data = presto_spec_elements(spec) == 0 ? nothing : data;
    Py_ssize_t stride = (Py_ssize_t)self->item_bytes;
    for (int i = spec->rank - 1; i >= 0; i--) {
        self->shape[i] = (Py_ssize_t)spec->dims[i];
        self->strides[i] = stride;
        stride *= self->shape[i];
    }
    return (PyObject *)self;
}

static void buffer_dealloc(PyObject *object) {
    PyTypeObject *type = Py_TYPE(object);
    Py_XDECREF((PyObject *)((native_buffer *)object)->owner);
    PyObject_Free(object);
    Py_DECREF(type);
}

/* The buffer protocol's text of a dtype, which has no bfloat16. */
static const char *format_of(presto_dtype dtype) {
    static const struct {
        presto_dtype dtype;
        const char *format;
    } formats[] = {
        {PRESTO_FLOAT32, "f"},    {PRESTO_FLOAT64, "d"}, {PRESTO_INT32, "i"},
        {PRESTO_UINT8, "B"},      {PRESTO_INT16, "h"},   {PRESTO_INT8, "b"},
        {PRESTO_COMPLEX64, "Zf"}, {PRESTO_INT64, "l"},   {PRESTO_BOOL, "?"},
        {PRESTO_BFLOAT16, "H"},   {PRESTO_UINT16, "H"},  {PRESTO_COMPLEX128, "Zd"},
        {PRESTO_FLOAT16, "e"},    {PRESTO_UINT32, "I"},  {PRESTO_UINT64, "L"},
    };
    _Static_assert(sizeof(long) == sizeof(int64_t), "'l' is int64");
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++)
        if (formats[i].dtype == dtype)
            return formats[i].format;
    return "B";
}

static int buffer_get(PyObject *object, Py_buffer *view, int flags) {
    native_buffer *self = (native_buffer *)object;
    view->obj = NULL;
    if ((flags & PyBUF_WRITABLE) == PyBUF_WRITABLE) {
        PyErr_SetString(PyExc_BufferError, "batches are read-only: the loader uses them again");
        return -1;
    }
    view->buf = (void *)(uintptr_t)self->data;
    view->len = (Py_ssize_t)(presto_spec_elements(&self->spec) * self->item_bytes);
    view->readonly = 1;
    view->itemsize = (Py_ssize_t)self->item_bytes;
    view->format =
        (flags & PyBUF_FORMAT) == 0 ? NULL : (char *)(uintptr_t)format_of(self->spec.dtype);
    view->ndim = self->spec.rank;
    view->shape = (flags & PyBUF_ND) == 0 ? NULL : self->shape;
    view->strides = (flags & PyBUF_STRIDES) == PyBUF_STRIDES ? self->strides : NULL;
    view->suboffsets = NULL;
    view->internal = NULL;
    view->obj = Py_NewRef(object);
    return 0;
}

static PyObject *buffer_dtype(PyObject *self, void *unused) {
    (void)unused;
    return native_text(presto_dtype_name(((native_buffer *)self)->spec.dtype));
}

/* ---- features ---- */

static PyObject *numbers(native_batch *owner, const int64_t *data, size_t rows, size_t columns) {
    if (data == NULL)
        Py_RETURN_NONE;
    const presto_tensor_spec spec = {.dtype = PRESTO_INT64,
                                     .rank = columns == 0 ? 1 : 2,
                                     .dims = {(int64_t)rows, (int64_t)columns}};
    return buffer_new(owner, data, &spec);
}

static PyObject *feature_tuple(native_batch *self, const presto_batch_feature *feature) {
    size_t rows = self->batch->rows, strings = rows;
    if (feature->row_offsets != NULL)
        strings = (size_t)feature->row_offsets[rows];
    else if (feature->layout == PRESTO_LAYOUT_RAGGED)
        strings = rows;
    return Py_BuildValue("(NsNNNN)", native_text(feature->name),
                         presto_layout_name(feature->layout),
                         buffer_new(self, feature->tensor.data, &feature->tensor.spec),
                         numbers(self, feature->offsets, strings + 1, 0),
                         numbers(self, feature->row_offsets, rows + 1, 0),
                         numbers(self, feature->shapes, rows, feature->shape_rank));
}

static PyObject *get_features(PyObject *object, void *unused) {
    (void)unused;
    native_batch *self = (native_batch *)object;
    const presto_batch *batch = self->batch;
    PyObject *out = PyTuple_New((Py_ssize_t)batch->feature_count);
    for (size_t i = 0; out != NULL && i < batch->feature_count; i++) {
        PyObject *item = feature_tuple(self, &batch->features[i]);
        if (item == NULL || PyTuple_SetItem(out, (Py_ssize_t)i, item) < 0)
            Py_CLEAR(out);
    }
    return out;
}

static PyObject *get_numbers(PyObject *object, void *unused) {
    (void)unused;
    native_batch *self = (native_batch *)object;
    const presto_tensor_spec spec = {
        .dtype = PRESTO_INT64, .rank = 1, .dims = {(int64_t)self->batch->rows}};
    return buffer_new(self, self->batch->sample_numbers, &spec);
}

static PyObject *get_place(PyObject *object, void *unused) {
    (void)unused;
    const presto_batch *batch = ((native_batch *)object)->batch;
    return Py_BuildValue("(KKnn)", batch->epoch, batch->first, (Py_ssize_t)batch->rows,
                         (Py_ssize_t)batch->skipped);
}

static PyGetSetDef batch_properties[] = {
    {"features", get_features, NULL,
     "(name, layout, values, offsets, rows, shapes) of each feature.", NULL},
    {"numbers", get_numbers, NULL, "Which sample of the input each row is.", NULL},
    {"place", get_place, NULL, "(epoch, first, rows, skipped).", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyMethodDef batch_methods[] = {
    {"arrow_array", native_batch_arrow, METH_NOARGS, "Arrow's capsules of schema and array."},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot batch_slots[] = {
    {Py_tp_dealloc, NATIVE_SLOT(batch_dealloc)},
    {Py_tp_methods, batch_methods},
    {Py_tp_getset, batch_properties},
    {Py_tp_doc, "A batch, which is the loader's again when nobody holds it."},
    {0, NULL},
};

PyType_Spec native_batch_spec = {
    .name = "presto._native.Batch",
    .basicsize = sizeof(native_batch),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .slots = batch_slots,
};

static PyMethodDef buffer_methods[] = {
    {"__dlpack__", (PyCFunction)(void (*)(void))native_dlpack, METH_VARARGS | METH_KEYWORDS,
     "The array as a DLPack capsule, without a copy."},
    {"__dlpack_device__", native_dlpack_device, METH_NOARGS, "(1, 0): memory of the CPU."},
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef buffer_properties[] = {
    {"dtype", buffer_dtype, NULL, "Name of the dtype, such as bfloat16.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyType_Slot buffer_slots[] = {
    {Py_tp_dealloc, NATIVE_SLOT(buffer_dealloc)},
    {Py_bf_getbuffer, NATIVE_SLOT(buffer_get)},
    {Py_tp_methods, buffer_methods},
    {Py_tp_getset, buffer_properties},
    {Py_tp_doc, "An array in a batch: the buffer protocol and DLPack."},
    {0, NULL},
};

PyType_Spec native_buffer_spec = {
    .name = "presto._native.Buffer",
    .basicsize = sizeof(native_buffer),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .slots = buffer_slots,
};
