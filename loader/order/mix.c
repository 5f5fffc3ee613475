/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The order of a mix: which part each position of an epoch is from, and which of its samples.
 *
 * An epoch has a fixed number of samples of each part, its share. They are spread evenly: the
 * epoch is cut into blocks of BLOCK positions, and before position p, at the edge of a block, part
 * k has had round(p * share_k / epoch) samples. With several parts, that is done part by part: the
 * first one takes its share of p, the second one its share of what is left, and so on. Each step is
 * monotone, and exact where p is the whole epoch. So the proportions are exact by construction, not
 * by chance.
 *
 * Within a block, the parts are drawn at random, without replacement. A fixed pattern would be
 * wrong with ranks: of two parts in turn, rank 0 of 2 would get only the first one.
 *
 * The samples of a part come in its own order: sample i of its share in epoch e is sample
 * e * share + i of its endless stream, which is its epochs one after the other, each permuted as a
 * stream of this part alone would be. So each sample comes once in each epoch of its part, also
 * where these begin and end within an epoch of the mix.
 */
#include "../../base/rng_internal.h"
#include "order_internal.h"

#define BLOCK 64
/* Separates the draws of mixes from those of orders and steps. */
#define MIX_STREAM (((uint64_t)1 << 63) + 1)

__extension__ typedef unsigned __int128 uint128;

/* Where in a block the parts have been drawn up to. */
typedef struct cursor {
    uint64_t block; /* UINT64_MAX: none yet */
    uint64_t first; /* its first position */
    uint64_t drawn, count;
    uint64_t next[PRESTO__MOST_PARTS]; /* sample of the share that comes next */
    uint64_t left[PRESTO__MOST_PARTS]; /* to be drawn in this block */
    presto_rng rng;
} cursor;

static void cursor_init(cursor *at) {
    at->block = UINT64_MAX;
    at->first = at->drawn = at->count = 0;
}

/* `position` * share / total, rounded; both are below 2^63. */
static uint64_t proportion(uint64_t position, uint64_t share, uint64_t total) {
    return (uint64_t)(((uint128)2 * position * share + total) / ((uint128)2 * total));
}

/* How many samples of each part are before `position`, which is the edge of a block. */
static void count_before(const presto__order_options *options, uint64_t position,
                         uint64_t *counts_out) {
    uint64_t total = options->count;
    for (size_t k = 0; k < options->part_count; k++) {
        uint64_t share = options->parts[k].epoch_samples;
        counts_out[k] = total == 0 ? 0 : proportion(position, share, total);
        position -= counts_out[k];
        total -= share;
    }
}

static void start_block(cursor *at, const presto__order_options *options, uint64_t epoch,
                        uint64_t block) {
    at->block = block;
    at->first = block * BLOCK;
    at->count = options->count - at->first < BLOCK ? options->count - at->first : BLOCK;
    at->drawn = 0;
    count_before(options, at->first, at->next);
    count_before(options, at->first + at->count, at->left);
    for (size_t k = 0; k < options->part_count; k++)
        at->left[k] -= at->next[k];
    presto__rng_init(&at->rng, &(presto__rng_key){options->seed, epoch, block, MIX_STREAM});
}

/* The part at the next position of the block. */
static size_t draw(cursor *at) {
    uint64_t drawn = presto_rng_below(&at->rng, at->count - at->drawn++);
    size_t k = 0;
    for (; drawn >= at->left[k]; k++)
        drawn -= at->left[k];
    at->left[k]--;
    return k;
}

/* Move on to `position`: its part, and in *sample_out which sample of the part's share it is. */
static size_t part_at(cursor *at, const presto__order_options *options, uint64_t epoch,
                      uint64_t position, uint64_t *sample_out) {
    uint64_t block = position / BLOCK;
    if (block != at->block || position < at->first + at->drawn)
        start_block(at, options, epoch, block);
    size_t part = 0;
    while (at->first + at->drawn <= position) {
        part = draw(at);
        *sample_out = at->next[part]++;
    }
    return part;
}

void presto__mix_numbers(const presto__order_options *options, const presto__positions *stretch,
                         uint64_t *numbers_out, uint64_t *epochs_out) {
    cursor at;
    presto__epoch_order orders[PRESTO__MOST_PARTS]; /* of each part in the epoch met last */
    bool is_made[PRESTO__MOST_PARTS] = {false};
    uint64_t starts[PRESTO__MOST_PARTS], start = 0; /* of each part, among the samples that come */
    cursor_init(&at);
    for (size_t k = 0; k < options->part_count; start += options->parts[k++].samples)
        starts[k] = start;
    for (size_t i = 0; i < stretch->count; i++) {
        uint64_t position = (stretch->first + i) * options->world + options->rank;
        uint64_t sample = 0;
        if (position >= options->count)
            position %= options->count;
        size_t k = part_at(&at, options, stretch->epoch, position, &sample);
        const presto_source_part *part = &options->parts[k];
        sample += stretch->epoch * part->epoch_samples;
        uint64_t epoch = sample / part->samples;
        if (!is_made[k] || orders[k].epoch != epoch)
            presto__epoch_order_init(&orders[k], options, part->samples, epoch);
        is_made[k] = true;
        numbers_out[i] = starts[k] + presto__epoch_order_at(&orders[k], sample % part->samples);
        if (epochs_out != NULL)
            epochs_out[i] = epoch;
    }
    if (options->subset != NULL)
        presto__subset_numbers(options->subset, numbers_out, stretch->count);
}

void presto__mix_passed(const presto__order_options *options, uint64_t epoch, uint64_t position,
                        uint64_t *counts_out) {
    cursor at;
    uint64_t sample;
    cursor_init(&at);
    if (position % BLOCK == 0 || position >= options->count) {
        count_before(options, position < options->count ? position : options->count, counts_out);
        return;
    }
    (void)part_at(&at, options, epoch, position - 1, &sample);
    memcpy(counts_out, at.next, options->part_count * sizeof *counts_out);
}
