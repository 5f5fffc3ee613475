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

#include "../cli/shared_options.h"
#include "sweep_check.h"
#include "sweep_choosing.h"
#include "sweep_end.h"
#include "table.h"

typedef struct sweep_job {
    presto_sweep_options sweep;
    const char *pipeline_name, *output, *check;
    cli_settings settings;
    char **stored, **codecs; /* one allocation each */
    unsigned *threads;
    size_t *shards;
    char work_dir[PATH_MAX], journal[PATH_MAX];
    bool quiet, json, force;
    cli_progress progress;
    presto_folder_lock *lock; /* of the output */
} sweep_job;

/* Numbers and names in lists: what the list is kept in is freed at the end. */

static void read_stored(const char *option, const char *text, void *place, void *beside) {
    sweep_job *s = place;
    (void)beside;
    free(s->stored);
    s->sweep.stored_count = cli_list(option, text, &s->stored);
    s->sweep.stored = (const char *const *)s->stored;
}

static void read_codecs(const char *option, const char *text, void *place, void *beside) {
    sweep_job *s = place;
    (void)beside;
    free(s->codecs);
    s->sweep.codec_count = cli_list(option, text, &s->codecs);
    s->sweep.codecs = (const char *const *)s->codecs;
    for (size_t i = 0; i < s->sweep.codec_count; i++)
        cli_check_codec(option, s->codecs[i], false);
}

/* As many zeros as the list has entries, on the heap. */
static void *list_numbers(const char *option, const char *text, size_t each, char ***list_out,
                          size_t *count_out) {
    *count_out = cli_list(option, text, list_out);
    void *numbers = calloc(*count_out, each);
    if (numbers == NULL) {
        cli_message("out of memory");
        exit(CLI_FAILED);
    }
    return numbers;
}

static void read_thread_counts(const char *option, const char *text, void *place, void *beside) {
    sweep_job *s = place;
    char **list = NULL;
    (void)beside;
    free(s->threads);
    s->threads = list_numbers(option, text, sizeof *s->threads, &list, &s->sweep.thread_count);
    for (size_t i = 0; i < s->sweep.thread_count; i++)
        s->threads[i] = (unsigned)cli_number(option, list[i], 0, PRESTO_MAX_THREADS);
    free(list);
    s->sweep.threads = s->threads;
}

static void read_shard_counts(const char *option, const char *text, void *place, void *beside) {
    sweep_job *s = place;
    char **list = NULL;
    (void)beside;
    free(s->shards);
    s->shards = list_numbers(option, text, sizeof *s->shards, &list, &s->sweep.shard_count_count);
    for (size_t i = 0; i < s->sweep.shard_count_count; i++)
        if (strcmp(list[i], "threads") != 0) /* 0 */
            s->shards[i] = (size_t)cli_number(option, list[i], 1, PRESTO_MAX_SHARDS);
    free(list);
    s->sweep.shard_counts = s->shards;
}

static void read_weights(const char *option, const char *text, void *place, void *beside) {
    presto_weights *weights = place;
    char **list = NULL;
    double numbers[3] = {0};
    (void)beside;
    if (cli_list(option, text, &list) != 3)
        cli_usage("%s: '%s' is not three numbers P,S,T", option, text);
    for (size_t i = 0; i < 3; i++)
        numbers[i] = cli_fraction(option, list[i], 0, INFINITY);
    if (numbers[0] + numbers[1] + numbers[2] <= 0)
        cli_usage("%s: '%s': one of them must be above 0", option, text);
    free(list);
    weights->preparation = numbers[0];
    weights->storage = numbers[1];
    weights->throughput = numbers[2];
}

static void set_defaults(void *job) {
    sweep_job *s = job;
    presto_sweep_options_defaults(&s->sweep);
}

static const cli_option options[] = {
    CLI_GROUP("Strategies"),
    {'p', "pipeline", "NAME|FILE", "the pipeline", NULL, CLI_TEXT(sweep_job, pipeline_name),
     CLI_WORDS_OF(presto_pipeline_builtin_at)},
    CLI_SET_OPTION(sweep_job, settings),
    CLI_PLUGIN_OPTION(sweep_job, settings),
    CLI_FROM_OPTION(sweep_job, settings.from,
                    "the sources are TFRecords, or a dataset, that hold this one; the steps after "
                    "it run",
                    NULL),
    CLI_FEATURE_OPTION(sweep_job, settings.feature),
    {0, "stored", "A,B,...", "representations to store", "all that can be, and unprocessed",
     CLI_SPECIAL_OF_ALL(read_stored), CLI_WAS("splits"), CLI_WORDS_OF(cli_representation_at)},
    {0, "no-seekable", NULL,
     "only representations of the pipeline [default: where photos are cropped, also JPEGs with an "
     "index, of which a crop decodes its part only: seekable]",
     NULL, CLI_FLAG(sweep_job, sweep.no_seekable)},
    {0, "codecs", "A,B,...", "codecs of the records", "none,zstd:1,zstd:3,lz4,snappy,gzip",
     CLI_SPECIAL_OF_ALL(read_codecs), CLI_WORDS_OF(presto_codec_built_at)},
    {0, "tensorflow-readable", NULL,
     "only codecs that every TensorFlow reads: none, zlib, gzip [default codecs: none,zlib:1,gzip]",
     NULL, CLI_FLAG(sweep_job, sweep.tensorflow_readable)},
    {'j', "threads", "N,M,...", "numbers of threads",
     "1 and the number of CPUs; with --storage, larger ones, too",
     CLI_SPECIAL_OF_ALL(read_thread_counts)},
    {0, "shards", "N,M,...", "numbers of files that a dataset has; \"threads\": as many as threads",
     "threads", CLI_SPECIAL_OF_ALL(read_shard_counts), CLI_WORDS("threads")},

    CLI_GROUP("Measuring"),
    {0, "samples", "N", "how many samples to try on; 0 = all", CLI_FIELD,
     CLI_NUMBER(sweep_job, sweep.samples, 0, UINT64_MAX)},
    {0, "runs", "R", "runs of a strategy: cold epochs, then cached ones", CLI_FIELD,
     CLI_NUMBER(sweep_job, sweep.runs, 1, 1000)},
    {0, "run-time", "SECONDS",
     "a run's cold epochs are repeated, 128 at most, until they last so long together, and so are "
     "its cached ones",
     CLI_FIELD, CLI_FRACTION(sweep_job, sweep.run_s, 0, 3600)},
    {0, "decide-time", "SECONDS",
     "strategies that may be better by their predictions are run, and those near the best take "
     "turns with more runs, until it is decided which one is recommended, at most so long",
     CLI_FIELD, CLI_FRACTION(sweep_job, sweep.decide_s, 0, 86400)},
    {'b', "batch", "N", "samples per batch", CLI_FIELD,
     CLI_NUMBER(sweep_job, sweep.batch_samples, 1, UINT32_MAX)},
    {0, "predict", NULL,
     "run each representation without a codec, try the codecs on its records, and predict the "
     "other "
     "strategies; run the best of them, and some others to confirm [default]",
     NULL, CLI_FLAG_OF(sweep_job, sweep.mode, PRESTO_SWEEP_PREDICT)},
    {0, "measure", NULL, "run every strategy instead", NULL,
     CLI_FLAG_OF(sweep_job, sweep.mode, PRESTO_SWEEP_MEASURE)},
    {0, "confirm", "N", "how many strategies to run to confirm", CLI_FIELD,
     CLI_NUMBER(sweep_job, sweep.confirm_runs, 0, 100000)},
    {0, "seed", "S", "of shuffling and random steps", CLI_FIELD,
     CLI_NUMBER(sweep_job, sweep.seed, 0, UINT64_MAX)},
    CLI_ON_ERROR_OPTION(sweep_job, sweep.errors,
                        "samples that fail: fail, skip, skip:N, skip:P% (at most so many)"),
    CLI_STORAGE_OPTION(sweep_job, sweep.storage,
                       "plan for this storage: cold epochs read no faster than from it"),

    CLI_GROUP("Choosing"),
    {0, "weights", "P,S,T", "what preparation time, storage and throughput count", "0,0,1",
     CLI_SPECIAL(sweep_job, sweep.weights, read_weights)},
    {0, "target", "RATE[+P%]",
     "samples per second that the training takes: recommend what needs least (with prices: costs "
     "least) of the strategies that deliver so many and P % more in each cold run; instead of "
     "--weights",
     "+10%", CLI_SPECIAL(sweep_job, sweep.limits, sweep_read_target)},
    {0, "max-storage", "BYTES", "recommend only what stores at most so much: 500MiB, 2TiB", NULL,
     CLI_SIZE(sweep_job, sweep.limits.most_stored_bytes, 1)},
    {0, "max-prepare", "TIME", "recommend only what is prepared in so long: 3600, 90s, 15min, 2h",
     NULL, CLI_TIME(sweep_job, sweep.limits.most_preparation_s)},
    {0, "price-accelerator", "PRICE/h",
     "what trains, for an hour; with prices, what costs least is recommended (with --target: of "
     "what reaches it)",
     NULL, CLI_SPECIAL(sweep_job, sweep.prices.accelerator_h, sweep_read_price_of_hour)},
    {0, "price-cpu", "PRICE/h", "a thread for an hour, preparing and loading", NULL,
     CLI_SPECIAL(sweep_job, sweep.prices.cpu_h, sweep_read_price_of_hour)},
    {0, "price-storage", "PRICE/GB-month", "what the dataset takes", NULL,
     CLI_SPECIAL(sweep_job, sweep.prices.storage_gb_month, sweep_read_price_of_storage)},
    {0, "epochs", "N", "of the training; needed with prices", NULL,
     CLI_NUMBER(sweep_job, sweep.prices.epochs, 1, UINT32_MAX)},
    {0, "months", "N", "that the dataset is kept", CLI_FIELD,
     CLI_FRACTION(sweep_job, sweep.prices.months, 0, 1000000)},

    CLI_GROUP("Results"),
    {'o', "output", "DIR",
     "folder for the results; trials are written below it, on the storage that is judged, and "
     "removed",
     NULL, CLI_PATH(sweep_job, output)},
    {0, "resume", NULL,
     "go on with a sweep that was stopped: what the folder's trials.jsonl holds is not measured "
     "again",
     NULL, CLI_FLAG(sweep_job, sweep.resume)},
    {0, "force", NULL, "replace the results of an earlier sweep", NULL, CLI_FLAG(sweep_job, force)},
    {0, "check", "DATASET",
     "instead: do the new files (SOURCE) still fit this dataset? Compares sizes, shapes and the "
     "time to load; with -o, the changes with the margin in that sweep's results. Exit 4: the "
     "recommendation may be another one",
     NULL, CLI_PATH(sweep_job, check)},
    CLI_COMMON_OPTIONS(sweep_job, "print results.json on stdout instead of the table", 0),
};

static const cli_program self = {
    "presto-sweep",
    "-p PIPELINE [OPTIONS] -o DIR SOURCE...\n--check DATASET [-p PIPELINE] [-o DIR] SOURCE...",
    "Try out how far to preprocess a dataset before storing it, in which codec, read by how many "
    "threads. Some strategies are written and loaded on a sample of the data; the others are "
    "predicted, and the best ones run to confirm it (--measure: all are run).",
    options,
    "Writes report.html, results.csv, results.json and strategy.yaml (which\n"
    "presto-write and presto-load take) into DIR.",
    sizeof(sweep_job),
    set_defaults,
    .example = "presto-sweep -p cv --threads 1,4 --weights 1,0,1 -o sweep photos",
    .most_exit = CLI_OTHER_ADVICE,
};

static void parse_command_line(sweep_job *s, int argc, char **argv) {
    cli_parse(argc, argv, s);
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
             strategy->stored, strategy->codec != NULL ? " " : "",
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

/* Those of the pipeline, and the one that the sweep may add. */
static void check_stored(const sweep_job *s, const presto_pipeline *pipeline) {
    presto_pipeline *seekable = NULL;
    presto_error err;
    if (!s->sweep.no_seekable && presto_pipeline_seekable(pipeline, &seekable, &err) < 0)
        exit(cli_error(&err));
    for (size_t i = 0; i < s->sweep.stored_count; i++)
        cli_check_representation(seekable != NULL ? seekable : pipeline, "--stored", s->stored[i],
                                 true);
    presto_pipeline_free(seekable);
}

static void done(sweep_job *s) {
    free(s->stored);
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
    check_stored(&s, pipeline);
    int code = run(&s, pipeline, (const char *const *)argv + optind, (size_t)(argc - optind));
    presto_pipeline_free(pipeline);
    done(&s);
    cli_reraise();
    return code;
}
