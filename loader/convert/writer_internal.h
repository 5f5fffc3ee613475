/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A writer: samples that a program gives become shards. Part of room convert.
 *
 * writer.c takes samples, writer_arrow.c rows of Arrow's arrays; writer_schema.c says whether they are alike; writer_blocks.c compresses
 * them, a block at a time, in threads; writer_store.c puts blocks into shards, in order.
 */
#ifndef PRESTO_LOADER_WRITER_INTERNAL_H
#define PRESTO_LOADER_WRITER_INTERNAL_H

#include <pthread.h>

#include <presto/writer.h>

#include "../../records/records_internal.h"
#include "convert_internal.h"

/* ---- schema ---- */

/** The features that all samples have. Zero-initialise. */
typedef struct presto__alike {
    presto__schema schema;
    uint32_t *order;   /* where in the schema the features of the last sample are */
    uint64_t checks;   /* samples that were checked */
    uint64_t *touched; /* by the feature's place: the check that found it last */
    int *ranks;        /* likewise: dimensions of its values, which a list may hide */
} presto__alike;

void presto__alike_done(presto__alike *alike);
/**
 * Is the sample, number `number`, like those before? *news_out: the schema has to be widened for
 * it.
 */
presto_status presto__alike_check(presto__alike *alike, const presto_sample *sample,
                                  uint64_t number, bool *news_out, presto_error *err);
/** Room for the features of the schema, which is not empty. */
presto_status presto__alike_reserve(presto__alike *alike, presto_error *err);

/* ---- blocks ---- */

/** Samples that are compressed together and written one after the other. */
typedef struct presto__sample_block {
    uint64_t first; /* number of the first sample */
    size_t count;
    /* Without a codec, a sample is serialized where it stands in its frame: `raw` has room for
     * header and footer around each, and `frames` stays empty. */
    bool is_in_place;
    presto_buffer raw; /* serialized */
    presto_buffer frames;
    uint32_t *raw_bytes; /* of each sample */
    uint32_t *frame_bytes;
    size_t capacity;
    bool is_framed; /* guarded by the lock */
} presto__sample_block;

/* ---- store ---- */

/** Where the next sample goes. Of one thread at a time. */
typedef struct presto__sample_store {
    presto__conversion *job; /* of the same presto_writer, which closes the store first */
    presto__writers *writers;
    presto__shard_range shard; /* that is open, or will be */
    uint64_t shard_records, shard_frame_bytes;
} presto__sample_store;

presto_status presto__sample_store_open(presto__sample_store *store, presto__conversion *job,
                                        presto_error *err);
presto_status presto__sample_store_put(presto__sample_store *store,
                                       const presto__sample_block *block, presto_error *err);
/** There are `samples` in all: finish the shard that is open, and those that lack. */
presto_status presto__sample_store_end(presto__sample_store *store, uint64_t samples,
                                       presto_error *err);
/** Give up the shard that is open. */
void presto__sample_store_close(presto__sample_store *store);

/* ---- the writer ---- */

struct presto_writer {
    /* Its threads use all of it; finish and free join them first. */
    /* Set by open, then read-only. */
    presto_convert_options convert; /* of the conversion */
    presto_stop_fn should_stop;     /* asked by threads that call, never by its own */
    void *should_stop_user;         /* kept alive by the caller until free */
    uint64_t announced;             /* samples; 0: any number */
    size_t most_bytes;              /* that wait */
    unsigned thread_count;          /* that were started */
    pthread_t *threads;
    presto__sample_block *blocks; /* block i stands in blocks[i % block_count] */
    size_t block_count;
    presto_arena texts; /* what options point to */

    /* Of the thread that adds or finishes; the schema is changed with the lock held. */
    presto__alike alike;
    bool is_fitted;      /* the codec, to the first sample */
    presto_codec *codec; /* without threads */

    /* Of the thread that stores: is_storing is its. */
    presto__conversion job;
    presto__sample_store store;

    /* Guarded by lock. */
    pthread_mutex_t lock;
    pthread_cond_t work;   /* threads: there is a block, or the end */
    pthread_cond_t change; /* callers: room, or a failure */
    bool is_adding, is_storing, is_stopped, is_finished;
    bool has_news;        /* the schema is wider than that of the job */
    uint64_t samples;     /* added; only the thread that adds changes it */
    uint64_t next_in;     /* the block that is being filled; likewise */
    uint64_t next_framed; /* the next that a thread takes */
    uint64_t next_out;    /* the next to be stored */
    size_t waiting_bytes; /* of blocks [next_out, next_in) */
    unsigned callers;     /* that wait for a change */
    presto_error error;   /* the first failure */
};

/** Become the one who adds, once a block may be filled. presto__writer_end must follow. */
presto_status presto__writer_begin(presto_writer *writer, presto_error *err);
/** So many samples were added since presto__writer_begin. */
void presto__writer_end(presto_writer *writer, uint64_t added);
/**
 * Put a sample into the open block; its number is that of the writer. `rows`: as in
 * presto__sample_block_add. `is_known`: samples before had the same features, of the same kinds and
 * sizes, or more of them, so that nothing need be compared.
 */
presto_status presto__writer_put(presto_writer *writer, const presto_sample *sample,
                                 presto__example_rows *rows, bool is_known, presto_error *err);

void presto__sample_block_done(presto__sample_block *block);
/** Serialize a sample behind the others, of features as `rows` has them; NULL: of any. On failure
 * the block is as before. */
presto_status presto__sample_block_add(presto__sample_block *block, const presto_sample *sample,
                                       presto__example_rows *rows, presto_error *err);
/** Take the last one back. */
void presto__sample_block_take_back(presto__sample_block *block);
/** Its frames, one behind the other, once they are made. */
static inline const uint8_t *presto__sample_block_frames(const presto__sample_block *block) {
    return block->is_in_place ? block->raw.data : block->frames.data;
}
/** Make frames of its samples. A record too large for a frame fails. */
presto_status presto__sample_block_frame(presto__sample_block *block, presto_codec *codec,
                                         presto_error *err);
presto_status presto__blocks_start(presto_writer *writer, presto_error *err);
/** Is it as large as is worth handing over? */
bool presto__blocks_is_full(const presto__sample_block *block);
/** Hand over the block that is being filled. There is room for the next one then. */
presto_status presto__blocks_submit(presto_writer *writer, presto_error *err);
/** With the lock held: may a block be begun? */
bool presto__blocks_have_room(const presto_writer *writer);
/** End the threads. What waits is not written. */
void presto__blocks_stop(presto_writer *writer);
void presto__blocks_free(presto_writer *writer);
/** With the lock held, wait for a change, at most a tenth of a second. */
void presto__blocks_wait(presto_writer *writer);
/** With the lock held: the failure. */
presto_status presto__writer_failure(const presto_writer *writer, presto_error *err);

/* ---- regroup_blocks.c: rows that a regrouping step has made, until they are in a shard ---- */

/** Rows that are compressed together. Of the caller, but while it is submitted and not taken. */
typedef struct presto__row_block {
    presto__sample_block rows;     /* `first` is not used */
    presto__regroup_place *begins; /* where each row begins */
    size_t begins_capacity;
} presto__row_block;

/** Blocks of rows in a ring. All is called by one thread. */
typedef struct presto__row_blocks presto__row_blocks;

/** Starts the job's number of threads if its codec compresses; job->codec stays as it is. */
presto_status presto__row_blocks_new(const presto__conversion *job, presto__row_blocks **blocks_out,
                                     presto_error *err);
/** Ends the threads; what is in the ring is given up. NULL is fine. */
void presto__row_blocks_free(presto__row_blocks *blocks);
/** May a block be filled? If not, the oldest must be taken and given back. */
bool presto__row_blocks_have_room(const presto__row_blocks *blocks);
/** The block that is being filled; there is room. */
presto__row_block *presto__row_blocks_open(const presto__row_blocks *blocks);
/** Add a row, which begins at `begin`. */
presto_status presto__row_block_add(presto__row_block *block, const presto_sample *row,
                                    const presto__regroup_place *begin, presto_error *err);
/** Is it as large as is worth handing over? */
bool presto__row_block_is_full(const presto__row_block *block);
/** Hand over the block that is being filled, unless it is empty. */
void presto__row_blocks_submit(presto__row_blocks *blocks);
/**
 * The oldest block that was handed over, with the frames of its rows, until it is given back.
 * Returns: PRESTO_OK; PRESTO_END: there is none, or without `waits` its frames are not ready; why
 *          a block failed.
 */
presto_status presto__row_blocks_take(presto__row_blocks *blocks, bool waits,
                                      presto__row_block **block_out, presto_error *err);
/** Its rows are stored. */
void presto__row_blocks_give_back(presto__row_blocks *blocks);

#endif
