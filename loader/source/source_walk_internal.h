/* SPDX-License-Identifier: Apache-2.0 */
/* Part of room source's header: sources whose samples are not counted when they are opened. */
#ifndef PRESTO_SOURCE_WALK_INTERNAL_H
#define PRESTO_SOURCE_WALK_INTERNAL_H

#include "source_internal.h"

/** What a worker wants to walk over. */
typedef struct presto__walk_wish {
    size_t count; /* samples */
    size_t bytes; /* about so many, and at least a sample */
} presto__walk_wish;

/** What such a source can do. */
typedef struct presto__source_walk {
    /** How many samples there are, as far as is known now. Any thread. */
    uint64_t (*count)(const presto_source *source);
    /** Count them. Any thread. */
    presto_status (*settle)(const presto_source *source, presto_error *err);
    /** As digest, without counts. */
    uint64_t (*digest)(const presto_source *source);
    /** Samples will be walked over from `number` on, until `end`. PRESTO_END: they are counted,
     * there is no need to. */
    presto_status (*begin)(presto_source *source, uint64_t number, presto_error *err);
    void (*end)(presto_source *source);
    /** A walk that does not read: find samples until `number` of them are known. All but the last
     * one may be fetched. *known_out: how many are known, also on failure; nothing can be found
     * after that. One thread at a time. */
    presto_status (*pass)(const presto_source *source, uint64_t number, uint64_t *known_out,
                          presto_error *err);
    /**
     * Find the next samples, and read them into `blocks`; the reader's next fetch is for them and
     * uses that. Fewer than wished for: the source ends, there are too many bytes, or the last one
     * cannot be read. One thread at a time. Fails only without memory.
     */
    presto_status (*step)(presto__reader *reader, const presto__walk_wish *wish,
                          presto__blocks *blocks, size_t *found_out, presto_error *err);
} presto__source_walk;

#endif
