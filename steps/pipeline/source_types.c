/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Declares the kinds of source that a pipeline may name. The loader implements them.
 */
#include "pipeline_internal.h"

enum { FILES_MATCH, FILES_LABEL, FILES_FEATURE, FILES_MAX_BYTES, FILES_COUNT };

static const char *const csv_prefixes[] = {"csv:", "csv-class:", NULL};

static const presto_option_type files_options[] = {
    [FILES_MATCH] = {.name = "match",
                     .kind = PRESTO_OPTION_TEXT_LIST,
                     .default_text = "*",
                     .help = "shell patterns; a file is taken if its name matches one, upper and "
                             "lower case being the same"},
    [FILES_LABEL] = {.name = "label",
                     .kind = PRESTO_OPTION_TEXT,
                     .default_text = "none",
                     .file_prefixes = csv_prefixes,
                     .help =
                         "where the label comes from: none; parent-folder or top-folder, the "
                         "innermost or outermost folder below the source (int64, position of its "
                         "name among all, sorted); csv:FILE, lines of path,label (int64 or float32 "
                         "if all are numbers, else position as above); csv-class:FILE (position, "
                         "numbers too)"},
    [FILES_FEATURE] = {.name = "feature",
                       .kind = PRESTO_OPTION_TEXT,
                       .default_text = "image",
                       .help = "name of the feature that the steps work on"},
    [FILES_MAX_BYTES] = {.name = "max-bytes",
                         .kind = PRESTO_OPTION_SIZE,
                         .default_text = "512MiB",
                         .minimum = 1,
                         .maximum = 1099511627776.0,
                         .help = "files that are larger are errors, before anything of them is "
                                 "read: each is held in memory as a whole"},
};

static presto_status check_files(const presto_option *options, presto_error *err) {
    const char *label = options[FILES_LABEL].text;
    bool is_known = strcmp(label, "none") == 0 || strcmp(label, "parent-folder") == 0 ||
                    strcmp(label, "top-folder") == 0;
    for (size_t i = 0; csv_prefixes[i] != NULL && !is_known; i++) {
        size_t bytes = strlen(csv_prefixes[i]);
        is_known = strncmp(label, csv_prefixes[i], bytes) == 0 && label[bytes] != '\0';
    }
    if (!is_known)
        return presto_fail(err, PRESTO_ERR_SYNTAX, PRESTO_NO_OFFSET,
                           "option 'label' is '%s', must be none, parent-folder, top-folder, "
                           "csv:FILE or csv-class:FILE",
                           label);
    const char *feature = options[FILES_FEATURE].text;
    if (feature[0] == '\0' || strcmp(feature, "label") == 0 || strcmp(feature, "key") == 0)
        return presto_fail(err, PRESTO_ERR_SYNTAX, PRESTO_NO_OFFSET,
                           "option 'feature' is '%s': 'label' and 'key' are taken, and a name is "
                           "needed",
                           feature);
    return PRESTO_OK;
}

static const presto_source_type types[] = {
    {
        .name = "files",
        .summary = "One sample a file: folders are searched recursively, in sorted order; `key` is "
                   "the path relative to the folder.",
        .options = files_options,
        .option_count = FILES_COUNT,
        .output = {PRESTO_STRING, 0, {0}},
        .check = check_files,
    },
};
#define TYPE_COUNT (sizeof types / sizeof types[0])

const presto_source_type *presto_source_type_at(size_t i) {
    return i < TYPE_COUNT ? &types[i] : NULL;
}

const presto_source_type *presto_source_type_find(const char *name) {
    for (size_t i = 0; i < TYPE_COUNT; i++)
        if (strcmp(types[i].name, name) == 0)
            return &types[i];
    return NULL;
}
