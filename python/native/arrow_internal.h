/* SPDX-License-Identifier: Apache-2.0 */
/* The structs of Arrow's C data and C stream interfaces. Source: the interface's ABI in its
 * specification. */
#ifndef PRESTO_NATIVE_ARROW_INTERNAL_H
#define PRESTO_NATIVE_ARROW_INTERNAL_H

#include "native_internal.h"

typedef struct arrow_schema {
    const char *format, *name, *metadata;
    int64_t flags, child_count;
    struct arrow_schema **children;
    struct arrow_schema *dictionary;
    void (*release)(struct arrow_schema *self);
    void *owned;
} arrow_schema;

typedef struct arrow_array {
    int64_t length, null_count, offset, buffer_count, child_count;
    const void **buffers;
    struct arrow_array **children;
    struct arrow_array *dictionary;
    void (*release)(struct arrow_array *self);
    void *owned;
} arrow_array;

typedef struct arrow_stream {
    int (*get_schema)(struct arrow_stream *self, arrow_schema *out);
    int (*get_next)(struct arrow_stream *self, arrow_array *out);
    const char *(*get_last_error)(struct arrow_stream *self);
    void (*release)(struct arrow_stream *self);
    void *owned;
} arrow_stream;

/** The schema of a batch: a struct of its features. False: `why_out` is static text, or NULL for a
 * lack of memory. */
bool arrow_schema_of(const presto_batch *batch, arrow_schema *schema_out, const char **why_out);
/** False: no memory. */
bool arrow_schema_copy(const arrow_schema *schema, arrow_schema *copy_out);
bool arrow_schema_same(const arrow_schema *a, const arrow_schema *b);
/** The batch as a struct array on its memory. It keeps the batch. False: no memory. Needs the
 * GIL. */
bool arrow_array_of(native_batch *batch, arrow_array *array_out);

#endif
