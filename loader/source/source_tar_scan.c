/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the samples of tar archives: one walk over the headers of each when the source is opened.
 * Of a sample, only its place is kept; its headers are read again with it.
 *
 * Damage makes the sample at hand one that fails, for it may lack members. The walk then goes on at
 * the next header.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include <presto/numbers.h>

#include "../../base/retry_internal.h"
#include "source_tar_internal.h"

#define MOST_EXTENSIONS 256 /* told apart */
#define MOST_EXTENSION_BYTES ((size_t)200)
#define NOTE_BYTES 700
#define SHOWN_BYTES 120
#define MOST_NOTES 8                       /* about extensions */
#define MOST_TOLD_BYTES ((size_t)64 << 10) /* extensions of one sample; no more are counted */
/* Names of folders that are labels, beside a byte for each of the archives: samples of many classes
 * that alternate name their folder each. */
#define MOST_FOLDER_BYTES ((uint64_t)64 << 20)
#define MOST_LOST_BYTES ((uint64_t)1 << 30) /* read of headers that do not hold, in one archive */

/* How many samples have such a member beside the main one. */
typedef struct tar_tally {
    char *extension;
    uint64_t samples;
} tar_tally;

/* Members of one key, so far. */
typedef struct tar_group {
    bool is_open;
    presto_buffer key;
    presto_buffer extensions; /* each with a NUL, in lower case */
    uint64_t start, end;
    presto__tar_rank rank; /* of the best main member */
    size_t main_at;        /* its extension in `extensions` */
} tar_group;

typedef struct tar_scan {
    presto__tar_source *source;
    const presto__file *entry;
    presto__tar_file *file;
    presto__tar tar;
    tar_group group;
    tar_tally tallies[MOST_EXTENSIONS];
    size_t tally_count;
    char **folders; /* of samples, in order; the same folder twice only if another stood between */
    size_t folder_count, folder_capacity;
    uint64_t folder_bytes;  /* of those names */
    uint64_t archive_bytes; /* of the files up to the one at hand */
    uint64_t whole;         /* samples that do not fail */
    uint64_t no_main;       /* groups without a main member */
    uint64_t no_key;        /* members without extension */
    char first_no_main[SHOWN_BYTES];
} tar_scan;

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

/* For now the label is the folder's position in `folders`. */
static presto_status find_label(tar_scan *scan, presto_span key, int64_t *label_out,
                                presto_error *err) {
    presto_span folder = folder_of(scan, key);
    size_t count = scan->folder_count;
    if (count == 0 || !presto_span_is(folder, scan->folders[count - 1])) {
        if (count == scan->folder_capacity) {
            size_t capacity = count == 0 ? 64 : count * 2;
            char **folders = realloc(scan->folders, capacity * sizeof *folders);
            if (folders == NULL)
                return presto_fail_memory(err, capacity * sizeof *folders);
            scan->folders = folders;
            scan->folder_capacity = capacity;
        }
        scan->folder_bytes += folder.bytes;
        if (scan->folder_bytes > MOST_FOLDER_BYTES + scan->archive_bytes)
            return presto_fail(
                err, PRESTO_ERR_LIMIT, PRESTO_NO_OFFSET,
                "the folders of its samples, which are labels, have names of %" PRIu64
                " bytes, too many for its size: give another source.label",
                scan->folder_bytes);
        scan->folders[count] = presto_span_to_text(folder);
        if (scan->folders[count] == NULL)
            return presto_fail_memory(err, folder.bytes + 1);
        scan->folder_count++;
    }
    *label_out = (int64_t)scan->folder_count - 1;
    return PRESTO_OK;
}

static presto_status number_folders(tar_scan *scan, presto_error *err) {
    presto_source *base = &scan->source->files.base;
    base->label_names = calloc(scan->folder_count + 1, sizeof *base->label_names);
    if (base->label_names == NULL)
        return presto_fail_memory(err, (scan->folder_count + 1) * sizeof *base->label_names);
    for (; base->label_count < scan->folder_count; base->label_count++) {
        base->label_names[base->label_count] = strdup(scan->folders[base->label_count]);
        if (base->label_names[base->label_count] == NULL)
            return presto_fail_memory(err, strlen(scan->folders[base->label_count]) + 1);
    }
    base->label_count = presto__names_distinct(base->label_names, base->label_count);
    for (uint64_t i = 0; i < base->full_count; i++) {
        presto__tar_sample *sample = &scan->source->samples[i];
        if (sample->bytes > 0 && scan->folders != NULL) /* there is one, then */
            sample->label = (int64_t)presto__names_find(base->label_names, base->label_count,
                                                        scan->folders[sample->label]);
    }
    return PRESTO_OK;
}

/* ---- samples ---- */

static presto_status add_sample(presto__tar_source *source, const presto__tar_sample *sample,
                                presto_error *err) {
    presto_source *base = &source->files.base;
    if (base->full_count == source->sample_capacity) {
        size_t capacity = source->sample_capacity == 0 ? 256 : source->sample_capacity * 2;
        presto__tar_sample *samples = realloc(source->samples, capacity * sizeof *samples);
        if (samples == NULL)
            return presto_fail_memory(err, capacity * sizeof *samples);
        source->samples = samples;
        source->sample_capacity = capacity;
    }
    source->samples[base->full_count++] = *sample;
    return PRESTO_OK;
}

/* Every sample comes here with each of its extensions, so the usual ones are found at once. Those
 * beyond MOST_EXTENSIONS are not counted. */
static presto_status count_extension(tar_scan *scan, const char *extension, presto_error *err) {
    size_t i = 0;
    while (i < scan->tally_count && strcmp(scan->tallies[i].extension, extension) != 0)
        i++;
    if (i == MOST_EXTENSIONS)
        return PRESTO_OK;
    if (i == scan->tally_count) {
        scan->tallies[i] = (tar_tally){.extension = strdup(extension)};
        if (scan->tallies[i].extension == NULL)
            return presto_fail_memory(err, strlen(extension) + 1);
        scan->tally_count++;
    }
    scan->tallies[i].samples++;
    return PRESTO_OK;
}

static presto_status close_group(tar_scan *scan, presto_error *err) {
    tar_group *group = &scan->group;
    presto_span key = presto_buffer_span(&group->key);
    if (!group->is_open)
        return PRESTO_OK;
    group->is_open = false;
    if (group->rank.pattern == SIZE_MAX) {
        if (scan->no_main++ == 0)
            snprintf(scan->first_no_main, SHOWN_BYTES, "%.*s",
                     (int)(key.bytes < SHOWN_BYTES ? key.bytes : SHOWN_BYTES),
                     (const char *)key.data);
        return PRESTO_OK;
    }
    presto__tar_sample sample = {.offset = group->start, .bytes = group->end - group->start};
    for (size_t at = 0; at < group->extensions.bytes;) {
        const char *extension = (const char *)group->extensions.data + at;
        if (at != group->main_at)
            PRESTO_TRY(count_extension(scan, extension, err));
        at += strlen(extension) + 1;
    }
    if (scan->source->has_folder_labels)
        PRESTO_TRY(find_label(scan, key, &sample.label, err));
    scan->whole++;
    return add_sample(scan->source, &sample, err);
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

static presto_status add_member(tar_scan *scan, const presto__tar_member *member,
                                presto_error *err) {
    tar_group *group = &scan->group;
    presto_span key, extension;
    if (!member->is_file)
        return PRESTO_OK;
    if (!presto__tar_split(member->name, &key, &extension)) {
        scan->no_key++;
        return PRESTO_OK;
    }
    if (!group->is_open || !presto_span_equal(key, presto_buffer_span(&group->key))) {
        PRESTO_TRY(close_group(scan, err));
        group->is_open = true;
        group->start = member->start;
        group->extensions.bytes = group->key.bytes = 0;
        group->rank = (presto__tar_rank){SIZE_MAX, SIZE_MAX};
        PRESTO_TRY(presto_buffer_append(&group->key, key, err));
    }
    presto__tar_rank rank = presto__tar_rank_of(scan->source, member->name, extension);
    if (rank.pattern != SIZE_MAX && presto__tar_rank_is_better(rank, group->rank)) {
        group->rank = rank;
        group->main_at = group->extensions.bytes;
    }
    group->end = member->data + member->bytes;
    return add_extension(group, extension, err);
}

/* ---- archives ---- */

/* The sample at hand, or what stands at tar->next, is one that fails. */
static presto_status add_failure(tar_scan *scan, presto_error *err) {
    presto__tar_sample sample = {.offset =
                                     scan->group.is_open ? scan->group.start : scan->tar.next};
    scan->group.is_open = false;
    return add_sample(scan->source, &sample, err);
}

/* All samples share such a fault: opening the source fails. */
static bool is_fatal(const presto_error *why) {
    return why->status == PRESTO_ERR_MEMORY || presto__errno_is_machine(why->sys_errno);
}

/* An archive that is made of broken headers would be read a thousand times over. */
static presto_status leave_rest(tar_scan *scan, presto_error *err) {
    char text[NOTE_BYTES];
    const char *slash = strrchr(scan->entry->path, '/');
    snprintf(text, sizeof text,
             "%.300s: too many broken headers, left out from byte %" PRIu64 " on",
             slash == NULL ? scan->entry->path : slash + 1, scan->tar.next);
    PRESTO_TRY(presto__source_note(&scan->source->files.base, text, err));
    return PRESTO_END;
}

/* Behind zeros or damage: PRESTO_END if nothing follows. */
static presto_status go_on(tar_scan *scan, const presto_error *why, presto_error *err) {
    presto_error ignored;
    if (why == NULL) {
        PRESTO_TRY(close_group(scan, err));
        return presto__tar_pass_zeros(&scan->tar, &ignored) == PRESTO_OK ? PRESTO_OK : PRESTO_END;
    }
    PRESTO_TRY(add_failure(scan, err));
    if (scan->tar.lost_bytes > MOST_LOST_BYTES)
        return leave_rest(scan, err);
    return presto__tar_resume(&scan->tar, &ignored) == PRESTO_OK ? PRESTO_OK : PRESTO_END;
}

static presto_status walk(tar_scan *scan, presto_error *err) {
    for (;;) {
        presto__tar_member member;
        presto_error why;
        presto_status status = presto__tar_next(&scan->tar, &member, &why);
        if (status < 0 && is_fatal(&why)) {
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

static presto_status scan_archive(tar_scan *scan, size_t i, presto_error *err) {
    presto__tar_source *source = scan->source;
    presto__tar_archive *archive = &source->archives[i];
    presto__tar_file file = {0};
    presto_error why;
    scan->entry = &source->files.entries[i];
    archive->first = source->files.base.full_count;
    scan->archive_bytes += scan->entry->bytes;
    scan->tar.next = scan->tar.lost_bytes = 0;
    presto_status status = presto__tar_file_open(&file, scan->entry, &why);
    if (status < 0 && !is_fatal(&why))
        return add_failure(scan, err);
    if (status < 0) {
        if (err != NULL)
            *err = why;
        return status;
    }
    archive->is_gzip = file.stream != NULL;
    scan->tar.view = presto__tar_file_view;
    scan->tar.user = &file;
    status = walk(scan, err);
    if (status < 0)
        presto_error_set_file(err, scan->entry->path);
    scan->group.is_open = false;
    presto__tar_file_close(&file);
    return status;
}

/* ---- columns ---- */

static presto__tar_value value_of(const char *extension) {
    static const char *const integers[] = {"cls", "cls2", "class", "count", "index", "inx", "id"};
    const char *dot = strrchr(extension, '.');
    const char *kind = dot == NULL ? extension : dot + 1;
    for (size_t i = 0; i < sizeof integers / sizeof integers[0]; i++)
        if (strcmp(kind, integers[i]) == 0)
            return PRESTO__TAR_INTEGER;
    return strcmp(kind, "npy") == 0 ? PRESTO__TAR_ARRAY : PRESTO__TAR_BYTES;
}

static presto_status add_column(tar_scan *scan, const char *extension, presto_error *err) {
    presto__tar_source *source = scan->source;
    bool is_label = !source->has_folder_labels && strcmp(extension, source->label) == 0;
    for (size_t i = 0; i < source->column_count; i++) {
        const char *known = source->columns[i].extension;
        if (known != NULL && presto__tar_extension_is(presto_span_of_text(extension), known))
            return PRESTO_OK;
    }
    char *copy = strdup(extension);
    if (copy == NULL)
        return presto_fail_memory(err, strlen(extension) + 1);
    for (char *c = copy; *c != '\0'; c++)
        *c = (char)presto__tar_lower((uint8_t)*c);
    source->columns[source->column_count++] =
        (presto__tar_column){.extension = copy,
                             .name = is_label ? "label" : copy,
                             .value = is_label ? PRESTO__TAR_INTEGER : value_of(copy)};
    return PRESTO_OK;
}

/* Names of features that the source gives anyway cannot be those of members. */
static bool is_taken(const presto__tar_source *source, const char *extension) {
    const char *main = source->files.base.main_feature;
    return strcmp(extension, "key") == 0 || strcmp(extension, "label") == 0 ||
           strcmp(extension, main) == 0;
}

static presto_status note_rare(tar_scan *scan, const tar_tally *tally, presto_error *err) {
    char text[NOTE_BYTES], have[PRESTO_TEXT_BYTES], all[PRESTO_TEXT_BYTES];
    snprintf(
        text, sizeof text, "members .%s left out: %s of %s samples have one%s", tally->extension,
        presto_format_count(tally->samples, have), presto_format_count(scan->whole, all),
        is_taken(scan->source, tally->extension) ? ", but a feature of the source has that name"
                                                 : "; source.features takes them");
    return presto__source_note(&scan->source->files.base, text, err);
}

/* Do at least half of the samples have it? */
static bool is_usual(const tar_scan *scan, const tar_tally *tally) {
    return 2 * tally->samples >= scan->whole;
}

static presto_status choose_columns(tar_scan *scan, presto_error *err) {
    uint64_t told = 0;
    for (size_t i = 0; i < scan->tally_count; i++) {
        const tar_tally *tally = &scan->tallies[i];
        if (is_usual(scan, tally) && !is_taken(scan->source, tally->extension))
            PRESTO_TRY(add_column(scan, tally->extension, err));
        else if (told++ < MOST_NOTES)
            PRESTO_TRY(note_rare(scan, tally, err));
    }
    return PRESTO_OK;
}

static presto_status make_columns(tar_scan *scan, const presto_option *features,
                                  presto_error *err) {
    presto__tar_source *source = scan->source;
    size_t most = features->is_set ? features->text_count + 1 : scan->tally_count;
    source->columns = calloc(most + 1, sizeof *source->columns);
    if (source->columns == NULL)
        return presto_fail_memory(err, (most + 1) * sizeof *source->columns);
    if (!features->is_set)
        return choose_columns(scan, err);
    for (size_t i = 0; i < scan->tally_count; i++)
        if (is_usual(scan, &scan->tallies[i]) &&
            strcmp(scan->tallies[i].extension, source->label) == 0)
            PRESTO_TRY(add_column(scan, source->label, err));
    for (size_t i = 0; i < features->text_count; i++)
        PRESTO_TRY(add_column(scan, features->texts[i], err));
    return PRESTO_OK;
}

/* ---- all of it ---- */

static presto_status tell_left_out(tar_scan *scan, presto_error *err) {
    char text[NOTE_BYTES], count[PRESTO_TEXT_BYTES];
    presto_source *base = &scan->source->files.base;
    if (scan->no_main > 0) {
        presto_format_things(scan->no_main, "group", count);
        snprintf(text, sizeof text,
                 "%s of members left out: no name matches source.match, the first is %s.*", count,
                 scan->first_no_main);
        PRESTO_TRY(presto__source_note(base, text, err));
    }
    if (scan->no_key == 0)
        return PRESTO_OK;
    presto_format_things(scan->no_key, "member", count);
    snprintf(text, sizeof text, "%s left out: a name without extension, or hidden", count);
    return presto__source_note(base, text, err);
}

static presto_status fail_none(const tar_scan *scan, presto_error *err) {
    char patterns[200] = "";
    size_t used = 0;
    for (size_t i = 0; i < scan->source->match_count && used < sizeof patterns; i++)
        used += (size_t)snprintf(patterns + used, sizeof patterns - used, "%s%s",
                                 i == 0 ? "" : ", ", scan->source->match[i]);
    presto_status status =
        scan->no_main > 0
            ? presto_fail(err, PRESTO_ERR_NOT_FOUND, PRESTO_NO_OFFSET,
                          "no member matches %s (%" PRIu64 " group%s of members, the first is "
                          "%s.*)",
                          patterns, scan->no_main, presto_plural(scan->no_main),
                          scan->first_no_main)
            : presto_fail(err, PRESTO_ERR_NOT_FOUND, PRESTO_NO_OFFSET, "no member matches %s",
                          patterns);
    presto_error_set_file(err, scan->source->files.entries[0].path);
    return status;
}

static presto_status scan_all(tar_scan *scan, const presto_option *features, presto_error *err) {
    presto__tar_source *source = scan->source;
    presto_source *base = &source->files.base;
    base->full_count = 0;
    for (size_t i = 0; i < source->files.file_count; i++)
        PRESTO_TRY(scan_archive(scan, i, err));
    base->count = base->full_count;
    if (base->count == 0)
        return fail_none(scan, err);
    if (source->has_folder_labels)
        PRESTO_TRY(number_folders(scan, err));
    PRESTO_TRY(make_columns(scan, features, err));
    return tell_left_out(scan, err);
}

presto_status presto__tar_scan(presto__tar_source *source, const presto_option *features,
                               presto_error *err) {
    tar_scan *state = calloc(1, sizeof *state);
    if (state == NULL)
        return presto_fail_memory(err, sizeof *state);
    state->source = source;
    presto_status status = scan_all(state, features, err);
    for (size_t i = 0; i < state->tally_count; i++)
        free(state->tallies[i].extension);
    for (size_t i = 0; i < state->folder_count; i++)
        free(state->folders[i]);
    free(state->folders);
    presto_buffer_done(&state->group.key);
    presto_buffer_done(&state->group.extensions);
    presto__tar_done(&state->tar);
    free(state);
    return status;
}
