/* SPDX-License-Identifier: Apache-2.0 */
/* libsentencepiece, which is C++, as the bare call of a row. */
#ifndef PRESTO_BENCH_STEPS_SENTENCEPIECE_H
#define PRESTO_BENCH_STEPS_SENTENCEPIECE_H

#include <stdbool.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/** NULL: the file cannot be loaded. */
void *bare_sentencepiece_open(const char *model_path);
/** Makes the ids, and drops them. */
bool bare_sentencepiece_encode(void *state, const char *text, size_t bytes);
void bare_sentencepiece_close(void *state);

#ifdef __cplusplus
}
#endif

#endif
