/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Batches output: the row of the sample that a worker runs. The last step may write straight into
 * it, once the shape is known. Everything else is copied there.
 */

#include "../../base/clock_internal.h"
#include "../../records/records_internal.h"
#include "workers_internal.h"

presto__place presto__worker_row(const presto__worker *worker) {
    return (presto__place){
        .batch = worker->batch, .part = worker->part, .position = worker->position};
}

/*
 * The first row of the part in the batch. Parts share arrays. Only a sample that has passed all
 * steps may define them, because the shape of a damaged sample must not bind the others.
 */
static presto_status begin_fill(presto__worker *worker, const presto__place *place,
                                const presto_sample *sample, bool is_complete, presto_error *err) {
    presto__packet_batch *batch = worker->batch;
    if (worker->packet->part_count > 1) {
        presto_status status = PRESTO_OK;
        pthread_mutex_lock(&worker->loader->pool->lock);
        if (is_complete && !batch->laid_out)
            status = presto__batch_layout(batch, sample, err);
        bool is_laid_out = batch->laid_out;
        pthread_mutex_unlock(&worker->loader->pool->lock);
        if (status < 0 || !is_laid_out)
            return status;
    }
    worker->began_here = true;
    return presto__fill_begin(place, sample, err);
}

/* The sample as it will be after its last step; the values of that step are missing. */
static presto_status foresee(presto__worker *worker, const presto_output_request *request,
                             presto_sample *sample_out, presto_error *err) {
    *sample_out = *request->sample;
    size_t bytes = sample_out->feature_count * sizeof *sample_out->features;
    sample_out->features = presto_arena_alloc(&worker->arena, bytes, _Alignof(max_align_t));
    if (sample_out->features == NULL)
        return presto_fail_memory(err, bytes);
    memcpy(sample_out->features, request->sample->features, bytes);
    presto_feature *written = &sample_out->features[request->feature];
    written->encoding = PRESTO_ENCODE_TENSOR;
    written->tensor.spec = *request->spec;
    presto__selection_apply(&worker->loader->shown, sample_out);
    return PRESTO_OK;
}

/* Where the output of the last step goes in the batch; NULL: nowhere yet. */
static presto_status find_row(presto__worker *worker, const presto_output_request *request,
                              void **data_out, presto_error *err) {
    presto_feature written = request->sample->features[request->feature];
    *data_out = NULL;
    if (request->spec->dtype == PRESTO_STRING ||
        !presto__selection_has(&worker->loader->shown, written.name))
        return PRESTO_OK;
    presto__place place = presto__worker_row(worker);
    const presto__fill *fill = presto__place_fill(&place);
    if (!presto__fill_is_begun(fill)) {
        if (worker->loader->last_step_drops)
            return PRESTO_OK; /* columns are made for a sample that is kept */
        presto_sample sample;
        PRESTO_TRY(foresee(worker, request, &sample, err));
        PRESTO_TRY(begin_fill(worker, &place, &sample, false, err));
    }
    written.encoding = PRESTO_ENCODE_TENSOR;
    written.tensor.spec = *request->spec;
    if (presto__fill_is_begun(fill))
        *data_out = presto__fill_slot(&place, &written, request->feature);
    return PRESTO_OK;
}

/* The output of the last step goes straight into its row. */
presto_status presto__worker_give_row(void *user, const presto_output_request *request,
                                      void **data_out, presto_error *err) {
    presto__worker *worker = user;
    const presto_tensor_spec *spec = request->spec;
    size_t bytes = (size_t)presto_spec_elements(spec) * sizeof(presto_span);
    if (spec->dtype != PRESTO_STRING)
        PRESTO_TRY(presto_spec_bytes(spec, &bytes, err));
    *data_out = NULL;
    if (worker->loader->options.output == PRESTO_OUTPUT_BATCHES)
        PRESTO_TRY(find_row(worker, request, data_out, err));
    if (*data_out != NULL)
        return PRESTO_OK;
    *data_out = presto_arena_alloc(&worker->arena, bytes, 64);
    return *data_out == NULL ? presto_fail_memory(err, bytes) : PRESTO_OK;
}

static presto_status put(presto__worker *worker, const presto__place *place, presto_error *err) {
    if (!presto__fill_is_begun(presto__place_fill(place))) {
        if (worker->packet->batch_rows == 1) /* columns would hold this row only */
            return presto__fill_view(place, worker->sample, PRESTO__VIEW_COPY, err);
        PRESTO_TRY(begin_fill(worker, place, worker->sample, true, err));
    }
    return presto__fill_put(place, worker->sample, err);
}

presto_status presto__worker_put_row(presto__worker *worker, presto_error *err) {
    uint64_t start = worker->time_scale == 0 ? 0 : presto__clock_ns();
    presto__place place = presto__worker_row(worker);
    presto__selection_apply(&worker->loader->shown, worker->sample);
    presto_status status = put(worker, &place, err);
    if (worker->time_scale != 0)
        worker->account.batch_ns += (presto__clock_ns() - start) * worker->time_scale;
    return status;
}

presto_status presto__worker_put_values(presto__worker *worker, presto_error *err) {
    presto__place place = presto__worker_row(worker);
    const presto__fill *fill = presto__place_fill(&place);
    if (!presto__fill_is_begun(fill) || fill->rows == 0)
        return PRESTO_END; /* columns are made for a sample */
    presto__example_values values;
    presto_status status = worker->loader->source->ops->values(worker->reader, worker->index,
                                                               &worker->arena, &values, err);
    if (status != PRESTO_OK)
        return status;
    uint64_t start = worker->time_scale == 0 ? 0 : presto__clock_ns();
    status = presto__fill_put_values(&place, &values, err);
    if (worker->time_scale != 0)
        worker->account.batch_ns += (presto__clock_ns() - start) * worker->time_scale;
    return status;
}
