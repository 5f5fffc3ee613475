/* SPDX-License-Identifier: Apache-2.0 */
/*
 * posix_spawn() and not fork(): other threads may hold any lock. All ends of pipes are made
 * close-on-exec in one step, so that a process that another thread starts does not inherit them:
 * a pipe whose writing end is open elsewhere never ends.
 */
#define _GNU_SOURCE /* pipe2, F_SETPIPE_SZ, posix_spawn_file_actions_addclosefrom_np, memmem */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "clock_internal.h"
#include "file_internal.h"
#include "process_internal.h"

enum {
    SLICE_MS = 50,        /* between two questions whether to stop */
    PIPE_BYTES = 1 << 20, /* what an ordinary user may ask for */
    FIRST_FREE_FILE = 3,
    MOST_KILL_ROUNDS = 100, /* over /proc: what starts others while it is killed takes a few */
    MOST_FLOOD_READS = 64   /* of stderr, before stdout has its turn */
};

/* ---- finding a program ---- */

static bool is_program(const char *path) {
    struct stat info;
    return stat(path, &info) == 0 && S_ISREG(info.st_mode) && access(path, X_OK) == 0;
}

char *presto__program_find(const char *name) {
    if (strchr(name, '/') != NULL)
        return is_program(name) ? strdup(name) : NULL;
    const char *folders = getenv("PATH");
    for (const char *at = folders == NULL ? "/usr/local/bin:/usr/bin:/bin" : folders;;) {
        size_t bytes = strcspn(at, ":");
        size_t room = bytes + strlen(name) + 3;
        char *path = malloc(room);
        if (path == NULL)
            return NULL;
        snprintf(path, room, "%.*s/%s", bytes == 0 ? 1 : (int)bytes, bytes == 0 ? "." : at, name);
        if (is_program(path))
            return path;
        free(path);
        if (at[bytes] == '\0')
            return NULL;
        at += bytes + 1;
    }
}

/* ---- starting ---- */

static void close_file(int *file) {
    if (*file >= 0)
        close(*file);
    *file = -1;
}

/* The program's own three files may be closed: a pipe must not take their numbers, which the
 * child's files get. */
static int move_up(int *file) {
    if (*file >= FIRST_FREE_FILE)
        return 0;
    int moved = fcntl(*file, F_DUPFD_CLOEXEC, FIRST_FREE_FILE);
    if (moved < 0)
        return errno;
    close(*file);
    *file = moved;
    return 0;
}

/* Three pipes; ours[i] and theirs[i] are the ends for the child's file i. */
typedef struct pipes {
    int ours[3], theirs[3];
} pipes;

static void close_pipes(pipes *p) {
    for (int i = 0; i < 3; i++) {
        close_file(&p->ours[i]);
        close_file(&p->theirs[i]);
    }
}

/* The pipe for the child's file i. */
static int open_pipe(pipes *p, int i) {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0)
        return errno;
    p->ours[i] = ends[i == 0 ? 1 : 0];
    p->theirs[i] = ends[i == 0 ? 0 : 1];
    int failed = move_up(&p->ours[i]);
    if (failed == 0)
        failed = move_up(&p->theirs[i]);
    if (failed == 0 && fcntl(p->ours[i], F_SETFL, O_NONBLOCK) != 0)
        failed = errno;
    return failed;
}

static int open_pipes(pipes *p) {
    *p = (pipes){{-1, -1, -1}, {-1, -1, -1}};
    int failed = 0;
    for (int i = 0; i < 3 && failed == 0; i++)
        failed = open_pipe(p, i);
    return failed;
}

static int add_files(posix_spawn_file_actions_t *actions, const pipes *p) {
    int failed = 0;
    for (int i = 0; i < 3 && failed == 0; i++)
        failed = posix_spawn_file_actions_adddup2(actions, p->theirs[i], i);
#if defined(__GLIBC__) && __GLIBC_PREREQ(2, 34)
    /* Also those that others have opened without close-on-exec. */
    if (failed == 0)
        failed = posix_spawn_file_actions_addclosefrom_np(actions, FIRST_FREE_FILE);
#endif
    return failed;
}

static int set_attributes(posix_spawnattr_t *attributes, pid_t group) {
    sigset_t none, defaults;
    sigemptyset(&none);
    sigfillset(&defaults);
    int failed = posix_spawnattr_setsigmask(attributes, &none);
    if (failed == 0)
        failed = posix_spawnattr_setsigdefault(attributes, &defaults);
    if (failed == 0)
        failed = posix_spawnattr_setpgroup(attributes, group);
    if (failed == 0)
        failed = posix_spawnattr_setflags(
            attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP);
    return failed;
}

/* What is started with the pipes as its first three files, in the process group `group` (0: a new
 * one). */
typedef struct started {
    const char *path;
    const char *const *argv;
    char *const *environment;
    pid_t group;
} started;

static int spawn(const started *what, const pipes *p, pid_t *pid_out) {
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    int failed = posix_spawn_file_actions_init(&actions);
    if (failed != 0)
        return failed;
    failed = posix_spawnattr_init(&attributes);
    if (failed == 0) {
        failed = add_files(&actions, p);
        if (failed == 0)
            failed = set_attributes(&attributes, what->group);
        if (failed == 0)
            failed = posix_spawn(pid_out, what->path, &actions, &attributes,
                                 (char *const *)what->argv, what->environment);
        posix_spawnattr_destroy(&attributes);
    }
    posix_spawn_file_actions_destroy(&actions);
    return failed;
}

/* ---- the mark ---- */

#define MARK_VARIABLE "PRESTO_WORKER="

presto__family presto__family_new(void) {
    presto__family family;
    snprintf(family.name, sizeof family.name, "%016" PRIx64, presto__random_name());
    return family;
}

/*
 * This program's environment with the mark. If it has a mark itself, because it is the worker of
 * another one, that stays in front, so that both are found. Frees with free().
 */
static char **marked_environment(const char *mark) {
    size_t count = 0, prefix = sizeof MARK_VARIABLE - 1;
    const char *outer = "";
    while (environ != NULL && environ[count] != NULL)
        count++;
    for (size_t i = 0; i < count; i++)
        if (strncmp(environ[i], MARK_VARIABLE, prefix) == 0)
            outer = environ[i] + prefix;
    size_t text_bytes = prefix + strlen(outer) + 1 + strlen(mark) + 1;
    char **copy = malloc((count + 2) * sizeof *copy + text_bytes);
    if (copy == NULL)
        return NULL;
    char *text = (char *)(copy + count + 2);
    snprintf(text, text_bytes, MARK_VARIABLE "%s%s%s", outer, outer[0] == '\0' ? "" : ":", mark);
    size_t kept = 0;
    for (size_t i = 0; i < count; i++)
        if (strncmp(environ[i], MARK_VARIABLE, prefix) != 0)
            copy[kept++] = environ[i];
    copy[kept++] = text;
    copy[kept] = NULL;
    return copy;
}

/* Has the process `name` of /proc the mark in the environment that it was started with? */
static bool is_marked(int proc, const char *name, const char *mark) {
    char path[32], text[16384];
    size_t mark_bytes = strlen(mark), kept = 0;
    snprintf(path, sizeof path, "%.16s/environ", name);
    int file = openat(proc, path, O_RDONLY | O_CLOEXEC);
    bool is_found = false;
    for (ssize_t got = 1; file >= 0 && got > 0 && !is_found;) {
        got = read(file, text + kept, sizeof text - kept);
        size_t bytes = kept + (got > 0 ? (size_t)got : 0);
        is_found = memmem(text, bytes, mark, mark_bytes) != NULL;
        kept = bytes < mark_bytes ? bytes : mark_bytes;
        memmove(text, text + bytes - kept, kept);
    }
    if (file >= 0)
        close(file);
    return is_found;
}

void presto__process_kill_marked(const char *mark) {
    bool is_any = true;
    for (int round = 0; round < MOST_KILL_ROUNDS && is_any; round++) {
        DIR *proc = opendir("/proc");
        is_any = false;
        if (proc == NULL)
            return;
        for (const struct dirent *entry; (entry = readdir(proc)) != NULL;) {
            pid_t pid = isdigit((unsigned char)entry->d_name[0]) ? (pid_t)atoi(entry->d_name) : 0;
            if (pid <= 1 || pid == getpid() || !is_marked(dirfd(proc), entry->d_name, mark))
                continue;
            is_any = kill(pid, SIGKILL) == 0 || is_any;
        }
        closedir(proc);
        if (is_any && round > 0) /* what was killed takes a moment to end */
            (void)nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    }
}

/* ---- the guard ---- */

/* Waits for the end of its stdin; then kills all that have the mark, and its group with itself. */
static const char guard_script[] =
    "read -r line\n"
    "for round in 1 2 3 4 5 6 7 8; do\n"
    "    found=$(grep -ls \"$1\" /proc/[0-9]*/environ)\n"
    "    [ -n \"$found\" ] || break\n"
    "    for file in $found; do file=${file#/proc/}; kill -9 \"${file%/environ}\"; done\n"
    "done\n"
    "kill -9 0\n";

/* Starts the guard of the process, if the system has a shell. */
static int start_guard(presto__process *process) {
    const char *const argv[] = {"presto-guard", "-c",          guard_script,
                                "presto-guard", process->mark, NULL};
    const started what = {.path = "/bin/sh", .argv = argv, .environment = environ};
    pipes p = {{-1, -1, -1}, {-1, -1, -1}};
    if (access(what.path, X_OK) != 0)
        return 0;
    int failed = open_pipe(&p, 0);
    for (int i = 1; i < 3 && failed == 0; i++) {
        p.theirs[i] = open("/dev/null", O_WRONLY | O_CLOEXEC);
        failed = p.theirs[i] < 0 ? errno : move_up(&p.theirs[i]);
    }
    if (failed == 0)
        failed = spawn(&what, &p, &process->guard);
    if (failed == 0) {
        process->watched = p.ours[0];
        p.ours[0] = -1;
    }
    close_pipes(&p);
    return failed;
}

/* Ends the guard, and with it all that is left of its group. The guard is not waited for before, so
 * its number names the group. */
static void end_guard(presto__process *process) {
    close_file(&process->watched);
    if (process->guard == 0)
        return;
    (void)kill(-process->guard, SIGKILL);
    while (waitpid(process->guard, NULL, 0) < 0 && errno == EINTR)
        continue;
    process->guard = 0;
}

presto_status presto__process_start(const char *path, const char *const *argv,
                                    const presto__family *family, presto__process *process_out,
                                    presto_error *err) {
    presto__process process = {.input = -1, .output = -1, .errors = -1, .watched = -1};
    snprintf(process.mark, sizeof process.mark, "%s-%08" PRIx32, family->name,
             (uint32_t)presto__random_name());
    char **environment = marked_environment(process.mark);
    if (environment == NULL)
        return presto_fail_memory(err, 0);
    pipes p;
    int failed = open_pipes(&p);
    if (failed == 0)
        failed = start_guard(&process);
    const started what = {path, argv, environment, process.guard};
    if (failed == 0)
        failed = spawn(&what, &p, &process.pid);
    free(environment);
    if (failed != 0) {
        close_pipes(&p);
        end_guard(&process);
        return presto_fail_errno(err, failed, NULL, "cannot start %s", path);
    }
    process.input = p.ours[0];
    process.output = p.ours[1];
    process.errors = p.ours[2];
    *process_out = process;
    for (int i = 0; i < 3; i++)
        close_file(&p.theirs[i]);
    return PRESTO_OK;
}

/* ---- sending and receiving ---- */

static bool is_later(int code) {
    return code == EAGAIN || code == EINTR
#if EWOULDBLOCK != EAGAIN
           || code == EWOULDBLOCK
#endif
        ;
}

static void keep_tail(presto__process *process, const char *text, size_t bytes) {
    size_t room = sizeof process->tail;
    if (bytes > room) {
        text += bytes - room;
        bytes = room;
    }
    size_t keep = process->tail_bytes;
    if (keep > room - bytes)
        keep = room - bytes;
    memmove(process->tail, process->tail + process->tail_bytes - keep, keep);
    memcpy(process->tail + keep, text, bytes);
    process->tail_bytes = keep + bytes;
}

/* Read what stderr holds. */
static void drain_errors(presto__process *process) {
    char text[PRESTO__PROCESS_TAIL_BYTES];
    for (int i = 0; i < MOST_FLOOD_READS && process->errors >= 0; i++) {
        ssize_t bytes = read(process->errors, text, sizeof text);
        if (bytes < 0 && is_later(errno))
            break;
        if (bytes <= 0)
            close_file(&process->errors);
        else
            keep_tail(process, text, (size_t)bytes);
    }
}

/* As write(), without SIGPIPE: nobody else has asked for that signal. */
static ssize_t write_quietly(int file, presto_span bytes) {
    sigset_t only_pipe, before, pending;
    sigemptyset(&only_pipe);
    sigaddset(&only_pipe, SIGPIPE);
    pthread_sigmask(SIG_BLOCK, &only_pipe, &before);
    ssize_t written = write(file, bytes.data, bytes.bytes);
    int code = errno;
    if (written < 0 && code == EPIPE && !sigismember(&before, SIGPIPE)) {
        const struct timespec now = {0};
        sigpending(&pending);
        if (sigismember(&pending, SIGPIPE))
            (void)sigtimedwait(&only_pipe, NULL, &now);
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    errno = code;
    return written;
}

static presto__process_event send_some(presto__process *process, presto_span *unsent_io,
                                       bool *moved_io) {
    if (unsent_io->bytes == 0)
        return PRESTO__PROCESS_MOVED;
    ssize_t bytes = process->input < 0 ? 0 : write_quietly(process->input, *unsent_io);
    if (process->input < 0 || (bytes < 0 && errno == EPIPE))
        return PRESTO__PROCESS_CLOSED;
    if (bytes < 0)
        return is_later(errno) ? PRESTO__PROCESS_MOVED : PRESTO__PROCESS_FAILED;
    unsent_io->data += bytes;
    unsent_io->bytes -= (size_t)bytes;
    *moved_io = *moved_io || bytes > 0;
    return PRESTO__PROCESS_MOVED;
}

static presto__process_event receive_some(presto__process *process, presto_buffer *in,
                                          bool *moved_io) {
    ssize_t bytes = read(process->output, in->data + in->bytes, in->capacity - in->bytes);
    if (bytes == 0)
        return PRESTO__PROCESS_CLOSED;
    if (bytes < 0)
        return is_later(errno) ? PRESTO__PROCESS_MOVED : PRESTO__PROCESS_FAILED;
    in->bytes += (size_t)bytes;
    *moved_io = true;
    return PRESTO__PROCESS_MOVED;
}

/* The milliseconds to wait at most; -1: the deadline is over. */
static int next_slice(const presto__process_wait *wait) {
    uint64_t now = presto__clock_ns();
    if (now >= wait->deadline_ns)
        return -1;
    uint64_t left_ms = (wait->deadline_ns - now) / 1000000 + 1;
    return left_ms < SLICE_MS ? (int)left_ms : SLICE_MS;
}

/* Wait for one slice, and move what can be moved. */
static presto__process_event move_slice(presto__process *process, presto_span *unsent_io,
                                        presto_buffer *in, int slice_ms, bool *moved_io) {
    struct pollfd files[] = {
        {.fd = process->output, .events = POLLIN},
        {.fd = process->errors, .events = POLLIN},
        {.fd = unsent_io->bytes > 0 ? process->input : -1, .events = POLLOUT},
    };
    presto__process_event event = PRESTO__PROCESS_MOVED;
    if (poll(files, sizeof files / sizeof files[0], slice_ms) < 0)
        return is_later(errno) ? PRESTO__PROCESS_MOVED : PRESTO__PROCESS_FAILED;
    if (files[1].revents != 0)
        drain_errors(process);
    if (files[2].revents != 0)
        event = send_some(process, unsent_io, moved_io);
    if (files[0].revents != 0 && event == PRESTO__PROCESS_MOVED)
        event = receive_some(process, in, moved_io);
    return event;
}

presto__process_event presto__process_move(presto__process *process, presto_span *unsent_io,
                                           presto_buffer *in, const presto__process_wait *wait) {
    bool moved = false;
    presto__process_event event = send_some(process, unsent_io, &moved);
    while (event == PRESTO__PROCESS_MOVED) {
        int slice = next_slice(wait);
        if (wait->stop != NULL && wait->stop(wait->stop_user))
            return PRESTO__PROCESS_STOPPED;
        if (slice < 0)
            return PRESTO__PROCESS_LATE;
        event = move_slice(process, unsent_io, in, slice, &moved);
        if (moved)
            break;
    }
    return event;
}

void presto__process_grow(presto__process *process) {
#ifdef F_SETPIPE_SZ
    if (!process->grown && process->input >= 0) {
        (void)fcntl(process->input, F_SETPIPE_SZ, PIPE_BYTES);
        (void)fcntl(process->output, F_SETPIPE_SZ, PIPE_BYTES);
    }
#endif
    process->grown = true;
}

/* ---- its end ---- */

void presto__process_finish(presto__process *process) {
    close_file(&process->input);
}

/* Has it ended? It stays a zombie, so that its number is not taken by another process. */
static bool has_ended(const presto__process *process) {
    siginfo_t info = {0};
    int failed;
    do
        failed = waitid(P_PID, (id_t)process->pid, &info, WEXITED | WNOHANG | WNOWAIT);
    while (failed != 0 && errno == EINTR);
    return failed != 0 || info.si_pid != 0;
}

/* Read and forget, for the time in which it ends. */
static void drain_output(presto__process *process) {
    char bytes[4096];
    for (int i = 0; i < MOST_FLOOD_READS && process->output >= 0; i++) {
        ssize_t got = read(process->output, bytes, sizeof bytes);
        if (got < 0 && is_later(errno))
            return;
        if (got <= 0)
            close_file(&process->output);
    }
}

int presto__process_end(presto__process *process, uint64_t most_ns) {
    int status = -1;
    if (process->pid == 0)
        return status;
    presto__process_finish(process);
    uint64_t start = presto__clock_ns();
    struct timespec pause = {.tv_nsec = 100000};
    while (!has_ended(process) && presto__clock_ns() - start < most_ns) {
        drain_errors(process);
        drain_output(process);
        (void)nanosleep(&pause, NULL);
        if (pause.tv_nsec < 10000000)
            pause.tv_nsec *= 2;
    }
    (void)kill(process->pid, SIGKILL);
    (void)kill(process->guard != 0 ? -process->guard : -process->pid, SIGKILL);
    while (waitpid(process->pid, &status, 0) < 0) {
        if (errno != EINTR) {
            status = -1; /* the program ignores SIGCHLD */
            break;
        }
    }
    end_guard(process);
    drain_errors(process);
    close_file(&process->output);
    close_file(&process->errors);
    process->pid = 0;
    return status;
}

void presto__process_last_lines(const presto__process *process, char *text_out, size_t room) {
    static const char between[] = " | ";
    const char *start = process->tail, *end = process->tail + process->tail_bytes;
    while (end > start && (end[-1] == '\n' || end[-1] == '\r' || end[-1] == ' '))
        end--;
    /* Back by whole lines, as long as they fit. */
    const char *from = end;
    size_t wanted = 1;
    for (const char *at = end; at > start;) {
        const char *line = at;
        while (line > start && line[-1] != '\n')
            line--;
        wanted += (size_t)(at - line) + sizeof between;
        if (wanted > room)
            break;
        from = line;
        at = line > start ? line - 1 : line;
    }
    if (from == end && end > start) /* its last line alone is too long */
        from = (size_t)(end - start) < room ? start : end - room + 1;
    size_t used = 0;
    for (const char *at = from; at < end; at++) {
        const char *put = *at == '\n' ? between : at;
        size_t bytes = *at == '\n' ? sizeof between - 1 : 1;
        if (used + bytes >= room)
            break;
        memcpy(text_out + used, put, bytes);
        used += bytes;
    }
    text_out[used] = '\0';
}
