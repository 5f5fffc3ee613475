/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Room inspect: files that may be damaged or foreign: walking past damage, guessing what records
 * are, verify, repair, summary.
 * May see: base, storage and all other rooms of records/.
 * No lock.
 */
#ifndef PRESTO_INSPECT_INTERNAL_H
#define PRESTO_INSPECT_INTERNAL_H

#include <presto/codec.h>
#include <presto/inspect.h>

typedef struct presto__scan presto__scan;

/** A whole record, or a range of bytes that belongs to no record. */
typedef struct presto__scan_item {
    bool whole;
    presto_span payload;    /* whole: borrowed until the next call */
    uint64_t record;        /* its number; for a lost range: the number that it would have */
    uint64_t offset;        /* in the framed stream */
    uint64_t bytes;         /* of the frame or range; 0: the file as a whole */
    presto_fault_kind kind; /* not whole */
    const char *message;    /* not whole; borrowed until the next call */
} presto__scan_item;

/**
 * Start at the beginning of `path`.
 * Returns: PRESTO_OK, PRESTO_ERR_NOT_FOUND, PRESTO_ERR_IO, PRESTO_ERR_MEMORY.
 */
presto_status presto__scan_new(const char *path, uint64_t max_payload_bytes,
                               presto__scan **scan_out, presto_error *err);
void presto__scan_free(presto__scan *scan);
/** Ask `should_stop` before each read; presto__scan_next then fails with PRESTO_ERR_STOPPED. */
void presto__scan_ask(presto__scan *scan, presto_stop_fn should_stop, void *user);
/** Returns: PRESTO_OK, PRESTO_END, PRESTO_ERR_MEMORY, PRESTO_ERR_STOPPED. Read errors and damage
 * are items. */
presto_status presto__scan_next(presto__scan *scan, presto__scan_item *item_out, presto_error *err);
presto_file_compression presto__scan_compression(const presto__scan *scan);
uint64_t presto__scan_file_bytes(const presto__scan *scan);

/* ---- what records are ---- */

typedef enum presto__record_kind {
    PRESTO__KIND_EMPTY,
    PRESTO__KIND_EXAMPLE,
    PRESTO__KIND_SEQUENCE,
    PRESTO__KIND_BYTES
} presto__record_kind;

/** "empty", "Example", "SequenceExample", "bytes". */
const char *presto__record_kind_name(presto__record_kind kind);

/** Does it look like a decompressed record? */
presto__record_kind presto__record_kind_of(presto_span record, presto_arena *arena);

/** Enough of them to guess a codec: behind the first record, no more is copied for it. */
#define PRESTO__GUESS_BYTES ((size_t)16 << 20)

/** The codec that decodes these payloads; "none" if none is needed or none fits. */
presto_status presto__guess_codec(const presto_span *payloads, size_t count, presto_arena *arena,
                                  presto_codec_spec *spec_out, presto_error *err);

#endif
