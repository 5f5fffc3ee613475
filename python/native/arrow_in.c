/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writer.add_arrow: what another library holds becomes samples, by the capsules of Arrow's PyCapsule
 * interface. Arrays and schemas are read, and stay the capsule's; a stream is taken out of its
 * capsule, as it can be read once. The library works without the GIL; producers take it themselves.
 */
#include "writing_internal.h"

#include <string.h>
#include <time.h>

#include <presto/arrow.h>

#define ASK_NS 50000000

/* What is told of columns: tuples (note, column, text). */
static void take_note(void *user, presto_arrow_note note, const char *column, const char *text) {
    native_visit visit;
    if (!native_enter(&visit))
        return;
    PyObject *item = PyErr_Occurred() ? NULL
                                      : Py_BuildValue("(iNN)", (int)note, native_text(column),
                                                      native_text(text));
    if (item != NULL)
        (void)PyList_Append(user, item); /* an exception ends the call */
    Py_XDECREF(item);
    native_exit(&visit);
}

static bool is_capsule(PyObject *object, const char *name) {
    if (PyCapsule_IsValid(object, name))
        return true;
    PyErr_Format(PyExc_TypeError,
                 "a capsule \"%s\" is wanted, as Arrow's PyCapsule interface has it", name);
    return false;
}

static presto_status fail_stream(struct ArrowArrayStream *stream, int code, presto_error *err) {
    const char *why = stream->get_last_error(stream);
    return presto_fail(err, PRESTO_ERR_TYPE, PRESTO_NO_OFFSET, "the Arrow stream failed: %s",
                       why != NULL && why[0] != '\0' ? why : strerror(code));
}

static uint64_t now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* Of `object`, whose writer it is. */
static presto_status add_batches(PyObject *object, presto_writer *writer,
                                 struct ArrowArrayStream *stream,
                                 const presto_arrow_options *options, presto_error *err) {
    struct ArrowSchema schema = {0};
    uint64_t asked_ns = now_ns();
    presto_arrow *arrow = NULL;
    int code = stream->get_schema(stream, &schema);
    if (code != 0)
        return fail_stream(stream, code, err);
    presto_status status = presto_arrow_open(&schema, options, &arrow, err);
    bool is_end = false;
    while (status == PRESTO_OK && !is_end) {
        struct ArrowArray array = {0};
        code = stream->get_next(stream, &array);
        is_end = code == 0 && array.release == NULL;
        if (code != 0)
            status = fail_stream(stream, code, err);
        else if (!is_end)
            status = presto_writer_add_arrow(writer, arrow, &array, err);
        if (array.release != NULL)
            array.release(&array);
        if (status != PRESTO_OK || is_end || now_ns() - asked_ns < ASK_NS)
            continue;
        asked_ns = now_ns();
        if (native_writer_stops(object))
            status = presto_fail(err, PRESTO_ERR_STOPPED, PRESTO_NO_OFFSET, "stopped");
    }
    presto_arrow_free(arrow);
    if (schema.release != NULL)
        schema.release(&schema);
    return status;
}

static presto_status add_one(presto_writer *writer, const struct ArrowSchema *schema,
                             const struct ArrowArray *array, const presto_arrow_options *options,
                             presto_error *err) {
    presto_arrow *arrow;
    PRESTO_TRY(presto_arrow_open(schema, options, &arrow, err));
    presto_status status = presto_writer_add_arrow(writer, arrow, array, err);
    presto_arrow_free(arrow);
    return status;
}

static const native_field fields[] = {
    {"convert", NATIVE_TEXTS, offsetof(presto_arrow_options, convert),
     offsetof(presto_arrow_options, convert_count)},
    {"tensors", NATIVE_TEXTS, offsetof(presto_arrow_options, tensors),
     offsetof(presto_arrow_options, tensor_count)},
    {"refuses_nulls", NATIVE_FLAG, offsetof(presto_arrow_options, refuses_nulls), 0},
    {NULL, NATIVE_U64, 0, 0},
};
static const native_table table = {fields, NULL};

/* The capsules are right, and the call's arguments keep them. */
static PyObject *add_capsules(PyObject *object, PyObject *schema, PyObject *data,
                              const presto_arrow_options *options) {
    struct ArrowArrayStream stream = {0};
    presto_error err;
    presto_status status = PRESTO_ERR_STOPPED;
    presto_writer *writer = native_writer_enter(object);
    native_away away;
    if (writer == NULL)
        return NULL;
    const struct ArrowSchema *columns =
        schema == Py_None ? NULL : PyCapsule_GetPointer(schema, "arrow_schema");
    const struct ArrowArray *array =
        schema == Py_None ? NULL : PyCapsule_GetPointer(data, "arrow_array");
    if (columns == NULL) {
        struct ArrowArrayStream *given = PyCapsule_GetPointer(data, "arrow_array_stream");
        stream = *given;
        given->release = NULL; /* it is this call's now */
    }
    if (columns == NULL && stream.release == NULL)
        status = presto_fail(&err, PRESTO_ERR_ARGUMENT, PRESTO_NO_OFFSET,
                             "the Arrow stream has been read already");
    else if (native_leave(&away)) {
        status = columns == NULL ? add_batches(object, writer, &stream, options, &err)
                                 : add_one(writer, columns, array, options, &err);
        if (stream.release != NULL)
            stream.release(&stream);
        native_return(&away);
    } else if (stream.release != NULL)
        stream.release(&stream);
    if (!native_writer_leave(object, status, &err) || PyErr_Occurred())
        return NULL;
    Py_RETURN_NONE;
}

PyObject *native_writer_add_arrow(PyObject *object, PyObject *args) {
    PyObject *schema, *data, *dict, *notes;
    native_lists lists = {0};
    presto_arrow_options options;
    if (!PyArg_ParseTuple(args, "OOO!O!", &schema, &data, &PyDict_Type, &dict, &PyList_Type,
                          &notes))
        return NULL;
    bool is_stream = schema == Py_None;
    if ((!is_stream && !is_capsule(schema, "arrow_schema")) ||
        !is_capsule(data, is_stream ? "arrow_array_stream" : "arrow_array"))
        return NULL;
    presto_arrow_options_defaults(&options);
    PyObject *done = NULL;
    if (native_fields_read(dict, &table, &options, &lists)) {
        options.on_note = take_note;
        options.on_note_user = notes;
        done = add_capsules(object, schema, data, &options);
    }
    native_lists_done(&lists);
    return done;
}
