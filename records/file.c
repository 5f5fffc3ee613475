/* SPDX-License-Identifier: Apache-2.0 */
/* System calls on files, each finished or failed by name. */
#define _GNU_SOURCE /* sync_file_range */

#include "file_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* Linux moves at most 2 GiB - 4 KiB a call. */
#define CALL_BYTES ((size_t)1 << 30)

presto_status presto__read_at(int fd, const char *path, uint64_t offset, void *data, size_t bytes,
                              size_t *got_out, presto_error *err) {
    size_t got = 0;
    while (got < bytes) {
        size_t want = bytes - got < CALL_BYTES ? bytes - got : CALL_BYTES;
        ssize_t more = pread(fd, (uint8_t *)data + got, want, (off_t)(offset + got));
        if (more < 0 && errno == EINTR)
            continue;
        if (more < 0) {
            presto_status status = presto_fail_errno(err, errno, path, "cannot read");
            if (err != NULL)
                err->offset = offset + got;
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

presto_status presto__open_regular(const char *path, int *fd_out, struct stat *info_out,
                                   presto_error *err) {
    int fd;
    do /* without O_NONBLOCK a named pipe would be waited for */
        fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    while (fd < 0 && errno == EINTR);
    if (fd < 0) {
        int code = errno;
        presto_status status = presto_fail_errno(err, code, path, "cannot open");
        if (code != ENOENT)
            return status;
        if (err != NULL)
            err->status = PRESTO_ERR_NOT_FOUND;
        return PRESTO_ERR_NOT_FOUND;
    }
    presto_status status = PRESTO_OK;
    if (fstat(fd, info_out) != 0) {
        status = presto_fail_errno(err, errno, path, "cannot stat");
    } else if (!S_ISREG(info_out->st_mode)) {
        status = presto_fail(err, PRESTO_ERR_IO, PRESTO_NO_OFFSET, "not a regular file");
        presto_error_set_file(err, path);
    }
    if (status < 0) {
        close(fd);
        return status;
    }
    *fd_out = fd;
    return PRESTO_OK;
}

presto_status presto__read_file(const char *path, presto_buffer *out, presto_error *err) {
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return presto_fail_errno(err, errno, path, "cannot open");
    struct stat info;
    presto_status status = PRESTO_OK;
    if (fstat(fd, &info) != 0)
        status = presto_fail_errno(err, errno, path, "cannot stat");
    size_t bytes = status == PRESTO_OK && info.st_size > 0 ? (size_t)info.st_size : 0;
    if (status == PRESTO_OK)
        status = presto_buffer_reserve(out, bytes, err);
    size_t got = 0;
    if (status == PRESTO_OK)
        status = presto__read_at(fd, path, 0, out->data + out->bytes, bytes, &got, err);
    if (status == PRESTO_OK)
        out->bytes += got;
    close(fd);
    return status;
}

char *presto__partial_name(const char *path) {
    static const char suffix[] = ".partial";
    const char *slash = strrchr(path, '/');
    size_t folder = slash != NULL ? (size_t)(slash - path) + 1 : 0;
    size_t bytes = strlen(path);
    char *name = malloc(bytes + 1 + sizeof suffix);
    if (name == NULL)
        return NULL;
    memcpy(name, path, folder);
    name[folder] = '.';
    memcpy(name + folder + 1, path + folder, bytes - folder);
    memcpy(name + bytes + 1, suffix, sizeof suffix);
    return name;
}

char *presto__folder_of(const char *path) {
    const char *slash = strrchr(path, '/');
    if (slash == NULL)
        return strdup(".");
    return slash == path ? strdup("/") : strndup(path, (size_t)(slash - path));
}

presto_status presto__sync_folder_of(const char *path, presto_error *err) {
    char *folder = presto__folder_of(path);
    if (folder == NULL)
        return presto_fail_memory(err, strlen(path));
    presto_status status = PRESTO_OK;
    int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        status = presto_fail_errno(err, errno, folder, "cannot open folder");
    /* Some file systems cannot sync folders and say so with EINVAL. */
    else if (fsync(fd) != 0 && errno != EINVAL)
        status = presto_fail_errno(err, errno, folder, "cannot sync folder");
    if (fd >= 0)
        close(fd);
    free(folder);
    return status;
}

static presto_status write_partial(const char *partial, const presto_span *pieces,
                                   size_t piece_count, bool sync, presto_error *err) {
    int fd = open(partial, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (fd < 0)
        return presto_fail_errno(err, errno, partial, "cannot create");
    presto_status status = PRESTO_OK;
    for (size_t i = 0; i < piece_count && status == PRESTO_OK; i++)
        status = presto__write_all(fd, partial, pieces[i], err);
    if (status == PRESTO_OK && sync && fsync(fd) != 0)
        status = presto_fail_errno(err, errno, partial, "cannot sync");
    if (close(fd) != 0 && status == PRESTO_OK)
        status = presto_fail_errno(err, errno, partial, "cannot close");
    return status;
}

presto_status presto__write_file(const char *path, const presto_span *pieces, size_t piece_count,
                                 bool sync, presto_error *err) {
    char *partial = presto__partial_name(path);
    if (partial == NULL)
        return presto_fail_memory(err, strlen(path));
    presto_status status = write_partial(partial, pieces, piece_count, sync, err);
    if (status == PRESTO_OK && rename(partial, path) != 0)
        status = presto_fail_errno(err, errno, path, "cannot rename to");
    if (status < 0)
        unlink(partial);
    free(partial);
    return status;
}
