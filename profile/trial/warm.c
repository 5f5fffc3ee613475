/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Free memory may have been given back to the host of a virtual machine. It then comes back page by
 * page, as it is touched, and whoever needs it first waits: with a gigabyte, a second and more. A
 * training runs for hours in memory that is there. So memory is touched before epochs are measured.
 *
 * Linux gives back what has been free for two seconds. So what was touched a moment ago is there.
 */
#define _DEFAULT_SOURCE /* MAP_ANONYMOUS, madvise */
#include "trial_internal.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "../../base/clock_internal.h"

/* Memory that was touched so long ago may have been given back. */
#define KEPT_NS UINT64_C(1000000000)
/* Beyond the bytes that are asked for: what workers and steps need. */
#define MORE_BYTES ((uint64_t)64 << 20)
#define MOST_BYTES ((uint64_t)2 << 30)

/* ---- limits of containers ---- */

/* Where a version of cgroups says what a group may use, and what it uses. */
typedef struct group_kind {
    const char *line; /* of the list of groups, as far as the folder */
    const char *below, *most, *used;
} group_kind;

static const group_kind kinds[] = {
    {"0::", "", "memory.max", "memory.current"},
    {"memory:", "/memory", "memory.limit_in_bytes", "memory.usage_in_bytes"},
};

/* UINT64_MAX: the file is not there, or says "max". */
static uint64_t read_bytes(const char *root, const char *folder, const char *name) {
    char path[2 * PATH_MAX], text[32] = "", *end = text;
    int length = snprintf(path, sizeof path, "%s%s/%s", root, folder, name);
    if (length < 0 || (size_t)length >= sizeof path)
        return UINT64_MAX;
    FILE *file = fopen(path, "re");
    if (file == NULL)
        return UINT64_MAX;
    const char *line = fgets(text, sizeof text, file);
    fclose(file);
    errno = 0;
    unsigned long long bytes = line == NULL ? 0 : strtoull(text, &end, 10);
    return end == text || errno != 0 ? UINT64_MAX : bytes;
}

/* Until the limits of the group and those above it. */
static uint64_t room_of(const group_kind *kind, const char *root, char *folder) {
    char below[PATH_MAX];
    uint64_t room = UINT64_MAX;
    int length = snprintf(below, sizeof below, "%s%s", root, kind->below);
    if (length < 0 || (size_t)length >= sizeof below)
        return room;
    for (;;) {
        const char *name = strcmp(folder, "/") == 0 ? "" : folder;
        uint64_t most = read_bytes(below, name, kind->most);
        uint64_t used = read_bytes(below, name, kind->used);
        if (most != UINT64_MAX && used != UINT64_MAX && (most < used || most - used < room))
            room = most < used ? 0 : most - used;
        char *slash = strrchr(folder, '/');
        if (slash == NULL)
            return room;
        *slash = '\0';
    }
}

uint64_t presto__group_room(const char *list, const char *root) {
    char line[PATH_MAX + 64];
    uint64_t room = UINT64_MAX;
    FILE *file = fopen(list, "re");
    while (file != NULL && fgets(line, sizeof line, file) != NULL) {
        line[strcspn(line, "\n")] = '\0';
        for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
            char *at = strstr(line, kinds[i].line);
            if (at == NULL)
                continue;
            uint64_t group = room_of(&kinds[i], root, at + strlen(kinds[i].line));
            room = group < room ? group : room;
        }
    }
    if (file != NULL)
        fclose(file);
    return room;
}

/* ---- memory ---- */

bool presto__is_warm(const presto__warmed *last, uint64_t bytes, uint64_t now_ns) {
    return bytes <= last->bytes && now_ns - last->at_ns < KEPT_NS;
}

void presto__warm_memory(presto__warmed *last, uint64_t bytes) {
    if (presto__is_warm(last, bytes, presto__clock_ns()))
        return;
    long pages = sysconf(_SC_AVPHYS_PAGES), page = sysconf(_SC_PAGESIZE);
    uint64_t most = pages > 0 && page > 0 ? (uint64_t)pages * (uint64_t)page / 2 : 0;
    uint64_t wanted = bytes < MOST_BYTES - MORE_BYTES ? bytes + MORE_BYTES : MOST_BYTES;
    uint64_t room = presto__group_room("/proc/self/cgroup", "/sys/fs/cgroup") / 2;
    most = room < most ? room : most;
    if (wanted > most) /* what is cached stays cached */
        wanted = most;
    if (wanted == 0)
        return;
    uint8_t *memory =
        mmap(NULL, wanted, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        return;
    /* In large pages, as what is given back is: small ones would be those that are at hand. */
    (void)madvise(memory, wanted, MADV_HUGEPAGE);
    for (uint64_t at = 0; at < wanted; at += (uint64_t)page)
        memory[at] = 1;
    (void)munmap(memory, wanted);
    *last = (presto__warmed){bytes, presto__clock_ns()};
}
