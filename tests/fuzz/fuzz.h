/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A fuzz target is one file with LLVMFuzzerTestOneInput. With clang and PRESTO_FUZZ it is linked to
 * libFuzzer; in every build it is linked to replay.c, which runs the corpus.
 */
#ifndef PRESTO_FUZZ_H
#define PRESTO_FUZZ_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

/** A condition that must hold for any input. Not an assert, which release builds leave out. */
#define FUZZ_HOLDS(condition)                                                                      \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "%s:%d: %s does not hold\n", __FILE__, __LINE__, #condition);          \
            abort();                                                                               \
        }                                                                                          \
    } while (0)

#endif
