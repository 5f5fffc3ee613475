/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE /* F_GET_SEALS */

#include "ring_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../../base/clock_internal.h"
#include "../../base/options_internal.h"

enum { LOOK_MS = 20 };

struct presto_ring_reader {
    presto__ring_link link;
    presto__ring_map *map; /* NULL until the writer has said hello */
    uint64_t samples, batches;
    presto_status ended; /* PRESTO_OK: it goes on; else what every call returns */
    presto_error why;
};

/* ---- the memory ---- */

static void map_drop(presto__ring_map *map) {
    pthread_mutex_lock(&map->lock);
    bool is_last = --map->refs == 0;
    pthread_mutex_unlock(&map->lock);
    if (!is_last)
        return;
    (void)munmap((void *)(uintptr_t)map->memory, (size_t)map->bytes);
    pthread_mutex_destroy(&map->lock);
    free(map);
}

static presto_status map_new(int memory_fd, uint64_t bytes, int fd, presto__ring_map **map_out,
                             presto_error *err) {
    struct stat is;
    int seals = fcntl(memory_fd, F_GET_SEALS);
    if (seals < 0 || (seals & F_SEAL_SHRINK) == 0 || fstat(memory_fd, &is) != 0 || bytes == 0 ||
        (uint64_t)is.st_size < bytes)
        return presto_fail(err, PRESTO_ERR_CORRUPT, PRESTO_NO_OFFSET,
                           "the writer's memory is smaller than it says, or may become so");
    presto__ring_map *map = calloc(1, sizeof *map);
    if (map == NULL)
        return presto_fail_memory(err, sizeof *map);
    void *memory = mmap(NULL, (size_t)bytes, PROT_READ, MAP_SHARED, memory_fd, 0);
    if (memory == MAP_FAILED || pthread_mutex_init(&map->lock, NULL) != 0) {
        presto_status status = presto_fail_errno(err, errno, NULL, "cannot map the ring");
        if (memory != MAP_FAILED)
            (void)munmap(memory, (size_t)bytes);
        free(map);
        return status;
    }
    map->memory = memory;
    map->bytes = bytes;
    map->refs = 1;
    map->fd = fd;
    *map_out = map;
    return PRESTO_OK;
}

/* ---- open ---- */

static presto_status find_writer(const presto_ring_options *options, presto__ring_link *link,
                                 presto_error *err) {
    uint64_t until_ns = presto__clock_ns() + options->wait_ns;
    for (;;) {
        presto_error missing;
        presto_status status = presto__ring_connect(options->path, &link->fd, &missing);
        if (status != PRESTO_ERR_NOT_FOUND || presto__clock_ns() >= until_ns) {
            if (status < 0 && err != NULL)
                *err = missing;
            return status;
        }
        PRESTO_TRY(presto__ring_may_wait(link, err));
        (void)poll(NULL, 0, LOOK_MS);
    }
}

static presto_status send_hello(presto__ring_link *link, presto_error *err) {
    presto__ring_head head = {PRESTO__RING_HELLO, sizeof(presto__ring_hello)};
    presto__ring_hello hello = {.version = PRESTO__RING_VERSION};
    memcpy(hello.magic, PRESTO__RING_MAGIC, sizeof hello.magic);
    struct iovec parts[] = {{&head, sizeof head}, {&hello, sizeof hello}};
    return presto__ring_send(link, parts, 2, -1, err);
}

static presto_status meet(presto_ring_reader *self, presto_error *err) {
    presto__ring_head head = {0};
    presto_span body = {0};
    presto__ring_hello hello;
    PRESTO_TRY(presto__ring_check_peer(self->link.fd, err));
    presto_status status = send_hello(&self->link, err);
    if (status == PRESTO_OK)
        status = presto__ring_take(&self->link, true, &head, &body, err);
    if (status == PRESTO_END)
        return presto_fail(err, PRESTO_ERR_BUSY, PRESTO_NO_OFFSET,
                           "the writer has another reader, or ended before it began");
    PRESTO_TRY(status);
    if (head.kind != PRESTO__RING_HELLO || body.bytes != sizeof hello)
        return presto_fail(err, PRESTO_ERR_CORRUPT, PRESTO_NO_OFFSET,
                           "this is no writer of a ring");
    memcpy(&hello, body.data, sizeof hello);
    if (memcmp(hello.magic, PRESTO__RING_MAGIC, sizeof hello.magic) != 0)
        return presto_fail(err, PRESTO_ERR_CORRUPT, PRESTO_NO_OFFSET,
                           "this is no writer of a ring");
    if (hello.version != PRESTO__RING_VERSION)
        return presto_fail(err, PRESTO_ERR_UNSUPPORTED, PRESTO_NO_OFFSET,
                           "the writer's protocol has version %ju, not %d",
                           (uintmax_t)hello.version, PRESTO__RING_VERSION);
    return map_new(self->link.memory, hello.ring_bytes, self->link.fd, &self->map, err);
}

presto_status presto_ring_reader_open(const presto_ring_options *given,
                                      presto_ring_reader **reader_out, presto_error *err) {
    presto_ring_options options;
    presto_ring_options_defaults(&options);
    presto_status status = presto__options_take(&options, sizeof options, given, err);
    presto_ring_reader *self = calloc(1, sizeof *self);
    if (self == NULL) {
        if (options.fd >= 0)
            (void)close(options.fd);
        return presto_fail_memory(err, sizeof *self);
    }
    self->link = (presto__ring_link){.fd = options.fd,
                                     .memory = -1,
                                     .should_stop = options.should_stop,
                                     .should_stop_user = options.should_stop_user};
    if (status >= 0 && (options.path == NULL) == (options.fd < 0))
        status = presto_fail(err, PRESTO_ERR_ARGUMENT, PRESTO_NO_OFFSET,
                             "a ring has either a path or a descriptor");
    if (status >= 0 && options.path != NULL)
        status = find_writer(&options, &self->link, err);
    if (status >= 0)
        status = meet(self, err);
    if (status >= 0)
        *reader_out = self;
    else
        presto_ring_reader_free(self);
    return status;
}

void presto_ring_reader_free(presto_ring_reader *self) {
    if (self == NULL)
        return;
    if (self->link.fd >= 0)
        (void)shutdown(self->link.fd, SHUT_RDWR); /* also for copies in other processes */
    if (self->map != NULL) {
        pthread_mutex_lock(&self->map->lock);
        self->map->fd = -1;
        pthread_mutex_unlock(&self->map->lock);
        map_drop(self->map);
    }
    presto__ring_link_done(&self->link);
    free(self);
}

/* ---- batches ---- */

static presto_status take_batch(presto_ring_reader *self, presto_span body,
                                presto_batch **batch_out, presto_error *err) {
    presto__ring_map *map = self->map;
    presto__ring_item *item;
    PRESTO_TRY(presto__ring_parse(body, map->memory, map->bytes, &item, err));
    item->map = map;
    pthread_mutex_lock(&map->lock);
    map->refs++;
    map->held++;
    pthread_mutex_unlock(&map->lock);
    self->batches++;
    self->samples += item->shown.rows;
    *batch_out = &item->shown;
    return PRESTO_OK;
}

/* The socket's buffer holds more than all batches' releases, so this does not wait. If the writer
 * is gone, nobody needs to know. */
static void tell_released(int fd, uint64_t id) {
    struct {
        presto__ring_head head;
        uint64_t id;
    } message = {{PRESTO__RING_RELEASE, sizeof id}, id};
    (void)send(fd, &message, sizeof message, MSG_NOSIGNAL | MSG_DONTWAIT);
}

void presto_ring_batch_release(presto_batch *batch) {
    if (batch == NULL)
        return;
    presto__ring_item *item = (presto__ring_item *)(void *)batch;
    presto__ring_map *map = item->map;
    pthread_mutex_lock(&map->lock);
    map->held--;
    map->released++;
    if (map->fd >= 0)
        tell_released(map->fd, item->id);
    pthread_mutex_unlock(&map->lock);
    presto__ring_item_free(item);
    map_drop(map);
}

/* The writer waits for room. PRESTO_OK: it will get some without the caller's help. */
static presto_status check_full(const presto_ring_reader *self, presto_span body,
                                presto_error *err) {
    presto__ring_full full;
    if (body.bytes != sizeof full)
        return presto_fail(err, PRESTO_ERR_CORRUPT, PRESTO_NO_OFFSET,
                           "a message of the ring's writer has a wrong size");
    memcpy(&full, body.data, sizeof full);
    pthread_mutex_lock(&self->map->lock);
    size_t held = self->map->held;
    bool is_stuck = held > 0 && full.released >= self->map->released;
    pthread_mutex_unlock(&self->map->lock);
    if (!is_stuck)
        return PRESTO_OK;
    return presto_fail(err, PRESTO_ERR_BUSY, PRESTO_NO_OFFSET,
                       "%zu batch%s held, and the ring has no room for the next one of %ju "
                       "bytes: release some, copy what is kept, or make the ring larger",
                       held, held == 1 ? " is" : "es are", (uintmax_t)full.bytes);
}

static presto_status check_end(const presto_ring_reader *self, presto_span body,
                               presto_error *err) {
    presto__ring_end end;
    if (body.bytes == sizeof end) {
        memcpy(&end, body.data, sizeof end);
        if (end.batches == self->batches && end.samples == self->samples)
            return PRESTO_END;
    }
    return presto_fail(err, PRESTO_ERR_CORRUPT, PRESTO_NO_OFFSET,
                       "the end of the ring tells of other batches than have come");
}

/* Remember why there is no more. */
static presto_status end_with(presto_ring_reader *self, presto_status status,
                              const presto_error *why) {
    self->ended = status;
    if (status < 0)
        self->why = *why;
    return status;
}

static presto_status next(presto_ring_reader *self, presto_batch **batch_out, presto_error *err) {
    for (;;) {
        presto__ring_head head = {0};
        presto_span body = {0};
        presto_status status = presto__ring_take(&self->link, true, &head, &body, err);
        if (status == PRESTO_END)
            status = presto_fail(err, PRESTO_ERR_TRUNCATED, PRESTO_NO_OFFSET,
                                 "the writer of the ring is gone after %ju batch%s, without an end",
                                 (uintmax_t)self->batches, self->batches == 1 ? "" : "es");
        if (status == PRESTO_ERR_STOPPED)
            return status;
        if (status < 0)
            return end_with(self, status, err);
        if (head.kind == PRESTO__RING_BATCH) {
            status = take_batch(self, body, batch_out, err);
            return status == PRESTO_OK ? status : end_with(self, status, err);
        }
        if (head.kind == PRESTO__RING_FULL) {
            status = check_full(self, body, err);
            if (status == PRESTO_ERR_BUSY)
                return status;
        } else if (head.kind == PRESTO__RING_END) {
            status = check_end(self, body, err);
        } else if (head.kind == PRESTO__RING_ERROR) {
            status = presto__ring_parse_error(body, err);
        } else {
            status =
                presto_fail(err, PRESTO_ERR_CORRUPT, PRESTO_NO_OFFSET,
                            "the ring's writer sent a message of kind %ju", (uintmax_t)head.kind);
        }
        if (status != PRESTO_OK)
            return end_with(self, status, err);
    }
}

presto_status presto_ring_reader_next(presto_ring_reader *self, presto_batch **batch_out,
                                      presto_error *err) {
    presto_error own;
    presto_status status = self->ended;
    if (status == PRESTO_OK)
        status = next(self, batch_out, &own);
    else
        own = self->why;
    if (status < 0 && err != NULL)
        *err = own;
    return status;
}
