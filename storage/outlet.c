/* SPDX-License-Identifier: Apache-2.0 */
/* The door for what is written: the kind of storage does it. */
#include "outlet_internal.h"

#include <stdlib.h>
#include <string.h>

#include "../base/stop_internal.h"
#include "kinds_internal.h"

struct presto__outlet {
    const presto__outlet_kind *kind;
    void *state;
};

static presto_status fail_kind(const char *path, presto_error *err) {
    presto_status status = presto_fail(
        err, PRESTO_ERR_UNSUPPORTED, PRESTO_NO_OFFSET,
        "nothing is written to %.*s:// (it is only read): write to a folder, to s3:// or to gs://",
        (int)strcspn(path, ":"), path);
    presto_error_set_file(err, path);
    return status;
}

static presto_status kind_of(const char *path, const presto__outlet_kind **kind_out,
                             presto_error *err) {
    static const struct {
        const presto__storage_kind *kind;
        const presto__outlet_kind *outlet;
    } kinds[] = {{&presto__storage_file, &presto__outlet_file},
                 {&presto__storage_s3, &presto__outlet_s3},
                 {&presto__storage_gs, &presto__outlet_gs}};
    const presto__storage_kind *kind = presto__storage_kind_of(path);
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        if (kinds[i].kind == kind) {
            *kind_out = kinds[i].outlet;
            return PRESTO_OK;
        }
    return fail_kind(path, err);
}

static presto_status fail_versions(const char *path, presto_error *err) {
    presto_status status = presto_fail(err, PRESTO_ERR_UNSUPPORTED, PRESTO_NO_OFFSET,
                                       "this kind of storage has no versions");
    presto_error_set_file(err, path);
    return status;
}

presto_status presto__path_check_writable(const char *path, presto_error *err) {
    const presto__outlet_kind *kind;
    return kind_of(path, &kind, err);
}

presto_status presto__outlet_open(const char *path, bool sync, presto__outlet **outlet_out,
                                  presto_error *err) {
    const presto__outlet_kind *kind;
    PRESTO_TRY(kind_of(path, &kind, err));
    presto__outlet *outlet = calloc(1, sizeof *outlet);
    if (outlet == NULL)
        return presto_fail_memory(err, sizeof *outlet);
    outlet->kind = kind;
    presto_status status = kind->open(path, sync, &outlet->state, err);
    if (status < 0) {
        free(outlet);
        return status;
    }
    *outlet_out = outlet;
    return PRESTO_OK;
}

presto_status presto__outlet_append(presto__outlet *outlet, presto_span bytes, presto_error *err) {
    return bytes.bytes == 0 ? PRESTO_OK : outlet->kind->append(outlet->state, bytes, err);
}

presto_status presto__outlet_seal(presto__outlet *outlet, uint32_t crc32c, presto_error *err) {
    return outlet->kind->seal(outlet->state, crc32c, err);
}

presto_status presto__outlet_look(presto__outlet *outlet, presto__object *object_out,
                                  presto_error *err) {
    return outlet->kind->look(outlet->state, object_out, err);
}

presto_status presto__outlet_finish(presto__outlet *outlet, presto_error *err) {
    return outlet->kind->finish(outlet->state, err);
}

void presto__outlet_free(presto__outlet *outlet) {
    if (outlet == NULL)
        return;
    outlet->kind->free(outlet->state);
    free(outlet);
}

presto_status presto__object_put(const char *path, const presto_span *pieces, size_t count,
                                 const presto__put_how *how, presto_error *err) {
    const presto__outlet_kind *kind;
    PRESTO_TRY(kind_of(path, &kind, err));
    return kind->put(path, pieces, count, how, err);
}

presto_status presto__object_version(const char *path, presto__version *version_out,
                                     presto_error *err) {
    const presto__outlet_kind *kind;
    PRESTO_TRY(kind_of(path, &kind, err));
    return kind->version == NULL ? fail_versions(path, err) : kind->version(path, version_out, err);
}

presto_status presto__object_read_version(const char *path, uint64_t most_bytes, presto_buffer *out,
                                          presto__version *version_out, presto_error *err) {
    const presto__outlet_kind *kind;
    presto__object object;
    presto__object_info info;
    PRESTO_TRY(kind_of(path, &kind, err));
    if (kind->version_of == NULL)
        return fail_versions(path, err);
    PRESTO_TRY(presto__object_open(path, &object, &info, err));
    size_t got = 0, before = out->bytes;
    presto_status status = PRESTO_OK;
    if (info.bytes > most_bytes)
        status = presto_fail(err, PRESTO_ERR_LIMIT, most_bytes, "is too large: %ju bytes",
                             (uintmax_t)info.bytes);
    if (status == PRESTO_OK)
        status = presto_buffer_reserve(out, (size_t)info.bytes + 1, err);
    if (status == PRESTO_OK)
        status = presto__read_at((presto__object_place){object, path, 0}, out->data + before,
                                 (size_t)info.bytes, &got, err);
    if (status == PRESTO_OK) {
        out->bytes = before + got;
        kind->version_of(object, version_out);
    } else {
        presto_error_set_file(err, path);
    }
    presto__object_close(&object);
    return status;
}

presto_status presto__object_remove(const char *path, presto_error *err) {
    const presto__outlet_kind *kind;
    PRESTO_TRY(kind_of(path, &kind, err));
    return kind->remove(path, err);
}

presto_status presto__object_rename(const char *from, const char *to, presto_error *err) {
    const presto__outlet_kind *kind;
    PRESTO_TRY(kind_of(from, &kind, err));
    return kind->rename(from, to, err);
}

presto_status presto__uploads_list(const char *folder, presto__left_upload_fn tell, void *user,
                                   presto_error *err) {
    const presto__outlet_kind *kind;
    PRESTO_TRY(kind_of(folder, &kind, err));
    return kind->list_uploads == NULL ? PRESTO_OK : kind->list_uploads(folder, tell, user, err);
}

presto_status presto__upload_abort(const char *path, const char *id, presto_error *err) {
    const presto__outlet_kind *kind;
    PRESTO_TRY(kind_of(path, &kind, err));
    return kind->abort_upload == NULL ? PRESTO_OK : kind->abort_upload(path, id, err);
}

typedef struct aborting {
    size_t folder_bytes; /* of the path, with the '/' */
    size_t count;
} aborting;

/* Folders below may be others'. */
static presto_status abort_one(void *user, const presto__left_upload *upload, presto_error *err) {
    aborting *pass = user;
    if (strchr(upload->path + pass->folder_bytes, '/') != NULL)
        return PRESTO_OK;
    PRESTO_TRY(presto__upload_abort(upload->path, upload->id, err));
    pass->count++;
    return PRESTO_OK;
}

presto_status presto__uploads_abort_all(const char *folder, size_t *count_out, presto_error *err) {
    size_t bytes = strlen(folder);
    aborting pass = {.folder_bytes = bytes + (bytes > 0 && folder[bytes - 1] != '/')};
    presto_status status = presto__uploads_list(folder, abort_one, &pass, err);
    if (count_out != NULL)
        *count_out = pass.count;
    return status;
}
