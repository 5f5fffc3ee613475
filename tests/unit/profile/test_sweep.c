/* SPDX-License-Identifier: Apache-2.0 */
/* Whole sweeps over a small corpus; everything below is real. */
#define _XOPEN_SOURCE 700
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../../steps/pipelines_internal.h"
#include "made_sweep.h"

enum { PHOTOS = 20 };

/* A folder with photos/ and an empty work/; to be freed with done(). */
typedef struct place {
    char *dir;
    char photos[600], work[600], out[600];
} place;

static place make_place(int photos) {
    place at = {.dir = presto_check_temp_dir()};
    snprintf(at.photos, sizeof at.photos, "%s/photos", at.dir);
    snprintf(at.work, sizeof at.work, "%s/work", at.dir);
    snprintf(at.out, sizeof at.out, "%s/out", at.dir);
    char command[2048];
    snprintf(command, sizeof command,
             "'%s' -n %d -c 4 --width 120 --height 90 -j 1 -o '%s' >'%s.log' 2>&1",
             PRESTO_CORPUS_PROGRAM, photos, at.photos, at.photos);
    ck_assert_msg(system(command) == 0, "cannot run %s", command);
    return at;
}

static void done(place *at) {
    presto_check_remove_tree(at->dir);
    free(at->dir);
}

static size_t count_entries(const char *path) {
    DIR *dir = opendir(path);
    ck_assert_msg(dir != NULL, "cannot open %s", path);
    size_t count = 0;
    while (readdir(dir) != NULL)
        count++;
    closedir(dir);
    return count - 2;
}

static presto_pipeline *small_pipeline(void) {
    static const char yaml[] = "name: small\n"
                               "source: {type: files, match: ['*.jpg'], label: parent-folder}\n"
                               "steps:\n"
                               "  - {step: read-file, yields: concatenated}\n"
                               "  - {step: decode-image, yields: decoded, channels: 3}\n"
                               "  - {step: resize-image, yields: resized, min-side: 64}\n"
                               "  - {step: center-pixels, yields: pixel-centered}\n"
                               "  - {step: random-crop, height: 48, width: 48}\n";
    presto_pipeline *pipeline = NULL;
    presto_error err;
    ck_assert_ok(presto__pipeline_parse(presto_span_of_text(yaml), "small", NULL, &pipeline, &err),
                 &err);
    return pipeline;
}

static const char *const three_splits[] = {"unprocessed", "concatenated", "decoded"};
static const char *const two_codecs[] = {"none", "zlib:1"};
static const unsigned two_threads[] = {1, 2};

/* 1 + 2 * 2 strategies on one thread: what most tests need. */
static presto_sweep_options small_options(const place *at) {
    presto_sweep_options options;
    presto_sweep_options_defaults(&options);
    ck_assert_int_eq(options.mode, PRESTO_SWEEP_PREDICT); /* as in the program */
    options.mode = PRESTO_SWEEP_MEASURE;
    options.stored = three_splits;
    options.stored_count = 3;
    options.codecs = two_codecs;
    options.codec_count = 2;
    options.threads = two_threads;
    options.thread_count = 1;
    options.runs = 2;
    options.run_s = 0.02;
    options.batch_samples = 8;
    options.decide_s = 0;
    options.work_dir = at->work;
    return options;
}

static const presto_strategy_result *find(const presto_sweep *sweep, const char *split,
                                          const char *codec, unsigned threads) {
    for (size_t i = 0; i < presto_sweep_result_count(sweep); i++) {
        const presto_strategy_result *result = presto_sweep_result(sweep, i);
        if (strcmp(result->strategy.stored, split) == 0 && result->strategy.threads == threads &&
            (codec == NULL || strcmp(result->strategy.codec, codec) == 0))
            return result;
    }
    ck_abort_msg("no strategy %s %s", split, codec != NULL ? codec : "");
    return NULL;
}

static presto_sweep *run(const place *at, const presto_sweep_options *options) {
    presto_pipeline *pipeline = small_pipeline();
    const char *paths[] = {at->photos};
    presto_sweep *sweep = NULL;
    presto_error err;
    presto_sweep_options with = *options;
    with.pipeline = pipeline;
    ck_assert_ok(presto_sweep_run(paths, 1, &with, &sweep, &err), &err);
    presto_pipeline_free(pipeline);
    return sweep;
}

static void check_epochs(const presto_epoch_result *epochs, uint64_t delivered_bytes) {
    ck_assert_double_gt(epochs->samples_per_s.least, 0);
    ck_assert_double_le(epochs->samples_per_s.least, epochs->samples_per_s.median);
    ck_assert_double_le(epochs->samples_per_s.median, epochs->samples_per_s.most);
    ck_assert_double_gt(epochs->cpu_s_per_sample, 0);
    ck_assert_double_gt(epochs->peak_rss_bytes, 0);
    /* The volume of a sample does not depend on the time. */
    double bytes_a_sample = epochs->delivered_bytes_per_s.most / epochs->samples_per_s.most;
    ck_assert_double_ge(bytes_a_sample, (double)delivered_bytes);
    ck_assert_double_le(bytes_a_sample, (double)delivered_bytes + 200);
}

START_TEST(a_sweep_measures_every_strategy_and_its_figures_agree) {
    place at = make_place(PHOTOS);
    presto_sweep_options options = small_options(&at);
    options.stored_count = 0;
    options.thread_count = 2;
    presto_sweep *sweep = run(&at, &options);
    ck_assert_uint_eq(presto_sweep_result_count(sweep), UINT64_C(2) * (1 + 4 * 2));
    const presto_sweep_facts *facts = presto_sweep_get_facts(sweep);
    ck_assert_uint_eq(facts->samples, PHOTOS);
    ck_assert_uint_eq(facts->source_samples, PHOTOS);
    ck_assert_uint_eq(facts->sample_bytes, facts->source_bytes);
    for (size_t i = 0; i < presto_sweep_result_count(sweep); i++) {
        const presto_strategy_result *result = presto_sweep_result(sweep, i);
        ck_assert_msg(!result->failed, "%s: %s", result->strategy.stored, result->failure.message);
        ck_assert_uint_eq(result->samples, PHOTOS);
        check_epochs(&result->cold, UINT64_C(48) * 48 * 3 * 4);
        check_epochs(&result->cached, UINT64_C(48) * 48 * 3 * 4);
        ck_assert_double_eq_tol(result->total_stored_bytes, (double)result->stored_bytes, 1e-3);
        ck_assert_double_eq(result->total_stored_error_bytes, 0);
        bool stores = result->strategy.codec != NULL;
        ck_assert(stores == (result->preparation_s.median > 0));
        ck_assert(result->score >= 0 && result->score <= 1);
    }
    /* A decoded photo is 120 x 90 x 3 bytes and a little for the Example, a resized one 85 x 64
     * x 3. */
    const presto_strategy_result *decoded = find(sweep, "decoded", "none", 2);
    ck_assert_uint_gt(decoded->stored_bytes, (uint64_t)PHOTOS * (120 * 90 * 3 + 16));
    ck_assert_uint_lt(decoded->stored_bytes, (uint64_t)PHOTOS * (120 * 90 * 3 + 16 + 200));
    ck_assert_uint_eq(decoded->stored_bytes, decoded->raw_bytes + (uint64_t)PHOTOS * 16);
    const presto_strategy_result *centered = find(sweep, "pixel-centered", "none", 1);
    ck_assert_uint_gt(centered->raw_bytes, (uint64_t)PHOTOS * 85 * 64 * 3 * 4);
    ck_assert_uint_eq(find(sweep, "decoded", "none", 1)->stored_bytes, decoded->stored_bytes);
    ck_assert_uint_lt(find(sweep, "decoded", "zlib:1", 1)->stored_bytes, decoded->stored_bytes);
    ck_assert_uint_eq(find(sweep, "unprocessed", NULL, 1)->stored_bytes, facts->source_bytes);
    ck_assert_uint_eq(count_entries(at.work), 0);
    presto_sweep_free(sweep);
    done(&at);
}
END_TEST

START_TEST(a_sample_is_spread_over_the_source_and_extrapolated) {
    place at = make_place(40);
    presto_sweep_options options = small_options(&at);
    options.samples = 8;
    options.runs = options.preparation_runs = 2;
    presto_sweep *sweep = run(&at, &options);
    options.samples = 0;
    presto_sweep *whole = run(&at, &options);
    const presto_sweep_facts *facts = presto_sweep_get_facts(sweep);
    ck_assert_uint_eq(facts->samples, 8);
    ck_assert_uint_eq(facts->source_samples, 40);
    ck_assert_uint_gt(facts->sample_bytes, 0);
    ck_assert_uint_lt(facts->sample_bytes, facts->source_bytes);
    ck_assert_ptr_nonnull(strstr(presto_sweep_note(sweep, 0), "an even selection of 8 of 40"));
    const presto_strategy_result *part = find(sweep, "concatenated", "none", 1);
    const presto_strategy_result *all = find(whole, "concatenated", "none", 1);
    ck_assert_double_eq_tol(part->total_stored_bytes, 5 * (double)part->stored_bytes, 1);
    ck_assert_double_gt(part->total_stored_error_bytes, 0);
    /* Twice the interval, so that the test never fails by chance. */
    ck_assert_double_le(fabs(part->total_stored_bytes - (double)all->stored_bytes),
                        2 * part->total_stored_error_bytes);
    ck_assert_double_gt(part->total_preparation_s, part->preparation_s.median);
    presto_sweep_free(sweep);
    presto_sweep_free(whole);
    done(&at);
}
END_TEST

START_TEST(labels_from_a_csv_file_make_it_the_first_samples) {
    place at = make_place(8);
    char csv[700];
    snprintf(csv, sizeof csv, "%s/labels.csv", at.dir);
    char command[2048];
    snprintf(command, sizeof command,
             "cd '%s' && find . -name '*.jpg' | sed 's|^./||; s|$|,1|' >'%s'", at.photos, csv);
    ck_assert_int_eq(system(command), 0);
    char yaml[2048];
    snprintf(yaml, sizeof yaml,
             "name: labelled\nsource: {type: files, match: ['*.jpg'], label: 'csv:%s'}\n"
             "steps:\n  - {step: read-file, yields: concatenated}\n",
             csv);
    presto_pipeline *pipeline = NULL;
    presto_error err;
    ck_assert_ok(presto__pipeline_parse(presto_span_of_text(yaml), "x", NULL, &pipeline, &err),
                 &err);
    const char *paths[] = {at.photos};
    presto_sweep_options options = small_options(&at);
    options.samples = 3;
    options.stored_count = 2;
    presto_sweep *sweep = NULL;
    options.pipeline = pipeline;
    ck_assert_ok(presto_sweep_run(paths, 1, &options, &sweep, &err), &err);
    ck_assert_ptr_nonnull(strstr(presto_sweep_note(sweep, 0), "the first 3 of 8"));
    ck_assert_uint_eq(presto_sweep_get_facts(sweep)->samples, 3);
    presto_sweep_free(sweep);
    presto_pipeline_free(pipeline);
    done(&at);
}
END_TEST

/* What on_trial saw. */
typedef struct trial_log {
    size_t finished, failed, last_done, total;
    size_t stop_at;          /* says stop during this trial, counted from 1; 0: never */
    size_t stops;            /* how often it said so */
    const char *break_split; /* whose conversion must fail */
    const char *work;
    bool is_broken;
} trial_log;

/* Takes the right to write away from the fresh work folder while one split is converted. */
static void set_broken(trial_log *seen, bool broken) {
    char command[1024];
    snprintf(command, sizeof command, "for d in '%s'/presto-sweep-*; do %s; done", seen->work,
             broken ? "mv \"$d\" \"$d.away\" && : >\"$d\""
                    : "case $d in *.away) ;; *) rm \"$d\" && mv \"$d.away\" \"$d\";; esac");
    ck_assert_int_eq(system(command), 0);
    seen->is_broken = broken;
}

static bool watch(void *user, const presto_strategy *strategy, size_t done_count, size_t total,
                  const presto_strategy_result *result) {
    trial_log *seen = user;
    ck_assert_uint_ge(done_count, seen->last_done);
    ck_assert_uint_le(done_count, total);
    seen->last_done = done_count;
    seen->total = total;
    seen->finished += result != NULL;
    seen->failed += result != NULL && result->failed;
    if (seen->break_split != NULL) {
        bool wanted = result == NULL && strcmp(strategy->stored, seen->break_split) == 0;
        if (wanted != seen->is_broken)
            set_broken(seen, wanted);
    }
    bool stops = seen->stop_at > 0 && done_count + 1 >= seen->stop_at;
    seen->stops += stops;
    return !stops;
}

START_TEST(a_strategy_that_fails_is_reported_and_the_others_go_on) {
    place at = make_place(PHOTOS);
    presto_sweep_options options = small_options(&at);
    trial_log seen = {.break_split = "decoded", .work = at.work};
    options.on_trial = watch;
    options.on_trial_user = &seen;
    presto_sweep *sweep = run(&at, &options);
    ck_assert_uint_eq(seen.finished, 5);
    ck_assert_uint_eq(seen.failed, 2);
    ck_assert_uint_eq(seen.last_done, seen.total);
    for (size_t i = 0; i < presto_sweep_result_count(sweep); i++) {
        const presto_strategy_result *result = presto_sweep_result(sweep, i);
        ck_assert(result->failed == (strcmp(result->strategy.stored, "decoded") == 0));
        ck_assert(result->failed == isnan(result->score));
    }
    ck_assert_str_ne(find(sweep, "decoded", "none", 1)->failure.message, "");
    ck_assert(!presto_sweep_result(sweep, presto_sweep_best(sweep))->failed);
    presto_error err;
    ck_assert_ok(presto_sweep_write(sweep, at.out, &err), &err);
    ck_assert_uint_eq(count_entries(at.out), presto__report_is_built() ? 4 : 3);
    ck_assert_uint_eq(count_entries(at.work), 0);
    presto_sweep_free(sweep);
    done(&at);
}
END_TEST

/* What was measured before the stop counts; the rest says why it does not. */
static void check_stopped(const presto_sweep *sweep) {
    size_t measured = 0;
    for (size_t i = 0; i < presto_sweep_result_count(sweep); i++) {
        const presto_strategy_result *result = presto_sweep_result(sweep, i);
        measured += !result->failed;
        if (result->failed)
            ck_assert_int_eq(result->failure.status, PRESTO_ERR_STOPPED);
        else
            ck_assert_double_gt(result->cold.samples_per_s.median, 0);
    }
    ck_assert_uint_gt(measured, 0);
    ck_assert(!presto_sweep_result(sweep, presto_sweep_best(sweep))->failed);
}

START_TEST(a_sweep_that_is_stopped_leaves_no_trials_and_keeps_what_it_measured) {
    place at = make_place(8);
    presto_pipeline *pipeline = small_pipeline();
    const char *paths[] = {at.photos};
    /* 4 conversions, then 2 runs of 5 strategies. */
    for (size_t stop_at = 1; stop_at <= 13; stop_at += 2) {
        presto_sweep_options options = small_options(&at);
        trial_log seen = {.stop_at = stop_at};
        options.on_trial = watch;
        options.on_trial_user = &seen;
        presto_sweep *sweep = NULL;
        presto_error err;
        options.pipeline = pipeline;
        ck_assert_status(presto_sweep_run(paths, 1, &options, &sweep, &err), PRESTO_ERR_STOPPED,
                         &err);
        ck_assert((sweep != NULL) == (stop_at > 5));
        ck_assert_uint_eq(seen.last_done, stop_at - 1);
        ck_assert_uint_eq(seen.stops, 1);
        if (sweep != NULL)
            check_stopped(sweep);
        ck_assert_uint_eq(count_entries(at.work), 0);
        presto_sweep_free(sweep);
    }
    presto_pipeline_free(pipeline);
    done(&at);
}
END_TEST

START_TEST(a_photo_that_cannot_be_decoded_ends_the_sweep_by_its_name) {
    place at = make_place(8);
    char bad[700];
    snprintf(bad, sizeof bad, "%s/bad.jpg", at.photos);
    presto_check_write_file(bad, presto_span_of_text("this is text"));
    presto_pipeline *pipeline = small_pipeline();
    const char *paths[] = {at.photos};
    presto_sweep_options options = small_options(&at);
    presto_sweep *sweep = NULL;
    presto_error err;
    options.pipeline = pipeline;
    presto_status status = presto_sweep_run(paths, 1, &options, &sweep, &err);
    ck_assert_int_lt(status, 0);
    char text[2048];
    presto_error_format(&err, text, sizeof text);
    ck_assert_msg(strstr(text, "bad.jpg") != NULL, "%s", text);
    ck_assert_uint_eq(count_entries(at.work), 0);
    presto_pipeline_free(pipeline);
    done(&at);
}
END_TEST

START_TEST(samples_of_different_shapes_are_measured_in_batches) {
    place at = make_place(8);
    char command[2048];
    snprintf(command, sizeof command,
             "'%s' -n 4 -c 2 --width 90 --height 120 -j 1 -o '%s-tall' >'%s.log' 2>&1",
             PRESTO_CORPUS_PROGRAM, at.photos, at.photos);
    ck_assert_int_eq(system(command), 0);
    char tall[700];
    snprintf(tall, sizeof tall, "%s-tall", at.photos);
    static const char yaml[] = "name: ragged\n"
                               "source: {type: files, match: ['*.jpg']}\n"
                               "steps:\n"
                               "  - {step: read-file, yields: concatenated}\n"
                               "  - {step: decode-image, yields: decoded, channels: 3}\n";
    presto_pipeline *pipeline = NULL;
    presto_error err;
    ck_assert_ok(presto__pipeline_parse(presto_span_of_text(yaml), "x", NULL, &pipeline, &err),
                 &err);
    const char *paths[] = {at.photos, tall};
    presto_sweep_options options = small_options(&at);
    options.batch_samples = 5; /* eight wide ones and four tall ones: the second batch is mixed */
    presto_sweep *sweep = NULL;
    options.pipeline = pipeline;
    ck_assert_ok(presto_sweep_run(paths, 2, &options, &sweep, &err), &err);
    ck_assert_uint_eq(presto_sweep_get_facts(sweep)->batch_samples, 5);
    ck_assert_uint_eq(presto_sweep_result_count(sweep), 1 + 2 * 2);
    for (size_t i = 0; i < presto_sweep_result_count(sweep); i++)
        ck_assert(!presto_sweep_result(sweep, i)->failed);
    presto_sweep_free(sweep);
    presto_pipeline_free(pipeline);
    done(&at);
}
END_TEST

START_TEST(a_small_disk_budget_changes_the_order_and_not_the_figures) {
    place at = make_place(8);
    presto_sweep_options options = small_options(&at);
    options.work_bytes = 1;
    presto_sweep *sweep = run(&at, &options);
    options.work_bytes = UINT64_MAX;
    presto_sweep *roomy = run(&at, &options);
    for (size_t i = 0; i < presto_sweep_result_count(sweep); i++)
        ck_assert_uint_eq(presto_sweep_result(sweep, i)->stored_bytes,
                          presto_sweep_result(roomy, i)->stored_bytes);
    presto_sweep_free(sweep);
    presto_sweep_free(roomy);
    done(&at);
}
END_TEST

START_TEST(a_run_repeats_its_epochs_until_they_last_or_are_as_many_as_may_be) {
    place at = make_place(4);
    const char *const split[] = {"unprocessed", "resized"};
    static const struct {
        double run_s;
        uint64_t cold, cached;
    } cases[] = {{0, 1, 1}, {3600, 3, 2000}};
    for (size_t c = 0; c < 2; c++) {
        presto_sweep_options options = small_options(&at);
        options.stored = split;
        options.stored_count = 2;
        options.codec_count = 1;
        options.run_s = cases[c].run_s;
        options.cold_epochs = 3;
        presto_sweep *sweep = run(&at, &options);
        for (size_t i = 0; i < sweep->trial_count; i++) {
            const presto__trial *trial = &sweep->trials[i];
            ck_assert_uint_eq(trial->cold_count, 2);
            for (size_t r = 0; r < 2; r++) {
                ck_assert_uint_eq(trial->cold[r].epochs, cases[c].cold);
                ck_assert_uint_eq(trial->cold[r].samples, 4 * cases[c].cold);
                ck_assert_uint_eq(trial->cached[r].epochs, cases[c].cached);
                ck_assert_uint_eq(trial->cached[r].samples, 4 * cases[c].cached);
            }
        }
        presto_sweep_free(sweep);
    }
    presto_sweep_options options = small_options(&at);
    options.stored_count = options.codec_count = 1;
    options.run_s = 0.05;
    options.cold_epochs = 1000;
    presto_sweep *sweep = run(&at, &options);
    const presto__epochs *cold = &sweep->trials[0].cold[0];
    double epoch_s = cold->measure.wall_s / (double)cold->epochs;
    ck_assert(cold->epochs == 1000 || cold->measure.wall_s + epoch_s / 2 >= 0.05);
    presto_sweep_free(sweep);
    done(&at);
}
END_TEST

START_TEST(options_that_make_no_sense_are_refused_before_anything_is_made) {
    place at = make_place(1);
    presto_pipeline *pipeline = small_pipeline();
    const char *paths[] = {at.photos};
    for (int i = 0; i < 11; i++) {
        presto_sweep_options options = small_options(&at);
        options.work_dir = i == 0 ? NULL : at.work;
        options.runs = i == 1 ? 0 : i == 2 ? 1001 : 2;
        options.preparation_runs = i == 3 ? 3 : 1;
        options.batch_samples = i == 4 ? 0 : 8;
        options.weights.throughput = i == 5 ? 0 : 1;
        options.run_s = i == 6 ? -0.1 : i == 7 ? 3601 : i == 8 ? NAN : 0;
        options.cold_epochs = i == 9 ? 0 : i == 10 ? 1001 : 1;
        presto_sweep *sweep = NULL;
        presto_error err;
        options.pipeline = pipeline;
        ck_assert_status(presto_sweep_run(paths, 1, &options, &sweep, &err), PRESTO_ERR_ARGUMENT,
                         &err);
    }
    ck_assert_int_ne(access(at.work, F_OK), 0);
    presto_pipeline_free(pipeline);
    done(&at);
}
END_TEST

int main(void) {
    const TTest *const tests[] = {
        a_sweep_measures_every_strategy_and_its_figures_agree,
        a_sample_is_spread_over_the_source_and_extrapolated,
        labels_from_a_csv_file_make_it_the_first_samples,
        a_strategy_that_fails_is_reported_and_the_others_go_on,
        a_sweep_that_is_stopped_leaves_no_trials_and_keeps_what_it_measured,
        a_photo_that_cannot_be_decoded_ends_the_sweep_by_its_name,
        samples_of_different_shapes_are_measured_in_batches,
        a_small_disk_budget_changes_the_order_and_not_the_figures,
        a_run_repeats_its_epochs_until_they_last_or_are_as_many_as_may_be,
        options_that_make_no_sense_are_refused_before_anything_is_made,
    };
    return presto_check_main("profile/sweep", tests, sizeof tests / sizeof *tests, 240);
}
