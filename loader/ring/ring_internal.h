/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Room ring: batches from one process to another, through shared memory and a Unix socket. Readers
 * are those of presto/ring.h; room out writes.
 * May see: base. Must not know: sources, the engine; a batch is what presto/loader.h says.
 * Nothing in the shared memory is ever followed: it holds values only, and copies are made of what
 * is. Messages are checked when they have arrived whole. Lock: that of presto__ring_map.
 */
#ifndef PRESTO_LOADER_RING_INTERNAL_H
#define PRESTO_LOADER_RING_INTERNAL_H

#include <pthread.h>
#include <sys/uio.h>

#include <presto/ring.h>

#define PRESTO__RING_MAGIC "PRESTORG"
#define PRESTO__RING_NOTHING UINT64_MAX /* a place: there is no such array */

enum {
    PRESTO__RING_VERSION = 1,
    PRESTO__RING_ALIGNMENT = 64,
    PRESTO__RING_MOST_LIVE = 64, /* batches sent and not released */
    PRESTO__RING_MOST_FEATURES = 1 << 16,
    PRESTO__RING_MOST_MESSAGE_BYTES = 1 << 24
};

/* ---- messages: a head, then so many bytes. Numbers are those of the machine. ---- */

typedef enum presto__ring_kind {
    PRESTO__RING_HELLO = 1,   /* both: presto__ring_hello; from the writer with the memory */
    PRESTO__RING_BATCH = 2,   /* writer: presto__ring_batch, features, names back to back */
    PRESTO__RING_END = 3,     /* writer: presto__ring_end */
    PRESTO__RING_ERROR = 4,   /* writer: presto__ring_error, file, message */
    PRESTO__RING_FULL = 5,    /* writer: presto__ring_full; it waits for room */
    PRESTO__RING_RELEASE = 6, /* reader: the id of a batch */
} presto__ring_kind;

typedef struct presto__ring_head {
    uint32_t kind, bytes;
} presto__ring_head;

typedef struct presto__ring_hello {
    char magic[8];
    uint64_t version;
    uint64_t ring_bytes; /* from the writer; else 0 */
} presto__ring_hello;

/* Places are bytes from `place`, which is one from the start of the memory. */
typedef struct presto__ring_batch {
    uint64_t id, place, bytes;
    uint64_t epoch, first, rows, skipped, main_feature;
    uint64_t numbers_at; /* sample_numbers: rows of uint64 */
    uint64_t feature_count;
} presto__ring_batch;

typedef struct presto__ring_feature {
    uint64_t name_bytes, encoding, layout, dtype, rank;
    int64_t dims[PRESTO_MAX_RANK];
    uint64_t values_at, offsets_at, rows_at, shapes_at, shape_rank;
} presto__ring_feature;

typedef struct presto__ring_end {
    uint64_t samples, batches;
} presto__ring_end;

typedef struct presto__ring_error {
    int64_t status, sys_errno;
    uint64_t offset, record, file_bytes, message_bytes;
} presto__ring_error;

typedef struct presto__ring_full {
    uint64_t released; /* batches that the writer knows to be released */
    uint64_t bytes;    /* that it waits for */
} presto__ring_full;

/* ---- socket.c ---- */

/** One end of the socket. Zero-initialise but for `fd` and `memory`, which are -1 while there is
 * none. */
typedef struct presto__ring_link {
    int fd;
    int memory; /* a descriptor that came with a message */
    presto_stop_fn should_stop;
    void *should_stop_user;
    uint64_t until_ns; /* give up waiting then; 0: never */
    presto_buffer in;  /* what has arrived, from `taken` on not handed out */
    size_t taken;
} presto__ring_link;

void presto__ring_link_done(presto__ring_link *link);

/** PRESTO_ERR_STOPPED if should_stop says so, PRESTO_ERR_BUSY if until_ns is over. */
presto_status presto__ring_may_wait(const presto__ring_link *link, presto_error *err);

/**
 * Send a message of `parts`, the first of which is its head, with a descriptor if `memory` >= 0.
 * `parts` is changed.
 * Returns: PRESTO_OK; PRESTO_END if the other side is gone; PRESTO_ERR_IO; may_wait's.
 */
presto_status presto__ring_send(presto__ring_link *link, struct iovec *parts, size_t count,
                                int memory, presto_error *err);

/**
 * Take the next message: *head_out, and *body_out until the next call.
 * Returns: PRESTO_OK; PRESTO_DROP if none has arrived and `waits` is false; PRESTO_END if the other
 *          side is gone; PRESTO_ERR_CORRUPT (longer than a message may be); PRESTO_ERR_IO,
 *          PRESTO_ERR_MEMORY; may_wait's.
 */
presto_status presto__ring_take(presto__ring_link *link, bool waits, presto__ring_head *head_out,
                                presto_span *body_out, presto_error *err);

/** The socket of a writer at `path`, owned by this user alone. */
presto_status presto__ring_listen(const char *path, int *fd_out, presto_error *err);
/** A connection to `path`. PRESTO_ERR_NOT_FOUND if nobody listens there. */
presto_status presto__ring_connect(const char *path, int *fd_out, presto_error *err);
/** PRESTO_ERR_ARGUMENT unless the other side is of this user, or root. */
presto_status presto__ring_check_peer(int fd, presto_error *err);

/* ---- place.c: which parts of the memory are in use ---- */

typedef struct presto__ring_part {
    uint64_t id, place, bytes;
} presto__ring_part;

typedef struct presto__ring_parts {
    uint64_t ring_bytes;
    presto__ring_part live[PRESTO__RING_MOST_LIVE]; /* by place */
    size_t count;
} presto__ring_parts;

/** Find room for `bytes` (a multiple of the alignment) at the lowest place. False: none. */
bool presto__ring_reserve(presto__ring_parts *parts, uint64_t id, uint64_t bytes,
                          uint64_t *place_out);
/** False: there is no such id. */
bool presto__ring_release(presto__ring_parts *parts, uint64_t id);

/* ---- message.c ---- */

/** The memory as the reader has it; shared by the reader and its batches. */
typedef struct presto__ring_map {
    const uint8_t *memory;
    uint64_t bytes;
    /* Guarded by lock. */
    pthread_mutex_t lock;
    size_t refs;       /* the reader, and batches */
    size_t held;       /* batches */
    uint64_t released; /* batches */
    int fd;            /* where to tell; -1: the reader is gone */
} presto__ring_map;

/** A batch that was handed out. `shown` is the first field: a presto_batch is one of these. */
typedef struct presto__ring_item {
    presto_batch shown;
    presto__ring_map *map;
    uint64_t id;
    presto_arena arena; /* of features, names and offsets */
} presto__ring_item;

/**
 * What a BATCH message says, checked, on `memory` of `bytes`. Offsets and shapes are copied before
 * they are checked. The item has no map yet.
 * Returns: PRESTO_OK, PRESTO_ERR_CORRUPT, PRESTO_ERR_MEMORY.
 */
presto_status presto__ring_parse(presto_span message, const uint8_t *memory, uint64_t bytes,
                                 presto__ring_item **item_out, presto_error *err);
void presto__ring_item_free(presto__ring_item *item);
/** The failure that an ERROR message tells; PRESTO_ERR_CORRUPT if it is none. Always negative. */
presto_status presto__ring_parse_error(presto_span message, presto_error *err);

/* ---- writer.c ---- */

typedef struct presto__ring_writer presto__ring_writer;

/**
 * Make the memory, and the socket if there is a path. The reader is waited for by what is called
 * first of put and end.
 * Returns: PRESTO_OK; PRESTO_ERR_BUSY (a writer that lives has the path); PRESTO_ERR_IO;
 *          PRESTO_ERR_ARGUMENT (path and fd, or neither; a path that is too long or is no socket);
 *          PRESTO_ERR_MEMORY.
 */
presto_status presto__ring_writer_open(const presto_ring_options *options,
                                       presto__ring_writer **writer_out, presto_error *err);

/**
 * Copy a batch into the ring; waits until there is room. Only its features, rows, sample_numbers,
 * epoch, first, skipped and main_feature are looked at.
 * Returns: PRESTO_OK; PRESTO_END if the reader is gone; PRESTO_ERR_LIMIT (larger than the ring);
 *          PRESTO_ERR_STOPPED; PRESTO_ERR_CORRUPT (the reader does not keep to the protocol);
 *          PRESTO_ERR_MEMORY; PRESTO_ERR_IO, also if what is at the other end of `fd` is no reader,
 *          PRESTO_ERR_UNSUPPORTED if it is one of another version, PRESTO_ERR_BUSY if it says
 *          nothing for 5 s. Whoever is none at `path` is sent away, and the next one waited for.
 * Threads: one at a time, as for the other calls of a writer.
 */
presto_status presto__ring_writer_put(presto__ring_writer *writer, const presto_batch *batch,
                                      presto_error *err);

/** Tell the reader that this was all. Does not wait for it to read. Returns: as put. */
presto_status presto__ring_writer_end(presto__ring_writer *writer, presto_error *err);

/** Tell the reader, if one has come, that there is no more, and why. */
void presto__ring_writer_fail(presto__ring_writer *writer, const presto_error *why);

/** Bytes of batches put so far. */
uint64_t presto__ring_writer_bytes(const presto__ring_writer *writer);

/** A reader that has not been told of an end fails. NULL is fine. */
void presto__ring_writer_free(presto__ring_writer *writer);

#endif
