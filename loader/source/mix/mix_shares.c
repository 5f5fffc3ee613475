/* SPDX-License-Identifier: Apache-2.0 */
/* How many samples of each input an epoch of a mix has. */
#include <inttypes.h>
#include <math.h>

#include "mix_internal.h"

/*
 * The samples of each part in an epoch. With shares of the stream, one part is in it exactly once:
 * of those that are there for long in proportion to their weight, the first one, or of those that
 * are there for short.
 */
presto_status presto__mix_shares(presto_source *base, presto_mix_epoch epoch, presto_error *err) {
    presto_source_part *parts = base->parts;
    size_t whole = 0;
    for (size_t k = 1; k < base->part_count; k++) {
        double length = (double)parts[k].samples / parts[k].weight;
        double chosen = (double)parts[whole].samples / parts[whole].weight;
        if (epoch == PRESTO_MIX_SHORTEST ? length < chosen : length > chosen)
            whole = k;
    }
    double rate = (double)parts[whole].samples / parts[whole].weight;
    uint64_t total = 0;
    for (size_t k = 0; k < base->part_count; k++) {
        double wanted =
            parts[k].weight * (epoch == PRESTO_MIX_WEIGHTS ? (double)parts[k].samples : rate);
        if (wanted >= (double)PRESTO__MIX_MOST_SAMPLES)
            return presto_fail(err, PRESTO_ERR_ARGUMENT, PRESTO_NO_OFFSET,
                               "an epoch of the mix would have more than 2^56 samples of %s: the "
                               "weights differ too much",
                               parts[k].name);
        uint64_t share = (uint64_t)llround(wanted);
        if (epoch != PRESTO_MIX_WEIGHTS && k == whole)
            share = parts[k].samples;
        parts[k].epoch_samples = share > 0 ? share : 1;
        total += parts[k].epoch_samples;
    }
    return total <= PRESTO__MIX_MOST_SAMPLES
               ? PRESTO_OK
               : presto_fail(err, PRESTO_ERR_ARGUMENT, PRESTO_NO_OFFSET,
                             "an epoch of the mix would have %" PRIu64 " samples, more than 2^56",
                             total);
}
