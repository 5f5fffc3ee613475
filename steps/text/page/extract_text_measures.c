/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sums over elements, and the container: the element that holds the good blocks. A good block reads
 * like running text: sentences, few links, not inside what its names call navigation or comments.
 */
#include <stdlib.h>

#include "extract_text_internal.h"

#define KEEP_ITEMS ((size_t)1 << 17)

#define TAG_BIT(tag) (UINT64_C(1) << PRESTO__TAG_##tag)

/* Names of what is no main text, whatever it reads like. */
#define NEVER_GOOD                                                                                 \
    ((uint32_t)PRESTO__HINT_COMMENT | PRESTO__HINT_FOOT | PRESTO__HINT_CONSENT |                   \
     PRESTO__HINT_POPUP | PRESTO__HINT_NAV)
#define SELDOM_CONTAINER                                                                           \
    ((uint32_t)PRESTO__HINT_COMMENT | PRESTO__HINT_SIDE | PRESTO__HINT_FOOT |                      \
     PRESTO__HINT_RELATED | PRESTO__HINT_CONSENT | PRESTO__HINT_NAV)
#define OFTEN_CONTAINER                                                                            \
    ((uint32_t)PRESTO__HINT_ARTICLE | PRESTO__HINT_BODY | PRESTO__HINT_TEXT | PRESTO__HINT_CONTENT)

void presto__measures_done(presto__measures *measures) {
    free(measures->nodes);
    free(measures->blocks);
    free(measures->places);
    free(measures->hashes);
    memset(measures, 0, sizeof *measures);
}

static bool reserve(void **items, size_t *capacity, size_t count, size_t bytes) {
    if (count <= *capacity)
        return true;
    free(*items);
    *capacity = 0;
    *items = malloc(2 * count * bytes);
    if (*items == NULL)
        return false;
    *capacity = 2 * count;
    return true;
}

static presto_status reserve_all(presto__measures *measures, const presto__page *page,
                                 presto_error *err) {
    if (measures->node_capacity > KEEP_ITEMS || measures->block_capacity > KEEP_ITEMS)
        presto__measures_done(measures);
    size_t places = 64;
    while (places < 2 * page->block_count)
        places *= 2;
    size_t blocks = page->block_count + 1, hash_capacity = measures->block_capacity;
    if (!reserve((void **)&measures->hashes, &hash_capacity, blocks, sizeof *measures->hashes) ||
        !reserve((void **)&measures->blocks, &measures->block_capacity, blocks,
                 sizeof *measures->blocks) ||
        !reserve((void **)&measures->nodes, &measures->node_capacity, page->node_count,
                 sizeof *measures->nodes) ||
        !reserve((void **)&measures->places, &measures->place_capacity, places,
                 sizeof *measures->places)) {
        presto__measures_done(measures);
        return presto_fail_memory(err, 0);
    }
    return PRESTO_OK;
}

/* ---- repeats and titles ---- */

/* Letters and digits in lower case; `hash` goes on from text before. */
static uint32_t hash_text(presto_span text, uint32_t hash) {
    for (size_t i = 0; i < text.bytes; i++) {
        uint8_t byte = text.data[i];
        if (byte > ' ')
            hash = (hash ^ (byte >= 'A' && byte <= 'Z' ? byte | 0x20u : byte)) * 16777619u;
    }
    return hash;
}

static void find_repeats(presto__measures *measures, const presto__page *page) {
    size_t mask = 63;
    while (mask + 1 < 2 * page->block_count)
        mask = 2 * mask + 1;
    memset(measures->places, 0, (mask + 1) * sizeof *measures->places);
    for (size_t i = 0; i < page->block_count; i++) {
        const presto__text_block *block = &page->blocks[i];
        uint32_t hash = 2166136261u;
        for (uint32_t r = block->run_begin; r < block->run_end; r++)
            hash = hash_text((presto_span){page->text.data + page->runs[r].at, page->runs[r].bytes},
                             hash);
        measures->hashes[i] = hash;
        size_t place = hash & mask;
        while (measures->places[place] != 0 &&
               measures->hashes[measures->places[place] - 1] != hash)
            place = (place + 1) & mask;
        measures->blocks[i].is_repeat = measures->places[place] != 0;
        if (measures->blocks[i].is_repeat)
            measures->blocks[measures->places[place] - 1].is_repeated = true;
        else
            measures->places[place] = (uint32_t)i + 1;
    }
}

#define MAX_TITLE_BYTES 1024

/* Words in lower case, one space between them. */
static size_t plain_words(presto_span text, char out[MAX_TITLE_BYTES], size_t bytes) {
    for (size_t i = 0; i < text.bytes && bytes + 1 < MAX_TITLE_BYTES; i++) {
        uint8_t byte = text.data[i];
        if (byte == '&') { /* a reference */
            size_t end = i + 1;
            while (end < text.bytes && end < i + 9 && text.data[end] != ';')
                end++;
            if (end < text.bytes && text.data[end] == ';')
                i = end;
        }
        if (byte >= 'A' && byte <= 'Z')
            byte |= 0x20;
        bool is_word = (byte >= 'a' && byte <= 'z') || (byte >= '0' && byte <= '9') || byte >= 0xc3;
        if (is_word || (byte >= 0x80 && bytes > 0 && out[bytes - 1] != ' '))
            out[bytes++] = (char)byte;
        else if (bytes > 0 && out[bytes - 1] != ' ')
            out[bytes++] = ' ';
    }
    return bytes;
}

/* Does the page's title contain the block? */
static bool repeats_title(const presto__page *page, const presto__text_block *block,
                          const char title[MAX_TITLE_BYTES]) {
    char words[MAX_TITLE_BYTES];
    size_t bytes = 0;
    if (block->chars < 8 || block->chars > 300)
        return false;
    for (uint32_t r = block->run_begin; r < block->run_end; r++)
        bytes = plain_words((presto_span){page->text.data + page->runs[r].at, page->runs[r].bytes},
                            words, bytes);
    while (bytes > 0 && words[bytes - 1] == ' ')
        bytes--;
    words[bytes] = '\0';
    return bytes >= 8 && strstr(title, words) != NULL;
}

/* ---- sums ---- */

static bool is_good(const presto__measures *measures, const presto__text_block *block) {
    if (block->chars < 30 || 3 * (uint64_t)block->link_chars > block->chars)
        return false;
    if ((measures->nodes[block->node].hints & NEVER_GOOD) != 0)
        return false;
    return block->ends_sentence || block->commas > 0 || block->chars >= 120;
}

static bool is_leaf(uint8_t tag) {
    return tag == PRESTO__TAG_P || tag == PRESTO__TAG_LI || tag == PRESTO__TAG_PRE ||
           tag == PRESTO__TAG_QUOTE || (tag >= PRESTO__TAG_H1 && tag <= PRESTO__TAG_H4);
}

/* A good block speaks for the elements around it, the less the farther away. */
static void add_score(presto__measures *measures, const presto__page *page,
                      const presto__text_block *block) {
    float chars = (float)block->chars;
    float score = 1 + (float)block->commas + (chars > 300 ? 3 : chars / 100);
    score *= 1 - (float)block->link_chars / chars;
    uint32_t at = block->node;
    if (is_leaf(page->nodes[at].tag))
        at = page->nodes[at].parent;
    measures->nodes[at].direct_good += chars;
    for (int level = 0; level < 5; level++) {
        measures->nodes[at].score += score;
        if (at == 0)
            return;
        at = page->nodes[at].parent;
        score *= level == 0 ? 0.5f : 0.6f;
    }
}

/* What every sum begins with: texts and links, then what elements are called. */
static void sum_texts(presto__measures *measures, const presto__page *page) {
    for (size_t i = 0; i < page->node_count; i++)
        measures->nodes[i] = (presto__node_sums){0};
    for (size_t i = 0; i < page->block_count; i++) {
        const presto__text_block *block = &page->blocks[i];
        presto__node_sums *node = &measures->nodes[block->node];
        node->chars += (float)block->chars;
        node->link_chars += (float)block->link_chars;
        node->blocks++;
    }
    for (size_t i = page->node_count; i-- > 1;) {
        const presto__node_sums *node = &measures->nodes[i];
        presto__node_sums *parent = &measures->nodes[page->nodes[i].parent];
        parent->chars += node->chars;
        parent->link_chars += node->link_chars;
        parent->blocks += node->blocks;
    }
}

/* An element around most of the page has names for parts of it: has-sidebar, with-comments. */
static void join_names(presto__measures *measures, const presto__page *page) {
    float most = 0.6f * measures->nodes[0].chars;
    for (size_t i = 0; i < page->node_count; i++) {
        const presto__node *node = &page->nodes[i];
        presto__node_sums *sums = &measures->nodes[i], *parent = &measures->nodes[node->parent];
        sums->tags = parent->tags | UINT64_C(1) << node->tag;
        sums->hints =
            parent->hints | (sums->chars > most ? node->hints & OFTEN_CONTAINER : node->hints);
    }
}

static uint32_t hints_of_text(const presto__page *page, const presto__text_block *block) {
    uint32_t hints = 0;
    if (block->words <= 8)
        for (uint32_t r = block->run_begin; r < block->run_end; r++)
            hints |= presto__hints_of(
                (presto_span){page->text.data + page->runs[r].at, page->runs[r].bytes});
    return hints;
}

static void sum_blocks(presto__measures *measures, const presto__page *page) {
    char title[MAX_TITLE_BYTES];
    title[plain_words(page->title, title, 0)] = '\0';
    presto__block_sums sums = {0};
    for (size_t i = 0; i < page->block_count; i++) {
        const presto__text_block *block = &page->blocks[i];
        presto__block_sums *entry = &measures->blocks[i];
        entry->good = sums.good;
        entry->chars = sums.chars;
        entry->is_good = is_good(measures, block);
        entry->is_title = repeats_title(page, block, title);
        entry->text_hints = hints_of_text(page, block);
        if (page->nodes[block->node].tag == PRESTO__TAG_H1 && measures->first_h1 == SIZE_MAX)
            measures->first_h1 = i;
        if (entry->is_title && measures->first_title == SIZE_MAX)
            measures->first_title = i;
        sums.chars += (float)block->chars;
        if (entry->is_good) {
            measures->nodes[block->node].good += (float)block->chars;
            sums.good += (float)block->chars;
            add_score(measures, page, block);
        }
    }
    measures->blocks[page->block_count] = sums;
    for (size_t i = page->node_count; i-- > 1;)
        measures->nodes[page->nodes[i].parent].good += measures->nodes[i].good;
}

/* ---- the container ---- */

static float container_score(const presto__node *node, const presto__node_sums *sums) {
    float score = sums->score * (1 - sums->link_chars / (sums->chars + 1));
    if ((sums->hints & SELDOM_CONTAINER) != 0)
        score *= 0.4f;
    if ((sums->tags & (TAG_BIT(ASIDE) | TAG_BIT(FOOTER) | TAG_BIT(NAV))) != 0)
        score *= 0.3f;
    if ((node->hints & OFTEN_CONTAINER) != 0)
        score *= 1.2f;
    return node->is_body ? 1.5f * score : score;
}

static void find_container(presto__measures *measures, const presto__page *page) {
    float best = -1, all = measures->nodes[0].good;
    uint32_t container = 0;
    for (size_t i = 0; i < page->node_count; i++) {
        if (measures->nodes[i].score <= 0)
            continue;
        float score = container_score(&page->nodes[i], &measures->nodes[i]);
        if (score > best) {
            best = score;
            container = (uint32_t)i;
        }
    }
    /* The text may go on beside it. */
    while (container != 0) {
        uint32_t parent = page->nodes[container].parent;
        float good = measures->nodes[container].good;
        if (parent == 0 || measures->nodes[parent].good <= 1.25f * good || good >= 0.6f * all)
            break;
        container = parent;
    }
    measures->container = container;
    measures->container_score = best;
}

static void find_edges(presto__measures *measures, const presto__page *page) {
    const presto__node *container = &page->nodes[measures->container];
    measures->first_good = SIZE_MAX;
    measures->last_good = SIZE_MAX;
    for (size_t i = container->block_begin; i < container->block_end; i++) {
        if (!measures->blocks[i].is_good)
            continue;
        if (measures->first_good == SIZE_MAX)
            measures->first_good = i;
        measures->last_good = i;
    }
}

presto_status presto__measures_take(presto__measures *measures, const presto__page *page,
                                    presto_error *err) {
    PRESTO_TRY(reserve_all(measures, page, err));
    memset(measures->blocks, 0, (page->block_count + 1) * sizeof *measures->blocks);
    measures->first_h1 = SIZE_MAX;
    measures->first_title = SIZE_MAX;
    find_repeats(measures, page);
    sum_texts(measures, page);
    join_names(measures, page);
    sum_blocks(measures, page);
    find_container(measures, page);
    find_edges(measures, page);
    return PRESTO_OK;
}
