/* SPDX-License-Identifier: Apache-2.0 */
/* tokenizer.json of bpe-encode: small tokenizers made here, those that are refused, damage. */
#include "steps_check.h"
#include "text/pattern_internal.h"
#include "text/sentencepiece_internal.h"
#include "text/tokenizer_internal.h"

/* ---- tokenizer.json ---- */

#define BYTE_LEVEL "{\"type\":\"ByteLevel\",\"add_prefix_space\":false}"
#define TOKENIZER(model, rest)                                                                     \
    "{\"model\":{\"type\":\"BPE\"," model "},\"pre_tokenizer\":" BYTE_LEVEL rest "}"
#define TINY "\"vocab\":{\"a\":0,\"b\":1,\"ab\":2},\"merges\":[\"a b\"]"

static presto_status try_json(const char *json, const char *merges, const char *text,
                              presto_buffer *ids, presto_error *err) {
    presto__tokenizer *tokenizer = NULL;
    presto_span span = merges != NULL ? presto_span_of_text(merges) : presto_span_of(NULL, 0);
    presto_status status = presto__tokenizer_new(
        presto_span_of_text(json), &(presto__merges){span, "merges.txt"}, &tokenizer, err);
    if (status >= 0) {
        presto__tokenizer_scratch *scratch = presto__tokenizer_scratch_new(true);
        ck_assert_ptr_nonnull(scratch);
        status = presto__tokenizer_encode(tokenizer, scratch, presto_span_of_text(text), ids, err);
        presto__tokenizer_scratch_free(scratch);
    }
    presto__tokenizer_free(tokenizer);
    return status;
}

static void refuse_json(const char *json, const char *merges, presto_status want,
                        const char *part) {
    presto_error err;
    presto_buffer ids = {0};
    ck_assert_status(try_json(json, merges, "ab", &ids, &err), want, &err);
    ck_assert_msg(strstr(err.message, part) != NULL, "'%s' lacks '%s'", err.message, part);
    presto_buffer_done(&ids);
}

static void expect_ids(const char *json, const char *merges, const char *text, const char *want) {
    presto_error err;
    presto_buffer ids = {0};
    char got[200] = "";
    ck_assert_ok(try_json(json, merges, text, &ids, &err), &err);
    for (size_t i = 0; i < ids.bytes / 4; i++) {
        size_t used = strlen(got);
        snprintf(got + used, sizeof got - used, "%s%d", i > 0 ? " " : "",
                 ((const int32_t *)(const void *)ids.data)[i]);
    }
    ck_assert_str_eq(got, want);
    presto_buffer_done(&ids);
}

START_TEST(small_tokenizers_do_what_their_files_say) {
    expect_ids(TOKENIZER(TINY, ""), NULL, "abba?", "2 1 0");
    expect_ids("{\"a\":0,\"b\":1,\"ab\":2}", "#version: 0.2\na b\n", "aab", "0 2");
    expect_ids(TOKENIZER(TINY ",\"unk_token\":\"b\"", ""), NULL, "a??a", "0 1 1 0");
    expect_ids(TOKENIZER(TINY ",\"unk_token\":\"b\",\"fuse_unk\":true", ""), NULL, "a??a", "0 1 0");
    expect_ids(TOKENIZER(TINY, ",\"added_tokens\":[{\"id\":3,\"content\":\"<x>\",\"lstrip\":true},"
                               "{\"id\":4,\"content\":\"<x>a\"}]"),
               NULL, "a \xe3\x80\x80<x>b<x>ab", "0 3 1 4 1");
    expect_ids(TOKENIZER(TINY,
                         ",\"post_processor\":{\"type\":\"RobertaProcessing\",\"cls\":[\"a\",0],"
                         "\"sep\":[\"b\",1]}"),
               NULL, "", "0 1");
}
END_TEST

START_TEST(what_a_tokenizer_asks_for_and_is_not_done_is_named) {
    static const char pattern[] = "the pattern";
    refuse_json("{\"model\":{\"type\":\"WordPiece\"}}", NULL, PRESTO_ERR_UNSUPPORTED,
                "'WordPiece'");
    refuse_json(TOKENIZER(TINY ",\"dropout\":0.5", ""), NULL, PRESTO_ERR_UNSUPPORTED, "dropout");
    refuse_json(TOKENIZER(TINY ",\"end_of_word_suffix\":\"</w>\"", ""), NULL,
                PRESTO_ERR_UNSUPPORTED, "end_of_word_suffix");
    refuse_json(TOKENIZER(TINY ",\"byte_fallback\":true", ""), NULL, PRESTO_ERR_UNSUPPORTED,
                "byte_fallback");
    refuse_json(TOKENIZER(TINY, ",\"normalizer\":{\"type\":\"Lowercase\"}"), NULL,
                PRESTO_ERR_UNSUPPORTED, "the normalizer 'Lowercase'");
    refuse_json(TOKENIZER(TINY, ",\"post_processor\":{\"type\":\"Other\"}"), NULL,
                PRESTO_ERR_UNSUPPORTED, "the post_processor 'Other'");
    refuse_json(TOKENIZER(TINY, ",\"truncation\":{\"max_length\":3}"), NULL, PRESTO_ERR_UNSUPPORTED,
                "truncation");
    refuse_json(TOKENIZER(TINY, ",\"padding\":{}"), NULL, PRESTO_ERR_UNSUPPORTED, "padding");
    refuse_json(TOKENIZER(TINY, ",\"added_tokens\":[{\"id\":7,\"content\":\"<x>\"}]"), NULL,
                PRESTO_ERR_UNSUPPORTED, "has the id 7, but the library tokenizers gives it 3");
    refuse_json(
        TOKENIZER(TINY, ",\"added_tokens\":[{\"id\":3,\"content\":\"x\",\"single_word\":true}]"),
        NULL, PRESTO_ERR_UNSUPPORTED, "single_word");
    refuse_json(
        "{\"model\":{\"vocab\":{},\"merges\":[]},\"pre_tokenizer\":{\"type\":\"Whitespace\"}}",
        NULL, PRESTO_ERR_UNSUPPORTED, "the pre_tokenizer 'Whitespace'");
    refuse_json("{\"model\":{\"vocab\":{},\"merges\":[]}}", NULL, PRESTO_ERR_UNSUPPORTED,
                "no pre_tokenizer ByteLevel");
    static const char *const patterns[] = {
        "a(?<b>c)",    "(?<=a)b",    "^a",    "a$",    "a.",   "\\\\w", "\\\\h",
        "[[a]]",       "[a&&b]",     "a{2}+", "a{,3}", "(a)*", "a*",    "(?i:ss)",
        "(?i:\u00e9)", "\\\\p{Han}", "(a",    "a)",    "[a",   "\\\\"};
    for (size_t i = 0; i < sizeof patterns / sizeof patterns[0]; i++) {
        char json[600];
        snprintf(json, sizeof json,
                 "{\"model\":{\"vocab\":{},\"merges\":[]},\"pre_tokenizer\":{\"type\":\"Split\","
                 "\"behavior\":\"Isolated\",\"pattern\":{\"Regex\":\"%s\"}}}",
                 patterns[i]);
        refuse_json(json, NULL, PRESTO_ERR_UNSUPPORTED, pattern);
    }
}
END_TEST

START_TEST(damaged_tokenizers_are_errors) {
    refuse_json("{", NULL, PRESTO_ERR_CORRUPT, "not a tokenizer.json or vocab.json");
    refuse_json("[]", NULL, PRESTO_ERR_CORRUPT, "neither");
    refuse_json("{\"a\":\"b\"}", NULL, PRESTO_ERR_CORRUPT, "neither");
    refuse_json("{\"a\":0}", NULL, PRESTO_ERR_ARGUMENT, "bpe-encode.merges=merges.txt");
    refuse_json(TOKENIZER(TINY, ""), "a b", PRESTO_ERR_ARGUMENT, "remove the option 'merges'");
    refuse_json("{\"a\":0,\"b\":0}", "", PRESTO_ERR_CORRUPT,
                "two tokens of the model have the id 0");
    refuse_json("{\"a\":0,\"b\":-1}", "", PRESTO_ERR_CORRUPT, "the id of the token 'b'");
    refuse_json("{\"a\":0,\"b\":2147483647}", "", PRESTO_ERR_CORRUPT, "the id of the token 'b'");
    refuse_json("{\"a\":0,\"b\":1}", "a b\n", PRESTO_ERR_CORRUPT,
                "merge 0 of the model needs the token 'ab'");
    refuse_json("{\"a\":0,\"b\":1}", "a c\n", PRESTO_ERR_CORRUPT, "needs the token 'c'");
    refuse_json("{\"a\":0,\"b\":1}", "ab\n", PRESTO_ERR_CORRUPT, "not two tokens");
    refuse_json("{\"a\":0,\"b\":1}", "a b c\n", PRESTO_ERR_CORRUPT, "not two tokens");
}
END_TEST

/* Each place is tried in exponentially many ways. */
/* Of U+0080 to U+07FF. */
static size_t put_utf8(char *out, uint32_t c) {
    out[0] = (char)(0xc0 | c >> 6);
    out[1] = (char)(0x80 | (c & 0x3f));
    return 2;
}

/* Ranges in any order, which may meet. */
START_TEST(sets_have_the_characters_of_their_ranges) {
    static uint8_t categories[0x110000]; /* none is used */
    presto_rng rng = test_rng(0);
    for (size_t round = 0; round < 200; round++) {
        presto__pattern pattern;
        presto_error err;
        bool is_in[0x400] = {false}, is_negated = round % 2 == 1;
        char text[512] = "[^";
        uint32_t count = (uint32_t)presto_rng_below(&rng, 20) + 1;
        size_t used = is_negated ? 2 : 1;
        for (uint32_t i = 0; i < count; i++) {
            uint32_t low = 0x80 + (uint32_t)presto_rng_below(&rng, 0x300);
            uint32_t high = low + (uint32_t)presto_rng_below(&rng, 0x20);
            used += put_utf8(text + used, low);
            text[used++] = '-';
            used += put_utf8(text + used, high);
            for (uint32_t c = low; c <= high; c++)
                is_in[c] = true;
        }
        text[used++] = ']';
        ck_assert_ok(
            presto__pattern_compile(presto_span_of(text, used), categories, &pattern, &err), &err);
        for (uint32_t c = 0x80; c < 0x400; c++) {
            char one[4];
            presto_span found;
            uint64_t steps = 1000;
            presto_status status = presto__pattern_find(
                &pattern, presto_span_of(one, put_utf8(one, c)), 0, &found, &steps);
            ck_assert_int_eq(status, is_in[c] != is_negated ? PRESTO_OK : PRESTO_END);
        }
    }
}
END_TEST

START_TEST(a_pattern_without_end_is_an_error_of_its_text) {
    char json[2000], text[200], repeats[81];
    presto_error err;
    presto_buffer ids = {0};
    for (size_t i = 0; i < 80; i++)
        repeats[i] = "a?"[i % 2];
    repeats[80] = '\0';
    snprintf(json, sizeof json,
             "{\"model\":{\"vocab\":{\"a\":0},\"merges\":[]},\"pre_tokenizer\":{\"type\":"
             "\"Sequence\",\"pretokenizers\":[{\"type\":\"Split\",\"behavior\":\"Isolated\","
             "\"pattern\":{\"Regex\":\"%sb\"}}," BYTE_LEVEL "]}}",
             repeats);
    memset(text, 'a', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    ck_assert_status(try_json(json, NULL, text, &ids, &err), PRESTO_ERR_LIMIT, &err);
    ck_assert_ptr_nonnull(strstr(err.message, "takes too long"));
    presto_buffer_done(&ids);
}
END_TEST

/* `head`, `piece` `count` times, `tail`; the caller frees. */
static char *repeated(const char *head, const char *piece, size_t count, const char *tail) {
    size_t head_bytes = strlen(head), bytes = strlen(piece);
    char *text = malloc(head_bytes + count * bytes + strlen(tail) + 1);
    ck_assert_ptr_nonnull(text);
    memcpy(text, head, head_bytes);
    for (size_t i = 0; i < count; i++)
        memcpy(text + head_bytes + i * bytes, piece, bytes);
    memcpy(text + head_bytes + count * bytes, tail, strlen(tail) + 1);
    return text;
}

START_TEST(values_have_a_limit_before_they_are_parsed) {
    char *json = repeated("{\"a\":[", "[],", ((size_t)8 << 20) / 9 + 1, "0]}");
    refuse_json(json, NULL, PRESTO_ERR_LIMIT, "more values than such a file needs");
    free(json);
    json = repeated(
        "{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0,\"b\":1,\"ab\":2},\"merges\":[",
        "[\"a\",\"b\"],", 580000, "[\"a\",\"b\"]]},\"pre_tokenizer\":{\"type\":\"Whitespace\"}}");
    refuse_json(json, NULL, PRESTO_ERR_UNSUPPORTED, "'Whitespace'"); /* behind the merges */
    free(json);
}
END_TEST

#define ADDED(items) TOKENIZER(TINY, ",\"added_tokens\":[" items "]")
#define SPACE "{\"id\":3,\"content\":\" \",\"lstrip\":true,\"rstrip\":true}"

START_TEST(long_runs_of_space_are_walked_once) {
    presto_error err;
    presto_buffer ids = {0};
    const size_t count = 2000000; /* by each of so many tokens again, it would take hours */
    char *text = repeated("a", " ", count, "b");
    ck_assert_ok(try_json(ADDED(SPACE), NULL, text, &ids, &err), &err);
    ck_assert_uint_eq(ids.bytes / sizeof(int32_t), count + 2);
    free(text);
    presto_buffer_done(&ids);
    text = repeated("a", " \t", count / 2, "b");
    ck_assert_ok(try_json(ADDED(SPACE ",{\"id\":4,\"content\":\"\\t\"}"), NULL, text, &ids, &err),
                 &err);
    ck_assert_uint_eq(ids.bytes / sizeof(int32_t), count + 2);
    free(text);
    presto_buffer_done(&ids);
}
END_TEST

START_TEST(added_tokens_that_nearly_match_everywhere_are_an_error_of_the_text) {
    char *json = repeated("{\"model\":{\"type\":\"BPE\"," TINY "},\"pre_tokenizer\":" BYTE_LEVEL
                          ",\"added_tokens\":[{\"id\":3,\"content\":\"",
                          "a", 50000, "b\"}]}");
    char *text = repeated("", "a", 100000, "");
    presto_error err;
    presto_buffer ids = {0};
    ck_assert_status(try_json(json, NULL, text, &ids, &err), PRESTO_ERR_LIMIT, &err);
    ck_assert_ptr_nonnull(strstr(err.message, "the added tokens of the tokenizer take too long"));
    presto_buffer_done(&ids);
    free(text);
    free(json);
}
END_TEST

int main(void) {
    const TTest *const tests[] = {
        small_tokenizers_do_what_their_files_say,
        what_a_tokenizer_asks_for_and_is_not_done_is_named,
        damaged_tokenizers_are_errors,
        sets_have_the_characters_of_their_ranges,
        a_pattern_without_end_is_an_error_of_its_text,
        values_have_a_limit_before_they_are_parsed,
        long_runs_of_space_are_walked_once,
        added_tokens_that_nearly_match_everywhere_are_an_error_of_the_text,
    };
    return presto_check_main("tokenizer-json", tests, sizeof tests / sizeof tests[0], 300);
}
