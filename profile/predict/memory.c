/* SPDX-License-Identifier: Apache-2.0 */
/* How many bytes memory takes and gives in a second: copies that no processor cache holds. */
#include "../../base/clock_internal.h"
#include "predict_internal.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

/* Copied at a time, by all threads together and by each: more than a processor's cache holds, whose
 * size a virtual machine does not tell. */
#define BLOCKS_BYTES ((size_t)256 << 20)
#define LEAST_BLOCK_BYTES ((size_t)16 << 20)
#define MOST_BLOCK_BYTES ((size_t)64 << 20)
#define FOR_NS UINT64_C(100000000)

typedef struct copying {
    size_t block_bytes;
    _Atomic uint64_t bytes, ns;
    atomic_bool lacks_memory;
} copying;

static void copy(void *user, unsigned number) {
    copying *job = user;
    size_t block = job->block_bytes;
    char *from = malloc(block), *to = malloc(block);
    if (from == NULL || to == NULL) {
        atomic_store(&job->lacks_memory, true);
        goto out;
    }
    memset(from, (int)number + 1, block);
    memset(to, 0, block);
    uint64_t start = presto__clock_ns(), bytes = 0, now;
    do {
        memcpy(to, from, block);
        from[bytes / block % block]++; /* no two copies are the same */
        bytes += 2 * block;
        now = presto__clock_ns();
    } while (now - start < FOR_NS);
    atomic_fetch_add(&job->bytes, bytes + (to[bytes % block] == 0));
    atomic_fetch_add(&job->ns, now - start);
out:
    free(from);
    free(to);
}

static size_t block_bytes(unsigned threads) {
    size_t block = BLOCKS_BYTES / threads;
    if (block < LEAST_BLOCK_BYTES)
        return LEAST_BLOCK_BYTES;
    return block < MOST_BLOCK_BYTES ? block : MOST_BLOCK_BYTES;
}

static presto_status probe(unsigned threads, double *bytes_per_s_out, presto_error *err) {
    copying job = {.block_bytes = block_bytes(threads)};
    PRESTO_TRY(presto__run_together(threads, copy, &job, err));
    if (atomic_load(&job.lacks_memory))
        return presto_fail_memory(err, 2 * job.block_bytes);
    double mean_s = presto__seconds(atomic_load(&job.ns)) / threads;
    *bytes_per_s_out = (double)atomic_load(&job.bytes) / mean_s;
    return PRESTO_OK;
}

presto_status presto__probe_memory(const presto__runner *runner, unsigned cores,
                                   presto__pair *bytes_per_s_out, presto_error *err) {
    PRESTO_TRY(probe(1, &bytes_per_s_out->one, err));
    PRESTO_TRY(presto__runner_check(runner, err));
    bytes_per_s_out->all = bytes_per_s_out->one;
    return cores > 1 ? probe(cores, &bytes_per_s_out->all, err) : PRESTO_OK;
}
