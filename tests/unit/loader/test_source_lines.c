/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lines, objects of JSON and rows of CSV as samples: each one once, in every order, by ranks, from states,
 * from indexes, and the same whether they are counted before or found on the way.
 */
#define _XOPEN_SOURCE 700
#include <unistd.h>

#include "../records/faults.h"
#include "lines_check.h"
#include "skips_check.h"

#include "source/lines/source_lines_internal.h"

static known_texts known;
static presto_error err;

static void set_up(const char *form, const char *options) {
    read_pipeline(&known, form, options);
}

static void tear_down(files *set) {
    forget_texts(&known);
    presto_pipeline_free(known.pipeline);
    remove_files(set);
}

/* ---- every sample once ---- */

static void count_samples(presto_source *source, const presto_loader_options *options,
                          unsigned *seen) {
    presto_loader *loader;
    presto_batch *batch;
    presto_status status;
    ck_assert_ok(presto__loader_open(source, NULL, options, &loader, &err), &err);
    while ((status = presto_loader_next(loader, &batch, &err)) == PRESTO_OK) {
        for (size_t i = 0; i < batch->rows; i++) {
            check_text(&known, batch, i);
            seen[batch->sample_numbers[i]]++;
        }
        presto_batch_release(batch);
    }
    ck_assert_status(status, PRESTO_END, &err);
    presto_loader_free(loader);
}

static void choose_order(presto_loader_options *options, bool is_packed) {
    static const presto_shuffle_kind orders[] = {PRESTO_SHUFFLE_NONE, PRESTO_SHUFFLE_BUFFER,
                                                 PRESTO_SHUFFLE_FULL, PRESTO_SHUFFLE_BLOCKS};
    presto_loader_options_defaults(options);
    options->batch_samples = (size_t)pick(1, 40);
    options->range.epochs = pick(1, 2);
    options->threads = (unsigned)pick(0, 4);
    options->order.shuffle = orders[pick(0, is_packed ? 1 : 3)];
    options->order.shuffle_window = pick(1, 200);
    options->order.seed = pick(0, 99);
    options->memory.block_samples = (size_t)pick(1, 50);
    if (pick(0, 2) == 0)
        options->cache.bytes = 1 << 16;
}

static void check_every_order(const char *form) {
    (void)start_random();
    set_up(form, "");
    for (size_t round = 0; round < presto_check_rounds(25); round++) {
        files set;
        bool is_packed = pick(0, 1) == 0;
        make_texts(&set, &known, is_packed ? 2 : 0);
        presto_source *source =
            open_all(&set, &known, pick(0, 1) == 0, (presto_keep_index)pick(0, 2));
        for (size_t i = 0; i < 3; i++) {
            static unsigned seen[MOST_TEXTS];
            presto_loader_options options;
            memset(seen, 0, sizeof seen);
            choose_order(&options, is_packed);
            count_samples(source, &options, seen);
            ck_assert_uint_eq(presto_source_count(source), known.count);
            for (size_t k = 0; k < known.count; k++)
                ck_assert_msg(seen[k] == options.range.epochs, "sample %zu came %u times", k,
                              seen[k]);
        }
        presto__source_free(source);
        forget_texts(&known);
        remove_files(&set);
    }
    presto_pipeline_free(known.pipeline);
}

START_TEST(each_line_comes_once_in_every_order) {
    check_every_order("lines");
}
END_TEST

START_TEST(each_row_comes_once_in_every_order) {
    check_every_order("csv");
}
END_TEST

START_TEST(each_object_comes_once_in_every_order) {
    check_every_order("jsonl");
}
END_TEST

static void check_ranks(const char *form) {
    (void)start_random();
    set_up(form, "");
    for (size_t round = 0; round < presto_check_rounds(8); round++) {
        static unsigned seen[MOST_TEXTS];
        files set;
        uint64_t world = pick(2, 4);
        bool is_packed = pick(0, 2) == 0;
        memset(seen, 0, sizeof seen);
        make_texts(&set, &known, is_packed ? 2 : 0);
        for (uint64_t rank = 0; rank < world; rank++) {
            presto_source *source = open_all(&set, &known, false, PRESTO_KEEP_NO_INDEX);
            presto_loader_options options;
            presto_loader_options_defaults(&options);
            options.order.shuffle = is_packed ? PRESTO_SHUFFLE_NONE : PRESTO_SHUFFLE_FULL;
            options.range.rank = rank;
            options.range.world = world;
            options.threads = (unsigned)pick(0, 3);
            count_samples(source, &options, seen);
            presto__source_free(source);
        }
        /* So that all ranks have as many, up to world - 1 come again. */
        uint64_t all = 0;
        for (size_t k = 0; k < known.count; k++) {
            ck_assert_msg(seen[k] >= 1, "sample %zu came %u times", k, seen[k]);
            all += seen[k];
        }
        ck_assert_uint_eq(all, (known.count + world - 1) / world * world);
        forget_texts(&known);
        remove_files(&set);
    }
    presto_pipeline_free(known.pipeline);
}

START_TEST(ranks_have_disjoint_lines) {
    check_ranks("lines");
}
END_TEST

START_TEST(ranks_have_disjoint_rows) {
    check_ranks("csv");
}
END_TEST

START_TEST(ranks_have_disjoint_objects) {
    check_ranks("jsonl");
}
END_TEST

/* ---- one stream, whatever is known before ---- */

static void random_options(presto_loader_options *options) {
    presto_loader_options_defaults(options);
    options->batch_samples = (size_t)pick(1, 30);
    options->range.epochs = pick(1, 3);
    if (pick(0, 3) == 0)
        options->range.skip_samples = pick(0, 300);
    if (pick(0, 1) == 0) {
        options->order.shuffle = PRESTO_SHUFFLE_BUFFER;
        options->order.shuffle_window = pick(1, 300);
        options->order.seed = pick(0, 99);
    }
}

static void choose_work(presto_loader_options *options) {
    options->threads = (unsigned)pick(0, 5);
    options->memory.block_samples = (size_t)pick(1, 60);
    options->memory.block_bytes = (size_t)pick(1, 1 << pick(0, 20));
    options->memory.prefetch_bytes = (size_t)pick(1, 1 << pick(4, 22));
}

static void check_walks(const char *form) {
    uint64_t seed = start_random();
    static events got, wanted;
    set_up(form, ", max-bytes: 4000");
    for (size_t round = 0; round < presto_check_rounds(25); round++) {
        files set;
        make_texts(&set, &known, 2);
        opened_files counted = {.source = open_all(&set, &known, false, PRESTO_KEEP_NO_INDEX)};
        for (size_t i = 0; i < 3; i++) {
            opened_files walked = {.source =
                                       open_all(&set, &known, true, (presto_keep_index)pick(0, 2))};
            presto_loader_options options;
            random_options(&options);
            options.errors.policy = PRESTO_ON_ERROR_SKIP; /* lines may be too large */
            got.count = wanted.count = got.skipped_count = wanted.skipped_count = 0;
            choose_work(&options);
            (void)run(&counted, options, SIZE_MAX, &wanted, NULL);
            choose_work(&options);
            (void)run(&walked, options, SIZE_MAX, &got, NULL);
            assert_same(&got, &wanted, seed, round);
            presto__source_free(walked.source);
        }
        presto__source_free(counted.source);
        forget_texts(&known);
        remove_files(&set);
    }
    presto_pipeline_free(known.pipeline);
}

START_TEST(lines_that_are_found_on_the_way_are_those_that_are_counted) {
    check_walks("lines");
}
END_TEST

START_TEST(rows_that_are_found_on_the_way_are_those_that_are_counted) {
    check_walks("csv");
}
END_TEST

START_TEST(objects_that_are_found_on_the_way_are_those_that_are_counted) {
    check_walks("jsonl");
}
END_TEST

static void check_stops(const char *form) {
    uint64_t seed = start_random();
    static events got, wanted;
    set_up(form, "");
    for (size_t round = 0; round < presto_check_rounds(12); round++) {
        files set;
        make_texts(&set, &known, 2);
        opened_files counted = {.source = open_all(&set, &known, false, PRESTO_KEEP_NO_INDEX)};
        presto_buffer state = {0};
        presto_loader_options options;
        random_options(&options);
        options.range.skip_samples = 0;
        got.count = wanted.count = got.skipped_count = wanted.skipped_count = 0;
        choose_work(&options);
        (void)run(&counted, options, SIZE_MAX, &wanted, NULL);
        for (bool goes_on = true; goes_on;) {
            opened_files walked = {
                .source = open_all(&set, &known, pick(0, 3) > 0, PRESTO_KEEP_NO_INDEX)};
            presto_loader_options piece = options;
            presto_buffer next = {0};
            choose_work(&piece);
            piece.range.state = presto_buffer_span(&state);
            goes_on = run(&walked, piece, (size_t)pick(1, 40), &got, &next);
            ck_assert_status(got.end.status, PRESTO_OK, &got.end);
            presto_buffer_done(&state);
            state = next;
            presto__source_free(walked.source);
        }
        assert_same(&got, &wanted, seed, round);
        presto_buffer_done(&state);
        presto__source_free(counted.source);
        forget_texts(&known);
        remove_files(&set);
    }
    presto_pipeline_free(known.pipeline);
}

START_TEST(a_chain_of_stops_gives_the_lines_of_one_run) {
    check_stops("lines");
}
END_TEST

START_TEST(a_chain_of_stops_gives_the_rows_of_one_run) {
    check_stops("csv");
}
END_TEST

START_TEST(a_chain_of_stops_gives_the_objects_of_one_run) {
    check_stops("jsonl");
}
END_TEST

/* ---- indexes ---- */

static void write_plain(files *set, const char *form, const char *text) {
    const int plain[] = {0};
    name_files(set, 1, plain, form);
    presto_check_write_file(set->paths[0], presto_span_of_text(text));
}

/* Many lines, so that there are several marks. */
static void write_many(files *set, size_t lines) {
    presto_buffer bytes = {0};
    const int plain[] = {0};
    name_files(set, 1, plain, "lines");
    forget_texts(&known);
    for (size_t i = 0; i < lines; i++) {
        char text[64];
        int count = snprintf(text, sizeof text, "line %zu of the file, %zu", i, i * 7919 % 1000);
        put(&bytes, text, (size_t)count);
        put_text(&bytes, "\n");
        presto_buffer one = {0};
        put(&one, text, (size_t)count);
        know(&known, &one);
        presto_buffer_done(&one);
    }
    presto_check_write_file(set->paths[0], presto_buffer_span(&bytes));
    presto_buffer_done(&bytes);
}

static void check_full(presto_source *source) {
    static unsigned seen[MOST_TEXTS];
    presto_loader_options options;
    presto_loader_options_defaults(&options);
    options.order.shuffle = PRESTO_SHUFFLE_FULL;
    memset(seen, 0, sizeof seen);
    count_samples(source, &options, seen);
    for (size_t k = 0; k < known.count; k++)
        ck_assert_uint_eq(seen[k], 1);
}

static bool is_from_index(const presto_source *source) {
    return presto__lines_of(source)->texts[0].is_from_index;
}

START_TEST(an_index_is_kept_used_and_left_when_the_file_changes) {
    files set;
    set_up("lines", "");
    for (int keep = PRESTO_KEEP_INDEX_BESIDE; keep <= PRESTO_KEEP_INDEX_APART; keep++) {
        write_many(&set, 3000);
        presto_source *source = open_all(&set, &known, false, (presto_keep_index)keep);
        ck_assert(!is_from_index(source));
        presto__source_free(source);
        source = open_all(&set, &known, false, (presto_keep_index)keep);
        ck_assert(is_from_index(source));
        ck_assert_uint_eq(presto_source_count(source), 3000);
        check_full(source);
        presto__source_free(source);
        /* Of the same size, and with other bytes at its end. */
        FILE *file = fopen(set.paths[0], "r+");
        ck_assert_int_eq(fseek(file, -3, SEEK_END), 0);
        fputs("\nX\n", file);
        fclose(file);
        source = open_all(&set, &known, false, (presto_keep_index)keep);
        ck_assert(!is_from_index(source));
        ck_assert_uint_eq(presto_source_count(source), 3001);
        presto__source_free(source);
        remove_files(&set);
    }
    forget_texts(&known);
    presto_pipeline_free(known.pipeline);
}
END_TEST

START_TEST(each_bit_of_an_index_is_checked) {
    files set;
    char path[320];
    size_t bytes;
    set_up("lines", "");
    write_many(&set, 1200);
    presto__source_free(open_all(&set, &known, false, PRESTO_KEEP_INDEX_BESIDE));
    snprintf(path, sizeof path, "%s.index", set.paths[0]);
    uint8_t *index = presto_check_read_file(path, &bytes);
    presto__waymarks_facts facts = {0};
    presto__waymarks marks;
    presto_source *source = open_all(&set, &known, true, PRESTO_KEEP_NO_INDEX);
    facts.data_bytes = presto__lines_of(source)->files.entries[0].bytes;
    presto__source_free(source);
    presto__waymarks_facts found = facts;
    ck_assert_ok(presto__waymarks_parse(presto_span_of(index, bytes), &found, &marks, &err), &err);
    ck_assert_uint_eq(found.records, 1200);
    ck_assert_uint_gt(marks.count, 2);
    presto__waymarks_done(&marks);
    for (size_t bit = 0; bit < 8 * bytes; bit++) {
        index[bit / 8] ^= (uint8_t)(1 << bit % 8);
        found = facts;
        presto_status status =
            presto__waymarks_parse(presto_span_of(index, bytes), &found, &marks, &err);
        ck_assert_msg(status != PRESTO_OK, "bit %zu", bit);
        index[bit / 8] ^= (uint8_t)(1 << bit % 8);
    }
    for (size_t cut = 0; cut < bytes; cut++) {
        found = facts;
        ck_assert_int_ne(presto__waymarks_parse(presto_span_of(index, cut), &found, &marks, &err),
                         PRESTO_OK);
    }
    free(index);
    tear_down(&set);
}
END_TEST

START_TEST(a_file_that_changes_beneath_its_index_is_no_other_line) {
    files set;
    set_up("lines", "");
    write_many(&set, 3000);
    presto_source *source = open_all(&set, &known, false, PRESTO_KEEP_NO_INDEX);
    /* In the middle, where no place of an index is looked at: lines become longer and shorter. */
    FILE *file = fopen(set.paths[0], "r+");
    ck_assert_int_eq(fseek(file, 20000, SEEK_SET), 0);
    for (int i = 0; i < 30000; i++)
        fputc('x', file);
    fclose(file);
    presto_loader_options options;
    presto_loader *loader;
    presto_batch *batch;
    presto_status status;
    presto_loader_options_defaults(&options);
    options.threads = 0;
    options.order.shuffle = PRESTO_SHUFFLE_FULL;
    ck_assert_ok(presto__loader_open(source, NULL, &options, &loader, &err), &err);
    while ((status = presto_loader_next(loader, &batch, &err)) == PRESTO_OK)
        presto_batch_release(batch);
    ck_assert_int_lt(status, 0);
    ck_assert_ptr_nonnull(strstr(err.message, "has changed"));
    presto_loader_free(loader);
    presto__source_free(source);
    tear_down(&set);
}
END_TEST

/* ---- damage ---- */

/* Read all, skipping what fails; returns what failed first. */
static presto_error read_bad(const files *set, bool count_later, size_t *samples_out,
                             uint64_t *skipped_out) {
    presto_source *source = open_all(set, &known, count_later, PRESTO_KEEP_NO_INDEX);
    presto_loader_options options;
    presto_loader *loader;
    presto_batch *batch;
    presto_status status;
    skips noted;
    presto_loader_options_defaults(&options);
    skip_and_note(&options, 50, &noted);
    options.threads = 2;
    *samples_out = 0;
    ck_assert_ok(presto__loader_open(source, NULL, &options, &loader, &err), &err);
    while ((status = presto_loader_next(loader, &batch, &err)) == PRESTO_OK) {
        *samples_out += batch->rows;
        presto_batch_release(batch);
    }
    ck_assert_status(status, PRESTO_END, &err);
    presto_loader_free(loader);
    presto__source_free(source);
    *skipped_out = noted.count;
    return noted.last;
}

START_TEST(a_byte_that_is_no_utf8_is_named_with_its_line) {
    files set;
    size_t samples;
    uint64_t skipped;
    set_up("lines", "");
    write_plain(&set, "lines", "one\ntwo \xe9t\xe9\n\nfour\n");
    for (int later = 0; later < 2; later++) {
        presto_error why = read_bad(&set, later == 1, &samples, &skipped);
        ck_assert_uint_eq(samples, 3);
        ck_assert_uint_eq(skipped, 1);
        ck_assert_int_eq(why.status, PRESTO_ERR_CORRUPT);
        ck_assert_uint_eq(why.offset, 8);
        ck_assert_uint_eq(why.record, 1);
        ck_assert_str_eq(why.file, set.paths[0]);
        ck_assert_ptr_nonnull(strstr(why.message, "line 2: no UTF-8: the byte is 0xe9"));
    }
    tear_down(&set);
}
END_TEST

START_TEST(a_line_that_is_too_large_fails_alone) {
    files set;
    size_t samples;
    uint64_t skipped;
    const int plain[] = {0};
    presto_buffer bytes = {0};
    set_up("lines", ", max-bytes: 1000");
    name_files(&set, 1, plain, "lines");
    put_text(&bytes, "first\n");
    for (size_t i = 0; i < 3000000; i++)
        put_text(&bytes, "y");
    put_text(&bytes, "\nlast");
    presto_check_write_file(set.paths[0], presto_buffer_span(&bytes));
    presto_buffer_done(&bytes);
    for (int later = 0; later < 2; later++) {
        presto_error why = read_bad(&set, later == 1, &samples, &skipped);
        ck_assert_uint_eq(samples, 2);
        ck_assert_uint_eq(skipped, 1);
        ck_assert_int_eq(why.status, PRESTO_ERR_LIMIT);
        ck_assert_uint_eq(why.offset, 6);
        ck_assert_uint_eq(why.record, 1);
        ck_assert_ptr_nonnull(strstr(why.message, "line 2: "));
        ck_assert_ptr_nonnull(strstr(why.message, "max-bytes"));
    }
    tear_down(&set);
}
END_TEST

START_TEST(lines_before_damage_in_a_packed_file_are_read) {
    set_up("lines", "");
    for (int packing = 1; packing <= 2; packing++) {
        files set;
        size_t samples, bytes;
        uint64_t skipped;
        name_files(&set, 1, &packing, "lines");
        presto_buffer text = {0};
        for (size_t i = 0; i < 1000; i++) {
            char line[32];
            snprintf(line, sizeof line, "line %zu\n", i);
            put_text(&text, line);
        }
        pack_file(set.paths[0], presto_buffer_span(&text), packing == 1 ? "gzip" : "zstd");
        presto_buffer_done(&text);
        uint8_t *packed = presto_check_read_file(set.paths[0], &bytes);
        presto_check_write_file(set.paths[0], presto_span_of(packed, bytes - 20));
        free(packed);
        for (int later = 0; later < 2; later++) {
            presto_error why = read_bad(&set, later == 1, &samples, &skipped);
            ck_assert_uint_ge(samples, 400);
            ck_assert_uint_lt(samples, 1000);
            ck_assert_uint_eq(skipped, 1);
            ck_assert_int_eq(why.status, PRESTO_ERR_TRUNCATED);
            ck_assert_uint_eq(why.record, samples);
            ck_assert_str_eq(why.file, set.paths[0]);
            ck_assert_ptr_nonnull(strstr(why.message, packing == 1 ? "gzip" : "zstd"));
        }
        remove_files(&set);
    }
    presto_pipeline_free(known.pipeline);
}
END_TEST

/* Larger than what is read at once: a read that fails leaves the window as it was, and the next one goes on. */
START_TEST(a_packed_text_goes_on_after_a_read_that_failed) {
    set_up("lines", "");
    for (int packing = 1; packing <= 2; packing++) {
        files set;
        name_files(&set, 1, &packing, "lines");
        presto_buffer text = {0};
        for (size_t i = 0; i < 60000; i++) {
            char line[32];
            snprintf(line, sizeof line, "%016jx\n", (uintmax_t)pick(0, UINT64_MAX - 1));
            put_text(&text, line);
        }
        pack_file(set.paths[0], presto_buffer_span(&text), packing == 1 ? "gzip" : "zstd");
        long reads = 0;
        bool has_failed = true;
        for (; has_failed; reads++) {
            presto__object object;
            presto__object_info info;
            presto__text_window window;
            ck_assert_ok(presto__object_open(set.paths[0], &object, &info, &err), &err);
            ck_assert_ok(presto__text_window_open(
                             &window, object, set.paths[0],
                             packing == 1 ? PRESTO__PACKED_GZIP : PRESTO__PACKED_ZSTD, &err),
                         &err);
            faults_arm(FAULT_READ, reads);
            unsigned failures = 0;
            while (!window.is_all) {
                size_t before = presto__text_window_view(&window).bytes;
                if (presto__text_window_fill(&window, 1, &err) < 0) {
                    ck_assert_uint_eq(presto__text_window_view(&window).bytes, before);
                    failures++;
                }
            }
            has_failed = faults_disarm();
            ck_assert_uint_eq(failures, has_failed);
            ck_assert_int_ge(window.damage.status, 0);
            presto_span view = presto__text_window_view(&window);
            ck_assert_uint_eq(view.bytes, text.bytes);
            ck_assert_mem_eq(view.data, text.data, text.bytes);
            presto__text_window_done(&window);
            presto__object_close(&object);
        }
        ck_assert_int_gt(reads, 3);
        presto_buffer_done(&text);
        remove_files(&set);
    }
    presto_pipeline_free(known.pipeline);
}
END_TEST

static void check_refused(const char *form, const char *options, presto_span bytes,
                          presto_status status, const char *message) {
    files set;
    const int plain[] = {0};
    presto_source *source;
    set_up(form, options);
    name_files(&set, 1, plain, form);
    presto_check_write_file(set.paths[0], bytes);
    ck_assert_status(open_texts(&set, &known, NULL, &source, &err), status, &err);
    ck_assert_msg(strstr(err.message, message) != NULL, "%s", err.message);
    ck_assert_str_eq(err.file, set.paths[0]);
    tear_down(&set);
}

START_TEST(what_is_no_text_is_named) {
    static const uint8_t png[64] = {0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n'};
    check_refused("lines", "", presto_span_of(png, sizeof png), PRESTO_ERR_CORRUPT, "a PNG file");
    check_refused("lines", "",
                  presto_span_of("\xff\xfe"
                                 "a\0b\0",
                                 6),
                  PRESTO_ERR_CORRUPT, "UTF-16");
}
END_TEST

START_TEST(the_end_of_a_walk_is_known_with_its_last_line) {
    files set;
    presto_loader_options options;
    presto_loader *loader;
    presto_batch *batch;
    set_up("lines", "");
    write_many(&set, 100);
    presto_source *source = open_all(&set, &known, true, PRESTO_KEEP_NO_INDEX);
    ck_assert_uint_eq(presto_source_count(source), PRESTO_COUNT_UNKNOWN);
    presto_loader_options_defaults(&options);
    options.threads = 0;
    options.batch_samples = options.memory.block_samples = 10;
    ck_assert_ok(presto__loader_open(source, NULL, &options, &loader, &err), &err);
    for (size_t i = 0; i < 10; i++) {
        ck_assert_uint_eq(presto_source_count(source), PRESTO_COUNT_UNKNOWN);
        ck_assert_ok(presto_loader_next(loader, &batch, &err), &err);
        presto_batch_release(batch);
    }
    ck_assert_uint_eq(presto_source_count(source), 100);
    presto_loader_free(loader);
    presto__source_free(source);
    tear_down(&set);
}
END_TEST

int main(void) {
    const TTest *const tests[] = {
        each_line_comes_once_in_every_order,
        each_row_comes_once_in_every_order,
        each_object_comes_once_in_every_order,
        ranks_have_disjoint_lines,
        ranks_have_disjoint_rows,
        ranks_have_disjoint_objects,
        lines_that_are_found_on_the_way_are_those_that_are_counted,
        rows_that_are_found_on_the_way_are_those_that_are_counted,
        objects_that_are_found_on_the_way_are_those_that_are_counted,
        a_chain_of_stops_gives_the_lines_of_one_run,
        a_chain_of_stops_gives_the_rows_of_one_run,
        a_chain_of_stops_gives_the_objects_of_one_run,
        an_index_is_kept_used_and_left_when_the_file_changes,
        each_bit_of_an_index_is_checked,
        a_file_that_changes_beneath_its_index_is_no_other_line,
        a_byte_that_is_no_utf8_is_named_with_its_line,
        a_line_that_is_too_large_fails_alone,
        lines_before_damage_in_a_packed_file_are_read,
        a_packed_text_goes_on_after_a_read_that_failed,
        what_is_no_text_is_named,
        the_end_of_a_walk_is_known_with_its_last_line,
    };
    return presto_check_main("source_lines", tests, sizeof tests / sizeof tests[0], 120);
}
