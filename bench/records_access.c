/* SPDX-License-Identifier: Apache-2.0 */
/* Opening a file of many records, and single records at random. */
#include "base/rng_internal.h"
#include "records.h"
#include "records/records_internal.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include <presto/rng.h>

/* Single records at random, both CRCs: what is picked, and the two ways to have it. */
typedef struct single_case {
    records_file file;
    bool map;
    presto_block block;
    uint8_t *buffer;
    presto_rng rng;
} single_case;

static void single_presto(single_case *c) {
    uint64_t i = presto_rng_below(&c->rng, c->file.records);
    MUST(presto_shard_fetch(c->file.shard, i, 1, &c->block, &records_err));
    MUST(c->block.records[0].status);
}

/* Where the record stands is known without an index: all are of one size. */
static void single_by_hand(single_case *c) {
    size_t frame = c->file.record_bytes + PRESTO_FRAME_OVERHEAD_BYTES, used;
    uint64_t offset = presto_rng_below(&c->rng, c->file.records) * frame;
    const uint8_t *at = c->buffer;
    if (c->map)
        at = c->file.map + offset;
    else if (pread(c->file.fd, c->buffer, frame, (off_t)offset) != (ssize_t)frame)
        records_die("pread");
    if (records_check(at, frame, &used) != 1)
        records_die("hand-written loop: record");
}

static records_spent repeat_single(void (*one)(single_case *c), single_case *c, unsigned times) {
    records_spent time = {0, 0}, start = records_now();
    for (unsigned i = 0; i < times; i++)
        one(c);
    records_count_since(&time, start);
    return time;
}

static void bench_single(void) {
    enum { TIMES = 50000 };
    single_case c = {.block = {0}};
    records_make_file(&c.file, 1024);
    c.file.fd = open(c.file.path, O_RDONLY | O_CLOEXEC);
    c.file.map = mmap(NULL, c.file.bytes, PROT_READ, MAP_SHARED, c.file.fd, 0);
    if (c.file.fd < 0 || c.file.map == MAP_FAILED)
        records_die("cannot map");
    c.buffer = records_malloc(c.file.record_bytes + PRESTO_FRAME_OVERHEAD_BYTES);
    presto__rng_init(&c.rng, &(presto__rng_key){.seed = 1});
    records_print_head("records.access", "random access to single records of 1 KiB",
                       "hand-written");
    for (int map = 0; map < 2; map++) {
        c.map = map == 1;
        presto_shard_options options;
        presto_shard_options_defaults(&options);
        options.map = c.map;
        MUST(presto_shard_open(c.file.path, &options, &c.file.shard, &records_err));
        MUST(presto_shard_index(c.file.shard, false, NULL, &records_err));
        records_series ours = {.count = 0}, theirs = {.count = 0};
        for (unsigned round = 0; round < records_set.rounds; round++) {
            if (round % 2 == 0)
                records_add(&ours, repeat_single(single_presto, &c, TIMES), TIMES);
            records_add(&theirs, repeat_single(single_by_hand, &c, TIMES), TIMES);
            if (round % 2 == 1)
                records_add(&ours, repeat_single(single_presto, &c, TIMES), TIMES);
        }
        records_print(c.map ? "map" : "pread", &ours, &theirs, 1000, "M/s");
        presto_shard_free(c.file.shard);
    }
    presto_block_done(&c.block);
    free(c.buffer);
    munmap((void *)(uintptr_t)c.file.map, c.file.bytes);
    close(c.file.fd);
    unlink(c.file.path);
}

void records_bench_access(void) {
    enum { RECORDS = 10000000 };
    char path[600];
    presto_shard *shard;
    presto__shard_writer *writer;
    presto__shard_writer_options options;
    presto__shard_writer_options_defaults(&options);
    options.sync = false;
    snprintf(path, sizeof path, "%s/many.tfrecord", records_set.dir);
    MUST(presto__shard_writer_open(path, &options, &writer, &records_err));
    for (int i = 0; i < RECORDS; i++)
        MUST(presto__shard_writer_append(writer, presto_span_of(&i, sizeof i), &records_err));
    MUST(presto__shard_writer_finish(writer, NULL, &records_err));
    presto__shard_writer_free(writer);
    records_series opened = {.count = 0};
    for (unsigned round = 0; round < records_set.rounds; round++) {
        records_spent time = {0, 0}, start = records_now();
        MUST(presto_shard_open(path, NULL, &shard, &records_err));
        MUST(presto_shard_index(shard, false, NULL, &records_err));
        records_count_since(&time, start);
        records_add(&opened, time, 1e6);
        presto_shard_free(shard);
    }
    bench_note("records.open", "10 million records", "ms",
               bench_figure_of(opened.clock, opened.count));
    printf("\nopening 10 million indexed records: median %.3f ms, best %.3f ms\n",
           records_median(opened.clock, opened.count), records_least(opened.clock, opened.count));
    unlink(path);
    bench_single();
}
