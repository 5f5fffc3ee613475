/* SPDX-License-Identifier: Apache-2.0 */
#include "texts_internal.h"

#include <stdlib.h>
#include <string.h>

char *presto__texts_join(const char *const *texts) {
    size_t bytes = 1, at = 0;
    for (const char *const *one = texts; *one != NULL; one++)
        bytes += strlen(*one);
    char *text = malloc(bytes);
    for (; text != NULL && *texts != NULL; texts++) {
        size_t more = strlen(*texts);
        memcpy(text + at, *texts, more);
        at += more;
    }
    if (text != NULL)
        text[at] = '\0';
    return text;
}
