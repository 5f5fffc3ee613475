/* SPDX-License-Identifier: Apache-2.0 */
/* What .npy and .safetensors have in common. */
#include "table_internal.h"

#include <presto/numbers.h>

#include "../../base/bytes_internal.h"
#include "../../base/content_internal.h"

/* A number of eight bytes, then JSON. */
static bool is_safetensors(presto_span start) {
    return start.bytes >= 9 && start.data[8] == '{';
}

bool presto__table_is_npy(presto_span start) {
    return start.bytes >= 6 && memcmp(start.data, "\x93NUMPY", 6) == 0;
}

static presto_status fail_no_table(presto_span start, presto_error *err) {
    const presto__content *content = presto__content_of(start);
    if (content == NULL || content->group == PRESTO__CONTENT_ARRAYS)
        return presto_fail(err, PRESTO_ERR_CORRUPT, 0, "neither a .npy nor a .safetensors file");
    return presto__content_refuse(content, PRESTO__CONTENT_ARRAYS, "a .npy or .safetensors file",
                                  err);
}

presto_status presto__table_header_bytes(presto_span start, uint64_t *bytes_out,
                                         presto_error *err) {
    uint64_t bytes;
    if (presto__table_is_npy(start) && start.bytes >= 10 &&
        (start.data[6] == 1 || start.bytes >= 12))
        bytes = start.data[6] == 1 ? 10 + ((uint64_t)start.data[8] | (uint64_t)start.data[9] << 8)
                                   : 12 + (uint64_t)presto__load_u32(start.data + 8);
    else if (is_safetensors(start) && presto__load_u64(start.data) <= UINT64_MAX - 8)
        bytes = 8 + presto__load_u64(start.data);
    else
        return fail_no_table(start, err);
    if (bytes > PRESTO__TABLE_MAX_HEADER_BYTES)
        return presto_fail(err, PRESTO_ERR_LIMIT, 0,
                           "a header of %ju bytes, limit 16 MiB: not a .npy or .safetensors file?",
                           (uintmax_t)bytes);
    *bytes_out = bytes;
    return PRESTO_OK;
}

presto_status presto__table_shape(const int64_t *dims, size_t rank, presto__table *table_out,
                                  presto_error *err) {
    if (rank != 2)
        return presto_fail(err, PRESTO_ERR_TYPE, PRESTO_NO_OFFSET,
                           "an array of %zu dimension%s; a table has 2", rank, presto_plural(rank));
    if (dims[0] < 1 || dims[0] > INT32_MAX || dims[1] < 1 || dims[1] > PRESTO__TABLE_MAX_COLUMNS)
        return presto_fail(err, PRESTO_ERR_LIMIT, PRESTO_NO_OFFSET,
                           "a table of %jd row%s and %jd column%s; it may have 1 to %d and 1 to %d",
                           (intmax_t)dims[0], presto_plural((uint64_t)dims[0]), (intmax_t)dims[1],
                           presto_plural((uint64_t)dims[1]), INT32_MAX, PRESTO__TABLE_MAX_COLUMNS);
    table_out->rows = (uint64_t)dims[0];
    table_out->columns = (uint64_t)dims[1];
    return PRESTO_OK;
}
