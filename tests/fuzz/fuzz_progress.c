/* SPDX-License-Identifier: Apache-2.0 */
/* The progress file of a conversion: what is read can be gone on from, and described in a
 * dataset.json. */
#include "fuzz.h"

#include <string.h>

#include "convert/convert_internal.h"

static void check_shards(const presto__progress_file *progress) {
    uint64_t next = 0;
    for (size_t i = 0; i < progress->shard_count; i++) {
        const presto__whole_shard *shard = &progress->shards[i];
        FUZZ_HOLDS(i == 0 || shard->number > progress->shards[i - 1].number);
        FUZZ_HOLDS(shard->first >= next && shard->end >= shard->first);
        FUZZ_HOLDS(shard->is_regrouped ? shard->next.sample >= shard->end &&
                                             shard->next.documents <= shard->next.sample
                                       : shard->described.records <= shard->end - shard->first);
        next = shard->end;
    }
    FUZZ_HOLDS(presto__progress_file_next(progress) == next);
    uint64_t left_out = presto__progress_file_left_out(progress);
    if (presto__progress_file_check_places(progress, false, UINT64_MAX, NULL) == PRESTO_OK)
        FUZZ_HOLDS(left_out <= presto__progress_file_samples(progress) &&
                   presto__progress_file_skipped(progress) <= left_out);
    else if (presto__progress_file_check_places(progress, true, 1000, NULL) == PRESTO_OK)
        FUZZ_HOLDS(left_out <= 1000 && presto__progress_file_skipped(progress) <= left_out);
}

static void check_features(const presto__schema *schema) {
    for (size_t i = 0; i < schema->count; i++) {
        const presto_feature_spec *feature = &schema->features[i];
        FUZZ_HOLDS(strcmp(presto_encoding_name(feature->encoding), "?") != 0);
        FUZZ_HOLDS(feature->spec.dtype == PRESTO_DTYPE_UNKNOWN ||
                   strcmp(presto_dtype_name(feature->spec.dtype), "unknown") != 0);
        FUZZ_HOLDS(feature->spec.rank >= -1 && feature->spec.rank <= PRESTO_MAX_RANK);
        for (int j = 0; j < feature->spec.rank; j++)
            FUZZ_HOLDS(feature->spec.dims[j] >= -1);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes) {
    presto__progress_file progress = {0};
    presto_error err;
    if (presto__progress_file_parse(presto_span_of(data, bytes), &progress, &err) == PRESTO_OK) {
        check_shards(&progress);
        check_features(&progress.schema);
        FUZZ_HOLDS(presto__progress_file_compare(&progress, progress.job, &err) == PRESTO_OK);
    }
    presto__progress_file_done(&progress);
    return 0;
}
