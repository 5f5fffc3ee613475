/* SPDX-License-Identifier: Apache-2.0 */
/* Declares the sources of files that something else lists or holds: tar archives and manifests. */
#include "../../base/decimal_internal.h"
#include "pipeline_internal.h"

/* ---- tar ---- */

enum { TAR_MATCH, TAR_LABEL, TAR_CLASSES, TAR_FEATURES, TAR_FEATURE, TAR_MAX_BYTES, TAR_COUNT };

static const presto_option_type tar_options[] = {
    [TAR_MATCH] = {.name = "match",
                   .kind = PRESTO_OPTION_TEXT_LIST,
                   .default_text = "*.jpg,*.jpeg,*.png,*.flac,*.wav,*.mp3,*.ogg,*.html,*.npy,*.txt",
                   .help = "shell patterns for the main member of a sample, upper and lower case "
                           "being the same: the first pattern that a member matches decides"},
    [TAR_LABEL] = {.name = "label",
                   .kind = PRESTO_OPTION_TEXT,
                   .default_text = "cls",
                   .help = "where the label comes from: none; an extension, such as cls: the whole "
                           "number in that member, if the samples have one; parent-folder or "
                           "top-folder, the innermost or outermost folder of the key, or the name "
                           "of the tar where it has none (int64, position of its name in "
                           "source.classes, else among all, sorted)"},
    [TAR_CLASSES] = PRESTO__CLASSES_OPTION,
    [TAR_FEATURES] = {.name = "features",
                      .kind = PRESTO_OPTION_TEXT_LIST,
                      .help = "extensions of the members that become features beside the main one, "
                              "which each sample must have; default: those that at least half of "
                              "the samples have"},
    [TAR_FEATURE] = {.name = "feature",
                     .kind = PRESTO_OPTION_TEXT,
                     .default_text = "image",
                     .help = "name of the feature that the steps work on"},
    [TAR_MAX_BYTES] = {.name = "max-bytes",
                       .kind = PRESTO_OPTION_SIZE,
                       .default_text = "512MiB",
                       .minimum = 1,
                       .maximum = 1099511627776.0,
                       .help = "samples with more bytes, all members together, are errors: each is "
                               "held in memory as a whole"},
};

static presto_status check_tar(const presto_option *options, presto_error *err) {
    const char *label = options[TAR_LABEL].text;
    if (label[0] == '\0' || label[0] == '.' || strchr(label, ':') != NULL ||
        strchr(label, '/') != NULL)
        return presto_fail(err, PRESTO_ERR_SYNTAX, PRESTO_NO_OFFSET,
                           "option 'label' is '%s', must be none, an extension such as cls, "
                           "parent-folder or top-folder",
                           label);
    for (size_t i = 0; i < options[TAR_FEATURES].text_count; i++) {
        const char *name = options[TAR_FEATURES].texts[i];
        if (name[0] == '\0' || name[0] == '.' || strcmp(name, "key") == 0 ||
            strcmp(name, "label") == 0 || strcmp(name, options[TAR_FEATURE].text) == 0)
            return presto_fail(
                err, PRESTO_ERR_SYNTAX, PRESTO_NO_OFFSET,
                "option 'features' has '%s': an extension without its dot is needed, "
                "and 'key', 'label' and '%s' are taken",
                name, options[TAR_FEATURE].text);
    }
    return presto__source_check_feature(options[TAR_FEATURE].text, err);
}

const presto_source_type presto__source_type_tar = {
    .name = "tar",
    .summary = "Samples in tar files (`.tar`, `.tar.gz`, `.tgz`), as WebDataset has them: "
               "members that stand together and whose paths are equal up to the first dot of "
               "the base name, which is `key`. One member is the main one, read by read-file. "
               "The others become features named as their extension: an int64 from `cls`, "
               "`id`, `index` and `count`, an array from `npy`, bytes from all else; that of "
               "the option `label` becomes `label`.",
    .options = tar_options,
    .option_count = TAR_COUNT,
    .output = {PRESTO_STRING, 0, {0}},
    .check = check_tar,
};

/* ---- manifests ---- */

enum {
    MANIFEST_PATH,
    MANIFEST_LABEL,
    MANIFEST_CLASSES,
    MANIFEST_COLUMNS,
    MANIFEST_TEXTS,
    MANIFEST_MISSING,
    MANIFEST_WHERE,
    MANIFEST_ROOT,
    MANIFEST_MATCH,
    MANIFEST_FEATURE,
    MANIFEST_MAX_BYTES,
    MANIFEST_COUNT
};

static const presto_option_type manifest_options[] = {
    [MANIFEST_PATH] = {.name = "path",
                       .kind = PRESTO_OPTION_TEXT,
                       .help = "the column with the paths; default: the first that is called path, "
                               "file, filename, image, audio_filepath or alike"},
    [MANIFEST_LABEL] = {.name = "label",
                        .kind = PRESTO_OPTION_TEXT,
                        .default_text = "label",
                        .help =
                            "the column that becomes the feature label, if there is one, upper and "
                            "lower case being the same: numbers as they are, else classes (int64, "
                            "position of the name in source.classes, else among those of all "
                            "rows, sorted); none: no label"},
    [MANIFEST_CLASSES] = PRESTO__CLASSES_OPTION,
    [MANIFEST_COLUMNS] = {.name = "columns",
                          .kind = PRESTO_OPTION_TEXT_LIST,
                          .help = "further columns that become features: int64 or float32 if at "
                                  "least half of the cells are numbers, and then a cell that is "
                                  "none is an error; else texts; default: all"},
    [MANIFEST_TEXTS] = {.name = "texts",
                        .kind = PRESTO_OPTION_TEXT_LIST,
                        .help = "columns whose cells are texts, also those that look like numbers "
                                "or like a missing value"},
    [MANIFEST_MISSING] = {.name = "missing",
                          .kind = PRESTO_OPTION_VALUE,
                          .default_text = "error",
                          .help = "a row without a value in a column of numbers, or without a "
                                  "label (an empty cell, NA, nan, null, no key): error; drop "
                                  "leaves the row out; a number, or nan, stands for the value"},
    [MANIFEST_WHERE] = {.name = "where",
                        .kind = PRESTO_OPTION_TEXT_LIST,
                        .help = "COLUMN=VALUE, such as split=train: only rows where all of these "
                                "hold"},
    [MANIFEST_ROOT] = {.name = "root",
                       .kind = PRESTO_OPTION_FILE,
                       .help = "the folder that paths start from; default: the manifest's"},
    [MANIFEST_MATCH] = {.name = "match",
                        .kind = PRESTO_OPTION_TEXT_LIST,
                        .default_text = "*",
                        .help = "shell patterns: files beside those of the manifest that match are "
                                "told if they have no row"},
    [MANIFEST_FEATURE] = {.name = "feature",
                          .kind = PRESTO_OPTION_TEXT,
                          .default_text = "image",
                          .help = "name of the feature that the steps work on"},
    [MANIFEST_MAX_BYTES] = {.name = "max-bytes",
                            .kind = PRESTO_OPTION_SIZE,
                            .default_text = "512MiB",
                            .minimum = 1,
                            .maximum = 1099511627776.0,
                            .help = "as for files"},
};

static presto_status check_manifest(const presto_option *options, presto_error *err) {
    const presto_option *where = &options[MANIFEST_WHERE];
    for (size_t i = 0; i < where->text_count; i++)
        if (strchr(where->texts[i], '=') == NULL || where->texts[i][0] == '=')
            return presto_fail(err, PRESTO_ERR_SYNTAX, PRESTO_NO_OFFSET,
                               "option 'where' has '%s', must be COLUMN=VALUE", where->texts[i]);
    const char *missing = options[MANIFEST_MISSING].text;
    char *end = NULL;
    (void)presto__decimal_parse(missing, &end);
    if (strcmp(missing, "error") != 0 && strcmp(missing, "drop") != 0 &&
        (end == missing || *end != '\0'))
        return presto_fail(err, PRESTO_ERR_SYNTAX, PRESTO_NO_OFFSET,
                           "option 'missing' is '%s', must be error, drop, a number or nan",
                           missing);
    return presto__source_check_feature(options[MANIFEST_FEATURE].text, err);
}

const presto_source_type presto__source_type_manifest = {
    .name = "manifest",
    .summary = "The rows of a table, each with the path of a file: CSV or TSV (`.tsv`), whose "
               "first line names the columns, or JSON Lines (`.jsonl`, `.ndjson`, `.json`). "
               "Programs get the manifest as SOURCE. `key` is the path.",
    .options = manifest_options,
    .option_count = MANIFEST_COUNT,
    .output = {PRESTO_STRING, 0, {0}},
    .check = check_manifest,
};
