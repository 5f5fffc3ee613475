/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Room out: batches for others: what they will look like before there is one. Its functions are
 * those of presto/stream.h.
 * May see: base, records, steps, rooms order, source, cache, packet and engine.
 */
#ifndef PRESTO_LOADER_OUT_INTERNAL_H
#define PRESTO_LOADER_OUT_INTERNAL_H

#include <presto/stream.h>

#endif
