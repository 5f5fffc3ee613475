/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Room pipeline: from the text of a pipeline to its source, steps and typed options.
 * May see: base, steps_internal.h (the descriptors of the steps). Not: plans, what a step computes.
 * A parsed pipeline never changes. No lock.
 */
#ifndef PRESTO_STEPS_PIPELINE_INTERNAL_H
#define PRESTO_STEPS_PIPELINE_INTERNAL_H

#include <stdatomic.h>

#include <jansson.h>

#include <presto/pipeline.h>

#include "../geometry_internal.h"
#include "../steps_internal.h"

/* ---- YAML text as a small tree that remembers its lines ---- */

/* Anchors, aliases and tags are refused, so the tree is never larger than the text. Nesting and
 * size are limited. */

#define PRESTO__YAML_MAX_BYTES ((size_t)1 << 20)
#define PRESTO__YAML_MAX_DEPTH 8
/* Each key is compared with all before it. */
#define PRESTO__YAML_MAX_KEYS 1000

typedef enum presto__yaml_kind {
    PRESTO__YAML_SCALAR,
    PRESTO__YAML_SEQUENCE,
    PRESTO__YAML_MAPPING
} presto__yaml_kind;

typedef struct presto__yaml_node presto__yaml_node;
struct presto__yaml_node {
    presto__yaml_kind kind;
    size_t line;              /* 1-based */
    const char *set;          /* the `--set` argument that it comes from; NULL: from the text */
    const char *text;         /* SCALAR: NUL-terminated, printable, one line */
    bool is_plain;            /* SCALAR: without quotes, so 5, true and null are no texts */
    presto__yaml_node *key;   /* the key of this value; NULL outside of a mapping */
    presto__yaml_node *next;  /* the next entry of the parent */
    presto__yaml_node *first; /* entries of a SEQUENCE, values of a MAPPING */
    size_t count;             /* how many */
};

/**
 * Parse exactly one document. The tree belongs to `arena`.
 * Returns: PRESTO_OK; PRESTO_ERR_SYNTAX with "line L: ..."; PRESTO_ERR_LIMIT; PRESTO_ERR_MEMORY.
 */
presto_status presto__yaml_parse(presto_span text, presto_arena *arena,
                                 presto__yaml_node **root_out, presto_error *err);

/** A syntax error. Its message starts with the node's place: "line L: " or "--set X: ". */
void presto__yaml_error(const presto__yaml_node *node, presto_error *err, const char *format, ...)
    PRESTO_PRINTF(3, 4);
/* As presto_fail(): a macro, so that analyzers see the status. */
#define presto__yaml_fail(node, ...)                                                               \
    (presto__yaml_error(node, __VA_ARGS__), presto_status_pass(PRESTO_ERR_SYNTAX))

/** The value of a mapping's key, NULL if there is none. */
presto__yaml_node *presto__yaml_get(const presto__yaml_node *mapping, const char *key);

/** The tree as JSON: plain numbers and truth values as such. NULL: no memory. */
json_t *presto__yaml_to_json(const presto__yaml_node *node);

/** Give the mapping this value of the key `name`, in place of the one that it may have. */
presto_status presto__yaml_put(presto__yaml_node *mapping, const char *name,
                               presto__yaml_node *value, presto_arena *arena, presto_error *err);

/** "a text", "a number", "true or false", "null", "a list", "a mapping": for messages. */
const char *presto__yaml_describe(const presto__yaml_node *node);

/** Is it a scalar that means a text: quoted, or plain and not a number, truth value or null? */
bool presto__yaml_is_text(const presto__yaml_node *node);

/** A whole number in plain decimal; false if it is not one or does not fit. */
bool presto__yaml_integer(const presto__yaml_node *node, int64_t *value_out);

/** A finite decimal number. */
bool presto__yaml_number(const presto__yaml_node *node, double *value_out);

/* ---- options: scalars and lists -> values of a typed table ---- */

/* The input of presto__options_parse. */
typedef struct presto__options_request {
    const presto_option_type *table;
    size_t count;
    const presto__yaml_node *mapping;
    const char *owner;         /* the owner of the options, e.g. "step resize-image": for
                                * messages */
    const char *folder;        /* that FILE options of the text are relative to; NULL: the working
                                  folder */
    const char *const *others; /* keys that the caller handles itself; NULL-terminated */
} presto__options_request;

/**
 * Parse the options of a mapping against their table. Defaults are filled in. *values_out is
 * parallel to the table and belongs to the arena.
 *
 * Returns: PRESTO_OK; PRESTO_ERR_SYNTAX with "line L: ..."; PRESTO_ERR_MEMORY.
 */
presto_status presto__options_parse(const presto__options_request *request, presto_arena *arena,
                                    presto_option **values_out, presto_error *err);

/** Add the options that are set to a JSON object. PRESTO_ERR_MEMORY if that fails. */
presto_status presto__options_to_json(const presto_option_type *table, size_t count,
                                      const presto_option *values, json_t *object,
                                      presto_error *err);

/**
 * Is the table correct: names distinct, defaults parse, choices present? For tests; the message
 * names the option.
 */
presto_status presto__options_check_table(const presto_option_type *table, size_t count,
                                          presto_error *err);

/** "text", "whole number", ...: for messages and the reference. */
const char *presto__option_kind_text(presto_option_kind kind);
/** "from 1 to 10", in `text`, of an option that has bounds. */
#define PRESTO__BOUNDS_BYTES 96
const char *presto__option_bounds(const presto_option_type *option,
                                  char text[PRESTO__BOUNDS_BYTES]);

/* ---- types of source, beside those of source_types.c ---- */

extern const presto_source_type presto__source_type_lines, presto__source_type_jsonl,
    presto__source_type_csv;
extern const presto_source_type presto__source_type_tar;
extern const presto_source_type presto__source_type_manifest;

/** The option `classes` of a source with labels that may be names; the loader reads them. `without`: what is
 * done if it is not given. */
#define PRESTO__CLASSES_OPTION_OR(without)                                                         \
    {                                                                                              \
        .name = "classes", .kind = PRESTO_OPTION_NAMES,                                            \
        .help = "the names of the classes in the order of their numbers: a list; a file with a "   \
                "name a line; the folder of a dataset that presto-write made, or one with a "      \
                "folder for each class. A class that is not among them is an error, and they are " \
                "recorded with the labels. " without                                               \
    }
#define PRESTO__CLASSES_OPTION PRESTO__CLASSES_OPTION_OR("Default: the names that are met, sorted")

/** May the option `feature` be this? */
presto_status presto__source_check_feature(const char *feature, presto_error *err);

/* ---- pipelines ---- */

#define PRESTO__PIPELINE_MAX_STEPS 1000

/* One step of a pipeline. */
typedef struct presto__pipeline_step {
    const presto_step_type *type;
    const char *yields; /* NULL if it names no representation */
    const char *reads;  /* the feature that it reads; NULL: the main one */
    const char *writes; /* and the feature that it writes; NULL: the one it reads */
    const presto_option *options;
    void *state;                  /* of create(); NULL also where the build lacks the step */
    unsigned flags;               /* with these options */
    bool inflates;                /* its output holds what its input holds, in more bytes */
    const presto__follow *follow; /* what moves with its image; NULL: nothing */
    size_t line;
    const presto__yaml_node *raw; /* of a plugin's step that is not loaded: its text; else NULL */
} presto__pipeline_step;

/* ---- plugins ---- */

#define PRESTO__MAX_PLUGINS 64
#define PRESTO__PLUGIN_DIGEST_BYTES 33

typedef struct presto__loaded_plugin {
    const char *file;                         /* absolute */
    char digest[PRESTO__PLUGIN_DIGEST_BYTES]; /* of its content, hexadecimal; "": not known */
    bool is_given;                            /* by the caller, and not by the pipeline */
    void *handle;                             /* of dlopen; NULL: not loaded */
    const presto_plugin *exported;            /* NULL: not loaded */
} presto__loaded_plugin;

/* A representation but `unprocessed`. */
typedef struct presto__representation {
    const char *name;
    size_t steps; /* that have run; 0: what the source yields */
} presto__representation;

/* Options of the source tfrecord. */
#define PRESTO__PIPELINE_UNUSED_MOST 8

struct presto_pipeline {
    atomic_size_t owners; /* each calls presto_pipeline_free; any thread changes it */
    presto_arena arena;   /* all texts, options and arrays */
    const char *file;
    const char *name;
    const presto_step_type **own_steps; /* of the options it was read with, and of plugins */
    size_t own_step_count;
    presto__loaded_plugin *plugins;
    size_t plugin_count;
    bool runs_code; /* may it load its plugins and start programs? */
    char *json;
    const presto_source_type *source;
    const presto_option *source_options;
    presto_tensor_spec source_output;
    const char *source_yields; /* NULL: its samples are paths */
    size_t steps_behind;       /* that ran on its samples before: random steps draw as if they
                                  were part of this pipeline */
    /* Of the source in whose place "from=" put another: */
    const char *usual_feature;                        /* NULL: none */
    const char *unused[PRESTO__PIPELINE_UNUSED_MOST]; /* options that it has and that one lacks */
    size_t unused_count;
    presto__pipeline_step *steps;
    size_t step_count;
    presto__representation *representations; /* number r is representations[r - 1] */
    size_t representation_count;             /* with `unprocessed` */
};

/** As presto__pipeline_parse, of a text that the caller has named and trusts. */
presto_status presto__pipeline_parse_named(presto_span yaml, const char *file,
                                           const presto_pipeline_options *options,
                                           presto_pipeline **pipeline_out, presto_error *err);

/** Can the pipeline have this step? The message says what is wrong with it. */
presto_status presto__own_step_check(const presto_step_type *type, const presto_pipeline *pipeline,
                                     presto_error *err);

/** Which plugins a pipeline has. */
typedef struct presto__plugins_request {
    const char *const *given; /* files of the caller's */
    size_t given_count;
    const presto__yaml_node *named; /* of the text; NULL: none */
    const char *folder;             /* of the text */
} presto__plugins_request;

/** Set the pipeline's plugins. Those of the caller are opened, those of the text if it may run
 * code; their steps join own_steps. */
presto_status presto__plugins_take(presto_pipeline *pipeline,
                                   const presto__plugins_request *request, presto_error *err);
void presto__plugins_close(presto_pipeline *pipeline);

/** Is `type` a step of this plugin? */
bool presto__plugin_has(const presto__loaded_plugin *plugin, const presto_step_type *type);

/** The plugins that its steps come from, or may come from. NULL: no memory. */
json_t *presto__plugins_to_json(const presto_pipeline *pipeline);

/**
 * Apply `set`, `from` and `feature` of the options to the tree of a pipeline; new nodes are the
 * arena's. *records_out is the source that `from` puts in the place of the text's, after the text has been parsed; NULL: none.
 */
presto_status presto__pipeline_override(presto__yaml_node *root,
                                        const presto_pipeline_options *options, presto_arena *arena,
                                        presto__yaml_node **records_out, presto_error *err);

/**
 * Leave out the steps up to the representation `from`, which is then number 1, and what the source
 * gives. They count as behind it. The caller puts another source in.
 * Returns: as presto_pipeline_representation_named.
 */
presto_status presto__pipeline_cut(presto_pipeline *pipeline, const char *from, presto_error *err);

/** The number that random steps draw by: how many steps come before step i. index-jpeg is not
 * counted: the same photos are drawn from with and without it. */
uint64_t presto__pipeline_position(const presto_pipeline *pipeline, size_t i);

/** Is step i index-jpeg, in front of a decode-image that gives the same image without it? */
bool presto__pipeline_only_indexes(const presto_pipeline *pipeline, size_t i);

/** Parse the definition in a dataset with the steps that `pipeline` knows. It is compared, and never
 * runs. Owner: caller, presto_pipeline_free. */
presto_status presto__pipeline_read_back(const presto_pipeline *pipeline, const char *json,
                                         presto_pipeline **other_out, presto_error *err);

/** Give steps the options that depend on the steps after them: those of decode-image with
 * `scale: auto`. Once all steps are there. PRESTO_ERR_MEMORY. */
presto_status presto__pipeline_look_ahead(presto_pipeline *pipeline, presto_error *err);
/** May the step decode an image at less than its size? Its pixels are others then. */
bool presto__step_reduces(const presto__pipeline_step *step);

/** One JSON object on one line; malloc'ed. NULL: no memory. */
char *presto__pipeline_to_json(const presto_pipeline *pipeline);
/** The source with its options as a JSON object; malloc'ed. NULL: no memory. */
char *presto__source_to_json(const presto_pipeline *pipeline);
/** The steps [first, last) as a JSON array, without the names of representations; malloc'ed. NULL:
 * no memory. */
char *presto__steps_to_json(const presto_pipeline *pipeline, size_t first, size_t last);

#endif
