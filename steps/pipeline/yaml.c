/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libyaml's events -> tree. Scalars are typed by a strict part of YAML 1.2's core schema: true and
 * false are truth values (yes, no, on and off are texts), numbers are decimal.
 */
#include "pipeline_internal.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <yaml.h>

#include "../../base/decimal_internal.h"

typedef struct builder {
    yaml_parser_t parser;
    presto_arena *arena;
    presto_error *err;
} builder;

static presto_status fail_at(builder *b, const yaml_event_t *event, const char *what) {
    return presto_fail(b->err, PRESTO_ERR_SYNTAX, PRESTO_NO_OFFSET, "line %zu: %s",
                       event->start_mark.line + 1, what);
}

static presto_status next_event(builder *b, yaml_event_t *event) {
    if (yaml_parser_parse(&b->parser, event))
        return PRESTO_OK;
    const yaml_parser_t *p = &b->parser;
    if (p->error == YAML_MEMORY_ERROR)
        return presto_fail_memory(b->err, 0);
    if (p->error == YAML_READER_ERROR)
        return presto_fail(b->err, PRESTO_ERR_SYNTAX, p->problem_offset, "line %zu: %s",
                           p->mark.line + 1, p->problem);
    return presto_fail(b->err, PRESTO_ERR_SYNTAX, PRESTO_NO_OFFSET, "line %zu: %s%s%s",
                       p->problem_mark.line + 1, p->problem, p->context != NULL ? " " : "",
                       p->context != NULL ? p->context : "");
}

/* Length of the UTF-8 character at `text` if it is printable, 0 if not. libyaml has checked the
 * encoding. */
static size_t printable(const unsigned char *text) {
    unsigned c = text[0];
    if (c < 0x80)
        return c >= 0x20 && c != 0x7f ? 1 : 0;
    if (c < 0xe0)
        return c == 0xc2 && text[1] < 0xa0 ? 0 : 2;
    if (c < 0xf0) {
        unsigned code = ((c & 0xfu) << 12) | ((text[1] & 0x3fu) << 6) | (text[2] & 0x3fu);
        bool special = (code >= 0xd800 && code <= 0xdfff) || code == 0xfeff || code >= 0xfffe ||
                       code == 0x2028 || code == 0x2029;
        return special ? 0 : 3;
    }
    return 4;
}

static presto_status scalar_text(builder *b, const yaml_event_t *event, const char **text_out) {
    size_t length = event->data.scalar.length;
    const unsigned char *value = event->data.scalar.value;
    for (size_t i = 0; i < length;) {
        size_t step = printable(value + i);
        if (step == 0)
            return fail_at(b, event, "a text must be one line of printable characters");
        i += step;
    }
    char *text = presto_arena_alloc(b->arena, length + 1, 1);
    if (text == NULL)
        return presto_fail_memory(b->err, length + 1);
    memcpy(text, value, length);
    text[length] = '\0';
    *text_out = text;
    return PRESTO_OK;
}

static presto_status refuse_properties(builder *b, const yaml_event_t *event,
                                       const yaml_char_t *anchor, const yaml_char_t *tag) {
    if (anchor != NULL)
        return fail_at(b, event, "anchors (&) and aliases (*) are not supported here");
    if (tag != NULL)
        return fail_at(b, event, "tags (!) are not supported here");
    return PRESTO_OK;
}

static presto_status check_event(builder *b, const yaml_event_t *event) {
    switch ((int)event->type) {
    case YAML_ALIAS_EVENT:
        return fail_at(b, event, "anchors (&) and aliases (*) are not supported here");
    case YAML_SCALAR_EVENT:
        return refuse_properties(b, event, event->data.scalar.anchor, event->data.scalar.tag);
    case YAML_SEQUENCE_START_EVENT:
        return refuse_properties(b, event, event->data.sequence_start.anchor,
                                 event->data.sequence_start.tag);
    case YAML_MAPPING_START_EVENT:
        return refuse_properties(b, event, event->data.mapping_start.anchor,
                                 event->data.mapping_start.tag);
    default:
        return fail_at(b, event, "unexpected end");
    }
}

static presto_status build_node(builder *b, const yaml_event_t *event, int depth,
                                presto__yaml_node **node_out);

static presto_status build_key(builder *b, const yaml_event_t *event,
                               const presto__yaml_node *mapping, presto__yaml_node **key_out) {
    if (event->type != YAML_SCALAR_EVENT)
        return fail_at(b, event, "a key must be a plain word");
    if (mapping->count >= PRESTO__YAML_MAX_KEYS)
        return fail_at(b, event, "more keys than any mapping here has");
    PRESTO_TRY(build_node(b, event, 0, key_out));
    for (const presto__yaml_node *entry = mapping->first; entry != NULL; entry = entry->next)
        if (strcmp(entry->key->text, (*key_out)->text) == 0)
            return presto_fail(b->err, PRESTO_ERR_SYNTAX, PRESTO_NO_OFFSET,
                               "line %zu: '%s' is given twice (first in line %zu)",
                               (*key_out)->line, (*key_out)->text, entry->key->line);
    return PRESTO_OK;
}

/* Parse one entry of a sequence or mapping. *done_out: the end event came instead. */
static presto_status build_entry(builder *b, presto__yaml_node *parent, int depth,
                                 presto__yaml_node **entry_out, bool *done_out) {
    yaml_event_t event;
    presto__yaml_node *key = NULL;
    PRESTO_TRY(next_event(b, &event));
    *done_out = event.type == YAML_SEQUENCE_END_EVENT || event.type == YAML_MAPPING_END_EVENT;
    presto_status status = PRESTO_OK;
    if (!*done_out && parent->kind == PRESTO__YAML_MAPPING) {
        status = build_key(b, &event, parent, &key);
        yaml_event_delete(&event);
        if (status < 0)
            return status;
        PRESTO_TRY(next_event(b, &event));
    }
    if (!*done_out)
        status = build_node(b, &event, depth, entry_out);
    yaml_event_delete(&event);
    if (status >= 0 && !*done_out)
        (*entry_out)->key = key;
    return status;
}

static presto_status build_children(builder *b, presto__yaml_node *parent, int depth) {
    presto__yaml_node **tail = &parent->first;
    for (;;) {
        presto__yaml_node *entry = NULL;
        bool done;
        PRESTO_TRY(build_entry(b, parent, depth + 1, &entry, &done));
        if (done)
            return PRESTO_OK;
        *tail = entry;
        tail = &entry->next;
        parent->count++;
    }
}

static presto_status build_node(builder *b, const yaml_event_t *event, int depth,
                                presto__yaml_node **node_out) {
    PRESTO_TRY(check_event(b, event));
    presto__yaml_node *node = presto_arena_alloc(b->arena, sizeof *node, _Alignof(max_align_t));
    if (node == NULL)
        return presto_fail_memory(b->err, sizeof *node);
    *node = (presto__yaml_node){.line = event->start_mark.line + 1};
    *node_out = node;
    if (event->type == YAML_SCALAR_EVENT) {
        node->kind = PRESTO__YAML_SCALAR;
        node->is_plain = event->data.scalar.style == YAML_PLAIN_SCALAR_STYLE;
        return scalar_text(b, event, &node->text);
    }
    if (depth >= PRESTO__YAML_MAX_DEPTH)
        return fail_at(b, event, "nested too deeply");
    node->kind =
        event->type == YAML_MAPPING_START_EVENT ? PRESTO__YAML_MAPPING : PRESTO__YAML_SEQUENCE;
    return build_children(b, node, depth);
}

static presto_status expect_event(builder *b, yaml_event_type_t type, const char *otherwise) {
    yaml_event_t event;
    PRESTO_TRY(next_event(b, &event));
    presto_status status = event.type == type ? PRESTO_OK : fail_at(b, &event, otherwise);
    yaml_event_delete(&event);
    return status;
}

static presto_status build_document(builder *b, presto__yaml_node **root_out) {
    PRESTO_TRY(expect_event(b, YAML_STREAM_START_EVENT, "no YAML"));
    PRESTO_TRY(expect_event(b, YAML_DOCUMENT_START_EVENT, "the file is empty"));
    yaml_event_t event;
    PRESTO_TRY(next_event(b, &event));
    presto_status status = build_node(b, &event, 0, root_out);
    yaml_event_delete(&event);
    if (status < 0)
        return status;
    PRESTO_TRY(expect_event(b, YAML_DOCUMENT_END_EVENT, "text after the document"));
    return expect_event(b, YAML_STREAM_END_EVENT, "a second document");
}

presto_status presto__yaml_parse(presto_span text, presto_arena *arena,
                                 presto__yaml_node **root_out, presto_error *err) {
    if (text.bytes > PRESTO__YAML_MAX_BYTES)
        return presto_fail(err, PRESTO_ERR_LIMIT, PRESTO_NO_OFFSET, "%zu bytes of YAML, limit %zu",
                           text.bytes, PRESTO__YAML_MAX_BYTES);
    builder b = {.arena = arena, .err = err};
    if (!yaml_parser_initialize(&b.parser))
        return presto_fail_memory(err, sizeof b.parser);
    static const unsigned char nothing[1];
    yaml_parser_set_input_string(&b.parser, text.bytes > 0 ? text.data : nothing, text.bytes);
    presto__yaml_node *root = NULL;
    presto_status status = build_document(&b, &root);
    yaml_parser_delete(&b.parser);
    if (status >= 0)
        *root_out = root;
    return status;
}

void presto__yaml_error(const presto__yaml_node *node, presto_error *err, const char *format, ...) {
    char message[PRESTO_ERROR_MESSAGE_BYTES];
    va_list args;
    va_start(args, format);
    vsnprintf(message, sizeof message, format, args);
    va_end(args);
    if (node->set != NULL)
        presto_error_set(err, PRESTO_ERR_SYNTAX, PRESTO_NO_OFFSET, "--set %.64s: %s", node->set,
                         message);
    else
        presto_error_set(err, PRESTO_ERR_SYNTAX, PRESTO_NO_OFFSET, "line %zu: %s", node->line,
                         message);
}

presto__yaml_node *presto__yaml_get(const presto__yaml_node *mapping, const char *key) {
    for (presto__yaml_node *entry = mapping->first; entry != NULL; entry = entry->next)
        if (strcmp(entry->key->text, key) == 0)
            return entry;
    return NULL;
}

static bool is_one_of(const char *text, const char *const *words) {
    for (; *words != NULL; words++)
        if (strcmp(text, *words) == 0)
            return true;
    return false;
}

static const char *const null_words[] = {"", "~", "null", "Null", "NULL", NULL};
static const char *const truth_words[] = {"true", "True", "TRUE", "false", "False", "FALSE", NULL};

bool presto__yaml_integer(const presto__yaml_node *node, int64_t *value_out) {
    if (node->kind != PRESTO__YAML_SCALAR || !node->is_plain)
        return false;
    const char *digits = node->text + (node->text[0] == '-' || node->text[0] == '+');
    if (digits[0] == '\0' || digits[strspn(digits, "0123456789")] != '\0')
        return false;
    errno = 0;
    long long value = strtoll(node->text, NULL, 10);
    if (errno != 0)
        return false;
    *value_out = value;
    return true;
}

/* [+-] digits [. digits] [e [+-] digits], with a digit on at least one side of the point. */
static bool looks_like_number(const char *text) {
    static const char digits[] = "0123456789";
    text += text[0] == '-' || text[0] == '+';
    size_t before = strspn(text, digits);
    text += before;
    size_t after = 0;
    if (text[0] == '.') {
        after = strspn(text + 1, digits);
        text += 1 + after;
    }
    if (before + after == 0)
        return false;
    if (text[0] == 'e' || text[0] == 'E') {
        text++;
        text += text[0] == '-' || text[0] == '+';
        size_t exponent = strspn(text, digits);
        if (exponent == 0)
            return false;
        text += exponent;
    }
    return text[0] == '\0';
}

bool presto__yaml_number(const presto__yaml_node *node, double *value_out) {
    if (node->kind != PRESTO__YAML_SCALAR || !node->is_plain || !looks_like_number(node->text))
        return false;
    double value = presto__decimal_parse(node->text, NULL);
    if (!isfinite(value))
        return false;
    *value_out = value;
    return true;
}

bool presto__yaml_is_text(const presto__yaml_node *node) {
    if (node->kind != PRESTO__YAML_SCALAR)
        return false;
    return !node->is_plain ||
           (!is_one_of(node->text, null_words) && !is_one_of(node->text, truth_words) &&
            !looks_like_number(node->text));
}

const char *presto__yaml_describe(const presto__yaml_node *node) {
    if (node->kind == PRESTO__YAML_SEQUENCE)
        return "a list";
    if (node->kind == PRESTO__YAML_MAPPING)
        return "a mapping";
    if (presto__yaml_is_text(node))
        return "a text";
    if (is_one_of(node->text, null_words))
        return "nothing";
    return is_one_of(node->text, truth_words) ? "true or false" : "a number";
}
