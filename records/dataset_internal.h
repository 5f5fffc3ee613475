/* SPDX-License-Identifier: Apache-2.0 */
/* What writing and reading dataset.json share. */
#ifndef PRESTO_DATASET_INTERNAL_H
#define PRESTO_DATASET_INTERNAL_H

#include <presto/dataset.h>

#include <jansson.h>

#define PRESTO__DATASET_FORMAT "presto-dataset"

/** Did json_load* fail for want of memory? jansson's error says nothing then, or says so. */
static inline bool presto__json_ran_out(const json_error_t *where) {
    return where->text[0] == '\0' || json_error_code(where) == json_error_out_of_memory;
}

/** Sorts the names; one that stands there twice, or NULL. */
const char *presto__find_double(const char **names, size_t count);

#endif
