/* SPDX-License-Identifier: Apache-2.0 */
#include "place_internal.h"

#include <stdio.h>
#include <string.h>

void presto__place_mask(const char *secret, char out[PRESTO_PLACE_NAME_BYTES]) {
    size_t bytes = strlen(secret);
    if (bytes < 12)
        snprintf(out, PRESTO_PLACE_NAME_BYTES, "...");
    else
        snprintf(out, PRESTO_PLACE_NAME_BYTES, "%.4s...%s", secret, secret + bytes - 4);
}

void presto__place_text(const char *text, char *out, size_t room) {
    snprintf(out, room, "%s", text);
}
