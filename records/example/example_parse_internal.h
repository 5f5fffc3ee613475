/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Behind presto_example_parse: example.c walks over the map of features, example_feature.c reads a
 * single one. For this room alone.
 */
#ifndef PRESTO_EXAMPLE_PARSE_INTERNAL_H
#define PRESTO_EXAMPLE_PARSE_INTERNAL_H

#include <presto/example.h>

#include "../../base/checked_internal.h"
#include "example_internal.h"

/* Before the name of a feature list whose name the context has, too. */
#define PRESTO__LISTS_PREFIX "feature_lists/"

/* Up to this many names are searched one by one. */
#define PRESTO__FEW_NAMES 32

/** One Example being parsed. */
typedef struct presto__example_parser {
    presto_span in; /* the whole, for offsets */
    const presto_feature_spec *specs;
    size_t spec_count;
    size_t spec_next;               /* tried first: features mostly come in the specs' order */
    presto__name_table *spec_names; /* table, once many were compared; else NULL */
    presto_arena *arena;
    presto_feature *features; /* room for `most` features */
    size_t most, count;
    presto__name_table *names;  /* table of the features' names, if there are many; else NULL */
    uint32_t specs_passed_over; /* specs compared without a match */
    bool only_specs;            /* features without a spec are ignored */
    bool unsorted;              /* the names are not in rising order */
    presto_error *err;
} presto__example_parser;

/** Room for a feature's value, if that is one string or number. */
typedef struct presto__scalar_slot {
    union {
        presto_span string;
        int64_t number;
    };
} presto__scalar_slot;

/** Memory of the caller's arena; NULL if there is none. */
static inline void *presto__example_take(presto__example_parser *parser, size_t count,
                                         size_t bytes) {
    size_t whole;
    return presto__size_multiply(count, bytes, &whole) ? presto_arena_alloc(parser->arena, whole, 8)
                                                       : NULL;
}

/** Fails with the byte `at`; NULL: the byte is unknown. */
presto_status presto__example_corrupt(const presto__example_parser *parser, const uint8_t *at,
                                      const char *what);

/** A table for `most` names; NULL: no memory. */
presto__name_table *presto__example_name_table(presto__example_parser *parser, size_t most);

/** Searches all specs; NULL: there is none of this name. */
const presto_feature_spec *presto__example_search_spec(presto__example_parser *parser,
                                                       presto_span name);

/* Names may hold NUL bytes and are short: compare byte by byte, up to the shorter one's end. */
static inline bool presto__example_name_is(presto_span name, const char *text) {
    for (size_t i = 0; i < name.bytes; i++)
        if (text[i] == '\0' || (uint8_t)text[i] != name.data[i])
            return false;
    return text[name.bytes] == '\0';
}

static inline const presto_feature_spec *presto__example_find_spec(presto__example_parser *parser,
                                                                   presto_span name) {
    size_t at = parser->spec_next < parser->spec_count ? parser->spec_next : 0;
    if (parser->spec_count == 0)
        return NULL;
    if (!presto__example_name_is(name, parser->specs[at].name))
        return presto__example_search_spec(parser, name);
    parser->spec_next = at + 1;
    return &parser->specs[at];
}

/** Is the feature ignored? If not, it must be parsed next. */
static inline bool presto__example_ignores(presto__example_parser *parser, presto_span name) {
    if (!parser->only_specs)
        return false;
    const presto_feature_spec *spec = presto__example_find_spec(parser, name);
    if (spec != NULL)
        parser->spec_next = (size_t)(spec - parser->specs);
    return spec == NULL;
}

static inline void presto__example_set_shape(presto_tensor *tensor, presto_dtype dtype,
                                             size_t count, const presto_feature_spec *spec) {
    tensor->spec.dtype = dtype;
    tensor->spec.rank = count == 1 && (spec == NULL || spec->spec.rank != 1) ? 0 : 1;
    tensor->spec.dims[0] = (int64_t)count;
}

/** How many values the Feature `value` has, and of which kind: 1 bytes, 2 float, 3 int64; 0: none. */
presto_status presto__example_count_values(presto__example_parser *parser, presto_span value,
                                           uint32_t *kind_out, size_t *count_out);
/** Store them from element `at` on in an array of that kind: presto_span, float or int64_t. Returns
 * how many; of a Feature of another kind, none. It was counted before. */
size_t presto__example_fill_values(presto__example_parser *parser, presto_span value, uint32_t kind,
                                   void *values, size_t at);

/** The feature called `name`, or a new one. There is room. */
presto_status presto__example_place(presto__example_parser *parser, presto_span name,
                                    presto_feature **feature_out, bool *is_new_out);

/* ---- SequenceExamples: sequence.c ---- */

/** Add to *most_io how many features its lists may become. */
presto_status presto__sequence_room(presto__example_parser *parser, size_t *most_io);
/** Add its lists to the features, which are those of the context. */
presto_status presto__sequence_lists(presto__example_parser *parser);

/** Parse `value`, the bytes of a Feature message, into *feature, whose name is set. */
presto_status presto__example_feature(presto__example_parser *parser, presto_span value,
                                      presto_feature *feature);

/** Parse a serialized TensorProto that lies in the Example. */
presto_status presto__example_tensor(presto__example_parser *parser, presto_span in,
                                     presto_tensor *tensor);

/** One run of packed int64s, the only one of its feature. False: the general parser must look. */
bool presto__example_any_int64s(presto__example_parser *parser, presto_span packed,
                                presto_feature *feature, presto__scalar_slot *slot,
                                const presto_feature_spec *spec);

/** presto__example_any_int64s, without a call for a single small number, as most labels are. */
static inline bool presto__example_int64s(presto__example_parser *parser, presto_span packed,
                                          presto_feature *feature, presto__scalar_slot *slot,
                                          const presto_feature_spec *spec) {
    if (packed.bytes != 1 || packed.data[0] >= 0x80)
        return presto__example_any_int64s(parser, packed, feature, slot, spec);
    slot->number = packed.data[0];
    feature->tensor.data = &slot->number;
    feature->encoding = PRESTO_ENCODE_INT64;
    presto__example_set_shape(&feature->tensor, PRESTO_INT64, 1, spec);
    return true;
}

#endif
