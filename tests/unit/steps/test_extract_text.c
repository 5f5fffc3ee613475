/* SPDX-License-Identifier: Apache-2.0 */
/* extract-text: pages of many shapes and encodings, options, and pages that are hostile. */
#include "../../../steps/pipelines_internal.h"
#include "steps_check.h"

#define GOLDEN(name) PRESTO_GOLDEN_DIR "/html/" name

static void open_step(rig *r, const char *options) {
    char step[200];
    presto_error err;
    snprintf(step, sizeof step, "{step: extract-text%s%s}", options[0] == '\0' ? "" : ", ",
             options);
    ck_assert_ok(rig_open(r, step, &string_spec, false, &err), &err);
}

/* The text of a page, valid until the next. */
static presto_span extract(rig *r, presto_span page) {
    rig_options options = {0};
    presto_tensor out;
    presto_error err;
    ck_assert_ok(rig_run_bytes(r, &options, page, &out, &err), &err);
    ck_assert(presto_spec_equal(&out.spec, &string_spec));
    return out.strings[0];
}

static bool contains(presto_span text, const char *part) {
    size_t bytes = strlen(part);
    for (size_t i = 0; i + bytes <= text.bytes; i++)
        if (memcmp(text.data + i, part, bytes) == 0)
            return true;
    return false;
}

static void assert_text(presto_span got, presto_span want, const char *name) {
    ck_assert_msg(presto_span_equal(got, want), "%s:\n%.*s\nbut should be:\n%.*s", name,
                  (int)got.bytes, (const char *)got.data, (int)want.bytes, (const char *)want.data);
}

/* ---- pages of our own ---- */

static const char *const pages[] = {
    "utf-8",
    "utf-8-mark",
    "utf-16-le",
    "utf-16-be",
    "utf-8-declared-latin1",
    "windows-1252",
    "shift-jis",
    "koi8-r",
    "gb18030",
    "xml-iso-8859-2",
    "undeclared-windows-1251",
    "undeclared-euc-jp",
    "undeclared-utf-8",
    "old",
    "broken",
    "manual",
};

/* The page and its expected text, without the line break at its end. */
static presto_span read_golden(const char *name, const char *ending) {
    char path[600];
    size_t bytes;
    snprintf(path, sizeof path, GOLDEN("%s%s"), name, ending);
    uint8_t *data = presto_check_read_file(path, &bytes);
    if (strcmp(ending, ".txt") == 0)
        bytes--;
    return presto_span_of(data, bytes);
}

START_TEST(golden_pages_give_their_main_text) {
    rig r;
    open_step(&r, "");
    for (size_t i = 0; i < sizeof pages / sizeof pages[0]; i++) {
        presto_span page = read_golden(pages[i], ".html"), want = read_golden(pages[i], ".txt");
        assert_text(extract(&r, page), want, pages[i]);
        free((void *)(uintptr_t)page.data);
        free((void *)(uintptr_t)want.data);
    }
    rig_close(&r);
}
END_TEST

/* What a worker keeps from page to page must not change the next one. */
START_TEST(order_of_pages_does_not_matter) {
    rig r;
    open_step(&r, "");
    for (size_t i = 0; i < sizeof pages / sizeof pages[0]; i++) {
        size_t other = (i * 7 + 3) % (sizeof pages / sizeof pages[0]);
        presto_span before = read_golden(pages[other], ".html");
        extract(&r, presto_span_of(before.data, before.bytes / 2));
        presto_span page = read_golden(pages[i], ".html"), want = read_golden(pages[i], ".txt");
        assert_text(extract(&r, page), want, pages[i]);
        free((void *)(uintptr_t)before.data);
        free((void *)(uintptr_t)page.data);
        free((void *)(uintptr_t)want.data);
    }
    rig_close(&r);
}
END_TEST

/* ---- encodings ---- */

#define SENTENCE "The ferry leaves the harbour at nine in the morning, and comes back before dark. "
#define PARAGRAPH "<p>" SENTENCE SENTENCE SENTENCE "</p>"

static void assert_has(rig *r, const char *page, const char *part) {
    presto_span text = extract(r, presto_span_of_text(page));
    ck_assert_msg(contains(text, part), "no '%s' in: %.*s", part, (int)text.bytes,
                  (const char *)text.data);
}

START_TEST(broken_utf8_becomes_replacement_characters) {
    rig r;
    open_step(&r, "encoding: utf-8");
    assert_has(&r, PARAGRAPH "<p>Stop \xff here, " SENTENCE "</p>" PARAGRAPH,
               "Stop \xef\xbf\xbd here");
    assert_has(&r, PARAGRAPH "<p>Stop \xe2\x82 here, " SENTENCE "</p>" PARAGRAPH,
               "Stop \xef\xbf\xbd\xef\xbf\xbd here");
    assert_has(&r, PARAGRAPH "<p>Stop \xed\xa0\x80 here, " SENTENCE "</p>" PARAGRAPH,
               "Stop \xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd here");
    rig_close(&r);
}
END_TEST

START_TEST(the_option_encoding_wins_over_declarations_but_not_over_a_mark) {
    rig r;
    open_step(&r, "encoding: iso-8859-7");
    assert_has(&r, "<meta charset=utf-8>" PARAGRAPH "<p>\xc1\xe8\xde\xed\xe1, " SENTENCE "</p>",
               "\xce\x91\xce\xb8\xce\xae\xce\xbd\xce\xb1");
    assert_has(&r, "\xef\xbb\xbf" PARAGRAPH "<p>\xce\x91\xce\xb8, " SENTENCE "</p>",
               "\xce\x91\xce\xb8,");
    rig_close(&r);
    presto_error err;
    ck_assert_status(
        rig_open(&r, "{step: extract-text, encoding: klingon-7}", &string_spec, false, &err),
        PRESTO_ERR_SYNTAX, &err);
    ck_assert_ptr_nonnull(strstr(err.message, "klingon-7"));
    rig_close(&r);
}
END_TEST

START_TEST(an_unknown_declared_encoding_is_found_out) {
    rig r;
    open_step(&r, "");
    assert_has(&r, "<meta charset='x-nonsense'>" PARAGRAPH "<p>na\xc3\xafve, " SENTENCE "</p>",
               "na\xc3\xafve");
    rig_close(&r);
}
END_TEST

/* ---- text ---- */

START_TEST(references_and_white_space_are_resolved) {
    rig r;
    open_step(&r, "");
    assert_has(
        &r,
        PARAGRAPH
        "<p>A&amp;B &lt;\n\t c&gt; &eacute;&#233;&#xE9;&#128; &bogus; &#x110000; &notit; " SENTENCE,
        "A&B < c> \xc3\xa9\xc3\xa9\xc3\xa9\xe2\x82\xac &bogus; \xef\xbf\xbd \xc2\xacit; The ferry");
    assert_has(&r, PARAGRAPH "<p>soft&shy;hyphen and&nbsp;no-break&nbsp; space, " SENTENCE,
               "softhyphen and no-break space,");
    assert_has(&r, PARAGRAPH "<p>one<br>two, " SENTENCE "</p>", "one\ntwo, ");
    assert_has(&r, PARAGRAPH "<p>wo<b>r</b>d, " SENTENCE "</p>", "word, ");
    rig_close(&r);
}
END_TEST

START_TEST(empty_pages_give_empty_text) {
    static const char *const empty[] = {"",
                                        " ",
                                        "<html>",
                                        "<!doctype html><title>x</title>",
                                        "<script>var x = '<p>';</script>",
                                        "<!--",
                                        "<div hidden>x"};
    rig r;
    open_step(&r, "");
    for (size_t i = 0; i < sizeof empty / sizeof empty[0]; i++)
        ck_assert_uint_eq(extract(&r, presto_span_of_text(empty[i])).bytes, 0);
    rig_close(&r);
}
END_TEST

static const char *const discussed =
    "<body><div class=content>" PARAGRAPH PARAGRAPH
    "</div><div id=comments><div class=comment><p>I "
    "took it once, and it was late again.</p><a href=/r>Reply</a></div></div></body>";
static const char *const tabular =
    "<body><div class=content>" PARAGRAPH "<table><tr><td>Adults on weekdays, " SENTENCE
    "</td><td>12 crowns, " SENTENCE "</td></tr></table>" PARAGRAPH "</div></body>";

START_TEST(options_keep_comments_and_drop_tables) {
    rig r;
    open_step(&r, "");
    ck_assert(!contains(extract(&r, presto_span_of_text(discussed)), "late again"));
    assert_has(&r, tabular, "12 crowns");
    rig_close(&r);
    open_step(&r, "comments: true, tables: false");
    assert_has(&r, discussed, "late again");
    ck_assert(!contains(extract(&r, presto_span_of_text(discussed)), "Reply"));
    ck_assert(!contains(extract(&r, presto_span_of_text(tabular)), "12 crowns"));
    rig_close(&r);
}
END_TEST

/* ---- hostile pages ---- */

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SCALE 8
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SCALE 8
#endif
#endif
#ifndef SCALE
#define SCALE 1
#endif

/* `units` copies of `unit` between two paragraphs. */
static presto_span repeat(const char *unit, size_t units) {
    static const char text[] = PARAGRAPH;
    size_t unit_bytes = strlen(unit), edge = sizeof text - 1;
    uint8_t *page = malloc(2 * edge + units * unit_bytes);
    ck_assert_ptr_nonnull(page);
    memcpy(page, text, edge);
    for (size_t i = 0; i < units; i++)
        memcpy(page + edge + i * unit_bytes, unit, unit_bytes);
    memcpy(page + edge + units * unit_bytes, text, edge);
    return presto_span_of(page, 2 * edge + units * unit_bytes);
}

/*
 * Repeated millions of times, each of these is quadratic somewhere in a parser that keeps a stack,
 * a list of formatting elements or a list of attributes. Quadratic time would be hours.
 */
static const char *const units[] = {
    "<div>",
    "<table><tr><td>",
    "</p>",
    "<div></p>",
    "<b><p>",
    "<a href=x>",
    "<i a=1><i b=2>",
    "<p>x",
    "<li>x",
    "<span>",
    "</span><span>",
    "<select><option>x",
    "<svg><g>",
    "<svg><title/>",
    "<math><mi>",
    "<button>",
    "<noscript>",
    "<template>",
    "<!--",
    "<!-- -->",
    "<![CDATA[",
    "<?",
    "<x",
    "</",
    "&",
    "&amp",
    "&#1",
    "\xff",
    "\xc2\xa0",
    "<br>",
    "x<br><br>",
    "<dl><dd><dt>",
    "<script><!--<script>",
    "<style></styl",
    "<form><input><h1>a",
    "<p class=\"a b c d comment\">a, b. ",
    "<x-y0 x-y1=\"",
};

START_TEST(pages_of_one_unit_take_linear_time) {
    rig r;
    open_step(&r, "");
    for (size_t i = 0; i < sizeof units / sizeof units[0]; i++) {
        presto_span page = repeat(units[i], (1 << 20) / SCALE / strlen(units[i]));
        extract(&r, page);
        free((void *)(uintptr_t)page.data);
    }
    rig_close(&r);
}
END_TEST

static void extract_large(const char *unit, size_t count) {
    presto_span page = repeat(unit, count / SCALE);
    rig r;
    open_step(&r, "");
    extract(&r, page);
    rig_close(&r);
    free((void *)(uintptr_t)page.data);
}

START_TEST(ten_megabytes_of_open_elements) {
    extract_large("<div>", 2 << 20);
}
END_TEST

START_TEST(a_hundred_thousand_nested_tables) {
    extract_large("<table><tr><td>cell ", 100000);
}
END_TEST

START_TEST(one_line_of_fifty_megabytes) {
    extract_large("word and another, ", (50 << 20) / 18);
}
END_TEST

START_TEST(a_tag_with_a_million_attributes) {
    rig r;
    open_step(&r, "");
    presto_span page = repeat("a b=c ", 1000000 / SCALE);
    uint8_t *bytes = (uint8_t *)(uintptr_t)page.data;
    memcpy(bytes + strlen(PARAGRAPH), "<p ", 3);
    extract(&r, page);
    free(bytes);
    rig_close(&r);
}
END_TEST

START_TEST(one_attribute_of_ten_megabytes) {
    rig r;
    open_step(&r, "");
    presto_span page = repeat("comment ", (10 << 20) / 8 / SCALE);
    uint8_t *bytes = (uint8_t *)(uintptr_t)page.data;
    memcpy(bytes + strlen(PARAGRAPH), "<p id=\"", 7);
    extract(&r, page);
    free(bytes);
    rig_close(&r);
}
END_TEST

START_TEST(zeros_and_control_characters_are_no_text) {
    uint8_t page[4096];
    rig r;
    open_step(&r, "content: any");
    memset(page, 0, sizeof page);
    ck_assert_uint_eq(extract(&r, presto_span_of(page, sizeof page)).bytes, 0);
    memcpy(page, PARAGRAPH, strlen(PARAGRAPH));
    presto_span text = extract(&r, presto_span_of(page, sizeof page));
    ck_assert_uint_gt(text.bytes, 0);
    for (size_t i = 0; i < text.bytes; i++)
        ck_assert(text.data[i] >= ' ' || text.data[i] == '\n');
    rig_close(&r);
}
END_TEST

START_TEST(pages_with_too_many_elements_are_refused) {
    rig r;
    presto_tensor out;
    presto_error err;
    rig_options options = {0};
    open_step(&r, "");
    presto_span page = repeat("<p>x", (size_t)(4 << 20) + 1);
    ck_assert_status(rig_run_bytes(&r, &options, page, &out, &err), PRESTO_ERR_LIMIT, &err);
    ck_assert_ptr_nonnull(strstr(err.message, "4194304"));
    free((void *)(uintptr_t)page.data);
    assert_has(&r, PARAGRAPH, "The ferry");
    rig_close(&r);
}
END_TEST

/* Every page cut anywhere, in memory that ends there. */
START_TEST(cut_pages_are_read_to_their_end) {
    rig r;
    open_step(&r, "");
    for (size_t i = 0; i < sizeof pages / sizeof pages[0]; i++) {
        presto_span page = read_golden(pages[i], ".html");
        for (size_t bytes = 0; bytes <= page.bytes; bytes += 1 + bytes / (256 / SCALE)) {
            uint8_t *cut = presto_check_copy(presto_span_of(page.data, bytes));
            extract(&r, presto_span_of(cut, bytes));
            free(cut);
        }
        free((void *)(uintptr_t)page.data);
    }
    rig_close(&r);
}
END_TEST

int main(void) {
    const TTest *const tests[] = {
        golden_pages_give_their_main_text,
        order_of_pages_does_not_matter,
        broken_utf8_becomes_replacement_characters,
        the_option_encoding_wins_over_declarations_but_not_over_a_mark,
        an_unknown_declared_encoding_is_found_out,
        references_and_white_space_are_resolved,
        empty_pages_give_empty_text,
        options_keep_comments_and_drop_tables,
        pages_of_one_unit_take_linear_time,
        ten_megabytes_of_open_elements,
        a_hundred_thousand_nested_tables,
        one_line_of_fifty_megabytes,
        a_tag_with_a_million_attributes,
        one_attribute_of_ten_megabytes,
        zeros_and_control_characters_are_no_text,
        pages_with_too_many_elements_are_refused,
        cut_pages_are_read_to_their_end,
    };
    if (presto__step_find("extract-text")->unsupported != NULL)
        return 0;
    return presto_check_main("extract-text", tests, sizeof tests / sizeof tests[0], 300);
}
