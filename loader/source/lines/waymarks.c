/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where some of the records of a text stand: one in about 8 KiB, so that what is kept is a small share
 * of the text, and a record is found by looking at few bytes behind the mark before it.
 *
 * Index files are hints, as those of TFRecord files (docs/format.md): nothing is used before its CRC is
 * verified, and whether one fits follows from the data's size and its bytes at a few places.
 */
#include "source_lines_internal.h"

#include <errno.h>
#include <stdlib.h>

#include "../../../base/bytes_internal.h"
#include "../../../records/frame/frame_internal.h"
#include "../../../storage/outlet_internal.h"

static const uint8_t magic[8] = {'P', 'R', 'E', 'S', 'T', 'O', 'L', 'X'};
#define VERSION 1
#define HEADER_BYTES 80
#define PLACES ((size_t)4)
#define PLACE_BYTES 16 /* are compared at each place */
#define BLOCKS_AT (HEADER_BYTES + PLACES * 8)
#define BLOCK_BYTES 16 /* of what is said of a block */
#define MARK_BYTES sizeof(presto__waymark)
enum {
    AT_VERSION = 8,
    AT_FORM = 12,
    AT_SEPARATOR = 16,
    AT_DATA_BYTES = 24,
    AT_TEXT_BYTES = 32,
    AT_RECORDS = 40,
    AT_NAMES_BYTES = 48,
    AT_MARKS = 56,
    AT_CONTENT_CRC = 64,
    AT_REST_CRC = 68, /* of the places, and of what is said of the blocks */
    AT_HEADER_CRC = 76
};

_Static_assert(sizeof(presto__waymark) == 24, "marks are stored as they stand in memory");

void presto__waymarks_done(presto__waymarks *marks) {
    for (size_t i = 0; i < marks->block_count; i++)
        free(marks->blocks[i]);
    free(marks->blocks);
    free(marks->first_record);
    free(marks->crcs);
    free(marks->path);
    *marks = (presto__waymarks){0};
}

static size_t blocks_of(size_t count) {
    return count / PRESTO__WAYMARK_BLOCK + (count % PRESTO__WAYMARK_BLOCK > 0);
}

static size_t marks_in(const presto__waymarks *marks, size_t block) {
    size_t before = block * PRESTO__WAYMARK_BLOCK;
    return marks->count - before < PRESTO__WAYMARK_BLOCK ? marks->count - before
                                                         : PRESTO__WAYMARK_BLOCK;
}

/* ---- in memory ---- */

static presto_status add_block(presto__waymarks *marks, presto_error *err) {
    if (marks->block_count == marks->block_capacity) {
        size_t capacity = marks->block_capacity * 2 + 4;
        presto__waymark **blocks = realloc(marks->blocks, capacity * sizeof *blocks);
        if (blocks == NULL)
            return presto_fail_memory(err, capacity * sizeof *blocks);
        marks->blocks = blocks;
        uint64_t *first = realloc(marks->first_record, capacity * sizeof *first);
        if (first == NULL)
            return presto_fail_memory(err, capacity * sizeof *first);
        marks->first_record = first;
        marks->block_capacity = capacity;
    }
    presto__waymark *block = malloc(PRESTO__WAYMARK_BLOCK * sizeof *block);
    if (block == NULL)
        return presto_fail_memory(err, PRESTO__WAYMARK_BLOCK * sizeof *block);
    marks->blocks[marks->block_count++] = block;
    return PRESTO_OK;
}

presto_status presto__waymarks_add(presto__waymarks *marks, const presto__waymark *mark,
                                   presto_error *err) {
    size_t block = marks->count / PRESTO__WAYMARK_BLOCK, i = marks->count % PRESTO__WAYMARK_BLOCK;
    if (marks->count > 0) {
        size_t last = marks->count - 1;
        const presto__waymark *before =
            &marks->blocks[last / PRESTO__WAYMARK_BLOCK][last % PRESTO__WAYMARK_BLOCK];
        if (mark->offset - before->offset < PRESTO__WAYMARK_EVERY_BYTES)
            return PRESTO_OK;
    }
    if (block == marks->block_count)
        PRESTO_TRY(add_block(marks, err));
    if (i == 0)
        marks->first_record[block] = mark->record;
    marks->blocks[block][i] = *mark;
    marks->count++;
    return PRESTO_OK;
}

/* ---- an index file ---- */

/* The bytes of one: of a file, or in memory. */
typedef struct index_bytes {
    presto__object object;
    const char *path;
    const presto_span *all; /* NULL: of the object */
    uint64_t count;
} index_bytes;

static presto_status corrupt(const char *path, const char *what, presto_error *err) {
    presto_status status = presto_fail(err, PRESTO_ERR_CORRUPT, PRESTO_NO_OFFSET, "%s", what);
    presto_error_set_file(err, path);
    return status;
}

static presto_status read_index(const index_bytes *from, uint64_t at, void *to, size_t count,
                                presto_error *err) {
    size_t got = 0;
    if (from->all == NULL) {
        PRESTO_TRY(presto__read_at((presto__object_place){from->object, from->path, at}, to, count,
                                   &got, err));
    } else if (at <= from->all->bytes) {
        got = from->all->bytes - (size_t)at < count ? from->all->bytes - (size_t)at : count;
        if (got > 0)
            memcpy(to, from->all->data + at, got);
    }
    return got == count ? PRESTO_OK : corrupt(from->path, "it has become shorter", err);
}

/* Is a block consistent in itself, and with the next one? */
static presto_status check_block(const presto__waymarks *marks, const char *path, size_t block,
                                 const presto__waymark *items, presto_error *err) {
    size_t count = marks_in(marks, block);
    bool holds = items[0].record == marks->first_record[block];
    for (size_t i = 0; i < count && holds; i++)
        holds =
            i == 0 || (items[i].offset > items[i - 1].offset &&
                       items[i].record > items[i - 1].record && items[i].line >= items[i - 1].line);
    if (holds && block + 1 < marks->block_count)
        holds = items[count - 1].record < marks->first_record[block + 1];
    return holds ? PRESTO_OK : corrupt(path, "its marks do not rise", err);
}

static presto_status read_block(const index_bytes *from, presto__waymarks *marks, size_t block,
                                presto_error *err) {
    size_t bytes = marks_in(marks, block) * MARK_BYTES;
    presto__waymark *items = malloc(bytes);
    if (items == NULL)
        return presto_fail_memory(err, bytes);
    uint64_t at = marks->marks_at + (uint64_t)block * PRESTO__WAYMARK_BLOCK * MARK_BYTES;
    presto_status status = read_index(from, at, items, bytes, err);
    if (status == PRESTO_OK &&
        !presto__crc_matches(marks->crcs[block], presto_crc32c(marks->header_crc, items, bytes)))
        status = corrupt(from->path, "a CRC of its marks differs", err);
    if (status == PRESTO_OK)
        status = check_block(marks, from->path, block, items, err);
    if (status < 0) {
        free(items);
        return status;
    }
    marks->blocks[block] = items;
    return PRESTO_OK;
}

static presto_status have_block(presto__waymarks *marks, size_t block, presto_error *err) {
    presto__object_info info;
    index_bytes from = {.path = marks->path};
    if (marks->blocks[block] != NULL)
        return PRESTO_OK;
    PRESTO_TRY(presto__object_open(marks->path, &from.object, &info, err));
    presto_status status = read_block(&from, marks, block, err);
    presto__object_close(&from.object);
    return status;
}

/* Which mark is the last one at or before the record: its block is read. */
static presto_status find_mark(presto__waymarks *marks, uint64_t record, size_t *block_out,
                               size_t *i_out, presto_error *err) {
    size_t block = presto__part_of(marks->first_record, sizeof *marks->first_record,
                                   marks->block_count, record);
    PRESTO_TRY(have_block(marks, block, err));
    *block_out = block;
    *i_out = presto__part_of(&marks->blocks[block][0].record, MARK_BYTES, marks_in(marks, block),
                             record);
    return PRESTO_OK;
}

presto_status presto__waymarks_find(presto__waymarks *marks, uint64_t record, uint64_t beyond,
                                    presto__waymark_pair *pair_out, presto_error *err) {
    size_t block, i;
    presto__waymark_pair pair = {.behind = {.offset = UINT64_MAX, .record = UINT64_MAX}};
    PRESTO_TRY(find_mark(marks, record, &block, &i, err));
    pair.before = marks->blocks[block][i];
    PRESTO_TRY(find_mark(marks, beyond, &block, &i, err));
    i++;
    if (i == marks_in(marks, block)) {
        block++;
        i = 0;
    }
    if (block < marks->block_count) {
        PRESTO_TRY(have_block(marks, block, err));
        pair.behind = marks->blocks[block][i];
    }
    *pair_out = pair;
    return PRESTO_OK;
}

/* ---- does it fit the data? ---- */

static presto_status sum_places(const presto__waymarks_data *data, uint64_t data_bytes,
                                const uint8_t *places, uint32_t *crc_out, presto_error *err) {
    uint32_t crc = 0;
    for (size_t i = 0; i < PLACES; i++) {
        uint8_t bytes[PLACE_BYTES];
        size_t got;
        uint64_t at = presto__load_u64(places + i * 8);
        if (at > data_bytes)
            return PRESTO_END;
        PRESTO_TRY(presto__read_at((presto__object_place){data->object, data->path, at}, bytes,
                                   sizeof bytes, &got, err));
        crc = presto_crc32c(crc, bytes, got);
    }
    *crc_out = crc;
    return PRESTO_OK;
}

/* Where records meet in a plain text, and at both ends; of a packed one, bytes from all over it. */
static void choose_places(const presto__waymarks_data *data, const presto__waymarks_facts *facts,
                          const presto__waymarks *marks, uint8_t places[PLACES * 8]) {
    uint64_t last = facts->data_bytes > PLACE_BYTES ? facts->data_bytes - PLACE_BYTES : 0;
    for (size_t i = 0; i < PLACES; i++) {
        uint64_t at = i == PLACES - 1 ? last : last / (PLACES - 1) * i;
        if (data->is_plain && i > 0 && i < PLACES - 1 && marks->count > 0) {
            size_t mark = marks->count / (PLACES - 1) * i;
            at = marks->blocks[mark / PRESTO__WAYMARK_BLOCK][mark % PRESTO__WAYMARK_BLOCK].offset;
            at = at > PLACE_BYTES / 2 ? at - PLACE_BYTES / 2 : 0;
        }
        presto__store_u64(places + i * 8, at);
    }
}

/* ---- reading the header ---- */

static presto_status check_header(const char *path, const uint8_t header[HEADER_BYTES],
                                  presto_error *err) {
    uint8_t mended[HEADER_BYTES];
    bool starts_well = memcmp(header, magic, sizeof magic) == 0;
    memcpy(mended, header, sizeof mended);
    memcpy(mended, magic, sizeof magic);
    bool holds = presto__crc_matches(presto__load_u32(mended + AT_HEADER_CRC),
                                     presto_crc32c(0, mended, AT_HEADER_CRC));
    if (!starts_well && !holds) {
        presto_status status = presto_fail(err, PRESTO_ERR_UNSUPPORTED, PRESTO_NO_OFFSET,
                                           "not an index of lines that Presto has written");
        presto_error_set_file(err, path);
        return status;
    }
    return starts_well && holds ? PRESTO_OK : corrupt(path, "its header is damaged", err);
}

/* What is said of the blocks, behind the places. */
static presto_status take_blocks(const index_bytes *from, const uint8_t *header,
                                 const uint8_t *rest, presto__waymarks *marks, presto_error *err) {
    size_t count = marks->block_count;
    if (!presto__crc_matches(presto__load_u32(header + AT_REST_CRC),
                             presto_crc32c(0, rest, PLACES * 8 + count * BLOCK_BYTES)))
        return corrupt(from->path, "its header is damaged", err);
    const uint8_t *at = rest + PLACES * 8;
    for (size_t i = 0; i < count; i++, at += BLOCK_BYTES) {
        marks->first_record[i] = presto__load_u64(at);
        marks->crcs[i] = presto__load_u32(at + 8);
        if (i == 0 ? marks->first_record[0] != 0
                   : marks->first_record[i] <= marks->first_record[i - 1])
            return corrupt(from->path, "its blocks do not rise", err);
    }
    return PRESTO_OK;
}

static presto_status reserve_blocks(presto__waymarks *marks, presto_error *err) {
    size_t count = marks->block_count;
    marks->blocks = calloc(count + 1, sizeof *marks->blocks);
    marks->first_record = calloc(count + 1, sizeof *marks->first_record);
    marks->crcs = calloc(count + 1, sizeof *marks->crcs);
    marks->block_capacity = count + 1;
    if (marks->blocks != NULL && marks->first_record != NULL && marks->crcs != NULL)
        return PRESTO_OK;
    marks->block_count = 0;
    return presto_fail_memory(err, (count + 1) * sizeof *marks->blocks);
}

/* PRESTO_END: it is of something else. */
static presto_status parse(const index_bytes *from, const presto__waymarks_data *data,
                           presto__waymarks_facts *facts, presto__waymarks *marks,
                           presto_error *err) {
    uint8_t header[HEADER_BYTES];
    PRESTO_TRY(read_index(from, 0, header, sizeof header, err));
    PRESTO_TRY(check_header(from->path, header, err));
    if (presto__load_u32(header + AT_VERSION) != VERSION ||
        presto__load_u32(header + AT_FORM) != (uint32_t)facts->rules.form ||
        presto__load_u32(header + AT_SEPARATOR) != facts->rules.separator ||
        presto__load_u64(header + AT_DATA_BYTES) != facts->data_bytes ||
        presto__load_u64(header + AT_NAMES_BYTES) != facts->header_bytes)
        return PRESTO_END;
    facts->text_bytes = presto__load_u64(header + AT_TEXT_BYTES);
    facts->records = presto__load_u64(header + AT_RECORDS);
    uint64_t count = presto__load_u64(header + AT_MARKS);
    if (data != NULL && data->is_plain && facts->text_bytes != facts->data_bytes)
        return corrupt(from->path, "a plain text has the size of its file", err);
    if (count > from->count / MARK_BYTES || count > facts->records ||
        (count == 0) != (facts->records == 0) || facts->records > facts->text_bytes + 1)
        return corrupt(from->path, "it has more marks or records than fit", err);
    marks->count = (size_t)count;
    marks->block_count = blocks_of(marks->count);
    marks->marks_at = BLOCKS_AT + marks->block_count * BLOCK_BYTES;
    marks->header_crc = presto_crc32c(0, header, AT_REST_CRC);
    if (from->count != marks->marks_at + count * MARK_BYTES) {
        marks->block_count = 0;
        return corrupt(from->path, "its size does not fit its marks", err);
    }
    size_t rest_bytes = PLACES * 8 + marks->block_count * BLOCK_BYTES;
    uint8_t *rest = malloc(rest_bytes);
    presto_status status = reserve_blocks(marks, err);
    uint32_t crc = 0;
    if (status == PRESTO_OK && rest == NULL)
        status = presto_fail_memory(err, rest_bytes);
    if (status == PRESTO_OK)
        status = read_index(from, HEADER_BYTES, rest, rest_bytes, err);
    if (status == PRESTO_OK)
        status = take_blocks(from, header, rest, marks, err);
    if (status == PRESTO_OK && data != NULL) {
        status = sum_places(data, facts->data_bytes, rest, &crc, err);
        if (status == PRESTO_OK && crc != presto__load_u32(header + AT_CONTENT_CRC))
            status = PRESTO_END;
    }
    free(rest);
    return status;
}

static presto_status finish_parse(presto_status status, const char *path, presto__waymarks *marks,
                                  presto__waymarks *marks_out, presto_error *err) {
    if (status == PRESTO_OK && path != NULL) {
        marks->path = strdup(path);
        if (marks->path == NULL)
            status = presto_fail_memory(err, strlen(path));
    }
    if (status == PRESTO_OK)
        *marks_out = *marks;
    else
        presto__waymarks_done(marks);
    return status;
}

/* Lines say nothing of themselves: a change that leaves the size as it was shows in the time alone, as for
 * make. Of what is stored elsewhere, the clock is another one. */
static bool is_older(const presto__object_info *index, const presto__waymarks_data *data) {
    presto__object_info info;
    return !presto__path_is_remote(data->path) &&
           presto__object_look(data->object, data->path, &info, NULL) == PRESTO_OK &&
           index->mtime_ns < info.mtime_ns;
}

presto_status presto__waymarks_open(const char *path, const presto__waymarks_data *data,
                                    presto__waymarks_facts *facts_io, presto__waymarks *marks_out,
                                    presto_error *err) {
    presto__waymarks marks = {0};
    presto__object_info info;
    presto_error why;
    index_bytes from = {.path = path};
    presto_status status = presto__object_open(path, &from.object, &info, &why);
    if (status < 0) {
        if (status == PRESTO_ERR_NOT_FOUND || why.sys_errno == ENOTDIR)
            return PRESTO_END;
        if (err != NULL)
            *err = why;
        return status;
    }
    from.count = info.bytes;
    status = is_older(&info, data) ? PRESTO_END : parse(&from, data, facts_io, &marks, err);
    presto__object_close(&from.object);
    return finish_parse(status, path, &marks, marks_out, err);
}

presto_status presto__waymarks_parse(presto_span bytes, presto__waymarks_facts *facts_io,
                                     presto__waymarks *marks_out, presto_error *err) {
    presto__waymarks marks = {0};
    const index_bytes from = {.path = "index", .all = &bytes, .count = bytes.bytes};
    presto_status status = parse(&from, NULL, facts_io, &marks, err);
    for (size_t i = 0; status == PRESTO_OK && i < marks.block_count; i++)
        status = read_block(&from, &marks, i, err);
    return finish_parse(status, NULL, &marks, marks_out, err);
}

bool presto__waymarks_is_index(const char *path) {
    uint8_t head[sizeof magic];
    size_t got = 0;
    presto__object object;
    presto__object_info info;
    if (presto__object_open(path, &object, &info, NULL) < 0)
        return false;
    (void)presto__read_at((presto__object_place){object, path, 0}, head, sizeof head, &got, NULL);
    presto__object_close(&object);
    return got == sizeof head && memcmp(head, magic, sizeof magic) == 0;
}

/* ---- writing ---- */

static void fill_header(const presto__waymarks_facts *facts, const presto__waymarks *marks,
                        uint8_t header[HEADER_BYTES]) {
    memcpy(header, magic, sizeof magic);
    presto__store_u32(header + AT_VERSION, VERSION);
    presto__store_u32(header + AT_FORM, (uint32_t)facts->rules.form);
    presto__store_u32(header + AT_SEPARATOR, facts->rules.separator);
    presto__store_u64(header + AT_DATA_BYTES, facts->data_bytes);
    presto__store_u64(header + AT_TEXT_BYTES, facts->text_bytes);
    presto__store_u64(header + AT_RECORDS, facts->records);
    presto__store_u64(header + AT_NAMES_BYTES, facts->header_bytes);
    presto__store_u64(header + AT_MARKS, marks->count);
}

static presto_status write_all(const char *path, uint8_t *prefix, size_t prefix_bytes,
                               const presto__waymarks *marks, presto_error *err) {
    presto_span *pieces = malloc((marks->block_count + 1) * sizeof *pieces);
    if (pieces == NULL)
        return presto_fail_memory(err, (marks->block_count + 1) * sizeof *pieces);
    pieces[0] = presto_span_of(prefix, prefix_bytes);
    for (size_t i = 0; i < marks->block_count; i++)
        pieces[i + 1] = presto_span_of(marks->blocks[i], marks_in(marks, i) * MARK_BYTES);
    presto_status status = presto__object_put(path, pieces, marks->block_count + 1,
                                              &(presto__put_how){.sync = false}, err);
    free(pieces);
    return status;
}

presto_status presto__waymarks_write(const char *path, const presto__waymarks_data *data,
                                     const presto__waymarks_facts *facts,
                                     const presto__waymarks *marks, presto_error *err) {
    size_t bytes = BLOCKS_AT + marks->block_count * BLOCK_BYTES;
    uint8_t *prefix = calloc(1, bytes);
    uint32_t content_crc = 0;
    if (prefix == NULL)
        return presto_fail_memory(err, bytes);
    fill_header(facts, marks, prefix);
    choose_places(data, facts, marks, prefix + HEADER_BYTES);
    presto_status status =
        sum_places(data, facts->data_bytes, prefix + HEADER_BYTES, &content_crc, err);
    if (status == PRESTO_OK) {
        presto__store_u32(prefix + AT_CONTENT_CRC, content_crc);
        /* A block fits no other data: its CRC continues from that of the header before AT_REST_CRC. */
        uint32_t seed = presto_crc32c(0, prefix, AT_REST_CRC);
        for (size_t i = 0; i < marks->block_count; i++) {
            uint8_t *at = prefix + BLOCKS_AT + i * BLOCK_BYTES;
            presto__store_u64(at, marks->first_record[i]);
            presto__store_u32(
                at + 8, presto_crc32c(seed, marks->blocks[i], marks_in(marks, i) * MARK_BYTES));
        }
        presto__store_u32(prefix + AT_REST_CRC,
                          presto_crc32c(0, prefix + HEADER_BYTES, bytes - HEADER_BYTES));
        presto__store_u32(prefix + AT_HEADER_CRC, presto_crc32c(0, prefix, AT_HEADER_CRC));
        status = write_all(path, prefix, bytes, marks, err);
    }
    free(prefix);
    return status;
}
