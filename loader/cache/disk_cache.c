/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The disk cache as workers see it: looking up and reading entries; its life.
 *
 * A block that fails a check is removed, and its samples are computed again. No fault of the cache
 * ever fails a stream.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include <presto/numbers.h>

#include "../../base/checked_internal.h"
#include "../../base/clock_internal.h"
#include "../../base/folder_internal.h"
#include "../../base/memory_internal.h"
#include "disk_internal.h"

#define LEAST_LIMIT_BYTES ((uint64_t)64 << 10)
#define LIMIT_BLOCKS 64 /* a block takes limit / LIMIT_BLOCKS, within these bounds: */
#define LEAST_BLOCK_BYTES ((uint64_t)64 << 10)
#define RUN_BYTES ((size_t)256 << 10) /* read at a time: stays in the second-level cache */
#define TOUCH_NS UINT64_C(10000000000)
#define MOST_OPEN 512

/* ---- reading ---- */

static void let_go(presto__disk_worker *worker) {
    for (size_t i = 0; i < worker->held_count; i++)
        presto__disk_block_release(worker->disk, worker->held[i]);
    worker->held_count = 0;
    worker->run_of = NULL;
    worker->count = 0;
}

void presto__disk_flush(presto__disk_worker *worker) {
    let_go(worker);
    presto__disk_store(worker);
}

void presto__disk_find(presto__disk_worker *worker, const uint64_t *numbers, size_t count) {
    presto__disk *disk = worker->disk;
    size_t missing = 0;
    let_go(worker);
    worker->numbers = numbers;
    worker->count = count < worker->most ? count : worker->most;
    pthread_rwlock_rdlock(&disk->index_lock);
    for (size_t i = 0; i < worker->count; i++) {
        uint64_t entry = disk->entries[numbers[i]];
        presto__disk_block *block = entry == 0 ? NULL : presto__disk_block_of(disk, entry);
        worker->hits[i] = (presto__disk_hit){.block = block};
        if (block == NULL) {
            missing++;
            continue;
        }
        const presto__disk_place *place = &block->places[(uint32_t)entry];
        worker->hits[i].at = place->at;
        worker->hits[i].units = place->units;
        if (worker->held_count == 0 || worker->held[worker->held_count - 1] != block) {
            atomic_fetch_add_explicit(&block->refs, 1, memory_order_relaxed);
            worker->held[worker->held_count++] = block;
        }
    }
    pthread_rwlock_unlock(&disk->index_lock);
    if (missing > 0)
        presto__disk_look_now_and_then(disk);
}

bool presto__disk_has(const presto__disk_worker *worker, size_t i) {
    return worker->hits[i].block != NULL;
}

size_t presto__disk_missing(presto__disk *disk, uint64_t *numbers, size_t count) {
    size_t missing = 0;
    pthread_rwlock_rdlock(&disk->index_lock);
    for (size_t i = 0; i < count; i++)
        if (disk->entries[numbers[i]] == 0)
            numbers[missing++] = numbers[i];
    pthread_rwlock_unlock(&disk->index_lock);
    return missing;
}

/* An open file of the block; the caller closes it if *is_ours_out. -1: it cannot be opened. */
static int open_block(presto__disk *disk, presto__disk_block *block, bool *is_ours_out) {
    *is_ours_out = false;
    int fd = atomic_load_explicit(&block->fd, memory_order_acquire);
    if (fd >= 0)
        return fd;
    fd = openat(disk->folder.fd, block->name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0)
        return -1;
    struct stat info;
    if (fstat(fd, &info) != 0 || !S_ISREG(info.st_mode) || !presto__only_we_write(&info)) {
        close(fd); /* another file has this name now */
        return -1;
    }
    if (atomic_fetch_add(&disk->open_files, 1) < disk->most_open) {
        int expected = -1;
        if (atomic_compare_exchange_strong(&block->fd, &expected, fd))
            return fd;
    }
    atomic_fetch_sub(&disk->open_files, 1);
    *is_ours_out = true;
    return fd;
}

/* Mark the block as used: this and other processes evict the blocks least recently used. */
static void touch(presto__disk_block *block, int fd, uint64_t now) {
    uint64_t touched = atomic_load_explicit(&block->touched_ns, memory_order_relaxed);
    if ((touched != 0 && now - touched < TOUCH_NS) || block->is_writing)
        return;
    atomic_store_explicit(&block->touched_ns, now, memory_order_relaxed);
    (void)futimens(fd, NULL);
}

/* The length of one read: the entries that are asked for next and follow this one directly. */
static uint32_t end_of_run(const presto__disk_worker *worker, size_t first) {
    const presto__disk_hit *start = &worker->hits[first];
    uint32_t end = start->at + start->units;
    for (size_t i = first + 1; i < worker->count; i++) {
        const presto__disk_hit *next = &worker->hits[i];
        if (next->block == NULL)
            continue;
        if (next->block != start->block || next->at != end ||
            (size_t)(end - start->at + next->units) * PRESTO__DISK_ALIGN > RUN_BYTES)
            break;
        end += next->units;
    }
    return end;
}

/* Memory for a run, aligned as entries are. NULL: there is none. */
static uint8_t *run_memory(presto__disk_worker *worker, presto__blocks *blocks, size_t bytes) {
    presto_block *block = &worker->run_block;
    if (blocks != NULL) {
        if (presto__blocks_reserve(blocks, blocks->count + 1, NULL) < 0)
            return NULL;
        block = &blocks->items[blocks->count];
    }
    block->bytes_.bytes = 0;
    if (presto_buffer_reserve(&block->bytes_, bytes + PRESTO__DISK_ALIGN, NULL) < 0)
        return NULL;
    if (blocks != NULL)
        blocks->count++;
    uint8_t *data = block->bytes_.data;
    return data + (-(uintptr_t)data & (PRESTO__DISK_ALIGN - 1));
}

/* Should memory be taken for it? Always for a run of small entries; a large entry must first
 * show that it is the right one. */
static bool may_be_read(int fd, uint64_t number, uint64_t at, size_t bytes) {
    uint8_t head[PRESTO__DISK_ENTRY_HEAD_BYTES];
    return bytes <= RUN_BYTES || (presto__disk_read_all(fd, head, sizeof head, at) &&
                                  presto__disk_entry_fits(head, bytes, number));
}

/* Bytes of a block, and the sample whose entry is the first there. */
typedef struct entry_run {
    uint64_t number;
    uint64_t at; /* from the start of the file */
    size_t bytes;
} entry_run;

/* Read entries into memory. *data_out is NULL if there is no memory. False: they cannot be read,
 * or are other entries. */
static bool read_entries(presto__disk_worker *worker, int fd, const entry_run *run,
                         presto__blocks *blocks, uint8_t **data_out) {
    *data_out = NULL;
    if (!may_be_read(fd, run->number, run->at, run->bytes))
        return false;
    *data_out = run_memory(worker, blocks, run->bytes);
    return *data_out == NULL || presto__disk_read_all(fd, *data_out, run->bytes, run->at);
}

/* PRESTO_END: it cannot be read. */
static presto_status read_run(presto__disk_worker *worker, size_t i, presto__blocks *blocks,
                              presto__read_stats *stats) {
    presto__disk *disk = worker->disk;
    uint64_t start = presto__clock_ns();
    presto__disk_block *block = worker->hits[i].block;
    uint32_t at = worker->hits[i].at;
    uint32_t end = end_of_run(worker, i);
    size_t bytes = (size_t)(end - at) * PRESTO__DISK_ALIGN;
    worker->run_of = NULL;
    bool is_ours;
    int fd = open_block(disk, block, &is_ours);
    if (fd < 0) {
        presto__disk_block_drop(disk, block); /* evicted by a process */
        return PRESTO_END;
    }
    uint8_t *data;
    const entry_run run = {worker->numbers[i], (uint64_t)at * PRESTO__DISK_ALIGN, bytes};
    bool holds = read_entries(worker, fd, &run, blocks, &data);
    if (holds && data != NULL)
        touch(block, fd, start);
    if (is_ours)
        close(fd);
    if (!holds) {
        presto__disk_block_discard(disk, block);
        return PRESTO_END;
    }
    if (data == NULL) {
        presto__disk_block_drop(disk, block); /* it is whole, but there is no memory for it now */
        return PRESTO_END;
    }
    stats->read_bytes += bytes;
    stats->read_ns += presto__clock_ns() - start;
    worker->run_of = block;
    worker->run_at = at;
    worker->run_end = end;
    worker->run_data = data;
    return PRESTO_OK;
}

presto_status presto__disk_load(presto__disk_worker *worker, size_t i, presto__blocks *blocks,
                                uint64_t time_scale, presto__read_stats *stats) {
    const presto__disk_hit *found = &worker->hits[i];
    if (worker->run_of != found->block || found->at < worker->run_at ||
        found->at + found->units > worker->run_end) {
        presto_status status = read_run(worker, i, blocks, stats);
        if (status != PRESTO_OK)
            return status;
    }
    worker->loaded =
        presto_span_of(worker->run_data + (size_t)(found->at - worker->run_at) * PRESTO__DISK_ALIGN,
                       (size_t)found->units * PRESTO__DISK_ALIGN);
    worker->loaded_number = worker->numbers[i];
    uint64_t start = time_scale == 0 ? 0 : presto__clock_ns();
    presto_status status =
        presto__disk_entry_read(worker->loaded, worker->loaded_number, NULL, NULL, NULL);
    if (time_scale != 0)
        stats->read_ns += (presto__clock_ns() - start) * time_scale;
    if (status == PRESTO_OK)
        return PRESTO_OK;
    presto__disk_block_discard(worker->disk, found->block);
    return PRESTO_END;
}

presto_status presto__disk_sample(presto__disk_worker *worker, presto_arena *arena,
                                  presto_sample *sample_out, presto_error *err) {
    return presto__disk_entry_read(worker->loaded, worker->loaded_number, arena, sample_out, err);
}

/* ---- life ---- */

presto_status presto__disk_worker_new(presto__disk *disk, size_t most,
                                      presto__disk_worker **worker_out, presto_error *err) {
    presto__disk_worker *worker = presto__memory_apart(1, sizeof *worker);
    if (worker == NULL)
        return presto_fail_memory(err, sizeof *worker);
    *worker = (presto__disk_worker){.disk = disk, .most = most};
    worker->hits = presto__memory_apart(most + 1, sizeof *worker->hits);
    worker->held = presto__memory_apart(most + 1, sizeof(presto__disk_block *));
    if (worker->hits == NULL || worker->held == NULL) {
        presto__disk_worker_free(worker);
        return presto_fail_memory(err, most * sizeof *worker->hits);
    }
    *worker_out = worker;
    return PRESTO_OK;
}

void presto__disk_worker_free(presto__disk_worker *worker) {
    if (worker == NULL)
        return;
    let_go(worker);
    presto_block_done(&worker->run_block);
    presto_buffer_done(&worker->put);
    free(worker->put_places);
    free(worker->hits);
    free((void *)worker->held);
    free(worker);
}

size_t presto__disk_worker_memory(const presto__disk_worker *worker) {
    return worker == NULL ? 0
                          : worker->run_block.bytes_.capacity + worker->put.capacity +
                                worker->put_capacity * sizeof *worker->put_places;
}

static bool may_evict_any(void *user, const presto__disk_file *file) {
    (void)user;
    return !file->is_partial;
}

/* Bring the files of earlier runs within the limit, then find the useful ones. */
static presto_status take_stock(presto__disk *disk, presto_error *err) {
    presto__disk_room room = {.may_evict = may_evict_any};
    PRESTO_TRY(presto__disk_folder_make(&disk->folder, &room, err));
    atomic_store(&disk->evicted_blocks, room.evicted);
    presto__disk_look(disk);
    atomic_store(&disk->looked_ns, presto__clock_ns());
    return PRESTO_OK;
}

static presto_status open_locks(presto__disk *disk, presto_error *err) {
    if (pthread_rwlock_init(&disk->index_lock, NULL) != 0)
        return presto_fail_memory(err, sizeof *disk);
    if (pthread_mutex_init(&disk->write_lock, NULL) != 0) {
        pthread_rwlock_destroy(&disk->index_lock);
        return presto_fail_memory(err, sizeof *disk);
    }
    if (pthread_cond_init(&disk->rolled, NULL) != 0) {
        pthread_mutex_destroy(&disk->write_lock);
        pthread_rwlock_destroy(&disk->index_lock);
        return presto_fail_memory(err, sizeof *disk);
    }
    return PRESTO_OK;
}

static int choose_most_open(void) {
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY ||
        limit.rlim_cur / 4 > MOST_OPEN)
        return MOST_OPEN;
    return (int)(limit.rlim_cur / 4);
}

presto_status presto__disk_open(const presto__disk_options *options, presto__disk **disk_out,
                                presto_error *err) {
    if (options->limit_bytes < LEAST_LIMIT_BYTES)
        return presto_fail(
            err, PRESTO_ERR_ARGUMENT, PRESTO_NO_OFFSET,
            "a disk cache of %" PRIu64 " byte%s is too small: it takes at least %" PRIu64,
            options->limit_bytes, presto_plural(options->limit_bytes), LEAST_LIMIT_BYTES);
    presto__disk *disk = calloc(1, sizeof *disk);
    if (disk == NULL)
        return presto_fail_memory(err, sizeof *disk);
    disk->count = options->count;
    disk->most_open = choose_most_open();
    disk->block_bytes = options->limit_bytes / LIMIT_BLOCKS;
    if (disk->block_bytes < LEAST_BLOCK_BYTES)
        disk->block_bytes = LEAST_BLOCK_BYTES;
    if (disk->block_bytes > PRESTO__DISK_MOST_BLOCK_BYTES)
        disk->block_bytes = PRESTO__DISK_MOST_BLOCK_BYTES;
    disk->entries = presto__zeroed_array(options->count, 1, sizeof *disk->entries);
    presto_status status = disk->entries == NULL
                               ? presto_fail_memory(err, options->count * sizeof *disk->entries)
                               : open_locks(disk, err);
    if (status < 0) {
        free(disk->entries);
        free(disk);
        return status;
    }
    status = presto__disk_folder_open(&disk->folder, options->dir, options->limit_bytes,
                                      &options->key, err);
    if (status == PRESTO_OK) {
        status = take_stock(disk, err);
        if (status < 0)
            presto__disk_folder_close(&disk->folder);
    }
    if (status < 0) {
        disk->folder.path = NULL;
        presto__disk_free(disk);
        return status;
    }
    *disk_out = disk;
    return PRESTO_OK;
}

void presto__disk_free(presto__disk *disk) {
    if (disk == NULL)
        return;
    presto__disk_finish(disk);
    for (uint32_t i = 1; i < disk->block_count; i++)
        presto__disk_block_release(disk, disk->blocks[i]);
    free((void *)disk->blocks);
    free(disk->entries);
    if (disk->folder.path != NULL)
        presto__disk_folder_close(&disk->folder);
    pthread_cond_destroy(&disk->rolled);
    pthread_mutex_destroy(&disk->write_lock);
    pthread_rwlock_destroy(&disk->index_lock);
    free(disk);
}

void presto__disk_get_stats(const presto__disk *disk, presto__disk_stats *stats_out) {
    presto__disk *shared = (presto__disk *)disk; /* a lock changes nothing that a reader sees */
    pthread_rwlock_rdlock(&shared->index_lock);
    uint64_t held = disk->held_bytes;
    pthread_rwlock_unlock(&shared->index_lock);
    *stats_out = (presto__disk_stats){.held_bytes = held,
                                      .written_bytes = atomic_load(&disk->written_bytes),
                                      .damaged_blocks = atomic_load(&disk->damaged_blocks),
                                      .evicted_blocks = atomic_load(&disk->evicted_blocks)};
}
