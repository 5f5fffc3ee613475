/* SPDX-License-Identifier: Apache-2.0 */
/* Objects of any kind: the kind does it, while the caller's pass may be stopped and the storage that
 * is played takes its time. */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "../base/stop_internal.h"
#include "kinds_internal.h"
#include "play_internal.h"

#include <presto/numbers.h>

#define READ_BYTES ((size_t)64 << 10)
#define REMOTE_READ_BYTES ((size_t)4 << 20)
#define NS_PER_S 1000000000

presto_status presto__object_open(const char *path, presto__object *object_out,
                                  presto__object_info *info_out, presto_error *err) {
    PRESTO_TRY(presto__stop_check(err));
    presto__storage_thread *played = presto__storage_bound();
    uint64_t begin_ns = played == NULL ? 0 : presto__storage_begin(played);
    presto_status status = presto__storage_kind_of(path)->open(path, object_out, info_out, err);
    if (played != NULL && status == PRESTO_OK)
        presto__storage_opened(played, begin_ns);
    return status;
}

void presto__object_close(presto__object *object) {
    if (object->kind != NULL)
        object->kind->close(*object);
    *object = (presto__object){.kind = NULL};
}

presto_status presto__read_at(presto__object_place place, void *data, size_t bytes, size_t *got_out,
                              presto_error *err) {
    PRESTO_TRY(presto__stop_check(err));
    presto__storage_thread *played = presto__storage_bound();
    if (played == NULL)
        return place.object.kind->read(&place, data, bytes, got_out, err);
    uint64_t begin_ns = presto__storage_begin(played);
    PRESTO_TRY(place.object.kind->read(&place, data, bytes, got_out, err));
    const presto__storage_piece piece = {presto__object_number(place.object), place.offset,
                                         *got_out};
    presto__storage_read(played, begin_ns, &piece);
    return PRESTO_OK;
}

presto_status presto__object_look(presto__object object, const char *path,
                                  presto__object_info *info_out, presto_error *err) {
    return object.kind->look(object, path, info_out, err);
}

presto_status presto__object_find(const char *path, presto__object_info *info_out,
                                  presto_error *err) {
    return presto__storage_kind_of(path)->find(path, info_out, err);
}

presto_status presto__object_list(const char *path, const presto__list *list, presto_error *err) {
    const presto__storage_kind *kind = presto__storage_kind_of(path);
    PRESTO_TRY(presto__stop_check(err));
    if (kind->list != NULL)
        return kind->list(path, list, err);
    presto_status status =
        presto_fail(err, PRESTO_ERR_UNSUPPORTED, PRESTO_NO_OFFSET,
                    "what is there cannot be listed (%s): name each file, or read it from s3:// or "
                    "a folder",
                    kind->name);
    presto_error_set_file(err, path);
    return status;
}

presto_status presto__object_checksum_of(const char *path, presto__object_checksum *checksum_out,
                                         presto_error *err) {
    const presto__storage_kind *kind = presto__storage_kind_of(path);
    *checksum_out = (presto__object_checksum){.bytes = 0};
    PRESTO_TRY(presto__stop_check(err));
    return kind->checksum == NULL ? PRESTO_OK : kind->checksum(path, checksum_out, err);
}

bool presto__path_can_be_listed(const char *path) {
    return presto__storage_kind_of(path)->list != NULL;
}

bool presto__object_is_folder(const char *path) {
    presto__object_info info;
    return presto__object_find(path, &info, NULL) == PRESTO_OK &&
           info.type == PRESTO__OBJECT_FOLDER;
}

bool presto__object_is_same(const presto__object_info *a, const presto__object_info *b) {
    return a->identity[0] == b->identity[0] && a->identity[1] == b->identity[1] &&
           a->bytes == b->bytes && a->mtime_ns == b->mtime_ns;
}

/* Seconds and nanoseconds of a time, also of one before the epoch. */
static void split_time(int64_t ns, int64_t parts[2]) {
    parts[0] = ns / NS_PER_S - (ns % NS_PER_S < 0);
    parts[1] = ns - parts[0] * NS_PER_S;
}

void presto__digest_add_object(presto__digest *digest, const presto__object_info *info) {
    int64_t facts[5] = {(int64_t)info->bytes};
    split_time(info->mtime_ns, facts + 1);
    split_time(info->ctime_ns, facts + 3);
    presto__digest_add(digest, facts, sizeof facts);
}

bool presto__path_is_remote(const char *path) {
    return presto__storage_kind_of(path)->is_remote;
}

int presto__object_number(presto__object object) {
    return object.kind->number(object);
}

void *presto__object_map(presto__object object, uint64_t bytes) {
    errno = 0;
    return object.kind->map == NULL ? NULL : object.kind->map(object, bytes);
}

void presto__object_will_read(presto__object object, uint64_t offset, uint64_t bytes) {
    presto__object_will_read_of(object, offset, bytes, bytes);
}

void presto__object_will_read_of(presto__object object, uint64_t offset, uint64_t bytes,
                                 uint64_t wanted) {
    if (object.kind->will_read != NULL && bytes > 0)
        object.kind->will_read(object, offset, bytes, wanted);
}

void presto__object_will_open(const char *path, uint64_t bytes) {
    const presto__storage_kind *kind = presto__storage_kind_of(path);
    if (kind->will_open != NULL)
        kind->will_open(path, bytes);
}

uint64_t presto__object_next_data(presto__object object, uint64_t from) {
    return object.kind->next_data == NULL ? UINT64_MAX : object.kind->next_data(object, from);
}

presto_status presto__drop_from_cache(const char *path, presto_error *err) {
    const presto__storage_kind *kind = presto__storage_kind_of(path);
    return kind->drop == NULL ? PRESTO_OK : kind->drop(path, err);
}

/* ---- small objects as a whole ---- */

static presto_status fail_large(uint64_t most_bytes, presto_error *err) {
    return presto_fail(err, PRESTO_ERR_LIMIT, most_bytes,
                       "is larger than the %ju byte%s that such a file may have",
                       (uintmax_t)most_bytes, presto_plural(most_bytes));
}

/* The size that the file reports may be wrong: read to its end. Over a network, a piece is a round
 * trip. */
static presto_status read_to_end(presto__object object, const char *path, uint64_t most_bytes,
                                 presto_buffer *out, presto_error *err) {
    const size_t piece = object.kind->is_remote ? REMOTE_READ_BYTES : READ_BYTES;
    size_t got = piece;
    for (uint64_t offset = 0; got == piece; offset += got) {
        PRESTO_TRY(presto_buffer_reserve(out, piece, err));
        PRESTO_TRY(presto__read_at((presto__object_place){object, path, offset},
                                   out->data + out->bytes, piece, &got, err));
        if (got > most_bytes - offset)
            return fail_large(most_bytes, err);
        out->bytes += got;
    }
    return PRESTO_OK;
}

presto_status presto_file_read(const char *path, uint64_t most_bytes, presto_buffer *out,
                               presto_error *err) {
    presto__object object;
    presto__object_info info;
    size_t before = out->bytes;
    PRESTO_TRY(presto__object_open(path, &object, &info, err));
    presto_status status = info.bytes > most_bytes
                               ? fail_large(most_bytes, err)
                               : read_to_end(object, path, most_bytes, out, err);
    presto__object_close(&object);
    if (status < 0) {
        out->bytes = before;
        presto_error_set_file(err, path);
    }
    return status;
}
