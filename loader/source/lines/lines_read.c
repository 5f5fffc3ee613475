/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads records by their numbers: from the mark before them, as far as they are wanted one after the
 * other. A plain file is read by each reader from where it likes; a packed one through one stream, which
 * keeps what it has passed for readers that come late.
 */
#include "source_lines_internal.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "../../../base/clock_internal.h"
#include "../../../base/memory_internal.h"
#include "../../../base/retry_internal.h"

#define MOST_AT_ONCE ((uint64_t)1 << 20)
#define MOST_REMOTE_AT_ONCE ((uint64_t)4 << 20)
#define MORE_BYTES ((size_t)64 << 10)
/* This much of a stream is kept for readers that come late. */
#define BEHIND_BYTES ((uint64_t)32 << 20)
#define TELL_BYTES ((uint64_t)8 << 20)

size_t presto__lines_file_of(const presto__lines_source *source, uint64_t number) {
    size_t low = 0, high = source->files.file_count;
    while (high - low > 1) {
        size_t middle = low + (high - low) / 2;
        uint64_t first = atomic_load_explicit(&source->texts[middle].first, memory_order_acquire);
        if (first <= number)
            low = middle;
        else
            high = middle;
    }
    return low;
}

/* ---- bytes ---- */

static void release(presto__lines_reader *reader) {
    if (reader->open != SIZE_MAX)
        presto__open_files_release(reader->source->open, reader->open);
    reader->open = SIZE_MAX;
}

static presto_status have_file(presto__lines_reader *reader, size_t file, presto_error *err) {
    if (reader->open == file)
        return PRESTO_OK;
    release(reader);
    PRESTO_TRY(presto__open_files_acquire(reader->source->open, file, &reader->object, err));
    reader->open = file;
    return PRESTO_OK;
}

static void close_stream(presto__lines_source *source, presto__text_file *text) {
    if (text->stream.path == NULL)
        return;
    presto__text_window_done(&text->stream);
    presto__open_files_release(source->open, (size_t)(text - source->texts));
}

/* Another stream was opened, whose lock is held: close the one that was opened longest ago. If all are
 * busy, this one is not listed: false. */
static bool list_stream(presto__lines_source *source, presto__text_file *text) {
    bool is_listed = false;
    pthread_mutex_lock(&source->side_lock);
    for (size_t tries = 0; tries < PRESTO__LINES_STREAMS && !is_listed; tries++) {
        presto__text_file **slot = &source->streams[source->next_stream];
        presto__text_file *old = *slot;
        source->next_stream = (source->next_stream + 1) % PRESTO__LINES_STREAMS;
        if (old != NULL && old != text) {
            if (pthread_mutex_trylock(&old->lock) != 0)
                continue;
            close_stream(source, old);
            pthread_mutex_unlock(&old->lock);
        }
        *slot = text;
        is_listed = true;
    }
    pthread_mutex_unlock(&source->side_lock);
    return is_listed;
}

/* With the file's lock held. */
static presto_status open_stream(presto__lines_source *source, presto__text_file *text,
                                 presto_error *err) {
    size_t file = (size_t)(text - source->texts);
    presto__object object;
    presto__text_window window;
    PRESTO_TRY(presto__open_files_acquire(source->open, file, &object, err));
    presto_status status = presto__text_window_open(
        &window, object, source->files.entries[file].path, text->packing, err);
    if (status < 0)
        presto__open_files_release(source->open, file);
    else
        text->stream = window;
    return status;
}

static presto_status copy_from_stream(presto__text_window *stream, uint64_t offset, size_t wanted,
                                      presto__text_piece *piece, presto_error *err) {
    PRESTO_TRY(presto__text_window_seek(stream, offset, BEHIND_BYTES, err));
    for (;;) {
        presto_span view = presto__text_window_view(stream);
        uint64_t end = stream->at + view.bytes;
        if (end >= offset + wanted || stream->is_all) {
            size_t from = end < offset ? view.bytes : (size_t)(offset - stream->at);
            size_t there = view.bytes - from < wanted ? view.bytes - from : wanted;
            piece->is_all = there < wanted;
            return there == 0 ? PRESTO_OK
                              : presto_buffer_append(&piece->bytes,
                                                     presto_span_of(view.data + from, there), err);
        }
        PRESTO_TRY(presto__text_window_fill(stream, MORE_BYTES, err));
    }
}

static presto_status read_packed(presto__lines_reader *reader, presto__text_file *text,
                                 uint64_t offset, size_t wanted, presto_error *err) {
    presto__lines_source *source = reader->source;
    presto_status status = PRESTO_OK;
    bool is_kept = true;
    pthread_mutex_lock(&text->lock);
    if (text->stream.path == NULL) {
        status = open_stream(source, text, err);
        if (status == PRESTO_OK)
            is_kept = list_stream(source, text);
    }
    uint64_t before = text->stream.read_bytes;
    if (status == PRESTO_OK)
        status = copy_from_stream(&text->stream, offset, wanted, &reader->piece, err);
    reader->base.stats.read_bytes += text->stream.read_bytes - before;
    if (!is_kept)
        close_stream(source, text);
    pthread_mutex_unlock(&text->lock);
    return status;
}

/* Add `wanted` bytes from `offset` on to the piece; fewer, and is_all, where the text ends. */
static presto_status read_text(presto__lines_reader *reader, size_t file, uint64_t offset,
                               size_t wanted, presto_error *err) {
    presto__text_file *text = &reader->source->texts[file];
    presto_buffer *bytes = &reader->piece.bytes;
    size_t got;
    if (text->packing != PRESTO__NOT_PACKED)
        return read_packed(reader, text, offset, wanted, err);
    PRESTO_TRY(have_file(reader, file, err));
    PRESTO_TRY(presto_buffer_reserve(bytes, wanted, err));
    const char *path = reader->source->files.entries[file].path;
    PRESTO_TRY(presto__read_at((presto__object_place){reader->object, path, offset},
                               bytes->data + bytes->bytes, wanted, &got, err));
    bytes->bytes += got;
    reader->piece.is_all = got < wanted;
    reader->base.stats.read_bytes += got;
    return PRESTO_OK;
}

/* ---- pieces ---- */

static presto_status fail_changed(uint64_t offset, presto_error *err) {
    return presto_fail(err, PRESTO_ERR_CORRUPT, offset,
                       "no record begins here any more: the file has changed since it was "
                       "indexed; remove its index, if it has one");
}

static presto_status find_marks(presto__text_file *text, uint64_t record, uint64_t beyond,
                                presto__waymark_pair *pair_out, presto_error *err) {
    if (atomic_load(&text->is_counted) && text->marks.path == NULL)
        return presto__waymarks_find(&text->marks, record, beyond, pair_out, err);
    pthread_mutex_lock(&text->lock);
    presto_status status = text->marks.count == 0
                               ? fail_changed(PRESTO_NO_OFFSET, err)
                               : presto__waymarks_find(&text->marks, record, beyond, pair_out, err);
    pthread_mutex_unlock(&text->lock);
    return status;
}

/* A piece from the mark before `number` on, up to `upto`, or a part of that. */
static presto_status load_piece(presto__lines_reader *reader, size_t file, uint64_t number,
                                uint64_t upto, presto_error *err) {
    presto__lines_source *source = reader->source;
    presto__text_file *text = &source->texts[file];
    presto__text_piece *piece = &reader->piece;
    uint64_t first = atomic_load(&text->first);
    presto__waymark_pair marks;
    piece->file = SIZE_MAX;
    piece->bytes.bytes = 0;
    PRESTO_TRY(presto__lines_look_at(source, file, err));
    PRESTO_TRY(find_marks(text, number - first, upto - first, &marks, err));
    const presto__waymark mark = marks.before;
    uint64_t most = source->files.base.is_remote ? MOST_REMOTE_AT_ONCE : MOST_AT_ONCE;
    uint64_t wanted =
        marks.behind.offset == UINT64_MAX ? MORE_BYTES : marks.behind.offset - mark.offset;
    if (wanted > most)
        wanted = most;
    /* The byte before it says whether a record begins there still. */
    size_t before = mark.offset > text->header_bytes ? 1 : 0;
    PRESTO_TRY(read_text(reader, file, mark.offset - before, (size_t)wanted + before, err));
    if (before > 0 &&
        (piece->bytes.bytes == 0 || (piece->bytes.data[0] != '\n' && piece->bytes.data[0] != '\r')))
        return fail_changed(mark.offset, err);
    piece->file = file;
    piece->at = mark.offset - before;
    piece->used = before;
    piece->number = first + mark.record;
    piece->line = mark.line;
    return PRESTO_OK;
}

/* More bytes; those that were used go. */
static presto_status extend_piece(presto__lines_reader *reader, size_t more, presto_error *err) {
    presto__text_piece *piece = &reader->piece;
    size_t left = piece->bytes.bytes - piece->used;
    if (left > 0 && piece->used > 0)
        memmove(piece->bytes.data, piece->bytes.data + piece->used, left);
    piece->bytes.bytes = left;
    piece->at += piece->used;
    piece->used = 0;
    return read_text(reader, piece->file, piece->at + left, more, err);
}

/* The record that comes next in the piece, whose bytes stay until the next call, and where it begins
 * in the text. PRESTO_DROP: it is too large to be kept. */
static presto_status next_record(presto__lines_reader *reader, presto__cut_record *record_out,
                                 uint64_t *at_out, presto_error *err) {
    presto__text_piece *piece = &reader->piece;
    presto__cut_search search = {0};
    bool is_too_large = false;
    size_t more = MORE_BYTES;
    for (;;) {
        presto_span view =
            presto_span_of(piece->bytes.data + piece->used, piece->bytes.bytes - piece->used);
        uint64_t lines;
        presto_status status =
            presto__cut_next(&reader->source->rules, view, piece->is_all, &search, record_out);
        if (status == PRESTO_OK) {
            if (!is_too_large)
                *at_out = piece->at + piece->used + record_out->start;
            return is_too_large || record_out->bytes > reader->source->max_bytes ? PRESTO_DROP
                                                                                 : PRESTO_OK;
        }
        if (status == PRESTO_END || piece->is_all)
            return fail_changed(piece->at + piece->used, err);
        piece->used += presto__cut_passed(&search, &lines);
        piece->line += lines;
        size_t left = piece->bytes.bytes - piece->used;
        if (presto__cut_is_longer(left, reader->source->max_bytes)) {
            size_t spare = presto__cut_spare(&search);
            if (!is_too_large)
                *at_out = piece->at + piece->used;
            presto__cut_forget(&search, spare);
            piece->used += spare;
            is_too_large = true;
        }
        PRESTO_TRY(extend_piece(reader, more, err));
        more = more < MOST_AT_ONCE ? 2 * more : more;
    }
}

/* The piece stands behind the record. */
static void pass_piece(presto__text_piece *piece, const presto__cut_record *record) {
    piece->used += record->next;
    piece->line += record->lines;
    piece->number++;
}

/* ---- samples ---- */

/* The last of the numbers that follow each other from i on. */
static uint64_t run_from(const presto__lines_reader *reader, size_t i) {
    while (i + 1 < reader->count && reader->numbers[i + 1] == reader->numbers[i] + 1)
        i++;
    return reader->numbers[i];
}

/* Does the piece lead to the number, without a look at the marks? */
static bool is_near(const presto__lines_reader *reader, size_t file, uint64_t number) {
    const presto__text_piece *piece = &reader->piece;
    return piece->file == file && piece->number <= number &&
           (number == piece->number ||
            (number - piece->number < 16 && piece->used < piece->bytes.bytes));
}

static presto_status find_once(presto__lines_reader *reader, size_t i, presto_span *bytes_out,
                               presto_error *err) {
    presto__lines_source *source = reader->source;
    presto__text_piece *piece = &reader->piece;
    uint64_t number = reader->numbers[i];
    size_t file = presto__lines_file_of(source, number);
    presto__text_file *text = &source->texts[file];
    uint64_t first = atomic_load(&text->first);
    const presto__text_end *end = atomic_load(&text->end);
    reader->at = PRESTO_NO_OFFSET;
    if (end != NULL && number - first >= end->record) {
        if (err != NULL)
            *err = end->why;
        return end->why.status;
    }
    if (!is_near(reader, file, number)) {
        uint64_t upto = run_from(reader, i);
        uint64_t behind = file + 1 < source->files.file_count
                              ? atomic_load(&source->texts[file + 1].first)
                              : UINT64_MAX;
        PRESTO_TRY(load_piece(reader, file, number, upto < behind ? upto : behind - 1, err));
    }
    for (;;) {
        presto__cut_record record;
        uint64_t begins;
        presto_status status = next_record(reader, &record, &begins, err);
        if (status < 0)
            return status;
        bool is_it = piece->number == number;
        size_t at = piece->used + record.start;
        if (is_it) {
            reader->at = begins;
            reader->line = piece->line + record.lines_before + 1;
        }
        *bytes_out = presto_span_of(piece->bytes.data + at, record.bytes);
        pass_piece(piece, &record);
        if (!is_it)
            continue;
        if (status == PRESTO_OK)
            return PRESTO_OK;
        return presto_fail(err, PRESTO_ERR_LIMIT, PRESTO_NO_OFFSET,
                           "it has more than the %" PRIu64 " byte%s that source.max-bytes allows",
                           source->max_bytes, presto_plural(source->max_bytes));
    }
}

/* The bytes of sample i, until the next call. */
static presto_status find_bytes(presto__lines_reader *reader, size_t i, presto_span *bytes_out,
                                presto_error *err) {
    presto_error own;
    unsigned tries = 0;
    presto_status status;
    if (err == NULL)
        err = &own;
    do {
        status = find_once(reader, i, bytes_out, err);
        if (status < 0)
            reader->piece.file = SIZE_MAX;
    } while (status < 0 && presto__retry_pause(err->sys_errno, &tries));
    return status;
}

static presto_status make_features(const presto__lines_reader *reader, presto_span bytes,
                                   size_t file, presto_arena *arena, presto_sample *sample_out,
                                   presto_error *err) {
    const presto__lines_source *source = reader->source;
    const presto__fields *fields = &source->fields;
    size_t count = fields->count;
    presto_feature *features =
        presto_arena_alloc(arena, count * sizeof *features, _Alignof(presto_feature));
    if (features == NULL)
        return presto_fail_memory(err, count * sizeof *features);
    presto__row row = {.fields = fields,
                       .selected = reader->selected,
                       .columns = source->texts[file].columns,
                       .column_count = source->texts[file].column_count,
                       .separator = source->rules.separator,
                       .bytes = bytes};
    switch (source->rules.form) {
    case PRESTO__CUT_LINES:
        PRESTO_TRY(presto__check_utf8(bytes, err));
        PRESTO_TRY(presto__field_copy_text(bytes, arena, features, err));
        features->name = presto_span_of_text(fields->items[0].feature);
        count = 1;
        break;
    case PRESTO__CUT_JSON:
        PRESTO_TRY(presto__jsonl_row(&row, arena, features, &count, err));
        break;
    case PRESTO__CUT_CSV:
        PRESTO_TRY(presto__csv_row(&row, arena, features, &count, err));
        break;
    }
    *sample_out = (presto_sample){.features = features, .feature_count = count};
    return PRESTO_OK;
}

static void locate_in(const presto__lines_source *source, uint64_t number, presto_error *err) {
    size_t file = presto__lines_file_of(source, number);
    presto_error_set_record(err, number - atomic_load(&source->texts[file].first));
    presto_error_set_file(err, source->files.entries[file].path);
}

/* "line 12: ...", with its byte. */
static presto_status fail_row(const presto__lines_reader *reader, uint64_t number,
                              presto_status status, presto_error *err) {
    char why[PRESTO_ERROR_MESSAGE_BYTES];
    if (err == NULL)
        return status;
    uint64_t within = err->offset;
    if (reader->at != PRESTO_NO_OFFSET) {
        snprintf(why, sizeof why, "line %" PRIu64 ": %.440s", reader->line, err->message);
        snprintf(err->message, sizeof err->message, "%s", why);
        err->offset = reader->at + (within == PRESTO_NO_OFFSET ? 0 : within);
    }
    locate_in(reader->source, number, err);
    return status;
}

presto_status presto__lines_sample(presto__reader *base, size_t i, presto_arena *arena,
                                   presto_sample *sample_out, presto_error *err) {
    presto__lines_reader *reader = (presto__lines_reader *)base;
    uint64_t number = reader->numbers[i];
    presto_span bytes = {0};
    if (number == reader->fault_number) {
        base->lost_shard = true;
        if (err != NULL)
            *err = reader->fault;
        return reader->fault.status;
    }
    uint64_t start = base->time_scale == 0 ? 0 : presto__clock_ns();
    presto_status status = find_bytes(reader, i, &bytes, err);
    uint64_t found = base->time_scale == 0 ? 0 : presto__clock_ns();
    if (status >= 0)
        status = make_features(reader, bytes, presto__lines_file_of(reader->source, number), arena,
                               sample_out, err);
    if (base->time_scale != 0) {
        base->stats.read_ns += (found - start) * base->time_scale;
        base->stats.parse_ns += (presto__clock_ns() - found) * base->time_scale;
    }
    if (status < 0)
        return fail_row(reader, number, status, err);
    sample_out->number = number;
    return PRESTO_OK;
}

presto_status presto__lines_fetch(presto__reader *base, const uint64_t *numbers, size_t count,
                                  presto__blocks *blocks, presto_error *err) {
    (void)blocks, (void)err;
    presto__lines_reader *reader = (presto__lines_reader *)base;
    reader->numbers = numbers;
    reader->count = count;
    return PRESTO_OK;
}

void presto__lines_locate(const presto_source *base, uint64_t number, presto_error *err) {
    locate_in(presto__lines_of(base), number, err);
}

void presto__lines_place(presto__reader *base, size_t i, presto_error *err) {
    const presto__lines_reader *reader = (const presto__lines_reader *)base;
    locate_in(reader->source, reader->numbers[i], err);
    if (err != NULL && err->offset == PRESTO_NO_OFFSET &&
        reader->numbers[i] + 1 == reader->piece.number)
        err->offset = reader->at;
}

/* ---- what will be read ---- */

void presto__lines_will_read(presto__reader *base, const uint64_t *numbers, size_t count) {
    presto__lines_reader *reader = (presto__lines_reader *)base;
    presto__lines_source *source = reader->source;
    uint64_t told = UINT64_MAX;
    for (size_t i = 0; i < count; i++) {
        size_t file = presto__lines_file_of(source, numbers[i]);
        presto__text_file *text = &source->texts[file];
        uint64_t record = numbers[i] - atomic_load(&text->first);
        presto__waymark_pair marks;
        if (!atomic_load(&text->is_counted) || text->packing != PRESTO__NOT_PACKED ||
            record >= text->records || atomic_load(&text->end) != NULL ||
            find_marks(text, record, record, &marks, NULL) < 0)
            continue;
        uint64_t start = marks.before.offset, end = marks.behind.offset;
        if (end == UINT64_MAX)
            end = text->text_bytes;
        uint64_t bytes = end - start < TELL_BYTES ? end - start : TELL_BYTES;
        if (start == told || have_file(reader, file, NULL) < 0)
            continue;
        presto__object_will_read(reader->object, start, bytes);
        told = start;
    }
}

/* ---- readers ---- */

void presto__lines_reader_free(presto__reader *base) {
    presto__lines_reader *reader = (presto__lines_reader *)base;
    if (reader == NULL)
        return;
    release(reader);
    presto_buffer_done(&reader->piece.bytes);
    free(reader->selected);
    free(reader);
}

presto_status presto__lines_reader_new(presto_source *source, const presto__reader_options *options,
                                       presto__reader **reader_out, presto_error *err) {
    presto__lines_source *lines = presto__lines_of(source);
    presto__lines_reader *reader = presto__memory_apart(1, sizeof *reader);
    if (reader == NULL)
        return presto_fail_memory(err, sizeof *reader);
    reader->base.source = source;
    reader->source = lines;
    reader->piece.file = SIZE_MAX;
    reader->open = SIZE_MAX;
    reader->fault_number = UINT64_MAX;
    reader->selected = calloc(lines->fields.count, sizeof *reader->selected);
    if (reader->selected == NULL) {
        presto__lines_reader_free(&reader->base);
        return presto_fail_memory(err, lines->fields.count);
    }
    for (size_t i = 0; i < lines->fields.count; i++) {
        reader->selected[i] = !options->only;
        for (size_t k = 0; k < options->feature_count && !reader->selected[i]; k++)
            reader->selected[i] =
                strcmp(options->features[k].name, lines->fields.items[i].feature) == 0;
    }
    *reader_out = &reader->base;
    return PRESTO_OK;
}
