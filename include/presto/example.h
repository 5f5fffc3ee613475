/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tf.train.Example and TensorProto <-> samples. Parsing makes views: tensor bytes are not copied to
 * be looked at.
 */
#ifndef PRESTO_EXAMPLE_H
#define PRESTO_EXAMPLE_H

#include <presto/tensor.h>

#ifdef __cplusplus
extern "C" {
#endif

/** What is known of the features of an Example. Borrowed. */
typedef struct presto_example_specs {
    const presto_feature_spec *list;
    size_t count;
    bool only_these; /* the values of other features are passed over, whatever they hold; a spec
                        with PRESTO_ENCODE_NONE and rank -1 says no more than the name */
} presto_example_specs;

/**
 * Parse a serialized tf.train.Example into a sample.
 *
 * bytes_list with one value that is a serialized TensorProto cannot be told from other bytes by
 * looking; `specs` (may be NULL) says which features are tensors (encoding PRESTO_ENCODE_TENSOR);
 * those are parsed into numeric tensors whose data points into `in`. All others: bytes_list ->
 * PRESTO_STRING with rank 0 for one value and rank 1 otherwise, int64_list -> PRESTO_INT64,
 * float_list -> PRESTO_FLOAT32, rank 0 for one value (unless the spec of that name says rank 1),
 * rank 1 otherwise. A feature with no kind set has PRESTO_ENCODE_NONE.
 *
 * Accepts: packed and unpacked numbers, any map order, duplicate keys (the last wins), unknown
 *          fields (skipped).
 * Owner:   names, strings and tensor data borrow from `in`; the features array, the strings arrays
 *          and decoded numbers are `arena`'s. sample_out->number is set to 0.
 * Returns: PRESTO_OK; PRESTO_ERR_CORRUPT with the offset within `in`; PRESTO_ERR_MEMORY.
 * Source:  protobuf encoding guide; tensorflow/core/example/{example,feature}.proto.
 */
PRESTO_API presto_status presto_example_parse(presto_span in, const presto_example_specs *specs,
                                              presto_arena *arena, presto_sample *sample_out,
                                              presto_error *err);

/**
 * Append the serialized Example of `sample` to `out`: features sorted by name (bytewise), so that
 * equal samples give equal bytes.
 * Returns: PRESTO_OK, PRESTO_ERR_MEMORY, PRESTO_ERR_LIMIT (over 2 GiB - 1), PRESTO_ERR_TYPE (a
 *          feature whose dtype does not go with its encoding).
 */
PRESTO_API presto_status presto_example_append(presto_buffer *out, const presto_sample *sample,
                                               presto_error *err);

/**
 * Parse a serialized TensorProto. With tensor_content the data is a view into `in`; the typed value
 * fields (float_val, int_val, ..., with TensorFlow's rule that the last value fills the rest) are
 * unpacked into `arena`.
 * Returns: PRESTO_OK; PRESTO_ERR_CORRUPT (bytes do not match dtype and shape, negative dim, bad
 *          wire data); PRESTO_ERR_UNSUPPORTED (a dtype we do not carry).
 * Source:  tensorflow/core/framework/{tensor,tensor_shape,types}.proto.
 */
PRESTO_API presto_status presto_tensor_proto_parse(presto_span in, presto_arena *arena,
                                                   presto_tensor *tensor_out, presto_error *err);

/**
 * Does `in` look like a serialized TensorProto of a numeric dtype whose shape matches its content?
 */
PRESTO_API bool presto_tensor_proto_probe(presto_span in);

#ifdef __cplusplus
}
#endif

#endif
