/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The encoding of a page, in this order: byte order mark; text that is UTF-8 with characters beyond
 * ASCII, whatever is declared (by chance, bytes of other encodings are no UTF-8); declaration in
 * <meta> or <?xml; statistics by uchardet; else UTF-8. iconv converts.
 */
#include <errno.h>
#include <iconv.h>
#include <pthread.h>
#include <stdlib.h>
#include <strings.h>

#include "extract_text_internal.h"

#include <uchardet/uchardet.h>

/* Declarations stand in the first 1024 bytes, says the standard; pages disagree. */
#define DECLARATION_BYTES 4096
#define STATISTICS_BYTES ((size_t)128 << 10)
#define KEEP_BYTES ((size_t)16 << 20)
#define MAX_LABEL_BYTES 40

struct presto__charset {
    uchardet_t statistics;
    iconv_t converter; /* (iconv_t)-1: none */
    char converter_name[MAX_LABEL_BYTES + 1];
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

/* ---- finding out ---- */

/* Labels of the Web (encoding.spec.whatwg.org) for more than iconv takes them for. */
static const char *iconv_name(const char *label) {
    static const char *const names[][2] = {
        {"iso-8859-1", "CP1252"},
        {"iso8859-1", "CP1252"},
        {"iso_8859-1", "CP1252"},
        {"latin1", "CP1252"},
        {"us-ascii", "CP1252"},
        {"ascii", "CP1252"},
        {"ansi", "CP1252"},
        {"iso-8859-9", "CP1254"},
        {"latin5", "CP1254"},
        {"iso-8859-11", "CP874"},
        {"tis-620", "CP874"},
        {"shift_jis", "CP932"},
        {"shift-jis", "CP932"},
        {"sjis", "CP932"},
        {"x-sjis", "CP932"},
        {"gb2312", "GB18030"},
        {"gbk", "GB18030"},
        {"x-gbk", "GB18030"},
        {"gb_2312-80", "GB18030"},
        {"euc-kr", "CP949"},
        {"ks_c_5601-1987", "CP949"},
        {"korean", "CP949"},
        {"big5", "BIG5-HKSCS"},
        {"x-x-big5", "BIG5-HKSCS"},
        {"x-euc-jp", "EUC-JP"},
        {"windows-31j", "CP932"},
        {"x-cp1251", "CP1251"},
        {"x-cp1252", "CP1252"},
        {"unicode-1-1-utf-8", "UTF-8"},
        {"utf8", "UTF-8"},
        {"unicode", "UTF-16LE"},
        {"utf-16", "UTF-16LE"},
        {"mac", "MACINTOSH"},
        {"x-mac-roman", "MACINTOSH"},
        {"x-mac-cyrillic", "MAC-CYRILLIC"},
    };
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (strcasecmp(label, names[i][0]) == 0)
            return names[i][1];
    return label;
}

static bool is_label_byte(uint8_t byte) {
    return (byte >= '0' && byte <= '9') || ((byte | 0x20) >= 'a' && (byte | 0x20) <= 'z') ||
           byte == '-' || byte == '_' || byte == ':' || byte == '.';
}

static size_t skip_space(presto_span in, size_t at) {
    while (at < in.bytes && in.data[at] <= ' ')
        at++;
    return at;
}

/* `= "label"` from `at` on. */
static bool read_label(presto_span in, size_t at, char label_out[MAX_LABEL_BYTES + 1]) {
    at = skip_space(in, at);
    if (at >= in.bytes || in.data[at] != '=')
        return false;
    at = skip_space(in, at + 1);
    if (at < in.bytes && (in.data[at] == '"' || in.data[at] == '\''))
        at = skip_space(in, at + 1);
    size_t bytes = 0;
    while (at + bytes < in.bytes && bytes < MAX_LABEL_BYTES && is_label_byte(in.data[at + bytes])) {
        label_out[bytes] = (char)in.data[at + bytes];
        bytes++;
    }
    label_out[bytes] = '\0';
    return bytes > 0;
}

static size_t find_word(presto_span in, size_t at, const char *word) {
    size_t bytes = strlen(word);
    for (; at + bytes <= in.bytes; at++)
        if ((in.data[at] | 0x20) == (uint8_t)word[0] &&
            strncasecmp((const char *)in.data + at, word, bytes) == 0)
            return at;
    return SIZE_MAX;
}

/* "charset=" in a <meta> tag, or "encoding=" in an XML declaration. */
static bool find_declaration(presto_span in, char label_out[MAX_LABEL_BYTES + 1]) {
    if (in.bytes > DECLARATION_BYTES)
        in.bytes = DECLARATION_BYTES;
    size_t at = skip_space(in, 0);
    if (in.bytes - at > 5 && memcmp(in.data + at, "<?xml", 5) == 0) {
        const uint8_t *end = memchr(in.data + at, '>', in.bytes - at);
        presto_span declaration = {in.data + at, end == NULL ? 0 : (size_t)(end - in.data) - at};
        size_t encoding = find_word(declaration, 0, "encoding");
        if (encoding != SIZE_MAX && read_label(declaration, encoding + 8, label_out))
            return true;
    }
    for (size_t meta = 0; meta + 5 < in.bytes; meta++) {
        if (in.data[meta] != '<' || strncasecmp((const char *)in.data + meta + 1, "meta", 4) != 0)
            continue;
        const uint8_t *end = memchr(in.data + meta, '>', in.bytes - meta);
        presto_span tag = {in.data + meta,
                           end == NULL ? in.bytes - meta : (size_t)(end - in.data) - meta};
        size_t charset = find_word(tag, 0, "charset");
        if (charset != SIZE_MAX && read_label(tag, charset + 7, label_out))
            return true;
    }
    return false;
}

/* ---- conversion ---- */

static bool use_converter(presto__charset *charset, const char *label) {
    const char *name = iconv_name(label);
    if (charset->converter != (iconv_t)-1 && strcmp(charset->converter_name, name) == 0) {
        iconv(charset->converter, NULL, NULL, NULL, NULL);
        return true;
    }
    close_converter(charset->converter);
    charset->converter = (iconv_t)-1;
    /* A suffix such as //TRANSLIT is no part of a name; read_label() lets none through. */
    if (strlen(name) > MAX_LABEL_BYTES)
        return false;
    charset->converter = open_converter(name);
    memcpy(charset->converter_name, name, strlen(name) + 1);
    return charset->converter != (iconv_t)-1;
}

bool presto__charset_is_known(const char *name) {
    iconv_t converter = open_converter(iconv_name(name));
    close_converter(converter);
    return converter != (iconv_t)-1;
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
        PRESTO_TRY(presto_buffer_append(out, replacement, err));
        from++;
        left--;
    }
    *text_out = presto_buffer_span(out);
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

static bool is_utf8(const char *label) {
    return strcasecmp(iconv_name(label), "UTF-8") == 0;
}

/* UTF-16 that can be read byte by byte up to a <meta> is none. */
static bool is_usable(const char *label) {
    return label[0] != '\0' && strncasecmp(iconv_name(label), "UTF-16", 6) != 0 &&
           strncasecmp(label, "UTF-32", 6) != 0 && strncasecmp(label, "UTF-7", 5) != 0;
}

static presto_status decode_unmarked(presto__charset *charset, presto_span in,
                                     presto_span *text_out, presto_error *err) {
    char label[MAX_LABEL_BYTES + 1] = "";
    utf8_count count = count_utf8(in);
    bool declared = find_declaration(in, label) && is_usable(label);
    bool is_escaped = declared && strncasecmp(label, "iso-2022", 8) == 0;
    if ((count.invalid == 0 && !is_escaped) || count.valid > 8 * count.invalid)
        return use_utf8(charset, in, count, text_out, err);
    if (declared && !is_utf8(label) && use_converter(charset, label))
        return convert(charset, in, text_out, err);
    const char *guessed = guess(charset, in);
    if (is_usable(guessed) && !is_utf8(guessed) && use_converter(charset, guessed))
        return convert(charset, in, text_out, err);
    return use_utf8(charset, in, count, text_out, err);
}

presto_status presto__charset_decode(presto__charset *charset, presto_span in, const char *wanted,
                                     presto_span *text_out, presto_error *err) {
    size_t mark_bytes;
    const char *marked = mark_of(in, &mark_bytes);
    if (charset->out.capacity > KEEP_BYTES)
        presto_buffer_done(&charset->out);
    if (wanted == NULL || mark_bytes > 0)
        wanted = marked;
    if (wanted == NULL)
        return decode_unmarked(charset, in, text_out, err);
    in.data += mark_bytes;
    in.bytes -= mark_bytes;
    if (is_utf8(wanted))
        return use_utf8(charset, in, count_utf8(in), text_out, err);
    if (!use_converter(charset, wanted))
        return presto_fail(err, PRESTO_ERR_UNSUPPORTED, PRESTO_NO_OFFSET,
                           "iconv does not know the encoding %s", wanted);
    return convert(charset, in, text_out, err);
}
