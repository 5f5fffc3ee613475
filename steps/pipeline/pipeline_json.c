/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A pipeline as JSON for dataset.json. Every option that has a value is written, defaults too. So a
 * stored dataset keeps its meaning when a default changes.
 */
#include "pipeline_internal.h"

static bool set_name(json_t *object, const char *key, const char *name) {
    return name == NULL || json_object_set_new(object, key, json_string(name)) == 0;
}

static json_t *scalar_to_json(const presto__yaml_node *node) {
    int64_t integer;
    double number;
    if (presto__yaml_is_text(node))
        return json_string(node->text);
    if (presto__yaml_integer(node, &integer))
        return json_integer(integer);
    if (presto__yaml_number(node, &number))
        return json_real(number);
    if (strcmp(node->text, "true") == 0 || strcmp(node->text, "false") == 0)
        return json_boolean(node->text[0] == 't');
    return json_null();
}

json_t *presto__yaml_to_json(const presto__yaml_node *node) {
    if (node->kind == PRESTO__YAML_SCALAR)
        return scalar_to_json(node);
    bool is_list = node->kind == PRESTO__YAML_SEQUENCE;
    json_t *parent = is_list ? json_array() : json_object();
    for (const presto__yaml_node *child = node->first; child != NULL; child = child->next) {
        json_t *value = presto__yaml_to_json(child);
        int failed = is_list ? json_array_append_new(parent, value)
                             : json_object_set_new(parent, child->key->text, value);
        if (failed != 0) {
            json_decref(parent);
            return NULL;
        }
    }
    return parent;
}

static json_t *source_to_json(const presto_pipeline *pipeline) {
    const presto_source_type *source = pipeline->source;
    json_t *object = json_object();
    if (set_name(object, "type", source->name) &&
        set_name(object, "yields", pipeline->source_yields) &&
        presto__options_to_json(source->options, source->option_count, pipeline->source_options,
                                object, NULL) >= 0)
        return object;
    json_decref(object);
    return NULL;
}

static json_t *step_to_json(const presto__pipeline_step *step) {
    if (step->raw != NULL)
        return presto__yaml_to_json(step->raw);
    json_t *object = json_object();
    if (set_name(object, "step", step->type->name) && set_name(object, "yields", step->yields) &&
        set_name(object, "reads", step->reads) && set_name(object, "writes", step->writes) &&
        presto__options_to_json(step->type->options, step->type->option_count, step->options,
                                object, NULL) >= 0)
        return object;
    json_decref(object);
    return NULL;
}

static json_t *steps_to_json(const presto_pipeline *pipeline) {
    json_t *list = json_array();
    for (size_t i = 0; i < pipeline->step_count; i++) {
        if (json_array_append_new(list, step_to_json(&pipeline->steps[i])) != 0) {
            json_decref(list);
            return NULL;
        }
    }
    return list;
}

/* Only where there are some: most pipelines have none. */
static bool set_plugins(const presto_pipeline *pipeline, json_t *root) {
    json_t *plugins = presto__plugins_to_json(pipeline);
    if (plugins != NULL && json_array_size(plugins) > 0)
        return json_object_set_new(root, "plugin", plugins) == 0;
    json_decref(plugins);
    return plugins != NULL;
}

char *presto__pipeline_to_json(const presto_pipeline *pipeline) {
    json_t *root = json_object();
    char *text = NULL;
    if (json_object_set_new(root, "name", json_string(pipeline->name)) == 0 &&
        json_object_set_new(root, "source", source_to_json(pipeline)) == 0 &&
        json_object_set_new(root, "steps", steps_to_json(pipeline)) == 0 &&
        set_plugins(pipeline, root))
        text = json_dumps(root, 0);
    json_decref(root);
    return text;
}

char *presto__source_to_json(const presto_pipeline *pipeline) {
    json_t *source = source_to_json(pipeline);
    (void)json_object_del(source, "classes"); /* the names of labels are checked on their own */
    char *text = json_dumps(source, JSON_COMPACT);
    json_decref(source);
    return text;
}

char *presto__steps_to_json(const presto_pipeline *pipeline, size_t first, size_t last) {
    json_t *list = json_array();
    for (size_t i = first; i < last; i++) {
        json_t *step = step_to_json(&pipeline->steps[i]);
        (void)json_object_del(step, "yields");
        if (json_array_append_new(list, step) != 0) {
            json_decref(list);
            return NULL;
        }
    }
    char *text = json_dumps(list, JSON_COMPACT);
    json_decref(list);
    return text;
}
