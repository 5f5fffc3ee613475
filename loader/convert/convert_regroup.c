/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The loop of a conversion whose last step is pack: documents of tokens become rows of one length.
 *
 * The loader's workers make the tokens of each document. Here, between loader and writers, they are
 * joined in the order of the documents and cut into rows, which regroup_blocks.c encodes. Which
 * rows there are depends on the documents alone: not on threads, and not on shards. A row is in the
 * shard of the document that it begins in; by size, in the first shard with room. So shards are
 * made one after the other, and each whole one is noted with the place where the next row begins. A
 * run that goes on from there makes the same rows.
 */
#include <inttypes.h>
#include <stdlib.h>

#include <presto/example.h>
#include <presto/numbers.h>

#include "../../steps/pipelines_internal.h"
#include "writer_internal.h"

#define BATCH_BYTES ((uint64_t)1 << 20)
#define MOST_BATCH_SAMPLES 1024
#define OFFSETS_FEATURE "document-offsets"

typedef struct regroup_loop {
    presto__conversion *job;
    presto__writers *writers;
    presto__row_blocks *blocks; /* of rows that are in no shard yet */
    /* of the step */
    size_t length;
    bool pads;
    int32_t pad;
    /* the row that is being filled */
    int32_t *row;
    size_t filled;
    int64_t *offsets; /* of its documents; in front of it one that ends where the next begins */
    size_t document_count, offset_capacity;
    presto__regroup_place begin; /* of the row */
    /* the shard that is being made; the first one has no rows yet */
    presto__shard_range shard;
    uint64_t shard_rows, shard_frame_bytes;
    presto__regroup_place now; /* behind the last token that came */
    uint64_t done;             /* samples that have come */
} regroup_loop;

/* ---- shards ---- */

static presto_status note_shard(regroup_loop *loop, const presto__regroup_place *next,
                                presto_error *err) {
    presto__conversion *job = loop->job;
    presto__whole_shard whole;
    char name[PRESTO__SHARD_NAME_BYTES];
    while (presto__writers_take(loop->writers, &whole)) {
        whole.is_regrouped = true;
        whole.next = *next;
        presto__conversion_working_name(job, whole.number, name);
        PRESTO_TRY(presto__progress_file_add(&job->progress, name, &whole, err));
        PRESTO_TRY(presto__conversion_note(job, err));
    }
    return PRESTO_OK;
}

/* The next shard in order. By size its end is not known yet. */
static presto_status begin_shard(regroup_loop *loop, presto_error *err) {
    const presto__conversion *job = loop->job;
    size_t number = job->progress.shard_count;
    loop->shard_rows = loop->shard_frame_bytes = 0;
    loop->shard = (presto__shard_range){.number = number,
                                        .first = presto__progress_file_next(&job->progress)};
    if (!presto__conversion_by_size(job))
        loop->shard.end = presto__conversion_end(job, number);
    else if (number >= PRESTO_MAX_SHARDS)
        return presto_fail(err, PRESTO_ERR_LIMIT, PRESTO_NO_OFFSET,
                           "more than %d shards of %ju byte%s", PRESTO_MAX_SHARDS,
                           (uintmax_t)job->options->shard_bytes,
                           presto_plural(job->options->shard_bytes));
    return PRESTO_OK;
}

/* The shard has all its rows; the next row begins at `next`. */
static presto_status finish_shard(regroup_loop *loop, const presto__regroup_place *next,
                                  presto_error *err) {
    if (presto__conversion_by_size(loop->job))
        loop->shard.end = next->sample;
    PRESTO_TRY(presto__conversion_take_skips(loop->job, next->sample, &loop->shard.skipped, err));
    PRESTO_TRY(presto__writers_finish(loop->writers, 0, &loop->shard, err));
    return note_shard(loop, next, err);
}

/* Is row i of the block for a later shard? */
static bool is_behind_shard(const regroup_loop *loop, const presto__row_block *block, size_t i) {
    const presto__conversion *job = loop->job;
    if (!presto__conversion_by_size(job)) /* the last shard takes all that is left */
        return loop->shard.number + 1 < job->shard_count &&
               block->begins[i].sample >= loop->shard.end;
    uint64_t most = job->options->shard_bytes, used = loop->shard_frame_bytes;
    return loop->shard_rows > 0 && (used > most || block->rows.frame_bytes[i] > most - used);
}

/* ---- rows ---- */

/* Write the rows of a block into their shards. */
static presto_status store_block(regroup_loop *loop, const presto__row_block *block,
                                 presto_error *err) {
    const uint8_t *frame = presto__sample_block_frames(&block->rows);
    for (size_t i = 0; i < block->rows.count; i++) {
        const uint32_t *frame_bytes = &block->rows.frame_bytes[i];
        while (is_behind_shard(loop, block, i)) {
            PRESTO_TRY(finish_shard(loop, &block->begins[i], err));
            PRESTO_TRY(begin_shard(loop, err));
        }
        const presto__rows row = {.frames = presto_span_of(frame, *frame_bytes),
                                  .frame_bytes = frame_bytes,
                                  .count = 1,
                                  .raw_bytes = block->rows.raw_bytes[i]};
        PRESTO_TRY(presto__writers_append(loop->writers, 0, loop->shard.number, &row, err));
        loop->shard_rows++;
        loop->shard_frame_bytes += *frame_bytes;
        frame += *frame_bytes;
    }
    return PRESTO_OK;
}

/* Store the blocks that are ready; with `all`, those that will be, too. */
static presto_status store_blocks(regroup_loop *loop, bool all, presto_error *err) {
    for (;;) {
        presto__row_block *block;
        bool waits = all || !presto__row_blocks_have_room(loop->blocks);
        presto_status status = presto__row_blocks_take(loop->blocks, waits, &block, err);
        if (status != PRESTO_OK)
            return status < 0 ? status : PRESTO_OK;
        PRESTO_TRY(store_block(loop, block, err));
        presto__row_blocks_give_back(loop->blocks);
    }
}

/* The rows that have come, up to the last one. */
static presto_status store_rest(regroup_loop *loop, presto_error *err) {
    presto__row_blocks_submit(loop->blocks);
    return store_blocks(loop, true, err);
}

/* The row as a sample, into the block that is being filled. */
static presto_status add_row(regroup_loop *loop, presto_error *err) {
    presto_feature features[2] = {
        {.name = presto_span_of_text(loop->job->source->main_feature),
         .encoding = PRESTO_ENCODE_TENSOR,
         .tensor = {.spec = {PRESTO_INT32, 1, {(int64_t)loop->length}}, .data = loop->row}},
        {.name = presto_span_of_text(OFFSETS_FEATURE),
         .encoding = PRESTO_ENCODE_INT64,
         .tensor = {.spec = {PRESTO_INT64, 1, {(int64_t)loop->document_count + 1}},
                    .data = loop->offsets}}};
    const presto_sample sample = {.features = features, .feature_count = 2};
    PRESTO_TRY(presto__schema_merge_sample(&loop->job->progress.schema, &sample, err));
    return presto__row_block_add(presto__row_blocks_open(loop->blocks), &sample, &loop->begin, err);
}

/* The row is complete. */
static presto_status put_row(regroup_loop *loop, presto_error *err) {
    PRESTO_TRY(add_row(loop, err));
    loop->filled = 0;
    loop->document_count = 0;
    if (!presto__row_block_is_full(presto__row_blocks_open(loop->blocks)))
        return PRESTO_OK;
    presto__row_blocks_submit(loop->blocks);
    return store_blocks(loop, false, err);
}

/* The row has one more document, or the rest of one, which ends behind `count` more tokens. */
static presto_status note_document(regroup_loop *loop, size_t count, presto_error *err) {
    if (loop->document_count + 2 > loop->offset_capacity) {
        size_t capacity = 2 * loop->offset_capacity + 16;
        int64_t *offsets = realloc(loop->offsets, capacity * sizeof *offsets);
        if (offsets == NULL)
            return presto_fail_memory(err, capacity * sizeof *offsets);
        loop->offsets = offsets;
        loop->offset_capacity = capacity;
    }
    loop->offsets[loop->document_count++] = (int64_t)loop->filled;
    loop->offsets[loop->document_count] = (int64_t)(loop->filled + count);
    return PRESTO_OK;
}

/* All tokens of a document, but those that rows have already; then rows begin in later samples. */
static presto_status put_document(regroup_loop *loop, uint64_t sample, const int32_t *tokens,
                                  size_t count, presto_error *err) {
    size_t at = 0;
    if (sample == loop->now.sample)
        at = (size_t)loop->now.token;
    loop->now.sample = sample;
    while (at < count) {
        size_t room = loop->length - loop->filled, taken = count - at < room ? count - at : room;
        if (loop->filled == 0)
            loop->begin =
                (presto__regroup_place){sample, at, loop->now.documents, loop->now.tokens};
        PRESTO_TRY(note_document(loop, taken, err));
        memcpy(loop->row + loop->filled, tokens + at, taken * sizeof *tokens);
        loop->filled += taken;
        loop->now.tokens += taken;
        at += taken;
        if (loop->filled == loop->length)
            PRESTO_TRY(put_row(loop, err));
    }
    loop->now = (presto__regroup_place){sample + 1, 0, loop->now.documents + 1, loop->now.tokens};
    return PRESTO_OK;
}

/* ---- documents ---- */

/* A run goes on within a document: that must be the first to come, and as long as it was. */
static presto_status check_first(const regroup_loop *loop, uint64_t sample, uint64_t count,
                                 presto_error *err) {
    if (loop->now.token == 0 || (sample == loop->now.sample && count > loop->now.token))
        return PRESTO_OK;
    return presto_fail(err, PRESTO_ERR_ARGUMENT, PRESTO_NO_OFFSET,
                       "sample %" PRIu64 " has changed since its first %" PRIu64
                       " token%s were stored; nothing can be resumed",
                       presto__conversion_number(loop->job, loop->now.sample), loop->now.token,
                       presto_plural(loop->now.token));
}

static presto_status take_batch(regroup_loop *loop, const presto_batch *batch, presto_error *err) {
    const presto_batch_feature *tokens = &batch->features[0];
    const int32_t *values = tokens->tensor.data;
    /* Rows that are not ragged all have as many. */
    int64_t each =
        tokens->offsets == NULL && tokens->tensor.spec.rank == 2 ? tokens->tensor.spec.dims[1] : 0;
    presto__row_walk walk = presto__row_walk_begin(batch);
    for (size_t row = 0; row < batch->rows; row++) {
        const int64_t plain[] = {(int64_t)row * each, (int64_t)(row + 1) * each};
        const int64_t *at = tokens->offsets == NULL ? plain : tokens->offsets + row;
        size_t count = (size_t)(at[1] - at[0]);
        uint64_t sample = presto__row_walk_pass(&walk, row > 0);
        PRESTO_TRY(check_first(loop, sample, count, err));
        PRESTO_TRY(put_document(loop, sample, values + at[0], count, err));
    }
    loop->done = batch->first + batch->rows + batch->skipped;
    return PRESTO_OK;
}

/* A presto_stop_fn: progress is also reported while no sample comes. */
static bool should_stop(void *user) {
    regroup_loop *loop = user;
    return presto__conversion_report(loop->job, loop->done, NULL) == PRESTO_ERR_STOPPED;
}

/* By mean size, about as much as is worth handing over. */
static size_t choose_batch(const presto_source *source) {
    uint64_t mean = presto_source_bytes(source) / (source->count + 1) + 1;
    uint64_t samples = BATCH_BYTES / mean;
    return samples < 1 ? 1 : samples < MOST_BATCH_SAMPLES ? (size_t)samples : MOST_BATCH_SAMPLES;
}

/* PRESTO_END: all documents have come. */
static presto_status load_documents(regroup_loop *loop, presto_error *err) {
    presto__conversion *job = loop->job;
    presto_loader_options options;
    presto__loader_input input = {.source = job->source,
                                  .plan = job->plan,
                                  .packets_bytes = job->packets_bytes,
                                  .regroups = true};
    const presto__range rest = {loop->now.sample, job->sample_count};
    const char *name = job->source->main_feature;
    presto__conversion_loader_options(job, &options);
    options.output = PRESTO_OUTPUT_BATCHES;
    options.codec = NULL;
    options.batch_samples = choose_batch(job->source);
    options.features = &name;
    options.feature_count = 1;
    options.should_stop = should_stop;
    options.should_stop_user = loop;
    presto__ranges_init(&input.ranges, &rest, rest.first < rest.end, 1);
    PRESTO_TRY(presto__loader_open_input(&input, &options, &job->loader, err));
    for (;;) {
        presto_batch *batch;
        presto_status status = presto_loader_next(job->loader, &batch, err);
        if (status == PRESTO_END)
            PRESTO_TRY(presto__conversion_check_skipped(job, err));
        if (status != PRESTO_OK)
            return status;
        status = take_batch(loop, batch, err);
        presto_batch_release(batch);
        PRESTO_TRY(status);
        PRESTO_TRY(presto__conversion_report(job, loop->done, err));
    }
}

/* ---- all of it ---- */

/* What is left does not fill a row. */
static presto_status end_row(regroup_loop *loop, presto_error *err) {
    size_t missing = loop->length - loop->filled;
    if (loop->filled == 0)
        return PRESTO_OK;
    if (!loop->pads) {
        loop->job->dropped_tokens = loop->filled;
        return PRESTO_OK;
    }
    loop->job->padded_tokens = missing;
    for (size_t i = 0; i < missing; i++)
        loop->row[loop->filled + i] = loop->pad;
    return put_row(loop, err);
}

/* The shard that is open ends with the last sample, as do those behind it, which have no rows. */
static presto_status end_shards(regroup_loop *loop, presto_error *err) {
    presto__conversion *job = loop->job;
    const presto__regroup_place end = {job->sample_count, 0, loop->now.documents, loop->now.tokens};
    bool by_size = presto__conversion_by_size(job);
    PRESTO_TRY(store_rest(loop, err));
    if (job->progress.schema.count == 0) { /* not one row: the features are declared all the same */
        PRESTO_TRY(note_document(loop, 0, err));
        PRESTO_TRY(add_row(loop, err));
    }
    PRESTO_TRY(finish_shard(loop, &end, err));
    while (!by_size && job->progress.shard_count < job->shard_count) {
        PRESTO_TRY(begin_shard(loop, err));
        PRESTO_TRY(finish_shard(loop, &end, err));
    }
    job->shard_count = job->progress.shard_count;
    job->regrouped = end;
    return PRESTO_OK;
}

static presto_status make_shards(regroup_loop *loop, presto_error *err) {
    const presto__conversion *job = loop->job;
    const presto__progress_file *progress = &job->progress;
    if (progress->shard_count > 0)
        loop->now = progress->shards[progress->shard_count - 1].next;
    loop->done = loop->now.sample;
    PRESTO_TRY(begin_shard(loop, err));
    presto_status status = load_documents(loop, err);
    if (status < 0) {
        (void)store_rest(loop, NULL); /* shards that are whole need not be made again */
        return status;
    }
    PRESTO_TRY(end_row(loop, err));
    return end_shards(loop, err);
}

static presto_status read_options(regroup_loop *loop, presto_error *err) {
    const presto__conversion *job = loop->job;
    const presto_option *options[3];
    static const char *const names[] = {"length", "last", "pad"};
    for (size_t i = 0; i < 3; i++) {
        options[i] = presto__pipeline_step_option(job->pipeline, job->regroup_step, names[i]);
        if (options[i] == NULL)
            return presto_fail(err, PRESTO_ERR_UNSUPPORTED, PRESTO_NO_OFFSET,
                               "step %s: only built-in steps can make other samples",
                               presto_pipeline_step_type(job->pipeline, job->regroup_step)->name);
    }
    loop->length = (size_t)options[0]->integer;
    loop->pads = strcmp(options[1]->text, "pad") == 0;
    loop->pad = (int32_t)options[2]->integer;
    loop->row = calloc(loop->length, sizeof *loop->row);
    return loop->row == NULL ? presto_fail_memory(err, loop->length * sizeof *loop->row)
                             : PRESTO_OK;
}

/* Are all shards whole already, so that at most their names are missing? */
static bool is_complete(presto__conversion *job) {
    const presto__progress_file *progress = &job->progress;
    if (job->shard_count == 0 || progress->shard_count < job->shard_count)
        return false;
    job->regrouped = progress->shards[progress->shard_count - 1].next;
    return true;
}

presto_status presto__conversion_run_regroup(presto__conversion *job, presto_error *err) {
    regroup_loop loop = {.job = job};
    if (is_complete(job))
        return PRESTO_OK;
    presto_status status = read_options(&loop, err);
    if (status == PRESTO_OK)
        status = presto__row_blocks_new(job, &loop.blocks, err);
    if (status == PRESTO_OK)
        status = presto__writers_new(job, 1, false, &loop.writers, err);
    if (status == PRESTO_OK) {
        status = make_shards(&loop, err);
        presto__writers_stop(loop.writers);
        presto__writers_free(loop.writers);
        if (job->loader != NULL)
            presto_loader_get_stats(job->loader, &job->stats);
    }
    presto__row_blocks_free(loop.blocks);
    free(loop.row);
    free(loop.offsets);
    return status;
}
