/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Random access: the loader's one packet is filled with the samples that were asked for. Without
 * threads nothing else is under way, so the place of the stream can be set anew for each call.
 */
#include <inttypes.h>

#include "../../base/stop_internal.h"
#include "workers_internal.h"

static presto_status check_pick(const presto_loader *loader, const uint64_t *numbers, size_t count,
                                presto_error *err) {
    const presto_loader_options *options = &loader->options;
    const char *wrong = NULL;
    if (options->threads > 0 || options->output != PRESTO_OUTPUT_BATCHES ||
        loader->ranges.list != NULL)
        wrong = "samples are picked by a loader that makes batches without threads";
    else if (count == 0)
        wrong = "there must be at least one sample to pick";
    if (wrong != NULL)
        return presto_fail(err, PRESTO_ERR_ARGUMENT, PRESTO_NO_OFFSET, "%s", wrong);
    presto__stop_hook pass;
    presto__stop_scope before =
        presto__stop_enter(&pass, options->should_stop, options->should_stop_user);
    presto_status status = presto__source_settle(loader->source, err);
    PRESTO_TRY(presto__stop_leave(&pass, before, status, err));
    const uint64_t samples = presto_source_count(loader->source);
    for (size_t i = 0; i < count; i++)
        if (numbers[i] >= samples)
            return presto_fail(err, PRESTO_ERR_ARGUMENT, PRESTO_NO_OFFSET,
                               "there is no sample %" PRIu64 ", only %" PRIu64, numbers[i],
                               samples);
    const presto__source_ops *ops = loader->source->ops;
    return ops->check_random_access == NULL ? PRESTO_OK
                                            : ops->check_random_access(loader->source, err);
}

/* The stream is one packet with one batch of these samples, whatever ended it before. */
static void aim(presto_loader *loader, const uint64_t *numbers, size_t count) {
    if (loader->current != NULL)
        presto__packet_release(loader->current, 1);
    loader->current = NULL;
    loader->final_status = PRESTO_OK;
    loader->failed_at = UINT64_MAX;
    loader->has_start_error = false;
    loader->walks = false; /* all samples are counted */
    loader->order.list = numbers;
    loader->read_ahead.is_planned = false; /* no positions come after it */
    loader->epoch_samples = count;
    loader->options.range.drop_last = false; /* the batch has another size than the stream's */
    loader->blocking.packet_samples = count;
    loader->blocking.batch_rows = count;
    loader->blocking.parts = 1;
    if (loader->delivery == PRESTO__DELIVER_VIEWS && count != 1)
        loader->delivery = PRESTO__DELIVER_ROWS;
    loader->next_epoch = loader->options.range.first_epoch;
    loader->next_offset = 0;
    loader->epochs_left = 1;
    loader->samples_left = UINT64_MAX;
    loader->end_packet = UINT64_MAX;
}

void presto_loader_redraw(presto_loader *loader, uint64_t seed, uint64_t epoch) {
    loader->options.order.seed = seed;
    loader->options.range.first_epoch = epoch;
}

presto_status presto_loader_pick(presto_loader *loader, const uint64_t *numbers, size_t count,
                                 presto_batch **batch_out, presto_error *err) {
    PRESTO_TRY(check_pick(loader, numbers, count, err));
    aim(loader, numbers, count);
    presto_batch *batch = NULL;
    presto_status status = presto_loader_next(loader, &batch, err);
    if (status == PRESTO_OK && loader->current->failure != NULL) {
        /* The samples before the one that failed are not what was asked for. */
        presto_batch_release(batch);
        batch = NULL;
        status = presto_loader_next(loader, &batch, err);
    }
    if (status == PRESTO_END)
        status = PRESTO_DROP;
    if (status == PRESTO_OK)
        *batch_out = batch;
    /* The numbers are the caller's. The stream has no more: presto_loader_next ends. */
    loader->order.list = NULL;
    loader->epochs_left = 0;
    loader->end_packet = loader->next_packet;
    return status;
}
