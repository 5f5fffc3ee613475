/* SPDX-License-Identifier: Apache-2.0 */
/*
 * extract-text: the bytes of an HTML page -> its main text, UTF-8, a paragraph a line. Navigation,
 * advertisements, notices and what else surrounds the text is left out.
 */
#include <stdio.h>
#include <stdlib.h>

#include <presto/text.h>

#include "../../steps_internal.h"
#include "extract_text_internal.h"

enum { OPTION_ENCODING, OPTION_COMMENTS, OPTION_TABLES, OPTION_CONTENT, OPTION_COUNT };

static const presto_option_type options[] = {
    [OPTION_ENCODING] = {.name = "encoding",
                         .kind = PRESTO_OPTION_TEXT,
                         .default_text = "auto",
                         .help =
                             "of pages without a byte order mark, a label of the Encoding Standard "
                             "or a name of iconv; auto finds it out from declarations and "
                             "statistics"},
    [OPTION_COMMENTS] = {.name = "comments",
                         .kind = PRESTO_OPTION_BOOL,
                         .default_text = "false",
                         .help = "keep readers' comments, too"},
    [OPTION_TABLES] = {.name = "tables",
                       .kind = PRESTO_OPTION_BOOL,
                       .default_text = "true",
                       .help = "keep tables of the text, a line a cell"},
    [OPTION_CONTENT] = {.name = "content",
                        .kind = PRESTO_OPTION_CHOICE,
                        .default_text = "text",
                        .choices = presto__input_contents,
                        .help = PRESTO__INPUT_HELP},
};

#if PRESTO_HAVE_HTML

/* More of an unknown charset is not told. */
#define MAX_LABEL_BYTES 48

typedef struct extract_state {
    presto__choice_options choice;
    char *encoding; /* NULL: find it out */
    bool takes_any; /* bytes */
} extract_state;

typedef struct extract_worker {
    presto__charset *charset;
    presto__html *html;
    presto__page page;
    presto__measures measures;
} extract_worker;

static void destroy(void *state) {
    extract_state *extract = state;
    if (extract == NULL)
        return;
    free(extract->encoding);
    free(extract);
}

static presto_status create(const presto_option *values, void **state_out, presto_error *err) {
    const char *encoding = values[OPTION_ENCODING].text;
    bool is_auto = strcmp(encoding, "auto") == 0;
    if (!is_auto && !presto__charset_is_known(encoding))
        return presto_fail(
            err, PRESTO_ERR_ARGUMENT, PRESTO_NO_OFFSET,
            "option 'encoding' is '%s', which neither the Encoding Standard nor iconv "
            "knows",
            encoding);
    extract_state *state = calloc(1, sizeof *state);
    if (state == NULL)
        return presto_fail_memory(err, sizeof *state);
    state->choice = (presto__choice_options){.comments = values[OPTION_COMMENTS].truth,
                                             .tables = values[OPTION_TABLES].truth};
    state->takes_any = values[OPTION_CONTENT].choice == PRESTO__INPUT_ANY;
    state->encoding = is_auto ? NULL : presto_span_to_text(presto_span_of_text(encoding));
    if (!is_auto && state->encoding == NULL) {
        destroy(state);
        return presto_fail_memory(err, strlen(encoding));
    }
    *state_out = state;
    return PRESTO_OK;
}

static void close_worker(void *worker) {
    extract_worker *extract = worker;
    if (extract == NULL)
        return;
    presto__charset_free(extract->charset);
    presto__html_free(extract->html);
    presto__page_done(&extract->page);
    presto__measures_done(&extract->measures);
    free(extract);
}

static presto_status open_worker(const void *state, const void *model, void **worker_out,
                                 presto_error *err) {
    (void)state, (void)model;
    extract_worker *worker = calloc(1, sizeof *worker);
    if (worker == NULL)
        return presto_fail_memory(err, sizeof *worker);
    presto__page_init(&worker->page);
    worker->charset = presto__charset_new();
    worker->html = presto__html_new();
    if (worker->charset == NULL || worker->html == NULL) {
        close_worker(worker);
        return presto_fail_memory(err, 0);
    }
    *worker_out = worker;
    return PRESTO_OK;
}

/* A charset that nobody knows is no error: browsers show such pages, too. */
static void note_charset(presto_step_context *context, const presto__charset *charset) {
    char label[MAX_LABEL_BYTES], text[MAX_LABEL_BYTES + 128];
    const char *read_as;
    presto_span unknown = presto__charset_unknown(charset, &read_as);
    if (unknown.bytes == 0)
        return;
    presto_text_show(unknown, label, sizeof label);
    snprintf(text, sizeof text, "unknown charset '%s', read as %s", label, read_as);
    presto_step_note(context, text);
}

static presto_status run(const void *state, presto_step_context *context, const presto_tensor *in,
                         presto_tensor *out_out, presto_error *err) {
    const extract_state *extract = state;
    extract_worker *worker = presto_step_worker(context);
    presto_span text;
    PRESTO_TRY(presto__spec_expect(&in->spec, &presto__text_spec, err));
    const presto__input_rules rules = {"extract-text", "an HTML page", true,
                                       extract->encoding != NULL};
    if (!extract->takes_any)
        PRESTO_TRY(presto__input_check(in->strings[0], &rules, err));
    PRESTO_TRY(
        presto__charset_decode(worker->charset, in->strings[0], extract->encoding, &text, err));
    note_charset(context, worker->charset);
    PRESTO_TRY(presto__page_build(&worker->page, worker->html, text, err));
    PRESTO_TRY(presto__measures_take(&worker->measures, &worker->page, err));
    presto__page_choose(&worker->page, &worker->measures, &extract->choice);
    presto_buffer *out = presto_step_buffer(context);
    PRESTO_TRY(presto__page_write(&worker->page, out, err));
    return presto_step_text(context, presto_buffer_span(out), out_out, err);
}

#endif

const presto_step_type presto__step_extract_text = {
    .abi = PRESTO_STEP_ABI,
    .name = "extract-text",
    .summary = "The main text of an HTML page, UTF-8, a paragraph a line; menus, advertisements "
               "and notices are left out.",
    .options = options,
    .option_count = OPTION_COUNT,
    .infer = presto__infer_text,
#if PRESTO_HAVE_HTML
    .create = create,
    .destroy = destroy,
    .open_worker = open_worker,
    .close_worker = close_worker,
    .run = run,
#else
    .unsupported = "built without MyHTML (libmodest) or uchardet",
#endif
};
