/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The first reads of what was just written differ from all later ones: the storage is still busy
 * with it, or does not have it in caches of its own. A training reads a dataset in many epochs,
 * long after it was written. So trial datasets are read before anything is measured.
 */
#include "../../base/clock_internal.h"
#include "../../storage/storage_internal.h"
#include "trial_internal.h"

#include <stdlib.h>

#define TIMES 2
/* Slow storage need not be read to the end. */
#define FOR_S 0.3
#define READ_BYTES ((size_t)1 << 20)

static void read_file(const char *path, char *room, uint64_t until_ns) {
    presto__object object;
    presto__object_info info;
    size_t got = 1;
    (void)presto__drop_from_cache(path, NULL);
    if (presto__object_open(path, &object, &info, NULL) < 0)
        return;
    for (uint64_t at = 0; got > 0 && presto__clock_ns() < until_ns; at += got)
        if (presto__read_at((presto__object_place){object, path, at}, room, READ_BYTES, &got,
                            NULL) < 0)
            break;
    presto__object_close(&object);
}

presto_status presto__settle(const char *dir, presto_error *err) {
    presto_dataset *dataset = NULL;
    presto_shard_options options;
    presto_shard_options_defaults(&options);
    PRESTO_TRY(presto_dataset_open(&dir, 1, &options, &dataset, err));
    char *room = malloc(READ_BYTES);
    uint64_t until_ns = presto__clock_ns() + (uint64_t)(FOR_S * 1e9);
    for (size_t i = 0; i < TIMES && room != NULL; i++)
        for (size_t k = 0; k < presto_dataset_shard_count(dataset); k++)
            read_file(presto_dataset_shard_path(dataset, k), room, until_ns);
    free(room);
    presto_dataset_free(dataset);
    return PRESTO_OK;
}
