/* SPDX-License-Identifier: Apache-2.0 */
#include "feature_options.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <presto/text.h>

#include "../cli/cli.h"

void feature_options_names(const char *option, const char *text, void *place, void *beside) {
    feature_options *self = place;
    (void)beside;
    free(self->names);
    self->name_count = cli_list(option, text, &self->names);
    for (size_t i = 1; i < self->name_count; i++)
        for (size_t j = 0; j < i; j++)
            if (strcmp(self->names[i], self->names[j]) == 0)
                cli_usage("%s: '%s' is named twice", option, self->names[i]);
}

static void *grow(void *memory, size_t bytes) {
    void *grown = realloc(memory, bytes);
    if (grown == NULL) {
        cli_message("out of memory");
        exit(CLI_FAILED);
    }
    return grown;
}

static char *copy_name(const char *from, const char *end) {
    size_t bytes = (size_t)(end - from);
    char *name = grow(NULL, bytes + 1);
    memcpy(name, from, bytes);
    name[bytes] = '\0';
    return name;
}

/* FEATURE=VALUE[:LENGTH]; FEATURE may have an = in it. */
void feature_options_pad(const char *option, const char *text, void *place, void *beside) {
    feature_options *self = place;
    (void)beside;
    const char *value = strrchr(text, '=');
    char *end = NULL;
    presto_pad pad = {0};
    if (value == NULL || value == text)
        cli_usage("%s: '%s' is not FEATURE=VALUE or FEATURE=VALUE:LENGTH", option, text);
    pad.value = strtod(value + 1, &end);
    if (end == value + 1 || (*end != '\0' && *end != ':') || !isfinite(pad.value))
        cli_usage("%s: '%s' is not a number, or a number and :LENGTH", option, value + 1);
    if (*end == ':')
        pad.length = cli_number(option, end + 1, 1, UINT32_MAX);
    size_t count = self->pad_count + 1;
    self->pads = grow(self->pads, count * sizeof *self->pads);
    self->pad_names = grow((void *)self->pad_names, count * sizeof *self->pad_names);
    self->pad_names[count - 1] = copy_name(text, value);
    pad.feature = self->pad_names[count - 1];
    for (size_t i = 0; i + 1 < count; i++)
        if (strcmp(self->pad_names[i], pad.feature) == 0)
            cli_usage("%s: '%s' is named twice", option, pad.feature);
    self->pads[count - 1] = pad;
    self->pad_count = count;
}

/* FEATURE=TYPE; FEATURE may have an = in it. */
void feature_options_type(const char *option, const char *text, void *place, void *beside) {
    feature_options *self = place;
    (void)beside;
    static const char *const types[] = {"list", "utf8", NULL};
    const char *type = strrchr(text, '=');
    if (type == NULL || type == text)
        cli_usage("%s: '%s' is not FEATURE=list or FEATURE=utf8", option, text);
    size_t chosen = cli_choice(option, type + 1, types), count = self->type_count + 1;
    self->types = grow(self->types, count * sizeof *self->types);
    self->type_names = grow((void *)self->type_names, count * sizeof *self->type_names);
    self->type_names[count - 1] = copy_name(text, type);
    self->types[count - 1] = (presto_arrow_type){
        self->type_names[count - 1], chosen == 0 ? PRESTO_ARROW_LIST : PRESTO_ARROW_UTF8};
    self->type_count = count;
}

void feature_options_done(feature_options *self) {
    for (size_t i = 0; i < self->pad_count; i++)
        free(self->pad_names[i]);
    for (size_t i = 0; i < self->type_count; i++)
        free(self->type_names[i]);
    free((void *)self->type_names);
    free(self->types);
    free((void *)self->pad_names);
    free(self->pads);
    free(self->names);
}

/* The feature that was probably meant by `name`, or NULL. */
static presto_status find_near(const presto_feature_spec *features, size_t count, const char *name,
                               const char **near_out, presto_error *err) {
    const char **names = calloc(count + 1, sizeof *names);
    if (names == NULL)
        return presto_fail_memory(err, (count + 1) * sizeof *names);
    for (size_t i = 0; i < count; i++)
        names[i] = features[i].name;
    *near_out = presto_text_nearest(name, names);
    free((void *)names);
    return PRESTO_OK;
}

static presto_status check_feature(const presto_stream *stream, const char *name,
                                   presto_error *err) {
    size_t count = 0, used = 0;
    const presto_feature_spec *features = presto_source_features(stream->source, &count);
    bool is_foreign = stream->dataset != NULL && !presto_dataset_is_ours(stream->dataset);
    char have[300] = "";
    size_t part_count;
    const char *near = NULL;
    if (is_foreign || (count == 0 && presto_source_parts(stream->source, &part_count) != NULL))
        return PRESTO_OK;
    for (size_t i = 0; i < count; i++) {
        if (strcmp(features[i].name, name) == 0)
            return PRESTO_OK;
        if (used < sizeof have)
            used += (size_t)snprintf(have + used, sizeof have - used, "%s%s", i > 0 ? ", " : "",
                                     features[i].name);
    }
    PRESTO_TRY(find_near(features, count, name, &near, err));
    return presto_fail(err, PRESTO_ERR_NOT_FOUND, PRESTO_NO_OFFSET,
                       "the samples have no feature '%s'%s%s%s; they have: %s", name,
                       near != NULL ? ", did you mean '" : "", near != NULL ? near : "",
                       near != NULL ? "'" : "", have);
}

presto_status feature_options_apply(feature_options *self, const presto_stream *stream,
                                    bool only_main, presto_loader_options *loader,
                                    presto_error *err) {
    for (size_t i = 0; i < self->name_count; i++)
        PRESTO_TRY(check_feature(stream, self->names[i], err));
    for (size_t i = 0; i < self->pad_count; i++)
        PRESTO_TRY(check_feature(stream, self->pads[i].feature, err));
    for (size_t i = 0; i < self->type_count; i++)
        PRESTO_TRY(check_feature(stream, self->types[i].feature, err));
    loader->features = (const char *const *)self->names;
    loader->feature_count = self->name_count;
    self->main = presto_source_main_feature(stream->source);
    if (only_main && self->name_count == 0 && self->main != NULL) {
        loader->features = &self->main;
        loader->feature_count = 1;
    }
    loader->pads = self->pads;
    loader->pad_count = self->pad_count;
    return PRESTO_OK;
}
