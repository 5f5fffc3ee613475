/* SPDX-License-Identifier: Apache-2.0 */
/* Files are replaced as a whole, whatever exists under their names. */
#define _DEFAULT_SOURCE /* symlink */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "file_internal.h"
#include "presto_check.h"

static char *dir;
static char path[512], other[512];
static presto_error err;

static void set_up(void) {
    dir = presto_check_temp_dir();
    snprintf(path, sizeof path, "%s/file", dir);
    snprintf(other, sizeof other, "%s/other", dir);
}

static void tear_down(void) {
    presto_check_remove_tree(dir);
    free(dir);
}

static void check_content(const char *name, const char *text) {
    size_t bytes;
    uint8_t *content = presto_check_read_file(name, &bytes);
    ck_assert(presto_span_is(presto_span_of(content, bytes), text));
    free(content);
}

static size_t count_entries(void) {
    size_t count = 0;
    DIR *folder = opendir(dir);
    ck_assert_ptr_nonnull(folder);
    while (readdir(folder) != NULL)
        count++;
    closedir(folder);
    return count - 2;
}

static void replace(const char *text) {
    const presto_span pieces[] = {presto_span_of_text(text), presto_span_of_text("!")};
    ck_assert_ok(presto_file_replace(path, pieces, 2, true, &err), &err);
}

START_TEST(a_file_takes_the_place_of_an_older_one_and_leaves_nothing_beside) {
    set_up();
    replace("old and long");
    replace("new");
    check_content(path, "new!");
    ck_assert_uint_eq(count_entries(), 1);
    ck_assert_int_eq(mkdir(other, 0700), 0);
    const presto_span text = presto_span_of_text("x");
    ck_assert_status(presto_file_replace(other, &text, 1, false, &err), PRESTO_ERR_IO, &err);
    ck_assert_str_eq(err.file, other);
    ck_assert_uint_eq(count_entries(), 2);
    tear_down();
}
END_TEST

START_TEST(a_link_in_the_place_of_a_file_is_replaced_and_not_followed) {
    set_up();
    presto_check_write_file(other, presto_span_of_text("precious"));
    ck_assert_int_eq(symlink(other, path), 0);
    replace("new");
    check_content(path, "new!");
    check_content(other, "precious");
    tear_down();
}
END_TEST

START_TEST(the_mode_of_a_new_file_is_what_umask_leaves) {
    set_up();
    umask(027);
    replace("new");
    struct stat info;
    ck_assert_int_eq(stat(path, &info), 0);
    ck_assert_int_eq(info.st_mode & 0777, 0640);
    tear_down();
}
END_TEST

START_TEST(temporary_names_are_of_their_file_and_never_the_same) {
    set_up();
    presto__partial partials[2];
    for (int i = 0; i < 2; i++) {
        ck_assert_ok(presto__partial_open(path, &partials[i], &err), &err);
        close(partials[i].fd);
        ck_assert_uint_eq(presto__partial_stem(strrchr(partials[i].path, '/') + 1), strlen("file"));
    }
    ck_assert_str_ne(partials[0].path, partials[1].path);
    presto__partial_done(&partials[0]);
    presto__partial_done(&partials[1]);
    static const char *const others[] = {
        "",
        ".",
        ".partial",
        ".file.partial",
        "file.0123456789abcdef.partial",
        ".file.0123456789abcdeg.partial",
        ".file.0123456789abcdef.partial2",
        "..0123456789abcdef.partial",
    };
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
        ck_assert_uint_eq(presto__partial_stem(others[i]), 0);
    tear_down();
}
END_TEST

START_TEST(what_killed_runs_have_left_is_removed_and_what_live_ones_write_is_not) {
    set_up();
    presto__partial live, left;
    char *of_another = presto__join_path(dir, ".file2.0123456789abcdef.partial");
    char *link = presto__join_path(dir, ".file.0123456789abcdef.partial");
    ck_assert_ok(presto__partial_open(path, &live, &err), &err);
    ck_assert_ok(presto__partial_open(path, &left, &err), &err);
    char *left_path = strdup(left.path);
    close(left.fd);
    presto__partial_done(&left);
    close(live.fd); /* whole, and not yet renamed */
    ck_assert_int_eq(close(open(of_another, O_WRONLY | O_CREAT, 0600)), 0);
    ck_assert_int_eq(symlink(of_another, link), 0);
    ck_assert_ok(presto_file_check_replace(path, &err), &err);
    ck_assert_int_ne(access(left_path, F_OK), 0);
    ck_assert_int_eq(access(live.path, F_OK), 0);
    ck_assert_int_eq(access(of_another, F_OK), 0);
    ck_assert_int_eq(rename(live.path, path), 0);
    presto__partial_done(&live);
    unlink(of_another);
    unlink(link);
    free(of_another);
    free(link);
    free(left_path);
    tear_down();
}
END_TEST

/* The next draws of getentropy, when a test sets them. */
static uint64_t draws[4];
static size_t draw_count, drawn;

int __real_getentropy(void *buffer, size_t bytes);
int __wrap_getentropy(void *buffer, size_t bytes);
int __wrap_getentropy(void *buffer, size_t bytes) {
    if (draw_count == 0)
        return __real_getentropy(buffer, bytes);
    ck_assert_uint_eq(bytes, sizeof draws[0]);
    const uint64_t draw = draws[drawn < draw_count ? drawn : draw_count - 1];
    drawn++;
    memcpy(buffer, &draw, sizeof draw);
    return 0;
}

START_TEST(what_stands_by_a_temporary_name_is_neither_followed_nor_written_to) {
    set_up();
    char link[600], file[600];
    snprintf(link, sizeof link, "%s/.file.0000000000000001.partial", dir);
    snprintf(file, sizeof file, "%s/.file.00000000000000ff.partial", dir);
    presto_check_write_file(other, presto_span_of_text("precious"));
    presto_check_write_file(file, presto_span_of_text("theirs"));
    int theirs = open(file, O_RDONLY);
    ck_assert_int_eq(flock(theirs, LOCK_EX | LOCK_NB), 0); /* it has a writer */
    ck_assert_int_eq(symlink(other, link), 0);
    const uint64_t planted_then_free[] = {1, 0xff, 2};
    memcpy(draws, planted_then_free, sizeof planted_then_free);
    draw_count = 3;
    replace("new");
    ck_assert_uint_eq(drawn, 3);
    check_content(path, "new!");
    draw_count = 2; /* now each name is taken */
    const presto_span text = presto_span_of_text("x");
    ck_assert_status(presto_file_replace(path, &text, 1, false, &err), PRESTO_ERR_IO, &err);
    ck_assert_int_eq(err.sys_errno, EEXIST);
    check_content(path, "new!");
    check_content(other, "precious");
    check_content(file, "theirs");
    ck_assert_uint_eq(count_entries(), 4);
    close(theirs);
    tear_down();
}
END_TEST

START_TEST(a_link_by_a_temporary_name_that_leads_nowhere_makes_no_file) {
    set_up();
    char link[600];
    snprintf(link, sizeof link, "%s/.file.0000000000000001.partial", dir);
    ck_assert_int_eq(symlink(other, link), 0);
    draws[0] = 1;
    draw_count = 1;
    const presto_span text = presto_span_of_text("x");
    ck_assert_status(presto_file_replace(path, &text, 1, false, &err), PRESTO_ERR_IO, &err);
    ck_assert_int_ne(access(other, F_OK), 0);
    tear_down();
}
END_TEST

START_TEST(a_name_as_long_as_names_may_be_can_be_replaced) {
    set_up();
    char name[256];
    memset(name, 'n', sizeof name);
    snprintf(path, sizeof path, "%s/%.255s", dir, name);
    replace("new");
    check_content(path, "new!");
    tear_down();
}
END_TEST

START_TEST(a_joined_path_has_one_slash_between_folder_and_name) {
    static const struct {
        const char *folder, *name, *path;
    } cases[] = {
        {"a", "b", "a/b"}, {"a/", "b", "a/b"}, {"/", "b", "/b"},
        {"", "b", "b"},    {".", "b", "./b"},  {"a", "", "a/"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char *joined = presto__join_path(cases[i].folder, cases[i].name);
        ck_assert_str_eq(joined, cases[i].path);
        free(joined);
    }
}
END_TEST

int main(void) {
    const TTest *const tests[] = {
        a_file_takes_the_place_of_an_older_one_and_leaves_nothing_beside,
        a_link_in_the_place_of_a_file_is_replaced_and_not_followed,
        the_mode_of_a_new_file_is_what_umask_leaves,
        temporary_names_are_of_their_file_and_never_the_same,
        what_killed_runs_have_left_is_removed_and_what_live_ones_write_is_not,
        what_stands_by_a_temporary_name_is_neither_followed_nor_written_to,
        a_link_by_a_temporary_name_that_leads_nowhere_makes_no_file,
        a_name_as_long_as_names_may_be_can_be_replaced,
        a_joined_path_has_one_slash_between_folder_and_name,
    };
    return presto_check_main("file", tests, sizeof tests / sizeof tests[0], 30);
}
