/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds where a shard's records start, by one pass over their headers. If the caller tolerates
 * damage, the pass continues behind it.
 */
#include <stdlib.h>

#include "../frame/frame_internal.h"
#include "../records_internal.h"
#include "shard_parts_internal.h"

#define HEADER PRESTO_FRAME_HEADER_BYTES
#define OVERHEAD PRESTO_FRAME_OVERHEAD_BYTES

/* Behind records larger than this, only the next header is read. */
#define HOP_BYTES ((size_t)64 << 10)

/* The header at `offset`, or the part of it that exists. */
static presto_status view_header(presto__hopper *hop, uint64_t offset, presto_span *out,
                                 presto_error *err) {
    if (hop->stream != NULL)
        return presto__byte_stream_view(hop->stream, offset, HEADER, out, err);
    if (offset < hop->start || offset + HEADER > hop->start + hop->bytes.bytes) {
        size_t want = hop->last_payload > HOP_BYTES ? HEADER : PRESTO__PIECE_BYTES;
        size_t got;
        hop->bytes.bytes = 0;
        PRESTO_TRY(presto_buffer_reserve(&hop->bytes, want, err));
        PRESTO_TRY(presto__read_at((presto__object_place){hop->object, hop->shard->path, offset},
                                   hop->bytes.data, want, &got, err));
        hop->bytes.bytes = got;
        hop->start = offset;
    }
    size_t at = (size_t)(offset - hop->start);
    size_t left = hop->bytes.bytes - at;
    *out = presto_span_of(hop->bytes.data + at, left < HEADER ? left : HEADER);
    return PRESTO_OK;
}

/* Keep bytes of a compressed file for whoever walks it. */
static presto_status keep(presto__hopper *hop, presto_span view, presto_error *err) {
    presto_buffer *kept = hop->kept;
    if (kept == NULL)
        return PRESTO_OK;
    if (kept->capacity - kept->bytes < view.bytes && hop->grower != NULL &&
        !presto_arena_may_grow(hop->grower, kept->capacity + view.bytes))
        return presto_fail_memory(err, view.bytes);
    return presto_buffer_append(kept, view, err);
}

/* Is the record complete that the header announces? For compressed files, only reading tells. */
static presto_status check_end(presto__hopper *hop, uint64_t offset, uint64_t payload_bytes,
                               presto_error *err) {
    uint64_t want = payload_bytes + OVERHEAD, there;
    if (hop->stream == NULL) {
        there = hop->end - offset;
    } else {
        /* In steps, so that skipping a large record takes no memory. */
        presto_span view = {NULL, 0};
        uint64_t at = offset;
        presto_status status = PRESTO_OK;
        while (at < offset + want) {
            size_t step = offset + want - at < PRESTO__PIECE_BYTES ? (size_t)(offset + want - at)
                                                                   : PRESTO__PIECE_BYTES;
            presto__byte_stream_forget(hop->stream, at);
            status = presto__byte_stream_view(hop->stream, at, step, &view, err);
            at += view.bytes;
            if (status < 0)
                return status;
            PRESTO_TRY(keep(hop, view, err));
            if (view.bytes < step)
                break;
        }
        there = at - offset;
    }
    if (there < want)
        return presto_fail(err, PRESTO_ERR_TRUNCATED, offset,
                           "truncated record: %ju of %ju bytes after its header",
                           (uintmax_t)(there - HEADER), (uintmax_t)(want - HEADER));
    return PRESTO_OK;
}

static presto_status add_number(presto_buffer *numbers, uint64_t number, presto_error *err) {
    return presto_buffer_append(numbers, presto_span_of(&number, sizeof number), err);
}

/* After damage at `offset`: the start of the next whole frame. PRESTO_END: there is none. */
static presto_status resync(presto__hopper *hop, uint64_t offset, uint64_t *found_out,
                            presto_error *err) {
    presto_shard *shard = hop->shard;
    if (hop->stream != NULL)
        return PRESTO_END; /* the rest of a damaged compressed file is useless */
    if (hop->search == NULL)
        PRESTO_TRY(presto__byte_stream_new(hop->object, shard->path, PRESTO_FILE_PLAIN,
                                           &hop->search, err));
    /* What was read ahead stays: the next damage may be a few bytes on. */
    if (offset < presto__byte_stream_base(hop->search) ||
        offset >= presto__byte_stream_reach(hop->search))
        presto__byte_stream_seek(hop->search, offset + 1);
    const presto__frame_search wanted = {
        .from = offset + 1,
        .max_payload_bytes = shard->options.max_payload_bytes,
        .end = hop->end,
    };
    presto_status status = presto__byte_stream_find_frame(hop->search, &wanted, found_out, err);
    if (status != PRESTO_END)
        return status;
    /* There is no frame up to the end, or up to where the file cannot be read. */
    presto_span none;
    status = presto__byte_stream_view(hop->search, *found_out, 1, &none, err);
    return status < 0 ? status : PRESTO_END;
}

static presto_status hop_once(presto__hopper *hop, uint64_t offset, uint64_t *next_out,
                              presto_error *err) {
    presto_span header;
    uint64_t payload_bytes;
    PRESTO_TRY(view_header(hop, offset, &header, err));
    /* Lengths are followed here, so they are checked at any verify level. */
    presto_status status = presto__frame_parse_header(
        header, offset,
        &(presto__frame_rules){hop->shard->options.max_payload_bytes, PRESTO_CHECK_HEADER},
        &payload_bytes, err);
    /* A record larger than the rest of the file is cut, or no record, whatever the limit. */
    if (status == PRESTO_ERR_LIMIT && hop->stream == NULL &&
        presto__load_u64(header.data) > hop->end - offset)
        status = presto_fail(err, PRESTO_ERR_TRUNCATED, offset,
                             "truncated record of %ju byte%s: the file ends after %ju more",
                             (uintmax_t)presto__load_u64(header.data),
                             presto_plural(presto__load_u64(header.data)),
                             (uintmax_t)(hop->end - offset));
    if (status != PRESTO_OK)
        return status;
    PRESTO_TRY(check_end(hop, offset, payload_bytes, err));
    hop->last_payload = (size_t)payload_bytes;
    *next_out = offset + payload_bytes + OVERHEAD;
    return PRESTO_OK;
}

static bool is_damage(presto_status status) {
    return status == PRESTO_ERR_CORRUPT || status == PRESTO_ERR_TRUNCATED ||
           status == PRESTO_ERR_LIMIT;
}

/* As hop_once. The network may have changed a header: what does not hold is read once more. */
static presto_status hop_surely(presto__hopper *hop, uint64_t offset, uint64_t *next_out,
                                presto_error *err) {
    presto_status status = hop_once(hop, offset, next_out, err);
    if (!is_damage(status) || !hop->shard->is_remote || hop->stream != NULL)
        return status;
    hop->bytes.bytes = 0;
    hop->object.is_again = true;
    status = hop_once(hop, offset, next_out, err);
    hop->object.is_again = false;
    return status;
}

/*
 * The range from `offset` on has no whole frame. It takes the place of a record, so that readers of
 * the shard meet it there. PRESTO_END: it reaches the end of the file.
 */
static presto_status step_over(presto__hopper *hop, uint64_t offset, const presto_error *why,
                               uint64_t *next_out, presto_error *err) {
    presto_shard *shard = hop->shard;
    uint64_t record = hop->found->record_count;
    presto_status status = resync(hop, offset, next_out, err);
    if (status < 0)
        return status;
    if (status == PRESTO_END)
        *next_out = hop->stream == NULL ? shard->file_bytes : offset + HEADER;
    presto__found *found = hop->found;
    PRESTO_TRY(add_number(&found->offsets, offset, err));
    PRESTO_TRY(add_number(&found->damaged, record, err));
    if (hop->stream == NULL)
        return status;
    found->stream_fault = malloc(sizeof *found->stream_fault);
    if (found->stream_fault == NULL)
        return presto_fail_memory(err, sizeof *found->stream_fault);
    *found->stream_fault = *why;
    (void)presto__shard_fail_at(shard, record, why->status, found->stream_fault);
    return status;
}

/* The first record does not hold: is it a file of another kind? */
static presto_status refuse_foreign(presto__hopper *hop, presto_error *err) {
    const presto_shard *shard = hop->shard;
    presto_status status = presto__refuse_foreign(hop->object, shard->path, shard->compression,
                                                  shard->options.max_payload_bytes, err);
    if (status == PRESTO_ERR_FOREIGN)
        PRESTO_TRY(add_number(&hop->found->offsets, 0, err));
    return status;
}

presto_status presto__hop_step(presto__hopper *hop, presto_error *err) {
    presto_shard *shard = hop->shard;
    presto__found *found = hop->found;
    uint64_t next = 0, record = found->record_count;
    presto_error why;
    presto_status status = hop->at_end ? PRESTO_END : hop_surely(hop, hop->offset, &next, &why);
    if (status == PRESTO_END)
        return PRESTO_END;
    if (is_damage(status) && hop->offset == 0)
        PRESTO_TRY(refuse_foreign(hop, err));
    if (is_damage(status) && hop->tolerate) {
        status = step_over(hop, hop->offset, &why, &next, err);
        if (status < 0)
            return presto__shard_fail_at(shard, record, status, err);
        hop->at_end = status == PRESTO_END;
    } else {
        PRESTO_TRY(add_number(&found->offsets, hop->offset, err));
        if (status < 0) {
            if (err != NULL)
                *err = why;
            return presto__shard_fail_at(shard, record, status, err);
        }
    }
    found->record_count++;
    hop->offset = next;
    if (hop->stream != NULL)
        presto__byte_stream_forget(hop->stream, next);
    return PRESTO_OK;
}

presto_status presto__hopper_start(presto__hopper *hop, presto_shard *shard, presto__found *found,
                                   bool tolerate, presto_error *err) {
    *hop = (presto__hopper){
        .shard = shard, .found = found, .end = shard->file_bytes, .tolerate = tolerate};
    PRESTO_TRY(presto__shard_acquire(shard, &hop->object, err));
    presto_status status = PRESTO_OK;
    if (shard->compression != PRESTO_FILE_PLAIN)
        status = presto__byte_stream_new(hop->object, shard->path, shard->compression, &hop->stream,
                                         err);
    if (status < 0)
        presto__shard_release(shard);
    return status;
}

presto_status presto__hopper_resume(presto__hopper *hop, presto_error *err) {
    PRESTO_TRY(presto__shard_acquire(hop->shard, &hop->object, err));
    if (hop->stream != NULL)
        presto__byte_stream_set_object(hop->stream, hop->object);
    if (hop->search != NULL)
        presto__byte_stream_set_object(hop->search, hop->object);
    return PRESTO_OK;
}

void presto__hopper_pause(presto__hopper *hop) {
    presto__shard_release(hop->shard);
}

void presto__hopper_done(presto__hopper *hop) {
    presto__byte_stream_free(hop->stream);
    presto__byte_stream_free(hop->search);
    presto_buffer_done(&hop->bytes);
}

presto_status presto__hop_end(presto__hopper *hop, presto_error *err) {
    return add_number(&hop->found->offsets, hop->offset, err);
}

presto_status presto__shard_hop(presto_shard *shard, bool tolerate, presto__found *found,
                                presto_error *err) {
    presto__hopper hop;
    PRESTO_TRY(presto__hopper_start(&hop, shard, found, tolerate, err));
    presto_status status;
    do
        status = presto__hop_step(&hop, err);
    while (status == PRESTO_OK);
    if (status == PRESTO_END)
        status = presto__hop_end(&hop, err);
    presto__hopper_pause(&hop);
    presto__hopper_done(&hop);
    return status;
}

uint64_t presto__found_next_damaged(const presto__found *found, uint64_t from) {
    if (found == NULL)
        return UINT64_MAX;
    const uint64_t *damaged = (const uint64_t *)(const void *)found->damaged.data;
    size_t count = found->damaged.bytes / sizeof *damaged, low = 0, high = count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (damaged[middle] < from)
            low = middle + 1;
        else
            high = middle;
    }
    return low < count ? damaged[low] : UINT64_MAX;
}
