/* SPDX-License-Identifier: Apache-2.0 */
/* libhdf5 that cannot be loaded, or cannot begin: neither is damage of a file. */
#include <dlfcn.h>
#include <pthread.h>

#include "hdf5_made.h"

#include "source/hdf5/hdf5_symbols_internal.h"

/* ---- a loader of libraries that fails ---- */

static bool cannot_load;
static unsigned loads;
static pthread_t loaded_by;

void *__real_dlopen(const char *name, int flags);
void *__wrap_dlopen(const char *name, int flags);
void *__wrap_dlopen(const char *name, int flags) {
    if (name == NULL || strstr(name, "hdf5") == NULL)
        return __real_dlopen(name, flags);
    loads++;
    loaded_by = pthread_self();
    return cannot_load ? NULL : __real_dlopen(name, flags);
}

/* ---- a library that fails without a word ---- */

static herr_t fail_to_begin(void) {
    return -1;
}

static hid_t fail_to_register(const H5FD_class_t *driver) {
    (void)driver;
    return H5I_INVALID_HID;
}

static hid_t fail_to_open(const char *name, unsigned flags, hid_t access) {
    (void)name, (void)flags, (void)access;
    return H5I_INVALID_HID;
}

/* Two files are looked at by other threads than the caller's. */
static void write_two(void) {
    write_file("1.h5", &contiguous, &contiguous);
    write_file("2.h5", &contiguous, &contiguous);
}

static void fails_for_memory(void) {
    ck_assert_status(open_source(""), PRESTO_ERR_MEMORY, &err);
    ck_assert_ptr_nonnull(strstr(err.message, "libhdf5 is out of memory"));
    close_source();
}

START_TEST(a_library_that_cannot_begin_is_out_of_memory_and_no_file_is_damaged) {
    set_up();
    write_two();
    ck_assert_ok(open_source(""), &err);
    ck_assert_uint_eq(presto_source_count(source), 2 * WINDOWS);
    close_source();
    const presto__hdf5_symbols whole = presto__hdf5;
    presto__hdf5.open = fail_to_begin;
    fails_for_memory();
    presto__hdf5 = whole;
    presto__hdf5.FDregister = fail_to_register;
    fails_for_memory();
    presto__hdf5 = whole;
    presto__hdf5.Fopen = fail_to_open;
    fails_for_memory();
    presto__hdf5 = whole;
    ck_assert_ok(open_source(""), &err);
    ck_assert_uint_eq(presto_source_count(source), 2 * WINDOWS);
    tear_down();
}
END_TEST

/* The last one: it is tried once a process. */
START_TEST(the_thread_that_opens_the_source_loads_the_library_once) {
    set_up();
    write_two();
    cannot_load = true;
    for (int i = 0; i < 2; i++) {
        ck_assert_status(open_source(""), PRESTO_ERR_UNSUPPORTED, &err);
        ck_assert_ptr_nonnull(strstr(err.message, "which cannot be loaded"));
        close_source();
    }
    ck_assert_uint_eq(loads, 1);
    ck_assert(pthread_equal(loaded_by, pthread_self()));
    tear_down();
}
END_TEST

int main(void) {
    const TTest *const tests[] = {
        a_library_that_cannot_begin_is_out_of_memory_and_no_file_is_damaged,
        the_thread_that_opens_the_source_loads_the_library_once,
    };
    return presto_check_main("source_hdf5_begin", tests, sizeof tests / sizeof tests[0], 60);
}
