/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes cut into records: what ends one, and the same records however the bytes come. */
#include "../../../base/rng_internal.h"
#include "presto_check.h"

#include <stdio.h>

#include <presto/rng.h>

#include "source/lines/source_lines_internal.h"

static presto_rng rng;

static uint64_t pick(uint64_t least, uint64_t most) {
    return least + presto_rng_below(&rng, most - least + 1);
}

/* All records as "[start+bytes@line]", of bytes that come in pieces of up to `most`. */
static void cut(presto__cut_form form, presto_span bytes, size_t most, char *list, size_t room) {
    const presto__cut_rules rules = {.form = form, .separator = ',', .most_blank = UINT64_MAX};
    size_t at = 0, known = 0, used = 0;
    uint64_t line = 0;
    list[0] = '\0';
    for (;;) {
        presto__cut_search search = {0};
        presto__cut_record record;
        presto_status status;
        for (;;) {
            bool is_all = known == bytes.bytes;
            presto_span view = presto_span_of(bytes.data + at, known - at);
            status = presto__cut_next(&rules, view, is_all, &search, &record);
            if (status != PRESTO_DROP)
                break;
            ck_assert(!is_all);
            size_t more = (size_t)pick(1, most);
            known = bytes.bytes - known < more ? bytes.bytes : known + more;
        }
        if (status == PRESTO_END)
            return;
        used += (size_t)snprintf(list + used, room - used, "[%zu+%zu@%ju%s]", at + record.start,
                                 record.bytes, (uintmax_t)(line + record.lines_before),
                                 record.is_open ? " open" : "");
        ck_assert_uint_gt(record.next, 0);
        ck_assert_uint_lt(used, room);
        line += record.lines;
        at += record.next;
    }
}

static void check(presto__cut_form form, const char *text, const char *wanted) {
    char list[400];
    for (size_t most = 1; most < 9; most++) {
        cut(form, presto_span_of_text(text), most, list, sizeof list);
        ck_assert_msg(strcmp(list, wanted) == 0, "'%s' is cut as %s, not %s", text, list, wanted);
    }
}

START_TEST(lines_end_with_a_feed) {
    const presto__cut_form form = PRESTO__CUT_LINES;
    check(form, "", "");
    check(form, "\n", "[0+0@0]");
    check(form, "a", "[0+1@0]");
    check(form, "a\n", "[0+1@0]");
    check(form, "a\nb", "[0+1@0][2+1@1]");
    check(form, "a\n\nb\n", "[0+1@0][2+0@1][3+1@2]");
    check(form, "a\r\nb\r\n", "[0+1@0][3+1@1]");
    check(form, "a\rb\n", "[0+3@0]");
    check(form, "a\r", "[0+2@0]");
    check(form, " \n", "[0+1@0]");
    check(form, "\"a\n\"\n", "[0+2@0][3+1@1]");
}
END_TEST

START_TEST(lines_of_white_space_are_no_json) {
    const presto__cut_form form = PRESTO__CUT_JSON;
    check(form, "", "");
    check(form, "\n\r\n \t\r\n", "");
    check(form, "{}\n\n{}", "[0+2@0][4+2@2]");
    check(form, " \n{}\r\n  ", "[2+2@1]");
    check(form, "\n {}\n", "[1+3@1]");
}
END_TEST

START_TEST(rows_may_hold_line_ends_in_quotes) {
    const presto__cut_form form = PRESTO__CUT_CSV;
    check(form, "", "");
    check(form, "\n\r\r\n", "");
    check(form, "a,b\nc,d\n", "[0+3@0][4+3@1]");
    check(form, "a,b\rc,d\r\ne,f", "[0+3@0][4+3@1][9+3@2]");
    check(form, "a,\"b\nc\"\nd,e\n", "[0+7@0][8+3@2]");
    check(form, "\"\"\"\n\"\n", "[0+5@0]");
    check(form, "\"a\"\"\n\",b\nc\n", "[0+8@0][9+1@2]");
    check(form, "a\"b\nc\"\n", "[0+3@0][4+2@1]");   /* no quote begins in a field */
    check(form, "\"a\" \"\nb\n", "[0+5@0][6+1@1]"); /* nor behind one that was closed */
    check(form, "a, \"b\nc\n", "[0+5@0][6+1@1]");   /* nor behind a space */
    check(form, "a,\"b\nc\n", "[0+7@0 open]");
    check(form, "a\n\nb\n", "[0+1@0][3+1@2]");
}
END_TEST

START_TEST(records_are_the_same_however_their_bytes_come) {
    static const char letters[] = "ab,,\"\"\"\n\n\r \t{}";
    presto__rng_key key = {.seed = presto_check_seed()};
    presto__rng_init(&rng, &key);
    for (size_t round = 0; round < presto_check_rounds(3000); round++) {
        uint8_t bytes[200];
        static char whole[8000], pieces[8000];
        size_t count = (size_t)pick(0, sizeof bytes);
        presto__cut_form form = (presto__cut_form)pick(0, 2);
        for (size_t i = 0; i < count; i++)
            bytes[i] = pick(0, 2) == 0 ? (uint8_t)letters[pick(0, sizeof letters - 2)] : 'x';
        cut(form, presto_span_of(bytes, count), sizeof bytes, whole, sizeof whole);
        cut(form, presto_span_of(bytes, count), (size_t)pick(1, 20), pieces, sizeof pieces);
        ck_assert_msg(strcmp(whole, pieces) == 0, "%.*s: %s or %s", (int)count, (const char *)bytes,
                      whole, pieces);
    }
}
END_TEST

START_TEST(a_record_that_is_not_kept_ends_where_it_would) {
    static const char letters[] = "ab,,\"\"\n\r ";
    presto__rng_key key = {.seed = presto_check_seed()};
    presto__rng_init(&rng, &key);
    for (size_t round = 0; round < presto_check_rounds(3000); round++) {
        uint8_t bytes[200];
        size_t count = (size_t)pick(1, sizeof bytes);
        const presto__cut_rules rules = {
            .form = (presto__cut_form)pick(0, 2), .separator = ',', .most_blank = UINT64_MAX};
        for (size_t i = 0; i < count; i++)
            bytes[i] = (uint8_t)letters[pick(0, pick(0, 1) == 0 ? 1 : sizeof letters - 2)];
        bytes[0] = 'a';
        presto__cut_search search = {0};
        presto__cut_record wanted, record;
        ck_assert_int_eq(
            presto__cut_next(&rules, presto_span_of(bytes, count), true, &search, &wanted),
            PRESTO_OK);
        /* The first bytes are taken away whenever that may be. */
        size_t from = 0, known = 1;
        search = (presto__cut_search){0};
        while (presto__cut_next(&rules, presto_span_of(bytes + from, known - from), known == count,
                                &search, &record) == PRESTO_DROP) {
            size_t spare = presto__cut_spare(&search);
            presto__cut_forget(&search, spare);
            from += spare;
            ck_assert_uint_lt(known, count);
            known++;
        }
        ck_assert_uint_eq(from + record.next, wanted.next);
        ck_assert_uint_eq(record.lines, wanted.lines);
        ck_assert_int_eq(record.is_open, wanted.is_open);
    }
}
END_TEST

START_TEST(marks_are_found_wherever_they_stand) {
    uint8_t bytes[300];
    for (size_t count = 0; count < 140; count++)
        for (size_t at = 0; at <= count; at++) {
            static const uint8_t marks[] = {'"', '\n', '\r'};
            /* Neighbours of the marks, and bytes with their high bit set, are none. */
            for (size_t i = 0; i < sizeof bytes; i++)
                bytes[i] = (uint8_t)(i % 5 == 0   ? 0x8a
                                     : i % 5 == 1 ? 0x23
                                     : i % 5 == 2 ? 0x21
                                     : i % 5 == 3 ? 0x0b
                                                  : 0x0c);
            bytes[7 + at] = marks[at % 3];
            bytes[7 + count] = '\n';
            ck_assert_uint_eq(presto__cut_find_mark(bytes + 7, count), at);
            ck_assert_uint_eq(presto__cut_find_mark_plainly(bytes + 7, count), at);
        }
}
END_TEST

int main(void) {
    const TTest *const tests[] = {
        lines_end_with_a_feed,
        lines_of_white_space_are_no_json,
        rows_may_hold_line_ends_in_quotes,
        records_are_the_same_however_their_bytes_come,
        a_record_that_is_not_kept_ends_where_it_would,
        marks_are_found_wherever_they_stand,
    };
    return presto_check_main("cut", tests, sizeof tests / sizeof tests[0], 60);
}
