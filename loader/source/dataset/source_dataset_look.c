/* SPDX-License-Identifier: Apache-2.0 */
/*
 * TFRecords of other programs do not say what their bytes are. If the first records have serialized
 * tensors or feature lists, what they have in common is declared: the tensors are decoded, and
 * feature lists have one form in all samples. Else samples are as each record shows them.
 */
#include "source_dataset_internal.h"

/* Samples of plain values are what each record shows, and nothing is declared of them. */
static bool has_forms(const presto__seen *seen) {
    bool found = seen->sequences > 0;
    for (size_t i = 0; i < seen->count && !found; i++)
        found = presto__seen_is_tensor(&seen->features[i]);
    return found;
}

static presto_status declare_seen(presto_source *base, const presto__seen *seen,
                                  presto_error *err) {
    if (!has_forms(seen))
        return PRESTO_OK;
    for (size_t i = 0; i < seen->count; i++) {
        const presto__seen_feature *feature = &seen->features[i];
        presto_encoding encoding = PRESTO_ENCODE_TENSOR;
        presto_tensor_spec spec = feature->spec;
        if (feature->encoding == PRESTO_ENCODE_NONE)
            continue;
        if (!presto__seen_is_tensor(feature))
            PRESTO_TRY(presto__seen_describe(seen, feature, &encoding, &spec, err));
        PRESTO_TRY(presto__source_declare(base, feature->name, encoding, &spec, err));
    }
    return PRESTO_OK;
}

presto_status presto__dataset_look(presto_source *base, presto_error *err) {
    presto__seen seen = {0};
    presto_error why;
    presto_status status = presto__seen_look(base, base->ops, &seen, &why);
    if (status == PRESTO_OK)
        status = declare_seen(base, &seen, &why);
    presto__seen_done(&seen);
    if (status == PRESTO_ERR_MEMORY || status == PRESTO_ERR_STOPPED) {
        if (err != NULL)
            *err = why;
        return status;
    }
    return PRESTO_OK; /* who reads the records is told why they cannot be read */
}
