/* SPDX-License-Identifier: Apache-2.0 */
/* Walking through folders: everything is found once, under the same path for any order of
 * reading. */
#define _XOPEN_SOURCE 700
#include "presto_check.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../base/folder_walk_internal.h"

static char *root;
static char names[64][700];
static size_t count;

static const char *at(const char *name) {
    static char paths[4][700];
    static size_t turn;
    char *path = paths[++turn % 4];
    int bytes = snprintf(path, sizeof paths[0], "%s/%s", root, name);
    ck_assert(bytes > 0 && (size_t)bytes < sizeof paths[0]);
    return path;
}

static void set_up(void) {
    root = presto_check_temp_dir();
    count = 0;
}

static void tear_down(void) {
    presto_check_remove_tree(root);
    free(root);
}

static void make(const char *folder, const char *file) {
    char name[700];
    if (mkdir(at(folder), 0777) != 0)
        ck_assert_int_eq(errno, EEXIST);
    snprintf(name, sizeof name, "%s/%s", folder, file);
    presto_check_write_file(at(name), presto_span_of_text("x"));
}

static presto_status want(void *user, const char *folder, const char *name, bool *wanted_out,
                          presto_error *err) {
    (void)user, (void)folder, (void)err;
    *wanted_out = name[0] != '_';
    return PRESTO_OK;
}

static presto_status note(void *user, const presto__walked *found, presto_error *err) {
    (void)user, (void)err;
    ck_assert_uint_lt(count, 64);
    snprintf(names[count++], sizeof names[0], "%.600s%s", found->path + strlen(root) + 1,
             found->info == NULL ? "?" : "");
    return PRESTO_OK;
}

static int compare(const void *a, const void *b) {
    return strcmp(a, b);
}

static void check_walk(const char *from, const char *wanted) {
    const presto__folder_walk walk = {.name = want, .found = note};
    presto_error err;
    char text[4096] = "";
    ck_assert_ok(presto__walk_folder(&walk, from, &err), &err);
    qsort(names, count, sizeof names[0], compare);
    size_t used = 0;
    for (size_t i = 0; i < count && used < sizeof text; i++) {
        int bytes = snprintf(text + used, sizeof text - used, i == 0 ? "%s" : " %s", names[i]);
        used += (size_t)bytes;
    }
    ck_assert_str_eq(text, wanted);
}

START_TEST(all_is_found_but_what_is_not_wanted) {
    set_up();
    make("b", "1");
    make("b/c", "2");
    make("_no", "3");
    make("b", "_4");
    ck_assert_int_eq(symlink("nowhere", at("b/5")), 0);
    ck_assert_int_eq(mkfifo(at("pipe"), 0666), 0);
    check_walk(root, "b/1 b/5? b/c/2 pipe");
    tear_down();
}
END_TEST

START_TEST(a_folder_that_lies_there_itself_wins_over_links_to_it) {
    set_up();
    make("z", "1");
    make("z/y", "2");
    ck_assert_int_eq(symlink("z", at("a")), 0);
    ck_assert_int_eq(symlink("z/y", at("b")), 0);
    ck_assert_int_eq(symlink("..", at("z/up")), 0);
    ck_assert_int_eq(symlink("1", at("z/same")), 0); /* another name of a file is another file */
    check_walk(root, "z/1 z/same z/y/2");
    tear_down();
}
END_TEST

START_TEST(of_several_links_the_first_one_counts_and_links_behind_links_come_last) {
    set_up();
    make("in", "1");
    mkdir(at("out"), 0777);
    make("out/x", "2");
    make("out/y", "3");
    ck_assert_int_eq(symlink("../out/x", at("in/c")), 0);
    ck_assert_int_eq(symlink("../out/x", at("in/b")), 0);
    /* in/b/a leads to y, but in/d does so in fewer links. */
    ck_assert_int_eq(symlink("../y", at("out/x/a")), 0);
    ck_assert_int_eq(symlink("../out/y", at("in/d")), 0);
    check_walk(at("in"), "in/1 in/b/2 in/d/3");
    tear_down();
}
END_TEST

/* 2^25 paths lead to one file. */
START_TEST(two_links_to_the_next_folder_in_each_of_many_are_walked_at_once) {
    char name[64], target[64];
    set_up();
    for (int i = 0; i <= 25; i++) {
        snprintf(name, sizeof name, "%02d", i);
        make(name, "file");
        snprintf(target, sizeof target, "../%02d", i + 1);
        snprintf(name, sizeof name, "%02d/a", i);
        ck_assert_int_eq(symlink(target, at(name)), 0);
        snprintf(name, sizeof name, "%02d/b", i);
        ck_assert_int_eq(symlink(target, at(name)), 0);
    }
    const presto__folder_walk walk = {.name = want, .found = note};
    presto_error err;
    ck_assert_ok(presto__walk_folder(&walk, at("00"), &err), &err);
    ck_assert_uint_eq(count, 26 + 2); /* and the last two links, which lead nowhere */
    tear_down();
}
END_TEST

START_TEST(many_folders_are_told_apart) {
    set_up();
    char name[64];
    for (int i = 0; i < 300; i++) {
        snprintf(name, sizeof name, "%03d", i);
        ck_assert_int_eq(mkdir(at(name), 0777), 0);
    }
    make("299/deep", "1");
    make("000", "2");
    check_walk(root, "000/2 299/deep/1");
    tear_down();
}
END_TEST

static presto_status refuse(void *user, const presto__walked *found, presto_error *err) {
    (void)user;
    return presto_fail(err, PRESTO_ERR_TYPE, PRESTO_NO_OFFSET, "%s", found->name);
}

START_TEST(failures_end_it) {
    set_up();
    make("b", "1");
    make("c", "2");
    ck_assert_int_eq(symlink("b", at("a")), 0);
    const presto__folder_walk walk = {.name = want, .found = refuse};
    presto_error err;
    ck_assert_status(presto__walk_folder(&walk, root, &err), PRESTO_ERR_TYPE, &err);
    ck_assert_str_eq(err.message, "1");
    ck_assert_status(presto__walk_folder(&walk, at("none"), &err), PRESTO_ERR_IO, &err);
    ck_assert_str_eq(err.file, at("none"));
    tear_down();
}
END_TEST

int main(void) {
    const TTest *const tests[] = {
        all_is_found_but_what_is_not_wanted,
        a_folder_that_lies_there_itself_wins_over_links_to_it,
        of_several_links_the_first_one_counts_and_links_behind_links_come_last,
        two_links_to_the_next_folder_in_each_of_many_are_walked_at_once,
        many_folders_are_told_apart,
        failures_end_it,
    };
    return presto_check_main("walk", tests, sizeof tests / sizeof tests[0], 60);
}
