/* SPDX-License-Identifier: Apache-2.0 */
/* Texts of specs are read, and features found: beside presto/tensor.h. */
#ifndef PRESTO_TENSOR_INTERNAL_H
#define PRESTO_TENSOR_INTERNAL_H

#include <presto/tensor.h>

/**
 * Inverse of presto_spec_format: a dtype's name, then nothing for a scalar, "[...]" for any shape,
 * or the dims: "uint8[?,?,3]". No blanks.
 * Returns: false if `text` is something else; *spec_out is then untouched.
 */
bool presto__spec_parse(const char *text, presto_tensor_spec *spec_out);

/** Position of the feature called `name`, or SIZE_MAX. */
size_t presto__sample_find(const presto_sample *sample, presto_span name);

#endif
