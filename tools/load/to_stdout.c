/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE /* F_SETPIPE_SZ */

#include "to_stdout.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "../cli/cli.h"

enum { PIPE_BYTES = 1 << 20, MOST_AT_ONCE = IOV_MAX };

void to_stdout_open(void) {
    struct stat status;
    if (fstat(STDOUT_FILENO, &status) == 0 && S_ISFIFO(status.st_mode))
        (void)fcntl(STDOUT_FILENO, F_SETPIPE_SZ, PIPE_BYTES); /* may be refused: that is slower */
}

/* Wait until a descriptor that somebody made non-blocking accepts more. */
static void wait_for_room(void) {
    struct pollfd wait = {STDOUT_FILENO, POLLOUT, 0};
    (void)poll(&wait, 1, 1000);
}

/* writev's structure lacks const; nothing is written to it. */
static void *without_const(const void *data) {
    union {
        const void *in;
        void *out;
    } pointer = {data};
    return pointer.out;
}

/* Write all of `list`, which is changed. */
static presto_status write_list(struct iovec *at, size_t left, uint64_t *written,
                                presto_error *err) {
    while (left > 0) {
        if (at->iov_len == 0) {
            at++;
            left--;
            continue;
        }
        if (cli_interrupted())
            return presto_fail(err, PRESTO_ERR_STOPPED, PRESTO_NO_OFFSET, "stopped by a signal");
        ssize_t wrote = writev(STDOUT_FILENO, at, (int)left);
        if (wrote < 0 && errno == EPIPE)
            return PRESTO_END;
        if (wrote < 0 && errno == EAGAIN)
            wait_for_room();
        else if (wrote < 0 && errno != EINTR)
            return presto_fail_errno(err, errno, "stdout", "cannot write");
        for (*written += wrote > 0 ? (uint64_t)wrote : 0; wrote > 0 && left > 0;) {
            size_t step = (size_t)wrote < at->iov_len ? (size_t)wrote : at->iov_len;
            at->iov_base = (char *)at->iov_base + step;
            at->iov_len -= step;
            wrote -= (ssize_t)step;
            if (at->iov_len == 0) {
                at++;
                left--;
            }
        }
    }
    return PRESTO_OK;
}

presto_status to_stdout_write(void *user, const presto_span *pieces, size_t count,
                              uint64_t *written_out, presto_error *err) {
    struct iovec list[MOST_AT_ONCE];
    presto_status status = PRESTO_OK;
    (void)user;
    *written_out = 0;
    while (count > 0 && status == PRESTO_OK) {
        size_t now = count < MOST_AT_ONCE ? count : MOST_AT_ONCE;
        for (size_t i = 0; i < now; i++)
            list[i] = (struct iovec){without_const(pieces[i].data), pieces[i].bytes};
        status = write_list(list, now, written_out, err);
        pieces += now;
        count -= now;
    }
    return status;
}
