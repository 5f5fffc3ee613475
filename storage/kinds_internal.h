/* SPDX-License-Identifier: Apache-2.0 */
/* What a kind of storage does. For this room alone. */
#ifndef PRESTO_STORAGE_KINDS_INTERNAL_H
#define PRESTO_STORAGE_KINDS_INTERNAL_H

#include "outlet_internal.h"
#include "storage_internal.h"

/** How a kind is written, as the functions of outlet_internal.h say. */
typedef struct presto__outlet_kind {
    presto_status (*open)(const char *path, bool sync, void **state_out, presto_error *err);
    presto_status (*append)(void *state, presto_span bytes, presto_error *err);
    presto_status (*seal)(void *state, uint32_t crc32c, presto_error *err);
    presto_status (*look)(void *state, presto__object *object_out, presto_error *err);
    presto_status (*finish)(void *state, presto_error *err);
    void (*free)(void *state);
    presto_status (*put)(const char *path, const presto_span *pieces, size_t count,
                         const presto__put_how *how, presto_error *err);
    presto_status (*remove)(const char *path, presto_error *err);
    presto_status (*rename)(const char *from, const char *to, presto_error *err);
    /* NULL: the kind has no versions. */
    presto_status (*version)(const char *path, presto__version *version_out, presto_error *err);
    /* Of an object that is open. */
    void (*version_of)(presto__object object, presto__version *version_out);
    /* NULL: it has no uploads. */
    presto_status (*list_uploads)(const char *folder, presto__left_upload_fn tell, void *user,
                                  presto_error *err);
    presto_status (*abort_upload)(const char *path, const char *id, presto_error *err);
} presto__outlet_kind;

/** A kind. Its hooks are called by any thread; they know nothing of stops and of what is played. */
struct presto__storage_kind {
    const char *name;
    /* Its bytes come over a network: they may be others than what is stored. */
    bool is_remote;
    /** Is it the kind of this path? */
    bool (*owns)(const char *path);

    /* As the functions of storage_internal.h say. */
    presto_status (*open)(const char *path, presto__object *object_out,
                          presto__object_info *info_out, presto_error *err);
    void (*close)(presto__object object);
    presto_status (*read)(const presto__object_place *place, void *data, size_t bytes,
                          size_t *got_out, presto_error *err);
    presto_status (*look)(presto__object object, const char *path, presto__object_info *info_out,
                          presto_error *err);
    presto_status (*find)(const char *path, presto__object_info *info_out, presto_error *err);
    int (*number)(presto__object object);

    /* NULL: it cannot be listed. */
    presto_status (*list)(const char *path, const presto__list *list, presto_error *err);
    /* NULL: nobody says it but the bytes. */
    presto_status (*checksum)(const char *path, presto__object_checksum *checksum_out,
                              presto_error *err);

    /* NULL: the kind has nothing of that. */
    void *(*map)(presto__object object, uint64_t bytes);
    /* `wanted` bytes of these will be read. */
    void (*will_read)(presto__object object, uint64_t offset, uint64_t bytes, uint64_t wanted);
    void (*will_open)(const char *path, uint64_t bytes);
    uint64_t (*next_data)(presto__object object, uint64_t from);
    presto_status (*drop)(const char *path, presto_error *err);
    /** Who asks there, and where it is: provider, key, region, endpoint; what it fails with leaves
     * what was found before. */
    presto_status (*describe)(const char *path, presto_place_facts *place_io, presto_error *err);
};

/** The kind that `path` is of. */
const presto__storage_kind *presto__storage_kind_of(const char *path);

extern const presto__outlet_kind presto__outlet_file;
extern const presto__outlet_kind presto__outlet_s3;
extern const presto__outlet_kind presto__outlet_gs;

/** Files of this machine, and whatever it has mounted: every path that no other kind owns. */
extern const presto__storage_kind presto__storage_file;
/** http:// and https://. */
extern const presto__storage_kind presto__storage_http;
/** s3://BUCKET/KEY. */
extern const presto__storage_kind presto__storage_s3;
/** gs://BUCKET/KEY. */
extern const presto__storage_kind presto__storage_gs;
/** hf://datasets/OWNER/NAME/FILE. */
extern const presto__storage_kind presto__storage_hf;
/** NAME://PATH, of file systems that the program gives. */
extern const presto__storage_kind presto__storage_given;

#endif
