/* SPDX-License-Identifier: Apache-2.0 */
/* The kind `file`: files of this machine, and whatever it has mounted. */
#define _GNU_SOURCE /* SEEK_DATA */

#include "kinds_internal.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../base/file_internal.h"
#include "../base/folder_walk_internal.h"
#include "../base/retry_internal.h"
#include "../base/stop_internal.h"

static bool file_owns(const char *path) {
    (void)path;
    return true;
}

static presto__object_info info_of(const struct stat *info) {
    const presto__object_info found = {
        .type = S_ISREG(info->st_mode)   ? PRESTO__OBJECT_FILE
                : S_ISDIR(info->st_mode) ? PRESTO__OBJECT_FOLDER
                                         : PRESTO__OBJECT_OTHER,
        .bytes = info->st_size > 0 ? (uint64_t)info->st_size : 0,
        .mtime_ns = presto__mtime_ns(info),
        .ctime_ns = (int64_t)info->st_ctim.tv_sec * 1000000000 + info->st_ctim.tv_nsec,
        .identity = {info->st_dev, info->st_ino},
    };
    return found;
}

static presto_status file_open(const char *path, presto__object *object_out,
                               presto__object_info *info_out, presto_error *err) {
    struct stat info;
    int fd;
    PRESTO_TRY(presto__open_regular(path, &fd, &info, err));
    *object_out = (presto__object){.kind = &presto__storage_file, .fd = fd};
    *info_out = info_of(&info);
    return PRESTO_OK;
}

presto__object presto__object_of_file(int fd) {
    const presto__object object = {.kind = &presto__storage_file, .fd = fd};
    return object;
}

static void file_close(presto__object object) {
    (void)close(object.fd);
}

static presto_status file_read(const presto__object_place *place, void *data, size_t bytes,
                               size_t *got_out, presto_error *err) {
    return presto__pread((presto__file_place){place->object.fd, place->path, place->offset}, data,
                         bytes, got_out, err);
}

static presto_status file_look(presto__object object, const char *path,
                               presto__object_info *info_out, presto_error *err) {
    struct stat info;
    if (fstat(object.fd, &info) != 0)
        return presto_fail_errno(err, errno, path, "cannot stat");
    *info_out = info_of(&info);
    return PRESTO_OK;
}

static presto_status file_find(const char *path, presto__object_info *info_out, presto_error *err) {
    struct stat info;
    if (stat(path, &info) != 0)
        return presto__fail_open(err, errno, path);
    *info_out = info_of(&info);
    return PRESTO_OK;
}

/* ---- lists ---- */

static presto_status tell_found(void *user, const presto__walked *walked, presto_error *err) {
    const presto__list *list = *(const presto__list *const *)user;
    presto__object_info info;
    if (walked->info != NULL)
        info = info_of(walked->info);
    const presto__listed found = {.path = walked->path,
                                  .name = walked->name,
                                  .info = walked->info == NULL ? NULL : &info,
                                  .sys_errno = walked->sys_errno};
    return list->found(list->user, &found, err);
}

static presto_status ask_name(void *user, const char *folder, const char *name, bool *wanted_out,
                              presto_error *err) {
    const presto__list *list = *(const presto__list *const *)user;
    *wanted_out = true;
    return list->name == NULL ? PRESTO_OK : list->name(list->user, folder, name, wanted_out, err);
}

static presto_status tell_folder(void *user, const char *path, presto_error *err) {
    const presto__list *list = *(const presto__list *const *)user;
    return list->folder == NULL ? PRESTO_OK : list->folder(list->user, path, err);
}

/* One name of a folder that is not walked through. */
static presto_status tell_entry(const presto__list *list, const char *folder, const char *name,
                                presto_error *err) {
    struct stat info;
    bool is_wanted;
    PRESTO_TRY(presto__stop_check(err));
    if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
        return PRESTO_OK;
    PRESTO_TRY(ask_name(&list, folder, name, &is_wanted, err));
    if (!is_wanted)
        return PRESTO_OK;
    char *path = presto__join_path(folder, name);
    if (path == NULL)
        return presto_fail_memory(err, strlen(folder) + strlen(name));
    presto__walked walked = {.path = path, .name = name};
    if (stat(path, &info) != 0)
        walked.sys_errno = errno;
    else
        walked.info = &info;
    presto_status status = walked.info != NULL && S_ISDIR(info.st_mode)
                               ? tell_folder(&list, path, err)
                               : tell_found(&list, &walked, err);
    free(path);
    return status;
}

static presto_status list_shallow(const char *path, const presto__list *list, presto_error *err) {
    DIR *folder = opendir(path);
    presto_status status = PRESTO_OK;
    if (folder == NULL)
        return presto_fail_errno(err, errno, path, "cannot open folder");
    while (status >= 0) {
        errno = 0;
        const struct dirent *entry = readdir(folder);
        if (entry == NULL && errno != 0)
            status = presto_fail_errno(err, errno, path, "cannot read folder");
        if (entry == NULL)
            break;
        status = tell_entry(list, path, entry->d_name, err);
    }
    closedir(folder);
    return status < 0 ? status : PRESTO_OK;
}

static presto_status file_list(const char *path, const presto__list *list, presto_error *err) {
    const presto__folder_walk walk = {
        .user = &list, .name = ask_name, .found = tell_found, .folder = tell_folder};
    return list->is_shallow ? list_shallow(path, list, err) : presto__walk_folder(&walk, path, err);
}

static int file_number(presto__object object) {
    return object.fd;
}

static void *file_map(presto__object object, uint64_t bytes) {
    void *mapping = mmap(NULL, (size_t)bytes, PROT_READ, MAP_SHARED, object.fd, 0);
    return mapping == MAP_FAILED ? NULL : mapping;
}

static void file_will_read(presto__object object, uint64_t offset, uint64_t bytes,
                           uint64_t wanted) {
    (void)wanted;
    (void)posix_fadvise(object.fd, (off_t)offset, (off_t)bytes, POSIX_FADV_WILLNEED);
}

/* What fails here is reported when it is read. */
static void file_will_open(const char *path, uint64_t bytes) {
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return;
    (void)posix_fadvise(fd, 0, (off_t)bytes, POSIX_FADV_WILLNEED);
    close(fd);
}

/* Reads name their offset, so the descriptor's own position is not used. */
static uint64_t file_next_data(presto__object object, uint64_t from) {
#ifdef SEEK_DATA
    if (from > (uint64_t)INT64_MAX)
        return UINT64_MAX;
    off_t data = lseek(object.fd, (off_t)from, SEEK_DATA);
    if (data < 0 && errno == ENXIO)
        data = lseek(object.fd, 0, SEEK_END);
    return data < 0 ? UINT64_MAX : (uint64_t)data;
#else
    (void)object;
    (void)from;
    return UINT64_MAX;
#endif
}

static presto_status file_drop(const char *path, presto_error *err) {
    int fd;
    struct stat info;
    presto_error why;
    presto_status status;
    unsigned tries = 0;
    do
        status = presto__open_regular(path, &fd, &info, &why);
    while (status < 0 && presto__retry_pause(why.sys_errno, &tries));
    if (status < 0 && !presto__errno_is_machine(why.sys_errno))
        return PRESTO_OK;
    if (status < 0) {
        if (err != NULL)
            *err = why;
        return status;
    }
    /* Dirty pages stay in the cache, so they are written first. A read-only file system has
     * none. */
    (void)fdatasync(fd);
    int failed = posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
    close(fd);
    return failed == 0 ? PRESTO_OK
                       : presto_fail_errno(err, failed, path, "cannot drop it from the page cache");
}

const presto__storage_kind presto__storage_file = {
    .name = "file",
    .owns = file_owns,
    .open = file_open,
    .close = file_close,
    .read = file_read,
    .look = file_look,
    .find = file_find,
    .list = file_list,
    .number = file_number,
    .map = file_map,
    .will_read = file_will_read,
    .will_open = file_will_open,
    .next_data = file_next_data,
    .drop = file_drop,
};
