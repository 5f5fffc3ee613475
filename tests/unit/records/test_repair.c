/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Verify and repair of damage. The tests are exhaustive: a file of 64 records with every
 * bit of its framing flipped, cut at every length, with ranges swapped, doubled and left out.
 * verify never accepts it, and repair saves every whole record.
 */
#include <stdio.h>
#include <unistd.h>

#include <presto/example.h>
#include <presto/inspect.h>
#include <presto/rng.h>

#include "../../../base/rng_internal.h"
#include "../../../records/records_internal.h"
#include "inspect_check.h"

/* ---- damage ---- */

typedef struct lost_sum {
    uint64_t bytes;
    uint64_t end;
} lost_sum;

static bool add_lost(void *user, uint64_t offset, uint64_t bytes, uint64_t records_before) {
    lost_sum *sum = user;
    (void)records_before;
    ck_assert_uint_ge(offset, sum->end);
    sum->end = offset + bytes;
    sum->bytes += bytes;
    return true;
}

/*
 * `damaged` is the damaged file. Every byte of it belongs to a saved record or to a lost range, and
 * the saved records are exactly the frames numbered in `want`, in that order.
 */
static void check_repair(const made_file *file, presto_span damaged, const size_t *want,
                         size_t want_count, const char *what, size_t at) {
    presto_repair_result repaired;
    lost_sum sum = {0};
    presto_check_write_file(file->path, damaged);
    unlink(file->out); /* a file that exists is not replaced */
    const presto_repair_options summing = {
        .struct_bytes = sizeof summing, .on_lost = add_lost, .on_lost_user = &sum};
    presto_status status = presto_repair_file(file->path, file->out, &summing, &repaired, &err);
    if (want_count == 0 && damaged.bytes > 0) { /* nothing to save: nothing is written */
        ck_assert_status(status, PRESTO_ERR_CORRUPT, &err);
        ck_assert_uint_eq(sum.bytes, damaged.bytes);
        ck_assert_int_ne(access(file->out, F_OK), 0);
        return;
    }
    ck_assert_ok(status, &err);
    size_t bytes;
    uint8_t *out = presto_check_read_file(file->out, &bytes);
    ck_assert_msg(repaired.records == want_count, "%s %zu: %d of %zu records saved", what, at,
                  (int)repaired.records, want_count);
    ck_assert_uint_eq(sum.bytes, repaired.lost_bytes);
    ck_assert_msg(bytes + repaired.lost_bytes == damaged.bytes, "%s %zu: %zu + %d of %zu bytes",
                  what, at, bytes, (int)repaired.lost_bytes, damaged.bytes);
    size_t offset = 0;
    for (size_t i = 0; i < want_count; i++) {
        presto_span wanted = frame(file, want[i]);
        ck_assert(offset + wanted.bytes <= bytes);
        ck_assert_msg(memcmp(out + offset, wanted.data, wanted.bytes) == 0, "%s %zu: record %zu",
                      what, at, i);
        offset += wanted.bytes;
    }
    ck_assert_uint_eq(offset, bytes);
    free(out);
}

static void check_found(const made_file *file, presto_span damaged, size_t whole, const char *what,
                        size_t at) {
    presto_check_write_file(file->path, damaged);
    presto_verify_result result = verify(file->path);
    ck_assert_msg(result.faults > 0, "%s %zu passes", what, at);
    ck_assert_msg(result.records == whole, "%s %zu: %d of %zu records whole", what, at,
                  (int)result.records, whole);
}

/* All but `missing` of them. */
static size_t all_but(size_t missing, size_t *numbers) {
    size_t count = 0;
    for (size_t i = 0; i < RECORDS; i++)
        if (i != missing)
            numbers[count++] = i;
    return count;
}

START_TEST(every_flipped_bit_of_the_framing_is_found_and_costs_one_record) {
    made_file file = make_file();
    size_t want[RECORDS];
    uint8_t *copy = presto_check_copy(presto_buffer_span(&file.bytes));
    presto_span damaged = presto_span_of(copy, file.bytes.bytes);
    for (size_t i = 0; i < RECORDS; i++) {
        size_t count = all_but(i, want);
        for (size_t bit = 0; bit < (size_t)PRESTO_FRAME_OVERHEAD_BYTES * 8; bit++) {
            size_t at = bit / 8 < 12 ? file.starts[i] + bit / 8 : file.starts[i + 1] - 16 + bit / 8;
            copy[at] ^= (uint8_t)(1U << bit % 8);
            check_found(&file, damaged, count, "bit", at * 8 + bit % 8);
            if (bit % 8 == i % 8)
                check_repair(&file, damaged, want, count, "bit", at * 8 + bit % 8);
            copy[at] ^= (uint8_t)(1U << bit % 8);
        }
    }
    free(copy);
    drop_file(&file);
}
END_TEST

START_TEST(a_flipped_bit_in_every_payload_byte_is_found) {
    made_file file = make_file();
    size_t want[RECORDS];
    uint8_t *copy = presto_check_copy(presto_buffer_span(&file.bytes));
    presto_span damaged = presto_span_of(copy, file.bytes.bytes);
    for (size_t i = 0; i < RECORDS; i++) {
        size_t count = all_but(i, want);
        for (size_t at = file.starts[i] + 12; at < file.starts[i + 1] - 4; at++) {
            copy[at] ^= (uint8_t)(1U << at % 8);
            check_found(&file, damaged, count, "payload", at);
            if (at % 11 == 0)
                check_repair(&file, damaged, want, count, "payload", at);
            copy[at] ^= (uint8_t)(1U << at % 8);
        }
    }
    free(copy);
    drop_file(&file);
}
END_TEST

START_TEST(every_cut_is_found_and_costs_one_record) {
    made_file file = make_file();
    size_t want[RECORDS], whole = 0;
    for (size_t i = 0; i < RECORDS; i++)
        want[i] = i;
    for (size_t cut = 0; cut <= file.bytes.bytes; cut++) {
        while (whole < RECORDS && file.starts[whole + 1] <= cut)
            whole++;
        uint8_t *copy = presto_check_copy(presto_span_of(file.bytes.data, cut));
        presto_span damaged = presto_span_of(copy, cut);
        if (cut != file.starts[whole])
            check_found(&file, damaged, whole, "cut", cut);
        check_repair(&file, damaged, want, whole, "cut", cut);
        free(copy);
    }
    drop_file(&file);
}
END_TEST

/* The whole frames in `bytes`, in order: the specification of what repair has to save. */
static size_t whole_frames(const made_file *file, presto_span bytes, size_t *numbers) {
    size_t count = 0;
    for (size_t at = 0; at + PRESTO_FRAME_OVERHEAD_BYTES <= bytes.bytes;) {
        size_t found = RECORDS;
        for (size_t i = 0; i < RECORDS && found == RECORDS; i++) {
            presto_span wanted = frame(file, i);
            if (wanted.bytes <= bytes.bytes - at &&
                memcmp(wanted.data, bytes.data + at, wanted.bytes) == 0)
                found = i;
        }
        if (found == RECORDS) {
            at++;
            continue;
        }
        numbers[count++] = found;
        at += frame(file, found).bytes;
    }
    return count;
}

typedef enum change { LEAVE_OUT, DOUBLE, SWAP, ZERO, CHANGES } change;

/* Build the file with [from, from + bytes) changed. */
static presto_buffer change_range(const made_file *file, change kind, size_t from, size_t bytes,
                                  size_t other) {
    presto_buffer out = {0};
    presto_span all = presto_buffer_span(&file->bytes);
    const presto_span head = presto_span_of(all.data, from);
    const presto_span range = presto_span_of(all.data + from, bytes);
    const presto_span tail = presto_span_of(all.data + from + bytes, all.bytes - from - bytes);
    ck_assert_ok(presto_buffer_append(&out, head, &err), &err);
    if (kind == DOUBLE || kind == ZERO)
        ck_assert_ok(presto_buffer_append(&out, range, &err), &err);
    if (kind == DOUBLE)
        ck_assert_ok(presto_buffer_append(&out, range, &err), &err);
    if (kind == ZERO)
        memset(out.data + from, 0, bytes);
    if (kind == SWAP) { /* the range changes places with the `other` bytes behind it */
        if (other > tail.bytes)
            other = tail.bytes;
        ck_assert_ok(presto_buffer_append(&out, presto_span_of(tail.data, other), &err), &err);
        ck_assert_ok(presto_buffer_append(&out, range, &err), &err);
        ck_assert_ok(
            presto_buffer_append(&out, presto_span_of(tail.data + other, tail.bytes - other), &err),
            &err);
    } else {
        ck_assert_ok(presto_buffer_append(&out, tail, &err), &err);
    }
    return out;
}

START_TEST(ranges_left_out_doubled_swapped_or_zeroed_cost_no_whole_record) {
    made_file file = make_file();
    size_t want[4 * RECORDS];
    presto_rng rng;
    presto__rng_init(&rng, &(presto__rng_key){.seed = presto_check_seed()});
    for (size_t round = 0; round < 1500; round++) {
        size_t from = presto_rng_below(&rng, file.bytes.bytes);
        size_t bytes = 1 + presto_rng_below(&rng, round % 3 == 0 ? 20 : 400);
        if (bytes > file.bytes.bytes - from)
            bytes = file.bytes.bytes - from;
        presto_buffer changed = change_range(&file, (change)(round % CHANGES), from, bytes,
                                             presto_rng_below(&rng, 300));
        uint8_t *copy = presto_check_copy(presto_buffer_span(&changed));
        presto_span damaged = presto_span_of(copy, changed.bytes);
        size_t count = whole_frames(&file, damaged, want);
        size_t whole_bytes = 0;
        for (size_t i = 0; i < count; i++)
            whole_bytes += frame(&file, want[i]).bytes;
        if (whole_bytes < changed.bytes)
            check_found(&file, damaged, count, "round", round);
        check_repair(&file, damaged, want, count, "round", round);
        free(copy);
        presto_buffer_done(&changed);
    }
    drop_file(&file);
}
END_TEST

START_TEST(a_large_damaged_file_is_searched_in_windows) {
    made_file file = {.dir = presto_check_temp_dir()};
    presto_rng rng;
    presto__rng_init(&rng, &(presto__rng_key){.seed = 9});
    snprintf(file.path, sizeof file.path, "%s/in.tfrecord", file.dir);
    snprintf(file.out, sizeof file.out, "%s/out.tfrecord", file.dir);
    presto_buffer payload = {0};
    for (size_t i = 0; i < 8; i++) {
        payload.bytes = 0;
        size_t bytes = 100000 + presto_rng_below(&rng, 600000);
        ck_assert_ok(presto_buffer_reserve(&payload, bytes, &err), &err);
        for (size_t k = 0; k < bytes; k++)
            payload.data[k] = (uint8_t)(presto_rng_next(&rng) & (i % 2 == 0 ? 0xff : 1));
        payload.bytes = bytes;
        file.starts[i] = file.bytes.bytes;
        ck_assert_ok(presto__frame_append(&file.bytes, presto_buffer_span(&payload), &err), &err);
    }
    for (size_t i = 8; i <= RECORDS; i++)
        file.starts[i] = file.bytes.bytes;
    for (size_t i = 0; i < 8; i++) {
        size_t want[8], count = 0;
        for (size_t k = 0; k < 8; k++)
            if (k != i)
                want[count++] = k;
        file.bytes.data[file.starts[i] + i % 12] ^= 4;
        check_repair(&file, presto_buffer_span(&file.bytes), want, count, "record", i);
        file.bytes.data[file.starts[i] + i % 12] ^= 4;
    }
    presto_buffer_done(&payload);
    drop_file(&file);
}
END_TEST

/* ---- verify beyond the framing ---- */

static uint64_t offset_of(presto_shard *shard, uint64_t record) {
    const uint64_t *offset;
    ck_assert_ok(presto__shard_offsets(shard, record, 0, &offset, &err), &err);
    return *offset;
}

/* Of a file of these bytes, the first lost_bytes are damage: repair and indexing find the record
 * behind them. */
static void check_one_behind(const char *dir, const presto_buffer *bytes, size_t lost_bytes,
                             const presto_shard_options *options) {
    char path[600], out[600];
    snprintf(path, sizeof path, "%s/in.tfrecord", dir);
    snprintf(out, sizeof out, "%s/out.tfrecord", dir);
    presto_check_write_file(path, presto_buffer_span(bytes));

    presto_repair_result repaired;
    ck_assert_ok(presto_repair_file(path, out, NULL, &repaired, &err), &err);
    ck_assert_uint_eq(repaired.records, 1);
    ck_assert_uint_eq(repaired.lost_bytes, lost_bytes);
    ck_assert_int_eq(unlink(out), 0);

    presto_shard *shard;
    uint64_t lost;
    ck_assert_ok(presto_shard_open(path, options, &shard, &err), &err);
    ck_assert_ok(presto_shard_index(shard, true, &lost, &err), &err);
    ck_assert_uint_eq(lost, 1);
    ck_assert_uint_eq(presto_shard_records(shard), 2);
    ck_assert_uint_eq(offset_of(shard, 1), lost_bytes);
    presto_shard_free(shard);
}

/* Behind a damaged range, a record at each place around the end of the search's window: both
 * searches, of repair and of indexing, find it. */
START_TEST(a_record_across_two_windows_is_found) {
    enum { WINDOW_BYTES = 256 << 10, AROUND = 24 };
    char *dir = presto_check_temp_dir();
    presto_shard_options options;
    presto_shard_options_defaults(&options);
    options.tolerate = true;
    for (size_t gap = WINDOW_BYTES - AROUND; gap < WINDOW_BYTES + AROUND; gap++) {
        presto_buffer bytes = {0};
        ck_assert_ok(presto_buffer_reserve(&bytes, gap, &err), &err);
        memset(bytes.data, 0xff, gap); /* no length */
        bytes.bytes = gap;
        ck_assert_ok(presto__frame_append(&bytes, presto_span_of_text("whole"), &err), &err);
        check_one_behind(dir, &bytes, gap, &options);
        presto_buffer_done(&bytes);
    }
    presto_check_remove_tree(dir);
    free(dir);
}
END_TEST

/* Behind damage: zeros of any number around the size of the pieces that are compared, then
 * records. The first record is empty (its length is zeros, too) or not; the second is at an odd
 * place. */
START_TEST(records_behind_zeros_are_found) {
    enum { WINDOW_BYTES = 256 << 10, PIECE_BYTES = 4096 };
    static const size_t around[] = {0, 16, PIECE_BYTES, WINDOW_BYTES, WINDOW_BYTES + PIECE_BYTES};
    char *dir = presto_check_temp_dir();
    char path[600], out[600];
    snprintf(path, sizeof path, "%s/in.tfrecord", dir);
    snprintf(out, sizeof out, "%s/out.tfrecord", dir);
    for (size_t i = 0; i < sizeof around / sizeof around[0] * 32; i++) {
        size_t zeros = around[i / 32] + i % 32;
        presto_span first = i % 2 == 0 ? presto_span_of("", 0) : presto_span_of_text("whole");
        presto_buffer bytes = {0};
        ck_assert_ok(presto_buffer_append(&bytes, presto_span_of("\1\0\xff", 3), &err), &err);
        ck_assert_ok(presto_buffer_reserve(&bytes, zeros + 40, &err), &err);
        memset(bytes.data + bytes.bytes, 0, zeros);
        bytes.bytes += zeros;
        ck_assert_ok(presto__frame_append(&bytes, first, &err), &err);
        ck_assert_ok(presto__frame_append(&bytes, presto_span_of("\0\0\0", 3), &err), &err);
        presto_check_write_file(path, presto_buffer_span(&bytes));
        presto_buffer_done(&bytes);
        presto_repair_result repaired;
        unlink(out);
        ck_assert_ok(presto_repair_file(path, out, NULL, &repaired, &err), &err);
        ck_assert_uint_eq(repaired.records, 2);
        ck_assert_uint_eq(repaired.lost_bytes, zeros + 3);
    }
    presto_check_remove_tree(dir);
    free(dir);
}
END_TEST

/* A correct header with a length near 2^64, where a record is expected and where one is
 * searched: it must not wrap around, and must not cost the record behind it. */
START_TEST(lengths_near_the_top_cost_no_record) {
    char *dir = presto_check_temp_dir();
    presto_shard_options options;
    presto_shard_options_defaults(&options);
    options.tolerate = true;
    options.max_payload_bytes = UINT64_MAX;
    for (uint64_t i = 0; i < 80; i++) {
        uint8_t junk[3 + PRESTO_FRAME_HEADER_BYTES] = {0};
        size_t before = i % 2 * 3, lost_bytes = before + PRESTO_FRAME_HEADER_BYTES;
        presto__frame_write_header(UINT64_MAX - i / 2, junk + before);
        presto_buffer bytes = {0};
        ck_assert_ok(presto_buffer_append(&bytes, presto_span_of(junk, lost_bytes), &err), &err);
        ck_assert_ok(presto__frame_append(&bytes, presto_span_of_text("whole"), &err), &err);
        check_one_behind(dir, &bytes, lost_bytes, &options);
        presto_buffer_done(&bytes);
    }
    presto_check_remove_tree(dir);
    free(dir);
}
END_TEST

/* ---- time ---- */

/* Headers that hold, each of which claims the rest of a file of `bytes` bytes, and behind each of
 * them `between`. */
static void append_claims(presto_buffer *out, size_t bytes, presto_span between) {
    uint8_t header[PRESTO_FRAME_HEADER_BYTES];
    while (out->bytes + PRESTO_FRAME_OVERHEAD_BYTES + between.bytes < bytes) {
        presto__frame_write_header(bytes - out->bytes - PRESTO_FRAME_OVERHEAD_BYTES, header);
        ck_assert_ok(presto_buffer_append(out, presto_span_of(header, sizeof header), &err), &err);
        ck_assert_ok(presto_buffer_append(out, between, &err), &err);
    }
}

/* To check all that is claimed would be 11 TB. */
START_TEST(headers_that_all_claim_the_rest_of_the_file_take_no_time_and_cost_no_record) {
    made_file file = make_file();
    presto_buffer bytes = {0};
    presto_shard *shard;
    presto_shard_options options;
    uint64_t lost;
    size_t all[RECORDS];
    const size_t claimed = (size_t)16 << 20;
    for (size_t i = 0; i < RECORDS; i++)
        all[i] = i;
    ck_assert_ok(presto_buffer_append(&bytes, presto_span_of_text("broken"), &err), &err);
    append_claims(&bytes, claimed, presto_span_of(NULL, 0));
    bytes.bytes -= 7; /* the last claims are cut */
    size_t start = bytes.bytes;
    ck_assert_ok(presto_buffer_append(&bytes, presto_buffer_span(&file.bytes), &err), &err);
    check_found(&file, presto_buffer_span(&bytes), RECORDS, "claims", 0);
    check_repair(&file, presto_buffer_span(&bytes), all, RECORDS, "claims", 0);
    presto_shard_options_defaults(&options);
    options.tolerate = true;
    ck_assert_ok(presto_shard_open(file.path, &options, &shard, &err), &err);
    ck_assert_ok(presto_shard_index(shard, true, &lost, &err), &err);
    ck_assert_uint_eq(presto_shard_records(shard), RECORDS + 1);
    ck_assert_uint_eq(offset_of(shard, 1), start);
    presto_shard_free(shard);
    presto_buffer_done(&bytes);
    drop_file(&file);
}
END_TEST

/* Each claim is where a record is expected, behind one that was found: 3 TB. */
START_TEST(claims_between_whole_records_take_no_time_and_cost_no_record) {
    made_file file = make_file();
    presto_buffer bytes = {0}, small = {0};
    ck_assert_ok(presto__frame_append(&small, presto_span_of_text("whole"), &err), &err);
    append_claims(&bytes, (size_t)14 << 20, presto_buffer_span(&small));
    size_t records = bytes.bytes / (PRESTO_FRAME_HEADER_BYTES + small.bytes);
    check_found(&file, presto_buffer_span(&bytes), records, "claims", 1);
    presto_buffer_done(&small);
    presto_buffer_done(&bytes);
    drop_file(&file);
}
END_TEST

int main(void) {
    const TTest *const tests[] = {
        every_flipped_bit_of_the_framing_is_found_and_costs_one_record,
        a_flipped_bit_in_every_payload_byte_is_found,
        every_cut_is_found_and_costs_one_record,
        ranges_left_out_doubled_swapped_or_zeroed_cost_no_whole_record,
        a_large_damaged_file_is_searched_in_windows,
        a_record_across_two_windows_is_found,
        records_behind_zeros_are_found,
        lengths_near_the_top_cost_no_record,
        headers_that_all_claim_the_rest_of_the_file_take_no_time_and_cost_no_record,
        claims_between_whole_records_take_no_time_and_cost_no_record,
    };
    /* Thousands of repaired files, each synced: in memory if possible. */
    if (access("/dev/shm", W_OK) == 0)
        setenv("TMPDIR", "/dev/shm", 0);
    return presto_check_main("repair", tests, sizeof tests / sizeof tests[0], 240);
}
