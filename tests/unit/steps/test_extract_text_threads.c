/* SPDX-License-Identifier: Apache-2.0 */
/* extract-text in several threads: each opens and closes converters of its own all the time. */
#include <pthread.h>

#include "../../../steps/pipelines_internal.h"
#include "steps_check.h"

enum { THREADS = 4, ROUNDS = 50 };

/* Each page declares its encoding. */
static const char *const pages[] = {"windows-1252", "shift-jis", "koi8-r", "gb18030"};
enum { PAGES = sizeof pages / sizeof pages[0] };

static presto_span read_golden(const char *name, const char *ending) {
    char path[600];
    size_t bytes;
    snprintf(path, sizeof path, PRESTO_GOLDEN_DIR "/html/%s%s", name, ending);
    uint8_t *data = presto_check_read_file(path, &bytes);
    return presto_span_of(data, bytes);
}

/* The text of the golden file ends with a line break that the page's text does not have. */
static void assert_extracted(rig *r, presto_span page, presto_span want) {
    rig_options options = {0};
    presto_tensor out;
    presto_error err;
    ck_assert_ok(rig_run_bytes(r, &options, page, &out, &err), &err);
    ck_assert(presto_span_equal(out.strings[0], presto_span_of(want.data, want.bytes - 1)));
}

static void *extract_pages(void *argument) {
    size_t first = *(size_t *)argument;
    presto_span html[PAGES], text[PAGES];
    presto_error err;
    rig r;
    ck_assert_ok(rig_open(&r, "{step: extract-text}", &string_spec, false, &err), &err);
    for (size_t i = 0; i < PAGES; i++) {
        html[i] = read_golden(pages[i], ".html");
        text[i] = read_golden(pages[i], ".txt");
    }
    for (size_t i = first; i < first + ROUNDS; i++)
        assert_extracted(&r, html[i % PAGES], text[i % PAGES]);
    for (size_t i = 0; i < PAGES; i++) {
        free((void *)(uintptr_t)html[i].data);
        free((void *)(uintptr_t)text[i].data);
    }
    rig_close(&r);
    return NULL;
}

START_TEST(threads_change_encodings_at_the_same_time) {
    pthread_t threads[THREADS];
    size_t firsts[THREADS];
    for (size_t i = 0; i < THREADS; i++) {
        firsts[i] = i;
        ck_assert_int_eq(pthread_create(&threads[i], NULL, extract_pages, &firsts[i]), 0);
    }
    for (size_t i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
}
END_TEST

int main(void) {
    const TTest *const tests[] = {threads_change_encodings_at_the_same_time};
    if (presto__step_find("extract-text")->unsupported != NULL)
        return 0;
    return presto_check_main("extract-text-threads", tests, 1, 60);
}
