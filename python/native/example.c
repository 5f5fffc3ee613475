/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tf.train.Examples of a step's requests and replies. What comes in is trusted: the library has
 * made it. A parser checks it all the same.
 */
#include "writing_internal.h"

#include <presto/example.h>

/* (dtype, shape, bytes). */
static PyObject *tensor_tuple(const presto_tensor *tensor) {
    size_t bytes;
    presto_error err;
    if (presto_spec_bytes(&tensor->spec, &bytes, &err) < 0)
        return native_raise(&err);
    PyObject *spec = native_spec(&tensor->spec);
    if (spec == NULL)
        return NULL;
    PyObject *found = Py_BuildValue("(OOy#)", PyTuple_GetItem(spec, 0), PyTuple_GetItem(spec, 1),
                                    bytes == 0 ? "" : tensor->data, (Py_ssize_t)bytes);
    Py_DECREF(spec);
    return found;
}

static PyObject *bytes_of(presto_span span) {
    return PyBytes_FromStringAndSize((const char *)span.data, (Py_ssize_t)span.bytes);
}

/* A string as bytes, several as a list of them. */
static PyObject *strings_of(const presto_tensor *tensor) {
    if (tensor->spec.rank == 0)
        return bytes_of(tensor->strings[0]);
    PyObject *list = PyList_New((Py_ssize_t)tensor->spec.dims[0]);
    for (Py_ssize_t i = 0; list != NULL && i < tensor->spec.dims[0]; i++) {
        PyObject *item = bytes_of(tensor->strings[i]);
        if (item == NULL || PyList_SetItem(list, i, item) < 0)
            Py_CLEAR(list);
    }
    return list;
}

static PyObject *value_of(const presto_feature *feature) {
    if (feature->encoding == PRESTO_ENCODE_NONE)
        return Py_NewRef(Py_None);
    return feature->tensor.spec.dtype == PRESTO_STRING ? strings_of(&feature->tensor)
                                                       : tensor_tuple(&feature->tensor);
}

static PyObject *dict_of(const presto_sample *sample) {
    PyObject *dict = PyDict_New();
    for (size_t i = 0; dict != NULL && i < sample->feature_count; i++) {
        presto_span span = sample->features[i].name;
        PyObject *name = PyUnicode_DecodeUTF8((const char *)span.data, (Py_ssize_t)span.bytes,
                                              "surrogateescape");
        PyObject *value = name == NULL ? NULL : value_of(&sample->features[i]);
        if (value == NULL || PyDict_SetItem(dict, name, value) < 0)
            Py_CLEAR(dict);
        Py_XDECREF(name);
        Py_XDECREF(value);
    }
    return dict;
}

PyObject *native_parse_example(PyObject *module, PyObject *args) {
    (void)module;
    static char value_name[] = "value";
    static const presto_feature_spec value = {
        .name = value_name, .encoding = PRESTO_ENCODE_TENSOR, .spec = {.rank = -1}};
    Py_buffer payload;
    int is_text;
    if (!PyArg_ParseTuple(args, "y*p", &payload, &is_text))
        return NULL;
    const presto_example_specs specs = {.list = &value, .count = is_text ? 0 : 1};
    presto_arena arena = {0};
    presto_sample sample;
    presto_error err;
    presto_status status = presto_example_parse(presto_span_of(payload.buf, (size_t)payload.len),
                                                &specs, &arena, &sample, &err);
    PyObject *dict = status < 0 ? native_raise(&err) : dict_of(&sample);
    presto_arena_done(&arena);
    PyBuffer_Release(&payload);
    return dict;
}

PyObject *native_make_example(PyObject *module, PyObject *dict) {
    (void)module;
    native_sample sample;
    presto_buffer out = {0};
    presto_error err;
    if (!PyDict_Check(dict)) {
        PyErr_SetString(PyExc_TypeError, "a sample is a dict");
        return NULL;
    }
    if (!native_sample_make(dict, PRESTO_NO_RECORD, &sample))
        return NULL;
    /* A reply has numbers as tensors, whatever their dtype. */
    for (size_t i = 0; i < sample.sample.feature_count; i++) {
        presto_encoding *encoding = &sample.sample.features[i].encoding;
        if (*encoding == PRESTO_ENCODE_INT64 || *encoding == PRESTO_ENCODE_FLOAT)
            *encoding = PRESTO_ENCODE_TENSOR;
    }
    PyObject *made = presto_example_append(&out, &sample.sample, &err) < 0
                         ? native_raise(&err)
                         : bytes_of(presto_buffer_span(&out));
    native_sample_done(&sample);
    presto_buffer_done(&out);
    return made;
}
