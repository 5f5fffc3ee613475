/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Raw records of 0.1 to 100 KB from files of other programs, in the page cache: the loader counts
 * them, delivers them in batches of 256 (values and offsets), or copies their frames, each against
 * a verified scan of the same files on as many threads.
 *
 * Usage: bench_raw [-m MIB=512] [-r ROUNDS=7] [-s RECORD_BYTES]... [-w WORK_DIR] [-o FIGURES]
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <presto/loader.h>

#include "harness.h"
#include "loader/loader_internal.h"
#include "records/records_internal.h"

#define SHARDS 4
#define FETCH_BYTES ((size_t)256 << 10)
#define BATCH_ROWS 256
#define MAX_SIZES 16
#define MAX_THREADS 2

static const size_t default_sizes[] = {100, 1000, 10000, 100000};

typedef enum way { WAY_SCAN, WAY_COUNT, WAY_BATCHES, WAY_FRAMES, WAYS } way;

#define CASES ((size_t)WAYS * MAX_THREADS)

static const char *const way_names[WAYS] = {"scan", "count", "batches", "frames"};

typedef struct material {
    char paths[SHARDS][600];
    size_t record_bytes;
    uint64_t records;
    presto_dataset *dataset;
    presto_source *source;
} material;

typedef struct task {
    material *m;
    way way;
    unsigned threads;
} task;

static void write_shard(const material *m, size_t shard, const uint8_t *bytes) {
    presto_error err;
    presto__shard_writer *writer;
    presto__shard_writer_options options;
    presto__shard_writer_options_defaults(&options);
    options.sync = false;
    const char *path = m->paths[shard];
    bench_need(presto__shard_writer_open(path, &options, &writer, &err), &err, path);
    for (uint64_t i = m->records * shard / SHARDS; i < m->records * (shard + 1) / SHARDS; i++)
        bench_need(presto__shard_writer_append(
                       writer, presto_span_of(bytes + i % 64, m->record_bytes), &err),
                   &err, path);
    bench_need(presto__shard_writer_finish(writer, NULL, &err), &err, path);
    presto__shard_writer_free(writer);
}

static void make_material(material *m, size_t record_bytes, size_t mebibytes, const char *folder) {
    presto_error err;
    uint8_t *bytes = malloc(record_bytes + 64);
    for (size_t i = 0; i < record_bytes + 64; i++)
        bytes[i] = (uint8_t)(i * 2654435761u >> 13);
    const char *paths[SHARDS];
    m->record_bytes = record_bytes;
    m->records = ((uint64_t)mebibytes << 20) / record_bytes;
    for (size_t i = 0; i < SHARDS; i++) {
        snprintf(m->paths[i], sizeof m->paths[i], "%s/bench-raw-%ld-%zu.tfrecord", folder,
                 (long)getpid(), i);
        paths[i] = m->paths[i];
        write_shard(m, i, bytes);
    }
    free(bytes);
    bench_need(presto_dataset_open(paths, SHARDS, NULL, &m->dataset, &err), &err, folder);
    bench_need(presto__source_open_records(m->dataset, &m->source, &err), &err, folder);
}

static void remove_material(material *m) {
    char path[sizeof m->paths[0] + 8];
    presto__source_free(m->source);
    presto_dataset_free(m->dataset);
    for (size_t i = 0; i < SHARDS; i++) {
        snprintf(path, sizeof path, "%s.index", m->paths[i]);
        unlink(path);
        unlink(m->paths[i]);
    }
}

/* Each thread takes every so many-th shard, block by block, into memory that stays in the cache. */
static void scan_thread(void *user, unsigned thread) {
    const task *t = user;
    const material *m = t->m;
    presto_block block = {0};
    presto_error err;
    size_t step = FETCH_BYTES / m->record_bytes + 1;
    for (size_t s = thread; s < SHARDS; s += t->threads) {
        presto_shard *shard;
        bench_need(presto_dataset_shard_at(m->dataset, s, &shard, &err), &err, "shard");
        uint64_t records = presto_shard_records(shard);
        for (uint64_t first = 0; first < records; first += step) {
            size_t count = records - first < step ? (size_t)(records - first) : step;
            bench_need(presto_shard_fetch(shard, first, count, &block, &err), &err, "fetch");
            for (size_t i = 0; i < block.record_count; i++)
                bench_need(block.records[i].status, NULL, "record");
        }
    }
    presto_block_done(&block);
}

static void run_loader(const task *t) {
    static const presto_output_kind outputs[WAYS] = {PRESTO_OUTPUT_COUNT, PRESTO_OUTPUT_COUNT,
                                                     PRESTO_OUTPUT_BATCHES, PRESTO_OUTPUT_RECORDS};
    presto_error err;
    presto_loader_options options;
    presto_loader_options_defaults(&options);
    options.threads = t->threads;
    options.output = outputs[t->way];
    options.batch_samples = BATCH_ROWS;
    presto_loader *loader;
    bench_need(presto__loader_open(t->m->source, NULL, &options, &loader, &err), &err, "loader");
    presto_batch *batch;
    uint64_t samples = 0;
    int status;
    while ((status = presto_loader_next(loader, &batch, &err)) == PRESTO_OK) {
        samples += batch->rows;
        presto_batch_release(batch);
    }
    if (status < 0)
        bench_need(status, &err, "next");
    presto_loader_free(loader);
    if (samples != t->m->records)
        bench_die("%" PRIu64 " records instead of %" PRIu64, samples, t->m->records);
}

static double run_task(void *user) {
    task *t = user;
    if (t->way == WAY_SCAN)
        bench_on_threads(t->threads, scan_thread, t);
    else
        run_loader(t);
    return (double)t->m->records;
}

static void note_ratios(const bench_case *cases, size_t record_bytes) {
    char row[32], column[64];
    snprintf(row, sizeof row, "%zu", record_bytes);
    for (unsigned t = 0; t < MAX_THREADS; t++) {
        const bench_case *of_threads = &cases[(size_t)t * WAYS];
        const bench_case *scan = &of_threads[WAY_SCAN];
        for (size_t w = WAY_COUNT; w < WAYS; w++) {
            snprintf(column, sizeof column, "%s / scan, %u thread%s", way_names[w], t + 1,
                     t == 0 ? "" : "s");
            bench_note("raw.clock", row, column, bench_compare(&of_threads[w], scan));
            bench_note("raw.cpu", row, column, bench_compare_cpu(&of_threads[w], scan));
        }
    }
}

static void measure(size_t record_bytes, size_t mebibytes, unsigned rounds, const char *folder) {
    material m = {.record_bytes = record_bytes};
    task tasks[CASES];
    bench_case cases[CASES] = {{0}};
    char names[CASES][64], title[64];
    make_material(&m, record_bytes, mebibytes, folder);
    for (unsigned i = 0; i < CASES; i++) {
        tasks[i] = (task){.m = &m, .way = (way)(i % WAYS), .threads = i / WAYS + 1};
        snprintf(names[i], sizeof names[i], "%s, %u thread%s", way_names[i % WAYS],
                 tasks[i].threads, tasks[i].threads == 1 ? "" : "s");
        cases[i].name = names[i];
        cases[i].run = run_task;
        cases[i].user = &tasks[i];
    }
    bench_run(cases, CASES, rounds);
    remove_material(&m);
    snprintf(title, sizeof title, "records of %zu bytes", record_bytes);
    bench_print(title, cases, CASES, 1e6, "M records/s");
    note_ratios(cases, record_bytes);
}

int main(int argc, char **argv) {
    size_t mebibytes = 512, count = 0, sizes[MAX_SIZES];
    unsigned rounds = 7;
    const char *folder = "/tmp";
    for (int option; (option = getopt(argc, argv, "m:o:r:s:w:")) != -1;) {
        if (option == 'm')
            mebibytes = strtoul(optarg, NULL, 10);
        else if (option == 'o')
            bench_figures_to(optarg);
        else if (option == 'r')
            rounds = (unsigned)strtoul(optarg, NULL, 10);
        else if (option == 's' && count < MAX_SIZES)
            sizes[count++] = strtoul(optarg, NULL, 10);
        else if (option == 'w')
            folder = optarg;
        else
            bench_die("usage: bench_raw [-m MIB] [-r ROUNDS] [-s RECORD_BYTES]... [-w WORK_DIR] "
                      "[-o FIGURES]");
    }
    if (count == 0) {
        count = sizeof default_sizes / sizeof *default_sizes;
        memcpy(sizes, default_sizes, sizeof default_sizes);
    }
    bench_make_folder(folder);
    for (size_t s = 0; s < count; s++)
        measure(sizes[s], mebibytes, rounds, folder);
    return 0;
}
