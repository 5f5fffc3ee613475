/* SPDX-License-Identifier: Apache-2.0 */
/* The socket through which the ends of a ring find each other. */
#define _GNU_SOURCE /* memfd_create, seals */
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "ring/ring_internal.h"

#include "ring_check.h"

/* ---- the path ---- */

static char *dir;
static char path[200];

static void make_dir(void) {
    dir = presto_check_temp_dir();
    snprintf(path, sizeof path, "%s/ring", dir);
}

static void remove_dir(void) {
    presto_check_remove_tree(dir);
    free(dir);
}

static presto_status open_reader(uint64_t wait_s, presto_ring_reader **reader_out) {
    presto_ring_options options;
    presto_ring_options_defaults(&options);
    options.path = path;
    options.wait_ns = wait_s * UINT64_C(1000000000);
    return presto_ring_reader_open(&options, reader_out, &err);
}

static presto_status open_writer(presto__ring_writer **writer_out) {
    presto_ring_options options;
    presto_ring_options_defaults(&options);
    options.path = path;
    return presto__ring_writer_open(&options, writer_out, &err);
}

static struct sockaddr_un address_of_path(void) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    ck_assert_uint_lt(strlen(path), sizeof address.sun_path);
    memcpy(address.sun_path, path, strlen(path) + 1);
    return address;
}

static int connect_bare(void) {
    struct sockaddr_un address = address_of_path();
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ck_assert_int_eq(connect(fd, (const struct sockaddr *)(const void *)&address, sizeof address),
                     0);
    return fd;
}

START_TEST(a_path_is_there_until_its_reader_has_come) {
    make_dir();
    writing self = whole;
    presto_ring_reader *reader, *other;
    struct stat is;
    ck_assert_status(open_reader(0, &reader), PRESTO_ERR_NOT_FOUND, &err);
    presto_ring_options_defaults(&self.options);
    self.options.path = path;
    start_writer(&self);
    ck_assert_ok(open_reader(60, &reader), &err);
    presto_batch *batch;
    ck_assert_ok(presto_ring_reader_next(reader, &batch, &err), &err);
    ck_assert_int_ne(lstat(path, &is), 0); /* removed, so that nobody else comes */
    ck_assert_status(open_reader(0, &other), PRESTO_ERR_NOT_FOUND, &err);
    presto_ring_batch_release(batch);
    presto_ring_reader_free(reader);
    pthread_join(self.thread, NULL);
    ck_assert(self.status == PRESTO_END || self.status == PRESTO_OK);
    remove_dir();
}
END_TEST

START_TEST(only_this_user_may_connect_and_a_writer_that_ends_leaves_nothing) {
    make_dir();
    presto__ring_writer *writer, *other;
    struct stat is;
    ck_assert_ok(open_writer(&writer), &err);
    ck_assert_int_eq(lstat(path, &is), 0);
    ck_assert_uint_eq(is.st_mode & 0777, 0600);
    ck_assert_status(open_writer(&other), PRESTO_ERR_BUSY, &err);
    ck_assert_int_eq(lstat(path, &is), 0);
    presto__ring_writer_free(writer);
    ck_assert_int_ne(lstat(path, &is), 0);
    remove_dir();
}
END_TEST

START_TEST(the_socket_of_a_killed_writer_is_replaced_and_other_files_are_not) {
    make_dir();
    presto__ring_writer *writer;
    struct sockaddr_un address = address_of_path();
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ck_assert_int_eq(bind(fd, (const struct sockaddr *)(const void *)&address, sizeof address), 0);
    close(fd); /* the file stays */
    ck_assert_ok(open_writer(&writer), &err);
    presto__ring_writer_free(writer);
    presto_check_write_file(path, presto_span_of_text("mine"));
    ck_assert_status(open_writer(&writer), PRESTO_ERR_ARGUMENT, &err);
    ck_assert_int_eq(access(path, F_OK), 0);
    ck_assert_int_eq(unlink(path), 0);
    ck_assert_int_eq(symlink("elsewhere", path), 0);
    ck_assert_status(open_writer(&writer), PRESTO_ERR_ARGUMENT, &err);
    memset(path, 'x', sizeof path - 1);
    ck_assert_status(open_writer(&writer), PRESTO_ERR_ARGUMENT, &err);
    remove_dir();
}
END_TEST

/* Opens a writer with others that do the same. */
typedef struct contender {
    pthread_t thread;
    pthread_barrier_t *start;
    presto__ring_writer *writer;
    presto_status status;
    presto_error err;
} contender;

static void *contend(void *user) {
    contender *self = user;
    presto_ring_options options;
    presto_ring_options_defaults(&options);
    options.path = path;
    pthread_barrier_wait(self->start);
    self->status = presto__ring_writer_open(&options, &self->writer, &self->err);
    return NULL;
}

START_TEST(of_writers_that_come_at_once_one_has_the_path) {
    enum { COUNT = 3 };
    make_dir();
    for (size_t round = 0; round < presto_check_rounds(300); round++) {
        pthread_barrier_t start;
        contender all[COUNT] = {0};
        size_t winners = 0;
        pthread_barrier_init(&start, NULL, COUNT);
        for (size_t i = 0; i < COUNT; i++) {
            all[i].start = &start;
            ck_assert_int_eq(pthread_create(&all[i].thread, NULL, contend, &all[i]), 0);
        }
        for (size_t i = 0; i < COUNT; i++) {
            pthread_join(all[i].thread, NULL);
            winners += all[i].status == PRESTO_OK;
            if (all[i].status != PRESTO_OK)
                ck_assert_status(all[i].status, PRESTO_ERR_BUSY, &all[i].err);
        }
        ck_assert_uint_eq(winners, 1);
        close(connect_bare());
        for (size_t i = 0; i < COUNT; i++)
            if (all[i].status == PRESTO_OK)
                presto__ring_writer_free(all[i].writer);
        ck_assert_int_eq(rmdir(dir), 0); /* nothing is left */
        ck_assert_int_eq(mkdir(dir, 0700), 0);
        pthread_barrier_destroy(&start);
    }
    remove_dir();
}
END_TEST

START_TEST(who_is_no_reader_is_sent_away_and_the_writer_waits_on) {
    make_dir();
    writing self = whole;
    presto_ring_options_defaults(&self.options);
    self.options.path = path;
    start_writer(&self);
    presto_ring_reader *reader;
    while (access(path, F_OK) != 0)
        continue;
    char reply[8];
    int gone = connect_bare();
    close(gone);
    int odd = connect_bare();
    ck_assert_int_eq(send(odd, "GET / HTTP/1.1\r\n\r\n", 18, MSG_NOSIGNAL), 18);
    ck_assert_int_le(recv(odd, reply, sizeof reply, 0), 0);
    close(odd);
    const struct {
        presto__ring_head head;
        presto__ring_hello hello;
    } newer = {{PRESTO__RING_HELLO, sizeof newer.hello},
               {{'P', 'R', 'E', 'S', 'T', 'O', 'R', 'G'}, PRESTO__RING_VERSION + 1, 0}};
    odd = connect_bare();
    ck_assert_int_eq(send(odd, &newer, sizeof newer, MSG_NOSIGNAL), sizeof newer);
    close(odd);
    ck_assert_ok(open_reader(60, &reader), &err);
    presto_ring_reader_free(reader);
    pthread_join(self.thread, NULL);
    ck_assert(self.status == PRESTO_END || self.status == PRESTO_OK);
    remove_dir();
}
END_TEST

int main(void) {
    const TTest *const tests[] = {
        a_path_is_there_until_its_reader_has_come,
        only_this_user_may_connect_and_a_writer_that_ends_leaves_nothing,
        the_socket_of_a_killed_writer_is_replaced_and_other_files_are_not,
        of_writers_that_come_at_once_one_has_the_path,
        who_is_no_reader_is_sent_away_and_the_writer_waits_on,
    };
    return presto_check_main("ring_path", tests, sizeof tests / sizeof tests[0], 120);
}
