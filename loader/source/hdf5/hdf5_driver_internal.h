/* SPDX-License-Identifier: Apache-2.0 */
/* How libhdf5 reads its one file; for hdf5_library.c alone, as it needs the library's headers. */
#ifndef PRESTO_HDF5_DRIVER_INTERNAL_H
#define PRESTO_HDF5_DRIVER_INTERNAL_H

#include "hdf5_internal.h"
#include "hdf5_symbols_internal.h"

/** What a file access list carries for the driver. */
typedef struct presto__hdf5_driver_info {
    presto__hdf5_view *view; /* borrowed as long as the file is open */
} presto__hdf5_driver_info;

/** A driver that shows presto__hdf5_driver_info.view to the library, and nothing else. Metadata is
 * read; of values it only notes where they are. */
extern const H5FD_class_t presto__hdf5_driver;

#endif
