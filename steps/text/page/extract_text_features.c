/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A block as the numbers that the forest decides by. bench/text_fit.py fits the forest to them: who
 * changes their order or meaning fits it anew.
 */
#include <assert.h>
#include <math.h>

#include "extract_text_internal.h"

typedef struct feature_adder {
    float *at;
} feature_adder;

static void add(feature_adder *adder, double value) {
    *adder->at++ = (float)value;
}

/* Sizes span orders of magnitude. */
static double log_of(double value) {
    return value < 0 ? -log2(1 - value) : log2(1 + value);
}

static void add_bits(feature_adder *adder, uint32_t bits) {
    for (int i = 0; i < PRESTO__HINT_COUNT; i++)
        add(adder, bits >> i & 1);
}

static void add_text(feature_adder *adder, const presto__text_block *block) {
    double chars = block->chars, words = block->words + 0.001;
    add(adder, log_of(chars));
    add(adder, log_of(words));
    add(adder, block->link_chars / chars);
    add(adder, block->commas / words);
    add(adder, block->stops / words);
    add(adder, block->digits / chars);
    add(adder, block->capitals / words);
    add(adder, block->breaks);
    add(adder, block->links / words);
    add(adder, block->ends_sentence);
    add(adder, log_of(block->stops));
    add(adder, log_of(block->commas));
    add(adder, chars / words);
    add(adder, log_of(block->run_end - block->run_begin));
    add(adder, block->last == ':');
    add(adder, block->first >= 'a' && block->first <= 'z');
    add(adder, (block->first | 0x20) < 'a' || (block->first | 0x20) > 'z');
}

static void add_element(feature_adder *adder, const presto__page *page,
                        const presto__measures *measures, uint32_t at) {
    static const uint8_t around[] = {PRESTO__TAG_ARTICLE, PRESTO__TAG_MAIN,    PRESTO__TAG_NAV,
                                     PRESTO__TAG_ASIDE,   PRESTO__TAG_HEADER,  PRESTO__TAG_FOOTER,
                                     PRESTO__TAG_FORM,    PRESTO__TAG_TABLE,   PRESTO__TAG_LIST,
                                     PRESTO__TAG_FIGURE,  PRESTO__TAG_SECTION, PRESTO__TAG_QUOTE,
                                     PRESTO__TAG_DL,      PRESTO__TAG_CAPTION};
    const presto__node *node = &page->nodes[at];
    uint8_t tag = node->tag;
    add(adder, tag == PRESTO__TAG_P);
    add(adder, tag >= PRESTO__TAG_H1 && tag <= PRESTO__TAG_H4 ? tag - PRESTO__TAG_H1 + 1 : 0);
    add(adder, tag == PRESTO__TAG_LI);
    add(adder, tag == PRESTO__TAG_TD || tag == PRESTO__TAG_TH);
    add(adder, tag == PRESTO__TAG_QUOTE || tag == PRESTO__TAG_PRE);
    add(adder, tag == PRESTO__TAG_CAPTION || tag == PRESTO__TAG_FIGURE);
    add(adder, tag == PRESTO__TAG_DIV);
    add(adder, tag == PRESTO__TAG_DT || tag == PRESTO__TAG_DD);
    for (size_t i = 0; i < sizeof around; i++)
        add(adder, (int)(measures->nodes[at].tags >> around[i] & 1));
    add(adder, node->is_body);
    add(adder, node->depth);
}

static void add_names(feature_adder *adder, const presto__page *page,
                      const presto__measures *measures, size_t at) {
    const presto__text_block *block = &page->blocks[at];
    const presto__node *node = &page->nodes[block->node], *parent = &page->nodes[node->parent];
    const presto__node *second = &page->nodes[parent->parent];
    add_bits(adder, node->hints | block->hints | parent->hints);
    add_bits(adder, second->hints | page->nodes[second->parent].hints);
    add_bits(adder, measures->nodes[block->node].hints);
    add_bits(adder, measures->blocks[at].text_hints);
}

static void add_ancestors(feature_adder *adder, const presto__page *page,
                          const presto__measures *measures, uint32_t at) {
    double all_good = measures->nodes[0].good + 1;
    for (int level = 0; level < 3; level++) {
        at = page->nodes[at].parent;
        const presto__node_sums *sums = &measures->nodes[at];
        add(adder, log_of(sums->chars));
        add(adder, sums->link_chars / (sums->chars + 1));
        add(adder, sums->good / all_good);
        add(adder, log_of(sums->blocks));
        add(adder, sums->good / (sums->chars + 1));
        if (level < 2) {
            add(adder, log_of(sums->direct_good));
            add(adder, sums->score / (measures->container_score + 0.01f));
        }
    }
}

static void add_neighbour(feature_adder *adder, const presto__page *page,
                          const presto__text_block *block, size_t at) {
    if (at >= page->block_count) { /* before the first, too */
        add(adder, 0);
        add(adder, -1);
        add(adder, 0);
        add(adder, 0);
        return;
    }
    const presto__text_block *other = &page->blocks[at];
    add(adder, log_of(other->chars));
    add(adder, other->link_chars / (double)other->chars);
    add(adder, other->ends_sentence);
    add(adder, other->node == block->node ||
                   page->nodes[other->node].parent == page->nodes[block->node].parent);
}

static void add_vicinity(feature_adder *adder, const presto__page *page,
                         const presto__measures *measures, size_t at) {
    for (size_t distance = 1; distance <= 3; distance++) {
        add_neighbour(adder, page, &page->blocks[at], at - distance);
        add_neighbour(adder, page, &page->blocks[at], at + distance);
    }
    for (size_t reach = 4; reach <= 16; reach *= 4) {
        size_t begin = at > reach ? at - reach : 0;
        size_t end = page->block_count - at > reach + 1 ? at + 1 + reach : page->block_count;
        add(adder, log_of(measures->blocks[at].good - measures->blocks[begin].good));
        add(adder, log_of(measures->blocks[end].good - measures->blocks[at + 1].good));
    }
}

static void add_distance(feature_adder *adder, size_t at, size_t from) {
    add(adder, from == SIZE_MAX ? -16 : log_of((double)at - (double)from));
}

/* Where the block is, seen from the container. */
static void add_place(feature_adder *adder, const presto__page *page,
                      const presto__measures *measures, size_t at) {
    const presto__node *container = &page->nodes[measures->container];
    const presto__node_sums *sums = &measures->nodes[measures->container];
    bool is_inside = at >= container->block_begin && at < container->block_end;
    uint32_t node = page->blocks[at].node, common = measures->container;
    int levels = 0;
    for (; is_inside && node != measures->container && node != 0; levels++)
        node = page->nodes[node].parent;
    for (; !is_inside && common != 0 &&
           (at < page->nodes[common].block_begin || at >= page->nodes[common].block_end);
         levels--)
        common = page->nodes[common].parent;
    double all_good = measures->nodes[0].good + 1;
    add(adder, is_inside);
    add(adder, levels);
    add(adder, sums->good / all_good);
    add(adder, log_of(sums->good));
    add(adder, measures->nodes[common].good / all_good);
    add(adder, container->is_body);
    add(adder, sums->link_chars / (sums->chars + 1));
    add_distance(adder, at, measures->first_good);
    add_distance(adder, at, measures->last_good);
    add_distance(adder, at, measures->first_h1);
    add_distance(adder, at, measures->first_title);
}

void presto__measures_features(const presto__measures *measures, const presto__page *page,
                               size_t at, float features[PRESTO__FEATURE_COUNT]) {
    const presto__text_block *block = &page->blocks[at];
    const presto__block_sums *sums = &measures->blocks[at];
    const presto__block_sums *all = &measures->blocks[page->block_count];
    feature_adder adder = {features};
    add_text(&adder, block);
    add_element(&adder, page, measures, block->node);
    add_names(&adder, page, measures, at);
    add_ancestors(&adder, page, measures, block->node);
    add_vicinity(&adder, page, measures, at);
    add_place(&adder, page, measures, at);
    add(&adder, sums->is_title);
    add(&adder, sums->is_repeat);
    add(&adder, sums->is_repeated);
    add(&adder, (double)at / (double)page->block_count);
    add(&adder, sums->chars / (all->chars + 1));
    add(&adder, log_of((double)page->block_count));
    add(&adder, log_of(all->good));
    add(&adder, all->good / (all->chars + 1));
    assert(adder.at == features + PRESTO__FEATURE_COUNT);
}
