/* SPDX-License-Identifier: Apache-2.0 */
/* A table in a .npy file: a matrix of float32, in C order. */
#include "table_internal.h"

#include "../../base/npy_internal.h"

presto_status presto__npy_find(presto_span header, presto__table *table_out, presto_error *err) {
    presto__npy_header npy;
    PRESTO_TRY(presto__npy_read_header(header, &npy, err));
    if (npy.type[0] == '\0')
        return presto_fail(err, PRESTO_ERR_TYPE, PRESTO_NO_OFFSET,
                           "an array of records; a table has the type '<f4'");
    if (npy.spec.dtype != PRESTO_FLOAT32)
        return presto_fail(err, PRESTO_ERR_TYPE, PRESTO_NO_OFFSET,
                           "an array of type '%s'; a table has '<f4' (float32, little-endian)",
                           npy.type);
    if (npy.is_fortran)
        return presto_fail(err, PRESTO_ERR_TYPE, PRESTO_NO_OFFSET,
                           "an array in Fortran order; a table has C order: "
                           "numpy.ascontiguousarray makes it so");
    PRESTO_TRY(presto__table_shape(npy.spec.dims, (size_t)npy.spec.rank, table_out, err));
    table_out->offset = npy.data_at;
    return PRESTO_OK;
}
