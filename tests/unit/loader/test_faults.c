/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every allocation and every system call of a small conversion and of a small stream fails once.
 * Expected are a clean error, no leak, and no half dataset; the conversion can be resumed. The
 * wrappers are those of tests/unit/records/faults.c. Allocations inside other libraries do not
 * fail.
 */
#define _XOPEN_SOURCE 700
#include "../../../steps/pipelines_internal.h"
#include "presto_check.h"

#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <presto/convert.h>
#include <presto/crc32c.h>
#include <presto/mix.h>

#include "../records/faults.h"
#include "folder_check.h"

static presto_error err;
static presto_pipeline *pipeline;
static char *base;
static unsigned threads;
static uint64_t shard_bytes; /* 0: two shards */
static presto_file_compression file_compression;
static bool recodes;                /* the whole dataset, instead of converting the photos */
static presto_pipeline *on_records; /* NULL: converts the photos; else the records of `bare` */
static bool packs;                  /* the bytes of the photos as tokens */

static const char *in_base(const char *name) {
    static char paths[4][700];
    static int turn;
    turn = (turn + 1) % 4;
    snprintf(paths[turn], sizeof paths[turn], "%s/%s", base, name);
    return paths[turn];
}

/* ---- "bytes": an encoded photo -> its bytes as tokens ---- */

static presto_status infer_bytes(const void *state, const presto_tensor_spec *in,
                                 presto_tensor_spec *out_out, presto_error *error) {
    (void)state, (void)in, (void)error;
    *out_out = (presto_tensor_spec){PRESTO_UINT8, 1, {-1}};
    return PRESTO_OK;
}

static presto_status run_bytes(const void *state, presto_step_context *context,
                               const presto_tensor *in, presto_tensor *out_out,
                               presto_error *error) {
    (void)state, (void)context, (void)error;
    out_out->spec = (presto_tensor_spec){PRESTO_UINT8, 1, {(int64_t)in->strings[0].bytes}};
    out_out->data = in->strings[0].data;
    return PRESTO_OK;
}

static const presto_step_type step_bytes = {.abi = PRESTO_STEP_ABI,
                                            .name = "bytes",
                                            .summary = "Bytes.",
                                            .infer = infer_bytes,
                                            .run = run_bytes};

static void load_packing(void) {
    static const char yaml[] =
        "name: p\nsource: {type: files, match: ['*.jpg']}\nsteps:\n  - {step: read-file}\n"
        "  - {step: bytes}\n  - {step: pack, length: 700, eos: -1, last: pad, yields: packed}\n";
    static const presto_step_type *const own[] = {&step_bytes};
    const presto_pipeline_options reading = {
        .struct_bytes = sizeof reading, .steps = own, .step_count = 1};
    presto_pipeline_free(pipeline);
    ck_assert_ok(presto__pipeline_parse(presto_span_of_text(yaml), "p", &reading, &pipeline, &err),
                 &err);
    packs = true;
}

static presto_status convert(const char *to, bool resume) {
    const char *paths[] = {in_base(recodes ? "whole" : on_records != NULL ? "bare" : "photos")};
    presto_convert_options options;
    presto_convert_result result;
    presto_convert_options_defaults(&options);
    options.up_to = recodes ? NULL : packs ? "packed" : "decoded";
    options.codec = "zlib:1";
    options.shards = shard_bytes > 0 ? 0 : 2;
    options.shard_bytes = shard_bytes;
    options.file_compression = file_compression;
    options.threads = threads;
    options.resume = resume;
    options.pipeline = recodes ? NULL : on_records != NULL ? on_records : pipeline;
    options.dir = in_base(to);
    return presto_convert(paths, 1, &options, &result, &err);
}

static void set_up(unsigned with_threads) {
    char command[1200];
    threads = with_threads;
    base = presto_check_temp_dir();
    snprintf(command, sizeof command,
             "%s -n 6 -c 2 --width 60 --height 40 -j 0 -o %s/photos >/dev/null 2>&1",
             PRESTO_CORPUS_PROGRAM, base);
    ck_assert_int_eq(system(command), 0);
    snprintf(command, sizeof command,
             "cd %s && tar -cf photos.tar photos && gzip -c photos.tar > gzip.tar.gz && "
             "{ echo path,n; find photos -name '*.jpg' | sed 's/$/,1/'; } > list.csv",
             base);
    ck_assert_int_eq(system(command), 0);
    ck_assert_ok(presto_pipeline_load("cv", NULL, &pipeline, &err), &err);
    ck_assert_ok(convert("whole", false), &err);
    /* The same records as somebody else's files, without indexes. */
    snprintf(command, sizeof command,
             "cp -r %s/whole %s/foreign && rm -f %s/foreign/*.index %s/foreign/*.json", base, base,
             base, base);
    ck_assert_int_eq(system(command), 0);
}

/* The records of `whole` without a word about what they hold, and a pipeline that takes them. */
static void set_up_records(unsigned with_threads) {
    static const char *const set[] = {"from=decoded", "source.codec=zlib", "source.label=label",
                                      "source.features=[key]"};
    char command[2400];
    set_up(with_threads);
    snprintf(command, sizeof command, "cp -r %s/whole %s/bare && rm %s/bare/dataset.json", base,
             base, base);
    ck_assert_int_eq(system(command), 0);
    const presto_pipeline_options reading = {
        .struct_bytes = sizeof reading, .set = set, .set_count = 4};
    ck_assert_ok(presto_pipeline_load("cv", &reading, &on_records, &err), &err);
}

static void tear_down(void) {
    presto_pipeline_free(on_records);
    on_records = NULL;
    presto_pipeline_free(pipeline);
    presto_check_remove_tree(base);
    free(base);
}

static uint32_t digest_folder(const char *name) {
    return digest_of_folder(in_base(name));
}

static void check_failure(presto_status status, bool fired, long k) {
    ck_assert_msg(fired, "call %ld: fails by itself: %s", k, err.message);
    bool fair = status == PRESTO_ERR_MEMORY || status == PRESTO_ERR_IO;
    ck_assert_msg(fair, "call %ld: %s: %s", k, presto_status_name(status), err.message);
    ck_assert_int_eq(err.status, status);
    ck_assert_int_ne(err.message[0], '\0');
}

static const int all_kinds[] = {FAULT_MEMORY, FAULT_READ, FAULT_WRITE, FAULT_OPEN, FAULT_CLOSE};
enum { KINDS = sizeof all_kinds / sizeof all_kinds[0] };

/* ---- conversions ---- */

static void fail_conversions(int kinds, const char *whole) {
    uint32_t wanted = digest_folder(whole);
    bool fired = true;
    for (long k = 0; fired; k++) {
        faults_arm(kinds, k);
        presto_status status = convert("out", false);
        fired = faults_disarm();
        if (status < 0) {
            check_failure(status, fired, k);
            ck_assert_int_ne(access(in_base("out/dataset.json"), F_OK), 0);
            ck_assert_ok(convert("out", true), &err);
        }
        ck_assert_msg(digest_folder("out") == wanted, "call %ld: other bytes", k);
        presto_check_remove_tree(in_base("out"));
    }
}

START_TEST(an_inline_conversion_survives_every_failure) {
    set_up(0);
    for (int i = 0; i < KINDS; i++)
        fail_conversions(all_kinds[i], "whole");
    tear_down();
}
END_TEST

START_TEST(a_conversion_with_threads_survives_every_failure) {
    set_up(2);
    for (int i = 0; i < KINDS; i++)
        fail_conversions(all_kinds[i], "whole");
    tear_down();
}
END_TEST

START_TEST(a_conversion_to_shards_of_a_size_survives_every_failure) {
    shard_bytes = 15000;
    set_up(0);
    ck_assert_int_eq(access(in_base("whole/data-00002-of-00003.tfrecord"), F_OK), 0);
    for (int i = 0; i < KINDS; i++)
        fail_conversions(all_kinds[i], "whole");
    tear_down();
}
END_TEST

START_TEST(packing_survives_every_failure) {
    set_up(0);
    load_packing();
    for (int i = 0; i < 2; i++) {
        shard_bytes = i == 0 ? 0 : 9000;
        ck_assert_ok(convert("packed", false), &err);
        for (int k = 0; k < KINDS; k++)
            fail_conversions(all_kinds[k], "packed");
        presto_check_remove_tree(in_base("packed"));
    }
    tear_down();
}
END_TEST

START_TEST(packing_with_threads_survives_every_failure) {
    set_up(2);
    load_packing();
    ck_assert_ok(convert("packed", false), &err);
    for (int k = 0; k < KINDS; k++)
        fail_conversions(all_kinds[k], "packed");
    tear_down();
}
END_TEST

START_TEST(recoding_survives_every_failure) {
    set_up(0);
    recodes = true;
    ck_assert_ok(convert("recoded", false), &err);
    for (int i = 0; i < KINDS; i++)
        fail_conversions(all_kinds[i], "recoded");
    tear_down();
}
END_TEST

START_TEST(a_conversion_of_records_survives_every_failure) {
    set_up_records(0);
    ck_assert_ok(convert("stored", false), &err);
    for (int i = 0; i < KINDS; i++)
        fail_conversions(all_kinds[i], "stored");
    tear_down();
}
END_TEST

START_TEST(a_conversion_of_several_shards_at_once_survives_every_failure) {
    file_compression = PRESTO_FILE_GZIP;
    set_up(2);
    for (int i = 0; i < KINDS; i++)
        fail_conversions(all_kinds[i], "whole");
    tear_down();
}
END_TEST

/* ---- streams ---- */

typedef struct streaming {
    const char *from;
    bool raw;        /* the source, not the dataset made of it */
    bool records;    /* the source is records of others */
    bool mixes;      /* it with itself */
    const char *set; /* an option of the pipeline, if raw; NULL: none */
    bool later;      /* raw records, counted on the way */
    presto_output_kind output;
    presto_shuffle_kind shuffle;
} streaming;

static presto_status drain(presto_loader *loader, uint64_t *samples) {
    for (;;) {
        presto_batch *batch;
        presto_status status = presto_loader_next(loader, &batch, &err);
        if (status != PRESTO_OK)
            return status;
        *samples += batch->rows;
        presto_batch_release(batch);
    }
}

static presto_status stream_mix(const char *path, const presto_stream_options *input,
                                uint64_t *samples) {
    const presto_mix_input inputs[] = {{.path = path, .weight = 1}, {.path = path, .weight = 1}};
    presto_mix_options options;
    presto_stream stream = {0};
    presto_loader *loader = NULL;
    presto_mix_options_defaults(&options);
    options.inputs = inputs;
    options.input_count = 2;
    options.stream = input;
    presto_status status = presto_stream_open_mix(&options, &stream, &err);
    if (status >= 0)
        status = presto_loader_open_stream(&stream, input->loader, &loader, &err);
    if (status >= 0)
        status = drain(loader, samples);
    presto_loader_free(loader);
    presto_stream_close(&stream);
    *samples /= 2;
    return status;
}

static presto_status stream_once(const streaming *how, uint64_t *samples) {
    const char *paths[] = {in_base(how->from)};
    presto_stream_options input;
    presto_loader_options options;
    presto_loader *loader = NULL;
    const presto_pipeline_options reading = {
        .struct_bytes = sizeof reading, .set = &how->set, .set_count = how->set != NULL};
    presto_stream_options_defaults(&input);
    input.loader = &options;
    input.pipeline = how->raw ? "cv" : NULL;
    input.pipeline_options = &reading;
    input.from = how->records ? "decoded" : NULL;
    input.to = how->later ? NULL : "decoded";
    input.raw_records = input.count_later = how->later;
    presto_loader_options_defaults(&options);
    options.threads = threads;
    options.output = how->output;
    options.batch_samples = 2;
    options.range.epochs = 2;
    options.order.shuffle = how->shuffle;
    options.order.shuffle_window = 3;
    if (how->mixes)
        return stream_mix(paths[0], &input, samples);
    presto_status status = presto_loader_open_paths(paths, 1, &input, &loader, &err);
    if (status >= 0)
        status = drain(loader, samples);
    presto_loader_free(loader);
    return status;
}

static void fail_streams(const streaming *how) {
    for (int i = 0; i < KINDS; i++) {
        bool fired = true;
        for (long k = 0; fired; k++) {
            uint64_t samples = 0;
            faults_arm(all_kinds[i], k);
            presto_status status = stream_once(how, &samples);
            fired = faults_disarm();
            if (status < 0)
                check_failure(status, fired, k);
            else
                ck_assert_uint_eq(samples, 12);
        }
    }
}

static void fail_all_streams(void) {
    static const streaming ways[] = {
        {.from = "whole", .output = PRESTO_OUTPUT_BATCHES, .shuffle = PRESTO_SHUFFLE_FULL},
        {.from = "whole", .output = PRESTO_OUTPUT_RECORDS, .shuffle = PRESTO_SHUFFLE_BUFFER},
        {.from = "photos", .raw = true, .output = PRESTO_OUTPUT_BATCHES},
        {.from = "photos.tar", .raw = true, .set = "source.type=tar"},
        {.from = "gzip.tar.gz", .raw = true, .set = "source.type=tar"},
        {.from = "list.csv", .raw = true, .set = "source.type=manifest"},
        {.from = "whole",
         .mixes = true,
         .output = PRESTO_OUTPUT_BATCHES,
         .shuffle = PRESTO_SHUFFLE_FULL},
        {.from = "bare",
         .raw = true,
         .records = true,
         .set = "source.codec=zlib",
         .shuffle = PRESTO_SHUFFLE_FULL},
        {.from = "foreign", .later = true, .output = PRESTO_OUTPUT_BATCHES},
        {.from = "foreign", .later = true, .output = PRESTO_OUTPUT_RECORDS},
    };
    for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++)
        fail_streams(&ways[i]);
}

START_TEST(inline_streams_survive_every_failure) {
    set_up_records(0);
    fail_all_streams();
    tear_down();
}
END_TEST

START_TEST(streams_with_threads_survive_every_failure) {
    set_up_records(2);
    fail_all_streams();
    tear_down();
}
END_TEST

int main(void) {
    const TTest *const tests[] = {
        an_inline_conversion_survives_every_failure,
        a_conversion_with_threads_survives_every_failure,
        a_conversion_to_shards_of_a_size_survives_every_failure,
        a_conversion_of_several_shards_at_once_survives_every_failure,
        packing_survives_every_failure,
        packing_with_threads_survives_every_failure,
        recoding_survives_every_failure,
        a_conversion_of_records_survives_every_failure,
        inline_streams_survive_every_failure,
        streams_with_threads_survive_every_failure,
    };
    if (access("/dev/shm", W_OK) == 0)
        setenv("TMPDIR", "/dev/shm", 0);
    return presto_check_main("faults", tests, sizeof tests / sizeof tests[0], 240);
}
