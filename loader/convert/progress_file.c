/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The progress file of a conversion: what is being made, which shards are whole, which samples they
 * have, and the features. It is replaced (temporary name, rename) after shards are whole, so it
 * never lists a shard that is not on disk.
 *
 * It knows nothing of sources and steps: what must be equal to resume is a JSON object made by the
 * conversion.
 */
#include <stdio.h>
#include <stdlib.h>

#include <jansson.h>

#include <presto/storage.h>
#include <presto/text.h>

#include "../../base/file_internal.h"
#include "../../base/json_limit_internal.h"
#include "../../records/dataset/dataset_internal.h"
#include "../../storage/outlet_internal.h"
#include "share_internal.h"

#define PROGRESS_FORMAT 4
#define REMEDY "; nothing can be resumed from it: remove the folder and start again"
#define NOTED_AT_ONCE 64 /* shards */
#define NOTE_INTERVAL_NS 1000000000

void presto__progress_file_done(presto__progress_file *progress) {
    presto__progress_file_keep(progress, 0);
    free(progress->shards);
    free(progress->job);
    presto__schema_done(&progress->schema);
    *progress = (presto__progress_file){0};
}

presto_status presto__progress_file_add(presto__progress_file *progress, const char *file,
                                        const presto__whole_shard *shard, presto_error *err) {
    size_t count = progress->shard_count;
    presto__whole_shard *shards = realloc(progress->shards, (count + 1) * sizeof *shards);
    if (shards == NULL)
        return presto_fail_memory(err, (count + 1) * sizeof *shards);
    progress->shards = shards;
    char *copy = strdup(file);
    if (copy == NULL)
        return presto_fail_memory(err, strlen(file) + 1);
    size_t at = count; /* most shards come nearly in order */
    while (at > 0 && shards[at - 1].number > shard->number)
        at--;
    memmove(shards + at + 1, shards + at, (count - at) * sizeof *shards);
    shards[at] = *shard;
    shards[at].described.file = copy;
    progress->shard_count++;
    return PRESTO_OK;
}

void presto__progress_file_keep(presto__progress_file *progress, size_t count) {
    while (progress->shard_count > count)
        free(progress->shards[--progress->shard_count].described.file);
}

uint64_t presto__progress_file_next(const presto__progress_file *progress) {
    return progress->shard_count == 0 ? 0 : progress->shards[progress->shard_count - 1].end;
}

uint64_t presto__progress_file_samples(const presto__progress_file *progress) {
    uint64_t samples = 0;
    for (size_t i = 0; i < progress->shard_count; i++)
        samples += progress->shards[i].end - progress->shards[i].first;
    return samples;
}

uint64_t presto__progress_file_left_out(const presto__progress_file *progress) {
    size_t count = progress->shard_count;
    if (count > 0 && progress->shards[count - 1].is_regrouped) {
        const presto__regroup_place *next = &progress->shards[count - 1].next;
        return next->sample - next->documents;
    }
    uint64_t left_out = presto__progress_file_samples(progress);
    for (size_t i = 0; i < progress->shard_count; i++)
        left_out -= progress->shards[i].described.records;
    return left_out;
}

uint64_t presto__progress_file_skipped(const presto__progress_file *progress) {
    uint64_t skipped = 0;
    for (size_t i = 0; i < progress->shard_count; i++)
        skipped += progress->shards[i].skipped;
    return skipped;
}

/* ---- writing ---- */

static json_t *schema_to_json(const presto__schema *schema) {
    json_t *list = json_array();
    for (size_t i = 0; list != NULL && i < schema->count; i++) {
        const presto_feature_spec *feature = &schema->features[i];
        json_t *dims = json_array();
        for (int j = 0; dims != NULL && j < feature->spec.rank; j++)
            json_array_append_new(dims, json_integer(feature->spec.dims[j]));
        char *name = presto_text_encode(presto_span_of_text(feature->name));
        json_t *item =
            json_pack("{s:s, s:i, s:i, s:i, s:o}", "name", name, "encoding", (int)feature->encoding,
                      "dtype", (int)feature->spec.dtype, "rank", feature->spec.rank, "dims", dims);
        free(name);
        if (item == NULL || json_array_append_new(list, item) != 0) {
            json_decref(list);
            return NULL;
        }
    }
    return list;
}

static json_t *place_to_json(const presto__regroup_place *place) {
    return json_pack("{s:I, s:I, s:I, s:I}", "sample", (json_int_t)place->sample, "token",
                     (json_int_t)place->token, "documents", (json_int_t)place->documents, "tokens",
                     (json_int_t)place->tokens);
}

static json_t *shards_to_json(const presto__progress_file *progress) {
    json_t *list = json_array();
    for (size_t i = 0; list != NULL && i < progress->shard_count; i++) {
        const presto__whole_shard *whole = &progress->shards[i];
        const presto_dataset_shard *shard = &whole->described;
        json_t *item = json_pack("{s:I, s:s, s:I, s:I, s:I, s:I, s:I, s:I, s:I}", "number",
                                 (json_int_t)whole->number, "file", shard->file, "first",
                                 (json_int_t)whole->first, "end", (json_int_t)whole->end, "skipped",
                                 (json_int_t)whole->skipped, "records", (json_int_t)shard->records,
                                 "stored_bytes", (json_int_t)shard->stored_bytes, "raw_bytes",
                                 (json_int_t)shard->raw_bytes, "crc32c", (json_int_t)shard->crc32c);
        json_t *next = !whole->is_regrouped ? NULL : place_to_json(&whole->next);
        bool is_whole =
            item != NULL && (!whole->is_regrouped || json_object_set_new(item, "next", next) == 0);
        if (!is_whole || json_array_append(list, item) != 0) {
            json_decref(item);
            json_decref(list);
            return NULL;
        }
        json_decref(item);
    }
    return list;
}

char *presto__progress_file_text(const presto__progress_file *progress, json_t *owner) {
    json_t *root = json_pack("{s:i, s:o*, s:o*, s:o*, s:o*}", "format", PROGRESS_FORMAT, "job",
                             json_loads(progress->job, 0, NULL), "shards", shards_to_json(progress),
                             "features", schema_to_json(&progress->schema), "owner", owner);
    char *text = root == NULL ? NULL : json_dumps(root, JSON_INDENT(1));
    json_decref(root);
    return text;
}

presto_status presto__replace_file(const char *dir, const char *name, presto_span content,
                                   bool sync, presto_error *err) {
    char *path = presto__join_path(dir, name);
    if (path == NULL)
        return presto_fail_memory(err, 1);
    presto_status status =
        presto__object_put(path, &content, 1, &(presto__put_how){.sync = sync}, err);
    free(path);
    return status;
}

presto_status presto__progress_file_write(const char *dir, const presto__progress_file *progress,
                                          bool sync, presto_error *err) {
    char *text = presto__progress_file_text(progress, NULL);
    if (text == NULL)
        return presto_fail_memory(err, 0);
    presto_status status =
        presto__replace_file(dir, PRESTO_PROGRESS_FILE, presto_span_of_text(text), sync, err);
    free(text);
    return status;
}

bool presto__progress_file_is_due(const presto__progress_file *progress, uint64_t since_ns) {
    return progress->shard_count <= NOTED_AT_ONCE || since_ns >= NOTE_INTERVAL_NS;
}

/* ---- reading ---- */

/* Nothing, or a place behind the samples that the shard begins with. */
static bool read_place(json_t *item, presto__whole_shard *shard) {
    json_int_t sample, token, documents, tokens;
    if (item == NULL)
        return true;
    if (json_unpack(item, "{s:I, s:I, s:I, s:I}", "sample", &sample, "token", &token, "documents",
                    &documents, "tokens", &tokens) != 0 ||
        token < 0 || documents < 0 || documents > sample || tokens < 0 ||
        (uint64_t)sample < shard->end)
        return false;
    shard->is_regrouped = true;
    shard->next = (presto__regroup_place){(uint64_t)sample, (uint64_t)token, (uint64_t)documents,
                                          (uint64_t)tokens};
    return true;
}

/* Its numbers, and the name of its file, which is the item's. */
static bool read_shard(json_t *item, presto__whole_shard *shard_out, const char **file_out) {
    json_int_t number, first, end, skipped, records, stored, raw, crc;
    if (json_unpack(item, "{s:I, s:s, s:I, s:I, s:I, s:I, s:I, s:I, s:I}", "number", &number,
                    "file", file_out, "first", &first, "end", &end, "skipped", &skipped, "records",
                    &records, "stored_bytes", &stored, "raw_bytes", &raw, "crc32c", &crc) != 0 ||
        number < 0 || number == INT64_MAX || first < 0 || end < first || skipped < 0 ||
        records < 0 || stored < 0 || raw < 0 || crc < 0 || crc > UINT32_MAX)
        return false;
    *shard_out = (presto__whole_shard){.number = (size_t)number,
                                       .first = (uint64_t)first,
                                       .end = (uint64_t)end,
                                       .skipped = (uint64_t)skipped,
                                       .described = {.records = (uint64_t)records,
                                                     .stored_bytes = (uint64_t)stored,
                                                     .raw_bytes = (uint64_t)raw,
                                                     .crc32c = (uint32_t)crc}};
    return read_place(json_object_get(item, "next"), shard_out);
}

/* Can the shard, with `skipped` samples before it, have left out so many? */
static bool fits_range(const presto__whole_shard *shard, uint64_t skipped) {
    if (shard->is_regrouped) {
        uint64_t left_out = shard->next.sample - shard->next.documents;
        return skipped <= left_out && shard->skipped <= left_out - skipped;
    }
    uint64_t samples = shard->end - shard->first;
    return shard->described.records <= samples &&
           shard->skipped <= samples - shard->described.records;
}

static presto_status read_shards(const json_t *list, presto__progress_file *progress,
                                 presto_error *err) {
    size_t i;
    json_t *item;
    size_t least = 0;     /* number of the next one */
    uint64_t skipped = 0; /* by those before it */
    json_array_foreach(list, i, item) {
        const char *file;
        presto__whole_shard shard;
        if (!read_shard(item, &shard, &file) || shard.number < least ||
            shard.first < presto__progress_file_next(progress) || !fits_range(&shard, skipped))
            return presto_fail(err, PRESTO_ERR_CORRUPT, PRESTO_NO_OFFSET,
                               "shard %zu is no shard" REMEDY, i);
        PRESTO_TRY(presto__progress_file_add(progress, file, &shard, err));
        least = shard.number + 1;
        skipped += shard.skipped;
    }
    return PRESTO_OK;
}

/* Refuse unknown encodings, dtypes and dimensions: later code does not check them. */
static bool is_spec(int encoding, int dtype, int rank, const json_t *dims) {
    bool holds =
        encoding >= PRESTO_ENCODE_BYTES && encoding <= PRESTO_ENCODE_NONE &&
        (dtype == PRESTO_DTYPE_UNKNOWN || presto_dtype_numpy((presto_dtype)dtype) != NULL) &&
        rank >= -1 && rank <= PRESTO_MAX_RANK &&
        json_array_size(dims) == (size_t)(rank < 0 ? 0 : rank);
    for (int i = 0; holds && i < rank; i++) {
        const json_t *dim = json_array_get(dims, (size_t)i);
        holds = json_is_integer(dim) && json_integer_value(dim) >= -1;
    }
    return holds;
}

/* The name is the caller's to free. */
static presto_status read_feature(json_t *item, size_t number, presto_feature *feature_out,
                                  presto_error *err) {
    const char *name;
    int encoding, dtype, rank;
    json_t *dims;
    if (json_unpack(item, "{s:s, s:i, s:i, s:i, s:o}", "name", &name, "encoding", &encoding,
                    "dtype", &dtype, "rank", &rank, "dims", &dims) != 0 ||
        !is_spec(encoding, dtype, rank, dims))
        return presto_fail(err, PRESTO_ERR_CORRUPT, PRESTO_NO_OFFSET,
                           "feature %zu is no feature" REMEDY, number);
    presto_feature feature = {.encoding = (presto_encoding)encoding};
    feature.tensor.spec = (presto_tensor_spec){.dtype = (presto_dtype)dtype, .rank = rank};
    for (int j = 0; j < rank; j++)
        feature.tensor.spec.dims[j] = json_integer_value(json_array_get(dims, (size_t)j));
    char *decoded = strdup(name);
    if (decoded == NULL)
        return presto_fail_memory(err, strlen(name) + 1);
    feature.name = presto_span_of(decoded, presto_text_decode(decoded));
    *feature_out = feature;
    return PRESTO_OK;
}

static presto_status read_features(const json_t *list, presto__progress_file *progress,
                                   presto_error *err) {
    size_t count = json_array_size(list);
    if (count > PRESTO_MAX_FEATURES)
        return presto_fail(err, PRESTO_ERR_CORRUPT, PRESTO_NO_OFFSET,
                           "%zu features, more than %d" REMEDY, count, PRESTO_MAX_FEATURES);
    presto_feature *features = calloc(count + 1, sizeof *features);
    presto_sample sample = {.features = features};
    presto_status status = PRESTO_OK;
    if (features == NULL)
        return presto_fail_memory(err, (count + 1) * sizeof *features);
    for (size_t i = 0; i < count && status == PRESTO_OK; i++) {
        status = read_feature(json_array_get(list, i), i, &features[i], err);
        sample.feature_count += status == PRESTO_OK;
    }
    if (status == PRESTO_OK)
        status = presto__schema_merge_sample(&progress->schema, &sample, err);
    for (size_t i = 0; i < sample.feature_count; i++)
        free((void *)(uintptr_t)features[i].name.data);
    free(features);
    return status;
}

static presto_status read_root(json_t *root, presto__progress_file *progress, presto_error *err) {
    int format;
    json_t *job, *shards, *features;
    const char *join = json_string_value(json_object_get(root, "format"));
    if (join != NULL && strcmp(join, PRESTO__JOIN_FORMAT) == 0)
        return presto_fail(err, PRESTO_ERR_BUSY, PRESTO_NO_OFFSET,
                           "parts are being joined here: presto-write --join finishes it");
    if (json_unpack(root, "{s:i, s:o, s:o, s:o}", "format", &format, "job", &job, "shards", &shards,
                    "features", &features) != 0 ||
        format != PROGRESS_FORMAT || !json_is_object(job) || !json_is_array(shards) ||
        !json_is_array(features))
        return presto_fail(err, PRESTO_ERR_CORRUPT, PRESTO_NO_OFFSET,
                           "is no progress file of this version of Presto" REMEDY);
    progress->job = json_dumps(job, JSON_SORT_KEYS | JSON_COMPACT);
    if (progress->job == NULL)
        return presto_fail_memory(err, 0);
    PRESTO_TRY(read_shards(shards, progress, err));
    return read_features(features, progress, err);
}

presto_status presto__progress_file_parse(presto_span text, presto__progress_file *progress,
                                          presto_error *err) {
    json_error_t where;
    presto_error why;
    if (presto__json_check(text, PRESTO__JSON_MAX_BYTES, PRESTO__JSON_MAX_WEIGHT, &why) < 0)
        return presto_fail(err, PRESTO_ERR_CORRUPT, PRESTO_NO_OFFSET,
                           "is no progress file: %s" REMEDY, why.message);
    json_t *root = json_loadb((const char *)text.data, text.bytes, JSON_REJECT_DUPLICATES, &where);
    if (root == NULL && json_error_code(&where) == json_error_out_of_memory)
        return presto_fail_memory(err, text.bytes);
    if (root == NULL)
        return presto_fail(err, PRESTO_ERR_CORRUPT, PRESTO_NO_OFFSET,
                           "is no progress file: line %d: %s" REMEDY, where.line, where.text);
    presto_status status = read_root(root, progress, err);
    json_decref(root);
    return status;
}

presto_status presto__progress_file_read(const char *dir, presto__progress_file *progress_out,
                                         presto_error *err) {
    char *path = presto__join_path(dir, PRESTO_PROGRESS_FILE);
    if (path == NULL)
        return presto_fail_memory(err, 1);
    presto__progress_file progress = {0};
    presto_buffer text = {0};
    presto_status status = presto_file_read(path, PRESTO__JSON_MAX_BYTES, &text, err);
    if (status == PRESTO_OK)
        status = presto__progress_file_parse(presto_buffer_span(&text), &progress, err);
    presto_buffer_done(&text);
    if (status < 0) {
        presto_error_set_file(err, path);
        presto__progress_file_done(&progress);
    } else {
        *progress_out = progress;
    }
    free(path);
    return status;
}

presto_status presto__progress_file_check_places(const presto__progress_file *progress,
                                                 bool regroups, uint64_t samples,
                                                 presto_error *err) {
    uint64_t least = 0;
    for (size_t i = 0; i < progress->shard_count; i++) {
        const presto__whole_shard *shard = &progress->shards[i];
        if (shard->end > samples || shard->is_regrouped != regroups ||
            (regroups && (shard->next.sample < least || shard->next.sample > samples)))
            return presto_fail(err, PRESTO_ERR_CORRUPT, PRESTO_NO_OFFSET,
                               "shard %zu is no shard of this conversion" REMEDY, i);
        least = shard->next.sample;
    }
    return PRESTO_OK;
}

/* Which entry of two jobs differs first; NULL: none. The name is static or belongs to `theirs`. */
static const char *first_difference(json_t *ours, json_t *theirs) {
    const char *key;
    json_t *value;
    json_object_foreach(ours, key,
                        value) if (!json_equal(value, json_object_get(theirs, key))) return key;
    return json_equal(ours, theirs) ? NULL : "an option";
}

presto_status presto__progress_file_compare(const presto__progress_file *progress, const char *job,
                                            presto_error *err) {
    json_t *ours = json_loads(job, 0, NULL);
    json_t *theirs = json_loads(progress->job, 0, NULL);
    const char *key = ours == NULL || theirs == NULL ? "an option" : first_difference(ours, theirs);
    presto_status status = PRESTO_OK;
    if (key != NULL)
        status = presto_fail(err, PRESTO_ERR_ARGUMENT, PRESTO_NO_OFFSET,
                             "holds an unfinished conversion that differs in: %s", key);
    json_decref(ours);
    json_decref(theirs);
    return status;
}
