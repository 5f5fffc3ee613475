/* SPDX-License-Identifier: Apache-2.0 */
/* Which errno means what, for all who read files. */

#include <errno.h>
#include <time.h>

#include "retry_internal.h"

#define MOST_TRIES 10

bool presto__errno_is_machine(int sys_errno) {
    switch (sys_errno) {
    case 0:
    case EACCES:
    case EFBIG:
    case EILSEQ:
    case EINVAL:
    case EISDIR:
    case ELOOP:
    case ENAMETOOLONG:
    case ENOENT:
    case ENOTDIR:
    case ENXIO: /* a socket, or a device that is not there */
    case EOVERFLOW:
    case EPERM:
        return false;
    default:
        return true;
    }
}

bool presto__is_machine_failure(const presto_error *why) {
    return why->status == PRESTO_ERR_MEMORY || why->status == PRESTO_ERR_STOPPED ||
           presto__errno_is_machine(why->sys_errno);
}

bool presto__errno_may_pass(int sys_errno) {
    switch (sys_errno) {
    case EAGAIN:
#if EWOULDBLOCK != EAGAIN
    case EWOULDBLOCK:
#endif
    case EBUSY:
    case EINTR:
    case EMFILE:
    case ENFILE:
    case ESTALE:
    case ETIMEDOUT:
        return true;
    default:
        return false;
    }
}

bool presto__retry_pause(int sys_errno, unsigned *tries_io) {
    if (!presto__errno_may_pass(sys_errno) || *tries_io >= MOST_TRIES)
        return false;
    struct timespec pause = {.tv_nsec = 1000000L << *tries_io};
    (*tries_io)++;
    (void)nanosleep(&pause, NULL); /* a signal may cut it short; that does no harm */
    return true;
}
