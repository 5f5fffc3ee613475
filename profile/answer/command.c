/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The command lines that carry out the recommended strategy, to be pasted into a POSIX shell.
 */
#include "../../base/decimal_internal.h"
#include "../profile_internal.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const presto_strategy *best_of(const presto_sweep *sweep) {
    return &sweep->trials[sweep->best].result.strategy;
}

bool presto__needs_seekable(const presto_sweep *sweep) {
    return sweep->adds_seekable && strcmp(best_of(sweep)->stored, PRESTO_SEEKABLE) == 0;
}

char *presto__dataset_dir(const presto_sweep *sweep) {
    if (sweep->dataset_dir != NULL)
        return strdup(sweep->dataset_dir);
    const char *split = best_of(sweep)->stored;
    size_t bytes = strlen(sweep->pipeline_name) + strlen(split) + 2;
    char *name = malloc(bytes);
    if (name == NULL)
        return NULL;
    snprintf(name, bytes, "%s-%s", sweep->pipeline_name, split);
    for (char *c = name; *c != '\0'; c++)
        if (*c == '/')
            *c = '-';
    return name;
}

static presto_status add_option(presto_buffer *text, const char *option, const char *value,
                                presto_error *err) {
    PRESTO_TRY(presto__text_add(text, err, " %s ", option));
    return presto__text_add_shell(text, value, err);
}

static presto_status add_number(presto_buffer *text, const char *option, uint64_t value,
                                presto_error *err) {
    return presto__text_add(text, err, " %s %" PRIu64, option, value);
}

static presto_status add_pipeline(const presto_sweep *sweep, presto_buffer *text,
                                  presto_error *err) {
    PRESTO_TRY(add_option(text, "-p", sweep->pipeline, err));
    for (size_t i = 0; i < sweep->set_count; i++)
        PRESTO_TRY(add_option(text, "--set", sweep->set[i], err));
    if (presto__needs_seekable(sweep))
        PRESTO_TRY(add_option(text, "--set", PRESTO_SET_SEEKABLE, err));
    for (size_t i = 0; i < sweep->plugin_count; i++)
        PRESTO_TRY(add_option(text, "--plugin", sweep->plugins[i], err));
    return PRESTO_OK;
}

/* Operands, after "--" if one looks like an option. */
static presto_status add_operands(presto_buffer *text, char *const *operands, size_t count,
                                  presto_error *err) {
    bool guard = false;
    for (size_t i = 0; i < count; i++)
        guard = guard || operands[i][0] == '-';
    if (guard)
        PRESTO_TRY(presto__text_add(text, err, " --"));
    for (size_t i = 0; i < count; i++) {
        PRESTO_TRY(presto__text_add(text, err, " "));
        PRESTO_TRY(presto__text_add_shell(text, operands[i], err));
    }
    return PRESTO_OK;
}

char *presto__on_error_format(const presto_sweep *sweep, char text_out[PRESTO__ON_ERROR_BYTES]) {
    const presto_loader_errors *errors = &sweep->errors;
    text_out[0] = '\0';
    if (errors->policy != PRESTO_ON_ERROR_SKIP)
        return text_out;
    if (errors->skip_limit != UINT64_MAX)
        snprintf(text_out, PRESTO__ON_ERROR_BYTES, "skip:%" PRIu64, errors->skip_limit);
    else if (errors->skip_fraction < 1) {
        char percent[32];
        presto__decimal_format(percent, sizeof percent, 9, 100 * errors->skip_fraction);
        snprintf(text_out, PRESTO__ON_ERROR_BYTES, "skip:%s%%", percent);
    } else
        snprintf(text_out, PRESTO__ON_ERROR_BYTES, "skip");
    return text_out;
}

static presto_status add_on_error(const presto_sweep *sweep, presto_buffer *text,
                                  presto_error *err) {
    char policy[PRESTO__ON_ERROR_BYTES];
    presto__on_error_format(sweep, policy);
    return policy[0] != '\0' ? add_option(text, "--on-error", policy, err) : PRESTO_OK;
}

presto_status presto__write_command(const presto_sweep *sweep, presto_buffer *text_out,
                                    presto_error *err) {
    const presto_strategy *best = best_of(sweep);
    if (best->codec == NULL)
        return PRESTO_OK;
    char *dir = presto__dataset_dir(sweep);
    if (dir == NULL)
        return presto_fail_memory(err, strlen(sweep->pipeline_name));
    presto_status status = presto__text_add(text_out, err, "presto-write");
    if (status == PRESTO_OK)
        status = add_pipeline(sweep, text_out, err);
    if (status == PRESTO_OK)
        status = add_option(text_out, "-u", best->stored, err);
    if (status == PRESTO_OK)
        status = add_option(text_out, "-c", best->codec, err);
    if (status == PRESTO_OK)
        status = add_number(text_out, "-s", best->shards, err);
    if (status == PRESTO_OK)
        status = add_number(text_out, "-j", best->threads, err);
    if (status == PRESTO_OK && sweep->seed != 0)
        status = add_number(text_out, "--seed", sweep->seed, err);
    if (status == PRESTO_OK)
        status = add_on_error(sweep, text_out, err);
    if (status == PRESTO_OK)
        status = add_option(text_out, "-o", dir, err);
    if (status == PRESTO_OK)
        status = add_operands(text_out, sweep->paths, sweep->path_count, err);
    free(dir);
    return status;
}

static presto_status add_load_options(const presto_sweep *sweep, presto_buffer *text,
                                      presto_error *err) {
    PRESTO_TRY(add_number(text, "-j", best_of(sweep)->threads, err));
    PRESTO_TRY(add_number(text, "-b", sweep->facts.batch_samples, err));
    if (sweep->seed != 0)
        PRESTO_TRY(add_number(text, "--seed", sweep->seed, err));
    PRESTO_TRY(add_on_error(sweep, text, err));
    return add_option(text, "--format", "null", err);
}

presto_status presto__load_command(const presto_sweep *sweep, presto_buffer *text_out,
                                   presto_error *err) {
    PRESTO_TRY(presto__text_add(text_out, err, "presto-load"));
    if (best_of(sweep)->codec == NULL) {
        PRESTO_TRY(add_pipeline(sweep, text_out, err));
        PRESTO_TRY(add_load_options(sweep, text_out, err));
        return add_operands(text_out, sweep->paths, sweep->path_count, err);
    }
    if (sweep->runs_code)
        PRESTO_TRY(add_pipeline(sweep, text_out, err));
    PRESTO_TRY(add_load_options(sweep, text_out, err));
    char *dir = presto__dataset_dir(sweep);
    if (dir == NULL)
        return presto_fail_memory(err, strlen(sweep->pipeline_name));
    presto_status status = add_operands(text_out, &dir, 1, err);
    free(dir);
    return status;
}
