/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the samples of one tar archive: a walk over its headers. Of a sample, only its place is
 * kept; its headers are read again with it.
 *
 * Damage makes the sample at hand one that fails, for it may lack members. The walk then goes on at
 * the next header.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "../../../base/retry_internal.h"
#include "source_tar_internal.h"

#define MOST_EXTENSIONS 256 /* told apart */
#define MOST_EXTENSION_BYTES ((size_t)200)
#define MOST_TOLD_BYTES ((size_t)64 << 10) /* extensions of one sample; no more are counted */
/* Names of folders that are labels, beside a byte for each of the archives: samples of many classes
 * that alternate name their folder each. */
#define MOST_FOLDER_BYTES ((uint64_t)64 << 20)
#define MOST_EMPTY_FOLDERS ((size_t)1000)   /* told of, in one archive */
#define MOST_LOST_BYTES ((uint64_t)1 << 30) /* read of headers that do not hold, in one archive */

/* Members of one key, so far. */
typedef struct tar_group {
    bool is_open;
    presto_buffer key;
    presto_buffer extensions; /* each with a NUL, in lower case */
    uint64_t start, end;
    presto__tar_rank rank; /* of the best main member */
    size_t main_at;        /* its extension in `extensions` */
    size_t members;        /* with the key */
    size_t usual;          /* members of the sample before */
} tar_group;

typedef struct tar_scan {
    const presto__tar_source *source;
    presto__tar_names *names; /* of all archives */
    const presto__file *entry;
    presto__tar_found *found;
    presto__tar tar;
    tar_group group;
    presto_buffer folder; /* a member that is a folder, as long as nothing in it was met */
} tar_scan;

/* ---- extensions ---- */

presto_status presto__tar_tally_add(presto__tar_tallies *tallies, const char *extension,
                                    uint64_t samples, presto_error *err) {
    size_t i = 0;
    while (i < tallies->count && strcmp(tallies->items[i].extension, extension) != 0)
        i++;
    if (i == MOST_EXTENSIONS)
        return PRESTO_OK;
    if (i == tallies->capacity) {
        size_t capacity = tallies->capacity * 2 + 4;
        presto__tar_tally *items = realloc(tallies->items, capacity * sizeof *items);
        if (items == NULL)
            return presto_fail_memory(err, capacity * sizeof *items);
        tallies->items = items;
        tallies->capacity = capacity;
    }
    if (i == tallies->count) {
        tallies->items[i] = (presto__tar_tally){.extension = strdup(extension)};
        if (tallies->items[i].extension == NULL)
            return presto_fail_memory(err, strlen(extension) + 1);
        tallies->count++;
    }
    tallies->items[i].samples += samples;
    return PRESTO_OK;
}

/* ---- folders as labels ---- */

/* The name of the archive without its endings: the class of members that are in no folder. */
static presto_span archive_name(const presto__file *entry) {
    const char *slash = strrchr(entry->path, '/');
    const char *name = slash == NULL ? entry->path : slash + 1;
    size_t bytes = strcspn(name, ".");
    return bytes == 0 ? presto_span_of_text(name) : presto_span_of(name, bytes);
}

static presto_span folder_of(const tar_scan *scan, presto_span key) {
    while (key.bytes > 0 &&
           (key.data[0] == '/' || (key.data[0] == '.' && key.bytes > 1 && key.data[1] == '/')))
        key = presto_span_of(key.data + 1, key.bytes - 1);
    size_t end = key.bytes;
    while (end > 0 && key.data[end - 1] != '/')
        end--;
    if (end <= 1)
        return archive_name(scan->entry);
    if (scan->source->is_top_folder)
        return presto_span_of(
            key.data, (size_t)((const uint8_t *)memchr(key.data + 1, '/', end - 1) - key.data));
    size_t start = end - 1;
    while (start > 0 && key.data[start - 1] != '/')
        start--;
    return presto_span_of(key.data + start, end - 1 - start);
}

/* Names of folders that all archives have, however many threads look for them. */
static presto_status count_folder(tar_scan *scan, presto_span folder, presto_error *err) {
    uint64_t most = MOST_FOLDER_BYTES + atomic_load(&scan->names->archive_bytes);
    uint64_t bytes = atomic_fetch_add(&scan->names->folder_bytes, folder.bytes) + folder.bytes;
    if (bytes <= most)
        return PRESTO_OK;
    return presto_fail(err, PRESTO_ERR_LIMIT, PRESTO_NO_OFFSET,
                       "the folders of its samples, which are labels, have names of %" PRIu64
                       " bytes, too many for its size: give another source.label",
                       bytes);
}

/* For now the label is the folder's position in `folders`. */
static presto_status find_label(tar_scan *scan, presto_span key, int64_t *label_out,
                                presto_error *err) {
    presto__tar_found *found = scan->found;
    presto_span folder = folder_of(scan, key);
    size_t count = found->folder_count;
    if (count == 0 || !presto_span_is(folder, found->folders[count - 1])) {
        if (count == found->folder_capacity) {
            size_t capacity = count == 0 ? 4 : count * 2;
            char **folders = realloc(found->folders, capacity * sizeof *folders);
            if (folders == NULL)
                return presto_fail_memory(err, capacity * sizeof *folders);
            found->folders = folders;
            found->folder_capacity = capacity;
        }
        PRESTO_TRY(count_folder(scan, folder, err));
        found->folders[count] = presto_span_to_text(folder);
        if (found->folders[count] == NULL)
            return presto_fail_memory(err, folder.bytes + 1);
        found->folder_count++;
    }
    *label_out = (int64_t)found->folder_count - 1;
    return PRESTO_OK;
}

/* A folder in which no sample was found here. */
static presto_status add_empty_folder(tar_scan *scan, presto_span key, presto_error *err) {
    presto__tar_found *found = scan->found;
    presto_span folder = folder_of(scan, key);
    size_t count = found->empty_count;
    if (!scan->source->has_folder_labels || count == MOST_EMPTY_FOLDERS ||
        (count > 0 && presto_span_is(folder, found->empty_folders[count - 1])))
        return PRESTO_OK;
    if (found->empty_folders == NULL)
        found->empty_folders = calloc(MOST_EMPTY_FOLDERS, sizeof *found->empty_folders);
    char *copy = found->empty_folders == NULL ? NULL : presto_span_to_text(folder);
    if (copy == NULL)
        return presto_fail_memory(err, MOST_EMPTY_FOLDERS * sizeof copy);
    found->empty_folders[found->empty_count++] = copy;
    return PRESTO_OK;
}

/* ---- samples ---- */

static presto_status add_sample(presto__tar_found *found, const presto__tar_sample *sample,
                                presto_error *err) {
    if (found->sample_count == found->sample_capacity) {
        size_t capacity = found->sample_capacity == 0 ? 64 : found->sample_capacity * 2;
        presto__tar_sample *samples = realloc(found->samples, capacity * sizeof *samples);
        if (samples == NULL)
            return presto_fail_memory(err, capacity * sizeof *samples);
        found->samples = samples;
        found->sample_capacity = capacity;
    }
    found->samples[found->sample_count++] = *sample;
    return PRESTO_OK;
}

static presto_status close_group(tar_scan *scan, presto_error *err) {
    tar_group *group = &scan->group;
    presto_span key = presto_buffer_span(&group->key);
    if (!group->is_open)
        return PRESTO_OK;
    group->is_open = false;
    group->usual = group->members;
    presto__tar_found *found = scan->found;
    if (group->rank.pattern == SIZE_MAX) {
        size_t shown = sizeof found->first_no_main;
        if (found->no_main++ == 0)
            snprintf(found->first_no_main, shown, "%.*s",
                     (int)(key.bytes < shown ? key.bytes : shown), (const char *)key.data);
        return add_empty_folder(scan, key, err);
    }
    presto__tar_sample sample = {.offset = group->start, .bytes = group->end - group->start};
    for (size_t at = 0; at < group->extensions.bytes;) {
        const char *extension = (const char *)group->extensions.data + at;
        if (at != group->main_at)
            PRESTO_TRY(presto__tar_tally_add(&found->tallies, extension, 1, err));
        at += strlen(extension) + 1;
    }
    if (scan->source->has_folder_labels)
        PRESTO_TRY(find_label(scan, key, &sample.label, err));
    found->whole++;
    return add_sample(found, &sample, err);
}

static presto_status add_extension(tar_group *group, presto_span extension, presto_error *err) {
    if (group->extensions.bytes > MOST_TOLD_BYTES)
        return PRESTO_OK;
    if (extension.bytes > MOST_EXTENSION_BYTES)
        extension.bytes = MOST_EXTENSION_BYTES;
    size_t at = group->extensions.bytes;
    PRESTO_TRY(presto_buffer_append(&group->extensions, extension, err));
    PRESTO_TRY(presto_buffer_append(&group->extensions, presto_span_of("", 1), err));
    for (size_t i = at; i < group->extensions.bytes; i++)
        group->extensions.data[i] = presto__tar_lower(group->extensions.data[i]);
    return PRESTO_OK;
}

/* A folder in which there is nothing is a class for who unpacks the tar. `name`: of the member
 * behind it. */
static presto_status close_folder(tar_scan *scan, presto_span name, presto_error *err) {
    presto_span folder = presto_buffer_span(&scan->folder);
    bool is_empty = folder.bytes > 0 && (name.bytes < folder.bytes ||
                                         memcmp(name.data, folder.data, folder.bytes) != 0);
    scan->folder.bytes = 0;
    return is_empty ? add_empty_folder(scan, folder, err) : PRESTO_OK;
}

static presto_status add_member(tar_scan *scan, const presto__tar_member *member,
                                presto_error *err) {
    tar_group *group = &scan->group;
    presto_span key, extension;
    PRESTO_TRY(close_folder(scan, member->name, err));
    if (!member->is_file && scan->source->has_folder_labels && member->name.bytes > 0 &&
        member->name.data[member->name.bytes - 1] == '/')
        return presto_buffer_append(&scan->folder, member->name, err);
    if (!member->is_file)
        return PRESTO_OK;
    if (!presto__tar_split(member->name, &key, &extension)) {
        scan->found->no_key++;
        return PRESTO_OK;
    }
    if (!group->is_open || !presto_span_equal(key, presto_buffer_span(&group->key))) {
        PRESTO_TRY(close_group(scan, err));
        group->is_open = true;
        group->start = member->start;
        group->extensions.bytes = group->key.bytes = 0;
        group->members = 0;
        group->rank = (presto__tar_rank){SIZE_MAX, SIZE_MAX};
        PRESTO_TRY(presto_buffer_append(&group->key, key, err));
    }
    presto__tar_rank rank = presto__tar_rank_of(scan->source, member->name, extension);
    if (rank.pattern != SIZE_MAX && presto__tar_rank_is_better(rank, group->rank)) {
        group->rank = rank;
        group->main_at = group->extensions.bytes;
    }
    group->end = member->data + member->bytes;
    group->members++;
    return add_extension(group, extension, err);
}

/* ---- archives ---- */

/* The sample at hand, or what stands at tar->next, is one that fails. */
static presto_status add_failure(tar_scan *scan, presto_error *err) {
    presto__tar_sample sample = {.offset =
                                     scan->group.is_open ? scan->group.start : scan->tar.next};
    scan->group.is_open = false;
    return add_sample(scan->found, &sample, err);
}

/* Does the member that failed belong to another sample than that at hand? If its name is not known,
 * going by what the sample before had. */
static bool is_of_next_sample(const tar_scan *scan) {
    presto_span key, extension;
    if (presto__tar_split(presto_buffer_span(&scan->tar.name), &key, &extension))
        return !presto_span_equal(key, presto_buffer_span(&scan->group.key));
    return scan->group.members >= scan->group.usual;
}

/* Behind zeros or damage: PRESTO_END if nothing follows. */
static presto_status go_on(tar_scan *scan, const presto_error *why, presto_error *err) {
    presto_error ignored;
    PRESTO_TRY(close_folder(scan, presto_span_of("", 0), err));
    if (why == NULL) {
        scan->found->lacks_end = scan->tar.lacks_end;
        PRESTO_TRY(close_group(scan, err));
        return presto__tar_pass_zeros(&scan->tar, &ignored) == PRESTO_OK ? PRESTO_OK : PRESTO_END;
    }
    if (why->status == PRESTO_ERR_TRUNCATED && is_of_next_sample(scan))
        PRESTO_TRY(close_group(scan, err));
    PRESTO_TRY(add_failure(scan, err));
    if (scan->tar.lost_bytes > MOST_LOST_BYTES) {
        /* An archive that is made of broken headers would be read a thousand times over. */
        scan->found->left_out_from = scan->tar.next;
        return PRESTO_END;
    }
    return presto__tar_resume(&scan->tar, &ignored) == PRESTO_OK ? PRESTO_OK : PRESTO_END;
}

static presto_status walk(tar_scan *scan, presto_error *err) {
    for (;;) {
        presto__tar_member member;
        presto_error why;
        presto_status status = presto__tar_next(&scan->tar, &member, &why);
        if (status < 0 && presto__is_machine_failure(&why)) {
            if (err != NULL)
                *err = why;
            return status;
        }
        status = status == PRESTO_OK ? add_member(scan, &member, err)
                                     : go_on(scan, status < 0 ? &why : NULL, err);
        if (status != PRESTO_OK)
            return status < 0 ? status : PRESTO_OK;
    }
}

static presto_status scan_open(tar_scan *scan, presto_error *err) {
    presto__tar_file file = {0};
    presto_error why;
    presto_status status = presto__tar_file_open(&file, scan->entry, &why);
    if (status < 0 && !presto__is_machine_failure(&why))
        return add_failure(scan, err);
    if (status < 0) {
        if (err != NULL)
            *err = why;
        return status;
    }
    scan->found->is_gzip = file.stream != NULL;
    scan->tar.view = presto__tar_file_view;
    scan->tar.skip = presto__tar_file_skip;
    scan->tar.user = &file;
    status = walk(scan, err);
    if (status < 0)
        presto_error_set_file(err, scan->entry->path);
    presto__tar_file_close(&file);
    return status;
}

presto_status presto__tar_scan_archive(const presto__tar_source *source, size_t archive,
                                       presto__tar_names *names, presto__tar_found *found_out,
                                       presto_error *err) {
    tar_scan scan = {.source = source,
                     .names = names,
                     .entry = &source->files.entries[archive],
                     .found = found_out};
    (void)atomic_fetch_add(&names->archive_bytes, scan.entry->bytes);
    presto_status status = scan_open(&scan, err);
    presto_buffer_done(&scan.group.key);
    presto_buffer_done(&scan.folder);
    presto_buffer_done(&scan.group.extensions);
    presto__tar_done(&scan.tar);
    return status;
}

void presto__tar_found_free(presto__tar_found *found) {
    if (found == NULL)
        return;
    for (size_t i = 0; i < found->tallies.count; i++)
        free(found->tallies.items[i].extension);
    free(found->tallies.items);
    for (size_t i = 0; i < found->folder_count; i++)
        free(found->folders[i]);
    free(found->folders);
    for (size_t i = 0; i < found->empty_count; i++)
        free(found->empty_folders[i]);
    free(found->empty_folders);
    free(found->samples);
    free(found);
}
