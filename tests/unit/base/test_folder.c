/* SPDX-License-Identifier: Apache-2.0 */
#include "presto_check.h"

#include <sys/stat.h>
#include <unistd.h>

#include <presto/file.h>

#include "../base/file_internal.h"
#include "../base/folder_internal.h"

START_TEST(folders_are_made_with_their_parents_and_removed_with_all_in_them) {
    presto_error err;
    char *dir = presto_check_temp_dir();
    char *deep = presto__join_path(dir, "a/b");
    ck_assert_ptr_nonnull(deep);
    ck_assert_ok(presto__folder_make(deep, &err), &err);
    ck_assert_ok(presto__folder_make(deep, &err), &err);
    char *path = presto__join_path(deep, "x");
    ck_assert_ptr_nonnull(path);
    const presto_span text = presto_span_of_text("a file");
    ck_assert_ok(presto_file_replace(path, &text, 1, true, &err), &err);
    ck_assert_status(presto__folder_make(path, &err), PRESTO_ERR_IO, &err);
    ck_assert_ok(presto__folder_remove(dir, &err), &err);
    ck_assert_ok(presto__folder_remove(dir, &err), &err);
    free(path);
    free(deep);
    free(dir);
}
END_TEST

START_TEST(no_folder_is_made_for_a_url) {
    presto_error err;
    char *dir = presto_check_temp_dir();
    ck_assert_int_eq(chdir(dir), 0);
    static const char *const urls[] = {"s3://bucket/a", "gs://bucket/a", "https://host/a/b"};
    for (size_t i = 0; i < sizeof urls / sizeof urls[0]; i++) {
        ck_assert_status(presto__folder_make(urls[i], &err), PRESTO_ERR_IO, &err);
        ck_assert_str_eq(err.file, urls[i]);
    }
    ck_assert_int_eq(rmdir(dir), 0); /* it is empty */
    free(dir);
}
END_TEST

START_TEST(a_folder_of_a_process_is_removed_by_the_next_one_if_its_lock_is_free) {
    presto_error err;
    char *dir = presto_check_temp_dir();
    char *live, *left, *next;
    int live_lock, left_lock, next_lock;
    ck_assert_ok(presto__folder_make_own(dir, "own", &live, &live_lock, &err), &err);
    ck_assert_ok(presto__folder_make_own(dir, "own", &left, &left_lock, &err), &err);
    char *inner = presto__join_path(left, "a/b"), *like = presto__join_path(dir, "own-abcdefg");
    ck_assert_ok(presto__folder_make(inner, &err), &err);
    ck_assert_ok(presto__folder_make(like, &err), &err);
    ck_assert_int_ge(live_lock, 0);
    close(left_lock);
    ck_assert_ok(presto__folder_make_own(dir, "own", &next, &next_lock, &err), &err);
    ck_assert_int_eq(access(live, F_OK), 0);
    ck_assert_int_ne(access(left, F_OK), 0);
    ck_assert_int_eq(access(like, F_OK), 0);
    close(live_lock);
    close(next_lock);
    presto_check_remove_tree(dir);
    free(next);
    free(left);
    free(live);
    free(like);
    free(inner);
    free(dir);
}
END_TEST

START_TEST(links_in_a_folder_are_removed_and_not_followed) {
    presto_error err;
    char *dir = presto_check_temp_dir();
    char *kept = presto__join_path(dir, "kept");
    char *gone = presto__join_path(dir, "gone/inner");
    char *link = presto__join_path(gone, "link");
    ck_assert_ok(presto__folder_make(kept, &err), &err);
    ck_assert_ok(presto__folder_make(gone, &err), &err);
    ck_assert_int_eq(symlink(kept, link), 0);
    ck_assert_ok(presto__folder_remove(gone, &err), &err);
    ck_assert_int_eq(access(kept, F_OK), 0);
    ck_assert_int_ne(access(gone, F_OK), 0);
    ck_assert_ok(presto__folder_remove(dir, &err), &err);
    free(link);
    free(gone);
    free(kept);
    free(dir);
}
END_TEST

int main(void) {
    const TTest *const tests[] = {
        folders_are_made_with_their_parents_and_removed_with_all_in_them,
        no_folder_is_made_for_a_url,
        a_folder_of_a_process_is_removed_by_the_next_one_if_its_lock_is_free,
        links_in_a_folder_are_removed_and_not_followed,
    };
    return presto_check_main("folder", tests, sizeof tests / sizeof tests[0], 60);
}
