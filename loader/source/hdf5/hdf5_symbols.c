/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE /* RTLD_DEFAULT */
#include <dlfcn.h>
#include <stddef.h>
#include <string.h>

#include "hdf5_symbols_internal.h"

presto__hdf5_symbols presto__hdf5;

/* Where the address of a symbol goes. */
typedef struct place {
    const char *symbol;
    size_t offset; /* in presto__hdf5_symbols */
} place;

#define NAMED_PLACE(name) {"H5" #name, offsetof(presto__hdf5_symbols, name)},
#define PLACE(name) NAMED_PLACE(name) /* after macros in it are replaced */
static const place places[] = {PRESTO__HDF5_FUNCTIONS(PLACE) PRESTO__HDF5_VARIABLES(PLACE)};

/* It is tried once: where memory has run out within dlopen, another thread that calls it may wait for
 * ever (presto__hdf5_begin). */
static presto_error failure;

static presto_status fail_load(presto_error *err) {
    if (failure.status >= 0) {
        const char *why = dlerror();
        (void)presto_fail(&failure, PRESTO_ERR_UNSUPPORTED, PRESTO_NO_OFFSET,
                          "HDF5 files need " PRESTO_HDF5_SONAME ", which cannot be loaded: %s",
                          why != NULL ? why : "no reason is given");
    }
    if (err != NULL)
        *err = failure;
    return failure.status;
}

presto_status presto__hdf5_load(presto_error *err) {
    static bool is_loaded;
    if (is_loaded)
        return PRESTO_OK;
    if (failure.status < 0)
        return fail_load(err);
    void *library = dlopen(PRESTO_HDF5_SONAME, RTLD_NOW | RTLD_LOCAL);
    if (library == NULL)
        return fail_load(err);
    /* A program that links the library itself may hold copies of its variables, which are the ones
     * in use then. */
    void *scope = library;
    if (dlsym(RTLD_DEFAULT, "H5open") == dlsym(library, "H5open"))
        scope = RTLD_DEFAULT;
    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
        void *symbol = dlsym(scope, places[i].symbol);
        if (symbol == NULL)
            return fail_load(err);
        memcpy((char *)&presto__hdf5 + places[i].offset, &symbol, sizeof symbol);
    }
    is_loaded = true;
    return PRESTO_OK;
}
