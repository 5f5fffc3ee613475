/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Folders of TFRecord files as other programs write them: TFX and Beam
 * (data_tfrecord-00000-of-00012.gz), tfds (name-split.tfrecord-00000-of-00001), Spark
 * (part-*.tfrecord.gz in nested folders, beside _SUCCESS and .part-*.crc), ImageNet
 * (train-00000-of-01024).
 */
#include "../../base/paths_internal.h"
#include "dataset_internal.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>

#include <presto/dataset.h>

#include "../../base/content_internal.h"
#include "../../base/file_internal.h"
#include "../../storage/storage_internal.h"
#include "../shard/shard_internal.h"

void presto__listing_done(presto__listing *listing) {
    for (size_t i = 0; i < listing->count; i++)
        free(listing->paths[i]);
    free(listing->paths);
    free(listing->other);
    *listing = (presto__listing){0};
}

/* Takes over `path`. */
static presto_status add_path(presto__listing *listing, char *path, presto_error *err) {
    if (path == NULL)
        return presto_fail_memory(err, 1);
    if (listing->count == listing->capacity) {
        size_t capacity = listing->capacity * 2 + 16;
        char **paths = realloc(listing->paths, capacity * sizeof *paths);
        if (paths == NULL) {
            free(path);
            return presto_fail_memory(err, capacity * sizeof *paths);
        }
        listing->paths = paths;
        listing->capacity = capacity;
    }
    listing->paths[listing->count++] = path;
    return PRESTO_OK;
}

/* Does the name contain a part like "-00000-of-00001"? */
static bool has_shard_number(const char *name) {
    for (const char *at = strstr(name, "-of-"); at != NULL; at = strstr(at + 1, "-of-")) {
        size_t after = strspn(at + 4, "0123456789"), before = 0;
        while (at - before > name && at[-1 - (ptrdiff_t)before] >= '0' &&
               at[-1 - (ptrdiff_t)before] <= '9')
            before++;
        if (before >= 5 && after >= 5)
            return true;
    }
    return false;
}

/* Of an index beside a file of records, the bytes of that file's name; else 0. */
static size_t named_by_index(const char *name) {
    static const char *const suffixes[] = {".index", ".idx", ".tfindex"};
    for (size_t i = 0; i < sizeof suffixes / sizeof suffixes[0]; i++)
        if (presto__ends_with(name, suffixes[i]))
            return strlen(name) - strlen(suffixes[i]);
    return 0;
}

static bool passed_over(const char *name) {
    return name[0] == '.' || name[0] == '_' || presto__ends_with(name, ".json") ||
           named_by_index(name) > 0;
}

static bool named_as_records(const char *name) {
    return strstr(name, "tfrecord") != NULL || strstr(name, "tfrec") != NULL ||
           has_shard_number(name) || strncmp(name, "part-", 5) == 0;
}

/* Passed over: the first one by name stands for all. */
static presto_status note_other(presto__listing *listing, const char *path, presto_span head,
                                presto_error *err) {
    listing->others++;
    if (listing->other != NULL && strcmp(listing->other, path) <= 0)
        return PRESTO_OK;
    const presto__content *content = presto__content_of(head);
    char *copy = strdup(path);
    if (copy == NULL)
        return presto_fail_memory(err, strlen(path));
    free(listing->other);
    listing->other = copy;
    listing->other_content = content == NULL ? NULL : content->shown;
    return PRESTO_OK;
}

/*
 * Does it hold records? If the name does not tell: does the content start with a record's header,
 * plain or compressed? A file that we may not read is ignored. Any other failure is reported,
 * because it might hide data.
 */
static presto_status holds_records(presto__listing *listing, const char *path, const char *name,
                                   bool *holds_out, presto_error *err) {
    uint8_t head[512];
    size_t got = 0;
    *holds_out = named_as_records(name);
    if (*holds_out)
        return PRESTO_OK;
    presto__object object;
    presto__object_info info;
    presto_error why;
    presto_status status = presto__object_open(path, &object, &info, &why);
    if (status < 0) {
        if (why.sys_errno == EACCES || why.sys_errno == EPERM || why.sys_errno == ENOENT)
            return PRESTO_OK;
        if (err != NULL)
            *err = why;
        return status;
    }
    status = presto__read_at((presto__object_place){object, path, 0}, head, sizeof head, &got, err);
    presto__object_close(&object);
    PRESTO_TRY(status);
    const presto_span start = presto_span_of(head, got);
    *holds_out = presto__is_tfrecord(start);
    return *holds_out ? PRESTO_OK : note_other(listing, path, start, err);
}

static presto_status want_name(void *user, const char *folder, const char *name, bool *wanted_out,
                               presto_error *err) {
    const presto__listing *listing = user;
    if (listing->should_stop != NULL && listing->should_stop(listing->should_stop_user))
        return presto_fail(err, PRESTO_ERR_STOPPED, PRESTO_NO_OFFSET, "stopped");
    if (strcmp(name, PRESTO_DATASET_FILE) == 0) {
        presto_status status =
            presto_fail(err, PRESTO_ERR_ARGUMENT, PRESTO_NO_OFFSET,
                        "is a dataset with its own " PRESTO_DATASET_FILE ": open it by itself");
        presto_error_set_file(err, folder);
        return status;
    }
    if (strcmp(name, PRESTO_PROGRESS_FILE) == 0) {
        presto_status status = presto_fail(
            err, PRESTO_ERR_BUSY, PRESTO_NO_OFFSET,
            "is an unfinished dataset (it holds " PRESTO_PROGRESS_FILE "): the command that began "
            "it finishes it with --resume; whole shards of it can be read by their names");
        presto_error_set_file(err, folder);
        return status;
    }
    *wanted_out = !passed_over(name);
    return PRESTO_OK;
}

static presto_status add_found(void *user, const presto__listed *found, presto_error *err) {
    bool holds = false;
    if (found->info == NULL && found->sys_errno != ENOENT) /* or a dangling link */
        return presto_fail_errno(err, found->sys_errno, found->path, "cannot stat");
    if (found->info == NULL || found->info->type != PRESTO__OBJECT_FILE)
        return PRESTO_OK;
    PRESTO_TRY(holds_records(user, found->path, found->name, &holds, err));
    return holds ? add_path(user, strdup(found->path), err) : PRESTO_OK;
}

static int compare_paths(const void *a, const void *b) {
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Is there the folder in which many runs write parts of a dataset? */
static bool has_parts(const char *path) {
    char *parts = presto__join_path(path, "_parts");
    presto__object_info info;
    bool found = parts != NULL && !presto__path_is_remote(path) &&
                 presto__object_find(parts, &info, NULL) == PRESTO_OK;
    free(parts);
    return found;
}

static presto_status fail_empty(const presto__listing *listing, const char *path,
                                presto_error *err) {
    presto_status status;
    if (has_parts(path))
        status = presto_fail(err, PRESTO_ERR_BUSY, PRESTO_NO_OFFSET,
                             "is written in parts that are not joined yet: presto-write --join "
                             "makes a dataset of them");
    else if (listing->others == 0)
        status = presto_fail(err, PRESTO_ERR_NOT_FOUND, PRESTO_NO_OFFSET,
                             "no TFRecord files in this folder");
    else
        status = presto_fail(
            err, PRESTO_ERR_NOT_FOUND, PRESTO_NO_OFFSET,
            "no TFRecord files in this folder, but %zu other%s, such as '%s'%s%s: \"presto-write "
            "-p PIPELINE\" makes TFRecords of files",
            listing->others, listing->others == 1 ? "" : "s", listing->other,
            listing->other_content == NULL ? "" : ", ",
            listing->other_content == NULL ? "" : listing->other_content);
    presto_error_set_file(err, path);
    return status;
}

/* ---- files of several splits ---- */

#define MOST_SPLITS 32 /* told apart */
#define LIST_BYTES 200

/* Files of one split: train, test, ... */
typedef struct split {
    const char *name; /* borrowed from a path, or static */
    size_t name_bytes;
    size_t files;
    const char *first;    /* of its paths */
    size_t pattern_bytes; /* of it; with '*' behind it, this names all of the split */
    bool is_folder;       /* no '*' is needed */
} split;

static bool is_letter(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/* The last word of `text` that is usually the name of a split, as in "Split-train/data-00000",
 * "val_3.tfrec" or "train-00000-of-01024". */
static bool find_word(const char *text, split *found) {
    static const struct {
        const char *word, *name;
    } words[] = {{"train", "train"},    {"training", "train"}, {"test", "test"},
                 {"testing", "test"},   {"val", "validation"}, {"valid", "validation"},
                 {"dev", "validation"}, {"eval", "eval"},      {"validation", "validation"},
                 {"evaluation", "eval"}};
    const char *from = NULL;
    for (const char *at = text; *at != '\0'; at++) {
        if (!is_letter(*at) || (at > text && is_letter(at[-1])))
            continue;
        size_t bytes = 0;
        while (is_letter(at[bytes]))
            bytes++;
        for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
            if (strlen(words[i].word) == bytes && strncasecmp(words[i].word, at, bytes) == 0) {
                from = at;
                found->name = words[i].name;
                found->name_bytes = strlen(words[i].name);
                found->pattern_bytes = bytes; /* from the word on, for now */
            }
    }
    if (from == NULL)
        return false;
    found->pattern_bytes += (size_t)(from - text);
    const char *slash = strchr(from, '/');
    found->is_folder = slash != NULL;
    if (slash != NULL)
        found->pattern_bytes = (size_t)(slash - text);
    return true;
}

/* Of tfds, "mnist-train.tfrecord-00000-of-00001": what stands between the last '-' and the ending. */
static bool find_tfds_split(const char *path, split *found) {
    const char *slash = strrchr(path, '/'), *name = slash == NULL ? path : slash + 1;
    const char *end = strstr(name, ".tfrecord"), *dash = NULL;
    for (const char *at = name; end != NULL && at < end; at++)
        if (*at == '-')
            dash = at;
    if (dash == NULL || dash + 1 == end)
        return false;
    *found = (split){.name = dash + 1,
                     .name_bytes = (size_t)(end - dash) - 1,
                     .pattern_bytes = (size_t)(end - path)};
    return true;
}

/* Does the file's folder hold the description of a dataset of tfds? */
static bool is_of_tfds(const char *path) {
    static const char *const names[] = {"dataset_info.json", "features.json"};
    const char *slash = strrchr(path, '/');
    char *folder = slash == NULL ? strdup(".") : strndup(path, (size_t)(slash - path));
    bool is_there = false;
    for (size_t i = 0; folder != NULL && i < sizeof names / sizeof names[0] && !is_there; i++) {
        presto__object_info info;
        char *file = presto__join_path(folder, names[i]);
        is_there = file != NULL && presto__object_find(file, &info, NULL) == PRESTO_OK;
        free(file);
    }
    free(folder);
    return is_there;
}

static bool same_folder(const char *a, const char *b) {
    const char *end_a = strrchr(a, '/'), *end_b = strrchr(b, '/');
    if (end_a == NULL || end_b == NULL)
        return end_a == end_b;
    return end_a - a == end_b - b && memcmp(a, b, (size_t)(end_a - a)) == 0;
}

static void count_split(split *splits, size_t *count, const split *found) {
    size_t i = 0;
    while (i < *count && (splits[i].name_bytes != found->name_bytes ||
                          memcmp(splits[i].name, found->name, found->name_bytes) != 0))
        i++;
    if (i == MOST_SPLITS)
        return;
    if (i == *count)
        splits[(*count)++] = *found;
    splits[i].files++;
}

static presto_status fail_splits(const split *splits, size_t count, const char *folder,
                                 presto_error *err) {
    char list[LIST_BYTES] = "";
    size_t used = 0;
    const split *shown = &splits[0];
    for (size_t i = 0; i < count; i++) {
        if (presto_span_is(presto_span_of(splits[i].name, splits[i].name_bytes), "train"))
            shown = &splits[i];
        if (used < sizeof list)
            used += (size_t)snprintf(list + used, sizeof list - used, "%s%.*s (%zu file%s)",
                                     i == 0 ? "" : ", ", (int)splits[i].name_bytes, splits[i].name,
                                     splits[i].files, splits[i].files == 1 ? "" : "s");
    }
    presto_status status = presto_fail(
        err, PRESTO_ERR_ARGUMENT, PRESTO_NO_OFFSET,
        "holds %zu splits, which would be read as one: %s; name one of them, as in \"%.*s%s\", or "
        "each of them",
        count, list, (int)shown->pattern_bytes, shown->first, shown->is_folder ? "" : "*");
    presto_error_set_file(err, folder);
    return status;
}

/* Whoever names a folder does not mean to train on what is there for tests. */
static presto_status check_splits(const presto__listing *listing, size_t start, const char *folder,
                                  presto_error *err) {
    split splits[MOST_SPLITS];
    size_t count = 0, root = strlen(folder);
    bool is_tfds = false;
    for (size_t i = start; i < listing->count; i++) {
        const char *path = listing->paths[i];
        split found = {.files = 0};
        if (i == start || !same_folder(listing->paths[i - 1], path))
            is_tfds = is_of_tfds(path);
        bool is_found = is_tfds && find_tfds_split(path, &found);
        if (!is_found && find_word(path + root, &found)) {
            found.pattern_bytes += root;
            is_found = true;
        }
        found.first = path;
        if (is_found)
            count_split(splits, &count, &found);
    }
    return count < 2 ? PRESTO_OK : fail_splits(splits, count, folder, err);
}

static presto_status listing_add(presto__listing *listing, const char *path, presto_error *err) {
    presto__object_info info;
    PRESTO_TRY(presto__object_find(path, &info, err));
    if (info.type != PRESTO__OBJECT_FOLDER)
        return add_path(listing, strdup(path), err);
    size_t start = listing->count;
    const presto__list list = {.user = listing, .name = want_name, .found = add_found};
    PRESTO_TRY(presto__object_list(path, &list, err));
    if (listing->count == start)
        return fail_empty(listing, path, err);
    qsort(listing->paths + start, listing->count - start, sizeof *listing->paths, compare_paths);
    return listing->takes_splits ? PRESTO_OK : check_splits(listing, start, path, err);
}

/* ---- indexes that a shell's pattern names beside their files ---- */

/* Paths in the order of strcmp; NULL without memory. */
static const char **sorted_copy(const char *const *paths, size_t count) {
    const char **sorted = malloc((count + 1) * sizeof *sorted);
    if (sorted == NULL)
        return NULL;
    memcpy(sorted, paths, count * sizeof *sorted);
    qsort(sorted, count, sizeof *sorted, compare_paths);
    return sorted;
}

typedef struct prefix {
    const char *text;
    size_t bytes;
} prefix;

static int compare_prefix(const void *key, const void *path) {
    const prefix *wanted = key;
    const char *text = *(const char *const *)path;
    int order = strncmp(wanted->text, text, wanted->bytes);
    return order != 0 ? order : -(text[wanted->bytes] != '\0');
}

/* Is `path` an index, and the file that it belongs to named, too? */
static bool is_beside(const char *path, const char **sorted, size_t count) {
    const prefix file = {path, named_by_index(path)};
    return file.bytes > 0 && bsearch(&file, sorted, count, sizeof *sorted, compare_prefix) != NULL;
}

presto_status presto__listing_of(const char *const *paths, size_t path_count,
                                 presto__listing *listing, presto_error *err) {
    const char **sorted = sorted_copy(paths, path_count);
    presto_status status = sorted == NULL ? presto_fail_memory(err, path_count) : PRESTO_OK;
    for (size_t i = 0; i < path_count && status >= 0; i++)
        if (!is_beside(paths[i], sorted, path_count))
            status = listing_add(listing, paths[i], err);
    free(sorted);
    return status;
}
