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

/** Append a serialized TensorProto (dtype, shape, tensor_content; string_val for strings). */
PRESTO_API presto_status presto_tensor_proto_append(presto_buffer *out, const presto_tensor *tensor,
                                                    presto_error *err);

/* ---- many Examples that are alike ---- */

/**
 * What the Examples before looked like: names and order. The records of a dataset are mostly alike,
 * so that the next one is compared with what is remembered, byte by byte, instead of being parsed.
 *
 * Memory:  at most 2 MiB, whatever the Examples hold.
 * Threads: one at a time.
 */
typedef struct presto_example_layout presto_example_layout;

/**
 * A layout that knows no Example. `specs` as in presto_example_parse; may be NULL.
 * Owner:   caller (presto_example_layout_free); borrows specs->list until then.
 * Returns: PRESTO_OK; PRESTO_ERR_MEMORY.
 */
PRESTO_API presto_status presto_example_layout_new(const presto_example_specs *specs,
                                                   presto_example_layout **layout_out,
                                                   presto_error *err);

/** NULL is fine. */
PRESTO_API void presto_example_layout_free(presto_example_layout *layout);

/**
 * presto_example_parse with the layout's specs: the same sample, the same errors, faster if the
 * Example is like those before. An Example that is not is remembered.
 */
PRESTO_API presto_status presto_example_layout_parse(presto_example_layout *layout, presto_span in,
                                                     presto_arena *arena, presto_sample *sample_out,
                                                     presto_error *err);

/** A feature of an Example, not decoded. */
typedef struct presto_example_value {
    uint32_t feature;         /* number of the name in the layout */
    uint32_t string_count;    /* of PRESTO_ENCODE_BYTES */
    presto_encoding encoding; /* TENSOR: by its spec; NONE: no kind is set */
    bool is_vector;           /* by its spec: a single value has rank 1, not 0 */
    uint32_t name_bytes;      /* see presto_example_value_name */
    uint32_t name_before;     /* how many bytes before `bytes` the name is */
    presto_span
        bytes; /* FLOAT: the numbers. INT64: varints, see presto_example_value_int64s. TENSOR:
                        * the TensorProto. BYTES: the string if string_count is 1, else the
                        * BytesList */
} presto_example_value;

/** The features of an Example in its order, without those that only_these leaves out. */
typedef struct presto_example_values {
    const presto_example_value *list; /* the layout's, until its next call */
    size_t count;
    size_t feature_count; /* names in the layout; feature is below */
    uint64_t generation;  /* changes when names are numbered anew; not 0 */
    uint64_t order;       /* not 0: all lists of this order have the same features, encodings and
                           * string counts at the same places */
} presto_example_values;

/** The name of the feature, in the Example. */
static inline presto_span presto_example_value_name(const presto_example_value *value) {
    return presto_span_of(value->bytes.data - value->name_before, value->name_bytes);
}

/**
 * Find the values of an Example without decoding them.
 * Owner:   bytes borrow from `in`.
 * Returns: false if the Example is not like those that the layout knows, or not of the usual form
 *          (map entries with key before value, one list per feature, numbers packed in one run,
 *          each name once). It may still be good: use presto_example_layout_parse.
 */
PRESTO_API bool presto_example_layout_match(presto_example_layout *layout, presto_span in,
                                            presto_example_values *values_out);

/** How many numbers or strings the value has, if its numbers are well-formed. */
PRESTO_API size_t presto_example_value_count(const presto_example_value *value);

/**
 * Decode an INT64 value of presto_example_layout_match into `count` numbers. False: there are not
 * exactly as many, or they are malformed; numbers_out may be overwritten.
 */
PRESTO_API bool presto_example_value_int64s(const presto_example_value *value, size_t count,
                                            int64_t *numbers_out);

/**
 * The next string of a BYTES value with any number of strings. *at_io is 0 at first. False: there
 * are no more.
 */
PRESTO_API bool presto_example_value_next(const presto_example_value *value, size_t *at_io,
                                          presto_span *string_out);

#ifdef __cplusplus
}
#endif

#endif
