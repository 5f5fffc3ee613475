/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rows of a table into a dataset, (int64, float32, text of 8 to 20 bytes, 30 float32): as Arrow's
 * arrays by presto_writer_add_arrow, and one by one by presto_writer_add, without threads: the
 * caller's processor time is all there is.
 */
#include "records.h"

#include <stdio.h>
#include <string.h>

#include <presto/arrow.h>

#define ROWS 65536
#define ITEMS 30

typedef struct table {
    int64_t numbers[ROWS];
    float singles[ROWS];
    int32_t ends[ROWS + 1];
    char text[ROWS * 20];
    float vectors[ROWS * ITEMS];
} table;

static void release_schema(struct ArrowSchema *schema) {
    schema->release = NULL;
}

static void release_array(struct ArrowArray *array) {
    array->release = NULL;
}

static void fill(table *to) {
    records_fill((uint8_t *)to->numbers, sizeof to->numbers);
    for (int i = 0; i < ROWS; i++) {
        uint64_t bits = (uint64_t)to->numbers[i];
        to->numbers[i] = (int64_t)(bits >> 40);
        to->singles[i] = (float)(bits & 0xffff);
        to->ends[i + 1] = to->ends[i] + 8 + (int32_t)(bits >> 16 & 0xff) % 13;
        for (int k = 0; k < ITEMS; k++)
            to->vectors[i * ITEMS + k] = (float)((bits >> (k % 32)) & 0xff);
    }
    memset(to->text, 'x', sizeof to->text);
}

static presto_writer *open_writer(unsigned round) {
    char path[600];
    presto_writer *writer;
    presto_writer_options options;
    presto_writer_options_defaults(&options);
    snprintf(path, sizeof path, "%s/rows-%u", records_set.dir, round);
    options.dir = path;
    options.threads = 0;
    options.sync = false;
    MUST(presto_writer_open(&options, &writer, &records_err));
    return writer;
}

static void close_writer(presto_writer *writer, unsigned round) {
    char command[640];
    MUST(presto_writer_finish(writer, NULL, &records_err));
    presto_writer_free(writer);
    snprintf(command, sizeof command, "rm -rf '%s/rows-%u'", records_set.dir, round);
    if (system(command) != 0)
        records_die("rm");
}

static records_spent add_arrays(const table *from, unsigned round, unsigned times) {
    const void *none[] = {NULL}, *numbers[] = {NULL, from->numbers};
    const void *singles[] = {NULL, from->singles}, *texts[] = {NULL, from->ends, from->text};
    const void *items[] = {NULL, from->vectors};
    struct ArrowSchema item = {.format = "f", .name = "item", .release = release_schema};
    struct ArrowSchema *item_of[] = {&item};
    struct ArrowSchema schemas[] = {{.format = "l", .name = "number", .release = release_schema},
                                    {.format = "f", .name = "single", .release = release_schema},
                                    {.format = "u", .name = "text", .release = release_schema},
                                    {.format = "+w:30",
                                     .name = "vector",
                                     .n_children = 1,
                                     .children = item_of,
                                     .release = release_schema}};
    struct ArrowSchema *columns[] = {&schemas[0], &schemas[1], &schemas[2], &schemas[3]};
    const struct ArrowSchema schema = {
        .format = "+s", .n_children = 4, .children = columns, .release = release_schema};
    struct ArrowArray values = {.length = (int64_t)ROWS * ITEMS,
                                .n_buffers = 2,
                                .buffers = items,
                                .release = release_array};
    struct ArrowArray *values_of[] = {&values};
    struct ArrowArray arrays[] = {
        {.length = ROWS, .n_buffers = 2, .buffers = numbers, .release = release_array},
        {.length = ROWS, .n_buffers = 2, .buffers = singles, .release = release_array},
        {.length = ROWS, .n_buffers = 3, .buffers = texts, .release = release_array},
        {.length = ROWS,
         .n_buffers = 1,
         .buffers = none,
         .n_children = 1,
         .children = values_of,
         .release = release_array}};
    struct ArrowArray *children[] = {&arrays[0], &arrays[1], &arrays[2], &arrays[3]};
    const struct ArrowArray batch = {.length = ROWS,
                                     .n_buffers = 1,
                                     .buffers = none,
                                     .n_children = 4,
                                     .children = children,
                                     .release = release_array};
    presto_arrow *arrow;
    presto_writer *writer = open_writer(round);
    MUST(presto_arrow_open(&schema, NULL, &arrow, &records_err));
    records_spent time = {0, 0}, start = records_now();
    for (unsigned i = 0; i < times; i++)
        MUST(presto_writer_add_arrow(writer, arrow, &batch, &records_err));
    records_count_since(&time, start);
    presto_arrow_free(arrow);
    close_writer(writer, round);
    return time;
}

static records_spent add_rows(const table *from, unsigned round, unsigned times) {
    presto_writer *writer = open_writer(round);
    records_spent time = {0, 0}, start = records_now();
    for (size_t i = 0; i < (size_t)times * ROWS; i++) {
        size_t row = i % ROWS;
        int32_t begin = from->ends[row];
        presto_span text =
            presto_span_of(from->text + begin, (size_t)(from->ends[row + 1] - begin));
        presto_feature features[] = {
            {presto_span_of_text("number"),
             PRESTO_ENCODE_INT64,
             {.spec = {.dtype = PRESTO_INT64}, {.data = &from->numbers[row]}}},
            {presto_span_of_text("single"),
             PRESTO_ENCODE_FLOAT,
             {.spec = {.dtype = PRESTO_FLOAT32}, {.data = &from->singles[row]}}},
            {presto_span_of_text("text"),
             PRESTO_ENCODE_BYTES,
             {.spec = {.dtype = PRESTO_STRING}, {.strings = &text}}},
            {presto_span_of_text("vector"),
             PRESTO_ENCODE_FLOAT,
             {.spec = {PRESTO_FLOAT32, 1, {ITEMS}}, {.data = from->vectors + row * ITEMS}}}};
        const presto_sample sample = {.features = features, .feature_count = 4};
        MUST(presto_writer_add(writer, &sample, &records_err));
    }
    records_count_since(&time, start);
    close_writer(writer, round);
    return time;
}

void records_bench_rows(void) {
    table *from = records_malloc(sizeof *from);
    memset(from, 0, sizeof *from);
    fill(from);
    records_series ours = {.count = 0}, single = {.count = 0};
    unsigned times = (unsigned)(records_set.file_mib * 1048576 / (ROWS * 220.0)) + 1;
    for (unsigned round = 0; round <= records_set.rounds; round++) {
        records_spent a = add_arrays(from, 2 * round, times);
        records_spent b = add_rows(from, 2 * round + 1, times);
        if (round == 0)
            continue;
        records_add(&ours, a, (double)ROWS * times);
        records_add(&single, b, (double)ROWS * times);
    }
    records_print("table", &ours, &single, 1000, "M/s");
    printf("a row of a table: %.0f ns of processor time as Arrow's arrays, %.0f ns one by one\n",
           records_median(ours.cpu, ours.count), records_median(single.cpu, single.count));
    free(from);
}
