/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The header of a .npy file: magic, version, length, and the literal of a Python dict:
 *
 *     {'descr': '<f4', 'fortran_order': False, 'shape': (50001, 768), }
 *
 * Keys may stand in any order; each must be there once.
 */
#include "table_internal.h"

#include "../../base/bytes_internal.h"

enum { KEY_DESCR = 1, KEY_ORDER = 2, KEY_SHAPE = 4, ALL_KEYS = 7 };
enum { MOST_DIMS = 8 };

typedef struct reader {
    const uint8_t *start;
    const uint8_t *at;
    const uint8_t *end;
} reader;

static presto_status fail_header(const reader *r, presto_error *err) {
    return presto_fail(err, PRESTO_ERR_CORRUPT, (uint64_t)(r->at - r->start),
                       "not the header of a .npy file");
}

static void skip_blanks(reader *r) {
    while (r->at < r->end && (*r->at == ' ' || *r->at == '\n' || *r->at == '\t'))
        r->at++;
}

/* The next character that is no blank, if it is `wanted`. */
static bool take(reader *r, char wanted) {
    skip_blanks(r);
    if (r->at == r->end || *r->at != (uint8_t)wanted)
        return false;
    r->at++;
    return true;
}

static bool take_word(reader *r, const char *word) {
    size_t bytes = strlen(word);
    skip_blanks(r);
    if ((size_t)(r->end - r->at) < bytes || memcmp(r->at, word, bytes) != 0)
        return false;
    r->at += bytes;
    return true;
}

static bool take_text(reader *r, presto_span *text_out) {
    skip_blanks(r);
    if (r->at == r->end || (*r->at != '\'' && *r->at != '"'))
        return false;
    uint8_t quote = *r->at++;
    const uint8_t *close = memchr(r->at, quote, (size_t)(r->end - r->at));
    if (close == NULL)
        return false;
    *text_out = presto_span_of(r->at, (size_t)(close - r->at));
    r->at = close + 1;
    return true;
}

static bool take_number(reader *r, int64_t *value_out) {
    int64_t value = 0;
    skip_blanks(r);
    const uint8_t *first = r->at;
    for (; r->at < r->end && *r->at >= '0' && *r->at <= '9'; r->at++) {
        if (value > (INT64_MAX - 9) / 10)
            return false;
        value = value * 10 + (*r->at - '0');
    }
    *value_out = value;
    return r->at > first;
}

static presto_status take_dtype(reader *r, presto_error *err) {
    presto_span descr;
    if (take(r, '['))
        return presto_fail(err, PRESTO_ERR_TYPE, PRESTO_NO_OFFSET,
                           "an array of records; a table has the type '<f4'");
    if (!take_text(r, &descr))
        return fail_header(r, err);
    if (!presto_span_is(descr, "<f4"))
        return presto_fail(err, PRESTO_ERR_TYPE, PRESTO_NO_OFFSET,
                           "an array of type '%.*s'; a table has '<f4' (float32, little-endian)",
                           (int)(descr.bytes < 40 ? descr.bytes : 40), (const char *)descr.data);
    return PRESTO_OK;
}

static presto_status take_order(reader *r, presto_error *err) {
    if (take_word(r, "True"))
        return presto_fail(err, PRESTO_ERR_TYPE, PRESTO_NO_OFFSET,
                           "an array in Fortran order; a table has C order: "
                           "numpy.ascontiguousarray makes it so");
    return take_word(r, "False") ? PRESTO_OK : fail_header(r, err);
}

static presto_status take_shape(reader *r, presto__table *out, presto_error *err) {
    int64_t dims[MOST_DIMS];
    size_t rank = 0;
    if (!take(r, '('))
        return fail_header(r, err);
    while (!take(r, ')')) {
        if (rank == MOST_DIMS || !take_number(r, &dims[rank]))
            return fail_header(r, err);
        rank++;
        if (!take(r, ',')) {
            if (!take(r, ')'))
                return fail_header(r, err);
            break;
        }
    }
    return presto__table_shape(dims, rank, out, err);
}

/* One "key: value"; its bit is added to *seen_io. */
static presto_status take_entry(reader *r, unsigned *seen_io, presto__table *out,
                                presto_error *err) {
    presto_span key;
    unsigned seen = *seen_io;
    if (!take_text(r, &key) || !take(r, ':'))
        return fail_header(r, err);
    if (presto_span_is(key, "descr") && (seen & KEY_DESCR) == 0) {
        *seen_io = seen | KEY_DESCR;
        return take_dtype(r, err);
    }
    if (presto_span_is(key, "fortran_order") && (seen & KEY_ORDER) == 0) {
        *seen_io = seen | KEY_ORDER;
        return take_order(r, err);
    }
    if (presto_span_is(key, "shape") && (seen & KEY_SHAPE) == 0) {
        *seen_io = seen | KEY_SHAPE;
        return take_shape(r, out, err);
    }
    return fail_header(r, err);
}

static presto_status take_dict(reader *r, presto__table *out, presto_error *err) {
    unsigned seen = 0;
    if (!take(r, '{'))
        return fail_header(r, err);
    while (!take(r, '}')) {
        PRESTO_TRY(take_entry(r, &seen, out, err));
        if (!take(r, ',')) {
            if (!take(r, '}'))
                return fail_header(r, err);
            break;
        }
    }
    skip_blanks(r);
    return seen == ALL_KEYS && r->at == r->end ? PRESTO_OK : fail_header(r, err);
}

presto_status presto__npy_find(presto_span header, presto__table *table_out, presto_error *err) {
    reader r = {header.data, header.data, header.data + header.bytes};
    uint64_t bytes;
    PRESTO_TRY(presto__table_header_bytes(header, &bytes, err));
    if (header.data[6] < 1 || header.data[6] > 3 || header.data[7] != 0)
        return presto_fail(err, PRESTO_ERR_CORRUPT, 6, "a .npy file of version %d.%d",
                           header.data[6], header.data[7]);
    if (bytes > header.bytes)
        return presto_fail(err, PRESTO_ERR_TRUNCATED, header.bytes,
                           "the file ends within the header of a .npy file");
    r.at += header.data[6] == 1 ? 10 : 12;
    r.end = header.data + bytes;
    PRESTO_TRY(take_dict(&r, table_out, err));
    table_out->offset = bytes;
    return PRESTO_OK;
}
