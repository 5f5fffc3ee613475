/* SPDX-License-Identifier: Apache-2.0 */
/* A hash table of names, open addressing, at most half full. */
#include "../../base/checked_internal.h"
#include "example_internal.h"

presto_status presto__name_table_make(presto__name_table *table, size_t most, presto_arena *arena,
                                      presto_error *err) {
    size_t count = 64, bytes = SIZE_MAX;
    while (count / 2 < most && count <= SIZE_MAX / 2)
        count *= 2;
    presto__name *slots = NULL;
    if (presto__size_multiply(count, sizeof *slots, &bytes))
        slots = presto_arena_alloc(arena, bytes, _Alignof(presto__name));
    if (slots == NULL)
        return presto_fail_memory(err, bytes);
    memset((void *)slots, 0, bytes);
    *table =
        (presto__name_table){.slots = slots, .mask = count - 1, .key = presto__hash_process_key()};
    return PRESTO_OK;
}

presto__name *presto__name_table_find(const presto__name_table *table, presto_span name) {
    size_t at = (size_t)presto__hash(table->key, name) & table->mask;
    while (table->slots[at].number_plus != 0 && !presto_span_equal(table->slots[at].name, name))
        at = (at + 1) & table->mask;
    return &table->slots[at];
}
