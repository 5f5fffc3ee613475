/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Room order: which sample is at which position of which epoch; how several inputs are mixed.
 * May see: base, the public options of loaders. Must not know: sources, threads.
 * Plain values: whoever shares one needs a lock. The sequence depends only on count, seed, epoch
 * and options.
 */
#ifndef PRESTO_LOADER_ORDER_INTERNAL_H
#define PRESTO_LOADER_ORDER_INTERNAL_H

#include <presto/mix.h>

#include "../../base/subset_internal.h"

#define PRESTO__PERMUTATION_ROUNDS 8

/** A keyed permutation of [0, count). A plain value. */
typedef struct presto__permutation {
    uint64_t count;
    unsigned half_bits;
    uint64_t half_mask;
    uint64_t keys[PRESTO__PERMUTATION_ROUNDS];
} presto__permutation;

/** `stream` tells apart permutations of the same seed and epoch. count >= 1. */
void presto__permutation_init(presto__permutation *permutation, uint64_t count, uint64_t seed,
                              uint64_t epoch, uint64_t stream);
uint64_t presto__permutation_at(const presto__permutation *permutation, uint64_t i);
uint64_t presto__permutation_inverse(const presto__permutation *permutation, uint64_t value);

typedef struct presto__order_options {
    uint64_t count;               /* samples of the source, or of `subset` */
    const presto__subset *subset; /* the only ones that come; NULL: all. Borrowed. Of a mix: those
                                     of all parts, one part behind the other */
    uint64_t seed;
    presto_shuffle_kind shuffle;
    uint64_t window;
    uint64_t rank, world;
    bool drop_last; /* leave out an incomplete last round of ranks instead of padding it */
    /* A mix: shuffle and window are of each part, and `count` is what an epoch of the mix has.
     * Borrowed; no parts: one input. Not for PRESTO_SHUFFLE_BUFFER. */
    const presto_source_part *parts;
    size_t part_count;
} presto__order_options;

/** Which sample is at which position of which epoch. */
typedef struct presto__order {
    presto__order_options options; /* read-only */
    uint64_t epoch_samples;        /* of this rank; read-only */
    const uint64_t *list; /* NULL, or the sample at each position, whatever the options say.
                             Borrowed; set while nothing else runs */
    /* The simulated shuffle buffer, for PRESTO_SHUFFLE_BUFFER; guarded by the pool's lock. */
    uint64_t *buffer;
    size_t buffer_count;
    size_t buffer_capacity;
    uint64_t next_in;  /* the next number that enters the buffer */
    uint64_t next_out; /* global position of the next number that leaves it */
    uint64_t epoch;    /* the one being simulated; UINT64_MAX: none yet */
    uint64_t *head;    /* the first numbers of the epoch, for padding */
    size_t head_count;
    presto_rng rng;
} presto__order;

presto_status presto__order_init(presto__order *order, const presto__order_options *options,
                                 presto_error *err);
void presto__order_done(presto__order *order);
/** Must the numbers be asked for in sequence, with the lock held? */
bool presto__order_is_sequential(const presto__order *order);
/** Sample numbers of positions [first, first + count) of this rank in `epoch`. Sequential orders:
 * rising positions only. */
void presto__order_numbers(presto__order *order, uint64_t epoch, uint64_t first, size_t count,
                           uint64_t *numbers_out);

/* ---- one epoch of one input, in any order of asking ---- */

/** Permuted blocks of one epoch. */
typedef struct presto__block_order {
    presto__permutation blocks;
    uint64_t window;
    uint64_t short_count; /* samples of the last block; window if none is short */
    uint64_t short_slot;  /* where the last block comes */
    uint64_t slot;        /* the one that `within` belongs to */
    presto__permutation within;
} presto__block_order;

/** The order of `count` samples in one epoch. A plain value, of the thread that made it. */
typedef struct presto__epoch_order {
    uint64_t count, seed, epoch;
    presto_shuffle_kind shuffle; /* not PRESTO_SHUFFLE_BUFFER */
    union {
        presto__permutation full;
        presto__block_order blocks;
    };
} presto__epoch_order;

/** As `options` say for `count` samples in `epoch`. */
void presto__epoch_order_init(presto__epoch_order *order, const presto__order_options *options,
                              uint64_t count, uint64_t epoch);
uint64_t presto__epoch_order_at(presto__epoch_order *order, uint64_t position);

/* ---- mixes: mix.c ---- */

#define PRESTO__MOST_PARTS PRESTO_MIX_MOST_INPUTS

/** Positions [first, first + count) of a rank in an epoch. */
typedef struct presto__positions {
    uint64_t epoch, first;
    size_t count;
} presto__positions;

/** The sample numbers of a stretch of a mix, and the epoch of its part in which each of them is.
 * `epochs_out` NULL: not wanted. */
void presto__mix_numbers(const presto__order_options *options, const presto__positions *stretch,
                         uint64_t *numbers_out, uint64_t *epochs_out);
/** How many samples of each part are before `position` of the mix's `epoch`, in that epoch. */
void presto__mix_passed(const presto__order_options *options, uint64_t epoch, uint64_t position,
                        uint64_t *counts_out);

/* ---- several ranges at once ---- */

#define PRESTO__MOST_OPEN 4

/** Positions [first, end) of an epoch. */
typedef struct presto__range {
    uint64_t first, end;
} presto__range;

/**
 * Goes through ranges, up to `most_open` at a time: a stretch of each open range in turn. When a
 * range ends, the next one of the list takes its place. A plain value: it depends only on the list,
 * most_open and the stretches asked for.
 */
typedef struct presto__ranges {
    /* Kept alive by whoever has the ranges: those of a loader have its copy of the list, which it
     * frees after its workers. NULL: there are none, not even an empty list. */
    const presto__range *list;
    size_t count;
    size_t next; /* in the list: the first not begun */
    size_t most_open;
    presto__range open[PRESTO__MOST_OPEN]; /* what is left of the open ranges */
    size_t turn;
    uint64_t passed; /* positions so far */
} presto__ranges;

/** most_open: 1 to PRESTO__MOST_OPEN. */
void presto__ranges_init(presto__ranges *ranges, const presto__range *list, size_t count,
                         size_t most_open);
/** The next stretch, of 1 to `most` positions of one range; false if all are used up. */
bool presto__ranges_next(presto__ranges *ranges, size_t most, uint64_t *first_out,
                         size_t *count_out);

#endif
