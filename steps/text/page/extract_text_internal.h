/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The parts of extract-text, in the order in which a page goes through them: its encoding, its
 * elements and blocks of text, the text that is written. extract_text_internal.h has the
 * choice among the blocks.
 * May see: steps_internal.h. All memory belongs to one worker thread and is kept from page to page.
 */
#ifndef PRESTO_STEPS_EXTRACT_TEXT_INTERNAL_H
#define PRESTO_STEPS_EXTRACT_TEXT_INTERNAL_H

#include "../../steps_internal.h"

/* ---- encoding: bytes -> UTF-8 ---- */

typedef struct presto__charset presto__charset;

/** NULL: no memory. */
presto__charset *presto__charset_new(void);
void presto__charset_free(presto__charset *charset);

/**
 * `in` as UTF-8. `wanted`: the name of the encoding, or NULL to find it out. What is no valid
 * character becomes U+FFFD. *text_out borrows from `in` or from `charset`, until the next call.
 * Returns: PRESTO_OK, PRESTO_ERR_MEMORY, PRESTO_ERR_UNSUPPORTED (`wanted` is not known).
 */
presto_status presto__charset_decode(presto__charset *charset, presto_span in, const char *wanted,
                                     presto_span *text_out, presto_error *err);

/** The charset that the page decoded last declares, if nobody knows it, and what the page was read
 * as instead. Empty: it declares none of that kind. Borrows from the page. */
presto_span presto__charset_unknown(const presto__charset *charset, const char **read_as_out);

/** Is it a label of the Encoding Standard, or does iconv know an encoding of this name? */
bool presto__charset_is_known(const char *name);

/* ---- HTML: UTF-8 -> tokens, by MyHTML ---- */

/* Elements as far as their differences matter. */
typedef enum presto__tag {
    PRESTO__TAG_DIV, /* and all other blocks without a meaning of their own */
    PRESTO__TAG_P,
    PRESTO__TAG_LI,
    PRESTO__TAG_LIST,
    PRESTO__TAG_DT,
    PRESTO__TAG_DD,
    PRESTO__TAG_DL,
    PRESTO__TAG_H1,
    PRESTO__TAG_H2,
    PRESTO__TAG_H3,
    PRESTO__TAG_H4, /* to h6 */
    PRESTO__TAG_TABLE,
    PRESTO__TAG_ROWS, /* thead, tbody, tfoot */
    PRESTO__TAG_TR,
    PRESTO__TAG_TD,
    PRESTO__TAG_TH,
    PRESTO__TAG_QUOTE,
    PRESTO__TAG_PRE,
    PRESTO__TAG_FIGURE,
    PRESTO__TAG_CAPTION,
    PRESTO__TAG_ARTICLE,
    PRESTO__TAG_MAIN,
    PRESTO__TAG_SECTION,
    PRESTO__TAG_NAV,
    PRESTO__TAG_ASIDE,
    PRESTO__TAG_HEADER,
    PRESTO__TAG_FOOTER,
    PRESTO__TAG_FORM,
    PRESTO__TAG_ADDRESS,
    PRESTO__TAG_BODY, /* up to here: blocks */
    PRESTO__TAG_SPAN, /* and all other elements inside lines that may hold more than a few words */
    PRESTO__TAG_INLINE, /* elements for emphasis and the like: only their text matters */
    PRESTO__TAG_A,
    PRESTO__TAG_BR,
    PRESTO__TAG_HR,
    PRESTO__TAG_VOID, /* without content: img, input, ... */
    PRESTO__TAG_SKIP, /* what is inside is no text of the page: button, select, svg, ... */
    PRESTO__TAG_RAW,  /* the next text is no text of the page: script, style, ... */
    PRESTO__TAG_TITLE,
    PRESTO__TAG_COUNT
} presto__tag;

typedef struct presto__html_attrs {
    presto_span class_names, id, style, role, itemprop, href;
    bool hidden, aria_hidden;
} presto__html_attrs;

/* What the tokens go to. All spans are raw (character references are not decoded) and borrow from
 * the page. */
typedef struct presto__html_sink {
    void *object;
    void (*text)(void *object, presto_span raw);
    void (*open)(void *object, presto__tag tag, const presto__html_attrs *attrs);
    void (*close)(void *object, presto__tag tag);
} presto__html_sink;

typedef struct presto__html presto__html;

/** NULL: no memory. */
presto__html *presto__html_new(void);
void presto__html_free(presto__html *html);

/** Hand all tokens of `page` to the sink. Time is linear in the page's bytes. PRESTO_ERR_MEMORY. */
presto_status presto__html_parse(presto__html *html, presto_span page,
                                 const presto__html_sink *sink, presto_error *err);

/**
 * Decode the character reference at the start of `raw` ("&..."), to at most 8 bytes. Returns the
 * bytes that it takes of `raw`, or 0 if it is none.
 */
size_t presto__html_reference(presto_span raw, char out[8], size_t *bytes_out);

/* ---- hints: what the names of classes and ids say ---- */

#define PRESTO__HINT_LIST(X)                                                                       \
    X(BODY)                                                                                        \
    X(ARTICLE)                                                                                     \
    X(CONTENT)                                                                                     \
    X(TEXT)                                                                                        \
    X(MAIN)                                                                                        \
    X(COMMENT)                                                                                     \
    X(SHARE)                                                                                       \
    X(RELATED)                                                                                     \
    X(NAV)                                                                                         \
    X(SIDE)                                                                                        \
    X(FOOT)                                                                                        \
    X(HEAD)                                                                                        \
    X(AD)                                                                                          \
    X(META)                                                                                        \
    X(CAPTION)                                                                                     \
    X(NEWSLETTER)                                                                                  \
    X(CONSENT)                                                                                     \
    X(POPUP)                                                                                       \
    X(WIDGET)                                                                                      \
    X(LISTING)                                                                                     \
    X(HIDDEN)                                                                                      \
    X(TAGS)                                                                                        \
    X(TITLE)                                                                                       \
    X(MEDIA)                                                                                       \
    X(SUMMARY)                                                                                     \
    X(TOOLS)                                                                                       \
    X(LEGAL)                                                                                       \
    X(TEASER)

enum {
#define PRESTO__HINT_NUMBER(name) PRESTO__HINT_NUMBER_##name,
    PRESTO__HINT_LIST(PRESTO__HINT_NUMBER)
#undef PRESTO__HINT_NUMBER
        PRESTO__HINT_COUNT
};
enum {
#define PRESTO__HINT_BIT(name) PRESTO__HINT_##name = 1 << PRESTO__HINT_NUMBER_##name,
    PRESTO__HINT_LIST(PRESTO__HINT_BIT)
#undef PRESTO__HINT_BIT
};

/** The hints of the words in a class or id attribute. */
uint32_t presto__hints_of(presto_span names);

/* ---- page: tokens -> elements and blocks ---- */

/* Deeper elements count as their ancestor at this depth. */
#define PRESTO__PAGE_MAX_DEPTH 512
/* Pages with more elements, or pieces of text, are refused. */
#define PRESTO__PAGE_MAX_ITEMS ((size_t)4 << 20)

typedef struct presto__node {
    uint32_t parent; /* the root is its own */
    uint32_t block_begin, block_end;
    uint32_t hints; /* of its own names */
    uint8_t tag;
    bool is_hidden; /* or inside one that is */
    bool is_body;   /* marked as the body of an article, or inside */
    uint8_t depth;
} presto__node;

/* A piece of text of the page, raw. bytes == 0: a line break. */
typedef struct presto__text_run {
    uint32_t at, bytes;
} presto__text_run;

/* Text without a block boundary inside: a paragraph, a heading, a menu entry, ... */
typedef struct presto__text_block {
    uint32_t node; /* the innermost element around it that is a block */
    uint32_t run_begin, run_end;
    uint32_t chars; /* without white space; ideographs count twice */
    uint32_t link_chars;
    uint32_t words;
    uint32_t hints; /* of links and other elements inside lines around its text */
    uint16_t commas, stops, digits, capitals, breaks, links;
    uint8_t first, last; /* bytes of its text */
    bool ends_sentence;
    float score;  /* of the forest */
    bool is_kept; /* the choice */
} presto__text_block;

/* What the text that comes next is. */
typedef enum presto__page_text {
    PRESTO__PAGE_WORDS = 0, /* of a block, unless the element is hidden */
    PRESTO__PAGE_CODE = 1,  /* of a script or a style sheet: nothing to read */
    PRESTO__PAGE_TITLE = 2  /* the page's title */
} presto__page_text;

typedef struct presto__page {
    presto_span text; /* UTF-8 */
    presto__node *nodes;
    presto__text_block *blocks;
    presto__text_run *runs;
    size_t node_count, block_count, run_count;
    size_t node_capacity, block_capacity, run_capacity;
    presto_span title; /* raw */
    /* while it is built */
    uint32_t open[PRESTO__PAGE_MAX_DEPTH]; /* the open elements: nodes */
    size_t depth, too_deep;
    uint32_t open_count[PRESTO__TAG_COUNT];
    size_t link_depth; /* depth at the open link, SIZE_MAX: none */
    bool link_counts;  /* it leads away from the page */
    bool link_is_new;  /* no text in it yet */
    uint32_t link_hints;
    bool in_block, after_space, after_break;
    presto__page_text in_text;
    presto_status status;
} presto__page;

void presto__page_init(presto__page *page);
void presto__page_done(presto__page *page);

/** Count the text `raw`, which follows in the block that the page is in. */
void presto__block_count(presto__page *page, presto__text_block *block, presto_span raw);

/* Counts that only matter while they are small. */
static inline void presto__add_u16(uint16_t *count) {
    if (*count < UINT16_MAX)
        ++*count;
}

/** Build elements and blocks of `text`, which must outlive them. PRESTO_ERR_MEMORY, _LIMIT. */
presto_status presto__page_build(presto__page *page, presto__html *html, presto_span text,
                                 presto_error *err);

/* ---- output ---- */

/** Append the text of the kept blocks, a line a block. PRESTO_ERR_MEMORY. */
presto_status presto__page_write(const presto__page *page, presto_buffer *out, presto_error *err);

/** Append the text of one block, after a line break if `out` has text already. */
presto_status presto__block_write(const presto__page *page, const presto__text_block *block,
                                  presto_buffer *out, presto_error *err);

/* ---- extract_text_choice.c: which blocks of a page are kept ---- */

/*
 * The choice among the blocks of a page, for extract-text: measures of elements and blocks, and the
 * forest that votes on them. All memory belongs to one worker thread and is kept from page to page.
 */

/* ---- measures: what the choice looks at ---- */

#define PRESTO__FEATURE_COUNT 219

/* Sums over the blocks inside an element. */
typedef struct presto__node_sums {
    float chars, link_chars;
    float good;        /* characters of good blocks: sentences with few links */
    float direct_good; /* of those right inside the element, or inside its paragraphs */
    float blocks;
    float score;    /* grows with the good blocks near the element */
    uint64_t tags;  /* bits: presto__tag of the element and its ancestors */
    uint32_t hints; /* of its own names and those of its ancestors */
} presto__node_sums;

typedef struct presto__block_sums {
    float good; /* characters of good blocks before it; one more entry than there are blocks */
    float chars;
    uint32_t text_hints; /* of its own words, if they are few */
    bool is_good, is_title, is_repeat, is_repeated;
} presto__block_sums;

typedef struct presto__measures {
    presto__node_sums *nodes;
    presto__block_sums *blocks;
    uint32_t *places; /* hash table for repeats: blocks, plus one */
    uint32_t *hashes;
    size_t node_capacity, block_capacity, place_capacity;
    /* of the whole page */
    uint32_t container; /* the element that most good blocks are in, and little else */
    float container_score;
    size_t first_good, last_good; /* in the container; SIZE_MAX: none */
    size_t first_h1, first_title; /* SIZE_MAX: none */
} presto__measures;

void presto__measures_done(presto__measures *measures);

/** Measure all of the page. PRESTO_ERR_MEMORY. */
presto_status presto__measures_take(presto__measures *measures, const presto__page *page,
                                    presto_error *err);

/** The features of block `at`, as the forest knows them. */
void presto__measures_features(const presto__measures *measures, const presto__page *page,
                               size_t at, float features[PRESTO__FEATURE_COUNT]);

/* ---- choice and output ---- */

typedef struct presto__choice_options {
    bool comments, tables;
} presto__choice_options;

/** Set is_kept of the blocks that are the main text. */
void presto__page_choose(presto__page *page, const presto__measures *measures,
                         const presto__choice_options *options);

/** The log odds that a block with these features belongs to the main text. */
float presto__forest_score(const float features[PRESTO__FEATURE_COUNT]);

#endif
