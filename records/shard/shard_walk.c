/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Walks through a shard that has no index: reads its records from front to back and finds where
 * they stand on the way. At its end the shard is indexed like any other. Payloads are not checked
 * here: walkers take turns, and what they have read is checked by each of them at the same time.
 *
 * Whole records of a plain file are found in the bytes that were read for them. All else (damage,
 * the end, compressed files) is left to the hopper, so a walk finds what indexing would find.
 *
 * A walk that is to stop (base/stop_internal.h) stops between two steps, or while it searches a
 * plain file for what stands behind damage. So it can go on from there.
 */
#include <stdlib.h>

#include "../../base/stop_internal.h"
#include "../frame/frame_internal.h"
#include "../records_internal.h"
#include "shard_parts_internal.h"

#define HEADER PRESTO_FRAME_HEADER_BYTES
#define OVERHEAD PRESTO_FRAME_OVERHEAD_BYTES
#define AGAIN 2 /* so often is read once more what came over a network and does not hold */

/* Of a file's first records nothing is known: read this much. */
#define FIRST_BYTES ((size_t)64 << 10)

struct presto__shard_walker {
    presto__hopper hop; /* its bytes are those read beyond the last stretch */
    presto__found *found;
    presto_error fault; /* of the record that comes next ... */
    bool has_fault;     /* ... if it is none: a damaged range */
    bool has_failed;    /* nothing can be read after it: the fault comes again and again */
};

void presto__shard_walker_free(presto__shard_walker *walk) {
    if (walk == NULL)
        return;
    presto__hopper_done(&walk->hop);
    presto__found_free(walk->found);
    free(walk);
}

static presto_status start(presto_shard *shard, presto_error *err) {
    presto__shard_walker *walk = calloc(1, sizeof *walk);
    if (walk == NULL)
        return presto_fail_memory(err, sizeof *walk);
    walk->found = calloc(1, sizeof *walk->found);
    presto_status status =
        walk->found == NULL
            ? presto_fail_memory(err, sizeof *walk->found)
            : presto__hopper_start(&walk->hop, shard, walk->found, shard->options.tolerate, err);
    if (status < 0) {
        presto__shard_walker_free(walk);
        return status;
    }
    shard->walk = walk;
    return PRESTO_OK;
}

/* The shard's walk, with the file held. */
static presto_status resume(presto_shard *shard, presto_error *err) {
    return shard->walk == NULL ? start(shard, err) : presto__hopper_resume(&shard->walk->hop, err);
}

/* ---- what is found ---- */

/* The step that the hopper took met no whole record: say so as the next one. */
static void note_fault(presto__shard_walker *walk, presto_status status,
                       const presto_error *failure) {
    presto__found *found = walk->found;
    walk->has_fault = true;
    walk->has_failed = status < 0;
    if (status < 0) {
        walk->fault = *failure;
        return;
    }
    const uint64_t *offsets = (const uint64_t *)(const void *)found->offsets.data;
    uint64_t record = found->record_count - 1, read_bytes = 0;
    const presto__damage damage = {record, offsets[record], walk->hop.offset, found->stream_fault};
    walk->has_failed =
        presto__shard_describe(walk->hop.shard, &damage, &read_bytes, &walk->fault) < 0;
    walk->fault.offset = damage.offset;
}

/* One step of the hopper. PRESTO_END: the end, or a fault, which is noted. PRESTO_ERR_STOPPED: none
 * was made. */
static presto_status step(presto__shard_walker *walk, presto_error *err) {
    const presto_buffer *damaged = &walk->found->damaged;
    size_t before = damaged->bytes, starts_bytes = walk->found->offsets.bytes;
    presto_error failure;
    PRESTO_TRY(presto__stop_check(err));
    /* Of a stream, what a step has passed over is gone. */
    presto__stop_scope pass = presto__stop_bound();
    if (walk->hop.stream != NULL)
        (void)presto__stop_bind((presto__stop_scope){.hook = NULL});
    presto_status status = presto__hop_step(&walk->hop, &failure);
    (void)presto__stop_bind(pass);
    if (status == PRESTO_ERR_STOPPED) {
        walk->found->offsets.bytes = starts_bytes;
        if (err != NULL)
            *err = failure;
        return status;
    }
    if (status == PRESTO_OK && damaged->bytes == before)
        return PRESTO_OK;
    if (status != PRESTO_END)
        note_fault(walk, status, &failure);
    return PRESTO_END;
}

/* The stretch is the fault alone. */
static void give_fault(presto__shard_walker *walk, presto__stretch *stretch) {
    stretch->count = 1;
    stretch->fault = walk->fault;
    stretch->is_last = walk->has_failed;
    walk->has_fault = walk->has_failed;
}

/* Copy the places of the records found since `first`; the last of them ends at `end`. */
static presto_status give_places(const presto__shard_walker *walk, uint64_t end,
                                 presto__stretch *stretch, presto_error *err) {
    const uint8_t *found = walk->found->offsets.data + stretch->first * sizeof(uint64_t);
    stretch->offsets_.bytes = 0;
    PRESTO_TRY(presto_buffer_append(&stretch->offsets_,
                                    presto_span_of(found, stretch->count * sizeof(uint64_t)), err));
    return presto_buffer_append(&stretch->offsets_, presto_span_of(&end, sizeof end), err);
}

/* ---- plain files ---- */

/* Make the first byte of the window that of the next record. */
static void trim_window(presto__hopper *hop) {
    presto_buffer *window = &hop->bytes;
    uint64_t end = hop->start + window->bytes;
    size_t left = hop->offset >= hop->start && hop->offset < end ? (size_t)(end - hop->offset) : 0;
    if (left > 0 && left < window->bytes)
        memmove(window->data, window->data + (window->bytes - left), left);
    window->bytes = left;
    hop->start = hop->offset;
}

/* Read on until the window has `need` bytes from the next record on, or better `wish`; fewer at the
 * end of the file. */
static presto_status fill_window(presto__shard_walker *walk, size_t need, size_t wish,
                                 const presto_arena *grower, presto_error *err) {
    presto__hopper *hop = &walk->hop;
    presto_buffer *window = &hop->bytes;
    size_t have = window->bytes - (size_t)(hop->offset - hop->start), got;
    if (have >= need)
        return PRESTO_OK;
    uint64_t at = hop->start + window->bytes;
    uint64_t left = hop->end > at ? hop->end - at : 0;
    size_t want = (wish > need ? wish : need) - have;
    if (want > left)
        want = (size_t)left;
    if (window->capacity - window->bytes < want && grower != NULL &&
        !presto_arena_may_grow(grower, window->capacity / 2 + want))
        return presto_fail_memory(err, want);
    PRESTO_TRY(presto_buffer_reserve(window, want, err));
    PRESTO_TRY(presto__read_at((presto__object_place){hop->object, hop->shard->path, at},
                               window->data + window->bytes, want, &got, err));
    window->bytes += got;
    return PRESTO_OK;
}

/* The size of the frame that comes next; 0: there is no whole one. */
static uint64_t next_frame(const presto__shard_walker *walk) {
    const presto__hopper *hop = &walk->hop;
    const presto_buffer *window = &hop->bytes;
    size_t at = (size_t)(hop->offset - hop->start);
    uint64_t bytes;
    if (window->bytes - at < HEADER ||
        presto__frame_parse_header(
            presto_span_of(window->data + at, HEADER), hop->offset,
            &(presto__frame_rules){hop->shard->options.max_payload_bytes, PRESTO_CHECK_HEADER},
            &bytes, NULL) != PRESTO_OK)
        return 0;
    return bytes + OVERHEAD <= hop->end - hop->offset ? bytes + OVERHEAD : 0;
}

/* How much to read for so many records, if they are like those before. */
static size_t guess(const presto__shard_walker *walk, size_t records, size_t most_bytes) {
    uint64_t known = walk->found->record_count;
    double mean = known == 0 ? 0 : (double)walk->hop.offset / (double)known;
    double bytes = known == 0 ? (double)FIRST_BYTES : mean * (double)records;
    return bytes < (double)most_bytes ? (size_t)bytes : most_bytes;
}

/* The whole records that are in the window already, as far as the limits allow. *count_io: how many
 * were found, and with these. */
static presto_status take_records(presto__shard_walker *walk, const presto__walk_limits *limits,
                                  uint64_t start, size_t *count_io, presto_error *err) {
    presto__hopper *hop = &walk->hop;
    presto_buffer *offsets = &walk->found->offsets;
    size_t done = (size_t)(hop->offset - start), passed;
    size_t end = hop->bytes.bytes < limits->bytes ? hop->bytes.bytes : limits->bytes;
    if (end <= done)
        return PRESTO_OK;
    const presto__frames_wanted wanted = {presto_span_of(hop->bytes.data + done, end - done),
                                          hop->shard->options.max_payload_bytes,
                                          limits->records - *count_io};
    size_t most =
        wanted.in.bytes / OVERHEAD < wanted.count ? wanted.in.bytes / OVERHEAD : wanted.count;
    if (most == 0)
        return PRESTO_OK;
    PRESTO_TRY(presto_buffer_reserve(offsets, most * sizeof(uint64_t), err));
    uint64_t *found = (uint64_t *)(void *)(offsets->data + offsets->bytes);
    size_t count = presto__frames_hop(&wanted, hop->offset, found, &passed);
    if (count == 0)
        return PRESTO_OK;
    offsets->bytes += count * sizeof *found;
    walk->found->record_count += count;
    hop->last_payload = (size_t)(hop->offset + passed - found[count - 1]) - OVERHEAD;
    hop->offset += passed;
    *count_io += count;
    return PRESTO_OK;
}

/* Whole records, one after the other, into the window. *count_out: how many; fewer than wanted
 * before anything else. */
static presto_status find_records(presto__shard_walker *walk, const presto__walk_limits *limits,
                                  size_t *count_out, presto_error *err) {
    presto__hopper *hop = &walk->hop;
    presto__found *found = walk->found;
    uint64_t start = hop->offset;
    size_t count = 0;
    while (count < limits->records) {
        PRESTO_TRY(take_records(walk, limits, start, &count, err));
        size_t done = (size_t)(hop->offset - start);
        if (count == limits->records || (count > 0 && done >= limits->bytes))
            break;
        size_t room = limits->bytes - done;
        size_t wish = guess(walk, limits->records - count, room);
        presto_status status = fill_window(walk, HEADER, wish, limits->grower, err);
        uint64_t frame = status < 0 ? 0 : next_frame(walk);
        if (frame > 0 && (count == 0 || frame <= room))
            status = fill_window(walk, (size_t)frame, wish, limits->grower, err);
        if (status == PRESTO_ERR_STOPPED && count > 0)
            break; /* those that were found are given first */
        if (status < 0)
            return status;
        if (frame == 0 || (count > 0 && frame > room))
            break;
        if (hop->bytes.bytes - done < frame)
            break;
        PRESTO_TRY(presto_buffer_append(&found->offsets,
                                        presto_span_of(&hop->offset, sizeof hop->offset), err));
        found->record_count++;
        hop->last_payload = (size_t)frame - OVERHEAD;
        hop->offset += frame;
        count++;
    }
    *count_out = count;
    return PRESTO_OK;
}

/* The block takes the window, and the walk what was read beyond. Without memory for that, it is
 * read again. */
static void give_window(presto__hopper *hop, presto_block *block) {
    presto_buffer window = hop->bytes;
    size_t used = (size_t)(hop->offset - hop->start);
    hop->bytes = block->bytes_;
    hop->bytes.bytes = 0;
    block->bytes_ = window;
    (void)presto_buffer_append(&hop->bytes, presto_span_of(window.data + used, window.bytes - used),
                               NULL);
    hop->start = hop->offset;
}

static presto_status walk_plain(presto__shard_walker *walk, const presto__walk_limits *limits,
                                presto_block *block, presto__stretch *stretch, presto_error *err) {
    trim_window(&walk->hop);
    PRESTO_TRY(find_records(walk, limits, &stretch->count, err));
    bool may_be_network = walk->hop.shard->is_remote && walk->hop.offset < walk->hop.end;
    for (int i = 0; i < AGAIN && stretch->count == 0 && may_be_network; i++) {
        walk->hop.bytes.bytes = 0; /* it may have changed a header */
        trim_window(&walk->hop);
        walk->hop.object.is_again = true;
        presto_status status = find_records(walk, limits, &stretch->count, err);
        walk->hop.object.is_again = false;
        PRESTO_TRY(status);
    }
    if (stretch->count > 0) {
        give_window(&walk->hop, block);
        return give_places(walk, walk->hop.offset, stretch, err);
    }
    presto_status status = step(walk, err);
    if (status == PRESTO_OK) /* it was not there a moment ago */
        return presto__shard_fail_at(walk->hop.shard, walk->found->record_count - 1,
                                     presto_fail(err, PRESTO_ERR_CORRUPT, walk->hop.offset,
                                                 "the file has been changed while in use"),
                                     err);
    return status < 0 ? status : PRESTO_OK;
}

/* ---- compressed files ---- */

static presto_status walk_compressed(presto__shard_walker *walk, const presto__walk_limits *limits,
                                     presto_block *block, presto__stretch *stretch,
                                     presto_error *err) {
    presto_buffer *bytes = &block->bytes_;
    uint64_t start = walk->hop.offset;
    bytes->bytes = 0;
    walk->hop.kept = bytes;
    walk->hop.grower = limits->grower;
    presto__stop_scope pass = presto__stop_bind((presto__stop_scope){.hook = NULL});
    while (stretch->count < limits->records && bytes->bytes < limits->bytes) {
        size_t before = bytes->bytes;
        if (step(walk, err) != PRESTO_OK) {
            bytes->bytes = before;
            break;
        }
        stretch->count++;
    }
    (void)presto__stop_bind(pass);
    walk->hop.kept = NULL;
    walk->hop.grower = NULL;
    return stretch->count == 0 ? PRESTO_OK : give_places(walk, start + bytes->bytes, stretch, err);
}

/* ---- the walk ---- */

static presto_status walk_on(presto__shard_walker *walk, const presto__walk_limits *limits,
                             presto_block *block, presto__stretch *stretch, presto_error *err) {
    stretch->count = 0;
    stretch->fault.status = PRESTO_OK;
    stretch->is_last = false;
    stretch->first = walk->found->record_count - (walk->has_fault && !walk->has_failed ? 1 : 0);
    if (!walk->has_fault)
        PRESTO_TRY(walk->hop.stream == NULL ? walk_plain(walk, limits, block, stretch, err)
                                            : walk_compressed(walk, limits, block, stretch, err));
    if (stretch->count > 0)
        return PRESTO_OK;
    if (!walk->has_fault)
        return PRESTO_END;
    give_fault(walk, stretch);
    return PRESTO_OK;
}

/* How far the file has been read, as the records found go. */
static uint64_t file_position(const presto__hopper *hop) {
    return hop->stream == NULL ? hop->offset : presto__byte_stream_file_bytes(hop->stream);
}

presto_status presto__shard_walk(presto_shard *shard, const presto__walk_limits *limits,
                                 presto_block *block, presto__stretch *stretch, presto_error *err) {
    PRESTO_TRY(resume(shard, err));
    presto__shard_hide_known(shard);
    uint64_t before = file_position(&shard->walk->hop);
    presto_status status = walk_on(shard->walk, limits, block, stretch, err);
    block->file_bytes_read = file_position(&shard->walk->hop) - before;
    presto__hopper_pause(&shard->walk->hop);
    return status;
}

/* Pass over a record or a damaged range. PRESTO_END: there is none. */
static presto_status pass_one(presto__shard_walker *walk, presto_error *err) {
    presto__found *found = walk->found;
    bool is_new = !walk->has_fault;
    size_t starts_bytes = found->offsets.bytes;
    uint64_t records = found->record_count;
    presto_status status = is_new ? step(walk, err) : PRESTO_END;
    if (status != PRESTO_END)
        return status;
    if (walk->has_failed) {
        if (err != NULL)
            *err = walk->fault;
        if (is_new && walk->fault.sys_errno != 0 && walk->hop.stream == NULL &&
            found->record_count == records) {
            found->offsets.bytes = starts_bytes; /* it may be read the next time */
            walk->has_fault = walk->has_failed = false;
        }
        return walk->fault.status;
    }
    bool is_damaged = walk->has_fault;
    walk->has_fault = false;
    return is_damaged ? PRESTO_OK : PRESTO_END;
}

presto_status presto__shard_pass(presto_shard *shard, uint64_t most, uint64_t *passed_out,
                                 presto_error *err) {
    PRESTO_TRY(resume(shard, err));
    presto__found *found = shard->walk->found;
    presto_status status = PRESTO_OK;
    uint64_t passed = 0;
    while (passed < most && (status = presto__found_grow(found, err)) == PRESTO_OK &&
           (status = pass_one(shard->walk, err)) == PRESTO_OK)
        passed++;
    presto__shard_show_known(shard, found);
    presto__hopper_pause(&shard->walk->hop);
    *passed_out = passed;
    return status < 0 ? status : PRESTO_OK;
}

bool presto__shard_walk_at_end(presto_shard *shard) {
    presto__shard_walker *walk = shard->walk;
    if (walk == NULL || walk->has_fault)
        return false;
    const presto__hopper *hop = &walk->hop;
    if (hop->stream == NULL || hop->at_end)
        return hop->at_end || hop->offset == hop->end;
    presto_span next = {NULL, 0};
    if (presto__hopper_resume(&walk->hop, NULL) < 0)
        return false;
    presto__stop_scope pass = presto__stop_bind((presto__stop_scope){.hook = NULL});
    presto_status status = presto__byte_stream_view(hop->stream, hop->offset, 1, &next, NULL);
    (void)presto__stop_bind(pass);
    presto__hopper_pause(&walk->hop);
    return status == PRESTO_OK && next.bytes == 0;
}

presto_status presto__shard_end_walk(presto_shard *shard, presto_error *err) {
    presto__shard_walker *walk = shard->walk;
    PRESTO_TRY(presto__hop_end(&walk->hop, err));
    presto__shard_use_found(shard, walk->found);
    walk->found = NULL;
    shard->walk = NULL;
    presto__shard_walker_free(walk);
    return PRESTO_OK;
}

/* ---- sizes ---- */

uint64_t presto__shard_guess_mean(presto_shard *shard) {
    presto__byte_stream *stream = NULL;
    presto_span head = {NULL, 0};
    uint64_t offset = 0, count = 0, bytes;
    presto__object object;
    if (presto__shard_acquire(shard, &object, NULL) < 0)
        return 1;
    if (presto__byte_stream_new(object, shard->path, shard->compression, &stream, NULL) ==
        PRESTO_OK)
        (void)presto__byte_stream_view(stream, 0, FIRST_BYTES, &head, NULL);
    while (offset + HEADER <= head.bytes &&
           presto__frame_parse_header(
               presto_span_of(head.data + offset, HEADER), offset,
               &(presto__frame_rules){shard->options.max_payload_bytes, PRESTO_CHECK_HEADER},
               &bytes, NULL) == PRESTO_OK) {
        offset += bytes + OVERHEAD;
        count++;
    }
    presto__byte_stream_free(stream);
    presto__shard_release(shard);
    return count == 0 ? 1 : offset / count;
}
