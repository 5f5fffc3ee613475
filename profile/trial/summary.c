/* SPDX-License-Identifier: Apache-2.0 */
/* A strategy's result from its trials: medians and spreads, and estimates for the whole source. */
#include "trial_internal.h"

#include <math.h>
#include <stdlib.h>

/* Rates per second are those of an epoch of the whole source: `longer` times what a sample's epochs
 * had. */
static double rate_of(const presto__epochs *epochs, double amount, double longer) {
    return amount / (double)epochs->epochs / presto__epochs_typical_s(epochs) * longer;
}

uint64_t presto__samples_each(const presto__trial *trial) {
    return trial->cached_count > 0 ? trial->cached[0].samples / trial->cached[0].epochs : 0;
}

double presto__whole_samples(const presto__runner *runner, uint64_t samples) {
    return (double)samples * (double)runner->source_samples / fmax((double)runner->samples, 1);
}

double presto__trial_whole_rate(const presto__runner *runner, const presto__trial *trial) {
    const presto__start start = presto__trial_start(trial);
    double rates[PRESTO__STARTS_MOST];
    double whole = presto__whole_samples(runner, presto__samples_each(trial));
    size_t count =
        trial->cold_count < PRESTO__STARTS_MOST ? trial->cold_count : PRESTO__STARTS_MOST;
    for (size_t i = 0; i < count; i++)
        rates[i] = presto__epochs_whole_rate(&trial->cold[i], start, whole);
    return count > 0 ? presto__spread_of(rates, count).median : NAN;
}

/* `start` and `whole` as presto__epochs_whole_rate takes them; `whole` 0: the rates are those of the
 * runs. */
static presto_status summarize_epochs(const presto__epochs *runs, size_t count, presto__start start,
                                      double whole, presto_epoch_result *result_out,
                                      presto_error *err) {
    double *values = calloc(count, 3 * sizeof *values);
    if (values == NULL)
        return presto_fail_memory(err, count * 3 * sizeof *values);
    double *samples = values;
    double *delivered = values + count;
    double *read = values + 2 * count;
    for (size_t i = 0; i < count; i++) {
        double longer = whole > 0 ? presto__epochs_whole_rate(&runs[i], start, whole) /
                                        presto__epochs_rate(&runs[i])
                                  : 1;
        samples[i] = rate_of(&runs[i], (double)runs[i].samples, longer);
        delivered[i] = rate_of(&runs[i], (double)runs[i].delivered_bytes, longer);
        read[i] = rate_of(&runs[i], (double)runs[i].read_bytes, longer);
    }
    const presto__epochs *typical = &runs[presto__median_index(samples, count)];
    const presto__measure *measure = &typical->measure;
    double epochs = (double)typical->epochs;
    *result_out = (presto_epoch_result){
        .samples_per_s = presto__spread_of(samples, count),
        .delivered_bytes_per_s = presto__spread_of(delivered, count),
        .read_bytes_per_s = presto__spread_of(read, count),
        .cpu_user_s = measure->cpu_user_s / epochs,
        .cpu_system_s = measure->cpu_system_s / epochs,
        .cpu_s_per_sample =
            (measure->cpu_user_s + measure->cpu_system_s) / (double)typical->samples,
        .context_switches_per_s = measure->context_switches / fmax(measure->wall_s, 1e-9),
        .disk_read_bytes = measure->disk_read_bytes / epochs,
        .peak_rss_bytes = measure->peak_rss_bytes,
        .start_s = NAN,
        .steady_samples_per_s = NAN,
    };
    double start_s = start.seconds + (start.files_s > 0 ? start.files_s : 0);
    if (start_s >= 0 && whole > 0) {
        double each_s = 1 / result_out->samples_per_s.median - start_s / whole;
        result_out->start_s = start_s;
        result_out->steady_samples_per_s = each_s > 0 ? 1 / each_s : NAN;
    }
    free(values);
    return PRESTO_OK;
}

/*
 * The sample's time without the listing grows with the number of samples. The listing always covers
 * the whole source, so it is added once.
 */
static void extrapolate_preparation(const presto__runner *runner, const presto__trial *trial,
                                    double list_s, presto_strategy_result *result) {
    double factor = (double)runner->source_samples / (double)runner->samples;
    double growing_s = fmax(result->preparation_s.median - list_s, 0);
    result->total_preparation_s = result->preparation_s.median - growing_s + growing_s * factor;
    /* The error of a mean within a run, or the error between the runs: the larger one counts. */
    double within = NAN;
    presto__moments between = {0};
    for (size_t i = 0; i < trial->preparation_count; i++) {
        const presto__preparation *run = &trial->preparations[i];
        within = fmax(within, run->error_s_per_sample);
        presto__moments_add(&between, run->wall_s);
    }
    double error = within * (double)runner->source_samples;
    if (between.count >= 2)
        error = fmax(error, presto__student_95(between.count - 1) *
                                sqrt(presto__moments_variance(&between) / (double)between.count) *
                                factor);
    result->total_preparation_error_s = error;
}

presto_status presto__trial_summarize(const presto__runner *runner, presto__trial *trial,
                                      presto_error *err) {
    presto_strategy_result *result = &trial->result;
    result->samples = presto__samples_each(trial);
    const presto__start start = presto__trial_start(trial), none = {NAN, NAN, 0, 0};
    PRESTO_TRY(summarize_epochs(trial->cold, trial->cold_count, start,
                                presto__whole_samples(runner, result->samples), &result->cold,
                                err));
    PRESTO_TRY(summarize_epochs(trial->cached, trial->cached_count, none, 0, &result->cached, err));
    if (result->strategy.codec == NULL) {
        result->total_stored_bytes = (double)runner->source_bytes;
        return PRESTO_OK;
    }
    uint64_t records =
        presto__population_of(trial->record_bytes.count, runner->samples, runner->source_samples);
    presto__estimate stored = presto__estimate_sum(&trial->record_bytes, records);
    result->total_stored_bytes = stored.total;
    result->total_stored_error_bytes = stored.error;
    double *walls = calloc(trial->preparation_count, sizeof *walls);
    if (walls == NULL)
        return presto_fail_memory(err, trial->preparation_count * sizeof *walls);
    for (size_t i = 0; i < trial->preparation_count; i++)
        walls[i] = trial->preparations[i].wall_s;
    result->preparation_s = presto__spread_of(walls, trial->preparation_count);
    size_t typical = presto__median_index(walls, trial->preparation_count);
    free(walls);
    extrapolate_preparation(runner, trial, trial->preparations[typical].list_s, result);
    return PRESTO_OK;
}
