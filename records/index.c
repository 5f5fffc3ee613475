/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Index files are mapped and trusted only as far as is checked here or at use: opening one costs
 * the same whatever its size, so the offsets themselves are checked by whoever follows them.
 */
#include "index_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include <presto/shard.h>

#include "../base/file_internal.h"
#include "records_internal.h"

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "index files are mapped as they stand, which takes a little-endian machine"
#endif

static const uint8_t magic[8] = {'P', 'R', 'E', 'S', 'T', 'O', 'I', 'X'};
#define VERSION 1
#define HEADER_BYTES 48
#define TRAILER_BYTES 4
/* Positions in the header. */
enum { AT_VERSION = 8, AT_COUNT = 16, AT_DATA_BYTES = 24, AT_MTIME = 32, AT_HEADER_CRC = 44 };

char *presto__index_name(const char *data_path) {
    static const char suffix[] = ".index";
    size_t bytes = strlen(data_path);
    char *name = malloc(bytes + sizeof suffix);
    if (name == NULL)
        return NULL;
    memcpy(name, data_path, bytes);
    memcpy(name + bytes, suffix, sizeof suffix);
    return name;
}

/* ---- reading ---- */

static presto_status corrupt(const char *path, const char *what, presto_error *err) {
    presto_status status =
        presto_fail(err, PRESTO_ERR_CORRUPT, PRESTO_NO_OFFSET, "bad index: %s", what);
    presto_error_set_file(err, path);
    return status;
}

/* Not every file system keeps nanoseconds. */
static bool same_time(int64_t a, int64_t b) {
    const int64_t second = 1000000000;
    return a == b || (a / second == b / second && (a % second == 0 || b % second == 0));
}

static presto_status check_whole(const char *path, presto_span file, const presto__index *index,
                                 presto_error *err) {
    size_t body = file.bytes - TRAILER_BYTES;
    if (!presto__crc_matches(presto__load_u32(file.data + body), presto_crc32c(0, file.data, body)))
        return corrupt(path, "its CRC differs", err);
    for (uint64_t i = 0; i < index->count; i++)
        if (index->offsets[i + 1] < index->offsets[i] ||
            index->offsets[i + 1] - index->offsets[i] < PRESTO_FRAME_OVERHEAD_BYTES)
            return corrupt(path, "its offsets do not rise", err);
    return PRESTO_OK;
}

static presto_status check(const char *path, presto_span file, const presto__index_key *key,
                           bool full, presto__index *index, presto_error *err) {
    if (file.bytes < HEADER_BYTES + 8 + TRAILER_BYTES ||
        memcmp(file.data, magic, sizeof magic) != 0)
        return corrupt(path, "no index of ours", err);
    if (!presto__crc_matches(presto__load_u32(file.data + AT_HEADER_CRC),
                             presto_crc32c(0, file.data, AT_HEADER_CRC)))
        return corrupt(path, "the CRC of its header differs", err);
    if (presto__load_u32(file.data + AT_VERSION) != VERSION)
        return PRESTO_END; /* of another version of ours: as if there were none */
    uint64_t count = presto__load_u64(file.data + AT_COUNT);
    uint64_t room = (file.bytes - HEADER_BYTES - TRAILER_BYTES) / 8;
    if (count >= room || (count + 1) * 8 != file.bytes - HEADER_BYTES - TRAILER_BYTES)
        return corrupt(path, "its size does not fit its record count", err);
    index->offsets = (const uint64_t *)(const void *)(file.data + HEADER_BYTES);
    index->count = count;
    if (presto__load_u64(file.data + AT_DATA_BYTES) != key->data_bytes ||
        !same_time((int64_t)presto__load_u64(file.data + AT_MTIME), key->data_mtime_ns))
        return PRESTO_END;
    if (index->offsets[0] != 0 || (key->plain && index->offsets[count] != key->data_bytes))
        return corrupt(path, "its offsets do not cover the file", err);
    return full ? check_whole(path, file, index, err) : PRESTO_OK;
}

static presto_status map_file(const char *path, presto__index *index, presto_error *err) {
    int fd;
    struct stat info;
    presto_error fault;
    presto_status status = presto__open_regular(path, &fd, &info, &fault);
    if (status == PRESTO_ERR_NOT_FOUND || (status < 0 && fault.sys_errno == EACCES))
        return PRESTO_END;
    if (status < 0 && err != NULL)
        *err = fault;
    PRESTO_TRY(status);
    if (info.st_size == 0)
        status = corrupt(path, "it is empty", err);
    if (status == PRESTO_OK) {
        void *mapping = mmap(NULL, (size_t)info.st_size, PROT_READ, MAP_SHARED, fd, 0);
        if (mapping == MAP_FAILED) {
            status = presto_fail_errno(err, errno, path, "cannot map");
        } else {
            index->mapping = mapping;
            index->mapping_bytes = (size_t)info.st_size;
        }
    }
    close(fd);
    return status;
}

presto_status presto__index_map(const char *data_path, const presto__index_key *key, bool full,
                                presto__index *index_out, presto_error *err) {
    presto__index index = {0};
    char *path = presto__index_name(data_path);
    if (path == NULL)
        return presto_fail_memory(err, strlen(data_path));
    presto_status status = map_file(path, &index, err);
    if (status == PRESTO_OK)
        status =
            check(path, presto_span_of(index.mapping, index.mapping_bytes), key, full, &index, err);
    if (status == PRESTO_OK)
        *index_out = index;
    else
        presto__index_done(&index);
    free(path);
    return status;
}

void presto__index_done(presto__index *index) {
    if (index->mapping != NULL)
        munmap(index->mapping, index->mapping_bytes);
    *index = (presto__index){0};
}

/* ---- writing ---- */

presto_status presto__index_write(const char *data_path, const presto__index_key *key,
                                  const uint64_t *offsets, uint64_t count, bool sync,
                                  presto_error *err) {
    uint8_t header[HEADER_BYTES] = {0};
    memcpy(header, magic, sizeof magic);
    presto__store_u32(header + AT_VERSION, VERSION);
    presto__store_u64(header + AT_COUNT, count);
    presto__store_u64(header + AT_DATA_BYTES, key->data_bytes);
    presto__store_u64(header + AT_MTIME, (uint64_t)key->data_mtime_ns);
    presto__store_u32(header + AT_HEADER_CRC, presto_crc32c(0, header, AT_HEADER_CRC));
    size_t body = (size_t)(count + 1) * 8;
    uint8_t trailer[TRAILER_BYTES];
    uint32_t crc = presto_crc32c(presto_crc32c(0, header, sizeof header), offsets, body);
    presto__store_u32(trailer, crc);
    const presto_span pieces[] = {presto_span_of(header, sizeof header),
                                  presto_span_of(offsets, body),
                                  presto_span_of(trailer, sizeof trailer)};
    char *path = presto__index_name(data_path);
    if (path == NULL)
        return presto_fail_memory(err, strlen(data_path));
    presto_status status = presto_file_replace(path, pieces, 3, sync, err);
    free(path);
    return status;
}

presto_status presto_index_write(const char *data_path, const uint64_t *offsets, uint64_t count,
                                 uint64_t data_bytes, presto_error *err) {
    struct stat info;
    if (stat(data_path, &info) != 0)
        return presto_fail_errno(err, errno, data_path, "cannot stat");
    if ((uint64_t)info.st_size != data_bytes)
        return presto_fail(err, PRESTO_ERR_CORRUPT, PRESTO_NO_OFFSET,
                           "the file has changed while it was indexed");
    presto__index_key key = {data_bytes, presto__mtime_ns(&info), false};
    PRESTO_TRY(presto__index_write(data_path, &key, offsets, count, true, err));
    return presto__sync_folder_of(data_path, err);
}
