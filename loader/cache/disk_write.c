/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes blocks. All workers write into one block, each into its reserved room. When the block is
 * full, or an epoch ends, the last writer completes it.
 *
 * Eviction: a stream needs each of its samples once an epoch, so evicting one of them for another
 * gains nothing. So a stream never evicts its own blocks. When they fill the room, it stops storing
 * until the next epoch. It evicts blocks of other streams, the least recently used first: of
 * datasets and pipelines that are no longer in use. It also evicts blocks of the same samples that
 * another process stored as well. That process sees ours in the same way: only the block whose name
 * sorts last is evicted, so never both.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <presto/crc32c.h>

#include "../../base/clock_internal.h"
#include "disk_internal.h"

#define FLUSH_BYTES ((size_t)1 << 20) /* written at a time */

/* ---- writing ---- */

static void stop(presto__disk *disk, const presto_error *error) {
    pthread_mutex_lock(&disk->write_lock);
    if (!atomic_load(&disk->is_stopped)) {
        disk->stop_error = *error;
        atomic_store(&disk->is_stopped, true);
    }
    pthread_mutex_unlock(&disk->write_lock);
}

bool presto__disk_take_warning(presto__disk *disk, presto_error *warning_out) {
    if (!atomic_load_explicit(&disk->is_stopped, memory_order_relaxed) ||
        atomic_exchange(&disk->has_warned, true))
        return false;
    pthread_mutex_lock(&disk->write_lock);
    *warning_out = disk->stop_error;
    pthread_mutex_unlock(&disk->write_lock);
    size_t used = strlen(warning_out->message);
    snprintf(warning_out->message + used, sizeof warning_out->message - used,
             "; nothing more is cached, the stream goes on");
    return true;
}

static presto_status write_all(const presto__disk *disk, int fd, presto_span data, uint64_t offset,
                               presto_error *err) {
    while (data.bytes > 0) {
        ssize_t wrote = pwrite(fd, data.data, data.bytes, (off_t)offset);
        if (wrote < 0 && errno == EINTR)
            continue;
        if (wrote <= 0)
            return presto_fail_errno(err, wrote < 0 ? errno : ENOSPC, disk->folder.path,
                                     "cannot write to the cache");
        data = presto_span_of(data.data + wrote, data.bytes - (size_t)wrote);
        offset += (uint64_t)wrote;
    }
    return PRESTO_OK;
}

/* Write table and header, then rename: now it is a block. */
static presto_status complete(presto__disk *disk, presto__disk_block *block, presto_error *err) {
    size_t table_bytes = (size_t)block->place_count * sizeof *block->places;
    presto__disk_head head = {.key = disk->folder.key,
                              .table_at = block->next * PRESTO__DISK_ALIGN,
                              .count = block->place_count,
                              .table_crc = presto_crc32c(0, block->places, table_bytes)};
    head.file_bytes = head.table_at + table_bytes;
    uint8_t header[PRESTO__DISK_HEADER_BYTES];
    presto__disk_head_write(&head, header);
    int fd = atomic_load(&block->fd);
    PRESTO_TRY(write_all(disk, fd, presto_span_of(block->places, table_bytes), head.table_at, err));
    PRESTO_TRY(write_all(disk, fd, presto_span_of(header, sizeof header), 0, err));
    if (ftruncate(fd, (off_t)head.file_bytes) != 0)
        return presto_fail_errno(err, errno, disk->folder.path, "cannot cut a file in it");
    PRESTO_TRY(presto__disk_folder_rename(&disk->folder, block->name, block->final_name, err));
    /* The block that replaces it is opened when something is read from it; readers of this one
     * continue. */
    presto__disk_block *whole = presto__disk_block_new(-1, block->final_name);
    if (whole == NULL)
        return PRESTO_OK; /* this one can still be read */
    whole->file_bytes = head.file_bytes;
    whole->live = head.count;
    pthread_rwlock_wrlock(&disk->index_lock);
    bool was_there = disk->blocks[block->id] == block;
    if (was_there) {
        whole->id = block->id;
        whole->places = block->places;
        whole->place_count = block->place_count;
        block->places = NULL;
        block->place_count = 0;
        disk->blocks[block->id] = whole;
        disk->held_bytes += whole->file_bytes - block->file_bytes;
    }
    pthread_rwlock_unlock(&disk->index_lock);
    presto__disk_block_release(disk, was_there ? block : whole);
    return PRESTO_OK;
}

/* A closed block that nobody writes into any more: drops its writer's reference. */
static void finish_block(presto__disk *disk, presto__disk_block *block) {
    presto_error error;
    presto_status status = PRESTO_OK;
    bool is_wanted = block->place_count > 0 && !atomic_load(&block->is_gone);
    if (is_wanted)
        status = complete(disk, block, &error);
    if (!is_wanted || status < 0) {
        presto__disk_folder_remove(&disk->folder, block->name);
        presto__disk_block_drop(disk, block);
        /* A process without locks took it for abandoned and removed it; no harm is done. */
        if (status < 0 && error.sys_errno != ENOENT)
            stop(disk, &error);
    }
    presto__disk_block_release(disk, block);
}

static bool may_evict(void *user, const presto__disk_file *file) {
    presto__disk *disk = user;
    if (!file->is_same_key)
        return true;
    bool is_superfluous = false;
    pthread_rwlock_rdlock(&disk->index_lock);
    for (uint32_t i = 1; i < disk->block_count && !is_superfluous; i++) {
        const presto__disk_block *block = disk->blocks[i];
        is_superfluous = block != NULL && !block->is_writing && block->live == 0 &&
                         block->is_last && strcmp(block->name, file->name) == 0;
    }
    pthread_rwlock_unlock(&disk->index_lock);
    return is_superfluous;
}

/* A new block with room for `least_bytes`. NULL: there is none, and the reason is noted. */
static presto__disk_block *make_block(presto__disk *disk, uint64_t least_bytes) {
    presto_error error;
    presto__disk_room room = {.want_bytes =
                                  disk->block_bytes > least_bytes ? disk->block_bytes : least_bytes,
                              .least_bytes = least_bytes,
                              .may_evict = may_evict,
                              .user = disk};
    presto_status status = presto__disk_folder_make(&disk->folder, &room, &error);
    atomic_fetch_add(&disk->evicted_blocks, room.evicted);
    if (status < 0) {
        stop(disk, &error);
        return NULL;
    }
    presto__disk_block *block =
        room.got_bytes == 0 ? NULL : presto__disk_block_new(room.fd, room.name);
    if (block != NULL) {
        block->file_bytes = room.got_bytes;
        block->next = PRESTO__DISK_HEADER_BYTES / PRESTO__DISK_ALIGN;
        atomic_store(&block->refs, 2); /* the index's and the writers' */
        pthread_rwlock_wrlock(&disk->index_lock);
        bool is_added = presto__disk_block_add_locked(disk, block);
        pthread_rwlock_unlock(&disk->index_lock);
        if (is_added)
            return block;
        free(block);
    }
    if (room.got_bytes > 0) {
        close(room.fd);
        presto__disk_folder_remove(&disk->folder, room.name);
    }
    atomic_store(&disk->is_full, true);
    return NULL;
}

static bool has_room_for(const presto__disk_block *block, uint64_t units, size_t count) {
    uint64_t bytes = (block->next + units) * PRESTO__DISK_ALIGN +
                     (block->reserved + count) * sizeof(presto__disk_place);
    return bytes <= block->file_bytes && count <= UINT32_MAX - block->reserved;
}

/* With write_lock held: nothing more is written into it. True: the caller must finish it,
 * without the lock. */
static bool close_block_locked(presto__disk_block *block) {
    if (block == NULL)
        return false;
    block->is_closed = true;
    return block->pending == 0;
}

/* Reserve room for entries in the current block or in a new one. NULL: nothing is stored. */
static presto__disk_block *reserve(presto__disk *disk, uint64_t units, size_t count,
                                   uint64_t *at_out) {
    uint64_t least_bytes =
        PRESTO__DISK_HEADER_BYTES + units * PRESTO__DISK_ALIGN + count * sizeof(presto__disk_place);
    if (least_bytes > disk->folder.limit_bytes)
        return NULL; /* smaller ones may still fit */
    pthread_mutex_lock(&disk->write_lock);
    for (;;) {
        if (atomic_load(&disk->is_stopped) || atomic_load(&disk->is_full)) {
            pthread_mutex_unlock(&disk->write_lock);
            return NULL;
        }
        if (disk->is_rolling) {
            pthread_cond_wait(&disk->rolled, &disk->write_lock);
            continue;
        }
        presto__disk_block *block = disk->current;
        if (block != NULL && has_room_for(block, units, count)) {
            *at_out = block->next;
            block->next += units;
            block->reserved += (uint32_t)count;
            block->pending++;
            pthread_mutex_unlock(&disk->write_lock);
            return block;
        }
        disk->is_rolling = true;
        disk->current = NULL;
        bool must_finish = close_block_locked(block);
        pthread_mutex_unlock(&disk->write_lock);
        if (must_finish)
            finish_block(disk, block);
        block = make_block(disk, least_bytes);
        pthread_mutex_lock(&disk->write_lock);
        disk->is_rolling = false;
        disk->current = block;
        pthread_cond_broadcast(&disk->rolled);
    }
}

/* The entries are in the block: make them visible. */
static void add_places(presto__disk *disk, presto__disk_block *block,
                       const presto__disk_worker *worker, uint64_t at) {
    pthread_rwlock_wrlock(&disk->index_lock);
    size_t need = block->place_count + worker->put_count;
    if (need > block->place_capacity) {
        size_t capacity = need + need / 2;
        presto__disk_place *places =
            capacity > UINT32_MAX ? NULL : realloc(block->places, capacity * sizeof *places);
        if (places != NULL) {
            block->places = places;
            block->place_capacity = (uint32_t)capacity;
        }
    }
    for (size_t i = 0; need <= block->place_capacity && i < worker->put_count; i++) {
        presto__disk_place place = worker->put_places[i];
        place.at += (uint32_t)at;
        disk->entries[place.number] = (uint64_t)block->id << 32 | block->place_count;
        block->places[block->place_count++] = place;
    }
    pthread_rwlock_unlock(&disk->index_lock);
}

static void store(presto__disk_worker *worker) {
    presto__disk *disk = worker->disk;
    uint64_t at;
    presto__disk_block *block =
        reserve(disk, worker->put.bytes / PRESTO__DISK_ALIGN, worker->put_count, &at);
    if (block == NULL)
        return;
    presto_error error;
    if (write_all(disk, atomic_load(&block->fd), presto_buffer_span(&worker->put),
                  at * PRESTO__DISK_ALIGN, &error) < 0) {
        stop(disk, &error);
    } else {
        atomic_fetch_add(&disk->written_bytes, worker->put.bytes);
        add_places(disk, block, worker, at);
    }
    pthread_mutex_lock(&disk->write_lock);
    block->pending--;
    bool must_finish = block->is_closed && block->pending == 0;
    pthread_mutex_unlock(&disk->write_lock);
    if (must_finish)
        finish_block(disk, block);
}

void presto__disk_finish(presto__disk *disk) {
    pthread_mutex_lock(&disk->write_lock);
    presto__disk_block *block = disk->current;
    bool must_finish = close_block_locked(block);
    disk->current = NULL;
    pthread_mutex_unlock(&disk->write_lock);
    if (must_finish)
        finish_block(disk, block);
}

void presto__disk_epoch(presto__disk *disk, uint64_t epoch) {
    uint_fast64_t seen = atomic_load_explicit(&disk->epoch, memory_order_relaxed);
    while (seen < epoch)
        if (atomic_compare_exchange_weak(&disk->epoch, &seen, epoch))
            break;
    if (seen >= epoch)
        return;
    /* Other processes may use what the last epoch stored, or may have made room. */
    atomic_store(&disk->is_full, false);
    presto__disk_finish(disk);
}

static bool reserve_put(presto__disk_worker *worker) {
    if (worker->put_count < worker->put_capacity)
        return true;
    size_t capacity = worker->put_capacity == 0 ? 64 : worker->put_capacity * 2;
    presto__disk_place *places = realloc(worker->put_places, capacity * sizeof *places);
    if (places == NULL)
        return false;
    worker->put_places = places;
    worker->put_capacity = capacity;
    return true;
}

void presto__disk_store(presto__disk_worker *worker) {
    if (worker->put_count > 0)
        store(worker);
    worker->put.bytes = 0;
    worker->put_count = 0;
}

void presto__disk_put(presto__disk_worker *worker, const presto_sample *sample) {
    presto__disk *disk = worker->disk;
    if (atomic_load_explicit(&disk->is_full, memory_order_relaxed) ||
        atomic_load_explicit(&disk->is_stopped, memory_order_relaxed) ||
        sample->number >= disk->count || !reserve_put(worker))
        return;
    size_t start = worker->put.bytes;
    if (presto__disk_entry_append(&worker->put, sample, NULL) < 0)
        return; /* it will be computed again */
    worker->put_places[worker->put_count++] =
        (presto__disk_place){.number = sample->number,
                             .at = (uint32_t)(start / PRESTO__DISK_ALIGN),
                             .units = (uint32_t)((worker->put.bytes - start) / PRESTO__DISK_ALIGN)};
    size_t most = disk->block_bytes / 2 < FLUSH_BYTES ? (size_t)disk->block_bytes / 2 : FLUSH_BYTES;
    if (worker->put.bytes >= most)
        presto__disk_store(worker);
}
