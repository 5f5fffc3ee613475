/* SPDX-License-Identifier: Apache-2.0 */
/* What Google's storage answers to who writes, as any server may send it: an error with words, or texts
 * that can go into a request again. */
#include <stdlib.h>

#include "storage/gs_put_internal.h"

#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes) {
    presto_error err = {0};
    presto__gs_object object;
    presto__gs_copied copied;
    if (presto__gs_object_parse(presto_span_of(data, bytes), &object, &err) >= 0) {
        FUZZ_HOLDS(strnlen(object.generation, sizeof object.generation) < sizeof object.generation);
        FUZZ_HOLDS(object.generation[0] != '\0');
        FUZZ_HOLDS(object.generation[strspn(object.generation, "0123456789")] == '\0');
    } else {
        FUZZ_HOLDS(err.message[0] != '\0');
    }
    err = (presto_error){0};
    if (presto__gs_copied_parse(presto_span_of(data, bytes), &copied, &err) >= 0)
        FUZZ_HOLDS(copied.is_done == (copied.token == NULL));
    else
        FUZZ_HOLDS(err.message[0] != '\0');
    free(copied.token);
    return 0;
}
