/* SPDX-License-Identifier: Apache-2.0 */
/* What a reader of a sweep's figures must know: how they were taken, and what disturbed them. */
#include "../../storage/play_internal.h"
#include "../profile_internal.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* If other processes, or other guests of the host, use more of the processors than this, a note says
 * so. */
#define BUSY_PART 0.1
#define STOLEN_PART 0.02

presto_status presto__add_note(presto_sweep *sweep, presto_error *err, const char *format, ...) {
    char text[1024];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    char **notes = realloc(sweep->notes, (sweep->note_count + 1) * sizeof *notes);
    if (notes == NULL)
        return presto_fail_memory(err, (sweep->note_count + 1) * sizeof *notes);
    sweep->notes = notes;
    char *copy = strdup(text);
    if (copy == NULL)
        return presto_fail_memory(err, strlen(text) + 1);
    notes[sweep->note_count++] = copy;
    return PRESTO_OK;
}

/* Finds cold epochs that were not cold: their bytes came from the page cache. */
static presto_status note_warm_cold_epochs(presto_sweep *sweep, presto_error *err) {
    double read = 0;
    double from_disk = 0;
    for (size_t i = 0; i < sweep->trial_count; i++) {
        const presto__trial *trial = &sweep->trials[i];
        for (size_t r = 0; r < trial->cold_count; r++) {
            read += (double)trial->cold[r].read_bytes;
            from_disk += trial->cold[r].measure.disk_read_bytes;
        }
    }
    if (isnan(from_disk))
        return presto__add_note(
            sweep, err,
            "the system does not tell what is read from disk, so that nothing shows "
            "whether cold epochs were cold");
    if (from_disk >= read / 2)
        return PRESTO_OK;
    return presto__add_note(
        sweep, err,
        "cold epochs were not cold: %.0f %% of their bytes came from disk (file system %s); "
        "the page cache could not be dropped, or the storage is memory",
        read > 0 ? 100 * from_disk / read : 0.0, sweep->facts.filesystem);
}

static presto_status note_storage(presto_sweep *sweep, presto_error *err) {
    char storage[PRESTO_STORAGE_TEXT_BYTES];
    return presto__add_note(
        sweep, err,
        "cold epochs read no faster than from a storage with %s; preparing and cached epochs are "
        "those of this machine",
        presto__storage_format(&sweep->storage, storage));
}

static double stolen_s(const presto__measure *measure) {
    return measure->machine_steal_s;
}

/* Processor time of somebody else while epochs ran, relative to all that was available. Of epochs
 * of which the system does not say it, nothing is known. */
static double part_of_processors(const presto_sweep *sweep,
                                 double (*seconds)(const presto__measure *)) {
    double taken_s = 0;
    double wall_s = 0;
    for (size_t i = 0; i < sweep->trial_count; i++) {
        const presto__trial *trial = &sweep->trials[i];
        for (size_t r = 0; r < trial->cold_count + trial->cached_count; r++) {
            const presto__measure *measure = r < trial->cold_count
                                                 ? &trial->cold[r].measure
                                                 : &trial->cached[r - trial->cold_count].measure;
            if (!isfinite(seconds(measure)))
                continue;
            taken_s += seconds(measure);
            wall_s += measure->wall_s;
        }
    }
    return wall_s > 0 ? fmin(taken_s / (wall_s * presto__machine_cpus()), 1) : 0;
}

static presto_status note_busy_machine(presto_sweep *sweep, presto_error *err) {
    double others = part_of_processors(sweep, presto__others_s);
    double stolen = part_of_processors(sweep, stolen_s);
    if (others > BUSY_PART)
        PRESTO_TRY(presto__add_note(
            sweep, err,
            "other processes used %.0f %% of the processors while epochs were measured: "
            "repeat the sweep on an idle machine for figures to rely on",
            others * 100));
    if (stolen > STOLEN_PART)
        PRESTO_TRY(presto__add_note(
            sweep, err,
            "the host of this virtual machine gave %.0f %% of its processors to others while "
            "epochs were measured: repeat the sweep at another time for figures to rely on",
            stolen * 100));
    return PRESTO_OK;
}

/* Finds runs far below the wanted time because their number of epochs is limited. */
static presto_status note_short_runs(presto_sweep *sweep, presto_error *err) {
    const presto__epochs *shortest = NULL;
    for (size_t i = 0; i < sweep->trial_count; i++)
        for (size_t r = 0; r < sweep->trials[i].cold_count; r++)
            if (shortest == NULL ||
                sweep->trials[i].cold[r].measure.wall_s < shortest->measure.wall_s)
                shortest = &sweep->trials[i].cold[r];
    if (shortest == NULL || shortest->measure.wall_s >= sweep->run_s / 2 ||
        sweep->facts.samples == sweep->facts.source_samples)
        return PRESTO_OK;
    return presto__add_note(
        sweep, err,
        "the shortest run took %.0f ms for %ju cold epoch%s: with more samples the "
        "start of the threads would weigh less",
        shortest->measure.wall_s * 1e3, (uintmax_t)shortest->epochs,
        presto_plural(shortest->epochs));
}

static presto_status note_cache_too_small(presto_sweep *sweep, presto_error *err) {
    const presto_strategy_result *best = &sweep->trials[sweep->best].result;
    if (sweep->facts.memory_bytes == 0 ||
        best->total_stored_bytes <= (double)sweep->facts.memory_bytes)
        return PRESTO_OK;
    char stored[PRESTO_TEXT_BYTES];
    char memory[PRESTO_TEXT_BYTES];
    return presto__add_note(
        sweep, err,
        "cached epochs are out of reach for the whole dataset on this machine: %s do not "
        "fit into %s of memory",
        presto_format_bytes(best->total_stored_bytes, stored),
        presto_format_bytes((double)sweep->facts.memory_bytes, memory));
}

/* Fewer samples than this are told. */
#define FEW_SAMPLES 30

static presto_status note_few_samples(presto_sweep *sweep, presto_error *err) {
    const presto_sweep_facts *facts = &sweep->facts;
    if (facts->samples >= FEW_SAMPLES)
        return PRESTO_OK;
    char samples[PRESTO_TEXT_BYTES];
    return presto__add_note(
        sweep, err, "%s %s few to rely on: %s",
        presto_format_things(facts->samples, "sample", samples), facts->samples == 1 ? "is" : "are",
        facts->samples < facts->source_samples
            ? "others may be larger or slower; --samples takes more"
            : "a larger dataset may have larger or slower ones, and in epochs this short the start "
              "of the threads weighs");
}

/* Totals that are surer than this need no note. */
#define LEAST_TAIL_PART 0.01

/* "storage by up to 35 %": of the limits that the skewness gives, the farther one. */
static double farthest_part(const presto__moments *sample, uint64_t population) {
    double least, most, total = sample->mean * (double)population;
    presto__skewed_interval(sample, population, &least, &most);
    return fmax(most - total, total - least) / fmax(total, 1);
}

static presto_status note_tails(presto_sweep *sweep, presto_error *err) {
    const presto__trial *best = &sweep->trials[sweep->best];
    uint64_t all = sweep->facts.source_samples, files_half = presto__tail_half(&sweep->files);
    bool files = presto__is_heavy(&sweep->files.moments, files_half);
    bool records = best->result.strategy.codec != NULL &&
                   presto__is_heavy(&best->record_bytes, best->record_half);
    if (sweep->facts.samples >= all || (!files && !records))
        return PRESTO_OK;
    const presto__moments *of = records ? &best->record_bytes : &sweep->files.moments;
    uint64_t population =
        records ? presto__population_of(of->count, sweep->facts.samples, all) : all;
    if (farthest_part(of, population) < LEAST_TAIL_PART)
        return PRESTO_OK;
    const char *what = records ? "records" : "files";
    uint64_t half = records ? best->record_half : files_half;
    char text[160] = "";
    if (presto__is_half_in_few(of, half))
        snprintf(text, sizeof text, "%ju of %ju %s make up half of the bytes", (uintmax_t)half,
                 (uintmax_t)of->count, what);
    else
        snprintf(text, sizeof text, "the sizes of %s vary widely", what);
    return presto__add_note(sweep, err,
                            "%s: totals that follow their sizes depend on how many such the sample "
                            "caught, and may be off by %.0f %% and more; a larger --samples makes "
                            "them surer",
                            text, 100 * farthest_part(of, population));
}

static presto_status note_limits(presto_sweep *sweep, presto_error *err) {
    size_t beyond = 0;
    for (size_t i = 0; i < sweep->trial_count; i++) {
        const presto_strategy_result *result = &sweep->trials[i].result;
        const presto__merit merit = presto__merit_of(result);
        beyond += !result->failed && !presto__keeps_limits(&merit, &sweep->limits);
    }
    if (beyond == 0 || presto__limits_are_aside(sweep)) /* then the reason tells it */
        return PRESTO_OK;
    return presto__add_note(sweep, err,
                            "%zu of %zu strategies would store more than the limit, or take longer "
                            "to prepare: %s no score",
                            beyond, sweep->trial_count, beyond == 1 ? "it has" : "they have");
}

static presto_status note_stop(presto_sweep *sweep, presto_error *err) {
    size_t measured = 0;
    for (size_t i = 0; i < sweep->trial_count; i++)
        measured += sweep->trials[i].cold_count > 0;
    return presto__add_note(sweep, err,
                            "stopped early: %zu of %zu strateg%s been measured, some in fewer runs "
                            "than wanted%s",
                            measured, sweep->trial_count,
                            sweep->trial_count == 1 ? "y has" : "ies have",
                            sweep->trials[sweep->best].result.is_predicted
                                ? "; the recommended one is not among them, its figures are "
                                  "predictions"
                                : "");
}

static presto_status note_seekable(presto_sweep *sweep, presto_error *err) {
    return presto__add_note(sweep, err,
                            PRESTO_SEEKABLE
                            " is no representation of the pipeline: with --set " PRESTO_SET_SEEKABLE
                            ", JPEGs are stored with an index (step index-jpeg), so that a crop "
                            "decodes its part of them only. It has the same pixels");
}

presto_status presto__write_notes(presto_sweep *sweep, presto_error *err) {
    const presto_sweep_facts *facts = &sweep->facts;
    char samples[PRESTO_TEXT_BYTES];
    char all[PRESTO_TEXT_BYTES];
    if (facts->samples < facts->source_samples)
        PRESTO_TRY(presto__add_note(sweep, err, "measured on %s %s of %s; totals are extrapolated",
                                    sweep->is_spread ? "an even selection of" : "the first",
                                    presto_format_count(facts->samples, samples),
                                    presto_format_things(facts->source_samples, "sample", all)));
    PRESTO_TRY(note_few_samples(sweep, err));
    if (sweep->is_stopped)
        PRESTO_TRY(note_stop(sweep, err));
    if (sweep->adds_seekable)
        PRESTO_TRY(note_seekable(sweep, err));
    PRESTO_TRY(note_limits(sweep, err));
    PRESTO_TRY(note_tails(sweep, err));
    bool plays = presto__storage_is_set(&sweep->storage);
    PRESTO_TRY(plays ? note_storage(sweep, err) : note_warm_cold_epochs(sweep, err));
    PRESTO_TRY(note_busy_machine(sweep, err));
    PRESTO_TRY(note_short_runs(sweep, err));
    return note_cache_too_small(sweep, err);
}
