/* SPDX-License-Identifier: Apache-2.0 */
/* What stdout gets: --format, and the options that go with it. */
#include "load.h"

#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

void load_read_format(const char *option, const char *text, void *place, void *beside) {
    const sink_type **format = place;
    presto_ring_options *ring = beside;
    ring->path = strncmp(text, "shm:", 4) == 0 ? text + 4 : NULL;
    if (ring->path != NULL && ring->path[0] == '\0')
        cli_usage("%s: 'shm:' lacks the path of a socket", option);
    const char *names[16] = {NULL};
    for (size_t i = 0; sink_types[i] != NULL && i + 1 < sizeof names / sizeof *names; i++)
        names[i] = sink_types[i]->name;
    *format = sink_types[cli_choice(option, ring->path != NULL ? "shm" : text, names)];
}

/* Raw records are not parsed, so options about what is in them are refused. */
static void check_raw_records(const load *l) {
    if (!l->format->takes_raw_records)
        cli_usage("--raw-records needs --format tfrecord, npy, arrow, shm or null");
    if (l->input.pipeline != NULL || l->input.from != NULL || l->input.to != NULL ||
        l->strategy_file != NULL || l->reading.set_count > 0 || l->reading.feature != NULL ||
        l->features.name_count > 0 || l->features.pad_count > 0)
        cli_usage("--raw-records goes without --pipeline, --from, --to, --set, --strategy, "
                  "--features and --pad: nothing in the records is looked at");
}

/* stdout is what the format needs. */
static void check_stdout(const load *l) {
    if (l->json && !l->format->is_silent && !l->explain)
        cli_usage("--json: stdout carries the samples; use --stats FILE");
    struct stat is;
    bool is_piped = l->format->is_stream && !l->explain;
    if (l->format->takes_ring && l->ring.path == NULL && !l->explain &&
        (fstat(STDOUT_FILENO, &is) != 0 || !S_ISSOCK(is.st_mode)))
        cli_usage("--format shm: stdout is no Unix socket; name one that the reader connects to: "
                  "shm:SOCKET");
    if (is_piped && isatty(STDOUT_FILENO))
        cli_usage("--format %s is binary and stdout is a terminal: redirect it, or use --format "
                  "null",
                  l->format->name);
}

void load_check_format(const load *l) {
    bool has_features = l->format->takes_features;
    if (l->features.name_count > 0 && !has_features)
        cli_usage("--features needs --format npy, arrow, shm or raw");
    if (l->features.pad_count > 0 && !has_features)
        cli_usage("--pad needs --format npy, arrow, shm or raw");
    if (l->has_ring && !l->format->takes_ring)
        cli_usage("--ring-bytes needs --format shm");
    if (l->features.wish_count > 0 && !l->format->takes_arrow_types)
        cli_usage("--arrow-type needs --format arrow");
    if (l->loader.range.drop_last && l->format->output == PRESTO_OUTPUT_RECORDS)
        cli_usage("--drop-last needs batches: --format npy, arrow, shm, raw or null");
    if (l->loader.cache.bytes > 0 && l->format->output == PRESTO_OUTPUT_RECORDS)
        cli_usage("--cache: records are not cached; --format npy, arrow, shm, raw or null");
    if (l->input.raw_records)
        check_raw_records(l);
    check_stdout(l);
}
