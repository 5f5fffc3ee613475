/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The digest of 128 bits chains Philox4x64-10 (presto/rng.h), which is a bijection of its counter
 * for each key: state' = state ^ philox(key = state, counter = the next 32 bytes), half of its
 * output.
 */
#include "digest_internal.h"
#include "philox_internal.h"

#include <presto/rng.h>

static void mix(presto__digest *digest, const uint64_t block[4]) {
    uint64_t draws[4];
    presto__philox4x64(digest->state, block, draws);
    digest->state[0] ^= draws[0];
    digest->state[1] ^= draws[2];
}

void presto__digest_add(presto__digest *digest, const void *data, size_t bytes) {
    const uint8_t *at = data;
    uint64_t block[4] = {bytes};
    size_t used = sizeof block[0];
    for (size_t done = 0;;) {
        size_t some = bytes - done < sizeof block - used ? bytes - done : sizeof block - used;
        if (some > 0)
            memcpy((uint8_t *)block + used, at + done, some);
        mix(digest, block);
        done += some;
        if (done == bytes)
            return;
        memset(block, 0, sizeof block);
        used = 0;
    }
}

void presto__digest_add_file(presto__digest *digest, const struct stat *info) {
    const int64_t facts[] = {info->st_size, info->st_mtim.tv_sec, info->st_mtim.tv_nsec,
                             info->st_ctim.tv_sec, info->st_ctim.tv_nsec};
    presto__digest_add(digest, facts, sizeof facts);
}
