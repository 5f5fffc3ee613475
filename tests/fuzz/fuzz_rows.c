/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A line of JSON, a row of CSV: any bytes become the features that were asked for, in UTF-8, or an error with a
 * byte that lies within them.
 */
#include "source/lines/source_lines_internal.h"

#include "fuzz.h"

static char name_texts[][8] = {"text", "label", "n", "x", "list", "any"};
static presto__field items[] = {
    {name_texts[0], name_texts[0], PRESTO__FIELD_TEXT},
    {name_texts[1], name_texts[1], PRESTO__FIELD_LABEL},
    {name_texts[2], name_texts[2], PRESTO__FIELD_INT64},
    {name_texts[3], name_texts[3], PRESTO__FIELD_FLOAT32},
    {name_texts[4], name_texts[4], PRESTO__FIELD_INT64S},
    {name_texts[5], name_texts[5], PRESTO__FIELD_JSON},
};
enum { ITEMS = sizeof items / sizeof items[0] };

static void check(presto_status status, const presto_feature *features, size_t count,
                  const presto_error *err, presto_span bytes) {
    if (status < 0) {
        FUZZ_HOLDS(err->status == status && err->message[0] != '\0');
        FUZZ_HOLDS(err->offset == PRESTO_NO_OFFSET || err->offset <= bytes.bytes);
        return;
    }
    for (size_t i = 0; i < count; i++)
        if (features[i].encoding == PRESTO_ENCODE_BYTES)
            FUZZ_HOLDS(presto__check_utf8(features[i].tensor.strings[0], NULL) == PRESTO_OK);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes) {
    static const size_t columns[ITEMS] = {1, 0, 2, 3, SIZE_MAX, SIZE_MAX};
    presto_span all = presto_span_of(data, bytes);
    for (size_t asked = 1; asked <= ITEMS; asked++) {
        bool selected[ITEMS] = {false};
        presto_feature features[ITEMS];
        presto_arena arena = {0};
        presto_error err;
        size_t count = 0;
        for (size_t i = 0; i < ITEMS; i++)
            selected[i] = i + 1 == asked || asked == ITEMS;
        presto__fields fields = {.items = items, .count = ITEMS};
        presto__row row = {.fields = &fields,
                           .selected = selected,
                           .columns = columns,
                           .column_count = 4,
                           .separator = ',',
                           .bytes = all};
        presto_status status = presto__jsonl_row(&row, &arena, features, &count, &err);
        check(status, features, count, &err, all);
        presto_arena_reset(&arena);
        fields.count = 4;
        status = presto__csv_row(&row, &arena, features, &count, &err);
        check(status, features, count, &err, all);
        presto_arena_done(&arena);
    }
    return 0;
}
