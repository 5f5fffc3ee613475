/* SPDX-License-Identifier: Apache-2.0 */
/*
 * part.json: the text of a dataset.json about the shards of one share, and what a join has to know
 * beside it. It comes from another process, so all that a join counts on is checked here.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include <jansson.h>

#include <presto/storage.h>

#include "../../base/file_internal.h"
#include "../../records/dataset/dataset_internal.h"
#include "../../records/records_internal.h"
#include "share_internal.h"

void presto__part_file_done(presto__part_file *part) {
    presto__dataset_info_free(&part->info);
    free(part->folder);
    free(part->job);
    *part = (presto__part_file){0};
}

/* ---- writing ---- */

static json_t *stream_json(const presto__part_file *part) {
    char counted[20], files[20];
    if (!part->has_stream)
        return json_null();
    snprintf(counted, sizeof counted, "%016" PRIx64, part->stream_counted);
    snprintf(files, sizeof files, "%016" PRIx64, part->stream_files);
    return json_pack("{s:s, s:s, s:I}", "counted", counted, "files", files, "records",
                     (json_int_t)part->stream_records);
}

static json_t *share_json(const presto__part_file *part) {
    char crc[12];
    snprintf(crc, sizeof crc, "%08" PRIx32, part->dictionary_crc32c);
    return json_pack("{s:I, s:I, s:I, s:o, s:o, s:o}", "number", (json_int_t)part->number,
                     "skipped", (json_int_t)part->skipped, "dropped", (json_int_t)part->dropped,
                     "dictionary_crc32c", part->has_dictionary ? json_string(crc) : json_null(),
                     "stream", stream_json(part), "job", json_loads(part->job, 0, NULL));
}

presto_status presto__part_file_write(const char *folder, presto__part_file *part, bool sync,
                                      presto_error *err) {
    json_t *share = share_json(part);
    char *text = NULL;
    if (share == NULL)
        return presto_fail_memory(err, 0);
    presto_status status = presto__dataset_info_text(&part->info, share, &text, err);
    if (status == PRESTO_OK)
        status =
            presto__replace_file(folder, PRESTO__PART_FILE, presto_span_of_text(text), sync, err);
    else
        presto_error_set_file(err, folder);
    free(text);
    json_decref(share);
    return status;
}

/* ---- reading ---- */

static presto_status bad(const char *file, const char *what, presto_error *err) {
    presto_status status =
        presto_fail(err, PRESTO_ERR_CORRUPT, PRESTO_NO_OFFSET,
                    "bad part.json: %s; without this folder the part can be written again", what);
    presto_error_set_file(err, file);
    return status;
}

static bool get_count(const json_t *object, const char *key, uint64_t most, uint64_t *out) {
    const json_t *value = json_object_get(object, key);
    if (!json_is_integer(value) || json_integer_value(value) < 0 ||
        (uint64_t)json_integer_value(value) > most)
        return false;
    *out = (uint64_t)json_integer_value(value);
    return true;
}

static bool get_hex(const json_t *value, size_t digits, uint64_t *out) {
    const char *text = json_string_value(value);
    if (text == NULL || strlen(text) != digits || strspn(text, "0123456789abcdef") != digits)
        return false;
    *out = strtoull(text, NULL, 16);
    return true;
}

static bool get_stream(const json_t *stream, presto__part_file *part) {
    if (json_is_null(stream))
        return true;
    part->has_stream = true;
    return get_hex(json_object_get(stream, "counted"), 16, &part->stream_counted) &&
           get_hex(json_object_get(stream, "files"), 16, &part->stream_files) &&
           get_count(stream, "records", INT64_MAX, &part->stream_records);
}

static bool get_dictionary(const json_t *crc, presto__part_file *part) {
    uint64_t value = 0;
    part->has_dictionary = !json_is_null(crc);
    if (part->has_dictionary && !get_hex(crc, 8, &value))
        return false;
    part->dictionary_crc32c = (uint32_t)value;
    const char *file = part->info.dictionary_file;
    return part->has_dictionary ? file != NULL && strcmp(file, PRESTO__DICTIONARY_FILE) == 0
                                : file == NULL;
}

/* How many samples may be left out, in all shares together. */
static bool get_limits(const json_t *job, presto__part_file *part) {
    const json_t *limit = json_object_get(job, "skip_limit");
    const json_t *fraction = json_object_get(job, "skip_fraction");
    part->skip_limit = UINT64_MAX;
    part->skip_fraction = json_number_value(fraction);
    return json_is_number(fraction) &&
           (json_is_null(limit) || get_count(job, "skip_limit", INT64_MAX, &part->skip_limit));
}

static bool get_job(json_t *job, presto__part_file *part) {
    uint64_t count = 0, shards = 0;
    if (!json_is_object(job) || !get_count(job, "parts", PRESTO_MAX_SHARDS, &count) ||
        !get_count(job, "shards", PRESTO_MAX_SHARDS, &shards) || count == 0 || shards == 0 ||
        !get_count(job, "samples", INT64_MAX, &part->samples) || !get_limits(job, part))
        return false;
    part->count = (size_t)count;
    part->shards = (size_t)shards;
    return true;
}

static bool has_name(const presto__part_file *part, size_t shard, const char *file) {
    char name[PRESTO__SHARD_NAME_BYTES];
    presto__shard_name(shard, part->shards, part->info.file_compression, name);
    return strcmp(name, file) == 0;
}

/* The shards are those of the share, and have its samples. */
static bool shards_fit(const presto__part_file *part) {
    const presto_dataset_info *info = &part->info;
    size_t first = presto__share_first(part->shards, part->number, part->count);
    size_t end = presto__share_first(part->shards, part->number + 1, part->count);
    uint64_t left_out = 0;
    bool fits = info->shard_count == end - first;
    for (size_t i = 0; fits && i < info->shard_count; i++) {
        uint64_t samples = presto__layout_first(part->samples, part->shards, first + i + 1) -
                           presto__layout_first(part->samples, part->shards, first + i);
        fits =
            has_name(part, first + i, info->shards[i].file) && info->shards[i].records <= samples;
        left_out += samples - (fits ? info->shards[i].records : 0);
    }
    return fits && part->skipped <= left_out && part->dropped == left_out - part->skipped;
}

static presto_status take_share(json_t *root, const char *file, presto__part_file *part,
                                presto_error *err) {
    json_t *share = json_object_get(root, "share"), *job = json_object_get(share, "job");
    uint64_t number = 0;
    if (!json_is_object(share) || !get_job(job, part))
        return bad(file, "'share' is missing, or says no job", err);
    if (!get_count(share, "number", part->count - 1, &number) ||
        !get_count(share, "skipped", INT64_MAX, &part->skipped) ||
        !get_count(share, "dropped", INT64_MAX, &part->dropped))
        return bad(file, "'share': a number is missing or too large", err);
    part->number = (size_t)number;
    if (!get_dictionary(json_object_get(share, "dictionary_crc32c"), part))
        return bad(file, "'share': 'dictionary_crc32c' does not fit 'dictionary'", err);
    if (!get_stream(json_object_get(share, "stream"), part))
        return bad(file, "'share': 'stream' is of the wrong kind", err);
    if (!shards_fit(part))
        return bad(file, "'shards' are not those of the share, or lack samples", err);
    part->job = json_dumps(job, JSON_SORT_KEYS | JSON_COMPACT);
    return part->job == NULL ? presto_fail_memory(err, 0) : PRESTO_OK;
}

presto_status presto__part_file_parse(presto_span text, const char *file,
                                      presto__part_file *part_out, presto_error *err) {
    presto__part_file part = {0};
    json_error_t where = {0};
    PRESTO_TRY(
        presto__dataset_info_parse(text, file, &part.info, err)); /* it is JSON, with bounds */
    json_t *root = json_loadb((const char *)text.data, text.bytes, 0, &where);
    presto_status status =
        root == NULL ? presto_fail_memory(err, text.bytes) : take_share(root, file, &part, err);
    json_decref(root);
    if (status < 0)
        presto__part_file_done(&part);
    else
        *part_out = part;
    return status;
}

presto_status presto__part_file_read(const char *folder, presto__part_file *part_out,
                                     presto_error *err) {
    char *path = presto__join_path(folder, PRESTO__PART_FILE);
    presto_buffer text = {0};
    if (path == NULL)
        return presto_fail_memory(err, strlen(folder));
    presto_status status = presto_file_read(path, PRESTO__JSON_MAX_BYTES, &text, err);
    if (status == PRESTO_OK)
        status = presto__part_file_parse(presto_buffer_span(&text), path, part_out, err);
    presto_buffer_done(&text);
    free(path);
    return status;
}

bool presto__jobs_differ(const char *a, const char *b, char key_out[64]) {
    const char *key = NULL, *name;
    json_t *ours = json_loads(a, 0, NULL), *theirs = json_loads(b, 0, NULL), *value;
    json_object_foreach(ours, name,
                        value) if (key == NULL && !json_equal(value, json_object_get(theirs, name)))
        key = name;
    if (key == NULL && !json_equal(ours, theirs))
        key = "an option";
    snprintf(key_out, 64, "%.63s", key == NULL ? "" : key);
    json_decref(ours);
    json_decref(theirs);
    return key != NULL;
}
