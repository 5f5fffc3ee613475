/* SPDX-License-Identifier: Apache-2.0 */
/* A CSV of labels, as numbers or names and as classes: every row is found again, under its
 * label. */
#include "fuzz.h"

#include <string.h>

#include "source/core/source_internal.h"

static void check(presto__labels *labels, bool are_classes) {
    FUZZ_HOLDS(!are_classes || (labels->names != NULL && !labels->are_fractions));
    for (size_t i = 1; i < labels->name_count; i++)
        FUZZ_HOLDS(strcmp(labels->names[i - 1], labels->names[i]) < 0);
    for (size_t i = 0; i < labels->count; i++) {
        const presto__label_row *row = &labels->rows[i];
        FUZZ_HOLDS(row->path[0] != '\0' && row->text[0] != '\0' && row->line > 0);
        FUZZ_HOLDS(i == 0 || strcmp(labels->rows[i - 1].path, row->path) < 0);
        FUZZ_HOLDS(presto__labels_find(labels, row->path) == row);
        if (labels->names == NULL)
            continue;
        FUZZ_HOLDS(row->label >= 0 && (uint64_t)row->label < labels->name_count);
        FUZZ_HOLDS(strcmp(labels->names[row->label], row->text) == 0);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes) {
    for (int are_classes = 0; are_classes < 2; are_classes++) {
        presto__labels labels = {0};
        presto_error err;
        if (presto__labels_parse(presto_span_of(data, bytes), "labels.csv", are_classes != 0,
                                 &labels, &err) == PRESTO_OK)
            check(&labels, are_classes != 0);
        else
            FUZZ_HOLDS(labels.rows == NULL && labels.names == NULL);
        presto__labels_done(&labels);
    }
    return 0;
}
