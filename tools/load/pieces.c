/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE /* F_SETPIPE_SZ */

#include "pieces.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../cli/cli.h"

enum { PIPE_BYTES = 1 << 20, MAX_PIECES = 1024 };

presto_status pieces_init(pieces *self, int fd, presto_error *err) {
    struct stat status;
    *self = (pieces){.fd = fd, .list = calloc(MAX_PIECES, sizeof *self->list)};
    if (self->list == NULL)
        return presto_fail_memory(err, MAX_PIECES * sizeof *self->list);
    if (fstat(fd, &status) == 0 && S_ISFIFO(status.st_mode))
        (void)fcntl(fd, F_SETPIPE_SZ, PIPE_BYTES); /* may be refused: that is only slower */
    return PRESTO_OK;
}

void pieces_done(pieces *self) {
    free(self->list);
    self->list = NULL;
}

/* Wait until a descriptor that somebody made non-blocking accepts more. */
static void wait_for_room(int fd) {
    struct pollfd wait = {fd, POLLOUT, 0};
    (void)poll(&wait, 1, 1000);
}

presto_status pieces_flush(pieces *self, presto_error *err) {
    struct iovec *at = self->list;
    size_t left = self->count;
    self->count = 0;
    while (left > 0) {
        if (at->iov_len == 0) {
            at++;
            left--;
            continue;
        }
        if (cli_interrupted())
            return presto_fail(err, PRESTO_ERR_STOPPED, PRESTO_NO_OFFSET, "stopped by a signal");
        ssize_t wrote = writev(self->fd, at, left < IOV_MAX ? (int)left : IOV_MAX);
        if (wrote < 0 && errno == EPIPE)
            return PRESTO_END;
        if (wrote < 0 && errno == EAGAIN)
            wait_for_room(self->fd);
        else if (wrote < 0 && errno != EINTR)
            return presto_fail_errno(err, errno, "stdout", "cannot write");
        for (self->bytes += wrote > 0 ? (uint64_t)wrote : 0; wrote > 0;) {
            size_t step = (size_t)wrote < at->iov_len ? (size_t)wrote : at->iov_len;
            at->iov_base = (char *)at->iov_base + step;
            at->iov_len -= step;
            wrote -= (ssize_t)step;
            if (at->iov_len == 0 && left > 0) {
                at++;
                left--;
            }
        }
    }
    return PRESTO_OK;
}

/* writev's structure lacks const; nothing is written to it. */
static void *without_const(const void *data) {
    union {
        const void *in;
        void *out;
    } pointer = {data};
    return pointer.out;
}

presto_status pieces_add(pieces *self, const void *data, size_t bytes, presto_error *err) {
    if (self->count == MAX_PIECES) {
        presto_status status = pieces_flush(self, err);
        if (status != PRESTO_OK)
            return status;
    }
    struct iovec piece = {without_const(data), bytes};
    self->list[self->count++] = piece;
    return PRESTO_OK;
}
