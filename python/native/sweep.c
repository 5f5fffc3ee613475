/* SPDX-License-Identifier: Apache-2.0 */
/* sweep(): what presto-sweep does, in this process; and strategy.yaml. */
#include "writing_internal.h"

#define FIELD(name, kind)                                                                          \
    { #name, kind, offsetof(presto_sweep_options, name), 0 }
#define LIST(name, kind, count)                                                                    \
    { #name, kind, offsetof(presto_sweep_options, name), offsetof(presto_sweep_options, count) }

/* A new option of presto_sweep_options is a line here. */
static const native_field fields[] = {
    LIST(stored, NATIVE_TEXTS, stored_count),
    LIST(codecs, NATIVE_TEXTS, codec_count),
    LIST(threads, NATIVE_UNSIGNEDS, thread_count),
    FIELD(tensorflow_readable, NATIVE_FLAG),
    FIELD(shards, NATIVE_SIZE),
    FIELD(samples, NATIVE_U64),
    FIELD(runs, NATIVE_UNSIGNED),
    FIELD(run_s, NATIVE_DOUBLE),
    FIELD(cold_epochs, NATIVE_UNSIGNED),
    FIELD(preparation_runs, NATIVE_UNSIGNED),
    FIELD(batch_samples, NATIVE_SIZE),
    FIELD(seed, NATIVE_U64),
    FIELD(decide_s, NATIVE_DOUBLE),
    FIELD(mode, NATIVE_UNSIGNED),
    FIELD(confirm_runs, NATIVE_UNSIGNED),
    {"storage_bytes_per_s", NATIVE_DOUBLE, offsetof(presto_sweep_options, storage.bytes_per_s), 0},
    {"storage_bytes_per_s_per_thread", NATIVE_DOUBLE,
     offsetof(presto_sweep_options, storage.bytes_per_s_per_thread), 0},
    {"storage_reads_per_s", NATIVE_DOUBLE, offsetof(presto_sweep_options, storage.reads_per_s), 0},
    {"storage_latency_s", NATIVE_DOUBLE, offsetof(presto_sweep_options, storage.latency_s), 0},
    {"storage_open_s", NATIVE_DOUBLE, offsetof(presto_sweep_options, storage.open_s), 0},
    FIELD(work_dir, NATIVE_TEXT),
    FIELD(work_bytes, NATIVE_U64),
    FIELD(pipeline_name, NATIVE_TEXT),
    FIELD(dataset_dir, NATIVE_TEXT),
    FIELD(journal, NATIVE_TEXT),
    FIELD(resume, NATIVE_FLAG),
    FIELD(no_seekable, NATIVE_FLAG),
    LIST(set, NATIVE_TEXTS, set_count),
    LIST(plugins, NATIVE_TEXTS, plugin_count),
    {"weight_preparation", NATIVE_DOUBLE, offsetof(presto_sweep_options, weights.preparation), 0},
    {"weight_storage", NATIVE_DOUBLE, offsetof(presto_sweep_options, weights.storage), 0},
    {"weight_throughput", NATIVE_DOUBLE, offsetof(presto_sweep_options, weights.throughput), 0},
    {"target_samples_per_s", NATIVE_DOUBLE,
     offsetof(presto_sweep_options, limits.target_samples_per_s), 0},
    {"most_stored_bytes", NATIVE_U64, offsetof(presto_sweep_options, limits.most_stored_bytes), 0},
    {"most_preparation_s", NATIVE_DOUBLE, offsetof(presto_sweep_options, limits.most_preparation_s),
     0},
    {"headroom", NATIVE_DOUBLE, offsetof(presto_sweep_options, limits.headroom), 0},
    {"price_storage_gb_month", NATIVE_DOUBLE,
     offsetof(presto_sweep_options, prices.storage_gb_month), 0},
    {"price_cpu_h", NATIVE_DOUBLE, offsetof(presto_sweep_options, prices.cpu_h), 0},
    {"price_accelerator_h", NATIVE_DOUBLE, offsetof(presto_sweep_options, prices.accelerator_h), 0},
    {"epochs", NATIVE_DOUBLE, offsetof(presto_sweep_options, prices.epochs), 0},
    {"months", NATIVE_DOUBLE, offsetof(presto_sweep_options, prices.months), 0},
    {"skip", NATIVE_UNSIGNED, offsetof(presto_sweep_options, errors.policy), 0},
    {"skip_limit", NATIVE_U64, offsetof(presto_sweep_options, errors.skip_limit), 0},
    {"skip_fraction", NATIVE_DOUBLE, offsetof(presto_sweep_options, errors.skip_fraction), 0},
    {NULL, NATIVE_U64, 0, 0},
};
static const char *const others[] = {"pipeline", "progress", "results", NULL};
static const native_table table = {fields, others};

static bool on_trial(void *user, const presto_strategy *strategy, size_t done, size_t total,
                     const presto_strategy_result *result) {
    native_watch *watch = user;
    native_visit visit;
    if (!native_enter(&visit))
        return false;
    bool goes_on = native_watch_signals(watch);
    if (goes_on && watch->progress != NULL) {
        PyObject *told = PyObject_CallFunction(
            watch->progress, "nnszIO", (Py_ssize_t)done, (Py_ssize_t)total, strategy->stored,
            strategy->codec, strategy->threads, result == NULL ? Py_False : Py_True);
        goes_on = told != NULL;
        Py_XDECREF(told);
    }
    native_exit(&visit);
    return goes_on;
}

/* Measure, and write the results: also those of a sweep that was stopped. With a journal they stay,
 * in a folder that others may write to. Without the interpreter's lock. */
static presto_status measure(const native_paths *paths, const presto_sweep_options *options,
                             const char *results, presto_error *err) {
    presto_sweep *sweep = NULL;
    presto_folder_lock *lock = NULL;
    presto_error write_err;
    presto_status status = PRESTO_OK, written = PRESTO_OK;
    if (options->journal != NULL)
        PRESTO_TRY(presto_sweep_claim(results, options->resume, &lock, err));
    status = presto_sweep_run(paths->list, paths->count, options, &sweep, err);
    if (sweep != NULL && lock != NULL)
        written = presto_folder_lock_check(lock, &write_err);
    if (sweep != NULL && written == PRESTO_OK)
        written = presto_sweep_write(sweep, results, &write_err);
    if (status >= 0 && written < 0)
        *err = write_err;
    presto_sweep_free(sweep);
    presto_folder_lock_release(lock);
    return status < 0 ? status : written;
}

static bool run(const native_paths *paths, const presto_sweep_options *options,
                const char *results) {
    presto_error err;
    native_away away;
    if (!native_leave(&away))
        return false;
    presto_status status = measure(paths, options, results, &err);
    native_return(&away);
    if (!PyErr_Occurred() && status < 0)
        native_raise(&err);
    return !PyErr_Occurred();
}

PyObject *native_sweep(PyObject *module, PyObject *args) {
    (void)module;
    PyObject *tuple, *dict;
    presto_sweep_options options;
    native_lists lists = {0};
    native_paths paths;
    if (!PyArg_ParseTuple(args, "O!O!", &PyTuple_Type, &tuple, &PyDict_Type, &dict))
        return NULL;
    presto_sweep_options_defaults(&options);
    PyObject *progress = PyDict_GetItemString(dict, "progress");
    PyObject *results = PyDict_GetItemString(dict, "results");
    native_watch watch = {.progress = progress == Py_None ? NULL : progress};
    const char *folder = results == NULL ? NULL : PyBytes_AsString(results);
    bool done = folder != NULL && native_paths_read(tuple, &paths, &lists) &&
                native_fields_read(dict, &table, &options, &lists);
    presto_pipeline *pipeline = done ? native_pipeline_load(dict) : NULL;
    options.pipeline = pipeline;
    options.on_trial = on_trial;
    options.on_trial_user = &watch;
    options.should_stop = native_watch_stops;
    options.should_stop_user = &watch;
    if (options.preparation_runs > options.runs)
        options.preparation_runs = options.runs;
    done = done && !PyErr_Occurred() && run(&paths, &options, folder);
    presto_pipeline_free(pipeline);
    native_lists_done(&lists);
    if (!done && !PyErr_Occurred())
        PyErr_SetString(PyExc_TypeError, "a sweep needs a folder for its results");
    return done ? Py_NewRef(Py_None) : NULL;
}

PyObject *native_load_strategy(PyObject *module, PyObject *path) {
    (void)module;
    presto_strategy_file file = {0};
    presto_error err;
    const char *name = PyBytes_AsString(path);
    if (name == NULL)
        return NULL;
    if (presto_strategy_load(name, &file, &err) < 0)
        return native_raise(&err);
    PyObject *set = PyTuple_New((Py_ssize_t)file.set_count);
    for (size_t i = 0; set != NULL && i < file.set_count; i++) {
        PyObject *text = native_text(file.set[i]);
        if (text == NULL || PyTuple_SetItem(set, (Py_ssize_t)i, text) < 0)
            Py_CLEAR(set);
    }
    PyObject *dict =
        set == NULL
            ? NULL
            : Py_BuildValue("{sNsNsNsNsKsIsKsKsN}", "pipeline", native_text(file.pipeline), "set",
                            set, "stored", native_text(file.stored), "codec",
                            file.codec == NULL ? Py_NewRef(Py_None) : native_text(file.codec),
                            "shards", (uint64_t)file.shards, "threads", file.threads, "batch",
                            (uint64_t)file.batch_samples, "seed", file.seed, "has_old_names",
                            PyBool_FromLong(file.has_old_names));
    presto_strategy_file_done(&file);
    return dict;
}
