/* SPDX-License-Identifier: Apache-2.0 */
/* Files that readers share: the right ones, opened once, and not too many. */
#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <presto/rng.h>

#include "../../../base/rng_internal.h"
#include "presto_check.h"
#include "source/files/source_files_internal.h"

enum { FILES = 200, THREADS = 4, HELD = 3 };

static char *dir;
static presto__files files;
static presto__open_files *open_files;
static ino_t inodes[FILES];

static const char *path_of(size_t i) {
    static char path[4096];
    snprintf(path, sizeof path, "%s/%03zu", dir, i);
    return path;
}

static void set_up(void) {
    presto_error err;
    dir = presto_check_temp_dir();
    files = (presto__files){.file_count = 0};
    for (size_t i = 0; i < FILES; i++) {
        presto__object_info info;
        presto_check_write_file(path_of(i), presto_span_of_text("values"));
        ck_assert_ok(presto__object_find(path_of(i), &info, &err), &err);
        inodes[i] = (ino_t)info.identity[1];
        ck_assert_ok(presto__files_add(&files, path_of(i), 0, &info, &err), &err);
    }
    files.file_count = (size_t)files.base.full_count;
    ck_assert_ok(presto__open_files_new(&files, &open_files, &err), &err);
}

static void tear_down(void) {
    presto__open_files_free(open_files);
    presto__files_done(&files);
    presto_check_remove_tree(dir);
    free(dir);
}

/* Descriptors of this process. */
static size_t count_open(void) {
    DIR *list = opendir("/proc/self/fd");
    size_t count = 0;
    ck_assert_ptr_nonnull(list);
    while (readdir(list) != NULL)
        count++;
    closedir(list);
    return count;
}

static int acquire(size_t i) {
    presto_error err;
    struct stat info;
    presto__object object;
    ck_assert_ok(presto__open_files_acquire(open_files, i, &object, &err), &err);
    ck_assert_int_eq(fstat(object.fd, &info), 0);
    ck_assert_uint_eq(info.st_ino, inodes[i]);
    return object.fd;
}

START_TEST(a_file_is_opened_once_and_stays_open_for_a_while) {
    set_up();
    int fd = acquire(7);
    ck_assert_int_eq(acquire(7), fd);
    presto__open_files_release(open_files, 7);
    presto__open_files_release(open_files, 7);
    ck_assert_int_eq(unlink(path_of(7)), 0); /* it could not be opened again */
    ck_assert_int_eq(acquire(7), fd);
    presto__open_files_close_idle(open_files); /* it is none */
    ck_assert_int_eq(fcntl(fd, F_GETFD), FD_CLOEXEC);
    presto__open_files_release(open_files, 7);
    presto__open_files_close_idle(open_files);
    presto_error err;
    presto__object object;
    ck_assert_status(presto__open_files_acquire(open_files, 7, &object, &err), PRESTO_ERR_NOT_FOUND,
                     &err);
    ck_assert_str_eq(err.file, path_of(7));
    presto_check_write_file(path_of(8), presto_span_of_text("others"));
    ck_assert_int_eq(utimensat(AT_FDCWD, path_of(8), (struct timespec[]){{1, 0}, {1, 0}}, 0), 0);
    ck_assert_status(presto__open_files_acquire(open_files, 8, &object, &err), PRESTO_ERR_IO, &err);
    (void)acquire(9); /* a failure is of one file */
    presto__open_files_release(open_files, 9);
    tear_down();
}
END_TEST

START_TEST(idle_files_are_limited_and_the_oldest_are_closed) {
    set_up();
    size_t before = count_open();
    for (size_t i = 0; i < FILES; i++) {
        (void)acquire(i);
        presto__open_files_release(open_files, i);
        (void)acquire(3); /* always in use */
        presto__open_files_release(open_files, 3);
    }
    ck_assert_uint_eq(count_open(), before + PRESTO__IDLE_FILES);
    for (size_t i = 0; i < FILES; i++)
        ck_assert_int_eq(unlink(path_of(i)), 0);
    (void)acquire(3);
    for (size_t i = FILES - 1; i > FILES - PRESTO__IDLE_FILES; i--) {
        (void)acquire(i);
        presto__open_files_release(open_files, i);
    }
    presto__object object;
    ck_assert_int_eq(
        presto__open_files_acquire(open_files, FILES - PRESTO__IDLE_FILES, &object, NULL),
        PRESTO_ERR_NOT_FOUND);
    presto__open_files_release(open_files, 3);
    tear_down();
    ck_assert_uint_eq(count_open(), before);
}
END_TEST

START_TEST(without_descriptors_idle_files_make_room) {
    set_up();
    struct rlimit limit;
    size_t before = count_open();
    for (size_t i = 0; i < 20; i++) {
        (void)acquire(i);
        presto__open_files_release(open_files, i);
    }
    ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &limit), 0);
    rlim_t soft = limit.rlim_cur;
    limit.rlim_cur = (rlim_t)before; /* less than are open now */
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
    (void)acquire(50);
    presto__open_files_release(open_files, 50);
    limit.rlim_cur = soft;
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
    tear_down();
}
END_TEST

static void *use_files(void *user) {
    presto_rng rng;
    const presto__rng_key key = {.seed = *(const uint64_t *)user};
    size_t held[HELD], count = 0;
    presto__rng_init(&rng, &key);
    for (size_t round = 0; round < presto_check_rounds(20000); round++) {
        if (count == HELD)
            presto__open_files_release(open_files, held[--count]);
        size_t i = presto_rng_below(&rng, FILES);
        (void)acquire(i);
        held[count++] = i;
        if (round % 1000 == 0)
            presto__open_files_close_idle(open_files);
    }
    while (count > 0)
        presto__open_files_release(open_files, held[--count]);
    return NULL;
}

START_TEST(threads_have_the_files_they_ask_for) {
    set_up();
    pthread_t threads[THREADS];
    uint64_t seeds[THREADS];
    size_t before = count_open();
    for (size_t i = 0; i < THREADS; i++) {
        seeds[i] = presto_check_seed() + i;
        ck_assert_int_eq(pthread_create(&threads[i], NULL, use_files, &seeds[i]), 0);
    }
    for (size_t i = 0; i < THREADS; i++)
        ck_assert_int_eq(pthread_join(threads[i], NULL), 0);
    ck_assert_uint_le(count_open(), before + PRESTO__IDLE_FILES);
    tear_down();
    ck_assert_uint_eq(count_open(), before);
}
END_TEST

int main(void) {
    const TTest *const tests[] = {
        a_file_is_opened_once_and_stays_open_for_a_while,
        idle_files_are_limited_and_the_oldest_are_closed,
        without_descriptors_idle_files_make_room,
        threads_have_the_files_they_ask_for,
    };
    return presto_check_main("open_files", tests, sizeof tests / sizeof tests[0], 120);
}
