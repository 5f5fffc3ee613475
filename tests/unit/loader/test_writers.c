/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Several shards are made at once: the same bytes as one after the other, the same failure in any
 * timing, and no whole shard is made again.
 */
#define _XOPEN_SOURCE 700
#include "../base/clock_internal.h"
#include "loader_check.h"

#include <dirent.h>
#include <sys/stat.h>
#include <unistd.h>

#include "convert/convert_internal.h"
#include "folder_check.h"

#define PHOTOS 30
#define SHARDS 6 /* of five photos each, where nothing else is said */
/* Too little for packets of more than one photo, so that shards take turns photo by photo. */
#define TINY_PREFETCH_BYTES ((size_t)50000)

static char *dir;
static presto_pipeline *pipeline;
static presto_error err;
static presto_convert_result result;

static char *at(const char *name) {
    return path_in(dir, name);
}

static char *photo(int number) {
    char name[64];
    snprintf(name, sizeof name, "photos/%02d.jpg", number);
    return at(name);
}

/* Photos named 00.jpg, 01.jpg, ... */
static void set_up(void) {
    dir = presto_check_temp_dir();
    ck_assert_ok(presto_pipeline_load("cv", NULL, &pipeline, &err), &err);
    char command[1200];
    snprintf(command, sizeof command,
             "%s -n %d -c 1 --width 40 --height 30 -j 0 -o %s/made >/dev/null 2>&1 && "
             "mkdir %s/photos && i=0 && for f in $(find %s/made -name '*.jpg' | sort); do "
             "mv $f %s/photos/$(printf '%%02d' $i).jpg; i=$((i+1)); done",
             PRESTO_CORPUS_PROGRAM, PHOTOS, dir, dir, dir, dir);
    ck_assert_int_eq(system(command), 0);
}

static void tear_down(void) {
    presto_pipeline_free(pipeline);
    presto_check_remove_tree(dir);
    free(dir);
}

static presto_convert_options defaults(presto_file_compression compression, size_t shards,
                                       unsigned threads) {
    presto_convert_options options;
    presto_convert_options_defaults(&options);
    options.split = "decoded";
    options.file_compression = compression;
    options.shards = shards;
    options.threads = threads;
    options.sync = false;
    return options;
}

static presto_status convert(const char *from, const char *to,
                             const presto_convert_options *options) {
    const char *paths[] = {at(from)};
    presto_convert_options with = *options;
    with.pipeline = pipeline;
    with.dir = at(to);
    return presto_convert(paths, 1, &with, &result, &err);
}

static uint32_t digest_folder(const char *name) {
    return digest_of_folder(at(name));
}

/* The photo as another file, which is none, and back. */
static void damage(int number, bool damaged) {
    char kept[1000];
    snprintf(kept, sizeof kept, "%s/kept-%d", dir, number);
    if (damaged) {
        struct stat info;
        ck_assert_int_eq(stat(photo(number), &info), 0);
        ck_assert_int_eq(rename(photo(number), kept), 0);
        uint8_t *zeros = calloc((size_t)info.st_size, 1);
        presto_check_write_file(photo(number), presto_span_of(zeros, (size_t)info.st_size));
        free(zeros);
    } else {
        ck_assert_int_eq(rename(kept, photo(number)), 0);
    }
}

START_TEST(shards_are_the_same_for_any_number_of_threads) {
    set_up();
    static const size_t shards[] = {1, 2, 3, 7, PHOTOS + 5};
    static const unsigned threads[] = {0, 1, 2, 3, 5, 8};
    for (size_t s = 0; s < sizeof shards / sizeof shards[0]; s++)
        for (int c = 0; c < 4; c++) {
            uint32_t wanted = 0;
            for (size_t t = 0; t < sizeof threads / sizeof threads[0]; t++) {
                presto_convert_options options =
                    defaults(c % 2 ? PRESTO_FILE_GZIP : PRESTO_FILE_PLAIN, shards[s], threads[t]);
                options.auto_threads = t == 3;
                options.limit_samples = c / 2 ? 11 : 0;
                if (t == 4)
                    options.prefetch_bytes = TINY_PREFETCH_BYTES;
                ck_assert_ok(convert("photos", "out", &options), &err);
                ck_assert_uint_eq(result.samples, c / 2 ? 11 : PHOTOS);
                ck_assert_uint_eq(result.skipped, 0);
                ck_assert_uint_eq(result.shards, shards[s]);
                ck_assert_uint_gt(result.source_bytes, 0);
                uint32_t digest = digest_folder("out");
                if (t == 0)
                    wanted = digest;
                ck_assert_uint_eq(digest, wanted);
                presto_check_remove_tree(at("out"));
            }
        }
    tear_down();
}
END_TEST

/* Such an input can be read from its start only. */
START_TEST(a_dataset_of_compressed_files_is_recoded) {
    set_up();
    presto_convert_options options = defaults(PRESTO_FILE_GZIP, 3, 4);
    ck_assert_ok(convert("photos", "first", &options), &err);
    options = defaults(PRESTO_FILE_ZLIB, 5, 4);
    ck_assert_ok(convert("photos", "direct", &options), &err);
    ck_assert_ok(convert("first", "second", &options), &err);
    forget_input(at("direct"));
    forget_input(at("second"));
    ck_assert_uint_eq(digest_folder("direct"), digest_folder("second"));
    options = defaults(PRESTO_FILE_PLAIN, 4, 2);
    ck_assert_ok(convert("photos", "plain", &options), &err);
    options = defaults(PRESTO_FILE_ZLIB, 5, 4);
    ck_assert_ok(convert("plain", "third", &options), &err);
    forget_input(at("third"));
    ck_assert_uint_eq(digest_folder("direct"), digest_folder("third"));
    tear_down();
}
END_TEST

static const char *ending(const presto_convert_options *options) {
    return options->file_compression == PRESTO_FILE_GZIP ? ".gz" : "";
}

static char *shard_at(const char *folder, int shard, const presto_convert_options *options,
                      const char *suffix) {
    char name[100];
    snprintf(name, sizeof name, "%s/data-%05d-of-%05d.tfrecord%s%s", folder, shard, SHARDS,
             ending(options), suffix);
    return at(name);
}

static bool stands(int shard, const presto_convert_options *options) {
    return access(shard_at("out", shard, options, ""), F_OK) == 0;
}

static size_t count_partial(const char *folder) {
    struct dirent **entries;
    int count = scandir(folder, &entries, NULL, alphasort);
    size_t partial = 0;
    for (int i = 0; i < count; i++) {
        partial += strstr(entries[i]->d_name, ".partial") != NULL;
        free(entries[i]);
    }
    free(entries);
    return partial;
}

/* What a failure at photo `first` leaves: the shards before it, and as many as are noted. */
static void check_failed(const presto_convert_options *options, int first) {
    ck_assert_str_eq(err.file, photo(first));
    int standing = 0;
    for (int i = 0; i < SHARDS; i++) {
        standing += stands(i, options);
        if (i < first / 5)
            ck_assert(stands(i, options));
    }
    ck_assert(!stands(first / 5, options));
    if (standing == 0) {
        ck_assert_int_ne(access(at("out"), F_OK), 0);
        return;
    }
    ck_assert_int_ne(access(at("out/dataset.json"), F_OK), 0);
    ck_assert_uint_eq(count_partial(at("out")), 0);
    presto__progress_file progress = {0};
    ck_assert_ok(presto__progress_file_read(at("out"), &progress, &err), &err);
    ck_assert_uint_eq(progress.shard_count, (size_t)standing);
    presto__progress_file_done(&progress);
}

/* Random photos are damaged. They are repaired one by one, and each time the conversion resumes. */
START_TEST(the_first_failure_in_the_order_of_the_samples_is_reported) {
    set_up();
    presto_rng rng;
    presto_rng_init(&rng, &(presto_rng_key){presto_check_seed(), 1, 2, 3});
    uint32_t wanted[2];
    for (int c = 0; c < 2; c++) {
        presto_convert_options options =
            defaults(c ? PRESTO_FILE_GZIP : PRESTO_FILE_PLAIN, SHARDS, 3);
        ck_assert_ok(convert("photos", c ? "whole-gz" : "whole", &options), &err);
        wanted[c] = digest_folder(c ? "whole-gz" : "whole");
    }
    for (int round = 0; round < 40; round++) {
        bool is_damaged[PHOTOS] = {false};
        /* The last of the third shard and the first of the fourth are damaged in the first ones. */
        for (uint64_t n = 0; n < 2 + presto_rng_below(&rng, 4); n++)
            is_damaged[round < 4 ? 14 + n : presto_rng_below(&rng, PHOTOS)] = true;
        for (int i = 0; i < PHOTOS; i++)
            if (is_damaged[i])
                damage(i, true);
        presto_convert_options options =
            defaults(round % 2 ? PRESTO_FILE_GZIP : PRESTO_FILE_PLAIN, SHARDS, 0);
        options.resume = true;
        for (int i = 0; i < PHOTOS; i++) {
            if (!is_damaged[i])
                continue;
            options.threads = (unsigned)presto_rng_below(&rng, 7);
            options.prefetch_bytes =
                presto_rng_below(&rng, 3) > 0 ? TINY_PREFETCH_BYTES : (size_t)1 << 20;
            ck_assert_int_lt(convert("photos", "out", &options), 0);
            check_failed(&options, i);
            damage(i, false);
        }
        ck_assert_ok(convert("photos", "out", &options), &err);
        ck_assert_uint_eq(digest_folder("out"), wanted[round % 2]);
        presto_check_remove_tree(at("out"));
    }
    tear_down();
}
END_TEST

/* The first shard takes long and then fails, when the others have all their samples. */
START_TEST(a_first_shard_that_fails_last_is_reported) {
    set_up();
    char command[2000];
    snprintf(command, sizeof command,
             "%s -n 1 -c 1 --width 3000 --height 2000 -j 0 -o %s/large >/dev/null 2>&1 && "
             "mv $(find %s/large -name '*.jpg') %s",
             PRESTO_CORPUS_PROGRAM, dir, dir, photo(0));
    ck_assert_int_eq(system(command), 0);
    damage(1, true);
    static const unsigned threads[] = {0, 2, 4};
    for (int kept = 0; kept < 2; kept++)
        for (size_t t = 0; t < sizeof threads / sizeof threads[0]; t++) {
            presto_convert_options options = defaults(PRESTO_FILE_PLAIN, SHARDS, threads[t]);
            if (kept)
                ck_assert_int_eq(mkdir(at("out"), 0777), 0);
            ck_assert_int_lt(convert("photos", "out", &options), 0);
            ck_assert_str_eq(err.file, photo(1));
            /* A folder that was there stays, with nothing in it: no shard was whole by then. */
            ck_assert_int_eq(access(at("out"), F_OK), kept ? 0 : -1);
            if (kept)
                ck_assert_int_eq(rmdir(at("out")), 0);
        }
    tear_down();
}
END_TEST

static bool stop_at_the_end(void *user, const presto_progress *progress) {
    (void)user;
    return progress->samples_done < progress->samples_total;
}

/* All shards are whole and noted, dataset.json is missing. */
static void leave_unfinished(presto_convert_options options) {
    options.threads = 0;
    options.resume = false;
    options.on_progress = stop_at_the_end;
    ck_assert_status(convert("photos", "out", &options), PRESTO_ERR_STOPPED, &err);
    for (int i = 0; i < SHARDS; i++)
        ck_assert(stands(i, &options));
}

/* Shard and index are missing, or the progress file does not list them. */
static void lose(int shard, const presto_convert_options *options, bool is_forgotten) {
    if (!is_forgotten) {
        ck_assert_int_eq(unlink(shard_at("out", shard, options, "")), 0);
        ck_assert_int_eq(unlink(shard_at("out", shard, options, ".index")), 0);
        return;
    }
    presto__progress_file progress = {0};
    ck_assert_ok(presto__progress_file_read(at("out"), &progress, &err), &err);
    size_t i = 0;
    while (progress.shards[i].number != (size_t)shard)
        i++;
    free(progress.shards[i].described.file);
    for (progress.shard_count--; i < progress.shard_count; i++)
        progress.shards[i] = progress.shards[i + 1];
    ck_assert_ok(presto__progress_file_write(at("out"), &progress, false, &err), &err);
    presto__progress_file_done(&progress);
}

static void resume_with(unsigned whole, presto_convert_options *options, bool is_forgotten) {
    struct stat before[SHARDS], after;
    leave_unfinished(*options);
    for (int i = 0; i < SHARDS; i++) {
        ck_assert_int_eq(stat(shard_at("out", i, options, ""), &before[i]), 0);
        if ((whole >> i & 1) == 0)
            lose(i, options, is_forgotten);
    }
    ck_assert_ok(convert("photos", "out", options), &err);
    /* The source of those that stay is not even read. */
    uint64_t source_bytes = 0;
    struct stat info;
    for (int i = 0; i < PHOTOS; i++)
        if ((whole >> (i / 5) & 1) == 0 && stat(photo(i), &info) == 0)
            source_bytes += (uint64_t)info.st_size;
    ck_assert_uint_eq(result.source_bytes, source_bytes);
    for (int i = 0; i < SHARDS; i++) {
        ck_assert_int_eq(stat(shard_at("out", i, options, ""), &after), 0);
        bool same = before[i].st_ino == after.st_ino &&
                    before[i].st_mtim.tv_sec == after.st_mtim.tv_sec &&
                    before[i].st_mtim.tv_nsec == after.st_mtim.tv_nsec;
        if ((whole >> i & 1) == 1)
            ck_assert(same);
        else if (is_forgotten) /* the old one existed until the new one took its name */
            ck_assert(!same);
    }
}

START_TEST(only_what_is_missing_is_made_again) {
    set_up();
    for (int c = 0; c < 2; c++) {
        presto_convert_options options =
            defaults(c ? PRESTO_FILE_GZIP : PRESTO_FILE_PLAIN, SHARDS, 3);
        ck_assert_ok(convert("photos", "whole", &options), &err);
        uint32_t wanted = digest_folder("whole");
        options.resume = true;
        for (unsigned whole = 0; whole < 1U << SHARDS; whole++) {
            static const unsigned threads[] = {2, 0, 3, 8, 1};
            options.threads = threads[whole % 5];
            resume_with(whole, &options, whole % 3 == 0);
            ck_assert_uint_eq(digest_folder("out"), wanted);
            presto_check_remove_tree(at("out"));
        }
        presto_check_remove_tree(at("whole"));
    }
    tear_down();
}
END_TEST

/* One after the other, so that they are reported and counted in order. */
static void count_skip(void *user, uint64_t epoch, uint64_t sample, const presto_error *why) {
    (void)epoch;
    (void)why;
    uint64_t *last = user;
    ck_assert(*last == UINT64_MAX || sample > *last);
    *last = sample;
}

/* The fourth shard has nothing but such samples, others end or start with one. */
static void damage_some(bool damaged) {
    static const int photos[] = {4, 5, 6, 15, 16, 17, 18, 19, 24, 29};
    for (size_t i = 0; i < sizeof photos / sizeof photos[0]; i++)
        damage(photos[i], damaged);
}
enum { DAMAGED = 10 };

START_TEST(samples_left_out_are_told_in_order) {
    set_up();
    damage_some(true);
    uint32_t wanted = 0;
    static const unsigned threads[] = {0, 1, 8};
    for (size_t t = 0; t < 6; t++) {
        uint64_t last = UINT64_MAX;
        presto_convert_options options = defaults(PRESTO_FILE_GZIP, SHARDS, threads[t / 2]);
        options.errors.policy = PRESTO_ON_ERROR_SKIP;
        options.errors.on_skip = count_skip;
        options.errors.on_skip_user = &last;
        if (t % 2)
            options.prefetch_bytes = TINY_PREFETCH_BYTES;
        ck_assert_ok(convert("photos", "out", &options), &err);
        ck_assert_uint_eq(last, 29);
        ck_assert_uint_eq(result.skipped, DAMAGED);
        ck_assert_uint_eq(result.samples, PHOTOS - DAMAGED);
        uint32_t digest = digest_folder("out");
        if (t == 0)
            wanted = digest;
        ck_assert_uint_eq(digest, wanted);
        presto_check_remove_tree(at("out"));
    }
    tear_down();
}
END_TEST

/* Those of the shards that stay are counted, but not reported again. */
START_TEST(samples_left_out_are_counted_over_any_shards_that_stay) {
    set_up();
    damage_some(true);
    presto_convert_options options = defaults(PRESTO_FILE_PLAIN, SHARDS, 3);
    options.errors.policy = PRESTO_ON_ERROR_SKIP;
    ck_assert_ok(convert("photos", "whole", &options), &err);
    uint32_t wanted = digest_folder("whole");
    options.resume = true;
    for (unsigned whole = 0; whole < 1U << SHARDS; whole += 3) {
        uint64_t last = UINT64_MAX;
        options.errors.on_skip = NULL;
        leave_unfinished(options);
        for (int i = 0; i < SHARDS; i++)
            if ((whole >> i & 1) == 0)
                lose(i, &options, i % 2);
        options.errors.on_skip = count_skip;
        options.errors.on_skip_user = &last;
        ck_assert_ok(convert("photos", "out", &options), &err);
        ck_assert_uint_eq(result.skipped, DAMAGED);
        ck_assert_uint_eq(result.samples, PHOTOS - DAMAGED);
        if (last != UINT64_MAX)
            ck_assert_uint_eq(whole >> (last / 5) & 1, 0);
        ck_assert_uint_eq(digest_folder("out"), wanted);
        presto_check_remove_tree(at("out"));
    }
    tear_down();
}
END_TEST

/* ... and a limit of them ends the conversion with all shards before the sample that was too many.
 */
START_TEST(too_many_samples_left_out_keep_the_shards_before) {
    set_up();
    damage_some(true);
    for (unsigned threads = 0; threads < 4; threads++)
        for (int tiny = 0; tiny < 2; tiny++) {
            presto_convert_options options = defaults(PRESTO_FILE_PLAIN, SHARDS, threads);
            options.errors.policy = PRESTO_ON_ERROR_SKIP;
            options.errors.skip_limit = 8;
            if (tiny)
                options.prefetch_bytes = TINY_PREFETCH_BYTES;
            ck_assert_int_lt(convert("photos", "out", &options), 0);
            check_failed(&options, 24);
            presto_check_remove_tree(at("out"));
        }
    tear_down();
}
END_TEST

/* A shard whose name is taken by a folder with something in it. */
START_TEST(a_shard_that_cannot_be_written_stops_all_and_the_others_stay) {
    set_up();
    presto_convert_options options = defaults(PRESTO_FILE_PLAIN, SHARDS, 3);
    ck_assert_ok(convert("photos", "whole", &options), &err);
    uint32_t wanted = digest_folder("whole");
    options.resume = true;
    for (int shard = 0; shard < SHARDS; shard++)
        for (int tiny = 0; tiny < 2; tiny++) {
            options.threads = 2 + (unsigned)shard % 3;
            options.prefetch_bytes = tiny ? TINY_PREFETCH_BYTES : (size_t)1 << 20;
            leave_unfinished(options);
            for (int i = 0; i < SHARDS; i++)
                if (i >= shard || i % 2)
                    lose(i, &options, false);
            ck_assert_int_eq(mkdir(shard_at("out", shard, &options, ""), 0777), 0);
            ck_assert_int_eq(mkdir(shard_at("out", shard, &options, "/in-the-way"), 0777), 0);
            ck_assert_status(convert("photos", "out", &options), PRESTO_ERR_IO, &err);
            ck_assert_str_eq(err.file, shard_at("out", shard, &options, ""));
            ck_assert_int_ne(access(at("out/dataset.json"), F_OK), 0);
            ck_assert_uint_eq(count_partial(at("out")), 0);
            for (int i = 0; i < shard; i += 2)
                ck_assert(stands(i, &options));
            ck_assert_int_eq(rmdir(shard_at("out", shard, &options, "/in-the-way")), 0);
            ck_assert_int_eq(rmdir(shard_at("out", shard, &options, "")), 0);
            ck_assert_ok(convert("photos", "out", &options), &err);
            ck_assert_uint_eq(digest_folder("out"), wanted);
            presto_check_remove_tree(at("out"));
        }
    tear_down();
}
END_TEST

/* ---- the queues ---- */

/* The writer of shard 0 hangs while it opens its file, until it is let go. */
static pthread_mutex_t gate_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t gate_opened = PTHREAD_COND_INITIALIZER;
static bool gate_is_shut;

static void set_gate(bool is_shut) {
    pthread_mutex_lock(&gate_lock);
    gate_is_shut = is_shut;
    pthread_cond_broadcast(&gate_opened);
    pthread_mutex_unlock(&gate_lock);
}

presto_status __real_presto_shard_writer_open(const char *path,
                                              const presto_shard_writer_options *options,
                                              presto_shard_writer **writer_out,
                                              presto_error *error);
presto_status __wrap_presto_shard_writer_open(const char *path,
                                              const presto_shard_writer_options *options,
                                              presto_shard_writer **writer_out,
                                              presto_error *error);
presto_status __wrap_presto_shard_writer_open(const char *path,
                                              const presto_shard_writer_options *options,
                                              presto_shard_writer **writer_out,
                                              presto_error *error) {
    bool is_first = strstr(path, "data-00000-of-") != NULL;
    pthread_mutex_lock(&gate_lock);
    while (gate_is_shut && is_first)
        pthread_cond_wait(&gate_opened, &gate_lock);
    pthread_mutex_unlock(&gate_lock);
    return __real_presto_shard_writer_open(path, options, writer_out, error);
}

/*
 * The samples kept for the first shard, which hangs, are bounded, and the other writer completes
 * its shards.
 */
START_TEST(a_writer_that_hangs_keeps_no_more_than_it_may) {
    dir = presto_check_temp_dir();
    static const uint8_t frame[1000];
    static const uint32_t frame_bytes[] = {sizeof frame};
    const presto__rows rows = {.frames = presto_span_of(frame, sizeof frame),
                               .frame_bytes = frame_bytes,
                               .count = 1,
                               .raw_bytes = 7};
    static const size_t limits[] = {0, 40000, (size_t)1 << 30};
    static const size_t least[] = {1, 10, 60}, most[] = {2, 12, 66};
    for (size_t l = 0; l < 3; l++) {
        presto_convert_options options = defaults(PRESTO_FILE_PLAIN, 9, 2);
        presto__conversion job = {
            .options = &options, .dir = dir, .prefetch_bytes = limits[l], .shard_count = 9};
        set_gate(true);
        presto__writers *writers;
        ck_assert_ok(presto__writers_new(&job, 2, true, &writers, &err), &err);
        for (size_t shard = 1; shard < 5; shard++) {
            presto__whole_shard whole;
            const presto__shard_range range = {.number = shard, .first = shard, .end = shard + 1};
            ck_assert_ok(presto__writers_append(writers, 1, shard, &rows, &err), &err);
            ck_assert_ok(presto__writers_finish(writers, 1, &range, &err), &err);
            while (!presto__writers_take(writers, &whole))
                ck_assert_int_ge(presto__writers_wait(writers, PRESTO__WANTS_END, &err), 0);
            ck_assert_uint_eq(whole.number, shard);
            ck_assert_uint_eq(whole.first, shard);
            ck_assert_uint_eq(whole.end, shard + 1);
            ck_assert_uint_eq(whole.described.records, 1);
            ck_assert_uint_eq(whole.described.raw_bytes, 7);
        }
        /* A thread that waits for the end is not woken for room: it sleeps. */
        size_t count = 1;
        ck_assert_ok(presto__writers_append(writers, 0, 0, &rows, &err), &err);
        uint64_t started_ns = presto__clock_ns();
        for (int i = 0; i < 3; i++)
            ck_assert_int_eq(presto__writers_wait(writers, PRESTO__WANTS_END, &err), PRESTO_OK);
        ck_assert_uint_ge(presto__clock_ns() - started_ns, 100000000);
        do { /* the writer may take one off when the queue is full already */
            for (; presto__writers_have_room(writers); count++)
                ck_assert_ok(presto__writers_append(writers, 0, 0, &rows, &err), &err);
            ck_assert_int_eq(presto__writers_wait(writers, PRESTO__WANTS_ROOM, &err),
                             PRESTO_OK); /* after a while */
        } while (presto__writers_have_room(writers));
        ck_assert_uint_ge(count, least[l]);
        ck_assert_uint_le(count, most[l]);
        set_gate(false);
        presto_status status;
        do
            status = presto__writers_wait(writers, PRESTO__WANTS_END, &err);
        while (status == PRESTO_OK);
        ck_assert_status(status, PRESTO_END, &err);
        ck_assert(presto__writers_have_room(writers));
        presto__writers_stop(writers);
        presto__whole_shard whole;
        ck_assert(!presto__writers_take(writers, &whole));
        presto__writers_free(writers);
        ck_assert_uint_eq(count_partial(dir), 0); /* given up */
    }
    presto_check_remove_tree(dir);
    free(dir);
}
END_TEST

/* Stops the job at its n-th call. */
static bool stop_at(void *user, const presto_progress *progress) {
    ck_assert_uint_eq(progress->samples_total, PHOTOS);
    ck_assert_uint_le(progress->samples_done, PHOTOS);
    return --*(int *)user > 0;
}

START_TEST(a_stopped_conversion_is_resumed) {
    set_up();
    presto_convert_options options = defaults(PRESTO_FILE_PLAIN, 10, 4);
    ck_assert_ok(convert("photos", "whole", &options), &err);
    uint32_t wanted = digest_folder("whole");
    options.resume = true;
    for (int calls = 1; calls < 4; calls++) {
        int left = calls;
        options.on_progress = stop_at;
        options.on_progress_user = &left;
        presto_status status = convert("photos", "out", &options);
        if (status < 0)
            ck_assert_status(status, PRESTO_ERR_STOPPED, &err);
        options.on_progress = NULL;
        ck_assert_ok(convert("photos", "out", &options), &err);
        ck_assert_uint_eq(digest_folder("out"), wanted);
        presto_check_remove_tree(at("out"));
    }
    tear_down();
}
END_TEST

int main(void) {
    const TTest *const tests[] = {
        shards_are_the_same_for_any_number_of_threads,
        a_dataset_of_compressed_files_is_recoded,
        the_first_failure_in_the_order_of_the_samples_is_reported,
        a_first_shard_that_fails_last_is_reported,
        only_what_is_missing_is_made_again,
        samples_left_out_are_told_in_order,
        samples_left_out_are_counted_over_any_shards_that_stay,
        too_many_samples_left_out_keep_the_shards_before,
        a_shard_that_cannot_be_written_stops_all_and_the_others_stay,
        a_writer_that_hangs_keeps_no_more_than_it_may,
        a_stopped_conversion_is_resumed,
    };
    return presto_check_main("writers", tests, sizeof tests / sizeof tests[0], 240);
}
