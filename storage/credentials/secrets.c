/* SPDX-License-Identifier: Apache-2.0 */
/* Secrets in memory: they are overwritten before it is given back. */
#include <stdlib.h>

#include "provider_internal.h"

/* Through a pointer that the compiler knows nothing of, so that it is done. */
static void overwrite(void *memory, size_t bytes) {
    volatile uint8_t *at = memory;
    for (size_t i = 0; i < bytes; i++)
        at[i] = 0;
}

void presto__forget(char *secret) {
    if (secret != NULL)
        overwrite(secret, strlen(secret));
    free(secret);
}

void presto__forget_buffer(presto_buffer *secret) {
    if (secret->data != NULL)
        overwrite(secret->data, secret->capacity);
    presto_buffer_done(secret);
}

void presto__keys_done(presto__keys *keys) {
    presto__forget(keys->access_key);
    presto__forget(keys->secret_key);
    presto__forget(keys->token);
    keys->access_key = keys->secret_key = keys->token = NULL;
}
