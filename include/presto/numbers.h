/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Numbers as people read them, the same in every program, message and report. Each function writes
 * into the caller's `text` and returns it. Any thread.
 */
#ifndef PRESTO_NUMBERS_H
#define PRESTO_NUMBERS_H

#include <stdint.h>

#include <presto/api.h>

#ifdef __cplusplus
extern "C" {
#endif

#define PRESTO_TEXT_BYTES 48

/** 1234567 -> "1,234,567". */
PRESTO_API char *presto_format_count(uint64_t count, char text[PRESTO_TEXT_BYTES]);
/**
 * Two or three significant digits, all of those before the point, thousands apart: "0.042", "0.52",
 * "17.3", "1,234". What is negative or no number: "-".
 */
PRESTO_API char *presto_format_number(double value, char text[PRESTO_TEXT_BYTES]);
/** Decimal units, as rates and disks are quoted: "812 B", "190 MB", "1.21 GB". */
PRESTO_API char *presto_format_bytes(double bytes, char text[PRESTO_TEXT_BYTES]);
/** As sizes are given on the command line: "256MiB"; plain bytes where no binary unit fits. */
PRESTO_API char *presto_format_size(uint64_t bytes, char text[PRESTO_TEXT_BYTES]);
/** "1 sample", "2,000 samples". */
PRESTO_API char *presto_format_things(uint64_t count, const char *thing,
                                      char text[PRESTO_TEXT_BYTES]);
/** What ends the name of so many things: "" for one, else "s"; for "%ju byte%s". */
static inline const char *presto_plural(uint64_t count) {
    return count == 1 ? "" : "s";
}
/** "5.1 ms", "0.42 s", "12.3 s", "3 min 20 s", "2 h 05 min". */
PRESTO_API char *presto_format_seconds(double seconds, char text[PRESTO_TEXT_BYTES]);

#ifdef __cplusplus
}
#endif

#endif
