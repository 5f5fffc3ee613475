/* SPDX-License-Identifier: Apache-2.0 */
/* Examples: whatever parses is written, parses again, and is written to the same bytes. */
#include "fuzz.h"

#include <presto/example.h>

static char name_a[] = "image", name_b[] = "x";
static const presto_feature_spec specs[] = {
    {name_a, PRESTO_ENCODE_TENSOR, {PRESTO_DTYPE_UNKNOWN, -1, {0}}},
    {name_b, PRESTO_ENCODE_INT64, {PRESTO_INT64, 1, {-1}}},
};
/* Of feature lists. */
static char name_c[] = "f", name_d[] = "u", name_e[] = "u/row_lengths",
            name_f[] = "feature_lists/x";
static const presto_feature_spec list_specs[] = {
    {name_c, PRESTO_ENCODE_TENSOR, {PRESTO_FLOAT32, 2, {-1, -1}}},
    {name_d, PRESTO_ENCODE_BYTES, {PRESTO_STRING, 1, {-1}}},
    {name_e, PRESTO_ENCODE_INT64, {PRESTO_INT64, 1, {-1}}},
    {name_f, PRESTO_ENCODE_INT64, {PRESTO_INT64, 1, {-1}}},
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes) {
    presto_arena arena = {0};
    presto_buffer first = {0}, second = {0};
    presto_sample sample;
    presto_error err;
    if (presto_example_parse(presto_span_of(data, bytes),
                             &(presto_example_specs){.list = specs, .count = 2}, &arena, &sample,
                             &err) == PRESTO_OK) {
        /* A tensor with fewer values than elements ("the last value fills the rest") may be too
         * large to write. */
        if (presto_example_append(&first, &sample, &err) == PRESTO_OK) {
            FUZZ_HOLDS(presto_example_parse(presto_buffer_span(&first),
                                            &(presto_example_specs){.list = specs, .count = 2},
                                            &arena, &sample, &err) == PRESTO_OK);
            FUZZ_HOLDS(presto_example_append(&second, &sample, &err) == PRESTO_OK);
            FUZZ_HOLDS(presto_span_equal(presto_buffer_span(&first), presto_buffer_span(&second)));
        }
    } else {
        FUZZ_HOLDS(err.offset == PRESTO_NO_OFFSET || err.offset <= bytes);
    }
    presto_example_parse(presto_span_of(data, bytes), NULL, &arena, &sample, NULL);
    presto_example_parse(
        presto_span_of(data, bytes),
        &(presto_example_specs){.list = list_specs, .count = 4, .only_these = true}, &arena,
        &sample, NULL);
    presto_buffer_done(&first);
    presto_buffer_done(&second);
    presto_arena_done(&arena);
    return 0;
}
