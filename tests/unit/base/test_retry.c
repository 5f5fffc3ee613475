/* SPDX-License-Identifier: Apache-2.0 */
/* Which errno is a fault of the machine, and that no call is repeated for ever. */
#include <errno.h>

#include "presto_check.h"
#include "retry_internal.h"

START_TEST(failures_of_the_machine_are_told_from_those_of_a_file) {
    static const int machine[] = {EMFILE, ENFILE, ENOMEM, EIO,    ESTALE,    EINTR, EAGAIN,
                                  ENOSPC, EDQUOT, ENODEV, EBUSY,  ETIMEDOUT, EROFS, ENOBUFS,
                                  EBADF,  EFAULT, ENOSYS, 123456, -1};
    static const int file[] = {0,      ENOENT, ENOTDIR,      EACCES, EPERM,
                               EISDIR, ELOOP,  ENAMETOOLONG, ENXIO,  EINVAL};
    for (size_t i = 0; i < sizeof machine / sizeof machine[0]; i++)
        ck_assert_msg(presto__errno_is_machine(machine[i]), "%d", machine[i]);
    for (size_t i = 0; i < sizeof file / sizeof file[0]; i++)
        ck_assert_msg(!presto__errno_is_machine(file[i]), "%d", file[i]);
}
END_TEST

START_TEST(what_may_pass_is_tried_ten_times_and_nothing_else_at_all) {
    static const int passing[] = {EMFILE, ENFILE, EINTR, EAGAIN, ESTALE};
    static const int lasting[] = {0, EIO, ENOMEM, ENOSPC, ENOENT, EACCES};
    for (size_t i = 0; i < sizeof passing / sizeof passing[0]; i++) {
        ck_assert(presto__errno_is_machine(passing[i]));
        unsigned tries = i == 0 ? 0 : 7; /* to the end once: it takes a second */
        unsigned before = tries;
        unsigned pauses = 0;
        while (presto__retry_pause(passing[i], &tries))
            pauses++;
        ck_assert_uint_eq(pauses + before, 10);
        ck_assert_uint_eq(tries, 10);
    }
    for (size_t i = 0; i < sizeof lasting / sizeof lasting[0]; i++) {
        unsigned tries = 0;
        ck_assert(!presto__retry_pause(lasting[i], &tries));
        ck_assert_uint_eq(tries, 0);
    }
}
END_TEST

int main(void) {
    const TTest *const tests[] = {
        failures_of_the_machine_are_told_from_those_of_a_file,
        what_may_pass_is_tried_ten_times_and_nothing_else_at_all,
    };
    return presto_check_main("retry", tests, sizeof tests / sizeof tests[0], 60);
}
