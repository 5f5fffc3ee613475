/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Outputs that may be more than a regular file: the user names a pipe, a device or an open
 * descriptor. In a folder that others may write to, the same name may be a link that they have put
 * there. It is not followed.
 */
#ifndef PRESTO_TOOLS_NAMED_OUTPUT_H
#define PRESTO_TOOLS_NAMED_OUTPUT_H

#include <stdbool.h>

#include <presto/span.h>

/**
 * Is `path` written to as it stands, and not replaced by a file? True for /dev/stderr and
 * /dev/fd/N, a named pipe, a device, and a link to one of these that is the user's own or root's.
 */
bool output_is_direct(const char *path);

/** Can it be written to? For what output_is_direct says yes to. Returns 0 or an errno. */
int output_check(const char *path);

/**
 * Open for writing, with `flags` besides; -1 after a message. Of /dev/stderr and /dev/fd/N it is
 * the open descriptor itself, which may have no other name. A link is followed only if it is the
 * user's own or root's.
 */
int output_open(const char *path, int flags);

/** Write all of it. Returns 0 or an errno. */
int output_write(int fd, presto_span data);

#endif
