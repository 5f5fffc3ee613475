/* SPDX-License-Identifier: Apache-2.0 */
/* The source of files: what is found, in which order, with which labels; and what is refused. */
#define _XOPEN_SOURCE 700
#include "folder_check.h"

#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include <presto/loader.h>

static char *dir;

static void set_up(void) {
    dir = presto_check_temp_dir();
}

static void tear_down(void) {
    presto_check_remove_tree(dir);
    free(dir);
}

static char *at(const char *name) {
    return path_in(dir, name);
}

static void make_file(const char *name) {
    char *path = at(name);
    for (char *slash = path + strlen(dir) + 1; (slash = strchr(slash, '/')) != NULL; slash++) {
        *slash = '\0';
        mkdir(path, 0777);
        *slash = '/';
    }
    presto_check_write_file(path, presto_span_of_text(name));
}

static presto_pipeline *pipeline_of(const char *label) {
    char text[1200];
    snprintf(text, sizeof text,
             "name: t\nsource: {type: files, match: ['*.a', '*.b'], label: '%s', feature: body}\n"
             "steps:\n  - {step: read-file, yields: concatenated}\n",
             label);
    presto_pipeline *pipeline;
    presto_error err;
    ck_assert_ok(presto_pipeline_parse(presto_span_of_text(text), "test", &pipeline, &err), &err);
    return pipeline;
}

static presto_status open_at(const char *label, const char *const *paths, size_t count,
                             presto_source **source, presto_error *err) {
    presto_pipeline *pipeline = pipeline_of(label);
    presto_status status = presto_source_open_raw(pipeline, paths, count, source, err);
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
    ck_assert_ok(presto_loader_open(source, NULL, &options, &loader, &err), &err);
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
                             (int)feature->tensor.strings[row].bytes,
                             (const char *)feature->tensor.strings[row].data);
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
    presto_source_free(source);
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
    presto_source_free(source);
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

START_TEST(links_to_folders_are_followed_but_not_in_circles) {
    set_up();
    make_file("x/1.a");
    make_file("y/2.a");
    ck_assert_int_eq(symlink("..", at("x/up")), 0);
    ck_assert_int_eq(symlink("../y", at("x/why")), 0);
    const char *paths[] = {at("x")};
    /* `up` leads to the root's parent, which is no folder above the root as searched: its other
     * branch is taken once. */
    presto_source *source;
    presto_error err;
    ck_assert_ok(open_at("none", paths, 1, &source, &err), &err);
    char *text = listing(source);
    ck_assert_ptr_nonnull(strstr(text, "why/2.a"));
    ck_assert_uint_lt(presto_source_count(source), 8);
    free(text);
    presto_source_free(source);
    tear_down();
}
END_TEST

START_TEST(labels_from_a_file_must_name_exactly_the_files_found) {
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
    presto_check_write_file(at("labels.csv"), presto_span_of_text("s/2.a,1\ns/1.a,2\ns/3.a,4\n"));
    ck_assert_status(open_at(label, paths, 1, &source, &err), PRESTO_ERR_SYNTAX, &err);
    ck_assert_str_eq(err.file, at("labels.csv"));
    ck_assert_ptr_nonnull(strstr(err.message, "line 3: s/3.a"));
    unlink(at("labels.csv"));
    ck_assert_status(open_at(label, paths, 1, &source, &err), PRESTO_ERR_IO, &err);
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
    presto_source_truncate(source, 9);
    ck_assert_uint_eq(presto_source_count(source), 3);
    presto_source_truncate(source, 2);
    char *text = listing(source);
    ck_assert_str_eq(text, "1.a 2.a");
    ck_assert_ok(presto_source_drop_cache(source, &err), &err);
    free(text);
    presto_source_free(source);
    tear_down();
}
END_TEST

typedef struct left_out {
    uint64_t samples[16];
    char files[16][PRESTO_ERROR_FILE_BYTES];
    presto_status statuses[16];
    size_t count;
} left_out;

static void note(void *user, uint64_t epoch, uint64_t sample, const presto_error *err) {
    left_out *noted = user;
    ck_assert_uint_eq(epoch, noted->count / 3);
    noted->samples[noted->count] = sample;
    noted->statuses[noted->count] = err->status;
    snprintf(noted->files[noted->count++], PRESTO_ERROR_FILE_BYTES, "%s", err->file);
}

START_TEST(files_that_cannot_be_read_are_samples_that_can_be_left_out) {
    set_up();
    make_file("1.a");
    make_file("3.a");
    make_file("5.a");
    make_file("6.a");
    ck_assert_int_eq(symlink("nowhere", at("2.a")), 0);
    ck_assert_int_eq(symlink("4.a", at("4.a")), 0);      /* a circle */
    ck_assert_int_eq(symlink("nowhere", at("link")), 0); /* no sample */
    const char *paths[] = {dir};
    presto_error err;
    presto_pipeline *pipeline = pipeline_of("none");
    presto_source *source;
    presto_plan *plan;
    ck_assert_ok(presto_source_open_raw(pipeline, paths, 1, &source, &err), &err);
    ck_assert_uint_eq(presto_source_count(source), 6);
    ck_assert_ok(
        presto_plan_new(pipeline, 0, 1, &presto_pipeline_source(pipeline)->output, &plan, &err),
        &err);
    ck_assert_int_eq(unlink(at("5.a")), 0); /* gone since it was listed */
    for (unsigned threads = 0; threads < 3; threads++) {
        left_out noted = {.count = 0};
        presto_loader_options options;
        presto_loader_options_defaults(&options);
        options.threads = threads;
        options.epochs = 2;
        presto_loader *loader;
        presto_batch *batch;
        ck_assert_ok(presto_loader_open(source, plan, &options, &loader, &err), &err);
        ck_assert_ok(presto_loader_next(loader, &batch, &err), &err);
        presto_batch_release(batch);
        ck_assert_status(presto_loader_next(loader, &batch, &err), PRESTO_ERR_IO, &err);
        ck_assert_str_eq(err.file, at("2.a"));
        presto_loader_free(loader);

        options.on_error = PRESTO_ON_ERROR_SKIP;
        options.on_skip = note;
        options.on_skip_user = &noted;
        presto_status status;
        uint64_t sum = 0;
        ck_assert_ok(presto_loader_open(source, plan, &options, &loader, &err), &err);
        while ((status = presto_loader_next(loader, &batch, &err)) == PRESTO_OK) {
            sum = sum * 10 + batch->sample_numbers[0];
            presto_batch_release(batch);
        }
        ck_assert_status(status, PRESTO_END, &err);
        ck_assert_uint_eq(sum, 25025);
        ck_assert_uint_eq(noted.count, 6);
        for (size_t i = 0; i < 6; i++) {
            static const char *const names[] = {"2.a", "4.a", "5.a"};
            ck_assert_uint_eq(noted.samples[i], 1 + i % 3 + (i % 3 > 0));
            ck_assert_str_eq(noted.files[i], at(names[i % 3]));
            ck_assert_int_eq(noted.statuses[i], PRESTO_ERR_IO);
        }
        presto_loader_free(loader);
    }
    ck_assert_ok(presto_source_drop_cache(source, &err), &err);
    presto_plan_free(plan);
    presto_source_free(source);
    presto_pipeline_free(pipeline);
    tear_down();
}
END_TEST

int main(void) {
    const TTest *const tests[] = {
        files_come_sorted_by_relative_path_and_hidden_ones_not_at_all,
        labels_are_positions_of_distinct_parent_folders,
        several_roots_are_taken_in_the_order_given_and_files_by_name,
        links_to_folders_are_followed_but_not_in_circles,
        labels_from_a_file_must_name_exactly_the_files_found,
        nothing_to_read_is_an_error_that_says_what_was_looked_for,
        a_truncated_source_ends_early,
        files_that_cannot_be_read_are_samples_that_can_be_left_out,
    };
    return presto_check_main("source_files", tests, sizeof tests / sizeof tests[0], 60);
}
