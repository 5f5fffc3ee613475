/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Arrow's types of numbers, in the letters of its C interface and in the words of its IPC format:
 * one table for what is written and what is read. presto_dtype_arrow gives the letters.
 *
 * Source: Arrow's "The Arrow C data interface", format strings; format/Schema.fbs.
 */
#ifndef PRESTO_BASE_ARROW_TYPES_INTERNAL_H
#define PRESTO_BASE_ARROW_TYPES_INTERNAL_H

#include <presto/tensor.h>

/** A type of numbers. */
typedef struct presto__arrow_number {
    presto_dtype dtype;
    const char *format; /* of the C interface */
    bool is_float;      /* FloatingPoint in IPC, else Int */
    bool is_signed;     /* of Int */
    int precision;      /* of FloatingPoint: 0 half, 1 single, 2 double */
} presto__arrow_number;

/** How values of the dtype are shown; NULL: Arrow has no such numbers. Booleans are bits there, and
 * bytes here; bfloat16 is shown as its bits. */
const presto__arrow_number *presto__arrow_number_of(presto_dtype dtype);

/** The dtype of a format; PRESTO_DTYPE_UNKNOWN: it is none of numbers that stand side by side. */
presto_dtype presto__arrow_dtype(const char *format);

/** Is all of it UTF-8, as Arrow's texts and names are? */
bool presto__arrow_is_utf8(presto_span text);

#endif
