/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Compares Examples with the last one as a whole. Most of their bytes are names and lengths, and
 * stay the same from one to the next: these are compared 16 at a time, whatever entry they belong
 * to, with a mask that leaves out the payloads. Only where the length of a payload varies do the
 * bytes behind it move: a stretch ends there.
 *
 * The bytes of an Example of the plan are those that an entry by entry comparison would accept.
 */
#include "../records_internal.h"
#include "layout_internal.h"

/* ---- comparing ---- */

static inline presto__layout_pair load_pair(const uint8_t *at) {
    presto__layout_pair pair;
    memcpy(&pair, at, sizeof pair);
    return pair;
}

static inline presto__layout_pair difference(const presto__layout_chunk *chunk,
                                             presto__layout_pair bytes) {
    return (bytes & chunk->mask) ^ chunk->value;
}

static inline bool is_stretch(const presto__layout_stretch *stretch, const uint8_t *at) {
    const presto__layout_chunk *chunk = stretch->chunks;
    presto__layout_pair other;
    if (stretch->bytes < sizeof other) {
        const presto__layout_pair both = {presto__load_u64(at),
                                          presto__load_u64(at + stretch->bytes - 8)};
        other = difference(chunk, both);
    } else {
        const uint8_t *last = at + stretch->bytes - sizeof other;
        other = difference(chunk, load_pair(last));
        for (; at < last; at += sizeof other)
            other |= difference(++chunk, load_pair(at));
    }
    return (other[0] | other[1]) == 0;
}

/* Do the lengths in the head that ends at `end`, with `word` as its last bytes, say that `run`
 * bytes of payload come? */
static inline bool has_lengths(const presto__layout_stretch *stretch, const uint8_t *end,
                               uint64_t word, size_t run) {
    const presto__head_word *expected = stretch->last_word;
    size_t head = stretch->head_bytes;
    return word == expected->value + run * expected->lengths &&
           end[1 - (ptrdiff_t)head] == head - 2 + run;
}

bool presto__layout_match_plan(const presto__example_layout *layout, const uint8_t *at,
                               const uint8_t *end) {
    const presto__layout_stretch *stretch = layout->stretches;
    const presto__layout_stretch *last = stretch + layout->stretch_count;
    presto__example_value *value = layout->plan_values;
    const uint32_t *offset = layout->plan_offsets;
    for (; stretch != last; stretch++) {
        size_t bytes = stretch->bytes, left = (size_t)(end - at);
        if (left < bytes || !is_stretch(stretch, at))
            return false;
        for (; *offset != PRESTO__NO_OFFSET; offset++)
            value++->bytes.data = at + *offset;
        offset++;
        at += bytes;
        if (stretch->last_word == NULL)
            continue;
        uint64_t word = presto__load_u64(at - 8);
        size_t run = word >> 56;
        if (run > stretch->most_run || run > left - bytes || (run & stretch->run_mask) != 0 ||
            !has_lengths(stretch, at, word, run))
            return false;
        if (stretch->has_value)
            value++->bytes = presto_span_of(at, run);
        at += run;
    }
    return at == end;
}

/* ---- making ---- */

size_t presto__layout_plan_bytes(size_t count, size_t name_bytes) {
    return name_bytes + count * (10 + PRESTO__FIXED_RUN);
}

size_t presto__layout_plan_chunks(size_t count, size_t name_bytes) {
    return presto__layout_plan_bytes(count, name_bytes) / 16 + count;
}

/** The stretch being made. */
typedef struct maker {
    presto__example_layout *layout;
    const uint8_t *start, *at; /* in the Example: its bytes so far */
    presto__layout_stretch *stretch;
    presto__layout_chunk *chunks;
    uint32_t *offsets;
} maker;

static void begin_stretch(maker *m) {
    m->start = m->at;
    *m->stretch = (presto__layout_stretch){.chunks = m->chunks};
}

/* The entry's head, and a payload that is passed over. */
static void add_fixed(maker *m, const presto__layout_entry *entry) {
    uint8_t *mask = m->layout->plan_mask + (m->at - m->start);
    memset(mask, 0xff, entry->head_bytes);
    memset(mask + entry->head_bytes, 0, entry->run);
    if (!entry->is_ignored)
        *m->offsets++ = (uint32_t)(m->at - m->start) + entry->head_bytes;
    m->at += entry->head_bytes + entry->run;
}

static uint64_t put_word(const maker *m, size_t at, uint64_t *mask_out) {
    *mask_out = presto__load_u64(m->layout->plan_mask + at);
    return presto__load_u64(m->start + at) & *mask_out;
}

static void put_chunk(maker *m, size_t first, size_t second) {
    uint64_t masks[2];
    const uint64_t values[2] = {put_word(m, first, &masks[0]), put_word(m, second, &masks[1])};
    m->chunks->mask = (presto__layout_pair){masks[0], masks[1]};
    m->chunks->value = (presto__layout_pair){values[0], values[1]};
    m->chunks++;
}

static void end_stretch(maker *m) {
    size_t bytes = (size_t)(m->at - m->start);
    m->stretch->bytes = (uint32_t)bytes;
    *m->offsets++ = PRESTO__NO_OFFSET;
    if (bytes < 16) {
        put_chunk(m, 0, bytes - 8);
    } else {
        put_chunk(m, bytes - 16, bytes - 8);
        for (size_t at = 0; at + 16 < bytes; at += 16)
            put_chunk(m, at, at + 8);
    }
    m->stretch++;
}

/* The entry's head ends the stretch. Its lengths differ from Example to Example. */
static void add_varying(maker *m, const presto__layout_entry *entry) {
    uint8_t *mask = m->layout->plan_mask + (m->at - m->start);
    size_t head = entry->head_bytes;
    memset(mask, 0xff, head - 8);
    memset(mask + head - 8, 0, 8);
    mask[1] = 0;
    m->at += head;
    m->stretch->last_word = entry->words;
    m->stretch->head_bytes = entry->head_bytes;
    m->stretch->most_run = entry->most_run;
    m->stretch->run_mask = entry->run_mask;
    m->stretch->has_value = !entry->is_ignored;
    end_stretch(m);
    m->at += entry->run;
}

void presto__layout_make_plan(presto__example_layout *layout,
                              const presto__layout_example *example) {
    if (layout->plan_wait > 0) {
        layout->plan_wait--;
        return;
    }
    layout->plan_rest = layout->plan_rest < 32 ? 2 * layout->plan_rest + 1 : layout->plan_rest;
    layout->plan_wait = layout->plan_rest;
    maker m = {.layout = layout,
               .at = example->map.data,
               .stretch = layout->stretches,
               .chunks = layout->plan_chunks,
               .offsets = layout->plan_offsets};
    begin_stretch(&m);
    uint32_t at = layout->first;
    for (size_t i = 0; i < example->entry_count; i++) {
        const presto__layout_entry *entry = &layout->entries[at];
        at = entry->next;
        if (!entry->varies && entry->run <= PRESTO__FIXED_RUN) {
            add_fixed(&m, entry);
            continue;
        }
        add_varying(&m, entry);
        begin_stretch(&m);
    }
    if (m.at > m.start)
        end_stretch(&m);
    if (example->value_count > 0)
        memcpy(layout->plan_values, layout->values, example->value_count * sizeof *layout->values);
    layout->stretch_count = (size_t)(m.stretch - layout->stretches);
    layout->plan_value_count = example->value_count;
    layout->order++;
}
