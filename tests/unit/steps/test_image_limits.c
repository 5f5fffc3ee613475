/* SPDX-License-Identifier: Apache-2.0 */
/* Images of few bytes that would take long or much memory to decode. */
#include <zlib.h>

#include "../../../steps/pipelines_internal.h"
#include "steps_check.h"

static presto_status decode(presto_span bytes, presto_error *err) {
    rig r;
    presto_tensor tensor;
    rig_options options = {0};
    ck_assert_ok(rig_open(&r, "{step: decode-image, channels: 1}", &string_spec, false, err), err);
    presto_status status = rig_run_bytes(&r, &options, bytes, &tensor, err);
    rig_close(&r);
    return status;
}

static void append(presto_buffer *out, const void *bytes, size_t count) {
    presto_error err;
    ck_assert_ok(presto_buffer_append(out, presto_span_of(bytes, count), &err), &err);
}

static void append_zeros(presto_buffer *out, size_t count) {
    presto_error err;
    ck_assert_ok(presto_buffer_reserve(out, count, &err), &err);
    memset(out->data + out->bytes, 0, count);
    out->bytes += count;
}

/* ---- scans ---- */

/*
 * A grey progressive JPEG of side x side pixels. Both Huffman tables know one symbol, whose code is
 * a zero bit: "no difference" for DC, "2^14 blocks without coefficients" for AC. Each AC scan is a
 * few bytes of zeros and a pass over all blocks.
 */
static void make_jpeg(presto_buffer *out, unsigned side, unsigned scans) {
    static const uint8_t start[] = {0xff, 0xd8, 0xff, 0xdb, 0, 67, 0};
    static const uint8_t tables[] = {
        0xff, 0xc4, 0, 20, 0x00, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
        0xff, 0xc4, 0, 20, 0x10, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xe0};
    static const uint8_t dc_scan[] = {0xff, 0xda, 0, 8, 1, 1, 0x00, 0, 0, 0};
    static const uint8_t ac_scan[] = {0xff, 0xda, 0, 8, 1, 1, 0x00, 1, 63, 0};
    uint8_t frame[] = {
        0xff,          0xc2, 0, 11,   8, (uint8_t)(side >> 8), (uint8_t)side, (uint8_t)(side >> 8),
        (uint8_t)side, 1,    1, 0x11, 0};
    size_t blocks = (size_t)(side / 8) * (side / 8);
    append(out, start, sizeof start);
    for (size_t i = 0; i < 64; i++)
        append(out, "\x10", 1);
    append(out, frame, sizeof frame);
    append(out, tables, sizeof tables);
    append(out, dc_scan, sizeof dc_scan);
    append_zeros(out, (blocks + 7) / 8);
    for (unsigned i = 1; i < scans; i++) {
        append(out, ac_scan, sizeof ac_scan);
        append_zeros(out, (blocks / 16384 + 1) * 15 / 8 + 1);
    }
    append(out, "\xff\xd9", 2);
}

static presto_status decode_scans(unsigned side, unsigned scans, presto_error *err) {
    presto_buffer jpeg = {0};
    make_jpeg(&jpeg, side, scans);
    uint8_t *copy = presto_check_copy(presto_buffer_span(&jpeg));
    presto_status status = decode(presto_span_of(copy, jpeg.bytes), err);
    free(copy);
    presto_buffer_done(&jpeg);
    return status;
}

START_TEST(as_many_scans_as_encoders_write_are_read_whatever_the_size) {
    presto_error err;
    ck_assert_ok(decode_scans(8, 1, &err), &err);
    ck_assert_ok(decode_scans(6144, 32, &err), &err); /* 1.1 times 2^30 pixels in all */
}
END_TEST

START_TEST(more_scans_are_read_of_a_small_image_only) {
    presto_error err;
    ck_assert_ok(decode_scans(64, 500, &err), &err);
    ck_assert_status(decode_scans(64, 501, &err), PRESTO_ERR_LIMIT, &err);
    ck_assert_ok(decode_scans(4096, 64, &err), &err); /* 2^30 pixels in all */
    ck_assert_status(decode_scans(4096, 65, &err), PRESTO_ERR_LIMIT, &err);
    ck_assert_ptr_nonnull(strstr(err.message, "more than 64 scans"));
    ck_assert_ptr_nonnull(strstr(err.message, "4096 x 4096 pixels"));
}
END_TEST

static bool stops_later(void *asked) {
    return ++*(int *)asked > 100;
}

START_TEST(a_decoder_that_is_cancelled_stops_within_a_scan) {
    presto_buffer jpeg = {0};
    make_jpeg(&jpeg, 4096, 16);
    int asked = 0;
    rig r;
    rig_options options = {0};
    presto_tensor out;
    presto_error err;
    ck_assert_ok(rig_open(&r, "{step: decode-image, channels: 1}", &string_spec, false, &err),
                 &err);
    presto__plan_worker_free(r.worker);
    const presto__plan_worker_options stopping = {.struct_bytes = sizeof stopping,
                                                  .arena = &r.arena,
                                                  .should_stop = stops_later,
                                                  .should_stop_user = &asked};
    ck_assert_ok(presto__plan_worker_new(r.plan, &stopping, &r.worker, &err), &err);
    ck_assert_status(rig_run_bytes(&r, &options, presto_buffer_span(&jpeg), &out, &err),
                     PRESTO_ERR_STOPPED, &err);
    ck_assert_int_eq(asked, 101);
    rig_close(&r);
    presto_buffer_done(&jpeg);
}
END_TEST

START_TEST(a_scan_bomb_is_refused_after_a_few_of_its_scans) {
    presto_error err;
    ck_assert_status(decode_scans(6144, 480, &err), PRESTO_ERR_LIMIT, &err);
    ck_assert_ptr_nonnull(strstr(err.message, "more than 32 scans"));
}
END_TEST

/* ---- memory that libjpeg takes ---- */

typedef struct ledger {
    size_t asked_bytes, most_bytes, returned_bytes;
} ledger;

static bool on_grow(void *user, size_t bytes) {
    ledger *l = user;
    l->asked_bytes += bytes;
    l->most_bytes = bytes > l->most_bytes ? bytes : l->most_bytes;
    return true;
}

static void on_return(void *user, size_t bytes) {
    ledger *l = user;
    l->returned_bytes += bytes;
}

/* What decoding `jpeg` asks for. */
static presto_status decode_with(ledger *l, presto_span jpeg, presto_error *err) {
    rig r;
    presto_tensor tensor;
    rig_options options = {0};
    ck_assert_ok(rig_open(&r, "{step: decode-image, channels: 1}", &string_spec, false, err), err);
    presto__plan_worker_free(r.worker);
    r.arena.on_grow = on_grow;
    r.arena.on_grow_user = l;
    const presto__plan_worker_options worker = {
        .struct_bytes = sizeof worker, .arena = &r.arena, .on_return = on_return};
    ck_assert_ok(presto__plan_worker_new(r.plan, &worker, &r.worker, err), err);
    *l = (ledger){0};
    presto_status status = rig_run_bytes(&r, &options, jpeg, &tensor, err);
    rig_close(&r);
    return status;
}

START_TEST(coefficients_are_asked_for_and_returned) {
    const size_t coefficients = (size_t)2048 * 2048 * 2;
    presto_error err;
    presto_buffer jpeg = {0};
    ledger l;
    make_jpeg(&jpeg, 2048, 2);
    ck_assert_ok(decode_with(&l, presto_buffer_span(&jpeg), &err), &err);
    ck_assert_uint_eq(l.most_bytes, coefficients);
    ck_assert_uint_eq(l.returned_bytes, coefficients);
    ck_assert_uint_gt(l.asked_bytes, coefficients + coefficients / 2);
    /* Also if decoding fails. */
    ck_assert_status(decode_with(&l, presto_span_of(jpeg.data, jpeg.bytes - 100), &err),
                     PRESTO_ERR_TRUNCATED, &err);
    ck_assert_uint_eq(l.asked_bytes, coefficients);
    ck_assert_uint_eq(l.returned_bytes, coefficients);
    presto_buffer_done(&jpeg);
}
END_TEST

START_TEST(an_image_of_one_scan_has_no_coefficients) {
    presto_error err;
    ledger l;
    size_t bytes;
    uint8_t *jpeg = presto_check_read_file(PRESTO_GOLDEN_DIR "/images/jpeg-2x3.jpg", &bytes);
    ck_assert_ok(decode_with(&l, presto_span_of(jpeg, bytes), &err), &err);
    ck_assert_uint_eq(l.returned_bytes, 0);
    free(jpeg);
}
END_TEST

/* ---- chunks of a PNG that blow up ---- */

static void append_u32(presto_buffer *out, uint32_t value) {
    uint8_t bytes[] = {(uint8_t)(value >> 24), (uint8_t)(value >> 16), (uint8_t)(value >> 8),
                       (uint8_t)value};
    append(out, bytes, sizeof bytes);
}

static void append_chunk(presto_buffer *out, const char *type, presto_span data) {
    append_u32(out, (uint32_t)data.bytes);
    size_t start = out->bytes;
    append(out, type, 4);
    append(out, data.data, data.bytes);
    append_u32(out, (uint32_t)crc32(0, out->data + start, (uInt)(out->bytes - start)));
}

/* `prefix` and then `bytes` zeros as a zlib stream. */
static void append_zlib(presto_buffer *out, presto_span prefix, size_t bytes) {
    uint8_t *zeros = calloc(1, bytes);
    uLongf room = compressBound((uLong)bytes);
    uint8_t *packed = malloc(room);
    ck_assert(zeros != NULL && packed != NULL);
    ck_assert_int_eq(compress2(packed, &room, zeros, (uLong)bytes, 9), Z_OK);
    append(out, prefix.data, prefix.bytes);
    append(out, packed, room);
    free(packed);
    free(zeros);
}

/* One grey pixel, `count` chunks of `type` that inflate to `bytes` each. */
static presto_status decode_chunks(const char *type, unsigned count, size_t bytes,
                                   presto_error *err) {
    presto_buffer png = {0}, data = {0};
    append(&png, "\x89PNG\r\n\x1a\n", 8);
    append_chunk(&png, "IHDR", presto_span_of("\0\0\0\1\0\0\0\1\10\0\0\0\0", 13));
    append_zlib(&data, presto_span_of("a\0\0", 3), bytes);
    for (unsigned i = 0; i < count; i++)
        append_chunk(&png, type, presto_buffer_span(&data));
    data.bytes = 0;
    append_zlib(&data, (presto_span){0}, 2);
    append_chunk(&png, "IDAT", presto_buffer_span(&data));
    append_chunk(&png, "IEND", (presto_span){0});
    presto_status status = decode(presto_buffer_span(&png), err);
    presto_buffer_done(&data);
    presto_buffer_done(&png);
    return status;
}

START_TEST(texts_and_profiles_of_a_png_are_bounded) {
    static const char *const types[] = {"zTXt", "iCCP"};
    presto_error err;
    for (size_t i = 0; i < 2; i++) {
        ck_assert_ok(decode_chunks(types[i], 1, (size_t)3 << 20, &err), &err);
        ck_assert_status(decode_chunks(types[i], 1, (size_t)40 << 20, &err), PRESTO_ERR_LIMIT,
                         &err);
        ck_assert_ptr_nonnull(strstr(err.message, "more than 8 MiB"));
    }
    /* Together, too. */
    ck_assert_status(decode_chunks("zTXt", 50, (size_t)1 << 20, &err), PRESTO_ERR_LIMIT, &err);
}
END_TEST

int main(void) {
    const TTest *const tests[] = {
        as_many_scans_as_encoders_write_are_read_whatever_the_size,
        more_scans_are_read_of_a_small_image_only,
        a_decoder_that_is_cancelled_stops_within_a_scan,
        a_scan_bomb_is_refused_after_a_few_of_its_scans,
        coefficients_are_asked_for_and_returned,
        an_image_of_one_scan_has_no_coefficients,
        texts_and_profiles_of_a_png_are_bounded,
    };
    return presto_check_main("image_limits", tests, sizeof tests / sizeof tests[0], 240);
}
