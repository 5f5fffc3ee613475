/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writing, sweeping, inspecting: samples from Python's values, options from dicts (those of loaders,
 * too), and calls that take long. All with the GIL, unless a comment says otherwise.
 */
#ifndef PRESTO_NATIVE_WRITING_INTERNAL_H
#define PRESTO_NATIVE_WRITING_INTERNAL_H

#include "native_internal.h"

#include <presto/writer.h>

/* ---- sample.c: a dict as a sample ---- */

typedef struct native_value native_value;

/** A sample, and what it borrows. Zero-initialise. */
typedef struct native_sample {
    presto_sample sample;
    PyObject *items; /* keeps names and values */
    native_value *values;
} native_sample;

/**
 * Make a sample of a dict from names to values. False: an exception is set, which names the feature
 * and, if `number` is not PRESTO_NO_RECORD, the sample.
 */
bool native_sample_make(PyObject *dict, uint64_t number, native_sample *sample_out);
void native_sample_done(native_sample *sample);

/* ---- example.c: requests and replies of a step ---- */

/** parse_example(payload, is_text): the features of an Example. */
PyObject *native_parse_example(PyObject *module, PyObject *args);
/** make_example(sample): the serialized Example. */
PyObject *native_make_example(PyObject *module, PyObject *dict);

/* ---- fields.c: options from a dict ---- */

typedef enum native_field_kind {
    NATIVE_U64,
    NATIVE_SIZE,
    NATIVE_UNSIGNED,
    NATIVE_FLAG,
    NATIVE_DOUBLE,
    NATIVE_TEXT,      /* str, or bytes of a path; borrowed from the dict */
    NATIVE_TEXTS,     /* a list of them */
    NATIVE_UNSIGNEDS, /* a list of numbers */
} native_field_kind;

/** An option: its name in the dict, and where it is in the struct. */
typedef struct native_field {
    const char *name;
    native_field_kind kind;
    size_t offset;
    size_t count_offset; /* of lists: how many, a size_t */
} native_field;

/** Lists that options point to. Zero-initialise. */
typedef struct native_lists {
    void *items[16];
    size_t count;
} native_lists;

/** What a dict may hold. */
typedef struct native_table {
    const native_field *fields; /* the last one has no name */
    const char *const *others;  /* keys that are read elsewhere; ends with NULL. NULL: none */
} native_table;

/**
 * Set the fields that the dict has; None is left out. Other keys are a TypeError. False: an
 * exception is set.
 */
bool native_fields_read(PyObject *dict, const native_table *table, void *options,
                        native_lists *lists);
void native_lists_done(native_lists *lists);
/** A list of `count` zeroed items of `each` bytes, freed with the others. NULL: an exception is
 * set. */
void *native_lists_keep(native_lists *lists, size_t count, size_t each);

/** Paths, as bytes. */
typedef struct native_paths {
    const char *const *list; /* of `lists` */
    size_t count;
} native_paths;

/** The bytes objects of a tuple, which must outlive *paths_out. False: an exception is set. */
bool native_paths_read(PyObject *tuple, native_paths *paths_out, native_lists *lists);

/* ---- options.c ---- */

/** The loader's options, and what they borrow beside the dict. */
typedef struct native_options {
    presto_loader_options loader;
    native_lists lists;
    PyObject *on_skip; /* borrowed from the dict; NULL: none */
    uint64_t hold_bytes;
} native_options;

/** Fill from a dict, which must outlive *options_out. False: an exception is set. */
bool native_options_read(PyObject *dict, native_options *options_out);
void native_options_done(native_options *options);

/* ---- mix.c ---- */

/** Inputs that are mixed. */
typedef struct native_mix {
    presto_mix_input *inputs; /* of `lists`; NULL: it is no mix */
    size_t count;
    unsigned epoch; /* a presto_mix_epoch */
} native_mix;

/** The option "weights", one for each path. False: an exception is set. */
bool native_mix_read(PyObject *options, const native_paths *paths, native_mix *mix_out,
                     native_lists *lists);
/** Without the GIL. */
presto_status native_mix_open(const native_mix *mix, const presto_stream_options *options,
                              presto_stream *stream_out, presto_error *err);
/** [(path, weight, first sample, samples, samples in an epoch), ...]; empty: it is no mix. */
PyObject *native_mix_parts(const presto_source *source);

/* ---- long calls ---- */

/** What a call without the GIL calls back. On the stack of that call; the call's dict, which its
 * arguments keep and nobody else has, keeps the objects. */
typedef struct native_watch {
    PyObject *progress; /* called with what happens; NULL: none */
    PyObject *on_skip;  /* called with (epoch, sample, error); NULL: none */
    PyObject *warnings; /* list of texts; borrowed */
    uint64_t asked_ns;  /* when signals were looked at last */
    bool is_stopped;    /* a handler of signals has raised */
} native_watch;

/** With the GIL: look at signals. False: a handler has raised. */
bool native_watch_signals(native_watch *watch);
/**
 * A presto_stop_fn of a native_watch, for the thread of the call, without the GIL: true if a signal
 * handler has raised, which stays set, or the interpreter ends.
 */
bool native_watch_stops(void *watch);
void native_watch_skip(void *user, uint64_t epoch, uint64_t sample, const presto_error *err);
void native_watch_warning(void *user, const presto_error *warning);

/* ---- pipeline.c ---- */

/** The pipeline that options name; NULL with an exception, or without one if they name none. */
presto_pipeline *native_pipeline_load(PyObject *options);
/** pipeline_json(options): its definition. */
PyObject *native_pipeline_json(PyObject *module, PyObject *options);

/* ---- convert.c, sweep.c, inspect.c ---- */

/** convert(paths, options): a dict of figures. */
PyObject *native_convert(PyObject *module, PyObject *args);
/** join(dir, attempts, sync, notes): likewise. */
PyObject *native_join(PyObject *module, PyObject *args);
/** A presto_convert_result as a dict. */
PyObject *native_convert_figures(const presto_convert_result *result);
/** sweep(paths, options): None; the results are in the options' folder. */
PyObject *native_sweep(PyObject *module, PyObject *args);
/** load_strategy(path): a dict. */
PyObject *native_load_strategy(PyObject *module, PyObject *path);
/** inspect(paths, sample_records), verify(paths, examples): dicts. */
PyObject *native_inspect(PyObject *module, PyObject *args);
PyObject *native_verify(PyObject *module, PyObject *args);

/* ---- writer.c ---- */

extern PyType_Spec native_writer_spec;
extern PyTypeObject *native_writer_type;

/** A presto_stop_fn of a writer's calls, without the GIL: a signal handler has raised, or the writer
 * is closed. */
bool native_writer_stops(void *writer);
/** Begin a call of the writer; NULL: an exception is set. native_writer_leave must follow. */
presto_writer *native_writer_enter(PyObject *writer);
/** True: it went well. Else an exception is set. */
bool native_writer_leave(PyObject *writer, presto_status status, const presto_error *err);

/* ---- arrow_in.c ---- */

/**
 * Writer.add_arrow(schema, array, options, notes), or (None, stream, options, notes): capsules of
 * Arrow's. `notes` gets (a presto_arrow_note, column, text) of each column that there is something to
 * tell of, also if an exception is set.
 */
PyObject *native_writer_add_arrow(PyObject *writer, PyObject *args);

#endif
