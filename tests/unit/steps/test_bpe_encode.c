/* SPDX-License-Identifier: Apache-2.0 */
/* bpe-encode: ids as those of the library that a model comes from, and models that are none. */
#include <pthread.h>
#include <zlib.h>

#include "../../../base/rng_internal.h"
#include "../../../steps/pipelines_internal.h"
#include "steps_check.h"
#include "text/sentencepiece_internal.h"
#include "text/tokenizer_internal.h"

#define GOLDEN(name) PRESTO_GOLDEN_DIR "/tokenizers/" name

/* The first ones are of SentencePiece. */
static const char *const models[] = {"unigram", "bpe",     "bpe-bytes", "suffix",
                                     "gpt2",    "roberta", "llama3"};
enum { SENTENCEPIECE_COUNT = 4, MODEL_COUNT = sizeof models / sizeof models[0] };
static size_t first_model;

/* ---- running it ---- */

static presto_status open_with(rig *r, const char *model, presto_error *err) {
    char step[700];
    snprintf(step, sizeof step, "{step: bpe-encode, model: \"%s\"}", model);
    return rig_open(r, step, &string_spec, false, err);
}

static void open_golden(rig *r, const char *name) {
    char step[1400];
    presto_error err;
    if (strcmp(name, "gpt2") == 0)
        snprintf(step, sizeof step,
                 "{step: bpe-encode, model: \"" GOLDEN("vocab.json") "\", merges: \"" GOLDEN(
                     "merges.txt") "\"}");
    else
        snprintf(step, sizeof step, "{step: bpe-encode, model: \"" GOLDEN("%s%s") "\"}", name,
                 strcmp(name, "roberta") == 0 || strcmp(name, "llama3") == 0 ? ".json" : ".model");
    ck_assert_ok(rig_open(r, step, &string_spec, false, &err), &err);
}

/* The ids of `text`, as they lie in the worker. */
static presto_span encode(rig *r, presto_span text) {
    rig_options options = {0};
    presto_tensor out;
    presto_error err;
    ck_assert_ok(rig_run_bytes(r, &options, text, &out, &err), &err);
    ck_assert_int_eq(out.spec.dtype, PRESTO_INT32);
    ck_assert_int_eq(out.spec.rank, 1);
    return presto_span_of(out.data, presto_tensor_bytes(&out));
}

static presto_span encode_text(rig *r, const char *text) {
    return encode(r, presto_span_of_text(text));
}

/* What golden_tokenizers.py wrote: int32, as one zlib stream. */
static int32_t *golden_ids(const char *name, uLongf *bytes_out) {
    char path[600];
    size_t bytes;
    snprintf(path, sizeof path, GOLDEN("%s.ids.z"), name);
    uint8_t *packed = presto_check_read_file(path, &bytes);
    *bytes_out = 4 << 20;
    int32_t *ids = malloc(*bytes_out);
    ck_assert_ptr_nonnull(ids);
    ck_assert_int_eq(uncompress((uint8_t *)ids, bytes_out, packed, bytes), Z_OK);
    free(packed);
    return ids;
}

START_TEST(ids_are_those_of_the_library) {
    size_t bytes;
    uint8_t *text = presto_check_read_file(GOLDEN("mixed.txt"), &bytes);
    for (size_t i = first_model; i < MODEL_COUNT; i++) {
        rig r;
        uLongf want_bytes;
        int32_t *want = golden_ids(models[i], &want_bytes);
        open_golden(&r, models[i]);
        presto_span got = encode(&r, presto_span_of(text, bytes));
        const int32_t *ids = (const int32_t *)(const void *)got.data;
        for (size_t at = 0; at < got.bytes / 4 && at < want_bytes / 4; at++)
            ck_assert_msg(ids[at] == want[at], "%s: id %zu is %d, not %d", models[i], at, ids[at],
                          want[at]);
        ck_assert_uint_eq(got.bytes, want_bytes);
        rig_close(&r);
        free(want);
    }
    free(text);
}
END_TEST

/* ---- word by word ---- */

static presto__sentencepiece *load_golden(const char *path) {
    size_t bytes;
    presto_error err;
    presto__sentencepiece *model = NULL;
    uint8_t *content = presto_check_read_file(path, &bytes);
    ck_assert_ok(presto__sentencepiece_new(presto_span_of(content, bytes), &model, &err), &err);
    free(content);
    return model;
}

/* Pieces of text in any order: words, white space of all kinds, what the map changes, damage. */
static size_t draw_text(presto_rng *rng, char *text, size_t room) {
    static const char *const parts[] = {"All",
                                        "human",
                                        "beings",
                                        "a",
                                        "aA",
                                        "12",
                                        ".",
                                        " ",
                                        " ",
                                        " ",
                                        "  ",
                                        "\t",
                                        "\n",
                                        "\r\n",
                                        "\xc2\xa0",
                                        "\xe3\x80\x80",
                                        "\xe2\x80\x8b",
                                        "\xc2\xad",
                                        "\xff",
                                        "\xe4",
                                        "\xe4\xba",
                                        "\xe4\xba\xba",
                                        "\xcc\x88",
                                        "\xc2\xa8",
                                        "\xef\xb7\xba",
                                        "e",
                                        "\xcc\x81",
                                        "[SEP]",
                                        "\xf0\x90\x8c\xb0",
                                        "\xe2\x96\x81",
                                        "\xe2\x96",
                                        "<mask>",
                                        "<0x41>",
                                        "\xef\xbc\xa1",
                                        "\x01"};
    size_t bytes = 0, count = presto_rng_below(rng, 40);
    for (size_t i = 0; i < count; i++) {
        /* U+2581 is rare, as it ends the cutting. */
        size_t part = presto_rng_below(rng, sizeof parts / sizeof *parts);
        if (strcmp(parts[part], "\xe2\x96\x81") == 0 && presto_rng_below(rng, 8) > 0)
            continue;
        size_t more = strlen(parts[part]);
        if (bytes + more > room)
            break;
        memcpy(text + bytes, parts[part], more);
        bytes += more;
    }
    return bytes;
}

START_TEST(words_have_the_ids_that_they_have_in_their_text) {
    static const char *const files[] = {GOLDEN("bpe.model"), GOLDEN("bpe-bytes.model"),
                                        GOLDEN("suffix.model"), GOLDEN("unigram.model")};
    presto_rng rng;
    char text[512];
    presto__rng_init(&rng, &(presto__rng_key){.seed = presto_check_seed()});
    for (size_t f = 0; f < sizeof files / sizeof *files; f++) {
        presto__sentencepiece *model = load_golden(files[f]);
        ck_assert_int_eq(presto__sentencepiece_get_info(model)->words_stand_alone, f == 0);
        presto__sentencepiece_scratch *scratch = presto__sentencepiece_scratch_new();
        presto_buffer whole = {0}, words = {0};
        presto_error err;
        for (size_t i = presto_check_rounds(3000); i > 0; i--) {
            presto_span drawn = presto_span_of(text, draw_text(&rng, text, sizeof text));
            whole.bytes = words.bytes = 0;
            ck_assert_ok(presto__sentencepiece_encode(model, NULL, drawn, &whole, &err), &err);
            ck_assert_ok(presto__sentencepiece_encode(model, scratch, drawn, &words, &err), &err);
            ck_assert_uint_eq(words.bytes, whole.bytes);
            if (whole.bytes > 0)
                ck_assert_mem_eq(words.data, whole.data, whole.bytes);
        }
        presto_buffer_done(&whole);
        presto_buffer_done(&words);
        presto__sentencepiece_scratch_free(scratch);
        presto__sentencepiece_free(model);
    }
}
END_TEST

START_TEST(a_text_may_be_bytes_or_empty) {
    rig r;
    presto_error err;
    rig_options options = {0};
    open_golden(&r, "bpe");
    ck_assert_uint_eq(encode_text(&r, "").bytes, 0);
    presto_span text = encode_text(&r, "All human beings");
    uint8_t *want = presto_check_copy(text);
    size_t want_bytes = text.bytes;
    ck_assert_uint_gt(want_bytes, 0);
    presto_tensor bytes = {.spec = {PRESTO_UINT8, 1, {16}}, .data = "All human beings"};
    ck_assert_ok(rig_run(&r, &options, &bytes, &err), &err);
    ck_assert_uint_eq(presto_tensor_bytes(&bytes), want_bytes);
    ck_assert_mem_eq(bytes.data, want, want_bytes);
    presto_tensor image = {.spec = {PRESTO_UINT8, 2, {4, 4}}, .data = "All human beings"};
    ck_assert_status(rig_run(&r, &options, &image, &err), PRESTO_ERR_TYPE, &err);
    ck_assert_str_eq(err.message, "bpe-encode: needs string or uint8[?], gets uint8[4,4]");
    free(want);
    rig_close(&r);
}
END_TEST

static void *encode_much(void *user) {
    rig *shared = user;
    rig own = *shared;
    presto_error err;
    presto__plan_worker_options worker = {.struct_bytes = sizeof worker, .arena = &own.arena};
    own.arena = (presto_arena){0};
    ck_assert_ok(presto__plan_worker_new(shared->plan, &worker, &own.worker, &err), &err);
    for (int i = 0; i < 200; i++) {
        presto_span text = encode_text(&own, "All human beings are born free \xe4\xba\xba 12");
        ck_assert_uint_gt(text.bytes, 40);
    }
    presto__plan_worker_free(own.worker);
    presto_arena_done(&own.arena);
    return NULL;
}

START_TEST(threads_share_a_model) {
    for (size_t i = first_model; i < MODEL_COUNT; i++) {
        rig r;
        pthread_t threads[4];
        open_golden(&r, models[i]);
        for (size_t t = 0; t < 4; t++)
            ck_assert_int_eq(pthread_create(&threads[t], NULL, encode_much, &r), 0);
        for (size_t t = 0; t < 4; t++)
            pthread_join(threads[t], NULL);
        rig_close(&r);
    }
}
END_TEST

/* The library itself takes quadratic time for runs of unknown characters. */
START_TEST(long_words_and_long_runs_of_unknown_characters_take_linear_time) {
    static const char *const units[] = {"\xf0\x90\x8c\xb0", "a", " ", "\xe4\xba\xba", "\xff", "aA"};
    size_t bytes = 256 << 10;
    char *text = malloc(bytes);
    ck_assert_ptr_nonnull(text);
    for (size_t i = 0; i < MODEL_COUNT * (sizeof units / sizeof units[0]); i++) {
        rig r;
        const char *unit = units[i / MODEL_COUNT];
        if (i % MODEL_COUNT < first_model)
            continue;
        size_t unit_bytes = strlen(unit);
        for (size_t at = 0; at < bytes; at++)
            text[at] = unit[at % unit_bytes];
        open_golden(&r, models[i % MODEL_COUNT]);
        presto_span ids = encode(&r, presto_span_of(text, bytes / unit_bytes * unit_bytes));
        if (i % MODEL_COUNT >= SENTENCEPIECE_COUNT)
            ck_assert_uint_gt(ids.bytes, 0);
        if (i == 0)
            ck_assert_uint_eq(ids.bytes, 8); /* the dummy prefix, and one unknown token */
        rig_close(&r);
    }
    free(text);
}
END_TEST

/* ---- what is refused ---- */

START_TEST(a_missing_model_is_told_with_what_to_do) {
    rig r;
    presto_error err;
    ck_assert_status(rig_open(&r, "{step: bpe-encode}", &string_spec, false, &err),
                     PRESTO_ERR_ARGUMENT, &err);
    ck_assert_str_eq(err.message,
                     "line 3: step bpe-encode: no model: set one, e.g. --set "
                     "bpe-encode.model=FILE; docs/tokenizers.md says how to get or train one");
    rig_close(&r);
    ck_assert_status(open_with(&r, "/nowhere/x.model", &err), PRESTO_ERR_NOT_FOUND, &err);
    ck_assert_str_eq(err.file, "/nowhere/x.model");
    rig_close(&r);
    ck_assert_status(open_with(&r, "/dev", &err), PRESTO_ERR_IO, &err);
    rig_close(&r);
    ck_assert_status(open_with(&r, GOLDEN("train.txt"), &err), PRESTO_ERR_CORRUPT, &err);
    ck_assert_ptr_nonnull(strstr(err.message, "a text file, but a SentencePiece .model"));
    ck_assert_str_eq(err.file, GOLDEN("train.txt"));
    rig_close(&r);
}
END_TEST

START_TEST(long_texts_are_refused) {
    rig r;
    presto_error err;
    presto_tensor out;
    rig_options options = {0};
    ck_assert_ok(rig_open(&r,
                          "{step: bpe-encode, max-bytes: 4, model: \"" GOLDEN("bpe.model") "\"}",
                          &string_spec, false, &err),
                 &err);
    ck_assert_uint_gt(encode_text(&r, "abcd").bytes, 0);
    ck_assert_status(rig_run_bytes(&r, &options, presto_span_of_text("abcde"), &out, &err),
                     PRESTO_ERR_LIMIT, &err);
    ck_assert_str_eq(err.message, "bpe-encode: a text of 5 bytes, limit 4 (max-bytes)");
    rig_close(&r);
}
END_TEST

static presto_status try_model(presto_span bytes, presto_error *err) {
    presto__sentencepiece *model = NULL;
    uint8_t *copy = presto_check_copy(bytes);
    presto_buffer ids = {0};
    presto_status status =
        presto__sentencepiece_new(presto_span_of(copy, bytes.bytes), &model, err);
    if (status >= 0)
        presto__sentencepiece_encode(
            model, NULL, presto_span_of_text("All human \xff\xe4\xba\xba [SEP]x"), &ids, err);
    presto_buffer_done(&ids);
    presto__sentencepiece_free(model);
    free(copy);
    return status;
}

/* A cut is refused, unless it falls between two fields; damage never ends the program. */
START_TEST(models_that_are_cut_or_damaged_are_errors) {
    static const char *const files[] = {GOLDEN("unigram.model"), GOLDEN("bpe.model")};
    size_t refused = 0, tried = 0;
    for (size_t f = 0; f < 2; f++) {
        size_t bytes;
        presto_error err;
        uint8_t *content = presto_check_read_file(files[f], &bytes);
        ck_assert_ok(try_model(presto_span_of(content, bytes), &err), &err);
        for (size_t cut = 0; cut < bytes; cut += 397, tried++)
            refused += try_model(presto_span_of(content, cut), &err) < 0;
        for (size_t at = 0; at < bytes; at += 131) {
            content[at] ^= (uint8_t)(1U << at % 8);
            try_model(presto_span_of(content, bytes), &err);
            content[at] ^= (uint8_t)(1U << at % 8);
        }
        free(content);
    }
    ck_assert_uint_gt(refused, tried * 3 / 4);
}
END_TEST

/* ---- models made by hand ---- */

static void put_varint(presto_buffer *out, size_t value) {
    for (; value >= 0x80; value >>= 7)
        ck_assert_int_eq(
            presto_buffer_append(out, presto_span_of(&(uint8_t){(uint8_t)(value | 0x80)}, 1), NULL),
            0);
    ck_assert_int_eq(presto_buffer_append(out, presto_span_of(&(uint8_t){(uint8_t)value}, 1), NULL),
                     0);
}

static void put_field(presto_buffer *out, unsigned number, const void *data, size_t bytes) {
    put_varint(out, (size_t)number << 3 | 2);
    put_varint(out, bytes);
    ck_assert_int_eq(presto_buffer_append(out, presto_span_of(data, bytes), NULL), 0);
}

static void put_piece(presto_buffer *out, const void *text, size_t bytes, unsigned type) {
    presto_buffer piece = {0};
    put_field(&piece, 1, text, bytes);
    put_varint(&piece, 3 << 3);
    put_varint(&piece, type);
    put_field(out, 1, piece.data, piece.bytes);
    presto_buffer_done(&piece);
}

static presto_status try_made(presto_buffer *model, presto_error *err) {
    presto_status status = try_model(presto_buffer_span(model), err);
    presto_buffer_done(model);
    return status;
}

START_TEST(models_that_would_overflow_the_library_are_refused) {
    presto_buffer model = {0};
    presto_error err;
    static char many_a[PRESTO__SENTENCEPIECE_MAX_TOKEN_BYTES + 1];
    memset(many_a, 'a', sizeof many_a);
    put_piece(&model, "a", 1, 1);
    ck_assert_status(try_made(&model, &err), PRESTO_ERR_CORRUPT, &err);
    ck_assert_ptr_nonnull(strstr(err.message, "no token for unknown"));
    put_piece(&model, "<unk>", 5, 2);
    put_piece(&model, many_a, sizeof many_a - 1, 1);
    ck_assert_ok(try_made(&model, &err), &err);
    put_piece(&model, "<unk>", 5, 2);
    put_piece(&model, many_a, sizeof many_a, 1);
    ck_assert_status(try_made(&model, &err), PRESTO_ERR_LIMIT, &err);
    put_piece(&model, "<unk>", 5, 2);
    put_piece(&model, "", 0, 1);
    ck_assert_status(try_made(&model, &err), PRESTO_ERR_CORRUPT, &err);
    put_piece(&model, "<unk>", 5, 2);
    put_piece(&model, "a\0b", 3, 4);
    ck_assert_status(try_made(&model, &err), PRESTO_ERR_CORRUPT, &err);
    for (size_t most = 64; most <= 65; most++) {
        put_piece(&model, "<unk>", 5, 2);
        put_piece(&model, "b", 1, 1);
        for (size_t i = 1; i <= most; i++)
            put_piece(&model, many_a, i, 4);
        ck_assert_int_eq(try_made(&model, &err), most == 64 ? PRESTO_OK : PRESTO_ERR_LIMIT);
    }
    for (size_t i = 0; i <= PRESTO__MODEL_MAX_TOKENS; i++)
        put_field(&model, 1, "\n\001a", 3);
    ck_assert_status(try_made(&model, &err), PRESTO_ERR_LIMIT, &err);
    put_varint(&model, 1 << 3 | 2);
    put_varint(&model, (size_t)2 << 30); /* claims 2 GiB */
    ck_assert_status(try_made(&model, &err), PRESTO_ERR_TRUNCATED, &err);
}
END_TEST

START_TEST(long_tokens_are_not_looked_for_in_long_texts) {
    static char many_a[PRESTO__SENTENCEPIECE_MAX_TOKEN_BYTES];
    size_t most = PRESTO__SENTENCEPIECE_MAX_COMPARED_BYTES / sizeof many_a;
    presto_buffer model = {0}, ids = {0};
    presto__sentencepiece *loaded = NULL;
    presto_error err;
    memset(many_a, 'a', sizeof many_a);
    put_piece(&model, "<unk>", 5, 2);
    put_piece(&model, "b", 1, 1);
    put_piece(&model, many_a, sizeof many_a, 1);
    ck_assert_ok(presto__sentencepiece_new(presto_buffer_span(&model), &loaded, &err), &err);
    char *text = malloc(most + 1);
    ck_assert_ptr_nonnull(text);
    memset(text, 'b', most + 1);
    ck_assert_ok(presto__sentencepiece_encode(loaded, NULL, presto_span_of(text, most), &ids, &err),
                 &err);
    ck_assert_status(
        presto__sentencepiece_encode(loaded, NULL, presto_span_of(text, most + 1), &ids, &err),
        PRESTO_ERR_LIMIT, &err);
    ck_assert_str_eq(err.message,
                     "a text of 524289 bytes, or 524289 when its characters are mapped, and the "
                     "model has tokens of up to 4096 bytes: it would take too long; cut it into "
                     "texts of 174762 bytes at most");
    memset(text, ' ', most / 3 + 1); /* three bytes each */
    ck_assert_status(
        presto__sentencepiece_encode(loaded, NULL, presto_span_of(text, most), &ids, &err),
        PRESTO_ERR_LIMIT, &err);
    free(text);
    presto__sentencepiece_free(loaded);
    presto_buffer_done(&model);
    presto_buffer_done(&ids);
}
END_TEST

/* A map of characters whose array has 512 units; unit(i, value) sets one. */
enum { UNITS = 512 };

static void put_map(presto_buffer *model, const uint32_t *units, const char *texts,
                    size_t text_bytes) {
    uint8_t map[4 + UNITS * 4 + 1024] = {UNITS * 4 & 0xff, UNITS * 4 >> 8};
    for (size_t i = 0; i < UNITS; i++)
        for (size_t b = 0; b < 4; b++)
            map[4 + i * 4 + b] = (uint8_t)(units[i] >> 8 * b);
    memcpy(map + 4 + sizeof(uint32_t) * UNITS, texts, text_bytes);
    presto_buffer spec = {0};
    put_piece(model, "<unk>", 5, 2);
    put_piece(model, "b", 1, 1);
    put_field(&spec, 2, map, 4 + UNITS * 4 + text_bytes);
    put_field(model, 3, spec.data, spec.bytes);
    presto_buffer_done(&spec);
}

static presto_status try_map(const uint32_t *units, const char *texts, size_t text_bytes,
                             presto_error *err) {
    presto_buffer model = {0};
    put_map(&model, units, texts, text_bytes);
    return try_made(&model, err);
}

/* The unit of a node that byte `label` leads to, with its children at `at ^ offset ^ byte`. */
static uint32_t unit(uint32_t label, uint32_t offset, bool is_entry) {
    return offset << 10 | (is_entry ? 0x100U : 0) | label;
}

START_TEST(maps_of_characters_are_walked_before_they_are_used) {
    presto_error err;
    uint32_t units[UNITS];
    char long_text[256];
    for (uint32_t i = 0; i < UNITS; i++)
        units[i] = ~i & 0xff; /* no label fits */
    memset(long_text, 'x', sizeof long_text - 1);
    long_text[sizeof long_text - 1] = '\0';
    units[0] = unit(0, 256, false);          /* children at 256 ^ byte */
    units[256 ^ 'a'] = unit('a', 'q', true); /* "a" is a key; its value stands at 256 ^ 'a' ^ 'q' */
    units[256 ^ 'a' ^ 'q'] = UINT32_C(0x80000001);
    ck_assert_ok(try_map(units, "\0ab", 4, &err), &err);
    ck_assert_status(try_map(units, "", 1, &err), PRESTO_ERR_CORRUPT, &err);     /* text 1 of 0 */
    ck_assert_status(try_map(units, "\0ab", 3, &err), PRESTO_ERR_CORRUPT, &err); /* no NUL */
    ck_assert_status(try_map(units, long_text, sizeof long_text, &err), PRESTO_ERR_LIMIT, &err);
    units[256 ^ 'a'] = unit('a', 0x1000, true);
    ck_assert_status(try_map(units, "\0ab", 4, &err), PRESTO_ERR_CORRUPT, &err);
    ck_assert_ptr_nonnull(strstr(err.message, "points behind its end"));
    units[256 ^ 'a'] = unit('a', 0, true); /* its children are those of the root: a, aa, aaa, ... */
    units[256 ^ 'a'] = unit('a', 'a', true);
    units[256] = UINT32_C(0x80000001);
    ck_assert_status(try_map(units, "\0ab", 4, &err), PRESTO_ERR_CORRUPT, &err);
    ck_assert_ptr_nonnull(strstr(err.message, "goes in a circle"));
}
END_TEST

START_TEST(long_tokens_are_not_looked_for_in_texts_that_become_long) {
    static char many_x[PRESTO__SENTENCEPIECE_MAX_TOKEN_BYTES];
    size_t most = PRESTO__SENTENCEPIECE_MAX_COMPARED_BYTES / sizeof many_x / 30;
    presto_buffer model = {0}, ids = {0};
    presto__sentencepiece *loaded = NULL;
    presto_error err;
    uint32_t units[UNITS];
    for (uint32_t i = 0; i < UNITS; i++)
        units[i] = ~i & 0xff;
    units[0] = unit(0, 256, false);
    units[256 ^ 'a'] = unit('a', 'q', true);
    units[256 ^ 'a' ^ 'q'] = UINT32_C(0x80000001);
    put_map(&model, units, "\0yyyyyyyyyyyyyyyyyyyyyyyyyyyyyy", 32); /* a: 30 of y */
    memset(many_x, 'x', sizeof many_x);
    put_piece(&model, many_x, sizeof many_x, 1);
    ck_assert_ok(presto__sentencepiece_new(presto_buffer_span(&model), &loaded, &err), &err);
    char *text = malloc(most + 1);
    ck_assert_ptr_nonnull(text);
    memset(text, 'a', most + 1);
    ck_assert_ok(presto__sentencepiece_encode(loaded, NULL, presto_span_of(text, most), &ids, &err),
                 &err);
    ck_assert_status(
        presto__sentencepiece_encode(loaded, NULL, presto_span_of(text, most + 1), &ids, &err),
        PRESTO_ERR_LIMIT, &err);
    ck_assert_ptr_nonnull(strstr(err.message, "cut it into texts of 5825 bytes at most"));
    free(text);
    presto__sentencepiece_free(loaded);
    presto_buffer_done(&model);
    presto_buffer_done(&ids);
}
END_TEST

/* ---- tokenizer.json ---- */

static bool has_sentencepiece(void) {
    static const char tiny[] = "\n\011\n\005<unk>\030\002"
                               "\n\003\n\001b";
    presto__sentencepiece *model = NULL;
    presto_status status =
        presto__sentencepiece_new(presto_span_of(tiny, sizeof tiny - 1), &model, NULL);
    presto__sentencepiece_free(model);
    return status != PRESTO_ERR_UNSUPPORTED;
}

int main(void) {
    const TTest *const tests[] = {
        ids_are_those_of_the_library,
        threads_share_a_model,
        long_words_and_long_runs_of_unknown_characters_take_linear_time,
        /* With SentencePiece only: */
        words_have_the_ids_that_they_have_in_their_text,
        a_text_may_be_bytes_or_empty,
        a_missing_model_is_told_with_what_to_do,
        long_texts_are_refused,
        models_that_are_cut_or_damaged_are_errors,
        models_that_would_overflow_the_library_are_refused,
        long_tokens_are_not_looked_for_in_long_texts,
        maps_of_characters_are_walked_before_they_are_used,
        long_tokens_are_not_looked_for_in_texts_that_become_long,
    };
    size_t count = sizeof tests / sizeof tests[0];
    if (!has_sentencepiece()) {
        first_model = SENTENCEPIECE_COUNT;
        count -= 9;
    }
    return presto_check_main("bpe-encode", tests, count, 300);
}
