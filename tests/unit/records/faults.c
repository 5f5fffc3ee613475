/* SPDX-License-Identifier: Apache-2.0 */
/* Wrappers around what can fail (linked with --wrap): the k-th call since arming fails. */
#include "faults.h"

#include <errno.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/types.h>

static atomic_long left = -1; /* calls until the failing one; < 0: off */
static atomic_int kinds;
static atomic_bool fired;

void faults_arm(int fault_kinds, long k) {
    atomic_store(&fired, false);
    atomic_store(&kinds, fault_kinds);
    atomic_store(&left, k);
}

bool faults_disarm(void) {
    atomic_store(&left, -1);
    return atomic_load(&fired);
}

/* Does this call fail? Then errno says `code`. */
static bool fails(int kind, int code) {
    if ((atomic_load(&kinds) & kind) == 0 || atomic_load(&left) < 0)
        return false;
    if (atomic_fetch_sub(&left, 1) != 0)
        return false;
    atomic_store(&fired, true);
    errno = code;
    return true;
}

void *__real_malloc(size_t bytes);
void *__real_calloc(size_t count, size_t bytes);
void *__real_realloc(void *memory, size_t bytes);
void *__real_aligned_alloc(size_t align, size_t bytes);
char *__real_strdup(const char *text);
ssize_t __real_pread(int fd, void *data, size_t bytes, off_t offset);
ssize_t __real_pread64(int fd, void *data, size_t bytes, off_t offset);
ssize_t __real_write(int fd, const void *data, size_t bytes);
int __real_fsync(int fd);
int __real_rename(const char *from, const char *to);
int __real_open(const char *path, int flags, ...);
int __real_open64(const char *path, int flags, ...);
void *__real_mmap(void *at, size_t bytes, int protection, int flags, int fd, off_t offset);
void *__real_mmap64(void *at, size_t bytes, int protection, int flags, int fd, off_t offset);
int __real_close(int fd);

void *__wrap_malloc(size_t bytes);
void *__wrap_malloc(size_t bytes) {
    return fails(FAULT_MEMORY, ENOMEM) ? NULL : __real_malloc(bytes);
}

void *__wrap_calloc(size_t count, size_t bytes);
void *__wrap_calloc(size_t count, size_t bytes) {
    return fails(FAULT_MEMORY, ENOMEM) ? NULL : __real_calloc(count, bytes);
}

void *__wrap_realloc(void *memory, size_t bytes);
void *__wrap_realloc(void *memory, size_t bytes) {
    return fails(FAULT_MEMORY, ENOMEM) ? NULL : __real_realloc(memory, bytes);
}

void *__wrap_aligned_alloc(size_t align, size_t bytes);
void *__wrap_aligned_alloc(size_t align, size_t bytes) {
    return fails(FAULT_MEMORY, ENOMEM) ? NULL : __real_aligned_alloc(align, bytes);
}

char *__wrap_strdup(const char *text);
char *__wrap_strdup(const char *text) {
    return fails(FAULT_MEMORY, ENOMEM) ? NULL : __real_strdup(text);
}

ssize_t __wrap_pread(int fd, void *data, size_t bytes, off_t offset);
ssize_t __wrap_pread(int fd, void *data, size_t bytes, off_t offset) {
    return fails(FAULT_READ, EIO) ? -1 : __real_pread(fd, data, bytes, offset);
}

ssize_t __wrap_pread64(int fd, void *data, size_t bytes, off_t offset);
ssize_t __wrap_pread64(int fd, void *data, size_t bytes, off_t offset) {
    return fails(FAULT_READ, EIO) ? -1 : __real_pread64(fd, data, bytes, offset);
}

ssize_t __wrap_write(int fd, const void *data, size_t bytes);
ssize_t __wrap_write(int fd, const void *data, size_t bytes) {
    return fails(FAULT_WRITE, ENOSPC) ? -1 : __real_write(fd, data, bytes);
}

int __wrap_fsync(int fd);
int __wrap_fsync(int fd) {
    return fails(FAULT_WRITE, EIO) ? -1 : __real_fsync(fd);
}

int __wrap_rename(const char *from, const char *to);
int __wrap_rename(const char *from, const char *to) {
    return fails(FAULT_WRITE, EIO) ? -1 : __real_rename(from, to);
}

int __wrap_close(int fd);
int __wrap_close(int fd) {
    int result = __real_close(fd);
    return fails(FAULT_CLOSE, EIO) ? -1 : result;
}

int __wrap_open(const char *path, int flags, ...);
int __wrap_open(const char *path, int flags, ...) {
    va_list args;
    va_start(args, flags);
    int mode = va_arg(args, int);
    va_end(args);
    return fails(FAULT_OPEN, EMFILE) ? -1 : __real_open(path, flags, mode);
}

int __wrap_open64(const char *path, int flags, ...);
int __wrap_open64(const char *path, int flags, ...) {
    va_list args;
    va_start(args, flags);
    int mode = va_arg(args, int);
    va_end(args);
    return fails(FAULT_OPEN, EMFILE) ? -1 : __real_open64(path, flags, mode);
}

void *__wrap_mmap(void *at, size_t bytes, int protection, int flags, int fd, off_t offset);
void *__wrap_mmap(void *at, size_t bytes, int protection, int flags, int fd, off_t offset) {
    return fails(FAULT_MEMORY, ENOMEM) ? (void *)-1
                                       : __real_mmap(at, bytes, protection, flags, fd, offset);
}

void *__wrap_mmap64(void *at, size_t bytes, int protection, int flags, int fd, off_t offset);
void *__wrap_mmap64(void *at, size_t bytes, int protection, int flags, int fd, off_t offset) {
    return fails(FAULT_MEMORY, ENOMEM) ? (void *)-1
                                       : __real_mmap64(at, bytes, protection, flags, fd, offset);
}
