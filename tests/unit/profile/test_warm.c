/* SPDX-License-Identifier: Apache-2.0 */
/* How much memory may be touched in a container, and when it is not touched again. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "presto_check.h"
#include "trial/trial_internal.h"

static char *dir;

static void put(const char *name, const char *text) {
    char path[600];
    snprintf(path, sizeof path, "%s/%s", dir, name);
    presto_check_write_file(path, presto_span_of_text(text));
}

static void make(const char *name) {
    char path[600];
    snprintf(path, sizeof path, "%s/%s", dir, name);
    ck_assert_int_eq(mkdir(path, 0777), 0);
}

static uint64_t room_in(const char *groups) {
    char list[600];
    put("list", groups);
    snprintf(list, sizeof list, "%s/list", dir);
    return presto__group_room(list, dir);
}

START_TEST(the_nearest_limit_counts) {
    dir = presto_check_temp_dir();
    make("a");
    make("a/b");
    put("a/memory.max", "1000\n");
    put("a/memory.current", "400\n");
    put("a/b/memory.max", "max\n");
    put("a/b/memory.current", "300\n");
    ck_assert_uint_eq(room_in("0::/a/b\n"), 600);
    put("a/b/memory.max", "350\n");
    ck_assert_uint_eq(room_in("0::/a/b\n"), 50);
    put("a/b/memory.current", "351\n");
    ck_assert_uint_eq(room_in("0::/a/b\n"), 0);
    ck_assert_uint_eq(room_in("0::/a\n"), 600);
    ck_assert_uint_eq(room_in("0::/\n"), UINT64_MAX);
    ck_assert_uint_eq(room_in("0::/gone\n"), UINT64_MAX);
    ck_assert_uint_eq(room_in(""), UINT64_MAX);
    presto_check_remove_tree(dir);
    free(dir);
}
END_TEST

START_TEST(the_first_version_of_cgroups_has_limits_too) {
    dir = presto_check_temp_dir();
    make("memory");
    make("memory/job");
    put("memory/memory.limit_in_bytes", "9223372036854771712\n");
    put("memory/memory.usage_in_bytes", "5000\n");
    put("memory/job/memory.limit_in_bytes", "2000\n");
    put("memory/job/memory.usage_in_bytes", "500\n");
    ck_assert_uint_eq(room_in("4:memory:/job\n3:cpuset:/\n0::/\n"), 1500);
    /* In a container without a namespace for groups, only what is above it can be seen. */
    put("memory/memory.limit_in_bytes", "7000\n");
    ck_assert_uint_eq(room_in("4:memory:/docker/0123\n"), 2000);
    presto_check_remove_tree(dir);
    free(dir);
}
END_TEST

START_TEST(memory_that_was_touched_just_now_is_not_touched_again) {
    const uint64_t second = 1000000000;
    presto__warmed last = {.bytes = 0};
    ck_assert(!presto__is_warm(&last, 1, 100 * second));
    last = (presto__warmed){1000, 100 * second};
    ck_assert(presto__is_warm(&last, 1000, 100 * second));
    ck_assert(presto__is_warm(&last, 1, 100 * second + second / 2));
    ck_assert(!presto__is_warm(&last, 1001, 100 * second));
    ck_assert(!presto__is_warm(&last, 1, 101 * second)); /* the host may have it again */
}
END_TEST

int main(void) {
    const TTest *const tests[] = {
        the_nearest_limit_counts,
        the_first_version_of_cgroups_has_limits_too,
        memory_that_was_touched_just_now_is_not_touched_again,
    };
    return presto_check_main("warm", tests, sizeof tests / sizeof tests[0], 60);
}
