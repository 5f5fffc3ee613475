/* SPDX-License-Identifier: Apache-2.0 */
/* Answers to who writes, as any server may send them: an error with words, or texts that can go into
 * a request again. */
#include "storage/s3_put_internal.h"

#include "fuzz.h"

static void check_text(const char *text, size_t room) {
    FUZZ_HOLDS(strnlen(text, room) < room);
    for (; *text != '\0'; text++)
        FUZZ_HOLDS((unsigned char)*text >= ' ' && *text != 0x7f);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes) {
    presto_error err = {0};
    presto__s3_answer answer;
    presto__s3_uploads uploads = {.count = 0};
    if (presto__s3_answer_parse(presto_span_of(data, bytes), &answer, &err) >= 0) {
        check_text(answer.upload_id, sizeof answer.upload_id);
        check_text(answer.etag, sizeof answer.etag);
        check_text(answer.crc32c, sizeof answer.crc32c);
        check_text(answer.checksum_type, sizeof answer.checksum_type);
        FUZZ_HOLDS(strnlen(answer.code, sizeof answer.code) < sizeof answer.code);
        FUZZ_HOLDS(strnlen(answer.message, sizeof answer.message) < sizeof answer.message);
    } else {
        FUZZ_HOLDS(err.message[0] != '\0');
    }
    for (size_t round = 0; round < 2; round++) { /* a page is used again */
        presto_status status =
            presto__s3_uploads_parse(presto_span_of(data, bytes), &uploads, &err);
        FUZZ_HOLDS(status >= 0 || err.message[0] != '\0');
        for (size_t i = 0; status >= 0 && i < uploads.count; i++) {
            FUZZ_HOLDS(strlen((const char *)uploads.items[i].key.data) ==
                       uploads.items[i].key.bytes);
            FUZZ_HOLDS(strlen((const char *)uploads.items[i].id.data) == uploads.items[i].id.bytes);
            FUZZ_HOLDS(uploads.items[i].key.bytes > 0 && uploads.items[i].id.bytes > 0);
        }
    }
    presto__s3_uploads_done(&uploads);
    return 0;
}
