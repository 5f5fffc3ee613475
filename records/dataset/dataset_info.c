/* SPDX-License-Identifier: Apache-2.0 */
/* Writing dataset.json, the last file of a dataset. Schema: docs/format.md. */
#include <presto/dataset.h>

#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <presto/text.h>
#include <presto/version.h>

#include "../../base/digest_internal.h"
#include "../../base/file_internal.h"
#include "../../base/json_limit_internal.h"
#include "../../storage/outlet_internal.h"
#include "../records_internal.h"
#include "dataset_internal.h"

/* Not every JSON reader keeps larger numbers exact, so they are written as text. */
#define EXACT_MAX ((uint64_t)1 << 53)

void presto__dataset_info_free(presto_dataset_info *info) {
    for (size_t i = 0; i < info->feature_count; i++)
        free(info->features[i].name);
    for (size_t i = 0; i < info->shard_count; i++)
        free(info->shards[i].file);
    for (size_t i = 0; i < info->label_count; i++)
        free(info->label_names[i]);
    free(info->id);
    free(info->pipeline_json);
    free(info->stored);
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

/* FNV-1a over each shard's CRC, size and record count, in order. */
static uint64_t digest(const presto_dataset_info *info) {
    uint64_t hash = PRESTO__FNV_START;
    for (size_t i = 0; i < info->shard_count; i++) {
        const presto_dataset_shard *shard = &info->shards[i];
        hash = presto__fnv_add(hash, &shard->records, sizeof shard->records);
        hash = presto__fnv_add(hash, &shard->stored_bytes, sizeof shard->stored_bytes);
        hash = presto__fnv_add(hash, &shard->crc32c, sizeof shard->crc32c);
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

/* A name may be any bytes. */
static json_t *name_json(const char *name) {
    char *text = presto_text_encode(presto_span_of_text(name));
    json_t *json = text != NULL ? json_string(text) : NULL;
    free(text);
    return json;
}

static json_t *text_or_null(const char *text) {
    return text != NULL ? name_json(text) : json_null();
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

/* json_pack fails as a whole if a packed value is NULL, so the pieces need no checks. */
static json_t *features_json(const presto_dataset_info *info) {
    json_t *array = json_array();
    for (size_t i = 0; i < info->feature_count && array != NULL; i++) {
        const presto_feature_spec *feature = &info->features[i];
        json_t *entry =
            json_pack("{s:o, s:s, s:o, s:s}", "name", name_json(feature->name), "dtype",
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
            json_pack("{s:o, s:o, s:o, s:o, s:s}", "file", name_json(shard->file), "records",
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
        if (json_array_append_new(array, name_json(info->label_names[i])) != 0) {
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

/* NULL in JSON: the stream is the dataset's own. */
static json_t *stream_json(const presto_dataset_info *info) {
    char counted[20], files[20];
    if (!info->has_stream)
        return json_null();
    snprintf(counted, sizeof counted, "%016" PRIx64, info->stream_counted);
    snprintf(files, sizeof files, "%016" PRIx64, info->stream_files);
    return json_pack("{s:s, s:s}", "counted", counted, "files", files);
}

static json_t *info_json(const presto_dataset_info *info, const char *id, json_t *pipeline) {
    const char *tool = info->tool_version != NULL ? info->tool_version : presto_version();
    const char *codec = info->codec != NULL ? info->codec : "none";
    return json_pack("{s:s, s:i, s:s, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:s, "
                     "s:o, s:o, s:o}",
                     "format", PRESTO__DATASET_FORMAT, "version", PRESTO_DATASET_FORMAT_VERSION,
                     "id", id, "tool_version", name_json(tool), "input", text_or_null(info->input),
                     "stream", stream_json(info), "pipeline", pipeline, "stored",
                     text_or_null(info->stored), "split", text_or_null(info->stored),
                     "main_feature", text_or_null(info->main_feature), "features",
                     features_json(info), "labels", labels_json(info), "codec", name_json(codec),
                     "dictionary", text_or_null(info->dictionary_file), "file_compression",
                     presto_file_compression_name(info->file_compression), "seed",
                     number(info->seed), "totals", totals_json(info), "shards", shards_json(info));
}

/* With its newline. */
static presto_status make_text(const json_t *json, char **text_out, presto_error *err) {
    size_t bytes = json_dumpb(json, NULL, 0, JSON_INDENT(2));
    char *text = bytes == 0 ? NULL : malloc(bytes + 2);
    if (text == NULL || json_dumpb(json, text, bytes, JSON_INDENT(2)) != bytes) {
        free(text);
        return presto_fail_memory(err, bytes);
    }
    text[bytes] = '\n';
    text[bytes + 1] = '\0';
    presto_status status = presto__json_check(presto_span_of(text, bytes), PRESTO__JSON_MAX_BYTES,
                                              PRESTO__JSON_MAX_WEIGHT, err); /* else nobody could
                                                                              * read it */
    if (status < 0)
        free(text);
    else
        *text_out = text;
    return status;
}

presto_status presto__dataset_info_text(presto_dataset_info *info, json_t *share, char **text_out,
                                        presto_error *err) {
    json_error_t where = {0};
    char id[20];
    snprintf(id, sizeof id, "%016" PRIx64, digest(info));
    char *copy = strdup(id);
    const char *text = info->pipeline_json;
    json_t *pipeline = text != NULL ? json_loads(text, 0, &where) : json_null();
    presto_status status = PRESTO_OK;
    if (copy == NULL || (pipeline == NULL && presto__json_ran_out(&where)))
        status = presto_fail_memory(err, sizeof id);
    else if (pipeline == NULL)
        status = presto_fail(err, PRESTO_ERR_ARGUMENT, PRESTO_NO_OFFSET,
                             "the pipeline is not JSON: %s", where.text);
    if (status < 0) {
        json_decref(pipeline);
        free(copy);
        return status;
    }
    json_t *json =
        info_json(info, id, pipeline); /* takes ownership of `pipeline`, also when it fails */
    bool is_whole = json != NULL && (share == NULL || json_object_set(json, "share", share) == 0);
    status = is_whole ? make_text(json, text_out, err) : presto_fail_memory(err, 0);
    json_decref(json);
    if (status < 0) {
        free(copy);
        return status;
    }
    free(info->id);
    info->id = copy;
    return PRESTO_OK;
}

presto_status presto__dataset_text_write(const char *dir, const char *text, bool sync,
                                         presto_error *err) {
    char *path = presto__join_path(dir, PRESTO_DATASET_FILE);
    if (path == NULL)
        return presto_fail_memory(err, strlen(dir));
    bool is_remote = presto__path_is_remote(dir);
    /* A folder has a lock. In a bucket, nobody else may have finished a dataset there. */
    const presto__put_how how = {.condition = is_remote ? PRESTO__PUT_NEW : PRESTO__PUT_ANY,
                                 .sync = sync};
    const presto_span piece = presto_span_of_text(text);
    presto_status status = presto__object_put(path, &piece, 1, &how, err);
    if (status == PRESTO_OK && sync && !is_remote) {
        status = presto__sync_folder_of(path, err);
        if (status < 0)
            unlink(path); /* after a failure no file claims that the dataset is whole */
    }
    free(path);
    return status;
}

presto_status presto__dataset_info_write(const char *dir, presto_dataset_info *info, bool sync,
                                         presto_error *err) {
    char *text = NULL, *path = presto__join_path(dir, PRESTO_DATASET_FILE);
    if (path == NULL)
        return presto_fail_memory(err, strlen(dir));
    presto_status status = presto__dataset_info_text(info, NULL, &text, err);
    if (status < 0)
        presto_error_set_file(err, path);
    else
        status = presto__dataset_text_write(dir, text, sync, err);
    free(text);
    free(path);
    return status;
}
