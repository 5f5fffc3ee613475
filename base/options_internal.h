/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Options and results of programs that were compiled with another version of a header. Fields are
 * only ever added at the end, and struct_bytes, the first one, says how many of them the program
 * knows. A struct within the options cannot grow: it has reserved words, which fields may take.
 */
#ifndef PRESTO_BASE_OPTIONS_INTERNAL_H
#define PRESTO_BASE_OPTIONS_INTERNAL_H

#include <stddef.h>

#include <presto/status.h>

/** Set `theirs`, of `their_bytes`, to as much of `mine` as fits; what this library does not know
 * is 0. */
void presto__options_give(void *theirs, size_t their_bytes, const void *mine, size_t my_bytes);

/**
 * Put what `theirs` says over `mine`, which holds the defaults; NULL: nothing.
 * Returns: PRESTO_ERR_ARGUMENT (struct_bytes is not set); PRESTO_ERR_UNSUPPORTED (the program sets
 * a field that this library does not know).
 */
presto_status presto__options_take(void *mine, size_t my_bytes, const void *theirs,
                                   presto_error *err);

/* ---- results: structs of the program that the library fills ---- */

/** PRESTO_ERR_ARGUMENT if struct_bytes of a result (not NULL) is not set. */
presto_status presto__result_check(const void *theirs, presto_error *err);
/** Fill `theirs` as presto__options_give; NULL, or not sized: nothing is done. */
void presto__result_give(void *theirs, const void *mine, size_t my_bytes);
/** As presto__result_give. What `theirs` has now is 0 in `mine`: free what is left there. */
void presto__result_move(void *theirs, void *mine, size_t my_bytes);
/** The other way: `mine` is what `theirs` says, and 0 where it says nothing. */
void presto__result_copy(void *mine, size_t my_bytes, const void *theirs);
/** As presto__result_copy. `theirs` is empty afterwards. */
void presto__result_take(void *mine, size_t my_bytes, void *theirs);

/* ---- groups of options ---- */

/** PRESTO_ERR_UNSUPPORTED if the program has set an option in the reserved room of a group. */
presto_status presto__options_check_room(const void *room, size_t bytes, presto_error *err);
#define PRESTO__CHECK_ROOM(group, err)                                                             \
    PRESTO_TRY(presto__options_check_room((group)->reserved, sizeof(group)->reserved, err))

#endif
