/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Blocks of samples on their way. One block is filled by the callers. The others wait, in order, in
 * a ring: any thread takes the next one and makes frames of its samples. One thread at a time
 * stores the oldest block, once it is framed, so that files have the samples in order.
 *
 * The first failure stops all: what waits is given up.
 */
#include <stdlib.h>
#include <time.h>

#include <presto/example.h>

#include "../../base/stop_internal.h"
#include "../../base/thread_internal.h"
#include "../../records/records_internal.h"
#include "writer_internal.h"

#define BLOCK_BYTES ((size_t)1 << 20)
#define BLOCK_SAMPLES 4096
#define WAIT_NS 100000000

/* ---- one block ---- */

static presto_status make_room(presto__sample_block *block, presto_error *err) {
    if (block->count < block->capacity)
        return PRESTO_OK;
    size_t capacity = block->capacity == 0 ? 16 : 2 * block->capacity;
    uint32_t *raw = realloc(block->raw_bytes, capacity * sizeof *raw);
    if (raw != NULL)
        block->raw_bytes = raw;
    uint32_t *frames = realloc(block->frame_bytes, capacity * sizeof *frames);
    if (frames != NULL)
        block->frame_bytes = frames;
    if (raw == NULL || frames == NULL)
        return presto_fail_memory(err, capacity * sizeof *frames);
    block->capacity = capacity;
    return PRESTO_OK;
}

static const uint8_t frame_room[PRESTO_FRAME_HEADER_BYTES];

/* The bytes of `raw` that a sample takes beside its own. */
static size_t room_of_frame(const presto__sample_block *block) {
    return block->is_in_place ? PRESTO_FRAME_HEADER_BYTES + PRESTO_FRAME_FOOTER_BYTES : 0;
}

static presto_status serialize(presto__sample_block *block, const presto_sample *sample,
                               presto__example_rows *rows, presto_error *err) {
    presto_buffer *raw = &block->raw;
    size_t before = block->is_in_place ? PRESTO_FRAME_HEADER_BYTES : 0;
    size_t behind = room_of_frame(block) - before;
    PRESTO_TRY(presto_buffer_reserve(raw, before, err));
    raw->bytes += before;
    if (rows != NULL)
        PRESTO_TRY(presto__example_rows_append(rows, raw, sample->features, err));
    else
        PRESTO_TRY(presto_example_append(raw, sample, err));
    PRESTO_TRY(presto_buffer_reserve(raw, behind, err));
    raw->bytes += behind; /* close_frame fills both */
    return PRESTO_OK;
}

presto_status presto__sample_block_add(presto__sample_block *block, const presto_sample *sample,
                                       presto__example_rows *rows, presto_error *err) {
    size_t before = block->raw.bytes;
    PRESTO_TRY(make_room(block, err));
    presto_status status = serialize(block, sample, rows, err);
    if (status < 0)
        block->raw.bytes = before;
    else
        block->raw_bytes[block->count++] =
            (uint32_t)(block->raw.bytes - before - room_of_frame(block));
    return status;
}

void presto__sample_block_take_back(presto__sample_block *block) {
    block->raw.bytes -= block->raw_bytes[--block->count] + room_of_frame(block);
}

bool presto__blocks_is_full(const presto__sample_block *block) {
    return block->raw.bytes >= BLOCK_BYTES || block->count >= BLOCK_SAMPLES;
}

void presto__sample_block_done(presto__sample_block *block) {
    presto_buffer_done(&block->raw);
    presto_buffer_done(&block->frames);
    free(block->raw_bytes);
    free(block->frame_bytes);
}

/* Header and footer around a payload that stands in its place. */
static presto_status close_frame(uint8_t *frame, size_t payload_bytes, presto_error *err) {
    uint8_t *payload = frame + PRESTO_FRAME_HEADER_BYTES;
    if (payload_bytes > PRESTO_FRAME_MAX_PAYLOAD_BYTES)
        return presto_fail(err, PRESTO_ERR_LIMIT, PRESTO_NO_OFFSET,
                           "a record of %zu bytes, after compression", payload_bytes);
    presto__frame_write_header(payload_bytes, frame);
    presto__frame_write_footer(presto_span_of(payload, payload_bytes), payload + payload_bytes);
    return PRESTO_OK;
}

static presto_status frame_in_place(presto__sample_block *block, presto_error *err) {
    uint8_t *frame = block->raw.data;
    for (size_t i = 0; i < block->count; i++) {
        PRESTO_TRY(close_frame(frame, block->raw_bytes[i], err));
        block->frame_bytes[i] = block->raw_bytes[i] + (uint32_t)room_of_frame(block);
        frame += block->frame_bytes[i];
    }
    return PRESTO_OK;
}

static presto_status frame_sample(presto_codec *codec, presto_span raw, presto_buffer *out,
                                  presto_error *err) {
    size_t start = out->bytes;
    PRESTO_TRY(presto_buffer_append(out, presto_span_of(frame_room, sizeof frame_room), err));
    PRESTO_TRY(presto__codec_compress(codec, raw, out, err));
    PRESTO_TRY(presto_buffer_reserve(out, PRESTO_FRAME_FOOTER_BYTES, err));
    PRESTO_TRY(close_frame(out->data + start, out->bytes - start - sizeof frame_room, err));
    out->bytes += PRESTO_FRAME_FOOTER_BYTES;
    return PRESTO_OK;
}

presto_status presto__sample_block_frame(presto__sample_block *block, presto_codec *codec,
                                         presto_error *err) {
    const uint8_t *raw = block->raw.data;
    if (block->is_in_place)
        return frame_in_place(block, err);
    block->frames.bytes = 0;
    for (size_t i = 0; i < block->count; i++) {
        size_t before = block->frames.bytes;
        PRESTO_TRY(
            frame_sample(codec, presto_span_of(raw, block->raw_bytes[i]), &block->frames, err));
        block->frame_bytes[i] = (uint32_t)(block->frames.bytes - before);
        raw += block->raw_bytes[i];
    }
    return PRESTO_OK;
}

/* ---- state; all with the lock held ---- */

static presto__sample_block *block_at(const presto_writer *writer, uint64_t number) {
    return &writer->blocks[number % writer->block_count];
}

bool presto__blocks_have_room(const presto_writer *writer) {
    uint64_t waiting = writer->next_in - writer->next_out;
    return waiting == 0 ||
           (waiting < writer->block_count && writer->waiting_bytes < writer->most_bytes);
}

presto_status presto__writer_failure(const presto_writer *writer, presto_error *err) {
    if (err != NULL)
        *err = writer->error;
    return writer->error.status;
}

static void fail(presto_writer *writer, const presto_error *error) {
    if (!writer->is_stopped)
        writer->error = *error;
    writer->is_stopped = true;
    pthread_cond_broadcast(&writer->work);
    pthread_cond_broadcast(&writer->change);
}

void presto__blocks_wait(presto_writer *writer) {
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += WAIT_NS;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    writer->callers++;
    pthread_cond_timedwait(&writer->change, &writer->lock, &until);
    writer->callers--;
}

/* The features of a listed shard must be in the job's schema. */
static presto_status take_news(presto_writer *writer, presto_error *err) {
    if (!writer->has_news)
        return PRESTO_OK;
    PRESTO_TRY(presto__schema_merge(&writer->job.progress.schema, &writer->alike.schema, err));
    writer->has_news = false;
    return PRESTO_OK;
}

/* ---- work: with the lock held, which is given up meanwhile ---- */

/* A presto_stop_fn: of a thread that stores. */
static bool is_ending(void *user) {
    presto_writer *writer = user;
    pthread_mutex_lock(&writer->lock);
    bool ends = writer->is_stopped;
    pthread_mutex_unlock(&writer->lock);
    return ends || (writer->thread_count == 0 && writer->should_stop != NULL &&
                    writer->should_stop(writer->should_stop_user));
}

/* To a bucket, what is sent again may take minutes. */
static presto_status put_block(presto_writer *writer, const presto__sample_block *block,
                               presto_error *err) {
    if (!presto__path_is_remote(writer->job.dir))
        return presto__sample_store_put(&writer->store, block, err);
    presto__stop_hook pass;
    presto__stop_scope before = presto__stop_enter(&pass, is_ending, writer);
    presto_status status = presto__sample_store_put(&writer->store, block, err);
    return presto__stop_leave(&pass, before, status, err);
}

static void store_oldest(presto_writer *writer) {
    presto__sample_block *block = block_at(writer, writer->next_out);
    presto_error error;
    presto_status status = take_news(writer, &error);
    writer->is_storing = true;
    pthread_mutex_unlock(&writer->lock);
    if (status == PRESTO_OK)
        status = put_block(writer, block, &error);
    pthread_mutex_lock(&writer->lock);
    writer->is_storing = false;
    if (status < 0) {
        fail(writer, &error);
        return;
    }
    writer->waiting_bytes -= block->raw.bytes;
    block->raw.bytes = block->count = 0;
    block->is_framed = false;
    writer->next_out++;
    if (writer->callers > 0)
        pthread_cond_broadcast(&writer->change);
}

static void frame_next(presto_writer *writer, presto_codec *codec) {
    presto__sample_block *block = block_at(writer, writer->next_framed++);
    presto_error error;
    pthread_mutex_unlock(&writer->lock);
    presto_status status = presto__sample_block_frame(block, codec, &error);
    pthread_mutex_lock(&writer->lock);
    block->is_framed = status == PRESTO_OK;
    if (status < 0)
        fail(writer, &error);
}

static bool may_store(const presto_writer *writer) {
    return !writer->is_storing && writer->next_out < writer->next_framed &&
           block_at(writer, writer->next_out)->is_framed;
}

static void *run_thread(void *argument) {
    presto_writer *writer = argument;
    presto_codec *codec = NULL; /* the codec is not complete before there is a sample */
    presto_error error;
    pthread_mutex_lock(&writer->lock);
    while (!writer->is_stopped) {
        if (may_store(writer))
            store_oldest(writer);
        else if (writer->next_framed == writer->next_in)
            pthread_cond_wait(&writer->work, &writer->lock);
        else if (codec == NULL && presto_codec_new(&writer->job.codec, &codec, &error) < 0)
            fail(writer, &error);
        else
            frame_next(writer, codec);
    }
    pthread_mutex_unlock(&writer->lock);
    presto_codec_free(codec);
    return NULL;
}

/* Without threads: the caller does all. */
static void run_here(presto_writer *writer) {
    presto_error error;
    if (writer->codec == NULL && presto_codec_new(&writer->job.codec, &writer->codec, &error) < 0)
        fail(writer, &error);
    while (!writer->is_stopped && writer->next_out < writer->next_in) {
        if (may_store(writer))
            store_oldest(writer);
        else
            frame_next(writer, writer->codec);
    }
}

presto_status presto__blocks_submit(presto_writer *writer, presto_error *err) {
    pthread_mutex_lock(&writer->lock);
    presto__sample_block *block = block_at(writer, writer->next_in);
    if (!writer->is_stopped && block->count > 0) {
        writer->waiting_bytes += block->raw.bytes;
        writer->next_in++;
        if (writer->thread_count > 0)
            pthread_cond_signal(&writer->work);
        else
            run_here(writer);
    }
    presto_status status = writer->is_stopped ? presto__writer_failure(writer, err) : PRESTO_OK;
    pthread_mutex_unlock(&writer->lock);
    return status;
}

/* ---- beginning and end ---- */

presto_status presto__blocks_start(presto_writer *writer, presto_error *err) {
    unsigned threads = writer->convert.threads;
    writer->block_count = 2 * (size_t)threads + 2;
    writer->blocks = calloc(writer->block_count, sizeof *writer->blocks);
    writer->threads = calloc((size_t)threads + 1, sizeof *writer->threads);
    if (writer->blocks == NULL || writer->threads == NULL)
        return presto_fail_memory(err, writer->block_count * sizeof *writer->blocks);
    for (size_t i = 0; i < writer->block_count; i++)
        writer->blocks[i].is_in_place = strcmp(writer->job.codec_text, "none") == 0;
    int failed = 0;
    while (writer->thread_count < threads && failed == 0) {
        failed = presto__thread_start(&writer->threads[writer->thread_count], run_thread, writer);
        writer->thread_count += failed == 0;
    }
    return failed == 0 ? PRESTO_OK
                       : presto_fail_errno(err, failed, "", "cannot start writing thread");
}

void presto__blocks_stop(presto_writer *writer) {
    pthread_mutex_lock(&writer->lock);
    presto_error stopped;
    presto_error_set(&stopped, PRESTO_ERR_STOPPED, PRESTO_NO_OFFSET, "the writer has ended");
    fail(writer, &stopped);
    pthread_mutex_unlock(&writer->lock);
    for (unsigned i = 0; i < writer->thread_count; i++)
        pthread_join(writer->threads[i], NULL);
    writer->thread_count = 0;
}

void presto__blocks_free(presto_writer *writer) {
    for (size_t i = 0; i < writer->block_count && writer->blocks != NULL; i++)
        presto__sample_block_done(&writer->blocks[i]);
    free(writer->blocks);
    free(writer->threads);
    presto_codec_free(writer->codec);
}
