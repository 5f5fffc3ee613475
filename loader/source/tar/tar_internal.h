/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Members of a tar archive, from header to header: v7, ustar, GNU (long names) and pax. Knows no
 * files: bytes come from a hook. Memory is bounded whatever the headers say.
 */
#ifndef PRESTO_TAR_INTERNAL_H
#define PRESTO_TAR_INTERNAL_H

#include <presto/span.h>

#define PRESTO__TAR_BLOCK ((size_t)512)

/** The bytes [offset, offset + count) of an archive, fewer if it ends before. The view is valid
 * until the next call. Offsets may go back to the member at hand. */
typedef presto_status (*presto__tar_view_fn)(void *user, uint64_t offset, size_t count,
                                             presto_span *view_out, presto_error *err);

/** Where the next bytes are that a hole of the file, which is all zeros, does not hold: `offset`, or
 * behind it. */
typedef uint64_t (*presto__tar_skip_fn)(void *user, uint64_t offset);

/** A walk over the members. Set `view`, `user` and `next`, and `skip` if holes are known; the rest is
 * 0. */
typedef struct presto__tar {
    presto__tar_view_fn view;
    presto__tar_skip_fn skip; /* NULL: holes are read */
    void *user;
    uint64_t next;      /* where the next header stands */
    presto_buffer name; /* of the member at hand; empty if it failed before its name was known */
    bool lacks_end;     /* PRESTO_END came where the bytes end, not at a block of zeros */
    /* Read of extended headers in front of members that failed. The same bytes count each time. */
    uint64_t lost_bytes;
} presto__tar;

/** One member. The name is borrowed until the next call. */
typedef struct presto__tar_member {
    uint64_t start; /* of its first header; those of a long name count */
    uint64_t data;  /* where its content starts */
    uint64_t bytes;
    presto_span name; /* without NUL */
    bool is_file;     /* a regular file; else it has no content that anybody wants */
} presto__tar_member;

/**
 * The next member. Its content is there as a whole.
 * Returns: PRESTO_OK; PRESTO_END at a block of zeros, which ends an archive, or where the bytes end
 *          behind a member, as for GNU tar. Or a failure, with the byte in the archive; tar->next stays in front of the member: PRESTO_ERR_TRUNCATED,
 *          _CORRUPT (a checksum, a number, extended headers that do not hold), _UNSUPPORTED (a
 *          sparse file, a volume's continuation), _LIMIT (a name or extended header too long),
 *          _MEMORY, and what `view` returned.
 */
presto_status presto__tar_next(presto__tar *tar, presto__tar_member *member_out, presto_error *err);
void presto__tar_done(presto__tar *tar);

/**
 * Go on behind damage: look for the next header from the block behind tar->next on.
 * Returns: PRESTO_OK; PRESTO_END if there is none; what `view` returned.
 */
presto_status presto__tar_resume(presto__tar *tar, presto_error *err);

/**
 * tar->next is a block of zeros: pass over it and up to 1 MiB of zeros behind it.
 * Returns: PRESTO_OK if something else follows, as in archives that were appended to each other;
 *          PRESTO_END; what `view` returned.
 */
presto_status presto__tar_pass_zeros(presto__tar *tar, presto_error *err);

/**
 * WebDataset's rule: the key is the path up to the first dot of the base name, the extension what
 * follows. False: the name has no key. It starts with a dot, has none, or is that of a file about
 * the archive ("__meta__").
 */
bool presto__tar_split(presto_span name, presto_span *key_out, presto_span *extension_out);

#endif
