/* SPDX-License-Identifier: Apache-2.0 */
/* Several inputs as one stream: how it is opened, and what is known of its inputs. */
#include "writing_internal.h"

bool native_mix_read(PyObject *options, const native_paths *paths, native_mix *mix_out,
                     native_lists *lists) {
    PyObject *weights = PyDict_GetItemString(options, "weights");
    mix_out->inputs = NULL;
    mix_out->count = 0;
    if (weights == NULL || weights == Py_None)
        return true;
    if (!PyTuple_Check(weights) || (size_t)PyTuple_Size(weights) != paths->count) {
        PyErr_SetString(PyExc_TypeError, "weights: a tuple with one for each path");
        return false;
    }
    mix_out->inputs = native_lists_keep(lists, paths->count, sizeof *mix_out->inputs);
    if (mix_out->inputs == NULL)
        return false;
    mix_out->count = paths->count;
    for (size_t i = 0; i < paths->count; i++) {
        mix_out->inputs[i].path = paths->list[i];
        mix_out->inputs[i].weight = PyFloat_AsDouble(PyTuple_GetItem(weights, (Py_ssize_t)i));
    }
    return !PyErr_Occurred();
}

presto_status native_mix_open(const native_mix *mix, const presto_stream_options *options,
                              presto_stream *stream_out, presto_error *err) {
    presto_mix_options wanted;
    presto_mix_options_defaults(&wanted);
    wanted.inputs = mix->inputs;
    wanted.input_count = mix->count;
    wanted.epoch = (presto_mix_epoch)mix->epoch;
    wanted.stream = options;
    return presto_stream_open_mix(&wanted, stream_out, err);
}

PyObject *native_mix_parts(const presto_source *source) {
    size_t count;
    const presto_source_part *parts = presto_source_parts(source, &count);
    PyObject *out = PyList_New((Py_ssize_t)count);
    for (size_t i = 0; out != NULL && i < count; i++) {
        PyObject *part =
            Py_BuildValue("(NdKKK)", native_text(parts[i].name), parts[i].weight,
                          parts[i].first_sample, parts[i].samples, parts[i].epoch_samples);
        if (part == NULL || PyList_SetItem(out, (Py_ssize_t)i, part) < 0)
            Py_CLEAR(out);
    }
    return out;
}
