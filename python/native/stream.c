/* SPDX-License-Identifier: Apache-2.0 */
/* Stream: an opened input. It does not change once it is open. */
#include "native_internal.h"

#include <string.h>

/* ---- opening ---- */

typedef struct texts {
    const char **list;
    size_t count;
} texts;

/* The bytes objects of a tuple; borrowed from it. */
static bool read_texts(PyObject *tuple, texts *out) {
    Py_ssize_t count = PyTuple_Size(tuple);
    if (count < 0)
        return false;
    out->list = PyMem_Malloc(((size_t)count + 1) * sizeof *out->list);
    if (out->list == NULL) {
        PyErr_NoMemory();
        return false;
    }
    for (out->count = 0; out->count < (size_t)count; out->count++) {
        const char *text = PyBytes_AsString(PyTuple_GetItem(tuple, (Py_ssize_t)out->count));
        if (text == NULL)
            return false;
        out->list[out->count] = text;
    }
    return true;
}

typedef struct arguments {
    PyObject *paths, *set;
    const char *pipeline, *from, *to, *verify;
    int map, tolerate, cached;
    int runs; /* may the pipeline run programs, if it is named here? */
} arguments;

static bool find_checks(const char *name, presto_checks *checks_out) {
    static const char *const names[] = {[PRESTO_CHECK_NONE] = "none",
                                        [PRESTO_CHECK_HEADER] = "header",
                                        [PRESTO_CHECK_FULL] = "full"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (strcmp(name, names[i]) != 0)
            continue;
        *checks_out = (presto_checks)i;
        return true;
    }
    PyErr_Format(PyExc_ValueError, "verify is full, header or none, not '%s'", name);
    return false;
}

static presto_status open_stream(native_stream *self, const arguments *given, const texts *paths,
                                 const texts *set, presto_error *err) {
    presto_pipeline_options pipeline;
    presto_loader_options loader;
    presto_stream_options options;
    presto_pipeline_options_defaults(&pipeline);
    presto_loader_options_defaults(&loader);
    presto_stream_options_defaults(&options);
    pipeline.set = set->list;
    pipeline.set_count = set->count;
    if (!given->runs)
        pipeline.code = PRESTO_CODE_NEVER;
    if (given->tolerate)
        loader.errors.policy = PRESTO_ON_ERROR_SKIP;
    if (given->cached)
        loader.cache.bytes = 1;
    options.loader = &loader;
    options.pipeline = given->pipeline;
    options.pipeline_options = &pipeline;
    options.from = given->from;
    options.to = given->to;
    options.map = given->map != 0;
    if (!find_checks(given->verify, &options.verify))
        return PRESTO_ERR_ARGUMENT;
    presto_status status;
    Py_BEGIN_ALLOW_THREADS status =
        presto_stream_open(paths->list, paths->count, &options, &self->opened, err);
    Py_END_ALLOW_THREADS if (status < 0) native_raise(err);
    return status;
}

static PyObject *stream_new(PyTypeObject *type, PyObject *args, PyObject *keywords) {
    static char *names[] = {"paths", "set",      "pipeline", "start", "to", "verify",
                            "map",   "tolerate", "cached",   "runs",  NULL};
    arguments given = {.verify = "full", .runs = 1};
    if (!PyArg_ParseTupleAndKeywords(args, keywords, "O!O!zzzsppp|p", names, &PyTuple_Type,
                                     &given.paths, &PyTuple_Type, &given.set, &given.pipeline,
                                     &given.from, &given.to, &given.verify, &given.map,
                                     &given.tolerate, &given.cached, &given.runs))
        return NULL;
    texts paths = {0}, set = {0};
    native_stream *self = NULL;
    if (read_texts(given.paths, &paths) && read_texts(given.set, &set))
        self = (native_stream *)PyType_GenericAlloc(type, 0);
    presto_error err;
    if (self != NULL) {
        self->generation = native_generation();
        if (open_stream(self, &given, &paths, &set, &err) < 0)
            Py_CLEAR(self);
    }
    PyMem_Free((void *)paths.list);
    PyMem_Free((void *)set.list);
    return (PyObject *)self;
}

static void stream_dealloc(PyObject *object) {
    native_stream *self = (native_stream *)object;
    PyTypeObject *type = Py_TYPE(object);
    if (self->generation == native_generation())
        presto_stream_close(&self->opened);
    PyObject_Free(self);
    Py_DECREF(type);
}

/* ---- what is known of it ---- */

PyObject *native_spec(const presto_tensor_spec *spec) {
    const char *dtype = presto_dtype_name(spec->dtype);
    if (spec->rank < 0)
        return Py_BuildValue("(sO)", dtype, Py_None);
    PyObject *shape = PyTuple_New(spec->rank);
    for (int i = 0; shape != NULL && i < spec->rank; i++) {
        PyObject *dim = spec->dims[i] < 0 ? Py_NewRef(Py_None) : PyLong_FromLongLong(spec->dims[i]);
        if (dim == NULL || PyTuple_SetItem(shape, i, dim) < 0)
            Py_CLEAR(shape);
    }
    return shape == NULL ? NULL : Py_BuildValue("(sN)", dtype, shape);
}

static PyObject *text_or_none(const char *text) {
    if (text == NULL)
        Py_RETURN_NONE;
    return native_text(text);
}

static PyObject *list_texts(const char *const *list, size_t count) {
    PyObject *out = PyList_New((Py_ssize_t)count);
    for (size_t i = 0; out != NULL && i < count; i++) {
        PyObject *text = native_text(list[i]);
        if (text == NULL || PyList_SetItem(out, (Py_ssize_t)i, text) < 0)
            Py_CLEAR(out);
    }
    return out;
}

static const presto_source *source_of(PyObject *self) {
    return ((native_stream *)self)->opened.source;
}

static PyObject *get_count(PyObject *self, void *unused) {
    (void)unused;
    return PyLong_FromUnsignedLongLong(presto_source_count(source_of(self)));
}

static PyObject *get_bytes(PyObject *self, void *unused) {
    (void)unused;
    return PyLong_FromUnsignedLongLong(presto_source_bytes(source_of(self)));
}

static PyObject *get_features(PyObject *self, void *unused) {
    (void)unused;
    size_t count;
    const presto_feature_spec *features = presto_source_features(source_of(self), &count);
    PyObject *out = PyList_New((Py_ssize_t)count);
    for (size_t i = 0; out != NULL && i < count; i++) {
        PyObject *item =
            Py_BuildValue("(NN)", native_text(features[i].name), native_spec(&features[i].spec));
        if (item == NULL || PyList_SetItem(out, (Py_ssize_t)i, item) < 0)
            Py_CLEAR(out);
    }
    return out;
}

static PyObject *get_main(PyObject *self, void *unused) {
    (void)unused;
    return text_or_none(presto_source_main_feature(source_of(self)));
}

static PyObject *get_labels(PyObject *self, void *unused) {
    (void)unused;
    size_t count;
    const char *const *names = presto_source_label_names(source_of(self), &count);
    return list_texts(names, count);
}

static PyObject *get_notes(PyObject *self, void *unused) {
    (void)unused;
    size_t count;
    const char *const *notes = presto_source_notes(source_of(self), &count);
    return list_texts(notes, count);
}

static PyObject *get_pipeline(PyObject *self, void *unused) {
    (void)unused;
    const presto_pipeline *pipeline = ((native_stream *)self)->opened.pipeline;
    return text_or_none(pipeline == NULL ? NULL : presto_pipeline_name(pipeline));
}

/* What the steps make of the main feature: (dtype, shape), or None if there are no steps. */
static PyObject *get_output(PyObject *self, void *unused) {
    (void)unused;
    const presto_stream *opened = &((native_stream *)self)->opened;
    const presto_plan *last = opened->plan;
    if (last == NULL || presto_plan_step_count(last) == 0)
        last = opened->cache_plan;
    if (last == NULL || presto_plan_step_count(last) == 0)
        Py_RETURN_NONE;
    return native_spec(presto_plan_output(last));
}

static PyObject *get_explain(PyObject *self, void *unused) {
    (void)unused;
    const presto_stream *opened = &((native_stream *)self)->opened;
    PyObject *text =
        native_text(opened->cache_plan == NULL ? "" : presto_plan_explain(opened->cache_plan));
    if (text == NULL || opened->plan == NULL)
        return text;
    PyObject *rest = native_text(presto_plan_explain(opened->plan));
    PyObject *both = rest == NULL ? NULL : PyUnicode_Concat(text, rest);
    Py_DECREF(text);
    Py_XDECREF(rest);
    return both;
}

static PyGetSetDef properties[] = {
    {"count", get_count, NULL, "Number of samples.", NULL},
    {"bytes", get_bytes, NULL, "Bytes on disk.", NULL},
    {"features", get_features, NULL, "Declared features: (name, (dtype, shape)).", NULL},
    {"main", get_main, NULL, "The feature that steps work on, or None.", NULL},
    {"labels", get_labels, NULL, "Names of the labels, by number.", NULL},
    {"notes", get_notes, NULL, "What the user should know of the input.", NULL},
    {"pipeline", get_pipeline, NULL, "Name of the pipeline, or None.", NULL},
    {"output", get_output, NULL, "(dtype, shape) that the steps make, or None.", NULL},
    {"explain", get_explain, NULL, "The steps that run, a line each.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_new, NATIVE_SLOT(stream_new)},
    {Py_tp_dealloc, NATIVE_SLOT(stream_dealloc)},
    {Py_tp_getset, properties},
    {Py_tp_doc, "An opened input."},
    {0, NULL},
};

PyType_Spec native_stream_spec = {
    .name = "presto._native.Stream",
    .basicsize = sizeof(native_stream),
    .flags = Py_TPFLAGS_DEFAULT,
    .slots = slots,
};
