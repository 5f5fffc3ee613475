/* SPDX-License-Identifier: Apache-2.0 */
#include "inspect_clean.h"

#include <inttypes.h>
#include <stdio.h>
#include <time.h>

#include <presto/convert.h>
#include <presto/numbers.h>

#include "../cli/cli.h"

#define TIME_BYTES 32

typedef struct finding {
    const clean_options *options;
    json_t *list; /* NULL: text */
    uint64_t objects, uploads, removed, bytes, young, busy;
} finding;

static void time_text(int64_t seconds, char text[TIME_BYTES]) {
    struct tm parts;
    time_t time = (time_t)seconds;
    text[0] = '\0';
    if (seconds > 0 && gmtime_r(&time, &parts) != NULL)
        (void)strftime(text, TIME_BYTES, "%Y-%m-%dT%H:%M:%SZ", &parts);
}

static const char *kind_name(presto_left_kind kind) {
    return kind == PRESTO_LEFT_OBJECT ? "object" : kind == PRESTO_LEFT_UPLOAD ? "upload" : "busy";
}

static void add_json(const finding *f, const presto_left *left, const char *since) {
    json_t *object = json_object();
    cli_json_set(object, "path", cli_json_text(left->path));
    cli_json_set(object, "kind", json_string(kind_name(left->kind)));
    cli_json_set(object, "bytes", json_integer((json_int_t)left->bytes));
    cli_json_set(object, "since", since[0] == '\0' ? json_null() : json_string(since));
    cli_json_set(object, "young", json_boolean(left->is_young));
    cli_json_set(object, "removed", json_boolean(left->is_removed));
    cli_json_append(f->list, object);
}

static bool on_left(void *user, const presto_left *left) {
    finding *f = user;
    char since[TIME_BYTES];
    f->objects += left->kind == PRESTO_LEFT_OBJECT;
    f->uploads += left->kind == PRESTO_LEFT_UPLOAD;
    f->busy += left->kind == PRESTO_LEFT_BUSY;
    f->removed += left->is_removed;
    f->young += left->is_young;
    f->bytes += left->bytes;
    time_text(left->since_s, since);
    if (f->list != NULL) {
        add_json(f, left, since);
    } else if (!f->options->quiet) {
        cli_put("%s: %s%s%s%s\n", left->path,
                left->kind == PRESTO_LEFT_BUSY
                    ? "is being written, or joined, which presto-write --join finishes"
                : left->kind == PRESTO_LEFT_UPLOAD ? "an upload that is not complete"
                                                   : "left over",
                since[0] == '\0' ? "" : ", since ", since,
                left->is_removed ? ": removed"
                : left->is_young ? ": may be of a run on another machine"
                                 : "");
    }
    return !cli_interrupted();
}

static int print_json(const finding *f) {
    const cli_count counts[] = {{"objects", f->objects}, {"uploads", f->uploads},
                                {"bytes", f->bytes},     {"removed", f->removed},
                                {"young", f->young},     {"busy", f->busy}};
    json_t *object = cli_json_new();
    cli_json_set_counts(object, counts, sizeof counts / sizeof counts[0]);
    cli_json_set(object, "left", f->list);
    return cli_print_json(object);
}

static void print_sum(const finding *f) {
    char objects[PRESTO_TEXT_BYTES], uploads[PRESTO_TEXT_BYTES], bytes[PRESTO_TEXT_BYTES];
    if (f->objects + f->uploads == 0) {
        cli_put("nothing is left over\n");
        return;
    }
    cli_put("%s (%s), %s: %" PRIu64 " removed\n",
            presto_format_things(f->objects, "object", objects),
            presto_format_bytes((double)f->bytes, bytes),
            presto_format_things(f->uploads, "upload", uploads), f->removed);
    if (!f->options->removes)
        cli_put("--remove removes them; nothing can be resumed then\n");
    if (f->young > 0)
        cli_put("--older-than says how old those may be that are kept\n");
}

int inspect_clean(const char *path, const clean_options *options) {
    presto_error err;
    presto_clean_options clean;
    finding f = {.options = options, .list = options->json ? json_array() : NULL};
    presto_clean_options_defaults(&clean);
    clean.removes = options->removes;
    if (options->older_than_s > 0)
        clean.older_than_s = options->older_than_s;
    clean.on_left = on_left;
    clean.on_left_user = &f;
    clean.should_stop = cli_should_stop;
    cli_catch_signals();
    presto_status status = presto_clean(path, &clean, &err);
    if (status < 0) {
        json_decref(f.list);
        return status == PRESTO_ERR_STOPPED ? CLI_FAILED : cli_error(&err);
    }
    if (options->json)
        return print_json(&f);
    if (!options->quiet)
        print_sum(&f);
    return CLI_DONE;
}
