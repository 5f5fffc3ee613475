/* SPDX-License-Identifier: Apache-2.0 */
/* One epoch of one input: as it is, permuted, or in permuted blocks. Any position may be asked for.
 */
#include "order_internal.h"

/* The streams of one seed and epoch; 1 is that of the simulated buffer. Blocks take BLOCK_STREAM +
 * their number. */
enum { FULL_STREAM = 0, BLOCKS_STREAM = 2, BLOCK_STREAM = 16 };

/* ---- permuted blocks ---- */

static void block_order_init(presto__epoch_order *order, uint64_t wanted_window) {
    presto__block_order *blocks = &order->blocks;
    uint64_t window = wanted_window < order->count ? wanted_window : order->count;
    uint64_t count = order->count / window + (order->count % window != 0);
    presto__permutation_init(&blocks->blocks, count, order->seed, order->epoch, BLOCKS_STREAM);
    blocks->window = window;
    blocks->short_count = order->count - (count - 1) * window;
    blocks->short_slot = presto__permutation_inverse(&blocks->blocks, count - 1);
    blocks->slot = UINT64_MAX;
}

static uint64_t block_order_at(presto__epoch_order *order, uint64_t position) {
    presto__block_order *blocks = &order->blocks;
    uint64_t before = blocks->short_slot * blocks->window; /* positions before the short block */
    uint64_t slot, offset;
    if (position < before) {
        slot = position / blocks->window;
        offset = position % blocks->window;
    } else if (position < before + blocks->short_count) {
        slot = blocks->short_slot;
        offset = position - before;
    } else {
        uint64_t after = position - before - blocks->short_count;
        slot = blocks->short_slot + 1 + after / blocks->window;
        offset = after % blocks->window;
    }
    uint64_t block = presto__permutation_at(&blocks->blocks, slot);
    if (slot != blocks->slot) {
        uint64_t count = slot == blocks->short_slot ? blocks->short_count : blocks->window;
        presto__permutation_init(&blocks->within, count, order->seed, order->epoch,
                                 BLOCK_STREAM + block);
        blocks->slot = slot;
    }
    return block * blocks->window + presto__permutation_at(&blocks->within, offset);
}

/* ---- one epoch ---- */

void presto__epoch_order_init(presto__epoch_order *order, const presto__order_options *options,
                              uint64_t count, uint64_t epoch) {
    order->count = count;
    order->seed = options->seed;
    order->epoch = epoch;
    order->shuffle = count < 2 ? PRESTO_SHUFFLE_NONE : options->shuffle;
    if (order->shuffle == PRESTO_SHUFFLE_FULL)
        presto__permutation_init(&order->full, count, options->seed, epoch, FULL_STREAM);
    else if (order->shuffle == PRESTO_SHUFFLE_BLOCKS)
        block_order_init(order, options->window);
}

uint64_t presto__epoch_order_at(presto__epoch_order *order, uint64_t position) {
    if (order->shuffle == PRESTO_SHUFFLE_FULL)
        return presto__permutation_at(&order->full, position);
    if (order->shuffle == PRESTO_SHUFFLE_BLOCKS)
        return block_order_at(order, position);
    return position;
}
