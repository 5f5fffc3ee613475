/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Matching by backtracking. A run of one set is one instruction, and a place that waits for it to
 * give back characters is one entry of the stack.
 */
#include "pattern_internal.h"

/* Where to go on if what is tried fails: at `code`, from `at`; a run may still change `at` up to
 * `limit`. */
typedef struct waiting {
    const uint8_t *at;
    const uint8_t *limit;
    uint16_t code;
    bool is_lazy; /* takes one more; otherwise gives one back */
} waiting;

typedef struct matcher {
    const presto__pattern *pattern;
    const uint8_t *end;
    uint64_t *steps;
} matcher;

static bool has_ascii(const presto__char_set *set, uint32_t c) {
    return (set->ascii[c >> 5] >> (c & 31) & 1) != 0;
}

static bool has_wide(const presto__pattern *pattern, const presto__char_set *set, uint32_t c) {
    if ((set->categories >> pattern->categories[c] & 1) != 0)
        return !set->is_negated;
    const presto__char_range *ranges = pattern->ranges + set->first_range;
    size_t low = 0, high = set->range_count; /* the first range that ends at or behind c */
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (ranges[middle].high < c)
            low = middle + 1;
        else
            high = middle;
    }
    bool is_in = low < set->range_count && ranges[low].low <= c;
    return is_in != set->is_negated;
}

/* The end of a character of the set at `at`; NULL: there is none. */
static inline const uint8_t *take(const matcher *m, const presto__char_set *set,
                                  const uint8_t *at) {
    const uint8_t *next;
    if (at == m->end)
        return NULL;
    if (*at < 0x80)
        return has_ascii(set, *at) ? at + 1 : NULL;
    uint32_t c = presto__utf8_next(at, &next);
    return has_wide(m->pattern, set, c) ? next : NULL;
}

/* Up to `most` characters; *count_out of them. */
static const uint8_t *take_run(const matcher *m, const presto__char_set *set, const uint8_t *at,
                               uint32_t most, uint32_t *count_out) {
    uint32_t count = 0;
    const uint8_t *next;
    while (count < most && (next = take(m, set, at)) != NULL) {
        at = next;
        count++;
    }
    *count_out = count;
    *m->steps -= count < *m->steps ? count : *m->steps;
    return at;
}

/* Runs one RUN instruction at *at_io; false: it fails. May leave one entry at *wait_io. */
static bool run(const matcher *m, uint16_t i, const uint8_t **at_io, waiting **wait_io) {
    const presto__pattern_code *code = &m->pattern->code[i];
    const presto__char_set *set = &m->pattern->sets[code->set];
    uint32_t count;
    const uint8_t *least = take_run(m, set, *at_io, code->least, &count);
    *at_io = least;
    if (count < code->least)
        return false;
    if (code->most == code->least)
        return true;
    waiting wait = {.at = least, .limit = least, .code = (uint16_t)(i + 1)};
    if (code->repeat == PRESTO__REPEAT_LAZY) {
        wait.is_lazy = true;
        *(*wait_io)++ = wait;
        return true;
    }
    wait.at = take_run(m, set, least, code->most - code->least, &count);
    if (code->repeat == PRESTO__REPEAT_GREEDY && wait.at > least)
        *(*wait_io)++ = wait;
    *at_io = wait.at;
    return true;
}

/* The next try of the last entry, or of the one before it. False: there is none. */
static bool resume(const matcher *m, waiting *first, waiting **wait_io, const uint8_t **at_out,
                   uint16_t *code_out) {
    while (*wait_io > first) {
        waiting *wait = *wait_io - 1;
        *code_out = wait->code;
        if (wait->is_lazy) {
            const presto__pattern_code *code = &m->pattern->code[wait->code - 1];
            const uint8_t *next = take(m, &m->pattern->sets[code->set], wait->at);
            if (next != NULL) {
                *at_out = wait->at = next;
                return true;
            }
            (*wait_io)--;
            continue;
        }
        if (wait->at > wait->limit)
            wait->at = presto__utf8_previous(wait->at);
        *at_out = wait->at;
        if (wait->at == wait->limit)
            (*wait_io)--;
        return true;
    }
    return false;
}

/* Does code[i...] match at `at`, and up to where? */
static bool match(const matcher *m, uint16_t i, const uint8_t *at, const uint8_t **end_out) {
    waiting waits[PRESTO__PATTERN_MAX_CODE];
    waiting *wait = waits;
    const uint8_t *unused;
    while (*m->steps > 0) {
        const presto__pattern_code *code = &m->pattern->code[i];
        bool has_failed = false;
        --*m->steps;
        switch (code->op) {
        case PRESTO__OP_RUN:
            has_failed = !run(m, i, &at, &wait);
            i++;
            break;
        case PRESTO__OP_SPLIT:
            *wait++ = (waiting){.at = at, .limit = at, .code = code->to};
            i++;
            break;
        case PRESTO__OP_JUMP:
            i = code->to;
            break;
        case PRESTO__OP_AHEAD:
            has_failed = match(m, (uint16_t)(i + 1), at, &unused) == code->is_negated;
            i = code->to;
            break;
        default:
            *end_out = at;
            return true;
        }
        if (has_failed && !resume(m, waits, &wait, &at, &i))
            return false;
    }
    return false;
}

presto_status presto__pattern_find(const presto__pattern *pattern, presto_span text, size_t from,
                                   presto_span *match_out, uint64_t *steps_io) {
    matcher m = {pattern, text.data + text.bytes, steps_io};
    const uint8_t *next;
    if (text.bytes == 0)
        return PRESTO_END;
    for (const uint8_t *at = text.data + from; at < m.end; at = next) {
        const uint8_t *end = at;
        bool is_match = match(&m, 0, at, &end);
        if (*steps_io == 0)
            return PRESTO_ERR_LIMIT;
        if (is_match) {
            *match_out = presto_span_of(at, (size_t)(end - at));
            return PRESTO_OK;
        }
        presto__utf8_next(at, &next);
    }
    return PRESTO_END;
}
