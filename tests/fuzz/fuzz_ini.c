/* SPDX-License-Identifier: Apache-2.0 */
/* Files of AWS's tools: a value lies within the text, and where it was asked for. */
#include "fuzz.h"

#include "storage/credentials/ini_internal.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes) {
    static const presto__ini_place places[] = {
        {NULL, "default", "region", NULL},
        {"profile", "a b", "role_arn", NULL},
        {"profile", "default", "s3", "addressing_style"},
        {"sso-session", "x", "sso_region", NULL},
    };
    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
        presto_span value = {NULL, 0};
        bool has_section = false;
        bool found =
            presto__ini_find(presto_span_of(data, bytes), &places[i], &value, &has_section);
        FUZZ_HOLDS(!found || has_section);
        if (!found || value.bytes == 0)
            continue;
        FUZZ_HOLDS(value.data >= data && value.data + value.bytes <= data + bytes);
        FUZZ_HOLDS(memchr(value.data, '\n', value.bytes) == NULL);
        FUZZ_HOLDS(value.data[0] > ' ' || value.data[0] < '\t');
    }
    return 0;
}
