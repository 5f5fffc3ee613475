/* SPDX-License-Identifier: Apache-2.0 */
#include "memory_internal.h"
#include "presto_check.h"

#include <string.h>

#define MOST 8192
#define ROOM 192 /* before and behind: lines that must stay as they are */

static uint8_t from[MOST + ROOM], to[MOST + 2 * ROOM], expected[sizeof to];

/* Copy `bytes` between places that are so far behind the start of a line. */
static void check(size_t bytes, size_t to_line, size_t from_line) {
    memset(to, 0xee, sizeof to);
    memset(expected, 0xee, sizeof expected);
    size_t start = ROOM / 2 + (-(uintptr_t)(to + ROOM / 2) & 63) + to_line;
    const uint8_t *source = from + (-(uintptr_t)from & 63) + from_line;
    memcpy(expected + start, source, bytes);
    presto__copy_past_cache(to + start, source, bytes);
    ck_assert_msg(memcmp(to, expected, sizeof to) == 0, "%zu bytes to %zu from %zu", bytes, to_line,
                  from_line);
}

START_TEST(a_copy_past_the_cache_is_exact_at_every_place) {
    for (size_t i = 0; i < sizeof from; i++)
        from[i] = (uint8_t)(i * 167 + (i >> 8));
    for (size_t to_line = 0; to_line < 64; to_line++)
        for (size_t from_line = 0; from_line < 64; from_line += 1 + to_line % 5)
            for (size_t bytes = 0; bytes < 200; bytes += bytes < 140 ? 7 : 1)
                check(bytes, to_line, from_line);
    for (size_t bytes = PRESTO__PAST_CACHE_LEAST - 70; bytes <= PRESTO__PAST_CACHE_LEAST + 70;
         bytes++)
        check(bytes, bytes % 64, bytes % 61);
    check(MOST, 0, 0);
    check(MOST, 4, 60);
}
END_TEST

int main(void) {
    const TTest *const tests[] = {a_copy_past_the_cache_is_exact_at_every_place};
    return presto_check_main("copy", tests, sizeof tests / sizeof tests[0], 60);
}
