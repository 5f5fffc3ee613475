/* SPDX-License-Identifier: Apache-2.0 */
/* The keyed hash against another program's. */
#include "digest_internal.h"
#include "presto_check.h"

/* Of the bytes 0, 1, ..., n - 1 under the key 00 01 ... 0f, by OpenSSL: openssl mac -macopt size:8
 * -macopt c-rounds:1 -macopt d-rounds:3 -macopt hexkey:000102030405060708090a0b0c0d0e0f SIPHASH. */
static const uint64_t vectors[] = {
    UINT64_C(0xabac0158050fc4dc), UINT64_C(0xc9f49bf37d57ca93), UINT64_C(0x82cb9b024dc7d44d),
    UINT64_C(0x8bf80ab8e7ddf7fb), UINT64_C(0xcf75576088d38328), UINT64_C(0xdef9d52f49533b67),
    UINT64_C(0xc50d2b50c59f22a7), UINT64_C(0xd3927d989bb11140), UINT64_C(0x369095118d299a8e),
    UINT64_C(0x25a48eb36c063de4), UINT64_C(0x79de85ee92ff097f), UINT64_C(0x70c118c1f94dc352),
    UINT64_C(0x78a384b157b4d9a2), UINT64_C(0x306f760c1229ffa7), UINT64_C(0x605aa111c0f95d34),
    UINT64_C(0xd320d86d2a519956), UINT64_C(0xcc4fdd1a7d908b66), UINT64_C(0x9cf2689063dbd80c),
    UINT64_C(0x8ffc389cb473e63e), UINT64_C(0xf21f9de58d297d1c), UINT64_C(0xc0dc2f46a6cce040),
    UINT64_C(0xb992abfe2b45f844), UINT64_C(0x7ffe7b9ba320872e), UINT64_C(0x525a0e7fdae6c123),
    UINT64_C(0xf464aeb267349c8c), UINT64_C(0x45cd5928705b0979), UINT64_C(0x3a3e35e3ca9913a5),
    UINT64_C(0xa91dc74e4ade3b35), UINT64_C(0xfb0bed02ef6cd00d), UINT64_C(0x88d93cb44ab1e1f4),
    UINT64_C(0x540f11d643c5e663), UINT64_C(0x2370dd1f8c21d1bc),
};

START_TEST(hashes_are_those_of_another_program) {
    uint8_t bytes[64];
    presto__hash_key key;
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (uint8_t)i;
    memcpy(&key, bytes, sizeof key);
    for (size_t n = 0; n < sizeof vectors / sizeof *vectors; n++) {
        uint8_t *copy = presto_check_copy(presto_span_of(bytes, n));
        ck_assert_uint_eq(presto__hash(key, presto_span_of(copy, n)), vectors[n]);
        free(copy);
    }
}
END_TEST

START_TEST(a_process_keeps_its_key) {
    presto__hash_key a = presto__hash_process_key(), b = presto__hash_process_key();
    ck_assert_mem_eq(&a, &b, sizeof a);
    ck_assert(a.words[0] != 0 || a.words[1] != 0);
}
END_TEST

int main(void) {
    const TTest *const tests[] = {hashes_are_those_of_another_program, a_process_keeps_its_key};
    return presto_check_main("hash", tests, sizeof tests / sizeof tests[0], 60);
}
