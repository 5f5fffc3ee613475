/* SPDX-License-Identifier: Apache-2.0 */
/* Inside room engine: what the state of a mix has beside that of any stream. state_mix.c. */
#ifndef PRESTO_LOADER_STATE_INTERNAL_H
#define PRESTO_LOADER_STATE_INTERNAL_H

#include <jansson.h>

#include "workers_internal.h"

/** A member of the state, after a comma: where each input of the mix is before position `next` of
 * `epoch`. Nothing if the source is no mix. */
presto_status presto__state_append_mix(const presto_loader *loader, uint64_t epoch, uint64_t next,
                                       presto_buffer *json_out, presto_error *err);
/**
 * Does "mix" of a state belong to this source and these options? `saved` is NULL if there is none.
 * PRESTO_ERR_ARGUMENT (another input, other weights), PRESTO_ERR_CORRUPT (not what that position of
 * the mix means).
 */
presto_status presto__state_check_mix(const json_t *root, const presto_source *source,
                                      const presto_loader_options *options, presto_error *err);

#endif
