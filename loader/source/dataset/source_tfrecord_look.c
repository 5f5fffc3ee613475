/* SPDX-License-Identifier: Apache-2.0 */
/* Looks into the first records of other programs: which features are there, and of which kind. */
#include <stdio.h>
#include <stdlib.h>

#include <presto/example.h>

#include "../../../records/example/example_internal.h"
#include "../../../records/records_internal.h"
#include "source_dataset_internal.h"

#define MOST_RECORDS 64
#define NAMES_BYTES 200
#define ENOUGH_BYTES ((uint64_t)4 << 20)
/* Of more features, those that come first count. */
#define MOST_FEATURES 1024

void presto__seen_done(presto__seen *seen) {
    for (size_t i = 0; i < seen->count; i++)
        free(seen->features[i].name);
    free(seen->features);
    free(seen->sorted);
    *seen = (presto__seen){0};
}

/* The feature of this name; NULL: there is none. *place_out: its place in `sorted`, or where it
 * belongs. */
static presto__seen_feature *find(const presto__seen *seen, presto_span name, size_t *place_out) {
    size_t low = 0, high = seen->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        presto__seen_feature *feature = &seen->features[seen->sorted[middle]];
        int order = presto__compare_names(name, presto_span_of_text(feature->name));
        *place_out = middle;
        if (order == 0)
            return feature;
        if (order > 0)
            low = middle + 1;
        else
            high = middle;
    }
    *place_out = low;
    return NULL;
}

const presto__seen_feature *presto__seen_find(const presto__seen *seen, const char *name) {
    size_t place;
    return find(seen, presto_span_of_text(name), &place);
}

/* Has the feature NAME a NAME/row_lengths, which says where each step ends? */
static presto_status has_lengths(const presto__seen *seen, const char *name, bool *is_found_out,
                                 presto_error *err) {
    size_t bytes = strlen(name) + sizeof PRESTO__LENGTHS_SUFFIX;
    char *lengths = malloc(bytes);
    if (lengths == NULL)
        return presto_fail_memory(err, bytes);
    snprintf(lengths, bytes, "%s%s", name, PRESTO__LENGTHS_SUFFIX);
    *is_found_out = presto__seen_find(seen, lengths) != NULL;
    free(lengths);
    return PRESTO_OK;
}

presto_status presto__seen_describe(const presto__seen *seen, const presto__seen_feature *feature,
                                    presto_encoding *encoding_out, presto_tensor_spec *spec_out,
                                    presto_error *err) {
    bool is_uneven = false;
    presto_encoding encoding = feature->encoding;
    presto_tensor_spec spec = {.dtype = feature->dtype};
    if (seen->sequences > 0)
        PRESTO_TRY(has_lengths(seen, feature->name, &is_uneven, err));
    if (encoding == PRESTO_ENCODE_BYTES)
        spec.dtype = PRESTO_STRING;
    if (!feature->is_single) {
        spec.rank = 1;
        spec.dims[0] = seen->sequences > 0 ? -1 : feature->length;
    }
    if (encoding == PRESTO_ENCODE_TENSOR && is_uneven) {
        encoding = spec.dtype == PRESTO_FLOAT32 ? PRESTO_ENCODE_FLOAT : PRESTO_ENCODE_INT64;
    } else if (encoding == PRESTO_ENCODE_TENSOR) {
        spec.rank = 2;
        spec.dims[1] = feature->spec.dims[1];
    }
    *encoding_out = encoding;
    *spec_out = spec;
    return PRESTO_OK;
}

const char *presto__seen_list(const presto__seen *seen, char *text_out, size_t bytes) {
    size_t used = 0;
    text_out[0] = '\0';
    for (size_t i = 0; i < seen->count; i++) {
        const char *name = seen->features[i].name;
        if (used + strlen(name) + sizeof ", ..." > bytes) {
            snprintf(text_out + used, bytes - used, "%s...", i == 0 ? "" : ", ");
            return text_out;
        }
        used += (size_t)snprintf(text_out + used, bytes - used, "%s%s", i == 0 ? "" : ", ", name);
    }
    return text_out;
}

static presto_status grow(presto__seen *seen, presto_error *err) {
    size_t capacity = seen->capacity * 2 + 16;
    presto__seen_feature *features = realloc(seen->features, capacity * sizeof *features);
    if (features == NULL)
        return presto_fail_memory(err, capacity * sizeof *features);
    seen->features = features;
    size_t *sorted = realloc(seen->sorted, capacity * sizeof *sorted);
    if (sorted == NULL)
        return presto_fail_memory(err, capacity * sizeof *sorted);
    seen->sorted = sorted;
    seen->capacity = capacity;
    return PRESTO_OK;
}

static presto_status add_feature(presto__seen *seen, presto_span name, size_t place,
                                 presto__seen_feature **at_out, presto_error *err) {
    if (seen->count == seen->capacity)
        PRESTO_TRY(grow(seen, err));
    char *copy = presto_span_to_text(name);
    if (copy == NULL)
        return presto_fail_memory(err, name.bytes + 1);
    seen->features[seen->count] = (presto__seen_feature){.name = copy,
                                                         .encoding = PRESTO_ENCODE_NONE,
                                                         .length = PRESTO__NO_LENGTH,
                                                         .is_tensor = true,
                                                         .is_single = true,
                                                         .holds_tensors = true};
    memmove(seen->sorted + place + 1, seen->sorted + place,
            (seen->count - place) * sizeof *seen->sorted);
    seen->sorted[place] = seen->count;
    *at_out = &seen->features[seen->count++];
    return PRESTO_OK;
}

/* Keep in `common` only what `value` shares with it. */
static void intersect(presto_tensor_spec *common, const presto_tensor_spec *value) {
    if (common->rank != value->rank)
        common->rank = -1;
    for (int i = 0; i < common->rank; i++)
        if (common->dims[i] != value->dims[i])
            common->dims[i] = -1;
}

/* Also of texts, and in lists. */
static bool hold_tensors(const presto_tensor *values, presto_arena *arena) {
    uint64_t count = presto_spec_elements(&values->spec);
    presto_tensor held;
    for (uint64_t i = 0; i < count; i++) {
        bool is_tensor =
            presto_tensor_proto_probe(values->strings[i]) ||
            (presto_tensor_proto_parse(values->strings[i], arena, &held, NULL) == PRESTO_OK &&
             held.spec.dtype == PRESTO_STRING);
        if (!is_tensor)
            return false;
    }
    return count > 0;
}

/* Tensors of one feature have one dtype, or they are taken for bytes. */
static void look_at_bytes(presto__seen_feature *seen, const presto_tensor *tensor,
                          presto_arena *arena) {
    presto_tensor held;
    bool is_tensor = tensor->spec.rank == 0 && presto_tensor_proto_probe(tensor->strings[0]) &&
                     presto_tensor_proto_parse(tensor->strings[0], arena, &held, NULL) == PRESTO_OK;
    if (!is_tensor || (seen->encoding != PRESTO_ENCODE_NONE && seen->dtype != held.spec.dtype)) {
        seen->is_tensor = false;
        seen->dtype = PRESTO_STRING;
    } else if (seen->is_tensor) {
        if (seen->encoding == PRESTO_ENCODE_NONE)
            seen->spec = held.spec;
        else
            intersect(&seen->spec, &held.spec);
        seen->dtype = held.spec.dtype;
    }
}

/* The steps of a feature list: of one number each in some records, of several in others. */
static presto_encoding look_at_steps(presto__seen_feature *seen, const presto_feature *feature) {
    bool is_table = feature->encoding == PRESTO_ENCODE_TENSOR;
    bool was_table = seen->encoding == PRESTO_ENCODE_TENSOR;
    if (is_table && seen->encoding == PRESTO_ENCODE_NONE)
        seen->spec = feature->tensor.spec;
    else if (is_table && was_table)
        intersect(&seen->spec, &feature->tensor.spec);
    else if (is_table || was_table)
        seen->spec.dims[1] = -1;
    return was_table ? PRESTO_ENCODE_TENSOR : feature->encoding;
}

static presto_status look_at(presto__seen *seen, const presto_feature *feature, presto_arena *arena,
                             presto_error *err) {
    size_t place;
    if (feature->name.bytes > 0 && memchr(feature->name.data, '\0', feature->name.bytes) != NULL)
        return PRESTO_OK; /* nobody can ask for it */
    presto__seen_feature *at = find(seen, feature->name, &place);
    if (at == NULL && seen->count == MOST_FEATURES)
        return PRESTO_OK;
    if (at == NULL)
        PRESTO_TRY(add_feature(seen, feature->name, place, &at, err));
    if (!presto__feature_has_value(feature)) {
        at->is_single = false;
        at->length = -1;
        return PRESTO_OK;
    }
    int64_t length = feature->tensor.spec.rank == 0 ? 1 : feature->tensor.spec.dims[0];
    if (feature->tensor.spec.rank != 0)
        at->is_single = false;
    if (at->length == PRESTO__NO_LENGTH)
        at->length = length;
    else if (at->length != length)
        at->length = -1;
    if (feature->encoding == PRESTO_ENCODE_BYTES) {
        look_at_bytes(at, &feature->tensor, arena);
        at->holds_tensors = at->holds_tensors && hold_tensors(&feature->tensor, arena);
        at->encoding = feature->encoding;
    } else {
        at->dtype = feature->tensor.spec.dtype;
        at->encoding = look_at_steps(at, feature);
    }
    return PRESTO_OK;
}

typedef struct looking {
    presto__reader *reader;
    const presto__source_ops *ops;
    presto__blocks blocks;
    presto_arena arena;
} looking;

/* Record i of those fetched. */
static presto_status look_at_record(looking *look, size_t i, presto__seen *seen,
                                    presto_error *err) {
    presto_sample sample = {0};
    presto__stored_record record = {{NULL, 0}, {NULL, 0}};
    presto_error why;
    presto_arena_reset(&look->arena);
    presto_status status = look->ops->record(look->reader, i, &look->arena, &record, &why);
    if (status == PRESTO_OK)
        status = look->ops->sample(look->reader, i, &look->arena, &sample, &why);
    if (status == PRESTO_ERR_CORRUPT || status == PRESTO_ERR_TRUNCATED ||
        status == PRESTO_ERR_LIMIT) {
        if (seen->damage.status == PRESTO_OK)
            seen->damage = why;
        return PRESTO_OK;
    }
    if (status < 0) {
        if (err != NULL)
            *err = why;
        return status;
    }
    seen->records++;
    seen->sequences += presto__is_sequence(record.raw);
    for (size_t j = 0; j < sample.feature_count; j++)
        PRESTO_TRY(look_at(seen, &sample.features[j], &look->arena, err));
    return PRESTO_OK;
}

static bool has_enough(const looking *look, uint64_t looked_at, const presto__seen *seen) {
    return looked_at >= MOST_RECORDS ||
           (seen->records > 0 && look->reader->stats.read_bytes >= ENOUGH_BYTES);
}

/* Records [0, count), one by one. */
static presto_status look_by_number(looking *look, uint64_t count, presto__seen *seen,
                                    presto_error *err) {
    for (uint64_t i = 0; i < count && !has_enough(look, i, seen); i++) {
        look->blocks.count = 0;
        PRESTO_TRY(look->ops->fetch(look->reader, &i, 1, &look->blocks, err));
        PRESTO_TRY(look_at_record(look, 0, seen, err));
    }
    return PRESTO_OK;
}

/* The first records of a file, which the reader reads instead of its own dataset. */
static presto_status look_at_file(looking *look, const char *path, uint64_t *looked_at_io,
                                  presto__seen *seen, presto_error *err) {
    presto_shard_options options;
    presto_dataset *file = NULL;
    presto__dataset_reader *reader = (presto__dataset_reader *)(void *)look->reader;
    presto_dataset *whole = reader->dataset;
    uint64_t numbers[MOST_RECORDS];
    size_t found = 0;
    presto_shard_options_defaults(&options);
    options.count_later = true;
    options.tolerate = true;
    PRESTO_TRY(presto_dataset_open(&path, 1, &options, &file, err));
    reader->dataset = file;
    look->blocks.count = 0;
    for (size_t i = 0; i < MOST_RECORDS; i++)
        numbers[i] = i;
    const presto__walk_wish wish = {MOST_RECORDS - (size_t)*looked_at_io, ENOUGH_BYTES};
    presto_status status = presto__dataset_begin_walk(file, 0, err);
    if (status == PRESTO_OK)
        status = presto__dataset_walk(look->reader, &wish, &look->blocks, &found, err);
    else if (status == PRESTO_END)
        found = presto_dataset_records(file) < wish.count ? (size_t)presto_dataset_records(file)
                                                          : wish.count;
    if (status >= 0 && found > 0)
        status = presto__dataset_fetch(look->reader, numbers, found, &look->blocks, err);
    for (size_t i = 0; status >= 0 && i < found; i++)
        status = look_at_record(look, i, seen, err);
    *looked_at_io += found;
    reader->dataset = whole;
    presto_dataset_free(file);
    return status < 0 ? status : PRESTO_OK;
}

/* Records that are not counted yet: the dataset's own walk begins later. */
static presto_status look_by_walk(looking *look, presto__seen *seen, presto_error *err) {
    const presto_dataset *dataset = ((presto__dataset_reader *)(void *)look->reader)->dataset;
    uint64_t looked_at = 0;
    for (size_t i = 0; i < presto_dataset_shard_count(dataset); i++) {
        if (has_enough(look, looked_at, seen))
            break;
        PRESTO_TRY(
            look_at_file(look, presto_dataset_shard_path(dataset, i), &looked_at, seen, err));
    }
    return PRESTO_OK;
}

/* One tensor of numbers in each record is decoded. Others stay as they are, which is told. */
static presto_status note_kept(presto_source *source, const presto__seen *seen, presto_error *err) {
    char names[NAMES_BYTES] = "", text[NAMES_BYTES + 200];
    size_t used = 0;
    for (size_t i = 0; i < seen->count; i++) {
        const presto__seen_feature *feature = &seen->features[i];
        if (feature->encoding != PRESTO_ENCODE_BYTES || !feature->holds_tensors ||
            presto__seen_is_tensor(feature) || used >= sizeof names)
            continue;
        used += (size_t)snprintf(names + used, sizeof names - used, "%s%s", used == 0 ? "" : ", ",
                                 feature->name);
    }
    if (used == 0)
        return PRESTO_OK;
    snprintf(
        text, sizeof text,
        "serialized tensors stay bytes, because there are several in a record, of texts, or of "
        "differing dtypes: %s%s",
        names, used >= sizeof names ? "..." : "");
    return presto__source_note(source, text, err);
}

presto_status presto__seen_look(presto_source *source, const presto__source_ops *ops,
                                presto__seen *seen, presto_error *err) {
    presto_loader_options defaults;
    presto_loader_options_defaults(&defaults);
    const presto__reader_options options = {.max_record_bytes = defaults.memory.max_record_bytes};
    looking look = {.ops = ops};
    presto_arena_init(&look.arena, 0);
    presto_status status = ops->reader_new(source, &options, &look.reader, err);
    if (status == PRESTO_OK)
        status = source->count == PRESTO_COUNT_UNKNOWN
                     ? look_by_walk(&look, seen, err)
                     : look_by_number(&look, source->count, seen, err);
    if (look.reader != NULL)
        ops->reader_free(look.reader);
    presto__blocks_done(&look.blocks);
    presto_arena_done(&look.arena);
    return status == PRESTO_OK ? note_kept(source, seen, err) : status;
}
