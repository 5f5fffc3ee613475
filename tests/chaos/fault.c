/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Preloaded into a program (LD_PRELOAD): makes one chosen call of the C library fail.
 *
 * PRESTO_FAULT=CALL:K:WHAT, where K counts the program's calls of CALL from 1 and WHAT is
 *   an errno        the K-th call fails with it ("5")
 *   an errno and +  the K-th and all later ones fail with it ("28+")
 *   short           the K-th moves one byte (read, write and similar calls)
 *   kill, term, int the signal arrives just before the K-th call
 *   stuck           SIGINT arrives just before the K-th call, which then never returns
 *   late            the K-th call begins after half a second
 * PRESTO_FAULT_COUNTS=FILE: at exit, the number of calls of each kind, one "CALL N" a line.
 * Programs that the program starts see neither.
 *
 * Calls of the same kind count together (malloc, calloc, realloc and aligned_alloc; open, openat
 * and fopen; ...). Not touched are: output on stderr, calls that the C library makes itself, and
 * the memory of jansson. Version 2.14 of jansson reads past a string's end if it cannot grow its
 * buffer.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

enum call {
    MALLOC,
    OPEN,
    READ,
    WRITE,
    SYNC,
    CLOSE,
    RENAME,
    UNLINK,
    MKDIR,
    MAP,
    STAT,
    FOLDER,
    THREAD,
    LOCK,
    PROCESS,
    SEEK,
    CALLS
};
static const char *const names[CALLS] = {"malloc", "open",   "read",    "write", "sync", "close",
                                         "rename", "unlink", "mkdir",   "map",   "stat", "folder",
                                         "thread", "lock",   "process", "seek"};

enum what { NOTHING, FAIL, SHORT, SIGNAL };

static atomic_long counts[CALLS];
static int chosen = -1;
static long chosen_number;
static bool from_then_on;
static int fault_errno, fault_signal;
static bool one_byte, is_stuck, is_late;
static char counts_file[4096];

/* The address range of jansson's code; set before there are threads. */
static uintptr_t jansson_begin, jansson_end;

static int find_jansson(struct dl_phdr_info *library, size_t bytes, void *user) {
    (void)bytes;
    (void)user;
    if (strstr(library->dlpi_name, "libjansson") == NULL)
        return 0;
    jansson_begin = library->dlpi_addr;
    for (int i = 0; i < library->dlpi_phnum; i++)
        if (library->dlpi_phdr[i].p_type == PT_LOAD)
            jansson_end =
                library->dlpi_addr + library->dlpi_phdr[i].p_vaddr + library->dlpi_phdr[i].p_memsz;
    return 1;
}

__attribute__((constructor)) static void start(void) {
    const char *text = getenv("PRESTO_FAULT");
    char call[16], what[16];
    dl_iterate_phdr(find_jansson, NULL);
    if (getenv("PRESTO_FAULT_COUNTS") != NULL)
        snprintf(counts_file, sizeof counts_file, "%s", getenv("PRESTO_FAULT_COUNTS"));
    unsetenv("PRESTO_FAULT_COUNTS");
    for (int i = 0; i < CALLS; i++)
        atomic_store(&counts[i], 0);
    if (text == NULL || sscanf(text, "%15[a-z]:%ld:%15s", call, &chosen_number, what) != 3)
        return;
    unsetenv("PRESTO_FAULT");
    if (strcmp(what, "short") == 0)
        one_byte = true;
    else if (strcmp(what, "late") == 0)
        is_late = true;
    else if (strcmp(what, "kill") == 0)
        fault_signal = SIGKILL;
    else if (strcmp(what, "term") == 0)
        fault_signal = SIGTERM;
    else if (strcmp(what, "int") == 0)
        fault_signal = SIGINT;
    else if ((is_stuck = strcmp(what, "stuck") == 0))
        fault_signal = SIGINT;
    else {
        char *end;
        fault_errno = (int)strtol(what, &end, 10);
        from_then_on = *end == '+';
    }
    for (int i = 0; i < CALLS; i++)
        if (strcmp(names[i], call) == 0)
            chosen = i;
}

__attribute__((destructor)) static void finish(void) {
    chosen = -1;
    FILE *file = counts_file[0] == '\0' ? NULL : fopen(counts_file, "w");
    if (file == NULL)
        return;
    for (int i = 0; i < CALLS; i++)
        fprintf(file, "%s %ld\n", names[i], atomic_load(&counts[i]));
    fclose(file);
}

static enum what next(enum call call) {
    long number = atomic_fetch_add(&counts[call], 1) + 1;
    if ((int)call != chosen ||
        !(number == chosen_number || (from_then_on && number > chosen_number)))
        return NOTHING;
    if (fault_signal != 0) {
        kill(getpid(), fault_signal);
        while (is_stuck)
            pause();
        return SIGNAL;
    }
    if (one_byte)
        return SHORT;
    if (is_late) {
        nanosleep(&(struct timespec){.tv_nsec = 500000000}, NULL);
        return NOTHING;
    }
    errno = fault_errno;
    return FAIL;
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

/* ---- memory: by the library's other names, as dlsym may allocate ---- */

void *__libc_malloc(size_t bytes);
void *__libc_calloc(size_t count, size_t bytes);
void *__libc_realloc(void *old, size_t bytes);
void *__libc_memalign(size_t align, size_t bytes);

static bool fails(const void *caller) {
    uintptr_t at = (uintptr_t)caller;
    return !(at >= jansson_begin && at < jansson_end) && next(MALLOC) == FAIL;
}

void *malloc(size_t bytes) {
    return fails(__builtin_return_address(0)) ? NULL : __libc_malloc(bytes);
}

void *calloc(size_t count, size_t bytes) {
    return fails(__builtin_return_address(0)) ? NULL : __libc_calloc(count, bytes);
}

void *realloc(void *old, size_t bytes) {
    return fails(__builtin_return_address(0)) ? NULL : __libc_realloc(old, bytes);
}

void *aligned_alloc(size_t align, size_t bytes) {
    return fails(__builtin_return_address(0)) ? NULL : __libc_memalign(align, bytes);
}

/* ---- files ---- */

DECLARE(open64);
int open64(const char *path, int flags, ...) {
    va_list args;
    va_start(args, flags);
    mode_t mode = (flags & (O_CREAT | O_TMPFILE)) != 0 ? va_arg(args, mode_t) : 0;
    va_end(args);
    return next(OPEN) == FAIL ? -1 : REAL(open64)(path, flags, mode);
}

DECLARE(openat64);
int openat64(int dir, const char *path, int flags, ...) {
    va_list args;
    va_start(args, flags);
    mode_t mode = (flags & (O_CREAT | O_TMPFILE)) != 0 ? va_arg(args, mode_t) : 0;
    va_end(args);
    return next(OPEN) == FAIL ? -1 : REAL(openat64)(dir, path, flags, mode);
}

DECLARE(fopen64);
FILE *fopen64(const char *path, const char *mode) {
    return next(OPEN) == FAIL ? NULL : REAL(fopen64)(path, mode);
}

DECLARE(read);
ssize_t read(int fd, void *data, size_t bytes) {
    enum what what = next(READ);
    return what == FAIL ? -1 : REAL(read)(fd, data, what == SHORT && bytes > 1 ? 1 : bytes);
}

DECLARE(pread64);
ssize_t pread64(int fd, void *data, size_t bytes, off64_t offset) {
    enum what what = next(READ);
    return what == FAIL ? -1
                        : REAL(pread64)(fd, data, what == SHORT && bytes > 1 ? 1 : bytes, offset);
}

DECLARE(write);
ssize_t write(int fd, const void *data, size_t bytes) {
    enum what what = fd == STDERR_FILENO ? NOTHING : next(WRITE);
    return what == FAIL ? -1 : REAL(write)(fd, data, what == SHORT && bytes > 1 ? 1 : bytes);
}

DECLARE(pwrite64);
ssize_t pwrite64(int fd, const void *data, size_t bytes, off64_t offset) {
    enum what what = next(WRITE);
    return what == FAIL ? -1
                        : REAL(pwrite64)(fd, data, what == SHORT && bytes > 1 ? 1 : bytes, offset);
}

DECLARE(ftruncate64);
int ftruncate64(int fd, off64_t bytes) {
    return next(WRITE) == FAIL ? -1 : REAL(ftruncate64)(fd, bytes);
}

DECLARE(writev);
ssize_t writev(int fd, const struct iovec *pieces, int count) {
    enum what what = fd == STDERR_FILENO ? NOTHING : next(WRITE);
    if (what == FAIL)
        return -1;
    for (int i = 0; what == SHORT && i < count; i++)
        if (pieces[i].iov_len > 0)
            return write(fd, pieces[i].iov_base, 1);
    return REAL(writev)(fd, pieces, count);
}

DECLARE(lseek64);
off64_t lseek64(int fd, off64_t offset, int whence) {
    return next(SEEK) == FAIL ? -1 : REAL(lseek64)(fd, offset, whence);
}

DECLARE(fsync);
int fsync(int fd) {
    return next(SYNC) == FAIL ? -1 : REAL(fsync)(fd);
}

DECLARE(fdatasync);
int fdatasync(int fd) {
    return next(SYNC) == FAIL ? -1 : REAL(fdatasync)(fd);
}

/* As on NFS: the descriptor is closed anyway. */
DECLARE(close);
int close(int fd) {
    bool fail = next(CLOSE) == FAIL;
    int code = errno, result = REAL(close)(fd);
    if (!fail)
        return result;
    errno = code;
    return -1;
}

DECLARE(rename);
int rename(const char *from, const char *to) {
    return next(RENAME) == FAIL ? -1 : REAL(rename)(from, to);
}

DECLARE(renameat);
int renameat(int from_dir, const char *from, int to_dir, const char *to) {
    return next(RENAME) == FAIL ? -1 : REAL(renameat)(from_dir, from, to_dir, to);
}

DECLARE(unlink);
int unlink(const char *path) {
    return next(UNLINK) == FAIL ? -1 : REAL(unlink)(path);
}

DECLARE(unlinkat);
int unlinkat(int dir, const char *path, int flags) {
    return next(UNLINK) == FAIL ? -1 : REAL(unlinkat)(dir, path, flags);
}

DECLARE(mkdir);
int mkdir(const char *path, mode_t mode) {
    return next(MKDIR) == FAIL ? -1 : REAL(mkdir)(path, mode);
}

DECLARE(mmap64);
void *mmap64(void *at, size_t bytes, int access, int flags, int fd, off64_t offset) {
    return next(MAP) == FAIL ? MAP_FAILED : REAL(mmap64)(at, bytes, access, flags, fd, offset);
}

DECLARE(stat64);
int stat64(const char *path, struct stat64 *out) {
    return next(STAT) == FAIL ? -1 : REAL(stat64)(path, out);
}

DECLARE(fstatat64);
int fstatat64(int dir, const char *path, struct stat64 *out, int flags) {
    return next(STAT) == FAIL ? -1 : REAL(fstatat64)(dir, path, out, flags);
}

DECLARE(fstat64);
int fstat64(int fd, struct stat64 *out) {
    return next(STAT) == FAIL ? -1 : REAL(fstat64)(fd, out);
}

DECLARE(lstat64);
int lstat64(const char *path, struct stat64 *out) {
    return next(STAT) == FAIL ? -1 : REAL(lstat64)(path, out);
}

DECLARE(flock);
int flock(int fd, int operation) {
    return next(LOCK) == FAIL ? -1 : REAL(flock)(fd, operation);
}

DECLARE(opendir);
DIR *opendir(const char *path) {
    return next(FOLDER) == FAIL ? NULL : REAL(opendir)(path);
}

DECLARE(fdopendir);
DIR *fdopendir(int fd) {
    return next(FOLDER) == FAIL ? NULL : REAL(fdopendir)(fd);
}

DECLARE(readdir64);
struct dirent64 *readdir64(DIR *folder) {
    return next(FOLDER) == FAIL ? NULL : REAL(readdir64)(folder);
}

DECLARE(pthread_create);
int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *),
                   void *argument) {
    return next(THREAD) == FAIL ? fault_errno
                                : REAL(pthread_create)(thread, attributes, run, argument);
}

/* ---- processes ---- */

DECLARE(pipe2);
int pipe2(int ends[2], int flags) {
    return next(PROCESS) == FAIL ? -1 : REAL(pipe2)(ends, flags);
}

DECLARE(posix_spawn);
int posix_spawn(pid_t *pid, const char *path, const posix_spawn_file_actions_t *actions,
                const posix_spawnattr_t *attributes, char *const argv[],
                char *const environment[]) {
    return next(PROCESS) == FAIL
               ? fault_errno
               : REAL(posix_spawn)(pid, path, actions, attributes, argv, environment);
}
