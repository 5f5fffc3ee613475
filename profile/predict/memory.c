/* SPDX-License-Identifier: Apache-2.0 */
/* How many bytes memory takes and gives in a second: copies that no processor cache holds. */
#include "../../base/clock_internal.h"
#include "predict_internal.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

/* Copied by each thread at a time: more than its part of the processor's cache. */
#define BLOCK_BYTES ((size_t)16 << 20)
#define FOR_NS UINT64_C(60000000)

typedef struct copying {
    _Atomic uint64_t bytes, ns;
    atomic_bool lacks_memory;
} copying;

static void copy(void *user, unsigned number) {
    copying *job = user;
    char *from = malloc(BLOCK_BYTES), *to = malloc(BLOCK_BYTES);
    if (from == NULL || to == NULL) {
        atomic_store(&job->lacks_memory, true);
        goto out;
    }
    memset(from, (int)number + 1, BLOCK_BYTES);
    memset(to, 0, BLOCK_BYTES);
    uint64_t start = presto__clock_ns(), bytes = 0, now;
    do {
        memcpy(to, from, BLOCK_BYTES);
        from[bytes / BLOCK_BYTES % BLOCK_BYTES]++; /* no two copies are the same */
        bytes += 2 * BLOCK_BYTES;
        now = presto__clock_ns();
    } while (now - start < FOR_NS);
    atomic_fetch_add(&job->bytes, bytes + (to[bytes % BLOCK_BYTES] == 0));
    atomic_fetch_add(&job->ns, now - start);
out:
    free(from);
    free(to);
}

static presto_status probe(unsigned threads, double *bytes_per_s_out, presto_error *err) {
    copying job = {0};
    PRESTO_TRY(presto__run_together(threads, copy, &job, err));
    if (atomic_load(&job.lacks_memory))
        return presto_fail_memory(err, 2 * BLOCK_BYTES);
    double mean_s = presto__seconds(atomic_load(&job.ns)) / threads;
    *bytes_per_s_out = (double)atomic_load(&job.bytes) / mean_s;
    return PRESTO_OK;
}

presto_status presto__probe_memory(unsigned cores, presto__pair *bytes_per_s_out,
                                   presto_error *err) {
    PRESTO_TRY(probe(1, &bytes_per_s_out->one, err));
    bytes_per_s_out->all = bytes_per_s_out->one;
    return cores > 1 ? probe(cores, &bytes_per_s_out->all, err) : PRESTO_OK;
}
