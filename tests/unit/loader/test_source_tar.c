/* SPDX-License-Identifier: Apache-2.0 */
/* The raw source `tar`: what becomes a sample, in every order, from plain archives and gzip; damage. */
#include <stdlib.h>
#include <unistd.h>

#include "folder_check.h"
#include "loader_check.h"
#include "tar_made.h"

enum { ARCHIVES = 3, OF_EACH = 10, SAMPLES = ARCHIVES * OF_EACH };

static char *dir;
static presto_source *source;
static presto_pipeline *pipeline;
static presto_plan *plan;
static presto_error err;

static presto_status open_at(const char *options, const char *const *paths, size_t count) {
    char yaml[600];
    snprintf(yaml, sizeof yaml,
             "{name: p, source: {type: tar, match: ['*.bin', '*.raw']%s}, "
             "steps: [{step: read-file, yields: concatenated}]}",
             options);
    ck_assert_ok(presto_pipeline_parse(presto_span_of_text(yaml), "p", NULL, &pipeline, &err),
                 &err);
    ck_assert_ok(presto_plan_new(pipeline, NULL, &plan, &err), &err);
    return presto_source_open_raw(pipeline, paths, count, &source, &err);
}

static presto_status open_source(const char *options) {
    return open_at(options, (const char *const *)&dir, 1);
}

static void set_up(void) {
    dir = presto_check_temp_dir();
    source = NULL;
}

static void close_source(void) {
    presto_source_free(source);
    presto_plan_free(plan);
    presto_pipeline_free(pipeline);
    source = NULL;
    plan = NULL;
    pipeline = NULL;
}

static void tear_down(void) {
    close_source();
    presto_check_remove_tree(dir);
    free(dir);
}

static void write_tar(const char *name, presto_buffer *tar) {
    presto_check_write_file(path_in(dir, name), presto_buffer_span(tar));
    presto_buffer_done(tar);
}

static void compress(const char *name) {
    char command[1600];
    snprintf(command, sizeof command, "gzip -f %s", path_in(dir, name));
    ck_assert_int_eq(system(command), 0);
}

/* The content of the main member of sample i. */
static size_t content_of(uint64_t i, uint8_t content[2000]) {
    size_t bytes = (size_t)(i * 613 % 1900);
    for (size_t k = 0; k < bytes; k++)
        content[k] = (uint8_t)(i * 31 + k * 7 + k / 256);
    return bytes;
}

static void put_array(presto_buffer *tar, const char *name, const float *values, size_t count) {
    presto_buffer npy = {0};
    char header[128];
    int bytes = snprintf(header, sizeof header,
                         "{'descr': '<f4', 'fortran_order': False, 'shape': (%zu,), }", count);
    uint8_t start[10] = {0x93, 'N', 'U', 'M', 'P', 'Y', 1, 0, (uint8_t)bytes, 0};
    tar_put(&npy, start, sizeof start);
    tar_put(&npy, header, (size_t)bytes);
    tar_put(&npy, values, count * sizeof *values);
    tar_put_member(tar, name, presto_buffer_span(&npy));
    presto_buffer_done(&npy);
}

static void put_sample(presto_buffer *tar, uint64_t i) {
    uint8_t content[2000];
    char name[64], text[64];
    const float values[3] = {(float)i, (float)i / 2, -1};
    snprintf(name, sizeof name, "train/%05d.cls", (int)i);
    snprintf(text, sizeof text, "%d\n", (int)(i * 7 % 10));
    tar_put_text(tar, name, text);
    snprintf(name, sizeof name, "train/%05d.Bin", (int)i);
    tar_put_member(tar, name, presto_span_of(content, content_of(i, content)));
    snprintf(name, sizeof name, "train/%05d.json", (int)i);
    snprintf(text, sizeof text, "{\"number\": %d}", (int)i);
    tar_put_text(tar, name, text);
    snprintf(name, sizeof name, "train/%05d.emb.npy", (int)i);
    put_array(tar, name, values, 3);
}

/* a.tar, b.tar.gz if `gzip`, c.tar */
static void make_archives(bool gzip) {
    for (int a = 0; a < ARCHIVES; a++) {
        presto_buffer tar = {0};
        char name[] = {(char)('a' + a), '.', 't', 'a', 'r', '\0'};
        for (uint64_t i = 0; i < OF_EACH; i++)
            put_sample(&tar, (uint64_t)a * OF_EACH + i);
        tar_put_end(&tar);
        write_tar(name, &tar);
        if (gzip && a == 1)
            compress(name);
    }
}

static const presto_batch_feature *feature_of(const presto_batch *batch, const char *name) {
    for (size_t i = 0; i < batch->feature_count; i++)
        if (strcmp(batch->features[i].name, name) == 0)
            return &batch->features[i];
    ck_abort_msg("no feature %s", name);
    return NULL;
}

static bool has_feature(const presto_batch *batch, const char *name) {
    for (size_t i = 0; i < batch->feature_count; i++)
        if (strcmp(batch->features[i].name, name) == 0)
            return true;
    return false;
}

static void check_text(const presto_batch *batch, const char *name, size_t row, const char *text) {
    presto_span got = presto_batch_string(feature_of(batch, name), row);
    ck_assert_msg(presto_span_is(got, text), "%s of row %zu is '%.*s', not '%s'", name, row,
                  (int)got.bytes, (const char *)got.data, text);
}

static void check_row(const presto_batch *batch, size_t row) {
    uint64_t i = batch->sample_numbers[row];
    uint8_t content[2000];
    char text[64];
    presto_span wanted = presto_span_of(content, content_of(i, content));
    ck_assert(presto_span_equal(presto_batch_string(feature_of(batch, "image"), row), wanted));
    snprintf(text, sizeof text, "train/%05d", (int)i);
    check_text(batch, "key", row, text);
    snprintf(text, sizeof text, "{\"number\": %d}", (int)i);
    check_text(batch, "json", row, text);
    ck_assert_int_eq(((const int64_t *)feature_of(batch, "label")->tensor.data)[row],
                     (int64_t)(i * 7 % 10));
    const float *values = (const float *)feature_of(batch, "emb.npy")->tensor.data + row * 3;
    ck_assert(values[0] == (float)i && values[1] == (float)i / 2 && values[2] == -1);
}

static void count_stream(const presto_loader_options *options, unsigned *seen) {
    presto_loader *loader;
    presto_batch *batch;
    presto_status status;
    /* A cache keeps what the plan in front of it gives. */
    presto_loader_options mine = *options;
    mine.cache.plan = options->cache.bytes > 0 ? plan : NULL;
    ck_assert_ok(
        presto_loader_open(source, mine.cache.plan == NULL ? plan : NULL, &mine, &loader, &err),
        &err);
    while ((status = presto_loader_next(loader, &batch, &err)) == PRESTO_OK) {
        for (size_t i = 0; i < batch->rows; i++) {
            check_row(batch, i);
            seen[batch->sample_numbers[i]]++;
        }
        presto_batch_release(batch);
    }
    ck_assert_status(status, PRESTO_END, &err);
    presto_loader_free(loader);
}

/* ---- orders ---- */

static void check_orders(const presto_shuffle_kind *orders, size_t count) {
    static const size_t caches[] = {0, 1 << 20};
    static const unsigned threads[] = {0, 1, 5};
    for (size_t o = 0; o < count; o++)
        for (size_t c = 0; c < 2; c++)
            for (size_t t = 0; t < 3; t++) {
                presto_loader_options options;
                presto_loader_options_defaults(&options);
                options.batch_samples = 7;
                options.range.epochs = 2;
                options.memory.block_samples = 4;
                options.order.shuffle = orders[o];
                options.order.shuffle_window = 5;
                options.cache.bytes = caches[c];
                options.threads = threads[t];
                unsigned seen[SAMPLES] = {0};
                count_stream(&options, seen);
                for (size_t i = 0; i < SAMPLES; i++)
                    ck_assert_msg(seen[i] == 2, "sample %zu came %u times", i, seen[i]);
            }
}

START_TEST(samples_are_read_in_every_order) {
    static const presto_shuffle_kind orders[] = {PRESTO_SHUFFLE_NONE, PRESTO_SHUFFLE_BUFFER,
                                                 PRESTO_SHUFFLE_FULL, PRESTO_SHUFFLE_BLOCKS};
    set_up();
    make_archives(false);
    ck_assert_ok(open_source(""), &err);
    ck_assert_uint_eq(presto_source_count(source), SAMPLES);
    check_orders(orders, 4);
    tear_down();
}
END_TEST

START_TEST(an_archive_in_gzip_is_read_in_order_and_refuses_to_be_shuffled) {
    static const presto_shuffle_kind orders[] = {PRESTO_SHUFFLE_NONE, PRESTO_SHUFFLE_BUFFER};
    presto_loader *loader;
    presto_loader_options options;
    set_up();
    make_archives(true);
    ck_assert_ok(open_source(""), &err);
    check_orders(orders, 2);
    presto_loader_options_defaults(&options);
    options.order.shuffle = PRESTO_SHUFFLE_FULL;
    ck_assert_status(presto_loader_open(source, plan, &options, &loader, &err), PRESTO_ERR_ARGUMENT,
                     &err);
    ck_assert_str_eq(err.file, path_in(dir, "b.tar.gz"));
    ck_assert_ptr_nonnull(strstr(err.message, "gzip"));
    tear_down();
}
END_TEST

START_TEST(ranks_share_the_samples_of_an_archive) {
    set_up();
    make_archives(false);
    ck_assert_ok(open_source(""), &err);
    unsigned seen[SAMPLES] = {0};
    for (uint64_t rank = 0; rank < 3; rank++) {
        presto_loader_options options;
        presto_loader_options_defaults(&options);
        options.order.shuffle = PRESTO_SHUFFLE_FULL;
        options.range.rank = rank;
        options.range.world = 3;
        count_stream(&options, seen);
    }
    for (size_t i = 0; i < SAMPLES; i++)
        ck_assert_uint_eq(seen[i], 1);
    tear_down();
}
END_TEST

START_TEST(streams_are_equal_for_any_number_of_threads_and_when_resumed) {
    set_up();
    for (int gzip = 0; gzip < 2; gzip++) {
        make_archives(gzip == 1);
        ck_assert_ok(open_source(""), &err);
        presto_loader_options options;
        presto_loader_options_defaults(&options);
        options.order.shuffle = gzip == 1 ? PRESTO_SHUFFLE_BUFFER : PRESTO_SHUFFLE_FULL;
        options.order.shuffle_window = 6;
        options.range.epochs = 2;
        options.batch_samples = 4;
        uint32_t first[32] = {0};
        for (unsigned threads = 0; threads <= 4; threads++) {
            presto_loader *loader;
            presto_batch *batch;
            presto_buffer state = {0};
            size_t count = 0;
            options.threads = threads;
            options.range.state = (presto_span){0};
            ck_assert_ok(presto_loader_open(source, plan, &options, &loader, &err), &err);
            while (presto_loader_next(loader, &batch, &err) == PRESTO_OK) {
                uint32_t digest = digest_batch(0, batch);
                presto_batch_release(batch);
                if (threads == 0)
                    first[count] = digest;
                ck_assert_uint_eq(first[count++], digest);
                if (count == 5)
                    ck_assert_ok(presto_loader_save_state(loader, &state, &err), &err);
            }
            presto_loader_free(loader);
            ck_assert_uint_eq(count, 16);
            options.range.state = presto_buffer_span(&state);
            ck_assert_ok(presto_loader_open(source, plan, &options, &loader, &err), &err);
            for (count = 5; presto_loader_next(loader, &batch, &err) == PRESTO_OK; count++) {
                ck_assert_uint_eq(digest_batch(0, batch), first[count]);
                presto_batch_release(batch);
            }
            ck_assert_uint_eq(count, 16);
            presto_loader_free(loader);
            presto_buffer_done(&state);
        }
        close_source();
    }
    tear_down();
}
END_TEST

START_TEST(a_disk_cache_keeps_each_sample) {
    set_up();
    make_archives(false);
    ck_assert_ok(open_source(""), &err);
    presto_loader_options options;
    presto_loader_options_defaults(&options);
    options.cache.bytes = 1 << 20;
    options.cache.dir = path_in(dir, "cache");
    options.range.epochs = 2;
    unsigned seen[SAMPLES] = {0};
    count_stream(&options, seen);
    for (int a = 0; a < ARCHIVES; a++) {
        char name[] = {(char)('a' + a), '.', 't', 'a', 'r', '\0'};
        ck_assert_int_eq(truncate(path_in(dir, name), 0), 0); /* what comes now is cached */
    }
    count_stream(&options, seen);
    for (size_t i = 0; i < SAMPLES; i++)
        ck_assert_uint_eq(seen[i], 4);
    tear_down();
}
END_TEST

START_TEST(more_gzip_archives_than_are_kept_open_are_read_by_many_threads) {
    set_up();
    for (int a = 0; a < 20; a++) {
        presto_buffer tar = {0};
        char name[16];
        for (uint64_t i = 0; i < 1 + (uint64_t)a % 3; i++)
            put_sample(&tar, i);
        tar_put_end(&tar);
        snprintf(name, sizeof name, "%02d.tar", a);
        write_tar(name, &tar);
        compress(name);
    }
    ck_assert_ok(open_source(""), &err);
    presto_loader_options options;
    presto_loader_options_defaults(&options);
    options.range.epochs = 3;
    options.memory.block_samples = 1;
    uint32_t wanted = digest_stream(source, plan, &options, NULL, PRESTO_END, &err);
    for (options.threads = 1; options.threads <= 12; options.threads *= 3)
        ck_assert_uint_eq(digest_stream(source, plan, &options, NULL, PRESTO_END, &err), wanted);
    tear_down();
}
END_TEST

/* ---- what is a sample ---- */

/* Call `check` for the only batch. */
static void with_batch(const char *options, void (*check)(const presto_batch *batch)) {
    presto_loader_options loading;
    presto_loader *loader;
    presto_batch *batch;
    ck_assert_ok(open_source(options), &err);
    presto_loader_options_defaults(&loading);
    loading.batch_samples = 100;
    ck_assert_ok(presto_loader_open(source, plan, &loading, &loader, &err), &err);
    ck_assert_ok(presto_loader_next(loader, &batch, &err), &err);
    check(batch);
    presto_batch_release(batch);
    presto_loader_free(loader);
    close_source();
}

static void put_groups(void) {
    presto_buffer tar = {0};
    tar_put_text(&tar, "readme", "no extension");
    tar_put_text(&tar, "._1.bin", "of a Mac");
    tar_put_text(&tar, "1.seg.bin", "mask");
    tar_put_text(&tar, "1.raw", "second choice");
    tar_put_text(&tar, "1.bin", "main");
    tar_put_text(&tar, "1.cls", " -7 ");
    tar_put_header(&tar, "folder/", '5', 0);
    tar_put_text(&tar, "2.cls", "8");
    tar_put_text(&tar, "2.raw", "other");
    tar_put_text(&tar, "2.seg.bin", "rank"); /* of the first pattern */
    tar_put_text(&tar, "2.bin", "better");
    tar_put_text(&tar, "lone.cls", "9");
    tar_put_text(&tar, "3.cls", "9");
    tar_put_text(&tar, "3.seg.bin", "x");
    tar_put_text(&tar, "3.raw", "y");
    tar_put_text(&tar, "3.bin", "z");
    tar_put_text(&tar, "3.rare", "rare");
    tar_put_end(&tar);
    write_tar("a.tar", &tar);
}

static void check_groups(const presto_batch *batch) {
    size_t notes;
    const char *const *texts = presto_source_notes(source, &notes);
    ck_assert_uint_eq(batch->rows, 3);
    check_text(batch, "image", 0, "main");
    check_text(batch, "seg.bin", 0, "mask");
    check_text(batch, "raw", 0, "second choice");
    check_text(batch, "image", 1, "better");
    check_text(batch, "key", 2, "3");
    ck_assert_int_eq(((const int64_t *)feature_of(batch, "label")->tensor.data)[0], -7);
    ck_assert(!has_feature(batch, "rare"));
    ck_assert_uint_eq(notes, 3);
    ck_assert_str_eq(texts[0],
                     "members .rare left out: 1 of 3 samples have one; source.features takes them");
    ck_assert_str_eq(texts[1], "1 group of members left out: no name matches source.match, the "
                               "first is lone.*");
    ck_assert_str_eq(texts[2], "2 members left out: a name without extension, or hidden");
}

START_TEST(members_of_one_key_are_a_sample_and_the_rest_is_told) {
    set_up();
    put_groups();
    with_batch("", check_groups);
    tear_down();
}
END_TEST

static void check_chosen(const presto_batch *batch) {
    ck_assert_uint_eq(batch->feature_count, 3); /* image, key, raw */
    check_text(batch, "raw", 1, "other");
}

START_TEST(features_chooses_members_and_a_missing_one_is_an_error) {
    presto_loader_options options;
    set_up();
    put_groups();
    with_batch(", label: none, features: [RAW]", check_chosen);
    ck_assert_ok(open_source(", features: [rare]"), &err);
    presto_loader_options_defaults(&options);
    presto_error why;
    (void)digest_stream(source, plan, &options, NULL, PRESTO_ERR_TYPE, &why);
    ck_assert_ptr_nonnull(strstr(why.message, "has no member .rare"));
    ck_assert_str_eq(why.file, path_in(dir, "a.tar"));
    tear_down();
}
END_TEST

static void check_parents(const presto_batch *batch) {
    const int64_t *labels = feature_of(batch, "label")->tensor.data;
    static const int64_t wanted[] = {2, 2, 0, 3, 1};
    ck_assert_uint_eq(batch->rows, 5);
    for (size_t i = 0; i < 5; i++)
        ck_assert_int_eq(labels[i], wanted[i]);
    size_t count;
    const char *const *names = presto_source_label_names(source, &count);
    ck_assert_uint_eq(count, 4);
    ck_assert_str_eq(names[0], "cat");
    ck_assert_str_eq(names[1], "n01440764");
    ck_assert_str_eq(names[2], "old");
    ck_assert_str_eq(names[3], "young");
}

static void check_tops(const presto_batch *batch) {
    const int64_t *labels = feature_of(batch, "label")->tensor.data;
    static const int64_t wanted[] = {1, 1, 0, 1, 2};
    for (size_t i = 0; i < 5; i++)
        ck_assert_int_eq(labels[i], wanted[i]);
}

START_TEST(folders_in_an_archive_are_labels) {
    presto_buffer tar = {0};
    set_up();
    tar_put_text(&tar, "./dog/old/1.bin", "1");
    tar_put_text(&tar, "dog/old/2.bin", "2");
    tar_put_text(&tar, "/cat/3.bin", "3");
    tar_put_text(&tar, "dog/young/4.bin", "4");
    tar_put_text(&tar, "5.bin", "5");
    tar_put_end(&tar);
    write_tar("n01440764.tar", &tar);
    with_batch(", label: parent-folder", check_parents);
    with_batch(", label: top-folder", check_tops);
    tear_down();
}
END_TEST

START_TEST(nothing_to_read_is_an_error_that_says_what_there_is) {
    presto_buffer tar = {0};
    set_up();
    ck_assert_status(open_source(""), PRESTO_ERR_NOT_FOUND, &err);
    ck_assert_ptr_nonnull(strstr(err.message, "no file matches *.tar"));
    close_source();
    tar_put_text(&tar, "1.jpg", "x");
    tar_put_end(&tar);
    write_tar("a.tar", &tar);
    ck_assert_status(open_source(""), PRESTO_ERR_NOT_FOUND, &err);
    ck_assert_str_eq(err.message,
                     "no member matches *.bin, *.raw (1 group of members, the first is 1.*)");
    close_source();
    make_archives(false);
    ck_assert_status(open_source(", label: jsn"), PRESTO_ERR_NOT_FOUND, &err);
    ck_assert_ptr_nonnull(strstr(err.message, "member .jsn"));
    tear_down();
}
END_TEST

/* ---- damage ---- */

typedef struct skips {
    uint64_t count;
    presto_error last;
} skips;

static void note_skip(void *user, uint64_t epoch, uint64_t sample, const presto_error *why) {
    (void)epoch, (void)sample;
    ((skips *)user)->count++;
    ((skips *)user)->last = *why;
}

static uint64_t stream_with_skips(skips *noted) {
    presto_loader_options options;
    presto_loader_options_defaults(&options);
    options.errors.policy = PRESTO_ON_ERROR_SKIP;
    options.errors.skip_limit = 1000;
    options.errors.on_skip = note_skip;
    options.errors.on_skip_user = noted;
    options.threads = 2;
    uint64_t samples;
    *noted = (skips){0};
    (void)digest_stream(source, plan, &options, &samples, PRESTO_END, &err);
    return samples;
}

/* The archive b.tar beside two good ones: so many of its samples come, one fails. */
static void fails_once(uint64_t good, presto_status status, const char *words, uint64_t offset) {
    skips noted;
    ck_assert_ok(open_source(""), &err);
    ck_assert_uint_eq(stream_with_skips(&noted), SAMPLES - OF_EACH + good);
    ck_assert_uint_eq(noted.count, 1);
    ck_assert_status(noted.last.status, status, &noted.last);
    ck_assert_str_eq(noted.last.file, path_in(dir, "b.tar"));
    ck_assert_msg(strstr(noted.last.message, words) != NULL, "'%s' lacks '%s'", noted.last.message,
                  words);
    ck_assert_uint_eq(noted.last.offset, offset);
    close_source();
}

static presto_buffer ten_samples(void) {
    presto_buffer tar = {0};
    for (uint64_t i = 0; i < OF_EACH; i++)
        put_sample(&tar, i);
    return tar;
}

START_TEST(files_that_are_no_archives_fail_alone) {
    set_up();
    make_archives(false);
    presto_check_write_file(path_in(dir, "b.tar"), presto_span_of_text(""));
    fails_once(0, PRESTO_ERR_TRUNCATED, "the tar ends before this byte", 0);
    char text[2000];
    memset(text, 'x', sizeof text);
    presto_check_write_file(path_in(dir, "b.tar"), presto_span_of(text, sizeof text));
    fails_once(0, PRESTO_ERR_CORRUPT, "no tar: the checksum", 0);
    presto_check_write_file(path_in(dir, "b.tar"), presto_span_of("\x28\xb5\x2f\xfd....", 8));
    fails_once(0, PRESTO_ERR_UNSUPPORTED, "compressed with zstd", 0);
    presto_check_write_file(path_in(dir, "b.tar"), presto_span_of("\x1f\x8b\x08....", 7));
    fails_once(0, PRESTO_ERR_CORRUPT, "gzip data", 0);
    tear_down();
}
END_TEST

START_TEST(damage_costs_the_sample_at_hand_and_names_its_byte) {
    presto_buffer tar = ten_samples();
    size_t third = 0;
    set_up();
    make_archives(false);
    /* The header of the main member of sample 3. */
    for (size_t at = 0; at + 512 <= tar.bytes && third == 0; at += 512)
        if (strcmp((const char *)tar.data + at, "train/00003.Bin") == 0)
            third = at;
    tar_put_end(&tar);
    tar.data[third + 130] ^= 1;
    write_tar("b.tar", &tar);
    /* Its other members, behind the damage, have no main one and are left out. */
    fails_once(OF_EACH - 1, PRESTO_ERR_CORRUPT, "checksum", third);
    tear_down();
}
END_TEST

START_TEST(an_archive_without_end_is_told) {
    presto_buffer tar = ten_samples();
    set_up();
    make_archives(false);
    size_t bytes = tar.bytes;
    presto_check_write_file(path_in(dir, "b.tar"), presto_buffer_span(&tar));
    fails_once(OF_EACH - 1, PRESTO_ERR_TRUNCATED, "the tar ends before this byte", bytes);
    presto_check_write_file(path_in(dir, "b.tar"), presto_span_of(tar.data, bytes - 600));
    fails_once(OF_EACH - 1, PRESTO_ERR_TRUNCATED, "within a header", bytes - 600);
    presto_buffer_done(&tar);
    tear_down();
}
END_TEST

START_TEST(archives_that_were_appended_are_read_to_their_end) {
    presto_buffer tar = {0};
    set_up();
    for (uint64_t i = 0; i < SAMPLES; i++) {
        put_sample(&tar, i);
        if (i % OF_EACH == OF_EACH - 1)
            tar_put_end(&tar);
    }
    write_tar("a.tar", &tar);
    ck_assert_ok(open_source(""), &err);
    unsigned seen[SAMPLES] = {0};
    presto_loader_options options;
    presto_loader_options_defaults(&options);
    count_stream(&options, seen);
    for (size_t i = 0; i < SAMPLES; i++)
        ck_assert_uint_eq(seen[i], 1);
    tear_down();
}
END_TEST

/* A member of the fourth sample has this content; the message has the words. */
static void bad_member(const char *extension, presto_span content, const char *words) {
    presto_buffer tar = {0};
    char name[64];
    skips noted;
    for (uint64_t i = 0; i < 8; i++) {
        snprintf(name, sizeof name, "%d.bin", (int)i);
        tar_put_text(&tar, name, "x");
        snprintf(name, sizeof name, "%d.cls", (int)i);
        tar_put_member(&tar, name,
                       i == 4 && strcmp(extension, "cls") == 0 ? content
                                                               : presto_span_of_text("1"));
        snprintf(name, sizeof name, "%d.npy", (int)i);
        if (i == 4 && strcmp(extension, "npy") == 0)
            tar_put_member(&tar, name, content);
        else
            put_array(&tar, name, (const float[]){1}, 1);
        if (i == 4 && strcmp(extension, "twice") == 0)
            tar_put_text(&tar, "4.cls", "1");
    }
    tar_put_end(&tar);
    write_tar("b.tar", &tar);
    ck_assert_ok(open_source(""), &err);
    uint64_t good = stream_with_skips(&noted);
    ck_assert_msg(good == 7, "%s: %d", words, (int)good);
    ck_assert_uint_eq(noted.count, 1);
    ck_assert_uint_eq(noted.last.record, 4);
    ck_assert_msg(strstr(noted.last.message, words) != NULL, "'%s' lacks '%s'", noted.last.message,
                  words);
    ck_assert_uint_ne(noted.last.offset, PRESTO_NO_OFFSET);
    close_source();
}

START_TEST(members_that_are_not_what_they_should_be_fail_alone) {
    set_up();
    bad_member("cls", presto_span_of_text(""), "member .cls: no whole number");
    bad_member("cls", presto_span_of_text("1.5"), "no whole number");
    bad_member("cls", presto_span_of_text("-"), "no whole number");
    bad_member("cls", presto_span_of_text("9223372036854775808"), "no whole number");
    bad_member("cls", presto_span_of_text("1 2"), "no whole number");
    bad_member("npy", presto_span_of_text("x"), "member .npy: not a .npy file");
    bad_member(
        "npy",
        presto_span_of(
            "\x93NUMPY\1\0\76\0{'descr': '|O', 'fortran_order': False, 'shape': (), }        ", 72),
        "Python objects");
    bad_member("twice", presto_span_of_text(""), "two members .cls");
    tear_down();
}
END_TEST

START_TEST(samples_over_max_bytes_are_refused_without_memory) {
    presto_buffer tar = {0};
    set_up();
    tar_put_text(&tar, "1.bin", "x");
    tar_put_header(&tar, "2.bin", '0', (uint64_t)3 << 30);
    write_tar("a.tar", &tar);
    ck_assert_int_eq(truncate(path_in(dir, "a.tar"), ((off_t)3 << 30) + 1536 + 1024), 0);
    ck_assert_ok(open_source(""), &err);
    skips noted;
    ck_assert_uint_eq(presto_source_count(source), 2);
    ck_assert_uint_eq(stream_with_skips(&noted), 1);
    ck_assert_status(noted.last.status, PRESTO_ERR_LIMIT, &noted.last);
    ck_assert_ptr_nonnull(strstr(noted.last.message, "max-bytes (536870912)"));
    tear_down();
}
END_TEST

START_TEST(an_archive_that_changes_after_the_source_was_opened_is_told) {
    skips noted;
    set_up();
    make_archives(false);
    ck_assert_ok(open_source(""), &err);
    ck_assert_int_eq(truncate(path_in(dir, "b.tar"), 5120), 0);
    ck_assert_uint_eq(stream_with_skips(&noted), SAMPLES - OF_EACH);
    ck_assert_uint_eq(noted.count, OF_EACH);
    ck_assert_ptr_nonnull(strstr(noted.last.message, "has changed since it was listed"));
    tear_down();
}
END_TEST

START_TEST(each_byte_of_an_archive_may_be_wrong_or_the_last) {
    presto_buffer tar = {0};
    set_up();
    tar_put_extended(&tar, 'x', presto_span_of_text("17 path=5/1.bin\n"));
    put_sample(&tar, 1);
    tar_put_extended(&tar, 'L', presto_span_of_text("train/00002.bin"));
    put_sample(&tar, 2);
    tar_put_end(&tar);
    for (size_t i = 0; i < 2 * tar.bytes; i += i % 512 < 300 || i > tar.bytes ? 7 : 111) {
        bool cuts = i >= tar.bytes;
        skips noted;
        size_t at = i % tar.bytes;
        tar.data[at] ^= cuts ? 0 : 0xff;
        presto_check_write_file(path_in(dir, "a.tar"),
                                presto_span_of(tar.data, cuts ? at : tar.bytes));
        tar.data[at] ^= cuts ? 0 : 0xff;
        if (open_source("") >= 0)
            (void)stream_with_skips(&noted);
        close_source();
    }
    presto_buffer_done(&tar);
    tear_down();
}
END_TEST

int main(void) {
    const TTest *const tests[] = {
        samples_are_read_in_every_order,
        an_archive_in_gzip_is_read_in_order_and_refuses_to_be_shuffled,
        ranks_share_the_samples_of_an_archive,
        streams_are_equal_for_any_number_of_threads_and_when_resumed,
        a_disk_cache_keeps_each_sample,
        more_gzip_archives_than_are_kept_open_are_read_by_many_threads,
        members_of_one_key_are_a_sample_and_the_rest_is_told,
        features_chooses_members_and_a_missing_one_is_an_error,
        folders_in_an_archive_are_labels,
        nothing_to_read_is_an_error_that_says_what_there_is,
        files_that_are_no_archives_fail_alone,
        damage_costs_the_sample_at_hand_and_names_its_byte,
        an_archive_without_end_is_told,
        archives_that_were_appended_are_read_to_their_end,
        members_that_are_not_what_they_should_be_fail_alone,
        samples_over_max_bytes_are_refused_without_memory,
        an_archive_that_changes_after_the_source_was_opened_is_told,
        each_byte_of_an_archive_may_be_wrong_or_the_last,
    };
    return presto_check_main("source_tar", tests, sizeof tests / sizeof tests[0], 120);
}
