/* SPDX-License-Identifier: Apache-2.0 */
/* Writing files of records. */
#include "records.h"
#include "records/records_internal.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <presto/crc32c.h>

static records_spent write_presto(const uint8_t *data, size_t record_bytes, uint64_t records) {
    char path[600];
    presto__shard_writer *writer;
    presto__shard_writer_options options;
    presto__shard_writer_options_defaults(&options);
    options.sync = false;
    snprintf(path, sizeof path, "%s/presto.tfrecord", records_set.dir);
    records_spent time = {0, 0}, start = records_now();
    MUST(presto__shard_writer_open(path, &options, &writer, &records_err));
    for (uint64_t i = 0; i < records; i++)
        MUST(presto__shard_writer_append(writer, presto_span_of(data, record_bytes), &records_err));
    MUST(presto__shard_writer_finish(writer, NULL, &records_err));
    presto__shard_writer_free(writer);
    records_count_since(&time, start);
    unlink(path);
    char index[700];
    snprintf(index, sizeof index, "%s.index", path);
    unlink(index);
    return time;
}

/* Frames into a buffer with one CRC a payload, and write(). */
static records_spent write_bare(const uint8_t *data, size_t record_bytes, uint64_t records) {
    char path[600];
    size_t capacity = ((size_t)256 << 10) + record_bytes + 16;
    uint8_t *buffer = records_malloc(capacity);
    size_t have = 0;
    snprintf(path, sizeof path, "%s/bare.tfrecord", records_set.dir);
    records_spent time = {0, 0}, start = records_now();
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0666);
    for (uint64_t i = 0; i < records; i++) {
        uint64_t length = record_bytes;
        uint8_t *at = buffer + have;
        memcpy(at, &length, 8);
        uint32_t crc = presto_crc32c_mask(records_isal_crc(at, 8));
        memcpy(at + 8, &crc, 4);
        memcpy(at + 12, data, record_bytes);
        crc = presto_crc32c_mask(records_isal_crc(at + 12, record_bytes));
        memcpy(at + 12 + record_bytes, &crc, 4);
        have += record_bytes + 16;
        if (have >= (256U << 10) || i + 1 == records) {
            if (write(fd, buffer, have) != (ssize_t)have)
                records_die("write");
            have = 0;
        }
    }
    close(fd);
    records_count_since(&time, start);
    unlink(path);
    free(buffer);
    return time;
}

void records_bench_write(size_t record_bytes) {
    uint8_t *data = records_malloc(record_bytes + 8);
    records_fill(data, record_bytes + 8);
    uint64_t records = (uint64_t)(records_set.file_mib * 1048576) / (record_bytes + 16) + 1;
    records_series ours = {.count = 0}, bare = {.count = 0};
    double bytes = (double)(records * (record_bytes + 16));
    for (unsigned round = 0; round <= records_set.rounds; round++) {
        records_spent a = write_presto(data, record_bytes, records);
        records_spent b = write_bare(data, record_bytes, records);
        if (round == 0)
            continue;
        records_add(&ours, a, bytes);
        records_add(&bare, b, bytes);
    }
    char name[64];
    snprintf(name, sizeof name, "%zu B", record_bytes);
    records_print(name, &ours, &bare, 1, "GB/s");
    free(data);
}
