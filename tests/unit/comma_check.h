/* SPDX-License-Identifier: Apache-2.0 */
/* A locale whose numbers have a comma, as that of a German or French program. */
#ifndef COMMA_CHECK_H
#define COMMA_CHECK_H

#include <locale.h>
#include <stdio.h>
#include <string.h>

#include "folder_check.h"

/** Numbers of the process have a comma, until comma_end(). False: the system makes no locales. */
static inline bool comma_begin(void) {
    static const char numbers[] = "LC_NUMERIC\ndecimal_point \",\"\nthousands_sep \".\"\n"
                                  "grouping 3;3\nEND LC_NUMERIC\n";
    char command[1600];
    char *dir = presto_check_temp_dir();
    presto_check_write_file(path_in(dir, "source"), presto_span_of_text(numbers));
    snprintf(command, sizeof command, "localedef -c -i %s/source %s/comma >%s/words 2>&1", dir, dir,
             dir);
    (void)!system(command); /* warns of what else a locale has */
    ck_assert_int_eq(setenv("LOCPATH", dir, 1), 0);
    bool has_comma = setlocale(LC_NUMERIC, "comma") != NULL;
    unsetenv("LOCPATH");
    presto_check_remove_tree(dir);
    free(dir);
    if (!has_comma)
        printf("no localedef: not checked with a comma\n");
    return has_comma;
}

static inline void comma_end(void) {
    setlocale(LC_NUMERIC, "C");
}

#endif
