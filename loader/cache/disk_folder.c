/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The folder of a disk cache, shared by any number of processes and streams: names, room, eviction.
 *
 * presto-KEY-RANDOM.block is whole; .presto-KEY-RANDOM.partial is being written by the process that
 * holds its flock. There is no lock file: a flock on the folder itself serializes making room, and
 * ends with its process. It is held while files are listed, renamed and removed (a count must not
 * miss a file that changes its name), never while content is read or written. A process that does
 * not get it for a while (its holder is stopped, or the file system has no locks) continues
 * without. Then the limit may be overrun by a block; nothing else is lost.
 *
 * What is read is trusted, so nobody else may have written it: in a folder that others may write
 * to, a private folder is made, and files of others are left alone.
 *
 * Other files are never touched. Must not know: what is in a block.
 */
#define _DEFAULT_SOURCE /* flock */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>

#include <presto/rng.h>

#include "../../base/clock_internal.h"
#include "../../base/file_internal.h"
#include "../../base/folder_internal.h"
#include "../../base/philox_internal.h"
#include "disk_internal.h"

#define PAGE_BYTES 4096 /* what a file takes is counted in these */
#define LOCK_TRIES 100
#define LOCK_PAUSE_NS 10000000
#define ABANDONED_S 3600 /* without locks: a partial file this old has no writer */
#define KEY_DIGITS 32
#define RANDOM_DIGITS 16
#define FOLDER_MODE 0700
#define FILE_MODE 0600
#define OTHERS_WRITE (S_IWGRP | S_IWOTH)

static const char prefix[] = "presto-";
static const char block_suffix[] = ".block";
static const char partial_suffix[] = ".partial";

/* ---- names ---- */

static bool are_hex(const char *text, size_t count) {
    return strspn(text, "0123456789abcdef") >= count;
}

static void format_key(const presto__disk_key *key, char text_out[KEY_DIGITS + 1]) {
    snprintf(text_out, KEY_DIGITS + 1, "%016" PRIx64 "%016" PRIx64, key->words[0], key->words[1]);
}

/* Is it the name of a cache file? Then fill in what it says. */
static bool parse_name(const presto__disk_folder *folder, const char *name,
                       presto__disk_file *file_out) {
    bool is_partial = name[0] == '.';
    const char *at = name + is_partial;
    if (strncmp(at, prefix, sizeof prefix - 1) != 0)
        return false;
    at += sizeof prefix - 1;
    const char *key = at;
    if (!are_hex(at, KEY_DIGITS) || at[KEY_DIGITS] != '-')
        return false;
    at += KEY_DIGITS + 1;
    if (!are_hex(at, RANDOM_DIGITS) ||
        strcmp(at + RANDOM_DIGITS, is_partial ? partial_suffix : block_suffix) != 0)
        return false;
    char own[KEY_DIGITS + 1];
    format_key(&folder->key, own);
    *file_out = (presto__disk_file){.is_partial = is_partial,
                                    .is_same_key = strncmp(key, own, KEY_DIGITS) == 0};
    memcpy(file_out->name, name, strlen(name) + 1);
    return true;
}

/* A new name: from the clocks, the process and a count. */
static void make_name(presto__disk_folder *folder, char name_out[PRESTO__DISK_NAME_BYTES]) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    const uint64_t key[2] = {(uint64_t)now.tv_sec, (uint64_t)getpid()};
    const uint64_t counter[4] = {(uint64_t)now.tv_nsec, presto__clock_ns(),
                                 atomic_fetch_add(&folder->names, 1), (uint64_t)(uintptr_t)folder};
    uint64_t draws[4];
    char digits[KEY_DIGITS + 1];
    presto__philox4x64(key, counter, draws);
    format_key(&folder->key, digits);
    snprintf(name_out, PRESTO__DISK_NAME_BYTES, ".%s%s-%016" PRIx64 "%s", prefix, digits, draws[0],
             partial_suffix);
}

/* ---- opening ---- */

/* Can files be made and removed here? Another process may remove this one first. */
static presto_status probe(presto__disk_folder *folder, presto_error *err) {
    char name[PRESTO__DISK_NAME_BYTES];
    make_name(folder, name);
    int fd = openat(folder->fd, name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, FILE_MODE);
    if (fd < 0)
        return presto_fail_errno(err, errno, folder->path, "cannot make files in it");
    close(fd);
    if (unlinkat(folder->fd, name, 0) != 0 && errno != ENOENT)
        return presto_fail_errno(err, errno, folder->path, "cannot remove files from it");
    return PRESTO_OK;
}

typedef struct open_folder {
    int fd;
    struct stat info;
} open_folder;

/* Take over the open folder `fd` (or the failure to open it), which is closed if this fails. */
static presto_status look_at_folder(int fd, const char *path, open_folder *folder_out,
                                    presto_error *err) {
    if (fd < 0)
        return presto_fail_errno(err, errno, path, "cannot open the cache's folder");
    if (fstat(fd, &folder_out->info) != 0) {
        presto_status status = presto_fail_errno(err, errno, path, "cannot stat");
        close(fd);
        return status;
    }
    folder_out->fd = fd;
    return PRESTO_OK;
}

/* A private folder in one that others may write to. Another user may have made something by that
 * name. */
static presto_status enter_own(int outer, const char *name, const char *path, int *fd_out,
                               presto_error *err) {
    open_folder own;
    if (mkdirat(outer, name, FOLDER_MODE) != 0 && errno != EEXIST)
        return presto_fail_errno(err, errno, path, "cannot make a folder that is yours alone");
    int fd = openat(outer, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    PRESTO_TRY(look_at_folder(fd, path, &own, err));
    if (presto__only_we_write(&own.info)) {
        *fd_out = fd;
        return PRESTO_OK;
    }
    close(fd);
    presto_status status =
        presto_fail(err, PRESTO_ERR_IO, PRESTO_NO_OFFSET,
                    "others may write to it (owner %ju, mode %03o), so that what is in it cannot "
                    "be believed; name a folder of your own",
                    (uintmax_t)own.info.st_uid, (unsigned)own.info.st_mode & 0777);
    presto_error_set_file(err, path);
    return status;
}

/*
 * Open the folder, or our private one in it. A folder of root that only root may write to is as
 * good as a private one. *path_out and *fd_out are the caller's.
 */
static presto_status enter(const char *path, char **path_out, int *fd_out, presto_error *err) {
    open_folder named;
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    PRESTO_TRY(look_at_folder(fd, path, &named, err));
    char name[32] = "";
    bool is_roots = named.info.st_uid == 0 && (named.info.st_mode & OTHERS_WRITE) == 0;
    if (!presto__only_we_write(&named.info) && !is_roots)
        snprintf(name, sizeof name, "presto-%ju", (uintmax_t)geteuid());
    char *entered = name[0] == '\0' ? strdup(path) : presto__join_path(path, name);
    presto_status status = PRESTO_OK;
    if (entered == NULL) {
        status = presto_fail_memory(err, strlen(path));
    } else if (name[0] != '\0') {
        int outer = fd;
        status = enter_own(outer, name, entered, &fd, err);
        if (status == PRESTO_OK)
            close(outer);
    }
    if (status < 0) {
        free(entered);
        close(fd);
        return status;
    }
    *path_out = entered;
    *fd_out = fd;
    return PRESTO_OK;
}

presto_status presto__disk_folder_open(presto__disk_folder *folder, const char *path,
                                       uint64_t limit_bytes, const presto__disk_key *key,
                                       presto_error *err) {
    if (mkdir(path, FOLDER_MODE) != 0 && errno != EEXIST)
        return presto_fail_errno(err, errno, path, "cannot make the cache's folder");
    char *entered;
    int fd;
    PRESTO_TRY(enter(path, &entered, &fd, err));
    int failed = pthread_mutex_init(&folder->lock, NULL);
    if (failed != 0) {
        close(fd);
        free(entered);
        return presto_fail_errno(err, failed, path, "cannot make a lock");
    }
    folder->path = entered;
    folder->fd = fd;
    folder->limit_bytes = limit_bytes;
    folder->key = *key;
    atomic_init(&folder->names, 0);
    presto_status status = probe(folder, err);
    if (status < 0)
        presto__disk_folder_close(folder);
    return status;
}

void presto__disk_folder_close(presto__disk_folder *folder) {
    close(folder->fd);
    free(folder->path);
    pthread_mutex_destroy(&folder->lock);
}

/* ---- listing ---- */

void presto__disk_listing_done(presto__disk_listing *listing) {
    free(listing->files);
    *listing = (presto__disk_listing){0};
}

static presto_status add_file(presto__disk_listing *listing, const presto__disk_file *file,
                              presto_error *err) {
    if (listing->count == listing->capacity) {
        size_t capacity = listing->capacity == 0 ? 64 : listing->capacity * 2;
        presto__disk_file *files = realloc(listing->files, capacity * sizeof *files);
        if (files == NULL)
            return presto_fail_memory(err, capacity * sizeof *files);
        listing->files = files;
        listing->capacity = capacity;
    }
    listing->files[listing->count++] = *file;
    return PRESTO_OK;
}

static int compare_names(const void *a, const void *b) {
    return strcmp(((const presto__disk_file *)a)->name, ((const presto__disk_file *)b)->name);
}

static presto_status read_names(const presto__disk_folder *folder, DIR *dir,
                                presto__disk_listing *listing, presto_error *err) {
    for (;;) {
        errno = 0;
        const struct dirent *entry = readdir(dir);
        presto__disk_file file;
        if (entry == NULL)
            return errno == 0
                       ? PRESTO_OK
                       : presto_fail_errno(err, errno, folder->path, "cannot read the folder");
        if (parse_name(folder, entry->d_name, &file))
            PRESTO_TRY(add_file(listing, &file, err));
    }
}

presto_status presto__disk_folder_list(const presto__disk_folder *folder,
                                       presto__disk_listing *listing, presto_error *err) {
    listing->count = 0;
    int fd = openat(folder->fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *dir = fd < 0 ? NULL : fdopendir(fd);
    if (dir == NULL) {
        presto_status status = presto_fail_errno(err, errno, folder->path, "cannot open folder");
        if (fd >= 0)
            close(fd);
        return status;
    }
    presto_status status = read_names(folder, dir, listing, err);
    closedir(dir);
    if (status == PRESTO_OK && listing->count > 0)
        qsort(listing->files, listing->count, sizeof *listing->files, compare_names);
    return status;
}

/* ---- room ---- */

static void lock_folder(presto__disk_folder *folder) {
    const struct timespec pause = {.tv_nsec = LOCK_PAUSE_NS};
    pthread_mutex_lock(&folder->lock);
    for (int i = 0; i < LOCK_TRIES; i++) {
        if (flock(folder->fd, LOCK_EX | LOCK_NB) == 0 || (errno != EWOULDBLOCK && errno != EINTR))
            return;
        nanosleep(&pause, NULL);
    }
}

static void unlock_folder(presto__disk_folder *folder) {
    (void)flock(folder->fd, LOCK_UN);
    pthread_mutex_unlock(&folder->lock);
}

/* Has its writer died? Then its lock is free. */
static bool is_abandoned(const presto__disk_folder *folder, const char *name,
                         const struct stat *info) {
    int fd = openat(folder->fd, name, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0)
        return false;
    bool is_free = flock(fd, LOCK_EX | LOCK_NB) == 0;
    if (!is_free && errno != EWOULDBLOCK)
        is_free = time(NULL) - info->st_mtim.tv_sec > ABANDONED_S;
    close(fd);
    return is_free;
}

static uint64_t in_pages(uint64_t bytes) {
    return bytes > UINT64_MAX - PAGE_BYTES ? UINT64_MAX
                                           : (bytes + PAGE_BYTES - 1) / PAGE_BYTES * PAGE_BYTES;
}

/* Fill in sizes and times. Files that are gone, abandoned, other users', or not regular leave
 * the list. Returns the sum of sizes. */
static uint64_t look_at_files(const presto__disk_folder *folder, presto__disk_listing *listing) {
    uint64_t total = 0;
    size_t kept = 0;
    for (size_t i = 0; i < listing->count; i++) {
        presto__disk_file *file = &listing->files[i];
        struct stat info;
        if (fstatat(folder->fd, file->name, &info, AT_SYMLINK_NOFOLLOW) != 0 ||
            !S_ISREG(info.st_mode) || info.st_uid != geteuid())
            continue;
        if (file->is_partial && is_abandoned(folder, file->name, &info)) {
            presto__disk_folder_remove(folder, file->name);
            continue;
        }
        file->bytes = in_pages((uint64_t)info.st_size);
        file->used_ns = (int64_t)info.st_mtim.tv_sec * 1000000000 + info.st_mtim.tv_nsec;
        total += file->bytes;
        listing->files[kept++] = *file;
    }
    listing->count = kept;
    return total;
}

static int compare_use(const void *a, const void *b) {
    const presto__disk_file *left = a;
    const presto__disk_file *right = b;
    return left->used_ns < right->used_ns ? -1 : left->used_ns > right->used_ns;
}

/* Remove the least recently used files until `total` and what is wanted are within the limit. */
static uint64_t evict(const presto__disk_folder *folder, presto__disk_listing *listing,
                      uint64_t total, presto__disk_room *room) {
    uint64_t wanted = in_pages(room->want_bytes);
    if (wanted > folder->limit_bytes)
        wanted = folder->limit_bytes;
    if (listing->count > 0)
        qsort(listing->files, listing->count, sizeof *listing->files, compare_use);
    for (size_t i = 0; i < listing->count && total > folder->limit_bytes - wanted; i++) {
        const presto__disk_file *file = &listing->files[i];
        if (file->is_partial || !room->may_evict(room->user, file))
            continue;
        if (unlinkat(folder->fd, file->name, 0) != 0 && errno != ENOENT)
            continue;
        room->evicted++;
        total -= file->bytes;
    }
    return total;
}

/* A partial file, locked from the start: processes that look for abandoned files wait for the
 * folder's lock. */
static presto_status make_file(presto__disk_folder *folder, presto__disk_room *room,
                               presto_error *err) {
    make_name(folder, room->name);
    int fd = openat(folder->fd, room->name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, FILE_MODE);
    if (fd < 0)
        return presto_fail_errno(err, errno, folder->path, "cannot make a file in it");
    (void)flock(fd, LOCK_EX | LOCK_NB);
    if (ftruncate(fd, (off_t)room->got_bytes) != 0) {
        presto_status status =
            presto_fail_errno(err, errno, folder->path, "cannot make room for a file in it");
        close(fd);
        presto__disk_folder_remove(folder, room->name);
        return status;
    }
    room->fd = fd;
    return PRESTO_OK;
}

presto_status presto__disk_folder_make(presto__disk_folder *folder, presto__disk_room *room,
                                       presto_error *err) {
    presto__disk_listing listing = {0};
    room->got_bytes = 0;
    room->fd = -1;
    lock_folder(folder);
    presto_status status = presto__disk_folder_list(folder, &listing, err);
    if (status == PRESTO_OK) {
        uint64_t total = evict(folder, &listing, look_at_files(folder, &listing), room);
        uint64_t left = total > folder->limit_bytes ? 0 : folder->limit_bytes - total;
        left -= left % PAGE_BYTES;
        room->got_bytes = room->want_bytes < left ? room->want_bytes : left;
        if (room->got_bytes < room->least_bytes)
            room->got_bytes = 0;
        if (room->got_bytes > 0)
            status = make_file(folder, room, err);
    }
    unlock_folder(folder);
    presto__disk_listing_done(&listing);
    return status;
}

void presto__disk_final_name(const char *partial, char name_out[PRESTO__DISK_NAME_BYTES]) {
    size_t stem = strlen(partial) - 1 - (sizeof partial_suffix - 1);
    memcpy(name_out, partial + 1, stem);
    memcpy(name_out + stem, block_suffix, sizeof block_suffix);
}

presto_status presto__disk_folder_rename(presto__disk_folder *folder, const char *from,
                                         const char *to, presto_error *err) {
    lock_folder(folder);
    int failed = renameat(folder->fd, from, folder->fd, to) == 0 ? 0 : errno;
    unlock_folder(folder);
    return failed == 0 ? PRESTO_OK
                       : presto_fail_errno(err, failed, folder->path, "cannot rename a file in it");
}

void presto__disk_folder_remove(const presto__disk_folder *folder, const char *name) {
    (void)unlinkat(folder->fd, name, 0);
}
