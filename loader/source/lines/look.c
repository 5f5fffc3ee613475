/* SPDX-License-Identifier: Apache-2.0 */
/* What is known of a file: how it begins, and the index that is kept of it. */
#include "source_lines_internal.h"

#include <stdlib.h>

#include "../../../base/content_internal.h"
#include "../../../base/paths_internal.h"
#include "../../../base/retry_internal.h"

#define HEAD_BYTES ((size_t)64 << 10)
/* Longer names of columns are no names. */
#define MOST_NAMES_BYTES ((size_t)1 << 20)

void presto__lines_warn(presto__lines_source *source, const presto_error *why) {
    pthread_mutex_lock(&source->side_lock);
    if (source->warning.status >= 0)
        source->warning = *why;
    pthread_mutex_unlock(&source->side_lock);
}

void presto__lines_set_counted(presto__text_file *text, presto__waymarks *marks, uint64_t records,
                               uint64_t text_bytes) {
    pthread_mutex_lock(&text->lock);
    if (marks != NULL) {
        presto__waymarks before = text->marks;
        text->marks = *marks;
        *marks = before; /* the caller's to free */
    }
    text->records = records;
    text->text_bytes = text_bytes;
    atomic_store(&text->is_counted, true);
    pthread_mutex_unlock(&text->lock);
}

presto_status presto__lines_set_end(presto__text_file *text, uint64_t record,
                                    const presto_error *why, presto_error *err) {
    presto__text_end *none = NULL, *end = malloc(sizeof *end);
    if (end == NULL)
        return presto_fail_memory(err, sizeof *end);
    *end = (presto__text_end){record, *why};
    if (!atomic_compare_exchange_strong(&text->end, &none, end))
        free(end); /* it is known already */
    return PRESTO_OK;
}

/* ---- how it begins ---- */

static presto_status refuse(presto__cut_form form, presto_span head, presto_error *err) {
    static const char *const needed[] = {
        [PRESTO__CUT_LINES] = "a text file",
        [PRESTO__CUT_JSON] = "a JSON Lines file",
        [PRESTO__CUT_CSV] = "a CSV file",
    };
    if (head.bytes >= 2 &&
        (memcmp(head.data, "\xff\xfe", 2) == 0 || memcmp(head.data, "\xfe\xff", 2) == 0))
        return presto_fail(err, PRESTO_ERR_CORRUPT, 0, "it is UTF-16: save it as UTF-8");
    const presto__content *content = presto__content_no_text(head);
    if (content == NULL || content->group < PRESTO__CONTENT_IMAGE)
        return PRESTO_OK;
    return presto__content_refuse(content, PRESTO__CONTENT_TABLE, needed[form], err);
}

/* The names of the columns are its first record. */
static presto_status take_header(const presto__lines_source *source, presto__text_window *window,
                                 presto__text_file *text, presto_error *err) {
    presto__cut_search search = {0};
    presto__cut_record record;
    presto_status status;
    for (;;) {
        presto_span view = presto__text_window_view(window);
        status = presto__cut_next(&source->rules, view, window->is_all, &search, &record);
        if (status != PRESTO_DROP)
            break;
        if (view.bytes > MOST_NAMES_BYTES)
            return presto_fail(err, PRESTO_ERR_LIMIT, window->at,
                               "the first row, which names the columns, does not end within 1 MiB");
        PRESTO_TRY(presto__text_window_fill(window, HEAD_BYTES, err));
    }
    if (window->damage.status < 0 && (status == PRESTO_END || record.is_open)) {
        if (err != NULL)
            *err = window->damage;
        return window->damage.status;
    }
    if (status == PRESTO_END)
        return PRESTO_OK; /* an empty file has no rows */
    if (record.is_open)
        return presto_fail(
            err, PRESTO_ERR_CORRUPT, window->at + record.start,
            "line %ju, which names the columns: a quoted field does not end, so that "
            "the rest of the file is in it",
            (uintmax_t)record.lines_before + 1);
    presto_span names =
        presto_span_of(presto__text_window_view(window).data + record.start, record.bytes);
    PRESTO_TRY(presto__csv_columns(source, names, text->columns, &text->column_count, err));
    presto__text_window_drop(window, record.next);
    text->header_lines = record.lines;
    return PRESTO_OK;
}

static presto_status take_start(const presto__lines_source *source, presto__text_window *window,
                                presto__text_file *text, presto_error *err) {
    while (presto__text_window_view(window).bytes < 1024 && !window->is_all)
        PRESTO_TRY(presto__text_window_fill(window, HEAD_BYTES, err));
    presto_span head = presto__text_window_view(window);
    PRESTO_TRY(refuse(source->rules.form, head, err));
    if (head.bytes >= 3 && memcmp(head.data, "\xef\xbb\xbf", 3) == 0)
        presto__text_window_drop(window, 3);
    if (source->rules.form == PRESTO__CUT_CSV && !source->has_names)
        PRESTO_TRY(take_header(source, window, text, err));
    else if (source->rules.form == PRESTO__CUT_CSV)
        PRESTO_TRY(
            presto__csv_columns(source, (presto_span){0}, text->columns, &text->column_count, err));
    text->header_bytes = window->at;
    return PRESTO_OK;
}

static presto_status look_into(const presto__lines_source *source, presto__object object,
                               const char *path, presto__text_file *text, presto_error *err) {
    uint8_t head[16];
    size_t got;
    presto__text_window window = {0};
    PRESTO_TRY(
        presto__read_at((presto__object_place){object, path, 0}, head, sizeof head, &got, err));
    text->packing = presto__packing_of(presto_span_of(head, got));
    presto_status status = presto__text_window_open(&window, object, path, text->packing, err);
    if (status == PRESTO_OK)
        status = take_start(source, &window, text, err);
    presto__text_window_done(&window);
    if (status < 0)
        presto_error_set_file(err, path);
    return status;
}

/* With the file's lock held. */
static presto_status look_at(presto__lines_source *source, size_t i, presto_error *err) {
    presto__text_file *text = &source->texts[i];
    presto__object object;
    if (source->rules.form == PRESTO__CUT_CSV && text->columns == NULL) {
        text->columns = calloc(source->fields.count, sizeof *text->columns);
        if (text->columns == NULL)
            return presto_fail_memory(err, source->fields.count * sizeof *text->columns);
    }
    PRESTO_TRY(presto__open_files_acquire(source->open, i, &object, err));
    presto_status status = look_into(source, object, source->files.entries[i].path, text, err);
    presto__open_files_release(source->open, i);
    return status;
}

presto_status presto__lines_look_at(presto__lines_source *source, size_t i, presto_error *err) {
    presto__text_file *text = &source->texts[i];
    presto_error why;
    if (atomic_load_explicit(&text->is_looked_at, memory_order_acquire))
        return PRESTO_OK;
    presto_status status = PRESTO_OK;
    bool is_lost = false;
    pthread_mutex_lock(&text->lock);
    if (!atomic_load(&text->is_looked_at)) {
        status = look_at(source, i, &why);
        is_lost = status < 0 && !presto__is_machine_failure(&why);
        if (is_lost)
            status = presto__lines_set_end(text, 0, &why, &why);
        if (status >= 0)
            atomic_store_explicit(&text->is_looked_at, true, memory_order_release);
    }
    pthread_mutex_unlock(&text->lock);
    if (is_lost && status >= 0)
        presto__lines_set_counted(text, NULL, 1, 0);
    if (status < 0 && err != NULL)
        *err = why;
    return status;
}

/* ---- the index ---- */

static presto__waymarks_facts facts_of(const presto__lines_source *source, size_t i) {
    const presto__text_file *text = &source->texts[i];
    return (presto__waymarks_facts){.rules = source->rules,
                                    .data_bytes = source->files.entries[i].bytes,
                                    .text_bytes = text->text_bytes,
                                    .records = text->records,
                                    .header_bytes = text->header_bytes};
}

/* FOLDER/NAME of an index that is kept apart; to be written: the folder is made. */
static presto_status name_apart(const presto__lines_source *source,
                                const presto__waymarks_data *data, uint64_t bytes, bool is_written,
                                char **path_out, presto_error *err) {
    const presto__index_data file = {.object = data->object, .path = data->path, .bytes = bytes};
    return presto__index_path_apart(&file, source->index_dir, is_written, path_out, err);
}

static presto_status open_index(const char *path, const presto__waymarks_data *data,
                                presto__waymarks_facts *facts, presto__waymarks *marks,
                                presto_error *err) {
    presto_error why;
    presto_status status = presto__waymarks_open(path, data, facts, marks, &why);
    /* One of another program, or of TFRecords, has the name. */
    if (status == PRESTO_ERR_UNSUPPORTED)
        return PRESTO_END;
    if (status < 0 && err != NULL)
        *err = why;
    return status;
}

/* Beside the file, then in the folder for indexes. */
static presto_status find_index(presto__lines_source *source, size_t i,
                                const presto__waymarks_data *data, presto__waymarks_facts *facts,
                                presto__waymarks *marks) {
    presto_error why;
    presto__waymarks_facts found = *facts;
    char *path = presto__index_name(data->path);
    presto_status status = path == NULL ? PRESTO_END : open_index(path, data, &found, marks, &why);
    free(path);
    if (status < 0)
        presto__lines_warn(source, &why);
    if (status != PRESTO_OK && source->keep_index != PRESTO_KEEP_NO_INDEX) {
        path = NULL;
        found = *facts;
        status = name_apart(source, data, source->files.entries[i].bytes, false, &path, &why);
        if (status == PRESTO_OK)
            status = open_index(path, data, &found, marks, &why);
        free(path);
        if (status < 0 && status != PRESTO_ERR_NOT_FOUND)
            presto__lines_warn(source, &why);
    }
    *facts = found;
    return status == PRESTO_OK ? PRESTO_OK : PRESTO_END;
}

presto_status presto__lines_use_index(presto__lines_source *source, size_t i, presto_error *err) {
    presto__text_file *text = &source->texts[i];
    presto__waymarks_facts facts = facts_of(source, i);
    presto__waymarks marks = {0};
    presto__waymarks_data data = {.path = source->files.entries[i].path,
                                  .is_plain = text->packing == PRESTO__NOT_PACKED};
    if (source->ignores_index)
        return PRESTO_END;
    PRESTO_TRY(presto__open_files_acquire(source->open, i, &data.object, err));
    presto_status status = find_index(source, i, &data, &facts, &marks);
    presto__open_files_release(source->open, i);
    if (status == PRESTO_OK) {
        text->is_from_index = true;
        presto__lines_set_counted(text, &marks, facts.records, facts.text_bytes);
        presto__waymarks_done(&marks);
    }
    return status;
}

static presto_status write_index(const presto__lines_source *source, size_t i,
                                 const presto__waymarks_data *data, presto_error *err) {
    const presto__text_file *text = &source->texts[i];
    const presto__waymarks_facts facts = facts_of(source, i);
    char *path = NULL;
    presto_status status = PRESTO_END;
    /* Who reads from a bucket does not write there. */
    if (source->keep_index == PRESTO_KEEP_INDEX_BESIDE && !presto__path_is_remote(data->path)) {
        path = presto__index_name(data->path);
        presto__object_info info;
        bool is_taken = path != NULL && presto__object_find(path, &info, NULL) == PRESTO_OK &&
                        !presto__waymarks_is_index(path);
        if (path != NULL && !is_taken)
            status = presto__waymarks_write(path, data, &facts, &text->marks, err);
        free(path);
        path = NULL;
    }
    if (status == PRESTO_OK)
        return PRESTO_OK;
    status = name_apart(source, data, facts.data_bytes, true, &path, err);
    if (status == PRESTO_OK)
        status = presto__waymarks_write(path, data, &facts, &text->marks, err);
    free(path);
    return status;
}

void presto__lines_keep_index(presto__lines_source *source, size_t i) {
    const presto__text_file *text = &source->texts[i];
    presto_error why;
    presto__waymarks_data data = {.path = source->files.entries[i].path,
                                  .is_plain = text->packing == PRESTO__NOT_PACKED};
    if (source->keep_index == PRESTO_KEEP_NO_INDEX || source->ignores_index ||
        text->is_from_index || atomic_load(&text->end) != NULL)
        return;
    presto_status status = presto__open_files_acquire(source->open, i, &data.object, &why);
    if (status == PRESTO_OK) {
        status = write_index(source, i, &data, &why);
        presto__open_files_release(source->open, i);
    }
    if (status < 0)
        presto__lines_warn(source, &why);
}
