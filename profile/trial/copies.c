/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A trial's dataset with its records stored several times over: an epoch of it lasts long enough to
 * see what a loader delivers once it is under way. Each file has the records of the trial's file,
 * again and again, so that there are as many files as before, each read as one long file would be.
 * Or it has the first records of that file only, for an epoch that is shorter, and opens as many files.
 * Records are copied as they are stored: no step runs for it.
 */
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
    uint64_t times, part, reported_ns; /* of the copies */
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

static presto_status copy_once(copying *job, presto_shard *shard, presto__object object,
                               presto__shard_writer *writer, presto_buffer *room,
                               presto_error *err) {
    uint64_t records = records_of(job, shard);
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
        const presto__object_place place = {object, presto_shard_path(shard), offsets[first]};
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
    presto__object object = {0};
    presto__object_info info;
    presto__shard_writer_options_defaults(&options);
    PRESTO_TRY(presto__object_open(presto_shard_path(shard), &object, &info, err));
    presto_status status = presto__shard_writer_open(path, &options, &writer, err);
    for (uint64_t k = 0; k < job->times && status == PRESTO_OK; k++)
        status = copy_once(job, shard, object, writer, &room, err);
    if (status == PRESTO_OK)
        status = presto__shard_writer_finish(writer, summary_out, err);
    presto__shard_writer_free(writer);
    presto_buffer_done(&room);
    presto__object_close(&object);
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

/* The copies have the trial's dataset.json, but for how much each file holds. */
static presto_status copy_dataset(copying *job, presto_dataset *dataset, presto__copies *into,
                                  presto_error *err) {
    presto_dataset_info info = {0};
    PRESTO_TRY(presto__dataset_info_read(job->trial->dir, &info, err));
    presto_status status = presto__folder_make(into->dir, err);
    if (status == PRESTO_OK && info.dictionary_file != NULL)
        status = copy_dictionary(job, info.dictionary_file, into->dir, err);
    for (size_t i = 0; i < info.shard_count && status == PRESTO_OK; i++) {
        presto_shard *shard = NULL;
        presto__shard_summary summary = {.struct_bytes = sizeof summary};
        status = presto_dataset_shard_at(dataset, i, &shard, err);
        if (status == PRESTO_OK)
            status = presto_shard_index(shard, false, NULL, err);
        char *path = presto__join_path(into->dir, info.shards[i].file);
        if (status == PRESTO_OK && path == NULL)
            status = presto_fail_memory(err, strlen(into->dir));
        if (status == PRESTO_OK)
            status = copy_shard(job, shard, path, &summary, err);
        free(path);
        if (status != PRESTO_OK)
            break;
        info.shards[i].records = summary.records;
        info.shards[i].stored_bytes = summary.stored_bytes;
        uint64_t each = info.shards[i].raw_bytes / (presto_shard_records(shard) + !summary.records);
        info.shards[i].raw_bytes =
            job->part > 0 ? each * summary.records : info.shards[i].raw_bytes * job->times;
        info.shards[i].crc32c = summary.crc32c;
        into->bytes += summary.stored_bytes;
    }
    info.has_stream = false; /* it has other records than its input */
    if (status == PRESTO_OK)
        status = presto__dataset_info_write(into->dir, &info, true, err);
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
