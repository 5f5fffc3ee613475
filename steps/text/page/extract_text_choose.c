/* SPDX-License-Identifier: Apache-2.0 */
/* Which blocks are the main text: those that the forest votes for, and what options add or drop. */
#include "extract_text_internal.h"

/* Two or three sentences. */
#define FEW_CHARS 250

#define TABLE_BIT (UINT64_C(1) << PRESTO__TAG_TABLE)

/* Something that a reader wrote, rather than a button beside it. */
static bool is_comment(const presto__measures *measures, const presto__text_block *block) {
    return (measures->nodes[block->node].hints & PRESTO__HINT_COMMENT) != 0 && block->words >= 4 &&
           2 * (uint64_t)block->link_chars < block->chars;
}

/* Inside a table of the text, not of the page's layout. */
static bool is_in_table(const presto__measures *measures, const presto__text_block *block) {
    return (measures->nodes[block->node].tags & TABLE_BIT) != 0 &&
           (measures->nodes[measures->container].tags & TABLE_BIT) == 0;
}

/* Keep blocks with more than this score. Returns their characters. */
static uint64_t keep_above(presto__page *page, float score) {
    uint64_t chars = 0;
    for (size_t i = 0; i < page->block_count; i++) {
        presto__text_block *block = &page->blocks[i];
        block->is_kept = block->score > score;
        if (block->is_kept)
            chars += block->chars;
    }
    return chars;
}

void presto__page_choose(presto__page *page, const presto__measures *measures,
                         const presto__choice_options *options) {
    /* A page that has hardly any text by the first of these is of a kind that is unknown to the
     * forest: what is most likely its text is better than nothing. */
    static const float scores[] = {-0.3f, -0.8f, -1.3f, -1.8f};
    float features[PRESTO__FEATURE_COUNT];
    for (size_t i = 0; i < page->block_count; i++) {
        presto__measures_features(measures, page, i, features);
        page->blocks[i].score = presto__forest_score(features);
    }
    for (size_t i = 0; i < sizeof scores / sizeof scores[0]; i++)
        if (keep_above(page, scores[i]) >= FEW_CHARS)
            break;
    for (size_t i = 0; i < page->block_count; i++) {
        presto__text_block *block = &page->blocks[i];
        if (options->comments && is_comment(measures, block))
            block->is_kept = true;
        if (!options->tables && is_in_table(measures, block))
            block->is_kept = false;
    }
}
