/* SPDX-License-Identifier: Apache-2.0 */
/* Encodings of pages: all labels of the Encoding Standard, its decoders, and the prescan of HTML. */
#include "presto_check.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "text/page/encodings_internal.h"
#include "text/page/extract_text_internal.h"

static presto_error err;

static const presto__page_encoding *find(const char *label) {
    uint8_t *copy = presto_check_copy(presto_span_of_text(label));
    const presto__page_encoding *found = presto__encoding_find(presto_span_of(copy, strlen(label)));
    free(copy);
    return found;
}

/* The file has a line for each: label, tab, name. It is made of the package webencodings. */
START_TEST(all_labels_of_the_standard_are_known_in_any_case) {
    size_t bytes, count = 0;
    char *file = (char *)presto_check_read_file(PRESTO_GOLDEN_DIR "/html/labels.tsv", &bytes);
    file = realloc(file, bytes + 1);
    file[bytes] = '\0';
    char *state = NULL;
    for (char *line = strtok_r(file, "\n", &state); line != NULL;
         line = strtok_r(NULL, "\n", &state)) {
        char *name = strchr(line, '\t'), spaced[80];
        *name++ = '\0';
        const presto__page_encoding *found = find(line);
        ck_assert_msg(found != NULL && strcmp(found->name, name) == 0, "%s", line);
        snprintf(spaced, sizeof spaced, " \t%s\r\n\f", line);
        for (char *at = spaced; *at != '\0'; at++)
            *at = (char)toupper((unsigned char)*at);
        ck_assert_ptr_eq(find(spaced), found);
        snprintf(spaced, sizeof spaced, "%sx", line);
        const presto__page_encoding *longer = find(spaced);
        ck_assert(longer == NULL || strcmp(longer->name, "windows-1252") != 0);
        count++;
    }
    ck_assert_uint_eq(count, 228);
    ck_assert_uint_eq(presto__encoding_label_count, count);
    free(file);
    static const char *const none[] = {
        "", " ", "utf_8", "utf-7", "utf-32", "iso-8859-12", "latin-1", "u", "zzz", "\xc3\xbctf-8"};
    for (size_t i = 0; i < sizeof none / sizeof none[0]; i++)
        ck_assert_ptr_null(find(none[i]));
}
END_TEST

static size_t from_hex(const char *text, uint8_t *out) {
    size_t bytes = 0;
    for (; isxdigit((unsigned char)text[0]); text += 2, bytes++) {
        unsigned value;
        ck_assert_int_eq(sscanf(text, "%2x", &value), 1);
        out[bytes] = (uint8_t)value;
    }
    return bytes;
}

/* name, tab, bytes, tab, UTF-8, both in hex. It is made by tests/golden/encodings.mjs. */
START_TEST(decoders_are_those_of_the_standard) {
    size_t bytes, count = 0;
    char *file = (char *)presto_check_read_file(PRESTO_GOLDEN_DIR "/html/encodings.tsv", &bytes);
    file = realloc(file, bytes + 1);
    file[bytes] = '\0';
    char *state = NULL;
    presto__charset *charset = presto__charset_new();
    for (char *line = strtok_r(file, "\n", &state); line != NULL;
         line = strtok_r(NULL, "\n", &state)) {
        uint8_t in[600], want[600];
        presto_span got;
        char *hex = strchr(line, '\t'), *hex_want = strchr(hex + 1, '\t');
        *hex = '\0';
        size_t in_bytes = from_hex(hex + 1, in), want_bytes = from_hex(hex_want + 1, want);
        uint8_t *copy = presto_check_copy(presto_span_of(in, in_bytes));
        ck_assert_ok(
            presto__charset_decode(charset, presto_span_of(copy, in_bytes), line, &got, &err),
            &err);
        ck_assert_msg(got.bytes == want_bytes && memcmp(got.data, want, want_bytes) == 0, "%s: %s",
                      line, hex + 1);
        free(copy);
        count++;
    }
    ck_assert_uint_ge(count, 60);
    presto__charset_free(charset);
    free(file);
}
END_TEST

typedef struct page {
    const char *text, *name;
} page;

static void check(const page *pages, size_t count) {
    for (size_t i = 0; i < count; i++) {
        size_t bytes = strlen(pages[i].text);
        uint8_t *copy = presto_check_copy(presto_span_of_text(pages[i].text));
        presto__declared found = presto__encoding_declared(presto_span_of(copy, bytes));
        const char *got = found.encoding != NULL ? found.encoding->name : "nothing";
        ck_assert_msg(strcmp(got, pages[i].name != NULL ? pages[i].name : "nothing") == 0, "%s: %s",
                      pages[i].text, got);
        for (size_t cut = 0; cut < bytes; cut++) {
            uint8_t *part = presto_check_copy(presto_span_of(copy, cut));
            (void)presto__encoding_declared(presto_span_of(part, cut));
            free(part);
        }
        free(copy);
    }
}

START_TEST(declarations_are_found_as_the_standard_does) {
    /* The names are those of html5lib's EncodingParser. */
    static const page pages[] = {
        {"<meta charset=koi8-r>", "koi8-r"},
        {"<META CHARSET=\" KOI8-R \">", "koi8-r"},
        {"<meta charset='koi8-r'/>", "koi8-r"},
        {"<meta\ncharset\n=\nkoi8-r\n>", "koi8-r"},
        {"<meta http-equiv=\"Content-Type\" content=\"text/html; charset=iso-8859-2\">",
         "iso-8859-2"},
        {"<meta content=\"text/html; charset=iso-8859-2\" http-equiv=content-type>", "iso-8859-2"},
        {"<meta content=\"text/html; charset=iso-8859-2\">", NULL},
        {"<meta http-equiv=refresh content=\"0; url=?charset=koi8-r\">", NULL},
        {"<meta name=description content=\"about charset=koi8-r\">", NULL},
        {"<meta name=description content=\"about charset=koi8-r\"><meta charset=gbk>", "gbk"},
        {"<!-- <meta charset=koi8-r> -->", NULL},
        {"<!-- <meta charset=koi8-r> --><meta charset=big5>", "big5"},
        {"<!-- -- > <meta charset=big5>", NULL},
        {"<metadata charset=koi8-r>", NULL},
        {"<metadata charset=koi8-r><meta charset=big5>", "big5"},
        {"<p title=\"<meta charset=koi8-r>\">", NULL},
        {"<a href=x title='<meta charset=koi8-r>'><meta charset=gbk>", "gbk"},
        {"<meta data-charset=koi8-r>", NULL},
        {"<meta x=\"charset=koi8-r\">", NULL},
        {"<meta charset=utf-16>", "utf-8"},
        {"<meta charset=utf-16be>", "utf-8"},
        {"<meta charset=x-user-defined>", "windows-1252"},
        {"<meta charset=nonsense>", NULL},
        {"<meta charset=nonsense><meta charset=big5>", "big5"},
        {"<meta charset=>", NULL},
        {"<meta charset>", NULL},
        {"<meta charset=\"koi8-r", NULL},
        {"<meta http-equiv=content-type content=\"charset = 'shift_jis' x\">", "shift_jis"},
        {"<meta http-equiv=content-type content=\"charset='euc-kr\">", NULL},
        {"<meta charset=big5 charset=koi8-r>", "big5"},
        {"</meta charset=koi8-r><meta charset=big5>", "big5"},
        {"<?x <meta charset=koi8-r> ?>", NULL},
        {"<!x <meta charset=koi8-r>", NULL},
        {"<script>\"<meta charset=koi8-r>\"</script>", "koi8-r"},
        {"<title><meta charset=koi8-r></title>", "koi8-r"},
    };
    /* Here, html5lib 1.1 is behind the standard; and it does not read XML declarations. */
    static const page newer[] = {
        {"<meta/charset=koi8-r>", "koi8-r"},
        {"<!--><meta charset=big5>", "big5"},
        {"<!---><meta charset=big5>", "big5"},
        {"<meta http-equiv=content-type content=\"charset charset=euc-kr\">", "euc-kr"},
        {"<meta http-equiv=content-type content=\"text/html;charset=iso-8859-2;x\">", "iso-8859-2"},
        {"<meta http-equiv=content-type content=\"charset=koi8-r\" charset=big5>", "big5"},
        {"<?xml version='1.0' encoding='koi8-r'?><html>", "koi8-r"},
        {"<?xml encoding = \"utf-16\"?>", "utf-8"},
        {"<?xml encoding='koi8-r'?><meta charset=big5>", "big5"},
        {" <?xml encoding='koi8-r'?>", NULL},
        {"<?xml encoding=' koi8-r'?>", NULL},
        {"<?xml version='1.0'?> encoding='koi8-r'", NULL},
    };
    check(pages, sizeof pages / sizeof pages[0]);
    check(newer, sizeof newer / sizeof newer[0]);
}
END_TEST

/* As a browser, which parses on and then decodes again. */
START_TEST(late_declarations_count_outside_of_scripts) {
    static const page tails[] = {
        {"<meta charset=koi8-r>", "koi8-r"},
        {"<script>var a = '<meta charset=koi8-r>'</script>", NULL},
        {"<script>var a = '<meta charset=koi8-r>'</script><meta charset=big5>", "big5"},
        {"<style> <meta charset=koi8-r> </style ><title> </title><meta charset=gbk>", "gbk"},
        {"<!-- <meta charset=koi8-r> -->", NULL},
    };
    char text[3000];
    for (size_t i = 0; i < sizeof tails / sizeof tails[0]; i++) {
        snprintf(text, sizeof text, "<html><head><link rel='%01500d'>%s", 7, tails[i].text);
        const page late = {text, tails[i].name};
        check(&late, 1);
    }
}
END_TEST

START_TEST(an_unknown_label_is_kept) {
    static const char text[] = "<meta charset=x-none><meta charset=x-other>";
    presto__declared found = presto__encoding_declared(presto_span_of_text(text));
    ck_assert_ptr_null(found.encoding);
    ck_assert(presto_span_is(found.unknown, "x-none"));
}
END_TEST

int main(void) {
    const TTest *const tests[] = {
        all_labels_of_the_standard_are_known_in_any_case,
        decoders_are_those_of_the_standard,
        declarations_are_found_as_the_standard_does,
        late_declarations_count_outside_of_scripts,
        an_unknown_label_is_kept,
    };
    return presto_check_main("encodings", tests, sizeof tests / sizeof tests[0], 60);
}
