/* SPDX-License-Identifier: Apache-2.0 */
/* A dataset open for reading: its description, and its shards, which are opened at first use. */
#include <presto/dataset.h>

#include <stdlib.h>

#include <presto/numbers.h>

#include "../../base/checked_internal.h"
#include "../../base/file_internal.h"
#include "../../base/options_internal.h"
#include "../../base/paths_internal.h"
#include "../../storage/fan_out_internal.h"
#include "../../storage/storage_internal.h"
#include "../records_internal.h"
#include "dataset_parts_internal.h"

/* When the dataset is opened, the size of shards with at least this many records is checked. */
#define MANY_RECORDS ((uint64_t)1 << 20)

static presto_status open_shard(presto_dataset *dataset, size_t i, presto_shard **shard_out,
                                presto_error *err) {
    presto_shard *shard;
    PRESTO_TRY(
        presto__shard_open(dataset->paths[i], &dataset->options, &dataset->pool, &shard, err));
    if (dataset->options.count_later && !dataset->ours) {
        *shard_out = shard;
        return PRESTO_OK;
    }
    const presto_dataset_shard *says = &dataset->info.shards[i];
    if (dataset->ours)
        presto__shard_describe_file(shard, says->records, says->crc32c);
    presto_status status = presto_shard_index(shard, false, NULL, err);
    if (dataset->ours)
        status = presto__foreign_is_damage(status, err);
    if (status == PRESTO_OK && dataset->ours && presto__shard_has_index_file(shard)) {
        if (presto_shard_records(shard) != says->records)
            status = presto__shard_drop_index(
                shard, "it counts other records than dataset.json says", err);
        else if (presto__shard_index_is_of_other(shard, says->crc32c))
            status = presto__shard_drop_index(
                shard, "it is of another file than the one that dataset.json describes", err);
    }
    /* A shard may have fewer records than listed if it was cut; a longer one is another file.
     * Damaged ranges count as records, so there may be more of them; nobody asks for those. */
    bool is_cut_fine = dataset->options.tolerate && status == PRESTO_OK &&
                       presto_shard_file_bytes(shard) <= says->stored_bytes;
    if (status == PRESTO_OK && dataset->ours && !is_cut_fine &&
        (presto_shard_file_bytes(shard) != says->stored_bytes ||
         presto_shard_records(shard) != says->records)) {
        status = presto_fail(err, PRESTO_ERR_CORRUPT, PRESTO_NO_OFFSET,
                             "%ju record%s in %ju byte%s, but dataset.json says %ju in %ju",
                             (uintmax_t)presto_shard_records(shard),
                             presto_plural(presto_shard_records(shard)),
                             (uintmax_t)presto_shard_file_bytes(shard),
                             presto_plural(presto_shard_file_bytes(shard)),
                             (uintmax_t)says->records, (uintmax_t)says->stored_bytes);
        presto_error_set_file(err, dataset->paths[i]);
    }
    if (status < 0) {
        presto_error untold;
        (void)presto__shard_take_warning(shard, &untold); /* that failure has the details */
        presto_shard_free(shard);
        return status;
    }
    *shard_out = shard;
    return PRESTO_OK;
}

bool presto_dataset_take_warning(presto_dataset *dataset, presto_error *warning_out) {
    size_t count = dataset->info.shard_count;
    for (size_t i = 0; i < count && atomic_load(&dataset->pool.warnings) > 0; i++) {
        size_t at = atomic_fetch_add(&dataset->look_at, 1) % count;
        presto_shard *shard = atomic_load_explicit(&dataset->shards[at], memory_order_acquire);
        if (shard != NULL && presto__shard_take_warning(shard, warning_out))
            return true;
    }
    return false;
}

presto_status presto__dataset_open_shard(presto_dataset *dataset, size_t i,
                                         presto_shard **shard_out, presto_error *err) {
    presto_shard *shard = atomic_load_explicit(&dataset->shards[i], memory_order_acquire);
    if (shard == NULL) {
        pthread_mutex_t *lock = &dataset->locks[i % PRESTO__OPEN_LOCKS];
        presto_status status = PRESTO_OK;
        pthread_mutex_lock(lock);
        shard = atomic_load_explicit(&dataset->shards[i], memory_order_relaxed);
        if (shard == NULL) {
            status = open_shard(dataset, i, &shard, err);
            if (status == PRESTO_OK)
                atomic_store_explicit(&dataset->shards[i], shard, memory_order_release);
        }
        pthread_mutex_unlock(lock);
        PRESTO_TRY(status);
    }
    *shard_out = shard;
    return PRESTO_OK;
}

bool presto__dataset_will_open(presto_dataset *dataset, size_t i) {
    if (atomic_load_explicit(&dataset->shards[i], memory_order_acquire) != NULL)
        return true;
    if (!presto__ahead_may_open())
        return false;
    presto__object_will_open(dataset->paths[i], 1);
    char *index = dataset->options.ignore_index ? NULL : presto__index_name(dataset->paths[i]);
    if (index != NULL)
        presto__object_will_open(index, 1);
    free(index);
    return true;
}

presto_status presto_dataset_shard_at(presto_dataset *dataset, size_t i, presto_shard **shard_out,
                                      presto_error *err) {
    presto_shard *shard = NULL;
    PRESTO_TRY(presto__dataset_open_shard(dataset, i, &shard, err));
    if (dataset->options.count_later && !dataset->ours)
        PRESTO_TRY(presto_shard_index(shard, false, NULL, err));
    *shard_out = shard;
    return PRESTO_OK;
}

void presto__dataset_close_idle(presto_dataset *dataset) {
    presto__fd_pool_close_idle(&dataset->pool);
}

void presto__dataset_share(presto_dataset *dataset, size_t datasets) {
    presto__fd_pool_share(&dataset->pool, datasets);
}

/* ---- open ---- */

static presto_status prepare(presto_dataset *dataset, size_t shard_count, presto_error *err) {
    PRESTO_TRY(presto__fd_pool_init(&dataset->pool, err));
    dataset->pool_ready = true;
    for (; dataset->locks_ready < PRESTO__OPEN_LOCKS; dataset->locks_ready++) {
        int result = pthread_mutex_init(&dataset->locks[dataset->locks_ready], NULL);
        if (result != 0)
            return presto_fail_errno(err, result, NULL, "cannot make a lock");
    }
    int result = pthread_mutex_init(&dataset->walk_lock, NULL);
    if (result != 0)
        return presto_fail_errno(err, result, NULL, "cannot make a lock");
    dataset->walk_lock_ready = true;
    dataset->paths = presto__zeroed_array(shard_count, 1, sizeof *dataset->paths);
    dataset->firsts = presto__zeroed_array(shard_count, 1, sizeof *dataset->firsts);
    dataset->shards = presto__zeroed_array(shard_count, 1, sizeof *dataset->shards);
    if (dataset->paths == NULL || dataset->firsts == NULL || dataset->shards == NULL)
        return presto_fail_memory(err, shard_count * sizeof *dataset->paths);
    return PRESTO_OK;
}

/* The records of shard i; PRESTO_COUNT_UNKNOWN: not known yet. */
static uint64_t count_of(const presto_dataset *dataset, size_t i) {
    if (dataset->ours)
        return dataset->info.shards[i].records;
    const presto_shard *shard = atomic_load(&dataset->shards[i]);
    return shard != NULL && presto__shard_is_indexed(shard) ? presto_shard_records(shard)
                                                            : PRESTO_COUNT_UNKNOWN;
}

presto_status presto__dataset_count_from(presto_dataset *dataset, size_t i, presto_error *err) {
    uint64_t first = presto__dataset_first(dataset, i);
    for (; i < dataset->info.shard_count && first != PRESTO_COUNT_UNKNOWN; i++) {
        uint64_t count = count_of(dataset, i), next = PRESTO_COUNT_UNKNOWN;
        bool is_known = count != PRESTO_COUNT_UNKNOWN;
        if (is_known && (!presto__u64_add(first, count, &next) || next == PRESTO_COUNT_UNKNOWN)) {
            presto_status status = presto_fail(err, PRESTO_ERR_CORRUPT, PRESTO_NO_OFFSET,
                                               "with this file there are 2^64 records or more");
            presto_error_set_file(err, dataset->paths[i]);
            return status;
        }
        first = next;
        atomic_store_explicit(&dataset->firsts[i + 1], first, memory_order_release);
    }
    return PRESTO_OK;
}

/* Whole datasets are counted; of foreign files, those up to the first that is not. */
static presto_status count_firsts(presto_dataset *dataset, presto_error *err) {
    for (size_t i = 0; i < dataset->info.shard_count; i++)
        atomic_store(&dataset->firsts[i + 1], PRESTO_COUNT_UNKNOWN);
    return presto__dataset_count_from(dataset, 0, err);
}

static presto_status load_dictionary(presto_dataset *dataset, const char *dir, presto_error *err) {
    if (!dataset->codec.wants_dictionary)
        return PRESTO_OK;
    const char *name = dataset->info.dictionary_file;
    if (name == NULL)
        return presto_fail(err, PRESTO_ERR_CORRUPT, PRESTO_NO_OFFSET,
                           "bad dataset.json: codec %s without its dictionary",
                           dataset->info.codec);
    char *path = presto__join_path(dir, name);
    if (path == NULL)
        return presto_fail_memory(err, 1);
    presto_status status =
        presto_file_read(path, PRESTO_CODEC_MAX_DICTIONARY_BYTES, &dataset->dictionary, err);
    free(path);
    dataset->codec.dictionary = presto_buffer_span(&dataset->dictionary);
    return status;
}

/* A codec that would be a wrong argument of a caller is damage here: dataset.json names it. */
static presto_status parse_codec(presto_dataset *dataset, presto_error *err) {
    presto_error why;
    presto_status status = presto_codec_parse(dataset->info.codec, &dataset->codec, &why);
    if (status == PRESTO_OK)
        return PRESTO_OK;
    if (status != PRESTO_ERR_MEMORY && status != PRESTO_ERR_UNSUPPORTED)
        status = PRESTO_ERR_CORRUPT;
    return presto_fail(err, status, PRESTO_NO_OFFSET, "bad dataset.json: 'codec': %s", why.message);
}

static presto_status fit_codec(presto_dataset *dataset, const char *dir, presto_error *err) {
    const presto_dataset_info *info = &dataset->info;
    PRESTO_TRY(parse_codec(dataset, err));
    for (size_t i = 0; info->main_feature != NULL && i < info->feature_count; i++)
        if (info->features[i].encoding == PRESTO_ENCODE_TENSOR &&
            strcmp(info->features[i].name, info->main_feature) == 0)
            PRESTO_TRY(presto__codec_spec_fit(&dataset->codec, &info->features[i].spec, err));
    return load_dictionary(dataset, dir, err);
}

/*
 * Is the file as large as dataset.json says? This is checked before memory is allocated for each of
 * many records. With few records, opening the shard finds out. A file that is cut is left to
 * callers that tolerate damage.
 */
static presto_status check_large_shard(const presto_dataset *dataset, size_t i, presto_error *err) {
    const presto_dataset_shard *says = &dataset->info.shards[i];
    presto__object_info info;
    if (dataset->options.tolerate || says->records < MANY_RECORDS ||
        presto__path_is_remote(dataset->paths[i]) || /* a round trip each: opening it finds out */
        presto__object_find(dataset->paths[i], &info, NULL) < 0 || info.bytes >= says->stored_bytes)
        return PRESTO_OK;
    presto_status status =
        presto_fail(err, PRESTO_ERR_CORRUPT, PRESTO_NO_OFFSET,
                    "%ju byte%s, but dataset.json says %ju record%s in %ju 'stored_bytes'",
                    (uintmax_t)info.bytes, presto_plural(info.bytes), (uintmax_t)says->records,
                    presto_plural(says->records), (uintmax_t)says->stored_bytes);
    presto_error_set_file(err, dataset->paths[i]);
    return status;
}

/* dataset->info has been read from `dir`. */
static presto_status open_ours(presto_dataset *dataset, const char *dir, presto_error *err) {
    dataset->ours = true;
    PRESTO_TRY(prepare(dataset, dataset->info.shard_count, err));
    for (size_t i = 0; i < dataset->info.shard_count; i++) {
        dataset->paths[i] = presto__join_path(dir, dataset->info.shards[i].file);
        if (dataset->paths[i] == NULL)
            return presto_fail_memory(err, 1);
        PRESTO_TRY(check_large_shard(dataset, i, err));
    }
    PRESTO_TRY(count_firsts(dataset, err));
    presto_status status = fit_codec(dataset, dir, err);
    if (status < 0)
        presto_error_set_file(err, dir);
    return status;
}

static presto_status set_foreign_info(presto_dataset_info *info, size_t shard_count,
                                      presto_error *err) {
    info->codec = strdup("none");
    info->shards = presto__zeroed_array(shard_count, 1, sizeof *info->shards);
    if (info->codec == NULL || info->shards == NULL)
        return presto_fail_memory(err, shard_count * sizeof *info->shards);
    return PRESTO_OK;
}

/*
 * Count the records of a foreign file, unless that is for later. What does not begin with a record
 * is looked at in any case: it may be no TFRecords at all.
 */
static presto_status count_foreign(const presto_dataset *dataset, presto_shard *shard,
                                   presto_dataset_shard *entry, presto_error *err) {
    if (dataset->options.count_later && presto__shard_has_records(shard)) {
        presto_status status = presto__shard_use_index(shard, err);
        entry->records = PRESTO_COUNT_UNKNOWN;
        if (status != PRESTO_OK)
            return status == PRESTO_END ? PRESTO_OK : status;
    }
    PRESTO_TRY(presto_shard_index(shard, false, NULL, err));
    entry->records = presto_shard_records(shard);
    const uint64_t *end;
    PRESTO_TRY(presto__shard_offsets(shard, entry->records, 0, &end, err));
    uint64_t bytes = *end, overhead = UINT64_MAX;
    (void)presto__u64_multiply(entry->records, PRESTO_FRAME_OVERHEAD_BYTES, &overhead);
    entry->raw_bytes = bytes > overhead ? bytes - overhead : 0; /* a damaged range may be shorter */
    return PRESTO_OK;
}

/* A job of presto__fan_out: shard `i`, which is no other job's. */
static presto_status look_at_foreign(void *user, size_t i, presto_error *err) {
    presto_dataset *dataset = user; /* its caller's, who waits for all jobs */
    presto_dataset_shard *entry = &dataset->info.shards[i];
    presto_shard *shard = NULL;
    PRESTO_TRY(presto__dataset_open_shard(dataset, i, &shard, err));
    entry->stored_bytes = presto_shard_file_bytes(shard);
    return count_foreign(dataset, shard, entry, err);
}

/* What is known of all files together. */
static void sum_up_foreign(presto_dataset *dataset) {
    presto_dataset_info *info = &dataset->info;
    for (size_t i = 0; i < info->shard_count; i++) {
        presto_shard *shard = atomic_load(&dataset->shards[i]);
        if (info->shards[i].records == PRESTO_COUNT_UNKNOWN && dataset->guessed_mean == 0 &&
            !presto__shard_is_indexed(shard))
            dataset->guessed_mean = presto__shard_guess_mean(shard);
        if (presto__shard_compression(shard) != PRESTO_FILE_PLAIN)
            info->file_compression = presto__shard_compression(shard);
    }
}

static presto_status open_foreign(presto_dataset *dataset, presto__listing *listing,
                                  presto_error *err) {
    presto_dataset_info *info = &dataset->info;
    PRESTO_TRY(prepare(dataset, listing->count, err));
    PRESTO_TRY(set_foreign_info(info, listing->count, err));
    PRESTO_TRY(presto_codec_parse(info->codec, &dataset->codec, err));
    for (size_t i = 0; i < listing->count; i++) {
        dataset->paths[i] = listing->paths[i];
        listing->paths[i] = NULL;
        info->shard_count = i + 1;
        info->shards[i].file = strdup(dataset->paths[i]);
        if (info->shards[i].file == NULL)
            return presto_fail_memory(err, strlen(dataset->paths[i]));
    }
    PRESTO_TRY(presto__fan_out(info->shard_count, look_at_foreign, dataset, err));
    sum_up_foreign(dataset);
    return count_firsts(dataset, err);
}

static presto_status open_paths(presto_dataset *dataset, const char *const *paths,
                                size_t path_count, presto_error *err) {
    char *dir = NULL;
    presto_status status = presto__dataset_find_ours(paths, path_count, &dataset->info, &dir, err);
    if (status == PRESTO_OK) {
        status = open_ours(dataset, dir, err);
        free(dir);
        return status;
    }
    if (status < 0)
        return status;
    presto__listing listing = {0};
    status = presto__listing_of(paths, path_count, &listing, err);
    if (status == PRESTO_OK)
        status = open_foreign(dataset, &listing, err);
    presto__listing_done(&listing);
    return status;
}

presto_status presto_dataset_open(const char *const *paths, size_t path_count,
                                  const presto_shard_options *options, presto_dataset **dataset_out,
                                  presto_error *err) {
    if (path_count == 0)
        return presto_fail(err, PRESTO_ERR_ARGUMENT, PRESTO_NO_OFFSET, "no path is given");
    presto_dataset *dataset = calloc(1, sizeof *dataset);
    if (dataset == NULL)
        return presto_fail_memory(err, sizeof *dataset);
    presto_shard_options_defaults(&dataset->options);
    presto_status status =
        presto__options_take(&dataset->options, sizeof dataset->options, options, err);
    if (status >= 0 && dataset->options.index_dir != NULL) {
        dataset->index_dir = strdup(dataset->options.index_dir);
        if (dataset->index_dir == NULL)
            status = presto_fail_memory(err, strlen(dataset->options.index_dir));
        dataset->options.index_dir = dataset->index_dir;
    }
    presto__paths expanded = {0};
    if (status >= 0)
        status = presto__paths_expand(paths, path_count, &expanded, err);
    if (status >= 0)
        status = open_paths(dataset, (const char *const *)expanded.items, expanded.count, err);
    presto__paths_done(&expanded);
    if (status < 0) {
        presto_dataset_free(dataset);
        return status;
    }
    *dataset_out = dataset;
    return PRESTO_OK;
}

presto_status presto__dataset_open_ours(const char *const *paths, size_t path_count,
                                        presto_dataset **dataset_out, presto_error *err) {
    presto_dataset_info info = {0};
    char *dir = NULL;
    if (path_count == 0)
        return presto_fail(err, PRESTO_ERR_ARGUMENT, PRESTO_NO_OFFSET, "no path is given");
    presto_status status = presto__dataset_find_ours(paths, path_count, &info, &dir, err);
    presto__dataset_info_free(&info);
    free(dir);
    if (status != PRESTO_OK)
        return status;
    /* The caller finds out what is wrong with the shards. */
    presto_shard_options options;
    presto_shard_options_defaults(&options);
    options.tolerate = true;
    return presto_dataset_open(paths, path_count, &options, dataset_out, err);
}

void presto_dataset_free(presto_dataset *dataset) {
    if (dataset == NULL)
        return;
    for (size_t i = 0; i < dataset->info.shard_count; i++) {
        if (dataset->shards != NULL)
            presto_shard_free(atomic_load(&dataset->shards[i]));
        if (dataset->paths != NULL)
            free(dataset->paths[i]);
    }
    free(dataset->paths);
    free((void *)dataset->firsts);
    free((void *)dataset->shards);
    presto_buffer_done(&dataset->dictionary);
    presto__dataset_info_free(&dataset->info);
    free(dataset->index_dir);
    while (dataset->locks_ready > 0)
        pthread_mutex_destroy(&dataset->locks[--dataset->locks_ready]);
    if (dataset->walk_lock_ready)
        pthread_mutex_destroy(&dataset->walk_lock);
    if (dataset->pool_ready)
        presto__fd_pool_done(&dataset->pool);
    free(dataset);
}

/* ---- what it holds ---- */

const presto_dataset_info *presto_dataset_get_info(const presto_dataset *dataset) {
    return &dataset->info;
}

bool presto_dataset_is_ours(const presto_dataset *dataset) {
    return dataset->ours;
}

presto_checks presto__dataset_checks(const presto_dataset *dataset) {
    return dataset->options.verify;
}

bool presto__dataset_tolerates(const presto_dataset *dataset) {
    return dataset->options.tolerate;
}

uint64_t presto_dataset_records(const presto_dataset *dataset) {
    return presto__dataset_first(dataset, dataset->info.shard_count);
}

const presto_codec_spec *presto_dataset_codec(const presto_dataset *dataset) {
    return &dataset->codec;
}

size_t presto_dataset_shard_count(const presto_dataset *dataset) {
    return dataset->info.shard_count;
}

const char *presto_dataset_shard_path(const presto_dataset *dataset, size_t i) {
    return dataset->paths[i];
}

uint64_t presto__dataset_shard_first(const presto_dataset *dataset, size_t i) {
    return presto__dataset_first(dataset, i);
}

size_t presto_dataset_locate(const presto_dataset *dataset, uint64_t number, uint64_t *record_out) {
    /* The last shard that starts at or before it. An empty shard starts where the next one does. */
    size_t low = 0, high = dataset->info.shard_count;
    while (high - low > 1) {
        size_t middle = low + (high - low) / 2;
        if (presto__dataset_first(dataset, middle) <= number)
            low = middle;
        else
            high = middle;
    }
    *record_out = number - presto__dataset_first(dataset, low);
    return low;
}
