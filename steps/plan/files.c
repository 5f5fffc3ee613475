/* SPDX-License-Identifier: Apache-2.0 */
/* The files that a plan's outputs depend on: models, tables, programs, plugins. */
#include <stdlib.h>

#include "../../base/process_internal.h"
#include "../pipelines_internal.h"
#include "plan_internal.h"

typedef struct listing {
    void (*found)(void *user, const char *path);
    void *user;
} listing;

/* The path in a text such as "csv:labels.csv". */
static void list_prefixed(const listing *list, const presto_option_type *type,
                          const presto_option *value) {
    for (size_t i = 0; type->file_prefixes != NULL && type->file_prefixes[i] != NULL; i++) {
        size_t bytes = strlen(type->file_prefixes[i]);
        if (strncmp(value->text, type->file_prefixes[i], bytes) == 0)
            list->found(list->user, value->text + bytes);
    }
}

/* The program as it would be found, and each argument: those that are no files are not there. */
static void list_command(const listing *list, const presto_option *value) {
    char *program = presto__program_find(value->texts[0]);
    if (program != NULL)
        list->found(list->user, program);
    free(program);
    for (size_t i = 1; i < value->text_count; i++)
        list->found(list->user, value->texts[i]);
}

static void list_option(const listing *list, const presto_option_type *type,
                        const presto_option *value) {
    if (!value->is_set)
        return;
    if (type->kind == PRESTO_OPTION_FILE)
        list->found(list->user, value->text);
    else if (type->kind == PRESTO_OPTION_TEXT)
        list_prefixed(list, type, value);
    else if (type->kind == PRESTO_OPTION_COMMAND)
        list_command(list, value);
}

void presto__plan_files(const presto_plan *plan, void (*found)(void *user, const char *path),
                        void *user) {
    const listing list = {found, user};
    const presto_pipeline *pipeline = plan->pipeline;
    for (size_t i = 0; i < plan->step_count; i++) {
        const presto__pipeline_step *step = presto__plan_step(plan, i);
        for (size_t o = 0; o < step->type->option_count; o++)
            list_option(&list, &step->type->options[o], &step->options[o]);
        for (size_t p = 0; p < pipeline->plugin_count; p++)
            if (presto__plugin_has(&pipeline->plugins[p], step->type))
                found(user, pipeline->plugins[p].file);
    }
}
