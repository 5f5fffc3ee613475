/* SPDX-License-Identifier: Apache-2.0 */
/* The terminal behind stderr, for the functions that print. */
#ifndef PRESTO_TOOLS_TERMINAL_H
#define PRESTO_TOOLS_TERMINAL_H

#include <stdio.h>

#include <presto/span.h>

/** Columns of the terminal behind `stream`; 80 if there is none. */
unsigned cli_terminal_columns(FILE *stream);

/** Print a text from outside on stdout as presto_text_show makes it. */
void cli_show(presto_span text);

/** Remove the progress line, so that a message has its own line. The next update draws it again. */
void cli_progress_hide(void);

/** Of the program that runs; what its messages begin with. */
const char *cli_program_name(void);

#endif
