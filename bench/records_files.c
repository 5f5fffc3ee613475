/* SPDX-License-Identifier: Apache-2.0 */
/* Files of records of one size, and the loop that checks their records by hand. */
#include "base/rng_internal.h"
#include "records.h"
#include "records/records_internal.h"

#include <stdio.h>
#include <string.h>

#include <presto/crc32c.h>
#include <presto/rng.h>

void records_fill(uint8_t *data, size_t bytes) {
    presto_rng rng;
    presto__rng_init(&rng, &(presto__rng_key){.seed = 3});
    for (size_t i = 0; i + 8 <= bytes; i += 8) {
        uint64_t value = presto_rng_next(&rng);
        memcpy(data + i, &value, 8);
    }
}

void records_make_file(records_file *file, size_t record_bytes) {
    presto__shard_writer *writer;
    presto__shard_summary summary;
    presto__shard_writer_options options;
    uint8_t *data = records_malloc(record_bytes + 8);
    records_fill(data, record_bytes + 8);
    snprintf(file->path, sizeof file->path, "%s/%zu.tfrecord", records_set.dir, record_bytes);
    presto__shard_writer_options_defaults(&options);
    options.sync = false;
    file->record_bytes = record_bytes;
    file->records = (uint64_t)(records_set.file_mib * 1048576) / (record_bytes + 16) + 1;
    MUST(presto__shard_writer_open(file->path, &options, &writer, &records_err));
    for (uint64_t i = 0; i < file->records; i++)
        MUST(presto__shard_writer_append(writer, presto_span_of(data, record_bytes), &records_err));
    MUST(presto__shard_writer_finish(writer, &summary, &records_err));
    presto__shard_writer_free(writer);
    file->bytes = summary.stored_bytes;
    free(data);
}

static uint32_t load_u32(const uint8_t *at) {
    uint32_t value;
    memcpy(&value, at, 4);
    return value;
}

uint64_t records_check(const uint8_t *data, size_t bytes, size_t *used_out) {
    uint64_t good = 0;
    size_t at = 0;
    while (bytes - at >= 16) {
        uint64_t length;
        memcpy(&length, data + at, 8);
        if (load_u32(data + at + 8) != presto_crc32c_mask(records_isal_crc(data + at, 8)))
            records_die("hand-written loop: length");
        if (length > bytes - at - 16)
            break;
        if (load_u32(data + at + 12 + length) !=
            presto_crc32c_mask(records_isal_crc(data + at + 12, length)))
            records_die("hand-written loop: payload");
        good++;
        at += length + 16;
    }
    *used_out = at;
    return good;
}
