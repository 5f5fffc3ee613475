/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Index files are hints: nothing is used before its CRC is verified, and wrong content is found out
 * again from the data. They are read in blocks, each with its own CRC, so opening one costs the
 * same for any size. They are not mapped, because a mapped file that becomes shorter kills the
 * process.
 *
 * Whether an index fits a data file follows from the file's content alone: its size, and the bytes
 * at a few places where frames meet. Such a place has the payload CRC of one frame, the length and
 * the length CRC of the next. So a copy of both files fits, whatever its times say.
 */
#include "../records_internal.h"
#include "shard_internal.h"

#include <errno.h>
#include <stdlib.h>

#include <presto/shard.h>

#include "../../base/file_internal.h"
#include "../../base/stop_internal.h"
#include "../../storage/outlet_internal.h"
#include "../frame/frame_internal.h"

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "offsets are read as they stand, which takes a little-endian machine"
#endif

static const uint8_t magic[8] = {'P', 'R', 'E', 'S', 'T', 'O', 'I', 'X'};
#define VERSION 3
#define HEADER_BYTES 48
/* From version 3 on, the places follow the header. */
#define PLACES 4
#define PLACE_BYTES 16  /* are compared at each place */
#define FOOTER_BEFORE 4 /* of them stand before the place where two frames meet */
#define PREFIX_BYTES (HEADER_BYTES + PLACES * 8)
/* A block has 2^13 offsets (64 KiB); in version 1, all of them. */
#define BLOCK_BITS 13
#define ONE_BLOCK_BITS 63
#define CRC_BYTES 4
/* deflate makes at most so many bytes out of one. */
#define DEFLATE_RATIO ((uint64_t)1032)
/* Positions in the header; the words behind AT_DATA_BYTES are a time before version 3. */
enum {
    AT_VERSION = 8,
    AT_KNOWS_CRC = 12,
    AT_COUNT = 16,
    AT_DATA_BYTES = 24,
    AT_MTIME = 32,
    AT_FILE_CRC = 32,
    AT_CONTENT_CRC = 36,
    AT_PLACES_CRC = 40,
    AT_HEADER_CRC = 44
};

char *presto__index_name(const char *data_path) {
    static const char suffix[] = ".index";
    size_t bytes = strlen(data_path);
    char *name = malloc(bytes + sizeof suffix);
    if (name == NULL)
        return NULL;
    memcpy(name, data_path, bytes);
    memcpy(name + bytes, suffix, sizeof suffix);
    return name;
}

/* ---- reading ---- */

static presto_status corrupt(const char *path, const char *what, presto_error *err) {
    presto_status status = presto_fail(err, PRESTO_ERR_CORRUPT, PRESTO_NO_OFFSET, "%s", what);
    presto_error_set_file(err, path);
    return status;
}

/* Some file systems do not store nanoseconds. */
static bool same_time(int64_t a, int64_t b) {
    const int64_t second = 1000000000;
    return a == b || (a / second == b / second && (a % second == 0 || b % second == 0));
}

static uint64_t blocks_of(uint64_t count, unsigned block_bits) {
    return (count >> block_bits) + 1; /* of count + 1 offsets */
}

/* The position and number of a block's offsets. */
static uint64_t block_at(const presto__index *index, uint64_t block, size_t *offsets_out) {
    uint64_t first = block << index->block_bits;
    uint64_t left = index->count + 1 - first;
    bool is_last = block + 1 == index->block_count;
    *offsets_out = (size_t)(is_last ? left : (uint64_t)1 << index->block_bits);
    return first;
}

/* The file cannot have more records: a frame takes 16 bytes. */
static uint64_t most_records(const presto__index_data *data) {
    uint64_t most = data->bytes / PRESTO_FRAME_OVERHEAD_BYTES;
    return data->plain || most > UINT64_MAX / (2 * DEFLATE_RATIO) ? most
                                                                  : (most + 1) * DEFLATE_RATIO;
}

/* ---- does it fit the data? ---- */

/* The CRC of the data's bytes at the places. PRESTO_END: the file has no such places. */
static presto_status sum_places(const presto__index_data *data, const uint8_t places[PLACES * 8],
                                uint32_t *crc_out, presto_error *err) {
    uint32_t crc = 0;
    for (size_t i = 0; i < PLACES; i++) {
        uint8_t bytes[PLACE_BYTES];
        size_t got;
        uint64_t at = presto__load_u64(places + i * 8);
        if (at > data->bytes)
            return PRESTO_END;
        PRESTO_TRY(presto__read_at((presto__object_place){data->object, data->path, at}, bytes,
                                   sizeof bytes, &got, err));
        crc = presto_crc32c(crc, bytes, got);
    }
    *crc_out = crc;
    return PRESTO_OK;
}

/* An index of an earlier version has the time of its file, not its content: do frames of the plain
 * file stand at a few places where it says? */
static presto_status check_frames(const presto__index_data *data, presto__index *index,
                                  presto_error *err) {
    const presto__frame_rules rules = {UINT64_MAX, PRESTO_CHECK_HEADER};
    for (uint64_t i = 0; i < PLACES && index->count > 0; i++) {
        uint8_t header[PRESTO_FRAME_HEADER_BYTES];
        size_t got;
        uint64_t record = (index->count - 1) / (PLACES - 1) * i;
        if (i == PLACES - 1)
            record = index->count - 1;
        for (uint64_t at = record; at <= record + 1; at++) {
            uint64_t block = at >> index->block_bits;
            if (!presto__index_has(index, block))
                PRESTO_TRY(presto__index_load(index, block, err));
        }
        uint64_t start = index->offsets[record], length = 0;
        PRESTO_TRY(presto__read_at((presto__object_place){data->object, data->path, start}, header,
                                   sizeof header, &got, err));
        if (presto__frame_parse_header(presto_span_of(header, got), start, &rules, &length, NULL) !=
                PRESTO_OK ||
            length != index->offsets[record + 1] - start - PRESTO_FRAME_OVERHEAD_BYTES)
            return PRESTO_END;
    }
    return PRESTO_OK;
}

/* Is it a header, a damaged header, or a file of another program? */
static presto_status check_header(const char *path, presto_span header, presto_error *err) {
    uint8_t mended[HEADER_BYTES] = {0};
    size_t there = header.bytes < sizeof magic ? header.bytes : sizeof magic;
    bool starts_well = memcmp(header.data, magic, there) == 0;
    memcpy(mended, header.data, header.bytes);
    memcpy(mended, magic, sizeof magic);
    bool holds = header.bytes == HEADER_BYTES &&
                 presto__crc_matches(presto__load_u32(mended + AT_HEADER_CRC),
                                     presto_crc32c(0, mended, AT_HEADER_CRC));
    if (!starts_well && !holds) {
        presto_status status = presto_fail(err, PRESTO_ERR_UNSUPPORTED, PRESTO_NO_OFFSET,
                                           "not an index that Presto has written");
        presto_error_set_file(err, path);
        return status;
    }
    return starts_well && holds ? PRESTO_OK : corrupt(path, "its header is damaged", err);
}

/* Of version 3 and later: is it for this data? PRESTO_END: no. */
static presto_status check_places(const char *path, const presto__index_data *data,
                                  presto_span prefix, const presto__index *index,
                                  presto_error *err) {
    const uint8_t *header = prefix.data, *places = prefix.data + HEADER_BYTES;
    uint32_t crc = 0;
    if (prefix.bytes < PREFIX_BYTES ||
        !presto__crc_matches(presto__load_u32(header + AT_PLACES_CRC),
                             presto_crc32c(0, places, PREFIX_BYTES - HEADER_BYTES)))
        return corrupt(path, "its header is damaged", err);
    if (data->is_described && index->knows_file_crc && index->file_crc32c == data->crc32c &&
        presto__load_u64(header + AT_COUNT) == data->records)
        return PRESTO_OK;
    presto_status status = sum_places(data, places, &crc, err);
    if (status == PRESTO_OK && crc != presto__load_u32(header + AT_CONTENT_CRC) &&
        presto__path_is_remote(data->path)) /* the network may be it */
        status = sum_places(data, places, &crc, err);
    if (status == PRESTO_END)
        return corrupt(path, "its places lie outside the file", err);
    if (status == PRESTO_ERR_IO)
        return PRESTO_END; /* who reads the data is told */
    if (status == PRESTO_OK && crc != presto__load_u32(header + AT_CONTENT_CRC))
        return PRESTO_END;
    return status;
}

/* Reads the header. PRESTO_END: it is for other data. */
static presto_status parse_header(const char *path, const presto__index_data *data,
                                  presto_span prefix, uint64_t file_bytes, presto__index *index,
                                  presto_error *err) {
    size_t header_bytes = prefix.bytes < HEADER_BYTES ? prefix.bytes : HEADER_BYTES;
    PRESTO_TRY(check_header(path, presto_span_of(prefix.data, header_bytes), err));
    const uint8_t *header = prefix.data;
    uint32_t version = presto__load_u32(header + AT_VERSION);
    if (version < 1 || version > VERSION)
        return PRESTO_END; /* another version of ours: treated as missing */
    uint64_t count = presto__load_u64(header + AT_COUNT);
    if (presto__load_u64(header + AT_DATA_BYTES) != data->bytes)
        return PRESTO_END;
    if (version >= 3) {
        index->knows_file_crc = presto__load_u32(header + AT_KNOWS_CRC) != 0;
        index->file_crc32c = presto__load_u32(header + AT_FILE_CRC);
        presto_status status = check_places(path, data, prefix, index, err);
        if (status != PRESTO_OK)
            return status;
    } else {
        index->is_dated = !same_time((int64_t)presto__load_u64(header + AT_MTIME), data->mtime_ns);
    }
    if (count > most_records(data) || count >= file_bytes / 8)
        return corrupt(path, "it has more records than fit", err);
    index->count = count;
    index->offsets_at = version >= 3 ? PREFIX_BYTES : HEADER_BYTES;
    index->block_bits = version == 1 ? ONE_BLOCK_BITS : BLOCK_BITS;
    index->block_count = blocks_of(count, index->block_bits);
    if (file_bytes != index->offsets_at + (count + 1) * 8 + index->block_count * CRC_BYTES)
        return corrupt(path, "its size does not fit its record count", err);
    index->header_crc = presto_crc32c(0, header, HEADER_BYTES);
    return PRESTO_OK;
}

/* Are these offsets consistent in themselves and, at both ends, with the file? */
static presto_status check_block(const char *path, const presto__index *index, uint64_t first,
                                 size_t count, presto_error *err) {
    const uint64_t *offsets = index->offsets + first;
    for (size_t i = 1; i < count; i++)
        if (offsets[i] < offsets[i - 1] ||
            offsets[i] - offsets[i - 1] < PRESTO_FRAME_OVERHEAD_BYTES)
            return corrupt(path, "its offsets do not rise", err);
    bool is_end = first + count == index->count + 1;
    if ((first == 0 && offsets[0] != 0) ||
        (index->plain && (is_end ? offsets[count - 1] != index->data_bytes
                                 : offsets[count - 1] > index->data_bytes)))
        return corrupt(path, "its offsets do not cover the file", err);
    return PRESTO_OK;
}

static presto_status load_block(presto__object object, const char *path, presto__index *index,
                                uint64_t block, presto_error *err) {
    size_t count, got, got_crc = 0;
    uint64_t first = block_at(index, block, &count);
    uint64_t crc_at = index->offsets_at + (index->count + 1) * 8 + block * CRC_BYTES;
    uint8_t crc[CRC_BYTES];
    uint64_t *offsets = index->offsets + first;
    PRESTO_TRY(presto__read_at((presto__object_place){object, path, index->offsets_at + first * 8},
                               offsets, count * 8, &got, err));
    PRESTO_TRY(presto__read_at((presto__object_place){object, path, crc_at}, crc, sizeof crc,
                               &got_crc, err));
    if (got < count * 8 || got_crc < sizeof crc)
        return corrupt(path, "it has become shorter", err);
    if (!presto__crc_matches(presto__load_u32(crc),
                             presto_crc32c(index->header_crc, offsets, count * 8)))
        return corrupt(path, "a CRC of its offsets differs", err);
    PRESTO_TRY(check_block(path, index, first, count, err));
    atomic_store_explicit(&index->loaded[block], true, memory_order_release);
    return PRESTO_OK;
}

static presto_status open_file(const char *path, presto__object object, uint64_t file_bytes,
                               const presto__index_data *data, presto__index *index,
                               presto_error *err) {
    uint8_t prefix[PREFIX_BYTES];
    size_t got;
    PRESTO_TRY(
        presto__read_at((presto__object_place){object, path, 0}, prefix, sizeof prefix, &got, err));
    presto_status status =
        parse_header(path, data, presto_span_of(prefix, got), file_bytes, index, err);
    if (status != PRESTO_OK)
        return status;
    /* Zeroed memory costs nothing before it is used. */
    index->offsets = calloc((size_t)index->count + 1, sizeof *index->offsets);
    index->loaded = calloc((size_t)index->block_count, sizeof *index->loaded);
    if (index->offsets == NULL || index->loaded == NULL)
        return presto_fail_memory(err, (index->count + 1) * sizeof *index->offsets);
    if (index->count >> BLOCK_BITS == 0)
        PRESTO_TRY(load_block(object, path, index, 0, err));
    if (!index->is_dated || data->any_time)
        return PRESTO_OK;
    return data->plain ? check_frames(data, index, err) : PRESTO_END;
}

static presto_status open_once(const char *path, const presto__index_data *data,
                               presto__index *index_out, presto_error *err) {
    presto__index index = {.data_bytes = data->bytes, .plain = data->plain};
    presto__object_info info;
    presto_error failure;
    presto__object object = {0};
    presto_status status = presto__object_open(path, &object, &info, &failure);
    if (status < 0) {
        if (status == PRESTO_ERR_NOT_FOUND || failure.sys_errno == ENOTDIR)
            status = PRESTO_END;
    } else if ((index.path = strdup(path)) == NULL) {
        status = presto_fail_memory(&failure, strlen(path));
    } else {
        status = open_file(path, object, info.bytes, data, &index, &failure);
    }
    presto__object_close(&object);
    if (status == PRESTO_OK)
        *index_out = index;
    else
        presto__index_done(&index);
    if (status < 0 && err != NULL)
        *err = failure;
    return status;
}

presto_status presto__index_open(const char *path, const presto__index_data *data,
                                 presto__index *index_out, presto_error *err) {
    presto_status status = open_once(path, data, index_out, err);
    if (status == PRESTO_ERR_CORRUPT && presto__path_is_remote(path)) /* the network may be it */
        status = open_once(path, data, index_out, err);
    return status;
}

static presto_status load_once(presto__index *index, uint64_t block, presto_error *err) {
    presto__object_info info;
    presto__object object;
    PRESTO_TRY(presto__object_open(index->path, &object, &info, err));
    presto_status status = load_block(object, index->path, index, block, err);
    presto__object_close(&object);
    return status;
}

presto_status presto__index_load(presto__index *index, uint64_t block, presto_error *err) {
    presto_status status = load_once(index, block, err);
    if (status == PRESTO_ERR_CORRUPT && presto__path_is_remote(index->path))
        status = load_once(index, block, err);
    return status;
}

void presto__index_done(presto__index *index) {
    free(index->offsets);
    free((void *)index->loaded);
    free(index->path);
    *index = (presto__index){0};
}

/* ---- writing ---- */

/* The CRC of each block continues from the header's, so a block fits no other data. */
static void sum_blocks(uint32_t header_crc, const uint64_t *offsets, uint64_t count,
                       uint8_t *crcs) {
    const uint64_t most = (uint64_t)1 << BLOCK_BITS;
    for (uint64_t first = 0; first <= count; first += most) {
        uint64_t offset_count = count + 1 - first < most ? count + 1 - first : most;
        presto__store_u32(crcs, presto_crc32c(header_crc, offsets + first, offset_count * 8));
        crcs += CRC_BYTES;
    }
}

/* Where frames meet in a plain file: at its ends, and evenly between. Of a compressed file, bytes
 * from all over it. */
static void choose_places(const presto__index_contents *contents, uint8_t places[PLACES * 8]) {
    const presto__index_data *data = contents->data;
    for (uint64_t i = 0; i < PLACES; i++) {
        uint64_t last = data->bytes > PLACE_BYTES ? data->bytes - PLACE_BYTES : 0;
        uint64_t at = i == PLACES - 1 ? last : last / (PLACES - 1) * i;
        if (data->plain) {
            uint64_t step = contents->count / (PLACES - 1);
            at = contents->offsets[i == PLACES - 1 ? contents->count : step * i];
            at = at > FOOTER_BEFORE ? at - FOOTER_BEFORE : 0;
        }
        presto__store_u64(places + i * 8, at);
    }
}

presto_status presto__index_write(const char *path, const presto__index_contents *contents,
                                  bool sync, presto_error *err) {
    const uint64_t *offsets = contents->offsets;
    const uint64_t count = contents->count;
    uint8_t prefix[PREFIX_BYTES] = {0}, *header = prefix, *places = prefix + HEADER_BYTES;
    uint32_t content_crc = 0;
    choose_places(contents, places);
    presto_status status = sum_places(contents->data, places, &content_crc, err);
    if (status == PRESTO_END)
        return presto_fail(err, PRESTO_ERR_CORRUPT, PRESTO_NO_OFFSET,
                           "the file has changed while it was indexed");
    PRESTO_TRY(status);
    memcpy(header, magic, sizeof magic);
    presto__store_u32(header + AT_VERSION, VERSION);
    presto__store_u32(header + AT_KNOWS_CRC, contents->knows_file_crc ? 1 : 0);
    presto__store_u64(header + AT_COUNT, count);
    presto__store_u64(header + AT_DATA_BYTES, contents->data->bytes);
    presto__store_u32(header + AT_FILE_CRC, contents->knows_file_crc ? contents->file_crc32c : 0);
    presto__store_u32(header + AT_CONTENT_CRC, content_crc);
    presto__store_u32(header + AT_PLACES_CRC, presto_crc32c(0, places, (size_t)PLACES * 8));
    presto__store_u32(header + AT_HEADER_CRC, presto_crc32c(0, header, AT_HEADER_CRC));
    uint64_t blocks = blocks_of(count, BLOCK_BITS);
    uint8_t *crcs = malloc((size_t)blocks * CRC_BYTES);
    if (crcs == NULL)
        return presto_fail_memory(err, blocks * CRC_BYTES);
    sum_blocks(presto_crc32c(0, header, HEADER_BYTES), offsets, count, crcs);
    const presto_span pieces[] = {presto_span_of(prefix, sizeof prefix),
                                  presto_span_of(offsets, (size_t)(count + 1) * 8),
                                  presto_span_of(crcs, (size_t)blocks * CRC_BYTES)};
    status = presto__object_put(path, pieces, 3, &(presto__put_how){.sync = sync}, err);
    free(crcs);
    return status;
}

/* The CRC of the whole file. */
static presto_status sum_file(const presto__index_data *data, uint32_t *crc_out,
                              presto_error *err) {
    const size_t piece = (size_t)256 << 10;
    uint8_t *bytes = malloc(piece);
    presto_status status = bytes == NULL ? presto_fail_memory(err, piece) : PRESTO_OK;
    uint32_t crc = 0;
    for (uint64_t at = 0; status == PRESTO_OK && at < data->bytes;) {
        size_t got = 0;
        status = presto__stop_check(err);
        if (status == PRESTO_OK)
            status = presto__read_at((presto__object_place){data->object, data->path, at}, bytes,
                                     piece, &got, err);
        if (status == PRESTO_OK && got == 0)
            status = presto_fail(err, PRESTO_ERR_CORRUPT, at,
                                 "the file has changed while it was indexed");
        if (status == PRESTO_OK)
            crc = presto_crc32c(crc, bytes, got);
        at += got;
    }
    free(bytes);
    *crc_out = crc;
    return status;
}

presto_status presto__shard_index_write(const char *data_path, const uint64_t *offsets,
                                        uint64_t count, uint64_t data_bytes, presto_error *err) {
    presto__object_info info;
    presto__object object;
    uint8_t head[512];
    size_t got = 0;
    if (presto__path_is_remote(data_path))
        return presto_fail_errno(err, ENOENT, data_path, "cannot write an index beside");
    PRESTO_TRY(presto__object_open(data_path, &object, &info, err));
    char *path = presto__index_name(data_path);
    presto_status status = path == NULL
                               ? presto_fail_memory(err, strlen(data_path))
                               : presto__read_at((presto__object_place){object, data_path, 0}, head,
                                                 sizeof head, &got, err);
    if (status == PRESTO_OK && info.bytes != data_bytes)
        status = presto_fail(err, PRESTO_ERR_CORRUPT, PRESTO_NO_OFFSET,
                             "the file has changed while it was indexed");
    if (status == PRESTO_OK) {
        const presto__index_data data = {
            .object = object,
            .path = data_path,
            .bytes = data_bytes,
            .plain = presto__detect_compression(presto_span_of(head, got)) == PRESTO_FILE_PLAIN,
        };
        presto__index_contents contents = {
            .data = &data, .offsets = offsets, .count = count, .knows_file_crc = true};
        status = sum_file(&data, &contents.file_crc32c, err);
        if (status == PRESTO_OK)
            status = presto__index_write(path, &contents, true, err);
    }
    presto__object_close(&object);
    free(path);
    return status < 0 ? status : presto__sync_folder_of(data_path, err);
}
