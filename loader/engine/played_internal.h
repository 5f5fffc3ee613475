/* SPDX-License-Identifier: Apache-2.0 */
/* Inside room engine: a storage that the loader plays. */
#ifndef PRESTO_LOADER_PLAYED_INTERNAL_H
#define PRESTO_LOADER_PLAYED_INTERNAL_H

#include "workers_internal.h"

/** Open all but the options: queue, order, caches, workers. */
presto_status presto__loader_open_parts(presto_loader *loader, presto_error *err);
/** The same, on the storage that is to be played, if there is one. */
presto_status presto__loader_open_played(presto_loader *loader, presto_error *err);
void presto__loader_close_storage(presto_loader *loader);

/** Before the worker reads; false: no storage is played. */
bool presto__worker_open_storage(presto__worker *worker);
/** A presto_read_file_fn for the steps; `user` is the worker. */
presto_status presto__worker_read_file(void *worker, presto_span path, presto_arena *arena,
                                       presto_span *bytes_out, presto_error *err);
/** As presto__worker_run, with the worker bound to what is played. */
void presto__worker_run_part(presto__worker *worker, presto__packet *packet,
                             presto__packet_part *part);

#endif
