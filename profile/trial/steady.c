/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The start of an epoch, and what it delivers once it is under way, measured apart. An epoch takes
 * start + samples * s. Epochs of two lengths tell both: those of the sample, and one that is longer,
 * of the sample's records stored several times (copies.c), or of more of the source's files. Where
 * an epoch of the sample is long itself, the other one is of its first samples: where these are in
 * several files, of the first ones of each file, as opening files is part of the start. An epoch of
 * the whole source is then start + all samples * s.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "../../base/clock_internal.h"
#include "../../loader/loader_internal.h"
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

/* One cold epoch of a source. */
static presto_status measure_one(const presto__load *what, presto__epochs *cold,
                                 presto_error *err) {
    presto__load second = *what;
    presto__epochs one = {0};
    second.plays = true;
    second.pace = NULL;
    PRESTO_TRY(presto__ready_memory(&second, err));
    PRESTO_TRY(presto__source_drop_cache(second.source, err));
    PRESTO_TRY(presto__measure_epochs(&second, 1, &one, err));
    cold->second_samples = (double)one.samples;
    cold->second_s = one.measure.wall_s;
    free(one.costs);
    return PRESTO_OK;
}

static presto_status measure_copies(const presto__load *what, presto__epochs *cold,
                                    presto_error *err) {
    presto__load longer = *what;
    presto_stream stream = {0};
    PRESTO_TRY(presto__trial_stream_open(what->runner, what->trial->copies.dir, &stream, err));
    longer.source = stream.source;
    longer.plan = stream.plan;
    presto_status status = measure_one(&longer, cold, err);
    presto_stream_close(&stream);
    return status;
}

/* So many times the sample, at most, within the room and the time for writing copies. */
static double times_that_fit(const presto__load *what, double times) {
    const presto__runner *runner = what->runner;
    const presto__trial *trial = what->trial;
    double most = ceil((double)runner->source_samples / (double)runner->samples);
    if (trial->result.strategy.codec != NULL) {
        uint64_t room = presto__copies_room(runner) + trial->copies.bytes;
        uint64_t part = runner->options->work_bytes / ROOM_PART;
        double speed = runner->copy_bytes_per_s > 0 ? runner->copy_bytes_per_s : COPY_BYTES_PER_S;
        double bytes = fmin((double)(room < part ? room : part), speed * COPY_S);
        most = fmin(most, floor(bytes / fmax((double)trial->result.stored_bytes, 1)));
    }
    return fmin(ceil(times), most);
}

static presto_status make_copies(presto__runner *runner, presto__trial *trial, uint64_t times,
                                 presto_error *err) {
    uint64_t start_ns = presto__clock_ns();
    PRESTO_TRY(presto__copies_make(runner, trial, times, err));
    double took_s = fmax(presto__seconds(presto__clock_ns() - start_ns), 1e-3);
    runner->copy_bytes_per_s = (double)trial->copies.bytes / took_s;
    return PRESTO_OK;
}

static presto_status measure_times(const presto__load *what, uint64_t times, presto__epochs *cold,
                                   presto_error *err) {
    if (what->trial->result.strategy.codec != NULL) {
        if (what->trial->copies.times < times)
            PRESTO_TRY(make_copies(what->runner, what->trial, times, err));
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
    shorter.plan = stream.plan != NULL ? stream.plan : what->plan;
    presto__source_truncate(shorter.source, some);
    presto_status status = measure_one(&shorter, cold, err);
    presto_stream_close(&stream);
    return status;
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
    presto_error failure;
    presto_status status = PRESTO_OK;
    if (times == 0 || fit < 2)
        return PRESTO_END;
    presto__epochs longer = {.epochs = 1};
    status = measure_times(what, (uint64_t)fit, &longer, &failure);
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
    presto_status status;
    if (epoch_s >= wanted_s) {
        status = measure_shorter(what, cold, &failure);
    } else {
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
    if (may_do_without(status))
        return PRESTO_OK;
    if (err != NULL)
        *err = failure;
    return status;
}
