/* SPDX-License-Identifier: Apache-2.0 */
/* In the place of sentencepiece.cc, where the build lacks the library. */
#include "sentencepiece_internal.h"

presto_status presto__sentencepiece_new(presto_span model, presto__sentencepiece **model_out,
                                        presto_error *err) {
    presto__sentencepiece_info info;
    (void)model_out;
    PRESTO_TRY(presto__sentencepiece_check(model, &info, err));
    return presto_fail(err, PRESTO_ERR_UNSUPPORTED, PRESTO_NO_OFFSET,
                       "a SentencePiece model: built without libsentencepiece");
}

void presto__sentencepiece_free(presto__sentencepiece *model) {
    (void)model;
}

const presto__sentencepiece_info *presto__sentencepiece_get_info(
    const presto__sentencepiece *model) {
    static const presto__sentencepiece_info none;
    (void)model;
    return &none;
}

presto_status presto__sentencepiece_encode_raw(const presto__sentencepiece *model, presto_span text,
                                               presto_buffer *ids, presto_error *err) {
    (void)model, (void)text, (void)ids;
    return presto_fail(err, PRESTO_ERR_UNSUPPORTED, PRESTO_NO_OFFSET,
                       "built without libsentencepiece");
}
