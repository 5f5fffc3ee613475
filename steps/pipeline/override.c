/* SPDX-License-Identifier: Apache-2.0 */
/*
 * --set STEP.OPTION=VALUE: changes the tree of a pipeline before it is parsed. So a changed option
 * is checked, completed and recorded like one in the text. `source.type` puts another kind of
 * source in front of the same steps. `from` makes another source, which from.c puts into the parsed
 * pipeline; source.OPTION is then an option of that one. `seekable` adds a step.
 */
#include <stdio.h>
#include <stdlib.h>

#include "../pipelines_internal.h"
#include "pipeline_internal.h"

#define SOURCE "source"
#define FROM "from="
#define SEEKABLE PRESTO_SEEKABLE "="

/* The words of one argument; all are the arena's. */
typedef struct change {
    const char *argument;
    const char *owner; /* "source" or a step's name */
    size_t place;      /* 1-based, among the steps of that name; 0: not given */
    const char *option;
    const char *value;
} change;

static presto_status fail_change(const char *argument, const char *what, presto_error *err) {
    return presto_fail(err, PRESTO_ERR_SYNTAX, PRESTO_NO_OFFSET, "--set %.64s: %s", argument, what);
}

static presto_status copy_words(const char *argument, presto_arena *arena, char **copy_out,
                                presto_error *err) {
    size_t bytes = strlen(argument) + 1;
    char *copy = presto_arena_alloc(arena, bytes, 1);
    if (copy == NULL)
        return presto_fail_memory(err, bytes);
    memcpy(copy, argument, bytes);
    *copy_out = copy;
    return PRESTO_OK;
}

/* "resize-image[2]" -> its name, and *place_out = 2. */
static bool split_place(char *owner, size_t *place_out) {
    char *bracket = strchr(owner, '[');
    if (bracket == NULL)
        return true;
    size_t digits = strspn(bracket + 1, "0123456789");
    if (digits == 0 || digits > 4 || strcmp(bracket + 1 + digits, "]") != 0)
        return false;
    *bracket = '\0';
    *place_out = (size_t)strtoul(bracket + 1, NULL, 10);
    return *place_out > 0;
}

static presto_status parse_change(const char *argument, presto_arena *arena, change *change_out,
                                  presto_error *err) {
    static const char form[] = "must be STEP.OPTION=VALUE or source.OPTION=VALUE";
    char *words = NULL;
    PRESTO_TRY(copy_words(argument, arena, &words, err));
    *change_out = (change){.argument = argument, .owner = words};
    char *equals = strchr(words, '=');
    if (equals == NULL)
        return fail_change(argument, form, err);
    *equals = '\0';
    change_out->value = equals + 1;
    char *point = strrchr(words, '.'); /* names of options contain no point */
    if (point == NULL || point == words || point[1] == '\0')
        return fail_change(argument, form, err);
    *point = '\0';
    change_out->option = point + 1;
    return split_place(words, &change_out->place) ? PRESTO_OK : fail_change(argument, form, err);
}

static bool is_step(const presto__yaml_node *node, const char *name) {
    const presto__yaml_node *step =
        node->kind == PRESTO__YAML_MAPPING ? presto__yaml_get(node, "step") : NULL;
    return step != NULL && step->kind == PRESTO__YAML_SCALAR && strcmp(step->text, name) == 0;
}

static void list_step(const presto__yaml_node *node, char *names, size_t size) {
    const presto__yaml_node *step =
        node->kind == PRESTO__YAML_MAPPING ? presto__yaml_get(node, "step") : NULL;
    size_t used = strlen(names);
    if (step != NULL && step->kind == PRESTO__YAML_SCALAR)
        snprintf(names + used, size - used, "%s%.64s", used > 0 ? ", " : "", step->text);
}

static presto_status find_step(presto__yaml_node *root, const change *wanted,
                               presto__yaml_node **owner_out, presto_error *err) {
    presto__yaml_node *steps = presto__yaml_get(root, "steps");
    size_t seen = 0;
    char names[192] = ""; /* of all steps, as far as there is room */
    presto__yaml_node *found = NULL;
    for (presto__yaml_node *node = steps == NULL ? NULL : steps->first; node != NULL;
         node = node->next) {
        if (is_step(node, wanted->owner) && (++seen == wanted->place || wanted->place == 0))
            found = node;
        list_step(node, names, sizeof names);
    }
    if (found == NULL)
        return presto_fail(err, PRESTO_ERR_SYNTAX, PRESTO_NO_OFFSET,
                           "--set %.64s: the pipeline has no such step%s%s", wanted->argument,
                           names[0] != '\0' ? ", only " : "", names);
    if (seen > 1 && wanted->place == 0)
        return presto_fail(err, PRESTO_ERR_SYNTAX, PRESTO_NO_OFFSET,
                           "--set %.64s: the pipeline has %zu steps %s; say which: %s[1].%s=...",
                           wanted->argument, seen, wanted->owner, wanted->owner, wanted->option);
    *owner_out = found;
    return PRESTO_OK;
}

static void mark_set(presto__yaml_node *node, const char *argument) {
    node->set = argument;
    for (presto__yaml_node *child = node->first; child != NULL; child = child->next)
        mark_set(child, argument);
}

static presto_status parse_value(const change *wanted, presto_arena *arena,
                                 presto__yaml_node **value_out, presto_error *err) {
    presto_error inner;
    presto_status status =
        presto__yaml_parse(presto_span_of_text(wanted->value), arena, value_out, &inner);
    if (status == PRESTO_ERR_SYNTAX) /* *.jpg would be an alias */
        return fail_change(wanted->argument,
                           wanted->value[strcspn(wanted->value, "*&!%@`")] != '\0'
                               ? "the value cannot be read as YAML (put the text in quotes)"
                               : "the value cannot be read as YAML",
                           err);
    if (status < 0 && err != NULL)
        *err = inner;
    return status;
}

/* Does an option of the text mean the same in a source of another type? Those of files and of what
 * holds files do. */
static bool is_shared(const presto_source_type *before, const presto_source_type *after,
                      const char *option) {
    static const char *const shared[] = {"match", "feature", "max-bytes"};
    bool is_known = false, has_option = false;
    for (size_t i = 0; i < sizeof shared / sizeof shared[0]; i++)
        is_known = is_known || strcmp(shared[i], option) == 0;
    for (size_t i = 0; i < after->option_count; i++)
        has_option = has_option || strcmp(after->options[i].name, option) == 0;
    return is_known && has_option && before->yields == NULL && after->yields == NULL;
}

static const presto_source_type *type_of(const presto__yaml_node *type) {
    return type != NULL && type->kind == PRESTO__YAML_SCALAR ? presto__source_type_find(type->text)
                                                             : NULL;
}

/* The source gets another type: drop the options of the text that belong to the type it had. */
static void change_type(presto__yaml_node *source, const presto__yaml_node *to) {
    const presto_source_type *before = type_of(presto__yaml_get(source, "type"));
    const presto_source_type *after = type_of(to);
    if (before == NULL || after == NULL || before == after)
        return; /* parsing reports an unknown type */
    for (presto__yaml_node **at = &source->first; *at != NULL;) {
        const char *name = (*at)->key->text;
        if ((*at)->set != NULL || strcmp(name, "type") == 0 || is_shared(before, after, name)) {
            at = &(*at)->next;
        } else {
            *at = (*at)->next;
            source->count--;
        }
    }
}

presto_status presto__yaml_put(presto__yaml_node *mapping, const char *name,
                               presto__yaml_node *value, presto_arena *arena, presto_error *err) {
    presto__yaml_node *key = presto_arena_alloc(arena, sizeof *key, _Alignof(presto__yaml_node));
    if (key == NULL)
        return presto_fail_memory(err, sizeof *key);
    *key = (presto__yaml_node){
        .kind = PRESTO__YAML_SCALAR, .set = value->set, .text = name, .is_plain = true};
    value->key = key;
    presto__yaml_node **at = &mapping->first;
    while (*at != NULL && strcmp((*at)->key->text, name) != 0)
        at = &(*at)->next;
    mapping->count += *at == NULL;
    value->next = *at == NULL ? NULL : (*at)->next;
    *at = value;
    return PRESTO_OK;
}

static presto_status apply(presto__yaml_node *root, presto__yaml_node *source, const char *argument,
                           presto_arena *arena, presto_error *err) {
    change wanted;
    PRESTO_TRY(parse_change(argument, arena, &wanted, err));
    bool is_source = strcmp(wanted.owner, SOURCE) == 0,
         is_type = strcmp(wanted.option, "type") == 0;
    if (strcmp(wanted.option, "step") == 0 || strcmp(wanted.option, "yields") == 0 ||
        (is_type && !is_source))
        return fail_change(argument, "only options can be set", err);
    presto__yaml_node *owner = source;
    if (!is_source)
        PRESTO_TRY(find_step(root, &wanted, &owner, err));
    if (owner == NULL || owner->kind != PRESTO__YAML_MAPPING)
        return PRESTO_OK; /* parsing reports what is wrong with the text */
    presto__yaml_node *value = NULL;
    PRESTO_TRY(parse_value(&wanted, arena, &value, err));
    mark_set(value, argument);
    if (is_type)
        change_type(owner, value);
    return presto__yaml_put(owner, wanted.option, value, arena, err);
}

/* ---- from=REPRESENTATION ---- */

static bool is_from(const char *argument) {
    return strncmp(argument, FROM, sizeof FROM - 1) == 0;
}

/* The representation: the field, else the last change that is one. NULL: none, or the source
 * itself. */
static const char *find_from(const presto_pipeline_options *options) {
    const char *found = options->from;
    for (size_t i = 0; i < options->set_count && options->from == NULL; i++)
        if (is_from(options->set[i]))
            found = options->set[i] + sizeof FROM - 1;
    return found == NULL || strcmp(found, PRESTO_UNPROCESSED) == 0 ? NULL : found;
}

/* OWNER and the name, for messages as about --set. */
static presto_status name_change(const char *owner, const char *name, presto_arena *arena,
                                 char **argument_out, presto_error *err) {
    size_t owner_bytes = strlen(owner), bytes = strlen(name) + 1;
    char *argument = presto_arena_alloc(arena, owner_bytes + bytes, 1);
    if (argument == NULL)
        return presto_fail_memory(err, owner_bytes + bytes);
    memcpy(argument, owner, owner_bytes);
    memcpy(argument + owner_bytes, name, bytes);
    *argument_out = argument;
    return PRESTO_OK;
}

/* The name is a text, whatever it looks like. */
static presto_status set_feature(presto__yaml_node *source, const char *name, presto_arena *arena,
                                 presto_error *err) {
    static const char option[] = "source.feature=";
    presto__yaml_node *value =
        presto_arena_alloc(arena, sizeof *value, _Alignof(presto__yaml_node));
    char *argument = NULL;
    if (value == NULL)
        return presto_fail_memory(err, sizeof *value);
    PRESTO_TRY(name_change(option, name, arena, &argument, err));
    *value = (presto__yaml_node){
        .kind = PRESTO__YAML_SCALAR, .set = argument, .text = argument + sizeof option - 1};
    return presto__yaml_put(source, "feature", value, arena, err);
}

/* The mapping {KEY: VALUE, yields: REPRESENTATION}, from a change. */
static presto_status make_mapping(const presto__yaml_node *at, const char *key, const char *value,
                                  const char *yields, presto_arena *arena,
                                  presto__yaml_node **mapping_out, presto_error *err) {
    presto__yaml_node *nodes =
        presto_arena_alloc(arena, 3 * sizeof *nodes, _Alignof(presto__yaml_node));
    if (nodes == NULL)
        return presto_fail_memory(err, 3 * sizeof *nodes);
    nodes[0] = *at;
    nodes[0].kind = PRESTO__YAML_MAPPING;
    nodes[1] = nodes[2] = *at;
    nodes[1].kind = nodes[2].kind = PRESTO__YAML_SCALAR;
    nodes[1].is_plain = nodes[2].is_plain = true;
    nodes[1].text = value;
    nodes[2].text = yields;
    PRESTO_TRY(presto__yaml_put(&nodes[0], key, &nodes[1], arena, err));
    PRESTO_TRY(presto__yaml_put(&nodes[0], "yields", &nodes[2], arena, err));
    *mapping_out = &nodes[0];
    return PRESTO_OK;
}

static presto_status make_records(const char *from, size_t line, presto_arena *arena,
                                  presto__yaml_node **records_out, presto_error *err) {
    char *argument = NULL;
    PRESTO_TRY(name_change(FROM, from, arena, &argument, err));
    const presto__yaml_node at = {.line = line, .set = argument};
    return make_mapping(&at, "type", "tfrecord", argument + sizeof FROM - 1, arena, records_out,
                        err);
}

/* ---- --set seekable=true ---- */

static bool is_seekable(const char *argument) {
    return strncmp(argument, SEEKABLE, sizeof SEEKABLE - 1) == 0;
}

static presto_status add_index(presto__yaml_node *root, const char *argument, presto_arena *arena,
                               presto_error *err) {
    if (strcmp(argument, PRESTO_SET_SEEKABLE) != 0)
        return fail_change(argument, "only " PRESTO_SET_SEEKABLE " can be set", err);
    presto__yaml_node *steps = presto__yaml_get(root, "steps");
    if (steps == NULL || steps->kind != PRESTO__YAML_SEQUENCE)
        return PRESTO_OK; /* parsing reports what is wrong with the text */
    presto__yaml_node **at = NULL;
    size_t decoders = 0;
    for (presto__yaml_node **node = &steps->first; *node != NULL; node = &(*node)->next) {
        if (is_step(*node, "index-jpeg"))
            return PRESTO_OK;
        if (is_step(*node, "decode-image") && decoders++ == 0)
            at = node;
    }
    if (decoders == 0)
        return fail_change(argument, "the pipeline has no step decode-image", err);
    if (decoders > 1 || presto__yaml_get(*at, "reads") != NULL)
        return fail_change(argument,
                           "the pipeline decodes other images than that of the main feature: put "
                           "index-jpeg into its text",
                           err);
    presto__yaml_node *step = NULL;
    const presto__yaml_node from = {.line = (*at)->line, .set = argument};
    PRESTO_TRY(make_mapping(&from, "step", "index-jpeg", PRESTO_SEEKABLE, arena, &step, err));
    step->next = *at;
    *at = step;
    steps->count++;
    return PRESTO_OK;
}

presto_status presto__pipeline_override(presto__yaml_node *root,
                                        const presto_pipeline_options *options, presto_arena *arena,
                                        presto__yaml_node **records_out, presto_error *err) {
    *records_out = NULL;
    if (options == NULL || root->kind != PRESTO__YAML_MAPPING)
        return PRESTO_OK;
    presto__yaml_node *source = presto__yaml_get(root, SOURCE);
    const char *from = find_from(options);
    if (from != NULL) {
        PRESTO_TRY(make_records(from, root->line, arena, records_out, err));
        source = *records_out;
    }
    for (size_t i = 0; i < options->set_count; i++)
        if (is_seekable(options->set[i]))
            PRESTO_TRY(add_index(root, options->set[i], arena, err));
    for (size_t i = 0; i < options->set_count; i++)
        if (!is_from(options->set[i]) && !is_seekable(options->set[i]))
            PRESTO_TRY(apply(root, source, options->set[i], arena, err));
    if (options->feature != NULL && source != NULL && source->kind == PRESTO__YAML_MAPPING)
        PRESTO_TRY(set_feature(source, options->feature, arena, err));
    return PRESTO_OK;
}
