/* SPDX-License-Identifier: Apache-2.0 */
/* Times as servers write them. */
#ifndef PRESTO_CALENDAR_INTERNAL_H
#define PRESTO_CALENDAR_INTERNAL_H

#include <stdint.h>

#include <presto/span.h>

/** Days since 1970 of a date of the Gregorian calendar. */
int64_t presto__calendar_days(int64_t year, int64_t month, int64_t day);

/**
 * Seconds since 1970 of a time as ISO 8601 has it: "2026-01-31T23:59:59Z", with a fraction, with an
 * offset ("+01:00"), or with "UTC" behind; without any of these it is UTC. False: it is none.
 */
bool presto__calendar_parse(presto_span text, int64_t *seconds_out);

/** "2026-01-31T23:59:59Z" */
#define PRESTO__CALENDAR_TEXT_BYTES 32
void presto__calendar_text(int64_t seconds, char text_out[PRESTO__CALENDAR_TEXT_BYTES]);

#endif
