/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rows of options that several programs have, and what reads their arguments. Each takes the struct
 * of the program's options and the field; its text stands here alone.
 */
#ifndef PRESTO_TOOLS_SHARED_OPTIONS_H
#define PRESTO_TOOLS_SHARED_OPTIONS_H

#include "cli.h"

/* ---- which pipeline: `settings` is a cli_settings ---- */

#define CLI_SET_OPTION(job, settings)                                                              \
    {                                                                                              \
        0, "set", "STEP.OPTION=VALUE",                                                             \
            "change an option of the pipeline, also source.OPTION=VALUE; may be given several "    \
            "times",                                                                               \
            NULL, CLI_SPECIAL(job, settings, cli_read_setting)                                     \
    }

#define CLI_PLUGIN_OPTION(job, settings)                                                           \
    {                                                                                              \
        0, "plugin", "FILE",                                                                       \
            "a shared object with steps of your own, which runs its code; may be given several "   \
            "times",                                                                               \
            NULL, CLI_SPECIAL(job, settings, cli_read_plugin)                                      \
    }

#define CLI_ALLOW_OPTION(job, field, where)                                                        \
    {                                                                                              \
        0, "allow-commands", NULL,                                                                 \
            "let the pipeline of " where " start the programs and load the plugins that it names", \
            NULL, CLI_FLAG(job, field)                                                             \
    }

/* ---- which records ---- */

#define CLI_FROM_OPTION(job, field, from_help, from_default)                                       \
    {                                                                                              \
        0, "from", "REPRESENTATION", from_help, from_default, CLI_TEXT(job, field),                \
            CLI_WORDS_OF(cli_representation_at)                                                    \
    }

#define CLI_FEATURE_OPTION(job, field)                                                             \
    {                                                                                              \
        0, "feature", "NAME",                                                                      \
            "the feature of TFRecords that the steps work on, such as image/encoded",              \
            "as dataset.json or the pipeline says, or the only one", CLI_TEXT(job, field)          \
    }

/* A presto_keep_index, and its folder. */
#define CLI_INDEX_OPTION(job, keep, dir)                                                           \
    {                                                                                              \
        0, "index", "none|keep|keep:DIR",                                                          \
            "what to do with the index of TFRecords that have none, once it is known: nothing; "   \
            "keep it as FILE.index or, where that cannot be written, in ~/.cache/presto/index; "   \
            "keep it in the folder DIR. A kept index is used the next time this option is given",  \
            "none", CLI_SPECIAL2(job, keep, dir, cli_read_index)                                   \
    }

/* A presto_partition, for cli_check_partition(), but for its part. */
#define CLI_SPLIT_OPTION(job, field)                                                               \
    {                                                                                              \
        0, "split", "RATIO",                                                                       \
            "only one part of the samples: 90/10, 80/10/10; which one each is in depends on its "  \
            "name alone, so that others may be added",                                             \
            NULL, CLI_TEXT(job, field.ratio)                                                       \
    }
#define CLI_SPLIT_SEED_OPTION(job, field)                                                          \
    {                                                                                              \
        0, "split-seed", "S", "for another split of the same ratio; --seed has no part in it",     \
            CLI_FIELD, CLI_NUMBER(job, field.seed, 0, UINT64_MAX)                                  \
    }
#define CLI_PART_TEXT                                                                              \
    "which part: train or eval; of three, train, validation or test; or its number, from 1"
#define CLI_PARTITION_OPTIONS(job, field)                                                          \
    CLI_SPLIT_OPTION(job, field),                                                                  \
        {0,                                                                                        \
         "part",                                                                                   \
         "NAME",                                                                                   \
         CLI_PART_TEXT,                                                                            \
         NULL,                                                                                     \
         CLI_TEXT(job, field.part),                                                                \
         CLI_WORDS("train|eval|validation|test")},                                                 \
        CLI_SPLIT_SEED_OPTION(job, field)

/* ---- how ---- */

/* A presto_loader_errors. `failing`: which samples, and what the limits count. */
#define CLI_ON_ERROR_OPTION(job, field, failing)                                                   \
    {                                                                                              \
        0, "on-error", "POLICY", failing, "fail", CLI_SPECIAL(job, field, cli_read_on_error),      \
            CLI_WORDS("fail|skip|skip:")                                                           \
    }
#define CLI_ON_ERROR_TEXT(most, part)                                                              \
    "what to do about a sample that is damaged, does not fit a step or cannot be read: fail, "     \
    "skip, skip:N (" most ") or skip:P% (" part ")"

#define CLI_ERROR_REPORT_OPTION(job, field)                                                        \
    {                                                                                              \
        0, "error-report", "FILE",                                                                 \
            "append a line of JSON there for each sample skipped, as it happens, or for each run " \
            "of them that are alike: file, record, byte, sample, samples, epoch, status, reason",  \
            "a line on stderr", CLI_PATH(job, field)                                               \
    }

/* Threads, and a bool for "auto". */
#define CLI_THREADS(job, threads, is_auto) CLI_SPECIAL2(job, threads, is_auto, cli_read_threads)

/* A presto_storage. */
#define CLI_STORAGE_OPTION(job, field, what)                                                       \
    {                                                                                              \
        0, "storage", "MODEL",                                                                     \
            what ": figures such as bandwidth=910MB/s,per-thread=219MB/s "                         \
                 "(also iops=222000, latency=8us, open=65ms, with commas between), or nvme, "      \
                 "network-disk, ceph-hdd or object-store, which figures may follow",               \
            NULL, CLI_SPECIAL(job, field, cli_read_storage),                                       \
            CLI_WORDS("nvme|network-disk|ceph-hdd|object-store")                                   \
    }

/* ---- what is written ---- */

/* The text of a codec that exists. */
#define CLI_CODEC(job, field)                                                                      \
    CLI_SPECIAL(job, field, cli_read_codec), CLI_WORDS_OF(presto_codec_built_at)

/* A presto_file_compression. `command`: what the help begins with; bits of its commands follow. */
#define CLI_FILE_COMPRESSION_OPTION(job, field, command, bits)                                     \
    {                                                                                              \
        0, "file-compression", "FORMAT",                                                           \
            command "compress each file as a whole: none, gzip or zlib", CLI_FIELD,                \
            CLI_CHOICE(job, field, cli_file_compressions), .commands = (bits)                      \
    }

/* ---- instead of the work ---- */

#define CLI_EXPLAIN_OPTIONS(job, field)                                                            \
    {0, "explain", NULL, "print what would run, and stop", NULL, CLI_FLAG(job, field)}, {          \
        0, "help-steps", NULL, "print all steps and their options, and stop", NULL,                \
            CLI_SPECIAL_OF_ALL(cli_read_help_steps)                                                \
    }

cli_read cli_read_setting, cli_read_plugin, cli_read_index, cli_read_on_error, cli_read_threads,
    cli_read_storage, cli_read_codec, cli_read_help_steps;
extern const cli_value cli_file_compressions[];
/* Representations of the built-in pipelines, each once, of the first 128. */
cli_word_at cli_representation_at;

/** --split without --part or the reverse, and parts that there are not, are usage errors. */
void cli_check_partition(const presto_partition *partition);

#endif
