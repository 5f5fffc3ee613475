/* SPDX-License-Identifier: Apache-2.0 */
/* Pages of the Hub's trees, as any server may send them, with the header that leads to the next one
 * before them: an error with words, or names that can be paths. */
#include "storage/hf_list_internal.h"

#include <stdlib.h>

#include "fuzz.h"

static void check_path(presto_span path) {
    const char *text = (const char *)path.data;
    FUZZ_HOLDS(path.bytes > 0 && path.bytes <= 4096 && strlen(text) == path.bytes);
    FUZZ_HOLDS(text[0] != '/' && text[path.bytes - 1] != '/' && strstr(text, "//") == NULL);
    FUZZ_HOLDS(strncmp(text, "../", 3) != 0 && strstr(text, "/../") == NULL);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes) {
    presto__hf_page page = {.count = 0};
    presto_error err = {0};
    const uint8_t *line = bytes == 0 ? NULL : memchr(data, '\n', bytes);
    size_t link_bytes = line == NULL ? 0 : (size_t)(line - data);
    size_t from = line == NULL ? 0 : link_bytes + 1;
    char *link = presto_span_to_text(presto_span_of(data, link_bytes));
    presto_span cursor;
    if (link != NULL && presto__hf_cursor(link, &cursor, &err) == PRESTO_OK)
        for (size_t i = 0; i < cursor.bytes; i++)
            FUZZ_HOLDS(cursor.data[i] > ' ' && cursor.data[i] < 0x7f && cursor.data[i] != '&' &&
                       cursor.data[i] != '#');
    free(link);
    for (size_t round = 0; round < 2; round++) { /* a page is used again */
        presto_status status =
            presto__hf_page_parse(presto_span_of(data + from, bytes - from), &page, &err);
        FUZZ_HOLDS(status >= 0 || err.message[0] != '\0');
        for (size_t i = 0; status >= 0 && i < page.count; i++) {
            check_path(page.entries[i].path);
            FUZZ_HOLDS(strlen((const char *)page.entries[i].oid.data) == page.entries[i].oid.bytes);
        }
    }
    presto__hf_page_done(&page);
    return 0;
}
