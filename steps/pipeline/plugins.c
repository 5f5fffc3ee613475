/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Plugins: shared objects with steps. Opening one runs its code, so a pipeline opens those that it
 * names only if it may run code; the caller's are opened in any case.
 */
#define _GNU_SOURCE /* dladdr, RTLD_NOLOAD, RTLD_NODELETE */
#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

#include <presto/storage.h>

#include "../../base/digest_internal.h"
#include "../pipelines_internal.h"
#include "pipeline_internal.h"

#define MAX_PLUGIN_BYTES ((uint64_t)1 << 30)
#define SYMBOL "presto_plugin_steps"

/* ---- what a plugin holds ---- */

/* A fault in a step's description must show before it runs. */
static const char *fault_of(const presto_step_type *type) {
    if (type == NULL)
        return "has a step without a description";
    if (type->abi != PRESTO_STEP_ABI)
        return "has a step that is made for another version of the step interface";
    if (type->name == NULL || type->name[0] == '\0')
        return "has a step without a name";
    if (type->unsupported == NULL && (type->infer == NULL || type->run == NULL))
        return "has a step without infer() or run()";
    if (presto__options_check_table(type->options, type->option_count, NULL) < 0)
        return "has a step whose table of options is wrong";
    return NULL;
}

presto_status presto__own_step_check(const presto_step_type *type, const presto_pipeline *pipeline,
                                     presto_error *err) {
    const char *fault = fault_of(type);
    if (fault != NULL)
        return presto_fail(err, PRESTO_ERR_ARGUMENT, PRESTO_NO_OFFSET, "%s", fault);
    if (presto__step_find(type->name) != NULL)
        return presto_fail(err, PRESTO_ERR_ARGUMENT, PRESTO_NO_OFFSET,
                           "a step '%s' is built in: an own step needs another name", type->name);
    for (size_t i = 0; i < pipeline->own_step_count; i++)
        if (pipeline->own_steps[i] != type && strcmp(pipeline->own_steps[i]->name, type->name) == 0)
            return presto_fail(err, PRESTO_ERR_ARGUMENT, PRESTO_NO_OFFSET,
                               "there are two own steps '%s'", type->name);
    return PRESTO_OK;
}

/* ---- opening ---- */

static presto_status digest_file(const char *path, char digest_out[PRESTO__PLUGIN_DIGEST_BYTES],
                                 presto_error *err) {
    presto_buffer content = {0};
    PRESTO_TRY(presto_file_read(path, MAX_PLUGIN_BYTES, &content, err));
    presto__digest digest = {{0}};
    presto__digest_add(&digest, content.data, content.bytes);
    presto_buffer_done(&content);
    snprintf(digest_out, PRESTO__PLUGIN_DIGEST_BYTES, "%016llx%016llx",
             (unsigned long long)digest.state[0], (unsigned long long)digest.state[1]);
    return PRESTO_OK;
}

/* A plugin finds the functions that it calls in the program, or in a library that a program such as
 * Python has opened for itself alone: that one is opened for all. */
static void show_functions(void) {
    Dl_info here;
    if (dladdr((const void *)(uintptr_t)presto__step_find, &here) != 0 && here.dli_fname != NULL) {
        void *self = dlopen(here.dli_fname, RTLD_NOW | RTLD_NOLOAD | RTLD_GLOBAL);
        if (self != NULL)
            dlclose(self);
    }
}

static presto_status fail_plugin(const presto__loaded_plugin *plugin, presto_status status,
                                 const char *what, presto_error *err) {
    presto_error_set(err, status, PRESTO_NO_OFFSET, "the plugin %s: %s", plugin->file, what);
    return status;
}

/* Its code stays when it is closed: libraries that have started threads do not survive being
 * unmapped. */
static presto_status open_file(presto__loaded_plugin *plugin, presto_error *err) {
    show_functions();
    plugin->handle = dlopen(plugin->file, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (plugin->handle == NULL) {
        const char *why = dlerror();
        return fail_plugin(plugin, PRESTO_ERR_IO, why != NULL ? why : "cannot be opened", err);
    }
    plugin->exported = dlsym(plugin->handle, SYMBOL);
    if (plugin->exported == NULL)
        return fail_plugin(plugin, PRESTO_ERR_ARGUMENT,
                           "it does not export " SYMBOL ": PRESTO_PLUGIN of presto/step.h does",
                           err);
    unsigned abi = plugin->exported->abi;
    if (abi == PRESTO_STEP_ABI)
        return PRESTO_OK;
    char what[160];
    snprintf(what, sizeof what,
             "it is made for version %u of the step interface, this Presto has version %d: build "
             "it again with this Presto's headers",
             abi, PRESTO_STEP_ABI);
    return fail_plugin(plugin, PRESTO_ERR_ARGUMENT, what, err);
}

static presto_status open_plugin(presto_pipeline *pipeline, presto__loaded_plugin *plugin,
                                 presto_error *err) {
    char found[PRESTO__PLUGIN_DIGEST_BYTES];
    PRESTO_TRY(digest_file(plugin->file, found, err));
    if (plugin->digest[0] != '\0' && strcmp(plugin->digest, found) != 0)
        return fail_plugin(plugin, PRESTO_ERR_ARGUMENT,
                           "it is another file than the one that the pipeline was used with; "
                           "--plugin takes it nevertheless",
                           err);
    memcpy(plugin->digest, found, sizeof found);
    PRESTO_TRY(open_file(plugin, err));
    size_t count = pipeline->own_step_count + plugin->exported->step_count;
    const presto_step_type **all = presto_arena_alloc(&pipeline->arena, count * sizeof *all,
                                                      _Alignof(const presto_step_type *));
    if (all == NULL)
        return presto_fail_memory(err, count * sizeof *all);
    if (pipeline->own_step_count > 0)
        memcpy(all, pipeline->own_steps, pipeline->own_step_count * sizeof *all);
    pipeline->own_steps = all;
    for (size_t i = 0; i < plugin->exported->step_count; i++) {
        const presto_step_type *type = plugin->exported->steps[i];
        presto_error inner;
        if (presto__own_step_check(type, pipeline, &inner) < 0)
            return fail_plugin(plugin, PRESTO_ERR_ARGUMENT, inner.message, err);
        all[pipeline->own_step_count++] = type;
    }
    return PRESTO_OK;
}

/* ---- which ones ---- */

/* The whole path of a file, relative to `folder` (NULL: the working folder); as it is if it does
 * not exist. */
static presto_status find_file(presto_arena *arena, const char *folder, const char *file,
                               const char **path_out, presto_error *err) {
    char joined[PATH_MAX];
    int bytes = file[0] == '/' || folder == NULL
                    ? snprintf(joined, sizeof joined, "%s", file)
                    : snprintf(joined, sizeof joined, "%s/%s", folder, file);
    if (bytes < 0 || (size_t)bytes >= sizeof joined)
        return presto_fail(err, PRESTO_ERR_LIMIT, PRESTO_NO_OFFSET,
                           "the path of a plugin is too long");
    char *real = realpath(joined, NULL);
    const char *path = real != NULL ? real : joined;
    char *copy = presto_arena_alloc(arena, strlen(path) + 1, 1);
    if (copy != NULL)
        memcpy(copy, path, strlen(path) + 1);
    free(real);
    *path_out = copy;
    return copy != NULL ? PRESTO_OK : presto_fail_memory(err, PATH_MAX);
}

/* A path, or {file: PATH, digest: TEXT} as a dataset records it. */
static presto_status parse_plugin(presto_pipeline *pipeline, const char *folder,
                                  const presto__yaml_node *node, presto_error *err) {
    const presto__yaml_node *file = node, *digest = NULL;
    if (node->kind == PRESTO__YAML_MAPPING) {
        file = presto__yaml_get(node, "file");
        digest = presto__yaml_get(node, "digest");
        if (node->count != (size_t)(file != NULL) + (size_t)(digest != NULL))
            return presto__yaml_fail(node, err, "a plugin has the keys file and digest only");
    }
    if (file == NULL || !presto__yaml_is_text(file) || file->text[0] == '\0')
        return presto__yaml_fail(node, err, "plugin needs the path of a file");
    if (digest != NULL && (digest->kind != PRESTO__YAML_SCALAR ||
                           strlen(digest->text) != PRESTO__PLUGIN_DIGEST_BYTES - 1))
        return presto__yaml_fail(node, err, "the digest of a plugin has 32 digits");
    presto__loaded_plugin *plugin = &pipeline->plugins[pipeline->plugin_count];
    *plugin = (presto__loaded_plugin){0};
    if (digest != NULL)
        memcpy(plugin->digest, digest->text, sizeof plugin->digest);
    PRESTO_TRY(find_file(&pipeline->arena, folder, file->text, &plugin->file, err));
    pipeline->plugin_count++;
    return PRESTO_OK;
}

static presto_status allocate(presto_pipeline *pipeline, size_t given, size_t named,
                              presto_error *err) {
    if (named > PRESTO__MAX_PLUGINS || given > PRESTO__MAX_PLUGINS)
        return presto_fail(err, PRESTO_ERR_LIMIT, PRESTO_NO_OFFSET, "more than %d plugins",
                           PRESTO__MAX_PLUGINS);
    size_t bytes = (named + given + 1) * sizeof *pipeline->plugins;
    pipeline->plugins =
        presto_arena_alloc(&pipeline->arena, bytes, _Alignof(presto__loaded_plugin));
    return pipeline->plugins != NULL ? PRESTO_OK : presto_fail_memory(err, bytes);
}

presto_status presto__plugins_take(presto_pipeline *pipeline,
                                   const presto__plugins_request *request, presto_error *err) {
    const presto__yaml_node *node = request->named;
    bool is_list = node != NULL && node->kind == PRESTO__YAML_SEQUENCE;
    PRESTO_TRY(allocate(pipeline, request->given_count, is_list ? node->count : 1, err));
    for (size_t i = 0; i < request->given_count; i++) {
        presto__loaded_plugin *plugin = &pipeline->plugins[pipeline->plugin_count];
        *plugin = (presto__loaded_plugin){.is_given = true};
        PRESTO_TRY(find_file(&pipeline->arena, NULL, request->given[i], &plugin->file, err));
        pipeline->plugin_count++;
    }
    for (const presto__yaml_node *entry = is_list ? node->first : node; entry != NULL;
         entry = is_list ? entry->next : NULL)
        PRESTO_TRY(parse_plugin(pipeline, request->folder, entry, err));
    for (size_t i = 0; i < pipeline->plugin_count; i++)
        if (pipeline->runs_code || pipeline->plugins[i].is_given)
            PRESTO_TRY(open_plugin(pipeline, &pipeline->plugins[i], err));
    return PRESTO_OK;
}

void presto__plugins_close(presto_pipeline *pipeline) {
    for (size_t i = 0; i < pipeline->plugin_count; i++)
        if (pipeline->plugins[i].handle != NULL)
            dlclose(pipeline->plugins[i].handle);
}

/* ---- what of it a dataset records ---- */

bool presto__plugin_has(const presto__loaded_plugin *plugin, const presto_step_type *type) {
    for (unsigned i = 0; plugin->exported != NULL && i < plugin->exported->step_count; i++)
        if (plugin->exported->steps[i] == type)
            return true;
    return false;
}

static bool is_used(const presto_pipeline *pipeline, const presto__loaded_plugin *plugin) {
    for (size_t i = 0; i < pipeline->step_count; i++)
        if (presto__plugin_has(plugin, pipeline->steps[i].type))
            return true;
    return plugin->exported == NULL;
}

json_t *presto__plugins_to_json(const presto_pipeline *pipeline) {
    json_t *list = json_array();
    for (size_t i = 0; i < pipeline->plugin_count; i++) {
        const presto__loaded_plugin *plugin = &pipeline->plugins[i];
        if (!is_used(pipeline, plugin))
            continue;
        json_t *entry = json_object();
        bool failed = json_object_set_new(entry, "file", json_string(plugin->file)) != 0 ||
                      (plugin->digest[0] != '\0' &&
                       json_object_set_new(entry, "digest", json_string(plugin->digest)) != 0);
        if (json_array_append_new(list, entry) != 0 || failed) {
            json_decref(list);
            return NULL;
        }
    }
    return list;
}
