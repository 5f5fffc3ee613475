/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the programs share: option tables (options.h), messages, exit codes, numbers in and out,
 * signals, the progress line, JSON on stdout.
 *
 * Only one thread of a program prints. The state behind these functions (the program's name, the
 * line on the terminal) belongs to it.
 */
#ifndef PRESTO_TOOLS_CLI_H
#define PRESTO_TOOLS_CLI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <jansson.h>

#include <presto/convert.h>
#include <presto/numbers.h>
#include <presto/processors.h>
#include <presto/status.h>
#include <presto/storage.h>
#include <presto/stream.h>
#include <presto/sweep.h>

#include "options.h"
#include "settings.h"

/* ---- exit codes ---- */

enum {
    CLI_DONE = 0,
    CLI_FAILED = 1,
    CLI_USAGE = 2,
    CLI_CORRUPT = 3,
    CLI_OTHER_ADVICE = 4, /* of presto-sweep --check */
};

/** Exit code of a status: corrupt and truncated data 3, invalid arguments 2, other failures 1. */
int cli_exit_code(presto_status status);

/* ---- usage errors ---- */

/** End the program with one line, "Try 'NAME --help'.", and exit code 2. */
_Noreturn void cli_usage(const char *format, ...) PRESTO_PRINTF(1, 2);

/** Usage error without an operand, unless the pipeline's source makes its samples. */
void cli_check_sources(int argc, char **argv, const presto_pipeline *pipeline, const char *what);

/* Names of things of the library; an unknown one is a usage error that lists the known ones. */
/** `to_store`: only representations that may be stored are accepted. */
void cli_check_representation(const presto_pipeline *pipeline, const char *option, const char *name,
                              bool to_store);
/** `for_tensorflow`: only codecs that TensorFlow reads are accepted. */
void cli_check_codec(const char *option, const char *text, bool for_tensorflow);

/* ---- messages ---- */

/** "NAME: ..." as one line on stderr, over the progress line if there is one. */
void cli_message(const char *format, ...) PRESTO_PRINTF(1, 2);
/** Print the warning as one line on stderr; a presto_warning_fn, `user` is not used. */
void cli_warning(void *user, const presto_error *warning);
/** Print the error as "NAME: FILE: record R: what (at byte N)"; returns its exit code. */
int cli_error(const presto_error *err);

/* ---- stdout ---- */

/**
 * printf for text from outside: what is printed is one line or a part of one, as presto_text_show
 * makes it. Only a newline at the end of the format ends the line.
 */
void cli_put(const char *format, ...) PRESTO_PRINTF(1, 2);

/**
 * Print text from `column` on, broken between words at 80 columns; later lines start at `indent`.
 */
void cli_print_wrapped(const char *text, size_t column, size_t indent);

/** Print one JSON object and a newline on stdout. Takes the reference. Returns the exit code. */
int cli_print_json(json_t *object);
/** A JSON object with "schema": 1 and who wrote it; NULL when memory ran out. */
json_t *cli_json_new(void);
/** json_object_set_new that remembers a failure: cli_print_json reports it at the end. */
void cli_json_set(json_t *object, const char *key, json_t *value);
typedef struct cli_count {
    const char *key;
    uint64_t count;
} cli_count;
/** cli_json_set of each of `counts`, in their order. */
void cli_json_set_counts(json_t *object, const cli_count *counts, size_t count);
/** json_array_append_new that does the same. */
void cli_json_append(json_t *array, json_t *value);
/** Has one of them failed? */
bool cli_json_failed(void);
/** A text that may be any bytes, as presto_text_encode keeps them; null for NULL. */
json_t *cli_json_text(const char *text);
/** cli_json_set for a name of any bytes. */
void cli_json_set_named(json_t *object, presto_span name, json_t *value);
/** The text, on the heap, without anything that controls a terminal; NULL when memory ran out. */
char *cli_json_dump(const json_t *json, size_t flags);
/** "note: ..." on stdout for each note of the source, for --explain. */
void cli_print_notes(const presto_source *source);
/** A number, or null where it is not finite. */
json_t *cli_json_real(double value);

/**
 * Flush stdout and report a failure. If the reader closed the pipe, that is no failure: the program
 * ends quietly with 0, as in `yes | head`.
 * Returns: `code`, or 1 if it was 0 and writing failed.
 */
int cli_close_stdout(int code);

/* ---- signals ---- */

/** Wall time that only goes forward, since an arbitrary start, in ns. */
uint64_t cli_now_ns(void);

/**
 * From here on SIGINT and SIGTERM only set a flag, so that files can be cleaned up; a second signal
 * ends the program at once. After the first, blocking calls are interrupted at least once a second.
 * A program that has not ended 5 s after it (cli_late_end.after_s), because a library keeps one of
 * its threads, dies of the signal. Further calls have no effect. */
void cli_catch_signals(void);

/** What is done before a program dies because it did not end in order. */
typedef struct cli_late_end {
    void (*run)(void *user); /* by another thread than the main one; NULL: nothing */
    void *user;
    unsigned after_s; /* what it does in order may take so long, also on a busy machine; 0: 5 s */
} cli_late_end;
void cli_on_late_end(const cli_late_end *what);

/** Between these calls the program does not die in that way: for writing results, however long it
 * takes, and for what cli_late_end.run reads. They do not nest. */
void cli_hold_end(void);
void cli_release_end(void);

bool cli_interrupted(void); /* any thread */
/** A presto_stop_fn that says cli_interrupted(). */
bool cli_should_stop(void *unused);
/**
 * Print the message of a conversion into `dir` that was stopped: how to resume, if anything has
 * been kept.
 * Returns: the exit code.
 */
int cli_stopped_conversion(const char *dir);
/** After a signal, a conversion ends what its writers are at, and notes what is whole. */
#define CLI_CONVERSION_ENDS_S 10
/** A cli_late_end.run that prints it: `dir` is a const char *. */
void cli_stop_conversion_late(void *dir);
/** If a signal was caught, die of it. */
void cli_reraise(void);

/* ---- progress ---- */

typedef struct cli_progress {
    bool shown; /* stderr is a terminal and nobody asked for quiet */
    uint64_t started_ns;
    uint64_t drawn_ns; /* last time */
    double rate;       /* smoothed, units per second */
    uint64_t seen;     /* `done` when `rate` was last updated */
    uint64_t seen_ns;
} cli_progress;

typedef struct cli_progress_state {
    const char *unit; /* "samples" */
    uint64_t done;
    uint64_t total; /* 0: unknown */
    uint64_t bytes;
    const char *note; /* further text, may be NULL */
    bool is_uneven;   /* some take a hundred times as long as others: time passed instead of ETA */
} cli_progress_state;

void cli_progress_start(cli_progress *progress, bool quiet);
/** Would it be redrawn now? For callers that must compute what the line shows. */
bool cli_progress_is_due(const cli_progress *progress);
/** Redraw the line unless it was drawn less than a tenth of a second ago. */
void cli_progress_show(cli_progress *progress, const cli_progress_state *state);
/** Remove the line. */
void cli_progress_end(cli_progress *progress);

#endif
