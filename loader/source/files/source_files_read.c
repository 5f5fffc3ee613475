/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads one source file as a whole. The content is that of the listed file: if it was cut, has
 * grown or was replaced meanwhile, or changes while it is read, its sample is an error. Anything
 * but a regular file is refused without waiting for it.
 */
#include <errno.h>
#include <inttypes.h>

#include <presto/numbers.h>

#include "../../../base/retry_internal.h"
#include "../../../storage/storage_internal.h"
#include "source_files_internal.h"

static presto_status fail_file(const presto__file_request *request, presto_status status,
                               presto_error *err) {
    presto_error_set_file(err, request->path);
    return status;
}

/* The size and time of the file at an earlier moment. */
typedef struct earlier {
    uint64_t bytes;
    int64_t mtime_ns;
    const char *since; /* "since it was listed": for messages */
} earlier;

/* Does it still have that size and time? */
static presto_status check_unchanged(const presto__file_request *request,
                                     const presto__object_info *info, const earlier *was,
                                     presto_error *err) {
    uint64_t found = info->bytes;
    if (found == was->bytes && info->mtime_ns == was->mtime_ns)
        return PRESTO_OK;
    if (found != was->bytes)
        return fail_file(request,
                         presto_fail(err, PRESTO_ERR_IO, PRESTO_NO_OFFSET,
                                     "has changed %s: it has %" PRIu64 " byte%s, not %" PRIu64,
                                     was->since, found, presto_plural(found), was->bytes),
                         err);
    return fail_file(request,
                     presto_fail(err, PRESTO_ERR_IO, PRESTO_NO_OFFSET,
                                 "has changed %s: it was written to", was->since),
                     err);
}

static presto_status check_listed(const presto__file_request *request,
                                  const presto__object_info *info, presto_error *err) {
    const presto__file *listed = request->listed;
    if (listed != NULL && listed->stamp != 0) {
        const earlier was = {listed->bytes, listed->mtime_ns, "since it was listed"};
        PRESTO_TRY(check_unchanged(request, info, &was, err));
    }
    if (info->bytes <= request->max_bytes)
        return PRESTO_OK;
    return fail_file(request,
                     presto_fail(err, PRESTO_ERR_LIMIT, PRESTO_NO_OFFSET,
                                 "has %ju byte%s, more than the source's max-bytes (%" PRIu64 ")",
                                 (uintmax_t)info->bytes, presto_plural(info->bytes),
                                 request->max_bytes),
                     err);
}

typedef struct open_file {
    presto__object object;
    presto__object_info info; /* as it was opened */
} open_file;

static presto_status read_object(const presto__file_request *request, const open_file *file,
                                 presto_arena *arena, presto_span *bytes_out, presto_error *err) {
    const earlier was = {file->info.bytes, file->info.mtime_ns, "while it was read"};
    size_t wanted = (size_t)was.bytes;
    size_t got = 0;
    presto__object_info after;
    uint8_t *data = presto_arena_alloc(arena, wanted > 0 ? wanted : 1, 64);
    if (data == NULL)
        return presto_fail_memory(err, wanted);
    PRESTO_TRY(presto__read_at((presto__object_place){file->object, request->path, 0}, data, wanted,
                               &got, err));
    PRESTO_TRY(presto__object_look(file->object, request->path, &after, err));
    if (got == wanted)
        PRESTO_TRY(check_unchanged(request, &after, &was, err));
    if (got < wanted)
        return fail_file(request,
                         presto_fail(err, PRESTO_ERR_IO, got,
                                     "has changed while it was read: it ends before byte %zu",
                                     wanted),
                         err);
    *bytes_out = presto_span_of(data, wanted);
    return PRESTO_OK;
}

static presto_status open_listed(const presto__file_request *request, open_file *file_out,
                                 presto_error *err) {
    PRESTO_TRY(presto__object_open(request->path, &file_out->object, &file_out->info, err));
    presto_status status = check_listed(request, &file_out->info, err);
    if (status < 0)
        presto__object_close(&file_out->object);
    return status;
}

presto_status presto__source_file_open(const presto__file_request *request,
                                       presto__object *object_out, presto_error *err) {
    open_file file;
    PRESTO_TRY(open_listed(request, &file, err));
    *object_out = file.object;
    return PRESTO_OK;
}

static presto_status read_once(const presto__file_request *request, presto_arena *arena,
                               presto_span *bytes_out, presto_error *err) {
    open_file file;
    PRESTO_TRY(open_listed(request, &file, err));
    presto_status status = read_object(request, &file, arena, bytes_out, err);
    presto__object_close(&file.object);
    return status;
}

presto_status presto__source_file_read(const presto__file_request *request, presto_arena *arena,
                                       presto_span *bytes_out, presto_error *err) {
    presto_error own;
    unsigned tries = 0;
    presto_status status;
    if (err == NULL)
        err = &own;
    do
        status = read_once(request, arena, bytes_out, err);
    while (status < 0 && presto__retry_pause(err->sys_errno, &tries));
    return status;
}
