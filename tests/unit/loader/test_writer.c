/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A writer of samples: the bytes that shard writers make of the same samples, for any number of
 * threads; samples that are not alike; interrupted runs, of every kind, that go on; what is
 * refused.
 */
#define _XOPEN_SOURCE 700
#include "../../../records/records_internal.h"
#include "folder_check.h"
#include "loader_check.h"

#include <pthread.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <presto/inspect.h>
#include <presto/writer.h>

#include "../records/faults.h"

#define SAMPLES 60
#define VALUES 40
#define ODD 17

static char *dir;
static presto_error err;

static void set_up(void) {
    dir = presto_check_temp_dir();
}

static void tear_down(void) {
    presto_check_remove_tree(dir);
    free(dir);
}

static char *at(const char *name) {
    return path_in(dir, name);
}

static presto_writer_options defaults(const char *name, unsigned threads) {
    presto_writer_options options;
    presto_writer_options_defaults(&options);
    options.dir = at(name);
    options.threads = threads;
    options.sync = false;
    options.codec = "zstd:1";
    options.main_feature = "x";
    return options;
}

/* Sample `number` as loader_check.h makes them. */
static presto_status add(presto_writer *writer, uint64_t number) {
    size_t values = VALUES + (number == ODD);
    float x[VALUES + 1];
    for (size_t i = 0; i < values; i++)
        x[i] = made_value(number, i);
    char key[32];
    snprintf(key, sizeof key, "sample-%" PRIu64, number);
    presto_span text = presto_span_of_text(key);
    int64_t label = (int64_t)(number % 7);
    presto_feature features[3] = {
        {.name = presto_span_of_text("x"),
         .encoding = PRESTO_ENCODE_TENSOR,
         .tensor = {.spec = {PRESTO_FLOAT32, 1, {(int64_t)values}}, .data = x}},
        {.name = presto_span_of_text("key"),
         .encoding = PRESTO_ENCODE_BYTES,
         .tensor = {.spec = {.dtype = PRESTO_STRING}, .strings = &text}},
        {.name = presto_span_of_text("label"),
         .encoding = PRESTO_ENCODE_INT64,
         .tensor = {.spec = {.dtype = PRESTO_INT64}, .data = &label}}};
    if (number % 2 == 1) { /* in another order */
        presto_feature first = features[0];
        features[0] = features[2];
        features[2] = first;
    }
    const presto_sample sample = {.features = features, .feature_count = 3};
    return presto_writer_add(writer, &sample, &err);
}

static presto_status write_all(const presto_writer_options *options, uint64_t samples,
                               presto_convert_result *result) {
    presto_writer *writer;
    presto_status status = presto_writer_open(options, &writer, &err);
    if (status < 0)
        return status;
    for (uint64_t i = presto_writer_samples(writer); i < samples && status >= 0; i++)
        status = add(writer, i);
    if (status >= 0)
        status = presto_writer_finish(writer, result, &err);
    presto_writer_free(writer);
    return status;
}

static void write_ok(const presto_writer_options *options, uint64_t samples) {
    presto_convert_result result = {0};
    ck_assert_ok(write_all(options, samples, &result), &err);
    ck_assert_uint_eq(result.samples, samples);
    ck_assert_uint_eq(result.skipped, 0);
}

/* All shards in a row; their number. */
static size_t read_shards(const char *name, presto_buffer *out) {
    presto_dataset_info info = {0};
    ck_assert_ok(presto__dataset_info_read(at(name), &info, &err), &err);
    size_t count = info.shard_count;
    for (size_t i = 0; i < count; i++) {
        char path[1400];
        size_t bytes;
        snprintf(path, sizeof path, "%s/%s", at(name), info.shards[i].file);
        uint8_t *content = presto_check_read_file(path, &bytes);
        ck_assert_uint_eq(info.shards[i].crc32c, presto_crc32c(0, content, bytes));
        ck_assert_ok(presto_buffer_append(out, presto_span_of(content, bytes), &err), &err);
        free(content);
    }
    presto__dataset_info_free(&info);
    return count;
}

static void check_same_info(const char *a, const char *b) {
    presto_dataset_info one = {0}, other = {0};
    ck_assert_ok(presto__dataset_info_read(at(a), &one, &err), &err);
    ck_assert_ok(presto__dataset_info_read(at(b), &other, &err), &err);
    ck_assert_str_eq(one.id, other.id); /* of the shards' CRCs and counts */
    ck_assert_str_eq(one.codec, other.codec);
    ck_assert_str_eq(one.main_feature, other.main_feature);
    ck_assert_uint_eq(one.feature_count, other.feature_count);
    for (size_t i = 0; i < one.feature_count; i++) {
        ck_assert_str_eq(one.features[i].name, other.features[i].name);
        ck_assert_int_eq(one.features[i].encoding, other.features[i].encoding);
        ck_assert(presto_spec_equal(&one.features[i].spec, &other.features[i].spec));
    }
    for (size_t i = 0; i < one.shard_count; i++)
        ck_assert_uint_eq(one.shards[i].raw_bytes, other.shards[i].raw_bytes);
    presto__dataset_info_free(&one);
    presto__dataset_info_free(&other);
}

static void check_bytes(const char *codec) {
    static const size_t shards[] = {1, 3, SAMPLES + 4};
    static const unsigned threads[] = {0, 1, 2, 5};
    static const presto_file_compression files[] = {PRESTO_FILE_PLAIN, PRESTO_FILE_GZIP};
    for (size_t s = 0; s < 3; s++)
        for (size_t f = 0; f < 2; f++) {
            made how = {.samples = SAMPLES,
                        .shards = shards[s],
                        .values = VALUES,
                        .odd = ODD,
                        .codec = codec,
                        .file_compression = files[f]};
            ck_assert_int_eq(mkdir(at("made"), 0777), 0);
            make_dataset(at("made"), &how);
            for (size_t t = 0; t < 4; t++) {
                presto_writer_options options = defaults("out", threads[t]);
                options.shards = shards[s];
                options.samples = SAMPLES;
                options.codec = codec;
                options.file_compression = files[f];
                write_ok(&options, SAMPLES);
                check_same_info("made", "out");
                presto_check_remove_tree(at("out"));
            }
            presto_check_remove_tree(at("made"));
        }
}

/* Without a codec, frames are made where samples are serialized. */
START_TEST(a_number_of_shards_has_the_bytes_of_shard_writers) {
    set_up();
    check_bytes("zstd:1");
    check_bytes("none");
    tear_down();
}
END_TEST

START_TEST(shards_of_a_size_hold_what_fits) {
    set_up();
    static const unsigned threads[] = {1, 0, 4};
    presto_buffer wanted = {0}, got = {0};
    presto_writer_options options = defaults("one", 2);
    write_ok(&options, SAMPLES);
    ck_assert_uint_eq(read_shards("one", &wanted), 1);
    static const uint64_t sizes[] = {1, 700, 5000, 1000000};
    for (size_t s = 0; s < 4; s++) {
        presto_dataset_info info = {0};
        for (size_t t = 0; t < 3; t++) {
            options = defaults("out", threads[t]);
            options.shard_bytes = sizes[s];
            write_ok(&options, SAMPLES);
            got.bytes = 0;
            read_shards("out", &got);
            ck_assert(presto_span_equal(presto_buffer_span(&got), presto_buffer_span(&wanted)));
            ck_assert_ok(presto__dataset_info_read(at("out"), &info, &err), &err);
            for (size_t i = 0; i < info.shard_count; i++) {
                uint64_t bytes = info.shards[i].stored_bytes;
                ck_assert(bytes <= sizes[s] || info.shards[i].records == 1);
                ck_assert(i + 1 == info.shard_count || sizes[s] == 1 ||
                          bytes + info.shards[i + 1].stored_bytes > sizes[s]);
            }
            presto__dataset_info_free(&info);
            presto_check_remove_tree(at("out"));
        }
    }
    presto_buffer_done(&wanted);
    presto_buffer_done(&got);
    tear_down();
}
END_TEST

/* ---- samples that are not alike ---- */

static presto_feature number_of(const char *name, presto_encoding encoding, presto_dtype dtype,
                                int rank) {
    static const int64_t zeros[4];
    presto_feature feature = {.name = presto_span_of_text(name), .encoding = encoding};
    feature.tensor.spec = (presto_tensor_spec){.dtype = dtype, .rank = rank};
    for (int i = 0; i < rank; i++)
        feature.tensor.spec.dims[i] = 1;
    feature.tensor.data = zeros;
    return feature;
}

static void check_refused(presto_writer *writer, presto_feature *features, size_t count,
                          const char *wanted) {
    const presto_sample sample = {.features = features, .feature_count = count};
    ck_assert_status(presto_writer_add(writer, &sample, &err), PRESTO_ERR_TYPE, &err);
    ck_assert_msg(strstr(err.message, wanted) != NULL, "%s", err.message);
}

START_TEST(samples_that_are_not_alike_are_refused_by_name) {
    set_up();
    presto_writer_options options = defaults("out", 2);
    options.main_feature = NULL;
    presto_writer *writer;
    presto_feature a = number_of("a", PRESTO_ENCODE_INT64, PRESTO_INT64, 0);
    presto_feature b = number_of("b", PRESTO_ENCODE_TENSOR, PRESTO_UINT8, 2);
    presto_feature none = number_of("a", PRESTO_ENCODE_NONE, PRESTO_DTYPE_UNKNOWN, 0);
    ck_assert_ok(presto_writer_open(&options, &writer, &err), &err);
    check_refused(writer, (presto_feature[]){a, a}, 2, "sample 0: feature 'a' is there twice");
    check_refused(writer, NULL, 0, "sample 0 has no features");
    presto_feature first[] = {none, b};
    const presto_sample sample = {.features = first, .feature_count = 2};
    ck_assert_ok(presto_writer_add(writer, &sample, &err), &err);
    /* What is not added says nothing of what `a` is. */
    presto_feature list = number_of("a", PRESTO_ENCODE_INT64, PRESTO_INT64, 1);
    check_refused(writer, (presto_feature[]){list}, 1, "sample 1: feature 'b' is missing");
    first[0] = a; /* only now it is known */
    ck_assert_ok(presto_writer_add(writer, &sample, &err), &err);
    check_refused(writer, (presto_feature[]){a}, 1, "sample 2: feature 'b' is missing");
    presto_feature c = number_of("c", PRESTO_ENCODE_INT64, PRESTO_INT64, 0);
    check_refused(writer, (presto_feature[]){a, b, c}, 3, "sample 2: feature 'c' is new");
    check_refused(writer, (presto_feature[]){a, b, b}, 3, "sample 2: feature 'b' is there twice");
    presto_feature other = number_of("a", PRESTO_ENCODE_FLOAT, PRESTO_FLOAT32, 0);
    check_refused(writer, (presto_feature[]){other, b}, 2,
                  "sample 2: feature 'a' is float32 of encoding float, but in samples before it is "
                  "int64 of encoding int64");
    other = number_of("b", PRESTO_ENCODE_TENSOR, PRESTO_UINT8, 3);
    check_refused(writer, (presto_feature[]){a, other}, 2, "feature 'b' is uint8[1,1,1]");
    check_refused(writer, (presto_feature[]){list, b}, 2,
                  "feature 'a' is int64[1] of encoding int64, but in samples before it is int64 ");
    other.tensor.spec.dims[0] = -1;
    check_refused(writer, (presto_feature[]){a, other}, 2, "no whole shape");
    b.tensor.spec.dims[1] = 3; /* a size may differ */
    first[1] = b;
    ck_assert_ok(presto_writer_add(writer, &sample, &err), &err);
    presto_convert_result result;
    ck_assert_ok(presto_writer_finish(writer, &result, &err), &err);
    ck_assert_uint_eq(result.samples, 3);
    ck_assert_status(presto_writer_add(writer, &sample, &err), PRESTO_ERR_ARGUMENT, &err);
    ck_assert_status(presto_writer_finish(writer, NULL, &err), PRESTO_ERR_ARGUMENT, &err);
    presto_writer_free(writer);
    presto_dataset_info info = {0};
    char text[PRESTO_SPEC_TEXT_BYTES];
    ck_assert_ok(presto__dataset_info_read(at("out"), &info, &err), &err);
    ck_assert_str_eq(presto_spec_format(&info.features[0].spec, text, sizeof text), "int64[?]");
    ck_assert_str_eq(presto_spec_format(&info.features[1].spec, text, sizeof text), "uint8[1,?]");
    presto__dataset_info_free(&info);
    tear_down();
}
END_TEST

START_TEST(options_and_folders_that_do_not_go_are_refused) {
    set_up();
    presto_writer *writer;
    presto_writer_options options = defaults("out", 1);
    options.shards = 3;
    ck_assert_status(presto_writer_open(&options, &writer, &err), PRESTO_ERR_ARGUMENT, &err);
    options.samples = 5;
    ck_assert_status(write_all(&options, 4, NULL), PRESTO_ERR_ARGUMENT, &err);
    ck_assert_ptr_nonnull(strstr(err.message, "4 samples came, but 5 were announced"));
    ck_assert_int_ne(access(at("out"), F_OK), 0); /* no shard was whole */
    ck_assert_status(write_all(&options, 6, NULL), PRESTO_ERR_ARGUMENT, &err);
    presto_check_remove_tree(at("out"));
    static const char *const codecs[] = {"zstd+dict", "zstd+delta"};
    for (size_t i = 0; i < 2; i++) {
        options = defaults("out", 1);
        options.codec = codecs[i];
        ck_assert_status(presto_writer_open(&options, &writer, &err), PRESTO_ERR_ARGUMENT, &err);
    }
    options = defaults("out", PRESTO_MAX_THREADS + 1);
    ck_assert_status(presto_writer_open(&options, &writer, &err), PRESTO_ERR_ARGUMENT, &err);
    options = defaults("out", 1);
    options.main_feature = "nothing";
    ck_assert_status(write_all(&options, 1, NULL), PRESTO_ERR_ARGUMENT, &err);
    options = defaults("out", 1);
    ck_assert_ok(presto_writer_open(&options, &writer, &err), &err);
    presto_writer *second;
    ck_assert_status(presto_writer_open(&options, &second, &err), PRESTO_ERR_BUSY, &err);
    ck_assert_ok(presto_writer_finish(writer, NULL, &err), &err); /* no sample at all */
    presto_writer_free(writer);
    presto_dataset *dataset;
    const char *path = at("out");
    ck_assert_ok(presto_dataset_open(&path, 1, NULL, &dataset, &err), &err);
    ck_assert_uint_eq(presto_dataset_records(dataset), 0);
    presto_dataset_free(dataset);
    options = defaults("out", 1);
    ck_assert_status(presto_writer_open(&options, &writer, &err), PRESTO_ERR_ARGUMENT, &err);
    tear_down();
}
END_TEST

/* ---- interrupted runs ---- */

/* A run that adds `samples` and is given up, or whose process is killed. */
static void interrupt(presto_writer_options *options, uint64_t samples, bool is_killed) {
    pid_t child = is_killed ? fork() : 0;
    if (child == 0) {
        presto_writer *writer;
        ck_assert_ok(presto_writer_open(options, &writer, &err), &err);
        for (uint64_t i = presto_writer_samples(writer); i < samples; i++)
            ck_assert_ok(add(writer, i), &err);
        if (is_killed)
            _exit(0);
        presto_writer_free(writer);
        return;
    }
    int how;
    ck_assert_int_eq(waitpid(child, &how, 0), child);
    ck_assert(WIFEXITED(how) && WEXITSTATUS(how) == 0);
}

START_TEST(an_interrupted_run_goes_on_with_the_same_bytes) {
    set_up();
    srand((unsigned)presto_check_seed());
    for (int by_number = 0; by_number < 2; by_number++) {
        presto_writer_options options = defaults("whole", 2);
        options.shards = by_number ? 5 : 0;
        options.samples = by_number ? SAMPLES : 0;
        options.shard_bytes = by_number ? 0 : 3000;
        write_ok(&options, SAMPLES);
        for (size_t round = 0; round < presto_check_rounds(16); round++) {
            options.dir = at("out");
            options.resume = true;
            options.threads = (unsigned)round % 3;
            uint64_t samples = 0;
            for (int run = 0; run < 3; run++) {
                samples += (uint64_t)rand() % (SAMPLES / 2);
                interrupt(&options, samples < SAMPLES ? samples : SAMPLES, round % 2 == 0);
                ck_assert_int_ne(access(at("out/dataset.json"), F_OK), 0);
                options.dir = at("out");
            }
            write_ok(&options, SAMPLES);
            check_same_info("whole", "out");
            write_ok(&options, SAMPLES); /* it is whole already */
            presto_check_remove_tree(at("out"));
        }
        presto_check_remove_tree(at("whole"));
    }
    tear_down();
}
END_TEST

#define FEW 10

static void fail_every_call(int kinds, unsigned threads, bool by_number) {
    presto_writer_options options = defaults("whole", threads);
    options.sync = kinds == FAULT_WRITE && threads == 0; /* it takes long */
    options.shards = by_number ? 2 : 0;
    options.samples = by_number ? FEW : 0;
    options.shard_bytes = by_number ? 0 : 700;
    write_ok(&options, FEW);
    bool fired = true;
    for (long k = 0; fired; k++) {
        presto_convert_result result;
        options.dir = at("out");
        options.resume = false;
        faults_arm(kinds, k);
        presto_status status = write_all(&options, FEW, &result);
        fired = faults_disarm();
        if (status < 0) {
            ck_assert_msg(fired, "call %ld fails by itself: %s", k, err.message);
            ck_assert_msg(status == PRESTO_ERR_MEMORY || status == PRESTO_ERR_IO, "call %ld: %s", k,
                          err.message);
            ck_assert_int_ne(access(at("out/dataset.json"), F_OK), 0);
            options.resume = true;
            write_ok(&options, FEW);
        }
        check_same_info("whole", "out");
        presto_check_remove_tree(at("out"));
    }
    presto_check_remove_tree(at("whole"));
}

START_TEST(every_call_that_fails_leaves_what_can_be_resumed) {
    set_up();
    static const int kinds[] = {FAULT_MEMORY, FAULT_READ, FAULT_WRITE, FAULT_OPEN, FAULT_CLOSE};
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        for (unsigned threads = 0; threads < 3; threads += 2)
            for (int by_number = 0; by_number < 2; by_number++)
                fail_every_call(kinds[i], threads, by_number == 1);
    tear_down();
}
END_TEST

/* ---- threads ---- */

typedef struct adder {
    presto_writer *writer;
    uint64_t first;
} adder;

#define ADDERS ((size_t)4)
#define EACH 500

static void *add_many(void *argument) {
    const adder *mine = argument;
    for (uint64_t i = 0; i < EACH; i++)
        ck_assert_ok(add(mine->writer, mine->first + i), &err);
    return NULL;
}

START_TEST(any_number_of_threads_may_add) {
    set_up();
    presto_writer_options options = defaults("out", 3);
    options.shard_bytes = 20000;
    options.prefetch_bytes = 1000; /* they wait for room */
    presto_writer *writer;
    pthread_t threads[ADDERS];
    adder adders[ADDERS];
    ck_assert_ok(presto_writer_open(&options, &writer, &err), &err);
    for (size_t i = 0; i < ADDERS; i++) {
        adders[i] = (adder){writer, i * EACH};
        ck_assert_int_eq(pthread_create(&threads[i], NULL, add_many, &adders[i]), 0);
    }
    for (size_t i = 0; i < ADDERS; i++)
        pthread_join(threads[i], NULL);
    ck_assert_uint_eq(presto_writer_samples(writer), ADDERS * EACH);
    presto_convert_result result;
    ck_assert_ok(presto_writer_finish(writer, &result, &err), &err);
    ck_assert_uint_eq(result.samples, ADDERS * EACH);
    presto_writer_free(writer);
    presto_verify_result checked = {0};
    const char *path = at("out");
    ck_assert_ok(presto_verify_paths(&path, 1, NULL, &checked, &err), &err);
    ck_assert_uint_eq(checked.faults, 0);
    ck_assert_uint_eq(checked.records, ADDERS * EACH);
    tear_down();
}
END_TEST

static bool stop_at_once(void *user) {
    (*(int *)user)++;
    return true;
}

START_TEST(a_call_that_waits_can_be_stopped) {
    set_up();
    int asked = 0;
    presto_writer_options options = defaults("out", 1);
    options.should_stop = stop_at_once;
    options.should_stop_user = &asked;
    presto_writer *writer;
    ck_assert_ok(presto_writer_open(&options, &writer, &err), &err);
    for (uint64_t i = 0; i < 10; i++)
        ck_assert_ok(add(writer, i), &err);
    /* Finish may have to wait or not; a writer that was stopped goes on. */
    presto_status status;
    do
        status = presto_writer_finish(writer, NULL, &err);
    while (status == PRESTO_ERR_STOPPED);
    ck_assert_ok(status, &err);
    presto_writer_free(writer);
    tear_down();
}
END_TEST

int main(void) {
    const TTest *const tests[] = {
        a_number_of_shards_has_the_bytes_of_shard_writers,
        shards_of_a_size_hold_what_fits,
        samples_that_are_not_alike_are_refused_by_name,
        options_and_folders_that_do_not_go_are_refused,
        an_interrupted_run_goes_on_with_the_same_bytes,
        every_call_that_fails_leaves_what_can_be_resumed,
        any_number_of_threads_may_add,
        a_call_that_waits_can_be_stopped,
    };
    return presto_check_main("writer", tests, sizeof tests / sizeof tests[0], 120);
}
