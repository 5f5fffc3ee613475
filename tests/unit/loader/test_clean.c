/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What runs that died have left in folders: presto_clean lists before it looks at each folder, and what has
 * become whole between stays.
 */
#define _XOPEN_SOURCE 700
#include "folder_check.h"
#include "loader_check.h"

#include <sys/stat.h>
#include <unistd.h>

#include <presto/convert.h>

#define SHARD "data-00000-of-00001.tfrecord"

static char *dir;
static presto_error err;

static void set_up(void) {
    dir = presto_check_temp_dir();
}

static void tear_down(void) {
    presto_check_remove_tree(dir);
    free(dir);
}

static void write_in(const char *folder, const char *name) {
    presto_check_write_file(path_in(folder, name), presto_span_of_text("{}\n"));
}

static bool stands_in(const char *folder, const char *name) {
    return access(path_in(folder, name), F_OK) == 0;
}

static char *left_folder(const char *name) {
    char *folder = strdup(path_in(dir, name));
    ck_assert_ptr_nonnull(folder);
    ck_assert_int_eq(mkdir(folder, 0777), 0);
    write_in(folder, ".progress.json");
    write_in(folder, SHARD);
    return folder;
}

/* What the run in folder "b" does when something of folder "a" has been removed. */
typedef struct ending {
    char *folder;
    bool writes_dataset, removes_progress;
} ending;

static bool end_the_other(void *user, const presto_left *left) {
    const ending *run = user;
    (void)left;
    if (run->writes_dataset)
        write_in(run->folder, "dataset.json");
    if (run->removes_progress)
        (void)unlink(path_in(run->folder, ".progress.json"));
    return true;
}

static void clean_while(ending *run) {
    char *a = left_folder("a");
    run->folder = left_folder("b");
    presto_clean_options options;
    presto_clean_options_defaults(&options);
    options.removes = true;
    options.on_left = end_the_other;
    options.on_left_user = run;
    ck_assert_int_eq(presto_clean(dir, &options, &err), PRESTO_OK);
    ck_assert(!stands_in(a, SHARD) && !stands_in(a, ".progress.json"));
    ck_assert(stands_in(run->folder, SHARD));
    free(a);
}

START_TEST(what_became_whole_meanwhile_stays) {
    set_up();
    ending run = {.writes_dataset = true, .removes_progress = true};
    clean_while(&run);
    ck_assert(stands_in(run.folder, "dataset.json"));
    free(run.folder);
    tear_down();
}
END_TEST

START_TEST(a_run_that_died_at_its_very_end_meanwhile_leaves_a_dataset) {
    set_up();
    ending run = {.writes_dataset = true};
    clean_while(&run);
    ck_assert(stands_in(run.folder, "dataset.json"));
    ck_assert(!stands_in(run.folder, ".progress.json"));
    free(run.folder);
    tear_down();
}
END_TEST

START_TEST(a_folder_that_is_not_being_written_any_more_is_left_alone) {
    set_up();
    ending run = {.removes_progress = true};
    clean_while(&run);
    free(run.folder);
    tear_down();
}
END_TEST

int main(void) {
    const TTest *const tests[] = {
        what_became_whole_meanwhile_stays,
        a_run_that_died_at_its_very_end_meanwhile_leaves_a_dataset,
        a_folder_that_is_not_being_written_any_more_is_left_alone,
    };
    return presto_check_main("clean", tests, sizeof tests / sizeof tests[0], 120);
}
