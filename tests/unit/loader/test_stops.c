/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Passes over files end when they are asked to, at whatever read that is; and what was asked is as
 * good as new afterwards.
 */
#include <sys/stat.h>

#include <presto/inspect.h>

#include "../../../steps/pipelines_internal.h"
#include "folder_check.h"
#include "loader_check.h"
#include "tar_made.h"

#include "../base/stop_internal.h"

enum { FILES = 12, TARS = 3, SAMPLES = 40, SHARDS = 3 };

static char *dir;
static presto_error err;

static void set_up(void) {
    dir = presto_check_temp_dir();
}

static void tear_down(void) {
    presto_check_remove_tree(dir);
    free(dir);
}

/* ---- inputs ---- */

static void make_files(void) {
    mkdir(path_in(dir, "in"), 0777);
    for (int i = 0; i < FILES; i++) {
        char name[40];
        snprintf(name, sizeof name, "in/c%d", i % 3);
        mkdir(path_in(dir, name), 0777);
        snprintf(name, sizeof name, "in/c%d/%02d.bin", i % 3, i);
        presto_check_write_file(path_in(dir, name), presto_span_of_text(name));
    }
}

static void make_manifest(void) {
    char rows[2000] = "path,label\n";
    make_files();
    for (int i = 0; i < FILES; i++) {
        size_t used = strlen(rows);
        snprintf(rows + used, sizeof rows - used, "in/c%d/%02d.bin,%d\n", i % 3, i, i);
    }
    presto_check_write_file(path_in(dir, "list.csv"), presto_span_of_text(rows));
}

static void make_tars(void) {
    mkdir(path_in(dir, "in"), 0777);
    for (int t = 0; t < TARS; t++) {
        presto_buffer tar = {0};
        char name[40];
        for (int i = 0; i < FILES; i++) {
            /* Each member is behind what is read ahead. */
            uint8_t *content = calloc(1, (size_t)80 << 10);
            snprintf(name, sizeof name, "%d-%02d.bin", t, i);
            content[0] = (uint8_t)i;
            tar_put_member(&tar, name, presto_span_of(content, (size_t)80 << 10));
            free(content);
        }
        tar_put_end(&tar);
        snprintf(name, sizeof name, "in/%d.tar", t);
        presto_check_write_file(path_in(dir, name), presto_buffer_span(&tar));
        presto_buffer_done(&tar);
    }
}

/* Those of another program: without dataset.json and indexes. */
static void make_records(presto_file_compression compression) {
    const made how = {.samples = SAMPLES,
                      .shards = SHARDS,
                      .values = 30000, /* a read a record */
                      .odd = UINT64_MAX,
                      .file_compression = compression};
    char command[1000];
    mkdir(path_in(dir, "in"), 0777);
    make_dataset(path_in(dir, "in"), &how);
    snprintf(command, sizeof command, "rm %s/in/dataset.json; rm -f %s/in/.*.index %s/in/*.index",
             dir, dir, dir);
    ck_assert_int_eq(system(command), 0);
}

/* One file has a damaged length, behind which the next record is searched for. */
static void damage(void) {
    size_t bytes;
    const char *path = path_in(dir, "in/data-00001-of-00003.tfrecord");
    uint8_t *content = presto_check_read_file(path, &bytes);
    uint64_t first;
    memcpy(&first, content, sizeof first);
    content[first + 16] ^= 0x40;
    presto_check_write_file(path_in(dir, "in/data-00001-of-00003.tfrecord"),
                            presto_span_of(content, bytes));
    free(content);
}

/* ---- being asked ---- */

typedef struct patience {
    uint64_t asked, most;
} patience;

static bool is_enough(void *user) {
    patience *left = user;
    return left->asked++ >= left->most;
}

/* One more each time at first; later they are many, which are alike. */
static uint64_t more(uint64_t most) {
    return most < 60 ? most + 1 : most + most / 7;
}

typedef struct input {
    const char *yaml; /* of its pipeline; NULL: none */
    const char *name; /* in `dir` */
    bool tolerates, counts_later;
    const char *ratio;
} input;

static presto_status open_input(const input *in, patience *left, presto_stream *stream_out) {
    presto_loader_options loader;
    presto_stream_options options;
    const char *path = path_in(dir, in->name);
    char pipeline[700];
    presto_loader_options_defaults(&loader);
    presto_stream_options_defaults(&options);
    loader.should_stop = left == NULL ? NULL : is_enough;
    loader.should_stop_user = left;
    if (in->tolerates)
        loader.errors.policy = PRESTO_ON_ERROR_SKIP;
    options.loader = &loader;
    options.count_later = in->counts_later;
    options.partition.ratio = in->ratio;
    options.partition.part = in->ratio == NULL ? NULL : "1";
    if (in->yaml != NULL) {
        snprintf(pipeline, sizeof pipeline, "%s/p.yaml", dir);
        presto_check_write_file(pipeline, presto_span_of_text(in->yaml));
        options.pipeline = pipeline;
        path = path_in(dir, in->name);
    }
    return presto_stream_open(&path, 1, &options, stream_out, &err);
}

/* All samples of a stream, with what is left out of it. */
static uint32_t content(const presto_stream *stream, bool tolerates, unsigned threads) {
    presto_loader *loader;
    presto_loader_options options;
    presto_batch *batch;
    presto_status status;
    uint32_t digest = 0;
    presto_loader_options_defaults(&options);
    options.threads = threads;
    options.batch_samples = 7;
    if (tolerates)
        options.errors.policy = PRESTO_ON_ERROR_SKIP;
    ck_assert_ok(presto_loader_open_stream(stream, &options, &loader, &err), &err);
    while ((status = presto_loader_next(loader, &batch, &err)) == PRESTO_OK) {
        digest = digest_batch(digest, batch);
        presto_batch_release(batch);
    }
    ck_assert_status(status, PRESTO_END, &err);
    presto_loader_free(loader);
    return digest;
}

/* Opened with any patience, the input is refused for the lack of it, or is the whole one. */
static void check_opening(const input *in) {
    presto_stream whole, stream;
    uint64_t refused = 0;
    ck_assert_ok(open_input(in, NULL, &whole), &err);
    for (uint64_t most = 0;; most = more(most)) {
        patience left = {0, most};
        presto_status status = open_input(in, &left, &stream);
        if (status == PRESTO_OK) {
            ck_assert_uint_le(left.asked, most);
            break;
        }
        ck_assert_status(status, PRESTO_ERR_STOPPED, &err);
        refused++;
    }
    ck_assert_uint_gt(refused, 3);
    ck_assert_uint_eq(presto_source_count(stream.source), presto_source_count(whole.source));
    ck_assert_uint_eq(content(&stream, in->tolerates, 1), content(&whole, in->tolerates, 1));
    presto_stream_close(&stream);
    presto_stream_close(&whole);
}

#define READ_FILE "steps: [{step: read-file, yields: c}]}"

START_TEST(opening_files_stops_at_any_read) {
    set_up();
    make_files();
    check_opening(&(input){
        .yaml =
            "{name: p, source: {type: files, match: ['*.bin'], label: parent-folder}, " READ_FILE,
        .name = "in"});
    check_opening(&(input){.yaml = "{name: p, source: {type: files, match: ['*.bin']}, " READ_FILE,
                           .name = "in",
                           .ratio = "50/50"});
    tear_down();
}
END_TEST

START_TEST(opening_a_manifest_stops_at_any_row) {
    set_up();
    make_manifest();
    check_opening(
        &(input){.yaml = "{name: p, source: {type: manifest}, " READ_FILE, .name = "list.csv"});
    tear_down();
}
END_TEST

START_TEST(opening_tars_stops_at_any_member) {
    set_up();
    make_tars();
    const char *yaml = "{name: p, source: {type: tar, match: ['*.bin']}, " READ_FILE;
    check_opening(&(input){.yaml = yaml, .name = "in"});
    check_opening(&(input){.yaml = yaml, .name = "in/1.tar"});
    char command[700];
    snprintf(command, sizeof command, "gzip -f %s/in/*.tar", dir);
    ck_assert_int_eq(system(command), 0);
    check_opening(&(input){.yaml = yaml, .name = "in"});
    tear_down();
}
END_TEST

START_TEST(counting_records_stops_at_any_read) {
    set_up();
    make_records(PRESTO_FILE_PLAIN);
    check_opening(&(input){.name = "in"});
    damage();
    check_opening(&(input){.name = "in", .tolerates = true});
    tear_down();
}
END_TEST

START_TEST(counting_compressed_records_stops_at_any_read) {
    set_up();
    make_records(PRESTO_FILE_GZIP);
    check_opening(&(input){.name = "in"});
    tear_down();
}
END_TEST

/* ---- what is open already ---- */

/* Open loaders over one stream with any patience. What comes after that is whole. */
static void check_loaders(const input *in, uint64_t first_sample) {
    presto_stream whole, stream;
    presto_loader_options options;
    presto_loader *loader;
    presto_loader_options_defaults(&options);
    options.threads = 0;
    options.range.first_sample = first_sample;
    options.order.shuffle = first_sample > 0 ? PRESTO_SHUFFLE_NONE : PRESTO_SHUFFLE_FULL;
    if (in->tolerates)
        options.errors.policy = PRESTO_ON_ERROR_SKIP;
    ck_assert_ok(open_input(in, NULL, &whole), &err);
    uint32_t wanted = content(&whole, in->tolerates, 2);
    presto_stream_close(&whole);
    for (uint64_t most = 0;; most = more(most)) {
        patience left = {0, most};
        options.should_stop = is_enough;
        options.should_stop_user = &left;
        ck_assert_ok(open_input(in, NULL, &stream), &err);
        presto_status status = presto_loader_open_stream(&stream, &options, &loader, &err);
        if (status == PRESTO_OK) {
            presto_loader_free(loader);
        } else {
            ck_assert_status(status, PRESTO_ERR_STOPPED, &err);
            /* Another time on the same stream, and a little farther. */
            left = (patience){0, most / 2};
            status = presto_loader_open_stream(&stream, &options, &loader, &err);
            if (status == PRESTO_OK)
                presto_loader_free(loader);
            else
                ck_assert_status(status, PRESTO_ERR_STOPPED, &err);
        }
        ck_assert_uint_eq(content(&stream, in->tolerates, 2), wanted);
        presto_stream_close(&stream);
        if (left.asked <= most)
            break;
    }
}

START_TEST(a_stream_whose_count_was_stopped_is_counted_the_next_time) {
    set_up();
    make_records(PRESTO_FILE_PLAIN);
    check_loaders(&(input){.name = "in", .counts_later = true}, 0);
    check_loaders(&(input){.name = "in", .counts_later = true}, SAMPLES - 2);
    damage();
    check_loaders(&(input){.name = "in", .counts_later = true, .tolerates = true}, 0);
    check_loaders(&(input){.name = "in", .counts_later = true, .tolerates = true}, SAMPLES - 2);
    tear_down();
}
END_TEST

START_TEST(so_is_one_of_compressed_files) {
    set_up();
    make_records(PRESTO_FILE_GZIP);
    check_loaders(&(input){.name = "in", .counts_later = true}, 1);
    check_loaders(&(input){.name = "in", .counts_later = true}, SAMPLES - 2);
    tear_down();
}
END_TEST

/* ---- looking into files ---- */

START_TEST(what_is_told_of_files_stops_at_any_read) {
    set_up();
    make_records(PRESTO_FILE_PLAIN);
    damage();
    const char *path = path_in(dir, "in");
    presto_info_options options;
    presto_info whole, info;
    uint64_t refused = 0;
    presto_info_options_defaults(&options);
    ck_assert_ok(presto_info_collect(&path, 1, &options, &whole, &err), &err);
    options.should_stop = is_enough;
    for (uint64_t most = 0;; most = more(most)) {
        patience left = {0, most};
        options.should_stop_user = &left;
        presto_status status = presto_info_collect(&path, 1, &options, &info, &err);
        if (status == PRESTO_OK)
            break;
        ck_assert_status(status, PRESTO_ERR_STOPPED, &err);
        refused++;
    }
    ck_assert_uint_gt(refused, 3);
    ck_assert_uint_eq(info.records, whole.records);
    ck_assert_uint_eq(info.raw_bytes, whole.raw_bytes);
    presto_info_done(&info);
    presto_info_done(&whole);
    tear_down();
}
END_TEST

static bool count_fault(void *user, const presto_fault *fault) {
    (void)fault;
    (*(uint64_t *)user)++;
    return true;
}

START_TEST(a_check_that_is_stopped_finds_no_faults_that_are_not_there) {
    set_up();
    make_records(PRESTO_FILE_PLAIN);
    const char *path = path_in(dir, "in");
    presto_verify_options options;
    uint64_t faults = 0, refused = 0;
    presto_verify_options_defaults(&options);
    options.on_fault = count_fault;
    options.user = &faults;
    options.should_stop = is_enough;
    for (uint64_t most = 0;; most = more(most)) {
        patience left = {0, most};
        presto_verify_result result = {0};
        options.should_stop_user = &left;
        presto_status status = presto_verify_paths(&path, 1, &options, &result, &err);
        ck_assert_uint_eq(faults, 0);
        if (status == PRESTO_OK)
            break;
        ck_assert_status(status, PRESTO_ERR_STOPPED, &err);
        refused++;
    }
    ck_assert_uint_gt(refused, 3);
    tear_down();
}
END_TEST

/* ---- what a conversion lists ---- */

START_TEST(a_conversion_stops_while_it_lists_its_input) {
    set_up();
    make_files();
    const char *yaml = "{name: p, source: {type: files, match: ['*.bin']}, " READ_FILE;
    char in[700], out[700];
    snprintf(in, sizeof in, "%s/in", dir);
    snprintf(out, sizeof out, "%s/out", dir);
    const char *path = in;
    presto_pipeline *pipeline;
    presto_convert_options options;
    presto_convert_result result;
    struct stat info;
    ck_assert_ok(presto__pipeline_parse(presto_span_of_text(yaml), "p", NULL, &pipeline, &err),
                 &err);
    presto_convert_options_defaults(&options);
    options.dir = out;
    options.pipeline = pipeline;
    options.should_stop = is_enough;
    for (uint64_t most = 0;; most = more(most)) {
        patience left = {0, most};
        options.should_stop_user = &left;
        presto_status status = presto_convert(&path, 1, &options, &result, &err);
        if (status == PRESTO_OK)
            break;
        ck_assert_status(status, PRESTO_ERR_STOPPED, &err);
        ck_assert_int_ne(stat(out, &info), 0);
    }
    ck_assert_uint_eq(result.samples, FILES);
    presto_pipeline_free(pipeline);
    tear_down();
}
END_TEST

/* ---- a pass within a pass ---- */

static bool opens_files(void *user) {
    presto_stream stream;
    make_files();
    ck_assert_ok(open_input(user, NULL, &stream), &err); /* and is not asked by it */
    presto_stream_close(&stream);
    return false;
}

START_TEST(whoever_is_asked_may_open_files) {
    set_up();
    const input in = {.yaml = "{name: p, source: {type: files, match: ['*.bin']}, " READ_FILE,
                      .name = "in"};
    presto__stop_hook pass;
    presto__stop_scope before = presto__stop_enter(&pass, opens_files, (void *)(uintptr_t)&in);
    ck_assert_ok(presto__stop_check(&err), &err);
    ck_assert_ok(presto__stop_leave(&pass, before, PRESTO_OK, &err), &err);
    ck_assert_ptr_null(presto__stop_bound().hook);
    tear_down();
}
END_TEST

int main(void) {
    const TTest *const tests[] = {opening_files_stops_at_any_read,
                                  opening_a_manifest_stops_at_any_row,
                                  opening_tars_stops_at_any_member,
                                  counting_records_stops_at_any_read,
                                  counting_compressed_records_stops_at_any_read,
                                  a_stream_whose_count_was_stopped_is_counted_the_next_time,
                                  so_is_one_of_compressed_files,
                                  what_is_told_of_files_stops_at_any_read,
                                  a_check_that_is_stopped_finds_no_faults_that_are_not_there,
                                  a_conversion_stops_while_it_lists_its_input,
                                  whoever_is_asked_may_open_files};
    return presto_check_main("stops", tests, sizeof tests / sizeof *tests, 60);
}
