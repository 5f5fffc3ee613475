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

START_TEST(a_reader_that_gives_back_what_it_has_not_is_refused) {
    writing self = whole;
    int ends[2];
    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    presto_ring_options_defaults(&self.options);
    self.options.fd = ends[0];
    start_writer(&self);
    const presto__ring_hello hello = {.magic = {'P', 'R', 'E', 'S', 'T', 'O', 'R', 'G'}};
    const uint64_t id = 1 << 20;
    send_message(ends[1], PRESTO__RING_HELLO, &hello, sizeof hello);
    send_message(ends[1], PRESTO__RING_RELEASE, &id, sizeof id);
    end_writer(&self, PRESTO_ERR_CORRUPT);
    close(ends[1]);
}
END_TEST

int main(void) {
    const TTest *const tests[] = {
        memory_that_could_shrink_or_is_too_small_is_refused,
        messages_that_cannot_be_are_refused,
        the_words_of_a_failure_cannot_steer_a_terminal,
        a_reader_that_gives_back_what_it_has_not_is_refused,
    };
    return presto_check_main("ring_protocol", tests, sizeof tests / sizeof tests[0], 120);
}
