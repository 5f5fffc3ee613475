/* SPDX-License-Identifier: Apache-2.0 */
/* Codecs: text and back, round trips in every variant, limits, damage of every kind, foreign
 * frames. */
#include "../../../base/rng_internal.h"
#include "../../../records/records_internal.h"
#include "presto_check.h"

#include <stdio.h>

#include <presto/codec.h>
#include <presto/rng.h>

#define LIMIT PRESTO_CODEC_MAX_RECORD_BYTES

static presto_error err;

static const char *const texts[] = {
    "none",       "zlib",
    "zlib:0",     "zlib:1",
    "zlib:12",    "gzip",
    "gzip:9",     "zstd",
    "zstd:1",     "zstd:19",
    "zstd:-5",    "zstd:1+delta3",
    "lz4",        "lz4:-10",
    "lz4hc",      "lz4hc:12",
    "snappy",     "zstd:-1+delta4",
    "blosc-lz4",  "blosc-lz4+bitshuffle",
    "blosc-zstd", "blosc-zstd:5+bitshuffle",
};
#define TEXT_COUNT (sizeof texts / sizeof texts[0])

static presto_codec *open_codec(const char *text) {
    presto_codec_spec spec;
    presto_codec *codec = NULL;
    ck_assert_ok(presto_codec_parse(text, &spec, &err), &err);
    spec.type_bytes = 4;
    ck_assert_ok(presto_codec_new(&spec, &codec, &err), &err);
    return codec;
}

/* Bytes like a photo's: smooth, three channels, a little noise. */
static uint8_t *smooth_bytes(size_t bytes) {
    uint8_t *data = malloc(bytes + 1);
    presto_rng rng;
    presto__rng_init(&rng, &(presto__rng_key){.seed = 7});
    for (size_t i = 0; i < bytes; i++)
        data[i] = (uint8_t)(i / 97 + i % 3 * 50 + (presto_rng_next(&rng) & 3));
    return data;
}

static uint8_t *random_bytes(size_t bytes) {
    uint8_t *data = malloc(bytes + 1);
    presto_rng rng;
    presto__rng_init(&rng, &(presto__rng_key){.seed = 8});
    for (size_t i = 0; i < bytes; i++)
        data[i] = (uint8_t)presto_rng_next(&rng);
    return data;
}

static void round_trip(presto_codec *codec, presto_span in, presto_arena *arena) {
    presto_buffer packed = {0};
    ck_assert_ok(presto_buffer_append(&packed, presto_span_of("head", 4), &err), &err);
    ck_assert_ok(presto__codec_compress(codec, in, &packed, &err), &err);
    ck_assert_mem_eq(packed.data, "head", 4);
    uint8_t *copy = presto_check_copy(presto_span_of(packed.data + 4, packed.bytes - 4));
    presto_span out;
    ck_assert_ok(presto_codec_decompress(codec, presto_span_of(copy, packed.bytes - 4),
                                         &(presto_codec_room){arena, LIMIT}, &out, &err),
                 &err);
    ck_assert(presto_span_equal(in, out));
    free(copy);
    presto_buffer_done(&packed);
}

START_TEST(text_and_spec_are_inverse) {
    for (size_t i = 0; i < TEXT_COUNT; i++) {
        presto_codec_spec spec, again;
        char text[PRESTO_CODEC_TEXT_BYTES], second[PRESTO_CODEC_TEXT_BYTES];
        ck_assert_ok(presto_codec_parse(texts[i], &spec, &err), &err);
        presto__codec_format(&spec, text);
        ck_assert_ok(presto_codec_parse(text, &again, &err), &err);
        ck_assert_str_eq(presto__codec_format(&again, second), text);
        ck_assert_ptr_eq(spec.type, again.type);
        ck_assert_int_eq(spec.level, again.level);
    }
    presto_codec_spec spec;
    char text[PRESTO_CODEC_TEXT_BYTES];
    ck_assert_ok(presto_codec_parse("zstd:3+delta3+dict", &spec, &err), &err);
    ck_assert_str_eq(presto__codec_format(&spec, text), "zstd+dict+delta3");
    ck_assert_ok(presto_codec_parse("zstd:-7+delta", &spec, &err), &err);
    ck_assert_str_eq(presto__codec_format(&spec, text), "zstd:-7+delta");
}
END_TEST

START_TEST(the_table_lists_every_codec_of_the_format) {
    static const char *const names[] = {"none",  "zlib",   "gzip",      "zstd",      "lz4",
                                        "lz4hc", "snappy", "blosc-lz4", "blosc-zstd"};
    size_t i = 0;
    for (; presto__codec_name_at(i, NULL) != NULL; i++)
        ck_assert_str_eq(presto__codec_name_at(i, NULL), names[i]);
    ck_assert_uint_eq(i, sizeof names / sizeof names[0]);
}
END_TEST

START_TEST(every_tensorflow_reads_zlib_and_gzip_and_no_other_codec) {
    static const char *const read[] = {"none", "zlib", "zlib:9", "gzip"};
    static const char *const not_read[] = {"zstd",  "zstd:1+delta", "zstd+dict", "lz4",
                                           "lz4hc", "snappy",       "blosc-lz4", "blosc-zstd"};
    presto_codec_spec spec;
    for (size_t i = 0; i < sizeof read / sizeof *read; i++) {
        ck_assert_ok(presto_codec_parse(read[i], &spec, &err), &err);
        ck_assert_ok(presto_codec_check_tensorflow(&spec, &err), &err);
    }
    for (size_t i = 0; i < sizeof not_read / sizeof *not_read; i++) {
        ck_assert_ok(presto_codec_parse(not_read[i], &spec, &err), &err);
        ck_assert_status(presto_codec_check_tensorflow(&spec, &err), PRESTO_ERR_ARGUMENT, &err);
        ck_assert_ptr_nonnull(strstr(err.message, not_read[i]));
        ck_assert_ptr_nonnull(strstr(err.message, ": none, zlib, gzip"));
    }
}
END_TEST

START_TEST(every_codec_gives_back_what_it_got) {
    static const size_t sizes[] = {0,    1,     2,     15,    16,     17,     100,    4095,
                                   4096, 65535, 65536, 65537, 150000, 262145, 300000, 1100000};
    for (size_t i = 0; i < TEXT_COUNT; i++) {
        presto_codec *codec = open_codec(texts[i]);
        presto_arena arena = {0};
        bool slow = strstr(texts[i], "19") != NULL || strstr(texts[i], "12") != NULL;
        for (size_t k = 0; k < sizeof sizes / sizeof sizes[0]; k++) {
            if (slow && sizes[k] > 70000)
                break;
            uint8_t *smooth = smooth_bytes(sizes[k]);
            uint8_t *noise = random_bytes(sizes[k]);
            /* Twice: the contexts are used again. */
            round_trip(codec, presto_span_of(smooth, sizes[k]), &arena);
            round_trip(codec, presto_span_of(noise, sizes[k]), &arena);
            round_trip(codec, presto_span_of(smooth, sizes[k]), &arena);
            round_trip(codec, presto_span_of(smooth, sizes[k]), &arena);
            presto_arena_reset(&arena);
            free(smooth);
            free(noise);
        }
        presto_arena_done(&arena);
        presto_codec_free(codec);
    }
}
END_TEST

START_TEST(equal_input_gives_equal_bytes) {
    uint8_t *data = smooth_bytes(50000);
    for (size_t i = 0; i < TEXT_COUNT; i++) {
        presto_codec *codec = open_codec(texts[i]);
        presto_codec *other = open_codec(texts[i]);
        presto_buffer a = {0}, b = {0}, c = {0};
        ck_assert_ok(presto__codec_compress(codec, presto_span_of(data, 50000), &a, &err), &err);
        ck_assert_ok(presto__codec_compress(codec, presto_span_of(data, 777), &c, &err), &err);
        c.bytes = 0;
        ck_assert_ok(presto__codec_compress(codec, presto_span_of(data, 50000), &c, &err), &err);
        ck_assert_ok(presto__codec_compress(other, presto_span_of(data, 50000), &b, &err), &err);
        ck_assert(presto_span_equal(presto_buffer_span(&a), presto_buffer_span(&b)));
        ck_assert(presto_span_equal(presto_buffer_span(&a), presto_buffer_span(&c)));
        presto_buffer_done(&a);
        presto_buffer_done(&b);
        presto_buffer_done(&c);
        presto_codec_free(codec);
        presto_codec_free(other);
    }
    free(data);
}
END_TEST

START_TEST(the_limit_on_the_decompressed_size_is_exact) {
    uint8_t *data = smooth_bytes(100000);
    for (size_t i = 0; i < TEXT_COUNT; i++) {
        presto_codec *codec = open_codec(texts[i]);
        presto_arena arena = {0};
        presto_buffer packed = {0};
        presto_span out;
        ck_assert_ok(presto__codec_compress(codec, presto_span_of(data, 100000), &packed, &err),
                     &err);
        presto_span in = presto_buffer_span(&packed);
        for (int round = 0; round < 3; round++) {
            ck_assert_ok(presto_codec_decompress(codec, in, &(presto_codec_room){&arena, 100001},
                                                 &out, &err),
                         &err);
            ck_assert_ok(presto_codec_decompress(codec, in, &(presto_codec_room){&arena, 100000},
                                                 &out, &err),
                         &err);
            ck_assert_status(
                presto_codec_decompress(codec, in, &(presto_codec_room){&arena, 99999}, &out, &err),
                PRESTO_ERR_LIMIT, &err);
        }
        presto_buffer_done(&packed);
        presto_arena_done(&arena);
        presto_codec_free(codec);
    }
    free(data);
}
END_TEST

START_TEST(a_bomb_does_not_get_its_memory) {
    static const char *const bombs[] = {"zlib", "gzip", "zstd", "lz4", "blosc-zstd"};
    size_t bytes = (size_t)64 << 20;
    uint8_t *zeros = calloc(bytes, 1);
    for (size_t i = 0; i < sizeof bombs / sizeof bombs[0]; i++) {
        presto_codec *codec = open_codec(bombs[i]);
        presto_arena arena = {0};
        presto_buffer packed = {0};
        presto_span out;
        ck_assert_ok(presto__codec_compress(codec, presto_span_of(zeros, bytes), &packed, &err),
                     &err);
        ck_assert_status(presto_codec_decompress(codec, presto_buffer_span(&packed),
                                                 &(presto_codec_room){&arena, 1 << 20}, &out, &err),
                         PRESTO_ERR_LIMIT, &err);
        ck_assert_uint_lt(arena.total_bytes, 2 << 20);
        presto_buffer_done(&packed);
        presto_arena_done(&arena);
        presto_codec_free(codec);
    }
    free(zeros);
}
END_TEST

/* Damaged frames: an error, or (no checksum inside) other bytes; never a crash or a read outside.
 */
START_TEST(damage_never_reads_outside) {
    uint8_t *data = smooth_bytes(3000);
    presto_rng rng;
    presto__rng_init(&rng, &(presto__rng_key){.seed = presto_check_seed()});
    for (size_t i = 1; i < TEXT_COUNT; i++) {
        presto_codec *codec = open_codec(texts[i]);
        presto_arena arena = {0};
        presto_buffer packed = {0};
        presto_span out;
        ck_assert_ok(presto__codec_compress(codec, presto_span_of(data, 3000), &packed, &err),
                     &err);
        for (size_t cut = 0; cut < packed.bytes; cut++) {
            uint8_t *copy = presto_check_copy(presto_span_of(packed.data, cut));
            presto_status status =
                presto_codec_decompress(codec, presto_span_of(copy, cut),
                                        &(presto_codec_room){&arena, 1 << 20}, &out, &err);
            ck_assert_msg(status < 0, "%s cut to %zu of %zu bytes passes", texts[i], cut,
                          packed.bytes);
            free(copy);
            presto_arena_reset(&arena);
        }
        for (int round = 0; round < 3000; round++) {
            uint8_t *copy = presto_check_copy(presto_buffer_span(&packed));
            for (uint64_t flips = 1 + presto_rng_below(&rng, 4); flips > 0; flips--)
                copy[presto_rng_below(&rng, packed.bytes)] ^=
                    (uint8_t)(1U << presto_rng_below(&rng, 8));
            if (presto_codec_decompress(codec, presto_span_of(copy, packed.bytes),
                                        &(presto_codec_room){&arena, 1 << 20}, &out,
                                        &err) == PRESTO_OK)
                ck_assert_uint_le(out.bytes, 1 << 20);
            free(copy);
            presto_arena_reset(&arena);
        }
        /* The codec is as good as new afterwards. */
        round_trip(codec, presto_span_of(data, 3000), &arena);
        presto_buffer_done(&packed);
        presto_arena_done(&arena);
        presto_codec_free(codec);
    }
    free(data);
}
END_TEST

START_TEST(bytes_after_the_frame_are_corruption) {
    uint8_t *data = smooth_bytes(3000);
    static const char *const strict[] = {"zlib", "zstd", "lz4", "snappy", "blosc-lz4"};
    for (size_t i = 0; i < sizeof strict / sizeof strict[0]; i++) {
        presto_codec *codec = open_codec(strict[i]);
        presto_arena arena = {0};
        presto_buffer packed = {0};
        presto_span out;
        ck_assert_ok(presto__codec_compress(codec, presto_span_of(data, 3000), &packed, &err),
                     &err);
        ck_assert_ok(presto_buffer_append(&packed, presto_span_of("junk", 4), &err), &err);
        ck_assert_status(presto_codec_decompress(codec, presto_buffer_span(&packed),
                                                 &(presto_codec_room){&arena, LIMIT}, &out, &err),
                         PRESTO_ERR_CORRUPT, &err);
        presto_buffer_done(&packed);
        presto_arena_done(&arena);
        presto_codec_free(codec);
    }
    free(data);
}
END_TEST

START_TEST(gzip_records_of_several_members_are_read) {
    presto_codec *codec = open_codec("gzip");
    presto_arena arena = {0};
    presto_buffer packed = {0};
    presto_span out;
    ck_assert_ok(presto__codec_compress(codec, presto_span_of_text("one "), &packed, &err), &err);
    ck_assert_ok(presto__codec_compress(codec, presto_span_of_text(""), &packed, &err), &err);
    ck_assert_ok(presto__codec_compress(codec, presto_span_of_text("two"), &packed, &err), &err);
    ck_assert_ok(presto_codec_decompress(codec, presto_buffer_span(&packed),
                                         &(presto_codec_room){&arena, LIMIT}, &out, &err),
                 &err);
    ck_assert(presto_span_is(out, "one two"));
    ck_assert_status(presto_codec_decompress(codec, presto_buffer_span(&packed),
                                             &(presto_codec_room){&arena, 6}, &out, &err),
                     PRESTO_ERR_LIMIT, &err);
    presto_buffer_done(&packed);
    presto_arena_done(&arena);
    presto_codec_free(codec);
}
END_TEST

START_TEST(frames_of_other_writers_are_read) {
    /* printf 'hello hello hello hello\n' | zstd (streamed: no content size), | lz4 (content
     * checksum) */
    static const uint8_t zstd[] = {0x28, 0xb5, 0x2f, 0xfd, 0x04, 0x58, 0x6d, 0x00, 0x00,
                                   0x38, 0x68, 0x65, 0x6c, 0x6c, 0x6f, 0x20, 0x0a, 0x01,
                                   0x00, 0x99, 0x4b, 0x11, 0xa8, 0x7c, 0x2e, 0xa8};
    static const uint8_t lz4[] = {0x04, 0x22, 0x4d, 0x18, 0x64, 0x40, 0xa7, 0x0f, 0x00,
                                  0x00, 0x00, 0x69, 0x68, 0x65, 0x6c, 0x6c, 0x6f, 0x20,
                                  0x06, 0x00, 0x50, 0x65, 0x6c, 0x6c, 0x6f, 0x0a, 0x00,
                                  0x00, 0x00, 0x00, 0xe2, 0xff, 0x03, 0x42};
    const presto_span want = presto_span_of_text("hello hello hello hello\n");
    const struct {
        const char *codec;
        presto_span in;
    } frames[] = {{"zstd", presto_span_of(zstd, sizeof zstd)},
                  {"lz4", presto_span_of(lz4, sizeof lz4)},
                  {"lz4hc", presto_span_of(lz4, sizeof lz4)}};
    for (size_t i = 0; i < sizeof frames / sizeof frames[0]; i++) {
        presto_codec *codec = open_codec(frames[i].codec);
        presto_arena arena = {0};
        presto_span out;
        ck_assert_ok(presto_codec_decompress(codec, frames[i].in,
                                             &(presto_codec_room){&arena, LIMIT}, &out, &err),
                     &err);
        ck_assert(presto_span_equal(out, want));
        for (size_t cut = 0; cut < frames[i].in.bytes; cut++) {
            uint8_t *copy = presto_check_copy(presto_span_of(frames[i].in.data, cut));
            presto_status status = presto_codec_decompress(
                codec, presto_span_of(copy, cut), &(presto_codec_room){&arena, LIMIT}, &out, &err);
            ck_assert_msg(status < 0, "%s cut to %zu passes", frames[i].codec, cut);
            free(copy);
        }
        presto_arena_done(&arena);
        presto_codec_free(codec);
    }
}
END_TEST

START_TEST(a_dictionary_makes_small_records_smaller) {
    presto_codec_spec spec;
    presto_codec *codec = NULL;
    ck_assert_ok(presto_codec_parse("zstd:3+dict", &spec, &err), &err);
    ck_assert_status(presto_codec_new(&spec, &codec, &err), PRESTO_ERR_ARGUMENT, &err);
    presto_buffer samples = {0}, dictionary = {0}, again = {0};
    size_t sizes[2000];
    char text[256];
    for (size_t i = 0; i < 2000; i++) {
        int bytes = snprintf(text, sizeof text,
                             "{\"user\": %zu, \"name\": \"somebody %zu\", \"country\": \"%s\", "
                             "\"subscribed\": %s, \"balance\": %zu.50}",
                             i * 7919, i * 31 % 977, i % 3 == 0 ? "Norway" : "Portugal",
                             i % 5 == 0 ? "true" : "false", i * 104729 % 100000);
        sizes[i] = (size_t)bytes;
        ck_assert_ok(presto_buffer_append(&samples, presto_span_of(text, sizes[i]), &err), &err);
    }
    presto_span all = presto_buffer_span(&samples);
    ck_assert_ok(presto__codec_train(&spec, &(presto__codec_samples){all, sizes, 2000}, 4096,
                                     &dictionary, &err),
                 &err);
    ck_assert_ok(
        presto__codec_train(&spec, &(presto__codec_samples){all, sizes, 2000}, 4096, &again, &err),
        &err);
    ck_assert(presto_span_equal(presto_buffer_span(&dictionary), presto_buffer_span(&again)));
    ck_assert_uint_le(dictionary.bytes, 4096);
    ck_assert_status(
        presto__codec_train(&spec, &(presto__codec_samples){all, sizes, 1}, 0, &again, &err),
        PRESTO_ERR_ARGUMENT, &err);
    spec.dictionary = presto_buffer_span(&dictionary);
    ck_assert_ok(presto_codec_new(&spec, &codec, &err), &err);
    presto_codec *plain = open_codec("zstd:3");
    presto_buffer with = {0}, without = {0};
    presto_arena arena = {0};
    presto_span out, first = presto_span_of(samples.data, sizes[0]);
    ck_assert_ok(presto__codec_compress(codec, first, &with, &err), &err);
    ck_assert_ok(presto__codec_compress(plain, first, &without, &err), &err);
    ck_assert_uint_lt(with.bytes * 2, without.bytes);
    ck_assert_ok(presto_codec_decompress(codec, presto_buffer_span(&with),
                                         &(presto_codec_room){&arena, LIMIT}, &out, &err),
                 &err);
    ck_assert(presto_span_equal(out, first));
    ck_assert_status(presto_codec_decompress(plain, presto_buffer_span(&with),
                                             &(presto_codec_room){&arena, LIMIT}, &out, &err),
                     PRESTO_ERR_CORRUPT, &err);
    presto_codec_free(codec);
    presto_codec_free(plain);
    presto_buffer_done(&with);
    presto_buffer_done(&without);
    presto_buffer_done(&samples);
    presto_buffer_done(&dictionary);
    presto_buffer_done(&again);
    presto_arena_done(&arena);
}
END_TEST

START_TEST(the_delta_is_undone_for_every_distance) {
    uint8_t *data = random_bytes(1000);
    for (size_t distance = 1; distance <= 256; distance++)
        for (size_t bytes = 0; bytes < 1000; bytes += bytes < 100 ? 1 : 97) {
            char text[PRESTO_CODEC_TEXT_BYTES];
            if (bytes % 7 != 0 && distance > 20)
                continue;
            snprintf(text, sizeof text, "zstd:-50+delta%zu", distance);
            presto_codec *codec = open_codec(text);
            presto_arena arena = {0};
            round_trip(codec, presto_span_of(data, bytes), &arena);
            presto_arena_done(&arena);
            presto_codec_free(codec);
        }
    free(data);
}
END_TEST

START_TEST(codecs_are_guessed_from_their_bytes) {
    uint8_t *data = smooth_bytes(3000);
    static const char *const guesses[][2] = {
        {"none", "none"}, {"zlib:1", "zlib"},         {"zlib:9", "zlib"},
        {"gzip", "gzip"}, {"zstd", "zstd"},           {"lz4hc", "lz4"},
        {"lz4", "lz4"},   {"blosc-lz4", "blosc-lz4"}, {"blosc-zstd", "blosc-zstd"}};
    for (size_t i = 0; i < sizeof guesses / sizeof guesses[0]; i++) {
        presto_codec *codec = open_codec(guesses[i][0]);
        presto_buffer packed = {0};
        ck_assert_ok(presto__codec_compress(codec, presto_span_of(data, 3000), &packed, &err),
                     &err);
        ck_assert_str_eq(presto_codec_guess(presto_buffer_span(&packed)), guesses[i][1]);
        presto_buffer_done(&packed);
        presto_codec_free(codec);
    }
    ck_assert_str_eq(presto_codec_guess(presto_span_of(NULL, 0)), "none");
    free(data);
}
END_TEST

int main(void) {
    const TTest *const tests[] = {
        text_and_spec_are_inverse,
        the_table_lists_every_codec_of_the_format,
        every_tensorflow_reads_zlib_and_gzip_and_no_other_codec,
        every_codec_gives_back_what_it_got,
        equal_input_gives_equal_bytes,
        the_limit_on_the_decompressed_size_is_exact,
        a_bomb_does_not_get_its_memory,
        damage_never_reads_outside,
        bytes_after_the_frame_are_corruption,
        gzip_records_of_several_members_are_read,
        frames_of_other_writers_are_read,
        a_dictionary_makes_small_records_smaller,
        the_delta_is_undone_for_every_distance,
        codecs_are_guessed_from_their_bytes,
    };
    return presto_check_main("codec", tests, sizeof tests / sizeof tests[0], 120);
}
