/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Compares Examples with what is remembered of those before. The heads of map entries are compared
 * eight bytes at a time; an entry with longer lengths, or out of order, is read field by field.
 * What is not of the usual form is left to presto_example_parse, so that both have the same
 * results.
 */
#include <stdlib.h>

#include "../../base/checked_internal.h"
#include "../records_internal.h"
#include "layout_internal.h"

/* ---- life ---- */

/* A table of the specs by name. Which of two specs of one name counts depends on the order of
 * features: that is left to presto_example_parse. */
static presto_status name_specs(presto__example_layout *layout, presto_error *err) {
    const presto_example_specs *specs = &layout->specs;
    if (specs->count == 0)
        return PRESTO_OK;
    PRESTO_TRY(
        presto__name_table_make(&layout->spec_names, specs->count, &layout->specs_arena, err));
    for (size_t i = 0; i < specs->count; i++) {
        presto_span name = presto_span_of_text(specs->list[i].name);
        presto__name *slot = presto__name_table_find(&layout->spec_names, name);
        layout->is_off = layout->is_off || slot->number_plus != 0;
        *slot = (presto__name){name, i + 1};
    }
    return PRESTO_OK;
}

presto_status presto__example_layout_new(const presto_example_specs *specs,
                                         presto__example_layout **layout_out, presto_error *err) {
    presto__example_layout *layout = calloc(1, sizeof *layout);
    if (layout == NULL)
        return presto_fail_memory(err, sizeof *layout);
    if (specs != NULL)
        layout->specs = *specs;
    presto_status status = name_specs(layout, err);
    if (status < 0)
        presto__example_layout_free(layout);
    else
        *layout_out = layout;
    return status;
}

void presto__example_layout_free(presto__example_layout *layout) {
    if (layout == NULL)
        return;
    presto_arena_done(&layout->specs_arena);
    presto_arena_done(&layout->arena);
    free(layout);
}

/* ---- one entry ---- */

/* Are the bytes at `at` the head, before a payload of `run` bytes? */
static inline bool is_head(const presto__head_word *word, const uint8_t *at, size_t head,
                           size_t run) {
    const uint8_t *last = at + head - 8;
    uint64_t other = presto__load_u64(last) ^ (word->value + run * word->lengths);
    for (const uint8_t *part = at; part < last; part += 8) {
        word++;
        other |= presto__load_u64(part) ^ (word->value + run * word->lengths);
    }
    return other == 0;
}

/* Is the next entry the expected one, with the expected kind and short lengths? Then *at_io is set
 * behind it. */
static inline bool match_head(presto__layout_entry *entry, const uint8_t **at_io,
                              const uint8_t *end, presto__example_value *value) {
    const uint8_t *at = *at_io;
    size_t head = entry->head_bytes, left = (size_t)(end - at);
    if (head == 0 || left < head)
        return false;
    size_t run = at[head - 1];
    if (run > entry->most_run || run > left - head || (run & entry->run_mask) != 0 ||
        !is_head(entry->words, at, head, run))
        return false;
    entry->varies = entry->varies || (entry->run != run && entry->run != PRESTO__NO_RUN);
    entry->run = (uint8_t)run;
    value->encoding = entry->encoding;
    value->string_count = 1;
    value->name_bytes = (uint32_t)entry->name.bytes;
    value->name_before = (uint32_t)head - 4;
    value->bytes = presto_span_of(at + head, run);
    *at_io = at + head + run;
    return true;
}

static bool count_strings(presto_span list, uint32_t *count_out) {
    const uint8_t *at = list.data, *end = at + list.bytes;
    uint32_t count = 0;
    for (size_t bytes; at != end; at += bytes, count++)
        if (!presto__wire_expect(&at, end, 0x0a, &bytes))
            return false;
    *count_out = count;
    return true;
}

/* The one list of a Feature: strings, or numbers in one run or none. */
static bool read_list(presto__layout_entry *entry, uint8_t tag, presto_span list,
                      presto__example_value *value) {
    const uint8_t *at = list.data, *end = at + list.bytes;
    size_t bytes = 0;
    if (tag != entry->tag)
        presto__layout_set_head(entry, tag);
    value->encoding = entry->encoding;
    if (tag == PRESTO__TAG_BYTES) {
        value->bytes = list;
        if (!count_strings(list, &value->string_count))
            return false;
        if (value->string_count != 1)
            return entry->encoding == PRESTO_ENCODE_BYTES;
    }
    if (at != end && (!presto__wire_expect(&at, end, 0x0a, &bytes) || at + bytes != end))
        return false;
    value->bytes = presto_span_of(at, bytes);
    return tag != PRESTO__TAG_FLOAT || bytes % 4 == 0;
}

static bool read_value(presto__layout_entry *entry, presto_span feature,
                       presto__example_value *value) {
    const uint8_t *at = feature.data, *end = at + feature.bytes;
    size_t bytes;
    value->string_count = 1;
    if (at == end) {
        value->encoding = PRESTO_ENCODE_NONE;
        value->bytes = feature;
        return true;
    }
    uint8_t tag = at[0];
    bool is_kind = tag == PRESTO__TAG_BYTES || tag == PRESTO__TAG_FLOAT || tag == PRESTO__TAG_INT64;
    return is_kind && presto__wire_expect(&at, end, tag, &bytes) && at + bytes == end &&
           read_list(entry, tag, presto_span_of(at, bytes), value);
}

/* The entry of this name; NULL: it is not known. */
static presto__layout_entry *find(presto__example_layout *layout, uint32_t expected,
                                  presto_span name) {
    presto__layout_entry *entry = &layout->entries[expected];
    if (presto_span_equal(entry->name, name))
        return entry;
    size_t plus = presto__name_table_find(&layout->names, name)->number_plus;
    return plus == 0 ? NULL : &layout->entries[plus - 1];
}

/* Read the next entry, which may be any that the layout knows. NULL: not so. */
static presto__layout_entry *read_entry(presto__example_layout *layout, uint32_t expected,
                                        const uint8_t **at_io, const uint8_t *end,
                                        presto__example_value *value) {
    const uint8_t *at = *at_io;
    size_t bytes;
    if (!presto__wire_expect(&at, end, 0x0a, &bytes))
        return NULL;
    const uint8_t *entry_end = at + bytes;
    if (!presto__wire_expect(&at, entry_end, 0x0a, &bytes))
        return NULL;
    presto_span name = presto_span_of(at, bytes);
    presto__layout_entry *entry = find(layout, expected, name);
    if (entry == NULL || match_head(entry, at_io, end, value))
        return entry;
    layout->has_odd_entry = true;
    at += bytes;
    if (!presto__wire_expect(&at, entry_end, 0x12, &bytes) || at + bytes != entry_end)
        return NULL;
    uint8_t tag = entry->tag;
    bool is_read = entry->is_ignored || read_value(entry, presto_span_of(at, bytes), value);
    if (entry->tag != tag)
        layout->stretch_count = 0; /* a head of the plan has changed */
    if (!is_read)
        return NULL;
    value->name_bytes = (uint32_t)name.bytes;
    value->name_before = entry->is_ignored ? 0 : (uint32_t)(value->bytes.data - name.data);
    *at_io = entry_end;
    return entry;
}

/* ---- an Example ---- */

/* Compare entry by entry. */
static bool match_entries(presto__example_layout *layout, const uint8_t *at, const uint8_t *end,
                          size_t *count_out) {
    const presto_span map = presto_span_of(at, (size_t)(end - at));
    uint64_t example = ++layout->examples;
    uint32_t *expected = &layout->first;
    size_t entries = 0, count = 0;
    layout->has_odd_entry = false;
    for (; at != end; entries++) {
        if (entries == layout->count)
            return false;
        presto__example_value *value = &layout->values[count];
        presto__layout_entry *entry = &layout->entries[*expected];
        if (!match_head(entry, &at, end, value)) {
            entry = read_entry(layout, *expected, &at, end, value);
            if (entry == NULL)
                return false;
            *expected = (uint32_t)(entry - layout->entries);
        }
        if (entry->seen_in == example) /* the last of equal names counts, where the first one is */
            return false;
        entry->seen_in = example;
        value->feature = *expected;
        value->is_vector = entry->is_vector;
        expected = &entry->next;
        count += !entry->is_ignored;
    }
    if (!layout->has_odd_entry)
        presto__layout_make_plan(layout, &(presto__layout_example){map, entries, count});
    *count_out = count;
    return true;
}

bool presto__example_layout_match(presto__example_layout *layout, presto_span in,
                                  presto__example_values *values_out) {
    const uint8_t *at = in.data, *end = at + in.bytes;
    size_t bytes;
    presto__example_values values = {.feature_count = layout->count,
                                     .generation = layout->generation};
    if (layout->count == 0 || !presto__wire_expect(&at, end, 0x0a, &bytes) || at + bytes != end)
        return false;
    if (layout->stretch_count > 0 && presto__layout_match_plan(layout, at, end)) {
        layout->plan_rest = 0;
        layout->plan_wait = 0;
        values.list = layout->plan_values;
        values.count = layout->plan_value_count;
        values.order = layout->order;
    } else {
        values.list = layout->values;
        if (!match_entries(layout, at, end, &values.count))
            return false;
    }
    *values_out = values;
    return true;
}

/* ---- values ---- */

size_t presto__example_value_count(const presto__example_value *value) {
    size_t count = 0;
    switch (value->encoding) {
    case PRESTO_ENCODE_FLOAT:
        return value->bytes.bytes / 4;
    case PRESTO_ENCODE_INT64:
        for (size_t i = 0; i < value->bytes.bytes; i++)
            count += value->bytes.data[i] < 0x80;
        return count;
    case PRESTO_ENCODE_BYTES:
        return value->string_count;
    case PRESTO_ENCODE_TENSOR:
        return 1;
    case PRESTO_ENCODE_NONE:
    default:
        return 0;
    }
}

bool presto__example_value_int64s(const presto__example_value *value, size_t count,
                                  int64_t *numbers_out) {
    presto_span in = value->bytes;
    if (count == 1 && in.bytes - 1 < 8)
        return presto__example_short_int64(in, numbers_out);
    presto__wire wire = presto__wire_of(in);
    for (size_t i = 0; i < count; i++) {
        uint64_t number;
        if (wire.at == wire.end || !presto__wire_varint(&wire, &number))
            return false;
        memcpy(numbers_out + i, &number, sizeof number);
    }
    return wire.at == wire.end;
}

bool presto__example_value_next(const presto__example_value *value, size_t *at_io,
                                presto_span *string_out) {
    const uint8_t *at = value->bytes.data + *at_io, *end = value->bytes.data + value->bytes.bytes;
    size_t bytes;
    if (value->string_count == 1) {
        *string_out = value->bytes;
        return (*at_io)++ == 0;
    }
    if (at == end || !presto__wire_expect(&at, end, 0x0a, &bytes))
        return false;
    *string_out = presto_span_of(at, bytes);
    *at_io = (size_t)(at + bytes - value->bytes.data);
    return true;
}

/* ---- a sample ---- */

/* Room for a value that is one string or number. */
typedef union scalar_slot {
    presto_span string;
    int64_t number;
} scalar_slot;

/* The memory for `count` items of a value: *slot if one is enough. NULL: there is none. */
static void *room_for(scalar_slot *slot, size_t count, size_t each, presto_arena *arena) {
    size_t bytes;
    if (count == 1)
        return slot;
    return presto__size_multiply(count, each, &bytes) ? presto_arena_alloc(arena, bytes, 8) : NULL;
}

static presto_status decode(const presto__example_value *value, size_t count, scalar_slot *slot,
                            presto_arena *arena, presto_tensor *tensor) {
    if (value->encoding == PRESTO_ENCODE_FLOAT) {
        tensor->spec.dtype = PRESTO_FLOAT32;
        tensor->data = value->bytes.data;
        return PRESTO_OK;
    }
    if (value->encoding == PRESTO_ENCODE_INT64) {
        int64_t *numbers = room_for(slot, count, sizeof *numbers, arena);
        if (numbers == NULL)
            return PRESTO_ERR_MEMORY;
        tensor->spec.dtype = PRESTO_INT64;
        tensor->data = numbers;
        return presto__example_value_int64s(value, count, numbers) ? PRESTO_OK : PRESTO_END;
    }
    presto_span *strings = room_for(slot, count, sizeof *strings, arena);
    if (strings == NULL)
        return PRESTO_ERR_MEMORY;
    tensor->spec.dtype = PRESTO_STRING;
    tensor->strings = strings;
    size_t at = 0;
    for (size_t i = 0; i < count; i++)
        presto__example_value_next(value, &at, &strings[i]);
    return PRESTO_OK;
}

/* PRESTO_END: presto_example_parse must look. */
static presto_status make_feature(const presto__example_value *value, scalar_slot *slot,
                                  presto_arena *arena, presto_feature *feature) {
    presto_tensor *tensor = &feature->tensor;
    feature->name = presto__example_value_name(value);
    feature->encoding = value->encoding;
    if (value->encoding == PRESTO_ENCODE_NONE) {
        *tensor = (presto_tensor){.spec = {.rank = 0}};
        return PRESTO_OK;
    }
    if (value->encoding == PRESTO_ENCODE_TENSOR)
        return presto__tensor_proto_usual(value->bytes, tensor) ? PRESTO_OK : PRESTO_END;
    size_t count = presto__example_value_count(value);
    tensor->spec.rank = count == 1 && !value->is_vector ? 0 : 1;
    tensor->spec.dims[0] = (int64_t)count;
    return decode(value, count, slot, arena, tensor);
}

static presto_status make_sample(const presto__example_values *values, presto_arena *arena,
                                 presto_sample *sample_out, presto_error *err) {
    size_t bytes;
    if (!presto__size_multiply(values->count, sizeof(presto_feature) + sizeof(scalar_slot), &bytes))
        return presto_fail_memory(err, UINT64_MAX);
    presto_feature *features = presto_arena_alloc(arena, bytes, 8);
    if (features == NULL)
        return presto_fail_memory(err, bytes);
    scalar_slot *slots = (scalar_slot *)(void *)(features + values->count);
    presto_status status = PRESTO_OK;
    for (size_t i = 0; i < values->count && status == PRESTO_OK; i++)
        status = make_feature(&values->list[i], &slots[i], arena, &features[i]);
    if (status < 0)
        return presto_fail_memory(err, bytes);
    if (status == PRESTO_OK)
        *sample_out = (presto_sample){.features = features, .feature_count = values->count};
    return status;
}

/* So few features are parsed faster than compared. */
enum { FEW = 2 };

static presto_status parse_and_learn(presto__example_layout *layout, presto_span in,
                                     presto_arena *arena, presto_sample *sample_out,
                                     presto_error *err) {
    PRESTO_TRY(presto_example_parse(in, &layout->specs, arena, sample_out, err));
    if (layout->count == 0 || sample_out->feature_count > FEW)
        presto__layout_learn(layout, in);
    return PRESTO_OK;
}

/* Out of line: records of few features do not pay for it. */
static __attribute__((noinline)) presto_status parse_many(presto__example_layout *layout,
                                                          presto_span in, presto_arena *arena,
                                                          presto_sample *sample_out,
                                                          presto_error *err) {
    presto__example_values values;
    if (layout->count > FEW && presto__example_layout_match(layout, in, &values)) {
        presto_status status = make_sample(&values, arena, sample_out, err);
        if (status != PRESTO_END)
            return status;
    }
    return parse_and_learn(layout, in, arena, sample_out, err);
}

presto_status presto__example_layout_parse(presto__example_layout *layout, presto_span in,
                                           presto_arena *arena, presto_sample *sample_out,
                                           presto_error *err) {
    if (layout->count - 1 >= FEW)
        return parse_many(layout, in, arena, sample_out, err);
    return parse_and_learn(layout, in, arena, sample_out, err);
}
