/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which sample is in which block: blocks, the index over them, and blocks of other processes and
 * earlier runs.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "../../base/clock_internal.h"
#include "../../base/folder_internal.h"
#include "disk_internal.h"

#define LOOK_NS UINT64_C(1000000000) /* time between looks for other processes' blocks */
#define STAT_BLOCK_BYTES 512
#define MOST_COMPRESSION 16

/* ---- blocks ---- */

presto__disk_block *presto__disk_block_new(int fd, const char *name) {
    presto__disk_block *block = calloc(1, sizeof *block);
    if (block == NULL)
        return NULL;
    atomic_init(&block->refs, 1);
    atomic_init(&block->fd, fd);
    block->added_ns = presto__clock_ns();
    memcpy(block->name, name, strlen(name) + 1);
    block->is_writing = fd >= 0;
    if (block->is_writing)
        presto__disk_final_name(name, block->final_name);
    else
        memcpy(block->final_name, block->name, sizeof block->name);
    return block;
}

void presto__disk_block_release(presto__disk *disk, presto__disk_block *block) {
    if (block == NULL || atomic_fetch_sub_explicit(&block->refs, 1, memory_order_acq_rel) > 1)
        return;
    int fd = atomic_load(&block->fd);
    if (fd >= 0) {
        close(fd);
        if (!block->is_writing)
            atomic_fetch_sub(&disk->open_files, 1);
    }
    free(block->places);
    free(block);
}

/* With index_lock held for writing. The caller gets the index's reference. */
static presto__disk_block *take_out_locked(presto__disk *disk, uint32_t id) {
    presto__disk_block *block = disk->blocks[id];
    disk->blocks[id] = NULL;
    if (block != NULL)
        disk->held_bytes -= block->file_bytes;
    return block;
}

void presto__disk_block_drop(presto__disk *disk, presto__disk_block *block) {
    pthread_rwlock_wrlock(&disk->index_lock);
    presto__disk_block *taken =
        disk->blocks[block->id] == block ? take_out_locked(disk, block->id) : NULL;
    pthread_rwlock_unlock(&disk->index_lock);
    presto__disk_block_release(disk, taken);
}

void presto__disk_block_discard(presto__disk *disk, presto__disk_block *block) {
    if (atomic_exchange(&block->is_gone, true))
        return;
    atomic_fetch_add(&disk->damaged_blocks, 1);
    if (!block->is_writing)
        presto__disk_folder_remove(&disk->folder, block->name);
    presto__disk_block_drop(disk, block);
}

bool presto__disk_block_add_locked(presto__disk *disk, presto__disk_block *block) {
    if (disk->block_count == UINT32_MAX)
        return false;
    if (disk->block_count == disk->block_capacity) {
        size_t capacity = disk->block_capacity == 0 ? 64 : (size_t)disk->block_capacity * 2;
        if (capacity > UINT32_MAX)
            capacity = UINT32_MAX;
        presto__disk_block **blocks =
            realloc((void *)disk->blocks, capacity * sizeof(presto__disk_block *));
        if (blocks == NULL)
            return false;
        disk->blocks = blocks;
        disk->block_capacity = (uint32_t)capacity;
    }
    if (disk->block_count == 0)
        disk->blocks[disk->block_count++] = NULL; /* an entry of 0 is none */
    if (disk->block_count == disk->block_capacity)
        return presto__disk_block_add_locked(disk, block);
    block->id = disk->block_count++;
    disk->blocks[block->id] = block;
    disk->held_bytes += block->file_bytes;
    return true;
}

/* ---- finding other processes' blocks, and those of earlier runs ---- */

bool presto__disk_read_all(int fd, void *data, size_t bytes, uint64_t offset) {
    uint8_t *at = data;
    while (bytes > 0) {
        ssize_t got = pread(fd, at, bytes, (off_t)offset);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return false;
        at += got;
        offset += (uint64_t)got;
        bytes -= (size_t)got;
    }
    return true;
}

/*
 * The size of a block comes from the file, may be forged, and decides how much memory its entries
 * take. A block larger than ours may come from a cache with a higher limit, or hold one large
 * sample. Then its bytes are really on the disk (compressed by some file systems), and are not a
 * hole.
 */
static bool is_sane(const presto__disk *disk, const presto__disk_head *head,
                    const struct stat *info) {
    if (head->file_bytes != (uint64_t)info->st_size || head->file_bytes > disk->folder.limit_bytes)
        return false;
    return head->file_bytes <= disk->block_bytes ||
           (uint64_t)info->st_blocks * STAT_BLOCK_BYTES >= head->file_bytes / MOST_COMPRESSION;
}

/* The table of a block that is whole. Sets *places_out; the caller frees it. */
static presto_status read_table(const presto__disk *disk, int fd, presto__disk_head *head,
                                presto__disk_place **places_out) {
    uint8_t header[PRESTO__DISK_HEADER_BYTES];
    struct stat info;
    if (fstat(fd, &info) != 0 || !S_ISREG(info.st_mode))
        return PRESTO_ERR_NOT_FOUND; /* a folder or pipe with that name */
    if (info.st_uid != geteuid())
        return PRESTO_ERR_NOT_FOUND; /* another user's: not trusted, and not ours to remove */
    if (!presto__only_we_write(&info))
        return PRESTO_ERR_CORRUPT; /* others may have written to it */
    if (!presto__disk_read_all(fd, header, sizeof header, 0) ||
        presto__disk_head_read(presto_span_of(header, sizeof header), head, NULL) < 0 ||
        !is_sane(disk, head, &info) || memcmp(&head->key, &disk->folder.key, sizeof head->key) != 0)
        return PRESTO_ERR_CORRUPT;
    size_t bytes = (size_t)head->count * sizeof(presto__disk_place);
    presto__disk_place *places = malloc(bytes + 1);
    if (places == NULL)
        return PRESTO_ERR_MEMORY;
    if (!presto__disk_read_all(fd, places, bytes, head->table_at) ||
        presto__disk_table_check(head, places, NULL) < 0) {
        free(places);
        return PRESTO_ERR_CORRUPT;
    }
    *places_out = places;
    return PRESTO_OK;
}

/* Add the samples that the index does not have yet. */
static void index_block(presto__disk *disk, presto__disk_block *block) {
    pthread_rwlock_wrlock(&disk->index_lock);
    bool is_added = presto__disk_block_add_locked(disk, block);
    block->is_last = true;
    for (uint32_t i = 0; is_added && i < block->place_count; i++) {
        uint64_t number = block->places[i].number;
        if (number >= disk->count)
            continue;
        const presto__disk_block *other =
            disk->entries[number] == 0 ? NULL : presto__disk_block_of(disk, disk->entries[number]);
        if (other != NULL) {
            if (strcmp(other->final_name, block->final_name) > 0)
                block->is_last = false;
            continue;
        }
        disk->entries[number] = (uint64_t)block->id << 32 | i;
        block->live++;
    }
    if (is_added && block->live == 0) {
        /* Other blocks have all its samples: keep the block known, so that it is not read again. */
        free(block->places);
        block->places = NULL;
        block->place_count = 0;
        disk->held_bytes -= block->file_bytes;
        block->file_bytes = 0;
    }
    pthread_rwlock_unlock(&disk->index_lock);
    if (!is_added)
        presto__disk_block_release(disk, block);
}

static void load_block(presto__disk *disk, const char *name) {
    int fd = openat(disk->folder.fd, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0)
        return; /* just removed, or not readable: as if it were not there */
    presto__disk_head head;
    presto__disk_place *places = NULL;
    presto_status status = read_table(disk, fd, &head, &places);
    close(fd);
    if (status == PRESTO_ERR_CORRUPT) {
        atomic_fetch_add(&disk->damaged_blocks, 1);
        presto__disk_folder_remove(&disk->folder, name);
    }
    presto__disk_block *block = status == PRESTO_OK ? presto__disk_block_new(-1, name) : NULL;
    if (block == NULL) {
        free(places);
        return;
    }
    block->places = places;
    block->place_count = head.count;
    block->file_bytes = head.file_bytes;
    index_block(disk, block);
}

static int compare_name(const void *name, const void *file) {
    return strcmp(name, ((const presto__disk_file *)file)->name);
}

/* Mark the known files of the listing. List the ids of blocks that are gone. */
static size_t compare_listing(presto__disk *disk, const presto__disk_listing *listing,
                              uint64_t start_ns, uint32_t *gone, size_t most) {
    size_t gone_count = 0;
    pthread_rwlock_rdlock(&disk->index_lock);
    for (uint32_t i = 1; i < disk->block_count; i++) {
        const presto__disk_block *block = disk->blocks[i];
        if (block == NULL)
            continue;
        presto__disk_file *file = listing->count == 0
                                      ? NULL
                                      : bsearch(block->final_name, listing->files, listing->count,
                                                sizeof *listing->files, compare_name);
        if (file != NULL)
            file->is_known = true;
        else if (!block->is_writing && block->added_ns < start_ns && gone_count < most)
            gone[gone_count++] = i;
    }
    pthread_rwlock_unlock(&disk->index_lock);
    return gone_count;
}

/* Other processes have removed these files; their room is free only when nobody has them open. */
static void drop_gone(presto__disk *disk, const uint32_t *gone, size_t count) {
    for (size_t i = 0; i < count; i++) {
        pthread_rwlock_wrlock(&disk->index_lock);
        presto__disk_block *block = take_out_locked(disk, gone[i]);
        pthread_rwlock_unlock(&disk->index_lock);
        presto__disk_block_release(disk, block);
    }
}

static void take_in(presto__disk *disk, const presto__disk_listing *listing, uint64_t start_ns) {
    pthread_rwlock_rdlock(&disk->index_lock);
    size_t most = disk->block_count;
    pthread_rwlock_unlock(&disk->index_lock);
    uint32_t *gone = calloc(most + 1, sizeof *gone);
    if (gone == NULL)
        return;
    drop_gone(disk, gone, compare_listing(disk, listing, start_ns, gone, most));
    free(gone);
    for (size_t i = 0; i < listing->count; i++) {
        const presto__disk_file *file = &listing->files[i];
        if (file->is_same_key && !file->is_partial && !file->is_known)
            load_block(disk, file->name);
    }
}

void presto__disk_look(presto__disk *disk) {
    struct stat info;
    uint64_t start_ns = presto__clock_ns(); /* blocks added from here on may not be listed */
    if (fstat(disk->folder.fd, &info) != 0 || (info.st_mtim.tv_sec == disk->looked_mtime.tv_sec &&
                                               info.st_mtim.tv_nsec == disk->looked_mtime.tv_nsec))
        return;
    presto__disk_listing listing = {0};
    if (presto__disk_folder_list(&disk->folder, &listing, NULL) == PRESTO_OK) {
        disk->looked_mtime = info.st_mtim;
        take_in(disk, &listing, start_ns);
    }
    presto__disk_listing_done(&listing);
}

void presto__disk_look_now_and_then(presto__disk *disk) {
    uint64_t now = presto__clock_ns();
    if (now - atomic_load_explicit(&disk->looked_ns, memory_order_relaxed) < LOOK_NS ||
        atomic_exchange(&disk->is_looking, true))
        return;
    presto__disk_look(disk);
    atomic_store_explicit(&disk->looked_ns, presto__clock_ns(), memory_order_relaxed);
    atomic_store(&disk->is_looking, false);
}
