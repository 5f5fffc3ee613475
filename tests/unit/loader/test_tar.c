/* SPDX-License-Identifier: Apache-2.0 */
/* Headers of tar archives: what is read, what is refused, and with which byte. */
#include "tar_made.h"

#include "source/tar/tar_internal.h"

static presto_error err;

/* An archive in memory, of exactly its size. */
typedef struct archive {
    presto_span bytes;
    uint8_t *copy;
} archive;

static presto_status view(void *user, uint64_t offset, size_t count, presto_span *view_out,
                          presto_error *unused) {
    const archive *from = user;
    (void)unused;
    size_t at = offset < from->bytes.bytes ? (size_t)offset : from->bytes.bytes;
    size_t there = from->bytes.bytes - at;
    *view_out = presto_span_of(from->bytes.data + at, there < count ? there : count);
    return PRESTO_OK;
}

/* "name:bytes name:bytes", of files; links and folders as "name/"; then the status. */
static presto_status list(presto_span bytes, char *text, size_t room) {
    archive from = {.copy = presto_check_copy(bytes)};
    from.bytes = presto_span_of(from.copy, bytes.bytes);
    presto__tar tar = {.view = view, .user = &from};
    presto__tar_member member;
    presto_status status;
    size_t used = 0;
    text[0] = '\0';
    while ((status = presto__tar_next(&tar, &member, &err)) == PRESTO_OK) {
        ck_assert_uint_le(member.data + member.bytes, bytes.bytes);
        used += (size_t)snprintf(text + used, room - used, "%s%.*s%s%llu", used == 0 ? "" : " ",
                                 (int)member.name.bytes, (const char *)member.name.data,
                                 member.is_file ? ":" : "!", (unsigned long long)member.bytes);
        ck_assert_uint_lt(used, room);
    }
    presto__tar_done(&tar);
    free(from.copy);
    return status;
}

static void check_list(const presto_buffer *tar, const char *wanted) {
    char text[4000];
    ck_assert_status(list(presto_buffer_span(tar), text, sizeof text), PRESTO_END, &err);
    ck_assert_str_eq(text, wanted);
}

static void check_refused(const presto_buffer *tar, presto_status wanted, const char *words,
                          uint64_t offset) {
    char text[4000];
    ck_assert_status(list(presto_buffer_span(tar), text, sizeof text), wanted, &err);
    ck_assert_msg(strstr(err.message, words) != NULL, "'%s' lacks '%s'", err.message, words);
    ck_assert_uint_eq(err.offset, offset);
}

START_TEST(members_come_with_names_sizes_and_kinds) {
    presto_buffer tar = {0};
    tar_put_header(&tar, "photos/", '5', 0);
    tar_put_text(&tar, "photos/1.jpg", "hello");
    tar_put_text(&tar, "empty", "");
    tar_put_header(&tar, "link", '2', 0);
    tar_put_header(&tar, "hard", '1', 5); /* some writers keep the size, but no content follows */
    tar_put_header(&tar, "old/", '\0', 0);
    tar_put_text(&tar, "2.jpg", "x");
    tar_put_end(&tar);
    check_list(&tar, "photos/!0 photos/1.jpg:5 empty:0 link!0 hard!0 old/!0 2.jpg:1");
    presto_buffer_done(&tar);
}
END_TEST

START_TEST(names_are_joined_from_prefix_gnu_and_pax_headers) {
    presto_buffer tar = {0};
    char deep[300];
    memset(deep, 'd', sizeof deep);
    memcpy(deep + 290, "/1.jpg\0", 7);
    tar_put_text(&tar, "1.jpg", "a");
    memcpy(tar.data + 345, "some/folder", 11);
    tar_sign(tar.data);
    tar_put_extended(&tar, 'L', presto_span_of(deep, 297)); /* with its NUL */
    tar_put_text(&tar, "cut", "bc");
    tar_put_extended(&tar, 'K', presto_span_of_text("target"));
    tar_put_text(&tar, "2.jpg", "");
    tar_put_extended(&tar, 'g', presto_span_of_text("19 comment=a1b2c3d\n"));
    tar_put_extended(&tar, 'x',
                     presto_span_of_text("14 mtime=12.5\n19 path=p/\xc3\xa4\xc3\xb6.jpg\n"));
    tar_put_text(&tar, "3.jpg", "def");
    tar_put_end(&tar);
    char wanted[500];
    snprintf(wanted, sizeof wanted, "some/folder/1.jpg:1 %s:2 2.jpg:0 p/\xc3\xa4\xc3\xb6.jpg:3",
             deep);
    check_list(&tar, wanted);
    presto_buffer_done(&tar);
}
END_TEST

START_TEST(sizes_are_octal_base_256_or_of_a_pax_header) {
    presto_buffer tar = {0};
    tar_put_text(&tar, "octal", "12345");
    memcpy(tar.data + 124, "          5 ", 12);
    tar_sign(tar.data);
    size_t at = tar.bytes;
    tar_put_text(&tar, "base256", "123456");
    memcpy(tar.data + at + 124, "\x80\0\0\0\0\0\0\0\0\0\0\x06", 12);
    tar_sign(tar.data + at);
    tar_put_extended(&tar, 'x', presto_span_of_text("9 size=7\n"));
    tar_put_header(&tar, "pax", '0', 0);
    tar_put_padded(&tar, presto_span_of_text("1234567"));
    tar_put_end(&tar);
    check_list(&tar, "octal:5 base256:6 pax:7");
    presto_buffer_done(&tar);
}
END_TEST

START_TEST(sums_of_signed_bytes_hold_as_well) {
    presto_buffer tar = {0};
    tar_put_text(&tar, "\xe4.jpg", "a");
    int sum = 0;
    memset(tar.data + 148, ' ', 8);
    for (size_t i = 0; i < 512; i++)
        sum += (int8_t)tar.data[i];
    snprintf((char *)tar.data + 148, 8, "%06o", (unsigned)sum);
    tar_put_end(&tar);
    check_list(&tar, "\xe4.jpg:1");
    presto_buffer_done(&tar);
}
END_TEST

/* An archive whose second header the test spoils, at block 2. */
static presto_buffer two_members(void) {
    presto_buffer tar = {0};
    tar_put_text(&tar, "1.jpg", "a");
    tar_put_text(&tar, "2.jpg", "b");
    return tar;
}

START_TEST(hostile_headers_are_refused_with_their_byte) {
    static const struct {
        size_t at;
        const char *bytes;
        size_t count;
        presto_status status;
        const char *words;
        uint64_t offset;
    } cases[] = {
        {124, "77777777777", 12, PRESTO_ERR_TRUNCATED, "within the member '2.jpg' of 8589934591",
         1536},
        {124, "\x80\0\0\0\x7f\xff\xff\xff\xff\xff\xff\xff", 12, PRESTO_ERR_TRUNCATED,
         "within the member", 1536},
        {124, "\x80\0\0\0\xff\xff\xff\xff\xff\xff\xff\xff", 12, PRESTO_ERR_CORRUPT, "no valid size",
         1148},
        {124, "\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", 12, PRESTO_ERR_CORRUPT,
         "no valid size", 1148},
        {124, "12x45", 6, PRESTO_ERR_CORRUPT, "no valid size", 1148},
        {124, "\0\0\0\0\0\0\0\0\0\0\0", 12, PRESTO_ERR_CORRUPT, "no valid size", 1148},
        {156, "S", 1, PRESTO_ERR_UNSUPPORTED, "sparse file", 1024},
        {156, "M", 1, PRESTO_ERR_UNSUPPORTED, "another volume", 1024},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        presto_buffer tar = two_members();
        memcpy(tar.data + 1024 + cases[i].at, cases[i].bytes, cases[i].count);
        tar_sign(tar.data + 1024);
        tar_put_end(&tar);
        check_refused(&tar, cases[i].status, cases[i].words, cases[i].offset);
        presto_buffer_done(&tar);
    }
}
END_TEST

START_TEST(hostile_extended_headers_are_refused_with_their_byte) {
    static const struct {
        const char *records;
        char type;
        presto_status status;
        const char *words;
        uint64_t offset;
    } cases[] = {
        {"x", 'x', PRESTO_ERR_CORRUPT, "no valid records", 512},
        {"99 path=a\n", 'x', PRESTO_ERR_CORRUPT, "no valid records", 512},
        {"2 \n", 'x', PRESTO_ERR_CORRUPT, "no valid records", 512},
        {"0 path=a\n", 'x', PRESTO_ERR_CORRUPT, "no valid records", 512},
        {"10 path=abc", 'x', PRESTO_ERR_CORRUPT, "no valid records", 512},
        {"99999999999999999999 path=a\n", 'x', PRESTO_ERR_CORRUPT, "no valid records", 512},
        {"7 path\n", 'x', PRESTO_ERR_CORRUPT, "no valid records", 512},
        {"10 size=-1\n", 'x', PRESTO_ERR_CORRUPT, "no valid records", 512},
        {"11 size=-1\n", 'x', PRESTO_ERR_CORRUPT, "no valid size", 512},
        {"29 size=99999999999999999999\n", 'x', PRESTO_ERR_CORRUPT, "no valid size", 512},
        {"22 GNU.sparse.major=1\n", 'x', PRESTO_ERR_UNSUPPORTED, "sparse file", 0},
        {"9 size=7\n", 'g', PRESTO_ERR_UNSUPPORTED, "global header", 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        presto_buffer tar = {0};
        tar_put_extended(&tar, cases[i].type, presto_span_of_text(cases[i].records));
        tar_put_text(&tar, "1.jpg", "a");
        tar_put_end(&tar);
        check_refused(&tar, cases[i].status, cases[i].words, cases[i].offset);
        presto_buffer_done(&tar);
    }
}
END_TEST

START_TEST(extended_headers_are_limited_in_size_and_number) {
    presto_buffer tar = {0};
    uint8_t *name = malloc((64 << 10) + 1);
    memset(name, 'n', (64 << 10) + 1);
    tar_put_extended(&tar, 'L', presto_span_of(name, 64 << 10));
    tar_put_text(&tar, "1.jpg", "a");
    tar_put_end(&tar);
    archive from = {.bytes = presto_buffer_span(&tar)};
    presto__tar walk = {.view = view, .user = &from};
    presto__tar_member member;
    ck_assert_ok(presto__tar_next(&walk, &member, &err), &err);
    ck_assert_uint_eq(member.name.bytes, 64 << 10);
    presto__tar_done(&walk);
    tar.bytes = 0;
    tar_put_extended(&tar, 'L', presto_span_of(name, (64 << 10) + 1));
    check_refused(&tar, PRESTO_ERR_LIMIT, "65537 bytes", 0);
    free(name);
    tar.bytes = 0;
    tar_put_header(&tar, "x", 'x', (uint64_t)1 << 30);
    check_refused(&tar, PRESTO_ERR_LIMIT, "1073741824 bytes", 0);
    tar.bytes = 0;
    for (int i = 0; i < 16; i++)
        tar_put_extended(&tar, 'L', presto_span_of_text("name"));
    size_t bytes = tar.bytes;
    tar_put_text(&tar, "1.jpg", "a");
    tar_put_end(&tar);
    check_list(&tar, "name:1");
    tar.bytes = bytes;
    tar_put_extended(&tar, 'L', presto_span_of_text("name"));
    check_refused(&tar, PRESTO_ERR_CORRUPT, "more than 16 extended headers", 0);
    tar.bytes = bytes;
    tar_put_end(&tar);
    check_refused(&tar, PRESTO_ERR_CORRUPT, "no member behind", bytes);
    presto_buffer_done(&tar);
}
END_TEST

START_TEST(an_archive_that_is_cut_anywhere_is_told) {
    presto_buffer tar = {0};
    char text[4000];
    tar_put_extended(&tar, 'L', presto_span_of_text("some/long/name/1.jpg"));
    tar_put_text(&tar, "1.jpg", "content");
    size_t first = tar.bytes;
    tar_put_extended(&tar, 'x', presto_span_of_text("9 size=3\n"));
    tar_put_text(&tar, "2.jpg", "abc");
    size_t second = tar.bytes;
    tar_put_end(&tar);
    for (size_t bytes = 0; bytes < tar.bytes; bytes++) {
        /* Behind the content of a member, its padding may be cut. */
        bool is_behind_first = bytes >= first - 512 + strlen("content") && bytes <= first;
        bool is_behind_second = bytes >= second - 512 + strlen("abc");
        ck_assert_status(list(presto_span_of(tar.data, bytes), text, sizeof text),
                         is_behind_first || is_behind_second ? PRESTO_END : PRESTO_ERR_TRUNCATED,
                         &err);
        if (!is_behind_first && !is_behind_second)
            ck_assert_uint_le(err.offset, bytes + 511); /* so may that of extended headers */
    }
    presto_buffer_done(&tar);
}
END_TEST

START_TEST(each_flipped_bit_of_a_header_breaks_its_sum) {
    for (size_t bit = 0; bit < (size_t)512 * 8; bit++) {
        presto_buffer tar = two_members();
        tar_put_end(&tar);
        tar.data[1024 + bit / 8] ^= (uint8_t)(1 << bit % 8);
        size_t byte = bit / 8;
        char text[4000];
        presto_status status = list(presto_buffer_span(&tar), text, sizeof text);
        /* The NUL and the space behind the sum's digits do not count. */
        if (byte < 148 || byte >= 154)
            ck_assert_msg(status == PRESTO_ERR_CORRUPT || (byte >= 154 && byte < 156),
                          "bit %zu: %s", bit, text);
        if (status < 0)
            ck_assert_uint_eq(err.offset, 1024);
        presto_buffer_done(&tar);
    }
}
END_TEST

START_TEST(a_walk_goes_on_behind_damage_and_behind_zeros) {
    presto_buffer tar = two_members();
    tar_put_text(&tar, "3.jpg", "c");
    tar.data[1024] ^= 1;
    tar_put_end(&tar);
    tar_put_text(&tar, "4.jpg", "d");
    tar_put_end(&tar);
    archive from = {.bytes = presto_buffer_span(&tar)};
    presto__tar walk = {.view = view, .user = &from};
    presto__tar_member member;
    ck_assert_ok(presto__tar_next(&walk, &member, &err), &err);
    ck_assert_status(presto__tar_next(&walk, &member, &err), PRESTO_ERR_CORRUPT, &err);
    ck_assert_status(presto__tar_next(&walk, &member, &err), PRESTO_ERR_CORRUPT, &err);
    ck_assert_ok(presto__tar_resume(&walk, &err), &err);
    ck_assert_ok(presto__tar_next(&walk, &member, &err), &err);
    ck_assert(presto_span_is(member.name, "3.jpg"));
    ck_assert_status(presto__tar_next(&walk, &member, &err), PRESTO_END, &err);
    ck_assert_ok(presto__tar_pass_zeros(&walk, &err), &err);
    ck_assert_ok(presto__tar_next(&walk, &member, &err), &err);
    ck_assert(presto_span_is(member.name, "4.jpg"));
    ck_assert_status(presto__tar_next(&walk, &member, &err), PRESTO_END, &err);
    ck_assert_status(presto__tar_pass_zeros(&walk, &err), PRESTO_END, &err);
    ck_assert_status(presto__tar_resume(&walk, &err), PRESTO_END, &err);
    presto__tar_done(&walk);
    presto_buffer_done(&tar);
}
END_TEST

START_TEST(keys_end_at_the_first_dot_of_the_base_name) {
    static const struct {
        const char *name, *key, *extension; /* key NULL: none */
    } cases[] = {
        {"000.jpg", "000", "jpg"},
        {"a/b/000.seg.png", "a/b/000", "seg.png"},
        {"./x.y/000.cls", "./x.y/000", "cls"},
        {"x.y/000", NULL, NULL},
        {"x/.hidden.jpg", NULL, NULL},
        {"x/._000.jpg", NULL, NULL},
        {"000", NULL, NULL},
        {"", NULL, NULL},
        {"x/", NULL, NULL},
        {"000.", "000", ""},
        {"__meta.x__", NULL, NULL},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        presto_span key, extension;
        bool has = presto__tar_split(presto_span_of_text(cases[i].name), &key, &extension);
        ck_assert_msg(has == (cases[i].key != NULL), "%s", cases[i].name);
        if (has) {
            ck_assert(presto_span_is(key, cases[i].key));
            ck_assert(presto_span_is(extension, cases[i].extension));
        }
    }
}
END_TEST

int main(void) {
    const TTest *const tests[] = {
        members_come_with_names_sizes_and_kinds,
        names_are_joined_from_prefix_gnu_and_pax_headers,
        sizes_are_octal_base_256_or_of_a_pax_header,
        sums_of_signed_bytes_hold_as_well,
        hostile_headers_are_refused_with_their_byte,
        hostile_extended_headers_are_refused_with_their_byte,
        extended_headers_are_limited_in_size_and_number,
        an_archive_that_is_cut_anywhere_is_told,
        each_flipped_bit_of_a_header_breaks_its_sum,
        a_walk_goes_on_behind_damage_and_behind_zeros,
        keys_end_at_the_first_dot_of_the_base_name,
    };
    return presto_check_main("tar", tests, sizeof tests / sizeof tests[0], 60);
}
