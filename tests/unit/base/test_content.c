/* SPDX-License-Identifier: Apache-2.0 */
/* What a file is, by content: formats, texts of all kinds, and bytes that are no text. */
#include "../../../base/rng_internal.h"
#include "presto_check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <presto/rng.h>

#include "content_internal.h"

#define SPAN(text) presto_span_of(text, sizeof(text) - 1)
/* Bytes as they may follow a signature: controls of many kinds. */
#define REST                                                                                       \
    "\0\1\2\3\0\0\4\5\6\7\x0e\x0f\x10\x11\x12\0\0\0\0\x13\x14\x15\x16\x17\x18\x19\x1c\x1d\0\0\0\0"

static const presto__content *content_of(presto_span bytes) {
    uint8_t *copy = presto_check_copy(bytes); /* of the exact size */
    const presto__content *content = presto__content_of(presto_span_of(copy, bytes.bytes));
    free(copy);
    return content;
}

static const presto__content *no_text(presto_span bytes) {
    uint8_t *copy = presto_check_copy(bytes);
    const presto__content *content = presto__content_no_text(presto_span_of(copy, bytes.bytes));
    free(copy);
    return content;
}

#define FORMAT(name, head)                                                                         \
    { name, head REST, sizeof(head REST) - 1 }

START_TEST(formats_are_named_and_are_no_text) {
    static const struct {
        const char *name, *head;
        size_t bytes;
    } formats[] = {
        FORMAT("jpeg", "\xff\xd8\xff\xe0\0\x10JFIF"),
        FORMAT("png", "\x89PNG\r\n\x1a\n"),
        FORMAT("gif", "GIF89a"),
        FORMAT("webp", "RIFF\x10\0\0\0WEBPVP8 "),
        FORMAT("tiff", "II*\0\x08\0\0\0"),
        FORMAT("tiff", "MM\0*\0\0\0\x08"),
        FORMAT("tiff", "II+\0\x08\0\0\0"),
        FORMAT("bmp", "BM\x36\x10\0\0\0\0\0\0\x36\0\0\0\x28\0\0\0"),
        FORMAT("avif", "\0\0\0\x20"
                       "ftypavif\0\0\0\0avifmif1"),
        FORMAT("avif", "\0\0\0\x1c"
                       "ftypmif1\0\0\0\0mif1avif"),
        FORMAT("heic", "\0\0\0\x18"
                       "ftypheic\0\0\0\0mif1heic"),
        FORMAT("heic", "\0\0\0\x1c"
                       "ftypmif1\0\0\0\0mif1heic"),
        FORMAT("jxl", "\xff\x0a\xfa\x7f"),
        FORMAT("jxl", "\0\0\0\x0cJXL \r\n\x87\n"),
        FORMAT("jp2", "\0\0\0\x0cjP  \r\n\x87\n"),
        FORMAT("pnm", "P6\n20 30\n255\n"),
        FORMAT("psd", "8BPS\0\1"),
        FORMAT("ico", "\0\0\1\0\1\0"),
        FORMAT("wav", "RIFF\x24\0\0\0WAVEfmt "),
        FORMAT("flac", "fLaC\0\0\0\x22"),
        FORMAT("ogg", "OggS\0\2"),
        FORMAT("mp3", "ID3\3\0\0"),
        FORMAT("mp3", "\xff\xfb\x90\x44"),
        FORMAT("m4a", "\0\0\0\x20"
                      "ftypM4A "),
        FORMAT("mp4", "\0\0\0\x20"
                      "ftypisom"),
        FORMAT("aiff", "FORM\0\0\x10\0AIFFCOMM"),
        FORMAT("au", ".snd\0\0\0\x18"),
        FORMAT("mkv", "\x1a\x45\xdf\xa3"),
        FORMAT("hdf5", "\x89HDF\r\n\x1a\n"),
        FORMAT("npy", "\x93NUMPY\1\0"),
        FORMAT("npz", "PK\3\4\x14\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\5\0\0\0a.npy"),
        FORMAT("torch",
               "PK\3\4\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x10\0\0\0archive/data.pkl"),
        FORMAT("office",
               "PK\3\4\x14\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x13\0\0\0[Content_Types].xml"),
        FORMAT("zip", "PK\3\4\x14\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\5\0\0\0a.txt"),
        FORMAT("pickle", "\x80\4\x95\x10\0\0\0\0\0\0\0"),
        FORMAT("safetensors", "\x40\0\0\0\0\0\0\0{\"weight\":{\"dtype\":"),
        FORMAT("gguf", "GGUF\3\0\0\0"),
        FORMAT("parquet", "PAR1\x15\4"),
        FORMAT("arrow", "ARROW1\0\0"),
        FORMAT("arrow", "\xff\xff\xff\xff\xf0\0\0\0\x10\0\0\0"),
        FORMAT("orc", "ORC\x08\3"),
        FORMAT("avro", "Obj\1\4"),
        FORMAT("sqlite", "SQLite format 3\0\x10\0"),
        FORMAT("pdf", "%PDF-1.7\n"),
        FORMAT("gzip", "\x1f\x8b\x08\0\0\0\0\0\0\3"),
        FORMAT("zstd", "\x28\xb5\x2f\xfd"),
        FORMAT("xz", "\xfd"
                     "7zXZ\0"),
        FORMAT("bzip2", "BZh91AY&SY"),
        FORMAT("lz4", "\x04\x22\x4d\x18"),
        FORMAT("7z", "7z\xbc\xaf\x27\x1c"),
        FORMAT("rar", "Rar!\x1a\7"),
        FORMAT("elf", "\x7f"
                      "ELF\2\1\1"),
        FORMAT("exe", "MZ\x90\0"),
        FORMAT("wasm", "\0asm\1\0\0\0"),
        FORMAT("java", "\xca\xfe\xba\xbe"),
        FORMAT("font", "wOFF\0\1"),
        FORMAT("sentencepiece", "\n\x0e\n\5<unk>\x15"),
        {"rtf", "{\\rtf1\\ansi", 11},
        {"lfs", "version https://git-lfs.github.com/spec/v1\noid sha256:", 54},
        {"annex", "/annex/objects/SHA256E-s3--", 27},
        {"dvc", "outs:\n- md5: a304", 17},
    };
    for (size_t i = 0; i < sizeof formats / sizeof formats[0]; i++) {
        presto_span bytes = presto_span_of(formats[i].head, formats[i].bytes);
        const presto__content *content = content_of(bytes);
        ck_assert_str_eq(content != NULL ? content->name : "nothing", formats[i].name);
        content = no_text(bytes);
        ck_assert_str_eq(content != NULL ? content->name : "text", formats[i].name);
        for (size_t cut = 0; cut < bytes.bytes; cut++) /* stays within the bytes */
            (void)no_text(presto_span_of(bytes.data, cut));
    }
}
END_TEST

START_TEST(text_may_begin_like_a_format_or_hold_odd_bytes) {
    static const struct {
        const char *text;
        size_t bytes;
    } texts[] = {
#define TEXT(text) {text, sizeof(text) - 1}
        TEXT("ORC files, ID3 tags and fLaC are what this page is about."),
        TEXT("BM is what they call it. GIF89a is another thing."),
        TEXT("ID3 tags: caf\xe9, na\xefve, d\xe9j\xe0 vu, in latin-1, without any sign of that."),
        TEXT("\xff\xe2\xeb\xe5\xed\xe8\xe5 \xe1\xfb\xeb\xee \xe7\xe0\xec\xe5\xf7\xe5\xed\xee "
             "\xe2 \xcc\xee\xf1\xea\xe2\xe5 \xe8 \xe2 \xcf\xe5\xf2\xe5\xf0\xe1\xf3\xf0\xe3\xe5"),
        TEXT("<html><body>\0\1\2\3\4\5\6\7\x0e\x0f\x10\x11 some of them</body></html>"),
        TEXT("\xff\xfeh\0e\0l\0l\0o\0 \0w\0o\0r\0l\0d\0 \0a\0n\0d\0 \0m\0o\0r\0e\0"),
        TEXT("\xfe\xff\0h\0e\0l\0l\0o\0 \0w\0o\0r\0l\0d\0 \0a\0n\0d\0 \0m\0o\0r\0e"),
        TEXT("<\0h\0t\0m\0l\0>\0<\0p\0>\0h\0e\0l\0l\0o\0 \0w\0o\0r\0l\0d\0 \0a\0g\0a\0i\0n\0"),
        TEXT("\0h\0e\0l\0l\0o\0 \0w\0o\0r\0l\0d\0 \0w\0i\0t\0h\0o\0u\0t\0 \0a\0 \0m\0a\0r\0k"),
        TEXT("h\0\0\0e\0\0\0l\0\0\0l\0\0\0o\0\0\0 \0\0\0w\0\0\0o\0\0\0r\0\0\0l\0\0\0d\0\0\0"),
        TEXT("N\bNA\bAM\bME\bE   ls - list what is in a folder, as manuals on a terminal have it"),
        TEXT("8=FIX.4.2\x01"
             "9=178\x01"
             "35=8\x01"
             "49=PHLX\x01"
             "56=PERS\x01"
             "52=20071123\x01"),
        TEXT("\x1b$B%F%9%H\x1b(B and ISO-2022-JP again \x1b$B%F%9%H\x1b(B, which has escapes"),
        TEXT("one page\n\f\ntwo pages, with a page break between them, and DOS's end.\x1a"),
        TEXT("padded to a block\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0"),
        TEXT("{\"a\": 1}"),
        TEXT("{\n  \"name\": \"presto\",\n  \"version\": 1\n}\n"),
        TEXT("[[a wiki link]]\n[[another one]]\n"),
        TEXT("a,b\n1,2\n3,4\n"),
        TEXT("<?xml version='1.0'?><rss/>"),
        TEXT("\0"),
        TEXT("\1\2\3"),
        TEXT(""),
    };
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        const presto__content *content = no_text(presto_span_of(texts[i].text, texts[i].bytes));
        ck_assert_msg(content == NULL, "text %zu: %s", i, content != NULL ? content->shown : "");
    }
}
END_TEST

START_TEST(bytes_of_no_known_format_are_no_text) {
    uint8_t bytes[3000];
    const presto__rng_key key = {presto_check_seed(), 0, 0, 0};
    presto_rng rng;
    presto__rng_init(&rng, &key);
    for (int round = 0; round < 200; round++) {
        size_t count = 1000 + presto_rng_below(&rng, sizeof bytes - 1000);
        for (size_t i = 0; i < count; i++)
            bytes[i] = (uint8_t)presto_rng_below(&rng, 256);
        if (round % 4 == 1) /* int32 */
            for (size_t i = 0; i < count; i++)
                bytes[i] = i % 4 == 0 ? bytes[i] : 0;
        if (round % 4 == 2) /* PCM of little sound */
            for (size_t i = 1; i < count; i += 2)
                bytes[i] = bytes[i - 1] >= 128 ? 0xff : 0;
        if (round % 4 == 3) /* int64 */
            for (size_t i = 0; i < count; i++)
                bytes[i] = i % 8 == 0 ? bytes[i] : 0;
        ck_assert_ptr_nonnull(no_text(presto_span_of(bytes, count)));
    }
}
END_TEST

START_TEST(a_tar_is_one_whatever_its_first_member_is_called) {
    static const char *const names[] = {"GIF89a", "ORC.txt", "BM", "PK\3\4", "a.html", "<html>"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        uint8_t header[600] = {0};
        unsigned sum = 0;
        memcpy(header, names[i], strlen(names[i]));
        memcpy(header + 100, "0000644\0000000000\0000000000\00000000000000\00014371573122", 47);
        memset(header + 148, ' ', 8);
        for (size_t k = 0; k < 512; k++)
            sum += header[k];
        char digits[8];
        snprintf(digits, sizeof digits, "%06o", sum);
        memcpy(header + 148, digits, 7);
        const presto__content *content = no_text(presto_span_of(header, sizeof header));
        ck_assert_str_eq(content != NULL ? content->name : "text", "tar");
    }
}
END_TEST

START_TEST(json_lines_are_many_samples) {
    static const char *const lines[] = {
        "{\"text\": \"one\"}\n{\"text\": \"two\"}\n",
        "{\"text\": \"one\"} \r\n\r\n{\"text\": \"two\"}",
        " {\"a\": {\"b\": 1}}\n{ \"a\": 2}",
    };
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        const presto__content *content = no_text(presto_span_of_text(lines[i]));
        ck_assert_ptr_nonnull(content);
        ck_assert_int_eq(content->group, PRESTO__CONTENT_LINES);
    }
    char large[3000]; /* the first line is longer than what is looked at to name a text */
    memset(large, 'x', sizeof large);
    memcpy(large, "{\"text\": \"", 10);
    memcpy(large + 2000, "\"}\n{\"text\": \"", 13);
    const presto__content *content = no_text(presto_span_of(large, sizeof large));
    ck_assert_ptr_nonnull(content);
    ck_assert_int_eq(content->group, PRESTO__CONTENT_LINES);
}
END_TEST

START_TEST(a_page_is_told_behind_space_marks_and_comments) {
    static const char *const pages[] = {
        "<!DOCTYPE html><p>",          "<!doctype HTML>",
        " \n<HTML lang=en>",           "\xef\xbb\xbf<html>",
        "<!-- a --> <!-- b --><head>", "<title>404 Not Found</title>",
    };
    for (size_t i = 0; i < sizeof pages / sizeof pages[0]; i++) {
        const presto__content *content = content_of(presto_span_of_text(pages[i]));
        ck_assert_str_eq(content != NULL ? content->name : "nothing", "html");
    }
    static const char error[] = "<?xml version=\"1.0\"?>\n<Error><Code>AccessDenied</Code></Error>";
    ck_assert_ptr_nonnull(strstr(content_of(SPAN(error))->shown, "error of a server"));
}
END_TEST

START_TEST(a_refusal_says_what_it_is_and_what_to_do) {
    presto_error err;
    ck_assert_status(presto__content_refuse(content_of(SPAN("GIF89a" REST)), PRESTO__CONTENT_IMAGE,
                                            "a JPEG or PNG", &err),
                     PRESTO_ERR_CORRUPT, &err);
    ck_assert_str_eq(err.message, "a GIF file, but a JPEG or PNG is needed: convert it");
    ck_assert_status(presto__content_refuse(content_of(SPAN("\x1f\x8b\x08" REST)),
                                            PRESTO__CONTENT_TEXT, "text", &err),
                     PRESTO_ERR_CORRUPT, &err);
    ck_assert_str_eq(err.message, "a gzip file, but text is needed: decompress it first (gunzip)");
}
END_TEST

int main(void) {
    const TTest *const tests[] = {
        formats_are_named_and_are_no_text,
        text_may_begin_like_a_format_or_hold_odd_bytes,
        bytes_of_no_known_format_are_no_text,
        a_tar_is_one_whatever_its_first_member_is_called,
        json_lines_are_many_samples,
        a_page_is_told_behind_space_marks_and_comments,
        a_refusal_says_what_it_is_and_what_to_do,
    };
    return presto_check_main("content", tests, sizeof tests / sizeof tests[0], 30);
}
