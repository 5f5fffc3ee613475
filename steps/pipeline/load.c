/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the text of a pipeline: from a file, or from the built-in ones. */
#include <stdio.h>

#include <presto/storage.h>
#include <presto/text.h>

#include "pipeline_internal.h"

enum { LIST_TEXT_BYTES = 320, MOST_NAMES = 32 };

static bool is_path(const char *text) {
    size_t length = strlen(text);
    return strchr(text, '/') != NULL || (length > 5 && strcmp(text + length - 5, ".yaml") == 0) ||
           (length > 4 && strcmp(text + length - 4, ".yml") == 0);
}

static presto_status load_file(const char *path, const presto_pipeline_options *options,
                               presto_pipeline **pipeline_out, presto_error *err) {
    presto_buffer text = {0};
    presto_status status = presto_file_read(path, PRESTO__YAML_MAX_BYTES, &text, err);
    if (status == PRESTO_OK)
        status = presto__pipeline_parse_named(presto_buffer_span(&text), path, options,
                                              pipeline_out, err);
    presto_buffer_done(&text);
    return status;
}

presto_status presto_pipeline_load(const char *name_or_path, const presto_pipeline_options *options,
                                   presto_pipeline **pipeline_out, presto_error *err) {
    if (is_path(name_or_path))
        return load_file(name_or_path, options, pipeline_out, err);
    char list[LIST_TEXT_BYTES] = "";
    const char *names[MOST_NAMES + 1] = {NULL};
    size_t count = 0;
    for (const presto__builtin *builtin = presto__builtins; builtin->name != NULL; builtin++) {
        if (strcmp(builtin->name, name_or_path) == 0) {
            char file[80];
            snprintf(file, sizeof file, "pipeline %s", builtin->name);
            return presto__pipeline_parse_named(presto_span_of(builtin->text, builtin->bytes), file,
                                                options, pipeline_out, err);
        }
        size_t used = strlen(list);
        snprintf(list + used, sizeof list - used, "%s%s", used > 0 ? ", " : "", builtin->name);
        if (count < MOST_NAMES)
            names[count++] = builtin->name;
    }
    const char *near = presto_text_nearest(name_or_path, names);
    return presto_fail(err, PRESTO_ERR_NOT_FOUND, PRESTO_NO_OFFSET,
                       "no pipeline is called '%.64s'%s%s%s (built in: %s; a path has a '/' or "
                       "ends in .yaml)",
                       name_or_path, near != NULL ? ", did you mean '" : "",
                       near != NULL ? near : "", near != NULL ? "'?" : "", list);
}

const char *presto_pipeline_builtin_at(size_t i) {
    for (const presto__builtin *builtin = presto__builtins; builtin->name != NULL; builtin++)
        if (i-- == 0)
            return builtin->name;
    return NULL;
}
