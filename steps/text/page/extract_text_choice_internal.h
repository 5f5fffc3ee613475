/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The choice among the blocks of a page, for extract-text: measures of elements and blocks, and the
 * forest that votes on them. All memory belongs to one worker thread and is kept from page to page.
 */
#ifndef PRESTO_STEPS_EXTRACT_TEXT_CHOICE_INTERNAL_H
#define PRESTO_STEPS_EXTRACT_TEXT_CHOICE_INTERNAL_H

#include "extract_text_internal.h"

/* ---- measures: what the choice looks at ---- */

#define PRESTO__FEATURE_COUNT 219

/* Sums over the blocks inside an element. */
typedef struct presto__node_sums {
    float chars, link_chars;
    float good;        /* characters of good blocks: sentences with few links */
    float direct_good; /* of those right inside the element, or inside its paragraphs */
    float blocks;
    float score;    /* grows with the good blocks near the element */
    uint64_t tags;  /* bits: presto__tag of the element and its ancestors */
    uint32_t hints; /* of its own names and those of its ancestors */
} presto__node_sums;

typedef struct presto__block_sums {
    float good; /* characters of good blocks before it; one more entry than there are blocks */
    float chars;
    uint32_t text_hints; /* of its own words, if they are few */
    bool is_good, is_title, is_repeat, is_repeated;
} presto__block_sums;

typedef struct presto__measures {
    presto__node_sums *nodes;
    presto__block_sums *blocks;
    uint32_t *places; /* hash table for repeats: blocks, plus one */
    uint32_t *hashes;
    size_t node_capacity, block_capacity, place_capacity;
    /* of the whole page */
    uint32_t container; /* the element that most good blocks are in, and little else */
    float container_score;
    size_t first_good, last_good; /* in the container; SIZE_MAX: none */
    size_t first_h1, first_title; /* SIZE_MAX: none */
} presto__measures;

void presto__measures_done(presto__measures *measures);

/** Measure all of the page. PRESTO_ERR_MEMORY. */
presto_status presto__measures_take(presto__measures *measures, const presto__page *page,
                                    presto_error *err);

/** The features of block `at`, as the forest knows them. */
void presto__measures_features(const presto__measures *measures, const presto__page *page,
                               size_t at, float features[PRESTO__FEATURE_COUNT]);

/* ---- choice and output ---- */

typedef struct presto__choice_options {
    bool comments, tables;
} presto__choice_options;

/** Set is_kept of the blocks that are the main text. */
void presto__page_choose(presto__page *page, const presto__measures *measures,
                         const presto__choice_options *options);

/** The log odds that a block with these features belongs to the main text. */
float presto__forest_score(const float features[PRESTO__FEATURE_COUNT]);

#endif
