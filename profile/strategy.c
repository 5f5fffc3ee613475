/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads strategy.yaml: the recommended strategy for presto-write --strategy, with the expected
 * figures. Unknown keys and wrong values are errors that name the line: otherwise a typing error
 * could cost days of converting the wrong dataset.
 */
#include "profile_internal.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <yaml.h>

#include <presto/storage.h>

#include "../base/decimal_internal.h"
#include "../base/options_internal.h"

#define MOST_BYTES ((uint64_t)1 << 20)
#define DEPTH_MOST 16

typedef enum field_kind { FIELD_TEXT, FIELD_TEXTS, FIELD_WHOLE, FIELD_NUMBER } field_kind;

typedef struct field {
    const char *name;
    field_kind kind;
    bool required;
    size_t offset; /* in `parsed` */
    double most;   /* of FIELD_WHOLE, inclusive */
} field;

typedef struct text_list {
    char **texts;
    size_t count;
} text_list;

/* All whole numbers as read; presto_strategy_file converts them to its own types. */
typedef struct parsed {
    char *pipeline, *stored_as, *split, *codec; /* `split` is the name that 0.2.0 had for it */
    text_list set;
    uint64_t schema, shards, threads, batch_samples, seed;
    double cold, cached, stored, preparation;
} parsed;

static const field top_fields[] = {
    {"schema", FIELD_WHOLE, true, offsetof(parsed, schema), PRESTO__STRATEGY_SCHEMA},
    {"pipeline", FIELD_TEXT, true, offsetof(parsed, pipeline), 0},
    {"set", FIELD_TEXTS, false, offsetof(parsed, set), 0},
    {"stored", FIELD_TEXT, false, offsetof(parsed, stored_as), 0},
    {"split", FIELD_TEXT, false, offsetof(parsed, split), 0},
    {"codec", FIELD_TEXT, false, offsetof(parsed, codec), 0},
    {"shards", FIELD_WHOLE, false, offsetof(parsed, shards), 99999},
    {"threads", FIELD_WHOLE, true, offsetof(parsed, threads), 4096},
    {"batch_samples", FIELD_WHOLE, false, offsetof(parsed, batch_samples), 1e9},
    {"seed", FIELD_WHOLE, false, offsetof(parsed, seed), 0x1p64},
};
static const field expected_fields[] = {
    {"cold_samples_per_s", FIELD_NUMBER, false, offsetof(parsed, cold), 0},
    {"cached_samples_per_s", FIELD_NUMBER, false, offsetof(parsed, cached), 0},
    {"total_stored_bytes", FIELD_NUMBER, false, offsetof(parsed, stored), 0},
    {"total_preparation_s", FIELD_NUMBER, false, offsetof(parsed, preparation), 0},
};
#define COUNT_OF(array) (sizeof(array) / sizeof *(array))

typedef struct reader {
    yaml_document_t document;
    const char *file;
    parsed *into;
    bool seen[COUNT_OF(top_fields) > COUNT_OF(expected_fields) ? COUNT_OF(top_fields)
                                                               : COUNT_OF(expected_fields)];
    presto_error *err;
} reader;

/* As presto_fail(): macros, so that analyzers see the status. */
#define syntax_error_at(in, line, ...)                                                             \
    (set_syntax_error(in, line, __VA_ARGS__), presto_status_pass(PRESTO_ERR_SYNTAX))
#define syntax_error(in, node, ...) syntax_error_at(in, (node)->start_mark.line + 1, __VA_ARGS__)

static void set_syntax_error(const reader *in, size_t line, const char *format, ...)
    PRESTO_PRINTF(3, 4);

static void set_syntax_error(const reader *in, size_t line, const char *format, ...) {
    char text[PRESTO_ERROR_MESSAGE_BYTES];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    presto_error_set(in->err, PRESTO_ERR_SYNTAX, PRESTO_NO_OFFSET, "line %zu: %.*s", line, 460,
                     text);
    presto_error_set_file(in->err, in->file);
}

static presto_status read_whole(reader *in, const field *to, const yaml_node_t *node,
                                const char *text, uint64_t *value_out) {
    uint64_t value = 0;
    bool fits = text[0] != '\0';
    for (const char *c = text; *c != '\0' && fits; c++) {
        unsigned digit = (unsigned)(unsigned char)*c - '0';
        fits = digit <= 9 && value <= (UINT64_MAX - digit) / 10;
        value = fits ? value * 10 + digit : value;
    }
    /* As a double, the largest number of 64 bits is one too many. */
    uint64_t most = to->most >= 0x1p64 ? UINT64_MAX : (uint64_t)to->most;
    if (!fits || value > most)
        return syntax_error(in, node, "%s: '%.80s' is not a whole number of at most %" PRIu64,
                            to->name, text, most);
    *value_out = value;
    return PRESTO_OK;
}

static presto_status read_scalar(reader *in, const field *to, const yaml_node_t *node,
                                 const char **text_out) {
    if (node->type != YAML_SCALAR_NODE)
        return syntax_error(in, node, "%s takes a single value", to->name);
    *text_out = (const char *)node->data.scalar.value;
    if (strlen(*text_out) != node->data.scalar.length)
        return syntax_error(in, node, "%s holds a zero byte", to->name);
    return PRESTO_OK;
}

static presto_status read_text(reader *in, const field *to, const yaml_node_t *node,
                               char **copy_out) {
    const char *text = NULL;
    PRESTO_TRY(read_scalar(in, to, node, &text));
    if (text[0] == '\0')
        return syntax_error(in, node, "%s is empty", to->name);
    *copy_out = strdup(text);
    return *copy_out != NULL ? PRESTO_OK : presto_fail_memory(in->err, strlen(text) + 1);
}

static presto_status read_texts(reader *in, const field *to, const yaml_node_t *node,
                                text_list *list) {
    if (node->type != YAML_SEQUENCE_NODE)
        return syntax_error(in, node, "%s takes a list", to->name);
    const yaml_node_item_t *items = node->data.sequence.items.start;
    size_t count = (size_t)(node->data.sequence.items.top - items);
    list->texts = calloc(count + 1, sizeof *list->texts);
    if (list->texts == NULL)
        return presto_fail_memory(in->err, (count + 1) * sizeof *list->texts);
    for (; list->count < count; list->count++)
        PRESTO_TRY(read_text(in, to, yaml_document_get_node(&in->document, items[list->count]),
                             &list->texts[list->count]));
    return PRESTO_OK;
}

static void free_texts(char **texts, size_t count) {
    for (size_t i = 0; i < count; i++)
        free(texts[i]);
    free(texts);
}

static presto_status read_field(reader *in, const field *to, const yaml_node_t *node) {
    char *at = (char *)in->into + to->offset;
    if (to->kind == FIELD_TEXT) {
        char *copy = NULL;
        PRESTO_TRY(read_text(in, to, node, &copy));
        memcpy(at, &copy, sizeof copy);
        return PRESTO_OK;
    }
    if (to->kind == FIELD_TEXTS)
        return read_texts(in, to, node, &in->into->set);
    const char *text = NULL;
    PRESTO_TRY(read_scalar(in, to, node, &text));
    if (to->kind == FIELD_WHOLE) {
        uint64_t value = 0;
        PRESTO_TRY(read_whole(in, to, node, text, &value));
        memcpy(at, &value, sizeof value);
        return PRESTO_OK;
    }
    char *end;
    double value = presto__decimal_parse(text, &end);
    if (end == text || *end != '\0' || !isfinite(value) || value < 0)
        return syntax_error(in, node, "%s: '%.80s' is not a number of 0 or more", to->name, text);
    memcpy(at, &value, sizeof value);
    return PRESTO_OK;
}

static presto_status read_mapping(reader *in, const yaml_node_t *mapping, const field *fields,
                                  size_t field_count, yaml_node_t **expected_out) {
    memset(in->seen, 0, sizeof in->seen);
    for (yaml_node_pair_t *pair = mapping->data.mapping.pairs.start;
         pair < mapping->data.mapping.pairs.top; pair++) {
        yaml_node_t *key = yaml_document_get_node(&in->document, pair->key);
        yaml_node_t *value = yaml_document_get_node(&in->document, pair->value);
        if (key->type != YAML_SCALAR_NODE)
            return syntax_error(in, key, "a key must be a name");
        const char *name = (const char *)key->data.scalar.value;
        if (expected_out != NULL && strcmp(name, "expected") == 0 && *expected_out == NULL) {
            *expected_out = value;
            continue;
        }
        size_t i = 0;
        while (i < field_count && strcmp(fields[i].name, name) != 0)
            i++;
        if (i == field_count)
            return syntax_error(in, key, "unknown key '%.80s'", name);
        if (in->seen[i])
            return syntax_error(in, key, "%s stands there twice", name);
        in->seen[i] = true;
        PRESTO_TRY(read_field(in, &fields[i], value));
    }
    for (size_t i = 0; i < field_count; i++)
        if (fields[i].required && !in->seen[i])
            return syntax_error(in, mapping, "%s is missing", fields[i].name);
    return PRESTO_OK;
}

/* Codec and shards are given together, and only if something is stored. */
static presto_status check_parsed(reader *in, const yaml_node_t *root) {
    parsed *values = in->into;
    if (values->schema != PRESTO__STRATEGY_SCHEMA)
        return syntax_error(in, root, "schema %ju, this program knows %d",
                            (uintmax_t)values->schema, PRESTO__STRATEGY_SCHEMA);
    const char *stored = values->stored_as != NULL ? values->stored_as : values->split;
    if (stored == NULL)
        return syntax_error(in, root, "stored is missing");
    if (values->stored_as != NULL && values->split != NULL)
        return syntax_error(in, root, "stored and split are one thing: leave out split");
    if (strcmp(stored, PRESTO_UNPROCESSED) == 0) {
        if (values->codec != NULL || values->shards != 0)
            return syntax_error(in, root,
                                "nothing is stored with unprocessed: neither codec "
                                "nor shards apply");
        return PRESTO_OK;
    }
    if (values->codec == NULL)
        return syntax_error(in, root, "codec is missing");
    if (values->shards == 0)
        values->shards = values->threads > 0 ? values->threads : 1;
    presto_codec_spec spec;
    presto_status status = presto_codec_parse(values->codec, &spec, in->err);
    if (status != PRESTO_OK)
        presto_error_set_file(in->err, in->file);
    return status;
}

static presto_status read_document(reader *in) {
    yaml_node_t *root = yaml_document_get_root_node(&in->document);
    if (root == NULL)
        return syntax_error_at(in, 1, "the file is empty");
    if (root->type != YAML_MAPPING_NODE)
        return syntax_error(in, root, "a strategy is a mapping of keys to values");
    yaml_node_t *expected = NULL;
    PRESTO_TRY(read_mapping(in, root, top_fields, COUNT_OF(top_fields), &expected));
    if (expected != NULL && expected->type != YAML_MAPPING_NODE)
        return syntax_error(in, expected, "expected is a mapping of keys to values");
    if (expected != NULL)
        PRESTO_TRY(read_mapping(in, expected, expected_fields, COUNT_OF(expected_fields), NULL));
    return check_parsed(in, root);
}

static bool start_parser(presto_span yaml, yaml_parser_t *parser) {
    static const unsigned char nothing[1];
    if (!yaml_parser_initialize(parser))
        return false;
    yaml_parser_set_input_string(parser, yaml.bytes > 0 ? yaml.data : nothing, yaml.bytes);
    return true;
}

static bool is_start(yaml_token_type_t token) {
    return token == YAML_BLOCK_SEQUENCE_START_TOKEN || token == YAML_BLOCK_MAPPING_START_TOKEN ||
           token == YAML_FLOW_SEQUENCE_START_TOKEN || token == YAML_FLOW_MAPPING_START_TOKEN;
}

static bool is_end(yaml_token_type_t token) {
    return token == YAML_BLOCK_END_TOKEN || token == YAML_FLOW_SEQUENCE_END_TOKEN ||
           token == YAML_FLOW_MAPPING_END_TOKEN;
}

/* Each alias stands for a copy of what its anchor holds, however large that is. For each token,
 * libyaml looks at all lists and mappings that are open. What is no YAML otherwise,
 * yaml_parser_load tells. */
static presto_status refuse_bombs(presto_span yaml, reader *in) {
    yaml_parser_t parser;
    yaml_token_t token;
    presto_status status = PRESTO_OK;
    bool is_last = false;
    int depth = 0;
    if (!start_parser(yaml, &parser))
        return presto_fail_memory(in->err, sizeof parser);
    while (status == PRESTO_OK && !is_last && yaml_parser_scan(&parser, &token)) {
        if (token.type == YAML_ANCHOR_TOKEN || token.type == YAML_ALIAS_TOKEN)
            status = syntax_error_at(in, token.start_mark.line + 1,
                                     "anchors (&) and aliases (*) are not supported here");
        depth += is_start(token.type) - is_end(token.type);
        if (depth > DEPTH_MOST)
            status = syntax_error_at(in, token.start_mark.line + 1,
                                     "lists and mappings are more than %d deep", DEPTH_MOST);
        is_last = token.type == YAML_STREAM_END_TOKEN;
        yaml_token_delete(&token);
    }
    yaml_parser_delete(&parser);
    return status;
}

static presto_status parse_document(presto_span yaml, reader *in) {
    yaml_parser_t parser;
    PRESTO_TRY(refuse_bombs(yaml, in));
    if (!start_parser(yaml, &parser))
        return presto_fail_memory(in->err, sizeof parser);
    presto_status status = PRESTO_OK;
    if (!yaml_parser_load(&parser, &in->document))
        status = syntax_error_at(in, parser.problem_mark.line + 1, "%s",
                                 parser.problem != NULL ? parser.problem : "not YAML");
    yaml_parser_delete(&parser);
    return status;
}

presto_status presto__strategy_parse(presto_span yaml, const char *file, presto_strategy_file *out,
                                     presto_error *err) {
    parsed values = {
        .batch_samples = 1, .cold = NAN, .cached = NAN, .stored = NAN, .preparation = NAN};
    reader in = {.file = file, .into = &values, .err = err};
    PRESTO_TRY(parse_document(yaml, &in));
    presto_status status = read_document(&in);
    yaml_document_delete(&in.document);
    if (status != PRESTO_OK) {
        free(values.pipeline);
        free_texts(values.set.texts, values.set.count);
        free(values.stored_as);
        free(values.split);
        free(values.codec);
        return status;
    }
    *out = (presto_strategy_file){
        .pipeline = values.pipeline,
        .set = values.set.texts,
        .set_count = values.set.count,
        .stored = values.stored_as != NULL ? values.stored_as : values.split,
        .has_old_names = values.split != NULL,
        .codec = values.codec,
        .shards = (size_t)values.shards,
        .threads = (unsigned)values.threads,
        .batch_samples = (size_t)values.batch_samples,
        .seed = values.seed,
        .expected_samples_per_s = values.cold,
        .expected_cached_samples_per_s = values.cached,
        .expected_stored_bytes = values.stored,
        .expected_preparation_s = values.preparation,
    };
    return PRESTO_OK;
}

static void free_strategy(presto_strategy_file *strategy) {
    free(strategy->pipeline);
    free_texts(strategy->set, strategy->set_count);
    free(strategy->stored);
    free(strategy->codec);
}

presto_status presto_strategy_load_sized(const char *path, presto_strategy_file *out,
                                         presto_error *err) {
    presto_buffer text = {0};
    presto_strategy_file strategy = {0};
    PRESTO_TRY(presto__result_check(out, err));
    PRESTO_TRY(presto_file_read(path, MOST_BYTES, &text, err));
    presto_status status = presto__strategy_parse(presto_buffer_span(&text), path, &strategy, err);
    presto_buffer_done(&text);
    if (status == PRESTO_OK)
        presto__result_move(out, &strategy, sizeof strategy);
    free_strategy(&strategy);
    return status;
}

void presto_strategy_file_done_sized(presto_strategy_file *strategy) {
    presto_strategy_file taken;
    presto__result_take(&taken, sizeof taken, strategy);
    free_strategy(&taken);
}
