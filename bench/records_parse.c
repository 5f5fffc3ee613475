/* SPDX-License-Identifier: Apache-2.0 */
/* What is done with bytes in memory: CRC-32C, and parsing a record to a view of its tensor. */
#include "records.h"

#include <stdio.h>

#include <presto/crc32c.h>
#include <presto/example.h>

/* ---- CRC ---- */

void records_bench_crc(size_t bytes) {
    size_t total = (size_t)64 << 20;
    uint8_t *data = records_malloc(total);
    records_fill(data, total);
    records_series ours = {.count = 0}, isal = {.count = 0};
    uint32_t sink = 0;
    for (unsigned round = 0; round <= records_set.rounds; round++) {
        records_spent mine = {0, 0}, other = {0, 0}, start = records_now();
        for (size_t at = 0; at + bytes <= total; at += bytes)
            sink ^= presto_crc32c(0, data + at, bytes);
        records_count_since(&mine, start);
        start = records_now();
        for (size_t at = 0; at + bytes <= total; at += bytes)
            sink ^= records_isal_crc(data + at, bytes);
        records_count_since(&other, start);
        if (round == 0)
            continue;
        records_add(&ours, mine, (double)total);
        records_add(&isal, other, (double)total);
    }
    if (sink != 0)
        records_die("CRC: the two differ");
    char name[64];
    snprintf(name, sizeof name, "%zu B", bytes);
    records_print(name, &ours, &isal, 1, "GB/s");
    free(data);
}

/* ---- parsing ---- */

void records_bench_parse(size_t tensor_bytes) {
    uint8_t *data = records_malloc(tensor_bytes);
    records_fill(data, tensor_bytes);
    presto_buffer one = {0}, all = {0};
    int64_t label = 7;
    presto_feature features[] = {
        {presto_span_of_text("image"),
         PRESTO_ENCODE_TENSOR,
         {.spec = {PRESTO_UINT8, 3, {1, (int64_t)tensor_bytes / 3, 3}}, .data = data}},
        {presto_span_of_text("label"),
         PRESTO_ENCODE_INT64,
         {.spec = {PRESTO_INT64, 0, {0}}, .data = &label}},
    };
    char image[] = "image", label_name[] = "label";
    presto_feature_spec specs[] = {
        {image, PRESTO_ENCODE_TENSOR, {PRESTO_UINT8, 3, {-1, -1, 3}}},
        {label_name, PRESTO_ENCODE_INT64, {PRESTO_INT64, 0, {0}}},
    };
    /* As many as fit into the cache: parsing follows the CRC, which has just read the block. */
    size_t records = (256U << 10) / (tensor_bytes + 100) + 1;
    presto_sample sample = {features, 2, 0};
    MUST(presto_example_append(&one, &sample, &records_err));
    for (size_t i = 0; i < records; i++)
        MUST(presto_buffer_append(&all, presto_buffer_span(&one), &records_err));
    records_series ours = {.count = 0}, walk = {.count = 0};
    presto_arena arena = {0};
    uint64_t sum = 0;
    const unsigned times = 400;
    for (unsigned round = 0; round <= records_set.rounds; round++) {
        records_spent mine = {0, 0}, other = {0, 0}, start = records_now();
        for (unsigned again = 0; again < times; again++) {
            presto_arena_reset(&arena);
            for (size_t i = 0; i < records; i++) {
                MUST(presto_example_parse(presto_span_of(all.data + i * one.bytes, one.bytes),
                                          &(presto_example_specs){.list = specs, .count = 2},
                                          &arena, &sample, &records_err));
                sum += *(const uint8_t *)sample.features[0].tensor.data;
            }
        }
        records_count_since(&mine, start);
        /* What it costs to touch the first bytes of each record at all. */
        start = records_now();
        for (unsigned again = 0; again < times; again++)
            for (size_t i = 0; i < records; i++)
                sum += *(volatile uint8_t *)(all.data + i * one.bytes + 40);
        records_count_since(&other, start);
        if (round == 0)
            continue;
        records_add(&ours, mine, (double)times * (double)records);
        records_add(&walk, other, (double)times * (double)records);
    }
    if (sum == 0)
        records_die("parse");
    bench_figure cpu = bench_figure_of(ours.cpu, ours.count);
    char name[64];
    snprintf(name, sizeof name, "%zu B", tensor_bytes);
    bench_note("records.parse", name, "ns by the clock", bench_figure_of(ours.clock, ours.count));
    bench_note("records.parse", name, "ns of processor time", cpu);
    printf("Example + %6zu B tensor: %5.1f ns by the clock, %5.1f +-%2.0f%% by CPU, best %5.1f "
           "(touching the record: %.1f)\n",
           tensor_bytes, records_median(ours.clock, ours.count), cpu.median, 100 * cpu.spread,
           records_least(ours.clock, ours.count), records_median(walk.cpu, walk.count));
    presto_arena_done(&arena);
    presto_buffer_done(&one);
    presto_buffer_done(&all);
    free(data);
}
