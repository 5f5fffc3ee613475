/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libhdf5, loaded when the first HDF5 file is opened. Linked, it would cost every program 10 ms at
 * its start and bring in 40 libraries, among them two of TLS, for a source that few use.
 */
#ifndef PRESTO_HDF5_SYMBOLS_INTERNAL_H
#define PRESTO_HDF5_SYMBOLS_INTERNAL_H

#include <hdf5.h>

#include "hdf5_internal.h"

#if H5_VERSION_GE(1, 13, 0)
#include <H5FDdevelop.h>
#endif

#include <presto/status.h>

/* Constants of the library's headers would call it; H5(open) is called once instead. */
#undef H5CHECK
#define H5CHECK
#undef H5OPEN
#define H5OPEN

/* From 1.12 on, H5Literate is a macro. */
#if H5_VERSION_GE(1, 12, 0)
#define PRESTO__HDF5_ITERATE Literate2
#else
#define PRESTO__HDF5_ITERATE Literate
#endif

/** The functions that are called, without the prefix H5. */
#define PRESTO__HDF5_FUNCTIONS(X)                                                                  \
    X(Dclose)                                                                                      \
    X(Dget_create_plist)                                                                           \
    X(Dget_num_chunks)                                                                             \
    X(Dget_offset)                                                                                 \
    X(Dget_space)                                                                                  \
    X(Dget_type)                                                                                   \
    X(Dopen2)                                                                                      \
    X(Dread_chunk)                                                                                 \
    X(Eclear2)                                                                                     \
    X(Eget_auto2)                                                                                  \
    X(Eset_auto2)                                                                                  \
    X(Ewalk2)                                                                                      \
    X(FDregister)                                                                                  \
    X(FDunregister)                                                                                \
    X(Fclose)                                                                                      \
    X(Fopen)                                                                                       \
    X(PRESTO__HDF5_ITERATE)                                                                        \
    X(PLget_loading_state)                                                                         \
    X(PLset_loading_state)                                                                         \
    X(Pclose)                                                                                      \
    X(Pcreate)                                                                                     \
    X(Pfill_value_defined)                                                                         \
    X(Pget_chunk)                                                                                  \
    X(Pget_chunk_opts)                                                                             \
    X(Pget_driver_info)                                                                            \
    X(Pget_external_count)                                                                         \
    X(Pget_fill_value)                                                                             \
    X(Pget_filter2)                                                                                \
    X(Pget_layout)                                                                                 \
    X(Pget_nfilters)                                                                               \
    X(Pset_driver)                                                                                 \
    X(Sclose)                                                                                      \
    X(Sget_simple_extent_dims)                                                                     \
    X(Sget_simple_extent_ndims)                                                                    \
    X(Sget_simple_extent_type)                                                                     \
    X(Tclose)                                                                                      \
    X(Tequal)                                                                                      \
    X(Tget_class)                                                                                  \
    X(Tget_fields)                                                                                 \
    X(Tget_offset)                                                                                 \
    X(Tget_order)                                                                                  \
    X(Tget_precision)                                                                              \
    X(Tget_size)                                                                                   \
    X(dont_atexit)                                                                                 \
    X(open)

/** The variables that are read: kinds of failures, types of numbers, a class of property lists. */
#define PRESTO__HDF5_VARIABLES(X)                                                                  \
    X(E_RESOURCE_g)                                                                                \
    X(E_NOSPACE_g)                                                                                 \
    X(E_CANTALLOC_g)                                                                               \
    X(T_IEEE_F64LE_g)                                                                              \
    X(T_IEEE_F64BE_g)                                                                              \
    X(T_IEEE_F32LE_g)                                                                              \
    X(T_IEEE_F32BE_g)                                                                              \
    X(T_STD_I32LE_g)                                                                               \
    X(T_STD_I32BE_g)                                                                               \
    X(T_STD_U32LE_g)                                                                               \
    X(T_STD_U32BE_g)                                                                               \
    X(T_STD_I16LE_g)                                                                               \
    X(T_STD_I16BE_g)                                                                               \
    X(T_STD_U16LE_g)                                                                               \
    X(T_STD_U16BE_g)                                                                               \
    X(T_STD_I8LE_g)                                                                                \
    X(T_STD_I8BE_g)                                                                                \
    X(T_STD_U8LE_g)                                                                                \
    X(T_STD_U8BE_g)                                                                                \
    X(T_NATIVE_DOUBLE_g)                                                                           \
    X(P_CLS_FILE_ACCESS_ID_g)

/** One pointer a function and a variable. */
typedef struct presto__hdf5_symbols {
#define PRESTO__HDF5_NAMED(name) __typeof__(&H5##name) name;
#define PRESTO__HDF5_MEMBER(name) PRESTO__HDF5_NAMED(name) /* after macros in it are replaced */
    PRESTO__HDF5_FUNCTIONS(PRESTO__HDF5_MEMBER)
    PRESTO__HDF5_VARIABLES(PRESTO__HDF5_MEMBER)
#undef PRESTO__HDF5_MEMBER
#undef PRESTO__HDF5_NAMED
} presto__hdf5_symbols;

/** Written once, by presto__hdf5_load. */
extern presto__hdf5_symbols presto__hdf5;

/** A function of the library, and the value of one of its variables once it is open:
 * H5(Dclose)(set) for H5Dclose(set), H5_VALUE(T_IEEE_F64LE) for H5T_IEEE_F64LE. */
#define H5(name) (*presto__hdf5.name)
#define H5_VALUE(name) (*presto__hdf5.name##_g)

/**
 * Load the library that this program was built for. It stays until the process ends.
 * Returns: PRESTO_OK; PRESTO_ERR_UNSUPPORTED: it cannot be loaded, and why.
 * Threads: one at a time.
 */
presto_status presto__hdf5_load(presto_error *err);

/* ---- hdf5_driver.c: how the library reads its one file ---- */

/** What a file access list carries for the driver. */
typedef struct presto__hdf5_driver_info {
    presto__hdf5_view *view; /* borrowed as long as the file is open */
} presto__hdf5_driver_info;

/** A driver that shows presto__hdf5_driver_info.view to the library, and nothing else. Metadata is
 * read; of values it only notes where they are. */
extern const H5FD_class_t presto__hdf5_driver;

#endif
