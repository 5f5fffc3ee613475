/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the next whole frame in a stream whose lengths can no longer be followed. The stream is
 * read, not mapped: with a bad sector, or a file that becomes shorter, a read fails or is short.
 * With a mapping, the process would die.
 */
#include "../frame/frame_internal.h"
#include "../records_internal.h"
#include "shard_internal.h"

#define HEADER PRESTO_FRAME_HEADER_BYTES
#define OVERHEAD PRESTO_FRAME_OVERHEAD_BYTES
#define WINDOW_BYTES ((size_t)256 << 10)
/* Zeros are compared in pieces of this size. */
#define ZERO_BYTES ((size_t)4 << 10)

/* A view that treats a failure of the stream as its end, except for lack of memory and a wish to
 * stop. */
static presto_status view(presto__byte_stream *stream, uint64_t offset, size_t count,
                          presto_span *out, presto_error *err) {
    presto_error failure;
    presto_status status = presto__byte_stream_view(stream, offset, count, out, &failure);
    if (status != PRESTO_ERR_MEMORY && status != PRESTO_ERR_STOPPED)
        return PRESTO_OK;
    if (err != NULL)
        *err = failure;
    return status;
}

static bool header_holds(presto_span header) {
    uint64_t bytes;
    return presto__frame_parse_header(header, 0,
                                      &(presto__frame_rules){UINT64_MAX, PRESTO_CHECK_HEADER},
                                      &bytes, NULL) == PRESTO_OK;
}

/* Is there a whole frame at `offset`? Its header is known to be correct. */
static presto_status frame_holds(presto__byte_stream *stream, uint64_t offset,
                                 uint64_t payload_bytes, bool *holds, presto_error *err) {
    presto_span frame, payload;
    PRESTO_TRY(view(stream, offset, (size_t)payload_bytes + OVERHEAD, &frame, err));
    presto_status status = presto__frame_parse(
        frame, offset, &(presto__frame_rules){UINT64_MAX, PRESTO_CHECK_FULL}, &payload, NULL);
    if (status == PRESTO_ERR_CORRUPT) /* not if it is cut */
        presto__byte_stream_spend(stream, payload_bytes);
    *holds = status == PRESTO_OK;
    return PRESTO_OK;
}

/* Number of zeros at the start of `bytes`. */
static size_t leading_zeros(presto_span bytes) {
    static const uint8_t zeros[ZERO_BYTES];
    size_t at = 0;
    while (bytes.bytes - at >= ZERO_BYTES && memcmp(bytes.data + at, zeros, ZERO_BYTES) == 0)
        at += ZERO_BYTES;
    while (at < bytes.bytes && bytes.data[at] == 0)
        at++;
    return at;
}

/*
 * How many positions at the start of `window` can be skipped because the header there would be all
 * zeros? (The CRC of eight zero bytes is not zero.) A crash may leave files with preallocated
 * gigabytes of zeros.
 */
static size_t zero_positions(presto_span window) {
    size_t zeros = leading_zeros(window);
    return zeros >= HEADER ? zeros - (HEADER - 1) : 0;
}

presto_status presto__byte_stream_find_frame(presto__byte_stream *stream,
                                             const presto__frame_search *wanted,
                                             uint64_t *found_out, presto_error *err) {
    const uint64_t end = wanted->end;
    uint64_t from = wanted->from;
    for (;;) {
        presto_span window;
        presto__byte_stream_forget(stream, from);
        from = presto__byte_stream_skip_hole(stream, from, HEADER - 1);
        PRESTO_TRY(view(stream, from, WINDOW_BYTES + OVERHEAD, &window, err));
        if (window.bytes < OVERHEAD) {
            *found_out = from + window.bytes;
            return PRESTO_END;
        }
        size_t count = window.bytes - OVERHEAD + 1;
        for (size_t at = 0; at < count; at++) {
            /* The length is compared first: this alone rejects nearly every position. */
            uint64_t payload_bytes = presto__load_u64(window.data + at);
            if (payload_bytes == 0 && presto__load_u32(window.data + at + 8) == 0) {
                presto_span rest = presto_span_of(window.data + at, window.bytes - at);
                at += zero_positions(rest) - 1;
                continue;
            }
            uint64_t left = end > from + at ? end - (from + at) : 0;
            if (payload_bytes > wanted->max_payload_bytes || left < OVERHEAD ||
                payload_bytes > left - OVERHEAD ||
                !header_holds(presto_span_of(window.data + at, HEADER)) ||
                !presto__byte_stream_affords(stream, from + at, payload_bytes))
                continue;
            bool holds;
            PRESTO_TRY(frame_holds(stream, from + at, payload_bytes, &holds, err));
            if (holds) {
                *found_out = from + at;
                return PRESTO_OK;
            }
            /* The window may have moved in memory. */
            PRESTO_TRY(view(stream, from, WINDOW_BYTES + OVERHEAD, &window, err));
        }
        from += count;
    }
}
