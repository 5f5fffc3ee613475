/* SPDX-License-Identifier: Apache-2.0 */
/* The table of a file of either kind, and whether the file holds all of it. */
#include "table_internal.h"

#include <presto/numbers.h>

presto_status presto__table_find(presto_span header, uint64_t file_bytes, const char *tensor,
                                 presto__table *table_out, presto_error *err) {
    presto__table table = {0};
    PRESTO_TRY(presto__table_is_npy(header)
                   ? presto__npy_find(header, &table, err)
                   : presto__safetensors_find(header, tensor, &table, err));
    /* At most 2^31 * 2^20 * 4: no overflow. */
    uint64_t bytes = table.rows * table.columns * sizeof(float);
    if (table.offset > file_bytes || bytes > file_bytes - table.offset)
        return presto_fail(
            err, PRESTO_ERR_TRUNCATED, file_bytes,
            "the table of %ju row%s and %ju column%s starts at byte %ju and needs %ju "
            "more, but the file has %ju",
            (uintmax_t)table.rows, presto_plural(table.rows), (uintmax_t)table.columns,
            presto_plural(table.columns), (uintmax_t)table.offset, (uintmax_t)bytes,
            (uintmax_t)file_bytes);
    *table_out = table;
    return PRESTO_OK;
}
