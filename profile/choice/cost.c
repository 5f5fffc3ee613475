/* SPDX-License-Identifier: Apache-2.0 */
/* What a strategy costs: to store the dataset, to prepare it, and to train from it. */
#include "../profile_internal.h"

#include <math.h>

#define BYTES_PER_GB 1e9
#define S_PER_H 3600

presto_status presto__prices_check(const presto_sweep_prices *prices, presto_error *err) {
    const double values[] = {prices->storage_gb_month, prices->cpu_h, prices->accelerator_h,
                             prices->epochs, prices->months};
    for (size_t i = 0; i < sizeof values / sizeof *values; i++)
        if (!isfinite(values[i]) || values[i] < 0)
            return presto_fail(err, PRESTO_ERR_ARGUMENT, PRESTO_NO_OFFSET,
                               "price, epochs or months of %g: 0 or more are possible", values[i]);
    if (presto__prices_given(prices) && prices->epochs <= 0)
        return presto_fail(err, PRESTO_ERR_ARGUMENT, PRESTO_NO_OFFSET,
                           "prices need the number of epochs that are trained");
    return PRESTO_OK;
}

bool presto__prices_given(const presto_sweep_prices *prices) {
    return prices->storage_gb_month > 0 || prices->cpu_h > 0 || prices->accelerator_h > 0;
}

double presto__epoch_samples(const presto_sweep *sweep, const presto_strategy_result *result) {
    double delivered = (double)result->samples / fmax((double)sweep->facts.samples, 1);
    return delivered * (double)sweep->facts.source_samples;
}

presto__bill presto__bill_at(const presto_sweep *sweep, const presto_strategy_result *result,
                             double samples_per_s) {
    const presto_sweep_prices *prices = &sweep->prices;
    double target = sweep->limits.target_samples_per_s;
    double rate = target > 0 ? fmin(samples_per_s, target) : samples_per_s;
    double epoch_h = presto__epoch_samples(sweep, result) / fmax(rate, 1e-9) / S_PER_H;
    double threads_h = prices->cpu_h * fmax(result->strategy.threads, 1);
    presto__bill bill = {.training =
                             prices->epochs * epoch_h * (prices->accelerator_h + threads_h)};
    if (result->strategy.codec != NULL) {
        bill.storage =
            result->total_stored_bytes / BYTES_PER_GB * prices->storage_gb_month * prices->months;
        bill.preparation = result->total_preparation_s / S_PER_H * threads_h;
    }
    return bill;
}

static double sum_at(const presto_sweep *sweep, const presto_strategy_result *result,
                     double samples_per_s) {
    presto__bill bill = presto__bill_at(sweep, result, samples_per_s);
    return bill.storage + bill.preparation + bill.training;
}

presto_spread presto__cost_of(const presto_sweep *sweep, const presto_strategy_result *result) {
    if (result->failed || !presto__prices_given(&sweep->prices))
        return (presto_spread){NAN, NAN, NAN, 0};
    presto_spread rate = result->cold.samples_per_s;
    presto__merit merit = {.samples_per_s = rate};
    double target = sweep->limits.target_samples_per_s;
    double fastest = target > 0 ? target : rate.most;
    return (presto_spread){sum_at(sweep, result, fastest), sum_at(sweep, result, rate.median),
                           sum_at(sweep, result, presto__merit_slowest_rate(&merit)), rate.runs};
}
