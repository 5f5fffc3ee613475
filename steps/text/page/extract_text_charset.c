/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The encoding of a page, in this order: byte order mark; text that is UTF-8 with characters beyond
 * ASCII, whatever is declared (by chance, bytes of other encodings are no UTF-8); declaration in
 * <meta> or <?xml; statistics by uchardet; else UTF-8. Encodings of one byte have tables, iconv
 * converts the others.
 */
#include <errno.h>
#include <iconv.h>
#include <pthread.h>
#include <stdlib.h>
#include <strings.h>

#include "encodings_internal.h"
#include "extract_text_internal.h"

#include <uchardet/uchardet.h>

#define STATISTICS_BYTES ((size_t)128 << 10)
#define KEEP_BYTES ((size_t)16 << 20)
#define MAX_NAME_BYTES 40

struct presto__charset {
    uchardet_t statistics;
    iconv_t converter; /* (iconv_t)-1: none */
    char converter_name[MAX_NAME_BYTES + 1];
    const char *read_as;       /* of the last page: the encoding that it was decoded from */
    presto__declared declared; /* of the last page; borrows from it */
    presto_buffer out;
};

presto__charset *presto__charset_new(void) {
    presto__charset *charset = calloc(1, sizeof *charset);
    if (charset == NULL)
        return NULL;
    charset->converter = (iconv_t)-1;
    charset->statistics = uchardet_new();
    if (charset->statistics == NULL) {
        free(charset);
        return NULL;
    }
    return charset;
}

/*
 * Opening and closing a converter loads and unloads parts of the C library, under a lock in it that
 * ThreadSanitizer does not see. This lock makes the same order visible.
 */
static pthread_mutex_t converters_lock = PTHREAD_MUTEX_INITIALIZER;

static iconv_t open_converter(const char *name) {
    pthread_mutex_lock(&converters_lock);
    iconv_t converter = iconv_open("UTF-8", name);
    pthread_mutex_unlock(&converters_lock);
    return converter;
}

static void close_converter(iconv_t converter) {
    if (converter == (iconv_t)-1)
        return;
    pthread_mutex_lock(&converters_lock);
    iconv_close(converter);
    pthread_mutex_unlock(&converters_lock);
}

void presto__charset_free(presto__charset *charset) {
    if (charset == NULL)
        return;
    close_converter(charset->converter);
    uchardet_delete(charset->statistics);
    presto_buffer_done(&charset->out);
    free(charset);
}

/* ---- UTF-8 ---- */

/* Bytes of the valid character at `at`, 0 if there is none. */
static size_t utf8_char(const uint8_t *at, size_t left) {
    uint8_t first = at[0];
    if (first < 0x80)
        return 1;
    size_t bytes = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
    if (first < 0xc2 || first > 0xf4 || bytes > left)
        return 0;
    for (size_t i = 1; i < bytes; i++)
        if ((at[i] & 0xc0) != 0x80)
            return 0;
    bool overlong = (first == 0xe0 && at[1] < 0xa0) || (first == 0xf0 && at[1] < 0x90);
    bool beyond = (first == 0xed && at[1] >= 0xa0) || (first == 0xf4 && at[1] >= 0x90);
    return overlong || beyond ? 0 : bytes;
}

static size_t skip_ascii(presto_span in, size_t at) {
    uint64_t word;
    while (at + sizeof word <= in.bytes) {
        memcpy(&word, in.data + at, sizeof word);
        if (word & 0x8080808080808080u)
            break;
        at += sizeof word;
    }
    while (at < in.bytes && in.data[at] < 0x80)
        at++;
    return at;
}

typedef struct utf8_count {
    size_t valid, invalid; /* characters beyond ASCII; bytes that belong to none */
} utf8_count;

static utf8_count count_utf8(presto_span in) {
    utf8_count count = {0};
    for (size_t at = skip_ascii(in, 0); at < in.bytes; at = skip_ascii(in, at)) {
        size_t bytes = utf8_char(in.data + at, in.bytes - at);
        if (bytes > 0)
            count.valid++;
        else
            count.invalid++;
        at += bytes > 0 ? bytes : 1;
    }
    return count;
}

static const presto_span replacement = {(const uint8_t *)"\xef\xbf\xbd", 3};

static presto_status repair_utf8(presto__charset *charset, presto_span in, presto_span *text_out,
                                 presto_error *err) {
    presto_buffer *out = &charset->out;
    out->bytes = 0;
    for (size_t at = 0; at < in.bytes;) {
        size_t begin = at, bytes = 1;
        while (at < in.bytes && (bytes = utf8_char(in.data + at, in.bytes - at)) > 0)
            at = skip_ascii(in, at + bytes);
        PRESTO_TRY(presto_buffer_append(out, (presto_span){in.data + begin, at - begin}, err));
        if (at < in.bytes) {
            PRESTO_TRY(presto_buffer_append(out, replacement, err));
            at++;
        }
    }
    *text_out = presto_buffer_span(out);
    return PRESTO_OK;
}

/* ---- conversion ---- */

static bool use_converter(presto__charset *charset, const char *name) {
    if (charset->converter != (iconv_t)-1 && strcmp(charset->converter_name, name) == 0) {
        iconv(charset->converter, NULL, NULL, NULL, NULL);
        return true;
    }
    close_converter(charset->converter);
    charset->converter = (iconv_t)-1;
    if (strlen(name) > MAX_NAME_BYTES)
        return false;
    charset->converter = open_converter(name);
    memcpy(charset->converter_name, name, strlen(name) + 1);
    return charset->converter != (iconv_t)-1;
}

bool presto__charset_is_known(const char *name) {
    if (presto__encoding_find(presto_span_of_text(name)) != NULL)
        return true;
    iconv_t converter = open_converter(name);
    close_converter(converter);
    return converter != (iconv_t)-1;
}

/* A byte that the converter of the C library knows nothing of, but the standard does. */
static presto_span character_of(const presto__charset *charset, uint8_t byte) {
    static const presto_span euro = {(const uint8_t *)"\xe2\x82\xac", 3};
    static const presto_span control = {(const uint8_t *)"\xc2\x80", 2};
    if (byte == 0x80 && strcmp(charset->converter_name, "GB18030") == 0)
        return euro;
    return byte == 0x80 && strcmp(charset->converter_name, "CP932") == 0 ? control : replacement;
}

/* A space of old Chinese pages, which the C library takes for a character of private use. */
static void mend_spaces(const presto__charset *charset, presto_span text) {
    if (strcmp(charset->converter_name, "GB18030") != 0)
        return;
    uint8_t *at = charset->out.data, *end = at + text.bytes;
    for (; at + 3 <= end && (at = memchr(at, 0xee, (size_t)(end - at) - 2)) != NULL; at++)
        if (at[1] == 0x97 && at[2] == 0xa5)
            memcpy(at, "\xe3\x80\x80", 3);
}

static presto_status convert(presto__charset *charset, presto_span in, presto_span *text_out,
                             presto_error *err) {
    presto_buffer *out = &charset->out;
    char *from = (char *)(uintptr_t)in.data; /* iconv does not write to it */
    size_t left = in.bytes;
    out->bytes = 0;
    while (left > 0) {
        PRESTO_TRY(presto_buffer_reserve(out, left + left / 2 + 64, err));
        char *to = (char *)out->data + out->bytes;
        size_t room = out->capacity - out->bytes;
        size_t result = iconv(charset->converter, &from, &left, &to, &room);
        out->bytes = (size_t)((uint8_t *)to - out->data);
        if (result != (size_t)-1 || errno == E2BIG)
            continue;
        PRESTO_TRY(presto_buffer_append(out, character_of(charset, (uint8_t)*from), err));
        from++;
        left--;
    }
    *text_out = presto_buffer_span(out);
    mend_spaces(charset, *text_out);
    return PRESTO_OK;
}

static presto_status use_utf8(presto__charset *charset, presto_span in, utf8_count count,
                              presto_span *text_out, presto_error *err) {
    if (count.invalid > 0)
        return repair_utf8(charset, in, text_out, err);
    *text_out = in;
    return PRESTO_OK;
}

static const char *mark_of(presto_span in, size_t *bytes_out) {
    *bytes_out = 0;
    if (in.bytes >= 3 && memcmp(in.data, "\xef\xbb\xbf", 3) == 0) {
        *bytes_out = 3;
        return "UTF-8";
    }
    if (in.bytes < 4)
        return NULL;
    *bytes_out = 2;
    if (memcmp(in.data, "\xff\xfe", 2) == 0)
        return "UTF-16LE";
    if (memcmp(in.data, "\xfe\xff", 2) == 0)
        return "UTF-16BE";
    *bytes_out = 0;
    if (memcmp(in.data, "<\0", 2) == 0 && in.data[2] != 0 && in.data[3] == 0)
        return "UTF-16LE";
    if (memcmp(in.data, "\0<\0", 3) == 0 && in.data[3] != 0)
        return "UTF-16BE";
    return NULL;
}

static const char *guess(presto__charset *charset, presto_span in) {
    if (in.bytes > STATISTICS_BYTES)
        in.bytes = STATISTICS_BYTES;
    uchardet_reset(charset->statistics);
    if (uchardet_handle_data(charset->statistics, (const char *)in.data, in.bytes) != 0)
        return "";
    uchardet_data_end(charset->statistics);
    return uchardet_get_charset(charset->statistics);
}

/* Of one byte a character. */
static presto_status convert_bytes(presto__charset *charset, presto_span in,
                                   const presto__page_encoding *encoding, presto_span *text_out,
                                   presto_error *err) {
    presto_buffer *out = &charset->out;
    out->bytes = 0;
    PRESTO_TRY(presto_buffer_reserve(out, in.bytes * 3 + 1, err));
    uint8_t *to = out->data;
    for (size_t i = 0; i < in.bytes; i++) {
        uint8_t byte = in.data[i];
        if (byte < 0x80) {
            *to++ = byte;
            continue;
        }
        uint32_t code = encoding->table != NULL ? encoding->table[byte - 0x80] : 0xf700U + byte;
        if (code == 0)
            code = 0xfffd;
        if (code < 0x800) {
            *to++ = (uint8_t)(0xc0 | code >> 6);
        } else {
            *to++ = (uint8_t)(0xe0 | code >> 12);
            *to++ = (uint8_t)(0x80 | (code >> 6 & 0x3f));
        }
        *to++ = (uint8_t)(0x80 | (code & 0x3f));
    }
    out->bytes = (size_t)(to - out->data);
    *text_out = presto_buffer_span(out);
    return PRESTO_OK;
}

static presto_status decode_as(presto__charset *charset, presto_span in,
                               const presto__page_encoding *encoding, presto_span *text_out,
                               presto_error *err) {
    switch (encoding->kind) {
    case PRESTO__ENCODING_UTF8:
        return use_utf8(charset, in, count_utf8(in), text_out, err);
    case PRESTO__ENCODING_TABLE:
    case PRESTO__ENCODING_USER_DEFINED:
        return convert_bytes(charset, in, encoding, text_out, err);
    case PRESTO__ENCODING_REPLACEMENT:
        *text_out = in.bytes > 0 ? replacement : in;
        return PRESTO_OK;
    case PRESTO__ENCODING_UTF16:
    case PRESTO__ENCODING_CONVERTED:
        break;
    }
    if (!use_converter(charset, encoding->iconv))
        return presto_fail(err, PRESTO_ERR_UNSUPPORTED, PRESTO_NO_OFFSET,
                           "the C library lacks its converter %s", encoding->iconv);
    return convert(charset, in, text_out, err);
}

/* What the statistics say. UTF-16 that can be read byte by byte up to a <meta> is none. */
static bool decode_guessed(presto__charset *charset, presto_span in, presto_span *text_out,
                           presto_status *status_out, presto_error *err) {
    const char *name = guess(charset, in);
    const presto__page_encoding *encoding = presto__encoding_find(presto_span_of_text(name));
    if (name[0] == '\0' || strncasecmp(name, "UTF-", 4) == 0)
        return false;
    charset->read_as = encoding != NULL ? encoding->name : name;
    if (encoding != NULL && encoding->kind != PRESTO__ENCODING_REPLACEMENT) {
        *status_out = decode_as(charset, in, encoding, text_out, err);
        return true;
    }
    if (!use_converter(charset, name)) {
        charset->read_as = "utf-8";
        return false;
    }
    *status_out = convert(charset, in, text_out, err);
    return true;
}

static presto_status decode_unmarked(presto__charset *charset, presto_span in,
                                     presto_span *text_out, presto_error *err) {
    presto_status status;
    utf8_count count = count_utf8(in);
    charset->declared = presto__encoding_declared(in);
    const presto__page_encoding *declared = charset->declared.encoding;
    /* Of seven bits, with escapes: this is no ASCII. */
    bool is_escaped = declared != NULL && (declared->kind == PRESTO__ENCODING_REPLACEMENT ||
                                           strcmp(declared->name, "iso-2022-jp") == 0);
    charset->read_as = "utf-8";
    if ((count.invalid == 0 && !is_escaped) || count.valid > 8 * count.invalid)
        return use_utf8(charset, in, count, text_out, err);
    if (declared != NULL && declared->kind != PRESTO__ENCODING_UTF8) {
        charset->read_as = declared->name;
        return decode_as(charset, in, declared, text_out, err);
    }
    if (decode_guessed(charset, in, text_out, &status, err))
        return status;
    return use_utf8(charset, in, count, text_out, err);
}

presto_status presto__charset_decode(presto__charset *charset, presto_span in, const char *wanted,
                                     presto_span *text_out, presto_error *err) {
    size_t mark_bytes;
    const char *marked = mark_of(in, &mark_bytes);
    charset->declared = (presto__declared){0};
    if (charset->out.capacity > KEEP_BYTES)
        presto_buffer_done(&charset->out);
    if (wanted == NULL || mark_bytes > 0)
        wanted = marked;
    if (wanted == NULL)
        return decode_unmarked(charset, in, text_out, err);
    in.data += mark_bytes;
    in.bytes -= mark_bytes;
    const presto__page_encoding *encoding = presto__encoding_find(presto_span_of_text(wanted));
    if (encoding != NULL)
        return decode_as(charset, in, encoding, text_out, err);
    if (!use_converter(charset, wanted))
        return presto_fail(err, PRESTO_ERR_UNSUPPORTED, PRESTO_NO_OFFSET,
                           "neither the Encoding Standard nor iconv knows the encoding %s", wanted);
    return convert(charset, in, text_out, err);
}

presto_span presto__charset_unknown(const presto__charset *charset, const char **read_as_out) {
    *read_as_out = charset->read_as;
    return charset->declared.unknown;
}
