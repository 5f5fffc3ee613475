/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Headers of tar archives.
 *
 * Format: POSIX.1-2008, pax (ustar and pax interchange formats); GNU tar manual, "Basic Tar Format"
 * (base-256 numbers, types L, K and S). A header is a block of 512 bytes; content follows, padded
 * to whole blocks. Two blocks of zeros end the archive. Like GNU tar, this also ends where a header
 * would begin and nothing is there, or less than a block of zeros.
 */
#include "tar_internal.h"

#include <inttypes.h>

#include <presto/numbers.h>

#define BLOCK PRESTO__TAR_BLOCK
#define MOST_NAME_BYTES ((uint64_t)64 << 10)
#define MOST_PAX_BYTES ((uint64_t)1 << 20)
#define MOST_EXTENDED 16 /* headers in front of one member */
#define MOST_ZERO_BYTES ((uint64_t)1 << 20)
#define SEARCH_BYTES ((size_t)64 << 10)

/* Where fields of a header are. */
enum {
    AT_NAME = 0,
    AT_SIZE = 124,
    AT_CHECKSUM = 148,
    AT_TYPE = 156,
    AT_MAGIC = 257,
    AT_PREFIX = 345,
    NAME_BYTES = 100,
    SIZE_BYTES = 12,
    CHECKSUM_BYTES = 8,
    PREFIX_BYTES = 155
};

typedef struct tar_header {
    uint8_t block[BLOCK];
    uint64_t at; /* in the archive */
    uint64_t bytes;
    char type;
} tar_header;

/* What extended headers say of the member behind them; its name is in tar->name. */
typedef struct tar_extension {
    bool has_name, has_size;
    uint64_t bytes;
} tar_extension;

void presto__tar_done(presto__tar *tar) {
    presto_buffer_done(&tar->name);
}

static uint64_t padded(uint64_t bytes) {
    return (bytes + BLOCK - 1) / BLOCK * BLOCK;
}

/* ---- fields ---- */

/* A number in octal digits, which a space or NUL ends, or in base 256, which the highest bit
 * marks. */
static bool take_number(const uint8_t *field, size_t bytes, uint64_t *number_out) {
    uint64_t number = 0;
    size_t i = 0;
    if ((field[0] & 0x80) != 0) {
        number = field[0] & 0x7f; /* the next bit is the sign: such numbers are too large */
        for (i = 1; i < bytes; i++) {
            if (number > (uint64_t)INT64_MAX >> 8)
                return false;
            number = number << 8 | field[i];
        }
        *number_out = number;
        return true;
    }
    while (i < bytes && field[i] == ' ')
        i++;
    size_t first = i;
    for (; i < bytes && field[i] >= '0' && field[i] <= '7'; i++)
        number = number << 3 | (uint64_t)(field[i] - '0'); /* 12 digits fit */
    *number_out = number;
    return i > first && (i == bytes || field[i] == ' ' || field[i] == '\0');
}

/* Old programs summed signed bytes. */
static bool checksum_holds(const uint8_t *block) {
#ifdef FUZZING_BUILD_MODE_UNSAFE_FOR_PRODUCTION
    (void)block;
    return true;
#else
    uint64_t wanted;
    int64_t sum = (int64_t)CHECKSUM_BYTES * ' ', signed_sum = sum;
    for (size_t i = 0; i < BLOCK; i++) {
        if (i == AT_CHECKSUM)
            i += CHECKSUM_BYTES;
        sum += block[i];
        signed_sum += (int8_t)block[i];
    }
    return take_number(block + AT_CHECKSUM, CHECKSUM_BYTES, &wanted) &&
           ((int64_t)wanted == sum || (int64_t)wanted == signed_sum);
#endif
}

static bool is_zero(presto_span bytes) {
    return bytes.bytes == 0 ||
           (bytes.data[0] == 0 && memcmp(bytes.data, bytes.data + 1, bytes.bytes - 1) == 0);
}

static bool is_posix(const uint8_t *block) {
    return memcmp(block + AT_MAGIC, "ustar\0", 6) == 0;
}

static bool has_magic(const uint8_t *block) {
    return memcmp(block + AT_MAGIC, "ustar", 5) == 0;
}

/* The text in a field of a header, which a NUL ends if there is room. */
static presto_span field_text(const uint8_t *field, size_t bytes) {
    const uint8_t *end = memchr(field, 0, bytes);
    return presto_span_of(field, end == NULL ? bytes : (size_t)(end - field));
}

/* ---- headers ---- */

static presto_status set_name(presto__tar *tar, presto_span name, presto_error *err) {
    const uint8_t *end = name.bytes == 0 ? NULL : memchr(name.data, 0, name.bytes);
    tar->name.bytes = 0;
    if (end != NULL)
        name.bytes = (size_t)(end - name.data);
    return presto_buffer_append(&tar->name, name, err);
}

static presto_status read_header(presto__tar *tar, uint64_t at, tar_header *header_out,
                                 presto_error *err) {
    presto_span view;
    PRESTO_TRY(tar->view(tar->user, at, BLOCK, &view, err));
    bool is_end = is_zero(view);
    if (view.bytes < BLOCK && is_end && at > 0) {
        tar->lacks_end = true;
        return PRESTO_END;
    }
    if (view.bytes >= NAME_BYTES && view.bytes < BLOCK && at == tar->next)
        PRESTO_TRY(set_name(tar, presto_span_of(view.data, NAME_BYTES), err));
    if (view.bytes < BLOCK)
        return presto_fail(err, PRESTO_ERR_TRUNCATED, at + view.bytes,
                           "the tar ends %s, without the blocks of zeros that end each tar",
                           view.bytes == 0 ? "before this byte" : "within a header");
    if (is_end)
        return PRESTO_END;
    memcpy(header_out->block, view.data, BLOCK);
    if (!checksum_holds(header_out->block))
        return presto_fail(err, PRESTO_ERR_CORRUPT, at,
                           "%s: the checksum of its header does not hold",
                           at == 0 && !has_magic(header_out->block) ? "no tar" : "damaged tar");
    if (!take_number(header_out->block + AT_SIZE, SIZE_BYTES, &header_out->bytes))
        return presto_fail(err, PRESTO_ERR_CORRUPT, at + AT_SIZE,
                           "damaged tar: no valid size of a member");
    header_out->at = at;
    header_out->type = (char)header_out->block[AT_TYPE];
    return PRESTO_OK;
}

/* ---- extended headers ---- */

static bool is_extended(char type) {
    return type == 'L' || type == 'K' || type == 'x' || type == 'X' || type == 'g';
}

/* One record of a pax header: "30 path=...\n", where 30 counts all of it. */
static bool take_record(presto_span *rest, presto_span *key_out, presto_span *value_out) {
    size_t bytes = 0, digits = 0;
    while (digits < rest->bytes && digits < 8 && rest->data[digits] >= '0' &&
           rest->data[digits] <= '9')
        bytes = bytes * 10 + (size_t)(rest->data[digits++] - '0');
    if (digits == 0 || bytes > rest->bytes || bytes < digits + 3 || rest->data[digits] != ' ' ||
        rest->data[bytes - 1] != '\n')
        return false;
    const uint8_t *key = rest->data + digits + 1;
    size_t left = bytes - digits - 2;
    const uint8_t *equals = memchr(key, '=', left);
    if (equals == NULL)
        return false;
    *key_out = presto_span_of(key, (size_t)(equals - key));
    *value_out = presto_span_of(equals + 1, left - key_out->bytes - 1);
    *rest = presto_span_of(rest->data + bytes, rest->bytes - bytes);
    return true;
}

static bool take_decimal(presto_span text, uint64_t *number_out) {
    uint64_t number = 0;
    for (size_t i = 0; i < text.bytes; i++) {
        if (text.data[i] < '0' || text.data[i] > '9' || number > (uint64_t)INT64_MAX / 10 - 1)
            return false;
        number = number * 10 + (uint64_t)(text.data[i] - '0');
    }
    *number_out = number;
    return text.bytes > 0;
}

static presto_status fail_sparse(uint64_t at, presto_error *err) {
    return presto_fail(err, PRESTO_ERR_UNSUPPORTED, at,
                       "the tar holds a sparse file, which is not read: store it as a plain one");
}

static presto_status take_pax(presto__tar *tar, presto_span records, const tar_header *from,
                              tar_extension *extension_io, presto_error *err) {
    presto_span key, value;
    bool is_global = from->type == 'g';
    while (records.bytes > 0) {
        if (!take_record(&records, &key, &value))
            return presto_fail(err, PRESTO_ERR_CORRUPT, from->at + BLOCK,
                               "damaged tar: an extended header has no valid records");
        bool is_path = presto_span_is(key, "path"), is_size = presto_span_is(key, "size");
        if (key.bytes >= 11 && memcmp(key.data, "GNU.sparse.", 11) == 0)
            return fail_sparse(from->at, err);
        if (is_global && (is_path || is_size))
            return presto_fail(err, PRESTO_ERR_UNSUPPORTED, from->at,
                               "the tar has a global header with one path or size for all members");
        if (is_path) {
            PRESTO_TRY(set_name(tar, value, err));
            extension_io->has_name = true;
        }
        if (is_size && !take_decimal(value, &extension_io->bytes))
            return presto_fail(err, PRESTO_ERR_CORRUPT, from->at + BLOCK,
                               "damaged tar: an extended header has no valid size");
        extension_io->has_size = extension_io->has_size || is_size;
    }
    return PRESTO_OK;
}

static presto_status take_extended(presto__tar *tar, const tar_header *from,
                                   tar_extension *extension_io, presto_error *err) {
    presto_span view;
    bool is_name = from->type == 'L' || from->type == 'K';
    uint64_t most = is_name ? MOST_NAME_BYTES : MOST_PAX_BYTES;
    if (from->bytes > most)
        return presto_fail(err, PRESTO_ERR_LIMIT, from->at,
                           "an extended header of the tar has %" PRIu64 " bytes, at most %" PRIu64
                           " are read",
                           from->bytes, most);
    size_t bytes = (size_t)from->bytes;
    tar->lost_bytes += bytes;
    PRESTO_TRY(tar->view(tar->user, from->at + BLOCK, bytes, &view, err));
    if (view.bytes < bytes)
        return presto_fail(err, PRESTO_ERR_TRUNCATED, from->at + BLOCK + view.bytes,
                           "the tar ends within an extended header");
    if (!is_name)
        return take_pax(tar, view, from, extension_io, err);
    if (from->type == 'K')
        return PRESTO_OK; /* the target of a link */
    extension_io->has_name = true;
    return set_name(tar, view, err);
}

/* ---- members ---- */

/* Links, folders, devices and pipes have no content, whatever their size says. */
static bool has_content(char type) {
    return !(type >= '1' && type <= '6') && type != 'V';
}

/* The name in the header itself. */
static presto_status take_name(presto__tar *tar, const tar_header *from, presto_error *err) {
    presto_span name = field_text(from->block + AT_NAME, NAME_BYTES);
    presto_span prefix = is_posix(from->block) ? field_text(from->block + AT_PREFIX, PREFIX_BYTES)
                                               : (presto_span){0};
    PRESTO_TRY(set_name(tar, prefix, err));
    if (prefix.bytes > 0)
        PRESTO_TRY(presto_buffer_append(&tar->name, presto_span_of("/", 1), err));
    return presto_buffer_append(&tar->name, name, err);
}

/* Is the content there up to its last byte? */
static presto_status check_content(presto__tar *tar, const presto__tar_member *member,
                                   presto_error *err) {
    presto_span view = {0};
    if (member->bytes == 0)
        return PRESTO_OK;
    if (member->bytes < (uint64_t)INT64_MAX - member->data)
        PRESTO_TRY(tar->view(tar->user, member->data + member->bytes - 1, 1, &view, err));
    if (view.bytes == 1)
        return PRESTO_OK;
    return presto_fail(err, PRESTO_ERR_TRUNCATED, member->data,
                       "the tar ends within the member '%.*s' of %" PRIu64 " byte%s",
                       (int)(member->name.bytes < 200 ? member->name.bytes : 200),
                       (const char *)member->name.data, member->bytes,
                       presto_plural(member->bytes));
}

static presto_status take_member(presto__tar *tar, const tar_header *from,
                                 const tar_extension *extension, presto__tar_member *member_out,
                                 presto_error *err) {
    if (from->type == 'S')
        return fail_sparse(from->at, err);
    if (from->type == 'M')
        return presto_fail(err, PRESTO_ERR_UNSUPPORTED, from->at,
                           "the tar starts within a file of another volume, which is not read");
    if (!extension->has_name)
        PRESTO_TRY(take_name(tar, from, err));
    presto__tar_member member = {.start = tar->next,
                                 .data = from->at + BLOCK,
                                 .bytes = extension->has_size ? extension->bytes : from->bytes,
                                 .name = presto_buffer_span(&tar->name)};
    /* A name that ends with '/' is a folder in the oldest format. */
    bool is_folder = member.name.bytes > 0 && member.name.data[member.name.bytes - 1] == '/';
    member.is_file = (from->type == '0' || from->type == '\0' || from->type == '7') && !is_folder;
    if (!has_content(from->type))
        member.bytes = 0;
    PRESTO_TRY(check_content(tar, &member, err));
    tar->next = member.data + padded(member.bytes);
    *member_out = member;
    return PRESTO_OK;
}

static presto_status next_member(presto__tar *tar, presto__tar_member *member_out,
                                 presto_error *err) {
    tar_extension extension = {0};
    tar_header header;
    uint64_t at = tar->next;
    tar->name.bytes = 0;
    for (unsigned i = 0; i <= MOST_EXTENDED; i++) {
        presto_status status = read_header(tar, at, &header, err);
        if (status == PRESTO_END && i > 0)
            return presto_fail(err, tar->lacks_end ? PRESTO_ERR_TRUNCATED : PRESTO_ERR_CORRUPT, at,
                               "damaged tar: no member behind an extended header");
        if (status != PRESTO_OK)
            return status;
        if (!is_extended(header.type))
            return take_member(tar, &header, &extension, member_out, err);
        PRESTO_TRY(take_extended(tar, &header, &extension, err));
        at += BLOCK + padded(header.bytes);
    }
    return presto_fail(err, PRESTO_ERR_CORRUPT, tar->next,
                       "damaged tar: more than %d extended headers in front of one member",
                       MOST_EXTENDED);
}

presto_status presto__tar_next(presto__tar *tar, presto__tar_member *member_out,
                               presto_error *err) {
    uint64_t lost = tar->lost_bytes;
    presto_status status = next_member(tar, member_out, err);
    if (status == PRESTO_OK)
        tar->lost_bytes = lost;
    return status;
}

/* ---- going on ---- */

presto_status presto__tar_resume(presto__tar *tar, presto_error *err) {
    presto_span view;
    size_t wanted = BLOCK; /* the next header may be the next block, again and again */
    for (uint64_t at = tar->next + BLOCK;; at += view.bytes) {
        if (tar->skip != NULL) /* headers stand at whole blocks */
            at += (tar->skip(tar->user, at) - at) / BLOCK * BLOCK;
        PRESTO_TRY(tar->view(tar->user, at, wanted, &view, err));
        wanted = wanted < SEARCH_BYTES ? 2 * wanted : SEARCH_BYTES;
        view.bytes = view.bytes / BLOCK * BLOCK;
        if (view.bytes == 0)
            return PRESTO_END;
        for (size_t i = 0; i < view.bytes; i += BLOCK)
            if (has_magic(view.data + i) && checksum_holds(view.data + i)) {
                tar->next = at + i;
                return PRESTO_OK;
            }
    }
}

presto_status presto__tar_pass_zeros(presto__tar *tar, presto_error *err) {
    presto_span view;
    uint64_t end = tar->next + MOST_ZERO_BYTES;
    for (uint64_t at = tar->next; at < end; at += view.bytes) {
        PRESTO_TRY(tar->view(tar->user, at, SEARCH_BYTES, &view, err));
        view.bytes = view.bytes / BLOCK * BLOCK;
        if (view.bytes == 0)
            return PRESTO_END;
        for (size_t i = 0; i < view.bytes; i += BLOCK)
            if (!is_zero(presto_span_of(view.data + i, BLOCK))) {
                tar->next = at + i;
                return PRESTO_OK;
            }
    }
    return PRESTO_END;
}

/* ---- names ---- */

static bool is_meta(presto_span name) {
    return name.bytes >= 4 && memcmp(name.data, "__", 2) == 0 &&
           memcmp(name.data + name.bytes - 2, "__", 2) == 0;
}

bool presto__tar_split(presto_span name, presto_span *key_out, presto_span *extension_out) {
    size_t base = name.bytes;
    while (base > 0 && name.data[base - 1] != '/')
        base--;
    const uint8_t *dot =
        base == name.bytes ? NULL : memchr(name.data + base, '.', name.bytes - base);
    if (dot == NULL || dot == name.data + base || is_meta(name))
        return false;
    *key_out = presto_span_of(name.data, (size_t)(dot - name.data));
    *extension_out = presto_span_of(dot + 1, name.bytes - key_out->bytes - 1);
    return true;
}
