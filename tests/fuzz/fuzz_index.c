/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An index file beside a small TFRecord file: the first half of the input is the index, the rest
 * the data. Whatever the index says, reading stays within the data.
 */
#include "fuzz.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <presto/crc32c.h>
#include <presto/shard.h>

static void write_file(const char *path, const uint8_t *data, size_t bytes) {
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    FUZZ_HOLDS(fd >= 0 && write(fd, data, bytes) == (ssize_t)bytes);
    close(fd);
}

/* Make the index refer to this file, otherwise nothing behind that check would be tested. */
static void adopt(uint8_t *index, size_t bytes, const uint8_t *data, size_t data_bytes,
                  const char *data_path) {
    struct stat info;
    FUZZ_HOLDS(stat(data_path, &info) == 0);
    int64_t mtime = (int64_t)info.st_mtim.tv_sec * 1000000000 + info.st_mtim.tv_nsec;
    uint64_t size = (uint64_t)info.st_size;
    if (bytes < 48)
        return;
    memcpy(index, "PRESTOIX", 8);
    index[8] = (uint8_t)(index[8] % 3 + 1); /* any version */
    memset(index + 9, 0, 3);
    memcpy(index + 24, &size, 8);
    if (index[8] < 3) {
        memcpy(index + 32, &mtime, 8);
    } else if (bytes >= 80) {
        uint32_t content = 0, places = presto_crc32c(0, index + 48, 32);
        for (size_t i = 0; i < 4; i++) {
            uint64_t at;
            memcpy(&at, index + 48 + 8 * i, 8);
            if (at <= data_bytes)
                content =
                    presto_crc32c(content, data + at, data_bytes - at < 16 ? data_bytes - at : 16);
        }
        memcpy(index + 36, &content, 4);
        memcpy(index + 40, &places, 4);
    }
    uint32_t header = presto_crc32c(0, index, 44);
    memcpy(index + 44, &header, 4);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes) {
    static char dir[64], path[96], index_path[112];
    if (dir[0] == '\0') {
        snprintf(dir, sizeof dir, "/tmp/presto-fuzz-XXXXXX");
        FUZZ_HOLDS(mkdtemp(dir) != NULL);
        snprintf(path, sizeof path, "%s/data", dir);
        snprintf(index_path, sizeof index_path, "%s.index", path);
    }
    size_t index_bytes = bytes / 2;
    uint8_t *index = malloc(index_bytes + 1);
    if (index == NULL)
        return 0;
    if (index_bytes > 0)
        memcpy(index, data, index_bytes);
    write_file(path, data + (bytes > 0 ? index_bytes : 0), bytes - index_bytes);
    adopt(index, index_bytes, data + index_bytes, bytes - index_bytes, path);
    write_file(index_path, index, index_bytes);
    free(index);
    for (int map = 0; map < 2; map++) {
        presto_shard_options options;
        presto_shard *shard = NULL;
        presto_block block = {0};
        presto_shard_options_defaults(&options);
        options.map = map == 1;
        if (presto_shard_open(path, &options, &shard, NULL) == PRESTO_OK &&
            presto_shard_index(shard, true, NULL, NULL) == PRESTO_OK) {
            uint64_t records = presto_shard_records(shard);
            presto_shard_fetch(shard, 0, (size_t)records, &block, NULL);
            for (uint64_t i = 0; i < records && i < 8; i++)
                presto_shard_fetch(shard, i, 1, &block, NULL);
        }
        presto_block_done(&block);
        presto_shard_free(shard);
    }
    unlink(path);
    unlink(index_path);
    return 0;
}
