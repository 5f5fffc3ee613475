/* SPDX-License-Identifier: Apache-2.0 */
/* A file of 64 records in memory and on disk, its verification and repair. */
#ifndef INSPECT_CHECK_H
#define INSPECT_CHECK_H

#include "../../../base/rng_internal.h"
#include "../../../records/records_internal.h"
#include "presto_check.h"

#include <stdio.h>

#include <presto/example.h>
#include <presto/inspect.h>
#include <presto/rng.h>

static presto_error err;

#define RECORDS 64

/* A file of Examples, kept in memory as well. */
typedef struct made_file {
    char *dir;
    char path[600], out[600];
    presto_buffer bytes;
    size_t starts[RECORDS + 1];
} made_file;

static inline void append_example(presto_buffer *out, size_t number, presto_rng *rng) {
    uint8_t pixels[64];
    int64_t label = (int64_t)number;
    size_t count = presto_rng_below(rng, 40);
    for (size_t i = 0; i < sizeof pixels; i++)
        pixels[i] = (uint8_t)presto_rng_next(rng);
    presto_feature features[] = {
        {presto_span_of_text("image"),
         PRESTO_ENCODE_TENSOR,
         {.spec = {PRESTO_UINT8, 1, {(int64_t)count}}, .data = pixels}},
        {presto_span_of_text("label"),
         PRESTO_ENCODE_INT64,
         {.spec = {PRESTO_INT64, 0, {0}}, .data = &label}},
    };
    presto_sample sample = {features, 2, 0};
    ck_assert_ok(presto_example_append(out, &sample, &err), &err);
}

static inline made_file make_file(void) {
    made_file file = {.dir = presto_check_temp_dir()};
    presto_rng rng;
    presto__rng_init(&rng, &(presto__rng_key){.seed = 5});
    snprintf(file.path, sizeof file.path, "%s/in.tfrecord", file.dir);
    snprintf(file.out, sizeof file.out, "%s/out.tfrecord", file.dir);
    presto_buffer payload = {0};
    for (size_t i = 0; i < RECORDS; i++) {
        payload.bytes = 0;
        if (i % 16 != 7) /* some records are empty */
            append_example(&payload, i, &rng);
        file.starts[i] = file.bytes.bytes;
        ck_assert_ok(presto__frame_append(&file.bytes, presto_buffer_span(&payload), &err), &err);
    }
    file.starts[RECORDS] = file.bytes.bytes;
    presto_buffer_done(&payload);
    return file;
}

static inline void drop_file(made_file *file) {
    presto_check_remove_tree(file->dir);
    free(file->dir);
    presto_buffer_done(&file->bytes);
}

static inline presto_span frame(const made_file *file, size_t i) {
    return presto_span_of(file->bytes.data + file->starts[i],
                          file->starts[i + 1] - file->starts[i]);
}

static inline presto_verify_result verify(const char *path) {
    presto_verify_result result = {0};
    ck_assert_ok(presto_verify_paths(&(const char *){path}, 1, NULL, &result, &err), &err);
    return result;
}

#endif
