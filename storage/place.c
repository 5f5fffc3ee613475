/* SPDX-License-Identifier: Apache-2.0 */
/* A place as one who reads there meets it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../base/clock_internal.h"
#include "kinds_internal.h"

#define TRIPS 7
#define PIECE_BYTES ((size_t)8 << 20)
#define MOST_BYTES ((uint64_t)32 << 20)
#define MOST_NS UINT64_C(3000000000)
#define LEAST_RATED_BYTES ((uint64_t)1 << 20) /* less is no measure of a rate */

static int compare(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Single bytes, all over the object. */
static presto_status measure_trips(presto__object_place at, uint64_t bytes,
                                   presto_place_facts *place_out, presto_error *err) {
    double seconds[TRIPS];
    for (size_t i = 0; i < TRIPS; i++) {
        uint8_t byte;
        size_t got;
        at.offset = bytes / TRIPS * i;
        uint64_t begin_ns = presto__clock_ns();
        PRESTO_TRY(presto__read_at(at, &byte, 1, &got, err));
        seconds[i] = (double)(presto__clock_ns() - begin_ns) / 1e9;
    }
    qsort(seconds, TRIPS, sizeof seconds[0], compare);
    place_out->round_trip_s = seconds[TRIPS / 2];
    return PRESTO_OK;
}

static presto_status measure_rate(presto__object_place at, uint64_t bytes,
                                  presto_place_facts *place_out, presto_error *err) {
    uint8_t *memory = malloc(PIECE_BYTES);
    uint64_t begin_ns = presto__clock_ns(), most = bytes < MOST_BYTES ? bytes : MOST_BYTES;
    presto_status status = memory == NULL ? presto_fail_memory(err, PIECE_BYTES) : PRESTO_OK;
    size_t got = 1;
    at.offset = 0;
    while (status == PRESTO_OK && got > 0 && at.offset < most &&
           presto__clock_ns() - begin_ns < MOST_NS) {
        status = presto__read_at(at, memory, PIECE_BYTES, &got, err);
        at.offset += status == PRESTO_OK ? got : 0;
    }
    free(memory);
    uint64_t took_ns = presto__clock_ns() - begin_ns;
    if (status == PRESTO_OK && took_ns > 0)
        place_out->bytes_per_s = (double)at.offset * 1e9 / (double)took_ns;
    return status;
}

static presto_status measure(const char *path, presto_place_facts *place_out, presto_error *err) {
    presto__object object;
    presto__object_info info;
    PRESTO_TRY(presto__object_open(path, &object, &info, err));
    object.is_again = true; /* from the storage, not from what opening it has read */
    place_out->bytes = info.bytes;
    const presto__object_place at = {object, path, 0};
    presto_status status = PRESTO_OK;
    if (info.bytes > 0)
        status = measure_trips(at, info.bytes, place_out, err);
    if (status == PRESTO_OK && info.bytes >= LEAST_RATED_BYTES)
        status = measure_rate(at, info.bytes, place_out, err);
    presto__object_close(&object);
    return status;
}

presto_status presto_place_look(const char *path, presto_place_facts *place_out,
                                presto_error *err) {
    const presto__storage_kind *kind = presto__storage_kind_of(path);
    presto_error why;
    *place_out = (presto_place_facts){.key_until_s = INT64_MAX};
    snprintf(place_out->kind, sizeof place_out->kind, "%s", kind->name);
    presto_status status =
        kind->describe == NULL ? PRESTO_OK : kind->describe(path, place_out, &why);
    if (status == PRESTO_OK)
        status = measure(path, place_out, &why);
    if (status == PRESTO_OK && kind->describe != NULL) /* where it is may have been learned */
        status = kind->describe(path, place_out, &why);
    if (status < 0 && err != NULL) {
        *err = why;
        presto_error_set_file(err, path);
    }
    return status;
}
