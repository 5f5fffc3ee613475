/* SPDX-License-Identifier: Apache-2.0 */
/* Inside room engine: a storage that the loader plays. */
#ifndef PRESTO_LOADER_PLAYED_INTERNAL_H
#define PRESTO_LOADER_PLAYED_INTERNAL_H

#include "workers_internal.h"

/** If the options say so. */
presto_status presto__loader_open_storage(presto_loader *loader, presto_error *err);
void presto__loader_close_storage(presto_loader *loader);
/** Until presto__storage_bind(what this returns), the calling thread reads from what is played, if
 * there is anything. */
presto__storage_thread *presto__loader_bind_opening(presto_loader *loader,
                                                    presto__storage_thread *opening);

/** Before the worker reads; false: no storage is played. */
bool presto__worker_open_storage(presto__worker *worker);
/** A presto_read_file_fn for the steps; `user` is the worker. */
presto_status presto__worker_read_file(void *user, presto_span path, presto_arena *arena,
                                       presto_span *bytes_out, presto_error *err);
/** Add what it waited for to the worker's account. */
void presto__worker_count_played(presto__worker *worker);

#endif
