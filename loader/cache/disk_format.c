/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The bytes of a block: header, entries, table. They may be damaged or forged: each position is
 * checked before it is used. Must not know: files, threads.
 */
#include <presto/crc32c.h>

#include "../../base/bytes_internal.h"
#include "../../base/checked_internal.h"
#include "../../records/frame/frame_internal.h"
#include "disk_internal.h"

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "cache files are read as they stand, which takes a little-endian machine"
#endif

static const uint8_t magic[8] = {'P', 'R', 'E', 'S', 'T', 'O', 'C', 'B'};
#define HEADER_CRC_AT (PRESTO__DISK_HEADER_BYTES - sizeof(uint32_t))

/* The first bytes of a block; the CRC of everything before it stands in the last four. */
typedef struct stored_head {
    uint8_t magic[8];
    uint32_t version;
    uint32_t count;
    uint64_t key[2];
    uint64_t file_bytes;
    uint64_t table_at;
    uint32_t table_crc;
    uint32_t zero[2];
    uint32_t crc;
} stored_head;

_Static_assert(sizeof(stored_head) == PRESTO__DISK_HEADER_BYTES, "as docs/format.md has it");
_Static_assert(sizeof(presto__disk_place) == 16, "as docs/format.md has it");

/* An entry starts so; then, for each feature, a stored_feature and its dims (int64). */
typedef struct stored_entry {
    uint32_t crc; /* of the bytes behind it */
    uint32_t feature_count;
    uint64_t number;
    uint64_t bytes; /* without what fills the last unit */
} stored_entry;

typedef struct stored_feature {
    uint32_t name_bytes;
    uint16_t dtype;
    uint8_t encoding;
    uint8_t rank;
    uint64_t name_at; /* positions count from the start of the entry */
    uint64_t value_at;
    uint64_t value_bytes;
} stored_feature;

_Static_assert(sizeof(stored_entry) == PRESTO__DISK_ENTRY_HEAD_BYTES &&
                   sizeof(stored_feature) == 32,
               "as docs/format.md has it");

static presto_status corrupt(const char *what, presto_error *err) {
    return presto_fail(err, PRESTO_ERR_CORRUPT, PRESTO_NO_OFFSET, "bad cache file: %s", what);
}

/* ---- header and table ---- */

void presto__disk_head_write(const presto__disk_head *head,
                             uint8_t bytes_out[PRESTO__DISK_HEADER_BYTES]) {
    stored_head stored = {.version = PRESTO__DISK_VERSION,
                          .count = head->count,
                          .key = {head->key.words[0], head->key.words[1]},
                          .file_bytes = head->file_bytes,
                          .table_at = head->table_at,
                          .table_crc = head->table_crc};
    memcpy(stored.magic, magic, sizeof magic);
    stored.crc = presto_crc32c(0, &stored, HEADER_CRC_AT);
    memcpy(bytes_out, &stored, sizeof stored);
}

presto_status presto__disk_head_read(presto_span bytes, presto__disk_head *head_out,
                                     presto_error *err) {
    stored_head stored;
    if (bytes.bytes < sizeof stored)
        return corrupt("it ends within its header", err);
    memcpy(&stored, bytes.data, sizeof stored);
    if (memcmp(stored.magic, magic, sizeof magic) != 0 || stored.version != PRESTO__DISK_VERSION)
        return corrupt("none of this version", err);
    if (!presto__crc_matches(stored.crc, presto_crc32c(0, &stored, HEADER_CRC_AT)))
        return corrupt("the CRC of its header differs", err);
    uint64_t table_bytes = (uint64_t)stored.count * sizeof(presto__disk_place);
    if (stored.table_at % PRESTO__DISK_ALIGN != 0 || stored.table_at < sizeof stored ||
        stored.table_at > UINT64_MAX - table_bytes ||
        stored.table_at + table_bytes != stored.file_bytes ||
        stored.table_at / PRESTO__DISK_ALIGN > UINT32_MAX)
        return corrupt("its table does not end with the file", err);
    /* An entry takes at least one unit. */
    if (stored.count > stored.table_at / PRESTO__DISK_ALIGN - 1 ||
        stored.count >
            PRESTO__DISK_MOST_BLOCK_BYTES / (PRESTO__DISK_ALIGN + sizeof(presto__disk_place)))
        return corrupt("its table is too large", err);
    *head_out = (presto__disk_head){.key = {{stored.key[0], stored.key[1]}},
                                    .file_bytes = stored.file_bytes,
                                    .table_at = stored.table_at,
                                    .count = stored.count,
                                    .table_crc = stored.table_crc};
    return PRESTO_OK;
}

presto_status presto__disk_table_check(const presto__disk_head *head,
                                       const presto__disk_place *places, presto_error *err) {
    if (!presto__crc_matches(head->table_crc,
                             presto_crc32c(0, places, (size_t)head->count * sizeof *places)))
        return corrupt("the CRC of its table differs", err);
    uint64_t end = head->table_at / PRESTO__DISK_ALIGN;
    for (uint32_t i = 0; i < head->count; i++)
        if (places[i].at == 0 || places[i].units == 0 || places[i].at > end ||
            places[i].units > end - places[i].at)
            return corrupt("a place lies outside", err);
    return PRESTO_OK;
}

/* ---- entries ---- */

/* Values that batches may show in place are aligned; small ones are copied anyway. */
static size_t value_align(bool is_string, uint64_t bytes) {
    return is_string || bytes <= PRESTO__DISK_ALIGN ? sizeof(uint64_t) : PRESTO__DISK_ALIGN;
}

static bool encoding_goes(presto_encoding encoding, presto_dtype dtype) {
    switch (encoding) {
    case PRESTO_ENCODE_BYTES:
        return dtype == PRESTO_STRING;
    case PRESTO_ENCODE_INT64:
        return dtype == PRESTO_INT64;
    case PRESTO_ENCODE_FLOAT:
        return dtype == PRESTO_FLOAT32;
    case PRESTO_ENCODE_TENSOR:
        return dtype == PRESTO_STRING || presto_dtype_bytes(dtype) > 0;
    case PRESTO_ENCODE_NONE:
        return true;
    default:
        return false;
    }
}

static presto_status string_bytes(const presto_tensor *tensor, size_t *bytes_out,
                                  presto_error *err) {
    size_t count = (size_t)presto_spec_elements(&tensor->spec);
    size_t bytes;
    if (!presto__size_multiply(count, sizeof(uint64_t), &bytes))
        return presto_fail_memory(err, UINT64_MAX);
    for (size_t i = 0; i < count; i++)
        if (!presto__size_add(bytes, tensor->strings[i].bytes, &bytes))
            return presto_fail_memory(err, UINT64_MAX);
    *bytes_out = bytes;
    return PRESTO_OK;
}

/* Bytes of a value as it is stored. */
static presto_status value_bytes(const presto_feature *feature, size_t *bytes_out,
                                 presto_error *err) {
    *bytes_out = 0;
    const presto_tensor *tensor = &feature->tensor;
    if (!encoding_goes(feature->encoding, tensor->spec.dtype))
        return presto_fail(err, PRESTO_ERR_TYPE, PRESTO_NO_OFFSET,
                           "dtype and encoding do not go together");
    if (!presto__feature_has_value(feature))
        return PRESTO_OK;
    if (tensor->spec.rank < 0 || tensor->spec.rank > PRESTO_MAX_RANK)
        return presto_fail(err, PRESTO_ERR_TYPE, PRESTO_NO_OFFSET, "rank is not known");
    if (tensor->spec.dtype == PRESTO_STRING)
        return string_bytes(tensor, bytes_out, err);
    return presto_spec_bytes(&tensor->spec, bytes_out, err);
}

/* Places the next `bytes` bytes of the entry, aligned. If there is memory already, the gap is
 * cleared. */
static size_t place(uint8_t *entry, size_t *at, size_t bytes, size_t align) {
    size_t start = (*at + align - 1) & ~(align - 1);
    if (entry != NULL && start > *at)
        memset(entry + *at, 0, start - *at);
    *at = start + bytes;
    return start;
}

static size_t dims_of(const presto_feature *feature) {
    return presto__feature_has_value(feature) ? (size_t)feature->tensor.spec.rank : 0;
}

static presto_status entry_bytes(const presto_sample *sample, size_t *bytes_out,
                                 presto_error *err) {
    size_t at = sizeof(stored_entry);
    for (size_t i = 0; i < sample->feature_count; i++) {
        const presto_feature *feature = &sample->features[i];
        size_t bytes;
        PRESTO_TRY(value_bytes(feature, &bytes, err));
        if (feature->name.bytes > UINT32_MAX)
            return presto_fail(err, PRESTO_ERR_LIMIT, PRESTO_NO_OFFSET, "a name is too long");
        at += sizeof(stored_feature) + dims_of(feature) * sizeof(int64_t) + feature->name.bytes;
        /* No real sample is this large; below this limit, no sum can overflow. */
        if (bytes > (SIZE_MAX >> 2) || at > (SIZE_MAX >> 2))
            return presto_fail_memory(err, UINT64_MAX);
        at += bytes + PRESTO__DISK_ALIGN;
    }
    *bytes_out = at;
    return PRESTO_OK;
}

static void write_value(uint8_t *to, const presto_feature *feature, size_t bytes) {
    if (feature->tensor.spec.dtype != PRESTO_STRING) {
        if (bytes > 0)
            memcpy(to, feature->tensor.data, bytes);
        return;
    }
    size_t count = (size_t)presto_spec_elements(&feature->tensor.spec);
    uint8_t *text = to + count * sizeof(uint64_t);
    for (size_t i = 0; i < count; i++) {
        presto_span string = feature->tensor.strings[i];
        uint64_t length = string.bytes;
        memcpy(to + i * sizeof length, &length, sizeof length);
        if (string.bytes > 0)
            memcpy(text, string.data, string.bytes);
        text += string.bytes;
    }
}

/* Names and values behind the descriptors; returns where they end. */
static size_t write_features(uint8_t *entry, const presto_sample *sample) {
    size_t head = sizeof(stored_entry);
    size_t at = head;
    for (size_t i = 0; i < sample->feature_count; i++)
        at += sizeof(stored_feature) + dims_of(&sample->features[i]) * sizeof(int64_t);
    for (size_t i = 0; i < sample->feature_count; i++) {
        const presto_feature *feature = &sample->features[i];
        const presto_tensor_spec *spec = &feature->tensor.spec;
        bool has_value = presto__feature_has_value(feature);
        size_t bytes = 0;
        (void)value_bytes(feature, &bytes, NULL); /* it succeeded before */
        stored_feature stored = {.name_bytes = (uint32_t)feature->name.bytes,
                                 .encoding = (uint8_t)feature->encoding,
                                 .dtype = has_value ? (uint16_t)spec->dtype : 0,
                                 .rank = (uint8_t)dims_of(feature),
                                 .value_bytes = bytes};
        stored.name_at = place(entry, &at, feature->name.bytes, 1);
        if (feature->name.bytes > 0)
            memcpy(entry + stored.name_at, feature->name.data, feature->name.bytes);
        stored.value_at =
            place(entry, &at, bytes, value_align(spec->dtype == PRESTO_STRING, bytes));
        if (has_value)
            write_value(entry + stored.value_at, feature, bytes);
        memcpy(entry + head, &stored, sizeof stored);
        head += sizeof stored;
        for (size_t j = 0; j < stored.rank; j++, head += sizeof(int64_t))
            memcpy(entry + head, &spec->dims[j], sizeof(int64_t));
    }
    return at;
}

presto_status presto__disk_entry_append(presto_buffer *out, const presto_sample *sample,
                                        presto_error *err) {
    size_t most = 0;
    PRESTO_TRY(entry_bytes(sample, &most, err));
    if (sample->feature_count > UINT32_MAX || most / PRESTO__DISK_ALIGN >= UINT32_MAX / 2)
        return presto_fail(err, PRESTO_ERR_LIMIT, PRESTO_NO_OFFSET,
                           "a sample of %zu bytes is too large for a cache file", most);
    PRESTO_TRY(presto_buffer_reserve(out, most + PRESTO__DISK_ALIGN, err));
    uint8_t *entry = out->data + out->bytes;
    stored_entry stored = {.feature_count = (uint32_t)sample->feature_count,
                           .number = sample->number};
    size_t at = write_features(entry, sample);
    stored.bytes = at;
    memcpy(entry, &stored, sizeof stored);
    stored.crc = presto_crc32c(0, entry + sizeof stored.crc, at - sizeof stored.crc);
    memcpy(entry, &stored.crc, sizeof stored.crc);
    place(entry, &at, 0, PRESTO__DISK_ALIGN);
    out->bytes += at;
    return PRESTO_OK;
}

static bool is_within(uint64_t at, uint64_t bytes, uint64_t end) {
    return at <= end && bytes <= end - at;
}

/* Reads the strings of a value as spans of `arena`; NULL: only checks them. */
static presto_status read_strings(presto_span value, uint64_t count, presto_arena *arena,
                                  const presto_span **strings_out, presto_error *err) {
    if (count > value.bytes / sizeof(uint64_t))
        return corrupt("strings without their lengths", err);
    presto_span *spans = NULL;
    size_t array_bytes = (size_t)count * sizeof *spans;
    if (arena != NULL) {
        spans = presto_arena_alloc(arena, array_bytes, _Alignof(max_align_t));
        if (spans == NULL)
            return presto_fail_memory(err, array_bytes);
    }
    uint64_t at = count * sizeof(uint64_t);
    for (size_t i = 0; i < count; i++) {
        uint64_t length;
        memcpy(&length, value.data + i * sizeof length, sizeof length);
        if (!is_within(at, length, value.bytes))
            return corrupt("a string lies outside", err);
        if (spans != NULL)
            spans[i] = presto_span_of(value.data + at, (size_t)length);
        at += length;
    }
    if (at != value.bytes)
        return corrupt("strings do not fill their place", err);
    *strings_out = spans;
    return PRESTO_OK;
}

/* Reads the feature whose descriptor is at *at, and moves *at to the next. */
static presto_status read_feature(presto_span entry, uint64_t *at, presto_arena *arena,
                                  presto_feature *feature_out, presto_error *err) {
    stored_feature stored;
    if (!is_within(*at, sizeof stored, entry.bytes))
        return corrupt("an entry ends within its features", err);
    memcpy(&stored, entry.data + *at, sizeof stored);
    *at += sizeof stored;
    presto_feature feature = {.encoding = (presto_encoding)stored.encoding};
    feature.tensor.spec.dtype = (presto_dtype)stored.dtype;
    feature.tensor.spec.rank = stored.rank;
    if (stored.rank > PRESTO_MAX_RANK ||
        !is_within(*at, stored.rank * sizeof(int64_t), entry.bytes) ||
        !is_within(stored.name_at, stored.name_bytes, entry.bytes) ||
        !is_within(stored.value_at, stored.value_bytes, entry.bytes) ||
        !encoding_goes(feature.encoding, feature.tensor.spec.dtype))
        return corrupt("a feature lies outside, or is none", err);
    for (size_t i = 0; i < stored.rank; i++, *at += sizeof(int64_t)) {
        memcpy(&feature.tensor.spec.dims[i], entry.data + *at, sizeof(int64_t));
        if (feature.tensor.spec.dims[i] < 0)
            return corrupt("a negative dimension", err);
    }
    feature.name = presto_span_of(entry.data + stored.name_at, stored.name_bytes);
    presto_span value = presto_span_of(entry.data + stored.value_at, (size_t)stored.value_bytes);
    size_t bytes = 0;
    if (!presto__feature_has_value(&feature)) {
        if (value.bytes > 0)
            return corrupt("a value of a feature without one", err);
    } else if (feature.tensor.spec.dtype == PRESTO_STRING) {
        PRESTO_TRY(read_strings(value, presto_spec_elements(&feature.tensor.spec), arena,
                                &feature.tensor.strings, err));
    } else if (presto_spec_bytes(&feature.tensor.spec, &bytes, NULL) < 0 || bytes != value.bytes) {
        return corrupt("a value does not fit its shape", err);
    } else {
        feature.tensor.data = value.data;
    }
    *feature_out = feature;
    return PRESTO_OK;
}

static bool fills(const stored_entry *stored, uint64_t bytes) {
    return stored->bytes >= sizeof *stored && stored->bytes <= bytes &&
           bytes - stored->bytes < PRESTO__DISK_ALIGN;
}

bool presto__disk_entry_fits(const uint8_t head[PRESTO__DISK_ENTRY_HEAD_BYTES], uint64_t bytes,
                             uint64_t number) {
    stored_entry stored;
    memcpy(&stored, head, sizeof stored);
    return fills(&stored, bytes) && stored.number == number;
}

presto_status presto__disk_entry_read(presto_span entry, uint64_t number, presto_arena *arena,
                                      presto_sample *sample_out, presto_error *err) {
    stored_entry stored;
    if (entry.bytes < sizeof stored)
        return corrupt("an entry is too short", err);
    memcpy(&stored, entry.data, sizeof stored);
    if (!fills(&stored, entry.bytes))
        return corrupt("an entry does not fill its place", err);
    entry.bytes = (size_t)stored.bytes;
    /* The CRC is checked once, when the entry is loaded. */
    if (arena == NULL &&
        !presto__crc_matches(stored.crc, presto_crc32c(0, entry.data + sizeof stored.crc,
                                                       entry.bytes - sizeof stored.crc)))
        return corrupt("the CRC of an entry differs", err);
    if (stored.number != number)
        return corrupt("an entry of another sample", err);
    if (stored.feature_count > entry.bytes / sizeof(stored_feature))
        return corrupt("an entry ends within its features", err);
    presto_feature *features = NULL;
    if (arena != NULL) {
        size_t bytes = stored.feature_count * sizeof *features;
        features = presto_arena_alloc(arena, bytes, _Alignof(max_align_t));
        if (features == NULL)
            return presto_fail_memory(err, bytes);
    }
    uint64_t at = sizeof stored;
    for (uint32_t i = 0; i < stored.feature_count; i++) {
        presto_feature feature;
        PRESTO_TRY(read_feature(entry, &at, arena, &feature, err));
        if (features != NULL)
            features[i] = feature;
    }
    if (arena != NULL)
        *sample_out = (presto_sample){
            .features = features, .feature_count = stored.feature_count, .number = number};
    return PRESTO_OK;
}
