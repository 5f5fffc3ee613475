/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shards that end by their size. Where they end is computed here a second time, from the frames of
 * the same records in one shard. The source is files of chosen sizes, stored as they are; samples
 * that are to be damaged are decoded.
 */
#define _XOPEN_SOURCE 700
#include "../../../records/records_internal.h"
#include "folder_check.h"
#include "loader_check.h"

#include <dirent.h>
#include <sys/stat.h>
#include <unistd.h>

#define FILES 12

static const size_t file_bytes[FILES] = {100, 100, 0, 5000, 17, 40, 300000, 1, 2, 900, 90, 9};

static char *dir;
static presto_pipeline *pipeline;
static presto_error err;
static presto_convert_result result;

static char *at(const char *name) {
    return path_in(dir, name);
}

static char *source_file(int number) {
    char name[64];
    snprintf(name, sizeof name, "source/%02d.jpg", number);
    return at(name);
}

static void set_up_folder(void) {
    dir = presto_check_temp_dir();
    ck_assert_ok(presto_pipeline_load("cv", NULL, &pipeline, &err), &err);
}

static void set_up(void) {
    set_up_folder();
    ck_assert_int_eq(mkdir(at("source"), 0777), 0);
    for (int i = 0; i < FILES; i++) {
        uint8_t *content = malloc(file_bytes[i] + 1);
        for (size_t k = 0; k < file_bytes[i]; k++)
            content[k] = (uint8_t)(i * 31 + (int)(k * k >> 3));
        presto_check_write_file(source_file(i), presto_span_of(content, file_bytes[i]));
        free(content);
    }
}

/* Photos instead, so that damage is noticed. */
static void set_up_photos(void) {
    set_up_folder();
    char command[1200];
    snprintf(command, sizeof command,
             "%s -n %d -c 1 --width 40 --height 30 -j 0 -o %s/made >/dev/null 2>&1 && "
             "mkdir %s/source && i=0 && for f in $(find %s/made -name '*.jpg' | sort); do "
             "mv $f %s/source/$(printf '%%02d' $i).jpg; i=$((i+1)); done",
             PRESTO_CORPUS_PROGRAM, FILES, dir, dir, dir, dir);
    ck_assert_int_eq(system(command), 0);
}

static void tear_down(void) {
    presto_pipeline_free(pipeline);
    presto_check_remove_tree(dir);
    free(dir);
}

static presto_convert_options by_size(uint64_t shard_bytes) {
    presto_convert_options options;
    presto_convert_options_defaults(&options);
    options.up_to = "concatenated";
    options.shard_bytes = shard_bytes;
    options.sync = false;
    return options;
}

static presto_status convert(const char *to, const presto_convert_options *options) {
    const char *paths[] = {at("source")};
    presto_convert_options with = *options;
    with.pipeline = pipeline;
    with.dir = at(to);
    return presto_convert(paths, 1, &with, &result, &err);
}

/* The bytes of all shards in a row, and the size of each. */
typedef struct whole {
    presto_buffer bytes;
    uint64_t shard_bytes[FILES + 1], records[FILES + 1];
    size_t shards;
} whole;

static whole read_whole(const char *name) {
    whole all = {0};
    presto_dataset_info info = {0};
    ck_assert_ok(presto__dataset_info_read(at(name), &info, &err), &err);
    ck_assert_uint_le(info.shard_count, FILES);
    for (size_t i = 0; i < info.shard_count; i++) {
        char path[1000], wanted[64];
        snprintf(path, sizeof path, "%s/%s", at(name), info.shards[i].file);
        snprintf(wanted, sizeof wanted, "data-%05zu-of-%05zu.tfrecord", i, info.shard_count);
        ck_assert_ptr_eq(strstr(info.shards[i].file, wanted), info.shards[i].file);
        size_t bytes;
        uint8_t *content = presto_check_read_file(path, &bytes);
        ck_assert_uint_eq(bytes, info.shards[i].stored_bytes);
        ck_assert_ok(presto_buffer_append(&all.bytes, presto_span_of(content, bytes), &err), &err);
        all.shard_bytes[i] = bytes;
        all.records[i] = info.shards[i].records;
        free(content);
    }
    all.shards = info.shard_count;
    presto__dataset_info_free(&info);
    return all;
}

static bool is_same(const char *a, const char *b) {
    whole one = read_whole(a), other = read_whole(b);
    bool same =
        one.shards == other.shards &&
        presto_span_equal(presto_buffer_span(&one.bytes), presto_buffer_span(&other.bytes)) &&
        memcmp(one.records, other.records, sizeof one.records) == 0;
    presto_buffer_done(&one.bytes);
    presto_buffer_done(&other.bytes);
    return same;
}

/* Nothing but shards, their indexes and dataset.json, under names that are not hidden. */
static void check_names(const char *name, size_t shards) {
    struct dirent **entries;
    int count = scandir(at(name), &entries, NULL, alphasort);
    ck_assert_int_eq(count, 2 + 2 * (int)shards + 1); /* . and .. */
    for (int i = 0; i < count; i++) {
        if (i >= 2)
            ck_assert_int_ne(entries[i]->d_name[0], '.');
        free(entries[i]);
    }
    free(entries);
}

/* Sizes of the frames, in order. */
static void read_frames(const char *name, uint64_t frames_out[FILES]) {
    whole all = read_whole(name);
    const uint8_t *from = all.bytes.data;
    size_t left = all.bytes.bytes;
    for (int i = 0; i < FILES; i++) {
        presto_span payload;
        ck_assert_ok(presto__frame_parse(presto_span_of(from, left), 0,
                                         &(presto__frame_rules){left, PRESTO_CHECK_FULL}, &payload,
                                         &err),
                     &err);
        frames_out[i] = payload.bytes + PRESTO_FRAME_OVERHEAD_BYTES;
        from += frames_out[i];
        left -= frames_out[i];
    }
    ck_assert_uint_eq(left, 0);
    presto_buffer_done(&all.bytes);
}

static void check_split(const char *name, const uint64_t frames[FILES], uint64_t most) {
    whole all = read_whole(name);
    size_t shard = 0;
    uint64_t bytes = 0, records = 0;
    for (int i = 0; i < FILES; i++) {
        if (records > 0 && bytes + frames[i] > most) {
            ck_assert_uint_eq(all.shard_bytes[shard], bytes);
            ck_assert_uint_eq(all.records[shard++], records);
            bytes = records = 0;
        }
        bytes += frames[i];
        records++;
    }
    ck_assert_uint_eq(all.shard_bytes[shard], bytes);
    ck_assert_uint_eq(all.records[shard], records);
    ck_assert_uint_eq(all.shards, shard + 1);
    ck_assert_uint_eq(result.shards, shard + 1);
    ck_assert_uint_eq(result.samples, FILES);
    check_names(name, all.shards);
    presto_buffer_done(&all.bytes);
}

START_TEST(shards_end_before_the_record_that_would_not_fit) {
    set_up();
    presto_convert_options options = by_size(0);
    options.shards = 1;
    ck_assert_ok(convert("one", &options), &err);
    uint64_t frames[FILES], total = 0;
    read_frames("one", frames);
    for (int i = 0; i < FILES; i++)
        total += frames[i];
    uint64_t three = frames[0] + frames[1] + frames[2];
    const uint64_t sizes[] = {1,         frames[2], frames[6] - 1, frames[6], frames[6] + 1,
                              three - 1, three,     three + 1,     1000,      6000,
                              total - 1, total,     total + 1,     UINT64_MAX};
    for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++) {
        options = by_size(sizes[s]);
        ck_assert_ok(convert("out", &options), &err);
        check_split("out", frames, sizes[s]);
        presto_check_remove_tree(at("out"));
    }
    tear_down();
}
END_TEST

START_TEST(the_number_of_threads_does_not_move_the_ends) {
    set_up();
    for (uint64_t size = 1; size < 600000; size *= 9) {
        static const unsigned threads[] = {0, 1, 2, 8};
        for (size_t t = 0; t < 4; t++) {
            presto_convert_options options = by_size(size);
            options.codec = "zlib:1";
            options.threads = threads[t];
            options.auto_threads = threads[t] == 8;
            ck_assert_ok(convert(t == 0 ? "first" : "out", &options), &err);
            if (t == 0)
                continue;
            ck_assert(is_same("first", "out"));
            presto_check_remove_tree(at("out"));
        }
        presto_check_remove_tree(at("first"));
    }
    tear_down();
}
END_TEST

START_TEST(of_compressed_files_the_size_before_counts) {
    set_up();
    presto_convert_options options = by_size(6000);
    ck_assert_ok(convert("plain", &options), &err);
    options.file_compression = PRESTO_FILE_GZIP;
    ck_assert_ok(convert("gzip", &options), &err);
    whole plain = read_whole("plain"), gzip = read_whole("gzip");
    ck_assert_uint_eq(plain.shards, gzip.shards);
    ck_assert_uint_gt(plain.shards, 2);
    for (size_t i = 0; i < plain.shards; i++)
        ck_assert_uint_eq(plain.records[i], gzip.records[i]);
    presto_buffer_done(&plain.bytes);
    presto_buffer_done(&gzip.bytes);
    tear_down();
}
END_TEST

START_TEST(without_samples_there_is_one_empty_shard) {
    set_up();
    presto_convert_options options = by_size(1000);
    options.up_to = "decoded"; /* no file is a photo */
    options.errors.policy = PRESTO_ON_ERROR_SKIP;
    ck_assert_ok(convert("out", &options), &err);
    ck_assert_uint_eq(result.samples, 0);
    ck_assert_uint_eq(result.skipped, FILES);
    ck_assert_uint_eq(result.shards, 1);
    whole all = read_whole("out");
    ck_assert_uint_eq(all.bytes.bytes, 0);
    check_names("out", 1);
    presto_buffer_done(&all.bytes);
    tear_down();
}
END_TEST

START_TEST(shards_end_either_by_number_or_by_size) {
    set_up();
    presto_convert_options options = by_size(1000);
    options.shards = 2;
    ck_assert_status(convert("out", &options), PRESTO_ERR_ARGUMENT, &err);
    ck_assert_int_ne(access(at("out"), F_OK), 0);
    tear_down();
}
END_TEST

static void damage(int number, bool damaged) {
    static uint8_t *kept[FILES];
    static size_t kept_bytes[FILES];
    if (kept[number] == NULL)
        kept[number] = presto_check_read_file(source_file(number), &kept_bytes[number]);
    uint8_t *zeros = calloc(kept_bytes[number], 1);
    presto_check_write_file(source_file(number),
                            presto_span_of(damaged ? zeros : kept[number], kept_bytes[number]));
    free(zeros);
    if (!damaged) {
        free(kept[number]);
        kept[number] = NULL;
    }
}

/* Where samples are left out, the shards that were whole do not end with their last record. */
START_TEST(a_resumed_conversion_leaves_out_the_same_samples) {
    set_up_photos();
    for (int i = 1; i < FILES; i += 3)
        damage(i, true); /* 1, 4, 7, 10 */
    presto_convert_options options = by_size(8000);
    options.up_to = "decoded";
    options.threads = 2;
    options.errors.policy = PRESTO_ON_ERROR_SKIP;
    ck_assert_ok(convert("whole", &options), &err);
    ck_assert_uint_eq(result.skipped, 4);
    ck_assert_uint_eq(result.shards, 4);
    options.resume = true;
    for (uint64_t limit = 0; limit < 4; limit++) {
        options.errors.skip_limit = limit;
        ck_assert_int_lt(convert("out", &options), 0);
        ck_assert_int_ne(access(at("out/dataset.json"), F_OK), 0);
        ck_assert_int_eq(access(at("out/.data-00000.tfrecord"), F_OK) == 0, limit > 0);
        ck_assert_int_eq(access(at("out/.data-00002.tfrecord"), F_OK) == 0, limit > 2);
    }
    options.errors.skip_limit = 4;
    ck_assert_ok(convert("out", &options), &err);
    ck_assert_uint_eq(result.skipped, 4);
    ck_assert_uint_eq(result.samples, FILES - 4);
    ck_assert(is_same("whole", "out"));
    check_names("out", 4);
    /* And whole shards are left as they are. */
    ck_assert_ok(convert("out", &options), &err);
    ck_assert_uint_eq(result.skipped, 4);
    ck_assert_uint_eq(result.shards, 4);
    for (int i = 1; i < FILES; i += 3)
        damage(i, false);
    tear_down();
}
END_TEST

/* The samples of a part have other numbers in the source than positions in the part. */
START_TEST(a_resumed_part_of_a_source_holds_all_of_it) {
    static const char *const parts[] = {"1", "2"};
    set_up_photos();
    uint64_t samples = 0;
    for (size_t part = 0; part < 2; part++) {
        presto_convert_options options = by_size(1);
        options.up_to = "decoded";
        options.partition.ratio = "50/50";
        options.partition.part = parts[part];
        options.resume = true;
        for (int i = 1; i < FILES; i += 3)
            damage(i, true);
        options.errors.policy = PRESTO_ON_ERROR_SKIP;
        ck_assert_ok(convert("whole", &options), &err);
        uint64_t most = result.skipped;
        for (uint64_t limit = 0; limit <= most; limit++) {
            options.errors.skip_limit = limit;
            ck_assert_int_eq(convert("out", &options) == PRESTO_OK, limit == most);
        }
        ck_assert(is_same("whole", "out"));
        presto_check_remove_tree(at("whole"));
        presto_check_remove_tree(at("out"));
        options.errors.policy = PRESTO_ON_ERROR_FAIL;
        for (int i = 1; i < FILES; i += 3) {
            (void)convert("out", &options);
            damage(i, false);
        }
        ck_assert_ok(convert("out", &options), &err);
        ck_assert_ok(convert("whole", &options), &err);
        samples += result.samples;
        ck_assert(is_same("whole", "out"));
        presto_check_remove_tree(at("whole"));
        presto_check_remove_tree(at("out"));
    }
    ck_assert_uint_eq(samples, FILES);
    tear_down();
}
END_TEST

/* A progress file says that a shard ends behind the last sample. */
START_TEST(progress_of_more_samples_than_there_are_is_refused) {
    set_up_photos();
    presto_convert_options options = by_size(1);
    options.up_to = "decoded";
    options.resume = true;
    damage(4, true);
    ck_assert_int_lt(convert("out", &options), 0);
    damage(4, false);
    size_t bytes;
    uint8_t *content = presto_check_read_file(at("out/.progress.json"), &bytes);
    char *text = presto_span_to_text(presto_span_of(content, bytes)), *changed = malloc(bytes + 32);
    char *end = strstr(text, "\"end\": 3");
    ck_assert_ptr_nonnull(end);
    for (int forged = 0; forged < 2; forged++) {
        snprintf(changed, bytes + 32, "%.*s%s%s", (int)(end - text), text,
                 forged ? "\"end\": 9223372036854775807" : "\"end\": 13", end + 8);
        presto_check_write_file(at("out/.progress.json"), presto_span_of_text(changed));
        ck_assert_status(convert("out", &options), PRESTO_ERR_CORRUPT, &err);
        ck_assert_str_eq(err.file, at("out"));
    }
    free(changed);
    free(text);
    free(content);
    tear_down();
}
END_TEST

START_TEST(a_resumed_conversion_that_nothing_remains_for_ends) {
    set_up_photos();
    presto_convert_options options = by_size(1);
    options.up_to = "decoded";
    options.resume = true;
    damage(4, true);
    ck_assert_int_lt(convert("out", &options), 0);
    ck_assert_int_eq(access(at("out/.data-00002.tfrecord"), F_OK), 0);
    ck_assert_int_ne(access(at("out/.data-00003.tfrecord"), F_OK), 0);
    for (int i = 3; i < FILES; i++)
        damage(i, true);
    options.errors.policy = PRESTO_ON_ERROR_SKIP;
    ck_assert_ok(convert("out", &options), &err);
    ck_assert_uint_eq(result.samples, 3);
    ck_assert_uint_eq(result.skipped, FILES - 3);
    ck_assert_uint_eq(result.shards, 3);
    check_names("out", 3);
    for (int i = 3; i < FILES; i++)
        damage(i, false);
    tear_down();
}
END_TEST

START_TEST(a_shard_that_is_gone_and_all_after_it_are_made_anew) {
    set_up_photos();
    presto_convert_options options = by_size(8000);
    options.up_to = "decoded";
    ck_assert_ok(convert("whole", &options), &err);
    options.resume = true;
    damage(11, true);
    ck_assert_int_lt(convert("out", &options), 0);
    ck_assert_int_eq(access(at("out/.data-00003.tfrecord"), F_OK), 0);
    ck_assert_int_eq(unlink(at("out/.data-00001.tfrecord")), 0);
    ck_assert_int_lt(convert("out", &options), 0);
    ck_assert_int_eq(access(at("out/.data-00001.tfrecord"), F_OK), 0);
    damage(11, false);
    ck_assert_ok(convert("out", &options), &err);
    ck_assert(is_same("whole", "out"));
    tear_down();
}
END_TEST

START_TEST(another_size_or_number_is_told_from_what_stands) {
    set_up_photos();
    presto_convert_options options = by_size(8000), other;
    options.up_to = "decoded";
    options.resume = true;
    damage(11, true);
    ck_assert_int_lt(convert("out", &options), 0);
    for (int finished = 0; finished < 2; finished++) {
        other = options;
        other.shard_bytes = 9000 + (uint64_t)finished * 9000;
        ck_assert_status(convert("out", &other), PRESTO_ERR_ARGUMENT, &err);
        ck_assert_ptr_nonnull(strstr(err.message, "shard_bytes"));
        other.shard_bytes = 0;
        other.shards = finished ? 5 : 3;
        ck_assert_status(convert("out", &other), PRESTO_ERR_ARGUMENT, &err);
        ck_assert_ptr_nonnull(strstr(err.message, "shard"));
        if (finished)
            break;
        damage(11, false);
        ck_assert_ok(convert("out", &options), &err);
        ck_assert_uint_eq(result.shards, 6);
    }
    tear_down();
}
END_TEST

START_TEST(what_is_no_folder_is_not_written_into) {
    set_up();
    presto_convert_options options = by_size(8000);
    presto_check_write_file(at("file"), presto_span_of_text("mine"));
    for (int resume = 0; resume < 2; resume++) {
        options.resume = resume;
        ck_assert_status(convert("file", &options), PRESTO_ERR_ARGUMENT, &err);
        ck_assert_ptr_nonnull(strstr(err.message, "is not a folder"));
        ck_assert_str_eq(err.file, at("file"));
    }
    tear_down();
}
END_TEST

int main(void) {
    const TTest *const tests[] = {
        shards_end_before_the_record_that_would_not_fit,
        the_number_of_threads_does_not_move_the_ends,
        of_compressed_files_the_size_before_counts,
        without_samples_there_is_one_empty_shard,
        shards_end_either_by_number_or_by_size,
        a_resumed_conversion_leaves_out_the_same_samples,
        a_resumed_part_of_a_source_holds_all_of_it,
        progress_of_more_samples_than_there_are_is_refused,
        a_resumed_conversion_that_nothing_remains_for_ends,
        a_shard_that_is_gone_and_all_after_it_are_made_anew,
        another_size_or_number_is_told_from_what_stands,
        what_is_no_folder_is_not_written_into,
    };
    return presto_check_main("shard_bytes", tests, sizeof tests / sizeof tests[0], 240);
}
