/* SPDX-License-Identifier: Apache-2.0 */
/* All kinds of raw source. Their options are in steps/pipeline/source_types.c. */
#include <stdio.h>

#include "../../base/paths_internal.h"
#include "../../records/dataset/dataset_internal.h"
#include "../../storage/storage_internal.h"
#include "../loader_internal.h"
#include "files/source_files_internal.h"

/* Names looked at before giving up. */
#define MOST_NAMES 10000

#define KIND(name) &presto__source_##name,
static const presto__source_kind *const kinds[] = {PRESTO__SOURCE_KINDS(KIND)};
#define KIND_COUNT (sizeof kinds / sizeof kinds[0])

const presto__source_kind *presto__source_kind_find(const char *name) {
    for (size_t i = 0; i < KIND_COUNT; i++)
        if (strcmp(kinds[i]->name, name) == 0)
            return kinds[i];
    return NULL;
}

typedef struct records_search {
    presto__listing listing;
    size_t names;
} records_search;

static bool has_seen_enough(void *user) {
    records_search *search = user;
    return search->listing.count > 0 || ++search->names > MOST_NAMES;
}

/* A folder's list has what holds records; a file that is named is in the list anyway. */
static bool has_records(const records_search *search, const char *path) {
    presto__object_info info;
    bool is_file =
        presto__object_find(path, &info, NULL) == PRESTO_OK && info.type == PRESTO__OBJECT_FILE;
    return search->listing.count > 0 && (!is_file || presto__file_is_tfrecord(path));
}

/* Nothing fits the source. Are there TFRecords, for which another source is needed? */
static void advise(const char *const *paths, size_t path_count, presto_error *err) {
    for (size_t i = 0; err != NULL && i < path_count; i++) {
        records_search search = {.listing = {.should_stop = has_seen_enough}};
        search.listing.should_stop_user = &search;
        (void)presto__listing_of(&paths[i], 1, &search.listing, NULL);
        size_t used = strlen(err->message);
        bool found = has_records(&search, paths[i]);
        if (found)
            snprintf(err->message + used, sizeof err->message - used,
                     "; it holds TFRecords: say with --from which representation they are, as "
                     "in --from concatenated --feature NAME");
        presto__listing_done(&search.listing);
        if (found)
            return;
    }
}

/* Sources whose samples can be counted later are asked how, and counted unless that may wait. */
static presto_status settle(const presto_shard_options *options, presto_source *source,
                            presto_error *err) {
    if (options != NULL && source->ops->keep_as != NULL)
        PRESTO_TRY(source->ops->keep_as(source, options, err));
    if ((options != NULL && options->count_later) ||
        presto_source_count(source) != PRESTO_COUNT_UNKNOWN)
        return PRESTO_OK;
    PRESTO_TRY(presto__source_settle(source, err));
    source->count = source->full_count = presto_source_count(source);
    return PRESTO_OK;
}

static presto_status open_kind(const presto__source_kind *kind, const presto__raw_request *request,
                               const presto__paths *paths, presto_source **source_out,
                               presto_error *err) {
    presto_source *source;
    PRESTO_TRY(kind->open(request->pipeline, (const char *const *)paths->items, paths->count,
                          &source, err));
    presto_status status = settle(request->shard, source, err);
    if (status < 0)
        presto__source_free(source);
    else
        *source_out = source;
    return status;
}

presto_status presto__source_open_request(const presto__raw_request *request,
                                          presto_source **source_out, presto_error *err) {
    const presto_source_type *type = presto_pipeline_source(request->pipeline);
    const char *const *paths = request->paths;
    size_t path_count = request->path_count;
    const char *name = type->name;
    const presto__source_kind *kind = presto__source_kind_find(name);
    if (kind == NULL)
        return presto_fail(err, PRESTO_ERR_UNSUPPORTED, PRESTO_NO_OFFSET,
                           "sources of type %s are not part of this build", name);
    if (type->takes_no_paths && path_count > 0)
        return presto_fail(err, PRESTO_ERR_ARGUMENT, PRESTO_NO_OFFSET,
                           "%s: a source of type %s makes its samples and reads nothing", paths[0],
                           name);
    if (!type->takes_no_paths && path_count == 0)
        return presto_fail(err, PRESTO_ERR_NOT_FOUND, PRESTO_NO_OFFSET, "no path is given");
    presto__paths expanded;
    presto_status status = presto__paths_expand(paths, path_count, &expanded, err);
    if (status >= 0)
        status = open_kind(kind, request, &expanded, source_out, err);
    if (status == PRESTO_ERR_NOT_FOUND && !type->takes_records)
        advise((const char *const *)expanded.items, expanded.count, err);
    presto__paths_done(&expanded);
    return status;
}

presto_status presto__source_open_raw(const presto_pipeline *pipeline, const char *const *paths,
                                      size_t path_count, presto_source **source_out,
                                      presto_error *err) {
    const presto__raw_request request = {pipeline, paths, path_count, NULL};
    return presto__source_open_request(&request, source_out, err);
}
