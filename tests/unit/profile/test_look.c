/* SPDX-License-Identifier: Apache-2.0 */
/* Cold epochs of a look read from the storage, and cached ones do not. */
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "presto_check.h"
#include "trial/trial_internal.h"

/* A look beside other programs is made again, up to three times. */
enum { FILES = 16, FILE_BYTES = 65536, MADE_MOST = 4 };

/* A dataset of FILES records, and what a sweep would look at it with. */
typedef struct place {
    char *dir;
    char source[600], work[600];
    presto_pipeline *pipeline;
    presto_sweep_options options;
    presto__runner runner;
    presto__trial trial;
    const char *paths[1];
} place;

static void set_up(place *at) {
    *at = (place){.dir = presto_check_temp_dir()};
    snprintf(at->source, sizeof at->source, "%s/source", at->dir);
    snprintf(at->work, sizeof at->work, "%s/work", at->dir);
    ck_assert_int_eq(mkdir(at->source, 0777), 0);
    static uint8_t content[FILE_BYTES];
    for (int i = 0; i < FILES; i++) {
        char path[700];
        snprintf(path, sizeof path, "%s/%02d.bin", at->source, i);
        presto_check_write_file(path, (presto_span){content, sizeof content});
    }
    static const char yaml[] = "name: bytes\n"
                               "source: {type: files, match: ['*.bin']}\n"
                               "steps:\n"
                               "  - {step: read-file, yields: concatenated}\n";
    presto_error err;
    ck_assert_ok(
        presto_pipeline_parse(presto_span_of_text(yaml), "bytes", NULL, &at->pipeline, &err), &err);
    presto_sweep_options_defaults(&at->options);
    at->options.pipeline = at->pipeline;
    at->options.work_dir = at->work;
    at->paths[0] = at->source;
    ck_assert_ok(presto__runner_init(&at->runner, at->paths, 1, &at->options, &err), &err);
    at->trial.result.strategy =
        (presto_strategy){.stored = "concatenated", .codec = "none", .threads = 2, .shards = 2};
    at->trial.preparations = calloc(1, sizeof *at->trial.preparations);
    ck_assert_ptr_nonnull(at->trial.preparations);
    ck_assert_ok(presto__trial_prepare(&at->runner, &at->trial, &err), &err);
}

static void tear_down(place *at) {
    presto__trial_remove(&at->trial);
    presto__trial_done(&at->trial);
    presto__runner_done(&at->runner);
    presto_pipeline_free(at->pipeline);
    presto_check_remove_tree(at->dir);
    free(at->dir);
}

static double disk_bytes(presto__watch *watch) {
    presto__measure measure;
    presto__watch_stop(watch, watch->start.wall_ns + 1, &measure);
    return measure.disk_read_bytes;
}

/* Not on a file system in memory, nor where the kernel does not tell. */
static bool is_reading_seen(const place *at) {
    char path[700];
    static uint8_t content[FILE_BYTES];
    snprintf(path, sizeof path, "%s/00.bin", at->source);
    int fd = open(path, O_RDONLY);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(fsync(fd), 0);
    presto__watch watch;
    presto__watch_start(&watch);
    (void)posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
    ck_assert_int_eq(read(fd, content, sizeof content), sizeof content);
    close(fd);
    bool is_seen = disk_bytes(&watch) >= FILE_BYTES;
    if (!is_seen)
        printf("what is read from the storage cannot be seen here\n");
    return is_seen;
}

/* From the storage: so often all records. *cold_s: of a cold epoch. */
static double look(place *at, presto__look look, double *cold_s) {
    presto_error err;
    presto__watch watch;
    presto__watch_start(&watch);
    ck_assert_ok(presto__trial_look(&at->runner, &at->trial, &look, &err), &err);
    ck_assert_double_gt(look.cold_s, 0);
    ck_assert_double_gt(look.cached_s, 0);
    *cold_s = look.cold_s * FILES;
    return disk_bytes(&watch) / (FILES * FILE_BYTES);
}

START_TEST(cold_epochs_read_the_storage_and_cached_ones_do_not) {
    place at;
    set_up(&at);
    if (is_reading_seen(&at)) {
        double cold_s;
        /* One cold epoch, and hundreds that are cached. */
        double times = look(&at, (presto__look){FILES, 0, 0.1, .epoch_s = 2e-4}, &cold_s);
        ck_assert_msg(times >= 1 && times < 2 * MADE_MOST, "read %.2f times", times);
        /* Some cold ones first, half as many at least as fit. */
        times = look(&at, (presto__look){FILES, 0.05, 0.1, .epoch_s = 2e-4}, &cold_s);
        ck_assert_msg(times >= 1 + fmin(0.5 * 0.05 / cold_s, 10), "read %.2f times", times);
        /* In loaders of their own. */
        times = look(&at, (presto__look){FILES, 0, 0.1, .epoch_s = 0}, &cold_s);
        ck_assert_msg(times >= 1 && times < 2 * MADE_MOST, "read %.2f times", times);
    }
    tear_down(&at);
}
END_TEST

int main(void) {
    const TTest *const tests[] = {cold_epochs_read_the_storage_and_cached_ones_do_not};
    return presto_check_main("profile/look", tests, sizeof tests / sizeof *tests, 60);
}
