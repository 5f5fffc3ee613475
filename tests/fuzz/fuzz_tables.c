/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tables of clips: any bytes are refused with a line, or every field lies within the text, on its
 * line, and holds no separator.
 */
#include "source/table/source_tables_internal.h"

#include "fuzz.h"

typedef struct seen {
    presto_span text;
    uint64_t line; /* of the last row */
} seen;

static void check_field(const seen *all, presto_span field, char separator) {
    FUZZ_HOLDS(field.data >= all->text.data &&
               field.data + field.bytes <= all->text.data + all->text.bytes);
    FUZZ_HOLDS(field.bytes == 0 || (memchr(field.data, '\n', field.bytes) == NULL &&
                                    memchr(field.data, 0, field.bytes) == NULL &&
                                    memchr(field.data, separator, field.bytes) == NULL));
}

static presto_status see_row(void *user, const presto_span *fields, uint64_t line,
                             presto_error *err) {
    seen *all = user;
    (void)err;
    FUZZ_HOLDS(line > all->line && line >= 2);
    all->line = line;
    check_field(all, fields[0], '\t');
    check_field(all, fields[1], '\t');
    if (presto__name_stays_below(fields[0])) {
        FUZZ_HOLDS(fields[0].bytes > 0 && fields[0].data[0] != '/');
        FUZZ_HOLDS(fields[0].bytes < 3 || memcmp(fields[0].data, "../", 3) != 0);
    }
    return PRESTO_OK;
}

static presto_status see_utterance(void *user, const presto__utterance *utterance,
                                   presto_error *err) {
    seen *all = user;
    (void)err;
    FUZZ_HOLDS(utterance->line > all->line);
    FUZZ_HOLDS(utterance->speaker >= 0 && utterance->chapter >= 0);
    all->line = utterance->line;
    check_field(all, utterance->id, '/');
    check_field(all, utterance->id, ' ');
    check_field(all, utterance->text, '\n');
    FUZZ_HOLDS(presto__name_stays_below(utterance->id));
    return PRESTO_OK;
}

static void check_failure(presto_status status, const presto_error *err) {
    FUZZ_HOLDS(status == PRESTO_OK || (status == PRESTO_ERR_SYNTAX && err->message[0] != '\0'));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes) {
    static const char *const wanted[] = {"path", "sentence"};
    seen rows = {.text = presto_span_of(data, bytes)};
    seen utterances = {.text = rows.text};
    presto_error err = {0};
    presto__tsv tsv = {
        .text = rows.text, .wanted = wanted, .wanted_count = 2, .row = see_row, .user = &rows};
    check_failure(presto__tsv_read(&tsv, &err), &err);
    err.message[0] = '\0';
    check_failure(presto__utterances_read(rows.text, see_utterance, &utterances, &err), &err);
    return 0;
}
