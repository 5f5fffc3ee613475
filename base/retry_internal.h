/* SPDX-License-Identifier: Apache-2.0 */
/* Failed system calls: whose fault they are, and which are worth another try. */
#ifndef PRESTO_BASE_RETRY_INTERNAL_H
#define PRESTO_BASE_RETRY_INTERNAL_H

#include <presto/status.h>

/**
 * Did the machine fail, and not the one file that was asked for? True for too many open files, no
 * memory, a disk or a file server that fails, and whatever is unknown: the next file may fail
 * alike, so that leaving this one out mends nothing. False for 0 and for what is wrong with a
 * single path: it does not exist, may not be read, is a folder, is too long, ...
 */
bool presto__errno_is_machine(int sys_errno);

/** The same of an error: no memory, a wish to stop, or such an errno. All samples share it. */
bool presto__is_machine_failure(const presto_error *why);

/** May the same call succeed a moment later (EMFILE, ENFILE, EAGAIN, EINTR, ESTALE, ...)? */
bool presto__errno_may_pass(int sys_errno);

/**
 * Before another try: waits and returns true, or returns false at once if another try makes no
 * sense. *tries_io counts them, 0 at first. The waits double from 1 ms; after ten of them, which
 * are one second, it gives up. Any thread.
 */
bool presto__retry_pause(int sys_errno, unsigned *tries_io);

#endif
