/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Messages, exit codes, stdout, signals.
 *
 * Everything that a program says about itself goes through here, so that all programs sound alike.
 */
#include "cli.h"

#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <presto/text.h>
#include <presto/version.h>

#include "pages.h"
#include "terminal.h"

/* After a signal: so long may a program wait for what cannot be interrupted, unless it says so. */
#define END_WITHIN_S 5

int cli_exit_code(presto_status status) {
    switch (status) {
    case PRESTO_OK:
    case PRESTO_END:
    case PRESTO_DROP:
        return CLI_DONE;
    case PRESTO_ERR_ARGUMENT:
        return CLI_USAGE;
    case PRESTO_ERR_TRUNCATED:
    case PRESTO_ERR_CORRUPT:
        return CLI_CORRUPT;
    case PRESTO_ERR_MEMORY:
    case PRESTO_ERR_IO:
    case PRESTO_ERR_SYNTAX:
    case PRESTO_ERR_NOT_FOUND:
    case PRESTO_ERR_UNSUPPORTED:
    case PRESTO_ERR_TYPE:
    case PRESTO_ERR_LIMIT:
    case PRESTO_ERR_RAGGED:
    case PRESTO_ERR_STOPPED:
    case PRESTO_ERR_BUSY:
    case PRESTO_ERR_FOREIGN:
        return CLI_FAILED;
    }
    return CLI_FAILED;
}

/* What --help and the manual pages say of exit codes. */
static const struct {
    const char *brief, *text;
} exits[] = {
    [CLI_DONE] = {"done", "All is done."},
    [CLI_FAILED] = {"failed", "Something failed. A line on standard error says what, and where."},
    [CLI_USAGE] = {"usage", "The command line is wrong, or does not fit the data."},
    [CLI_CORRUPT] = {"data corrupt", "Data are damaged, or end too early."},
    [CLI_OTHER_ADVICE] = {"with --check: the recommendation may be another one",
                          "With --check: the recommendation may be another one."},
};

const char *cli_exit_brief(int code) {
    return code < (int)(sizeof exits / sizeof exits[0]) ? exits[code].brief : NULL;
}

const char *cli_exit_text(int code) {
    return code < (int)(sizeof exits / sizeof exits[0]) ? exits[code].text : NULL;
}

/* ---- messages ---- */

/*
 * "NAME: ..." on one line, whatever names and messages contain. In one write, since other threads
 * and the other programs of a shell pipeline print on the same stderr.
 */
static void print_message(const char *format, va_list args) PRESTO_PRINTF(1, 0);

static void print_message(const char *format, va_list args) {
    char text[4096], line[sizeof text * PRESTO_SHOWN_BYTES];
    vsnprintf(text, sizeof text, format, args);
    size_t name = (size_t)snprintf(line, sizeof line, "%s: ", cli_program_name());
    presto_text_show(presto_span_of_text(text), line + name, sizeof line - name - 1);
    size_t bytes = strlen(line);
    line[bytes++] = '\n';
    cli_progress_hide();
    fwrite(line, 1, bytes, stderr);
}

_Noreturn void cli_usage(const char *format, ...) {
    va_list args;
    va_start(args, format);
    print_message(format, args);
    va_end(args);
    fprintf(stderr, "Try '%s --help'.\n", cli_program_name());
    exit(CLI_USAGE);
}

void cli_message(const char *format, ...) {
    va_list args;
    va_start(args, format);
    print_message(format, args);
    va_end(args);
}

void cli_warning(void *user, const presto_error *warning) {
    char text[PRESTO_ERROR_FILE_BYTES + PRESTO_ERROR_MESSAGE_BYTES + 96];
    (void)user;
    presto_error_format(warning, text, sizeof text);
    cli_message("%s", text);
}

int cli_error(const presto_error *err) {
    char text[PRESTO_ERROR_FILE_BYTES + PRESTO_ERROR_MESSAGE_BYTES + 96];
    presto_error_format(err, text, sizeof text);
    cli_message("%s", text);
    return cli_exit_code(err->status);
}

/* ---- stdout ---- */

int cli_close_stdout(int code) {
    if (fflush(stdout) == 0 && !ferror(stdout))
        return code;
    static bool is_told;
    int reason = errno;
    if (reason == EPIPE)
        return code;
    if (!is_told)
        cli_message("stdout: cannot write: %s", strerror(reason));
    is_told = true;
    return code == CLI_DONE ? CLI_FAILED : code;
}

static bool json_failed; /* memory ran out while an object was put together */

json_t *cli_json_new(void) {
    json_t *object = json_object();
    cli_json_set(object, "schema", json_integer(1));
    cli_json_set(object, "program", json_string(cli_program_name()));
    cli_json_set(object, "version", json_string(presto_version()));
    return object;
}

void cli_json_set(json_t *object, const char *key, json_t *value) {
    if (json_object_set_new(object, key, value) != 0)
        json_failed = true;
}

void cli_json_set_counts(json_t *object, const cli_count *counts, size_t count) {
    for (size_t i = 0; i < count; i++)
        cli_json_set(object, counts[i].key, json_integer((json_int_t)counts[i].count));
}

void cli_json_append(json_t *array, json_t *value) {
    if (json_array_append_new(array, value) != 0)
        json_failed = true;
}

bool cli_json_failed(void) {
    return json_failed;
}

json_t *cli_json_real(double value) {
    json_t *real = json_real(value); /* NULL for NaN and infinities */
    return real != NULL ? real : json_null();
}

void cli_print_notes(const presto_source *source) {
    size_t count;
    const char *const *notes = presto_source_notes(source, &count);
    for (size_t i = 0; i < count; i++)
        cli_put("note: %s\n", notes[i]);
}

int cli_print_json(json_t *object) {
    int code = CLI_DONE;
    char *text = json_failed || object == NULL ? NULL : cli_json_dump(object, JSON_INDENT(2));
    if (text != NULL) {
        puts(text);
    } else {
        cli_message("out of memory");
        code = CLI_FAILED;
    }
    free(text);
    json_decref(object);
    return cli_close_stdout(code);
}

/* ---- signals ---- */

static atomic_int caught_signal; /* free of locks, so that a handler may set it */

/*
 * The flag may be raised just before a blocking call; the alarm interrupts that call.
 */
static void on_alarm(int number) {
    (void)number;
    alarm(1);
}

static sem_t signalled; /* posted by the handler */

static void on_signal(int number) {
    int code = errno;
    caught_signal = number;
    alarm(1);
    (void)sem_post(&signalled);
    errno = code;
}

/*
 * A thread of the program may be inside a library, with a sample that takes minutes. The main
 * thread then waits for it in vain, or is that thread itself. So another thread waits for the
 * signal, and ends the program some seconds later, if it has not ended in order by then.
 */
static pthread_mutex_t end_lock = PTHREAD_MUTEX_INITIALIZER;
static cli_late_end late_end; /* guarded by end_lock */

static void *end_late(void *unused) {
    (void)unused;
    while (sem_wait(&signalled) != 0)
        continue;
    pthread_mutex_lock(&end_lock);
    struct timespec rest = {.tv_sec = late_end.after_s > 0 ? late_end.after_s : END_WITHIN_S};
    pthread_mutex_unlock(&end_lock);
    while (nanosleep(&rest, &rest) != 0)
        continue;
    pthread_mutex_lock(&end_lock);
    if (late_end.run != NULL)
        late_end.run(late_end.user);
    sigset_t caught;
    sigemptyset(&caught);
    sigaddset(&caught, caught_signal);
    pthread_sigmask(SIG_UNBLOCK, &caught, NULL);
    cli_reraise();
    return NULL;
}

/* Without the thread a program ends in order only. */
static void watch_end(void) {
    sigset_t all, before;
    pthread_t thread;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    if (sem_init(&signalled, 0, 0) == 0 && pthread_create(&thread, NULL, end_late, NULL) == 0)
        pthread_detach(thread);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

void cli_on_late_end(const cli_late_end *what) {
    pthread_mutex_lock(&end_lock);
    late_end = *what;
    pthread_mutex_unlock(&end_lock);
}

void cli_hold_end(void) {
    pthread_mutex_lock(&end_lock);
}

void cli_release_end(void) {
    pthread_mutex_unlock(&end_lock);
}

void cli_catch_signals(void) {
    static bool is_done;
    struct sigaction action;
    if (is_done)
        return;
    is_done = true;
#ifdef __SANITIZE_THREAD__ /* it loses a signal that arrives in a thread's first blocking call */
    nanosleep(&(struct timespec){.tv_nsec = 1}, NULL);
#endif
    watch_end();
    memset(&action, 0, sizeof action);
    sigemptyset(&action.sa_mask);
    action.sa_handler = on_alarm;
    sigaction(SIGALRM, &action, NULL);
    action.sa_handler = on_signal;
    action.sa_flags = (int)SA_RESETHAND; /* a second signal ends the program */
    static const int signals[] = {SIGINT, SIGTERM, SIGHUP};
    for (size_t i = 0; i < sizeof signals / sizeof signals[0]; i++) {
        struct sigaction before;
        /* Signals that the caller ignores (nohup, a shell's background job) stay ignored. */
        if (sigaction(signals[i], NULL, &before) == 0 && before.sa_handler != SIG_IGN)
            sigaction(signals[i], &action, NULL);
    }
}

bool cli_interrupted(void) {
    return caught_signal != 0;
}

uint64_t cli_now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

bool cli_should_stop(void *unused) {
    (void)unused;
    return cli_interrupted();
}

void cli_stop_conversion_late(void *dir) {
    (void)cli_stopped_conversion(dir);
}

int cli_stopped_conversion(const char *dir) {
    char kept[PATH_MAX];
    if (strstr(dir, "://") != NULL) { /* nobody is asked what stands there any more */
        cli_message("%s: stopped; the same command with --resume goes on from what is whole", dir);
        return CLI_FAILED;
    }
    int bytes = snprintf(kept, sizeof kept, "%s/.progress.json", dir);
    bool is_kept = bytes > 0 && (size_t)bytes < sizeof kept && access(kept, F_OK) == 0;
    cli_message(is_kept ? "%s: stopped; the same command with --resume goes on from here"
                        : "%s: stopped before a file was whole; nothing is kept",
                dir);
    return CLI_FAILED;
}

void cli_reraise(void) {
    if (caught_signal == 0)
        return;
    alarm(0);
    signal(caught_signal, SIG_DFL);
    raise(caught_signal);
}
