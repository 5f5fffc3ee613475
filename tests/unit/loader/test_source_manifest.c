/* SPDX-License-Identifier: Apache-2.0 */
/* Manifests: what becomes a column, which rows become samples, what is told and refused. */
#define _XOPEN_SOURCE 700 /* realpath */
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../../../loader/loader_internal.h"
#include "../../../steps/pipelines_internal.h"
#include "folder_check.h"
#include "loader_check.h"

#include "source/table/source_tables_internal.h"

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
    presto__source_free(source);
    presto__plan_free(plan);
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
    ck_assert_ok(presto__pipeline_parse(presto_span_of_text(yaml), "p", NULL, &pipeline, &err),
                 &err);
    ck_assert_ok(presto__plan_new(pipeline, NULL, &plan, &err), &err);
    return presto__source_open_raw(pipeline, &path, 1, &source, &err);
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
    ck_assert_ok(presto__loader_open(source, plan, &options, &loader, &err), &err);
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
                 "\"note\": null}\n",
                 "", wanted);
    /* The first line lacks a key of the second. */
    check_opened("m.jsonl",
                 "{\"path\": \"b.jpg\"}\n{\"path\": \"a.jpg\", \"what\": \"cat\", \"more\": 1}\n",
                 ", label: none, texts: [more]",
                 "image=b.jpg key=b.jpg more= what= | image=a.jpg key=a.jpg more=1 what=cat");
    tear_down();
}
END_TEST

START_TEST(tables_of_spreadsheets_and_of_pandas_are_read) {
    static const char wanted[] = "image=b.jpg key=b.jpg label=1 note=x;y score=0.5f | "
                                 "image=a.jpg key=a.jpg label=0 note=1,5 score=2f";
    set_up();
    check_opened(
        "m.csv",
        "\xef\xbb\xbfpath;class;note;score\r\nb.jpg;dog;\"x;y\";0.5\r\na.jpg;cat;1,5;2\r\n",
        ", label: class", wanted);
    check_opened("m.csv", "path\tclass\tnote\tscore\nb.jpg\tdog\tx;y\t.5\na.jpg\tcat\t1,5\t2\n",
                 ", label: class", wanted);
    check_opened("m.csv", "path,\"class;or;kind\"\na.jpg,b\n", ", label: class;or;kind",
                 "image=a.jpg key=a.jpg label=0");
    check_opened("m.csv", ",path,class\n0,b.jpg,dog\n1,a.jpg,cat\n", ", label: class",
                 "column-1=0 image=b.jpg key=b.jpg label=1 | "
                 "column-1=1 image=a.jpg key=a.jpg label=0");
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

/* a.jpg, sub/c.jpg, z.jpg: sorted as texts, the folder's files are no neighbours. */
START_TEST(files_without_row_are_counted_once_a_folder) {
    size_t count;
    set_up();
    presto_check_write_file(path_in(dir, "z.jpg"), presto_span_of_text("z"));
    ck_assert_ok(open_text("m.csv", "path\na.jpg\nz.jpg\nsub/c.jpg\n", ""), &err);
    const char *const *notes = presto_source_notes(source, &count);
    ck_assert_uint_eq(count, 1);
    ck_assert_ptr_nonnull(strstr(notes[0], "3 files beside those of"));
    tear_down();
}
END_TEST

START_TEST(absolute_paths_lead_below_the_folder_of_the_table) {
    char text[1000];
    set_up();
    char *real = realpath(dir, NULL);
    snprintf(text, sizeof text, "path\n%s/a.jpg\n%s/./sub/c.jpg\n", dir, real);
    check_opened("m.csv", text, "", "image=a.jpg key=a.jpg | image=sub/c.jpg key=sub/c.jpg");
    /* The folder is named by a path with a link. */
    ck_assert_int_eq(symlink(".", path_in(dir, "link")), 0);
    check_opened("link/m.csv", text, "", "image=a.jpg key=a.jpg | image=sub/c.jpg key=sub/c.jpg");
    snprintf(text, sizeof text, "path\n%s/../a.jpg\n", real);
    refuse("m.csv", text, "", PRESTO_ERR_SYNTAX, "does not lead to a file below");
    snprintf(text, sizeof text, "path\n%s-other/a.jpg\n", real);
    refuse("m.csv", text, "", PRESTO_ERR_SYNTAX, "does not lead to a file below");
    free(real);
    tear_down();
}
END_TEST

/* In photos/m.csv, photos/a.jpg is photos/photos/a.jpg, from wherever the table is opened. */
START_TEST(relative_paths_start_at_the_table) {
    presto__manifest_root root;
    char *path = NULL;
    ck_assert_ok(presto__manifest_root_find("photos/m.csv", NULL, &root, &err), &err);
    ck_assert_ok(presto__manifest_path(&root, "photos/a.jpg", &path, &err), &err);
    ck_assert_str_eq(path, "photos/photos/a.jpg");
    free(path);
    presto__manifest_root_done(&root);
}
END_TEST

START_TEST(what_does_not_fit_is_refused_with_its_line) {
    set_up();
    refuse("m.csv", "", "", PRESTO_ERR_SYNTAX, "it is empty");
    refuse("m.csv", "path\n", "", PRESTO_ERR_SYNTAX, "has no rows");
    refuse("m.csv", "path,path\na,b\n", "", PRESTO_ERR_SYNTAX,
           "column 2 has the name of another one");
    refuse("m.csv", "path,n\na.jpg\n", "", PRESTO_ERR_SYNTAX, "line 2 has 1 field, line 1 has 2");
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
    refuse("m.csv", "path\nnone.jpg\n", "", PRESTO_ERR_NOT_FOUND, "of its 1 file, none is there");
    refuse("m.csv", "path,n\na.jpg,99999999999999999999\n", "", PRESTO_ERR_SYNTAX,
           "does not fit int64");
    refuse("m.csv", "path,n\na.jpg,1e99\n", "", PRESTO_ERR_SYNTAX, "does not fit float32");
    refuse("m.jsonl", "{\"path\": \"a.jpg\"\n", "", PRESTO_ERR_SYNTAX,
           "line 1 cannot be read as JSON");
    refuse("m.csv", "\xff\xfep", "", PRESTO_ERR_SYNTAX, "save it as UTF-8");
    refuse("m.jsonl", "[1]\n", "", PRESTO_ERR_SYNTAX, "line 1 is no JSON object");
    refuse("m.jsonl", "{}\n", "", PRESTO_ERR_SYNTAX, "line 1 has no keys");
    tear_down();
}
END_TEST

/* tests/live/manifests.py has what pandas reads. */
START_TEST(a_missing_value_changes_no_column) {
    static const char *const words[2][4] = {{"", "NA", "nan", "null"},
                                            {"null", "NaN", "\"\"", "\"NA\""}};
    char text[200];
    set_up();
    for (size_t i = 0; i < 2; i++)
        for (size_t k = 0; k < 4; k++) {
            const char *name = i == 0 ? "m.csv" : "m.jsonl";
            if (i == 0)
                snprintf(text, sizeof text, "path,label,x\na.jpg,0,1.5\nb.jpg,%s,2.5\n",
                         words[i][k]);
            else
                snprintf(text, sizeof text,
                         "{\"path\":\"a.jpg\",\"label\":0,\"x\":1.5}\n"
                         "{\"path\":\"b.jpg\",\"label\":%s,\"x\":2.5}\n",
                         words[i][k]);
            refuse(name, text, "", PRESTO_ERR_SYNTAX,
                   i == 0 ? "line 3 has no value in column 'label', which holds numbers"
                          : "line 2 has no value in column 'label', which holds numbers");
            check_opened(name, text, ", missing: drop", "image=a.jpg key=a.jpg label=0 x=1.5f");
            check_opened(name, text, ", missing: -1",
                         "image=a.jpg key=a.jpg label=0 x=1.5f | "
                         "image=b.jpg key=b.jpg label=-1 x=2.5f");
            refuse(name, text, ", missing: nan", PRESTO_ERR_SYNTAX, "must be a whole number");
        }
    refuse("m.csv", "path,x\na.jpg,1.5\nb.jpg,\n", "", PRESTO_ERR_SYNTAX,
           "line 3 has no value in column 'x'");
    check_opened("m.csv", "path,x\na.jpg,1.5\nb.jpg,\n", ", missing: nan",
                 "image=a.jpg key=a.jpg x=1.5f | image=b.jpg key=b.jpg x=nanf");
    refuse("m.csv", "path,label\na.jpg,cat\nb.jpg,\n", "", PRESTO_ERR_SYNTAX,
           "line 3 has no value in column 'label', which holds classes");
    check_opened("m.csv", "path,label\na.jpg,cat\nb.jpg,NA\n", ", texts: [label]",
                 "image=a.jpg key=a.jpg label=1 | image=b.jpg key=b.jpg label=0");
    refuse("m.csv", "path,label\na.jpg,\n", ", missing: drop", PRESTO_ERR_NOT_FOUND,
           "none of its 1 row has a value");
    tear_down();
}
END_TEST

START_TEST(a_cell_of_another_kind_is_refused_with_its_line) {
    set_up();
    refuse("m.csv", "path,n\na.jpg,1\nb.jpg,x\n", "", PRESTO_ERR_SYNTAX,
           "line 3: 'x' of column 'n' is no number, but '1' in line 2 is one");
    refuse("m.csv", "path,label\na.jpg,cat\nb.jpg,7\ne.jpg,dog\n", "", PRESTO_ERR_SYNTAX,
           "line 3: '7' of column 'label' is a number, but 'cat' in line 2 is none");
    refuse("m.jsonl", "{\"path\":\"a.jpg\",\"n\":1}\n{\"path\":\"b.jpg\",\"n\":\"2\"}\n", "",
           PRESTO_ERR_SYNTAX, "line 2: '2' of column 'n' is no number");
    check_opened("m.csv", "path,n\na.jpg,1\nb.jpg,x\n", ", texts: [n]",
                 "image=a.jpg key=a.jpg n=1 | image=b.jpg key=b.jpg n=x");
    /* One number among names is a name, unless it is a label. */
    check_opened("m.csv", "path,n\na.jpg,x\nb.jpg,7\na.jpg,y\n", "",
                 "image=a.jpg key=a.jpg n=x | image=b.jpg key=b.jpg n=7 | "
                 "image=a.jpg key=a.jpg n=y");
    tear_down();
}
END_TEST

START_TEST(headers_are_found_alike) {
    static const char wanted[] = "image=a.jpg key=a.jpg label=0 | image=b.jpg key=b.jpg label=1";
    size_t count;
    set_up();
    check_opened("m.csv", "Path,Label\na.jpg,cat\nb.jpg,dog\n", "", wanted);
    check_opened("m.csv", "path, label\na.jpg, cat\nb.jpg, \"dog\"\n", "", wanted);
    check_opened("m.csv", "\xef\xbb\xbf\"PATH\";\"LABEL\"\ra.jpg;cat\rb.jpg;dog\r", "", wanted);
    check_opened("m.tsv", "\"path\"\t\"label\"\n\"a.jpg\"\t\"cat\"\n\"b.jpg\"\t\"dog\"\n", "",
                 wanted);
    ck_assert_ok(
        open_text("m.csv", "path,class\na.jpg,cat\nb.jpg,dog\n\"e, \"\"f\"\".jpg\",x\n", ""), &err);
    const char *const *notes = presto_source_notes(source, &count);
    ck_assert_uint_ge(count, 1);
    ck_assert_ptr_nonnull(strstr(notes[0], "has no column 'label', so samples have no label"));
    tear_down();
}
END_TEST

START_TEST(quotes_between_tabs_are_those_of_pandas_or_text) {
    size_t count;
    set_up();
    check_opened("m.tsv",
                 "path\tnote\n\"a.jpg\"\t\"x\ty \"\"z\"\"\"\nb.jpg\t\"two\nlines\"\nb.jpg\tno "
                 "\"quotes\"\nb.jpg\tan inch: 1\"\n",
                 ", label: none",
                 "image=a.jpg key=a.jpg note=x\ty \"z\" | image=b.jpg key=b.jpg note=two\nlines | "
                 "image=b.jpg key=b.jpg note=no \"quotes\" | "
                 "image=b.jpg key=b.jpg note=an inch: 1\"");
    ck_assert_ok(
        open_text("m.tsv", "path\tnote\na.jpg\t\"x\"\nb.jpg\t\"Yes\", she said\n", ", label: none"),
        &err);
    check_samples("image=a.jpg key=a.jpg note=\"x\" | "
                  "image=b.jpg key=b.jpg note=\"Yes\", she said");
    const char *const *notes = presto_source_notes(source, &count);
    bool is_told = false;
    for (size_t i = 0; i < count; i++)
        is_told |= strstr(notes[i], "quotes are kept as text, because in line 3 a field") != NULL;
    ck_assert(is_told);
    close_source();
    ck_assert_ok(open_text("m.tsv", "path\tnote\na.jpg\t\"x\nb.jpg\ty\n", ", label: none"), &err);
    check_samples("image=a.jpg key=a.jpg note=\"x | image=b.jpg key=b.jpg note=y");
    tear_down();
}
END_TEST

START_TEST(decimal_commas_are_told) {
    static const char *const tables[] = {
        "path;label\na.jpg;1,5\nb.jpg;2\n",
        "path,label\na.jpg,\"1,5\"\nb.jpg,\"-2,25\"\n",
        "path\tn\tlabel\na.jpg\t1\t1,5\nb.jpg\t2\t2,25\n",
    };
    set_up();
    for (size_t i = 0; i < sizeof tables / sizeof tables[0]; i++) {
        ck_assert_status(open_text("m.csv", tables[i], ", missing: drop"), PRESTO_ERR_SYNTAX, &err);
        ck_assert_ptr_nonnull(strstr(
            err.message, "line 2: '1,5' of column 'label' has a decimal comma: numbers are written "
                         "with a point; source.texts=[label] takes the column as texts"));
        close_source();
    }
    check_opened("m.csv", tables[0], ", texts: [label]",
                 "image=a.jpg key=a.jpg label=0 | image=b.jpg key=b.jpg label=1");
    check_opened("m.csv", "path;label\na.jpg;1,5\nb.jpg;x\n", "",
                 "image=a.jpg key=a.jpg label=0 | image=b.jpg key=b.jpg label=1");
    tear_down();
}
END_TEST

/* ---- the stream ---- */

#define ROWS 40

/* Rows that share two files, told apart by `n`, which counts from `base`. */
static void open_rows(int base, const char *ending) {
    char text[6000];
    size_t used = (size_t)snprintf(text, sizeof text, "path,n,class%s", ending);
    for (int i = 0; i < ROWS; i++)
        used += (size_t)snprintf(text + used, sizeof text - used, "%s,%d,%s%s",
                                 i % 2 == 0 ? "a.jpg" : "sub/c.jpg", base + i,
                                 i % 3 == 0 ? "dog" : "cat", ending);
    ck_assert_ok(open_text("m.csv", text, ", label: class"), &err);
}

static const presto_batch_feature *column(const presto_batch *batch, const char *name) {
    for (size_t i = 0; i < batch->feature_count; i++)
        if (strcmp(batch->features[i].name, name) == 0)
            return &batch->features[i];
    ck_abort_msg("there is no %s", name);
}

/* Counts the rows of a stream; each has the file, the class and the number of its line. */
static void count_rows(const presto_loader_options *options, int base, unsigned seen[ROWS]) {
    presto_loader *loader;
    presto_batch *batch;
    presto_status status;
    ck_assert_ok(presto__loader_open(source, plan, options, &loader, &err), &err);
    while ((status = presto_loader_next(loader, &batch, &err)) == PRESTO_OK) {
        const int64_t *n = column(batch, "n")->tensor.data;
        const int64_t *label = column(batch, "label")->tensor.data;
        for (size_t row = 0; row < batch->rows; row++) {
            int64_t i = n[row] - base;
            presto_span content = presto_batch_string(column(batch, "image"), row);
            ck_assert(i >= 0 && i < ROWS);
            ck_assert(presto_span_equal(content,
                                        presto_span_of_text(i % 2 == 0 ? "a.jpg" : "sub/c.jpg")));
            ck_assert_int_eq(label[row], i % 3 == 0);
            seen[i]++;
        }
        presto_batch_release(batch);
    }
    ck_assert_status(status, PRESTO_END, &err);
    presto_loader_free(loader);
}

static void check_seen(const unsigned seen[ROWS], unsigned wanted) {
    for (size_t i = 0; i < ROWS; i++)
        ck_assert_msg(seen[i] == wanted, "row %zu came %u times", i, seen[i]);
}

static const presto_shuffle_kind orders[] = {PRESTO_SHUFFLE_NONE, PRESTO_SHUFFLE_BUFFER,
                                             PRESTO_SHUFFLE_FULL, PRESTO_SHUFFLE_BLOCKS};

static presto_loader_options order_options(size_t order) {
    presto_loader_options options;
    presto_loader_options_defaults(&options);
    options.order.shuffle = orders[order];
    options.order.shuffle_window = 7;
    options.order.seed = 5;
    options.batch_samples = 6;
    options.memory.block_samples = 4;
    options.range.epochs = 2;
    return options;
}

START_TEST(every_row_comes_once_an_epoch_whatever_the_order_threads_and_cache) {
    set_up();
    open_rows(100, "\n");
    for (size_t order = 0; order < 4; order++)
        for (int cache = 0; cache < 3; cache++) {
            char name[16];
            snprintf(name, sizeof name, "cache-%zu", order);
            presto_loader_options options = order_options(order);
            options.cache.bytes = cache == 0 ? 0 : 1 << 20;
            options.cache.dir = cache == 2 ? path_in(dir, name) : NULL;
            for (options.threads = 0; options.threads <= 8; options.threads += 2) {
                unsigned seen[ROWS] = {0};
                count_rows(&options, 100, seen);
                check_seen(seen, 2);
            }
        }
    tear_down();
}
END_TEST

START_TEST(a_cache_does_not_outlive_what_the_manifest_says) {
    set_up();
    for (int round = 0; round < 3; round++) {
        unsigned seen[ROWS] = {0};
        presto_loader_options options = order_options(0);
        options.cache.bytes = 1 << 20;
        options.cache.dir = path_in(dir, "cache");
        open_rows(100 * (round + 1), round == 2 ? "\r\n" : "\n");
        count_rows(&options, 100 * (round + 1), seen);
        check_seen(seen, 2);
        close_source();
    }
    tear_down();
}
END_TEST

START_TEST(ranks_share_the_rows_of_one_order) {
    set_up();
    open_rows(0, "\n");
    for (size_t order = 0; order < 4; order++)
        for (uint64_t world = 2; world <= 10; world *= 5) { /* both divide the rows */
            unsigned seen[ROWS] = {0};
            for (uint64_t rank = 0; rank < world; rank++) {
                presto_loader_options options = order_options(order);
                options.threads = (unsigned)rank % 4;
                options.range.world = world;
                options.range.rank = rank;
                options.range.epochs = 1;
                count_rows(&options, 0, seen);
            }
            check_seen(seen, 1);
        }
    tear_down();
}
END_TEST

/* A part is chosen by the file, so all rows of a file are in the same one. */
START_TEST(parts_of_a_manifest_are_disjoint_and_complete) {
    static const char *const names[] = {"1", "2", "3"};
    unsigned seen[ROWS] = {0};
    set_up();
    for (size_t part = 0; part < 3; part++) {
        const presto_partition wanted = {.ratio = "2/1/1", .part = names[part], .seed = 3};
        presto_loader_options options = order_options(2);
        unsigned mine[ROWS] = {0};
        open_rows(0, "\n");
        presto_status status = presto__source_choose(source, &wanted, &err);
        if (status == PRESTO_OK)
            count_rows(&options, 0, mine);
        else
            ck_assert_status(status, PRESTO_ERR_NOT_FOUND, &err); /* there are two files */
        for (size_t i = 0; i < ROWS; i++) {
            ck_assert_uint_eq(mine[i], mine[i % 2]);
            seen[i] += mine[i];
        }
        close_source();
    }
    check_seen(seen, 2);
    tear_down();
}
END_TEST

/* Take batches from the place that `state` has; at batch `stop_at`, that place is saved. */
static size_t take_batches(presto_loader_options options, size_t at, size_t stop_at,
                           uint32_t digests[32], presto_buffer *state) {
    presto_loader *loader;
    presto_batch *batch;
    options.range.state = presto_buffer_span(state);
    ck_assert_ok(presto__loader_open(source, plan, &options, &loader, &err), &err);
    while (at < stop_at && presto_loader_next(loader, &batch, &err) == PRESTO_OK) {
        digests[at++] = digest_batch(0, batch);
        presto_batch_release(batch);
    }
    state->bytes = 0;
    ck_assert_ok(presto_loader_save_state(loader, state, &err), &err);
    presto_loader_free(loader);
    return at;
}

START_TEST(a_stream_is_equal_for_any_threads_and_when_resumed_at_any_batch) {
    set_up();
    open_rows(0, "\n");
    for (size_t order = 0; order < 4; order++) {
        uint32_t whole[32] = {0};
        presto_buffer state = {0};
        presto_loader_options options = order_options(order);
        options.threads = 0;
        size_t count = take_batches(options, 0, 32, whole, &state);
        ck_assert_uint_eq(count, 14);
        presto_buffer_done(&state);
        for (size_t stop_at = 0; stop_at <= count; stop_at++) {
            uint32_t pieces[32] = {0};
            options.threads = (unsigned)stop_at % 5;
            options.cache.bytes = stop_at % 2 << 20;
            size_t at = take_batches(options, 0, stop_at, pieces, &state);
            options.threads = 4;
            at = take_batches(options, at, 32, pieces, &state);
            ck_assert_uint_eq(at, count);
            ck_assert_mem_eq(pieces, whole, sizeof whole);
            presto_buffer_done(&state);
        }
    }
    tear_down();
}
END_TEST

int main(void) {
    const TTest *const tests[] = {
        columns_become_features_and_numbers_stay_numbers,
        tables_of_spreadsheets_and_of_pandas_are_read,
        absolute_paths_lead_below_the_folder_of_the_table,
        relative_paths_start_at_the_table,
        json_texts_stay_texts_and_truth_values_become_numbers,
        options_choose_columns_rows_label_and_root,
        rows_without_file_and_files_without_row_are_told,
        files_without_row_are_counted_once_a_folder,
        what_does_not_fit_is_refused_with_its_line,
        a_missing_value_changes_no_column,
        a_cell_of_another_kind_is_refused_with_its_line,
        headers_are_found_alike,
        quotes_between_tabs_are_those_of_pandas_or_text,
        decimal_commas_are_told,
        every_row_comes_once_an_epoch_whatever_the_order_threads_and_cache,
        a_cache_does_not_outlive_what_the_manifest_says,
        ranks_share_the_rows_of_one_order,
        parts_of_a_manifest_are_disjoint_and_complete,
        a_stream_is_equal_for_any_threads_and_when_resumed_at_any_batch,
    };
    return presto_check_main("source_manifest", tests, sizeof tests / sizeof tests[0], 60);
}
