/* SPDX-License-Identifier: Apache-2.0 */
/*
 * presto-sweep: measures the strategies on a sample of the user's data and recommends one.
 * presto/sweep.h measures, scores and writes the result files; here are the options, the progress
 * and the table.
 */
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <getopt.h>

#include <presto/file.h>
#include <presto/sweep.h>

#include "../cli/cli.h"
#include "../cli/record_options.h"
#include "sweep_check.h"
#include "sweep_end.h"
#include "sweep_options.h"
#include "table.h"

static const cli_option options[] = {
    {0, "Strategies", NULL, NULL},
    {'p', "pipeline", "NAME|FILE", "the pipeline"},
    CLI_SET_OPTION(OPT_SET),
    CLI_PLUGIN_OPTION(OPT_PLUGIN),
    CLI_RECORD_OPTIONS(OPT_FROM, OPT_FEATURE,
                       "the sources are TFRecords, or a dataset, that hold this one; the steps "
                       "after it run"),
    {OPT_SPLITS, "splits", "A,B,...",
     "representations to store [default: all that can be, and unprocessed]"},
    {OPT_CODECS, "codecs", "A,B,...",
     "codecs of the records [default: none,zstd:1,zstd:3,lz4,snappy,gzip]"},
    {OPT_TENSORFLOW, "tensorflow-readable", NULL,
     "only codecs that every TensorFlow reads: none, zlib, gzip "
     "[default codecs: none,zlib:1,gzip]"},
    {'j', "threads", "N,M,...", "numbers of threads [default: 1 and the number of CPUs]"},
    {OPT_SHARDS, "shards", "N,M,...",
     "numbers of files that a dataset has; \"threads\": as many as threads [default: threads]"},

    {0, "Measuring", NULL, NULL},
    {OPT_SAMPLES, "samples", "N", "how many samples to try on; 0 = all [default: 200]"},
    {OPT_RUNS, "runs", "R", "runs of a strategy: cold epochs, then cached ones [default: 3]"},
    {OPT_RUN_TIME, "run-time", "SECONDS",
     "a run's cold epochs are repeated, 128 at most, until they last so long together, and so are "
     "its cached ones [default: 0.25]"},
    {OPT_DECIDE_TIME, "decide-time", "SECONDS",
     "strategies that may be better by their predictions are run, and those near the best take "
     "turns with more runs, until it is decided which one is recommended, at most so long "
     "[default: 30]"},
    {'b', "batch", "N", "samples per batch [default: 32]"},
    {OPT_PREDICT, "predict", NULL,
     "run each split without a codec, try the codecs on its records, and predict the other "
     "strategies; run the best of them, and some others to confirm [default]"},
    {OPT_MEASURE, "measure", NULL, "run every strategy instead"},
    {OPT_CONFIRM, "confirm", "N", "how many strategies to run to confirm [default: 6]"},
    {OPT_SEED, "seed", "S", "of shuffling and random steps [default: 0]"},
    {OPT_ON_ERROR, "on-error", "POLICY",
     "samples that fail: fail, skip, skip:N, skip:P% (at most so many) [default: fail]"},
    CLI_STORAGE_OPTION(OPT_STORAGE, "plan for this storage: cold epochs read no faster than from "
                                    "it"),

    {0, "Choosing", NULL, NULL},
    {OPT_WEIGHTS, "weights", "P,S,T",
     "what preparation time, storage and throughput count [default: 0,0,1]"},
    {OPT_TARGET, "target", "RATE[+P%]",
     "samples per second that the training takes: recommend what needs least (with prices: costs "
     "least) of the strategies that deliver so many and P % more in each cold run; instead of "
     "--weights [default: +10%]"},
    {OPT_MAX_STORAGE, "max-storage", "BYTES",
     "recommend only what stores at most so much: 500MiB, 2TiB"},
    {OPT_MAX_PREPARE, "max-prepare", "TIME",
     "recommend only what is prepared in so long: 3600, 90s, 15min, 2h"},
    {OPT_PRICE_ACCELERATOR, "price-accelerator", "PRICE/h",
     "what trains, for an hour; with prices, what costs least is recommended (with --target: of "
     "what reaches it)"},
    {OPT_PRICE_CPU, "price-cpu", "PRICE/h", "a thread for an hour, preparing and loading"},
    {OPT_PRICE_STORAGE, "price-storage", "PRICE/GB-month", "what the dataset takes"},
    {OPT_EPOCHS, "epochs", "N", "of the training; needed with prices"},
    {OPT_MONTHS, "months", "N", "that the dataset is kept [default: 1]"},

    {0, "Results", NULL, NULL},
    {'o', "output", "DIR",
     "folder for the results; trials are written below it, on the storage that is judged, and "
     "removed"},
    {OPT_RESUME, "resume", NULL,
     "go on with a sweep that was stopped: what the folder's trials.jsonl holds is not measured "
     "again"},
    {OPT_FORCE, "force", NULL, "replace the results of an earlier sweep"},
    {OPT_CHECK, "check", "DATASET",
     "instead: do the new files (SOURCE) still fit this dataset? Compares sizes, shapes and the "
     "time to load; with -o, the changes with the margin in that sweep's results. Exit 4: the "
     "recommendation may be another one"},
    CLI_COMMON_OPTIONS("print results.json on stdout instead of the table"),
};

static const cli_program self = {
    "presto-sweep",
    "-p PIPELINE [OPTIONS] -o DIR SOURCE...\n--check DATASET [-p PIPELINE] [-o DIR] SOURCE...",
    "Try out how far to preprocess a dataset before storing it, in which codec, read by how many "
    "threads. Some strategies are written and loaded on a sample of the data; the others are "
    "predicted, and the best ones run to confirm it (--measure: all are run).",
    options,
    "Writes report.html, results.csv, results.json and strategy.yaml (which\n"
    "presto-write and presto-load take) into DIR.\nExit: 0 done, 1 failed, 2 usage, 3 data "
    "corrupt,\n4 with --check: the recommendation may be another one.\n"
    "\n"
    "Example: presto-sweep -p cv --threads 1,4 --weights 1,0,1 -o sweep photos",
};

typedef struct sweep_job {
    presto_sweep_options sweep;
    const char *pipeline_name, *output, *check;
    cli_settings settings;
    char **splits, **codecs; /* one allocation each */
    unsigned *threads;
    size_t *shards;
    char work_dir[PATH_MAX], journal[PATH_MAX];
    bool quiet, json, force;
    cli_progress progress;
    presto_folder_lock *lock; /* of the output */
} sweep_job;

static void parse_threads(sweep_job *s, const char *text) {
    char **list = NULL;
    size_t count = cli_list("--threads", text, &list);
    free(s->threads);
    s->threads = calloc(count, sizeof *s->threads);
    if (s->threads == NULL) {
        cli_message("out of memory");
        exit(CLI_FAILED);
    }
    for (size_t i = 0; i < count; i++)
        s->threads[i] = (unsigned)cli_number("--threads", list[i], 0, PRESTO_MAX_THREADS);
    free(list);
    s->sweep.threads = s->threads;
    s->sweep.thread_count = count;
}

static void parse_shards(sweep_job *s, const char *text) {
    char **list = NULL;
    size_t count = cli_list("--shards", text, &list);
    free(s->shards);
    s->shards = calloc(count, sizeof *s->shards);
    if (s->shards == NULL) {
        cli_message("out of memory");
        exit(CLI_FAILED);
    }
    for (size_t i = 0; i < count; i++)
        if (strcmp(list[i], "threads") != 0) /* 0 */
            s->shards[i] = (size_t)cli_number("--shards", list[i], 1, MAX_SHARDS);
    free(list);
    s->sweep.shard_counts = s->shards;
    s->sweep.shard_count_count = count;
}

static void parse_weights(sweep_job *s, const char *text) {
    char **list = NULL;
    double weights[3] = {0};
    if (cli_list("--weights", text, &list) != 3)
        cli_usage("--weights: '%s' is not three numbers P,S,T", text);
    for (size_t i = 0; i < 3; i++)
        weights[i] = cli_fraction("--weights", list[i], 0, INFINITY);
    if (weights[0] + weights[1] + weights[2] <= 0)
        cli_usage("--weights: '%s': one of them must be above 0", text);
    free(list);
    s->sweep.weights.preparation = weights[0];
    s->sweep.weights.storage = weights[1];
    s->sweep.weights.throughput = weights[2];
}

static void parse_on_error(presto_loader_errors *errors, const char *text) {
    cli_on_error policy = cli_parse_on_error("--on-error", text);
    errors->policy = policy.policy;
    errors->skip_limit = policy.skip_limit;
    errors->skip_fraction = policy.skip_fraction;
}

static void parse_codecs(sweep_job *s, const char *text) {
    free(s->codecs);
    s->sweep.codec_count = cli_list("--codecs", text, &s->codecs);
    s->sweep.codecs = (const char *const *)s->codecs;
    for (size_t i = 0; i < s->sweep.codec_count; i++)
        cli_check_codec("--codecs", s->codecs[i], false);
}

/* What is run. False: the option is another one. */
static bool parse_mode(presto_sweep_options *o, int id, const char *text) {
    if (id == OPT_CONFIRM)
        o->confirm_runs = (unsigned)cli_number("--confirm", text, 0, 100000);
    else if (id == OPT_STORAGE)
        o->storage = cli_storage("--storage", text);
    else if (id == OPT_MEASURE || id == OPT_PREDICT)
        o->mode = id == OPT_MEASURE ? PRESTO_SWEEP_MEASURE : PRESTO_SWEEP_PREDICT;
    else
        return false;
    return true;
}

static void parse_option(sweep_job *s, int id, const char *text) {
    presto_sweep_options *o = &s->sweep;
    if (sweep_parse_choosing(o, id, text) || parse_mode(o, id, text))
        return;
    switch (id) {
    case 'p':
        s->pipeline_name = text;
        break;
    case OPT_PLUGIN:
        cli_add_plugin(&s->settings, text);
        break;
    case OPT_SET:
        cli_add_setting(&s->settings, text);
        break;
    case OPT_FROM:
        s->settings.from = text;
        break;
    case OPT_FEATURE:
        s->settings.feature = text;
        break;
    case OPT_SPLITS:
        free(s->splits);
        o->split_count = cli_list("--splits", text, &s->splits);
        o->splits = (const char *const *)s->splits;
        break;
    case OPT_CODECS:
        parse_codecs(s, text);
        break;
    case OPT_TENSORFLOW:
        o->tensorflow_readable = true;
        break;
    case 'j':
        parse_threads(s, text);
        break;
    case OPT_SHARDS:
        parse_shards(s, text);
        break;
    case OPT_SAMPLES:
        o->samples = cli_number("--samples", text, 0, UINT64_MAX);
        break;
    case OPT_RUNS:
        o->runs = (unsigned)cli_number("--runs", text, 1, 1000);
        break;
    case OPT_RUN_TIME:
        o->run_s = cli_fraction("--run-time", text, 0, 3600);
        break;
    case 'b':
        o->batch_samples = (size_t)cli_number("--batch", text, 1, UINT32_MAX);
        break;
    case OPT_SEED:
        o->seed = cli_number("--seed", text, 0, UINT64_MAX);
        break;
    case OPT_WEIGHTS:
        parse_weights(s, text);
        break;
    case OPT_ON_ERROR:
        parse_on_error(&o->errors, text);
        break;
    case OPT_RESUME:
        o->resume = true;
        break;
    case OPT_FORCE:
        s->force = true;
        break;
    case OPT_CHECK:
        s->check = cli_path("--check", text);
        break;
    case 'o':
        s->output = cli_path("--output", text);
        break;
    case CLI_QUIET:
        s->quiet = true;
        break;
    case CLI_JSON:
        s->json = true;
        break;
    default:
        break;
    }
}

static void parse_command_line(sweep_job *s, int argc, char **argv) {
    const char *text = NULL;
    presto_sweep_options_defaults(&s->sweep);
    for (int id; (id = cli_next(argc, argv, &text)) != -1;)
        parse_option(s, id, text);
    cli_check_operands(argc, argv, 0, INT32_MAX, "SOURCE");
    if (s->check != NULL)
        return;
    if (s->pipeline_name == NULL)
        cli_usage("--pipeline is missing");
    if (s->output == NULL)
        cli_usage("--output is missing");
    for (size_t i = 0; i < s->sweep.codec_count && s->sweep.tensorflow_readable; i++)
        cli_check_codec("--codecs", s->codecs[i], true);
    const presto_sweep_prices *prices = &s->sweep.prices;
    bool has_prices = prices->storage_gb_month + prices->cpu_h + prices->accelerator_h > 0;
    if (has_prices && !(prices->epochs > 0))
        cli_usage("prices need --epochs, the length of the training");
    if (!has_prices && prices->epochs > 0)
        cli_usage("--epochs counts with prices only: give --price-accelerator, for example");
    if (!has_prices && prices->months != 1)
        cli_usage("--months counts with prices only: give --price-storage, for example");
    const presto_weights *weights = &s->sweep.weights;
    if (weights->preparation + weights->storage > 0 && s->sweep.limits.target_samples_per_s > 0)
        cli_usage("--target asks for what needs least, --weights for the best score: give one of "
                  "them");
    if (s->force && s->sweep.resume)
        cli_usage("--force begins anew, --resume goes on: give one of them");
    if (s->sweep.preparation_runs > s->sweep.runs)
        s->sweep.preparation_runs = s->sweep.runs;
    if ((size_t)snprintf(s->work_dir, sizeof s->work_dir, "%s/trials", s->output) >=
            sizeof s->work_dir ||
        (size_t)snprintf(s->journal, sizeof s->journal, "%s/trials.jsonl", s->output) >=
            sizeof s->journal)
        cli_usage("--output: the name is too long");
    s->sweep.work_dir = s->work_dir;
    s->sweep.journal = s->journal;
    s->sweep.pipeline_name = s->pipeline_name;
    cli_settings_spell_out(&s->settings);
    s->sweep.set = s->settings.texts;
    s->sweep.set_count = s->settings.count;
    s->sweep.plugins = s->settings.plugins;
    s->sweep.plugin_count = s->settings.plugin_count;
}

/* ---- running ---- */

static bool on_trial(void *user, const presto_strategy *strategy, size_t done, size_t total,
                     const presto_strategy_result *result) {
    sweep_job *s = user;
    char note[160], threads[PRESTO_TEXT_BYTES] = "";
    (void)result;
    if (strategy->threads > 0)
        presto_format_things(strategy->threads, "thread", threads);
    snprintf(note, sizeof note, "%s%s%s%s%s%s",
             total == 0     ? "looking at steps and storage: "
             : done < total ? ""
                            : "runs in turn, to decide: ",
             strategy->split, strategy->codec != NULL ? " " : "",
             strategy->codec != NULL ? strategy->codec : "", strategy->threads > 0 ? ", " : "",
             threads);
    const cli_progress_state state = {
        .unit = "trials", .done = done, .total = total, .note = note, .is_uneven = true};
    cli_progress_show(&s->progress, &state);
    return !cli_interrupted();
}

/* The results' folder is locked before the sweep spends minutes on filling it. */
static int make_output(sweep_job *s) {
    presto_error err;
    presto_status status =
        presto_sweep_claim(s->output, s->force || s->sweep.resume, &s->lock, &err);
    if (status != PRESTO_ERR_ARGUMENT)
        return status < 0 ? sweep_end_failed(&err, s->output) : CLI_DONE;
    cli_message("%s: %s; --force replaces them, --resume goes on with a sweep that was stopped",
                s->output, err.message);
    return CLI_FAILED;
}

static int print_results_json(const sweep_job *s) {
    char path[PATH_MAX];
    json_error_t why;
    snprintf(path, sizeof path, "%s/results.json", s->output);
    json_t *object = json_load_file(path, 0, &why);
    if (object != NULL)
        return cli_print_json(object);
    cli_message("%s: %s", path, why.text);
    return CLI_FAILED;
}

static int print_table(const sweep_job *s, const presto_sweep *sweep, bool is_written) {
    table_print(sweep, s->sweep.runs);
    table_print_recommendation(sweep, is_written ? s->output : NULL);
    return cli_close_stdout(CLI_DONE);
}

/* Writes and shows what there is. A full disk, or a folder that somebody has removed, perhaps to
 * sweep into it anew: the table still tells. */
static int show(const sweep_job *s, const presto_sweep *sweep) {
    presto_error err;
    int code = CLI_DONE;
    bool is_written = presto_folder_lock_check(s->lock, &err) >= 0 &&
                      presto_sweep_write(sweep, s->output, &err) >= 0;
    if (is_written || !s->json)
        code = is_written && s->json ? print_results_json(s) : print_table(s, sweep, is_written);
    return is_written ? code : sweep_end_failed(&err, s->output);
}

/* It removes its trial datasets first. The next sweep in the folder does so, too. */
#define ENDS_WITHIN_S 20

static void end_late(void *user) {
    const sweep_job *s = user;
    const sweep_end end = {.output = s->output, .journal = s->journal};
    const presto_error stopped = {.status = PRESTO_ERR_STOPPED, .message = "stopped"};
    (void)sweep_end_early(&end, &stopped);
}

static int run(sweep_job *s, const presto_pipeline *pipeline, const char *const *paths,
               size_t path_count) {
    presto_error err;
    presto_sweep *sweep = NULL;
    cli_catch_signals(); /* the lock is to be removed */
    int code = make_output(s);
    if (code != CLI_DONE)
        return code;
    cli_progress_start(&s->progress, s->quiet);
    s->sweep.on_trial = on_trial;
    s->sweep.on_trial_user = s;
    s->sweep.should_stop = cli_should_stop;
    s->sweep.pipeline = pipeline;
    cli_on_late_end(&(cli_late_end){end_late, s, ENDS_WITHIN_S});
    presto_status status = presto_sweep_run(paths, path_count, &s->sweep, &sweep, &err);
    cli_hold_end();
    cli_progress_end(&s->progress);
    (void)rmdir(s->work_dir); /* the sweep has removed its own files; others stay */
    if (sweep != NULL)
        code = show(s, sweep);
    const sweep_end end = {sweep, s->output, s->journal, s->sweep.errors.policy};
    if (status < 0)
        code = sweep_end_early(&end, &err);
    else if (code == CLI_DONE)
        code = sweep_end_whole(&end);
    presto_sweep_free(sweep);
    presto_folder_lock_release(s->lock);
    cli_release_end();
    return code;
}

static int check(const sweep_job *s, const char *const *paths, size_t path_count) {
    if (path_count == 0)
        cli_usage("--check needs new files");
    const check_job job = {.dataset = s->check,
                           .results_dir = s->output,
                           .pipeline_name = s->pipeline_name,
                           .settings = &s->settings,
                           .samples = s->sweep.samples,
                           .errors = s->sweep.errors,
                           .json = s->json};
    return sweep_check(&job, paths, path_count);
}

static void done(sweep_job *s) {
    free(s->splits);
    free(s->codecs);
    free(s->threads);
    free(s->shards);
}

int main(int argc, char **argv) {
    sweep_job s = {0};
    cli_start(&self);
    parse_command_line(&s, argc, argv);
    if (s.check != NULL) {
        int checked = check(&s, (const char *const *)argv + optind, (size_t)(argc - optind));
        done(&s);
        cli_reraise();
        return checked;
    }
    presto_pipeline *pipeline = cli_load_pipeline(s.pipeline_name, &s.settings);
    cli_check_sources(argc, argv, pipeline, "SOURCE");
    for (size_t i = 0; i < s.sweep.split_count; i++)
        cli_check_representation(pipeline, "--splits", s.splits[i], true);
    int code = run(&s, pipeline, (const char *const *)argv + optind, (size_t)(argc - optind));
    presto_pipeline_free(pipeline);
    done(&s);
    cli_reraise();
    return code;
}
