/* SPDX-License-Identifier: Apache-2.0 */
/*
 * presto-inspect: looks into TFRecord files of any program. presto/inspect.h does the work; here
 * are the subcommands, their options and their output.
 */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <getopt.h>

#include <presto/inspect.h>
#include <presto/stream.h>

#include "../cli/shared_options.h"
#include "inspect_cat.h"
#include "inspect_clean.h"
#include "inspect_info.h"
#include "inspect_place.h"
#include "inspect_recode.h"

typedef enum command {
    INFO,
    VERIFY,
    CAT,
    INDEX,
    REPAIR,
    RECODE,
    PLACE,
    CLEAN,
    COMMAND_COUNT
} command;
static const char *const command_names[] = {"info",   "verify", "cat",   "index", "repair",
                                            "recode", "place",  "clean", NULL};

typedef struct inspect {
    command command;
    info_options info;
    cat_options cat;
    recode_options recode;
    clean_options clean;
    bool quiet, json, frames_only, reads_all, dali;
    const char *output;
} inspect;

static void set_defaults(void *job) {
    inspect *in = job;
    presto_convert_options_defaults(&in->recode.convert);
    in->recode.convert.codec = NULL; /* the input's */
    in->recode.convert.threads = presto_processor_count();
    in->cat.record = in->cat.limit = UINT64_MAX;
}

/* ---- the command line ---- */

#define GOES_WITH(command) .commands = 1u << (command)

static const cli_option options[] = {
    CLI_GROUP("info"),
    {0, "sample", "N", "records looked into for features", "100",
     CLI_NUMBER(inspect, info.sample_records, 1, UINT32_MAX), GOES_WITH(INFO)},
    CLI_GROUP("verify"),
    {0, "frames-only", NULL, "check the checksums, do not decode the records", NULL,
     CLI_FLAG(inspect, frames_only), GOES_WITH(VERIFY)},
    {0, "records", NULL,
     "read all records, also of shards whose CRC-32C the server says (s3://, https://)", NULL,
     CLI_FLAG(inspect, reads_all), GOES_WITH(VERIFY)},
    CLI_GROUP("cat"),
    {0, "record", "N", "only record N, from 0", NULL,
     CLI_NUMBER(inspect, cat.record, 0, UINT64_MAX - 1), GOES_WITH(CAT)},
    {0, "limit", "N", "only the first N records", NULL,
     CLI_NUMBER(inspect, cat.limit, 1, UINT64_MAX), GOES_WITH(CAT)},
    {0, "full", NULL, "with --json: all numbers of long lists, bytes as base64", NULL,
     CLI_FLAG(inspect, cat.full), GOES_WITH(CAT)},
    CLI_GROUP("index"),
    {0, "dali", NULL, "write DALI's text form, FILE.idx, instead of FILE.index", NULL,
     CLI_FLAG(inspect, dali), GOES_WITH(INDEX)},
    CLI_GROUP("repair, recode"),
    {'o', "output", "FILE|DIR", "the new file (repair) or folder (recode)", NULL,
     CLI_PATH(inspect, output), .commands = 1u << REPAIR | 1u << RECODE},
    {'c', "codec", "CODEC[:LEVEL]", "recode: of the records; TensorFlow reads none, zlib and gzip",
     "as the input", CLI_CODEC(inspect, recode.convert.codec), GOES_WITH(RECODE)},
    {'s', "shards", "N", "recode: number of files", "as many as the input",
     CLI_NUMBER(inspect, recode.convert.shards, 1, PRESTO_MAX_SHARDS), GOES_WITH(RECODE)},
    {0, "shard-bytes", "SIZE", "recode: files of up to SIZE instead, such as 256MiB", NULL,
     CLI_SIZE(inspect, recode.convert.shard_bytes, 1), GOES_WITH(RECODE)},
    CLI_FILE_COMPRESSION_OPTION(inspect, recode.convert.file_compression, "recode: ", 1u << RECODE),
    {'j', "threads", "N", "recode: threads; 0: no extra ones", "one per CPU",
     CLI_NUMBER(inspect, recode.convert.threads, 0, PRESTO_MAX_THREADS), GOES_WITH(RECODE)},
    {0, "resume", NULL, "recode: go on where an interrupted run ended", NULL,
     CLI_FLAG(inspect, recode.convert.resume), GOES_WITH(RECODE)},
    CLI_GROUP("clean"),
    {0, "remove", NULL, "remove what runs that died have left; without, it is listed", NULL,
     CLI_FLAG(inspect, clean.removes), GOES_WITH(CLEAN)},
    {0, "older-than", "TIME",
     "of what may belong to a run on another machine, only what is older, e.g. 12h", "24h",
     CLI_TIME(inspect, clean.older_than_s), GOES_WITH(CLEAN)},
    CLI_COMMON_OPTIONS(inspect, "JSON on stdout: one object; cat: one per record", ~(1u << INDEX)),
};

static const cli_program self = {
    "presto-inspect",
    "[info] [--json] PATH...\n"
    "verify [--json] PATH...\n"
    "cat [--json] [--record N] PATH\n"
    "index [--dali] PATH...\n"
    "repair FILE -o FILE\n"
    "recode [-c CODEC] [-s SHARDS] -o DIR PATH...\n"
    "place [--json] PATH\n"
    "clean [--json] [--remove] PATH",
    "Look into TFRecord files, with or without Presto's dataset.json: what they hold (info), "
    "whether they are whole (verify), their records (cat); index them, save what is whole of a "
    "damaged one (repair), store them again in another codec or number of files (recode); say who "
    "asks where they are stored, and how far that is (place); find and remove what runs of "
    "presto-write that died have left (clean). PATH is a file, a folder or a URL.",
    options,
    "verify prints a line per fault.",
    sizeof(inspect),
    set_defaults,
    .example = "presto-inspect cat --json --record 17 photos-resized",
    .most_exit = CLI_CORRUPT,
    .exit_note = "A file of another kind (WAV, CSV, ...) is 1; where a shard is listed, 3.",
    .commands = command_names,
};

/* Removes the first operand from the operands if it names a subcommand. */
static void take_command(inspect *in, char **argv, int *argc) {
    in->command = INFO;
    for (int i = 0; optind < *argc && command_names[i] != NULL; i++) {
        if (strcmp(argv[optind], command_names[i]) == 0) {
            in->command = (command)i;
            optind++;
            return;
        }
    }
    /* If other operands follow, a word that is no file was meant as a subcommand. */
    if (optind + 1 < *argc && strchr(argv[optind], '/') == NULL && access(argv[optind], F_OK) != 0)
        cli_usage(
            "'%s' is no command (info, verify, cat, index, repair, recode, place, clean) and no "
            "file",
            argv[optind]);
}

static void parse_command_line(inspect *in, int argc, char **argv) {
    cli_parse(argc, argv, in);
    in->recode.quiet = in->quiet;
    in->clean.quiet = in->quiet;
    in->info.json = in->cat.json = in->recode.json = in->clean.json = in->json;
    take_command(in, argv, &argc);
    cli_check_command(1u << in->command, command_names[in->command]);
    bool single =
        in->command == CAT || in->command == REPAIR || in->command == PLACE || in->command == CLEAN;
    cli_check_operands(argc, argv, 1, single ? 1 : INT32_MAX, "PATH");
    if ((in->command == REPAIR || in->command == RECODE) && in->output == NULL)
        cli_usage("--output is missing");
    if (in->recode.convert.shards > 0 && in->recode.convert.shard_bytes > 0)
        cli_usage("--shards and --shard-bytes: one of them decides where files end");
    if (in->command == CAT && !in->json && isatty(STDOUT_FILENO))
        cli_usage("cat: stdout is a terminal: use --json, or redirect it");
}

/* ---- verify ---- */

typedef struct verification {
    const inspect *in;
    json_t *list;
} verification;

static json_t *position_json(uint64_t value, uint64_t none) {
    return value == none ? json_null() : json_integer((json_int_t)value);
}

static bool on_fault(void *user, const presto_fault *fault) {
    verification *v = user;
    const char *kind = presto_fault_name(fault->kind);
    if (v->list != NULL) {
        json_t *object = json_object();
        cli_json_set(object, "file", cli_json_text(fault->file));
        cli_json_set(object, "record", position_json(fault->record, PRESTO_NO_RECORD));
        cli_json_set(object, "offset", position_json(fault->offset, PRESTO_NO_OFFSET));
        cli_json_set(object, "lost_bytes", json_integer((json_int_t)fault->lost_bytes));
        cli_json_set(object, "kind", json_string(kind));
        cli_json_set(object, "message", cli_json_text(fault->message));
        json_array_append_new(v->list, object);
    } else if (!v->in->quiet) {
        cli_put("%s: ", fault->file);
        if (fault->record != PRESTO_NO_RECORD)
            printf("record %ju: ", (uintmax_t)fault->record);
        cli_put("%s: %s", kind, fault->message);
        if (fault->offset != PRESTO_NO_OFFSET)
            printf(" (at byte %ju)", (uintmax_t)fault->offset);
        if (fault->lost_bytes > 0)
            printf(", %ju byte%s lost", (uintmax_t)fault->lost_bytes,
                   presto_plural(fault->lost_bytes));
        putchar('\n');
    }
    return !cli_interrupted() && !ferror(stdout);
}

static int print_verify_json(const presto_verify_result *result, json_t *list) {
    const cli_count counts[] = {
        {"files", result->files},           {"records", result->records},
        {"bytes", result->bytes},           {"payload_bytes", result->payload_bytes},
        {"faults", result->faults},         {"lost_bytes", result->lost_bytes},
        {"said_files", result->said_files},
    };
    json_t *object = cli_json_new();
    cli_json_set_counts(object, counts, sizeof counts / sizeof counts[0]);
    cli_json_set(object, "fault_list", list);
    return cli_print_json(object);
}

static void print_verify(const presto_verify_result *result) {
    char files[PRESTO_TEXT_BYTES], records[PRESTO_TEXT_BYTES], bytes[PRESTO_TEXT_BYTES];
    char faults[PRESTO_TEXT_BYTES], lost[PRESTO_TEXT_BYTES];
    printf("%s, %s, %s: ", presto_format_things(result->files, "file", files),
           presto_format_things(result->records, "whole record", records),
           presto_format_bytes((double)result->bytes, bytes));
    if (result->faults == 0)
        puts("no faults");
    else
        printf("%s, %s lost\n", presto_format_things(result->faults, "fault", faults),
               presto_format_things(result->lost_bytes, "byte", lost));
    if (result->said_files > 0)
        printf("%s not read: CRC-32C and size are as the server says them (--records reads all)\n",
               presto_format_things(result->said_files, "file", files));
}

static int run_verify(const inspect *in, const char *const *paths, size_t path_count) {
    presto_error err;
    presto_verify_options verify;
    presto_verify_result result;
    verification v = {in, in->json ? json_array() : NULL};
    memset(&result, 0, sizeof result);
    presto_verify_options_defaults(&verify);
    verify.check_examples = !in->frames_only;
    verify.asks_server = !in->reads_all && !in->frames_only;
    verify.on_fault = on_fault;
    verify.user = &v;
    verify.should_stop = cli_should_stop;
    cli_catch_signals();
    presto_status status = presto_verify_paths(paths, path_count, &verify, &result, &err);
    if (status < 0) {
        json_decref(v.list);
        return status == PRESTO_ERR_STOPPED ? CLI_FAILED : cli_error(&err);
    }
    uint64_t unread = result.faults_of[PRESTO_FAULT_IO] + result.faults_of[PRESTO_FAULT_FOREIGN];
    /* How many whole records are in files that cannot be read is not known. */
    bool is_known = result.records > 0 || result.faults == 0 ||
                    result.faults > result.faults_of[PRESTO_FAULT_IO];
    int code = CLI_DONE;
    char files[PRESTO_TEXT_BYTES];
    if (result.silent_files > 0 && !in->quiet)
        cli_message("%s read whole: the server does not say a CRC-32C of all of their bytes",
                    presto_format_things(result.silent_files, "file", files));
    if (in->json)
        code = print_verify_json(&result, v.list);
    else if (!in->quiet && is_known)
        print_verify(&result);
    if (result.faults == 0)
        return code;
    return result.faults > unread ? CLI_CORRUPT : CLI_FAILED;
}

/* ---- index ---- */

static presto_status index_file(const inspect *in, const char *path, presto_error *err) {
    char index_path[PATH_MAX];
    char text[PRESTO_TEXT_BYTES];
    uint64_t records = 0;
    if (!in->dali) {
        PRESTO_TRY(presto_index_build(path, &records, err));
        if (!in->quiet)
            cli_message("%s.index: %s", path, presto_format_things(records, "record", text));
        return PRESTO_OK;
    }
    if ((size_t)snprintf(index_path, sizeof index_path, "%s.idx", path) >= sizeof index_path)
        return presto_fail(err, PRESTO_ERR_LIMIT, PRESTO_NO_OFFSET, "the name is too long");
    PRESTO_TRY(presto_index_write_dali(path, index_path, err));
    if (!in->quiet)
        cli_message("%s", index_path);
    return PRESTO_OK;
}

static int run_index(const inspect *in, const char *const *paths, size_t path_count) {
    presto_error err;
    presto_stream_options reading;
    presto_stream stream = {0};
    presto_stream_options_defaults(&reading);
    reading.raw_records = true;
    reading.count_later = true; /* presto_index_build reads each file to its end anyway */
    presto_status status = presto_stream_open(paths, path_count, &reading, &stream, &err);
    size_t count = status < 0 ? 0 : presto_dataset_shard_count(stream.dataset);
    for (size_t i = 0; status >= 0 && i < count; i++)
        status = index_file(in, presto_dataset_shard_path(stream.dataset, i), &err);
    presto_stream_close(&stream);
    return status < 0 ? cli_error(&err) : CLI_DONE;
}

/* ---- repair ---- */

typedef struct repair {
    const inspect *in;
    const char *path;
    json_t *ranges;
} repair;

static bool on_lost(void *user, uint64_t offset, uint64_t bytes, uint64_t records_before) {
    repair *r = user;
    char records[PRESTO_TEXT_BYTES], lost[PRESTO_TEXT_BYTES];
    json_t *range = json_object();
    cli_json_set(range, "offset", json_integer((json_int_t)offset));
    cli_json_set(range, "bytes", json_integer((json_int_t)bytes));
    cli_json_set(range, "records_before", json_integer((json_int_t)records_before));
    json_array_append_new(r->ranges, range);
    if (!r->in->quiet)
        cli_message("%s: after %s: %s lost (at byte %ju)", r->path,
                    presto_format_things(records_before, "record", records),
                    presto_format_things(bytes, "byte", lost), (uintmax_t)offset);
    return !cli_interrupted();
}

static int run_repair(const inspect *in, const char *path) {
    presto_error err;
    presto_repair_result result = {0};
    repair r = {in, path, json_array()};
    const presto_repair_options repairing = {.struct_bytes = sizeof repairing,
                                             .on_lost = on_lost,
                                             .on_lost_user = &r,
                                             .should_stop = cli_should_stop};
    char records[PRESTO_TEXT_BYTES], lost[PRESTO_TEXT_BYTES], places[PRESTO_TEXT_BYTES];
    cli_catch_signals();
    presto_status status = presto_repair_file(path, in->output, &repairing, &result, &err);
    if (status < 0) {
        json_decref(r.ranges);
        return status == PRESTO_ERR_STOPPED ? CLI_FAILED : cli_error(&err);
    }
    if (!in->quiet)
        cli_message("%s: %s saved, %s lost in %s", in->output,
                    presto_format_things(result.records, "record", records),
                    presto_format_things(result.lost_bytes, "byte", lost),
                    presto_format_things(result.lost_ranges, "place", places));
    if (!in->json) {
        json_decref(r.ranges);
        return CLI_DONE;
    }
    json_t *object = cli_json_new();
    cli_json_set(object, "records", json_integer((json_int_t)result.records));
    cli_json_set(object, "lost_bytes", json_integer((json_int_t)result.lost_bytes));
    cli_json_set(object, "lost_ranges", r.ranges);
    return cli_print_json(object);
}

int main(int argc, char **argv) {
    inspect in = {0};
    int code = CLI_DONE;
    cli_start(&self);
    parse_command_line(&in, argc, argv);
    const char *const *paths = (const char *const *)argv + optind;
    size_t path_count = (size_t)(argc - optind);
    switch (in.command) {
    case INFO:
    case COMMAND_COUNT:
        code = inspect_info(paths, path_count, &in.info);
        break;
    case VERIFY:
        code = run_verify(&in, paths, path_count);
        break;
    case CAT:
        code = inspect_cat(paths[0], &in.cat);
        break;
    case INDEX:
        code = run_index(&in, paths, path_count);
        break;
    case REPAIR:
        code = run_repair(&in, paths[0]);
        break;
    case RECODE:
        code = inspect_recode(&in.recode, in.output, paths, path_count);
        break;
    case PLACE:
        code = inspect_place(paths[0], in.json);
        break;
    case CLEAN:
        code = inspect_clean(paths[0], &in.clean);
        break;
    }
    code = cli_close_stdout(code);
    cli_reraise();
    return code;
}
