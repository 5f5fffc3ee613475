/* SPDX-License-Identifier: Apache-2.0 */
/* Pages of keys. How pages become a list is tested with servers: tests/cli/test_remote_folders.py. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "presto_check.h"
#include "s3_list_internal.h"

static presto_error err;

static presto_status parse(const char *xml, presto__s3_page *page) {
    uint8_t *exact = presto_check_copy(presto_span_of_text(xml));
    presto_status status = presto__s3_page_parse(presto_span_of(exact, strlen(xml)), page, &err);
    free(exact);
    return status;
}

#define LIST(content) "<?xml version='1.0'?><ListBucketResult>" content "</ListBucketResult>"
#define KEY(key) "<Contents><Key>" key "</Key><Size>1</Size></Contents>"
#define ENCODED "<EncodingType>url</EncodingType>"

START_TEST(a_page_has_keys_and_what_is_known_of_them) {
    presto__s3_page page = {.count = 0};
    const char *xml =
        LIST("<Name>b</Name><Prefix>a/</Prefix><IsTruncated>true</IsTruncated>"
             "<NextContinuationToken>t&amp;k</NextContinuationToken>"
             "<Contents><Owner><ID>Key</ID></Owner><Key>a/b</Key><Size>18446744073709551615</Size>"
             "<ETag>&quot;e&quot;</ETag><LastModified>2026-01-31T23:59:58.9Z</LastModified>"
             "</Contents><CommonPrefixes><Prefix>a/c/</Prefix></CommonPrefixes>");
    for (unsigned round = 0; round < 2; round++) {
        ck_assert_ok(parse(xml, &page), &err);
        ck_assert_uint_eq(page.count, 2);
        ck_assert(page.is_truncated);
        ck_assert(presto_span_is(page.next, "t&k"));
        ck_assert(presto_span_is(page.items[0].key, "a/b"));
        ck_assert(!page.items[0].is_prefix);
        ck_assert_uint_eq(page.items[0].bytes, UINT64_MAX);
        ck_assert(presto_span_is(page.items[0].etag, "\"e\""));
        ck_assert_int_eq(page.items[0].mtime_ns, INT64_C(1769903998) * 1000000000);
        ck_assert(presto_span_is(page.items[1].key, "a/c/"));
        ck_assert(page.items[1].is_prefix);
        ck_assert_uint_eq(page.items[1].etag.bytes, 0);
    }
    ck_assert_ok(parse(LIST("<IsTruncated>false</IsTruncated>"), &page), &err);
    ck_assert(!page.is_truncated && page.count == 0 && page.next.bytes == 0);
    presto__s3_page_done(&page);
}
END_TEST

START_TEST(keys_are_decoded_only_if_the_answer_says_so) {
    presto__s3_page page = {.count = 0};
    ck_assert_ok(parse(LIST(KEY("a+b%20%C3%bc%2B")), &page), &err);
    ck_assert(presto_span_is(page.items[0].key, "a+b%20%C3%bc%2B"));
    ck_assert_ok(parse(LIST(KEY("a+b%20%C3%bc%2B") ENCODED), &page), &err); /* said behind them */
    ck_assert(presto_span_is(page.items[0].key, "a b \xc3\xbc+"));
    presto__s3_page_done(&page);
}
END_TEST

START_TEST(what_can_be_no_key_is_refused) {
    static const struct {
        const char *xml;
        presto_status status;
    } cases[] = {
        {LIST(KEY("%4") ENCODED), PRESTO_ERR_SYNTAX},
        {LIST(KEY("%") ENCODED), PRESTO_ERR_SYNTAX},
        {LIST(KEY("%g0") ENCODED), PRESTO_ERR_SYNTAX},
        {LIST(KEY("x%00") ENCODED), PRESTO_ERR_SYNTAX},
        {LIST(KEY("")), PRESTO_ERR_SYNTAX},
        {LIST("<Contents><Size>1</Size></Contents>"), PRESTO_ERR_SYNTAX},
        {LIST("<Contents><Key>a</Key><Size>18446744073709551616</Size></Contents>"),
         PRESTO_ERR_SYNTAX},
        {LIST("<Contents><Key>a</Key><Size>1 </Size></Contents>"), PRESTO_ERR_SYNTAX},
        {"<Error><Code>SlowDown</Code></Error>", PRESTO_ERR_SYNTAX},
        {"<ListBucketResult><Contents>", PRESTO_ERR_SYNTAX},
        {"", PRESTO_ERR_SYNTAX},
    };
    presto__s3_page page = {.count = 0};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        ck_assert_status(parse(cases[i].xml, &page), cases[i].status, &err);
    presto__s3_page_done(&page);
}
END_TEST

START_TEST(keys_of_4_kib_are_the_longest) {
    presto__s3_page page = {.count = 0};
    char xml[8192], key[4098];
    for (size_t bytes = 4096; bytes <= 4097; bytes++) {
        memset(key, 'k', bytes);
        key[bytes] = '\0';
        snprintf(xml, sizeof xml, LIST(KEY("%s")), key);
        ck_assert_status(parse(xml, &page), bytes == 4096 ? PRESTO_OK : PRESTO_ERR_LIMIT, &err);
    }
    presto__s3_page_done(&page);
}
END_TEST

int main(void) {
    const TTest *const tests[] = {
        a_page_has_keys_and_what_is_known_of_them,
        keys_are_decoded_only_if_the_answer_says_so,
        what_can_be_no_key_is_refused,
        keys_of_4_kib_are_the_longest,
    };
    return presto_check_main("s3_list", tests, sizeof tests / sizeof tests[0], 30);
}
