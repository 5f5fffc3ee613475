/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Conversions that end long before their last sample, while the loader's workers are busy:
 * everything that the workers use must still exist. Mainly useful with a sanitizer, and most under
 * tests/chaos/hostile.
 */
#include "loader_check.h"

#define PHOTOS 20
#define COPIES 15 /* of them, so that there are very many samples and shards yet to come */
#define SHARDS 300
#define ROUNDS 10

static char *dir;
static presto_pipeline *pipeline;
static char out[700];
static presto_error err;
static presto_convert_result result;

static void set_up(void) {
    dir = presto_check_temp_dir();
    ck_assert_ok(presto_pipeline_load("cv", NULL, &pipeline, &err), &err);
    char command[1200];
    snprintf(command, sizeof command,
             "%s -n %d -c 1 --width 40 --height 30 -j 0 -o %s/photos >/dev/null 2>&1",
             PRESTO_CORPUS_PROGRAM, PHOTOS, dir);
    ck_assert_int_eq(system(command), 0);
}

static void tear_down(void) {
    presto_pipeline_free(pipeline);
    presto_check_remove_tree(dir);
    free(dir);
}

/* The `round`-th conversion of the photos, many times over. */
static presto_status convert(int round, presto_progress_fn on_progress) {
    char photos[600];
    const char *paths[COPIES];
    snprintf(photos, sizeof photos, "%s/photos", dir);
    for (size_t i = 0; i < COPIES; i++)
        paths[i] = photos;
    presto_convert_options options;
    presto_convert_options_defaults(&options);
    options.up_to = "concatenated";
    options.shards = SHARDS;
    options.threads = 2 + (unsigned)round % 3;
    options.sync = false;
    options.on_progress = on_progress;
    snprintf(out, sizeof out, "%s/out-%d", dir, round);
    options.pipeline = pipeline;
    options.dir = out;
    presto_status status = presto_convert(paths, COPIES, &options, &result, &err);
    presto_check_remove_tree(out);
    return status;
}

static bool stop(void *user, const presto_progress *progress) {
    (void)user, (void)progress;
    return false;
}

START_TEST(a_conversion_stopped_at_once_leaves_its_workers_what_they_use) {
    set_up();
    for (int round = 0; round < ROUNDS; round++)
        ck_assert_status(convert(round, stop), PRESTO_ERR_STOPPED, &err);
    tear_down();
}
END_TEST

/* The folder is removed while shards are made: the next writer that opens a file there fails. */
static bool remove_folder(void *user, const presto_progress *progress) {
    (void)user, (void)progress;
    presto_check_remove_tree(out);
    return true;
}

START_TEST(a_conversion_whose_writers_fail_leaves_its_workers_what_they_use) {
    set_up();
    for (int round = 0; round < ROUNDS; round++)
        ck_assert_int_lt(convert(round, remove_folder), 0);
    tear_down();
}
END_TEST

int main(void) {
    const TTest *const tests[] = {
        a_conversion_stopped_at_once_leaves_its_workers_what_they_use,
        a_conversion_whose_writers_fail_leaves_its_workers_what_they_use,
    };
    return presto_check_main("early_end", tests, sizeof tests / sizeof tests[0], 120);
}
