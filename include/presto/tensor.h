/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tensors and samples: what flows through a pipeline. Both only borrow their bytes.
 */
#ifndef PRESTO_TENSOR_H
#define PRESTO_TENSOR_H

#include <presto/span.h>

#ifdef __cplusplus
extern "C" {
#endif

/* name, value (as in tensorflow.DataType), text, bytes an element, NumPy's type string */
#define PRESTO_DTYPE_LIST(X)                                                                       \
    X(PRESTO_FLOAT32, 1, "float32", 4, "<f4")                                                      \
    X(PRESTO_FLOAT64, 2, "float64", 8, "<f8")                                                      \
    X(PRESTO_INT32, 3, "int32", 4, "<i4")                                                          \
    X(PRESTO_UINT8, 4, "uint8", 1, "|u1")                                                          \
    X(PRESTO_INT16, 5, "int16", 2, "<i2")                                                          \
    X(PRESTO_INT8, 6, "int8", 1, "|i1")                                                            \
    X(PRESTO_STRING, 7, "string", 0, "|S")                                                         \
    X(PRESTO_COMPLEX64, 8, "complex64", 8, "<c8")                                                  \
    X(PRESTO_INT64, 9, "int64", 8, "<i8")                                                          \
    X(PRESTO_BOOL, 10, "bool", 1, "|b1")                                                           \
    X(PRESTO_BFLOAT16, 14, "bfloat16", 2, "<V2")                                                   \
    X(PRESTO_UINT16, 17, "uint16", 2, "<u2")                                                       \
    X(PRESTO_COMPLEX128, 18, "complex128", 16, "<c16")                                             \
    X(PRESTO_FLOAT16, 19, "float16", 2, "<f2")                                                     \
    X(PRESTO_UINT32, 22, "uint32", 4, "<u4")                                                       \
    X(PRESTO_UINT64, 23, "uint64", 8, "<u8")

typedef enum presto_dtype {
    PRESTO_DTYPE_UNKNOWN = 0,
#define PRESTO_DTYPE_ENUM(name, value, text, bytes, numpy) name = value,
    PRESTO_DTYPE_LIST(PRESTO_DTYPE_ENUM)
#undef PRESTO_DTYPE_ENUM
} presto_dtype;

#define PRESTO_MAX_RANK 8

/** "uint8", ...; "unknown" for a value that is not in the list. */
PRESTO_API const char *presto_dtype_name(presto_dtype dtype);
/** Inverse of presto_dtype_name; PRESTO_DTYPE_UNKNOWN if there is none. */
PRESTO_API presto_dtype presto_dtype_by_name(const char *name);
/** Bytes an element; 0 for PRESTO_STRING and unknown values. */
PRESTO_API size_t presto_dtype_bytes(presto_dtype dtype);
/** NumPy's array-protocol type string, e.g. "<f4"; NULL for unknown values. */
PRESTO_API const char *presto_dtype_numpy(presto_dtype dtype);
/**
 * Format string of Arrow's C data interface for numbers side by side, e.g. "f"; NULL: Arrow has
 * none. Booleans are shown as uint8 ("C"), as they are bytes here, and bfloat16 as its bits ("S").
 */
PRESTO_API const char *presto_dtype_arrow(presto_dtype dtype);

/**
 * What is known of a tensor without its data. dims[i] == -1: not known before the data is there;
 * rank == -1: not even the number of dimensions is known.
 */
typedef struct presto_tensor_spec {
    presto_dtype dtype;
    int rank;
    int64_t dims[PRESTO_MAX_RANK];
} presto_tensor_spec;

/**
 * A tensor: row-major, little-endian, contiguous.
 *
 * Numeric dtypes: `data` has presto_tensor_bytes() bytes. PRESTO_STRING: `strings` has one span an
 * element (a scalar, rank 0, has one). `spec` has no -1 here.
 * Owner:   data is borrowed; whoever made the tensor says until when.
 * Alignment: element size is NOT promised (records are parsed in place): read with memcpy or
 *          unaligned loads unless the maker promises more.
 */
typedef struct presto_tensor {
    presto_tensor_spec spec;
    union {
        const void *data;
        const presto_span *strings;
    };
} presto_tensor;

/** Product of the dims, 1 for a scalar; 0 on overflow or if a dim is unknown (-1) or 0. */
PRESTO_API uint64_t presto_spec_elements(const presto_tensor_spec *spec);

/**
 * Bytes of the data of a numeric tensor with this spec; PRESTO_ERR_LIMIT if it does not fit
 * size_t.
 */
PRESTO_API presto_status presto_spec_bytes(const presto_tensor_spec *spec, size_t *bytes_out,
                                           presto_error *err);

/** Same dtype, rank and dims (exactly; -1 equals only -1). */
PRESTO_API bool presto_spec_equal(const presto_tensor_spec *a, const presto_tensor_spec *b);

/**
 * Text such as "uint8[375,500,3]", "-1" printed as "?"; always NUL-terminated.
 * Returns: text_out.
 */
PRESTO_API char *presto_spec_format(const presto_tensor_spec *spec, char *text_out, size_t bytes);

#define PRESTO_SPEC_TEXT_BYTES 224

/** Bytes of a numeric tensor's data (spec is complete and has been checked by whoever made it). */
static inline size_t presto_tensor_bytes(const presto_tensor *tensor) {
    return (size_t)presto_spec_elements(&tensor->spec) * presto_dtype_bytes(tensor->spec.dtype);
}

/** How a feature is stored in a tf.train.Example. */
typedef enum presto_encoding {
    PRESTO_ENCODE_BYTES = 0,  /* PRESTO_STRING <-> bytes_list */
    PRESTO_ENCODE_INT64 = 1,  /* PRESTO_INT64 scalar or vector <-> int64_list */
    PRESTO_ENCODE_FLOAT = 2,  /* PRESTO_FLOAT32 scalar or vector <-> float_list */
    PRESTO_ENCODE_TENSOR = 3, /* numeric tensor <-> bytes_list with one serialized TensorProto */
    PRESTO_ENCODE_NONE = 4    /* a Feature with no kind set; carries no value */
} presto_encoding;

/** "bytes", "int64", "float", "tensor", "none". */
PRESTO_API const char *presto_encoding_name(presto_encoding encoding);

/** A named value of a sample. The name is borrowed like the data. */
typedef struct presto_feature {
    presto_span name;
    presto_encoding encoding;
    presto_tensor tensor;
} presto_feature;

/**
 * A sample: its features (names distinct) and its place.
 * Owner:   the array is the maker's, usually an arena's. Steps change features[main] and leave the
 *          others alone.
 */
typedef struct presto_sample {
    presto_feature *features;
    size_t feature_count;
    uint64_t number; /* 0-based number of the sample in its dataset or source, whatever the order */
} presto_sample;

/** A feature without its value: what datasets and batches declare. */
typedef struct presto_feature_spec {
    char *name; /* owned by whoever owns the array */
    presto_encoding encoding;
    presto_tensor_spec spec;
} presto_feature_spec;

#ifdef __cplusplus
}
#endif

#endif
