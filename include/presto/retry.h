/* SPDX-License-Identifier: Apache-2.0 */
/* Failed system calls: whose fault they are, and which are worth another try. */
#ifndef PRESTO_RETRY_H
#define PRESTO_RETRY_H

#include <stdbool.h>

#include <presto/api.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * Did the machine fail, and not the one file that was asked for? True for too many open files, no
 * memory, a disk or a file server that fails, and whatever is unknown: the next file may fail
 * alike, so that leaving this one out mends nothing. False for 0 and for what is wrong with a
 * single path: it does not exist, may not be read, is a folder, is too long, ...
 */
PRESTO_API bool presto_errno_is_machine(int sys_errno);

/** May the same call succeed a moment later (EMFILE, ENFILE, EAGAIN, EINTR, ESTALE, ...)? */
PRESTO_API bool presto_errno_may_pass(int sys_errno);

/**
 * Before another try: waits and returns true, or returns false at once if another try makes no
 * sense. *tries_io counts them, 0 at first. The waits double from 1 ms; after ten of them, which
 * are one second, it gives up. Any thread.
 */
PRESTO_API bool presto_retry_pause(int sys_errno, unsigned *tries_io);

#ifdef __cplusplus
}
#endif

#endif
