/* SPDX-License-Identifier: Apache-2.0 */
/*
 * extract-text beside MyHTML, which only parses the same pages to a tree: encoding, choice and
 * output are the step's own work.
 */
#include "steps.h"

#include <stdlib.h>

#include <myhtml/myhtml.h>

typedef struct parser {
    const steps_files *pages;
    myhtml_t *html;
    myhtml_tree_t *tree;
} parser;

static void *parser_open(const void *user) {
    parser *p = calloc(1, sizeof *p);
    if (p == NULL)
        bench_die("out of memory");
    p->pages = user;
    p->html = myhtml_create();
    p->tree = myhtml_tree_create();
    if (myhtml_init(p->html, MyHTML_OPTIONS_PARSE_MODE_SINGLE, 1, 0) != MyHTML_STATUS_OK ||
        myhtml_tree_init(p->tree, p->html) != MyHTML_STATUS_OK)
        bench_die("MyHTML does not start");
    return p;
}

static void parser_run(void *state, size_t number) {
    parser *p = state;
    presto_span page = p->pages->files[number];
    if (myhtml_parse(p->tree, MyENCODING_UTF_8, (const char *)page.data, page.bytes) !=
        MyHTML_STATUS_OK)
        bench_die("MyHTML does not parse page %zu", number);
}

static void parser_close(void *state) {
    parser *p = state;
    myhtml_tree_destroy(p->tree);
    myhtml_destroy(p->html);
    free(p);
}

void steps_text(const steps_settings *set) {
    static const char row[] = "extract-text; bare: pages to trees";
    char folder[STEPS_PATH_BYTES];
    steps_files pages;
    if (!steps_wanted(set, row))
        return;
    steps_corpus(set, "nlp", "--scale 0.1", folder);
    steps_read_files(folder, ".html", 200, &pages);
    steps_plan *plan = steps_plan_new("{name: b, source: {type: files}, steps: [{step: read-file}, "
                                      "{step: extract-text}]}",
                                      1, 2, &steps_string_spec, pages.samples);
    steps_side step = steps_plan_side(plan);
    steps_side bare = {parser_open, parser_run, parser_close, &pages};
    steps_measure(set, row, pages.count, &step, &bare);
    steps_plan_free(plan);
    steps_free_files(&pages);
}
