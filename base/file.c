/* SPDX-License-Identifier: Apache-2.0 */
/* System calls on files, each finished or failed by name. */
#define _GNU_SOURCE /* sync_file_range, getentropy */

#include "clock_internal.h"
#include "file_internal.h"
#include "retry_internal.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <unistd.h>

#include <presto/numbers.h>

/* Linux moves at most 2 GiB - 4 KiB a call. */
#define CALL_BYTES ((size_t)1 << 30)
#define NAME_TRIES 100
#define MOST_CLEANED_NAMES 4096 /* of a folder that is looked through at each replacement */
#define RANDOM_DIGITS 16
#define STEM_BYTES 200 /* longest part of the name in a temporary name: NAME_MAX is 255 */

static const char partial_suffix[] = ".partial";

presto_status presto__pread(presto__file_place place, void *data, size_t bytes, size_t *got_out,
                            presto_error *err) {
    size_t got = 0;
    while (got < bytes) {
        size_t want = bytes - got < CALL_BYTES ? bytes - got : CALL_BYTES;
        ssize_t more = pread(place.fd, (uint8_t *)data + got, want, (off_t)(place.offset + got));
        if (more < 0 && errno == EINTR)
            continue;
        if (more < 0) {
            presto_status status = presto_fail_errno(err, errno, place.path, "cannot read");
            if (err != NULL)
                err->offset = place.offset + got;
            return status;
        }
        if (more == 0)
            break;
        got += (size_t)more;
    }
    *got_out = got;
    return PRESTO_OK;
}

presto_status presto__write_all(int fd, const char *path, presto_span data, presto_error *err) {
    while (data.bytes > 0) {
        size_t want = data.bytes < CALL_BYTES ? data.bytes : CALL_BYTES;
        ssize_t done = write(fd, data.data, want);
        if (done < 0 && errno == EINTR)
            continue;
        if (done < 0)
            return presto_fail_errno(err, errno, path, "cannot write");
        data.data += done;
        data.bytes -= (size_t)done;
    }
    return PRESTO_OK;
}

void presto__start_writeback(int fd, uint64_t offset, uint64_t bytes) {
#ifdef SYNC_FILE_RANGE_WRITE
    (void)sync_file_range(fd, (off_t)offset, (off_t)bytes, SYNC_FILE_RANGE_WRITE);
#else
    (void)fd;
    (void)offset;
    (void)bytes;
#endif
}

int64_t presto__mtime_ns(const struct stat *info) {
    return (int64_t)info->st_mtim.tv_sec * 1000000000 + info->st_mtim.tv_nsec;
}

/* ---- reading ---- */

static const char *kind_of(mode_t mode) {
    return S_ISDIR(mode)    ? "a folder"
           : S_ISFIFO(mode) ? "a named pipe"
           : S_ISSOCK(mode) ? "a socket"
                            : "a device";
}

/* Checks the open file; keeps or closes it. */
static presto_status check_regular(int fd, const char *path, struct stat *info_out,
                                   presto_error *err) {
    if (fstat(fd, info_out) != 0)
        return presto_fail_errno(err, errno, path, "cannot stat");
    if (S_ISREG(info_out->st_mode))
        return PRESTO_OK;
    presto_status status = presto_fail(err, PRESTO_ERR_IO, PRESTO_NO_OFFSET,
                                       "is %s, not a regular file", kind_of(info_out->st_mode));
    presto_error_set_file(err, path);
    return status;
}

presto_status presto__fail_open(presto_error *err, int sys_errno, const char *path) {
    presto_status status = presto_fail_errno(err, sys_errno, path, "cannot open");
    if (sys_errno != ENOENT && sys_errno != ENOTDIR)
        return status;
    if (err != NULL)
        err->status = PRESTO_ERR_NOT_FOUND;
    return PRESTO_ERR_NOT_FOUND;
}

presto_status presto__open_regular(const char *path, int *fd_out, struct stat *info_out,
                                   presto_error *err) {
    int fd;
    unsigned tries = 0;
    do /* without O_NONBLOCK a named pipe would be waited for */
        fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    while (fd < 0 && errno == EINTR && presto__retry_pause(EINTR, &tries));
    if (fd < 0)
        return presto__fail_open(err, errno, path);
    presto_status status = check_regular(fd, path, info_out, err);
    if (status < 0)
        close(fd);
    else
        *fd_out = fd;
    return status;
}

/* ---- folders ---- */

char *presto__join_path(const char *folder, const char *name) {
    size_t head = strlen(folder), tail = strlen(name);
    bool slash = head > 0 && folder[head - 1] != '/';
    char *path = malloc(head + slash + tail + 1);
    if (path == NULL)
        return NULL;
    memcpy(path, folder, head);
    if (slash)
        path[head] = '/';
    memcpy(path + head + slash, name, tail + 1);
    return path;
}

char *presto__folder_of(const char *path) {
    const char *slash = strrchr(path, '/');
    if (slash == NULL)
        return strdup(".");
    while (slash > path && slash[-1] == '/')
        slash--;
    return slash == path ? strdup("/") : strndup(path, (size_t)(slash - path));
}

presto_status presto__sync_folder(const char *folder, presto_error *err) {
    int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return presto_fail_errno(err, errno, folder, "cannot open folder");
    presto_status status = PRESTO_OK;
    /* Some file systems cannot sync folders and say so with EINVAL. */
    if (fsync(fd) != 0 && errno != EINVAL)
        status = presto_fail_errno(err, errno, folder, "cannot sync folder");
    close(fd);
    return status;
}

presto_status presto__sync_folder_of(const char *path, presto_error *err) {
    char *folder = presto__folder_of(path);
    if (folder == NULL)
        return presto_fail_memory(err, strlen(path));
    presto_status status = presto__sync_folder(folder, err);
    free(folder);
    return status;
}

/* ---- files that take their name when they are whole ---- */

uint64_t presto__random_name(void) {
    uint64_t draw;
    if (getentropy(&draw, sizeof draw) != 0)
        draw = presto__clock_ns() * UINT64_C(0x9e3779b97f4a7c15) ^ (uint64_t)getpid();
    return draw;
}

size_t presto__partial_stem(const char *name) {
    size_t bytes = strlen(name), tail = 1 + RANDOM_DIGITS + sizeof partial_suffix - 1;
    if (name[0] != '.' || bytes < tail + 2)
        return 0;
    const char *at = name + bytes - tail;
    bool is_partial = at[0] == '.' && strspn(at + 1, "0123456789abcdef") == RANDOM_DIGITS &&
                      strcmp(at + 1 + RANDOM_DIGITS, partial_suffix) == 0;
    return is_partial ? bytes - tail - 1 : 0;
}

/* A cleaner may hold the lock of a file that has none yet, and remove it: then it is EAGAIN. */
static int lock_partial(presto__partial *partial) {
    struct stat info;
    bool is_locked = flock(partial->fd, LOCK_EX | LOCK_NB) == 0;
    if (!is_locked && errno == EWOULDBLOCK)
        return EAGAIN;
    if (is_locked && fstat(partial->fd, &info) == 0 && info.st_nlink == 0)
        return EAGAIN;
    partial->lock = is_locked ? fcntl(partial->fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1) : -1;
    return 0;
}

presto_status presto__partial_open(const char *path, presto__partial *partial_out,
                                   presto_error *err) {
    const char *slash = strrchr(path, '/');
    const char *name = slash != NULL ? slash + 1 : path;
    size_t folder_bytes = (size_t)(name - path);
    size_t bytes = folder_bytes + NAME_MAX + 1;
    presto__partial partial = {.path = malloc(bytes), .fd = -1, .lock = -1};
    if (partial.path == NULL)
        return presto_fail_memory(err, bytes);
    memcpy(partial.path, path, folder_bytes);
    int failed = EEXIST;
    for (int i = 0; failed != 0 && i < NAME_TRIES; i++) {
        snprintf(partial.path + folder_bytes, bytes - folder_bytes, ".%.*s.%016" PRIx64 "%s",
                 STEM_BYTES, name, presto__random_name(), partial_suffix);
        partial.fd = open(partial.path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
        failed = partial.fd < 0 ? errno : lock_partial(&partial);
        if (partial.fd < 0 && failed != EEXIST && failed != EINTR)
            break;
        if (partial.fd >= 0 && failed != 0)
            close(partial.fd);
    }
    if (failed != 0) {
        presto_status status = presto_fail_errno(err, failed, path, "cannot create");
        free(partial.path);
        return status;
    }
    *partial_out = partial;
    return PRESTO_OK;
}

void presto__partial_done(presto__partial *partial) {
    if (partial->lock >= 0)
        close(partial->lock);
    free(partial->path);
    *partial = (presto__partial){.fd = -1, .lock = -1};
}

void presto__partial_clean(const char *path) {
    const char *slash = strrchr(path, '/');
    const char *name = slash != NULL ? slash + 1 : path;
    size_t stem = strlen(name) < STEM_BYTES ? strlen(name) : STEM_BYTES;
    char *folder = presto__folder_of(path);
    DIR *entries = folder != NULL ? opendir(folder) : NULL;
    for (int i = 0; entries != NULL && i < MOST_CLEANED_NAMES; i++) {
        const struct dirent *entry = readdir(entries);
        if (entry == NULL)
            break;
        if (presto__partial_stem(entry->d_name) != stem ||
            strncmp(entry->d_name + 1, name, stem) != 0)
            continue;
        int fd =
            openat(dirfd(entries), entry->d_name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
        if (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0)
            (void)unlinkat(dirfd(entries), entry->d_name, 0);
        if (fd >= 0)
            close(fd);
    }
    if (entries != NULL)
        closedir(entries);
    free(folder);
}

/* Signals that end the process. They wait while a file has a temporary name, so that a program of
 * one thread that catches none leaves nothing behind. */
static void hold_signals(sigset_t *before) {
    sigset_t ending;
    sigemptyset(&ending);
    sigaddset(&ending, SIGINT);
    sigaddset(&ending, SIGTERM);
    sigaddset(&ending, SIGHUP);
    (void)pthread_sigmask(SIG_BLOCK, &ending, before);
}

static presto_status replace(const char *path, const presto_span *pieces, size_t piece_count,
                             bool sync, presto_error *err) {
    presto__partial partial;
    presto__partial_clean(path);
    PRESTO_TRY(presto__partial_open(path, &partial, err));
    presto_status status = PRESTO_OK;
    for (size_t i = 0; i < piece_count && status == PRESTO_OK; i++)
        status = presto__write_all(partial.fd, path, pieces[i], err);
    if (status == PRESTO_OK && sync && fsync(partial.fd) != 0)
        status = presto_fail_errno(err, errno, path, "cannot sync");
    if (close(partial.fd) != 0 && status == PRESTO_OK)
        status = presto_fail_errno(err, errno, path, "cannot close");
    if (status == PRESTO_OK && rename(partial.path, path) != 0)
        status = presto_fail_errno(err, errno, path, "cannot rename to");
    if (status < 0)
        unlink(partial.path);
    presto__partial_done(&partial);
    return status;
}

presto_status presto_file_replace(const char *path, const presto_span *pieces, size_t piece_count,
                                  bool sync, presto_error *err) {
    sigset_t before;
    hold_signals(&before);
    presto_status status = replace(path, pieces, piece_count, sync, err);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    return status;
}

presto_status presto_file_check_replace(const char *path, presto_error *err) {
    struct stat info;
    presto__partial partial;
    int reason = 0;
    if (stat(path, &info) == 0)
        reason = S_ISDIR(info.st_mode) ? EISDIR : 0;
    else if (errno != ENOENT) /* a name that is too long, say */
        reason = errno;
    if (reason != 0)
        return presto_fail_errno(err, reason, path, "cannot write");
    presto__partial_clean(path);
    PRESTO_TRY(presto__partial_open(path, &partial, err));
    close(partial.fd);
    unlink(partial.path);
    presto__partial_done(&partial);
    return PRESTO_OK;
}
