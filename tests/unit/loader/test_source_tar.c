/* SPDX-License-Identifier: Apache-2.0 */
/* The raw source `tar`: what becomes a sample, in every order, from plain archives and gzip. */
#include <unistd.h>

#include "../../../loader/loader_internal.h"
#include "tar_source_check.h"

static bool has_feature(const presto_batch *batch, const char *name) {
    for (size_t i = 0; i < batch->feature_count; i++)
        if (strcmp(batch->features[i].name, name) == 0)
            return true;
    return false;
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
    ck_assert_status(presto__loader_open(source, plan, &options, &loader, &err),
                     PRESTO_ERR_ARGUMENT, &err);
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
            ck_assert_ok(presto__loader_open(source, plan, &options, &loader, &err), &err);
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
            ck_assert_ok(presto__loader_open(source, plan, &options, &loader, &err), &err);
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
    ck_assert_ok(presto__loader_open(source, plan, &loading, &loader, &err), &err);
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
    };
    return presto_check_main("source_tar", tests, sizeof tests / sizeof tests[0], 120);
}
