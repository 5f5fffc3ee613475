/* SPDX-License-Identifier: Apache-2.0 */
/* The look at the machine, and that it ends when the sweep is to stop. */
#include <dirent.h>

#include "folder_check.h"
#include "predict/predict_internal.h"
#include "profile_internal.h"

static unsigned asked;

static bool stops_at_once(void *user) {
    (void)user;
    asked++;
    return true;
}

/* As if nobody had been asked for long. */
static void ask_again(presto__runner *runner) {
    runner->asked_ns = 0;
    asked = 0;
}

static size_t count_entries(const char *dir) {
    size_t count = 0;
    DIR *folder = opendir(dir);
    ck_assert_ptr_nonnull(folder);
    for (const struct dirent *entry; (entry = readdir(folder)) != NULL;)
        count += entry->d_name[0] != '.';
    closedir(folder);
    return count;
}

START_TEST(the_look_at_the_machine_ends_when_the_sweep_is_to_stop) {
    presto_error err;
    presto_storage storage;
    presto__pair memory;
    char *dir = presto_check_temp_dir();
    presto_sweep_options options = {.struct_bytes = sizeof options, .should_stop = stops_at_once};
    presto__runner runner = {.options = &options, .work_dir = dir};
    for (unsigned cores = 1; cores <= 2; cores++) {
        ask_again(&runner);
        ck_assert_status(presto__probe_memory(&runner, cores, &memory, &err), PRESTO_ERR_STOPPED,
                         &err);
        ck_assert_uint_eq(asked, 1);
        ask_again(&runner);
        ck_assert_status(presto__probe_storage(&runner, cores, &storage, &err), PRESTO_ERR_STOPPED,
                         &err);
        ck_assert_uint_eq(asked, 1);
        ck_assert_uint_eq(count_entries(dir), 0);
    }
    presto_check_remove_tree(dir);
    free(dir);
}
END_TEST

START_TEST(a_sweep_that_goes_on_has_its_figures) {
    presto_error err;
    presto_storage storage;
    presto__pair memory;
    char *dir = presto_check_temp_dir();
    presto_sweep_options options = {.struct_bytes = sizeof options};
    presto__runner runner = {.options = &options, .work_dir = dir};
    ck_assert_ok(presto__probe_memory(&runner, 1, &memory, &err), &err);
    ck_assert(memory.one > 0 && memory.all == memory.one);
    ck_assert_ok(presto__probe_storage(&runner, 1, &storage, &err), &err);
    ck_assert(storage.bytes_per_s > 0 && storage.reads_per_s > 0);
    ck_assert_uint_eq(count_entries(dir), 0);
    presto_check_remove_tree(dir);
    free(dir);
}
END_TEST

int main(void) {
    const TTest *const tests[] = {
        the_look_at_the_machine_ends_when_the_sweep_is_to_stop,
        a_sweep_that_goes_on_has_its_figures,
    };
    return presto_check_main("probes", tests, sizeof tests / sizeof tests[0], 120);
}
