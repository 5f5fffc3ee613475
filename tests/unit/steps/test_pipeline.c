/* SPDX-License-Identifier: Apache-2.0 */
/* Pipelines from YAML: what is accepted, what is refused with which message, and the way through
 * JSON. */
#include <presto/pipeline.h>
#include <stdio.h>
#include <string.h>

#include "../../../steps/pipelines_internal.h"
#include "pipeline/pipeline_internal.h"
#include "presto_check.h"

static const char head[] = "name: p\nsource: {type: files}\n";

static presto_status parse(const char *text, presto_pipeline **out, presto_error *err) {
    presto_span span = presto_span_of_text(text);
    uint8_t *copy = presto_check_copy(span);
    presto_status status =
        presto__pipeline_parse(presto_span_of(copy, span.bytes), "x.yaml", NULL, out, err);
    free(copy);
    return status;
}

/* Parses head + steps; the error must be a syntax error whose text has all the words. */
static void refuses(const char *text, const char *const *words) {
    presto_pipeline *pipeline = NULL;
    presto_error err;
    ck_assert_status(parse(text, &pipeline, &err), PRESTO_ERR_SYNTAX, &err);
    ck_assert_ptr_null(pipeline);
    ck_assert_int_eq(err.status, PRESTO_ERR_SYNTAX);
    char line[2048];
    presto_error_format(&err, line, sizeof line);
    ck_assert_msg(strncmp(line, "x.yaml: line ", 13) == 0, "%s", line);
    for (; *words != NULL; words++)
        ck_assert_msg(strstr(line, *words) != NULL, "'%s' lacks '%s'", line, *words);
}

#define REFUSES(text, ...) refuses(text, (const char *const[]){__VA_ARGS__, NULL})

START_TEST(a_source_of_values_names_what_it_yields_and_needs_no_step) {
    presto_pipeline *p, *again;
    presto_error err;
    bool same = false;
    ck_assert_ok(
        parse("name: p\nsource: {type: hdf5, yields: windows, samples: 10}\nsteps: []\n", &p, &err),
        &err);
    ck_assert_uint_eq(presto_pipeline_step_count(p), 0);
    ck_assert_uint_eq(presto_pipeline_representation_count(p), 2);
    ck_assert_str_eq(presto_pipeline_representation_name(p, 1), "windows");
    ck_assert_ok(presto__pipeline_parse(presto_span_of_text(presto_pipeline_json(p)), "again", NULL,
                                        &again, &err),
                 &err);
    ck_assert_str_eq(presto_pipeline_json(p), presto_pipeline_json(again));
    ck_assert_ok(presto__pipeline_continues(p, presto_pipeline_json(again), "windows", &same, &err),
                 &err);
    ck_assert(same);
    presto_pipeline_free(again);
    ck_assert_ok(parse("name: p\nsource: {type: hdf5, yields: windows, samples: 11}\nsteps: []\n",
                       &again, &err),
                 &err);
    ck_assert_ok(presto__pipeline_continues(p, presto_pipeline_json(again), "windows", &same, &err),
                 &err);
    ck_assert(!same); /* stored windows have the length that they have */
    presto_pipeline_free(again);
    presto_pipeline_free(p);
    REFUSES("name: p\nsource: {type: files}\nsteps: []\n", "line 3", "at least one step");
    REFUSES("name: p\nsource: {type: files, yields: x}\nsteps:\n  - {step: read-file}\n", "line 2",
            "'yields'");
    REFUSES("name: p\nsource: {type: hdf5, yields: unprocessed}\nsteps: []\n", "line 2",
            "unprocessed");
    REFUSES("name: p\nsource: {type: hdf5, yields: a}\nsteps:\n  - {step: aggregate, yields: a}\n",
            "line 4", "'a'");
    REFUSES("name: p\nsource: {type: hdf5, samples: 100}\nsteps:\n  - {step: aggregate}\n",
            "line 4", "whole periods of 128 values, gets float64[2,100]");
    REFUSES("name: p\nsource: {type: hdf5, datasets: []}\nsteps: []\n", "line 2", "empty list");
    REFUSES("name: p\nsource: {type: synthetic, dtype: float32, size: 1001}\nsteps: []\n", "line 2",
            "no whole number of 4");
    REFUSES("name: p\nsource: {type: synthetic, size: 1001}\nsteps:\n  - {step: rms}\n", "line 4",
            "whole periods of 500 values, gets uint8[1001]");
    REFUSES("name: p\nsource: {type: hdf5, label: x}\nsteps: []\n", "line 2", "'label' is 'x'");
}
END_TEST

START_TEST(defaults_stand_where_nothing_is_given) {
    presto_pipeline *p;
    presto_error err;
    ck_assert_ok(parse("name: p\nsource: {type: files}\nsteps: [{step: read-file}]", &p, &err),
                 &err);
    const presto_option *match = presto__pipeline_source_option(p, "match");
    ck_assert_uint_eq(match->text_count, 1);
    ck_assert_str_eq(match->texts[0], "*");
    ck_assert_str_eq(presto__pipeline_source_option(p, "label")->text, "none");
    ck_assert_uint_eq(presto_pipeline_representation_count(p), 1);
    presto_pipeline_free(p);
}
END_TEST

START_TEST(json_is_read_back_to_the_same_json) {
    presto_pipeline *p, *q;
    presto_error err;
    ck_assert_ok(presto_pipeline_load("cv", NULL, &p, &err), &err);
    const char *json = presto_pipeline_json(p);
    ck_assert_ptr_null(strchr(json, '\n'));
    ck_assert_ptr_nonnull(strstr(json, "\"min-side\": 256"));
    ck_assert_ok(parse(json, &q, &err), &err);
    ck_assert_str_eq(presto_pipeline_json(q), json);
    presto_pipeline_free(p);
    presto_pipeline_free(q);
}
END_TEST

START_TEST(json_keeps_odd_texts) {
    presto_pipeline *p, *q;
    presto_error err;
    const char *text = "name: p\nsource: {type: files, match: ['a\"b', \"\\\\\", 'x: y', '5', "
                       "'tr\xc3\xbc\x62', '\xf0\x9f\x98\x80', ' ', 'null', '#']}\n"
                       "steps: [{step: read-file}]";
    ck_assert_ok(parse(text, &p, &err), &err);
    ck_assert_ok(parse(presto_pipeline_json(p), &q, &err), &err);
    const presto_option *a = presto__pipeline_source_option(p, "match");
    const presto_option *b = presto__pipeline_source_option(q, "match");
    ck_assert_uint_eq(a->text_count, 9);
    ck_assert_uint_eq(b->text_count, 9);
    for (size_t i = 0; i < 9; i++)
        ck_assert_str_eq(a->texts[i], b->texts[i]);
    presto_pipeline_free(p);
    presto_pipeline_free(q);
}
END_TEST

START_TEST(a_path_is_loaded_and_errors_name_it) {
    presto_pipeline *p;
    presto_error err;
    char *dir = presto_check_temp_dir();
    char path[600];
    snprintf(path, sizeof path, "%s/mine.yaml", dir);
    ck_assert_status(presto_pipeline_load(path, NULL, &p, &err), PRESTO_ERR_NOT_FOUND, &err);
    ck_assert_str_eq(err.file, path);
    presto_check_write_file(path, presto_span_of_text("name: mine\nsource: {type: files}\n"
                                                      "steps:\n  - {step: read-file}\n"));
    ck_assert_ok(presto_pipeline_load(path, NULL, &p, &err), &err);
    ck_assert_str_eq(presto_pipeline_name(p), "mine");
    presto_pipeline_free(p);
    presto_check_write_file(path, presto_span_of_text("name: mine\nname: other\n"));
    ck_assert_status(presto_pipeline_load(path, NULL, &p, &err), PRESTO_ERR_SYNTAX, &err);
    ck_assert_str_eq(err.file, path);
    ck_assert_status(presto_pipeline_load(dir, NULL, &p, &err), PRESTO_ERR_IO, &err);
    presto_check_remove_tree(dir);
    free(dir);
}
END_TEST

START_TEST(an_unknown_pipeline_lists_those_there_are) {
    presto_pipeline *p;
    presto_error err;
    ck_assert_status(presto_pipeline_load("cv3", NULL, &p, &err), PRESTO_ERR_NOT_FOUND, &err);
    ck_assert_ptr_nonnull(strstr(err.message, "cv, cv-grey-early, cv-grey-late, cv2-jpg, cv2-png"));
}
END_TEST

START_TEST(broken_yaml_is_refused_with_its_line) {
    REFUSES("", "line 1", "empty");
    REFUSES("# only a comment\n", "empty");
    REFUSES("name: [\n", "line 2");
    REFUSES("name: p\n\tsource: x\n", "line 2");
    REFUSES("name: p\n--- \nname: q\n", "line 2", "second document");
    REFUSES("- name\n", "line 1", "mapping");
    REFUSES("just words\n", "mapping");
    REFUSES("name: \"p\\x00q\"\n", "printable");
    REFUSES("name: \xff\xfe\xff\n", "line 1");
    REFUSES("{name: p, source: {type: files}, steps: [{step: read-file}]}\n--- {}\n", "line 2",
            "second document");
}
END_TEST

START_TEST(anchors_aliases_and_tags_are_refused) {
    REFUSES("name: &a p\nsource: {type: files}\nsteps: []\n", "line 1", "anchors");
    REFUSES("name: p\nsource: *a\n", "line 2", "anchors");
    REFUSES("name: p\nsource: &s {type: files}\n", "line 2", "anchors");
    REFUSES("name: p\nsource: {type: files}\nsteps: &s [{step: read-file}]\n", "line 3", "anchors");
    REFUSES("name: !!str p\n", "line 1", "tags");
    REFUSES("name: p\nsteps: !x []\n", "line 2", "tags");
}
END_TEST

START_TEST(unknown_and_duplicate_keys_are_refused) {
    REFUSES("name: p\nsource: {type: files}\nstep: []\n", "line 3", "unknown key 'step'",
            "did you mean 'steps'");
    REFUSES("name: p\nsource: {type: files}\nname: q\n", "line 3", "'name' is given twice",
            "line 1");
    REFUSES("name: p\nsource: {type: files, mach: [a]}\nsteps: [{step: read-file}]\n", "line 2",
            "source files has no option 'mach'", "did you mean 'match'");
    REFUSES("name: p\nsource: {type: files}\nsteps:\n  - {step: read-file, yield: x}\n", "line 4",
            "step read-file has no option 'yield'", "did you mean 'yields'");
    REFUSES("name: p\nsource: {type: files}\nsteps:\n  - {step: read-file, step: read-file}\n",
            "line 4", "twice");
    REFUSES("name: p\nsource: {type: files}\nsteps:\n  - {[a]: b}\n", "line 4", "key");
    REFUSES("name: p\nsource: {type: files}\n", "lacks 'steps'");
    REFUSES("name: p\nsource: {type: files}\nsteps: []\n", "line 3", "at least one step");
    REFUSES("name: p\nsource: {type: files}\nsteps: read-file\n", "line 3", "list");
    REFUSES("name: p\nsource: files\nsteps: [{step: read-file}]\n", "line 2", "mapping");
    REFUSES("name: p\nsource: {}\nsteps: [{step: read-file}]\n", "line 2", "type");
    REFUSES("name: a/b\nsource: {type: files}\nsteps: [{step: read-file}]\n", "line 1", "a/b");
    REFUSES("name: [p]\nsource: {type: files}\nsteps: [{step: read-file}]\n", "line 1", "name");
}
END_TEST

START_TEST(unknown_steps_and_sources_name_the_nearest) {
    REFUSES("name: p\nsource: {type: file}\nsteps: [{step: read-file}]\n", "line 2",
            "unknown source type 'file'", "did you mean 'files'");
    REFUSES("name: p\nsource: {type: files}\nsteps:\n  - {step: decode-imgae}\n", "line 4",
            "unknown step 'decode-imgae'", "did you mean 'decode-image'", "random-crop");
    REFUSES("name: p\nsource: {type: files}\nsteps:\n  - {step: comet, run: [a]}\n", "line 4",
            "unknown step 'comet'", "known: read-file");
    REFUSES("name: p\nsource: {type: files}\nsteps:\n  - {yields: x}\n", "line 4", "name");
    REFUSES("name: p\nsource: {type: files}\nsteps:\n  - read-file\n", "line 4", "mapping");
}
END_TEST

/* A pipeline whose third step has these options. */
static const char *with_step(const char *step) {
    static char text[1024];
    snprintf(text, sizeof text,
             "%ssteps:\n  - {step: read-file}\n  - {step: decode-image}\n  - {%s}\n", head, step);
    return text;
}

START_TEST(wrong_types_and_values_are_refused) {
    REFUSES(with_step("step: resize-image, min-side: big"), "line 6", "step resize-image",
            "'min-side' needs a whole number", "a text 'big'");
    REFUSES(with_step("step: resize-image, min-side: '256'"), "a text '256'");
    REFUSES(with_step("step: resize-image, min-side: 256x"), "whole number");
    REFUSES(with_step("step: resize-image, min-side: 2.5"), "a number '2.5'");
    REFUSES(with_step("step: resize-image, min-side: 0x10"), "whole number");
    REFUSES(with_step("step: resize-image, min-side: [256]"), "a list");
    REFUSES(with_step("step: resize-image, min-side: {a: 1}"), "a mapping");
    REFUSES(with_step("step: resize-image, min-side: "), "nothing");
    REFUSES(with_step("step: resize-image, min-side: true"), "true or false");
    REFUSES(with_step("step: resize-image, min-side: 0"), "from 1 to 65535 pixels");
    REFUSES(with_step("step: resize-image, min-side: -5"), "is -5");
    REFUSES(with_step("step: resize-image, min-side: 65536"), "from 1 to 65535");
    REFUSES(with_step("step: resize-image, min-side: 99999999999999999999"), "whole number");
    REFUSES(with_step("step: resize-image, min-side: 5, method: cubic"),
            "must be one of: bilinear");
    REFUSES(with_step("step: resize-image"), "line 6", "needs either 'min-side'");
    REFUSES(with_step("step: resize-image, height: 5"), "needs either 'min-side'");
    REFUSES(with_step("step: resize-image, height: 5, width: 5, min-side: 5"), "needs either");
    REFUSES(with_step("step: random-crop, height: 5"), "line 6", "needs the option 'width'");
    REFUSES("name: p\nsource: {type: files}\nsteps: [{step: read-file}, {step: decode-image, "
            "channels: 2}]",
            "must be 0, 1, 3 or 4");
    REFUSES("name: p\nsource: {type: files}\nsteps: [{step: read-file}, {step: decode-image, "
            "max-bytes: 5 MB}]",
            "a size such as 64MiB");
    REFUSES("name: p\nsource: {type: files, match: 'a'}\nsteps: [{step: read-file}]", "line 2",
            "list of texts");
    REFUSES("name: p\nsource: {type: files, match: []}\nsteps: [{step: read-file}]", "empty list");
    REFUSES("name: p\nsource: {type: files, match: [a, 5]}\nsteps: [{step: read-file}]",
            "a number '5'", "quotes");
    REFUSES("name: p\nsource: {type: files, label: folder}\nsteps: [{step: read-file}]", "line 2",
            "parent-folder");
    REFUSES("name: p\nsource: {type: files, label: 'csv:'}\nsteps: [{step: read-file}]",
            "csv:FILE");
    REFUSES("name: p\nsource: {type: files, feature: label}\nsteps: [{step: read-file}]", "taken");
    REFUSES("name: p\nsource: {type: synthetic, seed: -1}\nsteps: []",
            "must be from 0 to 9007199254740992");
    REFUSES(with_step("step: random-resized-crop, size: 5, scale: [0, 1]"),
            "must be from 1e-06 to 1");
}
END_TEST

START_TEST(a_step_that_does_not_fit_the_one_before_is_refused) {
    REFUSES("name: p\nsource: {type: files}\nsteps:\n  - {step: read-file}\n"
            "  - {step: center-pixels}\n",
            "line 5", "step center-pixels", "needs uint8 or float32, gets string");
    REFUSES(with_step("step: decode-image"), "line 6", "needs string, gets uint8[?,?,3]");
    REFUSES("name: p\nsource: {type: files}\nsteps:\n  - {step: read-file}\n"
            "  - {step: decode-image, channels: 1}\n  - {step: greyscale}\n",
            "line 6", "3 channels");
    REFUSES("name: p\nsource: {type: files}\nsteps:\n  - {step: read-file}\n"
            "  - {step: decode-image}\n  - {step: resize-image, height: 100, width: 300}\n"
            "  - {step: random-crop, height: 224, width: 224}\n",
            "line 7", "smaller than the crop of 224 x 224");
}
END_TEST

START_TEST(representations_have_distinct_plain_names) {
    REFUSES("name: p\nsource: {type: files}\nsteps:\n  - {step: read-file, yields: a}\n"
            "  - {step: decode-image, yields: a}\n",
            "line 5", "'a'");
    REFUSES("name: p\nsource: {type: files}\nsteps:\n  - {step: read-file, yields: unprocessed}\n",
            "line 4", "unprocessed");
    REFUSES("name: p\nsource: {type: files}\nsteps:\n  - {step: read-file, yields: 'a,b'}\n",
            "line 4", "a,b");
    REFUSES("name: p\nsource: {type: files}\nsteps:\n  - {step: read-file, yields: ''}\n",
            "line 4");
}
END_TEST

START_TEST(nothing_after_a_random_step_is_storable) {
    presto_pipeline *p;
    presto_error err;
    ck_assert_ok(parse("name: p\nsource: {type: files}\nsteps:\n  - {step: read-file, yields: a}\n"
                       "  - {step: decode-image}\n"
                       "  - {step: random-crop, height: 2, width: 2, yields: b}\n"
                       "  - {step: center-pixels, yields: c}\n",
                       &p, &err),
                 &err);
    ck_assert(presto__pipeline_representation_storable(p, 0));
    ck_assert(presto__pipeline_representation_storable(p, 1));
    ck_assert(!presto__pipeline_representation_storable(p, 2));
    ck_assert(!presto__pipeline_representation_storable(p, 3));
    ck_assert_uint_eq(presto_pipeline_representation_steps(p, 2), 3);
    presto_pipeline_free(p);
}
END_TEST

START_TEST(every_cut_of_a_pipeline_is_refused_or_whole) {
    const char text[] = "name: p\nsource: {type: files, match: ['*.jpg']}\nsteps:\n"
                        "  - {step: read-file, yields: a}\n  - {step: decode-image, channels: 3}\n";
    for (size_t cut = 0; cut < sizeof text; cut++) {
        presto_pipeline *p = NULL;
        presto_error err;
        uint8_t *copy = presto_check_copy(presto_span_of(text, cut));
        presto_status status =
            presto__pipeline_parse(presto_span_of(copy, cut), "x", NULL, &p, &err);
        ck_assert(status == PRESTO_OK || status == PRESTO_ERR_SYNTAX);
        presto_pipeline_free(p);
        free(copy);
    }
}
END_TEST

START_TEST(deep_nesting_and_large_texts_are_refused) {
    char text[4096] = "name: p\nsource: ";
    memset(text + strlen(text), '[', 2000);
    REFUSES(text, "nested too deeply");
    char many[20000] = "name: p\nsource: {";
    for (size_t i = 0, at = strlen(many); i <= 1000; i++)
        at += (size_t)snprintf(many + at, sizeof many - at, "k%zu: 1, ", i);
    REFUSES(many, "line 2", "more keys than any mapping here has");
    size_t bytes = ((size_t)1 << 20) + 1;
    char *large = malloc(bytes);
    memset(large, ' ', bytes);
    presto_pipeline *p;
    presto_error err;
    ck_assert_status(presto__pipeline_parse(presto_span_of(large, bytes), "x", NULL, &p, &err),
                     PRESTO_ERR_LIMIT, &err);
    free(large);
}
END_TEST

START_TEST(every_option_table_is_sound) {
    presto_error err;
    for (size_t i = 0; presto__step_at(i) != NULL; i++) {
        const presto_step_type *step = presto__step_at(i);
        ck_assert_ok(presto__options_check_table(step->options, step->option_count, &err), &err);
        ck_assert_uint_eq(step->abi, PRESTO_STEP_ABI);
        ck_assert_ptr_eq(presto__step_find(step->name), step);
        ck_assert_ptr_nonnull(step->summary);
        ck_assert(step->infer != NULL && step->run != NULL);
        for (size_t j = 0; j < step->option_count; j++)
            ck_assert_msg(strcmp(step->options[j].name, "step") != 0 &&
                              strcmp(step->options[j].name, "yields") != 0,
                          "%s", step->name);
    }
    for (size_t i = 0; presto__source_type_at(i) != NULL; i++) {
        const presto_source_type *type = presto__source_type_at(i);
        ck_assert_ok(presto__options_check_table(type->options, type->option_count, &err), &err);
    }
    ck_assert_ptr_null(presto__step_find("comet"));
}
END_TEST

START_TEST(sizes_take_binary_suffixes) {
    const presto_option_type table[] = {
        {.name = "s", .kind = PRESTO_OPTION_SIZE, .help = "h"},
        {.name = "f", .kind = PRESTO_OPTION_FLOAT, .help = "h", .default_text = "0.5"},
        {.name = "b", .kind = PRESTO_OPTION_BOOL, .help = "h", .default_text = "true"},
        {.name = "t", .kind = PRESTO_OPTION_TEXT, .help = "h", .default_text = "x"},
    };
    static const struct {
        const char *text;
        int64_t want; /* -1: refused */
    } cases[] = {
        {"s: 0", 0},          {"s: 17", 17},         {"s: 3KiB", 3072}, {"s: '2MiB'", 2 << 20},
        {"s: 1GiB", 1 << 30}, {"s: 1MB", -1},        {"s: -1", -1},     {"s: 1.5MiB", -1},
        {"s: KiB", -1},       {"s: 9999999TiB", -1}, {"s: 1 KiB", -1}};
    static const char *const none[] = {NULL};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        presto_arena arena = {0};
        presto_error err;
        presto__yaml_node *root;
        presto_option *values;
        ck_assert_ok(presto__yaml_parse(presto_span_of_text(cases[i].text), &arena, &root, &err),
                     &err);
        presto__options_request request = {table, 4, root, "step x", NULL, none};
        presto_status status = presto__options_parse(&request, &arena, &values, &err);
        if (cases[i].want < 0) {
            ck_assert_msg(status == PRESTO_ERR_SYNTAX, "%s", cases[i].text);
        } else {
            ck_assert_status(status, PRESTO_OK, &err);
            ck_assert_int_eq(values[0].integer, cases[i].want);
            ck_assert(values[1].number == 0.5 && values[2].truth);
            ck_assert_str_eq(values[3].text, "x");
        }
        presto_arena_done(&arena);
    }
}
END_TEST

START_TEST(the_reference_in_docs_is_up_to_date) {
    presto_buffer help = {0};
    presto_error err;
    for (size_t i = 0; presto__step_at(i) != NULL; i++)
        if (presto__step_at(i)->unsupported != NULL)
            return; /* the page describes a build that lacks nothing */
    ck_assert_ok(presto_steps_help(&help, &err), &err);
    const char *path = PRESTO_GOLDEN_DIR "/../../docs/steps.md";
    if (getenv("PRESTO_UPDATE_DOCS") != NULL)
        presto_check_write_file(path, presto_buffer_span(&help));
    size_t bytes;
    uint8_t *page = presto_check_read_file(path, &bytes);
    ck_assert_msg(presto_span_equal(presto_span_of(page, bytes), presto_buffer_span(&help)),
                  "docs/steps.md is old: run this test with PRESTO_UPDATE_DOCS=1");
    free(page);
    presto_buffer_done(&help);
}
END_TEST

int main(void) {
    const TTest *const tests[] = {
        a_source_of_values_names_what_it_yields_and_needs_no_step,
        defaults_stand_where_nothing_is_given,
        json_is_read_back_to_the_same_json,
        json_keeps_odd_texts,
        a_path_is_loaded_and_errors_name_it,
        an_unknown_pipeline_lists_those_there_are,
        broken_yaml_is_refused_with_its_line,
        anchors_aliases_and_tags_are_refused,
        unknown_and_duplicate_keys_are_refused,
        unknown_steps_and_sources_name_the_nearest,
        wrong_types_and_values_are_refused,
        a_step_that_does_not_fit_the_one_before_is_refused,
        representations_have_distinct_plain_names,
        nothing_after_a_random_step_is_storable,
        every_cut_of_a_pipeline_is_refused_or_whole,
        deep_nesting_and_large_texts_are_refused,
        every_option_table_is_sound,
        sizes_take_binary_suffixes,
        the_reference_in_docs_is_up_to_date,
    };
    return presto_check_main("pipeline", tests, sizeof tests / sizeof tests[0], 60);
}
