/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Room engine: the loader itself: workers read, run steps and fill packets; a ring puts the packets
 * in order; the consumer takes them. It also chooses the number of workers and the read-ahead, and
 * tells what limits the stream.
 * May see: base, storage, records, steps, and the rooms order, source, cache, packet.
 * Fields are grouped by owner. Lock: the pool's (room packet) guards the fields that say so.
 */
#ifndef PRESTO_LOADER_ENGINE_INTERNAL_H
#define PRESTO_LOADER_ENGINE_INTERNAL_H

#include "../order/order_internal.h"
#include "../packet/packet_internal.h"

/** The defaults, overwritten by what `given` (NULL: nothing) sets. Fails as
 * presto__options_take. */
presto_status presto__loader_take_options(presto_loader_options *options,
                                          const presto_loader_options *given, presto_error *err);

/** PRESTO_ERR_ARGUMENT if there are more than PRESTO_MAX_THREADS. */
presto_status presto__check_threads(unsigned threads, presto_error *err);

/** What a loader reads. */
typedef struct presto__loader_input {
    presto_source *source;
    const presto_plan *plan; /* NULL: no steps */
    presto__ranges ranges;   /* without a list: all samples. The list is copied */
    bool regroups; /* whoever asks makes other samples of these, if a step says so; else refused */
    size_t packets_bytes; /* of prefetch_bytes, what packets may take; 0: as much as there is */
} presto__loader_input;

/**
 * As presto__loader_open, but, if there are ranges, only for their positions, in the order of
 * presto__ranges: packets, and so batches, lie within one range. Then without shuffle, ranks,
 * first_sample and limit_samples, one epoch.
 */
presto_status presto__loader_open_input(const presto__loader_input *input,
                                        const presto_loader_options *options,
                                        presto_loader **loader_out, presto_error *err);
/** From now on the loader owns `owned`, which is freed at its end. */
void presto__loader_own(presto_loader *loader, void *owned, void (*free_owned)(void *owned));
/** Widen `schema` by the features of all samples run so far (records output with steps or from
 * raw sources). PRESTO_ERR_MEMORY, now and later, if some features could not be noted. */
presto_status presto__loader_schema_into(presto_loader *loader, presto__schema *schema,
                                         presto_error *err);
/** Position of the sample that the stream failed at; UINT64_MAX: none. The consumer's thread. */
uint64_t presto__loader_failed_at(const presto_loader *loader);

#endif
