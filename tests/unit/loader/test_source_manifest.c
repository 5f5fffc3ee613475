/* SPDX-License-Identifier: Apache-2.0 */
/* Manifests: what becomes a column, which rows become samples, what is told and refused. */
#include <sys/stat.h>
#include <unistd.h>

#include "folder_check.h"
#include "loader_check.h"

#include "source/manifest_internal.h"

static char *dir;
static presto_source *source;
static presto_pipeline *pipeline;
static presto_plan *plan;
static presto_error err;

static void set_up(void) {
    static const char *const files[] = {"a.jpg", "b.jpg", "sub/c.jpg", "sub/d.jpg", "e, \"f\".jpg"};
    dir = presto_check_temp_dir();
    mkdir(path_in(dir, "sub"), 0777);
    for (size_t i = 0; i < 5; i++)
        presto_check_write_file(path_in(dir, files[i]), presto_span_of_text(files[i]));
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

static presto_status open_text(const char *name, const char *text, const char *options) {
    char yaml[1200];
    const char *path = path_in(dir, name);
    presto_check_write_file(path, presto_span_of_text(text));
    snprintf(yaml, sizeof yaml,
             "{name: p, source: {type: manifest%s}, steps: [{step: read-file, yields: c}]}",
             options);
    ck_assert_ok(presto_pipeline_parse(presto_span_of_text(yaml), "p", NULL, &pipeline, &err),
                 &err);
    ck_assert_ok(presto_plan_new(pipeline, NULL, &plan, &err), &err);
    return presto_source_open_raw(pipeline, &path, 1, &source, &err);
}

static size_t put_value(const presto_batch_feature *feature, size_t row, char *text, size_t room) {
    if (feature->tensor.spec.dtype == PRESTO_INT64)
        return (size_t)snprintf(text, room, "%s=%lld", feature->name,
                                (long long)((const int64_t *)feature->tensor.data)[row]);
    if (feature->tensor.spec.dtype == PRESTO_FLOAT32)
        return (size_t)snprintf(text, room, "%s=%gf", feature->name,
                                (double)((const float *)feature->tensor.data)[row]);
    presto_span value = presto_batch_string(feature, row);
    return (size_t)snprintf(text, room, "%s=%.*s", feature->name, (int)value.bytes,
                            (const char *)value.data);
}

/* "key=... label=... | ..." of all samples, features sorted by name. */
static void check_samples(const char *wanted) {
    char text[4000] = "";
    size_t used = 0;
    presto_loader_options options;
    presto_loader *loader;
    presto_batch *batch;
    presto_loader_options_defaults(&options);
    options.batch_samples = 3;
    ck_assert_ok(presto_loader_open(source, plan, &options, &loader, &err), &err);
    while (presto_loader_next(loader, &batch, &err) == PRESTO_OK) {
        for (size_t row = 0; row < batch->rows; row++) {
            used += (size_t)snprintf(text + used, sizeof text - used, "%s", used == 0 ? "" : " | ");
            for (size_t i = 0; i < batch->feature_count; i++) {
                used += (size_t)snprintf(text + used, sizeof text - used, "%s", i == 0 ? "" : " ");
                used += put_value(&batch->features[i], row, text + used, sizeof text - used);
            }
        }
        presto_batch_release(batch);
    }
    presto_loader_free(loader);
    ck_assert_str_eq(text, wanted);
}

static void check_opened(const char *name, const char *text, const char *options,
                         const char *wanted) {
    ck_assert_ok(open_text(name, text, options), &err);
    check_samples(wanted);
    close_source();
}

START_TEST(columns_become_features_and_numbers_stay_numbers) {
    static const char wanted[] = "age=3 image=b.jpg key=b.jpg label=1 note=x, y score=0.5f | "
                                 "age=-4 image=a.jpg key=a.jpg label=0 note= score=2f";
    set_up();
    check_opened("m.csv",
                 "path,age,score,note,label\nb.jpg,3,.5,\"x, y\",dog\n./a.jpg,-4,2e0,,cat\n", "",
                 wanted);
    check_opened("m.tsv",
                 "path\tage\tscore\tnote\tlabel\r\nb.jpg\t3\t.5\tx, y\tdog\r\n"
                 "a.jpg\t-4\t2e0\t\tcat\r\n",
                 "", wanted);
    check_opened("m.jsonl",
                 "{\"path\": \"b.jpg\", \"age\": 3, \"score\": 0.5, \"note\": \"x, y\", \"label\": "
                 "\"dog\"}\n\n{\"label\": \"cat\", \"path\": \"a.jpg\", \"age\": -4, \"score\": 2, "
                 "\"note\": null, \"more\": 1}\n",
                 "", wanted);
    tear_down();
}
END_TEST

START_TEST(json_texts_stay_texts_and_truth_values_become_numbers) {
    set_up();
    check_opened("m.jsonl",
                 "{\"file\": \"a.jpg\", \"zip\": \"01234\", \"ok\": true, \"box\": [1, 2]}", "",
                 "box=[1,2] image=a.jpg key=a.jpg ok=1 zip=01234");
    check_opened("m.csv", "file,zip\na.jpg,01234\n", "", "image=a.jpg key=a.jpg zip=1234");
    tear_down();
}
END_TEST

START_TEST(options_choose_columns_rows_label_and_root) {
    static const char text[] =
        "id,where,class,split\n1,c.jpg,x,train\n2,d.jpg,y,val\n3,c.jpg,z,val\n";
    char options[900];
    set_up();
    snprintf(options, sizeof options,
             ", path: where, label: class, columns: [id], where: ['split=val'], root: %s/sub", dir);
    /* The same class has the same number, whichever rows are chosen. */
    check_opened("m.csv", text, options,
                 "id=2 image=sub/d.jpg key=d.jpg label=1 | id=3 image=sub/c.jpg key=c.jpg label=2");
    snprintf(
        options, sizeof options,
        ", path: where, label: none, columns: [id], where: ['split=val', 'class=z'], root: %s/sub",
        dir);
    check_opened("m.csv", text, options, "id=3 image=sub/c.jpg key=c.jpg");
    snprintf(options, sizeof options, "path\n%s/a.jpg\n\"e, \"\"f\"\".jpg\"\n", dir);
    check_opened("m.csv", options, "",
                 "image=a.jpg key=a.jpg | image=e, \"f\".jpg key=e, \"f\".jpg");
    check_opened("m.csv", "file,label\na.jpg,1.5\nb.jpg,2\n", "",
                 "image=a.jpg key=a.jpg label=1.5f | image=b.jpg key=b.jpg label=2f");
    tear_down();
}
END_TEST

START_TEST(rows_without_file_and_files_without_row_are_told) {
    size_t count;
    set_up();
    ck_assert_ok(open_text("m.csv", "path\na.jpg\nnone.jpg\nsub/c.jpg\nsub/gone.jpg\n", ""), &err);
    const char *const *notes = presto_source_notes(source, &count);
    ck_assert_uint_eq(count, 2);
    ck_assert_ptr_nonnull(strstr(
        notes[0], "m.csv: 2 of 4 rows left out: no such file, the first in line 3: none.jpg"));
    ck_assert_ptr_nonnull(strstr(notes[1], "3 files beside those of"));
    close_source();
    ck_assert_ok(
        open_text("m.csv", "path\na.jpg\nb.jpg\n\"e, \"\"f\"\".jpg\"\n", ", where: ['path=a.jpg']"),
        &err);
    (void)presto_source_notes(source, &count);
    ck_assert_uint_eq(count, 0);
    ck_assert_uint_eq(presto_source_count(source), 1);
    tear_down();
}
END_TEST

static void refuse(const char *name, const char *text, const char *options, presto_status status,
                   const char *words) {
    ck_assert_status(open_text(name, text, options), status, &err);
    ck_assert_msg(strstr(err.message, words) != NULL, "'%s' lacks '%s'", err.message, words);
    ck_assert_str_eq(err.file, path_in(dir, name));
    close_source();
}

START_TEST(what_does_not_fit_is_refused_with_its_line) {
    set_up();
    refuse("m.csv", "", "", PRESTO_ERR_SYNTAX, "column 1 has no name");
    refuse("m.csv", "path\n", "", PRESTO_ERR_SYNTAX, "has no rows");
    refuse("m.csv", "path,path\na,b\n", "", PRESTO_ERR_SYNTAX,
           "column 2 has the name of another one");
    refuse("m.csv", "path,n\na.jpg\n", "", PRESTO_ERR_SYNTAX, "line 2 has 1 fields, line 1 has 2");
    refuse("m.csv", "path,n\na.jpg,1,2\n", "", PRESTO_ERR_SYNTAX, "line 2 has 3 fields");
    refuse("m.csv", "path\n\"a.jpg\n", "", PRESTO_ERR_SYNTAX,
           "line 2: a quoted field does not end");
    refuse("m.csv", "id,n\na.jpg,1\n", "", PRESTO_ERR_NOT_FOUND, "source.path=COLUMN");
    refuse("m.csv", "path,n\na.jpg,1\n", ", path: nn", PRESTO_ERR_NOT_FOUND,
           "has no column 'nn', which source.path names (there is: path, n)");
    refuse("m.csv", "path,n\na.jpg,1\n", ", label: class", PRESTO_ERR_NOT_FOUND, "source.label");
    refuse("m.csv", "path,n\na.jpg,1\n", ", columns: [x]", PRESTO_ERR_NOT_FOUND, "source.columns");
    refuse("m.csv", "path,n\na.jpg,1\n", ", where: ['x=1']", PRESTO_ERR_NOT_FOUND, "source.where");
    refuse("m.csv", "path,n\na.jpg,1\n", ", where: ['n=2']", PRESTO_ERR_NOT_FOUND,
           "none of its 1 row");
    refuse("m.csv", "path,key\na.jpg,1\n", "", PRESTO_ERR_TYPE, "'key' has the name of a feature");
    refuse("m.csv", "path\n../a.jpg\n", "", PRESTO_ERR_SYNTAX, "line 2: the path '../a.jpg'");
    refuse("m.csv", "path\n/etc/passwd\n", "", PRESTO_ERR_SYNTAX, "line 2: the path '/etc/passwd'");
    refuse("m.csv", "path\nnone.jpg\n", "", PRESTO_ERR_NOT_FOUND, "none of its 1 files is there");
    refuse("m.csv", "path,n\na.jpg,99999999999999999999\n", "", PRESTO_ERR_SYNTAX,
           "does not fit int64");
    refuse("m.csv", "path,n\na.jpg,1e99\n", "", PRESTO_ERR_SYNTAX, "does not fit float32");
    refuse("m.jsonl", "{\"path\": \"a.jpg\"\n", "", PRESTO_ERR_SYNTAX,
           "line 1 cannot be read as JSON");
    refuse("m.jsonl", "[1]\n", "", PRESTO_ERR_SYNTAX, "line 1 is no JSON object");
    refuse("m.jsonl", "{}\n", "", PRESTO_ERR_SYNTAX, "line 1 has no keys");
    tear_down();
}
END_TEST

START_TEST(rows_are_read_in_every_order_and_by_ranks) {
    char text[6000] = "path,n\n";
    size_t used = strlen(text);
    set_up();
    for (int i = 0; i < 40; i++)
        used += (size_t)snprintf(text + used, sizeof text - used, "%s,%d\n",
                                 i % 2 == 0 ? "a.jpg" : "b.jpg", i);
    ck_assert_ok(open_text("m.csv", text, ""), &err);
    presto_loader_options options;
    presto_loader_options_defaults(&options);
    options.order.shuffle = PRESTO_SHUFFLE_FULL;
    options.range.epochs = 2;
    uint64_t samples, all = 0;
    uint32_t wanted = digest_stream(source, plan, &options, &samples, PRESTO_END, &err);
    ck_assert_uint_eq(samples, 80);
    for (options.threads = 1; options.threads <= 4; options.threads++)
        ck_assert_uint_eq(digest_stream(source, plan, &options, NULL, PRESTO_END, &err), wanted);
    for (options.range.rank = 0; options.range.rank < 4; options.range.rank++) {
        options.range.world = 4;
        (void)digest_stream(source, plan, &options, &samples, PRESTO_END, &err);
        all += samples;
    }
    ck_assert_uint_eq(all, 80);
    tear_down();
}
END_TEST

int main(void) {
    const TTest *const tests[] = {
        columns_become_features_and_numbers_stay_numbers,
        json_texts_stay_texts_and_truth_values_become_numbers,
        options_choose_columns_rows_label_and_root,
        rows_without_file_and_files_without_row_are_told,
        what_does_not_fit_is_refused_with_its_line,
        rows_are_read_in_every_order_and_by_ranks,
    };
    return presto_check_main("source_manifest", tests, sizeof tests / sizeof tests[0], 60);
}
