/* SPDX-License-Identifier: Apache-2.0 */
/*
 * HTML by MyHTML, its tokenizer only: a tree as HTML5 builds it takes quadratic time and memory on
 * hostile pages (open elements are searched for every tag, open formatting is repeated in every
 * block). Tokens are freed as soon as MyHTML does not look back at them, so that memory does not
 * grow with the page.
 */
#include "extract_text_internal.h"

#include <stdlib.h>
#include <strings.h>

#include <myhtml/charef.h>
#include <myhtml/myhtml.h>
#include <myhtml/token.h>
#include <myhtml/tree.h>

/* A parser that has read a page of more bytes is made anew: it never gives memory back. */
#define KEEP_PAGE_BYTES ((size_t)4 << 20)

struct presto__html {
    myhtml_t *parser;
    myhtml_tree_t *tree;
    /* of the page that is parsed */
    const presto__html_sink *sink;
    const uint8_t *page;
    myhtml_token_node_t *last, *before_last;
    bool in_foreign; /* inside <svg> or <math> */
    uint8_t tags[MyHTML_TAG_LAST_ENTRY];
};

typedef struct tag_entry {
    uint16_t id;
    uint8_t tag;
} tag_entry;

#define T(html, name)                                                                              \
    { MyHTML_TAG_##html, PRESTO__TAG_##name }

static const tag_entry tag_table[] = {
    T(P, P),
    T(LI, LI),
    T(UL, LIST),
    T(OL, LIST),
    T(MENU, LIST),
    T(DIR, LIST),
    T(DT, DT),
    T(DD, DD),
    T(DL, DL),
    T(H1, H1),
    T(H2, H2),
    T(H3, H3),
    T(H4, H4),
    T(H5, H4),
    T(H6, H4),
    T(TABLE, TABLE),
    T(THEAD, ROWS),
    T(TBODY, ROWS),
    T(TFOOT, ROWS),
    T(TR, TR),
    T(TD, TD),
    T(TH, TH),
    T(BLOCKQUOTE, QUOTE),
    T(PRE, PRE),
    T(LISTING, PRE),
    T(XMP, RAW),
    T(FIGURE, FIGURE),
    T(FIGCAPTION, CAPTION),
    T(CAPTION, CAPTION),
    T(ARTICLE, ARTICLE),
    T(MAIN, MAIN),
    T(SECTION, SECTION),
    T(NAV, NAV),
    T(ASIDE, ASIDE),
    T(HEADER, HEADER),
    T(HGROUP, HEADER),
    T(FOOTER, FOOTER),
    T(FORM, FORM),
    T(FIELDSET, FORM),
    T(ADDRESS, ADDRESS),
    T(BODY, BODY),
    T(DIV, DIV),
    T(CENTER, DIV),
    T(DETAILS, DIV),
    T(SUMMARY, DIV),
    T(HTML, DIV),
    T(HEAD, DIV),
    T(LEGEND, DIV),
    T(FRAMESET, DIV),
    T(MARQUEE, DIV),
    T(OPTGROUP, SKIP),
    T(COLGROUP, VOID),
    /* inside lines */
    T(B, INLINE),
    T(I, INLINE),
    T(EM, INLINE),
    T(STRONG, INLINE),
    T(FONT, INLINE),
    T(U, INLINE),
    T(S, INLINE),
    T(STRIKE, INLINE),
    T(SUP, INLINE),
    T(SUB, INLINE),
    T(SMALL, INLINE),
    T(BIG, INLINE),
    T(TT, INLINE),
    T(CODE, INLINE),
    T(KBD, INLINE),
    T(VAR, INLINE),
    T(SAMP, INLINE),
    T(CITE, INLINE),
    T(Q, INLINE),
    T(ABBR, INLINE),
    T(ACRONYM, INLINE),
    T(MARK, INLINE),
    T(INS, INLINE),
    T(DEL, INLINE),
    T(DFN, INLINE),
    T(BDI, INLINE),
    T(BDO, INLINE),
    T(RUBY, INLINE),
    T(RB, INLINE),
    T(RT, INLINE),
    T(RP, INLINE),
    T(NOBR, INLINE),
    T(BLINK, INLINE),
    T(A, A),
    T(BR, BR),
    T(HR, HR),
    /* without text */
    T(AREA, VOID),
    T(BASE, VOID),
    T(BASEFONT, VOID),
    T(BGSOUND, VOID),
    T(COL, VOID),
    T(COMMAND, VOID),
    T(EMBED, VOID),
    T(FRAME, VOID),
    T(IMAGE, VOID),
    T(IMG, VOID),
    T(INPUT, VOID),
    T(ISINDEX, VOID),
    T(KEYGEN, VOID),
    T(LINK, VOID),
    T(META, VOID),
    T(PARAM, VOID),
    T(SOURCE, VOID),
    T(TRACK, VOID),
    T(WBR, VOID),
    T(MENUITEM, VOID),
    T(BUTTON, SKIP),
    T(SELECT, SKIP),
    T(OPTION, SKIP),
    T(DATALIST, SKIP),
    T(OBJECT, SKIP),
    T(APPLET, SKIP),
    T(CANVAS, SKIP),
    T(AUDIO, SKIP),
    T(VIDEO, SKIP),
    T(MAP, SKIP),
    T(METER, SKIP),
    T(PROGRESS, SKIP),
    T(SVG, SKIP),
    T(TEMPLATE, SKIP),
    T(NOSCRIPT, SKIP),
    T(DIALOG, SKIP),
    T(SCRIPT, RAW),
    T(STYLE, RAW),
    T(TEXTAREA, RAW),
    T(IFRAME, RAW),
    T(NOEMBED, RAW),
    T(NOFRAMES, RAW),
    T(TITLE, TITLE),
};

#undef T

static presto_span span_at(const presto__html *html, size_t at, size_t bytes) {
    return (presto_span){html->page + at, bytes};
}

static bool is_named(presto_span name, const char *want) {
    return strncasecmp((const char *)name.data, want, name.bytes) == 0;
}

/* The longest name that read_attrs() knows is aria-hidden. */
static void read_attr(presto__html_attrs *attrs, presto_span name, presto_span value) {
    if (name.bytes == 5 && is_named(name, "class"))
        attrs->class_names = value;
    else if (name.bytes == 2 && is_named(name, "id"))
        attrs->id = value;
    else if (name.bytes == 4 && is_named(name, "href"))
        attrs->href = value;
    else if (name.bytes == 4 && is_named(name, "role"))
        attrs->role = value;
    else if (name.bytes == 5 && is_named(name, "style"))
        attrs->style = value;
    else if (name.bytes == 6 && is_named(name, "hidden"))
        attrs->hidden = true;
    else if (name.bytes == 8 && is_named(name, "itemprop"))
        attrs->itemprop = value;
    else if (name.bytes == 11 && is_named(name, "aria-hidden"))
        attrs->aria_hidden = value.bytes == 4 && is_named(value, "true");
}

static presto__html_attrs read_attrs(const presto__html *html, const myhtml_token_node_t *token) {
    presto__html_attrs attrs = {0};
    for (const myhtml_token_attr_t *attr = token->attr_first; attr != NULL; attr = attr->next)
        if (attr->raw_key_length >= 2 && attr->raw_key_length <= 11)
            read_attr(&attrs, span_at(html, attr->raw_key_begin, attr->raw_key_length),
                      span_at(html, attr->raw_value_begin, attr->raw_value_length));
    return attrs;
}

static bool is_foreign(const myhtml_token_node_t *token) {
    return token->tag_id == MyHTML_TAG_SVG || token->tag_id == MyHTML_TAG_MATH;
}

/*
 * Drawings and formulas have no text of the page. Elements in them that have the names of others
 * (title, style) do not change how the tokenizer reads, though it thinks so. A block ends them.
 * Returns: is the token inside?
 */
static bool skip_foreign(presto__html *html, const myhtml_token_node_t *token, presto__tag tag) {
    bool is_close = (token->type & MyHTML_TOKEN_TYPE_CLOSE) != 0;
    if (!html->in_foreign) {
        html->in_foreign =
            is_foreign(token) && !is_close && (token->type & MyHTML_TOKEN_TYPE_CLOSE_SELF) == 0;
        return is_foreign(token);
    }
    html->tree->state = MyHTML_TOKENIZER_STATE_DATA;
    html->in_foreign = !(is_close && is_foreign(token)) && tag >= PRESTO__TAG_SPAN;
    return tag >= PRESTO__TAG_SPAN;
}

static void handle(presto__html *html, const myhtml_token_node_t *token) {
    const presto__html_sink *sink = html->sink;
    if (token->tag_id == MyHTML_TAG__TEXT) {
        if (html->in_foreign)
            return;
        sink->text(sink->object, span_at(html, token->raw_begin, token->raw_length));
        return;
    }
    if (token->tag_id <= MyHTML_TAG__DOCTYPE || token->tag_id == MyHTML_TAG__END_OF_FILE)
        return;
    presto__tag tag =
        token->tag_id < MyHTML_TAG_LAST_ENTRY ? html->tags[token->tag_id] : PRESTO__TAG_SPAN;
    if (skip_foreign(html, token, tag))
        return;
    if (token->type & MyHTML_TOKEN_TYPE_CLOSE) {
        sink->close(sink->object, tag);
        return;
    }
    presto__html_attrs attrs = {0};
    if (tag != PRESTO__TAG_INLINE && tag != PRESTO__TAG_VOID)
        attrs = read_attrs(html, token);
    sink->open(sink->object, tag, &attrs);
}

static void delete_token(myhtml_token_t *pool, myhtml_token_node_t *token) {
    for (myhtml_token_attr_t *attr = token->attr_first; attr != NULL;) {
        myhtml_token_attr_t *next = attr == token->attr_last ? NULL : attr->next;
        mcobject_async_free(pool->attr_obj, attr);
        attr = next;
    }
    mcobject_async_free(pool->nodes_obj, token);
}

static void *take_token(myhtml_tree_t *tree, myhtml_token_node_t *token, void *object) {
    presto__html *html = object;
    handle(html, token);
    /* A builder of the tree would set this; the tokenizer waits for it before "<![CDATA[". */
    tree->token_last_done = token;
    /* The tokenizer looks back by one token. */
    if (html->before_last != NULL)
        delete_token(tree->token, html->before_last);
    html->before_last = html->last;
    html->last = token;
    return object;
}

static presto_status fail_parse(presto_error *err) {
    return presto_fail(err, PRESTO_ERR_MEMORY, PRESTO_NO_OFFSET, "no memory for the HTML parser");
}

static void close_parser(presto__html *html) {
    if (html->tree != NULL)
        myhtml_tree_destroy(html->tree);
    if (html->parser != NULL)
        myhtml_destroy(html->parser);
    html->tree = NULL;
    html->parser = NULL;
}

static bool open_parser(presto__html *html) {
    html->parser = myhtml_create();
    if (html->parser == NULL ||
        myhtml_init(html->parser, MyHTML_OPTIONS_PARSE_MODE_SINGLE, 1, 0) != MyHTML_STATUS_OK)
        return false;
    html->tree = myhtml_tree_create();
    if (html->tree == NULL || myhtml_tree_init(html->tree, html->parser) != MyHTML_STATUS_OK)
        return false;
    myhtml_tree_parse_flags_set(html->tree, MyHTML_TREE_PARSE_FLAGS_WITHOUT_PROCESS_TOKEN |
                                                MyHTML_TREE_PARSE_FLAGS_WITHOUT_DOCTYPE_IN_TREE);
    myhtml_callback_after_token_done_set(html->tree, take_token, html);
    return true;
}

presto__html *presto__html_new(void) {
    presto__html *html = calloc(1, sizeof *html);
    if (html == NULL)
        return NULL;
    memset(html->tags, PRESTO__TAG_SPAN, sizeof html->tags);
    for (size_t i = 0; i < sizeof tag_table / sizeof tag_table[0]; i++)
        html->tags[tag_table[i].id] = tag_table[i].tag;
    if (!open_parser(html)) {
        presto__html_free(html);
        return NULL;
    }
    return html;
}

void presto__html_free(presto__html *html) {
    if (html == NULL)
        return;
    close_parser(html);
    free(html);
}

presto_status presto__html_parse(presto__html *html, presto_span page,
                                 const presto__html_sink *sink, presto_error *err) {
    if (html->tree == NULL && !open_parser(html)) {
        close_parser(html);
        return fail_parse(err);
    }
    html->sink = sink;
    html->page = page.data;
    html->last = NULL;
    html->before_last = NULL;
    html->in_foreign = false;
    mystatus_t status =
        myhtml_parse(html->tree, MyENCODING_UTF_8, (const char *)page.data, page.bytes);
    if (page.bytes > KEEP_PAGE_BYTES || status != MyHTML_STATUS_OK)
        close_parser(html);
    return status == MyHTML_STATUS_OK ? PRESTO_OK : fail_parse(err);
}

/* ---- character references ---- */

static size_t write_utf8(uint32_t point, char *out) {
    if (point < 0x80) {
        out[0] = (char)point;
        return 1;
    }
    if (point < 0x800) {
        out[0] = (char)(0xc0 | point >> 6);
        out[1] = (char)(0x80 | (point & 0x3f));
        return 2;
    }
    if (point < 0x10000) {
        out[0] = (char)(0xe0 | point >> 12);
        out[1] = (char)(0x80 | (point >> 6 & 0x3f));
        out[2] = (char)(0x80 | (point & 0x3f));
        return 3;
    }
    out[0] = (char)(0xf0 | point >> 18);
    out[1] = (char)(0x80 | (point >> 12 & 0x3f));
    out[2] = (char)(0x80 | (point >> 6 & 0x3f));
    out[3] = (char)(0x80 | (point & 0x3f));
    return 4;
}

/* Browsers read &#128; to &#159; as the bytes of windows-1252. */
static uint32_t fix_point(uint32_t point) {
    static const uint16_t windows_1252[32] = {
        0x20ac, 0xfffd, 0x201a, 0x192,  0x201e, 0x2026, 0x2020, 0x2021, 0x2c6,  0x2030, 0x160,
        0x2039, 0x152,  0xfffd, 0x17d,  0xfffd, 0xfffd, 0x2018, 0x2019, 0x201c, 0x201d, 0x2022,
        0x2013, 0x2014, 0x2dc,  0x2122, 0x161,  0x203a, 0x153,  0xfffd, 0x17e,  0x178};
    if (point >= 0x80 && point < 0xa0)
        return windows_1252[point - 0x80];
    if (point == 0 || point > 0x10ffff || (point >= 0xd800 && point < 0xe000))
        return 0xfffd;
    return point;
}

static int digit_of(uint8_t byte, unsigned base) {
    int digit = -1;
    if (byte >= '0' && byte <= '9')
        digit = byte - '0';
    else if ((byte | 0x20) >= 'a' && (byte | 0x20) <= 'f')
        digit = (byte | 0x20) - 'a' + 10;
    return digit < (int)base ? digit : -1;
}

static size_t numeric_reference(presto_span raw, char out[8], size_t *bytes_out) {
    unsigned base = raw.bytes > 2 && (raw.data[2] | 0x20) == 'x' ? 16 : 10;
    size_t begin = base == 16 ? 3 : 2, at = begin;
    uint32_t point = 0;
    for (; at < raw.bytes && digit_of(raw.data[at], base) >= 0; at++)
        if (point <= 0x10ffff)
            point = point * base + (uint32_t)digit_of(raw.data[at], base);
    if (at == begin)
        return 0;
    *bytes_out = write_utf8(fix_point(point), out);
    return at < raw.bytes && raw.data[at] == ';' ? at + 1 : at;
}

/* MyHTML's table is a trie: `next` is the first of an entry's children, which are sorted by `ch`
 * and end with a zero; `cur_pos` is the entry's own place. */
static const charef_entry_t *longest_name(presto_span name, size_t *matched_out) {
    const charef_entry_t *first = myhtml_charef_get_first_position((char)name.data[0]);
    const charef_entry_t *table = first - first->cur_pos, *best = NULL;
    if (first->ch == 0)
        return NULL;
    size_t child = first->next;
    for (size_t at = 1; at < name.bytes && child != 0; at++) {
        while (table[child].ch != 0 && table[child].ch < name.data[at])
            child++;
        if (table[child].ch != name.data[at])
            break;
        if (table[child].codepoints_len > 0) {
            best = &table[child];
            *matched_out = at + 1;
        }
        child = table[child].next;
    }
    return best;
}

size_t presto__html_reference(presto_span raw, char out[8], size_t *bytes_out) {
    size_t matched = 0;
    if (raw.bytes < 3)
        return 0;
    if (raw.data[1] == '#')
        return numeric_reference(raw, out, bytes_out);
    const charef_entry_t *entry =
        longest_name((presto_span){raw.data + 1, raw.bytes - 1}, &matched);
    if (entry == NULL)
        return 0;
    size_t bytes = write_utf8((uint32_t)entry->codepoints[0], out);
    if (entry->codepoints_len > 1)
        bytes += write_utf8((uint32_t)entry->codepoints[1], out + bytes);
    *bytes_out = bytes;
    return 1 + matched;
}
