/* SPDX-License-Identifier: Apache-2.0 */
/* One TFRecord file for reading by record number: opening it, and what is known of it since. */
#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "../../base/options_internal.h"
#include "../frame/frame_internal.h"
#include "../records_internal.h"
#include "shard_parts_internal.h"

void presto_shard_options_init(presto_shard_options *options, size_t struct_bytes) {
    const presto_shard_options defaults = {.verify = PRESTO_CHECK_FULL,
                                           .max_payload_bytes = PRESTO_FRAME_MAX_PAYLOAD_BYTES};
    presto__options_give(options, struct_bytes, &defaults, sizeof defaults);
}

static presto_status init_locks(presto_shard *shard, presto_error *err) {
    pthread_mutex_t *locks[] = {&shard->lock, &shard->index_lock, &shard->stream_lock};
    for (size_t i = 0; i < 3; i++) {
        int result = pthread_mutex_init(locks[i], NULL);
        if (result != 0) {
            while (i-- > 0)
                pthread_mutex_destroy(locks[i]);
            return presto_fail_errno(err, result, NULL, "cannot make a lock");
        }
    }
    return PRESTO_OK;
}

static presto_status look_at_file(presto_shard *shard, presto_error *err) {
    uint8_t head[512];
    size_t got;
    PRESTO_TRY(presto__object_open(shard->path, &shard->object, &shard->info, err));
    shard->file_bytes = shard->info.bytes;
    shard->is_remote = presto__path_is_remote(shard->path);
    shard->piece_bytes = shard->is_remote ? PRESTO__REMOTE_PIECE_BYTES : PRESTO__PIECE_BYTES;
    PRESTO_TRY(presto__read_at((presto__object_place){shard->object, shard->path, 0}, head,
                               sizeof head, &got, err));
    shard->compression = presto__detect_compression(presto_span_of(head, got));
    shard->has_records = presto__is_tfrecord(presto_span_of(head, got));
    if (!shard->options.map || shard->compression != PRESTO_FILE_PLAIN || shard->file_bytes == 0)
        return PRESTO_OK;
    shard->mapping = presto__object_map(shard->object, shard->file_bytes);
    if (shard->mapping == NULL && errno != 0)
        return presto_fail_errno(err, errno, shard->path, "cannot map");
    return PRESTO_OK;
}

presto_status presto__shard_open(const char *path, const presto_shard_options *options,
                                 presto__fd_pool *pool, presto_shard **shard_out,
                                 presto_error *err) {
    presto_shard_options taken;
    presto_shard_options_defaults(&taken);
    PRESTO_TRY(presto__options_take(&taken, sizeof taken, options, err));
    presto_shard *shard = calloc(1, sizeof *shard);
    if (shard == NULL)
        return presto_fail_memory(err, sizeof *shard);
    shard->options = taken;
    shard->options.max_payload_bytes = presto__payload_limit(shard->options.max_payload_bytes);
    presto_status status = init_locks(shard, err);
    if (status < 0) {
        free(shard);
        return status;
    }
    shard->path = strdup(path);
    if (shard->path == NULL)
        status = presto_fail_memory(err, strlen(path));
    else
        status = look_at_file(shard, err);
    if (status < 0) {
        presto_shard_free(shard);
        return status;
    }
    if (pool != NULL)
        presto__fd_pool_enter(pool, shard);
    *shard_out = shard;
    return PRESTO_OK;
}

presto_status presto_shard_open(const char *path, const presto_shard_options *options,
                                presto_shard **shard_out, presto_error *err) {
    return presto__shard_open(path, options, NULL, shard_out, err);
}

void presto_shard_free(presto_shard *shard) {
    if (shard == NULL)
        return;
    presto__fd_pool_leave(shard);
    presto__object_close(&shard->object);
    if (shard->mapping != NULL)
        munmap((void *)(uintptr_t)shard->mapping, (size_t)shard->file_bytes);
    presto__byte_stream_free(shard->stream);
    presto__shard_walker_free(shard->walk);
    presto__index_done(&shard->index);
    presto__found_free(atomic_load(&shard->found));
    presto__found_free(shard->unused);
    free(atomic_load(&shard->index_fault));
    free(atomic_load(&shard->warning));
    pthread_mutex_destroy(&shard->lock);
    pthread_mutex_destroy(&shard->index_lock);
    pthread_mutex_destroy(&shard->stream_lock);
    free(shard->path);
    free(shard);
}

const char *presto_shard_path(const presto_shard *shard) {
    return shard->path;
}

presto_file_compression presto__shard_compression(const presto_shard *shard) {
    return shard->compression;
}

uint64_t presto_shard_file_bytes(const presto_shard *shard) {
    return shard->file_bytes;
}

bool presto__shard_has_records(const presto_shard *shard) {
    return shard->has_records;
}

bool presto__shard_has_index_file(const presto_shard *shard) {
    return shard->from_file;
}

void presto__shard_describe_file(presto_shard *shard, uint64_t records, uint32_t crc32c) {
    shard->is_described = true;
    shard->said_records = records;
    shard->said_crc32c = crc32c;
}

bool presto__shard_index_is_of_other(const presto_shard *shard, uint32_t crc32c) {
    return shard->from_file && shard->index.knows_file_crc && shard->index.file_crc32c != crc32c;
}
