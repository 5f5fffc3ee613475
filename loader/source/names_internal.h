/* SPDX-License-Identifier: Apache-2.0 */
/* The order of features: by name, bytewise. Part of room source's header. */
#ifndef PRESTO_LOADER_NAMES_INTERNAL_H
#define PRESTO_LOADER_NAMES_INTERNAL_H

#include <string.h>

#include <presto/span.h>

/** Bytewise: < 0, 0 or > 0, as strcmp. Names may hold anything. */
static inline int presto__compare_names(presto_span a, presto_span b) {
    size_t common = a.bytes < b.bytes ? a.bytes : b.bytes;
    int order = common == 0 ? 0 : memcmp(a.data, b.data, common);
    return order != 0 ? order : (a.bytes > b.bytes) - (a.bytes < b.bytes);
}

#endif
