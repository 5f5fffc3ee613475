/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Typed options, strict on purpose: a text where a number belongs, a number with a tail, a value
 * out of bounds or an unknown key is an error with its line, never a guess.
 */
#define _XOPEN_SOURCE 700 /* realpath */

#include "pipeline_internal.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <presto/text.h>

#include "../../base/paths_internal.h"

#define LIST_TEXT_BYTES 256

static void append_word(char *text, size_t bytes, const char *word) {
    size_t used = strlen(text);
    snprintf(text + used, bytes - used, "%s%s", used > 0 ? ", " : "", word);
}

static presto_status fail_unknown(const presto__options_request *request,
                                  const presto__yaml_node *key, presto_error *err) {
    const char *words[64] = {NULL};
    char list[LIST_TEXT_BYTES] = "";
    size_t used = 0;
    for (size_t i = 0; request->others[i] != NULL && used < 63; i++)
        words[used++] = request->others[i];
    for (size_t i = 0; i < request->count && used < 63; i++)
        words[used++] = request->table[i].name;
    for (size_t i = 0; i < used; i++)
        append_word(list, sizeof list, words[i]);
    const char *near = presto_text_nearest(key->text, words);
    return presto__yaml_fail(key, err, "%s has no option '%.64s'%s%s%s (known: %s)", request->owner,
                             key->text, near != NULL ? ", did you mean '" : "",
                             near != NULL ? near : "", near != NULL ? "'?" : "", list);
}

/* ---- one value ---- */

typedef struct value_place {
    const presto_option_type *type;
    const char *owner;
    const char *folder; /* of the text's file; NULL: the working folder */
    presto_arena *arena;
    presto_error *err;
} value_place;

static presto_status fail_kind(const value_place *place, const presto__yaml_node *node) {
    const char *hint = "";
    if (node->kind == PRESTO__YAML_SCALAR &&
        (place->type->kind == PRESTO_OPTION_TEXT || place->type->kind == PRESTO_OPTION_CHOICE ||
         place->type->kind == PRESTO_OPTION_FILE || place->type->kind == PRESTO_OPTION_TEXT_LIST))
        hint = node->text[0] != '\0' ? " (put it in quotes)" : "";
    return presto__yaml_fail(
        node, place->err, "%s: option '%s' needs %s, gets %s%s%s%s%s", place->owner,
        place->type->name, presto__option_kind_text(place->type->kind), presto__yaml_describe(node),
        node->kind == PRESTO__YAML_SCALAR && node->text[0] != '\0' ? " '" : "",
        node->kind == PRESTO__YAML_SCALAR ? node->text : "",
        node->kind == PRESTO__YAML_SCALAR && node->text[0] != '\0' ? "'" : "", hint);
}

static presto_status check_bounds(const value_place *place, const presto__yaml_node *node,
                                  double value) {
    const presto_option_type *type = place->type;
    char bounds[PRESTO__BOUNDS_BYTES];
    bool bounded = type->minimum != 0 || type->maximum != 0;
    if (!bounded || (value >= type->minimum && value <= type->maximum))
        return PRESTO_OK;
    return presto__yaml_fail(node, place->err, "%s: option '%s' is %s, must be %s%s%s",
                             place->owner, type->name, node->text,
                             presto__option_bounds(type, bounds), type->unit != NULL ? " " : "",
                             type->unit != NULL ? type->unit : "");
}

/* A whole number with a suffix of powers of 1024, or none. */
static bool parse_size(const char *text, int64_t *bytes_out) {
    static const struct {
        const char *suffix;
        unsigned shift;
    } units[] = {{"", 0}, {"B", 0}, {"KiB", 10}, {"MiB", 20}, {"GiB", 30}, {"TiB", 40}};
    size_t digits = strspn(text, "0123456789");
    if (digits == 0 || digits > 18)
        return false;
    int64_t value = strtoll(text, NULL, 10);
    for (size_t i = 0; i < sizeof units / sizeof units[0]; i++) {
        if (strcmp(text + digits, units[i].suffix) == 0) {
            if (value > INT64_MAX >> units[i].shift)
                return false;
            *bytes_out = (int64_t)((uint64_t)value << units[i].shift);
            return true;
        }
    }
    return false;
}

/* Seconds: a decimal number, with a unit or none. */
static bool parse_time(const presto__yaml_node *node, double *seconds_out) {
    static const struct {
        const char *suffix;
        double seconds;
    } units[] = {{"", 1}, {"s", 1}, {"ms", 1e-3}, {"m", 60}, {"h", 3600}};
    char number[32];
    if (node->kind != PRESTO__YAML_SCALAR)
        return false;
    size_t digits = strspn(node->text, "0123456789.");
    if (digits == 0 || digits >= sizeof number)
        return false;
    memcpy(number, node->text, digits);
    number[digits] = '\0';
    const presto__yaml_node plain = {.kind = PRESTO__YAML_SCALAR, .text = number, .is_plain = true};
    double value;
    for (size_t i = 0; i < sizeof units / sizeof units[0]; i++) {
        if (strcmp(node->text + digits, units[i].suffix) == 0 &&
            presto__yaml_number(&plain, &value)) {
            *seconds_out = value * units[i].seconds;
            return true;
        }
    }
    return false;
}

static presto_status parse_choice(const value_place *place, const presto__yaml_node *node,
                                  presto_option *value) {
    const char *const *choices = place->type->choices;
    char list[LIST_TEXT_BYTES] = "";
    if (node->kind != PRESTO__YAML_SCALAR)
        return fail_kind(place, node);
    for (int i = 0; choices[i] != NULL; i++) {
        if (strcmp(choices[i], node->text) == 0) {
            value->choice = i;
            value->text = choices[i];
            return PRESTO_OK;
        }
        append_word(list, sizeof list, choices[i]);
    }
    return presto__yaml_fail(node, place->err, "%s: option '%s' is '%s', must be one of: %s",
                             place->owner, place->type->name, node->text, list);
}

static presto_status parse_texts(const value_place *place, const presto__yaml_node *node,
                                 presto_option *value) {
    const char **texts =
        presto_arena_alloc(place->arena, (node->count + 1) * sizeof *texts, _Alignof(const char *));
    if (texts == NULL)
        return presto_fail_memory(place->err, (node->count + 1) * sizeof *texts);
    size_t used = 0;
    for (const presto__yaml_node *entry = node->first; entry != NULL; entry = entry->next) {
        double number;
        bool is_value =
            presto__yaml_is_text(entry) || ((place->type->kind == PRESTO_OPTION_VALUE_LIST ||
                                             place->type->kind == PRESTO_OPTION_NAMES) &&
                                            presto__yaml_number(entry, &number));
        if (!is_value)
            return fail_kind(place, entry);
        texts[used++] = entry->text;
    }
    texts[used] = NULL;
    value->texts = texts;
    value->text_count = used;
    return PRESTO_OK;
}

static presto_status parse_numbers(const value_place *place, const presto__yaml_node *node,
                                   presto_option *value) {
    double *numbers =
        presto_arena_alloc(place->arena, (node->count + 1) * sizeof *numbers, _Alignof(double));
    if (numbers == NULL)
        return presto_fail_memory(place->err, (node->count + 1) * sizeof *numbers);
    size_t used = 0;
    for (const presto__yaml_node *entry = node->first; entry != NULL; entry = entry->next) {
        if (!presto__yaml_number(entry, &numbers[used]))
            return fail_kind(place, entry);
        PRESTO_TRY(check_bounds(place, entry, numbers[used]));
        used++;
    }
    value->numbers = numbers;
    value->number_count = used;
    return PRESTO_OK;
}

/* Join folder and file in front of which `prefix_bytes` of the text stand that are no path. */
static presto_status join_path(const value_place *place, const char *folder, const char *text,
                               size_t prefix_bytes, presto_option *value) {
    size_t bytes = strlen(folder) + strlen(text) + 2;
    char *path = presto_arena_alloc(place->arena, bytes, 1);
    if (path == NULL)
        return presto_fail_memory(place->err, bytes);
    snprintf(path, bytes, "%.*s%s/%s", (int)prefix_bytes, text, folder, text + prefix_bytes);
    value->text = path;
    return PRESTO_OK;
}

/* Paths in a pipeline file are relative to its folder, those of --set to the working folder. Both
 * become absolute, because a dataset records them. */
static presto_status resolve_path(const value_place *place, const presto__yaml_node *node,
                                  size_t prefix_bytes, presto_option *value) {
    value->text = node->text;
    if (node->text[prefix_bytes] == '/' || presto__is_url(node->text + prefix_bytes))
        return PRESTO_OK;
    if (node->set == NULL)
        return place->folder == NULL
                   ? PRESTO_OK
                   : join_path(place, place->folder, node->text, prefix_bytes, value);
    char *working = realpath(".", NULL);
    if (working == NULL)
        return PRESTO_OK;
    presto_status status = join_path(place, working, node->text, prefix_bytes, value);
    free(working);
    return status;
}

static bool is_file(const char *path) {
    struct stat info;
    return stat(path, &info) == 0 && S_ISREG(info.st_mode);
}

/* A program with a slash in its name, and arguments that are files, are found beside the pipeline:
 * a dataset records where they are. Options and what is no file stay as they are. */
static presto_status find_files(const value_place *place, const presto__yaml_node *node,
                                presto_option *value) {
    const char **texts = (const char **)value->texts;
    size_t i = 0;
    for (const presto__yaml_node *entry = node->first; entry != NULL; entry = entry->next, i++) {
        presto_option found = {.text = entry->text};
        bool may_be_path = i == 0 ? strchr(entry->text, '/') != NULL : entry->text[0] != '-';
        if (may_be_path && entry->text[0] != '\0')
            PRESTO_TRY(resolve_path(place, entry, 0, &found));
        if (i == 0 || is_file(found.text))
            texts[i] = found.text;
    }
    return PRESTO_OK;
}

static presto_status parse_list(const value_place *place, const presto__yaml_node *node,
                                presto_option *value) {
    if (node->kind != PRESTO__YAML_SEQUENCE && presto__yaml_is_text(node) &&
        node->text[0] != '\0' && place->type->kind == PRESTO_OPTION_TEXT_LIST) {
        const char *quote = node->is_plain ? "" : "'"; /* [*.jpg] is no YAML */
        return presto__yaml_fail(
            node, place->err, "%s: option '%s' needs %s, gets a text '%s': write [%s%s%s]",
            place->owner, place->type->name, presto__option_kind_text(place->type->kind),
            node->text, quote, node->text, quote);
    }
    if (node->kind != PRESTO__YAML_SEQUENCE)
        return fail_kind(place, node);
    if (node->first == NULL)
        return presto__yaml_fail(node, place->err, "%s: option '%s' is an empty list", place->owner,
                                 place->type->name);
    if (place->type->kind == PRESTO_OPTION_FLOAT_LIST)
        return parse_numbers(place, node, value);
    PRESTO_TRY(parse_texts(place, node, value));
    return place->type->kind == PRESTO_OPTION_COMMAND ? find_files(place, node, value) : PRESTO_OK;
}

static presto_status parse_file(const value_place *place, const presto__yaml_node *node,
                                presto_option *value) {
    if (!presto__yaml_is_text(node) || node->text[0] == '\0')
        return fail_kind(place, node);
    return resolve_path(place, node, 0, value);
}

static presto_status parse_text(const value_place *place, const presto__yaml_node *node,
                                presto_option *value) {
    if (!presto__yaml_is_text(node))
        return fail_kind(place, node);
    value->text = node->text;
    for (size_t i = 0; place->type->file_prefixes != NULL && place->type->file_prefixes[i] != NULL;
         i++) {
        size_t bytes = strlen(place->type->file_prefixes[i]);
        if (strncmp(node->text, place->type->file_prefixes[i], bytes) == 0 &&
            node->text[bytes] != '\0')
            return resolve_path(place, node, bytes, value);
    }
    return PRESTO_OK;
}

static presto_status parse_value(const value_place *place, const presto__yaml_node *node,
                                 presto_option *value) {
    value->is_set = true;
    switch (place->type->kind) {
    case PRESTO_OPTION_INT:
        if (!presto__yaml_integer(node, &value->integer))
            return fail_kind(place, node);
        return check_bounds(place, node, (double)value->integer);
    case PRESTO_OPTION_FLOAT:
        if (!presto__yaml_number(node, &value->number))
            return fail_kind(place, node);
        return check_bounds(place, node, value->number);
    case PRESTO_OPTION_SIZE:
        if (node->kind != PRESTO__YAML_SCALAR || !parse_size(node->text, &value->integer))
            return fail_kind(place, node);
        return check_bounds(place, node, (double)value->integer);
    case PRESTO_OPTION_BOOL:
        if (node->kind != PRESTO__YAML_SCALAR || !node->is_plain ||
            (strcmp(node->text, "true") != 0 && strcmp(node->text, "false") != 0))
            return fail_kind(place, node);
        value->truth = node->text[0] == 't';
        return PRESTO_OK;
    case PRESTO_OPTION_TEXT:
        return parse_text(place, node, value);
    case PRESTO_OPTION_CHOICE:
        return parse_choice(place, node, value);
    case PRESTO_OPTION_TEXT_LIST:
    case PRESTO_OPTION_FLOAT_LIST:
    case PRESTO_OPTION_VALUE_LIST:
    case PRESTO_OPTION_COMMAND:
        return parse_list(place, node, value);
    case PRESTO_OPTION_TIME:
        if (!parse_time(node, &value->number))
            return fail_kind(place, node);
        return check_bounds(place, node, value->number);
    case PRESTO_OPTION_FILE:
        return parse_file(place, node, value);
    case PRESTO_OPTION_VALUE:
        if (!presto__yaml_is_text(node) && !presto__yaml_number(node, &value->number))
            return fail_kind(place, node);
        value->text = node->text;
        return PRESTO_OK;
    case PRESTO_OPTION_NAMES:
        return node->kind == PRESTO__YAML_SEQUENCE ? parse_list(place, node, value)
                                                   : parse_file(place, node, value);
    }
    return fail_kind(place, node);
}

/* A default is parsed like a YAML value; lists are split at commas. */
static presto_status parse_default(const value_place *place, presto_option *value) {
    const char *text = place->type->default_text;
    presto_option_kind kind = place->type->kind;
    bool is_numbers = kind == PRESTO_OPTION_FLOAT_LIST;
    presto__yaml_node node = {.kind = PRESTO__YAML_SCALAR, .text = text, .is_plain = true};
    if (kind != PRESTO_OPTION_TEXT_LIST && kind != PRESTO_OPTION_VALUE_LIST && !is_numbers) {
        node.is_plain = place->type->kind != PRESTO_OPTION_TEXT;
        return parse_value(place, &node, value);
    }
    presto__yaml_node list = {.kind = PRESTO__YAML_SEQUENCE};
    presto__yaml_node **tail = &list.first;
    while (text != NULL) {
        const char *comma = strchr(text, ',');
        size_t length = comma != NULL ? (size_t)(comma - text) : strlen(text);
        char *word = presto_arena_alloc(place->arena, length + 1, 1);
        presto__yaml_node *entry =
            presto_arena_alloc(place->arena, sizeof *entry, _Alignof(presto__yaml_node));
        if (word == NULL || entry == NULL)
            return presto_fail_memory(place->err, length + 1);
        memcpy(word, text, length);
        word[length] = '\0';
        *entry =
            (presto__yaml_node){.kind = PRESTO__YAML_SCALAR, .text = word, .is_plain = is_numbers};
        *tail = entry;
        tail = &entry->next;
        list.count++;
        text = comma != NULL ? comma + 1 : NULL;
    }
    return parse_value(place, &list, value);
}

static bool is_other(const char *key, const char *const *others) {
    for (size_t i = 0; others[i] != NULL; i++)
        if (strcmp(others[i], key) == 0)
            return true;
    return false;
}

static size_t find_option(const presto_option_type *table, size_t count, const char *name) {
    for (size_t i = 0; i < count; i++)
        if (strcmp(table[i].name, name) == 0)
            return i;
    return count;
}

static presto_status parse_option(const presto__options_request *request, size_t i,
                                  presto_arena *arena, presto_option *value, presto_error *err) {
    const presto_option_type *type = &request->table[i];
    value_place place = {type, request->owner, request->folder, arena, err};
    const presto__yaml_node *node = presto__yaml_get(request->mapping, type->name);
    if (node != NULL)
        return parse_value(&place, node, value);
    if (type->required)
        return presto__yaml_fail(request->mapping, err, "%s needs the option '%s'", request->owner,
                                 type->name);
    return type->default_text != NULL ? parse_default(&place, value) : PRESTO_OK;
}

presto_status presto__options_parse(const presto__options_request *request, presto_arena *arena,
                                    presto_option **values_out, presto_error *err) {
    size_t count = request->count;
    for (const presto__yaml_node *entry = request->mapping->first; entry != NULL;
         entry = entry->next)
        if (!is_other(entry->key->text, request->others) &&
            find_option(request->table, count, entry->key->text) == count)
            return fail_unknown(request, entry->key, err);
    size_t bytes = (count + 1) * sizeof(presto_option);
    presto_option *values = presto_arena_alloc(arena, bytes, _Alignof(presto_option));
    if (values == NULL)
        return presto_fail_memory(err, bytes);
    memset(values, 0, bytes);
    for (size_t i = 0; i < count; i++)
        PRESTO_TRY(parse_option(request, i, arena, &values[i], err));
    *values_out = values;
    return PRESTO_OK;
}

static json_t *option_to_json(const presto_option_type *type, const presto_option *value) {
    switch (type->kind) {
    case PRESTO_OPTION_INT:
    case PRESTO_OPTION_SIZE:
        return json_integer(value->integer);
    case PRESTO_OPTION_FLOAT:
    case PRESTO_OPTION_TIME:
        return json_real(value->number);
    case PRESTO_OPTION_BOOL:
        return json_boolean(value->truth);
    case PRESTO_OPTION_TEXT:
    case PRESTO_OPTION_VALUE:
    case PRESTO_OPTION_FILE:
    case PRESTO_OPTION_CHOICE:
        return json_string(value->text);
    case PRESTO_OPTION_TEXT_LIST:
    case PRESTO_OPTION_FLOAT_LIST:
    case PRESTO_OPTION_VALUE_LIST:
    case PRESTO_OPTION_COMMAND:
    case PRESTO_OPTION_NAMES:
        break;
    }
    if (type->kind == PRESTO_OPTION_NAMES && value->text != NULL)
        return json_string(value->text);
    bool is_texts = type->kind != PRESTO_OPTION_FLOAT_LIST;
    json_t *list = json_array();
    for (size_t i = 0; i < (is_texts ? value->text_count : value->number_count); i++) {
        json_t *entry = is_texts ? json_string(value->texts[i]) : json_real(value->numbers[i]);
        if (json_array_append_new(list, entry) != 0) {
            json_decref(list);
            return NULL;
        }
    }
    return list;
}

presto_status presto__options_to_json(const presto_option_type *table, size_t count,
                                      const presto_option *values, json_t *object,
                                      presto_error *err) {
    for (size_t i = 0; i < count; i++)
        if (values[i].is_set &&
            json_object_set_new(object, table[i].name, option_to_json(&table[i], &values[i])) != 0)
            return presto_fail_memory(err, 0);
    return PRESTO_OK;
}

presto_status presto__options_check_table(const presto_option_type *table, size_t count,
                                          presto_error *err) {
    presto_arena arena = {0};
    presto_status status = PRESTO_OK;
    for (size_t i = 0; i < count && status >= 0; i++) {
        const presto_option_type *type = &table[i];
        bool named = type->name != NULL && type->help != NULL;
        if (named)
            for (const char *c = type->name; *c != '\0'; c++)
                named = named &&
                        (islower((unsigned char)*c) || isdigit((unsigned char)*c) || *c == '-');
        if (!named || find_option(table, i, type->name) != i || type->minimum > type->maximum ||
            (type->kind == PRESTO_OPTION_CHOICE) != (type->choices != NULL) ||
            (type->required && type->default_text != NULL))
            status = presto_fail(err, PRESTO_ERR_ARGUMENT, PRESTO_NO_OFFSET,
                                 "option %zu of the table is not sound", i);
        else if (type->default_text != NULL) {
            presto_option value = {0};
            value_place place = {type, "table", NULL, &arena, err};
            status = parse_default(&place, &value);
        }
    }
    presto_arena_done(&arena);
    return status;
}
