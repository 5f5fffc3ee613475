/* SPDX-License-Identifier: Apache-2.0 */
/* Conversions that end with pack: rows are those of all documents in a row, whatever the threads
 * and shards; a run that failed goes on with equal bytes and keeps what is whole. */
#define _XOPEN_SOURCE 700
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
static _Atomic int failing; /* the document that the step fails at; -1: none */

static uint64_t pick(uint64_t least, uint64_t most) {
    return least + presto_rng_below(&rng, most - least + 1);
}

/* ---- a step: a text of letters -> tokens, one a letter ---- */

static presto_status infer_letters(const void *state, const presto_tensor_spec *in,
                                   presto_tensor_spec *out_out, presto_error *error) {
    (void)state, (void)in, (void)error;
    *out_out = (presto_tensor_spec){PRESTO_UINT8, 1, {-1}};
    return PRESTO_OK;
}

/* The first two letters are the number of the document; from "zz" on it is dropped. */
static presto_status run_letters(const void *state, presto_step_context *context,
                                 const presto_tensor *in, presto_tensor *out_out,
                                 presto_error *error) {
    (void)state, (void)context;
    presto_span text = in->strings[0];
    int number = (text.data[0] - 'a') * 26 + text.data[1] - 'a';
    if (number == atomic_load(&failing))
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

static void write_document(setting *s, size_t number) {
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

static setting make_setting(void) {
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
    ck_assert_ok(presto_pipeline_parse(presto_span_of_text(yaml), "p", &reading, &s.pipeline, &err),
                 &err);
    atomic_store(&failing, -1);
    return s;
}

static void drop_setting(setting *s) {
    presto_pipeline_free(s->pipeline);
    presto_check_remove_tree(base);
    free(base);
}

/* Row `row` has these tokens and these documents. */
static void check_row(const setting *s, size_t row, const int32_t *tokens, const int64_t *offsets,
                      size_t offset_count) {
    const expected *all = &s->all;
    size_t first = row * s->length, end = first + s->length, at = 0;
    for (size_t i = first; i < end; i++)
        ck_assert_int_eq(tokens[i - first], i < all->count ? all->tokens[i] : -1);
    end = end < all->count ? end : all->count;
    ck_assert_int_eq(offsets[at++], 0);
    for (size_t d = 0; d < all->with_tokens; d++)
        if (all->begins[d] > first && all->begins[d] < end)
            ck_assert_int_eq(offsets[at++], (int64_t)(all->begins[d] - first));
    ck_assert_int_eq(offsets[at++], (int64_t)(end - first));
    ck_assert_uint_eq(at, offset_count);
}

static void check_rows(const setting *s, const char *name) {
    const char *path = path_in(base, name);
    presto_loader *loader;
    presto_batch *batch;
    presto_stream_options options;
    presto_pipeline_options reading = {
        .struct_bytes = sizeof reading, .steps = own, .step_count = 1};
    presto_stream_options_defaults(&options);
    options.pipeline_options = &reading;
    ck_assert_ok(presto_loader_open_paths(&path, 1, &options, &loader, &err), &err);
    size_t rows = 0;
    presto_status status;
    while ((status = presto_loader_next(loader, &batch, &err)) == PRESTO_OK) {
        ck_assert_uint_eq(batch->feature_count, 2);
        const presto_batch_feature *offsets = &batch->features[0], *tokens = &batch->features[1];
        ck_assert_str_eq(offsets->name, "document-offsets");
        ck_assert_int_eq(tokens->tensor.spec.dtype, PRESTO_INT32);
        ck_assert_int_eq(tokens->tensor.spec.dims[1], (int64_t)s->length);
        check_row(s, rows++, tokens->tensor.data, offsets->tensor.data,
                  (size_t)presto_spec_elements(&offsets->tensor.spec));
        presto_batch_release(batch);
    }
    ck_assert_status(status, PRESTO_END, &err);
    presto_loader_free(loader);
    size_t whole = s->all.count / s->length, rest = s->all.count % s->length;
    ck_assert_uint_eq(rows, whole + (s->pads && rest > 0));
}

/* By number, a row is in the shard of the document that it begins in. */
static void check_shards(const setting *s, const char *name, size_t shards) {
    presto_dataset_info info = {0};
    ck_assert_ok(presto_dataset_info_read(path_in(base, name), &info, &err), &err);
    ck_assert_uint_eq(info.shard_count, shards);
    size_t samples = s->documents + 1, document = 0, row = 0;
    size_t rows = (s->all.count + (s->pads ? s->length - 1 : 0)) / s->length;
    for (size_t i = 0; i < shards; i++) {
        uint64_t wanted = 0;
        for (; row < rows; row++, wanted++) {
            while (s->all.begins[document + 1] <= row * s->length)
                document++;
            if (s->all.samples[document] >= samples * (i + 1) / shards)
                break;
        }
        ck_assert_uint_eq(info.shards[i].records, wanted);
    }
    presto_dataset_info_done(&info);
}

/* ---- conversions ---- */

typedef struct way {
    size_t shards;
    uint64_t shard_bytes;
    unsigned threads;
    bool resume;
    const char *part; /* of 50/50; NULL: all */
} way;

static presto_status convert(const setting *s, const char *to, const way *how,
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
    options.sync = false;
    options.codec = "zlib:1";
    return presto_convert(&path, 1, &options, result, &err);
}

static way random_way(void) {
    bool by_size = pick(0, 1) == 1;
    return (way){.shards = by_size ? 0 : (size_t)pick(1, 70),
                 .shard_bytes = by_size ? pick(100, 3000) : 0,
                 .threads = (unsigned)pick(0, 4)};
}

static void start_random(void) {
    presto_rng_key key = {.seed = presto_check_seed()};
    presto_rng_init(&rng, &key);
}

START_TEST(rows_are_all_documents_in_a_row) {
    start_random();
    for (size_t round = 0; round < ROUNDS; round++) {
        setting s = make_setting();
        for (size_t i = 0; i < 3; i++) {
            way how = random_way();
            presto_convert_result result;
            ck_assert_ok(convert(&s, "out", &how, &result), &err);
            check_rows(&s, "out");
            if (how.shards > 0)
                check_shards(&s, "out", how.shards);
            size_t rest = s.all.count % s.length;
            ck_assert_uint_eq(result.packed_documents, s.all.documents);
            ck_assert_uint_eq(result.packed_tokens, s.all.count);
            ck_assert_uint_eq(result.skipped, s.documents + 1 - s.all.documents);
            ck_assert_uint_eq(result.dropped_tokens, s.pads ? 0 : rest);
            ck_assert_uint_eq(result.padded_tokens, s.pads && rest > 0 ? s.length - rest : 0);
            uint32_t first = digest_of_folder(path_in(base, "out"));
            presto_check_remove_tree(path_in(base, "out"));
            how.threads = (unsigned)pick(0, 8);
            ck_assert_ok(convert(&s, "out", &how, &result), &err);
            ck_assert_uint_eq(digest_of_folder(path_in(base, "out")), first);
            how.resume = true; /* there is nothing left to do */
            ck_assert_ok(convert(&s, "out", &how, &result), &err);
            ck_assert_uint_eq(digest_of_folder(path_in(base, "out")), first);
            presto_check_remove_tree(path_in(base, "out"));
        }
        drop_setting(&s);
    }
}
END_TEST

/* Stop at one document after the other: what is whole stays, and the end is the same. */
START_TEST(a_run_that_failed_goes_on_with_equal_bytes) {
    start_random();
    size_t kept = 0;
    /* Some settings have one shard only, of which nothing can be whole: further ones follow. */
    for (size_t round = 0; round < ROUNDS || (kept == 0 && round < 100); round++) {
        setting s = make_setting();
        way how = random_way();
        presto_convert_result result;
        ck_assert_ok(convert(&s, "whole", &how, &result), &err);
        uint32_t wanted = digest_of_folder(path_in(base, "whole"));
        for (int at = 0; at < (int)s.documents; at += (int)pick(1, 15)) {
            struct stat before = {0}, after = {0};
            char name[64];
            atomic_store(&failing, at);
            how.threads = (unsigned)pick(0, 4);
            how.resume = true;
            (void)convert(&s, "out", &how, &result); /* a dropped document does not fail */
            snprintf(name, sizeof name, "out/.data-%05d.tfrecord", 0);
            if (how.shards > 0)
                snprintf(name, sizeof name, "out/data-%05d-of-%05zu.tfrecord", 0, how.shards);
            bool stands = stat(path_in(base, name), &before) == 0;
            if (pick(0, 1) == 0)
                continue; /* another failure follows */
            if (stands && access(path_in(base, "out/dataset.json"), F_OK) != 0) {
                atomic_store(&failing, at + (int)pick(1, 10));
                (void)convert(&s, "out", &how, &result);
                if (stat(path_in(base, name), &after) == 0)
                    ck_assert_uint_eq(after.st_ino, before.st_ino);
                kept++;
            }
        }
        atomic_store(&failing, -1);
        how.resume = true;
        ck_assert_ok(convert(&s, "out", &how, &result), &err);
        ck_assert_uint_eq(digest_of_folder(path_in(base, "out")), wanted);
        drop_setting(&s);
    }
    ck_assert_uint_gt(kept, 0);
}
END_TEST

/* A shard in the middle is gone: those behind it begin where it ended, and are made again. */
START_TEST(a_missing_shard_is_made_again_with_those_behind_it) {
    start_random();
    for (size_t round = 0; round < ROUNDS; round++) {
        setting s = make_setting();
        way how = {.shards = 6, .threads = 2, .resume = true};
        presto_convert_result result;
        ck_assert_ok(convert(&s, "whole", &how, &result), &err);
        uint32_t wanted = digest_of_folder(path_in(base, "whole"));
        atomic_store(&failing, (int)s.documents - 1);
        presto_status status = convert(&s, "out", &how, &result);
        atomic_store(&failing, -1);
        char name[64];
        snprintf(name, sizeof name, "out/data-%05d-of-00006.tfrecord", (int)pick(0, 3));
        if (status < 0)
            (void)remove(path_in(base, name));
        ck_assert_ok(convert(&s, "out", &how, &result), &err);
        ck_assert_uint_eq(digest_of_folder(path_in(base, "out")), wanted);
        drop_setting(&s);
    }
}
END_TEST

/* The documents of a part have other numbers in the source than positions in the part. */
START_TEST(a_part_of_a_source_is_packed_into_its_shards) {
    static const char *const parts[] = {"1", "2"};
    start_random();
    for (size_t round = 0; round < ROUNDS; round++) {
        setting s = make_setting();
        uint64_t documents = 0;
        for (size_t part = 0; part < 2 && s.documents > 20; part++) {
            way how = random_way();
            how.part = parts[part];
            how.resume = true;
            presto_convert_result result;
            ck_assert_ok(convert(&s, "whole", &how, &result), &err);
            ck_assert(how.shards == 0 || result.shards == how.shards);
            documents += result.packed_documents;
            for (int at = 0; at < (int)s.documents; at += (int)pick(1, 15)) {
                atomic_store(&failing, at);
                (void)convert(&s, "out", &how, &result);
            }
            atomic_store(&failing, -1);
            ck_assert_ok(convert(&s, "out", &how, &result), &err);
            ck_assert_uint_eq(digest_of_folder(path_in(base, "out")),
                              digest_of_folder(path_in(base, "whole")));
            presto_check_remove_tree(path_in(base, "out"));
            presto_check_remove_tree(path_in(base, "whole"));
        }
        ck_assert(s.documents <= 20 || documents == s.all.documents);
        drop_setting(&s);
    }
}
END_TEST

/* The progress of a job that packs, whose places were taken away or moved. */
START_TEST(progress_of_an_enemy_is_refused) {
    static const char *const changes[][2] = {
        {"\"next\"", "\"nope\""},
        {"\"documents\": ", "\"documents\": 9"},
        {"\"sample\": ", "\"sample\": 9"},
        {"\"token\": ", "\"token\": -1"},
    };
    start_random();
    size_t tried = 0;
    while (tried < 3) {
        setting s = make_setting();
        way how = {.shards = 6, .threads = 1, .resume = true};
        presto_convert_result result;
        atomic_store(&failing, (int)s.documents - 1);
        presto_status status = convert(&s, "out", &how, &result);
        char path[700];
        size_t bytes;
        snprintf(path, sizeof path, "%s/out/.progress.json", base);
        bool is_left = status < 0 && access(path, F_OK) == 0;
        for (size_t i = 0; is_left && i < sizeof changes / sizeof changes[0]; i++) {
            uint8_t *content = presto_check_read_file(path, &bytes);
            char *text = presto_span_to_text(presto_span_of(content, bytes));
            char *at = strstr(text, changes[i][0]), *changed = malloc(bytes + 32);
            ck_assert_ptr_nonnull(at);
            snprintf(changed, bytes + 32, "%.*s%s%s", (int)(at - text), text, changes[i][1],
                     at + strlen(changes[i][0]));
            presto_check_write_file(path, presto_span_of_text(changed));
            ck_assert_status(convert(&s, "out", &how, &result), PRESTO_ERR_CORRUPT, &err);
            presto_check_write_file(path, presto_span_of(content, bytes));
            free(changed);
            free(text);
            free(content);
        }
        tried += is_left;
        drop_setting(&s);
    }
}
END_TEST

START_TEST(skipped_documents_are_left_out_and_counted) {
    start_random();
    setting s = make_setting();
    const char *path = path_in(base, "in");
    presto_convert_options options;
    presto_convert_result result;
    presto_convert_options_defaults(&options);
    options.pipeline = s.pipeline;
    options.dir = path_in(base, "out");
    options.errors.policy = PRESTO_ON_ERROR_SKIP;
    options.sync = false;
    atomic_store(&failing, 599); /* no document; then one that is there */
    ck_assert_ok(presto_convert(&path, 1, &options, &result, &err), &err);
    check_rows(&s, "out");
    drop_setting(&s);
}
END_TEST

START_TEST(streams_do_not_pack) {
    start_random();
    setting s = make_setting();
    const char *path = path_in(base, "in");
    presto_source *source;
    presto_plan *plan;
    presto_loader *loader;
    ck_assert_ok(presto_source_open_raw(s.pipeline, &path, 1, &source, &err), &err);
    ck_assert_ok(presto_plan_new(s.pipeline, NULL, &plan, &err), &err);
    ck_assert_status(presto_loader_open(source, plan, NULL, &loader, &err), PRESTO_ERR_ARGUMENT,
                     &err);
    ck_assert_ptr_nonnull(strstr(err.message, "step pack"));
    presto_plan_free(plan);
    presto_source_free(source);
    drop_setting(&s);
}
END_TEST

int main(void) {
    const TTest *const tests[] = {
        rows_are_all_documents_in_a_row,
        a_run_that_failed_goes_on_with_equal_bytes,
        a_missing_shard_is_made_again_with_those_behind_it,
        a_part_of_a_source_is_packed_into_its_shards,
        progress_of_an_enemy_is_refused,
        skipped_documents_are_left_out_and_counted,
        streams_do_not_pack,
    };
    return presto_check_main("regroup", tests, sizeof tests / sizeof tests[0], 240);
}
