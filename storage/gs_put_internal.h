/* SPDX-License-Identifier: Apache-2.0 */
/* What Google Cloud Storage answers to who writes (gs_answers.c), and where it is asked (kind_gs.c).
 * The requests: outlet_gs.c. */
#ifndef PRESTO_GS_PUT_INTERNAL_H
#define PRESTO_GS_PUT_INTERNAL_H

#include "remote_internal.h"

/** Where objects of gs:// are (kind_gs.c). */
extern const presto__address_type presto__gs_address;

/** Append what stands before all paths, "https://HOST". PRESTO_ERR_ARGUMENT, PRESTO_ERR_MEMORY. */
presto_status presto__gs_base(presto_buffer *url, presto_error *err);

/** What is said of an object. */
typedef struct presto__gs_object {
    char generation[24]; /* digits; "": it is not said */
    uint64_t bytes;
    bool has_crc;
    uint32_t crc32c;
} presto__gs_object;

/** What a copy says. */
typedef struct presto__gs_copied {
    bool is_done;
    char *token; /* of the next request, if it is not; NULL: none. The caller frees it */
} presto__gs_copied;

#define PRESTO__GS_ANSWER_BYTES ((size_t)64 << 10)

/** Read an object's resource, in JSON. PRESTO_ERR_SYNTAX: it is none. */
presto_status presto__gs_object_parse(presto_span json, presto__gs_object *object_out,
                                      presto_error *err);
/** Read what rewriteTo answers. PRESTO_ERR_SYNTAX: it is no such thing. */
presto_status presto__gs_copied_parse(presto_span json, presto__gs_copied *copied_out,
                                      presto_error *err);

#endif
