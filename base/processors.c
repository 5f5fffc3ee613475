/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How many CPUs this process may use: the affinity mask (taskset, Slurm), bounded by the CPU quota
 * of its cgroup and those above it (containers).
 */
#define _GNU_SOURCE /* sched_getaffinity */

#include <presto/processors.h>

#include <errno.h>
#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MASK_CPUS = 8192, LEAST_AUTO = 64, PER_PROCESSOR = 4 };

static unsigned affinity_cpus(void) {
    unsigned cpus = 0;
    cpu_set_t *set = CPU_ALLOC(MASK_CPUS);
    size_t bytes = CPU_ALLOC_SIZE(MASK_CPUS);
    if (set != NULL && sched_getaffinity(0, bytes, set) == 0)
        cpus = (unsigned)CPU_COUNT_S(bytes, set);
    CPU_FREE(set);
    if (cpus == 0) {
        long online = sysconf(_SC_NPROCESSORS_ONLN);
        cpus = online > 0 ? (unsigned)online : 1;
    }
    return cpus;
}

/* cpu.max of one cgroup folder: "QUOTA PERIOD" or "max PERIOD". 0: no limit. */
static unsigned folder_quota(const char *folder) {
    char path[PATH_MAX + 64];
    char text[64] = "";
    snprintf(path, sizeof path, "/sys/fs/cgroup%s/cpu.max", folder);
    FILE *file = fopen(path, "re");
    if (file == NULL)
        return 0;
    const char *line = fgets(text, sizeof text, file);
    fclose(file);
    char *end = NULL;
    errno = 0;
    long long quota = line != NULL ? strtoll(text, &end, 10) : 0;
    long long period = end != NULL && end != text ? strtoll(end, NULL, 10) : 0;
    if (errno != 0 || quota <= 0 || period <= 0 || quota / period > UINT_MAX / 2)
        return 0;
    return (unsigned)((quota + period - 1) / period);
}

static unsigned cgroup_cpus(void) {
    char line[PATH_MAX + 16];
    char folder[PATH_MAX] = "";
    FILE *file = fopen("/proc/self/cgroup", "re");
    if (file == NULL)
        return 0;
    while (fgets(line, sizeof line, file) != NULL) {
        if (strncmp(line, "0::/", 4) != 0)
            continue;
        line[strcspn(line, "\n")] = '\0';
        snprintf(folder, sizeof folder, "%.*s", (int)sizeof folder - 1, line + 3);
    }
    fclose(file);
    unsigned least = 0;
    for (;;) {
        unsigned quota = folder_quota(strcmp(folder, "/") == 0 ? "" : folder);
        if (quota != 0 && (least == 0 || quota < least))
            least = quota;
        char *slash = strrchr(folder, '/');
        if (slash == NULL)
            return least;
        *slash = '\0';
    }
}

unsigned presto_processor_count(void) {
    unsigned cpus = affinity_cpus();
    unsigned quota = cgroup_cpus();
    return quota != 0 && quota < cpus ? quota : cpus;
}

unsigned presto_auto_threads(void) {
    unsigned processors = presto_processor_count();
    return processors < LEAST_AUTO / PER_PROCESSOR ? LEAST_AUTO : processors * PER_PROCESSOR;
}
