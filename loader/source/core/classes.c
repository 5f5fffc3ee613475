/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The classes that the user gives, so that their numbers do not follow from the files that happen to
 * be there.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include <presto/dataset.h>
#include <presto/storage.h>

#include "../../../base/file_internal.h"
#include "../../../base/paths_internal.h"
#include "../../../records/records_internal.h"
#include "../../../storage/storage_internal.h"
#include "source_internal.h"

#define MOST_FILE_BYTES ((uint64_t)256 << 20)
#define MOST_CLASSES ((size_t)1 << 24)
#define NOTE_BYTES 700
#define SHOWN_BYTES 200
#define NAME_BYTES 1024 /* with its NUL; longer labels name no class */

void presto__classes_done(presto__classes *classes) {
    for (size_t i = 0; i < classes->count; i++)
        free(classes->names[i]);
    free(classes->names);
    free(classes->sorted);
    free(classes->from);
    *classes = (presto__classes){0};
}

static presto_status add(presto__classes *classes, presto_span name, presto_error *err) {
    size_t count = classes->count;
    if (count == MOST_CLASSES)
        return presto_fail(err, PRESTO_ERR_LIMIT, PRESTO_NO_OFFSET, "more than %zu classes",
                           MOST_CLASSES);
    if ((count & (count - 1)) == 0) { /* there is room up to the next power of two */
        size_t room = count == 0 ? 1 : 2 * count;
        char **names = realloc(classes->names, room * sizeof *names);
        if (names == NULL)
            return presto_fail_memory(err, room * sizeof *names);
        classes->names = names;
    }
    classes->names[count] = presto_span_to_text(name);
    if (classes->names[count] == NULL)
        return presto_fail_memory(err, name.bytes + 1);
    classes->count++;
    return PRESTO_OK;
}

/* ---- where they stand ---- */

/* A name a line; empty lines are passed over. */
static presto_status read_lines(presto__classes *classes, presto_error *err) {
    presto_buffer text = {0};
    presto_status status = presto_file_read(classes->from, MOST_FILE_BYTES, &text, err);
    size_t at = text.bytes >= 3 && memcmp(text.data, "\xef\xbb\xbf", 3) == 0 ? 3 : 0;
    while (status >= 0 && at < text.bytes) {
        size_t end = at;
        while (end < text.bytes && memchr("\r\n", text.data[end], 2) == NULL)
            end++;
        presto_span line = presto_span_of(text.data + at, end - at);
        if (line.bytes > 0 && memchr(line.data, '\0', line.bytes) != NULL)
            status = presto_fail(err, PRESTO_ERR_SYNTAX, PRESTO_NO_OFFSET,
                                 "is no list of classes, a name a line: it holds a NUL byte");
        else if (line.bytes > 0)
            status = add(classes, line, err);
        at = end + 1;
    }
    presto_buffer_done(&text);
    return status;
}

static presto_status read_dataset(presto__classes *classes, presto_error *err) {
    presto_dataset_info info = {0};
    presto_status status = presto__dataset_info_read(classes->from, &info, err);
    for (size_t i = 0; status >= 0 && i < info.label_count; i++)
        status = add(classes, presto_span_of_text(info.label_names[i]), err);
    presto__dataset_info_free(&info);
    return status;
}

static int compare_names(const void *a, const void *b) {
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static presto_status want_name(void *user, const char *folder, const char *name, bool *wanted_out,
                               presto_error *err) {
    (void)user, (void)folder, (void)err;
    *wanted_out = name[0] != '.';
    return PRESTO_OK;
}

static presto_status pass_over(void *user, const presto__listed *found, presto_error *err) {
    (void)user, (void)found, (void)err;
    return PRESTO_OK;
}

static presto_status add_folder(void *user, const char *path, presto_error *err) {
    const char *slash = strrchr(path, '/');
    return add(user, presto_span_of_text(slash == NULL ? path : slash + 1), err);
}

/* The folders in a folder, sorted, empty ones too. */
static presto_status read_folder(presto__classes *classes, presto_error *err) {
    const presto__list list = {.user = classes,
                               .name = want_name,
                               .found = pass_over,
                               .folder = add_folder,
                               .is_shallow = true};
    presto_status status = presto__object_list(classes->from, &list, err);
    if (classes->count > 1)
        qsort(classes->names, classes->count, sizeof *classes->names, compare_names);
    return status;
}

static presto_status read_path(presto__classes *classes, presto_error *err) {
    static const char file_name[] = "/" PRESTO_DATASET_FILE;
    size_t bytes = strlen(classes->from), tail = sizeof file_name - 1;
    presto__object_info info;
    presto_error why;
    bool is_dataset = false;
    if (bytes > tail && strcmp(classes->from + bytes - tail, file_name) == 0)
        classes->from[bytes - tail] = '\0';
    if (presto__object_find(classes->from, &info, &why) < 0) {
        const char *hint = presto__path_hint(classes->from);
        if (why.status != PRESTO_ERR_NOT_FOUND) {
            if (err != NULL)
                *err = why;
            return why.status;
        }
        return presto_fail(err, PRESTO_ERR_NOT_FOUND, PRESTO_NO_OFFSET,
                           "no such file or folder, which source.classes names; %s",
                           hint != NULL ? hint : "a list of classes is written [ant, bee, cat]");
    }
    if (info.type != PRESTO__OBJECT_FOLDER)
        return read_lines(classes, err);
    PRESTO_TRY(presto__path_is_dataset(classes->from, &is_dataset, err));
    return is_dataset ? read_dataset(classes, err) : read_folder(classes, err);
}

/* ---- looking up ---- */

/* Number i of the names in their order. */
static const char *sorted_name(const presto__classes *classes, size_t i) {
    return classes->names[classes->sorted[i]];
}

static size_t lower_bound(const presto__classes *classes, const char *name) {
    size_t low = 0, high = classes->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (strcmp(sorted_name(classes, middle), name) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

size_t presto__classes_find(const presto__classes *classes, const char *name) {
    size_t at = lower_bound(classes, name);
    return at < classes->count && strcmp(sorted_name(classes, at), name) == 0 ? classes->sorted[at]
                                                                              : SIZE_MAX;
}

/* As the labels that are numbers are written. */
static bool is_number(const char *name) {
    const char *digits = name + (name[0] == '-' || name[0] == '+');
    return digits[0] != '\0' && digits[strspn(digits, "0123456789")] == '\0';
}

typedef struct named {
    const char *name;
    size_t number;
} named;

static int compare_named(const void *a, const void *b) {
    return strcmp(((const named *)a)->name, ((const named *)b)->name);
}

static presto_status sort_names(presto__classes *classes, presto_error *err) {
    size_t count = classes->count;
    named *all = calloc(count, sizeof *all);
    classes->sorted = calloc(count, sizeof *classes->sorted);
    presto_status status = all == NULL || classes->sorted == NULL
                               ? presto_fail_memory(err, count * sizeof *all)
                               : PRESTO_OK;
    for (size_t i = 0; status >= 0 && i < count; i++)
        all[i] = (named){classes->names[i], i};
    if (status >= 0)
        qsort(all, count, sizeof *all, compare_named);
    for (size_t i = 0; status >= 0 && i < count; i++) {
        classes->sorted[i] = all[i].number;
        classes->are_numeric |= is_number(all[i].name);
        if (i > 0 && strcmp(all[i - 1].name, all[i].name) == 0)
            status = presto_fail(err, PRESTO_ERR_SYNTAX, PRESTO_NO_OFFSET,
                                 "source.classes has '%.100s' twice", all[i].name);
    }
    free(all);
    return status;
}

presto_status presto__classes_read(const presto_option *option, presto__classes *classes_out,
                                   presto_error *err) {
    presto__classes classes = {0};
    presto_status status = PRESTO_OK;
    *classes_out = classes;
    if (option == NULL || !option->is_set)
        return PRESTO_OK;
    if (option->text != NULL) {
        classes.from = strdup(option->text);
        status = classes.from == NULL ? presto_fail_memory(err, strlen(option->text))
                                      : read_path(&classes, err);
    }
    for (size_t i = 0; option->text == NULL && status >= 0 && i < option->text_count; i++)
        status = add(&classes, presto_span_of_text(option->texts[i]), err);
    if (status >= 0 && classes.count == 0)
        status = presto_fail(err, PRESTO_ERR_NOT_FOUND, PRESTO_NO_OFFSET,
                             "holds no names of classes, which source.classes takes from it");
    if (status >= 0)
        status = sort_names(&classes, err);
    if (status < 0) {
        if (classes.from != NULL)
            presto_error_set_file(err, classes.from);
        presto__classes_done(&classes);
        return status;
    }
    *classes_out = classes;
    return PRESTO_OK;
}

/* ---- labels ---- */

bool presto__take_integer(presto_span text, int64_t *number_out) {
    char digits[32];
    while (text.bytes > 0 && memchr(" \t\r\n", text.data[text.bytes - 1], 4) != NULL)
        text.bytes--;
    while (text.bytes > 0 && memchr(" \t\r\n", text.data[0], 4) != NULL)
        text = presto_span_of(text.data + 1, text.bytes - 1);
    if (text.bytes == 0 || text.bytes >= sizeof digits)
        return false;
    memcpy(digits, text.data, text.bytes);
    digits[text.bytes] = '\0';
    size_t sign = digits[0] == '-' || digits[0] == '+';
    if (digits[sign] == '\0' || strspn(digits + sign, "0123456789") != text.bytes - sign)
        return false;
    errno = 0;
    *number_out = strtoll(digits, NULL, 10);
    return errno == 0;
}

presto_status presto__classes_number(const presto__classes *classes, presto_span text,
                                     int64_t *number_out, presto_error *err) {
    char name[NAME_BYTES];
    if (!classes->are_numeric && presto__take_integer(text, number_out))
        return presto__classes_check_number(classes, *number_out, err);
    while (text.bytes > 0 && memchr(" \t\r\n", text.data[text.bytes - 1], 4) != NULL)
        text.bytes--;
    size_t bytes = text.bytes < sizeof name ? text.bytes : sizeof name - 1;
    memcpy(name, text.data, bytes);
    name[bytes] = '\0';
    bool is_name = bytes == text.bytes && memchr(name, '\0', bytes) == NULL;
    size_t number = is_name ? presto__classes_find(classes, name) : SIZE_MAX;
    *number_out = (int64_t)number;
    return number == SIZE_MAX ? presto__classes_fail(classes, name, err) : PRESTO_OK;
}

/* ---- what is said of them ---- */

/* "ant, bee, ..." */
static void list_names(const presto__classes *classes, char text_out[SHOWN_BYTES]) {
    size_t used = 0;
    text_out[0] = '\0';
    for (size_t i = 0; i < classes->count; i++) {
        if (used + strlen(classes->names[i]) + sizeof ", ..." > SHOWN_BYTES) {
            snprintf(text_out + used, SHOWN_BYTES - used, "%s...", i == 0 ? "" : ", ");
            return;
        }
        used += (size_t)snprintf(text_out + used, SHOWN_BYTES - used, "%s%s", i == 0 ? "" : ", ",
                                 classes->names[i]);
    }
}

presto_status presto__classes_fail(const presto__classes *classes, const char *name,
                                   presto_error *err) {
    char list[SHOWN_BYTES];
    list_names(classes, list);
    return presto_fail(err, PRESTO_ERR_SYNTAX, PRESTO_NO_OFFSET,
                       "class '%.100s' is not among the %zu of source.classes (%s)", name,
                       classes->count, list);
}

presto_status presto__classes_check_number(const presto__classes *classes, int64_t label,
                                           presto_error *err) {
    if (label >= 0 && (uint64_t)label < classes->count)
        return PRESTO_OK;
    return presto_fail(err, PRESTO_ERR_SYNTAX, PRESTO_NO_OFFSET,
                       "label %" PRId64 " is no number of a class: source.classes has %zu, from 0",
                       label, classes->count);
}

presto_status presto__classes_name(const presto__classes *classes, presto_source *source,
                                   presto_error *err) {
    source->label_names = calloc(classes->count + 1, sizeof *source->label_names);
    if (source->label_names == NULL)
        return presto_fail_memory(err, classes->count * sizeof *source->label_names);
    for (; source->label_count < classes->count; source->label_count++) {
        source->label_names[source->label_count] = strdup(classes->names[source->label_count]);
        if (source->label_names[source->label_count] == NULL)
            return presto_fail_memory(err, strlen(classes->names[source->label_count]) + 1);
    }
    return PRESTO_OK;
}

presto_status presto__classes_note_empty(const presto__classes *classes, const uint64_t *counts,
                                         presto_source *source, presto_error *err) {
    char list[SHOWN_BYTES] = "", text[NOTE_BYTES];
    size_t used = 0, empty = 0;
    for (size_t i = 0; i < classes->count; i++) {
        if (counts[i] > 0)
            continue;
        if (used < sizeof list)
            used += (size_t)snprintf(list + used, sizeof list - used, "%s%s", empty > 0 ? ", " : "",
                                     classes->names[i]);
        empty++;
    }
    if (empty == 0)
        return PRESTO_OK;
    snprintf(text, sizeof text, "%zu of the %zu class%s of source.classes %s no sample: %s%s",
             empty, classes->count, classes->count == 1 ? "" : "es", empty == 1 ? "has" : "have",
             list, used >= sizeof list ? "..." : "");
    return presto__source_note(source, text, err);
}

presto_status presto__classes_check(const presto__classes *classes, presto_source *source,
                                    presto_error *err) {
    size_t known = source->label_count;
    for (size_t i = 0; i < known && i < classes->count; i++)
        if (strcmp(source->label_names[i], classes->names[i]) != 0)
            return presto_fail(err, PRESTO_ERR_TYPE, PRESTO_NO_OFFSET,
                               "label %zu is '%.100s' here, but '%.100s' in source.classes", i,
                               source->label_names[i], classes->names[i]);
    if (known > classes->count)
        return presto__classes_fail(classes, source->label_names[classes->count], err);
    for (size_t i = 0; i < known; i++)
        free(source->label_names[i]);
    free(source->label_names);
    source->label_names = NULL;
    source->label_count = 0;
    return presto__classes_name(classes, source, err);
}
