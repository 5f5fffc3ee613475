/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An HDF5 file: where libhdf5 says that its values are, and reading them without it. Values are
 * read at both ends, in two windows that overlap: what overlaps is the same.
 */
#define _GNU_SOURCE /* memfd_create */
#include "fuzz.h"

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "source/hdf5/hdf5_internal.h"

#define MOST_VALUES 4096

/* libhdf5 forgets to free some memory of some damaged files. */
__attribute__((visibility("default"))) const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void) {
    return "leak:libhdf5\n";
}

static void check_window(presto__hdf5_cursor *cursor, const presto__hdf5_range *range) {
    static double whole[MOST_VALUES], half[MOST_VALUES];
    presto__read_stats stats = {0};
    presto__hdf5_range later = *range;
    later.first += range->count / 2;
    later.count -= range->count / 2;
    if (presto__hdf5_read(cursor, range, whole, &stats, NULL) != PRESTO_OK)
        return;
    FUZZ_HOLDS(presto__hdf5_read(cursor, &later, half, &stats, NULL) == PRESTO_OK);
    FUZZ_HOLDS(memcmp(half, whole + range->count / 2, (size_t)later.count * sizeof *half) == 0);
}

static void check_dataset(int fd, const presto__hdf5_dataset *dataset) {
    presto__hdf5_cursor cursor = {0};
    uint64_t count = dataset->values < MOST_VALUES ? dataset->values : MOST_VALUES;
    presto__hdf5_range range = {.object = presto__object_of_file(fd),
                                .path = "fuzz.h5",
                                .dataset = dataset,
                                .count = count};
    check_window(&cursor, &range);
    range.first = dataset->values - count;
    check_window(&cursor, &range);
    presto__hdf5_cursor_done(&cursor);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes) {
    static const char *const names[] = {"voltage", "current"};
    presto__hdf5_dataset datasets[2];
    int fd = memfd_create("fuzz", MFD_CLOEXEC);
    if (fd < 0 || (bytes > 0 && pwrite(fd, data, bytes, 0) != (ssize_t)bytes))
        abort();
    const presto__hdf5_request request = {.object = presto__object_of_file(fd),
                                          .bytes = bytes,
                                          .path = "fuzz.h5",
                                          .names = names,
                                          .count = 2,
                                          .max_chunk_bytes = 1 << 20};
    if (presto__hdf5_look_up(&request, datasets, NULL) == PRESTO_OK) {
        FUZZ_HOLDS(datasets[0].values == datasets[1].values);
        for (size_t i = 0; i < 2; i++) {
            check_dataset(fd, &datasets[i]);
            presto__hdf5_dataset_done(&datasets[i]);
        }
    }
    close(fd);
    return 0;
}
