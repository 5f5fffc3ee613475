/* SPDX-License-Identifier: Apache-2.0 */
/* Frames one after another; what parses is written back to the same bytes. */
#include "../../records/records_internal.h"
#include "fuzz.h"

#include <presto/frame.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes) {
    presto_buffer again = {0};
    for (size_t at = 0; at < bytes;) {
        presto_span payload;
        if (presto__frame_parse(
                presto_span_of(data + at, bytes - at), at,
                &(presto__frame_rules){PRESTO_FRAME_MAX_PAYLOAD_BYTES, PRESTO_CHECK_FULL}, &payload,
                NULL) != PRESTO_OK)
            break;
        again.bytes = 0;
        FUZZ_HOLDS(presto__frame_append(&again, payload, NULL) == PRESTO_OK);
        FUZZ_HOLDS(again.bytes == payload.bytes + PRESTO_FRAME_OVERHEAD_BYTES);
        FUZZ_HOLDS(memcmp(again.data, data + at, 8) == 0);
        at += again.bytes;
    }
    presto_buffer_done(&again);
    return 0;
}
