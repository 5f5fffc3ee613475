/* SPDX-License-Identifier: Apache-2.0 */
/* Conversions that end with pack, of documents of letters: what must come out, and how to make it. */
#ifndef REGROUP_CHECK_H
#define REGROUP_CHECK_H

#include "../../../base/rng_internal.h"
#include "../../../steps/pipelines_internal.h"
#include "presto_check.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <presto/convert.h>
#include <presto/rng.h>
#include <presto/stream.h>

#include "folder_check.h"

#define MOST_DOCUMENTS 60
#define MOST_TOKENS 6000

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define ROUNDS 6
#else
#define ROUNDS 12
#endif

static presto_rng rng;
static presto_error err;
static char *base;
static _Atomic int failing, failing_too; /* documents that the step fails at; -1: none */

static inline uint64_t pick(uint64_t least, uint64_t most) {
    return least + presto_rng_below(&rng, most - least + 1);
}

/* ---- a step: a text of letters -> tokens, one a letter ---- */

static inline presto_status infer_letters(const void *state, const presto_tensor_spec *in,
                                          presto_tensor_spec *out_out, presto_error *error) {
    (void)state, (void)in, (void)error;
    *out_out = (presto_tensor_spec){PRESTO_UINT8, 1, {-1}};
    return PRESTO_OK;
}

/* The first two letters are the number of the document; from "zz" on it is dropped. */
static inline presto_status run_letters(const void *state, presto_step_context *context,
                                        const presto_tensor *in, presto_tensor *out_out,
                                        presto_error *error) {
    (void)state, (void)context;
    presto_span text = in->strings[0];
    int number = (text.data[0] - 'a') * 26 + text.data[1] - 'a';
    if (number == atomic_load(&failing) || number == atomic_load(&failing_too))
        return presto_fail(error, PRESTO_ERR_CORRUPT, 0, "fails as it should");
    if (number >= 600)
        return PRESTO_DROP;
    out_out->spec = (presto_tensor_spec){PRESTO_UINT8, 1, {(int64_t)text.bytes - 2}};
    out_out->data = text.data + 2;
    return PRESTO_OK;
}

static const presto_step_type letters = {.abi = PRESTO_STEP_ABI,
                                         .name = "letters",
                                         .summary = "Letters.",
                                         .flags = PRESTO_STEP_DROPS,
                                         .infer = infer_letters,
                                         .run = run_letters};
static const presto_step_type *const own[] = {&letters};

/* ---- documents, and what must come out ---- */

typedef struct expected {
    int32_t tokens[MOST_TOKENS];
    size_t count;
    size_t begins[MOST_DOCUMENTS + 1]; /* of each document that has tokens, and the end */
    size_t samples[MOST_DOCUMENTS];    /* which samples these are */
    size_t documents, with_tokens;
} expected;

typedef struct setting {
    size_t length;
    bool has_bos, has_eos, pads;
    size_t documents;
    expected all;
    presto_pipeline *pipeline;
} setting;

static inline void write_document(setting *s, size_t number) {
    char name[32];
    char text[400];
    expected *all = &s->all;
    bool is_dropped = pick(0, 9) == 0;
    size_t code = is_dropped ? 600 + number % 76 : number;
    size_t count = (size_t)(pick(0, 3) == 0 ? pick(0, 2) : pick(0, 90));
    text[0] = (char)('a' + code / 26);
    text[1] = (char)('a' + code % 26);
    for (size_t i = 0; i < count; i++)
        text[2 + i] = (char)pick('a', 'z');
    snprintf(name, sizeof name, "in/%03zu.t", number);
    presto_check_write_file(path_in(base, name), presto_span_of(text, count + 2));
    if (is_dropped)
        return;
    all->documents++;
    all->begins[all->with_tokens] = all->count;
    all->samples[all->with_tokens] = number;
    size_t before = all->count;
    if (s->has_bos)
        all->tokens[all->count++] = -7;
    for (size_t i = 0; i < count; i++)
        all->tokens[all->count++] = (uint8_t)text[2 + i];
    if (s->has_eos)
        all->tokens[all->count++] = 2000000000;
    all->with_tokens += all->count > before;
    all->begins[all->with_tokens] = all->count;
}

static inline setting make_setting(void) {
    char yaml[400], bos[32] = "", eos[32] = "";
    static setting s;
    s = (setting){.length = (size_t)pick(1, 70),
                  .has_bos = pick(0, 1) == 1,
                  .has_eos = pick(0, 1) == 1,
                  .pads = pick(0, 1) == 1,
                  .documents = (size_t)pick(0, MOST_DOCUMENTS)};
    base = presto_check_temp_dir();
    ck_assert_int_eq(mkdir(path_in(base, "in"), 0777), 0);
    presto_check_write_file(path_in(base, "in/zzz.t"), presto_span_of_text("zz"));
    for (size_t i = 0; i < s.documents; i++)
        write_document(&s, i);
    if (s.has_bos)
        snprintf(bos, sizeof bos, ", bos: -7");
    if (s.has_eos)
        snprintf(eos, sizeof eos, ", eos: 2000000000");
    snprintf(yaml, sizeof yaml,
             "name: p\nsource: {type: files, match: ['*.t'], feature: text}\nsteps:\n"
             "  - {step: read-file}\n  - {step: letters, yields: tokens}\n"
             "  - {step: pack, yields: packed, length: %zu, last: %s, pad: -1%s%s}\n",
             s.length, s.pads ? "pad" : "drop", bos, eos);
    const presto_pipeline_options reading = {
        .struct_bytes = sizeof reading, .steps = own, .step_count = 1};
    ck_assert_ok(
        presto__pipeline_parse(presto_span_of_text(yaml), "p", &reading, &s.pipeline, &err), &err);
    atomic_store(&failing, -1);
    atomic_store(&failing_too, -1);
    return s;
}

static inline void drop_setting(setting *s) {
    presto_pipeline_free(s->pipeline);
    presto_check_remove_tree(base);
    free(base);
}

/* ---- conversions ---- */

typedef struct way {
    size_t shards;
    uint64_t shard_bytes;
    unsigned threads;
    bool resume;
    const char *part;  /* of 50/50; NULL: all */
    const char *split; /* NULL: packed */
    bool skips;
    uint64_t skip_limit;
} way;

#define MOST_SKIPPED 2

static inline bool check_skipped(void *user, const presto_progress *progress) {
    (void)user;
    ck_assert_uint_le(progress->skipped, MOST_SKIPPED);
    return true;
}

static inline presto_status convert(const setting *s, const char *to, const way *how,
                                    presto_convert_result *result) {
    const char *path = path_in(base, "in");
    presto_convert_options options;
    presto_convert_options_defaults(&options);
    options.pipeline = s->pipeline;
    options.dir = path_in(base, to);
    options.shards = how->shards;
    options.shard_bytes = how->shard_bytes;
    options.threads = how->threads;
    options.resume = how->resume;
    options.partition.ratio = how->part == NULL ? NULL : "50/50";
    options.partition.part = how->part;
    options.up_to = how->split;
    if (how->skips) {
        options.errors.policy = PRESTO_ON_ERROR_SKIP;
        options.errors.skip_limit = how->skip_limit;
        options.on_progress = check_skipped;
    }
    options.sync = false;
    options.codec = "zlib:1";
    return presto_convert(&path, 1, &options, result, &err);
}

static inline way random_way(void) {
    bool by_size = pick(0, 1) == 1;
    return (way){.shards = by_size ? 0 : (size_t)pick(1, 70),
                 .shard_bytes = by_size ? pick(100, 3000) : 0,
                 .threads = (unsigned)pick(0, 4)};
}

static inline void start_random(void) {
    presto__rng_key key = {.seed = presto_check_seed()};
    presto__rng_init(&rng, &key);
}

#endif
