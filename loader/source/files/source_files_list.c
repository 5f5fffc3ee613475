/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lists the files of a source, and reports those left out.
 *
 * Invariant: the list depends only on the names below the roots. The order is bytewise by relative
 * path, root by root. Below a root no folder is entered twice (presto__object_list). A file with
 * several names is a sample of each.
 */
#define _GNU_SOURCE /* FNM_CASEFOLD */
#include <errno.h>
#include <fnmatch.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>

#include <presto/numbers.h>

#include "../../../base/file_internal.h"
#include "../../../base/paths_internal.h"
#include "../../../records/shard/shard_internal.h"
#include "source_files_internal.h"

#define MOST_KINDS 32 /* told apart */
#define KINDS_TOLD 6
#define MOST_ENDING_BYTES 12
#define KIND_BYTES 24
#define NOTE_BYTES 512

/* Files left out, by the ending of their names. */
typedef struct kind {
    char text[KIND_BYTES]; /* ".txt" */
    uint64_t count;
} kind;

typedef struct file_search {
    presto__files *source;
    const presto_option *match;
    size_t root_bytes; /* of the root's path with its slash: what keys leave out */
    kind kinds[MOST_KINDS];
    size_t kind_count;
    uint64_t left_out; /* files whose names do not match */
    const char *odd;   /* the first file that was named although it does not match; NULL: none */
    char **folders;    /* below the root, if the source wants them */
    size_t folder_count, folder_capacity;
} file_search;

static bool name_matches(const file_search *search, const char *name) {
    for (size_t i = 0; i < search->match->text_count; i++)
        if (fnmatch(search->match->texts[i], name, FNM_CASEFOLD) == 0)
            return true;
    return false;
}

/* ---- what is left out ---- */

/* The ending in lower case; a long or odd one counts as none. */
static void kind_of(const char *name, char text_out[KIND_BYTES]) {
    const char *ending = strrchr(name, '.');
    size_t bytes = ending == NULL ? 0 : strlen(ending);
    snprintf(text_out, KIND_BYTES, "without ending");
    if (bytes < 2 || bytes > MOST_ENDING_BYTES)
        return;
    for (size_t i = 1; i < bytes; i++)
        if (!(ending[i] >= '0' && ending[i] <= '9') && !(ending[i] >= 'a' && ending[i] <= 'z') &&
            !(ending[i] >= 'A' && ending[i] <= 'Z'))
            return;
    for (size_t i = 0; i <= bytes; i++)
        text_out[i] =
            (char)(ending[i] >= 'A' && ending[i] <= 'Z' ? ending[i] - 'A' + 'a' : ending[i]);
}

static void count_kind(file_search *search, const char *text) {
    size_t i = 0;
    search->left_out++;
    while (i < search->kind_count && strcmp(search->kinds[i].text, text) != 0)
        i++;
    if (i == MOST_KINDS)
        return; /* "others", which are counted by what the known kinds lack */
    if (i == search->kind_count)
        snprintf(search->kinds[search->kind_count++].text, KIND_BYTES, "%s", text);
    search->kinds[i].count++;
}

static int compare_kinds(const void *a, const void *b) {
    const kind *left = a;
    const kind *right = b;
    if (left->count != right->count)
        return left->count < right->count ? 1 : -1;
    return strcmp(left->text, right->text);
}

/* "20 files left out: 19 .txt, 1 without ending" */
static void tell_left_out(file_search *search, char *text, size_t room) {
    uint64_t others = search->left_out;
    size_t used = (size_t)snprintf(text, room, "%" PRIu64 " file%s left out: ", search->left_out,
                                   presto_plural(search->left_out));
    qsort(search->kinds, search->kind_count, sizeof search->kinds[0], compare_kinds);
    for (size_t i = 0; i < search->kind_count && i < KINDS_TOLD; i++) {
        used += (size_t)snprintf(text + used, room - used, "%s%" PRIu64 " %s", i == 0 ? "" : ", ",
                                 search->kinds[i].count, search->kinds[i].text);
        others -= search->kinds[i].count;
    }
    if (others > 0)
        snprintf(text + used, room - used, ", %" PRIu64 " other%s", others, presto_plural(others));
}

/* ---- finding files ---- */

static presto_status want_name(void *user, const char *folder, const char *name, bool *wanted_out,
                               presto_error *err) {
    (void)user, (void)folder, (void)err;
    *wanted_out = name[0] != '.';
    return PRESTO_OK;
}

static presto_status add_found(void *user, const presto__listed *found, presto_error *err) {
    file_search *search = user;
    bool matches = name_matches(search, found->name);
    char text[KIND_BYTES];
    if (found->info == NULL) {
        /* A link to nothing, or to a place that may not be read. If its name matches, it is a
         * sample that fails when it is read. */
        int code = found->sys_errno;
        if (code == ENOMEM || (!matches && code != ENOENT && code != ELOOP && code != ENOTDIR))
            return presto_fail_errno(err, code, found->path, "cannot stat");
    } else if (found->info->type != PRESTO__OBJECT_FILE) {
        if (matches)
            count_kind(search, "no regular file");
        return PRESTO_OK;
    } else if (!matches) {
        kind_of(found->name, text);
        count_kind(search, text);
    }
    return matches ? presto__files_add(search->source, found->path, search->root_bytes, found->info,
                                       err)
                   : PRESTO_OK;
}

static presto_status add_text(char ***texts, size_t *count, size_t *capacity, const char *text,
                              presto_error *err) {
    if (*count == *capacity) {
        size_t more = *capacity * 2 + 16;
        char **grown = realloc(*texts, more * sizeof *grown);
        if (grown == NULL)
            return presto_fail_memory(err, more * sizeof *grown);
        *texts = grown;
        *capacity = more;
    }
    (*texts)[*count] = strdup(text);
    if ((*texts)[*count] == NULL)
        return presto_fail_memory(err, strlen(text) + 1);
    (*count)++;
    return PRESTO_OK;
}

static presto_status add_folder(void *user, const char *path, presto_error *err) {
    file_search *search = user;
    if (strlen(path) <= search->root_bytes)
        return PRESTO_OK; /* the root itself */
    return add_text(&search->folders, &search->folder_count, &search->folder_capacity,
                    path + search->root_bytes, err);
}

static int compare_texts(const void *a, const void *b) {
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static bool lies_below(const char *path, const char *folder) {
    size_t bytes = strlen(folder);
    return strncmp(path, folder, bytes) == 0 && path[bytes] == '/';
}

/* Is one of the sorted entries below the folder? */
static bool has_entry(const presto__file *entries, size_t count, const char *folder) {
    size_t low = 0, high = count, bytes = strlen(folder);
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        const char *key = entries[middle].path + entries[middle].key_at;
        int order = strncmp(key, folder, bytes);
        if (order < 0 || (order == 0 && (unsigned char)key[bytes] < '/'))
            low = middle + 1;
        else
            high = middle;
    }
    return low < count && lies_below(entries[low].path + entries[low].key_at, folder);
}

/* Of the folders of a root, whose entries begin at `before`, keep the outermost ones without
 * files. */
static presto_status keep_empty_folders(file_search *search, size_t before, presto_error *err) {
    presto__files *source = search->source;
    size_t count = (size_t)source->base.full_count - before, capacity = source->empty_count;
    const char *last = NULL;
    presto_status status = PRESTO_OK;
    if (search->folder_count > 1)
        qsort(search->folders, search->folder_count, sizeof *search->folders, compare_texts);
    for (size_t i = 0; i < search->folder_count && status >= 0; i++) {
        const char *folder = search->folders[i];
        if ((last != NULL && (strcmp(folder, last) == 0 || lies_below(folder, last))) ||
            has_entry(source->entries + before, count, folder))
            continue;
        last = folder;
        status = add_text(&source->empty_folders, &source->empty_count, &capacity, folder, err);
    }
    return status;
}

static void forget_folders(file_search *search) {
    for (size_t i = 0; i < search->folder_count; i++)
        free(search->folders[i]);
    free(search->folders);
    search->folders = NULL;
    search->folder_count = search->folder_capacity = 0;
}

static int compare_entries(const void *a, const void *b) {
    const presto__file *left = a;
    const presto__file *right = b;
    return strcmp(left->path + left->key_at, right->path + right->key_at);
}

/* List everything at one path: a folder, or a named file, which need not match. */
static presto_status search_root(file_search *search, const char *path, presto_error *err) {
    presto__files *source = search->source;
    size_t before = (size_t)source->base.full_count;
    presto__object_info info;
    presto_error why;
    if (presto__object_find(path, &info, &why) < 0) {
        if (why.status == PRESTO_ERR_NOT_FOUND && !presto__path_is_remote(path))
            return presto__fail_no_path(path, err);
        if (err != NULL)
            *err = why;
        return why.status;
    }
    if (info.type == PRESTO__OBJECT_FILE) {
        const char *slash = strrchr(path, '/');
        size_t key_at = slash == NULL ? 0 : (size_t)(slash - path) + 1;
        if (search->odd == NULL && !name_matches(search, path + key_at))
            search->odd = path;
        return presto__files_add(source, path, key_at, &info, err);
    }
    if (info.type != PRESTO__OBJECT_FOLDER) {
        presto_status status =
            presto_fail(err, PRESTO_ERR_ARGUMENT, PRESTO_NO_OFFSET, "neither a file nor a folder");
        presto_error_set_file(err, path);
        return status;
    }
    size_t path_bytes = strlen(path);
    search->root_bytes = path_bytes + (path[path_bytes - 1] == '/' ? 0 : 1);
    const presto__list list = {.user = search,
                               .name = want_name,
                               .found = add_found,
                               .folder = source->wants_folders ? add_folder : NULL};
    presto_status status = presto__object_list(path, &list, err);
    if (status >= 0 && (size_t)source->base.full_count > before) {
        qsort(source->entries + before, (size_t)source->base.full_count - before,
              sizeof *source->entries, compare_entries);
        status = keep_empty_folders(search, before, err);
    }
    forget_folders(search);
    return status;
}

/* "no file matches *.jpg, *.jpeg (20 files left out: 19 .txt, 1 without ending)" */
static presto_status fail_empty(file_search *search, const char *path, presto_error *err) {
    char patterns[200] = "";
    char left_out[NOTE_BYTES] = "no file is there";
    size_t used = 0;
    for (size_t i = 0; i < search->match->text_count && used < sizeof patterns; i++)
        used += (size_t)snprintf(patterns + used, sizeof patterns - used, "%s%s",
                                 i == 0 ? "" : ", ", search->match->texts[i]);
    if (search->left_out > 0)
        tell_left_out(search, left_out, sizeof left_out);
    presto_status status = presto_fail(err, PRESTO_ERR_NOT_FOUND, PRESTO_NO_OFFSET,
                                       "no file matches %s (%s)", patterns, left_out);
    presto_error_set_file(err, path);
    return status;
}

bool presto__file_is_tfrecord(const char *path) {
    uint8_t head[512];
    size_t got = 0;
    presto__object_info info;
    presto__object object;
    if (presto__object_open(path, &object, &info, NULL) < 0)
        return false;
    (void)presto__read_at((presto__object_place){object, path, 0}, head, sizeof head, &got, NULL);
    presto__object_close(&object);
    return presto__is_tfrecord(presto_span_of(head, got));
}

#define MANIFEST(source)                                                                           \
    "source.type=manifest it would be the files that it lists, with source.type=" source           \
    " each of its "
#define TAR "source.type=tar it would be the samples that it holds"

/* Endings of files that hold many samples, and what the sources that take them make of them. */
static const struct {
    const char *ending, *instead;
} holders[] = {
    {".csv", MANIFEST("csv") "rows"},
    {".tsv", MANIFEST("csv") "rows"},
    {".jsonl", MANIFEST("jsonl") "lines"},
    {".ndjson", MANIFEST("jsonl") "lines"},
    {".json", MANIFEST("jsonl") "lines"},
    {".tar", TAR},
    {".tar.gz", TAR},
    {".tgz", TAR},
    {".csv.gz", "source.type=csv it would be each of its rows"},
    {".csv.zst", "source.type=csv it would be each of its rows"},
    {".jsonl.gz", "source.type=jsonl it would be each of its lines"},
    {".jsonl.zst", "source.type=jsonl it would be each of its lines"},
};

/* A file that was named is a sample, whatever its name; but that may not be what was meant. */
static presto_status advise_source(presto_source *source, const char *path, presto_error *err) {
    size_t bytes = strlen(path);
    for (size_t i = 0; i < sizeof holders / sizeof holders[0]; i++) {
        size_t ending = strlen(holders[i].ending);
        char text[NOTE_BYTES];
        if (bytes <= ending || strcasecmp(path + bytes - ending, holders[i].ending) != 0)
            continue;
        snprintf(text, sizeof text, "%.200s is taken as one sample: with %s", path,
                 holders[i].instead);
        return presto__source_note(source, text, err);
    }
    return PRESTO_OK;
}

/* TFRecords are no samples: they hold many. */
static presto_status check_odd(presto__files *source, const char *path, presto_error *err) {
    if (path == NULL)
        return PRESTO_OK;
    if (!presto__file_is_tfrecord(path))
        return source->holds_many ? PRESTO_OK : advise_source(&source->base, path, err);
    presto_status status = presto_fail(err, PRESTO_ERR_NOT_FOUND, PRESTO_NO_OFFSET,
                                       "its name is not that of a file of this source");
    presto_error_set_file(err, path);
    return status;
}

presto_status presto__files_list(presto__files *source, const presto_option *match,
                                 const char *const *paths, size_t path_count, presto_error *err) {
    file_search search = {.source = source, .match = match};
    char note[NOTE_BYTES];
    for (size_t i = 0; i < path_count; i++)
        PRESTO_TRY(search_root(&search, paths[i], err));
    source->file_count = (size_t)source->base.full_count;
    if (source->file_count == 0)
        return fail_empty(&search, paths[path_count - 1], err);
    PRESTO_TRY(check_odd(source, search.odd, err));
    if (search.left_out == 0)
        return PRESTO_OK;
    tell_left_out(&search, note, sizeof note);
    return presto__source_note(&source->base, note, err);
}
