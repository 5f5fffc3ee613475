/* SPDX-License-Identifier: Apache-2.0 */
/* Tables of float32 rows in files: where the rows start, told by the first bytes of a file. */
#ifndef PRESTO_STEPS_TABLE_INTERNAL_H
#define PRESTO_STEPS_TABLE_INTERNAL_H

#include <presto/span.h>

/* The longest header of a file: NumPy and safetensors allow more, and write a few hundred bytes. */
#define PRESTO__TABLE_MAX_HEADER_BYTES ((size_t)16 << 20)
#define PRESTO__TABLE_MAX_COLUMNS 1048576

/* float32, little-endian, row after row. */
typedef struct presto__table {
    uint64_t rows;    /* 1 to INT32_MAX */
    uint64_t columns; /* 1 to PRESTO__TABLE_MAX_COLUMNS */
    uint64_t offset;  /* of the first row, bytes from the file's start */
} presto__table;

/** Is it the start of a .npy file? */
bool presto__table_is_npy(presto_span start);

/**
 * How many of the first bytes of a file the header may have, told by its first 16 (or fewer, if
 * the file is shorter). PRESTO_ERR_CORRUPT: neither kind of file. PRESTO_ERR_LIMIT.
 */
presto_status presto__table_header_bytes(presto_span start, uint64_t *bytes_out, presto_error *err);

/**
 * Find the table in a file of `file_bytes` bytes, of which `header` are the first.
 *
 * `tensor` is the name in a .safetensors; NULL: the only one of the file.
 * Returns: PRESTO_OK; PRESTO_ERR_CORRUPT: no such header; PRESTO_ERR_TYPE: not float32, or not of
 *          two dimensions; PRESTO_ERR_TRUNCATED: the file ends before the table;
 *          PRESTO_ERR_NOT_FOUND: no tensor of that name; PRESTO_ERR_LIMIT; PRESTO_ERR_MEMORY.
 * Threads: any; no shared state.
 */
presto_status presto__table_find(presto_span header, uint64_t file_bytes, const char *tensor,
                                 presto__table *table_out, presto_error *err);

/* The two kinds, for presto__table_find. */
presto_status presto__npy_find(presto_span header, presto__table *table_out, presto_error *err);
presto_status presto__safetensors_find(presto_span header, const char *tensor,
                                       presto__table *table_out, presto_error *err);

/** Take the shape: PRESTO_ERR_TYPE unless there are `rank` == 2 dims; PRESTO_ERR_LIMIT. */
presto_status presto__table_shape(const int64_t *dims, size_t rank, presto__table *table_out,
                                  presto_error *err);

#endif
