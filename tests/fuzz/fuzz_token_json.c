/* SPDX-License-Identifier: Apache-2.0 */
/* Keys in JSON: what is taken may stand in a header, and is whole. */
#include "fuzz.h"

#include "storage/credentials/provider_internal.h"

static void check(const char *text) {
    FUZZ_HOLDS(text[0] != '\0');
    for (; *text != '\0'; text++)
        FUZZ_HOLDS((unsigned char)*text > ' ' && (unsigned char)*text < 0x7f);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes) {
    static const presto__key_names names = {"AccessKeyId", "SecretAccessKey", "Token",
                                            "Expiration"};
    presto__keys keys = {.until_s = 0};
    if (presto__keys_from_text(presto_span_of(data, bytes), &names, "it", &keys, NULL) ==
        PRESTO_OK) {
        check(keys.access_key);
        check(keys.secret_key);
        if (keys.token != NULL)
            check(keys.token);
    }
    presto__keys_done(&keys);
    return 0;
}
