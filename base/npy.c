/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads the header of a .npy file: "\x93NUMPY", a version, a length, and a Python dict such as
 * {'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }. The values follow it.
 */
#include "npy_internal.h"

#include <inttypes.h>

#include <presto/numbers.h>

#include "bytes_internal.h"
#include "content_internal.h"

#define MOST_HEADER_BYTES ((uint32_t)64 << 10)
#define MAGIC_BYTES ((size_t)8) /* with the version */

/* The dict that is being read. */
typedef struct npy_text {
    const uint8_t *start, *at, *end; /* start: of the file */
} npy_text;

/* Which keys of the dict were there. */
enum { KEY_TYPE = 1, KEY_ORDER = 2, KEY_SHAPE = 4, ALL_KEYS = 7 };

typedef struct npy_dict {
    presto__npy_header header;
    unsigned seen;
} npy_dict;

static presto_status fail_header(const npy_text *text, presto_error *err) {
    return presto_fail(err, PRESTO_ERR_CORRUPT, (uint64_t)(text->at - text->start),
                       "not the header of a .npy file");
}

/* ---- the dict ---- */

static void skip_space(npy_text *text) {
    while (text->at < text->end && (*text->at == ' ' || *text->at == '\n'))
        text->at++;
}

/* Take this sign, and the space around it. */
static bool take_sign(npy_text *text, char sign) {
    skip_space(text);
    if (text->at == text->end || *text->at != (uint8_t)sign)
        return false;
    text->at++;
    skip_space(text);
    return true;
}

static bool take_text(npy_text *text, presto_span *text_out) {
    if (text->at == text->end || (*text->at != '\'' && *text->at != '"'))
        return false;
    const uint8_t *from = text->at + 1;
    const uint8_t *stop = memchr(from, *text->at, (size_t)(text->end - from));
    if (stop == NULL)
        return false;
    *text_out = presto_span_of(from, (size_t)(stop - from));
    text->at = stop + 1;
    return true;
}

static bool take_word(npy_text *text, const char *word) {
    size_t bytes = strlen(word);
    if ((size_t)(text->end - text->at) < bytes || memcmp(text->at, word, bytes) != 0)
        return false;
    text->at += bytes;
    return true;
}

static bool take_dim(npy_text *text, int64_t *dim_out) {
    int64_t dim = 0;
    const uint8_t *from = text->at;
    for (; text->at < text->end && *text->at >= '0' && *text->at <= '9'; text->at++) {
        if (dim > INT64_MAX / 10 - 1)
            return false;
        dim = dim * 10 + (*text->at - '0');
    }
    *dim_out = dim;
    bool is_number = text->at > from;
    (void)take_word(text, "L"); /* as Python 2 wrote it */
    return is_number;
}

/* "(3, 4)", "(3,)" or "()". */
static presto_status take_shape(npy_text *text, presto_tensor_spec *spec, presto_error *err) {
    if (!take_sign(text, '('))
        return fail_header(text, err);
    while (!take_sign(text, ')')) {
        int64_t dim;
        if (!take_dim(text, &dim))
            return fail_header(text, err);
        if (spec->rank == PRESTO_MAX_RANK)
            return presto_fail(err, PRESTO_ERR_LIMIT, (uint64_t)(text->at - text->start),
                               "a .npy file with an array of more than %d dimensions",
                               PRESTO_MAX_RANK);
        spec->dims[spec->rank++] = dim;
        if (!take_sign(text, ',')) {
            if (!take_sign(text, ')'))
                return fail_header(text, err);
            break;
        }
    }
    return PRESTO_OK;
}

/* Of a list, which describes a structure, nothing is kept. Its end is found by counting
 * brackets. */
static bool skip_list(npy_text *text) {
    size_t depth = 0;
    for (; text->at < text->end; text->at++) {
        presto_span ignored;
        if ((*text->at == '\'' || *text->at == '"') && !take_text(text, &ignored))
            return false;
        if (text->at == text->end) /* a text was the last there is */
            return false;
        if (*text->at == '[' || *text->at == '(')
            depth++;
        if ((*text->at == ']' || *text->at == ')') && --depth == 0) {
            text->at++;
            return true;
        }
    }
    return false;
}

static presto_status take_type(npy_text *text, presto__npy_header *header, presto_error *err) {
    presto_span type;
    if (text->at < text->end && *text->at == '[')
        return skip_list(text) ? PRESTO_OK : fail_header(text, err);
    if (!take_text(text, &type) || type.bytes == 0 || type.bytes >= sizeof header->type)
        return fail_header(text, err);
    memcpy(header->type, type.data, type.bytes);
    header->type[type.bytes] = '\0';
    return PRESTO_OK;
}

static presto_status take_order(npy_text *text, presto__npy_header *header, presto_error *err) {
    header->is_fortran = take_word(text, "True");
    return header->is_fortran || take_word(text, "False") ? PRESTO_OK : fail_header(text, err);
}

static presto_status take_entry(npy_text *text, npy_dict *dict, presto_error *err) {
    presto_span key;
    if (!take_text(text, &key) || !take_sign(text, ':'))
        return fail_header(text, err);
    unsigned bit = presto_span_is(key, "descr")           ? KEY_TYPE
                   : presto_span_is(key, "fortran_order") ? KEY_ORDER
                   : presto_span_is(key, "shape")         ? KEY_SHAPE
                                                          : 0;
    if (bit == 0 || (dict->seen & bit) != 0)
        return fail_header(text, err);
    dict->seen |= bit;
    if (bit == KEY_TYPE)
        return take_type(text, &dict->header, err);
    return bit == KEY_ORDER ? take_order(text, &dict->header, err)
                            : take_shape(text, &dict->header.spec, err);
}

static presto_status take_dict(npy_text *text, npy_dict *dict, presto_error *err) {
    if (!take_sign(text, '{'))
        return fail_header(text, err);
    while (!take_sign(text, '}')) {
        PRESTO_TRY(take_entry(text, dict, err));
        if (!take_sign(text, ',')) {
            if (!take_sign(text, '}'))
                return fail_header(text, err);
            break;
        }
    }
    return dict->seen == ALL_KEYS && text->at == text->end ? PRESTO_OK : fail_header(text, err);
}

/* ---- what it means ---- */

static presto_dtype dtype_of(const char *type) {
#define IF_TYPE(name, value, text, bytes, numpy)                                                   \
    if ((name) != PRESTO_STRING && strcmp(type, numpy) == 0)                                       \
        return name;
    PRESTO_DTYPE_LIST(IF_TYPE)
#undef IF_TYPE
    return PRESTO_DTYPE_UNKNOWN;
}

static presto_status refuse(const presto__npy_header *header, const char *what, const char *advice,
                            presto_error *err) {
    return presto_fail(err, PRESTO_ERR_UNSUPPORTED, PRESTO_NO_OFFSET,
                       "a .npy file of %s is not read (%s): %s", what,
                       header->type[0] == '\0' ? "several types" : header->type, advice);
}

static presto_status check_header(const presto__npy_header *header, presto_error *err) {
    const char *type = header->type;
    if (type[0] == '\0')
        return refuse(header, "structures", "save each field by itself", err);
    if (strchr(type, 'O') != NULL)
        return refuse(header, "Python objects", "save numbers", err);
    if (strchr(type, 'U') != NULL || strchr(type, 'S') != NULL)
        return refuse(header, "texts", "save numbers", err);
    if (type[0] == '>')
        return refuse(header, "big-endian values",
                      "save array.astype(array.dtype.newbyteorder('<'))", err);
    if (header->spec.dtype == PRESTO_DTYPE_UNKNOWN)
        return refuse(header, "such values", "save another type", err);
    if (header->is_fortran && header->spec.rank > 1)
        return refuse(header, "an array in Fortran order", "save numpy.ascontiguousarray(array)",
                      err);
    return PRESTO_OK;
}

static presto_status fail_no_npy(presto_span file, presto_error *err) {
    const presto__content *content = presto__content_of(file);
    if (content == NULL || strcmp(content->name, "npy") == 0)
        return presto_fail(err, PRESTO_ERR_TYPE, 0, "not a .npy file");
    (void)presto__content_refuse(content, PRESTO__CONTENT_ARRAYS, "a .npy file", err);
    return PRESTO_ERR_CORRUPT;
}

/* Where the dict stands. */
static presto_status find_dict(presto_span file, size_t *start_out, size_t *end_out,
                               presto_error *err) {
    if (file.bytes < MAGIC_BYTES || memcmp(file.data, "\x93NUMPY", 6) != 0)
        return fail_no_npy(file, err);
    if (file.data[6] < 1 || file.data[6] > 3 || file.data[7] != 0)
        return presto_fail(err, PRESTO_ERR_CORRUPT, 6, "a .npy file of version %d.%d", file.data[6],
                           file.data[7]);
    bool is_short = file.data[6] == 1;
    size_t start = MAGIC_BYTES + (is_short ? 2 : 4);
    uint32_t bytes = 0;
    if (file.bytes >= start)
        bytes = is_short ? (uint32_t)file.data[8] | (uint32_t)file.data[9] << 8
                         : presto__load_u32(file.data + 8);
    if (bytes > MOST_HEADER_BYTES)
        return presto_fail(err, PRESTO_ERR_LIMIT, 8,
                           "a .npy file with a header of %" PRIu32 " bytes", bytes);
    if (file.bytes < start || file.bytes - start < bytes)
        return presto_fail(err, PRESTO_ERR_TRUNCATED, file.bytes,
                           "the file ends within the header of a .npy file");
    *start_out = start;
    *end_out = start + bytes;
    return PRESTO_OK;
}

presto_status presto__npy_read_header(presto_span head, presto__npy_header *header_out,
                                      presto_error *err) {
    size_t start, end;
    npy_dict dict = {.seen = 0};
    PRESTO_TRY(find_dict(head, &start, &end, err));
    npy_text text = {head.data, head.data + start, head.data + end};
    PRESTO_TRY(take_dict(&text, &dict, err));
    dict.header.spec.dtype = dtype_of(dict.header.type);
    dict.header.data_at = end;
    *header_out = dict.header;
    return PRESTO_OK;
}

presto_status presto__npy_parse(presto_span file, presto_tensor *tensor_out, presto_error *err) {
    presto__npy_header header;
    size_t bytes;
    PRESTO_TRY(presto__npy_read_header(file, &header, err));
    PRESTO_TRY(check_header(&header, err));
    PRESTO_TRY(presto_spec_bytes(&header.spec, &bytes, err));
    size_t there = file.bytes - header.data_at;
    if (there < bytes)
        return presto_fail(err, PRESTO_ERR_TRUNCATED, file.bytes,
                           "a .npy file with %zu byte%s of values, its header says %zu", there,
                           presto_plural(there), bytes);
    if (there > bytes)
        return presto_fail(err, PRESTO_ERR_CORRUPT, header.data_at + bytes,
                           "a .npy file with %zu byte%s behind the array", there - bytes,
                           presto_plural(there - bytes));
    *tensor_out = (presto_tensor){.spec = header.spec, .data = file.data + header.data_at};
    return PRESTO_OK;
}
