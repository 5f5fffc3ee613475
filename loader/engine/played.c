/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A loader that plays a storage: its threads are bound to it while they open and read the source,
 * and not while steps run, whose own files are elsewhere.
 */
#include <stdlib.h>

#include "../../storage/play_internal.h"
#include "workers_internal.h"

presto_status presto__loader_open_storage(presto_loader *loader, presto_error *err) {
    if (!presto__storage_is_set(&loader->options.storage))
        return PRESTO_OK;
    presto__played_storage *storage = presto__memory_apart(1, sizeof *storage);
    if (storage == NULL)
        return presto_fail_memory(err, sizeof *storage);
    presto_status status = presto__storage_init(storage, &loader->options.storage, NULL, err);
    if (status < 0)
        free(storage);
    else
        loader->storage = storage;
    return status;
}

void presto__loader_close_storage(presto_loader *loader) {
    if (loader->storage == NULL)
        return;
    presto__storage_done(loader->storage);
    free(loader->storage);
}

static bool stops(void *loader) {
    return presto__loader_stops(loader);
}

/* Sources may be counted while the loader opens, and identified for a cache, which reads files. */
presto__storage_thread *presto__loader_bind_opening(presto_loader *loader,
                                                    presto__storage_thread *opening) {
    if (loader->storage == NULL)
        return presto__storage_bound();
    presto__storage_thread_init(opening, loader->storage);
    opening->stop = stops;
    opening->stop_user = loader;
    return presto__storage_bind(opening);
}

bool presto__worker_open_storage(presto__worker *worker) {
    presto_loader *loader = worker->loader;
    if (loader->storage == NULL)
        return false;
    presto__storage_thread_init(&worker->storage, loader->storage);
    if (loader->options.threads == 0) { /* nobody else asks while it waits */
        worker->storage.stop = stops;
        worker->storage.stop_user = loader;
    }
    return true;
}

presto_status presto__worker_read_file(void *user, presto_span path, presto_arena *arena,
                                       presto_span *bytes_out, presto_error *err) {
    presto__worker *worker = user;
    presto__storage_thread *before = presto__storage_bind(&worker->storage);
    presto_status status =
        worker->loader->source->ops->read_file(worker->reader, path, arena, bytes_out, err);
    (void)presto__storage_bind(before);
    return status;
}

void presto__worker_count_played(presto__worker *worker) {
    worker->account.storage_wait_ns += worker->storage.wait_ns;
    worker->account.storage_reads += worker->storage.reads;
    worker->storage.wait_ns = 0;
    worker->storage.reads = 0;
}
