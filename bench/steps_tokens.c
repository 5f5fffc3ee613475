/* SPDX-License-Identifier: Apache-2.0 */
/* bpe-encode beside libsentencepiece, embed beside a loop that copies rows. */
#include "steps.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "steps_sentencepiece.h"

#define MODEL PRESTO_TOKENIZERS "/bpe-bytes.model"

/* ---- embed ---- */

enum { TEXTS = 8, TOKENS = 1000, COLUMNS = 768 };

typedef struct copier {
    const presto_tensor *ids;
    float *table, *out;
    size_t rows;
} copier;

static float *need_floats(size_t count) {
    float *floats = malloc(count * sizeof *floats);
    if (floats == NULL)
        bench_die("out of memory");
    memset(floats, 1, count * sizeof *floats); /* pages are there */
    return floats;
}

static void *copier_open(const void *user) {
    copier *c = malloc(sizeof *c);
    if (c == NULL)
        bench_die("out of memory");
    *c = *(const copier *)user;
    c->out = need_floats((size_t)TOKENS * COLUMNS);
    return c;
}

static void copier_run(void *user, size_t number) {
    copier *c = user;
    const int32_t *ids = c->ids[number].data;
    for (size_t i = 0; i < TOKENS; i++) {
        if (ids[i] < 0 || (size_t)ids[i] >= c->rows)
            bench_die("no row %d", ids[i]);
        memcpy(c->out + i * COLUMNS, c->table + (size_t)ids[i] * COLUMNS,
               COLUMNS * sizeof *c->table);
    }
}

static void copier_close(void *user) {
    copier *c = user;
    free(c->out);
    free(c);
}

static void bench_embed(const steps_settings *set) {
    static const char row[] = "embed, 1000 tokens; bare: rows copied";
    static int32_t ids[TEXTS][TOKENS];
    presto_tensor texts[TEXTS];
    if (!steps_wanted(set, row))
        return;
    copier bare = {.ids = texts, .rows = set->quick ? 100 : 50001};
    bare.table = need_floats(bare.rows * COLUMNS);
    const presto_tensor_spec spec = {PRESTO_INT32, 1, {TOKENS}};
    uint64_t random = 1;
    for (size_t t = 0; t < TEXTS; t++) {
        for (size_t i = 0; i < TOKENS; i++) {
            random = random * UINT64_C(6364136223846793005) + 1442695040888963407;
            ids[t][i] = (int32_t)((random >> 33) % bare.rows);
        }
        texts[t] = (presto_tensor){.spec = spec, .data = ids[t]};
    }
    char yaml[2048];
    snprintf(yaml, sizeof yaml,
             "{name: b, source: {type: files}, steps: [{step: read-file}, "
             "{step: bpe-encode, model: " MODEL "}, {step: embed, rows: %zu, columns: %d}]}",
             bare.rows, COLUMNS);
    steps_plan *plan = steps_plan_new(yaml, 2, 3, &spec, texts);
    steps_side step = steps_plan_side(plan);
    steps_side side = {copier_open, copier_run, copier_close, &bare};
    steps_measure(set, row, TEXTS, &step, &side);
    steps_plan_free(plan);
    free(bare.table);
}

/* ---- bpe-encode ---- */

typedef struct encoder {
    const steps_files *texts;
    void *processor;
} encoder;

static void *encoder_open(const void *user) {
    encoder *e = malloc(sizeof *e);
    if (e == NULL)
        bench_die("out of memory");
    *e = (encoder){user, bare_sentencepiece_open(MODEL)};
    if (e->processor == NULL)
        bench_die("%s: cannot be loaded", MODEL);
    return e;
}

static void encoder_run(void *user, size_t number) {
    encoder *e = user;
    presto_span text = e->texts->files[number];
    if (!bare_sentencepiece_encode(e->processor, (const char *)text.data, text.bytes))
        bench_die("text %zu is not encoded", number);
}

static void encoder_close(void *user) {
    encoder *e = user;
    bare_sentencepiece_close(e->processor);
    free(e);
}

static void bench_bpe_encode(const steps_settings *set) {
    static const char row[] = "bpe-encode, 60 kB; bare: SentencePiece";
    steps_files texts;
    if (!steps_wanted(set, row))
        return;
    steps_read_files(PRESTO_TOKENIZERS, "mixed.txt", 1, &texts);
    steps_plan *plan = steps_plan_new("{name: b, source: {type: files}, steps: [{step: read-file}, "
                                      "{step: bpe-encode, model: " MODEL "}]}",
                                      1, 2, &steps_string_spec, texts.samples);
    steps_side step = steps_plan_side(plan);
    steps_side bare = {encoder_open, encoder_run, encoder_close, &texts};
    steps_measure(set, row, texts.count, &step, &bare);
    steps_plan_free(plan);
    steps_free_files(&texts);
}

void steps_tokens(const steps_settings *set) {
    bench_bpe_encode(set);
    bench_embed(set);
}
