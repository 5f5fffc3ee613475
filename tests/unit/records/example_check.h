/* SPDX-License-Identifier: Apache-2.0 */
/* Features made and looked up in tests of examples. */
#ifndef EXAMPLE_CHECK_H
#define EXAMPLE_CHECK_H

#include "../../../base/tensor_internal.h"
#include "presto_check.h"

#include "example.pb-c.h"

static inline const presto_feature *find(const presto_sample *sample, const char *name) {
    size_t at = presto__sample_find(sample, presto_span_of_text(name));
    ck_assert_msg(at != SIZE_MAX, "no feature '%s'", name);
    return &sample->features[at];
}

#endif
