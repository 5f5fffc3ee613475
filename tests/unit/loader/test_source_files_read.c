/* SPDX-License-Identifier: Apache-2.0 */
/* The source of files: what is read, and files that cannot be read or have changed. */
#define _XOPEN_SOURCE 700
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../../../loader/loader_internal.h"
#include "../../../steps/pipelines_internal.h"
#include "source/files/source_files_internal.h"

#include "files_check.h"

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
    ck_assert_ok(presto__source_open_raw(pipeline, paths, 1, &source, &err), &err);
    ck_assert_uint_eq(presto_source_count(source), 6);
    presto__plan_options planning = {.struct_bytes = sizeof planning,
                                     .last_step = 1,
                                     .in = &presto_pipeline_source(pipeline)->output};
    ck_assert_ok(presto__plan_new(pipeline, &planning, &plan, &err), &err);
    ck_assert_int_eq(unlink(at("5.a")), 0); /* gone since it was listed */
    for (unsigned threads = 0; threads < 3; threads++) {
        left_out noted = {.count = 0};
        presto_loader_options options;
        presto_loader_options_defaults(&options);
        options.threads = threads;
        options.range.epochs = 2;
        presto_loader *loader;
        presto_batch *batch;
        ck_assert_ok(presto__loader_open(source, plan, &options, &loader, &err), &err);
        ck_assert_ok(presto_loader_next(loader, &batch, &err), &err);
        presto_batch_release(batch);
        ck_assert_status(presto_loader_next(loader, &batch, &err), PRESTO_ERR_NOT_FOUND, &err);
        ck_assert_str_eq(err.file, at("2.a"));
        presto_loader_free(loader);

        options.errors.policy = PRESTO_ON_ERROR_SKIP;
        options.errors.on_skip = note;
        options.errors.on_skip_user = &noted;
        presto_status status;
        uint64_t sum = 0;
        ck_assert_ok(presto__loader_open(source, plan, &options, &loader, &err), &err);
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
            ck_assert_int_eq(noted.statuses[i], i % 3 == 1 ? PRESTO_ERR_IO : PRESTO_ERR_NOT_FOUND);
        }
        presto_loader_free(loader);
    }
    ck_assert_ok(presto__source_drop_cache(source, &err), &err);
    presto__plan_free(plan);
    presto__source_free(source);
    presto_pipeline_free(pipeline);
    tear_down();
}
END_TEST

typedef struct refusal {
    char text[8][PRESTO_ERROR_MESSAGE_BYTES + 300]; /* "NAME: MESSAGE" */
    size_t count;
} refusal;

static void note_message(void *user, uint64_t epoch, uint64_t sample, const presto_error *err) {
    refusal *noted = user;
    (void)epoch, (void)sample;
    const char *slash = strrchr(err->file, '/');
    ck_assert_uint_lt(noted->count, 8);
    snprintf(noted->text[noted->count++], sizeof noted->text[0], "%.256s: %s",
             slash == NULL ? "" : slash + 1, err->message);
}

/* Read all samples of the source, whose steps are read-file; returns how many came. */
static size_t deliver(presto_pipeline *pipeline, presto_source *source, refusal *noted) {
    presto_error err;
    presto_plan *plan;
    presto_loader *loader;
    presto_batch *batch;
    presto_loader_options options;
    presto__plan_options planning = {.struct_bytes = sizeof planning,
                                     .last_step = 1,
                                     .in = &presto_pipeline_source(pipeline)->output};
    ck_assert_ok(presto__plan_new(pipeline, &planning, &plan, &err), &err);
    presto_loader_options_defaults(&options);
    options.errors.policy = PRESTO_ON_ERROR_SKIP;
    options.errors.on_skip = note_message;
    options.errors.on_skip_user = noted;
    ck_assert_ok(presto__loader_open(source, plan, &options, &loader, &err), &err);
    size_t rows = 0;
    presto_status status;
    while ((status = presto_loader_next(loader, &batch, &err)) == PRESTO_OK) {
        rows += batch->rows;
        presto_batch_release(batch);
    }
    ck_assert_status(status, PRESTO_END, &err);
    presto_loader_free(loader);
    presto__plan_free(plan);
    return rows;
}

START_TEST(a_file_that_is_not_as_it_was_listed_is_an_error) {
    static const char *const wanted[] = {
        "cut.a: read-file: has changed since it was listed: it has 2 bytes, not 5",
        "dir.a: read-file: is a folder, not a regular file",
        "gone.a: read-file: cannot open: No such file or directory",
        "long.a: read-file: has changed since it was listed: it has 9 bytes, not 6",
        "other.a: read-file: has changed since it was listed: it was written to",
        "pipe.a: read-file: is a named pipe, not a regular file",
    };
    const struct timespec old[2] = {{.tv_sec = 1000}, {.tv_sec = 1000}};
    set_up();
    make_file("cut.a");
    make_file("dir.a");
    make_file("gone.a");
    make_file("long.a");
    make_file("other.a");
    make_file("pipe.a");
    make_file("same.a");
    const char *paths[] = {dir};
    presto_error err;
    presto_source *source;
    presto_pipeline *pipeline = pipeline_of("none");
    refusal noted = {.count = 0};
    ck_assert_ok(presto__source_open_raw(pipeline, paths, 1, &source, &err), &err);
    ck_assert_int_eq(truncate(at("cut.a"), 2), 0);
    ck_assert_int_eq(unlink(at("dir.a")), 0);
    ck_assert_int_eq(mkdir(at("dir.a"), 0777), 0);
    ck_assert_int_eq(unlink(at("gone.a")), 0);
    presto_check_write_file(at("long.a"), presto_span_of_text("123456789"));
    ck_assert_int_eq(utimensat(AT_FDCWD, at("other.a"), old, 0), 0);
    ck_assert_int_eq(unlink(at("pipe.a")), 0);
    ck_assert_int_eq(mkfifo(at("pipe.a"), 0666), 0);
    ck_assert_uint_eq(deliver(pipeline, source, &noted), 1);
    ck_assert_uint_eq(noted.count, sizeof wanted / sizeof wanted[0]);
    for (size_t i = 0; i < noted.count; i++)
        ck_assert_str_eq(noted.text[i], wanted[i]);
    ck_assert_ok(presto__source_drop_cache(source, &err), &err);
    presto__source_free(source);
    presto_pipeline_free(pipeline);
    tear_down();
}
END_TEST

typedef struct appender {
    char path[700];
    atomic_bool stop;
} appender;

static void *append_on_and_on(void *user) {
    appender *a = user;
    FILE *file = fopen(a->path, "ab");
    ck_assert_ptr_nonnull(file);
    while (!atomic_load(&a->stop)) {
        ck_assert_int_eq(fputc('x', file), 'x');
        ck_assert_int_eq(fflush(file), 0);
    }
    fclose(file);
    return NULL;
}

START_TEST(a_file_that_is_written_to_while_it_is_read_is_an_error) {
    set_up();
    appender a;
    pthread_t thread;
    presto_error err;
    presto_arena arena = {0};
    presto_span bytes;
    atomic_init(&a.stop, false);
    snprintf(a.path, sizeof a.path, "%s", at("x"));
    presto_check_write_file(a.path, presto_span_of_text("0123456789"));
    ck_assert_int_eq(truncate(a.path, 8 << 20), 0);
    ck_assert_int_eq(pthread_create(&thread, NULL, append_on_and_on, &a), 0);
    const presto__file_request request = {.path = a.path, .max_bytes = 1 << 30};
    /* Sooner or later a change happens during a read; mostly at once. */
    while (presto__source_file_read(&request, &arena, &bytes, &err) == PRESTO_OK)
        presto_arena_reset(&arena);
    atomic_store(&a.stop, true);
    ck_assert_int_eq(pthread_join(thread, NULL), 0);
    ck_assert_int_eq(err.status, PRESTO_ERR_IO);
    ck_assert_ptr_nonnull(strstr(err.message, "has changed while it was read"));
    ck_assert_ok(presto__source_file_read(&request, &arena, &bytes, &err), &err);
    ck_assert_uint_gt(bytes.bytes, 8 << 20);
    presto_arena_done(&arena);
    tear_down();
}
END_TEST

START_TEST(a_file_that_ends_before_its_size_is_an_error) {
    const presto__file_request request = {.path = "/sys/kernel/mm/transparent_hugepage/enabled",
                                          .max_bytes = 1 << 20};
    struct stat info;
    if (stat(request.path, &info) != 0 || info.st_size < 1024)
        return; /* skipped: such a file is hard to make here */
    presto_error err;
    presto_arena arena = {0};
    presto_span bytes;
    ck_assert_status(presto__source_file_read(&request, &arena, &bytes, &err), PRESTO_ERR_IO, &err);
    ck_assert_ptr_nonnull(strstr(err.message, "while it was read: it ends before byte"));
    presto_arena_done(&arena);
}
END_TEST

START_TEST(a_file_larger_than_the_limit_is_refused_before_it_is_read) {
    set_up();
    make_file("a.a");
    make_file("huge.a");
    ck_assert_int_eq(truncate(at("huge.a"), (off_t)5 << 30), 0);
    const char *paths[] = {dir};
    presto_error err;
    presto_source *source;
    presto_pipeline *pipeline = pipeline_of("none");
    refusal noted = {.count = 0};
    ck_assert_ok(presto__source_open_raw(pipeline, paths, 1, &source, &err), &err);
    ck_assert_uint_eq(deliver(pipeline, source, &noted), 1);
    ck_assert_uint_eq(noted.count, 1);
    ck_assert_str_eq(noted.text[0], "huge.a: read-file: has 5368709120 bytes, more than the "
                                    "source's max-bytes (536870912)");
    presto__source_free(source);
    presto_pipeline_free(pipeline);
    tear_down();
}
END_TEST

int main(void) {
    const TTest *const tests[] = {
        files_that_cannot_be_read_are_samples_that_can_be_left_out,
        a_file_that_is_not_as_it_was_listed_is_an_error,
        a_file_that_is_written_to_while_it_is_read_is_an_error,
        a_file_that_ends_before_its_size_is_an_error,
        a_file_larger_than_the_limit_is_refused_before_it_is_read,
    };
    return presto_check_main("source_files_read", tests, sizeof tests / sizeof tests[0], 60);
}
