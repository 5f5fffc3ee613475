/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The map of characters of a SentencePiece model is stored as the library uses it: 4 bytes with the
 * size of a double array, the array (Darts-clone, one u32 a node), and the texts that it points
 * into. The library walks the array without looking at its size, and keeps 32 matches on its stack.
 * So every walk from the root must stay inside, end, and pass at most 32 entries.
 */
#include <stdlib.h>
#include <string.h>

#include "../../base/bytes_internal.h"
#include "sentencepiece_internal.h"
#include "unicode_internal.h"

enum {
    MAX_ENTRIES_ON_A_PATH = 32, /* Normalizer::kMaxTrieResultsSize */
    MAX_PATH_BYTES = 256        /* the library walks a path for each character of a text */
};
#define MAX_MAP_BYTES ((size_t)16 << 20)

/* What is known of a node that can be reached. */
typedef struct node {
    uint32_t edges_in;
    uint32_t edges_left; /* edges_in less those from nodes that are done */
    uint16_t shortest;   /* bytes of the shortest path from the root */
    uint16_t longest;
    uint16_t entries; /* most entries on a path, this node included */
    bool is_seen;
} node;

typedef struct walk {
    const uint8_t *units;
    uint32_t unit_count;
    presto_span texts;
    uint64_t offset; /* of the map in the file */
    node *nodes;
    uint32_t *queue;
    uint32_t queued;
    bool has_space;  /* in a key */
    bool is_cut;     /* a text begins inside a character */
    uint32_t growth; /* times as many bytes as it is mapped from, an entry has at most */
} walk;

static uint32_t unit_at(const walk *w, uint32_t i) {
    return presto__load_u32(w->units + (size_t)i * 4);
}

/* A transition by byte b leads to state ^ b if that unit has the label b. */
static uint32_t state_of(const walk *w, uint32_t i) {
    uint32_t unit = unit_at(w, i);
    return i ^ ((unit >> 10) << ((unit & UINT32_C(0x200)) >> 6));
}

static bool has_label(uint32_t unit, uint32_t label) {
    return (unit & UINT32_C(0x800000ff)) == label;
}

static bool is_entry(uint32_t unit) {
    return (unit >> 8 & 1) != 0;
}

static presto_status fail_at(const walk *w, uint32_t i, presto_status status, const char *what,
                             presto_error *err) {
    return presto_fail(err, status, w->offset + 4 + (uint64_t)i * 4,
                       "the model's map of characters %s", what);
}

/* All 256 units that the next byte may lead to are inside; so is the text of an entry. */
static presto_status check_node(walk *w, uint32_t i, presto_error *err) {
    uint32_t state = state_of(w, i);
    if ((state | 0xff) >= w->unit_count)
        return fail_at(w, i, PRESTO_ERR_CORRUPT, "points behind its end", err);
    if (i == 0 || !is_entry(unit_at(w, i)))
        return PRESTO_OK;
    uint32_t at = unit_at(w, state) & UINT32_C(0x7fffffff);
    if (at >= w->texts.bytes)
        return fail_at(w, i, PRESTO_ERR_CORRUPT, "points behind its texts", err);
    w->is_cut = w->is_cut || (w->texts.data[at] & 0xc0) == 0x80;
    /* A space becomes three bytes. */
    size_t shortest = w->nodes[i].shortest;
    size_t most = shortest * PRESTO__SENTENCEPIECE_MAX_GROWTH / 3;
    size_t bytes = strnlen((const char *)w->texts.data + at, most + 1);
    if (bytes > most)
        return fail_at(w, i, PRESTO_ERR_LIMIT, "makes texts more than 100 times as long", err);
    const char *text = (const char *)w->texts.data + at;
    size_t spaces = 0;
    for (size_t k = 0; k < bytes; k++)
        spaces += text[k] == ' ';
    uint32_t growth = (uint32_t)((bytes + 2 * spaces + shortest - 1) / shortest);
    if (growth > w->growth)
        w->growth = growth;
    return PRESTO_OK;
}

/* Find all nodes, nearest first, and count the edges into each. */
static presto_status find_nodes(walk *w, presto_error *err) {
    w->nodes[0].is_seen = true;
    w->queue[w->queued++] = 0;
    for (uint32_t done = 0; done < w->queued; done++) {
        uint32_t from = w->queue[done];
        PRESTO_TRY(check_node(w, from, err));
        uint32_t state = state_of(w, from);
        for (uint32_t label = 0; label < 256; label++) {
            uint32_t to = state ^ label;
            if (!has_label(unit_at(w, to), label))
                continue;
            w->has_space = w->has_space || label == ' ';
            w->nodes[to].edges_in++;
            if (w->nodes[to].is_seen)
                continue;
            if (w->nodes[from].shortest == MAX_PATH_BYTES)
                return fail_at(w, to, PRESTO_ERR_LIMIT, "has a key of more than 256 bytes", err);
            w->nodes[to].is_seen = true;
            w->nodes[to].shortest = (uint16_t)(w->nodes[from].shortest + 1);
            w->queue[w->queued++] = to;
        }
    }
    return PRESTO_OK;
}

static presto_status extend(walk *w, uint32_t from, uint32_t to, presto_error *err) {
    node *next = &w->nodes[to];
    unsigned longest = w->nodes[from].longest + 1U;
    unsigned entries = w->nodes[from].entries + (is_entry(unit_at(w, to)) ? 1U : 0U);
    if (longest > MAX_PATH_BYTES)
        return fail_at(w, to, PRESTO_ERR_LIMIT, "has a key of more than 256 bytes", err);
    if (entries > MAX_ENTRIES_ON_A_PATH)
        return fail_at(w, to, PRESTO_ERR_LIMIT, "has more than 32 keys that begin alike", err);
    if (longest > next->longest)
        next->longest = (uint16_t)longest;
    if (entries > next->entries)
        next->entries = (uint16_t)entries;
    return PRESTO_OK;
}

/* Longest paths, in topological order (Kahn's algorithm): what is never reached is on a circle. */
static presto_status measure_paths(walk *w, presto_error *err) {
    uint32_t wanted = w->queued;
    for (uint32_t i = 0; i < wanted; i++)
        w->nodes[w->queue[i]].edges_left = w->nodes[w->queue[i]].edges_in;
    w->queued = 0;
    if (w->nodes[0].edges_in == 0)
        w->queue[w->queued++] = 0;
    for (uint32_t done = 0; done < w->queued; done++) {
        uint32_t from = w->queue[done];
        uint32_t state = state_of(w, from);
        for (uint32_t label = 0; label < 256; label++) {
            uint32_t to = state ^ label;
            if (!has_label(unit_at(w, to), label))
                continue;
            PRESTO_TRY(extend(w, from, to, err));
            if (--w->nodes[to].edges_left == 0)
                w->queue[w->queued++] = to;
        }
    }
    if (w->queued < wanted)
        return fail_at(w, 0, PRESTO_ERR_CORRUPT, "goes in a circle", err);
    return PRESTO_OK;
}

/* U+2581, which the library writes for a space. */
static bool has_mark(presto_span texts) {
    for (size_t i = 2; i < texts.bytes; i++)
        if (texts.data[i - 2] == 0xe2 && texts.data[i - 1] == 0x96 && texts.data[i] == 0x81)
            return true;
    return false;
}

presto_status presto__charsmap_check(presto_span map, uint64_t offset, bool *spaces_out,
                                     uint32_t *growth_out, presto_error *err) {
    walk w = {.offset = offset};
    *spaces_out = false;
    if (map.bytes == 0)
        return PRESTO_OK;
    if (map.bytes > MAX_MAP_BYTES)
        return fail_at(&w, 0, PRESTO_ERR_LIMIT, "has more than 16 MiB", err);
    size_t array_bytes = map.bytes < 4 ? SIZE_MAX : presto__load_u32(map.data);
    if (array_bytes % 4 != 0 || array_bytes < 1024 || array_bytes >= map.bytes - 4 ||
        map.data[map.bytes - 1] != 0)
        return fail_at(&w, 0, PRESTO_ERR_CORRUPT, "is damaged", err);
    w.units = map.data + 4;
    w.unit_count = (uint32_t)(array_bytes / 4);
    w.texts = presto_span_of(w.units + array_bytes, map.bytes - 4 - array_bytes);
    w.nodes = calloc(w.unit_count, sizeof *w.nodes);
    w.queue = calloc(w.unit_count, sizeof *w.queue);
    presto_status status = w.nodes == NULL || w.queue == NULL
                               ? presto_fail_memory(err, w.unit_count * sizeof *w.nodes)
                               : find_nodes(&w, err);
    if (status >= 0)
        status = measure_paths(&w, err);
    /* The library takes what follows half a character for its rest. */
    bool is_whole = !w.is_cut && presto__utf8_valid_bytes(w.texts) == w.texts.bytes;
    *growth_out = w.growth > 1 ? w.growth : 1;
    *spaces_out = w.has_space || has_mark(w.texts) || !is_whole;
    free(w.nodes);
    free(w.queue);
    return status;
}
