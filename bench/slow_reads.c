/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Preloaded into a program (LD_PRELOAD): reads of files below a folder take longer, as on a storage
 * that is far away. Threads that read sleep; nothing else is played, so that a loader sees what it
 * sees of any slow storage.
 *
 * PRESTO_SLOW_UNDER=FOLDER  an absolute path; without it nothing is slow
 * PRESTO_SLOW_US=N          each read takes N microseconds longer
 * PRESTO_SLOW_MOST=N        so many reads at once, the others wait for them; 0: any number
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

#define FILES_MOST 65536

static atomic_bool is_slow[FILES_MOST];
static const char *under;
static long slow_us;
static bool is_limited;
static sem_t places;

static long number(const char *name) {
    const char *text = getenv(name);
    return text != NULL ? strtol(text, NULL, 10) : 0;
}

__attribute__((constructor)) static void start(void) {
    under = getenv("PRESTO_SLOW_UNDER");
    slow_us = number("PRESTO_SLOW_US");
    long most = number("PRESTO_SLOW_MOST");
    is_limited = most > 0 && sem_init(&places, 0, (unsigned)most) == 0;
}

/* The C library's own function of that name. */
#define REAL(name) ((__typeof__(&(name)))real(#name, &(static_##name)))
#define DECLARE(name) static void *_Atomic static_##name

static void *real(const char *name, void *_Atomic *cache) {
    void *function = atomic_load(cache);
    if (function == NULL) {
        function = dlsym(RTLD_NEXT, name);
        atomic_store(cache, function);
    }
    return function;
}

/* ---- which files ---- */

static int note_open(int file, const char *path) {
    if (file >= 0 && file < FILES_MOST)
        atomic_store(&is_slow[file], under != NULL && strncmp(path, under, strlen(under)) == 0);
    return file;
}

/* The mode is there only if a file may be made. */
#define OPEN_AS(name)                                                                              \
    DECLARE(name);                                                                                 \
    int name(const char *path, int flags, ...) {                                                   \
        va_list arguments;                                                                         \
        va_start(arguments, flags);                                                                \
        mode_t mode = (flags & (O_CREAT | O_TMPFILE)) != 0 ? va_arg(arguments, mode_t) : 0;        \
        va_end(arguments);                                                                         \
        return note_open(REAL(name)(path, flags, mode), path);                                     \
    }
OPEN_AS(open)
OPEN_AS(open64)

/* ---- reads ---- */

static void be_slow(int file) {
    if (file < 0 || file >= FILES_MOST || !atomic_load(&is_slow[file]))
        return;
    const struct timespec nap = {.tv_sec = slow_us / 1000000, .tv_nsec = slow_us % 1000000 * 1000};
    while (is_limited && sem_wait(&places) != 0) {}
    (void)nanosleep(&nap, NULL);
    if (is_limited)
        (void)sem_post(&places);
}

DECLARE(pread);
ssize_t pread(int file, void *room, size_t bytes, off_t offset) {
    be_slow(file);
    return REAL(pread)(file, room, bytes, offset);
}

DECLARE(pread64);
ssize_t pread64(int file, void *room, size_t bytes, off64_t offset) {
    be_slow(file);
    return REAL(pread64)(file, room, bytes, offset);
}

DECLARE(read);
ssize_t read(int file, void *room, size_t bytes) {
    be_slow(file);
    return REAL(read)(file, room, bytes);
}
