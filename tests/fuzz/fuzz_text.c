/* SPDX-License-Identifier: Apache-2.0 */
/* Names of any bytes: what is shown is printable UTF-8 and stays as it is, what is encoded comes
 * back. */
#include "fuzz.h"

#include <presto/text.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes) {
    presto_span rest = presto_span_of(data, bytes);
    char shown[PRESTO_SHOWN_BYTES], again[PRESTO_SHOWN_BYTES];
    while (rest.bytes > 0) {
        size_t length = presto_text_next(&rest, shown);
        FUZZ_HOLDS(length == strlen(shown) && length > 0);
        presto_span inner = presto_span_of(shown, length);
        FUZZ_HOLDS(presto_utf8_bytes(inner) > 0);
        while (inner.bytes > 0) {
            const uint8_t *at = inner.data;
            size_t step = presto_text_next(&inner, again);
            FUZZ_HOLDS(step == presto_utf8_bytes(presto_span_of(at, step)));
            FUZZ_HOLDS(memcmp(at, again, step) == 0);
        }
    }
    char *text = presto_text_encode(presto_span_of(data, bytes));
    FUZZ_HOLDS(text != NULL);
    for (rest = presto_span_of_text(text); rest.bytes > 0;) {
        size_t step = presto_utf8_bytes(rest);
        FUZZ_HOLDS(step > 0);
        rest = presto_span_of(rest.data + step, rest.bytes - step);
    }
    FUZZ_HOLDS(presto_text_decode(text) == bytes);
    FUZZ_HOLDS(bytes == 0 || memcmp(text, data, bytes) == 0);
    free(text);
    return 0;
}
