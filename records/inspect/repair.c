/* SPDX-License-Identifier: Apache-2.0 */
/* Saving what is whole, and writing indexes for files of others. */
#include <presto/inspect.h>

#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#include "../../base/file_internal.h"
#include "../../base/options_internal.h"
#include "../dataset/dataset_internal.h"
#include "../records_internal.h"
#include "../shard/shard_internal.h"
#include "inspect_internal.h"

/* A file of another kind: damage if it stands where a dataset.json lists a shard. */
static presto_status judge_foreign(const char *path, presto_status status, presto_error *err) {
    presto_dataset *dataset = NULL;
    if (status != PRESTO_ERR_FOREIGN ||
        presto__dataset_open_ours(&path, 1, &dataset, NULL) != PRESTO_OK)
        return status;
    presto_dataset_free(dataset);
    return presto__foreign_is_damage(status, err);
}

/* ---- repair ---- */

static presto_status copy_whole(presto__scan *scan, presto__shard_writer *writer,
                                const presto_repair_options *options, presto_repair_result *result,
                                presto_error *err) {
    presto_status status;
    presto__scan_item item;
    while ((status = presto__scan_next(scan, &item, err)) == PRESTO_OK) {
        if (item.whole) {
            PRESTO_TRY(presto__shard_writer_append(writer, item.payload, err));
            result->records++;
            continue;
        }
        if (item.kind == PRESTO_FAULT_IO)
            return presto_fail(err, PRESTO_ERR_IO, item.offset, "%s", item.message);
        result->lost_bytes += item.bytes;
        result->lost_ranges++;
        if (options->on_lost != NULL &&
            !options->on_lost(options->on_lost_user, item.offset, item.bytes, result->records))
            return presto_fail(err, PRESTO_ERR_STOPPED, PRESTO_NO_OFFSET, "repair was stopped");
    }
    if (status == PRESTO_END && result->records == 0 && result->lost_ranges > 0)
        status = presto_fail(err, PRESTO_ERR_CORRUPT, PRESTO_NO_OFFSET,
                             "no whole record was found: damaged, or not TFRecords");
    return status < 0 ? status : PRESTO_OK;
}

void presto_repair_options_init(presto_repair_options *options, size_t struct_bytes) {
    const presto_repair_options defaults = {0};
    presto__options_give(options, struct_bytes, &defaults, sizeof defaults);
}

presto_status presto_repair_file_sized(const char *path, const char *out_path,
                                       const presto_repair_options *options,
                                       presto_repair_result *result_out, presto_error *err) {
    presto_repair_options taken;
    presto_repair_options_defaults(&taken);
    PRESTO_TRY(presto__options_take(&taken, sizeof taken, options, err));
    PRESTO_TRY(presto__result_check(result_out, err));
    presto__scan *scan = NULL;
    presto__shard_writer *writer = NULL;
    presto_repair_result result = {0};
    if (presto__path_is_remote(out_path))
        return presto_fail_errno(err, ENOENT, out_path, "cannot create");
    if (access(out_path, F_OK) == 0) {
        presto_status exists = presto_fail(err, PRESTO_ERR_ARGUMENT, PRESTO_NO_OFFSET,
                                           "exists already; the repaired file must be a new one");
        presto_error_set_file(err, out_path);
        return exists;
    }
    PRESTO_TRY(presto__scan_new(path, PRESTO_FRAME_MAX_PAYLOAD_BYTES, &scan, err));
    presto__scan_ask(scan, taken.should_stop, taken.should_stop_user);
    presto__shard_writer_options written;
    presto__shard_writer_options_defaults(&written);
    written.compression = presto__scan_compression(scan);
    presto__partial_clean(out_path);
    presto_status status = presto__shard_writer_open(out_path, &written, &writer, err);
    if (status == PRESTO_OK)
        status = copy_whole(scan, writer, &taken, &result, err);
    if (status == PRESTO_OK)
        status = presto__shard_writer_finish(writer, NULL, err);
    presto__shard_writer_free(writer);
    presto__scan_free(scan);
    status = judge_foreign(path, status, err);
    if (status < 0)
        presto_error_set_file(err, path);
    else
        presto__result_give(result_out, &result, sizeof result);
    return status;
}

/* ---- indexes ---- */

/* Open the file and find its records by their headers, whatever index there is. */
static presto_status open_indexed(const char *path, presto_shard **shard_out, presto_error *err) {
    presto_shard_options options;
    presto_shard *shard;
    presto_shard_options_defaults(&options);
    options.ignore_index = true;
    PRESTO_TRY(presto_shard_open(path, &options, &shard, err));
    presto_status status = judge_foreign(path, presto_shard_index(shard, false, NULL, err), err);
    if (status < 0)
        presto_shard_free(shard);
    else
        *shard_out = shard;
    return status;
}

presto_status presto_index_build(const char *path, uint64_t *records_out, presto_error *err) {
    presto_shard *shard;
    PRESTO_TRY(open_indexed(path, &shard, err));
    const uint64_t *offsets;
    uint64_t records = presto_shard_records(shard);
    presto_status status = presto__shard_offsets(shard, 0, records, &offsets, err);
    if (status == PRESTO_OK)
        status =
            presto__shard_index_write(path, offsets, records, presto_shard_file_bytes(shard), err);
    presto_shard_free(shard);
    if (status == PRESTO_OK && records_out != NULL)
        *records_out = records;
    return status;
}

presto_status presto_index_write_dali(const char *path, const char *index_path, presto_error *err) {
    presto_shard *shard;
    PRESTO_TRY(open_indexed(path, &shard, err));
    presto_buffer text = {0};
    const uint64_t *offsets = NULL;
    presto_status status =
        presto__shard_offsets(shard, 0, presto_shard_records(shard), &offsets, err);
    if (status == PRESTO_OK && presto__shard_compression(shard) != PRESTO_FILE_PLAIN) {
        status = presto_fail(err, PRESTO_ERR_UNSUPPORTED, PRESTO_NO_OFFSET,
                             "DALI cannot read a file that is %s as a whole",
                             presto_file_compression_name(presto__shard_compression(shard)));
        presto_error_set_file(err, path);
    }
    for (uint64_t i = 0; i < presto_shard_records(shard) && status == PRESTO_OK; i++) {
        char line[48];
        uint64_t start = offsets[i], bytes = offsets[i + 1] - start;
        int used = snprintf(line, sizeof line, "%ju %ju\n", (uintmax_t)start, (uintmax_t)bytes);
        status = presto_buffer_append(&text, presto_span_of(line, (size_t)used), err);
    }
    const presto_span piece = presto_buffer_span(&text);
    if (status == PRESTO_OK)
        status = presto_file_replace(index_path, &piece, 1, true, err);
    if (status == PRESTO_OK)
        status = presto__sync_folder_of(index_path, err);
    presto_buffer_done(&text);
    presto_shard_free(shard);
    return status;
}
