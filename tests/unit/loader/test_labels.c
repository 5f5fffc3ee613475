/* SPDX-License-Identifier: Apache-2.0 */
/* Label files: quoting, header, integers and names, and every way to be wrong. */
#include "presto_check.h"

#include "source/core/source_internal.h"

static bool as_classes;

static presto_status parse(const char *text, presto__labels *labels, presto_error *err) {
    presto_span span = presto_span_of_text(text);
    uint8_t *copy = presto_check_copy(span);
    presto_status status = presto__labels_parse(presto_span_of(copy, span.bytes), "labels.csv",
                                                as_classes, labels, err);
    free(copy);
    return status;
}

static void check_label(presto__labels *labels, const char *path, int64_t label) {
    const presto__label_row *row = presto__labels_find(labels, path);
    ck_assert_msg(row != NULL, "no row for %s", path);
    ck_assert_int_eq(row->label, label);
}

START_TEST(integers_are_taken_as_they_are) {
    presto__labels labels;
    presto_error err;
    ck_assert_ok(parse("path,label\r\nb.jpg,-7\r\na.jpg,12\r\n", &labels, &err), &err);
    ck_assert_uint_eq(labels.count, 2);
    ck_assert_uint_eq(labels.name_count, 0);
    check_label(&labels, "a.jpg", 12);
    check_label(&labels, "b.jpg", -7);
    ck_assert_ptr_null(presto__labels_find(&labels, "c.jpg"));
    presto__labels_done(&labels);
}
END_TEST

START_TEST(names_are_numbered_in_bytewise_order) {
    presto__labels labels;
    presto_error err;
    ck_assert_ok(parse("x,dog\ny,cat\nz,dog\nw,ape", &labels, &err), &err);
    ck_assert_uint_eq(labels.name_count, 3);
    ck_assert_str_eq(labels.names[0], "ape");
    ck_assert_str_eq(labels.names[1], "cat");
    check_label(&labels, "x", 2);
    check_label(&labels, "y", 1);
    check_label(&labels, "w", 0);
    presto__labels_done(&labels);
}
END_TEST

START_TEST(numbers_stay_numbers_unless_they_are_classes) {
    presto__labels labels;
    presto_error err;
    ck_assert_ok(parse("FileName,age\nx,1\n./y,-0.5\nz,+2e1\nv,.25\nw,3.", &labels, &err), &err);
    ck_assert(labels.are_fractions);
    ck_assert_uint_eq(labels.count, 5);
    ck_assert_uint_eq(labels.name_count, 0);
    static const float wanted[] = {0.25F, 3, 1, -0.5F, 20};
    for (size_t i = 0; i < 5; i++)
        ck_assert(
            presto__labels_find(&labels, (const char *[]){"v", "w", "x", "y", "z"}[i])->fraction ==
            wanted[i]);
    presto__labels_done(&labels);
    as_classes = true;
    ck_assert_ok(parse("x,1\ny,0.5\nz,1\nw,cat", &labels, &err), &err);
    as_classes = false;
    ck_assert(!labels.are_fractions);
    ck_assert_uint_eq(labels.name_count, 3);
    check_label(&labels, "x", 1);
    check_label(&labels, "y", 0);
    check_label(&labels, "w", 2);
    presto__labels_done(&labels);
}
END_TEST

START_TEST(quoted_fields_may_hold_commas_quotes_and_line_ends) {
    presto__labels labels;
    presto_error err;
    ck_assert_ok(parse("\"a,b\".jpg,1", &labels, &err) == PRESTO_ERR_SYNTAX ? PRESTO_OK
                                                                            : PRESTO_ERR_IO,
                 &err);
    ck_assert_ok(parse("\"a,\"\"b\"\"\nc.jpg\",\"1\"\nd,2\n", &labels, &err), &err);
    check_label(&labels, "a,\"b\"\nc.jpg", 1);
    check_label(&labels, "d", 2);
    ck_assert_uint_eq(presto__labels_find(&labels, "d")->line, 3);
    presto__labels_done(&labels);
}
END_TEST

START_TEST(what_is_no_label_file_is_refused_with_its_line) {
    static const struct {
        const char *text;
        const char *said;
    } cases[] = {
        {"", "no labels"},
        {"path,label\n", "no labels"},
        {"a\n", "line 1: expected path,label"},
        {"a,1\nb", "line 2: expected path,label"},
        {"a,1\n\nb,2\n", "line 2: expected path,label"},
        {"a,1,2\n", "line 1: more than two fields"},
        {"a,1\nb,\n", "line 2: empty label"},
        {",1\n", "line 1: empty path"},
        {"a,1\nb,\"2\n", "line 2: a quoted field does not end"},
        {"a,1\na,2\n", "line 2: second label for a (first in line 1)"},
        {"a,1\nb,2\nc,cat\n", "line 3: label 'cat' is no number, but '1' in line 1 is a number"},
        {"a,cat\nb,2\n", "line 2: label '2' is a number, but 'cat' in line 1 is no number"},
        {"a,0.5\nb,nan\n", "line 2: label 'nan' is no number"},
        {"a,1\nb,9223372036854775808\n", "line 2: label '9223372036854775808' does not fit int64"},
        {"a,1.5\nb,1e39\n", "line 2: label '1e39' does not fit float32"},
        {"a\"b,1\n", "line 1: a quote must enclose the whole field"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        presto__labels labels;
        presto_error err;
        ck_assert_status(parse(cases[i].text, &labels, &err), PRESTO_ERR_SYNTAX, &err);
        ck_assert_msg(strstr(err.message, cases[i].said) != NULL, "case %zu: %s", i, err.message);
        ck_assert_str_eq(err.file, "labels.csv");
    }
}
END_TEST

int main(void) {
    const TTest *const tests[] = {
        integers_are_taken_as_they_are,
        names_are_numbered_in_bytewise_order,
        numbers_stay_numbers_unless_they_are_classes,
        quoted_fields_may_hold_commas_quotes_and_line_ends,
        what_is_no_label_file_is_refused_with_its_line,
    };
    return presto_check_main("labels", tests, sizeof tests / sizeof tests[0], 30);
}
