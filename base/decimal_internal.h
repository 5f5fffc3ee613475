/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers in texts that programs read and write: with a point, whatever the locale of the process
 * says. Messages for people need none of this. */
#ifndef PRESTO_BASE_DECIMAL_INTERNAL_H
#define PRESTO_BASE_DECIMAL_INTERNAL_H

#include <stddef.h>

/** As strtod. NaN, and *end_out == text, if the system lacks the memory for it. end_out may be
 * NULL. */
double presto__decimal_parse(const char *text, char **end_out);
/** The float32 that is nearest to the text, which is not always that of the nearest double. */
float presto__decimal_parse_float(const char *text);

/** As snprintf of "%.*g" with `digits`, of a finite value. */
int presto__decimal_format(char *text, size_t room, int digits, double value);

#endif
