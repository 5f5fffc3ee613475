/* SPDX-License-Identifier: Apache-2.0 */
/* Batches for a ring that say by themselves what is in them, and a writer in a thread. */
#ifndef RING_CHECK_H
#define RING_CHECK_H

#include "presto_check.h"

#include <pthread.h>
#include <string.h>

#include "ring/ring_internal.h"

static presto_error err;

/* ---- batches that say by themselves what is in them ---- */

enum { MOST_ROWS = 40, ROW_VALUES = 100, VALUES = MOST_ROWS * ROW_VALUES };

typedef struct made_batch {
    presto_batch batch;
    presto_batch_feature features[5];
    uint64_t numbers[MOST_ROWS];
    int32_t values[VALUES];
    int64_t offsets[MOST_ROWS + 1], rows[MOST_ROWS + 1], shapes[MOST_ROWS * 3];
    char text[MOST_ROWS * 8];
} made_batch;

static const int64_t no_values[MOST_ROWS + 1];

static inline presto_tensor list_of(presto_dtype dtype, int64_t count, const void *data) {
    return (presto_tensor){.spec = {dtype, 1, {count}}, .data = data};
}

/* Batch number `number`: rows and values follow from it. */
static inline void make_batch(made_batch *self, uint64_t number) {
    size_t rows = 1 + number * 7 % MOST_ROWS;
    for (size_t i = 0; i < VALUES; i++)
        self->values[i] = (int32_t)(number * 1000003 + i);
    memset(self->text, (int)('a' + number % 26), sizeof self->text);
    for (size_t i = 0; i <= rows; i++) {
        self->numbers[i % MOST_ROWS] = number + i % MOST_ROWS;
        self->offsets[i] = (int64_t)(i * 6);
        self->rows[i] = (int64_t)(i / 2);
    }
    for (size_t i = 0; i < rows; i++)
        memcpy(self->shapes + 3 * i, (const int64_t[]){2, 3, -1}, 3 * sizeof(int64_t));
    self->features[0] = (presto_batch_feature){
        .name = "image",
        .encoding = PRESTO_ENCODE_TENSOR,
        .tensor = {.spec = {PRESTO_INT32, 3, {(int64_t)rows, 10, ROW_VALUES / 10}},
                   .data = self->values}};
    self->features[1] =
        (presto_batch_feature){.name = "tokens",
                               .layout = PRESTO_LAYOUT_RAGGED,
                               .encoding = PRESTO_ENCODE_INT64,
                               .tensor = list_of(PRESTO_INT32, (int64_t)rows * 6, self->values + 1),
                               .offsets = self->offsets,
                               .shapes = self->shapes,
                               .shape_rank = 3};
    self->features[2] =
        (presto_batch_feature){.name = "key",
                               .layout = PRESTO_LAYOUT_BYTES,
                               .tensor = list_of(PRESTO_UINT8, (int64_t)rows * 6, self->text),
                               .offsets = self->offsets};
    self->features[3] =
        (presto_batch_feature){.name = "words",
                               .layout = PRESTO_LAYOUT_BYTES,
                               .tensor = list_of(PRESTO_UINT8, (int64_t)(rows / 2) * 6, self->text),
                               .offsets = self->offsets,
                               .row_offsets = self->rows};
    self->features[4] = (presto_batch_feature){.name = "nothing",
                                               .layout = PRESTO_LAYOUT_RAGGED,
                                               .tensor = list_of(PRESTO_FLOAT64, 0, NULL),
                                               .offsets = no_values};
    self->batch = (presto_batch){.epoch = number / 3,
                                 .first = number * 10,
                                 .rows = rows,
                                 .skipped = (size_t)(number % 2),
                                 .sample_numbers = self->numbers,
                                 .features = self->features,
                                 .feature_count = 5,
                                 .main_feature = 0};
}

/* ---- a writer in a thread ---- */

typedef struct writing {
    pthread_t thread;
    presto_ring_options options;
    uint64_t count;
    size_t fails_at; /* batch; SIZE_MAX: none */
    bool ends;
    presto_status status;
    presto_error err;
} writing;

static inline void *write_all(void *user) {
    writing *self = user;
    presto__ring_writer *writer;
    made_batch *made = malloc(sizeof *made);
    self->status = presto__ring_writer_open(&self->options, &writer, &self->err);
    if (self->status < 0) {
        free(made);
        return NULL;
    }
    for (uint64_t i = 0; i < self->count && self->status == PRESTO_OK; i++) {
        make_batch(made, i);
        if (i == self->fails_at) {
            presto_error_set(&self->err, PRESTO_ERR_CORRUPT, 4711, "this is damaged");
            presto_error_set_file(&self->err, "some.tfrecord");
            presto_error_set_record(&self->err, 12);
            presto__ring_writer_fail(writer, &self->err);
            break;
        }
        self->status = presto__ring_writer_put(writer, &made->batch, &self->err);
    }
    if (self->status == PRESTO_OK && self->ends)
        self->status = presto__ring_writer_end(writer, &self->err);
    presto__ring_writer_free(writer);
    free(made);
    return NULL;
}

static inline void start_writer(writing *self) {
    ck_assert_int_eq(pthread_create(&self->thread, NULL, write_all, self), 0);
}

static inline void end_writer(writing *self, presto_status wanted) {
    pthread_join(self->thread, NULL);
    ck_assert_status(self->status, wanted, &self->err);
}

static const writing whole = {.count = 500, .fails_at = SIZE_MAX, .ends = true};

#endif
