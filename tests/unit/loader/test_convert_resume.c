/* SPDX-License-Identifier: Apache-2.0 */
/* A conversion that ended early, was stopped or was killed goes on to the same bytes. */
#define _XOPEN_SOURCE 700
#include <dirent.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "../../../loader/loader_internal.h"
#include "convert_check.h"

/* Stops after so many samples. */
static bool stop_early(void *user, const presto_progress *progress) {
    return progress->samples_done < *(const uint64_t *)user;
}

START_TEST(an_interrupted_conversion_resumes_to_the_same_bytes) {
    set_up();
    presto_convert_options options = defaults("resized", "zlib:1", 7, 2);
    presto_convert_result result;
    presto_error err;
    ck_assert_ok(convert("photos", "whole", &options, &result, &err), &err);
    uint32_t wanted = digest_folder("whole");

    /* A file of the last class is damaged: the conversion fails there, and goes on once it is
     * mended. */
    presto_source *source;
    const char *paths[] = {at("photos")};
    ck_assert_ok(presto__source_open_raw(pipeline, paths, 1, &source, &err), &err);
    presto__source_free(source);
    options.resume = true;
    struct dirent **classes, **files;
    int class_count = scandir(at("photos"), &classes, NULL, alphasort);
    char last[1000];
    snprintf(last, sizeof last, "%s/%s", at("photos"), classes[class_count - 1]->d_name);
    int file_count = scandir(last, &files, NULL, alphasort);
    size_t used = strlen(last);
    snprintf(last + used, sizeof last - used, "/%s", files[file_count - 2]->d_name);
    size_t bytes;
    uint8_t *content = presto_check_read_file(last, &bytes);
    uint8_t *broken = malloc(bytes);
    memset(broken, 0, bytes);
    presto_check_write_file(last, presto_span_of(broken, bytes));
    ck_assert_int_lt(convert("photos", "out", &options, &result, &err), 0);
    ck_assert_str_eq(err.file, last);
    ck_assert_int_ne(access(at("out/dataset.json"), F_OK), 0);
    ck_assert_int_eq(access(at("out/data-00000-of-00007.tfrecord"), F_OK), 0);

    /* Without being asked to resume, or with other parameters, it is left alone. */
    options.resume = false;
    ck_assert_status(convert("photos", "out", &options, &result, &err), PRESTO_ERR_ARGUMENT, &err);
    options.resume = true;
    options.up_to = "decoded";
    ck_assert_status(convert("photos", "out", &options, &result, &err), PRESTO_ERR_ARGUMENT, &err);
    ck_assert_ptr_nonnull(strstr(err.message, "stored"));
    options.up_to = "resized";

    presto_check_write_file(last, presto_span_of(content, bytes));
    struct stat before, after;
    ck_assert_int_eq(stat(at("out/data-00000-of-00007.tfrecord"), &before), 0);
    ck_assert_ok(convert("photos", "out", &options, &result, &err), &err);
    ck_assert_int_eq(stat(at("out/data-00000-of-00007.tfrecord"), &after), 0);
    ck_assert_uint_eq(before.st_ino, after.st_ino);
    ck_assert_uint_eq(result.samples, PHOTOS);
    ck_assert_uint_eq(digest_folder("out"), wanted);
    free(content);
    free(broken);
    for (int i = 0; i < class_count; i++)
        free(classes[i]);
    for (int i = 0; i < file_count; i++)
        free(files[i]);
    free(classes);
    free(files);
    tear_down();
}
END_TEST

START_TEST(a_conversion_that_is_stopped_or_killed_resumes_to_the_same_bytes) {
    set_up();
    presto_convert_options options = defaults("decoded", "zlib:6", 10, 2);
    presto_convert_result result;
    presto_error err;
    ck_assert_ok(convert("photos", "whole", &options, &result, &err), &err);
    uint32_t wanted = digest_folder("whole");
    options.resume = true;
    uint64_t limit = 15;
    options.on_progress = stop_early;
    options.on_progress_user = &limit;
    presto_status status = convert("photos", "out", &options, &result, &err);
    if (status < 0)
        ck_assert_status(status, PRESTO_ERR_STOPPED, &err);
    options.on_progress = NULL;
    uint64_t seed = presto_check_seed();
    for (int round = 0; round < 12; round++) {
        if (access(at("out/dataset.json"), F_OK) == 0)
            break;
        pid_t child = fork();
        if (child == 0) {
            (void)convert("photos", "out", &options, &result, &err);
            _exit(0);
        }
        struct timespec pause = {.tv_nsec = (long)((seed >> round) % 12000) * 1000};
        nanosleep(&pause, NULL);
        kill(child, SIGKILL);
        waitpid(child, NULL, 0);
    }
    if (access(at("out/dataset.json"), F_OK) != 0)
        ck_assert_ok(convert("photos", "out", &options, &result, &err), &err);
    /* Killed behind dataset.json, it may leave these two; nobody minds them. */
    unlink(at("out/.progress.json"));
    unlink(at("out/.presto.lock"));
    ck_assert_uint_eq(digest_folder("out"), wanted);
    tear_down();
}
END_TEST

int main(void) {
    const TTest *const tests[] = {
        an_interrupted_conversion_resumes_to_the_same_bytes,
        a_conversion_that_is_stopped_or_killed_resumes_to_the_same_bytes,
    };
    return presto_check_main("convert_resume", tests, sizeof tests / sizeof tests[0], 240);
}
