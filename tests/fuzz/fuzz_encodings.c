/* SPDX-License-Identifier: Apache-2.0 */
/* The declared encoding of any bytes: one of the standard's that a page may declare, and labels are found in any case. */
#include <string.h>

#include "fuzz.h"
#include "text/page/encodings_internal.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes) {
    presto__declared found = presto__encoding_declared(presto_span_of(data, bytes));
    FUZZ_HOLDS(found.encoding == NULL || found.encoding->kind != PRESTO__ENCODING_UTF16);
    FUZZ_HOLDS(found.unknown.bytes <= bytes);
    if (found.unknown.bytes > 0)
        FUZZ_HOLDS(found.unknown.data >= data &&
                   found.unknown.data + found.unknown.bytes <= data + bytes &&
                   presto__encoding_find(found.unknown) == NULL);
    const presto__page_encoding *label = presto__encoding_find(presto_span_of(data, bytes));
    FUZZ_HOLDS(label == NULL || bytes < 1000 || label->name != NULL);
    return 0;
}
