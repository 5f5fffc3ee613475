/* SPDX-License-Identifier: Apache-2.0 */
/* The folder of the disk cache, which processes share: eviction, partial files, its lock. */
#define _DEFAULT_SOURCE /* flock */
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "cache/disk_internal.h"

#include "cache_check.h"

/* ---- the folder ---- */

static bool evict_all(void *user, const presto__disk_file *file) {
    (void)file;
    ++*(size_t *)user;
    return true;
}

static bool evict_none(void *user, const presto__disk_file *file) {
    (void)user;
    (void)file;
    return false;
}

static void make_block(presto__disk_folder *folder, uint64_t bytes, char *name_out) {
    size_t asked = 0;
    presto_error err;
    presto__disk_room room = {
        .want_bytes = bytes, .least_bytes = bytes, .may_evict = evict_all, .user = &asked};
    ck_assert_ok(presto__disk_folder_make(folder, &room, &err), &err);
    ck_assert_uint_eq(room.got_bytes, bytes);
    presto__disk_final_name(room.name, name_out);
    ck_assert_ok(presto__disk_folder_rename(folder, room.name, name_out, &err), &err);
    close(room.fd);
    nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL); /* file times are coarse */
}

START_TEST(room_is_made_by_what_was_not_used_for_longest) {
    set_up();
    presto__disk_folder folder;
    presto__disk_key key = {{1, 2}};
    presto_error err;
    ck_assert_ok(presto__disk_folder_open(&folder, cache_dir, 40960, &key, &err), &err);
    char names[5][PRESTO__DISK_NAME_BYTES];
    for (size_t i = 0; i < 5; i++)
        make_block(&folder, 8192, names[i]);
    ck_assert_int_eq(futimens(openat(folder.fd, names[0], O_RDONLY), NULL), 0);
    char more[PRESTO__DISK_NAME_BYTES];
    make_block(&folder, 8192, more); /* 1 goes */
    make_block(&folder, 8192, more); /* 2 goes */
    static const bool stays[] = {true, false, false, true, true};
    for (size_t i = 0; i < 5; i++)
        ck_assert_int_eq(faccessat(folder.fd, names[i], F_OK, 0) == 0, stays[i]);
    /* Nothing may be evicted: the cache gets the room that is left, or none. */
    presto__disk_room room = {.want_bytes = 8192, .least_bytes = 100, .may_evict = evict_none};
    ck_assert_ok(presto__disk_folder_make(&folder, &room, &err), &err);
    ck_assert_uint_eq(room.got_bytes, 0);
    ck_assert_int_eq(unlinkat(folder.fd, names[3], 0), 0);
    room.want_bytes = 20000;
    ck_assert_ok(presto__disk_folder_make(&folder, &room, &err), &err);
    ck_assert_uint_eq(room.got_bytes, 8192);
    close(room.fd);
    presto__disk_folder_close(&folder);
    tear_down();
}
END_TEST

START_TEST(partial_files_are_removed_when_their_writer_is_gone) {
    set_up();
    presto__disk_folder folder;
    presto__disk_key key = {{1, 2}};
    presto_error err;
    ck_assert_ok(presto__disk_folder_open(&folder, cache_dir, 1 << 20, &key, &err), &err);
    presto__disk_room rooms[2];
    for (size_t i = 0; i < 2; i++) {
        rooms[i] =
            (presto__disk_room){.want_bytes = 8192, .least_bytes = 8192, .may_evict = evict_none};
        ck_assert_ok(presto__disk_folder_make(&folder, &rooms[i], &err), &err);
    }
    ck_assert_uint_eq(each_file(NULL, NULL), 2);
    close(rooms[0].fd); /* as if its process had died */
    presto__disk_room none = {.may_evict = evict_none};
    ck_assert_ok(presto__disk_folder_make(&folder, &none, &err), &err);
    ck_assert_int_lt(faccessat(folder.fd, rooms[0].name, F_OK, 0), 0);
    ck_assert_int_eq(faccessat(folder.fd, rooms[1].name, F_OK, 0), 0);
    close(rooms[1].fd);
    presto__disk_folder_close(&folder);
    tear_down();
}
END_TEST

/* Store a sample that takes 40 KB, in a block of its own. */
static void store_one(presto__disk *disk, uint64_t number) {
    static const uint8_t zeros[40000];
    presto_feature feature = {.name = presto_span_of_text("x"),
                              .encoding = PRESTO_ENCODE_TENSOR,
                              .tensor.spec = {PRESTO_UINT8, 1, {sizeof zeros}}};
    feature.tensor.data = zeros;
    presto_sample sample = {.features = &feature, .feature_count = 1, .number = number};
    presto__disk_worker *worker;
    presto_error err;
    ck_assert_ok(presto__disk_worker_new(disk, 1, &worker, &err), &err);
    presto__disk_put(worker, &sample);
    presto__disk_flush(worker);
    presto__disk_worker_free(worker);
    presto__disk_finish(disk);
}

static bool has_one(presto__disk *disk, uint64_t number) {
    presto__disk_worker *worker;
    presto_error err;
    ck_assert_ok(presto__disk_worker_new(disk, 1, &worker, &err), &err);
    presto__disk_find(worker, &number, 1);
    bool has = presto__disk_has(worker, 0);
    presto__disk_worker_free(worker);
    return has;
}

START_TEST(two_that_stored_the_same_do_not_evict_each_other) {
    set_up();
    presto__disk_options options = {
        .dir = cache_dir, .limit_bytes = (uint64_t)112 << 10, .key = {{1, 2}}, .count = 8};
    presto__disk *disks[2], *later;
    presto_error err;
    for (size_t i = 0; i < 2; i++)
        ck_assert_ok(presto__disk_open(&options, &disks[i], &err), &err);
    for (size_t i = 0; i < 2; i++)
        store_one(disks[i], 5);
    ck_assert_uint_eq(each_file(NULL, NULL), 2);
    /* Each knows the other's blocks now, and wants room that only evicting them gives. The
     * folder's time must differ from what they saw, and its clock is coarse. */
    ck_assert_int_eq(utimensat(AT_FDCWD, cache_dir, (struct timespec[2]){{1, 0}, {1, 0}}, 0), 0);
    for (size_t i = 0; i < 2; i++)
        presto__disk_look(disks[i]);
    for (size_t i = 0; i < 2; i++)
        store_one(disks[i], i);
    ck_assert_ok(presto__disk_open(&options, &later, &err), &err);
    ck_assert(has_one(later, 5));
    ck_assert(has_one(later, 0) != has_one(later, 1)); /* one of them had something to evict */
    presto__disk_free(later);
    for (size_t i = 0; i < 2; i++)
        presto__disk_free(disks[i]);
    tear_down();
}
END_TEST

START_TEST(a_lock_that_is_held_for_good_holds_up_nobody_for_good) {
    set_up();
    presto__disk_folder folder;
    presto__disk_key key = {{1, 2}};
    presto_error err;
    ck_assert_ok(presto__disk_folder_open(&folder, cache_dir, 1 << 20, &key, &err), &err);
    int fd = open(cache_dir, O_RDONLY | O_DIRECTORY);
    ck_assert_int_eq(flock(fd, LOCK_EX), 0);
    char name[PRESTO__DISK_NAME_BYTES];
    make_block(&folder, 4096, name);
    close(fd);
    presto__disk_folder_close(&folder);
    tear_down();
}
END_TEST

int main(void) {
    const TTest *const tests[] = {
        room_is_made_by_what_was_not_used_for_longest,
        partial_files_are_removed_when_their_writer_is_gone,
        two_that_stored_the_same_do_not_evict_each_other,
        a_lock_that_is_held_for_good_holds_up_nobody_for_good,
    };
    return presto_check_main("cache_folder", tests, sizeof tests / sizeof tests[0], 240);
}
