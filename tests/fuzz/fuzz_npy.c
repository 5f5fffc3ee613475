/* SPDX-License-Identifier: Apache-2.0 */
/* .npy files: any bytes are refused, or an array whose values are the rest of the file. */
#include "base/npy_internal.h"

#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes) {
    presto_tensor tensor;
    presto_error err = {0};
    presto_status status = presto__npy_parse(presto_span_of(data, bytes), &tensor, &err);
    if (status < 0) {
        FUZZ_HOLDS(err.message[0] != '\0');
        FUZZ_HOLDS(err.offset == PRESTO_NO_OFFSET || err.offset <= bytes);
        return 0;
    }
    FUZZ_HOLDS(tensor.spec.rank >= 0 && tensor.spec.rank <= PRESTO_MAX_RANK);
    FUZZ_HOLDS(presto_dtype_bytes(tensor.spec.dtype) > 0);
    size_t values;
    FUZZ_HOLDS(presto_spec_bytes(&tensor.spec, &values, &err) == PRESTO_OK);
    FUZZ_HOLDS((const uint8_t *)tensor.data + values == data + bytes);
    return 0;
}
