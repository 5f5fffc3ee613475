/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Records put into a batch in two ways: each parsed by itself (presto_example_parse), and compared
 * with those before it (presto__example_layout, presto__fill_put_values). Both must give the same
 * samples, errors and batches. For a unit test and a fuzz target.
 */
#ifndef PRESTO_VALUES_CHECK_H
#define PRESTO_VALUES_CHECK_H

#include <stdio.h>
#include <string.h>

#include <presto/example.h>

#include "../../../records/records_internal.h"
#include "packet/columns_internal.h"

/* One way: a packet with a single batch of up to `most` rows. */
typedef struct one_way {
    presto__pool *pool;
    presto__packet *packet;
    presto_arena arena;
    size_t position;
} one_way;

/* Both, and what they have in common. `difference` tells the first one; "": none. */
typedef struct two_ways {
    const presto_example_specs *specs;
    presto__example_layout *layout;
    one_way plain, fast;
    size_t put_fast; /* rows that went the short way */
    char difference[200];
} two_ways;

#define SAY(both, ...)                                                                             \
    ((both)->difference[0] != '\0'                                                                 \
         ? (void)0                                                                                 \
         : (void)snprintf((both)->difference, sizeof(both)->difference, __VA_ARGS__))

/* ---- comparing ---- */

static inline bool same_bytes(const void *a, const void *b, size_t bytes) {
    return bytes == 0 || memcmp(a, b, bytes) == 0;
}

static inline bool same_values(const presto_feature *a, const presto_feature *b) {
    size_t bytes;
    if (a->tensor.spec.dtype != PRESTO_STRING)
        return presto_spec_bytes(&a->tensor.spec, &bytes, NULL) < 0 ||
               same_bytes(a->tensor.data, b->tensor.data, bytes);
    uint64_t count = presto_spec_elements(&a->tensor.spec);
    for (uint64_t i = 0; i < count; i++)
        if (!presto_span_equal(a->tensor.strings[i], b->tensor.strings[i]))
            return false;
    return true;
}

static inline void compare_samples(two_ways *both, const presto_sample *a, const presto_sample *b) {
    if (a->feature_count != b->feature_count) {
        SAY(both, "%zu features, and %zu", a->feature_count, b->feature_count);
        return;
    }
    for (size_t i = 0; i < a->feature_count; i++) {
        const presto_feature *one = &a->features[i], *other = &b->features[i];
        if (!presto_span_equal(one->name, other->name) || one->encoding != other->encoding)
            SAY(both, "feature %zu has another name or encoding", i);
        else if (one->encoding != PRESTO_ENCODE_NONE &&
                 (!presto_spec_equal(&one->tensor.spec, &other->tensor.spec) ||
                  !same_values(one, other)))
            SAY(both, "feature %zu has another value", i);
    }
}

static inline void compare_status(two_ways *both, const char *of, const presto_status statuses[2],
                                  const presto_error errors[2]) {
    if (statuses[0] != statuses[1])
        SAY(both, "%s: %s, and %s", of, presto_status_name(statuses[0]),
            presto_status_name(statuses[1]));
    else if (statuses[0] < 0 && (strcmp(errors[0].message, errors[1].message) != 0 ||
                                 errors[0].offset != errors[1].offset))
        SAY(both, "%s: \"%.60s\", and \"%.60s\"", of, errors[0].message, errors[1].message);
}

static inline bool same_numbers(const int64_t *a, const int64_t *b, size_t count) {
    return (a == NULL) == (b == NULL) && (a == NULL || same_bytes(a, b, count * sizeof *a));
}

static inline void compare_features(two_ways *both, size_t rows, const presto_batch_feature *a,
                                    const presto_batch_feature *b) {
    if (strcmp(a->name, b->name) != 0 || a->encoding != b->encoding || a->layout != b->layout ||
        !presto_spec_equal(&a->tensor.spec, &b->tensor.spec)) {
        SAY(both, "the batch has another \"%.50s\"", a->name);
        return;
    }
    size_t items = rows;
    bool is_bytes = a->layout == PRESTO_LAYOUT_BYTES;
    if (!same_numbers(a->row_offsets, b->row_offsets, rows + 1))
        SAY(both, "other rows of strings in \"%.50s\"", a->name);
    else if (is_bytes && a->row_offsets != NULL)
        items = (size_t)a->row_offsets[rows];
    if (!same_numbers(a->offsets, b->offsets, items + 1) || a->shape_rank != b->shape_rank ||
        !same_numbers(a->shapes, b->shapes, rows * a->shape_rank))
        SAY(both, "other offsets or shapes in \"%.50s\"", a->name);
    else if (!same_bytes(a->tensor.data, b->tensor.data, presto_tensor_bytes(&a->tensor)))
        SAY(both, "the batch has other values of \"%.50s\"", a->name);
}

/* ---- one way ---- */

static inline presto_status begin_way(one_way *way, const presto__rules *rules, size_t most,
                                      presto_error *err) {
    if (way->pool == NULL)
        PRESTO_TRY(presto__pool_new(SIZE_MAX, &way->pool, err));
    pthread_mutex_lock(&way->pool->lock);
    way->packet = presto__pool_take_locked(way->pool);
    pthread_mutex_unlock(&way->pool->lock);
    if (way->packet == NULL)
        return presto_fail_memory(err, sizeof *way->packet);
    way->position = 0;
    const presto__packet_shape shape = {
        .count = most, .parts = 1, .batch_rows = most, .rules = rules};
    PRESTO_TRY(presto__packet_setup(way->packet, &shape, err));
    presto__packet_clear(way->packet);
    return PRESTO_OK;
}

static inline presto__place place_of(const one_way *way) {
    return (presto__place){.batch = &way->packet->batches[0],
                           .part = &way->packet->parts[0],
                           .position = way->position};
}

/* As a worker puts the sample of a record. */
static inline presto_status put_sample(one_way *way, const presto_sample *sample,
                                       presto_error *err) {
    presto__place place = place_of(way);
    presto__fill *fill = presto__place_fill(&place);
    bool begins = !presto__fill_is_begun(fill);
    presto_status status = begins ? presto__fill_begin(&place, sample, err) : PRESTO_OK;
    if (status == PRESTO_OK)
        status = presto__fill_put(&place, sample, err);
    if (status < 0 && begins)
        fill->is_undone = true;
    return status;
}

static inline void end_way(one_way *way) {
    if (way->packet != NULL)
        presto__packet_release(way->packet, 1);
    way->packet = NULL;
}

/* ---- both ---- */

static inline bool put_values(two_ways *both, presto_span record) {
    presto__place place = place_of(&both->fast);
    presto__example_values values;
    if (!presto__example_layout_match(both->layout, record, &values))
        return false;
    presto_status status = presto__fill_put_values(&place, &values, NULL);
    if (status != PRESTO_OK && status != PRESTO_END)
        SAY(both, "%s without a sample", presto_status_name(status));
    both->put_fast += status == PRESTO_OK;
    return status == PRESTO_OK;
}

/* One record, in both ways. */
static inline void put_record(two_ways *both, presto_span record) {
    presto_status statuses[2];
    presto_error errors[2];
    presto_sample samples[2];
    presto_arena_reset(&both->plain.arena);
    presto_arena_reset(&both->fast.arena);
    statuses[0] =
        presto_example_parse(record, both->specs, &both->plain.arena, &samples[0], &errors[0]);
    bool is_put = put_values(both, record);
    statuses[1] = presto__example_layout_parse(both->layout, record, &both->fast.arena, &samples[1],
                                               &errors[1]);
    compare_status(both, "parsing", statuses, errors);
    if (both->difference[0] == '\0' && statuses[0] == PRESTO_OK) {
        compare_samples(both, &samples[0], &samples[1]);
        statuses[0] = put_sample(&both->plain, &samples[0], &errors[0]);
        statuses[1] = is_put ? PRESTO_OK : put_sample(&both->fast, &samples[1], &errors[1]);
        compare_status(both, "putting", statuses, errors);
    } else if (is_put && statuses[0] < 0) {
        SAY(both, "a row of a record that cannot be parsed");
    }
    both->plain.position++;
    both->fast.position++;
}

/* Records are put after this, `most` at most. */
static inline presto_status begin_both(two_ways *both, const presto__rules *rules, size_t most,
                                       presto_error *err) {
    PRESTO_TRY(begin_way(&both->plain, rules, most, err));
    return begin_way(&both->fast, rules, most, err);
}

/* Finish the batch and compare. */
static inline void end_both(two_ways *both) {
    presto__packet_batch *a = &both->plain.packet->batches[0];
    presto__packet_batch *b = &both->fast.packet->batches[0];
    presto_status statuses[2];
    presto_error errors[2];
    size_t rows = a->shown.rows = a->fill.rows;
    b->shown.rows = b->fill.rows;
    if (rows != b->fill.rows)
        SAY(both, "%zu rows, and %zu", rows, b->fill.rows);
    if (both->plain.packet->parts[0].delivered_bytes != both->fast.packet->parts[0].delivered_bytes)
        SAY(both, "another number of bytes was delivered");
    statuses[0] = presto__batch_assemble(a, &errors[0]);
    statuses[1] = presto__batch_assemble(b, &errors[1]);
    compare_status(both, "assembling", statuses, errors);
    if (a->feature_count != b->feature_count)
        SAY(both, "%zu features in the batch, and %zu", a->feature_count, b->feature_count);
    bool is_whole = both->difference[0] == '\0' && statuses[0] == PRESTO_OK;
    for (size_t i = 0; is_whole && i < a->feature_count; i++)
        compare_features(both, rows, &a->features[i], &b->features[i]);
    end_way(&both->plain);
    end_way(&both->fast);
}

static inline void free_both(two_ways *both) {
    one_way *ways[] = {&both->plain, &both->fast};
    for (size_t i = 0; i < 2; i++) {
        end_way(ways[i]);
        presto_arena_done(&ways[i]->arena);
        if (ways[i]->pool != NULL)
            presto__pool_close(ways[i]->pool);
    }
    presto__example_layout_free(both->layout);
}

#endif
