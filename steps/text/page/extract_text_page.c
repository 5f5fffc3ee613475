/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tokens -> elements and blocks. Forgiving as browsers are where it matters (end tags that may be
 * left out, stray ones), but never deeper than PRESTO__PAGE_MAX_DEPTH, so that a page takes time
 * and memory in proportion to its bytes.
 */
#include <stdlib.h>
#include <strings.h>

#include "extract_text_internal.h"

/* Arrays larger than this are given back before the next page. */
#define KEEP_ITEMS ((size_t)1 << 18)
#define NO_LINK SIZE_MAX

/* Make room for one more item. */
static bool grow(presto__page *page, void **items, size_t *capacity, size_t count, size_t bytes) {
    if (count < *capacity)
        return true;
    if (page->status < 0)
        return false;
    size_t wanted = *capacity == 0 ? 1024 : 2 * *capacity;
    void *larger = wanted > PRESTO__PAGE_MAX_ITEMS ? NULL : realloc(*items, wanted * bytes);
    if (larger == NULL) {
        page->status = wanted > PRESTO__PAGE_MAX_ITEMS ? PRESTO_ERR_LIMIT : PRESTO_ERR_MEMORY;
        return false;
    }
    *items = larger;
    *capacity = wanted;
    return true;
}

static presto__node *top_node(presto__page *page) {
    return &page->nodes[page->open[page->depth - 1]];
}

/* Elements inside lines do not end blocks. */
static bool is_in_line(uint8_t tag) {
    return tag == PRESTO__TAG_SPAN || tag == PRESTO__TAG_SKIP;
}

/* ---- blocks ---- */

static void end_block(presto__page *page) {
    if (!page->in_block)
        return;
    presto__text_block *block = &page->blocks[page->block_count - 1];
    page->in_block = false;
    if (block->chars > 0) {
        block->run_end = (uint32_t)page->run_count;
    } else {
        page->run_count = block->run_begin;
        page->block_count--;
    }
}

static bool begin_block(presto__page *page) {
    if (page->in_block)
        return true;
    if (!grow(page, (void **)&page->blocks, &page->block_capacity, page->block_count,
              sizeof *page->blocks))
        return false;
    size_t at = page->depth - 1;
    while (at > 0 && is_in_line(page->nodes[page->open[at]].tag))
        at--;
    page->blocks[page->block_count++] = (presto__text_block){
        .node = page->open[at],
        .run_begin = (uint32_t)page->run_count,
    };
    page->in_block = true;
    page->after_space = true;
    page->after_break = false;
    return true;
}

static void add_run(presto__page *page, size_t at, size_t bytes) {
    if (grow(page, (void **)&page->runs, &page->run_capacity, page->run_count, sizeof *page->runs))
        page->runs[page->run_count++] = (presto__text_run){(uint32_t)at, (uint32_t)bytes};
}

/* ---- text ---- */

static bool is_blank(presto_span raw) {
    for (size_t i = 0; i < raw.bytes; i++)
        if (raw.data[i] > ' ')
            return false;
    return true;
}

/* Names of the elements inside the line, and of the link, that the text is in. */
static void note_surroundings(presto__page *page, presto__text_block *block) {
    for (size_t at = page->depth; at-- > 1 && is_in_line(page->nodes[page->open[at]].tag);)
        block->hints |= page->nodes[page->open[at]].hints;
    if (page->link_depth == NO_LINK)
        return;
    block->hints |= page->link_hints;
    if (page->link_is_new)
        presto__add_u16(&block->links);
    page->link_is_new = false;
}

static void take_text(void *object, presto_span raw) {
    presto__page *page = object;
    if (page->in_text == PRESTO__PAGE_TITLE) {
        if (page->title.bytes == 0)
            page->title = raw;
        return;
    }
    if (page->in_text == PRESTO__PAGE_CODE || top_node(page)->is_hidden ||
        (!page->in_block && is_blank(raw)))
        return;
    if (!begin_block(page))
        return;
    presto__text_block *block = &page->blocks[page->block_count - 1];
    note_surroundings(page, block);
    presto__block_count(page, block, raw);
    add_run(page, (size_t)(raw.data - page->text.data), raw.bytes);
}

/* Two line breaks in a row end a paragraph. */
static void take_line_break(presto__page *page) {
    if (!page->in_block)
        return;
    if (page->after_break) {
        end_block(page);
        return;
    }
    presto__add_u16(&page->blocks[page->block_count - 1].breaks);
    page->after_break = true;
    page->after_space = true;
    add_run(page, 0, 0);
}

/* ---- elements ---- */

static bool contains_word(presto_span text, const char *word) {
    size_t bytes = strlen(word);
    for (size_t i = 0; i + bytes <= text.bytes; i++)
        if (strncasecmp((const char *)text.data + i, word, bytes) == 0)
            return true;
    return false;
}

static bool hides(const presto__html_attrs *attrs) {
    if (attrs->hidden || attrs->aria_hidden)
        return true;
    /* "display:none", with a space or without */
    for (size_t i = 0; i + 12 <= attrs->style.bytes; i++) {
        presto_span rest = {attrs->style.data + i, attrs->style.bytes - i};
        if ((rest.data[0] | 0x20) != 'd' ||
            strncasecmp((const char *)rest.data, "display:", 8) != 0)
            continue;
        size_t at = rest.data[8] == ' ' ? 9 : 8;
        if (at + 4 <= rest.bytes && strncasecmp((const char *)rest.data + at, "none", 4) == 0)
            return true;
    }
    return false;
}

static uint32_t hints_of_role(presto_span role) {
    if (contains_word(role, "navigation") || contains_word(role, "menu"))
        return PRESTO__HINT_NAV;
    if (contains_word(role, "complementary"))
        return PRESTO__HINT_SIDE;
    if (contains_word(role, "contentinfo"))
        return PRESTO__HINT_FOOT;
    if (contains_word(role, "banner") || contains_word(role, "search"))
        return PRESTO__HINT_HEAD;
    if (contains_word(role, "dialog") || contains_word(role, "alert"))
        return PRESTO__HINT_POPUP;
    return contains_word(role, "main") ? PRESTO__HINT_MAIN : 0;
}

static void set_node(presto__node *node, const presto__node *parent, presto__tag tag,
                     const presto__html_attrs *attrs) {
    node->tag = (uint8_t)tag;
    node->is_hidden = parent->is_hidden || tag == PRESTO__TAG_SKIP;
    node->is_body = parent->is_body;
    node->depth = parent->depth < UINT8_MAX ? (uint8_t)(parent->depth + 1) : UINT8_MAX;
    if (attrs->class_names.bytes > 0)
        node->hints |= presto__hints_of(attrs->class_names);
    if (attrs->id.bytes > 0)
        node->hints |= presto__hints_of(attrs->id);
    if (attrs->role.bytes > 0)
        node->hints |= hints_of_role(attrs->role);
    if (attrs->itemprop.bytes > 0 && contains_word(attrs->itemprop, "articleBody"))
        node->is_body = true;
    if (tag != PRESTO__TAG_BODY && hides(attrs))
        node->is_hidden = true;
    /* Pages put hints on the whole body that are true of parts only. */
    if (tag == PRESTO__TAG_BODY)
        node->hints = 0;
}

static void push(presto__page *page, presto__tag tag, const presto__html_attrs *attrs) {
    if (page->depth == PRESTO__PAGE_MAX_DEPTH) {
        page->too_deep++;
        return;
    }
    if (!grow(page, (void **)&page->nodes, &page->node_capacity, page->node_count,
              sizeof *page->nodes))
        return;
    uint32_t parent = page->open[page->depth - 1];
    presto__node *node = &page->nodes[page->node_count];
    *node = (presto__node){.parent = parent, .block_begin = (uint32_t)page->block_count};
    set_node(node, &page->nodes[parent], tag, attrs);
    page->open[page->depth++] = (uint32_t)page->node_count++;
    page->open_count[tag]++;
}

static void end_link(presto__page *page) {
    page->link_depth = NO_LINK;
    page->link_counts = false;
}

static void pop(presto__page *page) {
    presto__node *node = top_node(page);
    if (!is_in_line(node->tag))
        end_block(page);
    node->block_end = (uint32_t)page->block_count;
    page->open_count[node->tag]--;
    page->depth--;
    if (page->link_depth != NO_LINK && page->depth < page->link_depth)
        end_link(page);
}

/* End tags and implied ends do not reach out of these. */
static bool is_boundary(uint8_t tag, presto__tag wanted) {
    switch ((int)tag) {
    case PRESTO__TAG_BODY:
        return true;
    case PRESTO__TAG_TABLE:
        return wanted != PRESTO__TAG_TABLE;
    case PRESTO__TAG_TD:
    case PRESTO__TAG_TH:
        return wanted != PRESTO__TAG_TABLE && wanted != PRESTO__TAG_TR &&
               wanted != PRESTO__TAG_ROWS && wanted != PRESTO__TAG_TD && wanted != PRESTO__TAG_TH;
    case PRESTO__TAG_LIST:
        return wanted == PRESTO__TAG_LI || wanted == PRESTO__TAG_P;
    case PRESTO__TAG_DL:
        return wanted == PRESTO__TAG_DT || wanted == PRESTO__TAG_DD || wanted == PRESTO__TAG_P;
    default:
        /* A stray end tag of an element inside a line ends nothing around a block; </p> ends
         * elements inside lines only. */
        if (wanted == PRESTO__TAG_SPAN || wanted == PRESTO__TAG_P)
            return !is_in_line(tag);
        return false;
    }
}

/* Close the innermost open element of this tag, and those inside it. */
static bool close_open(presto__page *page, presto__tag tag) {
    if (page->open_count[tag] == 0)
        return false;
    for (size_t at = page->depth; at-- > 1;) {
        uint8_t open = page->nodes[page->open[at]].tag;
        if (open == tag) {
            while (page->depth > at)
                pop(page);
            return true;
        }
        if (is_boundary(open, tag))
            return false;
    }
    return false;
}

/* Close what ends where an element of this tag begins. */
static void close_implied(presto__page *page, presto__tag tag) {
    switch ((int)tag) {
    case PRESTO__TAG_LI:
        close_open(page, PRESTO__TAG_LI);
        break;
    case PRESTO__TAG_DT:
    case PRESTO__TAG_DD:
        if (!close_open(page, PRESTO__TAG_DD))
            close_open(page, PRESTO__TAG_DT);
        break;
    case PRESTO__TAG_TD:
    case PRESTO__TAG_TH:
        if (!close_open(page, PRESTO__TAG_TD))
            close_open(page, PRESTO__TAG_TH);
        break;
    case PRESTO__TAG_TR:
        close_open(page, PRESTO__TAG_TR);
        break;
    case PRESTO__TAG_ROWS:
        close_open(page, PRESTO__TAG_ROWS);
        break;
    default:
        close_open(page, PRESTO__TAG_P);
    }
}

static void open_link(presto__page *page, const presto__html_attrs *attrs) {
    end_link(page);
    if (attrs->href.bytes == 0)
        return;
    page->link_depth = page->depth;
    page->link_counts = attrs->href.data[0] != '#';
    page->link_is_new = true;
    page->link_hints = presto__hints_of(attrs->class_names);
}

static void take_open(void *object, presto__tag tag, const presto__html_attrs *attrs) {
    presto__page *page = object;
    page->in_text = tag == PRESTO__TAG_RAW     ? PRESTO__PAGE_CODE
                    : tag == PRESTO__TAG_TITLE ? PRESTO__PAGE_TITLE
                                               : PRESTO__PAGE_WORDS;
    switch ((int)tag) {
    case PRESTO__TAG_INLINE:
    case PRESTO__TAG_VOID:
    case PRESTO__TAG_RAW:
    case PRESTO__TAG_TITLE:
    case PRESTO__TAG_BODY: /* all is inside the one that the page begins with */
        return;
    case PRESTO__TAG_A:
        open_link(page, attrs);
        return;
    case PRESTO__TAG_BR:
        take_line_break(page);
        return;
    case PRESTO__TAG_HR:
        end_block(page);
        return;
    case PRESTO__TAG_SPAN:
    case PRESTO__TAG_SKIP:
        push(page, tag, attrs);
        return;
    default:
        end_block(page);
        close_implied(page, tag);
        push(page, tag, attrs);
    }
}

static void take_close(void *object, presto__tag tag) {
    presto__page *page = object;
    page->in_text = PRESTO__PAGE_WORDS;
    switch ((int)tag) {
    case PRESTO__TAG_INLINE:
    case PRESTO__TAG_VOID:
    case PRESTO__TAG_RAW:
    case PRESTO__TAG_TITLE:
    case PRESTO__TAG_BODY:
    case PRESTO__TAG_HR:
        return;
    case PRESTO__TAG_A:
        end_link(page);
        return;
    case PRESTO__TAG_BR:
        take_line_break(page);
        return;
    default:
        if (tag != PRESTO__TAG_SPAN && tag != PRESTO__TAG_SKIP)
            end_block(page);
        if (page->too_deep > 0)
            page->too_deep--;
        else
            close_open(page, tag);
    }
}

/* ---- the page ---- */

void presto__page_init(presto__page *page) {
    memset(page, 0, sizeof *page);
}

void presto__page_done(presto__page *page) {
    free(page->nodes);
    free(page->blocks);
    free(page->runs);
    presto__page_init(page);
}

static void reset(presto__page *page, presto_span text) {
    if (page->node_capacity > KEEP_ITEMS || page->block_capacity > KEEP_ITEMS ||
        page->run_capacity > KEEP_ITEMS)
        presto__page_done(page);
    page->text = text;
    page->node_count = 0;
    page->block_count = 0;
    page->run_count = 0;
    page->title = (presto_span){0};
    page->depth = 0;
    page->too_deep = 0;
    memset(page->open_count, 0, sizeof page->open_count);
    end_link(page);
    page->in_block = false;
    page->in_text = PRESTO__PAGE_WORDS;
    page->status = PRESTO_OK;
}

static bool open_root(presto__page *page) {
    if (!grow(page, (void **)&page->nodes, &page->node_capacity, 0, sizeof *page->nodes))
        return false;
    page->nodes[0] = (presto__node){.tag = PRESTO__TAG_BODY};
    page->node_count = 1;
    page->open[0] = 0;
    page->depth = 1;
    page->open_count[PRESTO__TAG_BODY] = 1;
    return true;
}

presto_status presto__page_build(presto__page *page, presto__html *html, presto_span text,
                                 presto_error *err) {
    reset(page, text);
    if (text.bytes > UINT32_MAX)
        return presto_fail(err, PRESTO_ERR_LIMIT, PRESTO_NO_OFFSET,
                           "page of %zu bytes, limit 4 GiB", text.bytes);
    if (open_root(page)) {
        const presto__html_sink sink = {page, take_text, take_open, take_close};
        PRESTO_TRY(presto__html_parse(html, text, &sink, err));
        while (page->depth > 0)
            pop(page);
    }
    if (page->status == PRESTO_ERR_LIMIT)
        return presto_fail(err, PRESTO_ERR_LIMIT, PRESTO_NO_OFFSET,
                           "page of more than %zu elements or pieces of text",
                           PRESTO__PAGE_MAX_ITEMS);
    return page->status < 0 ? presto_fail_memory(err, 0) : PRESTO_OK;
}
