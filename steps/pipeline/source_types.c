/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Declares the kinds of source that a pipeline may name. The loader implements them.
 */
#include <presto/numbers.h>

#include "../pipelines_internal.h"
#include "pipeline_internal.h"

enum { FILES_MATCH, FILES_LABEL, FILES_CLASSES, FILES_FEATURE, FILES_MAX_BYTES, FILES_COUNT };

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
                         "name in source.classes, else among all, sorted); csv:FILE, lines of "
                         "path,label (int64 or float32 if all are numbers, else position as "
                         "above); csv-class:FILE (position, numbers too)"},
    [FILES_CLASSES] = PRESTO__CLASSES_OPTION,
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

static presto_status check_label(const char *label, presto_error *err) {
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
    return PRESTO_OK;
}

static presto_status check_files(const presto_option *options, presto_error *err) {
    PRESTO_TRY(check_label(options[FILES_LABEL].text, err));
    return presto__source_check_feature(options[FILES_FEATURE].text, err);
}

/* ---- hdf5 ---- */

enum {
    HDF5_MATCH,
    HDF5_LABEL,
    HDF5_CLASSES,
    HDF5_FEATURE,
    HDF5_DATASETS,
    HDF5_SAMPLES,
    HDF5_MAX_CHUNK_BYTES,
    HDF5_COUNT
};

static const presto_option_type hdf5_options[] = {
    [HDF5_MATCH] = {.name = "match",
                    .kind = PRESTO_OPTION_TEXT_LIST,
                    .default_text = "*.h5,*.hdf5",
                    .help = "as for files"},
    [HDF5_LABEL] = {.name = "label",
                    .kind = PRESTO_OPTION_TEXT,
                    .default_text = "none",
                    .file_prefixes = csv_prefixes,
                    .help = "as for files; all windows of a file have its label"},
    [HDF5_CLASSES] = PRESTO__CLASSES_OPTION,
    [HDF5_FEATURE] = {.name = "feature",
                      .kind = PRESTO_OPTION_TEXT,
                      .default_text = "signal",
                      .help = "name of the feature that the steps work on"},
    [HDF5_DATASETS] = {.name = "datasets",
                       .kind = PRESTO_OPTION_TEXT_LIST,
                       .default_text = "voltage,current",
                       .help = "the datasets of each file that become the rows, in this order: "
                               "[n] or [n,1], of one length, floats of 4 or 8 bytes or integers "
                               "of up to 4, which all become float64; contiguous, or in chunks "
                               "with the filters gzip, shuffle and fletcher32"},
    [HDF5_SAMPLES] = {.name = "samples",
                      .kind = PRESTO_OPTION_INT,
                      .default_text = "64000",
                      .minimum = 1,
                      .maximum = 268435456,
                      .unit = "values",
                      .help = "length of a window; what is left at the end of a file is left out, "
                              "and told"},
    [HDF5_MAX_CHUNK_BYTES] = {.name = "max-chunk-bytes",
                              .kind = PRESTO_OPTION_SIZE,
                              .default_text = "256MiB",
                              .minimum = 1,
                              .maximum = 4294967296.0,
                              .help = "files with larger chunks are errors: each worker holds a "
                                      "chunk of every dataset"},
};

/* As large as the output of a step may be. */
#define MOST_WINDOW_BYTES ((uint64_t)4 << 30)

static presto_status check_hdf5(const presto_option *options, presto_error *err) {
    PRESTO_TRY(check_label(options[HDF5_LABEL].text, err));
    PRESTO_TRY(presto__source_check_feature(options[HDF5_FEATURE].text, err));
    size_t rows = options[HDF5_DATASETS].text_count;
    uint64_t row_bytes = (uint64_t)options[HDF5_SAMPLES].integer * sizeof(double);
    if (rows == 0 || rows > MOST_WINDOW_BYTES / row_bytes)
        return presto_fail(
            err, PRESTO_ERR_SYNTAX, PRESTO_NO_OFFSET,
            "%zu dataset%s with windows of %jd value%s: at least one dataset, and at "
            "most 4 GiB a window",
            rows, presto_plural(rows), (intmax_t)options[HDF5_SAMPLES].integer,
            presto_plural((uint64_t)options[HDF5_SAMPLES].integer));
    return PRESTO_OK;
}

static void infer_hdf5(const presto_option *options, presto_tensor_spec *output_io) {
    output_io->dims[0] = (int64_t)options[HDF5_DATASETS].text_count;
    output_io->dims[1] = options[HDF5_SAMPLES].integer;
}

/* ---- synthetic ---- */

enum {
    SYNTHETIC_DTYPE,
    SYNTHETIC_SIZE,
    SYNTHETIC_COUNT,
    SYNTHETIC_SEED,
    SYNTHETIC_FEATURE,
    SYNTHETIC_OPTION_COUNT
};

static const char *const synthetic_dtypes[] = {"uint8", "float32", NULL};

static const presto_option_type synthetic_options[] = {
    [SYNTHETIC_DTYPE] = {.name = "dtype",
                         .kind = PRESTO_OPTION_CHOICE,
                         .default_text = "uint8",
                         .choices = synthetic_dtypes,
                         .help = "uint8: all 256 values alike; float32: from 0 to below 1"},
    [SYNTHETIC_SIZE] = {.name = "size",
                        .kind = PRESTO_OPTION_SIZE,
                        .default_text = "1000000",
                        .minimum = 1,
                        .maximum = 4294967296.0,
                        .help = "bytes a sample"},
    [SYNTHETIC_COUNT] = {.name = "count",
                         .kind = PRESTO_OPTION_INT,
                         .default_text = "1000",
                         .minimum = 1,
                         .maximum = 1073741824,
                         .unit = "samples",
                         .help = "how many there are"},
    [SYNTHETIC_SEED] = {.name = "seed",
                        .kind = PRESTO_OPTION_INT,
                        .default_text = "1",
                        .minimum = 0,
                        .maximum = 9007199254740992.0,
                        .help = "a sample depends on this and its number, and on nothing else"},
    [SYNTHETIC_FEATURE] = {.name = "feature",
                           .kind = PRESTO_OPTION_TEXT,
                           .default_text = "signal",
                           .help = "name of the feature that the steps work on"},
};

static presto_dtype synthetic_dtype(const presto_option *options) {
    return options[SYNTHETIC_DTYPE].choice == 0 ? PRESTO_UINT8 : PRESTO_FLOAT32;
}

static presto_status check_synthetic(const presto_option *options, presto_error *err) {
    size_t value_bytes = presto_dtype_bytes(synthetic_dtype(options));
    if (options[SYNTHETIC_SIZE].integer % (int64_t)value_bytes != 0)
        return presto_fail(err, PRESTO_ERR_SYNTAX, PRESTO_NO_OFFSET,
                           "option 'size' is %jd byte%s, which is no whole number of %zu",
                           (intmax_t)options[SYNTHETIC_SIZE].integer,
                           presto_plural((uint64_t)options[SYNTHETIC_SIZE].integer), value_bytes);
    return presto__source_check_feature(options[SYNTHETIC_FEATURE].text, err);
}

static void infer_synthetic(const presto_option *options, presto_tensor_spec *output_io) {
    output_io->dtype = synthetic_dtype(options);
    output_io->dims[0] =
        options[SYNTHETIC_SIZE].integer / (int64_t)presto_dtype_bytes(output_io->dtype);
}

/* ---- clips with transcripts ---- */

enum { VOICE_TABLE, VOICE_COLUMNS, VOICE_FEATURE, VOICE_MAX_BYTES, VOICE_COUNT };
enum { SPEECH_ENDING, SPEECH_FEATURE, SPEECH_MAX_BYTES, SPEECH_COUNT };

#define FEATURE_OPTION                                                                             \
    {                                                                                              \
        .name = "feature", .kind = PRESTO_OPTION_TEXT, .default_text = "audio",                    \
        .help = "name of the feature that the steps work on"                                       \
    }
#define MAX_BYTES_OPTION                                                                           \
    {                                                                                              \
        .name = "max-bytes", .kind = PRESTO_OPTION_SIZE, .default_text = "512MiB", .minimum = 1,   \
        .maximum = 1099511627776.0, .help = "as for files"                                         \
    }

static const presto_option_type voice_options[] = {
    [VOICE_TABLE] = {.name = "table",
                     .kind = PRESTO_OPTION_TEXT,
                     .default_text = "train.tsv",
                     .help = "the table of a folder that is given as source: train.tsv, dev.tsv, "
                             "test.tsv, validated.tsv, ..."},
    [VOICE_COLUMNS] = {.name = "columns",
                       .kind = PRESTO_OPTION_TEXT_LIST,
                       .help = "further columns of the table that become features, as texts: "
                               "client_id, age, ..."},
    [VOICE_FEATURE] = FEATURE_OPTION,
    [VOICE_MAX_BYTES] = MAX_BYTES_OPTION,
};

static const presto_option_type speech_options[] = {
    [SPEECH_ENDING] = {.name = "ending",
                       .kind = PRESTO_OPTION_TEXT,
                       .default_text = ".flac",
                       .help = "what follows an ID in the name of its file"},
    [SPEECH_FEATURE] = FEATURE_OPTION,
    [SPEECH_MAX_BYTES] = MAX_BYTES_OPTION,
};

/* Names of features that a source or decode-audio gives are taken. */
static presto_status check_name(const char *option, const char *name, presto_error *err) {
    static const char *const taken[] = {"key", "label", "transcript", "speaker", "chapter", "rate"};
    for (size_t i = 0; i < sizeof taken / sizeof taken[0]; i++)
        if (strcmp(taken[i], name) == 0 || name[0] == '\0')
            return presto_fail(err, PRESTO_ERR_SYNTAX, PRESTO_NO_OFFSET,
                               "option '%s' has '%s': a name is needed, and 'key', 'label', "
                               "'transcript', 'speaker', 'chapter' and 'rate' are taken",
                               option, name);
    return PRESTO_OK;
}

/* A file name that stays in its folder. */
static presto_status check_part(const char *option, const char *text, presto_error *err) {
    if (text[0] == '\0' || strchr(text, '/') != NULL)
        return presto_fail(err, PRESTO_ERR_SYNTAX, PRESTO_NO_OFFSET,
                           "option '%s' is '%s', must not be empty nor hold '/'", option, text);
    return PRESTO_OK;
}

static presto_status check_voice(const presto_option *options, presto_error *err) {
    const presto_option *columns = &options[VOICE_COLUMNS];
    const char *feature = options[VOICE_FEATURE].text;
    PRESTO_TRY(check_part("table", options[VOICE_TABLE].text, err));
    PRESTO_TRY(check_name("feature", feature, err));
    for (size_t i = 0; i < columns->text_count; i++) {
        PRESTO_TRY(check_name("columns", columns->texts[i], err));
        bool is_double = strcmp(columns->texts[i], feature) == 0;
        for (size_t k = 0; k < i; k++)
            is_double = is_double || strcmp(columns->texts[i], columns->texts[k]) == 0;
        if (is_double)
            return presto_fail(err, PRESTO_ERR_SYNTAX, PRESTO_NO_OFFSET,
                               "option 'columns' has '%s', which another feature is called",
                               columns->texts[i]);
    }
    return PRESTO_OK;
}

static presto_status check_speech(const presto_option *options, presto_error *err) {
    PRESTO_TRY(check_part("ending", options[SPEECH_ENDING].text, err));
    return check_name("feature", options[SPEECH_FEATURE].text, err);
}

/* ---- tfrecord ---- */

enum {
    RECORD_FEATURE,
    RECORD_LABEL,
    RECORD_CLASSES,
    RECORD_FEATURES,
    RECORD_CODEC,
    RECORD_BEHIND,
    RECORD_COUNT
};

static const presto_option_type record_options[] = {
    [RECORD_FEATURE] = {.name = "feature",
                        .kind = PRESTO_OPTION_TEXT,
                        .help = "name of the feature that the steps work on, such as "
                                "image/encoded; a dataset that presto-write made says it itself, "
                                "and where there is only one, it is that one"},
    [RECORD_LABEL] = {.name = "label",
                      .kind = PRESTO_OPTION_TEXT,
                      .default_text = "none",
                      .help = "the feature that becomes `label`, such as image/class/label; none: "
                              "no feature is renamed"},
    [RECORD_CLASSES] = {.name = "classes",
                        .kind = PRESTO_OPTION_NAMES,
                        .help = "what the numbers of the label stand for, or which texts it holds, "
                                "which become numbers: as for files; a dataset that has other "
                                "names for them is an error"},
    [RECORD_FEATURES] = {.name = "features",
                         .kind = PRESTO_OPTION_TEXT_LIST,
                         .help = "other features that come along, by their names in the records; "
                                 "without this option, all"},
    [RECORD_CODEC] = {.name = "codec",
                      .kind = PRESTO_OPTION_TEXT,
                      .help = "how each record of another program is compressed: zlib, gzip, zstd, "
                              "...; a dataset that presto-write made says it itself"},
    [RECORD_BEHIND] = {.name = "steps-behind",
                       .kind = PRESTO_OPTION_INT,
                       .default_text = "0",
                       .minimum = 0,
                       .maximum = PRESTO__PIPELINE_MAX_STEPS,
                       .unit = "steps",
                       .help = "set by --from: the steps that it leaves out, so that random steps "
                               "draw the same numbers as in the whole pipeline"},
};

static presto_status check_records(const presto_option *options, presto_error *err) {
    const presto_option *feature = &options[RECORD_FEATURE], *list = &options[RECORD_FEATURES];
    const char *label = options[RECORD_LABEL].text;
    bool has_label = strcmp(label, "none") != 0;
    if (label[0] == '\0' || (feature->is_set && feature->text[0] == '\0'))
        return presto_fail(err, PRESTO_ERR_SYNTAX, PRESTO_NO_OFFSET,
                           "options 'feature' and 'label' need the name of a feature");
    if (feature->is_set && has_label &&
        (strcmp(feature->text, label) == 0 || strcmp(feature->text, "label") == 0))
        return presto_fail(err, PRESTO_ERR_SYNTAX, PRESTO_NO_OFFSET,
                           "option 'feature' is '%s', which the label is or is called",
                           feature->text);
    for (size_t i = 0; i < list->text_count; i++)
        if (list->texts[i][0] == '\0')
            return presto_fail(err, PRESTO_ERR_SYNTAX, PRESTO_NO_OFFSET,
                               "option 'features' has an empty name");
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
    {
        .name = "hdf5",
        .summary = "Windows of one-dimensional HDF5 datasets, such as voltage and current over an "
                   "hour: float64[datasets, samples]. A file gives as many samples as it has whole "
                   "windows; `key` is its relative path and the number of the window: "
                   "`day1/08.h5#17`.",
        .options = hdf5_options,
        .option_count = HDF5_COUNT,
        .output = {PRESTO_FLOAT64, 2, {-1, -1}},
        .check = check_hdf5,
        .infer = infer_hdf5,
        .yields = "decoded",
    },
    {
        .name = "synthetic",
        .summary = "Random samples of one size, uint8[n] or float32[n], made from a seed as fast "
                   "as memory takes them. Programs get no SOURCE.",
        .options = synthetic_options,
        .option_count = SYNTHETIC_OPTION_COUNT,
        .output = {PRESTO_DTYPE_UNKNOWN, 1, {-1}},
        .check = check_synthetic,
        .infer = infer_synthetic,
        .yields = "generated",
        .takes_no_paths = true,
    },
    {
        .name = "common-voice",
        .summary = "Clips of Common Voice, in the order of a table: each row of `train.tsv` whose "
                   "`path` is a file in the folder `clips` beside it. The feature `transcript` is "
                   "the column `sentence`. A source is the folder, or a table.",
        .options = voice_options,
        .option_count = VOICE_COUNT,
        .output = {PRESTO_STRING, 0, {0}},
        .check = check_voice,
    },
    {
        .name = "librispeech",
        .summary = "Utterances of LibriSpeech: each line of a `*.trans.txt` whose ID has a file "
                   "beside it, `103-1240-0002.flac`. Features are `transcript`, and `speaker` and "
                   "`chapter` (int64), the first two numbers of the ID.",
        .options = speech_options,
        .option_count = SPEECH_COUNT,
        .output = {PRESTO_STRING, 0, {0}},
        .check = check_speech,
    },
    {
        .name = "tfrecord",
        .summary = "TFRecord files that hold `tf.train.Example`s, of any program, plain or "
                   "compressed as a whole (.gz); folders are searched for them recursively. Or a "
                   "dataset that presto-write made. `--from REPRESENTATION` puts this source in "
                   "the place of the source of any pipeline.",
        .options = record_options,
        .option_count = RECORD_COUNT,
        .output = {PRESTO_DTYPE_UNKNOWN, -1, {0}},
        .check = check_records,
        .yields = "concatenated",
        .takes_records = true,
    },
};
#define TYPE_COUNT (sizeof types / sizeof types[0])

static const presto_source_type *const more[] = {
    &presto__source_type_tar, &presto__source_type_manifest, &presto__source_type_lines,
    &presto__source_type_jsonl, &presto__source_type_csv};
#define MORE_COUNT (sizeof more / sizeof more[0])

const presto_source_type *presto__source_type_at(size_t i) {
    if (i < TYPE_COUNT)
        return &types[i];
    return i - TYPE_COUNT < MORE_COUNT ? more[i - TYPE_COUNT] : NULL;
}

const presto_source_type *presto__source_type_find(const char *name) {
    const presto_source_type *type;
    for (size_t i = 0; (type = presto__source_type_at(i)) != NULL; i++)
        if (strcmp(type->name, name) == 0)
            return type;
    return NULL;
}
