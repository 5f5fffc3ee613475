/* SPDX-License-Identifier: Apache-2.0 */
/* Ends of a ring that do not keep to the protocol: neither side can hurt the other one. */
#define _GNU_SOURCE /* memfd_create, seals */
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "ring/ring_internal.h"

#include "ring_check.h"

/* ---- ends that do not keep to the protocol ---- */

typedef struct hostile {
    int fd;
    int memory;
    presto_ring_options options;
} hostile;

static void send_message(int fd, uint32_t kind, const void *body, size_t bytes) {
    presto__ring_head head = {kind, (uint32_t)bytes};
    struct iovec parts[] = {{&head, sizeof head}, {(void *)(uintptr_t)body, bytes}};
    presto__ring_link link = {.fd = fd, .memory = -1};
    (void)presto__ring_send(&link, parts, 2, -1, NULL);
}

static hostile start_hostile(void) {
    hostile self;
    int ends[2];
    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    presto_ring_options_defaults(&self.options);
    self.options.fd = ends[1];
    self.fd = ends[0];
    self.memory = memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    ck_assert_int_eq(ftruncate(self.memory, 4096), 0);
    return self;
}

static void say_hello(const hostile *self, uint64_t ring_bytes, int memory) {
    presto__ring_head head = {PRESTO__RING_HELLO, sizeof(presto__ring_hello)};
    presto__ring_hello hello = {.version = PRESTO__RING_VERSION, .ring_bytes = ring_bytes};
    memcpy(hello.magic, PRESTO__RING_MAGIC, sizeof hello.magic);
    struct iovec parts[] = {{&head, sizeof head}, {&hello, sizeof hello}};
    presto__ring_link link = {.fd = self->fd, .memory = -1};
    ck_assert_ok(presto__ring_send(&link, parts, 2, memory, &err), &err);
}

static void end_hostile(const hostile *self) {
    close(self->fd);
    close(self->memory);
}

START_TEST(memory_that_could_shrink_or_is_too_small_is_refused) {
    for (int which = 0; which < 4; which++) {
        hostile self = start_hostile();
        presto_ring_reader *reader;
        if (which > 0)
            ck_assert_int_eq(fcntl(self.memory, F_ADD_SEALS, F_SEAL_SHRINK), 0);
        const uint64_t sizes[] = {4096, 4097, UINT64_MAX, 0};
        say_hello(&self, sizes[which], self.memory);
        ck_assert_status(presto_ring_reader_open(&self.options, &reader, &err), PRESTO_ERR_CORRUPT,
                         &err);
        end_hostile(&self);
    }
    hostile self = start_hostile();
    presto_ring_reader *reader;
    say_hello(&self, 4096, -1);
    ck_assert_status(presto_ring_reader_open(&self.options, &reader, &err), PRESTO_ERR_CORRUPT,
                     &err);
    end_hostile(&self);
}
END_TEST

static presto_ring_reader *open_hostile(const hostile *self) {
    presto_ring_reader *reader;
    ck_assert_int_eq(fcntl(self->memory, F_ADD_SEALS, F_SEAL_SHRINK), 0);
    say_hello(self, 4096, self->memory);
    ck_assert_ok(presto_ring_reader_open(&self->options, &reader, &err), &err);
    return reader;
}

START_TEST(messages_that_cannot_be_are_refused) {
    const presto__ring_end end = {1, 1};
    const presto__ring_batch outside = {.place = 4096, .bytes = 64, .rows = 1};
    const presto__ring_batch many = {.bytes = 4096, .rows = UINT64_MAX};
    const presto__ring_batch features = {.bytes = 4096, .feature_count = UINT64_MAX};
    const struct {
        uint32_t kind;
        const void *body;
        size_t bytes;
    } messages[] = {{PRESTO__RING_END, &end, sizeof end},
                    {PRESTO__RING_END, &end, 3},
                    {PRESTO__RING_FULL, &end, 3},
                    {PRESTO__RING_HELLO, &end, sizeof end},
                    {PRESTO__RING_ERROR, &end, sizeof end},
                    {77, "", 0},
                    {PRESTO__RING_BATCH, "", 0},
                    {PRESTO__RING_BATCH, &outside, sizeof outside},
                    {PRESTO__RING_BATCH, &many, sizeof many},
                    {PRESTO__RING_BATCH, &features, sizeof features}};
    for (size_t i = 0; i < sizeof messages / sizeof *messages; i++) {
        hostile self = start_hostile();
        presto_ring_reader *reader = open_hostile(&self);
        presto_batch *batch;
        send_message(self.fd, messages[i].kind, messages[i].body, messages[i].bytes);
        for (int twice = 0; twice < 2; twice++)
            ck_assert_status(presto_ring_reader_next(reader, &batch, &err), PRESTO_ERR_CORRUPT,
                             &err);
        presto_ring_reader_free(reader);
        end_hostile(&self);
    }
    hostile self = start_hostile();
    presto_ring_reader *reader = open_hostile(&self);
    presto_batch *batch;
    const presto__ring_head head = {PRESTO__RING_BATCH, UINT32_MAX};
    ck_assert_int_eq(send(self.fd, &head, sizeof head, MSG_NOSIGNAL), sizeof head);
    ck_assert_status(presto_ring_reader_next(reader, &batch, &err), PRESTO_ERR_CORRUPT, &err);
    presto_ring_reader_free(reader);
    end_hostile(&self);
}
END_TEST

START_TEST(the_words_of_a_failure_cannot_steer_a_terminal) {
    static const char words[] = "a\x1b]0;b\n\x9b";
    uint8_t body[sizeof(presto__ring_error) + sizeof words - 1];
    const presto__ring_error says = {.status = PRESTO_ERR_IO, .message_bytes = sizeof words - 1};
    memcpy(body, &says, sizeof says);
    memcpy(body + sizeof says, words, sizeof words - 1);
    hostile self = start_hostile();
    presto_ring_reader *reader = open_hostile(&self);
    presto_batch *batch;
    send_message(self.fd, PRESTO__RING_ERROR, body, sizeof body);
    ck_assert_status(presto_ring_reader_next(reader, &batch, &err), PRESTO_ERR_IO, &err);
    ck_assert_str_eq(err.message, "a\\x1b]0;b\\n\\x9b");
    presto_ring_reader_free(reader);
    end_hostile(&self);
}
END_TEST

/* A writer in a thread; returns the reader's end. */
static int start_pair(writing *self) {
    int ends[2];
    *self = whole;
    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    presto_ring_options_defaults(&self->options);
    self->options.fd = ends[0];
    start_writer(self);
    return ends[1];
}

static presto__ring_hello hello_of(uint64_t version) {
    presto__ring_hello hello = {.version = version};
    memcpy(hello.magic, PRESTO__RING_MAGIC, sizeof hello.magic);
    return hello;
}

/* Say hello, and take the writer's messages until the first batch has come. */
static presto__ring_link take_first_batch(int fd) {
    const presto__ring_hello hello = hello_of(PRESTO__RING_VERSION);
    presto__ring_link link = {.fd = fd, .memory = -1};
    presto__ring_head head = {0};
    presto_span body;
    send_message(fd, PRESTO__RING_HELLO, &hello, sizeof hello);
    while (head.kind != PRESTO__RING_BATCH)
        ck_assert_ok(presto__ring_take(&link, true, &head, &body, &err), &err);
    return link;
}

START_TEST(messages_that_are_no_release_of_what_the_reader_has_are_refused) {
    const uint64_t first[2] = {0}, far = 1 << 20;
    const struct {
        uint32_t kind;
        const void *body;
        size_t bytes;
    } messages[] = {{PRESTO__RING_RELEASE, &far, sizeof far},
                    {PRESTO__RING_RELEASE, first, 0},
                    {PRESTO__RING_RELEASE, first, sizeof first},
                    {PRESTO__RING_END, "", 0},
                    {PRESTO__RING_HELLO, first, sizeof first[0]}};
    for (size_t i = 0; i < sizeof messages / sizeof *messages; i++) {
        writing self;
        presto__ring_link link = take_first_batch(start_pair(&self));
        send_message(link.fd, messages[i].kind, messages[i].body, messages[i].bytes);
        (void)shutdown(link.fd, SHUT_WR); /* one that takes the message for a release ends, too */
        end_writer(&self, PRESTO_ERR_CORRUPT);
        presto__ring_link_done(&link);
    }
}
END_TEST

START_TEST(who_is_no_reader_at_a_descriptor_is_an_error_and_who_hangs_up_is_none) {
    writing self;
    int fd = start_pair(&self);
    send_message(fd, PRESTO__RING_HELLO, "PRESTORH", 8);
    end_writer(&self, PRESTO_ERR_IO);
    ck_assert_str_eq(self.err.message, "the other side is no reader of a ring");
    close(fd);
    fd = start_pair(&self);
    ck_assert_int_eq(send(fd, "GET / HTTP/1.1\r\n\r\n", 18, MSG_NOSIGNAL), 18);
    end_writer(&self, PRESTO_ERR_IO);
    close(fd);
    fd = start_pair(&self);
    close(fd);
    end_writer(&self, PRESTO_END);
}
END_TEST

START_TEST(a_descriptor_where_nobody_says_hello_is_an_error) {
    writing self;
    int fd = start_pair(&self);
    end_writer(&self, PRESTO_ERR_BUSY);
    ck_assert_str_eq(self.err.message, "no reader said hello within 5 s");
    close(fd);
}
END_TEST

START_TEST(a_reader_of_another_version_is_told_this_one_and_gets_no_memory) {
    writing self;
    int fd = start_pair(&self);
    const presto__ring_hello hello = hello_of(PRESTO__RING_VERSION + 1);
    send_message(fd, PRESTO__RING_HELLO, &hello, sizeof hello);
    presto__ring_link link = {.fd = fd, .memory = -1};
    presto__ring_head head;
    presto__ring_hello said;
    presto_span body;
    ck_assert_ok(presto__ring_take(&link, true, &head, &body, &err), &err);
    ck_assert_uint_eq(head.kind, PRESTO__RING_HELLO);
    ck_assert_uint_eq(body.bytes, sizeof said);
    memcpy(&said, body.data, sizeof said);
    ck_assert_uint_eq(said.version, PRESTO__RING_VERSION);
    ck_assert_int_eq(link.memory, -1);
    ck_assert_status(presto__ring_take(&link, true, &head, &body, &err), PRESTO_END, &err);
    presto__ring_link_done(&link);
    end_writer(&self, PRESTO_ERR_UNSUPPORTED);
}
END_TEST

int main(void) {
    const TTest *const tests[] = {
        memory_that_could_shrink_or_is_too_small_is_refused,
        messages_that_cannot_be_are_refused,
        the_words_of_a_failure_cannot_steer_a_terminal,
        messages_that_are_no_release_of_what_the_reader_has_are_refused,
        who_is_no_reader_at_a_descriptor_is_an_error_and_who_hangs_up_is_none,
        a_descriptor_where_nobody_says_hello_is_an_error,
        a_reader_of_another_version_is_told_this_one_and_gets_no_memory,
    };
    return presto_check_main("ring_protocol", tests, sizeof tests / sizeof tests[0], 120);
}
