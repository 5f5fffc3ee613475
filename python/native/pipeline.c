/* SPDX-License-Identifier: Apache-2.0 */
/* Pipelines by name or path, with changes. */
#include "writing_internal.h"

typedef struct named {
    const char *pipeline;
    presto_pipeline_options reading;
} named;

static const native_field fields[] = {
    {"pipeline", NATIVE_TEXT, offsetof(named, pipeline), 0},
    {"set", NATIVE_TEXTS, offsetof(named, reading.set), offsetof(named, reading.set_count)},
    {"plugins", NATIVE_TEXTS, offsetof(named, reading.plugins),
     offsetof(named, reading.plugin_count)},
    {"code", NATIVE_UNSIGNED, offsetof(named, reading.code), 0},
    {NULL, NATIVE_U64, 0, 0},
};
static const native_table table = {fields, NULL};

presto_pipeline *native_pipeline_load(PyObject *options) {
    named wanted = {0};
    native_lists lists = {0};
    presto_pipeline *pipeline = NULL;
    presto_error err;
    PyObject *known = PyDict_New();
    bool done = known != NULL;
    for (const native_field *field = fields; done && field->name != NULL; field++) {
        PyObject *value = PyDict_GetItemString(options, field->name);
        done = value == NULL || PyDict_SetItemString(known, field->name, value) == 0;
    }
    presto_pipeline_options_defaults(&wanted.reading);
    if (done && native_fields_read(known, &table, &wanted, &lists) && wanted.pipeline != NULL &&
        presto_pipeline_load(wanted.pipeline, &wanted.reading, &pipeline, &err) < 0)
        native_raise(&err);
    native_lists_done(&lists);
    Py_XDECREF(known);
    return pipeline;
}

PyObject *native_pipeline_json(PyObject *module, PyObject *options) {
    (void)module;
    if (!PyDict_Check(options)) {
        PyErr_SetString(PyExc_TypeError, "options are a dict");
        return NULL;
    }
    presto_pipeline *pipeline = native_pipeline_load(options);
    if (pipeline == NULL)
        return PyErr_Occurred() ? NULL : Py_NewRef(Py_None);
    PyObject *text = native_text(presto_pipeline_json(pipeline));
    presto_pipeline_free(pipeline);
    return text;
}
