/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pipelines from YAML. All errors that can be found without data are found here, with file and
 * line: keys, types, names, and a step whose input does not fit the output of the step before it.
 */
#define _XOPEN_SOURCE 700 /* realpath */
#include "../../base/options_internal.h"
#include "../pipelines_internal.h"
#include "pipeline_internal.h"

#include <stdio.h>
#include <stdlib.h>

#include <presto/text.h>

#define LIST_TEXT_BYTES 320

typedef struct parse_state {
    presto_pipeline *pipeline;
    const presto_pipeline_options *options;
    bool is_named;      /* by the caller, who trusts it */
    const char *folder; /* of the text; NULL: the working folder */
    presto_error *err;
} parse_state;

static presto_status fail_at(parse_state *p, const presto__yaml_node *node, const char *what,
                             const char *value) {
    return presto__yaml_fail(node, p->err, "%s%s%s%s", what, value != NULL ? " '" : "",
                             value != NULL ? value : "", value != NULL ? "'" : "");
}

static presto_status prefix_line(parse_state *p, size_t line, const char *owner,
                                 presto_status status) {
    char text[128];
    presto__error_prefix(p->err, owner);
    snprintf(text, sizeof text, "line %zu", line);
    presto__error_prefix(p->err, text);
    if (p->err != NULL)
        p->err->status = status;
    return status;
}

static presto_status copy_text(parse_state *p, const char *text, size_t length,
                               const char **copy_out) {
    char *copy = presto_arena_alloc(&p->pipeline->arena, length + 1, 1);
    if (copy == NULL)
        return presto_fail_memory(p->err, length + 1);
    memcpy(copy, text, length);
    copy[length] = '\0';
    *copy_out = copy;
    return PRESTO_OK;
}

/* Names are used in file names and in comma-separated lists of the command line. */
static bool is_name(const char *text) {
    static const char allowed[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";
    size_t length = strspn(text, allowed);
    return length > 0 && text[length] == '\0' && text[0] != '.' && text[0] != '-';
}

static presto_status parse_name(parse_state *p, const presto__yaml_node *node, const char *what,
                                const char **name_out) {
    if (node->kind != PRESTO__YAML_SCALAR)
        return fail_at(p, node, what, NULL);
    if (!is_name(node->text))
        return presto__yaml_fail(node, p->err,
                                 "%s: '%s' has other characters than letters, digits, '.', '_' "
                                 "and '-', or starts with '.' or '-'",
                                 what, node->text);
    *name_out = node->text;
    return PRESTO_OK;
}

/* "unknown X 'y', did you mean 'z'? (known: ...)" */
static presto_status fail_unknown(parse_state *p, const presto__yaml_node *node, const char *what,
                                  const char *const *known) {
    char list[LIST_TEXT_BYTES] = "";
    for (size_t i = 0; known[i] != NULL; i++) {
        size_t used = strlen(list);
        snprintf(list + used, sizeof list - used, "%s%s", i > 0 ? ", " : "", known[i]);
    }
    const char *near = presto_text_nearest(node->text, known);
    return presto__yaml_fail(node, p->err, "unknown %s '%.64s'%s%s%s (known: %s)", what, node->text,
                             near != NULL ? ", did you mean '" : "", near != NULL ? near : "",
                             near != NULL ? "'?" : "", list);
}

/* What the pipeline's samples are called before any step, if they are values. */
static presto_status name_source_output(parse_state *p, const presto__yaml_node *node) {
    presto_pipeline *pipeline = p->pipeline;
    const presto_source_type *source = pipeline->source;
    const presto__yaml_node *yields = presto__yaml_get(node, "yields");
    pipeline->source_output = source->output;
    if (source->infer != NULL)
        source->infer(pipeline->source_options, &pipeline->source_output);
    pipeline->source_yields = source->yields;
    if (yields != NULL)
        PRESTO_TRY(parse_name(p, yields, "yields needs a name", &pipeline->source_yields));
    if (yields != NULL && strcmp(pipeline->source_yields, PRESTO_UNPROCESSED) == 0)
        return fail_at(p, yields, "a second representation called", PRESTO_UNPROCESSED);
    return PRESTO_OK;
}

static presto_status parse_source(parse_state *p, const presto__yaml_node *node) {
    static const char *const others[] = {"type", "yields", NULL};
    static const char *const only_type[] = {"type", NULL};
    if (node->kind != PRESTO__YAML_MAPPING)
        return fail_at(p, node, "source must be a mapping such as {type: files}", NULL);
    const presto__yaml_node *type = presto__yaml_get(node, "type");
    if (type == NULL || type->kind != PRESTO__YAML_SCALAR)
        return fail_at(p, node, "source needs a type, e.g. 'type: files'", NULL);
    p->pipeline->source = presto__source_type_find(type->text);
    if (p->pipeline->source == NULL) {
        const char *known[16] = {NULL};
        for (size_t i = 0; i < 15 && presto__source_type_at(i) != NULL; i++)
            known[i] = presto__source_type_at(i)->name;
        return fail_unknown(p, type, "source type", known);
    }
    const presto_source_type *source = p->pipeline->source;
    char owner[80];
    snprintf(owner, sizeof owner, "source %s", source->name);
    presto_option *options = NULL;
    presto__options_request request = {source->options,
                                       source->option_count,
                                       node,
                                       owner,
                                       p->folder,
                                       source->yields != NULL ? others : only_type};
    PRESTO_TRY(presto__options_parse(&request, &p->pipeline->arena, &options, p->err));
    p->pipeline->source_options = options;
    if (source->check != NULL) {
        presto_status status = source->check(options, p->err);
        if (status < 0)
            return prefix_line(p, node->line, owner, status);
    }
    const presto_option *behind = presto__pipeline_source_option(p->pipeline, "steps-behind");
    p->pipeline->steps_behind = behind == NULL ? 0 : (size_t)behind->integer;
    return name_source_output(p, node);
}

static const presto_step_type *type_of_step(const presto_pipeline *pipeline, const char *name) {
    for (size_t i = 0; i < pipeline->own_step_count; i++)
        if (strcmp(pipeline->own_steps[i]->name, name) == 0)
            return pipeline->own_steps[i];
    return presto__step_find(name);
}

/* A step of a plugin that is not loaded: it is carried along, and no plan can have it. */
static presto_status make_absent(parse_state *p, const presto__yaml_node *node,
                                 const presto__loaded_plugin *plugin, presto__pipeline_step *step) {
    char why[320];
    const char *copy = NULL;
    snprintf(why, sizeof why,
             "it is a step of the plugin %.200s, which is code: give --plugin FILE to load one, or "
             "--allow-commands if you trust this one",
             plugin->file);
    PRESTO_TRY(copy_text(p, why, strlen(why), &copy));
    presto_step_type *type =
        presto_arena_alloc(&p->pipeline->arena, sizeof *type, _Alignof(presto_step_type));
    if (type == NULL)
        return presto_fail_memory(p->err, sizeof *type);
    *type = (presto_step_type){.abi = PRESTO_STEP_ABI,
                               .name = presto__yaml_get(node, "step")->text,
                               .summary = "",
                               .unsupported = copy};
    step->type = type;
    step->raw = node;
    return PRESTO_OK;
}

static presto_status find_step(parse_state *p, const presto__yaml_node *node,
                               presto__pipeline_step *step) {
    if (node->kind != PRESTO__YAML_MAPPING)
        return fail_at(p, node, "a step must be a mapping such as {step: read-file}", NULL);
    const presto__yaml_node *name = presto__yaml_get(node, "step");
    if (name == NULL || name->kind != PRESTO__YAML_SCALAR)
        return fail_at(p, node, "a step needs its name, e.g. 'step: read-file'", NULL);
    step->type = type_of_step(p->pipeline, name->text);
    if (step->type != NULL)
        return PRESTO_OK;
    for (size_t i = 0; i < p->pipeline->plugin_count; i++)
        if (p->pipeline->plugins[i].exported == NULL)
            return make_absent(p, node, &p->pipeline->plugins[i], step);
    const char *known[64] = {NULL};
    for (size_t i = 0; i < 63 && presto__step_at(i) != NULL; i++)
        known[i] = presto__step_at(i)->name;
    return fail_unknown(p, name, "step", known);
}

static void add_representation(presto_pipeline *pipeline, const char *name, size_t steps) {
    pipeline->representations[pipeline->representation_count++ - 1] =
        (presto__representation){name, steps};
}

static presto_status parse_yields(parse_state *p, const presto__yaml_node *node,
                                  presto__pipeline_step *step) {
    presto_pipeline *pipeline = p->pipeline;
    PRESTO_TRY(parse_name(p, node, "yields needs a name", &step->yields));
    if (presto_pipeline_representation_find(pipeline, step->yields) != SIZE_MAX)
        return fail_at(p, node, "a second representation called", step->yields);
    add_representation(pipeline, step->yields, pipeline->step_count + 1);
    return PRESTO_OK;
}

/* Features of other people's data have any names, such as image/encoded. */
static presto_status parse_feature(parse_state *p, const presto__yaml_node *node,
                                   const char **name_out) {
    if (node == NULL)
        return PRESTO_OK;
    if (!presto__yaml_is_text(node) || node->text[0] == '\0')
        return fail_at(p, node, "reads and writes need a feature's name", NULL);
    *name_out = node->text;
    return PRESTO_OK;
}

/* The keys that every step has, and its options. */
static presto_status parse_keys(parse_state *p, const presto__yaml_node *node, const char *owner,
                                presto__pipeline_step *step) {
    static const char *const others[] = {"step", "yields", "reads", "writes", NULL};
    const presto_step_type *type = step->type;
    presto_option *options = NULL;
    presto__options_request request = {type->options, type->option_count, node,
                                       owner,         p->folder,          others};
    if (step->raw == NULL)
        PRESTO_TRY(presto__options_parse(&request, &p->pipeline->arena, &options, p->err));
    step->options = options;
    PRESTO_TRY(parse_feature(p, presto__yaml_get(node, "reads"), &step->reads));
    PRESTO_TRY(parse_feature(p, presto__yaml_get(node, "writes"), &step->writes));
    const presto__yaml_node *yields = presto__yaml_get(node, "yields");
    return yields == NULL ? PRESTO_OK : parse_yields(p, yields, step);
}

static bool same_name(const char *a, const char *b) {
    return a == NULL || b == NULL ? a == b : strcmp(a, b) == 0;
}

/* The last to-layout that the feature `name` (NULL: the main one) has gone through before step i;
 * NULL: there is none. */
static const presto__pipeline_step *layout_before(const presto_pipeline *pipeline, size_t i,
                                                  const char *name) {
    while (i-- > 0) {
        const presto__pipeline_step *step = &pipeline->steps[i];
        const char *target = step->writes != NULL ? step->writes : step->reads;
        if (!same_name(target, name))
            continue;
        if (step->type == &presto__step_to_layout)
            return step;
        name = step->reads;
    }
    return NULL;
}

/* Steps that take rows and columns for granted would work on the wrong axes after `chw`. */
static presto_status check_layout(parse_state *p, size_t i) {
    const presto__pipeline_step *step = &p->pipeline->steps[i];
    const presto__pipeline_step *before = layout_before(p->pipeline, i, step->reads);
    const presto_option *layout = NULL;
    if ((step->flags & PRESTO_STEP_HWC) == 0 || before == NULL)
        return PRESTO_OK;
    layout = &before->options[0]; /* its only option */
    if (strcmp(layout->text, "chw") != 0)
        return PRESTO_OK;
    return presto_fail(p->err, PRESTO_ERR_TYPE, PRESTO_NO_OFFSET,
                       "works on [height, width, channels], but to-layout of line %zu has made it "
                       "[channels, height, width]: put to-layout behind this step",
                       before->line);
}

/* Boxes keep their format from step to step. Those whose units are not given are looked at once. */
static presto_status check_follow(parse_state *p, size_t i) {
    const presto_pipeline *pipeline = p->pipeline;
    const presto__follow *follow = pipeline->steps[i].follow;
    if (follow == NULL || follow->boxes.given == NULL)
        return PRESTO_OK;
    for (size_t k = 0; k < i; k++) {
        const presto__follow *before = pipeline->steps[k].follow;
        if (before == NULL || !same_name(before->boxes.given, follow->boxes.given))
            continue;
        ((presto__follow *)(uintptr_t)follow)->checks_boxes = false;
        if (before->box_format != follow->box_format ||
            before->boxes_are_normalized != follow->boxes_are_normalized)
            return presto_fail(p->err, PRESTO_ERR_TYPE, PRESTO_NO_OFFSET,
                               "has another 'box-format' or 'box-units' for '%s' than step %s of "
                               "line %zu",
                               follow->boxes.given, pipeline->steps[k].type->name,
                               pipeline->steps[k].line);
    }
    return PRESTO_OK;
}

/* The same numbers in a wider type, such as pixels of a byte as float32; or a row of a table for each
 * number. Neither saves much work when it is stored. */
static bool only_inflates(const presto_step_type *type, const presto_tensor_spec *in,
                          const presto_tensor_spec *out) {
    size_t before = presto_dtype_bytes(in->dtype), after = presto_dtype_bytes(out->dtype);
    if (type == &presto__step_embed)
        return true;
    if (type != &presto__step_center_pixels && type != &presto__step_normalize &&
        type != &presto__step_cast)
        return false; /* it does more than that */
    if (before == 0 || after <= before || in->rank != out->rank)
        return false;
    for (int i = 0; i < in->rank; i++)
        if (in->dims[i] != out->dims[i])
            return false;
    return true;
}

/* Parses, creates and checks one step. *spec, of the main feature, is the step's input before
 * and its output after. */
static presto_status parse_step(parse_state *p, const presto__yaml_node *node,
                                presto_tensor_spec *spec) {
    presto_pipeline *pipeline = p->pipeline;
    presto__pipeline_step *step = &pipeline->steps[pipeline->step_count];
    *step = (presto__pipeline_step){.line = node->line};
    PRESTO_TRY(find_step(p, node, step));
    const presto_step_type *type = step->type;
    char owner[80];
    snprintf(owner, sizeof owner, "step %s", type->name);
    PRESTO_TRY(parse_keys(p, node, owner, step));
    presto_status status = PRESTO_OK;
    if (type->create != NULL && type->unsupported == NULL)
        status = type->create(step->options, &step->state, p->err);
    if (status < 0)
        return status == PRESTO_ERR_MEMORY ? status
                                           : prefix_line(p, node->line, owner, PRESTO_ERR_SYNTAX);
    step->flags =
        step->state != NULL && type->flags_of != NULL ? type->flags_of(step->state) : type->flags;
    pipeline->step_count++; /* from here on presto_pipeline_free destroys the state */
    if ((step->flags & PRESTO_STEP_MOVES) != 0)
        status = presto__follow_parse(type, step->options, &pipeline->arena, &step->follow, p->err);
    if (status >= 0)
        status = check_layout(p, pipeline->step_count - 1);
    if (status >= 0)
        status = check_follow(p, pipeline->step_count - 1);
    if (status < 0)
        return status == PRESTO_ERR_MEMORY ? status
                                           : prefix_line(p, node->line, owner, PRESTO_ERR_SYNTAX);
    presto_tensor_spec in = step->reads == NULL ? *spec : presto__spec_unknown();
    presto_tensor_spec out = presto__spec_unknown();
    if (type->unsupported == NULL)
        status = type->infer(step->state, &in, &out, p->err);
    if (status < 0)
        return prefix_line(p, node->line, owner, PRESTO_ERR_SYNTAX);
    step->inflates = only_inflates(type, &in, &out);
    if (step->writes == NULL && step->reads == NULL)
        *spec = out;
    return PRESTO_OK;
}

static presto_status parse_steps(parse_state *p, const presto__yaml_node *node) {
    presto_pipeline *pipeline = p->pipeline;
    bool may_be_empty = pipeline->source_yields != NULL;
    if (node->kind != PRESTO__YAML_SEQUENCE || (node->count == 0 && !may_be_empty))
        return fail_at(p, node, "steps must be a list with at least one step", NULL);
    if (node->count > PRESTO__PIPELINE_MAX_STEPS)
        return fail_at(p, node, "more than 1000 steps", NULL);
    size_t steps_bytes = (node->count + 1) * sizeof *pipeline->steps;
    size_t names_bytes = (node->count + 1) * sizeof *pipeline->representations;
    pipeline->steps =
        presto_arena_alloc(&pipeline->arena, steps_bytes, _Alignof(presto__pipeline_step));
    pipeline->representations =
        presto_arena_alloc(&pipeline->arena, names_bytes, _Alignof(presto__representation));
    if (pipeline->steps == NULL || pipeline->representations == NULL)
        return presto_fail_memory(p->err, steps_bytes + names_bytes);
    pipeline->representation_count = 1;
    if (pipeline->source_yields != NULL)
        add_representation(pipeline, pipeline->source_yields, 0);
    presto_tensor_spec spec = pipeline->source_output;
    for (const presto__yaml_node *entry = node->first; entry != NULL; entry = entry->next)
        PRESTO_TRY(parse_step(p, entry, &spec));
    return PRESTO_OK;
}

static presto_status take_own_steps(parse_state *p) {
    const presto_pipeline_options *options = p->options;
    presto_pipeline *pipeline = p->pipeline;
    size_t bytes = options->step_count * sizeof(const presto_step_type *);
    if (bytes == 0)
        return PRESTO_OK;
    pipeline->own_steps =
        presto_arena_alloc(&pipeline->arena, bytes, _Alignof(const presto_step_type *));
    if (pipeline->own_steps == NULL)
        return presto_fail_memory(p->err, bytes);
    for (size_t i = 0; i < options->step_count; i++) {
        const presto_step_type *type = options->steps[i];
        if (type->abi != PRESTO_STEP_ABI)
            return presto_fail(p->err, PRESTO_ERR_ARGUMENT, PRESTO_NO_OFFSET,
                               "own step %zu is made for version %u of the step interface, this "
                               "library has %d",
                               i + 1, type->abi, PRESTO_STEP_ABI);
        PRESTO_TRY(presto__own_step_check(type, pipeline, p->err));
        pipeline->own_steps[pipeline->own_step_count++] = type;
    }
    return PRESTO_OK;
}

static presto_status parse_root(parse_state *p, const presto__yaml_node *root) {
    static const char *const known[] = {"name", "source", "steps", "plugin", NULL};
    const presto__yaml_node *parts[4] = {NULL};
    if (root->kind != PRESTO__YAML_MAPPING)
        return fail_at(p, root, "a pipeline must be a mapping of name, source and steps", NULL);
    for (const presto__yaml_node *entry = root->first; entry != NULL; entry = entry->next) {
        size_t i = 0;
        while (known[i] != NULL && strcmp(known[i], entry->key->text) != 0)
            i++;
        if (known[i] == NULL)
            return fail_unknown(p, entry->key, "key", known);
        parts[i] = entry;
    }
    for (size_t i = 0; i < 3; i++)
        if (parts[i] == NULL)
            return fail_at(p, root, "the pipeline lacks", known[i]);
    PRESTO_TRY(parse_name(p, parts[0], "name needs a name", &p->pipeline->name));
    const presto__plugins_request plugins = {p->options->plugins, p->options->plugin_count,
                                             parts[3], p->folder};
    PRESTO_TRY(presto__plugins_take(p->pipeline, &plugins, p->err));
    PRESTO_TRY(parse_source(p, parts[1]));
    return parse_steps(p, parts[2]);
}

/* Absolute, so that a dataset's pipeline finds its models from any working folder. */
static presto_status find_folder(parse_state *p, const char *file) {
    const char *slash = strrchr(file, '/');
    PRESTO_TRY(copy_text(p, slash == NULL ? "." : file,
                         slash == NULL ? 1 : (size_t)(slash - file) + (slash == file), &p->folder));
    char *real = realpath(p->folder, NULL);
    if (real == NULL)
        return PRESTO_OK;
    presto_status status = copy_text(p, real, strlen(real), &p->folder);
    free(real);
    return status;
}

static bool says_something(const presto_option *option) {
    return option->is_set && !(option->text != NULL && strcmp(option->text, "none") == 0);
}

/* Which options of the source before does the new one have as well, but has not been given? */
static void list_unused(presto_pipeline *pipeline, const presto_source_type *before,
                        const presto_option *options) {
    for (size_t i = 0; i < before->option_count; i++) {
        const char *name = before->options[i].name;
        const presto_option *now = presto__pipeline_source_option(pipeline, name);
        if (now != NULL && says_something(&options[i]) && !says_something(now) &&
            strcmp(name, "feature") != 0 && /* it is the usual one */
            pipeline->unused_count < PRESTO__PIPELINE_UNUSED_MOST)
            pipeline->unused[pipeline->unused_count++] = name;
    }
}

/* Records that hold a representation take the place of the source and of the steps up to there. */
static presto_status start_from(parse_state *p, presto__yaml_node *records) {
    presto_pipeline *pipeline = p->pipeline;
    const presto_option *feature = presto__pipeline_source_option(pipeline, "feature");
    const presto_source_type *before = pipeline->source;
    const presto_option *options = pipeline->source_options;
    PRESTO_TRY(presto__pipeline_cut(pipeline, presto__yaml_get(records, "yields")->text, p->err));
    const presto_tensor_spec spec = pipeline->source_output;
    char *count = presto_arena_alloc(&pipeline->arena, 24, 1);
    presto__yaml_node *node =
        presto_arena_alloc(&pipeline->arena, sizeof *node, _Alignof(presto__yaml_node));
    if (count == NULL || node == NULL)
        return presto_fail_memory(p->err, sizeof *node);
    snprintf(count, 24, "%zu", pipeline->steps_behind);
    *node = (presto__yaml_node){
        .kind = PRESTO__YAML_SCALAR, .set = records->set, .text = count, .is_plain = true};
    PRESTO_TRY(presto__yaml_put(records, "steps-behind", node, &pipeline->arena, p->err));
    PRESTO_TRY(parse_source(p, records));
    pipeline->source_output = spec;
    pipeline->usual_feature = feature == NULL ? NULL : feature->text;
    list_unused(pipeline, before, options);
    return PRESTO_OK;
}

static presto_status parse_text(parse_state *p, presto_span yaml, const char *file) {
    presto_pipeline *pipeline = p->pipeline;
    PRESTO_TRY(copy_text(p, file, strlen(file), &pipeline->file));
    PRESTO_TRY(find_folder(p, file));
    PRESTO_TRY(take_own_steps(p));
    presto__yaml_node *root = NULL, *records = NULL;
    PRESTO_TRY(presto__yaml_parse(yaml, &pipeline->arena, &root, p->err));
    PRESTO_TRY(presto__pipeline_override(root, p->options, &pipeline->arena, &records, p->err));
    PRESTO_TRY(parse_root(p, root));
    if (records != NULL)
        PRESTO_TRY(start_from(p, records));
    PRESTO_TRY(presto__pipeline_look_ahead(pipeline, p->err));
    pipeline->json = presto__pipeline_to_json(pipeline);
    return pipeline->json != NULL ? PRESTO_OK : presto_fail_memory(p->err, 0);
}

/* ---- parsing ---- */

void presto_pipeline_options_init(presto_pipeline_options *options, size_t struct_bytes) {
    const presto_pipeline_options defaults = {0};
    presto__options_give(options, struct_bytes, &defaults, sizeof defaults);
}

static presto_status parse_pipeline(parse_state *p, presto_span yaml, const char *file,
                                    presto_pipeline **pipeline_out) {
    presto_pipeline *pipeline = calloc(1, sizeof *pipeline);
    if (pipeline == NULL)
        return presto_fail_memory(p->err, sizeof *pipeline);
    atomic_init(&pipeline->owners, 1);
    p->pipeline = pipeline;
    pipeline->runs_code = p->options->code == PRESTO_CODE_ALWAYS ||
                          (p->options->code == PRESTO_CODE_IF_NAMED && p->is_named);
    presto_status status = parse_text(p, yaml, file);
    if (status < 0) {
        presto_error_set_file(p->err, file);
        presto_pipeline_free(pipeline);
        return status;
    }
    *pipeline_out = pipeline;
    return PRESTO_OK;
}

presto_status presto__pipeline_parse(presto_span yaml, const char *file,
                                     const presto_pipeline_options *options,
                                     presto_pipeline **pipeline_out, presto_error *err) {
    presto_pipeline_options taken;
    presto_pipeline_options_defaults(&taken);
    PRESTO_TRY(presto__options_take(&taken, sizeof taken, options, err));
    parse_state p = {.options = &taken, .err = err};
    return parse_pipeline(&p, yaml, file, pipeline_out);
}

presto_status presto__pipeline_parse_named(presto_span yaml, const char *file,
                                           const presto_pipeline_options *options,
                                           presto_pipeline **pipeline_out, presto_error *err) {
    presto_pipeline_options taken;
    presto_pipeline_options_defaults(&taken);
    PRESTO_TRY(presto__options_take(&taken, sizeof taken, options, err));
    parse_state p = {.options = &taken, .is_named = true, .err = err};
    return parse_pipeline(&p, yaml, file, pipeline_out);
}

presto_pipeline *presto__pipeline_keep(const presto_pipeline *pipeline) {
    presto_pipeline *kept = (presto_pipeline *)(uintptr_t)pipeline; /* only `owners` changes */
    atomic_fetch_add(&kept->owners, 1);
    return kept;
}

void presto_pipeline_free(presto_pipeline *pipeline) {
    if (pipeline == NULL || atomic_fetch_sub(&pipeline->owners, 1) > 1)
        return;
    for (size_t i = 0; i < pipeline->step_count; i++)
        if (pipeline->steps[i].type->destroy != NULL)
            pipeline->steps[i].type->destroy(pipeline->steps[i].state);
    presto__plugins_close(pipeline);
    free(pipeline->json);
    presto_arena_done(&pipeline->arena);
    free(pipeline);
}
