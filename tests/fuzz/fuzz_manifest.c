/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Manifests: any bytes, behind one that says the form, are refused with a line, or a table whose
 * cells are what its columns say.
 */
#include "source/table/source_tables_internal.h"

#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes) {
    presto__manifest table;
    presto_error err = {0};
    if (bytes == 0)
        return 0;
    presto__manifest_form form = data[0] % 3 == 0   ? PRESTO__MANIFEST_CSV
                                 : data[0] % 3 == 1 ? PRESTO__MANIFEST_TSV
                                                    : PRESTO__MANIFEST_JSONL;
    if (presto__manifest_parse(presto_span_of(data + 1, bytes - 1), form, &table, &err) < 0) {
        FUZZ_HOLDS(err.message[0] != '\0');
        return 0;
    }
    FUZZ_HOLDS(table.row_count == 0 || table.column_count > 0);
    for (size_t c = 0; c < table.column_count; c++) {
        FUZZ_HOLDS(presto__manifest_find(&table, table.names[c]) == c);
        for (size_t r = 0; r < table.row_count; r++) {
            FUZZ_HOLDS(r == 0 || table.lines[r] > table.lines[r - 1]);
            presto__text_kind kind = presto__manifest_cell_kind(&table, r, c);
            FUZZ_HOLDS(kind <= PRESTO__TEXT_NAN);
            FUZZ_HOLDS(kind != PRESTO__TEXT_FRACTION || table.kinds[c] != PRESTO__TEXT_INTEGER);
        }
    }
    presto__manifest_done(&table);
    return 0;
}
