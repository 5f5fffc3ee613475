/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pipelines from YAML. Everything that can be wrong without data is found here, with file and line:
 * keys, types, names, and a step whose input does not fit what the step before it gives.
 */
#include "pipeline_internal.h"

#include <stdio.h>
#include <stdlib.h>

#include <presto/file.h>

#include "options_internal.h"

#define LIST_TEXT_BYTES 320

typedef struct parse_state {
    presto_pipeline *pipeline;
    presto_error *err;
} parse_state;

static presto_status fail_line(parse_state *p, size_t line, const char *what, const char *value) {
    return presto_fail(p->err, PRESTO_ERR_SYNTAX, PRESTO_NO_OFFSET, "line %zu: %s%s%s%s", line,
                       what, value != NULL ? " '" : "", value != NULL ? value : "",
                       value != NULL ? "'" : "");
}

static presto_status prefix_line(parse_state *p, size_t line, const char *owner,
                                 presto_status status) {
    char text[128];
    if (owner != NULL)
        presto__error_prefix(p->err, owner);
    snprintf(text, sizeof text, "line %zu", line);
    presto__error_prefix(p->err, text);
    if (p->err != NULL)
        p->err->status = status;
    return status;
}

/* Names go into file names and comma-separated lists of the command line. */
static bool is_name(const char *text) {
    static const char allowed[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";
    size_t length = strspn(text, allowed);
    return length > 0 && text[length] == '\0' && text[0] != '.' && text[0] != '-';
}

static presto_status parse_name(parse_state *p, const presto__yaml_node *node, const char *what,
                                const char **name_out) {
    if (node->kind != PRESTO__YAML_SCALAR)
        return fail_line(p, node->line, what, NULL);
    if (!is_name(node->text))
        return presto_fail(p->err, PRESTO_ERR_SYNTAX, PRESTO_NO_OFFSET,
                           "line %zu: %s: '%s' has other characters than letters, digits, '.', "
                           "'_' and '-', or starts with '.' or '-'",
                           node->line, what, node->text);
    *name_out = node->text;
    return PRESTO_OK;
}

/* "unknown X 'y', did you mean 'z'? (known: ...)" */
static presto_status fail_unknown(parse_state *p, size_t line, const char *what, const char *got,
                                  const char *const *known) {
    char list[LIST_TEXT_BYTES] = "";
    for (size_t i = 0; known[i] != NULL; i++) {
        size_t used = strlen(list);
        snprintf(list + used, sizeof list - used, "%s%s", i > 0 ? ", " : "", known[i]);
    }
    const char *near = presto__nearest(got, known);
    return presto_fail(p->err, PRESTO_ERR_SYNTAX, PRESTO_NO_OFFSET,
                       "line %zu: unknown %s '%.64s'%s%s%s (known: %s)", line, what, got,
                       near != NULL ? ", did you mean '" : "", near != NULL ? near : "",
                       near != NULL ? "'?" : "", list);
}

static presto_status parse_source(parse_state *p, const presto__yaml_node *node) {
    static const char *const others[] = {"type", NULL};
    if (node->kind != PRESTO__YAML_MAPPING)
        return fail_line(p, node->line, "source must be a mapping such as {type: files}", NULL);
    const presto__yaml_node *type = presto__yaml_get(node, "type");
    if (type == NULL || type->kind != PRESTO__YAML_SCALAR)
        return fail_line(p, node->line, "source needs a type, e.g. 'type: files'", NULL);
    p->pipeline->source = presto_source_type_find(type->text);
    if (p->pipeline->source == NULL) {
        const char *known[16] = {NULL};
        for (size_t i = 0; i < 15 && presto_source_type_at(i) != NULL; i++)
            known[i] = presto_source_type_at(i)->name;
        return fail_unknown(p, type->line, "source type", type->text, known);
    }
    const presto_source_type *source = p->pipeline->source;
    char owner[80];
    snprintf(owner, sizeof owner, "source %s", source->name);
    presto_option *options = NULL;
    presto__options_request request = {source->options, source->option_count, node, owner, others};
    PRESTO_TRY(presto__options_parse(&request, &p->pipeline->arena, &options, p->err));
    p->pipeline->source_options = options;
    if (source->check != NULL) {
        presto_status status = source->check(options, p->err);
        if (status < 0)
            return prefix_line(p, node->line, owner, status);
    }
    return PRESTO_OK;
}

static presto_status find_step(parse_state *p, const presto__yaml_node *node,
                               const presto_step_type **type_out) {
    if (node->kind != PRESTO__YAML_MAPPING)
        return fail_line(p, node->line, "a step must be a mapping such as {step: read-file}", NULL);
    const presto__yaml_node *name = presto__yaml_get(node, "step");
    if (name == NULL || name->kind != PRESTO__YAML_SCALAR)
        return fail_line(p, node->line, "a step needs its name, e.g. 'step: read-file'", NULL);
    *type_out = presto_step_find(name->text);
    if (*type_out != NULL)
        return PRESTO_OK;
    const char *known[64] = {NULL};
    for (size_t i = 0; i < 63 && presto_step_at(i) != NULL; i++)
        known[i] = presto_step_at(i)->name;
    return fail_unknown(p, name->line, "step", name->text, known);
}

static presto_status parse_yields(parse_state *p, const presto__yaml_node *node,
                                  presto__pipeline_step *step) {
    presto_pipeline *pipeline = p->pipeline;
    PRESTO_TRY(parse_name(p, node, "yields needs a name", &step->yields));
    if (presto_pipeline_representation_find(pipeline, step->yields) != SIZE_MAX)
        return fail_line(p, node->line, "a second representation called", step->yields);
    pipeline->representations[pipeline->representation_count++] = pipeline->step_count;
    return PRESTO_OK;
}

/* Parses, creates and checks one step; *spec goes from its input to its output. */
static presto_status parse_step(parse_state *p, const presto__yaml_node *node,
                                presto_tensor_spec *spec) {
    static const char *const others[] = {"step", "yields", NULL};
    presto_pipeline *pipeline = p->pipeline;
    presto__pipeline_step *step = &pipeline->steps[pipeline->step_count];
    *step = (presto__pipeline_step){.line = node->line};
    PRESTO_TRY(find_step(p, node, &step->type));
    const presto_step_type *type = step->type;
    char owner[80];
    snprintf(owner, sizeof owner, "step %s", type->name);
    presto_option *options = NULL;
    presto__options_request request = {type->options, type->option_count, node, owner, others};
    PRESTO_TRY(presto__options_parse(&request, &pipeline->arena, &options, p->err));
    step->options = options;
    const presto__yaml_node *yields = presto__yaml_get(node, "yields");
    if (yields != NULL)
        PRESTO_TRY(parse_yields(p, yields, step));
    presto_status status = PRESTO_OK;
    if (type->create != NULL && type->unsupported == NULL)
        status = type->create(options, &step->state, p->err);
    if (status < 0)
        return status == PRESTO_ERR_MEMORY ? status
                                           : prefix_line(p, node->line, owner, PRESTO_ERR_SYNTAX);
    pipeline->step_count++; /* from here on presto_pipeline_free destroys the state */
    presto_tensor_spec out = {PRESTO_DTYPE_UNKNOWN, -1, {0}};
    if (type->unsupported == NULL)
        status = type->infer(step->state, spec, &out, p->err);
    if (status < 0)
        return prefix_line(p, node->line, owner, PRESTO_ERR_SYNTAX);
    *spec = out;
    return PRESTO_OK;
}

static presto_status parse_steps(parse_state *p, const presto__yaml_node *node) {
    presto_pipeline *pipeline = p->pipeline;
    if (node->kind != PRESTO__YAML_SEQUENCE || node->count == 0)
        return fail_line(p, node->line, "steps must be a list with at least one step", NULL);
    if (node->count > PRESTO__PIPELINE_MAX_STEPS)
        return fail_line(p, node->line, "more than 1000 steps", NULL);
    size_t steps_bytes = node->count * sizeof *pipeline->steps;
    size_t names_bytes = (node->count + 1) * sizeof *pipeline->representations;
    pipeline->steps =
        presto_arena_alloc(&pipeline->arena, steps_bytes, _Alignof(presto__pipeline_step));
    pipeline->representations = presto_arena_alloc(&pipeline->arena, names_bytes, _Alignof(size_t));
    if (pipeline->steps == NULL || pipeline->representations == NULL)
        return presto_fail_memory(p->err, steps_bytes + names_bytes);
    pipeline->representations[0] = 0;
    pipeline->representation_count = 1;
    presto_tensor_spec spec = pipeline->source->output;
    for (const presto__yaml_node *entry = node->first; entry != NULL; entry = entry->next)
        PRESTO_TRY(parse_step(p, entry, &spec));
    return PRESTO_OK;
}

static presto_status parse_root(parse_state *p, const presto__yaml_node *root) {
    static const char *const known[] = {"name", "source", "steps", NULL};
    const presto__yaml_node *parts[3] = {NULL};
    if (root->kind != PRESTO__YAML_MAPPING)
        return fail_line(p, root->line, "a pipeline must be a mapping of name, source and steps",
                         NULL);
    for (const presto__yaml_node *entry = root->first; entry != NULL; entry = entry->next) {
        size_t i = 0;
        while (known[i] != NULL && strcmp(known[i], entry->key->text) != 0)
            i++;
        if (known[i] == NULL)
            return fail_unknown(p, entry->key->line, "key", entry->key->text, known);
        parts[i] = entry;
    }
    for (size_t i = 0; known[i] != NULL; i++)
        if (parts[i] == NULL)
            return fail_line(p, root->line, "the pipeline lacks", known[i]);
    PRESTO_TRY(parse_name(p, parts[0], "name needs a name", &p->pipeline->name));
    PRESTO_TRY(parse_source(p, parts[1]));
    return parse_steps(p, parts[2]);
}

static presto_status parse_text(parse_state *p, presto_span yaml, const char *file) {
    presto_pipeline *pipeline = p->pipeline;
    size_t bytes = strlen(file) + 1;
    char *file_copy = presto_arena_alloc(&pipeline->arena, bytes, 1);
    if (file_copy == NULL)
        return presto_fail_memory(p->err, bytes);
    memcpy(file_copy, file, bytes);
    pipeline->file = file_copy;
    presto__yaml_node *root = NULL;
    PRESTO_TRY(presto__yaml_parse(yaml, &pipeline->arena, &root, p->err));
    PRESTO_TRY(parse_root(p, root));
    pipeline->json = presto__pipeline_to_json(pipeline);
    return pipeline->json != NULL ? PRESTO_OK : presto_fail_memory(p->err, 0);
}

presto_status presto_pipeline_parse(presto_span yaml, const char *file,
                                    presto_pipeline **pipeline_out, presto_error *err) {
    presto_pipeline *pipeline = calloc(1, sizeof *pipeline);
    if (pipeline == NULL)
        return presto_fail_memory(err, sizeof *pipeline);
    parse_state p = {pipeline, err};
    presto_status status = parse_text(&p, yaml, file);
    if (status < 0) {
        presto_error_set_file(err, file);
        presto_pipeline_free(pipeline);
        return status;
    }
    *pipeline_out = pipeline;
    return PRESTO_OK;
}

void presto_pipeline_free(presto_pipeline *pipeline) {
    if (pipeline == NULL)
        return;
    for (size_t i = 0; i < pipeline->step_count; i++)
        if (pipeline->steps[i].type->destroy != NULL)
            pipeline->steps[i].type->destroy(pipeline->steps[i].state);
    free(pipeline->json);
    presto_arena_done(&pipeline->arena);
    free(pipeline);
}

/* ---- loading ---- */

static bool is_path(const char *text) {
    size_t length = strlen(text);
    return strchr(text, '/') != NULL || (length > 5 && strcmp(text + length - 5, ".yaml") == 0) ||
           (length > 4 && strcmp(text + length - 4, ".yml") == 0);
}

static presto_status load_file(const char *path, presto_pipeline **pipeline_out,
                               presto_error *err) {
    presto_buffer text = {0};
    presto_status status = presto_file_read(path, PRESTO__YAML_MAX_BYTES, &text, err);
    if (status == PRESTO_OK)
        status = presto_pipeline_parse(presto_buffer_span(&text), path, pipeline_out, err);
    presto_buffer_done(&text);
    return status;
}

presto_status presto_pipeline_load(const char *name_or_path, presto_pipeline **pipeline_out,
                                   presto_error *err) {
    if (is_path(name_or_path))
        return load_file(name_or_path, pipeline_out, err);
    char list[LIST_TEXT_BYTES] = "";
    for (const presto__builtin *builtin = presto__builtins; builtin->name != NULL; builtin++) {
        if (strcmp(builtin->name, name_or_path) == 0) {
            char file[80];
            snprintf(file, sizeof file, "pipeline %s", builtin->name);
            return presto_pipeline_parse(presto_span_of(builtin->text, builtin->bytes), file,
                                         pipeline_out, err);
        }
        size_t used = strlen(list);
        snprintf(list + used, sizeof list - used, "%s%s", used > 0 ? ", " : "", builtin->name);
    }
    return presto_fail(err, PRESTO_ERR_NOT_FOUND, PRESTO_NO_OFFSET,
                       "no pipeline is called '%.64s' (built in: %s; a path has a '/' or ends in "
                       ".yaml)",
                       name_or_path, list);
}

const char *presto_pipeline_builtin_at(size_t i) {
    for (const presto__builtin *builtin = presto__builtins; builtin->name != NULL; builtin++)
        if (i-- == 0)
            return builtin->name;
    return NULL;
}

/* ---- what it holds ---- */

const char *presto_pipeline_name(const presto_pipeline *pipeline) {
    return pipeline->name;
}

const char *presto_pipeline_json(const presto_pipeline *pipeline) {
    return pipeline->json;
}

const presto_source_type *presto_pipeline_source(const presto_pipeline *pipeline) {
    return pipeline->source;
}

const presto_option *presto_pipeline_source_option(const presto_pipeline *pipeline,
                                                   const char *name) {
    for (size_t i = 0; i < pipeline->source->option_count; i++)
        if (strcmp(pipeline->source->options[i].name, name) == 0)
            return &pipeline->source_options[i];
    return NULL;
}

size_t presto_pipeline_step_count(const presto_pipeline *pipeline) {
    return pipeline->step_count;
}

const presto_step_type *presto_pipeline_step_type(const presto_pipeline *pipeline, size_t i) {
    return i < pipeline->step_count ? pipeline->steps[i].type : NULL;
}

size_t presto_pipeline_representation_count(const presto_pipeline *pipeline) {
    return pipeline->representation_count;
}

const char *presto_pipeline_representation_name(const presto_pipeline *pipeline, size_t r) {
    if (r >= pipeline->representation_count)
        return NULL;
    return r == 0 ? PRESTO_UNPROCESSED : pipeline->steps[pipeline->representations[r]].yields;
}

size_t presto_pipeline_representation_find(const presto_pipeline *pipeline, const char *name) {
    for (size_t r = 0; r < pipeline->representation_count; r++)
        if (strcmp(presto_pipeline_representation_name(pipeline, r), name) == 0)
            return r;
    return SIZE_MAX;
}

size_t presto_pipeline_representation_steps(const presto_pipeline *pipeline, size_t r) {
    return r == 0 ? 0 : pipeline->representations[r] + 1;
}

bool presto_pipeline_representation_storable(const presto_pipeline *pipeline, size_t r) {
    size_t steps = presto_pipeline_representation_steps(pipeline, r);
    for (size_t i = 0; i < steps; i++)
        if (pipeline->steps[i].type->random)
            return false;
    return true;
}
