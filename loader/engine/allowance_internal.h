/* SPDX-License-Identifier: Apache-2.0 */
/* What workers hold, and when they may hold more. */
#ifndef PRESTO_LOADER_ALLOWANCE_INTERNAL_H
#define PRESTO_LOADER_ALLOWANCE_INTERNAL_H

#include "workers_internal.h"

/** Its arena asks before it grows, and waits until it may; it fails once the loader is being freed. */
void presto__worker_open_arena(presto__worker *worker);
/** A step has freed what it had asked for: the worker's next growth takes it first. */
void presto__worker_return(void *worker, size_t bytes);
/** All fetched samples are done: give back memory beyond the allowance. */
void presto__worker_give_back(presto__worker *worker);
/** With the pool's lock held, at the end of a part: set what the worker holds. */
void presto__worker_settle_locked(presto__worker *worker, size_t held_bytes);
/** What it holds at the end of a part. */
size_t presto__worker_memory(const presto__worker *worker);

#endif
