/* SPDX-License-Identifier: Apache-2.0 */
/* A table of options with each kind: what a command line sets, and what is refused. */
#include "presto_check.h"

#include <getopt.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/cli.h"

typedef enum colour { RED = 3, GREEN = 5 } colour;

typedef struct made {
    bool quiet, json, is_flag, has_natural, is_fast;
    int whole;
    unsigned natural;
    uint64_t large;
    size_t bytes;
    double fraction, seconds, counted;
    const char *text, *path;
    colour colour;
    char special[64];
    const char *beside;
} made;

static void set_defaults(void *job) {
    made *m = job;
    m->whole = 7;
    m->bytes = (size_t)3 << 20;
    m->fraction = 0.25;
    m->colour = GREEN;
    m->path = "here";
}

static void read_special(const char *option, const char *text, void *place, void *beside) {
    snprintf(place, 64, "%s is %s", option, text);
    *(const char **)beside = text;
}

static const cli_value colours[] = {{"red", RED}, {"green", GREEN}, {NULL, 0}};
static const cli_value speeds[] = {{"slow", false}, {"fast", true}, {NULL, 0}};

static const cli_option options[] = {
    CLI_GROUP("Kinds"),
    {'f', "flag", NULL, "a flag", NULL, CLI_FLAG(made, is_flag)},
    {0, "red", NULL, "a flag for a value", NULL, CLI_FLAG_OF(made, colour, RED)},
    {'w', "whole", "N", "an int", CLI_FIELD, CLI_NUMBER(made, whole, 1, INT_MAX)},
    {0, "natural", "N", "an unsigned", "none", CLI_NUMBER(made, natural, 0, UINT_MAX),
     CLI_GIVEN(made, has_natural)},
    {0, "large", "N", "64 bits", NULL, CLI_NUMBER(made, large, 2, UINT64_MAX)},
    {0, "counted", "N", "a whole number as a double", NULL, CLI_NUMBER(made, counted, 1, 9)},
    {0, "bytes", "SIZE", "a size", CLI_FIELD, CLI_SIZE(made, bytes, 1)},
    {0, "fraction", "X", "a fraction", CLI_FIELD, CLI_FRACTION(made, fraction, 0, 2)},
    {0, "seconds", "TIME", "a time", NULL, CLI_TIME(made, seconds)},
    {0, "text", "TEXT", "a text", NULL, CLI_TEXT(made, text)},
    {0, "path", "PATH", "a path", CLI_FIELD, CLI_PATH(made, path)},
    {0, "colour", "NAME", "an enum", CLI_FIELD, CLI_CHOICE(made, colour, colours), .commands = 1},
    {0, "speed", "NAME", "a bool", CLI_FIELD, CLI_CHOICE(made, is_fast, speeds), .commands = 2},
    {0, "special", "IT", "special", NULL, CLI_SPECIAL2(made, special, beside, read_special)},
    CLI_COMMON_OPTIONS(made, "JSON", 0),
};

static const char *const commands[] = {"make", "break", NULL};

static const cli_program self = {"made",
                                 "[OPTIONS]",
                                 "A program for this test.",
                                 options,
                                 NULL,
                                 sizeof(made),
                                 set_defaults,
                                 .example = "made",
                                 .most_exit = CLI_USAGE,
                                 .commands = commands};

/* The options that `line`, of words with a blank between them, sets. */
static made parse(char *line) {
    char *words[32] = {line};
    int count = 1;
    for (char *word = strtok(line, " "); word != NULL; word = strtok(NULL, " "))
        words[count++] = word;
    made m = {0};
    cli_start(&self);
    cli_parse(count, words, &m);
    return m;
}

/* What is printed, on stdout and stderr, when another process parses `line` for the command. */
static void check_output(const char *line, unsigned command, int code, const char *wanted) {
    int ends[2], status;
    char text[8192] = "", copy[256];
    size_t bytes = 0;
    snprintf(copy, sizeof copy, "%s", line);
    ck_assert_int_eq(pipe(ends), 0);
    pid_t child = fork();
    if (child == 0) {
        dup2(ends[1], STDOUT_FILENO);
        dup2(ends[1], STDERR_FILENO);
        close(ends[0]);
        (void)parse(copy);
        cli_check_command(command, "it");
        _exit(99);
    }
    close(ends[1]);
    for (ssize_t got; (got = read(ends[0], text + bytes, sizeof text - 1 - bytes)) > 0;)
        bytes += (size_t)got;
    close(ends[0]);
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_msg(WIFEXITED(status) && WEXITSTATUS(status) == code, "%s: status %d: %s", line,
                  status, text);
    ck_assert_msg(strstr(text, wanted) != NULL, "%s: no '%s' in '%s'", line, wanted, text);
}

START_TEST(options_that_are_not_given_keep_their_defaults) {
    char line[] = "";
    made m = parse(line);
    ck_assert(!m.is_flag && !m.has_natural && !m.quiet && !m.json && !m.is_fast);
    ck_assert_int_eq(m.whole, 7);
    ck_assert_int_eq((int)m.colour, GREEN);
    ck_assert_str_eq(m.path, "here");
    ck_assert_int_eq(optind, 1);
}
END_TEST

START_TEST(each_kind_sets_its_field) {
    char line[] = "-fw 2147483647 --natural 4294967295 --large=18446744073709551615 --counted 9 "
                  "--bytes 64KiB --fraction 1.5 --seconds 2min --text x --path y --colour red "
                  "--speed fast --special z -q --json operand";
    made m = parse(line);
    ck_assert(m.is_flag && m.quiet && m.json && m.has_natural && m.is_fast);
    ck_assert_int_eq(m.whole, INT_MAX);
    ck_assert_uint_eq(m.natural, UINT_MAX);
    ck_assert_uint_eq(m.large, UINT64_MAX);
    ck_assert(m.counted == 9 && m.fraction == 1.5 && m.seconds == 120);
    ck_assert_uint_eq(m.bytes, 64 << 10);
    ck_assert_str_eq(m.text, "x");
    ck_assert_str_eq(m.path, "y");
    ck_assert_int_eq((int)m.colour, RED);
    ck_assert_str_eq(m.special, "--special is z");
    ck_assert_str_eq(m.beside, "z");
}
END_TEST

START_TEST(the_last_one_counts_and_a_flag_may_set_a_value) {
    char line[] = "--whole 1 --wh 2 --colour green --red";
    made m = parse(line);
    ck_assert_int_eq(m.whole, 2);
    ck_assert_int_eq((int)m.colour, RED);
}
END_TEST

START_TEST(what_is_out_of_range_is_refused_with_the_range) {
    static const char *const cases[][2] = {
        {"-w 0", "made: --whole: '0' is not a number from 1 to 2147483647\n"},
        {"-w 2147483648", "--whole: '2147483648' is not a number from 1 to 2147483647"},
        {"--natural 4294967296", "from 0 to 4294967295"},
        {"--large 1", "--large: '1' is not a number from 2 up"},
        {"--counted 10", "from 1 to 9"},
        {"--bytes 0", "out of range, from 1 byte up"},
        {"--bytes 1K", "ambiguous; write 1KiB"},
        {"--fraction 2.1", "--fraction: '2.1' is not a number from 0 to 2"},
        {"--seconds 0", "must be above 0"},
        {"--path=", "--path: the name is empty"},
        {"--colour rde", "--colour: 'rde' is not one of red, green; did you mean 'red'?"},
        {"--speed x", "--speed: 'x' is not one of slow, fast\n"},
        {"--natur 1 --text", "option '--text' needs an argument"},
        {"--flag=1", "option '--flag' takes no argument"},
        {"--f", "ambiguous option '--f'"},
        {"--colur red", "unknown option '--colur', did you mean '--colour'?"},
        {"-z", "unknown option '-z'"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        check_output(cases[i][0], 1, CLI_USAGE, cases[i][1]);
}
END_TEST

START_TEST(an_option_of_another_command_is_refused) {
    check_output("--colour red", 1, 99, "");
    check_output("--speed fast --flag", 1, CLI_USAGE, "made: --speed does not go with it\n");
}
END_TEST

START_TEST(help_is_the_table) {
    static const char *const lines[] = {"Usage: made [OPTIONS]\nA program for this test.\n",
                                        "\nKinds:\n  -f, --flag                a flag\n",
                                        "  -w, --whole N             an int [default: 7]\n",
                                        "      --natural N           an unsigned [default: none]\n",
                                        "      --large N             64 bits\n",
                                        "      --bytes SIZE          a size [default: 3MiB]\n",
                                        "      --fraction X          a fraction [default: 0.25]\n",
                                        "      --path PATH           a path [default: here]\n",
                                        "      --colour NAME         an enum [default: green]\n",
                                        "      --speed NAME          a bool [default: slow]\n",
                                        "\nCommon:\n  -q, --quiet ",
                                        "\nExample: made\n"};
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++)
        check_output("-w 9 --bytes 1 --help", 1, CLI_DONE, lines[i]);
}
END_TEST

int main(void) {
    const TTest *const tests[] = {options_that_are_not_given_keep_their_defaults,
                                  each_kind_sets_its_field,
                                  the_last_one_counts_and_a_flag_may_set_a_value,
                                  what_is_out_of_range_is_refused_with_the_range,
                                  an_option_of_another_command_is_refused,
                                  help_is_the_table};
    return presto_check_main("options", tests, sizeof tests / sizeof tests[0], 30);
}
