/* SPDX-License-Identifier: Apache-2.0 */
/* Lists of keys, as any server may send them: an error with words, or keys that can be paths. */
#include "storage/s3_list_internal.h"

#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes) {
    presto__s3_page page = {.count = 0};
    presto_error err = {0};
    for (size_t round = 0; round < 2; round++) { /* a page is used again */
        presto_status status = presto__s3_page_parse(presto_span_of(data, bytes), &page, &err);
        FUZZ_HOLDS(status >= 0 || err.message[0] != '\0');
        for (size_t i = 0; status >= 0 && i < page.count; i++) {
            presto_span key = page.items[i].key;
            FUZZ_HOLDS(key.bytes > 0 && key.bytes <= 4096);
            FUZZ_HOLDS(strlen((const char *)key.data) == key.bytes);
            FUZZ_HOLDS(page.items[i].mtime_ns == 0 || page.items[i].mtime_ns % 1000000000 == 0);
        }
    }
    presto__s3_page_done(&page);
    return 0;
}
