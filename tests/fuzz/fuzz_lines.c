/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lines and rows: any bytes are cut into the same records whether they come at once or one by one, each
 * behind the one before. And the index of lines: whatever an index file holds, it is refused, or its marks
 * rise and lead to its records.
 */
#include "source/lines/source_lines_internal.h"

#include "fuzz.h"

#define INDEX_DATA_BYTES 300

static void check_cut(presto__cut_form form, presto_span bytes) {
    const presto__cut_rules rules = {.form = form, .separator = ',', .most_blank = UINT64_MAX};
    size_t at = 0;
    for (;;) {
        presto__cut_search search = {0}, slow = {0};
        presto__cut_record record, again;
        presto_span left = presto_span_of(bytes.data + at, bytes.bytes - at);
        presto_status status = presto__cut_next(&rules, left, true, &search, &record);
        presto_status same = PRESTO_DROP;
        for (size_t known = 0; same == PRESTO_DROP; known++) {
            FUZZ_HOLDS(known <= left.bytes);
            same = presto__cut_next(&rules, presto_span_of(left.data, known), known == left.bytes,
                                    &slow, &again);
        }
        FUZZ_HOLDS(same == status);
        if (status == PRESTO_END)
            return;
        FUZZ_HOLDS(record.start == again.start && record.bytes == again.bytes &&
                   record.next == again.next && record.lines == again.lines);
        FUZZ_HOLDS(record.next > 0 && record.start + record.bytes <= record.next &&
                   record.next <= left.bytes);
        at += record.next;
    }
}

static void check_index(presto_span bytes) {
    presto__waymarks marks;
    presto__waymarks_facts facts = {.data_bytes = INDEX_DATA_BYTES};
    if (presto__waymarks_parse(bytes, &facts, &marks, NULL) != PRESTO_OK)
        return;
    for (uint64_t record = 0; record < facts.records && record < 1000; record++) {
        presto__waymark_pair pair;
        FUZZ_HOLDS(presto__waymarks_find(&marks, record, record, &pair, NULL) == PRESTO_OK);
        FUZZ_HOLDS(pair.before.record <= record && pair.behind.record > record);
        FUZZ_HOLDS(pair.before.offset < pair.behind.offset);
    }
    presto__waymarks_done(&marks);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes) {
    presto_span all = presto_span_of(data, bytes);
    check_index(all);
    if (bytes < 4096)
        for (int form = 0; form < 3; form++)
            check_cut((presto__cut_form)form, all);
    return 0;
}
