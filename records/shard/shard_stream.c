/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fetching from a file that is compressed as a whole: one stream per shard, which only moves
 * forward. The last decompressed bytes are kept for a while, for threads that come late.
 */
#include "shard_parts_internal.h"

/* This much is kept behind the last fetch. */
#define BEHIND_BYTES ((uint64_t)16 << 20)
/* Each time, all before is read once more. A file that is damaged where it lies is read so often. */
#define MOST_DROPS 16

/* The stream, reading from `object` and no farther than `start`. */
static presto_status ready_stream(presto_shard *shard, presto__object object, uint64_t start,
                                  presto_error *err) {
    if (shard->stream == NULL)
        PRESTO_TRY(
            presto__byte_stream_new(object, shard->path, shard->compression, &shard->stream, err));
    presto__byte_stream_set_object(shard->stream, object);
    if (start < presto__byte_stream_base(shard->stream))
        PRESTO_TRY(presto__byte_stream_rewind(shard->stream, err));
    return PRESTO_OK;
}

static void forget_behind(presto__byte_stream *stream, uint64_t reach) {
    presto__byte_stream_forget(stream, reach > BEHIND_BYTES ? reach - BEHIND_BYTES : 0);
}

/* With the stream's lock held. */
static presto_status copy_records(presto_shard *shard, const uint64_t *offsets, size_t count,
                                  presto_buffer *out, presto_error *err) {
    presto__byte_stream *stream = shard->stream;
    uint64_t start = offsets[0], reach;
    size_t bytes = (size_t)(offsets[count] - start);
    presto_span view;
    /* What lies before is decompressed and dropped, except for a little. */
    while ((reach = presto__byte_stream_reach(stream)) < start) {
        forget_behind(stream, reach);
        size_t step =
            start - reach < PRESTO__PIECE_BYTES ? (size_t)(start - reach) : PRESTO__PIECE_BYTES;
        PRESTO_TRY(presto__byte_stream_view(stream, reach, step, &view, err));
        if (view.bytes < step)
            return presto__shard_fail_short(shard, PRESTO_NO_RECORD, reach + view.bytes, err);
    }
    PRESTO_TRY(presto__byte_stream_view(stream, start, bytes, &view, err));
    if (view.bytes < bytes)
        return presto__shard_fail_short(shard, PRESTO_NO_RECORD, start + view.bytes, err);
    out->bytes = 0;
    PRESTO_TRY(presto_buffer_append(out, view, err));
    out->bytes = 0;
    forget_behind(stream, start + bytes);
    return PRESTO_OK;
}

presto_status presto__shard_read_stream(presto_shard *shard, const uint64_t *offsets, size_t count,
                                        presto_block *block, presto_error *err) {
    presto__object object;
    PRESTO_TRY(presto__shard_acquire(shard, &object, err));
    pthread_mutex_lock(&shard->stream_lock);
    object.is_again = shard->stream_drops > 0;
    presto_status status = ready_stream(shard, object, offsets[0], err);
    if (status == PRESTO_OK) {
        uint64_t before = presto__byte_stream_file_bytes(shard->stream);
        status = copy_records(shard, offsets, count, &block->bytes_, err);
        block->file_bytes_read = presto__byte_stream_file_bytes(shard->stream) - before;
    }
    if (shard->has_ended)
        presto__fd_pool_end_stream(shard);
    pthread_mutex_unlock(&shard->stream_lock);
    presto__shard_release(shard);
    return status;
}

void presto__shard_end_stream(presto_shard *shard) {
    pthread_mutex_lock(&shard->stream_lock);
    shard->has_ended = shard->stream != NULL;
    if (shard->has_ended)
        presto__fd_pool_end_stream(shard);
    pthread_mutex_unlock(&shard->stream_lock);
}

bool presto__shard_drop_stream(presto_shard *shard) {
    pthread_mutex_lock(&shard->stream_lock);
    bool may_drop = shard->stream_drops < MOST_DROPS;
    if (may_drop) {
        shard->stream_drops++;
        presto__byte_stream_free(shard->stream);
        shard->stream = NULL;
        shard->has_ended = false;
    }
    pthread_mutex_unlock(&shard->stream_lock);
    return may_drop;
}
