/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rows that a regrouping step has made, on their way into shards. The caller puts them, one behind
 * the other, into a block. Blocks wait in a ring: any thread takes the next one and makes frames of
 * its rows. The caller gets them back in order. So a codec takes as many threads as there are, and
 * the shards are the same for any number.
 *
 * Without threads, and without a codec, the caller makes the frames: handing over costs more.
 */
#include <stdlib.h>

#include "../../base/thread_internal.h"
#include "writer_internal.h"

#define BLOCK_BYTES ((size_t)256 << 10)

struct presto__row_blocks {
    /* Set when it is made, then read-only. */
    /* The conversion's, and so is its dictionary. presto__conversion_run_regroup frees the blocks,
     * which joins the threads, before the conversion goes. */
    const presto_codec_spec *codec;
    presto__row_block *blocks; /* block i stands in blocks[i % block_count] */
    size_t block_count;
    pthread_t *threads;
    unsigned thread_count; /* that were started */
    presto_codec *here;    /* without threads */

    pthread_mutex_t lock;
    pthread_cond_t work;   /* threads: there is a block, or the end */
    pthread_cond_t framed; /* the caller: a block is framed, or a thread has failed */
    /* Guarded by lock; only the caller changes next_in and next_out. */
    uint64_t next_in;     /* the block that is being filled */
    uint64_t next_framed; /* the next that a thread takes */
    uint64_t next_out;    /* the oldest */
    bool is_stopped;
    presto_error error; /* the first failure */
};

/* ---- a block ---- */

presto_status presto__row_block_add(presto__row_block *block, const presto_sample *row,
                                    const presto__regroup_place *begin, presto_error *err) {
    presto__sample_block *rows = &block->rows;
    if (rows->count == block->begins_capacity) {
        size_t capacity = rows->count == 0 ? 16 : 2 * rows->count;
        presto__regroup_place *begins = realloc(block->begins, capacity * sizeof *begins);
        if (begins == NULL)
            return presto_fail_memory(err, capacity * sizeof *begins);
        block->begins = begins;
        block->begins_capacity = capacity;
    }
    block->begins[rows->count] = *begin;
    return presto__sample_block_add(rows, row, NULL, err);
}

static presto__row_block *block_at(const presto__row_blocks *blocks, uint64_t number) {
    return &blocks->blocks[number % blocks->block_count];
}

presto__row_block *presto__row_blocks_open(const presto__row_blocks *blocks) {
    return block_at(blocks, blocks->next_in);
}

bool presto__row_block_is_full(const presto__row_block *block) {
    return block->rows.raw.bytes >= BLOCK_BYTES;
}

/* ---- the ring ---- */

/* With the lock held. */
static void stop(presto__row_blocks *blocks, const presto_error *error) {
    if (!blocks->is_stopped)
        blocks->error = *error;
    blocks->is_stopped = true;
    pthread_cond_broadcast(&blocks->work);
    pthread_cond_broadcast(&blocks->framed);
}

/* With the lock held, which is given up meanwhile. */
static void frame_next(presto__row_blocks *blocks, presto_codec *codec) {
    presto__row_block *block = block_at(blocks, blocks->next_framed++);
    presto_error error;
    pthread_mutex_unlock(&blocks->lock);
    presto_status status = presto__sample_block_frame(&block->rows, codec, &error);
    pthread_mutex_lock(&blocks->lock);
    block->rows.is_framed = status == PRESTO_OK;
    if (status < 0)
        stop(blocks, &error);
    pthread_cond_signal(&blocks->framed);
}

static void *run_thread(void *argument) {
    presto__row_blocks *blocks = argument;
    presto_codec *codec = NULL;
    presto_error error;
    presto_status status = presto_codec_new(blocks->codec, &codec, &error);
    pthread_mutex_lock(&blocks->lock);
    if (status < 0)
        stop(blocks, &error);
    while (!blocks->is_stopped) {
        if (blocks->next_framed < blocks->next_in)
            frame_next(blocks, codec);
        else
            pthread_cond_wait(&blocks->work, &blocks->lock);
    }
    pthread_mutex_unlock(&blocks->lock);
    presto_codec_free(codec);
    return NULL;
}

bool presto__row_blocks_have_room(const presto__row_blocks *blocks) {
    return blocks->next_in - blocks->next_out < blocks->block_count;
}

void presto__row_blocks_submit(presto__row_blocks *blocks) {
    if (presto__row_blocks_open(blocks)->rows.count == 0)
        return;
    pthread_mutex_lock(&blocks->lock);
    blocks->next_in++;
    if (blocks->thread_count > 0)
        pthread_cond_signal(&blocks->work);
    else if (!blocks->is_stopped)
        frame_next(blocks, blocks->here);
    pthread_mutex_unlock(&blocks->lock);
}

presto_status presto__row_blocks_take(presto__row_blocks *blocks, bool waits,
                                      presto__row_block **block_out, presto_error *err) {
    presto__row_block *block = block_at(blocks, blocks->next_out);
    if (blocks->next_out == blocks->next_in)
        return PRESTO_END;
    pthread_mutex_lock(&blocks->lock);
    while (waits && !block->rows.is_framed && !blocks->is_stopped)
        pthread_cond_wait(&blocks->framed, &blocks->lock);
    presto_status status = blocks->is_stopped      ? blocks->error.status
                           : block->rows.is_framed ? PRESTO_OK
                                                   : PRESTO_END;
    if (status < 0 && err != NULL)
        *err = blocks->error;
    pthread_mutex_unlock(&blocks->lock);
    if (status == PRESTO_OK)
        *block_out = block;
    return status;
}

void presto__row_blocks_give_back(presto__row_blocks *blocks) {
    presto__sample_block *rows = &block_at(blocks, blocks->next_out)->rows;
    rows->raw.bytes = rows->frames.bytes = rows->count = 0;
    rows->is_framed = false;
    pthread_mutex_lock(&blocks->lock);
    blocks->next_out++;
    pthread_mutex_unlock(&blocks->lock);
}

/* ---- beginning and end ---- */

static presto_status start(presto__row_blocks *blocks, unsigned threads, presto_error *err) {
    if (threads == 0)
        return presto_codec_new(blocks->codec, &blocks->here, err);
    int failed = 0;
    while (blocks->thread_count < threads && failed == 0) {
        failed = presto__thread_start(&blocks->threads[blocks->thread_count], run_thread, blocks);
        blocks->thread_count += failed == 0;
    }
    return failed == 0 ? PRESTO_OK
                       : presto_fail_errno(err, failed, "", "cannot start compressing thread");
}

static bool open_lock(presto__row_blocks *blocks) {
    if (pthread_mutex_init(&blocks->lock, NULL) != 0)
        return false;
    if (pthread_cond_init(&blocks->work, NULL) == 0) {
        if (pthread_cond_init(&blocks->framed, NULL) == 0)
            return true;
        pthread_cond_destroy(&blocks->work);
    }
    pthread_mutex_destroy(&blocks->lock);
    return false;
}

presto_status presto__row_blocks_new(const presto__conversion *job, presto__row_blocks **blocks_out,
                                     presto_error *err) {
    bool has_codec = strcmp(job->codec_text, "none") != 0;
    unsigned threads = has_codec ? job->options->threads : 0;
    presto__row_blocks *blocks = calloc(1, sizeof *blocks);
    if (blocks == NULL || !open_lock(blocks)) {
        free(blocks);
        return presto_fail_memory(err, sizeof *blocks);
    }
    blocks->codec = &job->codec;
    blocks->block_count = (size_t)threads + 2;
    blocks->blocks = calloc(blocks->block_count, sizeof *blocks->blocks);
    blocks->threads = calloc((size_t)threads + 1, sizeof *blocks->threads);
    presto_status status = blocks->blocks == NULL || blocks->threads == NULL
                               ? presto_fail_memory(err, blocks->block_count)
                               : start(blocks, threads, err);
    if (status < 0) {
        presto__row_blocks_free(blocks);
        return status;
    }
    for (size_t i = 0; i < blocks->block_count; i++)
        blocks->blocks[i].rows.is_in_place = !has_codec;
    *blocks_out = blocks;
    return PRESTO_OK;
}

void presto__row_blocks_free(presto__row_blocks *blocks) {
    if (blocks == NULL)
        return;
    presto_error stopped;
    presto_error_set(&stopped, PRESTO_ERR_STOPPED, PRESTO_NO_OFFSET, "the conversion has ended");
    pthread_mutex_lock(&blocks->lock);
    stop(blocks, &stopped);
    pthread_mutex_unlock(&blocks->lock);
    for (unsigned i = 0; i < blocks->thread_count; i++)
        pthread_join(blocks->threads[i], NULL);
    for (size_t i = 0; blocks->blocks != NULL && i < blocks->block_count; i++) {
        presto__sample_block_done(&blocks->blocks[i].rows);
        free(blocks->blocks[i].begins);
    }
    free(blocks->blocks);
    free(blocks->threads);
    presto_codec_free(blocks->here);
    pthread_cond_destroy(&blocks->framed);
    pthread_cond_destroy(&blocks->work);
    pthread_mutex_destroy(&blocks->lock);
    free(blocks);
}
