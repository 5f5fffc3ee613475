/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The command line of presto-load: the table of options, and what they need of each other. Options
 * that contradict each other are refused before any work.
 */
#include "load.h"

#include <stdlib.h>
#include <string.h>

#include <getopt.h>

#include "../cli/shared_options.h"

enum { STATE_INTERVAL_S = 30 };

/* ---- arguments that no kind of option fits ---- */

/* none, full, buffer:N or blocks:N */
static void read_shuffle(const char *option, const char *text, void *place, void *beside) {
    static const struct {
        const char *prefix;
        presto_shuffle_kind kind;
    } windows[] = {{"buffer:", PRESTO_SHUFFLE_BUFFER}, {"blocks:", PRESTO_SHUFFLE_BLOCKS}};
    presto_loader_order *order = place;
    (void)beside;
    for (size_t i = 0; i < sizeof windows / sizeof windows[0]; i++) {
        size_t length = strlen(windows[i].prefix);
        if (strncmp(text, windows[i].prefix, length) != 0)
            continue;
        order->shuffle = windows[i].kind;
        order->shuffle_window = cli_number(option, text + length, 1, UINT32_MAX);
        return;
    }
    if (strcmp(text, "full") == 0)
        order->shuffle = PRESTO_SHUFFLE_FULL;
    else if (strcmp(text, "none") == 0)
        order->shuffle = PRESTO_SHUFFLE_NONE;
    else
        cli_usage("%s: '%s' is not one of none, full, buffer:N, blocks:N", option, text);
}

/* The text from `start` to `end`, on the heap. */
static char *copy_part(const char *start, const char *end) {
    char *copy = presto_span_to_text(presto_span_of(start, (size_t)(end - start)));
    if (copy == NULL) {
        cli_message("out of memory");
        exit(CLI_FAILED);
    }
    return copy;
}

/* PATH=WEIGHT; PATH may have equals signs in it. */
static void read_mix(const char *option, const char *text, void *place, void *beside) {
    load *l = place;
    const char *equals = strrchr(text, '=');
    (void)beside;
    if (equals == NULL || equals == text)
        cli_usage("%s: '%s' is not PATH=WEIGHT", option, text);
    if (l->mix_count == PRESTO_MIX_MOST_INPUTS)
        cli_usage("%s: more than %d inputs", option, PRESTO_MIX_MOST_INPUTS);
    double weight = cli_fraction(option, equals + 1, 0, 1e9);
    if (weight == 0)
        cli_usage("%s: the weight of '%s' must be more than 0", option, text);
    l->mix_paths[l->mix_count] = copy_part(text, equals);
    l->mix[l->mix_count] = (presto_mix_input){.path = l->mix_paths[l->mix_count], .weight = weight};
    l->mix_count++;
}

/* none, memory:SIZE or disk:DIR:SIZE; DIR, which goes on the heap, may have colons in it. */
static void read_cache(const char *option, const char *text, void *place, void *beside) {
    presto_loader_cache *cache = place;
    char **dir = beside;
    free(*dir);
    *dir = NULL;
    if (strncmp(text, "memory:", 7) == 0) {
        cache->bytes = (size_t)cli_size(option, text + 7, 1);
    } else if (strncmp(text, "disk:", 5) == 0) {
        const char *size = strrchr(text + 5, ':');
        if (size == NULL || size == text + 5)
            cli_usage("%s: '%s' is not disk:DIR:SIZE", option, text);
        cache->bytes = (size_t)cli_size(option, size + 1, 1);
        *dir = copy_part(text + 5, size);
    } else if (strcmp(text, "none") == 0) {
        cache->bytes = 0;
    } else {
        cli_usage("%s: '%s' is not one of none, memory:SIZE, disk:DIR:SIZE", option, text);
    }
    cache->dir = *dir;
}

/* ---- the table ---- */

static const cli_value orders[] = {{"strict", false}, {"completion", true}, {NULL, 0}};
static const cli_value tensors[] = {{"decoded", false}, {"raw", true}, {NULL, 0}};
static const cli_value levels[] = {{"full", PRESTO_CHECK_FULL},
                                   {"header", PRESTO_CHECK_HEADER},
                                   {"none", PRESTO_CHECK_NONE},
                                   {NULL, 0}};
static const cli_value mix_ends[] = {{"longest", PRESTO_MIX_LONGEST},
                                     {"shortest", PRESTO_MIX_SHORTEST},
                                     {"weights", PRESTO_MIX_WEIGHTS},
                                     {NULL, 0}};

static void set_defaults(void *job) {
    load *l = job;
    presto_stream_options_defaults(&l->input);
    presto_ring_options_defaults(&l->ring);
    presto_loader_options_defaults(&l->loader);
    l->input.loader = &l->loader;
    l->input.pipeline_options = &l->reading;
    l->state_interval_s = STATE_INTERVAL_S;
    l->format = presto_out_format_at(0);
}

static const cli_option options[] = {
    CLI_GROUP("Input"),
    {'p', "pipeline", "NAME|FILE",
     "the pipeline: of a raw source, or of TFRecords that have no dataset.json", NULL,
     CLI_TEXT(load, input.pipeline), CLI_WORDS_OF(presto_pipeline_builtin_at)},
    CLI_SET_OPTION(load, settings),
    CLI_PLUGIN_OPTION(load, settings),
    CLI_ALLOW_OPTION(load, settings.allows_code, "a dataset or a strategy"),
    CLI_FROM_OPTION(load, input.from, "what such TFRecords hold; the steps after it run",
                    "as the pipeline's source says; without a pipeline, no steps"),
    CLI_FEATURE_OPTION(load, settings.feature),
    CLI_INDEX_OPTION(load, input.keep_index, input.index_dir),
    {0, "to", "REPRESENTATION", "stop there", "the end of the pipeline", CLI_TEXT(load, input.to),
     CLI_WORDS_OF(cli_representation_at)},
    {0, "strategy", "FILE",
     "threads, batch, seed and pipeline from presto-sweep's strategy.yaml; options given here win",
     NULL, CLI_TEXT(load, strategy_file)},
    {0, "mix", "PATH=WEIGHT",
     "mix this input with others, given several times instead of operands: each gets its share of "
     "the stream by weight, evenly and exactly, and has epochs and a shuffle of its own. The "
     "features and the steps that remain must be the same",
     NULL, CLI_SPECIAL_OF_ALL(read_mix)},
    {0, "mix-epoch", "END",
     "an epoch of the mix ends with the longest input (shorter ones are repeated), with the "
     "shortest (the others go on in the next epoch), or has WEIGHT epochs of each (weights)",
     CLI_FIELD, CLI_CHOICE(load, mix_epoch, mix_ends), CLI_GIVEN(load, has_mix_epoch)},
    CLI_PARTITION_OPTIONS(load, input.partition),
    {0, "verify", "LEVEL", "checksums to check: full, header or none", CLI_FIELD,
     CLI_CHOICE(load, input.verify, levels)},
    CLI_ON_ERROR_OPTION(load, loader.errors,
                        CLI_ON_ERROR_TEXT("at most N in an epoch", "of an epoch")),
    CLI_ERROR_REPORT_OPTION(load, error_file),

    CLI_GROUP("Order"),
    {'e', "epochs", "N", "passes over the data", CLI_FIELD,
     CLI_NUMBER(load, loader.range.epochs, 1, UINT64_MAX)},
    {0, "limit", "N", "stop after N samples in all, over all epochs", NULL,
     CLI_NUMBER(load, loader.range.limit_samples, 1, UINT64_MAX)},
    {0, "skip", "N",
     "start at sample N of the stream, from 0: what is this rank's over all epochs, samples left "
     "out included. A trainer that has taken N samples goes on with it; --limit counts from there",
     NULL, CLI_NUMBER(load, loader.range.skip_samples, 0, UINT64_MAX - 1),
     CLI_GIVEN(load, has_skip)},
    {0, "shuffle", "HOW",
     "none, full, buffer:N (a random one of the next N samples) or blocks:N (blocks of N samples "
     "in random order, each shuffled)",
     "none", CLI_SPECIAL(load, loader.order, read_shuffle), CLI_WORDS("none|full|buffer:|blocks:")},
    {0, "seed", "S", "of shuffling and random steps", CLI_FIELD,
     CLI_NUMBER(load, loader.order.seed, 0, UINT64_MAX), CLI_GIVEN(load, has_seed)},
    {0, "order", "ORDER", "strict (the same for any number of threads) or completion", CLI_FIELD,
     CLI_CHOICE(load, loader.order.completion, orders)},
    {0, "rank", "R", "deliver share R of --world, from 0", NULL,
     CLI_NUMBER(load, loader.range.rank, 0, UINT64_MAX), CLI_GIVEN(load, has_rank)},
    {0, "world", "W", "number of shares", NULL, CLI_NUMBER(load, loader.range.world, 1, UINT64_MAX),
     CLI_GIVEN(load, has_world)},

    CLI_GROUP("Work"),
    {'j', "threads", "N|auto",
     "worker threads; 0 = run inline; auto = as many as are found to be worth it while running",
     "number of CPUs, by affinity and cgroup",
     CLI_THREADS(load, loader.threads, loader.auto_threads), CLI_GIVEN(load, has_threads)},
    {0, "prefetch-bytes", "SIZE", "memory for data in flight, e.g. 64MiB", CLI_FIELD,
     CLI_SIZE(load, loader.memory.prefetch_bytes, 1)},
    {0, "cache", "none|memory:SIZE|disk:DIR:SIZE",
     "keep samples as they are after the last step that is not random, so that they are not "
     "computed again: in memory, beside --prefetch-bytes, for later epochs; or in the folder DIR, "
     "for later runs and other processes as well, which holds at most SIZE of all that share it "
     "(not for tfrecord)",
     "none", CLI_SPECIAL2(load, loader.cache, cache_dir, read_cache)},
    CLI_STORAGE_OPTION(load, loader.storage,
                       "read no faster than from this storage, as if all was read for the first "
                       "time"),
    {0, "state", "FILE",
     "go on where the run that wrote FILE ended, if it exists; written at the start, at "
     "intervals, and however the run ends but by kill -9. It counts batches that are whole in the "
     "pipe: a trainer that stops has not seen the last of them and goes on with --skip instead, "
     "for which FILE is only checked and written. --limit counts this run alone",
     NULL, CLI_PATH(load, state_file)},
    {0, "state-interval", "SECONDS",
     "how often; after a kill, samples since the last saved state are repeated", CLI_FIELD,
     CLI_FRACTION(load, state_interval_s, 0, 1000000000), CLI_GIVEN(load, has_state_interval)},

    CLI_GROUP("Output"),
    {0, "format", "FORMAT", NULL, "tfrecord", CLI_SPECIAL2(load, format, ring, load_read_format),
     CLI_TELL(load_tell_format), CLI_WORDS_OF(load_format_at)},
    {0, "ring-bytes", "SIZE", "memory that batches of shm share", CLI_FIELD,
     CLI_SIZE(load, ring.ring_bytes, 1), CLI_GIVEN(load, has_ring)},
    {'b', "batch", "N", "samples per batch", "npy: 1; arrow, shm: 64",
     CLI_NUMBER(load, loader.batch_samples, 1, UINT32_MAX), CLI_GIVEN(load, has_batch)},
    {0, "drop-last", NULL, "leave out a last batch that is not full", NULL,
     CLI_FLAG(load, loader.range.drop_last)},
    {0, "features", "A,B,...", NULL,
     "the main feature, label, then the others; raw: the main feature",
     CLI_SPECIAL(load, features, feature_options_names), CLI_TELL(load_tell_features)},
    {0, "pad", "FEATURE=VALUE[:LENGTH]", NULL, NULL,
     CLI_SPECIAL(load, features, feature_options_pad), CLI_TELL(load_tell_pad)},
    {0, "arrow-type", "FEATURE=TYPE",
     "list: rows are lists, although those of the first batch may have one shape; utf8: bytes are "
     "text, and an error if they are not (arrow); may be given several times",
     NULL, CLI_SPECIAL(load, features, feature_options_type)},
    {0, "raw-records", NULL, NULL, NULL, CLI_FLAG(load, input.raw_records),
     CLI_TELL(load_tell_raw_records)},
    {0, "tensors", "decoded|raw",
     "tensors that were serialized (tf.io.serialize_tensor): of other programs' records, decoded "
     "if the first 64 hold nothing else there; raw: their bytes",
     CLI_FIELD, CLI_CHOICE(load, input.raw_tensors, tensors)},
    {0, "stats", "FILE", "write the figures of the run there, as JSON", NULL,
     CLI_PATH(load, stats_file)},
    CLI_EXPLAIN_OPTIONS(load, explain),
    CLI_COMMON_OPTIONS(
        load, "print the figures, or what --explain says, on stdout (with --format null)", 0),
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
    "it. A reader that closes the pipe ends the program quietly.",
    sizeof(load),
    set_defaults,
    .example = "presto-load -b 32 -e 2 --shuffle full --format null photos-resized",
    .most_exit = CLI_CORRUPT,
};

/* ---- what goes together ---- */

/* Only a pipeline whose source makes its samples needs no input; a strategy may name one. */
static void check_inputs(load *l, int argc, char **argv) {
    static const char what[] = "what to load (DIR, FILE or SOURCE)";
    const char *name = l->input.pipeline;
    cli_settings settings = l->settings;
    presto_strategy_file strategy = {0};
    if (optind == argc && name == NULL && l->strategy_file != NULL &&
        presto_strategy_load(l->strategy_file, &strategy, NULL) >= 0 &&
        strcmp(strategy.stored, PRESTO_UNPROCESSED) == 0) {
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
    if (l->input.pipeline != NULL)
        l->settings.from = l->input.from;
    l->reading = cli_pipeline_options(&l->settings);
    if (l->loader.auto_threads)
        l->loader.threads = presto_auto_threads();
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
    if (l->has_state_interval && l->state_file == NULL)
        cli_usage("--state-interval needs --state");
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
    cli_start(&self);
    cli_parse(argc, argv, l);
    check_options(l, argc, argv);
    l->loader.errors.on_skip = error_report_add;
    l->loader.errors.on_skip_user = &l->errors;
    l->loader.errors.on_warning = print_warning;
    l->loader.errors.on_warning_user = l;
    l->loader.should_stop = cli_should_stop;
    l->input.count_later = !l->explain;
}
