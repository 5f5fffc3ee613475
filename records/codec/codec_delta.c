/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The predictor of the "+delta" variant: each byte is replaced by its difference to the byte
 * `distance` before it, as PNG's Sub filter does. It runs over the whole serialized record. Bytes
 * outside of the tensor's content survive, too; they only gain nothing. Only zstd offers it: on
 * resized photos zstd:1 with it reaches a ratio of 1.26 at 520 MB/s, blosc-zstd:1 with bitshuffle
 * 1.11 at 470 MB/s. lz4 with it is worse than blosc-lz4 in both.
 */
#include "codec_internal.h"

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

void presto__delta_encode(const uint8_t *in, size_t bytes, size_t distance, uint8_t *out) {
    size_t head = bytes < distance ? bytes : distance;
    if (head > 0)
        memcpy(out, in, head);
    for (size_t i = head; i < bytes; i++)
        out[i] = (uint8_t)(in[i] - in[i - distance]);
}

#if defined(__SSE2__)
/*
 * Sixteen bytes at once, for distances that divide 16. Within a vector the running sum takes
 * log2(16 / distance) shifted additions. Then the last `distance` bytes of the previous vector are
 * repeated over the vector and added.
 */
static size_t decode_power_of_two(uint8_t *data, size_t bytes, size_t distance) {
    size_t at = 0;
    __m128i before = _mm_setzero_si128();
    for (; at + 16 <= bytes; at += 16) {
        __m128i sum = _mm_loadu_si128((const __m128i *)(const void *)(data + at));
        if (distance <= 1)
            sum = _mm_add_epi8(sum, _mm_slli_si128(sum, 1));
        if (distance <= 2)
            sum = _mm_add_epi8(sum, _mm_slli_si128(sum, 2));
        if (distance <= 4)
            sum = _mm_add_epi8(sum, _mm_slli_si128(sum, 4));
        if (distance <= 8)
            sum = _mm_add_epi8(sum, _mm_slli_si128(sum, 8));
        sum = _mm_add_epi8(sum, before);
        _mm_storeu_si128((__m128i *)(void *)(data + at), sum);
        switch (distance) {
        case 1:
            before = _mm_unpackhi_epi8(sum, sum);
            before = _mm_shufflehi_epi16(before, 0xff);
            before = _mm_shuffle_epi32(before, 0xff);
            break;
        case 2:
            before = _mm_shufflehi_epi16(sum, 0xff);
            before = _mm_shuffle_epi32(before, 0xff);
            break;
        case 4:
            before = _mm_shuffle_epi32(sum, 0xff);
            break;
        case 8:
            before = _mm_shuffle_epi32(sum, 0xee);
            break;
        default:
            before = sum;
            break;
        }
    }
    return at;
}

/*
 * Three channels: each round loads sixteen bytes and handles twelve (four pixels). The dependency
 * from round to round is one addition and the broadcast of the last pixel.
 */
static size_t decode_three(uint8_t *data, size_t bytes) {
    size_t at = 0;
    const __m128i pixel = _mm_setr_epi32(0x00ffffff, 0, 0, 0);
    __m128i before = _mm_setzero_si128();
    for (; at + 16 <= bytes; at += 12) {
        __m128i sum = _mm_loadu_si128((const __m128i *)(const void *)(data + at));
        __m128i beyond = _mm_srli_si128(sum, 12);
        sum = _mm_srli_si128(_mm_slli_si128(sum, 4), 4);
        sum = _mm_add_epi8(sum, _mm_slli_si128(sum, 3));
        sum = _mm_add_epi8(sum, _mm_slli_si128(sum, 6));
        sum = _mm_add_epi8(sum, before);
        /* The four bytes behind this round's were overwritten: restore them. */
        sum = _mm_srli_si128(_mm_slli_si128(sum, 4), 4);
        _mm_storeu_si128((__m128i *)(void *)(data + at),
                         _mm_or_si128(sum, _mm_slli_si128(beyond, 12)));
        __m128i last = _mm_and_si128(_mm_srli_si128(sum, 9), pixel);
        last = _mm_or_si128(last, _mm_slli_si128(last, 3));
        before = _mm_or_si128(last, _mm_slli_si128(last, 6));
    }
    return at;
}
#endif

void presto__delta_decode(uint8_t *data, size_t bytes, size_t distance) {
    size_t at = 0;
#if defined(__SSE2__)
    if (distance == 3)
        at = decode_three(data, bytes);
    else if (distance <= 16 && (distance & (distance - 1)) == 0)
        at = decode_power_of_two(data, bytes, distance);
#endif
    if (at < distance)
        at = distance;
    for (; at < bytes; at++)
        data[at] = (uint8_t)(data[at] + data[at - distance]);
}
