/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A dict of Python's values as a sample: numbers and lists of them as Example lists, arrays with
 * dtype and shape, texts, bytes. What is not known here is asked for in Python, once
 * (presto._values.prepare): other byte orders, strides, arrays of other libraries.
 */
#include "writing_internal.h"

#include <math.h>
#include <string.h>

struct native_value {
    Py_buffer view; /* view.obj NULL: none */
    PyObject *kept; /* what the value borrows from; NULL: the dict's own */
    void *list;     /* PyMem; NULL: none */
    presto_span string;
    int64_t integer;
    float number;
};

/* ---- arrays ---- */

static presto_dtype of_kind(char kind, Py_ssize_t bytes) {
    static const presto_dtype
        integers[] =
            {[1] = PRESTO_INT8, [2] = PRESTO_INT16, [4] = PRESTO_INT32, [8] = PRESTO_INT64},
        naturals[] = {
            [1] = PRESTO_UINT8, [2] = PRESTO_UINT16, [4] = PRESTO_UINT32, [8] = PRESTO_UINT64};
    if (strchr("bhilqn", kind) != NULL && bytes <= 8)
        return integers[bytes];
    if (strchr("BHILQN", kind) != NULL && bytes <= 8)
        return naturals[bytes];
    return kind == '?'   ? PRESTO_BOOL
           : kind == 'e' ? PRESTO_FLOAT16
           : kind == 'f' ? PRESTO_FLOAT32
           : kind == 'd' ? PRESTO_FLOAT64
                         : PRESTO_DTYPE_UNKNOWN;
}

/* The dtype of a format of the buffer protocol, in this machine's order. */
static presto_dtype of_format(const char *format, Py_ssize_t bytes) {
    if (format == NULL)
        return PRESTO_UINT8;
    if (strchr("@=<|", format[0]) != NULL && format[0] != '\0')
        format++;
    if (format[0] == 'Z' && format[1] != '\0' && format[2] == '\0')
        return format[1] == 'f'   ? PRESTO_COMPLEX64
               : format[1] == 'd' ? PRESTO_COMPLEX128
                                  : PRESTO_DTYPE_UNKNOWN;
    return format[0] != '\0' && format[1] == '\0' ? of_kind(format[0], bytes)
                                                  : PRESTO_DTYPE_UNKNOWN;
}

/* Scalars of int64 and float32 are what Examples have lists for. */
static presto_encoding encoding_of(presto_dtype dtype, int rank) {
    if (rank == 0 && dtype == PRESTO_INT64)
        return PRESTO_ENCODE_INT64;
    return rank == 0 && dtype == PRESTO_FLOAT32 ? PRESTO_ENCODE_FLOAT : PRESTO_ENCODE_TENSOR;
}

/* numpy.ndarray, kept for good. NULL: an exception is set. */
static PyObject *array_type(void) {
    static PyObject *type;
    if (type == NULL) {
        PyObject *module = PyImport_ImportModule("numpy");
        type = module == NULL ? NULL : PyObject_GetAttrString(module, "ndarray");
        Py_XDECREF(module);
    }
    return type;
}

/* Whether the buffer of the object is not its value: that of a masked array has what is masked, that
 * of a date only its bytes. -1: an exception is set. */
static int hides_value(PyObject *object, int rank) {
    PyObject *type = array_type();
    if (type == NULL || (PyObject *)Py_TYPE(object) == type)
        return type == NULL ? -1 : 0;
    int is_array = PyObject_IsInstance(object, type);
    if (is_array != 0)
        return is_array < 0 ? -1 : PyObject_HasAttrString(object, "mask");
    return rank > 0 && PyObject_HasAttrString(object, "dtype");
}

/* False without an exception: it is no array that can be taken as it is. */
static bool take_array(PyObject *array, presto_dtype dtype, native_value *value,
                       presto_feature *feature) {
    if (PyObject_GetBuffer(array, &value->view, PyBUF_FORMAT | PyBUF_C_CONTIGUOUS) < 0) {
        PyErr_Clear();
        value->view.obj = NULL;
        return false;
    }
    const Py_buffer *view = &value->view;
    if (dtype == PRESTO_DTYPE_UNKNOWN)
        dtype = of_format(view->format, view->itemsize);
    bool fits = dtype != PRESTO_DTYPE_UNKNOWN &&
                presto_dtype_bytes(dtype) == (size_t)view->itemsize &&
                view->ndim <= PRESTO_MAX_RANK && hides_value(array, view->ndim) == 0;
    if (!fits) {
        PyBuffer_Release(&value->view);
        return false;
    }
    presto_tensor_spec spec = {.dtype = dtype, .rank = view->ndim};
    for (int i = 0; i < view->ndim; i++)
        spec.dims[i] = view->shape[i];
    feature->encoding = encoding_of(dtype, view->ndim);
    feature->tensor = (presto_tensor){.spec = spec, .data = view->buf};
    return true;
}

/* ---- texts and numbers ---- */

static void take_string(native_value *value, presto_feature *feature) {
    feature->encoding = PRESTO_ENCODE_BYTES;
    feature->tensor.spec = (presto_tensor_spec){.dtype = PRESTO_STRING};
    feature->tensor.strings = &value->string;
}

/* A str or bytes; borrowed from it. */
static bool span_of(PyObject *text, presto_span *span_out) {
    Py_ssize_t bytes;
    char *data;
    if (PyUnicode_Check(text)) {
        const char *utf8 = PyUnicode_AsUTF8AndSize(text, &bytes);
        if (utf8 == NULL)
            return false;
        *span_out = presto_span_of(utf8, (size_t)bytes);
        return true;
    }
    if (PyBytes_AsStringAndSize(text, &data, &bytes) < 0)
        return false;
    *span_out = presto_span_of(data, (size_t)bytes);
    return true;
}

static bool is_text(PyObject *object) {
    return PyUnicode_Check(object) || PyBytes_Check(object);
}

static bool take_integer(PyObject *integer, native_value *value, presto_feature *feature) {
    value->integer = PyLong_AsLongLong(integer);
    if (value->integer == -1 && PyErr_Occurred())
        return false;
    feature->encoding = PRESTO_ENCODE_INT64;
    feature->tensor = (presto_tensor){.spec = {.dtype = PRESTO_INT64}, .data = &value->integer};
    return true;
}

/* Not those that are NumPy's. */
static bool is_float(PyObject *object) {
    return PyFloat_CheckExact(object);
}

/* A Python float as a float32. False: an exception is set. */
static bool narrow(PyObject *number, float *out) {
    double wide = PyFloat_AsDouble(number);
    if (wide == -1 && PyErr_Occurred())
        return false;
    *out = (float)wide;
    if (!isinf(*out) || isinf(wide))
        return true;
    PyErr_Format(PyExc_OverflowError,
                 "%R is too large for float32, which Python's floats become: give a numpy.float64",
                 number);
    return false;
}

static bool take_number(PyObject *number, native_value *value, presto_feature *feature) {
    feature->encoding = PRESTO_ENCODE_FLOAT;
    feature->tensor = (presto_tensor){.spec = {.dtype = PRESTO_FLOAT32}, .data = &value->number};
    return narrow(number, &value->number);
}

/* bytearray and memoryview are bytes, too. */
static bool take_bytes(PyObject *bytes, native_value *value, presto_feature *feature) {
    if (PyObject_GetBuffer(bytes, &value->view, PyBUF_SIMPLE) < 0)
        return false;
    value->string = presto_span_of(value->view.buf, (size_t)value->view.len);
    take_string(value, feature);
    return true;
}

/* ---- lists ---- */

typedef enum list_kind {
    LIST_EMPTY,
    LIST_INTEGERS,
    LIST_NUMBERS,
    LIST_TEXTS,
    LIST_OTHER
} list_kind;

static list_kind kind_of_list(PyObject *tuple) {
    list_kind kind = LIST_EMPTY;
    for (Py_ssize_t i = 0; i < PyTuple_Size(tuple) && kind != LIST_OTHER; i++) {
        PyObject *item = PyTuple_GetItem(tuple, i);
        list_kind of_item = is_text(item)        ? LIST_TEXTS
                            : PyLong_Check(item) ? LIST_INTEGERS
                            : is_float(item)     ? LIST_NUMBERS
                                                 : LIST_OTHER;
        bool mixes = (kind == LIST_INTEGERS && of_item == LIST_NUMBERS) ||
                     (kind == LIST_NUMBERS && of_item == LIST_INTEGERS);
        if (mixes)
            kind = LIST_NUMBERS;
        else
            kind = kind == LIST_EMPTY || kind == of_item ? of_item : LIST_OTHER;
    }
    return kind;
}

static bool fill_list(PyObject *tuple, list_kind kind, void *list) {
    for (Py_ssize_t i = 0; i < PyTuple_Size(tuple); i++) {
        PyObject *item = PyTuple_GetItem(tuple, i);
        if (kind == LIST_TEXTS && !span_of(item, (presto_span *)list + i))
            return false;
        if (kind == LIST_INTEGERS)
            ((int64_t *)list)[i] = PyLong_AsLongLong(item);
        else if (kind == LIST_NUMBERS && !narrow(item, (float *)list + i))
            return false;
        if (PyErr_Occurred())
            return false;
    }
    return true;
}

/* Of ints, floats, or texts. False without an exception: of something else. */
static bool take_list(PyObject *list, native_value *value, presto_feature *feature) {
    static const struct {
        presto_encoding encoding;
        presto_dtype dtype;
        size_t bytes;
    } kinds[] = {[LIST_INTEGERS] = {PRESTO_ENCODE_INT64, PRESTO_INT64, sizeof(int64_t)},
                 [LIST_NUMBERS] = {PRESTO_ENCODE_FLOAT, PRESTO_FLOAT32, sizeof(float)},
                 [LIST_TEXTS] = {PRESTO_ENCODE_BYTES, PRESTO_STRING, sizeof(presto_span)}};
    /* Another thread may change the list while the library reads what is in it. */
    value->kept = PySequence_Tuple(list);
    if (value->kept == NULL)
        return false;
    list_kind kind = kind_of_list(value->kept);
    if (kind == LIST_OTHER)
        return false;
    if (kind == LIST_EMPTY) { /* of which kind, nobody knows: no value */
        feature->encoding = PRESTO_ENCODE_NONE;
        return true;
    }
    Py_ssize_t count = PyTuple_Size(value->kept);
    value->list = PyMem_Malloc((size_t)count * kinds[kind].bytes);
    if (value->list == NULL) {
        PyErr_NoMemory();
        return false;
    }
    feature->encoding = kinds[kind].encoding;
    feature->tensor = (presto_tensor){.spec = {kinds[kind].dtype, 1, {count}}, .data = value->list};
    return fill_list(value->kept, kind, value->list);
}

/* ---- a value ---- */

/* False without an exception: it is of no kind that is known here. */
static bool take_known(PyObject *object, native_value *value, presto_feature *feature) {
    if (object == Py_None) {
        feature->encoding = PRESTO_ENCODE_NONE;
        return true;
    }
    if (PyLong_Check(object))
        return take_integer(object, value, feature);
    if (is_float(object))
        return take_number(object, value, feature);
    if (is_text(object)) {
        take_string(value, feature);
        return span_of(object, &value->string);
    }
    if (PyByteArray_Check(object) || PyMemoryView_Check(object))
        return take_bytes(object, value, feature);
    if (PyList_Check(object) || PyTuple_Check(object))
        return take_list(object, value, feature);
    return take_array(object, PRESTO_DTYPE_UNKNOWN, value, feature);
}

static void value_done(native_value *value) {
    if (value->view.obj != NULL)
        PyBuffer_Release(&value->view);
    PyMem_Free(value->list);
    Py_XDECREF(value->kept);
    *value = (native_value){0};
}

/* What presto._values makes of it: (dtype or None, something that is known). */
static bool take_prepared(PyObject *object, native_value *value, presto_feature *feature) {
    value_done(value);
    PyObject *module = PyImport_ImportModule("presto._values");
    PyObject *pair = module == NULL ? NULL : PyObject_CallMethod(module, "prepare", "(O)", object);
    Py_XDECREF(module);
    const char *dtype = NULL;
    PyObject *prepared;
    if (pair == NULL)
        return false;
    bool done = PyArg_ParseTuple(pair, "zO", &dtype, &prepared) != 0;
    if (done && dtype != NULL)
        done = take_array(prepared, presto_dtype_by_name(dtype), value, feature);
    else if (done)
        done = take_known(prepared, value, feature);
    if (!done && !PyErr_Occurred())
        PyErr_SetString(PyExc_TypeError, "its values cannot be stored");
    if (value->kept == NULL)
        value->kept = pair;
    else /* of a list: the tuple keeps its items */
        Py_DECREF(pair);
    return done;
}

/* ---- the sample ---- */

static bool is_of_value(void) {
    PyObject *kinds[] = {PyExc_TypeError, PyExc_ValueError, PyExc_OverflowError, PyExc_BufferError};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (PyErr_ExceptionMatches(kinds[i]))
            return true;
    return false;
}

/* The exception that is set, as a presto.InputError that says which sample and feature. */
static void name_failure(PyObject *name, uint64_t number) {
    if (!is_of_value())
        return;
    PyObject *type, *value, *trace;
    PyErr_Fetch(&type, &value, &trace);
    PyErr_NormalizeException(&type, &value, &trace);
    PyObject *text = number == PRESTO_NO_RECORD
                         ? PyUnicode_FromFormat("feature %R: %S", name, value)
                         : PyUnicode_FromFormat("sample %llu: feature %R: %S",
                                                (unsigned long long)number, name, value);
    PyObject *bytes =
        text == NULL ? NULL : PyUnicode_AsEncodedString(text, "utf-8", "backslashreplace");
    if (bytes != NULL)
        native_fail(PRESTO_ERR_TYPE, PyBytes_AsString(bytes));
    Py_XDECREF(bytes);
    Py_XDECREF(text);
    Py_XDECREF(type);
    Py_XDECREF(value);
    Py_XDECREF(trace);
}

static bool take_item(PyObject *item, native_value *value, presto_feature *feature,
                      uint64_t number) {
    PyObject *name = PyTuple_GetItem(item, 0), *object = PyTuple_GetItem(item, 1);
    if (!PyUnicode_Check(name)) {
        PyErr_Format(PyExc_TypeError, "the name of a feature is a str, not %R", name);
        return false;
    }
    bool done = span_of(name, &feature->name) && take_known(object, value, feature);
    if (!done && !PyErr_Occurred())
        done = take_prepared(object, value, feature);
    if (!done)
        name_failure(name, number);
    return done;
}

bool native_sample_make(PyObject *dict, uint64_t number, native_sample *sample_out) {
    *sample_out = (native_sample){0};
    sample_out->items = PyDict_Items(dict);
    if (sample_out->items == NULL)
        return false;
    size_t count = (size_t)PyList_Size(sample_out->items);
    presto_feature *features = PyMem_Calloc(count + 1, sizeof *features);
    sample_out->values = PyMem_Calloc(count + 1, sizeof *sample_out->values);
    sample_out->sample.features = features;
    bool done = features != NULL && sample_out->values != NULL;
    if (!done)
        PyErr_NoMemory();
    for (size_t i = 0; done && i < count; i++) {
        sample_out->sample.feature_count = i + 1;
        done = take_item(PyList_GetItem(sample_out->items, (Py_ssize_t)i), &sample_out->values[i],
                         &features[i], number);
    }
    if (!done)
        native_sample_done(sample_out);
    return done;
}

void native_sample_done(native_sample *sample) {
    PyObject *raised[3];
    PyErr_Fetch(&raised[0], &raised[1], &raised[2]);
    for (size_t i = 0; i < sample->sample.feature_count && sample->values != NULL; i++)
        value_done(&sample->values[i]);
    PyMem_Free(sample->values);
    PyMem_Free(sample->sample.features);
    Py_XDECREF(sample->items);
    *sample = (native_sample){0};
    PyErr_Restore(raised[0], raised[1], raised[2]);
}
