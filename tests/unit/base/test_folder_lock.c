/* SPDX-License-Identifier: Apache-2.0 */
/* One process at a time writes to a folder, whatever others have left there. */
#define _DEFAULT_SOURCE /* flock, symlink, mkfifo */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <presto/file.h>

#include "../../../base/folder_internal.h"
#include "presto_check.h"

static char *dir;
static char path[512];
static presto_error err;
static presto_folder_lock *lock;

static void set_up(void) {
    dir = presto_check_temp_dir();
    snprintf(path, sizeof path, "%s/%s", dir, PRESTO_LOCK_FILE);
    lock = NULL;
}

static void tear_down(void) {
    presto_check_remove_tree(dir);
    free(dir);
}

static void check_can_be_had(void) {
    ck_assert_ok(presto__folder_lock_take(dir, &lock, &err), &err);
    ck_assert_ok(presto_folder_lock_check(lock, &err), &err);
    presto_folder_lock_release(lock);
    ck_assert_int_ne(access(path, F_OK), 0);
}

START_TEST(a_second_one_is_refused_and_told_who_has_it) {
    set_up();
    presto_folder_lock *second = NULL;
    ck_assert_ok(presto__folder_lock_take(dir, &lock, &err), &err);
    ck_assert_status(presto__folder_lock_take(dir, &second, &err), PRESTO_ERR_BUSY, &err);
    char wanted[64];
    snprintf(wanted, sizeof wanted, "process %ld on ", (long)getpid());
    ck_assert_ptr_nonnull(strstr(err.message, wanted));
    ck_assert_str_eq(err.file, dir);
    ck_assert_ptr_null(second);
    ck_assert_ok(presto_folder_lock_check(lock, &err), &err);
    presto_folder_lock_release(lock);
    check_can_be_had();
    presto_folder_lock_release(NULL);
    tear_down();
}
END_TEST

START_TEST(what_a_killed_process_leaves_is_in_nobodys_way) {
    set_up();
    int ready[2];
    char byte;
    ck_assert_int_eq(pipe(ready), 0);
    pid_t child = fork();
    if (child == 0) {
        bool is_fine = presto__folder_lock_take(dir, &lock, &err) == PRESTO_OK;
        if (write(ready[1], is_fine ? "1" : "0", 1) == 1)
            for (;;)
                pause();
        _exit(1);
    }
    ck_assert_int_eq(read(ready[0], &byte, 1), 1);
    ck_assert_int_eq(byte, '1');
    ck_assert_status(presto__folder_lock_take(dir, &lock, &err), PRESTO_ERR_BUSY, &err);
    kill(child, SIGKILL);
    ck_assert_int_eq(waitpid(child, NULL, 0), child);
    ck_assert_int_eq(access(path, F_OK), 0);
    check_can_be_had();
    tear_down();
}
END_TEST

START_TEST(of_many_that_come_at_once_one_has_it) {
    enum { CHILDREN = 8, ROUNDS = 25 };
    set_up();
    for (int round = 0; round < ROUNDS; round++) {
        int go[2], done[2], owners = 0;
        pid_t children[CHILDREN];
        ck_assert_int_eq(pipe(go), 0);
        ck_assert_int_eq(pipe(done), 0);
        if (round % 2 == 1) /* as a killed process leaves it */
            presto_check_write_file(path, presto_span_of_text("123 host\n"));
        for (int i = 0; i < CHILDREN; i++) {
            children[i] = fork();
            if (children[i] != 0)
                continue;
            char byte;
            close(go[1]);
            if (read(go[0], &byte, 1) != 0)
                _exit(1);
            presto_status status = presto__folder_lock_take(dir, &lock, NULL);
            char result = status == PRESTO_OK ? '1' : status == PRESTO_ERR_BUSY ? '0' : '?';
            if (write(done[1], &result, 1) != 1)
                _exit(1);
            for (;;)
                pause(); /* its holder keeps it */
        }
        close(go[0]);
        close(go[1]); /* they go */
        char results[CHILDREN];
        for (int i = 0; i < CHILDREN; i++) {
            ck_assert_int_eq(read(done[0], &results[i], 1), 1);
            ck_assert_int_ne(results[i], '?');
            owners += results[i] == '1';
        }
        ck_assert_int_eq(owners, 1);
        for (int i = 0; i < CHILDREN; i++)
            kill(children[i], SIGKILL);
        while (wait(NULL) > 0)
            continue;
        unlink(path);
        close(done[0]);
        close(done[1]);
    }
    tear_down();
}
END_TEST

START_TEST(a_folder_that_was_taken_away_is_noticed_and_anothers_lock_left_alone) {
    set_up();
    ck_assert_ok(presto__folder_lock_take(dir, &lock, &err), &err);
    ck_assert_int_eq(unlink(path), 0);
    ck_assert_status(presto_folder_lock_check(lock, &err), PRESTO_ERR_BUSY, &err);
    presto_folder_lock *second;
    ck_assert_ok(presto__folder_lock_take(dir, &second, &err), &err);
    ck_assert_status(presto_folder_lock_check(lock, &err), PRESTO_ERR_BUSY, &err);
    presto_folder_lock_release(lock);
    ck_assert_ok(presto_folder_lock_check(second, &err), &err);
    presto_folder_lock_release(second);
    tear_down();
}
END_TEST

START_TEST(what_is_planted_is_neither_followed_nor_written_to) {
    set_up();
    char other[512];
    snprintf(other, sizeof other, "%s/other", dir);
    presto_check_write_file(other, presto_span_of_text("precious"));
    ck_assert_int_eq(symlink(other, path), 0);
    ck_assert_status(presto__folder_lock_take(dir, &lock, &err), PRESTO_ERR_IO, &err);
    ck_assert_int_eq(unlink(path), 0);
    ck_assert_int_eq(link(other, path), 0);
    check_can_be_had();
    size_t bytes;
    uint8_t *content = presto_check_read_file(other, &bytes);
    ck_assert(presto_span_is(presto_span_of(content, bytes), "precious"));
    free(content);
    ck_assert_int_eq(mkfifo(path, 0600), 0);
    ck_assert_status(presto__folder_lock_take(dir, &lock, &err), PRESTO_ERR_IO, &err);
    ck_assert_str_eq(err.file, path);
    ck_assert_int_eq(unlink(path), 0);
    ck_assert_int_eq(mkdir(path, 0700), 0);
    ck_assert_status(presto__folder_lock_take(dir, &lock, &err), PRESTO_ERR_IO, &err);
    tear_down();
}
END_TEST

START_TEST(the_words_of_a_planted_file_are_not_repeated) {
    set_up();
    presto_check_write_file(path, presto_span_of_text("77 \033[2Jhost\n"));
    int fd = open(path, O_RDONLY);
    ck_assert_int_eq(flock(fd, LOCK_EX), 0);
    ck_assert_status(presto__folder_lock_take(dir, &lock, &err), PRESTO_ERR_BUSY, &err);
    ck_assert_ptr_nonnull(strstr(err.message, "by another process"));
    close(fd);
    check_can_be_had();
    tear_down();
}
END_TEST

START_TEST(no_folder_is_not_found) {
    ck_assert_status(presto__folder_lock_take("/no/such/folder", &lock, &err), PRESTO_ERR_NOT_FOUND,
                     &err);
    ck_assert_str_eq(err.file, "/no/such/folder");
}
END_TEST

int main(void) {
    const TTest *const tests[] = {
        a_second_one_is_refused_and_told_who_has_it,
        what_a_killed_process_leaves_is_in_nobodys_way,
        of_many_that_come_at_once_one_has_it,
        a_folder_that_was_taken_away_is_noticed_and_anothers_lock_left_alone,
        what_is_planted_is_neither_followed_nor_written_to,
        the_words_of_a_planted_file_are_not_repeated,
        no_folder_is_not_found,
    };
    return presto_check_main("folder_lock", tests, sizeof tests / sizeof tests[0], 60);
}
