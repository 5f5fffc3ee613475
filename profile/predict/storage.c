/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What storage gives: a file is written and read again, in order and here and there, by one thread
 * and by several, each time after the page cache was told to forget it.
 */
#define _XOPEN_SOURCE 700 /* posix_fadvise, mkstemp, pread */
#include "../../base/clock_internal.h"
#include "../../base/file_internal.h"
#include "predict_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FILE_BYTES ((uint64_t)64 << 20)
#define LEAST_FILE_BYTES ((uint64_t)1 << 20)
#define READ_BYTES ((size_t)256 << 10)
#define RANDOM_BYTES ((size_t)4096)
#define RANDOM_THREADS 8
#define FOR_NS UINT64_C(300000000)

typedef struct reading {
    int fd;
    uint64_t file_bytes;
    unsigned threads;
    bool is_random;
    _Atomic uint64_t bytes, reads;
    _Atomic int failed; /* errno */
} reading;

static void read_some(void *user, unsigned number) {
    reading *job = user;
    size_t at_once = job->is_random ? RANDOM_BYTES : READ_BYTES;
    char *room = malloc(at_once);
    uint64_t share = job->file_bytes / job->threads / at_once * at_once;
    uint64_t start = presto__clock_ns(), bytes = 0, reads = 0;
    uint64_t mixed = number + 1;
    while (room != NULL && bytes + at_once <= share && presto__clock_ns() - start < FOR_NS) {
        uint64_t offset = number * share + bytes;
        mixed = mixed * UINT64_C(6364136223846793005) + 1442695040888963407;
        if (job->is_random)
            offset = (mixed >> 33) % (job->file_bytes / at_once) * at_once;
        ssize_t got = pread(job->fd, room, at_once, (off_t)offset);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0) {
            atomic_store(&job->failed, got < 0 ? errno : EIO);
            break;
        }
        bytes += (uint64_t)got;
        reads++;
    }
    if (room == NULL)
        atomic_store(&job->failed, ENOMEM);
    free(room);
    atomic_fetch_add(&job->bytes, bytes);
    atomic_fetch_add(&job->reads, reads);
}

typedef struct speed {
    double bytes_per_s, reads_per_s;
} speed;

static presto_status measure(const presto__runner *runner, reading *job, speed *speed_out,
                             presto_error *err) {
    PRESTO_TRY(presto__runner_check(runner, err));
    if (posix_fadvise(job->fd, 0, 0, POSIX_FADV_DONTNEED) == 0)
        (void)posix_fadvise(job->fd, 0, 0, job->is_random ? POSIX_FADV_RANDOM : POSIX_FADV_NORMAL);
    uint64_t start = presto__clock_ns();
    PRESTO_TRY(presto__run_together(job->threads, read_some, job, err));
    double wall_s = fmax(presto__seconds(presto__clock_ns() - start), 1e-9);
    int failed = atomic_load(&job->failed);
    if (failed != 0)
        return presto_fail_errno(err, failed, "the work folder", "its storage cannot be measured");
    *speed_out = (speed){(double)atomic_load(&job->bytes) / wall_s,
                         (double)atomic_load(&job->reads) / wall_s};
    return PRESTO_OK;
}

static presto_status write_file(const presto__runner *runner, int fd, uint64_t bytes,
                                const char *path, presto_error *err) {
    uint64_t *block = malloc(READ_BYTES);
    if (block == NULL)
        return presto_fail_memory(err, READ_BYTES);
    uint64_t mixed = 88172645463325252;
    presto_status status = PRESTO_OK;
    for (uint64_t done = 0; done < bytes && status == PRESTO_OK; done += READ_BYTES) {
        for (size_t i = 0; i < READ_BYTES / sizeof *block; i++) {
            mixed ^= mixed << 13;
            mixed ^= mixed >> 7;
            mixed ^= mixed << 17;
            block[i] = mixed; /* nothing that storage could compress */
        }
        status = presto__runner_check(runner, err);
        if (status == PRESTO_OK)
            status = presto__write_all(fd, path, presto_span_of(block, READ_BYTES), err);
    }
    free(block);
    if (status == PRESTO_OK && fsync(fd) != 0)
        status = presto_fail_errno(err, errno, path, "cannot sync");
    return status;
}

static presto_status measure_all(const presto__runner *runner, int fd, uint64_t file_bytes,
                                 unsigned cores, presto_storage *storage_out, presto_error *err) {
    speed in_order, together, single, random;
    reading job = {.fd = fd, .file_bytes = file_bytes, .threads = 1};
    PRESTO_TRY(measure(runner, &job, &in_order, err));
    reading shared = {.fd = fd, .file_bytes = file_bytes, .threads = cores > 1 ? cores : 2};
    PRESTO_TRY(measure(runner, &shared, &together, err));
    reading here_and_there = {.fd = fd, .file_bytes = file_bytes, .threads = 1, .is_random = true};
    PRESTO_TRY(measure(runner, &here_and_there, &single, err));
    reading many = {
        .fd = fd, .file_bytes = file_bytes, .threads = RANDOM_THREADS, .is_random = true};
    PRESTO_TRY(measure(runner, &many, &random, err));
    *storage_out =
        (presto_storage){.bytes_per_s = fmax(in_order.bytes_per_s, together.bytes_per_s),
                         .bytes_per_s_per_thread = in_order.bytes_per_s,
                         .reads_per_s = fmax(single.reads_per_s, random.reads_per_s),
                         .latency_s = single.reads_per_s > 0 ? 1 / single.reads_per_s : 0};
    return PRESTO_OK;
}

presto_status presto__probe_storage(const presto__runner *runner, unsigned cores,
                                    presto_storage *storage_out, presto_error *err) {
    const char *dir = runner->work_dir;
    uint64_t free_bytes = presto__disk_free_bytes(dir), bytes = free_bytes / 4;
    bytes = bytes < FILE_BYTES ? bytes / LEAST_FILE_BYTES * LEAST_FILE_BYTES : FILE_BYTES;
    if (bytes == 0)
        return presto_fail_errno(err, ENOSPC, dir,
                                 "%ju KiB are free; 4 MiB are needed to measure this storage",
                                 (uintmax_t)(free_bytes >> 10));
    char *path = presto__join_path(dir, "storage-XXXXXX");
    if (path == NULL)
        return presto_fail_memory(err, strlen(dir) + 16);
    int fd = mkstemp(path);
    presto_status status = PRESTO_OK;
    if (fd < 0)
        status = presto_fail_errno(err, errno, path, "cannot make a file to measure storage with");
    if (status == PRESTO_OK)
        status = write_file(runner, fd, bytes, path, err);
    if (status == PRESTO_OK)
        status = measure_all(runner, fd, bytes, cores, storage_out, err);
    if (fd >= 0) {
        (void)close(fd);
        (void)unlink(path);
    }
    free(path);
    return status;
}
