/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of raw sources, and a source with many samples a file: each line of some text files is
 * one. It has no line in the table; its hook is called directly.
 */
#include <stdio.h>
#include <unistd.h>

#include "../../../loader/loader_internal.h"
#include "../../../steps/pipelines_internal.h"
#include "../storage/storage_internal.h"
#include "folder_check.h"
#include "skips_check.h"

#include "source/core/source_internal.h"

/* ---- the source: lines of text files ---- */

typedef struct line_place {
    const char *path; /* borrowed from who opened the source */
    uint64_t offset;
    size_t bytes; /* without the line end */
    int64_t line; /* 1-based; the sample's label */
} line_place;

typedef struct lines_source {
    presto_source base;
    line_place *lines;
} lines_source;

typedef struct lines_reader {
    presto__reader base;
    const uint64_t *numbers;
} lines_reader;

static const line_place *line_of(const presto_source *source, uint64_t number) {
    return &((const lines_source *)(const void *)source)->lines[number];
}

static void lines_free(presto_source *source) {
    free(((lines_source *)(void *)source)->lines);
    presto__source_done(source);
    free(source);
}

static presto_status lines_reader_new(presto_source *source, const presto__reader_options *options,
                                      presto__reader **reader_out, presto_error *err) {
    (void)options;
    lines_reader *reader = calloc(1, sizeof *reader);
    if (reader == NULL)
        return presto_fail_memory(err, sizeof *reader);
    reader->base.source = source;
    *reader_out = &reader->base;
    return PRESTO_OK;
}

static void lines_reader_free(presto__reader *reader) {
    free(reader);
}

static presto_status lines_fetch(presto__reader *reader, const uint64_t *numbers, size_t count,
                                 presto__blocks *blocks, presto_error *err) {
    (void)count, (void)blocks, (void)err;
    ((lines_reader *)(void *)reader)->numbers = numbers;
    return PRESTO_OK;
}

static presto_status fail_line(const line_place *place, presto_status status, presto_error *err) {
    presto_error_set_record(err, (uint64_t)place->line);
    presto_error_set_file(err, place->path);
    return status;
}

static presto_status read_line(const line_place *place, presto_arena *arena, presto_span *text_out,
                               presto_error *err) {
    uint8_t *data = presto_arena_alloc(arena, place->bytes + 1, 1);
    size_t got;
    if (data == NULL)
        return presto_fail_memory(err, place->bytes + 1);
    presto__object object;
    presto__object_info info;
    if (presto__object_open(place->path, &object, &info, NULL) < 0)
        return fail_line(
            place, presto_fail(err, PRESTO_ERR_NOT_FOUND, PRESTO_NO_OFFSET, "cannot open"), err);
    presto_status status = presto__read_at(
        (presto__object_place){object, place->path, place->offset}, data, place->bytes, &got, err);
    presto__object_close(&object);
    if (status == PRESTO_OK && got < place->bytes)
        status = presto_fail(err, PRESTO_ERR_TRUNCATED, place->offset + got, "the line is cut");
    if (status < 0)
        return fail_line(place, status, err);
    *text_out = presto_span_of(data, place->bytes);
    return PRESTO_OK;
}

static presto_status lines_sample(presto__reader *reader, size_t i, presto_arena *arena,
                                  presto_sample *sample_out, presto_error *err) {
    uint64_t number = ((lines_reader *)(void *)reader)->numbers[i];
    const line_place *place = line_of(reader->source, number);
    presto_feature *features =
        presto_arena_alloc(arena, 2 * sizeof *features, _Alignof(max_align_t));
    presto_span *text = presto_arena_alloc(arena, sizeof *text, _Alignof(max_align_t));
    if (features == NULL || text == NULL)
        return presto_fail_memory(err, 2 * sizeof *features);
    PRESTO_TRY(read_line(place, arena, text, err));
    features[0] =
        (presto_feature){.name = presto_span_of_text("text"), .encoding = PRESTO_ENCODE_BYTES};
    features[0].tensor.spec = (presto_tensor_spec){.dtype = PRESTO_STRING};
    features[0].tensor.strings = text;
    features[1] =
        (presto_feature){.name = presto_span_of_text("label"), .encoding = PRESTO_ENCODE_INT64};
    features[1].tensor.spec = (presto_tensor_spec){.dtype = PRESTO_INT64};
    features[1].tensor.data = &place->line;
    *sample_out = (presto_sample){.features = features, .feature_count = 2, .number = number};
    return PRESTO_OK;
}

static void lines_locate(const presto_source *source, uint64_t number, presto_error *err) {
    fail_line(line_of(source, number), PRESTO_OK, err);
}

static void lines_place(presto__reader *reader, size_t i, presto_error *err) {
    lines_locate(reader->source, ((lines_reader *)(void *)reader)->numbers[i], err);
}

static presto_status lines_drop_cache(presto_source *source, presto_error *err) {
    (void)source, (void)err;
    return PRESTO_OK;
}

static presto_status lines_identify(const presto_source *source, bool as_named,
                                    presto__digest *digest, presto_error *err) {
    (void)as_named, (void)err;
    for (uint64_t i = 0; i < source->full_count; i++) {
        const line_place *place = line_of(source, i);
        presto__digest_add(digest, place->path, strlen(place->path));
        presto__digest_add(digest, &place->offset, sizeof place->offset);
        presto__digest_add(digest, &place->bytes, sizeof place->bytes);
    }
    return PRESTO_OK;
}

static uint64_t lines_digest(const presto_source *source) {
    presto__digest digest = {{0}};
    (void)lines_identify(source, false, &digest, NULL);
    return digest.state[0];
}

static const presto__source_ops lines_ops = {
    .free = lines_free,
    .drop_cache = lines_drop_cache,
    .reader_new = lines_reader_new,
    .reader_free = lines_reader_free,
    .fetch = lines_fetch,
    .sample = lines_sample,
    .place = lines_place,
    .locate = lines_locate,
    .digest = lines_digest,
    .identify = lines_identify,
};

static void list_lines(lines_source *source, const char *path) {
    size_t bytes;
    uint8_t *text = presto_check_read_file(path, &bytes);
    int64_t line = 0;
    for (size_t start = 0, i = 0; i < bytes; i++) {
        if (text[i] != '\n')
            continue;
        uint64_t number = source->base.full_count++;
        source->lines = realloc(source->lines, (number + 1) * sizeof *source->lines);
        source->lines[number] = (line_place){path, start, i - start, ++line};
        start = i + 1;
    }
    source->base.full_bytes += bytes;
    free(text);
}

static presto_status lines_open(const presto_pipeline *pipeline, const char *const *paths,
                                size_t path_count, presto_source **source_out, presto_error *err) {
    (void)pipeline;
    lines_source *source = calloc(1, sizeof *source);
    presto_source *base = &source->base;
    base->ops = &lines_ops;
    base->declares_all = true;
    base->main_feature = strdup("text");
    for (size_t i = 0; i < path_count; i++)
        list_lines(source, paths[i]);
    base->count = base->full_count;
    presto_tensor_spec text = {.dtype = PRESTO_STRING}, label = {.dtype = PRESTO_INT64};
    ck_assert_ok(presto__source_declare(base, "text", PRESTO_ENCODE_BYTES, &text, err), err);
    ck_assert_ok(presto__source_declare(base, "label", PRESTO_ENCODE_INT64, &label, err), err);
    *source_out = base;
    return PRESTO_OK;
}

static const presto__source_kind lines_kind = {.name = "lines", .open = lines_open};

/* ---- what the tests read: three files of 100, 1 and 57 lines ---- */

enum { FILES = 3, LINES = 158 };
static const int file_lines[FILES] = {100, 1, 57};

static char *dir;
static char paths[FILES][700];
static presto_source *source;
static presto_error err;

static void set_up(void) {
    dir = presto_check_temp_dir();
    const char *given[FILES];
    for (int f = 0; f < FILES; f++) {
        snprintf(paths[f], sizeof paths[f], "%s/%d.txt", dir, f);
        FILE *file = fopen(paths[f], "w");
        for (int i = 0; i < file_lines[f]; i++)
            fprintf(file, "file %d, line %d\n", f, i + 1);
        fclose(file);
        given[f] = paths[f];
    }
    ck_assert_ok(lines_kind.open(NULL, given, FILES, &source, &err), &err);
}

static void tear_down(void) {
    presto__source_free(source);
    presto_check_remove_tree(dir);
    free(dir);
}

static void check_row(const presto_batch *batch, size_t row) {
    ck_assert_uint_eq(batch->feature_count, 2);
    ck_assert_str_eq(batch->features[0].name, "label");
    uint64_t number = batch->sample_numbers[row];
    uint64_t first = 0;
    int f = 0;
    for (; f < FILES - 1 && number >= first + (uint64_t)file_lines[f]; f++)
        first += (uint64_t)file_lines[f];
    char wanted[64];
    snprintf(wanted, sizeof wanted, "file %d, line %" PRIu64, f, number - first + 1);
    ck_assert(presto_span_is(presto_batch_string(&batch->features[1], row), wanted));
    int64_t label;
    memcpy(&label, (const int64_t *)batch->features[0].tensor.data + row, sizeof label);
    ck_assert_int_eq(label, (int64_t)(number - first + 1));
}

/* Check all rows of a stream; how often each sample came is added to `seen`. */
static void count_stream(const presto_loader_options *options, unsigned seen[LINES]) {
    presto_loader *loader;
    presto_batch *batch;
    presto_status status;
    ck_assert_ok(presto__loader_open(source, NULL, options, &loader, &err), &err);
    while ((status = presto_loader_next(loader, &batch, &err)) == PRESTO_OK) {
        for (size_t i = 0; i < batch->rows; i++) {
            check_row(batch, i);
            seen[batch->sample_numbers[i]]++;
        }
        presto_batch_release(batch);
    }
    ck_assert_status(status, PRESTO_END, &err);
    presto_loader_free(loader);
}

/* ---- the tests ---- */

START_TEST(each_declared_type_of_source_has_an_open_hook) {
    size_t count = 0;
    for (const presto_source_type *type; (type = presto__source_type_at(count)) != NULL; count++) {
        const presto__source_kind *kind = presto__source_kind_find(type->name);
        ck_assert_msg(kind != NULL, "%s is not listed in loader/source/kinds.c", type->name);
        ck_assert_str_eq(kind->name, type->name);
        ck_assert(kind->open != NULL);
        bool names_feature = false; /* records that take its place are asked for it */
        for (size_t i = 0; i < type->option_count; i++)
            names_feature = names_feature || strcmp(type->options[i].name, "feature") == 0;
        ck_assert_msg(names_feature, "%s has no option 'feature'", type->name);
    }
    ck_assert_uint_ge(count, 1);
    ck_assert_ptr_null(presto__source_kind_find("no such kind"));
    ck_assert_ptr_null(presto__source_kind_find(""));
}
END_TEST

START_TEST(a_file_of_many_samples_is_read_in_every_order) {
    static const presto_shuffle_kind orders[] = {PRESTO_SHUFFLE_NONE, PRESTO_SHUFFLE_BUFFER,
                                                 PRESTO_SHUFFLE_FULL, PRESTO_SHUFFLE_BLOCKS};
    static const size_t caches[] = {0, 1 << 20};
    static const unsigned threads[] = {0, 1, 5};
    set_up();
    ck_assert_uint_eq(presto_source_count(source), LINES);
    for (size_t o = 0; o < 4; o++)
        for (size_t c = 0; c < 2; c++)
            for (size_t t = 0; t < 3; t++) {
                presto_loader_options options;
                presto_loader_options_defaults(&options);
                options.batch_samples = 7;
                options.range.epochs = 2;
                options.memory.block_samples = 13;
                options.order.shuffle = orders[o];
                options.order.shuffle_window = 10;
                options.cache.bytes = caches[c];
                options.threads = threads[t];
                unsigned seen[LINES] = {0};
                count_stream(&options, seen);
                for (size_t i = 0; i < LINES; i++)
                    ck_assert_msg(seen[i] == 2, "sample %zu came %u times", i, seen[i]);
            }
    tear_down();
}
END_TEST

START_TEST(ranks_share_a_file_of_many_samples) {
    set_up();
    unsigned seen[LINES] = {0};
    for (uint64_t rank = 0; rank < 2; rank++) {
        presto_loader_options options;
        presto_loader_options_defaults(&options);
        options.order.shuffle = PRESTO_SHUFFLE_FULL;
        options.range.rank = rank;
        options.range.world = 2;
        count_stream(&options, seen);
    }
    for (size_t i = 0; i < LINES; i++)
        ck_assert_msg(seen[i] == 1, "sample %zu came %u times", i, seen[i]);
    tear_down();
}
END_TEST

START_TEST(a_disk_cache_keeps_each_sample_of_a_file) {
    set_up();
    char folder[720];
    snprintf(folder, sizeof folder, "%s/cache", dir);
    presto_loader_options options;
    presto_loader_options_defaults(&options);
    options.cache.bytes = 1 << 20;
    options.cache.dir = folder;
    options.range.epochs = 2;
    unsigned seen[LINES] = {0};
    count_stream(&options, seen);
    for (int f = 0; f < FILES; f++)
        ck_assert_int_eq(truncate(paths[f], 0), 0); /* what comes now comes from the cache */
    count_stream(&options, seen);
    for (size_t i = 0; i < LINES; i++)
        ck_assert_uint_eq(seen[i], 4);
    tear_down();
}
END_TEST

START_TEST(a_line_that_is_cut_fails_alone_and_is_named) {
    set_up();
    ck_assert_int_eq(truncate(paths[0], (off_t)line_of(source, 98)->offset + 3), 0);
    skips noted;
    unsigned seen[LINES] = {0};
    presto_loader_options options;
    presto_loader_options_defaults(&options);
    skip_and_note(&options, 2, &noted);
    options.threads = 3;
    count_stream(&options, seen);
    ck_assert_uint_eq(noted.count, 2);
    ck_assert_str_eq(noted.last.file, paths[0]);
    ck_assert_uint_eq(noted.last.record, 100);
    for (size_t i = 0; i < LINES; i++)
        ck_assert_uint_eq(seen[i], i != 98 && i != 99);
    tear_down();
}
END_TEST

int main(void) {
    const TTest *const tests[] = {
        each_declared_type_of_source_has_an_open_hook,
        a_file_of_many_samples_is_read_in_every_order,
        ranks_share_a_file_of_many_samples,
        a_disk_cache_keeps_each_sample_of_a_file,
        a_line_that_is_cut_fails_alone_and_is_named,
    };
    return presto_check_main("source_kinds", tests, sizeof tests / sizeof tests[0], 60);
}
