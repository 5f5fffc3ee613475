/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The raw sources `lines`, `jsonl` and `csv`: the options, and what identifies the samples. Nothing is counted
 * when they are opened.
 */
#include "source_lines_internal.h"

#include <stdio.h>
#include <stdlib.h>

#include "../../../base/paths_internal.h"
#include "../../../steps/pipelines_internal.h"

/* So much of the first text says how long records are. */
#define GUESS_BYTES ((size_t)64 << 10)

/* ---- life ---- */

static void free_texts(presto__lines_source *source) {
    for (size_t i = 0; i < source->lock_count; i++) {
        presto__text_file *text = &source->texts[i];
        if (text->stream.path != NULL) {
            presto__text_window_done(&text->stream);
            presto__open_files_release(source->open, i);
        }
        presto__waymarks_done(&text->marks);
        free(text->columns);
        free(atomic_load(&text->end));
        pthread_mutex_destroy(&text->lock);
    }
    free(source->texts);
}

static void lines_free(presto_source *base) {
    presto__lines_source *source = presto__lines_of(base);
    if (source->finder.window.path != NULL) {
        presto__text_window_done(&source->finder.window);
        presto__open_files_release(source->open, source->finder.file);
    }
    free_texts(source);
    presto__open_files_free(source->open);
    for (size_t i = 0; i < source->name_count; i++)
        free(source->names[i]);
    free(source->names);
    presto__fields_done(&source->fields);
    free(source->index_dir);
    if (source->has_find_lock)
        pthread_mutex_destroy(&source->find_lock);
    if (source->has_side_lock)
        pthread_mutex_destroy(&source->side_lock);
    presto__files_done(&source->files);
    free(source);
}

static presto_status make_texts(presto__lines_source *source, presto_error *err) {
    size_t count = source->files.file_count;
    source->texts = calloc(count + 1, sizeof *source->texts);
    if (source->texts == NULL)
        return presto_fail_memory(err, count * sizeof *source->texts);
    for (; source->lock_count < count; source->lock_count++) {
        presto__text_file *text = &source->texts[source->lock_count];
        int failed = pthread_mutex_init(&text->lock, NULL);
        if (failed != 0)
            return presto_fail_errno(err, failed, NULL, "cannot make a lock");
        atomic_init(&text->first, source->lock_count == 0 ? 0 : UINT64_MAX);
    }
    int failed = pthread_mutex_init(&source->find_lock, NULL);
    source->has_find_lock = failed == 0;
    if (failed == 0)
        failed = pthread_mutex_init(&source->side_lock, NULL);
    source->has_side_lock = source->has_find_lock && failed == 0;
    return failed == 0 ? PRESTO_OK : presto_fail_errno(err, failed, NULL, "cannot make a lock");
}

/* ---- what identifies samples ---- */

/* The files that have samples below the source's count; all, as long as they are not counted. */
static size_t files_in_use(const presto__lines_source *source) {
    uint64_t count = presto__source_all(&source->files.base);
    if (count == PRESTO_COUNT_UNKNOWN)
        return source->files.file_count;
    return count == 0 ? 0 : presto__lines_file_of(source, count - 1) + 1;
}

static presto_status lines_drop_cache(presto_source *base, presto_error *err) {
    const presto__lines_source *source = presto__lines_of(base);
    presto__open_files_close_idle(source->open);
    return presto__files_drop_cache(&source->files, files_in_use(source), err);
}

static uint64_t files_digest(const presto_source *base) {
    const presto__lines_source *source = presto__lines_of(base);
    return presto__fnv_mix(presto__files_digest(&source->files, source->files.file_count),
                           source->options_digest);
}

static uint64_t lines_digest(const presto_source *base) {
    const presto__lines_source *source = presto__lines_of(base);
    uint64_t digest = presto__files_digest(&source->files, files_in_use(source));
    return presto__fnv_mix(presto__fnv_mix(digest, presto__source_all(base)),
                           source->options_digest);
}

static presto_status lines_identify(const presto_source *base, bool as_named,
                                    presto__digest *digest, presto_error *err) {
    const presto__lines_source *source = presto__lines_of(base);
    presto__digest_add(digest, &source->options_digest, sizeof source->options_digest);
    return presto__files_identify(&source->files, as_named, digest, err);
}

/* The file, and its number there. */
static void lines_name(const presto_source *base, uint64_t number, presto__digest *digest) {
    const presto__lines_source *source = presto__lines_of(base);
    size_t file = presto__lines_file_of(source, number);
    uint64_t within = number - atomic_load(&source->texts[file].first);
    presto__files_name(&source->files.entries[file], digest);
    presto__digest_add(digest, &within, sizeof within);
}

static presto_status lines_check_random_access(presto_source *base, presto_error *err) {
    presto__lines_source *source = presto__lines_of(base);
    for (size_t i = 0; i < source->files.file_count; i++) {
        PRESTO_TRY(presto__lines_look_at(source, i, err));
        presto__packing packing = source->texts[i].packing;
        if (packing == PRESTO__NOT_PACKED)
            continue;
        presto_status status =
            presto_fail(err, PRESTO_ERR_ARGUMENT, PRESTO_NO_OFFSET,
                        "is compressed as a whole (%s) and can only be read from its start, so "
                        "that lines cannot be picked for this shuffle: use buffer:N, or "
                        "decompress it",
                        presto__packing_name(packing));
        presto_error_set_file(err, source->files.entries[i].path);
        return status;
    }
    return PRESTO_OK;
}

static bool lines_take_warning(presto_source *base, presto_error *warning_out) {
    presto__lines_source *source = presto__lines_of(base);
    pthread_mutex_lock(&source->side_lock);
    bool has_one = source->warning.status < 0;
    if (has_one)
        *warning_out = source->warning;
    source->warning.status = PRESTO_OK;
    pthread_mutex_unlock(&source->side_lock);
    return has_one;
}

/* How what is found is kept. Before anything is. */
static presto_status lines_keep_as(presto_source *base, const presto_shard_options *options,
                                   presto_error *err) {
    presto__lines_source *source = presto__lines_of(base);
    source->keep_index = options->keep_index;
    source->ignores_index = options->ignore_index;
    if (options->index_dir == NULL)
        return PRESTO_OK;
    source->index_dir = strdup(options->index_dir);
    return source->index_dir == NULL ? presto_fail_memory(err, strlen(options->index_dir))
                                     : PRESTO_OK;
}

static const presto__source_walk lines_walk = {
    .count = presto__lines_count,
    .settle = presto__lines_settle,
    .digest = files_digest,
    .begin = presto__lines_begin,
    .end = presto__lines_end,
    .pass = presto__lines_pass,
    .step = presto__lines_step,
};

static const presto__source_ops lines_ops = {
    .free = lines_free,
    .drop_cache = lines_drop_cache,
    .take_warning = lines_take_warning,
    .keep_as = lines_keep_as,
    .check_random_access = lines_check_random_access,
    .reader_new = presto__lines_reader_new,
    .reader_free = presto__lines_reader_free,
    .fetch = presto__lines_fetch,
    .will_read = presto__lines_will_read,
    .sample = presto__lines_sample,
    .walk = &lines_walk,
    .place = presto__lines_place,
    .locate = presto__lines_locate,
    .name = lines_name,
    .digest = lines_digest,
    .identify = lines_identify,
};

/* ---- options ---- */

static const presto_option *option_of(const presto_pipeline *pipeline, const char *name) {
    return presto__pipeline_source_option(pipeline, name);
}

static void add_to_digest(presto__lines_source *source, const char *text) {
    source->options_digest = presto__fnv_add(source->options_digest, text, strlen(text) + 1);
}

static presto_status add_field(presto__lines_source *source, const char *name, size_t name_bytes,
                               const char *feature, presto__field_type type, presto_error *err) {
    presto__fields *fields = &source->fields;
    presto__field *field = &fields->items[fields->count];
    field->name = strndup(name, name_bytes);
    field->feature = feature == NULL ? strndup(name, name_bytes) : strdup(feature);
    field->type = type;
    fields->count++;
    if (field->name == NULL || field->feature == NULL)
        return presto_fail_memory(err, name_bytes);
    add_to_digest(source, field->name);
    add_to_digest(source, field->feature);
    source->options_digest = presto__fnv_mix(source->options_digest, (uint64_t)type);
    return PRESTO_OK;
}

/* The main feature, the label and the others. */
static presto_status take_fields(presto__lines_source *source, const presto_pipeline *pipeline,
                                 presto_error *err) {
    static const char line[] = "line";
    const presto_option *text = option_of(pipeline, "text"), *label = option_of(pipeline, "label"),
                        *features = option_of(pipeline, "features");
    const char *feature = option_of(pipeline, "feature")->text;
    size_t most = 2 + (features == NULL ? 0 : features->text_count);
    source->fields.items = calloc(most, sizeof *source->fields.items);
    if (source->fields.items == NULL)
        return presto_fail_memory(err, most * sizeof *source->fields.items);
    const char *main = text == NULL ? line : text->text;
    PRESTO_TRY(add_field(source, main, strlen(main), feature, PRESTO__FIELD_TEXT, err));
    if (label != NULL && strcmp(label->text, "none") != 0)
        PRESTO_TRY(
            add_field(source, label->text, strlen(label->text), "label", PRESTO__FIELD_LABEL, err));
    for (size_t i = 0; features != NULL && i < features->text_count; i++) {
        size_t bytes;
        presto__field_type type = presto__field_type_of(features->texts[i], &bytes);
        PRESTO_TRY(add_field(source, features->texts[i], bytes, NULL, type, err));
    }
    return PRESTO_OK;
}

static presto_status take_classes(presto__lines_source *source, const presto_pipeline *pipeline,
                                  presto_error *err) {
    presto__classes *classes = &source->fields.classes;
    const presto_option *option = option_of(pipeline, "classes");
    if (option == NULL)
        return PRESTO_OK;
    PRESTO_TRY(presto__classes_read(option, classes, err));
    if (classes->count == 0)
        return PRESTO_OK;
    if (strcmp(option_of(pipeline, "label")->text, "none") == 0)
        return presto_fail(err, PRESTO_ERR_ARGUMENT, PRESTO_NO_OFFSET,
                           "source.classes is given, but source.label is none");
    for (size_t i = 0; i < classes->count; i++)
        add_to_digest(source, classes->names[i]);
    return presto__classes_name(classes, &source->files.base, err);
}

static bool is_tsv(const char *path) {
    return presto__ends_alike(path, ".tsv") || presto__ends_alike(path, ".tsv.gz") ||
           presto__ends_alike(path, ".tsv.zst");
}

static presto_status take_columns(presto__lines_source *source, const presto_pipeline *pipeline,
                                  presto_error *err) {
    const presto_option *names = option_of(pipeline, "names");
    const char *delimiter = option_of(pipeline, "delimiter")->text;
    bool is_auto = strcmp(delimiter, "auto") == 0;
    if (is_auto)
        delimiter = is_tsv(source->files.entries[0].path) ? "\t" : ",";
    source->rules.separator =
        strcmp(delimiter, "tab") == 0 || strcmp(delimiter, "\\t") == 0 ? '\t' : (uint8_t)*delimiter;
    source->options_digest = presto__fnv_mix(source->options_digest, source->rules.separator);
    source->has_names = names->text_count > 0;
    source->names = calloc(names->text_count + 1, sizeof *source->names);
    if (source->names == NULL)
        return presto_fail_memory(err, names->text_count * sizeof *source->names);
    for (; source->name_count < names->text_count; source->name_count++) {
        source->names[source->name_count] = strdup(names->texts[source->name_count]);
        if (source->names[source->name_count] == NULL)
            return presto_fail_memory(err, strlen(names->texts[source->name_count]));
        add_to_digest(source, source->names[source->name_count]);
    }
    return PRESTO_OK;
}

/* ---- declaring ---- */

static presto_status declare(presto__lines_source *source, presto_error *err) {
    presto_source *base = &source->files.base;
    const presto_tensor_spec text = {.dtype = PRESTO_STRING}, integer = {.dtype = PRESTO_INT64},
                             fraction = {.dtype = PRESTO_FLOAT32},
                             integers = {PRESTO_INT64, 1, {-1}},
                             fractions = {PRESTO_FLOAT32, 1, {-1}};
    const struct {
        presto_encoding encoding;
        const presto_tensor_spec *spec;
    } kinds[] = {
        [PRESTO__FIELD_TEXT] = {PRESTO_ENCODE_BYTES, &text},
        [PRESTO__FIELD_INT64] = {PRESTO_ENCODE_INT64, &integer},
        [PRESTO__FIELD_FLOAT32] = {PRESTO_ENCODE_FLOAT, &fraction},
        [PRESTO__FIELD_LABEL] = {PRESTO_ENCODE_INT64, &integer},
        [PRESTO__FIELD_JSON] = {PRESTO_ENCODE_BYTES, &text},
        [PRESTO__FIELD_INT64S] = {PRESTO_ENCODE_INT64, &integers},
        [PRESTO__FIELD_FLOAT32S] = {PRESTO_ENCODE_FLOAT, &fractions},
    };
    base->main_feature = strdup(source->fields.items[0].feature);
    if (base->main_feature == NULL)
        return presto_fail_memory(err, strlen(source->fields.items[0].feature));
    for (size_t i = 0; i < source->fields.count; i++) {
        const presto__field *field = &source->fields.items[i];
        PRESTO_TRY(presto__source_declare(base, field->feature, kinds[field->type].encoding,
                                          kinds[field->type].spec, err));
    }
    return PRESTO_OK;
}

/* ---- opening ---- */

/* Bytes of a sample, as the first ones are. Nothing can fail: who reads them says why. */
static void guess_mean(presto__lines_source *source) {
    presto__object object;
    presto__text_window window;
    presto__cut_search search = {0};
    presto__cut_record record;
    const presto__text_file *text = &source->texts[0];
    size_t at = 0, count = 0;
    source->files.base.mean_bytes = 1;
    if (atomic_load(&text->end) != NULL ||
        presto__open_files_acquire(source->open, 0, &object, NULL) < 0)
        return;
    const char *path = source->files.entries[0].path;
    presto_status status = presto__text_window_open(&window, object, path, text->packing, NULL);
    if (status == PRESTO_OK)
        status = presto__text_window_fill(&window, GUESS_BYTES, NULL);
    presto_span view = presto__text_window_view(&window);
    while (status == PRESTO_OK &&
           presto__cut_next(&source->rules, presto_span_of(view.data + at, view.bytes - at),
                            window.is_all, &search, &record) == PRESTO_OK) {
        at += record.next;
        count++;
    }
    if (count > 0)
        source->files.base.mean_bytes = at / count > 0 ? at / count : 1;
    else if (view.bytes > 0)
        source->files.base.mean_bytes = view.bytes;
    presto__text_window_done(&window);
    presto__open_files_release(source->open, 0);
}

/* What is wrong with the first file is wrong with all, mostly: it is said at once. */
static presto_status look_at_first(presto__lines_source *source, presto_error *err) {
    PRESTO_TRY(presto__lines_look_at(source, 0, err));
    const presto__text_end *end = atomic_load(&source->texts[0].end);
    if (end == NULL)
        return PRESTO_OK;
    if (err != NULL)
        *err = end->why;
    return end->why.status;
}

static presto_status fill(presto__lines_source *source, const presto__files_request *request,
                          presto_error *err) {
    const presto_pipeline *pipeline = request->pipeline;
    presto_source *base = &source->files.base;
    source->options_digest = presto__fnv_mix(PRESTO__FNV_START, (uint64_t)source->rules.form);
    source->max_bytes = (uint64_t)option_of(pipeline, "max-bytes")->integer;
    source->rules.most_blank = source->max_bytes;
    source->files.holds_many = true;
    PRESTO_TRY(presto__files_list(&source->files, option_of(pipeline, "match"), request->paths,
                                  request->path_count, err));
    for (size_t i = 0; i < source->files.file_count; i++)
        base->is_remote = base->is_remote || presto__path_is_remote(source->files.entries[i].path);
    if (source->rules.form == PRESTO__CUT_CSV)
        PRESTO_TRY(take_columns(source, pipeline, err));
    PRESTO_TRY(take_fields(source, pipeline, err));
    PRESTO_TRY(take_classes(source, pipeline, err));
    PRESTO_TRY(make_texts(source, err));
    PRESTO_TRY(presto__open_files_new(&source->files, &source->open, err));
    PRESTO_TRY(look_at_first(source, err));
    guess_mean(source);
    base->count = base->full_count = PRESTO_COUNT_UNKNOWN;
    atomic_init(&source->total, PRESTO_COUNT_UNKNOWN);
    return declare(source, err);
}

static presto_status open_form(presto__cut_form form, const presto__files_request *request,
                               presto_source **source_out, presto_error *err) {
    presto__lines_source *source = calloc(1, sizeof *source);
    if (source == NULL)
        return presto_fail_memory(err, sizeof *source);
    source->files.base.ops = &lines_ops;
    source->files.base.declares_all = true;
    source->rules.form = form;
    presto_status status = fill(source, request, err);
    if (status < 0) {
        lines_free(&source->files.base);
        return status;
    }
    *source_out = &source->files.base;
    return PRESTO_OK;
}

static presto_status lines_open(const presto_pipeline *pipeline, const char *const *paths,
                                size_t path_count, presto_source **source_out, presto_error *err) {
    return open_form(PRESTO__CUT_LINES, &(presto__files_request){pipeline, paths, path_count},
                     source_out, err);
}

static presto_status jsonl_open(const presto_pipeline *pipeline, const char *const *paths,
                                size_t path_count, presto_source **source_out, presto_error *err) {
    return open_form(PRESTO__CUT_JSON, &(presto__files_request){pipeline, paths, path_count},
                     source_out, err);
}

static presto_status csv_open(const presto_pipeline *pipeline, const char *const *paths,
                              size_t path_count, presto_source **source_out, presto_error *err) {
    return open_form(PRESTO__CUT_CSV, &(presto__files_request){pipeline, paths, path_count},
                     source_out, err);
}

const presto__source_kind presto__source_lines = {.name = "lines", .open = lines_open};
const presto__source_kind presto__source_jsonl = {.name = "jsonl", .open = jsonl_open};
const presto__source_kind presto__source_csv = {.name = "csv", .open = csv_open};
