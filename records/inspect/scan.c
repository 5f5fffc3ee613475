/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Walking a file past its damage: behind a bad frame, the next position with a whole frame is
 * searched. The search starts inside the damaged frame, even if its header is correct: bytes may be
 * missing from it, and whole records may start before its announced end.
 */
#include "../records_internal.h"
#include "inspect_internal.h"

#include <errno.h>
#include <stdlib.h>

#include "../../storage/storage_internal.h"
#include "../frame/frame_internal.h"
#include "../shard/shard_internal.h"

#define HEADER PRESTO_FRAME_HEADER_BYTES
#define OVERHEAD PRESTO_FRAME_OVERHEAD_BYTES

struct presto__scan {
    presto__object object;
    char *path;
    presto_file_compression compression;
    uint64_t file_bytes;
    uint64_t max_payload_bytes;
    presto__byte_stream *stream;
    uint64_t offset; /* where the next frame is expected */
    uint64_t record;
    bool told_failure; /* the stream's own error has been returned */
    presto_error fault;
};

static presto_status open_scan(presto__scan *scan, const char *path, presto_error *err) {
    presto__object_info info;
    uint8_t head[512];
    size_t got;
    scan->path = strdup(path);
    if (scan->path == NULL)
        return presto_fail_memory(err, strlen(path));
    PRESTO_TRY(presto__object_open(path, &scan->object, &info, err));
    scan->file_bytes = info.bytes;
    PRESTO_TRY(presto__read_at((presto__object_place){scan->object, path, 0}, head, sizeof head,
                               &got, err));
    scan->compression = presto__detect_compression(presto_span_of(head, got));
    return presto__byte_stream_new(scan->object, scan->path, scan->compression, &scan->stream, err);
}

presto_status presto__scan_new(const char *path, uint64_t max_payload_bytes,
                               presto__scan **scan_out, presto_error *err) {
    presto__scan *scan = calloc(1, sizeof *scan);
    if (scan == NULL)
        return presto_fail_memory(err, sizeof *scan);
    scan->max_payload_bytes = presto__payload_limit(max_payload_bytes);
    presto_status status = open_scan(scan, path, err);
    if (status < 0) {
        presto__scan_free(scan);
        return status;
    }
    *scan_out = scan;
    return PRESTO_OK;
}

void presto__scan_free(presto__scan *scan) {
    if (scan == NULL)
        return;
    presto__byte_stream_free(scan->stream);
    presto__object_close(&scan->object);
    free(scan->path);
    free(scan);
}

void presto__scan_ask(presto__scan *scan, presto_stop_fn should_stop, void *user) {
    presto__byte_stream_ask(scan->stream, should_stop, user);
}

presto_file_compression presto__scan_compression(const presto__scan *scan) {
    return scan->compression;
}

uint64_t presto__scan_file_bytes(const presto__scan *scan) {
    return scan->file_bytes;
}

/* One past the last byte that may exist. */
static uint64_t file_end(const presto__scan *scan) {
    return scan->compression == PRESTO_FILE_PLAIN ? scan->file_bytes : UINT64_MAX;
}

/* A view that treats a failure of the stream as its end, except for lack of memory and a wish to
 * stop. */
static presto_status view(presto__scan *scan, uint64_t offset, size_t count, presto_span *out,
                          presto_error *err) {
    presto_error ignored;
    presto_status status =
        presto__byte_stream_view(scan->stream, offset, count, out, err != NULL ? err : &ignored);
    return status == PRESTO_ERR_MEMORY || status == PRESTO_ERR_STOPPED ? status : PRESTO_OK;
}

/* Can a frame with this payload end within the file? For compressed files this is unknown. */
static bool may_fit(const presto__scan *scan, uint64_t offset, uint64_t payload_bytes) {
    uint64_t end = file_end(scan);
    return payload_bytes <= scan->max_payload_bytes && offset + OVERHEAD <= end &&
           payload_bytes <= end - offset - OVERHEAD;
}

static presto_fault_kind kind_of(presto_status status) {
    if (status == PRESTO_ERR_TRUNCATED)
        return PRESTO_FAULT_TRUNCATED;
    return status == PRESTO_ERR_LIMIT ? PRESTO_FAULT_LIMIT : PRESTO_FAULT_LENGTH;
}

/* No frame fits between the expected one and `end`. */
static presto_status lose(presto__scan *scan, presto_fault_kind kind, uint64_t end,
                          presto__scan_item *item) {
    *item = (presto__scan_item){.record = scan->record,
                                .offset = scan->offset,
                                .bytes = end - scan->offset,
                                .kind = kind,
                                .message = scan->fault.message};
    scan->offset = end;
    return PRESTO_OK;
}

static presto_status lose_until_next(presto__scan *scan, presto_fault_kind kind,
                                     presto__scan_item *item, presto_error *err) {
    uint64_t found;
    const presto__frame_search wanted = {.from = scan->offset + 1,
                                         .max_payload_bytes = scan->max_payload_bytes,
                                         .end = file_end(scan)};
    PRESTO_TRY(presto__byte_stream_find_frame(scan->stream, &wanted, &found, err));
    return lose(scan, kind, found, item);
}

/* The stream ended: at its end, or because reading or decompressing failed? */
static presto_status finish(presto__scan *scan, presto__scan_item *item) {
    presto_span none;
    presto_status status =
        presto__byte_stream_view(scan->stream, scan->offset, 1, &none, &scan->fault);
    if (status >= 0 || scan->told_failure)
        return PRESTO_END;
    scan->told_failure = true;
    *item = (presto__scan_item){.record = scan->record,
                                .offset = scan->offset,
                                .kind = status == PRESTO_ERR_IO ? PRESTO_FAULT_IO
                                                                : PRESTO_FAULT_COMPRESSION,
                                .message = scan->fault.message};
    return PRESTO_OK;
}

/* The whole frame, whose header holds. The next one that is found may be within it. */
static presto_status check_frame(presto__scan *scan, presto_span bytes, uint64_t payload_bytes,
                                 presto_span *payload) {
    const presto__frame_rules rules = {scan->max_payload_bytes, PRESTO_CHECK_FULL};
    if (!presto__byte_stream_affords(scan->stream, scan->offset, payload_bytes))
        return presto_fail(&scan->fault, PRESTO_ERR_CORRUPT, scan->offset,
                           "the record's %ju bytes are not checked: too many that overlap were "
                           "checked before it and do not hold",
                           (uintmax_t)payload_bytes);
    presto_status status = presto__frame_parse(bytes, scan->offset, &rules, payload, &scan->fault);
    if (status < 0)
        presto__byte_stream_spend(scan->stream, payload_bytes);
    return status;
}

presto_status presto__scan_next(presto__scan *scan, presto__scan_item *item_out,
                                presto_error *err) {
    presto_span bytes, payload;
    uint64_t payload_bytes;
    presto__byte_stream_forget(scan->stream, scan->offset);
    PRESTO_TRY(view(scan, scan->offset, HEADER, &bytes, err));
    presto_status status = presto__frame_parse_header(
        bytes, scan->offset, &(presto__frame_rules){scan->max_payload_bytes, PRESTO_CHECK_HEADER},
        &payload_bytes, &scan->fault);
    if (status == PRESTO_END)
        return finish(scan, item_out);
    if (status < 0 && scan->offset == 0)
        PRESTO_TRY(presto__refuse_foreign(scan->object, scan->path, scan->compression,
                                          scan->max_payload_bytes, err));
    if (status < 0)
        return lose_until_next(scan, kind_of(status), item_out, err);
    size_t want = (size_t)payload_bytes + OVERHEAD;
    if (may_fit(scan, scan->offset, payload_bytes)) {
        PRESTO_TRY(view(scan, scan->offset, want, &bytes, err));
    } else {
        bytes.bytes = (size_t)(scan->file_bytes - scan->offset); /* shorter than it says */
        bytes = presto_span_of(bytes.data, bytes.bytes < want ? bytes.bytes : want);
    }
    if (bytes.bytes < want) {
        presto_fail(&scan->fault, PRESTO_ERR_TRUNCATED, scan->offset,
                    "truncated record: %zu of %zu bytes after its header", bytes.bytes - HEADER,
                    want - HEADER);
        return lose_until_next(scan, PRESTO_FAULT_TRUNCATED, item_out, err);
    }
    status = check_frame(scan, bytes, payload_bytes, &payload);
    if (status < 0) {
        status = lose_until_next(scan, PRESTO_FAULT_PAYLOAD, item_out, err);
        scan->record++;
        return status;
    }
    *item_out = (presto__scan_item){.whole = true,
                                    .payload = payload,
                                    .record = scan->record++,
                                    .offset = scan->offset,
                                    .bytes = want};
    scan->offset += want;
    return PRESTO_OK;
}
