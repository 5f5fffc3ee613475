/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Free memory may have been given back to the host of a virtual machine. It then comes back page by
 * page, as it is touched, and whoever needs it first waits: with a gigabyte, a second and more. A
 * training runs for hours in memory that is there. So memory is touched before epochs are measured.
 */
#define _DEFAULT_SOURCE /* MAP_ANONYMOUS, madvise */
#include "trial_internal.h"

#include <sys/mman.h>
#include <unistd.h>

/* Beyond the bytes that are read: batches under way. */
#define MORE_BYTES ((uint64_t)64 << 20)
#define MOST_BYTES ((uint64_t)1 << 30)

void presto__warm_memory(uint64_t bytes) {
    long pages = sysconf(_SC_AVPHYS_PAGES), page = sysconf(_SC_PAGESIZE);
    uint64_t most = pages > 0 && page > 0 ? (uint64_t)pages * (uint64_t)page / 2 : 0;
    uint64_t wanted = bytes < MOST_BYTES - MORE_BYTES ? bytes + MORE_BYTES : MOST_BYTES;
    if (wanted > most) /* what is cached stays cached */
        wanted = most;
    if (wanted == 0)
        return;
    uint8_t *room = mmap(NULL, wanted, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (room == MAP_FAILED)
        return;
    /* In large pages, as what is given back is: small ones would be those that are at hand. */
    (void)madvise(room, wanted, MADV_HUGEPAGE);
    for (uint64_t at = 0; at < wanted; at += (uint64_t)page)
        room[at] = 1;
    (void)munmap(room, wanted);
}
