/* SPDX-License-Identifier: Apache-2.0 */
/* The TFRecord frame in memory: parse and write. */
#include "../records_internal.h"
#include "frame_internal.h"

#include <presto/numbers.h>

#define HEADER PRESTO_FRAME_HEADER_BYTES
#define FOOTER PRESTO_FRAME_FOOTER_BYTES

static bool header_holds(const uint8_t *header) {
    uint32_t crc = presto_crc32c_mask(presto_crc32c(0, header, 8));
    return presto__crc_matches(presto__load_u32(header + 8), crc);
}

static bool payload_holds(const uint8_t *payload, size_t bytes) {
    uint32_t crc = presto_crc32c_mask(presto_crc32c(0, payload, bytes));
    return presto__crc_matches(presto__load_u32(payload + bytes), crc);
}

presto_status presto__frame_parse_header(presto_span in, uint64_t offset,
                                         const presto__frame_rules *rules,
                                         uint64_t *payload_bytes_out, presto_error *err) {
    if (in.bytes == 0)
        return PRESTO_END;
    if (in.bytes < HEADER)
        return presto_fail(err, PRESTO_ERR_TRUNCATED, offset,
                           "truncated record: %zu of the 12 bytes of its header", in.bytes);
    uint64_t payload_bytes = presto__load_u64(in.data);
    if (rules->verify != PRESTO_CHECK_NONE && !header_holds(in.data))
        return presto_fail(err, PRESTO_ERR_CORRUPT, offset, "CRC of the record's length differs%s",
                           offset == 0 ? " (is this a TFRecord file?)" : "");
    if (payload_bytes > rules->max_payload_bytes)
        return presto_fail(err, PRESTO_ERR_LIMIT, offset, "record of %ju byte%s, limit %ju",
                           (uintmax_t)payload_bytes, presto_plural(payload_bytes),
                           (uintmax_t)rules->max_payload_bytes);
    *payload_bytes_out = payload_bytes;
    return PRESTO_OK;
}

presto_status presto__frame_parse(presto_span in, uint64_t offset, const presto__frame_rules *rules,
                                  presto_span *payload_out, presto_error *err) {
    uint64_t payload_bytes;
    presto_status status = presto__frame_parse_header(in, offset, rules, &payload_bytes, err);
    return status != PRESTO_OK ? status
                               : presto__frame_parse_payload(in, offset, rules, payload_out, err);
}

presto_status presto__frame_parse_payload(presto_span in, uint64_t offset,
                                          const presto__frame_rules *rules,
                                          presto_span *payload_out, presto_error *err) {
    uint64_t payload_bytes = presto__load_u64(in.data);
    size_t rest = in.bytes - HEADER;
    if (rest < FOOTER || payload_bytes > rest - FOOTER)
        return presto_fail(err, PRESTO_ERR_TRUNCATED, offset,
                           "truncated record: %zu of %ju bytes after its header", rest,
                           (uintmax_t)payload_bytes + FOOTER);
    if (rules->verify == PRESTO_CHECK_FULL &&
        !payload_holds(in.data + HEADER, (size_t)payload_bytes))
        return presto_fail(err, PRESTO_ERR_CORRUPT, offset,
                           "CRC of the record's %ju byte%s differs", (uintmax_t)payload_bytes,
                           presto_plural(payload_bytes));
    *payload_out = presto_span_of(in.data + HEADER, (size_t)payload_bytes);
    return PRESTO_OK;
}

void presto__frame_write_header(uint64_t payload_bytes,
                                uint8_t header_out[PRESTO_FRAME_HEADER_BYTES]) {
    presto__store_u64(header_out, payload_bytes);
    presto__store_u32(header_out + 8, presto_crc32c_mask(presto_crc32c(0, header_out, 8)));
}

void presto__frame_write_footer(presto_span payload,
                                uint8_t footer_out[PRESTO_FRAME_FOOTER_BYTES]) {
    presto__store_u32(footer_out,
                      presto_crc32c_mask(presto_crc32c(0, payload.data, payload.bytes)));
}

presto_status presto__frame_append(presto_buffer *out, presto_span payload, presto_error *err) {
    if (payload.bytes > SIZE_MAX - PRESTO_FRAME_OVERHEAD_BYTES)
        return presto_fail_memory(err, UINT64_MAX);
    if (out->capacity - out->bytes < payload.bytes + PRESTO_FRAME_OVERHEAD_BYTES)
        PRESTO_TRY(presto_buffer_reserve(out, payload.bytes + PRESTO_FRAME_OVERHEAD_BYTES, err));
    uint8_t *at = out->data + out->bytes;
    presto__frame_write_header(payload.bytes, at);
    if (payload.bytes > 0)
        memcpy(at + HEADER, payload.data, payload.bytes);
    presto__frame_write_footer(presto_span_of(at + HEADER, payload.bytes),
                               at + HEADER + payload.bytes);
    out->bytes += payload.bytes + PRESTO_FRAME_OVERHEAD_BYTES;
    return PRESTO_OK;
}
