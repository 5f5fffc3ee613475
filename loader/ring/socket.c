/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE /* accept4, struct ucred, MSG_CMSG_CLOEXEC */

#include "ring_internal.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "../../base/clock_internal.h"

enum { ASK_MS = 100, READ_BYTES = 1 << 16 };

void presto__ring_link_done(presto__ring_link *link) {
    if (link->fd >= 0)
        (void)close(link->fd);
    if (link->memory >= 0)
        (void)close(link->memory);
    link->fd = link->memory = -1;
    presto_buffer_done(&link->in);
}

presto_status presto__ring_may_wait(const presto__ring_link *link, presto_error *err) {
    if (link->should_stop != NULL && link->should_stop(link->should_stop_user))
        return presto_fail(err, PRESTO_ERR_STOPPED, PRESTO_NO_OFFSET, "stopped");
    if (link->until_ns != 0 && presto__clock_ns() >= link->until_ns)
        return presto_fail(err, PRESTO_ERR_BUSY, PRESTO_NO_OFFSET,
                           "the other side does not answer");
    return PRESTO_OK;
}

static presto_status wait_for(const presto__ring_link *link, short events, presto_error *err) {
    struct pollfd wait = {link->fd, events, 0};
    PRESTO_TRY(presto__ring_may_wait(link, err));
    if (poll(&wait, 1, ASK_MS) < 0 && errno != EINTR)
        return presto_fail_errno(err, errno, NULL, "cannot wait for a socket");
    return PRESTO_OK;
}

static bool is_gone(int number) {
    return number == EPIPE || number == ECONNRESET || number == ENOTCONN;
}

/* ---- sending ---- */

typedef union control {
    struct cmsghdr head; /* for its alignment */
    char bytes[CMSG_SPACE(sizeof(int))];
} control;

static void attach(struct msghdr *message, control *room, int memory) {
    memset(room, 0, sizeof *room);
    message->msg_control = room->bytes;
    message->msg_controllen = sizeof room->bytes;
    struct cmsghdr *head = CMSG_FIRSTHDR(message);
    head->cmsg_level = SOL_SOCKET;
    head->cmsg_type = SCM_RIGHTS;
    head->cmsg_len = CMSG_LEN(sizeof memory);
    memcpy(CMSG_DATA(head), &memory, sizeof memory);
}

presto_status presto__ring_send(presto__ring_link *link, struct iovec *parts, size_t count,
                                int memory, presto_error *err) {
    control room;
    while (count > 0) {
        struct msghdr message = {.msg_iov = parts, .msg_iovlen = count};
        if (memory >= 0)
            attach(&message, &room, memory);
        ssize_t sent = sendmsg(link->fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (sent < 0 && is_gone(errno))
            return PRESTO_END;
        if (sent < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR)) {
            PRESTO_TRY(wait_for(link, POLLOUT, err));
            continue;
        }
        if (sent < 0)
            return presto_fail_errno(err, errno, NULL, "cannot write to the socket");
        memory = -1;
        size_t left = (size_t)sent;
        for (; count > 0 && left >= parts->iov_len; parts++, count--)
            left -= parts->iov_len;
        if (count > 0) {
            parts->iov_base = (char *)parts->iov_base + left;
            parts->iov_len -= left;
        }
    }
    return PRESTO_OK;
}

/* ---- receiving ---- */

/* Keep the first descriptor, close all others: nobody fills this process with them. */
static void take_descriptors(presto__ring_link *link, struct msghdr *message) {
    for (struct cmsghdr *head = CMSG_FIRSTHDR(message); head != NULL;
         head = CMSG_NXTHDR(message, head)) {
        if (head->cmsg_level != SOL_SOCKET || head->cmsg_type != SCM_RIGHTS)
            continue;
        size_t count = (head->cmsg_len - CMSG_LEN(0)) / sizeof(int);
        for (size_t i = 0; i < count; i++) {
            int fd;
            memcpy(&fd, CMSG_DATA(head) + i * sizeof fd, sizeof fd);
            if (link->memory < 0)
                link->memory = fd;
            else
                (void)close(fd);
        }
    }
}

/* Read what has arrived. PRESTO_DROP: nothing. */
static presto_status read_some(presto__ring_link *link, size_t wanted, presto_error *err) {
    size_t left = link->in.bytes - link->taken;
    control room;
    if (link->taken > 0 && left > 0)
        memmove(link->in.data, link->in.data + link->taken, left);
    link->in.bytes = left;
    link->taken = 0;
    PRESTO_TRY(presto_buffer_reserve(&link->in, wanted > READ_BYTES ? wanted : READ_BYTES, err));
    struct iovec part = {link->in.data + left, link->in.capacity - left};
    struct msghdr message = {.msg_iov = &part,
                             .msg_iovlen = 1,
                             .msg_control = room.bytes,
                             .msg_controllen = sizeof room.bytes};
    ssize_t got = recvmsg(link->fd, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    if (got == 0 || (got < 0 && is_gone(errno)))
        return PRESTO_END;
    if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR))
        return PRESTO_DROP;
    if (got < 0)
        return presto_fail_errno(err, errno, NULL, "cannot read from the socket");
    take_descriptors(link, &message);
    link->in.bytes += (size_t)got;
    return PRESTO_OK;
}

presto_status presto__ring_take(presto__ring_link *link, bool waits, presto__ring_head *head_out,
                                presto_span *body_out, presto_error *err) {
    for (;;) {
        size_t have = link->in.bytes - link->taken, wanted = sizeof *head_out;
        if (have >= wanted) {
            const uint8_t *at = link->in.data + link->taken;
            memcpy(head_out, at, sizeof *head_out);
            if (head_out->bytes > PRESTO__RING_MOST_MESSAGE_BYTES)
                return presto_fail(err, PRESTO_ERR_CORRUPT, PRESTO_NO_OFFSET,
                                   "a message of %ju bytes through the socket",
                                   (uintmax_t)head_out->bytes);
            wanted += head_out->bytes;
            if (have >= wanted) {
                *body_out = presto_span_of(at + sizeof *head_out, head_out->bytes);
                link->taken += wanted;
                return PRESTO_OK;
            }
        }
        presto_status status = read_some(link, wanted, err);
        if (status == PRESTO_DROP && waits)
            status = wait_for(link, POLLIN, err);
        if (status != PRESTO_OK)
            return status;
    }
}

/* ---- the path ---- */

static presto_status make_address(const char *path, struct sockaddr_un *address,
                                  presto_error *err) {
    size_t bytes = strlen(path) + 1;
    memset(address, 0, sizeof *address);
    address->sun_family = AF_UNIX;
    if (bytes == 1 || bytes > sizeof address->sun_path) {
        presto_error_set(err, PRESTO_ERR_ARGUMENT, PRESTO_NO_OFFSET,
                         "the path of a socket has 1 to %zu bytes", sizeof address->sun_path - 1);
        presto_error_set_file(err, path);
        return PRESTO_ERR_ARGUMENT;
    }
    memcpy(address->sun_path, path, bytes);
    return PRESTO_OK;
}

static presto_status new_socket(int *fd_out, presto_error *err) {
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return presto_fail_errno(err, errno, NULL, "cannot make a socket");
    *fd_out = fd;
    return PRESTO_OK;
}

static presto_status fail_path(const char *path, presto_status status, const char *why,
                               presto_error *err) {
    presto_error_set(err, status, PRESTO_NO_OFFSET, "%s", why);
    presto_error_set_file(err, path);
    return status;
}

presto_status presto__ring_connect(const char *path, int *fd_out, presto_error *err) {
    struct sockaddr_un address;
    int fd = -1;
    PRESTO_TRY(make_address(path, &address, err));
    PRESTO_TRY(new_socket(&fd, err));
    if (connect(fd, (const struct sockaddr *)(const void *)&address, sizeof address) == 0) {
        *fd_out = fd;
        return PRESTO_OK;
    }
    int number = errno;
    (void)close(fd);
    if (number == EAGAIN)
        return fail_path(path, PRESTO_ERR_BUSY, "too many others wait at this socket", err);
    if (number == ENOENT || number == ECONNREFUSED)
        return fail_path(path, PRESTO_ERR_NOT_FOUND, "nobody listens at this socket", err);
    return presto_fail_errno(err, number, path, "cannot connect");
}

/*
 * Remove a socket at `path` that a writer left which was killed. A writer that lives would accept
 * the connection; it sees that nobody says hello, and listens on.
 */
static presto_status remove_stale(const char *path, presto_error *err) {
    struct stat is;
    int fd = -1;
    if (lstat(path, &is) != 0)
        return errno == ENOENT ? PRESTO_OK
                               : presto_fail_errno(err, errno, path, "cannot look at it");
    if (!S_ISSOCK(is.st_mode) || is.st_uid != geteuid())
        return fail_path(path, PRESTO_ERR_ARGUMENT, "is there, and is no socket of this user", err);
    presto_status status = presto__ring_connect(path, &fd, err);
    if (status == PRESTO_OK) {
        (void)close(fd);
        return fail_path(path, PRESTO_ERR_BUSY, "another writer has this socket", err);
    }
    if (status != PRESTO_ERR_NOT_FOUND)
        return status;
    if (unlink(path) != 0 && errno != ENOENT)
        return presto_fail_errno(err, errno, path, "cannot remove it");
    return PRESTO_OK;
}

/* Give the socket at `made` the name `path`, which nobody else has. */
static presto_status take_name(const char *made, const char *path, presto_error *err) {
    for (int tries = 0; tries < 3; tries++) {
        if (link(made, path) == 0)
            return PRESTO_OK;
        if (errno != EEXIST)
            return presto_fail_errno(err, errno, path, "cannot make the socket");
        PRESTO_TRY(remove_stale(path, err));
    }
    return fail_path(path, PRESTO_ERR_BUSY, "another writer has this socket", err);
}

/*
 * The socket gets its name when it listens: one that has a name and refuses connections is one that
 * a killed writer left, and may be removed.
 */
presto_status presto__ring_listen(const char *path, int *fd_out, presto_error *err) {
    struct sockaddr_un address;
    char made[sizeof address.sun_path];
    unsigned number = 0;
    int fd = -1;
    if (strlen(path) + sizeof ".01234567" > sizeof made)
        return fail_path(path, PRESTO_ERR_ARGUMENT, "too long for the path of a socket", err);
    if (getrandom(&number, sizeof number, 0) != sizeof number)
        return presto_fail_errno(err, errno, path, "cannot draw a number");
    (void)snprintf(made, sizeof made, "%s.%08x", path, number);
    PRESTO_TRY(make_address(path, &address, err)); /* for its errors */
    PRESTO_TRY(make_address(made, &address, err));
    PRESTO_TRY(new_socket(&fd, err));
    (void)fchmod(fd, S_IRUSR | S_IWUSR); /* the file is made with this mode */
    presto_status status = PRESTO_OK;
    if (bind(fd, (const struct sockaddr *)(const void *)&address, sizeof address) != 0)
        status = presto_fail_errno(err, errno, path, "cannot make the socket");
    else if (listen(fd, 4) != 0)
        status = presto_fail_errno(err, errno, path, "cannot listen");
    else
        status = take_name(made, path, err);
    (void)unlink(made);
    if (status >= 0)
        *fd_out = fd;
    else
        (void)close(fd);
    return status;
}

presto_status presto__ring_check_peer(int fd, presto_error *err) {
    struct ucred peer;
    socklen_t bytes = sizeof peer;
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &bytes) != 0)
        return presto_fail_errno(err, errno, NULL, "this is no connected Unix socket");
    if (peer.uid != geteuid() && peer.uid != 0)
        return presto_fail(err, PRESTO_ERR_ARGUMENT, PRESTO_NO_OFFSET,
                           "the other side is of another user (%ju)", (uintmax_t)peer.uid);
    return PRESTO_OK;
}
