/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The order of samples: from a position of an epoch to a sample number. It depends only on the
 * number of samples, the seed and the epoch.
 *
 * Ranks share the global order: position p belongs to rank p % world, so the global order is the
 * same for any world. An incomplete last round is padded from the start of the epoch's order, or
 * left out.
 */
#include <stdlib.h>
#include <string.h>

#include "../../base/checked_internal.h"
#include "../../base/rng_internal.h"
#include "order_internal.h"

enum { BUFFER_STREAM = 1 }; /* see epoch_order.c */
#define ORDER_STREAM ((uint64_t)1 << 63)

presto_status presto__order_init(presto__order *order, const presto__order_options *options,
                                 presto_error *err) {
    *order = (presto__order){.options = *options, .epoch = UINT64_MAX};
    uint64_t rounds = options->count / options->world;
    if (!options->drop_last && options->count % options->world != 0)
        rounds++;
    order->epoch_samples = rounds;
    if (options->shuffle != PRESTO_SHUFFLE_BUFFER)
        return PRESTO_OK;
    uint64_t window = options->window < options->count ? options->window : options->count;
    uint64_t head = options->world < options->count ? options->world : options->count;
    order->buffer = presto__zeroed_array(window, 1, sizeof *order->buffer);
    order->head = presto__zeroed_array(head, 1, sizeof *order->head);
    if (order->buffer == NULL || order->head == NULL) {
        presto__order_done(order);
        return presto_fail_memory(err, window);
    }
    order->buffer_capacity = window;
    order->head_count = head;
    return PRESTO_OK;
}

void presto__order_done(presto__order *order) {
    free(order->buffer);
    free(order->head);
    order->buffer = NULL;
    order->head = NULL;
}

bool presto__order_is_sequential(const presto__order *order) {
    return order->options.shuffle == PRESTO_SHUFFLE_BUFFER && order->list == NULL;
}

/* ---- the simulated buffer ---- */

static void buffer_start(presto__order *order, uint64_t epoch) {
    order->epoch = epoch;
    order->next_in = 0;
    order->next_out = 0;
    order->buffer_count = 0;
    presto__rng_init(&order->rng,
                     &(presto__rng_key){order->options.seed, epoch, BUFFER_STREAM, ORDER_STREAM});
    while (order->buffer_count < order->buffer_capacity)
        order->buffer[order->buffer_count++] = order->next_in++;
}

static uint64_t buffer_draw(presto__order *order) {
    size_t at = (size_t)presto_rng_below(&order->rng, order->buffer_count);
    uint64_t number = order->buffer[at];
    if (order->next_in < order->options.count)
        order->buffer[at] = order->next_in++;
    else
        order->buffer[at] = order->buffer[--order->buffer_count];
    if (order->next_out < order->head_count)
        order->head[order->next_out] = number;
    order->next_out++;
    return number;
}

static void buffer_numbers(presto__order *order, uint64_t epoch, uint64_t first, size_t count,
                           uint64_t *numbers_out) {
    const presto__order_options *options = &order->options;
    if (order->epoch != epoch)
        buffer_start(order, epoch);
    for (size_t i = 0; i < count; i++) {
        uint64_t position = (first + i) * options->world + options->rank;
        if (position >= options->count) {
            /* Only the last round is padded, and the head is complete by then. */
            position %= options->count;
            while (order->next_out < order->head_count)
                buffer_draw(order);
            numbers_out[i] = order->head[position];
            continue;
        }
        uint64_t number = 0;
        while (order->next_out <= position)
            number = buffer_draw(order);
        numbers_out[i] = number;
    }
}

static void order_all(presto__order *order, uint64_t epoch, uint64_t first, size_t count,
                      uint64_t *numbers_out) {
    const presto__order_options *options = &order->options;
    if (options->shuffle == PRESTO_SHUFFLE_BUFFER) {
        buffer_numbers(order, epoch, first, count, numbers_out);
        return;
    }
    if (options->part_count > 0) {
        const presto__positions stretch = {epoch, first, count};
        presto__mix_numbers(options, &stretch, numbers_out, NULL);
        return;
    }
    if (options->shuffle == PRESTO_SHUFFLE_NONE && options->world == 1) {
        for (size_t i = 0; i < count; i++)
            numbers_out[i] = first + i;
        return;
    }
    presto__epoch_order whole;
    presto__epoch_order_init(&whole, options, options->count, epoch);
    for (size_t i = 0; i < count; i++) {
        uint64_t position = (first + i) * options->world + options->rank;
        if (position >= options->count)
            position %= options->count;
        numbers_out[i] = presto__epoch_order_at(&whole, position);
    }
}

void presto__order_numbers(presto__order *order, uint64_t epoch, uint64_t first, size_t count,
                           uint64_t *numbers_out) {
    if (order->list != NULL)
        memcpy(numbers_out, order->list + first, count * sizeof *numbers_out);
    else
        order_all(order, epoch, first, count, numbers_out);
    bool has_mixed = order->list == NULL && order->options.part_count > 0;
    if (order->options.subset != NULL && !has_mixed)
        presto__subset_numbers(order->options.subset, numbers_out, count);
}
