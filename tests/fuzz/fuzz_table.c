/* SPDX-License-Identifier: Apache-2.0 */
/* Headers of tables (.npy, .safetensors): refused with a message, or a table within the file. */
#include "fuzz.h"
#include "steps/text/table_internal.h"

static void check(presto_span header, const char *tensor) {
    /* As if much more followed. */
    uint64_t file_bytes = header.bytes + ((uint64_t)1 << 40);
    presto__table table = {0};
    presto_error err = {0};
    uint64_t bytes;
    if (presto__table_header_bytes(header, &bytes, &err) < 0) {
        FUZZ_HOLDS(err.message[0] != '\0');
        return;
    }
    FUZZ_HOLDS(bytes <= PRESTO__TABLE_MAX_HEADER_BYTES);
    if (presto__table_find(header, file_bytes, tensor, &table, &err) < 0) {
        FUZZ_HOLDS(table.rows == 0 && err.message[0] != '\0');
        return;
    }
    FUZZ_HOLDS(table.rows >= 1 && table.columns >= 1 && table.offset >= bytes);
    FUZZ_HOLDS(table.offset + table.rows * table.columns * sizeof(float) <= file_bytes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes) {
    check(presto_span_of(data, bytes), NULL);
    check(presto_span_of(data, bytes), "t");
    return 0;
}
