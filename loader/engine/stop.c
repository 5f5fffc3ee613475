/* SPDX-License-Identifier: Apache-2.0 */
/* Giving up: results are no longer wanted. */
#include "../../steps/pipelines_internal.h"
#include "workers_internal.h"

void presto__loader_abandon(presto_loader *loader) {
    atomic_store(&loader->is_abandoned, true);
    if (loader->storage != NULL)
        presto__storage_cancel(loader->storage);
    for (size_t i = 0; i < loader->worker_count; i++) {
        presto__plan_worker_cancel(loader->workers[i].cache_worker);
        presto__plan_worker_cancel(loader->workers[i].plan_worker);
    }
}

bool presto__loader_stops(presto_loader *loader) {
    const presto_loader_options *options = &loader->options;
    if (options->should_stop != NULL && !atomic_load(&loader->is_abandoned) &&
        options->should_stop(options->should_stop_user))
        presto__loader_abandon(loader);
    return atomic_load(&loader->is_abandoned);
}
