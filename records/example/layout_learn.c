/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Remembers the names of Examples and their order. Names are only added, so that Examples which
 * leave out features share a layout. If there are too many, the layout begins again with the names
 * of one Example.
 *
 * Adding names makes all tables anew. Before that, Examples with as many names must have been
 * parsed: so the tables never cost more than parsing, whatever names come.
 */
#include "../records_internal.h"
#include "layout_internal.h"

/* ---- heads ---- */

static presto_encoding encoding_of(const presto__layout_entry *entry, uint8_t tag) {
    switch (tag) {
    case PRESTO__TAG_FLOAT:
        return PRESTO_ENCODE_FLOAT;
    case PRESTO__TAG_INT64:
        return PRESTO_ENCODE_INT64;
    default:
        return entry->is_tensor ? PRESTO_ENCODE_TENSOR : PRESTO_ENCODE_BYTES;
    }
}

/* The head for an empty payload. Marks what is a length that grows with the payload. */
static size_t write_head(const presto__layout_entry *entry, uint8_t tag, uint8_t *head,
                         uint8_t *is_length) {
    size_t name_bytes = entry->name.bytes, inner = entry->is_ignored ? 0 : 4;
    size_t bytes = 6 + name_bytes + inner;
    head[0] = 0x0a;
    head[1] = (uint8_t)(bytes - 2);
    is_length[1] = 1;
    head[2] = 0x0a;
    head[3] = (uint8_t)name_bytes;
    if (name_bytes > 0)
        memcpy(head + 4, entry->name.data, name_bytes);
    uint8_t *value = head + 4 + name_bytes, *mark = is_length + 4 + name_bytes;
    value[0] = 0x12;
    value[1] = (uint8_t)inner;
    mark[1] = 1;
    if (entry->is_ignored)
        return bytes;
    value[2] = tag;
    value[3] = 2;
    mark[3] = 1;
    value[4] = 0x0a;
    value[5] = 0;
    mark[5] = 1;
    return bytes;
}

static size_t head_words(size_t name_bytes) {
    return (10 + name_bytes + 7) / 8;
}

/* The words are in the arena of the layout that holds the entry. */
void presto__layout_set_head(presto__layout_entry *entry, uint8_t tag) {
    uint8_t head[128] = {0}, is_length[128] = {0};
    size_t bytes = entry->name.bytes + (entry->is_ignored ? 6 : 10);
    entry->tag = tag;
    entry->encoding = encoding_of(entry, tag);
    entry->run_mask = !entry->is_ignored && tag == PRESTO__TAG_FLOAT ? 3 : 0;
    entry->head_bytes = 0;
    if (bytes < 8 || bytes > sizeof head)
        return;
    write_head(entry, tag, head, is_length);
    presto__head_word *word = entry->words;
    *word++ = (presto__head_word){presto__load_u64(head + bytes - 8),
                                  presto__load_u64(is_length + bytes - 8)};
    for (size_t at = 0; at < bytes - 8; at += 8)
        *word++ =
            (presto__head_word){presto__load_u64(head + at), presto__load_u64(is_length + at)};
    entry->head_bytes = (uint8_t)bytes;
    entry->most_run = (uint8_t)(0x7f - (bytes - 2));
}

/* ---- names of an Example ---- */

/* The entries of a map of the usual form. */
typedef struct entries_walk {
    const uint8_t *at, *end;
} entries_walk;

static bool begin_walk(presto_span in, entries_walk *walk_out) {
    const uint8_t *at = in.data, *end = at + in.bytes;
    size_t bytes;
    if (!presto__wire_expect(&at, end, 0x0a, &bytes) || at + bytes != end)
        return false;
    *walk_out = (entries_walk){at, end};
    return true;
}

/* False: the next entry is not of the usual form. Call only while at != end. */
static bool next_name(entries_walk *walk, presto_span *name_out) {
    const uint8_t *at = walk->at;
    size_t bytes;
    if (!presto__wire_expect(&at, walk->end, 0x0a, &bytes))
        return false;
    const uint8_t *end = at + bytes;
    if (!presto__wire_expect(&at, end, 0x0a, &bytes))
        return false;
    *name_out = presto_span_of(at, bytes);
    at += bytes;
    if (!presto__wire_expect(&at, end, 0x12, &bytes) || at + bytes != end)
        return false;
    walk->at = end;
    return true;
}

/* Number and size of the names in the Example, and of those that the layout does not have. */
typedef struct name_sizes {
    size_t count, bytes;
    size_t new_count, new_bytes;
} name_sizes;

static bool measure(const presto__example_layout *layout, presto_span in, name_sizes *sizes_out) {
    entries_walk walk;
    presto_span name;
    name_sizes sizes = {0};
    if (!begin_walk(in, &walk))
        return false;
    while (walk.at != walk.end) {
        if (!next_name(&walk, &name))
            return false;
        sizes.count++;
        sizes.bytes += name.bytes;
        if (layout->count == 0 || presto__name_table_find(&layout->names, name)->number_plus == 0) {
            sizes.new_count++;
            sizes.new_bytes += name.bytes;
        }
    }
    *sizes_out = sizes;
    return true;
}

/* ---- making the tables ---- */

/* Room for entries. False: no memory. */
static bool make_room(presto__example_layout *layout, size_t count, size_t name_bytes) {
    presto_arena *arena = &layout->arena;
    size_t words = name_bytes / 8 + count * head_words(8);
    layout->entries = presto_arena_alloc(arena, count * sizeof *layout->entries, 8);
    layout->values = presto_arena_alloc(arena, count * sizeof *layout->values, 8);
    layout->stretches = presto_arena_alloc(arena, (count + 1) * sizeof *layout->stretches, 8);
    layout->plan_values = presto_arena_alloc(arena, count * sizeof *layout->plan_values, 8);
    layout->plan_offsets =
        presto_arena_alloc(arena, (2 * count + 1) * sizeof *layout->plan_offsets, 8);
    size_t chunks = presto__layout_plan_chunks(count, name_bytes);
    layout->plan_chunks = presto_arena_alloc(arena, chunks * sizeof *layout->plan_chunks, 16);
    layout->plan_mask = presto_arena_alloc(arena, presto__layout_plan_bytes(count, name_bytes), 8);
    layout->words = presto_arena_alloc(arena, words * sizeof *layout->words, 8);
    return layout->entries != NULL && layout->values != NULL && layout->stretches != NULL &&
           layout->plan_values != NULL && layout->plan_offsets != NULL &&
           layout->plan_chunks != NULL && layout->plan_mask != NULL && layout->words != NULL &&
           presto__name_table_make(&layout->names, count, arena, NULL) == PRESTO_OK;
}

static void apply_specs(const presto__example_layout *layout, presto__layout_entry *entry) {
    const presto__name *found = layout->spec_names.slots == NULL
                                    ? NULL
                                    : presto__name_table_find(&layout->spec_names, entry->name);
    bool has_spec = found != NULL && found->number_plus != 0;
    entry->is_ignored = layout->specs.only_these && !has_spec;
    if (!has_spec)
        return;
    const presto_feature_spec *spec = &layout->specs.list[found->number_plus - 1];
    entry->is_tensor = spec->encoding == PRESTO_ENCODE_TENSOR;
    entry->is_vector = spec->spec.rank == 1;
}

/* The entry of this name, made if there is none. SIZE_MAX: no memory. */
static size_t add(presto__example_layout *layout, presto_span name) {
    presto__name *slot = presto__name_table_find(&layout->names, name);
    if (slot->number_plus != 0)
        return slot->number_plus - 1;
    uint8_t *copy = presto_arena_alloc(&layout->arena, name.bytes, 1);
    if (copy == NULL)
        return SIZE_MAX;
    if (name.bytes > 0)
        memcpy(copy, name.data, name.bytes);
    presto__layout_entry *entry = &layout->entries[layout->count];
    *entry = (presto__layout_entry){
        .name = presto_span_of(copy, name.bytes), .words = layout->words, .run = PRESTO__NO_RUN};
    layout->words += head_words(name.bytes);
    apply_specs(layout, entry);
    presto__layout_set_head(entry, entry->is_ignored ? PRESTO__TAG_BYTES : PRESTO__TAG_FLOAT);
    *slot = (presto__name){entry->name, ++layout->count};
    layout->name_bytes += name.bytes;
    return layout->count - 1;
}

/* Add the names of the Example, and note their order. False: no memory. */
static bool add_all(presto__example_layout *layout, presto_span in) {
    entries_walk walk;
    presto_span name;
    size_t before = SIZE_MAX;
    if (!begin_walk(in, &walk))
        return false;
    while (walk.at != walk.end && next_name(&walk, &name)) {
        size_t at = add(layout, name);
        if (at == SIZE_MAX)
            return false;
        if (before == SIZE_MAX)
            layout->first = (uint32_t)at;
        else
            layout->entries[before].next = (uint32_t)at;
        before = at;
    }
    if (before != SIZE_MAX)
        layout->entries[before].next = layout->first;
    return true;
}

/* A layout with the names of `old` (NULL: none) and of the Example. False: no memory. */
static bool make(presto__example_layout *layout, const presto__example_layout *old, presto_span in,
                 const name_sizes *sizes) {
    size_t old_count = old == NULL ? 0 : old->count;
    size_t count = old == NULL ? sizes->count : old_count + sizes->new_count;
    size_t bytes = old == NULL ? sizes->bytes : old->name_bytes + sizes->new_bytes;
    if (!make_room(layout, count, bytes))
        return false;
    for (size_t i = 0; i < old_count; i++) {
        size_t at = add(layout, old->entries[i].name);
        if (at == SIZE_MAX)
            return false;
        layout->entries[at].next = old->entries[i].next;
    }
    return add_all(layout, in);
}

void presto__layout_learn(presto__example_layout *layout, presto_span in) {
    name_sizes sizes;
    if (layout->is_off || !measure(layout, in, &sizes) || sizes.new_count == 0)
        return;
    layout->unlike += sizes.count;
    if (layout->unlike < layout->count || sizes.count > PRESTO__LAYOUT_NAMES ||
        sizes.bytes > PRESTO__LAYOUT_NAME_BYTES)
        return;
    bool begins_again = layout->count + sizes.new_count > PRESTO__LAYOUT_NAMES ||
                        layout->name_bytes + sizes.new_bytes > PRESTO__LAYOUT_NAME_BYTES;
    presto__example_layout made = *layout;
    made.arena = (presto_arena){0};
    made.count = 0;
    made.name_bytes = 0;
    made.first = 0;
    made.stretch_count = 0;
    made.unlike = 0;
    made.generation++;
    if (!make(&made, begins_again ? NULL : layout, in, &sizes)) {
        presto_arena_done(&made.arena);
        return;
    }
    presto_arena_done(&layout->arena);
    *layout = made;
}
