/* SPDX-License-Identifier: Apache-2.0 */
#include "memory_internal.h"

#include <stdint.h>
#include <string.h>

/* Sanitizers do not see such stores: they get memcpy. */
#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) ||                         \
    __has_feature(memory_sanitizer)
#define IS_CHECKED 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define IS_CHECKED 1
#endif

#if defined(__SSE2__) && !defined(IS_CHECKED)

#include <emmintrin.h>

#define LINE ((size_t)64)

/* Whole lines, each written at once: a part of one would be merged with the rest in memory. */
static void copy_lines(uint8_t *to, const uint8_t *from, size_t count) {
    for (; count > 0; count--, to += LINE, from += LINE) {
        const __m128i *in = (const __m128i *)(const void *)from;
        __m128i *out = (__m128i *)(void *)to;
        __m128i a = _mm_loadu_si128(in), b = _mm_loadu_si128(in + 1);
        __m128i c = _mm_loadu_si128(in + 2), d = _mm_loadu_si128(in + 3);
        _mm_stream_si128(out, a);
        _mm_stream_si128(out + 1, b);
        _mm_stream_si128(out + 2, c);
        _mm_stream_si128(out + 3, d);
    }
    _mm_sfence();
}

void presto__copy_past_cache(void *to, const void *from, size_t bytes) {
    uint8_t *out = to;
    const uint8_t *in = from;
    size_t head = (size_t)(-(uintptr_t)out & (LINE - 1));
    if (bytes < head + LINE) {
        memcpy(out, in, bytes);
        return;
    }
    size_t lines = (bytes - head) / LINE;
    memcpy(out, in, head);
    copy_lines(out + head, in + head, lines);
    head += lines * LINE;
    memcpy(out + head, in + head, bytes - head);
}

#else

void presto__copy_past_cache(void *to, const void *from, size_t bytes) {
    memcpy(to, from, bytes);
}

#endif
