/* SPDX-License-Identifier: Apache-2.0 */
/* Arrow's types of numbers. */
#include "arrow_types_internal.h"

#include <presto/text.h>

/* The first one of a format is what it is read as. */
static const presto__arrow_number numbers[] = {
    {PRESTO_INT8, "c", false, true, 0},      {PRESTO_UINT8, "C", false, false, 0},
    {PRESTO_INT16, "s", false, true, 0},     {PRESTO_UINT16, "S", false, false, 0},
    {PRESTO_INT32, "i", false, true, 0},     {PRESTO_UINT32, "I", false, false, 0},
    {PRESTO_INT64, "l", false, true, 0},     {PRESTO_UINT64, "L", false, false, 0},
    {PRESTO_FLOAT16, "e", true, true, 0},    {PRESTO_FLOAT32, "f", true, true, 1},
    {PRESTO_FLOAT64, "g", true, true, 2},    {PRESTO_BOOL, "C", false, false, 0},
    {PRESTO_BFLOAT16, "S", false, false, 0},
};
#define NUMBER_COUNT (sizeof numbers / sizeof numbers[0])

const presto__arrow_number *presto__arrow_number_of(presto_dtype dtype) {
    for (size_t i = 0; i < NUMBER_COUNT; i++)
        if (numbers[i].dtype == dtype)
            return &numbers[i];
    return NULL;
}

const char *presto_dtype_arrow(presto_dtype dtype) {
    const presto__arrow_number *number = presto__arrow_number_of(dtype);
    return number == NULL ? NULL : number->format;
}

presto_dtype presto__arrow_dtype(const char *format) {
    for (size_t i = 0; i < NUMBER_COUNT; i++)
        if (strcmp(numbers[i].format, format) == 0)
            return numbers[i].dtype;
    return PRESTO_DTYPE_UNKNOWN;
}

bool presto__arrow_is_utf8(presto_span text) {
    while (text.bytes > 0) {
        uint64_t eight;
        if (text.bytes >= sizeof eight) {
            memcpy(&eight, text.data, sizeof eight);
            if ((eight & UINT64_C(0x8080808080808080)) == 0) {
                text = presto_span_of(text.data + sizeof eight, text.bytes - sizeof eight);
                continue;
            }
        }
        size_t bytes = presto_utf8_bytes(text);
        if (bytes == 0)
            return false;
        text = presto_span_of(text.data + bytes, text.bytes - bytes);
    }
    return true;
}
