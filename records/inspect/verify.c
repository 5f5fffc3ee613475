/* SPDX-License-Identifier: Apache-2.0 */
/* Verification: every CRC, every codec frame, every Example, the index and dataset.json. Damage
 * never ends it. */
#include <presto/inspect.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <presto/crc32c.h>
#include <presto/example.h>
#include <presto/numbers.h>

#include "../../base/file_internal.h"
#include "../../base/options_internal.h"
#include "../../base/paths_internal.h"
#include "../../base/stop_internal.h"
#include "../../storage/fan_out_internal.h"
#include "../../storage/storage_internal.h"
#include "../dataset/dataset_internal.h"
#include "../shard/shard_internal.h"
#include "inspect_internal.h"

/* The codec is guessed from this many first records. */
#define GUESS_RECORDS 16

const char *presto_fault_name(presto_fault_kind kind) {
    switch (kind) {
#define PRESTO_FAULT_TEXT(name, value, text)                                                       \
    case name:                                                                                     \
        return text;
        PRESTO_FAULT_LIST(PRESTO_FAULT_TEXT)
#undef PRESTO_FAULT_TEXT
    }
    return "?";
}

void presto_verify_options_init(presto_verify_options *options, size_t struct_bytes) {
    const presto_verify_options defaults = {.max_payload_bytes = PRESTO_FRAME_MAX_PAYLOAD_BYTES,
                                            .max_record_bytes = PRESTO_CODEC_MAX_RECORD_BYTES,
                                            .check_examples = true,
                                            .check_index = true};
    presto__options_give(options, struct_bytes, &defaults, sizeof defaults);
}

/* What dataset.json says of the features, and what its records showed. */
typedef struct declared_set {
    const presto_dataset_info *info;
    bool *seen;        /* of each feature: a record has it */
    bool *told;        /* of each feature: a record contradicts it; told once */
    bool told_unknown; /* a record has a feature that is not declared */
    bool told_label;   /* a label has no name */
} declared_set;

/* One file under examination. */
typedef struct verifier {
    const char *path;
    const presto_verify_options *options;
    presto_verify_result *result;
    presto_codec *codec;
    presto_arena arena;
    presto__record_kind kind; /* of the first record that is not empty */
    presto_buffer offsets;    /* of the whole records, to compare the index with */
    declared_set *declared;   /* of a dataset of ours; NULL: nothing is declared */
    uint64_t records;
    uint64_t faults;
} verifier;

static presto_status report(verifier *v, presto_fault fault, presto_error *err) {
    PRESTO_TRY(presto__stop_check(err)); /* what was not read for it is no fault */
    fault.file = v->path;
    v->faults++;
    v->result->faults++;
    v->result->faults_of[fault.kind]++;
    v->result->lost_bytes += fault.lost_bytes;
    if (v->options->on_fault != NULL && !v->options->on_fault(v->options->user, &fault))
        return presto_fail(err, PRESTO_ERR_STOPPED, PRESTO_NO_OFFSET, "verification was stopped");
    return PRESTO_OK;
}

static presto_status report_file(verifier *v, presto_fault_kind kind, const char *message,
                                 presto_error *err) {
    return report(v,
                  (presto_fault){.record = PRESTO_NO_RECORD,
                                 .offset = PRESTO_NO_OFFSET,
                                 .kind = kind,
                                 .message = message},
                  err);
}

/* ---- records ---- */

/* Does the value fit what is declared? NULL: yes; else what it is. */
static const char *contradiction(const presto_feature *value, const presto_feature_spec *says,
                                 char text[PRESTO_SPEC_TEXT_BYTES]) {
    const presto_tensor_spec *is = &value->tensor.spec;
    bool may_lack = says->spec.rank < 0 || says->encoding == PRESTO_ENCODE_NONE;
    bool fits = value->encoding == says->encoding &&
                (says->spec.dtype == PRESTO_DTYPE_UNKNOWN || is->dtype == says->spec.dtype) &&
                (says->spec.rank < 0 || is->rank == says->spec.rank);
    for (int i = 0; i < says->spec.rank; i++) {
        may_lack = may_lack || says->spec.dims[i] < 0;
        fits = fits && (says->spec.dims[i] < 0 || is->dims[i] == says->spec.dims[i]);
    }
    if (value->encoding == PRESTO_ENCODE_NONE)
        return may_lack ? NULL : "has no value";
    if (fits)
        return NULL;
    size_t used = (size_t)snprintf(text, PRESTO_SPEC_TEXT_BYTES, "is stored as %s, ",
                                   presto_encoding_name(value->encoding));
    presto_spec_format(is, text + used, PRESTO_SPEC_TEXT_BYTES - used);
    return text;
}

/* The place of the feature among the declared ones; mostly they have one order. */
static size_t find_declared(const presto_dataset_info *info, presto_span name, size_t hint) {
    for (size_t i = 0; i < info->feature_count; i++) {
        size_t at = (hint + i) % info->feature_count;
        if (presto_span_is(name, info->features[at].name))
            return at;
    }
    return SIZE_MAX;
}

/* Labels are numbers of names. Sets *label_out to the first that is none. */
static bool has_odd_label(const presto_dataset_info *info, const presto_feature *value,
                          int64_t *label_out) {
    if (info->label_count == 0 || value->encoding != PRESTO_ENCODE_INT64 ||
        !presto_span_is(value->name, "label"))
        return false;
    uint64_t count = presto_spec_elements(&value->tensor.spec);
    for (uint64_t i = 0; i < count; i++) {
        memcpy(label_out, (const uint8_t *)value->tensor.data + i * 8, sizeof *label_out);
        if (*label_out < 0 || (uint64_t)*label_out >= info->label_count)
            return true;
    }
    return false;
}

/* Fails with the first contradiction of the record that no record before it had. */
static presto_status check_declared(declared_set *declared, const presto_sample *sample,
                                    presto_error *fault) {
    const presto_dataset_info *info = declared->info;
    size_t hint = 0;
    for (size_t i = 0; i < sample->feature_count; i++) {
        const presto_feature *value = &sample->features[i];
        char is[PRESTO_SPEC_TEXT_BYTES], says[PRESTO_SPEC_TEXT_BYTES];
        int shown = value->name.bytes < 100 ? (int)value->name.bytes : 100;
        int64_t label = 0;
        size_t at = find_declared(info, value->name, hint);
        if (at == SIZE_MAX && !declared->told_unknown) {
            declared->told_unknown = true;
            return presto_fail(fault, PRESTO_ERR_TYPE, PRESTO_NO_OFFSET,
                               "feature \"%.*s\", which dataset.json does not have", shown,
                               (const char *)value->name.data);
        }
        if (at == SIZE_MAX)
            continue;
        hint = at + 1;
        declared->seen[at] = true;
        const char *what = contradiction(value, &info->features[at], is);
        if (what != NULL && !declared->told[at]) {
            declared->told[at] = true;
            return presto_fail(fault, PRESTO_ERR_TYPE, PRESTO_NO_OFFSET,
                               "feature \"%.*s\" %.120s, but dataset.json says %s, %s", shown,
                               (const char *)value->name.data, what,
                               presto_encoding_name(info->features[at].encoding),
                               presto_spec_format(&info->features[at].spec, says, sizeof says));
        }
        if (!declared->told_label && has_odd_label(info, value, &label)) {
            declared->told_label = true;
            return presto_fail(fault, PRESTO_ERR_TYPE, PRESTO_NO_OFFSET,
                               "label %jd, but dataset.json names the labels 0 to %zu",
                               (intmax_t)label, info->label_count - 1);
        }
    }
    return PRESTO_OK;
}

static presto_status check_content(verifier *v, presto_span record, presto_error *fault) {
    presto_sample sample;
    if (v->kind == PRESTO__KIND_EMPTY)
        v->kind = v->options->feature_count > 0 ? PRESTO__KIND_EXAMPLE
                                                : presto__record_kind_of(record, &v->arena);
    switch (v->kind) {
    case PRESTO__KIND_EXAMPLE:
    case PRESTO__KIND_SEQUENCE:
        PRESTO_TRY(presto_example_parse(record,
                                        &(presto_example_specs){.list = v->options->features,
                                                                .count = v->options->feature_count},
                                        &v->arena, &sample, fault));
        return v->declared == NULL ? PRESTO_OK : check_declared(v->declared, &sample, fault);
    case PRESTO__KIND_EMPTY:
    case PRESTO__KIND_BYTES:
        break;
    }
    return PRESTO_OK;
}

static presto_status check_record(verifier *v, const presto__scan_item *item, presto_error *err) {
    presto_error fault;
    presto_span record;
    presto_fault_kind kind = PRESTO_FAULT_CODEC;
    presto_arena_reset(&v->arena);
    presto_status status = presto_codec_decompress(
        v->codec, item->payload, &(presto_codec_room){&v->arena, v->options->max_record_bytes},
        &record, &fault);
    if (status == PRESTO_OK) {
        kind = PRESTO_FAULT_EXAMPLE;
        status = check_content(v, record, &fault);
    }
    if (status == PRESTO_ERR_LIMIT)
        kind = PRESTO_FAULT_LIMIT;
    if (status == PRESTO_ERR_TYPE)
        kind = PRESTO_FAULT_MANIFEST;
    if (status == PRESTO_OK)
        return PRESTO_OK;
    if (status == PRESTO_ERR_MEMORY) {
        if (err != NULL)
            *err = fault;
        return status;
    }
    return report(
        v,
        (presto_fault){
            .record = item->record, .offset = item->offset, .kind = kind, .message = fault.message},
        err);
}

static presto_status take_item(verifier *v, const presto__scan_item *item, presto_error *err) {
    if (!item->whole)
        return report(v,
                      (presto_fault){.record = item->record,
                                     .offset = item->offset,
                                     .lost_bytes = item->bytes,
                                     .kind = item->kind,
                                     .message = item->message},
                      err);
    v->records++;
    v->result->records++;
    v->result->payload_bytes += item->payload.bytes;
    if (v->options->check_index)
        PRESTO_TRY(presto_buffer_append(&v->offsets,
                                        presto_span_of(&item->offset, sizeof item->offset), err));
    return v->options->check_examples ? check_record(v, item, err) : PRESTO_OK;
}

/* Look at the first records to choose the codec. */
static presto_status guess_codec(verifier *v, presto_codec_spec *spec_out, presto_error *err) {
    presto__scan *scan = NULL;
    presto_buffer bytes = {0};
    size_t ends[GUESS_RECORDS], count = 0, tries = 0;
    presto_status status = presto__scan_new(v->path, v->options->max_payload_bytes, &scan, err);
    if (status == PRESTO_OK)
        presto__scan_ask(scan, v->options->should_stop, v->options->should_stop_user);
    while (status == PRESTO_OK && count < GUESS_RECORDS && bytes.bytes < PRESTO__GUESS_BYTES &&
           tries++ < (size_t)4 * GUESS_RECORDS) {
        presto__scan_item item;
        status = presto__scan_next(scan, &item, err);
        if (status == PRESTO_OK && item.whole) {
            status = presto_buffer_append(&bytes, item.payload, err);
            ends[count++] = bytes.bytes;
        }
    }
    if (status == PRESTO_END)
        status = PRESTO_OK;
    presto_span payloads[GUESS_RECORDS];
    for (size_t i = 0, start = 0; i < count && status == PRESTO_OK; start = ends[i++])
        payloads[i] = presto_span_of(bytes.data + start, ends[i] - start);
    if (status == PRESTO_OK)
        status = presto__guess_codec(payloads, count, &v->arena, spec_out, err);
    presto_buffer_done(&bytes);
    presto__scan_free(scan);
    return status;
}

static presto_status prepare_codec(verifier *v, presto_error *err) {
    presto_codec_spec spec;
    if (!v->options->check_examples)
        return PRESTO_OK;
    if (v->options->codec != NULL)
        spec = *v->options->codec;
    else
        PRESTO_TRY(guess_codec(v, &spec, err));
    return presto_codec_new(&spec, &v->codec, err);
}

/* ---- the index ---- */

/* The whole index, or PRESTO_ERR_CORRUPT or PRESTO_END as presto__index_open. */
static presto_status read_index(const char *path, const presto__index_data *data,
                                presto__index *index, presto_error *err) {
    presto_status status = presto__index_open(path, data, index, err);
    for (uint64_t i = 0; status == PRESTO_OK && i < index->block_count; i++)
        if (!presto__index_has(index, i))
            status = presto__index_load(index, i, err);
    return status;
}

static bool same_offsets(const verifier *v, const presto__index *index) {
    const uint64_t *found = (const uint64_t *)(const void *)v->offsets.data;
    if (index->count != v->records)
        return false;
    for (uint64_t i = 0; i < index->count; i++)
        if (index->offsets[i] != found[i])
            return false;
    return true;
}

/* Is there an index, which may be read? PRESTO_ERR_IO: that cannot be said, or it may not. */
static presto_status find_index(const char *name, bool *is_there_out, presto_error *err) {
    presto__object_info info;
    if (!presto__path_is_remote(name)) {
        *is_there_out = access(name, F_OK) == 0;
        return *is_there_out && access(name, R_OK) != 0
                   ? presto_fail_errno(err, errno, NULL, "its index cannot be opened")
                   : PRESTO_OK;
    }
    presto_status status = presto__object_find(name, &info, err);
    *is_there_out = status == PRESTO_OK && info.type == PRESTO__OBJECT_FILE;
    return status == PRESTO_ERR_NOT_FOUND ? PRESTO_OK : status;
}

static presto_status check_index(verifier *v, presto_error *err) {
    presto__object_info info;
    presto__index index = {0};
    presto_error fault;
    presto__object object;
    char *name = presto__index_name(v->path);
    if (name == NULL)
        return presto_fail_memory(err, strlen(v->path));
    bool is_there;
    presto_status found = find_index(name, &is_there, &fault);
    if (found < 0) {
        free(name);
        if (found != PRESTO_ERR_IO) {
            if (err != NULL)
                *err = fault;
            return found;
        }
        return report_file(v, PRESTO_FAULT_IO, fault.message, err);
    }
    if (!is_there || presto__object_open(v->path, &object, &info, NULL) != PRESTO_OK) {
        free(name);
        return PRESTO_OK;
    }
    /* All offsets are compared below, so an index without the file's content may have any time. */
    const presto__index_data data = {
        .object = object, .path = v->path, .bytes = info.bytes, .any_time = true};
    presto_status status = read_index(name, &data, &index, &fault);
    presto__object_close(&object);
    free(name);
    const char *message = NULL;
    if (status == PRESTO_END)
        message = "it is of another file, or the file has changed since";
    else if (status == PRESTO_ERR_CORRUPT || status == PRESTO_ERR_UNSUPPORTED ||
             status == PRESTO_ERR_IO)
        message = fault.message;
    else if (status == PRESTO_OK && v->faults == 0 && !same_offsets(v, &index))
        message = "its offsets are not those of the records";
    presto__index_done(&index);
    if (message != NULL)
        return report_file(v, PRESTO_FAULT_INDEX, message, err);
    if (status < 0 && err != NULL)
        *err = fault;
    return status;
}

/* ---- one file ---- */

static presto_status check_items(verifier *v, presto__scan *scan, presto_error *err) {
    presto_status status;
    presto__scan_item item;
    v->result->bytes += presto__scan_file_bytes(scan);
    PRESTO_TRY(prepare_codec(v, err));
    while ((status = presto__scan_next(scan, &item, err)) == PRESTO_OK)
        PRESTO_TRY(take_item(v, &item, err));
    return status;
}

static presto_status verify_records(verifier *v, presto_error *err) {
    presto__scan *scan;
    PRESTO_TRY(presto__scan_new(v->path, v->options->max_payload_bytes, &scan, err));
    presto__scan_ask(scan, v->options->should_stop, v->options->should_stop_user);
    presto_status status = check_items(v, scan, err);
    presto__scan_free(scan);
    PRESTO_TRY(status);
    return v->options->check_index ? check_index(v, err) : PRESTO_OK;
}

static presto_status verify_file(const char *path, const presto_verify_options *options,
                                 declared_set *declared, presto_verify_result *result,
                                 presto_error *err) {
    verifier v = {.path = path, .options = options, .result = result, .declared = declared};
    presto_error fault;
    result->files++;
    presto_status status = verify_records(&v, &fault);
    if (status == PRESTO_ERR_IO || status == PRESTO_ERR_NOT_FOUND)
        status = report_file(&v, PRESTO_FAULT_IO, fault.message, &fault);
    else if (status == PRESTO_ERR_FOREIGN)
        status = report_file(&v, PRESTO_FAULT_FOREIGN, fault.message, &fault);
    presto_codec_free(v.codec);
    presto_arena_done(&v.arena);
    presto_buffer_done(&v.offsets);
    if (status < 0 && err != NULL)
        *err = fault;
    return status < 0 ? status : PRESTO_OK;
}

static presto_status take_options(const presto_verify_options *options,
                                  presto_verify_options *taken_out,
                                  const presto_verify_result *result, presto_error *err) {
    presto_verify_options_defaults(taken_out);
    PRESTO_TRY(presto__options_take(taken_out, sizeof *taken_out, options, err));
    return presto__result_check(result, err);
}

/* ---- datasets ---- */

static presto_status file_crc(const char *path, const presto_verify_options *options,
                              uint32_t *crc_out, presto_error *err) {
    const size_t piece = (size_t)256 << 10;
    presto__object object;
    presto__object_info info;
    if (presto__object_open(path, &object, &info, NULL) < 0)
        return PRESTO_END; /* already reported */
    uint8_t *bytes = malloc(piece);
    presto_status status = bytes != NULL ? PRESTO_OK : presto_fail_memory(err, piece);
    uint32_t crc = 0;
    for (uint64_t offset = 0; status == PRESTO_OK;) {
        size_t got;
        if (options->should_stop != NULL && options->should_stop(options->should_stop_user)) {
            status = presto_fail(err, PRESTO_ERR_STOPPED, PRESTO_NO_OFFSET, "stopped");
            break;
        }
        status =
            presto__read_at((presto__object_place){object, path, offset}, bytes, piece, &got, err);
        if (status < 0)
            status = PRESTO_END;
        else if (got == 0)
            break;
        else
            crc = presto_crc32c(crc, bytes, got);
        offset += got;
    }
    free(bytes);
    presto__object_close(&object);
    if (status == PRESTO_OK)
        *crc_out = crc;
    return status;
}

/* Is the file the one that dataset.json describes? It has `records` whole records. */
static presto_status check_manifest(verifier *v, const presto_dataset_shard *says, uint64_t records,
                                    presto_error *err) {
    char message[160];
    presto__object_info info;
    uint32_t crc;
    if (presto__object_find(v->path, &info, NULL) < 0)
        return PRESTO_OK; /* already reported */
    if (info.bytes != says->stored_bytes || records != says->records) {
        snprintf(message, sizeof message,
                 "%ju whole record%s in %ju byte%s, but dataset.json says %ju in %ju",
                 (uintmax_t)records, presto_plural(records), (uintmax_t)info.bytes,
                 presto_plural(info.bytes), (uintmax_t)says->records,
                 (uintmax_t)says->stored_bytes);
        return report_file(v, PRESTO_FAULT_MANIFEST, message, err);
    }
    presto_status status = file_crc(v->path, v->options, &crc, err);
    if (status != PRESTO_OK)
        return status < 0 ? status : PRESTO_OK;
    if (crc == says->crc32c)
        return PRESTO_OK;
    snprintf(message, sizeof message, "CRC of the file is %08x, but dataset.json says %08x", crc,
             says->crc32c);
    return report_file(v, PRESTO_FAULT_MANIFEST, message, err);
}

/* What a server says of a shard. */
typedef enum said {
    SAID_OTHERWISE, /* than dataset.json, or nothing because of a failure */
    SAID_NOTHING,   /* of its CRC */
    SAID_SO,
} said;

/* Shards that a server is asked about. */
typedef struct server_check {
    const presto_dataset *dataset;
    said *said; /* [shards] */
} server_check;

/* What is not said so is read, which finds out more. */
static presto_status ask_server(void *user, size_t i, presto_error *err) {
    const server_check *check = user;
    const presto_dataset_shard *says = &presto_dataset_get_info(check->dataset)->shards[i];
    presto__object_checksum checksum = {0};
    presto_error why;
    presto_status status =
        presto__object_checksum_of(presto_dataset_shard_path(check->dataset, i), &checksum, &why);
    if (status == PRESTO_ERR_STOPPED || status == PRESTO_ERR_MEMORY) {
        if (err != NULL)
            *err = why;
        return status;
    }
    bool is_so = checksum.bytes == says->stored_bytes && checksum.crc32c == says->crc32c;
    check->said[i] = status < 0           ? SAID_OTHERWISE
                     : !checksum.is_known ? SAID_NOTHING
                     : is_so              ? SAID_SO
                                          : SAID_OTHERWISE;
    return PRESTO_OK;
}

static presto_status verify_shards(const presto_dataset *dataset,
                                   const presto_verify_options *options, declared_set *declared,
                                   presto_verify_result *result, presto_error *err) {
    const presto_dataset_info *info = presto_dataset_get_info(dataset);
    server_check check = {dataset, NULL};
    presto_status status = PRESTO_OK;
    if (options->asks_server && info->shard_count > 0 &&
        presto__path_is_remote(presto_dataset_shard_path(dataset, 0))) {
        check.said = calloc(info->shard_count, sizeof *check.said);
        status = check.said == NULL ? presto_fail_memory(err, info->shard_count)
                                    : presto__fan_out(info->shard_count, ask_server, &check, err);
    }
    for (size_t i = 0; i < info->shard_count && status >= 0; i++) {
        const char *path = presto_dataset_shard_path(dataset, i);
        uint64_t before = result->records, unreadable = result->faults_of[PRESTO_FAULT_IO];
        result->silent_files += check.said != NULL && check.said[i] == SAID_NOTHING;
        if (check.said != NULL && check.said[i] == SAID_SO) {
            result->files++;
            result->said_files++;
            result->records += info->shards[i].records;
            result->bytes += info->shards[i].stored_bytes;
            continue;
        }
        status = verify_file(path, options, declared, result, err);
        verifier v = {.path = path, .options = options, .result = result};
        if (status >= 0 && result->faults_of[PRESTO_FAULT_IO] == unreadable)
            status = check_manifest(&v, &info->shards[i], result->records - before, err);
    }
    free(check.said);
    return status;
}

/* Features that no record has. Damaged records may have had them. */
static presto_status check_lacking(const declared_set *declared, const char *dir,
                                   const presto_verify_options *options,
                                   presto_verify_result *result, presto_error *err) {
    char message[PRESTO_ERROR_MESSAGE_BYTES];
    char *path = presto__join_path(dir, PRESTO_DATASET_FILE);
    verifier v = {.path = path, .options = options, .result = result};
    presto_status status = path != NULL ? PRESTO_OK : presto_fail_memory(err, strlen(dir));
    for (size_t i = 0; status == PRESTO_OK && i < declared->info->feature_count; i++) {
        const presto_feature_spec *feature = &declared->info->features[i];
        if (declared->seen[i] || feature->encoding == PRESTO_ENCODE_NONE)
            continue;
        snprintf(message, sizeof message,
                 "it says that there is a feature \"%.100s\", which no record has", feature->name);
        status = report_file(&v, PRESTO_FAULT_MANIFEST, message, err);
    }
    free(path);
    return status;
}

/* `dir`: its folder; NULL: only some of its shards are given. */
static presto_status verify_ours(const presto_dataset *dataset, const char *dir,
                                 const presto_verify_options *given, presto_verify_result *result,
                                 presto_error *err) {
    const presto_dataset_info *info = presto_dataset_get_info(dataset);
    presto_verify_options options = *given;
    if (options.codec == NULL)
        options.codec = presto_dataset_codec(dataset);
    declared_set declared = {.info = info};
    bool compares = options.features == NULL && info->feature_count > 0 && options.check_examples;
    if (options.features == NULL) {
        options.features = info->features;
        options.feature_count = info->feature_count;
    }
    if (!compares)
        return verify_shards(dataset, &options, NULL, result, err);
    uint64_t faults = result->faults, records = result->records;
    declared.seen = calloc(info->feature_count, sizeof *declared.seen);
    declared.told = calloc(info->feature_count, sizeof *declared.told);
    presto_status status = declared.seen != NULL && declared.told != NULL
                               ? verify_shards(dataset, &options, &declared, result, err)
                               : presto_fail_memory(err, info->feature_count);
    bool is_all = dir != NULL && result->faults == faults && result->records > records &&
                  result->said_files == 0;
    if (status == PRESTO_OK && is_all)
        status = check_lacking(&declared, dir, &options, result, err);
    free(declared.seen);
    free(declared.told);
    return status;
}

static presto_status verify_paths(const char *const *paths, size_t path_count,
                                  const presto_verify_options *options,
                                  presto_verify_result *result, presto_error *err) {
    presto_dataset *dataset = NULL;
    presto_status status = presto__dataset_open_ours(paths, path_count, &dataset, err);
    if (status == PRESTO_OK) {
        bool is_folder = false;
        if (path_count == 1)
            status = presto__dataset_look_for_folder(paths[0], &is_folder, err);
        if (status == PRESTO_OK)
            status = verify_ours(dataset, is_folder ? paths[0] : NULL, options, result, err);
        presto_dataset_free(dataset);
        return status;
    }
    if (status < 0)
        return status;
    presto__listing listing = {.should_stop = options->should_stop,
                               .should_stop_user = options->should_stop_user};
    listing.takes_splits = true; /* nothing is mixed up by looking at all of them */
    status = presto__listing_of(paths, path_count, &listing, err);
    for (size_t i = 0; i < listing.count && status == PRESTO_OK; i++)
        status = verify_file(listing.paths[i], options, NULL, result, err);
    presto__listing_done(&listing);
    return status;
}

presto_status presto_verify_paths_sized(const char *const *paths, size_t path_count,
                                        const presto_verify_options *options,
                                        presto_verify_result *result, presto_error *err) {
    presto_verify_options taken;
    presto_verify_result sum;
    PRESTO_TRY(take_options(options, &taken, result, err));
    presto__result_copy(&sum, sizeof sum, result);
    presto__paths expanded;
    presto__stop_hook pass;
    presto__stop_scope before =
        presto__stop_enter(&pass, taken.should_stop, taken.should_stop_user);
    presto_status status = presto__paths_expand(paths, path_count, &expanded, err);
    if (status >= 0)
        status =
            verify_paths((const char *const *)expanded.items, expanded.count, &taken, &sum, err);
    presto__paths_done(&expanded);
    status = presto__stop_leave(&pass, before, status, err);
    presto__result_give(result, &sum, sizeof sum);
    return status;
}
