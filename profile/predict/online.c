/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A codec in the loader: a few of the records that an anchor has stored are stored again in the
 * codec, and loaded, on one thread and on all processors, with the page cache dropped and filled. A
 * codec alone does not tell what it costs there: other data fill the processor's caches, and how
 * storage and computing overlap is not the same for all.
 *
 * Where these are not all records, the same ones are loaded without a codec, too, by turns: the
 * difference counts.
 */
#include "../../base/file_internal.h"
#include "../../base/folder_internal.h"
#include "predict_internal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Records are as many as are compressed in this time, and loaded in that time, by one thread, but
 * at least so many. There is more time for compressing where there are few codecs and splits. */
#define COMPRESS_S 0.3
#define COMPRESS_MOST_S 0.8
#define ALL_COMPRESS_S 15
#define LOAD_S 0.4
#define RECORDS_LEAST 8
#define RECORD_BYTES ((double)(1536 << 20))
/* With all records no others are loaded beside: that costs no more than such a part of them. */
#define PART_MOST 0.6
/* Of a look; in a cold one there are some epochs, up to this time, but one where there is little
 * time. And of all looks at a codec, in up to so many rounds. Where there are few codecs and
 * splits, there is more time for each, but no more than runs of both numbers of threads would
 * take. */
#define COLD_LOOK_S 0.05
#define COLD_FEW 3
#define COLD_FEW_S 0.15
#define CACHED_LOOK_S 0.14
#define LOOKS_S 0.9
#define ALL_LOOKS_S 50
#define LOOKS_MOST 7
/* Of two the less disturbed one counts. There are two at least where there is so much time. */
#define TWO_LOOKS_S 2.0
/* Records of which an epoch takes longer are stored once, in as many files as all processors would
 * have, if that is few: each file makes a cold epoch of two threads some 10 ms longer, and one of a
 * single thread 2 or 3 ms. The first limit holds where there is little time; then some of all
 * records, which are small or slow, are stored once, too. */
#define SHORT_EPOCH_S 0.05
#define LONG_EPOCH_S 0.3
#define FEW_FILES 4
/* Codecs make no difference that take less of a worker's time, and change what it waits for storage
 * by less than this. */
#define CODEC_LEAST 0.02
#define STORAGE_LEAST 0.02

static bool on_progress(void *user, const presto_progress *progress) {
    (void)progress;
    presto__runner *runner = user;
    const presto_strategy strategy = {.stored = PRESTO_UNPROCESSED};
    return presto__runner_report(runner, &strategy, NULL, NULL) == PRESTO_OK;
}

static size_t shards_of(const presto__online *what, unsigned threads) {
    size_t shards = what->runner->options->shards;
    return shards > 0 ? shards : threads;
}

static presto_status store_again(const presto__online *what, const char *dir, size_t shards,
                                 presto__model_trial *tried, presto_error *err) {
    presto_convert_options options;
    presto_convert_options_defaults(&options);
    options.dir = dir;
    options.codec = what->codec_name;
    options.shards = shards;
    options.threads = what->model->cores;
    options.limit_samples = tried->samples;
    options.sync = false;
    options.on_progress = on_progress;
    options.on_progress_user = what->runner;
    presto_convert_result result;
    PRESTO_TRY(presto_convert(&what->dir, 1, &options, &result, err));
    PRESTO_TRY(presto__settle(dir, err));
    tried->raw_bytes = (double)result.raw_bytes / (double)result.samples;
    tried->stored_bytes = (double)result.stored_bytes / (double)result.samples;
    return PRESTO_OK;
}

static bool makes_a_difference(const presto__online *what, const presto__model_codec *codec) {
    double cached_s = what->split->times.cached_s.one;
    double wait_s = what->split->times.cold_s.one - cached_s;
    return codec->decompress_s.one > CODEC_LEAST * cached_s ||
           wait_s * fabs(1 - what->ratio) > STORAGE_LEAST * cached_s;
}

static double places_of(const presto__online *what) {
    return (double)(what->model->codec_count * what->model->split_count);
}

static uint64_t samples_to_load(const presto__online *what, const presto__model_codec *codec) {
    double compress_s = fmin(fmax(ALL_COMPRESS_S / places_of(what), COMPRESS_S), COMPRESS_MOST_S);
    double compressed = compress_s * what->model->cores / fmax(codec->compress_s.all, 1e-9);
    double loaded = LOAD_S / fmax(what->split->times.cached_s.one, 1e-9);
    double held = RECORD_BYTES / fmax(what->split->raw_bytes, 1);
    double wanted = fmax(fmin(fmin(compressed, loaded), held), RECORDS_LEAST);
    double all = (double)what->model->samples;
    if (wanted >= all * PART_MOST && held >= all)
        wanted = all;
    return (uint64_t)fmin(wanted, all);
}

/* ---- looks ---- */

/* All looks at a codec, or at records without one. */
typedef struct looks {
    const char *codec;
    double cold_run_s;
    double worker_s;                                       /* expected, of a cached sample */
    char *dirs[2];                                         /* for one thread, for all processors */
    double cold_s[2][LOOKS_MOST], cached_s[2][LOOKS_MOST]; /* the same */
} looks;

static presto_status look(const presto__online *what, looks *at, size_t round, uint64_t samples,
                          presto_error *err) {
    for (size_t i = 0; i < 2; i++) {
        unsigned threads = i == 0 ? 1 : what->model->cores;
        presto__look seen = {.samples = samples,
                             .epoch_s = (double)samples * at->worker_s / threads,
                             .cold_run_s = fmin(at->cold_run_s, what->runner->options->run_s),
                             .cached_run_s = fmin(CACHED_LOOK_S, what->runner->options->run_s)};
        presto__trial trial = {.result.strategy = {.stored = what->split->name,
                                                   .codec = at->codec,
                                                   .threads = threads},
                               .dir = at->dirs[i]};
        PRESTO_TRY(presto__trial_look(what->runner, &trial, &seen, err));
        at->cold_s[i][round] = seen.cold_s * threads;
        at->cached_s[i][round] = seen.cached_s * threads;
    }
    return PRESTO_OK;
}

/* Of two in the middle the less: what disturbs makes times longer. */
static double median(double *values, size_t count) {
    return values[presto__median_index(values, count)];
}

static presto__worker_times times_of(looks *at, size_t rounds) {
    return (presto__worker_times){
        .cold_s = {median(at->cold_s[0], rounds), median(at->cold_s[1], rounds)},
        .cached_s = {median(at->cached_s[0], rounds), median(at->cached_s[1], rounds)}};
}

/* What a cold look takes whose epochs take so long. */
static double cold_look_s(double epoch_s) {
    return fmax(fmin(COLD_FEW * epoch_s, COLD_FEW_S + epoch_s), COLD_LOOK_S);
}

/* For all looks at a codec. */
static double looks_s(const presto__online *what) {
    const presto_sweep_options *options = what->runner->options;
    double runs_s = 4 * options->runs * options->run_s; /* of both, cold and cached */
    return fmin(fmax(ALL_LOOKS_S / places_of(what), LOOKS_S), runs_s);
}

static size_t rounds_that_fit(const presto__online *what, const presto__model_trial *tried,
                              bool is_part) {
    double samples = (double)tried->samples, round_s = 0, all_s = looks_s(what);
    for (unsigned threads = 1; threads <= 2; threads++) {
        double cold_s = samples * what->split->times.cold_s.one / threads;
        double cached_s = samples * what->split->times.cached_s.one / threads;
        double epochs = (double)presto__look_epochs(CACHED_LOOK_S, fmax(cached_s, 1e-9));
        round_s += cold_look_s(cold_s) + cold_s + cached_s * epochs;
    }
    double rounds = all_s / (round_s * (is_part ? 1.5 : 1));
    return (size_t)fmin(fmax(rounds, all_s < TWO_LOOKS_S ? 1 : 2), LOOKS_MOST);
}

static presto_status take_looks(const presto__online *what, looks *coded,
                                presto__model_trial *tried, presto_error *err) {
    char *plain_dir = (char *)(uintptr_t)what->dir;
    looks plain = {.codec = "none", /* one cold epoch fills the cache */
                   .worker_s = what->split->times.cached_s.one,
                   .dirs = {plain_dir, plain_dir}};
    bool is_part = tried->samples < what->model->samples;
    size_t rounds = rounds_that_fit(what, tried, is_part);
    for (size_t round = 0; round < rounds; round++) {
        PRESTO_TRY(look(what, coded, round, tried->samples, err));
        if (is_part)
            PRESTO_TRY(look(what, &plain, round, tried->samples, err));
    }
    tried->coded = times_of(coded, rounds);
    if (is_part)
        tried->plain_cached_s = times_of(&plain, rounds).cached_s;
    return PRESTO_OK;
}

static bool is_one_enough(const presto__online *what, const looks *at,
                          const presto__model_trial *tried) {
    double wait_s = fmax(what->split->times.cold_s.one - what->split->times.cached_s.one, 0);
    double epoch_s = (double)tried->samples * (at->worker_s + wait_s);
    /* Opening a file may take long on a storage that is played. */
    if (shards_of(what, what->model->cores) > FEW_FILES || what->model->is_storage_given)
        return false;
    if (looks_s(what) > LOOKS_S)
        return epoch_s >= LONG_EPOCH_S;
    return epoch_s >= SHORT_EPOCH_S || tried->samples < what->model->samples;
}

/* In as many files as trials would have, which is what cold epochs of several threads feel. */
static presto_status store_for_looks(const presto__online *what, looks *at,
                                     presto__model_trial *tried, presto_error *err) {
    size_t one = shards_of(what, 1), all = shards_of(what, what->model->cores);
    if (one != all && !is_one_enough(what, at, tried))
        PRESTO_TRY(store_again(what, at->dirs[0], one, tried, err));
    else
        at->dirs[0] = at->dirs[1];
    return store_again(what, at->dirs[1], all, tried, err);
}

presto_status presto__probe_online(const presto__online *what, presto__model_codec *codec,
                                   presto_error *err) {
    if (!makes_a_difference(what, codec))
        return PRESTO_OK;
    presto__model_trial tried = {.samples = samples_to_load(what, codec)};
    char *one = presto__join_path(what->runner->work_dir, "codec-one");
    char *all = presto__join_path(what->runner->work_dir, "codec-all");
    looks at = {.codec = what->codec_name,
                .cold_run_s = looks_s(what) > LOOKS_S ? COLD_LOOK_S : 0,
                .worker_s = what->split->times.cached_s.one + codec->decompress_s.one,
                .dirs = {one, all}};
    presto_status status = one != NULL && all != NULL
                               ? store_for_looks(what, &at, &tried, err)
                               : presto_fail_memory(err, strlen(what->runner->work_dir) + 16);
    if (status == PRESTO_OK)
        status = take_looks(what, &at, &tried, err);
    if (one != NULL)
        (void)presto__folder_remove(one, NULL);
    if (all != NULL)
        (void)presto__folder_remove(all, NULL);
    free(one);
    free(all);
    if (status == PRESTO_OK)
        codec->tried = tried;
    return status;
}
