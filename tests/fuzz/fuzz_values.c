/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Examples, compared with those before them and put straight into columns: the same samples, errors
 * and batches as if each is parsed by itself. The input is: a byte of settings, then records, each
 * after two bytes with its length.
 */
#include "../../records/records_internal.h"
#include "../unit/loader/values_check.h"
#include "fuzz.h"

enum { MOST_ROWS = 24 };

static char name_a[] = "a", name_b[] = "b", name_t[] = "t", name_x[] = "x";
static const presto_feature_spec specs_list[] = {
    {name_a, PRESTO_ENCODE_NONE, {PRESTO_DTYPE_UNKNOWN, -1, {0}}},
    {name_t, PRESTO_ENCODE_TENSOR, {PRESTO_DTYPE_UNKNOWN, -1, {0}}},
    {name_x, PRESTO_ENCODE_INT64, {PRESTO_INT64, 1, {-1}}},
};

/* Batches of a few rows, one layout. */
static void run(two_ways *both, const presto__rules *rules, const uint8_t *at, const uint8_t *end,
                size_t batch_rows) {
    size_t rows = 0;
    presto_error err;
    FUZZ_HOLDS(begin_both(both, rules, MOST_ROWS, &err) == PRESTO_OK);
    while (end - at >= 2) {
        size_t bytes = (size_t)at[0] | (size_t)at[1] << 8;
        at += 2;
        if (bytes > (size_t)(end - at))
            bytes = (size_t)(end - at);
        put_record(both, presto_span_of(at, bytes));
        at += bytes;
        if (++rows % batch_rows == 0) {
            end_both(both);
            FUZZ_HOLDS(begin_both(both, rules, MOST_ROWS, &err) == PRESTO_OK);
        }
    }
    end_both(both);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes) {
    if (bytes == 0)
        return 0;
    presto__rule list[] = {
        {.name = name_a, .is_padded = (data[0] & 1) != 0, .pad_length = 3},
        {.name = name_b, .is_ragged = true},
    };
    const presto__rules rules = {.list = list, .count = 2, .has_pads = true};
    presto_example_specs specs = {
        .list = specs_list, .count = (data[0] & 2) != 0 ? 3 : 0, .only_these = (data[0] & 6) == 6};
    two_ways both = {.specs = &specs};
    FUZZ_HOLDS(presto__example_layout_new(&specs, &both.layout, NULL) == PRESTO_OK);
    run(&both, &rules, data + 1, data + bytes, (data[0] & 8) != 0 ? 3 : MOST_ROWS);
    if (both.difference[0] != '\0')
        fprintf(stderr, "%s\n", both.difference);
    FUZZ_HOLDS(both.difference[0] == '\0');
    free_both(&both);
    return 0;
}
