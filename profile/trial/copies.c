/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A trial's dataset with its records stored several times over: an epoch of it lasts long enough to
 * see what a loader delivers once it is under way. Each file has the records of the trial's file,
 * again and again, so that there are as many files as before, each read as one long file would be.
 * Or it has the first records of that file only, for an epoch that is shorter, and opens as many files.
 * Or all are in one file, for epochs that are told apart from opening the others (rounds.c).
 * Records are copied as they are stored: no step runs for it.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../base/clock_internal.h"
#include "../../base/file_internal.h"
#include "../../base/folder_internal.h"
#include "../../records/records_internal.h"
#include "../../storage/storage_internal.h"
#include "trial_internal.h"

#define CHUNK_RECORDS 4096
#define CHUNK_BYTES ((uint64_t)4 << 20)
#define REPORT_EVERY_NS UINT64_C(200000000)

/* ---- room ---- */

static uint64_t held_bytes(const presto__runner *runner) {
    uint64_t bytes = 0;
    for (size_t i = 0; i < runner->trial_count; i++)
        bytes += runner->trials[i].dir_bytes + runner->trials[i].copies.bytes;
    return bytes;
}

uint64_t presto__copies_room(const presto__runner *runner) {
    uint64_t free_bytes = presto__disk_free_bytes(runner->work_dir) / 2;
    uint64_t budget = runner->options->work_bytes, held = held_bytes(runner);
    uint64_t left = held < budget ? budget - held : 0;
    return left < free_bytes ? left : free_bytes;
}

/* ---- copying ---- */

typedef struct copying {
    presto__runner *runner;
    const presto__trial *trial;
    uint64_t times, part, in_one, reported_ns; /* of the copies */
} copying;

static uint64_t records_of(const copying *job, presto_shard *shard) {
    uint64_t all = presto_shard_records(shard);
    return job->part > 0 ? (all + job->part - 1) / job->part : all;
}

static presto_status report(copying *job, presto_error *err) {
    uint64_t now_ns = presto__clock_ns();
    if (now_ns - job->reported_ns < REPORT_EVERY_NS)
        return PRESTO_OK;
    job->reported_ns = now_ns;
    return presto__runner_report(job->runner, &job->trial->result.strategy, NULL, err);
}

/* Records [first, ...) of a shard that fit into a chunk, at least one. */
static size_t chunk_of(const uint64_t *offsets, size_t count) {
    size_t taken = 1;
    while (taken < count && taken < CHUNK_RECORDS && offsets[taken + 1] - offsets[0] <= CHUNK_BYTES)
        taken++;
    return taken;
}

/* What is read: the first records of a file. */
typedef struct reading {
    presto_shard *shard;
    presto__object object;
    uint64_t records;
} reading;

static presto_status copy_once(copying *job, const reading *from, presto__shard_writer *writer,
                               presto_buffer *room, presto_error *err) {
    presto_shard *shard = from->shard;
    uint64_t records = from->records;
    const uint64_t *offsets = NULL;
    PRESTO_TRY(presto__shard_offsets(shard, 0, records, &offsets, err));
    uint32_t sizes[CHUNK_RECORDS];
    for (uint64_t first = 0; first < records;) {
        size_t count = chunk_of(offsets + first, (size_t)(records - first)), got = 0;
        uint64_t bytes = offsets[first + count] - offsets[first];
        if (bytes > UINT32_MAX) /* a record that is larger needs no copies */
            return presto_fail(err, PRESTO_ERR_UNSUPPORTED, PRESTO_NO_OFFSET,
                               "a record of %ju bytes is not copied", (uintmax_t)bytes);
        for (size_t i = 0; i < count; i++)
            sizes[i] = (uint32_t)(offsets[first + i + 1] - offsets[first + i]);
        const presto__object_place place = {from->object, presto_shard_path(shard), offsets[first]};
        room->bytes = 0;
        PRESTO_TRY(presto_buffer_reserve(room, (size_t)bytes, err));
        PRESTO_TRY(presto__read_at(place, room->data, (size_t)bytes, &got, err));
        if (got < bytes)
            return presto_fail(err, PRESTO_ERR_TRUNCATED, PRESTO_NO_OFFSET,
                               "a trial's file has become shorter");
        PRESTO_TRY(presto__shard_writer_append_frames(writer, presto_span_of(room->data, got),
                                                      sizes, count, err));
        PRESTO_TRY(report(job, err));
        first += count;
    }
    return PRESTO_OK;
}

/* One file, so many times over. */
static presto_status copy_shard(copying *job, presto_shard *shard, const char *path,
                                presto__shard_summary *summary_out, presto_error *err) {
    presto__shard_writer_options options;
    presto__shard_writer *writer = NULL;
    presto_buffer room = {0};
    reading from = {.shard = shard, .records = records_of(job, shard)};
    presto__object_info info;
    presto__shard_writer_options_defaults(&options);
    PRESTO_TRY(presto__object_open(presto_shard_path(shard), &from.object, &info, err));
    presto_status status = presto__shard_writer_open(path, &options, &writer, err);
    for (uint64_t k = 0; k < job->times && status == PRESTO_OK; k++)
        status = copy_once(job, &from, writer, &room, err);
    if (status == PRESTO_OK)
        status = presto__shard_writer_finish(writer, summary_out, err);
    presto__shard_writer_free(writer);
    presto_buffer_done(&room);
    presto__object_close(&from.object);
    return status;
}

static presto_status open_shard(presto_dataset *dataset, size_t i, presto_shard **shard_out,
                                presto_error *err) {
    PRESTO_TRY(presto_dataset_shard_at(dataset, i, shard_out, err));
    return presto_shard_index(*shard_out, false, NULL, err);
}

/* The records of all files, again and again, until there are enough in the writer's. */
static presto_status append_all(copying *job, presto_dataset *dataset, presto__shard_writer *writer,
                                presto_buffer *room, presto_error *err) {
    size_t shards = presto_dataset_shard_count(dataset);
    uint64_t left = job->in_one;
    for (size_t i = 0; left > 0; i = (i + 1) % shards) {
        reading from = {.records = 0};
        presto__object_info info;
        PRESTO_TRY(open_shard(dataset, i, &from.shard, err));
        uint64_t records = presto_shard_records(from.shard);
        from.records = records < left ? records : left;
        PRESTO_TRY(presto__object_open(presto_shard_path(from.shard), &from.object, &info, err));
        presto_status status = copy_once(job, &from, writer, room, err);
        presto__object_close(&from.object);
        PRESTO_TRY(status);
        left -= from.records;
    }
    return PRESTO_OK;
}

static presto_status copy_into_one(copying *job, presto_dataset *dataset, const char *path,
                                   presto__shard_summary *summary_out, presto_error *err) {
    presto__shard_writer_options options;
    presto__shard_writer *writer = NULL;
    presto_buffer room = {0};
    presto__shard_writer_options_defaults(&options);
    if (presto_dataset_records(dataset) == 0)
        return presto_fail(err, PRESTO_ERR_UNSUPPORTED, PRESTO_NO_OFFSET,
                           "there is no record to copy");
    presto_status status = presto__shard_writer_open(path, &options, &writer, err);
    if (status == PRESTO_OK)
        status = append_all(job, dataset, writer, &room, err);
    if (status == PRESTO_OK)
        status = presto__shard_writer_finish(writer, summary_out, err);
    presto__shard_writer_free(writer);
    presto_buffer_done(&room);
    return status;
}

static presto_status copy_dictionary(const copying *job, const char *file, const char *dir,
                                     presto_error *err) {
    char *from = presto__join_path(job->trial->dir, file), *to = presto__join_path(dir, file);
    presto_buffer bytes = {0};
    presto_status status =
        from != NULL && to != NULL
            ? presto_file_read(from, PRESTO_CODEC_MAX_DICTIONARY_BYTES, &bytes, err)
            : presto_fail_memory(err, strlen(dir));
    if (status == PRESTO_OK)
        status = presto_file_replace(to, &(presto_span){bytes.data, bytes.bytes}, 1, false, err);
    presto_buffer_done(&bytes);
    free(from);
    free(to);
    return status;
}

/* What the file of the copies holds instead of `records` of the trial. No record may be larger than all
 * of its file, so a part of them is told to be as large as all. */
static void describe(const presto__shard_summary *summary, uint64_t records,
                     presto_dataset_shard *shard) {
    double times = (double)summary->records / (double)(records + !records);
    shard->raw_bytes = (uint64_t)ceil((double)shard->raw_bytes * fmax(times, 1));
    shard->records = summary->records;
    shard->stored_bytes = summary->stored_bytes;
    shard->crc32c = summary->crc32c;
}

static presto_status copy_each(copying *job, presto_dataset *dataset, presto_dataset_info *info,
                               presto__copies *into, presto_error *err) {
    for (size_t i = 0; i < info->shard_count; i++) {
        presto_shard *shard = NULL;
        presto__shard_summary summary = {.struct_bytes = sizeof summary};
        PRESTO_TRY(open_shard(dataset, i, &shard, err));
        char *path = presto__join_path(into->dir, info->shards[i].file);
        if (path == NULL)
            return presto_fail_memory(err, strlen(into->dir));
        presto_status status = copy_shard(job, shard, path, &summary, err);
        free(path);
        PRESTO_TRY(status);
        describe(&summary, presto_shard_records(shard), &info->shards[i]);
        into->bytes += summary.stored_bytes;
    }
    return PRESTO_OK;
}

static presto_status copy_all(copying *job, presto_dataset *dataset, presto_dataset_info *info,
                              presto__copies *into, presto_error *err) {
    presto__shard_summary summary = {.struct_bytes = sizeof summary};
    for (size_t i = 1; i < info->shard_count; i++)
        info->shards[0].raw_bytes += info->shards[i].raw_bytes;
    char *path = presto__join_path(into->dir, info->shards[0].file);
    if (path == NULL)
        return presto_fail_memory(err, strlen(into->dir));
    presto_status status = copy_into_one(job, dataset, path, &summary, err);
    free(path);
    PRESTO_TRY(status);
    describe(&summary, presto_dataset_records(dataset), &info->shards[0]);
    into->bytes = summary.stored_bytes;
    return PRESTO_OK;
}

/* The copies have the trial's dataset.json, but for how much each file holds. */
static presto_status copy_dataset(copying *job, presto_dataset *dataset, presto__copies *into,
                                  presto_error *err) {
    presto_dataset_info info = {0};
    PRESTO_TRY(presto__dataset_info_read(job->trial->dir, &info, err));
    size_t shards = info.shard_count;
    presto_status status = presto__folder_make(into->dir, err);
    if (status == PRESTO_OK && info.dictionary_file != NULL)
        status = copy_dictionary(job, info.dictionary_file, into->dir, err);
    if (status == PRESTO_OK)
        status = job->in_one > 0 ? copy_all(job, dataset, &info, into, err)
                                 : copy_each(job, dataset, &info, into, err);
    info.has_stream = false; /* it has other records than its input */
    info.shard_count = job->in_one > 0 ? 1 : shards;
    if (status == PRESTO_OK)
        status = presto__dataset_info_write(into->dir, &info, true, err);
    info.shard_count = shards;
    presto__dataset_info_free(&info);
    return status;
}

static presto_status make(presto__runner *runner, presto__trial *trial, presto__copies made,
                          presto_error *err) {
    presto__copies_remove(&trial->copies);
    copying job = {.runner = runner,
                   .trial = trial,
                   .times = made.part > 0 ? 1 : made.times,
                   .part = made.part,
                   .in_one = made.in_one,
                   .reported_ns = presto__clock_ns()};
    char name[48];
    snprintf(name, sizeof name, "%zu-copies", runner->next_dir++);
    made.dir = presto__join_path(runner->work_dir, name);
    if (made.dir == NULL)
        return presto_fail_memory(err, strlen(runner->work_dir) + sizeof name);
    presto_dataset *dataset = NULL;
    presto_shard_options options;
    presto_shard_options_defaults(&options);
    const char *dir = trial->dir;
    presto_status status = presto_dataset_open(&dir, 1, &options, &dataset, err);
    if (status == PRESTO_OK)
        status = copy_dataset(&job, dataset, &made, err);
    presto_dataset_free(dataset);
    if (status == PRESTO_OK)
        status = presto__settle(made.dir, err);
    if (status != PRESTO_OK) {
        presto__copies_remove(&made);
        return status;
    }
    trial->copies = made;
    return PRESTO_OK;
}

presto_status presto__copies_make(presto__runner *runner, presto__trial *trial, uint64_t times,
                                  presto_error *err) {
    return make(runner, trial, (presto__copies){.times = times}, err);
}

presto_status presto__copies_make_part(presto__runner *runner, presto__trial *trial, uint64_t part,
                                       presto_error *err) {
    return make(runner, trial, (presto__copies){.part = part}, err);
}

presto_status presto__copies_make_one(presto__runner *runner, presto__trial *trial,
                                      uint64_t records, presto_error *err) {
    return make(runner, trial, (presto__copies){.in_one = records}, err);
}
