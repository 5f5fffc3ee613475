/* SPDX-License-Identifier: Apache-2.0 */
/* convert() and join(): what presto-write does, in this process. */
#include "writing_internal.h"

#define FIELD(name, kind)                                                                          \
    { #name, kind, offsetof(presto_convert_options, name), 0 }

static const native_field fields[] = {
    FIELD(dir, NATIVE_TEXT),
    FIELD(up_to, NATIVE_TEXT),
    FIELD(codec, NATIVE_TEXT),
    {"file_compression", NATIVE_UNSIGNED, offsetof(presto_convert_options, file_compression), 0},
    FIELD(shards, NATIVE_SIZE),
    FIELD(shard_bytes, NATIVE_U64),
    FIELD(threads, NATIVE_UNSIGNED),
    FIELD(auto_threads, NATIVE_FLAG),
    FIELD(limit_samples, NATIVE_U64),
    FIELD(seed, NATIVE_U64),
    FIELD(prefetch_bytes, NATIVE_SIZE),
    FIELD(resume, NATIVE_FLAG),
    FIELD(sync, NATIVE_FLAG),
    {"split", NATIVE_TEXT, offsetof(presto_convert_options, partition.ratio), 0},
    {"part", NATIVE_TEXT, offsetof(presto_convert_options, partition.part), 0},
    {"split_seed", NATIVE_U64, offsetof(presto_convert_options, partition.seed), 0},
    {"share_count", NATIVE_SIZE, offsetof(presto_convert_options, share.count), 0},
    {"share_number", NATIVE_SIZE, offsetof(presto_convert_options, share.number), 0},
    {"attempt", NATIVE_TEXT, offsetof(presto_convert_options, share.attempt), 0},
    {"skip", NATIVE_UNSIGNED, offsetof(presto_convert_options, errors.policy), 0},
    {"skip_limit", NATIVE_U64, offsetof(presto_convert_options, errors.skip_limit), 0},
    {"skip_fraction", NATIVE_DOUBLE, offsetof(presto_convert_options, errors.skip_fraction), 0},
    {NULL, NATIVE_U64, 0, 0},
};
static const char *const others[] = {"pipeline", "set",     "plugins",  "code",  "keeps_codec",
                                     "progress", "on_skip", "warnings", "notes", NULL};
static const native_table table = {fields, others};

static bool on_progress(void *user, const presto_progress *progress) {
    native_watch *watch = user;
    native_visit visit;
    if (!native_enter(&visit))
        return false;
    bool goes_on = native_watch_signals(watch);
    if (goes_on && watch->progress != NULL) {
        PyObject *done = PyObject_CallFunction(watch->progress, "KKKKKd", progress->samples_done,
                                               progress->samples_total, progress->bytes_read,
                                               progress->bytes_written, progress->skipped,
                                               (double)progress->elapsed_ns / 1e9);
        goes_on = done != NULL;
        Py_XDECREF(done);
    }
    native_exit(&visit);
    return goes_on;
}

static void on_note(void *user, const char *note) {
    native_visit visit;
    if (!native_enter(&visit))
        return;
    PyObject *text = native_text(note);
    if (text == NULL || PyList_Append(user, text) < 0)
        PyErr_Clear();
    Py_XDECREF(text);
    native_exit(&visit);
}

PyObject *native_convert_figures(const presto_convert_result *result) {
    return Py_BuildValue("{sKsKsKsKsKsKsIsKsKsKsKsKsKsKsKsdsd}", "samples", result->samples,
                         "skipped", result->skipped, "dropped", result->dropped, "source_bytes",
                         result->source_bytes, "stored_bytes", result->stored_bytes, "raw_bytes",
                         result->raw_bytes, "threads", result->threads, "shards",
                         (uint64_t)result->shards, "packed_documents", result->packed_documents,
                         "packed_tokens", result->packed_tokens, "dropped_tokens",
                         result->dropped_tokens, "padded_tokens", result->padded_tokens,
                         "sent_requests", result->sent_requests, "sent_retries",
                         result->sent_retries, "sent_bytes", result->sent_bytes, "wall_s",
                         (double)result->wall_ns / 1e9, "cpu_s", (double)result->cpu_ns / 1e9);
}

/* A callback of the dict; NULL: none. */
static PyObject *callback(PyObject *dict, const char *name) {
    PyObject *found = PyDict_GetItemString(dict, name);
    return found == Py_None ? NULL : found;
}

static PyObject *run(const native_paths *paths, const presto_convert_options *chosen,
                     PyObject *dict) {
    native_watch watch = {.progress = callback(dict, "progress"),
                          .on_skip = callback(dict, "on_skip"),
                          .warnings = callback(dict, "warnings")};
    presto_convert_result result;
    presto_error err;
    presto_status status;
    native_away away;
    presto_convert_options options = *chosen; /* with what lives as long as the call */
    options.on_progress = on_progress;
    options.on_progress_user = &watch;
    options.errors.on_skip = native_watch_skip;
    options.errors.on_skip_user = &watch;
    options.errors.on_warning = watch.warnings == NULL ? NULL : native_watch_warning;
    options.errors.on_warning_user = &watch;
    options.on_note_user = callback(dict, "notes");
    options.on_note = options.on_note_user == NULL ? NULL : on_note;
    options.should_stop = native_watch_stops;
    options.should_stop_user = &watch;
    if (!native_leave(&away))
        return NULL;
    status = presto_convert(paths->list, paths->count, &options, &result, &err);
    native_return(&away);
    if (PyErr_Occurred())
        return NULL;
    return status < 0 ? native_raise(&err) : native_convert_figures(&result);
}

PyObject *native_convert(PyObject *module, PyObject *args) {
    (void)module;
    PyObject *tuple, *dict, *figures = NULL;
    presto_convert_options options;
    native_lists lists = {0};
    native_paths paths;
    if (!PyArg_ParseTuple(args, "O!O!", &PyTuple_Type, &tuple, &PyDict_Type, &dict))
        return NULL;
    presto_convert_options_defaults(&options);
    bool done = native_paths_read(tuple, &paths, &lists) &&
                native_fields_read(dict, &table, &options, &lists);
    presto_pipeline *pipeline = done ? native_pipeline_load(dict) : NULL;
    options.pipeline = pipeline;
    if (PyDict_GetItemString(dict, "keeps_codec") == Py_True)
        options.codec = NULL; /* that of the source */
    if (done && !PyErr_Occurred())
        figures = run(&paths, &options, dict);
    presto_pipeline_free(pipeline);
    native_lists_done(&lists);
    return figures;
}

/* join(dir, attempts, sync, notes): the parts in a folder become a dataset. `attempts`: None, or a tuple
 * of names. */
PyObject *native_join(PyObject *module, PyObject *args) {
    (void)module;
    const char *dir;
    PyObject *tuple, *notes;
    int sync;
    native_lists lists = {0};
    native_paths attempts = {0};
    native_watch watch = {.progress = NULL};
    native_away away;
    presto_join_options options;
    presto_convert_result result = {0};
    presto_error err;
    if (!PyArg_ParseTuple(args, "yOpO!", &dir, &tuple, &sync, &PyList_Type, &notes))
        return NULL;
    presto_join_options_defaults(&options);
    options.sync = sync != 0;
    options.on_note = on_note;
    options.on_note_user = notes;
    options.should_stop = native_watch_stops;
    options.should_stop_user = &watch;
    presto_status status = PRESTO_OK;
    if (tuple == Py_None || native_paths_read(tuple, &attempts, &lists)) {
        options.attempts = tuple == Py_None ? NULL : attempts.list;
        options.attempt_count = attempts.count;
        if (native_leave(&away)) {
            status = presto_dataset_join(dir, &options, &result, &err);
            native_return(&away);
        }
    }
    native_lists_done(&lists);
    if (PyErr_Occurred())
        return NULL;
    return status < 0 ? native_raise(&err) : native_convert_figures(&result);
}
