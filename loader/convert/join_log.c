/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a join does, once all is checked: a log of it is written first, as the dataset's progress file,
 * so that nobody reads the folder as files of others. Whoever finds the log does all of it again, and
 * passes over what is done: so a join may die at any moment.
 *
 *   the log; each index, then its shard, gets its name; dataset.json; the attempts go; the log goes
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <jansson.h>

#include <presto/storage.h>

#include "../../base/file_internal.h"
#include "../../base/folder_internal.h"
#include "../../base/json_limit_internal.h"
#include "../../records/dataset/dataset_internal.h"
#include "../../records/records_internal.h"
#include "../../storage/outlet_internal.h"
#include "share_internal.h"

#define INDEX ".index"
#define LOG_VERSION 1
/* A process that still writes to an attempt may make a file while its folder is being emptied. */
#define REMOVE_TRIES 10

void presto__join_log_done(presto__join_log *log) {
    for (size_t i = 0; i < log->attempt_count; i++)
        free(log->attempts[i]);
    for (size_t i = 0; i < log->move_count; i++)
        free(log->moves[i].file);
    free(log->attempts);
    free(log->moves);
    free(log->dataset);
    *log = (presto__join_log){.dictionary = SIZE_MAX};
}

/* ---- its text ---- */

static bool append(json_t *list, json_t *item) {
    return list != NULL && json_array_append_new(list, item) == 0;
}

static json_t *log_json(const presto__join_log *log) {
    json_t *attempts = json_array(), *moves = json_array();
    json_t *dictionary =
        log->dictionary == SIZE_MAX ? json_null() : json_integer((json_int_t)log->dictionary);
    bool done = true;
    for (size_t i = 0; done && i < log->attempt_count; i++)
        done = append(attempts, json_string(log->attempts[i]));
    for (size_t i = 0; done && i < log->move_count; i++)
        done = append(moves,
                      json_pack("[I, s]", (json_int_t)log->moves[i].attempt, log->moves[i].file));
    json_t *root = json_pack("{s:s, s:i, s:o, s:o, s:o, s:s}", "format", PRESTO__JOIN_FORMAT,
                             "version", LOG_VERSION, "attempts", attempts, "moves", moves,
                             "dictionary", dictionary, "dataset", log->dataset);
    if (!done) {
        json_decref(root);
        return NULL;
    }
    return root;
}

presto_status presto__join_log_write(const char *dir, const presto__join_log *log, bool sync,
                                     presto_error *err) {
    json_t *root = log_json(log);
    char *text = root == NULL ? NULL : json_dumps(root, JSON_INDENT(1));
    json_decref(root);
    if (text == NULL)
        return presto_fail_memory(err, 0);
    const presto_span span = presto_span_of_text(text);
    presto_status status =
        presto__json_check(span, PRESTO__JSON_MAX_BYTES, PRESTO__JSON_MAX_WEIGHT, err);
    if (status < 0)
        presto_error_set_file(err, dir);
    else
        status = presto__replace_file(dir, PRESTO_PROGRESS_FILE, span, sync, err);
    if (status == PRESTO_OK && sync)
        status = presto__sync_folder(dir, err);
    free(text);
    return status;
}

static presto_status bad(const char *what, presto_error *err) {
    return presto_fail(err, PRESTO_ERR_CORRUPT, PRESTO_NO_OFFSET,
                       "is no log of a join of this version of Presto: %s", what);
}

/* A shard of a dataset, and nothing that leads elsewhere. */
static bool is_shard_name(const char *name) {
    size_t shard, shards;
    char shown[PRESTO__SHARD_NAME_BYTES];
    if (sscanf(name, "data-%5zu-of-%5zu", &shard, &shards) != 2)
        return false;
    for (int i = PRESTO_FILE_PLAIN; i <= PRESTO_FILE_ZLIB; i++) {
        presto__shard_name(shard, shards, (presto_file_compression)i, shown);
        if (strcmp(name, shown) == 0)
            return true;
    }
    return false;
}

static presto_status take_attempts(const json_t *list, presto__join_log *log, presto_error *err) {
    size_t number, count, total = json_array_size(list);
    if (!json_is_array(list))
        return bad("'attempts' is no list", err);
    log->attempts = calloc(total + 1, sizeof *log->attempts);
    if (log->attempts == NULL)
        return presto_fail_memory(err, total * sizeof *log->attempts);
    for (size_t i = 0; i < total; i++) {
        const char *name = json_string_value(json_array_get(list, i));
        if (name == NULL || !presto__attempt_parse(name, &number, &count))
            return bad("'attempts' lists what is none", err);
        log->attempts[i] = strdup(name);
        if (log->attempts[i] == NULL)
            return presto_fail_memory(err, strlen(name));
        log->attempt_count++;
    }
    return PRESTO_OK;
}

static bool get_attempt(const json_t *value, const presto__join_log *log, size_t *out) {
    if (!json_is_integer(value) || json_integer_value(value) < 0 ||
        (uint64_t)json_integer_value(value) >= log->attempt_count)
        return false;
    *out = (size_t)json_integer_value(value);
    return true;
}

static presto_status take_moves(const json_t *list, presto__join_log *log, presto_error *err) {
    size_t total = json_array_size(list);
    if (!json_is_array(list))
        return bad("'moves' is no list", err);
    log->moves = calloc(total + 1, sizeof *log->moves);
    if (log->moves == NULL)
        return presto_fail_memory(err, total * sizeof *log->moves);
    for (size_t i = 0; i < total; i++) {
        const json_t *item = json_array_get(list, i);
        const char *file = json_string_value(json_array_get(item, 1));
        presto__join_move *move = &log->moves[i];
        if (file == NULL || !is_shard_name(file) ||
            !get_attempt(json_array_get(item, 0), log, &move->attempt))
            return bad("'moves' lists what is no shard of an attempt", err);
        move->file = strdup(file);
        if (move->file == NULL)
            return presto_fail_memory(err, strlen(file));
        log->move_count++;
    }
    return PRESTO_OK;
}

static presto_status take_root(const json_t *root, presto__join_log *log, presto_error *err) {
    const char *format = json_string_value(json_object_get(root, "format"));
    const json_t *version = json_object_get(root, "version");
    const json_t *dictionary = json_object_get(root, "dictionary");
    const char *dataset = json_string_value(json_object_get(root, "dataset"));
    presto_dataset_info info = {0};
    log->dictionary = SIZE_MAX;
    if (format == NULL || strcmp(format, PRESTO__JOIN_FORMAT) != 0 ||
        json_integer_value(version) != LOG_VERSION)
        return bad("'format' or 'version'", err);
    PRESTO_TRY(take_attempts(json_object_get(root, "attempts"), log, err));
    PRESTO_TRY(take_moves(json_object_get(root, "moves"), log, err));
    if (!json_is_null(dictionary) && !get_attempt(dictionary, log, &log->dictionary))
        return bad("'dictionary' is of no attempt", err);
    if (dataset == NULL)
        return bad("'dataset' is missing", err);
    PRESTO_TRY(
        presto__dataset_info_parse(presto_span_of_text(dataset), PRESTO_DATASET_FILE, &info, err));
    bool fits = info.shard_count == log->move_count &&
                (info.dictionary_file == NULL) == (log->dictionary == SIZE_MAX);
    for (size_t i = 0; fits && i < info.shard_count; i++)
        fits = strcmp(info.shards[i].file, log->moves[i].file) == 0;
    presto__dataset_info_free(&info);
    if (!fits)
        return bad("'dataset' has other files than 'moves'", err);
    log->dataset = strdup(dataset);
    return log->dataset == NULL ? presto_fail_memory(err, strlen(dataset)) : PRESTO_OK;
}

presto_status presto__join_log_parse(presto_span text, presto__join_log *log_out,
                                     presto_error *err) {
    json_error_t where = {0};
    presto_error why;
    presto__join_log log = {.dictionary = SIZE_MAX};
    if (presto__json_check(text, PRESTO__JSON_MAX_BYTES, PRESTO__JSON_MAX_WEIGHT, &why) < 0)
        return bad(why.message, err);
    json_t *root = json_loadb((const char *)text.data, text.bytes, JSON_REJECT_DUPLICATES, &where);
    if (root == NULL)
        return presto__json_ran_out(&where) ? presto_fail_memory(err, text.bytes)
                                            : bad(where.text, err);
    presto_status status = take_root(root, &log, err);
    json_decref(root);
    if (status < 0)
        presto__join_log_done(&log);
    else
        *log_out = log;
    return status;
}

bool presto__join_log_is(presto_span text) {
    json_t *root =
        presto__json_check(text, PRESTO__JSON_MAX_BYTES, PRESTO__JSON_MAX_WEIGHT, NULL) < 0
            ? NULL
            : json_loadb((const char *)text.data, text.bytes, 0, NULL);
    const char *format = json_string_value(json_object_get(root, "format"));
    bool is_log = format != NULL && strcmp(format, PRESTO__JOIN_FORMAT) == 0;
    json_decref(root);
    return is_log;
}

presto_status presto__join_log_read(const char *dir, presto__join_log *log_out, presto_error *err) {
    char *path = presto__join_path(dir, PRESTO_PROGRESS_FILE);
    presto_buffer text = {0};
    if (path == NULL)
        return presto_fail_memory(err, strlen(dir));
    presto_status status = presto_file_read(path, PRESTO__JSON_MAX_BYTES, &text, err);
    const presto_span span = presto_buffer_span(&text);
    if (status == PRESTO_OK && !presto__join_log_is(span)) {
        status = presto_fail(err, PRESTO_ERR_ARGUMENT, PRESTO_NO_OFFSET,
                             "holds an unfinished conversion that is not one of parts");
        presto_error_set_file(err, dir);
    } else if (status == PRESTO_OK) {
        status = presto__join_log_parse(span, log_out, err);
        if (status < 0)
            presto_error_set_file(err, path);
    }
    presto_buffer_done(&text);
    free(path);
    return status;
}

/* ---- doing it ---- */

/* DIR/_parts/FOLDER/FILE, and DIR/FILE. */
typedef struct place {
    char *from, *to;
} place;

static presto_status make_place(const char *dir, const char *folder, const char *file,
                                const char *suffix, place *place_out, presto_error *err) {
    size_t bytes = strlen(dir) + strlen(folder) + strlen(file) + strlen(suffix) +
                   sizeof PRESTO__PARTS_FOLDER + 8;
    place_out->from = malloc(bytes);
    place_out->to = malloc(bytes);
    if (place_out->from == NULL || place_out->to == NULL)
        return presto_fail_memory(err, bytes);
    snprintf(place_out->from, bytes, "%s/" PRESTO__PARTS_FOLDER "/%s/%s%s", dir, folder, file,
             suffix);
    snprintf(place_out->to, bytes, "%s/%s%s", dir, file, suffix);
    return PRESTO_OK;
}

/* Somebody has removed it since the join began. */
static presto_status fail_lost(const place *names, presto_error *err) {
    presto_status status =
        presto_fail(err, PRESTO_ERR_CORRUPT, PRESTO_NO_OFFSET,
                    "was removed while the parts were joined: remove the dataset's folder, and "
                    "write the parts again");
    presto_error_set_file(err, names->from);
    return status;
}

/* Unless a join before has done it. */
static presto_status move_file(const char *dir, const char *folder, const char *file,
                               const char *suffix, presto_error *err) {
    place names = {0};
    presto__object_info info;
    presto_error why;
    presto_status status = make_place(dir, folder, file, suffix, &names, &why);
    if (status == PRESTO_OK)
        status = presto__object_rename(names.from, names.to, &why);
    if (status == PRESTO_ERR_NOT_FOUND && presto__object_find(names.to, &info, NULL) == PRESTO_OK)
        status = PRESTO_OK;
    else if (status == PRESTO_ERR_NOT_FOUND)
        status = fail_lost(&names, err);
    else if (status < 0 && err != NULL)
        *err = why;
    free(names.from);
    free(names.to);
    return status;
}

/* What runs still write there goes, too, when they have ended: presto_clean removes it. */
static void remove_attempt(const char *parts, const char *name) {
    char *path = presto__join_path(parts, name);
    for (int i = 0;
         path != NULL && i < REMOVE_TRIES && presto__folder_remove(path, NULL) != PRESTO_OK; i++)
        ;
    free(path);
}

static presto_status remove_attempts(const char *dir, const presto__join_log *log,
                                     presto_error *err) {
    char *parts = presto__join_path(dir, PRESTO__PARTS_FOLDER);
    if (parts == NULL)
        return presto_fail_memory(err, strlen(dir));
    for (size_t i = 0; i < log->attempt_count; i++)
        remove_attempt(parts, log->attempts[i]);
    (void)rmdir(parts); /* unless a run has come since */
    free(parts);
    return PRESTO_OK;
}

presto_status presto__join_log_run(const char *dir, const presto__join_log *log, bool sync,
                                   presto_error *err) {
    char *path = presto__join_path(dir, PRESTO_PROGRESS_FILE);
    presto_status status = path == NULL ? presto_fail_memory(err, strlen(dir)) : PRESTO_OK;
    for (size_t i = 0; status == PRESTO_OK && i < log->move_count; i++) {
        const presto__join_move *move = &log->moves[i];
        const char *folder = log->attempts[move->attempt];
        status = move_file(dir, folder, move->file, INDEX, err);
        if (status == PRESTO_OK)
            status = move_file(dir, folder, move->file, "", err);
    }
    if (status == PRESTO_OK && log->dictionary != SIZE_MAX)
        status = move_file(dir, log->attempts[log->dictionary], PRESTO__DICTIONARY_FILE, "", err);
    if (status == PRESTO_OK && sync)
        status = presto__sync_folder(dir, err);
    if (status == PRESTO_OK)
        status = presto__dataset_text_write(dir, log->dataset, sync, err);
    if (status == PRESTO_OK)
        status = remove_attempts(dir, log, err);
    if (status == PRESTO_OK)
        status = presto__object_remove(path, err);
    free(path);
    return status;
}
