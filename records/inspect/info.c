/* SPDX-License-Identifier: Apache-2.0 */
/* The contents of a dataset: counts and sizes from the headers, the rest from a sample of its
 * records. */
#include <presto/inspect.h>

#include <stdlib.h>

#include <presto/example.h>
#include <presto/rng.h>
#include <presto/text.h>

#include "../../base/checked_internal.h"
#include "../../base/content_internal.h"
#include "../../base/options_internal.h"
#include "../../base/rng_internal.h"
#include "../../base/stop_internal.h"
#include "../example/example_internal.h"
#include "../records_internal.h"
#include "../shard/shard_internal.h"
#include "inspect_internal.h"

/* The median is computed from at most this many sizes, evenly spread. */
#define MEDIAN_SIZES ((size_t)1 << 20)
/* Codec and kind are guessed from this many of the sampled records. */
#define GUESS_RECORDS 16

void presto_info_options_init(presto_info_options *options, size_t struct_bytes) {
    const presto_info_options defaults = {.sample_records = 100};
    presto__options_give(options, struct_bytes, &defaults, sizeof defaults);
}

static void free_info(presto_info *info) {
    for (size_t i = 0; i < info->file_count; i++)
        free(info->files[i].path);
    for (size_t i = 0; i < info->feature_count; i++)
        free(info->features[i].name);
    free(info->files);
    free(info->features);
    presto_dataset_free(info->dataset);
}

void presto_info_done_sized(presto_info *info) {
    presto_info taken;
    presto__result_take(&taken, sizeof taken, info);
    free_info(&taken);
}

const char *presto__content_name(presto_span bytes) {
    const presto__content *content = presto__content_of(bytes);
    return content == NULL ? NULL : content->name;
}

/* ---- files and sizes ---- */

static unsigned size_class(uint64_t bytes) {
    unsigned bits = bytes == 0 ? 0 : 64 - (unsigned)__builtin_clzll(bytes);
    return bits < PRESTO_SIZE_CLASSES ? bits : PRESTO_SIZE_CLASSES - 1;
}

static int compare_u64(const void *a, const void *b) {
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

typedef struct collector {
    presto_dataset *dataset;
    presto_info *info;
    uint64_t *sizes; /* every `stride`-th record's */
    size_t size_count, size_room;
    uint64_t stride;
    uint64_t *firsts; /* of each file, the number of its first record; then their total */
    presto_arena arena;
    /* Of the features, by name as it stands in the records. */
    presto_arena names;
    presto__name_table table;
    size_t feature_room;
} collector;

static presto_status count_sizes(collector *c, presto_shard *shard, presto_error *err) {
    presto_info *info = c->info;
    const uint64_t *offsets;
    uint64_t records = presto_shard_records(shard);
    PRESTO_TRY(presto__shard_offsets(shard, 0, records, &offsets, err));
    uint64_t damaged = presto__shard_next_damaged(shard, 0), number = info->records;
    for (uint64_t i = 0; i < records; i++) {
        if (i == damaged) {
            damaged = presto__shard_next_damaged(shard, i + 1);
            continue;
        }
        uint64_t bytes = offsets[i + 1] - offsets[i] - PRESTO_FRAME_OVERHEAD_BYTES;
        info->payload_bytes += bytes;
        info->size_classes[size_class(bytes)]++;
        if (number == 0 || bytes < info->least_bytes)
            info->least_bytes = bytes;
        if (bytes > info->most_bytes)
            info->most_bytes = bytes;
        if (number % c->stride == 0 && c->size_count < c->size_room)
            c->sizes[c->size_count++] = bytes;
        number++;
    }
    return PRESTO_OK;
}

static bool is_damage(presto_status status) {
    return status == PRESTO_ERR_CORRUPT || status == PRESTO_ERR_TRUNCATED ||
           status == PRESTO_ERR_NOT_FOUND || status == PRESTO_ERR_LIMIT;
}

static presto_status look_at_file(collector *c, size_t i, presto_error *err) {
    presto_info *info = c->info;
    presto_file_info *file = &info->files[i];
    presto_shard *shard = NULL;
    const char *path = presto_dataset_shard_path(c->dataset, i);
    file->path = strdup(path);
    if (file->path == NULL)
        return presto_fail_memory(err, strlen(path));
    info->file_count = i + 1;
    presto_status status = presto_dataset_shard_at(c->dataset, i, &shard, err);
    c->firsts[i + 1] = c->firsts[i];
    if (is_damage(status)) {
        file->lost_ranges = 1;
        return PRESTO_OK;
    }
    PRESTO_TRY(status);
    file->compression = presto__shard_compression(shard);
    file->name_disagrees = presto_shard_file_bytes(shard) > 0 &&
                           presto__compression_by_name(path) != file->compression;
    file->indexed = presto__shard_has_index_file(shard);
    file->file_bytes = presto_shard_file_bytes(shard);
    uint64_t records = presto_shard_records(shard);
    file->lost_ranges = presto__shard_lost_ranges(shard);
    file->records = records - file->lost_ranges;
    if (presto_dataset_is_ours(c->dataset) && file->lost_ranges == 0 &&
        records < presto_dataset_get_info(c->dataset)->shards[i].records)
        file->lost_ranges = 1; /* cut between records */
    PRESTO_TRY(count_sizes(c, shard, err));
    info->records += file->records;
    info->stored_bytes += file->file_bytes;
    c->firsts[i + 1] += records;
    return PRESTO_OK;
}

static presto_status look_at_files(collector *c, presto_error *err) {
    size_t count = presto_dataset_shard_count(c->dataset);
    uint64_t records = presto_dataset_records(c->dataset);
    c->stride = records / MEDIAN_SIZES + 1;
    c->size_room = (size_t)(records / c->stride) + 1;
    c->sizes = calloc(c->size_room, sizeof *c->sizes);
    c->firsts = presto__zeroed_array(count, 1, sizeof *c->firsts);
    c->info->files = presto__zeroed_array(count, 1, sizeof *c->info->files);
    if (c->sizes == NULL || c->firsts == NULL || c->info->files == NULL)
        return presto_fail_memory(err, c->size_room * sizeof *c->sizes);
    for (size_t i = 0; i < count; i++)
        PRESTO_TRY(look_at_file(c, i, err));
    if (c->size_count > 0) {
        qsort(c->sizes, c->size_count, sizeof *c->sizes, compare_u64);
        c->info->median_bytes = c->sizes[c->size_count / 2];
    }
    return PRESTO_OK;
}

/* ---- features ---- */

static presto_status make_room(collector *c, presto_error *err) {
    const presto__name_table old = c->table;
    size_t room = c->feature_room == 0 ? 64 : c->feature_room * 2, bytes = SIZE_MAX;
    presto_feature_info *features = NULL;
    if (presto__size_multiply(room, sizeof *features, &bytes))
        features = realloc(c->info->features, bytes);
    if (features == NULL)
        return presto_fail_memory(err, bytes);
    c->info->features = features;
    PRESTO_TRY(presto__name_table_make(&c->table, room, &c->names, err));
    for (size_t i = 0; old.slots != NULL && i <= old.mask; i++)
        if (old.slots[i].number_plus != 0)
            *presto__name_table_find(&c->table, old.slots[i].name) = old.slots[i];
    c->feature_room = room;
    return PRESTO_OK;
}

/* The feature of that name, or a new one. They are sorted at the end. */
static presto_status find_feature(collector *c, presto_span name, presto_feature_info **found_out,
                                  presto_error *err) {
    presto_info *info = c->info;
    if (info->feature_count == c->feature_room)
        PRESTO_TRY(make_room(c, err));
    presto__name *slot = presto__name_table_find(&c->table, name);
    if (slot->number_plus == 0) {
        char *text = presto_text_encode(name);
        uint8_t *copy = presto_arena_alloc(&c->names, name.bytes, 1);
        if (text == NULL || copy == NULL) {
            free(text);
            return presto_fail_memory(err, name.bytes);
        }
        if (name.bytes > 0)
            memcpy(copy, name.data, name.bytes);
        info->features[info->feature_count++] = (presto_feature_info){.name = text};
        *slot = (presto__name){presto_span_of(copy, name.bytes), info->feature_count};
    }
    *found_out = &info->features[slot->number_plus - 1];
    return PRESTO_OK;
}

static int compare_features(const void *a, const void *b) {
    return strcmp(((const presto_feature_info *)a)->name, ((const presto_feature_info *)b)->name);
}

/* Keep in `common` only what `value` shares with it. */
static void intersect(presto_tensor_spec *common, const presto_tensor_spec *value) {
    if (common->dtype != value->dtype)
        common->dtype = PRESTO_DTYPE_UNKNOWN;
    if (common->rank != value->rank)
        common->rank = -1;
    for (int i = 0; i < common->rank; i++)
        if (common->dims[i] != value->dims[i])
            common->dims[i] = -1;
}

static uint64_t value_bytes(const presto_feature *value) {
    uint64_t bytes = 0;
    if (value->encoding == PRESTO_ENCODE_NONE)
        return 0;
    if (value->tensor.spec.dtype != PRESTO_STRING)
        return presto_tensor_bytes(&value->tensor);
    for (uint64_t i = 0; i < presto_spec_elements(&value->tensor.spec); i++)
        bytes += value->tensor.strings[i].bytes;
    return bytes;
}

/* One value that is a serialized tensor counts as a tensor. `as` is the feature to be counted. */
static const char *look_into(const presto_feature *value, presto_arena *arena, presto_feature *as) {
    *as = *value;
    if (value->encoding != PRESTO_ENCODE_BYTES || presto_spec_elements(&value->tensor.spec) != 1)
        return NULL;
    presto_span bytes = value->tensor.strings[0];
    if (presto_tensor_proto_probe(bytes) &&
        presto_tensor_proto_parse(bytes, arena, &as->tensor, NULL) == PRESTO_OK) {
        as->encoding = PRESTO_ENCODE_TENSOR;
        return NULL;
    }
    return presto__content_name(bytes);
}

/* What the feature has in common with one more value, which is there. */
static void add_kind(presto_feature_info *feature, const presto_feature *value, presto_feature *as,
                     const char *content) {
    if (feature->encoding == PRESTO_ENCODE_TENSOR && as->encoding == PRESTO_ENCODE_BYTES) {
        feature->encoding = PRESTO_ENCODE_BYTES; /* it only looked like a tensor */
        feature->spec = as->tensor.spec;
    } else if (feature->encoding == PRESTO_ENCODE_BYTES && as->encoding == PRESTO_ENCODE_TENSOR) {
        as->tensor = value->tensor;
    }
    intersect(&feature->spec, &as->tensor.spec);
    if (content == NULL || feature->content == NULL || strcmp(content, feature->content) != 0)
        feature->content = NULL;
}

static presto_status add_value(collector *c, const presto_feature *value, presto_error *err) {
    presto_feature as;
    presto_feature_info *feature;
    uint64_t bytes = value_bytes(value);
    const char *content = look_into(value, &c->arena, &as);
    PRESTO_TRY(find_feature(c, value->name, &feature, err));
    bool is_first = feature->seen++ == 0;
    if (is_first || feature->encoding == PRESTO_ENCODE_NONE) { /* nothing is known so far */
        feature->encoding = as.encoding;
        feature->spec = as.tensor.spec;
        feature->content = content;
    } else if (as.encoding != PRESTO_ENCODE_NONE) {
        add_kind(feature, value, &as, content);
    }
    if (is_first || bytes < feature->least_bytes)
        feature->least_bytes = bytes;
    if (bytes > feature->most_bytes)
        feature->most_bytes = bytes;
    return PRESTO_OK;
}

/* ---- the sample ---- */

/* Walks the records of the sample: one at a random place of each of `want` equal parts, so that
 * files whose records take turns are not seen by their turns. The same records each time. The first
 * of them are kept, as the codec is guessed from them: nothing can be said of a record without it. */
typedef struct sampler {
    uint64_t total;
    size_t want, next; /* of the sample: its size, and which of it comes next */
    presto_rng rng;
    size_t file; /* that it is in, or a later one */
    presto_block block;
    presto_shard *shard; /* of the last record */
    presto_buffer bytes; /* payloads back to back */
    size_t *ends;
    size_t count;
} sampler;

static void sampler_done(sampler *s) {
    free(s->ends);
    presto_buffer_done(&s->bytes);
    presto_block_done(&s->block);
}

/* The number of the first record of part i. */
static uint64_t part_start(const sampler *s, size_t i) {
    return s->total / s->want * i + s->total % s->want * i / s->want;
}

/* The next whole record of the sample, valid until the one after it. PRESTO_END: there is none. */
static presto_status next_sampled(collector *c, sampler *s, presto_span *payload_out,
                                  presto_error *err) {
    while (s->next < s->want) {
        size_t i = s->next++;
        uint64_t start = part_start(s, i);
        uint64_t number = start + presto_rng_below(&s->rng, part_start(s, i + 1) - start);
        presto_shard *shard = s->shard;
        while (c->firsts[s->file + 1] <= number)
            s->file++;
        presto_status status = presto_dataset_shard_at(c->dataset, s->file, &shard, err);
        if (status == PRESTO_OK)
            status = presto_shard_fetch(shard, number - c->firsts[s->file], 1, &s->block, err);
        if (s->shard != NULL && shard != s->shard)
            presto__shard_end_stream(s->shard);
        s->shard = shard;
        if (status < 0 && !is_damage(status))
            return status;
        if (status == PRESTO_OK && s->block.records[0].status == PRESTO_OK) {
            *payload_out = s->block.records[0].payload;
            return PRESTO_OK;
        }
    }
    return PRESTO_END;
}

/* Keep the first records: all of them, if they are not large. */
static presto_status take_sample(collector *c, size_t want, sampler *taken, presto_error *err) {
    presto_status status = PRESTO_OK;
    presto_span payload;
    taken->total = c->firsts[c->info->file_count];
    taken->want = taken->total < want ? (size_t)taken->total : want;
    presto__rng_init(&taken->rng, &(presto__rng_key){.sample = taken->total});
    taken->ends = presto__zeroed_array(taken->want, 1, sizeof *taken->ends);
    if (taken->ends == NULL)
        return presto_fail_memory(err, taken->want * sizeof *taken->ends);
    while (taken->bytes.bytes < PRESTO__GUESS_BYTES &&
           (status = next_sampled(c, taken, &payload, err)) == PRESTO_OK) {
        PRESTO_TRY(presto_buffer_append(&taken->bytes, payload, err));
        taken->ends[taken->count++] = taken->bytes.bytes;
    }
    return status < 0 ? status : PRESTO_OK;
}

static presto_span sampled(const sampler *taken, size_t i) {
    size_t start = i > 0 ? taken->ends[i - 1] : 0;
    return presto_span_of(taken->bytes.data + start, taken->ends[i] - start);
}

static presto_status choose_codec(collector *c, const sampler *taken, presto_codec_spec *spec,
                                  presto_error *err) {
    presto_info *info = c->info;
    presto_span payloads[GUESS_RECORDS];
    size_t count = taken->count < GUESS_RECORDS ? taken->count : GUESS_RECORDS;
    if (presto_dataset_is_ours(c->dataset)) {
        *spec = *presto_dataset_codec(c->dataset);
    } else {
        for (size_t i = 0; i < count; i++)
            payloads[i] = sampled(taken, i * taken->count / count);
        PRESTO_TRY(presto__guess_codec(payloads, count, &c->arena, spec, err));
        info->codec_guessed = true;
    }
    presto__codec_format(spec, info->codec);
    return PRESTO_OK;
}

static presto_status look_at_record(collector *c, presto_span record, presto__record_kind *kind,
                                    presto_error *err) {
    presto_sample sample;
    presto__record_kind this_kind = presto__record_kind_of(record, &c->arena);
    if (this_kind == PRESTO__KIND_EMPTY)
        return PRESTO_OK;
    if (*kind == PRESTO__KIND_EMPTY)
        *kind = this_kind;
    else if (*kind != this_kind)
        *kind = PRESTO__KIND_BYTES; /* no one kind for all */
    if (this_kind == PRESTO__KIND_BYTES ||
        presto_example_parse(record, NULL, &c->arena, &sample, err) < 0)
        return PRESTO_OK;
    for (size_t i = 0; i < sample.feature_count; i++)
        PRESTO_TRY(add_value(c, &sample.features[i], err));
    return PRESTO_OK;
}

/* What the sampled records are, and how many bytes of them were looked at. */
typedef struct looked {
    presto_codec *codec;
    presto__record_kind kind;
    uint64_t raw, stored;
} looked;

static presto_status look_at_payload(collector *c, presto_span payload, looked *at,
                                     presto_error *err) {
    presto_span record;
    presto_arena_reset(&c->arena);
    presto_status decoded = presto_codec_decompress(
        at->codec, payload, &(presto_codec_room){&c->arena, PRESTO_CODEC_MAX_RECORD_BYTES}, &record,
        err);
    if (decoded < 0)
        return decoded == PRESTO_ERR_MEMORY ? decoded : PRESTO_OK;
    c->info->sampled++;
    at->raw += record.bytes;
    at->stored += payload.bytes;
    return look_at_record(c, record, &at->kind, err);
}

static presto_status look_at_payloads(collector *c, sampler *taken, looked *at, presto_error *err) {
    presto_span payload;
    presto_status status;
    for (size_t i = 0; i < taken->count; i++)
        PRESTO_TRY(look_at_payload(c, sampled(taken, i), at, err));
    presto_buffer_done(&taken->bytes);
    while ((status = next_sampled(c, taken, &payload, err)) == PRESTO_OK)
        PRESTO_TRY(look_at_payload(c, payload, at, err));
    return status < 0 ? status : PRESTO_OK;
}

static presto_status look_at_sample(collector *c, sampler *taken, presto_error *err) {
    presto_info *info = c->info;
    presto_codec_spec spec;
    looked at = {.kind = PRESTO__KIND_EMPTY};
    PRESTO_TRY(choose_codec(c, taken, &spec, err));
    PRESTO_TRY(presto_codec_new(&spec, &at.codec, err));
    presto_status status = look_at_payloads(c, taken, &at, err);
    presto_codec_free(at.codec);
    if (info->feature_count > 0)
        qsort(info->features, info->feature_count, sizeof *info->features, compare_features);
    info->record_kind = presto__record_kind_name(at.kind);
    info->raw_bytes = info->payload_bytes;
    info->raw_bytes_exact = strcmp(info->codec, "none") == 0;
    if (!info->raw_bytes_exact && at.stored > 0)
        info->raw_bytes =
            (uint64_t)((double)info->payload_bytes * (double)at.raw / (double)at.stored);
    return status;
}

static void take_known_sizes(collector *c) {
    const presto_dataset_info *known = presto_dataset_get_info(c->dataset);
    if (!presto_dataset_is_ours(c->dataset))
        return;
    c->info->raw_bytes = 0;
    for (size_t i = 0; i < known->shard_count; i++)
        c->info->raw_bytes += known->shards[i].raw_bytes;
    c->info->raw_bytes_exact = true;
}

presto_status presto_info_collect_sized(const char *const *paths, size_t path_count,
                                        const presto_info_options *options, presto_info *info_out,
                                        presto_error *err) {
    presto_info_options mine;
    presto_shard_options shard_options;
    presto_info info = {0};
    sampler taken = {0};
    collector c = {.info = &info};
    presto_info_options_defaults(&mine);
    PRESTO_TRY(presto__options_take(&mine, sizeof mine, options, err));
    PRESTO_TRY(presto__result_check(info_out, err));
    presto_shard_options_defaults(&shard_options);
    shard_options.tolerate = true;
    presto__stop_hook pass;
    presto__stop_scope before = presto__stop_enter(&pass, mine.should_stop, mine.should_stop_user);
    presto_status status = presto_dataset_open(paths, path_count, &shard_options, &c.dataset, err);
    if (status == PRESTO_OK)
        status = look_at_files(&c, err);
    if (status == PRESTO_OK)
        status = take_sample(&c, mine.sample_records, &taken, err);
    if (status == PRESTO_OK)
        status = look_at_sample(&c, &taken, err);
    if (status == PRESTO_OK)
        take_known_sizes(&c);
    status = presto__stop_leave(&pass, before, status, err);
    free(c.sizes);
    free(c.firsts);
    sampler_done(&taken);
    presto_arena_done(&c.arena);
    presto_arena_done(&c.names);
    info.dataset = c.dataset;
    if (status >= 0)
        presto__result_move(info_out, &info, sizeof info);
    free_info(&info);
    return status;
}
