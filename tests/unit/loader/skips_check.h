/* SPDX-License-Identifier: Apache-2.0 */
/* Streams that leave samples out, and what was told of those. */
#ifndef SKIPS_CHECK_H
#define SKIPS_CHECK_H

#include "loader_check.h"

typedef struct skips {
    uint64_t count;
    presto_error last;
} skips;

static inline void note_skip(void *user, uint64_t epoch, uint64_t sample, const presto_error *why) {
    (void)epoch, (void)sample;
    ((skips *)user)->count++;
    ((skips *)user)->last = *why;
}

/* Leave out up to `limit` samples, and note them. */
static inline void skip_and_note(presto_loader_options *options, uint64_t limit, skips *noted) {
    *noted = (skips){0};
    options->errors.policy = PRESTO_ON_ERROR_SKIP;
    options->errors.skip_limit = limit;
    options->errors.on_skip = note_skip;
    options->errors.on_skip_user = noted;
}

/* The number of samples that came. */
static inline uint64_t stream_with_skips(presto_source *from, const presto_plan *with,
                                         skips *noted) {
    presto_error why;
    presto_loader_options options;
    presto_loader_options_defaults(&options);
    skip_and_note(&options, 1000, noted);
    options.threads = 2;
    uint64_t samples;
    (void)digest_stream(from, with, &options, &samples, PRESTO_END, &why);
    return samples;
}

#endif
