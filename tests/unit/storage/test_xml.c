/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>

#include "presto_check.h"
#include "xml_internal.h"

static presto_error err;

/* All elements as "PATH=TEXT;". */
typedef struct taken {
    char text[4096];
    size_t bytes, count, most;
} taken;

static presto_status take(void *user, const presto__xml_element *element, presto_error *why) {
    taken *all = user;
    if (all->count++ == all->most)
        return presto_fail(why, PRESTO_ERR_LIMIT, PRESTO_NO_OFFSET, "enough");
    all->bytes +=
        (size_t)snprintf(all->text + all->bytes, sizeof all->text - all->bytes, "%s=%.*s;",
                         element->path, (int)element->text.bytes, (const char *)element->text.data);
    return PRESTO_OK;
}

static presto_status read_text(const char *text, size_t bytes, taken *all) {
    *all = (taken){.most = SIZE_MAX};
    uint8_t *exact = presto_check_copy(presto_span_of(text, bytes));
    presto_status status = presto__xml_read(presto_span_of(exact, bytes), take, all, &err);
    free(exact);
    return status;
}

/* An answer of STS, as its reference has it, shortened. */
static const char answer[] =
    "<?xml version=\"1.0\"?>\n"
    "<AssumeRoleResponse xmlns=\"https://sts.amazonaws.com/doc/2011-06-15/\">\n"
    "  <AssumeRoleResult>\n    <x:Credentials xmlns:x=\"u\" a='1'>\n"
    "      <AccessKeyId>AKIA&amp;&lt;&#x41;\xc3\xa4</AccessKeyId><Empty/>"
    "<Secret><![CDATA[a<b]]></Secret>\n"
    "    </x:Credentials>\n  </AssumeRoleResult>\n</AssumeRoleResponse>\n";

START_TEST(elements_come_in_the_order_of_their_ends_with_decoded_texts) {
    taken all;
    ck_assert_ok(read_text(answer, sizeof answer - 1, &all), &err);
    ck_assert_str_eq(all.text,
                     "AssumeRoleResponse/AssumeRoleResult/Credentials/AccessKeyId=AKIA&<A\xc3\xa4;"
                     "AssumeRoleResponse/AssumeRoleResult/Credentials/Empty=;"
                     "AssumeRoleResponse/AssumeRoleResult/Credentials/Secret=a<b;"
                     "AssumeRoleResponse/AssumeRoleResult/Credentials=;"
                     "AssumeRoleResponse/AssumeRoleResult=;AssumeRoleResponse=;");
}
END_TEST

START_TEST(every_cut_is_an_error) {
    taken all;
    for (size_t bytes = 0; bytes < sizeof answer - 2; bytes++)
        ck_assert_status(read_text(answer, bytes, &all), PRESTO_ERR_SYNTAX, &err);
}
END_TEST

START_TEST(entities_of_its_own_are_refused) {
    static const char text[] = "<!DOCTYPE a [<!ENTITY b \"bbbbbbbb\"><!ENTITY c SYSTEM "
                               "\"file:///etc/passwd\">]><a>&b;&c;</a>";
    taken all;
    ck_assert_status(read_text(text, sizeof text - 1, &all), PRESTO_ERR_SYNTAX, &err);
    ck_assert_ptr_nonnull(strstr(err.message, "document type"));
    ck_assert_uint_eq(all.count, 0);
}
END_TEST

START_TEST(depth_and_names_are_bounded) {
    char text[16 * PRESTO__XML_MOST_DEPTH] = "", name[PRESTO__XML_MOST_PATH_BYTES + 16];
    taken all;
    for (int more = 0; more < 2; more++) {
        size_t at = 0;
        for (int i = 0; i < PRESTO__XML_MOST_DEPTH + more; i++)
            at += (size_t)snprintf(text + at, sizeof text - at, "<a>");
        for (int i = 0; i < PRESTO__XML_MOST_DEPTH + more; i++)
            at += (size_t)snprintf(text + at, sizeof text - at, "</a>");
        ck_assert_status(read_text(text, at, &all), more ? PRESTO_ERR_LIMIT : PRESTO_OK, &err);
    }
    memset(name, 'n', sizeof name);
    memcpy(name, "<", 1);
    memcpy(name + sizeof name - 2, "/>", 2);
    ck_assert_status(read_text(name, sizeof name, &all), PRESTO_ERR_LIMIT, &err);
}
END_TEST

START_TEST(who_takes_them_can_end_it) {
    taken all = {.most = 1};
    ck_assert_status(presto__xml_read(presto_span_of_text(answer), take, &all, &err),
                     PRESTO_ERR_LIMIT, &err);
    ck_assert_str_eq(err.message, "enough");
    ck_assert_uint_eq(all.count, 2);
}
END_TEST

int main(void) {
    const TTest *const tests[] = {
        elements_come_in_the_order_of_their_ends_with_decoded_texts,
        every_cut_is_an_error,
        entities_of_its_own_are_refused,
        depth_and_names_are_bounded,
        who_takes_them_can_end_it,
    };
    return presto_check_main("xml", tests, sizeof tests / sizeof tests[0], 30);
}
