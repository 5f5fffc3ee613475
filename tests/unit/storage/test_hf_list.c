/* SPDX-License-Identifier: Apache-2.0 */
/* Pages of the Hub's trees. How they become a list is tested with a server: tests/cli/test_gs_hf.py. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hf_list_internal.h"
#include "presto_check.h"

static presto_error err;

static presto_status parse(const char *json, presto__hf_page *page) {
    uint8_t *exact = presto_check_copy(presto_span_of_text(json));
    presto_status status = presto__hf_page_parse(presto_span_of(exact, strlen(json)), page, &err);
    free(exact);
    return status;
}

START_TEST(a_page_has_files_and_folders_and_what_their_content_is_called) {
    presto__hf_page page = {.count = 0};
    const char *json =
        "[{\"type\":\"directory\",\"oid\":\"d1\",\"size\":0,\"path\":\"data\"},"
        "{\"type\":\"submodule\",\"path\":\"..\"},"
        "{\"type\":\"file\",\"oid\":\"g1\",\"size\":5,\"path\":\"data/\\u00fc .txt\"},"
        "{\"type\":\"file\",\"oid\":\"p1\",\"size\":9007199254740993,\"path\":\"x\","
        "\"lfs\":{\"oid\":\"s1\",\"size\":1,\"pointerSize\":2}}]";
    for (unsigned round = 0; round < 2; round++) {
        ck_assert_ok(parse(json, &page), &err);
        ck_assert_uint_eq(page.count, 3);
        ck_assert(page.entries[0].is_folder && presto_span_is(page.entries[0].path, "data"));
        ck_assert(!page.entries[1].is_folder);
        ck_assert(presto_span_is(page.entries[1].path, "data/\xc3\xbc .txt"));
        ck_assert(presto_span_is(page.entries[1].oid, "g1"));
        ck_assert_uint_eq(page.entries[1].bytes, 5);
        ck_assert(presto_span_is(page.entries[2].oid, "s1"));
        ck_assert_uint_eq(page.entries[2].bytes, UINT64_C(9007199254740993));
    }
    ck_assert_ok(parse("[]", &page), &err);
    ck_assert_uint_eq(page.count, 0);
    presto__hf_page_done(&page);
}
END_TEST

START_TEST(what_can_be_no_file_is_refused) {
    static const char *const paths[] = {"",    "/",    "/a",   "a/",  "a//b",   ".",        "..",
                                        "./a", "../a", "a/..", "a/.", "a/../b", "a\\u0000b"};
    static const char *const texts[] = {"",
                                        "{}",
                                        "[1]",
                                        "[{}]",
                                        "[{\"type\":\"file\",\"path\":\"a\"}]",
                                        "[{\"type\":\"file\",\"path\":\"a\",\"size\":-1}]",
                                        "[{\"type\":\"file\",\"path\":\"a\",\"size\":1.5}]",
                                        "[{\"type\":\"file\",\"path\":\"a\",\"size\":1}"};
    presto__hf_page page = {.count = 0};
    char json[128];
    for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++) {
        snprintf(json, sizeof json, "[{\"type\":\"file\",\"size\":1,\"path\":\"%s\"}]", paths[i]);
        ck_assert_status(parse(json, &page), PRESTO_ERR_SYNTAX, &err);
    }
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        ck_assert_status(parse(texts[i], &page), PRESTO_ERR_SYNTAX, &err);
    ck_assert_ok(parse("[{\"type\":\"file\",\"size\":1,\"path\":\"...\"}]", &page), &err);
    presto__hf_page_done(&page);
}
END_TEST

START_TEST(paths_of_4_kib_are_the_longest_and_pages_are_bounded) {
    presto__hf_page page = {.count = 0};
    char json[8192], path[4098];
    for (size_t bytes = 4096; bytes <= 4097; bytes++) {
        memset(path, 'k', bytes);
        path[bytes] = '\0';
        snprintf(json, sizeof json, "[{\"type\":\"file\",\"size\":1,\"path\":\"%s\"}]", path);
        ck_assert_status(parse(json, &page), bytes == 4096 ? PRESTO_OK : PRESTO_ERR_LIMIT, &err);
    }
    size_t deep = 1 << 20;
    char *lists = malloc(deep + 1);
    memset(lists, '[', deep);
    lists[deep] = '\0';
    ck_assert_status(parse(lists, &page), PRESTO_ERR_LIMIT, &err);
    free(lists);
    presto__hf_page_done(&page);
}
END_TEST

START_TEST(the_next_page_is_found_in_the_header) {
    static const struct {
        const char *link, *cursor;
    } cases[] = {
        {"", ""},
        {"<https://h/t?cursor=a>; rel=\"first\"", ""},
        {"<https://h/t?cursor=a%3D>; rel=\"next\"", "a%3D"},
        {"<https://h/t?recursive=true&cursor=b&limit=3>; rel=next", "b"},
        {"<https://h/t?cursor=a>; rel=\"prev\", <https://h/t?x&cursor=c>; rel=\"next\"", "c"},
        {"<https://h/t?cursor=d>; title=\"x\"; rel=\"next\", <https://h/t?cursor=e>; rel=\"last\"",
         "d"},
        {"<https://h/t?cursor=>; rel=\"next\"", NULL},
        {"<https://h/t?mycursor=a>; rel=\"next\"", NULL},
        {"<https://h/cursor=a>; rel=\"next\"", NULL},
        {"<https://h/t?cursor=a b>; rel=\"next\"", NULL},
        {"<https://h/t?cursor=a#b>; rel=\"next\"", NULL},
        {"<https://h/t?cursor=a", NULL},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        presto_span cursor;
        presto_status status = presto__hf_cursor(cases[i].link, &cursor, &err);
        ck_assert_status(status, cases[i].cursor == NULL ? PRESTO_ERR_SYNTAX : PRESTO_OK, &err);
        if (cases[i].cursor != NULL)
            ck_assert(presto_span_is(cursor, cases[i].cursor));
    }
}
END_TEST

int main(void) {
    const TTest *const tests[] = {
        a_page_has_files_and_folders_and_what_their_content_is_called,
        what_can_be_no_file_is_refused,
        paths_of_4_kib_are_the_longest_and_pages_are_bounded,
        the_next_page_is_found_in_the_header,
    };
    return presto_check_main("hf_list", tests, sizeof tests / sizeof tests[0], 30);
}
