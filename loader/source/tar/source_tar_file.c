/* SPDX-License-Identifier: Apache-2.0 */
/* The bytes of an archive: of a plain one from any place, of one in gzip from front to back. */
#include <stdlib.h>

#include "../../../base/content_internal.h"
#include "../../../storage/storage_internal.h"
#include "source_tar_internal.h"

#define FAR_READ_BYTES ((size_t)4 << 10)   /* at a place far from the last: a header, little more */
#define NEAR_READ_BYTES ((size_t)64 << 10) /* where small members stand close together */
#define STEP_BYTES ((size_t)256 << 10)
/* This much of a stream is kept for threads that come late. */
#define BEHIND_BYTES ((uint64_t)32 << 20)

/* Enough for the signatures of all formats that could stand in the place of a tar file. */
#define HEAD_BYTES 1024

static presto_status look_at(presto__tar_file *file, const char *path, presto_error *err) {
    uint8_t head[HEAD_BYTES];
    size_t got;
    PRESTO_TRY(presto__read_at((presto__object_place){file->object, path, 0}, head, sizeof head,
                               &got, err));
    if (got >= 2 && head[0] == 0x1f && head[1] == 0x8b)
        return presto__byte_stream_new(file->object, path, PRESTO_FILE_GZIP, &file->stream, err);
    const presto__content *content = presto__content_of(presto_span_of(head, got));
    if (content == NULL || content->group < PRESTO__CONTENT_IMAGE ||
        strcmp(content->name, "tar") == 0)
        return PRESTO_OK;
    if (content->group == PRESTO__CONTENT_COMPRESSED)
        return presto_fail(err, PRESTO_ERR_UNSUPPORTED, 0,
                           "is compressed with %s: decompress it, or compress it with gzip",
                           content->name);
    return presto__content_refuse(content, PRESTO__CONTENT_ARCHIVE, "a tar file", err);
}

presto_status presto__tar_file_open(presto__tar_file *file, const presto__file *entry,
                                    presto_error *err) {
    const presto__file_request request = {entry->path, entry, UINT64_MAX};
    presto__tar_file opened = {.entry = entry};
    PRESTO_TRY(presto__source_file_open(&request, &opened.object, err));
    presto_status status = look_at(&opened, entry->path, err);
    if (status < 0) {
        presto_error_set_file(err, entry->path);
        presto__tar_file_close(&opened);
        return status;
    }
    *file = opened;
    return PRESTO_OK;
}

void presto__tar_file_close(presto__tar_file *file) {
    if (file->entry != NULL)
        presto__object_close(&file->object);
    presto__byte_stream_free(file->stream);
    presto_buffer_done(&file->window);
    free(file->damage);
    *file = (presto__tar_file){0};
}

static presto_status view_plain(presto__tar_file *file, uint64_t offset, size_t count,
                                presto_span *view_out, presto_error *err) {
    uint64_t end = file->window_at + file->window.bytes;
    bool is_near = offset >= file->window_at && offset - file->window_at < 2 * NEAR_READ_BYTES;
    if (offset < file->window_at || offset > end || end - offset < count) {
        size_t wanted = is_near ? NEAR_READ_BYTES : FAR_READ_BYTES, got = 0;
        wanted = wanted > count ? wanted : count;
        file->window.bytes = 0;
        PRESTO_TRY(presto_buffer_reserve(&file->window, wanted, err));
        if (offset < (uint64_t)INT64_MAX - wanted)
            PRESTO_TRY(
                presto__read_at((presto__object_place){file->object, file->entry->path, offset},
                                file->window.data, wanted, &got, err));
        file->window.bytes = got;
        file->window_at = offset;
        file->read_bytes += got;
    }
    size_t there = file->window.bytes - (size_t)(offset - file->window_at);
    *view_out = presto_span_of(file->window.data + (size_t)(offset - file->window_at),
                               there < count ? there : count);
    return PRESTO_OK;
}

/* A view of `count` bytes from `offset` on ended early. What may pass is not kept: memory, a disk. */
static void keep_end(presto__tar_file *file, uint64_t end, const presto_error *why) {
    if (file->has_end ||
        (why != NULL && why->status != PRESTO_ERR_CORRUPT && why->status != PRESTO_ERR_TRUNCATED))
        return;
    if (why != NULL) {
        file->damage = malloc(sizeof *file->damage);
        if (file->damage == NULL)
            return;
        *file->damage = *why;
    }
    file->end = end;
    file->has_end = true;
}

static presto_status view_decompressed(presto__tar_file *file, uint64_t offset, size_t count,
                                       presto_span *view_out, presto_error *err) {
    presto_error why;
    *view_out = (presto_span){0};
    presto_status status = presto__byte_stream_view(file->stream, offset, count, view_out, &why);
    if (status < 0 && err != NULL)
        *err = why;
    if (status < 0 || view_out->bytes < count)
        keep_end(file, offset + view_out->bytes, status < 0 ? &why : NULL);
    return status;
}

static presto_status view_behind_the_end(const presto__tar_file *file, presto_span *view_out,
                                         presto_error *err) {
    *view_out = (presto_span){0};
    if (file->damage == NULL)
        return PRESTO_OK;
    if (err != NULL)
        *err = *file->damage;
    return file->damage->status;
}

/* What lies between is decompressed and dropped, except for a little. */
static presto_status view_stream(presto__tar_file *file, uint64_t offset, size_t count,
                                 presto_span *view_out, presto_error *err) {
    presto__byte_stream *stream = file->stream;
    uint64_t reach;
    if (file->has_end && offset >= file->end)
        return view_behind_the_end(file, view_out, err);
    if (offset < presto__byte_stream_base(stream))
        PRESTO_TRY(presto__byte_stream_rewind(stream, err));
    while ((reach = presto__byte_stream_reach(stream)) < offset) {
        size_t step = offset - reach < STEP_BYTES ? (size_t)(offset - reach) : STEP_BYTES;
        PRESTO_TRY(view_decompressed(file, reach, step, view_out, err));
        if (view_out->bytes < step) {
            view_out->bytes = 0;
            return PRESTO_OK;
        }
        presto__byte_stream_forget(stream, reach > BEHIND_BYTES ? reach - BEHIND_BYTES : 0);
    }
    presto__byte_stream_forget(stream, offset > BEHIND_BYTES ? offset - BEHIND_BYTES : 0);
    return view_decompressed(file, offset, count, view_out, err);
}

presto_status presto__tar_file_view(void *user, uint64_t offset, size_t count,
                                    presto_span *view_out, presto_error *err) {
    presto__tar_file *file = user;
    if (file->stream == NULL)
        return view_plain(file, offset, count, view_out, err);
    uint64_t before = presto__byte_stream_file_bytes(file->stream);
    presto_status status = view_stream(file, offset, count, view_out, err);
    uint64_t after = presto__byte_stream_file_bytes(file->stream);
    file->read_bytes += after >= before ? after - before : after; /* after a rewind: all anew */
    return status;
}

uint64_t presto__tar_file_skip(void *user, uint64_t offset) {
    const presto__tar_file *file = user;
    if (file->stream != NULL)
        return offset;
    uint64_t data = presto__object_next_data(file->object, offset);
    return data != UINT64_MAX && data > offset ? data : offset;
}
