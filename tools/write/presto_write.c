/* SPDX-License-Identifier: Apache-2.0 */
/*
 * presto-write: the offline part of a strategy. Source files go through the steps up to one representation
 * into shards. presto_convert() does the work; here are the options and the messages.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <getopt.h>

#include <presto/convert.h>
#include <presto/stream.h>
#include <presto/sweep.h>

#include "../cli/shared_options.h"
#include "write.h"

/* Until the command line is read, NULL is the codec that is not given. */
static void set_defaults(void *job) {
    write_job *w = job;
    presto_convert_options_defaults(&w->convert);
    w->default_codec = w->convert.codec;
    w->convert.codec = NULL;
}

/* A name, or K/N: each sets a field of its own. */
static void read_part(const char *option, const char *text, void *place, void *beside) {
    const char **name = place;
    presto_share *share = beside;
    const char *slash = strchr(text, '/');
    if (slash == NULL) {
        *name = text;
        return;
    }
    char *end = NULL, *behind = NULL;
    unsigned long number = strtoul(text, &end, 10), count = strtoul(slash + 1, &behind, 10);
    bool is_text = text[0] < '0' || text[0] > '9' || end != slash || slash[1] < '0' ||
                   slash[1] > '9' || *behind != '\0';
    if (is_text)
        cli_usage("%s: '%s' is not a number of parts, such as 0/8, 1/8 to 7/8", option, text);
    if (count == 0 || count > PRESTO_MAX_SHARDS)
        cli_usage("%s %s: there are 1 to %d parts", option, text, PRESTO_MAX_SHARDS);
    if (number >= count)
        cli_usage("%s %s: the parts are 0/%lu to %lu/%lu", option, text, count, count - 1, count);
    share->number = number;
    share->count = count;
}

static const cli_option options[] = {
    CLI_GROUP("What"),
    {'p', "pipeline", "NAME|FILE", "the pipeline to run", NULL, CLI_TEXT(write_job, pipeline_name),
     CLI_WORDS_OF(presto_pipeline_builtin_at)},
    CLI_SET_OPTION(write_job, settings),
    CLI_PLUGIN_OPTION(write_job, settings),
    CLI_ALLOW_OPTION(write_job, settings.allows_code, "a strategy"),
    CLI_FROM_OPTION(write_job, settings.from,
                    "the sources are TFRecords, or a dataset, that hold this one; the steps after "
                    "it run",
                    NULL),
    CLI_FEATURE_OPTION(write_job, settings.feature),
    CLI_INDEX_OPTION(write_job, convert.keep_index, convert.index_dir),
    {'u', "up-to", "REPRESENTATION", "store this one",
     "the last before a random step, and before one that only widens numbers, such as "
     "center-pixels, or looks them up, such as embed",
     CLI_TEXT(write_job, convert.up_to), CLI_WORDS_OF(cli_representation_at)},
    {'c', "codec", "CODEC[:LEVEL]",
     "compress each record, e.g. zstd:3 or lz4; TensorFlow reads none, zlib and gzip", "none",
     CLI_CODEC(write_job, convert.codec)},
    CLI_FILE_COMPRESSION_OPTION(write_job, convert.file_compression, "", 0),
    {0, "tensorflow-readable", NULL,
     "refuse codecs that not every TensorFlow reads: all but none, zlib and gzip", NULL,
     CLI_FLAG(write_job, tensorflow_readable)},
    {0, "strategy", "FILE",
     "all of these and -s, -j from presto-sweep's strategy.yaml; options given here win", NULL,
     CLI_TEXT(write_job, strategy_file)},
    CLI_SPLIT_OPTION(write_job, convert.partition),
    {0, "part", "NAME|K/N",
     "with --split, " CLI_PART_TEXT ". K/N: of the files that are to be written, only part K of N, "
     "from 0, for other machines to write the others meanwhile; --join makes the dataset of them. "
     "May be given once for each",
     NULL, CLI_SPECIAL2(write_job, convert.partition.part, convert.share, read_part),
     CLI_WORDS("train|eval|validation|test")},
    CLI_SPLIT_SEED_OPTION(write_job, convert.partition),
    {0, "limit", "N", "only the first N samples", NULL,
     CLI_NUMBER(write_job, convert.limit_samples, 1, UINT64_MAX)},

    CLI_GROUP("How"),
    {'o', "output", "DIR",
     "folder to write, or s3:// or gs://BUCKET/KEY; must be empty, or not exist yet", NULL,
     CLI_PATH(write_job, output)},
    {'s', "shards", "N", "number of files", "as many as threads",
     CLI_NUMBER(write_job, convert.shards, 1, PRESTO_MAX_SHARDS), CLI_GIVEN(write_job, has_shards)},
    {0, "shard-bytes", "SIZE",
     "instead of --shards: as many files as it takes, none larger than this, e.g. 256MiB, unless a "
     "single record is. With --file-compression, the size before it",
     NULL, CLI_SIZE(write_job, convert.shard_bytes, 1)},
    {0, "attempt", "NAME",
     "what this run of --part K/N is called, such as a task's number: two runs of one part may be "
     "under way, and one of them counts",
     "random", CLI_TEXT(write_job, convert.share.attempt)},
    {0, "join", NULL,
     "make one dataset of the parts that --part K/N has written to DIR, and stop; DIR may be given "
     "without -o",
     NULL, CLI_FLAG(write_job, joins)},
    {'j', "threads", "N|auto",
     "worker threads; 0 = run inline; auto = as many of the CPUs as are found to help",
     "number of CPUs", CLI_THREADS(write_job, convert.threads, convert.auto_threads),
     CLI_GIVEN(write_job, has_threads)},
    {0, "resume", NULL,
     "go on with an interrupted run of the same command, keeping its finished files; those under "
     "way, up to four, are made anew, so that more files lose less",
     NULL, CLI_FLAG(write_job, convert.resume)},
    CLI_ON_ERROR_OPTION(write_job, convert.errors,
                        CLI_ON_ERROR_TEXT("at most N samples", "of the samples")),
    CLI_ERROR_REPORT_OPTION(write_job, error_file),
    {0, "seed", "S", "recorded in dataset.json", CLI_FIELD,
     CLI_NUMBER(write_job, convert.seed, 0, UINT64_MAX), CLI_GIVEN(write_job, has_seed)},
    CLI_EXPLAIN_OPTIONS(write_job, explain),
    CLI_COMMON_OPTIONS(
        write_job, "print the closing figures, or what --explain says, as a JSON object on stdout",
        0),
};

static const cli_program self = {
    "presto-write",
    "-p PIPELINE [OPTIONS] -o DIR SOURCE...\n"
    "--strategy FILE [OPTIONS] -o DIR SOURCE...\n"
    "--join DIR",
    "Run a pipeline over source files up to one representation and store the samples as TFRecord "
    "files, with their index and dataset.json.",
    options,
    "Where dataset.json stands, the dataset is whole: it is written last.",
    sizeof(write_job),
    set_defaults,
    .example = "presto-write -p cv -u resized -c zstd:3 -o photos-resized photos",
    .most_exit = CLI_CORRUPT,
};

/* Options that are given win. */
static void apply_strategy(write_job *w) {
    presto_error err;
    presto_convert_options *o = &w->convert;
    if (presto_strategy_load(w->strategy_file, &w->strategy, &err) < 0)
        exit(cli_error(&err));
    cli_note_old_names(&w->strategy, w->strategy_file, w->quiet);
    if (strcmp(w->strategy.stored, PRESTO_UNPROCESSED) == 0 && o->up_to == NULL) {
        cli_message("%s: its strategy is to read the source as it is: nothing to write; "
                    "presto-load --strategy reads it",
                    w->strategy_file);
        exit(CLI_FAILED);
    }
    if (w->pipeline_name == NULL) {
        w->pipeline_name = w->strategy.pipeline;
        cli_settings_of_strategy(&w->settings, &w->strategy);
    }
    if (o->up_to == NULL)
        o->up_to = w->strategy.stored;
    if (o->codec == NULL)
        o->codec = w->strategy.codec;
    if (!w->has_shards && o->shard_bytes == 0 && w->strategy.shards > 0) {
        o->shards = w->strategy.shards;
        w->has_shards = true;
    }
    if (!w->has_threads) {
        o->threads = w->strategy.threads;
        w->has_threads = true;
    }
    if (!w->has_seed)
        o->seed = w->strategy.seed;
}

/* DIR is that of -o, or the only operand. */
static void parse_join(write_job *w, int argc, char **argv) {
    if (w->output == NULL && optind + 1 == argc)
        w->output = argv[optind];
    else if (w->output == NULL || optind < argc)
        cli_usage("--join: which folder? Give one: presto-write --join DIR");
    if (w->pipeline_name != NULL || w->strategy_file != NULL)
        cli_usage("--join: the parts say what they are; leave --pipeline and --strategy out");
    const presto_convert_options *o = &w->convert;
    if (w->explain || o->resume || w->has_shards || o->shard_bytes > 0 || o->codec != NULL ||
        o->up_to != NULL || o->share.attempt != NULL || o->limit_samples > 0 ||
        o->partition.ratio != NULL || o->errors.policy != PRESTO_ON_ERROR_FAIL ||
        w->error_file != NULL)
        cli_usage("--join: the parts say what they are; only --json and --quiet go with it");
    if (w->convert.share.count > 0)
        cli_usage("--join and --part K/N: first all parts are written, then they are joined");
}

static void check_share(const write_job *w) {
    const presto_share *share = &w->convert.share;
    if (share->attempt != NULL && share->count == 0)
        cli_usage("--attempt needs --part K/N");
    if (share->count == 0)
        return;
    if (w->convert.shard_bytes > 0)
        cli_usage("--part K/N and --shard-bytes: where a file ends depends on those before it, so "
                  "parts need --shards");
    if (!w->has_shards)
        cli_usage("--part K/N: how many files have all parts together? Give --shards, as machines "
                  "may have other numbers of CPUs");
}

static void parse_command_line(write_job *w, int argc, char **argv) {
    cli_parse(argc, argv, w);
    if (w->joins) {
        parse_join(w, argc, argv);
        return;
    }
    cli_check_operands(argc, argv, 0, INT32_MAX, "SOURCE");
    if (w->pipeline_name == NULL && w->strategy_file == NULL)
        cli_usage("--pipeline is missing");
    if (w->output == NULL && !w->explain)
        cli_usage("--output is missing");
    if (w->has_shards && w->convert.shard_bytes > 0)
        cli_usage("--shards and --shard-bytes: one of them decides where files end");
    if (w->strategy_file != NULL)
        apply_strategy(w);
    if (w->convert.codec == NULL)
        w->convert.codec = w->default_codec;
    if (w->tensorflow_readable)
        cli_check_codec(w->convert.codec == w->strategy.codec ? w->strategy_file : "--codec",
                        w->convert.codec, true);
    if (!w->has_threads || w->convert.auto_threads)
        w->convert.threads = presto_processor_count();
    if (!w->has_shards && w->convert.shard_bytes == 0)
        w->convert.shards = w->convert.threads > 0 ? w->convert.threads : 1;
    check_share(w);
    cli_check_partition(&w->convert.partition);
    if (w->error_file != NULL && w->convert.errors.policy == PRESTO_ON_ERROR_FAIL)
        cli_usage("--error-report needs --on-error skip");
    w->convert.errors.on_skip = error_report_add;
    w->convert.errors.on_skip_user = &w->errors;
    w->convert.errors.on_warning = cli_warning;
}

/* ---- the job ---- */

typedef struct watch {
    cli_progress progress;
} watch;

static bool on_progress(void *user, const presto_progress *progress) {
    watch *w = user;
    cli_catch_signals(); /* nothing to clean up until here */
    char note[64] = "";
    if (progress->skipped > 0)
        snprintf(note, sizeof note, "%ju skipped", (uintmax_t)progress->skipped);
    cli_progress_state state = {
        "samples", progress->samples_done, progress->samples_total, progress->bytes_written, note,
        false};
    cli_progress_show(&w->progress, &state);
    return !cli_interrupted();
}

static double per_second(uint64_t count, uint64_t ns) {
    return ns > 0 ? (double)count * 1e9 / (double)ns : 0;
}

static void print_packed(const presto_convert_result *result) {
    char documents[PRESTO_TEXT_BYTES], tokens[PRESTO_TEXT_BYTES], rest[PRESTO_TEXT_BYTES];
    cli_message("packed %s, %s; %s %s",
                presto_format_things(result->packed_documents, "document", documents),
                presto_format_things(result->packed_tokens, "token", tokens),
                presto_format_things(result->dropped_tokens + result->padded_tokens, "token", rest),
                result->padded_tokens > 0 ? "of padding" : "fill no row and are left out");
}

static void print_result(const write_job *w, const presto_convert_result *result) {
    char samples[PRESTO_TEXT_BYTES], stored[PRESTO_TEXT_BYTES], time[PRESTO_TEXT_BYTES];
    char rate[PRESTO_TEXT_BYTES], shards[PRESTO_TEXT_BYTES];
    char part[80] = "";
    if (w->convert.share.count > 0)
        snprintf(part, sizeof part, "part %zu/%zu: ", w->convert.share.number,
                 w->convert.share.count);
    cli_message("%s: %s%s (%s), %s, %s in %s: %s samples/s", w->output, part,
                presto_format_things(result->samples, "sample", samples), w->convert.up_to,
                presto_format_things(result->shards, "shard", shards),
                presto_format_bytes((double)result->stored_bytes, stored),
                presto_format_seconds((double)result->wall_ns / 1e9, time),
                presto_format_number(per_second(result->samples, result->wall_ns), rate));
    if (result->skipped > result->dropped)
        cli_message("%s skipped",
                    presto_format_things(result->skipped - result->dropped, "sample", samples));
    if (result->dropped > 0)
        cli_message("%s left out by steps",
                    presto_format_things(result->dropped, "sample", samples));
    if (result->packed_documents > 0)
        print_packed(result);
    if (result->sent_requests > 0)
        cli_message("%s, %s; %s sent again",
                    presto_format_things(result->sent_requests, "request", samples),
                    presto_format_bytes((double)result->sent_bytes, stored),
                    presto_format_count(result->sent_retries, time));
}

static int print_json(const write_job *w, const presto_pipeline *pipeline,
                      const presto_convert_result *result) {
    const cli_count counts[] = {
        {"samples", result->samples},
        {"skipped", result->skipped},
        {"shards", result->shards},
        {"source_bytes", result->source_bytes},
        {"stored_bytes", result->stored_bytes},
        {"raw_bytes", result->raw_bytes},
        {"threads", result->threads},
        {"dropped", result->dropped},
        {"packed_documents", result->packed_documents},
        {"packed_tokens", result->packed_tokens},
        {"dropped_tokens", result->dropped_tokens},
        {"padded_tokens", result->padded_tokens},
        {"sent_requests", result->sent_requests},
        {"sent_retries", result->sent_retries},
        {"sent_bytes", result->sent_bytes},
    };
    json_t *object = cli_json_new();
    cli_json_set(object, "dataset", cli_json_text(w->output));
    cli_json_set(object, "pipeline", json_string(presto_pipeline_name(pipeline)));
    cli_json_set(object, "stored", json_string(w->convert.up_to));
    cli_json_set(object, "split", json_string(w->convert.up_to)); /* its name before */
    cli_json_set(object, "codec", json_string(w->convert.codec));
    cli_json_set_counts(object, counts, sizeof counts / sizeof counts[0]);
    cli_json_set(object, "auto_threads", json_boolean(w->convert.auto_threads));
    cli_json_set(object, "wall_s", cli_json_real((double)result->wall_ns / 1e9));
    cli_json_set(object, "cpu_s", cli_json_real((double)result->cpu_ns / 1e9));
    cli_json_set(object, "samples_per_s",
                 cli_json_real(per_second(result->samples, result->wall_ns)));
    cli_json_set(object, "notes", json_incref(w->notes));
    return cli_print_json(object);
}

void write_note(void *user, const char *note) {
    write_job *w = user;
    if (!w->quiet)
        cli_message("note: %s", note);
    if (w->json)
        cli_json_append(w->notes, cli_json_text(note));
}

/* A run that ends early: what stays of it? */
static int stopped(const write_job *w) {
    const presto_share *share = &w->convert.share;
    if (share->count == 0)
        return cli_stopped_conversion(w->output);
    cli_message("%s: part %zu/%zu stopped; the same command with --resume goes on with what is "
                "whole of it",
                w->output, share->number, share->count);
    return CLI_FAILED;
}

static void stop_late(void *job) {
    (void)stopped(job);
}

static int run(write_job *w, const presto_pipeline *pipeline, const char *const *paths,
               size_t path_count) {
    presto_error err;
    presto_convert_result result;
    watch watching;
    cli_progress_start(&watching.progress, w->quiet);
    w->convert.pipeline = pipeline;
    w->convert.dir = w->output;
    w->convert.on_note = write_note;
    w->convert.on_note_user = w;
    w->notes = json_array();
    w->convert.on_progress = on_progress;
    w->convert.on_progress_user = &watching;
    cli_on_late_end(&(cli_late_end){stop_late, w, CLI_CONVERSION_ENDS_S});
    presto_status status = presto_convert(paths, path_count, &w->convert, &result, &err);
    cli_hold_end();
    if (status >= 0)
        w->convert.up_to = result.stored;
    cli_progress_end(&watching.progress);
    error_report_flush(&w->errors);
    if (status >= 0 && !w->quiet)
        print_result(w, &result);
    int code = CLI_DONE;
    if (status == PRESTO_ERR_STOPPED)
        code = stopped(w);
    else if (status < 0)
        code = cli_error(&err);
    else if (w->json)
        code = print_json(w, pipeline, &result);
    json_decref(w->notes);
    cli_release_end();
    return code;
}

int main(int argc, char **argv) {
    write_job w = {0};
    cli_start(&self);
    parse_command_line(&w, argc, argv);
    if (w.joins) {
        int code = write_join(&w);
        cli_reraise();
        return code;
    }
    presto_pipeline *pipeline = cli_load_pipeline(w.pipeline_name, &w.settings);
    cli_check_sources(argc, argv, pipeline, "SOURCE");
    /* Without a choice, a dataset that is further already keeps its representation. */
    const char *up_to = w.convert.up_to;
    if (up_to == NULL)
        up_to = presto_pipeline_representation_name(
            pipeline, presto_pipeline_representation_default(pipeline));
    cli_check_representation(pipeline, "--up-to", up_to, true);
    if (strcmp(up_to, PRESTO_UNPROCESSED) == 0)
        cli_usage("--up-to: '%s' is the source as it is: nothing to write; presto-load -p reads it",
                  up_to);
    if (w.explain)
        w.convert.up_to = up_to;
    const char *const *paths = (const char *const *)argv + optind;
    size_t path_count = (size_t)(argc - optind);
    int code = error_report_open(&w.errors, w.error_file);
    if (code == CLI_DONE) {
        code = w.explain ? write_explain(&w, pipeline, paths, path_count)
                         : run(&w, pipeline, paths, path_count);
        code = error_report_close(&w.errors, code);
    }
    presto_pipeline_free(pipeline);
    presto_strategy_file_done(&w.strategy);
    cli_reraise();
    return code;
}
