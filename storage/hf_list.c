/* SPDX-License-Identifier: Apache-2.0 */
/*
 * All files below a folder come in one list, whose order is not relied on. Folders are told when the
 * first file in them comes: git has no empty ones.
 */
#include "hf_list_internal.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../base/digest_internal.h"
#include "../base/file_internal.h"
#include "../base/json_limit_internal.h"
#include "../base/stop_internal.h"
#include "credentials/credentials_internal.h"
#include "s3_list_internal.h"
#include "texts_internal.h"

#define MOST_PATH_BYTES ((size_t)4 << 10)
#define MOST_PAGE_BYTES ((size_t)4 << 20) /* of 1,000 entries, some 400 bytes each */
#define MOST_WEIGHT 200000                /* an entry has about 25 */
#define COMMIT_BYTES 40

/* ---- pages ---- */

static presto_status keep(presto__hf_page *page, const char *text, presto_span *copy_out,
                          presto_error *err) {
    size_t bytes = strlen(text);
    char *copy = presto_arena_alloc(&page->texts, bytes + 1, 1);
    if (copy == NULL)
        return presto_fail_memory(err, bytes + 1);
    memcpy(copy, text, bytes + 1);
    *copy_out = presto_span_of(copy, bytes);
    return PRESTO_OK;
}

/* Names with '/' between them, none of which is empty, "." or "..". */
static bool is_path(const char *path) {
    for (;;) {
        size_t bytes = strcspn(path, "/");
        if (bytes == 0 || (path[0] == '.' && (bytes == 1 || (bytes == 2 && path[1] == '.'))))
            return false;
        if (path[bytes] == '\0')
            return true;
        path += bytes + 1;
    }
}

static presto_status take_entry(presto__hf_page *page, const json_t *from, presto_error *err) {
    const char *type = json_string_value(json_object_get(from, "type"));
    const char *path = json_string_value(json_object_get(from, "path"));
    const json_t *size = json_object_get(from, "size");
    if (type == NULL || path == NULL)
        return presto_fail(err, PRESTO_ERR_SYNTAX, PRESTO_NO_OFFSET,
                           "an entry has no type, or no path");
    bool is_folder = strcmp(type, "directory") == 0;
    if (!is_folder && strcmp(type, "file") != 0)
        return PRESTO_OK;
    if (strlen(path) > MOST_PATH_BYTES)
        return presto_fail(err, PRESTO_ERR_LIMIT, PRESTO_NO_OFFSET,
                           "a path has %zu bytes, more than %zu", strlen(path), MOST_PATH_BYTES);
    if (!is_path(path))
        return presto_fail(err, PRESTO_ERR_SYNTAX, PRESTO_NO_OFFSET,
                           "'%.100s' is no path of a file", path);
    if (!is_folder && (!json_is_integer(size) || json_integer_value(size) < 0))
        return presto_fail(err, PRESTO_ERR_SYNTAX, PRESTO_NO_OFFSET, "'%.100s' has no size", path);
    if (page->count == page->capacity) {
        size_t capacity = page->capacity == 0 ? 256 : 2 * page->capacity;
        presto__hf_entry *entries = realloc(page->entries, capacity * sizeof *entries);
        if (entries == NULL)
            return presto_fail_memory(err, capacity * sizeof *entries);
        page->entries = entries;
        page->capacity = capacity;
    }
    /* What stands in Git of a large file is not its content. */
    const char *oid = json_string_value(json_object_get(json_object_get(from, "lfs"), "oid"));
    if (oid == NULL)
        oid = json_string_value(json_object_get(from, "oid"));
    presto__hf_entry entry = {.is_folder = is_folder,
                              .bytes = is_folder ? 0 : (uint64_t)json_integer_value(size)};
    PRESTO_TRY(keep(page, path, &entry.path, err));
    PRESTO_TRY(keep(page, oid == NULL ? "" : oid, &entry.oid, err));
    page->entries[page->count++] = entry;
    return PRESTO_OK;
}

presto_status presto__hf_page_parse(presto_span json, presto__hf_page *page, presto_error *err) {
    presto_arena_reset(&page->texts);
    page->count = 0;
    PRESTO_TRY(presto__json_check(json, MOST_PAGE_BYTES, MOST_WEIGHT, err));
    json_error_t where;
    json_t *all = json_loadb((const char *)json.data, json.bytes, 0, &where);
    presto_status status = PRESTO_OK;
    if (all == NULL)
        status =
            presto_fail(err, PRESTO_ERR_SYNTAX, PRESTO_NO_OFFSET, "it is no JSON: %s", where.text);
    else if (!json_is_array(all))
        status = presto_fail(err, PRESTO_ERR_SYNTAX, PRESTO_NO_OFFSET, "it is no list in JSON");
    for (size_t i = 0; status == PRESTO_OK && i < json_array_size(all); i++)
        status = take_entry(page, json_array_get(all, i), err);
    json_decref(all);
    return status;
}

void presto__hf_page_done(presto__hf_page *page) {
    presto_arena_done(&page->texts);
    free(page->entries);
    *page = (presto__hf_page){.count = 0};
}

/* Is `rel` of the link's parameters "next"? They end at `end`. */
static bool is_next(const char *at, const char *end) {
    static const char *const forms[] = {"rel=\"next\"", "rel=next"};
    for (; at < end; at++)
        for (size_t i = 0; i < 2; i++)
            if ((size_t)(end - at) >= strlen(forms[i]) &&
                strncmp(at, forms[i], strlen(forms[i])) == 0)
                return true;
    return false;
}

/* The value of `cursor` in the query of [url, end). */
static presto_span cursor_in(const char *url, const char *end) {
    static const char name[] = "cursor=";
    const char *at = memchr(url, '?', (size_t)(end - url));
    while (at != NULL && ++at < end) {
        const char *next = memchr(at, '&', (size_t)(end - at));
        const char *stop = next == NULL ? end : next;
        if ((size_t)(stop - at) > strlen(name) && strncmp(at, name, strlen(name)) == 0) {
            const char *from = at + strlen(name);
            for (const char *c = from; c < stop; c++)
                if (*c <= ' ' || *c >= 0x7f || strchr("#\"\\<", *c) != NULL)
                    return presto_span_of(NULL, 0);
            return presto_span_of(from, (size_t)(stop - from));
        }
        at = next;
    }
    return presto_span_of(NULL, 0);
}

presto_status presto__hf_cursor(const char *link, presto_span *cursor_out, presto_error *err) {
    *cursor_out = presto_span_of(NULL, 0);
    for (const char *from = strchr(link, '<'); from != NULL;) {
        const char *end = strchr(from, '>');
        if (end == NULL)
            return presto_fail(err, PRESTO_ERR_SYNTAX, PRESTO_NO_OFFSET,
                               "the header Link is cut: '%.200s'", link);
        const char *next = strchr(end, '<');
        if (is_next(end, next == NULL ? end + strlen(end) : next)) {
            *cursor_out = cursor_in(from + 1, end);
            return cursor_out->bytes > 0
                       ? PRESTO_OK
                       : presto_fail(err, PRESTO_ERR_SYNTAX, PRESTO_NO_OFFSET,
                                     "the next page has no cursor: '%.200s'", link);
        }
        from = next;
    }
    return PRESTO_OK;
}

/* ---- requests ---- */

/* The address of a question to the interface: `self` of it. */
typedef struct hf_question {
    const char *url, *token;
} hf_question;

static presto_status write_question(void *self, const presto__remote_wish *wish,
                                    presto__message *message, presto_error *err) {
    const hf_question *question = self;
    (void)wish;
    PRESTO_TRY(presto_buffer_append(&message->text,
                                    presto_span_of(question->url, strlen(question->url) + 1), err));
    if (question->token == NULL)
        return PRESTO_OK;
    char *value = PRESTO__JOINED("Bearer ", question->token);
    if (value == NULL)
        return presto_fail_memory(err, strlen(question->token));
    presto_status status =
        presto__message_add(message, "Authorization", presto_span_of_text(value), err);
    presto__forget(value);
    return status;
}

static const presto__address_type question_address = {.write = write_question};

/* Its answer, of at most MOST_PAGE_BYTES to `body`. */
static presto_status ask(const char *path, const hf_question *question, const char *what,
                         uint8_t *body, presto__http_answer *answer, presto_error *err) {
    hf_question copy = *question;
    const presto__remote_wish wish = {.what = what};
    const presto__remote_target to = {&question_address, &copy, path, body, MOST_PAGE_BYTES};
    PRESTO_TRY(presto__remote_ask(&to, &wish, answer, err));
    if (answer->code == 200 && !answer->is_longer)
        return PRESTO_OK;
    presto_status status =
        presto_fail(err, PRESTO_ERR_IO, PRESTO_NO_OFFSET,
                    "the request of %s was answered with %d and %s%zu bytes", what, answer->code,
                    answer->is_longer ? "more than " : "", answer->bytes);
    presto_error_set_file(err, path);
    return status;
}

presto_status presto__hf_commit_of(const char *path, const char *url, const char *token,
                                   char **commit_out, presto_error *err) {
    const hf_question question = {url, token};
    presto__http_answer answer;
    uint8_t *body = malloc(MOST_PAGE_BYTES); /* what is not used of it is not there */
    if (body == NULL)
        return presto_fail_memory(err, MOST_PAGE_BYTES);
    presto_status status = ask(path, &question, "its commit", body, &answer, err);
    if (status == PRESTO_OK)
        status = presto__json_check(presto_span_of(body, answer.bytes), MOST_PAGE_BYTES,
                                    MOST_WEIGHT, err);
    json_t *all = status < 0 ? NULL : json_loadb((const char *)body, answer.bytes, 0, NULL);
    const char *sha = json_string_value(json_object_get(all, "sha"));
    *commit_out = NULL;
    if (status == PRESTO_OK && (sha == NULL || strlen(sha) != COMMIT_BYTES ||
                                sha[strspn(sha, "0123456789abcdef")] != '\0'))
        status = presto_fail(err, PRESTO_ERR_IO, PRESTO_NO_OFFSET,
                             "the Hub does not say which commit this is");
    else if (status == PRESTO_OK && (*commit_out = strdup(sha)) == NULL)
        status = presto_fail_memory(err, COMMIT_BYTES);
    if (status < 0)
        presto_error_set_file(err, path);
    json_decref(all);
    free(body);
    return status;
}

/* Pages of one tree. */
typedef struct tree_pages {
    const presto__hf_tree *tree;
    bool is_shallow;
    presto__hf_page page;
    char *cursor; /* of the page to come; NULL: there is none */
    presto__page_tokens tokens;
    uint8_t *body;
} tree_pages;

static void pages_done(tree_pages *pages) {
    presto__hf_page_done(&pages->page);
    presto__page_tokens_done(&pages->tokens);
    free(pages->cursor);
    free(pages->body);
}

static presto_status fail_list(const tree_pages *pages, const presto_error *why,
                               presto_error *err) {
    presto_status status =
        presto_fail(err, why->status == PRESTO_ERR_SYNTAX ? PRESTO_ERR_IO : why->status,
                    PRESTO_NO_OFFSET, "the list of its files cannot be read: %.400s", why->message);
    presto_error_set_file(err, pages->tree->name->path);
    return status;
}

/* What the header says of the next page. */
static presto_status take_cursor(tree_pages *pages, const presto__http_answer *answer,
                                 presto_error *err) {
    presto_span cursor;
    bool comes_again = false;
    free(pages->cursor);
    pages->cursor = NULL;
    if (strlen(answer->location) + 1 == sizeof answer->location)
        return presto_fail(err, PRESTO_ERR_SYNTAX, PRESTO_NO_OFFSET,
                           "where it goes on has more than %zu bytes", sizeof answer->location);
    PRESTO_TRY(presto__hf_cursor(answer->location, &cursor, err));
    if (cursor.bytes == 0)
        return PRESTO_OK;
    PRESTO_TRY(presto__page_token_is_again(&pages->tokens, cursor, &comes_again, err));
    if (comes_again)
        return presto_fail(err, PRESTO_ERR_SYNTAX, PRESTO_NO_OFFSET,
                           "the server says that it goes on where it has been");
    pages->cursor = presto_span_to_text(cursor);
    return pages->cursor == NULL ? presto_fail_memory(err, cursor.bytes) : PRESTO_OK;
}

/* Is the path what was asked for? */
static bool is_below(const tree_pages *pages, presto_span path) {
    size_t bytes = strlen(pages->tree->folder);
    const uint8_t *rest = path.data;
    if (bytes > 0) {
        if (path.bytes < bytes + 2 || memcmp(path.data, pages->tree->folder, bytes) != 0 ||
            path.data[bytes] != '/')
            return false;
        rest += bytes + 1;
    }
    return !pages->is_shallow || memchr(rest, '/', path.bytes - (size_t)(rest - path.data)) == NULL;
}

/* The next page; PRESTO_END: that was the last one. */
static presto_status next_page(tree_pages *pages, bool is_first, presto_error *err) {
    const presto__hf_tree *tree = pages->tree;
    presto__http_answer answer;
    presto_error why;
    if (!is_first && pages->cursor == NULL)
        return PRESTO_END;
    if (pages->body == NULL)
        pages->body = malloc(MOST_PAGE_BYTES); /* what is not used of it is not there */
    char *url =
        PRESTO__JOINED(tree->url, "?recursive=", pages->is_shallow ? "false" : "true",
                       "&expand=false", is_first ? "" : "&cursor=", is_first ? "" : pages->cursor);
    if (url == NULL || pages->body == NULL) {
        free(url);
        return presto_fail_memory(err, MOST_PAGE_BYTES);
    }
    const hf_question question = {url, tree->token};
    presto_status status = ask(tree->name->path, &question, "its files", pages->body, &answer, err);
    free(url);
    PRESTO_TRY(status);
    status = presto__hf_page_parse(presto_span_of(pages->body, answer.bytes), &pages->page, &why);
    if (status == PRESTO_OK)
        status = take_cursor(pages, &answer, &why);
    for (size_t i = 0; status == PRESTO_OK && i < pages->page.count; i++)
        if (!is_below(pages, pages->page.entries[i].path))
            status = presto_fail(&why, PRESTO_ERR_SYNTAX, PRESTO_NO_OFFSET,
                                 "it has '%.200s', which was not asked for",
                                 (const char *)pages->page.entries[i].path.data);
    return status < 0 ? fail_list(pages, &why, err) : PRESTO_OK;
}

/* ---- what the caller gets ---- */

/* A folder that has come up. */
typedef struct known_folder {
    struct known_folder *next; /* of the same hash */
    presto_span path;
    bool is_wanted;
} known_folder;

typedef struct tree_walk {
    const presto__hf_tree *tree;
    const presto__list *list;
    presto_arena texts;
    known_folder **folders; /* by their hashes */
    uint64_t seed;          /* of these: nobody knows which names have the same */
    size_t count, capacity; /* a power of two */
    presto_buffer path;     /* of what is being told */
} tree_walk;

static void walk_done(tree_walk *walk) {
    presto_arena_done(&walk->texts);
    presto_buffer_done(&walk->path);
    free((void *)walk->folders);
}

static known_folder **slot_of(const tree_walk *walk, known_folder **folders, size_t capacity,
                              presto_span path) {
    return &folders[presto__fnv_add(walk->seed, path.data, path.bytes) & (capacity - 1)];
}

static const known_folder *find_folder(const tree_walk *walk, presto_span path) {
    known_folder *one =
        walk->capacity == 0 ? NULL : *slot_of(walk, walk->folders, walk->capacity, path);
    while (one != NULL && !presto_span_equal(one->path, path))
        one = one->next;
    return one;
}

static presto_status grow(tree_walk *walk, presto_error *err) {
    size_t capacity = walk->capacity == 0 ? 64 : 2 * walk->capacity;
    known_folder **folders = calloc(capacity, sizeof *folders);
    if (folders == NULL)
        return presto_fail_memory(err, capacity * sizeof *folders);
    for (size_t i = 0; i < walk->capacity; i++)
        for (known_folder *one = walk->folders[i], *next; one != NULL; one = next) {
            known_folder **at = slot_of(walk, folders, capacity, one->path);
            next = one->next;
            one->next = *at;
            *at = one;
        }
    free((void *)walk->folders);
    walk->folders = folders;
    walk->capacity = capacity;
    return PRESTO_OK;
}

/* `path` stays. */
static presto_status add_folder(tree_walk *walk, presto_span path, bool is_wanted,
                                presto_error *err) {
    if (walk->count == walk->capacity)
        PRESTO_TRY(grow(walk, err));
    known_folder *one = presto_arena_alloc(&walk->texts, sizeof *one, _Alignof(known_folder));
    if (one == NULL)
        return presto_fail_memory(err, sizeof *one);
    known_folder **at = slot_of(walk, walk->folders, walk->capacity, path);
    *one = (known_folder){*at, path, is_wanted};
    *at = one;
    walk->count++;
    return PRESTO_OK;
}

/* The path of a file or folder, as a text in walk->path. */
static presto_status make_path(tree_walk *walk, presto_span path, presto_error *err) {
    walk->path.bytes = 0;
    if (path.bytes <= strlen(walk->tree->folder)) {
        PRESTO_TRY(
            presto_buffer_append(&walk->path, presto_span_of_text(walk->tree->name->path), err));
    } else {
        PRESTO_TRY(presto_buffer_append(&walk->path, presto_span_of_text(walk->tree->root), err));
        PRESTO_TRY(presto_buffer_append(&walk->path, path, err));
    }
    return presto_buffer_append(&walk->path, presto_span_of("", 1), err);
}

/* How many bytes stand before the last name, without their '/'. */
static size_t parent_bytes(presto_span path) {
    size_t at = path.bytes;
    while (at > 0 && path.data[at - 1] != '/')
        at--;
    return at == 0 ? 0 : at - 1;
}

/* Does the caller want what is called so, in a folder that he wants? */
static presto_status ask_name(tree_walk *walk, presto_span path, bool *wanted_out,
                              presto_error *err) {
    char name[MOST_PATH_BYTES + 1];
    size_t parent = parent_bytes(path), from = parent == 0 ? 0 : parent + 1;
    *wanted_out = true;
    if (walk->list->name == NULL)
        return PRESTO_OK;
    memcpy(name, path.data + from, path.bytes - from);
    name[path.bytes - from] = '\0';
    PRESTO_TRY(make_path(walk, presto_span_of(path.data, parent), err));
    return walk->list->name(walk->list->user, (const char *)walk->path.data, name, wanted_out, err);
}

static presto_status tell_folder(tree_walk *walk, presto_span path, bool *wanted_out,
                                 presto_error *err) {
    PRESTO_TRY(ask_name(walk, path, wanted_out, err));
    if (!*wanted_out || walk->list->folder == NULL)
        return PRESTO_OK;
    PRESTO_TRY(make_path(walk, path, err));
    return walk->list->folder(walk->list->user, (const char *)walk->path.data, err);
}

/* The folders of a path, from the one that is listed on: are all of them wanted? Those that have not
 * come up are told. */
static presto_status tell_folders(tree_walk *walk, presto_span path, bool *wanted_out,
                                  presto_error *err) {
    size_t from = strlen(walk->tree->folder);
    uint8_t *copy = NULL; /* of the path, which all folders of it share: they may be thousands */
    *wanted_out = true;
    for (size_t end = from + 1; end < path.bytes && *wanted_out; end++) {
        if (path.data[end] != '/')
            continue;
        presto_span folder = presto_span_of(path.data, end);
        const known_folder *known = find_folder(walk, folder);
        if (known != NULL) {
            *wanted_out = known->is_wanted;
            continue;
        }
        PRESTO_TRY(tell_folder(walk, folder, wanted_out, err));
        if (copy == NULL) {
            copy = presto_arena_alloc(&walk->texts, path.bytes, 1);
            if (copy == NULL)
                return presto_fail_memory(err, path.bytes);
            memcpy(copy, path.data, path.bytes);
        }
        PRESTO_TRY(add_folder(walk, presto_span_of(copy, end), *wanted_out, err));
    }
    return PRESTO_OK;
}

static presto_status tell_file(tree_walk *walk, const presto__hf_entry *entry, presto_error *err) {
    bool is_wanted;
    PRESTO_TRY(tell_folders(walk, entry->path, &is_wanted, err));
    if (is_wanted)
        PRESTO_TRY(ask_name(walk, entry->path, &is_wanted, err));
    if (!is_wanted)
        return PRESTO_OK;
    PRESTO_TRY(make_path(walk, entry->path, err));
    const char *path = (const char *)walk->path.data;
    const presto__remote_version version = {.etag = (const char *)entry->oid.data};
    const presto__object_info info = presto__remote_info(path, entry->bytes, &version);
    const presto__listed listed = {
        .path = path, .name = strrchr(path, '/') + 1, .info = &info, .sys_errno = 0};
    return walk->list->found(walk->list->user, &listed, err);
}

static presto_status tell_page(tree_walk *walk, const presto__hf_page *page, presto_error *err) {
    for (size_t i = 0; i < page->count; i++) {
        const presto__hf_entry *entry = &page->entries[i];
        bool is_wanted;
        PRESTO_TRY(presto__stop_check(err));
        if (!entry->is_folder)
            PRESTO_TRY(tell_file(walk, entry, err));
        else if (walk->list->is_shallow)
            PRESTO_TRY(tell_folder(walk, entry->path, &is_wanted, err));
    }
    return PRESTO_OK;
}

presto_status presto__hf_list(const presto__hf_tree *tree, const presto__list *list,
                              presto_error *err) {
    tree_walk walk = {.tree = tree, .list = list, .seed = presto__random_name()};
    tree_pages pages = {.tree = tree, .is_shallow = list->is_shallow};
    presto_status status = PRESTO_OK;
    if (!list->is_shallow && list->folder != NULL)
        status = list->folder(list->user, tree->name->path, err);
    if (status >= 0)
        status = next_page(&pages, true, err);
    while (status == PRESTO_OK) {
        status = tell_page(&walk, &pages.page, err);
        if (status == PRESTO_OK)
            status = next_page(&pages, false, err);
    }
    pages_done(&pages);
    walk_done(&walk);
    return status == PRESTO_END ? PRESTO_OK : status;
}

presto_status presto__hf_find_below(const presto__hf_tree *tree, presto_error *err) {
    tree_pages pages = {.tree = tree, .is_shallow = true};
    presto_status status = next_page(&pages, true, err);
    while (status == PRESTO_OK && pages.page.count == 0) /* one may be empty, and not the last */
        status = next_page(&pages, false, err);
    pages_done(&pages);
    if (status != PRESTO_END)
        return status;
    status = presto_fail(err, PRESTO_ERR_NOT_FOUND, PRESTO_NO_OFFSET, "no file is below it");
    presto_error_set_file(err, tree->name->path);
    return status;
}
