/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What names of classes and ids say about an element. "articleBody-share_tools" has the words
 * article, body, share and tools; a word counts as the longest word of the tables that it begins
 * with.
 */
#include "extract_text_internal.h"

typedef struct hint_word {
    const char *word;
    uint8_t bytes;
    bool whole; /* longer words do not count */
    uint32_t hints;
} hint_word;

#define WORDS(table)                                                                               \
    { table, sizeof table / sizeof table[0] }

/* Longer words before shorter ones. */
static const hint_word words_a[] = {
    {"advertisement", 13, false, PRESTO__HINT_AD},
    {"articlebody", 11, false, PRESTO__HINT_BODY | PRESTO__HINT_ARTICLE},
    {"abstract", 8, false, PRESTO__HINT_SUMMARY},
    {"addtoany", 8, false, PRESTO__HINT_SHARE},
    {"account", 7, false, PRESTO__HINT_NEWSLETTER},
    {"actions", 7, false, PRESTO__HINT_TOOLS},
    {"addthis", 7, false, PRESTO__HINT_SHARE},
    {"adsense", 7, false, PRESTO__HINT_AD},
    {"anzeige", 7, false, PRESTO__HINT_AD},
    {"archive", 7, false, PRESTO__HINT_LISTING},
    {"article", 7, false, PRESTO__HINT_ARTICLE},
    {"adslot", 6, false, PRESTO__HINT_AD},
    {"adunit", 6, false, PRESTO__HINT_AD},
    {"advert", 6, false, PRESTO__HINT_AD},
    {"answer", 6, false, PRESTO__HINT_COMMENT},
    {"author", 6, false, PRESTO__HINT_META},
    {"avatar", 6, false, PRESTO__HINT_META},
    {"about", 5, false, PRESTO__HINT_META},
    {"alert", 5, false, PRESTO__HINT_POPUP},
    {"aside", 5, false, PRESTO__HINT_SIDE},
    {"audio", 5, false, PRESTO__HINT_MEDIA},
    {"also", 4, false, PRESTO__HINT_RELATED},
    {"ads", 3, true, PRESTO__HINT_AD},
    {"adv", 3, true, PRESTO__HINT_AD},
    {"ad", 2, true, PRESTO__HINT_AD},
};
static const hint_word words_b[] = {
    {"breadcrumb", 10, false, PRESTO__HINT_NAV},
    {"bodytext", 8, false, PRESTO__HINT_BODY | PRESTO__HINT_TEXT},
    {"banner", 6, false, PRESTO__HINT_HEAD},
    {"bottom", 6, false, PRESTO__HINT_FOOT},
    {"button", 6, false, PRESTO__HINT_TOOLS},
    {"byline", 6, false, PRESTO__HINT_META},
    {"brand", 5, false, PRESTO__HINT_HEAD},
    {"blog", 4, false, PRESTO__HINT_ARTICLE},
    {"body", 4, false, PRESTO__HINT_BODY},
    {"bio", 3, true, PRESTO__HINT_META},
    {"box", 3, true, PRESTO__HINT_WIDGET},
    {"btn", 3, false, PRESTO__HINT_TOOLS},
};
static const hint_word words_c[] = {
    {"contentinfo", 11, false, PRESTO__HINT_FOOT},
    {"categories", 10, false, PRESTO__HINT_META},
    {"comentario", 10, false, PRESTO__HINT_COMMENT},
    {"commercial", 10, false, PRESTO__HINT_AD},
    {"copyright", 9, false, PRESTO__HINT_LEGAL | PRESTO__HINT_FOOT},
    {"carousel", 8, false, PRESTO__HINT_LISTING},
    {"category", 8, false, PRESTO__HINT_META},
    {"clearfix", 8, false, 0},
    {"colophon", 8, false, PRESTO__HINT_FOOT},
    {"commento", 8, false, PRESTO__HINT_COMMENT},
    {"contents", 8, false, PRESTO__HINT_CONTENT},
    {"caption", 7, false, PRESTO__HINT_CAPTION},
    {"comment", 7, false, PRESTO__HINT_COMMENT},
    {"consent", 7, false, PRESTO__HINT_CONSENT},
    {"contact", 7, false, PRESTO__HINT_META},
    {"content", 7, false, PRESTO__HINT_CONTENT},
    {"cookie", 6, false, PRESTO__HINT_CONSENT},
    {"credit", 6, false, PRESTO__HINT_CAPTION},
    {"crumb", 5, false, PRESTO__HINT_NAV},
    {"card", 4, false, PRESTO__HINT_LISTING},
    {"copy", 4, true, PRESTO__HINT_TEXT},
    {"cat", 3, true, PRESTO__HINT_META},
    {"cmp", 3, true, PRESTO__HINT_CONSENT},
    {"cta", 3, true, PRESTO__HINT_NEWSLETTER},
};
static const hint_word words_d[] = {
    {"description", 11, false, PRESTO__HINT_SUMMARY},
    {"disclaimer", 10, false, PRESTO__HINT_LEGAL},
    {"dateline", 8, false, PRESTO__HINT_META},
    {"download", 8, false, PRESTO__HINT_TOOLS},
    {"dropdown", 8, false, PRESTO__HINT_NAV},
    {"discuss", 7, false, PRESTO__HINT_COMMENT},
    {"dialog", 6, false, PRESTO__HINT_POPUP},
    {"disqus", 6, false, PRESTO__HINT_COMMENT},
    {"donate", 6, false, PRESTO__HINT_NEWSLETTER},
    {"date", 4, false, PRESTO__HINT_META},
    {"deck", 4, true, PRESTO__HINT_SUMMARY},
    {"dek", 3, true, PRESTO__HINT_SUMMARY},
    {"dfp", 3, true, PRESTO__HINT_AD},
};
static const hint_word words_e[] = {
    {"excerpt", 7, false, PRESTO__HINT_SUMMARY},
    {"embed", 5, false, PRESTO__HINT_MEDIA},
    {"entry", 5, false, PRESTO__HINT_ARTICLE},
    {"extra", 5, false, PRESTO__HINT_RELATED},
};
static const hint_word words_f[] = {
    {"figcaption", 10, false, PRESTO__HINT_CAPTION},
    {"facebook", 8, false, PRESTO__HINT_SHARE},
    {"featured", 8, false, PRESTO__HINT_RELATED},
    {"feedback", 8, false, PRESTO__HINT_TOOLS},
    {"footnote", 8, false, 0},
    {"further", 7, false, PRESTO__HINT_RELATED},
    {"figure", 6, false, PRESTO__HINT_MEDIA},
    {"flyout", 6, false, PRESTO__HINT_POPUP},
    {"follow", 6, false, PRESTO__HINT_SHARE},
    {"footer", 6, false, PRESTO__HINT_FOOT},
    {"feed", 4, true, PRESTO__HINT_LISTING},
    {"foot", 4, false, PRESTO__HINT_FOOT},
    {"form", 4, true, PRESTO__HINT_TOOLS},
};
static const hint_word words_g[] = {
    {"gallery", 7, false, PRESTO__HINT_MEDIA},
    {"gdpr", 4, false, PRESTO__HINT_CONSENT},
    {"grid", 4, false, PRESTO__HINT_LISTING},
    {"gpt", 3, true, PRESTO__HINT_AD},
};
static const hint_word words_h[] = {
    {"highlights", 10, false, PRESTO__HINT_SUMMARY}, {"headlines", 9, false, PRESTO__HINT_LISTING},
    {"headline", 8, false, PRESTO__HINT_TITLE},      {"heading", 7, false, PRESTO__HINT_TITLE},
    {"header", 6, false, PRESTO__HINT_HEAD},         {"hentry", 6, false, PRESTO__HINT_ARTICLE},
    {"hidden", 6, false, PRESTO__HINT_HIDDEN},       {"head", 4, true, PRESTO__HINT_HEAD},
    {"hide", 4, true, PRESTO__HINT_HIDDEN},
};
static const hint_word words_i[] = {
    {"invisible", 9, false, PRESTO__HINT_HIDDEN},
    {"infobox", 7, false, PRESTO__HINT_SIDE},
    {"inline", 6, false, 0},
    {"image", 5, false, PRESTO__HINT_MEDIA},
    {"intro", 5, false, PRESTO__HINT_SUMMARY},
    {"items", 5, true, PRESTO__HINT_LISTING},
    {"info", 4, false, PRESTO__HINT_META},
    {"item", 4, true, PRESTO__HINT_LISTING},
    {"img", 3, true, PRESTO__HINT_MEDIA},
};
static const hint_word words_k[] = {
    {"kommentar", 9, false, PRESTO__HINT_COMMENT},
    {"keyword", 7, false, PRESTO__HINT_TAGS},
    {"kicker", 6, false, PRESTO__HINT_TITLE},
};
static const hint_word words_l[] = {
    {"lightbox", 8, false, PRESTO__HINT_POPUP},   {"linkedin", 8, false, PRESTO__HINT_SHARE},
    {"livefyre", 8, false, PRESTO__HINT_COMMENT}, {"license", 7, false, PRESTO__HINT_LEGAL},
    {"listing", 7, false, PRESTO__HINT_LISTING},  {"latest", 6, false, PRESTO__HINT_RELATED},
    {"legend", 6, false, PRESTO__HINT_CAPTION},   {"label", 5, false, PRESTO__HINT_TAGS},
    {"legal", 5, false, PRESTO__HINT_LEGAL},      {"likes", 5, true, PRESTO__HINT_SHARE},
    {"links", 5, false, PRESTO__HINT_NAV},        {"login", 5, false, PRESTO__HINT_NEWSLETTER},
    {"lead", 4, true, PRESTO__HINT_SUMMARY},      {"lede", 4, true, PRESTO__HINT_SUMMARY},
    {"like", 4, true, PRESTO__HINT_SHARE},        {"list", 4, true, PRESTO__HINT_LISTING},
    {"logo", 4, false, PRESTO__HINT_HEAD},
};
static const hint_word words_m[] = {
    {"mostpopular", 11, false, PRESTO__HINT_RELATED},
    {"membership", 10, false, PRESTO__HINT_NEWSLETTER},
    {"mailchimp", 9, false, PRESTO__HINT_NEWSLETTER},
    {"marketing", 9, false, PRESTO__HINT_AD},
    {"maintext", 8, false, PRESTO__HINT_MAIN | PRESTO__HINT_TEXT},
    {"masthead", 8, false, PRESTO__HINT_HEAD},
    {"mostread", 8, false, PRESTO__HINT_RELATED},
    {"mailing", 7, false, PRESTO__HINT_NEWSLETTER},
    {"module", 6, false, PRESTO__HINT_WIDGET},
    {"media", 5, false, PRESTO__HINT_MEDIA},
    {"modal", 5, false, PRESTO__HINT_POPUP},
    {"main", 4, false, PRESTO__HINT_MAIN},
    {"menu", 4, false, PRESTO__HINT_NAV},
    {"meta", 4, false, PRESTO__HINT_META},
    {"more", 4, true, PRESTO__HINT_RELATED},
    {"most", 4, true, PRESTO__HINT_RELATED},
};
static const hint_word words_n[] = {
    {"notification", 12, false, PRESTO__HINT_POPUP},
    {"newsletter", 10, false, PRESTO__HINT_NEWSLETTER},
    {"noprint", 7, false, PRESTO__HINT_HIDDEN},
    {"notice", 6, false, PRESTO__HINT_LEGAL},
    {"navi", 4, false, PRESTO__HINT_NAV},
    {"news", 4, false, PRESTO__HINT_ARTICLE},
    {"next", 4, true, PRESTO__HINT_NAV},
    {"note", 4, true, PRESTO__HINT_SUMMARY},
    {"nav", 3, false, PRESTO__HINT_NAV},
};
static const hint_word words_o[] = {
    {"offscreen", 9, false, PRESTO__HINT_HIDDEN}, {"onetrust", 8, false, PRESTO__HINT_CONSENT},
    {"outbrain", 8, false, PRESTO__HINT_RELATED}, {"overlay", 7, false, PRESTO__HINT_POPUP},
    {"optin", 5, false, PRESTO__HINT_NEWSLETTER},
};
static const hint_word words_p[] = {
    {"pagination", 10, false, PRESTO__HINT_NAV}, {"publicidad", 10, false, PRESTO__HINT_AD},
    {"paragraph", 9, false, PRESTO__HINT_TEXT},  {"pinterest", 9, false, PRESTO__HINT_SHARE},
    {"published", 9, false, PRESTO__HINT_META},  {"previous", 8, false, PRESTO__HINT_NAV},
    {"partner", 7, false, PRESTO__HINT_AD},      {"paywall", 7, false, PRESTO__HINT_NEWSLETTER},
    {"picture", 7, false, PRESTO__HINT_MEDIA},   {"podcast", 7, false, PRESTO__HINT_MEDIA},
    {"popular", 7, false, PRESTO__HINT_RELATED}, {"premium", 7, false, PRESTO__HINT_NEWSLETTER},
    {"primary", 7, false, PRESTO__HINT_MAIN},    {"privacy", 7, false, PRESTO__HINT_CONSENT},
    {"product", 7, false, PRESTO__HINT_TEASER},  {"profile", 7, false, PRESTO__HINT_META},
    {"paging", 6, false, PRESTO__HINT_NAV},      {"player", 6, false, PRESTO__HINT_MEDIA},
    {"posted", 6, false, PRESTO__HINT_META},     {"pager", 5, false, PRESTO__HINT_NAV},
    {"photo", 5, false, PRESTO__HINT_MEDIA},     {"popup", 5, false, PRESTO__HINT_POPUP},
    {"print", 5, true, PRESTO__HINT_HIDDEN},     {"promo", 5, false, PRESTO__HINT_AD},
    {"prose", 5, false, PRESTO__HINT_TEXT},      {"page", 4, true, PRESTO__HINT_MAIN},
    {"poll", 4, true, PRESTO__HINT_TOOLS},       {"post", 4, false, PRESTO__HINT_ARTICLE},
    {"prev", 4, true, PRESTO__HINT_NAV},
};
static const hint_word words_q[] = {
    {"question", 8, false, PRESTO__HINT_COMMENT},
    {"quiz", 4, true, PRESTO__HINT_TOOLS},
};
static const hint_word words_r[] = {
    {"registration", 12, false, PRESTO__HINT_NEWSLETTER},
    {"references", 10, false, 0},
    {"recommend", 9, false, PRESTO__HINT_RELATED},
    {"reaction", 8, false, PRESTO__HINT_SHARE},
    {"readmore", 8, false, PRESTO__HINT_RELATED},
    {"register", 8, false, PRESTO__HINT_NEWSLETTER},
    {"richtext", 8, false, PRESTO__HINT_TEXT},
    {"reklama", 7, false, PRESTO__HINT_AD},
    {"related", 7, false, PRESTO__HINT_RELATED},
    {"replies", 7, false, PRESTO__HINT_COMMENT},
    {"respond", 7, false, PRESTO__HINT_COMMENT},
    {"rating", 6, false, PRESTO__HINT_TOOLS},
    {"recent", 6, false, PRESTO__HINT_RELATED},
    {"recirc", 6, false, PRESTO__HINT_RELATED},
    {"review", 6, false, 0},
    {"reply", 5, false, PRESTO__HINT_COMMENT},
    {"rail", 4, true, PRESTO__HINT_SIDE},
    {"rss", 3, true, PRESTO__HINT_SHARE},
};
static const hint_word words_s[] = {
    {"screenreader", 12, false, PRESTO__HINT_HIDDEN},
    {"subscription", 12, false, PRESTO__HINT_NEWSLETTER},
    {"subheadline", 11, false, PRESTO__HINT_TITLE},
    {"standfirst", 10, false, PRESTO__HINT_SUMMARY},
    {"secondary", 9, false, PRESTO__HINT_SIDE},
    {"slideshow", 9, false, PRESTO__HINT_MEDIA},
    {"subscribe", 9, false, PRESTO__HINT_NEWSLETTER},
    {"subtitle", 8, false, PRESTO__HINT_TITLE},
    {"section", 7, false, 0},
    {"sharing", 7, false, PRESTO__HINT_SHARE},
    {"sidebar", 7, false, PRESTO__HINT_SIDE},
    {"similar", 7, false, PRESTO__HINT_RELATED},
    {"sitemap", 7, false, PRESTO__HINT_NAV},
    {"sponsor", 7, false, PRESTO__HINT_AD},
    {"suggest", 7, false, PRESTO__HINT_RELATED},
    {"summary", 7, false, PRESTO__HINT_SUMMARY},
    {"search", 6, false, PRESTO__HINT_TOOLS},
    {"series", 6, false, PRESTO__HINT_RELATED},
    {"signin", 6, false, PRESTO__HINT_NEWSLETTER},
    {"signup", 6, false, PRESTO__HINT_NEWSLETTER},
    {"social", 6, false, PRESTO__HINT_SHARE},
    {"source", 6, false, PRESTO__HINT_CAPTION},
    {"sticky", 6, false, PRESTO__HINT_POPUP},
    {"subnav", 6, false, PRESTO__HINT_NAV},
    {"survey", 6, false, PRESTO__HINT_TOOLS},
    {"share", 5, false, PRESTO__HINT_SHARE},
    {"slide", 5, false, PRESTO__HINT_MEDIA},
    {"stats", 5, false, PRESTO__HINT_META},
    {"story", 5, false, PRESTO__HINT_ARTICLE},
    {"strip", 5, true, PRESTO__HINT_TEASER},
    {"side", 4, false, PRESTO__HINT_SIDE},
    {"skip", 4, true, PRESTO__HINT_NAV},
    {"see", 3, true, PRESTO__HINT_RELATED},
    {"sr", 2, true, PRESTO__HINT_HIDDEN},
};
static const hint_word words_t[] = {
    {"timestamp", 9, false, PRESTO__HINT_META},
    {"trending", 8, false, PRESTO__HINT_RELATED},
    {"taboola", 7, false, PRESTO__HINT_RELATED},
    {"toolbar", 7, false, PRESTO__HINT_TOOLS},
    {"tooltip", 7, false, PRESTO__HINT_POPUP},
    {"twitter", 7, false, PRESTO__HINT_SHARE},
    {"teaser", 6, false, PRESTO__HINT_TEASER},
    {"topbar", 6, false, PRESTO__HINT_HEAD},
    {"table", 5, true, 0},
    {"tease", 5, false, PRESTO__HINT_TEASER},
    {"terms", 5, false, PRESTO__HINT_LEGAL},
    {"thumb", 5, false, PRESTO__HINT_LISTING},
    {"title", 5, false, PRESTO__HINT_TITLE},
    {"tools", 5, false, PRESTO__HINT_TOOLS},
    {"topic", 5, false, PRESTO__HINT_TAGS},
    {"tweet", 5, false, PRESTO__HINT_SHARE},
    {"tabs", 4, true, PRESTO__HINT_NAV},
    {"tags", 4, true, PRESTO__HINT_TAGS},
    {"text", 4, false, PRESTO__HINT_TEXT},
    {"time", 4, true, PRESTO__HINT_META},
    {"tool", 4, true, PRESTO__HINT_TOOLS},
    {"tout", 4, false, PRESTO__HINT_AD},
    {"tab", 3, true, PRESTO__HINT_NAV},
    {"tag", 3, true, PRESTO__HINT_TAGS},
    {"toc", 3, true, PRESTO__HINT_NAV},
    {"top", 3, true, PRESTO__HINT_HEAD},
};
static const hint_word words_u[] = {
    {"user", 4, false, PRESTO__HINT_COMMENT},
};
static const hint_word words_v[] = {
    {"visuallyhidden", 14, false, PRESTO__HINT_HIDDEN},
    {"video", 5, false, PRESTO__HINT_MEDIA},
    {"views", 5, false, PRESTO__HINT_META},
    {"vote", 4, false, PRESTO__HINT_TOOLS},
};
static const hint_word words_w[] = {
    {"whatsapp", 8, false, PRESTO__HINT_SHARE},
    {"werbung", 7, false, PRESTO__HINT_AD},
    {"widget", 6, false, PRESTO__HINT_WIDGET},
    {"wp", 2, true, 0},
};
static const hint_word words_z[] = {
    {"zergnet", 7, false, PRESTO__HINT_RELATED},
};

static const struct {
    const hint_word *words;
    size_t count;
} by_letter[26] = {
    WORDS(words_a), WORDS(words_b), WORDS(words_c), WORDS(words_d), WORDS(words_e), WORDS(words_f),
    WORDS(words_g), WORDS(words_h), WORDS(words_i), {NULL, 0},      WORDS(words_k), WORDS(words_l),
    WORDS(words_m), WORDS(words_n), WORDS(words_o), WORDS(words_p), WORDS(words_q), WORDS(words_r),
    WORDS(words_s), WORDS(words_t), WORDS(words_u), WORDS(words_v), WORDS(words_w), {NULL, 0},
    {NULL, 0},      WORDS(words_z),
};

/* Names are machine-made beyond this. */
#define MAX_NAME_BYTES 512
#define MAX_WORD_BYTES 24

static uint32_t hints_of_word(const char *word, size_t bytes) {
    size_t letter = (size_t)(word[0] - 'a');
    for (size_t i = 0; i < by_letter[letter].count; i++) {
        const hint_word *hint = &by_letter[letter].words[i];
        if (bytes < hint->bytes || (hint->whole && bytes > hint->bytes))
            continue;
        if (memcmp(word, hint->word, hint->bytes) == 0)
            return hint->hints;
    }
    return 0;
}

static bool is_upper(uint8_t byte) {
    return byte >= 'A' && byte <= 'Z';
}

uint32_t presto__hints_of(presto_span names) {
    char word[MAX_WORD_BYTES];
    size_t bytes = 0, end = names.bytes < MAX_NAME_BYTES ? names.bytes : MAX_NAME_BYTES;
    uint32_t hints = 0;
    for (size_t i = 0; i <= end; i++) {
        uint8_t byte = i < end ? names.data[i] : ' ';
        uint8_t lower = byte | 0x20;
        bool is_letter = lower >= 'a' && lower <= 'z';
        bool begins = is_upper(byte) && i > 0 && !is_upper(names.data[i - 1]);
        if (bytes > 0 && (!is_letter || begins)) {
            hints |= hints_of_word(word, bytes);
            bytes = 0;
        }
        if (is_letter && bytes < sizeof word)
            word[bytes++] = (char)lower;
    }
    return hints;
}
