/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Many shares become one dataset. Of all attempts that stand there, those of one job count: the one
 * whose shares are all whole. Of each share one attempt counts. What they say is compared, their files
 * are looked at, dataset.json is made; only then, by join_log.c, anything is changed.
 *
 * dataset.json is that of one run: shares describe their shards alone, and features are widened over
 * all of them as they are over the threads of one run. A share without records says what its source
 * declares, which a run with records does not ask for.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <presto/crc32c.h>
#include <presto/numbers.h>
#include <presto/storage.h>

#include "../../base/clock_internal.h"
#include "../../base/file_internal.h"
#include "../../base/folder_internal.h"
#include "../../base/options_internal.h"
#include "../../base/stop_internal.h"
#include "../../records/dataset/dataset_internal.h"
#include "../../records/records_internal.h"
#include "share_internal.h"

#define MOST_NAMED 10 /* parts that are missing */

void presto_join_options_init(presto_join_options *options, size_t struct_bytes) {
    const presto_join_options defaults = {.sync = true};
    presto__options_give(options, struct_bytes, &defaults, sizeof defaults);
}

typedef struct joining {
    const char *dir;
    const presto_join_options *options;
    char *parts_dir;
    presto__paths all;
    presto__part_file *parts; /* of whole attempts: by job, number and name */
    size_t part_count;
    size_t unfinished;                /* attempts without a part.json */
    const presto__part_file **chosen; /* by number; borrowed from `parts` */
    size_t count;                     /* of shares */
    presto_dataset_info info;         /* of the dataset */
    uint64_t skipped, dropped;
} joining;

static void joining_done(joining *join) {
    presto__paths_done(&join->all);
    for (size_t i = 0; i < join->part_count; i++)
        presto__part_file_done(&join->parts[i]);
    free(join->parts);
    free((void *)join->chosen);
    free(join->parts_dir);
    presto__dataset_info_free(&join->info);
}

static void note(const joining *join, const char *text) {
    if (join->options->on_note != NULL)
        join->options->on_note(join->options->on_note_user, text);
}

static presto_status fail_join(const joining *join, presto_status code, const char *text,
                               presto_error *err) {
    presto_status status = presto_fail(err, code, PRESTO_NO_OFFSET, "%s", text);
    presto_error_set_file(err, join->dir);
    return status;
}

/* ---- the attempts ---- */

static bool is_wanted(const joining *join, const char *folder) {
    const presto_join_options *options = join->options;
    bool found = options->attempts == NULL;
    for (size_t i = 0; !found && i < options->attempt_count; i++)
        found = strcmp(options->attempts[i], folder) == 0;
    return found;
}

/* Each that was asked for must be there. */
static presto_status check_wanted(const joining *join, presto_error *err) {
    const presto_join_options *options = join->options;
    for (size_t i = 0; options->attempts != NULL && i < options->attempt_count; i++) {
        bool found = false;
        for (size_t k = 0; !found && k < join->all.count; k++)
            found = strcmp(options->attempts[i], join->all.items[k]) == 0;
        if (!found) {
            presto_status status = presto_fail(err, PRESTO_ERR_NOT_FOUND, PRESTO_NO_OFFSET,
                                               "no attempt '%.96s'", options->attempts[i]);
            presto_error_set_file(err, join->parts_dir);
            return status;
        }
    }
    return PRESTO_OK;
}

static presto_status read_part(joining *join, const char *folder, presto_error *err) {
    presto__part_file *part = &join->parts[join->part_count];
    size_t number, count;
    char *path = presto__join_path(join->parts_dir, folder);
    presto_error why;
    presto_status status =
        path == NULL ? presto_fail_memory(&why, 0) : presto__part_file_read(path, part, &why);
    if (status == PRESTO_OK) {
        join->part_count++; /* it is freed with the others */
        part->folder = strdup(folder);
        if (part->folder == NULL)
            status = presto_fail_memory(&why, strlen(folder));
    }
    if (status == PRESTO_OK && presto__attempt_parse(folder, &number, &count) &&
        (number != part->number || count != part->count)) {
        status = presto_fail(&why, PRESTO_ERR_CORRUPT, PRESTO_NO_OFFSET, "holds part %zu of %zu",
                             part->number, part->count);
        presto_error_set_file(&why, path);
    }
    free(path);
    if (status == PRESTO_ERR_NOT_FOUND) {
        join->unfinished++;
        return PRESTO_OK;
    }
    if (status < 0 && err != NULL)
        *err = why;
    return status;
}

static int compare_parts(const void *a, const void *b) {
    const presto__part_file *x = a, *y = b;
    int order = strcmp(x->job, y->job);
    if (order == 0)
        order = (x->number > y->number) - (x->number < y->number);
    return order != 0 ? order : strcmp(x->folder, y->folder);
}

static presto_status read_parts(joining *join, presto_error *err) {
    PRESTO_TRY(presto__attempts_list(join->parts_dir, &join->all, err));
    if (join->all.count == 0)
        return fail_join(join, PRESTO_ERR_NOT_FOUND,
                         "no parts in it: presto-write --part K/N writes them", err);
    PRESTO_TRY(check_wanted(join, err));
    join->parts = calloc(join->all.count, sizeof *join->parts);
    if (join->parts == NULL)
        return presto_fail_memory(err, join->all.count * sizeof *join->parts);
    for (size_t i = 0; i < join->all.count; i++) {
        if (!is_wanted(join, join->all.items[i]))
            continue;
        PRESTO_TRY(presto__stop_check(err));
        PRESTO_TRY(read_part(join, join->all.items[i], err));
    }
    if (join->part_count > 0)
        qsort(join->parts, join->part_count, sizeof *join->parts, compare_parts);
    return PRESTO_OK;
}

/* ---- which job ---- */

/* Parts [first, end) are those of one job. */
typedef struct group {
    size_t first, end;
    size_t shares; /* of which there is an attempt */
} group;

static group group_at(const joining *join, size_t first) {
    group one = {.first = first, .end = first};
    const presto__part_file *parts = join->parts;
    while (one.end < join->part_count && strcmp(parts[one.end].job, parts[first].job) == 0) {
        one.shares += one.end == first || parts[one.end].number != parts[one.end - 1].number;
        one.end++;
    }
    return one;
}

static presto_status fail_two_jobs(const joining *join, size_t a, size_t b, presto_error *err) {
    char key[64], text[480];
    (void)presto__jobs_differ(join->parts[a].job, join->parts[b].job, key);
    snprintf(text, sizeof text,
             "holds the parts of two datasets, which differ in %s, as %s and %s do: remove the "
             "folders of one, or name the attempts that count",
             key, join->parts[a].folder, join->parts[b].folder);
    return fail_join(join, PRESTO_ERR_ARGUMENT, text, err);
}

/* The group lacks shares. Parts before or behind it are of another job. */
static presto_status fail_lacking(const joining *join, const group *best, presto_error *err) {
    char others[240] = "", key[64];
    size_t other = best->first > 0 ? 0 : best->end;
    if (other < join->part_count) {
        (void)presto__jobs_differ(join->parts[best->first].job, join->parts[other].job, key);
        snprintf(others, sizeof others, "; %s is a part of another dataset, which differs in %s",
                 join->parts[other].folder, key);
    }
    char text[680], numbers[12 * MOST_NAMED] = "";
    size_t count = join->parts[best->first].count, lacking = count - best->shares;
    size_t at = best->first, named = 0, used = 0;
    for (size_t number = 0; number < count && named < MOST_NAMED; number++) {
        while (at < best->end && join->parts[at].number < number)
            at++;
        if (at < best->end && join->parts[at].number == number)
            continue;
        used += (size_t)snprintf(numbers + used, sizeof numbers - used, "%s%zu",
                                 named == 0 ? "" : ", ", number);
        named++;
    }
    snprintf(text, sizeof text,
             "%zu of %zu parts %s not whole: %s%s (%zu attempt%s begun and not ended)%s", lacking,
             count, lacking == 1 ? "is" : "are", numbers, named < lacking ? ", ..." : "",
             join->unfinished, join->unfinished == 1 ? " has" : "s have", others);
    return fail_join(join, PRESTO_ERR_BUSY, text, err);
}

static presto_status choose_group(const joining *join, group *group_out, presto_error *err) {
    group best = {0}, one;
    bool has_whole = false;
    if (join->part_count == 0) {
        char text[128];
        snprintf(text, sizeof text, "no part is whole: %zu attempt%s begun and not ended",
                 join->unfinished, join->unfinished == 1 ? " has" : "s have");
        return fail_join(join, PRESTO_ERR_BUSY, text, err);
    }
    for (size_t first = 0; first < join->part_count; first = one.end) {
        one = group_at(join, first);
        bool is_whole = one.shares == join->parts[first].count;
        if (is_whole && has_whole)
            return fail_two_jobs(join, best.first, first, err);
        if (is_whole || (!has_whole && one.shares > best.shares))
            best = one;
        has_whole = has_whole || is_whole;
    }
    if (!has_whole)
        return fail_lacking(join, &best, err);
    *group_out = best;
    return PRESTO_OK;
}

/* ---- which attempts ---- */

static bool same_features(const presto_dataset_info *a, const presto_dataset_info *b) {
    const presto__schema x = {.features = a->features, .count = a->feature_count};
    const presto__schema y = {.features = b->features, .count = b->feature_count};
    return presto__schema_equal(&x, &y);
}

static bool same_result(const presto__part_file *a, const presto__part_file *b) {
    bool same = a->skipped == b->skipped && a->dropped == b->dropped &&
                a->dictionary_crc32c == b->dictionary_crc32c && same_features(&a->info, &b->info);
    for (size_t i = 0; same && i < a->info.shard_count; i++) {
        const presto_dataset_shard *x = &a->info.shards[i], *y = &b->info.shards[i];
        same = x->records == y->records && x->stored_bytes == y->stored_bytes &&
               x->raw_bytes == y->raw_bytes && x->crc32c == y->crc32c;
    }
    return same;
}

static presto_status choose_attempts(joining *join, const group *taken, presto_error *err) {
    char text[480];
    join->count = join->parts[taken->first].count;
    join->chosen = calloc(join->count, sizeof *join->chosen);
    if (join->chosen == NULL)
        return presto_fail_memory(err, join->count * sizeof *join->chosen);
    for (size_t i = taken->first; i < taken->end; i++) {
        const presto__part_file *part = &join->parts[i];
        const presto__part_file **chosen = &join->chosen[part->number];
        if (*chosen == NULL) {
            *chosen = part;
            join->skipped += part->skipped;
            join->dropped += part->dropped;
            continue;
        }
        snprintf(text, sizeof text,
                 "two attempts at part %zu have written other bytes, %s and %s: remove one, or "
                 "name the attempts that count",
                 part->number, (*chosen)->folder, part->folder);
        if (!same_result(*chosen, part))
            return fail_join(join, PRESTO_ERR_ARGUMENT, text, err);
        snprintf(text, sizeof text, "part %zu was written twice, with the same records: %s counts",
                 part->number, (*chosen)->folder);
        note(join, text);
    }
    if (join->unfinished > 0) {
        snprintf(text, sizeof text, "%zu attempt%s that %s not whole will go", join->unfinished,
                 presto_plural(join->unfinished), join->unfinished == 1 ? "is" : "are");
        note(join, text);
    }
    if (taken->end - taken->first < join->part_count) {
        snprintf(text, sizeof text, "%zu part%s of another dataset, which is not whole, will go",
                 join->part_count - (taken->end - taken->first),
                 presto_plural(join->part_count - (taken->end - taken->first)));
        note(join, text);
    }
    return PRESTO_OK;
}

/* ---- do they fit together, and are they there? ---- */

/* `any` is one of the shares. */
static presto_status check_skipped(const joining *join, const presto__part_file *any,
                                   presto_error *err) {
    char text[240];
    bool is_many = join->skipped > any->skip_limit;
    if (!is_many &&
        (join->skipped == 0 || (double)join->skipped <= any->skip_fraction * (double)any->samples))
        return PRESTO_OK;
    if (is_many)
        snprintf(text, sizeof text,
                 "%" PRIu64 " of %" PRIu64 " sample%s had to be left out, which is more than the "
                 "%" PRIu64 " allowed",
                 join->skipped, any->samples, presto_plural(any->samples), any->skip_limit);
    else
        snprintf(text, sizeof text,
                 "%" PRIu64 " of %" PRIu64 " sample%s had to be left out, which is more than the "
                 "%g %% allowed",
                 join->skipped, any->samples, presto_plural(any->samples),
                 any->skip_fraction * 100);
    return fail_join(join, PRESTO_ERR_CORRUPT, text, err);
}

static presto_status check_file(const joining *join, const presto__part_file *part,
                                const char *file, const char *suffix, const uint64_t *bytes,
                                presto_error *err) {
    char name[PRESTO__ATTEMPT_FOLDER_BYTES + PRESTO__SHARD_NAME_BYTES + 16];
    struct stat info;
    presto_status status = PRESTO_OK;
    snprintf(name, sizeof name, "%s/%s%s", part->folder, file, suffix);
    char *path = presto__join_path(join->parts_dir, name);
    if (path == NULL)
        return presto_fail_memory(err, 0);
    if (lstat(path, &info) != 0 || !S_ISREG(info.st_mode))
        status =
            presto_fail(err, PRESTO_ERR_CORRUPT, PRESTO_NO_OFFSET,
                        "is missing, or is no file; remove its folder and write the part again");
    else if (bytes != NULL && (uint64_t)info.st_size != *bytes)
        status = presto_fail(err, PRESTO_ERR_CORRUPT, PRESTO_NO_OFFSET,
                             "has %" PRIu64 " bytes, but part.json says %" PRIu64
                             "; remove its folder and write the part again",
                             (uint64_t)info.st_size, *bytes);
    if (status < 0)
        presto_error_set_file(err, path);
    free(path);
    return status;
}

static presto_status check_dictionary(const joining *join, const presto__part_file *part,
                                      presto_error *err) {
    char name[PRESTO__ATTEMPT_FOLDER_BYTES + 16];
    presto_buffer content = {0};
    snprintf(name, sizeof name, "%s/" PRESTO__DICTIONARY_FILE, part->folder);
    char *path = presto__join_path(join->parts_dir, name);
    if (path == NULL)
        return presto_fail_memory(err, 0);
    presto_status status = presto_file_read(path, PRESTO_CODEC_MAX_DICTIONARY_BYTES, &content, err);
    if (status == PRESTO_OK &&
        presto_crc32c(0, content.data, content.bytes) != part->dictionary_crc32c) {
        status = presto_fail(err, PRESTO_ERR_CORRUPT, PRESTO_NO_OFFSET,
                             "is not what part.json says; remove its folder and write the part "
                             "again");
        presto_error_set_file(err, path);
    }
    presto_buffer_done(&content);
    free(path);
    return status;
}

static presto_status check_part(const joining *join, const presto__part_file *part,
                                presto_error *err) {
    const presto__part_file *first = join->chosen[0];
    char text[480];
    PRESTO_TRY(presto__stop_check(err));
    if (part->has_dictionary != first->has_dictionary ||
        part->dictionary_crc32c != first->dictionary_crc32c) {
        snprintf(text, sizeof text,
                 "%s and %s have other dictionaries: the files that they read had other contents",
                 first->folder, part->folder);
        return fail_join(join, PRESTO_ERR_ARGUMENT, text, err);
    }
    for (size_t i = 0; i < part->info.shard_count; i++) {
        const presto_dataset_shard *shard = &part->info.shards[i];
        PRESTO_TRY(check_file(join, part, shard->file, "", &shard->stored_bytes, err));
        PRESTO_TRY(check_file(join, part, shard->file, ".index", NULL, err));
    }
    return part->has_dictionary && part == first ? check_dictionary(join, part, err) : PRESTO_OK;
}

/* ---- dataset.json ---- */

static uint64_t records_of(const presto_dataset_info *info) {
    uint64_t records = 0;
    for (size_t i = 0; i < info->shard_count; i++)
        records += info->shards[i].records;
    return records;
}

/* If all are alike, in their order: steps may not have run, and then it is that of the source. */
static presto_status merge_features(joining *join, presto_error *err) {
    const presto_dataset_info *first = NULL;
    presto__schema merged = {0};
    presto_status status = PRESTO_OK;
    bool is_alike = true;
    for (size_t i = 0; i < join->count && status == PRESTO_OK; i++) {
        const presto_dataset_info *info = &join->chosen[i]->info;
        if (records_of(info) == 0)
            continue;
        const presto__schema one = {.features = info->features, .count = info->feature_count};
        is_alike = is_alike && (first == NULL || same_features(first, info));
        first = first == NULL ? info : first;
        status = presto__schema_merge(&merged, &one, err);
    }
    if (first == NULL)
        first = &join->chosen[0]->info;
    if (status == PRESTO_OK)
        status = is_alike
                     ? presto__info_copy_features(&join->info, first->features,
                                                  first->feature_count, err)
                     : presto__info_copy_features(&join->info, merged.features, merged.count, err);
    presto__schema_done(&merged);
    return status;
}

static presto_status copy_text(const char *text, char **out, presto_error *err) {
    *out = text == NULL ? NULL : strdup(text);
    return text == NULL || *out != NULL ? PRESTO_OK : presto_fail_memory(err, strlen(text));
}

/* What all parts say alike. */
static presto_status copy_common(joining *join, presto_error *err) {
    const presto_dataset_info *from = &join->chosen[0]->info;
    presto_dataset_info *info = &join->info;
    info->file_compression = from->file_compression;
    info->seed = from->seed;
    PRESTO_TRY(copy_text(from->pipeline_json, &info->pipeline_json, err));
    PRESTO_TRY(copy_text(from->stored, &info->stored, err));
    PRESTO_TRY(copy_text(from->main_feature, &info->main_feature, err));
    PRESTO_TRY(copy_text(from->codec, &info->codec, err));
    PRESTO_TRY(copy_text(from->dictionary_file, &info->dictionary_file, err));
    PRESTO_TRY(copy_text(from->tool_version, &info->tool_version, err));
    PRESTO_TRY(copy_text(from->input, &info->input, err));
    if (from->label_names == NULL)
        return PRESTO_OK;
    info->label_names = calloc(from->label_count + 1, sizeof *info->label_names);
    if (info->label_names == NULL)
        return presto_fail_memory(err, from->label_count * sizeof *info->label_names);
    for (size_t i = 0; i < from->label_count; i++) {
        info->label_count = i + 1;
        PRESTO_TRY(copy_text(from->label_names[i], &info->label_names[i], err));
    }
    return PRESTO_OK;
}

static presto_status copy_shards(joining *join, presto_error *err) {
    size_t total = join->chosen[0]->shards;
    presto_dataset_info *info = &join->info;
    info->shards = calloc(total + 1, sizeof *info->shards);
    if (info->shards == NULL)
        return presto_fail_memory(err, (total + 1) * sizeof *info->shards);
    for (size_t i = 0; i < join->count; i++)
        for (size_t k = 0; k < join->chosen[i]->info.shard_count; k++) {
            presto_dataset_shard *shard = &info->shards[info->shard_count++];
            *shard = join->chosen[i]->info.shards[k];
            shard->file = NULL;
            PRESTO_TRY(copy_text(join->chosen[i]->info.shards[k].file, &shard->file, err));
        }
    return PRESTO_OK;
}

/* Records that were stored again, all and in order, are the stream that their input was. */
static void note_stream(joining *join) {
    const presto__part_file *first = join->chosen[0];
    bool is_stream = true;
    for (size_t i = 0; i < join->count; i++) {
        const presto__part_file *part = join->chosen[i];
        is_stream = is_stream && part->has_stream &&
                    part->stream_counted == first->stream_counted &&
                    part->stream_files == first->stream_files;
    }
    join->info.has_stream = is_stream && records_of(&join->info) == first->stream_records;
    if (join->info.has_stream) {
        join->info.stream_counted = first->stream_counted;
        join->info.stream_files = first->stream_files;
    }
}

static presto_status make_info(joining *join, presto_error *err) {
    PRESTO_TRY(copy_common(join, err));
    PRESTO_TRY(merge_features(join, err));
    PRESTO_TRY(copy_shards(join, err));
    note_stream(join);
    return PRESTO_OK;
}

/* ---- the log ---- */

/* Where the folder of a part is in the list of all. */
static size_t place_of(const joining *join, const presto__part_file *part) {
    size_t low = 0, high = join->all.count;
    while (low + 1 < high) {
        size_t middle = low + (high - low) / 2;
        if (strcmp(join->all.items[middle], part->folder) <= 0)
            low = middle;
        else
            high = middle;
    }
    return low;
}

static presto_status fill_log(joining *join, presto__join_log *log, presto_error *err) {
    size_t total = join->info.shard_count;
    presto__paths_done(&join->all); /* some have come since; what counts is there still */
    PRESTO_TRY(presto__attempts_list(join->parts_dir, &join->all, err));
    log->dictionary = join->chosen[0]->has_dictionary ? place_of(join, join->chosen[0]) : SIZE_MAX;
    log->attempts = calloc(join->all.count + 1, sizeof *log->attempts);
    log->moves = calloc(total + 1, sizeof *log->moves);
    if (log->attempts == NULL || log->moves == NULL)
        return presto_fail_memory(err, (total + join->all.count) * sizeof *log->moves);
    for (size_t i = 0; i < join->all.count; i++) {
        PRESTO_TRY(copy_text(join->all.items[i], &log->attempts[i], err));
        log->attempt_count++;
    }
    for (size_t i = 0; i < join->count; i++) {
        const presto__part_file *part = join->chosen[i];
        for (size_t k = 0; k < part->info.shard_count; k++) {
            presto__join_move *move = &log->moves[log->move_count];
            move->attempt = place_of(join, part);
            PRESTO_TRY(copy_text(part->info.shards[k].file, &move->file, err));
            log->move_count++;
        }
    }
    presto_status status = presto__dataset_info_text(&join->info, NULL, &log->dataset, err);
    if (status < 0)
        presto_error_set_file(err, join->dir);
    return status;
}

/* All that can be wrong is found here; nothing is changed. */
static presto_status plan(joining *join, presto__join_log *log, presto_error *err) {
    group taken = {0};
    PRESTO_TRY(presto__share_check_out(join->dir, err));
    PRESTO_TRY(read_parts(join, err));
    PRESTO_TRY(choose_group(join, &taken, err));
    PRESTO_TRY(choose_attempts(join, &taken, err));
    PRESTO_TRY(check_skipped(join, &join->parts[taken.first], err));
    for (size_t i = 0; i < join->count; i++)
        PRESTO_TRY(check_part(join, join->chosen[i], err));
    PRESTO_TRY(make_info(join, err));
    PRESTO_TRY(fill_log(join, log, err));
    return presto__stop_check(err);
}

static presto_status plan_in_pass(joining *join, presto__join_log *log, presto_error *err) {
    presto__stop_hook pass;
    presto__stop_scope before =
        presto__stop_enter(&pass, join->options->should_stop, join->options->should_stop_user);
    return presto__stop_leave(&pass, before, plan(join, log, err), err);
}

/* ---- all of it ---- */

/* The folder is ours. */
static presto_status run(joining *join, presto_error *err) {
    presto__join_log log = {.dictionary = SIZE_MAX};
    presto_error why;
    bool sync = join->options->sync;
    presto_status status = presto__join_log_read(join->dir, &log, &why);
    if (status == PRESTO_OK)
        note(join, "a join that has begun here is finished");
    if (status == PRESTO_ERR_NOT_FOUND) {
        status = plan_in_pass(join, &log, &why);
        if (status == PRESTO_OK)
            status = presto__join_log_write(join->dir, &log, sync, &why);
    }
    if (status == PRESTO_OK)
        status = presto__join_log_run(join->dir, &log, sync, &why);
    presto__join_log_done(&log);
    if (status < 0 && err != NULL)
        *err = why;
    return status;
}

/* Is there a dataset, and no join that has begun? */
static presto_status is_done(const joining *join, bool *done_out, presto_error *err) {
    char *log = presto__join_path(join->dir, PRESTO_PROGRESS_FILE);
    struct stat info;
    if (log == NULL)
        return presto_fail_memory(err, 0);
    bool has_begun = lstat(log, &info) == 0;
    free(log);
    *done_out = false;
    return has_begun ? PRESTO_OK : presto__path_is_dataset(join->dir, done_out, err);
}

/* Of a join that was killed at its very end, the lock's file is left. */
static void tell_done(const joining *join) {
    struct stat info;
    char *path = presto__join_path(join->dir, PRESTO_LOCK_FILE);
    presto_folder_lock *lock = NULL;
    if (path != NULL && lstat(path, &info) == 0 &&
        presto__folder_lock_take(join->dir, &lock, NULL) == PRESTO_OK)
        presto_folder_lock_release(lock);
    free(path);
    note(join, lstat(join->parts_dir, &info) != 0
                   ? "the dataset is whole already: nothing is to be joined"
                   : "the dataset is whole already; attempts that came late stay in _parts until "
                     "presto-inspect clean removes them");
}

static presto_status join_folder(joining *join, presto_error *err) {
    bool is_whole = false;
    presto_folder_lock *lock = NULL;
    if (presto__path_is_remote(join->dir))
        return fail_join(join, PRESTO_ERR_UNSUPPORTED,
                         "parts are joined in a folder, not yet in a bucket", err);
    join->parts_dir = presto__join_path(join->dir, PRESTO__PARTS_FOLDER);
    if (join->parts_dir == NULL)
        return presto_fail_memory(err, 0);
    PRESTO_TRY(is_done(join, &is_whole, err));
    if (is_whole) {
        tell_done(join);
        return PRESTO_OK;
    }
    PRESTO_TRY(presto__folder_lock_take(join->dir, &lock, err));
    presto_status status = is_done(join, &is_whole, err); /* another join may just have ended */
    if (status == PRESTO_OK && is_whole)
        tell_done(join);
    else if (status == PRESTO_OK)
        status = run(join, err);
    presto_folder_lock_release(lock);
    return status;
}

static presto_status fill_result(const joining *join, presto_convert_result *result,
                                 presto_error *err) {
    presto_dataset_info info = {0};
    PRESTO_TRY(presto__dataset_info_read(join->dir, &info, err));
    for (size_t i = 0; i < info.shard_count; i++) {
        result->samples += info.shards[i].records;
        result->stored_bytes += info.shards[i].stored_bytes;
        result->raw_bytes += info.shards[i].raw_bytes;
    }
    result->shards = info.shard_count;
    result->skipped = join->skipped + join->dropped;
    result->dropped = join->dropped;
    presto__dataset_info_free(&info);
    return PRESTO_OK;
}

presto_status presto_dataset_join_sized(const char *dir, const presto_join_options *options,
                                        presto_convert_result *result_out, presto_error *err) {
    presto_join_options taken;
    presto_join_options_defaults(&taken);
    PRESTO_TRY(presto__options_take(&taken, sizeof taken, options, err));
    PRESTO_TRY(presto__result_check(result_out, err));
    if (dir == NULL || dir[0] == '\0')
        return presto_fail(err, PRESTO_ERR_ARGUMENT, PRESTO_NO_OFFSET, "which folder is joined?");
    joining join = {.dir = dir, .options = &taken};
    presto_convert_result result = {0};
    uint64_t started_ns = presto__clock_ns(), cpu_ns = presto__clock_process_cpu_ns();
    presto_status status = join_folder(&join, err);
    if (status == PRESTO_OK)
        status = fill_result(&join, &result, err);
    result.wall_ns = presto__clock_ns() - started_ns;
    result.cpu_ns = presto__clock_process_cpu_ns() - cpu_ns;
    if (status == PRESTO_OK)
        presto__result_give(result_out, &result, sizeof result);
    joining_done(&join);
    return status;
}
