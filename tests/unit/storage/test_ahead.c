/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reading ahead from a server of this process: what is read is what the object has, in whatever order
 * it is told, read, cancelled and closed, and whatever fails on the way.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "../base/clock_internal.h"
#include "../base/rng_internal.h"
#include "../base/stop_internal.h"
#include "presto_check.h"
#include "storage_internal.h"

enum { SIZE = 3000000, LIMIT = 1 << 20 };

/* ---- the kernel ---- */

static atomic_int unwatched_left; /* so many of the next sockets cannot be waited for */

/* In the place of the C library's. */
int epoll_ctl(int epoll, int what, int fd, struct epoll_event *event) {
    if (what == EPOLL_CTL_ADD && unwatched_left > 0) {
        unwatched_left--;
        errno = ENOSPC;
        return -1;
    }
    return (int)syscall(SYS_epoll_ctl, epoll, what, fd, event);
}

/* ---- the server ---- */

typedef enum fault { FINE, SLOW_DOWN, CUT, SILENT, WRONG_RANGE, FAULTS } fault;

static int listener = -1, port;
static atomic_int fault_percent, version, delay_ms, at_once, most_at_once, asked, slow_every;
/* No request is answered before so many have come and wait at once; after a minute, any is. */
static atomic_int gate;
#define GATE_MS 60000
static atomic_int short_left, shifted_left; /* so many of the next answers */
static atomic_bool hangs, is_slow_down, is_over;

static uint8_t byte_at(uint64_t i) {
    return (uint8_t)((i * 2654435761u) >> 13);
}

static void pause_ms(int ms) {
    const struct timespec wait = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000L};
    (void)nanosleep(&wait, NULL);
}

static bool send_all(int fd, const void *data, size_t bytes) {
    const char *at = data;
    while (bytes > 0) {
        ssize_t sent = send(fd, at, bytes, MSG_NOSIGNAL);
        if (sent <= 0)
            return false;
        at += sent;
        bytes -= (size_t)sent;
    }
    return true;
}

static fault draw(presto_rng *rng) {
    if (is_slow_down)
        return SLOW_DOWN;
    return presto_rng_below(rng, 100) < (uint64_t)fault_percent
               ? (fault)(1 + presto_rng_below(rng, FAULTS - 1))
               : FINE;
}

/* False: the connection ends. */
static bool answer(int fd, const char *request, presto_rng *rng) {
    static const char busy[] = "HTTP/1.1 503 Busy\r\nContent-Length: 39\r\n\r\n"
                               "<Error><Code>SlowDown</Code></Error>...";
    char head[512], etag[32], wanted[128] = "";
    uint64_t first = 0, last = 0;
    const char *range = strcasestr(request, "\nrange: bytes=");
    const char *match = strcasestr(request, "\nif-match: ");
    if (range != NULL)
        (void)sscanf(range + 14, "%" SCNu64 "-%" SCNu64, &first, &last);
    if (match != NULL)
        (void)sscanf(match + 11, "%127[^\r]", wanted);
    last = last < SIZE ? last : SIZE - 1;
    snprintf(etag, sizeof etag, "\"v%d\"", atomic_load(&version));
    if (strstr(request, "/none") != NULL)
        return send_all(fd, "HTTP/1.1 404 No\r\nContent-Length: 0\r\n\r\n", 38);
    fault what = draw(rng);
    if (what == SLOW_DOWN)
        return send_all(fd, busy, sizeof busy - 1);
    if (what == SILENT)
        return false;
    if (wanted[0] != '\0' && strcmp(wanted, etag) != 0)
        return send_all(fd, "HTTP/1.1 412 Other\r\nContent-Length: 0\r\n\r\n", 41);
    if (first > 0 && short_left > 0) { /* fewer than was asked for, and it says so */
        short_left--;
        last = first + (last - first) / 2;
    }
    if (first == 0 && shifted_left > 0) {
        shifted_left--;
        first++;
        last++;
    }
    size_t bytes = (size_t)(last - first + 1);
    uint8_t *body = malloc(bytes);
    if (body == NULL)
        return false;
    for (size_t i = 0; i < bytes; i++)
        body[i] = byte_at(first + i);
    uint64_t said = first + (what == WRONG_RANGE && first > 0 ? 1 : 0);
    int head_bytes = snprintf(head, sizeof head,
                              "HTTP/1.1 206 Part\r\nETag: %s\r\nContent-Range: bytes %ju-%ju/%d\r\n"
                              "Content-Length: %zu\r\n\r\n",
                              etag, (uintmax_t)said, (uintmax_t)last, SIZE, bytes);
    bool goes_on = send_all(fd, head, (size_t)head_bytes) &&
                   send_all(fd, body, what == CUT ? bytes / 2 : bytes) && what != CUT;
    free(body);
    return goes_on;
}

static void *serve(void *argument) {
    int fd = (int)(intptr_t)argument;
    char request[4096];
    size_t bytes = 0;
    static atomic_int seed;
    presto_rng rng;
    presto__rng_init(&rng, &(presto__rng_key){.seed = (uint64_t)atomic_fetch_add(&seed, 1)});
    while (!is_over) {
        ssize_t got = recv(fd, request + bytes, sizeof request - 1 - bytes, 0);
        if (got <= 0)
            break;
        bytes += (size_t)got;
        request[bytes] = '\0';
        if (strstr(request, "\r\n\r\n") == NULL)
            continue;
        bytes = 0;
        atomic_fetch_add(&asked, 1);
        int now = atomic_fetch_add(&at_once, 1) + 1, most = most_at_once;
        while (now > most && !atomic_compare_exchange_weak(&most_at_once, &most, now)) {}
        while (hangs && !is_over)
            pause_ms(1);
        for (int ms = 0; most_at_once < gate; ms++) {
            pause_ms(1);
            if (ms == GATE_MS)
                gate = 0;
        }
        if (delay_ms > 0)
            pause_ms(slow_every > 0 && asked % slow_every == 0 ? 50 * delay_ms : delay_ms);
        bool goes_on = answer(fd, request, &rng);
        atomic_fetch_sub(&at_once, 1);
        if (!goes_on)
            break;
    }
    close(fd);
    return NULL;
}

static void *welcome(void *unused) {
    (void)unused;
    int fd;
    pthread_t thread;
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    while ((fd = accept(listener, NULL, NULL)) >= 0)
        if (pthread_create(&thread, &attributes, serve, (void *)(intptr_t)fd) != 0)
            close(fd);
    pthread_attr_destroy(&attributes);
    return NULL;
}

static char url[64];
static presto_error err;
static pthread_t server;

static void set_up(void) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t bytes = sizeof address;
    listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ck_assert_int_eq(bind(listener, (struct sockaddr *)&address, sizeof address), 0);
    ck_assert_int_eq(listen(listener, 512), 0);
    ck_assert_int_eq(getsockname(listener, (struct sockaddr *)&address, &bytes), 0);
    port = ntohs(address.sin_port);
    ck_assert_int_eq(pthread_create(&server, NULL, welcome, NULL), 0);
    snprintf(url, sizeof url, "http://127.0.0.1:%d/object", port);
    setenv("no_proxy", "127.0.0.1", 1);
}

static void tear_down(void) {
    is_over = true;
    hangs = false;
    shutdown(listener, SHUT_RDWR);
    pthread_join(server, NULL);
    close(listener);
}

/* ---- tests ---- */

static presto__object object;

static presto__ahead *begin(void) {
    presto__ahead *ahead;
    presto__object_info info;
    set_up();
    ck_assert_ok(presto__object_open(url, &object, &info, &err), &err);
    ck_assert_uint_eq(info.bytes, SIZE);
    ck_assert_ok(presto__ahead_new(LIMIT, &ahead, &err), &err);
    ck_assert_ptr_null(presto__ahead_bind(ahead));
    return ahead;
}

static presto_status read_at(uint64_t offset, size_t bytes, uint8_t *data, presto_error *why) {
    size_t got;
    presto_status status =
        presto__read_at((presto__object_place){object, url, offset}, data, bytes, &got, why);
    if (status < 0)
        return status;
    ck_assert_uint_eq(got, bytes < SIZE - offset ? bytes : SIZE - offset);
    for (size_t i = 0; i < got; i++)
        ck_assert_msg(data[i] == byte_at(offset + i), "byte %zu", (size_t)offset + i);
    return PRESTO_OK;
}

START_TEST(ranges_that_were_told_are_requested_together) {
    uint8_t data[1000];
    presto__ahead *ahead = begin();
    gate = 8;
    for (uint64_t i = 0; i < 200; i++)
        presto__object_will_read(object, 20000 + i * 10000, sizeof data);
    for (uint64_t i = 0; i < 200; i++)
        ck_assert_ok(read_at(20000 + i * 10000, sizeof data, data, &err), &err);
    ck_assert_int_eq(gate, 8);
    /* None was requested twice, but what took long on a busy machine; and such a request may be ended before it
     * has come. */
    ck_assert_int_ge(asked, 201);
    ck_assert_int_le(asked, 201 + (int)presto__ahead_count(ahead).seconds);
    ck_assert_uint_eq(presto__ahead_bytes(ahead), 0);
    presto__object_close(&object);
    presto__ahead_free(ahead);
    tear_down();
}
END_TEST

START_TEST(a_long_range_is_several_requests_and_no_more_than_the_limit_is_held) {
    static uint8_t data[SIZE];
    presto__ahead *ahead = begin();
    presto__object_will_read(object, 0, SIZE);
    for (uint64_t at = 0; at < SIZE; at += 100000)
        ck_assert_ok(read_at(at, 100000, data, &err), &err);
    for (uint64_t i = 0; i < 290; i++) /* nobody reads these */
        presto__object_will_read(object, i * 10000, 10000);
    for (int i = 0; i < 100; i++) {
        ck_assert_uint_le(presto__ahead_bytes(ahead), LIMIT);
        pause_ms(1);
    }
    ck_assert_ok(read_at(2890000, 100000, data, &err), &err); /* told, but behind the limit */
    presto__ahead_free(ahead);
    presto__object_close(&object);
    tear_down();
}
END_TEST

static atomic_int stops;

static bool should_stop(void *unused) {
    (void)unused;
    return stops != 0;
}

START_TEST(who_waits_can_be_stopped_and_all_can_be_closed_meanwhile) {
    uint8_t data[1000];
    for (int close_first = 0; close_first < 2; close_first++) {
        presto__stop_hook pass;
        is_over = false;
        presto__ahead *ahead = begin();
        hangs = true;
        for (uint64_t i = 0; i < 300; i++)
            presto__object_will_read(object, 20000 + i * 3000, 1000);
        presto__object_will_open(url, 1);
        stops = 1;
        presto__stop_scope before = presto__stop_enter(&pass, should_stop, NULL);
        ck_assert_status(read_at(20000, 1000, data, &err), PRESTO_ERR_STOPPED, &err);
        ck_assert_status(presto__stop_leave(&pass, before, PRESTO_OK, &err), PRESTO_ERR_STOPPED,
                         &err);
        uint64_t start = presto__clock_ns();
        if (close_first)
            presto__object_close(&object);
        (void)presto__ahead_bind(NULL);
        presto__ahead_free(ahead);
        if (!close_first)
            presto__object_close(&object);
        ck_assert_uint_lt(presto__clock_ns() - start, UINT64_C(20000000000)); /* below a silence */
        tear_down();
    }
}
END_TEST

START_TEST(an_object_that_is_replaced_meanwhile_is_an_error) {
    uint8_t data[1000];
    presto__ahead *ahead = begin();
    presto__object_will_read(object, 20000, 1000);
    ck_assert_ok(read_at(20000, 1000, data, &err), &err);
    version = 1;
    for (uint64_t i = 1; i < 50; i++)
        presto__object_will_read(object, 20000 + i * 3000, 1000);
    for (uint64_t i = 1; i < 50; i++) {
        ck_assert_status(read_at(20000 + i * 3000, 1000, data, &err), PRESTO_ERR_IO, &err);
        ck_assert_ptr_nonnull(strstr(err.message, "replaced or changed"));
        ck_assert_str_eq(err.file, url);
    }
    presto__ahead_free(ahead);
    presto__object_close(&object);
    tear_down();
}
END_TEST

START_TEST(a_server_that_has_too_much_to_do_is_not_asked_for_all_that_was_told) {
    uint8_t data[1000];
    presto__ahead *ahead = begin();
    is_slow_down = true;
    for (uint64_t i = 0; i < 290; i++)
        presto__object_will_read(object, 20000 + i * 10000, 1000);
    ck_assert_status(read_at(20000, 1000, data, &err), PRESTO_ERR_IO, &err);
    ck_assert_ptr_nonnull(strstr(err.message, "503 SlowDown after 10 tries"));
    ck_assert_int_lt(asked, 80);
    is_slow_down = false; /* it recovers: so does the read-ahead */
    for (uint64_t i = 0; i < 290; i++)
        ck_assert_ok(read_at(20000 + i * 10000, 1000, data, &err), &err);
    presto__ahead_free(ahead);
    presto__object_close(&object);
    tear_down();
}
END_TEST

START_TEST(objects_that_will_be_opened_are_asked_for_together) {
    presto__ahead *ahead = begin();
    presto__object others[50];
    presto__object_info info;
    char name[80];
    gate = 8;
    for (int i = 0; i < 50; i++) {
        snprintf(name, sizeof name, "%s%d", url, i);
        presto__object_will_open(name, 1);
        presto__object_will_open(name, 1);
    }
    snprintf(name, sizeof name, "http://127.0.0.1:%d/none", port);
    presto__object_will_open(name, 1);
    presto__object missing;
    ck_assert_status(presto__object_open(name, &missing, &info, &err), PRESTO_ERR_NOT_FOUND, &err);
    ck_assert_str_eq(err.file, name);
    for (int i = 0; i < 50; i++) {
        snprintf(name, sizeof name, "%s%d", url, i);
        ck_assert_ok(presto__object_open(name, &others[i], &info, &err), &err);
        ck_assert_uint_eq(info.bytes, SIZE);
        presto__object_close(&others[i]);
    }
    ck_assert_int_eq(asked, 52);
    ck_assert_int_eq(gate, 8);
    presto__ahead_free(ahead);
    presto__object_close(&object);
    tear_down();
}
END_TEST

typedef struct hostile {
    presto__ahead *ahead;
    uint64_t seed;
} hostile;

/* Tells, and reads what was told, other things, or nothing. */
static void *read_anything(void *user) {
    const hostile *of = user;
    static _Thread_local uint8_t data[70000];
    presto_rng rng;
    presto_error why;
    (void)presto__ahead_bind(of->ahead);
    presto__rng_init(&rng, &(presto__rng_key){.seed = of->seed});
    for (int round = 0; round < 60; round++) {
        uint64_t told[16];
        size_t bytes[16];
        for (int i = 0; i < 16; i++) {
            told[i] = presto_rng_below(&rng, SIZE);
            bytes[i] = 1 + (size_t)presto_rng_below(&rng, i % 4 == 0 ? 70000 : 3000);
            presto__object_will_read_of(object, told[i], bytes[i],
                                        1 + presto_rng_below(&rng, bytes[i]));
        }
        for (int i = 0; i < 16; i++) {
            uint64_t kind = presto_rng_below(&rng, 4);
            uint64_t at = kind == 0 ? presto_rng_below(&rng, SIZE) : told[15 - i];
            if (kind < 3)
                ck_assert_ok(read_at(at, bytes[15 - i], data, &why), &why);
        }
    }
    return NULL;
}

START_TEST(any_order_of_anything_gives_what_the_object_has_while_a_fifth_fails) {
    enum { THREADS = 4 };
    uint64_t seed = presto_check_seed();
    pthread_t threads[THREADS];
    hostile each[THREADS];
    presto__ahead *ahead = begin();
    fault_percent = 20;
    for (uint64_t i = 0; i < THREADS; i++) {
        each[i] = (hostile){ahead, seed + i};
        ck_assert_int_eq(pthread_create(&threads[i], NULL, read_anything, &each[i]), 0);
    }
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    ck_assert_uint_le(presto__ahead_bytes(ahead), LIMIT + 70000 * THREADS);
    presto__ahead_free(ahead);
    presto__object_close(&object);
    tear_down();
}
END_TEST

START_TEST(what_takes_long_is_requested_a_second_time_but_seldom) {
    uint8_t data[1000];
    presto__ahead *ahead = begin();
    delay_ms = 20;
    slow_every = 100;
    for (uint64_t i = 0; i < 1400; i++) {
        for (uint64_t told = i % 40 == 0 ? i : i + 40; told < i + 41; told++)
            if (i % 40 == 0 && told < 1400)
                presto__object_will_read(object, 20000 + told * 2000, 1000);
        ck_assert_ok(read_at(20000 + i * 2000, 1000, data, &err), &err);
    }
    presto__ahead_counts counts = presto__ahead_count(ahead);
    ck_assert_uint_le(counts.seconds * 100, 3 * counts.requests);
    ck_assert_uint_gt(counts.seconds_first, 2);
    presto__object_close(&object); /* those that are slow are under way still */
    presto__ahead_free(ahead);
    tear_down();
}
END_TEST

/* TSan ends a child of fork that starts a thread; ASan's allocator may be locked in one for ever. */
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
#define MAY_NOT_FORK true
#else
#define MAY_NOT_FORK false
#endif

START_TEST(a_child_of_fork_reads_what_its_parent_had_requested) {
    if (MAY_NOT_FORK)
        return;
    uint8_t data[1000];
    presto__ahead *ahead = begin();
    hangs = true;
    for (uint64_t i = 0; i < 20; i++)
        presto__object_will_read(object, 20000 + i * 3000, 1000);
    pause_ms(20);
    pid_t child = fork();
    if (child == 0) { /* the server is the parent's */
        alarm(20);
        bool is_fine = true;
        size_t got;
        for (uint64_t i = 0; i < 20; i++)
            is_fine = is_fine &&
                      presto__read_at((presto__object_place){object, url, 20000 + i * 3000}, data,
                                      sizeof data, &got, NULL) == PRESTO_OK &&
                      data[999] == byte_at(20000 + i * 3000 + 999);
        presto__object_close(&object);
        presto__ahead_free(ahead);
        _exit(is_fine ? 0 : 1);
    }
    hangs = false;
    int status;
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_int_eq(status, 0);
    for (uint64_t i = 0; i < 20; i++)
        ck_assert_ok(read_at(20000 + i * 3000, 1000, data, &err), &err);
    presto__ahead_free(ahead);
    presto__object_close(&object);
    tear_down();
}
END_TEST

START_TEST(an_answer_of_fewer_bytes_than_were_asked_for_is_not_taken) {
    uint8_t data[1000];
    presto__ahead *ahead = begin();
    short_left = 1;
    presto__object_will_read(object, 20000, 1000);
    ck_assert_ok(read_at(20000, 1000, data, &err), &err);
    ck_assert_int_eq(short_left, 0);
    presto__ahead_free(ahead);
    presto__object_close(&object);
    tear_down();
}
END_TEST

START_TEST(a_socket_that_cannot_be_waited_for_is_an_error_that_may_pass) {
    uint8_t data[1000];
    presto__ahead *ahead = begin();
    unwatched_left = 3;
    presto__object_will_read(object, 20000, 1000);
    presto__object_will_read(object, 90000, 1000);
    ck_assert_ok(read_at(20000, 1000, data, &err), &err);
    ck_assert_ok(read_at(90000, 1000, data, &err), &err);
    ck_assert_ok(read_at(50000, 1000, data, &err), &err);
    ck_assert_int_eq(unwatched_left, 0);
    presto__ahead_free(ahead);
    presto__object_close(&object);
    tear_down();
}
END_TEST

START_TEST(the_beginning_of_an_object_is_not_what_stands_behind_it) {
    uint8_t data[100];
    char name[80];
    size_t got;
    presto__object other;
    presto__object_info info;
    presto__ahead *ahead = begin();
    snprintf(name, sizeof name, "%s2", url);
    shifted_left = 1;
    presto__object_will_open(name, 1);
    ck_assert_ok(presto__object_open(name, &other, &info, &err), &err);
    ck_assert_int_eq(shifted_left, 0);
    ck_assert_ok(
        presto__read_at((presto__object_place){other, name, 0}, data, sizeof data, &got, &err),
        &err);
    for (size_t i = 0; i < sizeof data; i++)
        ck_assert_uint_eq(data[i], byte_at(i));
    presto__object_close(&other);
    presto__ahead_free(ahead);
    presto__object_close(&object);
    tear_down();
}
END_TEST

/* Each thread may have one range beside the limit, not one that waits for each that it has begun. */
START_TEST(ranges_of_which_a_part_was_read_take_no_more_than_the_limit) {
    enum { OTHERS = 6, LARGE = SIZE - 20000, PIECE = 100000 };
    static uint8_t data[PIECE];
    presto__object others[OTHERS];
    presto__object_info info;
    presto__ahead *ahead = begin();
    for (int i = 0; i < OTHERS; i++) {
        char name[80];
        snprintf(name, sizeof name, "%s%d", url, i);
        ck_assert_ok(presto__object_open(name, &others[i], &info, &err), &err);
        presto__object_will_read(others[i], 20000, LARGE);
    }
    for (size_t at = 0; at < LARGE; at += PIECE)
        for (int i = 0; i < OTHERS; i++) {
            size_t got, bytes = LARGE - at < PIECE ? LARGE - at : PIECE;
            ck_assert_ok(presto__read_at((presto__object_place){others[i], url, 20000 + at}, data,
                                         bytes, &got, &err),
                         &err);
            for (size_t k = 0; k < bytes; k++)
                ck_assert_uint_eq(data[k], byte_at(20000 + at + k));
            ck_assert_uint_le(presto__ahead_bytes(ahead), LIMIT + (4 << 20));
        }
    ck_assert_uint_eq(presto__ahead_bytes(ahead), 0);
    for (int i = 0; i < OTHERS; i++)
        presto__object_close(&others[i]);
    presto__ahead_free(ahead);
    presto__object_close(&object);
    tear_down();
}
END_TEST

START_TEST(what_an_open_object_keeps_is_not_waited_for) {
    static uint8_t data[100000];
    presto__ahead *ahead = begin();
    int before = asked;
    presto__object_will_read(object, 1000, 1000);
    pause_ms(50);
    ck_assert_int_eq(asked, before);
    presto__object_will_read(object, 0, sizeof data);
    ck_assert_ok(read_at(0, 1000, data, &err), &err);
    ck_assert_ok(read_at(1000, 3000, data, &err), &err);
    ck_assert_ok(read_at(4000, sizeof data - 4000, data, &err), &err);
    ck_assert_int_eq(asked, before + 1);
    ck_assert_uint_eq(presto__ahead_bytes(ahead), 0);
    presto__ahead_free(ahead);
    presto__object_close(&object);
    tear_down();
}
END_TEST

static void *read_what_hangs(void *ahead) {
    static uint8_t data[1000];
    presto_error why;
    (void)presto__ahead_bind(ahead);
    ck_assert_ok(read_at(40000, sizeof data, data, &why), &why);
    return NULL;
}

START_TEST(a_child_of_fork_has_the_ranges_of_two_and_a_thread_that_waited) {
    if (MAY_NOT_FORK)
        return;
    uint8_t data[1000];
    pthread_t reader;
    presto__ahead *ahead = begin(), *second;
    presto__object_will_read(object, 20000, 1000);
    while (asked < 2)
        pause_ms(1);
    pause_ms(20); /* it has come */
    hangs = true;
    ck_assert_ok(presto__ahead_new(LIMIT, &second, &err), &err);
    (void)presto__ahead_bind(second);
    presto__object_will_read(object, 30000, 1000);
    presto__object_will_read(object, 40000, 1000);
    ck_assert_int_eq(pthread_create(&reader, NULL, read_what_hangs, second), 0);
    pause_ms(50);
    pid_t child = fork();
    if (child == 0) {
        alarm(20);
        size_t got;
        bool is_fine = presto__read_at((presto__object_place){object, url, 30000}, data,
                                       sizeof data, &got, NULL) == PRESTO_OK &&
                       data[999] == byte_at(30999);
        presto__object_close(&object);
        presto__ahead_free(second);
        presto__ahead_free(ahead);
        _exit(is_fine ? 0 : 1);
    }
    pause_ms(50);
    hangs = false;
    int status;
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_int_eq(status, 0);
    pthread_join(reader, NULL);
    (void)presto__ahead_bind(NULL);
    presto__ahead_free(second);
    presto__ahead_free(ahead);
    presto__object_close(&object);
    tear_down();
}
END_TEST

int main(void) {
    const TTest *const tests[] = {
        ranges_that_were_told_are_requested_together,
        a_long_range_is_several_requests_and_no_more_than_the_limit_is_held,
        who_waits_can_be_stopped_and_all_can_be_closed_meanwhile,
        an_object_that_is_replaced_meanwhile_is_an_error,
        a_server_that_has_too_much_to_do_is_not_asked_for_all_that_was_told,
        objects_that_will_be_opened_are_asked_for_together,
        any_order_of_anything_gives_what_the_object_has_while_a_fifth_fails,
        what_takes_long_is_requested_a_second_time_but_seldom,
        a_child_of_fork_reads_what_its_parent_had_requested,
        an_answer_of_fewer_bytes_than_were_asked_for_is_not_taken,
        a_socket_that_cannot_be_waited_for_is_an_error_that_may_pass,
        the_beginning_of_an_object_is_not_what_stands_behind_it,
        ranges_of_which_a_part_was_read_take_no_more_than_the_limit,
        what_an_open_object_keeps_is_not_waited_for,
        a_child_of_fork_has_the_ranges_of_two_and_a_thread_that_waited,
    };
    return presto_check_main("ahead", tests, sizeof tests / sizeof tests[0], 120);
}
