/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes FlatBuffers, front to back: what Arrow's messages need, and no schema compiler. A table is
 * written before what it points to; the offset is set when the target has its place.
 *
 * After a lack of memory all calls do nothing, and `status` says so.
 * Source: "FlatBuffer Internals" of the FlatBuffers documentation.
 */
#ifndef PRESTO_TOOLS_FLAT_H
#define PRESTO_TOOLS_FLAT_H

#include <presto/presto.h>

/** Zero-initialise; presto_buffer_done(&bytes) frees. */
typedef struct flat {
    presto_buffer bytes;
    presto_status status;
    presto_error *err; /* borrowed; filled on failure */
} flat;

/** A field of a table: a number of so many bytes, 0 if the field is absent. */
typedef struct flat_field {
    size_t bytes;
    int64_t value;
} flat_field;

/* A field that points: flat_point sets it. */
#define FLAT_OFFSET ((flat_field){4, 0})
#define FLAT_ABSENT ((flat_field){0, 0})

/** Append `bytes` zeros, so that the first one's position plus `before` is a multiple of
 * `alignment`. Returns the position. */
size_t flat_room(flat *self, size_t bytes, size_t alignment, size_t before);

/** Write a number of 1 to 8 bytes at a position that there is. */
void flat_set(flat *self, size_t position, int64_t value, size_t bytes);

/** A table with these fields, at most 8. Returns its position, as do those below. */
size_t flat_table(flat *self, const flat_field *fields, size_t count);
size_t flat_string(flat *self, const char *text);
/** A vector of `count` offsets, which flat_point sets. */
size_t flat_offsets(flat *self, size_t count);
/** A vector of structs of `width` int64 each. */
size_t flat_structs(flat *self, const int64_t *numbers, size_t width, size_t count);

/** Where the offset in field `field` of a table is, or in item `item` of a vector. */
static inline size_t flat_in_table(size_t table, size_t field) {
    return table + 4 + 8 * field;
}
static inline size_t flat_in_vector(size_t vector, size_t item) {
    return vector + 4 + 4 * item;
}
/** Set an offset to its target, which stands behind it. */
void flat_point(flat *self, size_t at, size_t target);

#endif
