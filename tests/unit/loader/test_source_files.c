/* SPDX-License-Identifier: Apache-2.0 */
/* The source of files: what is found, in which order, with which labels; and what is refused. */
#define _XOPEN_SOURCE 700
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../../../loader/loader_internal.h"
#include "source/files/source_files_internal.h"

#include "files_check.h"

static presto_status open_at(const char *label, const char *const *paths, size_t count,
                             presto_source **source, presto_error *err) {
    presto_pipeline *pipeline = pipeline_of(label);
    presto_status status = presto__source_open_raw(pipeline, paths, count, source, err);
    presto_pipeline_free(pipeline);
    return status;
}

/* "key=label key=label ..." in order of delivery. */
static char *listing(presto_source *source) {
    presto_loader_options options;
    presto_loader_options_defaults(&options);
    options.threads = 0;
    options.batch_samples = 3;
    presto_loader *loader;
    presto_error err;
    ck_assert_ok(presto__loader_open(source, NULL, &options, &loader, &err), &err);
    char *text = calloc(1, 4096);
    presto_batch *batch;
    presto_status status;
    while ((status = presto_loader_next(loader, &batch, &err)) == PRESTO_OK) {
        for (size_t row = 0; row < batch->rows; row++)
            for (size_t i = 0; i < batch->feature_count; i++) {
                const presto_batch_feature *feature = &batch->features[i];
                size_t used = strlen(text);
                if (strcmp(feature->name, "key") == 0)
                    snprintf(text + used, 4096 - used, "%s%.*s", used == 0 ? "" : " ",
                             (int)presto_batch_string(feature, row).bytes,
                             (const char *)presto_batch_string(feature, row).data);
                else if (strcmp(feature->name, "label") == 0)
                    snprintf(text + used, 4096 - used, "=%lld",
                             (long long)((const int64_t *)feature->tensor.data)[row]);
            }
        presto_batch_release(batch);
    }
    ck_assert_status(status, PRESTO_END, &err);
    presto_loader_free(loader);
    return text;
}

static void check_listing(const char *label, const char *const *paths, size_t count,
                          const char *wanted) {
    presto_source *source;
    presto_error err;
    ck_assert_ok(open_at(label, paths, count, &source, &err), &err);
    char *text = listing(source);
    ck_assert_str_eq(text, wanted);
    free(text);
    presto__source_free(source);
}

START_TEST(files_come_sorted_by_relative_path_and_hidden_ones_not_at_all) {
    set_up();
    make_file("z.a");
    make_file("b/2.a");
    make_file("b/10.b");
    make_file("b/skip.txt");
    make_file("b.a");
    make_file(".hidden/x.a");
    make_file("b/.x.a");
    const char *paths[] = {dir};
    check_listing("none", paths, 1, "b.a b/10.b b/2.a z.a");
    tear_down();
}
END_TEST

START_TEST(labels_are_positions_of_distinct_parent_folders) {
    set_up();
    make_file("train/dog/1.a");
    make_file("train/cat/2.a");
    make_file("test/dog/3.a");
    make_file("ape/4.a");
    const char *paths[] = {dir};
    check_listing("parent-folder", paths, 1,
                  "ape/4.a=0 test/dog/3.a=2 train/cat/2.a=1 train/dog/1.a=2");
    presto_source *source;
    presto_error err;
    ck_assert_ok(open_at("parent-folder", paths, 1, &source, &err), &err);
    size_t count;
    const char *const *names = presto_source_label_names(source, &count);
    ck_assert_uint_eq(count, 3);
    ck_assert_str_eq(names[0], "ape");
    ck_assert_str_eq(names[2], "dog");
    ck_assert_str_eq(presto_source_main_feature(source), "body");
    ck_assert_uint_eq(presto_source_bytes(source), 7 + 12 + 13 + 13);
    presto__source_free(source);
    tear_down();
}
END_TEST

START_TEST(several_roots_are_taken_in_the_order_given_and_files_by_name) {
    set_up();
    make_file("one/1.a");
    make_file("two/2.a");
    make_file("odd.txt");
    const char *paths[] = {at("two/"), at("odd.txt"), at("one")};
    /* The folder of odd.txt is the temporary one, "presto-test-...", which sorts between the
     * others. */
    const char *wanted = "2.a=2 odd.txt=1 1.a=0";
    check_listing("parent-folder", paths, 3, wanted);
    tear_down();
}
END_TEST

START_TEST(links_to_folders_are_followed_to_each_folder_once) {
    set_up();
    make_file("x/1.a");
    make_file("y/2.a");
    ck_assert_int_eq(symlink("..", at("x/up")), 0);
    ck_assert_int_eq(symlink("../y", at("x/why")), 0);
    const char *paths[] = {at("x")};
    /* `up` comes first and leads to a folder that holds y; x is not entered again. */
    check_listing("none", paths, 1, "1.a up/y/2.a");
    tear_down();
}
END_TEST

/* The source at `dir` has a note that holds `wanted`; NULL: it has none at all. */
static void check_note(const char *label, const char *wanted) {
    const char *paths[] = {dir};
    presto_source *source;
    presto_error err;
    ck_assert_ok(open_at(label, paths, 1, &source, &err), &err);
    size_t count;
    size_t found = 0;
    const char *const *notes = presto_source_notes(source, &count);
    for (size_t i = 0; i < count && wanted != NULL; i++)
        found += strstr(notes[i], wanted) != NULL;
    ck_assert_msg(wanted == NULL ? count == 0 : found == 1, "%zu notes, the last: %s", count,
                  count > 0 ? notes[count - 1] : "");
    presto__source_free(source);
}

START_TEST(files_left_out_are_told_by_their_kinds) {
    set_up();
    make_file("1.a");
    check_note("none", NULL);
    make_file("2.A");
    make_file("x/3.txt");
    make_file("x/4.TXT");
    make_file("x/README");
    make_file("5.tar.gz");
    make_file("6.\x1b[31m");
    make_file(".hidden");
    ck_assert_int_eq(mkfifo(at("7.b"), 0666), 0);
    const char *paths[] = {dir};
    check_listing("none", paths, 1, "1.a 2.A");
    check_note("none", "6 files left out: 2 .txt, 2 without ending, 1 .gz, 1 no regular file");
    tear_down();
}
END_TEST

START_TEST(the_outermost_folder_may_be_the_label) {
    set_up();
    make_file("cat/1.a");
    make_file("cat/extra/2021/2.a");
    make_file("dog/extra/2021/3.a");
    const char *paths[] = {dir};
    check_listing("parent-folder", paths, 1, "cat/1.a=1 cat/extra/2021/2.a=0 dog/extra/2021/3.a=0");
    check_note("parent-folder", "files lie 1 to 3 folders deep, and the innermost is the label: "
                                "\"cat\" of cat/1.a, \"2021\" of cat/extra/2021/2.a; 'label: "
                                "top-folder' takes the outermost");
    check_listing("top-folder", paths, 1, "cat/1.a=0 cat/extra/2021/2.a=0 dog/extra/2021/3.a=1");
    check_note("top-folder", NULL);
    paths[0] = at("cat");
    check_listing("top-folder", paths, 1, "1.a=0 extra/2021/2.a=1");
    tear_down();
}
END_TEST

START_TEST(labels_from_a_file_must_name_all_files_found) {
    set_up();
    make_file("s/1.a");
    make_file("s/2.a");
    char label[700];
    snprintf(label, sizeof label, "csv:%s", at("labels.csv"));
    const char *paths[] = {dir};
    presto_check_write_file(at("labels.csv"), presto_span_of_text("s/2.a,dog\ns/1.a,cat\n"));
    check_listing(label, paths, 1, "s/1.a=0 s/2.a=1");

    presto_source *source;
    presto_error err;
    presto_check_write_file(at("labels.csv"), presto_span_of_text("s/2.a,dog\n"));
    ck_assert_status(open_at(label, paths, 1, &source, &err), PRESTO_ERR_SYNTAX, &err);
    ck_assert_str_eq(err.file, at("s/1.a"));
    /* Rows of other files are counted in a note. */
    presto_check_write_file(at("labels.csv"), presto_span_of_text("s/2.a,1\ns/1.a,2\ns/3.a,4\n"));
    check_listing(label, paths, 1, "s/1.a=2 s/2.a=1");
    check_note(label, ": 1 of 3 rows names no file of the source, the first in line 3: s/3.a");
    /* Paths are those below the source, or from the label file's folder. */
    paths[0] = at("s");
    check_listing(label, paths, 1, "1.a=2 2.a=1");
    presto_check_write_file(at("labels.csv"), presto_span_of_text("./2.a,1\n1.a,2\n"));
    check_listing(label, paths, 1, "1.a=2 2.a=1");
    paths[0] = dir;
    /* Quotes between tabs that are none are told. */
    presto_check_write_file(at("labels.csv"),
                            presto_span_of_text("s/1.a\t\"Yes\" she said\ns/2.a\tno\n"));
    check_listing(label, paths, 1, "s/1.a=0 s/2.a=1");
    check_note(label,
               "labels.csv: quotes are kept as text, because in line 1 a field begins with one");
    unlink(at("labels.csv"));
    ck_assert_status(open_at(label, paths, 1, &source, &err), PRESTO_ERR_NOT_FOUND, &err);
    tear_down();
}
END_TEST

START_TEST(nothing_to_read_is_an_error_that_says_what_was_looked_for) {
    set_up();
    make_file("x.txt");
    const char *paths[] = {dir};
    presto_source *source;
    presto_error err;
    ck_assert_status(open_at("none", paths, 1, &source, &err), PRESTO_ERR_NOT_FOUND, &err);
    ck_assert_ptr_nonnull(strstr(err.message, "*.a, *.b"));
    ck_assert_str_eq(err.file, dir);
    paths[0] = at("missing");
    ck_assert_status(open_at("none", paths, 1, &source, &err), PRESTO_ERR_NOT_FOUND, &err);
    ck_assert_str_eq(err.file, paths[0]);
    ck_assert_status(open_at("none", paths, 0, &source, &err), PRESTO_ERR_NOT_FOUND, &err);
    tear_down();
}
END_TEST

START_TEST(a_truncated_source_ends_early) {
    set_up();
    make_file("1.a");
    make_file("2.a");
    make_file("3.a");
    const char *paths[] = {dir};
    presto_source *source;
    presto_error err;
    ck_assert_ok(open_at("none", paths, 1, &source, &err), &err);
    presto__source_truncate(source, 9);
    ck_assert_uint_eq(presto_source_count(source), 3);
    presto__source_truncate(source, 2);
    char *text = listing(source);
    ck_assert_str_eq(text, "1.a 2.a");
    ck_assert_ok(presto__source_drop_cache(source, &err), &err);
    free(text);
    presto__source_free(source);
    tear_down();
}
END_TEST

static void identify(const char *const *paths, char text_out[PRESTO_SOURCE_IDENTITY_BYTES]) {
    presto_source *source;
    presto_error err;
    ck_assert_ok(open_at("none", paths, 1, &source, &err), &err);
    ck_assert_ok(presto__source_identify(source, text_out, &err), &err);
    char shorter[PRESTO_SOURCE_IDENTITY_BYTES];
    presto__source_truncate(source, 1);
    ck_assert_ok(presto__source_identify(source, shorter, &err), &err);
    ck_assert_str_eq(shorter, text_out);
    presto__source_free(source);
}

START_TEST(a_source_whose_files_change_is_another_one) {
    set_up();
    make_file("a/1.a");
    make_file("a/2.a");
    const char *paths[] = {dir};
    char before[PRESTO_SOURCE_IDENTITY_BYTES], after[PRESTO_SOURCE_IDENTITY_BYTES], path[512];
    identify(paths, before);
    ck_assert_uint_eq(strlen(before), PRESTO_SOURCE_IDENTITY_BYTES - 1);
    identify(paths, after);
    ck_assert_str_eq(before, after);
    make_file("a/3.a");
    identify(paths, after);
    ck_assert_str_ne(before, after);
    snprintf(path, sizeof path, "%s/a/3.a", dir);
    ck_assert_int_eq(unlink(path), 0);
    identify(paths, after);
    ck_assert_str_eq(before, after);
    snprintf(path, sizeof path, "%s/a/2.a", dir);
    const struct timespec times[2] = {{.tv_sec = 5}, {.tv_sec = 5}};
    ck_assert_int_eq(utimensat(AT_FDCWD, path, times, 0), 0);
    identify(paths, after);
    ck_assert_str_ne(before, after);
    tear_down();
}
END_TEST

START_TEST(pipes_and_sockets_are_no_files) {
    set_up();
    make_file("file.a");
    ck_assert_int_eq(mkfifo(at("pipe.a"), 0666), 0);
    const char *paths[] = {dir};
    check_listing("none", paths, 1, "file.a");
    presto_source *source;
    presto_error err;
    paths[0] = at("pipe.a");
    ck_assert_status(open_at("none", paths, 1, &source, &err), PRESTO_ERR_ARGUMENT, &err);
    char label[700];
    snprintf(label, sizeof label, "csv:%s", at("pipe.a"));
    paths[0] = at("file.a");
    ck_assert_status(open_at(label, paths, 1, &source, &err), PRESTO_ERR_IO, &err);
    ck_assert_str_eq(err.message, "is a named pipe, not a regular file");
    tear_down();
}
END_TEST

int main(void) {
    const TTest *const tests[] = {
        files_come_sorted_by_relative_path_and_hidden_ones_not_at_all,
        labels_are_positions_of_distinct_parent_folders,
        files_left_out_are_told_by_their_kinds,
        the_outermost_folder_may_be_the_label,
        several_roots_are_taken_in_the_order_given_and_files_by_name,
        links_to_folders_are_followed_to_each_folder_once,
        labels_from_a_file_must_name_all_files_found,
        nothing_to_read_is_an_error_that_says_what_was_looked_for,
        a_truncated_source_ends_early,
        pipes_and_sockets_are_no_files,
        a_source_whose_files_change_is_another_one,
    };
    return presto_check_main("source_files", tests, sizeof tests / sizeof tests[0], 60);
}
