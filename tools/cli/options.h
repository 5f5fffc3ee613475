/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The options of a program, as one table: a row says how an option is called, what its argument may
 * be, and which field of the program's options it sets. The command line is read from the table,
 * and --help is printed from it.
 *
 *     static const cli_option options[] = {
 *         CLI_GROUP("Order"),
 *         {'e', "epochs", "N", "passes over the data", CLI_FIELD,
 *          CLI_NUMBER(load, loader.range.epochs, 1, UINT64_MAX)},
 *         CLI_COMMON_OPTIONS(load, "print the figures on stdout", 0),
 *     };
 *
 * The last macro of a row is the kind of its argument. It names the struct and the field: a field of
 * a type that the kind does not fit, or that cannot hold the largest number, does not compile. Rows
 * that several programs have are in shared_options.h.
 */
#ifndef PRESTO_TOOLS_OPTIONS_H
#define PRESTO_TOOLS_OPTIONS_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ---- rows ---- */

typedef enum cli_kind {
    CLI_KIND_GROUP,    /* `name` is a heading in --help */
    CLI_KIND_FLAG,     /* no argument: the field gets `value` */
    CLI_KIND_NUMBER,   /* a whole number from `least` to `most` */
    CLI_KIND_SIZE,     /* bytes from `least` up; KiB, MiB, GiB, TiB */
    CLI_KIND_FRACTION, /* a decimal fraction from `least` to `most` */
    CLI_KIND_TIME,     /* a time above 0, in seconds; s, min, h */
    CLI_KIND_TEXT,     /* any text; borrowed from the command line, as is a path */
    CLI_KIND_PATH,     /* a text that is not empty */
    CLI_KIND_CHOICE,   /* a name of `values` */
    CLI_KIND_SPECIAL   /* what `read` makes of it */
} cli_kind;

/** The type of a field that an option sets. */
typedef enum cli_type {
    CLI_TYPE_NONE, /* special */
    CLI_TYPE_BOOL,
    CLI_TYPE_INT, /* also an enum */
    CLI_TYPE_UNSIGNED,
    CLI_TYPE_UNSIGNED64,
    CLI_TYPE_REAL,
    CLI_TYPE_TEXT
} cli_type;

/** A name that an argument may be, and what the field gets for it. A list ends with NULL. */
typedef struct cli_value {
    const char *name;
    int value;
} cli_value;

/**
 * Reads the argument `text` (NULL: the option takes none) of `option`, such as "--cache", into
 * `place` and `beside`, which are fields of the row. What is wrong ends the program: cli_usage().
 */
typedef void cli_read(const char *option, const char *text, void *place, void *beside);

/** Writes the help of an option, where it comes from another table. */
typedef void cli_tell(char *help, size_t room);

/** The i-th word that an argument may be; NULL: there are no more. */
typedef const char *cli_word_at(size_t i);

typedef struct cli_option {
    char letter;          /* 0: none */
    const char *name;     /* without the dashes; NULL ends the table */
    const char *argument; /* what --help calls it; NULL: takes none */
    const char *help;     /* wrapped by --help. NULL: what `tell` writes */
    const char *fallback; /* --help's default; CLI_FIELD: what the field has; NULL: says nothing */
    cli_kind kind;
    cli_type type;
    size_t at, beside; /* offsets in the program's options */
    uint64_t least, most;
    int value;
    const cli_value *values;
    cli_read *read;
    size_t given;      /* 1 + offset of a bool that becomes true if the option is given; 0: none */
    const char *was;   /* an older name, which is accepted with a note; NULL: none */
    unsigned commands; /* bits of the program's commands that it goes with; 0: all */
    cli_tell *tell;
    const char *words;    /* what the argument may be, with | between; CLI_WORDS */
    cli_word_at *word_at; /* likewise, from a table of the library; NULL: no further words */
} cli_option;

/* The default that --help says is what cli_program.defaults leaves in the field. */
extern const char CLI_FIELD[];

#define CLI_FIELD_OF(job, field) (((job *)0)->field)
/* clang-format off */
#define CLI_TYPE_OF(value)                                                                         \
    _Generic((value),                                                                              \
        bool: CLI_TYPE_BOOL,                                                                       \
        int: CLI_TYPE_INT,                                                                         \
        unsigned: CLI_TYPE_UNSIGNED,                                                               \
        unsigned long: CLI_TYPE_UNSIGNED64,                                                        \
        unsigned long long: CLI_TYPE_UNSIGNED64,                                                   \
        double: CLI_TYPE_REAL,                                                                     \
        const char *: CLI_TYPE_TEXT)
/* The largest whole number that a field of this type can hold. */
#define CLI_MOST_OF(value)                                                                         \
    _Generic((value),                                                                              \
        int: INT_MAX,                                                                              \
        unsigned: UINT_MAX,                                                                        \
        unsigned long: ULONG_MAX,                                                                  \
        unsigned long long: ULLONG_MAX,                                                            \
        double: (uint64_t)1 << 53)
/* clang-format on */
/* A type that only a true condition lets compile; of size 1. */
#define CLI_REQUIRE(condition)                                                                     \
    sizeof(struct {                                                                                \
        _Static_assert(condition, "the field cannot hold what the option takes");                  \
        char unused;                                                                               \
    })
#define CLI_IS(value, wanted) CLI_REQUIRE(CLI_TYPE_OF(value) == (wanted))
#define CLI_AT(job, field) .type = CLI_TYPE_OF(CLI_FIELD_OF(job, field)), .at = offsetof(job, field)

/* ---- the kinds: the last entry of a row, for `field` of the struct `job` ---- */

#define CLI_FLAG(job, field) .kind = CLI_KIND_FLAG, CLI_AT(job, field), .value = 1
#define CLI_FLAG_OF(job, field, set_to) .kind = CLI_KIND_FLAG, CLI_AT(job, field), .value = (set_to)
#define CLI_NUMBER(job, field, from, to)                                                           \
    .kind = CLI_KIND_NUMBER, CLI_AT(job, field), .least = (from),                                  \
    .most = (to) + 0 * CLI_REQUIRE((to) <= CLI_MOST_OF(CLI_FIELD_OF(job, field)))
#define CLI_SIZE(job, field, from)                                                                 \
    .kind = CLI_KIND_SIZE, CLI_AT(job, field),                                                     \
    .least = (from) + 0 * CLI_IS(CLI_FIELD_OF(job, field), CLI_TYPE_UNSIGNED64)
/* To UINT64_MAX: without end. */
#define CLI_FRACTION(job, field, from, to)                                                         \
    .kind = CLI_KIND_FRACTION, CLI_AT(job, field), .least = (from),                                \
    .most = (to) + 0 * CLI_IS(CLI_FIELD_OF(job, field), CLI_TYPE_REAL)
#define CLI_TIME(job, field)                                                                       \
    .kind = CLI_KIND_TIME, CLI_AT(job, field),                                                     \
    .least = 0 * CLI_IS(CLI_FIELD_OF(job, field), CLI_TYPE_REAL)
#define CLI_TEXT(job, field)                                                                       \
    .kind = CLI_KIND_TEXT, CLI_AT(job, field),                                                     \
    .least = 0 * CLI_IS(CLI_FIELD_OF(job, field), CLI_TYPE_TEXT)
#define CLI_PATH(job, field)                                                                       \
    .kind = CLI_KIND_PATH, CLI_AT(job, field),                                                     \
    .least = 0 * CLI_IS(CLI_FIELD_OF(job, field), CLI_TYPE_TEXT)
#define CLI_CHOICE(job, field, list)                                                               \
    .kind = CLI_KIND_CHOICE, CLI_AT(job, field), .values = (list),                                 \
    .least = 0 * CLI_REQUIRE(CLI_TYPE_OF(CLI_FIELD_OF(job, field)) <= CLI_TYPE_UNSIGNED)
/* For `read`, whose `place` is this field; with another one as `beside`; all of the options. */
#define CLI_SPECIAL(job, field, reader)                                                            \
    .kind = CLI_KIND_SPECIAL, .at = offsetof(job, field), .read = (reader)
#define CLI_SPECIAL2(job, field, other, reader)                                                    \
    CLI_SPECIAL(job, field, reader), .beside = offsetof(job, other)
#define CLI_SPECIAL_OF_ALL(reader) .kind = CLI_KIND_SPECIAL, .read = (reader)

/* May follow the kind: the option was called so in the version before. */
#define CLI_WAS(name) .was = (name)
/* May follow the kind: --help says what `teller` writes. */
#define CLI_TELL(teller) .tell = (teller)
/*
 * May follow the kind: words that shells complete, such as "none|full|buffer:"; one that ends with a
 * colon is only the start of an argument. Words that `argument` has in lower case (none|keep:DIR) and
 * those of a choice are known without.
 */
#define CLI_WORDS(list) .words = (list)
/* Likewise, those of a table: CLI_WORDS_OF(presto_pipeline_builtin_at). */
#define CLI_WORDS_OF(function) .word_at = (function)
/* May follow the kind: `field` becomes true if the option is given. */
#define CLI_GIVEN(job, field)                                                                      \
    .given = 1 + offsetof(job, field) + 0 * CLI_IS(CLI_FIELD_OF(job, field), CLI_TYPE_BOOL)

/* ---- rows that every program has ---- */

#define CLI_GROUP(title)                                                                           \
    { .name = (title) }

/* The end of each table. The struct has the fields `quiet` and `json`. */
#define CLI_COMMON_OPTIONS(job, json_help, json_commands)                                          \
    CLI_GROUP("Common"),                                                                           \
        {'q', "quiet", NULL, "no progress, no closing line", NULL, CLI_FLAG(job, quiet)},          \
        {0, "json", NULL, (json_help), NULL, CLI_FLAG(job, json), .commands = (json_commands)},    \
        {'h', "help", NULL, "print this text", NULL, CLI_SPECIAL_OF_ALL(cli_read_help)},           \
        {'V', "version", NULL, "print the version", NULL, CLI_SPECIAL_OF_ALL(cli_read_version)}, { \
        0                                                                                          \
    }
cli_read cli_read_help, cli_read_version;

/* ---- the program ---- */

typedef struct cli_program {
    const char *name;
    const char *usage;   /* operands after the name; a line each */
    const char *summary; /* what it does, wrapped */
    const cli_option *options;
    const char *notes; /* after the options, a line each; NULL: none */
    size_t job_bytes;  /* of the struct that the table's fields are in */
    /** Set the defaults in `job`, which is zeroed. It acquires nothing. NULL: all are 0. */
    void (*defaults)(void *job);
    const char *example;   /* a command */
    int most_exit;         /* exit codes are 0 to this one */
    const char *exit_note; /* a further line about them; NULL: none */
    const char *const
        *commands; /* first operands that say what to do; ends with NULL. NULL: none */
} cli_program;

/**
 * Say which program this is. From here on SIGPIPE and SIGXFSZ are ignored (writes report EPIPE and
 * EFBIG instead), and no file gets the number of a standard stream.
 */
void cli_start(const cli_program *program);

/**
 * Set the defaults in `job`, which is zeroed, then what the command line says. The operands start at
 * argv[optind]. Prints --help and --version; a wrong option ends the program with a usage error.
 */
void cli_parse(int argc, char **argv, void *job);

/** Usage error if an option was given that does not go with the command of this bit. */
void cli_check_command(unsigned command, const char *name);

/** Usage error unless there are `least` to `most` operands, none of them empty; they are `what`. */
void cli_check_operands(int argc, char **argv, int least, int most, const char *what);

/* ---- arguments, for what is special: an invalid one is a usage error ---- */

uint64_t cli_number(const char *option, const char *text, uint64_t least, uint64_t most);
uint64_t cli_size(const char *option, const char *text, uint64_t least);
double cli_seconds(const char *option, const char *text);
double cli_fraction(const char *option, const char *text, double least, double most);
/** Position of `text` in the NULL-terminated `choices`. */
size_t cli_choice(const char *option, const char *text, const char *const *choices);
/** A name of a file or folder: not empty. */
const char *cli_path(const char *option, const char *text);
/** A comma-separated list of non-empty texts; *list_out is one allocation, to be freed. */
size_t cli_list(const char *option, const char *text, char ***list_out);

#endif
