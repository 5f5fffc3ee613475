/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The space of strategies: split x codec x shards x threads, from the lists that the user gave, or
 * from what pipeline, build and machine offer. Every name is checked here, before anything is
 * measured.
 * "unprocessed" stores nothing, so it has one strategy per thread count, for any codecs.
 */
#include "../base/checked_internal.h"
#include "../records/records_internal.h"
#include "../steps/pipelines_internal.h"
#include "../storage/play_internal.h"
#include "profile_internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Where threads wait for storage, each number of them that is tried is so many times the one before. */
#define WAITING_THREADS 4
#define DEFAULT_THREADS_MOST 8
/* A larger thread count is a typing error. */

static const char *const default_codecs[] = {"none", "zstd:1", "zstd:3", "lz4", "snappy", "gzip"};
static const char *const tensorflow_codecs[] = {"none", "zlib:1", "gzip"};
#define COUNT_OF(array) (sizeof(array) / sizeof *(array))

static bool list_has(char *const *list, size_t count, const char *text) {
    for (size_t i = 0; i < count; i++)
        if (list[i] != NULL && strcmp(list[i], text) == 0)
            return true;
    return false;
}

/* Appends a copy unless it is in the list; the list has room. */
static presto_status list_add(char **list, size_t *count, const char *text, presto_error *err) {
    if (list_has(list, *count, text))
        return PRESTO_OK;
    char *copy = strdup(text);
    if (copy == NULL)
        return presto_fail_memory(err, strlen(text) + 1);
    list[(*count)++] = copy;
    return PRESTO_OK;
}

static presto_status check_split(const presto_pipeline *pipeline, const char *name,
                                 presto_error *err) {
    size_t r;
    return presto_pipeline_representation_named(pipeline, name, true, &r, err);
}

static presto_status list_splits(const presto_pipeline *pipeline,
                                 const presto_sweep_options *options, presto__space *space,
                                 presto_error *err) {
    for (size_t i = 0; i < presto_pipeline_step_count(pipeline); i++)
        if ((presto_pipeline_step_type(pipeline, i)->flags & PRESTO_STEP_REGROUPS) != 0)
            return presto_fail(
                err, PRESTO_ERR_UNSUPPORTED, PRESTO_NO_OFFSET,
                "step %s makes other samples, so that strategies before and after it "
                "cannot be compared: measure the pipeline without it",
                presto_pipeline_step_type(pipeline, i)->name);
    for (size_t i = 0; i < options->stored_count; i++)
        PRESTO_TRY(check_split(pipeline, options->stored[i], err));
    size_t known = presto_pipeline_representation_count(pipeline);
    space->splits = calloc(known + 1, sizeof *space->splits);
    if (space->splits == NULL)
        return presto_fail_memory(err, known * sizeof *space->splits);
    /* In the pipeline's order, not the list's: tables are read from raw to finished. */
    for (size_t r = 0; r < known; r++) {
        const char *name = presto_pipeline_representation_name(pipeline, r);
        bool wanted = options->stored_count == 0;
        for (size_t i = 0; i < options->stored_count; i++)
            wanted = wanted || strcmp(options->stored[i], name) == 0;
        if (wanted && presto__pipeline_representation_storable(pipeline, r))
            PRESTO_TRY(list_add(space->splits, &space->split_count, name, err));
    }
    return PRESTO_OK;
}

static presto_status list_codecs(const presto_sweep_options *options, presto__space *space,
                                 presto_error *err) {
    bool given = options->codec_count > 0;
    const char *const *names = given                          ? options->codecs
                               : options->tensorflow_readable ? tensorflow_codecs
                                                              : default_codecs;
    size_t count = given                          ? options->codec_count
                   : options->tensorflow_readable ? COUNT_OF(tensorflow_codecs)
                                                  : COUNT_OF(default_codecs);
    space->codecs = calloc(count, sizeof *space->codecs);
    if (space->codecs == NULL)
        return presto_fail_memory(err, count * sizeof *space->codecs);
    for (size_t i = 0; i < count; i++) {
        presto_codec_spec spec;
        presto_status status = presto_codec_parse(names[i], &spec, err);
        if (status == PRESTO_ERR_UNSUPPORTED && !given)
            continue;
        PRESTO_TRY(status);
        if (options->tensorflow_readable)
            PRESTO_TRY(presto_codec_check_tensorflow(&spec, err));
        char text[PRESTO_CODEC_TEXT_BYTES];
        presto__codec_format(&spec, text);
        PRESTO_TRY(list_add(space->codecs, &space->codec_count, text, err));
    }
    return PRESTO_OK;
}

/* One thread, and as many as processors. Where cold epochs read as from another storage, more threads
 * may wait for it at once: so many as a loader would take by itself, at most. */
static size_t default_threads(const presto_storage *storage,
                              unsigned threads_out[DEFAULT_THREADS_MOST]) {
    unsigned processors = presto_processor_count(), most = presto_auto_threads();
    size_t count = 0;
    threads_out[count++] = 1;
    threads_out[count++] = processors;
    for (unsigned threads = WAITING_THREADS * processors;
         presto__storage_is_set(storage) && threads <= most && count < DEFAULT_THREADS_MOST;
         threads *= WAITING_THREADS)
        threads_out[count++] = threads;
    return count;
}

static presto_status list_threads(const presto_sweep_options *options, presto__space *space,
                                  presto_error *err) {
    unsigned defaults[DEFAULT_THREADS_MOST];
    const unsigned *threads = options->thread_count > 0 ? options->threads : defaults;
    size_t count = options->thread_count > 0 ? options->thread_count
                                             : default_threads(&options->storage, defaults);
    space->threads = calloc(count, sizeof *space->threads);
    if (space->threads == NULL)
        return presto_fail_memory(err, count * sizeof *space->threads);
    for (size_t i = 0; i < count; i++) {
        if (threads[i] > PRESTO_MAX_THREADS)
            return presto_fail(err, PRESTO_ERR_ARGUMENT, PRESTO_NO_OFFSET,
                               "%u threads, at most %d are possible", threads[i],
                               PRESTO_MAX_THREADS);
        bool seen = false;
        for (size_t k = 0; k < space->thread_count; k++)
            seen = seen || space->threads[k] == threads[i];
        if (!seen)
            space->threads[space->thread_count++] = threads[i];
    }
    return PRESTO_OK;
}

static presto_status list_shards(const presto_sweep_options *options, presto__space *space,
                                 presto_error *err) {
    const size_t *shards =
        options->shard_count_count > 0 ? options->shard_counts : &options->shards;
    size_t count = options->shard_count_count > 0 ? options->shard_count_count : 1;
    space->shards = calloc(count, sizeof *space->shards);
    if (space->shards == NULL)
        return presto_fail_memory(err, count * sizeof *space->shards);
    for (size_t i = 0; i < count; i++) {
        if (shards[i] > PRESTO_MAX_SHARDS)
            return presto_fail(err, PRESTO_ERR_ARGUMENT, PRESTO_NO_OFFSET,
                               "%zu shards, at most %d are possible", shards[i], PRESTO_MAX_SHARDS);
        bool seen = false;
        for (size_t k = 0; k < space->shard_count; k++)
            seen = seen || space->shards[k] == shards[i];
        if (!seen)
            space->shards[space->shard_count++] = shards[i];
    }
    return PRESTO_OK;
}

/* shards 0: as many as threads. */
static presto_strategy strategy_of(const char *split, const char *codec, unsigned threads,
                                   size_t shards) {
    presto_strategy strategy = {.stored = split, .codec = codec, .threads = threads};
    if (codec != NULL)
        strategy.shards = shards > 0 ? shards : threads > 0 ? threads : 1;
    return strategy;
}

/* "As many as threads" may be a number of the list. */
static bool is_listed(const presto__space *space, size_t first, const presto_strategy *strategy) {
    for (size_t i = first; i < space->strategy_count; i++)
        if (space->strategies[i].threads == strategy->threads &&
            space->strategies[i].shards == strategy->shards)
            return true;
    return false;
}

static void add_strategies(const char *split, const char *codec, presto__space *space) {
    size_t first = space->strategy_count;
    for (size_t n = 0; n < space->shard_count; n++)
        for (size_t t = 0; t < space->thread_count; t++) {
            presto_strategy strategy =
                strategy_of(split, codec, space->threads[t], space->shards[n]);
            if (!is_listed(space, first, &strategy))
                space->strategies[space->strategy_count++] = strategy;
        }
}

presto_strategy presto__anchor_of(const presto__space *space, size_t s, bool is_for_all) {
    const char *split = space->splits[s];
    const char *codec = strcmp(split, PRESTO_UNPROCESSED) == 0 ? NULL : "none";
    return strategy_of(split, codec, is_for_all ? presto_processor_count() : 1, space->shards[0]);
}

static bool same_text(const char *a, const char *b) {
    return a == NULL || b == NULL ? a == b : strcmp(a, b) == 0;
}

size_t presto__space_find(const presto__space *space, const presto_strategy *strategy) {
    for (size_t i = 0; i < space->strategy_count; i++) {
        const presto_strategy *other = &space->strategies[i];
        if (same_text(other->stored, strategy->stored) &&
            same_text(other->codec, strategy->codec) && other->threads == strategy->threads &&
            other->shards == strategy->shards)
            return i;
    }
    return SIZE_MAX;
}

static presto_status combine(presto__space *space, presto_error *err) {
    size_t pairs = 0, files = 0;
    size_t count = 0;
    if (space->split_count == 0 || space->codec_count == 0 || space->thread_count == 0)
        return presto_fail(err, PRESTO_ERR_ARGUMENT, PRESTO_NO_OFFSET, "there is no strategy");
    if (!presto__size_multiply(space->split_count, space->codec_count, &pairs) ||
        !presto__size_multiply(space->shard_count, space->thread_count, &files) ||
        !presto__size_multiply(pairs, files, &count) || count == 0)
        return presto_fail(err, PRESTO_ERR_LIMIT, PRESTO_NO_OFFSET, "too many strategies");
    space->strategies = calloc(count, sizeof *space->strategies);
    if (space->strategies == NULL)
        return presto_fail_memory(err, count * sizeof *space->strategies);
    for (size_t s = 0; s < space->split_count; s++) {
        if (strcmp(space->splits[s], PRESTO_UNPROCESSED) == 0) {
            add_strategies(space->splits[s], NULL, space);
            continue;
        }
        for (size_t c = 0; c < space->codec_count; c++)
            add_strategies(space->splits[s], space->codecs[c], space);
    }
    return PRESTO_OK;
}

presto_status presto__space_init(const presto_pipeline *pipeline,
                                 const presto_sweep_options *options, presto__space *space_out,
                                 presto_error *err) {
    presto__space space = {0};
    presto_status status = list_splits(pipeline, options, &space, err);
    if (status == PRESTO_OK)
        status = list_codecs(options, &space, err);
    if (status == PRESTO_OK)
        status = list_threads(options, &space, err);
    if (status == PRESTO_OK)
        status = list_shards(options, &space, err);
    if (status == PRESTO_OK)
        status = combine(&space, err);
    if (status != PRESTO_OK) {
        presto__space_done(&space);
        return status;
    }
    *space_out = space;
    return PRESTO_OK;
}

void presto__space_done(presto__space *space) {
    if (space == NULL)
        return;
    for (size_t i = 0; i < space->split_count; i++)
        free(space->splits[i]);
    for (size_t i = 0; i < space->codec_count; i++)
        free(space->codecs[i]);
    free(space->splits);
    free(space->codecs);
    free(space->threads);
    free(space->shards);
    free(space->strategies);
    memset(space, 0, sizeof *space);
}

char *presto__strategy_format(const presto_strategy *strategy, char *text_out, size_t bytes) {
    char threads[32], files[40] = "";
    size_t by_rule = strategy->threads > 0 ? strategy->threads : 1;
    if (strategy->shards > 0 && strategy->shards != by_rule)
        snprintf(files, sizeof files, "in %zu file%s ", strategy->shards,
                 presto_plural(strategy->shards));
    if (strategy->threads == 0)
        snprintf(threads, sizeof threads, "without threads");
    else
        snprintf(threads, sizeof threads, "on %u thread%s", strategy->threads,
                 presto_plural(strategy->threads));
    if (strategy->codec == NULL)
        snprintf(text_out, bytes, "the unprocessed files %s", threads);
    else if (strcmp(strategy->codec, "none") == 0)
        snprintf(text_out, bytes, "%s uncompressed %s%s", strategy->stored, files, threads);
    else
        snprintf(text_out, bytes, "%s with %s %s%s", strategy->stored, strategy->codec, files,
                 threads);
    return text_out;
}
