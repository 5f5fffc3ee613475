/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The owner of a folder that is being written.
 *
 * The lock is a flock on a file in the folder. The kernel releases it when the process ends,
 * however it ends. A killed process leaves a file that nobody has locked. The next process locks
 * it, which gives it the right to remove it, removes it, and makes its own. Nothing is written into
 * a file that was found. Between opening and locking, the file may be removed by its holder, so a
 * lock counts only if the file still has its name.
 *
 * On NFS the kernel turns the lock into a lock of the whole file, which the server keeps. So it
 * holds between machines. A machine that the server cannot reach for the time of a lease loses it.
 * On a file system without locks, the file itself is the lock. It then outlives a killed process,
 * and a user must remove it.
 */
#define _DEFAULT_SOURCE /* flock, gethostname */
#include "file_internal.h"
#include "folder_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <unistd.h>

#define TRIES 100
#define OWNER_BYTES 96 /* "PID HOST" */

struct presto_folder_lock {
    int fd;
    char *path;
    char *folder;
};

/* AGAIN: another process removed the file meanwhile. */
typedef enum outcome { TAKEN, AGAIN, FAILED } outcome;

static presto_status fail(const presto_folder_lock *lock, int code, const char *what,
                          presto_error *err) {
    presto_status status =
        presto_fail_errno(err, code, lock->folder, "cannot %s " PRESTO_LOCK_FILE " in it", what);
    if (code != ENOENT)
        return status;
    if (err != NULL)
        err->status = PRESTO_ERR_NOT_FOUND;
    return PRESTO_ERR_NOT_FOUND;
}

/* Adds the holder to the message, if the file names it: "PID HOST". */
static presto_status fail_busy(const presto_folder_lock *lock, presto_error *err) {
    char text[OWNER_BYTES + 1], host[OWNER_BYTES + 1];
    long pid;
    size_t got = 0;
    presto_status status;
    if (presto__pread((presto__file_place){lock->fd, lock->path, 0}, text, OWNER_BYTES, &got,
                      NULL) < 0)
        got = 0;
    text[got] = '\0';
    host[0] = '\0';
    if (sscanf(text, "%ld %95[A-Za-z0-9._-]", &pid, host) == 2 && pid > 0)
        status = presto_fail(err, PRESTO_ERR_BUSY, PRESTO_NO_OFFSET,
                             "is being written to by process %ld on %s: let that one end first",
                             pid, host);
    else
        status = presto_fail(err, PRESTO_ERR_BUSY, PRESTO_NO_OFFSET,
                             "is being written to by another process: let that one end first");
    presto_error_set_file(err, lock->folder);
    return status;
}

static bool stands(const presto_folder_lock *lock) {
    struct stat held, named;
    return fstat(lock->fd, &held) == 0 && lstat(lock->path, &named) == 0 &&
           held.st_dev == named.st_dev && held.st_ino == named.st_ino;
}

/* Opens the lock file. *is_new_out: this call made it. */
static outcome open_file(presto_folder_lock *lock, bool *is_new_out, presto_error *err) {
    const int flags = O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK | O_NOCTTY;
    *is_new_out = true;
    lock->fd = open(lock->path, O_RDWR | O_CREAT | O_EXCL | flags, 0660);
    if (lock->fd >= 0)
        return TAKEN;
    if (errno == EINTR)
        return AGAIN;
    if (errno != EEXIST) {
        (void)fail(lock, errno, "create", err);
        return FAILED;
    }
    *is_new_out = false;
    lock->fd = open(lock->path, O_RDWR | flags);
    if (lock->fd < 0 && (errno == EACCES || errno == EPERM || errno == EROFS))
        lock->fd = open(lock->path, O_RDONLY | flags); /* another user's: enough for a local lock */
    if (lock->fd >= 0)
        return TAKEN;
    if (errno == ENOENT || errno == EINTR)
        return AGAIN; /* just removed */
    (void)fail(lock, errno, "open", err);
    return FAILED;
}

static outcome lock_file(presto_folder_lock *lock, bool is_new, presto_error *err) {
    struct stat info;
    if (fstat(lock->fd, &info) != 0 || !S_ISREG(info.st_mode)) {
        presto_error_set(err, PRESTO_ERR_IO, PRESTO_NO_OFFSET, "is not a regular file: remove it");
        presto_error_set_file(err, lock->path);
        return FAILED;
    }
    while (flock(lock->fd, LOCK_EX | LOCK_NB) != 0) {
        if (errno == EINTR)
            continue;
        if (errno == EWOULDBLOCK) {
            (void)fail_busy(lock, err);
            return FAILED;
        }
        bool has_locks = errno != ENOLCK && errno != EOPNOTSUPP && errno != ENOSYS &&
                         errno != EINVAL && errno != EBADF;
        if (has_locks) {
            (void)fail(lock, errno, "lock", err);
            return FAILED;
        }
        if (is_new)
            break; /* no locks here: the file itself is the lock */
        presto_error_set_errno(err, errno, lock->path,
                               "stands on a file system without locks; if no other process writes "
                               "here, remove it");
        if (err != NULL)
            err->status = PRESTO_ERR_BUSY;
        return FAILED;
    }
    return stands(lock) ? TAKEN : AGAIN;
}

/* Writes the owner into the file. */
static presto_status sign(const presto_folder_lock *lock, presto_error *err) {
    char host[64] = "", text[OWNER_BYTES];
    (void)gethostname(host, sizeof host - 1);
    int bytes = snprintf(text, sizeof text, "%ld %s\n", (long)getpid(), host);
    presto_error fault;
    presto_status status =
        presto__write_all(lock->fd, lock->path, presto_span_of(text, (size_t)bytes), &fault);
    return status < 0 ? fail(lock, fault.sys_errno, "write to", err) : PRESTO_OK;
}

static void close_file(presto_folder_lock *lock) {
    if (lock->fd >= 0)
        close(lock->fd);
    lock->fd = -1;
}

/* Somebody may have removed the file or the folder meanwhile. A file of another owner is left
 * alone. */
static void remove_file(presto_folder_lock *lock) {
    if (lock->fd >= 0 && stands(lock))
        unlink(lock->path);
    close_file(lock);
}

static presto_status take(presto_folder_lock *lock, presto_error *err) {
    presto_error fault = {.status = PRESTO_ERR_BUSY};
    (void)presto_fail(err, PRESTO_ERR_BUSY, PRESTO_NO_OFFSET, "other processes fight for it");
    presto_error_set_file(err, lock->folder);
    for (int i = 0; i < TRIES; i++) {
        bool is_new;
        outcome result = open_file(lock, &is_new, &fault);
        if (result == TAKEN)
            result = lock_file(lock, is_new, &fault);
        if (result == TAKEN && is_new) {
            presto_status status = sign(lock, err);
            if (status < 0)
                remove_file(lock);
            return status;
        }
        if (result == TAKEN || (result == FAILED && is_new && fault.status != PRESTO_ERR_BUSY))
            remove_file(lock); /* left by a killed process, or useless */
        close_file(lock);
        if (result == FAILED) {
            if (err != NULL)
                *err = fault;
            return fault.status;
        }
    }
    return PRESTO_ERR_BUSY;
}

presto_status presto__folder_lock_take(const char *folder, presto_folder_lock **lock_out,
                                       presto_error *err) {
    presto_folder_lock *lock = calloc(1, sizeof *lock);
    if (lock == NULL)
        return presto_fail_memory(err, sizeof *lock);
    lock->fd = -1;
    lock->folder = strdup(folder);
    lock->path = presto__join_path(folder, PRESTO_LOCK_FILE);
    presto_status status = PRESTO_OK;
    if (lock->folder == NULL || lock->path == NULL) {
        status = presto_fail_memory(err, strlen(folder));
    } else {
        status = take(lock, err);
    }
    if (status < 0)
        presto_folder_lock_release(lock);
    else
        *lock_out = lock;
    return status;
}

presto_status presto_folder_lock_check(const presto_folder_lock *lock, presto_error *err) {
    if (stands(lock))
        return PRESTO_OK;
    presto_status status =
        presto_fail(err, PRESTO_ERR_BUSY, PRESTO_NO_OFFSET,
                    "was removed, or taken over by another process, while it was written to");
    presto_error_set_file(err, lock->folder);
    return status;
}

void presto_folder_lock_release(presto_folder_lock *lock) {
    if (lock == NULL)
        return;
    remove_file(lock);
    free(lock->folder);
    free(lock->path);
    free(lock);
}
