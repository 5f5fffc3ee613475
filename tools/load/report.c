/* SPDX-License-Identifier: Apache-2.0 */
/* The figures of a run of presto-load, from the loader. */
#include "report.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include <presto/file.h>

#include "../cli/cli.h"
#include "../cli/named_output.h"

static double per_second(uint64_t count, uint64_t ns) {
    return ns > 0 ? (double)count * 1e9 / (double)ns : 0;
}

void report_count(load_report *report, const presto_batch *batch) {
    size_t count;
    const presto_source_part *parts = presto_source_parts(report->source, &count);
    if (parts == NULL)
        return;
    for (size_t row = 0; row < batch->rows; row++) {
        size_t low = 0, high = count;
        while (high - low > 1) {
            size_t middle = low + (high - low) / 2;
            if (batch->sample_numbers[row] < parts[middle].first_sample)
                high = middle;
            else
                low = middle;
        }
        report->part_samples[low]++;
    }
}

static void print_parts(const load_report *report) {
    size_t count;
    char text[PRESTO_TEXT_BYTES];
    const presto_source_part *parts = presto_source_parts(report->source, &count);
    for (size_t k = 0; parts != NULL && k < count; k++)
        cli_message("mix: %s of %s", presto_format_things(report->part_samples[k], "sample", text),
                    parts[k].name);
}

/* The inputs of a mix; null: it is none. */
static json_t *parts_json(const load_report *report) {
    size_t count;
    const presto_source_part *parts = presto_source_parts(report->source, &count);
    json_t *array = parts == NULL ? json_null() : json_array();
    for (size_t k = 0; parts != NULL && k < count; k++) {
        json_t *part = json_object();
        const cli_count counts[] = {
            {"input_samples", parts[k].samples},
            {"epoch_samples", parts[k].epoch_samples},
            {"samples", report->part_samples[k]},
        };
        cli_json_set(part, "path", cli_json_text(parts[k].name));
        cli_json_set(part, "weight", cli_json_real(parts[k].weight));
        cli_json_set_counts(part, counts, sizeof counts / sizeof counts[0]);
        cli_json_append(array, part);
    }
    return array;
}

static uint64_t wall_ns(const load_report *report) {
    return report->ended_ns - report->started_ns;
}

static uint64_t first_ns(const load_report *report) {
    return report->first_ns == 0 ? 0 : report->first_ns - report->started_ns;
}

void report_print(const load_report *report) {
    presto_loader_stats stats;
    presto_loader_get_stats(report->loader, &stats);
    char count[PRESTO_TEXT_BYTES], time[PRESTO_TEXT_BYTES], rate[PRESTO_TEXT_BYTES];
    char read_rate[PRESTO_TEXT_BYTES], rate_out[PRESTO_TEXT_BYTES], first[PRESTO_TEXT_BYTES];
    const uint64_t wall = wall_ns(report);
    presto_format_seconds((double)first_ns(report) / 1e9, first);
    cli_message("%s in %s%s%s: %s samples/s, read %s/s (T3), delivered %s/s (T4)",
                presto_format_things(stats.samples, "sample", count),
                presto_format_seconds((double)wall / 1e9, time),
                stats.samples > 0 ? ", the first after " : "", stats.samples > 0 ? first : "",
                presto_format_number(per_second(stats.samples, wall), rate),
                presto_format_bytes(per_second(stats.read_bytes, wall), read_rate),
                presto_format_bytes(per_second(stats.delivered_bytes, wall), rate_out));
    if (stats.skipped > 0)
        cli_message("%s skipped", presto_format_things(stats.skipped, "sample", count));
    if (stats.dropped > 0)
        cli_message("%s left out by steps", presto_format_things(stats.dropped, "sample", count));
    presto_loader_note note;
    for (size_t i = 0; presto_loader_get_note(report->loader, i, &note); i++)
        cli_message("note: %s", note.text);
    print_parts(report);
    presto_verdict verdict;
    presto_loader_verdict(report->loader, &verdict);
    if (stats.samples > 0)
        cli_message("limited by %s", verdict.text);
    if (report->most_threads > 0)
        cli_message("auto: %s", presto_format_things(stats.threads, "thread", count));
}

static double seconds(uint64_t ns) {
    return (double)ns / 1e9;
}

static json_t *steps_json(const load_report *report) {
    json_t *steps = json_array();
    size_t count = presto_loader_step_count(report->loader);
    for (size_t i = 0; i < count; i++) {
        presto_step_stats stats = presto_loader_step_stats(report->loader, i);
        json_t *step = json_object();
        cli_json_set(step, "step", json_string(presto_loader_step_name(report->loader, i)));
        cli_json_set(step, "samples", json_integer((json_int_t)stats.samples));
        cli_json_set(step, "busy_s", cli_json_real(seconds(stats.busy_ns)));
        cli_json_set(step, "out_bytes", json_integer((json_int_t)stats.out_bytes));
        cli_json_set(step, "dropped", json_integer((json_int_t)stats.dropped));
        cli_json_set(step, "unfused", json_integer((json_int_t)stats.unfused));
        json_array_append_new(steps, step);
    }
    return steps;
}

static json_t *limit_json(const load_report *report) {
    presto_verdict verdict;
    presto_loader_verdict(report->loader, &verdict);
    json_t *object = json_object();
    cli_json_set(object, "stage", json_string(presto_stage_name(verdict.stage)));
    cli_json_set(object, "step",
                 verdict.step_name != NULL ? json_string(verdict.step_name) : json_null());
    cli_json_set(object, "share", cli_json_real(verdict.share));
    cli_json_set(object, "text", json_string(verdict.text));
    return object;
}

/* Thread-seconds by stage. */
static json_t *times_json(const presto_loader_stats *stats) {
    const struct {
        const char *key;
        uint64_t ns;
    } times[] = {
        {"read_s", stats->read_ns},
        {"decompress_s", stats->decompress_ns},
        {"parse_s", stats->parse_ns},
        {"steps_s", stats->steps_ns},
        {"encode_s", stats->encode_ns},
        {"batch_s", stats->batch_ns},
        {"cache_s", stats->cache_ns},
        {"worker_wait_s", stats->worker_wait_ns},
        {"consumer_wait_s", stats->consumer_wait_ns},
        {"consumer_busy_s", stats->consumer_busy_ns},
        {"storage_wait_s", stats->storage_wait_ns},
    };
    json_t *object = json_object();
    for (size_t i = 0; i < sizeof times / sizeof times[0]; i++)
        cli_json_set(object, times[i].key, cli_json_real(seconds(times[i].ns)));
    return object;
}

/* The most memory that this program used. ru_maxrss would include what the parent process used
 * before it started this one. */
static uint64_t peak_rss_bytes(void) {
    char line[128];
    unsigned long long kib = 0;
    FILE *file = fopen("/proc/self/status", "r");
    if (file == NULL)
        return 0;
    while (kib == 0 && fgets(line, sizeof line, file) != NULL)
        if (strncmp(line, "VmHWM:", 6) == 0)
            kib = strtoull(line + 6, NULL, 10);
    fclose(file);
    return kib * 1024;
}

/* User and system. */
static uint64_t process_cpu_ns(void) {
    struct timespec used;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
    return (uint64_t)used.tv_sec * 1000000000u + (uint64_t)used.tv_nsec;
}

/* Of the process: threads that wait give up their processor, others have it taken away. */
static void add_usage(json_t *object) {
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    cli_json_set(object, "cpu_s", cli_json_real(seconds(process_cpu_ns())));
    cli_json_set(object, "voluntary_switches", json_integer((json_int_t)usage.ru_nvcsw));
    cli_json_set(object, "involuntary_switches", json_integer((json_int_t)usage.ru_nivcsw));
    cli_json_set(object, "peak_rss_bytes", json_integer((json_int_t)peak_rss_bytes()));
}

/* Of the source, and of the steps. */
static json_t *notes_json(const load_report *report) {
    size_t count;
    presto_loader_note told;
    const char *const *notes = presto_source_notes(report->source, &count);
    json_t *array = json_array();
    for (size_t i = 0; i < count; i++)
        cli_json_append(array, cli_json_text(notes[i]));
    for (size_t i = 0; presto_loader_get_note(report->loader, i, &told); i++)
        cli_json_append(array, cli_json_text(told.text));
    return array;
}

json_t *report_json(const load_report *report) {
    presto_loader_stats stats;
    presto_loader_get_stats(report->loader, &stats);
    const cli_count counts[] = {
        {"samples", stats.samples},
        {"skipped", stats.skipped},
        {"dropped", stats.dropped},
        {"batches", stats.batches},
        {"threads", stats.threads},
        {"read_bytes", stats.read_bytes},
        {"delivered_bytes", stats.delivered_bytes},
        {"written_bytes", report->written_bytes},
        {"peak_queued_bytes", stats.peak_queued_bytes},
        {"read_ahead_samples", stats.read_ahead_samples},
        {"cached_samples", stats.cached_samples},
        {"missed_samples", stats.missed_samples},
        {"cache_bytes", stats.cache_bytes},
        {"cache_written_bytes", stats.cache_written_bytes},
        {"cache_damaged_blocks", stats.cache_damaged_blocks},
        {"cache_evicted_blocks", stats.cache_evicted_blocks},
        {"storage_reads", stats.storage_reads},
        {"requests", stats.requests},
        {"request_retries", stats.request_retries},
        {"request_seconds", stats.request_seconds},
    };
    json_t *object = cli_json_new();
    cli_json_set(object, "format", json_string(report->format));
    cli_json_set(object, "auto_threads", json_boolean(report->most_threads > 0));
    cli_json_set(object, "complete", json_boolean(report->complete));
    cli_json_set(object, "reader_closed", json_boolean(report->reader_closed));
    cli_json_set_counts(object, counts, sizeof counts / sizeof counts[0]);
    const uint64_t wall = wall_ns(report);
    cli_json_set(object, "wall_s", cli_json_real(seconds(wall)));
    cli_json_set(object, "first_sample_s",
                 report->first_ns == 0 ? json_null() : cli_json_real(seconds(first_ns(report))));
    add_usage(object);
    cli_json_set(object, "samples_per_s", cli_json_real(per_second(stats.samples, wall)));
    cli_json_set(object, "read_bytes_per_s", cli_json_real(per_second(stats.read_bytes, wall)));
    cli_json_set(object, "delivered_bytes_per_s",
                 cli_json_real(per_second(stats.delivered_bytes, wall)));
    cli_json_set(object, "times", times_json(&stats));
    cli_json_set(object, "steps", steps_json(report));
    cli_json_set(object, "limit", limit_json(report));
    cli_json_set(object, "mix", parts_json(report));
    cli_json_set(object, "notes", notes_json(report));
    cli_json_set(object, "warnings", json_incref(report->warnings));
    return object;
}

/* ---- the file ---- */

/* With its newline, on the heap; NULL after a message. Takes the object. */
static char *format(json_t *object, presto_span *text_out) {
    char *text =
        object == NULL ? NULL : json_dumps(object, JSON_INDENT(2) | JSON_REAL_PRECISION(9));
    json_decref(object);
    if (text == NULL) {
        cli_message("out of memory");
        return NULL;
    }
    size_t bytes = strlen(text) + 1;
    text[bytes - 1] = '\n'; /* in place of the end */
    *text_out = presto_span_of(text, bytes);
    return text;
}

static int write_through(const char *path, presto_span text) {
    int fd = output_open(path, 0);
    if (fd < 0)
        return CLI_FAILED;
    int reason = output_write(fd, text);
    if (close(fd) != 0 && reason == 0)
        reason = errno;
    if (reason == 0)
        return CLI_DONE;
    cli_message("%s: cannot write: %s", path, strerror(reason));
    return CLI_FAILED;
}

int report_check(const char *path) {
    presto_error err;
    if (!output_is_direct(path))
        return presto_file_check_replace(path, &err) < 0 ? cli_error(&err) : CLI_DONE;
    int reason = output_check(path);
    if (reason == 0)
        return CLI_DONE;
    cli_message("%s: cannot write: %s", path, strerror(reason));
    return CLI_FAILED;
}

int report_write(json_t *object, const char *path) {
    presto_span text;
    if (!output_is_direct(path))
        return report_replace(object, path);
    char *room = format(object, &text);
    int code = room == NULL ? CLI_FAILED : write_through(path, text);
    free(room);
    return code;
}

int report_replace(json_t *object, const char *path) {
    presto_error err;
    presto_span text;
    char *room = format(object, &text);
    if (room == NULL)
        return CLI_FAILED;
    presto_status status = presto_file_replace(path, &text, 1, true, &err);
    free(room);
    return status < 0 ? cli_error(&err) : CLI_DONE;
}
