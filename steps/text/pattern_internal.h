/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The regular expressions that tokenizers split texts with: the part of Oniguruma's syntax (Ruby)
 * that they use, with the same matches. What is not known to match alike is refused by name.
 *
 *     a|b  (?:a)  (a)  (?i:a)  (?=a)  (?!a)
 *     a? a* a+ a{2} a{1,3} a{2,}   ?+ *+ ++ possessive, ?? *? +? lazy; on groups: ? only
 *     [ab-z\s]  [^a]  \s \S \d \D \p{Lu} \P{L} \r \n \t, escaped punctuation
 */
#ifndef PRESTO_STEPS_PATTERN_INTERNAL_H
#define PRESTO_STEPS_PATTERN_INTERNAL_H

#include "unicode_internal.h"

enum {
    PRESTO__PATTERN_MAX_CODE = 256,
    PRESTO__PATTERN_MAX_SETS = 128,
    PRESTO__PATTERN_MAX_RANGES = 512
};

typedef struct presto__char_range {
    uint32_t low, high;
} presto__char_range;

/* A set of characters. */
typedef struct presto__char_set {
    uint32_t ascii[4];    /* complete, with `is_negated` */
    uint32_t categories;  /* a bit a category */
    uint16_t first_range; /* of the pattern's; ascending, with gaps between them */
    uint16_t range_count;
    bool is_negated;
} presto__char_set;

typedef enum presto__pattern_op {
    PRESTO__OP_RUN,   /* least to most characters of a set */
    PRESTO__OP_SPLIT, /* go on; if that fails, at `to` */
    PRESTO__OP_JUMP,  /* to `to` */
    PRESTO__OP_AHEAD, /* what follows up to `to` must match here, or not; consumes nothing */
    PRESTO__OP_MATCH
} presto__pattern_op;

typedef enum presto__repeat {
    PRESTO__REPEAT_GREEDY,
    PRESTO__REPEAT_LAZY,
    PRESTO__REPEAT_POSSESSIVE
} presto__repeat;

/* Targets are behind their instruction: no loop, so that no more than MAX_CODE places wait. */
typedef struct presto__pattern_code {
    uint8_t op;
    uint8_t repeat;
    bool is_negated; /* AHEAD */
    uint16_t set;
    uint16_t to;
    uint32_t least, most;
} presto__pattern_code;

typedef struct presto__pattern {
    presto__pattern_code code[PRESTO__PATTERN_MAX_CODE];
    presto__char_set sets[PRESTO__PATTERN_MAX_SETS];
    presto__char_range ranges[PRESTO__PATTERN_MAX_RANGES];
    uint16_t code_count, set_count, range_count;
    const uint8_t *categories; /* borrowed */
} presto__pattern;

/**
 * Compile `text` (UTF-8, or any bytes). `categories` must live as long as the pattern.
 * Returns: PRESTO_OK; PRESTO_ERR_UNSUPPORTED with what is not supported.
 */
presto_status presto__pattern_compile(presto_span text, const uint8_t *categories,
                                      presto__pattern *pattern_out, presto_error *err);

/** A pattern that matches exactly `text`, valid UTF-8. PRESTO_ERR_UNSUPPORTED: it is too long. */
presto_status presto__pattern_literal(presto_span text, const uint8_t *categories,
                                      presto__pattern *pattern_out, presto_error *err);

/**
 * Find the first match that begins at or behind text.data + from. `text` is valid UTF-8.
 * *steps_io is the time that is left: PRESTO_ERR_LIMIT when it is used up.
 * Returns: PRESTO_OK; PRESTO_END: there is no further one.
 * Threads: any number with one pattern.
 */
presto_status presto__pattern_find(const presto__pattern *pattern, presto_span text, size_t from,
                                   presto_span *match_out, uint64_t *steps_io);

#endif
