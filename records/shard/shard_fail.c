/* SPDX-License-Identifier: Apache-2.0 */
/* Failures of a shard: which file, which record. */
#include "shard_parts_internal.h"

presto_status presto__shard_fail_at(const presto_shard *shard, uint64_t record,
                                    presto_status status, presto_error *err) {
    presto_error_set_file(err, shard->path);
    presto_error_set_record(err, record);
    return status;
}

presto_status presto__shard_fail_short(const presto_shard *shard, uint64_t record, uint64_t end,
                                       presto_error *err) {
    presto_status status =
        presto_fail(err, PRESTO_ERR_TRUNCATED, end,
                    "the file has become shorter: %ju byte%s, %ju when it was opened",
                    (uintmax_t)end, presto_plural(end), (uintmax_t)shard->file_bytes);
    return presto__shard_fail_at(shard, record, status, err);
}
