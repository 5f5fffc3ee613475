/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Records of 20 floats, 9 int64s and a short text, from the page cache: the loader's batches of
 * 1024 rows, against a verified scan of the same shards, alone and with each record parsed by
 * itself.
 */
#include "loader_tables.h"
#include "base/rng_internal.h"
#include "loader/loader_internal.h"
#include "records/records_internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <presto/example.h>
#include <presto/loader.h>
#include <presto/rng.h>

#include "harness.h"

#define SHARDS 4
#define FLOATS 20
#define INT64S 9
#define FEATURES (FLOATS + INT64S + 1)
#define BATCH_ROWS 1024
#define FETCH_RECORDS 256

typedef enum way { WAY_SCAN, WAY_PARSE, WAY_BATCHES } way;

#define WAYS ((size_t)3)
#define CASES (2 * WAYS)

typedef struct tables {
    char paths[SHARDS][600];
    uint64_t samples;
    presto_dataset *dataset;
    presto_source *source;
} tables;

typedef struct task {
    tables *t;
    way way;
    unsigned threads;
} task;

/* ---- the records ---- */

/* One row; most int64s take one to three bytes, as counts and classes do. */
static void write_row(presto__shard_writer *writer, presto_rng *rng, presto_buffer *raw) {
    static char names[FEATURES][16];
    presto_error err;
    presto_feature features[FEATURES];
    float floats[FLOATS];
    int64_t int64s[INT64S];
    uint8_t text[24];
    for (size_t i = 0; i < FEATURES; i++) {
        snprintf(names[i], sizeof names[i], "feature_%02zu", i);
        features[i] = (presto_feature){.name = presto_span_of_text(names[i])};
        presto_tensor *tensor = &features[i].tensor;
        if (i < FLOATS) {
            floats[i] = (float)presto_rng_uniform(rng);
            features[i].encoding = PRESTO_ENCODE_FLOAT;
            tensor->spec.dtype = PRESTO_FLOAT32;
            tensor->data = &floats[i];
        } else if (i < FLOATS + INT64S) {
            int64s[i - FLOATS] =
                (int64_t)(presto_rng_below(rng, 1 << 21) >> presto_rng_below(rng, 21));
            features[i].encoding = PRESTO_ENCODE_INT64;
            tensor->spec.dtype = PRESTO_INT64;
            tensor->data = &int64s[i - FLOATS];
        }
    }
    for (size_t i = 0; i < sizeof text; i++)
        text[i] = (uint8_t)('a' + presto_rng_below(rng, 26));
    presto_span string = presto_span_of(text, 4 + (size_t)presto_rng_below(rng, sizeof text - 4));
    features[FEATURES - 1].encoding = PRESTO_ENCODE_BYTES;
    features[FEATURES - 1].tensor.spec.dtype = PRESTO_STRING;
    features[FEATURES - 1].tensor.strings = &string;
    presto_sample sample = {.features = features, .feature_count = FEATURES};
    raw->bytes = 0;
    bench_need(presto_example_append(raw, &sample, &err), &err, "example");
    bench_need(presto__shard_writer_append(writer, presto_buffer_span(raw), &err), &err, "append");
}

static void make_tables(tables *t, const char *folder) {
    presto_error err;
    presto_buffer raw = {0};
    const char *paths[SHARDS];
    for (size_t s = 0; s < SHARDS; s++) {
        presto_rng rng;
        presto__rng_init(&rng, &(presto__rng_key){.sample = s});
        snprintf(t->paths[s], sizeof t->paths[s], "%s/bench-tables-%ld-%zu.tfrecord", folder,
                 (long)getpid(), s);
        paths[s] = t->paths[s];
        presto__shard_writer_options options;
        presto__shard_writer_options_defaults(&options);
        options.sync = false;
        presto__shard_writer *writer;
        bench_need(presto__shard_writer_open(t->paths[s], &options, &writer, &err), &err, "open");
        for (uint64_t i = t->samples * s / SHARDS; i < t->samples * (s + 1) / SHARDS; i++)
            write_row(writer, &rng, &raw);
        presto__shard_summary summary;
        bench_need(presto__shard_writer_finish(writer, &summary, &err), &err, "finish");
        presto__shard_writer_free(writer);
    }
    presto_buffer_done(&raw);
    presto_shard_options options;
    presto_shard_options_defaults(&options);
    bench_need(presto_dataset_open(paths, SHARDS, &options, &t->dataset, &err), &err, folder);
    bench_need(presto__source_open_dataset(t->dataset, &t->source, &err), &err, folder);
}

static void remove_tables(tables *t) {
    char path[700];
    presto__source_free(t->source);
    presto_dataset_free(t->dataset);
    for (size_t s = 0; s < SHARDS; s++) {
        snprintf(path, sizeof path, "%s.index", t->paths[s]);
        unlink(path);
        unlink(t->paths[s]);
    }
}

/* ---- the cases ---- */

static void scan_thread(void *user, unsigned thread) {
    const task *k = user;
    presto_block block = {0};
    presto_arena arena = {0};
    presto_error err;
    for (size_t s = thread; s < SHARDS; s += k->threads) {
        presto_shard *shard;
        bench_need(presto_dataset_shard_at(k->t->dataset, s, &shard, &err), &err, "shard");
        bench_need(presto_shard_index(shard, false, NULL, &err), &err, "index");
        uint64_t records = presto_shard_records(shard);
        for (uint64_t first = 0; first < records; first += FETCH_RECORDS) {
            uint64_t left = records - first;
            size_t count = left < FETCH_RECORDS ? (size_t)left : FETCH_RECORDS;
            bench_need(presto_shard_fetch(shard, first, count, &block, &err), &err, "fetch");
            for (size_t i = 0; k->way == WAY_PARSE && i < block.record_count; i++) {
                presto_sample sample;
                presto_arena_reset(&arena);
                bench_need(
                    presto_example_parse(block.records[i].payload, NULL, &arena, &sample, &err),
                    &err, "parse");
                if (sample.feature_count != FEATURES)
                    bench_die("%zu features", sample.feature_count);
            }
        }
    }
    presto_block_done(&block);
    presto_arena_done(&arena);
}

static void load(const task *k) {
    presto_error err;
    presto_loader_options options;
    presto_loader_options_defaults(&options);
    options.threads = k->threads;
    options.batch_samples = BATCH_ROWS;
    presto_loader *loader;
    bench_need(presto__loader_open(k->t->source, NULL, &options, &loader, &err), &err, "loader");
    presto_batch *batch;
    uint64_t samples = 0;
    int status;
    while ((status = presto_loader_next(loader, &batch, &err)) == PRESTO_OK) {
        samples += batch->rows;
        if (batch->feature_count != FEATURES)
            bench_die("%zu features in a batch", batch->feature_count);
        presto_batch_release(batch);
    }
    if (status < 0)
        bench_need(status, &err, "next");
    presto_loader_free(loader);
    if (samples != k->t->samples)
        bench_die("%llu samples", (unsigned long long)samples);
}

static double run_task(void *user) {
    task *k = user;
    if (k->way == WAY_BATCHES)
        load(k);
    else
        bench_on_threads(k->threads, scan_thread, k);
    return (double)k->t->samples;
}

/* ---- the report ---- */

static void note(const char *row, const char *column, bench_figure figure) {
    bench_note("loader.tables", row, column, figure);
}

void bench_tables(const char *folder, uint64_t samples, unsigned rounds) {
    static const char *const names[WAYS] = {"verified scan", "scan + parse", "loader, batches"};
    tables t = {.samples = samples};
    task tasks[CASES];
    bench_case cases[CASES] = {0};
    char texts[CASES][64];
    make_tables(&t, folder);
    for (size_t i = 0; i < CASES; i++) {
        tasks[i] = (task){.t = &t, .way = (way)(i % WAYS), .threads = i < WAYS ? 1 : 2};
        snprintf(texts[i], sizeof texts[i], "%s, %u thread%s", names[i % WAYS], tasks[i].threads,
                 tasks[i].threads == 1 ? "" : "s");
        cases[i].name = texts[i];
        cases[i].run = run_task;
        cases[i].user = &tasks[i];
    }
    bench_run(cases, CASES, rounds);
    bench_print("tables: 20 floats, 9 int64s, a text", cases, CASES, 1e6, "M samples/s");
    for (size_t first = 0; first < CASES; first += WAYS) {
        const bench_case *of = &cases[first];
        const char *row = first == 0 ? "1 thread" : "2 threads";
        double millions[BENCH_MAX_ROUNDS];
        for (unsigned i = 0; i < rounds; i++)
            millions[i] = of[WAY_BATCHES].in_turn[i] / 1e6;
        note(row, "million samples/s", bench_figure_of(millions, rounds));
        note(row, "batches / scan", bench_compare(&of[WAY_BATCHES], &of[WAY_SCAN]));
        note(row, "batches / scan + parse", bench_compare(&of[WAY_BATCHES], &of[WAY_PARSE]));
        note(row, "the same by processor time",
             bench_compare_cpu(&of[WAY_BATCHES], &of[WAY_PARSE]));
    }
    remove_tables(&t);
}
