/* SPDX-License-Identifier: Apache-2.0 */
/* The words that name a codec: what is refused, and how a spec is fitted to a tensor. */
#include "../../../records/records_internal.h"
#include "presto_check.h"

#include <presto/codec.h>

static presto_error err;

START_TEST(a_wrong_text_says_what_would_be_right) {
    static const struct {
        const char *text;
        presto_status status;
        const char *hint;
    } wrong[] = {
        {"brotli", PRESTO_ERR_NOT_FOUND, "unknown codec 'brotli' (known: none, zlib, "},
        {"", PRESTO_ERR_NOT_FOUND, "zstd"},
        {"ZSTD", PRESTO_ERR_NOT_FOUND, "unknown codec 'ZSTD', did you mean 'zstd'? (known: "},
        {"zst:3", PRESTO_ERR_NOT_FOUND, "did you mean 'zstd'?"},
        {"blosc-zst", PRESTO_ERR_NOT_FOUND, "did you mean 'blosc-zstd'?"},
        {"zstd:23", PRESTO_ERR_ARGUMENT, "-100 to 22"},
        {"zstd:", PRESTO_ERR_ARGUMENT, "-100 to 22"},
        {"zstd: 3", PRESTO_ERR_ARGUMENT, "-100 to 22"},
        {"zstd:+3", PRESTO_ERR_ARGUMENT, "level ''"},
        {"zstd:3x", PRESTO_ERR_ARGUMENT, "level '3x'"},
        {"zlib:13", PRESTO_ERR_ARGUMENT, "0 to 12"},
        {"snappy:1", PRESTO_ERR_ARGUMENT, "no levels"},
        {"none+bitshuffle", PRESTO_ERR_ARGUMENT, "it has none"},
        {"lz4+delta3", PRESTO_ERR_ARGUMENT, "it has none"},
        {"zstd+bitshuffle", PRESTO_ERR_ARGUMENT, "it has dict delta"},
        {"blosc-lz4+dict", PRESTO_ERR_ARGUMENT, "it has bitshuffle"},
        {"zstd+delta0", PRESTO_ERR_ARGUMENT, "1 to 256"},
        {"zstd+delta257", PRESTO_ERR_ARGUMENT, "1 to 256"},
        {"zstd+delta3x", PRESTO_ERR_ARGUMENT, "1 to 256"},
        {"zstd+", PRESTO_ERR_ARGUMENT, "no variant ''"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        presto_codec_spec spec = {0};
        ck_assert_status(presto_codec_parse(wrong[i].text, &spec, &err), wrong[i].status, &err);
        ck_assert_msg(strstr(err.message, wrong[i].hint) != NULL, "'%s' gives: %s", wrong[i].text,
                      err.message);
        ck_assert_ptr_null(spec.type);
    }
}
END_TEST

START_TEST(a_spec_is_fitted_to_the_tensor) {
    presto_codec_spec spec;
    char text[PRESTO_CODEC_TEXT_BYTES];
    presto_tensor_spec image = {PRESTO_UINT8, 3, {224, 224, 3}};
    presto_tensor_spec series = {PRESTO_INT16, 2, {-1, 2}};
    presto_tensor_spec weights = {PRESTO_FLOAT32, 1, {100}};
    ck_assert_ok(presto_codec_parse("zstd+delta", &spec, &err), &err);
    ck_assert_ok(presto__codec_spec_fit(&spec, &image, &err), &err);
    ck_assert_str_eq(presto__codec_format(&spec, text), "zstd+delta3");
    ck_assert_uint_eq(spec.type_bytes, 1);
    ck_assert_ok(presto_codec_parse("zstd+delta", &spec, &err), &err);
    ck_assert_ok(presto__codec_spec_fit(&spec, &series, &err), &err);
    ck_assert_str_eq(presto__codec_format(&spec, text), "zstd+delta2");
    ck_assert_ok(presto_codec_parse("zstd+delta", &spec, &err), &err);
    ck_assert_status(presto__codec_spec_fit(&spec, &weights, &err), PRESTO_ERR_ARGUMENT, &err);
    ck_assert_status(presto__codec_spec_fit(&spec, NULL, &err), PRESTO_ERR_ARGUMENT, &err);
    ck_assert_ok(presto_codec_parse("blosc-zstd", &spec, &err), &err);
    ck_assert_ok(presto__codec_spec_fit(&spec, &weights, &err), &err);
    ck_assert_uint_eq(spec.type_bytes, 4);
}
END_TEST

int main(void) {
    const TTest *const tests[] = {
        a_wrong_text_says_what_would_be_right,
        a_spec_is_fitted_to_the_tensor,
    };
    return presto_check_main("codec_spec", tests, sizeof tests / sizeof tests[0], 120);
}
