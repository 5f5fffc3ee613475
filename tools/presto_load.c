/* SPDX-License-Identifier: Apache-2.0 */
/*
 * presto-load: the online part of a strategy. Shards, or the raw source, through the remaining
 * steps to stdout. All work is the loader's (presto/loader.h) and the sink's (sink.h); here are the
 * options, the loop and the closing words.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <getopt.h>

#include <presto/clock.h>
#include <presto/job.h>
#include <presto/sweep.h>

#include "cli.h"
#include "error_report.h"
#include "feature_options.h"
#include "raw_records.h"
#include "report.h"
#include "sink.h"
#include "state_file.h"

enum {
    OPT_FROM = CLI_LONG,
    OPT_TO,
    OPT_SHUFFLE,
    OPT_SEED,
    OPT_ORDER,
    OPT_RANK,
    OPT_WORLD,
    OPT_DROP_LAST,
    OPT_PREFETCH,
    OPT_FORMAT,
    OPT_FEATURES,
    OPT_PAD,
    OPT_STATS,
    OPT_LIMIT,
    OPT_SKIP,
    OPT_ON_ERROR,
    OPT_ERROR_REPORT,
    OPT_VERIFY,
    OPT_STRATEGY,
    OPT_EXPLAIN,
    OPT_HELP_STEPS,
    OPT_SET,
    OPT_RAW_RECORDS,
    OPT_CACHE,
    OPT_STATE,
    OPT_STATE_INTERVAL,
    DEFAULT_BLOCK_OF_RECORDS = 256, /* samples handed out at a time where batches do not show */
    MAX_THREADS = 1024,
    STATE_INTERVAL_S = 30,
};

static const cli_option options[] = {
    {0, "Input", NULL, NULL},
    {'p', "pipeline", "NAME|FILE",
     "the pipeline: of a raw source, or of TFRecords that have no dataset.json"},
    CLI_SET_OPTION(OPT_SET),
    {OPT_FROM, "from", "REPRESENTATION",
     "what such TFRecords hold; the steps after it run [default: no steps]"},
    {OPT_TO, "to", "REPRESENTATION", "stop there [default: the end of the pipeline]"},
    {OPT_STRATEGY, "strategy", "FILE",
     "threads, batch, seed and pipeline from presto-sweep's strategy.yaml; options given here win"},
    {OPT_VERIFY, "verify", "LEVEL", "checksums to check: full, header or none [default: full]"},
    {OPT_ON_ERROR, "on-error", "POLICY",
     "what to do about a sample that is damaged, does not fit a step or cannot be read: fail, "
     "skip, "
     "skip:N (at most N samples) or skip:P% (of the samples) [default: fail]"},
    {OPT_ERROR_REPORT, "error-report", "FILE",
     "append a line of JSON there for each sample skipped, as it happens, or for each run of them "
     "that are alike: file, record, byte, sample, samples, epoch, status, reason [default: a line "
     "on stderr]"},

    {0, "Order", NULL, NULL},
    {'e', "epochs", "N", "passes over the data [default: 1]"},
    {OPT_LIMIT, "limit", "N", "stop after N samples in all, over all epochs"},
    {OPT_SKIP, "skip", "N",
     "start at sample N of the stream, from 0: what is this rank's over all epochs, samples left "
     "out included. A trainer that has taken N samples goes on with it; --limit counts from there"},
    {OPT_SHUFFLE, "shuffle", "HOW",
     "none, full, buffer:N (a random one of the next N samples) or blocks:N (blocks of N samples "
     "in "
     "random order, each shuffled) [default: none]"},
    {OPT_SEED, "seed", "S", "of shuffling and random steps [default: 0]"},
    {OPT_ORDER, "order", "ORDER",
     "strict (the same for any number of threads) or completion [default: strict]"},
    {OPT_RANK, "rank", "R", "deliver share R of --world, from 0"},
    {OPT_WORLD, "world", "W", "number of shares"},

    {0, "Work", NULL, NULL},
    {'j', "threads", "N|auto",
     "worker threads; 0 = run inline; auto = as many of the CPUs as are found to be worth it while "
     "running [default: number of CPUs, by affinity and cgroup]"},
    {OPT_PREFETCH, "prefetch-bytes", "SIZE",
     "memory for data in flight, e.g. 64MiB [default: 256MiB]"},
    {OPT_CACHE, "cache", "none|memory:SIZE|disk:DIR:SIZE",
     "keep samples as they are after the last step that is not random, so that they are not "
     "computed again: in memory, beside --prefetch-bytes, for later epochs; or in the folder DIR, "
     "for later runs and other processes as well, which holds at most SIZE of all that share it "
     "(not for tfrecord) [default: none]"},
    {OPT_STATE, "state", "FILE",
     "go on where the run that wrote FILE ended, if it exists; written at the start, at "
     "intervals, and however the run ends but by kill -9. It counts batches that are whole in the "
     "pipe: a trainer that stops has not seen the last of them and goes on with --skip instead, "
     "for which FILE is only checked and written. --limit counts this run alone"},
    {OPT_STATE_INTERVAL, "state-interval", "SECONDS",
     "how often: a run that is killed delivers again what came after [default: 30]"},

    {0, "Output", NULL, NULL},
    {OPT_FORMAT, "format", "FORMAT",
     "of stdout: tfrecord (an Example per sample), npy (arrays of each feature of each batch), raw "
     "(bare tensors back to back) or null (count only) [default: tfrecord]"},
    {'b', "batch", "N", "samples per batch, for npy [default: 1]"},
    {OPT_DROP_LAST, "drop-last", NULL, "leave out a last batch that is not full"},
    {OPT_FEATURES, "features", "A,B,...",
     "what npy and raw deliver, in this order; without steps, nothing else is parsed [default: "
     "npy: the main "
     "feature, label, then the others; raw: the main feature]"},
    {OPT_PAD, "pad", "FEATURE=VALUE[:LENGTH]",
     "fill the rows of a feature that differ in length up with VALUE, to the longest of the batch "
     "or to LENGTH, so that they are one array (npy, raw); may be given several times"},
    {OPT_RAW_RECORDS, "raw-records", NULL,
     "pass the records on as they are stored, whatever they hold (tfrecord or null)"},
    {OPT_STATS, "stats", "FILE", "write the figures of the run there, as JSON"},
    {OPT_EXPLAIN, "explain", NULL, "print what would run, and stop"},
    {OPT_HELP_STEPS, "help-steps", NULL, "print all steps and their options, and stop"},
    CLI_COMMON_OPTIONS("print the figures, or what --explain says, on stdout (with --format null)"),
};

static const cli_program self = {
    "presto-load",
    "[OPTIONS] DIR\n"
    "[OPTIONS] [-p PIPELINE --from REPRESENTATION] FILE|DIR...\n"
    "[OPTIONS] -p PIPELINE SOURCE...",
    "Stream samples to stdout: a dataset that presto-write made, any TFRecord files, or a raw "
    "source, through the steps that remain.",
    options,
    "npy: a message says which arrays follow, another one ends a whole stream; texts\n"
    "and rows of differing length are values and offsets (docs/streams.md,\n"
    "examples/npy_stream.py). A reader that closes the pipe ends the program quietly.\n"
    "Exit: 0 done, 1 failed, 2 usage, 3 data corrupt.\n"
    "\n"
    "Example: presto-load -b 32 -e 2 --shuffle full --format null photos-resized",
};

typedef struct load {
    presto_stream_options input;
    presto_loader_options loader;
    sink_format format;
    feature_options features;
    const char *stats_file;
    const char *state_file;
    double state_interval_s; /* negative: not given */
    const char *strategy_file;
    const char *error_file;
    char *cache_dir; /* NULL: no cache on disk */
    error_report errors;
    presto_strategy_file strategy;
    cli_settings settings;
    bool quiet, json, explain, raw_records;
    bool has_threads, has_batch, has_seed, has_rank, has_world, has_skip;
} load;

static const char *const format_names[] = {"tfrecord", "npy", "raw", "null", NULL};

static void parse_shuffle(load *l, const char *text) {
    static const struct {
        const char *prefix;
        presto_shuffle_kind kind;
    } windows[] = {{"buffer:", PRESTO_SHUFFLE_BUFFER}, {"blocks:", PRESTO_SHUFFLE_BLOCKS}};
    for (size_t i = 0; i < sizeof windows / sizeof windows[0]; i++) {
        size_t length = strlen(windows[i].prefix);
        if (strncmp(text, windows[i].prefix, length) != 0)
            continue;
        l->loader.shuffle = windows[i].kind;
        l->loader.shuffle_window = cli_number("--shuffle", text + length, 1, UINT32_MAX);
        return;
    }
    if (strcmp(text, "full") == 0)
        l->loader.shuffle = PRESTO_SHUFFLE_FULL;
    else if (strcmp(text, "none") == 0)
        l->loader.shuffle = PRESTO_SHUFFLE_NONE;
    else
        cli_usage("--shuffle: '%s' is not one of none, full, buffer:N, blocks:N", text);
}

static void parse_order_option(load *l, int id, const char *text) {
    static const char *const orders[] = {"strict", "completion", NULL};
    presto_loader_options *o = &l->loader;
    if (id == 'e') {
        o->epochs = cli_number("--epochs", text, 1, UINT64_MAX);
    } else if (id == OPT_LIMIT) {
        o->limit_samples = cli_number("--limit", text, 1, UINT64_MAX);
    } else if (id == OPT_SKIP) {
        o->skip_samples = cli_number("--skip", text, 0, UINT64_MAX - 1);
        l->has_skip = true;
    } else if (id == OPT_SHUFFLE) {
        parse_shuffle(l, text);
    } else if (id == OPT_SEED) {
        o->seed = cli_number("--seed", text, 0, UINT64_MAX);
        l->has_seed = true;
    } else if (id == OPT_ORDER) {
        o->completion_order = cli_choice("--order", text, orders) == 1;
    } else if (id == OPT_RANK) {
        o->rank = cli_number("--rank", text, 0, UINT64_MAX);
        l->has_rank = true;
    } else if (id == OPT_WORLD) {
        o->world = cli_number("--world", text, 1, UINT64_MAX);
        l->has_world = true;
    }
}

static void parse_input_option(load *l, int id, const char *text) {
    static const char *const levels[] = {"full", "header", "none", NULL};
    static const presto_verify verifies[] = {PRESTO_VERIFY_FULL, PRESTO_VERIFY_HEADER,
                                             PRESTO_VERIFY_NONE};
    if (id == 'p') {
        l->input.pipeline = text;
    } else if (id == OPT_SET) {
        cli_add_setting(&l->settings, text);
        l->input.pipeline_options = cli_pipeline_options(&l->settings);
    } else if (id == OPT_FROM) {
        l->input.from = text;
    } else if (id == OPT_TO) {
        l->input.to = text;
    } else if (id == OPT_STRATEGY) {
        l->strategy_file = text;
    } else if (id == OPT_VERIFY) {
        l->loader.verify = verifies[cli_choice("--verify", text, levels)];
        l->input.verify = l->loader.verify;
    } else if (id == OPT_ON_ERROR) {
        cli_on_error policy = cli_parse_on_error("--on-error", text);
        l->loader.on_error = policy.policy;
        l->input.tolerate_damage = policy.policy == PRESTO_ON_ERROR_SKIP;
        l->loader.skip_limit = policy.skip_limit;
        l->loader.skip_fraction = policy.skip_fraction;
    } else if (id == OPT_ERROR_REPORT) {
        l->error_file = cli_path("--error-report", text);
    }
}

/* disk:DIR:SIZE; DIR may have colons in it. */
static void parse_disk_cache(load *l, const char *text) {
    const char *size = strrchr(text, ':');
    if (size == NULL || size == text)
        cli_usage("--cache: 'disk:%s' is not disk:DIR:SIZE", text);
    l->loader.cache_bytes = (size_t)cli_size("--cache", size + 1, 1);
    free(l->cache_dir);
    l->cache_dir = presto_span_to_text(presto_span_of(text, (size_t)(size - text)));
    if (l->cache_dir == NULL) {
        cli_message("out of memory");
        exit(CLI_FAILED);
    }
}

static void parse_cache(load *l, const char *text) {
    free(l->cache_dir);
    l->cache_dir = NULL;
    if (strncmp(text, "memory:", 7) == 0)
        l->loader.cache_bytes = (size_t)cli_size("--cache", text + 7, 1);
    else if (strncmp(text, "disk:", 5) == 0)
        parse_disk_cache(l, text + 5);
    else if (strcmp(text, "none") == 0)
        l->loader.cache_bytes = 0;
    else
        cli_usage("--cache: '%s' is not one of none, memory:SIZE, disk:DIR:SIZE", text);
    l->loader.cache_dir = l->cache_dir;
    l->input.cache = l->loader.cache_bytes > 0;
}

static void parse_output_option(load *l, int id, const char *text) {
    if (id == 'j') {
        l->loader.auto_threads = strcmp(text, "auto") == 0;
        l->loader.threads = l->loader.auto_threads
                                ? cli_cpu_count()
                                : (unsigned)cli_number("--threads", text, 0, MAX_THREADS);
        l->has_threads = true;
    } else if (id == OPT_PREFETCH) {
        l->loader.prefetch_bytes = (size_t)cli_size("--prefetch-bytes", text, 1);
    } else if (id == OPT_CACHE) {
        parse_cache(l, text);
    } else if (id == OPT_STATE) {
        l->state_file = cli_path("--state", text);
    } else if (id == OPT_STATE_INTERVAL) {
        l->state_interval_s = cli_fraction("--state-interval", text, 0, 1e9);
    } else if (id == OPT_FORMAT) {
        l->format = (sink_format)cli_choice("--format", text, format_names);
    } else if (id == 'b') {
        l->loader.batch_samples = (size_t)cli_number("--batch", text, 1, UINT32_MAX);
        l->has_batch = true;
    } else if (id == OPT_DROP_LAST) {
        l->loader.drop_last = true;
    } else if (id == OPT_FEATURES) {
        feature_options_names(&l->features, text);
    } else if (id == OPT_PAD) {
        feature_options_pad(&l->features, text);
    } else if (id == OPT_RAW_RECORDS) {
        l->raw_records = true;
    } else if (id == OPT_STATS) {
        l->stats_file = cli_path("--stats", text);
    } else if (id == OPT_EXPLAIN) {
        l->explain = true;
    } else if (id == OPT_HELP_STEPS) {
        cli_help_steps();
    } else if (id == CLI_QUIET) {
        l->quiet = true;
    } else if (id == CLI_JSON) {
        l->json = true;
    }
}

/* Raw records have no samples: nothing that knows of samples goes with them. */
static void check_raw_records(const load *l) {
    const presto_loader_options *o = &l->loader;
    if (l->format != SINK_TFRECORD && l->format != SINK_NULL)
        cli_usage("--raw-records needs --format tfrecord or null");
    if (l->input.pipeline != NULL || l->input.from != NULL || l->input.to != NULL ||
        l->strategy_file != NULL || o->shuffle != PRESTO_SHUFFLE_NONE || o->completion_order ||
        l->has_rank || l->has_skip || o->drop_last || o->cache_bytes > 0 || l->state_file != NULL ||
        l->stats_file != NULL || l->json || l->explain)
        cli_usage("--raw-records goes with --epochs, --limit, --verify and --on-error only");
}

/* What contradicts itself is refused before any work. */
static void check_options(load *l, int argc, char **argv) {
    cli_check_operands(argc, argv, 1, INT32_MAX, "what to load (DIR, FILE or SOURCE)");
    if (l->has_rank != l->has_world)
        cli_usage("--rank and --world go together");
    if (l->has_rank && l->loader.rank >= l->loader.world)
        cli_usage("--rank: %ju is not below --world %ju", (uintmax_t)l->loader.rank,
                  (uintmax_t)l->loader.world);
    if (l->features.name_count > 0 && l->format != SINK_NPY && l->format != SINK_RAW)
        cli_usage("--features needs --format npy or raw");
    if (l->features.pad_count > 0 && l->format != SINK_NPY && l->format != SINK_RAW)
        cli_usage("--pad needs --format npy or raw");
    if (l->loader.drop_last && l->format == SINK_TFRECORD)
        cli_usage("--drop-last needs batches: --format npy, raw or null");
    if (l->loader.cache_bytes > 0 && l->format == SINK_TFRECORD)
        cli_usage("--cache: records are not cached; --format npy, raw or null");
    if (l->state_interval_s >= 0 && l->state_file == NULL)
        cli_usage("--state-interval needs --state");
    if (l->state_interval_s < 0)
        l->state_interval_s = STATE_INTERVAL_S;
    if ((l->state_file != NULL || l->has_skip) && l->loader.completion_order)
        cli_usage("%s needs --order strict", l->has_skip ? "--skip" : "--state");
    if (l->error_file != NULL && l->loader.on_error == PRESTO_ON_ERROR_FAIL)
        cli_usage("--error-report needs --on-error skip");
    if (l->raw_records)
        check_raw_records(l);
    if (l->json && l->format != SINK_NULL && !l->explain)
        cli_usage("--json: stdout carries the samples; use --stats FILE");
    if (l->format != SINK_NULL && !l->explain && isatty(STDOUT_FILENO))
        cli_usage("--format %s is binary and stdout is a terminal: redirect it, or use --format "
                  "null",
                  format_names[l->format]);
}

/* Names that do not exist are refused before any data is looked at. */
static void check_names(const load *l) {
    if (l->input.pipeline == NULL)
        return;
    presto_pipeline *pipeline = cli_load_pipeline(l->input.pipeline, &l->settings);
    if (l->input.from != NULL)
        cli_check_representation(pipeline, "--from", l->input.from, false);
    if (l->input.to != NULL)
        cli_check_representation(pipeline, "--to", l->input.to, false);
    presto_pipeline_free(pipeline);
}

static presto_status apply_strategy(load *l, presto_error *err) {
    if (l->strategy_file == NULL)
        return PRESTO_OK;
    PRESTO_TRY(presto_strategy_load(l->strategy_file, &l->strategy, err));
    if (!l->has_threads)
        l->loader.threads = l->strategy.threads;
    if (!l->has_batch && l->strategy.batch_samples > 0)
        l->loader.batch_samples = l->strategy.batch_samples;
    if (!l->has_seed)
        l->loader.seed = l->strategy.seed;
    l->has_threads = l->has_batch = true;
    /* A stored split names its pipeline in dataset.json. */
    if (l->input.pipeline == NULL && strcmp(l->strategy.split, PRESTO_UNPROCESSED) == 0) {
        l->input.pipeline = l->strategy.pipeline;
        cli_settings_of_strategy(&l->settings, &l->strategy);
        l->input.pipeline_options = cli_pipeline_options(&l->settings);
    }
    return PRESTO_OK;
}

/* A strategy is of one way to store one pipeline's samples; of files of others nothing is known. */
static void check_strategy(const load *l, const presto_stream *stream) {
    const presto_strategy_file *wanted = &l->strategy;
    if (stream->dataset == NULL || !presto_dataset_is_ours(stream->dataset))
        return;
    const presto_dataset_info *info = presto_dataset_get_info(stream->dataset);
    const char *split = info->split != NULL ? info->split : "nothing known";
    const char *codec = wanted->codec != NULL ? wanted->codec : "none";
    if (strcmp(split, wanted->split) != 0 || strcmp(info->codec, codec) != 0)
        cli_usage("--strategy: %s is about %s with codec %s, but this dataset holds %s with codec "
                  "%s; give -j, -b and --seed instead",
                  l->strategy_file, wanted->split, codec, split, info->codec);
    presto_pipeline *pipeline = NULL;
    presto_error err;
    if (stream->pipeline == NULL ||
        presto_pipeline_load(wanted->pipeline, NULL, &pipeline, &err) < 0)
        return;
    if (strcmp(presto_pipeline_name(pipeline), presto_pipeline_name(stream->pipeline)) != 0)
        cli_usage("--strategy: %s is about pipeline %s, but this dataset is of %s",
                  l->strategy_file, presto_pipeline_name(pipeline),
                  presto_pipeline_name(stream->pipeline));
    presto_pipeline_free(pipeline);
}

static void print_warning(void *user, const presto_error *warning) {
    const load *l = user;
    if (!l->quiet)
        cli_warning(NULL, warning);
}

static void parse_command_line(load *l, int argc, char **argv) {
    const char *text = NULL;
    presto_stream_options_defaults(&l->input);
    presto_loader_options_defaults(&l->loader);
    l->state_interval_s = -1;
    for (int id; (id = cli_next(argc, argv, &text)) != -1;) {
        parse_input_option(l, id, text);
        parse_order_option(l, id, text);
        parse_output_option(l, id, text);
    }
    check_options(l, argc, argv);
    l->loader.on_skip = error_report_add;
    l->loader.on_skip_user = &l->errors;
    l->loader.on_warning = print_warning;
    l->loader.on_warning_user = l;
    l->loader.should_stop = cli_should_stop;
}

static void settle_defaults(load *l) {
    if (!l->has_threads)
        l->loader.threads = cli_cpu_count();
    l->loader.output = l->format == SINK_TFRECORD ? PRESTO_OUTPUT_RECORDS
                       : l->format == SINK_NULL   ? PRESTO_OUTPUT_COUNT
                                                  : PRESTO_OUTPUT_BATCHES;
    if (!l->has_batch && (l->format == SINK_TFRECORD || l->format == SINK_NULL))
        l->loader.batch_samples = DEFAULT_BLOCK_OF_RECORDS;
}

/* ---- --explain ---- */

static const char *input_kind(const presto_stream *stream) {
    return stream->dataset == NULL                   ? "raw source"
           : presto_dataset_is_ours(stream->dataset) ? "dataset"
                                                     : "TFRecord files without dataset.json";
}

/* What is not known, or not there, is null. */
static json_t *text_json(const char *text) {
    return text != NULL ? cli_json_text(text) : json_null();
}

static json_t *plan_json(const presto_plan *plan) {
    bool has_steps = plan != NULL && presto_plan_step_count(plan) > 0;
    return text_json(has_steps ? presto_plan_explain(plan) : NULL);
}

static int explain_json(const load *l, const presto_stream *stream) {
    const presto_dataset_info *info =
        stream->dataset != NULL ? presto_dataset_get_info(stream->dataset) : NULL;
    const struct {
        const char *key;
        uint64_t count;
    } counts[] = {
        {"samples", presto_source_count(stream->source)},
        {"source_bytes", presto_source_bytes(stream->source)},
        {"shards", info != NULL ? info->shard_count : 0},
        {"threads", l->loader.threads},
        {"batch_samples", l->loader.batch_samples},
        {"prefetch_bytes", l->loader.prefetch_bytes},
    };
    json_t *object = cli_json_new();
    cli_json_set(object, "input", json_string(input_kind(stream)));
    cli_json_set(
        object, "pipeline",
        text_json(stream->pipeline != NULL ? presto_pipeline_name(stream->pipeline) : NULL));
    cli_json_set(object, "split", text_json(info != NULL ? info->split : NULL));
    cli_json_set(object, "codec", text_json(info != NULL ? info->codec : NULL));
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++)
        cli_json_set(object, counts[i].key, json_integer((json_int_t)counts[i].count));
    cli_json_set(object, "steps_before_cache", plan_json(stream->cache_plan));
    cli_json_set(object, "steps", plan_json(stream->plan));
    return cli_print_json(object);
}

static void explain(const load *l, const presto_stream *stream) {
    char count[PRESTO_TEXT_BYTES], bytes[PRESTO_TEXT_BYTES];
    printf("input: %s, %s, %s\n",
           presto_format_things(presto_source_count(stream->source), "sample", count),
           presto_format_bytes((double)presto_source_bytes(stream->source), bytes),
           input_kind(stream));
    cli_print_notes(stream->source);
    if (stream->pipeline != NULL)
        cli_put("pipeline: %s\n", presto_pipeline_name(stream->pipeline));
    if (stream->dataset != NULL) {
        const presto_dataset_info *info = presto_dataset_get_info(stream->dataset);
        cli_put("stored: %s, codec %s, %s\n", info->split != NULL ? info->split : "as found",
                info->codec != NULL ? info->codec : "none",
                presto_format_things(info->shard_count, "shard", count));
    }
    if (stream->cache_plan != NULL && presto_plan_step_count(stream->cache_plan) > 0)
        printf("steps before the cache:\n%s", presto_plan_explain(stream->cache_plan));
    if (stream->plan != NULL && presto_plan_step_count(stream->plan) > 0)
        printf("steps:\n%s", presto_plan_explain(stream->plan));
    else
        puts("steps: none remain");
    char epochs[PRESTO_TEXT_BYTES];
    printf("loader: %s, batch %zu, format %s, %s, prefetch %s\n",
           presto_format_things(l->loader.threads, "thread", count), l->loader.batch_samples,
           format_names[l->format], presto_format_things(l->loader.epochs, "epoch", epochs),
           presto_format_size(l->loader.prefetch_bytes, bytes));
}

/* ---- the loop ---- */

/* What this run has to deliver; 0: not known. */
static uint64_t total_samples(const load *l, const presto_loader *loader) {
    uint64_t epoch = presto_loader_epoch_samples(loader);
    uint64_t total = epoch > UINT64_MAX / l->loader.epochs ? 0 : epoch * l->loader.epochs;
    uint64_t limit = l->loader.limit_samples;
    uint64_t passed = l->loader.first_sample + l->loader.skip_samples;
    total = total > passed ? total - passed : 0;
    return limit != 0 && (total == 0 || limit < total) ? limit : total;
}

static void show_progress(cli_progress *progress, const load_report *report, uint64_t total) {
    char note[(size_t)2 * PRESTO_TEXT_BYTES + sizeof((presto_verdict *)0)->text],
        rate[PRESTO_TEXT_BYTES];
    presto_loader_stats stats;
    presto_verdict verdict;
    if (!cli_progress_is_due(progress))
        return;
    presto_loader_get_stats(report->loader, &stats);
    presto_loader_verdict(report->loader, &verdict);
    double seconds = (double)stats.wall_ns / 1e9;
    presto_format_bytes((double)stats.delivered_bytes / (seconds > 0 ? seconds : 1), rate);
    bool is_consumer = verdict.stage == PRESTO_STAGE_CONSUMER;
    snprintf(note, sizeof note, "%s/s, queue %.0f %%, %s for %s", rate, stats.queue_fill * 100,
             is_consumer ? "workers wait" : "consumer waits", verdict.text);
    cli_progress_state state = {"samples", stats.samples, total, 0, note};
    cli_progress_show(progress, &state);
}

/*
 * Pull until the end, or until a signal comes. PRESTO_END: all delivered; PRESTO_OK: the reader
 * closed the pipe. A batch that is not whole in the pipe does not count: the state is the one
 * before it.
 */
static presto_status pump(presto_loader *loader, sink *out, cli_progress *progress,
                          load_report *report, uint64_t total, presto_error *err) {
    for (;;) {
        presto_batch *batch = NULL;
        presto_status status = presto_loader_next(loader, &batch, err);
        if (status != PRESTO_OK)
            return status;
        status = sink_write(out, batch, err);
        if (status != PRESTO_OK) {
            presto_loader_give_back(loader, batch);
            report->reader_closed = status == PRESTO_END;
            return report->reader_closed ? PRESTO_OK : status;
        }
        presto_batch_release(batch);
        state_file_keep(&report->state, loader);
        show_progress(progress, report, total);
    }
}

/* The closing lines of a run that has not failed. */
static void print_end(const load *l, const load_report *report, presto_status status) {
    if (l->loader.skip_samples == UINT64_MAX && l->state_file != NULL)
        cli_message("%s: nothing remains", l->state_file);
    else
        report_print(report);
    if (status == PRESTO_ERR_STOPPED && l->state_file != NULL)
        cli_message("%s: the same command goes on from here", l->state_file);
}

static int finish(const load *l, load_report *report, presto_status status,
                  const presto_error *err) {
    int code = CLI_DONE;
    report->complete = status == PRESTO_END;
    if (status < 0 && status != PRESTO_ERR_STOPPED)
        code = cli_error(err);
    else if (!l->quiet && !report->reader_closed)
        print_end(l, report, status);
    if (l->state_file != NULL) {
        int state_code = state_file_write(report->loader, l->state_file);
        code = code == CLI_DONE ? state_code : code;
    }
    if (l->stats_file != NULL) {
        int write_code = report_write(report_json(report), l->stats_file);
        code = code == CLI_DONE ? write_code : code;
    }
    if (l->json) {
        int print_code = cli_print_json(report_json(report));
        code = code == CLI_DONE ? print_code : code;
    }
    return code;
}

/* All is delivered: the stream says so. */
static presto_status end_stream(sink *out, load_report *report, presto_error *err) {
    presto_status status = sink_end(out, err);
    if (status == PRESTO_OK)
        return PRESTO_END;
    report->reader_closed = status == PRESTO_END;
    return status == PRESTO_END ? PRESTO_OK : status;
}

/* Where the stream starts: PRESTO_OK, or what is wrong with --state. */
static presto_status find_start(load *l, const presto_source *source, presto_error *err) {
    if (l->state_file == NULL)
        return PRESTO_OK;
    if (l->has_skip)
        return state_file_check(l->state_file, source, &l->loader, err);
    presto_status status = state_file_read(l->state_file, source, &l->loader, err);
    return status < 0 ? status : PRESTO_OK;
}

/* What the run's ends are written into can be written: told before, not after hours. */
static int check_outputs(const load *l) {
    int code = CLI_DONE;
    if (l->stats_file != NULL && !l->explain)
        code = report_check(l->stats_file);
    if (l->state_file != NULL && !l->explain && code == CLI_DONE)
        code = report_check(l->state_file);
    return code;
}

static int stream_all(load *l, const presto_source *source, presto_loader *loader, sink *out) {
    presto_error err;
    cli_progress progress;
    load_report report = {.loader = loader,
                          .source = source,
                          .format = format_names[l->format],
                          .most_threads = l->loader.auto_threads ? l->loader.threads : 0,
                          .state = {.path = l->state_file,
                                    .interval_ns = (uint64_t)(l->state_interval_s * 1e9),
                                    .written_ns = presto_clock_ns()}};
    cli_catch_signals();
    /* From here on there is a state, whatever happens. */
    int code = l->state_file == NULL ? CLI_DONE : state_file_write(loader, l->state_file);
    if (code != CLI_DONE)
        return code;
    cli_progress_start(&progress, l->quiet);
    presto_status status = pump(loader, out, &progress, &report, total_samples(l, loader), &err);
    if (status == PRESTO_END)
        status = end_stream(out, &report, &err);
    cli_progress_end(&progress);
    error_report_flush(&l->errors);
    report.written_bytes = sink_bytes(out);
    return finish(l, &report, status, &err);
}

static void tell_notes(const presto_source *source) {
    size_t count;
    const char *const *notes = presto_source_notes(source, &count);
    for (size_t i = 0; i < count; i++)
        cli_message("note: %s", notes[i]);
}

static int run(load *l, const presto_stream *stream) {
    presto_error err;
    presto_loader *loader = NULL;
    sink *out = NULL;
    l->loader.cache_plan = stream->cache_plan;
    if (!l->quiet)
        tell_notes(stream->source);
    presto_status status =
        feature_options_apply(&l->features, stream, l->format == SINK_RAW, &l->loader, &err);
    if (status >= 0)
        status = find_start(l, stream->source, &err);
    if (status >= 0)
        status = presto_loader_open(stream->source, stream->plan, &l->loader, &loader, &err);
    if (status == PRESTO_ERR_UNSUPPORTED)
        cli_usage("%s", err.message);
    if (status >= 0)
        status = sink_new(l->format, STDOUT_FILENO, (const char *const *)l->features.names,
                          l->features.name_count, &out, &err);
    if (status < 0) {
        presto_loader_free(loader);
        return cli_error(&err);
    }
    int code = stream_all(l, stream->source, loader, out);
    sink_free(out);
    presto_loader_free(loader);
    return code;
}

static int open_and_run(load *l, const char *const *paths, size_t path_count) {
    presto_error err;
    presto_stream stream = {0};
    int code = CLI_DONE;
    presto_status status = apply_strategy(l, &err);
    settle_defaults(l);
    check_names(l);
    if (status >= 0)
        status = presto_stream_open(paths, path_count, &l->input, &stream, &err);
    if (status >= 0 && l->strategy_file != NULL)
        check_strategy(l, &stream);
    if (status < 0) {
        code = cli_error(&err);
        if (status == PRESTO_ERR_NOT_FOUND && l->input.pipeline == NULL)
            cli_message("to read a raw source, name its pipeline with --pipeline");
    } else if (l->explain && l->json) {
        code = explain_json(l, &stream);
    } else if (l->explain) {
        explain(l, &stream);
    } else {
        code = run(l, &stream);
    }
    presto_stream_close(&stream);
    presto_strategy_file_done(&l->strategy);
    return code;
}

static int run_raw_records(load *l, const char *const *paths, size_t path_count) {
    presto_error err;
    sink *out = NULL;
    raw_records_result result = {0, 0};
    char records[PRESTO_TEXT_BYTES];
    presto_status status = sink_new(l->format, STDOUT_FILENO, NULL, 0, &out, &err);
    if (status >= 0)
        status = raw_records_run(paths, path_count, &l->loader, out, &result, &err);
    sink_free(out);
    error_report_flush(&l->errors);
    if (status < 0 && status != PRESTO_ERR_STOPPED)
        return cli_error(&err);
    if (!l->quiet && status == PRESTO_OK)
        cli_message("%s, %ju skipped", presto_format_things(result.records, "record", records),
                    (uintmax_t)result.skipped);
    return CLI_DONE;
}

int main(int argc, char **argv) {
    load l = {0};
    cli_start(&self);
    parse_command_line(&l, argc, argv);
    const char *const *paths = (const char *const *)argv + optind;
    size_t path_count = (size_t)(argc - optind);
    int code = error_report_open(&l.errors, l.error_file);
    if (code == CLI_DONE)
        code = check_outputs(&l);
    if (code == CLI_DONE) {
        code = l.raw_records ? run_raw_records(&l, paths, path_count)
                             : open_and_run(&l, paths, path_count);
        code = error_report_close(&l.errors, code);
    }
    feature_options_done(&l.features);
    free(l.cache_dir);
    code = cli_close_stdout(code);
    cli_reraise();
    return code;
}
