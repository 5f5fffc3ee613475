/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the records of files that are not counted. One search goes through all files in order, for samples
 * that are wanted before all are counted: what it finds is known to all readers. Files are counted
 * many at a time, each from its start.
 *
 * Damage of a packed text, or a quote that is not closed, is a record that fails; the text ends with it. What
 * the machine cannot read fails the search, which stays where it is.
 */
#include "source_lines_internal.h"

#include <stdlib.h>

#include "../../../base/clock_internal.h"
#include "../../../base/retry_internal.h"
#include "../../../base/stop_internal.h"
#include "../../../storage/fan_out_internal.h"

#define FIRST_BYTES ((size_t)64 << 10)
#define FILL_BYTES ((size_t)1 << 20)

/* ---- one record ---- */

static void close_finder(presto__lines_source *source, presto__finder *finder) {
    if (finder->window.path != NULL)
        presto__open_files_release(source->open, finder->file);
    presto__text_window_done(&finder->window);
    *finder = (presto__finder){.file = finder->file};
}

static presto_status open_finder(presto__lines_source *source, presto__finder *finder,
                                 presto_error *err) {
    const presto__text_file *text = &source->texts[finder->file];
    presto__object object;
    if (finder->window.path != NULL)
        return PRESTO_OK;
    PRESTO_TRY(presto__open_files_acquire(source->open, finder->file, &object, err));
    presto__text_window window;
    const char *path = source->files.entries[finder->file].path;
    presto_status status = presto__text_window_open(&window, object, path, text->packing, err);
    if (status == PRESTO_OK)
        status = presto__text_window_seek(&window, text->header_bytes, 0, err);
    if (status < 0) {
        presto__text_window_done(&window);
        presto__open_files_release(source->open, finder->file);
        return status;
    }
    size_t before = (size_t)(text->header_bytes - window.at);
    if (before <= presto__text_window_view(&window).bytes)
        presto__text_window_drop(&window, before);
    finder->window = window;
    finder->record = 0;
    finder->line = text->header_lines;
    return PRESTO_OK;
}

static presto_span unused_view(const presto__finder *finder) {
    presto_span view = presto__text_window_view(&finder->window);
    return presto_span_of(view.data + finder->used, view.bytes - finder->used);
}

/* Did the record end because the text does, and is that damaged? */
static bool is_cut(const presto__finder *finder, presto_span view,
                   const presto__cut_record *record) {
    if (record->is_open)
        return true;
    if (finder->window.damage.status >= 0 || view.data == NULL || record->next < view.bytes)
        return false;
    uint8_t last = view.data[record->next - 1];
    return last != '\n' && last != '\r';
}

/* The record is damaged, from what is wrong with the text. */
static void lose(presto__finder *finder, const presto__cut_record *record, presto_error *why_out) {
    finder->is_lost = true;
    if (finder->window.damage.status < 0) {
        *why_out = finder->window.damage;
        return;
    }
    presto_fail(why_out, PRESTO_ERR_CORRUPT, finder->window.at + finder->used + record->start,
                "line %ju: a quoted field does not end, so that the rest of the file is this row",
                (uintmax_t)(finder->line + record->lines_before + 1));
    presto_error_set_file(why_out, finder->window.path);
}

/* More bytes for a record that does not end in those at hand. PRESTO_DROP: it is too large, and others
 * stand before it. */
static presto_status go_on(const presto__lines_source *source, presto__finder *finder,
                           presto_error *err) {
    uint64_t lines;
    finder->used += presto__cut_passed(&finder->search, &lines);
    finder->line += lines;
    size_t left = unused_view(finder).bytes;
    if (presto__cut_is_longer(left, source->max_bytes)) {
        if (finder->used > 0)
            return PRESTO_DROP;
        uint64_t begun = finder->window.at;
        size_t spare = presto__cut_spare(&finder->search);
        presto__text_window_drop(&finder->window, spare);
        presto__cut_forget(&finder->search, spare);
        if (!finder->is_too_large)
            finder->begun = begun;
        finder->is_too_large = true;
    }
    bool is_first = finder->window.file_offset < FIRST_BYTES;
    return presto__text_window_fill(&finder->window, is_first ? FIRST_BYTES : FILL_BYTES, err);
}

/*
 * Find the record that comes next; it is behind finder->used, and so far not counted.
 * Returns: PRESTO_OK; PRESTO_END: the text ends; PRESTO_DROP: as go_on; a failure of the machine.
 * is_lost: it is damaged, *why_out says how.
 */
static presto_status find_record(const presto__lines_source *source, presto__finder *finder,
                                 presto__cut_record *record_out, presto_error *why_out,
                                 presto_error *err) {
    if (finder->is_lost)
        return PRESTO_END;
    for (;;) {
        presto_span view = unused_view(finder);
        presto_status status = presto__cut_next(&source->rules, view, finder->window.is_all,
                                                &finder->search, record_out);
        if (status == PRESTO_OK) {
            if (is_cut(finder, view, record_out))
                lose(finder, record_out, why_out);
            return PRESTO_OK;
        }
        if (status == PRESTO_END || (finder->window.is_all && status == PRESTO_DROP)) {
            if (finder->window.damage.status >= 0)
                return PRESTO_END;
            *record_out = (presto__cut_record){.start = view.bytes, .next = view.bytes};
            lose(finder, record_out, why_out);
            return PRESTO_OK;
        }
        status = go_on(source, finder, err);
        if (status != PRESTO_OK)
            return status;
    }
}

/* The record that was found is behind the finder. */
static presto__waymark pass_record(presto__finder *finder, const presto__cut_record *record) {
    presto__waymark mark = {finder->window.at + finder->used + record->start, finder->record,
                            finder->line + record->lines_before};
    if (finder->is_too_large)
        mark.offset = finder->begun;
    finder->is_too_large = false;
    finder->used += record->next;
    finder->line += record->lines;
    finder->record++;
    return mark;
}

static void forget_used(presto__finder *finder) {
    presto__text_window_drop(&finder->window, finder->used);
    finder->used = 0;
}

/* ---- counting ---- */

/* Through a whole file. */
static presto_status count_records(presto__lines_source *source, presto__finder *finder,
                                   presto__waymarks *marks, presto_error *err) {
    for (;;) {
        presto__cut_record record;
        presto_error why;
        presto_status status = find_record(source, finder, &record, &why, err);
        if (status < 0 || status == PRESTO_END)
            return status;
        if (status == PRESTO_OK) {
            presto__waymark mark = pass_record(finder, &record);
            PRESTO_TRY(presto__waymarks_add(marks, &mark, err));
            if (finder->is_lost)
                PRESTO_TRY(
                    presto__lines_set_end(&source->texts[finder->file], mark.record, &why, err));
        }
        if (finder->used >= FILL_BYTES || status == PRESTO_DROP) {
            forget_used(finder);
            PRESTO_TRY(presto__stop_check(err));
        }
    }
}

static uint64_t text_end(const presto__finder *finder) {
    return finder->window.at + presto__text_window_view(&finder->window).bytes;
}

/* A job of presto__fan_out: count file i, which others may read meanwhile. */
static presto_status count_file(void *user, size_t i, presto_error *err) {
    presto__lines_source *source = user; /* its caller's, who waits for all jobs */
    presto__text_file *text = &source->texts[i];
    presto__finder finder = {.file = i};
    presto__waymarks marks = {0};
    if (atomic_load(&text->is_counted))
        return PRESTO_OK;
    PRESTO_TRY(presto__lines_look_at(source, i, err));
    if (atomic_load(&text->is_counted))
        return PRESTO_OK;
    presto_status status = presto__lines_use_index(source, i, err);
    if (status != PRESTO_END)
        return status;
    status = open_finder(source, &finder, err);
    if (status == PRESTO_OK)
        status = count_records(source, &finder, &marks, err);
    if (status == PRESTO_END) {
        presto__lines_set_counted(text, &marks, finder.record, text_end(&finder));
        presto__lines_keep_index(source, i);
    }
    presto__waymarks_done(&marks);
    close_finder(source, &finder);
    return status < 0 ? status : PRESTO_OK;
}

/* With find_lock held: number what is counted. */
static void number_files(presto__lines_source *source) {
    size_t count = source->files.file_count;
    for (size_t i = 0; i < count && atomic_load(&source->texts[i].is_counted); i++) {
        uint64_t end = atomic_load(&source->texts[i].first) + source->texts[i].records;
        if (i + 1 < count)
            atomic_store(&source->texts[i + 1].first, end);
        else
            atomic_store(&source->total, end);
    }
}

static presto_status count_all(presto__lines_source *source, presto_error *err) {
    presto_status status = presto__fan_out(source->files.file_count, count_file, source, err);
    number_files(source);
    return status;
}

uint64_t presto__lines_count(const presto_source *base) {
    return atomic_load(&presto__lines_of(base)->total);
}

presto_status presto__lines_settle(const presto_source *base, presto_error *err) {
    presto__lines_source *source = presto__lines_of(base);
    pthread_mutex_lock(&source->find_lock);
    presto_status status =
        presto__lines_count(base) == PRESTO_COUNT_UNKNOWN ? count_all(source, err) : PRESTO_OK;
    pthread_mutex_unlock(&source->find_lock);
    return status;
}

/* ---- the search; all with find_lock held ---- */

static uint64_t position(const presto__lines_source *source) {
    const presto__finder *finder = &source->finder;
    return finder->file < source->files.file_count
               ? atomic_load(&source->texts[finder->file].first) + finder->record
               : atomic_load(&source->total);
}

/* Have the file of the search ready. PRESTO_END: all are behind it. */
static presto_status enter_file(presto__lines_source *source, presto_error *err) {
    presto__finder *finder = &source->finder;
    if (finder->file == source->files.file_count)
        return PRESTO_END;
    presto__text_file *text = &source->texts[finder->file];
    if (finder->window.path != NULL || atomic_load(&text->is_counted))
        return PRESTO_OK;
    PRESTO_TRY(presto__lines_look_at(source, finder->file, err));
    if (!atomic_load(&text->is_counted) && finder->record == 0) {
        presto_status status = presto__lines_use_index(source, finder->file, err);
        if (status != PRESTO_END)
            return status;
    }
    return atomic_load(&text->is_counted) ? PRESTO_OK : open_finder(source, finder, err);
}

/* The file of the search has no more records. */
static void leave_file(presto__lines_source *source) {
    presto__finder *finder = &source->finder;
    presto__text_file *text = &source->texts[finder->file];
    if (!atomic_load(&text->is_counted)) {
        presto__lines_set_counted(text, NULL, finder->record, text_end(finder));
        presto__lines_keep_index(source, finder->file);
    }
    close_finder(source, finder);
    finder->file++;
    number_files(source);
}

/* Others may read the record from now on. */
static presto_status show_record(presto__lines_source *source, const presto__waymark *mark,
                                 const presto_error *why, presto_error *err) {
    presto__text_file *text = &source->texts[source->finder.file];
    if (source->finder.is_lost)
        PRESTO_TRY(presto__lines_set_end(text, mark->record, why, err));
    pthread_mutex_lock(&text->lock);
    presto_status status = presto__waymarks_add(&text->marks, mark, err);
    if (status == PRESTO_OK)
        text->records = mark->record + 1;
    pthread_mutex_unlock(&text->lock);
    return status;
}

/* Find up to `most` records that follow each other in the file. Fewer: there are `bytes` bytes, the
 * file ends, or one is too large. *is_kept_out: they are in the view. */
static presto_status find_some(presto__lines_source *source, size_t most, size_t bytes,
                               size_t *found_out, bool *is_kept_out, presto_error *err) {
    presto__finder *finder = &source->finder;
    size_t found = 0;
    presto_status status = PRESTO_OK;
    *is_kept_out = true;
    while (found < most && *is_kept_out && (found == 0 || finder->used < bytes)) {
        presto__cut_record record;
        presto_error why;
        status = find_record(source, finder, &record, &why, err);
        if (status == PRESTO_DROP && found == 0) {
            forget_used(finder);
            continue;
        }
        if (status != PRESTO_OK)
            break;
        *is_kept_out = !finder->is_too_large;
        presto__waymark mark = pass_record(finder, &record);
        PRESTO_TRY(show_record(source, &mark, &why, err));
        found++;
    }
    *found_out = found;
    return found > 0 ? PRESTO_OK : status;
}

/* Does nothing follow in the file? As far as that is known without a failure. */
static bool is_at_end(presto__lines_source *source) {
    presto__finder *finder = &source->finder;
    const presto__text_file *text = &source->texts[finder->file];
    presto__cut_record record;
    if (atomic_load(&text->is_counted))
        return finder->record >= text->records;
    if (finder->window.path == NULL)
        return false;
    while (!finder->is_lost && unused_view(finder).bytes == 0 && !finder->window.is_all)
        if (presto__text_window_fill(&finder->window, FILL_BYTES, NULL) < 0)
            return false;
    if (finder->is_lost)
        return true;
    if (!finder->window.is_all || finder->window.damage.status < 0)
        return false;
    presto__cut_search look = {0};
    return presto__cut_next(&source->rules, unused_view(finder), true, &look, &record) ==
           PRESTO_END;
}

/* So that the end is known as soon as it can be. */
static void leave_ended(presto__lines_source *source) {
    while (source->finder.file < source->files.file_count &&
           enter_file(source, NULL) == PRESTO_OK && is_at_end(source))
        leave_file(source);
}

/* ---- searching for a reader ---- */

/* The reader takes the records that were found. */
static presto_status give_records(const presto__lines_source *source, presto__lines_reader *reader,
                                  uint64_t first, uint64_t line, presto_error *err) {
    const presto__finder *finder = &source->finder;
    presto__text_piece *piece = &reader->piece;
    presto_span view = presto__text_window_view(&finder->window);
    piece->bytes.bytes = 0;
    PRESTO_TRY(presto_buffer_append(&piece->bytes, presto_span_of(view.data, finder->used), err));
    piece->file = finder->file;
    piece->at = finder->window.at;
    piece->number = first;
    piece->line = line;
    piece->used = 0;
    piece->is_all = finder->window.is_all && finder->used == view.bytes;
    return PRESTO_OK;
}

static presto_status step_once(presto__lines_source *source, presto__lines_reader *reader,
                               const presto__walk_wish *wish, size_t *found_out,
                               presto_error *err) {
    presto__finder *finder = &source->finder;
    presto_status status;
    *found_out = 0;
    reader->piece.file = SIZE_MAX;
    while ((status = enter_file(source, err)) == PRESTO_OK) {
        const presto__text_file *text = &source->texts[finder->file];
        uint64_t first = position(source);
        if (atomic_load(&text->is_counted)) {
            uint64_t left = text->records - finder->record;
            *found_out = left < wish->count ? (size_t)left : wish->count;
            finder->record += *found_out;
        } else {
            forget_used(finder);
            uint64_t line = finder->line;
            bool is_kept;
            status = find_some(source, wish->count, wish->bytes, found_out, &is_kept, err);
            if (status == PRESTO_OK && is_kept)
                status = give_records(source, reader, first, line, err);
        }
        if (status < 0 || *found_out > 0)
            break;
        leave_file(source);
    }
    if (*found_out > 0)
        leave_ended(source);
    return status < 0 ? status : PRESTO_OK;
}

presto_status presto__lines_step(presto__reader *base, const presto__walk_wish *wish,
                                 presto__blocks *blocks, size_t *found_out, presto_error *err) {
    presto__lines_reader *reader = (presto__lines_reader *)base;
    presto__lines_source *source = reader->source;
    uint64_t start = presto__clock_ns();
    unsigned tries = 0;
    presto_error why;
    presto_status status;
    (void)blocks;
    pthread_mutex_lock(&source->find_lock);
    uint64_t read_before = source->finder.window.read_bytes;
    do
        status = step_once(source, reader, wish, found_out, &why);
    while (status < 0 && presto__retry_pause(why.sys_errno, &tries));
    uint64_t read_after = source->finder.window.read_bytes;
    reader->fault_number = UINT64_MAX;
    if (status < 0 && status != PRESTO_ERR_MEMORY) {
        reader->fault = why;
        reader->fault_number = position(source);
        *found_out = 1;
    }
    pthread_mutex_unlock(&source->find_lock);
    base->stats.read_ns += presto__clock_ns() - start;
    base->stats.read_bytes += read_after > read_before ? read_after - read_before : 0;
    if (status == PRESTO_ERR_MEMORY && err != NULL)
        *err = why;
    return status == PRESTO_ERR_MEMORY ? status : PRESTO_OK;
}

/* ---- a search that does not read ---- */

static presto_status pass_to(presto__lines_source *source, uint64_t number, presto_error *err) {
    presto__finder *finder = &source->finder;
    presto_status status = PRESTO_OK;
    while (position(source) < number && (status = enter_file(source, err)) == PRESTO_OK) {
        const presto__text_file *text = &source->texts[finder->file];
        uint64_t wanted = number - position(source);
        size_t found = 0;
        PRESTO_TRY(presto__stop_check(err));
        if (atomic_load(&text->is_counted)) {
            uint64_t left = text->records - finder->record;
            found = left < wanted ? (size_t)left : (size_t)wanted;
            finder->record += found;
        } else {
            bool is_kept;
            forget_used(finder);
            size_t most = wanted < SIZE_MAX ? (size_t)wanted : SIZE_MAX;
            status = find_some(source, most, FILL_BYTES, &found, &is_kept, err);
        }
        if (status < 0)
            return status;
        if (found == 0)
            leave_file(source);
    }
    if (status >= 0)
        leave_ended(source);
    return status < 0 ? status : PRESTO_OK;
}

static presto_status begin(presto__lines_source *source, uint64_t number, presto_error *err) {
    if (atomic_load(&source->total) == PRESTO_COUNT_UNKNOWN) {
        if (source->is_walked || position(source) > number)
            PRESTO_TRY(count_all(source, err));
        else
            PRESTO_TRY(pass_to(source, number, err));
    }
    if (atomic_load(&source->total) != PRESTO_COUNT_UNKNOWN)
        return PRESTO_END;
    source->is_walked = true;
    return PRESTO_OK;
}

presto_status presto__lines_begin(presto_source *base, uint64_t number, presto_error *err) {
    presto__lines_source *source = presto__lines_of(base);
    pthread_mutex_lock(&source->find_lock);
    presto_status status = begin(source, number, err);
    pthread_mutex_unlock(&source->find_lock);
    return status;
}

void presto__lines_end(presto_source *base) {
    presto__lines_source *source = presto__lines_of(base);
    pthread_mutex_lock(&source->find_lock);
    source->is_walked = false;
    pthread_mutex_unlock(&source->find_lock);
}

presto_status presto__lines_pass(const presto_source *base, uint64_t number, uint64_t *known_out,
                                 presto_error *err) {
    presto__lines_source *source = presto__lines_of(base);
    presto_error why;
    unsigned tries = 0;
    presto_status status;
    pthread_mutex_lock(&source->find_lock);
    do
        status = atomic_load(&source->total) == PRESTO_COUNT_UNKNOWN ? pass_to(source, number, &why)
                                                                     : PRESTO_OK;
    while (status < 0 && presto__retry_pause(why.sys_errno, &tries));
    *known_out = position(source);
    pthread_mutex_unlock(&source->find_lock);
    if (status < 0 && err != NULL)
        *err = why;
    return status;
}
