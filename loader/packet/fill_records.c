/* SPDX-License-Identifier: Apache-2.0 */
/* Puts many raw records at once into a column of strings that has begun. */
#include "columns_internal.h"

static size_t total_bytes(const presto_record *records, size_t count) {
    size_t bytes = 0;
    for (size_t i = 0; i < count; i++)
        bytes += records[i].payload.bytes;
    return bytes;
}

/* Has every row exactly one string, without rules about its length? */
static bool takes_records(const presto__fill *fill) {
    return presto__fill_is_begun(fill) && fill->rows > 0 && fill->count == 1 &&
           fill->columns->kind == PRESTO__COLUMN_STRINGS && !fill->columns->varies &&
           fill->columns->shapes == NULL && fill->columns->rule == NULL;
}

bool presto__fill_put_records(const presto__place *place, const presto_record *records,
                              size_t count) {
    presto__fill *fill = presto__place_fill(place);
    if (!takes_records(fill))
        return false;
    presto__column *column = fill->columns;
    presto__column_tail *values = presto__column_values(place->part, column);
    presto__column_tail *items = presto__column_items(place->part, column);
    size_t bytes = total_bytes(records, count);
    if (presto__tail_reserve(values, bytes, NULL) < 0 ||
        presto__tail_reserve(items, count * sizeof(int64_t), NULL) < 0)
        return false;
    const uint8_t *start = values->data + column->start;
    uint8_t *to = values->data + values->bytes;
    int64_t *items_to = (int64_t *)(void *)(items->data + items->bytes);
    int64_t *ends = column->ends + column->rows + 1;
    int64_t before = column->ends[column->rows];
    for (size_t i = 0; i < count; i++) {
        const presto_span payload = records[i].payload;
        memcpy(to, payload.data, payload.bytes);
        to += payload.bytes;
        items_to[i] = to - start;
        ends[i] = before + (int64_t)i + 1;
    }
    values->bytes += bytes;
    items->bytes += count * sizeof(int64_t);
    column->rows += count;
    fill->rows += count;
    place->part->delivered_bytes += bytes;
    return true;
}
