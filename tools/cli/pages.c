/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program's table of options as roff, for man, and as completions for bash, zsh and fish.
 *
 * The prose of a manual page is in a template (docs/man/): lines such as "@options@" are replaced by
 * what the table says. Completions know options, the words that an argument may be, and whether it
 * is a file or a folder; that is read from what --help calls the argument (FILE, DIR, none|keep).
 */
#include "pages.h"

#include <assert.h>
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"

enum { MOST_WORDS = 160, WORD_BYTES = 64, LINE_COLUMNS = 78, HELP_BYTES = 1024, BRIEF_BYTES = 72 };

static bool is_row(const cli_option *row) {
    return row->kind != CLI_KIND_GROUP;
}

/* ---- what an argument may be ---- */

typedef enum fill { FILL_NOTHING, FILL_FILES, FILL_FOLDERS } fill;

typedef struct word_list {
    char words[MOST_WORDS][WORD_BYTES];
    size_t count;
    fill fill;       /* beside the words */
    bool is_list;    /* several of them, with commas between */
    bool has_starts; /* a word is the start of an argument only */
} word_list;

static bool is_start(const char *word) {
    return word[strlen(word) - 1] == ':';
}

static void add_word(word_list *list, const char *word, size_t length) {
    assert(list->count < MOST_WORDS && length > 0 && length < WORD_BYTES);
    for (size_t i = 0; i < list->count; i++)
        if (strlen(list->words[i]) == length && memcmp(list->words[i], word, length) == 0)
            return;
    memcpy(list->words[list->count], word, length);
    list->words[list->count][length] = '\0';
    list->has_starts = list->has_starts || is_start(list->words[list->count]);
    /* So they need no quotes in any shell. */
    assert(strspn(list->words[list->count],
                  "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.:+") == length);
    list->count++;
}

/* The words of a text with | between. Of an alternative such as keep:DIR, its start. */
static void add_alternatives(word_list *list, const char *text) {
    while (*text != '\0') {
        size_t length = strcspn(text, "|"), lower = 0;
        while (lower < length && !isupper((unsigned char)text[lower]))
            lower++;
        if (lower == length || (lower > 0 && text[lower - 1] == ':'))
            add_word(list, text, lower);
        text += length + (text[length] == '|');
    }
}

static word_list list_words(const cli_option *row) {
    word_list list = {.is_list = strstr(row->argument, ",...") != NULL};
    const char *word;
    if (row->words != NULL)
        add_alternatives(&list, row->words);
    for (size_t i = 0; row->word_at != NULL && (word = row->word_at(i)) != NULL; i++)
        add_word(&list, word, strlen(word));
    for (const cli_value *value = row->values; value != NULL && value->name != NULL; value++)
        add_word(&list, value->name, strlen(value->name));
    if (!list.is_list && strchr(row->argument, '|') != NULL)
        add_alternatives(&list, row->argument);
    if (strstr(row->argument, "FILE") != NULL || strstr(row->argument, "PATH") != NULL ||
        strstr(row->argument, "DATASET") != NULL)
        list.fill = FILL_FILES;
    else if (strstr(row->argument, "DIR") != NULL)
        list.fill = FILL_FOLDERS;
    return list;
}

static void print_words(const word_list *list) {
    for (size_t i = 0; i < list->count; i++)
        printf("%s%s", i > 0 ? " " : "", list->words[i]);
}

/* Has the program operands? The last word of a line of its usage is one, unless it follows an
 * option (-o DIR). */
static bool takes_operands(const cli_program *program) {
    for (const char *line = program->usage; *line != '\0';) {
        size_t length = strcspn(line, "\n"), start = length, before;
        while (start > 0 && line[start - 1] != ' ')
            start--;
        for (before = start > 0 ? start - 1 : 0; before > 0 && line[before - 1] != ' ';)
            before--;
        if (start == 0 || line[before] != '-')
            return true;
        line += length + (line[length] == '\n');
    }
    return false;
}

/* What a row is for, in a few words: the first clause of its help. */
static void brief_help(const cli_option *row, char text[HELP_BYTES]) {
    static const char *const ends[] = {"; ", ". ", ": ", " (", " [", ", e.g."};
    cli_row_help(row, text, HELP_BYTES);
    for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++) {
        char *end = strstr(text, ends[i]);
        if (end != NULL && end > text)
            *end = '\0';
    }
    size_t length = strlen(text);
    if (length <= BRIEF_BYTES)
        return;
    for (length = BRIEF_BYTES; length > 0 && text[length] != ' ';)
        length--;
    snprintf(text + length, HELP_BYTES - length, " ...");
}

/* The name of a shell's function of this program, without its dashes. */
static void function_name(const cli_program *program, char name[WORD_BYTES]) {
    snprintf(name, WORD_BYTES, "_%s", program->name);
    for (char *c = name; *c != '\0'; c++)
        if (*c == '-')
            *c = '_';
}

/* ---- man ---- */

/* One word of running text in roff. Hyphens stay what they are, so that words may be copied. */
static void print_roff(const char *word, size_t length) {
    if (length > 0 && (word[0] == '.' || word[0] == '\''))
        fputs("\\&", stdout);
    for (size_t i = 0; i < length; i++) {
        if (word[i] == '\\')
            fputs("\\e", stdout);
        else if (word[i] == '-')
            fputs("\\-", stdout);
        else
            putchar(word[i]);
    }
}

/* Running text: a line for each sentence, and none longer than LINE_COLUMNS. */
static void print_text(const char *text) {
    size_t column = 0;
    while (*text != '\0') {
        size_t length = strcspn(text, " \n");
        const char *next = text + length + strspn(text + length, " \n");
        bool ends = length > 1 && text[length - 1] == '.' && text[length - 2] != '.' &&
                    (*next == '\0' || isupper((unsigned char)*next));
        if (column > 0 && column + 1 + length > LINE_COLUMNS) {
            putchar('\n');
            column = 0;
        }
        if (column > 0)
            putchar(' ');
        print_roff(text, length);
        column += 1 + length;
        if (length > 0 && text[length - 1] == '.' && !ends)
            fputs("\\&", stdout);
        if (ends) {
            putchar('\n');
            column = 0;
        }
        text = next;
    }
    if (column > 0)
        putchar('\n');
}

/* An argument of a macro, which must not be taken for a macro. */
static void print_argument(const char *text, size_t length) {
    putchar('"');
    fputs("\\&", stdout);
    print_roff(text, length);
    putchar('"');
}

static void print_synopsis(const cli_program *program) {
    for (const char *line = program->usage; *line != '\0';) {
        size_t length = strcspn(line, "\n");
        puts(".Nm");
        for (size_t at = 0; at < length;) {
            size_t word = strcspn(line + at, " \n");
            bool is_optional = line[at] == '[';
            /* [--record N] is one entry of two words. */
            if (is_optional)
                word = strcspn(line + at, "]") + 1;
            const char *text = line + at + (is_optional ? 1 : 0);
            size_t bytes = is_optional ? word - 2 : word;
            if (is_optional)
                fputs(".Op", stdout);
            while (bytes > 0) {
                size_t part = strcspn(text, " ]\n");
                part = part < bytes ? part : bytes;
                const char *macro = text[0] == '-'                    ? "Fl"
                                    : islower((unsigned char)text[0]) ? "Cm"
                                                                      : "Ar";
                printf("%s%s ", is_optional ? " " : ".", macro);
                if (text[0] == '-') {
                    print_roff(text + 1, part - 1);
                } else {
                    print_argument(text, part);
                }
                if (!is_optional)
                    putchar('\n');
                bytes -= part + (part < bytes);
                text += part + (text[part] == ' ');
            }
            if (is_optional)
                putchar('\n');
            at += word;
            at += strspn(line + at, " ");
        }
        line += length + (line[length] == '\n');
    }
}

/* Is the text one of the names? NULL: there are none. */
static bool is_one_of(const char *const *names, const char *text, size_t length) {
    for (; names != NULL && *names != NULL; names++)
        if (strlen(*names) == length && memcmp(*names, text, length) == 0)
            return true;
    return false;
}

static void print_man_option(const cli_program *program, const cli_option *row, const char *job) {
    char help[HELP_BYTES], number[PRESTO_TEXT_BYTES], text[2 * HELP_BYTES];
    fputs(".It Fl ", stdout);
    if (row->letter != 0)
        printf("%c , ", row->letter);
    fputs(row->letter != 0 ? "Fl " : "", stdout);
    print_roff("-", 1);
    print_roff(row->name, strlen(row->name));
    if (row->argument != NULL) {
        fputs(" Ar ", stdout);
        print_argument(row->argument, strlen(row->argument));
    }
    putchar('\n');
    cli_row_help(row, help, sizeof help);
    const char *fallback = cli_row_default(row, job, number);
    size_t length = strlen(help);
    bool has_stop = length > 0 && (help[length - 1] == '.' || help[length - 1] == ']');
    snprintf(text, sizeof text, "%s%s", help, has_stop ? "" : ".");
    /* A sentence begins with a capital letter, unless its first word is one of the command line. */
    size_t word = strcspn(help, " ,:(");
    bool is_word = is_one_of(program->commands, help, word);
    word_list words = row->argument != NULL ? list_words(row) : (word_list){.count = 0};
    for (size_t i = 0; i < words.count; i++)
        is_word =
            is_word || (strlen(words.words[i]) == word && memcmp(words.words[i], help, word) == 0);
    if (!is_word)
        text[0] = (char)toupper((unsigned char)text[0]);
    print_text(text);
    if (fallback != NULL) {
        snprintf(text, sizeof text, "Default: %s.", fallback);
        print_text(text);
    }
}

static void print_man_options(const cli_program *program) {
    char *job = cli_default_job();
    bool is_open = false;
    for (const cli_option *row = program->options; row->name != NULL; row++) {
        if (is_row(row)) {
            print_man_option(program, row, job);
            continue;
        }
        printf("%s.Ss ", is_open ? ".El\n" : "");
        print_roff(row->name, strlen(row->name));
        puts("\n.Bl -tag -width Ds");
        is_open = true;
    }
    puts(".El");
    free(job);
}

static void print_man_exits(const cli_program *program) {
    puts(".Bl -tag -width Ds");
    for (int code = 0; code <= program->most_exit; code++) {
        printf(".It %d\n", code);
        print_text(cli_exit_text(code));
    }
    puts(".El");
    if (program->exit_note != NULL) {
        puts(".Pp");
        print_text(program->exit_note);
    }
}

/* A line of the template that stands for something else. */
static bool print_placeholder(const cli_program *program, const char *line) {
    if (strcmp(line, "@synopsis@") == 0)
        print_synopsis(program);
    else if (strcmp(line, "@summary@") == 0)
        print_text(program->summary);
    else if (strcmp(line, "@options@") == 0)
        print_man_options(program);
    else if (strcmp(line, "@notes@") == 0 && program->notes != NULL)
        print_text(program->notes);
    else if (strcmp(line, "@exits@") == 0)
        print_man_exits(program);
    else if (strcmp(line, "@example@") == 0)
        printf(".Dl $ %s\n", program->example);
    else
        return false;
    return true;
}

static void print_man(const cli_program *program, const char *path) {
    char *line = NULL;
    size_t room = 0;
    FILE *file = fopen(path, "r");
    if (file == NULL) {
        cli_message("%s: cannot open: %s", path, strerror(errno));
        exit(CLI_FAILED);
    }
    for (ssize_t bytes; (bytes = getline(&line, &room, file)) > 0;) {
        line[bytes - (line[bytes - 1] == '\n')] = '\0';
        if (line[0] != '@') {
            puts(line);
        } else if (!print_placeholder(program, line)) {
            cli_message("%s: nothing stands for %s", path, line);
            exit(CLI_FAILED);
        }
    }
    bool is_read = !ferror(file);
    free(line);
    fclose(file);
    if (!is_read) {
        cli_message("%s: cannot read", path);
        exit(CLI_FAILED);
    }
}

/* ---- bash ---- */

/* Options that go with the command of this bit; all of them for 0. */
static void print_bash_names(const cli_program *program, unsigned command) {
    for (const cli_option *row = program->options; row->name != NULL; row++) {
        if (!is_row(row) || (command != 0 && row->commands != 0 && !(row->commands & command)))
            continue;
        if (row->letter != 0)
            printf(" -%c", row->letter);
        printf(" --%s", row->name);
    }
}

static void print_bash_pattern(const cli_option *row) {
    if (row->letter != 0)
        printf("-%c | ", row->letter);
    printf("--%s", row->name);
}

/* What follows an option. */
static void print_bash_argument(const cli_option *row) {
    word_list list = list_words(row);
    fputs("    ", stdout);
    print_bash_pattern(row);
    puts(")");
    if (list.is_list)
        puts("        before+=${value%\"${value##*,}\"} value=${value##*,}");
    if (list.count > 0) {
        fputs("        words='", stdout);
        print_words(&list);
        puts("'");
    }
    if (list.fill != FILL_NOTHING)
        printf("        files=%s\n", list.fill == FILL_FILES ? "default" : "dirnames");
    puts("        ;;");
}

static void print_bash(const cli_program *program) {
    char name[WORD_BYTES];
    function_name(program, name);
    printf("# Completions of %s for bash, made from its table of options.\n%s()\n{\n",
           program->name, name);
    puts(
        "    local line=${COMP_LINE:0:COMP_POINT} next word option= value before= words= files= i\n"
        "    local -a given=() operands=()\n"
        "    COMPREPLY=()\n"
        "    # Readline splits words at : and =. Here they are whole, up to the cursor.\n"
        "    for ((i = 0; i <= COMP_CWORD; i++)); do\n"
        "        next=${line#\"${line%%[![:blank:]]*}\"}\n"
        "        word=${COMP_WORDS[i]}\n"
        "        ((i < COMP_CWORD)) || word=$next\n"
        "        if ((i > 0)) && [[ $next == \"$line\" ]]; then\n"
        "            given[-1]+=$word\n"
        "        else\n"
        "            given+=(\"$word\")\n"
        "        fi\n"
        "        line=${next#\"$word\"}\n"
        "    done\n"
        "    value=${given[-1]}\n"
        "    for word in \"${given[@]:1:${#given[@]}-2}\"; do\n"
        "        if [[ -n $option ]]; then\n"
        "            option=\n"
        "            continue\n"
        "        fi\n"
        "        case $word in");
    fputs("        ", stdout);
    bool is_first = true;
    for (const cli_option *row = program->options; row->name != NULL; row++) {
        if (!is_row(row) || row->argument == NULL)
            continue;
        fputs(is_first ? "" : " | \\\n            ", stdout);
        print_bash_pattern(row);
        is_first = false;
    }
    puts(") option=$word ;;\n"
         "        -*) ;;\n"
         "        *) operands+=(\"$word\") ;;\n"
         "        esac\n"
         "    done\n"
         "    if [[ -z $option && $value == --*=* ]]; then\n"
         "        option=${value%%=*} before=${value%%=*}= value=${value#*=}\n"
         "    fi\n"
         "    case $option in\n"
         "    '')\n"
         "        if [[ $value == -* ]]; then");
    if (program->commands != NULL) {
        puts("            case ${operands[0]-} in");
        for (size_t i = 0; program->commands[i] != NULL; i++) {
            printf("            %s) words='", program->commands[i]);
            print_bash_names(program, 1u << i);
            puts("' ;;");
        }
        fputs("            *) words='", stdout);
        print_bash_names(program, 0);
        puts("' ;;\n            esac");
    } else {
        fputs("            words='", stdout);
        print_bash_names(program, 0);
        puts("'");
    }
    if (takes_operands(program) || program->commands != NULL) {
        puts("        else");
        puts("            files=default");
        if (program->commands != NULL) {
            fputs("            ((${#operands[@]} > 0)) || words='", stdout);
            for (size_t i = 0; program->commands[i] != NULL; i++)
                printf("%s%s", i > 0 ? " " : "", program->commands[i]);
            puts("'");
        }
    }
    puts("        fi\n        ;;");
    for (const cli_option *row = program->options; row->name != NULL; row++)
        if (is_row(row) && row->argument != NULL)
            print_bash_argument(row);
    puts("    esac\n"
         "    [[ -z $words ]] || mapfile -t COMPREPLY < <(compgen -W \"$words\" -- \"$value\")\n"
         "    # The start of an argument stands there already: what follows it is a file, or the "
         "user's.\n"
         "    [[ $value != *: || ${COMPREPLY[*]-} != \"$value\" ]] || COMPREPLY=()\n"
         "    if ((${#COMPREPLY[@]} == 0)); then\n"
         "        [[ -z $files ]] || compopt -o \"$files\"\n"
         "        return 0\n"
         "    fi\n"
         "    # Readline keeps what stands before the last of its breaks.\n"
         "    local breaks=${COMP_WORDBREAKS//[!:=]} kept=\n"
         "    [[ -z $breaks || ${given[-1]} != *[$breaks]* ]] ||\n"
         "        kept=${given[-1]%\"${given[-1]##*[$breaks]}\"}\n"
         "    for i in \"${!COMPREPLY[@]}\"; do\n"
         "        word=$before${COMPREPLY[i]}\n"
         "        COMPREPLY[i]=${word#\"$kept\"}\n"
         "    done\n"
         "    [[ ${#COMPREPLY[@]} != 1 || ${COMPREPLY[0]} != *: ]] || compopt -o nospace");
    printf("}\ncomplete -F %s %s\n", name, program->name);
}

/* ---- zsh ---- */

/* Text within '...' in a specification of _arguments. */
static void print_zsh_text(const char *text) {
    for (; *text != '\0'; text++) {
        if (*text == '\'') {
            fputs("'\\''", stdout);
            continue;
        }
        if (strchr("[]:\\", *text) != NULL)
            putchar('\\');
        putchar(*text);
    }
}

static void print_zsh_argument(const cli_option *row) {
    word_list list = list_words(row);
    putchar(':');
    print_zsh_text(row->argument);
    putchar(':');
    if (list.count == 0 && list.fill == FILL_NOTHING) {
        putchar(' ');
        return;
    }
    if (list.count == 0) {
        fputs(list.fill == FILL_FILES ? "_files" : "_files -/", stdout);
        return;
    }
    fputs(list.is_list ? "{_sequence compadd -" : "{compadd -", stdout);
    for (size_t i = 0; i < list.count; i++)
        if (!is_start(list.words[i]))
            printf(" %s", list.words[i]);
    if (list.has_starts)
        fputs("; compadd -S \"\" -", stdout);
    for (size_t i = 0; i < list.count; i++) {
        if (!is_start(list.words[i]))
            continue;
        putchar(' ');
        print_zsh_text(list.words[i]);
    }
    if (list.fill != FILL_NOTHING)
        fputs(list.fill == FILL_FILES ? "; _files" : "; _files -/", stdout);
    putchar('}');
}

static void print_zsh(const cli_program *program) {
    char help[HELP_BYTES];
    printf("#compdef %s\n# Completions of %s for zsh, made from its table of options.\n"
           "_arguments -s -S",
           program->name, program->name);
    for (const cli_option *row = program->options; row->name != NULL; row++) {
        if (!is_row(row))
            continue;
        const char *plus = row->argument != NULL ? "+" : "",
                   *equals = row->argument != NULL ? "=" : "";
        if (row->letter != 0)
            printf(" \\\n    '*'{-%c%s,--%s%s}'[", row->letter, plus, row->name, equals);
        else
            printf(" \\\n    '*--%s%s[", row->name, equals);
        brief_help(row, help);
        print_zsh_text(help);
        putchar(']');
        if (row->argument != NULL)
            print_zsh_argument(row);
        putchar('\'');
    }
    if (program->commands != NULL) {
        fputs(" \\\n    '1:command:{compadd -", stdout);
        for (size_t i = 0; program->commands[i] != NULL; i++)
            printf(" %s", program->commands[i]);
        fputs("; _files}'", stdout);
    }
    if (takes_operands(program))
        fputs(" \\\n    '*:file:_files'", stdout);
    putchar('\n');
}

/* ---- fish ---- */

static void print_fish_text(const char *text) {
    putchar('\'');
    for (; *text != '\0'; text++) {
        if (*text == '\'' || *text == '\\')
            putchar('\\');
        putchar(*text);
    }
    putchar('\'');
}

/* The commands that an option goes with, as the condition of its completion. */
static void print_fish_condition(const cli_program *program, const cli_option *row) {
    if (program->commands == NULL || row->commands == 0)
        return;
    fputs(" -n '__fish_seen_subcommand_from", stdout);
    for (size_t i = 0; program->commands[i] != NULL; i++)
        if (row->commands & 1u << i)
            printf(" %s", program->commands[i]);
    putchar('\'');
}

static void print_fish_option(const cli_program *program, const cli_option *row, const char *name) {
    char help[HELP_BYTES];
    word_list list = row->argument != NULL ? list_words(row) : (word_list){.count = 0};
    char function[2 * WORD_BYTES];
    snprintf(function, sizeof function, "_%s_%s", name, row->name);
    if (list.is_list && list.count > 0) {
        printf("function %s\n    printf '%%s\\n' ", function);
        print_words(&list);
        puts("\nend");
    }
    printf("complete -c %s", program->name);
    print_fish_condition(program, row);
    if (row->letter != 0)
        printf(" -s %c", row->letter);
    printf(" -l %s", row->name);
    if (row->argument != NULL)
        fputs(list.fill == FILL_FILES ? " -r -F" : " -x", stdout);
    if (list.is_list && list.count > 0) {
        printf(" -a '(__fish_complete_list , %s)'", function);
    } else if (list.count > 0 || list.fill == FILL_FOLDERS) {
        fputs(" -a '", stdout);
        print_words(&list);
        if (list.fill == FILL_FOLDERS)
            fputs(list.count > 0 ? " (__fish_complete_directories)"
                                 : "(__fish_complete_directories)",
                  stdout);
        putchar('\'');
    }
    fputs(" -d ", stdout);
    brief_help(row, help);
    print_fish_text(help);
    putchar('\n');
}

static void print_fish(const cli_program *program) {
    char name[WORD_BYTES];
    function_name(program, name);
    printf("# Completions of %s for fish, made from its table of options.\n", program->name);
    if (!takes_operands(program))
        printf("complete -c %s -f\n", program->name);
    for (const cli_option *row = program->options; row->name != NULL; row++)
        if (is_row(row))
            print_fish_option(program, row, name);
    if (program->commands == NULL)
        return;
    printf("complete -c %s -n __fish_use_subcommand -a '", program->name);
    for (size_t i = 0; program->commands[i] != NULL; i++)
        printf("%s%s", i > 0 ? " " : "", program->commands[i]);
    puts("'");
}

/* ---- which page ---- */

_Noreturn void cli_print_page(const cli_program *program, int count, char **words) {
    static const struct {
        const char *name;
        void (*print)(const cli_program *program);
    } shells[] = {{"bash", print_bash}, {"zsh", print_zsh}, {"fish", print_fish}};
    if (count == 2 && strcmp(words[0], "man") == 0) {
        print_man(program, words[1]);
        exit(cli_close_stdout(CLI_DONE));
    }
    for (size_t i = 0; count == 1 && i < sizeof shells / sizeof shells[0]; i++) {
        if (strcmp(words[0], shells[i].name) == 0) {
            shells[i].print(program);
            exit(cli_close_stdout(CLI_DONE));
        }
    }
    cli_usage("--print-page: man TEMPLATE, bash, zsh or fish");
}
