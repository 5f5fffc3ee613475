/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of reading a tokenizer.json or vocab.json. Each fills what it finds into `t`. */
#ifndef PRESTO_STEPS_TOKENIZER_JSON_INTERNAL_H
#define PRESTO_STEPS_TOKENIZER_JSON_INTERNAL_H

#include <jansson.h>

#include "tokenizer_internal.h"

/** "tokenizer.json: WHAT"; its value is `status`. */
presto_status presto__json_fail(presto_error *err, presto_status status, const char *what);

/** A whole tokenizer.json, but for presto__byte_bpe_finish(). */
presto_status presto__tokenizer_take(presto__tokenizer *t, const json_t *json, presto_error *err);
/** A vocab.json with the content of its merges.txt. */
presto_status presto__vocab_take(presto__tokenizer *t, const json_t *vocab,
                                 const presto__merges *merges, presto_error *err);

/** Cut as GPT-2 does, if `splits`. */
presto_status presto__byte_level_take(presto__tokenizer *t, bool adds_space, bool splits,
                                      presto_error *err);

/** "left right". */
presto_status presto__merge_line(presto__tokenizer *t, presto_span line, presto_error *err);
/** merges.txt; a first line "#version ..." is none. */
presto_status presto__merge_lines(presto__tokenizer *t, const presto__merges *merges,
                                  presto_error *err);

/** The list added_tokens. */
presto_status presto__added_take(presto__tokenizer *t, const json_t *list, presto_error *err);
/** The post_processor: ids around a text. */
presto_status presto__special_take(presto__tokenizer *t, const json_t *node, presto_error *err);

#endif
