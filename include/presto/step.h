/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Steps: named transformations of a sample. One file a step; each file has one const
 * presto_step_type, listed in the registry's table. This header is also what a user's own step is
 * written against.
 *
 * A step reads one feature and writes one: the main one, unless the pipeline says `reads: NAME` or
 * `writes: NAME`. Its run() sees only the value; what else the sample has is asked for by name.
 *
 * Life of a step: the pipeline's options are parsed by its typed table -> create() makes an
 * immutable state shared by all threads -> infer() says what comes out of what, before any data ->
 * load() reads models and tables, once for each plan that runs the step -> each worker thread calls
 * open_worker() once, run() per sample, close_worker() once -> unload() -> destroy().
 */
#ifndef PRESTO_STEP_H
#define PRESTO_STEP_H

#include <presto/rng.h>
#include <presto/tensor.h>

#ifdef __cplusplus
extern "C" {
#endif

#define PRESTO_STEP_ABI 4

/* ---- typed options ---- */

/* Parsing, validation, --help-steps and docs/steps.md come from one table. */

typedef enum presto_option_kind {
    PRESTO_OPTION_INT,
    PRESTO_OPTION_FLOAT,
    PRESTO_OPTION_SIZE, /* bytes: a whole number, or a text such as 64MiB */
    PRESTO_OPTION_BOOL,
    PRESTO_OPTION_TEXT,
    PRESTO_OPTION_CHOICE,     /* one of `choices` */
    PRESTO_OPTION_TEXT_LIST,  /* a YAML sequence of texts */
    PRESTO_OPTION_FILE,       /* a path; in a pipeline file relative to that file's folder */
    PRESTO_OPTION_FLOAT_LIST, /* a YAML sequence of numbers */
    PRESTO_OPTION_VALUE_LIST, /* a YAML sequence of texts and numbers, each given as its text */
    PRESTO_OPTION_COMMAND,    /* a YAML sequence of texts: a program and its arguments. Those that
                                 are files in the folder of the pipeline file become their paths */
    PRESTO_OPTION_TIME,       /* seconds: a number, or a text such as 30s, 500ms, 2m, 1h */
    PRESTO_OPTION_VALUE,      /* a text or a number, given as its text */
    PRESTO_OPTION_NAMES       /* a YAML sequence as for VALUE_LIST, or a path as for FILE, where the
                                 names stand */
} presto_option_kind;

typedef struct presto_option_type {
    const char *name; /* as in YAML, e.g. "min-side" */
    presto_option_kind kind;
    bool required;
    const char *default_text;         /* as it would stand in YAML; NULL: not set unless given. A
                                         list's default is comma-separated */
    double minimum, maximum;          /* inclusive, for INT, FLOAT, SIZE, TIME, each of
                                         FLOAT_LIST; both 0: no bounds */
    const char *const *choices;       /* NULL-terminated, for CHOICE */
    const char *const *file_prefixes; /* NULL-terminated, for TEXT: what follows one of them is a
                                         path, as for FILE. NULL: none */
    const char *unit;                 /* e.g. "pixels"; NULL if none */
    const char *help;                 /* one line */
} presto_option_type;

/** A parsed option; create() gets an array parallel to the table, borrowed during the call only. */
typedef struct presto_option {
    bool is_set;     /* given, or has a default */
    int64_t integer; /* INT; SIZE in bytes */
    double number;   /* FLOAT; TIME in seconds */
    bool truth;
    const char
        *text; /* TEXT; VALUE; FILE, as it can be opened; CHOICE, one of the table's pointers; NAMES
                         if they stand in a file */
    int choice; /* position in `choices` */
    union {
        const char *const *texts; /* TEXT_LIST, VALUE_LIST, COMMAND, NAMES; NULL: none */
        const double *numbers;    /* FLOAT_LIST */
    };
    union {
        size_t text_count;
        size_t number_count;
    };
} presto_option;

/* ---- what a running step may ask of its surroundings ---- */

typedef struct presto_step_context presto_step_context;

/**
 * Memory for the step's output of this (complete) spec: in the worker's arena, or, for the last
 * step, the sample's row of the batch, so that no copy follows. Ask once, when the shape is known,
 * and write all of it. Aligned to at least the element size; to 64 bytes in the arena.
 *
 * Returns: PRESTO_OK; PRESTO_ERR_MEMORY; PRESTO_ERR_LIMIT (over 4 GiB).
 */
PRESTO_API presto_status presto_step_output(presto_step_context *context,
                                            const presto_tensor_spec *spec, void **data_out,
                                            presto_error *err);

/**
 * Scratch memory, uninitialised, 64-byte aligned, valid until this sample's last step has run.
 * NULL: no memory.
 */
PRESTO_API void *presto_step_scratch(presto_step_context *context, size_t bytes);

/** Random numbers of this step and sample: keyed by seed, epoch, sample and the step's position. */
PRESTO_API presto_rng *presto_step_rng(presto_step_context *context);

/** What open_worker() of this step made for this thread. */
PRESTO_API void *presto_step_worker(presto_step_context *context);

/** What load() of this step made for the plan; NULL if it has no load(). Any thread reads it. */
PRESTO_API const void *presto_step_model(presto_step_context *context);

/**
 * An empty buffer for an output whose size is not known before it is made. It keeps its memory from
 * sample to sample. Its bytes stay valid until this sample's last step has run. One a step and
 * worker: asked for again, it is empty again.
 */
PRESTO_API presto_buffer *presto_step_buffer(presto_step_context *context);

/**
 * Set *out_out to the text `text` (one PRESTO_STRING), which must stay valid until this sample's
 * last step has run: a step's input, scratch memory or its buffer. PRESTO_ERR_MEMORY.
 */
PRESTO_API presto_status presto_step_text(presto_step_context *context, presto_span text,
                                          presto_tensor *out_out, presto_error *err);

/**
 * Another feature of the sample; NULL if it has none of that name. Borrowed until run() ends. Steps
 * that call this set the flag PRESTO_STEP_READS_FEATURES; without it they always get NULL, because
 * loaders parse only the features that somebody reads.
 */
PRESTO_API const presto_feature *presto_step_feature(presto_step_context *context,
                                                     const char *name);

/**
 * Set another feature of the sample, or add it. `name` must live as long as the step's state; the
 * value's data until this sample's last step has run. An int64 scalar is stored as an int64_list,
 * other numbers as a TensorProto. Steps that call this set the flag PRESTO_STEP_SETS_FEATURES.
 * Returns: PRESTO_ERR_ARGUMENT (that flag is missing, or it is the feature that the step's output
 *          goes to), PRESTO_ERR_MEMORY.
 */
PRESTO_API presto_status presto_step_set_feature(presto_step_context *context, const char *name,
                                                 const presto_tensor *value, presto_error *err);

/**
 * Tell the user something of this sample that is no error, such as a charset that is not known: one
 * short line that is the same for all such samples. A loader counts equal texts and keeps the first
 * of their samples as an example (presto_loader_note_sized). Once a sample. Copied.
 */
PRESTO_API void presto_step_note(presto_step_context *context, const char *text);

/** Is the result no longer wanted? Steps that wait or compute for long look at it now and then, and
 * end with PRESTO_ERR_STOPPED. */
PRESTO_API bool presto_step_is_cancelled(const presto_step_context *context);

/**
 * The bytes of a source file (for steps with PRESTO_STEP_READS_FILE; the loader provides the
 * reading, so that steps know nothing of files). Valid as presto_step_scratch.
 */
PRESTO_API presto_status presto_step_read_file(presto_step_context *context, presto_span path,
                                               presto_span *bytes_out, presto_error *err);

/* ---- windows: how a step may take part in computing only what a later crop keeps ---- */

/** A rectangle of an image [height, width, ...]: rows from y, columns from x on. */
typedef struct presto_window {
    int64_t y, x;
    int64_t height, width;
} presto_window;

/** A tensor that holds one window of a larger one, which need never have existed as a whole. */
typedef struct presto_part {
    presto_tensor tensor;     /* [window.height, window.width, ...] */
    presto_tensor_spec whole; /* the larger tensor, complete */
    presto_window window;     /* what of it `tensor` holds */
} presto_part;

/**
 * What the planner needs to fuse a run of steps that ends in a crop. It measures (or infers) the
 * shapes forwards, lets the crop select its window, asks backwards which window each step needs,
 * and runs each on its window only. The bytes in the window must equal those that run() would have
 * put there.
 */
typedef struct presto_step_windows {
    /**
     * Spec of the whole output for this input, complete, without computing it; for steps whose
     * input is no image. What is prepared here may be kept in the worker: run_window() of the same
     * input follows, or another measure(). NULL: the input is an image and infer() turns its
     * complete spec into a complete one.
     */
    presto_status (*measure)(const void *state, presto_step_context *context,
                             const presto_tensor *in, presto_tensor_spec *out_out,
                             presto_error *err);

    /**
     * Only for a step whose output depends on nothing but a window of its input, such as a crop:
     * which one. If it has run_window(), too, it makes its output from that window; otherwise the
     * window is its output. What is prepared here may be kept in the worker: run_window() for the
     * same input follows, or another select().
     */
    presto_status (*select)(const void *state, presto_step_context *context,
                            const presto_tensor_spec *in, presto_window *window_out,
                            presto_error *err);

    /** The window of the input that `wanted` of the output is computed from. NULL: the same. */
    presto_window (*need)(const void *state, const presto_tensor_spec *in,
                          const presto_window *wanted);

    /**
     * As run(), for a window of the output: out_io->window, of out_io->whole. `in` holds at least
     * what need() asked for. Sets out_io->tensor, and ->window if that is larger, where it is
     * cheaper. Of a step with select(), the window is the whole output, and `in` holds at least
     * what select() chose. NULL only where select is set.
     */
    presto_status (*run_window)(const void *state, presto_step_context *context,
                                const presto_part *in, presto_part *out_io, presto_error *err);
} presto_step_windows;

/* ---- the descriptor ---- */

/** What a step does beside turning a value into another. */
typedef enum presto_step_flag {
    PRESTO_STEP_RANDOM = 1 << 0,         /* draws random numbers: never stored */
    PRESTO_STEP_SERIAL = 1 << 1,         /* its library is not thread-safe: threads take turns */
    PRESTO_STEP_READS_FILE = 1 << 2,     /* its input is the path of a source file */
    PRESTO_STEP_DROPS = 1 << 3,          /* run() may return PRESTO_DROP */
    PRESTO_STEP_SETS_FEATURES = 1 << 4,  /* calls presto_step_set_feature() */
    PRESTO_STEP_READS_FEATURES = 1 << 5, /* calls presto_step_feature(), for whatever name */
    PRESTO_STEP_RUNS_PROGRAM = 1 << 6, /* starts programs that its options name: only for pipelines
                                            that may run code */
    PRESTO_STEP_REGROUPS = 1 << 7, /* a conversion makes other samples of what it gives; the last
                                     step that is stored, never run by a stream. Built-in only */
    PRESTO_STEP_HWC = 1 << 8,  /* its input is [height, width, channels]: a pipeline that has made
                                  it [channels, height, width] is refused */
    PRESTO_STEP_MOVES = 1 << 9 /* it moves pixels; masks, boxes and points can be told to follow,
                                  by its last options. Built-in only */
} presto_step_flag;

typedef struct presto_step_type {
    unsigned abi;            /* PRESTO_STEP_ABI */
    const char *name;        /* "resize-image" */
    const char *summary;     /* one line for --help-steps */
    const char *unsupported; /* not NULL: known but not in this build, and why, e.g. "built without
                                libspng" */
    unsigned flags;          /* of presto_step_flag */
    const presto_option_type *options;
    size_t option_count;

    /** Check what the table cannot say. Runs whenever a pipeline is parsed: opens no files.
     * Immutable afterwards. NULL: no state. */
    presto_status (*create)(const presto_option *options, void **state_out, presto_error *err);
    void (*destroy)(void *state); /* NULL if there is nothing to free */

    /**
     * What comes out for an input like `in` (dims may be -1, dtype may be unknown). PRESTO_ERR_TYPE
     * with a message such as "needs uint8[?,?,3], gets float32[?]" where the input can never fit.
     */
    presto_status (*infer)(const void *state, const presto_tensor_spec *in,
                           presto_tensor_spec *out_out, presto_error *err);

    /**
     * Read what the step needs to run: models, tables. Once a plan, after infer(), whose answer
     * `out_io` holds: it may fill in what only the model knows. Immutable afterwards. NULL:
     * there is nothing to read.
     */
    presto_status (*load)(const void *state, presto_tensor_spec *out_io, void **model_out,
                          presto_error *err);
    void (*unload)(void *model); /* NULL if there is nothing to free */

    /** Memory and handles of one thread; `model` is of load(). Or NULL. */
    presto_status (*open_worker)(const void *state, const void *model, void **worker_out,
                                 presto_error *err);
    void (*close_worker)(void *worker); /* or NULL */

    /**
     * Make run() of this worker return soon, with PRESTO_ERR_STOPPED if it is not done: for steps
     * that wait for something outside, such as another process. Called from any thread, at any time
     * between open_worker() and close_worker(), more than once. NULL: run() never waits.
     */
    void (*cancel)(void *worker);

    /**
     * Transform `in` into *out_out. `in` borrows until the sample's last step has run; the output
     * is memory from presto_step_output() or presto_step_buffer(), or borrows from `in`.
     * Threads: any number at once, each with its own context. No global state, no printing.
     * Returns: PRESTO_OK; PRESTO_DROP: this sample is not wanted (no error: it is left out and
     * counted); PRESTO_ERR_CORRUPT / _TRUNCATED for damaged input (offset = byte within it where
     * known), PRESTO_ERR_TYPE for input that does not fit, PRESTO_ERR_LIMIT: the sample's fault, so
     * that a loader may leave it out. PRESTO_ERR_MEMORY, PRESTO_ERR_STOPPED, PRESTO_ERR_ARGUMENT:
     * not the sample's fault (a helper process has died, say); the job ends.
     */
    presto_status (*run)(const void *state, presto_step_context *context, const presto_tensor *in,
                         presto_tensor *out_out, presto_error *err);

    const presto_step_windows *windows; /* NULL: always runs on whole tensors */

    /** The flags of a step with this state, in place of `flags`. NULL: they do not depend on its
     * options. */
    unsigned (*flags_of)(const void *state);
} presto_step_type;

/* ---- plugins: steps in a shared object ---- */

/** What a plugin exports as presto_plugin_steps. */
typedef struct presto_plugin {
    unsigned abi; /* PRESTO_STEP_ABI; stands first in every version */
    unsigned step_count;
    const presto_step_type *const *steps;
} presto_plugin;

/** Once in a plugin: export the steps of `list`, an array of `const presto_step_type *const`. */
#define PRESTO_PLUGIN(list)                                                                        \
    PRESTO_API extern const presto_plugin presto_plugin_steps;                                     \
    const presto_plugin presto_plugin_steps = {PRESTO_STEP_ABI, sizeof(list) / sizeof((list)[0]),  \
                                               (list)}

#ifdef __cplusplus
}
#endif

#endif
