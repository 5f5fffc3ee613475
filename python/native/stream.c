/* SPDX-License-Identifier: Apache-2.0 */
/* Stream: an opened input. It does not change once it is open. */
#include "writing_internal.h"

#include <presto/step.h>

/* ---- opening ---- */

typedef struct arguments {
    presto_stream_options stream;
    presto_pipeline_options pipeline;
    bool tolerates, caches;
    native_mix mix;
    const char **features; /* of a mix: those wanted, in which its inputs must agree */
    size_t feature_count;
} arguments;

#define FIELD(name, kind, member)                                                                  \
    { #name, kind, offsetof(arguments, member), 0 }
#define LIST(name, member, count)                                                                  \
    { #name, NATIVE_TEXTS, offsetof(arguments, member), offsetof(arguments, count) }

static const native_field fields[] = {
    FIELD(pipeline, NATIVE_TEXT, stream.pipeline),
    FIELD(from_, NATIVE_TEXT, stream.from),
    FIELD(to, NATIVE_TEXT, stream.to),
    FIELD(verify, NATIVE_UNSIGNED, stream.verify),
    FIELD(map, NATIVE_FLAG, stream.map),
    FIELD(count_later, NATIVE_FLAG, stream.count_later),
    FIELD(raw_tensors, NATIVE_FLAG, stream.raw_tensors),
    FIELD(split, NATIVE_TEXT, stream.partition.ratio),
    FIELD(part, NATIVE_TEXT, stream.partition.part),
    FIELD(split_seed, NATIVE_U64, stream.partition.seed),
    LIST(set, pipeline.set, pipeline.set_count),
    LIST(plugins, pipeline.plugins, pipeline.plugin_count),
    FIELD(code, NATIVE_UNSIGNED, pipeline.code),
    FIELD(tolerate, NATIVE_FLAG, tolerates), /* samples may be left out */
    FIELD(cached, NATIVE_FLAG, caches),      /* for a loader with a cache */
    FIELD(mix_epoch, NATIVE_UNSIGNED, mix.epoch),
    LIST(features, features, feature_count),
    {NULL, NATIVE_U64, 0, 0},
};
static const char *const read_elsewhere[] = {"weights", NULL};
static const native_table table = {fields, read_elsewhere};

static presto_status open_stream(native_stream *self, const native_paths *paths,
                                 const arguments *given, presto_error *err) {
    presto_loader_options loader;
    presto_stream_options options = given->stream;
    presto_loader_options_defaults(&loader);
    if (given->tolerates)
        loader.errors.policy = PRESTO_ON_ERROR_SKIP;
    if (given->caches)
        loader.cache.bytes = 1;
    loader.features = given->features;
    loader.feature_count = given->feature_count;
    options.loader = &loader;
    options.pipeline_options = &given->pipeline;
    native_watch watch = {.progress = NULL};
    native_away away;
    loader.should_stop = native_watch_stops;
    loader.should_stop_user = &watch;
    if (!native_leave(&away))
        return PRESTO_ERR_STOPPED;
    presto_status status =
        given->mix.inputs != NULL
            ? native_mix_open(&given->mix, &options, &self->opened, err)
            : presto_stream_open(paths->list, paths->count, &options, &self->opened, err);
    native_return(&away);
    return status;
}

static PyObject *stream_new(PyTypeObject *type, PyObject *args, PyObject *keywords) {
    static char *names[] = {"paths", "options", NULL};
    PyObject *tuple, *dict;
    if (!PyArg_ParseTupleAndKeywords(args, keywords, "O!O!", names, &PyTuple_Type, &tuple,
                                     &PyDict_Type, &dict))
        return NULL;
    arguments given = {.tolerates = false};
    native_lists lists = {0};
    native_paths paths;
    native_stream *self = NULL;
    presto_stream_options_defaults(&given.stream);
    presto_pipeline_options_defaults(&given.pipeline);
    if (native_paths_read(tuple, &paths, &lists) &&
        native_mix_read(dict, &paths, &given.mix, &lists) &&
        native_fields_read(dict, &table, &given, &lists))
        self = (native_stream *)PyType_GenericAlloc(type, 0);
    presto_error err;
    if (self != NULL) {
        self->generation = native_generation();
        presto_status status = open_stream(self, &paths, &given, &err);
        if (status < 0 && !PyErr_Occurred())
            native_raise(&err);
        if (PyErr_Occurred())
            Py_CLEAR(self);
    }
    native_lists_done(&lists);
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

/* None: a loader has to walk over the files first. */
static PyObject *get_count(PyObject *self, void *unused) {
    (void)unused;
    uint64_t count = presto_source_count(source_of(self));
    if (count == PRESTO_COUNT_UNKNOWN)
        Py_RETURN_NONE;
    return PyLong_FromUnsignedLongLong(count);
}

static PyObject *get_parts(PyObject *self, void *unused) {
    (void)unused;
    return native_mix_parts(source_of(self));
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
    const presto_stream *opened = &((native_stream *)self)->opened;
    for (size_t i = 0; out != NULL && i < count; i++) {
        presto_tensor_spec spec = features[i].spec;
        if (opened->cache_plan != NULL)
            presto_plan_feature(opened->cache_plan, features[i].name, &spec);
        if (opened->plan != NULL)
            presto_plan_feature(opened->plan, features[i].name, &spec);
        PyObject *item = Py_BuildValue("(NN)", native_text(features[i].name), native_spec(&spec));
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

/* Those that may not be what was meant. */
static PyObject *get_cautions(PyObject *self, void *unused) {
    (void)unused;
    size_t count;
    const char *const *notes = presto_source_notes(source_of(self), &count);
    PyObject *out = PyList_New(0);
    for (size_t i = 0; out != NULL && i < count; i++) {
        if (presto_source_note_kind(source_of(self), i) != PRESTO_NOTE_CAUTION)
            continue;
        PyObject *text = native_text(notes[i]);
        if (text == NULL || PyList_Append(out, text) < 0)
            Py_CLEAR(out);
        Py_XDECREF(text);
    }
    return out;
}

static PyObject *get_pipeline(PyObject *self, void *unused) {
    (void)unused;
    const presto_pipeline *pipeline = ((native_stream *)self)->opened.pipeline;
    return text_or_none(pipeline == NULL ? NULL : presto_pipeline_name(pipeline));
}

/* What the steps make of the main feature: (dtype, shape), or None if there are no steps. */
static PyObject *get_output(PyObject *self, void *unused) {
    (void)unused;
    const presto_tensor_spec *output = presto_stream_output(&((native_stream *)self)->opened);
    if (output == NULL)
        Py_RETURN_NONE;
    return native_spec(output);
}

static bool plan_draws(const presto_plan *plan) {
    size_t steps = plan == NULL ? 0 : presto_plan_step_count(plan);
    for (size_t i = 0; i < steps; i++)
        if ((presto_plan_step_flags(plan, i) & PRESTO_STEP_RANDOM) != 0)
            return true;
    return false;
}

static PyObject *get_draws(PyObject *self, void *unused) {
    (void)unused;
    const presto_stream *opened = &((native_stream *)self)->opened;
    return PyBool_FromLong(plan_draws(opened->cache_plan) || plan_draws(opened->plan));
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

/* (name, layout, whether rows have any number of strings, dtype, dims of a row). */
static PyObject *schema_row(const presto_batch_feature *feature) {
    const presto_tensor_spec *spec = &feature->tensor.spec;
    PyObject *dims = PyTuple_New(spec->rank - 1);
    for (int i = 1; dims != NULL && i < spec->rank; i++)
        if (PyTuple_SetItem(dims, i - 1, PyLong_FromLongLong(spec->dims[i])) < 0)
            Py_CLEAR(dims);
    if (dims == NULL)
        return NULL;
    return Py_BuildValue("(yiOsN)", feature->name, (int)feature->layout,
                         feature->row_offsets != NULL ? Py_True : Py_False,
                         presto_dtype_name(spec->dtype), dims);
}

static PyObject *get_schema(PyObject *self, PyObject *dict) {
    native_options options;
    presto_batch *schema = NULL;
    presto_error err;
    if (!PyDict_Check(dict)) {
        PyErr_SetString(PyExc_TypeError, "options are a dict");
        return NULL;
    }
    if (!native_options_read(dict, &options))
        return NULL;
    presto_status status =
        presto_loader_schema(&((native_stream *)self)->opened, &options.loader, &schema, &err);
    native_options_done(&options);
    if (status < 0)
        return native_raise(&err);
    PyObject *rows = PyTuple_New((Py_ssize_t)schema->feature_count);
    for (size_t i = 0; rows != NULL && i < schema->feature_count; i++) {
        PyObject *row = schema_row(&schema->features[i]);
        if (row == NULL || PyTuple_SetItem(rows, (Py_ssize_t)i, row) < 0)
            Py_CLEAR(rows);
    }
    presto_loader_schema_free(schema);
    return rows;
}

/* ---- does it fit ---- */

static char *without_const(const char *text) {
    return (char *)(uintptr_t)text;
}

static PyObject *check_strategy(PyObject *self, PyObject *args) {
    const char *pipeline, *stored, *codec;
    if (!PyArg_ParseTuple(args, "ysz", &pipeline, &stored, &codec))
        return NULL;
    const presto_strategy_file strategy = {.struct_bytes = sizeof strategy,
                                           .pipeline = without_const(pipeline),
                                           .stored = without_const(stored),
                                           .codec = without_const(codec)};
    presto_error err;
    if (presto_strategy_check(&strategy, &((native_stream *)self)->opened, &err) < 0)
        return native_raise(&err);
    Py_RETURN_NONE;
}

static PyMethodDef methods[] = {
    {"schema", get_schema, METH_O,
     "schema(options): what is declared of batches: (name, layout, any number of strings a row, "
     "dtype, dims of a row) of each feature."},
    {"check_strategy", check_strategy, METH_VARARGS,
     "check_strategy(pipeline, stored, codec): an ArgumentError if it is about other samples."},
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef properties[] = {
    {"count", get_count, NULL, "Number of samples.", NULL},
    {"parts", get_parts, NULL,
     "Inputs of a mix: (path, weight, first, samples, samples in an epoch).", NULL},
    {"bytes", get_bytes, NULL, "Bytes on disk.", NULL},
    {"features", get_features, NULL, "Declared features: (name, (dtype, shape)).", NULL},
    {"main", get_main, NULL, "The feature that steps work on, or None.", NULL},
    {"labels", get_labels, NULL, "Names of the labels, by number.", NULL},
    {"notes", get_notes, NULL, "What the user should know of the input.", NULL},
    {"cautions", get_cautions, NULL, "Those of the notes that may not be what was meant.", NULL},
    {"pipeline", get_pipeline, NULL, "Name of the pipeline, or None.", NULL},
    {"output", get_output, NULL, "(dtype, shape) that the steps make, or None.", NULL},
    {"draws", get_draws, NULL, "Do its steps draw random numbers?", NULL},
    {"explain", get_explain, NULL, "The steps that run, a line each.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_new, NATIVE_SLOT(stream_new)}, {Py_tp_dealloc, NATIVE_SLOT(stream_dealloc)},
    {Py_tp_getset, properties},           {Py_tp_methods, methods},
    {Py_tp_doc, "An opened input."},      {0, NULL},
};

PyType_Spec native_stream_spec = {
    .name = "presto._native.Stream",
    .basicsize = sizeof(native_stream),
    .flags = Py_TPFLAGS_DEFAULT,
    .slots = slots,
};
