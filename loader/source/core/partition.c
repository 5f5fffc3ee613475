/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parts of a source, as for training and evaluation. A sample's part depends on its name and the
 * seed, and on nothing else: so it stays the same whatever other samples there are, in whatever
 * order they come. And samples to measure, from all over the source.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include <presto/numbers.h>

#include "../../../base/philox_internal.h"
#include "../../../base/stop_internal.h"
#include "../../loader_internal.h"
#include "source_internal.h"

enum { MOST_PARTS = 16, MOST_SHARE = 1000000 };

/* Even samples: few stretches are read about as fast as one. */
#define STRETCHES 16
#define STRETCH_BYTES ((uint64_t)1 << 20)
/* Samples between two looks at whether to stop. */
#define ASK_EVERY 4096

typedef struct ratio {
    uint64_t ends[MOST_PARTS]; /* sums of the shares up to each part */
    size_t count;
} ratio;

/* ---- what the user says ---- */

static presto_status parse_ratio(const char *text, ratio *ratio_out, presto_error *err) {
    ratio parsed = {.count = 0};
    const char *at = text;
    uint64_t sum = 0;
    for (;;) {
        char *end;
        unsigned long share = *at >= '0' && *at <= '9' ? strtoul(at, &end, 10) : 0;
        if (share == 0 || share > MOST_SHARE || parsed.count == MOST_PARTS)
            break;
        sum += share;
        parsed.ends[parsed.count++] = sum;
        at = end + 1;
        if (*end == '\0' && parsed.count >= 2) {
            *ratio_out = parsed;
            return PRESTO_OK;
        }
        if (*end != '/')
            break;
    }
    return presto_fail(err, PRESTO_ERR_ARGUMENT, PRESTO_NO_OFFSET,
                       "split '%.64s' is no ratio of parts, such as 90/10 or 80/10/10", text);
}

/* The names of two parts, and of three; others have numbers only. */
static presto_status find_part(const char *name, size_t count, size_t *part_out,
                               presto_error *err) {
    static const struct {
        const char *name;
        size_t of, part;
    } names[] = {{"train", 2, 0}, {"eval", 2, 1}, {"validation", 2, 1}, {"test", 2, 1},
                 {"train", 3, 0}, {"eval", 3, 1}, {"validation", 3, 1}, {"test", 3, 2}};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (names[i].of == count && strcmp(names[i].name, name) == 0) {
            *part_out = names[i].part;
            return PRESTO_OK;
        }
    char *end = NULL;
    unsigned long number = *name >= '0' && *name <= '9' ? strtoul(name, &end, 10) : 0;
    if (number >= 1 && number <= count && *end == '\0') {
        *part_out = number - 1;
        return PRESTO_OK;
    }
    return presto_fail(err, PRESTO_ERR_ARGUMENT, PRESTO_NO_OFFSET,
                       "part '%.64s' is none of the %zu parts: say %s1 to %zu", name, count,
                       count == 2   ? "train, eval, or "
                       : count == 3 ? "train, validation, test, or "
                                    : "",
                       count);
}

static presto_status read_partition(const presto_partition *partition, ratio *ratio_out,
                                    size_t *part_out, presto_error *err) {
    if (partition->ratio == NULL && partition->part == NULL)
        return PRESTO_OK;
    if (partition->ratio == NULL)
        return presto_fail(err, PRESTO_ERR_ARGUMENT, PRESTO_NO_OFFSET,
                           "part '%.64s' needs a split, such as 90/10", partition->part);
    PRESTO_TRY(parse_ratio(partition->ratio, ratio_out, err));
    if (partition->part == NULL)
        return presto_fail(err, PRESTO_ERR_ARGUMENT, PRESTO_NO_OFFSET,
                           "split '%.64s' needs a part: train, eval, or its number",
                           partition->ratio);
    return find_part(partition->part, ratio_out->count, part_out, err);
}

presto_status presto_partition_check(const presto_partition *partition, presto_error *err) {
    ratio shares;
    size_t part;
    return read_partition(partition, &shares, &part, err);
}

/* ---- which samples ---- */

static size_t part_of(const presto_source *source, uint64_t number, uint64_t seed,
                      const ratio *shares) {
    presto__digest digest = {{0}};
    uint64_t draws[4];
    if (source->ops->name != NULL)
        source->ops->name(source, number, &digest);
    else
        presto__digest_add(&digest, &number, sizeof number);
    const uint64_t counter[4] = {seed};
    presto__philox4x64(digest.state, counter, draws);
    /* The draw, from 0 to below the sum of the shares. */
    uint64_t high = draws[0] >> 32, sum = shares->ends[shares->count - 1];
    uint64_t at = high * sum >> 32;
    size_t part = 0;
    while (at >= shares->ends[part])
        part++;
    return part;
}

static presto_status fill(presto_source *source, const presto_partition *partition,
                          const ratio *shares, size_t part, presto_error *err) {
    uint64_t count = presto__source_all(source);
    for (uint64_t i = 0; i < count; i++) {
        if (i % ASK_EVERY == 0)
            PRESTO_TRY(presto__stop_check(err));
        if (part_of(source, i, partition->seed, shares) == part)
            PRESTO_TRY(presto__subset_add(source->subset, i, err));
    }
    return PRESTO_OK;
}

static presto_status tell(presto_source *source, const presto_partition *partition,
                          presto_error *err) {
    char text[256];
    snprintf(text, sizeof text, "%s of %s, seed %" PRIu64 ": %" PRIu64 " of %" PRIu64 " sample%s",
             partition->part, partition->ratio, partition->seed, presto_source_count(source),
             presto__source_all(source), presto_plural(presto__source_all(source)));
    return presto__source_note_of(source, PRESTO_NOTE_CONFIRM, text, err);
}

/* ---- samples to measure ---- */

static uint64_t stretches_of(const presto_source *source, uint64_t wanted, uint64_t count) {
    double bytes = (double)presto_source_bytes(source) / (double)count * (double)wanted;
    double full = bytes / (double)STRETCH_BYTES;
    double stretches = full > STRETCHES ? full : STRETCHES;
    return stretches < (double)wanted ? (uint64_t)stretches : wanted;
}

/* `i` of `parts` equal parts of `whole` end there; no product overflows. */
static uint64_t part_end(uint64_t whole, uint64_t parts, uint64_t i) {
    return whole / parts * i + whole % parts * i / parts;
}

static presto_status add_even(presto_source *source, uint64_t wanted, uint64_t stretches,
                              presto_error *err) {
    uint64_t count = presto__source_all(source), taken = 0, next = 0;
    for (uint64_t i = 0; i < stretches; i++) {
        uint64_t from = part_end(count, stretches, i), to = part_end(count, stretches, i + 1);
        uint64_t end = part_end(wanted, stretches, i + 1), more = end - taken;
        uint64_t start = to - from > more ? from + (to - from - more) / 2 : from;
        start = start < next ? next : start;
        if (start > count - (wanted - taken)) /* the others need what is left */
            start = count - (wanted - taken);
        for (next = start; taken < end; taken++, next++)
            PRESTO_TRY(presto__subset_add(source->subset, next, err));
    }
    return PRESTO_OK;
}

static presto_status choose_even(presto_source *source, uint64_t wanted, presto_error *err) {
    const presto__source_ops *ops = source->ops;
    PRESTO_TRY(presto__source_settle(source, err));
    uint64_t count = presto_source_count(source);
    if (wanted >= count)
        return PRESTO_OK;
    bool is_stream = ops->check_random_access != NULL &&
                     ops->check_random_access(source, NULL) == PRESTO_ERR_ARGUMENT;
    if (is_stream) {
        presto__source_truncate(source, wanted);
        return PRESTO_END;
    }
    uint64_t stretches = stretches_of(source, wanted, count);
    PRESTO_TRY(presto__subset_new(count, &source->subset, err));
    source->subset_digest = presto__fnv_mix(presto__fnv_mix(PRESTO__FNV_START, wanted), stretches);
    return add_even(source, wanted, stretches, err);
}

presto_status presto__source_choose(presto_source *source, const presto_partition *partition,
                                    presto_error *err) {
    ratio shares;
    size_t part = 0;
    if (partition->even_samples > 0) {
        if (partition->ratio != NULL || partition->part != NULL || source->part_count > 0 ||
            source->subset != NULL)
            return presto_fail(err, PRESTO_ERR_ARGUMENT, PRESTO_NO_OFFSET,
                               "even samples are those of one whole source");
        return choose_even(source, partition->even_samples, err);
    }
    PRESTO_TRY(read_partition(partition, &shares, &part, err));
    if (partition->ratio == NULL)
        return PRESTO_OK;
    if (source->part_count > 0 || source->subset != NULL)
        return presto_fail(
            err, PRESTO_ERR_ARGUMENT, PRESTO_NO_OFFSET,
            "a mix, or a part of a source, has no parts of its own: each input of a mix "
            "is split before");
    PRESTO_TRY(presto__source_settle(source, err));
    PRESTO_TRY(presto__subset_new(presto_source_count(source), &source->subset, err));
    PRESTO_TRY(fill(source, partition, &shares, part, err));
    if (presto__subset_count(source->subset) == 0)
        return presto_fail(err, PRESTO_ERR_NOT_FOUND, PRESTO_NO_OFFSET,
                           "no sample is in part %zu of %s, of %" PRIu64 " sample%s in all",
                           part + 1, partition->ratio, presto__source_all(source),
                           presto_plural(presto__source_all(source)));
    uint64_t digest =
        presto__fnv_add(PRESTO__FNV_START, partition->ratio, strlen(partition->ratio));
    digest = presto__fnv_mix(digest, part);
    digest = presto__fnv_mix(digest, partition->seed);
    source->subset_digest = presto__fnv_mix(digest, presto__subset_count(source->subset));
    return tell(source, partition, err);
}
