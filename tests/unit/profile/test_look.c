/* SPDX-License-Identifier: Apache-2.0 */
/* Cold epochs of a look read from the storage, and cached ones do not. */
#include <fcntl.h>
#include <math.h>
#include <unistd.h>

#include "trial_check.h"

/* A look beside other programs is made again, up to three times. */
enum { FILES = 16, FILE_BYTES = 65536, MADE_MOST = 4 };

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
    set_up_place(&at, (place_files){FILES, FILE_BYTES}, "none", 0, 0);
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
    tear_down_place(&at);
}
END_TEST

int main(void) {
    const TTest *const tests[] = {cold_epochs_read_the_storage_and_cached_ones_do_not};
    return presto_check_main("profile/look", tests, sizeof tests / sizeof *tests, 60);
}
