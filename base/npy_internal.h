/* SPDX-License-Identifier: Apache-2.0 */
/* NumPy's .npy files: one array in memory. */
#ifndef PRESTO_BASE_NPY_INTERNAL_H
#define PRESTO_BASE_NPY_INTERNAL_H

#include <presto/tensor.h>

/** What the header of a .npy file says, whether or not anybody reads such an array. */
typedef struct presto__npy_header {
    char type[32];           /* "<f4"; of an array of structures: "" */
    presto_tensor_spec spec; /* dtype unknown where Presto has none for `type` */
    bool is_fortran;
    size_t data_at; /* the values start here */
} presto__npy_header;

/**
 * Read the header at the start of `head`, which need not be the whole file.
 * Returns: as presto__npy_parse, but for _UNSUPPORTED.
 */
presto_status presto__npy_read_header(presto_span head, presto__npy_header *header_out,
                                      presto_error *err);

/**
 * The array that `file` holds, as it stands there: *tensor_out borrows from `file`, and is aligned
 * as that is (the values start at a multiple of 16 bytes, or 64 since NumPy 1.14).
 *
 * Returns: PRESTO_OK. Or with the byte in `file`: PRESTO_ERR_TYPE (no .npy), _CORRUPT, _TRUNCATED,
 *          _LIMIT (a header over 64 KiB), _UNSUPPORTED, naming what it is: Fortran order, Python
 *          objects, structures, texts, big-endian values, more than PRESTO_MAX_RANK dimensions.
 * Threads: any; no shared state.
 * Source:  numpy.lib.format, versions 1.0 to 3.0.
 */
presto_status presto__npy_parse(presto_span file, presto_tensor *tensor_out, presto_error *err);

#endif
