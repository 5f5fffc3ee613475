/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Numbers by name, for names that come from outside: however they are chosen, finding one takes the
 * same time, for the hash is keyed. Lives in an arena.
 */
#ifndef PRESTO_NAME_TABLE_INTERNAL_H
#define PRESTO_NAME_TABLE_INTERNAL_H

#include <presto/hash.h>

typedef struct presto__name {
    presto_span name;   /* borrowed */
    size_t number_plus; /* the number and one; 0: no name is here */
} presto__name;

/** Zero-initialise: slots is NULL until presto__name_table_make. */
typedef struct presto__name_table {
    presto__name *slots;
    size_t mask;
    presto_hash_key key;
} presto__name_table;

/** Room for `most` names, which presto__name_table_find can then be asked for. */
presto_status presto__name_table_make(presto__name_table *table, size_t most, presto_arena *arena,
                                      presto_error *err);

/** Where the name is, or is to be filled in. */
presto__name *presto__name_table_find(const presto__name_table *table, presto_span name);

#endif
