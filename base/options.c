/* SPDX-License-Identifier: Apache-2.0 */
#include "options_internal.h"

#include <string.h>

/* More than any options have: what is larger was never set. */
#define MOST_BYTES ((size_t)1 << 16)

void presto__options_give(void *theirs, size_t their_bytes, const void *mine, size_t my_bytes) {
    memset(theirs, 0, their_bytes);
    memcpy(theirs, mine, their_bytes < my_bytes ? their_bytes : my_bytes);
    memcpy(theirs, &their_bytes, sizeof their_bytes);
}

presto_status presto__options_check_room(const void *room, size_t bytes, presto_error *err) {
    for (size_t i = 0; i < bytes; i++)
        if (((const uint8_t *)room)[i] != 0)
            return presto_fail(err, PRESTO_ERR_UNSUPPORTED, PRESTO_NO_OFFSET,
                               "the program sets an option that this version of libpresto does "
                               "not know");
    return PRESTO_OK;
}

presto_status presto__options_take(void *mine, size_t my_bytes, const void *theirs,
                                   presto_error *err) {
    size_t bytes;
    if (theirs == NULL)
        return PRESTO_OK;
    memcpy(&bytes, theirs, sizeof bytes);
    if (bytes < sizeof bytes || bytes > MOST_BYTES)
        return presto_fail(err, PRESTO_ERR_ARGUMENT, PRESTO_NO_OFFSET,
                           "struct_bytes of the options is not set: call presto_..._defaults() "
                           "before setting others");
    if (bytes > my_bytes)
        PRESTO_TRY(
            presto__options_check_room((const uint8_t *)theirs + my_bytes, bytes - my_bytes, err));
    memcpy(mine, theirs, bytes < my_bytes ? bytes : my_bytes);
    memcpy(mine, &my_bytes, sizeof my_bytes);
    return PRESTO_OK;
}
