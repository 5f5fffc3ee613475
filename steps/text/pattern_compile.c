/* SPDX-License-Identifier: Apache-2.0 */
/* Regular expressions to code; see pattern_internal.h for what is known. */
#include "pattern_internal.h"

#include <stdlib.h>

enum { MAX_DEPTH = 16, MAX_REPEAT = 100000 };

typedef struct compiler {
    presto__pattern *out;
    presto_span text;
    size_t at;
    unsigned depth;
    bool ignores_case;
    presto_error *err;
} compiler;

static presto_status fail(const compiler *c, const char *what) {
    return presto_fail(c->err, PRESTO_ERR_UNSUPPORTED, PRESTO_NO_OFFSET,
                       "the pattern '%.*s' is not supported: %s at byte %zu",
                       (int)(c->text.bytes < 120 ? c->text.bytes : 120), (const char *)c->text.data,
                       what, c->at);
}

static bool is_next(const compiler *c, const char *word) {
    size_t bytes = strlen(word);
    return c->text.bytes - c->at >= bytes && memcmp(c->text.data + c->at, word, bytes) == 0;
}

static bool take(compiler *c, const char *word) {
    if (!is_next(c, word))
        return false;
    c->at += strlen(word);
    return true;
}

static presto_status emit(compiler *c, presto__pattern_code code, uint16_t *at_out) {
    if (c->out->code_count == PRESTO__PATTERN_MAX_CODE)
        return fail(c, "too long a pattern");
    *at_out = c->out->code_count;
    c->out->code[c->out->code_count++] = code;
    return PRESTO_OK;
}

/* ---- sets of characters ---- */

static presto_status add_range(compiler *c, presto__char_set *set, uint32_t low, uint32_t high) {
    presto__pattern *out = c->out;
    for (uint32_t i = low; i <= high && i < 128; i++)
        set->ascii[i >> 5] |= UINT32_C(1) << (i & 31);
    if (high < 128)
        return PRESTO_OK;
    if (out->range_count == PRESTO__PATTERN_MAX_RANGES)
        return fail(c, "too many ranges");
    out->ranges[out->range_count++] = (presto__char_range){low, high};
    set->range_count++;
    return PRESTO_OK;
}

static int compare_ranges(const void *a, const void *b) {
    uint32_t low = ((const presto__char_range *)a)->low;
    uint32_t other = ((const presto__char_range *)b)->low;
    return low < other ? -1 : low > other;
}

/* Of the newest set: ascending, and what meets becomes one. */
static void sort_ranges(presto__pattern *out, presto__char_set *set) {
    presto__char_range *ranges = out->ranges + set->first_range;
    size_t count = 0;
    if (set->range_count > 1)
        qsort(ranges, set->range_count, sizeof *ranges, compare_ranges);
    for (size_t i = 0; i < set->range_count; i++) {
        if (count == 0 || ranges[i].low > ranges[count - 1].high + 1)
            ranges[count++] = ranges[i];
        else if (ranges[i].high > ranges[count - 1].high)
            ranges[count - 1].high = ranges[i].high;
    }
    set->range_count = (uint16_t)count;
    out->range_count = (uint16_t)(set->first_range + count);
}

static presto_status add_space(compiler *c, presto__char_set *set) {
    for (uint32_t first = 0; first < 0x3001; first++) {
        uint32_t end = first;
        while (presto__unicode_is_space(end))
            end++;
        if (end > first)
            PRESTO_TRY(add_range(c, set, first, end - 1));
        first = end;
    }
    return PRESTO_OK;
}

static void add_categories(compiler *c, presto__char_set *set, uint32_t categories) {
    set->categories |= categories;
    for (uint32_t i = 0; i < 128; i++)
        if ((categories >> c->out->categories[i] & 1) != 0)
            set->ascii[i >> 5] |= UINT32_C(1) << (i & 31);
}

/* "{Lu}" or "{L}" of \p. */
static presto_status take_property(compiler *c, uint32_t *categories_out) {
    static const char names[] = PRESTO__UNICODE_CATEGORY_NAMES;
    const uint8_t *at = c->text.data + c->at;
    const uint8_t *close = is_next(c, "{") ? memchr(at, '}', c->text.bytes - c->at) : NULL;
    size_t bytes = close != NULL ? (size_t)(close - at) - 1 : 0;
    uint32_t found = 0;
    for (unsigned i = 0; i < PRESTO__UNICODE_CATEGORY_COUNT && bytes >= 1 && bytes <= 2; i++)
        if (memcmp(names + (size_t)2 * i, at + 1, bytes) == 0)
            found |= UINT32_C(1) << i;
    if (found == 0)
        return fail(c, "a property other than a general category");
    c->at += bytes + 2;
    *categories_out = found;
    return PRESTO_OK;
}

/* All categories but these. Surrogates, which no text has, are in none. */
static uint32_t other_categories(uint32_t categories) {
    return ~categories & ((UINT32_C(1) << PRESTO__UNICODE_CATEGORY_COUNT) - 1);
}

/* One character, escaped or not. */
static presto_status take_character(compiler *c, uint32_t *character_out) {
    const uint8_t *at = c->text.data + c->at, *next;
    if (c->at == c->text.bytes)
        return fail(c, "an early end");
    if (*at != '\\') {
        *character_out = presto__utf8_next(at, &next);
        c->at += (size_t)(next - at);
        return PRESTO_OK;
    }
    c->at++;
    uint8_t escaped = c->at < c->text.bytes ? at[1] : 'z';
    bool is_word = escaped >= 0x80 || (escaped >= '0' && escaped <= '9') ||
                   (escaped >= 'a' && escaped <= 'z') || (escaped >= 'A' && escaped <= 'Z');
    if (is_word && escaped != 'r' && escaped != 'n' && escaped != 't')
        return fail(c, "an escape");
    *character_out = escaped == 'r'   ? '\r'
                     : escaped == 'n' ? '\n'
                     : escaped == 't' ? '\t'
                                      : escaped;
    c->at++;
    return PRESTO_OK;
}

/* "\s", "\d", "\p{..}" and their opposites, where they can be added to a set. *taken_out: was it
 * one? */
static presto_status take_named_set(compiler *c, presto__char_set *set, bool *taken_out) {
    static const uint32_t decimal = UINT32_C(1) << 8; /* Nd */
    uint32_t categories = 0;
    *taken_out = true;
    if (take(c, "\\s"))
        return add_space(c, set);
    if (take(c, "\\d") || take(c, "\\D")) {
        bool is_other = c->text.data[c->at - 1] == 'D';
        add_categories(c, set, is_other ? other_categories(decimal) : decimal);
        return PRESTO_OK;
    }
    if (take(c, "\\p") || take(c, "\\P")) {
        bool is_other = c->text.data[c->at - 1] == 'P';
        PRESTO_TRY(take_property(c, &categories));
        add_categories(c, set, is_other ? other_categories(categories) : categories);
        return PRESTO_OK;
    }
    *taken_out = false;
    return PRESTO_OK;
}

/* Characters that are equal without case: ASCII letters, and the two that fold to one. */
static presto_status add_character(compiler *c, presto__char_set *set, uint32_t character) {
    PRESTO_TRY(add_range(c, set, character, character));
    if (!c->ignores_case)
        return PRESTO_OK;
    uint32_t lower = character | 0x20;
    if (character >= 128)
        return fail(c, "letters beyond ASCII without case");
    if (lower < 'a' || lower > 'z')
        return PRESTO_OK;
    PRESTO_TRY(add_range(c, set, character ^ 0x20, character ^ 0x20));
    if (lower == 's')
        return add_range(c, set, 0x17f, 0x17f);
    return lower == 'k' ? add_range(c, set, 0x212a, 0x212a) : PRESTO_OK;
}

static presto_status new_set(compiler *c, presto__char_set **set_out, uint16_t *number_out) {
    presto__pattern *out = c->out;
    if (out->set_count == PRESTO__PATTERN_MAX_SETS)
        return fail(c, "too many sets");
    *number_out = out->set_count++;
    *set_out = &out->sets[*number_out];
    **set_out = (presto__char_set){.first_range = out->range_count};
    return PRESTO_OK;
}

static void negate(presto__char_set *set) {
    set->is_negated = true;
    for (size_t i = 0; i < 4; i++)
        set->ascii[i] = ~set->ascii[i];
}

static presto_status take_member(compiler *c, presto__char_set *set) {
    bool is_named = false;
    uint32_t low = 0, high = 0;
    PRESTO_TRY(take_named_set(c, set, &is_named));
    if (is_named)
        return is_next(c, "-") && !is_next(c, "-]") ? fail(c, "a range from a set") : PRESTO_OK;
    if (is_next(c, "[") || is_next(c, "&&"))
        return fail(c, "a set within a set");
    PRESTO_TRY(take_character(c, &low));
    if (!is_next(c, "-") || is_next(c, "-]"))
        return add_character(c, set, low);
    c->at++;
    if (is_next(c, "[") || c->ignores_case)
        return fail(c, "this range");
    PRESTO_TRY(take_character(c, &high));
    return high < low ? fail(c, "an empty range") : add_range(c, set, low, high);
}

/* Behind "[". */
static presto_status take_brackets(compiler *c, uint16_t *number_out) {
    presto__char_set *set = c->out->sets;
    PRESTO_TRY(new_set(c, &set, number_out));
    bool is_negated = take(c, "^");
    if (is_next(c, "]") || (is_negated && c->ignores_case))
        return fail(c, "this set");
    while (!take(c, "]"))
        PRESTO_TRY(take_member(c, set));
    if (is_negated)
        negate(set);
    return PRESTO_OK;
}

static presto_status take_any_set(compiler *c, uint16_t *number_out) {
    presto__char_set *set = c->out->sets;
    bool is_named = false;
    uint32_t character = 0;
    if (take(c, "["))
        return take_brackets(c, number_out);
    PRESTO_TRY(new_set(c, &set, number_out));
    if (take(c, "\\S")) {
        PRESTO_TRY(add_space(c, set));
        negate(set);
        return PRESTO_OK;
    }
    PRESTO_TRY(take_named_set(c, set, &is_named));
    if (is_named)
        return PRESTO_OK;
    if (c->at < c->text.bytes && strchr(".^$*+?{", c->text.data[c->at]) != NULL)
        return fail(c, "a special character");
    PRESTO_TRY(take_character(c, &character));
    return add_character(c, set, character);
}

/* One character or set. */
static presto_status take_set(compiler *c, uint16_t *number_out) {
    PRESTO_TRY(take_any_set(c, number_out));
    sort_ranges(c->out, &c->out->sets[*number_out]);
    return PRESTO_OK;
}

/* ---- repeats ---- */

static presto_status take_number(compiler *c, uint32_t *number_out) {
    uint32_t number = 0;
    size_t first = c->at;
    for (; c->at < c->text.bytes && c->text.data[c->at] >= '0' && c->text.data[c->at] <= '9';
         c->at++) {
        number = number * 10 + (uint32_t)(c->text.data[c->at] - '0');
        if (number > MAX_REPEAT)
            return fail(c, "too many repeats");
    }
    *number_out = number;
    return c->at > first ? PRESTO_OK : fail(c, "a brace");
}

/* Behind "{". Oniguruma reads what follows the brace in its own way. */
static presto_status take_counts(compiler *c, presto__pattern_code *code) {
    PRESTO_TRY(take_number(c, &code->least));
    code->most = code->least;
    if (take(c, ",")) {
        code->most = UINT32_MAX;
        if (!is_next(c, "}"))
            PRESTO_TRY(take_number(c, &code->most));
    }
    if (!take(c, "}") || code->most < code->least || is_next(c, "+") || is_next(c, "?") ||
        is_next(c, "*") || is_next(c, "{"))
        return fail(c, "this repeat");
    return PRESTO_OK;
}

static presto_status take_repeat(compiler *c, presto__pattern_code *code) {
    code->least = code->most = 1;
    if (take(c, "{"))
        return take_counts(c, code);
    if (take(c, "?"))
        code->least = 0;
    else if (take(c, "*") || take(c, "+")) {
        code->least = c->text.data[c->at - 1] == '+' ? 1 : 0;
        code->most = UINT32_MAX;
    } else {
        return PRESTO_OK;
    }
    if (take(c, "+"))
        code->repeat = PRESTO__REPEAT_POSSESSIVE;
    else if (take(c, "?"))
        code->repeat = PRESTO__REPEAT_LAZY;
    if (is_next(c, "?") || is_next(c, "+") || is_next(c, "*") || is_next(c, "{"))
        return fail(c, "a repeat of a repeat");
    return PRESTO_OK;
}

/* ---- sequences ---- */

static presto_status take_alternatives(compiler *c);

static presto_status take_ahead(compiler *c, bool is_negated) {
    uint16_t ahead = 0, end = 0;
    presto__pattern_code code = {.op = PRESTO__OP_AHEAD, .is_negated = is_negated};
    PRESTO_TRY(emit(c, code, &ahead));
    PRESTO_TRY(take_alternatives(c));
    PRESTO_TRY(emit(c, (presto__pattern_code){.op = PRESTO__OP_MATCH}, &end));
    c->out->code[ahead].to = (uint16_t)(end + 1);
    return PRESTO_OK;
}

/* Several characters may equal one without case: only words that have none of these are known. */
static presto_status check_folds(const compiler *c) {
    static const char pairs[][3] = {"ss", "st", "ff", "fi", "fl"};
    const uint8_t *close = memchr(c->text.data + c->at, ')', c->text.bytes - c->at);
    const uint8_t *end = close != NULL ? close : c->text.data + c->text.bytes;
    for (const uint8_t *at = c->text.data + c->at; at + 1 < end; at++)
        for (size_t i = 0; i < 5; i++)
            if ((at[0] | 0x20) == pairs[i][0] && (at[1] | 0x20) == pairs[i][1])
                return fail(c, "letters without case that may be one character");
    return PRESTO_OK;
}

/* Behind "(". */
static presto_status take_group(compiler *c) {
    uint16_t start = 0;
    bool ignored_case = c->ignores_case;
    if (++c->depth > MAX_DEPTH)
        return fail(c, "deep nesting");
    /* Becomes a SPLIT if the group may be left out. */
    PRESTO_TRY(emit(c, (presto__pattern_code){.op = PRESTO__OP_JUMP}, &start));
    c->out->code[start].to = (uint16_t)(start + 1);
    bool is_ahead = is_next(c, "?=") || is_next(c, "?!");
    if (is_ahead) {
        bool is_negated = is_next(c, "?!");
        c->at += 2;
        PRESTO_TRY(take_ahead(c, is_negated));
    } else {
        if (take(c, "?i:")) {
            c->ignores_case = true;
            PRESTO_TRY(check_folds(c));
        } else if (!take(c, "?:") && is_next(c, "?")) {
            return fail(c, "this kind of group");
        }
        PRESTO_TRY(take_alternatives(c));
    }
    if (!take(c, ")"))
        return fail(c, "a group without its end");
    c->ignores_case = ignored_case;
    c->depth--;
    if (!is_ahead && take(c, "?")) {
        c->out->code[start].op = PRESTO__OP_SPLIT;
        c->out->code[start].to = c->out->code_count;
    }
    if (is_next(c, "?") || is_next(c, "*") || is_next(c, "+") || is_next(c, "{"))
        return fail(c, "this repeat of a group");
    return PRESTO_OK;
}

static presto_status take_sequence(compiler *c) {
    while (c->at < c->text.bytes && !is_next(c, "|") && !is_next(c, ")")) {
        uint16_t unused;
        presto__pattern_code code = {.op = PRESTO__OP_RUN};
        if (take(c, "(")) {
            PRESTO_TRY(take_group(c));
            continue;
        }
        PRESTO_TRY(take_set(c, &code.set));
        PRESTO_TRY(take_repeat(c, &code));
        PRESTO_TRY(emit(c, code, &unused));
    }
    return PRESTO_OK;
}

/* SPLIT a JUMP SPLIT b JUMP ... : each jump is patched to the end. */
static presto_status take_alternatives(compiler *c) {
    uint16_t jumps[PRESTO__PATTERN_MAX_CODE];
    size_t jump_count = 0;
    for (;;) {
        uint16_t split = 0;
        PRESTO_TRY(emit(c, (presto__pattern_code){.op = PRESTO__OP_SPLIT}, &split));
        PRESTO_TRY(take_sequence(c));
        if (!take(c, "|")) {
            c->out->code[split].op = PRESTO__OP_JUMP;
            c->out->code[split].to = (uint16_t)(split + 1);
            break;
        }
        PRESTO_TRY(emit(c, (presto__pattern_code){.op = PRESTO__OP_JUMP}, &jumps[jump_count++]));
        c->out->code[split].to = c->out->code_count;
    }
    for (size_t i = 0; i < jump_count; i++)
        c->out->code[jumps[i]].to = c->out->code_count;
    return PRESTO_OK;
}

/* May code[0...] match without taking a character? Targets are behind, so the answers are found
 * from the end on. */
static bool may_be_empty(const presto__pattern *pattern) {
    bool empty[PRESTO__PATTERN_MAX_CODE + 1] = {false};
    for (size_t i = pattern->code_count; i-- > 0;) {
        const presto__pattern_code *code = &pattern->code[i];
        if (code->op == PRESTO__OP_RUN)
            empty[i] = code->least == 0 && empty[i + 1];
        else if (code->op == PRESTO__OP_SPLIT)
            empty[i] = empty[i + 1] || empty[code->to];
        else
            empty[i] = code->op == PRESTO__OP_MATCH || empty[code->to];
    }
    return empty[0];
}

presto_status presto__pattern_compile(presto_span text, const uint8_t *categories,
                                      presto__pattern *pattern_out, presto_error *err) {
    uint16_t end;
    compiler c = {.out = pattern_out, .text = text, .err = err};
    *pattern_out = (presto__pattern){.categories = categories};
    if (presto__utf8_valid_bytes(text) < text.bytes)
        return fail(&c, "no UTF-8");
    PRESTO_TRY(take_alternatives(&c));
    if (c.at < text.bytes)
        return fail(&c, "an end of a group");
    PRESTO_TRY(emit(&c, (presto__pattern_code){.op = PRESTO__OP_MATCH}, &end));
    return may_be_empty(pattern_out) ? fail(&c, "a match of nothing") : PRESTO_OK;
}

presto_status presto__pattern_literal(presto_span text, const uint8_t *categories,
                                      presto__pattern *pattern_out, presto_error *err) {
    compiler c = {.out = pattern_out, .text = text, .err = err};
    *pattern_out = (presto__pattern){.categories = categories};
    const uint8_t *at = text.data, *end = at + text.bytes;
    uint16_t unused;
    while (at < end) {
        presto__char_set *set;
        presto__pattern_code code = {.op = PRESTO__OP_RUN, .least = 1, .most = 1};
        uint32_t character = presto__utf8_next(at, &at);
        PRESTO_TRY(new_set(&c, &set, &code.set));
        PRESTO_TRY(add_range(&c, set, character, character));
        PRESTO_TRY(emit(&c, code, &unused));
    }
    if (text.bytes == 0)
        return fail(&c, "an empty text");
    return emit(&c, (presto__pattern_code){.op = PRESTO__OP_MATCH}, &unused);
}
