/* SPDX-License-Identifier: Apache-2.0 */
/* What stdout gets: --format, and the options that go with it. */
#include "load.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { LIST_BYTES = 160 };

static bool takes_features(const presto_out_format *format) {
    return format->takes_features;
}

static bool takes_raw_records(const presto_out_format *format) {
    return format->takes_raw_records;
}

static bool takes_arrow_types(const presto_out_format *format) {
    return format->takes_arrow_types;
}

static bool is_ring(const presto_out_format *format) {
    return format->way == PRESTO_OUT_RING;
}

static bool has_batches(const presto_out_format *format) {
    return format->output != PRESTO_OUTPUT_RECORDS;
}

/* "npy, arrow, shm or raw": the formats of which `is` is true; `last` stands before the last one. */
static const char *list_formats(bool (*is)(const presto_out_format *), const char *last,
                                char text[LIST_BYTES]) {
    const char *names[16];
    size_t count = 0, used = 0;
    const presto_out_format *format;
    for (size_t i = 0; (format = presto_out_format_at(i)) != NULL; i++)
        if (is(format) && count < sizeof names / sizeof *names)
            names[count++] = format->name;
    text[0] = '\0';
    for (size_t i = 0; i < count && used < LIST_BYTES; i++)
        used += (size_t)snprintf(text + used, LIST_BYTES - used, "%s%s",
                                 i == 0           ? ""
                                 : i + 1 == count ? last
                                                  : ", ",
                                 names[i]);
    return text;
}

/* ---- what --help says ---- */

void load_tell_format(char *help, size_t room) {
    const presto_out_format *format;
    size_t used = (size_t)snprintf(help, room, "of stdout");
    for (size_t i = 0; (format = presto_out_format_at(i)) != NULL && used < room; i++)
        used += (size_t)snprintf(help + used, room - used, "%s %s%s%s (%s)", i == 0 ? ":" : ",",
                                 presto_out_format_at(i + 1) == NULL ? "or " : "", format->name,
                                 is_ring(format) ? "[:SOCKET]" : "", format->help);
}

const char *load_format_at(size_t i) {
    const presto_out_format *format = presto_out_format_at(i);
    return format != NULL ? format->name : NULL;
}

void load_tell_features(char *help, size_t room) {
    char list[LIST_BYTES];
    snprintf(help, room, "what %s deliver, in this order; without steps, nothing else is parsed",
             list_formats(takes_features, " and ", list));
}

void load_tell_pad(char *help, size_t room) {
    char list[LIST_BYTES];
    snprintf(help, room,
             "fill the rows of a feature that differ in length up with VALUE, to the longest of "
             "the batch or to LENGTH, so that they are one array (%s); may be given several times",
             list_formats(takes_features, ", ", list));
}

void load_tell_raw_records(char *help, size_t room) {
    char list[LIST_BYTES];
    snprintf(help, room,
             "the samples are the records as they are stored, whatever they hold: neither "
             "decompressed nor parsed (%s); batches have one feature, record",
             list_formats(takes_raw_records, ", ", list));
}

/* ---- the option ---- */

void load_read_format(const char *option, const char *text, void *place, void *beside) {
    const presto_out_format **format = place, *one;
    presto_ring_options *ring = beside;
    ring->path = strncmp(text, "shm:", 4) == 0 ? text + 4 : NULL;
    if (ring->path != NULL && ring->path[0] == '\0')
        cli_usage("%s: 'shm:' lacks the path of a socket", option);
    const char *names[16] = {NULL};
    for (size_t i = 0; (one = presto_out_format_at(i)) != NULL; i++) {
        assert(i + 1 < sizeof names / sizeof *names);
        names[i] = one->name;
    }
    *format = presto_out_format_at(cli_choice(option, ring->path != NULL ? "shm" : text, names));
}

/* Raw records are not parsed, so options about what is in them are refused. */
static void check_raw_records(const load *l) {
    char list[LIST_BYTES];
    if (!takes_raw_records(l->format))
        cli_usage("--raw-records needs --format %s", list_formats(takes_raw_records, " or ", list));
    if (l->input.pipeline != NULL || l->input.from != NULL || l->input.to != NULL ||
        l->strategy_file != NULL || l->reading.set_count > 0 || l->reading.feature != NULL ||
        l->features.name_count > 0 || l->features.pad_count > 0)
        cli_usage("--raw-records goes without --pipeline, --from, --to, --set, --strategy, "
                  "--features and --pad: nothing in the records is looked at");
}

/* stdout is what the format needs. */
static void check_stdout(const load *l) {
    if (l->json && l->format->way != PRESTO_OUT_NOWHERE && !l->explain)
        cli_usage("--json: stdout carries the samples; use --stats FILE");
    struct stat is;
    bool is_piped = l->format->way == PRESTO_OUT_BYTES && !l->explain;
    if (is_ring(l->format) && l->ring.path == NULL && !l->explain &&
        (fstat(STDOUT_FILENO, &is) != 0 || !S_ISSOCK(is.st_mode)))
        cli_usage("--format shm: stdout is no Unix socket; name one that the reader connects to: "
                  "shm:SOCKET");
    if (is_piped && isatty(STDOUT_FILENO))
        cli_usage("--format %s is binary and stdout is a terminal: redirect it, or use --format "
                  "null",
                  l->format->name);
}

void load_check_format(const load *l) {
    const struct {
        bool is_given;
        bool (*is)(const presto_out_format *); /* what the format must be */
        const char *needs;
    } rows[] = {
        {l->features.name_count > 0, takes_features, "--features needs --format"},
        {l->features.pad_count > 0, takes_features, "--pad needs --format"},
        {l->has_ring, is_ring, "--ring-bytes needs --format"},
        {l->features.type_count > 0, takes_arrow_types, "--arrow-type needs --format"},
        {l->loader.range.drop_last, has_batches, "--drop-last needs batches: --format"},
        {l->loader.cache.bytes > 0, has_batches, "--cache: records are not cached; --format"},
    };
    char list[LIST_BYTES];
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (rows[i].is_given && !rows[i].is(l->format))
            cli_usage("%s %s", rows[i].needs, list_formats(rows[i].is, " or ", list));
    if (l->input.raw_records)
        check_raw_records(l);
    check_stdout(l);
}
