/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Several ranges of samples at once, a stretch of each in turn.
 *
 * A range begins when its first stretch is asked for. So ranges begin in the order of the list, and
 * never more of them are open than wanted.
 */
#include "order_internal.h"

void presto__ranges_init(presto__ranges *ranges, const presto__range *list, size_t count,
                         size_t most_open) {
    *ranges = (presto__ranges){.list = list, .count = count, .most_open = most_open};
}

bool presto__ranges_next(presto__ranges *ranges, size_t most, uint64_t *first_out,
                         size_t *count_out) {
    for (size_t tried = 0; tried < ranges->most_open; tried++) {
        presto__range *open = &ranges->open[ranges->turn];
        ranges->turn = (ranges->turn + 1) % ranges->most_open;
        while (open->first == open->end && ranges->next < ranges->count)
            *open = ranges->list[ranges->next++];
        uint64_t left = open->end - open->first;
        if (left == 0)
            continue;
        size_t count = left < most ? (size_t)left : most;
        *first_out = open->first;
        *count_out = count;
        open->first += count;
        ranges->passed += count;
        return true;
    }
    return false;
}
