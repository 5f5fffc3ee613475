/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files of byte-level BPE tokenizers: any bytes are refused with a message, or make a tokenizer
 * that encodes. What stands behind a NUL is the merges of a vocab.json.
 */
#include "fuzz.h"
#include "steps/text/tokenizer_internal.h"

static const char text[] =
    "All human beings  don't I'LL\r\n\r\n 1234567 <mask>  <s> \xe4\xba\xba\xcc\x81 \xff "
    "e\xcc\x81\xc2\xa0\t\x01 aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes) {
    presto__tokenizer *tokenizer = NULL;
    presto_buffer ids = {0};
    presto_error err = {0};
    const uint8_t *nul = bytes > 0 ? memchr(data, 0, bytes) : NULL;
    presto_span json = presto_span_of(data, nul != NULL ? (size_t)(nul - data) : bytes);
    presto_span merges = {0};
    if (nul != NULL)
        merges = presto_span_of(nul + 1, bytes - json.bytes - 1);
    if (presto__tokenizer_new(json, &(presto__merges){merges, "merges.txt"}, &tokenizer, &err) <
        0) {
        FUZZ_HOLDS(tokenizer == NULL && err.message[0] != '\0');
        return 0;
    }
    for (int with_special = 0; with_special < 2; with_special++) {
        presto__tokenizer_scratch *scratch = presto__tokenizer_scratch_new(with_special != 0);
        FUZZ_HOLDS(scratch != NULL);
        presto_status status = presto__tokenizer_encode(
            tokenizer, scratch, presto_span_of(text, sizeof text - 1), &ids, &err);
        FUZZ_HOLDS(status == PRESTO_OK || err.message[0] != '\0');
        presto__tokenizer_scratch_free(scratch);
    }
    for (size_t i = 0; i < ids.bytes; i += sizeof(int32_t)) {
        int32_t id;
        memcpy(&id, ids.data + i, sizeof id);
        FUZZ_HOLDS(id >= 0);
    }
    presto_buffer_done(&ids);
    presto__tokenizer_free(tokenizer);
    return 0;
}
