/* SPDX-License-Identifier: Apache-2.0 */
/* Reads command lines, and prints --help, from a program's table of options. */
#include "options.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <presto/numbers.h>
#include <presto/text.h>
#include <presto/version.h>

#include "cli.h"
#include "pages.h"
#include "terminal.h"

enum { MAX_OPTIONS = 128, HELP_COLUMNS = 80, HELP_INDENT = 28, HELP_BYTES = 1024 };

/* getopt's number of row 0; those below are letters. */
enum { FIRST_ROW = 256, FIRST_OLD_NAME = FIRST_ROW + MAX_OPTIONS };

const char CLI_FIELD[] = "";

static const cli_program *program; /* who we are; set once by cli_start */
static bool is_given[MAX_OPTIONS]; /* of each row; set by cli_parse */

const char *cli_program_name(void) {
    return program->name;
}

static bool is_option(const cli_option *row) {
    return row->kind != CLI_KIND_GROUP;
}

/* NULL: there is none. */
static const cli_option *find_letter(int letter) {
    for (const cli_option *row = program->options; row->name != NULL; row++)
        if (is_option(row) && row->letter == letter)
            return row;
    return NULL;
}

bool cli_has_option(const char *name) {
    for (const cli_option *row = program->options; row->name != NULL; row++)
        if (is_option(row) && strcmp(row->name, name) == 0)
            return true;
    return false;
}

/* ---- fields ---- */

static void put_number(const cli_option *row, void *place, uint64_t value) {
    switch (row->type) {
    case CLI_TYPE_BOOL:
        *(bool *)place = value != 0;
        break;
    case CLI_TYPE_INT:
        *(int *)place = (int)value;
        break;
    case CLI_TYPE_UNSIGNED:
        *(unsigned *)place = (unsigned)value;
        break;
    case CLI_TYPE_UNSIGNED64:
        *(uint64_t *)place = value;
        break;
    case CLI_TYPE_REAL:
        *(double *)place = (double)value;
        break;
    case CLI_TYPE_TEXT:
    case CLI_TYPE_NONE:
        break;
    }
}

static uint64_t get_number(const cli_option *row, const void *place) {
    switch (row->type) {
    case CLI_TYPE_BOOL:
        return *(const bool *)place;
    case CLI_TYPE_INT:
        return (uint64_t) * (const int *)place;
    case CLI_TYPE_UNSIGNED:
        return *(const unsigned *)place;
    case CLI_TYPE_UNSIGNED64:
        return *(const uint64_t *)place;
    case CLI_TYPE_REAL:
    case CLI_TYPE_TEXT:
    case CLI_TYPE_NONE:
        break;
    }
    return 0;
}

static int find_value(const char *option, const char *text, const cli_value *values) {
    const char *names[32] = {NULL};
    size_t count = 0;
    for (; values[count].name != NULL; count++) {
        assert(count + 1 < sizeof names / sizeof *names);
        names[count] = values[count].name;
    }
    return values[cli_choice(option, text, names)].value;
}

/* Set the field of `row` from its argument. */
static void read_argument(const cli_option *row, const char *text, char *job) {
    char option[64];
    void *place = job + row->at;
    snprintf(option, sizeof option, "--%s", row->name);
    switch (row->kind) {
    case CLI_KIND_GROUP:
        break;
    case CLI_KIND_FLAG:
        put_number(row, place, (uint64_t)row->value);
        break;
    case CLI_KIND_NUMBER:
        put_number(row, place, cli_number(option, text, row->least, row->most));
        break;
    case CLI_KIND_SIZE:
        put_number(row, place, cli_size(option, text, row->least));
        break;
    case CLI_KIND_FRACTION:
        *(double *)place = cli_fraction(option, text, (double)row->least,
                                        row->most == UINT64_MAX ? INFINITY : (double)row->most);
        break;
    case CLI_KIND_TIME:
        *(double *)place = cli_seconds(option, text);
        break;
    case CLI_KIND_TEXT:
        *(const char **)place = text;
        break;
    case CLI_KIND_PATH:
        *(const char **)place = cli_path(option, text);
        break;
    case CLI_KIND_CHOICE:
        put_number(row, place, (uint64_t)find_value(option, text, row->values));
        break;
    case CLI_KIND_SPECIAL:
        row->read(option, text, place, job + row->beside);
        break;
    }
    if (row->given > 0)
        *(bool *)(job + row->given - 1) = true;
}

/* ---- help ---- */

/* Length of the next word; "[default: ...]" stays together where it fits a line. */
static size_t next_word(const char *text, size_t indent) {
    size_t bracket = *text == '[' ? strcspn(text, "]\n") : 0;
    if (bracket > 0 && text[bracket] == ']' && indent + bracket + 1 <= HELP_COLUMNS)
        return bracket + 1;
    return strcspn(text, " \n");
}

void cli_print_wrapped(const char *text, size_t column, size_t indent) {
    while (*text != '\0') {
        size_t word = next_word(text, indent);
        if (column > indent && column + 1 + word > HELP_COLUMNS) {
            printf("\n%*s", (int)indent, "");
            column = indent;
        } else if (column > indent) {
            putchar(' ');
            column++;
        }
        cli_show(presto_span_of(text, word));
        column += word;
        text += word;
        if (*text == '\n') {
            printf("\n%*s", (int)indent, "");
            column = indent;
        }
        text += strspn(text, " \n");
    }
    putchar('\n');
}

/* What the field of `row` has, as the command line would say it. */
static void format_field(const cli_option *row, const char *job, char text[PRESTO_TEXT_BYTES]) {
    const void *place = job + row->at;
    const cli_value *value = row->values;
    switch (row->kind) {
    case CLI_KIND_SIZE:
        presto_format_size(get_number(row, place), text);
        break;
    case CLI_KIND_FRACTION:
    case CLI_KIND_TIME:
        snprintf(text, PRESTO_TEXT_BYTES, "%g", *(const double *)place);
        break;
    case CLI_KIND_TEXT:
    case CLI_KIND_PATH:
        snprintf(text, PRESTO_TEXT_BYTES, "%s", *(const char *const *)place);
        break;
    case CLI_KIND_CHOICE:
        while (value->name != NULL && (uint64_t)value->value != get_number(row, place))
            value++;
        snprintf(text, PRESTO_TEXT_BYTES, "%s", value->name != NULL ? value->name : "?");
        break;
    case CLI_KIND_FLAG:
    case CLI_KIND_NUMBER:
    case CLI_KIND_GROUP:
    case CLI_KIND_SPECIAL:
        snprintf(text, PRESTO_TEXT_BYTES, "%ju", (uintmax_t)get_number(row, place));
        break;
    }
}

void cli_row_help(const cli_option *row, char *text, size_t room) {
    if (row->tell != NULL)
        row->tell(text, room);
    else
        snprintf(text, room, "%s", row->help);
}

const char *cli_row_default(const cli_option *row, const char *job, char *room) {
    if (row->fallback != CLI_FIELD)
        return row->fallback;
    format_field(row, job, room);
    return room;
}

static void print_option(const cli_option *row, const char *job) {
    char left[HELP_COLUMNS], told[HELP_BYTES], help[HELP_BYTES + 128], number[PRESTO_TEXT_BYTES];
    int used = row->letter != 0 ? snprintf(left, sizeof left, "  -%c, --%s", row->letter, row->name)
                                : snprintf(left, sizeof left, "      --%s", row->name);
    size_t width = (size_t)used;
    if (row->argument != NULL)
        width += (size_t)snprintf(left + width, sizeof left - width, " %s", row->argument);
    fputs(left, stdout);
    if (width + 2 > HELP_INDENT)
        printf("\n%*s", HELP_INDENT, "");
    else
        printf("%*s", (int)(HELP_INDENT - width), "");
    const char *fallback = cli_row_default(row, job, number);
    cli_row_help(row, told, sizeof told);
    snprintf(help, sizeof help, "%s%s%s%s", told, fallback != NULL ? " [default: " : "",
             fallback != NULL ? fallback : "", fallback != NULL ? "]" : "");
    cli_print_wrapped(help, HELP_INDENT, HELP_INDENT);
}

static void print_pipelines(void) {
    char text[1024] = "Built-in pipelines:";
    size_t used = strlen(text);
    const char *name;
    for (size_t i = 0; (name = presto_pipeline_builtin_at(i)) != NULL && used < sizeof text; i++)
        used += (size_t)snprintf(text + used, sizeof text - used, "%s %s", i == 0 ? "" : ",", name);
    putchar('\n');
    cli_print_wrapped(text, 0, 0);
    puts("A pipeline whose source makes its samples (synthetic) takes no SOURCE.");
}

/* A row whose parts do not go together, or that has another one's name. Whoever asks for --help
 * looks for one: tests do, of each program. */
static bool is_wrong(const cli_option *row) {
    bool takes_text = row->kind != CLI_KIND_FLAG && row->kind != CLI_KIND_GROUP;
    bool has_number = row->kind == CLI_KIND_NUMBER || row->kind == CLI_KIND_FRACTION;
    bool is_shown = takes_text && row->kind != CLI_KIND_SPECIAL;
    for (const cli_option *other = program->options; is_option(row) && other < row; other++)
        if (is_option(other) && (strcmp(other->name, row->name) == 0 ||
                                 (row->letter != 0 && other->letter == row->letter)))
            return true;
    return (row->kind != CLI_KIND_SPECIAL && takes_text != (row->argument != NULL)) ||
           (has_number && row->least > row->most) ||
           (is_option(row) && (row->help != NULL) == (row->tell != NULL)) ||
           (row->fallback == CLI_FIELD && !is_shown);
}

void *cli_default_job(void) {
    void *job = calloc(1, program->job_bytes);
    if (job == NULL) {
        cli_message("out of memory");
        exit(CLI_FAILED);
    }
    if (program->defaults != NULL)
        program->defaults(job);
    return job;
}

/* Notes, exit codes, example. */
static void print_end(void) {
    char exits[HELP_BYTES] = "Exit:";
    size_t used = strlen(exits);
    for (int code = 0; code <= program->most_exit; code++)
        used += (size_t)snprintf(exits + used, sizeof exits - used, "%s %d %s", code > 0 ? "," : "",
                                 code, cli_exit_brief(code));
    snprintf(exits + used, sizeof exits - used, ".");
    putchar('\n');
    if (program->notes != NULL)
        puts(program->notes);
    cli_print_wrapped(exits, 0, 0);
    if (program->exit_note != NULL)
        puts(program->exit_note);
    printf("\nExample: %s\n", program->example);
}

void cli_read_help(const char *option, const char *text, void *place, void *beside) {
    (void)option, (void)text, (void)place, (void)beside;
    const char *prefix = "Usage:";
    for (const char *line = program->usage; *line != '\0';) {
        size_t length = strcspn(line, "\n");
        printf("%s %s %.*s\n", prefix, program->name, (int)length, line);
        line += length + (line[length] == '\n');
        prefix = "      ";
    }
    cli_print_wrapped(program->summary, 0, 0);
    /* The job may have been changed by options before this one. */
    char *job = cli_default_job();
    for (const cli_option *row = program->options; row->name != NULL; row++) {
        if (is_wrong(row)) {
            cli_message("--%s: its row in the table of options is wrong", row->name);
            abort();
        }
        if (is_option(row))
            print_option(row, job);
        else
            printf("\n%s:\n", row->name);
    }
    free(job);
    if (cli_has_option("pipeline"))
        print_pipelines();
    print_end();
    exit(cli_close_stdout(CLI_DONE));
}

void cli_read_version(const char *option, const char *text, void *place, void *beside) {
    (void)option, (void)text, (void)place, (void)beside;
    printf("%s (Presto) %s\n", program->name, presto_version());
    exit(cli_close_stdout(CLI_DONE));
}

/* ---- the command line ---- */

/* If a standard stream is closed, the next opened file would get its number, and messages would
 * go into a shard. What is opened here instead refuses reads and writes, like a closed stream. */
static void occupy_standard_streams(void) {
    for (int file = STDIN_FILENO; file <= STDERR_FILENO; file++)
        if (fcntl(file, F_GETFD) == -1 && errno == EBADF)
            (void)open("/dev/null", file == STDIN_FILENO ? O_WRONLY : O_RDONLY);
}

void cli_start(const cli_program *self) {
    program = self;
    occupy_standard_streams();
    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN);
}

/* Once, however often the option is given. */
static void tell_old_name(const cli_option *row) {
    if (!is_given[row - program->options])
        cli_message("note: --%s is now called --%s; the old name will go", row->was, row->name);
}

static void make_getopt_tables(struct option longs[MAX_OPTIONS], char *letters) {
    size_t count = 0;
    *letters++ = ':'; /* reports missing arguments separately; getopt prints nothing itself */
    for (const cli_option *row = program->options; row->name != NULL; row++) {
        if (!is_option(row))
            continue;
        int argument = row->argument != NULL ? required_argument : no_argument;
        assert(count < MAX_OPTIONS - 1);
        longs[count++] =
            (struct option){row->name, argument, NULL, FIRST_ROW + (int)(row - program->options)};
        if (row->letter != 0) {
            *letters++ = row->letter;
            if (row->argument != NULL)
                *letters++ = ':';
        }
    }
    for (const cli_option *row = program->options; row->name != NULL; row++)
        if (is_option(row) && row->was != NULL) {
            assert(count < MAX_OPTIONS - 1);
            longs[count++] =
                (struct option){row->was, row->argument != NULL ? required_argument : no_argument,
                                NULL, FIRST_OLD_NAME + (int)(row - program->options)};
        }
    *letters = '\0';
    memset(&longs[count], 0, sizeof longs[count]);
}

/* `word` (--NAME or --NAME=...) is no option; say which one was probably meant. */
static _Noreturn void refuse_name(const char *word, size_t length) {
    const char *names[MAX_OPTIONS];
    char name[64];
    size_t count = 0;
    for (const cli_option *row = program->options; row->name != NULL; row++)
        if (is_option(row))
            names[count++] = row->name;
    names[count] = NULL;
    snprintf(name, sizeof name, "%.*s", (int)(length - 2), word + 2);
    const char *near = presto_text_nearest(name, names);
    cli_usage("unknown option '%.*s'%s%s%s", (int)length, word,
              near != NULL ? ", did you mean '--" : "", near != NULL ? near : "",
              near != NULL ? "'?" : "");
}

/* getopt's '?': unknown, ambiguous, or an argument where none belongs. */
static _Noreturn void refuse_option(char **argv) {
    const char *word = argv[optind - 1];
    if (optopt >= FIRST_OLD_NAME)
        optopt -= MAX_OPTIONS;
    if (optopt >= FIRST_ROW)
        cli_usage("option '--%s' takes no argument", program->options[optopt - FIRST_ROW].name);
    if (optopt != 0)
        cli_usage("unknown option '-%c'", optopt);
    size_t length = strcspn(word, "=");
    size_t hits = 0;
    for (const cli_option *row = program->options; row->name != NULL; row++)
        if (is_option(row) && length > 2 && strncmp(row->name, word + 2, length - 2) == 0)
            hits++;
    if (hits > 1)
        cli_usage("ambiguous option '%.*s'", (int)length, word);
    refuse_name(word, length);
}

void cli_parse(int argc, char **argv, void *job) {
    struct option longs[MAX_OPTIONS];
    char letters[2 * MAX_OPTIONS + 2];
    if (argc > 1 && strcmp(argv[1], "--print-page") == 0)
        cli_print_page(program, argc - 2, argv + 2);
    if (program->defaults != NULL)
        program->defaults(job);
    make_getopt_tables(longs, letters);
    opterr = 0;
    for (int found; (found = getopt_long(argc, argv, letters, longs, NULL)) != -1;) {
        if (found == ':')
            cli_usage("option '%s' needs an argument", argv[optind - 1]);
        if (found == '?')
            refuse_option(argv);
        bool is_old = found >= FIRST_OLD_NAME;
        if (is_old)
            found -= MAX_OPTIONS;
        const cli_option *row =
            found < FIRST_ROW ? find_letter(found) : &program->options[found - FIRST_ROW];
        if (is_old)
            tell_old_name(row);
        is_given[row - program->options] = true;
        read_argument(row, optarg, job);
    }
}

void cli_check_command(unsigned command, const char *name) {
    for (const cli_option *row = program->options; row->name != NULL; row++)
        if (is_given[row - program->options] && row->commands != 0 && !(row->commands & command))
            cli_usage("--%s does not go with %s", row->name, name);
}

void cli_check_operands(int argc, char **argv, int least, int most, const char *what) {
    int count = argc - optind;
    if (count < least)
        cli_usage("%s is missing", what);
    if (count > most)
        cli_usage("too many arguments: %s, at most %d", what, most);
    for (int i = optind; i < argc; i++)
        if (argv[i][0] == '\0')
            cli_usage("%s is empty", what);
}
