/* SPDX-License-Identifier: Apache-2.0 */
/* The features of the sample that a worker processes, and the names in its error messages. */
#include <stdlib.h>

#include "../../base/tensor_internal.h"
#include "../pipelines_internal.h"
#include "plan_internal.h"

size_t presto__plan_find_feature(const presto_sample *sample, const char *name, size_t hint) {
    presto_span wanted = presto_span_of_text(name);
    if (hint < sample->feature_count && presto_span_equal(sample->features[hint].name, wanted))
        return hint;
    return presto__sample_find(sample, wanted);
}

static presto_status reserve_features(presto__plan_worker *worker, size_t count,
                                      presto_error *err) {
    if (count <= worker->feature_capacity)
        return PRESTO_OK;
    size_t capacity = count + 8;
    presto_feature *features = realloc(worker->features, capacity * sizeof *features);
    if (features == NULL)
        return presto_fail_memory(err, capacity * sizeof *features);
    worker->features = worker->sample.features = features;
    worker->feature_capacity = capacity;
    return PRESTO_OK;
}

/* A number beside the main feature is stored as those that came with the sample are. */
static presto_encoding encoding_of(const presto_tensor_spec *spec, bool is_main) {
    if (spec->dtype == PRESTO_STRING)
        return PRESTO_ENCODE_BYTES;
    bool is_number = spec->dtype == PRESTO_INT64 && spec->rank == 0;
    return is_number && !is_main ? PRESTO_ENCODE_INT64 : PRESTO_ENCODE_TENSOR;
}

presto_status presto__plan_put_feature(presto__plan_worker *worker, size_t at, const char *name,
                                       const presto_tensor *value, presto_error *err) {
    if (at == SIZE_MAX) {
        at = worker->sample.feature_count;
        PRESTO_TRY(reserve_features(worker, at + 1, err));
        worker->features[at] = (presto_feature){.name = presto_span_of_text(name)};
        worker->sample.feature_count = at + 1;
    }
    presto_feature *feature = &worker->features[at];
    feature->tensor = *value;
    feature->encoding = encoding_of(&value->spec, at == worker->run->main);
    worker->is_wide = worker->is_wide || at != worker->run->main;
    return PRESTO_OK;
}

void presto__plan_name_step(presto__plan_worker *worker, size_t i, presto_error *err) {
    presto__error_prefix(err, presto__plan_step(worker->plan, i)->type->name);
}

presto_status presto__plan_take_sample(presto__plan_worker *worker, const presto_sample *sample,
                                       presto_error *err) {
    PRESTO_TRY(reserve_features(worker, sample->feature_count, err));
    if (sample->feature_count > 0)
        memcpy(worker->features, sample->features,
               sample->feature_count * sizeof *worker->features);
    worker->sample = *sample;
    worker->sample.features = worker->features;
    worker->is_wide = false;
    return PRESTO_OK;
}
