/* SPDX-License-Identifier: Apache-2.0 */
/* presto-load --raw-records: records of any content, copied frame by frame. */
#ifndef PRESTO_TOOLS_RAW_RECORDS_H
#define PRESTO_TOOLS_RAW_RECORDS_H

#include <presto/stream.h>

#include "sink.h"

typedef struct raw_records_result {
    uint64_t records;
    uint64_t skipped;
} raw_records_result;

/**
 * Write all records of the TFRecord files or dataset at `paths`, in order, as stored: they are not
 * decompressed. Used are the verify level of `input`, and epochs, limit_samples and the error
 * policy of its loader options, which must be set.
 * Returns: PRESTO_OK; PRESTO_END if the reader closed the pipe; PRESTO_ERR_STOPPED; a failure.
 */
presto_status raw_records_run(const char *const *paths, size_t path_count,
                              const presto_stream_options *input, sink *out,
                              raw_records_result *result_out, presto_error *err);

#endif
