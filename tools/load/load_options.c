/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The command line of presto-load: the table of options, and their parsing. Options that contradict
 * each other are refused before any work.
 */
#include "load.h"

#include <stdlib.h>
#include <string.h>

#include <getopt.h>

#include "../cli/cli.h"
#include "../cli/record_options.h"

enum {
    OPT_FROM = CLI_LONG,
    OPT_FEATURE,
    OPT_INDEX,
    OPT_SPLIT,
    OPT_PART,
    OPT_SPLIT_SEED,
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
    OPT_ARROW_TYPE,
    OPT_RING_BYTES,
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
    OPT_PLUGIN,
    OPT_ALLOW,
    OPT_RAW_RECORDS,
    OPT_TENSORS,
    OPT_CACHE,
    OPT_STATE,
    OPT_STATE_INTERVAL,
    OPT_MIX,
    OPT_MIX_EPOCH,
    OPT_STORAGE,
    STATE_INTERVAL_S = 30,
};

static const cli_option options[] = {
    {0, "Input", NULL, NULL},
    {'p', "pipeline", "NAME|FILE",
     "the pipeline: of a raw source, or of TFRecords that have no dataset.json"},
    CLI_SET_OPTION(OPT_SET),
    CLI_PLUGIN_OPTION(OPT_PLUGIN),
    CLI_ALLOW_OPTION(OPT_ALLOW, "a dataset or a strategy"),
    CLI_RECORD_OPTIONS(OPT_FROM, OPT_FEATURE,
                       "what such TFRecords hold; the steps after it run [default: as the "
                       "pipeline's source says; without a pipeline, no steps]"),
    CLI_INDEX_OPTION(OPT_INDEX),
    {OPT_TO, "to", "REPRESENTATION", "stop there [default: the end of the pipeline]"},
    {OPT_STRATEGY, "strategy", "FILE",
     "threads, batch, seed and pipeline from presto-sweep's strategy.yaml; options given here win"},
    {OPT_MIX, "mix", "PATH=WEIGHT",
     "mix this input with others, given several times instead of operands: each gets its share of "
     "the stream by weight, evenly and exactly, and has epochs and a shuffle of its own. The "
     "features and the steps that remain must be the same"},
    {OPT_MIX_EPOCH, "mix-epoch", "END",
     "an epoch of the mix ends with the longest input (shorter ones are repeated), with the "
     "shortest (the others go on in the next epoch), or has WEIGHT epochs of each (weights) "
     "[default: longest]"},
    CLI_PARTITION_OPTIONS(OPT_SPLIT, OPT_PART, OPT_SPLIT_SEED),
    {OPT_VERIFY, "verify", "LEVEL", "checksums to check: full, header or none [default: full]"},
    {OPT_ON_ERROR, "on-error", "POLICY",
     "what to do about a sample that is damaged, does not fit a step or cannot be read: fail, "
     "skip, "
     "skip:N (at most N in an epoch) or skip:P% (of an epoch) [default: fail]"},
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
     "worker threads; 0 = run inline; auto = as many as are found to be worth it while "
     "running [default: number of CPUs, by affinity and cgroup]"},
    {OPT_PREFETCH, "prefetch-bytes", "SIZE",
     "memory for data in flight, e.g. 64MiB [default: 256MiB]"},
    {OPT_CACHE, "cache", "none|memory:SIZE|disk:DIR:SIZE",
     "keep samples as they are after the last step that is not random, so that they are not "
     "computed again: in memory, beside --prefetch-bytes, for later epochs; or in the folder DIR, "
     "for later runs and other processes as well, which holds at most SIZE of all that share it "
     "(not for tfrecord) [default: none]"},
    CLI_STORAGE_OPTION(OPT_STORAGE, "read no faster than from this storage, as if all was read for "
                                    "the first time"),
    {OPT_STATE, "state", "FILE",
     "go on where the run that wrote FILE ended, if it exists; written at the start, at "
     "intervals, and however the run ends but by kill -9. It counts batches that are whole in the "
     "pipe: a trainer that stops has not seen the last of them and goes on with --skip instead, "
     "for which FILE is only checked and written. --limit counts this run alone"},
    {OPT_STATE_INTERVAL, "state-interval", "SECONDS",
     "how often; after a kill, samples since the last saved state are repeated [default: 30]"},

    {0, "Output", NULL, NULL},
    {OPT_FORMAT, "format", "FORMAT",
     "of stdout: tfrecord (an Example per sample), npy (arrays of each feature of each batch), "
     "arrow "
     "(an Arrow IPC stream: a record batch for each batch), raw (bare tensors back to back), null "
     "(count only), or shm[:SOCKET] (batches in shared memory for one reader, which connects to "
     "the "
     "Unix socket SOCKET, or has the other end of stdout) [default: tfrecord]"},
    {OPT_RING_BYTES, "ring-bytes", "SIZE", "memory that batches of shm share [default: 256MiB]"},
    {'b', "batch", "N", "samples per batch [default: npy: 1; arrow, shm: 64]"},
    {OPT_DROP_LAST, "drop-last", NULL, "leave out a last batch that is not full"},
    {OPT_FEATURES, "features", "A,B,...",
     "what npy, arrow, shm and raw deliver, in this order; without steps, nothing else is parsed "
     "[default: the main feature, label, then the others; raw: the main feature]"},
    {OPT_PAD, "pad", "FEATURE=VALUE[:LENGTH]",
     "fill the rows of a feature that differ in length up with VALUE, to the longest of the batch "
     "or to LENGTH, so that they are one array (npy, arrow, shm, raw); may be given several times"},
    {OPT_ARROW_TYPE, "arrow-type", "FEATURE=TYPE",
     "list: rows are lists, although those of the first batch may have one shape; utf8: bytes are "
     "text, and an error if they are not (arrow); may be given several times"},
    {OPT_RAW_RECORDS, "raw-records", NULL,
     "the samples are the records as they are stored, whatever they hold: neither decompressed nor "
     "parsed (tfrecord, null, or npy, arrow and shm with one feature, record)"},
    {OPT_TENSORS, "tensors", "decoded|raw",
     "tensors that were serialized (tf.io.serialize_tensor): of other programs' records, decoded "
     "if "
     "the first 64 hold nothing else there; raw: their bytes [default: decoded]"},
    {OPT_STATS, "stats", "FILE", "write the figures of the run there, as JSON"},
    {OPT_EXPLAIN, "explain", NULL, "print what would run, and stop"},
    {OPT_HELP_STEPS, "help-steps", NULL, "print all steps and their options, and stop"},
    CLI_COMMON_OPTIONS("print the figures, or what --explain says, on stdout (with --format null)"),
};

static const cli_program self = {
    "presto-load",
    "[OPTIONS] DIR\n"
    "[OPTIONS] [-p PIPELINE --from REPRESENTATION] FILE|DIR...\n"
    "[OPTIONS] -p PIPELINE SOURCE...\n"
    "[OPTIONS] --mix PATH=WEIGHT --mix PATH=WEIGHT...",
    "Stream samples to stdout: a dataset that presto-write made, any TFRecord files, or a raw "
    "source, through the steps that remain.",
    options,
    "npy: a message says which arrays follow, another one ends a whole stream; texts\n"
    "and rows of differing length are values and offsets (docs/streams.md,\n"
    "examples/npy_stream.py). arrow: an IPC stream, as pyarrow.ipc.open_stream reads\n"
    "it. A reader that closes the pipe ends the program quietly.\n"
    "Exit: 0 done, 1 failed, 2 usage, 3 data corrupt.\n"
    "\n"
    "Example: presto-load -b 32 -e 2 --shuffle full --format null photos-resized",
};

static void parse_shuffle(load *l, const char *text) {
    static const struct {
        const char *prefix;
        presto_shuffle_kind kind;
    } windows[] = {{"buffer:", PRESTO_SHUFFLE_BUFFER}, {"blocks:", PRESTO_SHUFFLE_BLOCKS}};
    for (size_t i = 0; i < sizeof windows / sizeof windows[0]; i++) {
        size_t length = strlen(windows[i].prefix);
        if (strncmp(text, windows[i].prefix, length) != 0)
            continue;
        l->loader.order.shuffle = windows[i].kind;
        l->loader.order.shuffle_window = cli_number("--shuffle", text + length, 1, UINT32_MAX);
        return;
    }
    if (strcmp(text, "full") == 0)
        l->loader.order.shuffle = PRESTO_SHUFFLE_FULL;
    else if (strcmp(text, "none") == 0)
        l->loader.order.shuffle = PRESTO_SHUFFLE_NONE;
    else
        cli_usage("--shuffle: '%s' is not one of none, full, buffer:N, blocks:N", text);
}

static void parse_order_option(load *l, int id, const char *text) {
    static const char *const orders[] = {"strict", "completion", NULL};
    presto_loader_options *o = &l->loader;
    if (id == 'e') {
        o->range.epochs = cli_number("--epochs", text, 1, UINT64_MAX);
    } else if (id == OPT_LIMIT) {
        o->range.limit_samples = cli_number("--limit", text, 1, UINT64_MAX);
    } else if (id == OPT_SKIP) {
        o->range.skip_samples = cli_number("--skip", text, 0, UINT64_MAX - 1);
        l->has_skip = true;
    } else if (id == OPT_SHUFFLE) {
        parse_shuffle(l, text);
    } else if (id == OPT_SEED) {
        o->order.seed = cli_number("--seed", text, 0, UINT64_MAX);
        l->has_seed = true;
    } else if (id == OPT_ORDER) {
        o->order.completion = cli_choice("--order", text, orders) == 1;
    } else if (id == OPT_RANK) {
        o->range.rank = cli_number("--rank", text, 0, UINT64_MAX);
        l->has_rank = true;
    } else if (id == OPT_WORLD) {
        o->range.world = cli_number("--world", text, 1, UINT64_MAX);
        l->has_world = true;
    }
}

/* PATH=WEIGHT; PATH may have equals signs in it. */
static void parse_mix(load *l, const char *text) {
    const char *equals = strrchr(text, '=');
    if (equals == NULL || equals == text)
        cli_usage("--mix: '%s' is not PATH=WEIGHT", text);
    if (l->mix_count == PRESTO_MIX_MOST_INPUTS)
        cli_usage("--mix: more than %d inputs", PRESTO_MIX_MOST_INPUTS);
    double weight = cli_fraction("--mix", equals + 1, 0, 1e9);
    if (weight == 0)
        cli_usage("--mix: the weight of '%s' must be more than 0", text);
    char *path = presto_span_to_text(presto_span_of(text, (size_t)(equals - text)));
    if (path == NULL) {
        cli_message("out of memory");
        exit(CLI_FAILED);
    }
    l->mix_paths[l->mix_count] = path;
    l->mix[l->mix_count++] = (presto_mix_input){.path = path, .weight = weight};
}

static void parse_mix_option(load *l, int id, const char *text) {
    static const char *const ends[] = {"longest", "shortest", "weights", NULL};
    if (id == OPT_MIX) {
        parse_mix(l, text);
    } else if (id == OPT_MIX_EPOCH) {
        l->mix_epoch = (presto_mix_epoch)cli_choice("--mix-epoch", text, ends);
        l->has_mix_epoch = true;
    }
}

static void parse_input_option(load *l, int id, const char *text) {
    static const char *const levels[] = {"full", "header", "none", NULL};
    static const presto_checks verifies[] = {PRESTO_CHECK_FULL, PRESTO_CHECK_HEADER,
                                             PRESTO_CHECK_NONE};
    if (id == 'p') {
        l->input.pipeline = text;
    } else if (id == OPT_SET || id == OPT_PLUGIN || id == OPT_ALLOW) {
        if (id == OPT_SET)
            cli_add_setting(&l->settings, text);
        else if (id == OPT_PLUGIN)
            cli_add_plugin(&l->settings, text);
        else
            l->settings.allows_code = true;
        l->reading = cli_pipeline_options(&l->settings);
    } else if (id == OPT_FROM) {
        l->input.from = text;
    } else if (id == OPT_FEATURE) {
        l->settings.feature = text;
        l->reading = cli_pipeline_options(&l->settings);
    } else if (id == OPT_INDEX) {
        l->input.keep_index = cli_parse_index(text, &l->input.index_dir);
    } else if (id == OPT_TO) {
        l->input.to = text;
    } else if (id == OPT_SPLIT) {
        l->input.partition.ratio = text;
    } else if (id == OPT_PART) {
        l->input.partition.part = text;
    } else if (id == OPT_SPLIT_SEED) {
        l->input.partition.seed = cli_number("--split-seed", text, 0, UINT64_MAX);
    } else if (id == OPT_STRATEGY) {
        l->strategy_file = text;
    } else if (id == OPT_VERIFY) {
        l->input.verify = verifies[cli_choice("--verify", text, levels)];
    } else if (id == OPT_ON_ERROR) {
        cli_on_error policy = cli_parse_on_error("--on-error", text);
        l->loader.errors.policy = policy.policy;
        l->loader.errors.skip_limit = policy.skip_limit;
        l->loader.errors.skip_fraction = policy.skip_fraction;
    } else if (id == OPT_ERROR_REPORT) {
        l->error_file = cli_path("--error-report", text);
    }
}

/* disk:DIR:SIZE; DIR may have colons in it. */
static void parse_disk_cache(load *l, const char *text) {
    const char *size = strrchr(text, ':');
    if (size == NULL || size == text)
        cli_usage("--cache: 'disk:%s' is not disk:DIR:SIZE", text);
    l->loader.cache.bytes = (size_t)cli_size("--cache", size + 1, 1);
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
        l->loader.cache.bytes = (size_t)cli_size("--cache", text + 7, 1);
    else if (strncmp(text, "disk:", 5) == 0)
        parse_disk_cache(l, text + 5);
    else if (strcmp(text, "none") == 0)
        l->loader.cache.bytes = 0;
    else
        cli_usage("--cache: '%s' is not one of none, memory:SIZE, disk:DIR:SIZE", text);
    l->loader.cache.dir = l->cache_dir;
}

static void parse_output_option(load *l, int id, const char *text) {
    if (id == 'j') {
        l->loader.auto_threads = strcmp(text, "auto") == 0;
        l->loader.threads = l->loader.auto_threads
                                ? presto_auto_threads()
                                : (unsigned)cli_number("--threads", text, 0, PRESTO_MAX_THREADS);
        l->has_threads = true;
    } else if (id == OPT_PREFETCH) {
        l->loader.memory.prefetch_bytes = (size_t)cli_size("--prefetch-bytes", text, 1);
    } else if (id == OPT_CACHE) {
        parse_cache(l, text);
    } else if (id == OPT_STORAGE) {
        l->loader.storage = cli_storage("--storage", text);
    } else if (id == OPT_STATE) {
        l->state_file = cli_path("--state", text);
    } else if (id == OPT_STATE_INTERVAL) {
        l->state_interval_s = cli_fraction("--state-interval", text, 0, 1e9);
    } else if (id == OPT_FORMAT) {
        load_parse_format(l, text);
    } else if (id == OPT_RING_BYTES) {
        l->ring.ring_bytes = (size_t)cli_size("--ring-bytes", text, 1);
        l->has_ring = true;
    } else if (id == 'b') {
        l->loader.batch_samples = (size_t)cli_number("--batch", text, 1, UINT32_MAX);
        l->has_batch = true;
    } else if (id == OPT_DROP_LAST) {
        l->loader.range.drop_last = true;
    } else if (id == OPT_FEATURES) {
        feature_options_names(&l->features, text);
    } else if (id == OPT_PAD) {
        feature_options_pad(&l->features, text);
    } else if (id == OPT_ARROW_TYPE) {
        feature_options_type(&l->features, text);
    } else if (id == OPT_RAW_RECORDS) {
        l->input.raw_records = true;
    } else if (id == OPT_TENSORS) {
        if (strcmp(text, "decoded") != 0 && strcmp(text, "raw") != 0)
            cli_usage("--tensors is decoded or raw, not '%s'", text);
        l->input.raw_tensors = strcmp(text, "raw") == 0;
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

/* Only a pipeline whose source makes its samples needs no input; a strategy may name one. */
static void check_inputs(load *l, int argc, char **argv) {
    static const char what[] = "what to load (DIR, FILE or SOURCE)";
    const char *name = l->input.pipeline;
    cli_settings settings = l->settings;
    presto_strategy_file strategy = {0};
    if (optind == argc && name == NULL && l->strategy_file != NULL &&
        presto_strategy_load(l->strategy_file, &strategy, NULL) >= 0 &&
        strcmp(strategy.split, PRESTO_UNPROCESSED) == 0) {
        name = strategy.pipeline;
        cli_settings_of_strategy(&settings, &strategy);
    }
    if (optind < argc || name == NULL) {
        cli_check_operands(argc, argv, 1, INT32_MAX, what);
    } else {
        l->pipeline = cli_load_pipeline(name, &settings);
        cli_check_sources(argc, argv, l->pipeline, what);
    }
    presto_strategy_file_done(&strategy);
}

static void check_mix(const load *l, int argc) {
    if (optind < argc)
        cli_usage("--mix names the inputs: there are no operands beside it");
    if (l->strategy_file != NULL)
        cli_usage("--mix: a strategy is of one dataset");
    if (l->loader.order.shuffle == PRESTO_SHUFFLE_BUFFER)
        cli_usage("--mix: --shuffle full or blocks:N, not buffer:N");
}

/* Refuse options that contradict each other, before any work. */
static void check_options(load *l, int argc, char **argv) {
    if (l->input.from != NULL && l->input.pipeline != NULL) {
        l->settings.from = l->input.from;
        l->reading = cli_pipeline_options(&l->settings);
    }
    if (l->mix_count > 0)
        check_mix(l, argc);
    else
        check_inputs(l, argc, argv);
    cli_check_partition(&l->input.partition);
    if (l->has_mix_epoch && l->mix_count == 0)
        cli_usage("--mix-epoch needs --mix");
    if (l->has_rank != l->has_world)
        cli_usage("--rank and --world go together");
    if (l->has_rank && l->loader.range.rank >= l->loader.range.world)
        cli_usage("--rank: %ju is not below --world %ju", (uintmax_t)l->loader.range.rank,
                  (uintmax_t)l->loader.range.world);
    if (l->state_interval_s >= 0 && l->state_file == NULL)
        cli_usage("--state-interval needs --state");
    if (l->state_interval_s < 0)
        l->state_interval_s = STATE_INTERVAL_S;
    if ((l->state_file != NULL || l->has_skip) && l->loader.order.completion)
        cli_usage("%s needs --order strict", l->has_skip ? "--skip" : "--state");
    if (l->error_file != NULL && l->loader.errors.policy == PRESTO_ON_ERROR_FAIL)
        cli_usage("--error-report needs --on-error skip");
    load_check_format(l);
}

static void print_warning(void *user, const presto_error *warning) {
    const load *l = user;
    char text[PRESTO_ERROR_FILE_BYTES + PRESTO_ERROR_MESSAGE_BYTES + 96];
    presto_error_format(warning, text, sizeof text);
    cli_json_append(l->warnings, cli_json_text(text));
    if (!l->quiet)
        cli_message("%s", text);
}

void load_parse(load *l, int argc, char **argv) {
    const char *text = NULL;
    cli_start(&self);
    presto_stream_options_defaults(&l->input);
    presto_ring_options_defaults(&l->ring);
    presto_loader_options_defaults(&l->loader);
    presto_pipeline_options_defaults(&l->reading);
    l->input.loader = &l->loader;
    l->input.pipeline_options = &l->reading;
    l->state_interval_s = -1;
    l->format = sink_types[0];
    for (int id; (id = cli_next(argc, argv, &text)) != -1;) {
        parse_input_option(l, id, text);
        parse_mix_option(l, id, text);
        parse_order_option(l, id, text);
        parse_output_option(l, id, text);
    }
    check_options(l, argc, argv);
    l->loader.errors.on_skip = error_report_add;
    l->loader.errors.on_skip_user = &l->errors;
    l->loader.errors.on_warning = print_warning;
    l->loader.errors.on_warning_user = l;
    l->loader.should_stop = cli_should_stop;
    l->input.count_later = !l->explain;
}
