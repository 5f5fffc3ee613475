/* SPDX-License-Identifier: Apache-2.0 */
/* The raw source `tar` on archives that are damaged, appended, changed, or none. */
#include <fcntl.h>
#include <unistd.h>

#include "skips_check.h"
#include "tar_source_check.h"

/* ---- damage ---- */

/* The archive b.tar beside two good ones: so many of its samples come, one fails. */
static void fails_once(uint64_t good, presto_status status, const char *words, uint64_t offset) {
    skips noted;
    ck_assert_ok(open_source(""), &err);
    ck_assert_uint_eq(stream_with_skips(source, plan, &noted), SAMPLES - OF_EACH + good);
    ck_assert_uint_eq(noted.count, 1);
    ck_assert_status(noted.last.status, status, &noted.last);
    ck_assert_str_eq(noted.last.file, path_in(dir, "b.tar"));
    ck_assert_msg(strstr(noted.last.message, words) != NULL, "'%s' lacks '%s'", noted.last.message,
                  words);
    ck_assert_uint_eq(noted.last.offset, offset);
    close_source();
}

static presto_buffer ten_samples(void) {
    presto_buffer tar = {0};
    for (uint64_t i = 0; i < OF_EACH; i++)
        put_sample(&tar, i);
    return tar;
}

START_TEST(files_that_are_no_archives_fail_alone) {
    set_up();
    make_archives(false);
    presto_check_write_file(path_in(dir, "b.tar"), presto_span_of_text(""));
    fails_once(0, PRESTO_ERR_TRUNCATED, "the tar ends before this byte", 0);
    char text[2000];
    memset(text, 'x', sizeof text);
    presto_check_write_file(path_in(dir, "b.tar"), presto_span_of(text, sizeof text));
    fails_once(0, PRESTO_ERR_CORRUPT, "no tar: the checksum", 0);
    presto_check_write_file(path_in(dir, "b.tar"), presto_span_of("\x28\xb5\x2f\xfd....", 8));
    fails_once(0, PRESTO_ERR_UNSUPPORTED, "compressed with zstd", 0);
    presto_check_write_file(path_in(dir, "b.tar"), presto_span_of("\x1f\x8b\x08....", 7));
    fails_once(0, PRESTO_ERR_CORRUPT, "gzip data", 0);
    tear_down();
}
END_TEST

START_TEST(damage_costs_the_sample_at_hand_and_names_its_byte) {
    presto_buffer tar = ten_samples();
    size_t third = 0;
    set_up();
    make_archives(false);
    /* The header of the main member of sample 3. */
    for (size_t at = 0; at + 512 <= tar.bytes && third == 0; at += 512)
        if (strcmp((const char *)tar.data + at, "train/00003.Bin") == 0)
            third = at;
    tar_put_end(&tar);
    tar.data[third + 130] ^= 1;
    write_tar("b.tar", &tar);
    /* Its other members, behind the damage, have no main one and are left out. */
    fails_once(OF_EACH - 1, PRESTO_ERR_CORRUPT, "checksum", third);
    tear_down();
}
END_TEST

/* All samples of b.tar come, and a note names it. */
static void is_whole_without_end(const char *name) {
    skips noted;
    size_t notes;
    ck_assert_ok(open_source(""), &err);
    ck_assert_uint_eq(stream_with_skips(source, plan, &noted), SAMPLES);
    ck_assert_uint_eq(noted.count, 0);
    const char *const *texts = presto_source_notes(source, &notes);
    ck_assert_uint_eq(notes, 1);
    ck_assert_ptr_nonnull(strstr(texts[0], "1 tar ends without the blocks of zeros"));
    ck_assert_ptr_nonnull(strstr(texts[0], name));
    close_source();
}

/* As GNU tar and Python's tarfile read it. */
START_TEST(an_archive_without_end_keeps_its_last_sample) {
    presto_buffer tar = ten_samples();
    set_up();
    make_archives(false);
    for (size_t more = 0; more < 512; more += 100) {
        presto_check_write_file(path_in(dir, "b.tar"), presto_buffer_span(&tar));
        ck_assert_int_eq(truncate(path_in(dir, "b.tar"), (off_t)(tar.bytes + more)), 0);
        is_whole_without_end("b.tar");
    }
    /* The padding of the last member may be cut, too. */
    presto_check_write_file(path_in(dir, "b.tar"), presto_span_of(tar.data, tar.bytes - 300));
    is_whole_without_end("b.tar");
    presto_check_write_file(path_in(dir, "b.tar"), presto_buffer_span(&tar));
    compress("b.tar");
    is_whole_without_end("b.tar.gz");
    presto_buffer_done(&tar);
    tear_down();
}
END_TEST

START_TEST(an_archive_that_is_cut_within_a_member_is_told) {
    presto_buffer tar = ten_samples();
    set_up();
    make_archives(false);
    size_t bytes = tar.bytes;
    presto_check_write_file(path_in(dir, "b.tar"), presto_span_of(tar.data, bytes - 600));
    fails_once(OF_EACH - 1, PRESTO_ERR_TRUNCATED, "within a header", bytes - 600);
    /* The sample in front of the one that is cut is whole. */
    tar_put_header(&tar, "train/00010.cls", '0', 2);
    presto_check_write_file(path_in(dir, "b.tar"), presto_buffer_span(&tar));
    fails_once(OF_EACH, PRESTO_ERR_TRUNCATED, "within the member 'train/00010.cls'", bytes + 512);
    presto_check_write_file(path_in(dir, "b.tar"), presto_span_of(tar.data, bytes + 200));
    fails_once(OF_EACH, PRESTO_ERR_TRUNCATED, "within a header", bytes + 200);
    tar.bytes = bytes;
    tar_put_extended(&tar, 'x', presto_span_of_text("28 path=train/00010.other.c\n"));
    presto_check_write_file(path_in(dir, "b.tar"), presto_buffer_span(&tar));
    fails_once(OF_EACH, PRESTO_ERR_TRUNCATED, "no member behind an extended header", bytes + 1024);
    presto_buffer_done(&tar);
    tear_down();
}
END_TEST

/* Reading a terabyte takes minutes, looking for the end of a hole does not. */
START_TEST(a_hole_behind_damage_is_not_read) {
    presto_buffer tar = ten_samples();
    off_t hole = (off_t)1 << 40;
    set_up();
    make_archives(false);
    size_t bytes = tar.bytes;
    tar_put_header(&tar, "train/00010.Bin", '0', 1);
    tar.data[bytes] ^= 1;
    presto_check_write_file(path_in(dir, "b.tar"), presto_buffer_span(&tar));
    if (truncate(path_in(dir, "b.tar"), hole) == 0) {
        fails_once(OF_EACH - 1, PRESTO_ERR_CORRUPT, "checksum", bytes);
        /* What stands behind the hole is found. */
        presto_buffer more = {0};
        put_sample(&more, 10);
        tar_put_end(&more);
        int fd = open(path_in(dir, "b.tar"), O_WRONLY);
        ck_assert_int_ge(fd, 0);
        ck_assert_int_eq(pwrite(fd, more.data, more.bytes, hole - 1024), (ssize_t)more.bytes);
        close(fd);
        presto_buffer_done(&more);
        fails_once(OF_EACH, PRESTO_ERR_CORRUPT, "checksum", bytes);
    }
    presto_buffer_done(&tar);
    tear_down();
}
END_TEST

START_TEST(archives_that_were_appended_are_read_to_their_end) {
    presto_buffer tar = {0};
    set_up();
    for (uint64_t i = 0; i < SAMPLES; i++) {
        put_sample(&tar, i);
        if (i % OF_EACH == OF_EACH - 1)
            tar_put_end(&tar);
    }
    write_tar("a.tar", &tar);
    ck_assert_ok(open_source(""), &err);
    unsigned seen[SAMPLES] = {0};
    presto_loader_options options;
    presto_loader_options_defaults(&options);
    count_stream(&options, seen);
    for (size_t i = 0; i < SAMPLES; i++)
        ck_assert_uint_eq(seen[i], 1);
    tear_down();
}
END_TEST

/* A member of the fourth sample has this content; the message has the words. */
static void bad_member(const char *extension, presto_span content, const char *words) {
    presto_buffer tar = {0};
    char name[64];
    skips noted;
    for (uint64_t i = 0; i < 8; i++) {
        snprintf(name, sizeof name, "%d.bin", (int)i);
        tar_put_text(&tar, name, "x");
        snprintf(name, sizeof name, "%d.cls", (int)i);
        tar_put_member(&tar, name,
                       i == 4 && strcmp(extension, "cls") == 0 ? content
                                                               : presto_span_of_text("1"));
        snprintf(name, sizeof name, "%d.npy", (int)i);
        if (i == 4 && strcmp(extension, "npy") == 0)
            tar_put_member(&tar, name, content);
        else
            put_array(&tar, name, (const float[]){1}, 1);
        if (i == 4 && strcmp(extension, "twice") == 0)
            tar_put_text(&tar, "4.cls", "1");
    }
    tar_put_end(&tar);
    write_tar("b.tar", &tar);
    ck_assert_ok(open_source(""), &err);
    uint64_t good = stream_with_skips(source, plan, &noted);
    ck_assert_msg(good == 7, "%s: %d", words, (int)good);
    ck_assert_uint_eq(noted.count, 1);
    ck_assert_uint_eq(noted.last.record, 4);
    ck_assert_msg(strstr(noted.last.message, words) != NULL, "'%s' lacks '%s'", noted.last.message,
                  words);
    ck_assert_uint_ne(noted.last.offset, PRESTO_NO_OFFSET);
    close_source();
}

START_TEST(members_that_are_not_what_they_should_be_fail_alone) {
    set_up();
    bad_member("cls", presto_span_of_text(""), "member .cls: no whole number");
    bad_member("cls", presto_span_of_text("1.5"), "no whole number");
    bad_member("cls", presto_span_of_text("-"), "no whole number");
    bad_member("cls", presto_span_of_text("9223372036854775808"), "no whole number");
    bad_member("cls", presto_span_of_text("1 2"), "no whole number");
    bad_member("npy", presto_span_of_text("x"),
               "member .npy: a text file, but a .npy file is needed");
    bad_member(
        "npy",
        presto_span_of(
            "\x93NUMPY\1\0\76\0{'descr': '|O', 'fortran_order': False, 'shape': (), }        ", 72),
        "Python objects");
    bad_member("twice", presto_span_of_text(""), "two members .cls");
    tear_down();
}
END_TEST

START_TEST(samples_over_max_bytes_are_refused_without_memory) {
    presto_buffer tar = {0};
    set_up();
    tar_put_text(&tar, "1.bin", "x");
    tar_put_header(&tar, "2.bin", '0', (uint64_t)3 << 30);
    write_tar("a.tar", &tar);
    ck_assert_int_eq(truncate(path_in(dir, "a.tar"), ((off_t)3 << 30) + 1536 + 1024), 0);
    ck_assert_ok(open_source(""), &err);
    skips noted;
    ck_assert_uint_eq(presto_source_count(source), 2);
    ck_assert_uint_eq(stream_with_skips(source, plan, &noted), 1);
    ck_assert_status(noted.last.status, PRESTO_ERR_LIMIT, &noted.last);
    ck_assert_ptr_nonnull(strstr(noted.last.message, "max-bytes (536870912)"));
    tear_down();
}
END_TEST

START_TEST(an_archive_that_changes_after_the_source_was_opened_is_told) {
    skips noted;
    set_up();
    make_archives(false);
    ck_assert_ok(open_source(""), &err);
    ck_assert_int_eq(truncate(path_in(dir, "b.tar"), 5120), 0);
    ck_assert_uint_eq(stream_with_skips(source, plan, &noted), SAMPLES - OF_EACH);
    ck_assert_uint_eq(noted.count, OF_EACH);
    ck_assert_ptr_nonnull(strstr(noted.last.message, "has changed since it was listed"));
    tear_down();
}
END_TEST

START_TEST(each_byte_of_an_archive_may_be_wrong_or_the_last) {
    presto_buffer tar = {0};
    set_up();
    tar_put_extended(&tar, 'x', presto_span_of_text("17 path=5/1.bin\n"));
    put_sample(&tar, 1);
    tar_put_extended(&tar, 'L', presto_span_of_text("train/00002.bin"));
    put_sample(&tar, 2);
    tar_put_end(&tar);
    for (size_t i = 0; i < 2 * tar.bytes; i += i % 512 < 300 || i > tar.bytes ? 7 : 111) {
        bool cuts = i >= tar.bytes;
        skips noted;
        size_t at = i % tar.bytes;
        tar.data[at] ^= cuts ? 0 : 0xff;
        presto_check_write_file(path_in(dir, "a.tar"),
                                presto_span_of(tar.data, cuts ? at : tar.bytes));
        tar.data[at] ^= cuts ? 0 : 0xff;
        if (open_source("") >= 0)
            (void)stream_with_skips(source, plan, &noted);
        close_source();
    }
    presto_buffer_done(&tar);
    tear_down();
}
END_TEST

int main(void) {
    const TTest *const tests[] = {
        files_that_are_no_archives_fail_alone,
        damage_costs_the_sample_at_hand_and_names_its_byte,
        an_archive_without_end_keeps_its_last_sample,
        an_archive_that_is_cut_within_a_member_is_told,
        a_hole_behind_damage_is_not_read,
        archives_that_were_appended_are_read_to_their_end,
        members_that_are_not_what_they_should_be_fail_alone,
        samples_over_max_bytes_are_refused_without_memory,
        an_archive_that_changes_after_the_source_was_opened_is_told,
        each_byte_of_an_archive_may_be_wrong_or_the_last,
    };
    return presto_check_main("source_tar_damage", tests, sizeof tests / sizeof tests[0], 120);
}
