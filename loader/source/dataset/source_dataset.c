/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The source of a dataset's records: their features, and what identifies them.
 * source_dataset_read.c reads them.
 */
#define _XOPEN_SOURCE 700 /* realpath */
#include <stdio.h>
#include <stdlib.h>

#include "../../../base/retry_internal.h"
#include "../../../records/records_internal.h"
#include "../../../storage/storage_internal.h"
#include "../../loader_internal.h"
#include "source_dataset_internal.h"

static void dataset_free(presto_source *base) {
    presto__source_done(base);
    free(base);
}

/* Its files are opened again, too: on some storage, that takes longer than reading them. */
static presto_status dataset_drop_cache(presto_source *base, presto_error *err) {
    presto_dataset *dataset = ((const presto__dataset_source *)base)->dataset;
    presto__dataset_close_idle(dataset);
    for (size_t i = 0; i < presto_dataset_shard_count(dataset); i++) {
        const char *path = presto_dataset_shard_path(dataset, i);
        PRESTO_TRY(presto__drop_from_cache(path, err));
        size_t bytes = strlen(path) + sizeof ".index";
        char *index = malloc(bytes);
        if (index == NULL)
            return presto_fail_memory(err, bytes);
        snprintf(index, bytes, "%s.index", path);
        presto_status status = presto__drop_from_cache(index, err);
        free(index);
        PRESTO_TRY(status);
    }
    return PRESTO_OK;
}

static presto_status dataset_check_random_access(presto_source *base, presto_error *err) {
    presto_dataset *dataset = ((presto__dataset_source *)base)->dataset;
    const presto_dataset_info *info = presto_dataset_get_info(dataset);
    for (size_t i = 0; i < presto_dataset_shard_count(dataset); i++) {
        presto_file_compression compression = info->file_compression;
        if (!presto_dataset_is_ours(dataset)) {
            presto_shard *shard;
            PRESTO_TRY(presto_dataset_shard_at(dataset, i, &shard, err));
            compression = presto__shard_compression(shard);
        }
        if (compression == PRESTO_FILE_PLAIN) {
            if (presto_dataset_is_ours(dataset))
                return PRESTO_OK; /* one answer for all shards */
            continue;
        }
        presto_status status = presto_fail(
            err, PRESTO_ERR_ARGUMENT, PRESTO_NO_OFFSET,
            "is compressed as a whole (%s) and can only be read from its start, so that records "
            "cannot be picked for this shuffle: use buffer:N, or store with a codec per record",
            presto_file_compression_name(compression));
        presto_error_set_file(err, presto_dataset_shard_path(dataset, i));
        return status;
    }
    return PRESTO_OK;
}

static bool dataset_take_warning(presto_source *base, presto_error *warning_out) {
    return presto_dataset_take_warning(((presto__dataset_source *)base)->dataset, warning_out);
}

static const presto_codec_spec *dataset_codec(const presto_source *base) {
    const presto__dataset_source *source = (const presto__dataset_source *)base;
    return base->is_raw ? &source->plain : presto_dataset_codec(source->dataset);
}

static uint64_t digest_of(const presto_source *base, bool with_counts) {
    const presto_dataset *dataset = ((const presto__dataset_source *)base)->dataset;
    const presto_dataset_info *info = presto_dataset_get_info(dataset);
    bool is_ours = presto_dataset_is_ours(dataset);
    uint64_t digest = PRESTO__FNV_START;
    if (info->has_stream)
        return with_counts ? info->stream_counted : info->stream_files;
    for (size_t i = 0; i < info->shard_count; i++) {
        const presto_dataset_shard *shard = &info->shards[i];
        if (with_counts)
            digest = presto__fnv_mix(digest, presto__dataset_shard_first(dataset, i + 1) -
                                                 presto__dataset_shard_first(dataset, i));
        digest = presto__fnv_mix(digest, shard->stored_bytes);
        digest = presto__fnv_mix(digest, shard->crc32c);
        /* Foreign files have no checksum: records of one size would make them all alike. */
        const char *slash = is_ours ? NULL : strrchr(shard->file, '/');
        const char *name = is_ours ? "" : slash != NULL ? slash + 1 : shard->file;
        digest = presto__fnv_add(digest, name, strlen(name));
    }
    return digest;
}

/*
 * Which record has which number, if the file alone does not say it. After damage, the numbers
 * depend on the index file: with one, records keep their numbers; without, a damaged range counts
 * as one record. A shard without damage adds the same in both cases.
 */
static presto_status identify_numbers(presto_dataset *dataset, size_t i, presto__digest *digest,
                                      presto_error *err) {
    const uint64_t as_written = 0, unreadable = 1, past_damage = 2;
    const uint64_t *how = &as_written;
    presto_shard *shard = NULL;
    /* Without tolerance a shard with a damaged header and no index cannot be opened at all. */
    if (presto__dataset_tolerates(dataset)) {
        presto_status status = presto_dataset_shard_at(dataset, i, &shard, err);
        if (status == PRESTO_ERR_MEMORY || status == PRESTO_ERR_STOPPED)
            return status;
        if (status < 0)
            how = &unreadable;
        else if (presto__shard_lost_ranges(shard) > 0)
            how = &past_damage;
    }
    presto__digest_add(digest, how, sizeof *how);
    if (how != &past_damage)
        return PRESTO_OK;
    const uint64_t *offsets;
    uint64_t records = presto_shard_records(shard);
    PRESTO_TRY(presto__shard_offsets(shard, 0, records, &offsets, err));
    for (uint64_t j = 0; j <= records; j++)
        presto__digest_add(digest, &offsets[j], sizeof offsets[j]);
    return PRESTO_OK;
}

static presto_status dataset_identify(const presto_source *base, bool as_named,
                                      presto__digest *digest, presto_error *err) {
    (void)as_named; /* samples do not depend on it */
    presto_dataset *dataset = ((const presto__dataset_source *)base)->dataset;
    char text[PRESTO_CODEC_TEXT_BYTES];
    const presto_codec_spec *codec = dataset_codec(base);
    presto__codec_format(codec, text);
    presto__digest_add(digest, text, strlen(text));
    if (base->is_raw)
        presto__digest_add(digest, PRESTO_RECORD_FEATURE, strlen(PRESTO_RECORD_FEATURE));
    presto__digest_add(digest, codec->dictionary.data, codec->dictionary.bytes);
    const presto_checks verify = presto__dataset_checks(dataset);
    presto__digest_add(digest, &verify, sizeof verify);
    for (size_t i = 0; i < presto_dataset_shard_count(dataset); i++) {
        const char *path = presto_dataset_shard_path(dataset, i);
        presto__object_info info = {0};
        (void)presto__object_find(path, &info, NULL); /* nothing of a missing file is cached */
        char *real = realpath(path, NULL);
        const char *name = real == NULL ? path : real;
        presto__digest_add(digest, name, strlen(name));
        free(real);
        presto__digest_add_object(digest, &info);
        uint64_t end = presto__dataset_shard_first(dataset, i + 1);
        presto__digest_add(digest, &end, sizeof end);
        PRESTO_TRY(identify_numbers(dataset, i, digest, err));
    }
    return PRESTO_OK;
}

/* In a dataset, its number: the same however many shards there are. Of other files, the file, and
 * its number there. */
static void dataset_name(const presto_source *base, uint64_t number, presto__digest *digest) {
    const presto_dataset *dataset = ((const presto__dataset_source *)base)->dataset;
    if (!presto_dataset_is_ours(dataset)) {
        const char *path =
            presto_dataset_shard_path(dataset, presto_dataset_locate(dataset, number, &number));
        const char *slash = strrchr(path, '/');
        const char *file = slash != NULL ? slash + 1 : path;
        presto__digest_add(digest, file, strlen(file));
    }
    presto__digest_add(digest, &number, sizeof number);
}

static uint64_t dataset_digest(const presto_source *base) {
    return digest_of(base, true);
}

/* ---- files that are not counted yet ---- */

static uint64_t dataset_files_digest(const presto_source *base) {
    return digest_of(base, false);
}

static uint64_t dataset_count(const presto_source *base) {
    return presto_dataset_records(((const presto__dataset_source *)base)->dataset);
}

static presto_status dataset_settle(const presto_source *base, presto_error *err) {
    return presto__dataset_count(((const presto__dataset_source *)base)->dataset, err);
}

static presto_status dataset_begin_walk(presto_source *base, uint64_t number, presto_error *err) {
    return presto__dataset_begin_walk(((presto__dataset_source *)base)->dataset, number, err);
}

static presto_status dataset_pass(const presto_source *base, uint64_t number, uint64_t *known_out,
                                  presto_error *err) {
    presto_dataset *dataset = ((const presto__dataset_source *)base)->dataset;
    presto_error why;
    unsigned tries = 0;
    presto_status status;
    do
        status = presto__dataset_pass(dataset, number, known_out, &why);
    while (status < 0 && presto__retry_pause(why.sys_errno, &tries));
    if (status < 0 && err != NULL)
        *err = why;
    return status;
}

static void dataset_end_walk(presto_source *base) {
    presto__dataset_end_walk(((presto__dataset_source *)base)->dataset);
}

static const presto__source_walk dataset_walk = {
    .count = dataset_count,
    .settle = dataset_settle,
    .digest = dataset_files_digest,
    .begin = dataset_begin_walk,
    .end = dataset_end_walk,
    .pass = dataset_pass,
    .step = presto__dataset_walk,
};

static const presto__source_ops dataset_ops = {
    .free = dataset_free,
    .drop_cache = dataset_drop_cache,
    .check_random_access = dataset_check_random_access,
    .reader_new = presto__dataset_reader_new,
    .reader_free = presto__dataset_reader_free,
    .fetch = presto__dataset_fetch,
    .will_read = presto__dataset_will_read,
    .will_open = presto__dataset_will_open_for,
    .sample = presto__dataset_sample,
    .values = presto__dataset_values,
    .record = presto__dataset_record,
    .walk = &dataset_walk,
    .run = presto__dataset_run,
    .place = presto__dataset_place,
    .locate = presto__dataset_locate,
    .owned = presto__dataset_owned,
    .take_warning = dataset_take_warning,
    .codec = dataset_codec,
    .name = dataset_name,
    .digest = dataset_digest,
    .identify = dataset_identify,
};

static presto_status copy_labels(presto_source *base, const presto_dataset_info *info,
                                 presto_error *err) {
    base->label_names = calloc(info->label_count + 1, sizeof *base->label_names);
    if (base->label_names == NULL)
        return presto_fail_memory(err, (info->label_count + 1) * sizeof *base->label_names);
    for (size_t i = 0; i < info->label_count; i++) {
        base->label_names[i] = strdup(info->label_names[i]);
        if (base->label_names[i] == NULL)
            return presto_fail_memory(err, strlen(info->label_names[i]) + 1);
        base->label_count = i + 1;
    }
    return PRESTO_OK;
}

/* Raw records have nothing but themselves. */
static presto_status fill_raw(presto__dataset_source *source, presto_error *err) {
    const presto_tensor_spec bytes = {.dtype = PRESTO_STRING};
    presto_source *base = &source->base;
    PRESTO_TRY(presto_codec_parse("none", &source->plain, err));
    base->main_feature = strdup(PRESTO_RECORD_FEATURE);
    if (base->main_feature == NULL)
        return presto_fail_memory(err, sizeof PRESTO_RECORD_FEATURE);
    return presto__source_declare(base, PRESTO_RECORD_FEATURE, PRESTO_ENCODE_BYTES, &bytes, err);
}

static presto_status fill(presto_source *base, const presto_dataset_info *info, presto_error *err) {
    for (size_t i = 0; i < info->feature_count; i++)
        PRESTO_TRY(presto__source_declare(base, info->features[i].name, info->features[i].encoding,
                                          &info->features[i].spec, err));
    if (info->label_names != NULL)
        PRESTO_TRY(copy_labels(base, info, err));
    if (info->main_feature == NULL)
        return PRESTO_OK;
    base->main_feature = strdup(info->main_feature);
    return base->main_feature == NULL ? presto_fail_memory(err, strlen(info->main_feature) + 1)
                                      : PRESTO_OK;
}

static presto_status open_source(presto_dataset *dataset, bool is_raw, presto_source **source_out,
                                 presto_error *err) {
    presto__dataset_source *source = calloc(1, sizeof *source);
    if (source == NULL)
        return presto_fail_memory(err, sizeof *source);
    const presto_dataset_info *info = presto_dataset_get_info(dataset);
    presto_source *base = &source->base;
    base->ops = &dataset_ops;
    base->is_raw = is_raw;
    base->is_checked = presto__dataset_checks(dataset) == PRESTO_CHECK_FULL;
    base->declares_all = is_raw || presto_dataset_is_ours(dataset);
    source->dataset = dataset;
    base->count = base->full_count = presto_dataset_records(dataset);
    base->mean_bytes = presto__dataset_mean_bytes(dataset);
    for (size_t i = 0; i < info->shard_count; i++) {
        base->full_bytes += info->shards[i].stored_bytes;
        base->is_remote =
            base->is_remote || presto__path_is_remote(presto_dataset_shard_path(dataset, i));
    }
    presto_status status = is_raw ? fill_raw(source, err) : fill(base, info, err);
    if (status < 0) {
        dataset_free(base);
        return status;
    }
    *source_out = base;
    return PRESTO_OK;
}

presto_status presto__dataset_open_source(presto_dataset *dataset, presto_source **source_out,
                                          presto_error *err) {
    return open_source(dataset, false, source_out, err);
}

presto_status presto__source_open_dataset(presto_dataset *dataset, presto_source **source_out,
                                          presto_error *err) {
    presto_source *source;
    PRESTO_TRY(open_source(dataset, false, &source, err));
    if (!presto_dataset_is_ours(dataset)) {
        presto_status status = presto__dataset_look(source, err);
        if (status < 0) {
            presto__source_free(source);
            return status;
        }
    }
    *source_out = source;
    return PRESTO_OK;
}

presto_status presto__source_open_records(presto_dataset *dataset, presto_source **source_out,
                                          presto_error *err) {
    return open_source(dataset, true, source_out, err);
}
