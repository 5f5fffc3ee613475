/* SPDX-License-Identifier: Apache-2.0 */
#include "shared_options.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const cli_value cli_file_compressions[] = {
    {"none", PRESTO_FILE_PLAIN}, {"gzip", PRESTO_FILE_GZIP}, {"zlib", PRESTO_FILE_ZLIB}, {NULL, 0}};

enum { MOST_REPRESENTATIONS = 128 };

const char *cli_representation_at(size_t i) {
    static char names[MOST_REPRESENTATIONS][64];
    static size_t count;
    static bool is_filled;
    const char *pipeline_name, *name;
    const presto_pipeline_options reading = {.struct_bytes = sizeof reading,
                                             .code = PRESTO_CODE_NEVER};
    for (size_t p = 0; !is_filled && (pipeline_name = presto_pipeline_builtin_at(p)) != NULL; p++) {
        presto_pipeline *pipeline = NULL;
        if (presto_pipeline_load(pipeline_name, &reading, &pipeline, NULL) < 0)
            continue;
        for (size_t r = 0; r < presto_pipeline_representation_count(pipeline); r++) {
            size_t known = 0;
            name = presto_pipeline_representation_name(pipeline, r);
            while (known < count && strcmp(names[known], name) != 0)
                known++;
            if (known == count && count < MOST_REPRESENTATIONS && strlen(name) < sizeof names[0])
                snprintf(names[count++], sizeof names[0], "%s", name);
        }
        presto_pipeline_free(pipeline);
    }
    is_filled = true;
    return i < count ? names[i] : NULL;
}

void cli_read_setting(const char *option, const char *text, void *place, void *beside) {
    (void)option, (void)beside;
    cli_add_setting(place, text);
}

void cli_read_plugin(const char *option, const char *text, void *place, void *beside) {
    (void)option, (void)beside;
    cli_add_plugin(place, text);
}

/* none, keep or keep:DIR */
void cli_read_index(const char *option, const char *text, void *place, void *beside) {
    static const char apart[] = "keep:";
    presto_keep_index *keep = place;
    const char **dir = beside;
    *dir = NULL;
    if (strcmp(text, "none") == 0) {
        *keep = PRESTO_KEEP_NO_INDEX;
    } else if (strcmp(text, "keep") == 0) {
        *keep = PRESTO_KEEP_INDEX_BESIDE;
    } else if (strncmp(text, apart, sizeof apart - 1) == 0 && text[sizeof apart - 1] != '\0') {
        *keep = PRESTO_KEEP_INDEX_APART;
        *dir = text + sizeof apart - 1;
    } else {
        cli_usage("%s: '%s' is not one of none, keep, keep:DIR", option, text);
    }
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

/* fail, skip, skip:N or skip:P% */
void cli_read_on_error(const char *option, const char *text, void *place, void *beside) {
    presto_loader_errors *errors = place;
    (void)beside;
    errors->skip_limit = UINT64_MAX;
    errors->skip_fraction = 1;
    errors->policy = PRESTO_ON_ERROR_SKIP;
    if (strcmp(text, "fail") == 0)
        errors->policy = PRESTO_ON_ERROR_FAIL;
    size_t length = strlen(text);
    if (errors->policy == PRESTO_ON_ERROR_FAIL || strcmp(text, "skip") == 0)
        return;
    if (strncmp(text, "skip:", 5) != 0 || length == 5 || length > 40)
        cli_usage("%s: '%s' is not one of fail, skip, skip:N, skip:P%%", option, text);
    if (text[length - 1] != '%') {
        errors->skip_limit = cli_number(option, text + 5, 0, UINT64_MAX - 1);
        return;
    }
    char percent[48];
    memcpy(percent, text + 5, length - 6);
    percent[length - 6] = '\0';
    errors->skip_fraction = cli_fraction(option, percent, 0, 100) / 100;
}

/* With auto, the program says how many are the most. */
void cli_read_threads(const char *option, const char *text, void *place, void *beside) {
    unsigned *threads = place;
    bool *is_auto = beside;
    *is_auto = strcmp(text, "auto") == 0;
    if (!*is_auto)
        *threads = (unsigned)cli_number(option, text, 0, PRESTO_MAX_THREADS);
}

void cli_read_storage(const char *option, const char *text, void *place, void *beside) {
    presto_storage storage;
    presto_error err;
    (void)beside;
    if (presto_storage_parse(text, &storage, &err) < 0)
        cli_usage("%s: %s", option, err.message);
    *(presto_storage *)place = storage;
}

void cli_read_codec(const char *option, const char *text, void *place, void *beside) {
    (void)beside;
    cli_check_codec(option, text, false);
    *(const char **)place = text;
}

void cli_read_help_steps(const char *option, const char *text, void *place, void *beside) {
    (void)option, (void)text, (void)place, (void)beside;
    presto_buffer steps = {0};
    presto_error err;
    int code = CLI_DONE;
    if (presto_steps_help(&steps, &err) < 0)
        code = cli_error(&err);
    else
        fwrite(steps.data, 1, steps.bytes, stdout);
    presto_buffer_done(&steps);
    exit(cli_close_stdout(code));
}
