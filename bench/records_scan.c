/* SPDX-License-Identifier: Apache-2.0 */
/* Verified scan of whole files, by threads. */
#include "records.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* ---- threads ---- */

typedef uint64_t work_fn(void *argument, unsigned thread);

typedef struct worker {
    pthread_t thread;
    work_fn *work;
    void *argument;
    unsigned number;
    uint64_t result;
    pthread_barrier_t *start;
    uint64_t began_ns;
    records_spent time;
} worker;

static void *run_worker(void *argument) {
    worker *self = argument;
    pthread_barrier_wait(self->start);
    records_spent start = records_now();
    self->result = self->work(self->argument, self->number);
    records_count_since(&self->time, start);
    self->began_ns = start.clock_ns;
    return NULL;
}

/* What the threads' work took in all; *result_out the sum of what they returned. */
static records_spent run_threads(work_fn *work, void *argument, unsigned threads,
                                 uint64_t *result_out) {
    worker workers[8];
    pthread_barrier_t start;
    pthread_barrier_init(&start, NULL, threads);
    for (unsigned i = 0; i < threads; i++) {
        workers[i] = (worker){.work = work, .argument = argument, .number = i, .start = &start};
        if (pthread_create(&workers[i].thread, NULL, run_worker, &workers[i]) != 0)
            records_die("pthread_create");
    }
    uint64_t began = UINT64_MAX, ended = 0, result = 0;
    records_spent all = {0, 0};
    for (unsigned i = 0; i < threads; i++) {
        pthread_join(workers[i].thread, NULL);
        uint64_t end = workers[i].began_ns + workers[i].time.clock_ns;
        if (workers[i].began_ns < began)
            began = workers[i].began_ns;
        if (end > ended)
            ended = end;
        all.cpu_ns += workers[i].time.cpu_ns;
        result += workers[i].result;
    }
    pthread_barrier_destroy(&start);
    *result_out = result;
    all.clock_ns = ended - began;
    return all;
}

/* ---- scan ---- */

static uint64_t part(uint64_t total, unsigned i, unsigned of) {
    return total / of * i + total % of * i / of;
}

static unsigned scan_threads;

static uint64_t scan_presto(void *argument, unsigned thread) {
    records_file *file = argument;
    uint64_t first = part(file->records, thread, scan_threads);
    uint64_t end = part(file->records, thread + 1, scan_threads);
    size_t block_records = (size_t)((256 << 10) / (file->record_bytes + 16)) + 1;
    presto_block block = {0};
    uint64_t good = 0;
    while (first < end) {
        size_t count = block_records < end - first ? block_records : (size_t)(end - first);
        MUST(presto_shard_fetch(file->shard, first, count, &block, &records_err));
        for (size_t i = 0; i < count; i++)
            good += block.records[i].status == PRESTO_OK;
        first += count;
    }
    presto_block_done(&block);
    return good;
}

static uint64_t scan_map(void *argument, unsigned thread) {
    const records_file *file = argument;
    uint64_t frame = file->record_bytes + 16;
    uint64_t first = part(file->records, thread, scan_threads) * frame;
    uint64_t end = part(file->records, thread + 1, scan_threads) * frame;
    size_t used;
    return records_check(file->map + first, (size_t)(end - first), &used);
}

static uint64_t scan_read(void *argument, unsigned thread) {
    const records_file *file = argument;
    uint64_t frame = file->record_bytes + 16;
    uint64_t offset = part(file->records, thread, scan_threads) * frame;
    uint64_t end = part(file->records, thread + 1, scan_threads) * frame;
    size_t capacity = ((size_t)256 << 10) + frame;
    uint8_t *buffer = records_malloc(capacity);
    size_t have = 0;
    uint64_t good = 0;
    while (offset < end) {
        size_t want = end - offset < capacity - have ? (size_t)(end - offset) : capacity - have;
        ssize_t got = pread(file->fd, buffer + have, want, (off_t)offset);
        if (got <= 0)
            records_die("pread");
        offset += (uint64_t)got;
        have += (size_t)got;
        size_t used;
        good += records_check(buffer, have, &used);
        memmove(buffer, buffer + used, have - used);
        have -= used;
    }
    free(buffer);
    return good;
}

/* One more round of one side. */
static void scan_once(records_series *s, work_fn *work, records_file *file, unsigned threads,
                      bool counts) {
    uint64_t good;
    scan_threads = threads;
    records_spent time = run_threads(work, file, threads, &good);
    if (good != file->records)
        records_die("scan: not all records are good");
    if (counts)
        records_add(s, time, (double)file->bytes);
}

void records_bench_scan(size_t record_bytes) {
    records_file file = {.bytes = 0};
    presto_shard_options options;
    presto_shard *mapped;
    records_make_file(&file, record_bytes);
    presto_shard_options_defaults(&options);
    MUST(presto_shard_open(file.path, &options, &file.shard, &records_err));
    MUST(presto_shard_index(file.shard, false, NULL, &records_err));
    presto_shard *plain = file.shard;
    options.map = true;
    MUST(presto_shard_open(file.path, &options, &mapped, &records_err));
    MUST(presto_shard_index(mapped, false, NULL, &records_err));
    file.fd = open(file.path, O_RDONLY);
    void *map = mmap(NULL, (size_t)file.bytes, PROT_READ, MAP_SHARED, file.fd, 0);
    if (map == MAP_FAILED)
        records_die("mmap");
    file.map = map;
    for (unsigned threads = 1; threads <= 2; threads++) {
        records_series ours = {.count = 0}, ours_map = {.count = 0};
        records_series by_read = {.count = 0}, by_map = {.count = 0};
        for (unsigned round = 0; round <= records_set.rounds; round++) {
            bool counts = round > 0; /* the first warms up */
            file.shard = plain;
            scan_once(&ours, scan_presto, &file, threads, counts);
            scan_once(&by_read, scan_read, &file, threads, counts);
            file.shard = mapped;
            scan_once(&ours_map, scan_presto, &file, threads, counts);
            scan_once(&by_map, scan_map, &file, threads, counts);
        }
        char name[64];
        snprintf(name, sizeof name, "%zu B, %u thread%s, read", record_bytes, threads,
                 threads == 1 ? "" : "s");
        records_print(name, &ours, &by_read, 1, "GB/s");
        snprintf(name, sizeof name, "%zu B, %u thread%s, map", record_bytes, threads,
                 threads == 1 ? "" : "s");
        records_print(name, &ours_map, &by_map, 1, "GB/s");
    }
    munmap(map, (size_t)file.bytes);
    close(file.fd);
    presto_shard_free(plain);
    presto_shard_free(mapped);
    unlink(file.path);
}
