/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A bucket has no folders, only keys with '/' in them. What stands before a '/' is taken as a folder
 * here, so that everything above sees the same as on a disk.
 *
 * All keys below a prefix come in one list, a page after the other, each in a round trip. If there
 * are more than one page of them, in few and large folders, these are listed beside each other
 * instead. Hooks of the caller are called by one thread at a time.
 */
#include "s3_list_internal.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <presto/numbers.h>

#include "../base/paths_internal.h"
#include "../base/stop_internal.h"
#include "calendar_internal.h"
#include "fan_out_internal.h"
#include "xml_internal.h"

#define ROOT "ListBucketResult"
#define DATASET "dataset.json" /* no folder is called so */
#define NS_PER_S 1000000000
#define MOST_KEY_BYTES ((size_t)4 << 10)  /* S3 itself has keys of up to 1,024 bytes */
#define MOST_PAGE_BYTES ((size_t)8 << 20) /* of 1,000 keys, each byte of them as %XX */
#define PAGE_TRIES 3                      /* for one that is no XML */
/* A page whose keys lie in at most so many folders comes from large ones: listing them beside each
 * other takes few more requests. */
#define LARGE_FOLDERS 16
/* So few are looked into one after the other, for folders within them. */
#define FEW_FOLDERS 2
#define MOST_LEVELS 64 /* of folders that are looked into so */

/* ---- pages ---- */

typedef struct page_reading {
    presto__s3_page *page;
    presto__s3_item item; /* being read */
    bool is_encoded;      /* keys are as in a URL */
    bool is_list;         /* the document is one */
} page_reading;

static presto_status keep(presto__s3_page *page, presto_span text, presto_span *copy_out,
                          presto_error *err) {
    char *copy = presto_arena_alloc(&page->texts, text.bytes + 1, 1);
    if (copy == NULL)
        return presto_fail_memory(err, text.bytes + 1);
    if (text.bytes > 0)
        memcpy(copy, text.data, text.bytes);
    copy[text.bytes] = '\0';
    *copy_out = presto_span_of(copy, text.bytes);
    return PRESTO_OK;
}

static presto_status add_item(presto__s3_page *page, const presto__s3_item *item,
                              presto_error *err) {
    if (page->count == page->capacity) {
        size_t capacity = page->capacity == 0 ? 256 : 2 * page->capacity;
        presto__s3_item *items = realloc(page->items, capacity * sizeof *items);
        if (items == NULL)
            return presto_fail_memory(err, capacity * sizeof *items);
        page->items = items;
        page->capacity = capacity;
    }
    page->items[page->count++] = *item;
    return PRESTO_OK;
}

static presto_status take_size(presto_span text, uint64_t *bytes_out, presto_error *err) {
    uint64_t bytes = 0;
    for (size_t i = 0; i < text.bytes; i++) {
        unsigned digit = (unsigned)text.data[i] - '0';
        if (digit > 9 || bytes > (UINT64_MAX - digit) / 10)
            return presto_fail(err, PRESTO_ERR_SYNTAX, PRESTO_NO_OFFSET, "a size is no number");
        bytes = bytes * 10 + digit;
    }
    *bytes_out = bytes;
    return PRESTO_OK;
}

static presto_status take_of_item(page_reading *r, const char *name, presto_span text,
                                  presto_error *err) {
    int64_t seconds;
    if (strcmp(name, "Key") == 0 || strcmp(name, "Prefix") == 0)
        return keep(r->page, text, &r->item.key, err);
    if (strcmp(name, "Size") == 0)
        return take_size(text, &r->item.bytes, err);
    if (strcmp(name, "ETag") == 0)
        return keep(r->page, text, &r->item.etag, err);
    if (strcmp(name, "Generation") == 0)
        return keep(r->page, text, &r->item.generation, err);
    /* In whole seconds, as the object itself says it. */
    if (strcmp(name, "LastModified") == 0 && presto__calendar_parse(text, &seconds))
        r->item.mtime_ns = seconds * NS_PER_S;
    return PRESTO_OK;
}

/* What stands behind the root and `beginning` in a path; NULL: it does not stand there. */
static const char *behind(const char *path, const char *beginning) {
    size_t bytes = strlen(beginning);
    return strncmp(path, beginning, bytes) == 0 ? path + bytes : NULL;
}

static presto_status take_element(void *user, const presto__xml_element *element,
                                  presto_error *err) {
    page_reading *r = user;
    const char *name = behind(element->path, ROOT);
    if (name == NULL || (name[0] != '/' && name[0] != '\0'))
        return PRESTO_OK; /* of another document */
    const char *of_key = behind(name, "/Contents"), *of_prefix = behind(name, "/CommonPrefixes");
    const char *of_item = of_key != NULL ? of_key : of_prefix;
    r->is_list |= name[0] == '\0';
    if (of_item != NULL && of_item[0] == '/')
        return take_of_item(r, of_item + 1, element->text, err);
    if (of_item != NULL && of_item[0] == '\0') {
        r->item.is_prefix = of_prefix != NULL;
        PRESTO_TRY(add_item(r->page, &r->item, err));
        r->item = (presto__s3_item){.bytes = 0};
    } else if (strcmp(name, "/IsTruncated") == 0) {
        r->page->is_truncated = presto_span_is(element->text, "true");
    } else if (strcmp(name, "/EncodingType") == 0) {
        r->is_encoded = presto_span_is(element->text, "url");
    } else if (strcmp(name, "/NextContinuationToken") == 0) {
        return keep(r->page, element->text, &r->page->next, err);
    }
    return PRESTO_OK;
}

static int digit_of(uint8_t c) {
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
                                  : -1;
}

/* In its place, as all clients of AWS do it: %XX is a byte, '+' is a space. */
presto_status presto__s3_key_decode(presto_span *key, presto_error *err) {
    uint8_t *to = (uint8_t *)(uintptr_t)key->data; /* the page's own */
    size_t bytes = 0;
    for (size_t i = 0; i < key->bytes; i++) {
        uint8_t c = key->data[i];
        if (c == '%') {
            int high = i + 2 < key->bytes ? digit_of(key->data[i + 1]) : -1;
            int low = high < 0 ? -1 : digit_of(key->data[i + 2]);
            if (low < 0)
                return presto_fail(err, PRESTO_ERR_SYNTAX, PRESTO_NO_OFFSET,
                                   "the key '%.100s' is not encoded as the answer says",
                                   (const char *)key->data);
            c = (uint8_t)(high << 4 | low);
            i += 2;
        } else if (c == '+') {
            c = ' ';
        }
        to[bytes++] = c;
    }
    to[bytes] = '\0';
    key->bytes = bytes;
    return PRESTO_OK;
}

static presto_status finish_keys(presto__s3_page *page, bool is_encoded, presto_error *err) {
    for (size_t i = 0; i < page->count; i++) {
        presto_span *key = &page->items[i].key;
        if (is_encoded && key->bytes > 0)
            PRESTO_TRY(presto__s3_key_decode(key, err));
        if (key->bytes == 0 || memchr(key->data, '\0', key->bytes) != NULL)
            return presto_fail(err, PRESTO_ERR_SYNTAX, PRESTO_NO_OFFSET,
                               "a key is empty, or has a NUL in it");
        if (key->bytes > MOST_KEY_BYTES)
            return presto_fail(err, PRESTO_ERR_LIMIT, PRESTO_NO_OFFSET,
                               "a key has %zu bytes, more than %zu", key->bytes, MOST_KEY_BYTES);
    }
    return PRESTO_OK;
}

presto_status presto__s3_page_parse(presto_span xml, presto__s3_page *page, presto_error *err) {
    page_reading r = {.page = page};
    presto_arena_reset(&page->texts);
    page->count = 0;
    page->is_truncated = false;
    page->next = presto_span_of(NULL, 0);
    PRESTO_TRY(presto__xml_read(xml, take_element, &r, err));
    if (!r.is_list)
        return presto_fail(err, PRESTO_ERR_SYNTAX, PRESTO_NO_OFFSET, "it is no " ROOT);
    return finish_keys(page, r.is_encoded, err);
}

void presto__s3_page_done(presto__s3_page *page) {
    presto_arena_done(&page->texts);
    free(page->items);
    *page = (presto__s3_page){.count = 0};
}

/* ---- requests ---- */

/* A listing, by any number of threads. */
typedef struct s3_listing {
    const presto__remote_name *name;
    const presto__list *list;
    void *self;           /* the bucket's address */
    char *bucket;         /* "SCHEME://BUCKET/": a key behind it is a path */
    char *prefix;         /* of all keys: "" or with a '/' at its end */
    pthread_mutex_t lock; /* held while a hook of `list` is called */
} s3_listing;

/* Keys of one prefix, page by page. Used by one thread. */
typedef struct key_pages {
    const s3_listing *listing;
    presto_span prefix;
    const char *delimiter; /* NULL: all that is below */
    unsigned most_keys;    /* in a page */
    presto__s3_page page;
    presto_buffer token; /* of the page to come */
    presto__page_tokens tokens;
    uint8_t *body;
} key_pages;

static void pages_done(key_pages *pages) {
    presto__s3_page_done(&pages->page);
    presto_buffer_done(&pages->token);
    presto__page_tokens_done(&pages->tokens);
    free(pages->body);
}

static presto_status fail_list(const s3_listing *listing, presto_status status, presto_error *err) {
    presto_error_set_file(err, listing->name->path);
    return status;
}

static presto_status request_page(key_pages *pages, presto_error *err) {
    const s3_listing *listing = pages->listing;
    char most[16];
    presto__named_value query[6];
    size_t count = 0;
    snprintf(most, sizeof most, "%u", pages->most_keys);
#define ADD(name, span) query[count++] = (presto__named_value){presto_span_of_text(name), span}
    ADD("list-type", presto_span_of_text("2"));
    ADD("encoding-type", presto_span_of_text("url"));
    ADD("max-keys", presto_span_of_text(most));
    ADD("prefix", pages->prefix);
    if (pages->delimiter != NULL)
        ADD("delimiter", presto_span_of_text(pages->delimiter));
    if (pages->token.bytes > 0)
        ADD("continuation-token", presto_buffer_span(&pages->token));
#undef ADD
    const presto__remote_wish wish = {.query = query, .query_count = count, .what = "its keys"};
    if (pages->body == NULL)
        pages->body = malloc(MOST_PAGE_BYTES); /* what is not used of it is not there */
    if (pages->body == NULL)
        return presto_fail_memory(err, MOST_PAGE_BYTES);
    const presto__remote_target to = {listing->name->address, listing->self, listing->name->path,
                                      pages->body, MOST_PAGE_BYTES};
    presto_error why;
    for (unsigned tries = 1;; tries++) {
        presto__http_answer answer;
        PRESTO_TRY(presto__remote_ask(&to, &wish, &answer, err));
        presto_status status =
            answer.code != 200 || answer.is_longer
                ? presto_fail(&why, PRESTO_ERR_SYNTAX, PRESTO_NO_OFFSET, "%d, %zu byte%s%s",
                              answer.code, answer.bytes, presto_plural(answer.bytes),
                              answer.is_longer ? " and more" : "")
                : presto__s3_page_parse(presto_span_of(pages->body, answer.bytes), &pages->page,
                                        &why);
        if (status == PRESTO_OK)
            return PRESTO_OK;
        if (status == PRESTO_ERR_SYNTAX && tries < PAGE_TRIES)
            continue; /* it may have been cut on the way */
        return fail_list(listing,
                         presto_fail(err, status == PRESTO_ERR_SYNTAX ? PRESTO_ERR_IO : status,
                                     PRESTO_NO_OFFSET,
                                     "the list of its keys cannot be read: %.400s", why.message),
                         err);
    }
}

presto_status presto__page_token_is_again(presto__page_tokens *tokens, presto_span token,
                                          bool *is_again_out, presto_error *err) {
    *is_again_out =
        tokens->mark.bytes > 0 && presto_span_equal(token, presto_buffer_span(&tokens->mark));
    if (*is_again_out || ++tokens->since < tokens->until)
        return PRESTO_OK;
    tokens->until = tokens->until == 0 ? 1 : tokens->until * 2;
    tokens->since = 0;
    tokens->mark.bytes = 0;
    return presto_buffer_append(&tokens->mark, token, err);
}

void presto__page_tokens_done(presto__page_tokens *tokens) {
    presto_buffer_done(&tokens->mark);
}

/* The next page; PRESTO_END: that was the last one. */
static presto_status next_page(key_pages *pages, bool is_first, presto_error *err) {
    const presto__s3_page *page = &pages->page;
    if (!is_first) {
        if (!page->is_truncated)
            return PRESTO_END;
        bool comes_again = false;
        if (page->next.bytes > 0)
            PRESTO_TRY(presto__page_token_is_again(&pages->tokens, page->next, &comes_again, err));
        if (page->next.bytes == 0 || comes_again)
            return fail_list(pages->listing,
                             presto_fail(err, PRESTO_ERR_IO, PRESTO_NO_OFFSET,
                                         "the list of its keys is cut, and the server %s",
                                         page->next.bytes == 0
                                             ? "does not say how it goes on"
                                             : "says that it goes on where it has been"),
                             err);
        pages->token.bytes = 0;
        PRESTO_TRY(presto_buffer_append(&pages->token, page->next, err));
    }
    PRESTO_TRY(request_page(pages, err));
    for (size_t i = 0; i < page->count; i++) {
        presto_span key = page->items[i].key;
        bool is_prefix = page->items[i].is_prefix;
        if (key.bytes < pages->prefix.bytes + is_prefix ||
            memcmp(key.data, pages->prefix.data, pages->prefix.bytes) != 0 ||
            (is_prefix && key.data[key.bytes - 1] != '/'))
            return fail_list(pages->listing,
                             presto_fail(err, PRESTO_ERR_IO, PRESTO_NO_OFFSET,
                                         "the server lists '%.200s', which it was not asked for",
                                         (const char *)key.data),
                             err);
    }
    return PRESTO_OK;
}

/* ---- what the caller gets ---- */

/* Where a thread is among the folders. */
typedef struct key_walk {
    s3_listing *listing;
    presto_buffer folder;  /* of the last key, with its '/' */
    presto_buffer refused; /* a folder that nobody wants; empty: none */
    presto_buffer path;    /* of what is being told */
} key_walk;

static void walk_done(key_walk *walk) {
    presto_buffer_done(&walk->folder);
    presto_buffer_done(&walk->refused);
    presto_buffer_done(&walk->path);
}

static presto_status set_text(presto_buffer *buffer, presto_span text, presto_error *err) {
    buffer->bytes = 0;
    return presto_buffer_append(buffer, text, err);
}

/* The path of a key, as a text in walk->path. A folder's has no '/' at its end, but for the root. */
static presto_status make_path(key_walk *walk, presto_span key, presto_error *err) {
    const s3_listing *listing = walk->listing;
    if (key.bytes <= strlen(listing->prefix)) {
        PRESTO_TRY(set_text(&walk->path, presto_span_of_text(listing->name->path), err));
    } else {
        PRESTO_TRY(set_text(&walk->path, presto_span_of_text(listing->bucket), err));
        PRESTO_TRY(presto_buffer_append(&walk->path, key, err));
        if (walk->path.data[walk->path.bytes - 1] == '/')
            walk->path.bytes--;
    }
    return presto_buffer_append(&walk->path, presto_span_of("", 1), err);
}

/* Does the caller want the name in this folder? A name that is empty, as between two '/', is not asked
 * for. */
static presto_status ask_name(key_walk *walk, presto_span folder, presto_span name,
                              bool *wanted_out, presto_error *err) {
    char text[MOST_KEY_BYTES + 1];
    *wanted_out = true;
    if (name.bytes == 0 || walk->listing->list->name == NULL)
        return PRESTO_OK;
    memcpy(text, name.data, name.bytes);
    text[name.bytes] = '\0';
    PRESTO_TRY(make_path(walk, folder, err));
    return walk->listing->list->name(walk->listing->list->user, (const char *)walk->path.data, text,
                                     wanted_out, err);
}

/* Of a folder's key, with its '/' at the end: how many bytes stand before its name. */
static size_t parent_bytes(presto_span folder) {
    size_t at = folder.bytes - 1;
    while (at > 0 && folder.data[at - 1] != '/')
        at--;
    return at;
}

/* A folder comes up. */
static presto_status tell_folder(key_walk *walk, presto_span folder, bool *wanted_out,
                                 presto_error *err) {
    const presto__list *list = walk->listing->list;
    size_t parent = parent_bytes(folder);
    PRESTO_TRY(ask_name(walk, presto_span_of(folder.data, parent),
                        presto_span_of(folder.data + parent, folder.bytes - parent - 1), wanted_out,
                        err));
    if (!*wanted_out || list->folder == NULL)
        return PRESTO_OK;
    PRESTO_TRY(make_path(walk, folder, err));
    return list->folder(list->user, (const char *)walk->path.data, err);
}

/* The folders in which the key stands, and the last one did not. */
static presto_status tell_folders(key_walk *walk, presto_span key, size_t folder_bytes,
                                  bool *wanted_out, presto_error *err) {
    size_t alike = 0, same = strlen(walk->listing->prefix);
    *wanted_out = true;
    while (alike < walk->folder.bytes && alike < folder_bytes &&
           walk->folder.data[alike] == key.data[alike]) {
        alike++;
        if (key.data[alike - 1] == '/' && alike > same)
            same = alike;
    }
    for (size_t end = same + 1; end <= folder_bytes; end++) {
        if (key.data[end - 1] != '/')
            continue;
        presto_span folder = presto_span_of(key.data, end);
        PRESTO_TRY(tell_folder(walk, folder, wanted_out, err));
        if (!*wanted_out)
            return set_text(&walk->refused, folder, err);
    }
    return set_text(&walk->folder, presto_span_of(key.data, folder_bytes), err);
}

/* With the listing's lock held. */
static presto_status tell_key(key_walk *walk, const presto__s3_item *item, presto_error *err) {
    const presto__list *list = walk->listing->list;
    presto_span key = item->key;
    size_t folder_bytes = key.bytes;
    bool is_wanted = true;
    PRESTO_TRY(presto__stop_check(err));
    if (walk->refused.bytes > 0 && key.bytes >= walk->refused.bytes &&
        memcmp(key.data, walk->refused.data, walk->refused.bytes) == 0)
        return PRESTO_OK;
    while (folder_bytes > 0 && key.data[folder_bytes - 1] != '/')
        folder_bytes--;
    PRESTO_TRY(tell_folders(walk, key, folder_bytes, &is_wanted, err));
    /* A key that ends with '/' is how other programs make an empty folder. */
    if (!is_wanted || (folder_bytes == key.bytes && item->bytes == 0))
        return PRESTO_OK;
    presto_span name = presto_span_of(key.data + folder_bytes, key.bytes - folder_bytes);
    PRESTO_TRY(ask_name(walk, presto_span_of(key.data, folder_bytes), name, &is_wanted, err));
    if (!is_wanted)
        return PRESTO_OK;
    PRESTO_TRY(make_path(walk, key, err));
    const char *path = (const char *)walk->path.data;
    const presto__remote_version version = {(const char *)item->etag.data,
                                            (const char *)item->generation.data, item->mtime_ns};
    presto__object_info info = presto__remote_info(path, item->bytes, &version);
    if (name.bytes == 0)
        info.type = PRESTO__OBJECT_OTHER;
    const presto__listed listed = {
        .path = path, .name = (const char *)key.data + folder_bytes, .info = &info};
    return list->found(list->user, &listed, err);
}

static presto_status tell_page(key_walk *walk, const presto__s3_page *page, presto_error *err) {
    presto_status status = PRESTO_OK;
    pthread_mutex_lock(&walk->listing->lock);
    for (size_t i = 0; i < page->count && status >= 0; i++)
        if (!page->items[i].is_prefix)
            status = tell_key(walk, &page->items[i], err);
    pthread_mutex_unlock(&walk->listing->lock);
    return status;
}

/* ---- one list, or many ---- */

static key_pages pages_of(const s3_listing *listing, presto_span prefix, const char *delimiter) {
    const key_pages pages = {
        .listing = listing, .prefix = prefix, .delimiter = delimiter, .most_keys = 1000};
    return pages;
}

/* The page that is there, and all behind it. The folders above the prefix were told. */
static presto_status tell_rest(s3_listing *listing, key_pages *pages, presto_error *err) {
    key_walk walk = {.listing = listing};
    presto_status status = set_text(&walk.folder, pages->prefix, err);
    while (status == PRESTO_OK) {
        status = tell_page(&walk, &pages->page, err);
        if (status == PRESTO_OK)
            status = next_page(pages, false, err);
    }
    walk_done(&walk);
    return status == PRESTO_END ? PRESTO_OK : status;
}

/* All keys below a prefix, in one list. */
static presto_status list_flat(s3_listing *listing, presto_span prefix, presto_error *err) {
    key_pages pages = pages_of(listing, prefix, NULL);
    presto_status status = next_page(&pages, true, err);
    if (status == PRESTO_OK)
        status = tell_rest(listing, &pages, err);
    pages_done(&pages);
    return status;
}

/* Are its keys in few folders right below the prefix? */
static bool is_of_large_folders(const presto__s3_page *page, size_t prefix_bytes) {
    size_t folders = 0;
    presto_span last = {0};
    for (size_t i = 0; i < page->count; i++) {
        presto_span key = page->items[i].key;
        const uint8_t *slash = memchr(key.data + prefix_bytes, '/', key.bytes - prefix_bytes);
        if (slash == NULL || slash + 1 == key.data + prefix_bytes + (key.bytes - prefix_bytes))
            continue;
        presto_span folder = presto_span_of(key.data, (size_t)(slash - key.data) + 1);
        folders += !presto_span_equal(folder, last);
        last = folder;
    }
    return folders > 0 && folders <= LARGE_FOLDERS;
}

/* Folders that are listed beside each other. */
typedef struct key_folders {
    s3_listing *listing;
    presto_span *folders; /* of the page that they came with */
} key_folders;

static presto_status list_folder(void *user, size_t i, presto_error *err) {
    const key_folders *all = user;
    return list_flat(all->listing, all->folders[i], err);
}

static presto_status list_below(s3_listing *listing, presto_span prefix, unsigned level,
                                presto_error *err);

/* Those of a page that are wanted, to `folders`: [page->count]. */
static presto_status tell_prefixes(s3_listing *listing, const presto__s3_page *page,
                                   presto_span *folders, size_t *count_out, presto_error *err) {
    key_walk walk = {.listing = listing};
    presto_status status = PRESTO_OK;
    size_t count = 0;
    pthread_mutex_lock(&listing->lock);
    for (size_t i = 0; i < page->count && status >= 0; i++) {
        bool is_wanted = false;
        if (page->items[i].is_prefix)
            status = tell_folder(&walk, page->items[i].key, &is_wanted, err);
        if (status >= 0 && is_wanted)
            folders[count++] = page->items[i].key;
    }
    pthread_mutex_unlock(&listing->lock);
    walk_done(&walk);
    *count_out = count;
    return status;
}

/* The keys of one page of a level, and all below its folders. */
static presto_status list_page(s3_listing *listing, const key_pages *pages, key_walk *walk,
                               unsigned level, presto_error *err) {
    const presto__s3_page *page = &pages->page;
    size_t count = 0;
    presto_span *folders = calloc(page->count + 1, sizeof *folders);
    if (folders == NULL)
        return presto_fail_memory(err, page->count * sizeof *folders);
    presto_status status = tell_page(walk, page, err);
    if (status >= 0)
        status = tell_prefixes(listing, page, folders, &count, err);
    if (status >= 0 && count > FEW_FOLDERS) {
        key_folders all = {listing, folders};
        status = presto__fan_out(count, list_folder, &all, err);
    } else {
        for (size_t i = 0; i < count && status >= 0; i++)
            status = list_below(listing, folders[i], level + 1, err);
    }
    free(folders);
    return status;
}

static presto_status list_level(s3_listing *listing, presto_span prefix, unsigned level,
                                presto_error *err) {
    key_pages pages = pages_of(listing, prefix, "/");
    key_walk walk = {.listing = listing};
    presto_status status = set_text(&walk.folder, prefix, err);
    if (status == PRESTO_OK)
        status = next_page(&pages, true, err);
    while (status == PRESTO_OK) {
        status = list_page(listing, &pages, &walk, level, err);
        if (status == PRESTO_OK)
            status = next_page(&pages, false, err);
    }
    walk_done(&walk);
    pages_done(&pages);
    return status == PRESTO_END ? PRESTO_OK : status;
}

/* All keys below a prefix, as one list or by folders. */
static presto_status list_below(s3_listing *listing, presto_span prefix, unsigned level,
                                presto_error *err) {
    key_pages pages = pages_of(listing, prefix, NULL);
    presto_status status = next_page(&pages, true, err);
    bool is_cut = status == PRESTO_OK && pages.page.is_truncated && level < MOST_LEVELS &&
                  is_of_large_folders(&pages.page, prefix.bytes);
    if (status == PRESTO_OK && !is_cut)
        status = tell_rest(listing, &pages, err);
    pages_done(&pages);
    return is_cut ? list_level(listing, prefix, level, err) : status;
}

/* What is right in the folder, and begins as is wanted. */
static presto_status list_shallow(s3_listing *listing, presto_error *err) {
    const char *beginning = listing->list->beginning == NULL ? "" : listing->list->beginning;
    presto_buffer prefix = {0};
    key_walk walk = {.listing = listing};
    presto_status status = presto_buffer_append(&prefix, presto_span_of_text(listing->prefix), err);
    if (status == PRESTO_OK)
        status = set_text(&walk.folder, presto_buffer_span(&prefix), err);
    if (status == PRESTO_OK)
        status = presto_buffer_append(&prefix, presto_span_of_text(beginning), err);
    key_pages pages = pages_of(listing, presto_buffer_span(&prefix), "/");
    if (status == PRESTO_OK)
        status = next_page(&pages, true, err);
    while (status == PRESTO_OK) {
        size_t count;
        presto_span *folders = calloc(pages.page.count + 1, sizeof *folders);
        status = folders == NULL ? presto_fail_memory(err, pages.page.count * sizeof *folders)
                                 : tell_page(&walk, &pages.page, err);
        if (status >= 0)
            status = tell_prefixes(listing, &pages.page, folders, &count, err);
        free(folders);
        if (status == PRESTO_OK)
            status = next_page(&pages, false, err);
    }
    walk_done(&walk);
    pages_done(&pages);
    presto_buffer_done(&prefix);
    return status == PRESTO_END ? PRESTO_OK : status;
}

/* ---- the hooks ---- */

static void listing_done(s3_listing *listing) {
    if (listing->self != NULL)
        listing->name->address->free(listing->self);
    free(listing->bucket);
    free(listing->prefix);
    pthread_mutex_destroy(&listing->lock);
}

static presto_status listing_init(s3_listing *listing, const presto__remote_name *name,
                                  presto_error *err) {
    const char *path = name->path;
    const char *bucket = strstr(path, "://") + strlen("://");
    size_t bytes = (size_t)(bucket - path) + strcspn(bucket, "/");
    const char *key = path[bytes] == '/' ? path + bytes + 1 : "";
    size_t key_bytes = strlen(key);
    bool lacks_slash = key_bytes > 0 && key[key_bytes - 1] != '/';
    *listing = (s3_listing){.name = name};
    int failed = pthread_mutex_init(&listing->lock, NULL);
    if (failed != 0)
        return presto_fail_errno(err, failed, NULL, "cannot make a lock");
    listing->bucket = malloc(bytes + 2);
    listing->prefix = malloc(key_bytes + 2);
    presto_status status = PRESTO_OK;
    if (listing->bucket == NULL || listing->prefix == NULL) {
        status = presto_fail_memory(err, bytes + key_bytes);
    } else {
        memcpy(listing->bucket, path, bytes);
        memcpy(listing->bucket + bytes, "/", 2);
        memcpy(listing->prefix, key, key_bytes + 1);
        if (lacks_slash)
            memcpy(listing->prefix + key_bytes, "/", 2);
        status = name->address->make(listing->bucket, &listing->self, err);
    }
    if (status < 0)
        listing_done(listing);
    return status < 0 ? fail_list(listing, status, err) : PRESTO_OK;
}

presto_status presto__s3_list(const presto__remote_name *name, const presto__list *list,
                              presto_error *err) {
    s3_listing listing;
    PRESTO_TRY(listing_init(&listing, name, err));
    listing.list = list;
    presto_status status = PRESTO_OK;
    if (!list->is_shallow && list->folder != NULL)
        status = list->folder(list->user, name->path, err);
    if (status >= 0)
        status = list->is_shallow
                     ? list_shallow(&listing, err)
                     : list_below(&listing, presto_span_of_text(listing.prefix), 0, err);
    listing_done(&listing);
    return status;
}

/* Is there a key that stands below the name? PRESTO_ERR_NOT_FOUND: none. */
static presto_status find_below(const presto__remote_name *name, presto_error *err) {
    s3_listing listing;
    PRESTO_TRY(listing_init(&listing, name, err));
    key_pages pages = pages_of(&listing, presto_span_of_text(listing.prefix), NULL);
    pages.most_keys = 1;
    presto_status status = next_page(&pages, true, err);
    while (status == PRESTO_OK && pages.page.count == 0) /* a page may be empty, and not the last */
        status = next_page(&pages, false, err);
    if (status == PRESTO_END)
        status = fail_list(
            &listing,
            presto_fail(err, PRESTO_ERR_NOT_FOUND, PRESTO_NO_OFFSET, "no key begins with that"),
            err);
    pages_done(&pages);
    listing_done(&listing);
    return status;
}

bool presto__s3_is_bucket(const char *path) {
    const char *slash = strchr(strstr(path, "://") + strlen("://"), '/');
    return slash == NULL || slash[1] == '\0';
}

presto_status presto__s3_find(const presto__remote_name *name, presto__object_info *info_out,
                              presto_error *err) {
    bool is_bucket = presto__s3_is_bucket(name->path);
    presto_error none, why;
    presto_status status =
        is_bucket ? PRESTO_ERR_NOT_FOUND : presto__remote_find(name, info_out, &none);
    if (is_bucket ||
        (status == PRESTO_ERR_NOT_FOUND && !presto__ends_with(name->path, "/" DATASET))) {
        status = find_below(name, &why);
        if (status == PRESTO_OK)
            *info_out = (presto__object_info){.type = PRESTO__OBJECT_FOLDER};
        else if (status != PRESTO_ERR_NOT_FOUND || is_bucket)
            none = why;
    }
    if (status < 0 && err != NULL)
        *err = none;
    return status;
}
