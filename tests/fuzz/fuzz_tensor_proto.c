/* SPDX-License-Identifier: Apache-2.0 */
/* TensorProtos: whatever parses is written and parses to the same tensor. */
#include "../../records/records_internal.h"
#include "fuzz.h"

#include <presto/example.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes) {
    presto_arena arena = {0};
    presto_buffer again = {0};
    presto_tensor tensor, other;
    presto_span in = presto_span_of(data, bytes);
    bool probed = presto_tensor_proto_probe(in);
    presto_status status = presto_tensor_proto_parse(in, &arena, &tensor, NULL);
    FUZZ_HOLDS(!probed || status == PRESTO_OK);
    if (status == PRESTO_OK && presto__tensor_proto_append(&again, &tensor, NULL) == PRESTO_OK) {
        FUZZ_HOLDS(presto_tensor_proto_parse(presto_buffer_span(&again), &arena, &other, NULL) ==
                   PRESTO_OK);
        FUZZ_HOLDS(presto_spec_equal(&tensor.spec, &other.spec));
        if (tensor.spec.dtype != PRESTO_STRING && presto_tensor_bytes(&tensor) > 0)
            FUZZ_HOLDS(memcmp(tensor.data, other.data, presto_tensor_bytes(&tensor)) == 0);
    }
    presto_buffer_done(&again);
    presto_arena_done(&arena);
    return 0;
}
