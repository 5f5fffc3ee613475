/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Storing records again (presto_convert without a pipeline): four shards at once, as --shards makes
 * them, and one after the other, as --shard-bytes does; as they are, against a copy by hand that
 * checks the bytes once and sums them up once on as many threads, a file each; with zstd:1; and
 * compressed as whole files.
 *
 * Usage: bench_convert [-m MIB=512] [-p IN_FLIGHT_MIB] [-r ROUNDS=7] [-s RECORD_KB=160]
 *                      [-w WORK_DIR] [-o FIGURES]
 */
#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <presto/convert.h>
#include <presto/crc32c.h>
#include <presto/example.h>

#include "harness.h"
#include "records/records_internal.h"

#define SHARDS 4
#define PIECE_BYTES ((size_t)256 << 10)
#define GZIP_PART 16 /* of the records: it is so much slower */
#define MAX_CASES 3

typedef struct material {
    char in[512]; /* a file */
    char out[512];
    uint64_t file_bytes;
    uint64_t records;
    size_t prefetch_bytes; /* 0: as conversions choose it */
} material;

typedef enum way { WAY_COPY, WAY_IN_TURN, WAY_AT_ONCE } way;

typedef struct task {
    const material *m;
    way way;
    unsigned threads;
    const char *codec;
    bool gzip;
} task;

/* ---- the input ---- */

static void make_input(material *m, uint64_t bytes, size_t record_bytes) {
    presto_error err;
    size_t values = record_bytes / 4;
    float *x = malloc(values * sizeof *x);
    /* 256 values in no order, as in pixels made floats. */
    uint64_t state = 1;
    for (size_t i = 0; i < values; i++) {
        state = state * 6364136223846793005U + 1442695040888963407U;
        x[i] = (float)(state >> 56) / 127.5F - 1;
    }
    presto_feature feature = {.name = presto_span_of_text("x"), .encoding = PRESTO_ENCODE_TENSOR};
    feature.tensor.spec =
        (presto_tensor_spec){.dtype = PRESTO_FLOAT32, .rank = 1, .dims = {(int64_t)values}};
    feature.tensor.data = x;
    presto_sample sample = {.features = &feature, .feature_count = 1};
    presto_buffer raw = {0};
    bench_need(presto_example_append(&raw, &sample, &err), &err, "example");
    presto__shard_writer_options options;
    presto__shard_writer_options_defaults(&options);
    presto__shard_writer *writer;
    bench_need(presto__shard_writer_open(m->in, &options, &writer, &err), &err, m->in);
    m->records = bytes / raw.bytes;
    for (uint64_t i = 0; i < m->records; i++)
        bench_need(presto__shard_writer_append(writer, presto_buffer_span(&raw), &err), &err,
                   m->in);
    presto__shard_summary summary;
    bench_need(presto__shard_writer_finish(writer, &summary, &err), &err, m->in);
    presto__shard_writer_free(writer);
    m->file_bytes = summary.stored_bytes;
    presto_buffer_done(&raw);
    free(x);
}

static void remove_output(const material *m) {
    DIR *folder = opendir(m->out);
    if (folder == NULL)
        return;
    const struct dirent *entry;
    while ((entry = readdir(folder)) != NULL)
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            unlinkat(dirfd(folder), entry->d_name, 0);
    closedir(folder);
    rmdir(m->out);
}

/* ---- the cases ---- */

/* Each thread copies its share of the file into files of its own: a quarter each. */
static void copy_thread(void *user, unsigned thread) {
    const task *t = user;
    const material *m = t->m;
    uint8_t *piece = malloc(PIECE_BYTES);
    int in = open(m->in, O_RDONLY);
    if (in < 0 || piece == NULL)
        bench_die("%s: cannot read", m->in);
    for (unsigned shard = thread; shard < SHARDS; shard += t->threads) {
        char path[600];
        snprintf(path, sizeof path, "%s/%u", m->out, shard);
        int out = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0666);
        uint64_t at = m->file_bytes * shard / SHARDS, end = m->file_bytes * (shard + 1) / SHARDS;
        uint32_t checked = 0, summed = 0;
        while (at < end) {
            size_t want = end - at < PIECE_BYTES ? (size_t)(end - at) : PIECE_BYTES;
            if (pread(in, piece, want, (off_t)at) != (ssize_t)want)
                bench_die("%s: cannot read", m->in);
            checked = presto_crc32c(checked, piece, want);
            summed = presto_crc32c(summed, piece, want);
            if (out < 0 || write(out, piece, want) != (ssize_t)want)
                bench_die("%s: cannot write", path);
            at += want;
        }
        if (checked != summed || fsync(out) != 0 || close(out) != 0)
            bench_die("%s: cannot write", path);
    }
    close(in);
    free(piece);
}

static double convert(const task *t) {
    presto_error err;
    presto_convert_options options;
    presto_convert_result result;
    presto_convert_options_defaults(&options);
    options.threads = t->threads;
    options.codec = t->codec;
    options.prefetch_bytes = t->m->prefetch_bytes;
    options.file_compression = t->gzip ? PRESTO_FILE_GZIP : PRESTO_FILE_PLAIN;
    uint64_t bytes = t->m->file_bytes;
    if (t->gzip) {
        options.limit_samples = t->m->records / GZIP_PART;
        bytes = bytes * options.limit_samples / t->m->records;
    }
    if (t->way == WAY_AT_ONCE)
        options.shards = SHARDS;
    else /* of frames: codecs make the last one smaller, never more of them */
        options.shard_bytes = bytes / SHARDS + bytes / t->m->records;
    options.dir = t->m->out;
    const char *path = t->m->in;
    bench_need(presto_convert(&path, 1, &options, &result, &err), &err, path);
    return (double)bytes;
}

static double run_task(void *user) {
    task *t = user;
    double bytes = (double)t->m->file_bytes;
    remove_output(t->m);
    bench_restart();
    if (t->way == WAY_COPY) {
        mkdir(t->m->out, 0777);
        bench_on_threads(t->threads, copy_thread, t);
    } else {
        bytes = convert(t);
    }
    bench_stop();
    remove_output(t->m);
    return bytes;
}

/* One table: with or without the copy by hand. */
static void run_table(const char *title, task *tasks, size_t count, unsigned rounds) {
    static const char *const names[] = {"copy by hand", "one shard after the other",
                                        "several shards at once"};
    bench_case cases[MAX_CASES] = {0};
    for (size_t i = 0; i < count; i++)
        cases[i] = (bench_case){.name = names[tasks[i].way], .run = run_task, .user = &tasks[i]};
    bench_run(cases, count, rounds);
    bench_print(title, cases, count, 1e9, "GB/s");
    for (size_t i = 0; i < count; i++) {
        char column[64];
        snprintf(column, sizeof column, "%s, GB/s", cases[i].name);
        bench_note("convert", title, column,
                   (bench_figure){bench_median(&cases[i]) / 1e9, bench_spread(&cases[i])});
    }
    bench_note("convert", title, "at once / one after the other",
               bench_compare(&cases[1], &cases[0]));
}

static void run_tables(const material *m, unsigned threads, unsigned rounds) {
    char title[80];
    task plain[] = {{m, WAY_IN_TURN, threads, "none", false},
                    {m, WAY_AT_ONCE, threads, "none", false},
                    {m, WAY_COPY, threads, "none", false}};
    snprintf(title, sizeof title, "as they are, %u thread%s", threads, threads == 1 ? "" : "s");
    run_table(title, plain, 3, rounds);
    task zstd[] = {{m, WAY_IN_TURN, threads, "zstd:1", false},
                   {m, WAY_AT_ONCE, threads, "zstd:1", false}};
    snprintf(title, sizeof title, "zstd:1, %u thread%s", threads, threads == 1 ? "" : "s");
    run_table(title, zstd, 2, rounds);
    task gzip[] = {{m, WAY_IN_TURN, threads, "none", true},
                   {m, WAY_AT_ONCE, threads, "none", true}};
    snprintf(title, sizeof title, "gzip as whole files, %u thread%s", threads,
             threads == 1 ? "" : "s");
    run_table(title, gzip, 2, rounds);
}

int main(int argc, char **argv) {
    uint64_t mebibytes = 512;
    unsigned rounds = 7;
    size_t kilobytes = 160;
    const char *folder = "/tmp";
    material m = {0};
    for (int option; (option = getopt(argc, argv, "m:o:p:r:s:w:")) != -1;) {
        if (option == 'm')
            mebibytes = strtoull(optarg, NULL, 10);
        else if (option == 'o')
            bench_figures_to(optarg);
        else if (option == 'p')
            m.prefetch_bytes = (size_t)strtoull(optarg, NULL, 10) << 20;
        else if (option == 'r')
            rounds = (unsigned)strtoul(optarg, NULL, 10);
        else if (option == 's')
            kilobytes = strtoul(optarg, NULL, 10);
        else if (option == 'w')
            folder = optarg;
        else
            bench_die("usage: bench_convert [-m MIB] [-p IN_FLIGHT_MIB] [-r ROUNDS] [-s RECORD_KB] "
                      "[-w WORK_DIR] [-o FIGURES]");
    }
    bench_make_folder(folder);
    snprintf(m.in, sizeof m.in, "%s/bench-convert-%ld.tfrecord", folder, (long)getpid());
    snprintf(m.out, sizeof m.out, "%s/bench-convert-%ld", folder, (long)getpid());
    make_input(&m, mebibytes << 20, kilobytes * 1000);
    for (unsigned threads = 1; threads <= 2; threads++)
        run_tables(&m, threads, rounds);
    char index[600];
    snprintf(index, sizeof index, "%s.index", m.in);
    unlink(index);
    unlink(m.in);
    return 0;
}
