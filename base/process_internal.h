/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Another program that runs beside this one, with a pipe to its stdin and pipes from its stdout and
 * stderr. It has a process group of its own, so Ctrl-C reaches this program only. It gets no other
 * open file of this program, an empty signal mask and the default handling of signals.
 *
 * All that it has started ends with it, also what has left its process group: the environment of
 * the program has a mark, which its descendants inherit and by which they are found in /proc. The
 * leader of the group is a shell, the guard. It waits for the end of a pipe that only this program
 * holds, and does the same if this program is killed.
 *
 * Threads: one at a time uses a process; any number start theirs at once.
 */
#ifndef PRESTO_BASE_PROCESS_INTERNAL_H
#define PRESTO_BASE_PROCESS_INTERNAL_H

#include <sys/types.h>

#include <presto/span.h>

#define PRESTO__PROCESS_TAIL_BYTES 2048
#define PRESTO__FAMILY_BYTES 17 /* with the NUL */
#define PRESTO__MARK_BYTES (PRESTO__FAMILY_BYTES + 17)

/** A name that several processes have in common: random, so that no other process has it. */
typedef struct presto__family {
    char name[PRESTO__FAMILY_BYTES];
} presto__family;

presto__family presto__family_new(void);

typedef struct presto__process {
    pid_t pid;   /* 0: none runs */
    pid_t guard; /* the leader of its group; 0: it leads a group itself, for there is no shell */
    int watched; /* the guard's pipe; -1: closed */
    int input;   /* ends of the pipes, none of which blocks; -1: closed */
    int output;
    int errors;
    bool grown; /* the pipes have been asked to hold more */
    size_t tail_bytes;
    char tail[PRESTO__PROCESS_TAIL_BYTES]; /* the last that came from its stderr */
    char mark[PRESTO__MARK_BYTES];         /* begins with the name of the family */
} presto__process;

/**
 * The file that runs as `name`: itself if it has a slash, else the first executable file of that
 * name in the folders of PATH. On the heap; NULL: there is none, or no memory.
 */
char *presto__program_find(const char *name);

/**
 * Start the program `path` with the arguments `argv`, which end with NULL, as one of the family.
 * Returns: PRESTO_ERR_IO, PRESTO_ERR_MEMORY with sys_errno; the message names the path.
 */
presto_status presto__process_start(const char *path, const char *const *argv,
                                    const presto__family *family, presto__process *process_out,
                                    presto_error *err);

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
 * Wait for its end, for `most_ns` at most; then kill it and all that is left of its group. Closes
 * the pipes. What it writes meanwhile is read, so that it does not wait. Call
 * presto__process_kill_marked afterwards, once for several processes.
 * Returns: its status as waitpid() gives it; -1: unknown.
 */
int presto__process_end(presto__process *process, uint64_t most_ns);

/** Kill all processes of this user whose mark begins with `mark`: a family's name, or the mark of
 * one process. */
void presto__process_kill_marked(const char *mark);

/** What stderr had last: whole lines if possible, at most `room` bytes with the NUL, lines
 * separated by " | ". */
void presto__process_last_lines(const presto__process *process, char *text_out, size_t room);

#endif
