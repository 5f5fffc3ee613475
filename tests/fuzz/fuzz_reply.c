/* SPDX-License-Identifier: Apache-2.0 */
/* Replies of other programs: a head and an Example. What is taken is of the declared specs. */
#include "fuzz.h"

#include <errno.h>

#include "own/own_internal.h"

static char value_name[] = "value", boxes_name[] = "boxes", text_name[] = "text";
static const presto_feature_spec specs[] = {
    {value_name, PRESTO_ENCODE_TENSOR, {PRESTO_UINT8, 3, {-1, -1, 3}}},
    {boxes_name, PRESTO_ENCODE_TENSOR, {PRESTO_FLOAT32, 2, {-1, 4}}},
    {text_name, PRESTO_ENCODE_BYTES, {PRESTO_STRING, 0, {0}}},
};
static const presto__reply_form form = {specs, 3};

static void check_reply(const presto_sample *reply, presto_span payload) {
    FUZZ_HOLDS(reply->feature_count >= 1);
    for (size_t i = 0; i < reply->feature_count; i++) {
        const presto_feature *feature = &reply->features[i];
        const presto_feature_spec *spec = specs;
        while (!presto_span_is(feature->name, spec->name))
            FUZZ_HOLDS(++spec < specs + 3);
        FUZZ_HOLDS(presto__spec_could_fit(&feature->tensor.spec, &spec->spec));
        if (spec->spec.dtype == PRESTO_STRING)
            FUZZ_HOLDS(feature->tensor.strings->bytes <= payload.bytes);
        else
            /* The last of fewer values fills the rest, so this may be more than the payload. */
            FUZZ_HOLDS(presto_tensor_bytes(&feature->tensor) == 0 || feature->tensor.data != NULL);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes) {
    presto_error err;
    uint64_t wanted = 0;
    if (bytes < PRESTO__HEAD_BYTES)
        return 0;
    presto_status status = presto__head_check(data, 1, 1 << 20, &wanted, &err);
    FUZZ_HOLDS(status == PRESTO_OK ? wanted <= 1 << 20
                                   : status == PRESTO_ERR_IO && err.sys_errno == EPROTO);
    presto_arena arena = {0};
    presto_sample reply;
    presto_span payload = presto_span_of(data + PRESTO__HEAD_BYTES, bytes - PRESTO__HEAD_BYTES);
    status = presto__reply_parse(&form, payload, &arena, &reply, &err);
    if (status == PRESTO_OK)
        check_reply(&reply, payload);
    else
        FUZZ_HOLDS(status == PRESTO_DROP || status == PRESTO_ERR_CORRUPT ||
                   (status == PRESTO_ERR_IO && err.sys_errno == EPROTO));
    presto_arena_done(&arena);
    return 0;
}
