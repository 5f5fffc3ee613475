/* SPDX-License-Identifier: Apache-2.0 */
/* Which of the JSON files it is, and the life of a tokenizer. */
#include <stdlib.h>

#include "../../base/json_limit_internal.h"
#include "tokenizer_internal.h"

/* A merge as a list of two texts weighs 10: 580,000 of them, with a vocabulary, stay below it. */
#define MAX_JSON_BYTES ((uint64_t)64 << 20)
#define MAX_JSON_WEIGHT ((size_t)8 << 20)

void presto__tokenizer_free(presto__tokenizer *tokenizer) {
    if (tokenizer == NULL)
        return;
    presto__byte_bpe_done(&tokenizer->bpe);
    free(tokenizer->added[0].items);
    free(tokenizer->added[1].items);
    presto_buffer_done(&tokenizer->added_texts);
    free(tokenizer->splits);
    free(tokenizer->categories);
    free(tokenizer);
}

static presto_status take_any(presto__tokenizer *t, const json_t *json,
                              const presto__merges *merges, presto_error *err) {
    bool is_whole = json_is_object(json_object_get(json, "model"));
    if (is_whole && merges->text.data != NULL)
        return presto_fail(err, PRESTO_ERR_ARGUMENT, PRESTO_NO_OFFSET,
                           "a tokenizer.json has its merges; remove the option 'merges'");
    if (is_whole)
        return presto__tokenizer_take(t, json, err);
    if (!json_is_object(json) || json_object_size(json) == 0 ||
        !json_is_integer(json_object_iter_value(json_object_iter((json_t *)json))))
        return presto_fail(err, PRESTO_ERR_CORRUPT, PRESTO_NO_OFFSET,
                           "neither a tokenizer.json nor a vocab.json");
    if (merges->text.data == NULL)
        return presto_fail(err, PRESTO_ERR_ARGUMENT, PRESTO_NO_OFFSET,
                           "a vocab.json needs its merges: set bpe-encode.merges=merges.txt");
    PRESTO_TRY(presto__vocab_take(t, json, merges, err));
    return presto__byte_level_take(t, false, true, err);
}

static presto_status allocate(presto__tokenizer **tokenizer_out, presto_error *err) {
    presto__tokenizer *t = calloc(1, sizeof *t);
    if (t == NULL)
        return presto_fail_memory(err, sizeof *t);
    t->categories = presto__unicode_categories_new();
    t->splits = calloc(PRESTO__TOKENIZER_MAX_SPLITS, sizeof *t->splits);
    if (t->categories == NULL || t->splits == NULL) {
        presto__tokenizer_free(t);
        return presto_fail_memory(err, PRESTO__UNICODE_LIMIT);
    }
    *tokenizer_out = t;
    return PRESTO_OK;
}

presto_status presto__tokenizer_new(presto_span json, const presto__merges *merges,
                                    presto__tokenizer **tokenizer_out, presto_error *err) {
    json_error_t where;
    presto__tokenizer *t;
    PRESTO_TRY(presto__json_check(json, MAX_JSON_BYTES, MAX_JSON_WEIGHT, err));
    PRESTO_TRY(allocate(&t, err));
    json_t *tree = json_loadb((const char *)json.data, json.bytes,
                              JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, &where);
    presto_status status = tree != NULL
                               ? take_any(t, tree, merges, err)
                               : presto_fail(err, PRESTO_ERR_CORRUPT, (uint64_t)where.position,
                                             "not a tokenizer.json or vocab.json: %s", where.text);
    if (status >= 0)
        status = presto__byte_bpe_finish(&t->bpe, err);
    json_decref(tree);
    if (status < 0)
        presto__tokenizer_free(t);
    else
        *tokenizer_out = t;
    return status;
}
