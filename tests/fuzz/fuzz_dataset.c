/* SPDX-License-Identifier: Apache-2.0 */
/* The text of dataset.json. */
#include "../../records/records_internal.h"
#include "fuzz.h"

#include <presto/dataset.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes) {
    presto_dataset_info info = {0};
    presto_error err;
    if (presto__dataset_info_parse(presto_span_of(data, bytes), "dataset.json", &info, &err) ==
        PRESTO_OK) {
        uint64_t records = 0;
        for (size_t i = 0; i < info.shard_count; i++) {
            FUZZ_HOLDS(info.shards[i].file != NULL && info.shards[i].file[0] != '/');
            records += info.shards[i].records;
            FUZZ_HOLDS(records >= info.shards[i].records);
        }
        for (size_t i = 0; i < info.feature_count; i++)
            FUZZ_HOLDS(info.features[i].name != NULL &&
                       info.features[i].spec.rank <= PRESTO_MAX_RANK);
        FUZZ_HOLDS(info.codec != NULL && info.id != NULL);
    }
    presto__dataset_info_free(&info);
    return 0;
}
