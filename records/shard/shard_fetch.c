/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads consecutive records of a shard in large pieces and checks them while they are in the
 * processor's cache. Damage affects only its record: the fetch continues behind it.
 */
#include <limits.h>
#include <stdlib.h>

#include "../../storage/play_internal.h"
#include "../frame/frame_internal.h"
#include "../records_internal.h"
#include "shard_parts_internal.h"

#define HEADER PRESTO_FRAME_HEADER_BYTES
#define OVERHEAD PRESTO_FRAME_OVERHEAD_BYTES

#define MOST_READINGS 4 /* again, of a file that is compressed as a whole */
#define BLOCK_ALIGN ((size_t)64)

void presto_block_done(presto_block *block) {
    if (block == NULL)
        return;
    free(block->records);
    presto_buffer_done(&block->bytes_);
    *block = (presto_block){0};
}

static presto_status block_reserve(presto_block *block, size_t count, presto_error *err) {
    if (count <= block->record_capacity_)
        return PRESTO_OK;
    if (count > SIZE_MAX / sizeof *block->records)
        return presto_fail_memory(err, UINT64_MAX);
    presto_record *records = realloc(block->records, count * sizeof *records);
    if (records == NULL)
        return presto_fail_memory(err, count * sizeof *records);
    block->records = records;
    block->record_capacity_ = count;
    return PRESTO_OK;
}

/* A fetch under way. */
typedef struct fetch {
    presto_shard *shard;
    presto_block *block;
    const uint64_t *offsets;    /* of the first record and on */
    const presto__found *found; /* within fetch_all; NULL: the places come from the index file */
    uint64_t first;
    presto_error *err; /* describes the first damaged record ... */
    bool described;    /* ... once there is one */
    bool is_by_index;  /* the places come from the index file ... */
    bool misplaced;    /* ... and a record is not there */
    bool is_again;     /* what was read does not hold */
} fetch;

/* For callers that want to know: the first damage of this fetch. */
static presto_error *damage_error(const fetch *job) {
    return job->described ? NULL : job->err;
}

static void mark(fetch *job, size_t i, presto_status status, presto_span payload) {
    presto_record *record = &job->block->records[i];
    record->offset = job->offsets[i];
    record->status = status;
    record->payload = payload;
    if (status >= 0)
        return;
    record->payload = presto_span_of(payload.data, 0);
    if (!job->described && job->err != NULL) {
        presto_error_set_file(job->err, job->shard->path);
        presto_error_set_record(job->err, job->first + i);
    }
    job->described = true;
}

static presto__frame_rules rules_of(const fetch *job) {
    const presto_shard_options *options = &job->shard->options;
    return (presto__frame_rules){options->max_payload_bytes, options->verify};
}

/*
 * The header of a record with `place_bytes` between its offsets. The frame must have this size;
 * otherwise the index and the file disagree.
 */
static presto_status check_header(fetch *job, presto_span header, uint64_t offset,
                                  uint64_t place_bytes, presto_error *err) {
    const presto__frame_rules rules = rules_of(job);
    uint64_t payload_bytes = 0;
    presto_status status = presto__frame_parse_header(header, offset, &rules, &payload_bytes, err);
    if (status == PRESTO_OK && payload_bytes + OVERHEAD != place_bytes)
        status =
            presto_fail(err, PRESTO_ERR_CORRUPT, offset,
                        "record of %ju byte%s where the index says %ju", (uintmax_t)payload_bytes,
                        presto_plural(payload_bytes), (uintmax_t)(place_bytes - OVERHEAD));
    job->misplaced |= status != PRESTO_OK;
    return status;
}

/* Record i is whole, at `frame`. */
static void parse_record(fetch *job, size_t i, presto_span frame) {
    const presto__frame_rules rules = rules_of(job);
    presto_error *err = damage_error(job);
    presto_span payload = presto_span_of(frame.data, 0);
    uint64_t offset = job->offsets[i];
    presto_status status = check_header(job, frame, offset, frame.bytes, err);
    if (status == PRESTO_OK)
        status = presto__frame_parse_payload(frame, offset, &rules, &payload, err);
    mark(job, i, status, payload);
}

/* Records [i, end) are whole, back to back at `data`. */
static void parse_records(fetch *job, size_t i, size_t end, const uint8_t *data) {
    const uint64_t *offsets = job->offsets;
    uint64_t start = offsets[i];
    while (i < end) {
        const uint8_t *at = data + (offsets[i] - start);
        i += presto__frames_check(at, offsets + i, end - i, &job->shard->options,
                                  job->block->records + i);
        if (i == end)
            break;
        at = data + (offsets[i] - start);
        parse_record(job, i, presto_span_of(at, (size_t)(offsets[i + 1] - offsets[i])));
        i++;
    }
}

/* Offsets come from a file that anybody may have written, and each block was checked only in
 * itself. */
static presto_status check_offsets(fetch *job, size_t count) {
    const presto_shard *shard = job->shard;
    const uint64_t *offsets = job->offsets;
    for (size_t i = 0; i < count; i++)
        if (offsets[i + 1] < offsets[i] || offsets[i + 1] - offsets[i] < OVERHEAD ||
            (shard->compression == PRESTO_FILE_PLAIN && offsets[i + 1] > shard->file_bytes)) {
            job->misplaced = true;
            return presto__shard_fail_at(
                shard, job->first + i,
                presto_fail(job->err, PRESTO_ERR_CORRUPT, PRESTO_NO_OFFSET,
                            "the index is damaged: offsets %ju, %ju in a file of %ju",
                            (uintmax_t)offsets[i], (uintmax_t)offsets[i + 1],
                            (uintmax_t)shard->file_bytes),
                job->err);
        }
    return PRESTO_OK;
}

/* Bytes of the block that have been read so far. */
typedef struct reading {
    presto__object object;
    uint64_t start; /* offset in the file of data[0] */
    uint8_t *data;
    size_t bytes; /* wanted in total */
    size_t have;
} reading;

/* Read another piece. If nothing comes, record i cannot be read. */
static presto_status read_more(const fetch *job, size_t i, reading *in) {
    size_t left = in->bytes - in->have, piece = job->shard->piece_bytes, got;
    size_t want = left <= piece + piece / 4 ? left : piece;
    PRESTO_TRY(
        presto__read_at((presto__object_place){in->object, job->shard->path, in->start + in->have},
                        in->data + in->have, want, &got, job->err));
    in->have += got;
    return got > 0 ? PRESTO_OK
                   : presto__shard_fail_short(job->shard, job->first + i, in->start + in->have,
                                              job->err);
}

/* A record larger than a piece: its CRC is computed piece by piece while it is read. */
static presto_status read_large(fetch *job, size_t i, reading *in, size_t at, size_t frame_bytes) {
    const presto_shard_options *options = &job->shard->options;
    size_t end = at + frame_bytes;
    while (in->have < at + HEADER)
        PRESTO_TRY(read_more(job, i, in));
    uint64_t offset = job->offsets[i], payload_bytes = frame_bytes - OVERHEAD;
    presto_error *err = damage_error(job);
    presto_status status =
        check_header(job, presto_span_of(in->data + at, HEADER), offset, frame_bytes, err);
    bool sum = status == PRESTO_OK && options->verify == PRESTO_CHECK_FULL;
    size_t payload_at = at + HEADER, summed = payload_at;
    size_t payload_end = status == PRESTO_OK ? payload_at + (size_t)payload_bytes : end;
    uint32_t crc = 0;
    for (;;) {
        size_t until = in->have < payload_end ? in->have : payload_end;
        if (sum && until > summed)
            crc = presto_crc32c(crc, in->data + summed, until - summed);
        summed = until;
        if (in->have >= end)
            break;
        PRESTO_TRY(read_more(job, i, in));
    }
    if (sum &&
        !presto__crc_matches(presto__load_u32(in->data + payload_end), presto_crc32c_mask(crc)))
        status =
            presto_fail(err, PRESTO_ERR_CORRUPT, offset, "CRC of the record's %ju byte%s differs",
                        (uintmax_t)payload_bytes, presto_plural(payload_bytes));
    mark(job, i, status, presto_span_of(in->data + payload_at, payload_end - payload_at));
    return PRESTO_OK;
}

/* Records [i, end), none of them a damaged range, into memory at `data`. */
static presto_status fetch_plain(fetch *job, size_t i, size_t end, uint8_t *data) {
    const uint64_t *offsets = job->offsets;
    reading in = {.start = offsets[i], .data = data};
    in.bytes = (size_t)(offsets[end] - offsets[i]);
    PRESTO_TRY(presto__shard_acquire(job->shard, &in.object, job->err));
    in.object.is_again = job->is_again;
    presto_status status = PRESTO_OK;
    while (i < end && status == PRESTO_OK) {
        size_t at = (size_t)(offsets[i] - in.start);
        size_t frame_bytes = (size_t)(offsets[i + 1] - offsets[i]);
        if (frame_bytes > PRESTO__PIECE_BYTES) {
            status = read_large(job, i, &in, at, frame_bytes);
            i++;
            continue;
        }
        while (status == PRESTO_OK && in.have < at + frame_bytes)
            status = read_more(job, i, &in);
        if (status < 0)
            break;
        /* Checks all records that have been read completely. */
        size_t behind = i + 1;
        while (behind < end && offsets[behind + 1] - in.start <= in.have)
            behind++;
        parse_records(job, i, behind, in.data + at);
        i = behind;
    }
    presto__shard_release(job->shard);
    job->block->file_bytes_read += in.have;
    return status;
}

static presto_status fetch_mapped(fetch *job, size_t i, size_t end) {
    const uint64_t *offsets = job->offsets;
    presto__storage_thread *played = presto__storage_bound();
    const presto__storage_piece piece = {(int)(job->shard->info.identity[1] & INT_MAX), offsets[i],
                                         offsets[end] - offsets[i]};
    if (played != NULL)
        presto__storage_read(played, presto__storage_begin(played), &piece);
    parse_records(job, i, end, job->shard->mapping + offsets[i]);
    job->block->file_bytes_read += offsets[end] - offsets[i];
    return PRESTO_OK;
}

static presto_status fetch_compressed(fetch *job, size_t i, size_t end) {
    presto_status status =
        presto__shard_read_stream(job->shard, job->offsets + i, end - i, job->block, job->err);
    /* The offset may be beyond the end of the stream. */
    job->misplaced |= status == PRESTO_ERR_TRUNCATED || status == PRESTO_ERR_CORRUPT;
    if (status < 0)
        return presto__shard_fail_at(job->shard, job->first + i, status, job->err);
    parse_records(job, i, end, job->block->bytes_.data);
    if (presto__shard_is_indexed(job->shard) && job->first + end == job->shard->record_count)
        presto__shard_end_stream(job->shard);
    return PRESTO_OK;
}

presto_status presto__shard_describe(presto_shard *shard, const presto__damage *damage,
                                     uint64_t *read_bytes_io, presto_error *why_out) {
    uint8_t header[HEADER];
    uint64_t payload_bytes = 0, place = damage->end - damage->offset;
    size_t want = place < HEADER ? (size_t)place : HEADER, got;
    presto_status status;
    presto__object object;
    if (damage->stream_fault != NULL) {
        *why_out = *damage->stream_fault;
        return PRESTO_OK;
    }
    PRESTO_TRY(presto__shard_acquire(shard, &object, why_out));
    status = presto__read_at((presto__object_place){object, shard->path, damage->offset}, header,
                             want, &got, why_out);
    presto__shard_release(shard);
    PRESTO_TRY(status);
    *read_bytes_io += got;
    if (got < want)
        status = presto__shard_fail_short(shard, damage->record, damage->offset + got, why_out);
    else
        status = presto__frame_parse_header(
            presto_span_of(header, got), damage->offset,
            &(presto__frame_rules){shard->options.max_payload_bytes, PRESTO_CHECK_HEADER},
            &payload_bytes, why_out);
    if (status >= 0)
        (void)presto_fail(why_out, PRESTO_ERR_TRUNCATED, damage->offset,
                          "truncated record: %ju of %ju bytes after its header",
                          (uintmax_t)(place - HEADER),
                          (uintmax_t)(payload_bytes + OVERHEAD - HEADER));
    presto_error_set_file(why_out, shard->path);
    presto_error_set_record(why_out, damage->record);
    return PRESTO_OK;
}

/* Record i is a damaged range: report what indexing found there. */
static presto_status mark_damaged(fetch *job, size_t i) {
    const presto__damage damage = {job->first + i, job->offsets[i], job->offsets[i + 1],
                                   job->found->stream_fault};
    presto_error why;
    presto_status status =
        presto__shard_describe(job->shard, &damage, &job->block->file_bytes_read, &why);
    if (status < 0) {
        if (job->err != NULL)
            *job->err = why;
        return status;
    }
    if (damage_error(job) != NULL)
        *job->err = why;
    mark(job, i, why.status, presto_span_of(NULL, 0));
    return PRESTO_OK;
}

/* Records [i, end), none of them a damaged range. `data`: where the next read goes. */
static presto_status fetch_whole(fetch *job, size_t i, size_t end, uint8_t **data) {
    presto_shard *shard = job->shard;
    if (i == end)
        return PRESTO_OK;
    if (shard->compression != PRESTO_FILE_PLAIN)
        return fetch_compressed(job, i, end);
    if (shard->mapping != NULL)
        return fetch_mapped(job, i, end);
    PRESTO_TRY(fetch_plain(job, i, end, *data));
    *data += job->offsets[end] - job->offsets[i];
    return PRESTO_OK;
}

/* The next damaged range from record i on; `end` if there is none before it. */
static size_t next_damaged(const fetch *job, size_t i, size_t end) {
    if (job->found == NULL)
        return end;
    uint64_t damaged = presto__found_next_damaged(job->found, job->first + i) - job->first;
    return damaged < end ? (size_t)damaged : end;
}

/* Memory for the range of the file, aligned as the caller wants it. */
static presto_status reserve_bytes(fetch *job, size_t count, uint8_t **data_out) {
    const uint64_t *offsets = job->offsets;
    uint64_t bytes = offsets[count] - offsets[0];
    for (size_t i = 0; (i = next_damaged(job, i, count)) < count; i++)
        bytes -= offsets[i + 1] - offsets[i];
    if (bytes > SIZE_MAX - BLOCK_ALIGN)
        return presto_fail_memory(job->err, bytes);
    PRESTO_TRY(presto_buffer_reserve(&job->block->bytes_, (size_t)bytes + BLOCK_ALIGN, job->err));
    uint8_t *data = job->block->bytes_.data;
    uintptr_t aligned = (uintptr_t)data + HEADER + job->block->align_at;
    *data_out = data + (-aligned & (BLOCK_ALIGN - 1));
    return PRESTO_OK;
}

static presto_status fetch_all(fetch *job, size_t count) {
    presto_shard *shard = job->shard;
    uint8_t *data = NULL;
    presto__places places; /* not set to zero: it is large, and single records are fetched, too */
    PRESTO_TRY(presto__shard_places(shard, job->first, count, &places, job->err));
    job->offsets = places.offsets;
    job->found = places.found;
    job->is_by_index = places.found == NULL;
    job->block->record_count = 0;
    if (job->found == NULL) /* else they are our own */
        PRESTO_TRY(check_offsets(job, count));
    PRESTO_TRY(block_reserve(job->block, count, job->err));
    if (shard->compression == PRESTO_FILE_PLAIN && shard->mapping == NULL)
        PRESTO_TRY(reserve_bytes(job, count, &data));
    for (size_t i = 0; i < count;) {
        size_t end = next_damaged(job, i, count);
        PRESTO_TRY(fetch_whole(job, i, end, &data));
        if (end < count)
            PRESTO_TRY(mark_damaged(job, end));
        i = end + 1;
    }
    job->block->record_count = count;
    return PRESTO_OK;
}

/* May what does not hold be whole if it is read once more? */
static bool may_be_the_network(const fetch *job) {
    presto_shard *shard = job->shard;
    if (!shard->is_remote)
        return false;
    if (shard->compression == PRESTO_FILE_PLAIN)
        return job->described;
    return (job->described || job->misplaced) && presto__shard_drop_stream(shard);
}

presto_status presto_shard_fetch(presto_shard *shard, uint64_t first, size_t count,
                                 presto_block *block, presto_error *err) {
    if (!presto__shard_has(shard, first, count)) {
        PRESTO_TRY(presto_shard_index(shard, false, NULL, err));
        if (!presto__shard_has(shard, first, count))
            return presto_fail(err, PRESTO_ERR_ARGUMENT, PRESTO_NO_OFFSET,
                               "records %ju to %ju of %ju", (uintmax_t)first,
                               (uintmax_t)(first + count), (uintmax_t)presto_shard_records(shard));
    }
    block->record_count = 0;
    block->file_bytes_read = 0;
    if (count == 0)
        return PRESTO_OK;
    fetch job = {.shard = shard, .block = block, .first = first, .err = err};
    presto_status status = fetch_all(&job, count);
    /* Another piece of a file that is compressed as a whole may be wrong the next time. */
    const unsigned most = shard->compression == PRESTO_FILE_PLAIN ? 1 : MOST_READINGS;
    for (unsigned i = 0; i < most && may_be_the_network(&job); i++) {
        uint64_t read_bytes = block->file_bytes_read;
        job = (fetch){.shard = shard, .block = block, .first = first, .err = err, .is_again = true};
        status = fetch_all(&job, count);
        block->file_bytes_read += read_bytes;
    }
    if (!job.misplaced || !job.is_by_index)
        return status;
    presto_error failure;
    presto_status doubt = presto__shard_doubt_index(shard, &failure);
    if (doubt == PRESTO_END)
        return status;
    if (doubt < 0) {
        if (err != NULL)
            *err = failure;
        block->record_count = 0;
        return doubt;
    }
    job = (fetch){.shard = shard, .block = block, .first = first, .err = err};
    return fetch_all(&job, count);
}

/* ---- what a walk has read ---- */

/* The network may have changed what a walk has read. */
static presto_status read_stretch_again(fetch *job, const presto__stretch *stretch,
                                        presto_error *err) {
    presto__object object;
    size_t got, bytes = (size_t)(job->offsets[stretch->count] - job->offsets[0]);
    PRESTO_TRY(presto__shard_acquire(job->shard, &object, err));
    object.is_again = true;
    presto_status status =
        presto__read_at((presto__object_place){object, job->shard->path, job->offsets[0]},
                        job->block->bytes_.data, bytes, &got, err);
    presto__shard_release(job->shard);
    PRESTO_TRY(status);
    if (got < bytes)
        return presto__shard_fail_short(job->shard, job->first, job->offsets[0] + got, err);
    job->described = false;
    parse_records(job, 0, stretch->count, job->block->bytes_.data);
    return PRESTO_OK;
}

presto_status presto__stretch_check(presto_shard *shard, const presto__stretch *stretch,
                                    presto_block *block, presto_error *err) {
    fetch job = {.shard = shard, .block = block, .first = stretch->first};
    job.offsets = (const uint64_t *)(const void *)stretch->offsets_.data;
    block->record_count = 0;
    PRESTO_TRY(block_reserve(block, stretch->count, err));
    parse_records(&job, 0, stretch->count, block->bytes_.data);
    if (job.described && shard->is_remote && shard->compression == PRESTO_FILE_PLAIN)
        PRESTO_TRY(read_stretch_again(&job, stretch, err));
    block->record_count = stretch->count;
    return PRESTO_OK;
}

presto_status presto__stretch_describe(presto_shard *shard, const presto__stretch *stretch,
                                       size_t i, presto_block *block, presto_error *err) {
    fetch job = {.shard = shard, .block = block, .first = stretch->first, .err = err};
    job.offsets = (const uint64_t *)(const void *)stretch->offsets_.data;
    const uint8_t *frame = block->bytes_.data + (job.offsets[i] - job.offsets[0]);
    parse_record(&job, i, presto_span_of(frame, (size_t)(job.offsets[i + 1] - job.offsets[i])));
    return block->records[i].status;
}

bool presto__shard_find_bytes(presto_shard *shard, uint64_t first, uint64_t count,
                              presto__shard_bytes *bytes_out) {
    presto__places places;
    if (shard->compression != PRESTO_FILE_PLAIN || count == 0 ||
        !presto__shard_reaches(shard, first, count) ||
        presto__shard_places(shard, first, count, &places, NULL) < 0)
        return false;
    uint64_t start = places.offsets[0], end = places.offsets[count];
    *bytes_out = (presto__shard_bytes){start, end, end - start};
    return start < end && end <= shard->file_bytes; /* the offsets come from a file */
}

void presto__shard_will_read_bytes(presto_shard *shard, const presto__shard_bytes *bytes) {
    presto__object object;
    if (presto__shard_acquire(shard, &object, NULL) < 0)
        return;
    presto__object_will_read_of(object, bytes->start, bytes->end - bytes->start, bytes->wanted);
    presto__shard_release(shard);
}

void presto__shard_will_read(presto_shard *shard, uint64_t first, uint64_t count) {
    presto__shard_bytes bytes;
    if (presto__shard_find_bytes(shard, first, count, &bytes))
        presto__shard_will_read_bytes(shard, &bytes);
}
