/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Arguments that name things of the library: pipelines, representations, codecs. A name that does
 * not exist is a usage error; a pipeline file that cannot be read or parsed is a failure.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"

void cli_add_setting(cli_settings *settings, const char *text) {
    if (settings->count == CLI_MAX_SETTINGS)
        cli_usage("--set: more than %d of them", CLI_MAX_SETTINGS);
    settings->texts[settings->count++] = text;
}

void cli_add_plugin(cli_settings *settings, const char *file) {
    if (settings->plugin_count == CLI_MAX_SETTINGS)
        cli_usage("--plugin: more than %d of them", CLI_MAX_SETTINGS);
    settings->plugins[settings->plugin_count++] = cli_path("--plugin", file);
}

void cli_settings_of_strategy(cli_settings *settings, const presto_strategy_file *strategy) {
    cli_settings given = *settings;
    settings->count = 0;
    settings->is_indirect = true;
    for (size_t i = 0; i < strategy->set_count; i++)
        cli_add_setting(settings, strategy->set[i]);
    for (size_t i = 0; i < given.count; i++)
        cli_add_setting(settings, given.texts[i]);
}

/* Is it surely a text in YAML, without quotes? */
static bool is_plain_text(const char *name) {
    static const char safe[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_/.-";
    return name[strspn(name, safe)] == '\0' && strchr(name, '/') != NULL &&
           strchr("0123456789.-", name[0]) == NULL;
}

void cli_settings_spell_out(cli_settings *settings) {
    static char from[512], feature[1024];
    if (settings->from != NULL) {
        if ((size_t)snprintf(from, sizeof from, "from=%s", settings->from) >= sizeof from)
            cli_usage("--from: the name is too long");
        cli_add_setting(settings, from);
    }
    if (settings->feature == NULL)
        return;
    /* In quotes, as YAML has them: a quote in the name is doubled. */
    const char *quote = is_plain_text(settings->feature) ? "" : "'";
    size_t used = (size_t)snprintf(feature, sizeof feature, "source.feature=%s", quote);
    for (const char *c = settings->feature; *c != '\0'; c++) {
        if (used + 4 > sizeof feature)
            cli_usage("--feature: the name is too long");
        feature[used++] = *c;
        if (*c == '\'')
            feature[used++] = '\'';
    }
    snprintf(feature + used, 2, "%s", quote);
    cli_add_setting(settings, feature);
}

presto_pipeline_options cli_pipeline_options(const cli_settings *settings) {
    return (presto_pipeline_options){.struct_bytes = sizeof(presto_pipeline_options),
                                     .set = settings->texts,
                                     .set_count = settings->count,
                                     .plugins = settings->plugins,
                                     .plugin_count = settings->plugin_count,
                                     .from = settings->from,
                                     .feature = settings->feature,
                                     .code = settings->allows_code   ? PRESTO_CODE_ALWAYS
                                             : settings->is_indirect ? PRESTO_CODE_NEVER
                                                                     : PRESTO_CODE_IF_NAMED};
}

/* After a failure: a wrong name of a representation is a usage error, as for other options. */
static void check_from(const char *name, const cli_settings *settings) {
    presto_pipeline *whole = NULL;
    const presto_pipeline_options reading = {.struct_bytes = sizeof reading,
                                             .code = PRESTO_CODE_NEVER};
    if (settings->from == NULL || presto_pipeline_load(name, &reading, &whole, NULL) < 0)
        return;
    cli_check_representation(whole, "--from", settings->from, false);
    presto_pipeline_free(whole);
}

presto_pipeline *cli_load_pipeline(const char *name, const cli_settings *settings) {
    presto_error err;
    presto_pipeline *pipeline = NULL;
    presto_pipeline_options options = cli_pipeline_options(settings);
    presto_status status = presto_pipeline_load(name, &options, &pipeline, &err);
    if (status == PRESTO_ERR_NOT_FOUND && err.file[0] == '\0')
        cli_usage("--pipeline: %s", err.message);
    if (status < 0) {
        check_from(name, settings);
        exit(cli_error(&err));
    }
    return pipeline;
}

void cli_check_sources(int argc, char **argv, const presto_pipeline *pipeline, const char *what) {
    int least = presto_pipeline_source(pipeline)->takes_no_paths ? 0 : 1;
    cli_check_operands(argc, argv, least, INT32_MAX, what);
}

void cli_check_representation(const presto_pipeline *pipeline, const char *option, const char *name,
                              bool to_store) {
    presto_error err;
    size_t found;
    if (presto_pipeline_representation_named(pipeline, name, to_store, &found, &err) < 0)
        cli_usage("%s: %s", option, err.message);
}

void cli_check_codec(const char *option, const char *text, bool for_tensorflow) {
    presto_codec_spec spec;
    presto_error err;
    presto_status status = presto_codec_parse(text, &spec, &err);
    if (status < 0)
        cli_usage("%s: %s", option, err.message);
    if (for_tensorflow && presto_codec_check_tensorflow(&spec, &err) < 0)
        cli_usage("%s: %s (--tensorflow-readable)", option, err.message);
}

void cli_note_old_names(const presto_strategy_file *strategy, const char *file, bool quiet) {
    if (strategy->has_old_names && !quiet)
        cli_message("note: %s says 'split', which is now called 'stored'; the old name will go",
                    file);
}
