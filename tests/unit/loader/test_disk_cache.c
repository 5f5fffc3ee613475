/* SPDX-License-Identifier: Apache-2.0 */
/* The disk cache: its bytes, its folder, and streams that run through it. */
#define _DEFAULT_SOURCE /* flock */
#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "cache/disk_internal.h"
#include "loader_check.h"

static char *dir;
static char cache_dir[600], data_dir[600];

static void set_up(void) {
    dir = presto_check_temp_dir();
    snprintf(cache_dir, sizeof cache_dir, "%s/cache", dir);
    snprintf(data_dir, sizeof data_dir, "%s/data", dir);
    ck_assert_int_eq(mkdir(data_dir, 0777), 0);
}

static void tear_down(void) {
    presto_check_remove_tree(dir);
    free(dir);
}

/* Calls `visit` for every file of the cache's folder; how many they are. */
static size_t each_file(void (*visit)(const char *path, void *user), void *user) {
    DIR *folder = opendir(cache_dir);
    size_t count = 0;
    if (folder == NULL)
        return 0;
    const struct dirent *entry;
    while ((entry = readdir(folder)) != NULL) {
        char path[1200];
        struct stat info;
        snprintf(path, sizeof path, "%s/%s", cache_dir, entry->d_name);
        if (stat(path, &info) != 0 || !S_ISREG(info.st_mode))
            continue;
        if (visit != NULL)
            visit(path, user);
        count++;
    }
    closedir(folder);
    return count;
}

static void add_size(const char *path, void *user) {
    struct stat info;
    ck_assert_int_eq(stat(path, &info), 0);
    *(uint64_t *)user += (uint64_t)info.st_size;
}

/* ---- entries ---- */

static const uint8_t pixels[105] = {1, 2, 3, 250, 9};

#define FEATURES 8

/* A feature of every kind. */
static void make_features(presto_feature features[FEATURES]) {
    static const int64_t label = -3;
    static const float floats[2] = {1.5F, -0.0F};
    static presto_span words[3];
    words[0] = presto_span_of_text("a");
    words[1] = (presto_span){NULL, 0};
    words[2] = presto_span_of("\0three", 6);
    memset(features, 0, FEATURES * sizeof *features);
    features[0] = (presto_feature){.name = presto_span_of_text("label"),
                                   .encoding = PRESTO_ENCODE_INT64,
                                   .tensor.spec = {.dtype = PRESTO_INT64}};
    features[0].tensor.data = &label;
    features[1] = (presto_feature){.name = presto_span_of_text("image"),
                                   .encoding = PRESTO_ENCODE_TENSOR,
                                   .tensor.spec = {PRESTO_UINT8, 3, {5, 7, 3}}};
    features[1].tensor.data = pixels;
    features[2] = (presto_feature){.name = presto_span_of_text("words"),
                                   .encoding = PRESTO_ENCODE_BYTES,
                                   .tensor.spec = {PRESTO_STRING, 1, {3}}};
    features[2].tensor.strings = words;
    features[3] = (presto_feature){.name = presto_span_of_text("floats"),
                                   .encoding = PRESTO_ENCODE_FLOAT,
                                   .tensor.spec = {PRESTO_FLOAT32, 1, {2}}};
    features[3].tensor.data = floats;
    features[4] =
        (presto_feature){.name = presto_span_of_text("nothing"), .encoding = PRESTO_ENCODE_NONE};
    features[5] = (presto_feature){.name = presto_span_of_text("empty"),
                                   .encoding = PRESTO_ENCODE_TENSOR,
                                   .tensor.spec = {PRESTO_FLOAT64, 2, {0, 4}}};
    features[6] = (presto_feature){.name = {NULL, 0},
                                   .encoding = PRESTO_ENCODE_TENSOR,
                                   .tensor.spec = {PRESTO_INT16, 8, {1, 1, 2, 1, 3, 1, 1, 1}}};
    features[6].tensor.data = pixels;
    features[7] = (presto_feature){.name = presto_span_of_text("none of them"),
                                   .encoding = PRESTO_ENCODE_BYTES,
                                   .tensor.spec = {PRESTO_STRING, 1, {0}}};
}

static void check_features(const presto_sample *sample, const presto_feature *wanted) {
    ck_assert_uint_eq(sample->feature_count, FEATURES);
    for (size_t i = 0; i < FEATURES; i++) {
        const presto_feature *got = &sample->features[i];
        ck_assert(presto_span_equal(got->name, wanted[i].name));
        ck_assert_int_eq(got->encoding, wanted[i].encoding);
        if (!presto__feature_has_value(got))
            continue;
        ck_assert(presto_spec_equal(&got->tensor.spec, &wanted[i].tensor.spec));
        uint64_t count = presto_spec_elements(&got->tensor.spec);
        if (got->tensor.spec.dtype != PRESTO_STRING && count > 0)
            ck_assert_mem_eq(got->tensor.data, wanted[i].tensor.data,
                             presto_tensor_bytes(&got->tensor));
        for (uint64_t j = 0; got->tensor.spec.dtype == PRESTO_STRING && j < count; j++)
            ck_assert(presto_span_equal(got->tensor.strings[j], wanted[i].tensor.strings[j]));
    }
}

START_TEST(an_entry_comes_back_as_it_was_put) {
    presto_feature features[FEATURES];
    make_features(features);
    presto_sample sample = {.features = features, .feature_count = FEATURES, .number = 77};
    presto_buffer stored = {0};
    presto_error err;
    for (int i = 0; i < 3; i++)
        ck_assert_ok(presto__disk_entry_append(&stored, &sample, &err), &err);
    size_t bytes = stored.bytes / 3;
    ck_assert_uint_eq(stored.bytes % (3 * (size_t)PRESTO__DISK_ALIGN), 0);
    ck_assert_mem_eq(stored.data, stored.data + bytes, bytes);
    uint8_t *copy = aligned_alloc(PRESTO__DISK_ALIGN, bytes);
    memcpy(copy, stored.data + 2 * bytes, bytes);
    presto_span entry = presto_span_of(copy, bytes);
    presto_arena arena = {0};
    presto_sample got;
    ck_assert_ok(presto__disk_entry_read(entry, 77, NULL, NULL, &err), &err);
    ck_assert_ok(presto__disk_entry_read(entry, 77, &arena, &got, &err), &err);
    ck_assert_uint_eq(got.number, 77);
    check_features(&got, features);
    ck_assert_uint_eq((uintptr_t)got.features[1].tensor.data % PRESTO__DISK_ALIGN, 0);
    ck_assert_status(presto__disk_entry_read(entry, 78, NULL, NULL, &err), PRESTO_ERR_CORRUPT,
                     &err);
    presto_arena_done(&arena);
    free(copy);
    presto_buffer_done(&stored);
}
END_TEST

START_TEST(an_entry_with_a_flipped_bit_or_cut_is_refused) {
    presto_feature features[FEATURES];
    make_features(features);
    presto_sample sample = {.features = features, .feature_count = FEATURES, .number = 77};
    presto_buffer stored = {0};
    presto_error err;
    ck_assert_ok(presto__disk_entry_append(&stored, &sample, &err), &err);
    uint64_t bytes; /* without the padding of the last unit */
    memcpy(&bytes, stored.data + 16, sizeof bytes);
    ck_assert_uint_le(bytes, stored.bytes);
    presto_arena arena = {0};
    for (size_t bit = 0; bit < bytes * 8; bit++) {
        uint8_t *copy = presto_check_copy(presto_buffer_span(&stored));
        copy[bit / 8] ^= (uint8_t)(1U << bit % 8);
        presto_span entry = presto_span_of(copy, stored.bytes);
        if (presto__disk_entry_read(entry, 77, NULL, NULL, &err) != PRESTO_ERR_CORRUPT)
            ck_abort_msg("bit %zu", bit);
        /* Whatever it contains, making a sample of it stays within it. */
        presto_sample got;
        presto_arena_reset(&arena);
        (void)presto__disk_entry_read(entry, 77, &arena, &got, NULL);
        free(copy);
    }
    for (size_t cut = 0; cut + PRESTO__DISK_ALIGN <= stored.bytes; cut++) {
        uint8_t *copy = presto_check_copy(presto_span_of(stored.data, cut));
        ck_assert_status(presto__disk_entry_read(presto_span_of(copy, cut), 77, NULL, NULL, &err),
                         PRESTO_ERR_CORRUPT, &err);
        free(copy);
    }
    presto_arena_done(&arena);
    presto_buffer_done(&stored);
}
END_TEST

START_TEST(values_that_do_not_go_with_their_encoding_are_not_stored) {
    presto_feature features[FEATURES];
    presto_buffer stored = {0};
    presto_error err;
    for (size_t i = 0; i < 4; i++) {
        make_features(features);
        features[i].tensor.spec.dtype = i == 1 ? (presto_dtype)12345 : PRESTO_INT32;
        if (i == 1 || features[i].encoding != PRESTO_ENCODE_TENSOR) {
            presto_sample sample = {.features = features, .feature_count = FEATURES};
            ck_assert_status(presto__disk_entry_append(&stored, &sample, &err), PRESTO_ERR_TYPE,
                             &err);
        }
    }
    ck_assert_uint_eq(stored.bytes, 0);
    presto_buffer_done(&stored);
}
END_TEST

START_TEST(a_header_or_table_that_was_changed_is_refused) {
    presto__disk_place places[3] = {{5, 1, 2}, {6, 3, 1}, {9, 4, 4}};
    presto__disk_head head = {.key = {{3, 4}},
                              .table_at = 8 * (uint64_t)PRESTO__DISK_ALIGN,
                              .count = 3,
                              .table_crc = presto_crc32c(0, places, sizeof places)};
    head.file_bytes = head.table_at + sizeof places;
    uint8_t bytes[PRESTO__DISK_HEADER_BYTES];
    presto__disk_head_write(&head, bytes);
    presto__disk_head got = {0};
    presto_error err;
    presto_span span = presto_span_of(bytes, sizeof bytes);
    ck_assert_ok(presto__disk_head_read(span, &got, &err), &err);
    ck_assert_uint_eq(got.key.words[0], 3);
    ck_assert_uint_eq(got.key.words[1], 4);
    ck_assert_uint_eq(got.file_bytes, head.file_bytes);
    ck_assert_ok(presto__disk_table_check(&got, places, &err), &err);
    for (size_t bit = 0; bit < sizeof bytes * 8; bit++) {
        bytes[bit / 8] ^= (uint8_t)(1U << bit % 8);
        ck_assert_status(presto__disk_head_read(span, &got, &err), PRESTO_ERR_CORRUPT, &err);
        bytes[bit / 8] ^= (uint8_t)(1U << bit % 8);
    }
    for (size_t cut = 0; cut < sizeof bytes; cut++)
        ck_assert_status(presto__disk_head_read(presto_span_of(bytes, cut), &got, &err),
                         PRESTO_ERR_CORRUPT, &err);
    for (size_t bit = 0; bit < sizeof places * 8; bit++) {
        ((uint8_t *)places)[bit / 8] ^= (uint8_t)(1U << bit % 8);
        ck_assert_status(presto__disk_table_check(&head, places, &err), PRESTO_ERR_CORRUPT, &err);
        ((uint8_t *)places)[bit / 8] ^= (uint8_t)(1U << bit % 8);
    }
    /* Places outside, with the CRC that goes with them. */
    static const presto__disk_place outside[] = {
        {1, 0, 1}, {1, 8, 1}, {1, 7, 2}, {1, UINT32_MAX, UINT32_MAX}, {1, 2, 0}};
    for (size_t i = 0; i < sizeof outside / sizeof outside[0]; i++) {
        places[1] = outside[i];
        head.table_crc = presto_crc32c(0, places, sizeof places);
        ck_assert_status(presto__disk_table_check(&head, places, &err), PRESTO_ERR_CORRUPT, &err);
    }
}
END_TEST

START_TEST(a_table_larger_than_any_block_has_is_refused) {
    const uint32_t most = (uint32_t)(PRESTO__DISK_MOST_BLOCK_BYTES /
                                     (PRESTO__DISK_ALIGN + sizeof(presto__disk_place)));
    const struct {
        uint32_t count;
        uint64_t units; /* of header and entries */
        presto_status status;
    } cases[] = {{0, 1, PRESTO_OK},
                 {1, 1, PRESTO_ERR_CORRUPT},
                 {7, 8, PRESTO_OK},
                 {8, 8, PRESTO_ERR_CORRUPT},
                 {most, UINT32_MAX, PRESTO_OK},
                 {most + 1, UINT32_MAX, PRESTO_ERR_CORRUPT},
                 {UINT32_MAX, UINT32_MAX, PRESTO_ERR_CORRUPT}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        presto__disk_head head = {.table_at = cases[i].units * PRESTO__DISK_ALIGN,
                                  .count = cases[i].count};
        head.file_bytes = head.table_at + head.count * sizeof(presto__disk_place);
        uint8_t bytes[PRESTO__DISK_HEADER_BYTES];
        presto__disk_head_write(&head, bytes);
        presto_error err;
        ck_assert_status(presto__disk_head_read(presto_span_of(bytes, sizeof bytes), &head, &err),
                         cases[i].status, &err);
    }
}
END_TEST

START_TEST(the_head_of_an_entry_tells_its_size_and_sample) {
    presto_feature features[FEATURES];
    make_features(features);
    presto_sample sample = {.features = features, .feature_count = FEATURES, .number = 77};
    presto_buffer stored = {0};
    presto_error err;
    ck_assert_ok(presto__disk_entry_append(&stored, &sample, &err), &err);
    ck_assert(presto__disk_entry_fits(stored.data, stored.bytes, 77));
    ck_assert(!presto__disk_entry_fits(stored.data, stored.bytes, 78));
    ck_assert(!presto__disk_entry_fits(stored.data, stored.bytes + PRESTO__DISK_ALIGN, 77));
    ck_assert(!presto__disk_entry_fits(stored.data, stored.bytes - PRESTO__DISK_ALIGN, 77));
    memset(stored.data, 0, PRESTO__DISK_ENTRY_HEAD_BYTES);
    ck_assert(!presto__disk_entry_fits(stored.data, PRESTO__DISK_ALIGN, 0));
    presto_buffer_done(&stored);
}
END_TEST

/* ---- the digest ---- */

START_TEST(digests_tell_lists_of_pieces_apart) {
    static const char *const lists[][3] = {{"ab", "c", ""}, {"a", "bc", ""}, {"abc", "", ""},
                                           {"", "abc", ""}, {"c", "ab", ""}, {"", "", "abc"}};
    presto__digest digests[6];
    for (size_t i = 0; i < 6; i++) {
        digests[i] = (presto__digest){{0}};
        for (size_t j = 0; j < 3; j++)
            presto__digest_add(&digests[i], lists[i][j], strlen(lists[i][j]));
        for (size_t j = 0; j < i; j++) {
            ck_assert_uint_ne(digests[i].state[0], digests[j].state[0]);
            ck_assert_uint_ne(digests[i].state[1], digests[j].state[1]);
        }
    }
    /* Every bit of pieces of all sizes around the block counts. */
    uint8_t piece[80] = {0};
    for (size_t bytes = 1; bytes <= sizeof piece; bytes++) {
        presto__digest zero = {{0}};
        presto__digest_add(&zero, piece, bytes);
        for (size_t bit = 0; bit < bytes * 8; bit++) {
            presto__digest one = {{0}};
            piece[bit / 8] ^= (uint8_t)(1U << bit % 8);
            presto__digest_add(&one, piece, bytes);
            piece[bit / 8] ^= (uint8_t)(1U << bit % 8);
            if (one.state[0] == zero.state[0] || one.state[1] == zero.state[1])
                ck_abort_msg("bit %zu of %zu bytes", bit, bytes);
        }
    }
}
END_TEST

/* ---- streams ---- */

static const unsigned thread_counts[] = {0, 1, 2, 8};

static presto_loader_options defaults(unsigned threads, size_t batch_samples) {
    presto_loader_options options;
    presto_loader_options_defaults(&options);
    options.threads = threads;
    options.batch_samples = batch_samples;
    options.range.epochs = 3;
    return options;
}

static void check_stream(const opened *data, presto_loader_options options, uint64_t limit_bytes) {
    presto_error err;
    uint64_t samples;
    options.cache.dir = NULL;
    options.cache.bytes = 0;
    uint32_t wanted = digest_stream(data->source, NULL, &options, NULL, PRESTO_END, &err);
    options.cache.dir = cache_dir;
    options.cache.bytes = limit_bytes;
    uint32_t got = digest_stream(data->source, NULL, &options, &samples, PRESTO_END, &err);
    ck_assert_uint_eq(got, wanted);
    ck_assert_uint_eq(samples, 3 * presto_source_count(data->source));
    uint64_t total = 0;
    each_file(add_size, &total);
    ck_assert_uint_le(total, limit_bytes);
}

START_TEST(streams_are_the_same_with_and_without_it) {
    set_up();
    static const char *const codecs[] = {NULL, "zstd:1"};
    for (size_t c = 0; c < 2; c++) {
        made how = {
            .samples = 300, .shards = 3, .values = 700, .odd = UINT64_MAX, .codec = codecs[c]};
        make_dataset(data_dir, &how);
        opened data = open_made(data_dir, false);
        for (size_t t = 0; t < 4; t++)
            for (int shuffle = PRESTO_SHUFFLE_NONE; shuffle <= PRESTO_SHUFFLE_BLOCKS; shuffle++)
                for (size_t rows = 1; rows < 60; rows += 29) {
                    presto_loader_options options = defaults(thread_counts[t], rows);
                    options.order.shuffle = (presto_shuffle_kind)shuffle;
                    options.order.shuffle_window = 17;
                    options.unaligned_views = t % 2 == 1;
                    options.memory.block_samples = 1 + 40 * t;
                    /* All of it, and a part. */
                    check_stream(&data, options, (uint64_t)4 << 20);
                    if (shuffle == PRESTO_SHUFFLE_FULL)
                        check_stream(&data, options, (uint64_t)300 << 10);
                }
        close_made(&data);
    }
    tear_down();
}
END_TEST

START_TEST(a_second_loader_reads_nothing_but_the_cache) {
    set_up();
    made how = {.samples = 100, .shards = 2, .values = 900, .odd = UINT64_MAX};
    make_dataset(data_dir, &how);
    presto_loader_options options = defaults(1, 8);
    options.cache.dir = cache_dir;
    options.cache.bytes = (uint64_t)8 << 20;
    for (int turn = 0; turn < 2; turn++) {
        opened data = open_made(data_dir, false);
        presto_loader *loader;
        presto_batch *batch;
        presto_error err;
        presto_loader_stats stats;
        ck_assert_ok(presto_loader_open(data.source, NULL, &options, &loader, &err), &err);
        while (presto_loader_next(loader, &batch, &err) == PRESTO_OK)
            presto_batch_release(batch);
        presto_loader_get_stats(loader, &stats);
        presto_loader_free(loader);
        close_made(&data);
        ck_assert_uint_eq(stats.cached_samples, turn == 0 ? 200 : 300);
        ck_assert_uint_eq(stats.missed_samples, turn == 0 ? 100 : 0);
        ck_assert_uint_eq(stats.cache_written_bytes > 0, turn == 0);
        ck_assert_uint_ge(stats.cache_bytes, UINT64_C(100) * 900 * 4);
        ck_assert_uint_eq(stats.cache_damaged_blocks, 0);
        ck_assert_uint_ge(stats.read_bytes, UINT64_C(300) * 900 * 4);
    }
    tear_down();
}
END_TEST

START_TEST(batches_from_it_outlive_the_loader_and_the_files) {
    set_up();
    made how = {.samples = 60, .shards = 2, .values = 3000, .odd = UINT64_MAX};
    make_dataset(data_dir, &how);
    for (size_t rows = 1; rows < 8; rows += 6) {
        opened data = open_made(data_dir, false);
        presto_loader_options options = defaults(2, rows);
        options.range.epochs = 1;
        options.cache.dir = cache_dir;
        options.cache.bytes = (uint64_t)8 << 20;
        presto_error err;
        digest_stream(data.source, NULL, &options, NULL, PRESTO_END, &err);
        presto_loader *loader;
        presto_batch *batches[60];
        size_t count = 0;
        ck_assert_ok(presto_loader_open(data.source, NULL, &options, &loader, &err), &err);
        while (presto_loader_next(loader, &batches[count], &err) == PRESTO_OK)
            count++;
        presto_loader_stats stats;
        presto_loader_get_stats(loader, &stats);
        ck_assert_uint_eq(stats.cached_samples, 60);
        presto_loader_free(loader);
        close_made(&data);
        presto_check_remove_tree(cache_dir);
        for (size_t i = 0; i < count; i++) {
            const presto_batch_feature *x = &batches[i]->features[2];
            ck_assert_str_eq(x->name, "x");
            if (rows == 1)
                ck_assert_uint_eq((uintptr_t)x->tensor.data % 64, 0);
            const float *values = x->tensor.data;
            for (size_t j = 0; j < batches[i]->rows; j++)
                ck_assert_float_eq(values[j * 3000 + 2999],
                                   made_value(batches[i]->sample_numbers[j], 2999));
            presto_batch_release(batches[i]);
        }
    }
    tear_down();
}
END_TEST

static void flip_something(const char *path, void *user) {
    presto_rng *rng = user;
    if (presto_rng_below(rng, 3) == 0)
        return;
    size_t bytes;
    uint8_t *data = presto_check_read_file(path, &bytes);
    if (presto_rng_below(rng, 4) == 0)
        bytes = (size_t)presto_rng_below(rng, bytes + 1);
    for (uint64_t i = presto_rng_below(rng, 4); bytes > 0 && i > 0; i--)
        data[presto_rng_below(rng, bytes)] ^= (uint8_t)(1U << presto_rng_below(rng, 8));
    presto_check_write_file(path, presto_span_of(data, bytes));
    free(data);
}

START_TEST(whatever_is_damaged_in_it_the_stream_stays_the_same) {
    set_up();
    presto_rng rng;
    presto_rng_init(&rng, &(presto_rng_key){.seed = presto_check_seed()});
    made how = {.samples = 200, .shards = 2, .values = 500, .odd = UINT64_MAX};
    make_dataset(data_dir, &how);
    opened data = open_made(data_dir, false);
    for (size_t i = 0; i < 24; i++) {
        presto_loader_options options = defaults(thread_counts[i % 4], 1 + i % 3 * 7);
        options.order.shuffle = i % 2 == 0 ? PRESTO_SHUFFLE_NONE : PRESTO_SHUFFLE_FULL;
        options.unaligned_views = i % 5 == 0;
        check_stream(&data, options, (uint64_t)2 << 20);
        each_file(flip_something, &rng);
    }
    close_made(&data);
    tear_down();
}
END_TEST

START_TEST(options_that_make_no_sense_are_refused) {
    set_up();
    made how = {.samples = 10, .shards = 1, .values = 10, .odd = UINT64_MAX};
    make_dataset(data_dir, &how);
    opened data = open_made(data_dir, false);
    presto_loader_options options = defaults(1, 1);
    presto_loader *loader = NULL;
    presto_error err;
    options.cache.dir = cache_dir;
    ck_assert_status(presto_loader_open(data.source, NULL, &options, &loader, &err),
                     PRESTO_ERR_ARGUMENT, &err);
    options.cache.bytes = 1000;
    ck_assert_status(presto_loader_open(data.source, NULL, &options, &loader, &err),
                     PRESTO_ERR_ARGUMENT, &err);
    ck_assert_uint_eq(each_file(NULL, NULL), 0);
    options.cache.bytes = 1 << 20;
    options.output = PRESTO_OUTPUT_RECORDS;
    ck_assert_status(presto_loader_open(data.source, NULL, &options, &loader, &err),
                     PRESTO_ERR_ARGUMENT, &err);
    options.output = PRESTO_OUTPUT_BATCHES;
    options.cache.dir = "/proc/no/such/folder";
    ck_assert_status(presto_loader_open(data.source, NULL, &options, &loader, &err), PRESTO_ERR_IO,
                     &err);
    ck_assert_ptr_nonnull(strstr(err.file, "/proc/no/such/folder"));
    ck_assert_ptr_null(loader);
    close_made(&data);
    tear_down();
}
END_TEST

/* ---- the folder ---- */

static bool evict_all(void *user, const presto__disk_file *file) {
    (void)file;
    ++*(size_t *)user;
    return true;
}

static bool evict_none(void *user, const presto__disk_file *file) {
    (void)user;
    (void)file;
    return false;
}

static void make_block(presto__disk_folder *folder, uint64_t bytes, char *name_out) {
    size_t asked = 0;
    presto_error err;
    presto__disk_room room = {
        .want_bytes = bytes, .least_bytes = bytes, .may_evict = evict_all, .user = &asked};
    ck_assert_ok(presto__disk_folder_make(folder, &room, &err), &err);
    ck_assert_uint_eq(room.got_bytes, bytes);
    presto__disk_final_name(room.name, name_out);
    ck_assert_ok(presto__disk_folder_rename(folder, room.name, name_out, &err), &err);
    close(room.fd);
    nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL); /* file times are coarse */
}

START_TEST(room_is_made_by_what_was_not_used_for_longest) {
    set_up();
    presto__disk_folder folder;
    presto__disk_key key = {{1, 2}};
    presto_error err;
    ck_assert_ok(presto__disk_folder_open(&folder, cache_dir, 40960, &key, &err), &err);
    char names[5][PRESTO__DISK_NAME_BYTES];
    for (size_t i = 0; i < 5; i++)
        make_block(&folder, 8192, names[i]);
    ck_assert_int_eq(futimens(openat(folder.fd, names[0], O_RDONLY), NULL), 0);
    char more[PRESTO__DISK_NAME_BYTES];
    make_block(&folder, 8192, more); /* 1 goes */
    make_block(&folder, 8192, more); /* 2 goes */
    static const bool stays[] = {true, false, false, true, true};
    for (size_t i = 0; i < 5; i++)
        ck_assert_int_eq(faccessat(folder.fd, names[i], F_OK, 0) == 0, stays[i]);
    /* Nothing may be evicted: the cache gets the room that is left, or none. */
    presto__disk_room room = {.want_bytes = 8192, .least_bytes = 100, .may_evict = evict_none};
    ck_assert_ok(presto__disk_folder_make(&folder, &room, &err), &err);
    ck_assert_uint_eq(room.got_bytes, 0);
    ck_assert_int_eq(unlinkat(folder.fd, names[3], 0), 0);
    room.want_bytes = 20000;
    ck_assert_ok(presto__disk_folder_make(&folder, &room, &err), &err);
    ck_assert_uint_eq(room.got_bytes, 8192);
    close(room.fd);
    presto__disk_folder_close(&folder);
    tear_down();
}
END_TEST

START_TEST(partial_files_are_removed_when_their_writer_is_gone) {
    set_up();
    presto__disk_folder folder;
    presto__disk_key key = {{1, 2}};
    presto_error err;
    ck_assert_ok(presto__disk_folder_open(&folder, cache_dir, 1 << 20, &key, &err), &err);
    presto__disk_room rooms[2];
    for (size_t i = 0; i < 2; i++) {
        rooms[i] =
            (presto__disk_room){.want_bytes = 8192, .least_bytes = 8192, .may_evict = evict_none};
        ck_assert_ok(presto__disk_folder_make(&folder, &rooms[i], &err), &err);
    }
    ck_assert_uint_eq(each_file(NULL, NULL), 2);
    close(rooms[0].fd); /* as if its process had died */
    presto__disk_room none = {.may_evict = evict_none};
    ck_assert_ok(presto__disk_folder_make(&folder, &none, &err), &err);
    ck_assert_int_lt(faccessat(folder.fd, rooms[0].name, F_OK, 0), 0);
    ck_assert_int_eq(faccessat(folder.fd, rooms[1].name, F_OK, 0), 0);
    close(rooms[1].fd);
    presto__disk_folder_close(&folder);
    tear_down();
}
END_TEST

/* Store a sample that takes 40 KB, in a block of its own. */
static void store_one(presto__disk *disk, uint64_t number) {
    static const uint8_t zeros[40000];
    presto_feature feature = {.name = presto_span_of_text("x"),
                              .encoding = PRESTO_ENCODE_TENSOR,
                              .tensor.spec = {PRESTO_UINT8, 1, {sizeof zeros}}};
    feature.tensor.data = zeros;
    presto_sample sample = {.features = &feature, .feature_count = 1, .number = number};
    presto__disk_worker *worker;
    presto_error err;
    ck_assert_ok(presto__disk_worker_new(disk, 1, &worker, &err), &err);
    presto__disk_put(worker, &sample);
    presto__disk_flush(worker);
    presto__disk_worker_free(worker);
    presto__disk_finish(disk);
}

static bool has_one(presto__disk *disk, uint64_t number) {
    presto__disk_worker *worker;
    presto_error err;
    ck_assert_ok(presto__disk_worker_new(disk, 1, &worker, &err), &err);
    presto__disk_find(worker, &number, 1);
    bool has = presto__disk_has(worker, 0);
    presto__disk_worker_free(worker);
    return has;
}

START_TEST(two_that_stored_the_same_do_not_evict_each_other) {
    set_up();
    presto__disk_options options = {
        .dir = cache_dir, .limit_bytes = (uint64_t)112 << 10, .key = {{1, 2}}, .count = 8};
    presto__disk *disks[2], *later;
    presto_error err;
    for (size_t i = 0; i < 2; i++)
        ck_assert_ok(presto__disk_open(&options, &disks[i], &err), &err);
    for (size_t i = 0; i < 2; i++)
        store_one(disks[i], 5);
    ck_assert_uint_eq(each_file(NULL, NULL), 2);
    /* Each knows the other's blocks now, and wants room that only evicting them gives. The
     * folder's time must differ from what they saw, and its clock is coarse. */
    ck_assert_int_eq(utimensat(AT_FDCWD, cache_dir, (struct timespec[2]){{1, 0}, {1, 0}}, 0), 0);
    for (size_t i = 0; i < 2; i++)
        presto__disk_look(disks[i]);
    for (size_t i = 0; i < 2; i++)
        store_one(disks[i], i);
    ck_assert_ok(presto__disk_open(&options, &later, &err), &err);
    ck_assert(has_one(later, 5));
    ck_assert(has_one(later, 0) != has_one(later, 1)); /* one of them had something to evict */
    presto__disk_free(later);
    for (size_t i = 0; i < 2; i++)
        presto__disk_free(disks[i]);
    tear_down();
}
END_TEST

START_TEST(a_lock_that_is_held_for_good_holds_up_nobody_for_good) {
    set_up();
    presto__disk_folder folder;
    presto__disk_key key = {{1, 2}};
    presto_error err;
    ck_assert_ok(presto__disk_folder_open(&folder, cache_dir, 1 << 20, &key, &err), &err);
    int fd = open(cache_dir, O_RDONLY | O_DIRECTORY);
    ck_assert_int_eq(flock(fd, LOCK_EX), 0);
    char name[PRESTO__DISK_NAME_BYTES];
    make_block(&folder, 4096, name);
    close(fd);
    presto__disk_folder_close(&folder);
    tear_down();
}
END_TEST

int main(void) {
    const TTest *const tests[] = {
        an_entry_comes_back_as_it_was_put,
        an_entry_with_a_flipped_bit_or_cut_is_refused,
        values_that_do_not_go_with_their_encoding_are_not_stored,
        a_header_or_table_that_was_changed_is_refused,
        a_table_larger_than_any_block_has_is_refused,
        the_head_of_an_entry_tells_its_size_and_sample,
        digests_tell_lists_of_pieces_apart,
        streams_are_the_same_with_and_without_it,
        a_second_loader_reads_nothing_but_the_cache,
        batches_from_it_outlive_the_loader_and_the_files,
        whatever_is_damaged_in_it_the_stream_stays_the_same,
        options_that_make_no_sense_are_refused,
        room_is_made_by_what_was_not_used_for_longest,
        partial_files_are_removed_when_their_writer_is_gone,
        two_that_stored_the_same_do_not_evict_each_other,
        a_lock_that_is_held_for_good_holds_up_nobody_for_good,
    };
    return presto_check_main("disk_cache", tests, sizeof tests / sizeof tests[0], 240);
}
