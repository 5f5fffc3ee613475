/* SPDX-License-Identifier: Apache-2.0 */
/*
 * SentencePiece models: any bytes are refused with a message, or make a model that encodes every
 * text without reading out of bounds, in ids that it has. Word by word, the ids are the same.
 */
#include "fuzz.h"
#include "steps/text/sentencepiece_internal.h"

static const char text[] =
    "All human beings  don't\t\xc3\x85\xef\xbc\xa1 \xef\xb7\xba [SEP]x<mask> \xe4\xb8\xad\xe6"
    "\x96\x87 \xff\xed\xa0\x80 e\xcc\x81 aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\0b";

static void compare_words(const presto__sentencepiece *model, presto_span whole_ids) {
    presto_buffer ids = {0};
    presto_error err = {0};
    presto__sentencepiece_scratch *scratch = presto__sentencepiece_scratch_new();
    for (int again = 0; scratch != NULL && again < 2; again++) { /* then from the cache */
        ids.bytes = 0;
        FUZZ_HOLDS(presto__sentencepiece_encode(
                       model, scratch, presto_span_of(text, sizeof text - 1), &ids, &err) >= 0);
        FUZZ_HOLDS(presto_span_equal(presto_buffer_span(&ids), whole_ids));
    }
    presto__sentencepiece_scratch_free(scratch);
    presto_buffer_done(&ids);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes) {
    presto__sentencepiece *model = NULL;
    presto__sentencepiece_info info = {0};
    presto_buffer ids = {0};
    presto_error err = {0};
    presto_span content = presto_span_of(data, bytes);
    if (presto__sentencepiece_new(content, &model, &err) < 0) {
        FUZZ_HOLDS(model == NULL && err.message[0] != '\0');
        return 0;
    }
    FUZZ_HOLDS(presto__sentencepiece_check(content, &info, &err) == PRESTO_OK);
    presto_status status = presto__sentencepiece_encode(
        model, NULL, presto_span_of(text, sizeof text - 1), &ids, &err);
    FUZZ_HOLDS(status == PRESTO_OK || err.message[0] != '\0');
    for (size_t i = 0; status == PRESTO_OK && i < ids.bytes; i += sizeof(int32_t)) {
        int32_t id;
        memcpy(&id, ids.data + i, sizeof id);
        FUZZ_HOLDS(id >= 0 && (uint32_t)id < info.token_count);
    }
    if (status == PRESTO_OK)
        compare_words(model, presto_buffer_span(&ids));
    presto_buffer_done(&ids);
    presto__sentencepiece_free(model);
    return 0;
}
