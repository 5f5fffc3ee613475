/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files that other programs wrote (tests/golden/README.md) are verified and read. In damaged ones,
 * the damage is found at the byte that the manifest names, and repaired as far as it says.
 */
#include "../../../base/tensor_internal.h"
#include "../../../records/records_internal.h"
#include "presto_check.h"

#include <jansson.h>
#include <stdio.h>
#include <unistd.h>

#include <presto/codec.h>
#include <presto/example.h>
#include <presto/inspect.h>

static presto_error err;
static json_t *manifest;

static void load_manifest(void) {
    json_error_t where;
    manifest = json_load_file(PRESTO_GOLDEN_DIR "/tfrecord/manifest.json", 0, &where);
    ck_assert_msg(manifest != NULL, "manifest: %s", where.text);
}

static const char *text(const json_t *object, const char *key) {
    const char *value = json_string_value(json_object_get(object, key));
    ck_assert_msg(value != NULL, "no '%s'", key);
    return value;
}

static uint64_t number(const json_t *object, const char *key) {
    const json_t *value = json_object_get(object, key);
    ck_assert_msg(json_is_integer(value), "no '%s'", key);
    return (uint64_t)json_integer_value(value);
}

static void golden_path(const json_t *entry, char *path, size_t bytes) {
    snprintf(path, bytes, PRESTO_GOLDEN_DIR "/tfrecord/%s", text(entry, "file"));
}

static bool starts(const json_t *entry, const char *prefix) {
    return strncmp(text(entry, "file"), prefix, strlen(prefix)) == 0;
}

/* ---- values ---- */

static void check_bytes(presto_span got, const json_t *want, const char *file) {
    const char *hex = json_string_value(json_object_get(want, "hex"));
    if (hex == NULL) {
        ck_assert_msg(got.bytes == number(want, "bytes"), "%s: %zu bytes", file, got.bytes);
        return;
    }
    ck_assert_msg(got.bytes * 2 == strlen(hex), "%s: %zu bytes for %s", file, got.bytes, hex);
    for (size_t i = 0; i < got.bytes; i++) {
        char pair[3];
        snprintf(pair, sizeof pair, "%02x", got.data[i]);
        ck_assert_msg(memcmp(pair, hex + 2 * i, 2) == 0, "%s: other bytes than %s", file, hex);
    }
}

static void check_feature(const presto_feature *got, const json_t *want, const char *file) {
    const json_t *kind_json = json_object_get(want, "kind");
    if (json_is_null(kind_json)) {
        ck_assert_int_eq(got->encoding, PRESTO_ENCODE_NONE);
        return;
    }
    const char *kind = json_string_value(kind_json);
    bool is_float = strcmp(kind, "float_list") == 0;
    const json_t *values = json_object_get(want, is_float ? "float_bits" : "values");
    size_t count = json_array_size(values);
    ck_assert_msg(presto_spec_elements(&got->tensor.spec) == count, "%s: not %zu values", file,
                  count);
    for (size_t i = 0; i < count; i++) {
        const json_t *value = json_array_get(values, i);
        const uint8_t *data = got->tensor.data;
        if (strcmp(kind, "int64_list") == 0) {
            int64_t number_got;
            ck_assert_int_eq(got->encoding, PRESTO_ENCODE_INT64);
            memcpy(&number_got, data + i * 8, 8);
            ck_assert_int_eq(number_got, json_integer_value(value));
        } else if (is_float) {
            uint32_t bits;
            ck_assert_int_eq(got->encoding, PRESTO_ENCODE_FLOAT);
            memcpy(&bits, data + i * 4, 4);
            ck_assert_uint_eq(bits, strtoul(json_string_value(value), NULL, 16));
        } else {
            ck_assert_str_eq(kind, "bytes_list");
            ck_assert_int_eq(got->encoding, PRESTO_ENCODE_BYTES);
            check_bytes(got->tensor.strings[i], value, file);
        }
    }
}

static void check_example(presto_span record, const json_t *want, presto_arena *arena,
                          const char *file) {
    presto_sample sample;
    const char *name;
    json_t *feature;
    ck_assert_ok(presto_example_parse(record, NULL, arena, &sample, &err), &err);
    ck_assert_msg(sample.feature_count == json_object_size(want), "%s: %zu features", file,
                  sample.feature_count);
    json_object_foreach((json_t *)(uintptr_t)want, name, feature) {
        size_t at = presto__sample_find(&sample, presto_span_of_text(name));
        ck_assert_msg(at != SIZE_MAX, "%s: no feature %s", file, name);
        check_feature(&sample.features[at], feature, file);
    }
}

static void check_tensor(presto_span record, const json_t *want, presto_arena *arena,
                         const char *file) {
    presto_sample sample;
    presto_feature_spec spec = {
        (char *)(uintptr_t) "tensor", PRESTO_ENCODE_TENSOR, {PRESTO_DTYPE_UNKNOWN, -1, {0}}};
    ck_assert_ok(presto_example_parse(record, &(presto_example_specs){.list = &spec, .count = 1},
                                      arena, &sample, &err),
                 &err);
    size_t at = presto__sample_find(&sample, presto_span_of_text("tensor"));
    ck_assert_uint_ne(at, SIZE_MAX);
    const presto_tensor *tensor = &sample.features[at].tensor;
    const json_t *shape = json_object_get(want, "shape");
    ck_assert_str_eq(presto_dtype_name(tensor->spec.dtype), text(want, "dtype"));
    ck_assert_uint_eq((size_t)tensor->spec.rank, json_array_size(shape));
    for (int i = 0; i < tensor->spec.rank; i++)
        ck_assert_int_eq(tensor->spec.dims[i],
                         json_integer_value(json_array_get(shape, (size_t)i)));
    const json_t *data = json_object_get(want, "data");
    if (json_is_object(data))
        check_bytes(presto_span_of(tensor->data, presto_tensor_bytes(tensor)), data, file);
    const json_t *strings = json_object_get(want, "values");
    for (size_t i = 0; i < json_array_size(strings); i++)
        check_bytes(tensor->strings[i], json_array_get(strings, i), file);
}

/* ---- files ---- */

static void read_good(const json_t *entry) {
    char path[1024];
    const char *file = text(entry, "file");
    const json_t *records = json_object_get(entry, "records");
    presto_shard *shard;
    presto_codec *codec;
    presto_codec_spec spec;
    presto_arena arena = {0};
    presto_block block = {0};
    golden_path(entry, path, sizeof path);
    ck_assert_ok(presto_shard_open(path, NULL, &shard, &err), &err);
    ck_assert_str_eq(presto_file_compression_name(presto__shard_compression(shard)),
                     text(entry, "file_compression"));
    ck_assert_ok(presto_shard_index(shard, false, NULL, &err), &err);
    size_t count = json_array_size(records);
    ck_assert_msg(presto_shard_records(shard) == count, "%s: not %zu records", file, count);
    ck_assert_ok(presto_shard_fetch(shard, 0, count, &block, &err), &err);
    ck_assert_ok(presto_codec_parse(text(entry, "record_codec"), &spec, &err), &err);
    ck_assert_ok(presto_codec_new(&spec, &codec, &err), &err);
    for (size_t i = 0; i < count; i++) {
        const json_t *want = json_array_get(records, i);
        presto_span record;
        ck_assert_int_eq(block.records[i].status, PRESTO_OK);
        ck_assert_uint_eq(block.records[i].offset, number(want, "offset"));
        ck_assert_uint_eq(block.records[i].payload.bytes, number(want, "bytes"));
        ck_assert_ok(
            presto_codec_decompress(codec, block.records[i].payload,
                                    &(presto_codec_room){&arena, PRESTO_CODEC_MAX_RECORD_BYTES},
                                    &record, &err),
            &err);
        const json_t *example = json_object_get(want, "example");
        if (example != NULL)
            check_example(record, example, &arena, file);
        const json_t *tensor = json_object_get(want, "tensor");
        if (tensor != NULL)
            check_tensor(record, tensor, &arena, file);
    }
    presto_codec_free(codec);
    presto_arena_done(&arena);
    presto_block_done(&block);
    presto_shard_free(shard);
}

START_TEST(good_files_hold_what_the_manifest_says) {
    size_t i;
    json_t *entry;
    load_manifest();
    json_array_foreach(json_object_get(manifest, "files"), i, entry) {
        if (!starts(entry, "good-"))
            continue;
        char path[1024];
        presto_verify_result result = {0};
        golden_path(entry, path, sizeof path);
        read_good(entry);
        ck_assert_ok(presto_verify_paths(&(const char *){path}, 1, NULL, &result, &err), &err);
        ck_assert_msg(result.faults == 0, "%s: %d faults", path, (int)result.faults);
        ck_assert_uint_eq(result.records, json_array_size(json_object_get(entry, "records")));
    }
    json_decref(manifest);
}
END_TEST

static const char *kind_name(presto_fault_kind kind) {
    switch (kind) {
    case PRESTO_FAULT_LENGTH:
        return "length-crc";
    case PRESTO_FAULT_PAYLOAD:
        return "data-crc";
    case PRESTO_FAULT_TRUNCATED:
        return "truncated";
    case PRESTO_FAULT_LIMIT:
        return "length";
    case PRESTO_FAULT_COMPRESSION:
        return "compression";
    case PRESTO_FAULT_CODEC:
        return "codec";
    case PRESTO_FAULT_EXAMPLE:
        return "example";
    case PRESTO_FAULT_FOREIGN:
        return "foreign";
    case PRESTO_FAULT_IO:
    case PRESTO_FAULT_INDEX:
    case PRESTO_FAULT_MANIFEST:
        break;
    }
    return "other";
}

typedef struct seen_faults {
    const json_t *want;
    const char *file;
    size_t count;
    bool matched;
} seen_faults;

static bool see_fault(void *user, const presto_fault *fault) {
    seen_faults *seen = user;
    const char *kind = text(seen->want, "kind");
    if (seen->count++ == 0 || strcmp(kind, "compression") == 0) {
        bool same = strcmp(kind, kind_name(fault->kind)) == 0;
        const json_t *record = json_object_get(seen->want, "record");
        if (record != NULL)
            same = same && fault->record == (uint64_t)json_integer_value(record) &&
                   fault->offset == number(seen->want, "record_offset");
        if (same)
            seen->matched = true;
        else if (strcmp(kind, "compression") != 0)
            ck_abort_msg("%s: %s at record %d, byte %d: %s", seen->file, kind_name(fault->kind),
                         (int)fault->record, (int)fault->offset, fault->message);
    }
    return true;
}

START_TEST(bad_files_are_found_bad_where_the_manifest_says) {
    size_t i;
    json_t *entry;
    load_manifest();
    json_array_foreach(json_object_get(manifest, "files"), i, entry) {
        if (!starts(entry, "bad-"))
            continue;
        char path[1024];
        presto_verify_result result = {0};
        presto_verify_options options;
        seen_faults seen = {.want = json_object_get(entry, "fault"), .file = text(entry, "file")};
        golden_path(entry, path, sizeof path);
        presto_verify_options_defaults(&options);
        options.on_fault = see_fault;
        options.user = &seen;
        ck_assert_ok(presto_verify_paths(&(const char *){path}, 1, &options, &result, &err), &err);
        ck_assert_msg(result.faults > 0, "%s passes", seen.file);
        ck_assert_uint_eq(result.faults, seen.count);
        ck_assert_msg(seen.matched, "%s: no fault of kind %s", seen.file, text(seen.want, "kind"));
    }
    json_decref(manifest);
}
END_TEST

START_TEST(repair_saves_what_the_manifest_says) {
    size_t i;
    json_t *entry;
    char *dir = presto_check_temp_dir();
    load_manifest();
    json_array_foreach(json_object_get(manifest, "files"), i, entry) {
        const json_t *more = json_object_get(entry, "recoverable");
        if (!starts(entry, "bad-") || more == NULL)
            continue;
        char path[1024], out[1024];
        presto_repair_result repaired;
        presto_verify_result result = {0};
        presto_verify_options options;
        presto_verify_options_defaults(&options);
        options.check_examples = false;
        golden_path(entry, path, sizeof path);
        snprintf(out, sizeof out, "%s/%s", dir, text(entry, "file"));
        ck_assert_ok(presto_repair_file(path, out, NULL, &repaired, &err), &err);
        size_t want = json_array_size(json_object_get(entry, "records")) + json_array_size(more);
        ck_assert_msg(repaired.records == want, "%s: %d of %zu records saved", path,
                      (int)repaired.records, want);
        ck_assert_ok(presto_verify_paths(&(const char *){out}, 1, &options, &result, &err), &err);
        ck_assert_uint_eq(result.faults, 0);
        ck_assert_uint_eq(result.records, want);
    }
    json_decref(manifest);
    presto_check_remove_tree(dir);
    free(dir);
}
END_TEST

int main(void) {
    const TTest *const tests[] = {
        good_files_hold_what_the_manifest_says,
        bad_files_are_found_bad_where_the_manifest_says,
        repair_saves_what_the_manifest_says,
    };
    return presto_check_main("golden", tests, sizeof tests / sizeof tests[0], 60);
}
