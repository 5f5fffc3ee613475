/* SPDX-License-Identifier: Apache-2.0 */
/* What notes say of machines that others used, too, while epochs were measured. */
#include "made_sweep.h"

/* In all runs, other processes and other guests have such parts of all processors. */
static void set_taken(presto_sweep *sweep, double others, double stolen) {
    for (size_t i = 0; i < sweep->trial_count; i++)
        for (int cached = 0; cached < 2; cached++) {
            presto__measure *measure =
                cached ? &sweep->trials[i].cached[0].measure : &sweep->trials[i].cold[0].measure;
            double all_s = measure->wall_s * presto__machine_cpus();
            measure->cpu_user_s = 0.2 * all_s;
            measure->cpu_system_s = 0.1 * all_s;
            measure->machine_busy_s = (0.3 + others) * all_s;
            measure->machine_steal_s = stolen * all_s;
        }
}

/* The notes, one after another. For the caller to free. */
static char *notes_of(presto_sweep *sweep) {
    presto_error err;
    for (size_t i = 0; i < sweep->note_count; i++)
        free(sweep->notes[i]);
    sweep->note_count = 0;
    ck_assert_ok(presto__write_notes(sweep, &err), &err);
    char *all = calloc(1, 4096);
    ck_assert_ptr_nonnull(all);
    for (size_t i = 0; i < sweep->note_count; i++)
        snprintf(all + strlen(all), 4096 - strlen(all), "%s\n", sweep->notes[i]);
    return all;
}

static void assert_notes(presto_sweep *sweep, const char *others, const char *stolen) {
    static const char *const of_others =
        "of the processors while epochs were measured: repeat the sweep on an idle machine";
    static const char *const of_guests =
        "of its processors to others while epochs were measured: repeat the sweep at another time";
    char *all = notes_of(sweep);
    ck_assert_msg((strstr(all, of_others) != NULL) == (others != NULL), "%s", all);
    ck_assert_msg((strstr(all, of_guests) != NULL) == (stolen != NULL), "%s", all);
    if (others != NULL)
        assert_says(all, others);
    if (stolen != NULL)
        assert_says(all, stolen);
    free(all);
}

START_TEST(processors_that_others_used_are_told) {
    presto_sweep *sweep = made_sweep(false);
    set_taken(sweep, 0.09, 0.019);
    assert_notes(sweep, NULL, NULL);
    set_taken(sweep, 0.25, 0.019);
    assert_notes(sweep, "other processes used 25 % of the processors", NULL);
    set_taken(sweep, 0.09, 0.04);
    assert_notes(sweep, NULL, "the host of this virtual machine gave 4 % of its processors");
    set_taken(sweep, 0.25, 0.04);
    assert_notes(sweep, "used 25 %", "gave 4 %");
    presto_sweep_free(sweep);
}
END_TEST

START_TEST(of_epochs_for_which_the_system_does_not_say_it_nothing_is_told) {
    presto_sweep *sweep = made_sweep(false);
    set_taken(sweep, NAN, NAN);
    assert_notes(sweep, NULL, NULL);
    set_taken(sweep, 0.5, 0.5);
    for (size_t i = 1; i < sweep->trial_count; i++) /* these are left out, not counted as idle */
        sweep->trials[i].cold[0].measure.machine_busy_s =
            sweep->trials[i].cached[0].measure.machine_busy_s =
                sweep->trials[i].cold[0].measure.machine_steal_s =
                    sweep->trials[i].cached[0].measure.machine_steal_s = NAN;
    assert_notes(sweep, "used 50 %", "gave 50 %");
    presto_sweep_free(sweep);
}
END_TEST

int main(void) {
    const TTest *const tests[] = {
        processors_that_others_used_are_told,
        of_epochs_for_which_the_system_does_not_say_it_nothing_is_told,
    };
    return presto_check_main("profile/notes", tests, sizeof tests / sizeof *tests, 30);
}
