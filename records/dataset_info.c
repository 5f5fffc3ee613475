/* SPDX-License-Identifier: Apache-2.0 */
/* dataset.json: written last of all, read with distrust. Schema: docs/format.md. */
#include <presto/dataset.h>

#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <presto/version.h>

#include "../base/file_internal.h"

/* A shard takes about 200 of them. */
#define MOST_BYTES ((uint64_t)256 << 20)
#define FORMAT_NAME "presto-dataset"
/* Numbers above this are not exact in every reader of JSON, so they are written as text. */
#define EXACT_MAX ((uint64_t)1 << 53)

void presto_dataset_info_done(presto_dataset_info *info) {
    if (info == NULL)
        return;
    for (size_t i = 0; i < info->feature_count; i++)
        free(info->features[i].name);
    for (size_t i = 0; i < info->shard_count; i++)
        free(info->shards[i].file);
    for (size_t i = 0; i < info->label_count; i++)
        free(info->label_names[i]);
    free(info->id);
    free(info->pipeline_json);
    free(info->split);
    free(info->features);
    free(info->main_feature);
    free(info->codec);
    free(info->dictionary_file);
    free(info->shards);
    free(info->label_names);
    free(info->tool_version);
    free(info->input);
    *info = (presto_dataset_info){0};
}

/* ---- writing ---- */

static uint64_t hash_bytes(uint64_t hash, const void *data, size_t bytes) {
    const uint8_t *at = data;
    for (size_t i = 0; i < bytes; i++)
        hash = (hash ^ at[i]) * UINT64_C(0x100000001b3);
    return hash;
}

/* FNV-1a over what the data is: each shard's CRC, size and record count, in order. */
static uint64_t digest(const presto_dataset_info *info) {
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    for (size_t i = 0; i < info->shard_count; i++) {
        const presto_dataset_shard *shard = &info->shards[i];
        hash = hash_bytes(hash, &shard->records, sizeof shard->records);
        hash = hash_bytes(hash, &shard->stored_bytes, sizeof shard->stored_bytes);
        hash = hash_bytes(hash, &shard->crc32c, sizeof shard->crc32c);
    }
    return hash;
}

static json_t *number(uint64_t value) {
    char text[24];
    if (value <= EXACT_MAX)
        return json_integer((json_int_t)value);
    snprintf(text, sizeof text, "%" PRIu64, value);
    return json_string(text);
}

static json_t *text_or_null(const char *text) {
    return text != NULL ? json_string(text) : json_null();
}

static json_t *shape_json(const presto_tensor_spec *spec) {
    if (spec->rank < 0)
        return json_null();
    json_t *shape = json_array();
    for (int i = 0; i < spec->rank; i++)
        if (json_array_append_new(shape, json_integer(spec->dims[i])) != 0) {
            json_decref(shape);
            return NULL;
        }
    return shape;
}

/* NULL anywhere in a packed value makes json_pack fail as a whole, so pieces need no checks of
 * their own. */
static json_t *features_json(const presto_dataset_info *info) {
    json_t *array = json_array();
    for (size_t i = 0; i < info->feature_count && array != NULL; i++) {
        const presto_feature_spec *feature = &info->features[i];
        json_t *entry =
            json_pack("{s:s, s:s, s:o, s:s}", "name", feature->name, "dtype",
                      presto_dtype_name(feature->spec.dtype), "shape", shape_json(&feature->spec),
                      "encoding", presto_encoding_name(feature->encoding));
        if (json_array_append_new(array, entry) != 0) {
            json_decref(array);
            return NULL;
        }
    }
    return array;
}

static json_t *shards_json(const presto_dataset_info *info) {
    json_t *array = json_array();
    for (size_t i = 0; i < info->shard_count && array != NULL; i++) {
        const presto_dataset_shard *shard = &info->shards[i];
        char crc[12];
        snprintf(crc, sizeof crc, "%08" PRIx32, shard->crc32c);
        json_t *entry =
            json_pack("{s:s, s:o, s:o, s:o, s:s}", "file", shard->file, "records",
                      number(shard->records), "stored_bytes", number(shard->stored_bytes),
                      "raw_bytes", number(shard->raw_bytes), "crc32c", crc);
        if (json_array_append_new(array, entry) != 0) {
            json_decref(array);
            return NULL;
        }
    }
    return array;
}

static json_t *labels_json(const presto_dataset_info *info) {
    if (info->label_names == NULL)
        return json_null();
    json_t *array = json_array();
    for (size_t i = 0; i < info->label_count && array != NULL; i++)
        if (json_array_append_new(array, json_string(info->label_names[i])) != 0) {
            json_decref(array);
            return NULL;
        }
    return array;
}

static json_t *totals_json(const presto_dataset_info *info) {
    uint64_t records = 0, stored = 0, raw = 0;
    for (size_t i = 0; i < info->shard_count; i++) {
        records += info->shards[i].records;
        stored += info->shards[i].stored_bytes;
        raw += info->shards[i].raw_bytes;
    }
    return json_pack("{s:o, s:o, s:o}", "records", number(records), "stored_bytes", number(stored),
                     "raw_bytes", number(raw));
}

static json_t *info_json(const presto_dataset_info *info, const char *id, json_t *pipeline) {
    const char *tool = info->tool_version != NULL ? info->tool_version : presto_version();
    return json_pack("{s:s, s:i, s:s, s:s, s:o, s:o, s:o, s:o, s:o, s:o, s:s, s:o, s:s, s:o, s:o, "
                     "s:o}",
                     "format", FORMAT_NAME, "version", PRESTO_DATASET_FORMAT_VERSION, "id", id,
                     "tool_version", tool, "input", text_or_null(info->input), "pipeline", pipeline,
                     "split", text_or_null(info->split), "main_feature",
                     text_or_null(info->main_feature), "features", features_json(info), "labels",
                     labels_json(info), "codec", info->codec != NULL ? info->codec : "none",
                     "dictionary", text_or_null(info->dictionary_file), "file_compression",
                     presto_file_compression_name(info->file_compression), "seed",
                     number(info->seed), "totals", totals_json(info), "shards", shards_json(info));
}

static presto_status write_json(const char *dir, const json_t *json, bool sync, presto_error *err) {
    char *text = json_dumps(json, JSON_INDENT(2));
    size_t path_bytes = strlen(dir) + sizeof "/" PRESTO_DATASET_FILE;
    char *path = malloc(path_bytes);
    presto_status status;
    if (text == NULL || path == NULL) {
        status = presto_fail_memory(err, path_bytes);
    } else {
        snprintf(path, path_bytes, "%s/%s", dir, PRESTO_DATASET_FILE);
        const presto_span pieces[] = {presto_span_of_text(text), presto_span_of_text("\n")};
        status = presto_file_replace(path, pieces, 2, sync, err);
        if (status == PRESTO_OK && sync) {
            status = presto__sync_folder_of(path, err);
            if (status < 0)
                unlink(path); /* a failure leaves nothing that says it is whole */
        }
    }
    free(path);
    free(text);
    return status;
}

/* jansson's error after a failed allocation says nothing, or says so. */
static bool ran_out(const json_error_t *where) {
    return where->text[0] == '\0' || json_error_code(where) == json_error_out_of_memory;
}

static bool is_utf8(const char *text) {
    json_t *string = text != NULL ? json_string(text) : json_null();
    bool fine = string != NULL;
    json_decref(string);
    return fine;
}

/* Why there is no JSON: a text that JSON cannot hold, or no memory. */
static presto_status fail_json(const presto_dataset_info *info, presto_error *err) {
    bool fine = is_utf8(info->split) && is_utf8(info->main_feature) && is_utf8(info->codec) &&
                is_utf8(info->dictionary_file) && is_utf8(info->tool_version) &&
                is_utf8(info->input);
    for (size_t i = 0; i < info->feature_count; i++)
        fine = fine && is_utf8(info->features[i].name);
    for (size_t i = 0; i < info->label_count; i++)
        fine = fine && is_utf8(info->label_names[i]);
    for (size_t i = 0; i < info->shard_count; i++)
        fine = fine && is_utf8(info->shards[i].file);
    if (fine)
        return presto_fail_memory(err, 0);
    return presto_fail(err, PRESTO_ERR_ARGUMENT, PRESTO_NO_OFFSET,
                       "a name that dataset.json shall hold is not UTF-8");
}

static presto_status write_info(const char *dir, const presto_dataset_info *info, const char *id,
                                bool sync, presto_error *err) {
    json_error_t where = {0};
    const char *text = info->pipeline_json;
    json_t *pipeline = text != NULL ? json_loads(text, 0, &where) : json_null();
    if (pipeline == NULL && ran_out(&where))
        return presto_fail_memory(err, 0);
    if (pipeline == NULL)
        return presto_fail(err, PRESTO_ERR_ARGUMENT, PRESTO_NO_OFFSET,
                           "the pipeline is not JSON: %s", where.text);
    json_t *json =
        info_json(info, id, pipeline); /* takes over `pipeline`, whether it fails or not */
    presto_status status = json != NULL ? write_json(dir, json, sync, err) : fail_json(info, err);
    json_decref(json);
    return status;
}

presto_status presto_dataset_info_write(const char *dir, presto_dataset_info *info, bool sync,
                                        presto_error *err) {
    char text[20];
    snprintf(text, sizeof text, "%016" PRIx64, digest(info));
    char *id = strdup(text);
    if (id == NULL)
        return presto_fail_memory(err, sizeof text);
    presto_status status = write_info(dir, info, id, sync, err);
    if (status < 0) {
        free(id);
        return status;
    }
    free(info->id);
    info->id = id;
    return PRESTO_OK;
}

/* ---- reading ---- */

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

static presto_status copy_text(const json_input *input, const json_t *value, char **out) {
    char *copy = strdup(json_string_value(value));
    if (copy == NULL)
        return presto_fail_memory(input->err, json_string_length(value));
    *out = copy;
    return PRESTO_OK;
}

static presto_status get_text(const json_input *input, const json_t *object, const char *key,
                              bool optional, char **out) {
    const json_t *value = json_object_get(object, key);
    if (optional && (value == NULL || json_is_null(value)))
        return PRESTO_OK;
    /* A zero byte would cut the text short. */
    if (!json_is_string(value) || strlen(json_string_value(value)) != json_string_length(value))
        return bad_key(input, key);
    return copy_text(input, value, out);
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
    info->features = calloc(count + 1, sizeof *info->features);
    if (info->features == NULL)
        return presto_fail_memory(input->err, count * sizeof *info->features);
    for (size_t i = 0; i < count; i++) {
        info->feature_count = i + 1;
        PRESTO_TRY(get_feature(input, json_array_get(array, i), &info->features[i]));
    }
    return PRESTO_OK;
}

static presto_status get_labels(const json_input *input, const json_t *array,
                                presto_dataset_info *info) {
    if (array == NULL || json_is_null(array))
        return PRESTO_OK;
    if (!json_is_array(array))
        return bad_key(input, "labels");
    size_t count = json_array_size(array);
    info->label_names = calloc(count + 1, sizeof *info->label_names);
    if (info->label_names == NULL)
        return presto_fail_memory(input->err, count * sizeof *info->label_names);
    for (size_t i = 0; i < count; i++) {
        const json_t *name = json_array_get(array, i);
        if (!json_is_string(name))
            return bad_key(input, "labels");
        info->label_count = i + 1;
        PRESTO_TRY(copy_text(input, name, &info->label_names[i]));
    }
    return PRESTO_OK;
}

/* A file of the folder, not one that the name leads to elsewhere. */
static bool is_inside(const char *name) {
    if (name[0] == '\0' || name[0] == '/')
        return false;
    for (const char *part = name;; part++) {
        size_t bytes = strcspn(part, "/");
        if (bytes == 2 && part[0] == '.' && part[1] == '.')
            return false;
        part += bytes;
        if (*part == '\0')
            return true;
    }
}

static presto_status get_shard(const json_input *input, const json_t *entry,
                               presto_dataset_shard *shard) {
    char *crc = NULL, *end = NULL;
    PRESTO_TRY(get_text(input, entry, "file", false, &shard->file));
    if (!is_inside(shard->file))
        return bad(input, "a shard's file lies outside the folder");
    PRESTO_TRY(get_number(input, entry, "records", &shard->records));
    PRESTO_TRY(get_number(input, entry, "stored_bytes", &shard->stored_bytes));
    PRESTO_TRY(get_number(input, entry, "raw_bytes", &shard->raw_bytes));
    PRESTO_TRY(get_text(input, entry, "crc32c", false, &crc));
    bool whole = is_hex(crc, 8);
    shard->crc32c = (uint32_t)strtoul(crc, &end, 16);
    free(crc);
    return whole ? PRESTO_OK : bad_key(input, "crc32c");
}

static presto_status get_shards(const json_input *input, const json_t *array,
                                presto_dataset_info *info) {
    if (!json_is_array(array))
        return bad_key(input, "shards");
    size_t count = json_array_size(array);
    info->shards = calloc(count + 1, sizeof *info->shards);
    if (info->shards == NULL)
        return presto_fail_memory(input->err, count * sizeof *info->shards);
    for (size_t i = 0; i < count; i++) {
        info->shard_count = i + 1;
        PRESTO_TRY(get_shard(input, json_array_get(array, i), &info->shards[i]));
    }
    return PRESTO_OK;
}

/* Sums that do not overflow and agree with the totals: the list is whole. */
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
            if (__builtin_add_overflow(sums[k], parts[k], &sums[k]))
                return bad(input, "the shards' sizes overflow");
    }
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

static presto_status get_info(const json_input *input, const json_t *json,
                              presto_dataset_info *info) {
    const char *format = json_string_value(json_object_get(json, "format"));
    if (format == NULL || strcmp(format, FORMAT_NAME) != 0)
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
    PRESTO_TRY(get_text(input, json, "split", true, &info->split));
    PRESTO_TRY(get_text(input, json, "main_feature", true, &info->main_feature));
    PRESTO_TRY(get_text(input, json, "codec", false, &info->codec));
    PRESTO_TRY(get_text(input, json, "dictionary", true, &info->dictionary_file));
    if (info->dictionary_file != NULL && !is_inside(info->dictionary_file))
        return bad(input, "the dictionary lies outside the folder");
    PRESTO_TRY(get_number(input, json, "seed", &info->seed));
    PRESTO_TRY(get_compression(input, json, &info->file_compression));
    PRESTO_TRY(get_pipeline(input, json_object_get(json, "pipeline"), &info->pipeline_json));
    PRESTO_TRY(get_features(input, json_object_get(json, "features"), info));
    PRESTO_TRY(get_labels(input, json_object_get(json, "labels"), info));
    PRESTO_TRY(get_shards(input, json_object_get(json, "shards"), info));
    return check_totals(input, json_object_get(json, "totals"), info);
}

presto_status presto_dataset_info_parse(presto_span json, const char *file,
                                        presto_dataset_info *info_out, presto_error *err) {
    const json_input input = {file, err};
    json_error_t where = {0};
    json_t *root = json_loadb((const char *)json.data, json.bytes, JSON_REJECT_DUPLICATES, &where);
    if (root == NULL) {
        if (ran_out(&where))
            return presto_fail_memory(err, json.bytes);
        char what[JSON_ERROR_TEXT_LENGTH + 32];
        snprintf(what, sizeof what, "line %d: %s", where.line, where.text);
        return bad(&input, what);
    }
    presto_dataset_info info = {0};
    presto_status status = get_info(&input, root, &info);
    json_decref(root);
    if (status < 0)
        presto_dataset_info_done(&info);
    else
        *info_out = info;
    return status;
}

presto_status presto_dataset_info_read(const char *dir, presto_dataset_info *info_out,
                                       presto_error *err) {
    size_t path_bytes = strlen(dir) + sizeof "/" PRESTO_DATASET_FILE;
    char *path = malloc(path_bytes);
    if (path == NULL)
        return presto_fail_memory(err, path_bytes);
    snprintf(path, path_bytes, "%s/%s", dir, PRESTO_DATASET_FILE);
    presto_buffer text = {0};
    presto_status status = presto_file_read(path, MOST_BYTES, &text, err);
    if (status == PRESTO_ERR_NOT_FOUND) {
        status = presto_fail(err, PRESTO_ERR_NOT_FOUND, PRESTO_NO_OFFSET,
                             "no " PRESTO_DATASET_FILE " in it");
        presto_error_set_file(err, dir);
    }
    if (status == PRESTO_OK)
        status = presto_dataset_info_parse(presto_buffer_span(&text), path, info_out, err);
    presto_buffer_done(&text);
    free(path);
    return status;
}
