/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Figures of the process and of the machine, from getrusage and /proc. A figure that this system
 * does not provide is NaN, never a guess. All figures are for the whole process: one sweep at a
 * time, nothing beside it.
 */
#define _GNU_SOURCE
#include "../../base/clock_internal.h"
#include "trial_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

/* The number that follows `key` at the start of a line of a /proc file; NaN if there is none. */
static double proc_value(const char *path, const char *key) {
    FILE *file = fopen(path, "re");
    if (file == NULL)
        return NAN;
    char line[512];
    double value = NAN;
    size_t length = strlen(key);
    while (fgets(line, sizeof line, file) != NULL) {
        if (strncmp(line, key, length) != 0)
            continue;
        char *end;
        double number = strtod(line + length, &end);
        if (end != line + length)
            value = number;
        break;
    }
    fclose(file);
    return value;
}

/* The line "cpu" of /proc/stat: clock ticks, summed over the CPUs, by state. */
static void machine_times(presto__usage *usage) {
    enum { USER, NICE, SYSTEM, IDLE, IOWAIT, IRQ, SOFTIRQ, STEAL, STATES };
    usage->machine_iowait_s = usage->machine_steal_s = usage->machine_busy_s = NAN;
    FILE *file = fopen("/proc/stat", "re");
    if (file == NULL)
        return;
    double s[STATES];
    int got = fscanf(file, "cpu %lf %lf %lf %lf %lf %lf %lf %lf", &s[USER], &s[NICE], &s[SYSTEM],
                     &s[IDLE], &s[IOWAIT], &s[IRQ], &s[SOFTIRQ], &s[STEAL]);
    if (got == STATES) {
        double ticks_per_s = (double)sysconf(_SC_CLK_TCK);
        usage->machine_iowait_s = s[IOWAIT] / ticks_per_s;
        usage->machine_steal_s = s[STEAL] / ticks_per_s;
        usage->machine_busy_s = (s[USER] + s[NICE] + s[SYSTEM] + s[IRQ] + s[SOFTIRQ]) / ticks_per_s;
    }
    fclose(file);
}

static double seconds_of(struct timeval time) {
    return (double)time.tv_sec + (double)time.tv_usec * 1e-6;
}

static void take_usage(presto__usage *usage) {
    struct rusage own;
    memset(&own, 0, sizeof own);
    getrusage(RUSAGE_SELF, &own);
    usage->cpu_user_s = seconds_of(own.ru_utime);
    usage->cpu_system_s = seconds_of(own.ru_stime);
    usage->context_switches = (double)own.ru_nvcsw + (double)own.ru_nivcsw;
    usage->disk_read_bytes = proc_value("/proc/self/io", "read_bytes:");
    machine_times(usage);
}

static double resident_bytes(void) {
    FILE *file = fopen("/proc/self/statm", "re");
    if (file == NULL)
        return NAN;
    double pages = NAN;
    if (fscanf(file, "%*u %lf", &pages) != 1)
        pages = NAN;
    fclose(file);
    return pages * (double)sysconf(_SC_PAGESIZE);
}

/* Writing 5 to clear_refs resets the peak of the resident set to its present size (Linux 4.0). */
static bool reset_peak(void) {
    int file = open("/proc/self/clear_refs", O_WRONLY | O_CLOEXEC);
    if (file < 0)
        return false;
    bool done = write(file, "5", 1) == 1;
    close(file);
    return done;
}

void presto__watch_start(presto__watch *watch) {
    watch->peak_is_reset = reset_peak();
    watch->peak_rss_bytes = watch->peak_is_reset ? 0 : resident_bytes();
    take_usage(&watch->start);
    watch->start.wall_ns = presto__clock_ns();
}

void presto__watch_sample(presto__watch *watch) {
    if (!watch->peak_is_reset)
        watch->peak_rss_bytes = fmax(watch->peak_rss_bytes, resident_bytes());
}

void presto__watch_stop(presto__watch *watch, uint64_t wall_ns, presto__measure *measure_out) {
    presto__usage end;
    take_usage(&end);
    const presto__usage *start = &watch->start;
    presto__watch_sample(watch);
    if (watch->peak_is_reset)
        watch->peak_rss_bytes = proc_value("/proc/self/status", "VmHWM:") * 1024;
    *measure_out = (presto__measure){
        .wall_s = (double)(wall_ns - start->wall_ns) * 1e-9,
        .cpu_user_s = end.cpu_user_s - start->cpu_user_s,
        .cpu_system_s = end.cpu_system_s - start->cpu_system_s,
        .context_switches = end.context_switches - start->context_switches,
        .disk_read_bytes = end.disk_read_bytes - start->disk_read_bytes,
        .machine_iowait_s = end.machine_iowait_s - start->machine_iowait_s,
        .machine_steal_s = end.machine_steal_s - start->machine_steal_s,
        .machine_busy_s = end.machine_busy_s - start->machine_busy_s,
        .peak_rss_bytes = watch->peak_rss_bytes,
    };
}

void presto__measure_add(presto__measure *sum, const presto__measure *more) {
    sum->wall_s += more->wall_s;
    sum->cpu_user_s += more->cpu_user_s;
    sum->cpu_system_s += more->cpu_system_s;
    sum->context_switches += more->context_switches;
    sum->disk_read_bytes += more->disk_read_bytes;
    sum->machine_iowait_s += more->machine_iowait_s;
    sum->machine_steal_s += more->machine_steal_s;
    sum->machine_busy_s += more->machine_busy_s;
    sum->peak_rss_bytes = fmax(sum->peak_rss_bytes, more->peak_rss_bytes);
}

double presto__others_s(const presto__measure *measure) {
    return measure->machine_busy_s - measure->cpu_user_s - measure->cpu_system_s;
}

/* ---- facts ---- */

double presto__machine_cpus(void) {
    long online = sysconf(_SC_NPROCESSORS_ONLN);
    return online > 0 ? (double)online : 1;
}

static void cpu_model(char *text_out, size_t bytes) {
    snprintf(text_out, bytes, "unknown");
    FILE *file = fopen("/proc/cpuinfo", "re");
    if (file == NULL)
        return;
    char line[512];
    while (fgets(line, sizeof line, file) != NULL) {
        const char *colon = strchr(line, ':');
        if (colon == NULL || strncmp(line, "model name", 10) != 0)
            continue;
        colon += 1 + strspn(colon + 1, " \t");
        snprintf(text_out, bytes, "%.*s", (int)strcspn(colon, "\n"), colon);
        break;
    }
    fclose(file);
}

/* In mountinfo, blanks and backslashes of mount points are written as three octal digits. */
static void unescape_octal(char *text) {
    char *out = text;
    for (const char *in = text; *in != '\0';) {
        if (in[0] == '\\' && in[1] >= '0' && in[1] <= '3' && in[2] >= '0' && in[2] <= '7' &&
            in[3] >= '0' && in[3] <= '7') {
            *out++ = (char)((in[1] - '0') * 64 + (in[2] - '0') * 8 + (in[3] - '0'));
            in += 4;
        } else {
            *out++ = *in++;
        }
    }
    *out = '\0';
}

static bool is_below(const char *path, const char *folder) {
    size_t length = strlen(folder);
    if (length == 1)
        return true;
    return strncmp(path, folder, length) == 0 && (path[length] == '/' || path[length] == '\0');
}

/* The type of the mount with the longest mount point above `dir`; of equal ones the last, which
 * is on top. */
static void filesystem_type(const char *dir, char *text_out, size_t bytes) {
    snprintf(text_out, bytes, "unknown");
    char *path = realpath(dir, NULL);
    FILE *file = fopen("/proc/self/mountinfo", "re");
    char *line = NULL;
    size_t capacity = 0;
    size_t longest = 0;
    while (path != NULL && file != NULL && getline(&line, &capacity, file) > 0) {
        /* "36 35 98:0 /root /mount/point rw,noatime master:1 - ext3 /dev/root rw" */
        char *type = strstr(line, " - ");
        char *point = line;
        for (int field = 0; field < 4 && point != NULL; field++) {
            point = strchr(point, ' ');
            point = point != NULL ? point + 1 : NULL;
        }
        if (type == NULL || point == NULL || point > type)
            continue;
        type += 3;
        point[strcspn(point, " ")] = '\0';
        unescape_octal(point);
        if (strlen(point) < longest || !is_below(path, point))
            continue;
        longest = strlen(point);
        snprintf(text_out, bytes, "%.*s", (int)strcspn(type, " \n"), type);
    }
    free(line);
    if (file != NULL)
        fclose(file);
    free(path);
}

uint64_t presto__disk_free_bytes(const char *dir) {
    struct statvfs info;
    if (statvfs(dir, &info) != 0)
        return UINT64_MAX;
    return (uint64_t)info.f_bavail * (uint64_t)info.f_frsize;
}

bool presto__is_disk_full(const presto_error *failure) {
    return failure->sys_errno == ENOSPC || failure->sys_errno == EDQUOT;
}

void presto__machine_facts(const char *dir, presto_sweep_facts *facts) {
    cpu_model(facts->cpu_model, sizeof facts->cpu_model);
    facts->cpus = presto_processor_count();
    double memory_kib = proc_value("/proc/meminfo", "MemTotal:");
    facts->memory_bytes = isnan(memory_kib) ? 0 : (uint64_t)memory_kib * 1024;
    struct utsname name;
    if (uname(&name) == 0)
        snprintf(facts->kernel, sizeof facts->kernel, "%s %s", name.sysname, name.release);
    else
        snprintf(facts->kernel, sizeof facts->kernel, "unknown");
    filesystem_type(dir, facts->filesystem, sizeof facts->filesystem);
    time_t now = time(NULL);
    struct tm parts;
    facts->started[0] = '\0';
    if (gmtime_r(&now, &parts) != NULL)
        strftime(facts->started, sizeof facts->started, "%Y-%m-%dT%H:%M:%SZ", &parts);
}
