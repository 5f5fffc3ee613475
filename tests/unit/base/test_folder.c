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
        links_in_a_folder_are_removed_and_not_followed,
    };
    return presto_check_main("folder", tests, sizeof tests / sizeof tests[0], 60);
}
