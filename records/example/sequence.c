/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The feature lists of a tf.train.SequenceExample, as features of the sample: one step after
 * another along the first dimension.
 *
 *     SequenceExample { Features context = 1; FeatureLists feature_lists = 2; }
 *     FeatureLists    { map<string, FeatureList> feature_list = 1; }
 *     FeatureList     { repeated Feature feature = 1; }
 *
 * The context is read as an Example. A list of S steps becomes
 *
 *     [S]       if each step has one value,
 *     [S, k]    if each step has k numbers,
 *     [values]  else: all values back to back, and NAME/row_lengths [S] says how many each step has.
 *
 * A spec decides which of them it is, so that all samples are alike; without one, the record does.
 */
#include "example_parse_internal.h"

/* A list as it stands in the map. */
typedef struct list_entry {
    presto_span name, value;
} list_entry;

/* What the steps of a list hold. */
typedef struct steps {
    uint32_t kind; /* of the values; 0: there are none */
    size_t count;  /* of steps */
    size_t values; /* in all of them */
    bool is_even;  /* each step has as many as the first one */
} steps;

static bool next_of(presto__wire *wire, uint32_t number, presto_span *bytes_out, bool *is_good) {
    while (wire->at != wire->end) {
        presto__wire_field field;
        *is_good = presto__wire_next(wire, &field);
        if (!*is_good)
            return false;
        if (field.number == number && field.type == PRESTO__WIRE_BYTES) {
            *bytes_out = field.bytes;
            return true;
        }
    }
    return false;
}

bool presto__is_sequence(presto_span record) {
    presto__wire wire = presto__wire_of(record);
    presto_span lists;
    bool is_good = true;
    return next_of(&wire, 2, &lists, &is_good);
}

static presto_status bad_lists(const presto__example_parser *parser, const uint8_t *at) {
    return presto__example_corrupt(parser, at, "feature lists");
}

/* ---- the map ---- */

/* Append the lists of one FeatureLists message to `entries`; NULL: count them only. */
static presto_status find_entries(const presto__example_parser *parser, presto_span lists,
                                  list_entry *entries, size_t *count_io) {
    presto__wire wire = presto__wire_of(lists);
    presto_span entry;
    bool is_good = true;
    while (next_of(&wire, 1, &entry, &is_good)) {
        list_entry found = {{entry.data, 0}, {entry.data, 0}};
        presto__wire fields = presto__wire_of(entry);
        while (fields.at != fields.end) {
            presto__wire_field field;
            if (!presto__wire_next(&fields, &field))
                return bad_lists(parser, entry.data);
            if (field.type != PRESTO__WIRE_BYTES)
                continue;
            if (field.number == 1)
                found.name = field.bytes;
            else if (field.number == 2)
                found.value = field.bytes;
        }
        if (entries != NULL)
            entries[*count_io] = found;
        ++*count_io;
    }
    return is_good ? PRESTO_OK : bad_lists(parser, lists.data);
}

static presto_status find_all_entries(const presto__example_parser *parser, list_entry *entries,
                                      size_t *count_out) {
    presto__wire wire = presto__wire_of(parser->in);
    presto_span lists;
    bool is_good = true;
    *count_out = 0;
    while (next_of(&wire, 2, &lists, &is_good))
        PRESTO_TRY(find_entries(parser, lists, entries, count_out));
    return PRESTO_OK; /* the caller has walked over the record before */
}

presto_status presto__sequence_room(presto__example_parser *parser, size_t *most_io) {
    size_t count = 0;
    PRESTO_TRY(find_all_entries(parser, NULL, &count));
    *most_io += 2 * count; /* its values, and their lengths */
    return PRESTO_OK;
}

/* ---- names ---- */

/* "FIRST" "SECOND" in the arena; data NULL: no memory. */
static presto_span join(presto__example_parser *parser, presto_span first, presto_span second) {
    size_t bytes = first.bytes + second.bytes;
    uint8_t *text = presto__example_take(parser, bytes + 1, 1);
    if (text == NULL)
        return presto_span_of(NULL, 0);
    if (first.bytes > 0)
        memcpy(text, first.data, first.bytes);
    if (second.bytes > 0)
        memcpy(text + first.bytes, second.data, second.bytes);
    return presto_span_of(text, bytes);
}

static bool has_spec(presto__example_parser *parser, presto_span name) {
    return parser->spec_count > 0 && presto__example_search_spec(parser, name) != NULL;
}

/* TensorFlow keeps context and lists apart. Where both have a name, it is the context's. */
static presto_status choose_name(presto__example_parser *parser, size_t context_count,
                                 presto_span *name_io) {
    bool is_taken = false;
    if (parser->names != NULL)
        is_taken = presto__name_table_find(parser->names, *name_io)->number_plus != 0;
    else
        for (size_t i = 0; i < context_count && !is_taken; i++)
            is_taken = presto_span_equal(parser->features[i].name, *name_io);
    if (!is_taken && parser->spec_count == 0)
        return PRESTO_OK;
    presto_span apart = join(parser, presto_span_of_text(PRESTO__LISTS_PREFIX), *name_io);
    if (apart.data == NULL)
        return presto_fail_memory(parser->err, name_io->bytes);
    if (is_taken || has_spec(parser, apart))
        *name_io = apart;
    return PRESTO_OK;
}

/* ---- one list ---- */

static presto_status count_steps(presto__example_parser *parser, presto_span list, steps *found) {
    presto__wire wire = presto__wire_of(list);
    presto_span feature;
    size_t first = 0;
    bool is_good = true;
    found->is_even = true;
    while (next_of(&wire, 1, &feature, &is_good)) {
        uint32_t kind;
        size_t count = 0;
        PRESTO_TRY(presto__example_count_values(parser, feature, &kind, &count));
        if (kind != 0 && found->kind != 0 && kind != found->kind)
            return presto__example_corrupt(parser, feature.data,
                                           "steps of one feature list are of different kinds");
        found->kind = kind != 0 ? kind : found->kind;
        if (found->count++ == 0)
            first = count;
        found->is_even = found->is_even && count == first;
        found->values += count;
    }
    return is_good ? PRESTO_OK : bad_lists(parser, list.data);
}

/* Each step's values, or how many it has; counted before. */
static void fill_steps(presto__example_parser *parser, presto_span list, const steps *found,
                       void *values, int64_t *lengths) {
    presto__wire wire = presto__wire_of(list);
    presto_span feature;
    size_t at = 0, step = 0;
    bool is_good = true;
    while (next_of(&wire, 1, &feature, &is_good)) {
        size_t count = presto__example_fill_values(parser, feature, found->kind, values, at);
        at += count;
        if (lengths != NULL)
            lengths[step++] = (int64_t)count;
    }
}

static presto_status misfit(const presto__example_parser *parser, presto_span list,
                            presto_span name, const char *what) {
    int shown = name.bytes < 64 ? (int)name.bytes : 64;
    return presto_fail(parser->err, PRESTO_ERR_TYPE, (uint64_t)(list.data - parser->in.data),
                       "the steps of the feature list \"%.*s\" %s", shown, (const char *)name.data,
                       what);
}

static presto_encoding encoding_of(uint32_t kind) {
    return kind == 1 ? PRESTO_ENCODE_BYTES : kind == 2 ? PRESTO_ENCODE_FLOAT : PRESTO_ENCODE_INT64;
}

static presto_dtype dtype_of(uint32_t kind) {
    return kind == 1 ? PRESTO_STRING : kind == 2 ? PRESTO_FLOAT32 : PRESTO_INT64;
}

/* A list without a value: what the spec says, with no step. */
static void take_empty(presto_feature *feature, const presto_feature_spec *spec, size_t count) {
    bool is_known = spec != NULL && spec->encoding != PRESTO_ENCODE_NONE && spec->spec.rank > 0;
    feature->encoding = is_known ? spec->encoding : PRESTO_ENCODE_NONE;
    feature->tensor = (presto_tensor){.spec = {.dtype = PRESTO_INT64}};
    if (!is_known)
        return;
    feature->tensor.spec = spec->spec;
    feature->tensor.spec.dims[0] = (int64_t)count;
    for (int i = 1; i < spec->spec.rank; i++)
        if (feature->tensor.spec.dims[i] < 0 || count > 0)
            feature->tensor.spec.dims[i] = 0;
}

static presto_status add(presto__example_parser *parser, presto_span name, presto_feature **out) {
    bool is_new;
    PRESTO_TRY(presto__example_place(parser, name, out, &is_new));
    return is_new ? PRESTO_OK
                  : presto__example_corrupt(parser,
                                            name.data < parser->in.data ||
                                                    name.data > parser->in.data + parser->in.bytes
                                                ? NULL
                                                : name.data,
                                            "two features of one name");
}

/* The values, and the lengths that say where each step ends. */
static presto_status take_uneven(presto__example_parser *parser, const list_entry *entry,
                                 presto_span name, presto_span lengths_name, const steps *found) {
    int64_t *lengths = presto__example_take(parser, found->count, sizeof *lengths);
    void *values = presto__example_take(parser, found->values,
                                        found->kind == 1   ? sizeof(presto_span)
                                        : found->kind == 2 ? 4
                                                           : 8);
    presto_feature *feature;
    if (lengths == NULL || values == NULL)
        return presto_fail_memory(parser->err, found->values * sizeof(presto_span));
    fill_steps(parser, entry->value, found, values, lengths);
    if (!presto__example_ignores(parser, name)) {
        const presto_feature_spec *spec =
            parser->spec_count == 0 ? NULL : presto__example_search_spec(parser, name);
        PRESTO_TRY(add(parser, name, &feature));
        if (found->kind == 0) {
            take_empty(feature, spec, 0);
        } else {
            feature->encoding = encoding_of(found->kind);
            feature->tensor = (presto_tensor){.spec = {.dtype = dtype_of(found->kind),
                                                       .rank = 1,
                                                       .dims = {(int64_t)found->values}},
                                              .data = values};
        }
    }
    if (presto__example_ignores(parser, lengths_name))
        return PRESTO_OK;
    PRESTO_TRY(add(parser, lengths_name, &feature));
    feature->encoding = PRESTO_ENCODE_INT64;
    feature->tensor =
        (presto_tensor){.spec = {.dtype = PRESTO_INT64, .rank = 1, .dims = {(int64_t)found->count}},
                        .data = lengths};
    return PRESTO_OK;
}

/* [S] or [S, k]. */
static presto_status take_even(presto__example_parser *parser, const list_entry *entry,
                               presto_span name, const presto_feature_spec *spec, int rank,
                               const steps *found) {
    presto_feature *feature;
    size_t width = found->kind == 1 ? sizeof(presto_span) : found->kind == 2 ? 4 : 8;
    PRESTO_TRY(add(parser, name, &feature));
    if (found->kind == 0) {
        take_empty(feature, spec, found->count);
        return PRESTO_OK;
    }
    void *values = presto__example_take(parser, found->values, width);
    if (values == NULL)
        return presto_fail_memory(parser->err, found->values * width);
    fill_steps(parser, entry->value, found, values, NULL);
    presto_tensor_spec shape = {
        .dtype = dtype_of(found->kind), .rank = rank, .dims = {(int64_t)found->count}};
    if (rank == 2)
        shape.dims[1] = (int64_t)(found->values / found->count);
    feature->encoding = rank == 2 ? PRESTO_ENCODE_TENSOR : encoding_of(found->kind);
    feature->tensor = (presto_tensor){.spec = shape, .data = values};
    return PRESTO_OK;
}

static presto_status take_list(presto__example_parser *parser, const list_entry *entry,
                               size_t context_count) {
    static const char lengths_suffix[] = "/row_lengths";
    steps found = {0};
    presto_span name = entry->name;
    PRESTO_TRY(choose_name(parser, context_count, &name));
    presto_span lengths = join(parser, name, presto_span_of_text(lengths_suffix));
    if (lengths.data == NULL)
        return presto_fail_memory(parser->err, name.bytes);
    if (presto__example_ignores(parser, name) && presto__example_ignores(parser, lengths))
        return PRESTO_OK;
    const presto_feature_spec *spec =
        parser->spec_count == 0 ? NULL : presto__example_search_spec(parser, name);
    PRESTO_TRY(count_steps(parser, entry->value, &found));
    bool is_single = found.is_even && found.values == found.count;
    bool is_number = found.kind != 1;
    bool is_table = found.is_even && is_number && found.values > 0;
    if (found.kind == 1 && spec != NULL && spec->encoding == PRESTO_ENCODE_TENSOR)
        return misfit(parser, entry->value, name, "hold bytes, where numbers are declared");
    if (has_spec(parser, lengths))
        return take_uneven(parser, entry, name, lengths, &found);
    if (spec != NULL && spec->spec.rank == 1 && !is_single)
        return misfit(parser, entry->value, name,
                      "have not one value each, as in the records that were looked at");
    if (spec != NULL && spec->spec.rank == 2 && found.count > 0 && !is_table)
        return misfit(parser, entry->value, name,
                      "have not equally many values, as in the records that were looked at");
    if (spec != NULL && spec->spec.rank == 2)
        return take_even(parser, entry, name, spec, 2, &found);
    if (is_single)
        return take_even(parser, entry, name, spec, 1, &found);
    return is_table ? take_even(parser, entry, name, spec, 2, &found)
                    : take_uneven(parser, entry, name, lengths, &found);
}

/* Of a name that comes again, the last list counts, as in any map of protobuf. */
static presto_status number_names(presto__example_parser *parser, const list_entry *entries,
                                  size_t count, presto__name_table *names_out) {
    PRESTO_TRY(presto__name_table_make(names_out, count, parser->arena, parser->err));
    for (size_t i = 0; i < count; i++)
        *presto__name_table_find(names_out, entries[i].name) =
            (presto__name){entries[i].name, i + 1};
    return PRESTO_OK;
}

presto_status presto__sequence_lists(presto__example_parser *parser) {
    size_t count = 0, context_count = parser->count;
    presto__name_table names = {0};
    PRESTO_TRY(find_all_entries(parser, NULL, &count));
    if (count == 0)
        return PRESTO_OK;
    list_entry *entries = presto__example_take(parser, count, sizeof *entries);
    if (entries == NULL)
        return presto_fail_memory(parser->err, count * sizeof *entries);
    PRESTO_TRY(find_all_entries(parser, entries, &count));
    PRESTO_TRY(number_names(parser, entries, count, &names));
    for (size_t i = 0; i < count; i++)
        if (presto__name_table_find(&names, entries[i].name)->number_plus == i + 1)
            PRESTO_TRY(take_list(parser, &entries[i], context_count));
    return PRESTO_OK;
}
