/* SPDX-License-Identifier: Apache-2.0 */
/* Sums over many terms, and signals cut into periods. */
#include "sums_internal.h"

presto__sums presto__sums_of(presto__sums_fn block, const uint8_t *a, const uint8_t *b,
                             size_t value_bytes, size_t count) {
    if (count <= PRESTO__SUMS_MOST)
        return block(a, b, count);
    size_t half = presto__sums_half(count);
    presto__sums left = presto__sums_of(block, a, b, value_bytes, half);
    presto__sums right = presto__sums_of(block, a + half * value_bytes, b + half * value_bytes,
                                         value_bytes, count - half);
    return (presto__sums){left.first + right.first, left.second + right.second};
}

presto_status presto__periods_expect(const presto_tensor_spec *in, int64_t values, int64_t period,
                                     presto_error *err) {
    char text[PRESTO_SPEC_TEXT_BYTES];
    if (values > 0 && values % period == 0)
        return PRESTO_OK;
    return presto_fail(err, PRESTO_ERR_TYPE, PRESTO_NO_OFFSET,
                       "needs whole periods of %jd values, gets %s", (intmax_t)period,
                       presto_spec_format(in, text, sizeof text));
}
