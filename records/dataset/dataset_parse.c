/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reading dataset.json, which is not trusted: file names stay inside its folder, lists hold no name
 * twice, and counts are small enough that sums, and memory for one item each, do not overflow.
 */
#include <presto/dataset.h>

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <presto/frame.h>
#include <presto/storage.h>
#include <presto/text.h>

#include "../../base/checked_internal.h"
#include "../../base/file_internal.h"
#include "../../base/json_limit_internal.h"
#include "../records_internal.h"
#include "dataset_internal.h"

/* total: each position fits a file */
#define MOST_RECORDS ((uint64_t)INT64_MAX / PRESTO_FRAME_OVERHEAD_BYTES)
/* Deflate makes at most 258 bytes out of two bits; rounded up. */
#define DEFLATE_RATIO 1040

typedef struct json_input {
    const char *file;
    presto_error *err;
} json_input;

static presto_status bad(const json_input *input, const char *what) {
    presto_status status =
        presto_fail(input->err, PRESTO_ERR_CORRUPT, PRESTO_NO_OFFSET, "bad dataset.json: %s", what);
    presto_error_set_file(input->err, input->file);
    return status;
}

static presto_status bad_key(const json_input *input, const char *key) {
    char what[128];
    snprintf(what, sizeof what, "'%s' is missing or of the wrong kind", key);
    return bad(input, what);
}

static presto_status bad_list(const json_input *input, const char *format, ...) PRESTO_PRINTF(2, 3);

static presto_status bad_list(const json_input *input, const char *format, ...) {
    char what[PRESTO_ERROR_MESSAGE_BYTES];
    va_list args;
    va_start(args, format);
    vsnprintf(what, sizeof what, format, args);
    va_end(args);
    return bad(input, what);
}

static int compare_names(const void *a, const void *b) {
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

const char *presto__find_double(const char **names, size_t count) {
    qsort((void *)names, count, sizeof *names, compare_names);
    for (size_t i = 1; i < count; i++)
        if (strcmp(names[i - 1], names[i]) == 0)
            return names[i];
    return NULL;
}

/* Does the list have a name twice? The first name is at `name`, the others follow `stride`
 * apart. */
static presto_status check_doubles(const json_input *input, const char *list, char *const *name,
                                   size_t stride, size_t count) {
    const char **names = presto__zeroed_array(count, 1, sizeof *names);
    const char *twice = NULL;
    if (names == NULL)
        return presto_fail_memory(input->err, count * sizeof *names);
    for (size_t i = 0; i < count; i++)
        names[i] = *(char *const *)(const void *)((const char *)name + i * stride);
    twice = presto__find_double(names, count);
    free((void *)names);
    return twice == NULL ? PRESTO_OK : bad_list(input, "'%s' lists '%s' twice", list, twice);
}

/* A text without NUL, neither as it is nor as \x00; a NUL would cut it short. */
static presto_status copy_text(const json_input *input, const json_t *value, const char *key,
                               char **out) {
    if (!json_is_string(value) || strlen(json_string_value(value)) != json_string_length(value))
        return bad_key(input, key);
    char *copy = strdup(json_string_value(value));
    if (copy == NULL)
        return presto_fail_memory(input->err, json_string_length(value));
    *out = copy;
    size_t bytes = presto_text_decode(copy);
    return strlen(copy) == bytes ? PRESTO_OK : bad_key(input, key);
}

static presto_status get_text(const json_input *input, const json_t *object, const char *key,
                              bool optional, char **out) {
    const json_t *value = json_object_get(object, key);
    if (optional && (value == NULL || json_is_null(value)))
        return PRESTO_OK;
    return copy_text(input, value, key, out);
}

static presto_status get_number(const json_input *input, const json_t *object, const char *key,
                                uint64_t *out) {
    const json_t *value = json_object_get(object, key);
    if (json_is_integer(value) && json_integer_value(value) >= 0) {
        *out = (uint64_t)json_integer_value(value);
        return PRESTO_OK;
    }
    const char *text = json_string_value(value);
    if (text != NULL && *text >= '0' && *text <= '9') {
        char *end;
        errno = 0;
        unsigned long long parsed = strtoull(text, &end, 10);
        if (*end == '\0' && errno == 0) {
            *out = parsed;
            return PRESTO_OK;
        }
    }
    return bad_key(input, key);
}

static presto_status get_shape(const json_input *input, const json_t *shape,
                               presto_tensor_spec *spec) {
    if (json_is_null(shape)) {
        spec->rank = -1;
        return PRESTO_OK;
    }
    size_t rank = json_array_size(shape);
    if (!json_is_array(shape) || rank > PRESTO_MAX_RANK)
        return bad_key(input, "shape");
    for (size_t i = 0; i < rank; i++) {
        const json_t *dim = json_array_get(shape, i);
        if (!json_is_integer(dim) || json_integer_value(dim) < -1)
            return bad_key(input, "shape");
        spec->dims[i] = json_integer_value(dim);
    }
    spec->rank = (int)rank;
    return PRESTO_OK;
}

static bool is_hex(const char *text, size_t digits) {
    return strlen(text) == digits && strspn(text, "0123456789abcdef") == digits;
}

static bool encoding_by_name(const char *name, presto_encoding *out) {
    for (int i = PRESTO_ENCODE_BYTES; i <= PRESTO_ENCODE_NONE; i++)
        if (strcmp(name, presto_encoding_name((presto_encoding)i)) == 0) {
            *out = (presto_encoding)i;
            return true;
        }
    return false;
}

static presto_status get_feature(const json_input *input, const json_t *entry,
                                 presto_feature_spec *feature) {
    PRESTO_TRY(get_text(input, entry, "name", false, &feature->name));
    const char *dtype = json_string_value(json_object_get(entry, "dtype"));
    const char *encoding = json_string_value(json_object_get(entry, "encoding"));
    if (dtype == NULL)
        return bad_key(input, "dtype");
    feature->spec.dtype = presto_dtype_by_name(dtype);
    if (feature->spec.dtype == PRESTO_DTYPE_UNKNOWN && strcmp(dtype, "unknown") != 0)
        return bad(input, "unknown dtype");
    if (encoding == NULL || !encoding_by_name(encoding, &feature->encoding))
        return bad_key(input, "encoding");
    return get_shape(input, json_object_get(entry, "shape"), &feature->spec);
}

static presto_status get_features(const json_input *input, const json_t *array,
                                  presto_dataset_info *info) {
    if (!json_is_array(array))
        return bad_key(input, "features");
    size_t count = json_array_size(array);
    if (count > PRESTO_MAX_FEATURES)
        return bad_list(input, "'features' lists %zu, more than %d", count, PRESTO_MAX_FEATURES);
    info->features = presto__zeroed_array(count, 1, sizeof *info->features);
    if (info->features == NULL)
        return presto_fail_memory(input->err, count * sizeof *info->features);
    for (size_t i = 0; i < count; i++) {
        info->feature_count = i + 1;
        PRESTO_TRY(get_feature(input, json_array_get(array, i), &info->features[i]));
    }
    const size_t stride = sizeof *info->features;
    return check_doubles(input, "features", &info->features[0].name, stride, count);
}

static presto_status get_labels(const json_input *input, const json_t *array,
                                presto_dataset_info *info) {
    if (array == NULL || json_is_null(array))
        return PRESTO_OK;
    if (!json_is_array(array))
        return bad_key(input, "labels");
    size_t count = json_array_size(array);
    info->label_names = presto__zeroed_array(count, 1, sizeof *info->label_names);
    if (info->label_names == NULL)
        return presto_fail_memory(input->err, count * sizeof *info->label_names);
    for (size_t i = 0; i < count; i++) {
        info->label_count = i + 1;
        PRESTO_TRY(copy_text(input, json_array_get(array, i), "labels", &info->label_names[i]));
    }
    return PRESTO_OK;
}

/* A file name that stays in the folder. Only one spelling per file is accepted. */
static bool is_inside(const char *name) {
    for (const char *part = name;; part++) {
        size_t bytes = strcspn(part, "/");
        if (bytes == 0 || (bytes <= 2 && strspn(part, ".") == bytes))
            return false;
        part += bytes;
        if (*part == '\0')
            return true;
    }
}

/* Each record takes a frame, and a compressed file yields a limited number of bytes. */
static presto_status check_records(const json_input *input, const presto_dataset_shard *shard,
                                   presto_file_compression compression) {
    uint64_t most = shard->stored_bytes;
    if (compression != PRESTO_FILE_PLAIN && !presto__u64_multiply(most, DEFLATE_RATIO, &most))
        most = UINT64_MAX;
    if (shard->records <= most / PRESTO_FRAME_OVERHEAD_BYTES)
        return PRESTO_OK;
    return bad_list(input,
                    "'shards': '%s': 'records' is %" PRIu64 ", which %" PRIu64
                    " 'stored_bytes' cannot hold",
                    shard->file, shard->records, shard->stored_bytes);
}

static presto_status get_shard(const json_input *input, const json_t *entry,
                               presto_file_compression compression, presto_dataset_shard *shard) {
    char *crc = NULL, *end = NULL;
    PRESTO_TRY(get_text(input, entry, "file", false, &shard->file));
    if (!is_inside(shard->file))
        return bad_list(input, "'shards': '%s' is no file of the folder", shard->file);
    PRESTO_TRY(get_number(input, entry, "records", &shard->records));
    PRESTO_TRY(get_number(input, entry, "stored_bytes", &shard->stored_bytes));
    PRESTO_TRY(get_number(input, entry, "raw_bytes", &shard->raw_bytes));
    PRESTO_TRY(get_text(input, entry, "crc32c", false, &crc));
    bool whole = is_hex(crc, 8);
    shard->crc32c = (uint32_t)strtoul(crc, &end, 16);
    free(crc);
    return whole ? check_records(input, shard, compression) : bad_key(input, "crc32c");
}

static presto_status get_shards(const json_input *input, const json_t *array,
                                presto_dataset_info *info) {
    if (!json_is_array(array))
        return bad_key(input, "shards");
    size_t count = json_array_size(array);
    info->shards = presto__zeroed_array(count, 1, sizeof *info->shards);
    if (info->shards == NULL)
        return presto_fail_memory(input->err, count * sizeof *info->shards);
    for (size_t i = 0; i < count; i++) {
        info->shard_count = i + 1;
        const json_t *entry = json_array_get(array, i);
        PRESTO_TRY(get_shard(input, entry, info->file_compression, &info->shards[i]));
    }
    const size_t stride = sizeof *info->shards;
    return check_doubles(input, "shards", &info->shards[0].file, stride, count);
}

/* The sums do not overflow and equal the totals: the list is complete. */
static presto_status check_totals(const json_input *input, const json_t *totals,
                                  const presto_dataset_info *info) {
    uint64_t want[3] = {0}, sums[3] = {0};
    PRESTO_TRY(get_number(input, totals, "records", &want[0]));
    PRESTO_TRY(get_number(input, totals, "stored_bytes", &want[1]));
    PRESTO_TRY(get_number(input, totals, "raw_bytes", &want[2]));
    for (size_t i = 0; i < info->shard_count; i++) {
        const presto_dataset_shard *shard = &info->shards[i];
        const uint64_t parts[3] = {shard->records, shard->stored_bytes, shard->raw_bytes};
        for (int k = 0; k < 3; k++)
            if (!presto__u64_add(sums[k], parts[k], &sums[k]))
                return bad(input, "the shards' sizes overflow");
    }
    if (sums[0] > MOST_RECORDS)
        return bad(input, "'shards' have more records than can be counted");
    for (int k = 0; k < 3; k++)
        if (sums[k] != want[k])
            return bad(input, "the totals are not the sums over the shards");
    return PRESTO_OK;
}

static presto_status get_compression(const json_input *input, const json_t *json,
                                     presto_file_compression *out) {
    const char *name = json_string_value(json_object_get(json, "file_compression"));
    for (int i = PRESTO_FILE_PLAIN; name != NULL && i <= PRESTO_FILE_ZLIB; i++)
        if (strcmp(name, presto_file_compression_name((presto_file_compression)i)) == 0) {
            *out = (presto_file_compression)i;
            return PRESTO_OK;
        }
    return bad_key(input, "file_compression");
}

static presto_status get_pipeline(const json_input *input, const json_t *pipeline, char **out) {
    if (pipeline == NULL || json_is_null(pipeline))
        return PRESTO_OK;
    if (!json_is_object(pipeline))
        return bad_key(input, "pipeline");
    *out = json_dumps(pipeline, JSON_COMPACT);
    return *out != NULL ? PRESTO_OK : presto_fail_memory(input->err, 0);
}

static presto_status get_stream(const json_input *input, const json_t *stream,
                                presto_dataset_info *info) {
    uint64_t *const digests[] = {&info->stream_counted, &info->stream_files};
    const char *const keys[] = {"counted", "files"};
    if (stream == NULL || json_is_null(stream))
        return PRESTO_OK;
    for (size_t i = 0; i < 2; i++) {
        const char *text = json_string_value(json_object_get(stream, keys[i]));
        if (text == NULL || !is_hex(text, 16))
            return bad_key(input, "stream");
        *digests[i] = strtoull(text, NULL, 16);
    }
    info->has_stream = true;
    return PRESTO_OK;
}

/* 0.2.0 called it `split`. Files of this version have both. */
static presto_status get_stored(const json_input *input, const json_t *json,
                                presto_dataset_info *info) {
    char *split = NULL;
    PRESTO_TRY(get_text(input, json, "stored", true, &info->stored));
    presto_status status = get_text(input, json, "split", true, &split);
    if (status >= 0 && info->stored != NULL && split != NULL && strcmp(info->stored, split) != 0)
        status = bad(input, "'stored' and 'split', its name before, differ");
    if (status >= 0 && info->stored == NULL) {
        info->stored = split;
        split = NULL;
    }
    free(split);
    return status;
}

static presto_status get_info(const json_input *input, const json_t *json,
                              presto_dataset_info *info) {
    const char *format = json_string_value(json_object_get(json, "format"));
    if (format == NULL || strcmp(format, PRESTO__DATASET_FORMAT) != 0)
        return bad(input, "it is not one of ours");
    uint64_t version;
    PRESTO_TRY(get_number(input, json, "version", &version));
    if (version != PRESTO_DATASET_FORMAT_VERSION)
        return bad(input, "it is of a version that this program does not know");
    PRESTO_TRY(get_text(input, json, "id", false, &info->id));
    PRESTO_TRY(get_text(input, json, "tool_version", true, &info->tool_version));
    PRESTO_TRY(get_text(input, json, "input", true, &info->input));
    if (info->input != NULL && !is_hex(info->input, 16))
        return bad_key(input, "input");
    PRESTO_TRY(get_stream(input, json_object_get(json, "stream"), info));
    PRESTO_TRY(get_stored(input, json, info));
    PRESTO_TRY(get_text(input, json, "main_feature", true, &info->main_feature));
    PRESTO_TRY(get_text(input, json, "codec", false, &info->codec));
    PRESTO_TRY(get_text(input, json, "dictionary", true, &info->dictionary_file));
    if (info->dictionary_file != NULL && !is_inside(info->dictionary_file))
        return bad(input, "'dictionary' is no file of the folder");
    PRESTO_TRY(get_number(input, json, "seed", &info->seed));
    PRESTO_TRY(get_compression(input, json, &info->file_compression));
    PRESTO_TRY(get_pipeline(input, json_object_get(json, "pipeline"), &info->pipeline_json));
    PRESTO_TRY(get_features(input, json_object_get(json, "features"), info));
    PRESTO_TRY(get_labels(input, json_object_get(json, "labels"), info));
    PRESTO_TRY(get_shards(input, json_object_get(json, "shards"), info));
    return check_totals(input, json_object_get(json, "totals"), info);
}

presto_status presto__dataset_info_parse(presto_span json, const char *file,
                                         presto_dataset_info *info_out, presto_error *err) {
    const json_input input = {file, err};
    json_error_t where = {0};
    presto_error why;
    if (presto__json_check(json, PRESTO__JSON_MAX_BYTES, PRESTO__JSON_MAX_WEIGHT, &why) < 0)
        return bad(&input, why.message);
    json_t *root = json_loadb((const char *)json.data, json.bytes, JSON_REJECT_DUPLICATES, &where);
    if (root == NULL) {
        if (presto__json_ran_out(&where))
            return presto_fail_memory(err, json.bytes);
        char what[JSON_ERROR_TEXT_LENGTH + 32];
        snprintf(what, sizeof what, "line %d: %s", where.line, where.text);
        return bad(&input, what);
    }
    presto_dataset_info info = {0};
    presto_status status = get_info(&input, root, &info);
    json_decref(root);
    if (status < 0)
        presto__dataset_info_free(&info);
    else
        *info_out = info;
    return status;
}

presto_status presto__dataset_info_read(const char *dir, presto_dataset_info *info_out,
                                        presto_error *err) {
    char *path = presto__join_path(dir, PRESTO_DATASET_FILE);
    if (path == NULL)
        return presto_fail_memory(err, strlen(dir));
    presto_buffer text = {0};
    presto_status status = presto_file_read(path, PRESTO__JSON_MAX_BYTES, &text, err);
    if (status == PRESTO_ERR_NOT_FOUND) {
        status = presto_fail(err, PRESTO_ERR_NOT_FOUND, PRESTO_NO_OFFSET,
                             "no " PRESTO_DATASET_FILE " in it");
        presto_error_set_file(err, dir);
    }
    if (status == PRESTO_OK)
        status = presto__dataset_info_parse(presto_buffer_span(&text), path, info_out, err);
    presto_buffer_done(&text);
    free(path);
    return status;
}
