/* SPDX-License-Identifier: Apache-2.0 */
/* The module: its types, and how failures become exceptions. */
#include "native_internal.h"
#include "writing_internal.h"

#include <pthread.h>
#include <string.h>

PyTypeObject *native_stream_type, *native_loader_type, *native_batch_type, *native_buffer_type,
    *native_ring_type;

/* ---- fork ---- */

static unsigned generation;

static void count_fork(void) {
    generation++;
    native_gate_forked();
}

unsigned native_generation(void) {
    return generation;
}

/* ---- errors ---- */

PyObject *native_text(const char *text) {
    return PyUnicode_DecodeUTF8(text, (Py_ssize_t)strlen(text), "surrogateescape");
}

static PyObject *number_or_none(uint64_t number, uint64_t none) {
    if (number == none)
        Py_RETURN_NONE;
    return PyLong_FromUnsignedLongLong(number);
}

static PyObject *file_or_none(const char *file) {
    if (file[0] == '\0')
        Py_RETURN_NONE;
    return PyUnicode_DecodeFSDefault(file);
}

PyObject *native_raise(const presto_error *error) {
    if (error->status == PRESTO_ERR_STOPPED && native_is_ending()) {
        PyErr_SetNone(PyExc_SystemExit); /* the thread ends, without a word */
        return NULL;
    }
    char text[PRESTO_ERROR_FILE_BYTES + PRESTO_ERROR_MESSAGE_BYTES + 128];
    presto_error_format(error, text, sizeof text);
    PyObject *exception = NULL;
    PyObject *module = PyImport_ImportModule("presto._errors");
    if (module != NULL)
        exception = PyObject_CallMethod(
            module, "make", "sNNNNNi", presto_status_name(error->status), native_text(text),
            native_text(error->message), file_or_none(error->file),
            number_or_none(error->record, PRESTO_NO_RECORD),
            number_or_none(error->offset, PRESTO_NO_OFFSET), error->sys_errno);
    if (exception != NULL)
        PyErr_SetObject((PyObject *)Py_TYPE(exception), exception);
    Py_XDECREF(exception);
    Py_XDECREF(module);
    return NULL;
}

PyObject *native_fail(presto_status status, const char *message) {
    presto_error error;
    presto_error_set(&error, status, PRESTO_NO_OFFSET, "%s", message);
    return native_raise(&error);
}

/* ---- functions ---- */

static PyObject *processor_count(PyObject *module, PyObject *unused) {
    (void)module;
    (void)unused;
    return PyLong_FromUnsignedLong(presto_processor_count());
}

static PyObject *auto_threads(PyObject *module, PyObject *unused) {
    (void)module;
    (void)unused;
    return PyLong_FromUnsignedLong(presto_auto_threads());
}

static PyObject *builtin_pipelines(PyObject *module, PyObject *unused) {
    (void)module, (void)unused;
    PyObject *names = PyList_New(0);
    const char *name;
    for (size_t i = 0; names != NULL && (name = presto_pipeline_builtin_at(i)) != NULL; i++) {
        PyObject *text = native_text(name);
        if (text == NULL || PyList_Append(names, text) < 0)
            Py_CLEAR(names);
        Py_XDECREF(text);
    }
    return names;
}

static PyMethodDef functions[] = {
    {"processor_count", processor_count, METH_NOARGS, "CPUs that this process may use."},
    {"auto_threads", auto_threads, METH_NOARGS, "The most threads of threads=\"auto\"."},
    {"builtin_pipelines", builtin_pipelines, METH_NOARGS, "Names of the built-in pipelines."},
    {"arrow_stream", native_arrow_stream, METH_VARARGS,
     "Batches of a function as an Arrow C stream."},
    {"end", native_end, METH_O, "The interpreter ends: wait for those inside."},
    {"convert", native_convert, METH_VARARGS, "Write a dataset by a pipeline."},
    {"join", native_join, METH_VARARGS, "Make a dataset of its parts."},
    {"sweep", native_sweep, METH_VARARGS, "Measure strategies."},
    {"load_strategy", native_load_strategy, METH_O, "What strategy.yaml says."},
    {"inspect", native_inspect, METH_VARARGS, "What is in files."},
    {"verify", native_verify, METH_VARARGS, "Damage of files."},
    {"pipeline_json", native_pipeline_json, METH_O, "A pipeline's definition."},
    {"parse_example", native_parse_example, METH_VARARGS, "A tf.train.Example as a dict."},
    {"make_example", native_make_example, METH_O, "A dict as a tf.train.Example."},
    {NULL, NULL, 0, NULL},
};

static int add_type(PyObject *module, PyType_Spec *spec, PyTypeObject **type_out) {
    *type_out = (PyTypeObject *)PyType_FromModuleAndSpec(module, spec, NULL);
    return *type_out == NULL ? -1 : PyModule_AddType(module, *type_out);
}

/* The types are static, so that there may be one module only. */
static int run_module(PyObject *module) {
    if (PyInterpreterState_GetID(PyInterpreterState_Get()) != 0) {
        PyErr_SetString(PyExc_ImportError, "presto does not run in subinterpreters");
        return -1;
    }
    if (native_stream_type != NULL) {
        PyErr_SetString(PyExc_ImportError, "presto._native is loaded already");
        return -1;
    }
    if (pthread_atfork(NULL, NULL, count_fork) != 0) {
        PyErr_NoMemory();
        return -1;
    }
    if (PyModule_AddStringConstant(module, "version", presto_version()) < 0 ||
        add_type(module, &native_stream_spec, &native_stream_type) < 0 ||
        add_type(module, &native_loader_spec, &native_loader_type) < 0 ||
        add_type(module, &native_batch_spec, &native_batch_type) < 0 ||
        add_type(module, &native_ring_spec, &native_ring_type) < 0 ||
        add_type(module, &native_writer_spec, &native_writer_type) < 0 ||
        add_type(module, &native_filesystem_spec, &native_filesystem_type) < 0)
        return -1;
    return add_type(module, &native_buffer_spec, &native_buffer_type);
}

static PyModuleDef_Slot slots[] = {
    {Py_mod_exec, NATIVE_SLOT(run_module)},
    {0, NULL},
};

static PyModuleDef definition = {
    PyModuleDef_HEAD_INIT,
    .m_name = "presto._native",
    .m_doc = "The C library; use the package presto.",
    .m_methods = functions,
    .m_slots = slots,
};

PyMODINIT_FUNC PyInit__native(void); /* CPython's headers declare no module's function */
PyMODINIT_FUNC PyInit__native(void) {
    return PyModuleDef_Init(&definition);
}
