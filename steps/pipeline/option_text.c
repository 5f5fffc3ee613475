/* SPDX-License-Identifier: Apache-2.0 */
/* What an option takes, in words: for messages and the reference. */
#include <stdio.h>

#include "../../base/decimal_internal.h"
#include "pipeline_internal.h"

const char *presto__option_kind_text(presto_option_kind kind) {
    switch (kind) {
    case PRESTO_OPTION_INT:
        return "a whole number";
    case PRESTO_OPTION_FLOAT:
        return "a number";
    case PRESTO_OPTION_SIZE:
        return "a size such as 64MiB";
    case PRESTO_OPTION_BOOL:
        return "true or false";
    case PRESTO_OPTION_TEXT:
        return "a text";
    case PRESTO_OPTION_CHOICE:
        return "a choice";
    case PRESTO_OPTION_TEXT_LIST:
        return "a list of texts";
    case PRESTO_OPTION_FILE:
        return "a file's path";
    case PRESTO_OPTION_FLOAT_LIST:
        return "a list of numbers";
    case PRESTO_OPTION_VALUE_LIST:
        return "a list of texts and numbers";
    case PRESTO_OPTION_COMMAND:
        return "a program and its arguments as a list of texts";
    case PRESTO_OPTION_TIME:
        return "a time such as 30s or 500ms";
    case PRESTO_OPTION_VALUE:
        return "a text or a number";
    case PRESTO_OPTION_NAMES:
        return "a list of names, or a path";
    }
    return "?";
}

/* Whole numbers of options have no exponent, however large they are. */
static void format_bound(const presto_option_type *option, double bound, char *text, size_t room) {
    if (option->kind == PRESTO_OPTION_INT || option->kind == PRESTO_OPTION_SIZE)
        snprintf(text, room, "%.0f", bound);
    else
        (void)presto__decimal_format(text, room, 15, bound);
}

const char *presto__option_bounds(const presto_option_type *option,
                                  char text[PRESTO__BOUNDS_BYTES]) {
    char least[PRESTO__BOUNDS_BYTES / 2 - 8], most[sizeof least];
    format_bound(option, option->minimum, least, sizeof least);
    format_bound(option, option->maximum, most, sizeof most);
    snprintf(text, PRESTO__BOUNDS_BYTES, "from %s to %s", least, most);
    return text;
}
