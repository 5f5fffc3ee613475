/* SPDX-License-Identifier: Apache-2.0 */
#include "options_internal.h"

#include <string.h>

/* More than any struct has: what is larger was never set. */
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

static bool is_sized(const void *theirs) {
    size_t bytes = 0;
    if (theirs != NULL)
        memcpy(&bytes, theirs, sizeof bytes);
    return bytes >= sizeof bytes && bytes <= MOST_BYTES;
}

static size_t smaller(const void *theirs, size_t my_bytes) {
    size_t bytes;
    memcpy(&bytes, theirs, sizeof bytes);
    return bytes < my_bytes ? bytes : my_bytes;
}

presto_status presto__result_check(const void *theirs, presto_error *err) {
    if (theirs == NULL || is_sized(theirs))
        return PRESTO_OK;
    return presto_fail(err, PRESTO_ERR_ARGUMENT, PRESTO_NO_OFFSET,
                       "struct_bytes of the result is not set");
}

void presto__result_give(void *theirs, const void *mine, size_t my_bytes) {
    size_t bytes;
    if (!is_sized(theirs))
        return;
    memcpy(&bytes, theirs, sizeof bytes);
    presto__options_give(theirs, bytes, mine, my_bytes);
}

void presto__result_move(void *theirs, void *mine, size_t my_bytes) {
    presto__result_give(theirs, mine, my_bytes);
    if (is_sized(theirs))
        memset(mine, 0, smaller(theirs, my_bytes));
}

void presto__result_copy(void *mine, size_t my_bytes, const void *theirs) {
    memset(mine, 0, my_bytes);
    if (is_sized(theirs))
        memcpy(mine, theirs, smaller(theirs, my_bytes));
    memcpy(mine, &my_bytes, sizeof my_bytes);
}

void presto__result_take(void *mine, size_t my_bytes, void *theirs) {
    const size_t nothing = sizeof nothing;
    presto__result_copy(mine, my_bytes, theirs);
    presto__result_give(theirs, &nothing, sizeof nothing);
}
