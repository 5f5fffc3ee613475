/* SPDX-License-Identifier: Apache-2.0 */
/* How much memory a JSON text may take is known before a library is asked to parse it. */
#ifndef PRESTO_BASE_JSON_LIMIT_INTERNAL_H
#define PRESTO_BASE_JSON_LIMIT_INTERNAL_H

#include <presto/span.h>

/**
 * Bound the bytes of a JSON text and the weight of its values: a value behind a comma weighs 1, a
 * list or an object 8 more. One of weight is about 32 bytes of memory in jansson, beside the texts.
 *
 * Returns: PRESTO_OK, also if `json` is no JSON; PRESTO_ERR_LIMIT.
 * Threads: any; no shared state. Time: linear.
 */
presto_status presto__json_check(presto_span json, uint64_t max_bytes, size_t max_weight,
                                 presto_error *err);

#endif
