/* SPDX-License-Identifier: Apache-2.0 */
/* Files of random lines, objects of JSON or rows of CSV, and what they hold. */
#ifndef LINES_CHECK_H
#define LINES_CHECK_H

#include "../../../loader/loader_internal.h"
#include "../../../steps/pipelines_internal.h"
#include "walk_check.h"

enum { MOST_TEXTS = 4000 };

/* The samples, in order. */
typedef struct known_texts {
    char *items[MOST_TEXTS];
    size_t bytes[MOST_TEXTS];
    size_t count;
    presto_pipeline *pipeline;
    const char *form; /* "lines", "jsonl", "csv" */
} known_texts;

static inline void forget_texts(known_texts *known) {
    for (size_t i = 0; i < known->count; i++)
        free(known->items[i]);
    known->count = 0;
}

static inline void put(presto_buffer *to, const void *bytes, size_t count) {
    presto_error err;
    ck_assert_ok(presto_buffer_append(to, presto_span_of(bytes, count), &err), &err);
}

static inline void put_text(presto_buffer *to, const char *text) {
    put(to, text, strlen(text));
}

static inline void know(known_texts *known, const presto_buffer *text) {
    ck_assert_uint_lt(known->count, MOST_TEXTS);
    known->items[known->count] = malloc(text->bytes + 1);
    if (text->bytes > 0)
        memcpy(known->items[known->count], text->data, text->bytes);
    known->bytes[known->count++] = text->bytes;
}

/* A text of letters, some of which are special to the form. */
static inline void random_text(presto_buffer *text, size_t most) {
    static const char *const letters[] = {"a", "b", " ", "\xc3\xa9", "z", "1", "\xe2\x82\xac", "-"};
    text->bytes = 0;
    for (uint64_t left = pick(0, most); left > 0; left--)
        put_text(text, letters[pick(0, 7)]);
}

static inline void put_line_end(presto_buffer *to, bool is_crlf) {
    put_text(to, is_crlf ? "\r\n" : "\n");
}

/* One record, with its end, unless it is the last of all. */
static inline void put_record(presto_buffer *to, known_texts *known, size_t most, bool is_crlf) {
    presto_buffer text = {0};
    random_text(&text, most);
    if (strcmp(known->form, "lines") == 0) {
        put(to, text.data, text.bytes);
    } else if (strcmp(known->form, "jsonl") == 0) {
        if (pick(0, 9) == 0)
            put_text(to, pick(0, 1) == 0 ? "\n" : "  \t\r\n"); /* no record */
        put_text(to, "{\"n\": 1, \"text\": \"");
        put(to, text.data, text.bytes);
        put_text(to, "\"}");
    } else {
        if (pick(0, 9) == 0)
            put_line_end(to, is_crlf); /* no record */
        put_text(to, "1,\"");
        put(to, text.data, text.bytes);
        if (pick(0, 3) == 0) {
            put_text(to, "\n\"\",");
            put_text(&text, "\n\",");
        }
        put_text(to, "\"");
    }
    know(known, &text);
    presto_buffer_done(&text);
}

static inline void pack_file(const char *path, presto_span bytes, const char *codec) {
    presto_codec_spec spec;
    presto_codec *packer;
    presto_buffer packed = {0};
    presto_error err;
    ck_assert_ok(presto_codec_parse(codec, &spec, &err), &err);
    ck_assert_ok(presto_codec_new(&spec, &packer, &err), &err);
    /* Two members, or frames. */
    size_t half = bytes.bytes / 2;
    ck_assert_ok(presto__codec_compress(packer, presto_span_of(bytes.data, half), &packed, &err),
                 &err);
    ck_assert_ok(presto__codec_compress(
                     packer, presto_span_of(bytes.data + half, bytes.bytes - half), &packed, &err),
                 &err);
    presto_check_write_file(path, presto_buffer_span(&packed));
    presto_buffer_done(&packed);
    presto_codec_free(packer);
}

/* `packing`: 0 plain, 1 gzip, 2 zstd. */
static inline void write_texts(const char *path, known_texts *known, uint64_t records,
                               int packing) {
    static const size_t sizes[] = {0, 3, 40, 700, 9000};
    presto_buffer bytes = {0};
    size_t most = sizes[pick(0, 4)];
    bool is_crlf = pick(0, 1) == 0, has_end = pick(0, 1) == 0;
    put_text(&bytes, pick(0, 2) == 0 ? "\xef\xbb\xbf" : "");
    if (strcmp(known->form, "csv") == 0)
        put_text(&bytes, is_crlf ? "n,\"text\"\r\n" : "n,text\n");
    for (uint64_t i = 0; i < records; i++) {
        put_record(&bytes, known, most, is_crlf);
        bool is_empty = known->bytes[known->count - 1] == 0 && strcmp(known->form, "lines") == 0;
        if (i + 1 < records || has_end || is_empty)
            put_line_end(&bytes, is_crlf);
    }
    if (bytes.bytes == 0)
        put_text(&bytes, "");
    if (packing == 0)
        presto_check_write_file(path, presto_buffer_span(&bytes));
    else
        pack_file(path, presto_buffer_span(&bytes), packing == 1 ? "gzip" : "zstd");
    presto_buffer_done(&bytes);
}

static inline void read_pipeline(known_texts *known, const char *form, const char *options) {
    char yaml[400];
    presto_error err;
    snprintf(yaml, sizeof yaml,
             "{name: p, source: {type: %s%s}, steps: [{step: read-file, yields: no}]}", form,
             options);
    ck_assert_ok(
        presto__pipeline_parse(presto_span_of_text(yaml), "p", NULL, &known->pipeline, &err), &err);
    known->form = form;
}

static inline void name_files(files *set, size_t count, const int *packings, const char *form) {
    static const char *const endings[] = {"", ".gz", ".zst"};
    *set = (files){.dir = presto_check_temp_dir(), .count = count};
    for (size_t i = 0; i < count; i++) {
        snprintf(set->paths[i], sizeof set->paths[i], "%s/%zu.%s%s", set->dir, i,
                 strcmp(form, "lines") == 0 ? "txt" : form, endings[packings[i]]);
        set->list[i] = set->paths[i];
    }
}

/* Some files; `most_packing` 0: all of them plain. */
static inline void make_texts(files *set, known_texts *known, int most_packing) {
    int packings[MOST_FILES];
    size_t count = (size_t)pick(1, MOST_FILES);
    for (size_t i = 0; i < count; i++)
        packings[i] = (int)pick(0, (uint64_t)most_packing);
    name_files(set, count, packings, known->form);
    forget_texts(known);
    for (size_t i = 0; i < count; i++)
        write_texts(set->paths[i], known, pick(0, 3) == 0 ? pick(0, 2) : pick(0, 300), packings[i]);
}

static inline presto_status open_texts(const files *set, const known_texts *known,
                                       const presto_shard_options *options, presto_source **out,
                                       presto_error *err) {
    const presto__raw_request request = {known->pipeline, set->list, set->count, options};
    return presto__source_open_request(&request, out, err);
}

static inline presto_source *open_all(const files *set, const known_texts *known, bool count_later,
                                      presto_keep_index keep) {
    presto_shard_options options;
    presto_source *source;
    presto_error err;
    char kept[320];
    presto_shard_options_defaults(&options);
    options.count_later = count_later;
    options.keep_index = keep;
    snprintf(kept, sizeof kept, "%s/kept", set->dir);
    options.index_dir = kept;
    ck_assert_ok(open_texts(set, known, &options, &source, &err), &err);
    return source;
}

/* Does the sample hold what is known of it? */
static inline void check_text(const known_texts *known, const presto_batch *batch, size_t row) {
    uint64_t number = batch->sample_numbers[row];
    ck_assert_uint_lt(number, known->count);
    presto_span got = presto_batch_string(&batch->features[0], row);
    ck_assert_msg(got.bytes == known->bytes[number] &&
                      (got.bytes == 0 || memcmp(got.data, known->items[number], got.bytes) == 0),
                  "sample %ju is '%.*s', not '%.*s'", (uintmax_t)number, (int)got.bytes,
                  (const char *)got.data, (int)known->bytes[number], known->items[number]);
}

#endif
