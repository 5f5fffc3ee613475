/* SPDX-License-Identifier: Apache-2.0 */
/* The function behind presto/rng.h: what it draws is a function of key and counter alone. */
#ifndef PRESTO_BASE_PHILOX_INTERNAL_H
#define PRESTO_BASE_PHILOX_INTERNAL_H

#include <stdint.h>

/** One Philox4x64-10 block: 4 draws from a key and a counter. */
void presto__philox4x64(const uint64_t key[2], const uint64_t counter[4], uint64_t draws_out[4]);

#endif
