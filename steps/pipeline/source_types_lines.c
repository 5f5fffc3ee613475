/* SPDX-License-Identifier: Apache-2.0 */
/* Declares the sources of lines of texts and rows of tables. */
#include "../pipelines_internal.h"
#include "pipeline_internal.h"

#define FEATURE_OPTION                                                                             \
    {                                                                                              \
        .name = "feature", .kind = PRESTO_OPTION_TEXT, .default_text = "text",                     \
        .help = "name of the feature that the steps work on"                                       \
    }
#define MAX_BYTES_OPTION(what)                                                                     \
    {                                                                                              \
        .name = "max-bytes", .kind = PRESTO_OPTION_SIZE, .default_text = "64MiB", .minimum = 1,    \
        .maximum = 2147483648.0,                                                                   \
        .help = what " with more bytes are errors, and not held in memory"                         \
    }

/* ---- lines ---- */

enum { LINES_MATCH, LINES_FEATURE, LINES_MAX_BYTES, LINES_COUNT };

static const presto_option_type lines_options[] = {
    [LINES_MATCH] = {.name = "match",
                     .kind = PRESTO_OPTION_TEXT_LIST,
                     .default_text = "*.txt,*.txt.gz,*.txt.zst",
                     .help = "as for files"},
    [LINES_FEATURE] = FEATURE_OPTION,
    [LINES_MAX_BYTES] = MAX_BYTES_OPTION("lines"),
};

static presto_status check_lines(const presto_option *options, presto_error *err) {
    return presto__source_check_feature(options[LINES_FEATURE].text, err);
}

const presto_source_type presto__source_type_lines = {
    .name = "lines",
    .summary = "Each line of text files is a sample, in UTF-8: plain, or compressed by gzip or "
               "zstd as a whole. An empty line is an empty text. What ends a line (`\\n` or "
               "`\\r\\n`), and a byte order mark, belong to no text.",
    .options = lines_options,
    .option_count = LINES_COUNT,
    .output = {PRESTO_STRING, 0, {0}},
    .check = check_lines,
    .yields = "text",
};

/* ---- fields ---- */

static const struct {
    const char *name;
    presto__field_type type;
} field_types[] = {{"text", PRESTO__FIELD_TEXT},       {"int64", PRESTO__FIELD_INT64},
                   {"float32", PRESTO__FIELD_FLOAT32}, {"json", PRESTO__FIELD_JSON},
                   {"int64[]", PRESTO__FIELD_INT64S},  {"float32[]", PRESTO__FIELD_FLOAT32S}};

presto__field_type presto__field_type_of(const char *text, size_t *name_bytes_out) {
    const char *colon = strrchr(text, ':');
    *name_bytes_out = colon == NULL ? strlen(text) : (size_t)(colon - text);
    if (colon == NULL)
        return PRESTO__FIELD_TEXT;
    for (size_t i = 0; i < sizeof field_types / sizeof field_types[0]; i++)
        if (strcmp(colon + 1, field_types[i].name) == 0)
            return field_types[i].type;
    return PRESTO__FIELD_UNKNOWN;
}

/* Is it the name of another feature, of those before `i`? */
static bool is_taken(const presto_option *features, size_t i, size_t bytes, const char *main,
                     bool has_label) {
    const char *name = features->texts[i];
    if ((strlen(main) == bytes && strncmp(name, main, bytes) == 0) ||
        (has_label && bytes == 5 && strncmp(name, "label", 5) == 0))
        return true;
    for (size_t k = 0; k < i; k++) {
        size_t other;
        (void)presto__field_type_of(features->texts[k], &other);
        if (other == bytes && strncmp(features->texts[k], name, bytes) == 0)
            return true;
    }
    return false;
}

/* Which are the options `features`, `label` and `feature`. */
typedef struct field_options {
    const presto_option *features;
    const char *label, *main;
    bool is_csv;
} field_options;

static presto_status check_fields(const field_options *options, presto_error *err) {
    const presto_option *features = options->features;
    bool has_label = strcmp(options->label, "none") != 0;
    for (size_t i = 0; i < features->text_count; i++) {
        size_t bytes;
        const char *text = features->texts[i];
        presto__field_type type = presto__field_type_of(text, &bytes);
        bool is_nested = type == PRESTO__FIELD_JSON || type == PRESTO__FIELD_INT64S ||
                         type == PRESTO__FIELD_FLOAT32S;
        if (bytes == 0 || type == PRESTO__FIELD_UNKNOWN || (options->is_csv && is_nested))
            return presto_fail(err, PRESTO_ERR_SYNTAX, PRESTO_NO_OFFSET,
                               "option 'features' has '%s', must be NAME, or NAME:TYPE with the "
                               "type %s",
                               text,
                               options->is_csv ? "text, int64 or float32"
                                               : "text, int64, float32, json, int64[] or "
                                                 "float32[]");
        if (is_taken(features, i, bytes, options->main, has_label))
            return presto_fail(err, PRESTO_ERR_SYNTAX, PRESTO_NO_OFFSET,
                               "option 'features' has '%s', which another feature is called", text);
    }
    if (has_label && strcmp(options->main, "label") == 0)
        return presto_fail(err, PRESTO_ERR_SYNTAX, PRESTO_NO_OFFSET,
                           "option 'feature' is 'label', which the label is called");
    return presto__source_check_feature(options->main, err);
}

#define LABEL_OPTION(what)                                                                         \
    {                                                                                              \
        .name = "label", .kind = PRESTO_OPTION_TEXT, .default_text = "none",                       \
        .help = "the " what " that becomes the feature label, int64: whole numbers, or names "     \
                "that source.classes numbers; none: no label"                                      \
    }

/* ---- jsonl ---- */

enum {
    JSONL_TEXT,
    JSONL_LABEL,
    JSONL_CLASSES,
    JSONL_FEATURES,
    JSONL_MATCH,
    JSONL_FEATURE,
    JSONL_MAX_BYTES,
    JSONL_COUNT
};

static const presto_option_type jsonl_options[] = {
    [JSONL_TEXT] = {.name = "text",
                    .kind = PRESTO_OPTION_TEXT,
                    .default_text = "text",
                    .help = "the field, a text, that the steps work on"},
    [JSONL_LABEL] = LABEL_OPTION("field"),
    [JSONL_CLASSES] = PRESTO__CLASSES_OPTION_OR("Without it, labels are whole numbers"),
    [JSONL_FEATURES] = {.name = "features",
                        .kind = PRESTO_OPTION_TEXT_LIST,
                        .help = "further fields that become features, as NAME, a text, or "
                                "NAME:TYPE: text, int64, float32, int64[] and float32[] (lists), "
                                "json (any value, as its text)"},
    [JSONL_MATCH] = {.name = "match",
                     .kind = PRESTO_OPTION_TEXT_LIST,
                     .default_text = "*.jsonl,*.jsonl.gz,*.jsonl.zst,*.ndjson,*.ndjson.gz,"
                                     "*.ndjson.zst,*.json,*.json.gz,*.json.zst",
                     .help = "as for files"},
    [JSONL_FEATURE] = FEATURE_OPTION,
    [JSONL_MAX_BYTES] = MAX_BYTES_OPTION("lines"),
};

static presto_status check_jsonl(const presto_option *options, presto_error *err) {
    const field_options fields = {&options[JSONL_FEATURES], options[JSONL_LABEL].text,
                                  options[JSONL_FEATURE].text, false};
    return check_fields(&fields, err);
}

const presto_source_type presto__source_type_jsonl = {
    .name = "jsonl",
    .summary = "JSON Lines: each line of the files is an object and a sample: plain, or compressed "
               "by gzip or zstd as a whole. Lines of white space are none. A field that is asked "
               "for and missing, null, or of another type is an error of its sample.",
    .options = jsonl_options,
    .option_count = JSONL_COUNT,
    .output = {PRESTO_STRING, 0, {0}},
    .check = check_jsonl,
    .yields = "text",
};

/* ---- csv ---- */

enum {
    CSV_TEXT,
    CSV_LABEL,
    CSV_CLASSES,
    CSV_FEATURES,
    CSV_DELIMITER,
    CSV_NAMES,
    CSV_MATCH,
    CSV_FEATURE,
    CSV_MAX_BYTES,
    CSV_COUNT
};

static const presto_option_type csv_options[] = {
    [CSV_TEXT] = {.name = "text",
                  .kind = PRESTO_OPTION_TEXT,
                  .default_text = "text",
                  .help = "the column that the steps work on"},
    [CSV_LABEL] = LABEL_OPTION("column"),
    [CSV_CLASSES] = PRESTO__CLASSES_OPTION_OR("Without it, labels are whole numbers"),
    [CSV_FEATURES] = {.name = "features",
                      .kind = PRESTO_OPTION_TEXT_LIST,
                      .help = "further columns that become features, as NAME, a text, or "
                              "NAME:TYPE: text, int64, float32"},
    [CSV_DELIMITER] = {.name = "delimiter",
                       .kind = PRESTO_OPTION_TEXT,
                       .default_text = "auto",
                       .help = "the character between fields, or tab; auto: a tab if the first "
                               "file is called .tsv, else a comma"},
    [CSV_NAMES] = {.name = "names",
                   .kind = PRESTO_OPTION_TEXT_LIST,
                   .help = "the names of the columns, of files whose first row does not name them"},
    [CSV_MATCH] = {.name = "match",
                   .kind = PRESTO_OPTION_TEXT_LIST,
                   .default_text = "*.csv,*.csv.gz,*.csv.zst,*.tsv,*.tsv.gz,*.tsv.zst",
                   .help = "as for files"},
    [CSV_FEATURE] = FEATURE_OPTION,
    [CSV_MAX_BYTES] = MAX_BYTES_OPTION("rows"),
};

static presto_status check_csv(const presto_option *options, presto_error *err) {
    const char *delimiter = options[CSV_DELIMITER].text;
    const field_options fields = {&options[CSV_FEATURES], options[CSV_LABEL].text,
                                  options[CSV_FEATURE].text, true};
    bool is_word = strcmp(delimiter, "auto") == 0 || strcmp(delimiter, "tab") == 0 ||
                   strcmp(delimiter, "\\t") == 0;
    bool is_byte = strlen(delimiter) == 1 && (unsigned char)*delimiter < 0x80 &&
                   strchr("\"\r\n", *delimiter) == NULL;
    if (!is_word && !is_byte)
        return presto_fail(err, PRESTO_ERR_SYNTAX, PRESTO_NO_OFFSET,
                           "option 'delimiter' is '%s', must be auto, tab or one character of "
                           "ASCII that is no quote and no line end",
                           delimiter);
    return check_fields(&fields, err);
}

const presto_source_type presto__source_type_csv = {
    .name = "csv",
    .summary = "Each row of CSV or TSV files is a sample: plain, or compressed by gzip or zstd as "
               "a whole. Quotes and line ends in them are read as by Python's csv module; empty "
               "lines are no rows. The first row names the columns.",
    .options = csv_options,
    .option_count = CSV_COUNT,
    .output = {PRESTO_STRING, 0, {0}},
    .check = check_csv,
    .yields = "text",
};
