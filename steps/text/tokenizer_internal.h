/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tokenizers with a byte-level BPE model: tokenizer.json of Hugging Face's library tokenizers, or
 * GPT-2's vocab.json and merges.txt. What a file asks for and is not done here is refused by name.
 */
#ifndef PRESTO_STEPS_TOKENIZER_INTERNAL_H
#define PRESTO_STEPS_TOKENIZER_INTERNAL_H

#include <jansson.h>

#include "byte_bpe_internal.h"
#include "pattern_internal.h"
#include "unicode_internal.h"

enum {
    PRESTO__TOKENIZER_MAX_SPLITS = 8,
    PRESTO__TOKENIZER_MAX_SPECIAL = 64,
    PRESTO__TOKENIZER_MAX_ADDED = 65536
};

/* A token that is found in the text as it is, before anything else. */
typedef struct presto__added_token {
    presto_span text; /* in `added_texts` */
    int32_t id;
    bool strips_left, strips_right; /* takes the white space beside it */
} presto__added_token;

/* Sorted by text. */
typedef struct presto__added_tokens {
    presto__added_token *items;
    size_t count;
    bool starts_with[256]; /* the first byte of one of them */
} presto__added_tokens;

/* What a step of cutting a text into words does with it. */
typedef enum presto__cut {
    PRESTO__CUT_ISOLATES = 0,      /* matches of the pattern are words, and what is between them */
    PRESTO__CUT_KEEPS_MATCHES = 1, /* what is between them goes */
    PRESTO__CUT_KEEPS_GAPS = 2,    /* matches go */
    PRESTO__CUT_ADDS_SPACE = 3     /* no cut: a space before the text, unless there is one */
} presto__cut;

typedef struct presto__text_split {
    presto__cut cut;
    presto__pattern pattern; /* none with PRESTO__CUT_ADDS_SPACE */
} presto__text_split;

typedef struct presto__tokenizer {
    presto__byte_bpe bpe;
    /* Those that are found first, and those that are found in the rest. */
    presto__added_tokens added[2];
    presto_buffer added_texts;
    bool normalizes; /* what stands between those found first, and the texts of the others */
    presto__form form;
    presto__text_split *splits;
    size_t split_count;
    int32_t before[PRESTO__TOKENIZER_MAX_SPECIAL]; /* ids around each text */
    int32_t behind[PRESTO__TOKENIZER_MAX_SPECIAL];
    size_t before_count, behind_count;
    uint8_t *categories;
} presto__tokenizer;

/** The content of a merges.txt, and the file's name for errors. No data: there is none. */
typedef struct presto__merges {
    presto_span text;
    const char *file;
} presto__merges;

/**
 * Read a tokenizer.json, or a vocab.json if there are `merges`. An error within the merges has their
 * file's name; others have none.
 *
 * Owner:   the caller has *tokenizer_out; presto__tokenizer_free(), for which NULL is fine.
 * Returns: PRESTO_OK; PRESTO_ERR_CORRUPT: not such a file, or damaged; PRESTO_ERR_UNSUPPORTED:
 *          something that is not done here, by name; PRESTO_ERR_ARGUMENT: merges are missing, or
 *          are too many; PRESTO_ERR_LIMIT; PRESTO_ERR_MEMORY.
 */
presto_status presto__tokenizer_new(presto_span json, const presto__merges *merges,
                                    presto__tokenizer **tokenizer_out, presto_error *err);
void presto__tokenizer_free(presto__tokenizer *tokenizer);

/** Memory of one thread. */
typedef struct presto__tokenizer_scratch presto__tokenizer_scratch;
/** `with_special`: texts get the ids around them. NULL: no memory. */
presto__tokenizer_scratch *presto__tokenizer_scratch_new(bool with_special);
void presto__tokenizer_scratch_free(presto__tokenizer_scratch *scratch);

/**
 * Append the ids (int32) of `text`; broken UTF-8 counts as presto__utf8_repair() has it.
 * PRESTO_ERR_MEMORY; PRESTO_ERR_LIMIT: a pattern, or the search for added tokens, takes too
 * long.
 */
presto_status presto__tokenizer_encode(const presto__tokenizer *tokenizer,
                                       presto__tokenizer_scratch *scratch, presto_span text,
                                       presto_buffer *ids, presto_error *err);

/* ---- tokenizer_json.c: the parts of reading a tokenizer.json or vocab.json ---- */

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
