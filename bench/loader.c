/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The loader on float32 tensors of 0.01 to 20 MB in the page cache, against bare loops on as many
 * threads:
 *
 *   - samples as views, against a verified scan of the same shards: into one buffer that stays in
 *     the processor's cache, and into 16 MiB used in turn, as a loader needs for what is on its way
 *     to the consumer;
 *   - batches, against the scan followed by one memcpy;
 *   - the second epoch from the memory cache, against one memcpy of as many bytes;
 *   - the second epoch from a cache on disk, against the scan followed by one memcpy.
 *
 * Tables of many small features are in loader_tables.c.
 *
 * Two tables of ratios: by the clock, and by processor time, which is what can still be compared
 * while others use the machine. Ratios are taken within a round.
 *
 * Usage: bench_loader [-m MIB-PER-SIZE=1024] [-r ROUNDS=7] [-s SAMPLE_KB]... [-w WORK_DIR]
 *                     [-o FIGURES]
 */
#include <dirent.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <presto/crc32c.h>
#include <presto/example.h>
#include <presto/loader.h>

#include "base/clock_internal.h"
#include "harness.h"
#include "loader/loader_internal.h"
#include "loader_tables.h"
#include "records/records_internal.h"

#define SHARDS 4
#define FETCH_BYTES ((size_t)256 << 10)
#define HOT_BYTES ((size_t)16 << 10)
/* Of FETCH_BYTES: about what is on its way between workers and consumer. */
#define ROUND_BLOCKS 64

#define MAX_SIZES 16
#define WAYS 9
#define MAX_THREADS 2
#define CASES ((size_t)WAYS * MAX_THREADS)

static const size_t default_kilobytes[] = {10, 40, 160, 640, 2500, 10000, 20000};

typedef struct material {
    char dir[512];
    size_t sample_bytes;
    uint64_t samples;
    presto_dataset *dataset;
    presto_source *source;
    uint8_t *memory; /* as many bytes as all samples have */
} material;

/* ---- making the datasets ---- */

static void write_shard(material *m, size_t shard, const float *x, presto_dataset_shard *entry) {
    presto_error err;
    char name[64], path[600];
    snprintf(name, sizeof name, "data-%05zu-of-%05d.tfrecord", shard, SHARDS);
    snprintf(path, sizeof path, "%s/%s", m->dir, name);
    presto__shard_writer_options options;
    presto__shard_writer_options_defaults(&options);
    options.sync = false;
    presto__shard_writer *writer;
    bench_need(presto__shard_writer_open(path, &options, &writer, &err), &err, path);
    presto_buffer raw = {0};
    for (uint64_t i = m->samples * shard / SHARDS; i < m->samples * (shard + 1) / SHARDS; i++) {
        int64_t label = (int64_t)(i % 10);
        presto_feature features[2] = {
            {.name = presto_span_of_text("label"), .encoding = PRESTO_ENCODE_INT64},
            {.name = presto_span_of_text("x"), .encoding = PRESTO_ENCODE_TENSOR}};
        features[0].tensor.spec = (presto_tensor_spec){.dtype = PRESTO_INT64};
        features[0].tensor.data = &label;
        features[1].tensor.spec = (presto_tensor_spec){
            .dtype = PRESTO_FLOAT32, .rank = 1, .dims = {(int64_t)(m->sample_bytes / 4)}};
        features[1].tensor.data = x;
        presto_sample sample = {.features = features, .feature_count = 2};
        raw.bytes = 0;
        bench_need(presto_example_append(&raw, &sample, &err), &err, "example");
        bench_need(presto__shard_writer_append(writer, presto_buffer_span(&raw), &err), &err, path);
        entry->raw_bytes += raw.bytes;
    }
    presto_buffer_done(&raw);
    presto__shard_summary summary;
    bench_need(presto__shard_writer_finish(writer, &summary, &err), &err, path);
    presto__shard_writer_free(writer);
    entry->file = strdup(name);
    entry->records = summary.records;
    entry->stored_bytes = summary.stored_bytes;
    entry->crc32c = summary.crc32c;
}

static void make_material(material *m) {
    presto_error err;
    float *x = malloc(m->sample_bytes);
    for (size_t i = 0; i < m->sample_bytes / 4; i++)
        x[i] = (float)(i * 2654435761u % 1000) / 1000;
    presto_dataset_info info = {0};
    info.shards = calloc(SHARDS, sizeof *info.shards);
    info.shard_count = SHARDS;
    mkdir(m->dir, 0777);
    for (size_t i = 0; i < SHARDS; i++)
        write_shard(m, i, x, &info.shards[i]);
    free(x);
    info.features = calloc(2, sizeof *info.features);
    info.feature_count = 2;
    info.features[0] = (presto_feature_spec){
        .name = strdup("label"), .encoding = PRESTO_ENCODE_INT64, .spec = {.dtype = PRESTO_INT64}};
    info.features[1] = (presto_feature_spec){
        .name = strdup("x"),
        .encoding = PRESTO_ENCODE_TENSOR,
        .spec = {.dtype = PRESTO_FLOAT32, .rank = 1, .dims = {(int64_t)(m->sample_bytes / 4)}}};
    info.main_feature = strdup("x");
    info.codec = strdup("none");
    info.tool_version = strdup("bench");
    bench_need(presto__dataset_info_write(m->dir, &info, false, &err), &err, m->dir);
    presto__dataset_info_free(&info);
    presto_shard_options options;
    presto_shard_options_defaults(&options);
    const char *path = m->dir;
    bench_need(presto_dataset_open(&path, 1, &options, &m->dataset, &err), &err, m->dir);
    bench_need(presto__source_open_dataset(m->dataset, &m->source, &err), &err, m->dir);
    m->memory = malloc(m->samples * m->sample_bytes);
    if (m->memory == NULL)
        bench_die("no memory");
    memset(m->memory, 1, m->samples * m->sample_bytes);
}

/* The disk cache of this material. */
static void remove_cache(const material *m) {
    char path[4096];
    snprintf(path, sizeof path, "%s-cache", m->dir);
    DIR *folder = opendir(path);
    if (folder == NULL)
        return;
    const struct dirent *entry;
    while ((entry = readdir(folder)) != NULL)
        if (entry->d_name[0] != '.')
            unlinkat(dirfd(folder), entry->d_name, 0);
    closedir(folder);
    rmdir(path);
}

static void remove_material(material *m) {
    remove_cache(m);
    presto__source_free(m->source);
    char path[4096];
    for (size_t i = 0; i < SHARDS; i++) {
        snprintf(path, sizeof path, "%s.index", presto_dataset_shard_path(m->dataset, i));
        unlink(path);
        unlink(presto_dataset_shard_path(m->dataset, i));
    }
    snprintf(path, sizeof path, "%s/dataset.json", m->dir);
    unlink(path);
    presto_dataset_free(m->dataset);
    rmdir(m->dir);
    free(m->memory);
}

/* ---- the cases ---- */

typedef enum way {
    WAY_SCAN,
    WAY_COPY,
    WAY_VIEWS,
    WAY_BATCHES,
    WAY_MEMCPY,
    WAY_CACHED,
    WAY_DISK,
    WAY_HOT,
    WAY_ROUND
} way;

typedef struct task {
    material *m;
    way way;
    unsigned threads;
} task;

static size_t batch_rows(const material *m) {
    size_t rows = ((size_t)4 << 20) / m->sample_bytes;
    return rows < 1 ? 1 : rows > 128 ? 128 : rows;
}

/* Each thread takes every so many-th shard; reads blocks, verified, to memory that stays in the
 * cache or to some that goes round; copies them once if asked. */
static void scan_thread(void *user, unsigned thread) {
    task *t = user;
    const material *m = t->m;
    size_t block_count = t->way == WAY_ROUND ? ROUND_BLOCKS / t->threads : 1, turn = 0;
    presto_block *blocks = calloc(block_count, sizeof *blocks);
    presto_error err;
    size_t step = FETCH_BYTES / m->sample_bytes;
    if (step == 0)
        step = 1;
    uint8_t *copy = malloc(2 * (step * m->sample_bytes + (1 << 20)));
    for (size_t s = thread; s < SHARDS; s += t->threads) {
        presto_shard *shard;
        bench_need(presto_dataset_shard_at(m->dataset, s, &shard, &err), &err, "shard");
        bench_need(presto_shard_index(shard, false, NULL, &err), &err, "index");
        uint64_t records = presto_shard_records(shard);
        for (uint64_t first = 0; first < records; first += step) {
            size_t count = records - first < step ? (size_t)(records - first) : step;
            presto_block *block = &blocks[turn++ % block_count];
            bench_need(presto_shard_fetch(shard, first, count, block, &err), &err, "fetch");
            size_t at = 0;
            for (size_t i = 0; i < block->record_count; i++) {
                bench_need(block->records[i].status, NULL, "record");
                if (t->way == WAY_COPY)
                    memcpy(copy + at, block->records[i].payload.data,
                           block->records[i].payload.bytes);
                at += block->records[i].payload.bytes;
            }
        }
    }
    free(copy);
    for (size_t i = 0; i < block_count; i++)
        presto_block_done(&blocks[i]);
    free(blocks);
}

/* The same bytes from one array, batch by batch; no thread waits for another. */
static void memcpy_thread(void *user, unsigned thread) {
    const task *t = user;
    const material *m = t->m;
    size_t rows = batch_rows(m);
    uint8_t *batch = malloc(rows * m->sample_bytes);
    uint64_t end = m->samples * (thread + 1) / t->threads;
    for (uint64_t i = m->samples * thread / t->threads; i < end; i++)
        memcpy(batch + i % rows * m->sample_bytes, m->memory + i * m->sample_bytes,
               m->sample_bytes);
    free(batch);
}

/* As many bytes, checked in the first-level cache: what the machine's processors give, whatever its
 * memory does. */
static void hot_thread(void *user, unsigned thread) {
    const task *t = user;
    const material *m = t->m;
    uint8_t *bytes = malloc(HOT_BYTES);
    memset(bytes, (int)thread, HOT_BYTES);
    uint32_t crc = 0;
    for (uint64_t left = m->samples * m->sample_bytes / t->threads; left >= HOT_BYTES;
         left -= HOT_BYTES)
        crc = presto_crc32c(crc, bytes, HOT_BYTES);
    if (crc == 1) /* it must be computed */
        bytes[0] = 0;
    free(bytes);
}

static void run_loader(task *t) {
    presto_error err;
    presto_loader_options options;
    presto_loader_options_defaults(&options);
    options.threads = t->threads;
    options.batch_samples = t->way == WAY_VIEWS ? 1 : batch_rows(t->m);
    options.unaligned_views = t->way == WAY_VIEWS;
    char cache_dir[600];
    bool is_second_epoch = t->way == WAY_CACHED || t->way == WAY_DISK;
    if (is_second_epoch) {
        options.range.epochs = 2;
        options.cache.bytes = t->m->samples * (t->m->sample_bytes + 1024) + ((size_t)1 << 20);
    }
    if (t->way == WAY_DISK) {
        /* The folder stays from round to round, so that only the first one fills it. */
        snprintf(cache_dir, sizeof cache_dir, "%s-cache", t->m->dir);
        options.cache.dir = cache_dir;
    }
    presto_loader *loader;
    bench_need(presto__loader_open(t->m->source, NULL, &options, &loader, &err), &err, "loader");
    presto_batch *batch;
    uint64_t samples = 0;
    int status;
    while ((status = presto_loader_next(loader, &batch, &err)) == PRESTO_OK) {
        samples += batch->rows;
        bool was_first_epoch = is_second_epoch && batch->epoch == 0 && samples == t->m->samples;
        presto_batch_release(batch);
        if (was_first_epoch) {
            samples = 0;
            bench_restart();
        }
    }
    if (status < 0)
        bench_need(status, &err, "next");
    if (is_second_epoch)
        bench_stop();
    presto_loader_stats stats;
    presto_loader_get_stats(loader, &stats);
    if (is_second_epoch && stats.cached_samples < t->m->samples / 10 * 9)
        bench_die("the cache had only %" PRIu64 " samples", stats.cached_samples);
    presto_loader_free(loader);
    if (samples != t->m->samples)
        bench_die("%" PRIu64 " samples instead of %" PRIu64, samples, t->m->samples);
}

static double run_task(void *user) {
    task *t = user;
    if (t->way == WAY_SCAN || t->way == WAY_COPY || t->way == WAY_ROUND)
        bench_on_threads(t->threads, scan_thread, t);
    else if (t->way == WAY_MEMCPY)
        bench_on_threads(t->threads, memcpy_thread, t);
    else if (t->way == WAY_HOT)
        bench_on_threads(t->threads, hot_thread, t);
    else
        run_loader(t);
    return (double)t->m->samples * (double)t->m->sample_bytes;
}

static void name_case(char *text, size_t bytes, const task *t) {
    static const char *const names[] = {"verified scan",
                                        "scan + memcpy",
                                        "loader, views",
                                        "loader, batches",
                                        "memcpy",
                                        "loader, from the cache",
                                        "loader, from a cache on disk",
                                        "CRC in the cache",
                                        "scan, memory goes round"};
    snprintf(text, bytes, "%s, %u thread%s", names[t->way], t->threads, t->threads == 1 ? "" : "s");
}

/* ---- the report ---- */

typedef struct size_row {
    material m;
    task tasks[CASES];
    bench_case cases[CASES];
    char names[CASES][64];
} size_row;

static const bench_case *case_of(const size_row *row, way w, unsigned threads) {
    return &row->cases[(threads - 1) * WAYS + w];
}

/* Print a figure, and note it as that of `row` in the table of this name. */
static void put_figure(const char *table, const size_row *row, const char *column,
                       bench_figure figure) {
    char size[32];
    snprintf(size, sizeof size, "%g", (double)row->m.sample_bytes / 1e6);
    bench_note(table, size, column, figure);
    printf("  %5.2f +-%3.0f%%", figure.median, figure.spread * 100);
}

static void print_ratios(const size_row *rows, size_t count, bool by_cpu) {
    bench_figure (*compare)(const bench_case *, const bench_case *) =
        by_cpu ? bench_compare_cpu : bench_compare;
    printf("\nratios by %s\n%8s  %12s %12s %12s %12s %12s %12s %12s %12s %12s %12s\n",
           by_cpu ? "processor time" : "the clock", "MB", "views/scan 1", "2 thr.", "views/rnd. 1",
           "2 thr.", "batch/copy 1", "2 thr.", "cache/mcpy 1", "2 thr.", "disk/copy 1", "2 thr.");
    for (size_t s = 0; s < count; s++) {
        const size_row *row = &rows[s];
        static const way ours[] = {WAY_VIEWS, WAY_VIEWS, WAY_BATCHES, WAY_CACHED, WAY_DISK};
        static const char *const names[] = {"views / scan", "views / scan, 16 MiB",
                                            "batches / scan + memcpy", "cache / memcpy",
                                            "disk cache / scan + memcpy"};
        static const way bare[] = {WAY_SCAN, WAY_ROUND, WAY_COPY, WAY_MEMCPY, WAY_COPY};
        printf("%8g", (double)row->m.sample_bytes / 1e6);
        for (size_t i = 0; i < sizeof ours / sizeof *ours; i++)
            for (unsigned t = 1; t <= MAX_THREADS; t++) {
                char column[64];
                snprintf(column, sizeof column, "%s, %u thread%s", names[i], t, t == 1 ? "" : "s");
                put_figure(by_cpu ? "loader.cpu" : "loader.clock", row, column,
                           compare(case_of(row, ours[i], t), case_of(row, bare[i], t)));
            }
        putchar('\n');
    }
}

/* What the second thread is worth, to the loader and to the bare loops. */
static void print_scaling(const size_row *rows, size_t count) {
    static const way compared[WAYS] = {WAY_VIEWS,  WAY_SCAN,   WAY_ROUND, WAY_BATCHES, WAY_COPY,
                                       WAY_CACHED, WAY_MEMCPY, WAY_DISK,  WAY_HOT};
    static const char *const names[WAYS] = {"views",   "scan",        "scan, round",
                                            "batches", "scan+memcpy", "cache",
                                            "memcpy",  "disk cache",  "CRC, no mem."};
    printf("\ntwo threads over one, by the clock\n%8s", "MB");
    for (size_t i = 0; i < WAYS; i++)
        printf("  %12s", names[i]);
    putchar('\n');
    for (size_t s = 0; s < count; s++) {
        printf("%8g", (double)rows[s].m.sample_bytes / 1e6);
        for (size_t i = 0; i < WAYS; i++)
            put_figure("loader.threads", &rows[s], names[i],
                       bench_compare(case_of(&rows[s], compared[i], 2),
                                     case_of(&rows[s], compared[i], 1)));
        putchar('\n');
    }
}

static void print_switches(const size_row *rows, size_t count) {
    printf("\ncontext switches a second: given up + taken away by others\n%8s", "MB");
    static const char *const names[] = {"views 1", "batches 1", "views 2", "batches 2"};
    for (size_t i = 0; i < 4; i++)
        printf("  %14s", names[i]);
    putchar('\n');
    for (size_t s = 0; s < count; s++) {
        printf("%8g", (double)rows[s].m.sample_bytes / 1e6);
        for (unsigned t = 1; t <= MAX_THREADS; t++)
            for (way w = WAY_VIEWS; w <= WAY_BATCHES; w++) {
                const bench_case *c = case_of(&rows[s], w, t);
                bench_figure given_up = bench_figure_of(c->switches, c->rounds);
                bench_figure taken = bench_figure_of(c->preempted, c->rounds);
                char size[32], column[64];
                snprintf(size, sizeof size, "%g", (double)rows[s].m.sample_bytes / 1e6);
                snprintf(column, sizeof column, "%s, given up", names[2 * (t - 1) + w - WAY_VIEWS]);
                bench_note("loader.switches", size, column, given_up);
                snprintf(column, sizeof column, "%s, taken", names[2 * (t - 1) + w - WAY_VIEWS]);
                bench_note("loader.switches", size, column, taken);
                printf("  %6.0f + %5.0f", given_up.median, taken.median);
            }
        putchar('\n');
    }
}

/* The paper's figure: how much longer the same bytes take in small samples. */
static void print_small_to_large(const size_row *small, const size_row *large) {
    printf("\ntime at %g MB over time at %g MB:", (double)small->m.sample_bytes / 1e6,
           (double)large->m.sample_bytes / 1e6);
    static const way compared[] = {WAY_VIEWS, WAY_SCAN, WAY_BATCHES, WAY_COPY};
    static const char *const names[] = {"views", "scan", "batches", "scan+memcpy"};
    for (unsigned t = 1; t <= MAX_THREADS; t++) {
        printf("%s %u thread%s", t == 1 ? "" : ";", t, t == 1 ? "" : "s");
        for (size_t i = 0; i < 4; i++)
            printf(", %s %.2f", names[i],
                   bench_median(case_of(large, compared[i], t)) /
                       bench_median(case_of(small, compared[i], t)));
    }
    putchar('\n');
}

static void make_row(size_row *row, size_t kilobytes, size_t mebibytes, const char *folder) {
    material *m = &row->m;
    m->sample_bytes = kilobytes * 1000;
    m->samples = ((uint64_t)mebibytes << 20) / m->sample_bytes;
    snprintf(m->dir, sizeof m->dir, "%s/bench-loader-%ld-%zu", folder, (long)getpid(), kilobytes);
    make_material(m);
    for (unsigned i = 0; i < CASES; i++) {
        row->tasks[i] = (task){.m = m, .way = (way)(i % WAYS), .threads = i / WAYS + 1};
        name_case(row->names[i], sizeof row->names[i], &row->tasks[i]);
        row->cases[i].name = row->names[i];
        row->cases[i].run = run_task;
        row->cases[i].user = &row->tasks[i];
    }
}

int main(int argc, char **argv) {
    size_t mebibytes = 1024;
    unsigned rounds = 7;
    const char *folder = "/tmp";
    size_t kilobytes[MAX_SIZES], count = 0;
    for (int option; (option = getopt(argc, argv, "m:o:r:s:w:")) != -1;) {
        if (option == 'm')
            mebibytes = strtoul(optarg, NULL, 10);
        else if (option == 'o')
            bench_figures_to(optarg);
        else if (option == 'r')
            rounds = (unsigned)strtoul(optarg, NULL, 10);
        else if (option == 's' && count < MAX_SIZES)
            kilobytes[count++] = strtoul(optarg, NULL, 10);
        else if (option == 'w')
            folder = optarg;
        else
            bench_die("usage: bench_loader [-m MIB] [-r ROUNDS] [-s SAMPLE_KB]... [-w WORK_DIR] "
                      "[-o FIGURES]");
    }
    if (count == 0) {
        count = sizeof default_kilobytes / sizeof *default_kilobytes;
        memcpy(kilobytes, default_kilobytes, sizeof default_kilobytes);
    }
    bench_make_folder(folder);
    size_row *rows = calloc(count, sizeof *rows);
    for (size_t s = 0; s < count; s++) {
        make_row(&rows[s], kilobytes[s], mebibytes, folder);
        bench_run(rows[s].cases, CASES, rounds);
        remove_material(&rows[s].m);
        char title[64];
        snprintf(title, sizeof title, "samples of %g MB", (double)kilobytes[s] / 1000);
        bench_print(title, rows[s].cases, CASES, 1e9, "GB/s");
    }
    print_ratios(rows, count, false);
    print_ratios(rows, count, true);
    print_scaling(rows, count);
    print_switches(rows, count);
    print_small_to_large(&rows[0], &rows[count - 1]);
    free(rows);
    bench_tables(folder, (uint64_t)mebibytes << 10, rounds);
    return 0;
}
