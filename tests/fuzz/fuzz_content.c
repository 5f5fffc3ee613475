/* SPDX-License-Identifier: Apache-2.0 */
/* What a file is: any bytes have the same answer twice, and UTF-16 becomes UTF-8. */
#include <presto/text.h>

#include "../base/content_internal.h"
#include "fuzz.h"
#include "steps_internal.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes) {
    presto_span in = presto_span_of(data, bytes), text;
    presto_buffer buffer = {0};
    const presto__content *content = presto__content_of(in);
    const presto__content *no_text = presto__content_no_text(in);
    FUZZ_HOLDS(content == presto__content_of(in));
    FUZZ_HOLDS(no_text == NULL || no_text->group >= PRESTO__CONTENT_IMAGE ||
               no_text->group == PRESTO__CONTENT_LINES);
    FUZZ_HOLDS(no_text == NULL || presto__content_refuse(no_text, PRESTO__CONTENT_TEXT, "text",
                                                         NULL) == PRESTO_ERR_CORRUPT);
    FUZZ_HOLDS(presto__input_utf8(in, &buffer, &text, NULL) == PRESTO_OK);
    if (text.data != data || text.bytes != bytes)
        for (size_t step; text.bytes > 0;
             text = presto_span_of(text.data + step, text.bytes - step)) {
            step = presto_utf8_bytes(text);
            FUZZ_HOLDS(step > 0);
        }
    presto_buffer_done(&buffer);
    return 0;
}
