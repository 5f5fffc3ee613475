/* SPDX-License-Identifier: Apache-2.0 */
/* What --from and --feature say is a change of the pipeline, as --set says it. --index is an option
 * of the stream. */
#include "record_options.h"

#include <stdio.h>
#include <string.h>

static char from_setting[512], feature_setting[1024];

/* Is it surely a text in YAML, without quotes? */
static bool is_plain_text(const char *name) {
    static const char safe[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_/.-";
    return name[strspn(name, safe)] == '\0' && strchr(name, '/') != NULL &&
           strchr("0123456789.-", name[0]) == NULL;
}

/* In quotes, as YAML has them: a quote in the name is doubled. */
static void set_feature(const char *name) {
    const char *quote = is_plain_text(name) ? "" : "'";
    size_t used =
        (size_t)snprintf(feature_setting, sizeof feature_setting, "source.feature=%s", quote);
    for (const char *c = name; *c != '\0'; c++) {
        if (used + 4 > sizeof feature_setting)
            cli_usage("--feature: the name is too long");
        feature_setting[used++] = *c;
        if (*c == '\'')
            feature_setting[used++] = '\'';
    }
    snprintf(feature_setting + used, 2, "%s", quote);
}

void cli_set_record_option(cli_settings *settings, bool is_from, const char *text) {
    char *setting = is_from ? from_setting : feature_setting;
    bool is_first = setting[0] == '\0';
    if (!is_from)
        set_feature(text);
    else if ((size_t)snprintf(from_setting, sizeof from_setting, "from=%s", text) >=
             sizeof from_setting)
        cli_usage("--from: the name is too long");
    if (is_first)
        cli_add_setting(settings, setting);
}

presto_keep_index cli_parse_index(const char *text, const char **dir_out) {
    static const char apart[] = "keep:";
    *dir_out = NULL;
    if (strcmp(text, "none") == 0)
        return PRESTO_KEEP_NO_INDEX;
    if (strcmp(text, "keep") == 0)
        return PRESTO_KEEP_INDEX_BESIDE;
    if (strncmp(text, apart, sizeof apart - 1) != 0 || text[sizeof apart - 1] == '\0')
        cli_usage("--index: '%s' is not one of none, keep, keep:DIR", text);
    *dir_out = text + sizeof apart - 1;
    return PRESTO_KEEP_INDEX_APART;
}

void cli_check_partition(const presto_partition *partition) {
    presto_error err;
    if (partition->ratio != NULL && partition->part == NULL)
        cli_usage("--split %s: which part? Say --part train, --part eval, or its number",
                  partition->ratio);
    if (partition->ratio == NULL && (partition->part != NULL || partition->seed != 0))
        cli_usage("--part and --split-seed need --split, such as --split 90/10");
    if (presto_partition_check(partition, &err) < 0)
        cli_usage("--%s", err.message);
}
