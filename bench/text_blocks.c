/* SPDX-License-Identifier: Apache-2.0 */
/*
 * text_blocks FILE...: for each page, what bench/text_fit.py fits the forest of extract-text to. To
 * stdout, little-endian: u32 and bytes of the path; u32 blocks; u32 features; float32
 * [blocks, features]; then for each block u32 and bytes of its text.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <presto/storage.h>

#include "steps/text/page/extract_text_internal.h"

static void put(const void *bytes, size_t count) {
    if (fwrite(bytes, 1, count, stdout) != count) {
        perror("text_blocks");
        exit(1);
    }
}

static void put_span(presto_span span) {
    uint32_t bytes = (uint32_t)span.bytes;
    put(&bytes, sizeof bytes);
    put(span.data, span.bytes);
}

static void require(presto_status status, const presto_error *err) {
    if (status >= 0)
        return;
    fprintf(stderr, "text_blocks: %s\n", err->message);
    exit(1);
}

static void put_blocks(const presto__page *page, const presto__measures *measures) {
    float features[PRESTO__FEATURE_COUNT];
    presto_buffer text = {0};
    presto_error err;
    uint32_t counts[2] = {(uint32_t)page->block_count, PRESTO__FEATURE_COUNT};
    put(counts, sizeof counts);
    for (size_t i = 0; i < page->block_count; i++) {
        presto__measures_features(measures, page, i, features);
        put(features, sizeof features);
    }
    for (size_t i = 0; i < page->block_count; i++) {
        text.bytes = 0;
        require(presto__block_write(page, &page->blocks[i], &text, &err), &err);
        put_span(presto_buffer_span(&text));
    }
    presto_buffer_done(&text);
}

int main(int count, char **paths) {
    presto__charset *charset = presto__charset_new();
    presto__html *html = presto__html_new();
    presto__page page;
    presto__measures measures = {0};
    presto_buffer content = {0};
    presto_error err;
    if (charset == NULL || html == NULL)
        return 1;
    presto__page_init(&page);
    for (int i = 1; i < count; i++) {
        presto_span text;
        content.bytes = 0;
        require(presto_file_read(paths[i], UINT32_MAX, &content, &err), &err);
        require(presto__charset_decode(charset, presto_buffer_span(&content), NULL, &text, &err),
                &err);
        require(presto__page_build(&page, html, text, &err), &err);
        require(presto__measures_take(&measures, &page, &err), &err);
        put_span(presto_span_of_text(paths[i]));
        put_blocks(&page, &measures);
    }
    presto_buffer_done(&content);
    presto__measures_done(&measures);
    presto__page_done(&page);
    presto__html_free(html);
    presto__charset_free(charset);
    return 0;
}
