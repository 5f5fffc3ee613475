/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The start of an epoch, and what it delivers once it is under way, measured apart. An epoch takes
 * start + samples * s. Epochs of two lengths tell both: those of the sample, and one that is longer,
 * of the sample's records stored several times (copies.c), or of more of the source's files. Where
 * an epoch of the sample is long itself, the other one is of its first samples: where these are in
 * several files, of the first ones of each file, as opening files is part of the start. An epoch of
 * the whole source is then start + all samples * s.
 *
 * Where several threads wait for a storage that is played, two more epochs are compared, of whole
 * rounds and in one file (rounds.c).
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "../../base/clock_internal.h"
#include "../../loader/loader_internal.h"
#include "../../storage/play_internal.h"
#include "load_internal.h"

/* One that waits for storage reads about so much, unless that takes so many times as long. */
#define LONG_BYTES 300e6
#define LONG_BYTES_TIMES 2.0
/* Copies take no more of the room for trials, and about so long to write. */
#define ROOM_PART 6
#define COPY_S 2.0
#define COPY_BYTES_PER_S 500e6 /* until one has been written */
/* Epochs wait for storage where cold ones take so many times as long as cached ones. */
#define WAITS 1.05
/* If an epoch of the sample is long, the short one is of this part of it. */
#define SHORT_PART 8
#define SHORT_SAMPLES 4
/* How often copies are made again because the epoch was not as long as it was to be. */
#define TRIES 3
#define ENOUGH 0.75

static double samples_of(const presto__epochs *run) {
    return (double)run->samples / (double)run->epochs;
}

/* ---- the second epoch ---- */

static bool may_do_without(presto_status status) {
    return status != PRESTO_ERR_STOPPED && status != PRESTO_ERR_MEMORY;
}

/* One cold epoch of a source: its samples, and seconds. */
static presto_status measure_epoch(const presto__load *what, double *samples_out,
                                   double *seconds_out, presto_error *err) {
    presto__load second = *what;
    presto__epochs one = {0};
    second.plays = true;
    second.pace = NULL;
    PRESTO_TRY(presto__ready_memory(&second, err));
    PRESTO_TRY(presto__source_drop_cache(second.source, err));
    PRESTO_TRY(presto__measure_epochs(&second, 1, &one, err));
    *samples_out = (double)one.samples;
    *seconds_out = one.measure.wall_s;
    free(one.costs);
    return PRESTO_OK;
}

static presto_status measure_one(const presto__load *what, presto__epochs *cold,
                                 presto_error *err) {
    return measure_epoch(what, &cold->second_samples, &cold->second_s, err);
}

typedef presto_status (*second_fn)(const presto__load *what, presto__epochs *cold,
                                   presto_error *err);

/* Of the trial's copies. */
static presto_status measure_copies_by(const presto__load *what, second_fn measure,
                                       presto__epochs *cold, presto_error *err) {
    presto__load longer = *what;
    presto_stream stream = {0};
    PRESTO_TRY(presto__trial_stream_open(what->runner, what->trial->copies.dir, &stream, err));
    longer.source = stream.source;
    longer.dataset = stream.dataset;
    longer.plan = stream.plan;
    presto_status status = measure(&longer, cold, err);
    presto_stream_close(&stream);
    return status;
}

static presto_status measure_copies(const presto__load *what, presto__epochs *cold,
                                    presto_error *err) {
    return measure_copies_by(what, measure_one, cold, err);
}

/* Bytes that copies of the trial may have, within the room and the time for writing them. */
static double copy_bytes(const presto__load *what) {
    const presto__runner *runner = what->runner;
    uint64_t room = presto__copies_room(runner) + what->trial->copies.bytes;
    uint64_t part = runner->options->work_bytes / ROOM_PART;
    double speed = runner->copy_bytes_per_s > 0 ? runner->copy_bytes_per_s : COPY_BYTES_PER_S;
    return fmin((double)(room < part ? room : part), speed * COPY_S);
}

/* So many times the sample, at most, within the room and the time for writing copies. */
static double times_that_fit(const presto__load *what, double times) {
    const presto__runner *runner = what->runner;
    const presto__trial *trial = what->trial;
    double most = ceil((double)runner->source_samples / (double)runner->samples);
    if (trial->result.strategy.codec != NULL)
        most = fmin(most, floor(copy_bytes(what) / fmax((double)trial->result.stored_bytes, 1)));
    return fmin(ceil(times), most);
}

/* So many times, or so many records in one file. */
static presto_status make_copies(presto__runner *runner, presto__trial *trial,
                                 const presto__copies *wanted, presto_error *err) {
    uint64_t start_ns = presto__clock_ns();
    PRESTO_TRY(wanted->in_one > 0 ? presto__copies_make_one(runner, trial, wanted->in_one, err)
                                  : presto__copies_make(runner, trial, wanted->times, err));
    double took_s = fmax(presto__seconds(presto__clock_ns() - start_ns), 1e-3);
    runner->copy_bytes_per_s = (double)trial->copies.bytes / took_s;
    return PRESTO_OK;
}

static presto_status measure_times(const presto__load *what, uint64_t times, presto__epochs *cold,
                                   presto_error *err) {
    if (what->trial->result.strategy.codec != NULL) {
        if (what->trial->copies.times < times)
            PRESTO_TRY(
                make_copies(what->runner, what->trial, &(presto__copies){.times = times}, err));
        return measure_copies(what, cold, err);
    }
    presto__load longer = *what;
    PRESTO_TRY(
        presto__sample_open_more(what->runner, times * what->runner->samples, &longer.source, err));
    what->trial->copies.times = times;
    return measure_one(&longer, cold, err);
}

/* All runs of a trial have a second epoch of the same length. Strategies that read the source share
 * larger samples of it. */
static double times_wanted(const presto__load *what, double wanted_s, double epoch_s) {
    const presto__trial *trial = what->trial;
    if (trial->copies.times > 0)
        return (double)trial->copies.times;
    double times = fmax(ceil(wanted_s / epoch_s), 2);
    return trial->result.strategy.codec == NULL ? exp2(ceil(log2(times))) : times;
}

static presto_status measure_longer(const presto__load *what, double wanted_s, presto__epochs *cold,
                                    presto_error *err) {
    double times = times_wanted(what, wanted_s, presto__epochs_typical_s(cold));
    for (size_t i = 0; i < TRIES; i++) {
        double fit = times_that_fit(what, times);
        if (fit < 2)
            return PRESTO_OK;
        PRESTO_TRY(measure_times(what, (uint64_t)fit, cold, err));
        if (cold->second_s >= ENOUGH * wanted_s || fit < times)
            return PRESTO_OK;
        times = ceil(fit * fmin(fmax(wanted_s / fmax(cold->second_s, 1e-6), 1.5), 8));
    }
    return PRESTO_OK;
}

static presto_status measure_part(const presto__load *what, presto__epochs *cold,
                                  presto_error *err) {
    presto__trial *trial = what->trial;
    if (presto__copies_room(what->runner) + trial->copies.bytes < trial->result.stored_bytes)
        return PRESTO_OK;
    if (trial->copies.part == 0)
        PRESTO_TRY(presto__copies_make_part(what->runner, trial, SHORT_PART, err));
    return measure_copies(what, cold, err);
}

/* The source stays cut. */
static presto_status measure_shorter(const presto__load *what, presto__epochs *cold,
                                     presto_error *err) {
    uint64_t all = presto_source_count(what->source), some = all / SHORT_PART;
    if (some < SHORT_SAMPLES)
        return PRESTO_OK;
    size_t files = what->trial->result.strategy.shards;
    if (what->trial->result.strategy.codec != NULL && files > 1 && 2 * files <= all)
        return measure_part(what, cold, err);
    presto__load shorter = *what;
    presto_stream stream = {0};
    if (what->trial->result.strategy.codec != NULL)
        PRESTO_TRY(presto__trial_stream_open(what->runner, what->trial->dir, &stream, err));
    else
        PRESTO_TRY(presto__sample_open(what->runner, &stream.source, err));
    shorter.source = stream.source;
    shorter.dataset = stream.dataset;
    shorter.plan = stream.plan != NULL ? stream.plan : what->plan;
    presto__source_truncate(shorter.source, some);
    presto_status status = measure_one(&shorter, cold, err);
    presto_stream_close(&stream);
    return status;
}

/* ---- in whole rounds ---- */

static double files_of(const presto__load *what) {
    const presto_strategy *strategy = &what->trial->result.strategy;
    return strategy->codec != NULL ? (double)strategy->shards : 0;
}

static bool waits_in_rounds(const presto__load *what, const presto__epochs *cold) {
    return presto__storage_is_set(&what->runner->options->storage) &&
           presto__has_few_rounds(cold->cut, what->strategy->threads, samples_of(cold),
                                  (size_t)files_of(what));
}

/* Of the whole, where an epoch of the sample has so many. */
static double whole_samples(const presto__load *what, double samples) {
    const presto__runner *runner = what->runner;
    return floor(samples * (double)runner->source_samples / (double)runner->samples);
}

/* Of the trial's last run, before steps leave some out. */
static presto__lengths lengths_of_last(const presto__load *what) {
    const presto__trial *trial = what->trial;
    const presto__epochs *last = trial->cold_count > 0 ? &trial->cold[trial->cold_count - 1] : NULL;
    if (last == NULL || !(last->less_samples > 0 && last->second_samples > last->less_samples))
        return (presto__lengths){0, 0};
    double given = (double)presto_source_count(what->source) / samples_of(last);
    return (presto__lengths){(uint64_t)llround(last->less_samples * given),
                             (uint64_t)llround(last->second_samples * given)};
}

/* All runs of a trial have epochs of the same lengths. */
static presto__lengths choose_lengths(const presto__load *what, double wanted_s,
                                      const presto__epochs *cold) {
    const presto__trial *trial = what->trial;
    const presto__lengths before = lengths_of_last(what);
    if (before.more > 0)
        return before;
    double own = (double)presto_source_count(what->source), most = whole_samples(what, own);
    if (trial->result.strategy.codec != NULL)
        most = fmin(most, copy_bytes(what) * own / fmax((double)trial->result.stored_bytes, 1));
    return presto__lengths_of(cold->cut, what->strategy->threads,
                              own * wanted_s / presto__epochs_typical_s(cold), most);
}

/* What opening the files adds that the whole has and the epochs that are compared have not. */
static void set_opening(const presto__load *what, const presto__epochs *cached,
                        presto__epochs *cold) {
    double more = cold->second_samples - cold->less_samples;
    double computing = fmin(what->strategy->threads, presto_processor_count());
    const presto__waiting whole = {.storage = &what->runner->options->storage,
                                   .stored_bytes = (double)cold->read_bytes / (double)cold->samples,
                                   .worker_s = computing / presto__epochs_rate(cached),
                                   .threads = what->strategy->threads,
                                   .files = fmax(files_of(what), 1),
                                   .samples = whole_samples(what, samples_of(cold)),
                                   .part_samples = presto__mean_part(cold->cut),
                                   .each_s = (cold->second_s - cold->less_s) / fmax(more, 1)};
    const presto__files_cost cost = presto__files_cost_of(&whole);
    cold->files_s = cost.seconds;
    cold->files_error_s = cost.error_s;
}

static presto_status measure_both(const presto__load *what, presto__epochs *cold,
                                  presto_error *err) {
    presto__load some = *what;
    some.limit = (uint64_t)cold->second_samples;
    PRESTO_TRY(measure_one(&some, cold, err));
    some.limit = (uint64_t)cold->less_samples;
    return measure_epoch(&some, &cold->less_samples, &cold->less_s, err);
}

static presto_status measure_longer_one(const presto__load *what, presto__epochs *cold,
                                        presto_error *err) {
    presto__load some = *what;
    some.limit = (uint64_t)cold->second_samples;
    return measure_one(&some, cold, err);
}

/* `measure` takes lengths from *cold, and puts there what was delivered. */
static presto_status measure_lengths(const presto__load *what, presto__lengths lengths,
                                     second_fn measure, presto__epochs *cold, presto_error *err) {
    presto__trial *trial = what->trial;
    cold->second_samples = (double)lengths.more;
    cold->less_samples = (double)lengths.less;
    if (trial->result.strategy.codec != NULL) {
        if (trial->copies.in_one < lengths.more)
            PRESTO_TRY(
                make_copies(what->runner, trial, &(presto__copies){.in_one = lengths.more}, err));
        return measure_copies_by(what, measure, cold, err);
    }
    presto__load longer = *what;
    PRESTO_TRY(presto__sample_open_more(what->runner, lengths.more, &longer.source, err));
    return measure(&longer, cold, err);
}

/* PRESTO_END: the whole has so few samples that an epoch of all of them can be measured instead. */
static presto_status measure_rounds(const presto__load *what, double wanted_s,
                                    const presto__epochs *cached, presto__epochs *cold,
                                    presto_error *err) {
    const presto__lengths lengths = choose_lengths(what, wanted_s, cold);
    if (lengths.more == 0)
        return PRESTO_END;
    PRESTO_TRY(measure_lengths(what, lengths, measure_both, cold, err));
    set_opening(what, cached, cold);
    return PRESTO_OK;
}

/* As many samples as the whole has, if there is room. */
static presto_status measure_all(const presto__load *what, presto__epochs *cold,
                                 presto_error *err) {
    const presto__runner *runner = what->runner;
    double times = ceil((double)runner->source_samples / (double)runner->samples);
    return times_that_fit(what, times) >= times ? measure_times(what, (uint64_t)times, cold, err)
                                                : PRESTO_OK;
}

/* ---- a run of a round ---- */

/* How many times the sample the second epochs of the trial's runs had; 0: they were no longer. */
static uint64_t times_of(const presto__trial *trial) {
    const presto__epochs *last = trial->cold_count > 0 ? &trial->cold[trial->cold_count - 1] : NULL;
    if (last == NULL || !(last->second_s > 0) || last->second_samples <= samples_of(last))
        return 0;
    return (uint64_t)fmax(round(last->second_samples / samples_of(last)), 2);
}

presto_status presto__measure_longest(const presto__load *what, presto__epochs *cold,
                                      presto_error *err) {
    uint64_t times = times_of(what->trial);
    double fit = times_that_fit(what, (double)times);
    const presto__lengths rounds = lengths_of_last(what);
    presto_error failure;
    presto_status status = PRESTO_OK;
    if (rounds.more == 0 && (times == 0 || fit < 2))
        return PRESTO_END;
    presto__epochs longer = {.epochs = 1};
    status = rounds.more > 0 ? measure_lengths(what, rounds, measure_longer_one, &longer, &failure)
                             : measure_times(what, (uint64_t)fit, &longer, &failure);
    if (status == PRESTO_OK) {
        *cold = (presto__epochs){
            .epochs = 1, .samples = (uint64_t)longer.second_samples, .epoch_s = longer.second_s};
        cold->measure.wall_s = longer.second_s;
        return PRESTO_OK;
    }
    if (may_do_without(status))
        return PRESTO_END;
    if (err != NULL)
        *err = failure;
    return status;
}

presto_status presto__measure_second(const presto__load *what, const presto__epochs *cached,
                                     presto__epochs *cold, presto_error *err) {
    const presto__runner *runner = what->runner;
    double wanted_s = presto__long_epoch_s(what->run_s);
    double epoch_s = presto__epochs_typical_s(cold);
    if (wanted_s <= 0 || runner->samples >= runner->source_samples)
        return PRESTO_OK;
    presto_error failure;
    presto_status status = PRESTO_END;
    bool in_rounds = waits_in_rounds(what, cold);
    if (in_rounds)
        status = measure_rounds(what, wanted_s, cached, cold, &failure);
    if (status == PRESTO_END && in_rounds) {
        status = measure_all(what, cold, &failure);
    } else if (status == PRESTO_END && epoch_s >= wanted_s) {
        status = measure_shorter(what, cold, &failure);
    } else if (status == PRESTO_END) {
        double bytes_per_s = (double)cold->read_bytes / (double)cold->epochs / epoch_s;
        bool waits = epoch_s > WAITS * presto__epochs_typical_s(cached);
        if (waits)
            wanted_s = fmin(fmax(LONG_BYTES / fmax(bytes_per_s, 1), wanted_s),
                            LONG_BYTES_TIMES * wanted_s);
        status = measure_longer(what, wanted_s, cold, &failure);
    }
    if (status == PRESTO_OK)
        return PRESTO_OK;
    cold->second_samples = cold->second_s = 0; /* the start is not known: it counts */
    cold->less_samples = cold->less_s = cold->files_s = cold->files_error_s = 0;
    if (may_do_without(status))
        return PRESTO_OK;
    if (err != NULL)
        *err = failure;
    return status;
}
