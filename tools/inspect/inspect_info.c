/* SPDX-License-Identifier: Apache-2.0 */
/* Printing a presto_info: a summary, the features, how record sizes are spread. */
#include "inspect_info.h"

#include <stdio.h>
#include <string.h>

#include <presto/inspect.h>

#include "../cli/cli.h"

enum { BAR_CELLS = 30, LABEL_COLUMNS = 64, NAME_COLUMNS = 40 };

typedef struct view {
    presto_info info;
    const presto_dataset_info *described; /* as dataset.json does, or as far as is known */
} view;

/* ---- JSON ---- */

static json_t *shape_json(const presto_tensor_spec *spec) {
    if (spec->rank < 0)
        return json_null();
    json_t *shape = json_array();
    for (int i = 0; i < spec->rank; i++)
        json_array_append_new(shape, json_integer((json_int_t)spec->dims[i]));
    return shape;
}

static json_t *count_json(uint64_t count) {
    return json_integer((json_int_t)count);
}

static json_t *features_json(const presto_info *info) {
    json_t *features = json_object();
    for (size_t i = 0; i < info->feature_count; i++) {
        const presto_feature_info *feature = &info->features[i];
        json_t *object = json_object();
        cli_json_set(object, "encoding", json_string(presto_encoding_name(feature->encoding)));
        cli_json_set(object, "dtype", json_string(presto_dtype_name(feature->spec.dtype)));
        cli_json_set(object, "shape", shape_json(&feature->spec)); /* -1: differs */
        cli_json_set(object, "content", cli_json_text(feature->content));
        cli_json_set(object, "seen", count_json(feature->seen));
        cli_json_set(object, "least_bytes", count_json(feature->least_bytes));
        cli_json_set(object, "most_bytes", count_json(feature->most_bytes));
        cli_json_set(features, feature->name, object); /* UTF-8, whatever the name */
    }
    return features;
}

static json_t *files_json(const presto_info *info) {
    json_t *files = json_array();
    for (size_t i = 0; i < info->file_count; i++) {
        const presto_file_info *file = &info->files[i];
        json_t *object = json_object();
        cli_json_set(object, "path", cli_json_text(file->path));
        cli_json_set(object, "records", count_json(file->records));
        cli_json_set(object, "file_bytes", count_json(file->file_bytes));
        cli_json_set(object, "compression",
                     json_string(presto_file_compression_name(file->compression)));
        cli_json_set(object, "indexed", json_boolean(file->indexed));
        cli_json_set(object, "lost_ranges", count_json(file->lost_ranges));
        json_array_append_new(files, object);
    }
    return files;
}

static json_t *sizes_json(const presto_info *info) {
    json_t *classes = json_array();
    for (size_t i = 0; i < PRESTO_SIZE_CLASSES; i++) {
        if (info->size_classes[i] == 0)
            continue;
        json_t *object = json_object();
        cli_json_set(object, "below_bytes", count_json((uint64_t)1 << i));
        cli_json_set(object, "records", count_json(info->size_classes[i]));
        json_array_append_new(classes, object);
    }
    return classes;
}

static json_t *labels_json(const presto_dataset_info *described) {
    if (described->label_names == NULL)
        return json_null();
    json_t *labels = json_array();
    for (size_t i = 0; i < described->label_count; i++)
        cli_json_append(labels, cli_json_text(described->label_names[i]));
    return labels;
}

static int print_json(const view *v) {
    const presto_info *info = &v->info;
    const cli_count counts[] = {
        {"files", info->file_count},
        {"records", info->records},
        {"stored_bytes", info->stored_bytes},
        {"raw_bytes", info->raw_bytes},
        {"payload_bytes", info->payload_bytes},
        {"least_bytes", info->least_bytes},
        {"median_bytes", info->median_bytes},
        {"most_bytes", info->most_bytes},
        {"sampled_records", info->sampled},
    };
    json_t *object = cli_json_new();
    cli_json_set_counts(object, counts, sizeof counts / sizeof counts[0]);
    cli_json_set(object, "raw_bytes_exact", json_boolean(info->raw_bytes_exact));
    cli_json_set(object, "codec", cli_json_text(info->codec));
    cli_json_set(object, "codec_guessed", json_boolean(info->codec_guessed));
    cli_json_set(object, "record_kind", json_string(info->record_kind));
    cli_json_set(object, "stored", cli_json_text(v->described->stored));
    cli_json_set(object, "split", cli_json_text(v->described->stored)); /* its name before */
    cli_json_set(object, "main_feature", cli_json_text(v->described->main_feature));
    cli_json_set(object, "labels", labels_json(v->described));
    cli_json_set(object, "features", features_json(info));
    cli_json_set(object, "sizes", sizes_json(info));
    cli_json_set(object, "file_list", files_json(info));
    return cli_print_json(object);
}

/* ---- for people ---- */

static void print_summary(const view *v) {
    const presto_info *info = &v->info;
    char files[PRESTO_TEXT_BYTES], records[PRESTO_TEXT_BYTES], stored[PRESTO_TEXT_BYTES];
    char raw[PRESTO_TEXT_BYTES], least[PRESTO_TEXT_BYTES], median[PRESTO_TEXT_BYTES],
        most[PRESTO_TEXT_BYTES];
    printf("%s, %s, %s stored, %s%s raw\n", presto_format_things(info->file_count, "file", files),
           presto_format_things(info->records, "record", records),
           presto_format_bytes((double)info->stored_bytes, stored),
           info->raw_bytes_exact ? "" : "~", presto_format_bytes((double)info->raw_bytes, raw));
    if (presto_dataset_is_ours(info->dataset))
        cli_put("stored: %s\n", v->described->stored != NULL ? v->described->stored : "unknown");
    cli_put("codec: %s%s\n", info->codec, info->codec_guessed ? " (guessed)" : "");
    if (info->records > 0)
        printf("records: %s, %s to %s, median %s\n", info->record_kind,
               presto_format_bytes((double)info->least_bytes, least),
               presto_format_bytes((double)info->most_bytes, most),
               presto_format_bytes((double)info->median_bytes, median));
}

/* "labels: 0 cat, 1 dog, ... (12 in all)", on one line. */
static void print_labels(const presto_dataset_info *described) {
    size_t used = 0;
    size_t count = described->label_count;
    char all[PRESTO_TEXT_BYTES];
    if (count == 0)
        return;
    fputs("labels: ", stdout);
    for (size_t i = 0; i < count; i++) {
        used += strlen(described->label_names[i]) + 4;
        if (i > 0 && used > LABEL_COLUMNS) {
            printf(", ... (%s in all)", presto_format_count(count, all));
            break;
        }
        cli_put("%s%zu %s", i > 0 ? ", " : "", i, described->label_names[i]);
    }
    putchar('\n');
}

static void print_features(const presto_info *info) {
    char sampled[PRESTO_TEXT_BYTES], all[PRESTO_TEXT_BYTES];
    char spec[PRESTO_SPEC_TEXT_BYTES], least[PRESTO_TEXT_BYTES], most[PRESTO_TEXT_BYTES];
    size_t width = strlen("feature");
    if (info->feature_count == 0)
        return;
    for (size_t i = 0; i < info->feature_count; i++)
        width = strlen(info->features[i].name) > width ? strlen(info->features[i].name) : width;
    width = width < NAME_COLUMNS ? width : NAME_COLUMNS;
    if (info->sampled < info->records)
        printf(
            "\nin %s of %s records, at random places:", presto_format_count(info->sampled, sampled),
            presto_format_count(info->records, all));
    printf("\n%-*s  stored  %-26s size\n", (int)width, "feature", "type");
    for (size_t i = 0; i < info->feature_count; i++) {
        const presto_feature_info *feature = &info->features[i];
        presto_spec_format(&feature->spec, spec, sizeof spec);
        if (feature->content != NULL) {
            size_t used = strlen(spec);
            snprintf(spec + used, sizeof spec - used, " %s", feature->content);
        }
        presto_format_bytes((double)feature->least_bytes, least);
        presto_format_bytes((double)feature->most_bytes, most);
        cli_put("%-*s  %-6s  %-26s %s%s%s", (int)width, feature->name,
                presto_encoding_name(feature->encoding), spec, least,
                strcmp(least, most) != 0 ? " to " : "", strcmp(least, most) != 0 ? most : "");
        if (feature->seen < info->sampled)
            printf(" (in %ju of %ju)", (uintmax_t)feature->seen, (uintmax_t)info->sampled);
        putchar('\n');
    }
}

static char *format_power(size_t bits, char text[PRESTO_TEXT_BYTES]) {
    static const char *const units[] = {"B", "KiB", "MiB", "GiB"};
    size_t unit = bits / 10 < 3 ? bits / 10 : 3;
    snprintf(text, PRESTO_TEXT_BYTES, "%ju %s", (uintmax_t)1 << (bits - unit * 10), units[unit]);
    return text;
}

/* Bars for the distribution of record sizes, under their limits. */
static void print_sizes(const presto_info *info) {
    size_t first = PRESTO_SIZE_CLASSES;
    size_t last = 0;
    uint64_t most = 0;
    for (size_t i = 0; i < PRESTO_SIZE_CLASSES; i++) {
        if (info->size_classes[i] == 0)
            continue;
        first = i < first ? i : first;
        last = i;
        most = info->size_classes[i] > most ? info->size_classes[i] : most;
    }
    if (first >= last)
        return;
    puts("\nrecords by size");
    for (size_t i = first; i <= last; i++) {
        char below[PRESTO_TEXT_BYTES], count[PRESTO_TEXT_BYTES];
        char bar[BAR_CELLS + 1];
        uint64_t records = info->size_classes[i];
        size_t cells = (size_t)((double)records / (double)most * BAR_CELLS + 0.5);
        memset(bar, '#', cells);
        bar[cells] = '\0';
        if (records > 0)
            printf("  below %8s  %12s  %s\n", format_power(i, below),
                   presto_format_count(records, count), cells > 0 ? bar : ".");
        else
            printf("  below %8s  %12s\n", format_power(i, below), "-");
    }
}

/* Faults of single files. Even if there are many, not all are listed. */
static void print_oddities(const presto_info *info) {
    for (size_t i = 0; i < info->file_count; i++) {
        const presto_file_info *file = &info->files[i];
        char places[PRESTO_TEXT_BYTES];
        if (file->lost_ranges > 0 && file->records == 0)
            cli_put("%s: no whole record: damaged, or not TFRecords\n", file->path);
        else if (file->lost_ranges > 0)
            cli_put("%s: damaged in %s: see presto-inspect verify\n", file->path,
                    presto_format_things(file->lost_ranges, "place", places));
        if (file->name_disagrees)
            cli_put("%s: file compression is %s, against its name\n", file->path,
                    presto_file_compression_name(file->compression));
    }
}

int inspect_info(const char *const *paths, size_t path_count, const info_options *options) {
    view v;
    presto_error err;
    presto_info_options collect;
    memset(&v, 0, sizeof v);
    presto_info_options_defaults(&collect);
    if (options->sample_records > 0)
        collect.sample_records = options->sample_records;
    if (presto_info_collect(paths, path_count, &collect, &v.info, &err) < 0)
        return cli_error(&err);
    v.described = presto_dataset_get_info(v.info.dataset);
    int code = CLI_DONE;
    if (options->json) {
        code = print_json(&v);
    } else {
        print_summary(&v);
        print_labels(v.described);
        print_features(&v.info);
        print_sizes(&v.info);
        print_oddities(&v.info);
    }
    presto_info_done(&v.info);
    return code;
}
