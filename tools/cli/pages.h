/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Manual pages and completions of shells, printed from a program's table of options. The build calls
 * each program for them: PROGRAM --print-page man TEMPLATE, or bash, zsh, fish. Nobody else needs
 * that option, so --help does not list it.
 */
#ifndef PRESTO_TOOLS_PAGES_H
#define PRESTO_TOOLS_PAGES_H

#include "options.h"

/** Print what `words` ask for, and end the program; wrong words are a usage error. */
_Noreturn void cli_print_page(const cli_program *program, int count, char **words);

/* ---- what --help knows of rows (options.c) ---- */

/** A struct of the program's options with the defaults, on the heap. Without memory, the program
 * ends. */
void *cli_default_job(void);

/** What the row is for, without its default. */
void cli_row_help(const cli_option *row, char *text, size_t room);

/** Its default, NULL if --help says none; `room` has PRESTO_TEXT_BYTES. */
const char *cli_row_default(const cli_option *row, const char *job, char *room);

/** Does the program have this option? --help says more of some. */
bool cli_has_option(const char *name);

/** What an exit code means, in a word or two, and in a sentence; NULL: it is none. */
const char *cli_exit_brief(int code);
const char *cli_exit_text(int code);

#endif
