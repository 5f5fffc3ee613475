/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A file of the disk cache: header, table, and every entry that the table names. A sample that is
 * read is stored again, and must come out the same.
 */
#include "fuzz.h"

#include <string.h>

#include "cache/disk_internal.h"

#define MOST_ENTRIES 64

static void check_same(const presto_feature *a, const presto_feature *b) {
    FUZZ_HOLDS(presto_span_equal(a->name, b->name) && a->encoding == b->encoding);
    if (!presto__feature_has_value(a))
        return;
    FUZZ_HOLDS(presto_spec_equal(&a->tensor.spec, &b->tensor.spec));
    if (a->tensor.spec.dtype != PRESTO_STRING) {
        size_t bytes = presto_tensor_bytes(&a->tensor);
        FUZZ_HOLDS(bytes == 0 || memcmp(a->tensor.data, b->tensor.data, bytes) == 0);
        return;
    }
    for (uint64_t i = 0; i < presto_spec_elements(&a->tensor.spec); i++)
        FUZZ_HOLDS(presto_span_equal(a->tensor.strings[i], b->tensor.strings[i]));
}

static void round_trip(const presto_sample *sample) {
    presto_buffer stored = {0};
    presto_arena arena = {0};
    presto_sample again;
    FUZZ_HOLDS(presto__disk_entry_append(&stored, sample, NULL) == PRESTO_OK);
    FUZZ_HOLDS(stored.bytes % PRESTO__DISK_ALIGN == 0);
    presto_span entry = presto_buffer_span(&stored);
    FUZZ_HOLDS(presto__disk_entry_read(entry, sample->number, NULL, NULL, NULL) == PRESTO_OK);
    FUZZ_HOLDS(presto__disk_entry_read(entry, sample->number, &arena, &again, NULL) == PRESTO_OK);
    FUZZ_HOLDS(again.feature_count == sample->feature_count && again.number == sample->number);
    for (size_t i = 0; i < again.feature_count; i++)
        check_same(&again.features[i], &sample->features[i]);
    presto_arena_done(&arena);
    presto_buffer_done(&stored);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes) {
    presto__disk_head head;
    if (presto__disk_head_read(presto_span_of(data, bytes), &head, NULL) != PRESTO_OK ||
        head.file_bytes != bytes)
        return 0;
    size_t table_bytes = head.count * sizeof(presto__disk_place);
    presto__disk_place *places = malloc(table_bytes + 1);
    if (places == NULL)
        return 0;
    memcpy(places, data + head.table_at, table_bytes);
    presto_arena arena = {0};
    bool holds = presto__disk_table_check(&head, places, NULL) == PRESTO_OK;
    for (uint32_t i = 0; holds && i < head.count && i < MOST_ENTRIES; i++) {
        presto_span entry = presto_span_of(data + (size_t)places[i].at * PRESTO__DISK_ALIGN,
                                           (size_t)places[i].units * PRESTO__DISK_ALIGN);
        presto_sample sample;
        bool passes =
            presto__disk_entry_read(entry, places[i].number, NULL, NULL, NULL) == PRESTO_OK;
        presto_arena_reset(&arena);
        if (presto__disk_entry_read(entry, places[i].number, &arena, &sample, NULL) == PRESTO_OK)
            round_trip(&sample);
        else
            FUZZ_HOLDS(!passes);
    }
    presto_arena_done(&arena);
    free(places);
    return 0;
}
