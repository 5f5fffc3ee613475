/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the samples of all tar archives when the source is opened: archives are scanned many at a
 * time (source_tar_scan.c), and what stands in them is put together in their order.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include <presto/numbers.h>

#include "../../../storage/fan_out_internal.h"
#include "source_tar_internal.h"

#define NOTE_BYTES 700
#define MOST_NOTES 8 /* about extensions */

typedef struct tar_search {
    presto__tar_source *source;
    presto__tar_names names;
    pthread_mutex_t lock; /* of all that follows, and of the source, while archives are scanned */
    presto__tar_found **scanned; /* [archive]; NULL: not yet, or added */
    size_t added;                /* archives */
    presto__tar_tallies tallies;
    char **folders; /* of samples, in order; the same folder twice only if another stood between */
    size_t folder_count, folder_capacity;
    char **empty_folders; /* where no sample was found; names may occur more than once */
    size_t empty_count;
    uint64_t whole;   /* samples that do not fail */
    uint64_t no_main; /* groups without a main member */
    uint64_t no_key;  /* members without extension */
    char first_no_main[PRESTO__TAR_SHOWN_BYTES];
    uint64_t no_end;     /* archives without the blocks of zeros that end each tar */
    size_t first_no_end; /* the first of them */
} tar_search;

/* ---- what archives have together ---- */

/* Their folders, in order, and where those of the archive added last begin. */
static presto_status add_folders(tar_search *search, presto__tar_found *found, presto_error *err) {
    if (found->folder_count == 0)
        return PRESTO_OK;
    size_t count = search->folder_count + found->folder_count;
    if (count > search->folder_capacity) {
        size_t capacity = count > 2 * search->folder_capacity ? count : 2 * search->folder_capacity;
        char **folders = realloc(search->folders, capacity * sizeof *folders);
        if (folders == NULL)
            return presto_fail_memory(err, capacity * sizeof *folders);
        search->folders = folders;
        search->folder_capacity = capacity;
    }
    memcpy(search->folders + search->folder_count, found->folders,
           found->folder_count * sizeof *found->folders);
    for (size_t i = 0; i < found->sample_count; i++)
        found->samples[i].label += (int64_t)search->folder_count;
    search->folder_count = count;
    found->folder_count = 0; /* they are the search's now */
    return PRESTO_OK;
}

static presto_status add_empty_folders(tar_search *search, presto__tar_found *found,
                                       presto_error *err) {
    size_t count = search->empty_count + found->empty_count;
    if (found->empty_count == 0)
        return PRESTO_OK;
    char **folders = realloc(search->empty_folders, count * sizeof *folders);
    if (folders == NULL)
        return presto_fail_memory(err, count * sizeof *folders);
    memcpy(folders + search->empty_count, found->empty_folders,
           found->empty_count * sizeof *folders);
    search->empty_folders = folders;
    search->empty_count = presto__names_distinct(folders, count);
    found->empty_count = 0; /* they are the search's now */
    return PRESTO_OK;
}

static presto_status add_samples(presto__tar_source *source, const presto__tar_found *found,
                                 presto_error *err) {
    presto_source *base = &source->files.base;
    size_t count = (size_t)base->full_count + found->sample_count;
    if (found->sample_count == 0)
        return PRESTO_OK;
    if (count > source->sample_capacity) {
        size_t capacity = count > 2 * source->sample_capacity ? count : 2 * source->sample_capacity;
        presto__tar_sample *samples = realloc(source->samples, capacity * sizeof *samples);
        if (samples == NULL)
            return presto_fail_memory(err, capacity * sizeof *samples);
        source->samples = samples;
        source->sample_capacity = capacity;
    }
    memcpy(source->samples + base->full_count, found->samples,
           found->sample_count * sizeof *found->samples);
    base->full_count = count;
    return PRESTO_OK;
}

static presto_status tell_rest(tar_search *search, size_t archive, uint64_t from,
                               presto_error *err) {
    const char *path = search->source->files.entries[archive].path;
    const char *slash = strrchr(path, '/');
    char text[NOTE_BYTES];
    snprintf(text, sizeof text,
             "%.300s: too many broken headers, left out from byte %" PRIu64 " on",
             slash == NULL ? path : slash + 1, from);
    return presto__source_note(&search->source->files.base, text, err);
}

/* What stands in archive number `archive`, behind what stands in those before. */
static presto_status add_archive(tar_search *search, size_t archive, presto__tar_found *found,
                                 presto_error *err) {
    presto__tar_source *source = search->source;
    source->archives[archive].first = source->files.base.full_count;
    source->archives[archive].is_gzip = found->is_gzip;
    if (found->lacks_end && search->no_end++ == 0)
        search->first_no_end = archive;
    if (search->no_main == 0 && found->no_main > 0)
        memcpy(search->first_no_main, found->first_no_main, sizeof search->first_no_main);
    search->no_main += found->no_main;
    search->no_key += found->no_key;
    search->whole += found->whole;
    for (size_t i = 0; i < found->tallies.count; i++)
        PRESTO_TRY(presto__tar_tally_add(&search->tallies, found->tallies.items[i].extension,
                                         found->tallies.items[i].samples, err));
    if (found->left_out_from > 0)
        PRESTO_TRY(tell_rest(search, archive, found->left_out_from, err));
    PRESTO_TRY(add_folders(search, found, err));
    PRESTO_TRY(add_empty_folders(search, found, err));
    return add_samples(source, found, err);
}

/* With the lock held: add the archives that are scanned, as far as none is missing between them. */
static presto_status add_scanned(tar_search *search, presto_error *err) {
    presto_status status = PRESTO_OK;
    while (status == PRESTO_OK && search->added < search->source->files.file_count &&
           search->scanned[search->added] != NULL) {
        presto__tar_found *found = search->scanned[search->added];
        search->scanned[search->added] = NULL;
        status = add_archive(search, search->added, found, err);
        presto__tar_found_free(found);
        search->added++;
    }
    return status;
}

/* A job of presto__fan_out. */
static presto_status scan(void *user, size_t archive, presto_error *err) {
    tar_search *search = user; /* its caller's, who waits for all jobs */
    presto__tar_found *found = calloc(1, sizeof *found);
    if (found == NULL)
        return presto_fail_memory(err, sizeof *found);
    presto_status status =
        presto__tar_scan_archive(search->source, archive, &search->names, found, err);
    if (status < 0) {
        presto__tar_found_free(found);
        return status;
    }
    pthread_mutex_lock(&search->lock);
    search->scanned[archive] = found;
    status = add_scanned(search, err);
    pthread_mutex_unlock(&search->lock);
    return status;
}

/* Labels are the numbers of classes that are called like the folders. */
static presto_status number_given(tar_search *search, presto_error *err) {
    presto__tar_source *source = search->source;
    presto_source *base = &source->files.base;
    uint64_t *counts = calloc(source->classes.count, sizeof *counts);
    presto_status status = counts == NULL
                               ? presto_fail_memory(err, source->classes.count * sizeof *counts)
                               : PRESTO_OK;
    for (uint64_t i = 0; i < base->full_count && status >= 0; i++) {
        presto__tar_sample *sample = &source->samples[i];
        if (sample->bytes == 0)
            continue;
        const char *folder = search->folders[sample->label];
        size_t number = presto__classes_find(&source->classes, folder);
        if (number == SIZE_MAX) {
            status = presto__classes_fail(&source->classes, folder, err);
            base->ops->locate(base, i, err);
        } else {
            sample->label = (int64_t)number;
            counts[number]++;
        }
    }
    if (status >= 0)
        status = presto__classes_note_empty(&source->classes, counts, base, err);
    free(counts);
    return status;
}

/* "bee, fly": folders in which no member is the main one of a sample. */
static presto_status note_empty_folders(tar_search *search, presto_error *err) {
    presto_source *base = &search->source->files.base;
    char list[NOTE_BYTES / 2] = "", text[NOTE_BYTES];
    size_t used = 0, count = 0;
    for (size_t i = 0; i < search->empty_count; i++) {
        if (presto__names_find(base->label_names, base->label_count, search->empty_folders[i]) !=
            SIZE_MAX)
            continue;
        if (used < sizeof list)
            used += (size_t)snprintf(list + used, sizeof list - used, "%s%s", count > 0 ? ", " : "",
                                     search->empty_folders[i]);
        count++;
    }
    if (count == 0)
        return PRESTO_OK;
    snprintf(text, sizeof text,
             "%zu folder%s no member that matches and %s no class: %s%s; source.classes gives the "
             "classes, so that their numbers do not depend on this",
             count, count == 1 ? " has" : "s have", count == 1 ? "is" : "are", list,
             used >= sizeof list ? "..." : "");
    return presto__source_note(base, text, err);
}

/* Labels are numbers of folders among all of them, by name. */
static presto_status number_folders(tar_search *search, presto_error *err) {
    presto_source *base = &search->source->files.base;
    base->label_names = calloc(search->folder_count + 1, sizeof *base->label_names);
    if (base->label_names == NULL)
        return presto_fail_memory(err, (search->folder_count + 1) * sizeof *base->label_names);
    for (; base->label_count < search->folder_count; base->label_count++) {
        base->label_names[base->label_count] = strdup(search->folders[base->label_count]);
        if (base->label_names[base->label_count] == NULL)
            return presto_fail_memory(err, strlen(search->folders[base->label_count]) + 1);
    }
    base->label_count = presto__names_distinct(base->label_names, base->label_count);
    for (uint64_t i = 0; i < base->full_count; i++) {
        presto__tar_sample *sample = &search->source->samples[i];
        if (sample->bytes > 0 && search->folders != NULL) /* there is one, then */
            sample->label = (int64_t)presto__names_find(base->label_names, base->label_count,
                                                        search->folders[sample->label]);
    }
    return note_empty_folders(search, err);
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

static presto_status add_column(tar_search *search, const char *extension, presto_error *err) {
    presto__tar_source *source = search->source;
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
                             .value = !is_label                   ? value_of(copy)
                                      : source->classes.count > 0 ? PRESTO__TAR_CLASS
                                                                  : PRESTO__TAR_INTEGER};
    return PRESTO_OK;
}

/* Names of features that the source gives anyway cannot be those of members. */
static bool is_taken(const presto__tar_source *source, const char *extension) {
    const char *main = source->files.base.main_feature;
    return strcmp(extension, "key") == 0 || strcmp(extension, "label") == 0 ||
           strcmp(extension, main) == 0;
}

static presto_status note_rare(tar_search *search, const presto__tar_tally *tally,
                               presto_error *err) {
    char text[NOTE_BYTES], have[PRESTO_TEXT_BYTES], all[PRESTO_TEXT_BYTES];
    snprintf(
        text, sizeof text, "members .%s left out: %s of %s samples have one%s", tally->extension,
        presto_format_count(tally->samples, have), presto_format_count(search->whole, all),
        is_taken(search->source, tally->extension) ? ", but a feature of the source has that name"
                                                   : "; source.features takes them");
    return presto__source_note(&search->source->files.base, text, err);
}

/* Do at least half of the samples have it? */
static bool is_usual(const tar_search *search, const presto__tar_tally *tally) {
    return 2 * tally->samples >= search->whole;
}

static presto_status choose_columns(tar_search *search, presto_error *err) {
    uint64_t told = 0;
    for (size_t i = 0; i < search->tallies.count; i++) {
        const presto__tar_tally *tally = &search->tallies.items[i];
        if (is_usual(search, tally) && !is_taken(search->source, tally->extension))
            PRESTO_TRY(add_column(search, tally->extension, err));
        else if (told++ < MOST_NOTES)
            PRESTO_TRY(note_rare(search, tally, err));
    }
    return PRESTO_OK;
}

static presto_status make_columns(tar_search *search, const presto_option *features,
                                  presto_error *err) {
    presto__tar_source *source = search->source;
    size_t most = features->is_set ? features->text_count + 1 : search->tallies.count;
    source->columns = calloc(most + 1, sizeof *source->columns);
    if (source->columns == NULL)
        return presto_fail_memory(err, (most + 1) * sizeof *source->columns);
    if (!features->is_set)
        return choose_columns(search, err);
    for (size_t i = 0; i < search->tallies.count; i++)
        if (is_usual(search, &search->tallies.items[i]) &&
            strcmp(search->tallies.items[i].extension, source->label) == 0)
            PRESTO_TRY(add_column(search, source->label, err));
    for (size_t i = 0; i < features->text_count; i++)
        PRESTO_TRY(add_column(search, features->texts[i], err));
    return PRESTO_OK;
}

/* ---- all of it ---- */

static presto_status tell_left_out(tar_search *search, presto_error *err) {
    char text[NOTE_BYTES], count[PRESTO_TEXT_BYTES];
    presto_source *base = &search->source->files.base;
    if (search->no_end > 0) {
        snprintf(text, sizeof text,
                 "%" PRIu64
                 " tar%s end%s without the blocks of zeros that end each tar, so members "
                 "may be missing there, the first is %.300s",
                 search->no_end, presto_plural(search->no_end), search->no_end == 1 ? "s" : "",
                 search->source->files.entries[search->first_no_end].path);
        PRESTO_TRY(presto__source_note(base, text, err));
    }
    if (search->no_main > 0) {
        presto_format_things(search->no_main, "group", count);
        snprintf(text, sizeof text,
                 "%s of members left out: no name matches source.match, the first is %s.*", count,
                 search->first_no_main);
        PRESTO_TRY(presto__source_note(base, text, err));
    }
    if (search->no_key == 0)
        return PRESTO_OK;
    presto_format_things(search->no_key, "member", count);
    snprintf(text, sizeof text, "%s left out: a name without extension, or hidden", count);
    return presto__source_note(base, text, err);
}

static presto_status fail_none(const tar_search *search, presto_error *err) {
    char patterns[200] = "";
    size_t used = 0;
    for (size_t i = 0; i < search->source->match_count && used < sizeof patterns; i++)
        used += (size_t)snprintf(patterns + used, sizeof patterns - used, "%s%s",
                                 i == 0 ? "" : ", ", search->source->match[i]);
    presto_status status =
        search->no_main > 0
            ? presto_fail(err, PRESTO_ERR_NOT_FOUND, PRESTO_NO_OFFSET,
                          "no member matches %s (%" PRIu64 " group%s of members, the first is "
                          "%s.*)",
                          patterns, search->no_main, presto_plural(search->no_main),
                          search->first_no_main)
            : presto_fail(err, PRESTO_ERR_NOT_FOUND, PRESTO_NO_OFFSET, "no member matches %s",
                          patterns);
    presto_error_set_file(err, search->source->files.entries[0].path);
    return status;
}

static presto_status find_all(tar_search *search, const presto_option *features,
                              presto_error *err) {
    presto__tar_source *source = search->source;
    presto_source *base = &source->files.base;
    base->full_count = 0;
    PRESTO_TRY(presto__fan_out(source->files.file_count, scan, search, err));
    base->count = base->full_count;
    if (base->count == 0)
        return fail_none(search, err);
    if (source->has_folder_labels)
        PRESTO_TRY(source->classes.count > 0 ? number_given(search, err)
                                             : number_folders(search, err));
    PRESTO_TRY(make_columns(search, features, err));
    return tell_left_out(search, err);
}

presto_status presto__tar_find(presto__tar_source *source, const presto_option *features,
                               presto_error *err) {
    size_t archives = source->files.file_count;
    tar_search search = {.source = source};
    int failed = pthread_mutex_init(&search.lock, NULL);
    if (failed != 0)
        return presto_fail_errno(err, failed, NULL, "cannot make a lock");
    search.scanned = calloc(archives, sizeof(presto__tar_found *));
    presto_status status = search.scanned != NULL
                               ? find_all(&search, features, err)
                               : presto_fail_memory(err, archives * sizeof *search.scanned);
    for (size_t i = 0; search.scanned != NULL && i < archives; i++)
        presto__tar_found_free(search.scanned[i]);
    free((void *)search.scanned);
    for (size_t i = 0; i < search.tallies.count; i++)
        free(search.tallies.items[i].extension);
    free(search.tallies.items);
    for (size_t i = 0; i < search.folder_count; i++)
        free(search.folders[i]);
    free(search.folders);
    for (size_t i = 0; i < search.empty_count; i++)
        free(search.empty_folders[i]);
    free(search.empty_folders);
    pthread_mutex_destroy(&search.lock);
    return status;
}
