/* SPDX-License-Identifier: Apache-2.0 */
/* Objects of the kind that a machine always has, its files, as all kinds are used. */
#define _DEFAULT_SOURCE /* mkfifo, S_IFSOCK */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "presto_check.h"
#include "storage_internal.h"

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

START_TEST(what_is_no_regular_file_is_refused_at_once) {
    set_up();
    presto_buffer content = {0};
    ck_assert_status(presto_file_read(path, 10, &content, &err), PRESTO_ERR_NOT_FOUND, &err);
    ck_assert_int_eq(mkfifo(path, 0600), 0); /* nobody will ever write to it */
    ck_assert_status(presto_file_read(path, 10, &content, &err), PRESTO_ERR_IO, &err);
    ck_assert_str_eq(err.message, "is a named pipe, not a regular file");
    ck_assert_str_eq(err.file, path);
    ck_assert_status(presto_file_read(dir, 10, &content, &err), PRESTO_ERR_IO, &err);
    ck_assert_str_eq(err.message, "is a folder, not a regular file");
    ck_assert_status(presto_file_read("/dev/zero", 10, &content, &err), PRESTO_ERR_IO, &err);
    ck_assert_str_eq(err.message, "is a device, not a regular file");
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    ck_assert_uint_lt(strlen(other), sizeof address.sun_path);
    memcpy(address.sun_path, other, strlen(other) + 1);
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    ck_assert_int_eq(bind(fd, (const struct sockaddr *)&address, sizeof address), 0);
    ck_assert_status(presto_file_read(other, 10, &content, &err), PRESTO_ERR_IO, &err);
    close(fd);
    ck_assert_uint_eq(content.bytes, 0);
    presto_buffer_done(&content);
    tear_down();
}
END_TEST

START_TEST(a_file_beyond_the_limit_is_refused_and_the_buffer_left_as_it_was) {
    set_up();
    presto_buffer content = {0};
    ck_assert_ok(presto_buffer_append(&content, presto_span_of_text("before"), &err), &err);
    presto_check_write_file(path, presto_span_of_text("0123456789"));
    ck_assert_status(presto_file_read(path, 9, &content, &err), PRESTO_ERR_LIMIT, &err);
    ck_assert(presto_span_is(presto_buffer_span(&content), "before"));
    ck_assert_ok(presto_file_read(path, 10, &content, &err), &err);
    ck_assert(presto_span_is(presto_buffer_span(&content), "before0123456789"));
    /* It reports a size of 0. */
    ck_assert_status(presto_file_read("/proc/self/maps", 9, &content, &err), PRESTO_ERR_LIMIT,
                     &err);
    presto_buffer_done(&content);
    tear_down();
}
END_TEST

START_TEST(what_is_known_of_an_object_is_what_the_system_says) {
    set_up();
    struct stat says;
    presto__object object = {0};
    presto__object_info opened, looked, found;
    ck_assert(!presto__object_is_open(object));
    presto__object_close(&object); /* nothing is open */
    presto_check_write_file(path, presto_span_of_text("0123456789"));
    ck_assert_int_eq(utimensat(AT_FDCWD, path, (struct timespec[]){{0, 0}, {-7, 250}}, 0), 0);
    ck_assert_int_eq(stat(path, &says), 0);
    ck_assert_ok(presto__object_open(path, &object, &opened, &err), &err);
    ck_assert_ok(presto__object_look(object, path, &looked, &err), &err);
    ck_assert_ok(presto__object_find(path, &found, &err), &err);
    const presto__object_info *all[] = {&opened, &looked, &found};
    for (size_t i = 0; i < 3; i++) {
        ck_assert_int_eq(all[i]->type, PRESTO__OBJECT_FILE);
        ck_assert_uint_eq(all[i]->bytes, 10);
        ck_assert_int_eq(all[i]->mtime_ns, INT64_C(-7000000000) + 250);
        ck_assert_uint_eq(all[i]->identity[0], says.st_dev);
        ck_assert_uint_eq(all[i]->identity[1], says.st_ino);
        ck_assert(presto__object_is_same(all[i], &opened));
    }
    /* The digest is that of the system's own fields, as caches on disk have it. */
    presto__digest ours = {{0}}, theirs = {{0}};
    presto__digest_add_object(&ours, &opened);
    presto__digest_add_file(&theirs, &says);
    ck_assert_mem_eq(&ours, &theirs, sizeof ours);
    presto__object_close(&object);
    ck_assert(!presto__object_is_open(object));
    tear_down();
}
END_TEST

START_TEST(an_object_that_was_replaced_or_written_to_is_another_one) {
    set_up();
    presto__object_info before, after;
    presto_check_write_file(path, presto_span_of_text("before"));
    ck_assert_ok(presto__object_find(path, &before, &err), &err);
    presto_check_write_file(other, presto_span_of_text("behind"));
    ck_assert_int_eq(utimensat(AT_FDCWD, other, (struct timespec[]){{5, 0}, {5, 0}}, 0), 0);
    ck_assert_int_eq(utimensat(AT_FDCWD, path, (struct timespec[]){{5, 0}, {5, 0}}, 0), 0);
    ck_assert_ok(presto__object_find(path, &after, &err), &err);
    ck_assert(!presto__object_is_same(&before, &after)); /* another time */
    before = after;
    ck_assert_int_eq(rename(other, path), 0);
    ck_assert_ok(presto__object_find(path, &after, &err), &err);
    ck_assert_int_eq(before.mtime_ns, after.mtime_ns);
    ck_assert(!presto__object_is_same(&before, &after)); /* another file of that size and time */
    tear_down();
}
END_TEST

START_TEST(folders_and_other_things_are_told_from_objects) {
    set_up();
    presto__object_info info;
    ck_assert(presto__object_is_folder(dir));
    ck_assert(!presto__object_is_folder(path)); /* there is none */
    ck_assert_status(presto__object_find(path, &info, &err), PRESTO_ERR_NOT_FOUND, &err);
    ck_assert_str_eq(err.file, path);
    ck_assert_int_eq(mkfifo(path, 0600), 0);
    ck_assert_ok(presto__object_find(path, &info, &err), &err);
    ck_assert_int_eq(info.type, PRESTO__OBJECT_OTHER);
    ck_assert(!presto__object_is_folder(path));
    tear_down();
}
END_TEST

START_TEST(reads_end_where_the_object_ends_and_holes_and_maps_are_as_read) {
    set_up();
    presto__object object;
    presto__object_info info;
    char bytes[16];
    size_t got;
    const uint64_t hole = (uint64_t)1 << 20;
    int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(pwrite(fd, "data", 4, (off_t)hole), 4);
    close(fd);
    ck_assert_ok(presto__object_open(path, &object, &info, &err), &err);
    ck_assert_ok(presto__read_at((presto__object_place){object, path, hole + 1}, bytes,
                                 sizeof bytes, &got, &err),
                 &err);
    ck_assert_uint_eq(got, 3);
    ck_assert_mem_eq(bytes, "ata", 3);
    ck_assert_ok(presto__read_at((presto__object_place){object, path, hole + 4}, bytes,
                                 sizeof bytes, &got, &err),
                 &err);
    ck_assert_uint_eq(got, 0);
    /* Not every file system knows its holes: then all of it is data. */
    uint64_t data = presto__object_next_data(object, 0);
    ck_assert(data == UINT64_MAX || data <= hole);
    uint64_t end = presto__object_next_data(object, info.bytes);
    ck_assert(end == UINT64_MAX || end == info.bytes);
    ck_assert_uint_eq(presto__object_next_data(object, UINT64_MAX), UINT64_MAX);
    uint8_t *mapped = presto__object_map(object, info.bytes);
    ck_assert_ptr_nonnull(mapped);
    ck_assert_mem_eq(mapped + hole, "data", 4);
    munmap(mapped, (size_t)info.bytes);
    presto__object_close(&object);
    tear_down();
}
END_TEST

int main(void) {
    const TTest *const tests[] = {
        what_is_no_regular_file_is_refused_at_once,
        a_file_beyond_the_limit_is_refused_and_the_buffer_left_as_it_was,
        what_is_known_of_an_object_is_what_the_system_says,
        an_object_that_was_replaced_or_written_to_is_another_one,
        folders_and_other_things_are_told_from_objects,
        reads_end_where_the_object_ends_and_holes_and_maps_are_as_read,
    };
    return presto_check_main("object", tests, sizeof tests / sizeof tests[0], 30);
}
