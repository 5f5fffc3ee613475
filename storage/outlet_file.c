/* SPDX-License-Identifier: Apache-2.0 */
/* Writing files: under a temporary name until they are whole. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../base/file_internal.h"
#include "kinds_internal.h"

/* This much is written before the kernel is asked to start writing to the disk. */
#define WRITEBACK_BYTES ((uint64_t)8 << 20)

typedef struct file_outlet {
    char *path;
    presto__partial partial; /* its fd is -1 before it is open and when it is closed */
    bool sync;
    uint64_t bytes;
    uint64_t started_bytes; /* that the disk has or was asked to write */
} file_outlet;

static void file_free(void *user) {
    file_outlet *outlet = user;
    if (outlet->partial.fd >= 0)
        close(outlet->partial.fd);
    if (outlet->partial.path != NULL)
        unlink(outlet->partial.path);
    presto__partial_done(&outlet->partial);
    free(outlet->path);
    free(outlet);
}

static presto_status file_open(const char *path, bool sync, void **state_out, presto_error *err) {
    file_outlet *outlet = calloc(1, sizeof *outlet);
    if (outlet == NULL)
        return presto_fail_memory(err, sizeof *outlet);
    outlet->partial = (presto__partial){.fd = -1, .lock = -1};
    outlet->sync = sync;
    outlet->path = strdup(path);
    presto_status status = outlet->path == NULL ? presto_fail_memory(err, strlen(path))
                                                : presto__partial_open(path, &outlet->partial, err);
    if (status < 0)
        file_free(outlet);
    else
        *state_out = outlet;
    return status;
}

static presto_status file_append(void *user, presto_span bytes, presto_error *err) {
    file_outlet *outlet = user;
    PRESTO_TRY(presto__write_all(outlet->partial.fd, outlet->path, bytes, err));
    outlet->bytes += bytes.bytes;
    uint64_t dirty = outlet->bytes - outlet->started_bytes;
    if (outlet->sync && dirty >= WRITEBACK_BYTES) {
        presto__start_writeback(outlet->partial.fd, outlet->started_bytes, dirty);
        outlet->started_bytes += dirty;
    }
    return PRESTO_OK;
}

static presto_status file_seal(void *user, uint32_t crc32c, presto_error *err) {
    const file_outlet *outlet = user;
    (void)crc32c;
    if (outlet->sync && fsync(outlet->partial.fd) != 0)
        return presto_fail_errno(err, errno, outlet->path, "cannot sync");
    return PRESTO_OK;
}

static presto_status file_look(void *user, presto__object *object_out, presto_error *err) {
    const file_outlet *outlet = user;
    int fd = fcntl(outlet->partial.fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    if (fd < 0)
        return presto_fail_errno(err, errno, outlet->path, "cannot open");
    *object_out = presto__object_of_file(fd);
    return PRESTO_OK;
}

static presto_status file_finish(void *user, presto_error *err) {
    file_outlet *outlet = user;
    int fd = outlet->partial.fd;
    outlet->partial.fd = -1;
    if (close(fd) != 0)
        return presto_fail_errno(err, errno, outlet->path, "cannot close");
    if (rename(outlet->partial.path, outlet->path) != 0)
        return presto_fail_errno(err, errno, outlet->path, "cannot rename to");
    presto_status status = outlet->sync ? presto__sync_folder_of(outlet->path, err) : PRESTO_OK;
    if (status < 0)
        unlink(outlet->path);
    presto__partial_done(&outlet->partial); /* nothing to remove any more */
    return status;
}

static presto_status file_put(const char *path, const presto_span *pieces, size_t count,
                              const presto__put_how *how, presto_error *err) {
    if (how->condition != PRESTO__PUT_ANY || how->version_out != NULL)
        return presto_fail(err, PRESTO_ERR_UNSUPPORTED, PRESTO_NO_OFFSET,
                           "files are not written on a condition: their folder has a lock");
    return presto_file_replace(path, pieces, count, how->sync, err);
}

static presto_status file_remove(const char *path, presto_error *err) {
    return unlink(path) == 0 || errno == ENOENT
               ? PRESTO_OK
               : presto_fail_errno(err, errno, path, "cannot remove");
}

static presto_status file_rename(const char *from, const char *to, presto_error *err) {
    if (rename(from, to) == 0)
        return PRESTO_OK;
    int code = errno;
    presto_status status = presto_fail_errno(err, code, to, "cannot rename to");
    if (code != ENOENT)
        return status;
    if (err != NULL)
        err->status = PRESTO_ERR_NOT_FOUND;
    return PRESTO_ERR_NOT_FOUND;
}

const presto__outlet_kind presto__outlet_file = {
    .open = file_open,
    .append = file_append,
    .seal = file_seal,
    .look = file_look,
    .finish = file_finish,
    .free = file_free,
    .put = file_put,
    .remove = file_remove,
    .rename = file_rename,
};
