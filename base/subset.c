/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Some numbers, by rank: a bit for each number, and the place of every
 * MARK_EVERY-th that is in. A number is found from the mark before it, over a few words.
 */
#include <stdlib.h>

#include "checked_internal.h"
#include "subset_internal.h"

#define MARK_BITS 9 /* every 512th */

struct presto__subset {
    uint64_t count; /* that are asked for */
    uint64_t added;
    uint64_t *words; /* a bit for each number */
    uint64_t word_count;
    uint64_t *marks; /* the numbers of ranks 0, 512, ... */
    uint64_t mark_capacity;
};

presto_status presto__subset_new(uint64_t most, presto__subset **subset_out, presto_error *err) {
    presto__subset *subset = calloc(1, sizeof *subset);
    if (subset == NULL)
        return presto_fail_memory(err, sizeof *subset);
    subset->word_count = most / 64 + 1;
    subset->words = presto__zeroed_array(subset->word_count, 0, sizeof *subset->words);
    if (subset->words == NULL) {
        free(subset);
        return presto_fail_memory(err, most / 8);
    }
    *subset_out = subset;
    return PRESTO_OK;
}

void presto__subset_free(presto__subset *subset) {
    if (subset == NULL)
        return;
    free(subset->words);
    free(subset->marks);
    free(subset);
}

presto_status presto__subset_add(presto__subset *subset, uint64_t number, presto_error *err) {
    uint64_t mark = subset->added >> MARK_BITS;
    if (mark == subset->mark_capacity) {
        uint64_t capacity = subset->mark_capacity * 2 + 16;
        uint64_t *marks = realloc(subset->marks, capacity * sizeof *marks);
        if (marks == NULL)
            return presto_fail_memory(err, capacity * sizeof *marks);
        subset->marks = marks;
        subset->mark_capacity = capacity;
    }
    if ((subset->added & (((uint64_t)1 << MARK_BITS) - 1)) == 0)
        subset->marks[mark] = number;
    subset->words[number / 64] |= (uint64_t)1 << number % 64;
    subset->count = ++subset->added;
    return PRESTO_OK;
}

uint64_t presto__subset_count(const presto__subset *subset) {
    return subset->count;
}

void presto__subset_truncate(presto__subset *subset, uint64_t count) {
    if (count < subset->count)
        subset->count = count;
}

static uint64_t number_at(const presto__subset *subset, uint64_t rank) {
    uint64_t start = subset->marks[rank >> MARK_BITS];
    uint64_t left = rank & (((uint64_t)1 << MARK_BITS) - 1); /* to pass over */
    uint64_t at = start / 64, word = subset->words[at] & (UINT64_MAX << start % 64);
    uint64_t here = (uint64_t)__builtin_popcountll(word);
    while (here <= left) {
        left -= here;
        word = subset->words[++at];
        here = (uint64_t)__builtin_popcountll(word);
    }
    for (; left > 0; left--)
        word &= word - 1;
    return at * 64 + (uint64_t)__builtin_ctzll(word);
}

void presto__subset_numbers(const presto__subset *subset, uint64_t *numbers, size_t count) {
    for (size_t i = 0; i < count; i++)
        numbers[i] = number_at(subset, numbers[i]);
}
