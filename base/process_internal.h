/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Another program that runs beside this one, with a pipe to its stdin and pipes from its stdout and
 * stderr. It has a process group of its own: Ctrl-C reaches this program only, and all that it has
 * started ends with it. It gets no other open file of this program, an empty signal mask and the
 * default handling of signals.
 *
 * Threads: one at a time uses a process; any number start theirs at once.
 */
#ifndef PRESTO_BASE_PROCESS_INTERNAL_H
#define PRESTO_BASE_PROCESS_INTERNAL_H

#include <sys/types.h>

#include <presto/span.h>

#define PRESTO__PROCESS_TAIL_BYTES 2048

typedef struct presto__process {
    pid_t pid; /* 0: none runs */
    int input; /* ends of the pipes, none of which blocks; -1: closed */
    int output;
    int errors;
    bool grown; /* the pipes have been asked to hold more */
    size_t tail_bytes;
    char tail[PRESTO__PROCESS_TAIL_BYTES]; /* the last that came from its stderr */
} presto__process;

/**
 * The file that runs as `name`: itself if it has a slash, else the first executable file of that
 * name in the folders of PATH. On the heap; NULL: there is none, or no memory.
 */
char *presto__program_find(const char *name);

/**
 * Start the program `path` with the arguments `argv`, which end with NULL.
 * Returns: PRESTO_ERR_IO, PRESTO_ERR_MEMORY with sys_errno; the message names the path.
 */
presto_status presto__process_start(const char *path, const char *const *argv,
                                    presto__process *process_out, presto_error *err);

typedef enum presto__process_event {
    PRESTO__PROCESS_MOVED,  /* bytes have gone one way or the other */
    PRESTO__PROCESS_CLOSED, /* it has ended, or closed its stdout */
    PRESTO__PROCESS_LATE,   /* the deadline is over */
    PRESTO__PROCESS_STOPPED,
    PRESTO__PROCESS_FAILED /* a system call has; errno says why */
} presto__process_event;

/** How long to wait. */
typedef struct presto__process_wait {
    uint64_t deadline_ns; /* of presto__clock_ns */
    presto_stop_fn stop;  /* asked many times a second while nothing moves; NULL: nobody */
    void *stop_user;
} presto__process_wait;

/**
 * Wait until bytes can be sent or received, and do so: takes what it can off *unsent_io, appends to
 * `in` what is there, as long as that has memory reserved (at least one byte). What comes from
 * stderr is kept in the tail. Raises no SIGPIPE.
 */
presto__process_event presto__process_move(presto__process *process, presto_span *unsent_io,
                                           presto_buffer *in, const presto__process_wait *wait);

/** Let the pipes hold more, where the system can. */
void presto__process_grow(presto__process *process);

/** Its stdin ends. */
void presto__process_finish(presto__process *process);

/**
 * Wait for its end, for `most_ns` at most; then kill it and all that it has started. Closes the
 * pipes. What it writes meanwhile is read, so that it does not wait.
 * Returns: its status as waitpid() gives it; -1: unknown.
 */
int presto__process_end(presto__process *process, uint64_t most_ns);

/** What stderr had last: whole lines if possible, at most `room` bytes with the NUL, lines
 * separated by " | ". */
void presto__process_last_lines(const presto__process *process, char *text_out, size_t room);

#endif
