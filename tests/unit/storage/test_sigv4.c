/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Signatures that AWS publishes: the examples of "Signature Calculations for the Authorization
 * Header" in the S3 API reference, with its example keys. tests/live/sigv4.py compares 10,000
 * random requests with another implementation.
 */
#include <stdio.h>
#include <string.h>

#include "crypto_internal.h"
#include "presto_check.h"
#include "sigv4_internal.h"

#define T(text) presto_span_of_text(text)

static presto_error err;

static const presto__sigv4_signer example = {
    .access_key = "AKIAIOSFODNN7EXAMPLE",
    .secret_key = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
    .region = "us-east-1",
    .service = "s3",
};
#define TIME "20130524T000000Z"
#define HOST "examplebucket.s3.amazonaws.com"

static void check_sign(const presto__sigv4_request *request, const char *headers,
                       const char *signature) {
    presto_buffer out = {0};
    char wanted[512];
    snprintf(wanted, sizeof wanted,
             "AWS4-HMAC-SHA256 Credential=AKIAIOSFODNN7EXAMPLE/20130524/us-east-1/s3/aws4_request, "
             "SignedHeaders=%s, Signature=%s",
             headers, signature);
    ck_assert_ok(presto__sigv4_sign(&example, request, &out, &err), &err);
    ck_assert_uint_eq(out.bytes, strlen(wanted));
    ck_assert_mem_eq(out.data, wanted, out.bytes);
    presto_buffer_done(&out);
}

START_TEST(a_range_of_an_object_is_signed_as_aws_shows) {
    const presto__named_value headers[] = {
        {T("x-amz-date"), T(TIME)},
        {T("Range"), T("bytes=0-9")},
        {T("X-Amz-Content-SHA256"), T(PRESTO__NO_PAYLOAD)},
        {T("Host"), T(HOST)},
    };
    const presto__sigv4_request request = {.method = "GET",
                                           .path = T("/test.txt"),
                                           .headers = headers,
                                           .header_count = 4,
                                           .payload_hash = PRESTO__NO_PAYLOAD,
                                           .time = TIME};
    check_sign(&request, "host;range;x-amz-content-sha256;x-amz-date",
               "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41");
}
END_TEST

START_TEST(an_upload_with_a_dollar_in_its_key_is_signed_as_aws_shows) {
    static const char hash[] = "44ce7dd67c959e0d3524ffac1771dfbba87d2b6b4b4e99e42034a8b803f8b072";
    const presto__named_value headers[] = {
        {T("Date"), T("Fri, 24 May 2013 00:00:00 GMT")},
        {T("Host"), T(HOST)},
        {T("x-amz-content-sha256"), T(hash)},
        {T("x-amz-date"), T(TIME)},
        {T("x-amz-storage-class"), T("REDUCED_REDUNDANCY")},
    };
    const presto__sigv4_request request = {.method = "PUT",
                                           .path = T("/test$file.text"),
                                           .headers = headers,
                                           .header_count = 5,
                                           .payload_hash = hash,
                                           .time = TIME};
    check_sign(&request, "date;host;x-amz-content-sha256;x-amz-date;x-amz-storage-class",
               "98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd");
}
END_TEST

static void check_query(const presto__named_value *query, size_t count, const char *signature) {
    const presto__named_value headers[] = {
        {T("host"), T(HOST)},
        {T("x-amz-content-sha256"), T(PRESTO__NO_PAYLOAD)},
        {T("x-amz-date"), T(TIME)},
    };
    const presto__sigv4_request request = {.method = "GET",
                                           .path = T("/"),
                                           .query = query,
                                           .query_count = count,
                                           .headers = headers,
                                           .header_count = 3,
                                           .payload_hash = PRESTO__NO_PAYLOAD,
                                           .time = TIME};
    check_sign(&request, "host;x-amz-content-sha256;x-amz-date", signature);
}

START_TEST(queries_with_and_without_values_are_signed_as_aws_shows) {
    const presto__named_value lifecycle[] = {{T("lifecycle"), T("")}};
    const presto__named_value list[] = {{T("prefix"), T("J")}, {T("max-keys"), T("2")}};
    check_query(lifecycle, 1, "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543");
    check_query(list, 2, "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7");
}
END_TEST

START_TEST(all_but_unreserved_characters_are_encoded) {
    uint8_t all[256];
    size_t plain = 0;
    presto_buffer out = {0};
    for (size_t i = 0; i < 256; i++)
        all[i] = (uint8_t)i;
    for (size_t i = 0; i < 256; i++) {
        out.bytes = 0;
        ck_assert_ok(presto__percent_encode(presto_span_of(all + i, 1), true, &out, &err), &err);
        plain += out.bytes == 1;
        if (out.bytes == 1) {
            ck_assert_uint_eq(out.data[0], i);
            continue;
        }
        char wanted[4];
        snprintf(wanted, sizeof wanted, "%%%02X", (unsigned)i);
        ck_assert(presto_span_is(presto_buffer_span(&out), wanted));
    }
    ck_assert_uint_eq(plain, 26 + 26 + 10 + 4 + 1);
    out.bytes = 0;
    ck_assert_ok(presto__percent_encode(T("a/b c+ü"), false, &out, &err), &err);
    ck_assert(presto_span_is(presto_buffer_span(&out), "a%2Fb%20c%2B%C3%BC"));
    presto_buffer_done(&out);
}
END_TEST

START_TEST(queries_are_sorted_by_what_is_encoded) {
    const presto__named_value query[] = {{T("ab"), T("1")}, {T("a/"), T("2")}, {T("a"), T("z")},
                                         {T("a"), T("b")},  {T("a-"), T("")},  {T("B"), T("&=")}};
    presto_buffer out = {0};
    ck_assert_ok(presto__query_encode(query, 6, &out, &err), &err);
    ck_assert(presto_span_is(presto_buffer_span(&out), "B=%26%3D&a=b&a=z&a%2F=2&a-=&ab=1"));
    out.bytes = 0;
    ck_assert_ok(presto__query_encode(NULL, 0, &out, &err), &err);
    ck_assert_uint_eq(out.bytes, 0);
    presto_buffer_done(&out);
}
END_TEST

START_TEST(digests_are_those_of_the_standards) {
    uint8_t digest[PRESTO__SHA256_BYTES];
    char text[PRESTO__SHA256_HEX_BYTES];
    ck_assert_ok(presto__crypto_load(&err), &err);
    ck_assert_ok(presto__sha256(T(""), digest, &err), &err);
    presto__hex(digest, text);
    ck_assert_str_eq(text, PRESTO__NO_PAYLOAD);
    /* RFC 4231, test case 2. */
    ck_assert_ok(presto__hmac_sha256(T("Jefe"), T("what do ya want for nothing?"), digest, &err),
                 &err);
    presto__hex(digest, text);
    ck_assert_str_eq(text, "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
}
END_TEST

int main(void) {
    const TTest *const tests[] = {
        a_range_of_an_object_is_signed_as_aws_shows,
        an_upload_with_a_dollar_in_its_key_is_signed_as_aws_shows,
        queries_with_and_without_values_are_signed_as_aws_shows,
        all_but_unreserved_characters_are_encoded,
        queries_are_sorted_by_what_is_encoded,
        digests_are_those_of_the_standards,
    };
    return presto_check_main("sigv4", tests, sizeof tests / sizeof tests[0], 30);
}
