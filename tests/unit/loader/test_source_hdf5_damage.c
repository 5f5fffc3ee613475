/* SPDX-License-Identifier: Apache-2.0 */
/* The raw source `hdf5` on files that are damaged, that changed, or that it does not read. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "../../../loader/loader_internal.h"
#include "source/core/source_internal.h"

#include <hdf5.h>

#include "source/hdf5/hdf5_internal.h"

#include "../records/faults.h"
#include "hdf5_made.h"
#include "skips_check.h"

/* ---- bad files ---- */

/* The file "2.h5" beside a good one fails alone; the message has the words. */
static void fails_alone(presto_status status, const char *words, const char *options) {
    skips noted;
    write_file("1.h5", &contiguous, &contiguous);
    ck_assert_ok(open_source(options), &err);
    ck_assert_uint_eq(presto_source_count(source), WINDOWS + 1);
    ck_assert_uint_eq(stream_with_skips(source, NULL, &noted), WINDOWS);
    ck_assert_uint_eq(noted.count, 1);
    ck_assert_str_eq(noted.last.file, path_in(dir, "2.h5"));
    ck_assert_msg(strstr(noted.last.message, words) != NULL, "'%s' lacks '%s'", noted.last.message,
                  words);
    ck_assert_status(noted.last.status, status, &noted.last);
    close_source();
}

START_TEST(files_that_are_not_hdf5_fail_alone) {
    set_up();
    presto_check_write_file(path_in(dir, "2.h5"), presto_span_of_text(""));
    fails_alone(PRESTO_ERR_CORRUPT, "cannot be read as HDF5", "");
    presto_check_write_file(path_in(dir, "2.h5"), presto_span_of_text("no HDF5 file at all\n"));
    fails_alone(PRESTO_ERR_CORRUPT, "a text file, but an HDF5 file is needed", "");
    write_file("2.h5", &contiguous, &contiguous);
    ck_assert_int_eq(truncate(path_in(dir, "2.h5"), 3000), 0);
    fails_alone(PRESTO_ERR_CORRUPT, "truncated file", "");
    tear_down();
}
END_TEST

/* A file "2.h5" whose voltage was made by the caller. */
static void finish_file(hid_t file) {
    write_dataset(file, "current", 1, &contiguous);
    H5Fclose(file);
}

START_TEST(datasets_that_do_not_fit_fail_alone) {
    const layout strings = {.type = 0, .values = VALUES - 1};
    set_up();
    hid_t file = make_file("2.h5", false);
    write_dataset(file, "U", 0, &contiguous);
    finish_file(file);
    fails_alone(PRESTO_ERR_NOT_FOUND, "(there is: U, current)", "");
    file = make_file("2.h5", false);
    write_dataset(file, "voltage", 0, &strings);
    finish_file(file);
    fails_alone(PRESTO_ERR_TYPE, "'voltage' has 1036 values, 'current' has 1037", "");
    write_file("2.h5", &(layout){.columns = 2}, &contiguous);
    fails_alone(PRESTO_ERR_TYPE, "shape [1037,2], needs [n] or [n,1]", "");
    write_file("2.h5", &(layout){.type = H5T_STD_I64LE}, &contiguous);
    fails_alone(PRESTO_ERR_TYPE, "integers of 8 bytes", "");
    write_file("2.h5", &(layout){.chunk = 1000}, &contiguous);
    fails_alone(PRESTO_ERR_LIMIT, "max-chunk-bytes (7999)", ", max-chunk-bytes: 7999");
    file = make_file("2.h5", false);
    H5Gclose(H5Gcreate2(file, "voltage", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
    finish_file(file);
    fails_alone(PRESTO_ERR_NOT_FOUND, "not a dataset", "");
    tear_down();
}
END_TEST

START_TEST(values_in_other_files_are_not_read) {
    set_up();
    write_file("other.bin", &contiguous, &contiguous); /* a name that the source does not take */
    const hsize_t count = VALUES;
    hid_t space = H5Screate_simple(1, &count, NULL);
    hid_t file = make_file("2.h5", false);
    H5Lcreate_external(path_in(dir, "other.bin"), "voltage", file, "voltage", H5P_DEFAULT,
                       H5P_DEFAULT);
    finish_file(file);
    fails_alone(PRESTO_ERR_NOT_FOUND, "'voltage' cannot be opened", "");

    file = make_file("2.h5", false);
    hid_t list = H5Pcreate(H5P_DATASET_CREATE);
    H5Pset_external(list, path_in(dir, "other.bin"), 0, VALUES * 8);
    H5Dclose(H5Dcreate2(file, "voltage", H5T_IEEE_F64LE, space, H5P_DEFAULT, list, H5P_DEFAULT));
    H5Pclose(list);
    finish_file(file);
    fails_alone(PRESTO_ERR_UNSUPPORTED, "values in other files", "");

    file = make_file("2.h5", true);
    list = H5Pcreate(H5P_DATASET_CREATE);
    H5Pset_virtual(list, space, path_in(dir, "other.bin"), "voltage", space);
    H5Dclose(H5Dcreate2(file, "voltage", H5T_IEEE_F64LE, space, H5P_DEFAULT, list, H5P_DEFAULT));
    H5Pclose(list);
    finish_file(file);
    fails_alone(PRESTO_ERR_UNSUPPORTED, "virtual", "");
    H5Sclose(space);
    tear_down();
}
END_TEST

/* Does nothing; it is there when the file is written, not when it is read. */
static size_t pass(unsigned flags, size_t count, const unsigned *values, size_t bytes, size_t *room,
                   void **data) {
    (void)flags, (void)count, (void)values, (void)room, (void)data;
    return bytes;
}

START_TEST(other_storage_and_filters_are_named) {
    const H5Z_class2_t own = {H5Z_CLASS_T_VERS, 300, 1, 1, "own filter", NULL, NULL, pass};
    const hsize_t count = VALUES, chunk = 100;
    set_up();
    hid_t space = H5Screate_simple(1, &count, NULL);
    hid_t file = make_file("2.h5", false);
    hid_t list = H5Pcreate(H5P_DATASET_CREATE);
    H5Pset_layout(list, H5D_COMPACT);
    H5Dclose(H5Dcreate2(file, "voltage", H5T_IEEE_F64LE, space, H5P_DEFAULT, list, H5P_DEFAULT));
    H5Pclose(list);
    finish_file(file);
    fails_alone(PRESTO_ERR_UNSUPPORTED, "compact", "");

    H5Zregister(&own);
    file = make_file("2.h5", false);
    list = H5Pcreate(H5P_DATASET_CREATE);
    H5Pset_chunk(list, 1, &chunk);
    H5Pset_filter(list, 300, 0, 0, NULL);
    hid_t set = H5Dcreate2(file, "voltage", H5T_IEEE_F64LE, space, H5P_DEFAULT, list, H5P_DEFAULT);
    double values[VALUES] = {0};
    ck_assert_int_ge(H5Dwrite(set, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, values), 0);
    H5Dclose(set);
    H5Pclose(list);
    finish_file(file);
    H5Zunregister(300);
    fails_alone(PRESTO_ERR_UNSUPPORTED, "the filter own filter (number 300)", "");

    file = make_file("2.h5", false);
    H5Dclose(
        H5Dcreate2(file, "voltage", H5T_IEEE_F64LE, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
    finish_file(file);
    fails_alone(PRESTO_ERR_CORRUPT, "never written", "");
    H5Sclose(space);
    tear_down();
}
END_TEST

START_TEST(absurd_lengths_are_refused_without_memory) {
    const hsize_t count = (hsize_t)1 << 50, chunk = 1;
    set_up();
    hid_t space = H5Screate_simple(1, &count, NULL);
    hid_t file = make_file("2.h5", false);
    hid_t list = H5Pcreate(H5P_DATASET_CREATE);
    H5Pset_chunk(list, 1, &chunk);
    H5Dclose(H5Dcreate2(file, "voltage", H5T_IEEE_F64LE, space, H5P_DEFAULT, list, H5P_DEFAULT));
    H5Pclose(list);
    H5Sclose(space);
    finish_file(file);
    fails_alone(PRESTO_ERR_LIMIT, "1125899906842624 values in 1125899906842624 chunks", "");
    tear_down();
}
END_TEST

/* Where the library says that chunk 3 of the voltage stands. */
static uint64_t place_of_chunk(void) {
    hid_t file = H5Fopen(path_in(dir, "2.h5"), H5F_ACC_RDONLY, H5P_DEFAULT);
    hid_t set = H5Dopen2(file, "voltage", H5P_DEFAULT);
    hid_t space = H5Dget_space(set);
    haddr_t place = 0;
    ck_assert_int_ge(H5Dget_chunk_info(set, space, 3, NULL, NULL, &place, NULL), 0);
    H5Sclose(space);
    H5Dclose(set);
    H5Fclose(file);
    return place;
}

START_TEST(a_damaged_chunk_costs_its_windows_and_is_told_with_its_place) {
    const layout how = {.chunk = 100, .filters = shuffle_gzip};
    skips noted;
    set_up();
    write_file("2.h5", &how, &contiguous);
    uint64_t place = place_of_chunk();
    int fd = open(path_in(dir, "2.h5"), O_RDWR);
    uint8_t byte;
    ck_assert_int_eq(pread(fd, &byte, 1, (off_t)place + 20), 1);
    byte ^= 0x55;
    ck_assert_int_eq(pwrite(fd, &byte, 1, (off_t)place + 20), 1);
    close(fd);
    ck_assert_ok(open_source(""), &err);
    ck_assert_uint_eq(stream_with_skips(source, NULL, &noted), WINDOWS - 1);
    ck_assert_uint_eq(noted.count, 1);
    ck_assert_str_eq(noted.last.file, path_in(dir, "2.h5"));
    ck_assert_uint_eq(noted.last.record, 3);
    ck_assert_uint_eq(noted.last.offset, place);
    ck_assert_status(noted.last.status, PRESTO_ERR_CORRUPT, &noted.last);
    tear_down();
}
END_TEST

START_TEST(a_file_that_changes_after_the_source_was_opened_is_told) {
    skips noted;
    set_up();
    write_file("2.h5", &contiguous, &contiguous);
    ck_assert_ok(open_source(""), &err);
    ck_assert_int_eq(truncate(path_in(dir, "2.h5"), 5000), 0);
    ck_assert_uint_eq(stream_with_skips(source, NULL, &noted), 0);
    ck_assert_uint_eq(noted.count, WINDOWS);
    ck_assert_ptr_nonnull(strstr(noted.last.message, "has changed since it was listed"));
    tear_down();
}
END_TEST

/* The k-th call of a kind fails, for every k: opening does, too. Returns how many there are. */
static long count_faults(int kind, presto_status status) {
    for (long k = 0;; k++) {
        presto_source *again = NULL;
        faults_arm(kind, k);
        presto_status got =
            presto__source_open_raw(pipeline, (const char *const *)&dir, 1, &again, &err);
        bool fired = faults_disarm();
        presto__source_free(again);
        if (!fired) {
            ck_assert_ok(got, &err);
            return k;
        }
        ck_assert_msg(got == status, "call %ld: %s: %s", k, presto_status_name(got), err.message);
        if (kind == FAULT_READ) {
            ck_assert_int_eq(err.sys_errno, EIO);
            ck_assert_ptr_nonnull(strstr(err.file, ".h5"));
        }
    }
}

START_TEST(a_failure_of_the_machine_is_no_damage) {
    set_up();
    write_file("1.h5", &small_chunks, &contiguous);
    write_file("2.h5", &contiguous, &contiguous);
    ck_assert_ok(open_source(""), &err);
    ck_assert_int_gt(count_faults(FAULT_READ, PRESTO_ERR_IO), 2); /* one a file, and later ones */
    ck_assert_int_gt(count_faults(FAULT_MEMORY, PRESTO_ERR_MEMORY), 0);
    ck_assert_int_eq(count_faults(FAULT_OPEN, PRESTO_ERR_IO), 2);
    tear_down();
}
END_TEST

START_TEST(each_byte_of_a_file_may_be_wrong) {
    const layout how = {.chunk = 300, .filters = all};
    set_up();
    write_file("2.h5", &how, &how);
    size_t bytes;
    uint8_t *whole = presto_check_read_file(path_in(dir, "2.h5"), &bytes);
    for (size_t i = 0; i < bytes; i += i < 100 ? 1 : 53) {
        whole[i] ^= 0xff;
        presto_check_write_file(path_in(dir, "2.h5"), presto_span_of(whole, bytes));
        whole[i] ^= 0xff;
        if (open_source("") >= 0) {
            skips noted;
            (void)stream_with_skips(source, NULL, &noted);
        }
        close_source();
    }
    free(whole);
    tear_down();
}
END_TEST

START_TEST(the_rest_of_a_file_is_told_and_no_window_at_all_is_an_error) {
    size_t count;
    set_up();
    write_file("1.h5", &contiguous, &contiguous);
    write_file("2.h5", &contiguous, &contiguous);
    ck_assert_ok(open_source(""), &err);
    const char *const *notes = presto_source_notes(source, &count);
    ck_assert_uint_eq(count, 1);
    ck_assert_str_eq(notes[0],
                     "74 values at the end of 2 files left out: less than a window of 100");
    close_source();
    ck_assert_int_eq(unlink(path_in(dir, "2.h5")), 0);
    const layout brief = {.values = WINDOW - 1};
    write_file("1.h5", &brief, &brief);
    ck_assert_status(open_source(""), PRESTO_ERR_NOT_FOUND, &err);
    ck_assert_str_eq(err.message, "no file has a whole window of 100 values");
    tear_down();
}
END_TEST

START_TEST(the_librarys_settings_are_as_they_were) {
    H5E_auto2_t before, after;
    void *data;
    unsigned plugins_before, plugins_after;
    H5open();
    H5Eget_auto2(H5E_DEFAULT, &before, &data);
    H5PLget_loading_state(&plugins_before);
    set_up();
    presto_check_write_file(path_in(dir, "2.h5"), presto_span_of_text("nothing"));
    ck_assert_ok(open_source(""), &err);
    H5Eget_auto2(H5E_DEFAULT, &after, &data);
    H5PLget_loading_state(&plugins_after);
    ck_assert(before != NULL && before == after);
    ck_assert_uint_eq(plugins_before, plugins_after);
    ck_assert_int_eq((int)H5Fget_obj_count((hid_t)H5F_OBJ_ALL, H5F_OBJ_ALL), 0);
    tear_down();
}
END_TEST

int main(void) {
    const TTest *const tests[] = {
        files_that_are_not_hdf5_fail_alone,
        datasets_that_do_not_fit_fail_alone,
        values_in_other_files_are_not_read,
        other_storage_and_filters_are_named,
        absurd_lengths_are_refused_without_memory,
        a_damaged_chunk_costs_its_windows_and_is_told_with_its_place,
        a_file_that_changes_after_the_source_was_opened_is_told,
        a_failure_of_the_machine_is_no_damage,
        each_byte_of_a_file_may_be_wrong,
        the_rest_of_a_file_is_told_and_no_window_at_all_is_an_error,
        the_librarys_settings_are_as_they_were,
    };
    return presto_check_main("source_hdf5_damage", tests, sizeof tests / sizeof tests[0], 120);
}
