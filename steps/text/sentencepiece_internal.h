/* SPDX-License-Identifier: Apache-2.0 */
/*
 * SentencePiece models. The library is C++ and trusts its models: sentencepiece_check.c and
 * charsmap_check.c refuse what would make it read out of bounds, recurse without bound or take
 * quadratic time; sentencepiece.cc calls it and lets no exception out.
 */
#ifndef PRESTO_STEPS_SENTENCEPIECE_INTERNAL_H
#define PRESTO_STEPS_SENTENCEPIECE_INTERNAL_H

#include <presto/span.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The most tokens of a model of any kind; the largest public ones have a quarter of it. */
#define PRESTO__MODEL_MAX_TOKENS 1048576
/* The longest token: the library builds its trie by recursion, one level a byte. */
#define PRESTO__SENTENCEPIECE_MAX_TOKEN_BYTES 4096
/* At each byte of a text whose characters are mapped, the library compares up to the longest token.
 * If that is longer than this, tokens times text are limited. */
#define PRESTO__SENTENCEPIECE_USUAL_TOKEN_BYTES 128
#define PRESTO__SENTENCEPIECE_MAX_COMPARED_BYTES 2147483648
/* A text may become this many times as long when its characters are mapped. */
#define PRESTO__SENTENCEPIECE_MAX_GROWTH 100

typedef struct presto__sentencepiece_info {
    uint32_t token_count;
    uint32_t unknown_id; /* of the one token that stands for unknown characters */
    uint32_t
        most_compared; /* bytes of the longest token that is looked for at each byte of a text */
    uint32_t growth; /* of its map of characters; 1: it has none, or none that makes texts longer */
    bool has_byte_pieces;   /* unknown characters become bytes, not the unknown token */
    bool has_byte_names;    /* without byte pieces, yet a token is called as one of them */
    bool words_stand_alone; /* the ids of a text are those of its words, one after the other, where
                               words end at spaces, and the text has no U+2581 */
} presto__sentencepiece_info;

/**
 * Is `model` a SentencePiece model that the library can use safely? Checked are the protobuf
 * framing, number and lengths of the tokens, and the map of characters.
 *
 * Returns: PRESTO_OK; PRESTO_ERR_CORRUPT or _TRUNCATED with the byte; PRESTO_ERR_LIMIT;
 *          PRESTO_ERR_MEMORY.
 * Threads: any; no shared state.
 */
presto_status presto__sentencepiece_check(presto_span model, presto__sentencepiece_info *info_out,
                                          presto_error *err);

/**
 * The check of the map of characters alone: a double array (Darts-clone) and texts that end with
 * NUL. `offset` is where it starts in the file. *spaces_out: it may change what is beyond
 * a word: a space is mapped, alone or with others, or something is mapped to U+2581 or to half a
 * character. *growth_out: what it maps becomes at most so many times as long, spaces having three
 * bytes.
 */
presto_status presto__charsmap_check(presto_span map, uint64_t offset, bool *spaces_out,
                                     uint32_t *growth_out, presto_error *err);

/**
 * Append to `out` the model without its self-tests, and with tokens for the 256 bytes behind its
 * own if `add_bytes`; see sentencepiece.cc. `model` has passed the check.
 */
presto_status presto__sentencepiece_rewrite(presto_span model, bool add_bytes, presto_buffer *out,
                                            presto_error *err);

/** A loaded model; any number of threads may encode with it. */
typedef struct presto__sentencepiece presto__sentencepiece;

/**
 * Check and load a model; it is copied.
 * Owner: the caller; presto__sentencepiece_free(), for which NULL is fine.
 * Returns: as presto__sentencepiece_check(); PRESTO_ERR_CORRUPT with the library's reason.
 */
presto_status presto__sentencepiece_new(presto_span model, presto__sentencepiece **model_out,
                                        presto_error *err);
void presto__sentencepiece_free(presto__sentencepiece *model);

/** What the check has found. Borrowed from the model. */
const presto__sentencepiece_info *presto__sentencepiece_get_info(
    const presto__sentencepiece *model);

/**
 * Append the int32 ids of `text` as the library has them; see sentencepiece.cc for unknown
 * characters. Each byte that is not UTF-8 counts as U+FFFD.
 * Returns: PRESTO_OK; PRESTO_ERR_CORRUPT with the library's reason; PRESTO_ERR_LIMIT: it would take
 *          too long; PRESTO_ERR_MEMORY.
 */
presto_status presto__sentencepiece_encode_raw(const presto__sentencepiece *model, presto_span text,
                                               presto_buffer *ids, presto_error *err);

/** Memory of one thread, for one model. */
typedef struct presto__sentencepiece_scratch presto__sentencepiece_scratch;
/** NULL: no memory. */
presto__sentencepiece_scratch *presto__sentencepiece_scratch_new(void);
void presto__sentencepiece_scratch_free(presto__sentencepiece_scratch *scratch);

/**
 * Append the int32 ids of `text`, a run of unknown characters as the one unknown token of a model
 * without byte pieces. `scratch` NULL: by the library alone; the ids are the same.
 * Returns: as presto__sentencepiece_encode_raw().
 */
presto_status presto__sentencepiece_encode(const presto__sentencepiece *model,
                                           presto__sentencepiece_scratch *scratch, presto_span text,
                                           presto_buffer *ids, presto_error *err);

#ifdef __cplusplus
}
#endif

#endif
