/* SPDX-License-Identifier: Apache-2.0 */
/* The source `tfrecord`: the features that were asked for, the label, lists of any length, and what
 * is said where it is not known what the steps work on. */
#define _XOPEN_SOURCE 700
#include "../../../loader/loader_internal.h"
#include "source/core/source_internal.h"

#include "tfrecord_check.h"

/* ---- features ---- */

/* The names of the features of a batch, with spaces. */
static const char *names_of(const char *const *asked, size_t count) {
    static char names[200];
    presto_loader_options options = defaults(1, 4);
    options.features = asked;
    options.feature_count = count;
    presto_loader *loader;
    presto_batch *batch;
    names[0] = '\0';
    ck_assert_ok(presto__loader_open(source, NULL, &options, &loader, &err), &err);
    ck_assert_ok(presto_loader_next(loader, &batch, &err), &err);
    for (size_t i = 0; i < batch->feature_count; i++)
        snprintf(names + strlen(names), sizeof names - strlen(names), " %s",
                 batch->features[i].name);
    presto_batch_release(batch);
    presto_loader_free(loader);
    return names;
}

START_TEST(the_features_asked_for_come_along) {
    static const struct {
        const char *options, *names;
    } cases[] = {
        {"feature: x", " key label x"},
        {"feature: x, features: [label]", " label x"},
        {"feature: x, label: label, features: [x]", " label x"},
        {"feature: x, features: [key]", " key x"},
        {"feature: x, label: key", " label x"}, /* in place of the label of the record */
        {"feature: key, label: label", " key label x"},
        {"feature: x, label: key, features: [x]", " label x"},
    };
    static const char *const label[] = {"label"};
    for (int is_ours = 0; is_ours < 2; is_ours++) {
        set_up(&plain, is_ours);
        for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
            ck_assert_ok(open_as(cases[i].options), &err);
            const char *wanted = cases[i].names;
            if (is_ours && i == 3)
                wanted = " key label x"; /* a dataset's label stays */
            ck_assert_msg(strcmp(names_of(NULL, 0), wanted) == 0, "%s: %s", cases[i].options,
                          names_of(NULL, 0));
            if (strstr(wanted, "label") != NULL)
                ck_assert_str_eq(names_of(label, 1), " label");
            close_all();
        }
        tear_down();
    }
}
END_TEST

START_TEST(another_feature_becomes_the_label) {
    set_up(&plain, false);
    ck_assert_ok(open_as("feature: x, label: key"), &err);
    presto_loader_options options = defaults(2, 10);
    presto_loader *loader;
    presto_batch *batch;
    uint64_t rows = 0;
    ck_assert_ok(presto__loader_open(source, NULL, &options, &loader, &err), &err);
    while (presto_loader_next(loader, &batch, &err) == PRESTO_OK) {
        for (size_t i = 0; i < batch->rows; i++, rows++) {
            char wanted[32];
            snprintf(wanted, sizeof wanted, "sample-%" PRIu64, batch->sample_numbers[i]);
            ck_assert(presto_span_is(presto_batch_string(feature_of(batch, "label"), i), wanted));
        }
        presto_batch_release(batch);
    }
    ck_assert_uint_eq(rows, SAMPLES);
    presto_loader_free(loader);
    tear_down();
}
END_TEST

START_TEST(what_is_not_known_is_asked_for) {
    static const struct {
        const char *options, *said;
    } cases[] = {
        {"", "Give --feature NAME"},
        {"label: label", "Give --feature NAME"},
        {"feature: y", "there is no feature 'y' for the steps to work on; the records have: "},
        {"feature: x, label: lable", "there is no feature 'lable' for the label"},
        {"feature: x, codec: what", "the source's option 'codec'"},
    };
    set_up(&plain, false);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        presto_status status = open_as(cases[i].options);
        ck_assert_msg(status < 0, "%s is taken", cases[i].options);
        ck_assert_msg(strstr(err.message, cases[i].said) != NULL, "%s", err.message);
        if (i < 2) {
            ck_assert_int_eq(status, PRESTO_ERR_ARGUMENT);
            ck_assert_ptr_nonnull(strstr(err.message, "key"));
            ck_assert_ptr_nonnull(strstr(err.message, "label"));
        }
        close_all();
    }
    ck_assert_ok(open_as("feature: x, features: [kye]"), &err);
    size_t notes;
    const char *const *texts = presto_source_notes(source, &notes);
    ck_assert_uint_eq(notes, 1);
    ck_assert_str_eq(texts[0], "no feature 'kye' in the first 64 records");
    tear_down();
}
END_TEST

/* ---- lists of any length ---- */

/* Record i has i % 3 boxes; with none, the list is empty, or not there if `i` is even. */
static void write_boxes(const char *path, size_t count) {
    presto__shard_writer_options options;
    presto__shard_writer_options_defaults(&options);
    options.sync = false;
    presto__shard_writer *writer;
    ck_assert_ok(presto__shard_writer_open(path, &options, &writer, &err), &err);
    for (size_t i = 0; i < count; i++) {
        float boxes[2] = {(float)i, (float)i + 0.5F};
        presto_span bytes = presto_span_of(&i, sizeof i);
        presto_feature features[2] = {
            {.name = presto_span_of_text("bytes"), .encoding = PRESTO_ENCODE_BYTES},
            {.name = presto_span_of_text("xmin"), .encoding = PRESTO_ENCODE_FLOAT},
        };
        features[0].tensor = (presto_tensor){.spec = {.dtype = PRESTO_STRING}, .strings = &bytes};
        features[1].tensor = (presto_tensor){
            .spec = {.dtype = PRESTO_FLOAT32, .rank = 1, .dims = {(int64_t)(i % 3)}},
            .data = boxes};
        presto_sample sample = {.features = features, .feature_count = 2 - (i % 6 == 0)};
        presto_buffer raw = {0};
        ck_assert_ok(presto_example_append(&raw, &sample, &err), &err);
        ck_assert_ok(presto__shard_writer_append(writer, presto_buffer_span(&raw), &err), &err);
        presto_buffer_done(&raw);
    }
    ck_assert_ok(presto__shard_writer_finish(writer, NULL, &err), &err);
    presto__shard_writer_free(writer);
}

START_TEST(lists_that_a_record_lacks_are_empty) {
    char path[700];
    dir = presto_check_temp_dir();
    snprintf(path, sizeof path, "%s/boxes.tfrecord", dir);
    write_boxes(path, 60);
    ck_assert_ok(open_as("feature: bytes"), &err);
    presto_loader_options options = defaults(2, 10);
    presto_loader *loader;
    presto_batch *batch;
    uint64_t rows = 0;
    ck_assert_ok(presto__loader_open(source, NULL, &options, &loader, &err), &err);
    while (presto_loader_next(loader, &batch, &err) == PRESTO_OK) {
        const presto_batch_feature *boxes = feature_of(batch, "xmin");
        ck_assert_int_eq(boxes->layout, PRESTO_LAYOUT_RAGGED);
        for (size_t i = 0; i < batch->rows; i++, rows++) {
            int64_t count = boxes->offsets[i + 1] - boxes->offsets[i];
            ck_assert_int_eq(count, (int64_t)(batch->sample_numbers[i] % 3));
            for (int64_t k = 0; k < count; k++) {
                float value;
                memcpy(&value, (const float *)boxes->tensor.data + boxes->offsets[i] + k,
                       sizeof value);
                ck_assert(value == (float)batch->sample_numbers[i] + 0.5F * (float)k);
            }
        }
        presto_batch_release(batch);
    }
    ck_assert_uint_eq(rows, 60);
    presto_loader_free(loader);
    tear_down();
}
END_TEST

/* ---- damage ---- */

START_TEST(a_record_without_the_label_fails_alone) {
    char path[700];
    dir = presto_check_temp_dir();
    snprintf(path, sizeof path, "%s/boxes.tfrecord", dir);
    write_boxes(path, 60);
    ck_assert_ok(open_as("feature: bytes, label: xmin"), &err);
    skips noted;
    presto_loader_options options = defaults(2, 1);
    skip_and_note(&options, UINT64_MAX, &noted);
    uint64_t samples;
    digest_stream(source, NULL, &options, &samples, PRESTO_END, &err);
    ck_assert_uint_eq(noted.count, 10); /* every sixth record has no such feature */
    ck_assert_uint_eq(samples, 50);
    ck_assert_ptr_nonnull(strstr(noted.last.message, "\"xmin\", which the label is to be"));
    ck_assert_str_eq(noted.last.file, path);
    ck_assert_uint_eq(noted.last.record, 54);
    tear_down();
}
END_TEST

int main(void) {
    const TTest *const tests[] = {
        the_features_asked_for_come_along,      another_feature_becomes_the_label,
        what_is_not_known_is_asked_for,         lists_that_a_record_lacks_are_empty,
        a_record_without_the_label_fails_alone,
    };
    return presto_check_main("source_tfrecord_features", tests, sizeof tests / sizeof tests[0],
                             120);
}
