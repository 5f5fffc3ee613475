/* SPDX-License-Identifier: Apache-2.0 */
/* Answers of servers in XML: what is taken lies within the limits. */
#include "fuzz.h"

#include "storage/xml_internal.h"

static presto_status take(void *user, const presto__xml_element *element, presto_error *err) {
    const size_t *most = user;
    (void)err;
    FUZZ_HOLDS(strlen(element->path) < PRESTO__XML_MOST_PATH_BYTES);
    FUZZ_HOLDS(element->text.bytes <= *most); /* decoding makes nothing longer */
    return PRESTO_OK;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes) {
    size_t most = bytes * 3; /* Latin-1, as UTF-8 */
    (void)presto__xml_read(presto_span_of(data, bytes), take, &most, NULL);
    return 0;
}
